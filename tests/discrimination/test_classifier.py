"""MEDClassifier: contract, truth against other machines, bad input."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from maxent import MEDClassifier
from maxent.discrimination import ExponentialMargin, _kernel_machine


def blobs(rng, n=90, classes=2, d=4):
    y = np.arange(n) % classes
    X = rng.normal(size=(n, d)) + 1.2 * y[:, None] * np.linspace(1, -0.5, d)
    return X, y


def test_logistic_prior_is_logistic_regression(rng):
    from sklearn.linear_model import LogisticRegression

    X, y = blobs(rng)
    ours = MEDClassifier(kernel="linear", C=0.7, margin="logistic", tol=1e-10).fit(X, y)
    theirs = LogisticRegression(C=0.7, tol=1e-12, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(
        ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6
    )


def test_the_warning_names_the_bound_that_held(monkeypatch, rng):
    X, y = blobs(rng)
    monkeypatch.setattr(_kernel_machine, "_LINEAR_STEPS", 3)
    model = MEDClassifier(kernel="linear", solver="coordinate", tol=1e-12)
    with pytest.warns(ConvergenceWarning, match="takes at most 3 iterations"):
        model.fit(X, y)


def test_gaussian_prior_is_the_squared_hinge(rng):
    from sklearn.svm import LinearSVC

    X, y = blobs(rng)
    ours = MEDClassifier(
        kernel="linear", C=3.0, margin="gaussian", bias=None, tol=1e-10
    ).fit(X, y)
    theirs = LinearSVC(
        C=1.5, loss="squared_hinge", fit_intercept=False, tol=1e-10, max_iter=100_000
    ).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)


def test_two_classes_through_the_joint_machine_are_the_binary_machine(rng):
    from maxent.discrimination.duals.multiclass_dual import solve_multiclass
    from maxent.discrimination.grams.vector_kernels import VectorKernel

    X, y = blobs(rng)
    margin = ExponentialMargin(10.0)
    for bias in ("flat", 2.0, None):
        model = MEDClassifier(gamma=0.2, C=10.0, bias=bias, tol=1e-10).fit(X, y)
        result, beta = solve_multiclass(
            VectorKernel(X, "rbf", gamma=0.2),
            y,
            2,
            margin,
            bias,
            np.ones(len(y)),
            tol=1e-11,
            max_iter=200,
        )
        assert result.objective == pytest.approx(model.objective_, rel=1e-9)
        signed = np.zeros(len(y))
        signed[model.support_] = model.dual_coef_[0]
        np.testing.assert_allclose(beta[:, 1] - beta[:, 0], signed, atol=1e-6)


def test_multiclass_certificate_and_bias(rng):
    X, y = blobs(rng, classes=3)
    model = MEDClassifier(C=5.0, multi_class="joint").fit(X, y)
    assert 0 <= model.duality_gap_ <= 1e-3 * (1 + model.objective_)
    assert model.intercept_.shape == (3,)
    assert abs(model.intercept_.sum()) < 1e-9
    np.testing.assert_allclose(model.dual_coef_.sum(axis=1), 0.0, atol=1e-9)
    np.testing.assert_allclose(model.dual_coef_.sum(axis=0), 0.0, atol=1e-9)


@pytest.mark.parametrize("empty", [0, 500])  # columns; with many, rows stay sparse
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid"])
def test_sparse_and_dense_features_agree(kernel, empty, rng):
    X, y = blobs(rng)
    X[np.abs(X) < 0.7] = 0.0
    X = np.column_stack([X, np.zeros((len(X), empty))])
    # a small gamma keeps the sigmoid kernel positive semidefinite in practice
    options = {"kernel": kernel, "gamma": 0.01, "coef0": 0.1, "tol": 1e-8}
    dense = MEDClassifier(**options).fit(X, y)
    sparse = MEDClassifier(**options).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(
        dense.decision_function(X),
        sparse.decision_function(sp.csr_array(X)),
        atol=1e-6,
    )


def test_precomputed_and_callable_kernels_agree_with_the_named_one(rng):
    from sklearn.metrics.pairwise import rbf_kernel

    X, y = blobs(rng)
    named = MEDClassifier(gamma=0.1, tol=1e-8).fit(X, y)
    given = MEDClassifier(kernel="precomputed", tol=1e-8).fit(rbf_kernel(X, X, 0.1), y)
    called = MEDClassifier(kernel=lambda A, B: rbf_kernel(A, B, 0.1), tol=1e-8).fit(
        X, y
    )
    new = rng.normal(size=(7, X.shape[1]))
    expected = named.decision_function(new)
    np.testing.assert_allclose(
        given.decision_function(rbf_kernel(new, X, 0.1)), expected, atol=1e-6
    )
    np.testing.assert_allclose(called.decision_function(new), expected, atol=1e-6)


@pytest.mark.parametrize("C", [0.01, 1.0, 1000.0])
def test_any_C_works(C, rng):
    X, y = blobs(rng)
    model = MEDClassifier(C=C).fit(X, y)
    assert model.converged_
    assert np.abs(model.dual_coef_).max() < C


def test_same_bits_at_one_and_two_threads(rng):
    X, y = blobs(rng, n=1500)
    one = MEDClassifier(C=10.0, n_jobs=1).fit(X, y)
    two = MEDClassifier(C=10.0, n_jobs=2).fit(X, y)
    assert np.array_equal(one.dual_coef_, two.dual_coef_)
    assert np.array_equal(one.decision_function(X), two.decision_function(X))


def test_probabilities_only_for_the_logistic_prior(rng):
    X, y = blobs(rng)
    assert not hasattr(MEDClassifier().fit(X, y), "predict_proba")
    with pytest.raises(AttributeError) as refused:
        MEDClassifier().fit(X, y).predict_proba(X)
    assert "CalibratedClassifierCV" in str(refused.value)
    X, y = blobs(rng, classes=3)
    model = MEDClassifier(margin="logistic").fit(X, y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (model.classes_[p.argmax(axis=1)] == model.predict(X)).all()


def test_leave_one_out_errors_stay_below_the_bound(rng):
    X, y = blobs(rng, n=40)
    model = MEDClassifier(C=2.0, gamma=0.2, tol=1e-9).fit(X, y)
    wrong = 0
    for t in range(len(y)):
        rest = np.delete(np.arange(len(y)), t)
        part = MEDClassifier(C=2.0, gamma=0.2, tol=1e-9).fit(X[rest], y[rest])
        wrong += int(part.predict(X[[t]])[0] != y[t])
    assert wrong / len(y) <= model.loo_bound_


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"sharpness": 1.0}, "not positive"),
        ({"margin": ExponentialMargin(1.0)}, "not positive"),
        ({"kernel": lambda A, B: np.full((len(A), len(B)), np.nan)}, "finite"),
        ({"kernel": lambda A, B: np.ones(3)}, "shape"),
        ({"kernel": "precomputed"}, "square"),
    ],
)
def test_bad_parameters_are_named(parameters, message, rng):
    X, y = blobs(rng)
    with pytest.raises(ValueError, match=message):
        MEDClassifier(**parameters).fit(X, y)


def test_one_class_is_refused(rng):
    X, y = blobs(rng)
    with pytest.raises(ValueError, match="one class"):
        MEDClassifier().fit(X, np.zeros(len(y)))


def test_wrong_width_at_predict_is_refused(rng):
    X, y = blobs(rng)
    model = MEDClassifier().fit(X, y)
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :2])
    model.dual_coef_ = model.dual_coef_[:, :1]
    with pytest.raises(ValueError, match="inconsistent"):
        model.predict(X)
