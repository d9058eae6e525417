"""Products of tall matrices against NumPy's, of every kind of columns side by side."""

import gc
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from maxent._core.normal_wishart import CovarianceRows
from maxent._core.tall_matrices import DenseRows, SparseRows, TallMatrix, VisitRows

from maxent._support.linalg import (
    TALL,
    blocked_cholesky,
    times,
    transposed_times,
    weighted_gram,
)
from maxent._support.threads import single_threaded_blas, threads_of


def dense(rng, n, d):
    """A source, and its columns as an array."""
    Z = rng.normal(size=(n, d))
    return DenseRows(Z), Z


def covariance(rng, n, d):
    """Columns over pairs, one after another as the definition has them."""
    U, kappa, df, rest = rng.normal(size=(n, d)), 3.0, d + 2.5, 0.7
    columns = []
    for i in range(d):
        columns.append(np.sqrt(df / 2) * (U[:, i] ** 2 - 1 / df))
        columns += [np.sqrt(df) * U[:, i] * U[:, j] for j in range(i + 1, d)]
    columns += [np.sqrt(df / kappa) * u for u in U.T]
    columns.append(np.full(n, np.sqrt(rest)))
    source = CovarianceRows(U, np.square(U).sum(axis=1), kappa, df, rest)
    return source, np.column_stack(columns)


def csr(A):
    A = sp.csr_array(A)
    return A.indptr.astype(np.int32), A.indices.astype(np.int32), A.data


def visits(rng, n, sizes, kind):
    """Groups of so many cells: each visited once, some of them, or counted."""
    first = np.concatenate([[0], np.cumsum(sizes)])
    cells = np.zeros((n, first[-1]))
    for g, size in enumerate(sizes):
        if kind == "counts":
            cells[:, first[g] : first[g + 1]] = rng.poisson(0.8, size=(n, size))
        else:
            at = np.arange(n) if kind == "all" else np.flatnonzero(rng.random(n) < 0.6)
            cells[at, first[g] + rng.integers(size, size=len(at))] = 1.0
    whose = np.repeat(np.eye(len(sizes)), sizes, axis=0)
    groups = cells @ whose
    root, spread = rng.uniform(0.5, 2.0, first[-1]), rng.uniform(-1, 1, first[-1])
    source = VisitRows(*csr(cells), *csr(groups), first, root, spread)
    return source, cells * root - (groups @ whose.T) * spread


KINDS = {
    "dense": lambda rng, n: dense(rng, n, 13),
    "one column": lambda rng, n: dense(rng, n, 1),
    "covariance": lambda rng, n: covariance(rng, n, 4),
    "visits": lambda rng, n: visits(rng, n, [4, 1, 3], "all"),
    "some visits": lambda rng, n: visits(rng, n, [2, 5, 3], "some"),
    "counts": lambda rng, n: visits(rng, n, [6, 2], "counts"),
}


def joined(rng, n, kinds, scaled=True):
    """Matrix of these kinds, every other one scaled, and the same as an array."""
    sources, scales, parts = [], [], []
    for k, kind in enumerate(kinds):
        source, part = KINDS[kind](rng, n)
        by = rng.normal(size=n) if scaled and k % 2 == 0 else None
        sources.append(source)
        scales.append(by)
        parts.append(part if by is None else by[:, None] * part)
    return TallMatrix(sources, scales), np.column_stack(parts)


SETS = [*([kind] for kind in KINDS), list(KINDS), ["visits", "visits", "dense"]]


@pytest.mark.parametrize("kinds", SETS, ids="+".join)
@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 200])
def test_every_product_is_that_of_the_array(kinds, n, rng):
    matrix, Z = joined(rng, n, kinds)
    same = {"rtol": 1e-12, "atol": 1e-12 * (n + 1)}
    assert matrix.shape == Z.shape
    np.testing.assert_allclose(matrix.to_array(), Z, **same)
    some = matrix.to_array(n // 3, n - n // 5, 2)
    np.testing.assert_array_equal(some, matrix.to_array()[n // 3 : n - n // 5])
    at = rng.integers(n, size=7 if n else 0)
    np.testing.assert_allclose(matrix[at], Z[at], **same)
    weight = rng.exponential(size=n)
    weight[::3] = 0.0
    found = matrix.gram(weight)
    np.testing.assert_allclose(found, (Z.T * weight) @ Z, **same)
    np.testing.assert_array_equal(found, found.T)
    for k in (0, 1, 3):
        x, w = rng.normal(size=(k, Z.shape[1])), rng.normal(size=(k, n))
        np.testing.assert_allclose(matrix.times(x), x @ Z.T, **same)
        np.testing.assert_allclose(matrix.transposed_times(w), w @ Z, **same)


@pytest.mark.parametrize("kinds", [["dense"], ["covariance", "visits", "counts"]])
def test_parts_of_many_rows_are_added_up_with_the_same_bits(kinds, rng):
    n = 60_001
    matrix, Z = joined(rng, n, kinds)
    for threads in (1, 2):
        np.testing.assert_allclose(matrix.to_array(n_threads=threads), Z, atol=1e-11)
    weight, x = rng.exponential(size=n), rng.normal(size=(2, Z.shape[1]))
    w = rng.normal(size=(2, n))
    wanted = (Z.T * weight) @ Z, x @ Z.T, w @ Z
    calls = (matrix.gram, weight), (matrix.times, x), (matrix.transposed_times, w)
    for (call, argument), want in zip(calls, wanted, strict=True):
        found = call(argument)
        np.testing.assert_allclose(found, want, rtol=1e-10, atol=1e-8)
        for threads in (2, 3):
            np.testing.assert_array_equal(call(argument, threads), found)


@pytest.mark.parametrize("k", [1, 4, 5, 9])
def test_any_number_of_vectors_will_do(k, rng):
    matrix, Z = joined(rng, 70, ["visits", "covariance"])
    x, w = rng.normal(size=(Z.shape[1], k)), rng.normal(size=(70, k))
    np.testing.assert_allclose(times(matrix, x), Z @ x, atol=1e-11)
    np.testing.assert_allclose(transposed_times(matrix, w), Z.T @ w, atol=1e-11)


def test_rows_that_are_not_written_take_no_memory(rng):
    wide = sp.csr_array((np.ones(8), np.arange(8) * 10**7, [0, 4, 8]), (2, 8 * 10**7))
    tracemalloc.start()
    TallMatrix([SparseRows(*csr(wide), wide.shape[1])]).transposed_times(
        np.ones((1, 2))
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2e9  # 0.64e9 are the sums


def test_lists_may_change_afterwards(rng):
    Z, by = rng.normal(size=(9, 2)), rng.normal(size=9)
    sources, scales = [DenseRows(Z)], [by.copy()]
    matrix = TallMatrix(sources, scales)
    sources.clear()
    scales.clear()
    gc.collect()
    np.testing.assert_array_equal(matrix.to_array(), by[:, None] * Z)


def test_sparse_rows_multiply_vectors(rng):
    A = sp.random_array((50_000, 40), density=0.3, format="csr", random_state=rng)
    matrix = TallMatrix([SparseRows(*csr(A), 40)])
    x, w = rng.normal(size=(1, 40)), rng.normal(size=(1, 50_000))
    for threads in (1, 2):
        found = matrix.times(x, threads), matrix.transposed_times(w, threads)
        np.testing.assert_allclose(found[0][0], A @ x[0], atol=1e-12)
        np.testing.assert_allclose(found[1][0], A.T @ w[0], rtol=1e-10, atol=1e-9)
    for refused in (matrix.to_array, lambda: matrix.gram(np.ones(50_000))):
        with pytest.raises(ValueError, match="not written"):
            refused()


@pytest.mark.parametrize("d", [1, 3, 4, 7, 8, 9, 16, 20, 24, 33, 48, 57, 130, 600])
@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 200])
def test_weighted_sums_of_outer_products_in_every_remainder_of_the_tiles(n, d, rng):
    Z, weight = rng.normal(size=(n, d)), rng.exponential(size=n)
    found = weighted_gram(Z, weight)
    np.testing.assert_allclose(found, (Z.T * weight) @ Z, atol=1e-13 * (n + 1))
    np.testing.assert_array_equal(found, found.T)


def test_parts_that_are_long_go_in_several_steps(rng):
    Z, weight = rng.normal(size=(6500, 512)), rng.exponential(size=6500)
    found = weighted_gram(Z, weight)
    np.testing.assert_allclose(found, (Z.T * weight) @ Z, rtol=1e-10, atol=1e-8)


@pytest.mark.parametrize("shape", [(TALL, 1), (TALL // 57 + 1, 57), (300, 2000)])
def test_products_of_arrays_of_any_size_and_order(shape, rng):
    Z = rng.normal(size=shape)
    n, d = shape
    for array in (Z, np.asfortranarray(Z), Z[: n // 2]):
        x, w = rng.normal(size=(d, 2)), rng.normal(size=(len(array), 2))
        for k in (x, x[:, 0], x[:, :0]):
            np.testing.assert_allclose(times(array, k), array @ k, rtol=1e-9, atol=1e-9)
        for k in (w, w[:, 0], w[:, :0]):
            found = transposed_times(array, k)
            np.testing.assert_allclose(found, array.T @ k, rtol=1e-9, atol=1e-8)


def test_blocks_of_many_columns_have_the_same_bits_on_two_threads(rng):
    Z, weight = rng.normal(size=(400, 1200)), rng.exponential(size=400)
    B = weighted_gram(Z, weight)
    np.testing.assert_allclose(B, (Z.T * weight) @ Z, rtol=1e-11, atol=1e-10)
    A = B + np.eye(1200)
    factors = []
    for threads in (1, 2):
        with threads_of(threads), single_threaded_blas():
            np.testing.assert_array_equal(weighted_gram(Z, weight), B)
            matrix = TallMatrix([DenseRows(Z)])
            np.testing.assert_array_equal(weighted_gram(matrix, weight), B)
            factors.append(np.tril(blocked_cholesky(A.copy())))
    np.testing.assert_array_equal(*factors)
    np.testing.assert_allclose(factors[0], np.linalg.cholesky(A), rtol=1e-9, atol=1e-9)


def test_rows_that_are_not_contiguous_and_weights_of_any_stride(rng):
    Z, weight = rng.normal(size=(5, 40)).T, rng.exponential(size=80)[::2]
    np.testing.assert_allclose(weighted_gram(Z, weight), (Z.T * weight) @ Z, atol=1e-12)


def test_what_the_rows_are_made_of_is_looked_at_once(rng):
    U = rng.normal(size=(5, 2))
    square = np.square(U).sum(axis=1)
    assert CovarianceRows(U, square, 1.0, 4.0, 0.5).finite
    assert not CovarianceRows(U, np.append(square[:4], np.inf), 1.0, 4.0, 0.5).finite
    assert not CovarianceRows(U, square, 1.0, np.nan, 0.5).finite
    one = csr(np.eye(3, 2)), csr(np.array([[1.0], [1.0], [0.0]])), np.array([0, 2])
    for root, finite in ((2.0, True), (np.nan, False), (np.inf, False)):
        cells = np.array([1.0, root]), np.ones(2)
        assert VisitRows(*one[0], *one[1], one[2], *cells).finite == finite
        assert VisitRows(*one[0], *one[1], one[2], *cells[::-1]).finite == finite


def test_columns_that_do_not_fit_are_refused(rng):
    source, _ = dense(rng, 3, 2)
    matrix = TallMatrix([source])
    nothing = TallMatrix([dense(rng, 3, 0)[0]])
    np.testing.assert_array_equal(nothing.gram(np.ones(3)), np.zeros((0, 0)))
    np.testing.assert_array_equal(nothing.times(np.ones((2, 0))), np.zeros((2, 3)))
    assert nothing[np.array([1])].shape == (1, 0)
    for call in (
        lambda: TallMatrix([source, dense(rng, 4, 2)[0]]),
        lambda: TallMatrix([source], [np.ones(4)]),
        lambda: TallMatrix([source], []),
        lambda: TallMatrix([]),
        lambda: matrix.gram(np.ones(2)),
        lambda: matrix.times(np.ones((1, 3))),
        lambda: matrix.transposed_times(np.ones((1, 2))),
        lambda: CovarianceRows(np.ones((3, 0)), np.ones(3), 1.0, 4.0, 0.5),
        lambda: CovarianceRows(np.ones((3, 1)), np.ones(2), 1.0, 4.0, 0.5),
        lambda: SparseRows(np.array([0, 2], np.int32), *csr(np.eye(1))[1:], 1),
        lambda: SparseRows(np.array([1, 1], np.int32), *csr(np.eye(1))[1:], 1),
        lambda: VisitRows(
            *csr(np.eye(2)), *csr(np.ones((2, 1))), np.array([0, 3]), *np.ones((2, 2))
        ),
        lambda: VisitRows(
            *csr(np.eye(2)), *csr(np.ones((3, 1))), np.array([0, 2]), *np.ones((2, 2))
        ),
    ):
        with pytest.raises(ValueError, match=r"fit|weights|factors"):
            call()
    for at in (3, -1):
        with pytest.raises(IndexError, match=f"no row {at} of 3"):
            matrix[np.array([at])]
    for start, stop in ((-1, 2), (2, 1), (0, 4)):
        with pytest.raises(IndexError, match=f"no rows {start} to {stop} of 3"):
            matrix.to_array(start, stop)
    for wrong in (None, [None], ["dense"]):
        with pytest.raises(TypeError):
            TallMatrix(wrong)
