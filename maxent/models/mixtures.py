"""Batches of mixtures: what states of hidden Markov models show.

p_s(x) = sum_m weights[s, m] p_sm(x)
"""

from __future__ import annotations

import functools
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent._support.registry import rebuilt
from maxent.families import ExponentialFamily, _checks
from maxent.families._batch import Batch
from maxent.families.base import family_named
from maxent.models._components import log_densities, posterior_of
from maxent.models._criteria import free_probabilities

Array = NDArray[np.float64]


class Mixtures(Batch):
    """Batch of mixtures of one family, as emissions of hidden Markov models.

    Parameters
    ----------
    weights : array-like (batch, n_components)
        Probabilities of the components; zeros are allowed.
    components : family batch (batch, n_components)
        For instance ``Gaussian(mean, cov)`` with means (batch, n_components, d).

    Attributes
    ----------
    weights : ndarray (batch, n_components)
    components : ExponentialFamily

    See Also
    --------
    Mixture : One mixture, with fits to rows.
    HiddenMarkovModel : Its `fit` makes them, by ``n_components``.

    Notes
    -----
    A batch is immutable, and indexed like an array over its batch axes.

    Examples
    --------
    >>> from maxent.families import Poisson
    >>> from maxent.models import HiddenMarkovModel, Mixtures
    >>> shown = Mixtures([[0.5, 0.5], [0.9, 0.1]], Poisson([[1.0, 40.0], [9.0, 20.0]]))
    >>> model = HiddenMarkovModel([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], shown)
    >>> model.posterior([[0, 42, 1, 8, 11, 19]])[0].round(2)[:, 0]
    array([1.  , 1.  , 0.99, 0.  , 0.  , 0.  ])
    """

    _core = (("weights", 1),)
    weights: Array
    components: Any

    def __init__(self, weights: ArrayLike, components: ExponentialFamily) -> None:
        share = _checks.simplex_array("weights", weights)
        if not isinstance(components, ExponentialFamily):
            raise TypeError(
                f"components={v.shown(components)} must be a batch of a family, for "
                "instance maxent.families.Gaussian(mean, cov)."
            )
        if share.ndim == 0 or components.batch_shape != share.shape:
            raise ValueError(
                f"weights has shape {share.shape} and components are a batch of shape "
                f"{components.batch_shape}; both must be (batch, n_components)."
            )
        self._set({"weights": share}, components=components)

    # -- batches -------------------------------------------------------------------
    @classmethod
    def _of_members(cls, weights: Array, members: Any) -> Self:
        """Batch (K,) of checked weights (K, M) and its components in one axis."""
        number = np.arange(weights.size).reshape(weights.shape)
        return cls._from_valid({"weights": weights}, {"components": members[number]})

    @functools.cached_property
    def members(self) -> Any:
        """All components in one axis, (batch * n_components,)."""
        return self.components._flat()

    @property
    def n_components(self) -> int:
        """Number of components of each mixture."""
        return self.weights.shape[-1]

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one observation."""
        return self.components.event_shape

    def parameters(self) -> dict[str, Any]:
        """Constructor arguments as a dict.

        Returns
        -------
        dict
            Names and values.
        """
        return {"weights": self.weights, "components": self.components}

    def get_spec(self) -> dict[str, Any]:
        """Constructor arguments, as model files keep them.

        Returns
        -------
        dict
            Names and values.
        """
        return {
            "weights": self.weights,
            "family": type(self.components).__name__,
            "components": self.components.get_spec(),
        }

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Self:
        """Batch from what :meth:`get_spec` returned; it is checked again.

        Parameters
        ----------
        spec : dict
            As `get_spec` returns it.

        Returns
        -------
        Mixtures
        """
        family = family_named(spec["family"])
        return cls(spec["weights"], rebuilt(family, spec["components"]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mixtures):
            return NotImplemented
        mine, theirs = self.weights, other.weights
        return np.array_equal(mine, theirs) and self.components == other.components

    def __hash__(self) -> int:
        return hash((self.weights.shape, self.weights.tobytes(), self.components))

    def _take(self, number):
        weights = self.weights.reshape(-1, self.n_components)[number]
        place = number[..., None] * self.n_components + np.arange(self.n_components)
        more = {"components": self.members._take(place)}
        return self._from_valid({"weights": weights}, more)

    def _arrays(self):
        return [self.weights, *self.components._arrays()]

    def _replaced(self, used, new):
        weights = self.weights.copy()
        weights[used] = new.weights
        each = np.repeat(used, self.n_components)
        return self._of_members(weights, self.members._replaced(each, new.members))

    # -- what models ask of a family -----------------------------------------------
    @property
    def _takes_gaps(self):
        return self.components._takes_gaps

    def _fixed(self):
        return self.components._fixed()

    def _inner_point(self):
        return self.components._inner_point()

    def _n_free(self):
        return free_probabilities(self.weights) + self.components._n_free()

    @functools.cached_property
    def _log_weights(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self.weights)

    def _joint(self, X):
        """log weights p(x) of what was seen of rows, (batch, n_components, n)."""
        log_prob = log_densities(self.members, X)
        shape = (*self.weights.shape, log_prob.shape[-1])
        return log_prob.reshape(shape) + self._log_weights[..., None]

    def log_prob(self, X: ArrayLike) -> Array:
        """Log-density, or log-probability of discrete data.

        Parameters
        ----------
        X : array-like (n_samples, event)
            Rows; NaN as of :meth:`Mixture.log_prob`.

        Returns
        -------
        ndarray (batch, n_samples)
            In nats; -inf outside the support.
        """
        return logsumexp(self._joint(X), axis=-2)

    def _log_prob_of_seen(self, X):
        return self.log_prob(X)

    def posterior(self, X: ArrayLike) -> Array:
        """Posterior probabilities of the components of each mixture.

        Parameters
        ----------
        X : array-like (n_samples, event)
            Rows.

        Returns
        -------
        ndarray (batch, n_components, n_samples)
            They sum to one over the components; zeros where a mixture cannot show a
            row.
        """
        joint = self._joint(X)
        shape, n = joint.shape, joint.shape[-1]
        each = joint.reshape(-1, self.n_components, n)
        return self._within(each)[1].reshape(shape)

    @staticmethod
    def _within(joint):
        """Log-densities (K, n), and shares (K, M, n) of the components of each one."""
        total = np.empty((len(joint), joint.shape[2]))
        shares = np.empty(joint.shape)
        for k, own in enumerate(joint):
            total[k], shares[k] = posterior_of(own)
        impossible = np.isneginf(total)
        if impossible.any():
            shares[np.broadcast_to(impossible[:, None], shares.shape)] = 0.0
        return total, shares

    def moments(self) -> tuple[Array, Array]:
        """Mean and variance of every coordinate.

        Returns
        -------
        mean : ndarray (batch, event)
        variance : ndarray (batch, event)
        """
        mean, variance = (np.asarray(m) for m in self.components.moments())
        axes = (...,) + (None,) * (mean.ndim - self.weights.ndim)
        weights, axis = self.weights[axes], self.weights.ndim - 1
        first = (weights * mean).sum(axis=axis)
        about = mean - np.expand_dims(first, axis)
        return first, (weights * (variance + about**2)).sum(axis=axis)

    def sample(self, n: int, random_state: Any = None) -> NDArray[Any]:
        """Independent draws.

        Parameters
        ----------
        n : int
            Draws of each mixture, >= 1.
        random_state : int, Generator, RandomState or None, default=None
            The same seed gives the same draws.

        Returns
        -------
        ndarray (batch, n, event)
        """
        n = v.check_count("n", n)
        rng = as_generator(random_state)
        drawn = []
        for k, weights in enumerate(self.weights.reshape(-1, self.n_components)):
            number = rng.choice(self.n_components, size=n, p=weights)
            own = self.members[k * self.n_components + number]
            drawn.append(own.sample(1, rng)[:, 0])
        out = np.stack(drawn)
        return out.reshape(self.batch_shape + out.shape[1:])

    def _imputed(self, X, shares):
        """Expectations and variances of missing entries (NaN) of rows, as of families.

        Components have the shares (K, n) of their mixtures by what was seen.
        """
        each = np.empty((*self.weights.shape, len(X)))
        each[:] = self.weights[..., None]
        seen = ~np.isnan(X.reshape(len(X), -1)).all(axis=1)
        each[..., seen] = self.posterior(X[seen])
        return self.members._imputed(X, (each * shares[:, None]).reshape(-1, len(X)))
