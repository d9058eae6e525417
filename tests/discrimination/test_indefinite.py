"""Kernels that are not positive semidefinite: no certificate, and one warning."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from problems import rbf, two_classes
from refusals import refused
from sklearn.exceptions import ConvergenceWarning

from maxent import MEDClassifier, MEDOutlierDetector, MEDRegressor
from maxent._support.results import Status
from maxent.datasets import load_crabs
from maxent.discrimination import (
    ExponentialMargin,
    GaussianMargin,
    GaussianScores,
    HingeMargin,
    solve_dual,
    solve_kernel_dual,
)
from maxent.discrimination.duals._definiteness import has_negative_curvature
from maxent.discrimination.grams.vector_kernels import VectorKernel

PRIOR = ExponentialMargin(5.0)
WARNING = "kernel matrix is not positive semidefinite.*duality gap is NaN"


def tanh_kernel(A, B):
    return np.tanh(A @ B.T)


@pytest.fixture
def crabs():
    X, y = load_crabs(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def warned(run):
    """Result of a call that gives exactly one warning, of the missing certificate."""
    with pytest.warns(ConvergenceWarning, match=WARNING) as caught:
        result = run()
    assert len(caught) == 1
    return result


@pytest.mark.parametrize("solver", ["auto", "interior", "smo"])
@pytest.mark.parametrize(
    ("kernel", "features"),
    [("sigmoid", lambda X: X), (tanh_kernel, lambda X: X), ("sigmoid", sp.csr_array)],
)
def test_estimators_have_no_certificate(kernel, features, solver, crabs):
    X, y = crabs
    options = {"gamma": 1.0, "C": 10, "solver": solver}
    three = y + (X[:, 0] > 0)
    for model, target in (
        (MEDClassifier(kernel, **options), y),
        (MEDClassifier(kernel, **options), three),
        (MEDRegressor(kernel, **options), X[:, 1]),
    ):
        warned(lambda m=model, t=target: m.fit(features(X), t))
        assert not model.converged_
        assert np.isnan(model.duality_gap_)
        assert np.isfinite(model.objective_)
        assert np.isnan(getattr(model, "loo_bound_", np.nan))


@pytest.mark.parametrize("margin", [PRIOR, HingeMargin()])
def test_negative_definite_matrices_have_no_certificate(margin, crabs):
    X, y = crabs
    K, signs = -X @ X.T, 2.0 * y - 1
    r = warned(lambda: solve_dual(K, signs, margin))
    assert r.status is Status.INDEFINITE and not r.converged and np.isnan(r.gap)
    model = MEDClassifier("precomputed")
    warned(lambda: model.fit(K, y))
    assert not model.converged_
    r = warned(lambda: solve_kernel_dual(X, signs, margin, kernel="sigmoid", gamma=1.0))
    assert r.status is Status.INDEFINITE and np.isnan(r.gap)


def test_what_is_called_a_stationary_point_depends_on_the_start(crabs, rng):
    X, y = crabs
    K, signs = np.tanh(X @ X.T), 2.0 * y - 1
    weight = np.full(len(y), 10.0)
    found = [
        warned(
            lambda start=start: solve_dual(
                K, signs, HingeMargin(), sample_weight=weight, init=start, tol=1e-6
            )
        )
        for start in (None, *(10.0 * rng.random((5, len(y)))))
    ]
    assert all(r.status is Status.INDEFINITE for r in found)
    assert np.ptp([r.objective for r in found]) > 1.0


def test_a_stop_short_of_a_stationary_point_is_said_to_be_one(crabs):
    X, y = crabs
    signs = 2.0 * y - 1
    r = warned(lambda: solve_dual(np.tanh(X @ X.T), signs, PRIOR, max_iter=3))
    assert r.status is Status.MAX_ITER and np.isnan(r.gap)


def test_outlier_models_refuse_them(crabs):
    X, _ = crabs
    model = MEDOutlierDetector(GaussianScores("sigmoid", gamma=1.0), level=1.0)
    refused(lambda: model.fit(X), "not positive semidefinite")


# ------------------------------------------------------------- what is seen


def sees(K, bias="flat", curvature=0.0):
    kernel = VectorKernel(K, "precomputed")
    return has_negative_curvature(kernel, bias, np.full(len(K), curvature))


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("n", [1, 2, 10, 64, 65, 1000])
def test_semidefinite_matrices_pass(n, scale, rng):
    X = rng.normal(size=(n, 3))
    X[: n // 3] = X[-(n // 3) :] if n > 2 else X[: n // 3]
    for K in (X @ X.T, rbf(X), (X @ X.T + 1) ** 3, np.zeros((n, n)), np.ones((n, n))):
        for bias in ("flat", None, 1.0):
            assert not sees(scale * K, bias)
            assert not sees((scale * K).astype(np.float32).astype(float), bias)


@pytest.mark.parametrize("n", [10, 65, 1000])
def test_negative_distances_are_fine_for_multipliers_that_sum_to_zero(n, rng):
    X = rng.normal(size=(n, 3))
    K = -((X[:, None] - X[None]) ** 2).sum(axis=-1)
    assert not sees(K, "flat")
    assert sees(K, None)
    assert sees(K, 1e-3)
    if n == 65:
        y = np.where(X[:, 0] > 0.1, 1, -1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert solve_dual(K, y, PRIOR).converged


@pytest.mark.parametrize("n", [10, 64, 400, 2000])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_negative_curvature_of_a_few_percent_is_seen(n, scale, rng):
    X = rng.normal(size=(n, 3))
    noise = rng.normal(size=(n, n))
    assert sees(scale * (X @ X.T + 0.1 * (noise + noise.T)))
    assert sees(scale * np.tanh(X @ X.T))
    if n > 10:
        assert sees(scale * (rbf(X) - 0.1 * X @ X.T))


def test_curvature_of_the_terms_of_the_rows_counts(rng):
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, 1.0, -1.0)
    K = rbf(X) - 0.1 * np.eye(60)
    lowest = np.linalg.eigvalsh(K)[0]
    assert lowest < -0.05
    assert sees(K) and not sees(K, curvature=-2.1 * lowest)
    # -phi'' = 1 / rate^2
    assert sees(K, curvature=-0.5 * lowest)
    margin = GaussianMargin((-2.1 * lowest) ** -0.5)
    found = [
        solve_dual(K, y, margin, tol=1e-9, init=start, solver=solver)
        for start in (None, *(3.0 * rng.random((3, 60))))
        for solver in ("interior", "smo")
    ]
    assert all(r.converged for r in found)
    assert np.ptp([r.objective for r in found]) <= 1e-8 * (1 + found[0].objective)


@pytest.mark.parametrize("margin", [HingeMargin(), ExponentialMargin(50.0)])
def test_a_pair_that_the_solver_meets_is_enough(margin, rng):
    # one in eight of 800 rows is looked at; values between two others are wrong
    X, y = two_classes(rng, 800, 2)
    K = rbf(X)
    lam = solve_dual(K, y, margin, tol=1e-3).lam
    lam[np.linspace(0, 799, 100).astype(int)] = 0.0
    i, j = (np.argsort(lam * (y == sign))[-10:] for sign in (1, -1))
    K[i, j] = K[j, i] = 1.5
    assert not sees(K)
    r = warned(lambda: solve_dual(K, y, margin, solver="smo", tol=1e-3))
    assert np.isnan(r.gap)


def test_callables_of_single_precision_are_not_suspected(rng):
    X = rng.normal(size=(300, 8)).astype(np.float32)
    y = X[:, 0] > 0

    def kernel(A, B):
        squares = (A * A).sum(axis=1)[:, None] + (B * B).sum(axis=1) - 2 * A @ B.T
        return np.exp(-squares)

    assert MEDClassifier(kernel).fit(X, y).converged_


@pytest.mark.parametrize("n", [90, 300])
def test_a_callable_is_asked_for_every_value_once(n, rng):
    X, y = two_classes(rng, n, 3)
    asked = []

    def kernel(A, B):
        asked.append(len(A) * len(B))
        return A @ B.T

    MEDClassifier(kernel).fit(X, y)
    assert sum(asked) == n * n + 64  # besides eight rows that must be symmetric
