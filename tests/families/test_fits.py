"""Fits: greatest likelihood, weights, batches, smoothing, and what has no fit."""

import numpy as np
import pytest
from families.family_cases import MAKERS, NAMES, spd
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refusals, refused

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
    Independent,
    InverseWishart,
    Multinomial,
    NegativeBinomial,
    Poisson,
    Product,
    SphericalGaussian,
    VonMisesFisher,
    Wishart,
)

every = pytest.mark.parametrize("name", NAMES)


def fit_like(P, X, weights=None, **more):
    """Fit of P's class, with what the class needs besides rows."""
    return type(P).fit(X, weights, **P._fixed(), **more)


def assert_same(P, Q, tol=1e-9):
    for mine, theirs in zip(P._arrays(), Q._arrays(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=tol, atol=tol)


def mixed(P, Q):
    """Parameters of P with a hundredth of Q's."""
    if isinstance(P, Independent):
        return Independent(mixed(P.members, Q.members))
    if isinstance(P, Product):
        return Product(dict(zip(P.columns, map(mixed, P.factors, Q.factors))))
    parts = {}
    for key, value in P.parameters().items():
        parts[key] = value
        if key not in ("total", "r"):
            parts[key] = value + 0.01 * (getattr(Q, key) - value)
        if key == "mean_direction":
            parts[key] /= np.linalg.norm(parts[key])
    return type(P)(**parts)


@every
def test_mean_statistics_of_the_fit_are_those_of_the_rows(name, rng):
    P = MAKERS[name](rng, ())
    X, w = P.sample(60, rng), rng.uniform(0.1, 2.0, size=60)
    fit = fit_like(P, X, w)
    assert fit.batch_shape == ()
    T = P.sufficient_statistics(X)
    mean = w @ T / w.sum()
    if name in ("diagonal", "spherical", "gaussian", "tied"):
        scale = 1 + np.abs(mean).max()
    else:
        scale = np.abs(mean).max() + 1e-3
    np.testing.assert_allclose(fit.mean_parameters, mean, rtol=1e-8, atol=1e-8 * scale)


@every
def test_no_neighbour_has_greater_likelihood(name, rng):
    P = MAKERS[name](rng, ())
    X, w = P.sample(50, rng), rng.uniform(0.1, 2.0, size=50)
    fit = fit_like(P, X, w)
    best = w @ fit.log_prob(X)
    # perturbed parameters inside the domain, by mixing with other members
    for other in MAKERS[name](rng, (40,)):
        assert w @ mixed(fit, other).log_prob(X) < best + 1e-9 * abs(best)


@every
def test_weights_are_repetitions(name, rng):
    P = MAKERS[name](rng, ())
    X, w = P.sample(40, rng), rng.integers(0, 4, size=40)
    w[:4] = 1  # so that not too few are left
    repeated = fit_like(P, np.repeat(X, w, axis=0))
    assert_same(fit_like(P, X, w), repeated)
    assert_same(fit_like(P, X, 0.3 * w), repeated)
    assert_same(fit_like(P, X[::-1], w[::-1]), repeated)


@every
def test_rows_of_no_weight_may_hold_anything_outside_the_support(name, rng):
    if name in ("gaussian", "diagonal", "spherical", "tied"):
        pytest.skip("every row is in the support")
    P = MAKERS[name](rng, ())
    X = P.sample(20, rng).astype(float)
    w = np.ones(20)
    w[7] = 0.0
    outside = X.copy()
    outside[7] = -3.0 if name != "beta" else 2.0
    expected = fit_like(P, np.delete(X, 7, axis=0))
    assert_same(fit_like(P, outside, w), expected)
    refused(lambda: fit_like(P, outside), r"^X\[7\]=.* is outside the support of")


@every
def test_one_call_fits_a_batch(name, rng):
    if name == "tied":
        pytest.skip("members of a batch have one scatter")
    P = MAKERS[name](rng, (2, 3))
    own = P.sample(30, rng)
    W = rng.uniform(0.1, 1.0, size=(2, 3, 30))
    rows = own[0, 0]
    by_weights = fit_like(P, rows, W)
    by_rows = fit_like(P, own)
    both = fit_like(P, own, W[0, 0])
    full = fit_like(P, own, W)
    for fit in (by_weights, by_rows, both, full):
        assert fit.batch_shape == (2, 3)
    for at in [(0, 0), (1, 2), (0, 1)]:
        assert_same(by_weights[at], fit_like(P, rows, W[at]))
        assert_same(by_rows[at], fit_like(P, own[at]))
        assert_same(both[at], fit_like(P, own[at], W[0, 0]))
        assert_same(full[at], fit_like(P, own[at], W[at]))


@every
def test_fits_of_many_rows_find_the_parameters(name, rng):
    P = MAKERS[name](rng, ())
    fit = fit_like(P, P.sample(20_000, rng))
    # the divergence of a fit from n rows is about (number of parameters) / (2 n)
    assert P.kl(fit) < 40 * P.natural_parameters.shape[-1] / 40_000


# -- known values ----------------------------------------------------------------------
def test_gaussian_fits_are_moments(rng):
    X, w = rng.normal(size=(50, 3)) @ rng.normal(size=(3, 3)), rng.uniform(size=50)
    mean = np.average(X, axis=0, weights=w)
    cov = np.cov(X.T, aweights=w, ddof=0)
    P = Gaussian.fit(X, w)
    np.testing.assert_allclose(P.mean, mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(P.cov, cov, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(
        Gaussian.fit(X, w, smoothing=0.3).cov, cov + 0.3 * np.eye(3), rtol=1e-12
    )
    var = DiagonalGaussian.fit(X, w, smoothing=0.3).var
    np.testing.assert_allclose(var, np.diag(cov) + 0.3, rtol=1e-12)
    var = SphericalGaussian.fit(X, w, smoothing=0.3).var
    np.testing.assert_allclose(var, np.trace(cov) / 3 + 0.3, rtol=1e-12)


def test_gaussian_fits_far_from_the_origin(rng):
    # rows on a grid, so that moving them is exact
    X = np.round(rng.normal(size=(40, 2)) * 2**10) / 2**10
    for kind in (Gaussian, DiagonalGaussian, SphericalGaussian):
        near, far = kind.fit(X), kind.fit(X + 2.0**30)
        spread = "cov" if kind is Gaussian else "var"
        np.testing.assert_allclose(
            getattr(far, spread), getattr(near, spread), rtol=1e-11
        )


def test_smoothed_frequencies():
    X = [0, 0, 2]
    np.testing.assert_allclose(
        Categorical.fit(X, smoothing=0.5, n_categories=4).prob,
        np.array([2.5, 0.5, 1.5, 0.5]) / 5,
    )
    c = [1.0, 0.0, 2.0]
    np.testing.assert_allclose(
        Categorical.fit(X, smoothing=c).prob, np.array([3, 0, 3]) / 6
    )
    np.testing.assert_allclose(Categorical.fit(X, [1, 1, 4]).prob, [1 / 3, 0, 2 / 3])
    np.testing.assert_allclose(
        Multinomial.fit([[3, 1], [2, 2]], smoothing=1.0).prob, [0.6, 0.4]
    )
    assert Multinomial.fit([[3, 1], [2, 2]]).total == 4
    ragged = Multinomial.fit([[[3, 1]], [[9, 0]]], total=1)
    np.testing.assert_allclose(ragged.prob, [[0.75, 0.25], [1.0, 0.0]])
    assert Bernoulli.fit([1, 1, 0], smoothing=1.0).prob == pytest.approx(0.6)
    assert Poisson.fit([4, 5], smoothing=2.0).rate == pytest.approx(11 / 4)
    assert Geometric.fit([1, 3]).prob == pytest.approx(1 / 3)
    assert Exponential.fit([1.0, 5.0], smoothing=2.0).scale == pytest.approx(2.0)


@pytest.mark.parametrize("shape", [5e-3, 0.03, 0.7, 5.0, 1e3, 1e8, 1e14])
def test_gamma_shapes_of_any_size(shape):
    # two rows exp(-s), exp(s) have the gap log cosh(s)
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(50):
        gap = mpmath.log(shape) - mpmath.digamma(shape)
        s = float(mpmath.acosh(mpmath.exp(gap)))
    P = Gamma.fit(3.0 * np.exp([-s, s]))
    # rows a relative s apart are rounded by eps / s
    assert P.shape == pytest.approx(shape, rel=1e-9 + 1e-15 / s)
    assert P.moments()[0] == pytest.approx(3.0 * np.cosh(s), rel=1e-12)


def test_wishart_fits_of_one_dimension_are_gamma_fits(rng):
    x = rng.gamma(2.0, 3.0, size=40)
    G, W = Gamma.fit(x), Wishart.fit(x[:, None, None])
    assert W.df == pytest.approx(2 * G.shape, rel=1e-9)
    assert W.scale[0, 0] == pytest.approx(G.scale / 2, rel=1e-9)
    V = InverseWishart.fit(1 / x[:, None, None])
    assert V.df == pytest.approx(W.df, rel=1e-9)
    assert V.scale[0, 0] == pytest.approx(1 / W.scale[0, 0], rel=1e-9)


def test_beta_fits_are_dirichlet_fits(rng):
    x = rng.beta(0.4, 3.0, size=60)
    x = np.clip(x, 1e-9, None)
    B, D = Beta.fit(x), Dirichlet.fit(np.stack([x, 1 - x], axis=-1))
    np.testing.assert_allclose([B.a, B.b], D.alpha, rtol=1e-8)


@settings(max_examples=40)
@given(
    log_alpha=st.lists(st.floats(-4, 8), min_size=2, max_size=6),
)
def test_dirichlet_fits_invert_the_mean_logs(log_alpha):
    P = Dirichlet(np.exp(log_alpha))
    again = Dirichlet._solve(P.mean_parameters, None)
    # the sum of k digamma differences near s keeps about eps * s relative digits
    tol = 1e-8 + 1e-13 * P.alpha.sum() * P.alpha.sum() / P.alpha.min()
    np.testing.assert_allclose(again.alpha, P.alpha, rtol=min(tol, 0.1))


@pytest.mark.parametrize("d", [2, 3, 10, 500])
@pytest.mark.parametrize("kappa", [1e-3, 0.5, 40.0, 1e4, 1e7])
def test_concentrations_of_any_size(d, kappa):
    m = np.eye(1, d)[0]
    P = VonMisesFisher(m, kappa)
    again = VonMisesFisher._solve(P.mean_parameters, None)
    # 1 - |mean| is stored with the rounding of the mean
    lack = 1 - P._length
    tol = 1e-9 + 4e-16 / min(lack, P._length)
    assert again.concentration == pytest.approx(kappa, rel=tol)


# -- what has no fit -------------------------------------------------------------------
test_fits_that_do_not_exist_say_why = refusals(
    [
        (lambda: Gaussian.fit(np.eye(3)), r"scatter .* singular .* smoothing > 0"),
        (lambda: Gaussian.fit([[1.0, 2.0]]), r"2 dimensions need at least 3 rows"),
        (lambda: Gaussian.fit(np.c_[np.arange(9), np.full(9, 0.1)]), "singular"),
        (
            lambda: Gaussian.fit(np.arange(24.0).reshape(2, 6, 2)),
            r"singular for member \[0\] of the batch",
        ),
        (lambda: DiagonalGaussian.fit([[0.1, 1], [0.1, 2], [0.1, 3]]), "column 0 of X"),
        (lambda: SphericalGaussian.fit([[0.1, 0.7]] * 3), "all rows of X are equal"),
        (lambda: Gamma.fit([2.1, 2.1, 2.1]), "all rows of a fit are equal"),
        (lambda: Gamma.fit([2.0, 0.0]), r"X\[1\]=0.0 is on the edge of the support"),
        (lambda: Beta.fit([0.5, 1.0]), r"X\[1\]=1.0 is on the edge of the support"),
        (lambda: Beta.fit([0.3, 0.3]), "all rows of a fit are equal"),
        (lambda: Dirichlet.fit([[0.0, 1.0]]), r"X\[0\]=.* is on the edge"),
        (lambda: Dirichlet.fit([[0.2, 0.8]] * 4), "all rows of a fit are equal"),
        (lambda: Dirichlet.fit([[1.0]]), "at least two"),
        (lambda: Exponential.fit([0.0, 0.0]), "all rows of a fit are zero"),
        (lambda: Wishart.fit([np.eye(2)] * 3), "all rows of a fit are equal"),
        (lambda: Wishart.fit(np.ones((3, 2, 3))), "must be square"),
        (lambda: VonMisesFisher.fit([[1.0, 0.0]] * 2), "rows of a fit are equal"),
        (lambda: VonMisesFisher.fit([[1.0, 0], [-1, 0]]), "rows of a fit cancel"),
        (lambda: VonMisesFisher.fit([[1.0, 1.0]]), "outside the support"),
        (
            lambda: Multinomial.fit([[1, 2], [2, 2]]),
            r"sum to between 3 and 4; .*total=",
        ),
        (lambda: Multinomial.fit([[0, 0]], total=2), "no counts at all"),
        (lambda: Categorical.fit([0, 3], n_categories=2), r"X\[1\]=3.0 is outside"),
        (lambda: Categorical.fit([0, 1], n_categories=0), "n_categories=0 must be"),
        (lambda: Categorical.fit([0, 1e12]), r"categories up to 1e\+12.*n_categories"),
        (lambda: Gaussian.fit([[1e200], [0.0], [1.0]]), "X has entries as large as"),
        (
            lambda: Categorical.fit([0, 1], smoothing=[1.0]),
            r"smoothing has shape \(1,\)",
        ),
        (lambda: Categorical.fit([0, 1], smoothing=-1), "smoothing=-1 must be >= 0"),
        (lambda: Bernoulli.fit([0, 1], smoothing=-1), "smoothing=-1 must be a finite"),
        (
            lambda: Gamma.fit([1, 2], smoothing=1),
            "smoothing=1 has no meaning for Gamma",
        ),
        (lambda: Wishart.fit([[[1.0]]], smoothing=1), "smoothing=1 has no meaning"),
        (lambda: NegativeBinomial.fit([1, 2], r=0), "r=0 must be a finite number > 0"),
        (lambda: Poisson.fit([]), r"n_samples=0"),
        (lambda: Poisson.fit(3.0), r"X has shape \(\), expected \(\.\.\., n_samples\)"),
        (lambda: Gaussian.fit([1.0, 2.0]), r"expected \(\.\.\., n_samples, k\)"),
        (lambda: Poisson.fit([1, np.nan]), r"X\[1\]=nan must be a finite number"),
        (lambda: Poisson.fit(["a", "b"]), "X=.* cannot be converted"),
    ]
)


@pytest.mark.parametrize(
    "weights, match",
    [
        ([1.0, 2.0], r"weights has shape \(2,\), expected \(3,\)"),
        (2.0, r"weights has shape \(\), expected \(3,\)"),
        ([1.0, -1.0, 1.0], r"weights\[1\]=-1.0 must be a finite number >= 0"),
        ([1.0, np.nan, 1.0], r"weights\[1\]=nan"),
        ([0.0, 0.0, 0.0], r"weights is zero on every row"),
        ([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]], r"weights\[1\] is zero on every row"),
        ("abc", "weights='abc'"),
    ],
)
def test_weights_that_are_none(weights, match):
    for fit in (Poisson.fit, Exponential.fit, Categorical.fit):
        refused(lambda fit=fit: fit([1, 2, 3], weights), match)


@pytest.mark.parametrize("n", [3, 1000, 100_000])
def test_constant_columns_are_found_among_many_rows(n, rng):
    X = np.c_[rng.normal(size=n), np.full(n, 0.1)]
    for w in (None, rng.uniform(size=(2, n))):
        refused(lambda w=w: DiagonalGaussian.fit(X, w), "column 1 of X is constant")
        refused(lambda w=w: Gaussian.fit(X, w), "singular")
        refused(lambda w=w: SphericalGaussian.fit(X[:, 1:], w), "rows of X are equal")


def test_ridge_makes_singular_fits_possible(rng):
    P = Gaussian.fit([[1.0, 2.0]], smoothing=0.5)
    np.testing.assert_allclose(P.cov, 0.5 * np.eye(2))
    bags = rng.normal(size=(7, 3, 6))  # fewer rows than dimensions
    assert Gaussian.fit(bags, smoothing=0.1).batch_shape == (7,)


def test_units_of_the_columns_do_not_make_a_scatter_singular(rng):
    X = rng.normal(size=(30, 4))
    scale = 10.0 ** np.array([-9, -3, 0, 8])
    P, Q = Gaussian.fit(X), Gaussian.fit(X * scale)
    np.testing.assert_allclose(Q.cov, P.cov * scale * scale[:, None], rtol=1e-10)


def test_a_wishart_fit_of_scatter_matrices(rng):
    V, n = spd(rng, (), 3), 400
    X = Wishart(7.3, V).sample(n, rng)
    W = Wishart.fit(X)
    np.testing.assert_allclose(W.moments()[0], X.mean(axis=0), rtol=1e-10)
    assert 5.5 < W.df < 9.5
