"""LatentMaxEnt: feasible log-linear models from many starts, chosen by entropy."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from maxent._support import validation as v
from maxent._support.fitted import check_fitted, fresh_state
from maxent._support.progress import with_progress
from maxent._support.random_state import as_generator
from maxent._support.threads import with_single_threaded_blas
from maxent._support.underflow import allow_underflow
from maxent.latent._em_is import MStep, checked_likelihood
from maxent.latent._likelihood import check_method
from maxent.latent._log_linear import FiniteLatentModel, LogLinearModel
from maxent.latent._penalty import ConvexPenalty
from maxent.latent._pool import SELECTIONS, CandidatePool, Selection
from maxent.latent._stationary_points import candidates, take_best

Array = NDArray[np.float64]


class LatentMaxEnt(CandidatePool, BaseEstimator):
    """Latent maximum entropy over finitely many values, from many starts.

    Maximum entropy subject to ``E f_i = sum_y pt(y) E[f_i | y]``, where the hidden
    variable's distribution given y is the model's own. Within log-linear models the
    feasible ones are the stationary points of the likelihood: EM-IS finds many, gates
    admit the sound ones, and of these the one of largest entropy (or likelihood) is
    kept.

    Parameters
    ----------
    features : array-like (n_observed, n_hidden, n_features) or LogLinearModel
        f(y, z) for every observed and every hidden value.
    n_init : int, default=20
        Random starts, >= 1. Start i depends on `random_state` and i only.
    selection : {"entropy", "likelihood"}, default="entropy"
        Choice among the admitted candidates. With a penalty, the regularised
        entropy H - U or the penalised likelihood.
    sigma2 : float or array-like (n_features,), default=inf
        Variance of the penalty sum lam_i^2 / (2 s2_i) of the average log-likelihood.
    penalty : {"l2", "box"} or ConvexPenalty, default="l2"
        As for :func:`em_is`: "box" allows every mean to miss its target by `width`, and
        leaves weights that are not needed at zero.
    width : float or array-like (n_features,), optional
        Of the box, >= 0.
    bound : float, default=inf
        Weights stay within [-bound, bound].
    method : {"iis", "gis", "scgis", "newton", "cg", "lbfgs"}, default="iis"
        M step, as for :func:`em_is`.
    inner : int, default=4
        Steps of each M step.
    em_iter : int, default=50
        E steps that find the basin; what has not converged by then is polished by
        L-BFGS on the likelihood.
    tol : float, default=1e-6
        Relative gradient of an admitted candidate.
    max_iter : int, default=5000
        Bound on the iterations of the polishing.
    mi_tol : float, default=1e-4
        I(Y; Z) in nats above which a candidate counts as dependent; -1 admits all.
    check_maximum : bool, default=True
        Admit local maxima of the likelihood only; False is the literal principle.
    init : array-like (n_starts, n_features), optional
        Weights of further starts, before the random ones.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the starts.
    n_jobs : int, optional
        Processes, through joblib; candidates do not depend on it.
    verbose : bool or int, default=False
        Print progress: time, solver, iteration, objective and how far from `tol`.

    Attributes
    ----------
    lam_ : ndarray (n_features,)
        Weights of the chosen candidate.
    log_likelihood_, entropy_, objective_, residual_ : float
        Of the chosen candidate: average log-likelihood, joint entropy, likelihood less
        the penalty, relative gradient.
    candidates_ : dict of ndarray (n_starts,)
        Columns: "log_likelihood", "objective", "entropy", "regularized_entropy",
        "residual", "dependence", "curvature" (largest eigenvalue of the Hessian of the
        objective), "n_iter", "reason" ("" if admitted) and "group" (equal solutions
        share one). ``pandas.DataFrame(candidates_)`` shows them.
    rejected_ : dict {str: int}
        Candidates rejected by each gate.
    candidate_weights_ : ndarray (n_starts, n_features)
        Weights of all candidates.
    selected_ : int
        Row of the chosen one.
    objective_history_ : ndarray
        Best objective of all starts after each E step, and after the polishing.
    n_iter_ : int
        E steps of the chosen candidate.
    converged_ : bool
        Whether the chosen candidate has converged: always, unless a callback has
        stopped the fit.

    See Also
    --------
    em_is : One start.
    LMEGaussianMixture : Mixtures of Gaussians.

    Notes
    -----
    This is log-linear latent maximum entropy: the log-linear form is an assumption of
    the paper's algorithm, and a joint distribution outside it can have larger entropy.
    The choice by entropy is no better than that by likelihood in general; compare both
    with ``select``.

    References
    ----------
    Wang, Schuurmans & Zhao (2012), The latent maximum entropy principle, algorithm 2.

    Examples
    --------
    Two coins of which one is drawn at random, thrown three times: y counts heads.

    >>> import numpy as np
    >>> from maxent.latent import LatentMaxEnt
    >>> heads = np.arange(4.0)
    >>> f = np.zeros((4, 2, 3))
    >>> f[:, 0, 0] = 1.0                  # which coin
    >>> f[:, 0, 1] = f[:, 1, 2] = heads   # its heads
    >>> y = np.repeat([0, 1, 2, 3], [30, 20, 20, 30])
    >>> model = LatentMaxEnt(f, n_init=5, random_state=0)
    >>> model = model.fit(y)
    >>> round(model.entropy_, 3), model.rejected_["not_converged"]
    (1.83, 0)
    """

    _bound = "use sigma2 < inf, another penalty, a finite bound, or more data"

    def __init__(
        self,
        features: ArrayLike | LogLinearModel,
        n_init: int = 20,
        selection: Selection = "entropy",
        *,
        sigma2: ArrayLike = np.inf,
        penalty: Literal["l2", "box"] | ConvexPenalty = "l2",
        width: ArrayLike | None = None,
        bound: float = np.inf,
        method: MStep = "iis",
        inner: int = 4,
        em_iter: int = 50,
        tol: float = 1e-6,
        max_iter: int = 5000,
        mi_tol: float = 1e-4,
        check_maximum: bool = True,
        init: ArrayLike | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.features = features
        self.n_init = n_init
        self.selection = selection
        self.sigma2 = sigma2
        self.penalty = penalty
        self.width = width
        self.bound = bound
        self.method = method
        self.inner = inner
        self.em_iter = em_iter
        self.tol = tol
        self.max_iter = max_iter
        self.mi_tol = mi_tol
        self.check_maximum = check_maximum
        self.init = init
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags

    @fresh_state
    @with_progress
    @with_single_threaded_blas
    def fit(
        self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> LatentMaxEnt:
        """Find candidates and keep one.

        Parameters
        ----------
        X : array-like of int (n_samples,)
            Numbers of the observed values; what the model's ``observe`` takes.
        y : None
            Ignored.
        sample_weight : array-like (n_samples,), optional
            Weights >= 0.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        NoAdmissibleCandidateError
            If the gates reject every candidate; the counts are in the message.
        TypeError
            For a model without `dependence`, unless `mi_tol` is negative.
        ValueError
            For parameters outside their domains, and for weights that would be
            infinite.
        """
        v.check_choice("selection", self.selection, SELECTIONS)
        n_init = v.check_count("n_init", self.n_init)
        model = self._model()
        likelihood = checked_likelihood(
            model, X, self.penalty, self.sigma2, self.width, self.bound, sample_weight
        )
        mi_tol = v.check_number("mi_tol", self.mi_tol)
        _check_gate(model, mi_tol)
        units = likelihood.units
        starts = units.weights_in(self._starts(model, n_init))
        table, weights, self.objective_history_ = candidates(
            likelihood,
            starts,
            method=check_method(self.method, likelihood.penalty),
            inner=v.check_count("inner", self.inner),
            em_iter=v.check_count("em_iter", self.em_iter),
            tol=v.check_positive("tol", self.tol),
            max_iter=v.check_count("max_iter", self.max_iter),
            mi_tol=mi_tol,
            check_maximum=self.check_maximum,
            n_jobs=v.check_jobs(self.n_jobs),
            progress=self._progress,
            store=partial(_take, units),
        )
        self.candidate_weights_ = units.weights_out(weights)
        self._settle(table, self._progress.stopped)
        return self

    def _model(self):
        if isinstance(self.features, LogLinearModel):
            return self.features
        return FiniteLatentModel(self.features)

    def _starts(self, model, n_init):
        given = np.empty((0, model.n_features))
        if self.init is not None:
            given = np.atleast_2d(v.as_doubles("init", self.init))
            if given.shape[1:] != (model.n_features,) or not np.isfinite(given).all():
                raise ValueError(
                    f"init has shape {np.shape(self.init)}; expected (n_starts, "
                    f"{model.n_features}), finite."
                )
        rngs = as_generator(self.random_state).spawn(n_init)
        return np.vstack([given, *(model.start(rng)[None] for rng in rngs)])

    def _keep(self, i):
        self.lam_ = self.candidate_weights_[i].copy()
        self.n_iter_ = int(self.candidates_["n_iter"][i])

    def _finite(self):
        check_is_fitted(self)
        model = self._model()
        if not isinstance(model, FiniteLatentModel):
            raise ValueError(
                f"{type(model).__name__} has no table of values; use its own methods."
            )
        check_fitted("lam_", self.lam_, (model.n_features,))
        v.check_range("lam_", self.lam_)
        standard, units = model._standard()
        return standard, units.weights_in(self.lam_)

    @allow_underflow
    def joint_proba(self) -> Array:
        """Joint probabilities.

        Returns
        -------
        ndarray (n_observed, n_hidden)
            p(y, z) of the chosen candidate.
        """
        model, lam = self._finite()
        return model.space.probabilities(lam)[1].reshape(model.shape)

    @allow_underflow
    def score_samples(self, X: ArrayLike) -> Array:
        """Log-probability of observed values.

        Parameters
        ----------
        X : array-like of int (n_samples,)
            Numbers of observed values.

        Returns
        -------
        ndarray (n_samples,)
            log p(y), nats.
        """
        model, lam = self._finite()
        model.observe(X)
        u = model._joint(lam)
        log_y = logsumexp(u, axis=1) - logsumexp(u)
        return log_y[np.asarray(X, dtype=np.intp)]

    def score(self, X: ArrayLike, y: Any = None) -> float:
        """Mean log-probability.

        Parameters
        ----------
        X : array-like of int (n_samples,)
            Numbers of observed values.
        y : None
            Ignored.

        Returns
        -------
        float
            Nats per observation.
        """
        return float(np.mean(self.score_samples(X)))

    @allow_underflow
    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of the hidden values.

        Parameters
        ----------
        X : array-like of int (n_samples,)
            Numbers of observed values.

        Returns
        -------
        ndarray (n_samples, n_hidden)
            p(z | y).

        Raises
        ------
        ValueError
            For values that the prior excludes.
        """
        model, lam = self._finite()
        model.observe(X)
        top, given = model._given(lam)
        codes = np.asarray(X, dtype=np.intp)
        excluded = np.flatnonzero(np.isneginf(top[codes]))
        if len(excluded):
            raise ValueError(
                f"X[{excluded[0]}]={codes[excluded[0]]} has probability zero: "
                "log_prior excludes it, and p(z | y) is undefined. Drop it, or raise "
                "its log_prior."
            )
        return given[codes]


def _take(units, model, found):
    """Make the best start of an unfinished batch the model."""
    weights, *more = found
    take_best(model, (units.weights_out(weights), *more))


def _check_gate(model, mi_tol):
    """Refuse a model that lacks what its gate needs."""
    own = type(model).dependence is not LogLinearModel.dependence
    if mi_tol >= 0 and not own:
        raise TypeError(
            f"{type(model).__name__} has no method dependence(lam, observed), with "
            f"which mi_tol={mi_tol:g} rejects candidates whose hidden variable is "
            "idle; define it, or admit them with mi_tol=-1."
        )
