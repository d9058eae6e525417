"""Work behind the commands of ``maxent.cli``."""

import contextlib
import csv
import io
import itertools
import os
import time
import warnings
from dataclasses import dataclass

import numpy as np

from maxent._support.console import Messages, show, tell
from maxent._support.data_files import TableError, read_table
from maxent._support.files import whole_file
from maxent._support.persistence import (
    CLASSES,
    ModelFileError,
    load_with_extra,
    read_model,
    resolve_class,
    save,
)
from maxent._support.results import gap_text

ESTIMATORS = {
    "classifier": "MEDClassifier",
    "regressor": "MEDRegressor",
    "selector": "MEDFeatureSelector",
}


SEQUENCE_SUFFIXES = (".fasta", ".fa", ".fna", ".ffn", ".faa", ".frn", ".seq")
_PRINTED_ROWS = 10_000  # at a time


class CommandError(Exception):
    """One sentence for the user; the command ends with exit code 2."""


@dataclass(frozen=True)
class Outcome:
    """How a command ended.

    Attributes
    ----------
    report : str
        For standard output.
    code : int
        The exit code.
    written : str or None
        The file that was asked for, which stays if the report cannot be printed.
    """

    report: str = ""
    code: int = 0
    written: str | None = None


# -------------------------------------------------------------------------- files


def _read(args, **expected):
    header = "auto" if args.header is None else args.header
    try:
        return read_table(args.data, format=args.format, header=header, **expected)
    except TableError as error:
        raise CommandError(error) from None


def check_output(path, *inputs):
    """Find out before the work that its result could not be written."""
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise CommandError(f"cannot write {path}: the folder {folder} does not exist")
    if os.path.isdir(path):
        raise CommandError(f"cannot write {path}: it is a folder")
    for other in inputs:
        if os.path.exists(path) and os.path.samefile(path, other):
            raise CommandError(f"{path} would replace the input of the same name")


def sequence_format(args):
    """Whether the data file holds sequences: as --format says, or its ending."""
    if args.format != "auto":
        return args.format == "sequences"
    name = os.fspath(args.data).lower().removesuffix(".gz")
    return name.endswith(SEQUENCE_SUFFIXES)


def refuse_sequence_options(args):
    """Options for sequences have no meaning for tables."""
    for flag in args.given_of_sequences:
        raise CommandError(
            f"{flag} is for sequences, and {args.data} is read as a table; if it holds "
            "sequences, say --format sequences"
        )


# ---------------------------------------------------------------------------- fit


def fit(args):
    """``maxent fit``: train on a data file, write a model file."""
    if sequence_format(args):
        from maxent import _sequence_commands

        return _sequence_commands.fit(args)
    refuse_sequence_options(args)
    estimator = _make_estimator(args)
    check_output(args.model, args.data)
    table = _read(args, label=args.label)
    X, y = table.X, table.y
    if args.estimator == "regressor":
        if y.dtype.kind == "U":
            raise CommandError(
                f"{args.data}: the labels are text, but a regressor needs numbers; "
                "choose their column with --label"
            )
        y = y.astype(float)
    scales = _scales(X, args.data) if args.standardize else None
    X = _standardize(X, scales)
    start = time.perf_counter()
    run_fit(args, estimator, lambda: estimator.fit(X, y))
    seconds = time.perf_counter() - start
    extra = {
        "feature_names": table.feature_names,
        "label": table.label_index if table.label_name is None else table.label_name,
        "zero_based": table.zero_based,
        "standardize": scales,
    }
    try:
        save(estimator, args.model, extra=extra)
    except (TypeError, ValueError) as error:
        raise CommandError(error) from error
    state = vars(estimator)
    lines = [("rows", X.shape[0]), ("features", X.shape[1])]
    if hasattr(estimator, "get_support"):
        lines.append(("selected", _selected(estimator, table.feature_names)))
    lines += fit_lines(state, estimator.predict(X), y)
    return fit_outcome(args, state, lines, seconds)


def fit_lines(state, predicted, y):
    """Lines about a fit: classes, training error, certificate."""
    lines = []
    if "classes_" in state:
        counts = [f"{c} ({int((y == c).sum())})" for c in state["classes_"].tolist()]
        lines.append(("classes", _listed(counts)))
    lines.append(("training error", error_text(predicted, y, state)))
    return lines + _certificate(state)


def fit_outcome(args, state, lines, seconds):
    """The report of a fit whose model is written."""
    lines = [*lines, ("time", f"{seconds:.3g} s"), ("written", args.model)]
    converged = state.get("converged_", True)
    if not converged:
        tell(
            "maxent fit: the tolerance was not reached; the model is written all the "
            "same"
        )
    return Outcome(_aligned(lines), 0 if converged else 1, args.model)


def _make_estimator(args):
    cls = resolve_class(ESTIMATORS[args.estimator])
    known = cls._get_param_names()
    for name, (flag, _) in args.given.items():
        if name not in known:
            raise CommandError(f"{flag} does not apply to the {args.estimator}")
    return cls(**{name: value for name, (_, value) in args.given.items()})


def run_fit(args, estimator, run):
    """Call `run`, an estimator's fit; progress and warnings go to standard error."""
    messages = Messages()
    progress = messages.isatty() if args.progress is None else args.progress
    verbose = estimator.get_params(deep=False).get("verbose")
    if progress and verbose is not None:
        estimator.set_params(verbose=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with contextlib.redirect_stdout(messages):
                run()
        except (ValueError, TypeError) as error:
            raise CommandError(error) from error
    if progress and verbose is not None:
        estimator.set_params(verbose=verbose)
    for text in dict.fromkeys(one_line(warning.message) for warning in caught):
        tell(f"maxent fit: warning: {text}")


def _scales(X, name):
    """Mean and scale of every feature; sparse features keep their zeros."""
    from sklearn.preprocessing import StandardScaler

    dense = isinstance(X, np.ndarray)
    with np.errstate(over="ignore", invalid="ignore"):
        scaler = StandardScaler(with_mean=dense).fit(X)
    wild = np.flatnonzero(~np.isfinite(scaler.var_))
    if wild.size:
        raise CommandError(
            f"{name}: the values of feature {wild[0]} (counted from 0) are too large "
            "to standardize"
        )
    return {"mean": scaler.mean_ if dense else None, "scale": scaler.scale_}


def _standardize(X, scales):
    if scales is None:
        return X
    mean, scale = scales["mean"], scales["scale"]
    if not isinstance(X, np.ndarray):
        if mean is None:
            X = X.copy()
            X.data /= scale[X.indices]
            return X
        X = X.toarray()
    with np.errstate(over="ignore"):  # infinity is refused by the estimator
        return (X if mean is None else X - mean) / scale


# ------------------------------------------------------------------------ predict


def predict(args):
    """``maxent predict``: apply a model file to a data file."""
    estimator, extra = _load(args.model)
    if args.output is not None:
        check_output(args.output, args.data, args.model)
    if extra["sequences"] is not None:
        from maxent import _sequence_commands

        return _sequence_commands.predict(args, estimator, extra["sequences"])
    if args.format == "sequences":
        raise CommandError(
            f"{args.model} is a model of a table, not of sequences; use --format csv "
            "or svmlight"
        )
    method = prediction_method(args, estimator)
    labelled = "auto" if args.label is None else True
    if args.no_label:
        labelled = False
    table = _read(
        args,
        label=extra["label"] if args.label is None else args.label,
        labelled=labelled,
        n_features=estimator.n_features_in_,
        feature_names=extra["feature_names"],
        zero_based="auto" if extra["zero_based"] is None else extra["zero_based"],
    )
    X = _standardize(table.X, extra["standardize"])
    return write_predictions(args, estimator, method, X, table.y)


def prediction_method(args, estimator):
    """The estimator's method that is asked for."""
    method = "predict_proba" if args.proba else "predict"
    method = "decision_function" if args.decision else method
    if not hasattr(estimator, method):
        what = "probabilities" if args.proba else "decision values"
        remedy = "; fit with --margin logistic to have them" if args.proba else ""
        raise CommandError(
            f"{args.model}: its {type(estimator).__name__} defines no {what}{remedy}"
        )
    return method


def write_predictions(args, estimator, method, X, y):
    """Apply the estimator, write the predictions, and tell the error if there is y."""
    try:
        values = labels = getattr(estimator, method)(X)
        if y is not None and method != "predict":
            labels = estimator.predict(X)
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise CommandError(f"{args.model} on {args.data}: {error}") from error
    header = [{"predict": "prediction", "decision_function": "decision"}.get(method)]
    if values.ndim == 2:
        prefix = "proba" if args.proba else "decision"
        header = [f"{prefix}_{c}" for c in estimator.classes_.tolist()]
    _write_rows(args.output, header, values)
    if y is not None:
        classes = getattr(estimator, "classes_", None)
        state = {} if classes is None else {"classes_": classes}
        tell(f"error: {error_text(labels, y, state)}")
    return Outcome(written=args.output)


def _load(path):
    """The estimator, and what `fit` wrote beside it, checked."""
    try:
        estimator, extra = load_with_extra(path)
    except ModelFileError as error:
        raise CommandError(error) from None
    if not hasattr(estimator, "predict"):
        raise CommandError(
            f"{path} holds a {type(estimator).__name__}, which does not predict; read "
            "it in Python by maxent.load"
        )
    keys = ("feature_names", "label", "zero_based", "standardize", "sequences")
    extra = {key: extra.get(key) for key in keys}
    if extra["sequences"] is not None:
        return estimator, extra
    if hasattr(estimator, "feature_names_in_"):
        # Columns are found by name here; the arrays that are passed on have none.
        if extra["feature_names"] is None:
            extra["feature_names"] = list(estimator.feature_names_in_)
        del estimator.feature_names_in_
    n = getattr(estimator, "n_features_in_", None)
    names, scales = extra["feature_names"], extra["standardize"]
    if (
        not isinstance(n, (int, np.integer))
        or (names is not None and (not isinstance(names, list) or len(names) != n))
        or not isinstance(extra["label"], (str, int, type(None)))
        or (scales is not None and not _are_scales(scales, n))
    ):
        raise CommandError(f"{path}: what is said about its features does not agree")
    return estimator, extra


def _are_scales(scales, n):
    if not isinstance(scales, dict):
        return False
    mean, scale = scales.get("mean"), scales.get("scale")
    return all(
        isinstance(part, np.ndarray) and part.shape == (n,) and np.isfinite(part).all()
        for part in (scale if mean is None else mean, scale)
    ) and bool((scale > 0).all())


def _write_rows(path, header, values):
    rows = values.tolist() if values.ndim == 2 else ([v] for v in values.tolist())
    rows = itertools.chain([header], rows)
    if path is not None:
        with whole_file(path, "w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerows(rows)
        return
    while part := list(itertools.islice(rows, _PRINTED_ROWS)):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(part)
        show(text.getvalue(), escape=False)


# --------------------------------------------------------------------------- info


def info(args):
    """``maxent info``: check a model file, print its contents, run nothing of it."""
    try:
        model = read_model(args.model)
    except ModelFileError as error:
        raise CommandError(error) from None
    size = os.path.getsize(args.model)
    lines = [
        ("file", f"{args.model}, {size} bytes, format {model.format_version}"),
        ("checksum", f"ok (SHA-256 {model.checksum[:16]}...)"),
        ("written by", f"maxent {model.maxent_version}"),
        ("class", model.class_name),
    ]
    params, fitted = model.params, model.fitted
    if model.class_name == "Pipeline":
        for name, step in params["steps"]:
            lines.append((f"step {name}", step["class"]))
            lines += _parameter_lines(step["params"])
        params, fitted = {}, step["fitted"]
    lines += _parameter_lines(params)
    if model.class_name in CLASSES:
        lines.append(("features", fitted.get("n_features_in_", "unknown")))
    if model.extra.get("feature_names"):
        lines.append(("  names", _listed(model.extra["feature_names"])))
    if "classes_" in fitted:
        lines.append(("classes", _listed(fitted["classes_"])))
    if "standardize" in model.extra:
        scaled = "no" if model.extra["standardize"] is None else "yes"
        lines.append(("standardized", scaled))
    lines += _certificate(fitted)
    for name, value in fitted.items():
        if getattr(value, "ndim", 0):
            lines.append((f"  {name}", f"{value.shape} {value.dtype}"))
    return Outcome(_aligned(lines))


def _parameter_lines(params):
    return [(f"  {name}", _brief(value)) for name, value in params.items()]


def _brief(value):
    """Text of a parameter; of arrays shape and dtype, wherever they are."""
    if getattr(value, "ndim", 0):
        return f"{value.shape} {value.dtype}"
    if isinstance(value, dict):
        inside = (f"{name}: {_brief(part)}" for name, part in value.items())
        return f"{{{', '.join(inside)}}}"
    if isinstance(value, (list, tuple)) and any(
        isinstance(part, (dict, np.ndarray)) for part in value
    ):
        return f"[{', '.join(map(_brief, value))}]"
    return repr(value)


# ------------------------------------------------------------------------ results


def one_line(message):
    """Text of a message without line breaks."""
    return " ".join(str(message).split())


def _certificate(state):
    """Lines about the solution, from the fitted attributes that are there."""
    lines = []
    support = state.get("support_")
    if isinstance(support, np.ndarray) and support.dtype.kind == "i":
        lines.append(("support", f"{len(support)} rows"))
    bound = state.get("loo_bound_")
    if isinstance(bound, float) and bound == bound:
        lines.append(("leave-one-out error", f"at most {100 * bound:.2f} % (bound)"))
    objective, gap = state.get("objective_"), state.get("duality_gap_")
    if isinstance(objective, float):
        lines.append(("objective", f"{objective:.8g}"))
    if isinstance(gap, float) and isinstance(objective, float):
        share = gap_text(gap / (1 + abs(objective)), 0.0)
        shown = f"{gap_text(gap, objective)} ({share} of 1 + |objective|)"
        lines.append(("duality gap", shown))
    if "n_iter_" in state:
        lines.append(("iterations", state["n_iter_"]))
    if "converged_" in state:
        lines.append(("converged", "yes" if state["converged_"] else "NO"))
    return lines


def error_text(predicted, y, state):
    """Error of predictions, in words."""
    if "classes_" not in state:
        if y.dtype.kind == "U":
            return "unknown, the labels are text"
        residual = np.asarray(predicted, dtype=float) - y
        return f"{np.sqrt(np.mean(residual**2)):.6g} (root mean square)"
    classes = state["classes_"]
    if (classes.dtype.kind in "OU") != (y.dtype.kind == "U"):
        y, predicted, classes = (
            np.array([str(v) for v in part.tolist()])
            for part in (y, predicted, classes)
        )
    if not np.isin(y, classes).any():
        return "unknown, no label of the file is a class of the model"
    wrong = int(np.sum(predicted != y))
    return f"{wrong} of {len(y)} ({100 * wrong / len(y):.2f} %)"


def _selected(estimator, names):
    chosen = estimator.get_support(indices=True).tolist()
    called = [names[i] if names else i for i in chosen]
    return f"{len(chosen)}: {_listed(called)}" if chosen else "none"


def _listed(items, most=12):
    items = [str(item) for item in items]
    more = f", ... ({len(items)} in all)" if len(items) > most else ""
    return ", ".join(items[:most]) + more


def _aligned(lines):
    width = max(len(name) for name, _ in lines)
    return "".join(f"{name:<{width}}  {value}\n" for name, value in lines)


# --------------------------------------------------------------------------- demo


def demo(args):
    """``maxent demo``: compare machines on bundled data."""
    from maxent._demo import run_demo

    if args.seed < 0:
        raise CommandError(f"--seed {args.seed} is negative; use 0, 1, 2 ...")
    picture = None if args.no_picture else args.output
    if picture is not None:
        if os.path.splitext(picture)[1].lower() not in (".png", ".pdf", ".svg"):
            raise CommandError(f"-o {picture}: name a .png, .pdf or .svg file")
        check_output(picture)
    report, converged, picture = run_demo(args.seed, picture)
    if not converged:
        tell("maxent demo: a fit did not reach its tolerance")
    return Outcome(report, 0 if converged else 1, picture)
