"""Newton systems by a Hessian of some steps before, against dense matrices."""

import numpy as np
import pytest
from oracles.block_cases import agree
from oracles.tree_problems import categories, make

from maxent._optimize import block_sum
from maxent._optimize.block_sum import BlockSum, RecycledHessian
from maxent._optimize.maps import Diagonal
from maxent.discrimination import MEDTreeClassifier

KINDS = pytest.mark.parametrize("kind", ["fixed", "dirichlet"])


def problem(rng, kind):
    """Two blocks of trees over the same nine rows; the dense Hessian at a point."""
    prior, X, a, _ = make(kind, rng, 4)
    signs = np.where(np.arange(9) % 2, 1.0, -1.0)
    block = prior.block(X)
    R = BlockSum([block, block], [Diagonal(np.ones(9)), Diagonal(signs)])

    def dense(lam):
        H = [
            np.column_stack([block.hessian_product(w, unit) for unit in np.eye(9)])
            for w in (lam, signs * lam)
        ]
        return H[0] + signs[:, None] * H[1] * signs

    return R, 0.05 * np.abs(a), dense


@KINDS
@pytest.mark.parametrize("columns", [None, 2])
def test_solutions_near_and_far_from_the_kept_matrix(kind, columns, rng):
    R, lam, dense = problem(rng, kind)
    recycled, every = RecycledHessian(R), slice(None)
    for step in (0.0, 1e-3, 0.1, 1.0):
        at = lam * (1.0 + step * rng.random(9))
        diagonal = 10.0 ** rng.uniform(-2, 4, size=9)
        rhs = rng.normal(size=9 if columns is None else (9, columns))
        found = recycled.solver(at, diagonal, every, None)(rhs)
        A = dense(at) + np.diag(diagonal)
        want = np.linalg.solve(A, rhs)
        # in the norm of the system, as conjugate gradients measure it
        off = found - want
        error = np.einsum("i...,ij,j...->...", off, A, off)
        size = np.einsum("i...,ij,j...->...", want, A, want)
        assert (error <= 1e-8 * size).all()


@KINDS
def test_some_rows_only(kind, rng):
    R, lam, dense = problem(rng, kind)
    recycled, some = RecycledHessian(R), np.array([0, 2, 3, 7])
    diagonal, rhs = rng.uniform(0.5, 2.0, 4), rng.normal(size=4)
    recycled.solver(lam, np.ones(9), slice(None), None)
    found = recycled.solver(lam, diagonal, some, None)(rhs)
    A = dense(lam)[np.ix_(some, some)] + np.diag(diagonal)
    agree(found, np.linalg.solve(A, rhs), 1e-4)


def test_matrices_are_made_anew_where_products_are_too_many(rng, monkeypatch):
    monkeypatch.setattr(block_sum, "_RECYCLED_PRODUCTS", 3)
    R, lam, _ = problem(rng, "dirichlet")
    recycled, made = RecycledHessian(R), []
    renewed = recycled._renewed
    monkeypatch.setattr(recycled, "_renewed", lambda *a: made.append(1) or renewed(*a))
    ones = np.ones(9)
    recycled.solver(lam, ones, slice(None), None)(ones)
    recycled.solver(lam, ones, slice(None), None)(ones)
    assert len(made) == 1
    recycled.matrix = 1e8 * np.diag(np.arange(1.0, 10.0) ** 3)  # nothing like it
    found = recycled.solver(lam, ones, slice(None), None)(ones)
    assert len(made) == 2 and np.isfinite(found).all()


@pytest.mark.parametrize("parameters", ["fixed", "dirichlet"])
def test_fits_are_those_by_factors(parameters, rng, monkeypatch):
    X, y = categories(rng, 40, 5)
    model = MEDTreeClassifier(parameters, margin="logistic", level=2.0, tol=1e-9)
    recycled = model.fit(X, y).objective_
    monkeypatch.setattr(RecycledHessian, "serves", lambda R: False)
    assert recycled == pytest.approx(model.fit(X, y).objective_, rel=2e-9)
    assert model.converged_
