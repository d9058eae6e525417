"""What estimators share that hold a fitted model.

They have no algorithm: `fit` calls that of the model, every other method one of the
fitted `model_`.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, DensityMixin

from maxent._support import validation as v
from maxent._support.fitted import FittedState
from maxent._support.random_state import as_generator
from maxent.families import ExponentialFamily
from maxent.families.base import family_named

Array = NDArray[np.float64]
Family = str | type[ExponentialFamily]


class ModelEstimator(FittedState, DensityMixin, BaseEstimator):
    """Estimator with a fitted model; base class."""

    _estimator_type = "density_estimator"
    model_: Any
    n_iter_: int
    converged_: bool
    objective_history_: Array
    random_state: Any

    def _keep(self, model: Any) -> Self:
        """Set the fitted attributes."""
        result = model.fit_result
        self.model_ = model
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.objective_history_ = result.objective_history
        return self

    def _generator(self, random_state: Any) -> np.random.Generator:
        return as_generator(self.random_state if random_state is None else random_state)


def family_of(family: Family) -> type[ExponentialFamily]:
    """A family by its name, or as it is."""
    kind = family_named(family) if isinstance(family, str) else family
    if not (isinstance(kind, type) and issubclass(kind, ExponentialFamily)):
        raise TypeError(
            f"family={v.shown(family)} must be a family of maxent.families or its "
            "name; for columns of several kinds use Mixture or HiddenMarkovModel."
        )
    return kind
