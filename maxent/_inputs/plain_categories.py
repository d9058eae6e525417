"""Objects in columns of categories: missing ones, intervals, dates."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np

from maxent._inputs.estimator_input import TIMES
from maxent._support import validation as v
from maxent._support.typing import NDArray
from maxent._support.validation import called

_AS_TEXT = ("Interval", "Period")  # of pandas, which pandas.cut makes, say


def plain_categories(
    X: NDArray[Any], names: list[str] | None, read: Container[int] | None = None
) -> NDArray[Any]:
    """Objects (n, d) with intervals and periods as text; dates are refused.

    A column is what its first value is that is not missing. Only the columns of `read`
    are looked at, if it is given.
    """
    copied = False
    for k, column in enumerate(X.T):
        if read is not None and k not in read:
            continue
        absent = missing_values(column)
        first = None if absent.all() else column[np.argmin(absent)]
        if isinstance(first, TIMES):
            raise ValueError(
                f"{called('feature', [k], names)} of X holds dates or times, such as "
                f"{v.shown(first)}, and hardly any repeat; make categories of them, "
                "such as the month as text, or drop the column."
            )
        if type(first).__name__ in _AS_TEXT:
            X, copied = X if copied else X.copy(), True
            X[~absent, k] = [str(value) for value in column[~absent].tolist()]
    return X


def missing_values(X: NDArray[Any]) -> NDArray[np.bool_]:
    """Mask of the entries that are None, NaN, NaT or pandas' NA."""
    if X.dtype.kind == "f":
        return np.isnan(X)
    if X.dtype.kind in "mM":
        return np.isnat(X)
    if X.dtype.kind != "O":
        return np.zeros(X.shape, dtype=bool)
    NA = v.pandas_NA()
    flat = [x is None or x is NA or _differs_from_itself(x) for x in X.ravel().tolist()]
    return np.array(flat, dtype=bool).reshape(X.shape)


def _differs_from_itself(value):
    """True if a value is NaN or NaT."""
    if isinstance(value, str):
        return False
    found = value != value
    return isinstance(found, (bool, np.bool_)) and bool(found)
