"""Densities, entropies, moments, cumulants: by scipy.stats and by definition."""

import numpy as np
import pytest
from families import integrals
from families.family_cases import DISCRETE, MAKERS, NAMES, log_density, reference, spd
from scipy import stats

from maxent.families import (
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
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
)

every = pytest.mark.parametrize("name", NAMES)


@every
def test_log_prob_is_scipys(name, rng):
    P = MAKERS[name](rng, (4,))
    X = P[0].sample(7, rng)
    out = P.log_prob(X)
    assert out.shape == (4, 7)
    for p, row in zip(P, out):
        np.testing.assert_allclose(row, log_density(p, X), rtol=1e-10, atol=1e-10)


@every
def test_log_prob_is_the_exponential_form(name, rng):
    P = MAKERS[name](rng, (2, 3))
    X = P[0, 0].sample(5, rng)
    T = P.sufficient_statistics(X)
    assert T.shape == (5, P.natural_parameters.shape[-1])
    form = P.natural_parameters @ T.T - P.cumulant()[..., None] + P._log_base(X)
    np.testing.assert_allclose(P.log_prob(X), form, rtol=1e-9, atol=1e-9)


@every
def test_entropy_is_scipys(name, rng):
    P = MAKERS[name](rng, (3,))
    assert P.entropy().shape == (3,)
    if name == "inverse wishart":
        pytest.skip("scipy's lacks a constant; see the test by integration")
    expected = [reference(p).entropy() for p in P]
    np.testing.assert_allclose(P.entropy(), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", [Wishart, InverseWishart])
def test_entropy_of_matrices_is_the_integral(kind, rng):
    P = kind(rng.uniform(4.0, 7.0), spd(rng, (), 2))
    ends = (-18.0, 7.0) if kind is Wishart else (-7.0, 18.0)
    M = integrals.matrices(80, *ends, ends=61)
    X = np.stack([M["a"], M["c"], M["c"], M["b"]], axis=-1).reshape(-1, 2, 2)
    weight = M["weight"]
    # matrices so thin that rounding makes them singular have no mass
    thick = M["det"] > 1e-12 * (M["a"] + M["b"]) ** 2
    log_p = P.log_prob(X[thick])
    p = weight[thick] * np.exp(log_p)
    assert p.sum() == pytest.approx(1.0, abs=1e-6)
    assert P.entropy() == pytest.approx(-(p * log_p).sum(), abs=1e-5)


@every
def test_entropy_is_minus_the_mean_log_prob(name, rng):
    P = MAKERS[name](rng, ())
    log_p = P.log_prob(P.sample(4000, rng))
    assert abs(-log_p.mean() - P.entropy()) < 6 * log_p.std() / np.sqrt(4000) + 1e-12


@every
def test_moments_are_scipys(name, rng):
    P = MAKERS[name](rng, (3,))
    mean, variance = P.moments()
    assert mean.shape == variance.shape
    for k, p in enumerate(P):
        np.testing.assert_allclose(p.moments()[0], mean[k], rtol=1e-12)
        if name == "von mises-fisher":  # scipy has none
            continue
        frozen = reference(p)
        expected = getattr(frozen, "mean", None)
        expected = expected() if callable(expected) else expected
        np.testing.assert_allclose(mean[k], expected, rtol=1e-10)
        if name in ("gaussian", "diagonal", "spherical", "tied"):
            spread = np.diag(frozen.cov)
        elif name == "multinomial":
            spread = np.diag(frozen.cov())
        else:
            spread = frozen.var()
        np.testing.assert_allclose(variance[k], spread, rtol=1e-10)


def test_moments_of_directions_are_those_of_many_draws(rng):
    for kappa in (0.0, 1e-9, 0.5, 30.0):
        P = VonMisesFisher([0.6, 0.0, 0.8], kappa)
        X = P.sample(40_000, rng)
        mean, variance = P.moments()
        error = 6 * X.std(axis=0) / np.sqrt(len(X)) + 1e-12
        assert (np.abs(X.mean(axis=0) - mean) < error).all()
        np.testing.assert_allclose(X.var(axis=0), variance, rtol=0.1)


@every
def test_gradient_of_the_cumulant_is_the_mean_of_the_statistics(name, rng):
    P = MAKERS[name](rng, (2,))
    eta, mean = P.natural_parameters, P.mean_parameters
    for k in range(eta.shape[-1]):
        h = 1e-5 * np.maximum(np.abs(eta[:, k]), 0.1)
        step = np.zeros(eta.shape)
        step[:, k] = h
        slope = (P.cumulant(eta + step) - P.cumulant(eta - step)) / (2 * h)
        scale = 1 + np.abs(mean).max()
        np.testing.assert_allclose(slope, mean[:, k], rtol=1e-6, atol=1e-6 * scale)


@every
def test_cumulant_at_the_own_parameters_is_the_cumulant(name, rng):
    P = MAKERS[name](rng, (3,))
    again = P.cumulant(P.natural_parameters)
    np.testing.assert_allclose(P.cumulant(), again, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    "P, eta",
    [
        (Gamma(1.0, 1.0), [-1.0, -1.0]),
        (Gamma(1.0, 1.0), [0.0, 0.0]),
        (Beta(1.0, 1.0), [0.0, -1.5]),
        (Dirichlet([1.0, 1.0]), [-1.0, 0.0]),
        (Geometric(0.5), [0.0]),
        (SphericalGaussian([0.0], 1.0), [0.0, 0.0]),
        (Gaussian([0.0, 0.0], np.eye(2)), [0, 0, -0.5, 0.6, 0.6, -0.5]),
        (Wishart(2.0, np.eye(2)), [-1.0, -1, 0, 0, -1]),
        (Wishart(2.0, np.eye(2)), [1.0, -1, 0, 0, 1]),
        (InverseWishart(2.0, np.eye(2)), [-1.5, -1, 0, 0, -1]),
    ],
)
def test_cumulant_is_infinite_outside_the_domain(P, eta):
    assert P.cumulant(eta) == np.inf


# -- support ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    "P, X",
    [
        (Bernoulli(0.5), [0.5, -1.0, 2.0]),
        (Categorical([0.5, 0.5]), [-1, 2, 0.5]),
        (Multinomial([0.5, 0.5], 3), [[1, 1], [-1, 4], [1.5, 1.5]]),
        (Poisson(2.0), [-1.0, 0.5]),
        (Geometric(0.5), [-1.0, 0.5]),
        (NegativeBinomial(0.5, 2.0), [-1.0, 0.5]),
        (Gamma(2.0, 1.0), [-1e-9, -3.0]),
        (Beta(2.0, 2.0), [-0.1, 1.1]),
        (Dirichlet([2.0, 2.0]), [[0.5, 0.6], [-0.5, 1.5]]),
        (Wishart(3.0, np.eye(2)), [[[1, 2], [2, 1]], [[1, 0.5], [0, 1]]]),
        (InverseWishart(3.0, np.eye(2)), [[[1, 1], [1, 1]]]),
        (VonMisesFisher([1.0, 0.0], 1.0), [[1.0, 1.0], [0.0, 0.0]]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_outside_the_support_there_is_no_mass(P, X):
    assert (P.log_prob(X) == -np.inf).all()
    for x in X:
        with pytest.raises(ValueError, match=r"^X\[0\]=.* is outside the support of"):
            P.sufficient_statistics([x])


@pytest.mark.parametrize(
    "P, X",
    [
        (Gamma([0.5, 1.0, 2.0], 3.0), [0.0]),
        (Beta([0.5, 1.0, 2.0], [1.0, 0.5, 2.0]), [0.0, 1.0]),
        (Bernoulli([0.0, 1.0]), [0, 1]),
        (Poisson([0.0, 1.0]), [0, 1, 2]),
        (Geometric([1.0, 0.5]), [0, 1]),
        (Categorical([[0.0, 1.0, 0.0]]), [0, 1, 2]),
        (Multinomial([[0.0, 1.0, 0.0]], 2), [[0, 2, 0], [1, 1, 0]]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_edges_are_limits_as_in_scipy(P, X):
    with np.errstate(divide="ignore"):
        expected = [log_density(p, X) for p in P]
    np.testing.assert_allclose(P.log_prob(X), expected, rtol=1e-12, atol=1e-12)


def test_edge_of_the_dirichlet_distribution():
    P = Dirichlet([[1.0, 2.0, 3.0], [1.0, 1.0, 3.0], [0.5, 1.0, 3.0]])
    out = P.log_prob([[0.0, 0.5, 0.5]])[:, 0]
    # B(1, 2, 3) = 1! 2! / 5! = 1 / 60, density 60 x_2 x_3^2
    assert out[0] == pytest.approx(np.log(60 * 0.5 * 0.25), abs=1e-12)
    assert np.isfinite(out[1]) and out[2] == np.inf
    assert P[0].log_prob([[0.5, 0.0, 0.5]])[0] == -np.inf


# -- shapes ----------------------------------------------------------------------------
@every
def test_rows_with_leading_axes_belong_to_members(name, rng):
    P = MAKERS[name](rng, (3,))
    X = P.sample(4, rng)
    assert X.shape == (3, 4, *P.event_shape)
    own = P.log_prob(X)
    assert own.shape == (3, 4)
    for k in range(3):
        np.testing.assert_allclose(own[k], P[k].log_prob(X[k]), rtol=1e-12)
    crossed = P.log_prob(X[:, None])
    assert crossed.shape == (3, 3, 4)
    np.testing.assert_allclose(crossed[1], P.log_prob(X[1]), rtol=1e-12)
    one = P[0].log_prob(X)
    np.testing.assert_allclose(one[2], P[0].log_prob(X[2]), rtol=1e-12)


@every
def test_a_single_distribution_gives_numbers(name, rng):
    P = MAKERS[name](rng, ())
    assert P.batch_shape == ()
    for value in (P.entropy(), P.cumulant(), P.kl(P), P.log_affinity(P, 0.5)):
        assert isinstance(value, float)
    assert P.log_prob(P.sample(2, rng)).shape == (2,)
    assert MAKERS[name](rng, (0,)).entropy().shape == (0,)


@every
def test_float32_and_lists_are_accepted(name, rng):
    P = MAKERS[name](rng, (2,))
    X = P[0].sample(3, rng)
    np.testing.assert_array_equal(P.log_prob(X), P.log_prob(X.tolist()))
    if name in DISCRETE:
        np.testing.assert_array_equal(P.log_prob(X), P.log_prob(X.astype(np.float32)))
    frozen = np.array(X)
    frozen.setflags(write=False)
    np.testing.assert_array_equal(P.log_prob(X), P.log_prob(frozen))


# -- far from the origin, and far from one ---------------------------------------------
def test_gaussians_far_from_the_origin_lose_nothing(rng):
    P = MAKERS["gaussian"](rng, (3,))
    X = P.sample(6, rng)
    shift = 2.0**20
    Q = Gaussian(P.mean + shift, P.cov)
    moved = Q.log_prob(X + shift)
    np.testing.assert_allclose(moved, P.log_prob(X), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("kappa", [1e-6, 1.0, 1e3, 1e6])
def test_directions_of_three_dimensions_have_the_elementary_density(kappa):
    # kappa / (4 pi sinh kappa) exp(kappa m.x)
    P = VonMisesFisher([0.0, 0.0, 1.0], kappa)
    angle = np.linspace(0.0, 1.0, 7) / np.sqrt(1 + kappa)
    X = np.stack([np.sin(angle), 0 * angle, np.cos(angle)], axis=-1)
    log_norm = np.log(2 * np.pi) + np.log(-np.expm1(-2 * kappa)) - np.log(kappa)
    expected = -2 * kappa * np.sin(angle / 2) ** 2 - log_norm
    np.testing.assert_allclose(P.log_prob(X), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rate", [0.0, 1e-5, 0.3, 20.0, 199.0, 201.0, 1e5])
def test_entropy_of_poisson_counts(rate):
    reach = np.ceil(20 * np.sqrt(rate)) + 60
    p = stats.poisson(rate).pmf(np.arange(max(0, int(rate) - reach), rate + reach))
    expected = stats.entropy(p)
    assert Poisson(rate).entropy() == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("prob, r", [(0.01, 0.3), (0.5, 100.0), (0.999, 1e3), (1.0, 2)])
def test_entropy_of_negative_binomial_counts(prob, r):
    x = np.arange(20_000)
    p = stats.nbinom(r, prob).pmf(x)
    expected = stats.entropy(p)
    assert NegativeBinomial(prob, r).entropy() == pytest.approx(expected, abs=1e-9)


def test_entropy_that_would_be_a_very_long_sum_is_refused():
    with pytest.raises(ValueError, match=r"prob=1e-08 with r=2 .* no closed form"):
        NegativeBinomial(1e-8, 2.0).entropy()
