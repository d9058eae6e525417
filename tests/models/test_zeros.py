"""Zeros of a start: they stay, and are not counted as parameters."""

import numpy as np
import pytest

from maxent.families import Poisson
from maxent.models import (
    BayesNet,
    CategoricalHMM,
    FactorialHMM,
    GaussianHMM,
    Mixture,
    SwitchingLDS,
)

START = np.array([1.0, 0.0, 0.0])
LEFT_RIGHT = np.array([[0.9, 0.1, 0.0], [0.0, 0.9, 0.1], [0.0, 0.0, 1.0]])
EMISSION = np.array([[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.0, 0.1, 0.9]])


def objective_of(model, data, smoothing, tables):
    """The objective from its definition, over the entries that are not zero."""
    log_prior = sum(np.log(t[t > 0]).sum() for t in tables)
    return model.log_likelihood(data).sum() + smoothing * log_prior


@pytest.mark.parametrize("smoothing", [0.0, 0.01, 1.0])
def test_a_left_right_chain_of_symbols_stays_one(smoothing):
    init = CategoricalHMM(START, LEFT_RIGHT, EMISSION)
    X = init.sample(20, 30, random_state=0)
    fit = CategoricalHMM.fit(X, init=init, smoothing=smoothing)
    for new, old in [
        (fit.start, START),
        (fit.transition, LEFT_RIGHT),
        (fit.emission.prob, EMISSION),
    ]:
        np.testing.assert_array_equal(new[old == 0], 0.0)
        np.testing.assert_allclose(new.sum(axis=-1), 1.0)
    expected = objective_of(
        fit, X, smoothing, [fit.start, fit.transition, fit.emission.prob]
    )
    assert fit.fit_result.objective == pytest.approx(expected, rel=1e-12)
    assert init.n_parameters == 0 + 2 + 4
    log_likelihood = init.log_likelihood(X).sum()
    assert init.aic(X) == pytest.approx(2 * 6 - 2 * log_likelihood)


def test_many_chains_at_once_keep_zeros(rng):
    init = CategoricalHMM(START, LEFT_RIGHT, EMISSION)
    X = init.sample(5, 40, random_state=0)
    many = CategoricalHMM.fit_many(X, init=init, smoothing=0.1)
    for x, fit in zip(X, many):
        one = CategoricalHMM.fit([x], init=init, smoothing=0.1)
        np.testing.assert_array_equal(fit.transition[LEFT_RIGHT == 0], 0.0)
        np.testing.assert_array_equal(fit.emission.prob[EMISSION == 0], 0.0)
        np.testing.assert_allclose(fit.transition, one.transition, atol=1e-6)
        found, objective = fit.fit_result.objective, one.fit_result.objective
        assert found == pytest.approx(objective, rel=1e-9)


def test_a_left_right_chain_of_vectors_stays_one(rng):
    init = GaussianHMM(START, LEFT_RIGHT, [[0.0], [3.0], [6.0]], np.ones((3, 1)))
    X = init.sample(10, 40, random_state=0)
    fit = GaussianHMM.fit(X, init=init)
    np.testing.assert_array_equal(fit.start, START)
    np.testing.assert_array_equal(fit.transition[LEFT_RIGHT == 0], 0.0)
    assert init.n_parameters == 2 + 3 * 2


def test_chains_in_blocks_keep_zeros():
    da = pytest.importorskip("dask.array")
    init = CategoricalHMM(START, LEFT_RIGHT, EMISSION)
    x = np.concatenate(init.sample(6, 20, random_state=0))
    blocks = da.from_array(x, chunks=40)
    options = {"lengths": [20] * 6, "init": init, "smoothing": 0.2}
    fit = CategoricalHMM.fit(blocks, **options)
    one = CategoricalHMM.fit(x, **options)
    np.testing.assert_array_equal(fit.transition[LEFT_RIGHT == 0], 0.0)
    np.testing.assert_allclose(fit.transition, one.transition, atol=1e-6)


def test_chains_of_a_factorial_model_keep_zeros(rng):
    init = FactorialHMM(
        [START, [0.5, 0.5]],
        [LEFT_RIGHT, [[0.9, 0.1], [0.2, 0.8]]],
        [[[0.0], [5.0], [10.0]], [[0.0], [1.0]]],
        [[0.1]],
    )
    X = init.sample(8, 30, random_state=0)
    for method in ("exact", "meanfield"):
        fit = FactorialHMM.fit(X, init=init, method=method, tol=1e-5)
        np.testing.assert_array_equal(fit.start[0], START)
        np.testing.assert_array_equal(fit.transition[0][LEFT_RIGHT == 0], 0.0)
        assert np.isfinite(fit.fit_result.objective)
    assert init.n_parameters == 2 + (1 + 2) + 4 + 1


def test_regimes_keep_zeros(rng):
    init = SwitchingLDS(
        [1.0, 0.0],
        [[0.9, 0.1], [0.0, 1.0]],
        [[[0.5]], [[0.9]]],
        [[[1.0]], [[1.0]]],
        [[1.0]],
        [[0.1]],
        [0.0],
        [[1.0]],
    )
    X = init.sample(4, 60, random_state=0)
    fit = SwitchingLDS.fit(X, init=init, max_iter=30, tol=1e-4)
    np.testing.assert_array_equal(fit.start, [1.0, 0.0])
    assert fit.switching[1, 0] == 0.0


def test_tables_of_a_net_keep_zeros():
    edges = {"hidden": [], "a": ["hidden"], "b": ["hidden"]}
    tables = [
        (("hidden",), [0.4, 0.6]),
        (("hidden", "a"), [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]),
        (("hidden", "b"), [[0.9, 0.1], [0.2, 0.8]]),
    ]
    init = BayesNet(tables, observed=["a", "b"])
    X = init.sample(200, random_state=0)
    fit = BayesNet.fit(X, edges, observed=["a", "b"], init=init)
    table = dict(zip(["hidden", "a", "b"], [t for _, t in fit.factors]))["a"]
    np.testing.assert_array_equal(np.asarray(table) == 0, np.asarray(tables[1][1]) == 0)


def test_a_component_of_weight_zero_keeps_it(rng):
    init = Mixture([0.5, 0.0, 0.5], Poisson([1.0, 7.0, 20.0]))
    x = rng.poisson(np.repeat([1.0, 7.0, 20.0], 40))
    fit = Mixture.fit(x, init=init)
    assert fit.weights[1] == 0.0 and np.isfinite(fit.fit_result.objective)
