"""What the min-entropy estimators share: parameters, learning, prediction."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing, assert_all_finite
from sklearn.utils.validation import check_is_fitted, column_or_1d

from maxent._inputs.estimator_input import check_labels
from maxent._support import validation as v
from maxent._support.fitted import (
    FittedState,
    check_fitted,
    check_fitted_classes,
    check_scores,
    fresh_state,
)
from maxent._support.progress import (
    CallbacksMixin,
    Progress,
    progress_of,
    with_progress,
)
from maxent._support.random_state import as_generator
from maxent._support.results import Status
from maxent._support.threads import with_single_threaded_blas
from maxent._support.typing import FloatArray, NDArray
from maxent._support.underflow import allow_underflow
from maxent._support.validation import user_stacklevel
from maxent.minentropy._features import HiddenFeatures
from maxent.minentropy._objective import Objective
from maxent.minentropy._ragged_rows import check_alpha
from maxent.minentropy._starts import Settings, learn
from maxent.minentropy._trust_ball import TrustBall
from maxent.minentropy.renyi import type_to_order

INITS = ("auto", "zero", "random", "path")
SOLVERS = ("auto", "prox", "ball", "cccp", "latent_svm")
_MAJORITY = 1.2  # times the equal share of the weight that makes a class a large one
_NO_ERROR = 1e-3  # weighted share of errors that one label for all samples may make


class MinEntropyBase(CallbacksMixin, FittedState, ClassifierMixin, BaseEstimator, ABC):
    """Base of the estimators; a subclass makes the hidden features of its data.

    It defines ``_features(X, K, fit)``, a HiddenFeatures of K outputs.
    """

    classes_: NDArray[Any]
    coef_: FloatArray
    objective_: float
    stationarity_: float
    objective_history_: FloatArray
    n_iter_: int
    converged_: bool
    _progress: Progress

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # learning ends at a local optimum, which another start may not reach
        tags.non_deterministic = False
        return tags

    @abstractmethod
    def _features(self, X: Any, K: int, fit: bool) -> HiddenFeatures:
        """Features of all outputs and hidden values of X."""

    def _training_features(self, X, K, hidden_mask):
        """Features to learn from, before masks; masked values may be missing."""
        return self._features(X, K, True)

    # -- learning --------------------------------------------------------------------
    @fresh_state
    @with_progress
    @with_single_threaded_blas
    def _learn(self, X, y, sample_weight, hidden_mask, before=None):
        """Fit; `before` is a model of another order, whose weights are a start."""
        settings = self._settings()
        b = v.check_positive("temperature", self.temperature)
        C = v.check_positive("C", self.C)
        rng = as_generator(self.random_state)
        n_init = v.check_count("n_init", self.n_init)
        y, weight = self._labels(y, sample_weight)
        classes = self._outputs(np.unique(y[weight > 0]))
        K = len(classes)
        order = self._order(classes)
        codes = np.minimum(np.searchsorted(classes, y), K - 1)
        alpha = type_to_order(check_alpha(self.alpha, (K,)), b)[order]
        self._check_solver(alpha)
        loss = _checked_loss(self.loss_matrix, K)[np.ix_(order, order)]
        features = self._training_features(X, K, hidden_mask)
        if features.n != len(codes):
            raise ValueError(
                f"X has {features.n} samples and y {len(codes)} labels; one label for "
                "each sample is needed."
            )
        total = weight.sum()
        features.centre(weight)
        weight = weight * self._class_weights(y, classes, codes, weight)
        codes = order[codes]
        if hidden_mask is not None:
            features.restrict(hidden_mask, codes)
        self._check_true_outputs(features, codes, classes[order])
        # F_a,b(w) = F_a'(b w) / b: learn u = b w, with the losses b Delta
        c = b * C * weight / total
        objective = Objective(features, codes, c, b * loss, alpha)
        init = self._start(features, b)
        self.classes_ = classes
        start = None
        if before is not None:
            start = _centred(features, b * before._weights(features))
        self._minimise(objective, settings, init, n_init, rng, b, start)
        return self

    def _labels(self, y, sample_weight):
        """Checked labels and weights (n,)."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is "
                "None."
            )
        v.refuse_masked("y", y)
        y = column_or_1d(y, warn=True)
        if not len(y):
            raise ValueError("y has no label: 0 samples are given and two are needed.")
        if y.dtype.kind == "f":
            assert_all_finite(y, input_name="y")
        check_labels(y)
        weight = v.check_weights(sample_weight, len(y))
        return y, np.ones(len(y)) if weight is None else weight

    def _minimise(self, objective, settings, init, n_init, rng, b, start):
        """Learn, store the best run, and say how it ended."""
        unit = 1.0 / b**2

        def store(model, run):
            w = run.w - objective.features.taken_up(run.w)
            model._store(replace(run, w=w), b)

        callback = progress_of(self, store, unit=unit)
        learned = learn(objective, settings, init, n_init, rng, callback, start)
        best = learned.best
        store(self, best)
        self.restarts_ = [(name, f * unit, err / b) for name, f, err in learned.runs]
        end = f"objective {self.objective_:.6g}, stationarity {self.stationarity_:.1e}"
        self._progress.closing(best.status, best.solver, best.n_iter, end)
        if not learned.stopped:
            self._warn(learned, settings, objective)

    def _store(self, run, b):
        """Set the fitted attributes that one run tells."""
        unit = 1.0 / b**2
        self.coef_ = run.w / b
        self.objective_, self.stationarity_ = run.objective * unit, run.stationarity
        self.objective_history_ = unit * np.array([h[1] for h in run.history])
        self.n_iter_, self.converged_ = run.n_iter, run.converged

    def _warn(self, learned, settings, objective):
        best = learned.best
        if learned.trapped and (learned.idle or self.init in ("zero", "path")):
            warnings.warn(
                f"{type(self).__name__}: w = 0 is nearly stationary at C={self.C:g}, "
                "because features averaged over the hidden values do not tell the "
                f"outputs apart; {self.n_init} random starts were made as well. Raise "
                "C or n_init.",
                UserWarning,
                stacklevel=user_stacklevel(),
            )
        elif best.converged:
            self._warn_of_one_output(objective, best)
        if not best.converged:
            remedy = f"raise max_iter (now {settings.max_iter}) or tol"
            if best.status is Status.STALLED:
                remedy = (
                    "rounding allows no further progress: centre and scale the "
                    "features, or raise tol"
                )
                if best.solver == "ball":
                    remedy = "no step in a ball falls by tol: use solver='prox'"
            warnings.warn(
                f"{type(self).__name__} stopped with status {best.status.value!r} "
                f"after {best.n_iter} steps: stationarity {best.stationarity:.2e} "
                f"reached, tol={settings.tol:g} asked; {remedy}.",
                ConvergenceWarning,
                stacklevel=user_stacklevel(),
            )

    def _warn_of_one_output(self, objective, best):
        """Warn of a model that gives all training samples one label, at a cost."""
        predicted = objective.predictions(best.w)[objective.c > 0]
        one = len(predicted) and (predicted == predicted[0]).all()
        if not (one and objective.error(best.w) > _NO_ERROR):
            return
        label = self.classes_[self._order(self.classes_)[predicted[0]]]
        shares = np.bincount(objective.codes, objective.c) / objective.total
        rare = shares[predicted[0]] * objective.features.K > _MAJORITY
        balance = ", or set class_weight='balanced'" if rare else ""
        warnings.warn(
            f"{type(self).__name__} predicts {v.shown(label)} for all "
            f"{len(predicted)} training samples: at C={self.C:g} the penalty of the "
            f"weights outweighs the errors. Raise C, such as to {100 * self.C:g}"
            f"{balance}.",
            UserWarning,
            stacklevel=user_stacklevel(),
        )

    # -- parameters ------------------------------------------------------------------
    def _settings(self):
        tol, max_iter = v.check_stop(self.tol, self.max_iter)
        qp_tol = v.check_positive("qp_tol", self.qp_tol)
        solver = self.solver
        if not isinstance(solver, TrustBall):
            solver = v.check_choice("solver", solver, SOLVERS)
        return Settings(solver, tol, min(qp_tol, 0.1 * tol), max_iter)

    def _check_solver(self, alpha):
        infinite = np.isinf(alpha)
        linear = isinstance(self.solver, TrustBall) or self.solver in ("prox", "ball")
        if linear and infinite.any():
            raise ValueError(
                f"solver={self.solver!r} linearises scores, which have no derivative "
                "at alpha=inf; use 'cccp' or 'auto'."
            )
        if self.solver == "latent_svm" and not infinite.all():
            raise ValueError(
                f"solver='latent_svm' needs alpha=inf, not alpha={self.alpha!r}."
            )

    def _outputs(self, classes):
        """Labels of the outputs, given those of y."""
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs two classes; y contains one class only "
                f"({v.shown(classes[0])})."
            )
        return classes

    def _one_sided(self, K):
        """True if one class of two has scores and the other one's are zero."""
        mode = v.check_choice("mode", self.mode, ("auto", "blocks", "one_sided"))
        if mode == "one_sided" and K != 2:
            raise ValueError(
                f"mode='one_sided' needs two classes and y has {K}; use 'blocks'."
            )
        return mode != "blocks" and K == 2

    def _order(self, classes):
        """Class of every output of the features; its own inverse.

        The last output of a one-sided model is the one with scores.
        """
        order, label = np.arange(len(classes)), getattr(self, "pos_label", None)
        if label is None:
            return order
        if label not in classes.tolist():
            raise ValueError(
                f"pos_label={v.shown(label)} is none of the labels "
                f"{v.shown(classes.tolist())} of y; give one of them."
            )
        if not self._one_sided(len(classes)):
            raise ValueError(
                f"pos_label={v.shown(label)} is for one-sided models of two classes; "
                "leave it out, for here every class has scores."
            )
        return order[::-1] if label == classes[0] else order

    def _start(self, features, b):
        if isinstance(self.init, str):
            return v.check_choice("init", self.init, INITS)
        w, d = v.as_doubles("init", self.init), features.d
        if w.shape != (d,) or not np.isfinite(w).all():
            raise ValueError(
                f"init={v.shown(self.init)} must be one of {', '.join(INITS)}, or {d} "
                "finite weights."
            )
        return _centred(features, b * w)

    def _class_weights(self, y, classes, codes, weight):
        given = v.check_class_weight(self.class_weight)
        if given is None:
            return 1.0
        if isinstance(given, dict):
            known = [*classes.tolist(), *np.unique(y).tolist()]
            for label in given:
                if label not in known:
                    raise ValueError(
                        f"class_weight has the key {v.shown(label)}, which is none of "
                        f"the labels {v.shown(classes.tolist())}; leave it out."
                    )
            return np.array([given.get(k, 1.0) for k in classes.tolist()])[codes]
        total, each = np.bincount(codes, weight, len(classes)), np.ones(len(classes))
        present = total > 0
        each[present] = v.class_factors(given, classes[present], total[present])
        return each[codes]

    def _check_true_outputs(self, features, codes, classes):
        F, _ = features.renyi(
            np.zeros(features.d), np.zeros(features.K), gradient=False
        )
        own = F[np.arange(features.n), codes]
        if np.isneginf(own).any():
            i = int(np.argmax(np.isneginf(own)))
            raise ValueError(
                f"sample {i} has no hidden value for its label "
                f"{v.shown(classes[codes[i]])}; give it one, or drop the sample."
            )

    def _samples(self, X, index):
        """Some samples of X, in the form that `fit` takes."""
        return _safe_indexing(X, index)

    # -- prediction ------------------------------------------------------------------
    def _bound(self, X):
        check_is_fitted(self)
        K = check_fitted_classes(self.classes_)
        features = self._features(X, K, False)
        return features, K

    def _weights(self, features):
        """The fitted weights as one vector (d,)."""
        found = np.shape(self.coef_)
        if len(found) == 1 and found != (features.d,):
            raise ValueError(
                f"X has features for {features.d} weights, but {type(self).__name__} "
                f"is expecting those of {found[0]}, as in fit. If they are the same, "
                "the fitted model is inconsistent: fit it again."
            )
        check_fitted("coef_", self.coef_, (features.d,))
        return self.coef_

    @allow_underflow
    def _scores(self, X):
        features, K = self._bound(X)
        b = v.check_positive("temperature", self.temperature)
        order = self._order(self.classes_)
        alpha = type_to_order(check_alpha(self.alpha, (K,)), b)[order]
        with np.errstate(over="ignore", invalid="ignore"):
            F, _ = features.renyi(b * self._weights(features), alpha, gradient=False)
        check_scores(F.max(axis=1), None)  # -inf: no hidden value
        return F[:, order] / b

    def decision_function(self, X: Any) -> FloatArray:
        """Return the Renyi scores of the outputs.

        Parameters
        ----------
        X : as for fit
            Samples.

        Returns
        -------
        ndarray (n,) or (n, K)
            F; for two classes that of ``classes_[1]`` less the other one.
        """
        F = self._scores(X)
        if F.shape[1] == 2:
            return check_scores(F[:, 1] - F[:, 0], None)
        return F

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the outputs of the largest Renyi score, the first of equal ones.

        Parameters
        ----------
        X : as for fit
            Samples.

        Returns
        -------
        ndarray (n,)
            Entries of ``classes_``.
        """
        return self.classes_[self._scores(X).argmax(axis=1)]

    @allow_underflow
    def predict_hidden(self, X: Any, y: ArrayLike | None = None) -> NDArray[np.intp]:
        """Return the best hidden value of each sample.

        Parameters
        ----------
        X : as for fit
            Samples.
        y : array-like (n,), optional
            Outputs whose hidden values are wanted; the predicted ones by default.

        Returns
        -------
        ndarray of int (n,) or (n, ...)
            Place of the hidden value with the largest score, the first of equal ones;
            0 for an output without hidden values.
        """
        features, _ = self._bound(X)
        codes = self._output_codes(y, X, features.n)
        with np.errstate(over="ignore", invalid="ignore"):
            best = features.best(self._weights(features))
        return best[np.arange(features.n), codes]

    def _output_codes(self, y, X, n):
        """Outputs of the features, of the labels y or of the predictions."""
        order = self._order(self.classes_)
        if y is None:
            return order[self._scores(X).argmax(axis=1)]
        y = v.as_array("y", y)
        codes = np.searchsorted(self.classes_, y)
        codes = np.minimum(codes, len(self.classes_) - 1)
        if y.shape != (n,) or not (self.classes_[codes] == y).all():
            raise ValueError(
                f"y={v.shown(y.tolist())} must hold {n} of the labels "
                f"{v.shown(self.classes_.tolist())}."
            )
        return order[codes]

    @allow_underflow
    def hidden_proba(self, X: Any, y: ArrayLike | None = None) -> list[FloatArray]:
        """Return the posteriors of the hidden values of each sample.

        Parameters
        ----------
        X : as for fit
            Samples.
        y : array-like (n,), optional
            Outputs whose hidden values are meant; the predicted ones by default.

        Returns
        -------
        list of ndarray
            softmax of the scores of the hidden values of each sample.
        """
        features, _ = self._bound(X)
        codes = self._output_codes(y, X, features.n)
        with np.errstate(over="ignore", invalid="ignore"):
            found = features.posteriors(self._weights(features))
        return [check_scores(part, None) for part in features.split(found, codes)]


def _centred(features, w):
    """Weights of centred features with the scores of w at the caller's."""
    return w + features.taken_up(w)


def _checked_loss(loss, K):
    if loss is None:
        return 1.0 - np.eye(K)
    loss = v.as_doubles("loss_matrix", loss)
    if loss.shape != (K, K):
        raise ValueError(
            f"loss_matrix has shape {loss.shape}; ({K}, {K}) is needed for {K} classes."
        )
    if not (np.isfinite(loss) & (loss >= 0)).all():
        i, j = np.argwhere(~(np.isfinite(loss) & (loss >= 0)))[0]
        raise ValueError(
            f"loss_matrix[{i}, {j}]={loss[i, j]:g} must be a finite loss >= 0."
        )
    if loss.diagonal().any():
        i = int(np.flatnonzero(loss.diagonal())[0])
        raise ValueError(
            f"loss_matrix[{i}, {i}]={loss[i, i]:g} is on the diagonal; a right "
            "prediction costs 0."
        )
    return loss
