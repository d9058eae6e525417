"""MEDFeatureSelector: a convex, discriminative spike and slab."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from maxent._support import validation as v
from maxent._support.fitted import check_fitted_classes, fresh_state
from maxent._support.progress import progress_of, with_progress
from maxent._support.remedies import ONE_AGAINST_REST
from maxent._support.results import warn_not_converged
from maxent._support.threads import with_own_threads
from maxent._support.typing import (
    ArrayLike,
    Bias,
    ClassWeight,
    FloatArray,
    MarginName,
    MatrixLike,
    NDArray,
)
from maxent.discrimination._class_rows import class_rows, labels_of, leave_one_out_bound
from maxent.discrimination._far_rows import near_zero
from maxent.discrimination._margin_parameters import classification_margin
from maxent.discrimination._probabilities import ProbabilitiesMixin
from maxent.discrimination._switched_features import SwitchedFeaturesMixin
from maxent.discrimination.duals._selection_dual import solve_selection
from maxent.discrimination.margins.base import MarginPrior

# Of nine rows to one, three draws of ten features chose none or half of the right ones
_UNEQUAL = 4.0


class MEDFeatureSelector(
    SwitchedFeaturesMixin, ProbabilitiesMixin, ClassifierMixin, BaseEstimator
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
    MEDRegressionSelector : The same for targets that are numbers.
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
            result, inclusion = found
            model._store(result, inclusion, signs * result.lam, keep, origin)

        result, _ = found = solve_selection(
            data, signs, weight=weight, callback=progress_of(self, store), **options
        )
        store(self, found)
        self.loo_bound_ = leave_one_out_bound(result, codes, margin, bias, weight)
        if not result.converged:
            name, max_iter = "MEDFeatureSelector", options["max_iter"]
            warn_not_converged(name, result, tol, max_iter, data)
        else:
            self._warn_unless_selected(np.bincount(codes, weight))
        return self

    def _checked_options(self):
        """Options of the solver, by the parameters."""
        v.check_number("sharpness", self.sharpness)
        return self._solver_options(classification_margin(self.margin, self.sharpness))

    def _warn_unless_selected(self, class_costs):
        """Warn where no feature passes, of classes of unequal costs first."""
        if self._get_support_mask().any():
            return
        first = ""
        if _UNEQUAL * class_costs.min() < class_costs.max():
            rare = v.shown(self.classes_[class_costs.argmin()])
            first = f"Class {rare} is rare: set class_weight='balanced'. Otherwise l"
        self._warn_of_no_feature(first)

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
        check_fitted_classes(self.classes_)
        return self._linear_scores(X)

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
