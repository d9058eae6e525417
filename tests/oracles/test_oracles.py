"""The oracles agree with each other and with independent solvers."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import SVC, SVR, LinearSVC

from oracles.dual_problems import (
    BIASES,
    PROPER,
    SEEDS,
    certified,
    classes,
    close,
    problem,
    separable,
)

from .closed_forms import Potentials
from .cvxopt_core import Dual, _certify, quadratic
from .dual_cvxopt import (
    solve_binary,
    solve_feature_selection,
    solve_multiclass,
    solve_regression,
)

# ------------------------------------------------------------- two classes


@pytest.mark.parametrize("kind", [*PROPER[:5], "hinge"])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("rate", [1.5, 100.0])
@pytest.mark.parametrize("linear", [True, False])
def test_binary_strong_duality(kind, bias, rate, linear):
    X, y, K = problem(0)
    if linear:
        K = X @ X.T
    weight = np.linspace(0.5, 1.5, len(y)) * (rate if kind == "hinge" else 1.0)
    s = solve_binary(K, y, kind, 1.0, rate, bias, weight, shape=1.2)
    certified(s)
    if bias == "flat":
        assert abs(s.lam @ y) <= 1e-11 * (1.0 + s.lam.max())
    if kind != "hinge":  # KKT, example by example
        pots = Potentials(kind, np.ones(len(y)), rate, weight, 1.2)
        close(s.lam / s.lam.max(), pots.slope(s.margin) / s.lam.max(), 1e-9)


@pytest.mark.parametrize("bias", BIASES)
def test_gaussian_by_both_cvxopt_solvers(bias):
    _, y, K = problem(1)
    a = solve_binary(K, y, "gaussian", 1.0, 3.0, bias, method="cp")
    b = solve_binary(K, y, "gaussian", 1.0, 3.0, bias, method="qp")
    close(a.lam, b.lam, 1e-12)
    close(a.bias, b.bias, 1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["exponential", "laplace", "gaussian", "logistic"])
def test_binary_objective_equals_primal_minimum_by_lbfgs(seed, kind):
    X, y, _ = problem(seed)
    pots = Potentials(kind, np.ones(len(y)), 3.0, 1.0)

    def risk(v):
        m = y * (X @ v[:-1] + v[-1])
        slope = -y * pots.slope(m)
        value = 0.5 * v[:-1] @ v[:-1] + np.sum(pots.loss(m))
        return value, np.append(v[:-1] + X.T @ slope, slope.sum())

    options = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000}
    found = minimize(risk, np.zeros(4), jac=True, method="L-BFGS-B", options=options)
    s = solve_binary(X @ X.T, y, kind, 1.0, 3.0, "flat")
    close(s.objective, found.fun, 1e-11)
    close(np.append(X.T @ s.coef, s.bias), found.x, 1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_hinge_is_the_support_vector_machine(seed):
    _, y, K = problem(seed)
    s = solve_binary(K, y, "hinge", bias="flat", weight=3.0)
    svc = SVC(C=3.0, kernel="precomputed", tol=1e-9).fit(K, y)
    close(s.decision, svc.decision_function(K), 1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_logistic_is_logistic_regression(seed):
    X, y, _ = problem(seed)
    ref = LogisticRegression(C=1.0, tol=1e-12, solver="newton-cholesky").fit(X, y)
    s = solve_binary(X @ X.T, y, "logistic", 0.0, 1.0, "flat")
    close(X.T @ s.coef, ref.coef_[0], 1e-9)
    close(s.bias, ref.intercept_[0], 1e-9)


def test_gaussian_is_the_squared_hinge_machine():
    X, y, _ = problem(2)
    ref = LinearSVC(C=2.0, tol=1e-12, fit_intercept=False, max_iter=10**6).fit(X, y)
    s = solve_binary(X @ X.T, y, "gaussian", 1.0, 2.0, None)  # C = c^2 / 2
    close(X.T @ s.coef, ref.coef_[0], 1e-8)


@pytest.mark.parametrize("bias", BIASES)
def test_fixed_is_the_hard_margin_limit_of_hinge(bias):
    X, y = separable(0)
    hard = solve_binary(X @ X.T, y, "fixed", 1.0, bias=bias)
    soft = solve_binary(X @ X.T, y, "hinge", 1.0, bias=bias, weight=1e3)
    certified(hard)
    close(hard.objective, soft.objective, 1e-11)
    close(hard.decision, soft.decision, 1e-10)
    assert hard.margin.min() >= 1.0 - 1e-12


def test_fixed_margins_on_overlapping_classes_raise():
    X, y = separable(0)
    y[:4] = -y[:4]
    with pytest.raises(AssertionError, match="no certified solution"):
        solve_binary(X @ X.T, y, "fixed", 1.0)


def test_large_level_approaches_the_hinge():
    _, y, K = problem(0)
    svm = solve_binary(K, y, "hinge", bias="flat", weight=1.0).decision
    error = [
        np.max(np.abs(solve_binary(K, y, "exponential", l, l).decision / l - svm))
        for l in (10.0, 100.0, 1000.0)
    ]
    assert error[0] > 5.0 * error[1] > 25.0 * error[2]
    assert error[2] < 1e-3


@pytest.mark.parametrize("kind", [*PROPER[:5], "hinge"])
@pytest.mark.parametrize("bias", BIASES)
def test_weights_are_copies(kind, bias):
    _, y, K = problem(2, T=14)
    weight = np.tile([1.0, 2.0, 0.0, 3.0, 1.0, 1.0, 2.0], 2)
    rows = np.repeat(np.arange(14), weight.astype(int))
    a = solve_binary(K, y, kind, 1.0, 4.0, bias, weight, 1.5)
    copies = K[np.ix_(rows, rows)]
    b = solve_binary(copies, y[rows], kind, 1.0, 4.0, bias, None, 1.5)
    close(a.decision[rows], b.decision, 1e-9)
    close(a.objective, b.objective, 1e-11)
    assert np.all(a.lam[weight == 0.0] == 0.0)
    if kind != "hinge":  # lam is unique
        close(a.lam, np.bincount(rows, b.lam, minlength=14), 1e-8)


def test_exact_scaling_of_level_rate_and_kernel():
    _, y, K = problem(0)
    q = 7.0
    a = solve_binary(K, y, "exponential", 1.0, 6.0)
    b = solve_binary(q**2 * K, y, "exponential", q, 6.0 / q)
    close(b.decision, q * a.decision, 1e-10)
    close(b.lam, a.lam / q, 1e-10)


def test_erlang_of_order_one_is_exponential():
    _, y, K = problem(0)
    a = solve_binary(K, y, "exponential", 1.0, 6.0)
    close(solve_binary(K, y, "erlang", 1.0, 6.0, shape=1.0).lam, a.lam, 1e-12)


def test_a_prior_that_asks_for_nothing_gives_nothing():
    _, y, K = problem(0)
    s = solve_binary(K, y, "exponential", 1.0, 0.9)
    assert s.objective == s.gap == s.bias == 0.0
    assert not s.lam.any()


def test_perturbed_solutions_are_refused():
    _, y, K = problem(0)
    s = solve_binary(K, y, "exponential", 1.0, 5.0, None)
    pots = Potentials("exponential", np.ones(len(y)), 5.0, 1.0)
    dual = Dual(pots, quadratic(K * np.outer(y, y)), np.zeros(len(y)), None)
    assert _certify(dual, s.lam, np.zeros(0))[2] <= 1e-12
    with pytest.raises(AssertionError, match="relative gap"):
        _certify(dual, s.lam * (1.0 + 1e-3), np.zeros(0))


# ------------------------------------------------------------- multi-class


@pytest.mark.parametrize("kind", [*PROPER[:5], "hinge"])
@pytest.mark.parametrize("bias", BIASES)
def test_multiclass_strong_duality(kind, bias):
    X, _, K = problem(3, T=18)
    y = classes(3, X)
    weight = np.linspace(0.5, 1.5, 18) * (4.0 if kind == "hinge" else 1.0)
    s = solve_multiclass(K, y, 3, kind, 1.0, 4.0, bias, weight, 0.8, shape=1.5)
    certified(s)
    assert np.all(s.lam[np.arange(18), y] == 0.0)
    assert abs(np.sum(s.bias)) <= 1e-12
    if bias == "flat":
        close(s.coef.sum(axis=0), np.zeros(3), 1e-11)
    # the primal, from the scores alone
    f = s.decision
    W = np.trace(s.coef.T @ (K + (bias or 0.0 if bias != "flat" else 0.0)) @ s.coef)
    pots = Potentials(kind, np.ones(54), 4.0, np.repeat(weight, 3), 1.5)
    m = (f[np.arange(18), y][:, None] - f).ravel()
    wrong = (np.arange(3)[None, :] != y[:, None]).ravel()
    close(s.primal, W / (2.0 * 0.8) + np.sum(pots.loss(m)[wrong]), 1e-11)


@pytest.mark.parametrize("kind", [*PROPER[:5], "hinge"])
@pytest.mark.parametrize("bias", BIASES)
def test_two_classes_at_half_variance_are_the_binary_machine(kind, bias):
    _, y, K = problem(4)
    weight = 4.0 if kind == "hinge" else None
    a = solve_binary(K, y, kind, 1.0, 4.0, bias, weight, 1.5)
    labels = (y > 0.0).astype(int)
    b = solve_multiclass(K, labels, 2, kind, 1.0, 4.0, bias, weight, shape=1.5)
    close(b.objective, a.objective, 1e-11)
    close(b.lam.sum(axis=1), a.lam, 1e-8)
    close(b.decision[:, 1] - b.decision[:, 0], a.decision, 1e-9)


# ------------------------------------------------------------- regression


def target(seed, X):
    rng = np.random.default_rng(seed + 77)
    return np.sin(X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=len(X))


@pytest.mark.parametrize(
    "kind", ["exponential", "gaussian", "laplace", "uniform_exp", "hinge"]
)
@pytest.mark.parametrize(
    "bias, epsilon", [*zip(BIASES, [0.0, 0.3, 0.0]), *zip(BIASES[:2], [0.3, 0.0])]
)
def test_regression_strong_duality(kind, bias, epsilon):
    X, _, K = problem(5)
    y = target(5, X) + 10.0
    weight = np.linspace(0.5, 1.5, len(y)) * (8.0 if kind == "hinge" else 1.0)
    s = solve_regression(K, y, kind, epsilon, 8.0, bias, weight)
    certified(s)
    assert np.max(np.minimum(s.lam[0], s.lam[1])) <= 1e-10
    if bias == "flat":
        assert abs(s.coef.sum()) <= 1e-11


@pytest.mark.parametrize("seed", SEEDS)
def test_gaussian_without_tube_is_kernel_ridge(seed):
    X, _, K = problem(seed)
    y = target(seed, X)
    s = solve_regression(K, y, "gaussian", 0.0, 3.0, None)
    ridge = KernelRidge(alpha=1.0 / 9.0, kernel="precomputed").fit(K, y)
    close(s.coef, ridge.dual_coef_, 1e-11)
    s = solve_regression(X @ X.T, y, "gaussian", 0.0, 3.0, "flat")
    ridge = Ridge(alpha=1.0 / 9.0).fit(X, y)
    close(X.T @ s.coef, ridge.coef_, 1e-10)
    close(s.bias, ridge.intercept_, 1e-10)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_hinge_is_support_vector_regression(seed, epsilon):
    X, _, K = problem(seed)
    y = target(seed, X)
    s = solve_regression(K, y, "hinge", epsilon, bias="flat", weight=2.0)
    svr = SVR(C=2.0, epsilon=epsilon, kernel="precomputed", tol=1e-9).fit(K, y)
    close(K @ s.coef + s.bias, svr.predict(K), 1e-6)


def test_uniform_exp_without_tube_is_exponential():
    X, _, K = problem(6)
    y = target(6, X)
    a = solve_regression(K, y, "uniform_exp", 0.0, 5.0)
    b = solve_regression(K, y, "exponential", 0.0, 5.0)
    close(a.lam, b.lam, 1e-9)
    close(a.bias, b.bias, 1e-9)


def test_targets_inside_the_tube_give_the_middle_bias():
    _, y, K = problem(0)
    s = solve_regression(K, 30.0 + y, "exponential", 4.0, 2.0)
    assert not s.lam.any()
    close(s.bias, 30.0, 1e-14)


# ------------------------------------------------------------- feature selection


@pytest.mark.parametrize("kind", [*PROPER[:5], "hinge"])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("p0", [0.02, 0.5])
def test_feature_selection_strong_duality(kind, bias, p0):
    X, y, _ = problem(7)
    weight = np.linspace(0.5, 1.5, len(y)) * (4.0 if kind == "hinge" else 1.0)
    s = solve_feature_selection(X, y, kind, 1.0, 4.0, p0, bias, weight, 1.5)
    certified(s)
    assert np.all((s.switch >= p0) & (s.switch <= 1.0))


def test_sure_switches_are_the_linear_machine():
    X, y, _ = problem(8)
    for bias in BIASES:
        a = solve_feature_selection(X, y, "exponential", 1.0, 4.0, 1.0, bias)
        b = solve_binary(X @ X.T, y, "exponential", 1.0, 4.0, bias)
        close(a.objective, b.objective, 1e-12)
        close(a.lam, b.lam, 1e-10)
        close(a.coef, X.T @ b.coef, 1e-10)


def test_feature_selection_objective_equals_penalised_primal():
    # penalty A*(mu) = sup_W mu W - A(W) by inverting A' on the way: mu = A'(W)
    X, y, _ = problem(9)
    p0 = 0.1
    pots = Potentials("exponential", np.ones(len(y)), 4.0, 1.0)

    def risk(v):
        W = v[:-1]
        A = np.log(1.0 - p0 + p0 * np.exp(W**2 / 2.0))
        p = p0 * np.exp(W**2 / 2.0 - A)
        mu, curvature = p * W, p + W**2 * p * (1.0 - p)
        m = y * (X @ mu + v[-1])
        slope = -y * pots.slope(m)
        value = np.sum(W * mu - A) + np.sum(pots.loss(m))
        return value, np.append(curvature * (W + X.T @ slope), slope.sum())

    s = solve_feature_selection(X, y, "exponential", 1.0, 4.0, p0, "flat")
    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000}
    values = []
    for start in (0.5, 2.0):
        v0 = np.append(start * np.sign(X.T @ y), 0.0)
        found = minimize(risk, v0, jac=True, method="L-BFGS-B", options=options)
        values.append(found.fun)
    close(s.objective, min(values), 1e-10)
