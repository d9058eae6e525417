"""Interior point on the active rows of large problems with large multipliers."""

import numpy as np
import pytest

from maxent import MEDClassifier
from maxent.discrimination import ExponentialMargin, GaussianMargin, HingeMargin
from maxent.discrimination.duals import _signed_dual
from maxent.discrimination.duals._kkt import ActiveRows
from maxent.discrimination.duals._signed_dual import solve_signed
from maxent.discrimination.duals._signed_interior import solve_active, solve_interior
from maxent.discrimination.duals._signed_problem import binary_problem
from maxent.discrimination.grams.vector_kernels import VectorKernel

MARGINS = pytest.mark.parametrize(
    "margin", [ExponentialMargin(100.0), HingeMargin(), GaussianMargin(2.0)]
)


def overlapping(rng, n=300, share=0.15):
    X = rng.normal(size=(n, 2))
    wrong = rng.random(n) < share
    return X, np.where((X[:, 0] * X[:, 1] > 0) ^ wrong, 1.0, -1.0)


def kernel_times(kernel, a):
    return kernel.apply(np.arange(len(a)), a[:, None])[:, 0]


def short_of(kernel, problem, steps, init=None):
    options = {"tol": 1e-6, "kkt_tol": 1e-6, "max_iter": steps, "init": init}
    return solve_signed(kernel, problem, solver="smo", **options)


@MARGINS
@pytest.mark.parametrize("bias", ["flat", 2.0, None])
def test_from_where_working_sets_stop_to_the_optimum(margin, bias, rng):
    X, y = overlapping(rng)
    kernel = VectorKernel(X, "rbf", gamma=1.0)
    problem = binary_problem(y, margin, bias, np.full(len(y), 10.0))
    start = short_of(kernel, problem, 150)
    assert not start.converged
    options = {"limit": 300, "callback": None}
    found = solve_active(kernel, problem, (1e-6, 1e-6), 300, start, **options)
    whole = solve_interior(kernel, problem, 1e-9, 300)
    assert found.solver == "interior"
    assert found.objective == pytest.approx(whole.objective, rel=2e-6)
    assert 0 <= found.gap <= 1e-6 * (1 + found.objective)
    if not found.converged:
        # A violation of the slopes counts in the gap times the distance of the row from
        # its bound: both may be at the root of the gap, for working sets to settle.
        assert found.kkt_violation <= np.sqrt(1e-6 * (1 + found.objective))
        found = short_of(kernel, problem, 20, found.lam)
    assert found.converged and found.kkt_violation <= 1e-6
    if bias == "flat":
        assert abs(found.lam.sum()) <= 1e-8 * np.abs(found.lam).sum()
    few = solve_active(
        kernel, problem, (1e-6, 1e-6), 300, start, limit=5, callback=None
    )
    assert few is None


def test_rows_that_were_out_of_play_join(rng):
    """The start has forgotten half of the rows."""
    X, y = overlapping(rng)
    margin = ExponentialMargin(20.0)
    kernel = VectorKernel(X, "rbf", gamma=1.0)
    problem = binary_problem(y, margin, None, np.full(len(y), 10.0))
    half = np.arange(150)
    part = solve_interior(kernel.among(half), problem.among(half), 1e-9, 300)
    part.lam = np.append(part.lam, np.zeros(150))
    options = {"limit": 300, "callback": None}
    found = solve_active(kernel, problem, (1e-8, 1e-4), 300, part, **options)
    whole = solve_interior(kernel, problem, 1e-9, 300)
    assert found.converged
    np.testing.assert_allclose(found.lam, whole.lam, atol=1e-3)


@pytest.mark.parametrize("limit", [30, 390])
def test_the_estimator_takes_turns(limit, rng, monkeypatch):
    """Whether few enough rows are active or not, the fit converges."""
    monkeypatch.setattr(_signed_dual, "_INTERIOR_LIMIT", limit)
    X, y = overlapping(rng, 400)
    seen = []

    def counted(*args, **options):
        seen.append(solve_active(*args, **options))
        return seen[-1]

    monkeypatch.setattr(_signed_dual, "solve_active", counted)
    bounded = _signed_dual._Solution._working_sets

    def short(self, before, following):
        most, self.max_iter = self.max_iter, self.max_iter if not following else 200
        result = bounded(self, before, following)
        self.max_iter = most
        return result

    monkeypatch.setattr(_signed_dual._Solution, "_working_sets", short)
    model = MEDClassifier(C=1e3, gamma=2.0).fit(X, y)
    exact = MEDClassifier(C=1e3, gamma=2.0, solver="interior").fit(X, y)
    assert model.converged_ and seen
    assert (seen[-1] is None) == (limit == 30)
    assert model.objective_ == pytest.approx(exact.objective_, rel=2e-3)


def test_multipliers_next_to_a_bound_are_put_on_it(rng):
    X, y = overlapping(rng, 120)
    kernel = VectorKernel(X, "rbf", gamma=1.0)
    problem = binary_problem(y, HingeMargin(), "flat", np.full(len(y), 10.0))
    found = solve_interior(kernel, problem, 1e-13, 300)
    rows = ActiveRows(problem, 120)
    f = kernel_times(kernel, found.lam)
    optimum = rows.settled(found.lam, f, found.bias, 1e-6, 1e-3)
    f = kernel_times(kernel, optimum)
    idle = np.flatnonzero(optimum == 0)
    full = np.flatnonzero(np.abs(optimum) == 10.0)
    assert len(idle) > 20 and len(full) > 20
    near = optimum.copy()
    near[idle] += 1e-9 * y[idle]
    near[full] *= 1 - 1e-9
    assert rows.max_violation(near, f, found.bias)[0] > 0.1
    again = rows.settled(near, f, found.bias, 1e-6, 1e-5)
    assert not again[idle].any()
    np.testing.assert_allclose(np.abs(again[full]), 10.0, rtol=1e-12)
    assert rows.max_violation(again, f, found.bias)[0] < 1e-5
    unmoved = rows.settled(near, f, found.bias, 1e-6, 0.0)
    np.testing.assert_allclose(unmoved, near, rtol=1e-8)
    # rows that the bound is far from stay
    inside = (optimum != 0) & (np.abs(optimum) < 10.0)
    np.testing.assert_allclose(again[inside], optimum[inside], atol=1e-6)


def test_working_sets_go_on_where_an_interior_point_would_take_longer(rng, monkeypatch):
    """A noisy checkerboard: 200,000 steps take a tenth of the time of the other."""
    monkeypatch.setattr(_signed_dual, "solve_interior", None)
    monkeypatch.setattr(_signed_dual, "solve_active", None)
    X = rng.uniform(0.0, 4.0, (1000, 2))
    y = np.floor(X).sum(axis=1) % 2 == (rng.random(1000) < 0.1)
    model = MEDClassifier(kernel="rbf", margin="hinge", C=1e3).fit(X, y)
    assert model.n_iter_ > 50_000
    assert model.duality_gap_ <= 1e-3 * (1 + model.objective_)


def test_few_of_many_rows_are_left_to_an_interior_point_in_time():
    for n in (10_000, 30_000):
        assert _signed_dual.patience(n, 4000) < 5_000_000


def test_working_sets_go_on_from_an_interior_point(rng, monkeypatch):
    """Single precision cannot reach it, the interior point alone leaves violations."""
    X, y = overlapping(rng, 400, 0.3)
    kernel = VectorKernel(X, "rbf", gamma=0.5)
    problem = binary_problem(y, HingeMargin(), "flat", np.full(len(y), 1e5))
    monkeypatch.setattr(_signed_dual, "patience", lambda n, limit: 500)
    options = {"tol": 1e-4, "kkt_tol": 1e-3, "max_iter": 10_000_000}
    result = solve_signed(kernel, problem, **options)
    assert result.converged
    whole = solve_interior(kernel, problem, 1e-9, 300)
    assert result.objective == pytest.approx(whole.objective, rel=2e-4)
