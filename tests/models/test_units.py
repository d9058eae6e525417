"""Fits do not depend on the units of the columns."""

import numpy as np
import pytest

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
    scale = np.array([1e5, 1.0, 1e-4])
    # powers of ten round the data, and EM multiplies the rounding
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
