"""Names of the columns of data frames, which must agree wherever they are known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from maxent._support import validation as v

Names = tuple[str, ...]


def column_names(name: str, data: Any, expected: Names | None = None) -> Names | None:
    """Names that all data frames have in common, in one order.

    Parameters
    ----------
    name : str
        What messages call the data.
    data : data frame, list of data frames and arrays, or anything else
        Frames whose columns are not all named by strings have no names.
    expected : tuple of str, optional
        Names of the data of a fit.

    Returns
    -------
    tuple of str or None
        None where no frame has names.

    Raises
    ------
    ValueError
        If a frame has other names, or these in another order.
    """
    found = expected
    for label, own in _named(name, data):
        if found is None:
            found = own
        if own == found:
            continue
        order = sorted(own) == sorted(found)
        raise ValueError(
            f"{label} has the columns {v.shown(list(own))}, but "
            f"{'the fit' if expected is not None else 'another data frame'} had "
            f"{v.shown(list(found))}: the feature names should match"
            + (", also in their order" if order else "")
            + f". Pass {label}[{v.shown(list(found))}]."
        )
    return found


def _named(name: str, data: Any) -> Iterator[tuple[str, Names]]:
    """Labels and column names of the frames that have some."""
    each = enumerate(data) if isinstance(data, (list, tuple)) else [(None, data)]
    for i, one in each:
        columns = getattr(one, "columns", None)
        if columns is not None and hasattr(one, "to_numpy"):
            own = tuple(columns)
            if own and all(isinstance(column, str) for column in own):
                yield (name if i is None else f"{name}[{i}]"), own
