"""Pairs of classes in compiled code: small machines, and the votes of all."""

import numpy as np
import pytest
from maxent._core.machines.class_pairs import solve_against_later
from maxent._core.machines.pair_votes import pair_votes

from maxent.discrimination._one_vs_one import pairs_of
from maxent.discrimination.duals._short_pairs import ShortPairs
from maxent.discrimination.duals._signed_dual import solve_signed
from maxent.discrimination.duals._signed_problem import binary_problem
from maxent.discrimination.grams.vector_kernels import VectorKernel
from maxent.discrimination.margins.priors import (
    ErlangMargin,
    ExponentialMargin,
    GaussianMargin,
    LaplaceMargin,
)

MARGINS = [
    ExponentialMargin(10.0),
    ErlangMargin(rate=10.0, shape=2.0),
    LaplaceMargin(10.0),
    GaussianMargin(1.0),
]


@pytest.mark.parametrize("margin", MARGINS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("threads", [1, 2])
def test_machines_of_pairs_are_those_of_the_general_solver(
    margin, kernel, threads, rng
):
    sizes = np.array([1, 7, 30, 3, 300])
    ends = np.cumsum(sizes)
    X = rng.normal(size=(ends[-1], 4)) + np.repeat(rng.normal(size=(5, 4)), sizes, 0)
    weight = rng.uniform(0.2, 3.0, size=len(X)) * margin.unit_weight(2.0)
    values = VectorKernel(X, kernel, gamma=0.3)
    rows = binary_problem(np.ones(len(X)), margin, "flat", weight)
    assert ShortPairs.serves(values, ends, rows, 1e-4, 500.0)
    short = ShortPairs(values, ends, rows, 1e-4, 10**6, threads)
    lam, solved = np.zeros((4, len(X))), 0
    for i in range(4):
        found = short.against_later(i, lam)
        for j, (done, bias, objective, gap, violation, steps, used) in enumerate(
            found, start=i + 1
        ):
            one, other = (np.arange(ends[c] - sizes[c], ends[c]) for c in (i, j))
            if not done:
                assert sizes[i] + sizes[j] > 256  # tests have no harder ones
                continue
            solved += 1
            both = np.r_[one, other]
            y = np.repeat([-1.0, 1.0], [len(one), len(other)])
            problem = binary_problem(y, margin, "flat", weight[both])
            exact = solve_signed(
                values.among(both), problem, tol=1e-9, max_iter=1000, solver="interior"
            )
            size = 1 + exact.objective
            assert objective <= exact.objective + 1e-8 * size
            assert exact.objective <= objective + gap + 1e-8 * size
            assert 0 <= gap <= 1e-4 * size
            assert violation <= 1e-4
            a = np.r_[lam[j - 1, one], lam[i, other]]
            assert (y * a >= 0).all()
            assert abs(a.sum()) <= 1e-12 * np.abs(a).sum()
            assert used == (a != 0).sum()
            assert steps > 0
            # the machine of these multipliers, in double precision, by definition
            K = values.block(both, both)
            d = margin.level - y * (K @ a + bias)
            loss = problem.weight @ margin.unit_potential.loss(margin.rate * d)
            primal = loss + 0.5 * a @ K @ a
            assert primal == pytest.approx(objective + gap, rel=1e-9, abs=1e-9)
    assert solved == 6


def test_steps_that_do_not_suffice_leave_a_pair_unsolved(rng):
    X = rng.normal(size=(20, 3))
    margin = ExponentialMargin(10.0)
    rows = binary_problem(np.ones(20), margin, "flat", np.ones(20))
    ends = np.array([10, 20])
    lam = np.zeros((1, 20))
    found = ShortPairs(VectorKernel(X), ends, rows, 1e-6, 2, 1).against_later(0, lam)
    assert not found.any()
    assert not lam.any()


def test_pairs_that_do_not_fit_their_arrays_are_refused(rng):
    first = np.array([0, 2, 5], dtype=np.intp)
    spec = ExponentialMargin(10.0).unit_potential.core_spec
    good = {
        "spec": spec,
        "i": 0,
        "first": first,
        "within": np.ones(13),
        "place": np.array([0, 4], dtype=np.intp),
        "between": np.ones((2, 3)),
        "level": 1.0,
        "rate": 10.0,
        "weight": np.ones(5),
        "tol": 1e-3,
        "kkt_tol": 1e-3,
        "max_iter": 10,
        "most": 100,
        "lam": np.zeros((1, 5)),
        "found": np.zeros((1, 7)),
    }
    wrong = {
        "i": 1,
        "within": np.ones(12),
        "place": np.array([0, 5], dtype=np.intp),
        "between": np.ones((2, 4)),
        "weight": np.ones(4),
        "lam": np.zeros((2, 5)),
        "found": np.zeros((1, 6)),
    }
    for name, value in wrong.items():
        with pytest.raises(ValueError, match="do not fit"):
            solve_against_later(**good | {name: value})


@pytest.mark.parametrize("n", [0, 1, 31, 33, 200])
@pytest.mark.parametrize("threads", [1, 2])
def test_votes_are_those_of_the_definition(n, threads, rng):
    m, sizes = 5, [2, 0, 3, 1, 4]
    first = np.append(0, np.cumsum(sizes)).astype(np.intp)
    coef, bias = rng.normal(size=(4, 10)), rng.normal(size=10)
    values = rng.normal(size=(n, 10))
    scores = np.empty((n, 10))
    for k, (i, j) in enumerate(pairs_of(m)):
        one, other = slice(*first[i : i + 2]), slice(*first[j : j + 2])
        scores[:, k] = bias[k] + values[:, one] @ coef[j - 1, one]
        scores[:, k] += values[:, other] @ coef[i, other]
    votes, sums = np.zeros((n, m)), np.zeros((n, m))
    for k, (i, j) in enumerate(pairs_of(m)):
        votes[:, j] += scores[:, k] > 0
        votes[:, i] += scores[:, k] <= 0
        sums[:, j] += scores[:, k]
        sums[:, i] -= scores[:, k]
    expected = votes + sums / (3 * (np.abs(sums) + 1))
    found, own = np.empty((n, m)), np.empty((n, 10))
    assert pair_votes(values, first, coef, bias, found, own, threads)
    np.testing.assert_allclose(own, scores, atol=1e-13)
    np.testing.assert_allclose(found, expected, atol=1e-13)
    # scores that are at hand, and rows of another layout
    nothing = np.zeros(m + 1, dtype=np.intp)
    given = np.asfortranarray(scores - bias)
    assert pair_votes(given, nothing, None, bias, found, None, threads)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_scores_that_are_not_finite_are_told(rng):
    first, bias = np.array([0, 1, 2, 3], dtype=np.intp), np.zeros(3)
    values, votes = rng.normal(size=(40, 3)), np.empty((40, 3))
    assert pair_votes(values, first, np.ones((2, 3)), bias, votes)
    for bad in (np.inf, -np.inf, np.nan):
        values[37, 1] = bad
        assert not pair_votes(values, first, np.ones((2, 3)), bias, votes)


def test_votes_of_arrays_that_do_not_fit_are_refused():
    first = np.array([0, 1, 2, 3], dtype=np.intp)
    good = np.ones((4, 3)), first, np.ones((2, 3)), np.zeros(3), np.empty((4, 3))
    for k, wrong in [
        (0, np.ones((4, 2))),
        (1, first[::-1].copy()),
        (1, first + 1),
        (2, np.ones((3, 3))),
        (3, np.zeros(2)),
        (4, np.empty((3, 3))),
    ]:
        with pytest.raises(ValueError, match="do not fit"):
            pair_votes(*good[:k], wrong, *good[k + 1 :])
