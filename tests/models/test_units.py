"""Fits do not depend on the units of the columns."""

import itertools

import numpy as np
import pytest

from maxent.families import Gaussian, InverseWishart, Wishart
from maxent.kernels import linear_gaussian_kernel
from maxent.latent import MixturePrior
from maxent.models import (
    FactorialHMM,
    LinearDynamicalSystem,
    LinearGaussianNetwork,
    SwitchingLDS,
)

FITS = {
    "lds": lambda X: LinearDynamicalSystem.fit(X, 2),
    "lds_fixed": lambda X: LinearDynamicalSystem.fit(
        X, init=FITS["lds"](X), fixed=["observation_cov"]
    ),
    "switching": lambda X: SwitchingLDS.fit(X, 2, 2, random_state=0),
    "factorial": lambda X: FactorialHMM.fit(X, [2, 2], random_state=0),
    "network": lambda X: LinearGaussianNetwork.fit(
        X, [("h", 1), ("a", 1), ("b", 2)], {"a": ["h"], "b": ["h", "a"]}, ["a", "b"],
        prior=1.0, random_state=0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FITS)
def test_scaled_columns_change_the_density_by_their_scale_alone(name, rng):
    walk = np.cumsum(rng.normal(size=(60, 2)), axis=0) @ rng.normal(size=(2, 3))
    X = walk + 0.3 * rng.normal(size=(60, 3))
    X[5, 1] = np.nan
    # powers of two: others round the data, and steps of fits multiply the rounding
    scale = np.array([2.0**17, 1.0, 2.0**-13])
    before, after = FITS[name](X), FITS[name](X * scale)
    change = -np.count_nonzero(~np.isnan(X), axis=0) @ np.log(scale)
    value, scaled = (
        m.log_likelihood(x).sum() if name == "network" else m_value(m, x)
        for m, x in ((before, X), (after, X * scale))
    )
    assert scaled == pytest.approx(value + change, abs=1e-5)
    results = before.fit_result, after.fit_result
    assert results[0].n_iter == results[1].n_iter
    if name != "lds_fixed":
        prior = results[0].objective - value
        others = {"lds": 0.1, "switching": 0.1, "network": 1.0}.get(name, 0.0)
        expected = prior - others * np.log(scale).sum()
        assert results[1].objective - scaled == pytest.approx(expected, abs=1e-5)


def m_value(model, x):
    """Log-density, or its bound."""
    bound = getattr(model, "lower_bound", model.log_likelihood)
    return bound(x).sum()


def switching_bound(cov, x):
    """Bound of a switching system whose states are as wide as its observations."""
    eye, start, turn = np.eye(len(cov)), [0.5, 0.5], [[0.7, 0.3], [0.3, 0.7]]
    steps = [0.5 * eye, 0.2 * eye], [cov, cov]
    return SwitchingLDS(start, turn, *steps, eye, cov, x[0], cov).lower_bound([x])[0]


DEFINITE = {  # functions of a definite matrix and its rows, and what a unit adds
    "Gaussian": (lambda S, x: Gaussian(x[0], S).log_prob(x), -1),
    "Wishart": (lambda S, x: Wishart(5.0, S).log_prob(S[None]), -4),
    "InverseWishart": (lambda S, x: InverseWishart(5.0, S).log_prob(S[None]), -4),
    "MixturePrior": (lambda S, x: MixturePrior(x[0], S).df, 0),
    "SwitchingLDS": (switching_bound, -5),
    "kernel": (
        lambda S, x: linear_gaussian_kernel(
            [LinearGaussianNetwork([("v", 3)], {}, covs={"v": S})]
        ),
        0,
    ),
}


@pytest.mark.parametrize("name", DEFINITE)
def test_a_matrix_is_definite_in_all_units_or_in_none(name, rng):
    value, power = DEFINITE[name]
    for _ in range(3):
        A, x = rng.normal(size=(3, 7)), rng.normal(size=(5, 3))
        want = value(A @ A.T, x)
        for scale in itertools.permutations([1e-8, 1.0, 1e8]):
            S = A @ A.T * np.multiply.outer(scale, scale)
            change = power * np.log(scale).sum()
            assert value(S, x * scale) - change == pytest.approx(want, rel=1e-8)
