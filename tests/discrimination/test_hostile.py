"""Hostile parameters and fitted states: one sentence that names them, at once."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from refusals import cases, refused

from maxent import MEDClassifier, MEDFeatureSelector, MEDRegressor
from maxent.discrimination import (
    ExponentialMargin,
    dual_path,
    solve_dual,
    solve_kernel_dual,
    solve_linear_dual,
)

PRIOR = ExponentialMargin(5.0)


@pytest.fixture
def data(rng):
    X = rng.normal(size=(24, 3))
    y = np.where(np.arange(24) % 2, 1, -1)
    X[:, 0] += 0.5 * y
    return X, y


# ------------------------------------------------------------- parameters

NOT_NUMBERS = ["a", None, 1j, [1.0], np.ones(2), math.nan]
POSITIVE_NUMBERS = [*NOT_NUMBERS, math.inf, 0, -1.0]


COMMON = {
    "tol": POSITIVE_NUMBERS,
    "max_iter": [*POSITIVE_NUMBERS, 2.5, True],
    "bias": ["a", 1j, [1.0], np.ones(2), math.nan, math.inf, 0, -1.0],
    "solver": ["a", None, 3],
    "init": [1.0, np.ones(3), -np.ones(24), np.full(24, np.nan), np.ones((24, 1))],
    "sample_weight": [np.ones(3), -np.ones(24), np.full(24, np.nan), np.zeros(24)]
    + [np.full(24, np.inf), np.ones((24, 1))],
    "margin": ["exponential", None, 3.0, ExponentialMargin, np.ones(2), {}],
    "y": [1, np.ones(24), np.zeros(24), np.arange(24), np.full(24, "a"), np.ones(3)]
    + [np.ones((24, 1)), np.full(24, np.nan), []],
}
UNNAMED = {
    "init": ["a", np.full(24, 1j)],
    "sample_weight": ["a", np.full(24, 1j)],
    "solver": [np.ones(2)],
    "y": [np.array([None] * 24), np.array([1, "a"] * 12, dtype=object)],
}
KERNEL = {
    "gamma": ["a", math.nan, math.inf, -1.0],
    "cache_size": POSITIVE_NUMBERS,
    "n_jobs": [0, 2**31, 2**40, 10**30],
    "kernel": ["a", ""],
}
KERNEL_UNNAMED = {
    "gamma": [None, 1j, [1.0], np.ones(2)],
    "degree": ["a", None, 1j, [3], math.nan, math.inf],
    "coef0": ["a", None, 1j, [3.0], math.nan, math.inf],
    "n_jobs": ["a", 1j, [2], math.nan, 1.5],
    "kernel": [None, 3, ["rbf"], np.ones(2), "precomputed"],
}


@pytest.mark.parametrize(
    "solve",
    [solve_dual, solve_kernel_dual, solve_linear_dual],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize(("name", "value"), cases(COMMON))
def test_bad_arguments_of_the_functions_are_named(solve, name, value, data):
    X, y = data
    first = X @ X.T if solve is solve_dual else X
    given = {"y": y, "margin": PRIOR, name: value}
    refused(lambda: solve(first, **given), rf"\b{name}\b")


@pytest.mark.parametrize(("name", "value"), cases(UNNAMED))
def test_arguments_of_the_wrong_kind_are_named(name, value, data):
    X, y = data
    given = {"y": y, "margin": PRIOR, name: value}
    refused(lambda: solve_dual(X @ X.T, **given), rf"\b{name}\b")


@pytest.mark.parametrize(("name", "value"), cases(KERNEL))
def test_bad_kernel_arguments_are_named(name, value, data):
    X, y = data
    refused(lambda: solve_kernel_dual(X, y, PRIOR, **{name: value}), name)
    refused(lambda: MEDClassifier(**{name: value}).fit(X, y), name)
    refused(lambda: MEDRegressor(**{name: value}).fit(X, y), name)


@pytest.mark.parametrize(("name", "value"), cases(KERNEL_UNNAMED))
def test_kernel_arguments_of_the_wrong_kind_are_named(name, value, data):
    X, y = data
    refused(lambda: solve_kernel_dual(X, y, PRIOR, **{name: value}), rf"\b{name}\b")


@pytest.mark.parametrize("degree", [-1, 65, 2.5])
def test_degrees_that_are_not_small_integers_are_refused(degree, data):
    X, y = data
    refused(lambda: MEDClassifier("poly", degree=degree).fit(X, y), "degree")


ESTIMATORS = {
    "classifier": (
        MEDClassifier,
        {
            "C": POSITIVE_NUMBERS,
            "tol": POSITIVE_NUMBERS,
            "max_iter": [0, -1, 2.5, "a", None, math.nan],
            "bias": ["a", 1j, [1.0], math.nan, 0, -1.0],
            "solver": ["a", None, "newton", "coordinate", np.ones(2)],
            "margin": ["a", None, 3.0, [1], np.ones(2), {}, ExponentialMargin],
            "sharpness": [1.0, 0.5, -1.0, math.nan, math.inf, None],
            "class_weight": ["a", [1.0], {-1: -1.0}, {-1: math.nan}, {1: 0.0}]
            + [{1: "a"}, {1: None}, {1: 1j}, {1: [2.0]}, {1: np.ones(2)}, np.ones(2)]
            + [{5: 1.0}, 3],
        },
    ),
    "regressor": (
        MEDRegressor,
        {
            "C": POSITIVE_NUMBERS,
            "epsilon": ["a", None, 1j, [1.0], math.nan, math.inf, -0.1],
            "margin": ["a", None, "logistic", "fixed", [1], np.ones(2), {}],
            "solver": ["a", None, np.ones(2)],
            "sharpness": [0, -1.0, math.nan, math.inf],
            "bias": ["a", 1j, 0, -1.0],
        },
    ),
    "selector": (
        MEDFeatureSelector,
        {
            "prior_inclusion": POSITIVE_NUMBERS + [1.1],
            "C": POSITIVE_NUMBERS,
            "margin": ["a", None, "fixed", 3.0, np.ones(2), {}],
            "class_weight": ["a", {1: "a"}, {1: None}, {1: math.nan}, np.ones(2)],
            "sharpness": [1.0, -1.0, math.nan],
            "bias": ["a", 1j, 0, -1.0],
            "max_iter": [0, 2.5, "a"],
        },
    ),
}


@pytest.mark.parametrize(
    ("estimator", "name", "value"),
    [
        pytest.param(cls, *case.values, id=f"{key}-{case.id}")
        for key, (cls, table) in ESTIMATORS.items()
        for case in cases(table)
    ],
)
def test_bad_parameters_of_the_estimators_are_named(estimator, name, value, data):
    X, y = data
    refused(lambda: estimator(**{name: value}).fit(X, y), name)


@pytest.mark.parametrize("value", ["a", 1j])
@pytest.mark.parametrize("estimator", [MEDClassifier, MEDRegressor, MEDFeatureSelector])
def test_sharpness_of_the_wrong_kind_is_named(estimator, value, data):
    X, y = data
    refused(lambda: estimator(sharpness=value).fit(X, y), "sharpness")


@pytest.mark.parametrize("estimator", [MEDClassifier, MEDRegressor, MEDFeatureSelector])
def test_bad_sample_weights_are_named(estimator, data):
    X, y = data
    for weight in (COMMON["sample_weight"])[1:5]:
        refused(
            lambda w=weight: estimator().fit(X, y, sample_weight=w), "sample_weight"
        )


def test_bad_parameters_are_found_before_any_kernel_value_is_computed(data):
    X, y = data
    calls = []

    def kernel(A, B):
        calls.append(len(A))
        return A @ B.T

    bad = {"C": -1, "tol": 0, "bias": -1.0, "margin": "x", "sharpness": 1, "gamma": -1}
    for name, value in bad.items():
        model = MEDClassifier(kernel, **{name: value})
        refused(lambda m=model: m.fit(X, y), name)
    with pytest.raises(ValueError, match="one class"):
        MEDClassifier(kernel).fit(X, np.ones(24))
    with pytest.raises(ValueError, match="sample_weight"):
        MEDClassifier(kernel).fit(X, y, sample_weight=-np.ones(24))
    assert calls == []


@pytest.mark.parametrize("C", [3.0, [1.0, 0.0], [math.nan], [[1.0]], [math.inf]])
def test_bad_paths_are_named(C, data):
    X, y = data
    with pytest.raises(ValueError, match=r"C=.*> 0"):
        dual_path(X @ X.T, y, PRIOR, C)


# ------------------------------------------------------------- prediction


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
def test_bad_rows_at_prediction_are_refused(kernel, data):
    X, y = data
    rows = X @ X.T if kernel == "precomputed" else X
    model = MEDClassifier(kernel).fit(rows, y)
    hole = rows.copy()
    hole[0, 0] = math.nan
    for bad, message in (
        (rows[:, :2], "features"),
        (np.hstack([rows, rows]), "features"),
        (rows[0], "2D"),
        (rows[:0], "0 sample"),
        (hole, "NaN"),
        (rows.astype(complex), "Complex"),
    ):
        for ask in (model.predict, model.decision_function):
            with pytest.raises(ValueError, match=message):
                ask(bad)


@pytest.mark.parametrize("size", [1e100, 1e200, 1e307])
def test_rows_far_away_get_the_bias(size, data):
    X, y = data
    model = MEDClassifier().fit(X, y)
    far = model.decision_function(size * np.ones((1, 3)))
    assert far == pytest.approx(model.intercept_[0], abs=1e-12)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dual_coef_", lambda a: a[:, :1]),
        ("dual_coef_", lambda a: a[0]),
        ("intercept_", lambda a: np.zeros(3)),
        ("classes_", lambda a: np.arange(5)),
        ("support_vectors_", lambda a: a[:, :1]),
        ("support_vectors_", lambda a: a[:2]),
        ("n_features_in_", lambda a: a - 1),
    ],
)
def test_inconsistent_fitted_state_is_refused(name, value, data):
    X, y = data
    model = MEDClassifier().fit(X, y)
    setattr(model, name, value(getattr(model, name)))
    with pytest.raises(ValueError, match=r"inconsistent|features"):
        model.predict(X)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dual_coef_", lambda a: a * np.nan),
        ("dual_coef_", lambda a: a.astype(complex)),
        ("dual_coef_", lambda a: a.tolist()),
        ("intercept_", lambda a: a * np.nan),
        ("intercept_", lambda a: None),
        ("support_vectors_", lambda a: a * np.nan),
        ("support_", lambda a: -a - 1),
        ("classes_", lambda a: a[:1]),
        ("gamma_", lambda a: math.nan),
    ],
)
def test_nonsense_in_fitted_state_is_refused(name, value, data):
    X, y = data
    rows = X @ X.T if name == "support_" else X
    model = MEDClassifier("precomputed" if name == "support_" else "rbf").fit(rows, y)
    setattr(model, name, value(getattr(model, name)))
    refused(lambda: model.predict(rows), name)


@pytest.mark.parametrize("name", ["dual_coef_", "intercept_", "coef_"])
@pytest.mark.parametrize("spoil", [lambda a: a * np.nan, lambda a: a.astype(int), list])
def test_nonsense_in_linear_machines_is_refused(name, spoil, data):
    X, y = data
    model = MEDRegressor("linear").fit(X, y)
    model.predict(X)
    setattr(model, name, spoil(getattr(model, name)))
    refused(lambda: model.predict(X), name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("coef_", np.full((1, 3), np.nan)),
        ("intercept_", None),
        ("classes_", np.array([1])),
        ("inclusion_proba_", np.full(3, np.nan)),
    ],
)
def test_nonsense_in_selectors_is_refused(name, value, data):
    X, y = data
    model = MEDFeatureSelector().fit(X, y)
    setattr(model, name, value)
    selects = name == "inclusion_proba_"
    refused(lambda: model.get_support() if selects else model.predict(X), name)


@pytest.mark.parametrize("index", [-1, 3, 2**30])
def test_sparse_support_that_points_outside_is_refused(index, data):
    X, y = data
    model = MEDClassifier(gamma=0.3).fit(sp.csr_array(X), y)
    model.predict(X)
    rows = model.support_vectors_.copy()
    rows.indices[4] = index
    model.support_vectors_ = rows
    refused(lambda: model.predict(X), "support_vectors_")


def test_sparse_support_with_holes_is_refused(data):
    X, y = data
    model = MEDClassifier(gamma=0.3).fit(sp.csr_array(X), y)
    model.support_vectors_ = model.support_vectors_ * math.nan
    refused(lambda: model.predict(X), "support_vectors_")


@pytest.mark.parametrize(
    ("name", "value"),
    [("degree", "3"), ("coef0", math.nan), ("kernel", "rbf2"), ("n_jobs", "all")],
)
def test_bad_parameters_of_fitted_models_are_refused(name, value, data):
    X, y = data
    model = MEDClassifier("poly").fit(X, y)
    model.set_params(**{name: value})
    refused(lambda: model.predict(X), name)


def test_booleans_are_not_numbers(data):
    X, y = data
    names = ("C", "tol", "bias", "gamma", "degree", "coef0", "sharpness", "n_jobs")
    for name in names:
        refused(lambda n=name: MEDClassifier(**{n: True}).fit(X, y), name)
    refused(lambda: MEDRegressor(epsilon=True).fit(X, y), "epsilon")
    refused(lambda: MEDFeatureSelector(threshold=True).fit(X, y), "threshold")
    refused(lambda: solve_dual(X @ X.T, y, PRIOR, bias=True), "bias")


@pytest.mark.parametrize(
    ("name", "value"),
    [("margin", "exponential"), ("margin", ExponentialMargin), ("y", 1)]
    + [("C", "a"), ("C", [1j]), ("C", [None]), ("callback", 3), ("solver", "newton")]
    + [("solver", np.ones(2)), ("margin", np.ones(2)), ("bias", "a"), ("tol", 0)]
    + [("max_iter", 0), ("init", "a"), ("init", -np.ones(24)), ("sample_weight", "a")]
    + [("sample_weight", -np.ones(24)), ("sample_weight", np.ones(3))],
)
def test_bad_arguments_of_paths_are_named(name, value, data):
    X, y = data
    given = {"y": y, "margin": PRIOR, "C": [1.0], name: value}
    refused(lambda: dual_path(X @ X.T, **given), rf"\b{name}\b")
