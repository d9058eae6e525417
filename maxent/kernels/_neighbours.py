"""Nearest training rows: bags of rows and theirs, counts pooled with theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxent._support import validation as v
from maxent.families import ExponentialFamily
from maxent.kernels import _fits


def nearest(rows: Any, X: Any, k: int) -> Any:
    """Places (n, k) of the nearest rows; of the rows themselves without each one."""
    from sklearn.neighbors import NearestNeighbors

    if rows.shape[0] <= k:
        raise ValueError(
            f"neighbours={k} needs more than {k} training rows, but there are "
            f"{rows.shape[0]}."
        )
    return NearestNeighbors(n_neighbors=k).fit(rows).kneighbors(X)[1]


def single_rows(X: Any, model: Any, k: int) -> NDArray[np.float64]:
    """Rows (n, d) that have k neighbours, for a family; of other models refused."""
    cls = None if model is None else _fits.model_class(model)
    rows = None
    if cls is not None and issubclass(cls, ExponentialFamily):
        try:
            rows = v.as_doubles("X", X)
        except (TypeError, ValueError):
            rows = None
    if rows is None or rows.ndim != 2:
        raise ValueError(
            f"neighbours={k} needs single rows, an array (n_samples, d) and a family; "
            f"model={v.shown(model)} has data without a distance. Use neighbours=None."
        )
    return rows


def bags_around(
    rows: NDArray[np.float64], X: NDArray[np.float64] | None, k: int
) -> list[NDArray[np.float64]]:
    """Bags of each row of X and its nearest training rows; X None is these rows."""
    if X is not None and X.shape[1] != rows.shape[1]:
        raise ValueError(
            f"X has {X.shape[1]} columns, but the training rows had {rows.shape[1]}."
        )
    near = nearest(rows, X, k)
    own = rows if X is None else X
    return list(np.concatenate([own[:, None], rows[near]], axis=1))


def pooled(counts: Any, X: Any, k: int) -> Any:
    """Counts of rows X and of their nearest training rows; X None is these rows.

    Rows are compared by the square roots of their proportions.
    """
    near = nearest(_roots(counts), None if X is None else _roots(X), k)
    n = len(near)
    ones = np.ones(n * k)
    picked = sparse.csr_array(
        (ones, near.ravel(), np.arange(0, n * k + 1, k)), shape=(n, counts.shape[0])
    )
    return sparse.csr_array((counts if X is None else X) + picked @ counts)


def _roots(counts):
    """Square roots of proportions."""
    total = np.asarray(counts.sum(axis=1)).ravel()
    scale = sparse.diags_array(1.0 / np.where(total > 0, total, 1.0))
    return sparse.csr_array(scale @ counts).sqrt()
