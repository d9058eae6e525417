"""Small dense linear algebra, interruptible between blocks."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, solve_triangular
from scipy.linalg.lapack import dpotrf, dpotrs

from maxent._core.tall_matrices import DenseRows, TallMatrix
from maxent._support.threads import effective_threads, share_out

_BLOCK = 512
_FEW_COLUMNS = 512  # beyond this size the product leaves the cache, and BLAS is faster

TALL = 400_000  # entries from which on a product with a vector is worth threads
_FEW_VECTORS = 4  # beyond this size BLAS reads the matrix less often

_NS = 0.04  # of a multiplication in a product of matrices


def small_solve(A, b):
    """Least-squares solution of A x = b for as many unknowns as there are biases."""
    if A.shape == (1, 1) and A[0, 0]:
        return b / A[0, 0]
    return np.linalg.lstsq(A, b, rcond=None)[0]


def row_chunks(n, cost):
    """Slices of n rows of this many multiplications, short enough for Ctrl-C."""
    rows = max(16, int(2e9 / max(cost, 1)))
    return [slice(lo, min(lo + rows, n)) for lo in range(0, n, rows)]


def cached_chunks(n, width):
    """Slices of n rows of this many numbers, few enough to stay in cache."""
    rows = max(16, 65536 // max(width, 1))
    return [slice(lo, min(lo + rows, n)) for lo in range(0, n, rows)]


def blocked_cholesky(A):
    """Lower Cholesky factor of A (overwritten), by blocks between checks for Ctrl-C.

    Only the lower triangle is read.
    """
    n = len(A)
    for k in range(0, n, _BLOCK):
        e = min(k + _BLOCK, n)
        # a lower triangle by rows is an upper one in Fortran order: no copy is needed
        upper, info = dpotrf(A[k:e, k:e].T, lower=0, clean=1, overwrite_a=1)
        A[k:e, k:e] = upper.T
        if info:
            raise LinAlgError(f"the leading minor {k + info} is not positive")
        if e < n:
            A[e:, k:e] = solve_triangular(
                A[k:e, k:e], A[e:, k:e].T, lower=True, check_finite=False
            ).T
            _subtract_products(A, k, e)
    return A


def _subtract_products(A, k, e):
    """A[i, j] -= A[i, k:e] . A[j, k:e] for i >= j >= e, and more above the diagonal."""
    n = len(A)
    starts = range(e, n, _BLOCK)[::-1]  # the longest first

    def work(i, *_):
        rows = slice(starts[i], min(starts[i] + _BLOCK, n))
        A[rows, e : rows.stop] -= A[rows, k:e] @ A[e : rows.stop, k:e].T

    share_out(work, len(starts), _NS * 0.5 * (e - k) * (n - e) ** 2)


def solve_lower(L, rhs):
    return dpotrs(L.T, rhs, lower=0)[0]  # the transpose is in Fortran order


def weighted_gram(Z, weight):
    """Z' diag(weight) Z of rows Z (n, d) and weights >= 0, as an array (d, d)."""
    n, d = Z.shape
    if d <= _FEW_COLUMNS and (isinstance(Z, TallMatrix) or Z.flags.c_contiguous):
        weight = np.ascontiguousarray(weight, dtype=np.float64)
        return _tall(Z).gram(weight, effective_threads())
    out = np.zeros((d, d))
    size = max(1, math.ceil(d / max(1, math.ceil(d / _BLOCK))))
    blocks = [slice(lo, lo + size) for lo in range(0, d, size)]
    pairs = [(I, J) for i, I in enumerate(blocks) for J in blocks[: i + 1]]
    for part in row_chunks(n, d * d):
        scaled = as_array(Z, part) * np.sqrt(weight[part, None])

        def work(k, *_, scaled=scaled):
            I, J = pairs[k]
            out[I, J] += scaled[:, I].T @ scaled[:, J]

        share_out(work, len(pairs), _NS * 0.5 * len(scaled) * d * d)
    for I, J in pairs:
        if I != J:
            out[J, I] = out[I, J].T
    return out


def as_array(Z, part=slice(None)):
    """Some rows of a TallMatrix, or of an array, as an array."""
    if not isinstance(Z, TallMatrix):
        return Z[part]
    start, stop, _ = part.indices(Z.n_rows)
    return Z.to_array(start, stop, effective_threads())


def _tall(Z):
    return Z if isinstance(Z, TallMatrix) else TallMatrix([DenseRows(Z)])


def times(Z, x):
    """Z x of an array or TallMatrix (n, d) and x (d,) or (d, k)."""
    return _product(Z, x) if _is_tall(Z, x) else Z @ x


def transposed_times(Z, x):
    """Z' x of an array or TallMatrix (n, d) and x (n,) or (n, k)."""
    return _product(Z, x, transposed=True) if _is_tall(Z, x) else Z.T @ x


def _is_tall(Z, x):
    """True if Z is no array, or the product is worth threads and x has few columns."""
    few = x.ndim == 1 or x.shape[1] <= _FEW_VECTORS
    return isinstance(Z, TallMatrix) or (
        few and Z.size >= TALL and Z.flags.c_contiguous
    )


def _product(Z, x, transposed=False):
    Z = _tall(Z)
    vectors = np.ascontiguousarray(np.atleast_2d(x.T), dtype=np.float64)
    kernel = Z.transposed_times if transposed else Z.times
    product = kernel(vectors, effective_threads())
    return product[0] if x.ndim == 1 else product.T


def weighted_products(E, weight):
    """E' diag(weight) E of an array or sparse E (n, k), as an array (k, k)."""
    if sp.issparse(E):
        return (E.T @ sp.diags_array(weight) @ E).toarray()
    return (E.T * weight) @ E
