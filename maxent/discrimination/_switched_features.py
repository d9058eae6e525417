"""What estimators whose features have random switches share."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from maxent._inputs.estimator_input import validated
from maxent._support import validation as v
from maxent._support.fitted import CertifiedState, check_fitted, check_scores
from maxent._support.remedies import SCALE_FEATURES
from maxent._support.results import store_certificate
from maxent._support.typing import ArrayLike, FloatArray, IntArray, NDArray
from maxent._support.validation import names_of_columns, user_stacklevel
from maxent.discrimination._far_rows import at_zero
from maxent.discrimination.grams.kernel_parameters import LARGEST_FEATURE

_FACTOR = re.compile(r"(\d+\.?\d*|\.\d+)\*prior")  # of the prior odds


class SwitchedFeaturesMixin(CertifiedState, SelectorMixin):
    """Checks, selection and scores of a linear machine with switches.

    The estimator has the parameters `prior_inclusion`, `threshold`, `max_features`,
    `tol`, `max_iter`, `bias`, `margin`.
    """

    coef_: FloatArray
    inclusion_proba_: FloatArray
    intercept_: FloatArray
    support_: IntArray
    dual_coef_: FloatArray

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _solver_options(self, margin):
        """Options of the solver, by the parameters."""
        v.check_positive("C", self.C)
        self._check_selection()
        tol, max_iter = v.check_stop(self.tol, self.max_iter)
        bias = v.check_bias(self.bias)
        p0 = self._checked_prior()
        if margin.unit_potential.hard:
            raise ValueError(
                f"margin={self.margin!r} is not available with switches: the cost of a "
                "scaled machine is not quadratic; use margin='exponential' with a "
                "large C."
            )
        return {
            "margin": margin,
            "prior_inclusion": p0,
            "bias": bias,
            "tol": tol,
            "max_iter": max_iter,
        }

    def _validated(self, X, *y, **kwargs):
        """Checked X, or X and y."""
        with np.errstate(over="ignore", invalid="ignore"):  # sums of huge entries
            kwargs |= {"accept_sparse": "csr", "dtype": np.float64}
            found = validated(self, X, *y, **kwargs)
        rows, columns = found[0] if y else found, names_of_columns(self)
        v.check_range("X", rows, LARGEST_FEATURE, at=True, columns=columns)
        return found

    def _rows_to_fit(self, X, keep):
        """Dense rows of positive weight."""
        data = X if len(keep) == X.shape[0] else X[keep]
        return data.toarray() if hasattr(data, "toarray") else data

    def _store(self, result, inclusion, multipliers, keep, origin):
        """Fitted attributes of a result with its signed multipliers."""
        inside = np.flatnonzero(multipliers)
        self.inclusion_proba_ = inclusion
        self.support_ = keep[inside]
        self.dual_coef_ = multipliers[None, inside]
        self.coef_ = result.coef[None, :]
        self.intercept_ = at_zero(np.array([result.bias]), self.coef_, origin)
        store_certificate(self, result)

    def _checked_prior(self):
        p0 = v.check_positive("prior_inclusion", self.prior_inclusion)
        if p0 > 1:
            raise ValueError(
                f"prior_inclusion={p0!r} is a probability and must be in (0, 1]."
            )
        return p0

    def _check_selection(self):
        """Factor of the prior odds that `threshold` names; None if it is a number."""
        if self.max_features is not None:
            v.check_count("max_features", self.max_features)
        threshold = self.threshold
        if isinstance(threshold, str):
            found = _FACTOR.fullmatch(threshold.replace(" ", ""))
            factor = float(found[1]) if found else 0.0
            if not 0 < factor < np.inf:
                raise ValueError(
                    f"threshold={v.shown(threshold)} is not known; use a number, or a "
                    "factor of the prior odds such as '2*prior'."
                )
            return factor
        if not (v.is_real(threshold) and threshold == -np.inf):
            v.check_number("threshold", threshold)
        return None

    @property
    def threshold_(self) -> float:
        """Inclusion probability that a selected feature exceeds."""
        check_is_fitted(self)
        factor = self._check_selection()
        if factor is None:
            return float(self.threshold)
        p0 = self._checked_prior()
        if p0 == 1:  # all features are in use, whatever the rows say
            return -np.inf
        return float(factor * p0 / (1.0 - p0 + factor * p0))

    def _warn_of_no_feature(self, first=""):
        """Warn with what helps, `first` the sentence that comes first."""
        most = float(self.inclusion_proba_.max())
        warnings.warn(
            f"{type(self).__name__}: no feature passes threshold={self.threshold!r}, "
            f"an inclusion probability above {self.threshold_:.3g}; the largest is "
            f"{most:.3g}, with prior_inclusion={self.prior_inclusion!r}. "
            f"{first or 'L'}ower the threshold, raise C, set max_features with "
            f"threshold=-np.inf, or {SCALE_FEATURES}.",
            UserWarning,
            stacklevel=user_stacklevel(),
        )

    def _get_support_mask(self):
        threshold = self.threshold_
        inclusion = self.inclusion_proba_
        check_fitted("inclusion_proba_", inclusion, (self.n_features_in_,))
        mask = inclusion > threshold
        if self.max_features is not None:
            best = np.argsort(-inclusion, kind="stable")[: self.max_features]
            mask[np.setdiff1d(np.arange(len(mask)), best)] = False
        return mask

    def get_feature_names_out(
        self, input_features: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Names of the selected features.

        Parameters
        ----------
        input_features : array-like of str (n_features,), optional
            Names of all features; by default those of the training frame, or x0, x1 ...

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        self._get_support_mask()  # as many probabilities as features to be named
        return super().get_feature_names_out(input_features)

    def _linear_scores(self, X):
        """Scores (n,) of rows by the expected weights."""
        X = validated(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        check_fitted("coef_", self.coef_, (1, self.n_features_in_), once=True)
        check_fitted("intercept_", self.intercept_, (1,))
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.asarray(X @ self.coef_[0]) + self.intercept_[0]
        return check_scores(scores, X)
