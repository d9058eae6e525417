"""Members of a family fitted to shares of rows: components of mixtures, hidden states.

Of Gaussians, rows may miss entries (NaN): densities are those of what was observed, and
in the M step every member fills in the rest at its expectation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._support import validation as v
from maxent.families import DiagonalGaussian, ExponentialFamily, Gaussian
from maxent.families.gaussian import AnyGaussian
from maxent.models._component_prior import ComponentPrior, prior_of_groups
from maxent.models._partial import (
    expected_fit,
    marginal_table,
    observed_moments,
    refuse_infinite,
    with_column_means,
)

Array = NDArray[np.float64]


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
        self.options = {} if options is None else options
        self.prior = ComponentPrior(family)  # none until groups are known
        self.partial = takes_gaps(family) and bool(np.isnan(X).any())

    def filled(self) -> Array:
        """Rows with the means of the columns in the place of missing entries."""
        return with_column_means(self.X, self.weights) if self.partial else self.X

    def set_prior(self, labels: NDArray[np.intp], k: int, count: float) -> None:
        """Prior of k members from a partition of the rows."""
        X = self.filled()
        self.prior = prior_of_groups(self.family, X, self.weights, labels, k, count)

    def log_prob(self, batch: Any) -> Array:
        """Log-densities (k, n) of the rows."""
        return log_densities(batch, self.X)

    def fit(self, mass: Array, old: Any) -> Any:
        """M step from weights (k, n) of the rows; what nothing decides stays as it is.

        `old` is None where there are no members yet.
        """
        used = self.prior.decides(mass.sum(axis=1))
        prior = self.prior.of_members(used)
        if self.partial:
            old = self._overall(len(mass)) if old is None else old
            moments = expected_fit(self.X, mass[used], old[used])
            fitted = prior.blended(mass[used].sum(axis=1), *moments)
        else:
            fitted = prior.fit(self.X, mass[used], **self.options)
        return in_place(fitted, old, used)

    def one(self) -> Any:
        """One member for all rows."""
        if takes_gaps(self.family):
            return self._overall(1)
        return self.family.fit(self.X, self.weights[None], **self.options)

    def _overall(self, k):
        """Equal Gaussians, with the means and variances of what was observed."""
        mean, var = observed_moments(self.X, self.weights)
        spread = {Gaussian: np.diag(var), DiagonalGaussian: var}
        own = np.asarray(spread.get(self.family, var.mean()))
        return self.family(np.tile(mean, (k, 1)), np.tile(own, (k,) + (1,) * own.ndim))


def takes_gaps(family: type[ExponentialFamily]) -> bool:
    """True if rows of the family may miss entries."""
    return issubclass(family, AnyGaussian)


def log_densities(batch: Any, X: ArrayLike) -> Array:
    """Log-densities (k, n) of rows; of Gaussians, of what is not NaN."""
    X = v.as_doubles("X", X)
    fits = takes_gaps(type(batch)) and X.shape[1:] == batch.event_shape
    if fits and np.isnan(X).any():
        refuse_infinite(X)
        return marginal_table(batch, X).T
    return np.asarray(batch.log_prob(X))


def in_place(fitted: Any, old: Any, used: NDArray[np.bool_]) -> Any:
    """Members of the fit where used; the others stay as they were."""
    if used.all():
        return fitted
    place = np.where(used, np.cumsum(used) - 1, 0)
    new = fitted[place]
    parts = {}
    for name, value in new.parameters().items():
        if isinstance(value, np.ndarray) and value.shape[:1] == used.shape:
            axes = (slice(None),) + (None,) * (value.ndim - 1)
            value = np.where(used[axes], value, getattr(old, name))
        parts[name] = value
    return type(new)(**parts)


def arrays_of(batch: Any) -> tuple[Array, ...]:
    """Parameters of a batch that a fit changes."""
    inside = batch.parameters().values()
    return tuple(a for a in inside if isinstance(a, np.ndarray))


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
