"""Kernel values between sparse rows, from their inner products and squared norms."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from maxent._core.machines import gram as _gram


def norms_cancel(gamma, xx, zz):
    """True if squared distances from squared norms are too rough for an RBF kernel.

    Kernel values are exp(-gamma |x - z|^2), where distances of rows near each other
    cancel to the rounding of the norms. NaN and infinite norms cancel as well.
    """
    largest = xx.max(initial=0.0) + zz.max(initial=0.0)
    return not gamma * largest <= _gram.CANCELLING


def sparse_norms(X):
    """Squared norms (n,) of sparse rows."""
    return np.asarray(X.multiply(X).sum(axis=1)).ravel()


def on_shared_columns(X, Z):
    """Sparse rows with the same inner products, without the columns that Z lacks.

    The product X Z' takes an index for each column of Z, whatever Z holds: 8.6 GB
    where two rows have 2^31 columns. Below 16 columns an entry that is 64 bytes an
    entry at most, and faster than looking for the columns.
    """
    if Z.shape[1] <= 16 * Z.nnz:
        return X, Z
    used, places = np.unique(Z.indices, return_inverse=True)
    Z = sp.csr_array((Z.data, places, Z.indptr), shape=(Z.shape[0], len(used)))
    places = np.searchsorted(used, X.indices)
    kept = places < len(used)
    kept[kept] = used[places[kept]] == X.indices[kept]
    indptr = np.concatenate([[0], np.cumsum(kept)])[X.indptr]
    shape = (X.shape[0], len(used))
    return sp.csr_array((X.data[kept], places[kept], indptr), shape=shape), Z


def transform_inner_products(kernel, spec, inner, xx, zz, X, Z):
    """Kernel values from inner products and squared norms (in place).

    X and Z are pairs of sparse rows and the selection of them, looked at where squared
    norms cancel.
    """
    _, gamma, coef0, degree = spec
    if kernel == "rbf":
        inner *= -2.0
        inner += xx[:, None]
        inner += zz[None, :]
        if norms_cancel(gamma, xx, zz):
            _sum_near_differences(inner, gamma, xx, zz, _selected(*X), _selected(*Z))
        np.maximum(inner, 0.0, out=inner)
        inner *= -gamma
        return np.exp(inner, out=inner)
    if kernel == "poly":
        return (gamma * inner + coef0) ** degree
    if kernel == "sigmoid":
        return np.tanh(gamma * inner + coef0)
    return inner


def _selected(rows, selection):
    return rows if selection is None else rows[selection]


def _sum_near_differences(squares, gamma, xx, zz, X, Z):
    """Squared distances of sparse rows that may be near, summed from differences.

    As the tiles of :mod:`maxent._core.machines.gram` do it for dense rows.
    """
    most = max(np.diff(X.indptr).max(initial=1), np.diff(Z.indptr).max(initial=1))
    size = gamma * (xx[:, None] + zz[None, :])
    error = 2.0 * (most + 4) * np.finfo(np.float64).eps * size
    near = (size > _gram.CANCELLING) & ~(gamma * squares > _gram.FAR + error)
    i, j = np.nonzero(near)
    step = max(1, int(1e6 // most))
    for lo in range(0, len(i), step):
        a, b = i[lo : lo + step], j[lo : lo + step]
        squares[a, b] = sparse_norms(X[a] - Z[b])
