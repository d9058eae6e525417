"""Fisher information by brute force and closed-form Fisher kernels (spec section 8).

``K(x, x') = U_x' F^{-1} U_x'`` with scores ``U_x = grad log P(x | theta)`` and
``F = E[U U']``. The brute force differentiates the log density by complex steps and
takes the expectation over a finite rule of points: an enumeration of the sample space,
a Gauss-Hermite grid (exact here, the scores being polynomials in x) or Monte Carlo.
"""

from itertools import product

import numpy as np

# ------------------------------------------------------------- log densities
# Each takes theta (p,) and one x, and is analytic in theta.


def log_gaussian_mean(theta, x, cov):
    """Gaussian with known covariance; theta is the mean. Constants are dropped."""
    r = x - theta
    return -0.5 * r @ np.linalg.solve(cov, r)


def pack_gaussian(mean, cov):
    """theta of `log_gaussian`: the mean, then the upper triangle of the covariance."""
    return np.concatenate([mean, np.asarray(cov)[np.triu_indices(len(mean))]])


def log_gaussian(theta, x):
    """Gaussian with free mean and covariance. Constants are dropped."""
    d = len(x)
    cov = np.zeros((d, d), dtype=theta.dtype)
    cov[np.triu_indices(d)] = theta[d:]
    cov = cov + np.triu(cov, 1).T
    r = x - theta[:d]
    return -0.5 * np.log(np.linalg.det(cov)) - 0.5 * r @ np.linalg.solve(cov, r)


def log_categorical(theta, x):
    """Category x in 0 .. k-1; theta holds the first k-1 probabilities."""
    x = int(x)
    return np.log(theta[x] if x < len(theta) else 1.0 - theta.sum())


def log_bernoulli_product(theta, x):
    """Independent bits x with P(x_i = 1) = theta_i."""
    return np.sum(x * np.log(theta) + (1.0 - x) * np.log(1.0 - theta))


# ------------------------------------------------------------- points and weights


def gaussian_rule(mean, cov, n_nodes=8):
    """Gauss-Hermite grid, exact for polynomials of degree 2 n_nodes - 1 per axis."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n_nodes)
    weights = weights / weights.sum()
    z = np.array(list(product(nodes, repeat=len(mean))))
    w = np.prod(np.array(list(product(weights, repeat=len(mean)))), axis=1)
    return mean + z @ np.linalg.cholesky(cov).T, w


def categorical_rule(p):
    """All categories with their probabilities."""
    return np.arange(len(p)), np.asarray(p, dtype=float)


def bernoulli_rule(p):
    """All bit strings with their probabilities."""
    points = np.array(list(product([0.0, 1.0], repeat=len(p))))
    return points, np.prod(np.where(points == 1.0, p, 1.0 - np.asarray(p)), axis=1)


# ------------------------------------------------------------- brute force


def scores(log_density, theta, X):
    """Scores (n, p) by the complex-step derivative, exact to rounding."""
    theta, step = np.asarray(theta, dtype=float), 1e-100
    out = np.empty((len(X), len(theta)))
    for i in range(len(theta)):
        moved = theta.astype(complex)
        moved[i] += 1j * step
        out[:, i] = [np.imag(log_density(moved, x)) / step for x in X]
    return out


def fisher_information(log_density, theta, points, weights):
    """``E[U U']`` over a finite rule (points, weights)."""
    U = scores(log_density, theta, points)
    return (U * np.asarray(weights)[:, None]).T @ U


def monte_carlo_information(log_density, theta, sample):
    """``U'U / n`` from a sample of the model, with its standard errors."""
    U = scores(log_density, theta, sample)
    terms = U[:, :, None] * U[:, None, :]
    return terms.mean(axis=0), terms.std(axis=0) / np.sqrt(len(U))


def brute_kernel(log_density, theta, X, points, weights, Y=None):
    """Fisher kernel between the rows of X and Y from the definition."""
    F = fisher_information(log_density, theta, points, weights)
    U = scores(log_density, theta, X)
    V = U if Y is None else scores(log_density, theta, Y)
    return U @ np.linalg.solve(F, V.T)


# ------------------------------------------------------------- closed forms


def gaussian_mean_kernel(X, mean, cov, Y=None):
    """``(x - m)' S^{-1} (x' - m)``."""
    R = np.asarray(X) - mean
    Q = R if Y is None else np.asarray(Y) - mean
    return R @ np.linalg.solve(cov, Q.T)


def gaussian_kernel(X, mean, cov, Y=None):
    """Mean and covariance: ``rho + (rho^2 - rho_xx - rho_x'x' + d) / 2``."""
    rho = gaussian_mean_kernel(X, mean, cov, Y)
    own = np.diag(gaussian_mean_kernel(X, mean, cov))
    other = own if Y is None else np.diag(gaussian_mean_kernel(Y, mean, cov))
    return rho + 0.5 * (rho**2 - own[:, None] - other[None, :] + len(mean))


def categorical_kernel(x, p, y=None):
    """``[x = x'] / p_x - 1``."""
    x = np.asarray(x)
    y = x if y is None else np.asarray(y)
    return (x[:, None] == y[None, :]) / np.asarray(p)[x][:, None] - 1.0


def bernoulli_product_kernel(X, p, Y=None):
    """``sum_i (x_i - p_i)(x'_i - p_i) / (p_i (1 - p_i))``."""
    R = np.asarray(X) - p
    Q = R if Y is None else np.asarray(Y) - p
    return (R / (p * (1.0 - p))) @ Q.T
