"""MEDFeatureSelector: a convex, discriminative spike and slab."""

from __future__ import annotations

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from maxent._support import validation as v
from maxent._support.results import (
    DualResult,
    Status,
    relative_gap,
    warn_not_converged,
)
from maxent._support.threads import single_threaded_blas
from maxent.discrimination._interior import (
    LowRankQuadratic,
    certify,
    interior_point,
)
from maxent.discrimination._machine import class_rows
from maxent.discrimination.certificate import Rows
from maxent.discrimination.margins import classification_margin

# Steps before the undamped method is given up. Problems without trouble at the bend
# take 10 to 55 (breast cancer data and random data, C from 1 to 100).
_DIRECT_STEPS = 80


class SwitchedFeatures(LowRankQuadratic):
    """R(lam) = sum_i A(W_i) + |B' lam|^2 / 2, W = Z' lam: features with switches.

    ``A(W) = log(1 - p0 + p0 exp(W^2 / 2))`` is the cumulant of one weight that is
    N(0, 1) with probability p0 and zero otherwise.

    Parameters
    ----------
    Z : ndarray (n, d)
        Signed features.
    extra : ndarray (n, r)
        Columns without a switch (a Gaussian bias); may have no columns.
    prior_inclusion : float
    """

    def __init__(self, Z, extra, prior_inclusion):
        super().__init__(np.column_stack([Z, extra]))
        self.d = Z.shape[1]
        self.log_on = np.log(prior_inclusion)
        with np.errstate(divide="ignore"):
            self.log_off = np.log1p(-prior_inclusion)  # -inf: always on
        self.log_odds = self.log_on - self.log_off

    def fields(self, lam):
        """W (d,) and the coordinates of the columns without a switch."""
        x = self.Z.T @ lam
        return x[: self.d], x[self.d :]

    def inclusion(self, W):
        """Posterior probability of each switch."""
        return expit(0.5 * W * W + self.log_odds)

    def value_and_margins(self, lam):
        """R(lam) and its gradient."""
        W, rest = self.fields(lam)
        value = np.logaddexp(self.log_off, self.log_on + 0.5 * W * W).sum()
        mean = np.concatenate([self.inclusion(W) * W, rest])
        return float(value + 0.5 * rest @ rest), self.Z @ mean

    def scale(self, lam):
        """A''(W), and one for the columns without a switch."""
        W, rest = self.fields(lam)
        p = self.inclusion(W)
        return np.concatenate([p + W * W * p * (1 - p), np.ones(len(rest))])

    def restricted(self, index, lam):
        """Newton systems over a subset of the multipliers, at lam."""
        return LowRankQuadratic(self.Z[index] * np.sqrt(self.scale(lam)))

    def expansion(self, lam, floor):
        """Quadratic that touches R at lam, and what its slope takes from q.

        Of second order where A'' >= floor. With floor = 1 it is close to an upper
        bound of R wherever switches are off: A(W) <= A(0) + W^2 / 2.
        """
        x, curvature = self.Z.T @ lam, np.maximum(self.scale(lam), floor)
        mean = np.concatenate([self.inclusion(x[: self.d]) * x[: self.d], x[self.d :]])
        return (
            LowRankQuadratic(self.Z * np.sqrt(curvature)),
            self.Z @ (mean - curvature * x),
        )


def _across_the_bend(rows, R, E, start, *, tol, max_iter):
    """Solve by Newton steps on R alone, each cut back by the dual objective.

    Near W^2 = 2 log(1 / p0) a switch turns on and A'' rises from p0 to about
    log(1 / p0) / 2 and falls to 1, so an expansion of R holds on one side of that
    bend only and the undamped interior point may jump to and fro across it. Here
    the potentials stay exact and R is replaced by its expansion. The maximiser of
    that model is a direction of ascent of the concave J, so a line search on J
    converges from any start, and takes full steps in the end.

    Parameters
    ----------
    start : DualResult
        Where the undamped method stopped; its multipliers are feasible.
    max_iter : int
        Bound on all interior-point steps, those of `start` included.
    """
    lam, n_iter, history = start.lam, start.n_iter, list(start.history)
    best = (lam, *certify(rows, R, lam, E, start.bias)[:3])
    J, status, floor = best[1], Status.STALLED, 1.0
    while relative_gap(best[2], best[1]) > min(tol, 1e-12):
        if n_iter >= max_iter:
            status = Status.MAX_ITER
            break
        quadratic, taken = R.expansion(lam, floor)
        model = Rows(rows.margin, rows.q - taken, rows.rate, rows.weight)
        few = min(max_iter - n_iter, _DIRECT_STEPS)
        target = interior_point(
            model, quadratic, E, tol=1e-2 * tol, max_iter=few, init=lam
        )
        n_iter += target.n_iter
        here = model.potential(lam) - quadratic.value_and_margins(lam)[0]
        expected = target.objective - here
        new, a = _line_search(rows, R, lam, target.lam - lam, J, expected)
        # near the optimum J no longer tells points apart; the gap, linear in their
        # distance where J is quadratic, still does
        if a == 0.0:
            new = target.lam
        found = (new, *certify(rows, R, new, E, target.bias)[:3])
        if a == 0.0 and not found[2] < 0.5 * best[2]:
            if floor == 0.0:
                break
            floor = 0.0
            continue
        floor = 0.1 * floor if a == 1.0 else min(10.0 * floor, 1.0)
        lam, J = found[:2]
        history.append((n_iter, J, found[2]))
        if found[2] < best[2]:
            best = found
    lam, J, gap, b = best
    if relative_gap(gap, J) <= tol:
        status = Status.CONVERGED
    return DualResult(
        lam, b, J, gap, n_iter, status, solver="interior", history=history
    )


def _line_search(rows, R, lam, step, J, expected):
    """lam + a step and a, of a = 1, 1/2, 1/4, ...: the last before J falls again.

    J is concave along the step, and the first a that gains 1e-4 a `expected` (the
    gain of the model at a = 1) ends in a smaller one only if that is better still.
    a = 0 if none gains anything that doubles can tell.
    """
    found, value, a = (lam, 0.0), J, 1.0
    while expected > 0 and a > 1e-12:
        new = lam + a * step
        now = rows.potential(new) - R.value_and_margins(new)[0]
        if now > value and now >= J + 1e-4 * a * expected:
            found, value = (new, a), now
        elif found[1] > 0:
            break
        a *= 0.5
    return found


def solve_selection(X, y, margin, prior_inclusion, bias, weight, *, tol, max_iter):
    """Solve the dual of feature selection by interior point.

    Parameters
    ----------
    X : ndarray (n, d)
    y : ndarray (n,) of -1 and +1
    margin : MarginPrior
    prior_inclusion : float in (0, 1)
    bias : "flat", float or None
    weight : ndarray (n,)

    Returns
    -------
    result : DualResult
        `coef` holds E[s_i theta_i] (d,).
    inclusion : ndarray (d,)
    """
    n = len(y)
    rows = Rows(margin, np.full(n, margin.level), np.full(n, margin.rate), weight)
    gaussian = bias not in ("flat", None)
    extra = np.sqrt(bias) * y[:, None] if gaussian else np.empty((n, 0))
    R = SwitchedFeatures(y[:, None] * X, extra, prior_inclusion)
    E = y[:, None] if bias == "flat" else None
    with single_threaded_blas():
        few = min(max_iter, _DIRECT_STEPS)
        result = interior_point(rows, R, E, tol=tol, max_iter=few)
        stuck = not result.converged and result.status != Status.UNBOUNDED
        if stuck and result.n_iter < max_iter:
            result = _across_the_bend(rows, R, E, result, tol=tol, max_iter=max_iter)
    W, _ = R.fields(result.lam)
    inclusion = R.inclusion(W)
    result.coef = inclusion * W
    if bias == "flat":
        result.bias = float(result.bias[0])
    else:
        result.bias = float(bias * (y @ result.lam)) if gaussian else 0.0
    return result, inclusion


class MEDFeatureSelector(SelectorMixin, ClassifierMixin, BaseEstimator):
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
    threshold : float, default=0.5
        Features whose inclusion probability is larger are selected.
    class_weight : dict or "balanced", optional
        Multiplies the weights of the rows of a class.
    tol : float, default=1e-6
        Relative duality gap asked for.
    max_iter : int, default=500
        Bound on the steps of the interior point.
    verbose : bool or int, default=False
        Print steps, objective and gap.

    Attributes
    ----------
    classes_ : ndarray (2,)
        The labels.
    coef_ : ndarray (1, n_features)
        Expected weights E[s_i theta_i]; small but never exactly zero.
    inclusion_proba_ : ndarray (n_features,)
        Posterior probability of each switch.
    intercept_ : ndarray (1,)
        The bias, with plus sign.
    support_ : ndarray of int
        Rows with a nonzero multiplier. (`get_support()` is about features.)
    dual_coef_ : ndarray (1, n_support)
        Signed multipliers, label included.
    duality_gap_, objective_, n_iter_, converged_, loo_bound_, n_features_in_
        As for :class:`MEDClassifier`.

    See Also
    --------
    MEDClassifier : The same without switches, with kernels.

    Notes
    -----
    Not invariant under scaling or rotation of the features: standardise them.
    Dense work: O(n d min(n, d)) a step, tens of steps.

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
    >>> MEDFeatureSelector(C=10.0).fit(X, y).get_support(indices=True)
    array([0, 3])
    """

    def __init__(
        self,
        prior_inclusion=0.1,
        C=1.0,
        *,
        margin="exponential",
        sharpness=10.0,
        bias="flat",
        threshold=0.5,
        class_weight=None,
        tol=1e-6,
        max_iter=500,
        verbose=False,
    ):
        self.prior_inclusion = prior_inclusion
        self.C = C
        self.margin = margin
        self.sharpness = sharpness
        self.bias = bias
        self.threshold = threshold
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags

    def fit(self, X, y, sample_weight=None):
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
        """
        v.check_positive("C", self.C)
        v.check_number("sharpness", self.sharpness)
        v.check_number("threshold", self.threshold)
        tol = v.check_positive("tol", self.tol)
        max_iter = v.check_count("max_iter", self.max_iter)
        bias = v.check_bias(self.bias)
        p0 = v.check_positive("prior_inclusion", self.prior_inclusion)
        if p0 > 1:
            raise ValueError(
                f"prior_inclusion={p0!r} is a probability and must be in (0, 1]."
            )
        margin = classification_margin(self.margin, self.sharpness)
        if margin.name == "fixed":
            raise ValueError(
                "margin='fixed' is not available with switches: the cost of a scaled "
                "machine is not quadratic; use margin='exponential' with a large C."
            )
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        self.classes_, keep, codes, _, weight = class_rows(
            "MEDFeatureSelector", y, sample_weight, self.class_weight
        )
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"multiclass with {len(self.classes_)} classes; wrap the estimator in "
                "sklearn.multiclass.OneVsRestClassifier."
            )
        data = X if len(keep) == X.shape[0] else X[keep]
        if hasattr(data, "toarray"):
            data = data.toarray()
        signs = np.where(codes == 1, 1.0, -1.0)
        result, self.inclusion_proba_ = solve_selection(
            data,
            signs,
            margin,
            p0,
            bias,
            weight * margin.unit_weight(self.C),
            tol=tol,
            max_iter=max_iter,
        )
        inside = np.flatnonzero(result.lam)
        self.support_ = keep[inside]
        self.dual_coef_ = (signs * result.lam)[None, inside]
        self.coef_ = result.coef[None, :]
        self.intercept_ = np.array([result.bias])
        self.duality_gap_ = float(result.gap)
        self.objective_ = float(result.objective)
        self.n_iter_ = int(result.n_iter)
        self.converged_ = result.converged
        self.objective_history_ = np.array([h[1] for h in result.history])
        self.loo_bound_ = (
            len(inside) / len(keep) if np.isfinite(margin.prior_mean) else np.nan
        )
        if self.verbose:
            print(
                f"MEDFeatureSelector: {result.n_iter} steps, "
                f"J={result.objective:.6g}, gap={result.gap:.2e}"
            )
        if not result.converged:
            warn_not_converged("MEDFeatureSelector", result, tol, max_iter)
        return self

    def _get_support_mask(self):
        check_is_fitted(self)
        threshold = v.check_number("threshold", self.threshold)
        inclusion = self.inclusion_proba_
        v.check_fitted("inclusion_proba_", inclusion, (self.n_features_in_,))
        return inclusion > threshold

    def decision_function(self, X):
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
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        v.check_fitted_classes(self.classes_)
        v.check_fitted("coef_", self.coef_, (1, self.n_features_in_), once=True)
        v.check_fitted("intercept_", self.intercept_, (1,))
        return np.asarray(X @ self.coef_[0]) + self.intercept_[0]

    def predict(self, X):
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
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(np.intp)]
