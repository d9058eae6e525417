"""Counts of finitely many outcomes: multinomial distributions.

Probabilities may be zero; what follows is taken as a limit, 0 log 0 = 0.
"""

from __future__ import annotations

import functools
from typing import Self

import numpy as np
from scipy.special import gammaln, logsumexp

from maxent._support import validation as v
from maxent._support.typing import ArrayLike, FloatArray
from maxent.families import _checks
from maxent.families._minimal import of_logits
from maxent.families._pairs import tiles, weighted_mean
from maxent.families.base import ExponentialFamily
from maxent.families.discrete import Categorical, log_sum, pseudo_counts

_MOST_TERMS = 20_000_000  # of the entropy
_MOST_IN_SUM = 2000  # draws, where an affinity is a sum over all outcomes


class Multinomial(ExponentialFamily):
    """Distributions of counts of k categories in a number of draws.

    Parameters
    ----------
    prob : array-like (batch, k)
        Probabilities, which sum to one within 1e-8 and are not renormalised.
    total : int
        Number of draws, >= 1, shared by the batch: distributions of different totals
        have no outcome in common.

    See Also
    --------
    Categorical : One draw.

    Notes
    -----
    Statistics: the counts. For rho = 1/2 the log-affinity is ``total`` times that of
    `Categorical`; for every rho that product is the log-affinity of the draws in order.
    Here other rho need O(k total^2) per pair. Shapes, batches and methods are those of
    `ExponentialFamily`.

    References
    ----------
    Jebara, Kondor & Howard (2004), section 3.3, eq. (6).

    Examples
    --------
    >>> from maxent.families import Multinomial
    >>> documents = [[[8, 2, 0]], [[1, 3, 6]]]  # two bags of one row each
    >>> P = Multinomial.fit(documents, smoothing=1.0, total=1)
    >>> P.prob.round(3)
    array([[0.692, 0.231, 0.077],
           [0.154, 0.308, 0.538]])
    """

    _is_predictive = True
    _core: tuple[tuple[str, int], ...] = (("prob", 1),)
    _has_bounded_statistics = True
    _common: tuple[str, ...] = ("total",)
    prob: FloatArray
    total: int

    def __init__(self, prob: ArrayLike, total: int) -> None:
        total = v.check_count("total", total)
        if total >= 2**63:
            raise ValueError(f"total={total} must be below 2**63, as draws are.")
        self._set({"prob": _checks.simplex_array("prob", prob)}, total=total)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one observation, (k,)."""
        return self.prob.shape[-1:]

    @functools.cached_property
    def _draw(self):
        return Categorical(self.prob)

    @classmethod
    def _event_to_fit(cls, **fixed):
        return (None,)

    @classmethod
    def _complete(cls, X, options):
        if options.get("total") is not None:
            return options
        return {**options, "total": int(np.nanmax(X.sum(axis=-1), initial=1.0))}

    @classmethod
    def _inside(cls, X, total):
        counts = _checks.are_counts(X).all(axis=-1)
        return counts & (True if total is None else X.sum(axis=-1) == total)

    @classmethod
    def _support_text(cls, total):
        ending = "" if total is None else f" that sum to total={total}"
        return f"rows are counts >= 0{ending}"

    def _inner_point(self):
        return np.eye(1, *self.event_shape)[0] * self.total

    @classmethod
    def _statistics(cls, X, total):
        return X

    def _n_free(self):
        return int(np.count_nonzero(self.prob)) - int(np.prod(self.batch_shape))

    def _minimal(self):
        return of_logits(self.prob)

    def _natural(self):
        return self._draw._log_prob_table

    def _mean(self):
        return self.total * self.prob

    def _cumulant(self, eta):
        return self.total * logsumexp(eta, axis=-1)

    def _log_base(self, X):
        return gammaln(self.total + 1.0) - gammaln(X + 1.0).sum(axis=-1)

    def _entropy(self):
        return self.total * self._draw.entropy() - self._expected_log_base()

    def _expected_log_base(self):
        """log total! less the mean of log x! under every binomial margin."""
        if self.total > _MOST_TERMS:
            raise ValueError(
                f"total={self.total} makes the entropy a sum of more than "
                f"{_MOST_TERMS} terms; there is no closed form."
            )
        x = np.arange(self.total + 1.0)
        log_choose = (
            gammaln(self.total + 1.0) - gammaln(x + 1.0) - gammaln(x[::-1] + 1.0)
        )
        flat = self.prob.reshape(-1)
        mean = np.empty(flat.shape)
        for part in tiles(len(flat), len(x)):
            p = flat[part, None]
            with np.errstate(divide="ignore", invalid="ignore"):
                up = np.where(x > 0, x * np.log(p), 0.0)
                down = np.where(x < self.total, (self.total - x) * np.log1p(-p), 0.0)
            mean[part] = np.exp(log_choose + up + down) @ gammaln(x + 1.0)
        mean = mean.reshape(self.prob.shape).sum(axis=-1)
        return gammaln(self.total + 1.0) - mean

    def _affinity(self, other, rho):
        if rho == 0.5 or self.total == 1:
            return self.total * self._draw._affinity(other._draw, rho)
        log_p, log_q = (
            rho * self._draw._log_prob_table,
            rho * other._draw._log_prob_table,
        )
        s = self.total
        if s > _MOST_IN_SUM:
            raise ValueError(
                f"rho={rho:g} with total={s} needs (total + 1)^2 numbers per pair, too "
                f"many beyond total={_MOST_IN_SUM}. Use rho=0.5, or total times the "
                "log-affinity of Categorical, which is that of the draws in order."
            )
        j, i = np.meshgrid(np.arange(s + 1), np.arange(s + 1), indexing="ij")
        i = np.minimum(i, j)  # terms beyond j repeat and are masked
        log_choose = gammaln(j + 1.0) - gammaln(i + 1.0) - gammaln(j - i + 1.0)
        log_choose = np.where(np.arange(s + 1) <= j, 2.0 * rho * log_choose, -np.inf)
        out = np.empty((len(log_p), len(log_q)))
        parts = [
            (rows, columns)
            for columns in tiles(len(log_q), (s + 1) ** 2)
            for rows in tiles(len(log_p), len(log_q[columns]) * (s + 1) ** 2)
        ]
        for rows, columns in parts:
            pair = log_p[rows, None] + log_q[columns]
            # G[j]: log of the coefficient of z^j times (j!)^(2 rho)
            G = np.where(np.arange(s + 1) == 0, 0.0, -np.inf)
            G = np.broadcast_to(G, pair.shape[:2] + (s + 1,))
            for d in range(pair.shape[-1]):
                x = pair[..., d, None, None]
                with np.errstate(invalid="ignore"):
                    power = np.where(i > 0, i * x, 0.0)
                G = log_sum(log_choose + power + G[..., j - i])
            out[rows, columns] = G[..., s]
        return out

    def _moments(self):
        mean = self.total * self.prob
        return mean, mean * (1.0 - self.prob)

    def _sample(self, n, rng):
        prob = self.prob / self.prob.sum(axis=-1, keepdims=True)
        size = self.batch_shape + (n,)
        return rng.multinomial(self.total, prob[..., None, :], size=size)

    @classmethod
    def fit(
        cls,
        X: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        smoothing: ArrayLike = 0.0,
        total: int | None = None,
    ) -> Self:
        """Weighted frequencies of the categories in the counts.

        Parameters
        ----------
        X : array-like (..., n_samples, k)
            Counts. Leading axes give one fit each.
        weights : array-like (n_samples,) or (..., n_samples), optional
            Weights >= 0 of the rows. Leading axes give one fit each.
        smoothing : float or array-like (k,), default=0.0
            Pseudo-counts >= 0 added to every category.
        total : int, optional
            Number of draws of the result; rows may then have other sums, as documents
            do. None takes the sum of the rows, which must all have the same.

        Returns
        -------
        Multinomial
            Its batch shape is that of the leading axes.

        Raises
        ------
        ValueError
            If entries are not counts, the rows have several sums and `total` is not
            given, or a fit has neither counts nor smoothing.
        """
        if total is not None:
            total = v.check_count("total", total)
        X, W, weight = cls._rows_to_fit(X, weights, total=None)
        added = pseudo_counts(smoothing, X.shape[-1])
        if total is None:
            sums = X.sum(axis=-1)
            if sums.min() != sums.max() or sums.max() < 1:
                raise ValueError(
                    f"the rows of X sum to between {sums.min():g} and {sums.max():g}; "
                    "a multinomial needs one sum >= 1. Pass total=... to fit the "
                    "probabilities of rows of several lengths."
                )
            total = int(sums.max())
        counts = weighted_mean(W, weight, X) * weight[..., None] + added
        drawn = counts.sum(axis=-1, keepdims=True)
        if not (drawn > 0).all():
            raise ValueError(
                "the rows of a fit hold no counts at all (an empty document). Drop it "
                "or set smoothing > 0."
            )
        return cls(counts / drawn, total)

    def _refitted(self, total, *sums):
        drawn = sums[0].sum(axis=-1, keepdims=True)
        return type(self)(sums[0] / drawn, self.total)
