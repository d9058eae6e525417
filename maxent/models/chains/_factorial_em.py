"""Exact and structured variational EM of factorial hidden Markov models.

Source: Ghahramani & Jordan (1997), Factorial hidden Markov models, Machine Learning 29.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent._inputs.sequences import Sequences
from maxent._support import validation as v
from maxent.families._within import variances_within
from maxent.models._chain_input import log_of_pseudo_counts
from maxent.models._component_search import groups_of_rows
from maxent.models._holding import as_given, maximum_of_free
from maxent.models._partial import (
    filling,
    is_partial,
    masked_observations,
    with_column_means,
)
from maxent.models._settling import SETTLED
from maxent.models.chains._coupled_chains import CoupledChains, random_beliefs
from maxent.models.chains._factorial_exact import Expected, Moments, expected_jointly

Array = NDArray[np.float64]
_STARTS = 3
# of three random starts one in four draws of 2 and 3 states ends below the best
# maximum, of three times the best of five short runs one in twenty
_SHORT_RUNS = 5
_SHORT = 5  # steps
_FEW_STATES = 64  # joint states up to which exact fits take no longer
_MOST_STATES = 1024  # joint states of an exact fit: their square is the cost of a step
_MOST_GROUPS = 50  # of rows, by which the prior of the covariance is chosen
_LEAST_GROUP = 10  # rows of such a group on average
_UNKNOWN = 1e-12  # mass, relative to the largest, of directions that no step shows
_LOG_2PI = math.log(2.0 * math.pi)


def even_beliefs(sizes: tuple[int, ...], n_steps: int) -> list[Array]:
    """Even probabilities of the states of every chain."""
    return [np.full((n_steps, S), 1.0 / S) for S in sizes]


def settled_chains(
    model: Any, data: Sequences, beliefs: list[Array], left: float = SETTLED
) -> CoupledChains:
    """Mean field over the chains of a model, from these beliefs.

    The means of every chain are taken about their centre, and the data about the sum of
    the centres: energies of data far from the origin would lose their digits.
    """
    centres = [W.mean(axis=0) for W in model.mean]
    target = data.values - sum(centres)
    chains = CoupledChains(
        model.start,
        model.transition,
        [W - centre for W, centre in zip(model.mean, centres)],
        noise_law(model.cov, data.values)[0],
        target,
        data.offsets,
        beliefs,
    )
    chains.settle(left)
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


def mean_field_moments(q: list[Array], by_step: bool) -> Moments:
    """Moments of independent chains with these probabilities (n_steps, S_c)."""
    s = np.concatenate(q, axis=1)
    second = s.T @ s
    of_step = s[:, :, None] * s[:, None, :] if by_step else None
    at = 0
    for own in q:
        block = slice(at, at := at + own.shape[1])
        second[block, block] = np.diag(own.sum(axis=0))
        if of_step is not None:
            of_step[:, block, block] = own[:, :, None] * np.eye(own.shape[1])
    return Moments(s, second, of_step)


def is_exact(method: str, sizes: tuple[int, ...]) -> bool:
    """True if a fit sums over joint states."""
    v.check_choice("method", method, ("auto", "exact", "meanfield"))
    count = math.prod(sizes)
    if method == "exact" and count > _MOST_STATES:
        raise ValueError(
            f"method='exact' with n_states={sizes}, {count:.3g} joint states: a fit "
            f"takes {_MOST_STATES} of them at most. Use method='meanfield'."
        )
    return method == "exact" or (method == "auto" and count <= _FEW_STATES)


class FactorialProblem:
    """EM: parameters are tuples (start, transition, mean, cov, beliefs).

    They and `data` are standardised. The log-prior of means W and covariance R is

        -shrinkage/2 |W|^2 - ridge/2 tr(R^{-1} V),

    V the variances within groups of rows, as many as there are joint states, and at
    most _MOST_GROUPS: with means far apart neither widens R.
    """

    def __init__(self, data, units, smoothing, shrinkage, ridge, exact, held):
        self.exact, self.held = exact, held
        self.data, self.units = data, units
        self.smoothing, self.shrinkage, self.ridge = smoothing, shrinkage, ridge
        self.seen = ~np.isnan(data.values).all(axis=1)
        self.x = data.values[self.seen]
        self.partial = bool(is_partial(self.x).any())
        self.scale: Array = np.zeros((0, 0))  # V, of the groups of a fit

    def starts(self, sizes, rng, init, n_init):
        """Starts of a fit; `init`, if there is one, is the first."""
        self._set_scale(math.prod(sizes), rng.spawn(1)[0])
        if n_init is None:
            n_init = _STARTS if init is None else 1
        n_init = v.check_count("n_init", n_init)
        if init is not None:
            first = self.start(sizes, rng, init)
            others = [self.start(sizes, rng, None) for _ in range(n_init - 1)]
            return [first, *(self._holding(other, first) for other in others)]
        runs = [self._short_run(sizes, rng) for _ in range(_SHORT_RUNS * n_init)]
        runs.sort(key=lambda run: -run[0])
        return [point for _, point in runs[:n_init]]

    def _short_run(self, sizes, rng):
        """Objective and parameters after some steps from a random start."""
        point = self.start(sizes, rng, None)
        for _ in range(_SHORT):
            objective, point = self.step(point)
        return objective, point

    def _set_scale(self, n_groups, rng):
        """V of the prior."""
        if self.ridge == 0.0:
            self.scale = np.zeros((self.x.shape[1], self.x.shape[1]))
            return
        own = np.ones(len(self.x))
        X = with_column_means(self.x, own) if self.partial else self.x
        n_groups = min(n_groups, _MOST_GROUPS, max(1, len(X) // _LEAST_GROUP))
        within = variances_within(X, own, groups_of_rows(X, own, n_groups, rng))
        self.scale = np.diag(np.where(within > 0, within, 1.0))

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

    def _holding(self, point, first):
        """A further start, with what is held of the first one."""
        start, transition, mean, cov, beliefs = point
        held = self.held.get("mean", (None,) * len(mean))
        return (
            self._tables("start", start, 0.0, first[0]),
            self._tables("transition", transition, 0.0, first[1]),
            tuple(map(as_given, mean, first[2], held)),
            as_given(cov, first[3], self.held.get("cov")),
            beliefs,
        )

    def _tables(self, name, counts, smoothing, old):
        """M step of the tables of all chains."""
        held = self.held.get(name, (None,) * len(old))
        return tuple(
            maximum_of_free(n, smoothing, *own) for n, *own in zip(counts, old, held)
        )

    def step(self, point):
        start, transition, mean, cov, _ = point
        e = self._expected(*point)
        objective = e.objective + self._log_prior(start, transition, mean, cov)
        objective += self.units.log_density
        new_start = self._tables("start", e.start, self.smoothing, start)
        moves = self._tables("transition", e.transition, self.smoothing, transition)
        W, R = self._emission(e.moments, mean, cov)
        if self.ridge == 0.0:
            self._refuse_singular(R)
        return objective, (new_start, moves, W, R, e.beliefs)

    def _expected(self, start, transition, mean, cov, beliefs):
        """E step: exact, or one sweep of mean field."""
        law = start, transition, mean
        if self.exact:
            return expected_jointly(*law, cov, self.data, self.partial)
        precision, constant = noise_law(cov, self.data.values)
        x, offsets = self.data.values, self.data.offsets
        chains = CoupledChains(*law, precision, x, offsets, beliefs)
        chains.sweep()
        if not self.partial:
            constant = len(self.x) * constant
        return Expected(
            chains.bound() - 0.5 * float(constant.sum()),
            chains.start_counts,
            chains.switch_counts,
            mean_field_moments([q[self.seen] for q in chains.beliefs], self.partial),
            tuple(chains.beliefs),
        )

    @staticmethod
    def _refuse_singular(cov):
        try:
            np.linalg.cholesky(cov)
        except np.linalg.LinAlgError:
            raise ValueError(
                "ridge=0 leaves the covariance singular, and the bound has no maximum; "
                "set ridge > 0, drop constant columns, or add steps."
            ) from None

    def _emission(self, e, mean, cov):
        """Means at the mode given the covariance, then that given the means.

        With eigenvalues r and eigenvectors v of the covariance, s the indicators:

            W v_j = (sum E s s' + shrinkage r_j I)^{-1} sum E s x' v_j.
        """
        s, at = e.mean, np.cumsum([len(W) for W in mean])[:-1]
        if self.partial:
            sx, xx = self._in_part(e, mean, cov)
        else:
            sx = s.T @ self.x
        W = self._means(e.second, sx, np.concatenate(mean), cov)
        if "cov" in self.held:
            return tuple(np.split(W, at)), cov
        if self.partial:
            R = xx - W.T @ sx - sx.T @ W + W.T @ e.second @ W
        else:
            # sum_c Cov W^c = W' (sum E s s' - sum E s E s') W
            left = self.x - s @ W
            R = left.T @ left + W.T @ (e.second - s.T @ s) @ W
        R = (R + self.ridge * self.scale) / len(self.x)
        return tuple(np.split(W, at)), 0.5 * (R + R.T)

    def _means(self, second, sx, old, cov):
        """Means of all states at the mode given the covariance; some are held."""
        if "mean" not in self.held:
            return self._free_means(second, sx, cov)
        held, new = np.concatenate(self.held["mean"]), np.array(old)
        kept = held.all(axis=1)
        if (held == kept[:, None]).all():  # whole rows
            free = ~kept
            if free.any():
                left = sx[free] - second[np.ix_(free, kept)] @ old[kept]
                new[free] = self._free_means(second[np.ix_(free, free)], left, cov)
            return new
        # rows of W beside each other, whose products with those of x the noise weighs
        weight, free = np.linalg.inv(cov), ~held.ravel()
        K = np.kron(second, weight)[free]
        right = (sx @ weight).ravel()[free] - K @ np.where(held, old, 0.0).ravel()
        one = np.eye(1)
        new[~held] = self._free_means(K[:, free], right[:, None], one)[:, 0]
        return new

    def _free_means(self, second, sx, cov):
        r, v = np.linalg.eigh(cov)
        size, u = np.linalg.eigh(second)
        # data say nothing of constants moved between chains, and the prior sets them to
        # zero; here they are rounding, which a small r would enlarge
        known = size > _UNKNOWN * size[-1]
        size, u = size[known], u[:, known]
        return u @ ((u.T @ sx @ v) / (size[:, None] + self.shrinkage * r)) @ v.T

    def _in_part(self, e, mean, cov):
        """Sums of E s x' and E x x' where rows miss parts, filled in given the states.

        x = G' s + g + noise, with the means and the covariance of the step before.
        """
        W, d, s, second = np.concatenate(mean), len(cov), e.mean, e.of_step
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
        total = -0.5 * self.shrinkage * float(np.sum(np.square(W)))
        total -= 0.5 * self.ridge * float(np.trace(inverse @ self.scale))
        return total + log_of_pseudo_counts(self.smoothing, *start, *transition)
