"""Names of the types that public functions take and return.

Arguments are as wide as what is accepted (`ArrayLike`), results as narrow as what is
returned (`FloatArray`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

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

# -- menus of the estimators and solvers -----------------------------------------------
Bias: TypeAlias = Literal["flat"] | float | None
Callback: TypeAlias = Callable[[int, float, float], object]
ClassWeight: TypeAlias = dict[Any, float] | Literal["balanced"] | None
Gamma: TypeAlias = Literal["scale", "auto"] | float
NamedKernel: TypeAlias = Literal["linear", "rbf", "poly", "sigmoid"]
KernelFunction: TypeAlias = Callable[[Any, Any], Any]
Kernel: TypeAlias = NamedKernel | Literal["precomputed"] | KernelFunction
Likelihood: TypeAlias = Literal["expected", "predictive"]
MarginName: TypeAlias = Literal[
    "exponential", "erlang", "laplace", "gaussian", "logistic", "hinge", "fixed"
]
Unknown: TypeAlias = Literal["ignore", "error"]

# Beside a menu of words: `ArrayLike` holds text, so that any word would pass.
Numbers: TypeAlias = NDArray[Any] | Sequence[float] | Sequence[Sequence[float]]

# flat, none, of a variance, or pseudo-counts of the classes
BiasOfClasses: TypeAlias = Literal["flat"] | float | Numbers | None

# An array, a sparse matrix or a data frame: SciPy and pandas declare no types, and a
# union with what they leave unknown would hold nothing else.
MatrixLike: TypeAlias = Any

__all__ = [
    "ArrayLike",
    "Bias",
    "BiasOfClasses",
    "Callback",
    "ClassWeight",
    "FloatArray",
    "FloatArrayOrScalar",
    "Gamma",
    "IntArray",
    "Kernel",
    "KernelFunction",
    "Likelihood",
    "MarginName",
    "MatrixLike",
    "NDArray",
    "NamedKernel",
    "Numbers",
    "PathLike",
    "RandomState",
    "Unknown",
]
