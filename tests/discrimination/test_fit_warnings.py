"""Warnings of fits: constant ones, columns of far scales, labels of few rows each."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

from maxent import MaxEntClassifier, MEDClassifier, MEDRegressor
from maxent.kernels import ProductKernel

CONSTANT = {  # parameters, scale of X, scale of y, remedy
    "wide tube": ({"epsilon": 10.0}, 1.0, 1.0, "epsilon=0.1, sharpness=10"),
    "wide tube, nystroem": (
        {"epsilon": 10.0, "approximation": "nystroem"},
        *(1.0, 1.0, "epsilon=0.1"),
    ),
    "small targets": ({}, 1.0, 1e-2, "epsilon=0.001, sharpness=1e[+]03"),
    "large targets": ({}, 1.0, 1e6, "C=1e[+]06, epsilon=1e[+]05, sharpness=1e-05"),
    "large targets, hinge": ({"margin": "hinge"}, 1.0, 1e6, r"epsilon=1e\+05\.$"),
    "large targets, large tube": ({"epsilon": 1e5}, 1.0, 1e6, "try C=1e[+]06, sharp"),
    "small gamma": ({"gamma": 1e-9}, 1.0, 1.0, "try gamma=0[.]"),
    "small rows": ({"kernel": "linear"}, 1e-9, 1.0, "scale the features"),
}


@pytest.mark.filterwarnings("error")
def test_fixed_margins_on_raw_columns_are_proved_by_their_objective():
    """Wine as it is: standard deviations from 0.1 to 300."""
    X, y = load_wine(return_X_y=True)
    model = MEDClassifier("linear", margin="fixed").fit(X, y)
    assert model.converged_
    assert 0 <= model.duality_gap_ <= 1e-3 * model.objective_
    assert model.score(X, y) == 1.0


def problem(rng, n=200):
    X = rng.normal(size=(n, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=n)
    return X, (y - y.mean()) / y.std()


@pytest.mark.parametrize("case", list(CONSTANT))
def test_a_constant_regression_names_the_parameter_to_change(case, rng):
    parameters, of_X, of_y, remedy = CONSTANT[case]
    X, y = problem(rng)
    with pytest.warns(UserWarning, match=f"nearly the same: .*{remedy}") as caught:
        MEDRegressor(**parameters).fit(of_X * X, of_y * y)
    assert len(caught) == 1


def test_a_constant_regression_on_a_kernel_matrix_is_told(rng):
    X, y = problem(rng)
    with pytest.warns(UserWarning, match="nearly the same"):
        MEDRegressor("precomputed", epsilon=9.0).fit(X @ X.T, y)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("scaled", [True, False])
def test_weak_fits_are_not_called_constant(kernel, scaled, rng):
    X, y = load_diabetes(return_X_y=True, scaled=scaled)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        weak = MEDRegressor(kernel).fit(X, y).predict(X)
        MEDRegressor(kernel).fit(X, rng.permutation(y))
        constant = MEDRegressor(kernel).fit(X, np.full(len(y), 3.0)).predict(X)
    assert not said
    assert np.ptp(weak) > 1.0
    np.testing.assert_allclose(constant, 3.0, atol=0.2)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_stalled_machines_ask_for_scaled_columns(kind, rng):
    X = rng.normal(size=(300, 3)) * [1.0, 1.0, 1e9]
    y = X[:, 0] + X[:, 1] > 0
    with pytest.warns(ConvergenceWarning, match=r"StandardScaler.* of column 2\.$"):
        MEDClassifier("linear", C=100.0).fit(kind(X), y)


FEW_ROWS = {  # labels, and how the warning calls them
    "half": (np.arange(60) // 2 * 2 + 1.0, None),  # 30 of 60
    "most": (np.arange(60) % 40, "40 different numbers in 60 rows.* MEDRegressor"),
    "names": ([f"id{k % 40}" for k in range(60)], "40 different labels.* identifiers"),
    "quantity": (np.arange(800) % 120, "120 different numbers in 800 .* MEDRegressor"),
    "enough": (np.arange(1300) % 120, None),
}


@pytest.mark.parametrize("case", list(FEW_ROWS))
def test_labels_of_few_rows_each_are_told_of_before_the_work(case):
    y, words = FEW_ROWS[case]
    X = np.ones((len(y), 1))
    model = MaxEntClassifier()
    if words is None:
        model.fit(X, y)
        return
    with pytest.raises(UserWarning, match=words):  # an error in these tests
        model.fit(X, y)
    assert not hasattr(model, "converged_")


@pytest.mark.parametrize("machine", [MEDClassifier(), MEDRegressor("linear")])
def test_a_kernel_matrix_as_features_is_named(machine, rng):
    y = np.repeat([0, 1], 10)
    tables = rng.normal(size=(20, 30, 2)) * (1.0 + y)[:, None, None]
    told = r"20 rows and columns.*pass kernel='precomputed'"
    for normalize in (True, False):
        kernel = ProductKernel("Gaussian", normalize=normalize)
        with pytest.warns(UserWarning, match=told):
            make_pipeline(kernel, clone(machine)).fit(tables, y)
        right = clone(machine).set_params(kernel="precomputed")
        make_pipeline(kernel, right).fit(tables, y)  # warns of nothing
    Z = rng.normal(size=(20, 20))
    for features in (np.eye(20), Z, Z + Z.T, sp.csr_array(Z @ Z.T)):
        clone(machine).set_params(tol=1.0).fit(features, y)
