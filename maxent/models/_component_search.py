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
from scipy.special import logsumexp

from maxent._support.threads import single_threaded_loops
from maxent.models._component_prior import prior_of_groups

Array = NDArray[np.float64]
Point = tuple[Array, Any]

_ROUNDS = 20  # of moves at most
_STEPS = 5  # of EM before moves, and after them
_SPLIT_STEPS = 6  # of EM of the two halves of a component at most
_NEIGHBOURS = 3  # of each component that it is merged with
_SAME = 1e-9  # relative difference of the objectives of two starts that are one
_SMALL = 1e-2  # posterior share below which a row is left out of a move


def k_means_labels(
    X: Array, weights: Array, k: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Labels (n,) of a random k-means clustering of standardised rows.

    There are fewer groups than k where there are fewer different rows.
    """
    from sklearn.cluster import KMeans

    rows = X.reshape(len(X), -1)
    share = weights / weights.sum()
    rows = rows - share @ rows
    deviation = np.sqrt(share @ np.square(rows))
    rows = rows / np.where(deviation > 0, deviation, 1.0)
    k = min(k, len(np.unique(rows, axis=0)))
    seed = int(rng.integers(2**31))
    with single_threaded_loops():  # whose threads do not survive a fork
        clusters = KMeans(k, n_init=1, max_iter=50, random_state=seed)
        labels = clusters.fit(rows, sample_weight=share * len(rows)).labels_
    return np.asarray(labels, dtype=np.intp)


@dataclass
class Start:
    """A start of EM, and the objective there."""

    objective: float
    point: Point


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
    least_gain : float
        Nats, of rows of mean weight, that a move must gain.
    """

    def __init__(
        self,
        X: Array,
        weights: Array,
        family: type[Any],
        n_components: int,
        smoothing: float,
        options: dict[str, Any],
        least_gain: float = 1.0,
    ) -> None:
        self.X, self.weights, self.k = X, weights, n_components
        self.family, self.smoothing, self.options = family, smoothing, options
        self.least = least_gain * weights.mean()
        self.known: dict[bytes, Start] = {}

    def starts(self, n_init: int, rng: np.random.Generator) -> list[Point]:
        """Random starts, the best first, without those that are the same as others."""
        found = [self.start(rng) for _ in range(n_init)]
        found.sort(key=lambda start: -start.objective)
        best = [found[0]]
        for start in found[1:]:
            apart = best[-1].objective - start.objective
            if apart > _SAME * (1.0 + abs(start.objective)):
                best.append(start)
        return [start.point for start in best]

    def start(self, rng: np.random.Generator) -> Start:
        """Random start; that of a partition that was met before is known."""
        labels = k_means_labels(self.X, self.weights, self.k, rng)
        _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
        partition = first[inverse].tobytes()  # the same whatever groups are called
        if partition not in self.known:
            self.known[partition] = self.start_of(labels)
        return self.known[partition]

    def start_of(self, labels: NDArray[np.intp]) -> Start:
        """Start from a partition of the rows."""
        prior, point = self.after_steps(self.shares_of(labels))
        for _ in range(_ROUNDS):
            following = self.after_moves(prior, point)
            if following is None:
                break
            prior, point = following
        return Start(self.value(prior, point, self.joint(point)), point)

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
    def joint(self, point):
        """log weights[h] p_h(x), (k, n)."""
        weights, components = point
        with np.errstate(divide="ignore"):
            return components.log_prob(self.X) + np.log(weights)[:, None]

    def value(self, prior, point, joint):
        """Objective, without what the prior says of particular rows."""
        weights, components = point
        log_prior = prior.log_density_of_some(components).sum()
        if self.smoothing:
            log_prior += self.smoothing * np.log(weights).sum()
        return float(self.weights @ logsumexp(joint, axis=0) + log_prior)

    def maximum(self, prior, shares):
        """M step; a component without rows gets a little of all."""
        mass = shares * self.weights
        counts = mass.sum(axis=1)
        mass[counts == 0] = 1e-3 * self.weights / len(self.weights)
        components = prior.fit(self.X, mass, **self.options)
        counts = counts + self.smoothing
        return counts / counts.sum(), components

    def after_steps(self, shares):
        """Prior by the largest shares (k, n), and a point after a few steps of EM."""
        labels, rows = shares.argmax(axis=0), (self.family, self.X, self.weights)
        prior = prior_of_groups(*rows, labels, self.k, self.smoothing)
        point = self.maximum(prior, shares)
        for _ in range(_STEPS):
            point = self.maximum(prior, _shares(self.joint(point)))
        return prior, point

    # -- moves -------------------------------------------------------------------------
    def after_moves(self, prior, point):
        """Prior and point after all moves that gain; None if there are none."""
        if self.k < 3:  # two components to merge and another one to split
            return None
        joint = self.joint(point)
        shares = _shares(joint)
        density = prior.log_density_of_some(point[1])
        splits = [self.split(prior, point, joint, shares, h) for h in range(self.k)]
        gains = np.array([gain for gain, _ in splits]) - density
        losses = self.losses(prior, point, joint, shares, density)
        moves = _best_moves(losses, gains, self.least)
        if not moves:
            return None
        new = shares.copy()
        for a, b, c in moves:
            at, half = splits[c][1]
            new[a] = shares[a] + shares[b]
            new[b], part = 0.0, half * shares[c, at]
            new[b, at] = part
            new[c, at] -= part
        following = self.after_steps(new)
        # both by the new prior, which may be another one
        before = self.value(following[0], point, joint)
        after = self.value(*following, self.joint(following[1]))
        return following if after > before + self.least else None

    def split(self, prior, point, joint, shares, h):
        """Gain of two components in the place of one, their rows and shares of one."""
        at = np.flatnonzero(shares[h] > _SMALL)
        mass = shares[h, at] * self.weights[at]
        X, total, last = self.X[at], mass.sum(), -np.inf
        if len(at) < 4:
            return -np.inf, None
        half = _beyond_the_mean(X, mass)
        for _ in range(_SPLIT_STEPS):
            both = np.stack([half, 1.0 - half]) * mass
            counts = both.sum(axis=1)
            if not counts.min() > 1e-6 * total:
                return -np.inf, None
            try:
                two = prior.fit_some(X, both, **self.options)
            except ValueError:  # a half has no fit of this family
                return -np.inf, None
            new = two.log_prob(X) + np.log(counts / total)[:, None]
            top = np.logaddexp(*new)
            half = np.exp(new[0] - top)
            value = float(mass @ top + prior.log_density_of_some(two).sum())
            if value - last < 0.5 * self.least:
                break
            last = value
        own = float(mass @ (joint[h, at] - np.log(point[0][h])))
        return value - own, (at, half)

    def losses(self, prior, point, joint, shares, density):
        """(loss, a, b) of one component in the place of two, of near pairs."""
        mass = shares * self.weights
        for a, b in sorted(_near_pairs(joint, mass)):
            both = mass[a] + mass[b]
            at = np.flatnonzero(both > _SMALL * self.weights)
            both = both[at]
            if not len(at):
                continue
            try:
                one = prior.fit_some(self.X[at], both[None], **self.options)
            except ValueError:
                continue
            old = np.logaddexp(joint[a, at], joint[b, at])
            old -= np.log(point[0][a] + point[0][b])
            loss = float(both @ (old - one.log_prob(self.X[at])[0]))
            new = prior.log_density_of_some(one)[0]
            yield loss + density[a] + density[b] - new, a, b


def _shares(joint):
    """Posterior shares (k, n)."""
    top = logsumexp(joint, axis=0)
    return np.exp(joint - np.where(np.isneginf(top), 0.0, top))


def _beyond_the_mean(X, mass):
    """Rows on one side of the mean along the first principal axis, as 0. and 1."""
    rows = X.reshape(len(X), -1)
    share = mass / mass.sum()
    rows = rows - share @ rows
    deviation = np.sqrt(share @ np.square(rows))
    rows = rows / np.where(deviation > 0, deviation, 1.0)
    rows = rows * np.sqrt(share)[:, None]
    wide = rows.shape[1] > len(rows)
    _, vectors = np.linalg.eigh(rows @ rows.T if wide else rows.T @ rows)
    along = vectors[:, -1] if wide else rows @ vectors[:, -1]
    return (along > 0).astype(float)


def _near_pairs(joint, mass):
    """Pairs of components of which one gives the other's rows the most probability."""
    k = len(joint)
    near = mass @ np.maximum(joint, -1e6).T
    np.fill_diagonal(near, -np.inf)
    best = np.argsort(-near, axis=1, kind="stable")[:, : min(_NEIGHBOURS, k - 1)]
    return {(min(a, b), max(a, b)) for a in range(k) for b in best[a].tolist()}


def _best_moves(losses, gains, least):
    """Moves (a, b, c), each component in one, of the smallest losses and best gains."""
    used, moves = set(), []
    order = np.argsort(-gains, kind="stable").tolist()
    for loss, a, b in sorted(losses):
        left = [c for c in order if c not in used and c not in (a, b)]
        if a in used or b in used or not left:
            continue
        if not gains[left[0]] - loss > least:
            break
        moves.append((a, b, left[0]))
        used |= {a, b, left[0]}
    return moves
