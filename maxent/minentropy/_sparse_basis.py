"""Sparse rows as a dense solver takes them."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack, solve_triangular


def dense_rows(D):
    """Dense rows Z with Z Z' = D D', and how weights of Z become weights of D.

    Wide sparse rows are not made dense: Z is the Cholesky factor of their Gram matrix,
    of their rank. The second is a function, or None where Z is D.
    """
    if not sp.issparse(D):
        return D, None
    rows, d = D.shape
    if rows >= d:
        return D.toarray(), None
    gram = (D @ D.T).toarray()
    L, pivots, rank, _ = lapack.dpstrf(gram, tol=-1.0, lower=1)
    rank, order = max(rank, 1), pivots - 1
    Z = np.empty((rows, rank))
    Z[order] = np.tril(L)[:, :rank]
    first, spanning = L[:rank, :rank], D[order[:rank]]

    def weights(w):
        return spanning.T @ solve_triangular(first, w, lower=True, trans="T")

    return Z, weights
