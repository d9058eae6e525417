"""Product kernels that are other kernels: scikit-learn's, and counts of words."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

from maxent.families import (
    Categorical,
    Exponential,
    Gamma,
    Gaussian,
    Multinomial,
    SphericalGaussian,
    Wishart,
)
from maxent.kernels import ProductKernel, product_kernel, spectrum_kernel
from maxent.models import LinearDynamicalSystem, MarkovChain

RHO = (0.25, 0.5, 0.8, 1.0, 1.7)
powers = pytest.mark.parametrize("rho", RHO)
close = {"rtol": 1e-12, "atol": 1e-300}


@powers
def test_gaussians_of_one_width_are_the_rbf_kernel(rho, rng):
    X = rng.normal(size=(7, 3))
    P = SphericalGaussian(X, np.full(7, 0.7))
    K = product_kernel(P, rho=rho, normalize=True)
    np.testing.assert_allclose(K, rbf_kernel(X, gamma=rho / (4 * 0.7)), rtol=1e-12)


def test_probabilities_at_power_one_are_the_linear_kernel(rng):
    p = rng.dirichlet(np.ones(5), size=6)
    K = product_kernel(Categorical(p), rho=1.0)
    np.testing.assert_allclose(K, linear_kernel(p), **close)


@pytest.mark.parametrize("total", [1, 2, 5])
def test_multinomials_at_one_half_are_the_polynomial_kernel(total, rng):
    p = rng.dirichlet(np.ones(4), size=6)
    K = product_kernel(Multinomial(p, total), rho=0.5)
    expected = polynomial_kernel(np.sqrt(p), degree=total, gamma=1.0, coef0=0.0)
    np.testing.assert_allclose(K, expected, rtol=1e-11)


def test_vectors_of_poissons_at_one_half_are_an_rbf_kernel_of_roots(rng):
    X = rng.poisson(4.0, size=(6, 3)) + 1.0
    K = ProductKernel("Poisson", rho=0.5, estimate="ml").fit_transform(X)
    np.testing.assert_allclose(K, rbf_kernel(np.sqrt(X), gamma=0.5), rtol=1e-11)


@powers
def test_gammas_of_shape_one_and_wisharts_of_one_dimension(rho, rng):
    scale = rng.uniform(0.5, 3.0, size=5)
    K = product_kernel(Exponential(scale), rho=rho, log=True)
    ones = product_kernel(Gamma(np.ones(5), scale), rho=rho, log=True)
    np.testing.assert_allclose(ones, K, rtol=1e-11, atol=1e-11)
    df = rng.uniform(4.0, 7.0, size=5)
    matrices = product_kernel(Wishart(df, scale[:, None, None]), rho=rho, log=True)
    # Wishart(nu, V) of one dimension has shape nu / 2 and scale 2 V
    gammas = product_kernel(Gamma(df / 2, 2 * scale), rho=rho, log=True)
    np.testing.assert_allclose(matrices, gammas, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_words_are_chains_of_their_length(k, rng):
    """Counts of K-mers, at power one and for sequences of K letters only."""
    strings = ["".join(rng.choice(list("ACG"), size=n)) for n in (9, 17, 30, 12)]
    models = []
    for letters in strings:
        codes = np.array(["ACG".index(a) for a in letters])
        law = np.zeros((3,) * k)
        for t in range(len(codes) - k + 1):
            law[tuple(codes[t : t + k])] += 1
        law = law.reshape(-1, 3) / law.sum()
        start = law.sum(axis=1)
        rows = np.where(start[:, None] > 0, law, 1.0)
        rows = rows / rows.sum(axis=1, keepdims=True)
        models.append(MarkovChain(start, rows, k - 1))
    K = product_kernel(models, rho=1.0, horizon=k - 1)
    words = np.array([len(s) - k + 1 for s in strings])
    expected = spectrum_kernel(strings, k=k, alphabet="ACG")
    np.testing.assert_allclose(K * np.outer(words, words), expected, atol=1e-11)


@powers
def test_a_system_of_one_step_is_a_gaussian(rho, rng):
    systems = [
        LinearDynamicalSystem(
            [[0.5]], [[1.0]], rng.normal(size=(2, 1)), np.eye(2) * rng.uniform(0.5, 2),
            rng.normal(size=1), [[rng.uniform(0.2, 1)]],
        )
        for _ in range(4)
    ]  # fmt: skip
    means = np.array([s.observation @ s.initial_mean for s in systems])
    covs = np.array(
        [
            s.observation @ s.initial_cov @ s.observation.T + s.observation_cov
            for s in systems
        ]
    )
    L = product_kernel(systems, rho=rho, horizon=0, log=True)
    own = product_kernel(Gaussian(means, covs), rho=rho, log=True)
    np.testing.assert_allclose(L, own, rtol=1e-11, atol=1e-11)


@powers
def test_shifts_and_scales_of_the_data_change_no_normalised_kernel(rho, rng):
    means, A = rng.normal(size=(5, 3)), rng.normal(size=(5, 3, 6))
    covs = A @ A.swapaxes(1, 2)
    map_, shift = rng.normal(size=(3, 3)) + 2 * np.eye(3), rng.normal(size=3)
    moved = Gaussian(means @ map_.T + shift, map_ @ covs @ map_.T)
    np.testing.assert_allclose(
        product_kernel(moved, rho=rho, normalize=True),
        product_kernel(Gaussian(means, covs), rho=rho, normalize=True),
        rtol=1e-7,
    )
