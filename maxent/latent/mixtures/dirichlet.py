"""Mixtures of Dirichlet distributions by latent maximum entropy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, polygamma

from maxent._support import validation as v
from maxent._support.fitted import check_fitted
from maxent.families import Dirichlet
from maxent.families._checks import ROW_TOLERANCE
from maxent.families._matching import dirichlet_from_mean_logs
from maxent.latent._pool import Selection
from maxent.latent.mixtures._gaussian_em import largest_ratio
from maxent.latent.mixtures._mixture_base import CandidateMixture
from maxent.latent.mixtures.lme_mixture_em import (
    Step,
    mean_posterior_entropy,
    weight_entropy,
)

Array = NDArray[np.float64]
_VANISHED = 1e-10  # share of the weight
_CONCENTRATED = 1e8  # sum of shapes at which the rows of a component are all equal
_STARTS = np.array([0.1, 0.5, 1.0, 2.5, 5.0])


class DirichletEM:
    """EM on parameter vectors (log weights, log shapes); features log y_l 1[z = k]."""

    def __init__(self, X, w, K):
        self.log_y, self.w, self.W, self.K = np.log(X), w, float(w.sum()), K
        self.n, self.M = X.shape

    def unpack(self, phi):
        log_theta = phi[:, : self.K]
        theta = np.exp(log_theta - log_theta.max(axis=1, keepdims=True))
        theta /= theta.sum(axis=1, keepdims=True)
        alpha = np.exp(np.clip(phi[:, self.K :], -300.0, 300.0))
        return theta, alpha.reshape(len(phi), self.K, self.M)

    def pack(self, theta, alpha):
        return np.hstack([np.log(theta), np.log(alpha).reshape(len(alpha), -1)])

    def _log_joint(self, theta, alpha):
        """(R, K, n)."""
        constant = gammaln(alpha.sum(axis=-1)) - gammaln(alpha).sum(axis=-1)
        return (alpha - 1.0) @ self.log_y.T + (constant + np.log(theta))[..., None]

    def em(self, phi: Array) -> Step:
        """One EM step of every restart."""
        theta, alpha = self.unpack(phi)
        u = self._log_joint(theta, alpha)
        top = np.logaddexp.reduce(u, axis=1)
        rho = np.exp(u - top[:, None]) * self.w
        n = rho.sum(axis=-1)
        g = (rho @ self.log_y) / np.maximum(n, 1e-300)[..., None]
        objective = top @ self.w / self.W
        # rows of a component that are all equal have no finite shapes
        sound = (n > _VANISHED * self.W) & (np.exp(g).sum(axis=-1) < 1.0 - 1e-14)
        new = alpha.copy()
        new[sound] = dirichlet_from_mean_logs(g[sound])
        sound &= new.sum(axis=-1) < _CONCENTRATED
        share = np.maximum(n / self.W, 1e-300)
        residual = self._residual(theta, alpha, share, g)
        broken = ~sound.all(axis=1) | ~np.isfinite(objective)
        size = np.abs(gammaln(alpha.sum(axis=-1))).max(axis=-1)
        return Step(objective, self.pack(share, new), residual, broken, size)

    def _residual(self, theta, alpha, share, g):
        """Largest difference of the means of the features, in standard deviations.

        Features are 1 and log y_l less its mean under the component, times 1[z = k].
        """
        with np.errstate(all="ignore"):  # far extrapolations
            sd = np.sqrt(polygamma(1, alpha) - polygamma(1, alpha.sum(-1))[..., None])
            shift = (np.abs(g - _mean_log(alpha)) / sd).max(axis=-1)
            off = np.abs(share - theta) / np.sqrt(theta)
            worst = np.maximum(off, share / np.sqrt(theta) * shift).max(axis=-1)
        return np.where(np.isnan(worst), np.inf, worst)

    def entropy(self, phi):
        """H(theta) + sum theta_k h(a_k), (R,)."""
        theta, alpha = self.unpack(phi)
        s = alpha.sum(axis=-1)
        own = gammaln(alpha).sum(axis=-1) - gammaln(s)
        own += (s - self.M) * digamma(s) - ((alpha - 1) * digamma(alpha)).sum(axis=-1)
        return np.sum(theta * (own - np.log(theta)), axis=-1)

    def posteriors(self, phi):
        """rho (K, n) of one restart."""
        theta, alpha = self.unpack(phi[None])
        u = self._log_joint(theta, alpha)[0]
        return np.exp(u - np.logaddexp.reduce(u, axis=0))

    def missing_share(self, phi):
        """Largest share of missing information, as for Gaussian mixtures."""
        rho = self.posteriors(phi)
        theta, alpha = (a[0] for a in self.unpack(phi[None]))
        w, p = self.w / self.W, self.M + 1
        size = self.K * p
        inner, complete, e = np.zeros((size, size)), np.zeros((size, size)), []
        given = np.empty((size, self.n))
        for k in range(self.K):
            part = slice(k * p, (k + 1) * p)
            mean = _mean_log(alpha[k])
            stats = np.vstack([np.ones(self.n), self.log_y.T - mean[:, None]])
            given[part] = rho[k] * stats
            inner[part, part] = (stats * (w * rho[k])) @ stats.T
            M = np.zeros((p, p))
            M[0, 0] = 1.0
            M[1:, 1:] = np.diag(polygamma(1, alpha[k])) - polygamma(1, alpha[k].sum())
            complete[part, part] = theta[k] * M
            e.append(theta[k] * M[:, 0])
        missing = inner - (given * w) @ given.T
        mean = np.concatenate(e)
        complete -= np.outer(mean, mean)
        keep = np.arange(size) != 0
        return largest_ratio(missing[np.ix_(keep, keep)], complete[np.ix_(keep, keep)])


def _mean_log(alpha):
    return digamma(alpha) - digamma(alpha.sum(axis=-1, keepdims=True))


class LMEDirichletMixture(CandidateMixture):
    """Mixture of Dirichlet distributions chosen among stationary points.

    Rows are proportions. As :class:`LMEGaussianMixture`: EM from many starts, gates,
    and the choice by joint entropy or likelihood.

    Parameters
    ----------
    n_components : int, default=1
        Components, >= 1.
    n_init : int, default=20
        Random starts: shapes from {.1, .5, 1, 2.5, 5}, weights uniform on the simplex.
    selection : {"entropy", "likelihood"}, default="entropy"
        Choice among the admitted candidates; see ``select``.
    smoothing : float, default=0.0
        c >= 0: rows become (y + c) / (1 + M c). Zeros need it.
    tol : float, default=1e-6
        Relative gradient of an admitted candidate, as for :class:`LMEGaussianMixture`.
    max_iter : int, default=10000
        Bound on the EM steps of a start.
    mi_tol : float, default=1e-4
        I(Y; Z) in nats above which a candidate counts as dependent; -1 admits all.
    check_maximum : bool, default=True
        Admit local maxima only.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the starts, and of ``sample``.
    n_jobs : int, optional
        Not used; kept so that parameters agree with :class:`LMEGaussianMixture`.
    verbose : bool or int, default=False
        Print progress: time, solver, iteration, objective and how far from `tol`.

    Attributes
    ----------
    weights_ : ndarray (n_components,)
        Weights of the components.
    alphas_ : ndarray (n_components, n_features)
        Shapes.
    log_likelihood_, entropy_, objective_, lower_bound_, residual_, candidates_, \
rejected_, selected_, n_iter_, converged_, objective_history_, n_features_in_
        As for :class:`LMEGaussianMixture`; densities and entropies are with respect to
        the first n_features - 1 proportions.
    candidate_weights_, candidate_alphas_ : ndarray
        Parameters of all candidates.

    See Also
    --------
    maxent.families.Dirichlet : One component.

    References
    ----------
    Wang, Schuurmans & Zhao (2012), section 7.1; Minka (2000), Estimating a Dirichlet
    distribution.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.latent import LMEDirichletMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.dirichlet([2, 5, 1], 80), rng.dirichlet([9, 2, 3], 80)])
    >>> model = LMEDirichletMixture(2, random_state=0).fit(X)
    >>> model.alphas_.shape, model.converged_
    ((2, 3), True)
    """

    def __init__(
        self,
        n_components: int = 1,
        n_init: int = 20,
        selection: Selection = "entropy",
        *,
        smoothing: float = 0.0,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        mi_tol: float = 1e-4,
        check_maximum: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.n_init = n_init
        self.selection = selection
        self.smoothing = smoothing
        self.tol = tol
        self.max_iter = max_iter
        self.mi_tol = mi_tol
        self.check_maximum = check_maximum
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags

    def _check_settings(self):
        super()._check_settings()
        v.check_nonnegative("smoothing", self.smoothing)

    def _proportions(self, X):
        """Rows inside the simplex, smoothed as asked."""
        X = np.asarray(X, dtype=np.float64)
        if X.shape[1] < 2:
            raise ValueError(
                f"X has {X.shape[1]} feature(s), but proportions need a minimum of 2."
            )
        if (X < 0).any():
            i, j = np.argwhere(X < 0)[0]
            raise ValueError(
                f"Negative values in data passed to X: X[{i}, {j}]={X[i, j]:g}; rows "
                "must be proportions >= 0."
            )
        total = X.sum(axis=1)
        off = np.abs(total - 1.0) > ROW_TOLERANCE
        if off.any():
            i = int(np.flatnonzero(off)[0])
            raise ValueError(
                f"row {i} of X sums to {total[i]:.8g}; rows must sum to one within "
                f"{ROW_TOLERANCE:g}: divide them by their sums."
            )
        X = X / total[:, None]
        c = float(self.smoothing)
        X = (X + c) / (1.0 + X.shape[1] * c)
        if (X == 0).any():
            i, j = np.argwhere(X == 0)[0]
            raise ValueError(
                f"X[{i}, {j}]=0 is on the edge of the simplex, where the likelihood "
                "has no maximum; set smoothing > 0, such as 1e-3."
            )
        return X

    def _problem(self, X, weight):
        X = self._proportions(X)
        if np.ptp(X, axis=0).max() == 0.0:
            raise ValueError("all rows of X are equal; the shapes would be infinite.")
        return DirichletEM(X, weight, self.n_components)

    def _start(self, problem, X, weight, rng):
        theta = np.maximum(rng.dirichlet(np.ones(problem.K)), 1e-3)
        alpha = rng.choice(_STARTS, size=(1, problem.K, problem.M))
        return problem.pack(theta[None] / theta.sum(), alpha)[0]

    def _ends(self, problem, runs, sound):
        theta, _ = problem.unpack(runs.phi)
        with np.errstate(all="ignore"):
            entropy = np.where(sound, problem.entropy(runs.phi), -np.inf)
        dependence = np.full(len(sound), np.nan)
        for r in np.flatnonzero(sound):
            rho = problem.posteriors(runs.phi[r])
            left = mean_posterior_entropy(rho, problem.w, problem.W)
            dependence[r] = weight_entropy(theta[r]) - left
        return runs.objective, entropy, dependence, entropy.copy()

    def _candidate_parameters(self, problem, phi):
        self.candidate_weights_, self.candidate_alphas_ = problem.unpack(phi)

    def _keep(self, i):
        self.weights_ = self.candidate_weights_[i].copy()
        self.alphas_ = self.candidate_alphas_[i].copy()
        self.n_iter_ = int(self.candidates_["n_iter"][i])

    def _components(self):
        check_fitted("alphas_", self.alphas_, (len(self.weights_), self.n_features_in_))
        return Dirichlet(self.alphas_)

    def _component(self, k):
        return self._components()[k]

    def _log_joint(self, X):
        X = self._proportions(X)
        return self._components().log_prob(X).T + np.log(self.weights_)

    def _n_parameters(self):
        K, M = self.alphas_.shape
        return K * M + K - 1
