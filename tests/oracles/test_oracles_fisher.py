"""The references of Fisher kernels against closed forms and one another."""

import numpy as np
import pytest

from oracles.dual_problems import SEEDS, close

from . import fisher

# ------------------------------------------------------------- Fisher kernels


def gaussian_case(seed=0, d=2):
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(d, d))
    mean, cov = rng.normal(size=d), B @ B.T + 0.5 * np.eye(d)
    return mean, cov, rng.multivariate_normal(mean, cov, size=6)


def test_gaussian_mean_kernel():
    mean, cov, X = gaussian_case()
    rule = fisher.gaussian_rule(mean, cov)

    def log_density(theta, x):
        return fisher.log_gaussian_mean(theta, x, cov)

    brute = fisher.brute_kernel(log_density, mean, X, *rule, Y=X[:2])
    close(fisher.gaussian_mean_kernel(X, mean, cov, X[:2]), brute, 1e-12)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_gaussian_kernel(d):
    mean, cov, X = gaussian_case(d, d)
    theta, rule = fisher.pack_gaussian(mean, cov), fisher.gaussian_rule(mean, cov, 4)
    brute = fisher.brute_kernel(fisher.log_gaussian, theta, X, *rule, Y=X[:2])
    close(fisher.gaussian_kernel(X, mean, cov, X[:2]), brute, 1e-11)
    close(fisher.gaussian_kernel(X, mean, cov)[:, :2], brute, 1e-11)


def test_categorical_kernel():
    p = np.array([0.1, 0.25, 0.4, 0.25])
    x = np.array([0, 1, 2, 3, 3])
    rule = fisher.categorical_rule(p)
    brute = fisher.brute_kernel(fisher.log_categorical, p[:-1], x, *rule)
    close(fisher.categorical_kernel(x, p), brute, 1e-12)


def test_bernoulli_product_kernel():
    p = np.array([0.1, 0.5, 0.7, 0.35])
    points, weights = fisher.bernoulli_rule(p)
    brute = fisher.brute_kernel(
        fisher.log_bernoulli_product, p, points, points, weights
    )
    close(fisher.bernoulli_product_kernel(points, p), brute, 1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_monte_carlo_information_is_within_its_errors(seed):
    mean, cov, _ = gaussian_case()
    theta = fisher.pack_gaussian(mean, cov)
    F = fisher.fisher_information(
        fisher.log_gaussian, theta, *fisher.gaussian_rule(mean, cov)
    )
    sample = np.random.default_rng(seed).multivariate_normal(mean, cov, size=1500)
    estimate, error = fisher.monte_carlo_information(fisher.log_gaussian, theta, sample)
    # 25 entries, heavy-tailed terms: 6 standard errors
    assert np.max(np.abs(estimate - F) / error) <= 6.0


def test_fisher_kernel_survives_reparametrisation():
    p = np.array([0.1, 0.5, 0.7])
    points, weights = fisher.bernoulli_rule(p)
    logit = np.log(p / (1.0 - p))

    def natural(theta, x):
        return fisher.log_bernoulli_product(1.0 / (1.0 + np.exp(-theta)), x)

    a = fisher.brute_kernel(natural, logit, points, points, weights)
    close(a, fisher.bernoulli_product_kernel(points, p), 1e-12)
