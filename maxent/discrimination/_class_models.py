"""Classifiers with one fitted model per class: how they predict."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from maxent._support import validation as v
from maxent._support.fitted import (
    FittedState,
    check_fitted_classes,
    check_scores,
    check_value,
)
from maxent._support.threads import with_own_threads
from maxent._support.typing import ArrayLike, NDArray
from maxent.discrimination._class_rows import labels_of


class ClassModels(FittedState, ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Base class: a subclass says where its models are and what they say of rows."""

    classes_: NDArray[Any]
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    @abstractmethod
    def _validated(self, X, *y, reset=True):
        """Checked X, or X and y."""

    @abstractmethod
    def _decision(self, X):
        """Scores of rows, (n,) for the second of two classes or (n, n_classes)."""

    def _encode(self, X):
        """New rows as the models want them."""
        return X

    def _score_rows(self, model, X):
        """Scores of rows by the model of a class, (n,)."""
        return model.expected_log_prob(X)

    @with_own_threads
    def _model_scores(self, X, attribute, kind, noun):
        """Scores of rows by every model of the list `attribute`, (n, n_classes)."""
        check_is_fitted(self)
        X = self._encode(self._validated(X, reset=False))
        m = check_fitted_classes(self.classes_)
        models = getattr(self, attribute)
        if (
            not isinstance(models, list)
            or len(models) != m
            or not all(isinstance(model, kind) for model in models)
        ):
            raise ValueError(
                f"the fitted model is inconsistent: {attribute}={v.shown(models)} must "
                f"hold {noun} for each of {m} classes. Fit it again."
            )
        for k, model in enumerate(models):
            check_value(f"{attribute}[{k}]", model)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = [self._score_rows(model, X) for model in models]
        return check_scores(np.column_stack(scores), X)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Class labels.

        Parameters
        ----------
        X : array-like (n, n_features)
            Rows to classify.

        Returns
        -------
        ndarray (n,)
            Entries of ``classes_``.
        """
        return labels_of(self._decision(X), self.classes_)
