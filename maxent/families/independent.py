"""Gaussian distributions of independent coordinates: diagonal and spherical."""

from __future__ import annotations

import functools
import math

import numpy as np

from maxent._support.typing import ArrayLike, FloatArray
from maxent.families import _checks
from maxent.families._pairs import squared_distances, tiles
from maxent.families.gaussian import AnyGaussian, of_member


class DiagonalGaussian(AnyGaussian):
    """Gaussian distributions of independent coordinates.

    Parameters
    ----------
    mean : array-like (batch, d)
        Means.
    var : array-like (batch, d)
        Variances, > 0.

    See Also
    --------
    Gaussian : Full covariance matrices.

    Notes
    -----
    Statistics: x and x^2 of every coordinate (k = 2 d). All affinities exist. They cost
    O(d) per pair. Shapes, batches and methods are those of `ExponentialFamily`.

    Examples
    --------
    >>> from maxent.families import DiagonalGaussian
    >>> P = DiagonalGaussian.fit([[0.0, 1.0], [2.0, 5.0]])
    >>> P
    DiagonalGaussian(mean=[1., 3.], var=[1., 4.])
    """

    _core: tuple[tuple[str, int], ...] = (("mean", 1), ("var", 1))
    _spread_axes = 1
    var: FloatArray

    def __init__(self, mean: ArrayLike, var: ArrayLike) -> None:
        mean = _checks.real_array("mean", mean, 1)
        var = _checks.positive_array("var", var, 1)
        if var.shape[-1] != mean.shape[-1]:
            raise ValueError(
                f"mean has shape {mean.shape} but var has shape {var.shape}; their "
                "last axes must have one size."
            )
        self._set({"mean": mean, "var": var})

    @functools.cached_property
    def _log_det(self):
        return np.log(self.var).sum(axis=-1)

    @classmethod
    def _statistics(cls, X):
        return np.concatenate([X, X * X], axis=-1)

    def _natural(self):
        return np.concatenate([self.mean / self.var, -0.5 / self.var], axis=-1)

    def _mean(self):
        return np.concatenate([self.mean, self.mean**2 + self.var], axis=-1)

    def _cumulant(self, eta):
        h, k = eta[..., : self._d], -2.0 * eta[..., self._d :]
        return _independent_cumulant(h, k)

    def _own_distance(self, R):
        return (R * R / self.var[..., None, :]).sum(axis=-1)

    def _covariances(self):
        return self.var

    def _packed_roots(self):
        return 1.0 / np.sqrt(self.var)

    @classmethod
    def _packed(cls, spread, d):
        return np.array(spread)

    @classmethod
    def _unpacked(cls, packed):
        return packed

    @classmethod
    def _spread_of_variances(cls, var):
        return var

    def _mean_distance(self, spread):
        return (spread / self.var).sum(axis=-1)

    def _moments(self):
        return self.mean, self.var

    def _sample(self, n, rng):
        z = rng.normal(size=self.batch_shape + (n, self._d))
        return self.mean[..., None, :] + z * np.sqrt(self.var)[..., None, :]

    def _kl(self, other):
        out = np.empty((len(self), len(other)))
        for rows in tiles(len(self), other.mean.size):
            R = self.mean[rows, None] - other.mean
            ratio = self.var[rows, None] / other.var
            terms = R * R / other.var + ratio - 1.0 - np.log(ratio)
            out[rows] = 0.5 * terms.sum(axis=-1)
        return out

    def _pair_terms(self, other):
        log_det, distance = np.empty((2, len(self), len(other)))
        for rows in tiles(len(self), other.mean.size):
            total = self.var[rows, None] + other.var
            R = self.mean[rows, None] - other.mean
            log_det[rows] = np.log(total).sum(axis=-1)
            distance[rows] = (R * R / total).sum(axis=-1)
        return log_det, distance

    @classmethod
    def _spread_shape(cls, d):
        return (d,)

    @classmethod
    def _spread(cls, R, share, smoothing):
        return np.matmul(share[..., None, :], R * R)[..., 0, :] + smoothing

    @classmethod
    def _check_spread(cls, var, rounding, smoothing):
        wrong = var <= rounding
        if wrong.any():
            raise ValueError(
                f"column {_checks.first(wrong)[-1]} of X is constant"
                f"{of_member(wrong.any(axis=-1))}, so its variance is zero. Drop it, "
                "add rows, or set smoothing > 0 (a ridge)."
            )


class SphericalGaussian(AnyGaussian):
    """Gaussian distributions with one variance for all coordinates.

    Parameters
    ----------
    mean : array-like (batch, d)
        Means.
    var : array-like (batch,)
        Variance of every coordinate, > 0.

    See Also
    --------
    DiagonalGaussian : One variance for each coordinate.

    Notes
    -----
    Statistics: x and ``|x|^2`` (k = d + 1). All affinities exist. They cost one matrix
    product. With equal variances the normalised affinity is the RBF kernel with
    ``gamma = rho / (4 var)``. Shapes, batches and methods are those of
    `ExponentialFamily`.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.families import SphericalGaussian
    >>> P = SphericalGaussian([[0.0, 0.0], [1.0, 1.0]], var=0.5)
    >>> L = P.log_affinity(P, 1.0)
    >>> round(float(L[0, 1] - L[0, 0]), 12)  # log of the RBF kernel with gamma = 1/2
    -1.0
    """

    _core: tuple[tuple[str, int], ...] = (("mean", 1), ("var", 0))
    _spread_axes = 0
    var: FloatArray

    def __init__(self, mean: ArrayLike, var: ArrayLike) -> None:
        mean = _checks.real_array("mean", mean, 1)
        self._set({"mean": mean, "var": _checks.positive_array("var", var)})

    @functools.cached_property
    def _log_det(self):
        return self._d * np.log(self.var)

    @classmethod
    def _statistics(cls, X):
        return np.concatenate([X, np.square(X).sum(axis=-1, keepdims=True)], axis=-1)

    def _natural(self):
        var = self.var[..., None]
        return np.concatenate([self.mean / var, -0.5 / var], axis=-1)

    def _mean(self):
        square = np.square(self.mean).sum(axis=-1) + self._d * self.var
        return np.concatenate([self.mean, square[..., None]], axis=-1)

    def _cumulant(self, eta):
        h, k = eta[..., : self._d], -2.0 * eta[..., self._d :]
        return _independent_cumulant(h, k)

    def _own_distance(self, R):
        return np.square(R).sum(axis=-1) / self.var[..., None]

    def _covariances(self):
        return self.var

    def _packed_roots(self):
        return np.broadcast_to(1.0 / np.sqrt(self.var)[..., None], self.mean.shape)

    @classmethod
    def _packed(cls, spread, d):
        return np.repeat(spread, d).reshape(-1, d)

    @classmethod
    def _unpacked(cls, packed):
        return packed.mean(axis=1)

    @classmethod
    def _spread_of_variances(cls, var):
        return var.mean()

    def _mean_distance(self, spread):
        return self._d * spread / self.var

    def _moments(self):
        return self.mean, np.broadcast_to(self.var[..., None], self.mean.shape)

    def _sample(self, n, rng):
        z = rng.normal(size=self.batch_shape + (n, self._d))
        return self.mean[..., None, :] + z * np.sqrt(self.var)[..., None, None]

    def _kl(self, other):
        distance = squared_distances(self.mean, other.mean) / other.var
        ratio = self.var[:, None] / other.var
        return 0.5 * (distance + self._d * (ratio - 1.0 - np.log(ratio)))

    def _pair_terms(self, other):
        total = self.var[:, None] + other.var
        distance = squared_distances(self.mean, other.mean)
        return self._d * np.log(total), distance / total

    @classmethod
    def _spread_shape(cls, d):
        return ()

    @classmethod
    def _spread(cls, R, share, smoothing):
        return (share * np.square(R).mean(axis=-1)).sum(axis=-1) + smoothing

    @classmethod
    def _check_spread(cls, var, rounding, smoothing):
        wrong = var <= rounding.max()
        if wrong.any():
            raise ValueError(
                f"all rows of X are equal{of_member(wrong)}, so the variance is zero. "
                "Add rows, or set smoothing > 0 (a ridge)."
            )


def _independent_cumulant(h, k):
    """A of coordinates with precisions k and linear parameters h = k * mean."""
    inside = (k > 0).all(axis=-1)
    k = np.where(inside[..., None], k, 1.0)
    value = 0.5 * (h * h / k - np.log(k / (2.0 * math.pi)))
    return np.where(inside, value.sum(axis=-1), np.inf)
