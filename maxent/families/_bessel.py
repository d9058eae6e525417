"""Modified Bessel functions of von Mises-Fisher distributions, for any size.

With nu = d / 2 - 1 the cumulant on the sphere in d dimensions is

    C(k) = log(2 pi^{d/2} / Gamma(d/2)) + g(k),
    g(k) = log[Gamma(nu+1) (2/k)^nu I_nu(k)],   g(0) = 0.

g(k) - k, its derivative and g'(k) are returned, none of which overflows or cancels:
powers for small k, the uniform expansion of Debye for nu >= 15, Hankel's expansion for
large k, and the scaled Bessel function between. NIST Handbook (2010), sections 10.25,
10.40 and 10.41.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.polynomial import Polynomial
from scipy.special import gammaln, ive

from maxent.families._special import log_factorial_excess

# Order from which the uniform expansion is used: errors of all results are below 1e-15.
_DEBYE = 15.0
_N_DEBYE = 16
_N_HANKEL = 16
_POWERS = 60  # terms of the power series, for k^2 / 4 <= 15 (nu + 1)


def log_bessel(nu, k):
    """g(k) - k, k (1 - g'(k)) and g'(k) for one order nu >= 0 and an array k >= 0.

    The derivative g' = I_{nu+1} / I_nu is the length of the mean vector; the second
    result is k times what it lacks to one. Both have small relative errors.
    """
    k = np.asarray(k, dtype=np.float64)
    if nu >= _DEBYE:
        return _debye(nu, k)
    small = 0.25 * k * k <= 15.0 * (nu + 1.0)
    large = k > max(60.0, 5.0 * nu * nu)
    middle = ~small & ~large
    value, lack, length = (np.empty(k.shape) for _ in range(3))
    for mask, branch in ((small, _power), (middle, _scaled), (large, _hankel)):
        if mask.any():
            value[mask], lack[mask], length[mask] = branch(nu, k[mask])
    return value, lack, length


def _power(nu, k):
    """Power series: all terms are positive."""
    x = 0.25 * k * k
    term = np.ones(k.shape)
    total, slope = term.copy(), np.zeros(k.shape)
    for m in range(1, _POWERS):
        slope += term / (nu + m)  # m x^{m-1} of term m, the derivative in x
        term = term * x / (m * (nu + m))
        total += term
    length = 0.5 * k * slope / total
    return np.log(total) - k, k * (1.0 - length), length


def _scaled(nu, k):
    value = np.log(ive(nu, k)) - nu * np.log(0.5 * k) + gammaln(nu + 1.0)
    length = ive(nu + 1.0, k) / ive(nu, k)
    return value, k * (1.0 - length), length


def _hankel(nu, k):
    """log I_nu(k) = k - log(2 pi k) / 2 + log sum_j (-1)^j a_j / k^j."""
    term = np.ones(k.shape)
    total, slope = term.copy(), np.zeros(k.shape)
    for j in range(1, _N_HANKEL):
        term = -term * (4.0 * nu * nu - (2 * j - 1) ** 2) / (8.0 * j * k)
        total += term
        slope += j * term
    constant = gammaln(nu + 1.0) + nu * np.log(2.0) - 0.5 * np.log(2.0 * np.pi)
    value = constant - (nu + 0.5) * np.log(k) + np.log(total)
    lack = (nu + 0.5) + slope / total
    return value, lack, 1.0 - lack / k


def _debye(nu, k):
    """Uniform in k; written so that nothing of the size of nu or k cancels."""
    z = k / nu
    s = np.hypot(1.0, z)
    t = 1.0 / s
    total, slope = np.zeros(k.shape), np.zeros(k.shape)
    for j, u in reversed(list(enumerate(_debye_polynomials()))):
        total += u(t) / nu**j
        slope += u.deriv()(t) / nu**j
    half = 0.5 * z * z / (1.0 + s)  # (s - 1) / 2
    root = k * (k / (nu * s + nu)) - k  # nu (s - 1) - k, for small k
    far = z > 1
    root = np.where(far, nu * (1.0 / (s + z)) - nu, root)
    stirling = log_factorial_excess(nu) - 0.5 * np.log(2.0 * np.pi * nu)
    value = root - nu * np.log1p(half) - 0.5 * np.log(s) + np.log(total) + stirling
    # k d/dk: of nu (s - 1 - log((1 + s) / 2)) it is nu (s - 1), of t it is -t (z t)^2
    rest = t * (0.5 + t * slope / total)
    return value, -root + z * z * t * rest, z / (1.0 + s) - z * t * rest / nu


@functools.cache
def _debye_polynomials():
    """u_0, u_1, ...: u_{j+1} = t^2 (1 - t^2) u_j' / 2 + int (1 - 5 t^2) u_j / 8."""
    u = [Polynomial([1.0])]
    a, b = Polynomial([0.0, 0.0, 0.5, 0.0, -0.5]), Polynomial([0.125, 0.0, -0.625])
    for _ in range(_N_DEBYE):
        u.append(a * u[-1].deriv() + (b * u[-1]).integ())
    return tuple(u)
