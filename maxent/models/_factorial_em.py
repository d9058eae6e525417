"""Structured variational EM of factorial hidden Markov models.

Source: Ghahramani & Jordan (1997), Factorial hidden Markov models, Machine Learning 29.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent._support import validation as v
from maxent._support.sequences import Sequences
from maxent.models._chain_input import with_pseudo_counts
from maxent.models._coupled_chains import CoupledChains, random_beliefs

Array = NDArray[np.float64]
_LOG_2PI = math.log(2.0 * math.pi)


def even_beliefs(sizes: tuple[int, ...], n_steps: int) -> list[Array]:
    """Even probabilities of the states of every chain."""
    return [np.full((n_steps, S), 1.0 / S) for S in sizes]


def settled_chains(model: Any, data: Sequences, beliefs: list[Array]) -> CoupledChains:
    """Mean field over the chains of a model, from these beliefs."""
    chains = CoupledChains(
        model.start,
        model.transition,
        model.mean,
        np.linalg.inv(model.cov),
        data.values,
        data.offsets,
        beliefs,
    )
    chains.settle()
    return chains


def log_bounds(chains: CoupledChains, cov: Array) -> Array:
    """Lower bounds of the log-densities of the sequences."""
    constant = len(cov) * _LOG_2PI + np.linalg.slogdet(cov)[1]
    seen = np.add.reduceat(chains.seen.astype(float), chains.offsets[:-1])
    return chains.bounds() - 0.5 * constant * seen


def sizes_of(init: Any, n_states: Any) -> tuple[int, ...]:
    """Numbers of states of the chains, from `init` or as given."""
    if n_states is not None and np.ndim(n_states) != 1:
        raise ValueError(
            f"n_states={v.shown(n_states)} must be a list with the number of states of "
            "every chain, such as [2, 3]."
        )
    if init is None:
        if n_states is None:
            raise ValueError("n_states=None: give the states of every chain, or init.")
        return tuple(v.check_count("n_states", S) for S in n_states)
    if n_states is not None and tuple(n_states) != init.n_states:
        raise ValueError(f"n_states={n_states} but init has {init.n_states}.")
    return init.n_states


class FactorialProblem:
    """EM: parameters are tuples (start, transition, mean, cov, beliefs)."""

    def __init__(self, data, smoothing, shrinkage, ridge):
        self.data = data
        self.smoothing, self.shrinkage, self.ridge = smoothing, shrinkage, ridge
        self.seen = ~np.isnan(data.values[:, 0])
        self.x = data.values[self.seen]

    def start(self, sizes, noise, rng, init, centre):
        if init is not None:
            means = tuple(W - centre / init.n_chains for W in init.mean)
            steps = len(self.data.values)
            beliefs = tuple(np.full((steps, S), 1.0 / S) for S in sizes)
            return init.start, init.transition, means, init.cov, beliefs
        beliefs = tuple(random_beliefs(sizes, len(self.data.values), rng))
        spread = np.sqrt(noise / len(sizes))
        means = tuple(spread * rng.normal(size=(S, self.x.shape[1])) for S in sizes)
        start = tuple(np.full(S, 1.0 / S) for S in sizes)
        transition = tuple(np.full((S, S), 0.5 / S) + 0.5 * np.eye(S) for S in sizes)
        return start, transition, means, noise * np.eye(self.x.shape[1]), beliefs

    def step(self, point):
        start, transition, mean, cov, beliefs = point
        chains = CoupledChains(
            start,
            transition,
            mean,
            np.linalg.inv(cov),
            self.data.values,
            self.data.offsets,
            beliefs,
        )
        chains.sweep()
        d, T = self.x.shape[1], len(self.x)
        constant = d * _LOG_2PI + np.linalg.slogdet(cov)[1]
        objective = chains.bound() - 0.5 * T * constant
        objective += self._log_prior(start, transition, mean, cov)
        c = self.smoothing
        pairs = zip(chains.start_counts, start)
        new_start = tuple(with_pseudo_counts(n, c, old) for n, old in pairs)
        pairs = zip(chains.switch_counts, transition)
        new_transition = tuple(with_pseudo_counts(n, c, old) for n, old in pairs)
        W, R = self._emission(chains.beliefs, mean)
        beliefs = tuple(chains.beliefs)
        return objective, (new_start, new_transition, W, R, beliefs)

    def _emission(self, beliefs, mean):
        """W = (sum E s s' + kappa I)^{-1} sum E s x', s the indicators; and R."""
        q = [b[self.seen] for b in beliefs]
        s = np.concatenate(q, axis=1)
        second = s.T @ s
        at = np.cumsum([0, *(b.shape[1] for b in q)])
        for c, own in enumerate(q):
            block = slice(at[c], at[c + 1])
            second[block, block] = np.diag(own.sum(axis=0))
        ridge = self.shrinkage * np.eye(len(second))
        W = np.linalg.solve(second + ridge, s.T @ self.x)
        r = self.x - s @ W
        # sum_c Cov W^c = W' (sum E s s' - sum E s E s') W
        R = r.T @ r + W.T @ (second - s.T @ s + ridge) @ W
        R = (R + self.ridge * np.eye(len(R))) / len(self.x)
        return tuple(np.split(W, at[1:-1])), 0.5 * (R + R.T)

    def _log_prior(self, start, transition, mean, cov):
        inverse = np.linalg.inv(cov)
        W = np.concatenate(mean)
        total = -0.5 * self.shrinkage * float(np.sum((W @ inverse) * W))
        total -= 0.5 * self.ridge * float(np.trace(inverse))
        if self.smoothing > 0:
            tables = (*start, *transition)
            total += self.smoothing * sum(float(np.log(t).sum()) for t in tables)
        return total
