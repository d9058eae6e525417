"""Inner products and weighted means of statistics, over batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxent._support.typing import FloatArray, NDArray


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
