"""Checks of parameters, rows and weights; every error names the entry and a remedy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from maxent._support import validation as v
from maxent._support.typing import ArrayLike, FloatArray, NDArray

SUM_TOLERANCE = 1e-8  # how far probabilities may sum from one, and norms be from one
ROW_TOLERANCE = 1e-6  # the same of rows of data, which may be in single precision
SMALLEST = 1e-300  # of positive parameters, whose reciprocals are finite
_ASYMMETRY = 1e-8  # of the largest entry


def label(name: str, index: Iterable[Any]) -> str:
    """Name of one entry of an array, as an error quotes it."""
    index = tuple(int(i) for i in index)
    return name + (f"[{', '.join(map(str, index))}]" if index else "")


def first(mask: NDArray[Any]) -> tuple[Any, ...]:
    """Index of the first true entry."""
    return tuple(np.argwhere(mask)[0])


def real_array(name: str, value: ArrayLike, n_axes: int = 0) -> FloatArray:
    """A copy of a parameter: finite doubles with at least `n_axes` axes."""
    array = np.array(v.as_doubles(name, value))
    if array.ndim < n_axes:
        raise ValueError(
            f"{name} has shape {array.shape}; one distribution needs {n_axes} "
            f"{'axis' if n_axes == 1 else 'axes'}, and leading axes are the batch."
        )
    if n_axes and 0 in array.shape[-n_axes:]:
        raise ValueError(f"{name} has shape {array.shape}: it has no dimension.")
    wrong = ~np.isfinite(array)
    if wrong.any():
        at = first(wrong)
        raise ValueError(f"{label(name, at)}={array[at]} must be a finite number.")
    v.check_range(name, array)
    return array


def _each(name: str, array: FloatArray, allowed: NDArray[Any], rule: str) -> FloatArray:
    if not allowed.all():
        at = first(~allowed)
        raise ValueError(f"{label(name, at)}={array[at]:.10g} must be {rule}.")
    return array


def positive_array(name: str, value: ArrayLike, n_axes: int = 0) -> FloatArray:
    """Entries > 0."""
    array = real_array(name, value, n_axes)
    _each(name, array, array > 0, "> 0")
    return _each(name, array, array >= SMALLEST, f">= {SMALLEST:g}")


def nonnegative_array(name: str, value: ArrayLike) -> FloatArray:
    """Entries >= 0."""
    array = real_array(name, value)
    return _each(name, array, array >= 0, ">= 0")


def probability_array(name: str, value: ArrayLike, n_axes: int = 0) -> FloatArray:
    """Entries in [0, 1]."""
    array = real_array(name, value, n_axes)
    return _each(name, array, (array >= 0) & (array <= 1), "in [0, 1]")


def simplex_array(name: str, value: ArrayLike) -> FloatArray:
    """Probabilities that sum to one along the last axis."""
    array = probability_array(name, value, 1)
    total = array.sum(axis=-1)
    wrong = np.abs(total - 1) > SUM_TOLERANCE
    if wrong.any():
        at = first(wrong)
        raise ValueError(
            f"{label(name, at)} sums to {total[at]:.10g}; probabilities must sum to 1 "
            f"within {SUM_TOLERANCE:g}. Divide by the sum if that is what you mean."
        )
    return array


def unit_array(name: str, value: ArrayLike) -> FloatArray:
    """Vectors of length one along the last axis."""
    array = real_array(name, value, 1)
    norm = np.linalg.norm(array, axis=-1)
    wrong = np.abs(norm - 1) > SUM_TOLERANCE
    if wrong.any():
        at = first(wrong)
        raise ValueError(
            f"{label(name, at)} has length {norm[at]:.10g}; a direction has length 1 "
            f"within {SUM_TOLERANCE:g}. Divide by the length if that is what you mean."
        )
    return array


def is_symmetric(array: FloatArray) -> NDArray[np.bool_]:
    """Which matrices are symmetric up to rounding."""
    scale = np.abs(array).max(axis=(-2, -1))
    difference = np.abs(array - array.swapaxes(-2, -1)).max(axis=(-2, -1))
    return difference <= _ASYMMETRY * scale


def least_of_correlation(array: FloatArray) -> FloatArray:
    """Smallest eigenvalues of matrices (..., n, n) whose diagonals are scaled to one.

    Whether a matrix is positive definite depends on no unit of its axes, but its own
    eigenvalues do, and rounding of the largest drowns the others. Minus infinity where
    a diagonal has an entry that is not positive.
    """
    var = np.diagonal(array, axis1=-2, axis2=-1)
    positive = np.asarray((var > 0).all(axis=-1))
    scale = np.sqrt(np.where(positive[..., None], var, 1.0))
    values = np.linalg.eigvalsh(array / scale[..., None] / scale[..., None, :])
    return np.where(positive, values[..., 0], -np.inf)


def positive_definite_array(
    name: str, value: ArrayLike, remedy: str
) -> tuple[FloatArray, FloatArray]:
    """Symmetric positive definite matrices and their lower Cholesky factors."""
    array = real_array(name, value, 2)
    if array.shape[-1] != array.shape[-2]:
        raise ValueError(
            f"{name} has shape {array.shape}; its matrices must be square."
        )
    wrong = ~is_symmetric(array)
    if wrong.any():
        raise ValueError(
            f"{label(name, first(wrong))} is not symmetric. Use the mean of it and its "
            "transpose if that is what you mean."
        )
    array = 0.5 * (array + array.swapaxes(-2, -1))
    factor = cholesky(name, array, remedy)
    return array, factor


def cholesky(name: str, array: FloatArray, remedy: str) -> FloatArray:
    """Lower Cholesky factors; the worst matrix is named if one has none."""
    try:
        return np.asarray(np.linalg.cholesky(array), dtype=np.float64)
    except np.linalg.LinAlgError:
        smallest = np.linalg.eigvalsh(array)[..., 0]
        at = np.unravel_index(np.argmin(smallest), smallest.shape)
    raise ValueError(
        f"{label(name, at)} is not positive definite: its smallest eigenvalue is "
        f"{smallest[at]:.3g}. {remedy}"
    )


def are_counts(X: FloatArray) -> NDArray[np.bool_]:
    """Which entries are integers >= 0."""
    return (X >= 0) & (np.floor(X) == X)


def rows(X: ArrayLike, event_shape: tuple[int | None, ...]) -> FloatArray:
    """Data as finite doubles (..., n_samples, *event); None allows any size of an axis.

    Integers beyond 2**53 would be rounded; they do not occur as data of these families.
    """
    X = v.as_doubles("X", X)
    ndim = len(event_shape)
    expected = ", ".join("k" if size is None else str(size) for size in event_shape)
    fits = X.ndim > ndim and all(
        size is None or size == found
        for size, found in zip(event_shape, X.shape[X.ndim - ndim :])
    )
    if not fits:
        raise ValueError(
            f"X has shape {X.shape}, expected (..., n_samples"
            f"{', ' + expected if expected else ''}): one observation per row."
        )
    wrong = ~np.isfinite(X)
    if wrong.any():
        at = first(wrong)
        raise ValueError(
            f"{label('X', at)}={X[at]} must be a finite number"
            f"{': fill in what is missing, or drop the row' * bool(np.isnan(X[at]))}."
        )
    return X


def row_weights(
    weights: ArrayLike | None, shape: tuple[int, ...]
) -> tuple[FloatArray, FloatArray]:
    """Weights (..., n_samples) >= 0 of rows of this shape, and their sums."""
    n = shape[-1]
    if n == 0:
        raise ValueError("X has no rows (n_samples=0); at least one is needed.")
    if weights is None:
        return np.ones(n), np.asarray(float(n))
    W = v.as_doubles("weights", weights)
    try:
        if W.ndim == 0 or W.shape[-1] != n:
            raise ValueError
        np.broadcast_shapes(W.shape, shape)
    except ValueError:
        raise ValueError(
            f"weights has shape {W.shape}, expected ({n},) or (..., {n}): one weight "
            "per row, and leading axes for a batch of fits."
        ) from None
    wrong = ~(np.isfinite(W) & (W >= 0))
    if wrong.any():
        at = first(wrong)
        raise ValueError(
            f"{label('weights', at)}={W[at]} must be a finite number >= 0 (0 drops a "
            "row)."
        )
    total = W.sum(axis=-1)
    if not (total > 0).all():
        at = first(~(total > 0))
        raise ValueError(
            f"{label('weights', at)} is zero on every row; nothing is left to fit. "
            "Drop this member of the batch, or give it rows."
        )
    return W, total
