"""Lists of models and horizons, as the kernels between models take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from maxent._support import validation as v
from maxent.families import ExponentialFamily
from maxent.models.base import Model

M = TypeVar("M")


def listed(name: str, models: Any) -> Any:
    """A batch as it is, anything else as a list that is not empty."""
    if isinstance(models, ExponentialFamily):
        return models
    if isinstance(models, Model):
        raise TypeError(
            f"{name} is a single {type(models).__name__}; pass a list of models: "
            f"[{name}]."
        )
    try:
        models = list(models)
    except TypeError:
        raise TypeError(
            f"{name}={v.shown(models)} must be a batch of a family or a list of models."
        ) from None
    if not models:
        raise ValueError(f"{name}=[] has no model; pass one at least.")
    return models


def check_models(
    name: str,
    models: Any,
    cls: type[M],
    *,
    space: str = "n_features",
    like: Sequence[M] | None = None,
) -> list[M]:
    """Models of one class over one space."""
    if isinstance(models, cls):
        raise TypeError(
            f"{name} is a single {cls.__name__}; pass a list of models: [{name}]."
        )
    models = list(models)
    if not models:
        raise ValueError(f"{name}=[] has no model; pass one at least.")
    for i, model in enumerate(models):
        if not isinstance(model, cls):
            raise TypeError(
                f"{name}[{i}]={v.shown(model)} is no {cls.__name__}, as all must be."
            )
    expected = getattr((like or models)[0], space)
    for i, model in enumerate(models):
        if getattr(model, space) != expected:
            raise ValueError(
                f"{name}[{i}] has {space}={getattr(model, space)}, the first model has "
                f"{expected}: the models are over different spaces and have no kernel."
            )
    check_columns(name, models, like)
    return models


def check_columns(
    name: str, models: Sequence[Any], like: Sequence[Any] | None = None
) -> None:
    """Refuse models of data frames with different columns."""
    expected = None
    for label, own in (("a model", like or ()), (f"{name}[{{}}]", models)):
        for i, model in enumerate(own):
            columns = getattr(model, "_columns", None)
            if columns is None or columns == expected:
                continue
            if expected is not None:
                raise ValueError(
                    f"{label.format(i)} was fitted to the columns "
                    f"{v.shown(list(columns))}, another model to "
                    f"{v.shown(list(expected))}: the feature names should match, also "
                    "in their order."
                )
            expected = columns


def check_horizons(
    horizon: Any, models: Sequence[Any] = ()
) -> tuple[NDArray[np.intp], bool]:
    """Increasing horizons, and whether one number was given."""
    try:
        numbers = np.asarray(horizon, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.array(np.nan)
    one = numbers.ndim == 0
    flat = np.atleast_1d(numbers)
    with np.errstate(invalid="ignore"):
        fits = flat.ndim == 1 and flat.size and (flat >= 0) & (flat == np.floor(flat))
    if not np.all(fits) or isinstance(horizon, (bool, str)):
        raise ValueError(
            f"horizon={v.shown(horizon)} must be an integer >= 0, or several: T stands "
            "for sequences of T + 1 observations."
        )
    if (np.diff(flat) <= 0).any():
        raise ValueError(f"horizon={v.shown(horizon)} must increase.")
    for i, model in enumerate(models):
        steps = getattr(model, "n_steps", None)
        if steps is not None and flat[-1] >= steps:
            raise ValueError(
                f"horizon={int(flat[-1])} needs {int(flat[-1]) + 1} steps, but model "
                f"{i} varies over n_steps={steps}."
            )
    return flat.astype(np.intp), one
