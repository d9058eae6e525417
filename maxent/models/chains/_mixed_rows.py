"""States that show mixtures: EM of rows, and starts.

Given the state, a row comes from a component of its mixture; the E step shares the
weight of a row in a state among its components, and the M step fits all components of
all states as those of a chain of plain states are.

States are first sought in two ways. One is a chain of plain states. The other is a
mixture of as many components as all states have together, or twice as many: those of
one state are followed alike, so components are put together as the mutual information
of neighbouring steps loses least.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from maxent.models._chain_input import (
    Array,
    log_of_pseudo_counts,
    with_pseudo_counts,
)
from maxent.models._component_search import ComponentSearch, Expectation, some_rows
from maxent.models._online import refitted
from maxent.models.chains._chain_search import (
    WINDOWS,
    ChainSearch,
    clustered_starts,
)
from maxent.models.chains._emissions import RowProblem, Rows, by_step
from maxent.models.chains._hidden_chain import Point
from maxent.models.mixtures import Mixtures

_SMOOTHING = 3.0  # of searches
_STEPS = 10  # of EM before starts are compared
_FINER = 1, 2  # times as many components of a mixture as all states have
_SMALL = 1e-3  # posterior share below which a row is left out of a search


class MixedRows(Rows):
    """Mixtures of a family; how many components, and the arguments of `Rows`."""

    def __init__(self, n_components: int, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.n_components = n_components

    def size_of_one(self, problem):
        return self.n_components * (super().size_of_one(problem) + 1) - 1

    def _problem(self, found, weights, rules, n_jobs):
        seen, rows = self.observations(found), self._events(found)
        own = weights, rules, self.family, self.options, n_jobs
        return MixedRowProblem(seen, rows, *own)

    def starts(self, problem, n_states, n_init, rng):
        if self.n_components * n_states > len(problem.components.X):
            raise ValueError(
                f"n_components={self.n_components} of {n_states} states are more than "
                f"the {len(problem.components.X)} observations; lower it."
            )
        own = problem.weights, problem.rules, problem.n_jobs
        plain = super()._problem(problem.seen.sequences, *own)
        search = MixedSearch(problem, plain, n_states, self.n_components)
        return search.starts(n_init, rng)

    def own_sums(self, emission, shown):
        return emission.members._own_sums((shown[:, None] * emission.weights).ravel())

    def shown(self, sums):
        return sums[0].reshape(-1, self.n_components).sum(axis=1)

    def refitted(self, emission, sums, rows, rules):
        members = refitted(emission.members, sums)
        return followed(emission, members, rows * sums[0], rules.smoothing)

    def maximum(self, problem, sums, emission):
        log_prior, members = super().maximum(problem, sums, emission.members)
        counts, smoothing = sums[0], problem.rules.smoothing
        log_prior += log_of_pseudo_counts(smoothing, emission.weights)
        return log_prior, followed(emission, members, counts, smoothing)


class MixedRowProblem(RowProblem):
    """EM of rows that come from components of their states' mixtures."""

    def together(self, points):
        return None  # whose members are in states of states

    def log_table(self, emission):
        log_prob, shares = self._within(emission)
        self._known = emission, shares
        log_prior = self.components.prior.log_density(emission.members).sum()
        log_prior += log_of_pseudo_counts(self.rules.smoothing, emission.weights)
        return by_step(log_prob, self.shown), float(log_prior)

    def _within(self, emission):
        """Log-densities (K, rows), and shares (K, M, rows) of the components."""
        log_prob = self.components.log_prob(emission.members)
        joint = log_prob.reshape(*emission.weights.shape, -1)
        return emission._within(joint + emission._log_weights[..., None])

    def _mass(self, counts, emission):
        """Weights (K M, rows) of the rows in all components."""
        at, shares = self._known
        if at is not emission:
            shares = self._within(emission)[1]
        mass = shares * self._of_shown(counts)[:, None]
        return mass.reshape(emission.weights.size, mass.shape[-1])

    def fit_emission(self, counts, emission):
        mass = self._mass(counts, emission)
        members = self.components.fit(mass, emission.members)
        smoothing = self.rules.smoothing
        return followed(emission, members, mass.sum(axis=1), smoothing)

    def sums(self, counts, emission):
        mass = self._mass(counts, emission)
        return emission.members._part_sums(self.components.X, mass)

    def start_at(self, point: Point) -> Point:
        counts = self.expected(point)[0].emission
        labels = self._mass(counts, point[2]).argmax(axis=0)
        members = point[2].weights.size
        self.components.set_prior(labels, members, self.rules.smoothing)
        return point


def followed(old: Mixtures, members: Any, counts: Array, smoothing: float) -> Mixtures:
    """Mixtures after an M step, of members and their weighted counts of rows."""
    shape = old.weights.shape
    weights = with_pseudo_counts(counts.reshape(shape), smoothing, old.weights)
    return Mixtures._of_members(weights, members)


# -- starts ----------------------------------------------------------------------------
class MixedSearch:
    """Starts of states that show mixtures.

    Parameters
    ----------
    problem : MixedRowProblem
    plain : RowProblem
        Of states without mixtures.
    n_states, n_components : int
    """

    def __init__(
        self,
        problem: MixedRowProblem,
        plain: RowProblem,
        n_states: int,
        n_components: int,
    ) -> None:
        self.problem, self.plain = problem, plain
        self.n_states, self.n_components = n_states, n_components
        components = problem.components
        self.at = components.weights > 0
        self.X = components.filled()[self.at]
        self.weights = components.weights[self.at]

    def starts(self, n_init: int, rng: np.random.Generator) -> list[Point]:
        """Points to start from, the best one first."""
        found = []
        for shares in self.shares_of_states(n_init, rng):
            point = self.problem.start_at(self.point_in(shares, rng))
            for _ in range(_STEPS):
                value, point = self.problem.step(point)
            found.append((value, point))
        found.sort(key=lambda start: -start[0])
        points = [point for _, point in found[:n_init]]
        return [self.problem.start_at(points[0]), *points[1:]]

    def shares_of_states(
        self, n_init: int, rng: np.random.Generator
    ) -> Iterator[Array]:
        """Shares (n_states, rows) of the rows in states of several starts."""
        for point in clustered_starts(self.plain, self.n_states, n_init, rng):
            for _ in range(_STEPS):
                _, point = self.plain.step(point)
            counts = self.plain.expected(point)[0].emission[self.plain.shown]
            yield counts[self.at].T / self.weights
        if self.n_states > 1:
            chains = ChainSearch(self.plain, self.n_states)
            for length in WINDOWS:
                yield chains.shares_of(chains.labels_of_windows(length, rng))
            for times in _FINER:
                k = times * self.n_states * self.n_components
                if k <= len(self.X):
                    yield self.shares_by_moves(k, rng)

    def _search(self, X, weights, k):
        return ComponentSearch(
            X,
            weights,
            self.problem.components.family,
            k,
            _SMOOTHING,
            self.problem.components.options,
        )

    def shares_by_moves(self, k: int, rng: np.random.Generator) -> Array:
        """Shares of k components of one mixture, put together by their moves."""
        some = some_rows(self.X, self.weights, k, rng)
        weights, components = self._search(*some, k).start(rng).point
        with np.errstate(divide="ignore"):
            log_weights = np.log(weights)[:, None]
        shares = Expectation(
            components, components.log_prob(self.X), log_weights
        ).shares
        rows = np.zeros((k, len(self.at)))
        rows[:, self.at] = shares
        group = merged_by_moves(self.plain.counts_of_moves(rows)[1], self.n_states)
        return np.stack([shares[group == s].sum(axis=0) for s in range(self.n_states)])

    def _has_fit(self, rows: NDArray[np.intp], mass: Array) -> bool:
        """False for rows that show no spread, as equal ones of a Gaussian."""
        components = self.problem.components
        try:
            components.family.fit(self.X[rows], mass, **components.options)
        except ValueError:
            return False
        return True

    def point_in(self, shares: Array, rng: np.random.Generator) -> Point:
        """Point of states that have shares (n_states, rows) of the rows."""
        components = self.problem.components
        weights, members = [], []
        for share in shares:
            mass = share * self.weights
            own = np.flatnonzero(share > _SMALL)
            if len(own) < self.n_components or not self._has_fit(own, mass[own]):
                own, mass = np.arange(len(mass)), mass + 1e-3 * self.weights
            some = some_rows(self.X[own], mass[own], self.n_components, rng)
            search = self._search(*some, self.n_components)
            weights_of_state, members_of_state = search.start(rng).point
            weights.append(weights_of_state)
            members.append(members_of_state)
        emission = Mixtures._of_members(
            np.stack(weights), components.family._concatenated(members)
        )
        rows = np.zeros((self.n_states, len(self.at)))
        rows[:, self.at] = shares
        return *self.plain.moves_of(rows), emission


def merged_by_moves(counts: Array, n_groups: int) -> NDArray[np.intp]:
    """Groups (k,) of k kinds of steps, by counts (k, k) of what follows what.

    Pairs are merged one by one, always the one by which the mutual information of
    neighbouring steps loses least: kinds that are followed alike, and come alike.
    """
    group = np.arange(len(counts))
    while len(counts) > n_groups:
        pairs = combinations(range(len(counts)), 2)
        a, b = min(pairs, key=lambda pair: _loss(counts, *pair))
        for axis in (0, 1):
            counts = np.delete(counts + _moved(counts, a, b, axis), b, axis=axis)
        group[group == b] = a
        group[group > b] -= 1
    return group


def _moved(counts, a, b, axis):
    """Counts that row or column b adds to a when they are merged."""
    more = np.zeros(counts.shape)
    if axis == 0:
        more[a] = counts[b]
    else:
        more[:, a] = counts[:, b]
    return more


def _loss(counts, a, b):
    """Mutual information, in nats of all steps, that is lost if a and b are one."""
    own = np.array([a, b])
    rest = np.delete(np.arange(len(counts)), own)
    lost = 0.0
    for table in (counts, counts.T):
        two, ends = table[own], table.sum(axis=1)[own]
        lost += _entropy_gain(two[:, rest], axis=0) - _entropy_gain(ends, axis=0)
    return lost + _entropy_gain(counts[np.ix_(own, own)])


def _entropy_gain(x, axis=None):
    """Sum of x log x, less that of the sums along an axis."""
    total = x.sum(axis=axis)
    return float(xlogy(x, x).sum() - xlogy(total, total).sum())
