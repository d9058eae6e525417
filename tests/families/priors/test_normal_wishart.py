"""Normal-inverse-Wishart blocks against integrals, predictives and draws."""

import numpy as np
import pytest
from oracles.block_cases import agree, inside, spd, spread
from oracles.conjugate import (
    gaussian_log_likelihoods,
    log_mean_exp,
    wishart_draws,
    wishart_log_partition_1d,
    wishart_sequential,
)
from refusals import refused
from scipy import stats

from maxent.families import NormalInverseWishart

N_DRAWS = 60_000


def proper(rng, d):
    return NormalInverseWishart(rng.normal(size=d), 1.4, d + 2.5, spd(rng, d))


# ------------------------------------------------------------------------- log Z


def test_one_feature_equals_the_integral_for_weights_of_any_sign(rng):
    x = rng.normal(1.0, 1.0, size=4)
    prior = NormalInverseWishart([0.6], 1.5, 3.0, [[2.0]])
    for a in (np.array([1.0, 0.5, 0.3, 2.0]), np.array([0.8, -0.2, 0.4, -0.15])):
        block = prior.block(x[:, None])
        assert np.isfinite(block.log_partition(a))
        tilted, plain = wishart_log_partition_1d(prior, x, a)
        agree(block.log_partition(a), tilted - plain, 1e-8, 1.0)


def test_the_improper_prior_is_the_power_of_the_variance_it_says(rng):
    x = rng.normal(1.0, 1.0, size=6)
    prior = NormalInverseWishart.improper(1)
    base = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.0])
    a = np.array([0.3, -0.2, 0.5, 0.0, -0.1, -0.25])
    block = prior.block(x[:, None], base)
    top, _ = wishart_log_partition_1d(prior, x, base + a)
    bottom, _ = wishart_log_partition_1d(prior, x, base)
    agree(block.log_partition(a), top - bottom, 1e-8, 1.0)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_whole_numbers_of_rows_give_the_product_of_student_predictives(d, rng):
    X = spread(rng, 7, d)
    prior = proper(rng, d)
    a = rng.integers(0, 4, size=7).astype(float)
    want = wishart_sequential(prior, np.repeat(X, a.astype(int), axis=0))
    agree(prior.block(X).log_partition(a), want, 1e-11)


def test_the_predictive_is_a_student_distribution(rng):
    X, prior = spread(rng, 9, 3), proper(rng, 3)
    dof = prior.df - 2.0
    shape = prior.scale * (prior.mean_precision + 1.0) / (prior.mean_precision * dof)
    want = stats.multivariate_t(prior.mean, shape, dof).logpdf(X)
    agree(prior.predictive_log_prob(X), want, 1e-12)


def test_draws_give_the_partition_for_negative_weights_too(rng):
    d = 2
    X = rng.normal(size=(5, d))
    prior = NormalInverseWishart(np.zeros(d), 4.0, 12.0, 9.0 * np.eye(d))
    a = np.array([0.3, -0.2, 0.25, -0.15, 0.1])
    m, V = wishart_draws(prior, rng, N_DRAWS)
    L = gaussian_log_likelihoods(m, V, X)
    found, error = log_mean_exp(L @ a)
    assert error < 0.005
    assert abs(prior.block(X).log_partition(a) - found) < 6.0 * error


def test_draws_from_the_posterior_give_mean_and_covariance(rng):
    d, n = 2, 6
    X = rng.normal(size=(n, d))
    prior = NormalInverseWishart(np.zeros(d), 3.0, 14.0, 8.0 * np.eye(d))
    a = np.array([1.0, -0.4, 0.7, -0.3, 0.2, 0.0])
    block = prior.block(X)
    m, V = wishart_draws(block.posterior(a), rng, N_DRAWS)
    L = gaussian_log_likelihoods(m, V, X)
    error = L.std(axis=0) / np.sqrt(N_DRAWS)
    assert (np.abs(L.mean(axis=0) - block.mean(a)) < 6.0 * error).all()
    F = block.hessian_factor(a)
    centred = L - L.mean(axis=0)
    products = centred[:, :, None] * centred[:, None, :]
    error = products.std(axis=0) / np.sqrt(N_DRAWS)
    assert (np.abs(products.mean(axis=0) - F @ F.T) < 7.0 * error).all()


def test_the_hessian_tends_to_the_fisher_kernel_of_the_gaussian(rng):
    """Of mean and covariance: q_st + (q_st^2 - q_ss - q_tt + d) / 2."""
    d = 3
    X = rng.normal(size=(40, d))
    X = (X - X.mean(axis=0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(X.T, ddof=0))).T
    N = 1e7
    posterior = NormalInverseWishart(np.zeros(d), N, N, N * np.eye(d))
    F = posterior.block(X).hessian_factor(np.zeros(40))
    q = X @ X.T
    own = np.diag(q)
    want = q + 0.5 * (q**2 - own[:, None] - own[None] + d)
    agree(N * F @ F.T, want, 1e-5)


@pytest.mark.parametrize("d", [2, 4])
def test_degrees_of_freedom_end_the_domain_before_the_scatter_does(d, rng):
    """Shrinking all weights keeps the scatter definite, but not the total > d - 1."""
    block = NormalInverseWishart.improper(d).block(rng.normal(size=(9, d)), np.ones(9))
    far = block.max_step(np.zeros(9), -np.ones(9))
    assert far == pytest.approx(1.0 - (d - 1.0) / 9.0, rel=1e-12)
    assert np.isfinite(block.log_partition(-(far - 1e-9) * np.ones(9)))
    assert block.log_partition(-(far + 1e-9) * np.ones(9)) == np.inf


# ------------------------------------------------------------------- transformations


def test_affine_maps_change_nothing_but_the_units(rng):
    d = 3
    X, prior = spread(rng, 14, d), NormalInverseWishart.improper(d)
    base = np.ones(14)
    block = prior.block(X, base)
    a = inside(rng, block, 0.5)
    A = rng.normal(size=(d, d)) + 2.0 * np.eye(d)
    moved = prior.block(X @ A.T + 50.0, base)
    log_det = np.linalg.slogdet(A)[1]
    agree(
        moved.log_partition(a), block.log_partition(a) - a.sum() * log_det, 1e-9, 100.0
    )
    agree(moved.mean(a), block.mean(a) - log_det, 1e-8)
    F, G = block.hessian_factor(a), moved.hessian_factor(a)
    agree(G @ G.T, F @ F.T, 1e-7)


def test_means_far_from_the_origin_cost_no_digits_beyond_their_own(rng):
    X = rng.normal(size=(20, 2))
    a = 0.1 * rng.normal(size=20)
    near = NormalInverseWishart.improper(2).block(X, np.ones(20))
    far = NormalInverseWishart.improper(2).block(X + 1e6, np.ones(20))
    # the rows themselves are rounded to 1e-10 there
    agree(far.log_partition(a), near.log_partition(a), 1e-8, 1.0)
    agree(far.mean(a), near.mean(a), 1e-8)


def test_the_weak_prior_has_the_mean_and_the_variances_of_the_data(rng):
    X = spread(rng, 30, 3)
    w = rng.integers(1, 4, size=30).astype(float)
    prior = NormalInverseWishart.weak(X, w)
    rows = np.repeat(X, w.astype(int), axis=0)
    agree(prior.mean, rows.mean(axis=0), 1e-12)
    agree(np.diag(prior.scale), rows.var(axis=0), 1e-12)
    # E[V] = scale / (df - d - 1)
    agree(prior.scale / (prior.df - 3 - 1.0), np.diag(rows.var(axis=0)), 1e-12)
    assert np.count_nonzero(prior.scale - np.diag(np.diag(prior.scale))) == 0


def test_the_weak_prior_of_groups_does_not_depend_on_their_distance(rng):
    X, groups = rng.normal(size=(60, 2)), np.repeat([0, 1, 2], 20)
    w = rng.integers(1, 4, size=60).astype(float)
    prior = NormalInverseWishart.weak(X, w, groups)
    centred = X - np.stack(
        [np.average(X[groups == g], axis=0, weights=w[groups == g]) for g in groups]
    )
    agree(np.diag(prior.scale), np.average(centred**2, axis=0, weights=w), 1e-12)
    for apart in (10.0, 1e4):
        far = X + apart * np.outer(groups, [1.0, 0.0])
        moved = NormalInverseWishart.weak(far, w, groups)
        agree(moved.scale, prior.scale, 1e-9)
        # what the distance from the overall mean adds to a group of any size
        variance = np.average((far - moved.mean) ** 2, axis=0, weights=w)
        assert (moved.mean_precision * variance <= 1.01 * np.diag(prior.scale)).all()
    one = NormalInverseWishart.weak(X, w, np.zeros(60, dtype=int))
    agree(one.scale, NormalInverseWishart.weak(X, w).scale, 1e-12)
    by_groups = np.column_stack([X[:, 0], 5.0 * groups])  # constant within groups
    assert (np.diag(NormalInverseWishart.weak(by_groups, w, groups).scale) > 0).all()
    refused(lambda: NormalInverseWishart.weak(X, w, groups[1:]), "groups has shape")


# -------------------------------------------------------------------------- refusals


GOOD = {"mean": np.zeros(2), "mean_precision": 1.0, "df": 3.0, "scale": np.eye(2)}
WRONG = [
    ("mean", np.zeros((2, 1))),
    ("mean", np.zeros(0)),
    ("mean", [0.0, np.nan]),
    ("mean", ["a", "b"]),
    ("mean_precision", -1.0),
    ("mean_precision", np.inf),
    ("mean_precision", "a"),
    ("df", -0.5),
    ("df", np.nan),
    ("scale", np.eye(3)),
    ("scale", [[1.0, 0.5], [0.4, 1.0]]),
    ("scale", [[1.0, 2.0], [2.0, 1.0]]),
    ("scale", [[np.inf, 0.0], [0.0, 1.0]]),
    ("scale", np.eye(2) * 1j),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_wrong_parameters_are_named(name, value):
    NormalInverseWishart(**GOOD)
    refused(lambda: NormalInverseWishart(**{**GOOD, name: value}), rf"\b{name}\b")


def test_too_few_rows_are_named_with_a_remedy(rng):
    prior = NormalInverseWishart.improper(3)
    X = rng.normal(size=(6, 3))
    refused(lambda: prior.block(X), "total weight 0 are too few for a Gaussian of 3")
    few = np.arange(6) < 2.0
    refused(lambda: prior.block(X, few), r"weight 2 .* prior='weak'")


@pytest.mark.parametrize("n_rows", [4, 6])
def test_singular_scatter_is_named_with_a_remedy(n_rows, rng):
    prior = NormalInverseWishart.improper(3)
    X = rng.normal(size=(n_rows, 3))
    X[:, 2] = X[:, 0] - X[:, 1] + 4.0
    # three rows are too few in any case
    refused(lambda: prior.block(X[:3], np.ones(3)), "weight 3 are too few")
    refused(
        lambda: prior.block(X, np.ones(n_rows)),
        r"singular: features 0, 1, 2 are linearly dependent; drop 1 of them, or use",
    )


@pytest.mark.parametrize("far", [0.0, 1e3, -1e9])
def test_a_constant_feature_is_singular_from_any_origin(far, rng):
    flat = NormalInverseWishart(np.full(3, far), 0.0, 0.0, np.zeros((3, 3)))
    X = rng.normal(size=(60, 3))
    X[:, 1] = 0.1 + 1e-4 * X[:, 1]
    assert flat.posterior(X).df == 60
    X[:, 1] = 0.1
    refused(lambda: flat.posterior(X), "outside the domain")


def test_a_constant_feature_has_no_weak_prior(rng):
    X = rng.normal(size=(8, 3))
    X[:, 1] = 4.1
    refused(lambda: NormalInverseWishart.weak(X), "feature 1 is constant.*drop it")


def test_improper_priors_have_no_expectations(rng):
    prior = NormalInverseWishart.improper(2)
    X = rng.normal(size=(5, 2))
    for ask in (prior.expected_log_prob, prior.predictive_log_prob):
        refused(lambda ask=ask: ask(X), "improper.*Update it with rows")


def test_degrees_of_freedom_too_few_for_a_proper_prior_have_no_expectations(rng):
    prior = NormalInverseWishart(np.zeros(3), 1.0, 1.5, np.eye(3))
    X = rng.normal(size=(5, 3))
    for ask in (prior.expected_log_prob, prior.predictive_log_prob):
        refused(lambda ask=ask: ask(X), "improper")


def test_n_features_is_a_count():
    for wrong in (0, 2.5, "a", None, True):
        refused(lambda w=wrong: NormalInverseWishart.improper(w), "n_features")


def test_fitted_posteriors_keep_no_rows(rng):
    import pickle

    X = rng.normal(size=(5000, 3))
    block = NormalInverseWishart.improper(3).block(X, np.ones(5000))
    assert len(pickle.dumps(block.posterior(np.zeros(5000)))) < 2000
