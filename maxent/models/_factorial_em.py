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
from maxent.models._partial import filling, is_partial, masked_observations

Array = NDArray[np.float64]
# a quarter of the random starts ends far below the best, of three one in a hundred does
_STARTS = 3
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
        noise_law(model.cov, data.values)[0],
        data.values,
        data.offsets,
        beliefs,
    )
    chains.settle()
    return chains


def log_bounds(chains: CoupledChains, cov: Array, x: Array) -> Array:
    """Lower bounds of the log-densities of the sequences, whose steps are `x`."""
    constant = noise_law(cov, x)[1]
    if constant.ndim:
        return chains.bounds() - 0.5 * np.add.reduceat(constant, chains.offsets[:-1])
    seen = np.add.reduceat(chains.seen.astype(float), chains.offsets[:-1])
    return chains.bounds() - 0.5 * constant * seen


def noise_law(cov: Array, x: Array) -> tuple[Array, Array]:
    """Precision of the noise and log|2 pi R|, of each step if rows miss parts."""
    if not is_partial(x).any():
        constant = len(cov) * _LOG_2PI + np.linalg.slogdet(cov)[1]
        precision = np.asarray(np.linalg.inv(cov), dtype=np.float64)
        return precision, np.asarray(constant)
    d = len(cov)
    _, _, R, _, hidden = masked_observations(np.zeros((d, 1)), np.zeros(d), cov, x)
    either = hidden[:, :, None] | hidden[:, None, :]
    seen = ~np.isnan(x).all(axis=1)
    constant = (_LOG_2PI * (~hidden).sum(axis=1) + np.linalg.slogdet(R)[1]) * seen
    return np.where(either, 0.0, np.linalg.inv(R)), constant


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
    """EM: parameters are tuples (start, transition, mean, cov, beliefs).

    They and `data` are standardised.
    """

    def __init__(self, data, units, smoothing, shrinkage, ridge):
        self.data, self.units = data, units
        self.smoothing, self.shrinkage, self.ridge = smoothing, shrinkage, ridge
        self.seen = ~np.isnan(data.values).all(axis=1)
        self.x = data.values[self.seen]
        self.partial = bool(is_partial(self.x).any())

    def starts(self, sizes, rng, init, n_init):
        """Starts of a fit; `init`, if there is one, is the first."""
        if n_init is None:
            n_init = _STARTS if init is None else 1
        return [
            self.start(sizes, rng, init if k == 0 else None)
            for k in range(v.check_count("n_init", n_init))
        ]

    def start(self, sizes, rng, init):
        if init is not None:
            centre, scale = self.units.centre, self.units.scale
            means = tuple((W - centre / init.n_chains) / scale for W in init.mean)
            cov = init.cov / np.outer(scale, scale)
            steps = len(self.data.values)
            beliefs = tuple(np.full((steps, S), 1.0 / S) for S in sizes)
            return init.start, init.transition, means, cov, beliefs
        beliefs = tuple(random_beliefs(sizes, len(self.data.values), rng))
        spread = 1.0 / math.sqrt(len(sizes))
        means = tuple(spread * rng.normal(size=(S, self.x.shape[1])) for S in sizes)
        start = tuple(np.full(S, 1.0 / S) for S in sizes)
        transition = tuple(np.full((S, S), 0.5 / S) + 0.5 * np.eye(S) for S in sizes)
        return start, transition, means, np.eye(self.x.shape[1]), beliefs

    def step(self, point):
        start, transition, mean, cov, beliefs = point
        precision, constant = noise_law(cov, self.data.values)
        chains = CoupledChains(
            start,
            transition,
            mean,
            precision,
            self.data.values,
            self.data.offsets,
            beliefs,
        )
        chains.sweep()
        if not self.partial:
            constant = len(self.x) * constant
        objective = chains.bound() - 0.5 * float(constant.sum())
        objective += self._log_prior(start, transition, mean, cov)
        objective += self.units.log_density
        c = self.smoothing
        pairs = zip(chains.start_counts, start)
        new_start = tuple(with_pseudo_counts(n, c, old) for n, old in pairs)
        pairs = zip(chains.switch_counts, transition)
        new_transition = tuple(with_pseudo_counts(n, c, old) for n, old in pairs)
        W, R = self._emission(chains.beliefs, mean, cov)
        if self.ridge == 0.0:
            self._refuse_singular(R)
        beliefs = tuple(chains.beliefs)
        return objective, (new_start, new_transition, W, R, beliefs)

    @staticmethod
    def _refuse_singular(cov):
        try:
            np.linalg.cholesky(cov)
        except np.linalg.LinAlgError:
            raise ValueError(
                "ridge=0 leaves the covariance singular, and the bound has no maximum; "
                "set ridge > 0, drop constant columns, or add steps."
            ) from None

    def _emission(self, beliefs, mean, cov):
        """W = (sum E s s' + kappa I)^{-1} sum E s x', s the indicators; and R."""
        q = [b[self.seen] for b in beliefs]
        s = np.concatenate(q, axis=1)
        second = s.T @ s
        at = np.cumsum([0, *(b.shape[1] for b in q)])
        for c, own in enumerate(q):
            block = slice(at[c], at[c + 1])
            second[block, block] = np.diag(own.sum(axis=0))
        ridge = self.shrinkage * np.eye(len(second))
        if self.partial:
            sx, xx = self._in_part(q, s, mean, cov)
            W = np.linalg.solve(second + ridge, sx)
            R = xx - W.T @ sx - sx.T @ W + W.T @ (second + ridge) @ W
            R = (R + self.ridge * np.eye(len(R))) / len(self.x)
            return tuple(np.split(W, at[1:-1])), 0.5 * (R + R.T)
        W = np.linalg.solve(second + ridge, s.T @ self.x)
        r = self.x - s @ W
        # sum_c Cov W^c = W' (sum E s s' - sum E s E s') W
        R = r.T @ r + W.T @ (second - s.T @ s + ridge) @ W
        R = (R + self.ridge * np.eye(len(R))) / len(self.x)
        return tuple(np.split(W, at[1:-1])), 0.5 * (R + R.T)

    def _in_part(self, q, s, mean, cov):
        """Sums of E s x' and E x x' where rows miss parts, filled in given the states.

        x = G' s + g + noise, with the means and the covariance of the step before.
        """
        W, d = np.concatenate(mean), len(cov)
        second = s[:, :, None] * s[:, None, :]
        at = 0
        for own in q:
            block = slice(at, at := at + own.shape[1])
            second[:, block, block] = own[:, :, None] * np.eye(own.shape[1])
        _, _, R, x, hidden = masked_observations(
            np.zeros((d, 1)), np.zeros(d), cov, self.x
        )
        K, left = filling(R, cov, hidden)
        G = W @ (hidden[:, :, None] * np.eye(d) - K.swapaxes(1, 2))
        g = x + (K @ x[..., None])[..., 0]
        sx = second @ G + s[:, :, None] * g[:, None, :]
        linear = (s[:, None] @ G)[:, 0]
        half = linear[:, :, None] * g[:, None, :]
        xx = G.swapaxes(1, 2) @ second @ G + half + half.swapaxes(1, 2)
        xx += g[:, :, None] * g[:, None, :] + left
        return sx.sum(axis=0), xx.sum(axis=0)

    def _log_prior(self, start, transition, mean, cov):
        inverse = np.linalg.inv(cov)
        W = np.concatenate(mean)
        total = -0.5 * self.shrinkage * float(np.sum((W @ inverse) * W))
        total -= 0.5 * self.ridge * float(np.trace(inverse))
        if self.smoothing > 0:
            tables = (*start, *transition)
            total += self.smoothing * sum(float(np.log(t).sum()) for t in tables)
        return total
