"""Pieces of projected Newton steps: products with the Hessian and their model."""

import cvxopt
import numpy as np
import pytest
import scipy.sparse as sp
from oracles.block_cases import agree
from oracles.tree_problems import categories, make, trained

from maxent._optimize.block_sum import BlockSum
from maxent._optimize.bounded_cg import maximize_bounded_quadratic
from maxent._optimize.hessian_products import FreeHessian
from maxent._optimize.maps import Diagonal
from maxent.discrimination import (
    ExponentialMargin,
)
from maxent.families import Block, DirichletProduct

KINDS = pytest.mark.parametrize("kind", ["fixed", "dirichlet"])


@KINDS
def test_products_between_some_rows_are_those_of_the_whole(kind, rng):
    prior, X, a, _ = make(kind, rng, 4)
    block = prior.block(X)
    rows = np.sort(rng.permutation(9)[:5])
    H = np.column_stack([block.hessian_product(a, unit) for unit in np.eye(9)])
    x = rng.normal(size=5)
    among = block.hessian_among(a, rows)(x)
    agree(among, H[np.ix_(rows, rows)] @ x, 1e-9, 1.0 + np.abs(H).sum())
    agree(Block.hessian_among(block, a, rows)(x), among, 1e-9, 1.0 + np.abs(H).sum())
    slacks = block.slacks(a)
    if kind == "fixed":
        assert slacks is None
        return
    step, z = rng.normal(size=9), rng.random(len(slacks))
    agree(
        block.slack_changes(step),
        block.slacks(a + 1e-3 * step) * 1e3 - slacks * 1e3,
        1e-9,
        1e3 * slacks.max(),
    )
    agree(z @ block.slack_changes(step), block.slack_gradient(z) @ step, 1e-12, 100.0)
    S = np.column_stack([block.slack_changes(unit) for unit in np.eye(9)])
    want = (H + S.T @ (z[:, None] * S))[np.ix_(rows, rows)] @ x
    agree(block.hessian_among(a, rows, z)(x), want, 1e-9, 1.0 + np.abs(want).max())
    agree(
        Block.hessian_among(block, a, rows, z)(x), want, 1e-9, 1.0 + np.abs(want).max()
    )
    far = block.max_step(a, step)
    change = block.slack_changes(step)
    down = change < 0
    assert far == pytest.approx(np.min(slacks[down] / -change[down]), rel=1e-12)


class Matrix:
    """What the quadratic model asks of a Hessian, from a matrix."""

    assembled = False

    def __init__(self, A):
        self.A, self.size, self.diagonal = A, len(A), A.diagonal()
        self.products = self.work = 0

    def product(self, x):
        self.products += 1
        self.work += 1
        return self.A @ x

    def should_assemble(self):
        return False

    def preconditioner(self, at):
        scale = self.diagonal[at]
        return lambda r: (r.T / scale).T


@pytest.mark.parametrize("k", [0, 1, 2])
def test_the_model_climbs_between_its_bounds(k, rng):
    n = 25
    A = rng.normal(size=(n, n))
    A = A @ A.T / n + 0.1 * np.eye(n)
    g = rng.normal(size=n)
    E = rng.choice([-1.0, 0.0, 1.0], size=(n, k)) if k else None
    wide = np.full(n, 1e6)
    x = maximize_bounded_quadratic(Matrix(A), g, -wide, wide, E, 1e-10)
    both = np.block([[A, E], [E.T, np.zeros((k, k))]]) if k else A
    want = np.linalg.solve(both, np.append(g, np.zeros(k)))[:n]
    agree(x, want, 1e-7)
    low, high = -rng.random(n) * (rng.random(n) < 0.7), 0.5 * rng.random(n)
    found = maximize_bounded_quadratic(Matrix(A), g, low, high, E, 1e-10)
    assert (found >= low).all() and (found <= high).all()
    assert g @ found > 0 and g @ found - 0.5 * found @ A @ found > 0
    inner = (found > low) & (found < high)
    rest = (g - A @ found)[inner]
    if k:  # what is left is a combination of the equalities
        assert np.abs(E.T @ found).max() < 1e-9
        rest = rest - E[inner] @ np.linalg.lstsq(E[inner], rest, rcond=None)[0]
    agree(rest, np.zeros(inner.sum()), 1e-6, 1.0)
    agree(g @ found - 0.5 * found @ A @ found, best_between(A, g, low, high, E), 1e-6)


def best_between(A, g, low, high, E):
    """Largest value of g' x - x' A x / 2 between bounds, by cvxopt."""
    n = len(g)
    sides = np.vstack([np.eye(n), -np.eye(n)])
    arrays = [A, -g, sides, np.concatenate([high, -low])]
    if E is not None:
        arrays += [E.T, np.zeros(E.shape[1])]
    options = {"show_progress": False, "abstol": 1e-12, "reltol": 1e-12}
    solved = cvxopt.solvers.qp(*map(cvxopt.matrix, arrays), options=options)
    return -solved["primal objective"]


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_start_at_bounds_that_stand_in_the_way(k, rng):
    """Most entries can move one way only, and the balance ties them together."""
    n = 40
    root = rng.normal(size=(n, n))
    A = root @ root.T + 0.1 * np.eye(n)
    g, E = rng.normal(size=n), rng.choice([-1.0, 0.0, 1.0], size=(n, k))
    end, inside = rng.choice([0.0, 1.0], n), rng.permutation(n)[:k]
    at = end.copy()
    at[inside] = 0.5
    low, high = -at, 1.0 - at
    found = maximize_bounded_quadratic(Matrix(A), g, low, high, E, 1e-10)
    assert (found >= low).all() and (found <= high).all()
    assert np.abs(E.T @ found).max() < 1e-9
    agree(g @ found - 0.5 * found @ A @ found, best_between(A, g, low, high, E), 1e-6)


@pytest.mark.parametrize("k", [0, 1])
def test_large_slopes_at_bounds_leave_the_accuracy_to_the_others(k, rng):
    """Slopes of 1e6 hold half of the entries; 1e-6 of the others is still a slope."""
    n = 20
    root = rng.normal(size=(n, n))
    A = root @ root.T / n + 0.1 * np.eye(n)
    E = rng.choice([-1.0, 1.0], size=(n, k)) if k else None
    g, low, high = 1e-6 * rng.normal(size=n), np.full(n, -1.0), np.full(n, 1.0)
    held = np.arange(n) < n // 2
    g[held], low[held] = -1e6 * (1.0 + rng.random(n // 2)), 0.0
    x = maximize_bounded_quadratic(Matrix(A), g, low, high, E, 1e-3)
    assert not x[held].any() and x[~held].any()
    rest = (g - A @ x)[~held]
    if k:
        y = E[~held]
        rest = rest - y @ np.linalg.lstsq(y, rest, rcond=None)[0]
    assert np.abs(rest).max() < 1e-8


class WithoutMatrix(Matrix):
    """A Hessian whose blocks make no matrix, as is found out in mid-climb."""

    asked = False

    def should_assemble(self):
        return self.products > 0 and not self.asked

    def assemble(self):
        self.asked = True


def test_the_accuracy_asked_for_holds_where_no_matrix_can_be_made():
    """The residual of the first step is far larger than the slope itself."""
    A = 7.0 * np.array([[1.0, -1.0], [-1.0, 1.0]]) + 1e-4 * np.eye(2)
    slope, wide = np.array([4.0, 4.3]), np.full(2, 1e9)
    x = maximize_bounded_quadratic(WithoutMatrix(A), slope, -wide, wide, None, 0.1)
    assert np.abs(slope - A @ x).max() < 0.5


@KINDS
@pytest.mark.parametrize("stored", [False, True])
def test_the_free_part_of_the_hessian_of_all_blocks(kind, stored, rng):
    X, y = categories(rng, 30, 4, 3)
    blocks, maps, E, found = trained(X, y, kind, ExponentialMargin(1.0), 4.0, None)
    maps = [A.tocsr() for A in maps]
    n = maps[0].shape[1]
    R = BlockSum(blocks, maps, 0.3 * E)
    lam = 0.5 * found.lam
    free = np.sort(rng.permutation(n)[:20])
    H = FreeHessian(R, lam, free, np.full(20, 0.7), [None] * 3)
    G = R.factor(lam)
    want = (G @ G.T)[np.ix_(free, free)] + 0.7 * np.eye(20)
    if stored:
        H.assemble()
        rhs = rng.normal(size=20)
        at = np.arange(3, 15)
        solved = H.preconditioner(at)(rhs[at])
        agree(want[np.ix_(at, at)] @ solved, rhs[at], 1e-7, np.abs(want).max())
    x = rng.normal(size=20)
    agree(H.product(x), want @ x, 1e-8, 20 * np.abs(want).max())


@KINDS
def test_matrices_between_some_rows_are_those_of_products(kind, rng):
    prior, X, a, _ = make(kind, rng, 4)
    block = prior.block(X)
    rows = np.sort(rng.permutation(9)[:5])
    z = None if kind == "fixed" else rng.random(len(block.slacks(a)))
    product = block.hessian_among(a, rows, z)
    want = np.column_stack([product(unit) for unit in np.eye(5)])
    agree(block.hessian_matrix(a, rows, z), want, 1e-9, 1.0 + np.abs(want).max())
    assert Block.hessian_matrix(block, a, rows, z) is None


@KINDS
def test_a_factor_serves_when_few_rows_are_dropped(kind, rng):
    X, y = categories(rng, 80, 4)
    blocks, maps, _, found = trained(X, y, kind, ExponentialMargin(1.0), 4.0, None)
    R, n = BlockSum(blocks, [A.tocsr() for A in maps]), 80
    H = FreeHessian(R, 0.5 * found.lam, np.arange(n), np.full(n, 0.7), [None, None])
    H.assembled_matrix()  # no factor of few columns
    whole = H.preconditioner(np.arange(n))
    matrix = np.column_stack([H.product(unit) for unit in np.eye(n)])
    agree(matrix @ whole(np.ones(n)), np.ones(n), 1e-7, 1.0)
    at = np.delete(np.arange(n), [3, 40])
    inverse = np.linalg.inv(matrix)[np.ix_(at, at)]
    agree(H.preconditioner(at)(np.eye(78)), inverse, 1e-8, np.abs(inverse).max())
    at = np.arange(0, n, 2)  # too few of them
    solved = H.preconditioner(at)(np.ones(40))
    agree(matrix[np.ix_(at, at)] @ solved, np.ones(40), 1e-7, 1.0)


@pytest.mark.parametrize("biased", [False, True])
def test_a_factor_of_few_columns_takes_the_place_of_the_matrix(biased, rng):
    prior, n = DirichletProduct(1.0, [3, 2]), 400
    X = np.column_stack([rng.integers(3, size=n), rng.integers(2, size=n)])
    blocks = [prior.block(X), prior.block(X[::-1])]
    maps = [sp.diags_array(q, format="csr") for q in (rng.random(n), -rng.random(n))]
    bias = rng.normal(size=(n, 1)) if biased else None
    R, lam = BlockSum(blocks, maps, bias), 1e-3 * rng.random(n)
    free = np.sort(rng.permutation(n)[:350])
    H = FreeHessian(R, lam, free, 0.5 + rng.random(350), [None, None])
    x, products = rng.normal(size=350), H.product
    before = products(x)
    assert not H.assembled
    while not H.should_assemble():
        products(x)
    assert H.products < 10
    H.assemble()
    assert H.assembled and H._matrix is None
    agree(H.product(x), before, 1e-10, np.abs(before).max())
    at = np.delete(np.arange(350), [3, 40])
    G = R.factor(lam)[free][at]
    want = G @ G.T + np.diag(H.diagonal[at])
    agree(want @ H.preconditioner(at)(x[at]), x[at], 1e-8, np.abs(x).max())
    # diagonals that are far below it would lose the digits of Woodbury's identity
    H = FreeHessian(R, lam, free, np.full(350, 1e-14), [None, None])
    H.assemble()
    assert not H.assembled
    H.assemble()
    assert H._matrix is not None


@KINDS
def test_without_matrices_of_blocks_columns_are_products(kind, rng, monkeypatch):
    X, y = categories(rng, 30, 4)
    blocks, maps, _, found = trained(X, y, kind, ExponentialMargin(1.0), 4.0, None)
    R, free = BlockSum(blocks, [A.tocsr() for A in maps]), np.arange(20)
    args = R, 0.5 * found.lam, free, np.full(20, 0.7), [None, None]
    direct = FreeHessian(*args)
    direct.assemble()
    for block in blocks:
        monkeypatch.setattr(block, "hessian_matrix", lambda *args: None)
    H = FreeHessian(*args)
    H.assemble()
    assert direct.assembled and not H.assembled
    for _ in range(21):
        H.product(np.ones(20))
    assert H.should_assemble()
    H.assemble()
    x = rng.normal(size=20)
    agree(H.product(x), direct.product(x), 1e-8, 1.0 + np.abs(direct.product(x)).max())


def test_diagonal_maps_are_products_with_vectors():
    D = Diagonal(np.array([2.0, -1.0]))
    np.testing.assert_array_equal(D @ np.ones(2), [2.0, -1.0])
