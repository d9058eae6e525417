"""Parameters whose mean statistics are given: the equations of maximum likelihood.

Each reduces to one unknown a distribution, a root on a logarithmic scale found by
Newton steps inside a bracket, for the whole batch at once.

Sources: Minka (2000), Estimating a Dirichlet distribution; Minka (2002), Estimating a
Gamma distribution; Banerjee, Dhillon, Ghosh & Sra (2005) for directions.
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, polygamma

from maxent.families._special import inverse_digamma, log_minus_digamma

_MAX_STEPS = 200


def log_root(function, start, low=1e-100, high=1e100):
    """Positive roots of decreasing functions; `function` gives value and slope.

    The slope is with respect to the argument. Start, low and high are arrays of one
    shape, or numbers. Newton steps are in the logarithm; where one leaves the bracket
    it is halved instead, so every component converges.
    """
    t = np.log(np.asarray(start, dtype=np.float64))
    lo = np.broadcast_to(np.log(low), t.shape).copy()
    hi = np.broadcast_to(np.log(high), t.shape).copy()
    for _ in range(_MAX_STEPS):
        x = np.exp(t)
        value, slope = function(x)
        lo, hi = np.where(value > 0, t, lo), np.where(value > 0, hi, t)
        with np.errstate(all="ignore"):
            new = t - value / (slope * x)
        inside = (new > lo) & (new < hi)
        new = np.where(value == 0, t, np.where(inside, new, 0.5 * (lo + hi)))
        done = np.abs(new - t) <= 1e-15 * np.maximum(np.abs(t), 1.0)
        t = new
        if done.all():
            break
    return np.exp(t)


def shape_from_gap(gap, p=1):
    """a with sum_{j<p} [log a - digamma(a - j/2)] = gap > 0, a > (p - 1) / 2.

    For p = 1 the shape of Gamma distributions with log E x - E log x = gap; in general
    half the degrees of freedom of Wishart distributions of p x p matrices.
    """
    edge = 0.5 * (p - 1)
    j = 0.5 * np.arange(p)

    def excess(x):  # in x = a - edge, so that the logarithmic scale ends at the edge
        a = (x + edge)[..., None]
        value, slope = log_minus_digamma(a - j)
        value = value - np.log1p(-j / a)
        slope = slope + 1.0 / a - 1.0 / (a - j)
        return value.sum(axis=-1) - gap, slope.sum(axis=-1)

    gap = np.asarray(gap, dtype=np.float64)
    return log_root(excess, 0.25 * p * (p + 1) / gap) + edge


def dirichlet_from_mean_logs(mean_log):
    """alpha with digamma(alpha_d) - digamma(sum alpha) = mean_log_d, last axis d.

    In the sum s of alpha alone: alpha_d = digamma^{-1}(digamma(s) + mean_log_d), and s
    is where these add up to s.
    """

    def excess(s):
        alpha = inverse_digamma(digamma(s)[..., None] + mean_log)
        slope = (polygamma(1, s)[..., None] / polygamma(1, alpha)).sum(axis=-1)
        return alpha.sum(axis=-1) / s - 1.0, (slope - alpha.sum(axis=-1) / s) / s

    k = mean_log.shape[-1]
    # of concentrated rows 1 - sum exp(mean log) is about (k - 1) / (2 s)
    loss = np.maximum(1.0 - np.exp(mean_log).sum(axis=-1), 1e-15)
    s = log_root(excess, 0.5 * (k - 1) / loss, 1e-10, 1e15)
    return inverse_digamma(digamma(s)[..., None] + mean_log)
