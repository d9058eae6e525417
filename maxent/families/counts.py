"""Counts without an upper bound: Poisson, geometric, negative binomial."""

from __future__ import annotations

from typing import Self

import numpy as np
from scipy.special import gammaln, i0e

from maxent._support import validation as v
from maxent._support.typing import ArrayLike, FloatArray
from maxent.families import _checks
from maxent.families._charts import LOGS, SUCCESSES
from maxent.families._pairs import weighted_mean
from maxent.families._special import log_multichoose
from maxent.families._sums_over_counts import (
    log_negative_binomial_power_sum,
    log_poisson_power_sum,
    poisson_entropy,
)
from maxent.families.base import ExponentialFamily

_MOST_TERMS = 20_000_000


class _Counts(ExponentialFamily):
    """Rows are counts; the statistic is the count."""

    @classmethod
    def _inside(cls, X, **fixed):
        return _checks.are_counts(X)

    @classmethod
    def _support_text(cls, **fixed):
        return "rows are counts 0, 1, 2, ..."

    @classmethod
    def _statistics(cls, X, **fixed):
        return X[..., None]

    @classmethod
    def _smoothed_mean(cls, X, weights, smoothing, **fixed):
        """Mean of the rows and of `smoothing` pseudo-rows equal to one, (...,)."""
        smoothing = v.check_nonnegative("smoothing", smoothing)
        X, W, total = cls._rows_to_fit(X, weights, **fixed)
        mean = weighted_mean(W, total, X[..., None])[..., 0]
        return (mean * total + smoothing) / (total + smoothing)


class Poisson(_Counts):
    """Poisson distributions.

    Parameters
    ----------
    rate : array-like (batch,)
        Means, >= 0; of rate 0 all counts are 0.

    See Also
    --------
    NegativeBinomial : Counts that vary more than their mean.

    Notes
    -----
    Statistic: x (k = 1). All affinities exist: closed for rho = 1/2 and 1, a sum over
    counts (of about 30 terms where rates are large) for others. `fit` adds `smoothing`
    >= 0 pseudo-rows with count 1, the mode under a Gamma prior. Shapes, batches and
    methods are those of `ExponentialFamily`.

    References
    ----------
    Jebara, Kondor & Howard (2004), section 3.

    Examples
    --------
    >>> from maxent.families import Poisson
    >>> P = Poisson([1.0, 4.0])
    >>> P.log_affinity(P, 0.5)  # -(sqrt(l) - sqrt(l'))^2 / 2
    array([[ 0. , -0.5],
           [-0.5,  0. ]])
    """

    _core: tuple[tuple[str, int], ...] = (("rate", 0),)
    _chart = LOGS
    rate: FloatArray

    def __init__(self, rate: ArrayLike) -> None:
        self._set({"rate": _checks.nonnegative_array("rate", rate)})

    def _natural(self):
        with np.errstate(divide="ignore"):
            return np.log(self.rate)[..., None]

    def _mean(self):
        return self.rate[..., None]

    def _cumulant(self, eta):
        with np.errstate(over="ignore"):
            return np.exp(eta[..., 0])

    def _log_base(self, X):
        return -gammaln(X + 1.0)

    def _entropy(self):
        return poisson_entropy(self.rate)

    def _affinity(self, other, rho):
        root, root_other = np.sqrt(self.rate), np.sqrt(other.rate)
        out = -rho * np.square(root[:, None] - root_other)
        if rho == 0.5:
            return out
        z = root[:, None] * root_other
        if rho == 1.0:
            return out + np.log(i0e(2.0 * z))
        return out + log_poisson_power_sum(z, 2.0 * rho)

    def _moments(self):
        return self.rate, self.rate

    def _sample(self, n, rng):
        return rng.poisson(self.rate[..., None], size=self.batch_shape + (n,))

    @classmethod
    def fit(
        cls,
        X: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        smoothing: float = 0.0,
    ) -> Self:
        return cls(cls._smoothed_mean(X, weights, smoothing))

    @classmethod
    def _solve(cls, mean, total):
        return cls(mean[..., 0])


class NegativeBinomial(_Counts):
    """Negative binomial distributions with one r: failures before the r-th success.

    ``P(x) = Gamma(x + r) / (x! Gamma(r)) prob^r (1 - prob)^x``.

    Parameters
    ----------
    prob : array-like (batch,)
        Probabilities of success, in (0, 1].
    r : float
        Number of successes, > 0, not necessarily an integer; shared by the batch,
        because only then is this an exponential family.

    See Also
    --------
    Geometric : The case r = 1.

    Notes
    -----
    Statistic: x (k = 1). All affinities exist: closed for rho = 1/2 and for r = 1, a
    sum over counts (of 40 to some hundred terms) for others. `fit` takes r as given and
    adds `smoothing` >= 0 pseudo-rows with count 1. Shapes, batches and methods are
    those of `ExponentialFamily`.

    Examples
    --------
    >>> from maxent.families import NegativeBinomial
    >>> NegativeBinomial.fit([0, 3, 6], r=3.0)
    NegativeBinomial(prob=0.5, r=3.0)
    """

    _core: tuple[tuple[str, int], ...] = (("prob", 0),)
    _common: tuple[str, ...] = ("r",)
    _chart = SUCCESSES
    prob: FloatArray
    r: float

    def __init__(self, prob: ArrayLike, r: float) -> None:
        prob = _checks.probability_array("prob", _checks.positive_array("prob", prob))
        self._set({"prob": prob}, r=v.check_positive("r", r))

    def _natural(self):
        with np.errstate(divide="ignore"):
            return np.log1p(-self.prob)[..., None]

    def _natural_of_mean(self, mean):
        return np.log(mean / (self.r + mean))

    def _mean(self):
        return (self.r * (1.0 - self.prob) / self.prob)[..., None]

    def _cumulant(self, eta):
        eta = eta[..., 0]
        inside = eta < 0
        with np.errstate(divide="ignore"):
            power = np.where(inside, eta, -1.0)
            # log(1 - exp(eta)) from what is below one half
            far = np.log1p(-np.exp(np.minimum(power, -0.5)))
            value = -self.r * np.where(power < -0.5, far, np.log(-np.expm1(power)))
        return np.where(inside, value, np.inf)

    def _log_base(self, X):
        return log_multichoose(self.r, X)

    def _expected_log_base(self):
        out = np.zeros(self.batch_shape)
        if self.r == 1.0:
            return out
        for at in np.ndindex(self.batch_shape):  # sums of very different lengths
            out[at] = self._expected_one(float(self.prob[at]))
        return out

    def _expected_one(self, prob):
        if prob == 1.0:
            return 0.0
        # beyond this count there is less than 1e-20 of the mass
        last = 10.0 + (60.0 + 10.0 * self.r) / -np.log1p(-prob) + 2.0 * self.r / prob
        if last > _MOST_TERMS:
            raise ValueError(
                f"prob={prob:g} with r={self.r:g} makes the entropy a sum of "
                f"{last:.1g} terms, more than {_MOST_TERMS}; there is no closed form."
            )
        total, step = 0.0, 2**18
        for lo in range(0, int(last) + 1, step):
            x = np.arange(lo, min(lo + step, int(last) + 1), dtype=np.float64)
            base = self._log_base(x)
            log_p = base + self.r * np.log(prob) + x * np.log1p(-prob)
            total += float(np.exp(log_p) @ base)
        return total

    def _affinity(self, other, rho):
        if self.r == 1.0 and rho != 0.5:
            return super()._affinity(other, rho)
        # with q = 1 - prob, (1 - sqrt(q q'))^2 is prob prob' + (sqrt q - sqrt q')^2
        p, p_other = self.prob[:, None], other.prob
        root = np.sqrt(1.0 - p) + np.sqrt(1.0 - p_other)
        apart = (p - p_other) / np.where(root > 0, root, 1.0)
        out = -rho * self.r * np.log1p(apart / p * (apart / p_other))
        if rho == 0.5:
            return out
        eta, eta_other = self.natural_parameters, other.natural_parameters[:, 0]
        power_sum = log_negative_binomial_power_sum(
            0.5 * (eta + eta_other), self.r, 2.0 * rho
        )
        return out + power_sum

    def _moments(self):
        mean = self.r * (1.0 - self.prob) / self.prob
        return mean, mean / self.prob

    def _sample(self, n, rng):
        size = self.batch_shape + (n,)
        return rng.negative_binomial(self.r, self.prob[..., None], size=size)

    @classmethod
    def fit(  # type: ignore[override]  # r has no default
        cls,
        X: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        smoothing: float = 0.0,
        r: float,
    ) -> Self:
        """Maximum-likelihood success probability for a given r.

        Parameters
        ----------
        X : array-like (..., n_samples)
            Counts. Leading axes give one fit each.
        weights : array-like (n_samples,) or (..., n_samples), optional
            Weights >= 0 of the rows. Leading axes give one fit each.
        smoothing : float, default=0.0
            Pseudo-rows >= 0 with count 1.
        r : float
            Number of successes, > 0.

        Returns
        -------
        NegativeBinomial
            Its batch shape is that of the leading axes.

        Raises
        ------
        ValueError
            If a row is not a count, or the weights of a fit sum to zero.
        """
        r = v.check_positive("r", r)
        mean = cls._smoothed_mean(X, weights, smoothing, r=r)
        return cls(r / (r + mean), r)

    def _refitted(self, total, *sums):
        return type(self)(self.r / (self.r + sums[0][:, 0] / total), self.r)


class Geometric(NegativeBinomial):
    """Geometric distributions of the failures before the first success.

    ``P(x) = prob (1 - prob)^x`` for x = 0, 1, 2, ... (not from 1).

    Parameters
    ----------
    prob : array-like (batch,)
        Probabilities of success, in (0, 1].

    See Also
    --------
    NegativeBinomial : More than one success.

    Notes
    -----
    Statistic: x (k = 1). All affinities exist. `fit` adds `smoothing` >= 0 pseudo-rows
    with count 1. Shapes, batches and methods are those of `ExponentialFamily`.

    Examples
    --------
    >>> from maxent.families import Geometric
    >>> mean, variance = Geometric(0.25).moments()
    >>> float(mean), float(variance)
    (3.0, 12.0)
    """

    _common: tuple[str, ...] = ()
    r = 1.0

    def __init__(self, prob: ArrayLike) -> None:
        prob = _checks.probability_array("prob", _checks.positive_array("prob", prob))
        self._set({"prob": prob})

    @classmethod
    def fit(  # type: ignore[override]  # r is 1
        cls,
        X: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        smoothing: float = 0.0,
    ) -> Self:
        """Maximum-likelihood success probability.

        Parameters
        ----------
        X : array-like (..., n_samples)
            Counts. Leading axes give one fit each.
        weights : array-like (n_samples,) or (..., n_samples), optional
            Weights >= 0 of the rows. Leading axes give one fit each.
        smoothing : float, default=0.0
            Pseudo-rows >= 0 with count 1.

        Returns
        -------
        Geometric
            Its batch shape is that of the leading axes.

        Raises
        ------
        ValueError
            If a row is not a count, or the weights of a fit sum to zero.
        """
        return cls(1.0 / (1.0 + cls._smoothed_mean(X, weights, smoothing)))

    def _refitted(self, total, *sums):
        return type(self)(1.0 / (1.0 + sums[0][:, 0] / total))
