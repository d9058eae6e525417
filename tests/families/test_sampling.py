"""Draws: moments, shapes of distributions, seeds."""

import numpy as np
import pytest
from families.family_cases import DISCRETE, MAKERS, NAMES, directions, reference
from refusals import refused
from scipy import stats

from maxent.families import (
    Beta,
    Categorical,
    Dirichlet,
    Gamma,
    InverseWishart,
    Poisson,
    VonMisesFisher,
    Wishart,
)

every = pytest.mark.parametrize("name", NAMES)
LOW = 1e-5  # of hundreds of tests on any seed none should be as improbable


@every
def test_mean_statistics_of_draws(name, rng):
    P = MAKERS[name](rng, (2,))
    X = P.sample(8000, rng)
    assert X.shape == (2, 8000, *P.event_shape)
    assert X.dtype == (np.int64 if name in DISCRETE else np.float64)
    T = P.sufficient_statistics(X)
    error = T.std(axis=1) / np.sqrt(8000)
    wrong = np.abs(T.mean(axis=1) - P.mean_parameters) / (error + 1e-12)
    # heavy tails of the inverse Wishart statistics included
    assert wrong.max() < 6.5


@every
def test_seeds(name, rng):
    P = MAKERS[name](rng, (2,))
    first = P.sample(5, 3)
    assert (first == P.sample(5, np.random.default_rng(3))).all()
    assert (
        P.sample(5, np.random.RandomState(1)) == P.sample(5, np.random.RandomState(1))
    ).all()
    assert not (first == P.sample(5, 4)).all() or name in DISCRETE
    assert P.sample(5).shape == first.shape


@pytest.mark.parametrize("name", ["exponential", "gamma", "beta"])
def test_numbers_follow_their_distribution(name, rng):
    for P in MAKERS[name](rng, (3,)):
        x = P.sample(3000, rng)
        assert stats.kstest(x, reference(P).cdf).pvalue > LOW


@pytest.mark.parametrize("name", ["gaussian", "diagonal", "spherical"])
def test_projections_of_gaussian_draws(name, rng):
    P = MAKERS[name](rng, ())
    X, a = P.sample(3000, rng), rng.normal(size=3)
    frozen = reference(P)
    line = stats.norm(a @ frozen.mean, np.sqrt(a @ frozen.cov @ a))
    assert stats.kstest(X @ a, line.cdf).pvalue > LOW


@pytest.mark.parametrize("name", ["poisson", "geometric", "negative binomial"])
def test_counts_follow_their_distribution(name, rng):
    for P in MAKERS[name](rng, (2,)):
        x, n = P.sample(4000, rng), 4000
        top = int(np.quantile(x, 0.97)) + 1
        found = np.bincount(np.minimum(x, top), minlength=top + 1)
        p = reference(P).pmf(np.arange(top))
        expected = n * np.append(p, 1 - p.sum())
        chi2 = ((found - expected) ** 2 / expected).sum()
        assert stats.chi2(top).sf(chi2) > LOW


def test_categories_and_multinomial_counts(rng):
    prob = np.array([[0.2, 0.0, 0.5, 0.3], [0.0, 0.6, 0.4, 0.0]])
    P = Categorical(prob)
    X = P.sample(5000, rng)
    for x, p in zip(X, prob):
        found, some = np.bincount(x, minlength=4), p > 0
        assert (found[~some] == 0).all()
        chi2 = ((found - 5000 * p)[some] ** 2 / (5000 * p[some])).sum()
        assert stats.chi2(some.sum() - 1).sf(chi2) > LOW
    M = MAKERS["multinomial"](rng, (2, 3))
    assert (M.sample(9, rng).sum(axis=-1) == M.total).all()


@pytest.mark.parametrize(
    "u, last, drawn", [(0.0, 0.5, 1), (0.5, 0.5, 2), (1 - 2.0**-53, 0.5 - 9e-9, 2)]
)
def test_categories_of_no_probability_are_never_drawn(u, last, drawn):
    class Fixed:
        def random(self, size):
            return np.full(size, u)

    P = Categorical([0.0, 0.5, last, 0.0])
    assert P._sample(2, Fixed()).tolist() == [drawn, drawn]


@pytest.mark.parametrize("d", [2, 3, 20])
@pytest.mark.parametrize("kappa", [0.0, 0.7, 50.0, 1e8])
def test_directions_follow_their_distribution(d, kappa, rng):
    m = directions(rng, (), d)
    X = VonMisesFisher(m, kappa).sample(2000, rng)
    np.testing.assert_allclose(np.linalg.norm(X, axis=-1), 1.0, rtol=1e-12)
    lack = 0.5 * np.square(X - m).sum(axis=-1)  # 1 - m.x
    # its density is exp(-kappa t) (t (2 - t))^{(d - 3) / 2} on [0, 2]
    top = min(2.0, (40.0 + 10 * d) / max(kappa, 1e-9))
    s = np.linspace(0, 1, 20_001)[1:-1]
    t = top * np.sin(0.5 * np.pi * s) ** 2  # ends with square roots made smooth
    log_f = -kappa * t + 0.5 * (d - 3) * np.log(t * (2 - t))
    log_f += np.log(np.sin(0.5 * np.pi * s) * np.cos(0.5 * np.pi * s))
    cdf = np.cumsum(np.exp(log_f - log_f.max()))
    assert stats.kstest(lack, lambda x: np.interp(x, t, cdf / cdf[-1])).pvalue > LOW
    side = (X - (X @ m)[:, None] * m) @ directions(rng, (), d)
    assert abs(side.mean()) < 6.5 * side.std() / np.sqrt(2000)


def test_margins_of_matrices(rng):
    V = np.array([[2.0, 0.5], [0.5, 1.0]])
    X = Wishart(3.7, V).sample(3000, rng)
    assert stats.kstest(X[:, 1, 1], stats.chi2(3.7).cdf).pvalue > LOW
    # 1 / (X^-1)_00 of a Wishart matrix is chi2 with df - p + 1 degrees, scaled
    Y = InverseWishart(3.7, V).sample(3000, rng)
    margin = stats.invgamma(0.5 * (3.7 - 1), scale=0.5 * V[0, 0])
    assert stats.kstest(Y[:, 0, 0], margin.cdf).pvalue > LOW
    assert (np.linalg.eigvalsh(Y)[:, 0] > 0).all()


def test_dirichlet_draws_of_tiny_shapes_are_proportions(rng):
    P = Dirichlet([1e-3, 1e-3, 2e-3])
    X = P.sample(4000, rng)
    np.testing.assert_allclose(X.sum(axis=-1), 1.0, rtol=1e-12)
    assert np.isfinite(X).all()
    winner = np.bincount(X.argmax(axis=-1), minlength=3) / 4000
    np.testing.assert_allclose(winner, [0.25, 0.25, 0.5], atol=0.05)
    x = Dirichlet([0.3, 1.0, 0.7]).sample(3000, rng)
    assert stats.kstest(x[:, 0], stats.beta(0.3, 1.7).cdf).pvalue > LOW


def test_draws_that_are_none():
    P = Poisson(1.0)
    for n in (0, -1, 1.5, None, "3", True):
        refused(lambda n=n: P.sample(n), "n=.* must be an integer >= 1")
    for state in (-1, 1.5, "seed", np.nan):
        refused(lambda s=state: P.sample(1, s), "random_state=.* must be None")


def test_samples_of_extreme_parameters(rng):
    assert (Gamma(1e-4, 1.0).sample(50, rng) >= 0).all()
    assert np.isfinite(Beta(1e-3, 1e-3).sample(50, rng)).all()
    assert (Poisson(0.0).sample(5, rng) == 0).all()
