"""One draw of finitely many outcomes: Bernoulli, categorical.

Probabilities may be zero; what follows is taken as a limit, 0 log 0 = 0.
"""

from __future__ import annotations

import functools
import math
from typing import Self

import numpy as np
from scipy import sparse
from scipy.special import log_expit, logsumexp, rel_entr

from maxent._support import validation as v
from maxent._support.typing import ArrayLike, FloatArray
from maxent.families import _checks
from maxent.families._charts import LOGITS
from maxent.families._minimal import of_logits
from maxent.families._pairs import tiles, weighted_mean
from maxent.families.base import ExponentialFamily

_MOST_CATEGORIES = 10_000_000  # that a fit takes for granted
# Sums of products above this have lost no digit to underflow.
_NEARLY_ZERO = 1e-280
_SPARSE = 0.1  # share of positive entries up to which a sparse product is faster


class Bernoulli(ExponentialFamily):
    """Bernoulli distributions of bits, P(1) = prob.

    Parameters
    ----------
    prob : array-like (batch,)
        Probabilities of the outcome 1, in [0, 1].

    See Also
    --------
    Categorical : More than two outcomes.

    Notes
    -----
    Statistic: x (k = 1). All affinities exist. `fit` adds `smoothing` >= 0
    pseudo-counts to each of the two outcomes. Shapes, batches and methods are those of
    `ExponentialFamily`.

    Examples
    --------
    >>> from maxent.families import Bernoulli
    >>> Bernoulli.fit([1, 1, 1, 0], smoothing=1.0)
    Bernoulli(prob=0.666667)
    """

    _is_predictive = True
    _core: tuple[tuple[str, int], ...] = (("prob", 0),)
    _chart = LOGITS
    _has_bounded_statistics = True
    prob: FloatArray

    def __init__(self, prob: ArrayLike) -> None:
        self._set({"prob": _checks.probability_array("prob", prob)})

    @functools.cached_property
    def _coin(self):
        return Categorical(np.stack([1.0 - self.prob, self.prob], axis=-1))

    @classmethod
    def _inside(cls, X):
        return (X == 0) | (X == 1)

    @classmethod
    def _support_text(cls):
        return "rows are 0 or 1"

    @classmethod
    def _statistics(cls, X):
        return X[..., None]

    def _natural(self):
        with np.errstate(divide="ignore"):
            return (np.log(self.prob) - np.log1p(-self.prob))[..., None]

    def _mean(self):
        return self.prob[..., None]

    def _cumulant(self, eta):
        return -log_expit(-eta[..., 0])

    def _log_prob(self, X):
        prob = self.prob[..., None]
        with np.errstate(divide="ignore"):
            return np.where(X == 1, np.log(prob), np.log1p(-prob))

    def _entropy(self):
        return self._coin.entropy()

    def _kl(self, other):
        return self._coin._kl(other._coin)

    def _affinity(self, other, rho):
        return self._coin._affinity(other._coin, rho)

    def _moments(self):
        return self.prob, self.prob * (1.0 - self.prob)

    def _sample(self, n, rng):
        shape = self.batch_shape + (n,)
        return (rng.random(size=shape) < self.prob[..., None]).astype(np.int64)

    @classmethod
    def fit(
        cls,
        X: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        smoothing: float = 0.0,
    ) -> Self:
        smoothing = v.check_nonnegative("smoothing", smoothing)
        X, W, total = cls._rows_to_fit(X, weights)
        ones = weighted_mean(W, total, X[..., None])[..., 0] * total
        return cls(np.minimum((ones + smoothing) / (total + 2.0 * smoothing), 1.0))

    @classmethod
    def _solve(cls, mean, total):
        return cls(np.minimum(mean[..., 0], 1.0))


class Categorical(ExponentialFamily):
    """Distributions over the categories 0, 1, ..., k - 1.

    Parameters
    ----------
    prob : array-like (batch, k)
        Probabilities, which sum to one within 1e-8 and are not renormalised.

    See Also
    --------
    Multinomial : Counts of several draws.

    Notes
    -----
    An observation is the number of its category. Statistics: its indicator vector, of
    which `moments` are too. All affinities exist: ``log sum (p q)^rho``, one matrix
    product. Shapes, batches and methods are those of `ExponentialFamily`.

    References
    ----------
    Jebara, Kondor & Howard (2004), section 3.3.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.families import Categorical
    >>> P = Categorical([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    >>> np.exp(P.log_affinity(P, 1.0))
    array([[0.5 , 0.25],
           [0.25, 0.5 ]])
    """

    _is_predictive = True
    _core: tuple[tuple[str, int], ...] = (("prob", 1),)
    _has_bounded_statistics = True
    prob: FloatArray

    def __init__(self, prob: ArrayLike) -> None:
        self._set({"prob": _checks.simplex_array("prob", prob)})

    def _fixed(self):
        return {"n_categories": self.prob.shape[-1]}

    @classmethod
    def _complete(cls, X, options):
        if options.get("n_categories") is not None:
            return options
        return {**options, "n_categories": int(np.nanmax(X, initial=0.0)) + 1}

    @classmethod
    def _kept(cls, options):
        return {"n_categories": options["n_categories"]}

    @functools.cached_property
    def _log_prob_table(self):
        out = np.full_like(self.prob, -np.inf)
        return np.log(self.prob, out=out, where=self.prob > 0.0)

    @classmethod
    def _inside(cls, X, n_categories):
        return _checks.are_counts(X) & np.less(X, n_categories)

    @classmethod
    def _support_text(cls, n_categories):
        return f"rows are categories 0, 1, ..., {n_categories - 1}"

    @classmethod
    def _statistics(cls, X, n_categories):
        return (X[..., None] == np.arange(n_categories)).astype(np.float64)

    def _n_free(self):
        return int(np.count_nonzero(self.prob)) - int(np.prod(self.batch_shape))

    def _minimal(self):
        return of_logits(self.prob)

    def _natural(self):
        return self._log_prob_table

    def _mean(self):
        return self.prob

    def _cumulant(self, eta):
        return logsumexp(eta, axis=-1)

    def _log_prob(self, X):
        codes = X.astype(np.intp)
        if codes.ndim == 1:
            return self._log_prob_table[..., codes]
        shape = np.broadcast_shapes(self.batch_shape, codes.shape[:-1])
        table = np.broadcast_to(self._log_prob_table, shape + self.prob.shape[-1:])
        codes = np.broadcast_to(codes, shape + codes.shape[-1:])
        return np.take_along_axis(table, codes, axis=-1)

    def _entropy(self):
        return -rel_entr(self.prob, 1.0).sum(axis=-1)

    def _affinity(self, other, rho):
        log_p = rho * self._log_prob_table
        same = other is self
        return _log_power_product(log_p, log_p if same else rho * other._log_prob_table)

    def _moments(self):
        return self.prob, self.prob * (1.0 - self.prob)

    def _imputed(self, X, shares):
        best = np.argmax(shares.T @ self.prob, axis=1)
        return best, np.full(len(best), np.nan)

    def _sample(self, n, rng):
        edges = np.cumsum(self.prob, axis=-1)
        U = rng.random(size=self.batch_shape + (n,)) * edges[..., -1:]
        U = np.minimum(U, np.nextafter(edges[..., -1:], 0.0))  # rounding may reach it
        out = np.empty(U.shape, dtype=np.int64)
        for at in np.ndindex(self.batch_shape):  # one binary search for all draws
            out[at] = np.searchsorted(edges[at], U[at], side="right")
        return out

    @classmethod
    def fit(
        cls,
        X: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        smoothing: ArrayLike = 0.0,
        n_categories: int | None = None,
    ) -> Self:
        """Weighted frequencies of the categories.

        Parameters
        ----------
        X : array-like (..., n_samples)
            Categories 0, 1, ... Leading axes give one fit each.
        weights : array-like (n_samples,) or (..., n_samples), optional
            Weights >= 0 of the rows. Leading axes give one fit each.
        smoothing : float or array-like (k,), default=0.0
            Pseudo-counts >= 0 added to every category (Dirichlet prior with parameters
            1 + smoothing, greatest posterior density).
        n_categories : int, optional
            Number k of categories; None takes the largest of X plus one.

        Returns
        -------
        Categorical
            Its batch shape is that of the leading axes.

        Raises
        ------
        ValueError
            If a row is not a category, or the weights of a fit sum to zero.
        """
        if n_categories is None:
            most = _checks.rows(X, ()).max(initial=0.0)
            if most >= _MOST_CATEGORIES:
                raise ValueError(
                    f"X has categories up to {most:g}: too many to count one by one. "
                    "Number them 0, 1, 2, ... without gaps, or pass n_categories."
                )
            n_categories = int(most) + 1
        k = v.check_count("n_categories", n_categories)
        added = pseudo_counts(smoothing, k)
        X, W, _ = cls._rows_to_fit(X, weights, n_categories=k)
        codes, n = X.astype(np.intp), X.shape[-1]
        if codes.ndim == 1:
            indicators = sparse.csr_array(
                (np.ones(n), codes, np.arange(n + 1)), shape=(n, k)
            )
            counts = (W.reshape(-1, n) @ indicators).reshape(W.shape[:-1] + (k,))
        else:
            shape = np.broadcast_shapes(W.shape, codes.shape)
            member = np.arange(math.prod(shape[:-1])).reshape(shape[:-1])[..., None] * k
            cell = (np.broadcast_to(codes, shape) + member).reshape(-1)
            weight = np.broadcast_to(W, shape).reshape(-1)
            counts = np.bincount(cell, weight, minlength=member.size * k)
            counts = counts.reshape(shape[:-1] + (k,))
        counts = counts + added
        return cls(counts / counts.sum(axis=-1, keepdims=True))

    def _part_sums(self, X, W):
        codes, k = X.astype(np.intp), self.prob.shape[-1]
        return W.sum(axis=-1), np.stack([np.bincount(codes, w, k) for w in W])

    def _refitted(self, total, *sums):
        return type(self)(sums[0] / sums[0].sum(axis=-1, keepdims=True))


def pseudo_counts(smoothing: ArrayLike, k: int) -> FloatArray:
    """Smoothing of a fit as counts >= 0 of k categories, or one for all."""
    c = _checks.nonnegative_array("smoothing", smoothing)
    if c.shape not in ((), (k,)):
        raise ValueError(
            f"smoothing has shape {c.shape}; expected a number or one for each of the "
            f"{k} categories."
        )
    return c


def _log_power_product(log_p, log_q):
    """log sum_d exp(log_p[i, d] + log_q[j, d]) by one matrix product, (n, m).

    One array given twice is worked on once. Where few entries of both are positive, as
    of documents over many words, the product is one of sparse arrays.
    """
    same = log_q is log_p
    few = _are_few(log_p) and (same or _are_few(log_q))
    P, top_p = _scaled_rows(log_p, few)
    Q, top_q = (P, top_p) if same else _scaled_rows(log_q, few)
    product = (P @ Q.T).toarray() if few else P @ Q.T
    with np.errstate(divide="ignore"):
        out = np.log(product) + (top_p[:, None] + top_q)
    # factors of both have underflowed, or nearly: these pairs again, in logs
    i, j = _underflowed(product, log_p, log_q)
    for part in tiles(len(i), log_p.shape[-1]):
        out[i[part], j[part]] = log_sum(log_p[i[part]] + log_q[j[part]])
    return out


def _are_few(log_p):
    """True if so few entries are positive that sparse products are faster."""
    return np.count_nonzero(log_p > -np.inf) <= _SPARSE * log_p.size


def _scaled_rows(log_p, few):
    """Exponentials in units of the largest of each row, sparse if `few`; its log."""
    top = log_p.max(axis=-1)
    if not few:
        return np.exp(log_p - top[:, None]), top
    at = np.flatnonzero(log_p > -np.inf)
    rows, columns = np.divmod(at, log_p.shape[-1])
    ends = np.searchsorted(rows, np.arange(len(log_p) + 1))
    values = np.exp(log_p[rows, columns] - top[rows])
    return sparse.csr_array((values, columns, ends), shape=log_p.shape), top


def _underflowed(product, log_p, log_q):
    """Pairs (i, j) that share a category although their product nearly vanishes."""
    near = product < _NEARLY_ZERO
    if not near.any():
        return np.nonzero(near)
    # every shared category adds at least the product of the least entries of both
    least_p = _log_least(log_p)
    least_q = least_p if log_q is log_p else _log_least(log_q)
    least = least_p[:, None] + least_q
    near &= least < math.log(_NEARLY_ZERO)
    rows, columns = np.flatnonzero(near.any(axis=1)), np.flatnonzero(near.any(axis=0))
    if len(rows):
        support_p = (log_p[rows] > -np.inf).astype(np.float32)
        support_q = (log_q[columns] > -np.inf).astype(np.float32)
        near[np.ix_(rows, columns)] &= support_p @ support_q.T > 0
    return np.nonzero(near)


def _log_least(log_p):
    """Log of the least positive entry of every row, in units of the largest."""
    least = np.where(log_p > -np.inf, log_p, np.inf).min(axis=-1)
    return least - log_p.max(axis=-1)


def log_sum(terms):
    """logsumexp along the last axis; of nothing but -inf it is -inf."""
    top = terms.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(terms - top).sum(axis=-1)) + top[..., 0]
