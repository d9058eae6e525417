"""Kernels divided by the square roots of those of each datum with itself."""

from __future__ import annotations

import math
import warnings

import numpy as np
from numpy.typing import NDArray

from maxent._support.validation import user_stacklevel

Array = NDArray[np.float64]
# tuned on series and strings of 100 to 3000 steps: where the nearest data had kernels
# above 0.02 machines were as good as on short horizons, below 0.01 mostly near chance
_NEAR, _FEWEST = 0.01, 10
_FAIR = 0.1  # kernel of the nearest data that a remedy aims at


def scaled_by(K: Array, left: Array, right: Array | None = None) -> Array:
    """K / sqrt(left right'); without `right` symmetric, with a diagonal of ones.

    Raises
    ------
    ValueError
        For a datum whose kernel with itself is not positive; it is named.
    """
    for name, own in (("P", left), ("Q", right)):
        if own is not None and not (own > 0).all():
            i = int(np.argmin(own > 0))
            raise ValueError(
                f"{name}[{i}] has the kernel {own[i]:g} with itself, by which nothing "
                "can be normalised; leave it out, or use normalize=False."
            )
    root = np.sqrt(left)
    out = K / np.outer(root, root if right is None else np.sqrt(right))
    if right is None:
        np.fill_diagonal(out, 1.0)
    return out


def log_scaled(L: Array, left: Array, right: Array | None = None) -> Array:
    """Logarithms of kernels, normalised: L - (left + right) / 2.

    Parameters
    ----------
    L : ndarray (n, m, ...)
        Logarithms of the kernel, with axes for horizons or powers.
    left : ndarray (n, ...)
        Those of each datum of the first list with itself.
    right : ndarray (m, ...), optional
        Those of the second; None takes `left` again, and sets the diagonal to zero.
    """
    out = L - 0.5 * (left[:, None] + (left if right is None else right))
    if right is None:
        i = np.arange(len(out))
        out[i, i] = 0.0
    return np.asarray(out)


def warn_of_diagonal(
    K: Array, horizon: int | None, rows: NDArray[np.intp] | None = None
) -> bool:
    """Warn where most of the data are like no other, so that nothing is learnt.

    Parameters
    ----------
    K : ndarray (n, n) or (k, n)
        Normalised kernel of the training data, or rows of it.
    horizon : int or None
        That of the kernel; None of data that are no sequences, which may differ.
    rows : ndarray of int (k,), optional
        Which rows; None is all.

    Returns
    -------
    bool
        Whether there was a warning.
    """
    if not horizon or len(K) < _FEWEST:
        return False
    others = K.copy()
    i = np.arange(len(K))
    others[i, i if rows is None else rows] = 0.0
    nearest = float(np.median(others.max(axis=1)))
    if nearest < _NEAR:
        # logarithms of kernels fall about as the number of steps compared
        share = math.log(_FAIR) / math.log(max(nearest, np.finfo(float).tiny))
        shorter = max(1, min(10, horizon // 2, int((horizon + 1) * share) - 1))
        warnings.warn(
            f"the normalised kernel is nearly diagonal: half of {len(K)} data have "
            f"no other with a kernel above {nearest:.1g}, of at most 1, so a machine "
            f"learns little from it. Take a shorter horizon (now {horizon}; try "
            f"horizon={shorter}, and 1 to 5 with many columns), a smaller rho, or "
            "smaller models.",
            UserWarning,
            stacklevel=user_stacklevel(),
        )
    return nearest < _NEAR


def exponential(L: Array) -> Array:
    """exp, +inf where it overflows."""
    with np.errstate(over="ignore"):
        return np.exp(L)
