"""Columns of numbers and of text, with missing cells."""

import math
import re

import numpy as np

from maxent._commands.tables.cells import parse_number, short
from maxent._support.files import is_missing

__all__ = ["cell_fault", "commas_in", "fault_kind", "is_text_column", "mixed_columns"]

_THOUSANDS = re.compile(r"\s*[+-]?[1-9][0-9]{,2}(,[0-9]{3})+(\.[0-9]*)?\s*")


def mixed_columns(rows, error, missing=True, any_text=False, text=None):
    """Array of objects (n_rows, n_columns) of cells.

    Parameters
    ----------
    rows : list of list of str
    error : callable(row, column, fault, kind)
        The error of a cell; kind is "missing", "commas", "mixed" (text among numbers)
        or None.
    missing : bool, default=True
        Whether cells may be missing among numbers.
    any_text : bool, default=False
        Whether a column is text if one of its cells is.  Otherwise more than half of
        those that are not missing are, or a cell that is not a number is an error.
    text : sequence of bool or None, optional
        Which columns are text; found where it is None.

    Returns
    -------
    X : ndarray of object
        Floats and NaN in columns of numbers, strings and None in others.  Of float64
        where all columns are numbers and nothing is missing.

    Raises
    ------
    TableError
        For a cell that is not a finite number among numbers.
    """
    X = np.empty((len(rows), len(rows[0])), dtype=object)
    for j, cells in enumerate(zip(*rows)):
        absent = [is_missing(cell) for cell in cells]
        numbers = [
            math.nan if a else parse_number(cell) for a, cell in zip(absent, cells)
        ]
        wrong = [i for i, x in enumerate(numbers) if x is None or math.isinf(x)]
        known = None if text is None else text[j]
        n_text = numbers.count(None)
        share = 0 if any_text else (len(cells) - sum(absent)) / 2
        is_text = n_text > share if known is None else known
        if is_text:
            X[:, j] = [None if a else cell for a, cell in zip(absent, cells)]
        elif wrong:
            mixed = numbers[wrong[0]] is None and len(cells) > len(wrong)
            kind = fault_kind(cells[wrong[0]]) or ("mixed" if mixed else None)
            raise error(wrong[0], j, cell_fault(cells[wrong[0]]), kind)
        elif any(absent) and not missing:
            i = absent.index(True)
            raise error(i, j, cell_fault(cells[i]), "missing")
        else:
            X[:, j] = numbers
    plain = all(map(_is_finite, X.ravel().tolist()))
    return X.astype(np.float64) if plain else X


def _is_finite(cell):
    return isinstance(cell, float) and math.isfinite(cell)


def is_text_column(column):
    """True if a column of `mixed_columns` holds text."""
    return any(isinstance(cell, str) for cell in column.tolist())


def commas_in(cells):
    """Tell decimal commas from thousands separators in cells of numbers.

    Returns
    -------
    kind : {"decimal", "thousands", None}
        None if a cell is something else, or none has a comma.  Groups of three digits
        may be either, and count as thousands.
    """
    found = {cell for cell in cells if "," in cell}
    if not found or any(
        parse_number(cell.replace(",", ".", 1)) is None
        and not _THOUSANDS.fullmatch(cell)
        for cell in cells
    ):
        return None
    return "thousands" if all(map(_THOUSANDS.fullmatch, found)) else "decimal"


def fault_kind(cell):
    """The kind of error of a cell by itself: "commas" or None."""
    return "commas" if commas_in([cell]) else None


def cell_fault(cell):
    """Why a cell is no finite number."""
    if not cell.strip():
        return "the cell is empty; every feature needs a number"
    if is_missing(cell):
        return f"{short(cell)} stands for a missing value"
    if parse_number(cell) is not None:
        return f"{short(cell)} is not a finite number"
    if commas_in([cell]) == "decimal":
        return f"{short(cell)} is not a number; decimals need a point"
    if commas_in([cell]) == "thousands":
        return f"{short(cell)} is not a number; write thousands without commas"
    return f"{short(cell)} is not a number, nor empty, ? or NA for a missing one"
