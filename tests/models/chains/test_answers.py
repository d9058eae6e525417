"""Filters, forecasts, continued draws, filling in, and the order of states."""

import numpy as np
import pytest
from refusals import refused
from scipy import stats

from maxent.families import Categorical, DiagonalGaussian, Gaussian, Poisson, Product
from maxent.models import (
    CategoricalHMM,
    GaussianHMM,
    HiddenMarkovModel,
    Mixture,
    Mixtures,
)

MOVES = [[0.8, 0.2], [0.3, 0.7]]
LETTERS = CategoricalHMM([0.6, 0.4], MOVES, [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
PAIRS = GaussianHMM(
    [0.6, 0.4],
    MOVES,
    [[0.0, 0.0], [2.0, 3.0]],
    [[[1.0, 0.6], [0.6, 2.0]], [[0.5, -0.2], [-0.2, 1.0]]],
)


def test_a_filter_is_the_last_posterior_of_every_beginning(rng):
    for model in (LETTERS, PAIRS):
        x = model.sample(1, 6, rng)[0]
        found = model.filter([x, x[:2]])
        for t in range(6):
            expected = model.posterior([x[: t + 1]])[0][-1]
            np.testing.assert_allclose(found[0][t], expected, rtol=1e-10)
        np.testing.assert_array_equal(found[1], found[0][:2])
    x = np.full(6, -1)
    np.testing.assert_allclose(LETTERS.filter([x])[0][0], [0.6, 0.4])
    far = np.array([[0.0, 0.0], [1e6, -1e6], [2.0, 3.0]])  # no likelihood is positive
    assert np.isfinite(PAIRS.filter([far])[0]).all()
    never = CategoricalHMM([1.0, 0.0], np.eye(2), [[1.0, 0.0], [0.0, 1.0]])
    refused(
        lambda: never.filter([[0], [0, 1]]), r"sequences\[1\]\[:2\] has probability"
    )


def test_a_forecast_is_what_continued_draws_show():
    for model, x in ((LETTERS, [0, 2, 2]), (PAIRS, [[0.1, -1.0], [2.0, 2.0]])):
        ahead = model.forecast([x], 3, level=0.8)[0]
        drawn = model.sample(20_000, 3, random_state=0, given=x)
        drawn = np.stack(drawn).astype(float)
        if model is LETTERS:
            each = drawn[:, :, None] == np.arange(3)
            np.testing.assert_allclose(each.mean(axis=0), ahead.mean, atol=0.02)
            continue
        np.testing.assert_allclose(drawn.mean(axis=0), ahead.mean, atol=0.05)
        np.testing.assert_allclose(drawn.var(axis=0), ahead.variance, rtol=0.1)
        inside = (drawn >= ahead.lower) & (drawn <= ahead.upper)
        np.testing.assert_allclose(inside.mean(axis=0), 0.8, atol=0.03)
    states = LETTERS.filter([[0, 2, 2]])[0][-1] @ LETTERS.transition
    np.testing.assert_allclose(LETTERS.forecast([[0, 2, 2]], 2)[0].states[0], states)
    refused(lambda: PAIRS.forecast([[[0.0, 0.0]]], 0), "steps=0")
    refused(lambda: PAIRS.forecast([[[0.0, 0.0]]], 2, level=1.0), "between 0 and 1")


@pytest.mark.parametrize("level", [0.5, 0.999])
def test_intervals_of_gaussians_have_their_probability_exactly(level, rng):
    mean, scale = rng.normal(size=(2, 2, 3, 2)) * 4.0
    scale = 0.1 + np.abs(scale)
    shares = rng.dirichlet([1.0] * 3, 2)
    chain = [0.3, 0.7], [[0.8, 0.2], [0.3, 0.7]]
    shown = Mixtures(shares, DiagonalGaussian(mean, scale**2))
    plain = GaussianHMM(*chain, mean[:, 0], scale[:, 0] ** 2)
    for model, kept in (
        (HiddenMarkovModel(*chain, shown), shares),
        (plain, [[1.0]] * 2),
    ):
        ahead = model.forecast([[[0.0, 1.0], [2.0, -1.0]]], 3, level=level)[0]
        for t, p in enumerate(ahead.states):
            parts = p[:, None] * kept
            k = parts.shape[1]
            for end, tail in (
                (ahead.lower, 0.5 - level / 2),
                (ahead.upper, 0.5 + level / 2),
            ):
                below = stats.norm.cdf(end[t], mean[:, :k], scale[:, :k])
                total = np.einsum("hk,hkd->d", parts, below)
                np.testing.assert_allclose(total, tail, atol=1e-12)


def test_missing_entries_are_at_their_expectations():
    """By a dense grid over the entry that is missing."""
    x = np.array([[0.3, 0.1], [1.0, np.nan], [2.5, 2.0]])
    grid = np.linspace(-8.0, 12.0, 4001)
    weight = np.empty(len(grid))
    for i, value in enumerate(grid):
        full = x.copy()
        full[1, 1] = value
        weight[i] = np.exp(PAIRS.log_likelihood([full])[0])
    weight /= weight.sum()
    mean = weight @ grid
    filled, variance = PAIRS.impute([x], return_variance=True)
    assert filled[0][1, 1] == pytest.approx(mean, abs=1e-6)
    assert variance[0][1, 1] == pytest.approx(weight @ (grid - mean) ** 2, rel=1e-5)
    seen = ~np.isnan(x)
    np.testing.assert_array_equal(filled[0][seen], x[seen])
    assert (variance[0][seen] == 0).all()


def test_missing_symbols_are_the_most_probable_ones():
    x = [0, -1, 2, -1]
    likely = []
    for t in (1, 3):
        chances = []
        for code in range(3):
            full = list(x)
            full[t] = code
            chances.append(LETTERS.log_likelihood([full])[0])
        likely.append(int(np.argmax(chances)))
    assert LETTERS.impute([x])[0].tolist() == [0, likely[0], 2, likely[1]]
    letters = CategoricalHMM(LETTERS.start, MOVES, LETTERS.emission, "abc", "?")
    assert (
        letters.impute(["a?c?"])[0] == "a" + "abc"[likely[0]] + "c" + "abc"[likely[1]]
    )


def test_mixtures_fill_in_by_what_the_rest_shows():
    parts = Product({0: Poisson([1.0, 9.0]), 1: Categorical([[0.9, 0.1], [0.2, 0.8]])})
    model = Mixture([0.5, 0.5], parts)
    X = np.array([[np.nan, 0.0], [9.0, np.nan], [1.0, 1.0]])
    share = model.posterior(X)
    filled, variance = model.impute(X, return_variance=True)
    mean = share[0] @ [1.0, 9.0]
    assert filled[0, 0] == pytest.approx(mean)
    assert variance[0, 0] == pytest.approx(share[0] @ [2.0, 90.0] - mean**2)
    assert filled[1, 1] == 1.0 and np.isnan(variance[1, 1])
    np.testing.assert_array_equal(filled[2], X[2])
    blobs = Mixture([0.5, 0.5], Gaussian([[0.0, 0.0], [5.0, 5.0]], np.eye(2)))
    assert blobs.impute([[5.0, np.nan]])[0, 1] == pytest.approx(5.0, abs=1e-3)


def test_ordered_states_are_the_same_model(rng):
    for model in (
        LETTERS,
        PAIRS,
        HiddenMarkovModel([0.5, 0.5], MOVES, Poisson([9, 1])),
    ):
        x = model.sample(3, 5, rng)
        for other in (model.order_states([1, 0]), model.order_states()):
            assert type(other) is type(model)
            np.testing.assert_allclose(
                other.log_likelihood(x), model.log_likelihood(x), rtol=1e-12
            )
        assert model.order_states([1, 0]).order_states([1, 0]) == model
    ordered = HiddenMarkovModel([0.2, 0.8], MOVES, Poisson([9.0, 1.0])).order_states()
    np.testing.assert_array_equal(ordered.emission.rate, [1.0, 9.0])
    np.testing.assert_array_equal(ordered.transition, [[0.7, 0.3], [0.2, 0.8]])
    by = PAIRS.order_states(lambda model: -model.mean[:, 1])
    assert by.mean[0, 1] == 3.0
    refused(lambda: PAIRS.order_states([1.0]), r"key gives values of shape \(1,\)")
