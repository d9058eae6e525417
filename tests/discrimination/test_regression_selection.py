"""MEDRegressionSelector: limits, units, switches by enumeration, selection."""

import itertools
import warnings

import numpy as np
import pytest

from maxent import MEDRegressionSelector, MEDRegressor


def sparse_problem(rng, n=150, d=20):
    X = rng.normal(size=(n, d))
    return X, 3.0 * X[:, 0] - 2.0 * X[:, d - 1] + rng.normal(size=n)


@pytest.mark.parametrize("bias", ["flat", 2.0, None])
@pytest.mark.parametrize("margin", ["exponential", "uniform_exponential", "hinge"])
def test_switches_always_on_are_the_plain_machine(margin, bias, rng):
    X, y = sparse_problem(rng, 60, 4)
    z = (y - y.mean()) / y.std()
    target = z if bias == "flat" else y / y.std()
    options = {"C": 3.0, "epsilon": 0.2, "margin": margin, "bias": bias, "tol": 1e-9}
    ours = MEDRegressionSelector(1.0, **options).fit(X, y)
    plain = MEDRegressor("linear", **options).fit(X, target)
    assert ours.objective_ == pytest.approx(plain.objective_, rel=1e-7)
    np.testing.assert_allclose(ours.coef_ / y.std(), plain.coef_, atol=1e-3)


@pytest.mark.parametrize("prior_inclusion", [0.5, 0.1, 1e-4])
@pytest.mark.parametrize("margin", ["exponential", "laplace", "gaussian", "hinge"])
def test_weights_and_switches_follow_from_the_multipliers(margin, prior_inclusion, rng):
    """The posterior by enumeration of the switches, the weights integrated out."""
    X, y = sparse_problem(rng, 40, 8)
    machine = MEDRegressionSelector(prior_inclusion, 2.0, margin=margin, tol=1e-10)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*no feature passes", UserWarning)
        model = machine.fit(X, y)
    assert model.converged_
    assert 0 <= model.duality_gap_ <= 1e-10 * (1 + model.objective_)
    W = model.dual_coef_[0] @ X[model.support_]
    states = np.array(list(itertools.product([0, 1], repeat=8)))
    p0 = prior_inclusion
    log_p = states @ (0.5 * W**2 + np.log(p0)) + (1 - states) @ np.full(
        8, np.log1p(-p0)
    )
    p = np.exp(log_p - log_p.max())
    on = p @ states / p.sum()
    np.testing.assert_allclose(model.inclusion_proba_, on, rtol=1e-9)
    np.testing.assert_allclose(model.coef_[0], model.target_scale_ * on * W, rtol=1e-8)


@pytest.mark.parametrize("unit", [1e-12, 1e-3, 1e9])
@pytest.mark.parametrize("origin", [0.0, 1e3])
def test_the_unit_and_origin_of_targets_do_not_matter(unit, origin, rng):
    X, y = sparse_problem(rng)
    model = MEDRegressionSelector(tol=1e-9).fit(X, y)
    other = MEDRegressionSelector(tol=1e-9).fit(X, unit * (y + origin))
    np.testing.assert_allclose(
        other.inclusion_proba_, model.inclusion_proba_, atol=1e-6
    )
    moved = other.predict(X) / unit - origin
    np.testing.assert_allclose(moved, model.predict(X), atol=1e-5)


def test_the_features_that_matter_are_selected(rng):
    X, y = sparse_problem(rng)
    model = MEDRegressionSelector().fit(X, y)
    assert model.get_support()[[0, 19]].all()
    model.set_params(max_features=2)
    assert model.get_support(indices=True).tolist() == [0, 19]
    assert model.transform(X).shape == (len(X), 2)
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("value", [0.0, -7.5, 1e12, 0.1 + 0.2])
def test_targets_that_are_all_the_same(value, rng):
    X = rng.normal(size=(30, 3))
    with pytest.warns(UserWarning, match="no feature passes"):
        model = MEDRegressionSelector().fit(X, np.full(30, value))
    assert model.target_scale_ == 1.0 and model.converged_
    np.testing.assert_allclose(model.predict(X), value, rtol=1e-12, atol=1e-12)


def test_few_rows_of_many_columns(rng):
    X = rng.normal(size=(25, 300))
    y = 5.0 * X[:, 4] + 0.1 * rng.normal(size=25)
    model = MEDRegressionSelector(0.01, 10.0).fit(X, y)
    assert model.converged_
    assert model.inclusion_proba_.argmax() == 4
