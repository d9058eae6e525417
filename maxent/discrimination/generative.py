"""Generative models trained to discriminate: Gaussians and Bayes nets."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from maxent._inputs.estimator_input import validated
from maxent._support import validation as v
from maxent._support.typing import (
    BiasOfClasses,
    ClassWeight,
    FloatArray,
    Likelihood,
    MarginName,
    NDArray,
    Unknown,
)
from maxent._support.validation import called, names_of_columns, user_stacklevel
from maxent.discrimination._column_models import parents_by_number
from maxent.discrimination._generative_base import (
    CategoricalClassifier,
    GenerativeClassifier,
)
from maxent.discrimination._varying_features import keep_varying, kept_features, named
from maxent.discrimination.margins.base import MarginPrior
from maxent.families._singular import FlatFeature
from maxent.families.priors.dirichlet_nets import DirichletBayesNet
from maxent.families.priors.normal_wishart import NormalInverseWishart

# Multiplications of a factor of the Hessian, above which products with it are faster:
# 450 rows of 19 classes and 35 columns take 20 to 35 s, the time of one step with the
# factor, and 150 rows 3 to 11 s instead of 18 to 34.
_FACTOR_WORK = 3e10
_FARTHEST = 1e50  # standard deviations of a class, of which dual Hessians have powers


class MEDGaussianClassifier(GenerativeClassifier):
    """Quadratic boundaries: one Gaussian per class, trained discriminatively.

    Each class has a distribution over its mean and covariance; the classifier compares
    the expected log-likelihoods. Training moves the distributions no farther from the
    Bayes posteriors than the margins require, and the problem is convex.

    Parameters
    ----------
    C : float, default=3.0
        Rate of the margin prior, > 0. It caps every multiplier, except for "gaussian",
        whose multipliers are unbounded, and "fixed", which has no rate. A multiplier of
        one counts as one row.
    margin : str or MarginPrior, default="exponential"
        "exponential", "erlang", "laplace", "gaussian", "logistic" of rate `C`,
        "hinge", "fixed" without a rate, or an object, whose own rate and level then
        hold.
    level : float, optional
        Level of the margins, in nats of log-likelihood ratio.
    percentile : float, default=25
        Without `level`, this percentile of the margins of the Bayes posteriors is the
        level, 0 to 100.
    prior : {None, "improper", "weak"} or NormalInverseWishart, default=None
        Prior of every class: "improper", which needs more than `n_features` rows of
        each class in general position; "weak", centred at the mean and the variances of
        the data, without covariances; or an object. None is "improper" where possible,
        and otherwise "weak" with a warning.
    tempering : float, default=1.0
        Weight, >= 0, with which a class's own rows enter its prior. 1 starts from the
        Bayes posterior; 0 needs a proper prior.
    bias : {"flat", "train_error", None}, float or array-like (n_classes,), \
default="flat"
        "flat": the bias has a flat prior, and is the Lagrange multiplier of the
        constraint that the weights of each class add up to zero. None: no bias. A
        number: a Gaussian prior, of this variance of the difference of two classes'
        biases. Pseudo-counts > 0 of the classes: biases are the logarithms of their
        shares, which have a Dirichlet prior; of two classes the log-odds of a Beta
        prior. "train_error": flat, and then the bias with the fewest training errors
        (two classes only). "kkt" is the older name of "flat".
    class_weight : dict or "balanced", optional
        Multiplies the costs of the margins of a class's rows, as in
        :class:`MEDClassifier`; the models of the classes and the level do not see it.
    likelihood : {"expected", "predictive"}, default="expected"
        Decide by the expected log-likelihood, for which the margins are defined, or by
        Bayes' rule with the predictive densities of the classes, that is, their
        expected likelihoods, and the shares of the classes in the training rows times
        their class weights: then there are probabilities, for every margin prior. It
        belongs to the fit, because `intercept_` depends on it; the posteriors do not.
    tol : float, default=1e-8
        Relative duality gap asked for.
    max_iter : int, default=200
        Bound on the steps of the interior point.
    verbose : bool or int, default=False
        Print progress: time, solver, iteration, objective and how far from `tol`.

    Attributes
    ----------
    classes_ : ndarray (n_classes,)
        The labels.
    posteriors_ : list of NormalInverseWishart
        Distribution over mean and covariance of every class.
    features_ : ndarray of int
        Features in the model: all but those that are constant in the training rows,
        of which a warning tells. With a prior of your own all.
    means_ : ndarray (n_classes, n_kept)
        Expected means of the classes, of the features in the model.
    intercept_ : ndarray (1,) or (n_classes,)
        Biases, which enter with a plus sign; for ``likelihood="predictive"`` the
        logarithms of the odds, or of the shares, of the classes in the training rows
        with their class weights.
    support_ : ndarray of int
        Rows with a nonzero multiplier.
    dual_coef_ : ndarray (1, n_support) or (n_classes, n_support)
        Weights that these rows add to the classes; for two classes to ``classes_[1]``.
    level_ : float
        Level of the margins.
    duality_gap_, objective_, n_iter_, converged_, n_features_in_
        As for :class:`MEDClassifier`.
    objective_history_ : ndarray
        Dual objective at every step.
    loo_bound_ : float
        Bound of the leave-one-out error where prior and level do not depend on the rows
        (``tempering=0``, a prior of your own, `level` given), ``bias="flat"`` and
        ``likelihood="expected"``, as for :class:`MEDClassifier`; else NaN.

    See Also
    --------
    MEDClassifier : Boundaries by kernels.
    MEDBayesNetClassifier : The same for categorical features.

    Notes
    -----
    Affine maps of the features change nothing. Compare with
    :class:`sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis`, which fits the
    classes one by one. Training errors fall a lot; test errors by a little or not at
    all.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), section 3.1.1, eqs. (16)-(19).

    Examples
    --------
    >>> import maxent
    >>> X, y = maxent.datasets.load_crabs(return_X_y=True)
    >>> model = maxent.MEDGaussianClassifier().fit(X[::2], y[::2])
    >>> model.converged_
    True
    """

    def __init__(
        self,
        C: float = 3.0,
        *,
        margin: MarginName | MarginPrior = "exponential",
        level: float | None = None,
        percentile: float = 25,
        prior: Literal["improper", "weak"] | NormalInverseWishart | None = None,
        tempering: float = 1.0,
        bias: BiasOfClasses | Literal["train_error"] = "flat",
        class_weight: ClassWeight = None,
        likelihood: Likelihood = "expected",
        tol: float = 1e-8,
        max_iter: int = 200,
        verbose: int = False,
    ) -> None:
        self.C = C
        self.margin = margin
        self.level = level
        self.percentile = percentile
        self.prior = prior
        self.tempering = tempering
        self.bias = bias
        self.class_weight = class_weight
        self.likelihood = likelihood
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def _validated(self, X, *y, **options):
        found = validated(self, X, *y, dtype=np.float64, **options)
        rows, columns = found[0] if y else found, names_of_columns(self)
        v.check_range("X", rows, at=True, columns=columns)
        return found

    def _learn_encoding(self, X):
        """Rows without constant columns, which tell no class from another."""
        if isinstance(self.prior, NormalInverseWishart):
            self.features_ = np.arange(X.shape[1])
            return X
        return keep_varying(self, X, "anything of its class")

    def _encode(self, X):
        return kept_features(self, X)

    def _reworded(self, error):
        return named(self, error)

    def _weak(self, X, weight):
        try:
            return NormalInverseWishart.weak(X, weight)
        except FlatFeature as error:
            raise ValueError(self._reworded(error)) from None

    def _prior(self, X, weight):
        d, prior = X.shape[1], self.prior
        if prior is None or (isinstance(prior, str) and prior == "improper"):
            return NormalInverseWishart.improper(d)
        if isinstance(prior, str) and prior == "weak":
            return self._weak(X, weight)
        if not isinstance(prior, NormalInverseWishart):
            more = ", None, or a NormalInverseWishart"
            raise v.unknown("prior", prior, ("improper", "weak"), more)
        if len(prior.mean) != d:
            raise ValueError(
                f"prior has {len(prior.mean)} features, and X has {d}; they must agree."
            )
        return prior

    def _class_blocks(self, X, codes, weight, prior=None):
        if prior is None:
            self._refuse_far_values(X, codes)
        try:
            return super()._class_blocks(X, codes, weight, prior)
        except ValueError as error:
            if self.prior is not None or self.tempering == 0:
                raise
            weak = self._weak(X, weight)
            blocks = super()._class_blocks(X, codes, weight, weak)
            warnings.warn(
                f"{error} Here prior='weak' was used; name it to say so.",
                UserWarning,
                stacklevel=user_stacklevel(),
            )
            return blocks

    def _refuse_far_values(self, X, codes):
        """Refuse values so far from a class that fourth powers leave double precision.

        Curvatures of the dual are squares of squared distances, in units of the
        spreads of the classes.
        """
        ends = np.stack([X.min(axis=0), X.max(axis=0)])
        for c in range(len(self.classes_)):
            own = X[codes == c]
            size = np.abs(own).max(axis=0)
            size[size == 0] = 1.0
            own = own / size  # whose squares stay in double precision
            mean, spread = size * own.mean(axis=0), size * own.std(axis=0)
            far = np.abs(ends - mean)
            beyond = (far > _FARTHEST * spread) & (spread > 0)
            if beyond.any():
                end, k = (int(i) for i in np.argwhere(beyond)[0])
                name = called("feature", [self.features_[k]], names_of_columns(self))
                away = far[end, k] / spread[k]
                raise ValueError(
                    f"{name} of X has the value {ends[end, k]:g}, {away:.1g} standard "
                    f"deviations from the mean {mean[k]:.3g} of class "
                    f"{v.shown(self.classes_[c])}, which leaves double precision; "
                    "correct the value or drop its row."
                )

    def _prior_saw_no_row(self):
        own = isinstance(self.prior, NormalInverseWishart)
        return own and super()._prior_saw_no_row()

    @property
    def means_(self) -> FloatArray:
        """Expected means of the classes (n_classes, n_kept), of the features kept."""
        return np.array([p.mean for p in self.posteriors_])


class MEDBayesNetClassifier(CategoricalClassifier):
    """Bayes nets of fixed structure, one per class, trained discriminatively.

    For categorical features. Without parents it is naive Bayes whose tables are trained
    for the margins.

    Parameters
    ----------
    parents : list of tuple of int or str, or dict, optional
        Parents of every feature, the same in all classes; no cycles. Columns of a data
        frame may be named; a dict of names has the features with parents alone. None
        is naive Bayes.
    ess : float, default=1.0
        Equivalent sample size of the Dirichlet prior: the pseudo-counts of every
        feature sum to it, > 0.
    C, margin, level, percentile, tempering, bias, class_weight, likelihood
        As for :class:`MEDGaussianClassifier`.
    tol, max_iter, verbose
        As there.
    handle_unknown : {"ignore", "error"}, default="ignore"
        Categories met at prediction only: leave out every factor that they enter, which
        for naive Bayes is exact, or refuse them. A column of ten values or more, none
        of them known, brings a warning that names it.
    missing : {None, "category"}, default=None
        Missing values (None, NaN, pandas' NA): None refuses them in training and takes
        them as unknown categories in prediction, by default ignored; "category" makes
        them one more category of their feature.

    Attributes
    ----------
    categories_ : list of ndarray
        Categories of every feature, in the order of their codes.
    posteriors_ : list of DirichletBayesNet
        Distribution over the tables of every class.
    loo_bound_ : float
        As for :class:`MEDGaussianClassifier`, with ``tempering=0`` and `level` given.
        Refits have the categories of the whole data.
    classes_, intercept_, support_, dual_coef_, level_, duality_gap_, objective_, \
objective_history_, n_iter_, converged_, n_features_in_
        As for :class:`MEDGaussianClassifier`.

    See Also
    --------
    MEDGaussianClassifier : The same for continuous features.

    Notes
    -----
    With ``tempering=0`` the prior alone limits how much weight a class can take from
    the other's rows, and there is little to train.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), section 3.6.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent import MEDBayesNetClassifier
    >>> X = np.array([["a", "x"], ["a", "y"], ["b", "y"], ["b", "x"], ["a", "y"]])
    >>> y = [0, 0, 1, 1, 0]
    >>> MEDBayesNetClassifier(level=6.0).fit(X, y).predict([["b", "y"]])
    array([1])
    """

    categories_: list[NDArray[Any]]

    def __init__(
        self,
        parents: Sequence[Sequence[int | str]]
        | Mapping[str, Sequence[str]]
        | None = None,
        ess: float = 1.0,
        *,
        C: float = 3.0,
        margin: MarginName | MarginPrior = "exponential",
        level: float | None = None,
        percentile: float = 25,
        tempering: float = 1.0,
        bias: BiasOfClasses | Literal["train_error"] = "flat",
        class_weight: ClassWeight = None,
        likelihood: Likelihood = "expected",
        handle_unknown: Unknown = "ignore",
        missing: Literal["category"] | None = None,
        tol: float = 1e-8,
        max_iter: int = 200,
        verbose: int = False,
    ) -> None:
        self.parents = parents
        self.ess = ess
        self.C = C
        self.margin = margin
        self.level = level
        self.percentile = percentile
        self.tempering = tempering
        self.bias = bias
        self.class_weight = class_weight
        self.likelihood = likelihood
        self.handle_unknown = handle_unknown
        self.missing = missing
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def _check_parameters(self):
        super()._check_parameters()
        v.check_positive("ess", self.ess)

    def _prior(self, X, weight):
        sizes = self._sizes()
        parents = parents_by_number(self.parents, names_of_columns(self), len(sizes))
        return DirichletBayesNet(float(self.ess), parents, sizes)

    def _solve(self, blocks, margin, pairs, *, maps, **options):
        """By products with the Hessian where many classes make its factor large.

        That method starts from zero multipliers, which are feasible however few rows a
        class has.
        """
        ranks = np.array([block.rank for block in blocks], dtype=float)
        n, work = len(pairs.example), 2.0 * pairs.n * np.square(ranks).sum()
        if work + min(n, ranks.sum()) ** 3 / 3.0 > _FACTOR_WORK:
            for block in blocks:
                block.cheap_products = True
        return super()._solve(blocks, margin, pairs, maps=maps, **options)
