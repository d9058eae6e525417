"""Pictures of the plane: rows, grids, and what machines say about both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxent._support import validation as v
from maxent.displays._estimators import (
    before_last,
    check_fitted_one,
    last_step,
    refusal,
    response,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

METHODS = ("decision_function", "predict_proba")


def two_features(
    X: Any,
) -> tuple[NDArray[np.float64], Sequence[str], Callable[[Any], Any]]:
    """Rows (n, 2), names of the features, and a maker of rows like X."""
    rows = v.as_doubles("X", X)
    if rows.ndim != 2 or rows.shape[1] != 2 or not len(rows):
        raise ValueError(
            f"X has shape {rows.shape}; a picture needs rows of two features. Choose "
            "two, or project the data (as on two principal axes) and fit on that."
        )
    if not hasattr(X, "columns"):
        return rows, ("feature 0", "feature 1"), lambda grid: grid
    names = list(X.columns)
    return rows, names, lambda grid: type(X)(grid, columns=names)


def grid_around(
    rows: NDArray[np.float64], grid_resolution: int, border: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Grid over the range of the rows and a border, as from ``numpy.meshgrid``."""
    if v.check_count("grid_resolution", grid_resolution) < 2:
        raise ValueError(
            f"grid_resolution={grid_resolution} must be an integer >= 2; 200 is usual."
        )
    low, high = rows.min(axis=0), rows.max(axis=0)
    space = v.check_nonnegative("border", border) * np.where(
        high > low, high - low, 1.0
    )
    sides = np.linspace(low - space, high + space, grid_resolution).T
    xx0, xx1 = np.meshgrid(*sides)
    return xx0, xx1


def check_machine(estimator: Any) -> Any:
    """The classifier with multipliers at the end of an estimator."""
    machine = last_step(estimator)
    wrong = refusal(
        estimator,
        "a fitted classifier with multipliers, such as MEDClassifier; "
        "BoundaryComparisonDisplay draws any classifier.",
    )
    if isinstance(machine, type) or not hasattr(machine, "fit"):
        raise wrong
    check_fitted_one(machine)
    needed = ("classes_", "support_", "dual_coef_", "decision_function")
    if not all(hasattr(machine, name) for name in needed):
        raise wrong
    if getattr(machine, "approximation", None) is not None:
        raise ValueError(
            f"estimator={v.shown(estimator)} holds landmarks, not multipliers of its "
            "rows; fit it with approximation=None, or use BoundaryComparisonDisplay."
        )
    if getattr(machine, "kernel", None) == "precomputed":
        raise ValueError(
            f"estimator={v.shown(estimator)} with kernel='precomputed' has no decision "
            "values between its rows; fit it on the two features with a named kernel "
            "or a callable."
        )
    return machine


def class_codes(y: Any, classes: Any, n: int) -> NDArray[np.intp]:
    """Labels as positions in `classes`."""
    y = v.as_array("y", y)
    if y.shape != (n,):
        raise ValueError(f"y has shape {y.shape}, but X has {n} rows.")
    strange = y[~np.isin(y, classes)].tolist()
    if strange:
        raise ValueError(
            f"y contains {strange[0]!r}, which is no class of the machine: "
            f"{np.asarray(classes).tolist()}."
        )
    return np.asarray(np.searchsorted(classes, y))


def multipliers_of(machine: Any, rows: NDArray[Any]) -> NDArray[np.float64]:
    """Total multiplier of every training row."""
    support = machine.support_
    vectors = getattr(machine, "support_vectors_", None)
    alien = support.max(initial=-1) >= len(rows)
    if not alien and vectors is not None:
        vectors = vectors.toarray() if hasattr(vectors, "toarray") else vectors
        found = np.asarray(rows[support], dtype=np.float64)
        alien = found.shape != vectors.shape or not np.allclose(found, vectors)
    if alien:
        raise ValueError(
            "X is not what the machine was fitted on: its support vectors are not "
            "among the rows. Pass the training rows, in their order."
        )
    out = np.zeros(len(rows))
    # of several classes each holds half a multiplier, the right one and the wrong one
    out[support] = np.abs(machine.dual_coef_).sum(axis=0)
    return out


def leads_of(
    estimator: Any, X: Any, response_method: str, name: str = "estimator"
) -> tuple[str, NDArray[np.float64]]:
    """The method used, and by how much each class wins over the best other one."""
    from maxent.discrimination._one_vs_one import lead_over_others

    method, f = response(estimator, X, response_method, METHODS, name)
    if not hasattr(estimator, "classes_"):
        raise refusal(estimator, "a fitted classifier; it has no classes_.", name)
    if f.ndim == 1:
        return method, np.column_stack([-f, f])
    machine = last_step(estimator)
    if method == "decision_function" and hasattr(machine, "_leads"):
        return method, machine._leads(before_last(estimator, X))
    return method, lead_over_others(f)


def machine_level(machine: Any) -> float:
    """Level of the machine's margin prior."""
    from maxent.discrimination._margin_parameters import classification_margin

    if hasattr(machine, "level_"):  # chosen from the data
        return float(machine.level_)
    if not hasattr(machine, "margin"):
        return 1.0
    return float(classification_margin(machine.margin, machine.sharpness).level)
