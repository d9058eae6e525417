"""Nearest training rows, and counts pooled with theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse


def nearest(rows: Any, X: Any, k: int) -> Any:
    """Places (n, k) of the nearest rows; of the rows themselves without each one."""
    from sklearn.neighbors import NearestNeighbors

    if rows.shape[0] <= k:
        raise ValueError(
            f"neighbours={k} needs more than {k} training rows, but there are "
            f"{rows.shape[0]}."
        )
    return NearestNeighbors(n_neighbors=k).fit(rows).kneighbors(X)[1]


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
