"""Priors of the components of mixtures and of the states of hidden Markov models.

A prior is the likelihood of `count` pseudo-observations of every component. Its effect
does not grow with the distance between groups of rows:

- Gaussians: observations about the component's own mean, with the covariance W within
  the groups of the start. The log-density is, up to a constant,

      -count/2 (log|S_h| + tr(S_h^{-1} W)),

  and the M step from n observations with covariance C is (n C + count W) / (n + count).
- other families: observations distributed like the rows of the component's group.

Source: Fraley & Raftery (2007), Bayesian regularization for normal mixture estimation,
section 2, for the spread; the choice of W and of the count is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent.families import ExponentialFamily, Product
from maxent.families._gaps import expected_fit
from maxent.families._within import (
    regular_covariance,
    rounding_of,
    variances_within,
)
from maxent.models._partial import with_column_means

Array = NDArray[np.float64]

_WIDENING = 0.06  # of a variance by the prior, at most: 3 % of a standard deviation
_LEAST_COUNT = 1e-3  # keeps a component that takes one row from a variance of zero
_JUDGED = 20  # rows of a group by whose spread the prior is judged, at least
_PULL = 0.1  # standard errors by which other groups move the mean of a small one
_BACKGROUND = 1 / 300  # of the pseudo-observations, distributed like all rows


def prior_of_groups(
    family: type[ExponentialFamily],
    X: Array,
    weights: Array,
    labels: NDArray[np.intp],
    n_components: int,
    count: float,
    options: Mapping[str, Any] = {},
) -> ComponentPrior:
    """Prior of the family from a partition of the rows.

    Parameters
    ----------
    family : class
    X : ndarray (n, event)
        Whole rows.
    weights : ndarray (n,)
        Positive weights.
    labels : ndarray of int (n,)
        Group of each row, 0, ..., n_components - 1; groups may be empty.
    n_components : int
    count : float
        Pseudo-observations of each component; 0 is no prior.
    options : dict, optional
        Further arguments of the family's `fit`.
    """
    if "layout" in options:
        return ProductPrior(
            family,
            [
                (
                    own,
                    prior_of_groups(
                        kind, X[:, own], weights, labels, n_components, count, more
                    ),
                    more,
                )
                for own, kind, more in options["layout"]
            ],
        )
    if count == 0:
        return ComponentPrior(family)
    if family._fills_gaps:
        X = filled_rows(family, X, weights)
        return SpreadPrior.of_groups(family, X, weights, labels, n_components, count)
    return RowsPrior(family, X, weights, labels, n_components, count)


def filled_rows(
    family: type[ExponentialFamily],
    X: Array,
    weights: Array,
    options: Mapping[str, Any] = {},
) -> Array:
    """Rows with a usual value of the column in the place of each missing entry (NaN).

    It is the mean where the family fills gaps, and else the median, which is a value of
    the column.
    """
    lost = np.isnan(X)
    if not lost.any():
        return X
    if "layout" in options:
        X = X.copy()
        for own, kind, more in options["layout"]:
            X[:, list(own)] = filled_rows(kind, X[:, list(own)], weights, more)
        return X
    if family._fills_gaps:
        return with_column_means(X, weights)
    usual = [_lower_median(x[~at], weights[~at]) for x, at in zip(X.T, lost.T)]
    return np.where(lost, usual, X)


def _lower_median(x, weights):
    """Value of the middle weight."""
    order = np.argsort(x, kind="stable")
    mass = np.cumsum(weights[order])
    return x[order][np.searchsorted(mass, 0.5 * mass[-1])]


class ComponentPrior:
    """No prior: maximum likelihood; base class."""

    def __init__(self, family: type[Any]) -> None:
        self.family = family

    @classmethod
    def of_all(cls, priors: list[Any]) -> Any:
        """Prior of the members of several batches, from the prior of each batch."""
        return priors[0]

    def decides(self, total: Array) -> NDArray[np.bool_]:
        """Members that rows of these total weights (K,), and the prior, determine."""
        return total > 0

    def of_members(self, used: NDArray[np.bool_]) -> ComponentPrior:
        """Prior of some of the members."""
        return self

    def fit(self, X: Array, mass: Array, **options: Any) -> Any:
        """M step: the members that are determined, from rows with weights (K, n)."""
        return self.family.fit(X, mass, **options)

    def fit_seen(self, X: Array, mass: Array, old: Any, **options: Any) -> Any:
        """M step from rows that miss entries (NaN), where `old` members were."""
        if not self.family._fills_gaps:
            return self.fit(X, mass, **options)
        seen = ~np.isnan(X).all(axis=1)  # of a factor, whose columns may all miss
        X, mass = X[seen], mass[:, seen]
        total = mass.sum(axis=1)
        used = total > 0
        moments = expected_fit(X, mass[used], old[used])
        return old._replaced(used, self.of_members(used).blended(total[used], *moments))

    def fit_some(self, X: Array, mass: Array, **options: Any) -> Any:
        """Fit to some of the rows, without pseudo-observations of other rows."""
        return self.family.fit(X, mass, **options)

    def of_spreads(self, k: int, d: int) -> tuple[Array, Array]:
        """Pseudo-observations (k,) of Gaussians, and their (co)variance."""
        return np.zeros(k), np.zeros(self.family._spread_shape(d))

    def refitted(self, batch: Any, total: Array, *sums: Array) -> Any:
        """M step from sums of `_part_sums` over all rows."""
        return batch._refitted(total, *sums)

    def blended(self, total: Array, mean: Array, spread: Array) -> Any:
        """M step of Gaussians from means and (co)variances of weighted rows."""
        spread = self.family._shared(spread, total)
        return regular_gaussians(self.family, mean, spread, 0.0)

    def log_density(self, batch: Any, log_prob: Array | None = None) -> Array:
        """Log-density of each member, (K,), up to a constant.

        `log_prob` (K, n) are the members' log-densities of the rows, if known.
        """
        return np.zeros(len(batch))

    def log_density_of_some(self, batch: Any) -> Array:
        """Part of the log-density that `fit_some` takes into account."""
        return np.zeros(len(batch))


class RowsPrior(ComponentPrior):
    """Pseudo-observations distributed like the rows of a component's group.

    Families of bounded statistics get a small part that is distributed like all rows,
    so that no probability becomes zero. So do groups of few rows, a part so small that
    their means move by a tenth of a standard error at most, however far other groups
    are.
    """

    def __init__(
        self,
        family: type[Any],
        X: Array,
        weights: Array,
        labels: NDArray[np.intp],
        n_components: int,
        count: float,
    ) -> None:
        super().__init__(family)
        self.X, self.labels = X, labels
        size = np.bincount(labels, weights, minlength=n_components)
        self.share = weights / weights.sum()
        self.shared = np.full(n_components, _BACKGROUND * count)
        if not family._has_bounded_statistics:
            rows = filled_rows(family, np.asarray(X, dtype=np.float64), weights)
            rows = rows.reshape(len(X), -1)
            spread = np.sqrt(variances_within(rows, weights, labels))
            self.shared[size >= _JUDGED] = 0.0
            for h in np.flatnonzero((size > 0) & (size < _JUDGED)):
                at = labels == h
                away = np.abs(weights[at] @ rows[at] / size[h] - self.share @ rows)
                # s pseudo-observations move the mean by about s away / size
                most = _PULL * np.sqrt(size[h]) * spread[away > 0] / away[away > 0]
                self.shared[h] = most.min(initial=self.shared[h])
        self.shared[size == 0] = count
        unit = (count - self.shared) / np.where(size > 0, size, 1.0)
        self.own = weights * unit[labels]

    @classmethod
    def of_all(cls, priors):
        return _SomeRowsPrior(priors)

    def decides(self, total):
        return np.ones(len(total), dtype=bool)

    def pseudo_rows(self) -> Array:
        """Weights (K, n) of the rows as pseudo-observations."""
        out = self.shared[:, None] * self.share
        out[self.labels, np.arange(len(self.labels))] += self.own
        return np.asarray(out)

    def fit(self, X, mass, **options):
        return self.family.fit(X, mass + self.pseudo_rows(), **options)

    def refitted(self, batch, total, *sums):
        more = batch._part_sums(self.X, self.pseudo_rows())
        total, *sums = (a + b for a, b in zip((total, *sums), more))
        return batch._refitted(total, *sums)

    def log_density(self, batch, log_prob=None):
        if log_prob is None or log_prob.shape[1] != len(self.X):  # of more rows
            log_prob = batch._log_prob_of_seen(self.X)
        rows = self.pseudo_rows()
        # an impossible row of weight zero counts nothing: 0 * -inf = 0
        each = np.multiply(rows, log_prob, out=np.zeros_like(rows), where=rows > 0)
        return each.sum(axis=1)


class _SomeRowsPrior(RowsPrior):
    """Priors of several batches, by the pseudo-rows of all members."""

    def __init__(self, priors: list[RowsPrior]) -> None:
        self.family, self.X = priors[0].family, priors[0].X
        self.rows = np.concatenate([prior.pseudo_rows() for prior in priors])

    def pseudo_rows(self):
        return self.rows


class SpreadPrior(ComponentPrior):
    """Pseudo-observations of Gaussians about their own means.

    Parameters
    ----------
    family : class
        One of the Gaussians.
    count : ndarray (K,)
        Pseudo-observations of each member, > 0; the largest is that of other ones.
    spread : ndarray
        W, in the shape of one (co)variance of the family, or of one for each member.
    """

    def __init__(self, family: type[Any], count: Array, spread: Array) -> None:
        super().__init__(family)
        self.count, self.spread = count, spread
        self._greatest: Array | None = None  # twice the log-density of one row, negated

    @classmethod
    def of_all(cls, priors):
        family, count = priors[0].family, np.concatenate([p.count for p in priors])
        if all(prior is priors[0] for prior in priors):
            return cls(family, count, priors[0].spread)
        each = [np.repeat([p.spread], len(p.count), axis=0) for p in priors]
        return cls(family, count, np.concatenate(each))

    def of_members(self, used):
        if used.all() and len(used) == len(self.count):
            return self
        spread = self.spread if self._is_shared else self.spread[used]
        return SpreadPrior(self.family, self.count[used], spread)

    @property
    def _is_shared(self):
        """True if all members have one W."""
        return np.ndim(self.spread) == self.family._spread_axes

    @classmethod
    def of_groups(
        cls,
        family: type[Any],
        X: Array,
        weights: Array,
        labels: NDArray[np.intp],
        n_components: int,
        count: float,
    ) -> SpreadPrior:
        """W pooled within groups; lower counts for groups of less spread.

        So low that the prior widens no group of some rows by more than 3 % of its
        standard deviations: its count times W is about 6 % of its scatter at most.
        Full covariances of d columns take (d + 2) / 3 of the count, d + 2 of three.
        """
        counts = np.full(n_components, count)
        scatters = {}
        for h in range(n_components):
            at = np.flatnonzero((labels == h) & (weights > 0))
            if len(at):
                size = weights[at].sum()
                R = X[at] - weights[at] @ X[at] / size
                scatters[h] = size, family._spread(R, weights[at], 0.0)
        total = weights.sum()
        R = X - weights @ X / total
        spread = regular_covariance(
            sum(scatter for _, scatter in scatters.values()) / total,
            family._spread(R, weights / total, 0.0),
            rounding_of(X),
        )
        if np.ndim(spread) == 2:
            counts *= (len(spread) + 2) / 3
        for h, (size, scatter) in scatters.items():
            if size >= max(_JUDGED, 2 * X.shape[1]):
                excess = _largest_ratio(spread, scatter) - 1.0 / size
                least = min(count, _LEAST_COUNT)
                if excess > 0:
                    counts[h] = max(min(counts[h], _WIDENING / excess), least)
        return cls(family, counts, spread)

    def fit(self, X, mass, smoothing=0.0):
        X, W, total = self.family._rows_to_fit(X, mass)
        moments = self.family._weighted_moments(X, W, total, smoothing)
        return self.blended(total, *moments)

    def fit_some(self, X, mass, smoothing=0.0):
        most = np.full(len(mass), self.count.max())
        return SpreadPrior(self.family, most, self.spread).fit(X, mass, smoothing)

    def of_spreads(self, k, d):
        some = k != len(self.count)  # as of `fit_some`
        count = np.full(k, self.count.max()) if some else self.count
        return count, np.asarray(self.spread)

    def refitted(self, batch, total, *sums):
        return self.blended(total, *batch._moments_of_sums(total, *sums))

    def blended(self, total, mean, spread, rounding=0.0):
        n, count = (
            a.reshape(-1, *(1,) * (spread.ndim - 1)) for a in (total, self.count)
        )
        spread = (n * spread + count * self.spread) / (n + count)
        spread = self.family._shared(spread, total + self.count)
        return regular_gaussians(self.family, mean, spread, rounding)

    def log_density(self, batch, log_prob=None):
        return self.count * self._of_one_row(batch)

    def log_density_of_some(self, batch):
        return (
            self.count if len(batch) == len(self.count) else self.count.max()
        ) * self._of_one_row(batch)

    def _of_one_row(self, batch):
        """Log-density of one pseudo-observation, relative to that where S is W."""
        away = batch._mean_distance(self.spread)
        if self._greatest is None:
            spread = self.spread[None] if self._is_shared else self.spread
            own = self.family(np.zeros((len(spread), batch.mean.shape[1])), spread)
            self._greatest = own._log_det + batch.mean.shape[1]
        return -0.5 * (batch._log_det + away - self._greatest)


class ProductPrior(ComponentPrior):
    """Priors of the factors of a product of families.

    Parameters
    ----------
    family : class
    parts : list of tuple (columns, prior, options)
        Numbers of the columns of every factor, its prior, and further arguments of the
        fit of its family.
    """

    def __init__(self, family: type[Any], parts: list[tuple[Any, Any, Any]]) -> None:
        super().__init__(family)
        self.parts = [(list(own), prior, options) for own, prior, options in parts]

    @classmethod
    def of_all(cls, priors):
        each = zip(*(prior.parts for prior in priors))
        parts = [
            (some[0][0], type(some[0][1]).of_all([p for _, p, _ in some]), some[0][2])
            for some in each
        ]
        return cls(priors[0].family, parts)

    def of_members(self, used):
        return ProductPrior(
            self.family,
            [(own, prior.of_members(used), more) for own, prior, more in self.parts],
        )

    def _fitted(self, name, X, mass, *old):
        fits = {}
        for i, (own, prior, more) in enumerate(self.parts):
            each = [batch.factors[i] for batch in old]
            fits[tuple(own)] = getattr(prior, name)(X[:, own], mass, *each, **more)
        return Product(fits)

    def fit(self, X, mass, **options):
        return self._fitted("fit", X, mass)

    def fit_some(self, X, mass, **options):
        return self._fitted("fit_some", X, mass)

    def fit_seen(self, X, mass, old, **options):
        return self._fitted("fit_seen", X, mass, old)

    def refitted(self, batch, total, *sums):
        fits, sums = [], list(sums)
        for (_, prior, _), factor in zip(self.parts, batch.factors):
            own, sums = sums[: factor._n_sums], sums[factor._n_sums :]
            fits.append(prior.refitted(factor, total, *own))
        return batch._of(fits)

    def log_density(self, batch, log_prob=None):
        parts = zip(self.parts, batch.factors)
        return sum(prior.log_density(factor) for (_, prior, _), factor in parts)

    def log_density_of_some(self, batch):
        parts = zip(self.parts, batch.factors)
        return sum(prior.log_density_of_some(factor) for (_, prior, _), factor in parts)


def regular_gaussians(family: Any, mean: Array, spread: Array, rounding: Any) -> Any:
    """Gaussians that EM has come to; what a singular one means, and the remedy."""
    try:
        family._check_spread(spread, np.asarray(rounding), 0.0)
        return family(mean, spread)
    except ValueError as error:
        raise ValueError(
            "a covariance became singular in the fit: observations lie in a plane, or "
            "too few of them belong to a state or component. Drop columns that follow "
            "from the others, set smoothing > 0, or take diagonal covariances."
        ) from error


def _largest_ratio(spread: Array, scatter: Array) -> float:
    """Largest lam of spread v = lam scatter v; inf if the scatter is singular."""
    if np.ndim(spread) < 2:
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.max(np.where(scatter > 0, spread / scatter, np.inf)))
    scale = 1.0 / np.sqrt(np.diag(spread))
    A, B = (M * scale * scale[:, None] for M in (spread, scatter))
    try:
        factor = np.linalg.cholesky(B)
        inside = np.linalg.solve(factor, np.linalg.solve(factor, A).T)
        return float(np.linalg.eigvalsh(inside)[-1])
    except np.linalg.LinAlgError:
        return np.inf
