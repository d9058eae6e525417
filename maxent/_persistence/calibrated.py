"""scikit-learn's CalibratedClassifierCV in model files: machines and two numbers each.

Its fitted state is objects that are private to scikit-learn; a model file keeps what
they hold, so that it stays readable by other versions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxent._support.validation import LARGEST_ENTRY

__all__ = ["CALIBRATED", "calibrated_state", "restore_calibrated"]

CALIBRATED = "CalibratedClassifierCV"


def calibrated_state(estimator: Any) -> dict[str, Any]:
    """Fitted state of a CalibratedClassifierCV; empty before fit.

    Raises
    ------
    TypeError
        For a calibration other than method="sigmoid".
    """
    if not hasattr(estimator, "calibrated_classifiers_"):
        return {}
    if estimator.method != "sigmoid":
        raise TypeError(
            f"cannot save estimator={estimator}: method={estimator.method!r} has "
            'functions, which a model file cannot hold; use method="sigmoid"'
        )
    parts = estimator.calibrated_classifiers_
    state = {
        "classes_": estimator.classes_,
        "estimators_": [part.estimator for part in parts],
        "sigmoids_": np.array([[(s.a_, s.b_) for s in p.calibrators] for p in parts]),
    }
    names = ("n_features_in_", "feature_names_in_")
    return state | {n: vars(estimator)[n] for n in names if n in vars(estimator)}


def restore_calibrated(estimator: Any, state: dict[str, Any]) -> Any:
    """Give an unfitted CalibratedClassifierCV the state of `calibrated_state`.

    Raises
    ------
    ValueError
        If the parts of the state contradict each other.
    """
    if not state:
        return estimator
    state = dict(state)
    machines, sigmoids = state.pop("estimators_"), state.pop("sigmoids_")
    classes = state["classes_"]
    each = 1 if len(classes) == 2 else len(classes)
    if (
        not isinstance(machines, list)
        or not all(hasattr(machine, "predict") for machine in machines)
        or np.shape(sigmoids) != (len(machines), each, 2)
        or not (np.abs(sigmoids) < LARGEST_ENTRY).all()
    ):
        raise ValueError("its calibration does not agree with its classes")
    estimator.calibrated_classifiers_ = [
        _calibrated(machine, numbers, classes)
        for machine, numbers in zip(machines, sigmoids.tolist())
    ]
    for name, value in state.items():
        setattr(estimator, name, value)
    return estimator


def _calibrated(machine, numbers, classes):
    from sklearn.calibration import _CalibratedClassifier, _SigmoidCalibration

    calibrators = []
    for slope, offset in numbers:
        sigmoid = _SigmoidCalibration()
        sigmoid.a_, sigmoid.b_ = slope, offset
        calibrators.append(sigmoid)
    return _CalibratedClassifier(
        machine, calibrators, classes=classes, method="sigmoid"
    )
