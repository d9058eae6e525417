"""Bags: one array of rows for each datum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent._support import validation as v


def read_bags(name: str, bags: Iterable[Any]) -> list[NDArray[np.float64]]:
    """Bags as arrays of finite numbers (n_rows, ...), n_rows >= 1.

    Raises
    ------
    ValueError
        For a bag without rows and entries that are not finite; bag and place are named.
    """
    out = []
    for i, bag in enumerate(bags):
        array = v.as_doubles(f"{name}[{i}]", bag)
        if array.ndim < 1 or not len(array):
            raise ValueError(
                f"{name}[{i}] has shape {array.shape}; a bag is an array of rows, and "
                "needs one at least."
            )
        wrong = ~np.isfinite(array)
        if wrong.any():
            at = tuple(int(k) for k in np.argwhere(wrong)[0])
            raise ValueError(
                f"{name}[{i}][{', '.join(map(str, at))}]={array[at]} must be a finite "
                "number."
            )
        out.append(array)
    return out
