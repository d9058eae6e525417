"""Linear duals: three roads, one machine; dense and sparse; invariances."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from problems import by_name, two_classes

from maxent.discrimination import (
    ExponentialMargin,
    GaussianMargin,
    HingeMargin,
    LaplaceMargin,
    LogisticMargin,
    solve_dual,
    solve_kernel_dual,
    solve_linear_dual,
)
from maxent.discrimination.duals import (
    _coordinate_ascent,
    _primal_newton,
    linear_dual,
)
from maxent.discrimination.duals._linear_problem import LinearProblem
from maxent.discrimination.duals._signed_problem import binary_problem

PRIOR = ExponentialMargin(6.0)
SMOOTH = [PRIOR, LaplaceMargin(4.0), GaussianMargin(1.5), LogisticMargin()]
BIASES = ["flat", 1.5, None]
SOLVERS = ["coordinate", "newton", "interior"]

solvers = pytest.mark.parametrize("solver", SOLVERS)


def near(objective, tol):
    """Objectives of gap tol * (1 + objective) may differ by that much, twice."""
    return pytest.approx(objective, abs=2 * tol * (1 + objective))


def problem(rng, n=300, d=6, density=1.0):
    X, y = two_classes(rng, n, d, direction=(1.0, -1.0)[:d])
    if density < 1:
        X *= rng.random((n, d)) < density
    return X, y


@pytest.mark.parametrize("margin", SMOOTH, ids=by_name)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("shape", [(500, 8), (700, 3), (450, 40)])
def test_every_road_leads_to_the_same_objective(margin, bias, shape, rng):
    X, y = problem(rng, *shape)
    results = [
        solve_linear_dual(X, y, margin, bias=bias, tol=1e-6, solver=s, max_iter=20_000)
        for s in (*SOLVERS, "auto")
    ]
    for r in results:
        assert r.converged, r.solver
        assert r.objective == near(results[0].objective, 1e-6)


@pytest.mark.parametrize("bias", BIASES)
def test_equals_the_kernel_solvers_on_the_linear_kernel(bias, rng):
    X, y = problem(rng, 150)
    linear = solve_linear_dual(X, y, PRIOR, bias=bias, tol=1e-9)
    matrix = solve_dual(X @ X.T, y, PRIOR, bias=bias, tol=1e-9)
    kernel = solve_kernel_dual(X, y, PRIOR, kernel="linear", bias=bias, tol=1e-9)
    for other in (matrix, kernel):
        assert other.objective == pytest.approx(linear.objective, rel=1e-8)
        assert other.bias == pytest.approx(linear.bias, abs=1e-3)
        np.testing.assert_allclose(X.T @ (y * other.lam), linear.coef, atol=1e-3)


@pytest.mark.parametrize("margin", [*SMOOTH, HingeMargin()], ids=by_name)
@pytest.mark.parametrize("bias", BIASES)
def test_dense_and_sparse_rows_give_the_same_machine(margin, bias, rng):
    X, y = problem(rng, 400, 30, density=0.2)
    X[[5, 399]] = 0.0
    dense, short, long = (
        solve_linear_dual(
            Z, y, margin, bias=bias, tol=1e-5, solver="coordinate", max_iter=20_000
        )
        for Z in (X, sp.csr_array(X), with_long_indices(X))
    )
    assert short.lam.tobytes() == long.lam.tobytes()
    assert short.bias == long.bias
    assert dense.converged
    assert short.converged
    assert short.objective == near(dense.objective, 1e-5)


def with_long_indices(X):
    X = sp.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


@solvers
@pytest.mark.parametrize("shape", [(2, 1), (3, 50), (20, 300), (410, 1)])
def test_narrow_and_wide_data(solver, shape, rng):
    X, y = problem(rng, *shape)
    r = solve_linear_dual(X, y, PRIOR, tol=1e-6, solver=solver, max_iter=20_000)
    assert r.converged
    assert r.coef.shape == (shape[1],)
    assert r.lam.shape == (shape[0],)
    best = solve_dual(X @ X.T, y, PRIOR, tol=1e-9, solver="interior")
    assert r.objective == near(best.objective, 1e-6)


@solvers
def test_columns_of_zeros_get_no_weight(solver, rng):
    X, y = problem(rng)
    wide = np.column_stack([np.zeros(len(X)), X, np.zeros(len(X))])
    plain = solve_linear_dual(X, y, PRIOR, tol=1e-8, solver=solver, max_iter=20_000)
    r = solve_linear_dual(wide, y, PRIOR, tol=1e-8, solver=solver, max_iter=20_000)
    assert r.coef[0] == r.coef[-1] == 0
    np.testing.assert_allclose(r.coef[1:-1], plain.coef, atol=1e-3)


@solvers
def test_weight_two_is_the_row_twice_and_weight_zero_its_absence(solver, rng):
    X, y = problem(rng, 120)
    w = rng.integers(0, 4, len(y)).astype(float)
    w[:2] = 1.0
    again = np.repeat(np.arange(len(y)), w.astype(int))
    options = {"tol": 1e-8, "solver": solver, "max_iter": 20_000}
    one = solve_linear_dual(X, y, PRIOR, sample_weight=w, **options)
    two = solve_linear_dual(X[again], y[again], PRIOR, **options)
    assert one.objective == near(two.objective, 1e-8)
    assert (one.lam[w == 0] == 0).all()
    np.testing.assert_allclose(one.coef, two.coef, atol=1e-3)


@solvers
def test_rotation_and_label_flip(solver, rng):
    X, y = problem(rng, 200)
    R = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    options = {"tol": 1e-9, "solver": solver, "max_iter": 50_000}
    one = solve_linear_dual(X, y, PRIOR, **options)
    turned = solve_linear_dual(X @ R, y, PRIOR, **options)
    flipped = solve_linear_dual(X, -y, PRIOR, **options)
    np.testing.assert_allclose(turned.coef, one.coef @ R, atol=1e-3)
    np.testing.assert_allclose(flipped.coef, -one.coef, atol=1e-3)
    assert turned.bias == pytest.approx(one.bias, abs=1e-3)
    assert flipped.bias == pytest.approx(-one.bias, abs=1e-3)


def test_a_wide_bias_prior_tends_to_the_flat_one(rng):
    X, y = problem(rng, 300)
    X[:, 2] += 3.0
    for solver in ("newton", "interior"):
        flat = solve_linear_dual(X, y, PRIOR, tol=1e-9, solver=solver)
        wide = solve_linear_dual(X, y, PRIOR, bias=1e8, tol=1e-9, solver=solver)
        assert wide.objective == pytest.approx(flat.objective, rel=1e-6)
        assert wide.bias == pytest.approx(flat.bias, abs=1e-3)


def test_random_state_chooses_the_road_not_the_place(rng):
    X, y = problem(rng)
    options = {"tol": 1e-7, "solver": "coordinate", "max_iter": 20_000}
    one, same, other = (
        solve_linear_dual(X, y, PRIOR, random_state=seed, **options)
        for seed in (3, 3, 4)
    )
    assert one.lam.tobytes() == same.lam.tobytes()
    assert one.lam.tobytes() != other.lam.tobytes()
    assert other.objective == near(one.objective, 1e-7)


@solvers
def test_warm_starts_save_steps(solver, rng):
    X, y = problem(rng, 600)

    def steps_of(init=None):
        counts = []  # each solver that takes its turn counts from the start
        options = {"tol": 1e-6, "solver": solver, "max_iter": 20_000, "init": init}
        r = solve_linear_dual(
            X, y, PRIOR, callback=lambda n_iter, *_: counts.append(n_iter), **options
        )
        last = [*(np.diff(counts) <= 0), True]
        return r, int(np.array(counts)[last].sum())

    cold, many = steps_of()
    warm, few = steps_of(cold.lam)
    assert warm.converged
    assert few <= max(many, 10)
    assert warm.objective == near(cold.objective, 1e-6)


@pytest.mark.parametrize("solver", ["coordinate", "newton"])
def test_steps_are_bounded_and_counted(solver, rng):
    X, y = problem(rng, 600)
    seen = []
    for k in (1, 2, 3):
        r = solve_linear_dual(X, y, PRIOR, tol=1e-12, solver=solver, max_iter=k)
        assert r.n_iter == k
        assert r.solver == solver
        assert not r.converged
        assert r.gap > 0
        seen.append(r.objective)
    longer = solve_linear_dual(X, y, PRIOR, tol=1e-5, solver=solver, max_iter=10_000)
    assert longer.objective >= max(seen) - 1e-5 * (1 + longer.objective)


@pytest.mark.parametrize("factor, info", [(1.0, 3), (np.nan, 0)])
def test_a_hessian_that_cannot_be_factored_leaves_it_to_the_interior_point(
    factor, info, monkeypatch, rng
):
    def refuse(A, **options):
        return factor * A, info

    X, y = problem(rng)
    plain = solve_linear_dual(X, y, PRIOR, tol=1e-7, solver="newton")
    monkeypatch.setattr(_primal_newton, "dpotrf", refuse)
    r = solve_linear_dual(X, y, PRIOR, tol=1e-7, solver="newton")
    assert r.converged
    assert r.solver == "interior"
    assert r.objective == near(plain.objective, 1e-7)


@pytest.mark.parametrize(
    "margin",
    [
        ExponentialMargin(70.0),
        GaussianMargin(100.0),
        LogisticMargin(80.0),
        HingeMargin(),
    ],
    ids=by_name,
)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("d", [2, 6])
def test_coordinate_ascent_ends_on_many_rows_of_few_columns(margin, bias, d, rng):
    X, y = problem(rng, 200, d)
    weight = np.full(200, 80.0 if margin.name == "hinge" else 1.0)
    options = {"bias": bias, "sample_weight": weight, "tol": 1e-9}
    r = solve_linear_dual(
        X, y, margin, solver="coordinate", max_iter=100_000, **options
    )
    assert r.converged
    best = solve_dual(X @ X.T, y, margin, solver="interior", **options)
    assert r.objective == near(best.objective, 1e-9)


def test_the_bound_that_held_is_the_one_reported(monkeypatch, rng):
    X, y = problem(rng)
    r = solve_linear_dual(X, y, PRIOR, tol=1e-12, solver="coordinate", max_iter=3)
    assert not r.converged
    assert r.max_iter is None
    monkeypatch.setattr(_primal_newton, "_STEPS", 2)
    monkeypatch.setattr(linear_dual, "_interior_is_cheap", lambda linear: False)
    r = solve_linear_dual(X, y, PRIOR, tol=1e-12, solver="newton")
    assert not r.converged
    assert r.n_iter == r.max_iter == 2
    monkeypatch.setattr(linear_dual, "_INTERIOR_STEPS", 2)
    r = solve_linear_dual(X, y, PRIOR, tol=1e-12, solver="interior")
    assert not r.converged
    assert r.n_iter == r.max_iter == 2


@solvers
def test_every_solver_reports_its_progress(solver, rng):
    X, y = problem(rng)
    seen = []
    r = solve_linear_dual(
        X, y, PRIOR, solver=solver, callback=lambda *news: seen.append(news)
    )
    assert r.history
    assert seen[-len(r.history) :] == r.history  # another solver may have begun


def test_single_precision_features_are_enough(rng):
    X, y = problem(rng, 500)
    X = X.astype(np.float32)
    for solver in (*SOLVERS, "auto"):
        one = solve_linear_dual(X, y, PRIOR, tol=1e-7, solver=solver, max_iter=20_000)
        two = solve_linear_dual(
            X.astype(float), y, PRIOR, tol=1e-7, solver=solver, max_iter=20_000
        )
        assert one.lam.tobytes() == two.lam.tobytes()


def test_automatic_choice_suits_size_and_storage(rng):
    def chosen(X, margin=PRIOR, **options):
        y = np.where(np.arange(X.shape[0]) % 2, 1.0, -1.0)
        return solve_linear_dual(X, y, margin, tol=1e-2, max_iter=3, **options).solver

    assert chosen(rng.normal(size=(50, 4))) == "interior"
    assert chosen(rng.normal(size=(2000, 4))) == "newton"
    assert chosen(
        sp.random_array((2000, 300), density=0.01, random_state=rng, format="csr")
    ) == ("coordinate")


@pytest.mark.slow
@pytest.mark.parametrize("bias", BIASES)
def test_many_sparse_rows(bias, rng):
    X = sp.random_array((20_000, 2_000), density=0.01, random_state=rng, format="csr")
    w = rng.normal(size=2_000)
    y = np.where(X @ w + 0.3 * rng.normal(size=20_000) > 0, 1.0, -1.0)
    r = solve_linear_dual(X, y, ExponentialMargin(3.0), bias=bias, tol=1e-4)
    assert r.converged
    primal = 0.5 * r.coef @ r.coef
    primal += ExponentialMargin(3.0).loss(y * (X @ r.coef + r.bias)).sum()
    primal += 0.0 if bias in ("flat", None) else 0.5 * r.bias**2 / bias
    assert primal - r.objective == pytest.approx(r.gap, abs=1e-7 * primal)


@pytest.mark.parametrize("solver", ["newton", "coordinate", "interior"])
def test_features_in_single_precision_are_summed_in_double(solver, rng):
    X = rng.normal(size=(500, 4)).astype(np.float32)
    y = np.where(X[:, 0] + rng.normal(size=500) > 0, 1.0, -1.0)
    options = {"solver": solver, "tol": 1e-8, "max_iter": 10_000}
    one = solve_linear_dual(X, y, ExponentialMargin(5.0), **options)
    two = solve_linear_dual(X.astype(float), y, ExponentialMargin(5.0), **options)
    assert one.converged
    np.testing.assert_allclose(one.coef, two.coef, atol=1e-12)
    assert one.gap <= 1e-8 * (1 + one.objective)


def test_newton_holds_no_copy_of_features_in_single_precision(rng):
    X = rng.normal(size=(60_000, 200)).astype(np.float32)
    y = np.where(X[:, 0] + rng.normal(size=len(X)) > 0, 1.0, -1.0)
    tracemalloc.start()
    result = solve_linear_dual(X, y, LogisticMargin(1.0), solver="newton")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.converged
    assert peak < X.nbytes  # a copy in doubles is twice as large


def rows_with_shared_columns(rng, n, d=400):
    """Sparse rows with a few columns that most rows have, as frequent words are."""
    share = np.concatenate([np.full(5, 0.8), np.full(d - 5, 0.02)])
    X = sp.csr_array(np.abs(rng.normal(size=(n, d))) * (rng.random((n, d)) < share))
    y = np.where(X @ rng.normal(size=d) + rng.normal(size=n) > 0.5, 1.0, -1.0)
    return X, y


def test_what_rows_share_takes_few_epochs(rng):
    X, y = rows_with_shared_columns(rng, 6000)
    options = {"bias": 1.0, "solver": "coordinate", "tol": 1e-3, "max_iter": 16}
    for data in (X, X.toarray()):
        r = solve_linear_dual(data, y, LogisticMargin(), **options)
        assert r.converged, r.gap / (1 + r.objective)


@pytest.mark.parametrize("margin", [HingeMargin(2.0), PRIOR, LogisticMargin()])
def test_epochs_visit_all_rows_and_then_those_that_move(margin, monkeypatch, rng):
    X, y = rows_with_shared_columns(rng, 3000)
    visits = []

    def noting(linear):
        epoch, arrays = epoch_of(linear)

        def run(*args):
            visits.append(args[len(arrays) + 7])
            before = args[-3].copy()
            found = epoch(*args)
            moved.append(np.flatnonzero(args[-3] != before))
            return found

        return run, arrays

    epoch_of, moved = _coordinate_ascent.epoch_of, []
    monkeypatch.setattr(_coordinate_ascent, "epoch_of", noting)
    r = solve_linear_dual(X, y, margin, bias=1.0, solver="coordinate", tol=1e-5)
    assert r.converged
    sizes = np.array([len(order) for order in visits])
    assert sizes[0] == len(y) and all(len(set(o)) == len(o) for o in visits)
    for last, order in zip(moved[:-1], visits[1:], strict=True):
        assert len(order) == len(y) or np.array_equal(np.sort(order), last)
    gaps = np.diff(np.flatnonzero(sizes == len(y)))
    assert gaps.max(initial=1) <= 5
    if margin is PRIOR or isinstance(margin, HingeMargin):
        assert sizes.min() < len(y) / 2  # rows rest at an end
    else:
        assert (sizes == len(y)).all()  # none has an end to rest at


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("single", [False, True])
def test_a_pass_has_the_derivatives_of_its_loss(single, bias, rng):
    X, y = problem(rng, 20_000, 5)  # more than one slice
    X = X.astype(np.float32) if single else X
    data = binary_problem(y, LogisticMargin(2.0), bias, rng.uniform(0.5, 2.0, len(y)))
    linear = LinearProblem(X, data, keep_single=True)
    x = rng.normal(size=6)
    value, lam, gradient, none = linear.loss_pass(x)
    *again, H = linear.loss_pass(x, True)
    assert none is None and again[0] == value and (again[1] == lam).all()
    m = y * (X.astype(float) @ x[:-1] + x[-1])
    assert value == pytest.approx(data.weight @ np.logaddexp(0.0, -2.0 * m), rel=1e-10)
    Z = np.column_stack([X, np.ones(len(y))]).astype(float)
    np.testing.assert_allclose(gradient, -Z.T @ (y * lam), rtol=1e-8, atol=1e-6)
    p = 1.0 / (1.0 + np.exp(2.0 * m))
    curvature = 4.0 * data.weight * p * (1.0 - p)
    np.testing.assert_allclose(H, (Z.T * curvature) @ Z, rtol=1e-4, atol=1e-2)
    moved = linear.loss_pass(x + 0.1)[0]  # another array is another pass
    assert moved != value


def test_a_part_has_its_rows_and_weights(rng):
    X, y = problem(rng, 200, 3)
    linear = LinearProblem(X, binary_problem(y, PRIOR, "flat", None))
    pick = np.sort(rng.permutation(200)[:50])
    x = rng.normal(size=4)
    alone = LinearProblem(
        X[pick], binary_problem(y[pick], PRIOR, "flat", np.full(50, 4.0))
    )
    for a, b in zip(
        linear.part(pick, 4.0).loss_pass(x), alone.loss_pass(x), strict=True
    ):
        np.testing.assert_array_equal(a, b)
