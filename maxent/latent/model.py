"""MaxEntModel and SampledMaxEnt: maximum-entropy distributions as values."""

from __future__ import annotations

import functools
import warnings
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, xlogy

from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent._support.typing import MatrixLike
from maxent._support.underflow import allow_underflow
from maxent._support.validation import user_stacklevel
from maxent.latent._space import FeatureSpace, check_features, check_moments
from maxent.latent.moments import MaxEntResult, fit_maxent

Array = NDArray[np.float64]
_FEW_DRAWS = 100


class MaxEntModel:
    """Log-linear distribution over enumerated states.

    ``p(x) = q(x) exp(lam . f(x)) / Phi(lam)``; an immutable value.

    Parameters
    ----------
    features : array-like or CSR (n_states, n_features)
        Feature values of every state.
    lam : array-like (n_features,)
        Weights.
    log_prior : array-like (n_states,), optional
        log q up to a constant; None is uniform.

    Attributes
    ----------
    log_partition : float
        log Phi(lam).
    prob : ndarray (n_states,)
        Probabilities.
    fit_result : MaxEntResult or None
        How the fit ended, of a model made by :meth:`fit`.

    See Also
    --------
    fit_maxent : The function behind :meth:`fit`.
    SampledMaxEnt : Spaces too large to enumerate.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.latent import MaxEntModel
    >>> faces = np.arange(1.0, 7.0)[:, None]
    >>> die = MaxEntModel.fit(faces, [4.5])
    >>> round(die.entropy(), 4), die.moments().round(6)
    (1.6136, array([4.5]))
    """

    lam: Array
    fit_result: MaxEntResult | None
    _space: FeatureSpace

    def __init__(
        self, features: MatrixLike, lam: ArrayLike, log_prior: ArrayLike | None = None
    ) -> None:
        space = FeatureSpace(features, log_prior)
        lam = check_moments("lam", lam, space.n_features).copy()
        lam.setflags(write=False)
        space.own()
        self.__dict__.update(_space=space, lam=lam, fit_result=None)

    @classmethod
    def fit(cls, features: MatrixLike, target: ArrayLike, **options: Any) -> Self:
        """Model of largest entropy with given means.

        Parameters
        ----------
        features : array-like or CSR (n_states, n_features)
            Feature values of every state.
        target : array-like (n_features,)
            Means to be met.
        **options
            Further arguments of :func:`fit_maxent`.

        Returns
        -------
        MaxEntModel
        """
        result = fit_maxent(features, target, **options)
        model = cls(features, result.lam, options.get("log_prior"))
        model.__dict__["fit_result"] = result
        return model

    @property
    def features(self) -> Array | sp.csr_array:
        """Feature values of every state."""
        return self._space.F

    @property
    def log_prior(self) -> Array | None:
        """Log of the base measure."""
        return self._space.log_prior

    @functools.cached_property
    @allow_underflow
    def log_partition(self) -> float:
        """log Phi(lam)."""
        space, lam = self._standard
        return float(space.units.log_partition(space.probabilities(lam)[0], lam))

    @property
    def _standard(self):
        """The space with features of order one, and its weights."""
        space = self._space.standard
        return space, space.units.weights_in(self.lam)

    @allow_underflow
    def log_prob(self) -> Array:
        """Log-probabilities of all states.

        Returns
        -------
        ndarray (n_states,)
        """
        space, lam = self._standard
        u = space.exponents(lam)
        return u - logsumexp(u)

    @functools.cached_property
    @allow_underflow
    def prob(self) -> Array:
        """Probabilities of all states."""
        p = np.exp(self.log_prob())
        p.setflags(write=False)
        return p

    @allow_underflow
    def moments(self, features: MatrixLike | None = None) -> Array:
        """Means of features.

        Parameters
        ----------
        features : array-like (n_states, m), optional
            None takes the model's own.

        Returns
        -------
        ndarray (m,)
        """
        if features is None:
            space = self._space.standard
            return space.units.moments_out(space.mean(self.prob))
        F = features if sp.issparse(features) else v.as_doubles("features", features)
        if F.shape[0] != len(self.prob):
            raise ValueError(
                f"features has {F.shape[0]} rows and the model {len(self.prob)} states."
            )
        return F.T @ self.prob

    @allow_underflow
    def covariance(self) -> Array:
        """Covariance of the features.

        Returns
        -------
        ndarray (n_features, n_features)
        """
        space, p = self._space.standard, self.prob
        unit = space.units.unit
        return space.covariance(p, space.mean(p)) * unit * unit[:, None]

    @allow_underflow
    def entropy(self) -> float:
        """Entropy, nats.

        Returns
        -------
        float
        """
        return float(-xlogy(self.prob, self.prob).sum())

    @allow_underflow
    def kl(self, other: MaxEntModel | ArrayLike) -> float:
        """Kullback-Leibler divergence from another distribution over the states.

        Parameters
        ----------
        other : MaxEntModel or array-like (n_states,)
            The second distribution.

        Returns
        -------
        float
            KL(self || other), nats; inf where `other` excludes a state.

        Raises
        ------
        ValueError
            For numbers that are no probabilities of the states.
        """
        if isinstance(other, MaxEntModel):
            q = other.prob
        else:
            q = v.as_doubles("other", other)
        if q.shape != self.prob.shape:
            raise ValueError(
                f"other has shape {q.shape}, expected {self.prob.shape}: one "
                "probability per state."
            )
        if not (q >= 0).all() or abs(q.sum() - 1.0) > 1e-6:
            raise ValueError(
                f"other sums to {q.sum():g}, its smallest entry is {q.min():g}: "
                "probabilities are >= 0 and sum to one; divide them by their sum."
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(self.prob > 0, self.prob * np.log(self.prob / q), 0.0)
        return float(terms.sum())

    def sample(self, n: int, random_state: Any = None) -> NDArray[np.intp]:
        """Draw states.

        Parameters
        ----------
        n : int
            Draws, >= 1.
        random_state : int, Generator, RandomState or None, default=None
            Seed.

        Returns
        -------
        ndarray of int (n,)
            Numbers of states.
        """
        rng = as_generator(random_state)
        return rng.choice(
            len(self.prob), size=v.check_count("n", n), p=self.prob / self.prob.sum()
        )

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        F, G, q, r = self.features, other.features, self.log_prior, other.log_prior
        if F.shape != G.shape or sp.issparse(F) != sp.issparse(G):
            return False
        return (
            np.array_equal(self.lam, other.lam)
            and (q is r if q is None or r is None else np.array_equal(q, r))
            and ((F != G).nnz == 0 if sp.issparse(F) else np.array_equal(F, G))
        )

    def __hash__(self) -> int:
        # -0.0 equals 0.0
        return hash((type(self), self.features.shape, (self.lam + 0.0).tobytes()))

    def get_spec(self) -> dict[str, Any]:
        """Constructor arguments, as model files keep them.

        Returns
        -------
        dict
        """
        return {"features": self.features, "lam": self.lam, "log_prior": self.log_prior}

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Self:
        """Model from what :meth:`get_spec` returned.

        Parameters
        ----------
        spec : dict
            Constructor arguments.

        Returns
        -------
        MaxEntModel
        """
        return cls(**spec)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; make a new one.")

    def __reduce__(self):
        return _restore, (type(self), self.get_spec(), self.fit_result)

    def __repr__(self) -> str:
        S, N = self._space.F.shape
        return f"{type(self).__name__}(<{S} states, {N} features>)"


def _restore(cls, spec, result):
    model = cls(**spec)
    model.__dict__["fit_result"] = result
    return model


class SampledMaxEnt(MaxEntModel):
    """Log-linear distribution over a large or continuous space, by importance sampling.

    Draws x_s of an auxiliary density r stand for the space: the model is exact finite
    maximum entropy on them with prior weights q(x_s) / r(x_s).

    Parameters
    ----------
    features : array-like or CSR (n_draws, n_features)
        Features of the draws.
    lam : array-like (n_features,)
        Weights.
    log_prior : array-like (n_draws,), optional
        log q - log r of the draws.

    Attributes
    ----------
    effective_sample_size : float
        1 / sum p_s^2 of the weighted draws.

    See Also
    --------
    MaxEntModel : Enumerated spaces.

    Notes
    -----
    Moments have a Monte Carlo error of about one over the root of the effective sample
    size; test them on fresh draws with :meth:`test_moments`.

    Examples
    --------
    A variable with mean 0 and variance 1/4 from draws of a standard normal: Gaussian.

    >>> import numpy as np
    >>> from maxent.latent import SampledMaxEnt
    >>> x = np.random.default_rng(0).normal(size=20000)
    >>> f = np.column_stack([x, x**2])
    >>> model = SampledMaxEnt.fit(f, [0.0, 0.25], log_density=-(x**2) / 2)
    >>> model.effective_sample_size > 100
    True
    """

    @classmethod
    def fit(  # type: ignore[override]
        cls,
        features: MatrixLike,
        target: ArrayLike,
        *,
        log_density: ArrayLike,
        log_base: ArrayLike | None = None,
        **options: Any,
    ) -> Self:
        """Model of largest entropy with given means, over draws.

        Parameters
        ----------
        features : array-like or CSR (n_draws, n_features)
            Features of the draws.
        target : array-like (n_features,)
            Means to be met.
        log_density : array-like (n_draws,)
            log r of the draws, up to a constant.
        log_base : array-like (n_draws,), optional
            log q of the draws, up to a constant; None is flat.
        **options
            Further arguments of :func:`fit_maxent`.

        Returns
        -------
        SampledMaxEnt

        Raises
        ------
        ValueError
            For log-densities of other draws, and as :func:`fit_maxent`.

        Warns
        -----
        UserWarning
            If the effective sample size is below 100.
        """
        features = check_features("features", features)
        log_prior = _importance(log_density, log_base, features.shape[0])
        model = super().fit(features, target, log_prior=log_prior, **options)
        if model.effective_sample_size < _FEW_DRAWS:
            warnings.warn(
                f"the effective sample size is {model.effective_sample_size:.3g} of "
                f"{len(model.prob)} draws; take more draws, or an auxiliary "
                "distribution nearer to the targets.",
                UserWarning,
                stacklevel=user_stacklevel(),
            )
        return model

    @property
    @allow_underflow
    def effective_sample_size(self) -> float:
        """1 / sum p_s^2."""
        return float(1.0 / np.sum(self.prob**2))

    @allow_underflow
    def test_moments(
        self, features: MatrixLike, log_density: ArrayLike, log_base: Any = None
    ) -> tuple[Array, Array]:
        """Means on fresh draws, and their standard errors.

        Parameters
        ----------
        features : array-like (n_draws, n_features)
            Features of draws that were not used to fit.
        log_density : array-like (n_draws,)
            Their log r.
        log_base : array-like (n_draws,), optional
            Their log q.

        Returns
        -------
        mean : ndarray (n_features,)
            Self-normalised importance estimates.
        error : ndarray (n_features,)
            Their standard errors.

        Raises
        ------
        ValueError
            For other features than the model's, or log-densities of other draws.
        """
        features = check_features("features", features)
        if features.shape[1] != len(self.lam):
            raise ValueError(
                f"features has {features.shape[1]} columns and the model "
                f"{len(self.lam)} features; pass the same features of the fresh draws."
            )
        log_prior = _importance(log_density, log_base, features.shape[0])
        fresh = FeatureSpace(features, log_prior).standard
        _, p, mean = fresh.evaluate(fresh.units.weights_in(self.lam))
        F = fresh.F.toarray() if fresh.sparse else fresh.F
        error = np.sqrt((p**2) @ (F - mean) ** 2)
        return fresh.units.moments_out(mean), fresh.units.unit * error


def _importance(log_density: Any, log_base: Any, n: int) -> Array:
    """Log-weights log q - log r of n draws."""
    parts = []
    for name, value in (("log_density", log_density), ("log_base", log_base)):
        if value is None and name == "log_base":
            continue
        part = v.as_doubles(name, value)
        if part.shape != (n,):
            raise ValueError(
                f"{name} has shape {part.shape}; features has {n} draws, and each has "
                f"one number: expected ({n},)."
            )
        bad = ~np.isfinite(part)
        if name == "log_base":
            bad &= ~np.isneginf(part)
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"{name}[{at}]={part[at]} must be finite"
                f"{'' if name == 'log_density' else ' or -inf'}: drop that draw."
            )
        parts.append(part)
    return -parts[0] if len(parts) == 1 else parts[1] - parts[0]
