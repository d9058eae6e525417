"""Joint multi-class duals: all solvers agree, also on problems that are hard."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from maxent._core.machines.multiclass import joint_dense
from problems import PRIORS, by_name

from maxent import MEDClassifier
from maxent.discrimination import FixedMargin, LogisticMargin
from maxent.discrimination.duals import _multiclass_primal, multiclass_dual
from maxent.discrimination.duals._multiclass_primal import solve_by_newton
from maxent.discrimination.duals._multiclass_scores import LinearScores
from maxent.discrimination.duals.class_pairs import MulticlassRows
from maxent.discrimination.duals.multiclass_dual import solve_multiclass
from maxent.discrimination.grams.vector_kernels import VectorKernel

TOL = 1e-6

priors = pytest.mark.parametrize("margin", PRIORS, ids=by_name)
biases = pytest.mark.parametrize("bias", ["flat", 1.5, None])


def problem(rng, n=200, m=3):
    X = rng.normal(size=(n, 3))
    noise = 0.5 * rng.normal(size=(n, m))
    codes = (X @ rng.normal(size=(3, m)) + noise).argmax(axis=1)
    codes[:m] = np.arange(m)
    return X, codes, rng.uniform(0.5, 2.0, n)


def solve(X, codes, weight, margin, bias, solver, kernel="rbf", **options):
    held = VectorKernel(X, kernel, gamma=0.5)
    return solve_multiclass(
        held,
        codes,
        codes.max() + 1,
        margin,
        bias,
        weight,
        tol=TOL,
        solver=solver,
        **{"max_iter": 30_000, **options},
    )


def agree(results):
    """All converged; objectives of gap tol * (1 + J) may differ by that much, twice."""
    for r, _ in results:
        assert r.converged
        assert 0 <= r.gap <= TOL * (1 + r.objective)
        first = results[0][0].objective
        assert r.objective == pytest.approx(first, abs=2 * TOL * (1 + first))


@priors
@biases
def test_coordinate_ascent_and_interior_point_agree_on_kernels(margin, bias, rng):
    data = problem(rng)
    results = [solve(*data, margin, bias, s) for s in ("interior", "coordinate")]
    # without room for the matrix: a block at a time
    results.append(solve(*data, margin, bias, "coordinate", cache_size=1e-3))
    agree(results)


@priors
@biases
def test_every_road_agrees_on_linear_machines(margin, bias, rng, monkeypatch):
    X, codes, weight = problem(rng)
    X[:, 1] *= rng.random(len(X)) < 0.3
    data = (codes, weight, margin, bias)
    long = sp.csr_array(X)
    long.indices = long.indices.astype(np.int64)  # the other index array stays short
    roads = [(X, s) for s in ("interior", "coordinate", "newton")]
    roads += [(sp.csr_array(X), "coordinate"), (long, "coordinate")]
    results = [
        solve(Z, *data, solver, kernel="linear", cache_size=1e-3) for Z, solver in roads
    ]
    monkeypatch.setattr(_multiclass_primal, "_PRODUCTS", 0)  # no factors
    results.append(solve(X, *data, "newton", kernel="linear"))
    best = results[0][0].objective
    for r, _ in results[2::3]:  # Hessians in single precision end narrow corners early
        assert margin.unit_potential.smooth <= r.converged
        assert r.objective <= best * (1 + 1e-9) and best <= (r.objective + r.gap) * (
            1 + 1e-9
        )
    results = [result for result in results if result[0].converged]
    assert len(results) >= 4
    agree(results)
    for r, _ in results:
        assert abs(r.bias.sum()) <= 1e-9 * (1 + np.abs(r.bias).max())


@pytest.mark.parametrize("variance", [None, 0.0, 1.5])
@pytest.mark.parametrize("products", [0, 100])
def test_newton_begins_with_the_machine_of_a_start(
    products, variance, rng, monkeypatch
):
    monkeypatch.setattr(_multiclass_primal, "_PRODUCTS", products)
    X, codes, weight = problem(rng)
    constraints = MulticlassRows(codes, 3, PRIORS[0], weight)
    flat = variance is None
    scores = LinearScores(X, constraints, 0.5, variance or 0.0)
    options = {"tol": TOL, "max_iter": 500}
    first = solve_by_newton(scores, constraints, flat, **options)
    again = solve_by_newton(scores, constraints, flat, start=first, **options)
    assert first.converged and again.converged
    assert again.n_iter < first.n_iter


def test_sparse_rows_of_linear_machines_get_one_machine(rng):
    X, codes, _ = problem(rng)
    for Z, found in ((X, "ovo"), (sp.csr_array(X), "joint")):
        assert MEDClassifier("linear").fit(Z, codes).multi_class_ == found
    assert MEDClassifier("rbf").fit(sp.csr_array(X), codes).multi_class_ == "ovo"


def test_many_rows_of_few_columns_end_with_newton(rng):
    X, codes, weight = problem(rng, n=3000, m=8)
    r, _ = solve(X, codes, weight, PRIORS[0], "flat", "auto", kernel="linear")
    assert r.converged and r.solver == "newton" and r.n_iter < 50


@pytest.mark.parametrize("margin", [-30.0, 60.0])
def test_a_logistic_multiplier_leaves_its_bounds(margin):
    """The slope of its potential has no limit there, and steps are short."""
    spec = LogisticMargin().unit_potential.core_spec
    one, W = np.ones(1), np.array([[margin], [0.0]])
    lam = np.array([[1e-300 if margin < 0 else 1.0 - 1e-15]])
    order = codes = np.zeros(1, dtype=np.intp)
    joint_dense(
        *(spec, one[:, None], one, codes, one, 0.0, 1.0, 0.5, 0.0, order, True),
        *(lam, W, np.zeros(2)),
    )
    found = float(W[0, 0] - W[1, 0])
    np.testing.assert_allclose(np.log(lam[0, 0]) - np.log1p(-lam[0, 0]), -found, 1e-3)


@priors
def test_multipliers_and_coefficients_belong_together(margin, rng):
    X, codes, weight = problem(rng)
    for bias, solver in (("flat", "coordinate"), (1.5, "interior")):
        r, beta = solve(X, codes, weight, margin, bias, solver)
        right = np.arange(3) == codes[:, None]
        assert (r.lam[right] == 0).all()
        expected = 0.5 * np.where(right, r.lam.sum(axis=1)[:, None], -r.lam)
        np.testing.assert_allclose(beta, expected, atol=1e-12)
        assert abs(r.bias.sum()) <= 1e-9
        if bias == "flat":
            assert np.abs(beta.sum(axis=0)).max() <= 1e-10 * r.lam.sum()
        else:
            np.testing.assert_allclose(r.bias, bias * beta.sum(axis=0), atol=1e-10)


def random_classes(rng, n, m, d=4):
    codes = rng.integers(0, m, n)
    codes[:m] = np.arange(m)
    return rng.normal(size=(n, d)), codes, np.ones(n)


def large_bound(margin):
    """Weight of every row at which multipliers may grow to 1e4."""
    return 1e4 / margin.rate if np.isfinite(margin.upper) else 1e4


@pytest.mark.parametrize("margin", [*PRIORS, FixedMargin()], ids=by_name)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_labels_at_random_with_large_multipliers_are_fitted(margin, kernel, rng):
    X, codes, weight = random_classes(rng, 150, 5)
    if margin.name == "fixed" and kernel == "linear":
        pytest.skip("cannot be separated")
    weight *= 1.0 if margin.name == "fixed" else large_bound(margin)
    problem = (X, codes, weight, margin, "flat")
    # sweeps alone would need tens of thousands
    r, _ = solve(*problem, "auto", kernel, max_iter=1000)
    agree([(r, None), solve(*problem, "interior", kernel)])


# of a logistic prior all multipliers are positive
SPARSE = [one for one in PRIORS if one.unit_potential.finite_at_zero]


@pytest.mark.parametrize("margin", [*SPARSE, FixedMargin()], ids=by_name)
def test_few_constraints_in_play_are_enough(margin, monkeypatch, rng):
    X, codes, weight = random_classes(rng, 130, 6)
    weight *= 1.0 if margin.name == "fixed" else large_bound(margin)
    problem = (X, codes, weight, margin, "flat")
    full = solve(*problem, "interior")
    monkeypatch.setattr(multiclass_dual, "_INTERIOR_LIMIT", 600)
    r, _ = solve(*problem, "auto")
    assert r.solver == "interior"
    agree([(r, None), full])


def test_margins_that_can_barely_be_met_are_met(rng):
    X = rng.normal(size=(150, 3))
    codes = (X @ rng.normal(size=(3, 4))).argmax(axis=1)
    codes = np.unique(codes, return_inverse=True)[1]
    if codes.max() < 2:
        pytest.skip("two classes have a solver of their own")
    r, beta = solve(X, codes, np.ones(150), FixedMargin(), "flat", "auto", "linear")
    assert r.converged
    scores = X @ (X.T @ beta) + r.bias
    right = scores[np.arange(150), codes]
    scores[np.arange(150), codes] = -np.inf
    assert (right - scores.max(axis=1)).min() >= 1 - 1e-2


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("n", [40, 400])
def test_equal_rows_of_two_classes_are_refused_soon(kernel, n, rng):
    X, codes, weight = random_classes(rng, n, 4)
    X[1] = X[0]
    seen = []
    with pytest.raises(ValueError, match="cannot be separated"):
        solve(
            X,
            codes,
            weight,
            FixedMargin(),
            "flat",
            "auto",
            kernel,
            max_iter=10**7,
            callback=lambda *news: seen.append(news),
        )
    assert max(n_iter for n_iter, _, _ in seen) <= 2000


@pytest.mark.parametrize("solver", ["interior", "coordinate", "newton"])
def test_every_solver_reports_progress_and_bound(solver, monkeypatch, rng):
    data, seen = problem(rng, n=400), []
    monkeypatch.setattr(multiclass_dual, "_INTERIOR_STEPS", 2)
    monkeypatch.setattr(multiclass_dual, "_SWEEPS", 2)
    monkeypatch.setattr(multiclass_dual, "_SWEEP_WORK", 0)
    options = {"kernel": "linear", "callback": lambda *news: seen.append(news)}
    r, _ = solve(*data, PRIORS[0], "flat", solver, **options)
    assert r.history
    assert set(r.history) <= set(seen)
    if solver in ("interior", "coordinate"):
        assert not r.converged
        assert r.n_iter == r.max_iter == 2


def test_a_joint_machine_at_rest_on_an_indefinite_kernel_ends(rng):
    """At a stationary point without a certificate, sweeps change nothing any more."""
    X = rng.normal(size=(44, 2)) * [4000.0, 400.0]
    y = np.arange(44) % 3
    options = {"margin": "logistic", "bias": None, "gamma": 0.5, "C": 8.0}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = MEDClassifier("sigmoid", multi_class="joint", **options).fit(X, y)
    assert model.converged_ or said
    assert np.isfinite(model.decision_function(X)).all()
    assert model.n_iter_ < 20_000
