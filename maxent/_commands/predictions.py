"""Predictions of an estimator: its method, the rows that are written, the report."""

import contextlib
import csv
import gzip
import io
import itertools

import numpy as np

from maxent._commands.console import show, tell
from maxent._commands.outcome import CommandError, Outcome
from maxent._commands.reports import report, verdict
from maxent._commands.training import machine_of
from maxent._commands.wording import in_shell, warnings_told
from maxent._persistence.calibrated import CALIBRATED
from maxent._support.files import whole_file

__all__ = ["prediction_method", "write_predictions"]

_PRINTED_ROWS = 10_000  # at a time
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


def prediction_method(args, estimator):
    """The estimator's method that is asked for."""
    asked = {
        "decision_function": (args.decision, "decision values"),
        "predict_proba": (args.probability, "probabilities"),
        "score_samples": (args.score, "log-likelihoods"),
    }
    for method, (wanted, what) in asked.items():
        if wanted and not hasattr(_without_calibration(estimator, method), method):
            machine, remedy = machine_of(estimator), ""
            if method == "predict_proba" and hasattr(estimator, "classes_"):
                remedy = f"; {_probability_remedy(machine)} to have them"
            raise CommandError(
                f"{args.model}: its {type(machine).__name__} defines no {what}{remedy}"
            )
        if wanted:
            return method
    return "predict" if hasattr(estimator, "predict") else "score_samples"


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


def write_predictions(args, estimator, method, X, y, ids=None, beside=()):
    """Apply the estimator, write the predictions, and tell the error if there is y.

    `ids` are name and cells of a column to write before them, and `beside` those of
    columns to write after them.
    """
    try:
        told = ["no category in feature"] if "unseen" in vars(args) else []
        with warnings_told(args, told):
            home = _without_calibration(estimator, method)
            values = labels = getattr(home, method)(X)
            if method != "predict" and hasattr(estimator, "predict"):
                labels = estimator.predict(X)
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        text = in_shell(error, args)
        raise CommandError(f"{args.model} on {args.data}: {text}") from error
    word = _WORDS[method]
    header = [word]
    if values.ndim == 2:
        names = getattr(estimator, "classes_", np.arange(values.shape[1]))
        header = [f"{word}_{name}" for name in names.tolist()]
    _write_rows(args.output, header, values, ids, beside)
    args.written = args.output
    found = verdict(machine_of(estimator), labels, y)
    if args.json:
        lines = [("rows", len(values)), *([found] if found else [])]
        if y is not None and None in y.tolist():
            lines.append(("without a label", y.tolist().count(None)))
        if "unseen" in vars(args):
            lines.append(("unseen categories", args.unseen))
        lines.append(("written", args.output))
        return Outcome(report(args, lines), written=args.output)
    if found is not None and not args.quiet:
        tell(f"{found[0]}: {found[1]}")
    return Outcome(written=args.output)


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


def _write_rows(path, header, values, ids, beside):
    rows = values.tolist() if values.ndim == 2 else ([v] for v in values.tolist())
    for name, cells in beside:
        header = [*header, name]
        rows = ([*row, cell] for row, cell in zip(rows, cells.tolist()))
    if ids is not None:
        header = [ids[0], *header]
        rows = ([name, *row] for name, row in zip(ids[1], rows))
    rows = itertools.chain([header], rows)
    if path is not None:
        with _text_file(path) as stream:
            csv.writer(stream, lineterminator="\n").writerows(rows)
        return
    while part := list(itertools.islice(rows, _PRINTED_ROWS)):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(part)
        show(text.getvalue(), escape=False)
