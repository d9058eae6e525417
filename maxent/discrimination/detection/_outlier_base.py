"""What outlier detectors share, whatever they model: level, threshold, predictions."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin

from maxent._support import validation as v
from maxent._support.fitted import CertifiedState, check_fitted
from maxent._support.results import Status, store_certificate
from maxent._support.typing import ArrayLike, FloatArray, IntArray, NDArray
from maxent._support.validation import user_stacklevel
from maxent.discrimination._generative_base import (
    say_how_it_ended,
    weighted_percentile,
)
from maxent.discrimination._margin_parameters import (
    at_level,
    free_margin,
    generative_margin,
)
from maxent.discrimination.detection._latent_rounds import (
    Baseline,
    LatentProblem,
    RoundSettings,
    best_descent,
    warn_of_rounds,
)
from maxent.discrimination.detection._outlier_models import (
    check_contamination,
    threshold_of_share,
)
from maxent.discrimination.margins.base import MarginPrior

_MOST_REJECTED = 0.9  # of the training data, without a warning


@dataclass
class Settings:
    """Checked parameters of a detector.

    Attributes
    ----------
    margin : MarginPrior
    level : float or None
        The one given, in nats.
    unit : float
        Weight of a constraint, times that of its row.
    share : float or None
        Contamination.
    tol : float
    max_iter : int
    """

    margin: MarginPrior
    level: float | None
    unit: float
    share: float | None
    tol: float
    max_iter: int


class OutlierBase(CertifiedState, OutlierMixin, BaseEstimator, ABC):
    """Base class of outlier detectors; a subclass defines `fit` and `score_samples`."""

    level_: float
    offset_: float
    support_: IntArray
    dual_coef_: FloatArray
    loo_bound_: float
    divergences_: FloatArray
    baseline_: Any
    posterior_: Any

    level: float | None
    quantile: float
    contamination: float | None
    C: float
    margin: Any
    tol: float
    max_iter: int
    n_jobs: int | None
    _progress: Any

    def _settings(self) -> Settings:
        """Parameters that all detectors have, checked."""
        margin, level, unit = generative_margin(self.margin, self.C, self.level)
        if not (v.is_real(self.quantile) and 0 <= self.quantile <= 1):
            raise ValueError(
                f"quantile={v.shown(self.quantile)} must be between 0 and 1."
            )
        share = check_contamination(self.contamination)
        return Settings(
            margin, level, unit, share, *v.check_stop(self.tol, self.max_iter)
        )

    def _weighted(
        self, sample_weight: ArrayLike | None, n: int
    ) -> tuple[IntArray, FloatArray]:
        """Places of the data of positive weight among n, and these weights."""
        weight = v.check_weights(sample_weight, n)
        weight = np.ones(n) if weight is None else weight
        keep = np.flatnonzero(weight > 0)
        if not len(keep):
            raise ValueError("sample_weight is zero for every row; keep some rows.")
        return keep, weight[keep]

    def _level_below(self, level: float, largest: float) -> float:
        """The level given, if the model can reach it."""
        if level > largest:
            raise ValueError(
                f"level={level:g} is above {largest:g}, the largest "
                "log-probability that this model can give a row; lower it, or "
                "leave it None and set quantile."
            )
        return float(level)

    def _level_at_quantile(self, scores: FloatArray, weight: FloatArray) -> float:
        """Quantile of log-likelihoods of the training data under a baseline."""
        return float(weighted_percentile(scores, weight, 100.0 * self.quantile))

    def _store_dual(
        self,
        result: Any,
        margin: MarginPrior,
        keep: IntArray,
        bounded: bool,
        unit: float = 1.0,
    ) -> None:
        """Multipliers, threshold and certificate of a solution.

        `bounded` says whether neither the level nor the model saw the training data,
        which is what the leave-one-out bound needs; `unit` is that of the scores in
        the unit of the constraints.
        """
        inside = np.flatnonzero(result.lam)
        self.support_, self.dual_coef_ = keep[inside], result.lam[inside]
        # a prior without a mean (logistic) forgives nothing on average
        free = free_margin(margin)
        self.offset_ = self.level_ - (free / unit if np.isfinite(free) else 0.0)
        store_certificate(self, result)
        holds = bounded and result.converged and np.isfinite(free)
        self.loo_bound_ = len(inside) / len(keep) if holds else np.nan

    def _set_share(self, scores: FloatArray, weight: FloatArray, share: float) -> None:
        """Threshold below which this share of the training data lies."""
        self.offset_ = threshold_of_share(scores, weight, share)
        self.loo_bound_ = np.nan  # it is about the threshold of the margins

    def _warn_of_rejected(
        self, scores: Callable[[Any], FloatArray], weight: FloatArray, n: int
    ) -> None:
        """Warn where nearly all of the n training data score below the threshold.

        Data below it have a multiplier, so that the scores are computed only where
        that many have one.
        """
        most = _MOST_REJECTED
        if self.contamination is not None or len(self.support_) <= most * n:
            return
        out = scores(self) < self.offset_
        if out.mean() > most and weight[out].sum() > most * weight.sum():
            warnings.warn(
                f"{np.count_nonzero(out)} of the {n} training data score below the "
                "threshold offset_, and predict calls them outliers; set "
                "contamination, for instance contamination=0.05, to call that share of "
                "them outliers.",
                UserWarning,
                stacklevel=user_stacklevel(),
            )

    def _fit_rounds(
        self,
        problem: LatentProblem,
        starts: Sequence[Baseline],
        settings: Settings,
        rounds: tuple[float, int],
        weight: FloatArray,
        keep: IntArray,
        scores: Callable[[Any], FloatArray],
        unit: float = 1.0,
    ) -> None:
        """Fit a model with hidden variables to the level, from Bayes posteriors.

        `rounds` are the tolerance and the bound of the rounds; `scores` are those of
        the training data by an estimator with a posterior; `unit` is as for
        `_store_dual`.
        """
        level = unit * self.level_
        todo = RoundSettings(
            margin=at_level(settings.margin, level),
            level=level,
            weight=settings.unit * weight,
            tol=rounds[0],
            max_rounds=rounds[1],
            gap_tol=settings.tol,
            max_iter=settings.max_iter,
        )

        def store(model, result):
            model.posterior_ = result.posterior
            # other data may lead to another of the stationary points: no bound
            model._store_dual(result.dual, todo.margin, keep, False, unit)
            if settings.share is not None:
                model._set_share(scores(model), weight, settings.share)

        result, divergences = best_descent(
            problem, starts, todo, self.n_jobs, self._progress, store
        )
        self.divergences_, self.baseline_ = divergences, starts[0].posterior
        store(self, result)
        if result.dual.status in (Status.CONVERGED, Status.STOPPED):
            say_how_it_ended(self, result.dual, idle(self.level_))
            self._warn_of_rejected(scores, weight, len(keep))
        else:
            warn_of_rounds(type(self).__name__, result, todo)

    @abstractmethod
    def score_samples(self, X: Any) -> FloatArray:
        """Log-likelihoods, in nats: small for outliers."""

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Scores above the offset: negative for outliers, in nats.

        Parameters
        ----------
        X : array-like (n, n_features), or sequences
            As for `score_samples`.

        Returns
        -------
        ndarray (n,)
            ``score_samples(X) - offset_``.
        """
        scores = self.score_samples(X)
        check_fitted("offset_", np.asarray(self.offset_), ())
        return scores - self.offset_

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Labels of rows: 1 for normal rows, -1 for outliers.

        Parameters
        ----------
        X : array-like (n, n_features), or sequences
            As for `score_samples`.

        Returns
        -------
        ndarray of int (n,)
            As scikit-learn's outlier detectors have it.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)


def idle(level: float) -> str:
    """Warning of a fit in which all multipliers are zero."""
    return (
        f"the prior gives every row more than the level {level:.3g} asks, so "
        "nothing was learnt; raise level or quantile."
    )
