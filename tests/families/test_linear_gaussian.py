"""Normal-gamma blocks against integrals, predictives and draws."""

import numpy as np
import pytest
from oracles.block_cases import agree, inside, spd
from oracles.conjugate import (
    log_integral,
    log_mean_exp,
    normal_gamma_sequential,
    weighted_log_gaussian,
)
from refusals import refused
from scipy import stats

from maxent.families import NormalGamma, NormalInverseWishart

N_DRAWS = 60_000


def rows(rng, n, q):
    Z = rng.normal(size=(n, q))
    y = Z @ np.linspace(1.0, -1.0, q) + 0.5 * rng.normal(size=n)
    return np.column_stack([y, Z])


def draws(prior, rng, n):
    """Coefficients (n, q) and noise precisions (n,)."""
    tau = rng.gamma(prior.shape, 1.0 / prior.rate, size=n)
    root = np.linalg.cholesky(np.linalg.inv(prior.precision))
    z = rng.normal(size=(n, len(prior.mean))) @ root.T
    return prior.mean + z / np.sqrt(tau)[:, None], tau


def log_likelihoods(beta, tau, X):
    r = X[None, :, 0] - beta @ X[:, 1:].T
    return 0.5 * (np.log(tau / (2.0 * np.pi))[:, None] - tau[:, None] * r**2)


@pytest.mark.parametrize(
    "a", [[0.7, 0.5, 1.2, 0.1], [0.5, -0.2, 0.3, -0.1], [-0.1, -0.05, -0.1, 0.0]]
)
def test_one_regressor_equals_the_integral_for_weights_of_any_sign(a, rng):
    a = np.array(a)
    X = rows(rng, 4, 1) * 0.7
    prior = NormalGamma([0.3], [[2.5]], 2.0, 1.5)
    y, z = X.T

    def log_joint(weight, at):
        def f(u, log_tau):
            # the coefficient on the scale of its own spread
            tau = np.exp(log_tau)
            beta = at + u / np.sqrt(tau)
            out = 0.5 * np.log(2.5 * tau / (2.0 * np.pi)) - 0.5 * log_tau
            out = out - 0.5 * 2.5 * tau * (beta - 0.3) ** 2
            out = out + stats.gamma(2.0, scale=1.0 / 1.5).logpdf(tau) + log_tau
            for t in range(4):
                out = out + weighted_log_gaussian(
                    y[t : t + 1], weight[t : t + 1], beta * z[t], 1.0 / tau
                )
            return out

        return f

    block = prior.block(X)
    assert np.isfinite(block.log_partition(a))
    after = block.posterior(a)
    reach = 12.0 / np.sqrt(after.precision[0, 0])
    found = log_integral(
        log_joint(a, after.mean[0]),
        np.linspace(-reach, reach, 400),
        np.linspace(-25.0, 7.0, 1500),
    )
    agree(block.log_partition(a), found, 1e-8, 1.0)


@pytest.mark.parametrize("q", [1, 2, 4])
def test_whole_numbers_of_rows_give_the_product_of_student_predictives(q, rng):
    X = rows(rng, 8, q)
    prior = NormalGamma(rng.normal(size=q), spd(rng, q), 1.7, 0.9)
    a = rng.integers(0, 4, size=8).astype(float)
    want = normal_gamma_sequential(prior, np.repeat(X, a.astype(int), axis=0))
    agree(prior.block(X).log_partition(a), want, 1e-11)


def test_the_predictive_is_a_student_distribution(rng):
    X = rows(rng, 9, 2)
    prior = NormalGamma(rng.normal(size=2), spd(rng, 2), 1.7, 0.9)
    want = [normal_gamma_sequential(prior, row[None]) for row in X]
    agree(prior.predictive_log_prob(X), want, 1e-12)


def test_draws_give_partition_mean_and_covariance_at_negative_weights(rng):
    X = rows(rng, 5, 2)
    prior = NormalGamma([0.5, -0.5], 4.0 * np.eye(2), 6.0, 6.0)
    a = np.array([0.3, -0.2, 0.25, -0.1, 0.1])
    block = prior.block(X)
    L = log_likelihoods(*draws(prior, rng, N_DRAWS), X)
    found, error = log_mean_exp(L @ a)
    assert error < 0.01
    assert abs(block.log_partition(a) - found) < 6.0 * error
    L = log_likelihoods(*draws(block.posterior(a), rng, N_DRAWS), X)
    error = L.std(axis=0) / np.sqrt(N_DRAWS)
    assert (np.abs(L.mean(axis=0) - block.mean(a)) < 6.0 * error).all()
    F, centred = block.hessian_factor(a), L - L.mean(axis=0)
    products = centred[:, :, None] * centred[:, None, :]
    error = products.std(axis=0) / np.sqrt(N_DRAWS)
    assert (np.abs(products.mean(axis=0) - F @ F.T) < 7.0 * error).all()


def test_a_constant_regressor_is_the_gaussian_of_one_feature(rng):
    """y ~ N(beta, 1/tau): the normal-inverse-Wishart of one feature in other names."""
    x = rng.normal(2.0, 1.5, size=9)
    wishart = NormalInverseWishart([0.4], 1.6, 3.4, [[2.2]])
    gamma = NormalGamma([0.4], [[1.6]], 1.7, 1.1)
    one = wishart.block(x[:, None])
    other = gamma.block(np.column_stack([x, np.ones(9)]))
    a = inside(rng, one, 0.6)
    agree(other.log_partition(a), one.log_partition(a), 1e-11, 1.0)
    agree(other.mean(a), one.mean(a), 1e-11)
    F, G = one.hessian_factor(a), other.hessian_factor(a)
    agree(G @ G.T, F @ F.T, 1e-10)
    step = rng.normal(size=9)
    far = one.max_step(a, step)
    assert (
        far == other.max_step(a, step) or abs(other.max_step(a, step) / far - 1) < 1e-9
    )


def test_far_values_with_an_intercept_cost_no_digits_beyond_their_own(rng):
    X = np.column_stack([rng.normal(size=12), np.ones(12), rng.normal(size=12)])
    far = X + np.array([1e6, 0.0, 0.0])
    near = NormalGamma([0.0, 0.0], np.eye(2), 2.0, 2.0).block(X)
    a = inside(rng, near, 0.3)
    moved = NormalGamma([1e6, 0.0], np.eye(2), 2.0, 2.0).block(far)
    agree(moved.log_partition(a), near.log_partition(a), 1e-8, 1.0)
    agree(moved.mean(a), near.mean(a), 1e-8)


GOOD = {"mean": np.zeros(2), "precision": np.eye(2), "shape": 1.0, "rate": 2.0}
WRONG = [
    ("mean", np.zeros((2, 1))),
    ("mean", [0.0, np.nan]),
    ("mean", ["a", "b"]),
    ("precision", np.eye(3)),
    ("precision", [[1.0, 0.5], [0.4, 1.0]]),
    ("precision", [[1.0, 2.0], [2.0, 1.0]]),
    ("precision", np.zeros((2, 2))),
    ("precision", [[np.inf, 0.0], [0.0, 1.0]]),
    ("shape", 0.0),
    ("shape", np.nan),
    ("rate", -1.0),
    ("rate", "a"),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_wrong_parameters_are_named(name, value):
    NormalGamma(**GOOD)
    refused(lambda: NormalGamma(**{**GOOD, name: value}), rf"\b{name}\b")


def test_base_weights_beyond_the_domain_are_named(rng):
    X = rows(rng, 5, 1)
    prior = NormalGamma([0.0], [[1.0]], 1.0, 1.0)
    refused(lambda: prior.block(X, -np.ones(5)), "base weights leave the domain")
