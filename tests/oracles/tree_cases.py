"""Weights of graphs on which spanning trees are tested."""

import numpy as np


def symmetric(a):
    """The lower triangles of an array, mirrored, with no edge on the diagonal."""
    a = np.tril(a, -1)
    a = a + a.swapaxes(-1, -2)
    a[..., np.arange(a.shape[-1]), np.arange(a.shape[-1])] = -np.inf
    return a


def normal(n, rng, *batch):
    """Standard normal log weights."""
    return symmetric(rng.normal(size=(*batch, n, n)))


def with_holes(n, rng):
    """Log weights with missing edges; a path keeps the graph connected."""
    a = np.where(rng.random((n, n)) < 0.4, -np.inf, rng.normal(size=(n, n)))
    a[np.arange(1, n), np.arange(n - 1)] = rng.normal(size=n - 1)
    a = np.where(np.tri(n, k=-1) > 0, a, 0.0)
    return symmetric(a)


def wide(kind, n, rng):
    """Log weights over e^(+-1000), n >= 3."""
    if kind == "uniform":
        return symmetric(rng.uniform(-1000, 1000, (n, n)))
    if kind == "chain":  # bottlenecks at all levels
        return low_ends(np.linspace(-1000, 1000, n), rng)
    if kind == "border":  # most bottlenecks where two windows of 920 overlap
        h = np.full(n, 15.0)
        h[:2], h[2:4] = 950.0, 40.0
        return low_ends(h, rng)
    if kind == "parts":  # three parts, each tight, loosely joined
        level = symmetric(rng.uniform(-1000, -100, (3, 3)))
        np.fill_diagonal(level, 900.0)
        part = rng.permutation(np.arange(n) % 3)
        return symmetric(level[part][:, part] + 3 * rng.normal(size=(n, n)))
    if kind == "two levels":  # the rounding of a window's edge must not show
        return symmetric(np.where(rng.random((n, n)) < 0.5, 460.0, -460.0))
    return symmetric(15.0 * rng.normal(size=(n, n)))


def low_ends(height, rng):
    """An edge weighs about as much as the lower of its ends; any order of the ends."""
    h = rng.permutation(height)
    return symmetric(np.minimum.outer(h, h) + rng.normal(size=(len(h), len(h))))
