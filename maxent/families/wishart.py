"""Positive definite matrices: Wishart and inverse Wishart distributions.

Affinities need determinants of sums of scale matrices only: for the Wishart
distribution, whose scales add as inverses, by |V^-1 + W^-1| = |V + W| / (|V| |W|).
"""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy.special import digamma, multigammaln

from maxent._support.typing import ArrayLike, FloatArray
from maxent.families import _checks
from maxent.families._matching import shape_from_gap
from maxent.families._minimal import of_symmetric
from maxent.families._pairs import sum_log_det, weighted_mean
from maxent.families.base import ExponentialFamily
from maxent.families.gaussian import flattened, log_det, precisions

_REMEDY = "A scale matrix must be symmetric with positive eigenvalues."
_LOG_2 = math.log(2.0)


class _AnyWishart(ExponentialFamily):
    """Parameters, rows and what both have in common; p x p matrices."""

    _core: tuple[tuple[str, int], ...] = (("df", 0), ("scale", 2))
    df: FloatArray
    scale: FloatArray

    def __init__(self, df: ArrayLike, scale: ArrayLike) -> None:
        scale, factor = _checks.positive_definite_array("scale", scale, _REMEDY)
        df, p = _checks.real_array("df", df), scale.shape[-1]
        if not (df > p - 1).all():
            at = _checks.first(~(df > p - 1))
            raise ValueError(
                f"{_checks.label('df', at)}={df[at]:g} must be > p - 1 = {p - 1}, for "
                f"{p} x {p} matrices."
            )
        self._set({"df": df, "scale": scale})
        self.__dict__["_factor"] = np.broadcast_to(factor, self.scale.shape)

    @functools.cached_property
    def _factor(self):
        return np.linalg.cholesky(self.scale)

    @functools.cached_property
    def _log_det(self):
        return log_det(self._factor)

    @property
    def _p(self):
        return self.scale.shape[-1]

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one observation, (p, p)."""
        return self.scale.shape[-2:]

    @classmethod
    def _event_to_fit(cls):
        return (None, None)

    @classmethod
    def _inside(cls, X):
        if X.shape[-1] != X.shape[-2]:
            raise ValueError(
                f"X has shape {X.shape}; its rows must be square matrices."
            )
        inside = _checks.is_symmetric(X)
        safe = np.where(inside[..., None, None], X, np.eye(X.shape[-1]))
        return inside & (_checks.least_of_correlation(safe) > 0)

    @classmethod
    def _support_text(cls):
        return "rows are symmetric positive definite matrices"

    def _inner_point(self):
        return np.eye(self._p)

    def _pair_log_det(self, other):
        """log|scale + scale'| of all pairs."""
        return sum_log_det(self.scale, other.scale)[0]

    @classmethod
    def _solve_df(cls, matrices, logs, W, total):
        """Half the degrees of freedom, and the weighted mean of the matrices."""
        p = matrices.shape[-1]
        flat = flattened(matrices)
        mean = weighted_mean(W, total, flat)
        mean = mean.reshape(mean.shape[:-1] + (p, p))
        mean_log = weighted_mean(W, total, logs[..., None])[..., 0]
        gap = log_det(np.linalg.cholesky(mean)) - mean_log
        if not (gap > 1e-13 * p).all():
            raise ValueError(
                "all rows of a fit are equal, so the likelihood has no maximum: df "
                "would be infinite. Add rows that differ."
            )
        return shape_from_gap(gap, p), mean

    def _minimal(self):
        return of_symmetric(self.natural_parameters.shape, 1)


class Wishart(_AnyWishart):
    """Wishart distributions of p x p matrices.

    Parameters
    ----------
    df : array-like (batch,)
        Degrees of freedom, > p - 1.
    scale : array-like (batch, p, p)
        Scale matrices V, symmetric and positive definite; the mean is ``df * scale``.

    See Also
    --------
    InverseWishart : The inverse of such a matrix.
    Gamma : The case p = 1, with shape ``df / 2`` and scale ``2 V``.

    Notes
    -----
    Statistics: ``log|X|`` and X, flattened (k = 1 + p^2). The affinity of a pair is
    finite if ``rho (df + df' - 2p - 2) > -2``, of all pairs if every
    ``df > p + 1 - 1 / rho``. Shapes, batches and methods are those of
    `ExponentialFamily`.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.families import Wishart
    >>> P = Wishart(df=[4.0, 6.0], scale=np.eye(2))
    >>> P.moments()[0][1]
    array([[6., 0.],
           [0., 6.]])
    """

    @classmethod
    def _statistics(cls, X):
        logs = log_det(np.linalg.cholesky(X))
        return np.concatenate([logs[..., None], flattened(X)], axis=-1)

    def _n_free(self):
        p = self.scale.shape[-1]
        return self.df.size * (1 + p * (p + 1) // 2)

    def _natural(self):
        p = self._p
        matrix = -0.5 * flattened(precisions(self._factor))
        return np.concatenate([0.5 * (self.df - p - 1)[..., None], matrix], axis=-1)

    def _mean(self):
        mean = flattened(self.df[..., None, None] * self.scale)
        logs = self._log_det + self._p * _LOG_2 + multidigamma(0.5 * self.df, self._p)
        return np.concatenate([logs[..., None], mean], axis=-1)

    def _cumulant(self, eta):
        p = self._p
        df = 2.0 * eta[..., 0] + p + 1.0
        minus_log_det, inside = _matrix_part(-2.0 * eta[..., 1:], p)
        return _normaliser(df, -minus_log_det, p, inside)

    def _cumulant_here(self):
        return _normaliser(self.df, self._log_det, self._p)

    def _affinity(self, other, rho):
        p = self._p
        df = rho * (self.df[:, None] + other.df - 2.0 * (p + 1)) + p + 1.0
        own = self._log_det[:, None] + other._log_det
        log_det_sum = own - self._pair_log_det(other) - p * math.log(rho)
        A = rho * self._own_cumulant[:, None] + rho * other._own_cumulant
        return _normaliser(df, log_det_sum, p) - A

    def _affinity_range(self):
        with np.errstate(divide="ignore"):
            below = np.maximum(self._p + 1.0 - self.df, 0.0)
            return 0.0, 1.0 / below

    def _moments(self):
        diagonal = np.diagonal(self.scale, axis1=-2, axis2=-1)
        both = diagonal[..., :, None] * diagonal[..., None, :]
        df = self.df[..., None, None]
        return df * self.scale, df * (self.scale**2 + both)

    def _sample(self, n, rng):
        T = bartlett(self.df, self._p, self.batch_shape + (n,), rng)
        root = np.matmul(self._factor[..., None, :, :], T)
        return np.matmul(root, root.swapaxes(-2, -1))

    @classmethod
    def _summary(cls, X, W, total):
        logs = log_det(np.linalg.cholesky(X))
        return cls._solve_df(X, logs, W, total)

    @classmethod
    def _solve(cls, summary, total):
        half, mean = summary
        return cls(2.0 * half, mean / (2.0 * half)[..., None, None])


class InverseWishart(_AnyWishart):
    """Inverse Wishart distributions of p x p matrices.

    Parameters
    ----------
    df : array-like (batch,)
        Degrees of freedom, > p - 1.
    scale : array-like (batch, p, p)
        Scale matrices Psi, symmetric and positive definite; the mean is
        ``scale / (df - p - 1)`` where that is positive.

    See Also
    --------
    Wishart : The inverse of such a matrix.

    Notes
    -----
    Statistics: ``log|X|`` and the inverse of X, flattened (k = 1 + p^2). The affinity
    of a pair is finite if ``rho (df + df' + 2p + 2) > 2p``, of all pairs if every
    ``df > p / rho - p - 1``. Shapes, batches and methods are those of
    `ExponentialFamily`.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.families import InverseWishart
    >>> P = InverseWishart(df=5.0, scale=np.eye(2))
    >>> P.moments()[0]
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    @classmethod
    def _statistics(cls, X):
        factor = np.linalg.cholesky(X)
        inverse = flattened(precisions(factor))
        return np.concatenate([log_det(factor)[..., None], inverse], axis=-1)

    def _natural(self):
        matrix = -0.5 * flattened(self.scale)
        linear = -0.5 * (self.df + self._p + 1.0)
        return np.concatenate([linear[..., None], matrix], axis=-1)

    def _mean(self):
        inverse = self.df[..., None, None] * precisions(self._factor)
        logs = self._log_det - self._p * _LOG_2 - multidigamma(0.5 * self.df, self._p)
        return np.concatenate([logs[..., None], flattened(inverse)], axis=-1)

    def _cumulant(self, eta):
        p = self._p
        df = -2.0 * eta[..., 0] - p - 1.0
        log_det_scale, inside = _matrix_part(-2.0 * eta[..., 1:], p)
        return _normaliser(df, -log_det_scale, p, inside)

    def _cumulant_here(self):
        return _normaliser(self.df, -self._log_det, self._p)

    def _affinity(self, other, rho):
        p = self._p
        df = rho * (self.df[:, None] + other.df + 2.0 * (p + 1)) - p - 1.0
        log_det_sum = self._pair_log_det(other) + p * math.log(rho)
        A = rho * self._own_cumulant[:, None] + rho * other._own_cumulant
        return _normaliser(df, -log_det_sum, p) - A

    def _affinity_range(self):
        return self._p / (self.df + self._p + 1.0), np.inf

    def _moments(self):
        p = self._p
        excess = (self.df - p)[..., None, None]  # 1 + (df - p - 1)
        diagonal = np.diagonal(self.scale, axis1=-2, axis2=-1)
        both = diagonal[..., :, None] * diagonal[..., None, :]
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.where(excess > 1, self.scale / (excess - 1.0), np.nan)
            top = (excess + 1.0) * self.scale**2 + (excess - 1.0) * both
            bottom = excess * (excess - 1.0) ** 2 * (excess - 3.0)
            return mean, np.where(excess > 3, top / bottom, np.nan)

    def _sample(self, n, rng):
        T = bartlett(self.df, self._p, self.batch_shape + (n,), rng)
        # with scale = C C' the inverse of C^-T T T' C^-1 is C T^-T T^-1 C'
        C = self._factor[..., None, :, :]
        root = np.linalg.solve(T, np.broadcast_to(C.swapaxes(-2, -1), T.shape))
        return np.matmul(root.swapaxes(-2, -1), root)

    @classmethod
    def _summary(cls, X, W, total):
        factor = np.linalg.cholesky(X)
        return cls._solve_df(precisions(factor), -log_det(factor), W, total)

    @classmethod
    def _solve(cls, summary, total):
        half, mean = summary
        return cls(2.0 * half, 2.0 * half[..., None, None] * _inverse(mean))


def multidigamma(a, p):
    """Derivative of the log of the multivariate Gamma function."""
    return digamma(a[..., None] - 0.5 * np.arange(p)).sum(axis=-1)


def bartlett(df, p, size, rng):
    """Lower triangular T, (*size, p, p): T T' has a Wishart distribution of scale I."""
    T = np.tril(rng.normal(size=size + (p, p)), -1)
    j = np.arange(p)
    T[..., j, j] = np.sqrt(rng.chisquare(df[..., None, None] - j, size=size + (p,)))
    return T


def _normaliser(df, log_det_scale, p, inside=True):
    """(df p / 2) log 2 + (df / 2) log|V| + log Gamma_p(df / 2); +inf outside."""
    inside = inside & (df > p - 1)
    half = np.where(inside, 0.5 * df, 0.5 * p)
    value = half * (p * _LOG_2 + log_det_scale) + multigammaln(half, p)
    return np.where(inside, value, np.inf)


def _matrix_part(flat, p):
    """Log-determinant of flattened matrices, and which are positive definite."""
    M = flat.reshape(flat.shape[:-1] + (p, p))
    M = 0.5 * (M + M.swapaxes(-2, -1))
    inside = _checks.least_of_correlation(M) > 0
    M = np.where(inside[..., None, None], M, np.eye(p))
    return log_det(np.linalg.cholesky(M)), inside


def _inverse(matrices):
    return precisions(np.linalg.cholesky(matrices))
