"""Columns of text in data frames: their categories, and codes of these."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maxent._support import validation as v

Categories: TypeAlias = dict[str, tuple[str, ...]]  # of columns, by their names


def is_frame(data: Any) -> bool:
    """True for a data frame of pandas or polars."""
    return hasattr(data, "columns") and hasattr(data, "to_numpy")


def text_categories(data: Any, columns: Iterable[str]) -> Categories:
    """Texts of these columns of a frame, or of a list of frames, in sorted order.

    A column without text has none.
    """
    each = data if isinstance(data, list) else [data]
    frames = [one for one in each if is_frame(one)]
    found = {}
    for name in columns:
        each = [np.asarray(one[name]) for one in frames if name in list(one.columns)]
        texts = {x for cells in each for x in _texts(cells)}
        if texts:
            found[name] = tuple(sorted(texts))
    return found


def _texts(cells: NDArray[Any]) -> list[str]:
    if cells.dtype.kind not in "OUST":
        return []
    return [str(x) for x in cells if isinstance(x, str)]


def coded(data: Any, categories: Categories) -> Any:
    """A frame, or a list of frames, with codes in the place of texts.

    Parameters
    ----------
    data : data frame, list of data frames, or anything else
        What is no frame has codes already. Empty cells stay missing (NaN).
    categories : dict of tuple of str
        Texts of columns, whose codes are their places.

    Returns
    -------
    Of the kind of `data`.

    Raises
    ------
    ValueError
        For a text that is none of the categories; the column is named.
    """
    if not categories:
        return data
    if isinstance(data, list):
        return [coded(one, categories) for one in data]
    if not is_frame(data):
        return data
    columns = {
        name: _codes(name, np.asarray(data[name], dtype=object), texts)
        for name, texts in categories.items()
        if name in list(data.columns)
    }
    if hasattr(data, "assign"):
        return data.assign(**columns)
    return data.with_columns(**{name: list(x) for name, x in columns.items()})


def _codes(name, cells, texts):
    """Codes of cells; NaN of empty ones."""
    place = {text: float(code) for code, text in enumerate(texts)}
    out = np.full(len(cells), np.nan)
    for i, cell in enumerate(cells):
        if isinstance(cell, str):
            if cell not in place:
                raise ValueError(
                    f"column {name!r} has {cell!r} in row {i}, which the fit has not "
                    f"seen: it had {v.shown(list(texts))}."
                )
            out[i] = place[cell]
        elif cell is not None and cell == cell:
            raise ValueError(
                f"column {name!r} has {v.shown(cell)} in row {i} among texts; write "
                "categories in one way."
            )
    return out
