"""MEDOutlierDetector: one-class models trained to a log-likelihood level per row."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp

from maxent._inputs.categories import (
    encode_categories,
    learn_categories,
)
from maxent._support import validation as v
from maxent._support.fitted import fresh_state
from maxent._support.progress import progress_of, with_progress
from maxent._support.threads import with_own_threads
from maxent._support.typing import (
    ArrayLike,
    Likelihood,
    MarginName,
    NDArray,
)
from maxent._support.validation import names_of_columns
from maxent.discrimination._generative_base import say_how_it_ended
from maxent.discrimination._margin_parameters import at_level
from maxent.discrimination._varying_features import keep_varying, named
from maxent.discrimination.detection._latent_rounds import baselines
from maxent.discrimination.detection._outlier_base import OutlierBase, idle
from maxent.discrimination.detection._outlier_models import (
    CATEGORICAL,
    MODELS,
    BlockScorer,
    OutlierModel,
    check_model,
)
from maxent.discrimination.detection._outlier_scores import OutlierScores
from maxent.discrimination.detection.latent_mixture import (
    MixtureProblem,
    check_rows,
    generators,
    groups,
)
from maxent.discrimination.duals.block_dual import solve_blocks
from maxent.discrimination.kernel_blocks import GaussianCentre, GaussianScores
from maxent.discrimination.margins.base import MarginPrior, check_positive_mean
from maxent.families.priors.block import as_block
from maxent.families.priors.normal_wishart import NormalInverseWishart


class MEDOutlierDetector(OutlierScores, OutlierBase):
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
