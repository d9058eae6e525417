"""Starts of mixtures: k-means, then components merged and split by the objective.

One component that covers two groups and two that share one are a local maximum of the
likelihood that EM cannot leave. A move merges a pair (a, b) and splits a component c.
With posterior shares r and densities before and after it, the log-likelihood rises by
at least

    sum_i (r_ia + r_ib) log[p_ab(x_i) / (p_a(x_i) + p_b(x_i))]
    + sum_i r_ic log[p_cc(x_i) / p_c(x_i)],        p_cc the two halves of c,

weights included in p, by Jensen's inequality over the groups of components. The terms
depend on few rows each, so all pairs of neighbours and all splits are tried.

Source: Ueda, Nakano, Ghahramani & Hinton (2000), SMEM algorithm for mixture models,
Neural Computation 12, for the moves; the bound is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent._core.clusters import k_means
from maxent.families import Gaussian
from maxent.families._within import variances_within
from maxent.models._component_prior import ComponentPrior, prior_of_groups
from maxent.models._components import GaussianRows, posterior_of

Array = NDArray[np.float64]
Point = tuple[Array, Any]

_K_MEANS = 50  # steps of a clustering at most
_MOST_COLUMNS = 30  # of which each is clustered alone
_RESCALINGS = 8  # of the columns by what they vary within groups
_ROUNDS = 20  # of moves at most
_FURTHEST = 100.0  # nats that such a move may lack
_SPLIT_STEPS = 6  # of EM of the two halves of a component at most
_VANISHED = 1e-6  # share of the rows in one of the halves that is none
_NEIGHBOURS = 3  # of each component that it is merged with
_SAME = 1e-9  # relative difference of the objectives of two starts that are one
_SOME = 2000, 100  # rows in which k groups are sought: so many, or k times so many
_MANY = 10_000, 200  # where one fit depends on them
_GROUP_SMOOTHING = 3.0
_SMALL = 1e-2  # posterior share below which a row is left out of a move


def k_means_labels(
    X: Array, weights: Array, k: int, rng: np.random.Generator, by_column: bool = False
) -> NDArray[np.intp]:
    """Labels (n,) of a random k-means clustering, the same in all units of columns.

    The columns are standardised. With `by_column` the first groups are those of the
    column of more than k values that shows them best, of the least heavy tails; columns
    are then scaled by what they vary within the groups, and these found again, until
    they settle: columns that show groups come to count, noise does not. There are fewer
    groups than k where there are fewer different rows.
    """
    rows = X.reshape(len(X), -1)
    share = weights / weights.sum()
    rows = scaled(rows - share @ rows, share)
    k = min(k, len(np.unique(rows, axis=0)))
    if not by_column or k == 1 or rows.shape[1] == 1:
        return _clusters(rows, share, k, rng)[0]
    various = [j for j, x in enumerate(rows.T) if len(np.unique(x)) > k]
    if not various:
        return _clusters(rows, share, k, rng)[0]
    lightest = np.argsort(share @ rows[:, various] ** 4, kind="stable")[:_MOST_COLUMNS]
    each = [_clusters(rows[:, [various[j]]], share, k, rng) for j in lightest]
    labels, _ = min(each, key=lambda one: one[1])
    for _ in range(_RESCALINGS):
        size = np.bincount(labels, share, minlength=k)
        total = np.stack([share[labels == h] @ rows[labels == h] for h in range(k)])
        inside = rows - (total / np.where(size > 0, size, 1.0)[:, None])[labels]
        rows = scaled(rows, share, inside)
        following, _ = _clusters(rows, share, k, rng)
        if _partition(following) == _partition(labels):
            break
        labels = following
    return labels


def scaled(rows, share, by=None):
    """Rows in the standard deviations of others, or their own, where not zero."""
    deviation = np.sqrt(share @ np.square(rows if by is None else by))
    widest = np.abs(rows).max(axis=0)
    return rows / np.where(deviation > 1e-9 * widest, deviation, 1.0 + widest)


def _clusters(rows, share, k, rng):
    """Labels of a k-means clustering, and the squares that it leaves."""
    candidates = rng.random((k, 2 + int(np.log(k))))  # of every seed
    rows = np.ascontiguousarray(rows)
    return k_means(rows, share, k, candidates, _K_MEANS)


def some_rows(
    X: Array, weights: Array, k: int, rng: np.random.Generator, many: bool = False
) -> tuple[Array, Array]:
    """A sample of rows for a search of k groups, in order; weights of the same sum."""
    least, each = _MANY if many else _SOME
    most = max(least, k * each)
    if len(X) <= most:
        return X, weights
    pick = np.sort(rng.choice(len(X), most, replace=False))
    return X[pick], weights[pick] * (weights.sum() / weights[pick].sum())


def groups_of_rows(
    X: Array, weights: Array, k: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Labels (n,) of k Gaussian groups of rows (n, d), after moves.

    The search looks at the different rows in sorted order, so that neither the order of
    rows nor repetitions matter; it leaves constant columns out.
    """
    rows, inverse = np.unique(X, axis=0, return_inverse=True)
    inverse = inverse.ravel()
    rows = rows[:, rows.min(axis=0) < rows.max(axis=0)]
    if k == 1 or not rows.size:
        return np.zeros(len(X), dtype=np.intp)
    share = np.bincount(inverse, weights) * (len(rows) / weights.sum())
    some = some_rows(rows, share, k, rng)
    search = ComponentSearch(*some, Gaussian, k, _GROUP_SMOOTHING, {})
    shares, components = search.start(rng).point
    joint = components.log_prob(rows) + np.log(shares)[:, None]
    return np.asarray(joint.argmax(axis=0)[inverse], dtype=np.intp)


@dataclass
class Start:
    """A start of EM, the objective there, and the prior of the search."""

    objective: float
    prior: ComponentPrior
    point: Any


def different(starts: list[Start]) -> list[Start]:
    """The best start first, without those that are the same as others."""
    starts = sorted(starts, key=lambda start: -start.objective)
    best = starts[:1]
    for start in starts[1:]:
        apart = best[-1].objective - start.objective
        if apart > _SAME * (1.0 + abs(start.objective)):
            best.append(start)
    return best


@dataclass
class Expectation:
    """Components of the rows at a point.

    Parameters
    ----------
    components : batch of the family
    log_prob : ndarray (k, n)
        Log-densities of the rows.
    log_weights : ndarray (k, 1) or (k, n)
        Logarithms of the probabilities of the components where the row itself is not
        known.
    """

    components: Any
    log_prob: Array
    log_weights: Array

    @property
    def shares(self) -> Array:
        """Posterior shares (k, n)."""
        return _shares(self.log_prob + self.log_weights)


class ComponentSearch:
    """Search for a start of a mixture of one family.

    Parameters
    ----------
    X : ndarray (n, event)
        Whole rows in the support.
    weights : ndarray (n,)
        Positive weights.
    family : class
    n_components : int
    smoothing : float
        Pseudo-counts of the weights of the components, and those of their prior.
    options : dict
        Of the family's `fit`.
    n_misses : int
        Moves of a round that are tried one by one, though their bound says no.
    """

    n_steps = 10  # of EM before moves, and after them

    def __init__(
        self,
        X: Array,
        weights: Array,
        family: type[Any],
        n_components: int,
        smoothing: float,
        options: dict[str, Any],
        n_misses: int = 6,
    ) -> None:
        self.X, self.weights, self.k = X, weights, n_components
        self.family, self.smoothing, self.options = family, smoothing, options
        self.n_misses = n_misses
        self.least = weights.mean()  # that a move must gain: one nat of a mean row
        self.known: dict[bytes, Start] = {}
        self.rows = None  # of Gaussians, whose steps are compiled
        if family._fills_gaps and family._fits_apart and not options:
            self.rows = GaussianRows(family, X, weights)

    def starts(self, n_init: int, rng: np.random.Generator) -> list[Point]:
        """Random starts, the best first, without those that are the same as others."""
        found: list[Start] = []
        for number in range(n_init):
            found.append(self.start(rng, by_column=number == 0))
        return [start.point for start in different(found)]

    def start(self, rng: np.random.Generator, by_column: bool = True) -> Start:
        """Random start; that of a partition that was met before is known."""
        labels = k_means_labels(self.X, self.weights, self.k, rng, by_column)
        partition = _partition(labels)
        if partition not in self.known:
            self.known[partition] = self.start_of(labels)
        return self.known[partition]

    def start_of(self, labels: NDArray[np.intp]) -> Start:
        """Start from a partition of the rows."""
        return self.after_all_moves(self.after_steps(self.shares_of(labels)))

    def after_all_moves(self, start: Start) -> Start:
        """Start once no move gains."""
        for _ in range(_ROUNDS):
            following = self.after_moves(start)
            if following is None:
                break
            start = following
        return start

    def shares_of(self, labels):
        """Shares (k, n) of groups; those that there are not share the largest ones."""
        shares = (labels == np.arange(self.k)[:, None]).astype(float)
        size = shares @ self.weights
        for h in np.flatnonzero(size == 0):
            largest = int(size.argmax())
            shares[h] = shares[largest] = 0.5 * shares[largest]
            size[h] = size[largest] = 0.5 * size[largest]
        return shares

    # -- EM ----------------------------------------------------------------------------
    def expected(self, prior: ComponentPrior, point: Any) -> Expectation:
        """E step."""
        weights, components = point
        with np.errstate(divide="ignore"):
            log_weights = np.log(weights)[:, None]
        return Expectation(components, components.log_prob(self.X), log_weights)

    def value(self, prior: ComponentPrior, point: Any) -> float:
        """Objective, without what the prior says of particular rows."""
        at = self.expected(prior, point)
        log_prior = prior.log_density_of_some(at.components).sum()
        if self.smoothing:
            log_prior += self.smoothing * at.log_weights.sum()
        log_prob, _ = posterior_of(at.log_prob + at.log_weights)
        return float(self.weights @ log_prob + log_prior)

    def maximum(self, prior: ComponentPrior, shares: Array) -> Any:
        """M step; a component without rows gets a little of all."""
        mass = shares * self.weights
        counts = mass.sum(axis=1)
        mass[counts == 0] = 1e-3 * self.weights / len(self.weights)
        components = prior.fit(self.X, mass, **self.options)
        counts = counts + self.smoothing
        return counts / counts.sum(), components

    def step(self, prior: ComponentPrior, point: Any) -> Any:
        """Point after one step of EM."""
        return self.maximum(prior, self.expected(prior, point).shares)

    def after_steps(self, shares: Array) -> Start:
        """Start of shares (k, n), the largest of which decide about the prior."""
        if self.rows is not None:
            prior = self.prior_of(shares)
            own = prior, self.smoothing, shares, self.n_steps
            values, point, done = self.rows.steps(*own, last=True)
            if done:
                return Start(float(values[-1]), prior, point)
        return self.after_steps_from(*self.prior_and_point(shares))

    def prior_of(self, shares: Array) -> ComponentPrior:
        """Prior of the components by the largest shares (k, n)."""
        labels, rows = shares.argmax(axis=0), (self.family, self.X, self.weights)
        return prior_of_groups(*rows, labels, self.k, self.smoothing, self.options)

    def prior_and_point(self, shares: Array) -> tuple[ComponentPrior, Any]:
        """Prior, and the point of shares (k, n)."""
        prior = self.prior_of(shares)
        return prior, self.maximum(prior, shares)

    def after_steps_from(self, prior: ComponentPrior, point: Any) -> Start:
        """Start a few steps of EM after a point."""
        for _ in range(self.n_steps):
            point = self.step(prior, point)
        return Start(self.value(prior, point), prior, point)

    # -- moves -------------------------------------------------------------------------
    def after_moves(self, start):
        """Start after moves that gain; None if there are none."""
        if self.k < 3:  # two components to merge and another one to split
            return None
        prior, point = start.prior, start.point
        at = self.expected(prior, point)
        shares = at.shares
        density = prior.log_density_of_some(at.components)
        rows = self.X.reshape(len(self.X), -1)
        within = variances_within(rows, self.weights, shares.argmax(axis=0))
        splits = [self.split(prior, at, shares, h, within) for h in range(self.k)]
        gains = np.array([gain for gain, _ in splits]) - density
        losses = sorted(self.losses(prior, at, shares, density))
        for moves in self.proposals(losses, gains):
            new = shares.copy()
            for a, b, c in moves:
                rows, pair = splits[c][1]
                new[a] = shares[a] + shares[b]
                new[b], part = 0.0, self.half_of(rows, pair) * shares[c, rows]
                new[b, rows] = part
                new[c, rows] -= part
            following = self.after_steps(new)
            if following.objective > start.objective + self.least:
                return following
        return None

    def proposals(self, losses, gains):
        """Lists of moves to try: all that surely gain; the nearest misses, one by one.

        The bound of a near miss may be far below what it gains.
        """
        moves = _best_moves(losses, gains, self.least)
        if moves:
            yield moves
        single = (
            (gains[c] - loss, (a, b, c))
            for loss, a, b in losses
            for c in range(self.k)
            if c not in (a, b) and gains[c] - loss > -_FURTHEST * self.least
        )
        for _, move in sorted(single, reverse=True)[: self.n_misses]:
            yield [move]

    def split(self, prior, expectation, shares, h, within):
        """Gain of two components in the place of one, its rows, and the two.

        They begin at both sides of its mean, along the axis in which it is widest
        beside the variances within all components.
        """
        at = np.flatnonzero(shares[h] > _SMALL)
        mass = shares[h, at] * self.weights[at]
        X = self.X[at]
        if len(at) < 4:
            return -np.inf, None
        half = _beyond_the_mean(X, mass, within)
        value, pair = self.pair_of(prior, X, mass, np.stack([half, 1.0 - half]))
        if pair is None or not pair[0].min() > _VANISHED:
            return -np.inf, None
        return value - float(mass @ expectation.log_prob[h, at]), (at, pair)

    def pair_of(self, prior, X, mass, shares):
        """Objective and point of a mixture of two of rows; no point if none is found.

        EM begins at shares (2, n) and ends where a step gains little.
        """
        last, least = -np.inf, 0.5 * self.least
        if self.rows is not None:
            rows, steps = GaussianRows(self.family, X, mass), _SPLIT_STEPS - 1
            own = rows.steps(prior, 0.0, shares, steps, least=least, last=True)
            values, pair, done = own
            if done:
                return values[-1], pair
        for _ in range(_SPLIT_STEPS):
            both = shares * mass
            weights = both.sum(axis=1) / mass.sum()
            if not weights.min() > _VANISHED:
                return last, None
            try:
                two = prior.fit_some(X, both, **self.options)
            except ValueError:  # a half has no fit of this family
                return last, None
            new = two.log_prob(X) + np.log(weights)[:, None]
            top, shares = posterior_of(new)
            value = float(mass @ top + prior.log_density_of_some(two).sum())
            if value - last < least:
                break
            last = value
        return value, (weights, two)

    def half_of(self, rows, pair):
        """Shares of some rows in the first one of two components."""
        weights, two = pair
        return posterior_of(two.log_prob(self.X[rows]) + np.log(weights)[:, None])[1][0]

    def losses(self, prior, expectation, shares, density):
        """(loss, a, b) of one component in the place of two, of near pairs."""
        mass = shares * self.weights
        log_prob = expectation.log_prob
        log_weights = np.broadcast_to(expectation.log_weights, log_prob.shape)
        for a, b in sorted(_near_pairs(log_prob, mass)):
            both = mass[a] + mass[b]
            at = np.flatnonzero(both > _SMALL * self.weights)
            both = both[at]
            if not len(at):
                continue
            new = self.value_of_one(prior, self.X[at], both)
            if new is None:
                continue
            pair = log_weights[[a, b]][:, at]
            old = np.logaddexp(*(log_prob[[a, b]][:, at] + pair))
            old -= np.logaddexp(*pair)
            yield float(both @ old) + density[a] + density[b] - new, a, b

    def value_of_one(self, prior, X, mass):
        """Objective of one component of rows; None if it has no fit."""
        if self.rows is not None:
            rows, all_ = GaussianRows(self.family, X, mass), np.ones((1, len(X)))
            values, _, done = rows.steps(prior, 0.0, all_, 0, last=True)
            if done:
                return float(values[0])
        try:
            one = prior.fit_some(X, mass[None], **self.options)
        except ValueError:
            return None
        return float(mass @ one.log_prob(X)[0] + prior.log_density_of_some(one)[0])


def _partition(labels):
    """Key of a partition, the same whatever its groups are called."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return first[inverse].tobytes()


def _shares(joint):
    """Posterior shares (k, n); zero where no component can show a row."""
    total, shares = posterior_of(joint)
    return np.where(np.isneginf(total), 0.0, shares)


def _beyond_the_mean(X, mass, within):
    """Rows on one side of the mean along the first principal axis, as 0. and 1.

    Columns have these variances as their units.
    """
    rows = X.reshape(len(X), -1)
    share = mass / mass.sum()
    rows = rows - share @ rows
    rows = rows / np.sqrt(np.where(within > 0, within, 1.0))
    rows = rows * np.sqrt(share)[:, None]
    wide = rows.shape[1] > len(rows)
    _, vectors = np.linalg.eigh(rows @ rows.T if wide else rows.T @ rows)
    along = vectors[:, -1] if wide else rows @ vectors[:, -1]
    return (along > 0).astype(float)


def _near_pairs(log_prob, mass):
    """Pairs of components of which one gives the other's rows the most probability."""
    k = len(log_prob)
    total = mass.sum(axis=1)
    with np.errstate(divide="ignore"):
        joint = log_prob + np.log(total / total.sum())[:, None]
    near = mass @ np.maximum(joint, -1e6).T
    np.fill_diagonal(near, -np.inf)
    best = np.argsort(-near, axis=1, kind="stable")[:, : min(_NEIGHBOURS, k - 1)]
    return {(min(a, b), max(a, b)) for a in range(k) for b in best[a].tolist()}


def _best_moves(losses, gains, least):
    """Moves (a, b, c), each component in one, of the smallest losses and best gains."""
    used, moves = set(), []
    order = np.argsort(-gains, kind="stable").tolist()
    for loss, a, b in losses:
        left = [c for c in order if c not in used and c not in (a, b)]
        if a in used or b in used or not left:
            continue
        if not gains[left[0]] - loss > least:
            break
        moves.append((a, b, left[0]))
        used |= {a, b, left[0]}
    return moves
