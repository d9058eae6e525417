"""Columns of numbers and of text, with missing cells."""

import math

import numpy as np

from maxent._support.cells import is_missing, parse_number, short

__all__ = ["cell_fault", "is_text_column", "mixed_columns"]


def mixed_columns(rows, error, missing=True, any_text=False, text=None):
    """Array of objects (n_rows, n_columns) of cells.

    Parameters
    ----------
    rows : list of list of str
    error : callable(row, column, fault, kind)
        The error of a cell; kind is "missing", "mixed" (text among numbers) or None.
    missing : bool, default=True
        Whether cells may be missing among numbers.
    any_text : bool, default=False
        Whether a column is text if one of its cells is.  Otherwise all are, or a cell
        that is not a number is an error.
    text : sequence of bool, optional
        Which columns are text; found if None.

    Returns
    -------
    X : ndarray of object
        Floats and NaN in columns of numbers, strings and None in others.

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
        if text is not None:
            is_text = text[j]
        elif any_text:
            is_text = None in numbers
        else:
            is_text = 0 < numbers.count(None) == len(cells) - sum(absent)
        if is_text:
            X[:, j] = [None if a else cell for a, cell in zip(absent, cells)]
        elif wrong:
            mixed = numbers[wrong[0]] is None and len(cells) > len(wrong)
            kind = "mixed" if mixed else None
            raise error(wrong[0], j, cell_fault(cells[wrong[0]]), kind)
        elif any(absent) and not missing:
            i = absent.index(True)
            raise error(i, j, cell_fault(cells[i]), "missing")
        else:
            X[:, j] = numbers
    return X


def is_text_column(column):
    """Whether a column of `mixed_columns` holds text."""
    return any(isinstance(cell, str) for cell in column.tolist())


def cell_fault(cell):
    """Why a cell is no finite number."""
    if not cell.strip():
        return "the cell is empty; every feature needs a number"
    if is_missing(cell):
        return f"{short(cell)} stands for a missing value"
    if parse_number(cell) is not None:
        return f"{short(cell)} is not a finite number"
    if parse_number(cell.replace(",", ".")) is not None:
        return f"{short(cell)} is not a number; decimals need a point"
    return f"{short(cell)} is not a number, nor empty, ? or NA for a missing one"
