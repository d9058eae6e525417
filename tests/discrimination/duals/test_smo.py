"""Choice between roads, and what working sets do when memory or steps are short."""

import numpy as np
import pytest
import scipy.sparse as sp
from problems import PRIORS, by_name, rbf, two_classes
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from maxent import MEDClassifier, MEDRegressor
from maxent._support.results import DualResult, Status
from maxent.discrimination import (
    CustomMargin,
    ExponentialMargin,
    HingeMargin,
    LogisticMargin,
    solve_dual,
)
from maxent.discrimination import solve_kernel_dual as solve
from maxent.discrimination.duals import _signed_dual, _smo
from maxent.discrimination.duals._kkt import ActiveRows
from maxent.discrimination.duals._signed_dual import solve_signed
from maxent.discrimination.duals._signed_problem import (
    binary_problem,
)
from maxent.discrimination.grams.gram_store import PartGram, WholeGram
from maxent.discrimination.grams.vector_kernels import VectorKernel

PRIOR = ExponentialMargin(5.0)


@pytest.mark.parametrize(("n", "first"), [(20, "interior"), (200, "smo")])
@pytest.mark.parametrize("better", ["interior", "smo"])
def test_the_better_of_two_unfinished_roads_is_kept(n, first, better, monkeypatch, rng):
    X, y = two_classes(rng, n, 3)
    tried = []

    def result(road):
        tried.append(road)
        gap = 0.1 if road == better else 0.2
        return DualResult(np.zeros(n), 0.0, 1.0, gap, 5, Status.STALLED, solver=road)

    class WorkingSets:
        indefinite = False

        def __init__(self, *args):
            pass

        def solve(self, init):
            return result("smo")

    def interior(*args, **options):
        return result("interior")

    def active(*args, **options):
        return None  # too many rows are

    monkeypatch.setattr(_signed_dual, "solve_interior", interior)
    monkeypatch.setattr(_signed_dual, "solve_active", active)
    monkeypatch.setattr(_signed_dual, "WorkingSets", WorkingSets)
    r = solve_dual(rbf(X), y, PRIOR, tol=1e-3)
    assert set(tried) == {"interior", "smo"} and tried[0] == first
    assert r.gap == 0.1
    assert r.solver == better


@pytest.mark.parametrize("margin", PRIORS, ids=by_name)
@pytest.mark.parametrize("bias", ["flat", 1.5, None])
def test_rows_that_never_meet_in_memory_are_solved_together(margin, bias, rng):
    # 64 rows at a time, of 300 that mostly carry a multiplier
    X, y = two_classes(rng, 300, 3)
    options = {"gamma": 0.3, "bias": bias, "solver": "smo"}
    tight = solve(X, y, margin, tol=1e-5, cache_size=1e-3, **options)
    free = solve(X, y, margin, tol=1e-7, **options)
    assert tight.converged
    assert np.count_nonzero(tight.lam) > 64
    assert tight.objective == pytest.approx(free.objective, rel=2e-5)


@pytest.mark.parametrize("size", [1, 5, 29, 30])
def test_the_worst_rows_are_those_of_the_largest_violation(size, rng):
    _, y = two_classes(rng, 40, 2)
    active = ActiveRows(binary_problem(y, PRIOR, "flat", None), 64)
    f, some = rng.normal(size=40), np.sort(rng.permutation(40)[:30])
    rows = active.worst(np.zeros(40), f, 0.1, some, size)
    violation = (PRIOR.prior_mean - y * (f + 0.1))[some]
    assert set(rows) == set(some[np.argsort(-violation)[:size]])
    assert (np.diff(rows) > 0).all()


def test_rows_of_low_curvature_are_among_as_many_as_fit(rng):
    _, y = two_classes(rng, 40, 2)
    active = ActiveRows(binary_problem(y, PRIOR, "flat", None), 16)
    a = y * PRIOR.rate * np.linspace(0.1, 0.9, 40)  # the curvature rises with it
    f, some = rng.normal(size=40), np.arange(2, 40)
    rows = active.worst(a, f, 0.1, some, 16)
    violation = active.kkt_violation(a, f, 0.1)
    assert set(range(2, 14)) <= set(rows)
    others = some[12:]
    assert set(rows[12:]) == set(others[np.argsort(-violation[others])[:4]])


@pytest.mark.parametrize("margin", [ExponentialMargin(10.0), HingeMargin(10.0)])
def test_rows_beyond_the_memory_end_where_all_rows_do(margin, rng):
    X, y = two_classes(rng, 400, 3)
    y = np.where(rng.random(400) < 0.3, -y, y)
    options = {"solver": "smo", "tol": 1e-8}
    few = solve(X, y, margin, cache_size=0.03, **options)  # 64 rows
    all_ = solve(X, y, margin, cache_size=100.0, **options)
    assert few.status is all_.status is Status.CONVERGED
    assert few.objective == pytest.approx(all_.objective, rel=1e-6)


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_regression_with_short_memory_ends(C):
    # fewer rows in play than memory holds, after more of them
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(200, 3))
        y = X[:, 0] + 0.1 * rng.normal(size=200)
        model = MEDRegressor(C=C, cache_size=0.05, solver="smo").fit(X, y)
        assert model.converged_


@pytest.mark.parametrize("cache_size", [1e-3, 100.0])
@pytest.mark.parametrize("steps", [1, 50, 400])
def test_steps_are_bounded_with_and_without_memory(cache_size, steps, rng):
    X, y = two_classes(rng, 300, 3)
    r = solve(
        X,
        y,
        ExponentialMargin(50.0),
        solver="smo",
        tol=1e-9,
        max_iter=steps,
        cache_size=cache_size,
    )
    assert r.n_iter == steps
    assert r.status is Status.MAX_ITER
    assert 1e-9 < r.relative_gap < np.inf


def held_kernel(form, X):
    if form == "precomputed":
        return VectorKernel(rbf(X), "precomputed")
    if form == "callable":
        return VectorKernel(X, lambda A, B: np.exp(-0.3 * cdist(A, B, "sqeuclidean")))
    rows = sp.csr_array(X) if form == "sparse" else X
    return VectorKernel(rows, "rbf", gamma=0.3)


@pytest.mark.parametrize("form", ["dense", "sparse", "callable", "precomputed"])
@pytest.mark.parametrize("extra", [0, 1])
def test_rows_come_and_go_and_their_matrix_stays_right(form, extra, rng):
    X = rng.normal(size=(60, 3))
    K = rbf(X)
    store = PartGram(held_kernel(form, X), 40, extra)

    def matrix():
        m = len(store.rows)
        return store.matrix[extra : extra + m, extra : extra + m]

    held = set()
    for step in range(8):
        if step % 2:
            new = np.sort(rng.choice(sorted(set(range(60)) - held), 3, replace=False))
            store.add(new)
            held |= set(new)
        else:
            held = set(rng.choice(60, rng.integers(1, 37), replace=False))
            store.exchange(np.array(sorted(held)))
        assert set(store.rows) == held and len(store.rows) == len(held)
        # differences of single-precision norms, of length 3 or so
        np.testing.assert_allclose(
            matrix(), K[np.ix_(store.rows, store.rows)], atol=1e-5
        )
    store.keep(np.array([0, 2]))
    np.testing.assert_allclose(matrix(), K[np.ix_(store.rows, store.rows)], atol=1e-5)


@pytest.mark.parametrize("wanted, idle", [(39, 1), (37, 0), (20, 0)])
def test_few_rows_of_no_use_are_kept_while_there_is_room(wanted, idle, rng):
    X = rng.normal(size=(60, 3))
    store = PartGram(held_kernel("dense", X), 45)
    store.add(np.arange(40))
    rows = np.append(np.arange(40 - wanted, 40), [50, 51, 52])  # most of those held
    np.testing.assert_array_equal(store.cover(rows), [50, 51, 52])
    assert set(rows) <= set(store.rows) and len(store.rows) == len(rows) + idle
    m = len(store.rows)
    expected = rbf(X)[np.ix_(store.rows, store.rows)]
    np.testing.assert_allclose(store.matrix[:m, :m], expected, atol=1e-5)
    more = np.append(rows, [53, 54, 55])  # one too many beside a row of no use
    store.cover(more)
    assert set(store.rows) == set(more)


@pytest.mark.parametrize("form", ["dense", "callable", "precomputed"])
@pytest.mark.parametrize("extra", [0, 1])
def test_a_whole_matrix_gives_products_and_parts(form, extra, rng):
    X = rng.normal(size=(50, 3))
    K, a = rbf(X), rng.normal(size=50)
    whole = WholeGram(held_kernel(form, X), extra)
    np.testing.assert_allclose(whole.product(a), K @ a, atol=1e-11)
    positions = np.array([0, 7, 8, 49])
    part = whole.part(positions)
    assert (part.rows == positions).all()
    found = part.matrix[extra : extra + 4, extra : extra + 4]
    np.testing.assert_allclose(found, K[np.ix_(positions, positions)], atol=1e-6)


@pytest.mark.parametrize("form", ["dense", "callable", "precomputed"])
def test_memory_that_a_whole_matrix_takes_is_foreseen(form, rng):
    kernel = held_kernel(form, rng.normal(size=(400, 3)))
    whole = WholeGram(kernel)
    taken = whole.matrix.nbytes
    if form == "dense":
        taken += whole.low.nbytes
    elif form == "callable":
        taken += whole.exact.nbytes  # a precomputed matrix is the user's own
    # and a part of the rows beside it
    assert taken <= 1e6 * WholeGram.megabytes(kernel) <= 2 * taken


def test_a_matrix_larger_than_the_memory_is_not_made(monkeypatch, rng):
    class Refusing(WholeGram):
        def __init__(self, *args):
            raise AssertionError("the whole matrix was asked for")

    X, y = two_classes(rng, 300, 80)  # wide rows, whose kernel values are worth keeping
    monkeypatch.setattr(_smo, "WholeGram", Refusing)
    r = solve(X, y, PRIOR, gamma=0.01, solver="smo", cache_size=0.3)
    assert r.converged
    with pytest.raises(AssertionError, match="whole matrix"):
        solve(X, y, PRIOR, gamma=0.01, solver="smo", cache_size=100.0)


def checkerboard(rng, n):
    """Uniform rows on 4 x 4 cells; the class is the colour of the cell."""
    X = rng.uniform(0, 4, size=(n, 2))
    return X, np.where(np.floor(X).sum(axis=1) % 2 == 0, 1, -1)


# more rows than are held at once; multipliers of hundreds lose digits of margins in
# single precision
@pytest.mark.parametrize("C", [100.0, 1000.0])
@pytest.mark.parametrize("gamma", [1.0, 5.0])
@pytest.mark.parametrize("margin", ["hinge", "exponential"])
def test_large_multipliers_do_not_stop_a_fit_short(C, gamma, margin, rng):
    X, y = checkerboard(rng, 8500)
    model = MEDClassifier(C=C, gamma=gamma, margin=margin).fit(X, y)
    assert model.converged_
    assert model.duality_gap_ <= 1e-3 * (1 + model.objective_)


def test_noisy_labels_of_more_rows_than_are_held_at_once(rng):
    X = rng.normal(size=(8001, 2))
    y = (np.sin(3 * X[:, 0]) * np.cos(3 * X[:, 1]) > 0) ^ (rng.random(8001) < 0.1)
    assert MEDClassifier(C=100).fit(X, y).converged_


@pytest.mark.parametrize("rate", [1.0, 20.0, 100.0])
@pytest.mark.parametrize("bias", ["flat", 1.0, None])
def test_multipliers_come_back_from_where_the_slope_is_infinite(rate, bias, rng):
    X = rng.normal(size=(60, 2))
    y = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    K = rbf(X, 1.0)
    K[:10] = K[:, :10] = 0.0  # these rows know the bias alone
    for margin in (LogisticMargin(rate, 1.0), gibbs_margin(rate)):
        found = solve_dual(K, y, margin, bias=bias, solver="smo")
        best = solve_dual(K, y, margin, bias=bias, solver="interior", tol=1e-9)
        assert best.converged and found.converged
        assert found.objective == pytest.approx(best.objective, rel=2e-6, abs=2e-6)


def gibbs_margin(rate):
    """Entropy lam - lam log(lam / rate), whose domain has no end."""
    return CustomMargin(
        lambda lam: lam - lam * np.log(lam / rate) if lam > 0 else 0.0,
        lambda lam: -np.log(lam / rate) if lam > 0 else np.inf,
        lambda lam: 1.0 / lam if lam > 0 else np.inf,
        upper=np.inf,
    )


def test_a_large_logistic_machine_of_noisy_labels_converges(rng):
    X = rng.normal(size=(4100, 10))
    y = (X[:, 0] + X[:, 1] ** 2 > 1) ^ (rng.random(4100) < 0.1)
    assert MEDClassifier(margin="logistic", C=1e4).fit(X, y).converged_


@pytest.mark.parametrize("max_iter", [300, 10_000_000])
def test_the_violation_that_is_reported_is_that_of_the_machine(max_iter, rng):
    X, y = two_classes(rng, 300, 3)
    kernel = VectorKernel(X, "rbf", gamma=0.3)
    r = solve_signed(
        kernel,
        binary_problem(y, PRIOR, "flat", None),
        tol=1e-3,
        kkt_tol=1e-3,
        max_iter=max_iter,
        solver="smo",
    )
    asked = y * PRIOR.mean(np.abs(r.lam)) - rbf(X) @ r.lam
    inside = r.lam != 0
    up, low = asked[(y > 0) | inside].max(), asked[(y < 0) | inside].min()
    assert r.kkt_violation == pytest.approx(up - low, abs=1e-10)
    assert r.kkt_tol == 1e-3
    assert r.converged == (max_iter > 300) == (r.kkt_violation <= 1e-3)


def test_a_fit_whose_gap_is_fine_is_told_what_is_not(rng):
    X, y = two_classes(rng, 300, 3)
    with pytest.warns(ConvergenceWarning, match="violated by .*, 0.001 asked") as seen:
        MEDClassifier(C=1e-6, max_iter=10, solver="smo").fit(X, y)
    assert "gap" not in str(seen[0].message)


@pytest.mark.parametrize("seed", [193, 274, 288, 292, 0, 1])
def test_multipliers_that_all_reach_their_caps(seed):
    """Balanced weights and a small C: every multiplier is at its cap."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(65, 90))
    X = rng.normal(size=(n, 2))
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    options = {"margin": "hinge", "solver": "smo", "class_weight": "balanced"}
    model = MEDClassifier("rbf", C=10 ** rng.uniform(-3, -1), **options).fit(X, y)
    assert model.converged_ and model.duality_gap_ <= 1e-3


def test_rows_far_from_the_margin_wait_where_memory_is_short(rng, monkeypatch):
    """Certification looks at all of them, and the machine is that of more memory."""
    X = rng.normal(size=(3000, 2))
    y = np.where(np.sin(3 * X[:, 0]) * np.cos(3 * X[:, 1]) > 0, 1.0, -1.0)
    margin, waiting = ExponentialMargin(10.0), []

    def noted(self, *args, far=_smo.WorkingSets.far):
        waiting.append(int(far(self, *args).sum()))
        return far(self, *args)

    monkeypatch.setattr(_smo.WorkingSets, "far", noted)
    options = {"gamma": 1.0, "tol": 1e-6, "solver": "smo"}
    small = solve(X, y, margin, cache_size=0.4, **options)
    large = solve(X, y, margin, cache_size=100.0, **options)
    assert max(waiting) > 500
    assert small.converged and large.converged
    assert small.objective == pytest.approx(large.objective, rel=1e-6)
