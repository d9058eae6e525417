"""Rows far from zero, which cost linear machines the digits of their kernel values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxent._support.linalg import cached_chunks
from maxent._support.typing import Bias

_FAR = 100.0  # squared distance of the mean from zero, in units of the variance


def near_zero(
    data: NDArray[np.floating], bias: Bias
) -> tuple[NDArray[np.floating], NDArray[np.float64] | None]:
    """Rows to solve a linear machine with, and the point that they are counted from.

    A machine with a flat bias is the same wherever zero is, but not its inner products:
    of rows at 1e8 with a spread of 1 they have no digit left for the spread. Those in
    single precision, which working sets use, lose theirs from 100 on.

    Parameters
    ----------
    data : ndarray (n, n_features)
        Other rows, such as sparse ones, stay as they are.
    bias : "flat", float or None

    Returns
    -------
    data : ndarray
        The rows, or their differences from their mean where that is far from zero.
    origin : ndarray (n_features,) or None
    """
    if not isinstance(data, np.ndarray) or bias != "flat":
        return data, None
    mean, squares = np.zeros(data.shape[1]), 0.0
    for part in cached_chunks(*data.shape):  # read from memory once
        rows = data[part].astype(np.float64, copy=False)
        mean += rows.sum(axis=0)
        squares += float(np.vdot(rows, rows))
    mean, squares = mean / len(data), squares / len(data)
    far = float(mean @ mean)
    if not far > _FAR * (squares - far):
        return data, None
    return data - mean, mean


def at_zero(
    b: NDArray[np.float64],
    coef: NDArray[np.float64],
    origin: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """Biases (outputs,) of rows as they are, from those of rows less an origin."""
    return b if origin is None else b - coef @ origin
