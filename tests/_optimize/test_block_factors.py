"""Factors of the sum of blocks: written row by row or stored, the same systems."""

import numpy as np
import pytest
import scipy.sparse as sp
from maxent._core.tall_matrices import TallMatrix
from oracles.block_cases import agree

from maxent._optimize import block_sum
from maxent._optimize.block_sum import BlockSum
from maxent._optimize.maps import Diagonal
from maxent._support.linalg import as_array
from maxent._support.results import Status
from maxent.discrimination import ExponentialMargin, solve_blocks
from maxent.families import (
    Block,
    ConjugateBlock,
    DirichletBayesNet,
    DirichletCounts,
    DirichletProduct,
    NormalInverseWishart,
)

N = 420


class Stored(Block):
    """A block of a user's own: log Z = |A' a|^2 / 2, its factor in Fortran order."""

    def __init__(self, A):
        self.A, self.n_rows = np.asfortranarray(A), len(A)

    def log_partition(self, a):
        return 0.5 * float(np.square(self.A.T @ a).sum())

    def mean(self, a):
        return self.A @ (self.A.T @ a)

    def hessian_factor(self, a):
        return self.A


def made(kind, rng):
    codes = rng.integers(3, size=(N, 3))
    if kind == "gaussian":
        prior = NormalInverseWishart(np.zeros(3), 2.0, 6.0, np.eye(3))
        return prior.block(rng.normal(size=(N, 3)), np.full(N, 0.5))
    if kind == "product":
        return DirichletProduct(1.0, [3, 3, 3]).block(codes, np.ones(N))
    if kind == "net":
        codes = np.where(rng.random(codes.shape) < 0.2, -1, codes)
        return DirichletBayesNet(2.0, [[], [0], [0, 1]], [3, 3, 3]).block(codes)
    if kind == "counts":
        rows = sp.csr_array(rng.poisson(0.7, size=(N, 5)).astype(float))
        return DirichletCounts(np.full(5, 2.0)).block(rows)
    return Stored(rng.normal(size=(N, 4)))


def problem(rng, kinds, diagonal, biased):
    maps = []
    for _ in kinds:
        q = rng.choice([-1.0, 0.5, 2.0], size=N)
        maps.append(Diagonal(q) if diagonal else sp.diags_array(q, format="csr"))
    bias = rng.normal(size=(N, 2)) if biased else None
    return BlockSum([made(kind, rng) for kind in kinds], maps, bias)


SETS = ["gaussian", "product", "net", "counts", "stored", "gaussian stored net"]


@pytest.mark.parametrize("kinds", SETS)
@pytest.mark.parametrize("diagonal", [True, False])
@pytest.mark.parametrize("biased", [True, False])
def test_factors_of_rows_are_those_that_are_stored(
    kinds, diagonal, biased, rng, monkeypatch
):
    R = problem(rng, kinds.split(), diagonal, biased)
    lam = 1e-3 * rng.random(N)
    stored = R.factor(lam)
    assert isinstance(stored, np.ndarray)
    columns = [
        (A @ block.hessian_factor(A @ lam))
        for A, block in zip(R.maps, R.blocks, strict=True)
    ]
    want = np.column_stack(columns if R.bias is None else [*columns, R.bias])
    agree(stored, want, 1e-12, np.abs(want).max())
    H = want @ want.T
    agree(H @ lam, sum_of_products(R, lam), 1e-9, np.abs(H).max())
    rhs, diagonal_ = rng.normal(size=(N, 2)), rng.uniform(0.5, 2.0, N)
    most, few = np.sort(rng.permutation(N)[:350]), np.sort(rng.permutation(N)[:90])
    for tall in (False, True):
        if tall:
            monkeypatch.setattr(block_sum, "TALL", 0)
            R._points = []
        G = R.factor(lam)
        assert isinstance(G, TallMatrix) == tall
        agree(as_array(G), want, 1e-12, np.abs(want).max())
        agree(G[few], want[few], 1e-12, np.abs(want).max())
        solve = R._exact(lam, diagonal_, slice(None), None)
        for b in (rhs[:, 0], rhs):
            x = solve(b)
            agree((H.T @ x).T + diagonal_ * x.T, b.T, 1e-8, 10.0)
        for index in (most, few):
            A = H[np.ix_(index, index)] + np.diag(diagonal_[index])
            part = R.restricted(index, lam).solver(lam[index], diagonal_[index])
            for b in (rhs[index, 0], rhs[index]):
                agree(part(b), np.linalg.solve(A, b), 1e-8, 10.0)


def sum_of_products(R, x):
    """The Hessian at x times x, block by block."""
    out = np.zeros(N)
    for A, block in zip(R.maps, R.blocks, strict=True):
        out += A.T @ block.hessian_product(A @ x, A @ x)
    return out if R.bias is None else out + R.bias @ (R.bias.T @ x)


def test_rows_that_are_not_finite_are_told_as_a_factor_is(rng, monkeypatch):
    monkeypatch.setattr(block_sum, "TALL", 0)
    R = problem(rng, ["product"], True, False)
    lam = 1e-3 * rng.random(N)
    posterior = R.blocks[0]._inside(R.maps[0] @ lam)
    u, c = posterior._curvatures
    posterior._curvatures = np.where(np.arange(9) == 4, np.nan, u), c
    with pytest.raises(FloatingPointError, match="hessian_factor returned NaN"):
        R.factor(lam)


def test_blocks_with_other_weights_from_the_start_are_new_ones(rng):
    X, a = rng.normal(size=(30, 2)), 0.1 * rng.random(30)
    nets = rng.integers(3, size=(30, 2))
    for prior, rows in (
        (NormalInverseWishart(np.zeros(2), 1.0, 4.0, np.eye(2)), X),
        (DirichletProduct(1.0, [3, 3]), nets),
    ):
        one, w = prior.block(rows), rng.random(30)
        before = one.log_partition(a), one.mean(a)
        other, fresh = one._with_base_weight(w), prior.block(rows, w)
        for block, want in ((other, fresh), (one, prior.block(rows))):
            assert block.log_partition(a) == want.log_partition(a)
            np.testing.assert_array_equal(block.mean(a), want.mean(a))
        assert one.log_partition(a) == before[0]
        np.testing.assert_array_equal(one.mean(a), before[1])
    with pytest.raises(ValueError, match="base_weight has shape"):
        one._with_base_weight(np.ones(3))


@pytest.mark.parametrize("what", ["indices", "indptr", "data", "all"])
def test_rows_of_other_types_and_strides_are_those_of_contiguous_ones(what, rng):
    rows = sp.csr_array(rng.poisson(0.7, size=(9, 5)).astype(float))
    other = sp.csr_array(rows)
    for name in ("indices", "indptr", "data") if what == "all" else (what,):
        part = getattr(rows, name)
        wide = np.repeat(part.astype(np.int64 if name != "data" else float), 2)
        setattr(other, name, wide[::2])
    prior, a = DirichletCounts(np.ones(5)), rng.random(9)
    one, two = prior.block(rows), prior.block(other)
    np.testing.assert_array_equal(one.mean(a), two.mean(a))
    np.testing.assert_array_equal(one.hessian_factor(a), two.hessian_factor(a))


class Tempered(ConjugateBlock):
    """Weights count four times: a subclass with a factor of its own."""

    def log_partition(self, a):
        return super().log_partition(4.0 * a)

    def mean(self, a):
        return 4.0 * super().mean(4.0 * a)

    def hessian_factor(self, a):
        return 4.0 * super().hessian_factor(4.0 * a)


def test_a_subclass_with_a_factor_of_its_own_is_asked_for_it(rng, monkeypatch):
    monkeypatch.setattr(block_sum, "TALL", 0)
    codes = rng.integers(3, size=(N, 2))
    block = Tempered(DirichletProduct(1.0, [3, 3]), codes)
    R, lam = BlockSum([block], [Diagonal(np.ones(N))]), 1e-3 * rng.random(N)
    agree(as_array(R.factor(lam)), block.hessian_factor(lam), 1e-12, 10.0)


def test_several_flat_biases_with_rows_that_are_written(rng, monkeypatch):
    X = rng.normal(size=(300, 3))
    y = np.where(X[:, 0] > 0.3 * rng.normal(size=300), 1.0, -1.0)
    prior = NormalInverseWishart.weak(X)
    found = []
    for least in (0, 10**12):
        monkeypatch.setattr(block_sum, "TALL", least)
        blocks = [prior.block(X, 1.0 * (y == side)) for side in (1, -1)]
        maps = [sp.diags_array(y), sp.diags_array(-y)]
        incidence = y[:, None] * np.eye(5)[np.arange(300) % 5]
        options = {"bias": "flat", "incidence": incidence, "solver": "interior"}
        result = solve_blocks(blocks, maps, ExponentialMargin(2.0), **options)
        assert result.status is Status.CONVERGED
        found.append(result.objective)
    assert found[0] == pytest.approx(found[1], rel=1e-7)


def test_small_pseudo_counts_beside_large_ones_keep_their_logarithms():
    found = DirichletProduct([[1e-300, 1e30, 3.0]]).predictive_log_prob([[0]])
    assert found[0] == pytest.approx(-330.0 * np.log(10.0), rel=1e-12)
