"""Sums over the counts 0, 1, 2, ... that have no closed form."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.special import gammaln, logsumexp

from maxent.families._pairs import tiles
from maxent.families._special import log_factorial_excess, log_multichoose

# Rate from which five terms of the expansion of the Poisson entropy leave 2e-14.
_LARGE_RATE = 200.0
# From this expected exponent the terms are a smooth bump away from zero; sums over
# every k-th term, k <= 0.6 standard deviations, then differ by exp(-54) only.
_SMOOTH = 100.0
_STRIDE = 0.6
_DEPTH = 46.0  # terms left out are below exp(-46) of the largest
_TILE = 2**17  # terms at a time
# Up to this power a peak x^k exp(-l x) is wide enough for the nodes of a block: errors
# were those of rounding up to k = 400, and 5e-11 at 600.
_NARROW = 200.0
_HEAD, _NODES = 128, 32


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
    z = z[lo:, None]
    spread = np.sqrt(z / power)
    grid = _Grid(z, _strides(spread, power * z), _poisson_reach(z, power))

    def log_terms(x, rows):
        return -power * (_deviance(x, z[rows], x - z[rows]) + log_factorial_excess(x))

    out[lo:] = grid.log_sums(log_terms)
    return out[place].reshape(shape)


def _poisson_reach(z, power):
    """Distance z u at which power z ((1 + u) log(1 + u) - u) is `_DEPTH`."""
    # Bernstein's bound is beyond, and Newton steps come down to it, since h is convex
    c = _DEPTH / (power * z)
    u = c / 3.0 + np.sqrt(c * c / 9.0 + 2.0 * c)
    for _ in range(5):
        u = u - ((1.0 + u) * np.log1p(u) - u - c) / np.log1p(u)
    return z * u


def log_negative_binomial_power_sum(log_fail, r, power):
    """log sum_x P(x)^power, P negative binomial, for every log(1 - prob) <= 0.

    Terms have the peak of x^k exp(-l x), k = power (r - 1) and l = -power log_fail. One
    that is narrow is added up around its place; otherwise the same nodes do for all.
    """
    shape = np.shape(log_fail)
    eta, place = np.unique(np.asarray(log_fail, float), return_inverse=True)
    out = np.zeros(len(eta))
    lo = int(np.searchsorted(eta, -np.inf, side="right"))
    by = _sums_around_mode if power * (r - 1.0) > _NARROW else _sums_by_nodes
    out[lo:] = by(eta[lo:, None], r, power)
    return out[place].reshape(shape)


def _sums_around_mode(eta, r, power):
    """P(x) = prob exp(-deviance + ..) of x from the mode (r - 1)(1 - prob) / prob."""
    q, p, k = np.exp(eta), -np.expm1(eta), r - 1.0
    mode = k * q / p
    spread = np.sqrt(k * q / power) / p

    def deviance(x, q, p, mode):
        off, both = p * (x - mode), x + k
        return _deviance(x, both * q, off) + _deviance(k, both * p, -off)

    # Newton steps to where it reaches the depth; it is convex
    bound = _DEPTH / power
    y = spread * np.sqrt(2.0 * _DEPTH) + bound / p
    for _ in range(8):
        slope = np.log1p(p * y / ((mode + y + k) * q))
        y = y - (deviance(mode + y, q, p, mode) - bound) / slope
    grid = _Grid(mode, _strides(spread, power * mode), y)
    constant = log_factorial_excess(k)

    def log_terms(x, rows):
        rest = log_factorial_excess(x + k) - log_factorial_excess(x) - constant
        off = deviance(x, q[rows], p[rows], mode[rows])
        return power * (np.log(p[rows]) - off + rest)

    return grid.log_sums(log_terms)


def _sums_by_nodes(eta, r, power):
    """All counts up to _HEAD, and Gauss nodes in blocks that double in length."""
    # beyond this place x^k exp(-l x) is below exp(-_DEPTH) of its peak
    k = max(power * (r - 1.0), 0.0)
    last = np.minimum((2.0 * k + 1.5 * _DEPTH) / (-power * eta[:, 0]), 1e300)
    blocks = np.ceil(np.log2(np.maximum(last / _HEAD, 1.0))).astype(int)
    out = np.empty(len(eta))
    for part in _parts(_HEAD + _NODES * blocks):
        x, weight = _count_rule(int(blocks[part][-1]))
        log_p = r * np.log(-np.expm1(eta[part])) + x * eta[part] + log_multichoose(r, x)
        out[part] = logsumexp(power * log_p, b=weight, axis=1)
    return out


@functools.cache
def _count_rule(n_blocks):
    """Nodes and weights of sums over 0 <= x < _HEAD 2^n_blocks.

    Gauss rules of blocks of counts, exact for polynomials of degree 2 _NODES - 1: their
    nodes are the roots of discrete Chebyshev polynomials (Golub & Welsch 1969).
    """
    x, weight = [np.arange(float(_HEAD))], [np.ones(_HEAD)]
    j = np.arange(1.0, _NODES)
    for length in _HEAD * 2.0 ** np.arange(n_blocks):  # from `length` on
        beside = j * np.sqrt((1.0 - (j / length) ** 2) / (4.0 * j * j - 1.0))
        node, vector = eigh_tridiagonal(np.zeros(_NODES), beside)
        x.append(length + 0.5 * (length - 1.0) + 0.5 * length * node)
        weight.append(length * vector[0] ** 2)
    return np.concatenate(x), np.concatenate(weight)


@dataclass
class _Grid:
    """Counts around the largest terms of sums, whose places ascend; (n, 1) each."""

    middle: np.ndarray
    stride: np.ndarray
    reach: np.ndarray  # on either side, in counts

    def log_sums(self, log_terms):
        """Of `log_terms(x, rows)`, x (rows, counts); (n,)."""
        steps = np.maximum.accumulate(np.ceil(self.reach / self.stride) + 2.0)[:, 0]
        out = np.empty(len(steps))
        for rows in _parts(2 * steps + 1):
            most, stride = int(steps[rows][-1]), self.stride[rows]
            x = np.floor(self.middle[rows]) + stride * np.arange(-most, most + 1)
            inside = x >= 0
            term = np.where(inside, log_terms(np.where(inside, x, 0.0), rows), -np.inf)
            top = term.max(axis=1, keepdims=True)
            total = np.exp(term - top).sum(axis=1)
            out[rows] = top[:, 0] + np.log(total) + np.log(stride[:, 0])
        return out


def _strides(spread, exponent):
    smooth = np.maximum(np.floor(_STRIDE * spread), 1.0)
    return np.where(exponent > _SMOOTH, smooth, 1.0)


def _parts(size):
    """Slices of rows of ascending sizes, with about _TILE numbers each."""
    lo = 0
    while lo < len(size):
        numbers = (np.arange(len(size) - lo) + 1) * size[lo:]
        hi = lo + max(1, int(np.searchsorted(numbers, _TILE)))
        yield slice(lo, hi)
        lo = hi


def _deviance(x, mean, off):
    """x log(x / mean) - off >= 0, off = x - mean; of x = 0 the mean."""
    ratio = np.where(x > 0, off / mean, 0.0)
    return np.where(x > 0, x * np.log1p(ratio), 0.0) - off


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
