"""What estimators of densities share.

Those that hold a fitted model have no algorithm: `fit` calls that of the model, every
other method one of the fitted `model_`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, DensityMixin

from maxent._support import validation as v
from maxent._support.docs import InheritedDocs
from maxent._support.fitted import FittedState
from maxent._support.random_state import as_generator
from maxent._support.typing import MatrixLike
from maxent.families import ExponentialFamily
from maxent.families.base import family_named

Array = NDArray[np.float64]
Family = str | type[ExponentialFamily]


class MixtureMethods(InheritedDocs, DensityMixin):
    """Methods of estimators of mixtures of rows; base class."""

    _estimator_type = "density_estimator"

    @abstractmethod
    def fit(
        self, X: MatrixLike, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the mixture."""

    @abstractmethod
    def score_samples(self, X: MatrixLike) -> Array:
        """Log-density of rows.

        Parameters
        ----------
        X : array-like (n, n_features)
            Rows.

        Returns
        -------
        ndarray (n,)
            Nats.
        """

    def score(self, X: MatrixLike, y: Any = None) -> float:
        """Mean log-density.

        Parameters
        ----------
        X : array-like (n, n_features)
            Rows.
        y : None
            Ignored.

        Returns
        -------
        float
            Nats per row.
        """
        return float(self.score_samples(X).mean())

    @abstractmethod
    def predict_proba(self, X: MatrixLike) -> Array:
        """Posterior probabilities of the components.

        Parameters
        ----------
        X : array-like (n, n_features)
            Rows.

        Returns
        -------
        ndarray (n, n_components)
            Rows sum to one.
        """

    @abstractmethod
    def predict(self, X: MatrixLike) -> NDArray[np.intp]:
        """Most probable component of each row.

        Parameters
        ----------
        X : array-like (n, n_features)
            Rows.

        Returns
        -------
        ndarray of int (n,)
            Numbers of components.
        """

    def fit_predict(
        self, X: MatrixLike, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[np.intp]:
        """Fit, and return the most probable component of each row.

        Parameters
        ----------
        X : array-like (n_samples, n_features)
            Rows.
        y : None
            Ignored.
        sample_weight : array-like (n_samples,), optional
            Weights >= 0.

        Returns
        -------
        ndarray of int (n_samples,)
            Numbers of components.
        """
        return self.fit(X, y, sample_weight).predict(X)

    @abstractmethod
    def sample(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """Independent draws.

        Parameters
        ----------
        n_samples : int, default=1
            Draws, >= 1.
        random_state : int, Generator, RandomState or None, default=None
            None takes the estimator's.

        Returns
        -------
        X : ndarray (n_samples, n_features)
            Rows; those of estimators with candidates are grouped by component.
        y : ndarray of int (n_samples,)
            Their components.
        """

    @abstractmethod
    def _criterion(self, name: str, X: MatrixLike) -> float:
        """An information criterion, "aic" or "bic"."""

    def bic(self, X: MatrixLike) -> float:
        """Bayesian information criterion; lower is better.

        Parameters
        ----------
        X : array-like (n, n_features)
            Rows.

        Returns
        -------
        float
            Nats.
        """
        return self._criterion("bic", X)

    def aic(self, X: MatrixLike) -> float:
        """Akaike information criterion; lower is better.

        Parameters
        ----------
        X : array-like (n, n_features)
            Rows.

        Returns
        -------
        float
            Nats.
        """
        return self._criterion("aic", X)


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

    def _keep_updated(self, model: Any) -> Self:
        """Set the fitted attributes after a step of online EM, which ends no run."""
        self.model_ = model
        self.n_iter_ += 1
        self.converged_ = False
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
