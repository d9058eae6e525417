"""The margin problem: general cone programs, LinearSVC, certificates, refusals."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.margin_qp import objective, solve
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from maxent.minentropy import solve_margin_qp
from maxent.minentropy._margin_dual import Groups


def problem(rng, n=30, m=2, d=6, ragged=False):
    """Rows with a common direction, some of which cannot be met."""
    size = rng.integers(1, m + 2, size=n) if ragged else np.full(n, m)
    of_row = np.repeat(np.arange(n), size)
    D = rng.standard_normal((len(of_row), d)) + 0.4 * rng.standard_normal(d)
    return D, 0.5 + rng.random(len(of_row)), 0.1 + rng.random(n), of_row


@pytest.mark.parametrize("m, d", [(1, 6), (3, 6), (1, 80), (3, 200)])
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e2])
def test_agrees_with_a_general_solver(m, d, C, rng):
    D, ell, c, of_row = problem(rng, m=m, d=d)
    w, value = solve(D, ell, C * c, of_row)
    found = solve_margin_qp(D, ell, C * c, groups=of_row)
    assert found.converged
    np.testing.assert_allclose(found.objective, value, rtol=1e-6)
    # strong convexity: |w - w*|^2 / 2 <= gap, of both
    assert np.sum((found.w - w) ** 2) <= 1e-5 * max(value, 1e-6)


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e3, 1e6])
def test_gap_bounds_the_objective(ragged, C, rng):
    D, ell, c, of_row = problem(rng, n=60, m=3, d=8, ragged=ragged)
    c = C * c
    found = solve_margin_qp(D, ell, c, groups=of_row)
    assert 0 <= found.gap <= 1e-8 * found.objective
    np.testing.assert_allclose(
        found.objective, objective(found.w, D, ell, c, of_row), rtol=1e-12
    )
    a = found.dual
    assert (a >= 0).all() and (np.bincount(of_row, a) <= c * (1 + 1e-12)).all()
    for _ in range(5):  # any weights are at least the dual
        other = found.w + 0.1 * rng.standard_normal(8)
        value = objective(other, D, ell, c, of_row)
        assert value >= found.objective - found.gap - 1e-9 * value


def test_large_weights_of_groups_that_no_weights_separate(rng):
    D = rng.standard_normal((2000, 2, 20))
    D[..., 0] += 0.5
    found = solve_margin_qp(D, np.ones((2000, 2)), 1e6)
    assert found.converged and found.gap <= 1e-8 * found.objective


@pytest.mark.parametrize("prox", [1e-3, 1.0, 1e4])
def test_proximal_form(prox, rng):
    D, ell, c, of_row = problem(rng, m=2)
    center = rng.standard_normal(6)
    w, value = solve(D, ell, c, of_row, center, prox)
    found = solve_margin_qp(
        D, ell, c, groups=of_row, prox_center=center, prox=prox, tol=1e-9
    )
    np.testing.assert_allclose(found.objective, value, rtol=1e-6)
    np.testing.assert_allclose(found.w, w, atol=1e-4)


@pytest.mark.parametrize("radius", [1e-3, 0.1, 0.5, 100.0])
def test_ball_form(radius, rng):
    D, ell, c, of_row = problem(rng, m=2)
    center = rng.standard_normal(6)
    _, value = solve(D, ell, c, of_row, center, radius=radius)
    found = solve_margin_qp(D, ell, c, groups=of_row, prox_center=center, radius=radius)
    assert np.linalg.norm(found.w - center) <= radius * (1 + 1e-12)
    np.testing.assert_allclose(found.objective, value, rtol=1e-6)
    assert 0 <= found.gap <= 1e-8 * found.objective


@pytest.mark.parametrize("sizes", [[1], [1, 1, 1], [3], [1, 4, 1, 1, 2], [2, 1, 5, 1]])
def test_groups_are_reduced_one_by_one(sizes, rng):
    of_row = np.repeat(np.arange(len(sizes)), sizes)
    starts = np.searchsorted(of_row, np.arange(len(sizes)))
    groups = Groups(starts, of_row, np.ones(len(sizes)))
    for x in (rng.standard_normal(len(of_row)), rng.integers(0, 2, len(of_row)) * 1.0):
        parts = [x[of_row == i] for i in range(len(sizes))]
        np.testing.assert_allclose(groups.sum(x), [part.sum() for part in parts])
        assert groups.top(x).tolist() == [max(part.max(), 0.0) for part in parts]
        assert (groups.argmax(x) - starts).tolist() == [part.argmax() for part in parts]
    Z = rng.standard_normal((len(of_row), 3))
    np.testing.assert_allclose(
        groups.sum(Z), [Z[of_row == i].sum(axis=0) for i in range(len(sizes))]
    )


def test_sums_beyond_a_bound_by_rounding_leave_the_gap_nonnegative():
    groups = Groups(np.array([0]), np.zeros(3, dtype=int), np.array([0.3]))
    a = np.full(3, 0.1)
    assert a.sum() > 0.3
    assert groups.gap(a, np.ones(3)) == 0.0


def test_two_classes_are_linear_svc(rng):
    X = rng.standard_normal((80, 5))
    y = np.where(X[:, 0] + rng.standard_normal(80) > 0, 1, -1)
    svc = LinearSVC(
        loss="hinge",
        C=0.7,
        fit_intercept=False,
        tol=1e-6,
        max_iter=1_000_000,
        random_state=0,
    ).fit(X, y)
    found = solve_margin_qp(y[:, None] * X, np.ones(80), 0.7)
    np.testing.assert_allclose(found.w, svc.coef_[0], atol=2e-4)


def test_more_classes_are_crammer_and_singer(rng):
    X = rng.standard_normal((60, 4))
    y = (X[:, :3] + 0.5 * rng.standard_normal((60, 3))).argmax(axis=1)
    svc = LinearSVC(
        multi_class="crammer_singer",
        C=0.3,
        fit_intercept=False,
        tol=1e-6,  # at a smaller one LIBLINEAR may never end
        max_iter=1_000_000,
        random_state=0,
    ).fit(X, y)
    D, ell = np.zeros((60, 3, 3, 4)), np.ones((60, 3))
    for i, own in enumerate(y):
        for k in range(3):
            D[i, k, own] += X[i]
            D[i, k, k] -= X[i]
        ell[i, own] = -np.inf
    found = solve_margin_qp(D.reshape(60, 3, 12), ell, 0.3)
    np.testing.assert_allclose(found.w.reshape(3, 4), svc.coef_, atol=2e-4)


@pytest.mark.parametrize("m", [1, 3])
def test_ascent_on_sparse_rows(m, rng):
    D, ell, c, of_row = problem(rng, m=m, d=40)
    D *= rng.random(D.shape) < 0.2
    exact = solve_margin_qp(D, ell, c, groups=of_row, tol=1e-10)
    for index in (np.int32, np.int64):
        S = sp.csr_array(D)
        S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
        found = solve_margin_qp(S, ell, c, groups=of_row, solver="ascent", tol=1e-6)
        assert found.converged and found.gap <= 1e-6 * found.objective
        np.testing.assert_allclose(found.objective, exact.objective, rtol=2e-6)


def test_rows_left_out_and_samples_without_weight(rng):
    D, ell, c, of_row = problem(rng, n=20, m=2)
    c[3] = 0.0
    ell[of_row == 5] = -np.inf
    found = solve_margin_qp(D, ell, c, groups=of_row)
    keep = (of_row != 3) & (of_row != 5)
    codes = np.unique(of_row[keep], return_inverse=True)[1]
    again = solve_margin_qp(
        D[keep], ell[keep], c[np.unique(of_row[keep])], groups=codes
    )
    np.testing.assert_allclose(found.w, again.w, atol=1e-7)
    assert found.dual.shape == ell.shape and (found.dual[~keep] == 0).all()


def test_margins_that_are_met_already_need_no_weights(rng):
    found = solve_margin_qp(rng.standard_normal((5, 3)), -np.ones(5), 1.0)
    assert (found.w == 0).all() and found.objective == found.gap == 0


def test_features_of_zeros():
    found = solve_margin_qp(np.zeros((4, 3)), np.ones(4), 2.0)
    assert (found.w == 0).all() and found.converged
    np.testing.assert_allclose(found.objective, 8.0)


def test_few_steps_are_reported(rng):
    D, ell, c, of_row = problem(rng)
    with pytest.warns(ConvergenceWarning, match="relative gap .* tol=1e-08 asked"):
        found = solve_margin_qp(D, ell, c, groups=of_row, max_iter=2)
    assert found.status == "max_iter" and found.gap > 1e-8 * found.objective


@pytest.mark.parametrize(
    "change, message",
    [
        ({"c": -1.0}, "entry -1"),
        ({"c": [1.0, 2.0]}, "c has shape"),
        ({"ell": np.ones(4)}, "do not fit"),
        ({"ell": [1.0, np.nan, 1.0]}, "NaN or"),
        ({"D": np.full((3, 2), np.nan)}, "D has entries"),
        ({"D": np.full((3, 2), 1e200)}, "scale D"),
        ({"tol": 0}, "tol=0"),
        ({"prox": -1.0}, "prox=-1.0"),
        ({"radius": 0.0}, "radius=0.0"),
        ({"radius": 1.0, "prox": 1.0}, "cannot both"),
        ({"prox_center": [1.0]}, "prox_center has shape"),
        ({"solver": "smo"}, "solver='smo'"),
        ({"groups": [1, 0, 0]}, "do not decrease"),
        ({"groups": [0, 1]}, "groups has shape"),
        ({"max_iter": 0}, "max_iter=0"),
    ],
)
def test_impossible_input_is_refused(change, message):
    given = {"D": np.ones((3, 2)), "ell": np.ones(3), "c": 1.0, **change}
    D, ell, c = given.pop("D"), given.pop("ell"), given.pop("c")
    with pytest.raises(ValueError, match=message):
        solve_margin_qp(D, ell, c, **given)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("solver", ["interior", "ascent"])
@pytest.mark.parametrize("radius", [None, 0.3, 100.0])  # 100: the solution is inside
def test_a_callback_that_returns_true_stops_the_solution(solver, radius, rng):
    D, calls = rng.normal(size=(200, 5)), []

    def callback(*report):
        calls.append(report)
        return True

    found = solve_margin_qp(
        D, np.ones(200), 1.0, solver=solver, radius=radius, callback=callback
    )
    assert len(calls) == 1 and found.status.value == "stopped"


@pytest.mark.parametrize("radius", [None, 100.0])
def test_the_bound_on_steps_is_told_in_a_ball_too(radius, rng):
    D = rng.normal(size=(200, 5))
    with pytest.warns(ConvergenceWarning, match="status 'max_iter' after 1 iterations"):
        solve_margin_qp(D, np.ones(200), 1.0, radius=radius, max_iter=1)


@pytest.mark.parametrize("far", [1e8, 1e12, 1e16])
@pytest.mark.parametrize("m", [1, 3])
def test_rows_far_from_zero_end_with_a_certificate(m, far, rng):
    D, ell, c, of_row = problem(rng, m=m)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = solve_margin_qp(D + far, ell, c, groups=of_row)
    value = objective(found.w, D + far, ell, c, of_row)
    assert found.objective == pytest.approx(value, rel=1e-12)
    assert found.converged is (found.gap <= 1e-8 * found.objective)
