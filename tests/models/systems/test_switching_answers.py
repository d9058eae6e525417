"""Particle filters of switching systems against sums over all paths."""

import numpy as np
import pytest
from models.state_space_cases import random_switching
from models.systems.test_lds_answers import given_the_rest, in_part
from refusals import refused
from scipy.special import logsumexp
from scipy.stats import norm


def by_paths(model, x, extra=0):
    """Posterior weights of all paths of all steps, and their linear systems."""
    paths = model.all_paths(len(x) + extra - 1)
    laws = [model.given_path(path) for path in paths]
    lost = np.full((extra, model.n_features), np.nan)
    whole = np.concatenate([x, lost])
    logs = model.log_path(paths) + [law.log_likelihood(whole)[0] for law in laws]
    return paths, laws, np.exp(logs - logsumexp(logs)), whole


def mixture(weight, mean, cov):
    centre = weight @ mean
    away = mean - centre
    return centre, np.einsum("p,pij->ij", weight, cov) + (weight * away.T) @ away


def test_filters_that_keep_all_paths_are_exact(rng):
    model = random_switching(rng, 2, 2, 2)
    x = in_part(rng, model.sample(1, 6, rng)[0])
    (found,) = model.filter(x)
    assert found.log_likelihood == pytest.approx(model.log_likelihood(x)[0], abs=1e-9)
    for t in range(1, 6):
        paths, laws, weight, _ = by_paths(model, x[: t + 1])
        each = [law.posterior(x[: t + 1])[0] for law in laws]
        mean, cov = mixture(
            weight,
            np.array([one.mean[-1] for one in each]),
            np.array([one.cov[-1] for one in each]),
        )
        np.testing.assert_allclose(found.mean[t], mean, atol=1e-8)
        np.testing.assert_allclose(found.cov[t], cov, atol=1e-8)
        share = np.bincount(paths[:, -1], weights=weight, minlength=2)
        np.testing.assert_allclose(found.regimes[t - 1], share, atol=1e-9)


def test_estimates_of_the_density_have_no_bias(rng):
    """The mean over independent filters, against its own standard error."""
    model = random_switching(rng, 2, 1, 1)
    x = model.sample(1, 12, rng)[0]
    exact = model.log_likelihood(x)[0]
    runs = [
        model.filter(x, n_particles=4, random_state=seed)[0].log_likelihood
        for seed in range(400)
    ]
    ratio = np.exp(np.array(runs) - exact)
    assert ratio.std() > 0.0
    assert abs(ratio.mean() - 1.0) < 5.0 * ratio.std() / 20.0
    # of the logarithm, which is too small
    assert np.mean(runs) < exact + 5.0 * np.std(runs) / 20.0
    few = model.likelihood_estimate(x, n_particles=4, n_runs=50)
    assert abs(few.value[0] - exact) < 6.0 * few.standard_error[0] + 0.05
    many = model.likelihood_estimate(x, n_particles=5000, n_runs=2)
    assert many.value[0] == pytest.approx(exact, abs=1e-9)
    assert many.standard_error[0] == pytest.approx(0.0, abs=1e-9)


def test_long_sequences_have_a_likelihood_and_criteria(rng):
    model = random_switching(rng, 2, 1, 1)
    x = model.sample(1, 60, rng)[0]
    value = model.log_likelihood(x)
    np.testing.assert_array_equal(value, model.log_likelihood(x))
    estimate = model.likelihood_estimate(x, random_state=1)
    error = 6.0 * estimate.standard_error[0] + 1e-6
    assert value[0] == pytest.approx(estimate.value[0], abs=2.0 * error)
    assert model.lower_bound(x)[0] < value[0] + error
    k = model.n_parameters
    # two regimes of (A, Q, b), C, R, c, m, P and the chain, less the unit and origin
    assert k == 2 * 3 + 3 + 2 + 1 + 2 - 2
    assert model.aic(x) == pytest.approx(2 * k - 2 * value[0])
    assert model.bic(x) == pytest.approx(np.log(60) * k - 2 * value[0])


def test_forecasts_are_mixtures_over_all_paths(rng):
    model = random_switching(rng, 2, 1, 2)
    x = in_part(rng, model.sample(1, 5, rng)[0])
    ahead = model.forecast(x, 3, level=0.8)[0]
    _, laws, weight, whole = by_paths(model, x, 3)
    each = [given_the_rest(law, whole) for law in laws]
    for t in range(3):
        at = slice(2 * (5 + t), 2 * (6 + t))
        means = np.array([mean[at] for mean, _ in each])
        covs = np.array([cov[at, at] for _, cov in each])
        mean, cov = mixture(weight, means, covs)
        np.testing.assert_allclose(ahead.mean[t], mean, atol=1e-8)
        np.testing.assert_allclose(ahead.cov[t], cov, atol=1e-8)
        scale = np.sqrt(np.diagonal(covs, axis1=1, axis2=2))
        for ends, share in ((ahead.lower, 0.1), (ahead.upper, 0.9)):
            below = weight @ norm.cdf(ends[t], means, scale)
            np.testing.assert_allclose(below, share, atol=1e-9)


def test_futures_have_the_moments_of_the_forecast(rng):
    model = random_switching(rng, 2, 1, 1)
    x = model.sample(1, 6, rng)[0]
    drawn, regimes = model.sample(3000, 2, rng, given=x, return_regimes=True)
    assert {len(path) for path in regimes} == {2}
    ahead = model.forecast(x, 2)[0]
    found = np.reshape(drawn, (3000, 2))
    error = (found.mean(axis=0) - ahead.mean[:, 0]) / (found.std(axis=0) / 3000**0.5)
    assert np.abs(error).max() < 5.0
    inside = (found > ahead.lower[:, 0]) & (found < ahead.upper[:, 0])
    assert np.abs(inside.mean(axis=0) - 0.9).max() < 5.0 * 0.3 / 3000**0.5


def test_missing_entries_are_averages_over_paths(rng):
    model = random_switching(rng, 2, 1, 2)
    x = model.sample(1, 5, rng)[0]
    x[2] = np.nan
    x[3, 1] = np.nan
    values, covs = model.impute(x, return_cov=True)
    _, laws, weight, _ = by_paths(model, x)
    each = [law.impute(x, return_cov=True) for law in laws]
    for t in range(5):
        mean, cov = mixture(
            weight,
            np.array([value[0][t] for value, _ in each]),
            np.array([cov[0][t] for _, cov in each]),
        )
        np.testing.assert_allclose(values[0][t], mean, atol=1e-8)
        np.testing.assert_allclose(covs[0][t], cov, atol=1e-8)


def test_the_same_seed_gives_the_same_answers(rng):
    model = random_switching(rng, 3, 2, 1)
    x = model.sample(1, 30, rng)[0]
    one, other = (model.filter(x, n_particles=20)[0] for _ in range(2))
    np.testing.assert_array_equal(one.mean, other.mean)
    refused(lambda: model.filter(x, n_particles=0), "n_particles=0 must be an integer")
    refused(lambda: model.likelihood_estimate(x, n_runs=1), "n_runs=1 must be an int")
