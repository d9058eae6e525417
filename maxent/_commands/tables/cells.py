"""Shared parts of the readers of tables: the result, the error, and single cells."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = [
    "Beside",
    "Table",
    "TableError",
    "all_exact",
    "parse_number",
    "short",
    "whole",
]

_EXACT = 2**53  # doubles hold every whole number below


class TableError(ValueError):
    """A file cannot be read as a table; the message names the place.

    Parameters
    ----------
    message : str
    column : str, optional
        Name, or number, of the column whose cell is at fault, where there is one.
    fault : {"missing", "mixed", "commas", "label", "encoding"}, optional
        A cell is missing, or text among numbers, or a number with commas; or a label is
        missing; or the file is in another encoding.
    """

    def __init__(
        self, message: str, column: str | None = None, fault: str | None = None
    ) -> None:
        super().__init__(message)
        self.column = column
        self.fault = fault


@dataclass(frozen=True)
class Beside:
    """A column that is neither feature nor label.

    Attributes
    ----------
    place : str or int
        Its name, or its number in a file without a header.
    cells : list of str or of float
    """

    place: str | int
    cells: list[Any]


@dataclass(frozen=True)
class Table:
    """Contents of a data file.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        float64, finite.  svmlight gives CSR, delimited text an ndarray.  Where columns
        of text and missing cells may be, and some are: an array of objects, floats in
        columns of numbers (NaN where missing), strings in others (None).
    y : ndarray of shape (n_rows,) or None
        int64 if every label is a whole number, else float64, else strings, as of digits
        that 64 bits do not hold; an array of objects with None for missing labels where
        they may be missing.
    feature_names : list of str or None
        From the header of a CSV file.
    label_name : str or None
        Header of the label column.
    label_index : int or None
        Its number in the file, counted from 0.
    format : {"svmlight", "csv"}
    zero_based : bool or None
        Whether the indices of an svmlight file start at 0.
    positions : list of int or None
        Numbers of the features' columns in a CSV file, counted from 0.
    width : int or None
        Columns of a CSV file.
    beside : dict of str to list of Beside
        Columns that were asked for beside features and label: "id", of which there may
        be several, and "weights".
    doubt : str or None
        Why the first row of a CSV file, read as data, may hold names, or the other way
        round.
    """

    X: Any
    y: np.ndarray | None
    feature_names: list[str] | None
    label_name: str | None
    label_index: int | None
    format: str
    zero_based: bool | None = None
    positions: list[int] | None = None
    width: int | None = None
    beside: dict[str, list[Beside]] = field(default_factory=dict)
    doubt: str | None = None


def short(text, length=30):
    """Quoted, on one line and not too long."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    return repr(text if len(text) <= length else text[: length - 3] + "...")


def parse_number(cell):
    """The number in a cell, or None; stricter than Python: no 1_000, no other digits.

    >>> parse_number(" 2.5 "), parse_number("1_000"), parse_number("")
    (2.5, None, None)
    """
    if "_" in cell or not cell.isascii():
        return None
    try:
        return float(cell)
    except ValueError:
        return None


def all_exact(y):
    """True if no other whole number is read as one of these numbers."""
    return bool(np.all(np.abs(y) < _EXACT))


def whole(y, texts=None):
    """Labels as integers where nothing is lost.

    Parameters
    ----------
    y : ndarray of float64 (n,)
    texts : callable() -> list of str, optional
        Gives the texts of the labels, which tell whole numbers apart that doubles do
        not. Those that 64 bits do not hold stay text.
    """
    if not np.all(y == np.trunc(y)):
        return y
    if all_exact(y):
        return y.astype(np.int64)
    if texts is None or not np.isfinite(y).all():
        return y
    texts = texts()
    digits = [text.strip().lstrip("+-").isdigit() for text in texts]
    exact = [int(t) if d else int(x) for t, d, x in zip(texts, digits, y.tolist())]
    if all(-(2**63) <= number < 2**63 for number in exact):
        return np.array(exact, dtype=np.int64)
    beyond = any(d and abs(number) >= _EXACT for d, number in zip(digits, exact))
    return np.array(texts) if beyond else y
