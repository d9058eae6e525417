"""Fisher kernel: closed forms, brute force, invariance, machines, bad input."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import fisher as oracle
from processes import run as run_python
from scipy.special import expit, logit
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxent import MEDClassifier
from maxent.kernels import FisherFeatures, fisher_kernel

MANY = 400  # rows that are plenty for the few parameters of these tests


def random_spd(rng, p):
    A = rng.normal(size=(p, p + 2))
    return A @ A.T


def scores_of(rng, n=MANY, p=4):
    """Correlated scores of very different sizes whose mean is zero."""
    U = rng.normal(size=(n, p)) @ rng.normal(size=(p, p))
    U = (U - U.mean(axis=0)) * 10.0 ** rng.uniform(-4, 4, size=p)
    return U - U.mean(axis=0)


def dense(U, F, V=None):
    return U @ np.linalg.solve(F, (U if V is None else V).T)


def assert_kernels_agree(K, expected, rel=1e-10):
    """Entries agree to `rel` of the product of the lengths of their rows."""
    assert K.shape == expected.shape
    assert np.abs(K - expected).max() <= rel * np.abs(expected).max()


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


class _nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


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
@settings(max_examples=25, deadline=None)
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


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:an empirical information:UserWarning")
@pytest.mark.filterwarnings("ignore:the mean score:UserWarning")
@parametrize_with_checks(
    [
        FisherFeatures(),
        FisherFeatures(ridge=0.1, center=True),
        FisherFeatures("diagonal"),
        FisherFeatures("identity"),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


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


# ------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "n, center, accepted",
    [(4, False, False), (5, False, True), (5, True, False), (6, True, True)],
)
def test_empirical_information_needs_more_rows_than_parameters(
    n, center, accepted, rng
):
    U = rng.normal(size=(n, 4))
    options = {"center": center}
    if accepted:
        with pytest.warns(UserWarning, match="noisy"):
            fisher_kernel(U, **options)
        return
    with pytest.raises(ValueError, match=r"times the identity.*ridge"):
        fisher_kernel(U, **options)
    with pytest.raises(ValueError, match=f"n_samples = {n} "):
        FisherFeatures(**options).fit(U)
    with pytest.warns(UserWarning, match="noisy"):
        fisher_kernel(U, ridge=0.1, **options)
    fisher_kernel(U, information="diagonal", **options)
    fisher_kernel(U, information=np.eye(4), **options)


def test_few_rows_warn_below_five_a_parameter(rng):
    U = rng.normal(size=(20, 4))
    fisher_kernel(U)  # warnings are errors here
    with pytest.warns(UserWarning, match=r"19 rows for 4 effective.*at least 20 rows"):
        fisher_kernel(U[:19])
    # a ridge lowers the number of parameters that count: the trace of the kernel
    # of the reference with itself is n times that number
    for ridge in (0.5, 50.0):
        with pytest.warns(UserWarning) if ridge < 1 else _nothing():
            K = fisher_kernel(U[:8], ridge=ridge)
        assert (np.trace(K) / 8 > 8 / 5) == (ridge < 1)


def test_a_mean_score_that_is_not_zero_is_reported_unless_centred(rng):
    U = scores_of(rng)
    off = U + np.eye(4)[2] * U[:, 2].std()
    for information in ("empirical", "diagonal"):
        with pytest.warns(UserWarning, match="mean score of parameter 2.*center=True"):
            fisher_kernel(off, information=information)
        fisher_kernel(off, information=information, center=True)
    fisher_kernel(off, information="identity")
    fisher_kernel(off, information=np.eye(4))
    # rows of the model itself, not those it was fitted on: chance, no warning
    fisher_kernel(rng.normal(size=(MANY, 4)))


def test_two_sets_need_the_rows_of_the_information(rng):
    U = scores_of(rng)
    for options in ({}, {"information": "diagonal"}, {"information": np.eye(4)}):
        options["center"] = "information" in options and not isinstance(
            options["information"], str
        )
        with pytest.raises(ValueError, match=r"reference=.*training"):
            fisher_kernel(U[:5], U, **options)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_must_be_finite(bad, rng):
    U = scores_of(rng)
    wrong = U.copy()
    wrong[17, 2] = bad
    with pytest.raises(ValueError, match=r"scores\[17, 2\]=.*smooth the model"):
        fisher_kernel(wrong)
    with pytest.raises(ValueError, match=r"other\[17, 2\]"):
        fisher_kernel(U, wrong, reference=U)
    with pytest.raises(ValueError, match=r"reference\[17, 2\]"):
        fisher_kernel(U, reference=wrong)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        FisherFeatures().fit(wrong)


def test_shapes_are_checked(rng):
    U = scores_of(rng)
    with pytest.raises(ValueError, match="other has 3 columns, but scores has 4"):
        fisher_kernel(U, U[:, :3], reference=U)
    with pytest.raises(ValueError, match="reference has 3 columns"):
        fisher_kernel(U, reference=U[:, :3])
    with pytest.raises(ValueError, match="2D array"):
        fisher_kernel(U[0])
    with pytest.raises(ValueError, match="minimum of 1"):
        fisher_kernel(U[:0])
    with pytest.raises(ValueError, match="minimum of 1"):
        fisher_kernel(U[:, :0])
    for shape in ((3, 3), (4, 3), (3,), (4, 4, 1), ()):
        with pytest.raises(ValueError, match=r"expected \(4, 4\), or \(4,\)"):
            fisher_kernel(U, information=np.ones(shape))


@pytest.mark.parametrize(
    "information, words",
    [
        (np.diag([1.0, 2.0, 0.0, 1.0]), "parameter 2 has no information.*ridge"),
        (np.diag([1.0, -2.0, 1.0, 1.0]), "parameter 1 has information -2, which is no"),
        (np.array([1.0, 1.0, 1.0, 0.0]), "parameter 3 has no information.*ridge"),
        (np.array([1.0, 1.0, -1e-9, 1.0]), "parameter 2 has information -1e-09"),
        (np.ones((4, 4)), "ends at parameter 1.*redundant.*ridge"),
        (
            np.eye(4) + np.diag([2.0, 0, 0], 1) + np.diag([2.0, 0, 0], -1),
            "ends at parameter 1",
        ),
        (np.eye(4) + np.diag([1e-3, 0, 0], 1), r"not symmetric: \[0, 1\] is 0.001"),
        (np.diag([1.0, np.nan, 1.0, 1.0]), r"information\[1, 1\]=nan is not finite"),
        ("analytic", "information='analytic' is not known"),
    ],
)
def test_information_that_is_not_positive_definite_is_refused(information, words, rng):
    with pytest.raises(ValueError, match=words):
        fisher_kernel(scores_of(rng), information=information)


@pytest.mark.parametrize("n", [40, 5000])
def test_redundant_parameters_are_refused_and_a_ridge_helps(n, rng):
    # softmax scores: the four gradients of every row sum to zero
    x = np.r_[np.arange(4), rng.integers(4, size=n - 4)]
    U = np.eye(4)[x] - np.bincount(x) / n
    with pytest.raises(ValueError, match=r"combination of the ones before.*ridge"):
        fisher_kernel(U)
    fewer = fisher_kernel(U[:, :3])
    # a small ridge leaves the kernel of the three free parameters
    np.testing.assert_allclose(fisher_kernel(U, ridge=1e-9), fewer, rtol=0, atol=1e-5)


def test_parameters_of_very_different_sizes_are_not_singular(rng):
    U = scores_of(rng)
    sizes = 10.0 ** np.array([-60.0, 60.0, 0.0, 20.0])
    K = fisher_kernel(U * sizes)
    assert_kernels_agree(K, fisher_kernel(U), rel=1e-9)


def test_constant_scores_have_no_information_once_centred(rng):
    U = scores_of(rng)
    U[:, 1] = 0.1
    for information in ("empirical", "diagonal"):
        with pytest.raises(ValueError, match="parameter 1 has no information"):
            fisher_kernel(U, information=information, center=True)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("size", [1e200, 1.7e308])
def test_overflow_is_an_error_that_says_so(size, center, rng):
    U = scores_of(rng)
    U[:, 0] = size * np.abs(U[:, 0] / np.abs(U[:, 0]).max())
    for information in ("empirical", "diagonal"):
        with pytest.raises(ValueError, match=r"overflows.*Rescale"):
            fisher_kernel(U, information=information, ridge=0.1, center=center)
    for information in (np.full(4, 1e-300), np.eye(4) * 1e-300):
        with pytest.raises(ValueError, match=r"overflow.*Rescale"):
            fisher_kernel(U, information=information, center=center)
    with pytest.raises(ValueError, match=r"overflows.*Rescale"):
        fisher_kernel(U, information=np.full(4, 1e308), ridge=1.0)
    with pytest.raises(ValueError, match=r"kernel values overflow.*Rescale"):
        fisher_kernel(U, information="identity")
    with pytest.raises(ValueError, match=r"kernel values overflow.*Rescale"):
        fisher_kernel(U[:, 1:], U[:, :3], reference=U[:, 1:], information="identity")


@pytest.mark.parametrize("n_jobs", [0, "a", 1.5, True, 2**31, 2**40, 10**30])
def test_number_of_threads_is_checked_first(n_jobs):
    with pytest.raises(ValueError, match="n_jobs="):
        fisher_kernel("no scores at all", n_jobs=n_jobs)


@pytest.mark.parametrize("ridge", [-1.0, np.nan, np.inf, "small"])
def test_ridge_is_checked(ridge, rng):
    with pytest.raises(ValueError, match=r"ridge=.*must be a finite number >= 0"):
        fisher_kernel(scores_of(rng), ridge=ridge)


def test_center_is_checked(rng):
    with pytest.raises(ValueError, match="center='yes' must be True or False"):
        fisher_kernel(scores_of(rng), center="yes")


# --------------------------------------------------------------------------- import


def test_importing_the_package_stays_light():
    code = (
        "import sys, maxent\n"
        "maxent.kernels\n"
        "names = maxent.__all__\n"
        "assert 'kernels' in names and 'displays' in names\n"
        "heavy = {'sklearn', 'scipy', 'numba', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert 'fisher_kernel' in dir(maxent.kernels)\n"
        "assert callable(maxent.kernels.fisher_kernel)\n"
        "assert 'numba' not in sys.modules and 'matplotlib' not in sys.modules\n"
        "assert 'maxent.discrimination' not in sys.modules\n"
    )
    run_python("-c", code)


def test_unknown_names_are_refused():
    import maxent.kernels

    with pytest.raises(AttributeError, match="no attribute 'fishy'"):
        _ = maxent.kernels.fishy
    assert sys.modules["maxent.kernels"].__all__ == ["FisherFeatures", "fisher_kernel"]
