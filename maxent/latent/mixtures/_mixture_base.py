"""What mixtures with candidates share: starts, gates, predictions."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from maxent._inputs.estimator_input import validated
from maxent._partitions.partitions import is_partitioned, mapped
from maxent._support import validation as v
from maxent._support.fitted import check_fitted, check_scores, fresh_state
from maxent._support.progress import progress_of, with_progress
from maxent._support.random_state import as_generator
from maxent._support.results import relayed
from maxent._support.threads import with_single_threaded_blas
from maxent._support.typing import MatrixLike
from maxent._support.underflow import allow_underflow
from maxent._support.validation import names_of_columns
from maxent.latent._pool import SELECTIONS, CandidatePool, groups, reasons
from maxent.latent.mixtures.lme_mixture_em import climb, leader
from maxent.models._criteria import penalised
from maxent.models._model_estimator import MixtureMethods

Array = NDArray[np.float64]
_SADDLE = 1e-6  # how far above 1 the share of missing information is at a saddle


class CandidateMixture(CandidatePool, MixtureMethods, BaseEstimator):
    """Mixture fitted from many starts; base class.

    A subclass says how data are read (`_problem`), starts drawn (`_start`), what the
    ends are worth (`_ends`), and how a candidate becomes the model (`_keep`).
    """

    def _check_settings(self) -> None:
        v.check_count("n_components", self.n_components)
        v.check_count("n_init", self.n_init)
        v.check_choice("selection", self.selection, SELECTIONS)
        v.check_stop(self.tol, self.max_iter)
        v.check_number("mi_tol", self.mi_tol)
        v.check_jobs(self.n_jobs)

    def _rows(self, X, sample_weight):
        """Checked rows of positive weight, their weights."""
        X = validated(self, X, dtype=np.float64, ensure_min_samples=2)
        v.check_range("X", X, at=True, columns=names_of_columns(self))
        weight = v.check_weights(sample_weight, len(X))
        weight = np.ones(len(X)) if weight is None else weight
        X, weight = X[weight > 0], weight[weight > 0]
        if len(X) < self.n_components:
            raise ValueError(
                f"n_components={self.n_components} is more than the {len(X)} rows "
                "(n_samples) of positive weight; lower it or add rows."
            )
        return X, weight

    @fresh_state
    @with_progress
    @with_single_threaded_blas
    def fit(
        self, X: MatrixLike, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Find candidates from many starts and keep one.

        Parameters
        ----------
        X : array-like (n_samples, n_features)
            Rows.
        y : None
            Ignored.
        sample_weight : array-like (n_samples,), optional
            Weight w stands for w copies of the row; 0 drops it.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        NoAdmissibleCandidateError
            If the gates reject every candidate; the counts are in the message.
        ValueError
            For parameters outside their domains, NaN or infinity, fewer rows than
            components.
        """
        self._check_settings()
        if is_partitioned(X):
            problem, X, weight = self._part_problem(X, sample_weight)
            self.n_features_in_ = X.shape[1]
        else:
            X, weight = self._rows(X, sample_weight)
            problem = self._problem(X, weight)
        rngs = as_generator(self.random_state).spawn(self.n_init)
        n_init = 1 if self.n_components == 1 else self.n_init
        starts = self._starts(problem, X, weight, rngs[:n_init])
        starts = np.concatenate([*self._given(problem), starts])
        log_det = self._log_det(problem)
        report = relayed(
            progress_of(self, partial(_take, problem), task="EM step"),
            lambda report: replace(report, objective=report.objective - log_det),
        )
        runs = climb(problem, starts, self.tol, self.max_iter, callback=report)
        table = self._table(problem, runs)
        self.objective_history_ = np.array([h[1] for h in runs.history]) - log_det
        self._candidate_parameters(problem, runs.phi)
        self._settle(table, runs.stopped)
        return self

    def _part_problem(self, X, sample_weight):
        """Problem of rows in blocks, and rows and weights to draw starts from."""
        raise TypeError(
            f"X comes in blocks, which {type(self).__name__} does not fit; pass "
            "X.compute(), or a sample of its rows."
        )

    def _starts(self, problem, X, weight, rngs):
        """Random starts (R, P), each from its own generator."""
        return np.stack([self._start(problem, X, weight, rng) for rng in rngs])

    def _given(self, problem):
        """Starts given by the user, each (1, P)."""
        return []

    # -- gates -------------------------------------------------------------------------
    def _table(self, problem, runs):
        """The candidates' columns, gates included."""
        sound = ~runs.broken & np.isfinite(runs.objective)
        L, entropy, dependence, regularized = self._ends(problem, runs, sound)
        with np.errstate(invalid="ignore"):
            group = groups(
                np.where(sound, L, -np.inf),
                np.where(sound, entropy, -np.inf),
                partial(_signature, problem, runs.phi),
            )
        group = np.where(sound, group, -1)
        curvature, maximum = np.full(len(L), np.nan), np.ones(len(L), dtype=bool)
        converged = runs.residual <= self.tol
        if self.check_maximum and self.n_components > 1:
            ready = sound & converged
            for g in np.unique(group[ready]):
                members = np.flatnonzero(ready & (group == g))
                found = self._curvature(problem, runs, members[0])
                curvature[members], maximum[members] = found
        mi_tol = self.mi_tol if self.n_components > 1 else -1.0
        tol = self.tol
        if runs.stopped:  # the gates are about ends
            tol, mi_tol = np.inf, -1.0
        table = {
            "log_likelihood": L,
            "objective": runs.objective - self._log_det(problem),
            "entropy": entropy,
            "regularized_entropy": regularized,
            "residual": runs.residual,
            "dependence": dependence,
            "curvature": curvature,
            "n_iter": runs.n_iter,
            "group": group,
        }
        table["reason"] = reasons(
            runs.residual, tol, sound, dependence, mi_tol, maximum
        )
        return table

    def _log_det(self, problem):
        """Log-determinant of the map from the problem's coordinates to the data's."""
        return 0.0

    def _curvature(self, problem, runs, i):
        """(largest relative curvature, whether it is a local maximum)."""
        if self._has_prior():
            return np.nan, self._survives(problem, runs, i)
        share = problem.missing_share(runs.phi[i])
        return share - 1.0, share <= 1.0 + _SADDLE

    def _has_prior(self):
        return False

    def _survives(self, problem, runs, i):
        """True if a perturbed run comes back to the same objective."""
        rng = np.random.default_rng(0)
        phi = runs.phi[i]
        moved = phi + 1e-3 * self._direction(problem, phi, rng.normal(size=phi.shape))
        again = climb(problem, moved[None], self.tol, self.max_iter)
        old = runs.objective[i]
        return bool(again.objective[0] <= old + 1e-7 * (1.0 + abs(old)))

    def _direction(self, problem, phi, noise):
        """Noise (P,) as a direction within the model, in units of the components."""
        return noise

    # -- predictions -------------------------------------------------------------------
    @abstractmethod
    def _log_joint(self, X):
        """log theta_k p_k(x), (n, K)."""

    def _mapped(self, method, X, *columns):
        """A prediction of every block of rows."""
        check_is_fitted(self)
        return mapped(method, X, *columns, n_features=self.n_features_in_)

    def _joint_of(self, X):
        check_is_fitted(self)
        X = validated(self, X, dtype=np.float64, reset=False)
        v.check_range("X", X, at=True, columns=names_of_columns(self))
        self._check_mixing()
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            joint = self._log_joint(X)
            check_scores(np.logaddexp.reduce(joint, axis=1), X)
        return joint

    def _check_mixing(self):
        """Fitted weights must be proportions."""
        weights = self.weights_
        check_fitted("weights_", weights, np.shape(weights)[:1])
        if (weights < 0).any() or not 0.5 < weights.sum() < 2.0:
            raise ValueError(
                "the fitted model is inconsistent: weights_ are not proportions. "
                "Fit it again."
            )

    @allow_underflow
    def score_samples(self, X: MatrixLike) -> Array:
        if is_partitioned(X):
            return self._mapped(self.score_samples, X)
        return np.logaddexp.reduce(self._joint_of(X), axis=1)

    @allow_underflow
    def predict_proba(self, X: MatrixLike) -> Array:
        if is_partitioned(X):
            return self._mapped(self.predict_proba, X, len(self.weights_))
        joint = self._joint_of(X)
        return np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))

    @allow_underflow
    def predict(self, X: MatrixLike) -> NDArray[np.intp]:
        if is_partitioned(X):
            return self._mapped(self.predict, X, None, np.intp)
        return self._joint_of(X).argmax(axis=1)

    @allow_underflow
    def sample(
        self, n_samples: int = 1, random_state: Any = None
    ) -> tuple[Array, NDArray[np.intp]]:
        check_is_fitted(self)
        n = v.check_count("n_samples", n_samples)
        rng = as_generator(self.random_state if random_state is None else random_state)
        self._check_mixing()
        counts = rng.multinomial(n, self.weights_ / self.weights_.sum())
        parts = [
            self._component(k).sample(int(c), rng) for k, c in enumerate(counts) if c
        ]
        return np.concatenate(parts), np.repeat(np.arange(len(counts)), counts)

    @abstractmethod
    def _component(self, k):
        """Component k as a distribution of one of the families."""

    @abstractmethod
    def _n_parameters(self):
        """Number of free parameters, as information criteria count them."""

    def _criterion(self, name: str, X: MatrixLike) -> float:
        each = {"aic": 2.0, "bic": np.log(len(X))}[name]
        return penalised(self._n_parameters(), each, self.score(X) * len(X))

    @property
    def lower_bounds_(self) -> Array:
        """Best objective after each EM step, under scikit-learn's name."""
        return self.objective_history_

    @property
    def lower_bound_(self) -> float:
        """Objective of the chosen candidate, under scikit-learn's name."""
        return self.objective_


def _signature(problem, phi, i):
    """Parameters of the components of restart i, a row for each."""
    parts = problem.unpack(phi[i : i + 1])
    return np.hstack([part[0].reshape(len(part[0]), -1) for part in parts])


def _take(problem, model, runs):
    """Make the best restart of unfinished runs the model."""
    model._candidate_parameters(problem, runs.phi)
    model.candidates_ = {"n_iter": runs.n_iter}
    model._keep(leader(runs))
