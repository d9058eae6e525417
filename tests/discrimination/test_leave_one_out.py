"""The leave-one-out bound: what it is a bound of, and where it is not given."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_sample_weight

from maxent import MEDClassifier, MEDFeatureSelector

# An outlying row decides gamma="scale": without it the others have another kernel.
OUTLYING = np.array(
    [
        15.613784186918453,
        -0.5693311750340765,
        -0.8425794215644518,
        -1.234534875998037,
        0.10556756740335409,
        -1.2285194098776702,
    ]
)[:, None]
OUTLYING_LABELS = np.array([1, -1, 1, -1, 1, 1])


class NotConverged(Exception):
    """A fit ended in rounding, and the bound is about optima."""


def fitted(X, y, weight=None, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MEDClassifier(**parameters).fit(X, y, weight)
    if not model.converged_:
        raise NotConverged
    return model


def left_out(X, y, weight=None, **parameters):
    """Rows that the machine trained on the others gets wrong."""
    wrong = []
    for t in range(len(y)):
        rest = np.delete(np.arange(len(y)), t)
        part = None if weight is None else weight[rest]
        model = fitted(X[rest], y[rest], part, **parameters)
        if model.predict(X[[t]])[0] != y[t]:
            wrong.append(t)
    return wrong


def assert_bound_holds(X, y, parameters):
    """For refits with the kernel and the weights of the whole data."""
    model = fitted(X, y, tol=1e-9, **parameters)
    fixed = {**parameters, "gamma": model.gamma_, "tol": 1e-9}
    weight = compute_sample_weight(fixed.pop("class_weight", None), y)
    wrong = left_out(X, y, weight, **fixed)
    if math.isfinite(model.loo_bound_):
        assert model.loo_bound_ == len(model.support_) / len(y)
        assert len(wrong) / len(y) <= model.loo_bound_
        assert set(wrong) <= set(model.support_)
    return model


def test_bound_holds_with_gamma_fixed_where_the_outlying_row_decides_gamma():
    model = assert_bound_holds(OUTLYING, OUTLYING_LABELS, {"C": 200.745})
    assert model.loo_bound_ == 5 / 6


def test_bound_is_not_one_of_machines_that_choose_gamma_anew():
    """The counter-example for gamma="scale" computed without the row left out."""
    parameters = {"C": 200.745, "tol": 1e-8}
    model = MEDClassifier(**parameters).fit(OUTLYING, OUTLYING_LABELS)
    wrong = left_out(OUTLYING, OUTLYING_LABELS, **parameters)
    assert len(wrong) / 6 == 1.0 > model.loo_bound_


@settings(max_examples=25)
@given(
    draw=st.integers(0, 2**32 - 1),
    classes=st.sampled_from([2, 2, 3]),
    kernel=st.sampled_from(["rbf", "linear"]),
    margin=st.sampled_from(["exponential", "laplace", "erlang", "gaussian", "hinge"]),
    bias=st.sampled_from(["flat", 1.0, None]),
    class_weight=st.sampled_from([None, "balanced"]),
    log_C=st.floats(-1.5, 2.5),
)
def test_bound_holds_for_refits_with_kernel_and_weights_fixed(
    draw, classes, kernel, margin, bias, class_weight, log_C
):
    rng = np.random.default_rng(draw)
    n = int(rng.integers(2 * classes, 10))
    # heavy tails, so that single rows decide gamma
    X = rng.standard_t(2, size=(n, int(rng.integers(1, 3))))
    y = rng.permutation(np.arange(n) % classes)
    assume(len(np.unique(X)) > 1)
    parameters = {"kernel": kernel, "C": 10.0**log_C, "margin": margin, "bias": bias}
    try:
        assert_bound_holds(X, y, {**parameters, "class_weight": class_weight})
    except NotConverged:
        assume(False)


def test_no_bound_is_given_where_multipliers_do_not_settle_the_bias():
    """All support vectors of the hinge at C: an interval of biases is optimal.

    Without its second row, which has no multiplier, the interval grows, the bias
    moves, and the row is wrong.
    """
    rng = np.random.default_rng(119)
    n = int(rng.integers(4, 8))
    X = rng.normal(size=(n, 1)) * 3 + rng.normal() * 4
    y = np.where(rng.random(n) < 0.5, 1, -1)
    y[:2] = 1, -1
    parameters = {"C": 10 ** rng.uniform(-3, 0), "kernel": "linear", "margin": "hinge"}
    parameters |= {"tol": 1e-9, "solver": "smo"}
    model = MEDClassifier(**parameters).fit(X, y)
    assert 1 not in model.support_
    assert left_out(X, y, **parameters) == [0, 1, 2, 3, 4]
    assert math.isnan(model.loo_bound_)


def test_bound_of_the_hinge_is_given_where_a_multiplier_is_free(rng):
    for _ in range(10):
        X = np.array([[-2.0], [-1.0], [1.0], [2.0]]) + 0.1 * rng.normal(size=(4, 1))
        model = MEDClassifier("linear", C=100.0, margin="hinge", tol=1e-9)
        assert model.fit(X, [0, 0, 1, 1]).loo_bound_ == 0.5


def test_rows_beyond_the_margin_of_a_hard_hinge_have_no_multiplier(rng):
    """Rounding of a zero shortfall costs C times as much: no reason for tiny ones."""
    for _ in range(10):
        X = np.array([[-2.0], [-1.0], [1.0], [2.0]]) + 0.1 * rng.normal(size=(4, 1))
        model = MEDClassifier("linear", C=1e6, margin="hinge").fit(X, [0, 0, 1, 1])
        np.testing.assert_array_equal(model.support_, [1, 2])


def test_no_bound_is_given_for_a_fit_that_stopped_early(rng):
    X = rng.normal(size=(120, 4))
    y = X[:, 0] + rng.normal(size=120) > 0
    model = MEDClassifier(C=100.0, solver="smo", tol=1e-6, max_iter=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert not model.converged_
    assert math.isnan(model.loo_bound_)


def test_rows_of_weight_zero_do_not_count(rng):
    X = rng.normal(size=(30, 2))
    y = X[:, 0] + 0.5 * rng.normal(size=30) > 0
    w = (np.arange(30) % 3 > 0).astype(float)
    model = MEDClassifier(gamma=0.5).fit(X, y, w)
    assert model.loo_bound_ == len(model.support_) / 20


@pytest.mark.parametrize("margin", ["exponential", "erlang", "laplace", "gaussian"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("classes", [2, 3])
def test_leave_one_out_errors_stay_below_the_bound(margin, kernel, classes, rng):
    n = 12
    X = rng.normal(size=(n, 2)) * rng.uniform(0.5, 3)
    y = rng.integers(0, classes, n)
    y[: 2 * classes] = np.tile(np.arange(classes), 2)
    bias = ["flat", 0.7, None][int(rng.integers(3))]

    def fit(rows):
        return MEDClassifier(
            kernel, C=5.0, margin=margin, gamma=0.5, bias=bias, tol=1e-10
        ).fit(X[rows], y[rows])

    model = fit(np.arange(n))
    wrong = []
    for t in range(n):
        rest = np.delete(np.arange(n), t)
        if fit(rest).predict(X[[t]])[0] != y[t]:
            wrong.append(t)
    assert len(wrong) / n <= model.loo_bound_
    assert set(wrong) <= set(model.support_)
    assert model.loo_bound_ == len(model.support_) / n


def test_leave_one_out_bound_of_the_selector(rng):
    X = rng.normal(size=(12, 3))
    y = X[:, 0] + 0.5 * rng.normal(size=12) > 0
    y[:4] = [True, False, True, False]
    model = MEDFeatureSelector(0.2, C=5.0, tol=1e-10).fit(X, y)
    wrong = 0
    for t in range(12):
        rest = np.delete(np.arange(12), t)
        part = MEDFeatureSelector(0.2, C=5.0, tol=1e-10).fit(X[rest], y[rest])
        wrong += part.predict(X[[t]])[0] != y[t]
    assert wrong / 12 <= model.loo_bound_


def test_no_bound_is_given_where_none_holds(rng):
    X = rng.normal(size=(50, 3))
    y = np.where(X[:, 0] + 0.8 * rng.normal(size=50) > 0, 1, -1)
    assert math.isnan(MEDClassifier(margin="logistic").fit(X, y).loo_bound_)
    assert math.isnan(MEDFeatureSelector(margin="logistic").fit(X, y).loo_bound_)
