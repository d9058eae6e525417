"""Every solver gives a prior made of functions the answer of the built-in one."""

import numpy as np
import pytest
from discrimination.margins.custom_margins import CLASSIFICATION, REGRESSION

from maxent.discrimination import (
    MEDClassifier,
    MEDFeatureSelector,
    MEDRegressor,
    solve_blocks,
    solve_kernel_dual,
    solve_linear_dual,
)
from maxent.discrimination.duals import multiclass_dual
from maxent.discrimination.duals._selection_dual import solve_selection
from maxent.families import DirichletProduct

EVERY = pytest.mark.parametrize("name", CLASSIFICATION)
SIZES = [300, 4500]


def every_pair(names, others):
    """Every name with each of the others, and both with every size."""
    return [
        (name, other, SIZES[(i + j) % 2])
        for i, name in enumerate(names)
        for j, other in enumerate(others)
    ]


def two_classes(rng, n, separable):
    """Features and labels -1, +1, with a gap between the classes if asked for."""
    X = rng.normal(size=(n, 3))
    noise = 0.0 if separable else 0.5
    y = np.where(X[:, 0] + noise * rng.normal(size=n) > 0, 1, -1)
    if separable:
        X[:, 0] += 0.5 * y
    return X, y


def unit(margin):
    """The C at which every row has weight one."""
    return 1.0 / margin.unit_weight(1.0)


def same(mine, built_in, tol):
    """The same optimum: both certified, and multipliers that agree."""
    assert mine.converged and built_in.converged
    assert mine.objective == pytest.approx(built_in.objective, rel=2 * tol)
    top = max(np.abs(built_in.lam).max(), 1.0)
    # J is curved by at least 1e-4 of its size along multipliers of this scale
    np.testing.assert_allclose(mine.lam, built_in.lam, atol=1e-4 * top)


@pytest.mark.parametrize(
    "name, solver, n", every_pair(CLASSIFICATION, ["auto", "smo", "interior"])
)
def test_kernel_solvers(name, solver, n, rng):
    if n > 600 and solver == "interior":
        n = 300  # O(n^3) a step
    X, y = two_classes(rng, n, name == "fixed")
    built_in, mine = (
        solve_kernel_dual(X, y, margin, kernel="rbf", gamma=0.5, solver=solver)
        for margin in CLASSIFICATION[name]()
    )
    same(mine, built_in, 1e-6)


@pytest.mark.parametrize(
    "name, solver, n",
    every_pair(CLASSIFICATION, ["auto", "coordinate", "newton", "interior"]),
)
def test_linear_solvers(name, solver, n, rng):
    if name == "fixed" and solver == "newton":
        pytest.skip("needs finite losses")
    X, y = two_classes(rng, n, name == "fixed")
    tol = 1e-8 if n < 1000 else 1e-6
    built_in, mine = (
        solve_linear_dual(X, y, margin, solver=solver, tol=tol, max_iter=20_000)
        for margin in CLASSIFICATION[name]()
    )
    same(mine, built_in, tol)


@EVERY
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("solver", ["auto", "interior"])
def test_several_classes(name, kernel, solver, rng):
    n = 120 if solver == "interior" else 600
    X = rng.normal(size=(n, 2))
    y = np.argmin(X @ np.array([[1.0, -1.0, 0.0], [0.0, 0.5, -1.0]]), axis=1)
    X += 0.4 * np.array([[-1.0, 0.0], [1.0, -0.5], [0.0, 1.0]])[y]
    if name != "fixed":
        y = np.where(rng.random(n) < 0.1, rng.integers(0, 3, n), y)
    built_in, mine = (
        MEDClassifier(
            kernel=kernel,
            margin=margin,
            C=unit(margin),
            solver=solver,
            multi_class="joint",
            tol=1e-7,
        ).fit(X, y)
        for margin in CLASSIFICATION[name]()
    )
    assert mine.converged_ and built_in.converged_
    assert mine.objective_ == pytest.approx(built_in.objective_, rel=2e-7)


@EVERY
@pytest.mark.parametrize("shape", [(150, 200), (600, 4)], ids=["wide", "tall"])
def test_the_solvers_of_several_classes_are_those_of_the_built_in_prior(
    name, shape, rng, monkeypatch
):
    """The choice is by properties, which the functions of a user have as well."""
    chosen = []

    def solve(problem, solvers, max_iter, callback):
        chosen.append(solvers)
        return of_problem(problem, solvers, max_iter, callback)

    of_problem = multiclass_dual._Problem.solve
    monkeypatch.setattr(multiclass_dual._Problem, "solve", solve)
    X = rng.normal(size=shape)
    y = np.argmin(X[:, :4], axis=1)
    X[:, :4] -= np.eye(4)[y]
    for margin in CLASSIFICATION[name]():
        MEDClassifier("linear", margin=margin, multi_class="joint").fit(X, y)
    assert chosen[0] == chosen[1]
    tall = shape[1] == 4 and name != "fixed"
    assert ("newton" in chosen[0]) == tall
    assert [m.unit_potential.curved for m in CLASSIFICATION[name]()] == [
        name == "logistic"
    ] * 2


@pytest.mark.parametrize("name, kernel, n", every_pair(REGRESSION, ["linear", "rbf"]))
def test_regression(name, kernel, n, rng):
    X = rng.normal(size=(n, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=n)
    built_in, mine = (
        MEDRegressor(kernel=kernel, margin=margin, C=unit(margin)).fit(X, y)
        for margin in REGRESSION[name]()
    )
    assert mine.converged_ and built_in.converged_
    assert mine.objective_ == pytest.approx(built_in.objective_, rel=2e-3)
    np.testing.assert_allclose(mine.predict(X), built_in.predict(X), atol=1e-2)


@EVERY
def test_models(name, rng):
    n = 80
    y = np.where(rng.random(n) < 0.5, 1, -1)
    X = (rng.random((n, 4)) < 0.5 + 0.2 * y[:, None]).astype(int)
    prior = DirichletProduct(1.0, n_categories=[2] * 4)
    blocks = [prior.block(X, y == 1), prior.block(X, y == -1)]
    maps = [np.diag(y), np.diag(-y)]
    if name == "fixed":
        X[:, 0] = y > 0
        blocks = [prior.block(X, y == 1), prior.block(X, y == -1)]
    built_in, mine = (
        solve_blocks(blocks, maps, margin) for margin in CLASSIFICATION[name]()
    )
    same(mine, built_in, 1e-8)


@pytest.mark.parametrize("name", [k for k in CLASSIFICATION if k != "fixed"])
def test_feature_switches(name, rng):
    X, y = two_classes(rng, 300, False)
    built_in, mine = (
        solve_selection(
            X, y, margin, 0.3, "flat", np.ones(300), tol=1e-8, max_iter=500
        )[0]
        for margin in CLASSIFICATION[name]()
    )
    same(mine, built_in, 1e-8)


def test_priors_without_a_finite_loss_are_refused_alike(rng):
    X, y = two_classes(rng, 60, False)
    for margin in CLASSIFICATION["fixed"]():
        with pytest.raises(ValueError, match="margin"):
            MEDRegressor(margin=margin).fit(X, y)
        with pytest.raises(ValueError, match="switches"):
            MEDFeatureSelector(margin=margin).fit(X, y)
        with pytest.raises(ValueError, match="cannot be separated"):
            solve_kernel_dual(X, y, margin, kernel="linear")
        with pytest.raises(ValueError, match="finite losses"):
            solve_linear_dual(X, y, margin, solver="newton")
