"""Members of a family fitted to shares of rows: components of mixtures, hidden states.

Of Gaussians, rows may miss entries (NaN): densities are those of what was observed, and
in the M step every member fills in the rest at its expectation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._support import validation as v
from maxent.families import ExponentialFamily
from maxent.models._component_prior import (
    ComponentPrior,
    filled_rows,
    prior_of_groups,
)
from maxent.models._partial import (
    observed_moments,
    refuse_infinite,
)

Array = NDArray[np.float64]

Point = tuple[Array, Any]  # weights and members of a mixture

_BLOCK = 1 << 16  # of entries of a table that are worked on at a time
_FAR = 1e4  # of a squared shift of a mean, in variances: four digits are lost


class Components:
    """Weighted rows, and the M step of a batch of a family from shares of them.

    Parameters
    ----------
    family : class
    X : ndarray (n, event)
        Rows in the support; of Gaussians, with NaN where an entry is missing.
    weights : ndarray (n,)
        Of the rows, >= 0.
    options : dict, optional
        Further arguments of the family's `fit`.
    """

    def __init__(
        self,
        family: type[ExponentialFamily],
        X: Array,
        weights: Array,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.family, self.X, self.weights = family, X, weights
        self.options = dict(family._complete(X, {} if options is None else options))
        self.prior = ComponentPrior(family)  # none until groups are known
        self._columns: GaussianRows | None = None  # once a pass needs them
        self.partial = family._takes_gaps and bool(np.isnan(X).any())

    def filled(self) -> Array:
        """Rows with usual values of the columns in the place of missing entries."""
        if not self.partial:
            return self.X
        return filled_rows(self.family, self.X, self.weights, self.options)

    def set_prior(self, labels: NDArray[np.intp], k: int, count: float) -> None:
        """Prior of k members from a partition of the rows."""
        rows = self.family, self.X, self.weights
        self.prior = prior_of_groups(*rows, labels, k, count, self.options)

    def log_prob(self, batch: Any) -> Array:
        """Log-densities (k, n) of the rows."""
        return log_densities(batch, self.X)

    def fit(
        self, mass: Array, old: Any, held: Mapping[str, NDArray[np.bool_]] = {}
    ) -> Any:
        """M step from weights (k, n) of the rows; what nothing decides stays as it is.

        `old` is None where there are no members yet. Means and covariances of Gaussians
        that are `held` stay too.
        """
        total = mass.sum(axis=1)
        used = self.prior.decides(total)
        prior = self.prior.of_members(used)
        if self.partial:
            old = self.one(len(mass)) if old is None else old
            fitted = prior.fit_seen(self.X, mass[used], old[used], **self.options)
        elif old is not None and self.are_whole_gaussians:
            own = old if used.all() else old[used]
            fitted = self._fitted_about(own, prior, *own._part_sums(self.X, mass[used]))
            if fitted is None:
                fitted = prior.fit(self.X, mass[used])
        else:
            fitted = prior.fit(self.X, mass[used], **self.options)
        return self._placed(fitted, old, used, total, held)

    @property
    def are_whole_gaussians(self) -> bool:
        """True if M steps are functions of sums about the means before."""
        return self.family._fills_gaps and not self.partial and not self.options

    @property
    def columns(self) -> GaussianRows:
        """The rows, as passes over whole Gaussians read them."""
        if self._columns is None:
            self._columns = GaussianRows(self.family, self.X, self.weights)
        return self._columns

    def quick_step(self, smoothing: float, point: Point) -> tuple[float, Point] | None:
        """Objective, and the point after an EM step, of Gaussians without any doubt."""
        if not (self.are_whole_gaussians and self.family._fits_apart):
            return None
        values, following, done = self.columns.steps(self.prior, smoothing, point, 1)
        if not done or following is None:
            return None
        return float(values[0]), following

    def em_step(
        self, weights: Array, old: Any, held: Mapping[str, NDArray[np.bool_]]
    ) -> tuple[float, Array, Any] | None:
        """Log-likelihood, weights of the members, and the M step, in one pass.

        None where the rows need the tables of densities.
        """
        if not self.are_whole_gaussians:
            return None
        value, total, *sums = old._em_sums(
            weights, self.columns.columns, self.columns.weights
        )
        used = self.prior.decides(total)
        if not np.isfinite(value) or not used.all():
            return None
        fitted = self._fitted_about(old, self.prior, total, *sums)
        if fitted is None:
            return None
        return value, total, self._placed(fitted, old, used, total, held)

    def _placed(self, fitted, old, used, total, held):
        """Members of an M step in their places, and what is held."""
        new = fitted if used.all() else old._replaced(used, fitted)
        if "mean" in held or "cov" in held:
            count = getattr(self.prior, "count", np.zeros(len(total)))
            return new._with_held(old, held, total, count)
        return new

    def _fitted_about(self, old, prior, total, first, second):
        """M step of Gaussians from sums about their old means; None if these move far.

        The square of a shift is taken from what is not much larger.
        """
        try:
            new = prior.refitted(old, total, first, second)
        except ValueError:
            return None
        shift = first / total[:, None]
        return None if (shift**2 > _FAR * new._moments()[1]).any() else new

    def one(self, k: int = 1) -> Any:
        """Equal members for all rows."""
        return overall(self.family, self.X, self.weights, self.options, k)


class GaussianRows:
    """Rows (n, d) of weights (n,) as compiled EM of Gaussians reads them.

    They are columns, filled up to a multiple of eight rows with rows of weight zero.
    """

    def __init__(self, family: type[Any], X: Array, weights: Array) -> None:
        self.family, self.n = family, len(X)
        self.columns = np.empty((X.shape[1], self.n + -self.n % 8))
        self.columns[:, : self.n], self.columns[:, self.n :] = X.T, X[-1:].T
        self.weights = self.filled_up(weights)

    def filled_up(self, table: Array) -> Array:
        """A table (..., n) with a zero for every row that fills up."""
        out = np.zeros((*table.shape[:-1], self.columns.shape[1]))
        out[..., : self.n] = table
        return out

    def steps(
        self,
        prior: ComponentPrior,
        smoothing: float,
        start: Point | Array,
        n_steps: int,
        *,
        least: float = -np.inf,
        last: bool = False,
    ) -> tuple[Array, Point | None, bool]:
        """EM steps of a mixture until one gains less than `least`.

        Parameters
        ----------
        prior : ComponentPrior
        smoothing : float
            Pseudo-counts of the weights.
        start : point, or ndarray (k, n)
            Weights and members, or shares of the rows, from which these are fitted.
        n_steps : int
        least : float, default=-inf
        last : bool, default=False
            Whether the objective of the last point is wanted.

        Returns
        -------
        objectives : ndarray
            Before every step, and with `last` at the last point.
        point
            None if it could not be fitted to shares.
        done : bool
            False where a step needs care, which the point then is before.
        """
        if isinstance(start, tuple):
            k = len(start[0])
        else:
            k, start = len(start), self.filled_up(start)
        own = prior.of_spreads(k, len(self.columns))
        rows = self.columns, self.weights
        found = self.family._em_steps(rows, own, smoothing, start, n_steps, least, last)
        return found


def overall(
    family: type[Any], X: Array, weights: Array, options: dict[str, Any], k: int
) -> Any:
    """Equal members (k,) fitted to rows, of Gaussians to each column alone."""
    if "layout" in options:
        return family(
            {
                tuple(own): overall(kind, X[:, list(own)], weights, more, k)
                for own, kind, more in options["layout"]
            }
        )
    if not family._fills_gaps:
        return family.fit(X, np.tile(weights, (k, 1)), **options)
    mean, var = observed_moments(X, weights)
    spread = family._spread_of_variances(var)
    return family(np.tile(mean, (k, 1)), np.tile(spread, (k,) + (1,) * spread.ndim))


def log_densities(batch: Any, X: ArrayLike) -> Array:
    """Log-densities (k, n) of rows; of Gaussians, of what is not NaN."""
    X = v.as_doubles("X", X)
    fits = batch._takes_gaps and X.shape[1:] == batch.event_shape
    if fits and np.isnan(X).any():
        refuse_infinite(X)
        return np.asarray(batch._log_prob_of_seen(X))
    return np.asarray(batch.log_prob(X))


def posterior_of(joint: Array) -> tuple[Array, Array]:
    """Logarithms (n,) of sums over members, and their shares (k, n).

    Shares are NaN where no member can show a row. Blocks of rows stay in the cache.
    """
    total, shares = np.empty(joint.shape[1]), np.empty(joint.shape)
    step = max(1, _BLOCK // len(joint))
    for lo in range(0, len(total), step):
        at = slice(lo, lo + step)
        top = joint[:, at].max(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            own = np.subtract(joint[:, at], np.where(top > -np.inf, top, 0.0))
            np.exp(own, out=own)
            size = own.sum(axis=0)
            np.divide(own, size, out=shares[:, at])
            total[at] = top + np.log(size)
    return total, shares


def check_scatter(family: type[Any], X: Array, weights: Array) -> None:
    """Refuse rows of positive weight that have no spread in some direction."""
    try:
        family.fit(X, weights)
        return
    except ValueError as error:
        if "singular" not in str(error) and "constant" not in str(error):
            raise
    n, d = X.shape
    constant = constant_columns(X)
    if constant.any():
        raise ValueError(
            f"column {int(np.argmax(constant))} of X is constant, so its variance is "
            "zero; drop it, or add noise of the size of its resolution."
        )
    raise ValueError(
        f"the covariance of X ({n} rows of {d} columns) is singular: full covariances "
        f"need at least {d + 1} rows that are not in one plane. Drop columns that "
        "follow from others (one of shares that sum to one), add rows, or use "
        "DiagonalGaussian."
    )


def constant_columns(rows: Array) -> NDArray[np.bool_]:
    """Columns whose observed entries are all equal; none may be empty."""
    return np.asarray(np.nanmin(rows, axis=0) == np.nanmax(rows, axis=0))
