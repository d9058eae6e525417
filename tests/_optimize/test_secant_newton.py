"""Damped Newton steps with secants: optima, large weights, equalities, callbacks."""

import numpy as np
import pytest
from oracles.tree_problems import categories

from maxent._optimize.block_sum import BlockSum
from maxent._optimize.interior_point import interior_point
from maxent._optimize.maps import Diagonal
from maxent._optimize.rows import Rows
from maxent._optimize.secant_newton import secant_newton
from maxent.discrimination import LogisticMargin, SpanningTrees


def problem(rng, C, level, n=40):
    """Two classes of random trees whose rows overlap; their labels as the equality."""
    X, y = categories(rng, n, 3)
    sizes, y = [3, 3, 3], np.where(y > 0, 1.0, -1.0)
    blocks = [
        SpanningTrees.fit(X[y == k], n_categories=sizes).block(X) for k in (1.0, -1.0)
    ]
    rows = Rows.of(LogisticMargin(C, 0.0), np.ones(n), np.full(n, level))
    return rows, BlockSum(blocks, [Diagonal(y), Diagonal(-y)]), y[:, None]


@pytest.mark.parametrize("biased", [False, True])
def test_it_agrees_with_the_interior_point(biased, rng):
    rows, R, E = problem(rng, 2.0, 1.0)
    E = E if biased else None
    found = secant_newton(rows, R, E, tol=1e-10, max_iter=100)
    want = interior_point(rows, R, E, tol=1e-10, max_iter=100)
    assert found.converged and want.converged
    # each objective is below the optimum, by its gap at most
    assert abs(found.objective - want.objective) <= max(found.gap, want.gap) + 1e-9
    if biased:
        assert abs(E[:, 0] @ found.lam) <= 1e-12 * np.abs(found.lam).sum()


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("C", [30.0, 300.0])
def test_large_weights_are_reached(C, biased, rng):
    rows, R, E = problem(rng, C, 4.0)
    seen = []
    found = secant_newton(
        *(rows, R, E if biased else None),
        tol=1e-8,
        max_iter=500,
        callback=lambda *step: seen.append(step),
    )
    assert found.converged and 0 <= found.gap <= 1e-8 * (1 + found.objective)
    assert (found.lam > 0).all() and (found.lam < rows.upper).all()
    assert seen == found.history and found.n_iter <= 500


def test_few_steps_end_with_an_honest_gap(rng):
    rows, R, E = problem(rng, 100.0, 4.0)
    found = secant_newton(rows, R, E, tol=1e-8, max_iter=3)
    assert not found.converged and found.n_iter <= 3
    assert found.gap > 1e-8 * (1 + found.objective)


def test_a_start_at_the_optimum_is_kept(rng):
    rows, R, E = problem(rng, 30.0, 4.0)
    cold = secant_newton(rows, R, E, tol=1e-9, max_iter=200)
    warm = secant_newton(rows, R, E, tol=1e-8, max_iter=200, init=cold.lam)
    assert warm.converged and warm.n_iter <= 2 < cold.n_iter
    assert warm.objective == pytest.approx(cold.objective, rel=1e-7)


@pytest.mark.parametrize("C", [1.0, 40.0])
def test_starts_outside_the_domain_are_moved_inside(C, rng, monkeypatch):
    """Where multipliers may be small only: at first, and when they are doubled."""
    rows, R, E = problem(rng, C, 4.0)
    want = secant_newton(rows, R, E, tol=1e-9, max_iter=300)
    least = 1e-3 * rows.start_inside().sum()
    original, most = R.value_and_margins, {"sum": least}

    def bounded(lam):
        inside = lam.sum() < max(least, most["sum"])
        most["sum"] = 1.7 * lam.sum() if inside else most["sum"]
        return original(lam) if inside else (np.inf, np.zeros_like(lam))

    monkeypatch.setattr(R, "value_and_margins", bounded)
    found = secant_newton(rows, R, E, tol=1e-9, max_iter=300)
    assert found.objective > 0.0 and np.isfinite(found.gap)
    assert found.objective <= want.objective + want.gap


def test_the_interior_point_goes_on_where_few_steps_fail(rng, monkeypatch):
    from maxent.discrimination.duals import block_dual

    rows, R, E = problem(rng, 2.0, 1.0)
    monkeypatch.setattr(block_dual, "_MORE_SECANTS", 2)
    seen = []
    options = {"tol": 1e-10, "max_iter": 50, "init": None}
    found = block_dual._secants_and_interior(
        *(rows, R, E), callback=lambda n, *_: seen.append(n), **options
    )
    assert found.converged and found.solver == "interior" and found.n_iter > 2

    assert seen == sorted(seen) and seen[-1] == found.n_iter
    want = interior_point(rows, R, E, tol=1e-10, max_iter=100)
    assert found.objective == pytest.approx(want.objective, abs=1e-8)
