"""Proportions: Beta and Dirichlet distributions."""

from __future__ import annotations

import functools

import numpy as np
from scipy.special import digamma, gammaln

from maxent._support.typing import ArrayLike, FloatArray
from maxent.families import _checks
from maxent.families._charts import SHAPES
from maxent.families._matching import dirichlet_from_mean_logs
from maxent.families.base import ExponentialFamily
from maxent.families.positive import largest_power


class _Proportions(ExponentialFamily):
    """Statistics are logs of proportions, natural parameters alpha - 1."""

    def _natural(self):
        return self._alpha - 1.0

    def _mean(self):
        total = self._alpha.sum(axis=-1, keepdims=True)
        return digamma(self._alpha) - digamma(total)

    def _cumulant(self, eta):
        inside = (eta > -1).all(axis=-1)
        alpha = np.where(inside[..., None], eta + 1.0, 1.0)
        value = gammaln(alpha).sum(axis=-1) - gammaln(alpha.sum(axis=-1))
        return np.where(inside, value, np.inf)

    def _affinity_range(self):
        return 0.0, largest_power(self._alpha.min(axis=-1))

    def _proportion_moments(self):
        total = self._alpha.sum(axis=-1, keepdims=True)
        mean = self._alpha / total
        return mean, mean * (1.0 - mean) / (total + 1.0)

    @classmethod
    def _solve_alpha(cls, mean_log):
        # Jensen's gap: of rows that are all equal nothing but rounding
        total = np.exp(mean_log).sum(axis=-1)
        if not (total < 1.0 - 1e-14).all():
            raise ValueError(
                "all rows of a fit are equal, so the likelihood has no maximum: the "
                "parameters would be infinite. Add rows that differ."
            )
        return dirichlet_from_mean_logs(mean_log)


class Beta(_Proportions):
    """Beta distributions on [0, 1].

    Parameters
    ----------
    a, b : array-like (batch,)
        Shapes, > 0; the mean is ``a / (a + b)``.

    See Also
    --------
    Dirichlet : More than two proportions.

    Notes
    -----
    Statistics: log x and log(1 - x) (k = 2). The affinity of a pair is finite if
    ``rho (a + a' - 2) > -1``, and the same of b; of all pairs if every
    ``a, b > 1 - 1 / (2 rho)``. Shapes, batches and methods are those of
    `ExponentialFamily`.

    Examples
    --------
    >>> from maxent.families import Beta
    >>> float(Beta(2.0, 2.0).log_affinity(Beta(2.0, 2.0), 0.5))
    0.0
    """

    _core: tuple[tuple[str, int], ...] = (("a", 0), ("b", 0))
    _chart = SHAPES
    a: FloatArray
    b: FloatArray

    def __init__(self, a: ArrayLike, b: ArrayLike) -> None:
        a, b = _checks.positive_array("a", a), _checks.positive_array("b", b)
        self._set({"a": a, "b": b})

    @functools.cached_property
    def _alpha(self):
        return np.stack([self.a, self.b], axis=-1)

    @classmethod
    def _inside(cls, X):
        return (X >= 0) & (X <= 1)

    @classmethod
    def _support_text(cls):
        return "rows are numbers in [0, 1]"

    def _inner_point(self):
        return 0.5

    @classmethod
    def _statistics(cls, X):
        with np.errstate(divide="ignore"):
            return np.stack([np.log(X), np.log1p(-X)], axis=-1)

    def _moments(self):
        mean, variance = self._proportion_moments()
        return mean[..., 0], variance[..., 0]

    def _sample(self, n, rng):
        size = self.batch_shape + (n,)
        return rng.beta(self.a[..., None], self.b[..., None], size=size)

    @classmethod
    def _solve(cls, mean_log, total):
        alpha = cls._solve_alpha(mean_log)
        return cls(alpha[..., 0], alpha[..., 1])


class Dirichlet(_Proportions):
    """Dirichlet distributions of k proportions.

    Parameters
    ----------
    alpha : array-like (batch, k)
        Shapes, > 0, k >= 2; the mean is ``alpha / sum(alpha)``.

    See Also
    --------
    Beta : Two proportions, as one number.

    Notes
    -----
    Densities are with respect to the first k - 1 coordinates. Statistics: log x (k of
    them). The affinity of a pair is finite if ``rho (alpha + alpha' - 2) > -1`` in
    every coordinate, of all pairs if every ``alpha > 1 - 1 / (2 rho)``. Rows must sum
    to one within 1e-6. Shapes, batches and methods are those of `ExponentialFamily`.

    Examples
    --------
    >>> from maxent.families import Dirichlet
    >>> P = Dirichlet([1.0, 2.0, 5.0])
    >>> P.moments()[0]
    array([0.125, 0.25 , 0.625])
    """

    _core: tuple[tuple[str, int], ...] = (("alpha", 1),)
    alpha: FloatArray

    def __init__(self, alpha: ArrayLike) -> None:
        alpha = _checks.positive_array("alpha", alpha, 1)
        if alpha.shape[-1] < 2:
            raise ValueError(
                f"alpha has shape {alpha.shape}; a Dirichlet distribution needs at "
                "least two proportions on the last axis."
            )
        self._set({"alpha": alpha})

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one observation, (k,)."""
        return self.alpha.shape[-1:]

    @property
    def _alpha(self):
        return self.alpha

    @classmethod
    def _event_to_fit(cls):
        return (None,)

    @classmethod
    def _inside(cls, X):
        total = np.abs(X.sum(axis=-1) - 1.0) <= _checks.ROW_TOLERANCE
        return total & (X >= 0).all(axis=-1)

    @classmethod
    def _support_text(cls):
        return f"rows are proportions that sum to 1 within {_checks.ROW_TOLERANCE:g}"

    def _inner_point(self):
        return 1.0 / self.alpha.shape[-1]

    @classmethod
    def _statistics(cls, X):
        with np.errstate(divide="ignore"):
            return np.log(X)

    def _moments(self):
        return self._proportion_moments()

    def _sample(self, n, rng):
        # Gamma variables in logs: for small shapes they are below the range of doubles
        size = self.batch_shape + (n,) + self.event_shape
        alpha = self.alpha[..., None, :]
        log_g = np.log(rng.gamma(alpha + 1.0, size=size))
        log_g += np.log1p(-rng.random(size=size)) / alpha
        g = np.exp(log_g - log_g.max(axis=-1, keepdims=True))
        return g / g.sum(axis=-1, keepdims=True)

    @classmethod
    def _solve(cls, mean_log, total):
        if mean_log.shape[-1] < 2:
            raise ValueError(
                "X has one column; a Dirichlet distribution needs at least two."
            )
        return cls(cls._solve_alpha(mean_log))
