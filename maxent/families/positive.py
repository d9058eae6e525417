"""Positive numbers: exponential and Gamma distributions."""

from __future__ import annotations

from typing import Self

import numpy as np
from scipy.special import digamma, gammaln

from maxent._support import validation as v
from maxent._support.typing import ArrayLike, FloatArray
from maxent.families import _checks
from maxent.families._charts import RATES, SHAPE
from maxent.families._matching import shape_from_gap
from maxent.families._pairs import weighted_mean
from maxent.families.base import ExponentialFamily


class _Positive(ExponentialFamily):
    @classmethod
    def _inside(cls, X):
        return X >= 0

    @classmethod
    def _support_text(cls):
        return "rows are numbers >= 0"


class Exponential(_Positive):
    """Exponential distributions.

    Parameters
    ----------
    scale : array-like (batch,)
        Means, > 0, in units of the data.

    See Also
    --------
    Gamma : Another shape than 1.

    Notes
    -----
    Statistic: x (k = 1). All affinities exist. `fit` adds `smoothing` >= 0 pseudo-rows
    equal to 1. Shapes, batches and methods are those of `ExponentialFamily`.

    References
    ----------
    Jebara, Kondor & Howard (2004), section 3.4; the bracket printed there in the
    numerator is a denominator.

    Examples
    --------
    >>> from maxent.families import Exponential
    >>> Exponential.fit([1.0, 2.0, 6.0])
    Exponential(scale=3.)
    """

    _core: tuple[tuple[str, int], ...] = (("scale", 0),)
    _chart = RATES
    scale: FloatArray

    def __init__(self, scale: ArrayLike) -> None:
        self._set({"scale": _checks.positive_array("scale", scale)})

    @classmethod
    def _statistics(cls, X):
        return X[..., None]

    def _natural(self):
        return (-1.0 / self.scale)[..., None]

    def _mean(self):
        return self.scale[..., None]

    def _cumulant(self, eta):
        inside = eta[..., 0] < 0
        return np.where(inside, -np.log(-np.where(inside, eta[..., 0], -1.0)), np.inf)

    def _moments(self):
        return self.scale, self.scale**2

    def _sample(self, n, rng):
        return rng.exponential(self.scale[..., None], size=self.batch_shape + (n,))

    @classmethod
    def fit(
        cls,
        X: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        smoothing: float = 0.0,
    ) -> Self:
        smoothing = v.check_nonnegative("smoothing", smoothing)
        X, W, total = cls._rows_to_fit(X, weights)
        mean = weighted_mean(W, total, X[..., None])[..., 0]
        scale = (mean * total + smoothing) / (total + smoothing)
        _refuse_zero(scale, "smoothing > 0")
        return cls(scale)

    @classmethod
    def _solve(cls, mean, total):
        _refuse_zero(mean, "rows of weight")
        return cls(mean[..., 0])


class Gamma(_Positive):
    """Gamma distributions.

    Parameters
    ----------
    shape : array-like (batch,)
        Shapes a, > 0.
    scale : array-like (batch,)
        Scales b, > 0, in units of the data; the mean is ``shape * scale``.

    See Also
    --------
    Exponential : Shape 1.
    Wishart : The same for matrices.

    Notes
    -----
    Statistics: log x and x (k = 2). The affinity of a pair is finite if
    ``rho (a + a' - 2) > -1``, of all pairs if every ``a > 1 - 1 / (2 rho)``. Shapes,
    batches and methods are those of `ExponentialFamily`.

    Examples
    --------
    >>> from maxent.families import Gamma
    >>> P = Gamma(shape=[0.5, 2.0], scale=1.0)
    >>> P.log_affinity(P, 1.0).round(4)
    array([[    inf, -1.7329],
           [-1.7329, -1.3863]])
    >>> P.affinity_range()[1]
    array([ 1., inf])
    """

    _core: tuple[tuple[str, int], ...] = (("shape", 0), ("scale", 0))
    _chart = SHAPE
    shape: FloatArray
    scale: FloatArray

    def __init__(self, shape: ArrayLike, scale: ArrayLike) -> None:
        shape = _checks.positive_array("shape", shape)
        self._set({"shape": shape, "scale": _checks.positive_array("scale", scale)})

    @classmethod
    def _statistics(cls, X):
        with np.errstate(divide="ignore"):
            return np.stack([np.log(X), X], axis=-1)

    def _natural(self):
        return np.stack([self.shape - 1.0, -1.0 / self.scale], axis=-1)

    def _mean(self):
        mean_log = digamma(self.shape) + np.log(self.scale)
        return np.stack([mean_log, self.shape * self.scale], axis=-1)

    def _cumulant(self, eta):
        inside = (eta[..., 0] > -1) & (eta[..., 1] < 0)
        a = np.where(inside, eta[..., 0] + 1.0, 1.0)
        rate = np.where(inside, -eta[..., 1], 1.0)
        return np.where(inside, gammaln(a) - a * np.log(rate), np.inf)

    def _natural_of_mean(self, mean):
        summary = mean[:, 1], np.log(mean[:, 1]) - mean[:, 0]
        return self._solve(summary, None).natural_parameters

    def _affinity_range(self):
        return 0.0, largest_power(self.shape)

    def _moments(self):
        mean = self.shape * self.scale
        return mean, mean * self.scale

    def _sample(self, n, rng):
        size = self.batch_shape + (n,)
        return rng.gamma(self.shape[..., None], self.scale[..., None], size=size)

    @classmethod
    def _summary(cls, X, W, total):
        super()._summary(X, W, total)  # refuses zeros
        mean = weighted_mean(W, total, X[..., None])[..., 0]
        # relative to the mean, so that narrow distributions keep their digits
        ratio = X / mean[..., None]
        u = (X - mean[..., None]) / mean[..., None]
        close = np.abs(u) < 0.5
        logs = np.where(close, np.log1p(np.where(close, u, 0.0)), np.log(ratio))
        return mean, (W / total[..., None] * (u - logs)).sum(axis=-1)

    @classmethod
    def _solve(cls, summary, total):
        mean, gap = summary
        if not (gap > 1e-28).all():  # rounding of equal rows leaves less
            raise ValueError(
                "all rows of a fit are equal, so the likelihood has no maximum: the "
                "shape would be infinite. Add rows that differ, or use Exponential."
            )
        shape = shape_from_gap(gap)
        return cls(shape, mean / shape)


def largest_power(shape):
    """Supremum of rho with 2 rho (shape - 1) > -1."""
    with np.errstate(divide="ignore"):
        return np.where(shape < 1, 0.5 / np.maximum(1.0 - shape, 0.0), np.inf)


def _refuse_zero(scale, remedy):
    if not (scale > 0).all():
        raise ValueError(
            "all rows of a fit are zero, so the scale would be zero. Add rows that are "
            f"positive, or set {remedy}."
        )
