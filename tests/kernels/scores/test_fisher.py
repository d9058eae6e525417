"""Fisher kernel: closed forms, brute force, invariance, machines, bad input."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels.scores.score_cases import (
    MANY,
    assert_kernels_agree,
    dense,
    random_spd,
    scores_of,
)
from oracles import fisher as oracle
from scipy.special import expit, logit
from sklearn.pipeline import make_pipeline

from maxent import MEDClassifier
from maxent.kernels import FisherFeatures, fisher_kernel

# ------------------------------------------------------------ known kernels
# Information by formula, scores by complex steps, kernel in closed form.


def gaussian_mean(rng):
    mean, cov = rng.normal(size=3), random_spd(rng, 3)
    X, Y = rng.normal(size=(9, 3)), rng.normal(size=(5, 3))
    return {
        "log_density": lambda theta, x: oracle.log_gaussian_mean(theta, x, cov),
        "theta": mean,
        "rule": oracle.gaussian_rule(mean, cov),
        "sets": (X, Y),
        "kernels": [oracle.gaussian_mean_kernel(X, mean, cov, Z) for Z in (None, Y, Y)],
    }


def gaussian(rng):
    mean, cov = rng.normal(size=2), random_spd(rng, 2)
    X, Y = rng.normal(size=(9, 2)), rng.normal(size=(5, 2))
    return {
        "log_density": oracle.log_gaussian,
        "theta": oracle.pack_gaussian(mean, cov),
        "rule": oracle.gaussian_rule(mean, cov),
        "sets": (X, Y),
        "kernels": [oracle.gaussian_kernel(X, mean, cov, Z) for Z in (None, Y)],
    }


def categorical(rng):
    p = rng.dirichlet(np.full(5, 3.0))
    X, Y = rng.integers(5, size=9), rng.integers(5, size=6)
    return {
        "log_density": oracle.log_categorical,
        "theta": p[:-1],
        "rule": oracle.categorical_rule(p),
        "sets": (X, Y),
        "kernels": [oracle.categorical_kernel(X, p, Z) for Z in (None, Y)],
    }


def bernoulli_product(rng):
    p = rng.uniform(0.1, 0.9, size=4)
    X = rng.integers(2, size=(9, 4)).astype(float)
    Y = rng.integers(2, size=(6, 4)).astype(float)
    return {
        "log_density": oracle.log_bernoulli_product,
        "theta": p,
        "rule": oracle.bernoulli_rule(p),
        "sets": (X, Y),
        "kernels": [oracle.bernoulli_product_kernel(X, p, Z) for Z in (None, Y)],
    }


MODELS = [gaussian_mean, gaussian, categorical, bernoulli_product]


@pytest.mark.parametrize("model", MODELS)
def test_given_information_gives_the_closed_forms(model, rng):
    case = model(rng)
    U, V = (oracle.scores(case["log_density"], case["theta"], Z) for Z in case["sets"])
    F = oracle.fisher_information(case["log_density"], case["theta"], *case["rule"])
    own, cross = case["kernels"][:2]
    assert_kernels_agree(fisher_kernel(U, information=F), own)
    assert_kernels_agree(fisher_kernel(U, V, information=F), cross)
    features = FisherFeatures(F).fit(U)
    assert_kernels_agree(features.transform(U) @ features.transform(V).T, cross)


def test_rows_in_the_proportions_of_the_model_give_its_kernel(rng):
    # Probabilities that are multiples of 1/4: every bit string some whole times.
    p = rng.integers(1, 4, size=3) / 4
    points, weight = oracle.bernoulli_rule(p)
    rows = np.repeat(points, np.rint(64 * weight).astype(int), axis=0)
    R = oracle.scores(oracle.log_bernoulli_product, p, rows)
    U = oracle.scores(oracle.log_bernoulli_product, p, points)
    exact = oracle.bernoulli_product_kernel(points, p)
    for information in ("empirical", "diagonal"):  # bits are independent
        assert_kernels_agree(
            fisher_kernel(U, information=information, reference=R), exact
        )


def test_monte_carlo_information_comes_within_its_standard_error(rng):
    p = np.array([0.2, 0.5, 0.7])
    n = 20_000
    sample = (rng.random(size=(n, 3)) < p).astype(float)
    R = oracle.scores(oracle.log_bernoulli_product, p, sample)
    X = oracle.bernoulli_rule(p)[0]
    U = oracle.scores(oracle.log_bernoulli_product, p, X)
    K = fisher_kernel(U, reference=R)
    exact = oracle.bernoulli_product_kernel(X, p)
    # F is off by about 1 / sqrt(n) a direction; kurtosis is below 5 at these p
    bound = 6 * np.sqrt(5 * 3 / n) * np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    assert (np.abs(K - exact) < bound).all()
    assert np.abs(K - exact).max() > 1e-6  # it is an estimate


# --------------------------------------------------------- properties of estimates


def test_empirical_information_is_the_mean_of_outer_products(rng):
    U, V = scores_of(rng), scores_of(rng, 30)
    F = U.T @ U / len(U)
    assert_kernels_agree(fisher_kernel(U), dense(U, F))
    assert_kernels_agree(fisher_kernel(V, reference=U), dense(V, F))
    assert_kernels_agree(fisher_kernel(V, U, reference=U), dense(V, F, U))


def test_diagonal_and_identity_information(rng):
    U, V = scores_of(rng), scores_of(rng, 30)
    d = np.mean(U**2, axis=0)
    assert_kernels_agree(fisher_kernel(U, information="diagonal"), (U / d) @ U.T)
    assert_kernels_agree(
        fisher_kernel(V, information="diagonal", reference=U), (V / d) @ V.T
    )
    assert_kernels_agree(fisher_kernel(V, U, information=d), (V / d) @ U.T)
    assert_kernels_agree(fisher_kernel(V, U, information="identity"), V @ U.T)


@pytest.mark.parametrize("information", ["empirical", "diagonal", "given"])
def test_ridge_adds_its_share_of_the_mean_diagonal(information, rng):
    U = scores_of(rng) / 10.0 ** rng.uniform(-1, 1, size=4)
    F = U.T @ U / len(U)
    if information == "diagonal":
        F = np.diag(np.diag(F))
    ridged = F + 0.3 * np.trace(F) / 4 * np.eye(4)
    given = F if information == "given" else information
    assert_kernels_agree(
        fisher_kernel(U, information=given, ridge=0.3), dense(U, ridged)
    )
    diagonal_of_identity = fisher_kernel(U, information="identity", ridge=0.25)
    assert_kernels_agree(diagonal_of_identity, U @ U.T / 1.25)


def test_centring_uses_mean_and_covariance_of_the_reference(rng):
    U, V = scores_of(rng), scores_of(rng, 30)
    U = U + 3 * U.std(axis=0)
    mean, F = U.mean(axis=0), np.cov(U.T, bias=True)
    K = fisher_kernel(V, U, reference=U, center=True)
    assert_kernels_agree(K, dense(V - mean, F, U - mean), rel=1e-9)
    K = fisher_kernel(V, U, information="diagonal", reference=U, center=True)
    assert_kernels_agree(K, (V - mean) / np.diag(F) @ (U - mean).T, rel=1e-9)
    K = fisher_kernel(U, information=F, center=True)
    assert_kernels_agree(K, dense(U - mean, F), rel=1e-9)
    features = FisherFeatures(center=True).fit(U)
    np.testing.assert_allclose(features.mean_, mean, rtol=1e-12)
    Phi = features.transform(U)
    np.testing.assert_allclose(Phi.T @ Phi / len(U), np.eye(4), atol=1e-9)
    np.testing.assert_allclose(Phi.mean(axis=0), 0, atol=1e-9)


def test_as_many_rows_as_parameters_make_n_times_the_identity(rng):
    # The reason for the refusal: such a kernel says nothing about the data.
    U = rng.normal(size=(5, 5))
    K = fisher_kernel(U, information=U.T @ U / 5)
    np.testing.assert_allclose(K, 5 * np.eye(5), atol=1e-6 * np.linalg.cond(U) ** 2)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=25)
def test_linear_reparametrisation_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    U, V = rng.normal(size=(MANY, 4)), rng.normal(size=(20, 4))
    A = rng.normal(size=(4, 4))
    expected = fisher_kernel(V, reference=U)
    K = fisher_kernel(V @ A, reference=U @ A)
    # U is well conditioned; the information of U A has the square of A's condition
    size = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert (np.abs(K - expected) <= 1e-14 * np.linalg.cond(A) ** 2 * size + 1e-13).all()


def test_smooth_reparametrisation_changes_nothing_but_the_diagonal_kinds(rng):
    mean, cov = rng.normal(size=2), random_spd(rng, 2)
    X = rng.normal(size=(9, 2))
    points, weight = oracle.gaussian_rule(mean, cov)
    theta = oracle.pack_gaussian(mean, cov)

    def by_factor(t, x):  # the covariance by its Cholesky factor, log diagonal
        L = np.array([[np.exp(t[2]), 0 * t[2]], [t[3], np.exp(t[4])]])
        S = L @ L.T
        return oracle.log_gaussian(np.array([t[0], t[1], S[0, 0], S[0, 1], S[1, 1]]), x)

    L = np.linalg.cholesky(cov)
    eta = np.r_[mean, np.log(L[0, 0]), L[1, 0], np.log(L[1, 1])]
    kernels = {}
    for name, density, at in (
        ("cov", oracle.log_gaussian, theta),
        ("L", by_factor, eta),
    ):
        U = oracle.scores(density, at, X)
        F = oracle.fisher_information(density, at, points, weight)
        kernels[name] = [
            fisher_kernel(U, information=f) for f in (F, np.diag(F), "identity")
        ]
    pairs = list(zip(kernels["cov"], kernels["L"], strict=True))
    assert_kernels_agree(*pairs[0], rel=1e-8)
    for K, other in pairs[1:]:
        assert np.abs(K - other).max() > 1e-3 * np.abs(K).max()


def test_logits_and_probabilities_give_the_same_kernel(rng):
    p = rng.uniform(0.1, 0.9, size=3)
    X = rng.integers(2, size=(8, 3)).astype(float)

    def by_logit(t, x):
        return np.sum(x * t - np.log1p(np.exp(t)))

    U = oracle.scores(by_logit, logit(p), X)
    t = expit(logit(p))
    K = fisher_kernel(U, information=t * (1 - t))
    assert_kernels_agree(K, oracle.bernoulli_product_kernel(X, p))


def test_gram_is_positive_semidefinite_and_exactly_symmetric(rng):
    U = scores_of(rng, 700, 6)
    for information in ("empirical", "diagonal", "identity", random_spd(rng, 6)):
        K = fisher_kernel(U, information=information)
        assert np.array_equal(K, K.T)
        assert np.linalg.eigvalsh(K)[0] > -1e-10 * np.trace(K)


def test_same_bits_for_any_number_of_threads(rng):
    U, V = scores_of(rng, 900), scores_of(rng, 300)
    for other in (None, V):
        K = fisher_kernel(U, other, reference=U, n_jobs=1)
        assert np.array_equal(K, fisher_kernel(U, other, reference=U, n_jobs=3))


# ---------------------------------------------------------------------- transformer


def test_features_have_names_and_keep_frames(rng):
    import pandas as pd

    U = pd.DataFrame(scores_of(rng), columns=list("abcd"))
    features = FisherFeatures().set_output(transform="pandas").fit(U)
    out = features.transform(U)
    assert list(out.columns) == [f"fisherfeatures{j}" for j in range(4)]
    assert_kernels_agree(out.to_numpy() @ out.to_numpy().T, fisher_kernel(U))


def test_single_precision_fortran_order_and_read_only_scores(rng):
    U = scores_of(rng).astype(np.float32)
    U -= U.mean(axis=0)
    expected = fisher_kernel(U.astype(np.float64))
    frozen = np.asfortranarray(U)
    frozen.flags.writeable = False
    before = frozen.copy()
    assert_kernels_agree(fisher_kernel(frozen), expected, rel=1e-12)
    assert np.array_equal(frozen, before)
    information = np.cov(U.T)
    kept = information.copy()
    fisher_kernel(U, information=information, ridge=1.0)
    assert np.array_equal(information, kept)


def test_tampered_state_is_refused(rng):
    U = scores_of(rng)
    features = FisherFeatures().fit(U)
    features.factor_ = features.factor_[:2, :2]
    with pytest.raises(ValueError, match="inconsistent"):
        features.transform(U)


# ------------------------------------------------------------------------- machines


@pytest.mark.parametrize("information", ["empirical", "given"])
def test_precomputed_and_linear_machines_agree(information, rng):
    y = np.arange(120) % 2
    X = rng.normal(size=(120, 3)) + 0.8 * y[:, None]
    mean, cov = X.mean(axis=0), np.cov(X.T, bias=True)
    U = oracle.scores(oracle.log_gaussian, oracle.pack_gaussian(mean, cov), X)
    new, train = U[:40], U[40:]
    options = {"information": information, "center": information == "empirical"}
    if information == "given":
        points = oracle.gaussian_rule(mean, cov)
        options["information"] = oracle.fisher_information(
            oracle.log_gaussian, oracle.pack_gaussian(mean, cov), *points
        )
    machine = {"C": 2.0, "tol": 1e-10}
    K = fisher_kernel(train, **options)
    with_gram = MEDClassifier(kernel="precomputed", **machine).fit(K, y[40:])
    linear = make_pipeline(
        FisherFeatures(**options), MEDClassifier(kernel="linear", **machine)
    ).fit(train, y[40:])
    expected = with_gram.decision_function(
        fisher_kernel(new, train, reference=train, **options)
    )
    np.testing.assert_allclose(linear.decision_function(new), expected, atol=1e-5)
    assert linear[-1].objective_ == pytest.approx(with_gram.objective_, rel=1e-8)
    assert np.ptp(expected) > 0.5


# --------------------------------------------------------------------------- import


def test_unknown_names_are_refused():
    import maxent.kernels

    with pytest.raises(AttributeError, match="no attribute 'fishy'"):
        _ = maxent.kernels.fishy
    exported = sys.modules["maxent.kernels"].__all__
    assert {"FisherFeatures", "fisher_kernel"} <= set(exported)
