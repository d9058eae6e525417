"""Base class of generative classifiers: one block per class, one dual.

    decision:  argmax_k  E log p_k(x) + b_k    or    log E p_k(x) + log P(k)

Every class starts from its Bayes posterior, the prior updated with its own rows; the
multipliers add weight to rows of the right class and take it from the wrong ones until
the margins are met in expectation.

Source: Jaakkola, Meila & Jebara (1999), sections 3.1.1 and 3.6, eqs. (4), (5), (18).
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np

from maxent._inputs.categories import CategoricalMixin
from maxent._support import validation as v
from maxent._support.fitted import CertifiedState, check_fitted, fresh_state
from maxent._support.progress import progress_of, with_progress
from maxent._support.results import relayed, store_certificate, warn_not_converged
from maxent._support.threads import with_own_threads
from maxent._support.typing import ArrayLike, FloatArray, IntArray
from maxent._support.validation import user_stacklevel
from maxent.discrimination._class_biases import ClassBias
from maxent.discrimination._class_models import ClassModels
from maxent.discrimination._class_rows import (
    DistinctRows,
    class_rows,
    leave_one_out_bound,
)
from maxent.discrimination._margin_parameters import (
    at_level,
    free_margin,
    generative_margin,
)
from maxent.discrimination._probabilities import (
    ProbabilitiesMixin,
    logistic_rate,
    no_probabilities,
)
from maxent.discrimination.duals.block_dual import solve_blocks
from maxent.discrimination.duals.class_pairs import ClassPairs, class_maps
from maxent.families.priors.conjugate import ConjugatePrior


def say_how_it_ended(estimator, result, idle):
    """Warn of a fit that has not converged, or in which no row has a multiplier."""
    name = type(estimator).__name__
    if not result.converged:
        warn_not_converged(name, result, float(estimator.tol), estimator.max_iter)
    elif not result.lam.any():
        warnings.warn(f"{name}: {idle}", UserWarning, stacklevel=user_stacklevel())


def _told_apart(a, b):
    """Two numbers in words, of as many digits as show that they differ."""
    for digits in range(3, 18):
        words = f"{a:.{digits}g}", f"{b:.{digits}g}"
        if words[0] != words[1]:
            break
    return words


def least_errors_bias(scores, y, weight):
    """Bias b with the smallest weight of errors of sign(scores + b).

    Among the best thresholds the middle of the widest gap; outside the scores, one
    unit away.
    """
    order = np.argsort(scores, kind="stable")
    s, w = scores[order], np.where(y[order] > 0, weight[order], -weight[order])
    # a threshold after position k puts rows 0 .. k-1 on the negative side
    errors = weight[y < 0].sum() + np.concatenate([[0.0], np.cumsum(w)])
    ends = np.concatenate([[s[0] - 2.0], s, [s[-1] + 2.0]])
    gaps = ends[1:] - ends[:-1]
    best = errors <= errors[gaps > 0].min() + 1e-12 * weight.sum()
    k = int(np.argmax(np.where(best, gaps, -1.0)))
    return -0.5 * float(ends[k] + ends[k + 1])


class GenerativeClassifier(CertifiedState, ProbabilitiesMixin, ClassModels):
    """Base class; a subclass defines `_validated`, `_prior` and its parameters."""

    posteriors_: list[Any]
    intercept_: FloatArray
    support_: IntArray
    dual_coef_: FloatArray
    level_: float
    loo_bound_: float

    #: what a fit without a multiplier has learnt, and the parameters of the level
    _idle = "the classes are their Bayes posteriors", "level or percentile"

    #: the logistic prior that makes decision values logarithms of odds
    _logistic = "margin='logistic' with level=0"

    @fresh_state
    @with_progress
    @with_own_threads
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the class models.

        Parameters
        ----------
        X : array-like (n_samples, n_features)
        y : array-like (n_samples,)
            Labels of two or more classes.
        sample_weight : array-like (n_samples,), optional
            Weight w stands for w copies of the row; 0 drops it.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            For a parameter outside its domain, NaN or infinity, one class only, a class
            whose rows are too few for the prior, or a level that not all rows can meet
            with margin="fixed".

        Warns
        -----
        ConvergenceWarning
            If the tolerance is not met; the attributes say how far the fit came.
        """
        margin, level, unit = self._checked_margin()
        self._check_parameters()
        tol, max_iter = v.check_stop(self.tol, self.max_iter)
        data, y = self._validated(X, y)
        # class weights are costs: they scale the losses, not the evidence of the rows
        self.classes_, keep, codes, weight, cost = class_rows(
            type(self).__name__, y, sample_weight, self.class_weight
        )
        m = self._checked_class_count()
        data = self._learn_encoding(data if len(keep) == len(data) else data[keep])
        every = ClassPairs(codes, m, cost)
        data, codes, weight, cost, spread = self._distinct(data, codes, weight, cost)
        blocks = self._class_blocks(data, codes, weight)
        pairs = ClassPairs(codes, m, cost)
        seen = pairs if self.class_weight is None else ClassPairs(codes, m, weight)
        self.level_ = float(self._level(level, blocks, seen))
        margin = at_level(margin, self.level_)

        def store(model, result):
            model._store(result, result.blocks or blocks, pairs)
            model._store_support(spread(result.lam), every, keep)

        callback = progress_of(self, store)
        options = {"tol": tol, "max_iter": max_iter, "callback": callback}
        result = self._solve_for_labels(blocks, margin, pairs, unit, **options)
        store(self, result)
        holds = self._bound_holds(level is not None) and not self._by_predictive()
        result = replace(result, lam=spread(result.lam))
        self.loo_bound_ = self._bound(result, every, margin, unit) if holds else np.nan
        idle = "" if result.lam.any() else self._why_idle(blocks, pairs, result, margin)
        say_how_it_ended(self, result, idle)
        return self

    def _checked_class_count(self):
        """Return the number of classes, which counting errors needs to be two."""
        m = len(self.classes_)
        ClassBias(self.bias, m)
        if m > 2 and self._by_training_errors():
            raise ValueError(
                f"bias='train_error' is for two classes, and y has {m}; use "
                "bias='flat'."
            )
        return m

    def _solve_for_labels(self, blocks, margin, pairs, unit, callback, **options):
        """DualResult with a constraint for every wrong class of every row."""
        bias = ClassBias(self.bias, pairs.m)
        blocks, maps, more = bias.problem(blocks, class_maps(pairs), pairs)

        def solved(result):
            return bias.solved(result, pairs)

        callback = relayed(callback, lambda report: report.translated(solved))
        result = self._solve(
            blocks,
            margin,
            pairs,
            maps=maps,
            sample_weight=unit * pairs.pair_weight,
            level=np.full(len(pairs.example), self.level_),
            callback=callback,
            **more,
            **options,
        )
        return solved(result)

    def _why_idle(self, blocks, pairs, result, margin):
        """Why no row has a multiplier, and the parameter to change."""
        scores = np.column_stack([b.mean(np.zeros(pairs.n)) for b in blocks])
        least = pairs.margins(scores + result.bias).min()
        learnt, names = self._idle
        if least >= self.level_ or not free_margin(margin) > 0:
            bound, remedy = f"the level {self.level_:.3g}", names
        else:
            named = isinstance(self.margin, str)
            mean, level = _told_apart(margin.prior_mean, self.level_)
            bound = (
                f"{mean}, the mean of the margin prior of level {level} and "
                f"{'C' if named else 'rate'}={margin.rate:.3g},"
            )
            remedy = f"{'C' if named else 'the rate of margin'} or level"
        return (
            f"every margin is above {bound} before training, so {learnt}; raise "
            f"{remedy} to train them discriminatively."
        )

    # -- what subclasses state or improve ------------------------------------------
    def _checked_margin(self):
        """(prior, level or None, weight of a row) of the parameters."""
        return generative_margin(self.margin, self.C, self.level)

    def _check_parameters(self):
        """Refuse parameters that this class alone has."""
        if not (v.is_real(self.percentile) and 0 <= self.percentile <= 100):
            raise ValueError(
                f"percentile={v.shown(self.percentile)} must be between 0 and 100."
            )
        v.check_nonnegative("tempering", self.tempering)
        if self._by_predictive() and self._by_training_errors():
            raise ValueError(
                "likelihood='predictive' has the shares of the classes for its bias, "
                "not bias='train_error'; use bias='flat'."
            )

    def _by_predictive(self):
        """True if predictive densities and Bayes' rule decide."""
        v.check_choice("likelihood", self.likelihood, ("expected", "predictive"))
        return self.likelihood == "predictive"

    def _by_training_errors(self):
        return isinstance(self.bias, str) and self.bias == "train_error"

    def _learn_encoding(self, X):
        """Training rows as the blocks want them."""
        return X

    def _distinct(self, X, codes, weight, cost):
        """Rows of the dual, and the function that gives all rows their multipliers."""
        return X, codes, weight, cost, lambda lam: lam

    def _class_blocks(self, X, codes, weight, prior=None):
        """One block a class over all rows; the class's own rows make its prior."""
        prior = self._prior(X, weight) if prior is None else prior
        blocks = []
        for k in range(len(self.classes_)):
            # the rows are prepared once
            bind = blocks[0]._with_base_weight if blocks else partial(prior.block, X)
            blocks.append(
                self._class_block(bind, k, codes == k, self.tempering * weight)
            )
        return blocks

    def _class_block(self, bind, k, own, weight):
        try:
            return bind(weight * own)
        except ValueError as error:
            raise ValueError(
                f"class {v.shown(self.classes_[k])} with {int(own.sum())} rows of y: "
                f"{self._reworded(error)}"
            ) from None

    def _reworded(self, error):
        """Message of the error of a block, in the words of this estimator."""
        return str(error)

    def _level(self, level, blocks, pairs):
        """The level given, or a percentile of the margins of the Bayes posteriors."""
        if level is not None:
            return level
        n = pairs.n
        scores = np.column_stack([b.mean(np.zeros(n)) for b in blocks])
        return self._level_of(scores, pairs)

    def _level_of(self, scores, pairs):
        """The percentile of the margins of rows with these scores (n, n_classes)."""
        margins = pairs.margins(scores)
        if pairs.m == 2:
            y = np.where(pairs.codes == 1, 1.0, -1.0)
            margins = margins + y * least_errors_bias(y * margins, y, pairs.weight)
        return weighted_percentile(margins, pairs.pair_weight, self.percentile)

    def _solve(self, blocks, margin, pairs, *, maps, **options):
        return solve_blocks(blocks, maps, margin, **options)

    def _prior_saw_no_row(self):
        """True if the classes start from a prior that the rows did not shape."""
        return self.tempering == 0

    def _bound_holds(self, given):
        """True if prior and level saw no row, and the bias is the dual's own."""
        return given and self._prior_saw_no_row() and not self._by_training_errors()

    def _bias_prior(self):
        bias = v.bias_word(self.bias)
        return "flat" if isinstance(bias, str) else None

    # -- fitted state --------------------------------------------------------------
    def _store(self, result, blocks, pairs):
        m = pairs.m
        beta = pairs.beta(result.lam)
        weights = [np.ascontiguousarray(beta[:, k]) for k in range(m)]
        self.posteriors_ = [
            block.posterior(a) for block, a in zip(blocks, weights, strict=True)
        ]
        b = result.bias
        if self._by_training_errors():
            low, high = (
                block.mean(a) for block, a in zip(blocks, weights, strict=True)
            )
            y = np.where(pairs.codes == 1, 1.0, -1.0)
            b = np.array([0.0, least_errors_bias(high - low, y, pairs.weight)])
        if self._by_predictive():
            b = self._log_class_shares(pairs)
        self.intercept_ = b[1:] - b[0] if m == 2 else b - b.mean()
        store_certificate(self, result)

    def _store_support(self, lam, pairs, keep):
        """Rows with a multiplier, and the weights that they add to the classes."""
        inside = np.flatnonzero(lam.reshape(pairs.n, -1).any(axis=1))
        self.support_ = keep[inside]
        coefficients = pairs.beta(lam)[inside].T
        self.dual_coef_ = coefficients if pairs.m > 2 else coefficients[1:]

    def _log_class_shares(self, pairs):
        """Biases (m,) of Bayes' rule, by which class weights are costs of errors.

        The bias of the dual is of no use there: it makes up for what E log p lacks of
        log E p, which differs between the classes.
        """
        if self.bias is None:
            return np.zeros(pairs.m)
        share = np.bincount(pairs.codes, pairs.weight)
        return np.log(share / share.sum())

    def _bound(self, result, pairs, margin, unit):
        """Bound of the leave-one-out error; rows without a multiplier must be right."""
        if not self.level_ > free_margin(margin):
            return np.nan
        lam = np.zeros((pairs.n, pairs.m))
        lam[pairs.example, pairs.wrong] = result.lam
        return leave_one_out_bound(
            replace(result, lam=lam),
            pairs.codes,
            margin,
            self._bias_prior(),
            unit * pairs.weight,
        )

    def _score_rows(self, model, X):
        if self._by_predictive():
            return model.predictive_log_prob(X)
        return model.expected_log_prob(X)

    def _decision(self, X):
        scores = self._model_scores(X, "posteriors_", ConjugatePrior, "a posterior")
        m = scores.shape[1]
        check_fitted("intercept_", self.intercept_, (1,) if m == 2 else (m,))
        if m == 2:
            return scores[:, 1] - scores[:, 0] + self.intercept_[0]
        return scores + self.intercept_

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Decision values, in nats.

        Parameters
        ----------
        X : array-like (n, n_features)
            Rows to classify.

        Returns
        -------
        ndarray (n,) or (n, n_classes)
            Two classes: expected log-likelihood ratio plus bias, positive for
            ``classes_[1]``. More: one score per class; the largest decides. With
            ``likelihood="predictive"`` logarithms of the odds, or of the joint
            probability density of row and class, each up to a constant.
        """
        return self._decision(X)

    def _probability_rate(self):
        if self._by_predictive():
            return 1.0
        rate = logistic_rate(self.margin, self.level, self.C)
        if rate is None or self._by_training_errors():
            settings = ["margin", "level", "likelihood"]
            remedy = f"likelihood='predictive' or {self._logistic}"
            if self._by_training_errors():
                settings, remedy = [*settings, "bias"], f"{remedy}, and bias='flat'"
            raise no_probabilities(self, settings, remedy)
        return v.check_positive("C", rate)


class CategoricalClassifier(CategoricalMixin, GenerativeClassifier):
    """Base class of those for categories, whose rows often repeat."""

    def _distinct(self, X, codes, weight, cost):
        rows = DistinctRows(X, codes, weight, cost)
        return rows.X, rows.codes, rows.weight, rows.cost, rows.spread


def weighted_percentile(values, weight, percentile):
    """Percentile of values; with integer weights that of repeated values."""
    return np.quantile(
        values, percentile / 100.0, weights=weight, method="inverted_cdf"
    )
