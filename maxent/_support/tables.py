"""Tables of numbers from svmlight and CSV files, with errors that name the line.

Files are read by compiled readers (scikit-learn's for svmlight, NumPy's for CSV).  Only
when one of them stops is the file gone through line by line, to say where and why.
"""

import csv
import io
import itertools
import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Table", "TableError", "read_table"]

_DELIMITERS = ("\t", ";", ",")  # on a tie the comma is more likely a decimal one
_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
}
_SAMPLE_ROWS = 20
_MAX_INDEX = 2**31 - 1


class TableError(ValueError):
    """A file cannot be read as a table; the message names the place."""


@dataclass(frozen=True)
class Table:
    """Contents of a data file.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        float64, finite.  svmlight gives CSR, CSV gives an ndarray.
    y : ndarray of shape (n_rows,) or None
        int64 if every label is a whole number, else float64, else strings.
    feature_names : list of str or None
        From the header of a CSV file.
    label_name : str or None
        Header of the label column.
    format : {"svmlight", "csv"}
    zero_based : bool or None
        Whether the indices of an svmlight file start at 0.
    """

    X: Any
    y: np.ndarray | None
    feature_names: list | None
    label_name: str | None
    format: str
    zero_based: bool | None = None


def read_table(
    path,
    *,
    format="auto",
    label=None,
    labelled=True,
    header="auto",
    n_features=None,
    feature_names=None,
    zero_based="auto",
):
    """Read a table of finite numbers, with or without labels.

    Parameters
    ----------
    path : str or path-like
        The file, in UTF-8.  It is read once, so a pipe will do.
    format : {"auto", "svmlight", "csv"}, default="auto"
        "auto" goes by the suffix (.csv, .tsv, .svm, .svmlight, .libsvm), else by the
        first lines.  The delimiter of a CSV file (comma, tab or semicolon) is found.
    label : str, int or None, default=None
        Label column of a CSV file: its name, or its number counted from 0, negative
        from the end.  None is the last column.  svmlight rows start with the label.
    labelled : bool or "auto", default=True
        Whether there are labels.  With "auto" they are taken if they are there: a
        column with the name `label`, or one column more than `n_features`.
    header : bool or "auto", default="auto"
        Whether the first row of a CSV file holds names.  "auto" takes it for names if
        none of its cells is a number.
    n_features : int, default=None
        Number of features expected; fewer in an svmlight file are filled with zeros.
    feature_names : list of str, default=None
        Names expected.  If the file has a header, these columns are taken in this
        order, and others but the label are left out.
    zero_based : bool or "auto", default="auto"
        Whether svmlight indices start at 0.  "auto": if a 0 occurs.

    Returns
    -------
    table : Table

    Raises
    ------
    TableError
        If the file is malformed or does not fit what is expected.
    OSError
        If it cannot be opened.
    """
    if format not in ("auto", "svmlight", "csv"):
        raise ValueError(
            f"format={format!r} is not known; use 'auto', 'svmlight' or 'csv'"
        )
    name = os.fspath(path)
    with open(path, "rb") as stream:
        data = stream.read().removeprefix(b"\xef\xbb\xbf")
    if not data.strip():
        raise TableError(f"{name} is empty")
    if format == "auto":
        suffix = os.path.splitext(name)[1].lower()
        format = _SUFFIXES.get(suffix) or _guess_format(data)
    if format == "svmlight":
        if label not in (None, 0, "0"):
            raise TableError(
                f"{name} is an svmlight file, whose rows start with the label; a label "
                f"column ({label!r}) can be chosen in CSV files only"
            )
        table = _read_svmlight(name, data, zero_based, n_features)
        return table if labelled else Table(table.X, None, *_tail(table))
    reader = _CSVReader(name, data, header)
    return reader.read(label, labelled, n_features, feature_names)


def _tail(table):
    return table.feature_names, table.label_name, table.format, table.zero_based


def _guess_format(data):
    """svmlight if a line among the first holds only index:value after its label."""
    lines = itertools.islice(io.BytesIO(data), _SAMPLE_ROWS)
    for line in lines:
        parts = line.split(b"#")[0].split()
        if len(parts) > 1 and all(
            index.isdigit() or index == b"qid"
            for index in (part.partition(b":")[0] for part in parts[1:])
            if b":" in part
        ):
            return "svmlight"
    return "csv"


def _short(text, length=30):
    """Quoted, on one line and not too long."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    return repr(text if len(text) <= length else text[: length - 3] + "...")


def _number(cell):
    """The number in a cell, or None; stricter than Python: no 1_000, no other digits.

    >>> _number(" 2.5 "), _number("1_000"), _number("")
    (2.5, None, None)
    """
    if "_" in cell or not cell.isascii():
        return None
    try:
        return float(cell)
    except ValueError:
        return None


def _whole(y):
    """Labels as integers where nothing is lost."""
    if np.all(y == np.trunc(y)) and np.all(np.abs(y) < 2.0**53):
        return y.astype(np.int64)
    return y


# ------------------------------------------------------------------------- svmlight


def _read_svmlight(name, data, zero_based, n_features):
    from sklearn.datasets import load_svmlight_file

    if b"_" in data:
        _find_svmlight_error(name, data)  # the reader would take 1_000 for a number
    try:
        X, y = load_svmlight_file(io.BytesIO(data), zero_based=True)
    except (ArithmeticError, ValueError) as error:
        _find_svmlight_error(name, data)
        raise TableError(f"{name} cannot be read as svmlight: {error}") from None
    if y.size == 0:
        raise TableError(f"{name} is empty but for comments")
    if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
        _find_svmlight_error(name, data)
    first = X.indices.min() if X.nnz else 1
    if zero_based == "auto":
        zero_based = bool(first == 0)
    if not zero_based and first == 0:
        raise TableError(
            f"{name}: a feature index is 0, but the indices are to start at 1"
        )
    width = X.indices.max() + int(zero_based) if X.nnz else 0
    if n_features is None and width == 0:
        raise TableError(f"{name}: no row has a feature")
    if n_features is not None and width > n_features:
        raise TableError(
            f"{name}: the largest feature index gives {width} features, but "
            f"{n_features} are expected"
        )
    X = type(X)(
        (X.data, X.indices - (0 if zero_based else 1), X.indptr),
        shape=(X.shape[0], int(n_features or width)),
    )
    return Table(X, _whole(np.array(y)), None, None, "svmlight", zero_based)


def _find_svmlight_error(name, data):
    """Raise the error of the first malformed line, if there is one."""
    for number, line in enumerate(io.BytesIO(data), start=1):
        parts = line.split(b"#")[0].split()
        if not parts:
            continue
        problem = _label_problem(parts[0]) or _features_problem(parts[1:])
        if problem:
            raise TableError(f"{name}, line {number}: {problem}")


def _label_problem(token):
    value = _number(token.decode("latin-1"))
    if value is None:
        hint = (
            "; a row starts with its label, write 0 if there is none"
            if b":" in token
            else "; several labels a row are not supported"
            if b"," in token
            else ""
        )
        return f"the label {_short(token)} is not a number{hint}"
    if not math.isfinite(value):
        return f"the label {_short(token)} is not finite"
    return None


def _features_problem(tokens):
    previous = -1
    for position, token in enumerate(tokens):
        index, colon, value = token.partition(b":")
        if position == 0 and index == b"qid":
            continue
        if not colon or not index.isdigit():
            return f"{_short(token)} is not of the form index:value"
        if int(index[:20]) > _MAX_INDEX:
            return f"the feature index {_short(index)} is larger than {_MAX_INDEX}"
        if int(index) <= previous:
            return (
                f"the feature index {int(index)} follows {previous}; indices must "
                "increase along a row"
            )
        previous = int(index)
        number = _number(value.decode("latin-1"))
        if number is None:
            return f"the value {_short(value)} of feature {previous} is not a number"
        if not math.isfinite(number):
            return f"the value {_short(value)} of feature {previous} is not finite"
    return None


# ------------------------------------------------------------------------------ CSV


class _CSVReader:
    """One CSV file: its delimiter and header, then its columns."""

    def __init__(self, name, data, header):
        self.name = name
        try:
            self.text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise TableError(
                f"{name}, line {line}: not in UTF-8; convert the file first"
            ) from None
        self.delimiter = self._find_delimiter()
        rows = self.rows()
        sample = list(itertools.islice(rows, _SAMPLE_ROWS))
        line, first = sample[0]
        self.width = len(first)
        if header == "auto":
            header = all(_number(cell) is None for cell in first)
        self.names = [cell.strip() for cell in first] if header else None
        self.skip = line if header else 0
        self.sample = [row for _, row in sample[1 if header else 0 :]]
        if not self.sample:
            raise TableError(f"{name} has a header but no rows")
        for column in range(self.width if header else 0):
            twin = self.names.index(self.names[column])
            if twin < column:
                raise TableError(
                    f"{name}, line {line}: columns {twin} and {column} (counted from "
                    f"0) have the same name {_short(self.names[twin])}"
                )

    def _find_delimiter(self):
        """The delimiter that splits the first rows evenly into most columns."""
        best, most = None, 1
        for delimiter in _DELIMITERS:
            self.delimiter = delimiter
            try:
                widths = [len(r) for _, r in itertools.islice(self.rows(), 20)]
            except TableError:
                continue
            if min(widths) == max(widths) > most:
                best, most = delimiter, widths[0]
        if best is None:
            first = next(line for line in self.text.splitlines() if line.strip())
            best = max(_DELIMITERS[::-1], key=first.count)
        return best

    def rows(self):
        """Pairs of line number and cells; blank lines are left out."""
        stream = io.StringIO(self.text, newline=None)
        reader = csv.reader(stream, delimiter=self.delimiter)
        try:
            for row in reader:
                if row and (len(row) > 1 or row[0].strip()):
                    yield reader.line_num, row
        except csv.Error as error:
            raise TableError(
                f"{self.name}, line {reader.line_num}: {error}"
            ) from None

    def column(self, index):
        """How messages call a column."""
        if self.names is not None and self.names[index]:
            return f"column {_short(self.names[index])}"
        return f"column {index} (counted from 0)"

    def read(self, label, labelled, n_features, feature_names):
        features, target = self._choose(label, labelled, n_features, feature_names)
        if n_features is not None and len(features) != n_features:
            raise TableError(
                f"{self.name} has {len(features)} feature columns"
                f"{' beside the label' if target is not None else ''}, but "
                f"{n_features} are expected"
            )
        if not features:
            raise TableError(
                f"{self.name} has one column only, so no features beside the label; "
                "columns are separated by commas, tabs or semicolons"
            )
        try:
            X, y = self._read_fast(features, target)
        except (TableError, ValueError):
            X = None
        if X is None or not np.isfinite(X).all() or not _finite(y):
            X, y = self._read_slowly(features, target)
        return Table(
            X,
            y if y is None or y.dtype.kind != "f" else _whole(y),
            None if self.names is None else [self.names[i] for i in features],
            None if self.names is None or target is None else self.names[target],
            "csv",
        )

    def _choose(self, label, labelled, n_features, feature_names):
        """Numbers of the feature columns and of the label column, if any."""
        by_name = feature_names is not None and self.names is not None
        target = None
        if labelled == "auto":
            if isinstance(label, str) and self.names is not None:
                labelled = label in self.names
            elif by_name:
                labelled = label is not None
            else:
                labelled = n_features is not None and self.width == n_features + 1
                label = label if labelled and not isinstance(label, str) else None
        if labelled:
            target = self._label_column(label)
        if not by_name:
            return [i for i in range(self.width) if i != target], target
        missing = [_short(n) for n in feature_names if n not in self.names]
        if missing:
            more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            raise TableError(
                f"{self.name} has no column {', '.join(missing[:3])}{more}; "
                f"its columns are {self._listed()}"
            )
        return [self.names.index(n) for n in feature_names], target

    def _label_column(self, label):
        if label is None:
            return self.width - 1
        if self.names is not None and label in self.names:
            return self.names.index(label)
        try:
            index = int(label)
        except ValueError:
            if self.names is None:
                raise TableError(
                    f"{self.name} has no header, so no column {_short(label)}; "
                    "give the number of the label column, counted from 0"
                ) from None
            raise TableError(
                f"{self.name} has no column {_short(label)}; "
                f"its columns are {self._listed()}"
            ) from None
        if not -self.width <= index < self.width:
            raise TableError(
                f"{self.name} has {self.width} columns, so no column {index}; "
                f"numbers go from 0 to {self.width - 1}, or from -1 backwards"
            )
        return index % self.width

    def _listed(self):
        names = [_short(name) for name in self.names[:20]]
        return ", ".join(names) + (", ..." if self.width > 20 else "")

    def _read_fast(self, features, target):
        numeric = target is not None and all(
            len(row) == self.width and _number(row[target]) is not None
            for row in self.sample
        )
        columns = features + [target] if numeric else features
        every = sorted(columns) == list(range(self.width))
        labels = None
        if not every:
            labels = self._scan(None if numeric else target)
        table = np.loadtxt(
            io.StringIO(self.text, newline=None),
            delimiter=self.delimiter,
            comments=None,
            quotechar='"',
            skiprows=self.skip,
            usecols=None if every else columns,
            ndmin=2,
        )
        if not every:
            table = table[:, np.argsort(np.argsort(columns))] if False else table
            return (table[:, :-1].copy(), table[:, -1].copy()) if numeric else (
                table,
                labels,
            )
        if numeric:
            return table[:, features], table[:, target]
        return table[:, features] if features != sorted(features) else table, labels

    def _scan(self, target):
        """Check every width; the text of one column."""
        labels = []
        rows = self.rows()
        if self.names is not None:
            next(rows)
        for _, row in rows:
            if len(row) != self.width:
                raise ValueError("ragged")
            if target is not None:
                labels.append(row[target].strip())
        if "" in labels:
            raise ValueError("a label is missing")
        return np.array(labels) if target is not None else None

    def _read_slowly(self, features, target):
        """Read row by row; raise the error of the first malformed one."""
        X, labels, lines = [], [], []
        rows = self.rows()
        if self.names is not None:
            next(rows)
        for line, row in rows:
            where = f"{self.name}, line {line}"
            if len(row) != self.width:
                raise TableError(
                    f"{where}: {len(row)} cells, but the first row has {self.width}"
                )
            values = [_number(row[i]) for i in features]
            for i, value in zip(features, values):
                if value is None or not math.isfinite(value):
                    raise TableError(f"{where}, {self.column(i)}: {_fault(row[i])}")
            X.append(values)
            lines.append(line)
            if target is not None:
                labels.append(row[target].strip())
                if not labels[-1]:
                    raise TableError(
                        f"{where}, {self.column(target)}: the label is empty"
                    )
        X = np.array(X, dtype=np.float64)
        if target is None:
            return X, None
        numbers = [_number(cell) for cell in labels]
        if None in numbers:
            return X, np.array(labels)
        for line, number, cell in zip(lines, numbers, labels):
            if not math.isfinite(number):
                raise TableError(
                    f"{self.name}, line {line}, {self.column(target)}: the label "
                    f"{_short(cell)} is not finite"
                )
        return X, np.array(numbers)


def _finite(y):
    return y is None or y.dtype.kind != "f" or bool(np.isfinite(y).all())


def _fault(cell):
    if not cell.strip():
        return "the cell is empty; every feature needs a number"
    value = _number(cell)
    return f"{_short(cell)} is not {'a' if value is None else 'a finite'} number"
