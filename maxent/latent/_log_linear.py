"""Log-linear models with hidden variables: what EM-IS and the candidates ask of them.

    p(y, z) = q(y, z) exp(lam . f(y, z)) / Phi(lam),  y observed, z hidden

All methods take weights with one leading axis (restarts), (R, N).
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, xlogy

from maxent._support import validation as v
from maxent._support.docs import InheritedDocs
from maxent._support.underflow import allow_underflow
from maxent.latent._scaling_steps import scaled
from maxent.latent._space import (
    FeatureSpace,
    Units,
    check_features,
    check_log_prior,
)

Array = NDArray[np.float64]


@dataclass
class Posterior:
    """E step: average log of the numerator, and the means given the data."""

    log_numerator: Array  # (R,)  sum_y pt(y) log sum_z q exp(lam . f)
    target: Array  # (R, N)  eta = sum_y pt(y) E[f | y]
    log_likelihood: Array  # (R,)


class LogLinearModel(InheritedDocs, ABC):
    """Log-linear model over observed and hidden variables; base class.

    ``p(y, z) = q(y, z) exp(lam . f(y, z)) / Phi(lam)``. Weights come with one leading
    axis, (R, N): R restarts are treated at a time.

    Attributes
    ----------
    n_features : int
        Weights of the model.
    has_hessian : bool
        Whether `covariance` and `hessian` are available.
    span : ndarray (n_features,)
        Range of each feature, or its order of magnitude; ones unless overridden.

    See Also
    --------
    FiniteLatentModel : Finitely many values.

    Notes
    -----
    A user-defined model has `observe`, `partition`, `posterior` and `scaled`, and
    `dependence` for the gate `mi_tol` of :class:`LatentMaxEnt`. Without `scaled` the M
    steps "cg" and "lbfgs" of :func:`em_is` work.
    """

    n_features: int
    has_hessian = False

    @abstractmethod
    def observe(self, data: Any, sample_weight: ArrayLike | None = None) -> Any:
        """Check data and sum them up.

        Parameters
        ----------
        data : array-like
            Observed values.
        sample_weight : array-like (n_samples,), optional
            Weights >= 0.

        Returns
        -------
        object
            What `posterior` takes.
        """

    @abstractmethod
    def partition(self, lam: Array) -> tuple[Array, Array]:
        """Normaliser and means under the model.

        Parameters
        ----------
        lam : ndarray (R, N)
            Weights.

        Returns
        -------
        log_phi : ndarray (R,)
            log Phi.
        mean : ndarray (R, N)
            E f.
        """

    @abstractmethod
    def posterior(self, lam: Array, observed: Any) -> tuple[Array, Array]:
        """E step: means given the data.

        Parameters
        ----------
        lam : ndarray (R, N)
            Weights.
        observed : object
            From `observe`.

        Returns
        -------
        log_numerator : ndarray (R,)
            Average over the data of log sum_z q exp(lam . f).
        target : ndarray (R, N)
            eta, the average of E[f | y].
        """

    def scaled(
        self, lam: Array, target: Array, weight: Array, method: str, bound: float
    ) -> Array:
        """Weights after one step of iterative scaling.

        Parameters
        ----------
        lam : ndarray (R, N)
            Weights.
        target : ndarray (R, N)
            Means to be met.
        weight : ndarray (N,)
            1 / s2 of the penalty.
        method : {"gis", "iis", "scgis"}
            Kind of the step.
        bound : float
            Largest absolute weight.

        Returns
        -------
        ndarray (R, N)
        """
        raise ValueError(
            f"{type(self).__name__} has no iterative scaling; use method='lbfgs' or "
            "'cg'."
        )

    def covariance(self, lam: Array) -> Array:
        """Covariance of the features.

        Parameters
        ----------
        lam : ndarray (N,)
            Weights.

        Returns
        -------
        ndarray (N, N)
        """
        raise ValueError(
            f"{type(self).__name__} has no covariance of its features; use a method "
            "other than 'newton'."
        )

    def hessian(self, lam: Array, observed: Any) -> Array:
        """Hessian of the likelihood: mean covariance given y, less covariance.

        Parameters
        ----------
        lam : ndarray (N,)
            Weights.
        observed : object
            From `observe`.

        Returns
        -------
        ndarray (N, N)
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no method hessian(lam, observed), which its "
            "has_hessian promises; define it or set has_hessian = False."
        )

    @property
    def span(self) -> Array:
        """Range of each feature, (N,), or its order of magnitude."""
        return np.ones(self.n_features)

    def _standard(self) -> tuple[LogLinearModel, Units]:
        """This model with features of order one, and the units of the weights."""
        return self, Units.of_caller(self.n_features)

    def _spread(self, lam: Array, mean: Array) -> Array:
        """Units in which unmet means are measured, (R, N) or (N,)."""
        return self.span

    def dependence(self, lam: Array, observed: Any) -> Array:
        """Mutual information of hidden and observed variables.

        Only for the gate `mi_tol` of :class:`LatentMaxEnt`.

        Parameters
        ----------
        lam : ndarray (R, N)
            Weights.
        observed : object
            From `observe`.

        Returns
        -------
        ndarray (R,)
            Nats.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no method dependence(lam, observed)."
        )

    def _signature(self, lam: Array) -> Array | None:
        """Rows (K, P), one for each hidden value or unit, that tell solutions apart."""
        return None

    _signed = True  # rows of opposite sign differ

    def start(self, rng: np.random.Generator) -> Array:
        """Random weights to start from.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        ndarray (N,)
        """
        return rng.normal(size=self.n_features)

    def expectation(self, lam: Array, observed: Any) -> tuple[Posterior, Array, Array]:
        """E step, log Phi and model means.

        Parameters
        ----------
        lam : ndarray (R, N)
            Weights.
        observed : object
            From `observe`.

        Returns
        -------
        found : Posterior
            Log-likelihoods and targets.
        log_phi : ndarray (R,)
            log Phi.
        mean : ndarray (R, N)
            E f.
        """
        numerator, target = self.posterior(lam, observed)
        log_phi, mean = self.partition(lam)
        return Posterior(numerator, target, numerator - log_phi), log_phi, mean


class FiniteLatentModel(LogLinearModel):
    """Log-linear model over finitely many observed and hidden values.

    ``p(y, z) = q(y, z) exp(lam . f(y, z)) / Phi(lam)``.

    Parameters
    ----------
    features : array-like (n_observed, n_hidden, n_features)
        f(y, z) for every observed value y and hidden value z.
    log_prior : array-like (n_observed, n_hidden), optional
        log q up to a constant; None is uniform.

    See Also
    --------
    em_is : Maximum likelihood of the observed values.
    LatentMaxEnt : Many starts, and the choice by entropy.

    Notes
    -----
    All R x n_observed x n_hidden probabilities are held at a time, for R restarts.

    Examples
    --------
    Two hidden classes and three observed values; features say class 0, and the value
    in each class:

    >>> import numpy as np
    >>> from maxent.latent import FiniteLatentModel
    >>> f = np.zeros((3, 2, 3))
    >>> f[:, 0, 0] = 1.0
    >>> f[:, 0, 1] = f[:, 1, 2] = np.arange(3.0)
    >>> FiniteLatentModel(f).n_features
    3
    """

    has_hessian = True

    def __init__(self, features: ArrayLike, log_prior: ArrayLike | None = None) -> None:
        f = v.as_doubles("features", features)
        if f.ndim != 3 or 0 in f.shape:
            raise ValueError(
                f"features has shape {f.shape}; expected (n_observed, n_hidden, "
                "n_features), all >= 1: f(y, z) for every pair of values."
            )
        self.shape = f.shape[:2]
        self.n_features = f.shape[2]
        if log_prior is not None:
            q = v.as_doubles("log_prior", log_prior)
            if q.shape != self.shape:
                raise ValueError(
                    f"log_prior has shape {q.shape}, expected {self.shape}."
                )
            log_prior = check_log_prior(q.ravel(), q.size)
        flat = check_features("features", f.reshape(-1, self.n_features))
        self.space = FeatureSpace(flat, log_prior)

    def _standard(self) -> tuple[FiniteLatentModel, Units]:
        space, model = self.space.standard, copy.copy(self)
        model.space = space
        return model, space.units

    def _spread(self, lam: Array, mean: Array) -> Array:
        return self.space.spread(self.space.probabilities(lam)[1], mean)

    def observe(self, data: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
        """Empirical distribution of observed values.

        Parameters
        ----------
        data : array-like of int (n_samples,)
            Numbers of the observed values, 0 .. n_observed - 1.
        sample_weight : array-like (n_samples,), optional
            Weights >= 0.

        Returns
        -------
        ndarray (n_observed,)
            Shares, which sum to one.
        """
        codes = v.as_array("data", data)
        if codes.ndim != 1 or not len(codes):
            raise ValueError(
                f"data has shape {codes.shape}; expected (n_samples,), not empty."
            )
        values = v.as_doubles("data", codes)
        n = self.shape[0]
        wrong = (values != np.floor(values)) | (values < 0) | (values >= n)
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"data[{at}]={codes[at]} is no number of an observed value; use "
                f"integers 0..{n - 1}, the first axis of features."
            )
        weight = v.check_weights(sample_weight, len(codes))
        counts = np.bincount(values.astype(np.intp), weights=weight, minlength=n)
        return counts / counts.sum()

    def _joint(self, lam):
        return self.space.exponents(lam).reshape(lam.shape[:-1] + self.shape)

    def get_spec(self) -> dict[str, Any]:
        """Constructor arguments, as model files keep them.

        Returns
        -------
        dict
        """
        q = self.space.log_prior
        return {
            "features": self.space.F.reshape(*self.shape, self.n_features),
            "log_prior": None if q is None else q.reshape(self.shape),
        }

    def _given(self, lam: Array) -> tuple[Array, Array]:
        """log sum_z q exp(lam . f) of every y, and p(z | y).

        The latter is zero for values y that the prior excludes.
        """
        u = self._joint(lam)
        top = logsumexp(u, axis=-1)
        return top, np.exp(u - np.where(np.isfinite(top), top, 0.0)[..., None])

    @allow_underflow
    def partition(self, lam: Array) -> tuple[Array, Array]:
        log_phi, _, mean = self.space.evaluate(lam)
        return log_phi, mean

    @allow_underflow
    def posterior(self, lam: Array, observed: Array) -> tuple[Array, Array]:
        top, rho = self._given(lam)
        rho *= observed[:, None]
        seen = observed > 0
        numerator = top[..., seen] @ observed[seen]
        return numerator, self.space.mean(rho.reshape(lam.shape[:-1] + (-1,)))

    @allow_underflow
    def scaled(
        self, lam: Array, target: Array, weight: Array, method: str, bound: float
    ) -> Array:
        return scaled(self.space, lam, target, weight, method, bound)

    @allow_underflow
    def covariance(self, lam: Array) -> Array:
        _, p, mean = self.space.evaluate(lam)
        return self.space.covariance(p, mean)

    @allow_underflow
    def hessian(self, lam: Array, observed: Array) -> Array:
        rho = self._given(lam)[1]
        F = self.space.F.reshape(*self.shape, -1)
        given = np.einsum("yz,yzn->yn", rho, F)
        weighted = (rho * observed[:, None]).reshape(-1)
        inner = (self.space.F.T * weighted) @ self.space.F
        return inner - (given.T * observed) @ given - self.covariance(lam)

    @allow_underflow
    def dependence(self, lam: Array, observed: Array) -> Array:
        p = self.space.probabilities(lam)[1].reshape(lam.shape[:-1] + self.shape)

        def entropy(q):
            return -xlogy(q, q).sum(axis=-1)

        hidden, seen = p.sum(axis=-2), p.sum(axis=-1)
        joint = entropy(p.reshape(lam.shape[:-1] + (-1,)))
        return np.maximum(entropy(hidden) + entropy(seen) - joint, 0.0)

    def _signature(self, lam: Array) -> Array:
        return self.space.probabilities(lam)[1].reshape(self.shape).T

    @property
    def span(self) -> Array:
        return self.space.span

    def start(self, rng: np.random.Generator) -> Array:
        # of order one over the range of each feature
        span = self.span
        return rng.normal(size=self.n_features) / np.where(span > 0, span, 1.0)
