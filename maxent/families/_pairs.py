"""All pairs of two batches: tiles, distances, determinants of sums, inner products."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxent._support.typing import FloatArray, NDArray

_TILE = 2**18  # numbers in one array of a tile: about what a second-level cache holds
# Squared distances below this share of the squared norms are taken from differences:
# the product form has lost two digits there, and the rest are at rounding level.
_CLOSE = 1e-2
# Dimension from which one factorisation by LAPACK a pair is faster than eliminating all
# pairs of a tile at once; measured on random matrices, 200 x 200 pairs, one thread.
_BLOCKED = 16


def tiles(n_rows: int, width: int) -> list[slice]:
    """Slices of rows, `width` numbers each, that make arrays of a bounded size."""
    step = max(1, _TILE // max(width, 1))
    return [slice(lo, min(lo + step, n_rows)) for lo in range(0, n_rows, step)]


def mirrored(L: FloatArray) -> FloatArray:
    """A square matrix whose lower triangle repeats the upper one exactly (in place)."""
    i, j = np.tril_indices(len(L), -1)
    L[i, j] = L[j, i]
    return L


def squared_distances(X, Y):
    """|x_i - y_j|^2, (n, m), accurate for close pairs far from the origin too."""
    offset = X.mean(axis=0) if len(X) else 0.0
    X, Y = X - offset, Y - offset
    scale = np.einsum("nd,nd->n", X, X)[:, None] + np.einsum("md,md->m", Y, Y)
    out = scale - 2.0 * (X @ Y.T)
    i, j = np.nonzero(out < _CLOSE * scale)
    for part in tiles(len(i), X.shape[1]):
        difference = X[i[part]] - Y[j[part]]
        out[i[part], j[part]] = np.einsum("pd,pd->p", difference, difference)
    return out


def sum_log_det(S, R, x=None, y=None):
    """log|S_i + R_j| and (x_i - y_j)' (S_i + R_j)^{-1} (x_i - y_j), each (n, m).

    Matrices (n, d, d) and (m, d, d), positive definite; without vectors the second
    result is zero. One Cholesky factorisation a pair, of the sum bordered by the
    difference, whose last row is then the whitened difference: no inverse.
    """
    n, m, d = len(S), len(R), S.shape[-1]
    if x is None:
        x, y = np.zeros((n, d)), np.zeros((m, d))
    log_det, distance = np.empty((n, m)), np.empty((n, m))
    work = _by_lapack if d > _BLOCKED else _by_elimination
    # one row against itself only, if both batches are the same
    same = S is R and x is y
    for part in tiles(n, m * (d + 1) * (d + 1)):
        to = slice(part.start if same else 0, m)
        log_det[part, to], distance[part, to] = work(S[part], R[to], x[part], y[to])
    return (mirrored(log_det), mirrored(distance)) if same else (log_det, distance)


def _by_elimination(S, R, x, y):
    """Symmetric elimination of all pairs at once; the pairs are the last axes."""
    d = S.shape[-1]
    W = np.empty((d + 1, d, len(S), len(R)))
    np.add(
        np.moveaxis(S, 0, -1)[..., None], np.moveaxis(R, 0, -1)[:, :, None], out=W[:d]
    )
    np.subtract(x.T[..., None], y.T[:, None], out=W[d])
    log_det, distance = 0.0, 0.0
    for j in range(d):
        log_det = log_det + np.log(W[j, j])
        factor = W[j + 1 :, j] / W[j, j]
        distance = distance + W[d, j] * factor[-1]
        for i in range(j + 1, d + 1):  # lower triangle, and the border
            end = min(i + 1, d)
            W[i, j + 1 : end] -= factor[i - j - 1] * W[j + 1 : end, j]
    return log_det, distance


def _by_lapack(S, R, x, y):
    d = S.shape[-1]
    W = np.zeros((len(S), len(R), d + 1, d + 1))
    np.add(S[:, None], R, out=W[..., :d, :d])
    np.subtract(x[:, None], y, out=W[..., d, :d])
    # the corner must exceed the squared whitened difference, and enters nothing else
    W[..., d, d] = 1e300
    L = np.linalg.cholesky(W)
    diagonal = np.diagonal(L, axis1=-2, axis2=-1)[..., :d]
    return 2.0 * np.log(diagonal).sum(axis=-1), np.square(L[..., d, :d]).sum(axis=-1)


# -- statistics against parameters -----------------------------------------------------
def inner(T: FloatArray, eta: FloatArray) -> FloatArray:
    """T . eta with 0 * inf = 0: the statistics of every row against every parameter.

    T is (..., n, k) and eta (batch, k); the result is (batch, n), the leading axes of
    T broadcast against the batch. Infinite entries are log 0: of a probability, or of a
    row on the edge of the support. Where both infinities meet in a row, -inf wins.
    """
    lost_T, lost_eta = ~np.isfinite(T), ~np.isfinite(eta)
    if not lost_T.any() and not lost_eta.any():
        return _product(T, eta)
    out = _product(np.where(lost_T, 0.0, T), np.where(lost_eta, 0.0, eta))
    for sign in (1, -1):
        for a in (1, -1):  # the sign of the statistic; the other's is a * sign
            of_T, of_eta = T * a > 0, eta * a * sign > 0
            found = _product(of_T & lost_T, of_eta) + _product(of_T, of_eta & lost_eta)
            out = np.where(found > 0, sign * np.inf, out)
    return out


def paired(T: FloatArray, eta: FloatArray) -> FloatArray:
    """T . eta entry by entry of the batch, with 0 * inf = 0; (batch,)."""
    with np.errstate(invalid="ignore"):
        return np.where((T == 0) | (eta == 0), 0.0, T * eta).sum(axis=-1)


def _product(T: NDArray[Any], eta: NDArray[Any]) -> NDArray[Any]:
    T, eta = np.asarray(T, dtype=np.float64), np.asarray(eta, dtype=np.float64)
    if T.ndim == 2:
        flat = eta.reshape(-1, eta.shape[-1]) @ T.T
        return flat.reshape(eta.shape[:-1] + T.shape[:1])
    return np.matmul(T, eta[..., None])[..., 0]


def weighted_mean(W: FloatArray, total: FloatArray, T: FloatArray) -> FloatArray:
    """sum_t W[..., t] T[..., t, :] / total, (..., k)."""
    share = W / total[..., None]
    if T.ndim == 2:
        return share @ T
    return np.matmul(share[..., None, :], T)[..., 0, :]
