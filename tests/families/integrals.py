"""Integrals over the support of a family, from nothing but a density.

Every rule is a set of points and weights for a batch of shape (): sums over them are
integrals, to rounding for the smooth densities of these tests.
"""

import math

import numpy as np


def double_exponential(n=241, reach=3.6):
    """Points x, 1 - x and weights on (0, 1), for integrands with singular ends."""
    t, h = np.linspace(-reach, reach, n, retstep=True)
    u = 0.5 * math.pi * np.sinh(t)
    x, rest = 1 / (1 + np.exp(-2 * u)), 1 / (1 + np.exp(2 * u))
    return x, rest, h * math.pi * np.cosh(t) * x * rest


def half_line(low=-60.0, high=7.0, n=4001):
    """Points exp(u) on (0, inf), with weights."""
    u, h = np.linspace(low, high, n, retstep=True)
    return np.exp(u), h * np.exp(u)


def line(low, high, n):
    x, h = np.linspace(low, high, n, retstep=True)
    return x, np.full(n, h)


def product(*rules):
    """Points (n, d) and weights of a product of one-dimensional rules."""
    points = np.meshgrid(*[x for x, _ in rules], indexing="ij")
    weights = np.meshgrid(*[w for _, w in rules], indexing="ij")
    X = np.stack([p.reshape(-1) for p in points], axis=-1)
    return X, np.prod(weights, axis=0).reshape(-1)


def space(d, width=14.0, n=61):
    return product(*[line(-width, width, n)] * d)


def triangle(n=121):
    """The simplex of three proportions, by x1 = u, x2 = (1 - u) v."""
    x, rest, w = double_exponential(n)
    u, v = (a.reshape(-1) for a in np.meshgrid(x, x, indexing="ij"))
    u1, v1 = (a.reshape(-1) for a in np.meshgrid(rest, rest, indexing="ij"))
    weight = (w[:, None] * w).reshape(-1) * u1
    return np.stack([u, u1 * v, u1 * v1], axis=-1), weight


def sphere(d, n=160):
    """The unit sphere in 2, 3 or 4 dimensions."""
    angle = 2 * math.pi * np.arange(n) / n
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    points, weights = circle, np.full(n, 2 * math.pi / n)
    for k in range(3, d + 1):
        # latitude c in [-1, 1] with density (1 - c^2)^{(k - 3) / 2}
        if k == 3:
            c, w = np.polynomial.legendre.leggauss(n // 2)
        else:
            j = np.arange(1, n // 2 + 1) * math.pi / (n // 2 + 1)
            c, w = np.cos(j), np.sin(j) ** 2 * math.pi / (n // 2 + 1)
        r = np.sqrt(1 - c * c)
        rim = r[:, None, None] * points[None]
        top = np.broadcast_to(c[:, None, None], (*rim.shape[:2], 1))
        points = np.concatenate([rim, top], axis=-1).reshape(-1, k)
        weights = (w[:, None] * weights).reshape(-1)
    return points, weights


def matrices(n=110, low=-14.0, high=7.0, ends=81):
    """Positive definite 2 x 2 matrices [[a, c], [c, b]], da db dc."""
    u, h = np.linspace(low, high, n, retstep=True)
    x, rest, w = double_exponential(ends, 3.2)
    a, b, k = (
        m.reshape(-1)
        for m in np.meshgrid(np.arange(n), np.arange(n), np.arange(ends), indexing="ij")
    )
    A, B = np.exp(u[a]), np.exp(u[b])
    root = np.sqrt(A * B)
    C = root * (x[k] - rest[k])
    det = A * B * 4 * x[k] * rest[k]
    weight = h * h * A * B * root * 2 * w[k]
    return {"a": A, "b": B, "c": C, "det": det, "weight": weight}


def log_integral(log_values, weights):
    """log of sum w exp(log_values)."""
    top = log_values.max()
    return top + math.log(np.sum(weights * np.exp(log_values - top)))
