"""The learners: monotone objectives, the theory's propositions, certificates."""

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from maxent.minentropy import renyi_score
from maxent.minentropy._cccp import _Bound, cccp
from maxent.minentropy._convex_parts import ConvexParts
from maxent.minentropy._features import BlockFeatures, JointFeatures
from maxent.minentropy._objective import Objective
from maxent.minentropy._prox_linear import prox_linear, trust_region
from maxent.minentropy._starts import Settings, learn

ORDERS = (0.0, 0.25, 1.0, 1.05, 2.0, 8.0, 32.0, np.inf)
OPTIONS = {"tol": 1e-4, "qp_tol": 1e-9, "max_iter": 100}


def bags(rng, alpha, K=2, n=20, p=3, one_sided=False, C=3.0):
    size = rng.integers(1, 6, size=n)
    ends = np.concatenate([[0], np.cumsum(size)])
    codes = np.arange(n) % K
    phi = rng.standard_normal((ends[-1], p)) + 0.3 * np.repeat(codes, size)[:, None]
    features = BlockFeatures(phi, ends, K, one_sided)
    c = C * (0.5 + rng.random(n)) / n
    return Objective(features, codes, c, 1.0 - np.eye(K), np.full(K, alpha))


def joint(rng, alpha, K=3, n=12, d=4):
    """Joint features, some outputs impossible, hidden sets of any size."""
    size = rng.integers(0, 5, size=(n, K))
    codes = np.arange(n) % K
    size[np.arange(n), codes] += 1
    ptr = np.concatenate([[0], np.cumsum(size.ravel())])
    R = rng.standard_normal((ptr[-1], d))
    loss = rng.random((K, K)) * (1 - np.eye(K))
    c = 2.0 * rng.random(n) / n + 0.01
    return Objective(JointFeatures(R, ptr, K), codes, c, loss, np.full(K, alpha))


def value_by_definition(objective, w, rows):
    """f(w) from a list of features rows[i][y] (H, d)."""
    value = 0.5 * w @ w
    for i, y in enumerate(objective.codes):
        F = [
            renyi_score(R @ w, objective.alpha[k]) if len(R) else -np.inf
            for k, R in enumerate(rows[i])
        ]
        most = max(objective.loss[y, k] + F[k] - F[y] for k in range(len(F)))
        value += objective.c[i] * max(most, 0.0)
    return value


def minimise(name, objective, w, **options):
    solver = {"prox": prox_linear, "ball": trust_region, "cccp": cccp}[name]
    return solver(objective, w, **{**OPTIONS, **options})


@pytest.mark.parametrize("alpha", ORDERS)
def test_objective_is_its_definition(alpha, rng):
    objective = joint(rng, alpha)
    features, w = objective.features, rng.standard_normal(4)
    rows = [
        [
            features.R[features.ptr[i * 3 + y] : features.ptr[i * 3 + y + 1]]
            for y in range(3)
        ]
        for i in range(features.n)
    ]
    expected = value_by_definition(objective, w, rows)
    np.testing.assert_allclose(objective.value(w), expected, rtol=1e-12)
    if alpha < np.inf:
        f, problem = objective.linearised(w)
        np.testing.assert_allclose(f, expected, rtol=1e-12)
        model = 0.5 * w @ w + problem.loss(w)
        np.testing.assert_allclose(model, f, rtol=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.25, 1.0, 2.0, 8.0])
def test_gradient_of_the_scores(alpha, rng):
    for objective in (bags(rng, alpha, K=3), bags(rng, alpha, one_sided=True)):
        features = objective.features
        w, u = rng.standard_normal((2, features.d))
        _, G = features.renyi(w, objective.alpha)
        step = 1e-5
        up, down = (
            features.renyi(w + s * step * u, objective.alpha, gradient=False)[0]
            for s in (1, -1)
        )
        slope = features.at_weights(G, u)
        np.testing.assert_allclose(slope, (up - down) / (2 * step), atol=1e-7)


@pytest.mark.parametrize("name", ["prox", "ball", "cccp"])
@pytest.mark.parametrize("alpha", ORDERS)
def test_objective_never_rises(name, alpha, rng):
    if name != "cccp" and alpha == np.inf:
        pytest.skip("not a solver of this order")
    worst = -np.inf
    for make in (bags, joint):
        objective = make(rng, alpha)
        start = rng.standard_normal(objective.features.d)
        found = minimise(name, objective, start, max_iter=10)
        values = [h[1] for h in found.history]
        worst = max(worst, float(np.diff(values).max(initial=-np.inf)))
        np.testing.assert_allclose(objective.value(found.w), found.objective)
        assert found.stationarity >= 0
    assert worst <= 0.0


@pytest.mark.slow
def test_objective_never_rises_in_a_thousand_problems(rng):
    worst, unfinished = -np.inf, 0
    for _ in range(1000):
        alpha = rng.choice(ORDERS)
        make = rng.choice([bags, joint])
        objective = make(rng, alpha)
        name = "cccp" if alpha == np.inf else "prox"
        found = minimise(name, objective, rng.standard_normal(objective.features.d))
        values = [h[1] for h in found.history]
        worst = max(worst, float(np.diff(values).max(initial=-np.inf)))
        unfinished += not found.converged
    print(f"worst step {worst:.2e}, {unfinished} of 1000 not converged")
    assert worst <= 0.0


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 4.0])
def test_prox_linear_is_stationary(alpha, rng):
    objective = bags(rng, alpha)
    found = minimise("prox", objective, np.zeros(objective.features.d), tol=1e-6)
    assert found.converged and found.stationarity <= 1e-6
    # no small step gets below f by more than e_1 and the curvature of the model
    for _ in range(200):
        u = rng.standard_normal(len(found.w))
        u *= 1e-3 / np.linalg.norm(u)
        fall = found.objective - objective.value(found.w + u)
        assert fall <= 1e-6 * objective.total + 50.0 * 1e-6


@pytest.mark.parametrize("alpha", ORDERS)
def test_slacks_bound_the_loss_of_predictions(alpha, rng):
    # proposition 1, at any weights
    objective = joint(rng, alpha)
    for _ in range(20):
        w = 3.0 * rng.standard_normal(4)
        F, _ = objective.features.renyi(w, objective.alpha, gradient=False)
        missed = objective.loss[objective.codes, F.argmax(axis=1)]
        assert (missed <= objective.slacks(F) + 1e-12).all()


def test_latent_svm_has_the_objective_of_order_infinity(rng):
    # proposition 2: the same objective, a larger bound
    objective = bags(rng, np.inf, K=3)
    start = rng.standard_normal(objective.features.d)
    ours = cccp(objective, start, **OPTIONS)
    theirs = cccp(objective, start, latent_svm=True, **OPTIONS)
    for found in (ours, theirs):
        np.testing.assert_allclose(found.objective, objective.value(found.w))
        assert np.diff([h[1] for h in found.history]).max(initial=-1) <= 0


def listed_bound(objective, w, z, latent):
    """The bound at z, row by row: with the best true hidden values at w."""
    features, K = objective.features, objective.features.K
    at_w, at_z = (features.scores(x).reshape(K, -1) for x in (w, z))
    value = 0.5 * float(z @ z)
    for i, right in enumerate(objective.codes):
        bag = slice(*features.bags[i : i + 2])
        own = at_z[right, bag][at_w[right, bag].argmax()]
        short = [
            objective.loss[right, y] + at_z[y, bag].max() - own
            for y in range(K)
            if latent or y != right
        ]
        value += objective.c[i] * max(0.0, *short)
    return value


def test_bound_of_the_latent_svm_is_above_that_of_order_infinity(rng):
    # latent >= ours >= f, equal where they are made
    objective = bags(rng, np.inf, K=3)
    w = rng.standard_normal(objective.features.d)
    ours, latent = (
        _Bound(ConvexParts(objective, latent), w, None) for latent in (False, True)
    )
    above = []
    for size in (0.0, 0.1, 1.0, 5.0):
        for _ in range(20):
            z = w + size * rng.standard_normal(len(w))
            values = [bound._evaluate(z, 1e-4)[0] for bound in (latent, ours)]
            listed = [listed_bound(objective, w, z, rows) for rows in (True, False)]
            np.testing.assert_allclose(values, listed, rtol=1e-12)
            values.append(objective.value(z))
            assert values[0] >= values[1] - 1e-10 >= values[2] - 2e-10
            above.append([values[0] - values[1], values[1] - values[2]])
            if size == 0.0:
                np.testing.assert_allclose(values, values[2], rtol=1e-12)
    assert (np.max(above, axis=0) > 1e-3).all()


@pytest.mark.parametrize("nu", [0.0, 0.5, 20.0])
def test_the_minimum_of_a_bound_has_the_proximal_term(nu, rng):
    objective = bags(rng, np.inf)
    w = rng.standard_normal(objective.features.d)
    parts, f = ConvexParts(objective), objective.value(w)
    z, lower, _ = _Bound(parts, w, None).minimise(
        w, f, f, tol=1e-8, qp_tol=1e-10, nu=nu
    )

    def value(z):
        away = z - w
        return _Bound(parts, w, None)._evaluate(z, 1e-9)[0] + 0.5 * nu * away @ away

    # as near to the minimum as the fall is worth
    assert -1e-9 * f <= value(z) - lower <= 0.2 * (f - value(z)) + 1e-6 * f
    for size in (1e-3, 1e-1):
        others = z + size * rng.standard_normal((20, len(z)))
        assert min(map(value, others)) > lower - 1e-7 * f


@pytest.mark.parametrize("accuracy", [0.3, 0.03, 1e-9])
def test_the_lower_bound_of_inexact_solutions_is_one(accuracy, rng):
    for k in range(6):
        objective = bags(rng, np.inf, K=2 + k % 2)
        w = rng.standard_normal(objective.features.d)
        parts, f = ConvexParts(objective, k % 3 == 0), objective.value(w)
        options = {"f": f, "fall": f, "tol": 1e-9}
        z, _, _ = _Bound(parts, w, None).minimise(w, qp_tol=1e-10, **options)
        least = _Bound(parts, w, None)._evaluate(z, 1e-9)[0]
        _, lower, _ = _Bound(parts, w, None).minimise(w, qp_tol=accuracy, **options)
        assert lower <= least + 1e-8 * f


def test_large_orders_are_near_infinity(rng):
    objective = bags(rng, np.inf)
    w = rng.standard_normal(objective.features.d)
    near = objective.at_order(np.full(2, 1e5)).value(w)
    np.testing.assert_allclose(near, objective.value(w), rtol=1e-3)


@pytest.mark.parametrize("alpha", ORDERS)
def test_one_hidden_value_is_a_support_vector_machine(alpha, rng):
    X = rng.standard_normal((50, 3))
    codes = (X[:, 0] + 0.7 * rng.standard_normal(50) > 0).astype(np.intp)
    features = BlockFeatures(X, np.arange(51), 2, True)
    objective = Objective(
        features, codes, np.full(50, 0.4), 1.0 - np.eye(2), np.full(2, alpha)
    )
    name = "cccp" if alpha == np.inf else "prox"
    found = minimise(name, objective, np.zeros(3), tol=1e-8, qp_tol=1e-10)
    svc = LinearSVC(
        loss="hinge", C=0.4, fit_intercept=False, tol=1e-8, max_iter=1_000_000
    )
    svc.fit(X, codes)
    np.testing.assert_allclose(found.w, svc.coef_[0], atol=2e-4)


def test_zero_features_give_zero_weights(rng):
    features = BlockFeatures(np.zeros((30, 2)), np.arange(0, 31, 3), 2, True)
    codes = np.arange(10) % 2
    for alpha in (0.5, np.inf):
        objective = Objective(
            features, codes, np.full(10, 0.1), 1.0 - np.eye(2), np.full(2, alpha)
        )
        settings = Settings("auto", 1e-4, 1e-8, 50)
        found = learn(objective, settings, "auto", 2, rng).best
        assert (found.w == 0).all() and found.stationarity <= 1e-8


def test_a_trap_at_zero_is_seen(rng):
    # every bag has the same average, and one instance that tells
    n = 40
    codes = np.arange(n) % 2
    phi = np.zeros((n, 4, 2))
    phi[:, 0, 0] = np.where(codes == 1, 3.0, 0.0)
    phi[:, 1, 0] = -phi[:, 0, 0]
    phi[:, 2:, 1] = 0.1 * rng.standard_normal((n, 2))
    phi[:, :, 1] -= phi[:, :, 1].mean(axis=1, keepdims=True)
    features = BlockFeatures(phi.reshape(-1, 2), np.arange(0, 4 * n + 1, 4), 2, True)
    objective = Objective(
        features, codes, np.full(n, 10.0 / n), 1.0 - np.eye(2), np.full(2, 2.0)
    )
    learned = learn(objective, Settings("auto", 1e-4, 1e-8, 100), "zero", 4, rng)
    assert learned.trapped
    assert [name for name, *_ in learned.runs].count("random") == 4


def test_chosen_run_has_the_smallest_objective(rng):
    objective = bags(rng, 2.0, n=30)
    learned = learn(objective, Settings("auto", 1e-4, 1e-8, 100), "auto", 3, rng)
    assert [name for name, *_ in learned.runs] == ["path", *["random"] * 3]
    assert learned.best.objective == min(f for _, f, _ in learned.runs)


def counting(count):
    """Calls of a callback, which asks to stop when it is called for the nth time."""
    calls = []

    def callback(n_iter, objective, stationarity):
        calls.append((n_iter, objective, stationarity))
        return len(calls) >= count

    return calls, callback


@pytest.mark.parametrize("solver", ["prox", "cccp", "latent_svm"])
def test_a_callback_stops_all_starts(solver, rng):
    alpha = 2.0 if solver == "prox" else np.inf
    objective = bags(rng, alpha)
    settings = Settings(solver, 1e-4, 1e-8, 50)
    calls, callback = counting(np.inf)
    full = learn(objective, settings, "auto", 2, np.random.default_rng(0), callback)
    plain = learn(objective, settings, "auto", 2, np.random.default_rng(0))
    assert not full.stopped
    assert full.runs == plain.runs
    np.testing.assert_array_equal(full.best.w, plain.best.w)
    # the end of an order or a start as well: there learning would go on
    ends = next(i for i, (_, _, e) in enumerate(calls, start=1) if e <= 1e-2)
    for count in {1, ends, len(calls) // 2, len(calls)}:
        told, callback = counting(count)
        rng = np.random.default_rng(0)
        found = learn(objective, settings, "auto", 2, rng, callback)
        assert told == calls[:count]
        assert found.stopped
        assert found.best.status == "stopped"
        value = objective.value(found.best.w)
        assert found.best.objective == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("name", ["prox", "ball", "cccp"])
def test_history_is_what_the_callback_is_told(name, rng):
    objective = bags(rng, 2.0)
    calls, callback = counting(np.inf)
    start = np.zeros(objective.features.d)
    found = minimise(name, objective, start, callback=callback)
    values = list(dict.fromkeys(f for _, f, _ in calls))
    assert [f for _, f, _ in found.history] == values
    assert found.history[-1][1:] == (found.objective, found.stationarity)
    assert calls[-1][1:] == (found.objective, found.stationarity)


def test_steps_of_inexact_problems_never_rise(rng):
    for _ in range(10):
        objective = bags(rng, 2.0)
        best = minimise("prox", objective, np.zeros(objective.features.d))
        calls, callback = counting(np.inf)
        options = {"tol": 1e-12, "qp_tol": 0.3, "max_iter": 20, "callback": callback}
        found = minimise("prox", objective, best.w, **options)
        values = np.array([f for _, f, _ in calls])
        assert (np.diff(values) <= 0.0).all()
        assert found.objective <= best.objective


def test_a_descent_ends_where_no_step_gains(rng):
    objective = bags(rng, 2.0)
    start, options = np.zeros(objective.features.d), {"tol": 0.0, "qp_tol": 1e-13}
    found = minimise("prox", objective, start, max_iter=3000, **options)
    assert found.status.value == "stalled" and found.n_iter < 3000


@pytest.mark.parametrize("name", ["prox", "cccp"])
def test_converged_where_the_last_step_meets_the_tolerance(name, rng):
    objective = bags(rng, 2.0)
    start = np.zeros(objective.features.d)
    full = minimise(name, objective, start)
    assert full.converged
    # the step before the last, whose point the full run certifies
    last = full.n_iter - 1
    for max_iter in sorted({1, last // 2, last} - {0}):
        found = minimise(name, objective, start, max_iter=max_iter)
        assert found.converged == (found.stationarity <= OPTIONS["tol"])
    assert found.converged and found.n_iter == last
