"""Linear machines with a flat bias do not depend on where the features have zero."""

import numpy as np
import pytest

from maxent import (
    MEDClassifier,
    MEDFeatureSelector,
    MEDPartialLabelClassifier,
    MEDRegressor,
)
from maxent.discrimination._far_rows import near_zero

MACHINES = {
    "smo": MEDClassifier("linear", solver="smo", tol=1e-6),
    "interior": MEDClassifier("linear", solver="interior", tol=1e-6),
    "coordinate": MEDClassifier("linear", solver="coordinate", tol=1e-6),
    "newton": MEDClassifier("linear", solver="newton", margin="logistic", tol=1e-6),
    "joint": MEDClassifier("linear", multi_class="joint", tol=1e-6),
    "pairs": MEDClassifier("linear", multi_class="ovo", tol=1e-6),
    "regressor": MEDRegressor("linear", tol=1e-6),
    "selector": MEDFeatureSelector(tol=1e-6, prior_inclusion=0.5),
    "partial": MEDPartialLabelClassifier(MEDClassifier("linear", tol=1e-6)),
    "partial selector": MEDPartialLabelClassifier(
        MEDFeatureSelector(tol=1e-6, prior_inclusion=0.5)
    ),
}


def rows_and_target(name, rng, n=90):
    X = rng.normal(size=(n, 4))
    if name == "regressor":
        return X, X @ [1.0, -2.0, 0.5, 0.0] + 0.3 * rng.normal(size=n)
    y = np.arange(n) % (3 if name in ("joint", "pairs") else 2)
    X += 1.2 * np.eye(4)[y]
    if name.startswith("partial"):
        y = np.where(rng.random(n) < 0.3, -1, y + 1)
    return X, y


def values(machine, X):
    method = getattr(machine, "decision_function", None) or machine.predict
    return method(X)


@pytest.mark.parametrize("origin", [1e2, 1e5, -1e8, 2.0**40])
@pytest.mark.parametrize("name", MACHINES)
def test_the_machine_is_the_same_far_from_zero(name, origin, rng):
    X, y = rows_and_target(name, rng)
    far = np.round(X * 2**10) / 2**10 + origin * np.array([1, -1, 0.5, 1])
    X = far - origin * np.array([1, -1, 0.5, 1])  # both have the same digits
    machine, moved = MACHINES[name], MACHINES[name]
    machine = machine.fit(X, y)
    objective, f = machine.objective_, values(machine, X)
    moved = moved.fit(far, y)
    assert moved.converged_
    assert moved.objective_ == pytest.approx(objective, rel=1e-4)
    # the objective is strongly convex in f, and predictions round as |w| |x| eps
    size = 1e-2 * (1 + np.abs(f).max()) + 1e-14 * abs(origin)
    np.testing.assert_allclose(values(moved, far), f, atol=size)


def test_support_vectors_are_rows_of_training(rng):
    X, y = rows_and_target("smo", rng)
    X += 1e6
    machine = MEDClassifier("linear", solver="smo").fit(X, y, np.arange(90) % 3)
    np.testing.assert_array_equal(machine.support_vectors_, X[machine.support_])
    one = machine.dual_coef_ @ (machine.support_vectors_ - X.mean(axis=0))
    np.testing.assert_allclose(one, machine.coef_, rtol=1e-6)
    assert len(machine.support_) < 60 and (machine.support_ % 3 > 0).all()


def test_rows_near_zero_and_other_biases_are_left_as_they_are(rng):
    X = rng.normal(size=(50, 3))
    for data, bias in ((X + 3.0, "flat"), (X + 1e3, None), (X + 1e3, 1.0)):
        found, origin = near_zero(data, bias)
        assert found is data and origin is None
    found, origin = near_zero((X + 1e3).astype(np.float32), "flat")
    assert found.dtype == np.float64
    np.testing.assert_allclose(found + origin, X + 1e3, atol=1e-3)
    assert not near_zero(np.full((4, 2), 7.0), "flat")[0].any()


@pytest.mark.parametrize("d", [3, 70_000])
def test_the_mean_is_that_of_rows_of_any_number_and_width(d, rng):
    data = 1e3 + rng.normal(size=(50_000 if d == 3 else 40, d))
    found, origin = near_zero(data, "flat")
    np.testing.assert_allclose(origin, data.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found, data - data.mean(axis=0), atol=1e-9)
