"""State probabilities and most likely paths of factorial hidden Markov models.

Exact: those of the joint states. Beyond, each chain under its own distribution of mean
field.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent._inputs.sequences import Sequences
from maxent._support import validation as v
from maxent.families import Gaussian
from maxent.families._gaps import patterns
from maxent.models.chains._coupled_chains import total_means
from maxent.models.chains._factorial_em import even_beliefs, settled_chains
from maxent.models.chains._factorial_exact import (
    joint_chain,
    joint_indicators,
    joint_table,
)
from maxent.models.chains._hidden_chain import Observations

Array = NDArray[np.float64]
MOST_STATES = 1024  # joint states: their square is the cost of an exact step


def _is_exact(model: Any, method: str) -> bool:
    """True if to go through the joint states."""
    v.check_choice("method", method, ("auto", "exact", "meanfield"))
    count = math.prod(model.n_states)
    if method == "exact" and count > MOST_STATES:
        raise ValueError(
            f"method='exact' with n_states={model.n_states}, {count:.3g} joint states: "
            f"it takes {MOST_STATES} of them at most. Use method='meanfield'."
        )
    return method != "meanfield" and count <= MOST_STATES


def state_probabilities(
    model: Any, data: Sequences, method: str
) -> list[tuple[Array, ...]]:
    """Probabilities (n_steps, S_c) of the states of every chain, of each sequence."""
    if _is_exact(model, method):
        logs = joint_chain(model.start, model.transition)
        means, indicators = total_means(model.mean), joint_indicators(model.n_states)
        found = []
        for x in data:
            table = joint_table(model.cov, means, x)
            joint = _as_chain(x).expect_of_logs(*logs, table, np.ones(1), 1)
            found.append(tuple(joint.emission @ B for B in indicators))
        return found
    even = even_beliefs(model.n_states, len(data.values))
    beliefs = settled_chains(model, data, even).beliefs
    return list(zip(*(Sequences(q, data.offsets) for q in beliefs)))


def best_paths(
    model: Any, data: Sequences, method: str
) -> tuple[list[NDArray[np.intp]], Array]:
    """Paths (n_steps, n_chains), and their log-probabilities with the sequences."""
    if _is_exact(model, method):
        return _exact_paths(model, data)
    return _mean_field_paths(model, data)


def _as_chain(x: Array) -> Observations:
    """A sequence, each of whose steps has a row of its own in the table."""
    steps = Sequences(x, np.array([0, len(x)], dtype=np.intp))
    return Observations(steps, np.arange(len(x)), shared=False)


def _exact_paths(model: Any, data: Sequences) -> tuple[list[NDArray[np.intp]], Array]:
    logs = joint_chain(model.start, model.transition)
    means = total_means(model.mean)
    paths, log_prob = [], np.empty(len(data))
    for i, x in enumerate(data):
        table = joint_table(model.cov, means, x)
        path, value = _as_chain(x).viterbi(*logs, table)
        paths.append(np.stack(np.unravel_index(path, model.n_states), axis=1))
        log_prob[i] = value[0]
    return paths, log_prob


def _mean_field_paths(
    model: Any, data: Sequences
) -> tuple[list[NDArray[np.intp]], Array]:
    even = even_beliefs(model.n_states, len(data.values))
    chains = settled_chains(model, data, even)
    path = np.stack([chains.viterbi(c) for c in range(model.n_chains)], axis=1)
    terms = np.zeros(len(path))
    r = np.array(data.values)
    for own, pi, A, W in zip(path.T, model.start, model.transition, model.mean):
        chance = np.append(1.0, A[own[:-1], own[1:]])
        chance[data.offsets[:-1]] = pi[own[data.offsets[:-1]]]
        with np.errstate(divide="ignore"):
            terms += np.log(chance)
        r -= W[own]
    for o, _, rows in patterns(r):
        law = Gaussian(np.zeros(len(o)), model.cov[np.ix_(o, o)])
        terms[rows] += law.log_prob(r[np.ix_(rows, o)])
    log_prob = np.add.reduceat(terms, data.offsets[:-1])
    return list(Sequences(path, data.offsets)), log_prob
