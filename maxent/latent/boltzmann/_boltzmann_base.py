"""What Boltzmann machines with hidden units share: fit, scores, draws."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from maxent._inputs.estimator_input import validated
from maxent._support import validation as v
from maxent._support.fitted import check_fitted, check_scores, fresh_state
from maxent._support.progress import with_progress
from maxent._support.random_state import as_generator
from maxent._support.threads import with_single_threaded_blas
from maxent._support.typing import MatrixLike
from maxent._support.underflow import allow_underflow
from maxent._support.validation import user_stacklevel
from maxent.latent._em_is import checked_likelihood
from maxent.latent._likelihood import M_STEPS
from maxent.latent._pool import SELECTIONS, CandidatePool
from maxent.latent._stationary_points import candidates, take_best
from maxent.latent.boltzmann._sampled_ascent import (
    Sampling,
    sampled_candidates,
    take_sampled,
    visible_draws,
)

Array = NDArray[np.float64]
Moments = Literal["exact", "sampled"]
MOMENTS = ("exact", "sampled")


class Machine(CandidatePool, TransformerMixin, BaseEstimator):
    """Boltzmann machine of which a subclass says the parameters and free weights."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags

    @abstractmethod
    def _model(self, n_visible):
        """Log-linear model of this many visible units."""

    @fresh_state
    @with_progress
    @with_single_threaded_blas
    def fit(
        self, X: MatrixLike, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Find candidates from many starts and keep one.

        Parameters
        ----------
        X : array-like (n_samples, n_visible)
            Rows of 0 and 1.
        y : None
            Ignored.
        sample_weight : array-like (n_samples,), optional
            Weight w stands for w copies of the row.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        NoAdmissibleCandidateError
            If the gates reject every candidate.
        ValueError
            For data that are not binary, or more units than can be enumerated with
            ``moments="exact"``.

        Warns
        -----
        UserWarning
            With ``moments="sampled"``, if the choice is not decided: other candidates
            are within two standard errors of the chosen one.
        """
        v.check_choice("selection", self.selection, SELECTIONS)
        v.check_choice("moments", self.moments, MOMENTS)
        n_init = v.check_count("n_init", self.n_init)
        v.check_count("n_hidden", self.n_hidden)
        X = validated(self, X, dtype=np.float64)
        model = self._model(X.shape[1])
        weight = v.check_weights(sample_weight, len(X))
        total = len(X) if weight is None else weight.sum()
        variance = v.check_positive(
            "prior_variance", self.prior_variance, allow_inf=True
        )
        likelihood = checked_likelihood(
            model, X, "l2", variance * total, None, self.bound, sample_weight
        )
        rngs = as_generator(self.random_state).spawn(n_init)
        find = self._sampled if self.moments == "sampled" else self._exact
        table, self.candidate_weights_, *history = find(
            likelihood,
            rngs,
            inner=v.check_count("inner", self.inner),
            mi_tol=v.check_number("mi_tol", self.mi_tol),
            n_jobs=v.check_jobs(self.n_jobs),
            progress=self._progress,
        )
        if history:  # exact objectives only
            self.objective_history_ = history[0]
        self._settle(table, self._progress.stopped)
        self._warn_of_ties()
        return self

    def _exact(self, likelihood, rngs, **more):
        method = v.check_choice("method", self.method, M_STEPS)
        likelihood.model.check_method(method)
        return candidates(
            likelihood,
            np.stack([likelihood.model.start(rng) for rng in rngs]),
            method=method,
            em_iter=v.check_count("em_iter", self.em_iter),
            tol=v.check_positive("tol", self.tol),
            max_iter=v.check_count("max_iter", self.max_iter),
            check_maximum=self.check_maximum,
            store=take_best,
            **more,
        )

    def _sampled(self, likelihood, rngs, *, inner, **more):
        counts = (
            v.check_count(name, getattr(self, name))
            for name in ("n_chains", "n_updates", "n_temperatures")
        )
        tol = v.check_positive("sampled_tol", self.sampled_tol)
        return sampled_candidates(
            likelihood,
            rngs,
            Sampling(*counts, inner, tol),
            tol=tol,
            store=take_sampled,
            **more,
        )

    @property
    def _tolerance(self):
        return self.sampled_tol if self.moments == "sampled" else self.tol

    @property
    def _solver(self):
        return "persistent-chains" if self.moments == "sampled" else "EM"

    _bound = "use a smaller prior_variance, or more data"

    @property
    def _more(self):
        sampled = "raise n_updates, n_chains, n_temperatures or sampled_tol"
        return sampled if self.moments == "sampled" else super()._more

    def _choose(self, selection):
        super()._choose(selection)
        self.ties_ = _ties(self.candidates_, selection, self.selected_)

    def _warn_of_ties(self):
        if len(self.ties_):
            n, of = len(self.ties_), (self.candidates_["reason"] == "").sum()
            warnings.warn(
                f"{type(self).__name__}: the choice by {self.selection} is not decided:"
                f" {n} of {of} admitted candidates are within two standard errors of "
                "the chosen one (ties_); raise n_temperatures or n_chains, or take "
                "them for equal.",
                stacklevel=user_stacklevel(),
            )

    def _keep(self, i):
        model, table = self._model(self.n_features_in_), self.candidates_
        lam = self.candidate_weights_[i]
        self.lam_ = lam.copy()
        self.weights_, self.biases_ = model.matrices(lam)
        if self.moments == "sampled":
            self.log_partition_ = float(table["log_partition"][i])
            self.log_partition_error_ = float(table["log_likelihood_error"][i])
        else:
            self.log_partition_ = float(model.partition(lam[None])[0][0])
            self.log_partition_error_ = 0.0
        self.at_bound_ = np.flatnonzero(np.abs(lam) >= self.bound)
        self.n_iter_ = int(self.candidates_["n_iter"][i])

    def _checked(self, X):
        check_is_fitted(self)
        X = validated(self, X, dtype=np.float64, reset=False)
        model = self._model(self.n_features_in_)
        check_fitted("lam_", self.lam_, (model.n_features,))
        wrong = (X != 0) & (X != 1)
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            raise ValueError(
                f"X[{i}, {j}]={X[i, j]:g} is not binary; units are 0 or 1."
            )
        return model, X

    @allow_underflow
    def score_samples(self, X: MatrixLike) -> Array:
        """Log-probability of visible rows.

        Parameters
        ----------
        X : array-like (n, n_visible)
            Rows of 0 and 1.

        Returns
        -------
        ndarray (n,)
            log p(v), nats; with ``moments="sampled"`` all are wrong by the same
            number, of standard error `log_partition_error_`.
        """
        model, X = self._checked(X)
        J, out = model.J, np.empty(len(X))
        W, b = model.matrices(self.lam_)
        for part, top, _, _ in model._hidden(W, b, X, np.full(len(X), 1.0 / len(X))):
            V = X[part]
            out[part] = V @ b[:J] + 0.5 * ((V @ W[:J, :J]) * V).sum(axis=1) + top
        with np.errstate(over="ignore", invalid="ignore"):
            return check_scores(out - self.log_partition_, X)

    def score(self, X: MatrixLike, y: Any = None) -> float:
        """Mean log-probability.

        Parameters
        ----------
        X : array-like (n, n_visible)
            Rows of 0 and 1.
        y : None
            Ignored.

        Returns
        -------
        float
            Nats per row.
        """
        return float(self.score_samples(X).mean())

    @allow_underflow
    def transform(self, X: MatrixLike) -> Array:
        """Probabilities of the hidden units.

        Parameters
        ----------
        X : array-like (n, n_visible)
            Rows of 0 and 1.

        Returns
        -------
        ndarray (n, n_hidden)
            p(h_l = 1 | v).
        """
        model, X = self._checked(X)
        share = np.full(len(X), 1.0 / len(X))
        parts = model._hidden(*model.matrices(self.lam_), X, share)
        return np.concatenate([mean for _, _, mean, _ in parts])

    @allow_underflow
    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draws of the visible units.

        Independent and exact; with ``moments="sampled"`` the ends of annealed Gibbs
        chains, one for each draw, whose distribution is the model's up to how well the
        chains mix.

        Parameters
        ----------
        n_samples : int, default=1
            Draws, >= 1.
        random_state : int, Generator, RandomState or None, default=None
            None takes the estimator's.

        Returns
        -------
        ndarray (n_samples, n_visible)
            Rows of 0 and 1.
        """
        check_is_fitted(self)
        rng = as_generator(self.random_state if random_state is None else random_state)
        model = self._model(self.n_features_in_)
        n = v.check_count("n_samples", n_samples)
        if self.moments == "sampled":
            return visible_draws(model, self.lam_, n, self.n_temperatures, rng)
        return model.sample(self.lam_, n, rng)


def _ties(table, selection, i):
    """Admitted candidates whose score errors cannot tell from that of candidate i."""
    if "entropy_error" not in table:
        return np.empty(0, dtype=np.intp)
    column, error = "objective", table["log_likelihood_error"]
    if selection == "entropy":
        column, error = "regularized_entropy", table["entropy_error"]
    gap = table[column][i] - table[column]
    near = (gap <= 2.0 * np.hypot(error, error[i])) & (table["reason"] == "")
    near[i] = False
    return np.flatnonzero(near)
