"""Affinities against integrals and sums of scipy's densities, and their algebra."""

import math

import numpy as np
import pytest
from families import integrals
from families.family_cases import MAKERS, NAMES, directions, log_density, spd
from scipy import stats
from scipy.special import multigammaln

from maxent.families import (
    Bernoulli,
    Beta,
    Categorical,
    DiagonalGaussian,
    Dirichlet,
    Exponential,
    Gamma,
    Gaussian,
    Geometric,
    InverseWishart,
    Multinomial,
    NegativeBinomial,
    Poisson,
    SphericalGaussian,
    VonMisesFisher,
    Wishart,
    discrete,
)
from maxent.families._sums_over_counts import log_negative_binomial_power_sum

mpmath = pytest.importorskip("mpmath")

RHO = (0.05, 0.3, 0.5, 0.8, 1.0, 1.7, 2.0)
powers = pytest.mark.parametrize("rho", RHO)
every = pytest.mark.parametrize("name", NAMES)


def assert_is_the_integral(P, Q, rho, X, weights, density=log_density, tol=1e-10):
    """L[i, j] = log sum_x w(x) p_i(x)^rho q_j(x)^rho for all pairs."""
    L = P.log_affinity(Q, rho)
    assert L.shape == (len(P), len(Q))
    with np.errstate(divide="ignore"):
        log_p = [density(p, X) for p in P]
        log_q = [density(q, X) for q in Q]
    for i, a in enumerate(log_p):
        for j, b in enumerate(log_q):
            expected = integrals.log_integral(rho * (a + b), weights)
            assert L[i, j] == pytest.approx(expected, abs=tol * (1 + abs(expected)))


# -- continuous ------------------------------------------------------------------------
@powers
@pytest.mark.parametrize("kind", [Gaussian, DiagonalGaussian, SphericalGaussian])
def test_gaussians(kind, rho, rng):
    def batch(n):
        mean = rng.normal(size=(n, 2))
        if kind is Gaussian:
            return Gaussian(mean, spd(rng, (n,), 2))
        shape = (n, 2) if kind is DiagonalGaussian else (n,)
        return kind(mean, rng.uniform(0.5, 3.0, size=shape))

    # variances are between 0.1 and 10: those of the product between 0.05 and 5 / rho
    X, w = integrals.space(2, width=5.0 + 17.0 / math.sqrt(rho), n=301)
    assert_is_the_integral(batch(2), batch(3), rho, X, w)


@powers
def test_exponential_and_gamma(rho, rng):
    X, w = integrals.half_line(-80.0, 9.0, 6001)
    P, Q = (Exponential(rng.uniform(0.3, 3.0, size=n)) for n in (2, 3))
    assert_is_the_integral(P, Q, rho, X, w)
    low = max(0.2, 1.2 - 0.5 / rho)  # inside the domain, below one where it can be
    P, Q = (
        Gamma(rng.uniform(low, 4.0, size=n), rng.uniform(0.3, 3.0, size=n))
        for n in (2, 3)
    )
    assert_is_the_integral(P, Q, rho, X, w)


@powers
def test_beta(rho, rng):
    x, rest, w = integrals.double_exponential(601, 4.2)
    low = max(0.3, 1.2 - 0.5 / rho)
    P, Q = (
        Beta(rng.uniform(low, 4.0, size=n), rng.uniform(low, 4.0, size=n))
        for n in (2, 3)
    )

    def density(p, X):
        # scipy's needs 1 - x, of which nothing is left at the upper end
        a, b = float(p.a), float(p.b)
        constant = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
        return constant + (a - 1) * np.log(x) + (b - 1) * np.log(rest)

    assert_is_the_integral(P, Q, rho, x, w, density)


@powers
def test_dirichlet(rho, rng):
    X, w = integrals.triangle()
    low = max(0.5, 1.3 - 0.5 / rho)
    P, Q = (Dirichlet(rng.uniform(low, 4.0, size=(n, 3))) for n in (2, 3))

    def density(p, X):
        a = p.alpha
        constant = math.lgamma(a.sum()) - sum(map(math.lgamma, a))
        return constant + np.log(X) @ (a - 1)

    assert_is_the_integral(P, Q, rho, X, w, density, tol=1e-9)


def wishart_density(p, M):
    nu, V = float(p.df), p.scale
    inv = np.linalg.inv(V)
    trace = inv[0, 0] * M["a"] + inv[1, 1] * M["b"] + 2 * inv[0, 1] * M["c"]
    constant = nu * np.log(2) + 0.5 * nu * np.log(np.linalg.det(V))
    constant += multigammaln(0.5 * nu, 2)
    return 0.5 * (nu - 3) * np.log(M["det"]) - 0.5 * trace - constant


def inverse_wishart_density(p, M):
    nu, S = float(p.df), p.scale
    trace = (S[0, 0] * M["b"] + S[1, 1] * M["a"] - 2 * S[0, 1] * M["c"]) / M["det"]
    constant = nu * np.log(2) - 0.5 * nu * np.log(np.linalg.det(S))
    constant += multigammaln(0.5 * nu, 2)
    return -0.5 * (nu + 3) * np.log(M["det"]) - 0.5 * trace - constant


@pytest.mark.parametrize("rho", [0.5, 0.8, 1.0, 2.0])
def test_wishart(rho, rng):
    M = integrals.matrices()
    P, Q = (Wishart(rng.uniform(4, 7, size=n), spd(rng, (n,), 2)) for n in (1, 2))
    assert_is_the_integral(P, Q, rho, M, M["weight"], wishart_density, tol=1e-8)


@pytest.mark.parametrize("rho", [0.5, 0.8, 1.0, 2.0])
def test_inverse_wishart(rho, rng):
    # of an inverse, whose elements spread the other way
    M = integrals.matrices(low=-7.0, high=14.0)
    P, Q = (
        InverseWishart(rng.uniform(4, 7, size=n), spd(rng, (n,), 2)) for n in (1, 2)
    )
    L = P.log_affinity(Q, rho)
    density = inverse_wishart_density
    for j, q in enumerate(Q):
        value = rho * (density(P[0], M) + density(q, M))
        expected = integrals.log_integral(value, M["weight"])
        assert L[0, j] == pytest.approx(expected, abs=1e-7)


@powers
def test_matrices_of_one_dimension(rho, rng):
    X, w = integrals.half_line(-80.0, 160.0, 16_001)
    low = max(0.3, 2.4 - 1.0 / rho)
    df, scale = rng.uniform(low, 7, size=3), rng.uniform(0.5, 2, size=3)
    W, G = Wishart(df, scale[:, None, None]), Gamma(0.5 * df, 2 * scale)
    np.testing.assert_allclose(
        W.log_affinity(W, rho), G.log_affinity(G, rho), rtol=1e-12, atol=1e-12
    )
    low = max(0.3, 1.3 / rho - 2)
    df = rng.uniform(low, low + 4, size=3)
    V = InverseWishart(df, scale[:, None, None])

    def density(p, X):
        return stats.invgamma(p.df / 2, scale=float(p.scale[0, 0]) / 2).logpdf(X)

    assert_is_the_integral(V[:2], V[1:], rho, X, w, density)


@powers
@pytest.mark.parametrize("d", [2, 3, 4])
def test_directions(d, rho, rng):
    X, w = integrals.sphere(d, 160 if d < 4 else 72)
    P, Q = (
        VonMisesFisher(directions(rng, (n,), d), rng.uniform(0, 9, size=n))
        for n in (2, 3)
    )

    def density(p, X):
        constant = integrals.log_integral(X @ p.natural_parameters, w)
        return X @ p.natural_parameters - constant

    assert_is_the_integral(P, Q, rho, X, w, density)


# -- discrete --------------------------------------------------------------------------
@powers
def test_bernoulli_and_categorical(rho, rng):
    P = Bernoulli([0.0, 0.2, 1.0, rng.uniform()])
    Q = Bernoulli([0.3, 1e-9, rng.uniform()])
    assert_is_the_integral(P, Q, rho, np.arange(2), np.ones(2))
    P, Q = (Categorical(rng.dirichlet(np.ones(5), size=n)) for n in (3, 4))
    assert_is_the_integral(P, Q, rho, np.arange(5), np.ones(5))


@powers
@pytest.mark.parametrize("total", [1, 2, 6])
def test_multinomial(total, rho, rng):
    counts = np.indices((total + 1,) * 3).reshape(3, -1).T
    X = counts[counts.sum(axis=1) == total]
    P, Q = (Multinomial(rng.dirichlet(np.ones(3), size=n), total) for n in (2, 3))
    assert_is_the_integral(P, Q, rho, X, np.ones(len(X)))
    edge = Multinomial([[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]], total)
    L = edge.log_affinity(edge, rho)
    assert L[0, 1] == -np.inf and L[1, 1] == pytest.approx(0.0, abs=1e-13)


@powers
def test_counts(rho, rng):
    X = np.arange(4000)
    P = Poisson([0.0, *rng.uniform(0.01, 12, size=2), 90.0])
    assert_is_the_integral(P, P[1:], rho, X, np.ones(len(X)))
    P, Q = (Geometric(rng.uniform(0.2, 0.9, size=n)) for n in (2, 3))
    assert_is_the_integral(P, Q, rho, X, np.ones(len(X)))
    sure = Geometric([1.0, 0.5]).log_affinity(Geometric([1.0, 0.5]), rho)
    np.testing.assert_allclose(sure[0], [0.0, rho * math.log(0.5)], atol=1e-14)


@powers
@pytest.mark.parametrize("r", [0.3, 2.5, 40.0])
def test_negative_binomial(r, rho, rng):
    # the longest tail, 0.9^(2 rho x), is below exp(-60) from here on
    X = np.arange(30.0 / rho / -math.log(0.9) + 20.0 * r)
    P, Q = (NegativeBinomial(rng.uniform(0.1, 0.9, size=n), r) for n in (2, 3))
    assert_is_the_integral(P, Q, rho, X, np.ones(len(X)))
    sure = NegativeBinomial([1.0, 0.5], r).log_affinity(NegativeBinomial(1.0, r), rho)
    np.testing.assert_allclose(sure, [0.0, rho * r * math.log(0.5)], rtol=1e-14)


def test_negative_binomial_of_one_success_is_geometric(rng):
    geometric = Geometric(rng.uniform(0.1, 0.9, size=3))
    one = NegativeBinomial(geometric.prob, 1.0)
    for rho in (0.5, 1.3):
        L = one.log_affinity(one, rho)
        np.testing.assert_array_equal(L, geometric.log_affinity(geometric, rho))
    near = NegativeBinomial(geometric.prob, 1.0 + 1e-15)
    np.testing.assert_allclose(near.log_affinity(near, 1.3), L, atol=1e-13)


# -- special cases ---------------------------------------------------------------------
@pytest.mark.parametrize("rho", [0.1, 0.5, 1.0, 2.5])
def test_spherical_gaussians_are_the_rbf_kernel(rho, rng):
    var = 0.7
    m = rng.normal(size=(40, 3))
    square = ((m[:, None] - m) ** 2).sum(axis=-1)
    rbf = np.exp(-rho / (4 * var) * square)
    for P in (
        SphericalGaussian(m, var),
        DiagonalGaussian(m, np.full(3, var)),
        Gaussian(m, var * np.eye(3)),
    ):
        L = P.log_affinity(P, rho)
        own = np.diagonal(L)
        khat = np.exp(L - 0.5 * (own[:, None] + own))
        np.testing.assert_allclose(khat, rbf, rtol=1e-13, atol=1e-13)
        constant = 1.5 * ((1 - 2 * rho) * np.log(2 * np.pi * var) - np.log(2 * rho))
        np.testing.assert_allclose(own, constant, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("d", [1, 2, 7, 16, 17, 40])
def test_pairs_of_gaussians_are_the_textbook_formula(d, rng):
    # some means close, some thousands of standard deviations apart
    P, Q = (
        Gaussian(
            10.0 ** rng.uniform(-2, 4) * rng.normal(size=(n, d)), spd(rng, (n,), d)
        )
        for n in (5, 4)
    )
    L = P.log_affinity(Q, 0.5)
    for i, p in enumerate(P):
        for j, q in enumerate(Q):
            middle = 0.5 * (p.cov + q.cov)
            delta = p.mean - q.mean
            expected = -0.125 * delta @ np.linalg.solve(middle, delta)
            expected -= 0.5 * np.linalg.slogdet(middle)[1]
            expected += 0.25 * np.linalg.slogdet(p.cov)[1]
            expected += 0.25 * np.linalg.slogdet(q.cov)[1]
            assert L[i, j] == pytest.approx(expected, rel=1e-10, abs=1e-11)


def test_three_gaussians_agree_where_they_are_one(rng):
    m, var = rng.normal(size=(6, 4)), rng.uniform(0.5, 2, size=6)
    full = Gaussian(m, var[:, None, None] * np.eye(4))
    diagonal = DiagonalGaussian(m, np.repeat(var[:, None], 4, axis=1))
    spherical = SphericalGaussian(m, var)
    for rho in (0.3, 0.5, 2.0):
        L = full.log_affinity(full, rho)
        for P in (diagonal, spherical):
            np.testing.assert_allclose(
                P.log_affinity(P, rho), L, rtol=1e-12, atol=1e-12
            )


def test_one_shared_covariance_is_the_general_case(rng):
    m, cov = rng.normal(size=(5, 3)), spd(rng, (), 3)
    shared, copied = Gaussian(m, cov), Gaussian(m, np.stack([cov] * 5))
    other = Gaussian(rng.normal(size=(4, 3)), spd(rng, (), 3))
    for rho in (0.5, 1.3):
        np.testing.assert_allclose(
            shared.log_affinity(shared, rho),
            copied.log_affinity(copied, rho),
            atol=1e-12,
        )
        np.testing.assert_allclose(
            shared.log_affinity(other, rho), copied.log_affinity(other, rho), atol=1e-12
        )


@every
def test_a_constant_far_from_the_origin_changes_nothing(name, rng):
    if name not in ("gaussian", "diagonal", "spherical"):
        pytest.skip("has no location")
    P = MAKERS[name](rng, (5,))
    spread = P.parameters().get("cov", P.parameters().get("var"))
    # means on a grid, so that moving them by a power of two is exact
    near = type(P)(np.round(P.mean * 2**20) / 2**20, spread)
    far = type(P)(near.mean + 2.0**22, spread)
    for rho in (0.5, 1.0):
        L, M = near.log_affinity(near, rho), far.log_affinity(far, rho)
        np.testing.assert_allclose(M, L, rtol=1e-12, atol=1e-12)


def test_close_means_among_distant_ones(rng):
    # clusters of width 1e-4, 1e3 apart: |x|^2 + |y|^2 - 2 x.y has no digit left
    centres = np.round(1e3 * rng.normal(size=(3, 1, 2)))
    offsets = np.round(rng.normal(size=(3, 4, 2)) * 2**6) / 2**20
    m = (centres + offsets).reshape(-1, 2)
    square = ((m[:, None] - m) ** 2).sum(axis=-1)
    P = SphericalGaussian(m, 1e-8)
    np.testing.assert_allclose(
        P.log_affinity(P, 0.5), -square / 8e-8, rtol=1e-11, atol=1e-12
    )


def test_large_rates_and_other_powers_of_poisson():
    for rate, other, rho in [(400.0, 300.0, 0.3), (1e4, 1.2e4, 0.8), (60.0, 70.0, 2.5)]:
        with mpmath.workdps(60):
            a, b = mpmath.mpf(rate), mpmath.mpf(other)
            mode = int(mpmath.sqrt(a * b))
            reach = int(40 * math.sqrt(mode / rho) + 40)
            terms = range(max(0, mode - reach), mode + reach)
            expected = mpmath.log(
                mpmath.fsum(
                    mpmath.exp(
                        rho
                        * (x * mpmath.log(a * b) - 2 * mpmath.loggamma(x + 1) - a - b)
                    )
                    for x in terms
                )
            )
        L = Poisson(rate).log_affinity(Poisson(other), rho)
        assert pytest.approx(float(expected), rel=1e-12, abs=1e-12) == L


def negative_binomial_terms(prob, other, r, rho):
    """Summands of the affinity as a function of the count, with mpmath's digits."""
    a, b, r, rho = (mpmath.mpf(number) for number in (prob, other, r, rho))
    constant = r * mpmath.log(a * b) - 2 * mpmath.loggamma(r)
    slope = mpmath.log((1 - a) * (1 - b))

    def term(x):
        base = mpmath.loggamma(x + r) - mpmath.loggamma(x + 1)
        return mpmath.exp(rho * (constant + x * slope + 2 * base))

    return term


@pytest.mark.parametrize("r", [0.02, 3.0, 99.0, 130.0, 700.0])
@pytest.mark.parametrize("rho", [0.2, 0.8, 3.0])
def test_negative_binomial_sums_with_many_digits(r, rho):
    for prob, other in ((0.02, 0.05), (0.3, 0.6), (0.999, 0.9)):
        with mpmath.workdps(30):
            term = negative_binomial_terms(prob, other, r, rho)
            mode = r * (1 - prob) / prob
            reach = 40 * math.sqrt(max(mode, 1) / prob / rho) + 40 / prob / rho
            terms = range(max(0, int(mode - reach)), int(mode + reach), 1)
            if len(terms) > 6000:
                continue
            expected = float(mpmath.log(mpmath.fsum(map(term, terms))))
        L = NegativeBinomial(prob, r).log_affinity(NegativeBinomial(other, r), rho)
        assert pytest.approx(expected, rel=1e-12, abs=1e-12) == L


def test_long_negative_binomial_sums():
    with mpmath.workdps(18):
        term = negative_binomial_terms(1e-6, 1e-5, 2.5, 0.3)
        expected = mpmath.log(mpmath.nsum(term, [0, mpmath.inf], method="e"))
    L = NegativeBinomial(1e-6, 2.5).log_affinity(NegativeBinomial(1e-5, 2.5), 0.3)
    assert pytest.approx(float(expected), rel=1e-12) == L
    # rho = 1: the sum is prob^2r 2F1(r, r; 1; (1 - prob)^2)
    for r in (1e-3, 0.3, 2.5, 50.0, 99.0, 102.0, 500.0):
        prob = np.array([1e-8, 1e-5, 1e-3, 0.1, 0.5, 0.9, 0.999])
        P = NegativeBinomial(prob, r)
        with mpmath.workdps(40):
            expected = [
                mpmath.log(mpmath.hyp2f1(r, r, 1, (1 - p) ** 2))
                + 2 * mpmath.mpf(r) * mpmath.log(p)
                for p in map(mpmath.mpf, prob)
            ]
        # the terms of the sum have logarithms of the size of r log prob
        size = 1 - 2 * r * np.log(prob) if r <= 101 else 1 - np.log(prob)
        error = np.abs(np.diagonal(P.log_affinity(P, 1.0)) - np.array(expected, float))
        assert (error <= 1e-15 * size + 1e-13).all()


@pytest.mark.parametrize("r", [1e-10, 0.02, 0.9, 2.5, 20.0, 200.0, 202.0, 1e4, 1e8])
def test_probabilities_of_negative_binomials_sum_to_one(r):
    # the sum of powers, for the power one
    prob = np.array([1e-12, 1e-9, 1e-6, 1e-3, 0.03, 0.3, 0.7, 0.97, 1 - 1e-9, 1.0])
    with np.errstate(divide="ignore"):
        log_fail = np.log1p(-prob)
    total = log_negative_binomial_power_sum(log_fail, r, 1.0)
    # counts of standard deviation sqrt(r) / prob know their terms to that many digits
    size = 1 - r * np.log(prob) if r <= 201 else 1 + math.sqrt(r)
    assert (np.abs(total) <= 1e-15 * size + 1e-13).all()


def test_power_sums_do_not_jump_where_the_rule_changes():
    # rho = 1 by its Bessel function and by the sum
    rates = np.concatenate([np.geomspace(1e-3, 1e6, 200), np.linspace(90, 110, 41)])
    P = Poisson(rates)
    closed = np.diagonal(P.log_affinity(P, 1.0))
    summed = np.diagonal(P.log_affinity(P, 1.0 + 1e-15))
    np.testing.assert_allclose(summed, closed, rtol=0, atol=2e-13)


def test_disjoint_supports():
    P = Categorical([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    L = P.log_affinity(P, 0.7)
    assert L[0, 1] == -np.inf and L[0, 0] == pytest.approx(0.0, abs=1e-15)
    assert Bernoulli(0.0).log_affinity(Bernoulli(1.0), 1.0) == -np.inf
    assert Poisson(0.0).log_affinity(Poisson(3.0), 1.0) == pytest.approx(-3.0)


@pytest.mark.parametrize("low", [0.0, -3000.0])
def test_pairs_without_a_shared_category_are_not_summed(low, rng, monkeypatch):
    # documents of few words each, then with probabilities beyond the range of doubles
    log_p = rng.uniform(low, 0.0, size=(30, 40))
    log_p[rng.uniform(size=(30, 40)) > 0.05] = -np.inf
    log_p[:, :2] = np.where(rng.uniform(size=(30, 1)) < 0.5, [0, -np.inf], [-np.inf, 0])
    if low:
        log_p[::3, 2] = low
    summed = []

    def log_sum(terms):
        summed.extend(terms)
        return discrete_log_sum(terms)

    discrete_log_sum = discrete.log_sum
    monkeypatch.setattr(discrete, "log_sum", log_sum)
    L = discrete._log_power_product(log_p, log_p)
    pairs = log_p[:, None] + log_p
    shared = np.isfinite(pairs).any(axis=-1)
    assert not shared.all()
    assert np.isinf(L[~shared]).all()
    expected = discrete_log_sum(pairs[shared])
    np.testing.assert_allclose(L[shared], expected, rtol=1e-14, atol=1e-14)
    # the sum in logs is for what has underflowed alone
    assert np.isfinite(summed).any(axis=-1).all() if low else not summed


@pytest.mark.parametrize("few_p, few_q", [(True, True), (True, False), (False, False)])
def test_rows_of_few_categories_have_the_affinities_of_all(few_p, few_q, rng):
    def batch(few):
        table = rng.uniform(size=(20, 300))
        if few:
            table[:, 1:][rng.uniform(size=(20, 299)) > 0.03] = 0.0
        return Categorical(table / table.sum(axis=1, keepdims=True))

    P, Q = batch(few_p), batch(few_q)
    for rho in (0.5, 1.0, 1.7):
        for R in (P, Q):
            expected = np.log(P.prob**rho @ (R.prob**rho).T)
            L = P.log_affinity(R, rho)
            np.testing.assert_allclose(L, expected, rtol=1e-13, atol=1e-13)


def test_rows_of_few_categories_do_not_multiply_zeros(rng, monkeypatch):
    table = np.zeros((10, 2000))
    table[np.arange(10)[:, None], rng.integers(2000, size=(10, 20))] = 0.05
    table[:, 0] = np.maximum(1.0 - table[:, 1:].sum(axis=1), 0.0)
    seen = []

    def scaled(log_p, few):
        seen.append(discrete_scaled(log_p, few))
        return seen[-1]

    discrete_scaled = discrete._scaled_rows
    monkeypatch.setattr(discrete, "_scaled_rows", scaled)
    P = Categorical(table)
    P.log_affinity(P, 0.5)
    assert len(seen) == 1  # of one batch once
    assert seen[0][0].nnz == np.count_nonzero(table)


def test_powers_beyond_the_range_of_doubles_stay_finite():
    a, b = [0.99, 0.01], [0.01, 0.99]
    for rho in (50.0, 300.0, 3000.0):
        expected = rho * math.log(0.99 * 0.01) + math.log(2)
        L = Categorical(a).log_affinity(Categorical(b), rho)
        assert pytest.approx(expected, rel=1e-13) == L
