"""Exact expectations of factorial hidden Markov models, over joint states.

The chains together are one chain whose states are the joint states, the last chain
fastest, with the Kronecker products of their tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxent._inputs.sequences import Sequences
from maxent.families import Gaussian
from maxent.families._gaps import patterns
from maxent.models.chains._coupled_chains import total_means
from maxent.models.chains._hidden_chain import Observations, logs_of

Array = NDArray[np.float64]


def joint_table(cov: Array, means: Array, x: Array) -> Array:
    """Log-densities (n_steps, joint states) of what is observed of each row."""
    table = np.zeros((len(x), len(means)))
    for o, _, rows in patterns(x):
        law = Gaussian(means[:, o], cov[np.ix_(o, o)])
        table[rows] = law.log_prob(x[np.ix_(rows, o)]).T
    return table


def joint_chain(
    start: Sequence[Array], transition: Sequence[Array]
) -> tuple[Array, Array]:
    """Logs of the start and transition probabilities of the joint states.

    The probabilities themselves may underflow, as products of one of every chain.
    """
    each = [logs_of(pi, A) for pi, A in zip(start, transition)]
    log_start, log_transition = each[0]
    for pi, A in each[1:]:
        log_start = np.add.outer(log_start, pi).ravel()
        joint = log_transition[:, None, :, None] + A[:, None]
        log_transition = joint.reshape(len(log_start), -1)
    return log_start, log_transition


def joint_indicators(sizes: Sequence[int]) -> list[Array]:
    """Of every chain, which state (joint states, S_c) each joint state has."""
    states = np.unravel_index(np.arange(math.prod(sizes)), sizes)
    return [np.eye(S)[own] for S, own in zip(sizes, states)]


@dataclass(frozen=True)
class Moments:
    """Expected products of the indicators s of the states of all chains.

    Parameters
    ----------
    mean : ndarray (n_steps, K)
        E s; K states of all chains together.
    second : ndarray (K, K)
        Sum over the steps of E s s'.
    of_step : ndarray (n_steps, K, K) or None
        E s s' of each step, where they are asked for.
    """

    mean: Array
    second: Array
    of_step: Array | None


@dataclass(frozen=True)
class Expected:
    """What an M step needs.

    Parameters
    ----------
    objective : float
        Log-likelihood or a lower bound of it.
    start, transition : list of ndarray
        Expected counts of every chain.
    moments : Moments
        Of the observed steps.
    beliefs : tuple of ndarray
        What the next step begins with.
    """

    objective: float
    start: list[Array]
    transition: list[Array]
    moments: Moments
    beliefs: tuple[Array, ...]


def expected_jointly(
    start: Sequence[Array],
    transition: Sequence[Array],
    mean: Sequence[Array],
    cov: Array,
    data: Sequences,
    by_step: bool,
) -> Expected:
    """Exact E step."""
    sizes = tuple(map(len, start))
    C, x = len(sizes), data.values
    table = joint_table(cov, total_means(mean), x)
    steps = Observations(data, np.arange(len(x)), shared=False)
    weights = np.ones(len(data))
    found = steps.expect_of_logs(*joint_chain(start, transition), table, weights, 1)
    starts, moves = found.start.reshape(sizes), found.transition.reshape(sizes * 2)
    others = [[k for k in range(C) if k != c] for c in range(C)]
    B = np.hstack(joint_indicators(sizes))
    q = found.emission[~np.isnan(x).all(axis=1)]
    of_step = np.einsum("tj,jk,jl->tkl", q, B, B, optimize=True) if by_step else None
    return Expected(
        float(found.log_likelihood.sum()),
        [starts.sum(axis=tuple(own)) for own in others],
        [moves.sum(axis=(*own, *(C + k for k in own))) for own in others],
        Moments(q @ B, (B.T * q.sum(axis=0)) @ B, of_step),
        (),
    )
