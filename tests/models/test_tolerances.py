"""`tol` of the fits by EM: the measure of a gain that the docstrings state."""

import numpy as np
import pytest

from maxent.models import (
    CategoricalHMM,
    FactorialHMM,
    GaussianHMM,
    LinearDynamicalSystem,
    Mixture,
    SwitchingLDS,
)


def fits(rng):
    """The fits by their tolerance, of the series to 300 values."""
    X = rng.normal(size=(200, 2))
    X[::2] += 1.0
    V = [rng.normal(size=(50, 2)).cumsum(axis=0) for _ in range(3)]
    S = [rng.integers(0, 3, 40) for _ in range(5)]
    return {
        "mixture": lambda tol: Mixture.fit(X, tol=tol, n_init=1, random_state=0),
        "hmm": lambda tol: CategoricalHMM.fit(
            S, n_states=2, tol=tol, n_init=1, random_state=0
        ),
        "gaussian": lambda tol: GaussianHMM.fit(
            V, n_states=2, tol=tol, n_init=1, random_state=0
        ),
        "system": lambda tol: LinearDynamicalSystem.fit(V, n_states=1, tol=tol),
        "switching": lambda tol: SwitchingLDS.fit(
            V, n_regimes=2, n_states=1, tol=tol, random_state=0
        ),
        "factorial": lambda tol: FactorialHMM.fit(
            V, n_states=(2, 2), tol=tol, n_init=1, random_state=0
        ),
    }


@pytest.mark.parametrize("tol", [1e-3, 1e-4])
@pytest.mark.parametrize(
    "name, per_value",
    [("mixture", False), ("hmm", False), ("gaussian", False)]
    + [("system", True), ("switching", True), ("factorial", True)],
)
def test_a_run_ends_with_the_first_small_gain(name, per_value, tol, rng):
    found = fits(rng)[name](tol).fit_result
    assert found.converged
    trace = np.array(found.trace)
    size = 300 if per_value else 1.0 + np.abs(trace[1:])
    small = np.diff(trace) <= tol * size
    assert small[-1]
    # steps between those of EM may gain little before the end
    assert name == "system" or not small[:-1].any()
