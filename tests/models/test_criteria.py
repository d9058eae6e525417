"""Free parameters, AIC and BIC."""

import numpy as np
import pandas as pd
import pytest
from models.state_space_cases import random_factorial, random_lds
from oracles import state_space as dense
from refusals import refused
from sklearn.mixture import GaussianMixture

from maxent.families import Categorical, DiagonalGaussian, Gaussian, Poisson
from maxent.models import (
    CategoricalHMM,
    GaussianHMM,
    LinearDynamicalSystem,
    MarkovChain,
    Mixture,
)

half = np.full(2, 0.5)


@pytest.mark.parametrize(
    "model, count",
    [
        (CategoricalHMM(half, [half, half], np.full((2, 4), 0.25)), 1 + 2 + 2 * 3),
        (GaussianHMM(half, [half, half], np.zeros((2, 3)), [np.eye(3)] * 2), 3 + 2 * 9),
        (GaussianHMM(half, [half, half], np.zeros((2, 3)), np.ones((2, 3))), 3 + 2 * 6),
        (GaussianHMM(half, [half, half], np.zeros((2, 3)), np.ones(2)), 3 + 2 * 4),
        (MarkovChain(half, np.full((2, 2), 0.5), 1), 1 + 2),
        # eight numbers, less the unit and the origin of the state
        (random_lds(np.random.default_rng(0), 1, 1), 6),
        (random_factorial(np.random.default_rng(0), (2, 3), 2), 3 + 8 + 4 * 2 + 3),
    ],
)
def test_criteria_count_free_parameters_and_observed_steps(model, count, rng):
    assert model.n_parameters == count
    data = model.sample(3, [5, 4, 6], rng)
    lost = np.array(data[0], copy=True)
    lost[2] = -1 if lost.ndim == 1 else np.nan
    data[0] = lost
    total = model.log_likelihood(data).sum()
    assert model.aic(data) == pytest.approx(2 * count - 2 * total)
    assert model.bic(data) == pytest.approx(np.log(14) * count - 2 * total)


@pytest.mark.parametrize(
    "model",
    [
        GaussianHMM(half, np.eye(2), np.zeros((2, 3)), [np.eye(3)] * 2),
        random_lds(np.random.default_rng(0), 1, 3),
        random_factorial(np.random.default_rng(0), (2, 3), 3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_rows_that_miss_a_part_are_steps_of_bic(model, rng):
    data = model.sample(2, [5, 4], rng)
    data[0][1, 0] = data[0][2, :2] = data[1][3] = np.nan
    total = model.log_likelihood(data).sum()
    expected = np.log(8) * model.n_parameters - 2 * total  # one of nine is lost
    assert model.bic(data) == pytest.approx(expected)


def test_free_parameters_are_the_rank_of_the_law():
    """The parameters of a system that change its mean and covariance."""
    # of one system: the rank is that of almost all, but not always plain to see
    model = random_lds(np.random.default_rng(0), 2, 2)
    names, T = model._names, 9
    sizes = [getattr(model, name).size for name in names]
    symmetric = [name.endswith("cov") for name in names]

    def law(vector):
        parts = np.split(vector, np.cumsum(sizes)[:-1])
        values = {}
        for name, part, both in zip(names, parts, symmetric):
            array = part.reshape(getattr(model, name).shape)
            values[name] = 0.5 * (array + array.T) if both else array
        _, _, mean, cov, _ = dense.joint(LinearDynamicalSystem(**values), T)
        return np.concatenate([mean, cov.ravel()])

    point = np.concatenate([getattr(model, name).ravel() for name in names])
    steps = 1e-5 * np.eye(len(point))
    jacobian = np.array([(law(point + h) - law(point - h)) / 2e-5 for h in steps])
    values = np.linalg.svd(jacobian, compute_uv=False)
    k = model.n_parameters
    assert values[k] < 1e-6 * values[0] < 1e-2 * values[k - 1]


def test_systems_that_vary_have_no_count(rng):
    varying = random_lds(rng, 1, 1, steps=4)
    refused(lambda: varying.n_parameters, "varies over n_steps=4")


@pytest.mark.parametrize(
    "components, count",
    [
        (Poisson([1.0, 3.0]), 1 + 2),
        (Gaussian(np.zeros((2, 3)), [np.eye(3)] * 2), 1 + 2 * 9),
        (DiagonalGaussian(np.zeros((2, 3)), np.ones((2, 3))), 1 + 2 * 6),
        (Categorical(np.full((2, 4), 0.25)), 1 + 2 * 3),
    ],
)
def test_criteria_of_mixtures_are_those_of_their_rows(components, count, rng):
    model = Mixture(half, components)
    X = model.sample(9, rng)
    total, n = model.log_likelihood(X).sum(), 9
    if isinstance(components, (Gaussian, DiagonalGaussian)):
        X[0, 1], X[2], n = np.nan, np.nan, 8
        total = model.log_likelihood(X).sum()
    assert model.n_parameters == count
    assert model.aic(X) == pytest.approx(2 * count - 2 * total)
    assert model.bic(X) == pytest.approx(np.log(n) * count - 2 * total)
    assert Mixture([1.0, 0.0], components).n_parameters == count - 1


def test_bic_of_a_mixture_is_that_of_scikit_learn(rng):
    X = np.concatenate([rng.normal(size=(40, 2)), 5.0 + rng.normal(size=(40, 2))])
    peer = GaussianMixture(2, random_state=0).fit(X)
    model = Mixture(peer.weights_, Gaussian(peer.means_, peer.covariances_))
    assert model.bic(X) == pytest.approx(peer.bic(X), rel=1e-9)
    assert model.aic(X) == pytest.approx(peer.aic(X), rel=1e-9)


def test_rows_with_text_count_like_others(rng):
    X = pd.DataFrame({"kind": rng.choice(["a", "b"], 30), "x": rng.normal(size=30)})
    family = {"kind": Categorical, "x": Gaussian}
    model = Mixture.fit(X, n_components=2, family=family, n_init=1, random_state=0)
    total = model.log_likelihood(X).sum()
    assert model.n_parameters == 1 + 2 * (1 + 2)
    assert model.bic(X) == pytest.approx(7 * np.log(30) - 2 * total)
