"""Filters, forecasts, futures and missing entries of linear systems."""

import numpy as np
import pytest
from models.state_space_cases import random_lds
from oracles import state_space as dense
from refusals import refused
from scipy.stats import norm

from maxent.models import LinearDynamicalSystem


def changed(model, **changes):
    return LinearDynamicalSystem(**{**model.parameters(), **changes})


def with_inputs(rng, model, k=2):
    return changed(
        model,
        transition_input=rng.normal(size=(model.n_states, k)),
        observation_input=rng.normal(size=(model.n_features, k)),
    )


def in_part(rng, x):
    """The same with entries, and a row, missing."""
    x = np.array(x)
    x[rng.random(x.shape) < 0.25] = np.nan
    x[len(x) // 2] = np.nan
    x[0, 0] = 1.0
    return x


def without_prior(model, k):
    """The first k states begin without a prior."""
    P = np.array(model.initial_cov)
    P[:k] = 0.0
    P[:, :k] = 0.0
    P[range(k), range(k)] = np.inf
    return changed(model, initial_cov=P)


def given_the_rest(model, x):
    """Mean and covariance of all entries of x given those that are not NaN."""
    _, _, mean, cov, _ = dense.joint(model, len(x) - 1)
    seen = ~np.isnan(np.ravel(x))
    K = np.linalg.solve(cov[np.ix_(seen, seen)], cov[seen]).T
    return mean + K @ (np.ravel(x) - mean)[seen], cov - K @ cov[seen]


@pytest.mark.parametrize("noise", ["full", "none", "some"])
def test_filtered_states_are_those_of_the_joint_gaussian(noise, rng):
    model = random_lds(rng, 3, 2)
    R = {"full": model.observation_cov, "none": np.zeros((2, 2))}
    model = changed(model, observation_cov=R.get(noise, np.diag([0.0, 0.4])))
    x = in_part(rng, model.sample(1, 7, rng)[0])
    (found,) = model.filter(x)
    for t in range(7):
        if not np.isnan(x[: t + 1]).all():
            mean, cov = dense.conditioned(model, x[: t + 1])
            np.testing.assert_allclose(found.mean[t], mean[-3:], atol=1e-8)
            np.testing.assert_allclose(found.cov[t], cov[-3:, -3:], atol=1e-8)
    assert found.log_likelihood == pytest.approx(model.log_likelihood(x)[0])
    _, _, mean, cov, _ = dense.joint(model, 6)
    value = dense.log_density(x, mean, cov)
    assert found.log_likelihood == pytest.approx(value, abs=1e-8)


def test_threads_do_not_change_filters(rng):
    model = random_lds(rng, 2, 2)
    data = model.sample(9, rng.integers(1, 9, 9), rng)
    for one, other in zip(model.filter(data), model.filter(data, n_jobs=3)):
        np.testing.assert_array_equal(one.mean, other.mean)


def test_inputs_are_offsets_of_the_steps(rng):
    model = with_inputs(rng, random_lds(rng, 2, 2))
    u, steps = rng.normal(size=(9, 2)), 3
    plain = LinearDynamicalSystem(**dense.with_inputs(model.parameters(), u))
    x = in_part(rng, plain.sample(1, 9, rng)[0])
    value = plain.log_likelihood(x)
    np.testing.assert_allclose(model.log_likelihood(x, inputs=u), value, atol=1e-9)
    np.testing.assert_allclose(
        model.log_likelihood([x, x[:4]], inputs=[u, u[:4]])[1],
        plain.log_likelihood(x[:4])[0],
        atol=1e-9,
    )
    mean, _ = dense.conditioned(plain, x)
    states = model.posterior(x, inputs=u)[0]
    np.testing.assert_allclose(states.mean.ravel(), mean, atol=1e-9)
    past = x[:-steps]
    ahead = model.forecast(past, steps, inputs=u[:-steps], future_inputs=u[-steps:])[0]
    whole = np.concatenate([past, np.full((steps, 2), np.nan)])
    mean, _ = given_the_rest(plain, whole)
    np.testing.assert_allclose(ahead.mean.ravel(), mean[-2 * steps :], atol=1e-9)
    drawn = model.sample(2, 5, 0, inputs=u[:5])
    short = LinearDynamicalSystem(**dense.with_inputs(model.parameters(), u[:5]))
    np.testing.assert_allclose(drawn, short.sample(2, 5, 0), atol=1e-12)
    filled = model.impute(x, inputs=u)[0]
    mean, _ = given_the_rest(plain, x)
    np.testing.assert_allclose(filled.ravel(), mean, atol=1e-8)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("is_partial", [False, True])
def test_a_start_without_prior_is_generalised_least_squares(k, is_partial, rng):
    model = random_lds(rng, 3, 2)
    x = model.sample(1, 9, rng)[0]
    x = in_part(rng, x) if is_partial else x
    free = np.arange(3) < k
    flat = without_prior(model, k)
    value, mean, cov = dense.diffuse(flat, x, free, LinearDynamicalSystem)
    assert flat.log_likelihood(x)[0] == pytest.approx(value, abs=1e-8)
    found = flat.posterior(x)[0]
    assert found.log_likelihood == pytest.approx(value, abs=1e-8)
    np.testing.assert_allclose(found.mean.ravel(), mean, atol=1e-7)
    blocks, t = cov.reshape(9, 3, 9, 3), np.arange(9)
    np.testing.assert_allclose(found.cov, blocks[t, :, t], atol=1e-7)
    np.testing.assert_allclose(found.lag_cov, blocks[t[1:], :, t[:-1]], atol=1e-7)
    # filtered states of the last step are smoothed ones, and proper
    last = flat.filter(x)[0]
    np.testing.assert_allclose(last.mean[-1], found.mean[-1], atol=1e-7)
    np.testing.assert_allclose(last.cov[-1], found.cov[-1], atol=1e-7)


def test_what_nothing_was_said_of_has_infinite_variance():
    trend = LinearDynamicalSystem(
        [[1.0, 1.0], [0.0, 1.0]], 0.1 * np.eye(2), [[1.0, 0.0]], [[1.0]],
        [0.0, 0.0], np.diag([np.inf, np.inf]),
    )  # fmt: skip
    states = trend.filter([2.0, 3.0, 5.0])[0]
    np.testing.assert_allclose(states.cov[0], [[1.0, 0.0], [0.0, np.inf]])
    np.testing.assert_allclose(states.mean[1], [3.0, 1.0], atol=1e-12)
    assert np.isfinite(states.cov[1:]).all()
    refused(lambda: trend.posterior([[1.0]]), "determines 1 of the 2 directions")
    refused(lambda: trend.forecast([[1.0]], 1), "does not determine the states")
    refused(lambda: trend.sample(1, 3), "initial_cov has infinite entries")
    assert len(trend.sample(2, 3, 0, given=[2.0, 3.0, 5.0])) == 2


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_of_forecasts_are_quantiles(level, rng):
    model = random_lds(rng, 2, 2)
    data = model.sample(2, [5, 8], rng)
    found = model.forecast(data, 4, level=level)
    assert [len(one.mean) for one in found] == [4, 4]
    joined = model.forecast(np.concatenate(data), 4, lengths=[5, 8], level=level)
    for one, other in zip(found, joined):
        np.testing.assert_array_equal(one.lower, other.lower)
        for t in range(4):
            for k in range(2):
                law = norm(one.mean[t, k], np.sqrt(one.cov[t, k, k]))
                ends = law.cdf([one.lower[t, k], one.upper[t, k]])
                expected = [0.5 - level / 2, 0.5 + level / 2]
                np.testing.assert_allclose(ends, expected, atol=1e-12)
    refused(lambda: model.forecast(data, 3, level=90), "level=90 must be between 0 and")


@pytest.mark.parametrize("steps", [None, 9])
def test_futures_are_drawn_from_the_law_given_the_past(steps, rng):
    model = random_lds(rng, 2, 2, steps=steps)
    past = in_part(rng, model.sample(1, 6, rng)[0])
    drawn = np.reshape(model.sample(4000, 3, rng, given=past), (4000, -1))
    whole = np.concatenate([past, np.full((3, 2), np.nan)])
    mean, cov = given_the_rest(model, whole)
    mean, cov = mean[12:], cov[12:, 12:]
    error = (drawn.mean(axis=0) - mean) / np.sqrt(np.diagonal(cov) / len(drawn))
    assert np.abs(error).max() < 5.0
    whitened = np.linalg.solve(np.linalg.cholesky(cov), (drawn - mean).T)
    spread = whitened @ whitened.T / len(drawn) - np.eye(6)
    assert np.abs(spread).max() < 5.0 * np.sqrt(2.0 / len(drawn))
    if steps is not None:
        refused(lambda: model.sample(1, 4, given=past), "needs 10 steps")


@pytest.mark.parametrize("noise", ["full", "none"])
@pytest.mark.parametrize("steps", [None, 8])
def test_missing_entries_have_their_expectation_given_all_others(noise, steps, rng):
    model = random_lds(rng, 3, 2, steps=steps)
    if noise == "none":
        model = changed(model, observation_cov=0.0 * model.observation_cov)
    x = in_part(rng, model.sample(1, 8, rng)[0])
    values, covs = model.impute(x, return_cov=True)
    mean, cov = given_the_rest(model, x)
    np.testing.assert_allclose(values[0].ravel(), mean, atol=1e-8)
    t = np.arange(8)
    blocks = cov.reshape(8, 2, 8, 2)[t, :, t]
    np.testing.assert_allclose(covs[0], blocks, atol=1e-8)
    seen = ~np.isnan(x)
    np.testing.assert_array_equal(values[0][seen], x[seen])
    both = seen[:, :, None] | seen[:, None, :]
    assert not covs[0][both].any()
    np.testing.assert_array_equal(model.impute([x])[0], values[0])


def test_systems_that_are_no_laws_are_refused_by_kernels(rng):
    from maxent.kernels import FisherScores, lds_kernel

    model = random_lds(rng, 2, 1)
    for one, match in (
        (with_inputs(rng, model), "n_inputs=2"),
        (without_prior(model, 1), "initial_cov has infinite entries"),
    ):
        refused(lambda one=one: lds_kernel([one], horizon=2), match)
        refused(lambda one=one: one.marginals(2), match)
        scores = FisherScores(one)
        refused(lambda s=scores: s.fit_transform([np.ones((4, 1))]), match)


def test_inputs_that_do_not_fit_are_refused(rng):
    model = random_lds(rng, 2, 1)
    driven = with_inputs(rng, model)
    x, u = np.ones((4, 1)), np.ones((4, 2))
    refused(
        lambda: model.log_likelihood(x, inputs=u), "inputs is given, but the system"
    )
    refused(
        lambda: driven.log_likelihood(x), "inputs=None, but the system has n_inputs=2"
    )
    refused(lambda: driven.filter(x, inputs=u[:3]), r"lengths \[3\], but.*\[4\]")
    refused(lambda: driven.filter(x, inputs=u[:, :1]), "inputs.* has 1 columns; 2 are")
    refused(lambda: driven.filter(x, inputs=np.nan * u), "is NaN; inputs are known")
    refused(lambda: driven.forecast(x, 2, inputs=u), "future_inputs=None")
    fit = LinearDynamicalSystem.fit
    refused(lambda: fit(x, init=driven), "init has n_inputs=2, but inputs= has 0 col")
    refused(
        lambda: LinearDynamicalSystem.fit_many([x], n_states=1, inputs=u),
        "inputs= belongs to one fit",
    )
    refused(
        lambda: changed(model, transition_input=np.ones((3, 1))),
        r"transition_input has shape \(3, 1\), expected \(2, n_inputs\)",
    )
    refused(
        lambda: changed(
            model, transition_input=np.ones((2, 1)), observation_input=np.ones((1, 2))
        ),
        "transition_input has 1 columns and observation_input 2",
    )
    refused(
        lambda: changed(model, initial_cov=[[np.inf, 0.1], [0.1, 1.0]]),
        r"initial_cov\[0, 0\]=inf is a state without a prior",
    )


def test_systems_with_inputs_and_without_prior_survive_a_file(rng, tmp_path):
    import maxent

    model = without_prior(with_inputs(rng, random_lds(rng, 2, 2)), 1)
    maxent.save(model, tmp_path / "model.npz")
    again = maxent.load(tmp_path / "model.npz")
    assert again == model and again.n_inputs == 2
    assert maxent.models.LinearDynamicalSystem.from_spec(model.get_spec()) == model
    plain = random_lds(rng, 2, 2)
    spec = plain.get_spec()
    del spec["transition_input"], spec["observation_input"]  # of an older file
    assert LinearDynamicalSystem.from_spec(spec) == plain


@pytest.mark.parametrize("radius", [0.3, 0.95, 0.999])
@pytest.mark.parametrize("kind", ["full", "none", "singular"])
def test_settled_covariances_are_those_of_the_whole_recursion(radius, kind, rng):
    """Systems that vary with time, by name, take no step for another."""
    model = random_lds(rng, 3, 2, radius=radius, singular=kind == "singular")
    if kind == "none":
        model = changed(model, observation_cov=np.zeros((2, 2)))
    x = model.sample(1, 400, rng)[0]
    x[[200, 201, 320, 399]] = np.nan
    steps = {"transition": np.stack([model.transition] * 400)}
    slow = changed(model, **steps)
    for one, other in (
        (model.posterior(x)[0], slow.posterior(x)[0]),
        (model.filter(x)[0], slow.filter(x)[0]),
    ):
        for name, array in vars(one).items():
            expected = getattr(other, name)
            size = np.abs(expected).max()
            # what is left to go, 4e-15 / (1 - radius), and rounding of 400 steps
            np.testing.assert_allclose(array, expected, atol=1e-10 * size)
    one, other = model.log_likelihood(x), slow.log_likelihood(x)
    np.testing.assert_allclose(one, other, rtol=1e-10)
