"""MEDOutlierDetector: one-class models trained to a log-likelihood level per row."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp, psi, softmax
from sklearn.utils.validation import check_is_fitted

from maxent._inputs.categories import (
    encode_categories,
    learn_categories,
    validate_categories,
)
from maxent._inputs.plain_categories import missing_values
from maxent._support import validation as v
from maxent._support.estimator_input import validated
from maxent._support.fitted import check_fitted, check_scores, check_value, fresh_state
from maxent._support.progress import progress_of, with_progress
from maxent._support.shares import pairwise_shares
from maxent._support.threads import with_own_threads
from maxent._support.typing import (
    ArrayLike,
    FloatArray,
    Likelihood,
    MarginName,
    NDArray,
)
from maxent._support.validation import names_of_columns
from maxent.discrimination._generative_base import say_how_it_ended
from maxent.discrimination._margin_parameters import at_level
from maxent.discrimination._tree_parameters import check_two_features
from maxent.discrimination._varying_features import keep_varying, kept_features, named
from maxent.discrimination.detection._latent_rounds import baselines
from maxent.discrimination.detection._outlier_base import OutlierBase, idle
from maxent.discrimination.detection._outlier_models import (
    CATEGORICAL,
    MODELS,
    BlockScorer,
    OutlierModel,
    check_model,
)
from maxent.discrimination.detection.latent_mixture import (
    LatentMixture,
    MixturePosterior,
    MixtureProblem,
    check_rows,
    generators,
    groups,
)
from maxent.discrimination.duals.block_dual import solve_blocks
from maxent.discrimination.kernel_blocks import GaussianCentre, GaussianScores
from maxent.discrimination.margins.base import MarginPrior, check_positive_mean
from maxent.families.block import as_block
from maxent.families.dirichlet_nets import DirichletProduct
from maxent.families.normal_wishart import NormalInverseWishart
from maxent.models.trees.dirichlet_trees import DirichletTrees


class MEDOutlierDetector(OutlierBase):
    """Anomaly detection: every training row gets a log-likelihood of about a level.

    The Bayes posterior fits the bulk and gives rare rows very low likelihoods; here the
    distribution over models stays as close to the prior as possible while every
    training row reaches the level on average, so that new rows below it are probably
    outliers.

    Parameters
    ----------
    model : {"gaussian", "multinomial", "tree", "mixture"} or object, default="gaussian"
        "gaussian": one Gaussian with a normal-inverse-Wishart prior. "multinomial": a
        product of distributions over the categories of every feature, with Dirichlet
        priors. "tree": random dependency trees over the categories, with random tables
        and one equivalent row as the prior; two features or more. "mixture" or a
        :class:`LatentMixture`: several components of one of these models, and nobody
        knows which row is of which; the name is a mixture of two Gaussians. Or a prior
        with a method ``block(X)``: a conjugate prior of :mod:`maxent.families`,
        :class:`SpanningTrees`, :class:`GaussianScores` (one-class SVM),
        :class:`GaussianCentre` (support vector data description), or one of your own.
    level : float, optional
        Log-likelihood asked of the training rows, in nats.
    quantile : float, default=0.5
        Without `level`, this quantile of the training rows' log-likelihoods under the
        Bayes predictive distribution is the level, in [0, 1].
    contamination : float, optional
        Share of the training rows to call outliers, in (0, 0.5]: it sets ``offset_``,
        the threshold of `predict`, and changes nothing else of the fit. Without it the
        threshold is what the margin prior asks, which calls as many rows outliers as
        have a multiplier: at the default `quantile` a third to nearly all of them. A
        warning says where it is more than nine tenths.
    C : float, default=1.0
        Rate of the margin prior, > 0. It caps every row's weight, except for "gaussian"
        and "fixed". At weight one for all rows the model is the Bayes posterior.
    margin : str or MarginPrior, default="exponential"
        As for :class:`MEDGaussianClassifier`.
    likelihood : {"expected", "predictive"}, default="expected"
        Scores of rows: the expected log-likelihood, or the log of the expected
        likelihood.
    missing : {None, "category"}, default=None
        For "multinomial" and "tree". Missing values (None, NaN, pandas' NA): None
        refuses them in training and ignores them in prediction, as if the feature had
        not been observed; "category" makes them one more category of their feature.
    tol : float, default=1e-8
        Relative duality gap asked for.
    max_iter : int, default=200
        Bound on the steps of the interior point; for a mixture, in every round.
    n_jobs : int, optional
        Threads of the sums over rows and trees ("tree") and of the kernel values
        (:class:`GaussianScores`, :class:`GaussianCentre`); processes of the starts of a
        mixture; other models have no work for more than one. Results do not depend on
        it.
    verbose : bool or int, default=False
        Print progress: time, solver, iteration, objective and how far from `tol`.

    Attributes
    ----------
    posterior_ : object
        Distribution over models: for conjugate priors a value of the prior's class.
    level_ : float
        Level of the training rows.
    offset_ : float
        Scores below it are outliers: the level less the shortfall that costs nothing
        under the margin prior; or, with `contamination`, the score that this share of
        the training rows is below.
    support_ : ndarray of int
        Rows with a nonzero multiplier.
    dual_coef_ : ndarray (n_support,)
        Their multipliers.
    categories_ : list of ndarray
        Categories of every feature; for "multinomial" and "tree" only.
    features_ : ndarray of int
        Features in a model of Gaussians: all but those that are constant in the
        training rows, of which a warning tells.
    total_weight_ : float
        Sum of the weights of the training rows; for "multinomial" and "tree" only.
    divergences_ : ndarray
        Least divergence of every start of a mixture; starts from the same Bayes
        posterior count once. `objective_history_` and `n_iter_` then are of the rounds
        of the start that is kept, `objective_` and `duality_gap_` of the last round.
    baseline_ : MixturePosterior
        Of a mixture: its Bayes posterior, every row at its own weight; the best of all
        starts.
    duality_gap_, objective_, objective_history_, n_iter_, converged_, \
n_features_in_
        As for :class:`MEDClassifier`.
    loo_bound_ : float
        Share of rows with a multiplier. The expected share of new normal rows called
        outliers is at most that of a training set larger by one. NaN where this does
        not hold: if `level` is not given, with `contamination`, if rows shape the model
        ("gaussian", "multinomial", kernels with gamma="scale", a centre without any
        multiplier), for a mixture, for the logistic prior, and for a fit that has not
        converged.

    See Also
    --------
    MEDSequenceOutlierDetector : Sequences of symbols or of vectors.
    sklearn.svm.OneClassSVM : What ``model=GaussianScores()``, ``margin="hinge"`` is.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), section 4, eqs. (45)-(50).

    Examples
    --------
    >>> import numpy as np
    >>> from maxent import MEDOutlierDetector
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> detector = MEDOutlierDetector().fit(X)
    >>> detector.predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    posterior_: Any
    categories_: list[NDArray[Any]]
    features_: NDArray[np.intp]
    total_weight_: float

    def __init__(
        self,
        model: Literal["gaussian", "multinomial", "tree", "mixture"]
        | OutlierModel = "gaussian",
        *,
        level: float | None = None,
        quantile: float = 0.5,
        contamination: float | None = None,
        C: float = 1.0,
        margin: MarginName | MarginPrior = "exponential",
        likelihood: Likelihood = "expected",
        missing: Literal["category"] | None = None,
        tol: float = 1e-8,
        max_iter: int = 200,
        n_jobs: int | None = None,
        verbose: int = False,
    ) -> None:
        self.model = model
        self.level = level
        self.quantile = quantile
        self.contamination = contamination
        self.C = C
        self.margin = margin
        self.likelihood = likelihood
        self.missing = missing
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = self._categorical()
        tags.input_tags.string = self._categorical()
        tags.input_tags.sparse = self._takes_sparse()
        tags.input_tags.allow_nan = self._categorical() and self.missing == "category"
        return tags

    @fresh_state
    @with_progress
    @with_own_threads
    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the model of normal rows.

        Parameters
        ----------
        X : array-like (n_samples, n_features)
            Training rows, all or most of them normal; with
            :class:`~maxent.families.DirichletCounts` sparse too.
        y : None
            Ignored.
        sample_weight : array-like (n_samples,), optional
            Weight w stands for w copies of the row; 0 drops it.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            For a parameter outside its domain, NaN or infinity, or a level above
            every achievable log-likelihood.

        Warns
        -----
        ConvergenceWarning
            If the tolerance is not met; the attributes say how far the fit came.
        UserWarning
            If more than nine tenths of the training rows are outliers to `predict`.
        """
        settings = self._settings()
        v.check_choice("likelihood", self.likelihood, ("expected", "predictive"))
        check_model(self.model, names=(*MODELS, "mixture"))
        X = self._validated(X)
        keep, weight = self._weighted(sample_weight, X.shape[0])
        mixture = self._mixture()
        if mixture is not None:
            check_rows(mixture, len(keep))
        if self._is("gaussian") and len(keep) < 2:
            raise ValueError(
                "a Gaussian needs rows that differ, and there is 1 sample of positive "
                "weight; give more, or a NormalInverseWishart as the model."
            )
        X = X[keep]
        if self._categorical():
            names = names_of_columns(self)
            self.categories_ = learn_categories(X, self.missing, names)
            X = encode_categories(X, self.categories_, "error", self.missing, names)
            self.total_weight_ = float(weight.sum())
        elif self._is("gaussian"):
            told, loss = "what is normal", ": other values there are not noticed"
            X = keep_varying(self, X, told, loss)
        prior = self._prior(X, weight)
        if mixture is None:
            self._fit_block(prior, X, settings, weight, keep)
        else:
            self._fit_mixture(mixture, prior, X, settings, weight, keep)
        return self

    def _fit_block(self, prior, X, settings, weight, keep):
        """Fit one block, the dual of which is concave."""
        found, n = prior.block(X), len(keep)
        block = as_block(found)
        if block is None or block.n_rows != n:
            raise ValueError(
                f"model.block(X) returned {v.shown(found)}; it must return a Block "
                f"whose n_rows is {n}, that of X."
            )
        level = settings.level
        self.level_ = self._level(level, block, X, weight)
        margin = at_level(settings.margin, self.level_)
        if isinstance(self.model, GaussianScores):  # its scores are zero to begin with
            source = f" (the quantile of {n} sample(s))" if level is None else ""
            check_positive_mean(margin, f"level{source} or C")

        def store(model, result):
            model._store(result, block, margin, level is not None, keep)
            if settings.share is not None:
                model._set_share(model._scores(X), weight, settings.share)

        result = solve_blocks(
            [block],
            [sp.eye_array(n)],
            margin,
            sample_weight=settings.unit * weight,
            level=np.full(n, self.level_),
            tol=settings.tol,
            max_iter=settings.max_iter,
            callback=progress_of(self, store),
        )
        store(self, result)
        say_how_it_ended(self, result, idle(self.level_))
        if result.converged:
            self._warn_of_rejected(lambda model: model._scores(X), weight, n)

    def _fit_mixture(self, mixture, prior, X, settings, weight, keep):
        """Fit components that are hidden, in rounds from several starts."""
        rngs = generators(mixture)
        problem = MixtureProblem(prior, X, mixture.n_components, weight)
        if settings.level is not None:
            self.level_ = self._level_below(settings.level, problem.largest)
        starts = baselines(problem, rngs, weight, self.n_jobs, self._progress)
        if settings.level is None:
            scores = starts[0].posterior.baseline_scores(X)
            self.level_ = self._level_at_quantile(scores, weight)
        rounds = mixture.tol, mixture.max_rounds
        shared = settings, rounds, weight, keep
        self._fit_rounds(problem, starts, *shared, lambda model: model._scores(X))

    def _mixture(self):
        """The mixture that is the model; None if the model is another."""
        if isinstance(self.model, str) and self.model == "mixture":
            return LatentMixture()
        return self.model if isinstance(self.model, LatentMixture) else None

    @property
    def _rows_model(self):
        """Model of one kind of row: of a mixture, its component."""
        mixture = self._mixture()
        return self.model if mixture is None else mixture.component

    def _is(self, name):
        return isinstance(self._rows_model, str) and self._rows_model == name

    def _categorical(self):
        model = self._rows_model
        return isinstance(model, str) and model in CATEGORICAL

    def _takes_sparse(self):
        return bool(getattr(self.model, "_takes_sparse", False))

    def _validated(self, X: ArrayLike, reset: bool = True) -> NDArray[Any]:
        if self._categorical():
            data: NDArray[Any] = validate_categories(self, X, reset=reset)
            if self._is("tree"):
                check_two_features(self, data)
            return data
        if self.missing is not None:
            raise ValueError(
                f"missing={v.shown(self.missing)} is for the models 'multinomial' and "
                f"'tree'; with model={v.shown(self.model)} leave it None."
            )
        sparse = "csr" if self._takes_sparse() else False
        data = validated(self, X, dtype=np.float64, accept_sparse=sparse, reset=reset)
        v.check_range("X", data, at=True, columns=names_of_columns(self))
        return data

    def _prior(self, X, weight):
        if self._is("gaussian"):
            mixture = self._mixture()
            parts = None if mixture is None else groups(mixture, X, weight)
            try:
                return NormalInverseWishart.weak(X, weight, parts)
            except ValueError as error:
                raise ValueError(named(self, error)) from None
        if self._categorical():
            sizes = [len(known) for known in self.categories_]
            return CATEGORICAL[self._rows_model](1.0, sizes)
        weighted = getattr(self._rows_model, "weighted_by", None)
        return self._rows_model if weighted is None else weighted(X, weight)

    def _level(self, level, block, X, weight):
        """The level given, or a quantile of the log-likelihoods of the rows."""
        if level is not None:
            return self._level_below(level, block.largest)
        posterior = block.posterior(weight)
        if hasattr(posterior, "predictive_log_prob"):
            scores = posterior.predictive_log_prob(X)
        else:
            scores = block.mean(weight)
        return self._level_at_quantile(scores, weight)

    def _store(self, result, block, margin, given, keep):
        lam = result.lam
        posterior = block.posterior(lam)
        self.posterior_ = BlockScorer(block, lam) if posterior is None else posterior
        blind = given and not self._model_saw_rows(lam)
        self._store_dual(result, margin, keep, blind)

    def _model_saw_rows(self, lam):
        """True if rows shaped the model itself, beyond their multipliers."""
        if isinstance(self.model, str):
            return True  # variances, or the categories
        # without a multiplier a centre is the mean of the rows
        undetermined = isinstance(self.model, GaussianCentre) and not lam.any()
        return undetermined or getattr(self.model, "scales_with_rows", False)

    @with_own_threads
    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Log-likelihoods of rows, in nats: small for outliers.

        Parameters
        ----------
        X : array-like (n, n_features)
            Rows to judge. Categories that training did not meet count as categories
            with the prior's pseudo-count alone, out of all training rows; missing
            values are left out.

        Returns
        -------
        ndarray (n,)
            Expected log-likelihoods, or logs of expected likelihoods (`likelihood`).
        """
        return self._scores(*self._checked_rows(X))

    @with_own_threads
    def feature_scores(self, X: ArrayLike) -> FloatArray:
        """Shares of the columns in the scores of rows: the most negative ones say why.

        A share is the Shapley value of the column in the difference between the score
        of the row and that of a reference: the mean of a Gaussian, and of categories
        the row of the commonest ones. It does not depend on the order of the columns.

        Parameters
        ----------
        X : array-like (n, n_features)
            Rows, as for `score_samples`.

        Returns
        -------
        ndarray (n, n_features)
            In nats; constant features, which are not in the model, have none. Rows sum
            to ``score_samples(X)`` less the score of the reference, the same for all
            rows. Of a mixture they are the means of the shares in its components by
            the responsibilities q of the row, and sum to the score less ``sum_k q_k
            reference_k - sum_k q_k log q_k``, where ``reference_k`` is the joint score
            of the reference of component k: nearly one of these for an outlier.

        Raises
        ------
        ValueError
            For models that do not split exactly: kernels, blocks and priors other than
            "gaussian", "multinomial" and "tree", and of "tree" with
            ``likelihood="predictive"``.

        Notes
        -----
        With z the deviation from the mean and P the expected precision, the score of
        a Gaussian is a constant less ``z'Pz / 2``, and the shares are ``-z_j (P z)_j /
        2``. Where columns depend on each other, one of them may have a positive share:
        its value makes the row as a whole less strange. The predictive score, a
        function of ``z'Pz``, has the same proportions. The cost is that of two scores
        of the rows for every feature of "multinomial" and "tree".

        References
        ----------
        Shapley (1953), A value for n-person games; Sundararajan, Taly & Yan (2017),
        Axiomatic attribution for deep networks; Alcala & Qin (2009), Reconstruction-
        based contribution for process monitoring.

        Examples
        --------
        >>> import numpy as np
        >>> from maxent import MEDOutlierDetector
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> detector = MEDOutlierDetector().fit(X)
        >>> shares = detector.feature_scores([[0.1, 6.0, -0.2]])
        >>> int(shares.argmin())
        1
        """
        X, unseen = self._checked_rows(X)
        predictive = self.likelihood == "predictive"
        mixture = isinstance(self.posterior_, MixturePosterior)
        if not mixture:
            shares = self._shares_of(self.posterior_, X, unseen, predictive)
        else:
            parts = self.posterior_.components
            joint = self._joint(X, unseen)
            q = softmax(joint, axis=1)
            each = [self._shares_of(part, X, unseen, predictive) for part in parts]
            shares = np.einsum("nk,knj->nj", q, each)
        kept = vars(self).get("features_")
        if kept is None or len(kept) == self.n_features_in_:
            return shares
        every = np.zeros((len(shares), self.n_features_in_))
        every[:, kept] = shares
        return every

    def _shares_of(self, part, X, unseen, predictive):
        """Shares of the columns in the scores of one posterior."""
        if isinstance(part, NormalInverseWishart):
            shares: FloatArray = part._shares(X, predictive)
            return shares
        tree = isinstance(part, DirichletTrees)
        if (tree and predictive) or not isinstance(
            part, (DirichletProduct, DirichletTrees)
        ):
            raise ValueError(
                "feature_scores splits the scores of the models 'gaussian', "
                "'multinomial' and, with likelihood='expected', 'tree'; those of "
                f"model={v.shown(self.model)} with likelihood={self.likelihood!r} have "
                "no exact shares. Change one column at a time, and compare "
                "score_samples."
            )
        marks = np.zeros(X.shape, dtype=bool) if unseen is None else unseen

        def score(rows):  # codes, and beside them the marks of unseen ones
            codes, new = np.hsplit(rows, 2)
            return self._scores_of(part, codes, new.astype(bool), predictive)

        d = X.shape[1]
        reference = np.concatenate([_commonest(part), np.zeros(d, dtype=X.dtype)])
        rows = np.hstack([X, marks.astype(X.dtype)])
        return pairwise_shares(score, rows, reference, d)

    def _checked_rows(self, X):
        """Rows as the model takes them, and of categories which are unseen."""
        check_is_fitted(self)
        needed = CATEGORICAL[str(self._rows_model)] if self._categorical() else object
        parts = [self.posterior_]
        if self._mixture() is not None:
            parts = getattr(self.posterior_, "components", [None])
        if not all(
            isinstance(part, needed) and hasattr(part, "expected_log_prob")
            for part in parts
        ):
            raise ValueError(
                "the fitted model is inconsistent: posterior_="
                f"{v.shown(self.posterior_)} cannot score rows. Fit it again."
            )
        check_value("posterior_", self.posterior_)
        for part in parts if self._mixture() is not None else ():
            check_value("posterior_.components", part)
        X = self._validated(X, reset=False)
        if self._categorical():
            names = names_of_columns(self)
            known = encode_categories(
                X, self.categories_, "ignore", self.missing, names
            )
            unseen = known == -1
            if self.missing is None:
                unseen &= ~missing_values(X)
            return known, unseen
        return kept_features(self, X), None

    def _scores(self, X, unseen=None):
        """Scores of checked rows; of categories their codes, and which are unseen."""
        predictive = self.likelihood == "predictive"
        mixture = isinstance(self.posterior_, MixturePosterior)
        parts = self.posterior_.components if mixture else [self.posterior_]
        if predictive and not all(hasattr(p, "predictive_log_prob") for p in parts):
            raise ValueError(
                "likelihood='predictive' needs a model of probabilities; with "
                f"{v.shown(self.model)} use likelihood='expected'."
            )
        if mixture:
            scores = logsumexp(self._joint(X, unseen), axis=1)
        else:
            scores = self._scores_of(self.posterior_, X, unseen, predictive)
        if isinstance(self.posterior_, BlockScorer):
            return scores  # a user's model may find a row impossible
        return check_scores(scores, X)

    def _scores_of(self, part, X, unseen, predictive):
        """Scores of rows by one posterior."""
        score = "predictive_log_prob" if predictive else "expected_log_prob"
        with np.errstate(over="ignore", invalid="ignore"):
            return getattr(part, score)(X) + self._extra(part, unseen, predictive)

    def _joint(self, X, unseen):
        """Joint scores of rows and components of a mixture, (n, K)."""
        predictive = self.likelihood == "predictive"
        parts = self.posterior_.components
        extra = [self._extra(part, unseen, predictive) for part in parts]
        with np.errstate(over="ignore", invalid="ignore"):
            joint = self.posterior_.log_joint(X, predictive)
            return joint + np.stack(np.broadcast_arrays(*extra), axis=-1)

    def _extra(self, part, unseen, predictive):
        """Scores (n,) that unseen categories add to those of a posterior, or 0."""
        if unseen is None or not unseen.any():
            return 0.0
        return self._unseen(part, unseen, np.log if predictive else psi)

    def _unseen(self, posterior, unseen, log):
        """Scores of categories with a pseudo-count and no row, (n,).

        No training row has them, so that the total is that of all training rows at
        least: a prior that reaches the level without multipliers has learnt no row, and
        would give them what it gives the others.
        """
        sizes = np.array([len(c) for c in self.categories_])
        if self._is("tree"):  # as much as the prior gives the others, without an edge
            count, total = 1.0 / sizes, posterior.total
        else:
            count = np.ones(len(sizes))
            total = np.array([t.sum() for t in posterior.pseudo_counts])
        weight = np.asarray(getattr(self, "total_weight_", 0.0))  # not in old files
        check_fitted("total_weight_", weight, ())
        least = sizes * count + weight
        return unseen @ (log(count) - log(np.maximum(total, least)))


def _commonest(posterior):
    """Code of the commonest category of every column."""
    if isinstance(posterior, DirichletTrees):
        counts = np.split(
            posterior.pseudo_counts.diagonal(), np.cumsum(posterior.n_categories)[:-1]
        )
    else:
        counts = [table[0] for table in posterior.pseudo_counts]
    return np.array([own.argmax() for own in counts], dtype=np.intp)
