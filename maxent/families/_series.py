"""Sums over the counts 0, 1, 2, ... that have no closed form."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from maxent.families._pairs import tiles
from maxent.families._special import log_factorial_excess

# Rate from which five terms of the expansion of the Poisson entropy leave 2e-14.
_LARGE_RATE = 200.0
# From this expected exponent the terms are a smooth bump away from zero; sums over
# every k-th term, k <= 0.6 standard deviations, then differ by exp(-54) only.
_SMOOTH = 100.0
_STRIDE = 0.6
_DEPTH = 46.0  # terms left out are below exp(-46) of the largest
_TILE = 2**17  # terms at a time


def log_poisson_power_sum(z, power):
    """log sum_x exp(power (x log z - log x! - z)) for every z >= 0, of its shape.

    The sum of the Conway-Maxwell-Poisson distribution in units of exp(power z): zero
    for power = 1. Terms are written by the deviance of x from z, so that large z costs
    no digits, and added around the largest one, at x = z.
    """
    shape = np.shape(z)
    # pairs come twice in a symmetric matrix; neighbours need about as many terms
    z, place = np.unique(np.asarray(z, dtype=np.float64), return_inverse=True)
    out = np.zeros(len(z))
    lo = int(np.searchsorted(z, 0.0, side="right"))
    reach = np.concatenate([np.zeros(lo), _reach(z[lo:], power)])
    while lo < len(z):
        size = (np.arange(len(z) - lo) + 1) * (2 * reach[lo:] + 1)
        hi = lo + max(1, int(np.searchsorted(size, _TILE)))
        out[lo:hi] = _tile_sum(z[lo:hi], power, int(reach[hi - 1]))
        lo = hi
    return out[place].reshape(shape)


def _reach(z, power):
    """Strides on either side of the largest term; a running maximum, sorted like z."""
    # where the deviance z h(u), h(u) = (1 + u) log(1 + u) - u, has reached the depth:
    # Bernstein's bound is beyond, and Newton steps come down to it, since h is convex
    c = _DEPTH / (power * z)
    u = c / 3.0 + np.sqrt(c * c / 9.0 + 2.0 * c)
    for _ in range(5):
        u = u - ((1.0 + u) * np.log1p(u) - u - c) / np.log1p(u)
    return np.maximum.accumulate(np.ceil(z * u / _strides(z, power)) + 2.0)


def _strides(z, power):
    smooth = np.maximum(np.floor(_STRIDE * np.sqrt(z / power)), 1.0)
    return np.where(power * z > _SMOOTH, smooth, 1.0)


def _tile_sum(z, power, reach):
    z = z[:, None]
    stride = _strides(z, power)
    x = np.floor(z) + stride * np.arange(-reach, reach + 1)
    inside = x >= 0
    x = np.where(inside, x, 0.0)
    # x log(x / z) - (x - z) >= 0, and what Stirling's formula adds
    ratio = (x - z) / z
    deviance = np.where(x > 0, x * np.log1p(np.where(x > 0, ratio, 0.0)), 0.0) - (x - z)
    term = np.where(inside, -power * (deviance + log_factorial_excess(x)), -np.inf)
    top = term.max(axis=1, keepdims=True)
    total = np.exp(term - top).sum(axis=1)
    return top[:, 0] + np.log(total) + np.log(stride[:, 0])


def poisson_entropy(rate):
    """Entropy of Poisson distributions, of the shape of `rate`."""
    rate = np.asarray(rate, dtype=np.float64)
    flat = rate.reshape(-1)
    large = flat > _LARGE_RATE
    safe = np.where(large, flat, 1.0)
    w = 1.0 / safe
    tail = w * (1 / 12 + w * (1 / 24 + w * (19 / 360 + w * (9 / 80 + w * 863 / 2520))))
    out = np.where(large, 0.5 * np.log(2.0 * np.pi * np.e * safe) - tail, 0.0)
    small = np.flatnonzero(~large & (flat > 0))
    x = np.arange(np.ceil(_LARGE_RATE + 12 * np.sqrt(_LARGE_RATE)) + 20.0)
    for part in tiles(len(small), len(x)):
        z = flat[small[part], None]
        log_p = x * np.log(z) - gammaln(x + 1.0) - z
        out[small[part]] = -(np.exp(log_p) * log_p).sum(axis=1)
    return out.reshape(rate.shape)
