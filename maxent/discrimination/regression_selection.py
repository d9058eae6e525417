"""MEDRegressionSelector: a convex spike and slab for targets that are numbers."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from maxent._inputs.estimator_input import check_targets
from maxent._support import validation as v
from maxent._support.fitted import fresh_state
from maxent._support.progress import progress_of, with_progress
from maxent._support.results import warn_not_converged
from maxent._support.threads import with_own_threads
from maxent._support.typing import ArrayLike, Bias, FloatArray, MarginName, MatrixLike
from maxent.discrimination._far_rows import at_zero, near_zero
from maxent.discrimination._margin_parameters import regression_margin
from maxent.discrimination._switched_features import SwitchedFeaturesMixin
from maxent.discrimination.duals._selection_dual import solve_selection
from maxent.discrimination.margins.base import MarginPrior

_ROUNDING = 1e-13  # share of the targets' size below which they are all the same


class MEDRegressionSelector(SwitchedFeaturesMixin, RegressorMixin, BaseEstimator):
    """Linear regression with a random switch on every feature.

    Weights are Gaussian and each is switched on with a prior probability; the
    distribution closest to that prior whose mean stays within a tolerance tube gives
    every feature a probability of being in use. The problem is convex, with a
    certificate. Targets are counted from their middle in standard deviations, so that
    the fit is the same in any unit.

    Parameters
    ----------
    prior_inclusion : float, default=0.1
        Prior probability of each switch, in (0, 1]. 1 is the plain machine; small
        values penalise like the lasso near zero and like ridge far out.
    C : float, default=1.0
        Upper bound of every multiplier and slope of the loss far from the target
        (for the Gaussian prior the factor of ``r**2 / 2``).
    epsilon : float, default=0.1
        Half width of the tolerance tube, >= 0, in standard deviations of the targets.
    margin : str or MarginPrior, default="exponential"
        As for :class:`MEDRegressor`.
    sharpness : float, default=10.0
        How closely the smooth loss follows the tube's corners, > 0, per standard
        deviation of the targets. Not used by "gaussian" and "hinge".
    bias : {"flat", None} or float, default="flat"
        Prior of the bias: flat, none, or Gaussian with this variance, in units of the
        targets' variance.
    threshold : str or float, default="2*prior"
        "2*prior" selects the features whose odds of being in use are more than twice
        those of the prior; other factors likewise. A number selects the features whose
        inclusion probability is larger; ``-np.inf`` leaves all to `max_features`.
    max_features : int, optional
        Most features to select, the most probable ones of those above `threshold`.
    tol : float, default=1e-6
        Relative duality gap asked for.
    max_iter : int, default=500
        Bound on the steps of the interior point.
    verbose : bool or int, default=False
        Print progress: time, solver, iteration, objective and how far from `tol`.

    Attributes
    ----------
    coef_ : ndarray (1, n_features)
        Expected weights E[s_i theta_i], in target units; small but never exactly zero.
    inclusion_proba_ : ndarray (n_features,)
        Posterior probability of each switch.
    threshold_ : float
        Inclusion probability that a selected feature exceeds.
    intercept_ : ndarray (1,)
        The bias, in target units, which enters with a plus sign.
    target_scale_ : float
        Standard deviation of the targets, one if they are all the same.
    support_ : ndarray of int
        Rows with a nonzero multiplier. (`get_support()` is about features.)
    dual_coef_ : ndarray (1, n_support)
        Signed multipliers of the targets in standard deviations.
    duality_gap_, objective_, objective_history_, n_iter_, converged_, n_features_in_
        As for :class:`MEDClassifier`.

    See Also
    --------
    MEDFeatureSelector : The same for two classes.
    MEDRegressor : The same without switches, with kernels.

    Notes
    -----
    With targets z in standard deviations, signed multipliers a and W = X'a, the dual::

        sum_t [z_t a_t + phi(|a_t|)] - sum_i log(1 - p0 + p0 exp(W_i^2 / 2))

    is at its largest; the switch of feature i is then on with the odds
    ``p0 / (1 - p0) * exp(W_i^2 / 2)``. Not invariant under scaling or rotation of the
    features: standardise them. Dense work: O(n d min(n, d)) per step, tens of steps.

    References
    ----------
    Jebara & Jaakkola (2000), Feature selection and dualities in maximum entropy
    discrimination, sections on regression and on feature selection.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent import MEDRegressionSelector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 6))
    >>> y = 3.0 * X[:, 0] - 2.0 * X[:, 3] + rng.normal(size=100)
    >>> MEDRegressionSelector().fit(X, y).get_support(indices=True)
    array([0, 3])
    """

    target_scale_: float

    def __init__(
        self,
        prior_inclusion: float = 0.1,
        C: float = 1.0,
        epsilon: float = 0.1,
        *,
        margin: MarginName
        | Literal["uniform_exponential"]
        | MarginPrior = "exponential",
        sharpness: float = 10.0,
        bias: Bias = "flat",
        threshold: str | float = "2*prior",
        max_features: int | None = None,
        tol: float = 1e-6,
        max_iter: int = 500,
        verbose: int = False,
    ) -> None:
        self.prior_inclusion = prior_inclusion
        self.C = C
        self.epsilon = epsilon
        self.margin = margin
        self.sharpness = sharpness
        self.bias = bias
        self.threshold = threshold
        self.max_features = max_features
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

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
            Targets, finite, in any unit.
        sample_weight : array-like (n_samples,), optional
            Weight w stands for w copies of the row; 0 drops it.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            For a parameter outside its domain, NaN or infinity.

        Warns
        -----
        ConvergenceWarning
            If the tolerance is not met; the attributes say how far the fit came.
        UserWarning
            If no feature is selected.
        """
        margin = regression_margin(self.margin, self.sharpness, self.epsilon)
        options = self._solver_options(margin)
        X, y = self._validated(X, y, y_numeric=True)
        y = check_targets(y)
        v.check_range("y", y, at=True)
        weight = v.check_weights(sample_weight, len(y))
        weight = np.ones(len(y)) if weight is None else weight
        keep = np.flatnonzero(weight > 0)
        weight = weight[keep]
        data, origin = near_zero(self._rows_to_fit(X, keep), options["bias"])
        centre, unit = _centre_and_unit(y[keep], weight)
        if options["bias"] != "flat":
            centre = 0.0
        self.target_scale_ = unit

        # the two sides of each row's tube lie side by side
        signs = np.tile([1.0, -1.0], len(keep))
        levels = margin.level + signs * np.repeat((y[keep] - centre) / unit, 2)

        def store(model, found):
            result, inclusion = found
            a = (signs * result.lam).reshape(-1, 2).sum(axis=1)
            model._store(result, inclusion, a, keep, None)
            model.coef_ = model.coef_ * unit
            b = np.array([result.bias * unit + centre])
            model.intercept_ = at_zero(b, model.coef_, origin)

        result, _ = found = solve_selection(
            np.repeat(data, 2, axis=0),
            signs,
            weight=np.repeat(weight * margin.unit_weight(self.C), 2),
            q=levels,
            callback=progress_of(self, store),
            **options,
        )
        store(self, found)
        if not result.converged:
            name, max_iter = "MEDRegressionSelector", options["max_iter"]
            warn_not_converged(name, result, options["tol"], max_iter, data)
        elif not self._get_support_mask().any():
            self._warn_of_no_feature()
        return self

    def predict(self, X: MatrixLike) -> FloatArray:
        """Predicted targets.

        Parameters
        ----------
        X : array-like or CSR (n, n_features)
            Scaled as the training rows were.

        Returns
        -------
        ndarray (n,)
            In target units.
        """
        check_is_fitted(self)
        return self._linear_scores(X)


def _centre_and_unit(y, weight):
    """Weighted mean and standard deviation of targets; one if they are all the same."""
    share = weight / weight.sum()
    first = y[0]
    size = float(np.abs(y - first).max())  # the squares of the rest are numbers
    if not size > _ROUNDING * np.abs(y).max():
        return float(first), 1.0
    shift = (y - first) / size
    mean = float(share @ shift)
    spread = float(np.sqrt(share @ (shift - mean) ** 2))
    return float(first + size * mean), size * spread
