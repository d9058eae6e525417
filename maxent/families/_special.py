"""Gamma functions without cancellation at large arguments.

Differences of log Gamma and of logarithms by Stirling's series; NIST Handbook (2010),
section 5.11.
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln, polygamma, xlogy

from maxent.families._pairs import tiles


def log_gamma_ratio(a, n, total=None):
    """log Gamma(a + n) - log Gamma(a) for a > 0 and real n > -a.

    Where both arguments are large the two are not subtracted: the error is a few
    roundings of the result, not of log Gamma(a). `total` is a + n where it is known to
    more digits than the sum has. Arrays broadcast.
    """
    a, n = np.asarray(a, dtype=np.float64), np.asarray(n, dtype=np.float64)
    a, n, total = np.broadcast_arrays(a, n, a + n if total is None else total)
    out = np.zeros(a.size)
    moved = np.flatnonzero(n)  # often few, and the others stay exactly zero
    for part in tiles(len(moved), 16):  # all that a part needs stays in cache
        at = moved[part]
        out[at] = _moved_ratio(*(np.take(each, at) for each in (a, total, n)))
    return out.reshape(a.shape)[()]


def _moved_ratio(x, y, d):
    """log Gamma(y) - log Gamma(x), y = x + d, of vectors."""
    near = np.minimum(x, y) < 20.0
    small = np.flatnonzero(near)
    value = gammaln(y[small]) - gammaln(x[small])
    if len(small) == len(x):
        return value
    # Stirling's series, with numbers of no use in the places of small arguments
    x, y, d = np.where(near, 20.0, x), np.where(near, 20.0, y), np.where(near, 0.0, d)
    out = (y - 0.5) * np.log1p(d / x) + d * (np.log(x) - 1.0)
    out += stirling_rest(y) - stirling_rest(x)
    out[small] = value
    return out


def stirling_rest(x):
    """log Gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2, within 3e-16 from 15 on."""
    v = 1.0 / x
    w = v * v
    return (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w * (1 / 1680 - w / 1188)))) * v


def log_factorial_excess(x):
    """log x! - (x log x - x) for x >= 0: half of log(2 pi x), and a little."""
    x = np.asarray(x, dtype=np.float64)
    far = np.maximum(x, 15.0)
    out = (0.5 * np.log(2.0 * np.pi * far) + stirling_rest(far)).reshape(-1)
    small = np.flatnonzero(x < 15.0)
    near = np.take(x, small)
    out[small] = gammaln(near + 1.0) - xlogy(near, near) + near
    return out.reshape(x.shape)[()]


def log_multichoose(r, x):
    """log of Gamma(x + r) / (x! Gamma(r)), r > 0 and x >= 0."""
    # of x + 1 and r the larger one is base of the ratio, so that nothing cancels
    large, small = np.maximum(x + 1.0, r), np.minimum(x + 1.0, r)
    return log_gamma_ratio(large, small - 1.0, x + r) - gammaln(small)


def log_minus_digamma(a):
    """log a - digamma(a) > 0 and its derivative, without cancellation at large a."""
    large = a > 20.0
    y = np.where(large, a, 21.0)
    w = 1.0 / (y * y)
    series = w * (1 / 12 - w * (1 / 120 - w * (1 / 252 - w * (1 / 240 - w / 132))))
    far = 0.5 / y + series
    slope = -0.5 * w - w / y * (1 / 6 - w * (1 / 30 - w * (1 / 42 - w / 30)))
    s = np.where(large, 1.0, a)
    near, near_slope = np.log(s) - digamma(s), 1.0 / s - polygamma(1, s)
    return np.where(large, far, near), np.where(large, slope, near_slope)


def inverse_digamma(y):
    """x > 0 with digamma(x) = y."""
    x = np.where(
        y > -2.22, np.exp(np.maximum(y, -3.0)) + 0.5, -1.0 / (y + 0.5772156649)
    )
    for _ in range(8):
        step = (digamma(x) - y) / polygamma(1, x)
        x = np.maximum(x - step, 0.1 * x)
    return x
