"""Access of displays to estimators: the last step, their scores, and refusals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from maxent._support import validation as v

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

ResponseMethod: TypeAlias = Literal["auto", "decision_function", "predict_proba"]


def last_step(estimator: Any) -> Any:
    """The estimator, or the last one of a pipeline."""
    steps = getattr(estimator, "steps", None)
    return estimator if steps is None else steps[-1][1]


def before_last(estimator: Any, X: Any) -> Any:
    """Rows as the last step of an estimator gets them."""
    steps = getattr(estimator, "steps", None)
    return X if steps is None else estimator[:-1].transform(X)


def refusal(estimator: Any, wanted: str, name: str = "estimator") -> ValueError:
    """The error for an estimator of the wrong kind; `wanted` ends with a remedy."""
    inner = last_step(estimator)
    kind = "" if inner is estimator else f", which ends in {v.shown(inner)},"
    return ValueError(f"{name}={v.shown(estimator)}{kind} must be {wanted}")


def check_fitted_one(estimator: Any, name: str = "estimator") -> None:
    """Refuse what is no estimator, as a class or the data, and what is not fitted."""
    from sklearn.utils.validation import check_is_fitted

    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise refusal(
            estimator, "a fitted estimator: what its fit method returns.", name
        )
    check_is_fitted(estimator)


def check_named(name: str, value: Any, parts: str) -> Mapping[str, Any]:
    """A mapping from names to what is compared, with one entry at least."""
    if not isinstance(value, Mapping) or not value:
        raise ValueError(
            f"{name} must be a dict from names to {parts}, with one entry at least, "
            f'such as {{"MED": ...}}; it is {v.shown(value)}.'
        )
    return value


def response(
    estimator: Any,
    X: ArrayLike,
    response_method: str,
    methods: tuple[str, ...],
    name: str,
) -> tuple[str, NDArray[np.float64]]:
    """Name and values of the method of an estimator that scores rows.

    Parameters
    ----------
    estimator : estimator
    X : array-like (n, n_features)
    response_method : str
        "auto" for the first of `methods` that the estimator has, or one of them.
    methods : tuple of str
    name : str
        How errors call the estimator.
    """
    v.check_choice("response_method", response_method, ("auto", *methods))
    tried = methods if response_method == "auto" else (response_method,)
    for method in tried:
        if hasattr(estimator, method):
            break
    else:
        which = "none of " if len(tried) > 1 else "no "
        which += ", ".join(tried)
        others = [m for m in methods if m not in tried and hasattr(estimator, m)]
        remedy = (
            f'use response_method="{others[0]}"'
            if others
            else "give a fitted classifier that has one"
        )
        raise ValueError(f"{name}={v.shown(estimator)} has {which}; {remedy}.")
    values = np.asarray(getattr(estimator, method)(X))
    classes = getattr(estimator, "classes_", None)
    votes = getattr(last_step(estimator), "decision_function_shape", None) == "ovo"
    if values.ndim == 2 and (
        (classes is not None and values.shape[1] != len(classes))
        or (votes and method == "decision_function")
    ):
        raise ValueError(
            f"{name}={v.shown(estimator)} scores pairs of classes, not classes; set "
            'decision_function_shape="ovr".'
        )
    return method, values
