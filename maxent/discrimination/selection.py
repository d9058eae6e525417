"""MEDFeatureSelector: a convex, discriminative spike and slab."""

from __future__ import annotations

import re
import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from maxent._support import validation as v
from maxent._support.estimator_input import validated
from maxent._support.fitted import (
    CertifiedState,
    check_fitted,
    check_fitted_classes,
    check_scores,
    fresh_state,
)
from maxent._support.progress import progress_of, with_progress
from maxent._support.remedies import ONE_AGAINST_REST, SCALE_FEATURES
from maxent._support.results import store_certificate, warn_not_converged
from maxent._support.threads import with_own_threads
from maxent._support.typing import (
    ArrayLike,
    Bias,
    ClassWeight,
    FloatArray,
    IntArray,
    MarginName,
    MatrixLike,
    NDArray,
)
from maxent._support.validation import names_of_columns, user_stacklevel
from maxent.discrimination._class_rows import class_rows, labels_of, leave_one_out_bound
from maxent.discrimination._far_rows import at_zero, near_zero
from maxent.discrimination._margin_parameters import classification_margin
from maxent.discrimination._probabilities import ProbabilitiesMixin
from maxent.discrimination.duals._selection_dual import solve_selection
from maxent.discrimination.grams.kernel_parameters import LARGEST_FEATURE
from maxent.discrimination.margins.base import MarginPrior

# Of nine rows to one, three draws of ten features chose none or half of the right ones
_UNEQUAL = 4.0
_FACTOR = re.compile(r"(\d+\.?\d*|\.\d+)\*prior")  # of the prior odds


class MEDFeatureSelector(
    CertifiedState, SelectorMixin, ProbabilitiesMixin, ClassifierMixin, BaseEstimator
):
    """Linear classification with a random switch on every feature.

    Weights are Gaussian and each is switched on with a prior probability; the
    distribution closest to that prior that meets the margins gives every feature a
    probability of being in use. The problem is convex: a discriminative spike and
    slab without sampling.

    Parameters
    ----------
    prior_inclusion : float, default=0.1
        Prior probability of each switch, in (0, 1]. 1 is the plain machine; small
        values penalise like the lasso near zero and like ridge far out.
    C : float, default=1.0
        Upper bound of every multiplier, as in :class:`MEDClassifier`.
    margin : str or MarginPrior, default="exponential"
        As for :class:`MEDClassifier`, but not "fixed".
    sharpness : float, default=10.0
        How closely the smooth loss follows the hinge, > 1.
    bias : {"flat", None} or float, default="flat"
        Prior of the bias: flat, none, or Gaussian with this variance.
    threshold : str or float, default="2*prior"
        "2*prior" selects the features whose odds of being in use are more than twice
        those of the prior; other factors likewise. A number selects the features whose
        inclusion probability is larger; ``-np.inf`` leaves all to `max_features`.
    max_features : int, optional
        Most features to select, the most probable ones of those above `threshold`.
    class_weight : dict or "balanced", optional
        Multiplies the weights of the rows of a class.
    tol : float, default=1e-6
        Relative duality gap asked for.
    max_iter : int, default=500
        Bound on the steps of the interior point.
    verbose : bool or int, default=False
        Print progress: time, solver, iteration, objective and how far from `tol`.

    Attributes
    ----------
    classes_ : ndarray (2,)
        The labels.
    coef_ : ndarray (1, n_features)
        Expected weights E[s_i theta_i]; small but never exactly zero.
    inclusion_proba_ : ndarray (n_features,)
        Posterior probability of each switch.
    threshold_ : float
        Inclusion probability that a selected feature exceeds.
    intercept_ : ndarray (1,)
        The bias, which enters with a plus sign.
    support_ : ndarray of int
        Rows with a nonzero multiplier. (`get_support()` is about features.)
    dual_coef_ : ndarray (1, n_support)
        Signed multipliers, label included.
    duality_gap_, objective_, objective_history_, n_iter_, converged_, loo_bound_, \
n_features_in_
        As for :class:`MEDClassifier`.

    See Also
    --------
    MEDClassifier : The same without switches, with kernels.

    Notes
    -----
    Not invariant under scaling or rotation of the features: standardise them.
    Dense work: O(n d min(n, d)) per step, tens of steps.

    References
    ----------
    Jebara & Jaakkola (2000), Feature selection and dualities in maximum entropy
    discrimination.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent import MEDFeatureSelector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 6))
    >>> y = X[:, 0] + X[:, 3] > 0
    >>> MEDFeatureSelector(max_features=2).fit(X, y).get_support(indices=True)
    array([0, 3])
    """

    classes_: NDArray[Any]
    coef_: FloatArray
    inclusion_proba_: FloatArray
    intercept_: FloatArray
    support_: IntArray
    dual_coef_: FloatArray
    loo_bound_: float

    def __init__(
        self,
        prior_inclusion: float = 0.1,
        C: float = 1.0,
        *,
        margin: MarginName | MarginPrior = "exponential",
        sharpness: float = 10.0,
        bias: Bias = "flat",
        threshold: str | float = "2*prior",
        max_features: int | None = None,
        class_weight: ClassWeight = None,
        tol: float = 1e-6,
        max_iter: int = 500,
        verbose: int = False,
    ) -> None:
        self.prior_inclusion = prior_inclusion
        self.C = C
        self.margin = margin
        self.sharpness = sharpness
        self.bias = bias
        self.threshold = threshold
        self.max_features = max_features
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags

    @fresh_state
    @with_progress
    @with_own_threads
    def fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit weights and switches.

        Parameters
        ----------
        X : array-like or CSR (n_samples, n_features)
            Standardise it. Sparse input is made dense.
        y : array-like (n_samples,)
            Labels of two classes.
        sample_weight : array-like (n_samples,), optional
            Weight w stands for w copies of the row; 0 drops it.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            For a parameter outside its domain, NaN or infinity, or any number of
            classes but two.

        Warns
        -----
        ConvergenceWarning
            If the tolerance is not met; the attributes say how far the fit came.
        """
        options = self._checked_options()
        margin, bias, tol = options["margin"], options["bias"], options["tol"]
        X, y = self._validated(X, y)
        self.classes_, keep, codes, _, weight = class_rows(
            "MEDFeatureSelector", y, sample_weight, self.class_weight
        )
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"multiclass with {len(self.classes_)} classes; {ONE_AGAINST_REST}."
            )
        data, origin = near_zero(self._rows_to_fit(X, keep), bias)
        signs = np.where(codes == 1, 1.0, -1.0)
        weight = weight * margin.unit_weight(self.C)

        def store(model, found):
            model._store(*found, signs, keep, origin)

        result, _ = found = solve_selection(
            data, signs, weight=weight, callback=progress_of(self, store), **options
        )
        store(self, found)
        self.loo_bound_ = leave_one_out_bound(result, codes, margin, bias, weight)
        if not result.converged:
            name, max_iter = "MEDFeatureSelector", options["max_iter"]
            warn_not_converged(name, result, tol, max_iter, data)
        elif not self._get_support_mask().any():
            self._warn_of_no_feature(np.bincount(codes, weight))
        return self

    def _checked_options(self):
        """Options of the solver, by the parameters."""
        v.check_positive("C", self.C)
        v.check_number("sharpness", self.sharpness)
        self._check_selection()
        tol, max_iter = v.check_stop(self.tol, self.max_iter)
        bias = v.check_bias(self.bias)
        p0 = self._checked_prior()
        margin = classification_margin(self.margin, self.sharpness)
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

    def _validated(self, X, *y):
        """Checked X, or X and y."""
        with np.errstate(over="ignore", invalid="ignore"):  # sums of huge entries
            found = validated(self, X, *y, accept_sparse="csr", dtype=np.float64)
        rows, columns = found[0] if y else found, names_of_columns(self)
        v.check_range("X", rows, LARGEST_FEATURE, at=True, columns=columns)
        return found

    def _rows_to_fit(self, X, keep):
        """Dense rows of positive weight."""
        data = X if len(keep) == X.shape[0] else X[keep]
        return data.toarray() if hasattr(data, "toarray") else data

    def _store(self, result, inclusion, signs, keep, origin):
        inside = np.flatnonzero(result.lam)
        self.inclusion_proba_ = inclusion
        self.support_ = keep[inside]
        self.dual_coef_ = (signs * result.lam)[None, inside]
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

    def _warn_of_no_feature(self, class_costs):
        """Warn with what helps, where classes of these costs are unequal that first."""
        most = float(self.inclusion_proba_.max())
        balance = ""
        if _UNEQUAL * class_costs.min() < class_costs.max():
            rare = v.shown(self.classes_[class_costs.argmin()])
            balance = f"Class {rare} is rare: set class_weight='balanced'. Otherwise l"
        warnings.warn(
            f"MEDFeatureSelector: no feature passes threshold={self.threshold!r}, an "
            f"inclusion probability above {self.threshold_:.3g}; the largest is "
            f"{most:.3g}, with prior_inclusion={self.prior_inclusion!r}. "
            f"{balance or 'L'}ower the threshold, raise C, set max_features with "
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

    def decision_function(self, X: MatrixLike) -> FloatArray:
        """Decision values, positive for ``classes_[1]``.

        Parameters
        ----------
        X : array-like or CSR (n, n_features)
            Scaled as the training rows were.

        Returns
        -------
        ndarray (n,)
            In margin units.
        """
        check_is_fitted(self)
        X = validated(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        check_fitted_classes(self.classes_)
        check_fitted("coef_", self.coef_, (1, self.n_features_in_), once=True)
        check_fitted("intercept_", self.intercept_, (1,))
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.asarray(X @ self.coef_[0]) + self.intercept_[0]
        return check_scores(scores, X)

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Class labels.

        Parameters
        ----------
        X : array-like or CSR (n, n_features)
            Scaled as the training rows were.

        Returns
        -------
        ndarray (n,)
            Entries of ``classes_``.
        """
        return labels_of(self.decision_function(X), self.classes_)
