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

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtrs
from scipy.special import gammaln, psi, zeta

from maxent._support import validation as v
from maxent.families.conjugate import ConjugatePrior

_LOG_PI = math.log(math.pi)


class _Rows:
    """Rows as deviations from a point, which is what every formula here wants."""

    def __init__(self, X, origin):
        self.origin = origin
        self.deviation = X - origin  # (n, d)
        self.reach = np.abs(self.deviation).max(axis=0, initial=0.0)

    def about(self, mean):
        """Deviations from another point, a new array."""
        return self.deviation - (mean - self.origin)


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

    def __init__(self, mean, mean_precision, df, scale):
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
        if not np.allclose(scale, scale.T, rtol=1e-10, atol=0):
            raise ValueError("scale is not symmetric; use (scale + scale.T) / 2.")
        least = float(np.linalg.eigvalsh(scale)[0])
        if least < -1e-12 * float(np.trace(scale)):
            raise ValueError(
                f"scale has the negative eigenvalue {least:.3g}; it must be positive "
                "semidefinite."
            )
        self._set(
            mean,
            v.check_nonnegative("mean_precision", mean_precision),
            v.check_nonnegative("df", df),
            0.5 * (scale + scale.T),
        )

    def _set(self, mean, mean_precision, df, scale, factor=None):
        self.mean, self.scale = np.array(mean), np.array(scale)
        self.mean_precision, self.df = float(mean_precision), float(df)
        for array in (self.mean, self.scale):
            array.setflags(write=False)
        self._chol = factor
        self._whitened_rows = (None, None)

    @classmethod
    def _make(cls, *parameters):
        value = object.__new__(cls)
        value._set(*parameters)
        return value

    @classmethod
    def improper(cls, n_features):
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
        return cls(np.zeros(d), 0.0, 0.0, np.zeros((d, d)))

    @classmethod
    def weak(cls, X, weight=None):
        """A proper prior worth one row: mean and variances of the data.

        Parameters
        ----------
        X : array-like (n, d)
            Every feature must vary.
        weight : array-like (n,), optional
            Weights >= 0 of the rows.

        Returns
        -------
        NormalInverseWishart
            Proper, without covariances.

        Raises
        ------
        ValueError
            If a feature is constant, or nearly.
        """
        X = v.as_doubles("X", X)
        mean = np.average(X, axis=0, weights=weight)
        variance = np.average((X - mean) ** 2, axis=0, weights=weight)
        narrow = np.flatnonzero(~(variance > 1e-28 * mean**2))
        if len(narrow):
            k = narrow[0]
            low, high = X[:, k].min(), X[:, k].max()
            if low == high:
                raise ValueError(
                    f"feature {k} is constant, so the data give its prior no scale; "
                    "drop it."
                )
            raise ValueError(
                f"feature {k} varies from {low:.17g} to {high:.17g} only, which leaves "
                "its variance no digits; shift or scale it."
            )
        d = len(mean)
        return cls(mean, 1.0, d + 2.0, np.diag(variance))

    def _without_rows(self):
        return self._make(
            self.mean, self.mean_precision, self.df, self.scale, self._lower
        )

    def __repr__(self):
        return (
            f"NormalInverseWishart(mean={self.mean!r}, "
            f"mean_precision={self.mean_precision:g}, df={self.df:g}, "
            f"scale={self.scale!r})"
        )

    def get_spec(self):
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
        return _Rows(X, self.mean)

    def _length(self, rows):
        return len(rows.deviation)

    def _update(self, rows, weight):
        total = float(weight.sum())
        kappa, df = self.mean_precision + total, self.df + total
        if not (kappa > 0 and df > self._d - 1):
            return None
        # deviations from the prior's mean first: the shift costs no digits
        shift = (weight @ rows.deviation) / kappa
        mean = self.mean + shift
        R = rows.deviation - shift
        scale = self.scale + (R.T * weight) @ R
        scale += self.mean_precision * (shift[:, None] * shift)
        scale = 0.5 * (scale + scale.T)
        lower = _cholesky(scale) if np.isfinite(scale).all() else None
        if lower is None:
            return None
        # A pivot at rounding level of what was summed is no positive pivot.  The sum of
        # sizes is a pass over the rows: a bound will mostly do.
        pivot, absolute = lower.diagonal() ** 2, np.abs(weight)
        # deviations of a constant feature are rounding of its value, and so is `size`
        size = self.scale.diagonal() + absolute.sum() * (1e-16 * mean**2)
        most = size + absolute.sum() * (rows.reach + np.abs(shift)) ** 2
        if (pivot <= 1e-14 * most).any():
            size = size + absolute @ R**2
            if (pivot <= 1e-14 * size).any():
                return None
        posterior = self._make(mean, kappa, df, scale, lower)
        posterior._whitened_rows = (
            rows,
            dtrtrs(lower, R.T, lower=1, overwrite_b=1)[0].T,
        )
        return posterior

    def _log_det(self):
        return 2.0 * float(np.log(self._lower.diagonal()).sum())

    def _log_normalizer(self):
        d, nu = self._d, self.df
        return (
            _multigammaln(0.5 * nu, d)
            - 0.5 * nu * self._log_det()
            - 0.5 * d * math.log(self.mean_precision)
        )

    @property
    def _log_measure(self):
        return -0.5 * self._d * _LOG_PI

    def _halves(self):
        return 0.5 * (self.df - np.arange(self._d))

    def _whitened(self, rows):
        """Deviations from the mean in units where the scale is the identity, (n, d)."""
        proper = self.mean_precision > 0 and self.df > self._d - 1
        if not proper or self._lower is None:
            raise ValueError(
                "this prior is improper: it has no expectations. Update it with rows."
            )
        known, U = self._whitened_rows
        if known is not rows:
            R = rows.about(self.mean)
            U = dtrtrs(self._lower, R.T, lower=1, overwrite_b=1)[0].T
        return U

    def _expected(self, rows):
        U = self._whitened(rows)
        constant = float(psi(self._halves()).sum()) - self._d * _LOG_PI
        constant -= self._log_det()
        constant -= self._d / self.mean_precision
        return 0.5 * (constant - self.df * np.einsum("ij,ij->i", U, U))

    def _predictive(self, rows):
        d, nu, kappa = self._d, self.df, self.mean_precision
        U = self._whitened(rows)
        q = np.einsum("ij,ij->i", U, U) * kappa / (kappa + 1.0)
        constant = _multigammaln(0.5 * (nu + 1.0), d) - _multigammaln(0.5 * nu, d)
        constant -= 0.5 * (self._log_det() + d * _LOG_PI + d * math.log1p(1.0 / kappa))
        return constant - 0.5 * (nu + 1.0) * np.log1p(q)

    def _factor(self, rows):
        """Columns vv' - I/df over pairs, v, and one: v = whitened deviations.

        The covariance is sum_j psi'((df-j)/2)/4 + d/(2 kappa^2) - (q_ss + q_tt)/2
        + (df/kappa) q_st + (df/2) q_st^2 with q_st = v_s . v_t.
        """
        d, nu, kappa = self._d, self.df, self.mean_precision
        U = self._whitened(rows)
        i, j, factor = _pairs(d)
        pairs = U[:, i] * U[:, j]
        pairs *= factor
        pairs -= (i == j) / nu
        rest = 0.25 * float(zeta(2.0, self._halves()).sum())
        rest += 0.5 * d / kappa**2 - 0.5 * d / nu
        return np.concatenate(
            [
                math.sqrt(0.5 * nu) * pairs,
                math.sqrt(nu / kappa) * U,
                np.full((len(U), 1), math.sqrt(max(rest, 0.0))),
            ],
            axis=1,
        )

    def _rank(self, rows):
        return (self._d + 1) * (self._d + 2) // 2

    def _product(self, rows, x):
        d, nu, kappa = self._d, self.df, self.mean_precision
        U = self._whitened(rows)
        q, total = np.einsum("ij,ij->i", U, U), float(x.sum())
        rest = 0.25 * float(zeta(2.0, self._halves()).sum()) + 0.5 * d / kappa**2
        out = np.einsum("ij,ij->i", U @ ((U.T * x) @ U), U)
        out *= 0.5 * nu
        out += nu / kappa * (U @ (U.T @ x))
        out += rest * total - 0.5 * (q * total + float(q @ x))
        return out

    def _max_step(self, rows, direction):
        """Definiteness of sum w [x; 1][x; 1]' along a line is an eigenproblem."""
        d = self._d
        U = self._whitened(rows)
        W = U.T * direction
        change = np.empty((d + 1, d + 1))
        change[:d, :d] = W @ U
        change[:d, d] = change[d, :d] = W.sum(axis=1) / math.sqrt(self.mean_precision)
        total = float(direction.sum())
        change[d, d] = total / self.mean_precision
        least = float(np.linalg.eigvalsh(change)[0])
        step = -1.0 / least if least < 0 else np.inf
        if total < 0:
            step = min(step, (self.df - (d - 1)) / -total)
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
        return (
            f"the weighted scatter of the rows is singular in {d} features (constant "
            "or collinear ones). Drop them, or use prior='weak' or a proper "
            "NormalInverseWishart."
        )


@functools.cache
def _pairs(d):
    """Pairs i <= j of d, and what makes their products a scaled symmetric vector."""
    i, j = np.triu_indices(d)
    return i, j, np.where(i == j, 1.0, math.sqrt(2.0))


def _cholesky(A):
    """Lower Cholesky factor, or None."""
    lower, info = dpotrf(A, lower=1, clean=1)
    return lower if info == 0 else None


def _multigammaln(a, d):
    """Log of the multivariate gamma function."""
    return 0.25 * d * (d - 1) * _LOG_PI + float(gammaln(a - 0.5 * np.arange(d)).sum())
