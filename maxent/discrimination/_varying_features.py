"""Features that are constant in the training rows, left out of Gaussian models."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent._support import validation as v
from maxent._support.fitted import check_fitted
from maxent._support.validation import called, names_of_columns, user_stacklevel
from maxent.families._singular import FlatFeature, SingularScatter


def keep_varying(estimator: Any, X: NDArray[Any], told: str, loss: str = "") -> Any:
    """Training rows without constant features; `features_` has those that vary.

    Parameters
    ----------
    estimator : estimator
    X : ndarray (n, n_features)
    told : str
        What no row of constant features tells, for the error.
    loss : str
        What is lost without some, for the warning.
    """
    varies = (X[0] != X).any(axis=0)
    estimator.features_ = np.flatnonzero(varies)
    if varies.all():
        return X
    if not varies.any():
        raise ValueError(
            f"every feature of X is constant, so that no row tells {told}; give "
            "features that vary."
        )
    warnings.warn(
        f"{type(estimator).__name__}: the training rows are constant in "
        f"{called('feature', np.flatnonzero(~varies), names_of_columns(estimator))}, "
        f"left out of the model{loss}.",
        UserWarning,
        stacklevel=user_stacklevel(),
    )
    return np.ascontiguousarray(X[:, estimator.features_])


def kept_features(estimator: Any, X: NDArray[Any]) -> NDArray[Any]:
    """Checked rows with the features that are in the model."""
    kept = vars(estimator).get("features_")  # missing in older files
    if kept is None:
        return X
    check_fitted("features_", kept, np.shape(kept), kind="i")
    if kept.ndim != 1 or not np.isin(kept, np.arange(X.shape[1])).all():
        raise ValueError(
            f"the fitted model is inconsistent: features_={v.shown(kept)} must hold "
            f"numbers of {X.shape[1]} features. Fit it again."
        )
    return X if len(kept) == X.shape[1] else X[:, kept]


def named(estimator: Any, error: ValueError) -> str:
    """Text of an error about features in the model, by their names among all."""
    if not isinstance(error, (FlatFeature, SingularScatter)):
        return str(error)
    names = names_of_columns(estimator) or range(estimator.n_features_in_)
    return error.with_names([names[k] for k in estimator.features_])
