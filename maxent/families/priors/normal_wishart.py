"""Normal-inverse-Wishart distributions over the mean and covariance of a Gaussian.

    V ~ InverseWishart(df, scale),   m | V ~ N(mean, V / mean_precision)

Rows are used as deviations from the posterior mean: the formulas hold for weights of
any sign, and no digits are lost to means far from the origin.

Source: Jaakkola, Meila & Jebara (1999), eqs. (16)-(19); with the errata on the
documentation's errata page.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Self

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf
from scipy.special import multigammaln, psi, zeta

from maxent._core import normal_wishart as kernel
from maxent._support import validation as v
from maxent._support.threads import effective_threads, single_threaded_blas
from maxent._support.typing import ArrayLike, FloatArray
from maxent.families._singular import (
    SINGULAR,
    FlatFeature,
    SingularScatter,
    dependent_features,
)
from maxent.families._special import log_gamma_ratio
from maxent.families._within import variances_within
from maxent.families.priors.conjugate import ConjugatePrior

_LOG_PI = math.log(math.pi)


class _Rows:
    """Rows as deviations from a point, which is what every formula here wants."""

    def __init__(self, deviation, origin):
        self.origin, self.deviation = origin, deviation  # (d,), (n, d)
        self.reach = np.abs(deviation).max(axis=0, initial=0.0)
        self.whitened = (None, None, None)  # the last posterior's, see _whitened


class NormalInverseWishart(ConjugatePrior):
    """Conjugate prior of :class:`Gaussian`.

    Parameters
    ----------
    mean : array-like (d,)
        Centre of the mean.
    mean_precision : float
        How many rows the prior of the mean is worth, >= 0.
    df : float
        Degrees of freedom of the covariance; proper if > d - 1.
    scale : array-like (d, d)
        Scale of the covariance, symmetric positive semidefinite; the prior mean of the
        covariance is ``scale / (df - d - 1)``.

    Notes
    -----
    With ``mean_precision = df = 0`` and zero `scale` it is the improper prior
    ``|V|^(-(d + 2) / 2)``, see :meth:`improper`; it becomes proper with the weighted
    rows of d + 1 points in general position.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), eqs. (16)-(19).

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.families import NormalInverseWishart
    >>> prior = NormalInverseWishart(np.zeros(2), 1.0, 4.0, np.eye(2))
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    >>> block = prior.block(X)
    >>> block.log_partition(np.zeros(3))
    0.0
    >>> block.mean(np.array([1.0, -0.2, 0.5])).shape
    (3,)
    """

    mean: FloatArray
    mean_precision: float
    df: float
    scale: FloatArray

    def __init__(
        self, mean: ArrayLike, mean_precision: float, df: float, scale: ArrayLike
    ) -> None:
        mean = v.as_doubles("mean", mean)
        scale = v.as_doubles("scale", scale)
        if mean.ndim != 1 or not len(mean):
            raise ValueError(f"mean has shape {mean.shape}; it must be a vector.")
        d = len(mean)
        if scale.shape != (d, d):
            raise ValueError(
                f"scale has shape {scale.shape}; the mean has {d} entries, so it must "
                f"be ({d}, {d})."
            )
        for name, array in (("mean", mean), ("scale", scale)):
            if not np.isfinite(array).all():
                raise ValueError(f"{name} has NaN or infinite entries.")
        v.check_range("mean", mean)
        if not np.allclose(scale, scale.T, rtol=1e-10, atol=0):
            raise ValueError("scale is not symmetric; use (scale + scale.T) / 2.")
        least = float(np.linalg.eigvalsh(scale)[0])
        if least < -1e-12 * float(np.trace(scale)):
            raise ValueError(
                f"scale has the negative eigenvalue {least:.3g}; it must be positive "
                "semidefinite."
            )
        self._set(
            np.array(mean),
            v.check_nonnegative("mean_precision", mean_precision),
            v.check_nonnegative("df", df),
            0.5 * (scale + scale.T),
        )

    def _set(self, mean, mean_precision, df, scale, factor=None):
        self.mean, self.scale = mean, scale
        self.mean_precision, self.df = float(mean_precision), float(df)
        for array in (self.mean, self.scale):
            array.setflags(write=False)
        self._chol, self._log_det_scale = factor, None
        self._whitened_rows = (None, None, None)

    @classmethod
    def _make(cls, *parameters: Any) -> Self:
        value = object.__new__(cls)
        value._set(*parameters)
        return value

    @classmethod
    def improper(cls, n_features: int) -> Self:
        """The flat prior over mean and covariance, of density ``|V|^(-(d + 2) / 2)``.

        Parameters
        ----------
        n_features : int
            The dimension d.

        Returns
        -------
        NormalInverseWishart
            Proper only with rows.
        """
        d = v.check_count("n_features", n_features)
        return cls._make(np.zeros(d), 0.0, 0.0, np.zeros((d, d)))

    @classmethod
    def weak(
        cls,
        X: ArrayLike,
        weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """A proper prior worth one row: mean and variances of the data.

        Parameters
        ----------
        X : array-like (n, d)
            Every feature must vary.
        weight : array-like (n,), optional
            Weights >= 0 of the rows.
        groups : array-like of int (n,), optional
            Labels >= 0 of groups, for a prior that the components of a mixture share:
            variances are those within groups, and the mean counts as so much less than
            a row that it may be that of any group. Groups far apart then do not widen
            each other.

        Returns
        -------
        NormalInverseWishart
            Proper, without covariances.

        Raises
        ------
        ValueError
            If a feature is constant, or nearly; if `groups` has another length.
        """
        X = v.as_doubles("X", X)
        weight = None if weight is None else v.as_doubles("weight", weight)
        mean = np.average(X, axis=0, weights=weight)
        variance = np.average((X - mean) ** 2, axis=0, weights=weight)
        narrow = np.flatnonzero(~(variance > 1e-28 * mean**2))
        if len(narrow):
            k = narrow[0]
            low, high = X[:, k].min(), X[:, k].max()
            if low == high:
                raise FlatFeature(
                    k, "is constant, so the data give its prior no scale; drop it."
                )
            raise FlatFeature(
                k,
                f"varies from {low:.17g} to {high:.17g} only, which leaves its "
                "variance no digits; shift or scale it.",
            )
        within = variance
        if groups is not None:
            own = np.ones(len(X)) if weight is None else weight
            within = variances_within(X, own, groups)
        least = float((within / variance).min())
        return cls(mean, least, len(mean) + 2.0, np.diag(within))

    def _without_rows(self):
        return self._make(
            self.mean, self.mean_precision, self.df, self.scale, self._lower
        )

    def __repr__(self) -> str:
        return (
            f"NormalInverseWishart(mean={self.mean!r}, "
            f"mean_precision={self.mean_precision:g}, df={self.df:g}, "
            f"scale={self.scale!r})"
        )

    def get_spec(self) -> dict[str, Any]:
        """Parameters by name, enough to build an equal value.

        Returns
        -------
        dict
            Keyword arguments of the constructor.
        """
        return {
            "mean": self.mean,
            "mean_precision": self.mean_precision,
            "df": self.df,
            "scale": self.scale,
        }

    @property
    def _d(self):
        return len(self.mean)

    @property
    def _lower(self):
        """Cholesky factor of the scale; None if it is not positive definite."""
        if self._chol is None:
            self._chol = _cholesky(self.scale)
        return self._chol

    # -- on rows -------------------------------------------------------------------
    def _prepare(self, X):
        X = np.ascontiguousarray(v.as_doubles("X", X))
        if X.ndim != 2 or X.shape[1] != self._d:
            raise ValueError(
                f"X has shape {X.shape}; rows of {self._d} features are expected."
            )
        if not np.isfinite(X).all():
            raise ValueError("X has NaN or infinite entries; impute or remove them.")
        return _Rows(X - self.mean, self.mean)

    def _length(self, rows):
        return len(rows.deviation)

    def _update(self, rows, weight):
        (n, d), empty = rows.deviation.shape, np.empty
        mean, scale, lower = empty(d), empty((d, d)), empty((d, d))
        whitened = empty((n, d)), empty(n)
        with single_threaded_blas():
            found = kernel.update(
                rows.deviation,
                rows.reach,
                weight,
                self.mean,
                self.mean_precision,
                self.df,
                self.scale,
                mean,
                scale,
                lower,
                *whitened,
                effective_threads(),
            )
        if found is None:
            return None
        posterior = self._make(mean, *found[:2], scale, lower)
        posterior._log_det_scale = found[2]
        posterior._whitened_rows = (rows, *whitened)
        return posterior

    def _log_det(self):
        if self._log_det_scale is None:
            self._log_det_scale = 2.0 * float(np.log(self._lower.diagonal()).sum())
        return self._log_det_scale

    def _log_normalizer(self):
        d, nu = self._d, self.df
        return (
            float(multigammaln(0.5 * nu, d))
            - 0.5 * nu * self._log_det()
            - 0.5 * d * math.log(self.mean_precision)
        )

    @property
    def _log_measure(self):
        return -0.5 * self._d * _LOG_PI

    def _halves(self):
        return 0.5 * self.df - _half_numbers(self._d)

    def _whitened(self, rows):
        """Deviations from the mean in units where the scale is the identity, (n, d).

        Returns them with their squared norms, (n,).
        """
        known, U, square = self._whitened_rows
        if known is rows:
            return U, square
        known, U, square = rows.whitened
        if known is self:
            return U, square
        proper = self.mean_precision > 0 and self.df > self._d - 1
        if not proper or self._lower is None:
            raise ValueError(
                "this prior is improper: it has no expectations. Update it with rows."
            )
        U = np.empty_like(rows.deviation)
        square = np.empty(len(U))
        shift = self.mean - rows.origin
        with single_threaded_blas():
            kernel.whiten(
                rows.deviation, shift, self._lower, U, square, effective_threads()
            )
        rows.whitened = self, U, square
        return U, square

    def _expected(self, rows):
        _, square = self._whitened(rows)
        constant = float(psi(self._halves()).sum()) - self._d * _LOG_PI
        constant -= self._log_det()
        constant -= self._d / self.mean_precision
        return 0.5 * constant - (0.5 * self.df) * square

    def _predictive(self, rows):
        d, nu, kappa = self._d, self.df, self.mean_precision
        _, square = self._whitened(rows)
        # of the multivariate Gamma functions all factors but two are the same
        constant = float(log_gamma_ratio(0.5 * (nu + 1.0 - d), 0.5 * d))
        constant -= 0.5 * (self._log_det() + d * _LOG_PI + d * math.log1p(1.0 / kappa))
        return constant - 0.5 * (nu + 1.0) * np.log1p(square * (kappa / (kappa + 1.0)))

    def _shares(self, X, predictive=False):
        """Shares (n, d) of the columns in the scores of rows, less that of the mean.

        The score is a function of z'Pz, z = x - mean and P the inverse of the scale,
        of which a column has the part z_j (P z)_j.
        """
        rows = self._prepare(X)
        score = self._predictive if predictive else self._expected
        U, square = self._whitened(rows)
        back = solve_triangular(self._lower, U.T, lower=True, trans="T").T
        parts = rows.deviation * back
        at_mean = score(_Rows(np.zeros((1, self._d)), self.mean))[0]
        change = score(rows) - at_mean
        total = np.where(square > 0, square, 1.0)
        return parts * (change / total)[:, None]

    def _spread(self):
        """Return the common part of all covariances of log-likelihoods."""
        rest = 0.25 * float(zeta(2.0, self._halves()).sum())
        return rest + 0.5 * self._d / self.mean_precision**2

    def _factor_rows(self, rows):
        """Columns vv' - I/df over pairs, v, and one: v = whitened deviations.

        The covariance is sum_j psi'((df-j)/2)/4 + d/(2 kappa^2) - (q_ss + q_tt)/2
        + (df/kappa) q_st + (df/2) q_st^2 with q_st = v_s . v_t.
        """
        nu, kappa = self.df, self.mean_precision
        rest = max(self._spread() - 0.5 * self._d / nu, 0.0)
        return kernel.CovarianceRows(*self._whitened(rows), kappa, nu, rest)

    def _rank(self, rows):
        return (self._d + 1) * (self._d + 2) // 2

    def _product(self, rows, x):
        nu, kappa = self.df, self.mean_precision
        U, q = self._whitened(rows)
        out = np.einsum("ij,ij->i", U @ ((U.T * x) @ U), U)
        out *= 0.5 * nu
        out += nu / kappa * (U @ (U.T @ x))
        total = float(x.sum())
        out += self._spread() * total - 0.5 * (q * total + float(q @ x))
        return out

    def _part(self, rows, index):
        return _Rows(rows.deviation[index], rows.origin)

    def _matrix(self, rows, curvature=None):
        nu, kappa = self.df, self.mean_precision
        U, q = self._whitened(rows)
        with single_threaded_blas():
            Q = U @ U.T
        q = 0.5 * q
        out = 0.5 * nu * Q  # then in place: new pages cost more than the products
        out += nu / kappa
        out *= Q
        out -= q
        out -= (q - self._spread())[:, None]
        return out

    def _max_step(self, rows, direction):
        """Definiteness of sum w [x; 1][x; 1]' along a line is an eigenproblem."""
        U, _ = self._whitened(rows)
        with single_threaded_blas():
            least, total = kernel.least_change(
                U, direction, self.mean_precision, effective_threads()
            )
        step = -1.0 / least if least < 0 else np.inf
        if total < 0:
            step = min(step, (self.df - (self._d - 1)) / -total)
        return step

    def _why_improper(self, rows, weight):
        d, total = self._d, float(weight.sum())
        few = not self.scale.any() and np.count_nonzero(weight) <= d
        if few or self.df + total <= d - 1 or self.mean_precision + total <= 0:
            return (
                f"rows of total weight {total:g} are too few for a Gaussian of {d} "
                f"features: more than {d} are needed. Use prior='weak' or a proper "
                "NormalInverseWishart."
            )
        return SINGULAR

    def _refusal(self, rows, weight):
        sentence = self._why_improper(rows, weight)
        if sentence != SINGULAR:
            return ValueError(sentence)
        return SingularScatter(*dependent_features(rows.deviation, weight))


@functools.cache
def _half_numbers(d):
    """0, 1/2, 1, .. of d terms."""
    numbers = 0.5 * np.arange(d)
    numbers.setflags(write=False)
    return numbers


def _cholesky(A):
    """Lower Cholesky factor by rows, or None."""
    with single_threaded_blas():
        upper, info = dpotrf(A.T, lower=0, clean=1)
    return np.ascontiguousarray(upper.T) if info == 0 else None
