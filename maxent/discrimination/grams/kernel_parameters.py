"""Kernels between feature vectors: their names, parameters and the user's functions."""

from __future__ import annotations

import numbers
import warnings

import numpy as np
import scipy.sparse as sp

from maxent._support import validation as v
from maxent._support.validation import called, user_stacklevel

KERNEL_NAMES = ("linear", "rbf", "poly", "sigmoid", "precomputed")
_ALONE = 1e-8  # share of the variance of all entries that is left to the others
LARGEST_FEATURE = 1e15  # inner products beyond it leave no digits to the margins


def check_kernel(kernel, *, gamma=1.0, degree=3, coef0=0.0):
    """Refuse a kernel that is not known, or parameters outside their domain.

    The parameters are checked whether or not the kernel uses them.
    """
    if not callable(kernel) and not (
        isinstance(kernel, str) and kernel in KERNEL_NAMES
    ):
        raise v.unknown("kernel", kernel, KERNEL_NAMES, ", or a callable")
    check_gamma(gamma)
    if not (
        v.is_real(degree) and isinstance(degree, numbers.Integral) and 0 <= degree <= 64
    ):
        raise v.not_this("degree", degree, "an integer between 0 and 64")
    v.check_number("coef0", coef0)


def check_gamma(gamma):
    """Checked gamma: "scale", "auto", or a finite number >= 0 as a float."""
    if isinstance(gamma, str):
        if gamma in ("scale", "auto"):
            return gamma
        raise v.unknown("gamma", gamma, ("scale", "auto"), ", or a finite number >= 0")
    if not v.is_real(gamma) or not 0 <= gamma < np.inf:
        raise v.not_this("gamma", gamma, "'scale', 'auto', or a finite number >= 0")
    return float(gamma)


def resolve_gamma(gamma, X, weight=None):
    """Number for gamma="scale", "auto" or a positive float, as in sklearn's SVC.

    With sample weights the variance behind "scale" is weighted, so that a row of
    weight two counts as two rows.
    """
    gamma = check_gamma(gamma)
    if gamma == "auto":
        return 1.0 / max(X.shape[1], 1)
    if gamma == "scale":
        with np.errstate(over="ignore"):
            variance = _variance_of_entries(X, weight)
        if not np.isfinite(variance):
            raise ValueError(
                "X has entries too large for gamma='scale' (their variance exceeds "
                "double precision); scale the features."
            )
        # a variance that underflows is as good as none
        return 1.0 / (X.shape[1] * variance) if variance > 1e-290 else 1.0
    return gamma


def warn_of_one_entry(gamma, X, columns=None):
    """Warn of an entry that makes up the variance of all, where gamma follows that.

    Among the other rows the kernel then is the same in all its digits but a few.

    Parameters
    ----------
    gamma : str or float
    X : ndarray or CSR (n, n_features)
    columns : list of str, optional
        Names of the columns.
    """
    entries, size = X.data if sp.issparse(X) else X, X.shape[0] * X.shape[1]
    if not (isinstance(gamma, str) and gamma == "scale" and size > 2 and entries.size):
        return
    variance = _variance_of_entries(X, None)
    mean = float(entries.sum(dtype=np.float64)) / size
    far = max(float(entries.max()) - mean, mean - float(entries.min()))
    # a single entry at this distance makes a variance of far^2 / (size - 1)
    if not far**2 > (1.0 - _ALONE) * (size - 1) * variance > 0:
        return
    _, column, value = v.farthest_entry(X, mean)
    warnings.warn(
        f"the entry {value:g} of {called('column', [column], columns)} of X is so far "
        "from all others that gamma='scale' follows it alone, and the kernel hardly "
        "tells other rows apart; correct or drop it, scale the columns, or set gamma.",
        UserWarning,
        stacklevel=user_stacklevel(),
    )


def _variance_of_entries(X, weight):
    n, d = X.shape
    if n == 0 or d == 0:
        return 0.0
    if weight is None and not sp.issparse(X):
        return float(X.var(dtype=np.float64))
    w = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    total = d * w.sum()
    mean = float(w @ np.asarray(X.sum(axis=1), dtype=np.float64).ravel()) / total
    if sp.issparse(X):
        squares = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
        return float(w @ squares) / total - mean**2
    centred = np.asarray(X, dtype=np.float64) - mean
    return float(w @ np.einsum("ij,ij->i", centred, centred)) / total


def call_kernel(function, X, Z):
    """Value of a user's kernel, checked for shape and finiteness."""
    value = v.as_doubles("the kernel callable's result", function(X, Z))
    shape = (X.shape[0], Z.shape[0])
    if value.shape != shape:
        raise ValueError(
            f"the kernel callable returned shape {value.shape} for {shape[0]} and "
            f"{shape[1]} rows; it must return {shape}, the matrix of all their values."
        )
    if not np.isfinite(value).all():
        i, j = np.argwhere(~np.isfinite(value))[0]
        raise ValueError(
            f"the kernel callable returned {value[i, j]} for rows {i} and {j} of its "
            "arguments; kernel values must be finite. Scale the features or bound "
            "the kernel."
        )
    return value


def check_features(X, kernel, columns=None):
    """Refuse features too large for a kernel; callables may take any.

    Those of inner products leave the margins no digits; of distances, the squares leave
    double precision. `columns` are their names, for the error.
    """
    if not callable(kernel):
        limit = v.LARGEST_ENTRY if kernel == "rbf" else LARGEST_FEATURE
        v.check_range("X", X, limit, at=True, columns=columns)


def warn_of_gram(kernel, X):
    """Warn of features that are a Gram matrix, whose kernel should be "precomputed".

    That is a square matrix, symmetric to the last bit, whose entries are no larger than
    the roots of the products of the diagonal ones, as of inner products.
    """
    if callable(kernel) or sp.issparse(X) or X.shape[0] != X.shape[1] or len(X) < 3:
        return
    if not (X[0] == X[:, 0]).all() or not (X == X.T).all():
        return
    own = np.diagonal(X)
    excess = X * X - np.outer(own, own) * (1 + 1e-6)
    bounded = own.min() > 0 and excess.max() <= 0
    if bounded and np.count_nonzero(X) > len(X):
        warnings.warn(
            f"X is a symmetric matrix of {len(X)} rows and columns, as a kernel matrix "
            f"is, and kernel={v.shown(kernel)} takes its columns as features; if it is "
            "one, pass kernel='precomputed'.",
            UserWarning,
            stacklevel=user_stacklevel(),
        )


def check_callable(kernel, X):
    """Refuse a kernel function that fails on eight rows of X or is not symmetric."""
    rows = X[np.unique(np.linspace(0, X.shape[0] - 1, 8).astype(np.intp))]
    try:
        values = call_kernel(kernel, rows, rows)
    except Exception:  # of any kind: the function is the user's
        if _takes_single_rows(kernel, rows):
            raise ValueError(
                f"kernel={v.shown(kernel)} takes two rows, but it is called with two "
                f"blocks of rows, here of shape {rows.shape}, and must return the "
                f"matrix ({len(rows)}, {len(rows)}) of their values. Pass instead "
                "lambda A, B: numpy.array([[k(a, b) for b in B] for a in A]), or a "
                "function of whole arrays, which is faster."
            ) from None
        raise
    largest = float(np.abs(values).max())
    v.check_kernel_size("the kernel callable", largest)
    # a callable may compute in single precision
    apart = np.abs(values - values.T)
    if apart.max() > 1e-4 * largest:
        i, j = np.unravel_index(np.argmax(apart), apart.shape)
        raise ValueError(
            "the kernel callable is not symmetric: its value for two rows is "
            f"{values[i, j]:g} in one order and {values[j, i]:g} in the other; "
            "return (k(X, Z) + k(Z, X).T) / 2 if that is what you mean."
        )


def _takes_single_rows(kernel, rows):
    """True if a function that fails on blocks has a number for a pair of rows."""
    if not isinstance(rows, np.ndarray):
        return False
    try:
        return v.is_real(kernel(rows[0], rows[-1]))
    except Exception:  # of any kind, as above
        return False
