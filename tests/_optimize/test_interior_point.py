"""Pieces of the interior point: linear algebra, feasibility, step lengths."""

import numpy as np
import pytest
from problems import PRIORS, by_name, rbf, two_classes

from maxent._optimize.certificate import certify, repair_equality
from maxent._optimize.interior_point import interior_point
from maxent._optimize.newton_system import NewtonSystem, longest_step
from maxent._optimize.quadratics import DenseQuadratic, LowRankQuadratic
from maxent._optimize.rows import Rows
from maxent._support.linalg import blocked_cholesky
from maxent._support.results import Status
from maxent.discrimination import ExponentialMargin, FixedMargin, GaussianMargin


def positive_definite(rng, n):
    A = rng.normal(size=(n, n)) / np.sqrt(n)
    return A @ A.T + np.eye(n)


# around the size of a block
@pytest.mark.parametrize("n", [1, 2, 511, 512, 513, 1100])
def test_cholesky_by_blocks_is_that_of_the_whole(n, rng):
    A = positive_definite(rng, n)
    only_lower = np.where(np.tri(n, dtype=bool), A, np.nan)
    np.testing.assert_allclose(
        np.tril(blocked_cholesky(only_lower)), np.linalg.cholesky(A), atol=1e-12
    )


def test_cholesky_refuses_a_later_block_that_is_indefinite(rng):
    A = positive_definite(rng, 600)
    A[590, 590] = -1.0
    with pytest.raises(np.linalg.LinAlgError):
        blocked_cholesky(A)


# wide, tall below the size where the dense factor wins, and Woodbury's identity
@pytest.mark.parametrize(("n", "r"), [(40, 60), (40, 3), (400, 3), (400, 399)])
@pytest.mark.parametrize("columns", [None, 2])
def test_low_rank_systems_are_the_dense_ones(n, r, columns, rng):
    Z = rng.normal(size=(n, r)) / np.sqrt(r)
    diagonal = rng.uniform(0.1, 10.0, n)
    rhs = rng.normal(size=n if columns is None else (n, columns))
    low, dense = LowRankQuadratic(Z), DenseQuadratic(Z @ Z.T)
    lam = rng.random(n)
    expected = np.linalg.solve(Z @ Z.T + np.diag(diagonal), rhs)
    for R in (low, dense):
        np.testing.assert_allclose(R.solver(lam, diagonal)(rhs), expected, atol=1e-9)
    for a, b in zip(low.value_and_margins(lam), dense.value_and_margins(lam)):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    assert low.mean_diagonal() == pytest.approx(dense.mean_diagonal())
    for share in (0.3, 0.8):  # of most rows nothing is copied
        index = np.flatnonzero(rng.random(n) < share)
        part = low.restricted(index, lam).solver(lam[index], diagonal[index])
        A = (Z @ Z.T + np.diag(diagonal))[np.ix_(index, index)]
        np.testing.assert_allclose(
            part(rhs[index]), np.linalg.solve(A, rhs[index]), atol=1e-9
        )


def test_what_is_remembered_of_a_point_is_left_at_the_next(rng):
    Z, one, other = rng.normal(size=(30, 4)), rng.random(30), rng.random(30)
    R = LowRankQuadratic(Z)
    for lam in (one, one, other, one):
        value, margins = R.value_and_margins(lam)
        assert value == pytest.approx(0.5 * np.square(Z.T @ lam).sum(), rel=1e-12)
        np.testing.assert_allclose(margins, Z @ (Z.T @ lam), rtol=1e-12)
        np.testing.assert_allclose(R.along(other), Z.T @ other, rtol=1e-12)
    nothing = LowRankQuadratic(np.empty((0, 3))).value_and_margins(np.empty(0))
    assert nothing[0] == 0.0 and not len(nothing[1])
    with pytest.raises(ValueError, match="read-only"):
        margins *= 0.0


@pytest.mark.parametrize("k", [0, 1, 2])
def test_the_bordered_system_is_solved_for_one_right_side_after_the_other(k, rng):
    n = 20
    A = positive_definite(rng, n)
    E = rng.normal(size=(n, k)) if k else None
    solve = NewtonSystem(lambda x: np.linalg.solve(A, x)).bordered(E)
    for _ in range(2):
        rhs, lack = rng.normal(size=n), rng.normal(size=k)
        step, db = solve(rhs, lack)
        if k:
            np.testing.assert_allclose(A @ step + E @ db, rhs, atol=1e-10)
            np.testing.assert_allclose(E.T @ step, lack, atol=1e-10)
        else:
            assert db is None
            np.testing.assert_allclose(A @ step, rhs, atol=1e-10)


def test_longest_step_ends_at_the_first_side_that_is_met():
    x, bound = np.array([1.0, 2.0]), np.array([4.0, np.inf])
    assert longest_step(x, np.array([-0.5, 1.0])) == 1.0
    assert longest_step(x, np.array([-2.0, -8.0])) == 0.25
    assert longest_step(x, np.array([6.0, 9.0]), bound) == 0.5
    assert longest_step(x, np.array([6.0, -20.0]), bound) == 0.1
    assert longest_step(x, np.zeros(2), bound) == 1.0


def test_longest_step_from_an_end_goes_inwards_only():
    x, bound = np.array([0.0, 4.0]), np.array([4.0, 4.0])
    assert longest_step(x, np.array([0.0, 0.0]), bound) == 1.0
    assert longest_step(x, np.array([8.0, -1.0]), bound) == 0.5
    assert longest_step(x, np.array([-1e-9, 0.0]), bound) == 0.0
    assert longest_step(x, np.array([0.0, 1e-9]), bound) == 0.0
    assert longest_step(np.zeros(0), np.zeros(0)) == 1.0


# ------------------------------------------------------------- the equality


def missed(lam, E):
    return np.abs(E.T @ lam).max()


@pytest.mark.parametrize("top", [3.0, np.inf])
@pytest.mark.parametrize("miss", [0.0, 1e-9, 1e-3, 0.5])
def test_one_equality_is_always_met_within_the_domain(top, miss, rng):
    n = 30
    sign = np.where(np.arange(n) % 2, 1.0, -1.0)
    upper = np.full(n, top) if np.isinf(top) else rng.uniform(0.5, top, n)
    lam = np.minimum(upper, 2.0) * rng.random(n)
    lam[:6] = 0.0
    lam[6:10] = np.minimum(upper, 2.0)[6:10]  # at the top, if there is one
    E = sign[:, None]
    lam[sign > 0] *= (lam @ (sign < 0)) / (lam @ (sign > 0))  # balanced
    lam = np.minimum(lam, upper)
    lam[sign > 0] *= 1.0 - miss
    fixed = repair_equality(lam, upper, E)
    assert missed(fixed, E) <= 1e-13 * fixed.sum()
    assert (fixed >= 0).all() and (fixed <= upper).all()
    assert (fixed[lam == 0] == 0).all()
    # moved by no more than the correction needs
    assert np.abs(fixed - lam).sum() <= 4 * np.abs(lam @ sign) + 1e-12


@pytest.mark.parametrize("heavy", [1.0, -1.0])
def test_an_equality_that_is_far_off_scales_the_heavier_side_down(heavy):
    E = heavy * np.array([[1.0], [1.0], [-1.0]])
    lam, upper = np.array([0.9, 0.9, 0.3]), np.ones(3)
    fixed = repair_equality(lam, upper, E)
    np.testing.assert_allclose(fixed, [0.15, 0.15, 0.3])
    # with one side empty nothing else is feasible
    assert (repair_equality(np.array([0.9, 0.9, 0.0]), upper, E) == 0).all()


def test_several_equalities_are_met_or_refused(rng):
    n = 40
    E = rng.normal(size=(n, 2))
    lam = 1.0 + rng.random(n)
    lam -= E @ np.linalg.lstsq(E, lam, rcond=None)[0]
    lam, upper = lam - lam.min() + 0.1, np.full(n, 50.0)
    E -= np.outer(lam, E.T @ lam) / (lam @ lam)  # now lam is feasible
    near = lam * (1 + 1e-6 * rng.normal(size=n))
    fixed = repair_equality(near, upper, E)
    assert missed(fixed, E) <= 1e-12
    np.testing.assert_allclose(fixed, near, rtol=1e-4)
    assert repair_equality(np.where(E[:, 0] > 0, lam, 0.0), upper, E) is None
    assert repair_equality(lam, upper, None) is lam


# ------------------------------------------------------------- the whole


# the sharp one is where finishing by Newton's method fails if it is tried too early
@pytest.mark.parametrize(
    ("margin", "weight"),
    [*((m, 1.0) for m in PRIORS), (ExponentialMargin(500.0), 100.0)],
    ids=by_name,
)
@pytest.mark.parametrize("flat", [True, False], ids=["flat", "no bias"])
def test_the_result_is_the_best_point_met_wherever_it_stops(margin, weight, flat, rng):
    for _ in range(3 if weight > 1 else 1):
        X, y = two_classes(rng, 40, 3)
        R = DenseQuadratic(rbf(X) * y[:, None] * y)
        level, rate = np.full(40, margin.level), np.full(40, margin.rate)
        rows = Rows(margin.unit_potential, level, rate, np.full(40, weight))
        E = y[:, None] if flat else None
        for steps in range(1, 20):
            r = interior_point(rows, R, E, tol=1e-12, max_iter=steps)
            best = min(gap for _, _, gap in r.history)
            # setting small multipliers to zero may cost as much again, not more
            assert r.gap <= 2 * best + 1e-14 * (1 + abs(r.objective))
            J, gap, *_ = certify(rows, R, r.lam, E, r.bias)
            assert (r.objective, r.gap) == pytest.approx((J, gap), rel=1e-9, abs=1e-14)
            assert (r.lam >= 0).all()
            assert (r.lam <= rows.upper).all()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_an_unbounded_dual_is_told_early(scale):
    # fixed margins on labels in turn along a line, which no direction separates
    x, y, one = np.arange(4.0), np.array([1.0, -1.0, 1.0, -1.0]), np.ones(4)
    R = DenseQuadratic(scale * np.outer(x * y, x * y))
    r = interior_point(
        Rows(FixedMargin().unit_potential, one, one, one),
        R,
        None,
        tol=1e-6,
        max_iter=500,
    )
    # or rounding ends it first
    assert r.status in (Status.UNBOUNDED, Status.STALLED)
    assert r.n_iter < 100
    assert r.gap == np.inf


def test_kernels_that_all_but_vanish(rng):
    """The start is far beyond the answer, and a whole step back ends at zero."""
    n, q, rate = 10, np.full(10, 500.0), 13.0
    margin = GaussianMargin(rate)
    rows = Rows(margin.unit_potential, q, np.full(n, rate), np.ones(n))
    Q = 1e-35 * positive_definite(rng, n)
    with np.errstate(divide="raise", invalid="raise"):
        found = interior_point(rows, DenseQuadratic(Q), None, tol=1e-8, max_iter=200)
    assert found.converged
    # Q aside, every row has its own largest q lam + g, which is its loss at q
    assert found.objective == pytest.approx(rows.loss(q)[0], rel=1e-6)
