"""One-class problems by general solvers: QPs of kernels, and the smallest ellipsoid."""

import numpy as np
from cvxopt import matrix, solvers


def _solve(P, q, cap):
    """min x'Px / 2 + q'x over 0 <= x <= cap, sum x = 1."""
    n = len(q)
    G = matrix(np.vstack([-np.eye(n), np.eye(n)]))
    h = matrix(np.concatenate([np.zeros(n), np.full(n, cap)]))
    saved = dict(solvers.options)
    solvers.options.update(
        show_progress=False, abstol=1e-12, reltol=1e-12, feastol=1e-12
    )
    try:
        found = solvers.qp(
            matrix(P + 1e-13 * np.eye(n)),
            matrix(q),
            G,
            h,
            matrix(np.ones((1, n))),
            matrix(1.0),
        )
    finally:
        solvers.options.clear()
        solvers.options.update(saved)
    return np.array(found["x"]).ravel()


def one_class_svm(K, cap):
    """Weights (n,) that minimise a'Ka / 2 over the capped simplex."""
    return _solve(K, np.zeros(len(K)), cap)


def data_description(K, cap):
    """Weights (n,) that maximise sum a K_tt - a'Ka over the capped simplex."""
    return _solve(2.0 * K, -np.diag(K).copy(), cap)


def smallest_ellipsoid(X, n_iter=20_000):
    """Weights (n,) whose covariance has the largest determinant.

    Its ellipsoid, scaled by d, is the smallest one that holds all rows. The
    multiplicative updates of Titterington in the space of [x, 1].
    """
    n, d = X.shape
    Q = np.column_stack([X, np.ones(n)])
    mu = np.full(n, 1.0 / n)
    for _ in range(n_iter):
        w = np.einsum("ij,ij->i", Q @ np.linalg.inv((Q.T * mu) @ Q), Q)
        mu = mu * w / (d + 1.0)
    return mu
