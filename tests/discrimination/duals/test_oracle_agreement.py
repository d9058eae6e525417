"""Every solver against a general convex solver and, where equal, scikit-learn."""

import numpy as np
import pytest
from oracles.dual_cvxopt import (
    solve_binary,
    solve_feature_selection,
    solve_multiclass,
    solve_regression,
)
from problems import overlapping

from maxent import (
    MEDClassifier,
    MEDFeatureSelector,
    MEDRegressionSelector,
    MEDRegressor,
)
from maxent.discrimination import (
    ErlangMargin,
    ExponentialMargin,
    FixedMargin,
    GaussianMargin,
    HingeMargin,
    LaplaceMargin,
    LogisticMargin,
    UniformExponentialMargin,
    solve_dual,
    solve_kernel_dual,
    solve_linear_dual,
)

PRIORS = [
    ExponentialMargin(4.0),
    ErlangMargin(2.5, 6.0),
    LaplaceMargin(3.0),
    GaussianMargin(2.0),
    LogisticMargin(1.5, 0.3),
    HingeMargin(),
]
BIASES = ["flat", 2.0, None]
SHAPE = 2.5
T = 26


def by_name(value):
    return getattr(value, "name", str(value))


priors = pytest.mark.parametrize("margin", PRIORS, ids=by_name)
biases = pytest.mark.parametrize("bias", BIASES)
weights = pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])


def oracle_prior(margin):
    return {
        "kind": margin.name,
        "level": margin.level,
        "rate": margin.rate,
        "shape": SHAPE,
    }


def features(rng):
    X = rng.normal(size=(T, 3))
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=-1) / 2)
    return X, (K + K.T) / 2


def two_classes(rng, X):
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=T) > 0, 1.0, -1.0)
    y[:4] = 1.0, -1.0, 1.0, -1.0
    return y


def row_weights(rng, weighted):
    if not weighted:
        return None
    w = rng.uniform(0.2, 3.0, T)
    w[rng.choice(np.arange(9, T), 3, replace=False)] = 0.0
    return w


def agree(objective, gap, decision, solution, tol=1e-8):
    """Objectives to 1e-7, and decisions as far as the gap determines them."""
    scale = 1 + abs(solution.objective)
    assert abs(objective - solution.objective) <= 1e-7 * scale
    assert 0 <= gap <= tol * scale
    # the gap bounds half the squared distance of the machines in the kernel's norm;
    # the bias follows from the rows between
    np.testing.assert_allclose(decision, solution.decision, atol=3e-3)


# ------------------------------------------------------------- two classes


@priors
@biases
@weights
def test_two_classes(margin, bias, weighted, rng):
    X, K = features(rng)
    y, w = two_classes(rng, X), row_weights(rng, weighted)
    oracle = solve_binary(K, y, **oracle_prior(margin), bias=bias, weight=w)
    for solver, tol in (("interior", 1e-10), ("smo", 1e-8), ("auto", 1e-8)):
        r = solve_dual(K, y, margin, bias=bias, sample_weight=w, tol=tol, solver=solver)
        assert r.converged, solver
        agree(r.objective, r.gap, K @ (y * r.lam) + r.bias, oracle, tol)
        if w is not None:
            assert (r.lam[w == 0] == 0).all()
    r = solve_kernel_dual(X, y, margin, gamma=0.5, bias=bias, sample_weight=w, tol=1e-8)
    agree(r.objective, r.gap, K @ (y * r.lam) + r.bias, oracle)


@priors
@biases
@weights
def test_two_classes_linear(margin, bias, weighted, rng):
    X, _ = features(rng)
    y, w = two_classes(rng, X), row_weights(rng, weighted)
    oracle = solve_binary(X @ X.T, y, **oracle_prior(margin), bias=bias, weight=w)
    for solver in ("interior", "coordinate", "newton", "auto"):
        if solver == "newton" and margin.name == "hinge":
            continue  # no curvature
        r = solve_linear_dual(
            X,
            y,
            margin,
            bias=bias,
            sample_weight=w,
            tol=1e-8,
            solver=solver,
            max_iter=50_000,
        )
        assert r.converged, solver
        agree(r.objective, r.gap, X @ r.coef + r.bias, oracle)
        np.testing.assert_allclose(r.coef, X.T @ (y * r.lam), atol=1e-3)


@biases
@pytest.mark.parametrize("level", [1.0, 0.2])
def test_hard_margins(level, bias, rng):
    X, _ = features(rng)
    y = two_classes(rng, X)
    X[:, 0] = y * (0.5 + np.abs(X[:, 0]))
    K = X @ X.T
    oracle = solve_binary(K, y, "fixed", level, bias=bias)
    for solver in ("interior", "smo"):
        r = solve_dual(K, y, FixedMargin(level), bias=bias, tol=1e-8, solver=solver)
        agree(r.objective, r.gap, K @ (y * r.lam) + r.bias, oracle)
    for solver in ("interior", "coordinate"):
        r = solve_linear_dual(
            X,
            y,
            FixedMargin(level),
            bias=bias,
            tol=1e-6,
            solver=solver,
            max_iter=100_000,
        )
        scale = 1 + oracle.objective
        assert r.objective == pytest.approx(oracle.objective, abs=2e-6 * scale)


# ------------------------------------------------------------- more classes


@priors
@biases
@weights
def test_more_classes(margin, bias, weighted, rng):
    _, K = features(rng)
    y = rng.integers(0, 3, T)
    y[:9] = [0, 1, 2] * 3
    w = row_weights(rng, weighted)
    C = 1.7 / margin.unit_weight(1.0)
    oracle = solve_multiclass(
        K,
        y,
        3,
        **oracle_prior(margin),
        bias=bias,
        weight=1.7 * (np.ones(T) if w is None else w),
    )
    options = {"C": C, "margin": margin, "bias": bias, "tol": 1e-9}
    model = MEDClassifier("precomputed", multi_class="joint", **options)
    model.fit(K, y, sample_weight=w)
    assert model.converged_
    agree(
        model.objective_, model.duality_gap_, model.decision_function(K), oracle, 1e-9
    )


# ------------------------------------------------------------- regression


def tube(kind, epsilon):
    return {
        "exponential": ExponentialMargin(4.0, -epsilon),
        "erlang": ErlangMargin(SHAPE, 4.0, -epsilon),
        "laplace": LaplaceMargin(4.0, -epsilon),
        "gaussian": GaussianMargin(4.0, -epsilon),
        "hinge": HingeMargin(-epsilon),
        "uniform_exp": UniformExponentialMargin(epsilon or 1.0, 4.0),
    }[kind]


@pytest.mark.parametrize(
    ("kind", "epsilon"),
    [
        (kind, epsilon)
        for kind in ("exponential", "erlang", "laplace", "gaussian", "hinge")
        for epsilon in (0.0, 0.3)
    ]
    + [("uniform_exp", 0.3)],
)
@biases
@weights
def test_regression(kind, epsilon, bias, weighted, rng):
    X, K = features(rng)
    y = np.sin(X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=T) + 5.0
    w = row_weights(rng, weighted)
    oracle = solve_regression(
        K,
        y,
        kind,
        epsilon,
        4.0,
        bias,
        1.7 * (np.ones(T) if w is None else w),
        shape=SHAPE,
    )
    margin = tube(kind, epsilon)
    C = 1.7 / margin.unit_weight(1.0)
    for solver in ("interior", "smo"):
        # targets of 4 at most as their unit: 5e-10 (16 + J) <= 1e-8 (1 + J)
        model = MEDRegressor(
            "precomputed", C=C, margin=margin, bias=bias, tol=5e-10, solver=solver
        ).fit(K, y, sample_weight=w)
        assert model.converged_, solver
        agree(model.objective_, model.duality_gap_, model.predict(K), oracle)


# ------------------------------------------------------------- feature selection


@priors
@biases
@pytest.mark.parametrize("p0", [0.02, 0.5])
def test_feature_selection(margin, bias, p0, rng):
    X, _ = features(rng)
    y = two_classes(rng, X)
    w = row_weights(rng, True)
    oracle = solve_feature_selection(
        X,
        y,
        **oracle_prior(margin),
        prior_inclusion=p0,
        bias=bias,
        weight=1.7 * w,
    )
    C = 1.7 / margin.unit_weight(1.0)
    model = MEDFeatureSelector(p0, C=C, margin=margin, bias=bias, tol=1e-9)
    model.fit(X, y, sample_weight=w)
    assert model.converged_
    agree(
        model.objective_, model.duality_gap_, model.decision_function(X), oracle, 1e-9
    )
    np.testing.assert_allclose(model.inclusion_proba_, oracle.switch, atol=1e-3)


@pytest.mark.parametrize("kind", ["exponential", "erlang", "laplace", "gaussian"])
@biases
@pytest.mark.parametrize("p0", [0.02, 0.5])
def test_feature_selection_for_numbers(kind, bias, p0, rng):
    X, _ = features(rng)
    y = 40.0 + 7.0 * (X[:, 0] + 0.3 * rng.normal(size=T))
    w = row_weights(rng, True)
    mean = np.average(y, weights=w)
    scale = np.sqrt(np.average((y - mean) ** 2, weights=w))
    z = (y - (mean if bias == "flat" else 0.0)) / scale
    sides, twice = np.repeat([1.0, -1.0], T), [*range(T)] * 2
    oracle = solve_feature_selection(
        *(X[twice], sides, kind, -0.1, 4.0, p0, bias),
        weight=1.7 * w[twice],
        shape=SHAPE,
        linear=sides * z[twice],
    )
    margin = tube(kind, 0.1)
    C = 1.7 / margin.unit_weight(1.0)
    model = MEDRegressionSelector(p0, C, margin=margin, bias=bias, tol=1e-9)
    model.fit(X, y, sample_weight=w)
    assert model.converged_
    assert model.target_scale_ == pytest.approx(scale, rel=1e-12)
    centre = mean if bias == "flat" else 0.0
    f = np.tile((model.predict(X) - centre) / scale, 2)
    agree(model.objective_, model.duality_gap_, f, oracle, 1e-9)
    np.testing.assert_allclose(model.inclusion_proba_, oracle.switch, atol=1e-3)


# ------------------------------------------------------------- limits and laws


def test_growing_sharpness_tends_to_support_vector_regression(rng):
    from sklearn.svm import SVR

    X, _, _ = overlapping(rng)
    y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=len(X))
    target = SVR(C=1.0, epsilon=0.1, gamma=0.3, tol=1e-9).fit(X, y).predict(X)
    errors = [
        np.abs(
            MEDRegressor(C=1.0, epsilon=0.1, gamma=0.3, sharpness=s, tol=1e-9)
            .fit(X, y)
            .predict(X)
            - target
        ).max()
        for s in (10.0, 100.0, 1000.0)
    ]
    # the difference falls like log(sharpness) / sharpness
    assert errors[2] < 0.2 * errors[0]
    assert errors[2] < 0.05


def test_growing_rate_on_separable_data_tends_to_the_hard_margin(rng):
    X, _ = features(rng)
    y = two_classes(rng, X)
    X[:, 0] = y * (1.0 + np.abs(X[:, 0]))
    hard = solve_dual(X @ X.T, y, FixedMargin(), tol=1e-9)
    f = X @ X.T @ (y * hard.lam) + hard.bias
    errors = []
    for rate in (10.0, 100.0, 10_000.0):
        r = solve_dual(X @ X.T, y, ExponentialMargin(rate), tol=1e-10)
        errors.append(np.abs(X @ X.T @ (y * r.lam) + r.bias - f).max())
    assert errors[2] < 0.1 * errors[0]
    assert errors[2] < 0.02


@pytest.mark.parametrize("q", [0.1, 7.0])
def test_scaling_law_of_regression(q, rng):
    """Targets, tube and kernel in other units: f -> q f, lam -> lam / q."""
    X, K = features(rng)
    y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=T)
    options = {"kernel": "precomputed", "C": 3.0, "tol": 1e-11}
    one = MEDRegressor(epsilon=0.1, sharpness=8.0, **options).fit(K, y)
    options["C"] = 3.0 / q
    two = MEDRegressor(epsilon=0.1 * q, sharpness=8.0 / q, **options)
    two.fit(q**2 * K, q * y)
    np.testing.assert_allclose(two.predict(q**2 * K), q * one.predict(K), atol=1e-4 * q)


@pytest.mark.parametrize("q", [0.25, 5.0])
def test_scaling_law_of_more_classes(q, rng):
    _, K = features(rng)
    y = np.arange(T) % 3
    options = {"kernel": "precomputed", "multi_class": "joint", "tol": 1e-11}
    one = MEDClassifier(C=6.0, margin=ExponentialMargin(6.0), **options).fit(K, y)
    prior = ExponentialMargin(6.0 / q, q)
    two = MEDClassifier(C=6.0 / q, margin=prior, **options).fit(q**2 * K, y)
    np.testing.assert_allclose(
        two.decision_function(q**2 * K), q * one.decision_function(K), atol=1e-4 * q
    )


def test_order_of_rows_and_names_of_classes_do_not_matter(rng):
    X, _ = features(rng)
    y = rng.integers(0, 3, T)
    y[:9] = [0, 1, 2] * 3
    names = np.array(["pear", "apple", "fig"])
    order = rng.permutation(T)
    one = MEDClassifier(C=5.0, gamma=0.5, tol=1e-10).fit(X, y)
    two = MEDClassifier(C=5.0, gamma=0.5, tol=1e-10).fit(X[order], names[y][order])
    assert two.classes_.tolist() == ["apple", "fig", "pear"]
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-9)
    np.testing.assert_allclose(
        two.decision_function(X), one.decision_function(X)[:, [1, 2, 0]], atol=1e-4
    )
