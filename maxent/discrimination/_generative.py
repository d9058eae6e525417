"""What the classifiers of generative models share: one block a class, one dual.

    decision:  argmax_k  E log p_k(x) + b_k

Every class starts from its Bayes posterior, the prior updated with its own rows; the
multipliers add weight to rows of the right class and take it from the wrong ones until
the margins are met in expectation.

Source: Jaakkola, Meila & Jebara (1999), sections 3.2 and 3.6, eqs. (4), (5), (18).
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from maxent._support import validation as v
from maxent._support.results import (
    progress_of,
    store_certificate,
    warn_not_converged,
)
from maxent.discrimination._machine import class_rows, leave_one_out_bound
from maxent.discrimination.block_dual import solve_blocks
from maxent.discrimination.margin_prior import MarginPrior
from maxent.discrimination.margins import MARGINS
from maxent.discrimination.multiclass import MulticlassRows
from maxent.families.conjugate import ConjugatePrior

_NAMES = ("exponential", "erlang", "laplace", "gaussian", "logistic", "hinge", "fixed")


def generative_margin(margin, C, level):
    """(prior, level or None): the prior of rate C that `margin` names, or itself."""
    C = v.check_positive("C", C)
    if level is not None:
        level = v.check_number("level", level)
    if isinstance(margin, MarginPrior):
        return margin, margin.level if level is None else level
    if not (isinstance(margin, str) and margin in _NAMES):
        raise ValueError(
            f"margin={v.shown(margin)} is not known; use one of {_NAMES} or a "
            "MarginPrior."
        )
    if margin in ("hinge", "fixed"):
        return MARGINS[margin](level=1.0), level
    return MARGINS[margin](rate=C, level=1.0), level


def at_level(margin, level):
    """The prior moved to the level that holds, as errors are to show it."""
    return margin if margin.name == "custom" else margin.with_level(level)


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


class GenerativeClassifier(ClassifierMixin, BaseEstimator):
    """Base class; a subclass defines `_validated`, `_prior` and its parameters."""

    def fit(self, X, y, sample_weight=None):
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
            that the prior cannot do with, or margin="fixed" beyond reach.
        """
        margin, level = generative_margin(self.margin, self.C, self.level)
        if not (v.is_real(self.percentile) and 0 <= self.percentile <= 100):
            raise ValueError(
                f"percentile={v.shown(self.percentile)} must be between 0 and 100."
            )
        v.check_nonnegative("tempering", self.tempering)
        v.check_choice("bias", self.bias, ("kkt", "train_error"))
        tol = v.check_positive("tol", self.tol)
        max_iter = v.check_count("max_iter", self.max_iter)
        X, y = self._validated(X, y)
        self.classes_, keep, codes, weight, _ = class_rows(
            type(self).__name__, y, sample_weight, None
        )
        m = len(self.classes_)
        if m > 2 and self.bias == "train_error":
            raise ValueError(
                f"bias='train_error' is for two classes, and y has {m}; use bias='kkt'."
            )
        X = self._learn_encoding(X if len(keep) == len(X) else X[keep])
        blocks = self._class_blocks(X, codes, weight)
        rows = MulticlassRows(codes, m, margin, weight)
        self.level_ = self._level(level, blocks, rows)
        margin = at_level(margin, self.level_)
        result = solve_blocks(
            blocks,
            class_maps(rows),
            margin,
            bias="flat",
            incidence=rows.incidence(),
            sample_weight=rows.rows.weight,
            level=np.full(len(rows.example), self.level_),
            tol=tol,
            max_iter=max_iter,
            callback=progress_of(self),
        )
        self._store(result, blocks, rows, keep, codes, weight)
        blind = level is not None and self._prior_saw_no_row()
        self.loo_bound_ = self._bound(result, rows) if blind else np.nan
        if not result.converged:
            warn_not_converged(type(self).__name__, result, tol, max_iter)
        elif not result.lam.any():
            warnings.warn(
                f"{type(self).__name__}: every margin is above the level "
                f"{self.level_:.3g} before training, so the classes are their Bayes "
                "posteriors; raise level or percentile to train them discriminatively.",
                UserWarning,
                stacklevel=2,
            )
        return self

    def _learn_encoding(self, X):
        """Training rows as the blocks want them."""
        return X

    def _encode(self, X):
        """New rows as the blocks want them."""
        return X

    def _class_blocks(self, X, codes, weight, prior=None):
        """One block a class over all rows; the class's own rows make its prior."""
        prior = self._prior(X, weight) if prior is None else prior
        return [
            self._class_block(prior, X, k, codes == k, weight)
            for k in range(len(self.classes_))
        ]

    def _class_block(self, prior, X, k, own, weight):
        try:
            return prior.block(X, self.tempering * weight * own)
        except ValueError as error:
            raise ValueError(
                f"class {self.classes_[k].item()!r} with {int(own.sum())} rows cannot "
                f"do with this prior: {error}"
            ) from None

    def _level(self, level, blocks, rows):
        """The level given, or a percentile of the margins of the Bayes posteriors."""
        if level is not None:
            return float(level)
        n = rows.n
        scores = np.column_stack([b.mean(np.zeros(n)) for b in blocks])
        margins = rows.margins(scores)
        if rows.m == 2:
            y = np.where(rows.codes == 1, 1.0, -1.0)
            margins = margins + y * least_errors_bias(y * margins, y, rows.weight)
        return float(weighted_percentile(margins, rows.rows.weight, self.percentile))

    def _store(self, result, blocks, rows, keep, codes, weight):
        m = rows.m
        beta = rows.beta(result.lam)
        self.posteriors_ = [
            block.posterior(np.ascontiguousarray(beta[:, k]))
            for k, block in enumerate(blocks)
        ]
        b = self._class_biases(result, m)
        if self.bias == "train_error":
            scores = [
                block.mean(np.ascontiguousarray(beta[:, k]))
                for k, block in enumerate(blocks)
            ]
            y = np.where(codes == 1, 1.0, -1.0)
            b = np.array([0.0, least_errors_bias(scores[1] - scores[0], y, weight)])
        self.intercept_ = b[1:] - b[0] if m == 2 else b - b.mean()
        inside = np.flatnonzero(result.lam.reshape(rows.n, -1).any(axis=1))
        self.support_ = keep[inside]
        self.dual_coef_ = beta[inside].T if m > 2 else beta[inside].T[1:]
        store_certificate(self, result)

    def _prior_saw_no_row(self):
        """Whether the classes start from a prior that the rows did not shape."""
        return self.tempering == 0

    def _class_biases(self, result, m):
        """Bias of every class (m,); a flat prior leaves out the last one."""
        return np.append(result.bias, 0.0)

    def _score_rows(self, posterior, X):
        """What a class says of rows, (n,)."""
        return posterior.expected_log_prob(X)

    def _bound(self, result, rows):
        """Bound of the leave-one-out error, of a prior and a level that saw no row.

        Rows without a multiplier must be on their side, and the bias the dual's own.
        """
        asks = self.level_ + float(rows.rows.slope(np.zeros(1))[0]) > 0
        if not asks or self.bias != "kkt":
            return np.nan
        lam = np.zeros((rows.n, rows.m))
        lam[rows.example, rows.wrong] = result.lam
        return leave_one_out_bound(
            replace(result, lam=lam), rows.codes, rows.rows.margin, "flat", rows.weight
        )

    def decision_function(self, X):
        """Decision values, in nats.

        Parameters
        ----------
        X : array-like (n, n_features)
            Rows to judge.

        Returns
        -------
        ndarray (n,) or (n, n_classes)
            Two classes: expected log-likelihood ratio plus bias, positive for
            ``classes_[1]``. More: one score a class, the largest wins.
        """
        check_is_fitted(self)
        X = self._encode(self._validated(X, reset=False))
        m = v.check_fitted_classes(self.classes_)
        v.check_fitted("intercept_", self.intercept_, (1,) if m == 2 else (m,))
        posteriors = self.posteriors_
        if (
            not isinstance(posteriors, list)
            or len(posteriors) != m
            or not all(isinstance(p, ConjugatePrior) for p in posteriors)
        ):
            raise ValueError(
                f"the fitted model is inconsistent: posteriors_={v.shown(posteriors)} "
                f"must hold a posterior for each of {m} classes. Fit it again."
            )
        scores = np.column_stack([self._score_rows(p, X) for p in posteriors])
        if m == 2:
            return scores[:, 1] - scores[:, 0] + self.intercept_[0]
        return scores + self.intercept_

    def predict(self, X):
        """Class labels.

        Parameters
        ----------
        X : array-like (n, n_features)
            Rows to judge.

        Returns
        -------
        ndarray (n,)
            Entries of ``classes_``.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return self.classes_[(scores > 0).astype(np.intp)]
        return self.classes_[scores.argmax(axis=1)]


def class_maps(rows):
    """A_k of every class: its row weights beta_k = A_k lam."""
    shape = (rows.n, len(rows.example))
    maps = []
    for k in range(rows.m):
        entry = (rows.right == k) * 1.0 - (rows.wrong == k)
        at = np.flatnonzero(entry)  # of one row after the other, as CSR wants them
        starts = np.searchsorted(rows.example[at], np.arange(rows.n + 1))
        maps.append(sp.csr_array((entry[at], at, starts), shape=shape))
    return maps


def weighted_percentile(values, weight, percentile):
    """Percentile of values; with integer weights that of repeated values."""
    return np.quantile(
        values, percentile / 100.0, weights=weight, method="inverted_cdf"
    )
