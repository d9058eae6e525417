"""Boltzmann machines with hidden units by latent maximum entropy."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from maxent._support import validation as v
from maxent._support.estimator_input import validated
from maxent._support.fitted import check_fitted, fresh_state
from maxent._support.progress import with_progress
from maxent._support.random_state import as_generator
from maxent._support.typing import MatrixLike
from maxent.latent._boltzmann_model import BoltzmannModel
from maxent.latent._em_is import M_STEPS, MStep, checked_likelihood
from maxent.latent._pool import SELECTIONS, CandidatePool, Selection
from maxent.latent._stationary_points import candidates, take_best

Array = NDArray[np.float64]


class _Machine(CandidatePool, TransformerMixin, BaseEstimator):
    """What the two machines share."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags

    def _model(self, n_visible):
        raise NotImplementedError

    @fresh_state
    @with_progress
    def fit(
        self, X: MatrixLike, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Find candidates from many starts and keep one.

        Parameters
        ----------
        X : array-like (n_samples, n_visible)
            Rows of 0 and 1.
        y : None
            Ignored.
        sample_weight : array-like (n_samples,), optional
            Weight w stands for w copies of the row.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        NoAdmissibleCandidateError
            If the gates reject every candidate.
        ValueError
            For data that are not binary, or more units than can be enumerated.
        """
        v.check_choice("selection", self.selection, SELECTIONS)
        n_init = v.check_count("n_init", self.n_init)
        v.check_count("n_hidden", self.n_hidden)
        X = validated(self, X, dtype=np.float64)
        model = self._model(X.shape[1])
        weight = v.check_weights(sample_weight, len(X))
        total = len(X) if weight is None else weight.sum()
        variance = v.check_positive(
            "prior_variance", self.prior_variance, allow_inf=True
        )
        likelihood = checked_likelihood(
            model, X, variance * total, self.bound, sample_weight
        )
        rngs = as_generator(self.random_state).spawn(n_init)
        table, weights = candidates(
            likelihood,
            np.stack([model.start(rng) for rng in rngs]),
            method=v.check_choice("method", self.method, M_STEPS),
            inner=v.check_count("inner", self.inner),
            em_iter=v.check_count("em_iter", self.em_iter),
            tol=v.check_positive("tol", self.tol),
            max_iter=v.check_count("max_iter", self.max_iter),
            mi_tol=v.check_number("mi_tol", self.mi_tol),
            check_maximum=self.check_maximum,
            n_jobs=v.check_jobs(self.n_jobs),
            progress=self._progress,
            store=take_best,
        )
        self.candidate_weights_ = weights
        self._settle(table, self._progress.stopped)
        return self

    def _keep(self, i):
        model = self._model(self.n_features_in_)
        lam = self.candidate_weights_[i]
        self.lam_ = lam.copy()
        self.weights_, self.biases_ = model.matrices(lam)
        self.log_partition_ = float(model.partition(lam[None])[0][0])
        self.at_bound_ = np.flatnonzero(np.abs(lam) >= self.bound)
        self.n_iter_ = int(self.candidates_["n_iter"][i])

    def _checked(self, X):
        check_is_fitted(self)
        X = validated(self, X, dtype=np.float64, reset=False)
        model = self._model(self.n_features_in_)
        check_fitted("lam_", self.lam_, (model.n_features,))
        wrong = (X != 0) & (X != 1)
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            raise ValueError(
                f"X[{i}, {j}]={X[i, j]:g} is not binary; units are 0 or 1."
            )
        return model, X

    def score_samples(self, X: MatrixLike) -> Array:
        """Log-probability of visible rows.

        Parameters
        ----------
        X : array-like (n, n_visible)
            Rows of 0 and 1.

        Returns
        -------
        ndarray (n,)
            log p(v), nats, exact.
        """
        model, X = self._checked(X)
        J, out = model.J, np.empty(len(X))
        W, b = model.matrices(self.lam_)
        for part, top, _, _ in model._hidden(W, b, X, np.full(len(X), 1.0 / len(X))):
            V = X[part]
            out[part] = V @ b[:J] + 0.5 * ((V @ W[:J, :J]) * V).sum(axis=1) + top
        return out - self.log_partition_

    def score(self, X: MatrixLike, y: Any = None) -> float:
        """Mean log-probability.

        Parameters
        ----------
        X : array-like (n, n_visible)
            Rows of 0 and 1.
        y : None
            Ignored.

        Returns
        -------
        float
            Nats per row.
        """
        return float(self.score_samples(X).mean())

    def transform(self, X: MatrixLike) -> Array:
        """Probabilities of the hidden units.

        Parameters
        ----------
        X : array-like (n, n_visible)
            Rows of 0 and 1.

        Returns
        -------
        ndarray (n, n_hidden)
            p(h_l = 1 | v).
        """
        model, X = self._checked(X)
        share = np.full(len(X), 1.0 / len(X))
        parts = model._hidden(*model.matrices(self.lam_), X, share)
        return np.concatenate([mean for _, _, mean, _ in parts])

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Independent draws of the visible units, exact.

        Parameters
        ----------
        n_samples : int, default=1
            Draws, >= 1.
        random_state : int, Generator, RandomState or None, default=None
            None takes the estimator's.

        Returns
        -------
        ndarray (n_samples, n_visible)
            Rows of 0 and 1.
        """
        check_is_fitted(self)
        rng = as_generator(self.random_state if random_state is None else random_state)
        model = self._model(self.n_features_in_)
        return model.sample(self.lam_, v.check_count("n_samples", n_samples), rng)


class LMEBoltzmannMachine(_Machine):
    """Boltzmann machine with hidden units, chosen among stationary points.

    ``p(v, h) = exp(x' W x / 2 + b . x) / Phi`` for binary units x = (v, h). EM-IS from
    many starts, polished by L-BFGS; gates; the choice by joint entropy or likelihood.
    Exact up to about 24 units.

    Parameters
    ----------
    n_hidden : int, default=2
        Hidden units, >= 1.
    n_init : int, default=20
        Random starts.
    selection : {"entropy", "likelihood"}, default="entropy"
        Choice among the admitted candidates.
    bias : bool, default=True
        Features x_i besides the products. Without (as in the paper) all states with at
        most one active unit are equally probable.
    mask : array-like of bool (n_units, n_units), optional
        Which pairs may have a weight, symmetric; visible units come first. None: all.
    prior_variance : float, default=10.0
        Variance of the Gaussian prior of each weight; inf leaves them free, and then
        pairs that never occur together drive weights to the bound.
    bound : float, default=15.0
        Weights stay within [-bound, bound].
    method : {"iis", "gis", "scgis", "newton", "cg", "lbfgs"}, default="iis"
        M step, as for :func:`em_is`.
    inner : int, default=4
        Steps of each M step.
    em_iter : int, default=20
        E steps before the polishing.
    tol : float, default=1e-6
        Relative gradient of an admitted candidate.
    max_iter : int, default=5000
        Bound on the iterations of the polishing.
    mi_tol : float, default=1e-4
        I(V; H) in nats above which a candidate counts as dependent.
    check_maximum : bool, default=True
        Admit local maxima only.
    random_state : int, Generator, RandomState or None, default=None
        Seed.
    n_jobs : int, optional
        Processes, through joblib; results do not depend on it.
    verbose : bool or int, default=False
        Print progress: time, solver, iteration, objective and how far from `tol`.

    Attributes
    ----------
    weights_ : ndarray (n_units, n_units)
        Symmetric weights with zero diagonal, visible units first.
    biases_ : ndarray (n_units,)
        Biases.
    lam_ : ndarray (n_weights,)
        The free weights: pairs in order, then biases.
    log_partition_ : float
        log Phi.
    at_bound_ : ndarray of int
        Entries of `lam_` at the bound.
    log_likelihood_, entropy_, objective_, residual_, candidates_, rejected_, \
selected_, candidate_weights_, n_iter_, converged_, n_features_in_
        As for :class:`LatentMaxEnt`.

    See Also
    --------
    LMERBM : Without pairs inside the layers.
    sklearn.neural_network.BernoulliRBM : Trained by persistent chains.

    Notes
    -----
    A pass costs 2^M for M units: about 2 ms at 20 units and 50 ms at 24.

    References
    ----------
    Wang, Schuurmans & Zhao (2012), section 7.2; Ackley, Hinton & Sejnowski (1985).

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.latent import LMEBoltzmannMachine
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(rng.integers(0, 2, size=(60, 1)), 4, axis=1)
    >>> X = np.abs(X - (rng.random(X.shape) < 0.1))
    >>> machine = LMEBoltzmannMachine(1, n_init=3, random_state=0).fit(X)
    >>> machine.transform(X[:2]).shape, machine.converged_
    ((2, 1), True)
    """

    def __init__(
        self,
        n_hidden: int = 2,
        n_init: int = 20,
        selection: Selection = "entropy",
        *,
        bias: bool = True,
        mask: ArrayLike | None = None,
        prior_variance: float = 10.0,
        bound: float = 15.0,
        method: MStep = "iis",
        inner: int = 4,
        em_iter: int = 20,
        tol: float = 1e-6,
        max_iter: int = 5000,
        mi_tol: float = 1e-4,
        check_maximum: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_hidden = n_hidden
        self.n_init = n_init
        self.selection = selection
        self.bias = bias
        self.mask = mask
        self.prior_variance = prior_variance
        self.bound = bound
        self.method = method
        self.inner = inner
        self.em_iter = em_iter
        self.tol = tol
        self.max_iter = max_iter
        self.mi_tol = mi_tol
        self.check_maximum = check_maximum
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _model(self, n_visible):
        M = n_visible + self.n_hidden
        free = np.ones((M, M), dtype=bool)
        if self.mask is not None:
            free = np.asarray(self.mask, dtype=bool).copy()
            if free.shape != (M, M) or (free != free.T).any():
                raise ValueError(
                    f"mask has shape {free.shape}; expected ({M}, {M}), symmetric: "
                    f"{n_visible} visible units and then {self.n_hidden} hidden ones."
                )
        np.fill_diagonal(free, bool(self.bias))
        return BoltzmannModel(n_visible, self.n_hidden, free)


class LMERBM(_Machine):
    """Restricted Boltzmann machine, chosen among stationary points.

    ``p(v, h) = exp(v' W h + b . v + c . h) / Phi``: no weights inside the layers. Given
    one layer the other is independent, so sums over the smaller layer are exact: one
    layer may be large, the other has at most 20 units.

    Parameters
    ----------
    n_hidden : int, default=4
        Hidden units, 1 to 20.
    n_init : int, default=20
        Random starts.
    selection : {"entropy", "likelihood"}, default="entropy"
        Choice among the admitted candidates.
    prior_variance : float, default=10.0
        Variance of the Gaussian prior of each weight.
    bound : float, default=15.0
        Weights stay within [-bound, bound].
    method : {"lbfgs", "cg", "gis", "iis"}, default="lbfgs"
        M step, as for :func:`em_is`.
    inner : int, default=4
        Steps of each M step.
    em_iter : int, default=10
        E steps before the polishing.
    tol : float, default=1e-6
        Relative gradient of an admitted candidate.
    max_iter : int, default=5000
        Bound on the iterations of the polishing.
    mi_tol : float, default=1e-4
        I(V; h_l) of the most informative hidden unit, nats, that counts as dependent.
    check_maximum : bool, default=True
        Admit local maxima only.
    random_state : int, Generator, RandomState or None, default=None
        Seed.
    n_jobs : int, optional
        Processes, through joblib; results do not depend on it.
    verbose : bool or int, default=False
        Print progress: time, solver, iteration, objective and how far from `tol`.

    Attributes
    ----------
    components_ : ndarray (n_hidden, n_visible)
        Weights between the layers.
    intercept_visible_, intercept_hidden_ : ndarray
        Biases of the layers.
    weights_, biases_, lam_, log_partition_, at_bound_, log_likelihood_, entropy_, \
objective_, residual_, candidates_, rejected_, selected_, candidate_weights_, n_iter_, \
converged_, n_features_in_
        As for :class:`LMEBoltzmannMachine`.

    See Also
    --------
    LMEBoltzmannMachine : Weights between all units.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.latent import LMERBM
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(rng.integers(0, 2, size=(60, 1)), 6, axis=1)
    >>> X = np.abs(X - (rng.random(X.shape) < 0.1))
    >>> LMERBM(1, n_init=2, random_state=0).fit(X).components_.shape
    (1, 6)
    """

    def __init__(
        self,
        n_hidden: int = 4,
        n_init: int = 20,
        selection: Selection = "entropy",
        *,
        prior_variance: float = 10.0,
        bound: float = 15.0,
        method: MStep = "lbfgs",
        inner: int = 4,
        em_iter: int = 10,
        tol: float = 1e-6,
        max_iter: int = 5000,
        mi_tol: float = 1e-4,
        check_maximum: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_hidden = n_hidden
        self.n_init = n_init
        self.selection = selection
        self.prior_variance = prior_variance
        self.bound = bound
        self.method = method
        self.inner = inner
        self.em_iter = em_iter
        self.tol = tol
        self.max_iter = max_iter
        self.mi_tol = mi_tol
        self.check_maximum = check_maximum
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _model(self, n_visible):
        J, M = n_visible, n_visible + self.n_hidden
        free = np.eye(M, dtype=bool)
        free[:J, J:] = free[J:, :J] = True
        return BoltzmannModel(J, self.n_hidden, free)

    def _keep(self, i):
        super()._keep(i)
        J = self.n_features_in_
        self.components_ = self.weights_[J:, :J].copy()
        self.intercept_visible_ = self.biases_[:J].copy()
        self.intercept_hidden_ = self.biases_[J:].copy()

    def gibbs(self, X: MatrixLike, random_state: Any = None) -> Array:
        """One step of block Gibbs sampling from visible rows.

        Parameters
        ----------
        X : array-like (n, n_visible)
            Rows of 0 and 1.
        random_state : int, Generator, RandomState or None, default=None
            Seed.

        Returns
        -------
        ndarray (n, n_visible)
            New rows.
        """
        rng = as_generator(random_state)
        hidden = self.transform(X)
        h = (rng.random(hidden.shape) < hidden).astype(np.float64)
        p = expit(h @ self.components_ + self.intercept_visible_)
        return (rng.random(p.shape) < p).astype(np.float64)
