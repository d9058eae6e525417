"""L-BFGS in the geometry of a kernel against SciPy in coordinates, and two loops."""

import numpy as np
import pytest
from scipy.optimize import minimize

from maxent._optimize.kernel_descent import _PAIRS, KernelDescent, _inner, _Pairs


def kernel_matrix(rng, n):
    X = rng.standard_normal((n, 3))
    return np.exp(-0.2 * ((X[:, None] - X) ** 2).sum(axis=2))


def logistic(y):
    def loss(f):
        z = np.clip(y * f, -500, 500)
        return float(np.log1p(np.exp(-z)).sum()), -y / (1 + np.exp(z))

    return loss


@pytest.mark.parametrize("precision", [None, 0.0, 0.5])
def test_minimum_of_a_convex_loss_is_that_of_scipy(precision, rng):
    n = 40
    K, y = kernel_matrix(rng, n), rng.choice([-1.0, 1.0], size=n)
    loss = logistic(y)
    found = KernelDescent(K.__matmul__, loss, precision).run(
        np.zeros(n), np.zeros(n), 0.0, tol=1e-16, max_iter=500
    )
    values, vectors = np.linalg.eigh(K)
    F = vectors * np.sqrt(np.maximum(values, 0.0))

    def risk(x):
        z, b = x[:-1], x[-1] if precision is not None else 0.0
        return loss(F @ z + b)[0] + 0.5 * z @ z + 0.5 * (precision or 0.0) * b * b

    best = minimize(risk, np.zeros(n + 1), method="BFGS", options={"gtol": 1e-7})
    assert found.value == pytest.approx(best.fun, rel=1e-9)
    np.testing.assert_allclose(found.Ka, K @ found.a, atol=1e-9)
    np.testing.assert_allclose(found.a, -found.slope, atol=1e-6)
    assert found.b == 0.0 if precision is None else abs(found.b - best.x[-1]) < 1e-4


def test_values_fall_for_a_loss_that_is_not_convex(rng):
    n = 60
    K = kernel_matrix(rng, n)

    def loss(f):  # two wells for every row
        return float(np.sum((f**2 - 1) ** 2)), 4 * f * (f**2 - 1)

    seen = []
    found = KernelDescent(K.__matmul__, loss, 0.0).run(
        *(a := rng.standard_normal(n), K @ a, 0.3),
        tol=1e-14,
        max_iter=300,
        callback=lambda n_iter, value, size: seen.append(value),
    )
    assert (np.diff(seen) <= 0).all() and found.n_iter > 5
    np.testing.assert_allclose(K @ (found.a + found.slope), 0, atol=1e-5)


def test_a_callback_ends_it(rng):
    K = kernel_matrix(rng, 20)
    loss = logistic(rng.choice([-1.0, 1.0], size=20))
    found = KernelDescent(K.__matmul__, loss, None).run(
        *(np.zeros(20), np.zeros(20), 0.0),
        tol=1e-16,
        max_iter=100,
        callback=lambda n_iter, value, size: n_iter == 3,
    )
    assert found.n_iter == 3


def test_squared_norms_are_not_negative_by_rounding():
    """A product that is no longer that of the start from the second gradient on."""
    sizes, scales = [], iter([1.0] + [100.0] * 10)

    def product(slope):
        return next(scales) * slope

    def listen(n_iter, value, size):
        sizes.append(size)

    descent = KernelDescent(product, logistic(np.array([1.0, -1.0])), None)
    zero = np.zeros(2)
    descent.run(zero, zero, 0.0, tol=0.0, max_iter=3, callback=listen)
    assert sizes and sizes[0] == 0.0


@pytest.mark.parametrize("count", [1, 5, _PAIRS, _PAIRS + 7])
def test_direction_is_that_of_the_two_loops(count, rng):
    n = 50
    K = kernel_matrix(rng, n)
    A = rng.standard_normal((n, n))
    A = A @ A.T / n + np.eye(n)

    def vector(a):
        return np.concatenate([a, K @ a, [rng.standard_normal()]])

    pairs, kept = _Pairs(2 * n + 1), []
    for _ in range(count):
        a = rng.standard_normal(n)
        s = vector(a)
        y = np.concatenate([A @ K @ a, K @ (A @ K @ a), s[-1:]])
        pairs.add(s, y)
        kept.append((s, y))
    kept = kept[-_PAIRS:]
    assert pairs.count == len(kept)
    g = vector(rng.standard_normal(n))
    d, alphas = g.copy(), []
    for s, y in reversed(kept):
        alphas.append(_inner(s, d) / _inner(s, y))
        d -= alphas[-1] * y
    s, y = kept[-1]
    d *= _inner(s, y) / _inner(y, y)
    for (s, y), alpha in zip(kept, reversed(alphas), strict=True):
        d += (alpha - _inner(y, d) / _inner(s, y)) * s
    np.testing.assert_allclose(pairs.direction(g), -d, rtol=1e-6, atol=1e-7)


def test_pairs_without_curvature_are_left_out(rng):
    pairs, s = _Pairs(5), np.array([1.0, 0.0, 1.0, 0.0, 0.0])
    pairs.add(s, -s)
    assert pairs.count == 0
    np.testing.assert_array_equal(pairs.direction(s), -s)
