"""Tables from svmlight files and delimited text, with errors that name the line.

Files are read by compiled readers (scikit-learn's for svmlight).  Only when one of them
stops is the file gone through line by line, to say where and why.
"""

import io
import itertools
import math
import os
import warnings
from dataclasses import replace

import numpy as np

from maxent._commands.tables.cells import Table, TableError, parse_number, short, whole
from maxent._commands.tables.delimited import CSVReader
from maxent._support.files import decode_text, plain_name, read_bytes
from maxent._support.validation import user_stacklevel

__all__ = ["Table", "TableError", "read_table"]

_USES = {"id": "taken for names of rows", "weights": "taken for weights of rows"}
_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
}
_SAMPLE_ROWS = 20
_MAX_INDEX = 2**31 - 1
# Columns that a file may have whatever its size: estimators keep a few vectors with an
# entry per column, and hashed features seldom have more than 2^24.
_FREE_COLUMNS = 2**24


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
    columns="numbers",
    text=None,
    ignore=(),
    beside=None,
    layout=None,
    encoding="utf-8",
    decimal=".",
):
    """Read a table, with or without labels.

    Parameters
    ----------
    path : str or path-like
        The file, also compressed by gzip, bzip2 or xz; "-" is standard input.  It is
        read once, so a pipe will do.
    format : {"auto", "svmlight", "csv"}, default="auto"
        "auto" goes by the suffix (.csv, .tsv, .svm, .svmlight, .libsvm), else by the
        first lines.  The delimiter of a CSV file (comma, tab, semicolon, or runs of
        blanks) is found.
    label : str, int or None, default=None
        Label column of a CSV file: its name, or its number counted from 0, negative
        from the end.  None is the last column.  svmlight rows start with the label.
    labelled : bool, "auto" or "partly", default=True
        Whether there are labels; with "partly" a CSV file may leave some of them out:
        an empty cell, ?, NA, N/A, NaN or null.
        With "auto" they are taken if they are there: a
        column with the name `label`, or one column more than `n_features`.
    header : bool or "auto", default="auto"
        Whether the first row of a CSV file holds names.  "auto" takes it for names if
        none of its cells is a number, or if it holds all of `feature_names`.
    n_features : int, default=None
        Number of features expected; fewer in an svmlight file are filled with zeros,
        others are left out with a warning.
        With None the largest index of an svmlight file decides; beyond 2^24 features
        the file must have as many entries.
    feature_names : list of str, default=None
        Names expected.  If the file has a header, these columns are taken in this
        order, and others but the label are left out.
    zero_based : bool or "auto", default="auto"
        Whether svmlight indices start at 0.  "auto": if a 0 occurs.
    columns : {"numbers", "text", "mixed", "categories"}, default="numbers"
        What the feature columns of a CSV file may hold: finite numbers; text, too, in
        columns of which more than half is no number; and missing cells among numbers,
        too; and text among numbers, too, which makes text of the column.
    text : list of bool, or list of str, default=None
        Whether each feature column is text; or names or numbers of those that are.
        Otherwise it is found.
    ignore : list of str, default=()
        Columns of a CSV file to leave out, by name or number.
    beside : dict of str to list, default=None
        Names or numbers of columns of a CSV file that are neither features nor label:
        "id" for identifiers of the rows, and "weights", which are to be finite and
        >= 0.
    layout : dict, default=None
        What training left out: "id", names or numbers, and, of files without a
        header, the numbers "left_out" of files of the "width".
    encoding : str, default="utf-8"
        Of a CSV file, such as "latin-1".
    decimal : {".", ","}, default="."
        What separates decimals in a CSV file.

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
    name, data = _contents(path)
    if not data or data.isspace():
        raise TableError(f"{name} is empty")
    if format == "auto":
        format = _guess_format(name, data)
    if format == "svmlight":
        _refuse_columns(
            name, label if labelled in (True, "partly") else None, ignore, beside, text
        )
        table = _read_svmlight(name, data, zero_based, n_features)
        return table if labelled else replace(table, y=None)
    try:
        contents = decode_text(name, data, encoding)
    except ValueError as error:
        raise TableError(str(error), fault="encoding") from None
    reader = CSVReader(name, contents, header, feature_names, decimal)
    return reader.read(
        *(label, labelled, n_features, feature_names, columns, text),
        *(ignore, beside, layout),
    )


def _refuse_columns(name, label, ignore, beside, text):
    """Refuse columns chosen of an svmlight file, which has no names for them."""
    if label not in (None, 0, "0"):
        raise TableError(
            f"{name} is an svmlight file, whose rows start with the label; a label "
            f"column ({label!r}) can be chosen in CSV files only"
        )
    wanted = [("left out", column) for column in ignore]
    wanted += [
        (_USES[kind], column)
        for kind, columns in (beside or {}).items()
        for column in columns
    ]
    named = [column for column in text or () if isinstance(column, str)]
    wanted += [("one of text", column) for column in named]
    for use, column in wanted:
        raise TableError(
            f"{name} is an svmlight file, whose columns have no names, so "
            f"{short(str(column))} cannot be {use}"
        )


def _contents(path):
    """Name of a file for messages, and its bytes without a byte-order mark."""
    try:
        name, data = read_bytes(path)
    except ValueError as error:
        raise TableError(str(error)) from None
    return name, data.removeprefix(b"\xef\xbb\xbf")


def _guess_format(name, data):
    """The format of a suffix; without one that is known, that of the first lines.

    It is svmlight if a line among them holds only index:value after its label.
    """
    suffix = os.path.splitext(plain_name(name))[1].lower()
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    for line in itertools.islice(io.BytesIO(data), _SAMPLE_ROWS):
        parts = line.split(b"#")[0].split()
        if len(parts) > 1 and not (_label_problem(parts[0]) or _row_problem(parts[1:])):
            return "svmlight"
    return "csv"


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
    width = int(X.indices.max()) + int(zero_based) if X.nnz else 0
    if n_features is None and width == 0:
        raise TableError(f"{name}: no row has a feature")
    if n_features is None and width > max(_FREE_COLUMNS, X.nnz):
        row = int(np.searchsorted(X.indptr, X.indices.argmax(), side="right")) - 1
        raise TableError(
            f"{name}, line {_line_of_row(data, row)}: the feature index "
            f"{X.indices.max()} asks for {width} columns; more than {_FREE_COLUMNS} "
            f"need a file with as many entries, and this one has {X.nnz}; number the "
            "features that occur from 1 on, or hash them to fewer"
        )
    X = type(X)(
        (X.data, X.indices - (0 if zero_based else 1), X.indptr),
        shape=(X.shape[0], width),
    )
    X = _with_features(name, X, n_features)
    return Table(
        X,
        whole(np.array(y), lambda: _svmlight_labels(data)),
        None,
        None,
        None,
        "svmlight",
        zero_based,
    )


def _svmlight_labels(data):
    """Texts of the labels."""
    lines = (line.split(b"#")[0].split() for line in io.BytesIO(data))
    return [parts[0].decode("latin-1") for parts in lines if parts]


def _with_features(name, X, n_features):
    """The rows with as many features as expected; None takes them as they are."""
    width = X.shape[1]
    if n_features is None or width == n_features:
        return X
    if width < n_features:
        X.resize(X.shape[0], n_features)
        return X
    known = X[:, :n_features]
    warnings.warn(
        f"{name}: the model has {n_features} features; {X.nnz - known.nnz} entries of "
        "others are left out",
        UserWarning,
        stacklevel=user_stacklevel(),
    )
    return known


def _line_of_row(data, row):
    """Number of the line, from 1, that holds a row, counted from 0."""
    lines = enumerate(io.BytesIO(data), start=1)
    rows = (number for number, line in lines if line.split(b"#")[0].split())
    return next(itertools.islice(rows, row, None))


def _find_svmlight_error(name, data):
    """Raise the error of the first malformed line, if there is one."""
    for number, line in enumerate(io.BytesIO(data), start=1):
        parts = line.split(b"#")[0].split()
        if not parts:
            continue
        problem = _label_problem(parts[0]) or _row_problem(parts[1:])
        if problem:
            raise TableError(f"{name}, line {number}: {problem}")


def _label_problem(token):
    value = parse_number(token.decode("latin-1"))
    if value is None:
        hint = (
            "; a row starts with its label, write 0 if there is none"
            if b":" in token
            else "; several labels a row are not supported"
            if b"," in token
            else ""
        )
        return f"the label {short(token)} is not a number{hint}"
    if not math.isfinite(value):
        return f"the label {short(token)} is not finite"
    return None


def _row_problem(tokens):
    previous = -1
    for position, token in enumerate(tokens):
        index, colon, value = token.partition(b":")
        if position == 0 and index == b"qid":
            continue
        if not colon or not index.isdigit():
            return f"{short(token)} is not of the form index:value"
        if int(index[:20]) > _MAX_INDEX:
            return f"the feature index {short(index)} is larger than {_MAX_INDEX}"
        if int(index) <= previous:
            return (
                f"the feature index {int(index)} follows {previous}; indices must "
                "increase along a row"
            )
        previous = int(index)
        number = parse_number(value.decode("latin-1"))
        if number is None:
            return f"the value {short(value)} of feature {previous} is not a number"
        if not math.isfinite(number):
            return f"the value {short(value)} of feature {previous} is not finite"
    return None
