"""Relative entropies against integrals, draws and special cases."""

import math

import numpy as np
import pytest
from families import integrals
from families.family_cases import MAKERS, NAMES, directions, log_density, spd

from maxent.families import (
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    Dirichlet,
    Exponential,
    Gamma,
    Gaussian,
    Geometric,
    InverseWishart,
    Multinomial,
    NegativeBinomial,
    Poisson,
    SphericalGaussian,
    VonMisesFisher,
    Wishart,
)

every = pytest.mark.parametrize("name", NAMES)


@every
def test_kl_is_the_mean_difference_of_log_probs(name, rng):
    P, Q = MAKERS[name](rng, ()), MAKERS[name](rng, ())
    X = P.sample(4000, rng)
    difference = P.log_prob(X) - Q.log_prob(X)
    assert abs(difference.mean() - P.kl(Q)) < 6 * difference.std() / 63 + 1e-12


@every
def test_kl_is_zero_of_itself_and_positive_of_others(name, rng):
    P = MAKERS[name](rng, (6,))
    K = P.kl(P)
    np.testing.assert_allclose(np.diagonal(K), 0.0, atol=1e-12 * (1 + np.abs(K).max()))
    assert K[~np.eye(6, dtype=bool)].min() > 0


def kl_by(P, Q, X, weights, density=log_density):
    with np.errstate(divide="ignore", invalid="ignore"):
        log_p, log_q = density(P, X), density(Q, X)
        p = np.exp(log_p)
        return math.fsum(np.where(p > 0, weights * p * (log_p - log_q), 0.0))


@pytest.mark.parametrize("seed_shift", range(3))
def test_kl_is_the_integral(seed_shift, seed):
    rng = np.random.default_rng([seed, seed_shift])
    one, many = np.arange(400), np.ones(400)
    grid, w2 = integrals.space(2, width=30.0, n=301)
    line, w1 = integrals.half_line(-60.0, 7.0, 4001)
    triangle, w3 = integrals.triangle()
    ball, w4 = integrals.sphere(3)
    counts = np.indices((5, 5)).reshape(2, -1).T
    counts = counts[counts.sum(axis=1) == 4]
    for make, X, w in [
        (lambda: Gaussian(rng.normal(size=2), spd(rng, (), 2)), grid, w2),
        (lambda: DiagonalGaussian(rng.normal(size=2), rng.uniform(1, 2, 2)), grid, w2),
        (lambda: SphericalGaussian(rng.normal(size=2), rng.uniform(1, 2)), grid, w2),
        (lambda: Bernoulli(rng.uniform()), one[:2], many[:2]),
        (lambda: Categorical(rng.dirichlet([1, 1, 1])), one[:3], many[:3]),
        (lambda: Multinomial(rng.dirichlet([1, 1]), 4), counts, np.ones(len(counts))),
        (lambda: Poisson(rng.uniform(0.1, 9)), one, many),
        (lambda: Geometric(rng.uniform(0.2, 0.9)), one, many),
        (lambda: NegativeBinomial(rng.uniform(0.3, 0.9), 2.5), one, many),
        (lambda: Exponential(rng.uniform(0.5, 3)), line, w1),
        (lambda: Gamma(rng.uniform(0.5, 4), rng.uniform(0.5, 2)), line, w1),
        (lambda: Dirichlet(rng.uniform(1.0, 4, size=3)), triangle, w3),
        (lambda: VonMisesFisher(directions(rng, (), 3), rng.uniform(0, 9)), ball, w4),
    ]:
        P, Q = make(), make()
        density = log_density
        if isinstance(P, Dirichlet):

            def density(p, X):
                a = p.alpha
                constant = math.lgamma(a.sum()) - sum(map(math.lgamma, a))
                return constant + np.log(X) @ (a - 1)

        if isinstance(P, VonMisesFisher):

            def density(p, X, w=w):
                energy = X @ p.natural_parameters
                return energy - integrals.log_integral(energy, w)

        expected = kl_by(P, Q, X, w, density)
        assert P.kl(Q) == pytest.approx(expected, abs=1e-9, rel=1e-9), P


def test_kl_of_wishart_distributions_of_one_dimension_is_that_of_gamma(rng):
    df, scale = rng.uniform(1, 6, size=4), rng.uniform(0.5, 2, size=4)
    W = Wishart(df, scale[:, None, None])
    G = Gamma(0.5 * df, 2 * scale)
    np.testing.assert_allclose(W.kl(W), G.kl(G), rtol=1e-10, atol=1e-12)
    # relative entropy does not change under the inverse, nor does rho = 1/2
    V = InverseWishart(df, 1 / scale[:, None, None])
    np.testing.assert_allclose(V.kl(V), G.kl(G), rtol=1e-10, atol=1e-12)
    L = W.log_affinity(W, 0.5)
    np.testing.assert_allclose(V.log_affinity(V, 0.5), L, rtol=1e-10, atol=1e-12)


def test_kl_to_a_smaller_support_is_infinite():
    P = Bernoulli([0.0, 0.5, 1.0])
    expected = [[0, math.log(2), math.inf], [math.inf, 0, math.inf]]
    np.testing.assert_allclose(P.kl(P)[:2], expected, atol=1e-15)
    Q = Categorical([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    np.testing.assert_allclose(Q.kl(Q), [[0, np.inf], [math.log(2), 0]], atol=1e-15)
    R = Poisson([0.0, 2.0])
    np.testing.assert_allclose(R.kl(R), [[0, 2], [np.inf, 0]], atol=1e-15)
