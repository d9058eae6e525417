"""Predictions of an estimator: what is asked for, the rows, the report."""

import contextlib
import csv
import gzip
import io
import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maxent._commands.anomalies import (
    detection_measures,
    is_detector,
    known_anomalies,
    refuse_options_of_detectors,
)
from maxent._commands.console import show, tell
from maxent._commands.outcome import CommandError, Outcome
from maxent._commands.reports import estimated, report, verdict
from maxent._commands.training import machine_of
from maxent._commands.wording import in_shell, warnings_told
from maxent._persistence.calibrated import CALIBRATED
from maxent._support.files import whole_file

__all__ = ["Applied", "answers", "can_answer", "columns_asked", "write_predictions"]

_PRINTED_ROWS = 10_000  # at a time
_EXPLAINING = 3  # columns that explain a row
# Probabilities of a fit with a logistic margin need level 0, and of trees, whose scores
# are log-odds already, a rate of one.
_LOGISTIC = "fit with --probability or --margin logistic --level 0"
_PROBABLE = {
    "MEDGaussianClassifier": _LOGISTIC,
    "MEDBayesNetClassifier": _LOGISTIC,
    "MEDTreeClassifier": f"{_LOGISTIC} -C 1",
    "MEDPartialLabelClassifier": (  # its logistic prior is too sure
        "fit the rows with labels alone by --estimator classifier --drop-unlabelled "
        "--probability"
    ),
}
_WORDS = {
    "predict": "prediction",
    "decision_function": "decision",
    "predict_proba": "proba",
    "score_samples": "score",
}


@dataclass
class Applied:
    """A model and the rows that it is applied to.

    Attributes
    ----------
    estimator : estimator
    X : ndarray, CSR or list of str
        Rows as the estimator takes them.
    y : ndarray or None
        Labels.
    ids : list of (name, cells)
        Columns that name the rows.
    columns : list of str or None
        Names of the file's columns by feature of the estimator: of text several have
        the same.
    """

    estimator: Any
    X: Any
    y: Any = None
    ids: list[tuple[str, Any]] = field(default_factory=list)
    columns: list[str] | None = None


def columns_asked(args, estimator):
    """Methods of the estimator that are asked for, each of which writes columns."""
    asked = {
        "decision_function": (args.decision, "decision values"),
        "predict_proba": (args.probability, "probabilities"),
        "score_samples": (args.score or args.top is not None, "log-likelihoods"),
        "feature_scores": (args.explain, "shares of columns"),
    }
    refuse_options_of_detectors(args, machine_of(estimator), "positive")
    methods = ["predict"] if hasattr(estimator, "predict") else ["score_samples"]
    for method, (wanted, what) in asked.items():
        if not wanted or method in methods:
            continue
        if not hasattr(_without_calibration(estimator, method), method):
            machine, remedy = machine_of(estimator), ""
            if method == "predict_proba" and hasattr(estimator, "classes_"):
                remedy = f"; {_probability_remedy(machine)} to have them"
            if method == "feature_scores":
                remedy = "; detectors of outliers and Gaussian mixtures of tables do"
            flag = "--top" if method == "score_samples" and not args.score else ""
            raise CommandError(
                f"{flag + ': ' if flag else ''}{args.model}: its "
                f"{type(machine).__name__} defines no {what}{remedy}"
            )
        methods.append(method)
    return methods


def can_answer(estimator, method):
    """True if an estimator, or the machine in its calibration, has a method."""
    return hasattr(_without_calibration(estimator, method), method)


def answers(args, applied, methods):
    """Values of several methods of the estimator, by name."""
    told = ["no category in feature"] if "unseen" in vars(args) else []
    try:
        with warnings_told(args, told):
            return {
                method: getattr(
                    _without_calibration(applied.estimator, method), method
                )(applied.X)
                for method in methods
            }
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        text = in_shell(error, args)
        raise CommandError(f"{args.model} on {args.data}: {text}") from error


def _probability_remedy(machine):
    """Options of ``maxent fit`` that give a model probabilities, behind a verb."""
    name = type(machine).__name__
    if name != "M3EMotifClassifier":
        return _PROBABLE.get(name, "fit with --probability or --margin logistic")
    if machine.pos_label is None:
        return "fit with --probability"
    return (
        "rename the labels so that the class with the motif is the last in sorted "
        "order, and fit with --probability in the place of --positive"
    )


def _without_calibration(estimator, method):
    """The estimator whose method it is: labels and probabilities are calibrated."""
    if method in ("predict", "predict_proba"):
        return estimator
    if type(estimator).__name__ == CALIBRATED:
        return machine_of(estimator)
    if hasattr(estimator, "steps") and type(estimator[-1]).__name__ == CALIBRATED:
        from sklearn.pipeline import Pipeline

        last = (estimator.steps[-1][0], machine_of(estimator))
        return Pipeline([*estimator.steps[:-1], last])
    return estimator


def write_predictions(args, applied, methods, beside=()):
    """Apply the estimator, write what is asked for, and tell the error if there is y.

    `beside` are names and cells of columns to write after the predictions.
    """
    estimator, y = applied.estimator, applied.y
    values = answers(args, applied, methods)
    labels = values.get("predict", values.get("score_samples"))
    columns = [*applied.ids]
    for method in methods:
        if method == "feature_scores":
            columns += _explained(values[method], applied.columns)
        else:
            columns += _columns_of(method, values[method], estimator)
    columns += beside
    rows = np.arange(len(labels))
    if args.top is not None:
        rows, labels = _top(args, applied, values["score_samples"], labels)
        columns = [("row", np.arange(1, len(labels) + 1)), *columns]
        columns = [
            (name, labels if name == "prediction" else cells) for name, cells in columns
        ]
    _write_rows(args.output, columns, rows)
    args.written = args.output
    machine = machine_of(estimator)
    found = verdict(machine, labels, y)
    judged = _judged(args, applied, labels, values)
    if args.json:
        lines = [("rows", len(rows)), *([found] if found else []), *judged]
        if y is not None and None in y.tolist():
            lines.append(("without a label", y.tolist().count(None)))
        if "unseen" in vars(args):
            lines.append(("unseen categories", args.unseen))
        lines.append(("written", args.output))
        return Outcome(report(args, lines), written=args.output)
    if not args.quiet:
        for name, text in [*([found] if found else []), *judged]:
            tell(f"{name}: {text}")
    return Outcome(written=args.output)


def _columns_of(method, values, estimator):
    """Names and cells of the columns that the values of a method are written in."""
    word = _WORDS[method]
    if values.ndim == 1:
        return [(word, values)]
    names = getattr(estimator, "classes_", np.arange(values.shape[1]))
    return [(f"{word}_{name}", own) for name, own in zip(names.tolist(), values.T)]


def _explained(shares, names):
    """The columns that take most off the score of a row, and how much each does."""
    names = [str(i) for i in range(shares.shape[1])] if names is None else names
    places = {name: k for k, name in enumerate(dict.fromkeys(names))}
    total = np.zeros((len(shares), len(places)))
    for name, own in zip(names, shares.T):  # a column of text has several features
        total[:, places[name]] += own
    order = np.argsort(total, axis=1, kind="stable")
    known, rows = np.array([*places], dtype=object), np.arange(len(shares))
    columns = []
    for k in range(min(_EXPLAINING, len(places))):
        columns.append((f"column_{k + 1}", known[order[:, k]]))
        columns.append((f"share_{k + 1}", total[rows, order[:, k]]))
    return columns


def _top(args, applied, scores, labels):
    """Rows of the lowest scores, first the lowest, and labels as if they were found."""
    if args.top > len(scores):
        raise CommandError(f"--top {args.top}: there are {len(scores)} rows only")
    rows = np.argsort(scores, kind="stable")[: args.top]
    if is_detector(machine_of(applied.estimator)):
        labels = np.ones(len(scores), dtype=int)
        labels[rows] = -1
    return rows, labels


def _judged(args, applied, labels, values):
    """Lines on how a detector's predictions agree with known labels."""
    if applied.y is None or not is_detector(machine_of(applied.estimator)):
        return []
    truth, kept = known_anomalies(args, applied.y)
    if truth is None:
        return []
    scores = values.get("score_samples")
    if scores is None:
        scores = answers(args, applied, ["score_samples"])["score_samples"]
    found = detection_measures(truth, labels[kept] == -1, -scores[kept])
    return [(name, estimated(value)) for name, value in found.items()]


@contextlib.contextmanager
def _text_file(path):
    """File for text that appears complete or not at all, compressed if its name is."""
    if not path.endswith(".gz"):
        with whole_file(path, "w", encoding="utf-8", newline="") as stream:
            yield stream
        return
    with (
        whole_file(path) as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="") as stream,
    ):
        yield stream


def _write_rows(path, columns, rows):
    """Write columns, (name, cells), of some rows."""
    cells = [c.tolist() if isinstance(c, np.ndarray) else c for _, c in columns]
    header = [name for name, _ in columns]
    lines = ([own[i] for own in cells] for i in rows.tolist())
    lines = itertools.chain([header], lines)
    if path is not None:
        with _text_file(path) as stream:
            csv.writer(stream, lineterminator="\n").writerows(lines)
        return
    while part := list(itertools.islice(lines, _PRINTED_ROWS)):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(part)
        show(text.getvalue(), escape=False)
