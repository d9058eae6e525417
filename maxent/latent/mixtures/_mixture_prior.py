"""Priors of Gaussian mixtures.

Source: Gauvain & Lee (1994); Wang, Schuurmans & Zhao (2012), eqs. (33)-(37).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maxent._support import validation as v
from maxent.families._checks import is_symmetric, least_of_correlation
from maxent.families._within import covariance_within


@dataclass(frozen=True, eq=False)
class MixturePrior:
    """Prior of a Gaussian mixture: Dirichlet weights, normal-Wishart components.

    ``log prior = (nu - 1) sum log theta_k + sum_k [(a - d)/2 log|P_k| - tau/2 (mu_k -
    m)' P_k (mu_k - m) - tr(V P_k)/2]``, with precisions ``P = Sigma^{-1}``. The same
    for all components.

    Parameters
    ----------
    mean : array-like (d,)
        m, where means are expected.
    scale : array-like (d, d)
        V, symmetric and positive definite, in squared units of the data.
    mean_count : float, default=0.01
        tau > 0: the prior of a mean counts as so many rows.
    df : float, optional
        a > d; None is d + 2, so that the prior counts as two rows.
    weight_count : float, default=1.0
        nu >= 1; 1 is flat.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.latent import MixturePrior
    >>> MixturePrior(mean=np.zeros(2), scale=np.eye(2)).df
    4.0
    """

    mean: ArrayLike
    scale: ArrayLike
    mean_count: float = 0.01
    df: float | None = None
    weight_count: float = 1.0

    def __post_init__(self):
        mean, scale = v.as_doubles("mean", self.mean), v.as_doubles("scale", self.scale)
        d = len(mean) if mean.ndim == 1 else 0
        if d == 0 or scale.shape != (d, d):
            raise ValueError(
                f"mean has shape {mean.shape} and scale {scale.shape}; expected (d,) "
                "and (d, d)."
            )
        if not (np.isfinite(mean).all() and np.isfinite(scale).all()):
            raise ValueError("mean and scale must be finite.")
        if not is_symmetric(scale) or least_of_correlation(scale) <= 0:
            raise ValueError("scale must be symmetric and positive definite.")
        df = float(d + 2 if self.df is None else v.check_positive("df", self.df))
        if df <= d:
            raise ValueError(f"df={df:g} must be above d={d}: a > d keeps Sigma > 0.")
        if v.check_positive("weight_count", self.weight_count) < 1:
            raise ValueError(
                f"weight_count={self.weight_count:g} must be >= 1; below, weights "
                "could become negative."
            )
        v.check_positive("mean_count", self.mean_count)
        for name, value in (("mean", mean), ("scale", scale), ("df", df)):
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = self.get_spec().values(), other.get_spec().values()
        return all(map(np.array_equal, mine, theirs))

    def __hash__(self) -> int:
        return hash((type(self), self.df, self.mean_count, self.weight_count))

    @classmethod
    def weak(
        cls,
        X: ArrayLike,
        weights: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        weight_count: float = 1.0,
    ) -> MixturePrior:
        """Prior at the mean of rows, with their covariance as its scale.

        Parameters
        ----------
        X : array-like (n_samples, d)
            Rows.
        weights : array-like (n_samples,), optional
            Weights >= 0 of the rows.
        groups : array-like of int (n_samples,), optional
            Labels >= 0 of groups. The scale is then the covariance within them, and
            the mean counts so much less that it may be that of any group: groups far
            apart do not widen each other.
        weight_count : float, default=1.0
            nu.

        Returns
        -------
        MixturePrior
        """
        X = v.as_doubles("X", X)
        w = np.ones(len(X)) if weights is None else v.check_weights(weights, len(X))
        mean = w @ X / w.sum()
        R = X - mean
        cov = (R.T * w) @ R / w.sum()
        mean_count = cls.mean_count
        if groups is not None:
            overall = np.diag(cov)
            cov = covariance_within(X, w, groups)
            varies = overall > 0
            share = np.diag(cov)[varies] / overall[varies]
            mean_count *= float(share.min(initial=1.0))
        var = np.diag(cov)
        # constant columns have no unit of their own: they take the mean of the others
        other = var[var > 0].mean() if (var > 0).any() else 1e6
        ridge = 1e-6 * np.where(var > 0, var, other)
        return cls(mean, cov + np.diag(ridge), mean_count, weight_count=weight_count)

    def get_spec(self) -> dict[str, Any]:
        """Parameters, as model files keep them.

        Returns
        -------
        dict
            Names and values.
        """
        names = ("mean", "scale", "mean_count", "df", "weight_count")
        return {name: getattr(self, name) for name in names}
