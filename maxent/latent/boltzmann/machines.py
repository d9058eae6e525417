"""Boltzmann machines with hidden units by latent maximum entropy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from maxent._support.fitted import check_fitted
from maxent._support.random_state import as_generator
from maxent._support.typing import MatrixLike
from maxent._support.underflow import allow_underflow
from maxent.latent._em_is import MStep
from maxent.latent._pool import Selection
from maxent.latent.boltzmann._boltzmann_base import Machine, Moments
from maxent.latent.boltzmann._boltzmann_model import BoltzmannModel, check_units

Array = NDArray[np.float64]


class LMEBoltzmannMachine(Machine):
    """Boltzmann machine with hidden units, chosen among stationary points.

    ``p(v, h) = exp(x' W x / 2 + b . x) / Phi`` for binary units x = (v, h). EM-IS from
    many starts, polished by L-BFGS; gates; the choice by joint entropy or likelihood.
    Exact up to about 24 units, by Gibbs chains beyond.

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
        Admit local maxima only; not with sampled moments.
    moments : {"exact", "sampled"}, default="exact"
        Sums over all states, or estimates by persistent Gibbs chains for machines that
        cannot be enumerated.
    n_chains : int, default=400
        Chains, with ``moments="sampled"``.
    n_updates : int, default=2000
        Updates of the weights, each with a sweep of the chains.
    n_temperatures : int, default=1000
        Steps of the annealing that estimates log Phi.
    sampled_tol : float, default=0.05
        Relative gradient of an admitted candidate with sampled moments, whose estimate
        and three of its standard errors must be within it.
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
    log_partition_, log_partition_error_ : float
        log Phi, and the standard error of its estimate, 0 where it is exact.
    ties_ : ndarray of int
        With sampled moments: rows of `candidates_` whose entropy or likelihood is
        within two standard errors of the chosen one's.
    at_bound_ : ndarray of int
        Entries of `lam_` at the bound.
    log_likelihood_, entropy_, objective_, residual_, candidates_, rejected_, \
selected_, candidate_weights_, n_iter_, converged_, objective_history_, n_features_in_
        As for :class:`LatentMaxEnt`; `objective_history_` only with
        ``moments="exact"``.

    See Also
    --------
    LMERBM : Without pairs inside the layers.
    sklearn.neural_network.BernoulliRBM : Trained by persistent chains.

    Notes
    -----
    A pass costs 2^M for M units: about 2 ms at 20 units and 50 ms at 24.

    With ``moments="sampled"`` the weights follow the stochastic gradient of persistent
    chains, reweighted as the model changes and replaced by annealed ones twenty times,
    from starts near independent units; the E step stays exact, which needs at
    most 20 hidden units or a mask without pairs among them. New chains, annealed from
    independent units, evaluate each candidate. Log-likelihood, entropy and log Phi are
    then estimates: `candidates_` has the columns "log_likelihood_error",
    "entropy_error" (standard errors), "log_partition", "residual_error",
    "effective_chains" (equal weights as good as those of the annealing; below 20 the
    candidate counts as not converged), and no "group". "residual" and `residual_`
    include three standard errors. `inner` is the number of updates per E step;
    `method`, `em_iter`, `tol` and `max_iter` have no part. An estimate of log Phi by
    chains that miss a mode is too low, and its error does not say so.

    References
    ----------
    Wang, Schuurmans & Zhao (2012), section 7.2; Ackley, Hinton & Sejnowski (1985);
    Tieleman (2008), persistent chains; Neal (2001), annealed importance sampling.

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
        moments: Moments = "exact",
        n_chains: int = 400,
        n_updates: int = 2000,
        n_temperatures: int = 1000,
        sampled_tol: float = 0.05,
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
        self.moments = moments
        self.n_chains = n_chains
        self.n_updates = n_updates
        self.n_temperatures = n_temperatures
        self.sampled_tol = sampled_tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _model(self, n_visible):
        M, sampled = n_visible + self.n_hidden, self.moments == "sampled"
        if self.mask is None:  # before anything of that size is made
            alone = self.n_hidden == 1
            check_units(
                n_visible, self.n_hidden, alone, alone and n_visible == 1, sampled
            )
            free = np.ones((M, M), dtype=bool)
        else:
            free = np.asarray(self.mask, dtype=bool).copy()
            if free.shape != (M, M) or (free != free.T).any():
                raise ValueError(
                    f"mask has shape {free.shape}; expected ({M}, {M}), symmetric: "
                    f"{n_visible} visible units and then {self.n_hidden} hidden ones."
                )
        np.fill_diagonal(free, bool(self.bias))
        return BoltzmannModel(n_visible, self.n_hidden, free, self.moments)


class LMERBM(Machine):
    """Restricted Boltzmann machine, chosen among stationary points.

    ``p(v, h) = exp(v' W h + b . v + c . h) / Phi``: no weights inside the layers. Given
    one layer the other is independent, so sums over the smaller layer are exact: one
    layer may be large, the other has at most 20 units.

    Parameters
    ----------
    n_hidden : int, default=4
        Hidden units, >= 1.
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
        Admit local maxima only; not with sampled moments.
    moments : {"exact", "sampled"}, default="exact"
        Sums over all states, or estimates by persistent Gibbs chains for machines that
        cannot be enumerated.
    n_chains : int, default=400
        Chains, with ``moments="sampled"``.
    n_updates : int, default=2000
        Updates of the weights, each with a sweep of the chains.
    n_temperatures : int, default=1000
        Steps of the annealing that estimates log Phi.
    sampled_tol : float, default=0.05
        Relative gradient of an admitted candidate with sampled moments, whose estimate
        and three of its standard errors must be within it.
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
    weights_, biases_, lam_, log_partition_, log_partition_error_, ties_, at_bound_, \
log_likelihood_, entropy_, objective_, residual_, candidates_, rejected_, selected_, \
candidate_weights_, n_iter_, converged_, objective_history_, n_features_in_
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
        moments: Moments = "exact",
        n_chains: int = 400,
        n_updates: int = 2000,
        n_temperatures: int = 1000,
        sampled_tol: float = 0.05,
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
        self.moments = moments
        self.n_chains = n_chains
        self.n_updates = n_updates
        self.n_temperatures = n_temperatures
        self.sampled_tol = sampled_tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _model(self, n_visible):
        J, M = n_visible, n_visible + self.n_hidden
        check_units(J, self.n_hidden, True, True, self.moments == "sampled")
        free = np.eye(M, dtype=bool)
        free[:J, J:] = free[J:, :J] = True
        return BoltzmannModel(J, self.n_hidden, free, self.moments)

    def _keep(self, i):
        super()._keep(i)
        J = self.n_features_in_
        self.components_ = self.weights_[J:, :J].copy()
        self.intercept_visible_ = self.biases_[:J].copy()
        self.intercept_hidden_ = self.biases_[J:].copy()

    @allow_underflow
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
        shape = h.shape[1], self.n_features_in_
        check_fitted("components_", self.components_, shape)
        check_fitted("intercept_visible_", self.intercept_visible_, shape[1:])
        p = expit(h @ self.components_ + self.intercept_visible_)
        return (rng.random(p.shape) < p).astype(np.float64)
