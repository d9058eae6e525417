"""Classifiers with dependency trees, one distribution over trees per class."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxent._support import validation as v
from maxent._support.fitted import check_value
from maxent._support.random_state import draw_seed
from maxent._support.threads import with_own_threads
from maxent._support.typing import (
    ArrayLike,
    BiasOfClasses,
    ClassWeight,
    FloatArray,
    IntArray,
    Likelihood,
    MarginName,
    NDArray,
    RandomState,
    Unknown,
)
from maxent._support.validation import check_memory
from maxent.discrimination._class_biases import ClassBias
from maxent.discrimination._generative_base import CategoricalClassifier
from maxent.discrimination._margin_parameters import generative_margin
from maxent.discrimination._tree_parameters import (
    ROUNDING,
    check_edge_prior,
    check_two_features,
    class_tables,
    nats,
    share_of_max,
)
from maxent.discrimination.duals.block_dual import solve_blocks
from maxent.discrimination.duals.class_pairs import class_maps
from maxent.discrimination.duals.max_margin import max_margin
from maxent.discrimination.margins.base import MarginPrior
from maxent.models.trees._prior import TreePrior
from maxent.models.trees.dirichlet_trees import DirichletTrees
from maxent.models.trees.spanning_trees import complete_rows


class MEDTreeClassifier(CategoricalClassifier):
    """Dependency trees for categorical features, trained discriminatively.

    Each class has a distribution over all n^(n-2) dependency trees of the features; the
    classifier compares expected log-likelihoods. Training moves the distributions no
    farther from the prior than the margins require, and the problem is convex.

    Parameters
    ----------
    parameters : {"fixed", "dirichlet"}, default="fixed"
        "fixed": the tables of a class are the smoothed shares of its rows, and the
        structure is random. "dirichlet": tables and structure are random, and the
        tables start from the Bayes posterior of the class.
    structures : {"auto", "uniform", "posterior"}, default="auto"
        Trees before training: "uniform", all alike but for `edge_prior`, or
        "posterior", as probable as the rows of the class make them. "auto" is
        "uniform" for fixed and "posterior" for Dirichlet tables.
    C : float, default=5.0
        Rate of the margin prior, > 0. It caps every multiplier, except for "gaussian",
        whose multipliers are unbounded, and "fixed", which has no rate. A multiplier of
        one counts as one row.
    margin : str or MarginPrior, default="exponential"
        As for :class:`MEDGaussianClassifier`.
    level : float or str, optional
        Level of the margins, in nats of log-likelihood ratio; 1 by default, or that of
        the object given as `margin`. With ``margin="fixed"`` and fixed parameters also
        a share of the largest margin that all rows can meet, such as "0.8*max"; "max"
        is "0.95*max", as the maximum itself asks for multipliers without bound.
    ess : float, default=1.0
        Equivalent sample size of the tables' smoothing, or of their Dirichlet prior, in
        rows, >= 0; 0 needs every pair of categories in every class, and
        ``parameters="dirichlet"`` needs a number > 0.
    bias : {"flat", None}, float or array-like (n_classes,), default="flat"
        Prior of the bias, as for :class:`MEDGaussianClassifier`.
    class_weight : dict or "balanced", optional
        Multiplies the costs of the margins of a class's rows, as in
        :class:`MEDClassifier`; the models of the classes do not see it.
    likelihood : {"expected", "predictive"}, default="expected"
        As for :class:`MEDGaussianClassifier`; with ``bias=None`` Bayes' rule takes all
        classes for equally frequent.
    edge_prior : array-like (n_features, n_features), optional
        Prior weights of the edges, symmetric, >= 0; 0 forbids an edge. One by default.
    handle_unknown : {"ignore", "error"}, default="ignore"
        Categories met at prediction only: leave out every factor that they enter, with
        a warning of columns of ten values or more that are all unknown, or refuse them.
    missing : {None, "category"}, default=None
        Missing values (None, NaN, pandas' NA): None refuses them in training and takes
        them as unknown categories in prediction, by default ignored; "category" makes
        them one more category of their feature.
    tol : float, default=1e-8
        Relative duality gap asked for.
    max_iter : int, default=1000
        Bound on the steps of the solver.
    n_jobs : int, optional
        Threads of the sums over rows and trees, as in :class:`MEDClassifier`. Results
        do not depend on it.
    verbose : bool or int, default=False
        Print progress: time, solver, iteration, objective and how far from `tol`.

    Attributes
    ----------
    classes_ : ndarray (n_classes,)
        The labels.
    categories_ : list of ndarray
        Categories of every feature, in the order of their codes.
    posteriors_ : list of SpanningTrees or DirichletTrees
        Distribution over trees of every class.
    edge_probabilities_ : ndarray (n_classes, n_features, n_features)
        Probability that an edge is part of the tree.
    edge_log_weights_ : ndarray (n_classes, n_features, n_features)
        Logarithms of the edge weights; -inf for no edge.
    best_trees_ : ndarray of int (n_classes, n_features - 1, 2)
        Edges (u, v), u < v, of the most probable tree of every class.
    level_ : float
        Level of the margins.
    max_margin_ : float
        Largest margin that all rows can meet; known if `level` is a share of it.
    loo_bound_ : float
        Share of rows with a multiplier: a bound of the leave-one-out error with tables,
        prior and level as they are. These come from all rows here, so that as a bound
        of the error of new rows it is optimistic. NaN where the bound does not hold:
        where rows with ``level - 1/C <= 0`` may be wrong without a multiplier, for a
        level that the rows chose, and for ``likelihood="predictive"``.
    intercept_, support_, dual_coef_, duality_gap_, objective_, objective_history_, \
n_iter_, converged_, n_features_in_
        As for :class:`MEDGaussianClassifier`.

    Raises
    ------
    ValueError
        For one feature only, ``ess=0`` with a pair of categories that a class never
        has, edges that do not connect all features, or a fixed margin beyond the
        largest that all rows can meet, which is named.

    See Also
    --------
    ChowLiuClassifier : The most likely tree of every class.
    MEDBayesNetClassifier : One given structure, all tables random.
    max_margin : The largest margin that all rows can meet.

    Notes
    -----
    A step costs O(n_samples n_features^2 + n_features^3) time, and memory is quadratic
    in the number of all categories; ten to sixty Newton steps are enough, each with
    some ten to some hundred products of about this cost. Fixed margins, the
    logistic prior and priors of your own with infinite slopes at zero are solved by
    the interior point of :func:`solve_blocks`, whose steps cost more.

    With ``parameters="dirichlet"`` rows of the other class can subtract no more from a
    table than its own rows and the prior have added; multipliers stay small where
    counts are. Where levels cannot be reached, table cells vanish: their remaining
    counts are in `posteriors_`, and may be too small for `dual_coef_` to represent.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), sections 3.3-3.7; section 3.5 is
    ``parameters="dirichlet"`` with ``structures="uniform"``.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent import MEDTreeClassifier
    >>> X = np.random.default_rng(0).integers(0, 3, size=(60, 4))
    >>> y = np.where(X[:, 0] == X[:, 1], "same", "other")
    >>> model = MEDTreeClassifier(level=3.0).fit(X, y)
    >>> model.predict([[2, 2, 0, 1], [2, 1, 0, 1]])
    array(['same', 'other'], dtype='<U5')
    >>> model.edge_probabilities_[1, 0, 1] > 0.8
    np.True_
    """

    _logistic = "margin='logistic' with level=0 and C=1"
    _idle = "the trees have learnt no more than the tables of the classes", "level"

    categories_: list[NDArray[Any]]
    max_margin_: float

    def __init__(
        self,
        parameters: Literal["fixed", "dirichlet"] = "fixed",
        C: float = 5.0,
        *,
        structures: Literal["auto", "uniform", "posterior"] = "auto",
        margin: MarginName | MarginPrior = "exponential",
        level: float | str | None = None,
        ess: float = 1.0,
        bias: BiasOfClasses = "flat",
        class_weight: ClassWeight = None,
        likelihood: Likelihood = "expected",
        edge_prior: ArrayLike | None = None,
        handle_unknown: Unknown = "ignore",
        missing: Literal["category"] | None = None,
        tol: float = 1e-8,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        verbose: int = False,
    ) -> None:
        self.parameters = parameters
        self.C = C
        self.structures = structures
        self.margin = margin
        self.level = level
        self.ess = ess
        self.bias = bias
        self.class_weight = class_weight
        self.likelihood = likelihood
        self.edge_prior = edge_prior
        self.handle_unknown = handle_unknown
        self.missing = missing
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    # -- what the fit of the base class asks ----------------------------------------
    def _checked_margin(self):
        share, level = share_of_max(self.level)
        margin, level, unit = generative_margin(self.margin, self.C, level)
        if share is None:
            return margin, 1.0 if level is None else level, unit
        if not (margin.unit_potential.hard and self.parameters == "fixed"):
            raise ValueError(
                f"level={v.shown(self.level)} needs margin='fixed' and "
                "parameters='fixed'; give a number of nats."
            )
        return margin, None, unit

    def _check_parameters(self):
        v.check_choice("parameters", self.parameters, ("fixed", "dirichlet"))
        choices = ("auto", "uniform", "posterior")
        v.check_choice("structures", self.structures, choices)
        self._by_predictive()
        if self.parameters == "dirichlet":
            v.check_positive("ess", self.ess)
        v.check_nonnegative("ess", self.ess)
        if self._by_training_errors():
            v.check_bias(self.bias)

    def _validated(self, X, *y, reset=True):
        X = super()._validated(X, *y, reset=reset)
        check_two_features(self, X[0] if y else X)
        return X

    def _class_blocks(self, X, codes, weight):
        sizes = self._sizes()
        edges = check_edge_prior(self.edge_prior, X.shape[1])
        m, D = len(self.classes_), sum(sizes)
        tables = 4 + 5 * m if self.parameters == "dirichlet" else 3 + 2 * m  # measured
        what = f"fitting {m} classes to X with a sum of categories"
        check_memory(what, D, 8 * tables * D**2)
        blocks = []
        by_rows = self.structures == "posterior"
        if self.parameters == "fixed":
            rows = complete_rows(X, sizes)
        else:
            prior = DirichletTrees(float(self.ess), sizes, edges)
            by_rows |= self.structures == "auto"
        for k in range(m):
            own = codes == k
            if self.parameters == "fixed":
                part = rows.part(np.flatnonzero(own))
                start = class_tables(self, part, weight[own], k, edges)
            elif by_rows:
                start = prior
            else:  # the counts of the rows, the trees as they were
                learnt = self._class_block(partial(prior.posterior, X), k, own, weight)
                start = DirichletTrees(learnt.pseudo_counts, sizes, edges)
            bind = partial(start.block, X)
            blocks.append(
                self._class_block(bind, k, own, weight) if by_rows else bind()
            )
        return blocks

    def _level(self, level, blocks, pairs):
        """The level given, or a share of the largest margin."""
        if level is not None:
            return level
        self.max_margin_ = self._largest_margin(blocks, pairs).lower
        if not self.max_margin_ > 0:
            raise ValueError(
                f"level={v.shown(self.level)}: the largest margin that all rows can "
                f"meet is {nats(self.max_margin_)}, so the classes cannot be "
                "separated. Use margin='exponential'."
            )
        return share_of_max(self.level)[0] * self.max_margin_

    def _solve(self, blocks, margin, pairs, **options):
        try:
            return solve_blocks(blocks, margin=margin, **options)
        except ValueError:
            if not (margin.unit_potential.hard and self.parameters == "fixed"):
                raise
            most = self._largest_margin(blocks, pairs)
            if most.upper > self.level_ * (1.0 + 1e-6):
                raise
            remedy = (
                "Lower it (level='0.8*max'), or use a margin prior"
                if most.lower > ROUNDING
                else "The classes cannot be separated: use a margin prior"
            )
            raise ValueError(
                f"level={self.level_:g} is beyond the largest margin that all rows can "
                f"meet, {nats(most.lower)}. {remedy} that allows losses, such as "
                "margin='exponential'."
            ) from None

    def _largest_margin(self, blocks, pairs):
        bias = ClassBias(self.bias, pairs.m)
        blocks, maps, more = bias.problem(blocks[: pairs.m], class_maps(pairs), pairs)
        return max_margin(blocks, maps, **more)

    def _bound_holds(self, given):
        """True if the level saw no row; tables and prior are taken as they are."""
        return given

    # -- after fitting ---------------------------------------------------------------
    def _score_rows(self, posterior, X):
        if not isinstance(posterior, TreePrior):
            raise ValueError(
                f"the fitted model is inconsistent: posteriors_ holds "
                f"{v.shown(posterior)}, no distribution over trees. Fit it again."
            )
        return super()._score_rows(posterior, X)

    @property
    def edge_probabilities_(self) -> FloatArray:
        """Probability of every edge, (n_classes, n_features, n_features)."""
        for k, posterior in enumerate(self.posteriors_):
            check_value(f"posteriors_[{k}]", posterior)
        return np.array([p.edge_probabilities for p in self.posteriors_])

    @property
    def edge_log_weights_(self) -> FloatArray:
        """Log weight of every edge, (n_classes, n_features, n_features)."""
        return np.array([p.log_weights for p in self.posteriors_])

    @property
    def best_trees_(self) -> IntArray:
        """Edges of the most probable trees, (n_classes, n_features - 1, 2)."""
        return np.array([p.best_tree for p in self.posteriors_])

    @with_own_threads
    def sample_trees(self, size: int = 1, random_state: RandomState = None) -> IntArray:
        """Random trees of every class.

        Parameters
        ----------
        size : int, default=1
            Trees per class, >= 1.
        random_state : int, RandomState, Generator or None, default=None
            The same seed gives the same trees.

        Returns
        -------
        ndarray of int (n_classes, size, n_features - 1, 2)
            Edges (u, v), u < v, of every tree, sorted.
        """
        check_is_fitted(self)
        rng = np.random.default_rng(draw_seed(random_state))
        return np.array([p.sample_trees(size, rng) for p in self.posteriors_])
