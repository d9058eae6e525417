"""Machines that have other names: those of scikit-learn as members."""

import numpy as np
import pytest
from problems import overlapping

from maxent import MEDClassifier, MEDRegressor
from maxent.discrimination import (
    LogisticMargin,
)

# ------------------------------------------------------------- scikit-learn


@pytest.mark.parametrize(
    "kernel", [{"kernel": "poly", "degree": 2, "coef0": 1.0}, {"kernel": "rbf"}]
)
def test_weighted_hinge_is_the_weighted_support_vector_machine(kernel, rng):
    from sklearn.svm import SVC

    X, y, w = overlapping(rng)
    options = {"C": 0.7, "gamma": 0.2, **kernel}
    theirs = SVC(tol=1e-9, class_weight={0: 1.0, 1: 2.5}, **options)
    theirs.fit(X, y, sample_weight=w)
    ours = MEDClassifier(
        margin="hinge", tol=1e-9, class_weight={0: 1.0, 1: 2.5}, **options
    ).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(
        ours.decision_function(X), theirs.decision_function(X), atol=1e-4
    )


def test_linear_hinge_without_bias_is_linear_svc(rng):
    from sklearn.svm import LinearSVC

    X, y, _ = overlapping(rng)
    theirs = LinearSVC(
        C=0.7,
        loss="hinge",
        fit_intercept=False,
        tol=1e-10,
        max_iter=10**6,
        random_state=0,
    ).fit(X, y)
    ours = MEDClassifier(
        "linear", C=0.7, margin="hinge", bias=None, solver="coordinate", tol=1e-9
    ).fit(X, y)
    assert ours.converged_
    w = theirs.coef_[0]
    losses = np.maximum(1.0 - np.where(y == 1, 1.0, -1.0) * (X @ w), 0.0)
    primal = 0.5 * w @ w + 0.7 * losses.sum()
    gap = ours.duality_gap_, primal - ours.objective_
    assert gap[1] == pytest.approx(0.0, abs=1e-6 * (1 + primal))
    # the primal is 1-strongly convex: sqrt(2 gap) from each to the optimum, at most
    reach = np.sqrt(2.0 * np.maximum(gap, 1e-15 * primal)).sum()
    assert np.linalg.norm(ours.coef_[0] - w) <= reach


@pytest.mark.parametrize("solver", ["auto", "coordinate", "newton", "smo"])
def test_weighted_logistic_machine_is_weighted_logistic_regression(solver, rng):
    from sklearn.linear_model import LogisticRegression

    X, y, w = overlapping(rng)
    theirs = LogisticRegression(C=0.7, tol=1e-12, solver="newton-cholesky")
    theirs.fit(X, y, sample_weight=w)
    ours = MEDClassifier("linear", C=0.7, margin="logistic", tol=1e-8, solver=solver)
    ours.fit(X, y, sample_weight=w)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)
    np.testing.assert_allclose(
        ours.predict_proba(X), theirs.predict_proba(X), atol=3e-4
    )


def test_rate_of_a_logistic_prior_scales_its_probabilities(rng):
    from sklearn.linear_model import LogisticRegression

    # loss (C / rate) log(1 + exp(-rate f)): regression on rate X with C rate
    X, y, _ = overlapping(rng)
    ours = MEDClassifier("linear", C=0.6, margin=LogisticMargin(3.0), tol=1e-10)
    theirs = LogisticRegression(C=0.6 / 3, tol=1e-12, solver="newton-cholesky")
    np.testing.assert_allclose(
        ours.fit(X, y).predict_proba(X),
        theirs.fit(3 * X, y).predict_proba(3 * X),
        atol=1e-6,
    )


def test_weighted_gaussian_regression_is_weighted_ridge(rng):
    from sklearn.linear_model import Ridge

    X, _, w = overlapping(rng)
    y = X @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=len(X)) + 3.0
    theirs = Ridge(alpha=1 / 4.0).fit(X, y, sample_weight=w)
    for solver in ("interior", "smo", "coordinate", "newton"):
        ours = MEDRegressor(
            "linear", C=4.0, epsilon=0.0, margin="gaussian", tol=1e-9, solver=solver
        ).fit(X, y, sample_weight=w)
        np.testing.assert_allclose(ours.coef_[0], theirs.coef_, atol=1e-3)
        np.testing.assert_allclose(ours.intercept_[0], theirs.intercept_, atol=1e-3)
