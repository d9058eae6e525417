"""Product kernels by sampling: unbiased, features that make them positive."""

import numpy as np
import pytest
from kernels.test_product_kernel import LISTS, random_mixture
from models.sequence_cases import random_hmm
from oracles.product_kernels import all_sequences, log_observed_kernel
from refusals import refused

from maxent.families import Bernoulli, Gaussian
from maxent.kernels import SharedSample, product_kernel, shared_sample_features

SLACK = 6.0  # standard errors: one in 10^8 for a normal estimate


@pytest.mark.parametrize("rho", (0.25, 0.5, 0.8, 1.0, 1.7))
def test_the_kernel_of_the_observations_within_its_standard_errors(rho, rng):
    P = [random_hmm(rng, s, 2) for s in (1, 2, 3)]
    logs = np.array([p.log_likelihood(all_sequences(2, 5)) for p in P])
    exact = np.exp([[log_observed_kernel(a, b, rho) for b in logs] for a in logs])
    sample = SharedSample(P, horizon=4, n_samples=4000, random_state=rng)
    found = np.exp(sample.log_kernel(P, rho=rho))
    error = sample.standard_error(P, rho=rho)
    assert (np.abs(found - exact) <= SLACK * error + 1e-12).all()
    pair = product_kernel(
        P, rho=rho, horizon=4, method="pair_sample", n_samples=4000, random_state=rng
    )
    np.testing.assert_allclose(pair, exact, rtol=0.5)


@pytest.mark.parametrize("name", LISTS)
def test_every_kind_of_model_can_be_sampled(name, rng):
    P, T = LISTS[name](rng)
    T = None if T is None else 1
    slow = name in ("switching", "factorial")  # one likelihood at a time
    n = 40 if slow else 3000
    options = {"rho": 0.5, "horizon": T, "n_samples": n, "random_state": rng}
    K = product_kernel(P, method="shared_sample", **options)
    np.testing.assert_allclose(np.diagonal(K), 1.0, atol=0.9 if slow else 0.5)
    own = product_kernel(P, method="pair_sample", **options)
    np.testing.assert_array_equal(own, own.T)
    if not slow:
        np.testing.assert_allclose(own, K, atol=0.4)


@pytest.mark.parametrize("n", (3, 50))
def test_shared_samples_are_positive_with_any_number_of_draws(n, rng):
    P = [random_mixture(rng, k) for k in (1, 2, 3, 1, 2)] * 2
    for rho in (0.3, 0.5, 1.0):
        options = {"rho": rho, "n_samples": n, "random_state": 5}
        K = product_kernel(P, method="shared_sample", **options)
        assert np.linalg.eigvalsh(K)[0] >= -1e-12 * np.trace(K)
        F = shared_sample_features(P, **options)
        assert F.shape == (10, n)


def test_pair_samples_are_not_positive(rng):
    least = [
        np.linalg.eigvalsh(
            product_kernel(
                Gaussian(rng.normal(size=(8, 1)), [[1.0]]),
                rho=1.0,
                method="pair_sample",
                n_samples=5,
                random_state=rng,
            )
        )[0]
        for _ in range(20)
    ]
    assert min(least) < -1e-3


def test_blocks_by_the_same_draws_are_parts_of_one_matrix(rng):
    P = [random_hmm(rng, s, 3) for s in (1, 2, 3, 2)]
    sample = SharedSample(P[1:], horizon=3, n_samples=500, random_state=rng)
    options = {"method": "shared_sample", "horizon": 3, "sample": sample}
    whole = product_kernel(P, normalize=True, **options)
    block = product_kernel(P[:1], P[1:], normalize=True, **options)
    np.testing.assert_allclose(block, whole[:1, 1:], rtol=1e-10)
    F = shared_sample_features(P, sample=sample)
    np.testing.assert_allclose(F @ F.T, product_kernel(P, **options), rtol=1e-10)
    # an integer draws from the models of the second list alike
    options = {"method": "shared_sample", "horizon": 3, "n_samples": 50}
    one = product_kernel(P[:2], P[2:], **options)
    part = product_kernel(P[:1], P[2:], **options)
    # BLAS may add the 50 terms, all positive, in another order
    np.testing.assert_allclose(one[:1], part, rtol=50 * np.finfo(float).eps)


def test_draws_that_do_not_fit_the_call_are_refused(rng):
    P = [random_hmm(rng, s, 3) for s in (1, 2)]
    sample = SharedSample(P, horizon=3, n_samples=50, random_state=rng)

    def kernel(**options):
        return lambda: product_kernel(P, sample=sample, **options)

    for horizon in (9, [1, 9], [3, 9]):
        refused(
            kernel(horizon=horizon, method="shared_sample"),
            r"horizon=.*9\]? but sample has draws of horizon=3: pass that one",
        )
    for method in ("auto", "pair_sample"):
        refused(kernel(horizon=3, method=method), f"method='{method}' does not read")
    refused(
        lambda: product_kernel(P, horizon=3, method="shared_sample", sample=P),
        "must be a SharedSample",
    )
    refused(
        lambda: shared_sample_features(P, horizon=9, sample=sample),
        "horizon=9 but sample has draws of horizon=3",
    )
    one = kernel(horizon=[3], method="shared_sample")()
    np.testing.assert_array_equal(
        one[:, :, 0], kernel(horizon=3, method="shared_sample")()
    )
    G = Gaussian([[0.0], [1.0]], [[1.0]])
    drawn = SharedSample(G, n_samples=20, random_state=rng)
    assert product_kernel(G, method="shared_sample", sample=drawn).shape == (2, 2)


def test_effective_size_and_bounded_terms(rng):
    P = Gaussian(rng.normal(size=(4, 1)), [[1.0]])
    sample = SharedSample(P, n_samples=403, random_state=rng)
    assert len(sample) == 403
    size = sample.effective_size(P, rho=0.5)
    assert ((size > 1) & (size <= 403)).all()
    # sqrt(p p') / g is at most the number of models, by shares of the draws
    F = sample.features(P, 0.5)
    assert (F * F).max() * 403 <= 4 * (403 / 400) * (1 + 1e-9)
    same = SharedSample(P[:1], n_samples=100, random_state=rng)
    np.testing.assert_allclose(same.effective_size(P[:1]), 100.0)
    np.testing.assert_allclose(same.standard_error(P[:1]), 0.0, atol=1e-7)


class Coins:
    """A model of the user's: independent bits."""

    def __init__(self, prob):
        self.law = Bernoulli(prob)

    def sample(self, n, random_state=None):
        return self.law.sample(n, random_state).T

    def log_likelihood(self, X):
        return sum(self.law[d].log_prob(X[:, d]) for d in range(len(self.law)))


class BadCoins(Coins):
    def log_likelihood(self, X):
        return 0.0


def test_models_of_the_user(rng):
    prob = rng.random((3, 2))
    exact = product_kernel(Bernoulli(prob), rho=0.7)
    P = [Coins(p) for p in prob]
    found = product_kernel(P, rho=0.7, method="shared_sample", n_samples=20000)
    np.testing.assert_allclose(found, exact, rtol=0.2)
    refused(lambda: product_kernel(P), "method='auto' is not known for Coins")
    refused(lambda: product_kernel([3]), r"P\[0\]=3 is of a class that has no product")
    bad = [BadCoins(p) for p in prob]
    refused(
        lambda: product_kernel(bad, method="shared_sample"),
        "BadCoins returned log-likelihoods of shape",
    )


def test_bad_input(rng):
    P = [random_hmm(rng, 2, 3)]
    refused(lambda: SharedSample([]), "has no model")
    refused(lambda: SharedSample(P), "horizon=None must be an integer")
    refused(lambda: SharedSample(P, horizon=[1, 2]), "must be one integer")
    refused(lambda: SharedSample(P, horizon=2, n_samples=0), "n_samples=0")
    refused(
        lambda: SharedSample(Gaussian([[0.0]], [[1.0]]), horizon=2),
        "horizon=2 has no meaning",
    )
    refused(
        lambda: product_kernel(
            P, horizon=2, method="shared_sample", length_law="poisson"
        ),
        "has no sums over lengths",
    )
