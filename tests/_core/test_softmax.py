"""The loops between the matrix products of conditional maximum entropy."""

import numpy as np
import pytest
from maxent._core.softmax import curvatures, residuals
from scipy.special import logsumexp, softmax


def _problem(rng, n, K):
    scores, bias = 30 * rng.normal(size=(n, K)), rng.normal(size=K)
    return scores, bias, rng.integers(K, size=n), rng.uniform(0, 2, size=n)


@pytest.mark.parametrize(("n", "K"), [(1, 2), (7, 3), (2049, 2), (300, 40), (3, 5000)])
def test_loss_and_residuals_are_those_of_the_definition(rng, n, K):
    scores, bias, y, w = _problem(rng, n, K)
    s, P, sums = scores.copy(), np.empty((n, K)), np.ones(K)
    loss = residuals(s, bias, y, w, P, sums)
    scores = scores + bias
    expected = w @ (logsumexp(scores, axis=1) - scores[np.arange(n), y])
    np.testing.assert_allclose(loss, expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(P, softmax(scores, axis=1), rtol=1e-10, atol=1e-300)
    R = w[:, None] * (softmax(scores, axis=1) - np.eye(K)[y])
    np.testing.assert_allclose(s, R, atol=1e-12)
    np.testing.assert_allclose(sums, 1 + R.sum(axis=0), atol=1e-11 * n)


@pytest.mark.parametrize(("n", "K"), [(1, 2), (7, 3), (300, 40)])
def test_curvatures_are_products_with_the_hessian_of_the_loss(rng, n, K):
    _, v, _, w = _problem(rng, n, K)
    P, u, sums = rng.dirichlet(np.ones(K), size=n), rng.normal(size=(n, K)), np.ones(K)
    expected = [
        w_i * (np.diag(p) - np.outer(p, p)) @ (row + v)
        for w_i, p, row in zip(w, P, u, strict=True)
    ]
    curvatures(u, v, P, w, sums)
    np.testing.assert_allclose(u, expected, atol=1e-13)
    np.testing.assert_allclose(sums, 1 + np.sum(expected, axis=0), atol=1e-12 * n)


def test_arrays_that_do_not_fit_are_refused(rng):
    scores, bias, y, w = _problem(rng, 4, 3)
    P, sums = np.empty((4, 3)), np.zeros(3)
    for wrong in (
        (scores, bias[1:], y, w, P, sums),
        (scores, bias, y[1:], w, P, sums),
        (scores, bias, y + 3, w, P, sums),
        (scores, bias, y, w[1:], P, sums),
        (scores, bias, y, w, P[1:], sums),
        (scores, bias, y, w, P, sums[1:]),
    ):
        with pytest.raises(ValueError, match=r"do not fit|no class"):
            residuals(*wrong)
    for wrong in ((scores, bias[1:], P, w, sums), (scores, bias, P[1:], w, sums)):
        with pytest.raises(ValueError, match="do not fit"):
            curvatures(*wrong)
