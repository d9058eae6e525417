"""The kernel dual: truth, certificate, invariances, bad input."""

import numpy as np
import pytest

from maxent.discrimination import (
    ErlangMargin,
    ExponentialMargin,
    FixedMargin,
    GaussianMargin,
    HingeMargin,
    LaplaceMargin,
    LogisticMargin,
    dual_path,
    solve_dual,
    solve_kernel_dual,
)

PRIORS = [
    ExponentialMargin(5.0),
    ErlangMargin(2, 6.0),
    LaplaceMargin(4.0),
    GaussianMargin(1.5),
    LogisticMargin(2.0),
    HingeMargin(),
]
BIASES = ["flat", 1.5, None]


def rbf(X, gamma=0.3):
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
    return np.exp(-gamma * squares)


def problem(rng, n=60, d=3):
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = [-1.0, 1.0]
    return X, y


def by_name(value):
    return getattr(value, "name", str(value))


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("margin", PRIORS, ids=by_name)
def test_interior_point_reaches_a_gap_of_1e_10(margin, bias, rng):
    X, y = problem(rng)
    result = solve_dual(rbf(X), y, margin, bias=bias, tol=1e-10, solver="interior")
    assert result.converged
    assert 0 <= result.gap <= 1e-10 * (1 + abs(result.objective))


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("margin", PRIORS, ids=by_name)
def test_working_sets_and_interior_point_agree(margin, bias, rng):
    X, y = problem(rng)
    K = rbf(X)
    inner = solve_dual(K, y, margin, bias=bias, tol=1e-10, solver="interior")
    outer = solve_dual(K, y, margin, bias=bias, tol=1e-7, solver="smo")
    assert outer.converged
    assert outer.objective == pytest.approx(inner.objective, rel=2e-7)


@pytest.mark.parametrize("solver", ["interior", "smo"])
@pytest.mark.parametrize("margin", PRIORS, ids=by_name)
def test_gap_is_primal_minus_dual(margin, solver, rng):
    X, y = problem(rng)
    K = rbf(X)
    w = rng.uniform(0.5, 2.0, len(y))
    result = solve_dual(
        K, y, margin, bias=1.5, sample_weight=w, tol=1e-3, solver=solver
    )
    a = y * result.lam
    f = K @ a
    m = y * (f + result.bias)
    norm = a @ f + result.bias**2 / 1.5
    primal = 0.5 * norm + w @ margin.loss(m)
    dual = w @ margin.potential(result.lam / w) - 0.5 * a @ f
    dual -= 0.75 * a.sum() ** 2
    assert result.objective == pytest.approx(dual, rel=1e-10)
    assert result.gap == pytest.approx(primal - dual, abs=1e-9 * (1 + abs(primal)))


def test_any_feasible_dual_point_is_below_any_primal_point(rng):
    X, y = problem(rng)
    K, margin = rbf(X), ExponentialMargin(5.0)
    best = solve_dual(K, y, margin, bias=None, tol=1e-10)
    for _ in range(20):
        lam = rng.uniform(0, 5.0, len(y)) * rng.integers(0, 2, len(y))
        a = y * lam
        dual = margin.potential(lam).sum() - 0.5 * a @ K @ a
        primal = 0.5 * a @ K @ a + margin.loss(y * (K @ a)).sum()
        assert dual <= best.objective * (1 + 1e-9)
        assert primal >= best.objective * (1 - 1e-9)


def test_flat_bias_balances_the_classes(rng):
    X, y = problem(rng)
    for solver in ("interior", "smo"):
        result = solve_dual(rbf(X), y, ExponentialMargin(5.0), solver=solver)
        assert abs(result.lam @ y) <= 1e-10 * result.lam.sum()


def test_active_margins_equal_the_tilted_prior_mean(rng):
    X, y = problem(rng)
    K, margin = rbf(X), ExponentialMargin(5.0)
    result = solve_dual(K, y, margin, tol=1e-12)
    m = y * (K @ (y * result.lam) + result.bias)
    active = result.lam > 0
    np.testing.assert_allclose(m[active], margin.mean(result.lam[active]), atol=1e-7)
    assert (m[~active] >= margin.prior_mean - 1e-7).all()


@pytest.mark.parametrize("q", [0.5, 3.0])
def test_scaling_law(q, rng):
    """MED(l, c, K) = MED(l q, c / q, q^2 K) with f -> q f, lam -> lam / q."""
    X, y = problem(rng)
    K = rbf(X)
    one = solve_dual(K, y, ExponentialMargin(6.0, 1.0), tol=1e-11)
    two = solve_dual(q**2 * K, y, ExponentialMargin(6.0 / q, q), tol=1e-11)
    np.testing.assert_allclose(two.lam, one.lam / q, atol=1e-5)
    assert two.bias == pytest.approx(q * one.bias, abs=1e-5)


def test_growing_sharpness_tends_to_the_support_vector_machine(rng):
    from sklearn.svm import SVC

    X, y = problem(rng)
    K = rbf(X)
    svc = SVC(C=1.0, kernel="precomputed", tol=1e-9).fit(K, y)
    target = svc.decision_function(K)
    errors = []
    for sharpness in (10.0, 100.0, 1000.0, 10000.0):
        w = np.full(len(y), 1.0 / sharpness)
        r = solve_dual(K, y, ExponentialMargin(sharpness), sample_weight=w, tol=1e-9)
        f = K @ (y * r.lam) + r.bias
        errors.append(np.abs(f - target).max())
    assert errors[0] > errors[1] > errors[2] > errors[3]
    assert errors[3] < 0.02


@pytest.mark.parametrize("solver", ["interior", "smo"])
def test_hinge_member_is_the_support_vector_machine(solver, rng):
    from sklearn.svm import SVC

    X, y = problem(rng)
    K = rbf(X)
    svc = SVC(C=2.0, kernel="precomputed", tol=1e-8).fit(K, y)
    r = solve_dual(
        K,
        y,
        HingeMargin(),
        sample_weight=np.full(len(y), 2.0),
        tol=1e-9,
        solver=solver,
    )
    np.testing.assert_allclose(
        K @ (y * r.lam) + r.bias, svc.decision_function(K), atol=1e-4
    )


def test_weight_two_is_the_row_twice(rng):
    X, y = problem(rng, n=40)
    w = rng.integers(0, 4, len(y)).astype(float)
    w[:2] = 1.0
    again = np.repeat(np.arange(len(y)), w.astype(int))
    one = solve_dual(rbf(X), y, ExponentialMargin(4.0), sample_weight=w, tol=1e-11)
    two = solve_dual(rbf(X[again]), y[again], ExponentialMargin(4.0), tol=1e-11)
    assert one.objective == pytest.approx(two.objective, rel=1e-9)
    assert one.bias == pytest.approx(two.bias, abs=1e-5)
    assert (one.lam[w == 0] == 0).all()


def test_label_flip_flips_the_machine(rng):
    X, y = problem(rng)
    K = rbf(X)
    one = solve_dual(K, y, ExponentialMargin(5.0), tol=1e-11)
    two = solve_dual(K, -y, ExponentialMargin(5.0), tol=1e-11)
    np.testing.assert_allclose(one.lam, two.lam, atol=1e-6)
    assert one.bias == pytest.approx(-two.bias, abs=1e-6)


def test_leaving_out_a_row_without_multiplier_changes_nothing(rng):
    X, y = problem(rng)
    K = rbf(X)
    one = solve_dual(K, y, ExponentialMargin(5.0), tol=1e-12)
    gone = int(np.flatnonzero(one.lam == 0)[0])
    rest = np.delete(np.arange(len(y)), gone)
    two = solve_dual(K[np.ix_(rest, rest)], y[rest], ExponentialMargin(5.0), tol=1e-12)
    assert two.objective == pytest.approx(one.objective, rel=1e-10)
    np.testing.assert_allclose(two.lam, one.lam[rest], atol=1e-6)


def test_path_equals_separate_fits_and_is_in_the_order_of_C(rng):
    X, y = problem(rng)
    K, margin = rbf(X), ExponentialMargin(10.0)
    C = [10.0, 0.1, 1.0]
    for c, r in zip(C, dual_path(K, y, margin, C, tol=1e-9)):
        alone = solve_dual(
            K, y, margin, sample_weight=np.full(len(y), c / 10.0), tol=1e-9
        )
        assert r.objective == pytest.approx(alone.objective, rel=1e-8)


def test_weights_of_a_path_multiply_those_of_C(rng):
    X, y = problem(rng)
    K, margin, C = rbf(X), ExponentialMargin(10.0), [10.0, 0.1, 1.0]
    w = rng.uniform(0.5, 2.0, len(y)) * (np.arange(len(y)) % 5 > 0)
    for c, r in zip(C, dual_path(K, y, margin, C, sample_weight=w, tol=1e-9)):
        alone = solve_dual(K, y, margin, sample_weight=c / 10.0 * w, tol=1e-9)
        assert r.objective == pytest.approx(alone.objective, rel=1e-8)
        assert (r.lam[w == 0] == 0).all()


def test_a_path_starts_its_smallest_C_from_init(rng):
    X, y = problem(rng)
    K, margin = rbf(X), ExponentialMargin(10.0)
    options = {"solver": "smo", "tol": 1e-6}
    cold = dual_path(K, y, margin, [1.0, 0.1], **options)
    warm = dual_path(K, y, margin, [1.0, 0.1], init=cold[1].lam, **options)
    assert warm[1].n_iter < cold[1].n_iter
    assert warm[0].objective == pytest.approx(cold[0].objective, rel=1e-5)


@pytest.mark.parametrize("solver", ["interior", "smo"])
def test_a_callback_ends_a_path(rng, solver):
    X, y = problem(rng)
    K, margin, C = rbf(X), ExponentialMargin(10.0), [1.0, 0.1, 10.0]
    whole = dual_path(K, y, margin, C, solver=solver)

    def after_the_first(n_iter, objective, gap):
        return objective > 1.01 * whole[1].objective

    path = dual_path(K, y, margin, C, solver=solver, callback=after_the_first)
    assert len(path) == 2  # C = 1 and 0.1, which is solved first
    assert path[1].objective == whole[1].objective
    assert path[0].status == ("stopped" if solver == "interior" else "converged")


def test_a_path_starts_each_C_from_the_one_before(rng):
    X, y = problem(rng)
    K, margin = rbf(X), ExponentialMargin(10.0)
    options = {"solver": "smo", "tol": 1e-6}
    path = dual_path(K, y, margin, [1.0, 1.001], **options)
    alone = dual_path(K, y, margin, [1.001], **options)
    assert path[1].n_iter < alone[0].n_iter


def test_options_of_a_path_reach_the_solver(rng):
    X, y = problem(rng)
    seen = []
    results = dual_path(
        rbf(X),
        y,
        ExponentialMargin(10.0),
        [1.0, 10.0],
        solver="smo",
        max_iter=2,
        callback=lambda *step: seen.append(step),
    )
    assert [r.status for r in results] == ["max_iter"] * 2
    assert len(seen) == sum(len(r.history) for r in results)


def test_features_and_kernel_matrix_give_the_same_machine(rng):
    X, y = problem(rng, n=300)
    one = solve_dual(rbf(X), y, ExponentialMargin(5.0), tol=1e-8, solver="smo")
    two = solve_kernel_dual(
        X, y, ExponentialMargin(5.0), gamma=0.3, tol=1e-8, solver="smo"
    )
    assert one.objective == pytest.approx(two.objective, rel=1e-7)


def test_short_memory_changes_the_road_not_the_result(rng):
    X, y = problem(rng, n=700)
    margin = ExponentialMargin(5.0)
    free = solve_kernel_dual(X, y, margin, gamma=0.3, tol=1e-6, solver="smo")
    tight = solve_kernel_dual(
        X, y, margin, gamma=0.3, tol=1e-6, solver="smo", cache_size=0.3
    )
    assert tight.converged
    assert tight.objective == pytest.approx(free.objective, rel=2e-6)


def test_fixed_margin_is_the_hard_margin_machine(rng):
    X, y = problem(rng)
    X[:, 0] = y * (1.0 + np.abs(X[:, 0]))
    result = solve_dual(X @ X.T, y, FixedMargin(), tol=1e-6)
    m = y * (X @ X.T @ (y * result.lam) + result.bias)
    assert result.converged
    assert m.min() == pytest.approx(1.0, abs=1e-4)


def test_fixed_margin_on_inseparable_data_is_named():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    for solver in ("auto", "interior", "smo"):
        with pytest.raises(ValueError, match="cannot be separated"):
            solve_dual(X @ X.T, [1, -1, 1, -1], FixedMargin(), solver=solver)


def test_more_steps_never_lose_dual_objective(rng):
    X, y = problem(rng, n=80)
    K = rbf(X)
    values = [
        solve_dual(
            K,
            y,
            ExponentialMargin(20.0),
            bias=None,
            tol=1e-12,
            solver="smo",
            max_iter=k,
        ).objective
        for k in (1, 2, 4, 8, 16, 32, 64, 128, 256)
    ]
    assert np.diff(values).min() >= -1e-6 * abs(values[-1])


def test_out_of_steps_is_not_called_converged(rng):
    X, y = problem(rng)
    result = solve_dual(rbf(X), y, ExponentialMargin(20.0), solver="smo", max_iter=3)
    assert not result.converged
    assert result.gap > 1e-6 * (1 + result.objective)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"K": np.ones((3, 4))}, "square"),
        ({"K": np.array([[1.0, 0.5, 0], [0.4, 1, 0], [0, 0, 1]])}, "not symmetric"),
        ({"K": np.full((3, 3), np.nan)}, "not finite"),
        ({"y": [1, 1, 1]}, "one class"),
        ({"y": [0, 1, 1]}, "-1 and \\+1"),
        ({"y": [1, -1]}, "rows but y"),
        ({"margin": ExponentialMargin(1.0)}, "not positive"),
        ({"sample_weight": [1, 1, -1]}, "negative"),
        ({"sample_weight": [1, 1]}, "sample_weight"),
        ({"sample_weight": [1, 0, 0]}, "one class"),
        ({"bias": -1.0}, "bias"),
        ({"tol": 0.0}, "tol"),
        ({"init": [1.0, 2.0]}, "init"),
        ({"init": [-1.0, 2.0, 0.0]}, "init"),
        ({"solver": "magic"}, "solver"),
        ({"max_iter": 0}, "max_iter"),
    ],
)
def test_bad_input_is_named(change, message):
    given = {"K": np.eye(3), "y": [1, -1, 1], "margin": ExponentialMargin(5.0)}
    given.update(change)
    with pytest.raises(ValueError, match=message):
        solve_dual(**given)
