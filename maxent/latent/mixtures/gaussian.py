"""Mixtures of Gaussians by latent maximum entropy, maximum likelihood or MAP."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._inputs.estimator_input import validated
from maxent._support import validation as v
from maxent._support.fitted import check_fitted
from maxent._support.random_state import as_generator
from maxent._support.shares import quadratic_shares
from maxent._support.underflow import allow_underflow
from maxent.families import DiagonalGaussian, Gaussian, SphericalGaussian
from maxent.latent._pool import Selection
from maxent.latent.mixtures._gaussian_em import GaussianEM
from maxent.latent.mixtures._mixture_base import CandidateMixture
from maxent.latent.mixtures._mixture_prior import MixturePrior
from maxent.latent.mixtures._partitioned_gaussian import PartitionedGaussianEM
from maxent.latent.mixtures.lme_mixture_em import weight_entropy
from maxent.models._component_search import (
    ComponentSearch,
    groups_of_rows,
    some_rows,
)

Array = NDArray[np.float64]
_FAMILIES: dict[str, type[Any]] = {
    "full": Gaussian,
    "diag": DiagonalGaussian,
    "spherical": SphericalGaussian,
}
_KINDS = tuple(_FAMILIES)
_STARTS = ("split-merge", "random_from_data", "k-means++", "kmeans", "random")
_REPAIR_SMOOTHING = 3.0  # rows that the prior of moves between components counts as


class LMEGaussianMixture(CandidateMixture):
    """Gaussian mixture chosen among stationary points of the likelihood.

    EM from many starts gives many feasible models; gates admit the local maxima that
    have converged, keep all components apart and let none vanish. Of these the one of
    largest joint entropy (latent maximum entropy), or of largest likelihood, is kept.
    Methods and attributes are those of :class:`sklearn.mixture.GaussianMixture`; the
    notes say which parameters differ.

    Parameters
    ----------
    n_components : int, default=1
        Components, >= 1; 1 has a closed form.
    covariance_type : {"full", "diag", "spherical"}, default="full"
        Covariance matrices; "spherical" has one variance per component.
    n_init : int, default=20
        Random starts, >= 1, run as one batch. Start i depends on `random_state` and i
        only, so that 20 starts extend 10.
    selection : {"entropy", "likelihood"}, default="entropy"
        Choice among the admitted candidates; see ``select``.
    prior : MixturePrior, "weak" or None, default=None
        Prior of weights, means and covariances: maximum a posteriori estimates, and
        the regularised entropy for the choice. "weak" is ``MixturePrior.weak(X,
        sample_weight, groups)`` with groups of a search like that for starts; with it
        rows may lie in a plane.
    init_params : {"split-merge", "random_from_data", "k-means++", "kmeans", \
"random"}, default="split-merge"
        Starts: partitions of k-means of which two components are merged and a third one
        is split where that gains more than a nat, so that every start finds groups
        that lie apart (two components start as with "random_from_data"); means at
        random rows, at rows far apart or at the centres of k-means, with the pooled
        covariance; or random posteriors.
    weights_init : array-like (n_components,), optional
        Weights of a further start; needs `means_init`.
    means_init : array-like (n_components, n_features), optional
        Means of a further start.
    precisions_init : array-like, optional
        Precisions of a further start, shaped as `precisions_`.
    tol : float, default=1e-6
        Relative gradient of an admitted candidate: what is unmet of the moments of each
        component, in its own standard deviations.
    max_iter : int, default=10000
        Bound on the EM steps of a start.
    mi_tol : float, default=1e-4
        I(Y; Z) in nats above which a candidate counts as dependent; -1 admits all.
    check_maximum : bool, default=True
        Admit local maxima only; False is the literal principle.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the starts, and of ``sample``.
    n_jobs : int, optional
        Threads, one start each. Results do not depend on it.
    verbose : bool or int, default=False
        Print progress: time, solver, iteration, objective and how far from `tol`.

    Attributes
    ----------
    weights_ : ndarray (n_components,)
        Weights of the components.
    means_ : ndarray (n_components, n_features)
        Means.
    covariances_, precisions_, precisions_cholesky_ : ndarray
        (n_components, n_features, n_features); (n_components, n_features) for "diag"
        and (n_components,) for "spherical".
    log_likelihood_ : float
        Mean log-likelihood per row of the chosen candidate.
    entropy_ : float
        Joint entropy of the chosen candidate, in nats.
    objective_, lower_bound_ : float
        Mean log-likelihood, plus the log prior of :class:`MixturePrior` over the sum of
        the weights of the rows.
    residual_ : float
        Relative gradient of the chosen candidate.
    candidates_ : dict of ndarray (n_starts,)
        Columns as for :class:`LatentMaxEnt`; "curvature" is the largest share of
        missing information less one, above 0 at a saddle.
    rejected_ : dict {str: int}
        Candidates rejected by each gate.
    candidate_weights_, candidate_means_, candidate_covariances_ : ndarray
        Parameters of all candidates.
    selected_ : int
        Row of the chosen candidate.
    n_iter_ : int
        EM steps of the chosen candidate.
    converged_ : bool
        Whether the chosen candidate has converged: always, unless a callback has
        stopped the fit.
    objective_history_, lower_bounds_ : ndarray
        Best objective of all starts after each step.
    n_features_in_, feature_names_in_
        As usual.

    See Also
    --------
    sklearn.mixture.GaussianMixture : Maximum likelihood, one start by default.
    LMEDirichletMixture : Rows of proportions.

    Notes
    -----
    A pass costs O(R n K d^2) for R starts. Entropies compare candidates of one model on
    one data set; they cannot choose the number of components. The choice by entropy was
    better with few rows and worse with many: compare both.

    Of the parameters of :class:`sklearn.mixture.GaussianMixture` four are missing:
    covariances "tied"; `reg_covar`, as gates reject components that vanish and a prior
    keeps them from it (``prior="weak"``); `warm_start`, for which `means_init`,
    `weights_init` and `precisions_init` take what an earlier fit has found; and
    `verbose_interval`, as lines of progress come by time. `tol` is a relative
    gradient, not a gain in likelihood.

    References
    ----------
    Wang, Schuurmans & Zhao (2012), The latent maximum entropy principle, sections 5,
    6 and 9.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent import LMEGaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(size=(50, 2)), rng.normal(size=(50, 2)) + 4])
    >>> model = LMEGaussianMixture(2, random_state=0).fit(X)
    >>> model.weights_.round(1), sorted(model.rejected_)[0]
    (array([0.5, 0.5]), 'independent')
    """

    def __init__(
        self,
        n_components: int = 1,
        covariance_type: Literal["full", "diag", "spherical"] = "full",
        n_init: int = 20,
        selection: Selection = "entropy",
        *,
        prior: MixturePrior | Literal["weak"] | None = None,
        init_params: Literal[
            "split-merge", "random_from_data", "k-means++", "kmeans", "random"
        ] = "split-merge",
        weights_init: ArrayLike | None = None,
        means_init: ArrayLike | None = None,
        precisions_init: ArrayLike | None = None,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        mi_tol: float = 1e-4,
        check_maximum: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.n_init = n_init
        self.selection = selection
        self.prior = prior
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.tol = tol
        self.max_iter = max_iter
        self.mi_tol = mi_tol
        self.check_maximum = check_maximum
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_settings(self):
        super()._check_settings()
        v.check_choice("covariance_type", self.covariance_type, _KINDS)
        v.check_choice("init_params", self.init_params, _STARTS)
        if not (
            self.prior is None
            or isinstance(self.prior, MixturePrior)
            or (isinstance(self.prior, str) and self.prior == "weak")
        ):
            raise ValueError(
                f"prior={v.shown(self.prior)} must be None, 'weak' or a MixturePrior."
            )

    def _has_prior(self):
        return self.prior is not None

    @property
    def _bound(self):
        if self.prior is None:
            return "use prior='weak', or more data"
        return "use covariance_type='diag', a stronger MixturePrior, or fewer columns"

    def _problem(self, X, weight):
        weak = isinstance(self.prior, str)
        prior = self._weak_prior(X, weight) if weak else self.prior
        return GaussianEM(
            X, weight, self.n_components, self.covariance_type, prior, self.n_jobs
        )

    def _weak_prior(self, X, weight):
        (rng,) = as_generator(self.random_state).spawn(1)
        labels = groups_of_rows(X, weight, self.n_components, rng)
        return MixturePrior.weak(X, weight, labels)

    def _part_problem(self, X, sample_weight):
        prior = self._weak_prior if isinstance(self.prior, str) else self.prior
        problem = PartitionedGaussianEM(
            X, sample_weight, self.n_components, self.covariance_type, prior
        )
        return problem, *problem.sample

    def _starts(self, problem, X, weight, rngs):
        if self.init_params == "random":
            return self._random_starts(problem, rngs)
        if self.init_params == "split-merge" and self.n_components > 2:
            return self._repaired_starts(problem, X, weight, rngs)
        K, d = self.n_components, problem.d
        y, p = problem.y[:, : problem.n].T, weight / weight.sum()
        theta = np.empty((len(rngs), K))
        mean = np.empty((len(rngs), K, d))
        for r, rng in enumerate(rngs):
            theta[r] = np.maximum(rng.dirichlet(np.ones(K)), 1e-3)
            if self.init_params in ("random_from_data", "split-merge"):
                mean[r] = y[rng.choice(problem.n, size=K, replace=False, p=p)]
            else:
                mean[r] = _centres(y, p, K, self.init_params, rng)
        one = np.ones(d) if problem.diagonal else np.eye(d)
        factor = np.broadcast_to(one, (len(rngs), K, *one.shape))
        return problem.pack(theta / theta.sum(axis=1, keepdims=True), mean, factor)

    def _repaired_starts(self, problem, X, weight, rngs):
        """Partitions of k-means, with components merged and split.

        The search sees the columns as they are, among which some may show no group.
        """
        family = _FAMILIES[self.covariance_type]
        X, weight = some_rows(X, weight, self.n_components, rngs[0])
        # no near misses are tried: they raise the likelihood, and entropy chooses
        options = _REPAIR_SMOOTHING, {}, 0
        search = ComponentSearch(X, weight, family, self.n_components, *options)
        points = [search.start(rng).point for rng in rngs]
        theta = np.stack([weights for weights, _ in points])
        mean = np.stack([problem.standardised(batch.mean) for _, batch in points])
        spread = np.stack([batch._covariances() for _, batch in points])
        # one column for every unit vector
        A = (problem.standardised(np.eye(problem.d)) - problem.standardised(0.0)).T
        if self.covariance_type == "full":
            spread = A @ spread @ A.T
        else:
            spread = spread if self.covariance_type == "diag" else spread[..., None]
            spread = spread * np.diag(A) ** 2
        return problem.pack(theta, mean, problem.factors(spread)[0])

    def _random_starts(self, problem, rngs):
        """M steps from random posteriors."""
        R, K, d = len(rngs), self.n_components, problem.d
        y, w = problem.y[:, : problem.n].T, problem.w[: problem.n]
        i, j = (np.arange(d),) * 2 if problem.diagonal else np.indices((d, d))
        products = y[:, i.ravel()] * y[:, j.ravel()]
        stats = np.hstack([np.ones((problem.n, 1)), y, products])
        sums = np.empty((R, K, stats.shape[1]))
        for r, rng in enumerate(rngs):
            rho = rng.random((K, problem.n))
            sums[r] = (rho * (w / rho.sum(axis=0))) @ stats
        n, s1, s2 = sums[..., 0], sums[..., 1 : d + 1], sums[..., d + 1 :]
        s2 = s2.reshape(R, K, *i.shape)
        theta, mean, cov = problem.m_step(np.zeros((R, K, d)), n, s1, s2)
        return problem.pack(theta, mean, problem.factors(cov)[0])

    def _given(self, problem):
        if self.means_init is None:
            if self.weights_init is not None or self.precisions_init is not None:
                raise ValueError(
                    "weights_init and precisions_init need means_init, with which they "
                    "make one further start."
                )
            return []
        K, d = self.n_components, problem.d
        mean = _shaped("means_init", self.means_init, (K, d))
        theta = np.full(K, 1.0 / K)
        if self.weights_init is not None:
            theta = _shaped("weights_init", self.weights_init, (K,))
            if (theta <= 0).any() or abs(theta.sum() - 1.0) > 1e-6:
                raise ValueError("weights_init must be > 0 and sum to one.")
        mean = problem.standardised(mean)
        one = np.ones(d) if problem.diagonal else np.eye(d)
        factor = np.broadcast_to(one, (K, *one.shape))
        if self.precisions_init is not None:
            factor = self._given_factor(problem, K, d)
        return [problem.pack(theta[None], mean[None], factor[None])]

    def _given_factor(self, problem, K, d):
        shape = {"full": (K, d, d), "diag": (K, d), "spherical": (K,)}
        P = _shaped("precisions_init", self.precisions_init, shape[problem.kind])
        if problem.kind == "full":
            half = np.linalg.solve(problem.scale, np.linalg.inv(P))
            cov = np.linalg.solve(problem.scale, half.swapaxes(-2, -1))
            return problem.factors(cov)[0]
        P = P[:, None] * np.ones(d) if problem.kind == "spherical" else P
        if (P <= 0).any():
            raise ValueError("precisions_init must be > 0.")
        return 1.0 / np.sqrt(P) / problem.scale

    def _direction(self, problem, phi, noise):
        K, d = problem.K, problem.d
        _, _, factor = (part[0] for part in problem.unpack(phi[None]))
        means = noise[K : K + K * d].reshape(K, d)
        entries = noise[K + K * d :].reshape(K, -1)
        if problem.diagonal:
            means *= factor
            if problem.kind == "spherical":  # one variance of a component moves as one
                entries[:] = entries[:, :1]
            return noise
        means[:] = (factor @ means[..., None])[..., 0]
        turn = np.zeros_like(factor)
        turn[:, problem.tril[0], problem.tril[1]] = entries
        below = problem.tril[0] != problem.tril[1]  # the diagonal has logs
        turned = (factor @ turn)[:, problem.tril[0], problem.tril[1]]
        entries[:, below] = turned[:, below]
        return noise

    def _log_det(self, problem):
        return problem.log_det

    def _ends(self, problem, runs, sound):
        """Likelihood, entropy, dependence and regularised entropy of the ends."""
        R = len(sound)
        L = runs.objective - problem.log_det
        theta, mean, factor = problem.unpack(runs.phi)
        if problem.prior is not None:
            L = L - problem.log_prior(theta, mean, factor) / problem.W
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = np.where(sound, problem.entropy(runs.phi), -np.inf)
        dependence, regularized = np.full(R, np.nan), entropy.copy()
        for r in np.flatnonzero(sound):
            left = problem.left_entropy(runs.phi[r])
            dependence[r] = weight_entropy(theta[r]) - left
            if problem.prior is not None:
                regularized[r] = left - (runs.objective[r] - problem.log_det)
        return L, entropy, dependence, regularized

    def _candidate_parameters(self, problem, phi):
        theta, mean, factor = problem.unpack(phi)
        self.candidate_weights_ = theta
        self.candidate_means_ = problem.in_units(mean)
        if problem.diagonal:
            cov = (factor * problem.scale) ** 2
            if problem.kind == "spherical":
                cov = cov[..., 0]
        else:
            factor = problem.scale @ factor
            cov = factor @ factor.swapaxes(-2, -1)
        self.candidate_covariances_ = cov

    def _keep(self, i):
        self.weights_ = self.candidate_weights_[i].copy()
        self.means_ = self.candidate_means_[i].copy()
        cov = self.covariances_ = self.candidate_covariances_[i].copy()
        if self.covariance_type == "full":
            eye = np.eye(cov.shape[-1])
            root = np.linalg.solve(
                np.linalg.cholesky(cov), np.broadcast_to(eye, cov.shape)
            ).swapaxes(-2, -1)
            self.precisions_cholesky_ = root
            self.precisions_ = root @ root.swapaxes(-2, -1)
        else:
            self.precisions_cholesky_ = 1.0 / np.sqrt(cov)
            self.precisions_ = 1.0 / cov
        self.n_iter_ = int(self.candidates_["n_iter"][i])

    # -- the model ---------------------------------------------------------------------
    def _components(self):
        """All components, as one batch of a family."""
        K, d = len(self.weights_), self.n_features_in_
        check_fitted("means_", self.means_, (K, d))
        v.check_choice("covariance_type", self.covariance_type, _KINDS)
        family = _FAMILIES[self.covariance_type]
        shape = {"full": (K, d, d), "diag": (K, d), "spherical": (K,)}[
            self.covariance_type
        ]
        check_fitted("covariances_", self.covariances_, shape)
        return family(self.means_, self.covariances_)

    def _component(self, k):
        return self._components()[k]

    @allow_underflow
    def feature_scores(self, X: ArrayLike) -> Array:
        """Shares of the columns in the scores of rows: the most negative ones say why.

        Parameters
        ----------
        X : array-like (n, n_features)
            Rows, as for `score_samples`.

        Returns
        -------
        ndarray (n, n_features)
            In nats. With z_k the deviation from the mean of component k, P_k its
            precision and q the responsibilities of the row, the share of column j is
            ``-sum_k q_k z_kj (P_k z_k)_j / 2``: the mean of its Shapley values in the
            components. Rows sum to ``score_samples(X)`` less ``sum_k q_k (log theta_k +
            log p_k(mean_k)) - sum_k q_k log q_k``, for an outlier nearly the score at
            the mean of its likeliest component.

        See Also
        --------
        maxent.discrimination.MEDOutlierDetector : Its shares, with references.

        Examples
        --------
        >>> import numpy as np
        >>> from maxent import LMEGaussianMixture
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> shares = LMEGaussianMixture().fit(X).feature_scores([[0.1, 6.0, -0.2]])
        >>> int(shares.argmin())
        1
        """
        q = self.predict_proba(X)
        rows = validated(self, X, dtype=np.float64, reset=False)
        batch = self._components()
        shares = np.zeros(rows.shape)
        for k, cov in enumerate(self.covariances_):
            precision = np.linalg.inv(cov) if np.ndim(cov) == 2 else 1.0 / cov
            own = quadratic_shares(rows - batch.mean[k], np.asarray(precision))
            shares -= 0.5 * q[:, k, None] * own
        return shares

    def _log_joint(self, X):
        return self._components().log_prob(X).T + np.log(self.weights_)

    def _n_parameters(self):
        K, d = self.means_.shape
        each = {"full": d * (d + 1) // 2, "diag": d, "spherical": 1}
        return K * (d + each[self.covariance_type]) + K - 1


def _centres(y, p, K, kind, rng):
    """Means (K, d) by k-means or its first step, from rows with shares p."""
    from sklearn.cluster import KMeans, kmeans_plusplus

    seed = int(rng.integers(2**31))
    if kind == "k-means++":
        return kmeans_plusplus(y, K, sample_weight=p, random_state=seed)[0]
    found = KMeans(K, n_init=1, random_state=seed).fit(y, sample_weight=p * len(y))
    return found.cluster_centers_


def _shaped(name, value, shape):
    array = v.as_doubles(name, value)
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name} has shape {array.shape}; expected {shape}, finite.")
    return array
