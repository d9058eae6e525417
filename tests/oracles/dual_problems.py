"""Small duals on which the references are checked, and when values agree."""

import numpy as np

from .closed_forms import Potentials

SEEDS = (0, 1, 2)


PROPER = ("exponential", "erlang", "laplace", "gaussian", "logistic", "uniform_exp")


BIASES = ("flat", 2.0, None)


GAP = 1e-10  # rounding, times the largest box or rate in these tests (100)


def potential(kind, level=1.0, rate=2.0, weight=1.0, shape=3.0, n=1):
    if kind == "uniform_exp":
        level = -abs(level)
    return Potentials(kind, np.full(n, level), rate, weight, shape)


def problem(seed, T=24, d=3):
    """Overlapping classes, an RBF kernel of full rank and a linear one of rank d."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, d))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=T) > 0.0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    rbf = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=-1) / 2.0)
    return X, y, rbf


def separable(seed, T=20):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, 2))
    y = np.where(np.arange(T) % 2 == 0, 1.0, -1.0)
    X[:, 0] = y * (0.5 + np.abs(X[:, 0]))
    return X, y


def classes(seed, X, m=3):
    rng = np.random.default_rng(seed + 1000)
    y = np.argmax(X[:, :m] + 0.5 * rng.normal(size=(len(X), m)), axis=1)
    y[:m] = np.arange(m)
    return y


def close(a, b, tol=1e-9):
    """Agreement relative to the largest entry."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    scale = max(1.0, float(np.max(np.abs(b))))
    error = float(np.max(np.abs(a - b)))
    assert error <= tol * scale, f"differs by {error:.2e}, allowed {tol * scale:.1e}"


def certified(solution, tol=GAP):
    unit = 1.0 + abs(solution.objective)
    assert abs(solution.gap) <= tol * unit
    assert abs(solution.primal - solution.objective) <= tol * unit
    assert solution.objective >= -tol
    assert np.all(solution.lam >= 0.0)
