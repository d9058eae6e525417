"""Shares of columns in a score: Shapley values against a reference row.

    f(x) - f(r) = sum_j share_j

With z = x - r, a quadratic form has the shares z_j (P z)_j, which are its Shapley
values, and its integrated gradients from r, too. A function with interactions of pairs
of columns at most has the mean of what x_j changes in r, and of what it changes in x.

Source: Shapley (1953); Sundararajan, Taly & Yan (2017); for quadratic forms Alcala &
Qin (2009), "partial decomposition contributions".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxent._support.typing import FloatArray, NDArray


def quadratic_shares(deviation: FloatArray, precision: FloatArray) -> FloatArray:
    """Shares of the columns in z'Pz.

    Parameters
    ----------
    deviation : ndarray (n, d)
        The rows z.
    precision : ndarray (d, d), (d,) or ()
        P, or its diagonal.

    Returns
    -------
    ndarray (n, d)
    """
    if precision.ndim == 2:
        return np.asarray(deviation * (deviation @ precision))
    return np.asarray(deviation**2 * precision)


def pairwise_shares(
    score: Callable[[NDArray[Any]], FloatArray],
    X: NDArray[Any],
    reference: NDArray[Any],
    n_columns: int,
) -> FloatArray:
    """Shares of the columns in a sum of functions of one or of two columns each.

    Parameters
    ----------
    score : callable
        Scores (n,) of rows.
    X : ndarray (n, k d)
        Rows: k numbers of every column, d apart.
    reference : ndarray (k d,)
        The row that has no share.
    n_columns : int
        d.

    Returns
    -------
    ndarray (n, d)
        Rows sum to ``score(X) - score(reference)``.
    """
    base, whole = score(reference[None])[0], score(X)
    shares = np.empty((len(X), n_columns))
    for j in range(n_columns):
        alone = np.repeat(reference[None], len(X), axis=0)
        alone[:, j::n_columns] = X[:, j::n_columns]
        without = X.copy()
        without[:, j::n_columns] = reference[j::n_columns]
        shares[:, j] = 0.5 * ((score(alone) - base) + (whole - score(without)))
    return shares
