"""Names of the types that public functions take and return.

Arguments are as wide as what is accepted (`ArrayLike`), results as narrow as what is
returned (`FloatArray`).
"""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]

# An array of the batch shape; a NumPy number where that shape is ().  `Any` lets both
# uses pass, as in NumPy's own signatures of reductions.
FloatArrayOrScalar: TypeAlias = NDArray[np.float64] | Any

RandomState: TypeAlias = (
    int | np.integer[Any] | np.random.Generator | np.random.RandomState | None
)
PathLike: TypeAlias = str | os.PathLike[str]

__all__ = [
    "ArrayLike",
    "FloatArray",
    "FloatArrayOrScalar",
    "IntArray",
    "NDArray",
    "PathLike",
    "RandomState",
]
