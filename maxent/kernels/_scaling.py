"""Kernels divided by the square roots of those of each datum with itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


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


def exponential(L: Array) -> Array:
    """exp, +inf where it overflows."""
    with np.errstate(over="ignore"):
        return np.exp(L)
