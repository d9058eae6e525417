"""Working-set steps: optimality recomputed in double precision, at every size."""

import numpy as np
import pytest
from maxent._core.machines.smo import compress, padded, smo
from problems import PRIORS, by_name, two_classes
from scipy.spatial.distance import cdist

from maxent.discrimination import (
    ErlangMargin,
    ExponentialMargin,
    GaussianMargin,
    HingeMargin,
    LaplaceMargin,
    LogisticMargin,
    UniformExponentialMargin,
)

CONVERGED, STEPS_USED, NONFINITE = 0, 1, 4
POSITIVE, NEGATIVE, BOTH = 1, 2, 3
TWO_SIDED = [  # no charge near zero: a tube
    ExponentialMargin(5.0, -0.1),
    LaplaceMargin(5.0, 0.0),
    GaussianMargin(2.0, -0.1),
    HingeMargin(-0.1),
    UniformExponentialMargin(0.3, 5.0),
]
# around the vector width and the chunks of the sweeps
EDGES = [2, 3, 15, 16, 17, 31, 32, 33, 511, 512, 513, 1024, 1025]


class Problem:
    """A signed dual held in the solver's own terms."""

    def __init__(self, rng, n, margin, sides=None, weight=None, d=3):
        X, y = two_classes(rng, n, d, noise=1.0)
        self.K = np.zeros((n, padded(n)), dtype=np.float32)
        self.K[:, :n] = np.exp(-0.9 / d * cdist(X, X, "sqeuclidean"))
        self.n, self.margin = n, margin
        both = sides == BOTH
        self.sides = np.full(n, BOTH) if both else np.where(y > 0, POSITIVE, NEGATIVE)
        self.sides = self.sides.astype(np.int8)
        self.target = np.sin(X[:, 0]) + 0.3 * rng.normal(size=n) if both else 0.0 * y
        self.weight = np.ones(n) if weight is None else weight
        self.a = np.zeros(n)
        if margin.name == "logistic":  # infinite slope at zero: start inside
            share = 0.1 * min((y > 0).sum(), (y < 0).sum())
            self.a = y * share / np.where(y > 0, (y > 0).sum(), (y < 0).sum())

    def residual(self):
        K = self.K[:, : self.n].astype(float)
        return self.target - K @ self.a

    def solve(self, tol=1e-4, max_iter=10**6, bias=0.0):
        rate, level = self.margin.rate, self.margin.level
        self.left = self.residual() - bias  # changed in place
        return smo(
            self.margin.core_spec,
            self.K,
            self.a,
            self.left,
            np.full(self.n, level),
            np.full(self.n, rate),
            self.weight,
            self.sides,
            tol,
            max_iter,
        )

    def optimality_gap(self):
        """Largest up derivative minus smallest down derivative, in double precision."""
        slope = self.margin.mean(np.abs(self.a) / self.weight)
        base = self.residual()
        zero = self.a == 0
        full = np.abs(self.a) >= self.margin.upper * self.weight * (1 - 1e-15)
        up = base + np.where(zero, slope, np.sign(self.a) * slope)
        low = base + np.where(zero, -slope, np.sign(self.a) * slope)
        up[(zero & (self.sides == NEGATIVE)) | (full & (self.a > 0))] = -np.inf
        low[(zero & (self.sides == POSITIVE)) | (full & (self.a < 0))] = np.inf
        return up.max() - low.min()

    def sides_of_zero(self):
        """Multipliers with the sign that their row allows, >= 0."""
        return np.where(self.sides == NEGATIVE, -self.a, self.a)

    def objective(self):
        lam = np.abs(self.a)
        phi = self.weight * self.margin.potential(lam / self.weight)
        return (
            self.target @ self.a
            + phi.sum()
            + 0.5 * self.a @ (self.residual() - self.target)
        )


# residuals are updated in single precision for some hundred steps
NOISE = 2e-4


@pytest.mark.parametrize("n", EDGES)
def test_every_size_is_solved(n, rng):
    p = Problem(rng, n, ExponentialMargin(5.0))
    steps, gap, _, status, _ = p.solve()
    assert status == CONVERGED
    assert steps > 0
    assert gap <= 1e-4
    assert p.optimality_gap() <= 1e-4 + NOISE


@pytest.mark.parametrize("margin", PRIORS, ids=by_name)
def test_every_prior_is_solved_and_the_sum_is_kept(margin, rng):
    p = Problem(rng, 80, margin, weight=rng.uniform(0.5, 2.0, 80))
    assert p.solve()[3] == CONVERGED
    assert p.optimality_gap() <= 1e-4 + NOISE
    assert abs(p.a.sum()) <= 1e-12
    assert (p.a[p.sides == POSITIVE] >= 0).all()
    assert (p.a[p.sides == NEGATIVE] <= 0).all()


@pytest.mark.parametrize("margin", PRIORS, ids=by_name)
def test_objective_never_falls(margin, rng):
    p = Problem(rng, 60, margin)
    values = [p.objective()]
    for _ in range(60):
        p.solve(max_iter=1)
        values.append(p.objective())
    assert np.diff(values).min() >= -1e-6 * (1 + abs(values[-1]))
    assert values[-1] > values[0] + 0.1


@pytest.mark.parametrize("margin", TWO_SIDED, ids=by_name)
def test_two_sided_rows_with_a_kink_at_zero(margin, rng):
    p = Problem(rng, 70, margin, BOTH)
    assert p.solve()[3] == CONVERGED
    assert p.optimality_gap() <= 1e-4 + NOISE
    assert abs(p.a.sum()) <= 1e-12
    if margin.prior_mean < 0:
        assert (p.a == 0).any()


@pytest.mark.parametrize(
    ("margin", "sides"),
    [*((m, None) for m in PRIORS), *((m, BOTH) for m in TWO_SIDED)],
    ids=by_name,
)
def test_residuals_come_back_as_those_of_the_multipliers(margin, sides, rng):
    p = Problem(rng, 70, margin, sides)
    before = p.residual()
    p.solve()
    np.testing.assert_allclose(p.left, p.residual(), atol=NOISE)
    assert np.abs(p.left - before).max() > 0.1


# more rows than are left to pairs alone; kernels of many columns favour rounds of
# blocks, those of few columns pairs
MANY, KINDS = 2100, [2, 50]


@pytest.mark.parametrize("d", KINDS)
@pytest.mark.parametrize("n", [2001, 2561])
def test_many_rows_are_solved(n, d, rng):
    p = Problem(rng, n, ExponentialMargin(5.0), weight=rng.uniform(0.5, 2.0, n), d=d)
    _, gap, _, status, _ = p.solve(tol=1e-3)
    assert status == CONVERGED
    assert gap <= 1e-3
    assert p.optimality_gap() <= 1e-3 + NOISE
    assert abs(p.a.sum()) <= 1e-10
    np.testing.assert_allclose(p.left, p.residual(), atol=NOISE)


@pytest.mark.parametrize("margin", TWO_SIDED, ids=by_name)
def test_many_two_sided_rows(margin, rng):
    p = Problem(rng, MANY, margin, BOTH, d=20)
    assert p.solve(tol=1e-2)[3] == CONVERGED
    assert p.optimality_gap() <= 1e-2 + 10 * NOISE
    np.testing.assert_allclose(p.left, p.residual(), atol=10 * NOISE)


@pytest.mark.parametrize("d", KINDS)
def test_objective_of_many_rows_never_falls(d, rng):
    p = Problem(rng, MANY, ExponentialMargin(5.0), d=d)
    values, middle = [p.objective()], 0.0
    for _ in range(12):
        steps, _, middle, *_ = p.solve(max_iter=150, bias=middle)
        assert steps <= 150
        values.append(p.objective())
    assert np.diff(values).min() >= -1e-6 * (1 + abs(values[-1]))
    assert values[-1] > values[0] + 1.0


def test_many_nonfinite_kernel_values_are_reported(rng):
    p = Problem(rng, MANY, ExponentialMargin(5.0), d=50)
    p.K[3, 5] = p.K[5, 3] = np.nan
    p.a[[3, 5]] = 0.1 * np.where(p.sides[[3, 5]] == POSITIVE, 1, -1)
    assert p.solve()[3] != CONVERGED


def test_restart_from_the_solution_has_nothing_to_do(rng):
    p = Problem(rng, 100, ExponentialMargin(5.0))
    p.solve()
    before = p.a.copy()
    steps, *_ = p.solve(tol=1e-3)
    assert steps == 0
    assert (p.a == before).all()


def test_steps_are_bounded(rng):
    p = Problem(rng, 100, ExponentialMargin(5.0))
    steps, gap, _, status, _ = p.solve(max_iter=7)
    assert steps == 7
    assert status != CONVERGED
    assert gap > 1e-4
    assert np.count_nonzero(p.a) <= 14


def test_middle_of_the_gap_is_the_bias(rng):
    p = Problem(rng, 120, ExponentialMargin(5.0))
    _, _, middle, *_ = p.solve(tol=1e-5)
    inside = p.a != 0
    asked = np.sign(p.a) * p.margin.mean(np.abs(p.a)) + p.residual()
    np.testing.assert_allclose(asked[inside], middle, atol=1e-3)


def test_duplicated_contrary_rows_are_solved(rng):
    p = Problem(rng, 40, ExponentialMargin(5.0))
    p.K[:20, :40] = p.K[20:40, :40]
    p.K[:, :20] = p.K[:, 20:40]
    p.sides[:20] = 3 - p.sides[20:]
    assert p.solve()[3] == CONVERGED
    assert p.optimality_gap() <= 1e-4 + NOISE


def test_fixed_margins_on_contrary_duplicates_are_unbounded(rng):
    from maxent.discrimination import FixedMargin

    p = Problem(rng, 16, FixedMargin())
    p.K[:8, :16] = p.K[8:, :16]
    p.K[:, :8] = p.K[:, 8:16]
    p.sides[:8] = 3 - p.sides[8:]
    p.solve()
    assert np.abs(p.a).max() > 1e6


def test_nonfinite_kernel_values_are_reported(rng):
    p = Problem(rng, 20, ExponentialMargin(5.0))
    p.K[3, 5] = p.K[5, 3] = np.nan
    p.a[[3, 5]] = 0.1 * np.where(p.sides[[3, 5]] == POSITIVE, 1, -1)
    assert p.solve()[3] != CONVERGED


@pytest.mark.parametrize("n", [17, 20])
@pytest.mark.parametrize("size", [1e29, 1e31, 1e38])
def test_residuals_beyond_all_bounds_are_reported(n, size, rng):
    """Above 1e30 the padding of the sweeps would be chosen for a partner."""
    p = Problem(rng, n, GaussianMargin(2.0))
    p.target = size * np.sign(rng.normal(size=n))
    # a pair that is drawn away from zero, where all others may be at their optimum
    p.target[[p.sides.argmin(), p.sides.argmax()]] = size, -size
    steps, _, _, status, _ = p.solve(max_iter=1000)
    assert status != CONVERGED
    if size > 1e30:
        assert status == NONFINITE and steps == 0


@pytest.mark.parametrize(
    "margin", [ExponentialMargin(9.0), LaplaceMargin(9.0), HingeMargin()], ids=by_name
)
def test_multipliers_stay_inside_their_domain(margin):
    # many rows near their bound, with weights for which sums up to it round beyond it
    outside = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        p = Problem(rng, 100, margin, weight=rng.uniform(2e-3, 2e-2, 100))
        p.solve(tol=1e-5)
        outside += not np.isfinite(p.objective())
    assert outside == 0


@pytest.mark.parametrize(
    "margin",
    [
        ExponentialMargin(9.0, 1e16),
        LaplaceMargin(9.0, 1e16),
        ErlangMargin(2, 9.0, 1e16),
    ],
    ids=by_name,
)
def test_multipliers_that_are_pulled_to_an_open_end_stay_short_of_it(margin, rng):
    # the optimum rounds to the end itself, where the potential is -inf
    p = Problem(rng, 100, margin, weight=rng.uniform(2e-3, 2e-2, 100))
    p.solve(tol=1e11)
    u = np.abs(p.a) / (p.weight * margin.rate)
    assert u.max() > 1 - 1e-14
    assert (u < 1).all()


def test_entropies_thrown_to_an_end_come_back():
    # rows 1 and 4 know the bias alone; a step of the others overshoots by far
    x = np.array([0.7, 0, -1.1, -4.6, 0, 1.9])
    y = np.array([1, -1, 1, -1, -1, 1])
    p = object.__new__(Problem)
    p.K = np.zeros((6, padded(6)), dtype=np.float32)
    p.K[:, :6] = np.outer(x, x)
    p.n, p.margin, p.target = 6, LogisticMargin(20.0, 1.0), np.zeros(6)
    p.sides = np.where(y > 0, POSITIVE, NEGATIVE).astype(np.int8)
    p.weight, p.a = np.ones(6), 0.02 * y
    _, gap, _, status, _ = p.solve(max_iter=10_000)
    assert status == CONVERGED
    assert gap <= 1e-4
    # f = 20 * 4.6^2 in single precision
    assert p.optimality_gap() <= 1e-4 + 10 * NOISE
    assert p.objective() == pytest.approx(82.98818371, abs=1e-3)


INDEFINITE = {
    "minus Gram": lambda rng, n: -_gram_of(rng.normal(size=(n, 3))),
    "shifted": lambda rng, n: _gram_of(rng.normal(size=(n, 3))) - 3.0 * np.eye(n),
    "tanh": lambda rng, n: np.tanh(_gram_of(rng.normal(size=(n, 2)) - 0.5)),
    "symmetric": lambda rng, n: _symmetric(rng.normal(size=(n, n))),
    "signs": lambda rng, n: _symmetric(np.sign(rng.normal(size=(n, n)))),
    "exchanged": lambda rng, n: np.ones((n, n)) - np.eye(n),
}


def _gram_of(X):
    return X @ X.T


def _symmetric(K):
    return np.triu(K) + np.triu(K, 1).T


@pytest.mark.parametrize("margin", [*PRIORS, LogisticMargin(20.0, 1.0)], ids=by_name)
@pytest.mark.parametrize("kind", INDEFINITE)
@pytest.mark.parametrize("n", [2, 40])
def test_indefinite_matrices_end_within_the_steps_and_never_lose(kind, margin, n, rng):
    p = Problem(rng, n, margin)
    p.K[:, :n] = INDEFINITE[kind](rng, n)
    start = p.objective()
    steps, _, _, status, _ = p.solve(max_iter=2000)
    assert steps <= 2000
    assert status in range(5)
    lam = p.sides_of_zero()
    assert (lam >= 0).all()
    assert (np.abs(p.a) <= p.margin.upper * p.weight).all()
    if status in (CONVERGED, STEPS_USED):
        size = 1.0 + np.abs(p.a).sum() ** 2 * np.abs(p.K).max()
        assert p.objective() >= start - NOISE * size


def test_a_pair_of_negative_curvature_goes_to_the_better_end():
    # J = 2 lam - lam^2 (0 + 0 - 2) / 2 = 2 lam + lam^2 is convex: its end is lam = 1
    p = object.__new__(Problem)
    p.K = np.zeros((2, padded(2)), dtype=np.float32)
    p.K[0, 1] = p.K[1, 0] = 1.0
    p.n, p.margin, p.target = 2, HingeMargin(), np.zeros(2)
    p.sides = np.array([POSITIVE, NEGATIVE], dtype=np.int8)
    p.weight, p.a = np.ones(2), np.zeros(2)
    steps, _, _, status, indefinite = p.solve()
    assert (steps, status, indefinite) == (1, CONVERGED, True)
    assert p.a == pytest.approx([1.0, -1.0])
    assert p.objective() == pytest.approx(3.0)


def test_no_rows():
    nothing = np.empty(0)
    sides = np.empty(0, dtype=np.int8)
    K = np.empty((0, 0), dtype=np.float32)
    spec = ExponentialMargin(5.0).core_spec
    result = smo(spec, K, nothing, nothing, nothing, nothing, nothing, sides, 1e-3, 10)
    assert result[0] == 0
    assert result[3] == CONVERGED


def test_a_matrix_without_padding_is_refused(rng):
    p = Problem(rng, 17, ExponentialMargin(5.0))
    p.K = np.ascontiguousarray(p.K[:, :17])
    with pytest.raises(ValueError, match="padded"):
        p.solve()


@pytest.mark.parametrize("n", [1, 15, 16, 17, 100])
def test_padding_is_a_whole_number_of_lanes(n):
    assert padded(n) >= n
    assert padded(n) - n < padded(1)
    assert padded(n) % padded(1) == 0


def test_compress_picks_rows_and_columns(rng):
    K = rng.normal(size=(30, 32)).astype(np.float32)
    keep = np.array([0, 3, 4, 17, 29], dtype=np.intp)
    out = np.zeros((5, 16), dtype=np.float32)
    compress(K, keep, out)
    assert (out[:, :5] == K[np.ix_(keep, keep)]).all()
    same = K.copy()
    compress(same, keep, same)
    assert (same[:5, :5] == out[:, :5]).all()


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("share", [0.05, 0.7, 0.99])
def test_compress_in_place_moves_no_row_that_is_still_to_be_read(rng, n_threads, share):
    n = 400
    K = rng.normal(size=(n, n + 16)).astype(np.float32)
    for first in (0, 1, 90):  # rows that stay where they are
        keep = np.flatnonzero((rng.random(n) < share) | (np.arange(n) < first))
        if not len(keep):
            continue
        want, out = K[np.ix_(keep, keep)], K.copy()
        compress(out, keep, out, n_threads)
        assert (out[: len(keep), : len(keep)] == want).all()


# --------------------------------------------------------------- sweeps by two threads
