"""Base class of exponential families: coordinates, densities, draws, fits.

    p(x) = h(x) exp(eta . T(x) - A(eta))

A family states its parameters, its statistics T, its cumulant A and the statistics'
mean; the rest follows from these here. Natural parameters and statistics are vectors
along the last axis, matrices flattened, so that one code serves all families. Constants
belong to A: the base measure h is 1 for all families but those that count.

Source: Wainwright & Jordan (2008), section 3.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from maxent._support import validation as v
from maxent._support.docs import InheritedDocs
from maxent._support.random_state import as_generator
from maxent._support.registry import VALUES, resolve
from maxent._support.typing import (
    ArrayLike,
    FloatArray,
    FloatArrayOrScalar,
    NDArray,
    RandomState,
)
from maxent._support.underflow import allow_underflow
from maxent.families import _checks
from maxent.families._charts import Chart
from maxent.families._comparisons import Comparisons
from maxent.families._minimal import all_kept
from maxent.families._pairs import inner, paired, weighted_mean


class ExponentialFamily(InheritedDocs, Comparisons, ABC):
    """Batch of distributions of one exponential family; base class.

    A batch is an immutable value: its parameters are checked once and stored as
    read-only float64 arrays. Leading axes of the parameters are the batch axes and
    broadcast against each other; a single distribution has batch shape ``()``. A batch
    is indexed like an array over its batch axes, ``P[3]``, ``P[2:5]``, and is equal to
    another of the same numbers.

    Attributes
    ----------
    batch_shape : tuple of int
        Shape of the batch.
    event_shape : tuple of int
        Shape of one observation: ``()`` for numbers.
    natural_parameters : ndarray (batch, k)
        The natural parameters eta.
    mean_parameters : ndarray (batch, k)
        Mean of the statistics, E T(x): the gradient of the cumulant.

    See Also
    --------
    Gaussian : The family to start with.

    Notes
    -----
    In shapes, ``batch`` and ``event`` stand for these axes, however many. Rows of data
    come as ``X`` of shape ``(n_samples, event)``, or with leading axes,
    ``(..., n_samples, event)``, that broadcast against the batch: each distribution
    then has rows of its own. Results have the shape ``(batch, n_samples)``. What
    compares two batches (`kl`, `log_affinity`) compares all pairs.

    Examples
    --------
    Two Poisson distributions, one to the first rows and one to the last:

    >>> from maxent.families import ExponentialFamily, Poisson
    >>> P = Poisson.fit([1, 3, 7, 9], weights=[[1, 1, 0, 0], [0, 0, 1, 1]])
    >>> P, isinstance(P, ExponentialFamily)
    (Poisson(rate=[2., 8.]), True)
    >>> P.kl(P).round(3)
    array([[0.   , 3.227],
           [5.09 , 0.   ]])
    """

    # no row, however far from the others, moves a fit without limit
    _has_bounded_statistics: ClassVar[bool] = False
    # rows in fits of models may miss entries (NaN), which leave the product of columns,
    # or are at their expectation in the M step
    _takes_gaps: ClassVar[bool] = False
    _fills_gaps: ClassVar[bool] = False
    # the fit of a member of a batch does not depend on the other members
    _fits_apart: ClassVar[bool] = True
    # sums of `_part_sums` beside those of the weights
    _n_sums: ClassVar[int] = 1
    # coordinates in which conjugate priors are integrated; None of most families
    _chart: ClassVar[Chart | None] = None
    # the posterior predictive of one draw, by pseudo-counts, is in the family
    _is_predictive: ClassVar[bool] = False

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one observation."""
        return ()

    def get_spec(self) -> dict[str, Any]:
        """Constructor arguments, as model files keep them.

        Returns
        -------
        dict
            Names and values.
        """
        return self.parameters()

    # -- coordinates ---------------------------------------------------------------
    @functools.cached_property
    def natural_parameters(self) -> FloatArray:
        """Natural parameters eta, (batch, k)."""
        return _frozen(self._natural())

    @functools.cached_property
    @allow_underflow
    def mean_parameters(self) -> FloatArray:
        """Mean of the statistics, the gradient of the cumulant, (batch, k)."""
        return _frozen(self._mean())

    @allow_underflow
    def cumulant(
        self, natural_parameters: ArrayLike | None = None
    ) -> FloatArrayOrScalar:
        """Cumulant (log-partition function) A.

        Parameters
        ----------
        natural_parameters : array-like (..., k), optional
            Where to evaluate it; None takes the family's own.

        Returns
        -------
        ndarray or float
            Of the batch shape, or of the leading shape given; +inf outside the domain.
        """
        if natural_parameters is None:
            return self._own_cumulant[()]
        eta = _checks.real_array("natural_parameters", natural_parameters, 1)
        k = self.natural_parameters.shape[-1]
        if eta.shape[-1] != k:
            raise ValueError(
                f"natural_parameters has shape {eta.shape}, expected (..., {k})."
            )
        return self._cumulant(eta)[()]

    @functools.cached_property
    def _own_cumulant(self) -> FloatArray:
        return _frozen(self._cumulant_here())

    def sufficient_statistics(self, X: ArrayLike) -> FloatArray:
        """Statistics T(x) of rows.

        Parameters
        ----------
        X : array-like (..., n_samples, event)
            Rows inside the support.

        Returns
        -------
        ndarray (..., n_samples, k)

        Raises
        ------
        ValueError
            If a row is outside the support; the first one is named.
        """
        X = _checks.rows(X, self.event_shape)
        return self._supported_statistics(X, **self._fixed())

    @classmethod
    def _supported_statistics(cls, X, **fixed):
        """Statistics of rows, all of which must be in the support."""
        cls._check_support(X, **fixed)
        return cls._statistics(X, **fixed)

    @classmethod
    def _check_support(cls, X, **fixed):
        wrong = ~cls._inside(X, **fixed)
        if wrong.any():
            at = _checks.first(wrong)
            raise ValueError(
                f"{_checks.label('X', at)}={v.shown(X[at].tolist())} is outside the "
                f"support of {cls.__name__}: {cls._support_text(**fixed)}."
            )

    # -- one batch -----------------------------------------------------------------
    @allow_underflow
    def log_prob(self, X: ArrayLike) -> FloatArray:
        """Log-density, or log-probability of discrete data.

        Parameters
        ----------
        X : array-like (..., n_samples, event)
            Rows; leading axes broadcast against the batch.

        Returns
        -------
        ndarray (batch, n_samples)
            In nats; -inf outside the support.

        Raises
        ------
        ValueError
            If the shape does not fit or an entry is not finite.
        """
        X = _checks.rows(X, self.event_shape)
        inside = self._inside(X, **self._fixed())
        if not inside.all():
            axes = tuple(range(inside.ndim, X.ndim))
            X = np.where(np.expand_dims(inside, axes), X, self._inner_point())
        return np.where(inside, self._log_prob(X), -np.inf)

    @allow_underflow
    def entropy(self) -> FloatArrayOrScalar:
        """Entropy in nats, differential for densities.

        Returns
        -------
        ndarray or float
            Of the batch shape.
        """
        return np.asarray(self._entropy())[()]

    @allow_underflow
    def moments(self) -> tuple[FloatArrayOrScalar, FloatArrayOrScalar]:
        """Mean and variance of every coordinate.

        Returns
        -------
        mean : ndarray (batch, event)
        variance : ndarray (batch, event)
            NaN where a moment does not exist.
        """
        mean, variance = self._moments()
        return np.asarray(mean)[()], np.asarray(variance)[()]

    @allow_underflow
    def sample(self, n: int, random_state: RandomState = None) -> NDArray[Any]:
        """Independent draws.

        Parameters
        ----------
        n : int
            Draws of each distribution of the batch, >= 1.
        random_state : int, Generator, RandomState or None, default=None
            Seed or source of randomness; the same seed gives the same draws.

        Returns
        -------
        ndarray (batch, n, event)
        """
        return self._sample(v.check_count("n", n), as_generator(random_state))

    @classmethod
    @allow_underflow
    def fit(
        cls,
        X: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        smoothing: float = 0.0,
    ) -> Self:
        """Maximum-likelihood fit to weighted rows.

        Parameters
        ----------
        X : array-like (..., n_samples, event)
            Rows in the support. Leading axes give one fit each.
        weights : array-like (n_samples,) or (..., n_samples), optional
            Weights >= 0 of the rows. Leading axes give one fit each, of the same rows
            or of rows of their own. Weight 2 equals the row twice, 0 its absence.
        smoothing : float, default=0.0
            Its meaning depends on the family; some families have none.

        Returns
        -------
        value
            Of this class; its batch shape is that of the leading axes.

        Raises
        ------
        ValueError
            If a row is outside the support, the weights of a fit sum to zero, or the
            likelihood has no maximum; the message says what to change.
        """
        if v.check_nonnegative("smoothing", smoothing):
            raise ValueError(
                f"smoothing={smoothing:g} has no meaning for {cls.__name__}; "
                "leave it 0."
            )
        X, W, total = cls._rows_to_fit(X, weights)
        return cls._solve(cls._summary(X, W, total), total)

    @classmethod
    def _rows_to_fit(
        cls, X: ArrayLike, weights: ArrayLike | None, **fixed: Any
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Checked rows in the support, their weights and the sums of these."""
        X = _checks.rows(X, cls._event_to_fit(**fixed))
        lead = X.ndim - len(cls._event_to_fit(**fixed))
        W, total = _checks.row_weights(weights, X.shape[:lead])
        if lead == 1:
            used = (W > 0).reshape(-1, len(X)).any(axis=0)
            if not used.all():  # dropped rows may hold anything
                X, W = X[used], W[..., used]
        cls._check_support(X, **fixed)
        return X, W, total

    @classmethod
    def _summary(cls, X, W, total):
        """Weighted mean of the statistics, (..., k)."""
        return weighted_mean(W, total, cls._finite_statistics(X))

    @classmethod
    def _finite_statistics(cls, X, **fixed):
        T = cls._statistics(X, **fixed)
        wrong = ~np.isfinite(T).all(axis=-1)
        if wrong.any():
            at = _checks.first(wrong)
            raise ValueError(
                f"{_checks.label('X', at)}={v.shown(X[at].tolist())} is on the edge of "
                f"the support of {cls.__name__}, where the likelihood has no maximum. "
                "Drop such rows or move them inside."
            )
        return T

    @classmethod
    def _complete(cls, X: FloatArray, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Further arguments of `fit`, with those that all rows decide."""
        return options

    @classmethod
    def _kept(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Those arguments of `fit` that the members keep."""
        return {name: options[name] for name in cls._common if name in options}

    def _with_fixed(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Further arguments of `fit` by which others live in the space of this one."""
        return {**options, **self._fixed()}

    # -- a fit from sums over parts of the rows ------------------------------------
    @classmethod
    def _sums_suffice(cls, **options: Any) -> bool:
        """True if maximum-likelihood fits are functions of sums over rows."""
        summary = cls._summary.__func__  # type: ignore[attr-defined]
        base = ExponentialFamily._summary.__func__  # type: ignore[attr-defined]
        return summary is base

    def _part_sums(self, X: FloatArray, W: FloatArray) -> tuple[FloatArray, ...]:
        """Sums over rows, from which `_refitted` makes new members.

        Parameters
        ----------
        X : ndarray (n_samples, event)
            Rows in the support.
        W : ndarray (batch, n_samples)
            Weights >= 0 of the rows, for each member of this batch.

        Returns
        -------
        tuple of ndarray (batch, ...)
            They add up over parts of the rows. The first are the sums of the weights.
        """
        return W.sum(axis=-1), W @ self._finite_statistics(X, **self._fixed())

    def _own_sums(self, total: FloatArray) -> tuple[FloatArray, ...]:
        """Expected sums of `_part_sums` of rows of this batch's own, total (batch,)."""
        return total, total[:, None] * self.mean_parameters

    def _refitted(self, total: FloatArray, *sums: FloatArray) -> Self:
        """Maximum-likelihood fits from sums of `_part_sums`; total (batch,) > 0."""
        return self._solve(sums[0] / total[:, None], total)

    def _n_free(self) -> int:
        """Number of free parameters of all members of the batch."""
        sizes = (np.size(getattr(self, name)) for name, _ in self._core)
        return int(sum(sizes))

    # -- what a family states ------------------------------------------------------
    @classmethod
    @abstractmethod
    def _statistics(cls, X: FloatArray, **fixed: Any) -> FloatArray:
        """T(x) of rows in the support, (..., n_samples, k)."""

    @abstractmethod
    def _natural(self) -> FloatArray:
        """Natural parameters, (batch, k)."""

    @abstractmethod
    def _mean(self) -> FloatArray:
        """Mean of the statistics, (batch, k)."""

    @abstractmethod
    def _cumulant(self, eta: FloatArray) -> FloatArray:
        """A(eta), +inf outside the domain, (...)."""

    @abstractmethod
    def _moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of every coordinate, (batch, event)."""

    @abstractmethod
    def _sample(self, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draws (batch, n, event)."""

    @classmethod
    def _solve(cls, summary: Any, total: FloatArray) -> Self:
        """Fit from what `_summary` returns; families that replace `fit` need none."""
        raise NotImplementedError(
            f"{cls.__name__} needs a class method _solve(summary, total), the fit to "
            "the mean of the statistics."
        )

    def _natural_of_mean(self, mean):
        """Natural parameters (n, k) of members of about these mean statistics."""
        return self._solve(mean, np.ones(len(mean))).natural_parameters

    # -- what a family improves ----------------------------------------------------
    @classmethod
    def _event_to_fit(cls, **fixed):
        """Event shape that data to fit must have; None is any size."""
        return ()

    @classmethod
    def _inside(cls, X, **fixed):
        """Mask of the rows in the support, edge included."""
        return np.ones(X.shape[: X.ndim - len(cls._event_to_fit(**fixed))], dtype=bool)

    @classmethod
    @abstractmethod
    def _support_text(cls, **fixed):
        """Requirement on rows, as errors state it."""

    def _inner_point(self):
        """A row in the support, to put in place of others."""
        return 0.0

    def _cumulant_here(self):
        """A at the own parameters."""
        return self._cumulant(self.natural_parameters)

    def _log_base(self, X):
        """log h(x), (..., n_samples)."""
        return 0.0

    def _expected_log_base(self):
        """E log h(x), of the batch shape."""
        return 0.0

    def _minimal(self):
        """Marks (batch, k) of parameters that determine all others, and factors."""
        return all_kept(self.natural_parameters.shape)

    def _log_prob(self, X):
        T = self._statistics(X, **self._fixed())
        energy = inner(T, self.natural_parameters)
        return energy - self._own_cumulant[..., None] + self._log_base(X)

    def _log_prob_of_seen(self, X):
        """Log-densities (batch, n) of what was seen of rows in the support."""
        return self._log_prob(X)

    def _imputed(self, X, shares):
        """Expectations and variances of missing entries (NaN) of rows.

        Rows belong to the members (K,) with probabilities `shares` (K, n).
        Entries that were seen may have any values.
        """
        return _mixed_moments(shares, *self._moments())

    def _entropy(self):
        own = paired(self.mean_parameters, self.natural_parameters)
        return self._own_cumulant - own - self._expected_log_base()


def _mixed_moments(shares, mean, variance):
    """Moments (n, event) of mixtures of members with moments (K, event)."""
    first = np.tensordot(shares, mean, axes=(0, 0))
    second = np.tensordot(shares, variance + mean**2, axes=(0, 0))
    return first, second - first**2


def _frozen(array: ArrayLike) -> FloatArray:
    array = np.asarray(array)
    array.setflags(write=False)
    return array


def family_named(name: Any) -> type[ExponentialFamily]:
    """The family of distributions of this name, as model files give it."""
    home = VALUES.get(str(name))
    family = resolve(home) if home else None
    if not (isinstance(family, type) and issubclass(family, ExponentialFamily)):
        raise ValueError(f"family={name!r} is no known family.")
    return family
