"""Normal-gamma distributions over the parameters of a linear-Gaussian conditional.

    y | z ~ N(beta . z, 1 / tau),   beta | tau ~ N(mean, (tau precision)^-1),
    tau ~ Gamma(shape, rate)

Source: Jaakkola, Meila & Jebara (1999), section 3.6, for continuous nodes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.special import gammaln, polygamma, psi

from maxent._support import validation as v
from maxent._support.typing import ArrayLike, FloatArray
from maxent.families._special import log_gamma_ratio
from maxent.families.priors.conjugate import ConjugatePrior

_LOG_2PI = math.log(2.0 * math.pi)


class NormalGamma(ConjugatePrior):
    """Conjugate prior of a linear-Gaussian conditional y | z.

    Rows are ``[y, z_1, ..., z_q]``: the value first, then the regressors; let one of
    them be constant for an intercept.

    Parameters
    ----------
    mean : array-like (q,)
        Centre of the coefficients.
    precision : array-like (q, q)
        Their precision in units of the noise's, symmetric positive definite.
    shape, rate : float
        Of the gamma distribution of the noise precision, > 0.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), section 3.6.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.families import NormalGamma
    >>> prior = NormalGamma([0.0], [[1.0]], 2.0, 2.0)
    >>> prior.posterior([[2.0, 1.0], [4.0, 2.0]]).mean.round(3)
    array([1.667])
    """

    _log_measure = -0.5 * _LOG_2PI
    mean: FloatArray
    precision: FloatArray
    shape: float
    rate: float

    def __init__(
        self, mean: ArrayLike, precision: ArrayLike, shape: float, rate: float
    ) -> None:
        mean = v.as_doubles("mean", mean)
        precision = v.as_doubles("precision", precision)
        if mean.ndim != 1 or precision.shape != (len(mean), len(mean)):
            raise ValueError(
                f"mean has shape {mean.shape} and precision {precision.shape}; they "
                "must be (q,) and (q, q)."
            )
        if not (np.isfinite(mean).all() and np.isfinite(precision).all()):
            raise ValueError("mean or precision has NaN or infinite entries.")
        v.check_range("mean", mean)
        if not np.allclose(precision, precision.T, rtol=1e-10, atol=0):
            raise ValueError("precision is not symmetric.")
        try:
            lower = cholesky(precision, lower=True)
        except LinAlgError:
            raise ValueError(
                "precision is not positive definite; add a ridge to its diagonal."
            ) from None
        self._set(
            mean,
            0.5 * (precision + precision.T),
            v.check_positive("shape", shape),
            v.check_positive("rate", rate),
            lower,
        )

    def _set(self, mean, precision, shape, rate, lower):
        self.mean, self.precision = np.array(mean), np.array(precision)
        self.shape, self.rate = float(shape), float(rate)
        for array in (self.mean, self.precision):
            array.setflags(write=False)
        self._lower = lower

    def __repr__(self) -> str:
        return (
            f"NormalGamma(mean={self.mean!r}, precision={self.precision!r}, "
            f"shape={self.shape:g}, rate={self.rate:g})"
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
            "precision": self.precision,
            "shape": self.shape,
            "rate": self.rate,
        }

    # -- on rows -------------------------------------------------------------------
    def _prepare(self, X):
        X = np.ascontiguousarray(v.as_doubles("X", X))
        if X.ndim != 2 or X.shape[1] != 1 + len(self.mean):
            raise ValueError(
                f"X has shape {X.shape}; rows hold a value and {len(self.mean)} "
                "regressors."
            )
        if not np.isfinite(X).all():
            raise ValueError("X has NaN or infinite entries; impute or remove them.")
        return X

    def _residuals(self, X):
        return X[:, 0] - X[:, 1:] @ self.mean

    def _update(self, X, weight):
        Z = X[:, 1:]
        precision = self.precision + (Z.T * weight) @ Z
        precision = 0.5 * (precision + precision.T)
        shape = self.shape + 0.5 * float(weight.sum())
        if not (shape > 0 and np.isfinite(precision).all()):
            return None
        try:
            lower = cholesky(precision, lower=True, check_finite=False)
        except LinAlgError:
            return None
        # around the prior's mean: no large squares are subtracted
        r = self._residuals(X)
        pull = Z.T @ (weight * r)
        shift = cho_solve((lower, True), pull)
        rate = self.rate + 0.5 * (float(weight @ r**2) - float(pull @ shift))
        if not rate > 1e-14 * (self.rate + float(np.abs(weight) @ r**2)):
            return None
        value = object.__new__(type(self))
        value._set(self.mean + shift, precision, shape, rate, lower)
        return value

    def _log_normalizer(self):
        half_log_det = float(np.log(np.diag(self._lower)).sum())
        return float(
            gammaln(self.shape) - self.shape * math.log(self.rate) - half_log_det
        )

    def _whitened(self, X):
        return solve_triangular(
            self._lower, X[:, 1:].T, lower=True, check_finite=False
        ).T

    def _expected(self, X):
        U, r = self._whitened(X), self._residuals(X)
        constant = psi(self.shape) - math.log(self.rate) - _LOG_2PI
        quadratic = self.shape / self.rate * r**2 + np.einsum("ij,ij->i", U, U)
        return 0.5 * (constant - quadratic)

    def _predictive(self, X):
        U, r = self._whitened(X), self._residuals(X)
        spread = 2.0 * self.rate * (1.0 + np.einsum("ij,ij->i", U, U))
        constant = float(log_gamma_ratio(self.shape, 0.5))
        return (
            constant
            - 0.5 * np.log(math.pi * spread)
            - (self.shape + 0.5) * np.log1p(r**2 / spread)
        )

    def _factor(self, X):
        """Cov = (psi'(a) - (r_s^2 + r_t^2)/b + a r_s^2 r_t^2/b^2)/4 + (a/b) r_s r_t k
        + k^2/2, with k = z_s' precision^-1 z_t."""
        a, b = self.shape, self.rate
        U, r = self._whitened(X), self._residuals(X)
        i, j = np.triu_indices(U.shape[1])
        pairs = U[:, i] * U[:, j] * np.where(i == j, math.sqrt(0.5), 1.0)
        rest = max(0.25 * (float(polygamma(1, a)) - 1.0 / a), 0.0)
        return np.column_stack(
            [
                pairs,
                math.sqrt(a / b) * r[:, None] * U,
                0.5 * math.sqrt(a) / b * (r**2 - b / a),
                np.full(len(r), math.sqrt(rest)),
            ]
        )

    def _rank(self, X):
        q = len(self.mean)
        return q * (q + 1) // 2 + q + 2

    def _product(self, X, x):
        factor = self._factor(X)
        return factor @ (factor.T @ x)

    def _max_step(self, X, direction):
        """The matrix of squares of [y - z . mean, z], and the shape, stay positive."""
        U = np.column_stack(
            [self._residuals(X) / math.sqrt(2.0 * self.rate), self._whitened(X)]
        )
        change = (U.T * direction) @ U
        least = float(np.linalg.eigvalsh(change)[0])
        step = -1.0 / least if least < 0 else np.inf
        total = float(direction.sum())
        if total < 0:
            step = min(step, 2.0 * self.shape / -total)
        return step

    def _why_improper(self, X, weight):
        return "the base weights leave the domain of this prior; use smaller ones."
