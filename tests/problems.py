"""Margin priors and problems that several tests solve."""

import math

import numpy as np
from scipy.optimize import brentq

from maxent.discrimination import (
    ErlangMargin,
    ExponentialMargin,
    GaussianMargin,
    HingeMargin,
    LaplaceMargin,
    LogisticMargin,
)

# one of each kind that any solver takes
PRIORS = [
    ExponentialMargin(5.0),
    ErlangMargin(2, 6.0),
    LaplaceMargin(4.0),
    GaussianMargin(1.5),
    LogisticMargin(2.0, 0.5),
    HingeMargin(),
]


def by_name(value):
    """Name of a case: that of a margin prior, or the value itself."""
    return getattr(value, "name", str(value))


def rbf(X, gamma=0.3):
    """RBF kernel matrix by explicit differences."""
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
    return np.exp(-gamma * squares)


def two_classes(rng, n, d, noise=0.7, direction=(1.0,)):
    """Normal features and labels -1, +1 along a direction, with noise; both occur."""
    X = rng.normal(size=(n, d))
    along = X[:, : len(direction)] @ np.asarray(direction)
    y = np.where(along + noise * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X, y


def two_gaussians(rng, n=60, d=3):
    """Two Gaussian classes 0, 1 of different means and covariances that overlap."""
    y = np.arange(n) % 2
    X = rng.normal(size=(n, d))
    X[y == 1] = 1.4 * X[y == 1] + 0.5
    return X @ (np.eye(d) + 0.3 * rng.normal(size=(d, d))), y


def categories(rng, n=60, d=4):
    """Categories 0, 1, 2 of classes 0, 1 that they tell apart a little."""
    y = np.arange(n) % 2
    p = np.where(y[:, None] == 1, [0.7, 0.6, 0.4, 0.5], [0.3, 0.5, 0.6, 0.5])[:, :d]
    X = (rng.random((n, d)) < p).astype(int) + (rng.random((n, d)) < 0.3)
    return X, y


def margin_oracle(prior):
    """(kind, level, rate, shape) of the oracles of margin priors, and a shift."""
    if prior.name == "uniform_exponential":
        # there the tolerance is -gamma; a level moves the margin
        return ("uniform_exp", -prior.width, prior.rate, 1.0), prior.level
    return (prior.name, prior.level, prior.rate, getattr(prior, "shape", 1.0)), 0.0


def best_multiplier(prior, weight, lam, margin, k):
    """argmax over one multiplier, all others fixed, by bracketing the root.

    `margin` belongs to the multiplier `lam`; moving to x changes it by k (x - lam).
    """
    top = prior.upper * weight
    if prior.name == "hinge":
        return min(max(lam + (prior.level - margin) / k, 0.0), top)

    def slope(x):
        return float(prior.mean(x / weight)) - margin - k * (x - lam)

    low = 1e-14 * weight if prior.name == "logistic" else 0.0
    high = top * (1 - 1e-14) if math.isfinite(top) else 1e3 * weight * prior.rate**2
    if slope(low) <= 0:
        return 0.0
    return brentq(slope, low, high, xtol=1e-15, rtol=8.9e-16)


def tails(rng, n=80, d=3):
    """Rows of which one in ten is from a wider distribution."""
    X = rng.normal(size=(n, d))
    X[: n // 10] *= 3.0
    return X


def overlapping(rng, n=90, d=4):
    X = rng.normal(size=(n, d))
    y = (X[:, 0] - X[:, 1] + rng.normal(size=n) > 0).astype(int)
    y[:2] = 0, 1
    return X, y, rng.uniform(0.2, 3.0, n)
