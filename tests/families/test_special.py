"""Gamma functions against mpmath, over their whole range, and where they are used."""

import numpy as np
import pytest
from scipy.special import gammaln

from maxent.families import (
    DirichletCounts,
    NegativeBinomial,
    NormalGamma,
    NormalInverseWishart,
)
from maxent.families._matching import shape_from_gap
from maxent.families._special import (
    inverse_digamma,
    log_factorial_excess,
    log_gamma_ratio,
    log_minus_digamma,
)

mpmath = pytest.importorskip("mpmath")


def exact_ratio(a, n):
    """log Gamma(a + n) - log Gamma(a) with many digits."""
    with mpmath.workdps(60):
        a, n = mpmath.mpf(a), mpmath.mpf(n)
        return mpmath.loggamma(a + n) - mpmath.loggamma(a)


def test_differences_of_log_gamma_do_not_cancel(rng):
    x = 10.0 ** rng.uniform(-3, 9, size=200)
    d = x * rng.uniform(-0.9, 3.0, size=200) * 10.0 ** rng.uniform(-12, 0, size=200)
    found = log_gamma_ratio(x, d)
    with mpmath.workdps(40):
        want = [
            float(mpmath.loggamma(mpmath.mpf(p) + mpmath.mpf(q)) - mpmath.loggamma(p))
            for p, q in zip(x, d)
        ]
    # x + d is rounded before anything else: the slope of log Gamma carries that on
    slack = 1e-14 * (1.0 + np.abs(want)) + 4e-16 * x * np.abs(np.log(x) + 2.0)
    assert (np.abs(found - want) <= slack).all()
    assert (log_gamma_ratio(x, np.zeros(200)) == 0).all()
    far = x > 1e6
    plain = np.abs(gammaln(x + d) - gammaln(x) - want)
    assert plain[far].max() > np.abs(found - want)[far].max()


def test_ratios_of_gamma_functions_of_integers_and_halves():
    a, n = (
        part.ravel()
        for part in np.meshgrid(
            [1e-3, 0.5, 1.0, 7.0, 19.5, 20.0, 21.0, 1e3, 1e6, 1e12, 1e15],
            [0.5, 1.0, 2.0, 17.0, 1e4],
        )
    )
    expected = [float(exact_ratio(p, q)) for p, q in zip(a, n)]
    # the sum of two small arguments keeps the digits of log Gamma at most
    slack = np.where(a < 20, 4e-16 * (np.abs(gammaln(a)) + np.abs(expected) + 4.0), 0.0)
    error = np.abs(log_gamma_ratio(a, n) - expected)
    assert (error <= 2e-15 * np.abs(expected) + slack).all()
    assert log_gamma_ratio(3.0, 2.0) == pytest.approx(np.log(12.0), rel=1e-15)
    assert np.ndim(log_gamma_ratio(1e12, 0.5)) == 0


def test_a_total_known_to_more_digits_than_the_sum_has():
    # 1 + (1e-10 - 1) has eight digits of 1e-10
    r = 1e-10
    assert log_gamma_ratio(1.0, r - 1.0, r) == pytest.approx(gammaln(r), rel=1e-15)


def test_factorials():
    x = np.array([0.0, 0.5, 1, 2, 5, 14, 14.9, 15, 15.5, 16, 17, 30, 1e4, 1e15])
    with mpmath.workdps(50):
        expected = [
            float(
                mpmath.loggamma(mpmath.mpf(k) + 1) - (k * mpmath.log(k) - k if k else 0)
            )
            for k in map(mpmath.mpf, x)
        ]
    np.testing.assert_allclose(
        log_factorial_excess(x), expected, rtol=1e-13, atol=1e-15
    )


def test_digamma_pieces():
    a = np.geomspace(1e-6, 1e12, 60)
    value, slope = log_minus_digamma(a)
    with mpmath.workdps(50):
        exact_value = [
            float(mpmath.log(x) - mpmath.digamma(x)) for x in map(mpmath.mpf, a)
        ]
        exact_slope = [float(1 / x - mpmath.psi(1, x)) for x in map(mpmath.mpf, a)]
    np.testing.assert_allclose(value, exact_value, rtol=1e-12)
    np.testing.assert_allclose(slope, exact_slope, rtol=1e-12)
    np.testing.assert_allclose(shape_from_gap(value), a, rtol=1e-10)
    x = np.geomspace(1e-8, 1e8, 50)
    y = np.array([float(mpmath.digamma(v)) for v in x])
    np.testing.assert_allclose(inverse_digamma(y), x, rtol=1e-8)


# -- where they are used ---------------------------------------------------------------
def test_large_pseudo_counts_keep_their_digits():
    share = np.array([0.5, 0.25, 0.25])
    alpha, counts = 1e12 * share, np.array([[3.0, 1.0, 0.0], [0.0, 2.0, 5.0]])
    prior = DirichletCounts(alpha)
    expected = [
        float(sum(map(exact_ratio, alpha, row)) - exact_ratio(alpha.sum(), row.sum()))
        for row in counts
    ]
    # terms near 7 log 1e12 are subtracted
    np.testing.assert_allclose(
        prior.predictive_log_prob(counts), expected, rtol=0, atol=1e-12
    )
    block, a = prior.block(counts), np.array([0.5, -1.25])
    gained = a @ counts
    expected = sum(map(exact_ratio, alpha, gained))
    expected = float(expected - exact_ratio(alpha.sum(), gained.sum()))
    assert block.log_partition(a) == pytest.approx(expected, abs=1e-12)
    # its gradient there is the mean
    assert block.mean(a) @ a == pytest.approx(expected, abs=1e-9)


def test_predictive_densities_of_many_degrees_of_freedom():
    # noise of variance one that is all but known
    x, n = np.array([[-1.0], [0.3], [4.0]]), 1e12
    normal = -0.5 * x[:, 0] ** 2 - 0.5 * np.log(2 * np.pi)
    line = NormalGamma([0.0], [[1e12]], shape=n, rate=n)
    rows = np.column_stack([x, np.ones(3)])
    np.testing.assert_allclose(line.predictive_log_prob(rows), normal, atol=1e-10)
    for d in (1, 3):
        prior = NormalInverseWishart(np.zeros(d), n, n, n * np.eye(d))
        rows = np.column_stack([x, np.zeros((3, d - 1))])
        expected = normal - 0.5 * (d - 1) * np.log(2 * np.pi)
        np.testing.assert_allclose(prior.predictive_log_prob(rows), expected, atol=1e-9)


@pytest.mark.parametrize("r", [1e-10, 0.3, 2.5, 40.0, 1e6, 1e12])
def test_probabilities_of_counts_of_any_size(r):
    for mean in (1e-3, 3.0, 1e12):
        P = NegativeBinomial(r / (r + mean), r)
        X = np.floor(mean * np.array([0.0, 0.5, 1.0, 3.0])) + np.arange(4.0)
        with mpmath.workdps(60):
            p, s = mpmath.mpf(float(P.prob)), mpmath.mpf(r)
            terms = [
                (
                    exact_ratio(max(x + 1, s), min(x + 1, s) - 1),
                    -mpmath.loggamma(min(x + 1, s)),
                    s * mpmath.log(p),
                    x * mpmath.log(1 - p),
                )
                for x in map(mpmath.mpf, X)
            ]
            expected = [float(mpmath.fsum(parts)) for parts in terms]
            size = np.array([float(max(map(abs, parts))) for parts in terms])
        # four terms, with a rounding each, are added
        error = np.abs(P.log_prob(X) - expected)
        assert (error <= 2e-15 * (size + 1.0)).all()
