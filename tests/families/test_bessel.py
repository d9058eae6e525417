"""Bessel functions of directions against mpmath, over their whole range."""

import numpy as np
import pytest

from maxent.families import Poisson, VonMisesFisher
from maxent.families._bessel import log_bessel

mpmath = pytest.importorskip("mpmath")

# scipy's functions of orders 13 to 15 have errors of 1e-14 each near k = 100
LENGTH_ERROR = 4e-14
ORDERS = (0.0, 0.5, 1.0, 4.5, 14.0, 14.5, 15.0, 15.5, 16.0, 49.0, 300.0, 5000.0)
SIZES = (0.0, 1e-200, 1e-9, 0.01, 1.0, 7.9, 25.0, 61.0, 400.0, 1.3e3, 2e4, 1e9, 1e15)


def exact(nu, k):
    """g(k) - k, k (1 - g'(k)) and g'(k) with many digits."""
    if k == 0.0:
        return 0.0, 0.0, 0.0
    with mpmath.workdps(40):
        nu, k = mpmath.mpf(nu), mpmath.mpf(k)
        here, above = log_scaled(nu, k), log_scaled(nu + 1, k)
        value = here + mpmath.loggamma(nu + 1) - nu * mpmath.log(k / 2)
        lack, length = -k * mpmath.expm1(above - here), mpmath.exp(above - here)
        return float(value), float(lack), float(length)


def log_scaled(nu, k):
    """log of exp(-k) I_nu(k), by powers or by the expansion at infinity."""
    if k > 100 + 20 * nu**2:
        term, total = mpmath.mpf(1), mpmath.mpf(1)
        for j in range(1, 60):
            term *= -(4 * nu**2 - (2 * j - 1) ** 2) / (8 * j * k)
            total += term
        return mpmath.log(total / mpmath.sqrt(2 * mpmath.pi * k))
    x, m = k * k / 4, 0
    term, total = mpmath.mpf(1), mpmath.mpf(1)
    while term > total * mpmath.mpf(10) ** -36:
        m += 1
        term *= x / (m * (nu + m))
        total += term
    return mpmath.log(total) + nu * mpmath.log(k / 2) - mpmath.loggamma(nu + 1) - k


@pytest.mark.parametrize("nu", ORDERS)
def test_bessel_functions_of_any_order_and_size(nu):
    value, lack, length = log_bessel(nu, np.array(SIZES))
    expected = np.array([exact(nu, k) for k in SIZES]).T
    np.testing.assert_allclose(value, expected[0], rtol=2e-14, atol=2e-14)
    np.testing.assert_allclose(lack, expected[1], rtol=4e-13, atol=1e-300)
    np.testing.assert_allclose(length, expected[2], rtol=LENGTH_ERROR, atol=0)


@pytest.mark.parametrize("nu", [0.0, 0.5, 3.0, 14.5])
def test_branches_meet(nu):
    small = 2 * np.sqrt(15 * (nu + 1))
    large = max(60.0, 5 * nu * nu)
    for edge in (small, large):
        near = log_bessel(nu, edge * (1 + np.array([-1e-12, 1e-12])))
        for pair in near:
            assert pair[0] == pytest.approx(pair[1], rel=1e-11)


@pytest.mark.parametrize("d", [2, 3, 10, 31, 32, 33, 50, 200])
def test_mean_directions_keep_their_digits(d):
    kappa = np.concatenate([np.geomspace(1e-12, 1e6, 10), np.geomspace(0.3, 2e3, 12)])
    P = VonMisesFisher(np.eye(1, d)[0], kappa)
    expected = [exact(0.5 * d - 1.0, k)[2] for k in kappa]
    np.testing.assert_allclose(P.mean_parameters[:, 0], expected, rtol=LENGTH_ERROR)
    # about the centre all directions have the variance (1 - length^2) / d, nearly
    mean, variance = VonMisesFisher(np.eye(1, d)[0], [0.0, 1e-200, 1e-9]).moments()
    np.testing.assert_allclose(mean[:, 0], [0.0, 1e-200 / d, 1e-9 / d], rtol=1e-15)
    np.testing.assert_allclose(variance, 1.0 / d, rtol=d * 1e-15)


@pytest.mark.parametrize("d", [2, 5, 40])
def test_fits_of_directions_that_nearly_cancel(d):
    # two opposite rows, one weighing slightly more: kappa = d * length
    X = np.eye(1, d) * [[1.0], [-1.0]]
    length = 2.0**-30
    P = VonMisesFisher.fit(X, weights=[1.0 + length, 1.0 - length])
    assert P.concentration == pytest.approx(d * length, rel=1e-14)


@pytest.mark.parametrize("d", [2, 3, 31, 32, 33, 1000, 20_000])
def test_directions_in_any_dimension_and_concentration(d):
    m = np.eye(2, d)
    kappa = np.array([0.0, 1e-3, 1.0, 1e3, 1e6, 1e9])
    P = VonMisesFisher(m[0], kappa)
    for value in (P.log_prob(m), P.entropy(), P.kl(P), P.log_affinity(P, 0.7)):
        assert np.isfinite(value).all()
    own = np.diagonal(P.log_affinity(P, 0.5))
    assert np.abs(own).max() < 1e-9 * d
    # the entropy falls with the concentration from the log of the area
    assert (np.diff(P.entropy()) < 0).all()


def test_affinity_of_close_and_concentrated_directions(rng):
    # on the tangent: Gaussians of variance 1 / kappa
    kappa, angle = 1e12, 1e-6 * rng.uniform(0.5, 2.0, size=20)
    m = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    L = VonMisesFisher(m, kappa).log_affinity(VonMisesFisher([1.0, 0.0], kappa), 0.5)
    np.testing.assert_allclose(L, -kappa * angle**2 / 8, rtol=1e-6)


def test_poisson_affinity_of_tiny_powers():
    # rho -> 0 counts the outcomes: it diverges, and stays a finite number before
    L = [Poisson(3.0).log_affinity(Poisson(4.0), rho) for rho in (1e-1, 1e-2, 1e-3)]
    assert L[0] < L[1] < L[2] < 20
