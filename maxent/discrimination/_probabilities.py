"""Class probabilities from decision values: the formula, and where it holds.

    P(class k | x) = exp(rate s_k(x)) / sum_j exp(rate s_j(x))

with the scores s, and for two classes 1 / (1 + exp(-rate f)) of their difference f.
With a logistic margin prior of level 0 this is the likelihood that the fit maximises;
with logarithms of joint densities for scores, and rate 1, it is Bayes' rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from maxent._partitions.partitions import is_partitioned, mapped
from maxent._support import validation as v
from maxent._support.typing import FloatArray, MatrixLike, NDArray
from maxent.discrimination.margins.priors import LogisticMargin

_CALIBRATE = (
    "wrap the classifier in sklearn.calibration.CalibratedClassifierCV, which learns "
    "probabilities from decision values on rows held out"
)


def probabilities(scores, rate=1.0):
    """Class probabilities (n, m) of decision values (n,) for two classes or (n, m)."""
    logits = _scaled(scores, rate)
    if scores.ndim == 1:
        return np.column_stack([expit(-logits), expit(logits)])
    return softmax(logits, axis=1)


def log_probabilities(scores, rate=1.0):
    """Logarithms of :func:`probabilities`, finite where these round to zero."""
    logits = _scaled(scores, rate)
    if scores.ndim == 1:
        return np.column_stack([log_expit(-logits), log_expit(logits)])
    return log_softmax(logits, axis=1)


def _scaled(scores, rate):
    """rate * scores, those of several classes less their maximum: never NaN."""
    with np.errstate(over="ignore"):
        if scores.ndim == 2:
            scores = scores - scores.max(axis=1, keepdims=True)
        return rate * scores


def logistic_rate(margin, level, rate=1.0):
    """Rate of the logistic margin prior of level 0, or None for any other prior.

    `margin` names a prior of this `rate` and `level`, or is one, whose own level holds
    where `level` is None.
    """
    if isinstance(margin, LogisticMargin):
        level, rate = margin.level if level is None else level, margin.rate
    elif not (isinstance(margin, str) and margin == "logistic"):
        return None
    return rate if v.is_real(level) and level == 0 else None


def no_probabilities(estimator, settings, remedies):
    """The AttributeError of a classifier without probabilities.

    `settings` are the names of the parameters that decide, `remedies` what to set.
    """
    values = [f"{name}={v.shown(getattr(estimator, name))}" for name in settings]
    return AttributeError(
        f"{type(estimator).__name__} has no probabilities with {', '.join(values)}; "
        f"use {remedies}, or {_CALIBRATE}."
    )


class ProbabilitiesMixin:
    """Mixin of classifiers whose decision values may be logarithms of odds.

    `_probability_rate` is what decision values are multiplied by; it raises
    :func:`no_probabilities` where the parameters define none.
    """

    margin: Any
    classes_: NDArray[Any]
    n_features_in_: int

    if TYPE_CHECKING:

        def decision_function(self, X: MatrixLike) -> FloatArray: ...

    def _rate(self):
        """The rate of a logistic margin prior at level 0; None for other priors."""
        # a prior's name stands for level 0 here
        return logistic_rate(self.margin, 0.0 if isinstance(self.margin, str) else None)

    def _probability_rate(self):
        rate = self._rate()
        if rate is None:
            remedy = "margin='logistic' (or LogisticMargin with level=0)"
            raise no_probabilities(self, ["margin"], remedy)
        return rate

    def _has_probabilities(self):
        self._probability_rate()
        return True

    @available_if(_has_probabilities)
    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """Probabilities of the classes, where the parameters define them.

        Parameters
        ----------
        X : array-like (n, n_features)
            As for :meth:`decision_function`.

        Returns
        -------
        ndarray (n, n_classes)
            In the order of ``classes_``; rows add up to one.

        Raises
        ------
        AttributeError
            If the parameters define no probabilities; the message says what to set.
        """
        if is_partitioned(X):
            check_is_fitted(self)
            m, d = len(self.classes_), self.n_features_in_
            return mapped(self.predict_proba, X, m, n_features=d)
        return probabilities(self.decision_function(X), self._probability_rate())

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: MatrixLike) -> FloatArray:
        """Logarithms of the probabilities of the classes.

        They are accurate where the probability itself rounds to zero or one.

        Parameters
        ----------
        X : array-like (n, n_features)
            As for :meth:`decision_function`.

        Returns
        -------
        ndarray (n, n_classes)
            In the order of ``classes_``.

        Raises
        ------
        AttributeError
            As for :meth:`predict_proba`.
        """
        if is_partitioned(X):
            check_is_fitted(self)
            m, d = len(self.classes_), self.n_features_in_
            return mapped(self.predict_log_proba, X, m, n_features=d)
        return log_probabilities(self.decision_function(X), self._probability_rate())
