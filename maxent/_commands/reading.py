"""Data files as the options describe them, and labels as estimators take them."""

import os
import re
import sys

import numpy as np

from maxent._commands.options import is_for_sequences
from maxent._commands.outcome import CommandError
from maxent._support.console import tell
from maxent._support.data_files import TableError, read_table
from maxent._support.files import STANDARD_INPUT, plain_name

__all__ = [
    "beside",
    "class_labels",
    "class_weights",
    "encoding_remedy",
    "holds_sequences",
    "partial_labels",
    "read",
    "real_labels",
    "refuse_sequence_options",
]

_MANY_CLASSES = 50  # rows, of which each may have a class of its own in a small file
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


def beside(args):
    """Columns that the options name and that are neither features nor label."""
    named = {kind: vars(args).get(kind) for kind in ("id", "weights")}
    return {kind: column for kind, column in named.items() if column is not None}


def encoding_remedy(error):
    """The option for a file that seems to be in another encoding."""
    found = re.search("if the file is in ([a-z0-9-]+)", str(error))
    return f", or say --encoding {found[1]}" if found else ""


def _remedy(args, error):
    """Options that help with a cell that is no number, or with the encoding."""
    if error.fault == "encoding":
        return encoding_remedy(error)
    if args.command != "fit":
        return ""
    if error.fault == "missing":
        return "; --impute fills missing cells"
    if error.fault == "mixed" and args.label is not None:
        return "; the estimators bayesnet, tree and chowliu take it for a category"
    if error.column is None:
        return ""
    if args.label is None:
        return f"; if it holds the labels, say --label {error.column}"
    return f"; --ignore {error.column} leaves the column out"


def holds_sequences(args):
    """Whether the data file holds sequences: --format, its ending or first lines."""
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
    for dest, (flag, _, _) in args.given.items():
        if is_for_sequences(dest):
            raise CommandError(
                f"{flag} is for sequences, and {args.data} is read as a table; if it "
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
        raise CommandError(
            f"{args.data}: the labels{where} are not whole numbers, so no classes"
            f"{_label_hint(table, args)}, or train --estimator regressor"
        )
    n = len(table.y)
    if n > _MANY_CLASSES and len(np.unique(table.y)) == n:
        raise CommandError(
            f"{args.data}: all {n} labels differ, so no class has two rows"
            f"{_label_hint(table, args)}, or train --estimator regressor"
        )
    return table.y


def _label_hint(table, args):
    """How to choose another column, with one of text if there is any."""
    if args.label is not None or table.format != "csv":
        return "; choose the labels' column with --label"
    names = table.feature_names or [str(i) for i in range(table.X.shape[1] + 1)]
    text = [
        name
        for name, column in zip(names, table.X.T)
        if any(isinstance(cell, str) for cell in column[:100].tolist())
    ]
    example = f", such as --label {text[0]}" if text else ""
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
        weights[known[name.strip()]] = weight
    return weights
