"""What displays of trees take from a fitted classifier, and its refusals."""

from __future__ import annotations

import numbers

import numpy as np

from maxent._support import validation as v
from maxent.discrimination.trees import MEDTreeClassifier


def tree_machine(estimator, class_index):
    """The classifier with trees at the end of an estimator, and the index checked."""
    from sklearn.utils.validation import check_is_fitted

    steps = getattr(estimator, "steps", None)
    machine = estimator if steps is None else steps[-1][1]
    if not isinstance(machine, MEDTreeClassifier):
        raise ValueError(
            f"{v.shown(machine)} is no MEDTreeClassifier, of which this picture is."
        )
    check_is_fitted(machine)
    m = len(machine.classes_)
    if (
        not isinstance(class_index, numbers.Integral)
        or isinstance(class_index, (bool, np.bool_))
        or not 0 <= class_index < m
    ):
        raise ValueError(
            f"class_index={v.shown(class_index)} must be an integer from 0 to {m - 1}, "
            f"the place of a class in classes_={v.shown(machine.classes_.tolist())}."
        )
    return machine, int(class_index)


def class_title(machine, k):
    return f"class {machine.classes_[k]}"


def default_names(machine, feature_names):
    """Names given, or else those that a frame had at the fit."""
    if feature_names is not None:
        return feature_names
    return getattr(machine, "feature_names_in_", None)


def check_names(names, n):
    if names is None:
        return [str(k) for k in range(n)]
    if isinstance(names, str) or len(names) != n:
        raise ValueError(
            f"feature_names={v.shown(names)} must hold {n} names, one a feature."
        )
    return [str(name) for name in names]
