"""True if linear functions of the features separate the classes of training rows.

If they do, or if some rows lie beyond a boundary that all others are on or beyond, the
likelihood of multinomial logistic regression has no maximum: it grows along a direction
B with (B_y - B_k) . x >= 0 for all rows and k, and > 0 for some.

Source: Albert & Anderson (1984), On the existence of maximum likelihood estimates in
logistic regression models. Konis (2007), Linear programming algorithms for detecting
separated data in binary logistic regression models.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

_PROGRAM_UP_TO = 2e5  # entries: half a second of linear programming
_FAR = 5.0  # log-odds that some row has where weights grow without bound
_EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def is_separated(X, y, W, b, intercept):
    """True if the likelihood of the rows has no maximum.

    Nothing is found of rows that are separated in part, beyond the size of the program.

    Parameters
    ----------
    X : ndarray or csr_array (n, d)
    y : ndarray of int (n,)
        Classes.
    W, b : ndarray (d, K), (K,)
        Weights that nearly maximise the likelihood.
    intercept : bool
        Whether b is free.
    """
    scores = np.asarray(X @ W) + b
    rows = np.arange(len(y))
    own = scores[rows, y].copy()
    scores[rows, y] = -np.inf
    margin = own - scores.max(axis=1)
    if (margin > 0).all():
        return True
    entries = X.nnz if sp.issparse(X) else X.size
    if margin.max() < _FAR or entries * (len(b) - 1) > _PROGRAM_UP_TO:
        return False
    return _has_direction(_differences(X, y, len(b), intercept))


def _differences(X, y, K, intercept):
    """Rows x (e_y - e_k), k != y, of features on a scale of one."""
    X = sp.csr_array(X)
    scale = np.maximum(abs(X).max(axis=0).toarray().ravel(), 1e-300)
    X = X @ sp.diags_array(1.0 / scale)
    if intercept:
        X = sp.hstack([X, np.ones((len(y), 1))]).tocsr()
    eye = np.eye(K)
    parts = []
    for k in range(K):
        for other in range(K):
            if other != k:
                parts.append(sp.kron((eye[k] - eye[other])[None], X[y == k]))
    return sp.vstack(parts).tocsr()


def _has_direction(A):
    """True if some B has A B >= 0, > 0 in some rows."""
    found = linprog(
        -np.asarray(A.sum(axis=0)).ravel(),
        A_ub=-A,
        b_ub=np.zeros(A.shape[0]),
        bounds=(-1.0, 1.0),
        options=_EXACT,
    )
    if not found.success:
        return False
    margin = A @ found.x
    return bool(margin.max() > 1e-4 and margin.min() > -1e-8)
