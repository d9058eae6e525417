"""Data files as the options describe them, and labels as estimators take them."""

import itertools
import os
import re
import sys
from dataclasses import replace

import numpy as np

from maxent._commands.console import tell
from maxent._commands.hints import MANY, has_many
from maxent._commands.options import FOR_SEQUENCES
from maxent._commands.outcome import CommandError, quoted
from maxent._commands.tables.cells import short, whole
from maxent._commands.tables.data_files import TableError, read_table
from maxent._support.files import STANDARD_INPUT, plain_name

__all__ = [
    "beside",
    "class_labels",
    "class_weights",
    "encoding_remedy",
    "holds_sequences",
    "labelled_rows",
    "partial_labels",
    "read",
    "real_labels",
    "refuse_sequence_options",
    "weighted_rows",
    "without_row_index",
]

_NAMELESS = ("", "Unnamed: 0")  # headers of an index, as written and as read
_FASTA = (".fasta", ".fa", ".fna", ".ffn", ".faa", ".frn")
_FASTA_LINES = re.compile(rb">[^\n]*\n[A-Za-z*-]+\s")  # a header, one word below it
SEQUENCE_SUFFIXES = (*_FASTA, ".fastq", ".fq", ".seq")


def read(args, **expected):
    """The table of the data file."""
    header = "auto" if args.header is None else args.header
    try:
        table = read_table(
            args.data,
            format=args.format,
            header=header,
            encoding=args.encoding,
            decimal=args.decimal,
            **expected,
        )
    except TableError as error:
        raise CommandError(f"{error}{_remedy(args, error)}") from None
    if table.doubt is not None:
        tell(
            f"maxent {args.command}: warning: {table.doubt}; say --header if it holds "
            "names, --no-header if it does not"
        )
    return table


def without_row_index(args, table):
    """The table without a nameless first column that counts the rows, as pandas writes.

    In a sorted file it would give the labels away.
    """
    names = table.feature_names
    if names is None or names[0] not in _NAMELESS or table.positions[0] != 0:
        return table
    numbers = table.X[:, 0]
    if len(names) < 2 or not _counts_rows(numbers):
        return table
    tell(
        f"maxent {args.command}: warning: column 0 (counted from 0) has no name and "
        "numbers the rows: it is left out; name it in the header if it is a feature"
    )
    return replace(
        *(table,),
        X=np.ascontiguousarray(table.X[:, 1:]),
        feature_names=names[1:],
        positions=table.positions[1:],
    )


def _counts_rows(numbers):
    """True if all are whole and different, as numbers of rows or of a part of them."""
    try:
        numbers = numbers.astype(np.float64)
    except ValueError:
        return False
    if not np.isfinite(numbers).all() or numbers.min() < 0:
        return False
    whole = bool((numbers == np.floor(numbers)).all())
    return whole and len(np.unique(numbers)) == len(numbers)


def labelled_rows(table, name):
    """The rows of a table that have a label, and how many have none."""
    if table.y is None:
        raise CommandError(f"{name}: no row has a label; choose it by --label")
    return _rows(table, np.array([label is not None for label in table.y.tolist()]))


def weighted_rows(args, table):
    """The rows of a table whose weight is not 0, and how many have none."""
    kept = np.array(table.beside["weights"][0].cells) > 0
    if not kept.any():
        raise CommandError(f"--weights {args.weights}: all weights are 0")
    return _rows(table, kept)


def _rows(table, kept):
    """Some rows of a table, read as if there were no others, and how many are not."""
    if kept.all():
        return table, 0
    cells = {
        kind: [
            replace(column, cells=list(itertools.compress(column.cells, kept)))
            for column in columns
        ]
        for kind, columns in table.beside.items()
    }
    labels = [] if table.y is None else table.y[kept].tolist()
    y = None if {*labels} <= {None} else np.array(labels)
    if y is not None and y.dtype.kind == "f":
        y = whole(y)
    return replace(table, X=table.X[kept], y=y, beside=cells), int(np.sum(~kept))


def beside(args):
    """Columns that the options name and that are neither features nor label."""
    weights = vars(args).get("weights")
    named = {"id": args.id, "weights": [] if weights is None else [weights]}
    return {kind: columns for kind, columns in named.items() if columns}


def encoding_remedy(error):
    """The option for a file that seems to be in another encoding."""
    found = re.search("if the file is in ([a-z0-9-]+)", str(error))
    return f", or say --encoding {found[1]}" if found else ""


def _remedy(args, error):
    """Options that help with a cell that is no number, or with the encoding."""
    if error.fault == "encoding":
        return encoding_remedy(error)
    if error.fault == "commas":
        return "; --decimal , reads decimal commas"
    if args.command != "fit":
        return ""
    if error.fault == "label":
        taken = "the last column is taken: choose another with --label, or "
        return (
            f"; {taken if args.label is None else ''}--drop-unlabelled leaves such "
            "rows out, and --estimator partial learns classes from them, too"
        )
    if error.fault == "missing":
        return "; --impute fills missing cells"
    if error.column is None:
        return ""
    column = quoted(error.column)
    others = f"; --ignore {column} leaves the column out"
    if error.fault == "mixed":
        others = (
            f"; --text {column} takes the column for text, as the estimators "
            f"bayesnet, tree and chowliu do, and --ignore {column} leaves it out"
        )
    if args.label is None:
        return f"; if it holds the labels, say --label {column}{others}"
    return others


def holds_sequences(args):
    """True if the data file holds sequences: --format, its ending or first lines."""
    if args.format != "auto":
        return args.format == "sequences"
    if plain_name(args.data).lower().endswith(SEQUENCE_SUFFIXES):
        return True
    return _FASTA_LINES.match(_first_bytes(args.data)) is not None


def _first_bytes(path):
    """Some first bytes of a file or of standard input, which are read again later."""
    if path == STANDARD_INPUT:
        stream = getattr(sys.stdin, "buffer", None)
        return stream.peek() if hasattr(stream, "peek") else b""
    if not os.path.isfile(path):  # a pipe has its bytes once only
        return b""
    with open(path, "rb") as stream:
        return stream.read(4096)


def refuse_sequence_options(args):
    """Options for sequences have no meaning for tables."""
    given = vars(args).get("given", {}).items()
    flags = [flag for dest, (flag, _, _) in given if dest in FOR_SEQUENCES]
    flags += ["--negative"] if args.negative is not None else []
    flags += ["--keep-case"] if args.keep_case else []
    if flags:
        raise CommandError(
            f"{flags[0]} is for sequences, and {args.data} is read as a table; if it "
            "holds sequences, say --format sequences"
        )


# --------------------------------------------------------------------------- labels


def real_labels(table, name):
    """Labels of a regressor."""
    try:
        return table.y.astype(float)
    except ValueError:
        raise CommandError(
            f"{name}: the labels are text, but a regressor needs numbers; choose their "
            "column with --label"
        ) from None


def class_labels(table, args):
    """Labels of a classifier: text or whole numbers."""
    if table.y.dtype.kind == "f":
        column = table.label_name or table.label_index
        where = "" if column is None else f" of column {column!r}"
        fault = "not whole numbers, so no classes"
        if np.all(table.y == np.trunc(table.y)):
            fault = "numbers too large to be told apart as classes; write them as text"
        raise CommandError(
            f"{args.data}: the labels{where} are {fault}"
            f"{_label_hint(table, args)}, or train --estimator regressor"
        )
    n, n_classes = len(table.y), len(np.unique(table.y))
    if n > MANY and n_classes == n:  # a small file may have as many classes
        raise CommandError(
            f"{args.data}: all {n} labels differ, so no class has two rows"
            f"{_label_hint(table, args)}, or train --estimator regressor"
        )
    _tell_many_classes(table, args, n_classes)
    return table.y


def _tell_many_classes(table, args, n_classes):
    """Warn of many classes, as `args.told_of_classes` says to what trains them."""
    args.told_of_classes = False
    if n_classes <= MANY:
        return
    y = table.y
    if y.dtype.kind == "i":
        first, last = int(y.min()), int(y.max())
        if first <= 1 and last - first < n_classes:  # numbers of classes, 0 or 1 to K
            return
        said = (
            f"{n_classes} different numbers from {first} to {last}, each a class of "
            "its own; if they are quantities, train --estimator regressor"
        )
    elif has_many(n_classes, len(y)):
        said = (
            f"{n_classes} different texts in {len(y)} rows, such as "
            f"{short(str(y[0]))}, each a class of its own{_label_hint(table, args)}"
        )
    else:
        return
    tell(f"maxent fit: warning: the labels are {said}")
    args.told_of_classes = True


def _label_hint(table, args):
    """Hint at the choice of another column, with one of text if there is any."""
    if args.label is not None or table.format != "csv":
        return "; choose the labels' column with --label"
    names = table.feature_names or [str(i) for i in range(table.X.shape[1] + 1)]
    text = [
        name
        for name, column in zip(names, table.X.T)
        if any(isinstance(cell, str) for cell in column[:100].tolist())
    ]
    example = f", such as --label {quoted(text[0])}" if text else ""
    return f"; the last column is taken: choose another with --label{example}"


def partial_labels(y):
    """Labels with -1 where there is none; text where -1 is a class itself."""
    labels = y.tolist()
    if None not in labels:
        return y
    text = any(label == -1 or isinstance(label, str) for label in labels)
    if not text:
        return np.array([-1 if label is None else label for label in labels])
    kept = [-1 if label is None else str(label) for label in labels]
    return np.array(kept, dtype=object)


def class_weights(text, y):
    """Value of --class-weight for the labels of a file."""
    if text == "balanced":
        return text
    known = {str(label): label for label in np.unique(y).tolist()}
    weights = {}
    for part in text.split(","):
        name, _, value = part.rpartition(":")
        try:
            weight = float(value)
        except ValueError:
            weight = None
        if weight is None or name.strip() not in known:
            raise CommandError(
                f"--class-weight {text}: {part!r} is not LABEL:WEIGHT with one of the "
                f"labels {', '.join(known)}; or say balanced"
            )
        if known[name.strip()] in weights:
            raise CommandError(
                f"--class-weight {text}: {name.strip()} has two weights; leave one out"
            )
        weights[known[name.strip()]] = weight
    return weights
