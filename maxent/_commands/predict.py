"""``maxent predict``: apply a model file to a data file."""

import numpy as np

from maxent._commands import reading
from maxent._commands.bins import binned
from maxent._commands.columns import (
    are_columns,
    encode,
    sources_of,
    unseen_categories,
)
from maxent._commands.console import tell
from maxent._commands.feature_scales import are_scales, standardized
from maxent._commands.outcome import CommandError, check_output
from maxent._commands.predictions import Applied, columns_asked, write_predictions
from maxent._commands.training import (
    as_taken,
    machine_of,
    takes_sparse,
    without_names,
)
from maxent._commands.wording import column_words, warnings_told
from maxent._persistence.persistence import ModelFileError, load
from maxent._support.files import STANDARD_INPUT
from maxent._support.validation import shown

__all__ = ["applied", "load_model", "predict"]


def predict(args):
    """Apply a model file to a data file."""
    if args.output == STANDARD_INPUT:  # which, for output, is where it goes by itself
        args.output = None
    estimator, extra = load_model(args.model)
    if args.output is not None:
        check_output(args.output, args.data, args.model)
    elif args.json:
        raise CommandError(
            "--json prints what is found of the predictions, which go to the same "
            "place; write them to a file by -o"
        )
    if extra["sequences"] is not None:
        from maxent._commands import sequences

        return sequences.predict(args, estimator, extra["sequences"])
    if args.places:
        raise CommandError(
            f"--places is for models of motifs, and {args.model} is none"
        )
    if args.format == "sequences":
        raise CommandError(
            f"{args.model} is a model of a table, not of sequences; use --format csv "
            "or svmlight"
        )
    reading.refuse_sequence_options(args)
    methods = columns_asked(args, estimator)
    return write_predictions(args, applied(args, estimator, extra), methods)


def applied(args, estimator, extra):
    """The rows of a table as a model takes them."""
    with warnings_told(args):
        table = _read(args, extra, estimator)
    X = standardized(_features(args, table, extra, estimator), extra["standardize"])
    X = as_taken(estimator, X)
    y = _without_unlabelled(machine_of(estimator), table.y)
    return Applied(estimator, X, y, _ids(table), _sources(table, extra["columns"]))


def _sources(table, columns):
    """Names of the columns that the features of the estimator were made of."""
    if table.format != "csv":
        first = 0 if table.zero_based else 1
        return [str(j + first) for j in range(table.X.shape[1])]
    names = table.feature_names or [str(i) for i in table.positions]
    if columns is None or "categories" not in columns:
        return names
    return sources_of(columns, names)


def _without_unlabelled(machine, y):
    """Labels with None for -1 where this stands for none, as in the fit of partial."""
    if y is None or "label_mean_" not in vars(machine):
        return y
    if {-1, "-1"} & {*machine.classes_.tolist()}:
        return y
    return np.array([None if label == -1 else label for label in y.tolist()], object)


def _features(args, table, extra, estimator):
    """The rows as columns of numbers, or as the categories that the estimator takes."""
    X, columns = table.X, extra["columns"]
    if columns is None:
        args.words = column_words(table)
        return X
    if not isinstance(X, np.ndarray):
        X = X.toarray()
    X = X.astype(object)
    _tell_unseen(args, table, X, columns, machine_of(estimator))
    if "categories" not in columns:
        return X if columns.get("bins") is None else binned(X, columns["bins"])
    sparse = extra["standardize"] is None and takes_sparse(estimator)
    return encode(columns, X, sparse)


def _tell_unseen(args, table, X, columns, machine):
    """Warn of categories that training has not met, and keep their numbers."""
    word = column_words(table)
    args.unseen = {}
    machine = vars(machine).get("estimator_", machine)  # of partial
    try:
        found = unseen_categories(X, columns, machine)
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise CommandError(f"{args.model} on {args.data}: {error}") from error
    for j, count, example, known in found:
        args.unseen[table.feature_names[j] if table.feature_names else str(j)] = count
        tell(
            f"maxent predict: warning: column {word(j)[0]}: in {count} of {len(X)} "
            f"rows a category that training has not met, such as {shown(example)}, is "
            f"left out; known are {shown(known.tolist())[1:-1]}"
        )


def _ids(table):
    """Names and cells of the columns of identifiers; numbered without a header."""
    found = table.beside.get("id", [])
    numbers = ["id"] if len(found) == 1 else [f"id_{column.place}" for column in found]
    return [
        (column.place if isinstance(column.place, str) else number, column.cells)
        for column, number in zip(found, numbers)
    ]


def _read(args, extra, estimator):
    labelled = "auto" if args.label is None else "partly"
    if args.no_label:
        labelled = False
    columns, mode = extra["columns"], "numbers"
    if columns is not None:
        encoded = "categories" in columns
        mode = "mixed" if encoded else "categories"
    return reading.read(
        args,
        label=extra["label"] if args.label is None else args.label,
        labelled=labelled,
        n_features=estimator.n_features_in_
        if columns is None
        else len(columns["text"]),
        feature_names=extra["feature_names"],
        zero_based="auto" if extra["zero_based"] is None else extra["zero_based"],
        columns=mode,
        text=None if columns is None else columns["text"],
        beside=reading.beside(args),
        layout=extra["layout"],
    )


def load_model(path):
    """The estimator, and what `fit` wrote beside it, checked."""
    if path == STANDARD_INPUT:
        raise CommandError(
            "a model is not read from standard input; name its file, then - for data"
        )
    try:
        estimator, extra = load(path, return_extra=True)
    except ModelFileError as error:
        raise CommandError(error) from None
    answers = hasattr(estimator, "predict") or hasattr(estimator, "score_samples")
    if not answers or not hasattr(estimator, "get_params"):
        raise CommandError(
            f"{path} holds a {type(estimator).__name__}, which does not predict; read "
            "it in Python by maxent.load"
        )
    keys = ("feature_names", "label", "zero_based", "standardize", "sequences")
    extra = {key: extra.get(key) for key in (*keys, "columns", "layout")}
    if isinstance(extra["layout"], dict):
        extra["layout"] = {**extra["layout"], "id": _listed_ids(extra["layout"])}
    if extra["sequences"] is not None:
        return estimator, extra
    if hasattr(estimator, "feature_names_in_"):
        # Columns are found by name here; the arrays that are passed on have none.
        if extra["feature_names"] is None:
            extra["feature_names"] = list(estimator.feature_names_in_)
        without_names(estimator)
    if not _agrees(extra, getattr(estimator, "n_features_in_", None)):
        raise CommandError(f"{path}: what is said about its features does not agree")
    return estimator, extra


def _agrees(extra, n):
    """True if what a file says of its columns fits an estimator of n features."""
    if not isinstance(n, (int, np.integer)):
        return False
    names, scales, columns = (
        extra[key] for key in ("feature_names", "standardize", "columns")
    )
    if columns is not None and not are_columns(columns, n):
        return False
    width = n if columns is None else len(columns["text"])
    return (
        (names is None or (isinstance(names, list) and len(names) == width))
        and isinstance(extra["label"], (str, int, type(None)))
        and (scales is None or are_scales(scales, n))
        and (extra["layout"] is None or _is_layout(extra["layout"]))
    )


def _is_layout(layout):
    """True if what a file says of columns left out can be from `fit`."""
    if not isinstance(layout, dict) or not isinstance(layout.get("width"), int):
        return False
    left_out, known = layout.get("left_out"), layout["id"]
    numbers = [*left_out] if isinstance(left_out, list) else [None]
    if not isinstance(known, list) or not {*map(type, known)} <= {str, int}:
        return False
    numbers += [place for place in known if isinstance(place, int)]
    return all(isinstance(i, int) and 0 <= i < layout["width"] for i in numbers)


def _listed_ids(layout):
    """Columns of identifiers as a list, which older files do not have."""
    known = layout.get("id")
    if known is None:
        return []
    return [known] if isinstance(known, (str, int)) else known
