"""Gaussian distributions: full, diagonal and spherical covariance.

Affinities are computed from one Cholesky factorisation of S + S' per pair,

    log int p^r q^r = (1/2 - r) d log 2pi - (d/2) log r + (1 - r)/2 (log|S| + log|S'|)
                      - (1/2) log|S + S'| - (r/2) (m - m')' (S + S')^{-1} (m - m'),

which equals eq. (5) of Jebara, Kondor & Howard (2004) but needs no inverse and loses no
digits to means far from the origin.
"""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import solve_triangular

from maxent._core.mixture import em_pass, em_steps, moments, squared_lengths
from maxent._support import validation as v
from maxent._support.typing import ArrayLike, FloatArray
from maxent.families import _checks
from maxent.families._gaps import expected_sums, imputed, log_prob_of_seen
from maxent.families._minimal import of_symmetric
from maxent.families._pairs import squared_distances, sum_log_det, tiles, weighted_mean
from maxent.families.base import ExponentialFamily

_LOG_2PI = math.log(2.0 * math.pi)
_REMEDY = "Add a ridge to its diagonal, or use DiagonalGaussian."


class AnyGaussian(ExponentialFamily):
    """Base class of the three Gaussians: d, rows, the affinity; fits of means."""

    _takes_gaps = _fills_gaps = True
    _spread_axes: ClassVar[int]  # of the (co)variances of one distribution
    _n_sums = 2
    mean: FloatArray

    @property
    def event_shape(self) -> tuple[int, ...]:
        return self.mean.shape[-1:]

    @classmethod
    def _event_to_fit(cls, **fixed):
        return (None,)

    @classmethod
    def _support_text(cls, **fixed):
        return "rows are vectors of real numbers"

    @property
    def _d(self):
        return self.mean.shape[-1]

    def _log_prob(self, X):
        if X.ndim == 2:
            distance = self._distances_of_rows(X)
        else:
            distance = self._own_distance(X - self.mean[..., None, :])
        distance += (self._log_det + self._d * _LOG_2PI)[..., None]
        distance *= -0.5
        return distance

    def _log_prob_of_seen(self, X):
        return log_prob_of_seen(self, X)

    def _imputed(self, X, shares):
        return imputed(self, X, shares)

    def _entropy(self):
        return 0.5 * (self._log_det + self._d * (_LOG_2PI + 1.0))

    def _affinity(self, other, rho):
        log_det, distance = self._pair_terms(other)
        own = self._log_det[:, None] + other._log_det
        constant = (0.5 - rho) * self._d * _LOG_2PI - 0.5 * self._d * math.log(rho)
        return constant + 0.5 * ((1.0 - rho) * own - log_det - rho * distance)

    # -- the matrix or the variances of one distribution, without its batch axes ---
    @classmethod
    @abstractmethod
    def _spread_shape(cls, d: int) -> tuple[int, ...]:
        """Shape of (co)variances in d dimensions."""

    @abstractmethod
    def _covariances(self) -> FloatArray:
        """Covariance matrices (batch, d, d), or the variances of simpler ones."""

    @abstractmethod
    def _packed_roots(self) -> FloatArray:
        """Inverse factors (batch, d (d + 1) / 2), or one over deviations (batch, d)."""

    def _distances_of_rows(self, X):
        """Squared Mahalanobis distances (batch, n) of rows."""
        roots = np.ascontiguousarray(self._packed_roots())
        mean = np.ascontiguousarray(self.mean).reshape(-1, self._d)
        roots = roots.reshape(len(mean), roots.shape[-1])
        X, diagonal = np.ascontiguousarray(X), self._spread_axes < 2
        out = squared_lengths(X, diagonal, mean, roots)
        return out.reshape(*self.batch_shape, len(X))

    @classmethod
    @abstractmethod
    def _spread_of_variances(cls, var: FloatArray) -> FloatArray:
        """(Co)variances of independent coordinates of these variances (d,)."""

    @classmethod
    def _shared(cls, spread: FloatArray, total: FloatArray) -> FloatArray:
        """(Co)variances of members that have these, from rows of these weights."""
        return spread

    def _with_held(self, old, held, total, count):
        """This M step, with means and (co)variances of `old` members that are held.

        About a mean that is held the scatter is larger by the square of its distance,
        which has the part of the `total` rows beside `count` pseudo-observations.
        """
        none = np.zeros(len(self), dtype=bool)
        keep_mean, keep_cov = held.get("mean", none), held.get("cov", none)
        mean = np.where(keep_mean[:, None], old.mean, self.mean)
        share = np.divide(total, total + count, out=0.0 * total, where=total > 0)
        apart = self._spread((mean - self.mean)[:, None], np.ones(1), 0.0)
        axes = (slice(None),) + (None,) * (apart.ndim - 1)
        spread = self._covariances() + self._shared(share[axes] * apart, total + count)
        spread = np.where(keep_cov[axes], old._covariances(), spread)
        return type(self)(mean, spread)

    @abstractmethod
    def _mean_distance(self, spread: FloatArray) -> FloatArray:
        """tr(S^{-1} W): mean squared length of vectors with the (co)variance W."""

    @classmethod
    @abstractmethod
    def _spread(cls, R: FloatArray, share: FloatArray, smoothing: float) -> FloatArray:
        """(Co)variances of centred rows with weights that sum to one."""

    @classmethod
    @abstractmethod
    def _check_spread(
        cls, spread: FloatArray, rounding: FloatArray, smoothing: float
    ) -> None:
        """Refuse (co)variances that are singular."""

    @classmethod
    def fit(
        cls,
        X: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        smoothing: float = 0.0,
    ) -> Self:
        """Weighted mean and (co)variance.

        Parameters
        ----------
        X : array-like (..., n_samples, d)
            Rows. Leading axes give one fit each.
        weights : array-like (n_samples,) or (..., n_samples), optional
            Weights >= 0 of the rows. Leading axes give one fit each.
        smoothing : float, default=0.0
            Ridge: a variance >= 0 that is added to every coordinate's, in squared units
            of the data.

        Returns
        -------
        value
            Of this class; its batch shape is that of the leading axes.

        Raises
        ------
        ValueError
            If a fit's weights sum to zero, or the scatter is singular without ridge.
        """
        smoothing = v.check_nonnegative("smoothing", smoothing)
        X, W, total = cls._rows_to_fit(X, weights)
        mean, spread, rounding = cls._weighted_moments(X, W, total, smoothing)
        spread = cls._shared(spread, total)
        cls._check_spread(spread, rounding, smoothing)
        return cls(mean, spread)  # type: ignore[call-arg]

    @classmethod
    def _weighted_moments(cls, X, W, total, smoothing=0.0):
        """Means and (co)variances of weighted rows, and what rounding leaves of none.

        A (co)variance may be singular here.
        """
        v.check_range("X", X)
        largest = np.abs(X).reshape(-1, X.shape[-1]).max(axis=0)
        # about one of the rows: of a constant column exactly nothing is left
        origin = X[..., :1, :]
        X = X - origin
        mean = weighted_mean(W, total, X)
        W = np.broadcast_to(W / total[..., None], mean.shape[:-1] + W.shape[-1:])
        X = np.broadcast_to(X, mean.shape[:-1] + X.shape[-2:])
        batch, (n, d) = mean.shape[:-1], X.shape[-2:]
        spread = np.empty((math.prod(batch), *cls._spread_shape(d)))
        numbers = np.arange(len(spread)).reshape(batch)
        for part in tiles(len(spread), n * d):
            at: tuple[Any, ...] = (None,)
            if batch:
                at = np.unravel_index(numbers.reshape(-1)[part], batch)
            R = X[at] - mean[at][:, None, :]
            spread[part] = cls._spread(R, W[at], smoothing)
        spread = spread.reshape(batch + spread.shape[1:])
        rounding = (8 * np.finfo(float).eps * largest) ** 2
        return mean + origin[..., 0, :], spread, rounding

    def _part_sums(self, X, W):
        if np.isnan(X).any():
            return expected_sums(X, W, self)
        # about the means of this batch, which keeps the digits of small variances
        mean = np.ascontiguousarray(self.mean)
        X, W = np.ascontiguousarray(X), np.ascontiguousarray(W)
        total, first, packed = moments(X, W, self._spread_axes < 2, mean)
        return total, first, self._unpacked(packed)

    def _em_sums(self, weights, columns, row_weights):
        """Log-likelihood and the sums of `_part_sums` of one EM step of a mixture.

        `columns` (d, rows) hold the rows, filled up to a multiple of eight with rows of
        weight zero. Not finite where densities leave the range of doubles.
        """
        mean = np.ascontiguousarray(self.mean)
        roots = np.ascontiguousarray(self._packed_roots())
        with np.errstate(divide="ignore"):
            log_scale = np.log(weights) - 0.5 * (self._log_det + self._d * _LOG_2PI)
        log_scale = np.maximum(log_scale, -1e300)
        value, total = np.zeros(1), np.zeros((1, len(mean)))
        first, packed = np.zeros((1, *mean.shape)), np.zeros((1, *roots.shape))
        em_pass(
            columns,
            row_weights,
            self._spread_axes < 2,
            *(log_scale[None], mean[None], roots[None]),
            *(value, total, first, packed),
            1,
        )
        return float(value[0]), total[0], first[0], self._unpacked(packed[0])

    @classmethod
    def _em_steps(cls, rows, prior, smoothing, start, n_steps, least, last):
        """EM steps of a mixture, as `em_steps` takes and describes them.

        `rows` are columns (d, n) and weights (n,), `prior` counts (K,) and the
        (co)variance of one member; `start` is a point (weights, members), or shares
        (K, n) of the rows. With `last` the objective of the last point is wanted.
        Returns the objectives, the point, and whether the steps are done.
        """
        (columns, _), (count, spread) = rows, prior
        d, shares, point = len(columns), np.empty((0, 0)), start
        if isinstance(start, tuple):
            weights, members = start
            own = np.array(weights), np.array(members.mean)
            own = *own, cls._packed(members._covariances(), d)
        else:
            shares, k, point = start, len(start), None
            own = np.empty(k), np.empty((k, d)), cls._packed(np.array([spread] * k), d)
        objective, within = np.empty(n_steps + last), cls._packed(spread[None], d)[0]
        taken, done = em_steps(
            *(*rows, cls._spread_axes, smoothing, np.ascontiguousarray(count), within),
            *(shares, *own, objective, n_steps, least),
        )
        if taken or done:
            weights, mean, spread = own
            names = [name for name, _ in cls._core]
            parameters = dict(zip(names, (mean, cls._unpacked(spread)), strict=True))
            point = weights, cls._from_valid(parameters, {})
        return objective[: taken + 1], point, done

    @classmethod
    @abstractmethod
    def _packed(cls, spread: FloatArray, d: int) -> FloatArray:
        """Lower triangles of matrices, or variances (batch, d), in new memory."""

    @classmethod
    @abstractmethod
    def _unpacked(cls, packed: FloatArray) -> FloatArray:
        """(Co)variances from lower triangles, or from variances (batch, d)."""

    def _own_sums(self, total):
        spread = self._covariances()
        each = total.reshape(-1, *(1,) * (spread.ndim - 1))
        return total, np.zeros(self.mean.shape), each * spread

    def _refitted(self, total, *sums):
        mean, spread, rounding = self._moments_of_sums(total, *sums)
        spread = self._shared(spread, total)
        self._check_spread(spread, rounding, 0.0)
        return type(self)(mean, spread)

    def _moments_of_sums(self, total, *sums):
        """As `_weighted_moments`, from sums of `_part_sums`."""
        shift, spread = (s / total.reshape(-1, *(1,) * (s.ndim - 1)) for s in sums)
        spread -= self._spread(shift[:, None], np.ones(1), 0.0)
        mean = self.mean + shift
        rounding = (8 * np.finfo(float).eps * np.abs(mean).max(axis=0)) ** 2
        return mean, spread, rounding


class Gaussian(AnyGaussian):
    """Gaussian distributions with full covariance matrices.

    Parameters
    ----------
    mean : array-like (batch, d)
        Means.
    cov : array-like (batch, d, d)
        Covariance matrices, symmetric and positive definite.

    See Also
    --------
    DiagonalGaussian : Independent coordinates.
    SphericalGaussian : One variance for all coordinates.

    Notes
    -----
    Statistics: x and x x', flattened (k = d + d^2). All affinities exist. They cost
    O(d^3) per pair. Shapes, batches and methods are those of `ExponentialFamily`.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.families import Gaussian
    >>> P = Gaussian(mean=[[0.0, 0.0], [3.0, 4.0]], cov=np.eye(2))
    >>> P.batch_shape, P.event_shape
    ((2,), (2,))
    >>> np.exp(P.log_affinity(P, 0.5)).round(6)
    array([[1.      , 0.043937],
           [0.043937, 1.      ]])
    """

    _core: tuple[tuple[str, int], ...] = (("mean", 1), ("cov", 2))
    _spread_axes = 2
    cov: FloatArray

    def __init__(self, mean: ArrayLike, cov: ArrayLike) -> None:
        mean = _checks.real_array("mean", mean, 1)
        cov, factor = _checks.positive_definite_array("cov", cov, _REMEDY)
        if cov.shape[-1] != mean.shape[-1]:
            raise ValueError(
                f"mean has shape {mean.shape} but cov has shape {cov.shape}; their "
                "last axes must have one size."
            )
        self._set({"mean": mean, "cov": cov})
        self.__dict__["_factor"] = np.broadcast_to(factor, self.cov.shape)

    @functools.cached_property
    def _factor(self):
        return np.linalg.cholesky(self.cov)

    @functools.cached_property
    def _log_det(self):
        return log_det(self._factor)

    @classmethod
    def _statistics(cls, X):
        outer = X[..., :, None] * X[..., None, :]
        return np.concatenate([X, flattened(outer)], axis=-1)

    def _minimal(self):
        return of_symmetric(self.natural_parameters.shape, self.mean.shape[-1])

    def _natural(self):
        precision = precisions(self._factor)
        linear = np.matmul(precision, self.mean[..., None])[..., 0]
        return np.concatenate([linear, -0.5 * flattened(precision)], axis=-1)

    def _mean(self):
        outer = self.mean[..., :, None] * self.mean[..., None, :]
        return np.concatenate([self.mean, flattened(self.cov + outer)], axis=-1)

    def _cumulant(self, eta):
        d = self._d
        h, K = eta[..., :d], -2.0 * eta[..., d:].reshape(eta.shape[:-1] + (d, d))
        K = 0.5 * (K + K.swapaxes(-2, -1))
        inside = _checks.least_of_correlation(K) > 0
        K = np.where(inside[..., None, None], K, np.eye(d))
        L = np.linalg.cholesky(K)
        z = np.linalg.solve(L, h[..., None])[..., 0]
        value = 0.5 * ((z * z).sum(axis=-1) - log_det(L) + d * _LOG_2PI)
        return np.where(inside, value, np.inf)

    def _own_distance(self, R):
        z = np.linalg.solve(self._factor, R.swapaxes(-2, -1))
        return np.square(z).sum(axis=-2)

    def _covariances(self):
        return self.cov

    def _packed_roots(self):
        i, j = lower_triangle(self._d)
        eye = np.broadcast_to(np.eye(self._d), self._factor.shape)
        return np.linalg.solve(self._factor, eye)[..., i, j]

    @classmethod
    def _packed(cls, spread, d):
        i, j = lower_triangle(d)
        return np.ascontiguousarray(spread[:, i, j])

    @classmethod
    def _unpacked(cls, packed):
        d = (math.isqrt(8 * packed.shape[1] + 1) - 1) // 2
        i, j = lower_triangle(d)
        out = np.empty((len(packed), d, d))
        out[:, i, j] = out[:, j, i] = packed
        return out

    @classmethod
    def _spread_of_variances(cls, var):
        return np.diag(var)

    def _mean_distance(self, spread):
        return inverse_products(self._factor, spread)

    def _moments(self):
        return self.mean, np.diagonal(self.cov, axis1=-2, axis2=-1)

    def _sample(self, n, rng):
        z = rng.normal(size=self.batch_shape + (n, self._d))
        return self.mean[..., None, :] + np.matmul(z, self._factor.swapaxes(-2, -1))

    def _kl(self, other):
        d, out = self._d, np.empty((len(self), len(other)))
        # columns of all factors of p and, last, of the differences of means
        columns = np.empty((len(self), d + 1, d))
        columns[:, :d] = self._factor.swapaxes(-2, -1)
        for j in range(len(other)):  # whitened by q, in one triangular solve
            columns[:, d] = self.mean - other.mean[j]
            flat = columns.reshape(-1, d).T
            z = solve_triangular(other._factor[j], flat, lower=True, check_finite=False)
            out[:, j] = np.square(z).reshape(d, -1, d + 1).sum(axis=(0, 2))
        return 0.5 * (out - d + other._log_det - self._log_det[:, None])

    def _pair_terms(self, other):
        if not (_is_shared(self.cov) and _is_shared(other.cov)):
            return sum_log_det(self.cov, other.cov, self.mean, other.mean)
        L = np.linalg.cholesky(self.cov[0] + other.cov[0])
        x, y = (np.linalg.solve(L, P.mean.T).T for P in (self, other))
        log_det = 2.0 * np.log(np.diagonal(L)).sum()
        return log_det, squared_distances(x, y)

    def _n_free(self):
        return self.mean.size + self.mean.size * (self._d + 1) // 2

    @classmethod
    def _spread_shape(cls, d):
        return (d, d)

    @classmethod
    def _spread(cls, R, share, smoothing):
        R = R * np.sqrt(share)[..., None]
        cov = np.matmul(R.swapaxes(-2, -1), R)
        return cov + smoothing * np.eye(R.shape[-1])

    @classmethod
    def _check_spread(cls, cov, rounding, smoothing):
        var = np.diagonal(cov, axis1=-2, axis2=-1)
        d = cov.shape[-1]
        constant = (var <= rounding).any(axis=-1)
        # of a singular correlation matrix rounding leaves about this much
        limit = 10 * d * np.finfo(float).eps
        wrong = constant | (_checks.least_of_correlation(cov) <= limit)
        if wrong.any():
            raise ValueError(
                f"the scatter of the rows is singular{of_member(wrong)} "
                f"(smoothing={smoothing:g}): {d} dimensions need at least {d + 1} rows "
                "that are not in one plane. Add rows, drop a column that follows from "
                "others (one of shares that sum to one), set smoothing > 0 (a ridge), "
                "or use DiagonalGaussian."
            )


class TiedGaussian(Gaussian):
    """Gaussian distributions with one covariance matrix for the whole batch.

    Parameters
    ----------
    mean : array-like (batch, d)
        Means.
    cov : array-like (d, d) or (batch, d, d)
        Covariance matrix, symmetric and positive definite; with batch axes all must be
        equal.

    See Also
    --------
    Gaussian : A matrix for each.

    Notes
    -----
    A fit with leading axes pools the scatter of all members about their own means:
    ``sum_h n_h S_h / sum_h n_h``. Affinities and relative entropies cost one matrix
    product. Shapes, batches and methods are those of `ExponentialFamily`.

    Examples
    --------
    >>> from maxent.families import TiedGaussian
    >>> P = TiedGaussian.fit([[0.0], [2.0], [7.0], [9.0]], [[1, 1, 0, 0], [0, 0, 1, 1]])
    >>> P.mean.ravel(), P.cov[0]
    (array([1., 8.]), array([[1.]]))
    """

    _fits_apart = False

    def __init__(self, mean: ArrayLike, cov: ArrayLike) -> None:
        cov = _checks.real_array("cov", cov, 2)
        each = cov.reshape(-1, *cov.shape[-2:])
        if (each != each[:1]).any():
            raise ValueError(
                f"cov has shape {cov.shape} and its matrices differ; give one for all, "
                "or use Gaussian."
            )
        super().__init__(mean, each[0])

    def _n_free(self):
        return self.mean.size + self._d * (self._d + 1) // 2

    def _with_held(self, old, held, total, count):
        kept = held.get("cov")
        if kept is not None and kept.any() != kept.all():
            raise ValueError(
                f"fixed['cov'] holds {np.count_nonzero(kept)} of {len(kept)} members, "
                "which share one covariance; hold it of all or of none."
            )
        return super()._with_held(old, held, total, count)

    @classmethod
    def _shared(cls, spread, total):
        total = np.broadcast_to(total, spread.shape[:-2])
        pooled = np.tensordot(total / total.sum(), spread, axes=total.ndim)
        return np.broadcast_to(pooled, spread.shape)

    @classmethod
    def _concatenated(cls, batches):
        return Gaussian._concatenated(batches)

    def _replaced(self, used, new):
        mean = np.array(self.mean)
        mean[used] = new.mean
        return type(self)(mean, new.cov[0])


@functools.lru_cache(maxsize=16)
def lower_triangle(d):
    """Rows and columns of the entries of a lower triangle, row by row."""
    return np.tril_indices(d)


def log_det(factor):
    """Log-determinants of the matrices with these lower Cholesky factors."""
    return 2.0 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)


def precisions(factor):
    """Inverses of the matrices with these lower Cholesky factors."""
    d = factor.shape[-1]
    root = np.linalg.solve(factor, np.broadcast_to(np.eye(d), factor.shape))
    return np.matmul(root.swapaxes(-2, -1), root)


def inverse_products(factor, matrix):
    """tr(S^{-1} W) of the matrices S with these lower Cholesky factors."""
    inside = np.linalg.solve(factor, np.broadcast_to(matrix, factor.shape))
    both = np.linalg.solve(factor, inside.swapaxes(-2, -1))
    return np.trace(both, axis1=-2, axis2=-1)


def _is_shared(matrices):
    """True if a batch (n, d, d) was broadcast from one matrix."""
    return len(matrices) > 0 and matrices.strides[0] == 0


def flattened(matrices):
    """Matrices (..., p, p) as vectors (..., p * p)."""
    p = matrices.shape[-1]
    return matrices.reshape(matrices.shape[:-2] + (p * p,))


def of_member(wrong):
    """Words of an error that name a member of a batch of fits."""
    at = _checks.first(wrong)
    return f" for member {_checks.label('', at)} of the batch" if at else ""
