"""Coordinates of a family's parameters, in which conjugate priors are integrated.

A chart maps the whole of R^k onto the parameters. With measure(u) du for du, the
integral of exp(chi . eta - nu A(eta)) grows without bound as chi / nu comes to the end
of the means of the statistics, or nu to zero, so that priors have their natural domain.
Where parameters can be integrated by a formula given the others, the others alone have
coordinates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import digamma, gammaln, log_expit, polygamma

from maxent._support.typing import FloatArray


class Chart:
    """Coordinates (..., k) that are the natural parameters; base class."""

    def __init__(self, n_axes: int) -> None:
        self.n_axes = n_axes

    def natural(self, u: FloatArray) -> FloatArray:
        """Natural parameters of coordinates."""
        return u

    def free(self, eta: FloatArray) -> FloatArray:
        """Coordinates of natural parameters."""
        return eta

    def cumulant(self, family: Any, u: FloatArray) -> FloatArray:
        """Cumulant at coordinates."""
        return np.asarray(family._cumulant(self.natural(u)))

    def log_measure(self, u: FloatArray) -> FloatArray:
        """Logarithm of the measure at coordinates."""
        return np.zeros(u.shape[:-1])

    def is_mean(self, m: FloatArray) -> Any:
        """Mask of the statistics (..., k) that are means of members of the family."""
        return (m > 0).all(axis=-1)

    def slacks(self, chi: FloatArray, nu: float) -> FloatArray | None:
        """Linear functions that are positive in the domain, if these make it up."""
        return np.append(chi, nu)

    def log_density(
        self, family: Any, u: FloatArray, chi: FloatArray, nu: FloatArray
    ) -> FloatArray:
        """Log-density (B, ...) of priors, chi (B, k) and nu (B,), at coordinates."""
        inner = (_along(chi, u) * self.natural(u)).sum(axis=-1)
        return inner - _along(nu, u) * self.cumulant(family, u) + self.log_measure(u)

    def moments(
        self, family: Any, u: FloatArray, chi: FloatArray, nu: FloatArray
    ) -> tuple[FloatArray, FloatArray | None]:
        """Means (B, ..., k + 1) and covariances of (eta, -A) given the coordinates.

        None where these are certain.
        """
        minus_cumulant = -self.cumulant(family, u)[..., None]
        return np.concatenate([self.natural(u), minus_cumulant], axis=-1), None


def _along(array, u):
    """One array (B, ...) with axes for the points u (B, ..., k) of each."""
    return array.reshape(len(array), *(1,) * (u.ndim - 2), *array.shape[1:])


class _Logits(Chart):
    """Logarithms of odds, of zeros and ones."""

    def is_mean(self, m):
        return (m[..., 0] > 0) & (m[..., 0] < 1)

    def slacks(self, chi, nu):
        return np.append(chi, nu - chi)


class _Rates(Chart):
    """Logarithms of rates."""

    def natural(self, u):
        return -np.exp(u)

    def free(self, eta):
        return np.log(-eta)

    def cumulant(self, family, u):
        return -u[..., 0]


class _Successes(Chart):
    """Logarithms of the odds of success, of failures before it."""

    def natural(self, u):
        return log_expit(-u)

    def free(self, eta):
        return np.log(np.expm1(-eta))

    def cumulant(self, family, u):
        return -family.r * log_expit(u[..., 0])


class _Shapes(Chart):
    """Logarithms of both shapes."""

    def natural(self, u):
        return np.exp(u) - 1.0

    def free(self, eta):
        return np.log(eta + 1.0)

    def log_measure(self, u):
        return u.sum(axis=-1)

    def is_mean(self, m):
        return np.exp(m).sum(axis=-1) < 1

    def slacks(self, chi, nu):
        return None


class _Shape(Chart):
    """Logarithm of the shape a; given it the rate b is Gamma(nu a, chi_1)."""

    def free(self, eta):
        return np.log(eta[..., :1] + 1.0)

    def slacks(self, chi, nu):
        return None

    def is_mean(self, m):
        return (m[..., 1] > 0) & (m[..., 0] < np.log(np.maximum(m[..., 1], 1e-300)))

    def log_density(self, family, u, chi, nu):
        a = np.exp(u[..., 0])
        nu, first, second = (_along(x, u) for x in (nu, chi[:, 0], chi[:, 1]))
        value = first * (a - 1.0) - nu * gammaln(a) + u[..., 0]
        return value + gammaln(nu * a) - nu * a * np.log(second)

    def moments(self, family, u, chi, nu):
        a = np.exp(u[..., 0])
        nu, rate = _along(nu, u), _along(chi[:, 1], u)
        log_rate = digamma(nu * a) - np.log(rate)
        mean = np.stack([a - 1.0, -nu * a / rate, a * log_rate - gammaln(a)], axis=-1)
        cov = np.zeros((*a.shape, 3, 3))
        cov[..., 1, 1] = nu * a / rate**2
        cov[..., 1, 2] = cov[..., 2, 1] = -a / rate
        cov[..., 2, 2] = a**2 * polygamma(1, nu * a)
        return mean, cov


class _Concentration(Chart):
    """Logarithm of the concentration; the direction given it is von Mises-Fisher."""

    def free(self, eta):
        return np.log(np.maximum(np.linalg.norm(eta, axis=-1, keepdims=True), 1e-3))

    def slacks(self, chi, nu):
        return None

    def is_mean(self, m):
        return np.linalg.norm(m, axis=-1) < 1

    def log_density(self, family, u, chi, nu):
        kappa, size = np.exp(u[..., 0]), _along(np.linalg.norm(chi, axis=-1), u)
        inside = family._cumulant_of(kappa * size)[0]
        outside = _along(nu, u) * family._cumulant_of(kappa)[0]
        return inside - outside + chi.shape[1] * u[..., 0]

    def moments(self, family, u, chi, nu):
        d, kappa = chi.shape[1], np.exp(u[..., 0])
        size = np.linalg.norm(chi, axis=-1)
        along = chi / np.where(size > 0, size, 1.0)[:, None]
        length = family._cumulant_of(kappa * _along(size, u))[1]
        small = kappa * _along(size, u)
        aside = np.where(small > 1e-8, length / np.maximum(small, 1e-8), 1.0 / d)
        straight = 1.0 - length**2 - (d - 1) * aside
        axis = _along(along, u)
        mean = np.concatenate(
            [
                (kappa * length)[..., None] * axis,
                -family._cumulant_of(kappa)[0][..., None],
            ],
            axis=-1,
        )
        cov = np.zeros((*kappa.shape, d + 1, d + 1))
        outer = _along(along[:, :, None] * along[:, None], u)
        both = np.eye(d) * aside[..., None, None]
        both = both + (straight - aside)[..., None, None] * outer
        cov[..., :d, :d] = kappa[..., None, None] ** 2 * both
        return mean, cov


LOGS, LOGITS, RATES, SUCCESSES = Chart(1), _Logits(1), _Rates(1), _Successes(1)
SHAPES, SHAPE, CONCENTRATION = _Shapes(2), _Shape(1), _Concentration(1)
