"""What commands say of predictions and of solutions."""

import numpy as np

from maxent._support.results import gap_text

__all__ = ["certificate", "error_text", "is_regressor", "shares_of", "verdict"]


def certificate(state):
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


def verdict(estimator, predicted, y):
    """Name and text of what the predictions show: errors, or shares of their values.

    None if there is nothing to show.
    """
    from sklearn.base import is_outlier_detector

    if is_outlier_detector(estimator):
        text = shares_of(predicted, {1: "inliers", -1: "outliers"})
        if y is not None and y.dtype.kind in "if" and set(np.unique(y)) <= {-1, 1}:
            text += f"; error: {_count(np.sum(predicted != y), len(y))}"
        return "predicted", text
    state = vars(estimator)
    if hasattr(estimator, "classes_"):
        state = {"classes_": estimator.classes_}
    elif not is_regressor(estimator):
        if np.asarray(predicted).dtype.kind == "f":
            mean = float(np.mean(predicted))
            return "mean log-likelihood", f"{mean:.6g}"
        parts = {k: f"component {k}" for k in np.unique(predicted).tolist()}
        return "predicted", shares_of(predicted, parts)
    return None if y is None else ("error", error_text(predicted, y, state))


def is_regressor(estimator):
    """As scikit-learn's, imported when it is needed."""
    from sklearn import base

    return base.is_regressor(estimator)


def shares_of(predicted, names):
    """How many predictions have each value, by its name."""
    total = len(predicted)
    counts = {name: int(np.sum(predicted == value)) for value, name in names.items()}
    return ", ".join(f"{name} {_count(n, total)}" for name, n in counts.items())


def _count(n, total):
    return f"{n} of {total} ({100 * n / total:.2f} %)"


def error_text(predicted, y, state):
    """Error of predictions, in words."""
    if "classes_" not in state:
        if y.dtype.kind == "U":
            return "unknown, the labels are text"
        residual = np.asarray(predicted, dtype=float) - y
        return f"{np.sqrt(np.mean(residual**2)):.6g} (root mean square)"
    classes, predicted = state["classes_"], np.asarray(predicted)
    known = [label is not None for label in y.tolist()]
    y, predicted = np.array(y[known].tolist()), predicted[known]
    if (classes.dtype.kind in "OU") != (y.dtype.kind in "OU"):
        y, predicted, classes = (
            np.array([str(v) for v in part.tolist()])
            for part in (y, predicted, classes)
        )
    if not np.isin(y, classes).any():
        return "unknown, no label of the file is a class of the model"
    strange = len(y) - int(np.isin(y, classes).sum())
    note = f"; {strange} with labels that the model does not know" if strange else ""
    return _count(np.sum(predicted != y), len(y)) + note
