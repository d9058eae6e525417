"""What commands say of predictions and of solutions, as text or as JSON."""

import json
import math
import re

import numpy as np

from maxent._commands.outcome import aligned
from maxent._support.results import gap_text

__all__ = [
    "Shown",
    "as_json",
    "certificate",
    "error_text",
    "estimated",
    "is_regressor",
    "recalls",
    "report",
    "shares_of",
    "table",
    "verdict",
]

_MOST_CLASSES = 12  # whose recall is shown
_MOST_ENTRIES = 20  # of an array in JSON


class Shown(str):
    """Text of a report, and the value that JSON has in its place."""

    def __new__(cls, text, value):
        shown = super().__new__(cls, text)
        shown.value = value
        return shown


def report(args, lines):
    """Pairs of name and value as aligned lines, or as one JSON object with --json."""
    if args.json:
        values = {re.sub(r"[\s-]+", "_", name.strip()): v for name, v in lines}
        return as_json(values)
    if args.quiet:
        return ""
    flat = []
    for name, value in lines:
        flat += _branches(name, value) if isinstance(value, dict) else [(name, value)]
    return aligned(flat)


def _branches(name, values):
    """A line for every entry; of many those with the smallest values."""
    items = list(values.items())
    if len(items) > _MOST_CLASSES:
        items = sorted(items, key=lambda item: item[1].value)[:_MOST_CLASSES]
    lines = [(f"  {name} of {key}", text) for key, text in items]
    more = len(values) - len(items)
    return lines + ([("  of the others", f"{more} not less")] if more else [])


def table(rows):
    """Rows, dicts with the same keys, as text: names to the left, numbers right."""
    columns = list(rows[0])
    cells = [columns] + [[str(row[name]) for name in columns] for row in rows]
    widths = [max(len(row[j]) for row in cells) for j in range(len(columns))]
    return "".join(
        "  ".join(
            [row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]
        ).rstrip()
        + "\n"
        for row in cells
    )


def as_json(contents):
    """One JSON object; NaN is null, and infinities are strings."""
    return json.dumps(_plain(contents), indent=2, allow_nan=False) + "\n"


def _plain(value):
    if isinstance(value, Shown):
        value = value.value
    if isinstance(value, (np.ndarray, np.generic)) and value.size <= _MOST_ENTRIES:
        value = value.tolist()
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if hasattr(value, "dtype"):
        return {"shape": [int(n) for n in value.shape], "dtype": str(value.dtype)}
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def certificate(state):
    """Lines about the solution, from the fitted attributes that are there."""
    lines = []
    support = state.get("support_")
    if isinstance(support, np.ndarray) and support.dtype.kind == "i":
        lines.append(("support", Shown(f"{len(support)} rows", len(support))))
    bound = state.get("loo_bound_")
    if isinstance(bound, float) and bound == bound:
        text = f"error at most {100 * bound:.2f} %"
        lines.append(("leave-one-out bound", Shown(text, bound)))
    objective, gap = state.get("objective_"), state.get("duality_gap_")
    if isinstance(objective, float):
        lines.append(("objective", Shown(f"{objective:.8g}", objective)))
    if isinstance(gap, float) and isinstance(objective, float):
        share = gap_text(gap / (1 + abs(objective)), 0.0)
        shown = f"{gap_text(gap, objective)} ({share} of 1 + |objective|)"
        lines.append(("duality gap", Shown(shown, gap)))
    if "n_iter_" in state:
        lines.append(("iterations", state["n_iter_"]))
    if "converged_" in state:
        converged = bool(state["converged_"])
        lines.append(("converged", Shown("yes" if converged else "NO", converged)))
    return lines


def estimated(estimate):
    """An estimate as text, and for JSON with its standard error."""
    return Shown(str(estimate), estimate.as_dict())


def verdict(estimator, predicted, y):
    """Name and text of what the predictions show: errors, or shares of their values.

    None if there is nothing to show.
    """
    from sklearn.base import is_outlier_detector

    if y is not None and y.dtype == object:
        known = np.array([label is not None for label in y.tolist()])
        if not known.all():
            return _of_labelled(estimator, predicted, y, known)
    if is_outlier_detector(estimator):
        text = shares_of(predicted, {1: "inliers", -1: "outliers"})
        if y is not None and y.dtype.kind in "if" and set(np.unique(y)) <= {-1, 1}:
            wrong = _count(np.sum(predicted != y), len(y))
            value = {**text.value, "error": wrong.value}
            text = Shown(f"{text}; error: {wrong}", value)
        return "predicted", text
    state = vars(estimator)
    if hasattr(estimator, "classes_"):
        state = {"classes_": estimator.classes_}
    elif not is_regressor(estimator):
        if np.asarray(predicted).dtype.kind == "f":
            mean = float(np.mean(predicted))
            return "mean log-likelihood", Shown(f"{mean:.6g}", mean)
        parts = {k: f"component {k}" for k in np.unique(predicted).tolist()}
        return "predicted", shares_of(predicted, parts)
    return None if y is None else ("error", error_text(predicted, y, state))


def _of_labelled(estimator, predicted, y, known):
    """Verdict on the rows that have a label, where others have none."""
    predicted, y = np.asarray(predicted), np.array(y[known].tolist())
    found = verdict(estimator, predicted[known], y)
    if found is None or found[0] != "error":
        return verdict(estimator, predicted, None)
    text = f"{found[1]}; {int(np.sum(~known))} without a label left out"
    return found[0], Shown(text, getattr(found[1], "value", found[1]))


def is_regressor(estimator):
    """As scikit-learn's, imported when it is needed."""
    from sklearn import base

    return base.is_regressor(estimator)


def shares_of(predicted, names):
    """Counts of the predictions of each value, by its name."""
    total = len(predicted)
    counts = {name: int(np.sum(predicted == value)) for value, name in names.items()}
    text = ", ".join(f"{name} {_count(n, total)}" for name, n in counts.items())
    return Shown(text, counts)


def _count(n, total):
    return Shown(f"{n} of {total} ({100 * n / total:.2f} %)", float(n / total))


def recalls(predicted, y):
    """Share of the rows of every class that are predicted to be of it."""
    right = np.asarray(predicted) == y
    return {
        str(label): _count(int(right[y == label].sum()), int((y == label).sum()))
        for label in np.unique(y).tolist()
    }


def error_text(predicted, y, state):
    """Error of predictions, in words."""
    if "classes_" not in state:
        if y.dtype.kind == "U":
            return "unknown, the labels are text"
        residual = np.asarray(predicted, dtype=float) - y
        root = float(np.sqrt(np.mean(residual**2)))
        return Shown(f"{root:.6g} (root mean square)", root)
    classes, predicted = state["classes_"], np.asarray(predicted)
    y = np.array(y.tolist())
    if (classes.dtype.kind in "OU") != (y.dtype.kind in "OU"):
        y, predicted, classes = (
            np.array([str(v) for v in part.tolist()])
            for part in (y, predicted, classes)
        )
    if not np.isin(y, classes).any():
        return "unknown, no label of the file is a class of the model"
    strange = len(y) - int(np.isin(y, classes).sum())
    note = f"; {strange} with labels that the model does not know" if strange else ""
    wrong = _count(np.sum(predicted != y), len(y))
    return Shown(wrong + note, wrong.value)
