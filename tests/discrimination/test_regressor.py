"""MEDRegressor: contract and truth against other machines."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxent import MEDRegressor
from maxent.discrimination import ExponentialMargin


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        MEDRegressor(),
        MEDRegressor("linear", margin="gaussian"),
        MEDRegressor(margin="hinge", bias=1.0),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def curve(rng, n=120):
    X = rng.normal(size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n) + 5.0


def test_gaussian_prior_without_tube_is_kernel_ridge(rng):
    from sklearn.kernel_ridge import KernelRidge

    X, y = curve(rng)
    ours = MEDRegressor(
        C=4.0, epsilon=0.0, margin="gaussian", bias=None, gamma=0.5, tol=1e-10
    ).fit(X, y)
    theirs = KernelRidge(alpha=0.25, kernel="rbf", gamma=0.5).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-8)


@pytest.mark.parametrize("solver", ["interior", "smo"])
def test_hinge_member_is_support_vector_regression(solver, rng):
    from sklearn.svm import SVR

    X, y = curve(rng)
    theirs = SVR(C=2.0, epsilon=0.1, gamma=0.5, tol=1e-8).fit(X, y)
    ours = MEDRegressor(
        C=2.0, epsilon=0.1, gamma=0.5, margin="hinge", tol=1e-7, solver=solver
    ).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)


@pytest.mark.parametrize(
    "margin", ["exponential", "erlang", "laplace", "gaussian", "uniform_exponential"]
)
def test_solvers_agree_and_certify(margin, rng):
    X, y = curve(rng)
    fits = [
        MEDRegressor(C=3.0, gamma=0.5, margin=margin, tol=1e-8, solver=solver).fit(X, y)
        for solver in ("interior", "smo")
    ]
    for model in fits:
        assert model.converged_
        assert 0 <= model.duality_gap_ <= 1e-8 * (1 + model.objective_)
    assert fits[0].objective_ == pytest.approx(fits[1].objective_, rel=1e-7)


@pytest.mark.parametrize("margin", ["exponential", "gaussian", "laplace"])
def test_linear_roads_agree(margin, rng):
    X = rng.normal(size=(600, 4))
    y = X @ [1.0, -2.0, 0.5, 0.0] + 0.3 * rng.normal(size=600)
    fits = [
        MEDRegressor("linear", margin=margin, tol=1e-6, solver=solver).fit(X, y)
        for solver in ("auto", "smo", "coordinate", "newton")
    ]
    for model in fits[1:]:
        np.testing.assert_allclose(model.coef_, fits[0].coef_, atol=5e-3)
        assert model.objective_ == pytest.approx(fits[0].objective_, rel=1e-5)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": -0.1}, "epsilon"),
        ({"C": 0}, "C=0"),
        ({"sharpness": 0.0}, "sharpness"),
        ({"margin": "logistic"}, "logistic"),
        ({"margin": ExponentialMargin(5.0, 1.0)}, "tube"),
        ({"solver": "newton"}, "kernel='linear'"),
    ],
)
def test_bad_parameters_are_named(parameters, message, rng):
    X, y = curve(rng)
    with pytest.raises(ValueError, match=message):
        MEDRegressor(**parameters).fit(X, y)
