"""MaxEntClassifier: scikit-learn's checks, LogisticRegression at the same C."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from maxent import RowBlocks
from maxent.latent import MaxEntClassifier, fit_maxent
from maxent.latent._softmax import _line_search


def rows(rng, classes, n=120, d=6):
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    y = (X @ rng.normal(size=(d, classes)) + rng.normal(size=(n, classes))).argmax(1)
    y[:classes] = np.arange(classes)
    return X, y


def test_steps_that_overshoot_are_halved():
    class Root:
        """sqrt(1 + x^2), whose Newton step from x goes to -x^3."""

        def value_gradient(self, x):
            value = np.sqrt(1.0 + x @ x)
            return value, x / value

    start = np.array([2.0])
    value, g = Root().value_gradient(start)
    found = _line_search(Root(), start, np.array([-10.0]), value, g, 1.0)
    x, lower, slope = found
    assert x == pytest.approx(2.0 - 10.0 / 4.0)
    assert lower < value and slope == pytest.approx(x / lower)
    # uphill no step is taken, and none that moves nothing
    assert _line_search(Root(), start, np.array([1.0]), value, g, 1.0) is None
    assert _line_search(Root(), start, np.array([-1e-17]), value, g, 1.0) is None


def test_steps_are_taken_whose_gain_is_below_the_rounding_of_values():
    class Rounded:
        """x^2 / 2, whose values are rounded up but for that of the start."""

        def value_gradient(self, x):
            return 0.5 * x @ x + (x[0] != 1e-6) * 1e-12, x

    start = np.array([1e-6])
    value, g = Rounded().value_gradient(start)
    x, _, slope = _line_search(Rounded(), start, -0.999 * start, value, g, 1.0)
    assert x == pytest.approx(1e-9) and (slope == x).all()
    # a step that ends higher up is none
    assert _line_search(Rounded(), start, -1e6 * start, value, g, 1.0)[0] <= 1e-6


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_logistic_regression(classes, C, weighted, rng):
    X, y = rows(rng, classes)
    w = rng.gamma(1.0, size=len(y)) if weighted else None
    peer = LogisticRegression(C=C, tol=1e-10, max_iter=10_000, solver="newton-cholesky")
    peer.fit(X, y, sample_weight=w)
    for data in (X, sp.csr_matrix(X)):
        model = MaxEntClassifier(C=C, tol=1e-10).fit(data, y, sample_weight=w)
        assert model.converged_ and model.residual_ <= 1e-10
        np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-6)
        np.testing.assert_allclose(
            model.predict_proba(X), peer.predict_proba(X), atol=1e-6
        )
        assert np.diff(model.objective_history_).max() <= 1e-12


def test_no_intercept_and_class_weights(rng):
    X, y = rows(rng, 3)
    options = {"fit_intercept": False, "class_weight": "balanced", "tol": 1e-10}
    model = MaxEntClassifier(**options).fit(sp.csr_matrix(X), y)
    counts = np.bincount(y)
    w = (len(y) / (3 * counts))[y]
    # the penalty's scale is C sum w, and balanced weights add up to n
    same = MaxEntClassifier(fit_intercept=False, tol=1e-10).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-8)
    assert not model.intercept_.any()


def test_dual_is_that_of_conditional_maximum_entropy(rng):
    # one context only: conditional maximum entropy is maximum entropy
    y = np.array([0] * 5 + [1] * 3 + [2] * 2)
    X = np.ones((10, 1))
    model = MaxEntClassifier(C=0.7, fit_intercept=False, tol=1e-11).fit(X, y)
    exact = fit_maxent(np.eye(3), np.bincount(y) / 10, sigma2=7.0, tol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X[:1])[0], exact.prob, atol=1e-9)
    assert model.objective_ == pytest.approx(exact.objective, abs=1e-9)


@pytest.mark.parametrize(
    "change, words",
    [({"C": 0}, "C=0"), ({"tol": -1}, "tol=-1"), ({"max_iter": 0}, "max_iter=0")],
)
def test_bad_parameters_are_named(change, words, rng):
    with pytest.raises(ValueError, match=words):
        MaxEntClassifier(**change).fit(*rows(rng, 2))


def test_one_class_is_refused(rng):
    with pytest.raises(ValueError, match="one class only"):
        MaxEntClassifier().fit(rng.normal(size=(5, 2)), np.zeros(5))


def test_a_bound_on_the_steps_is_said(rng):
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = MaxEntClassifier(max_iter=1).fit(*rows(rng, 3))
    assert not model.converged_


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_likelihood_without_a_maximum_is_said(classes, sparse, rng):
    X, y = rows(rng, classes)
    made = sp.csr_matrix if sparse else np.asarray
    assert MaxEntClassifier(np.inf).fit(made(X), y).converged_  # rows overlap
    whole = np.column_stack([X, 10.0 * np.eye(classes)[y]])
    # the rows with this indicator are of one class, and the others overlap
    part = np.column_stack([X, (rng.random(len(y)) < 0.3) & (y == 0)])
    for data in (whole, part):
        with pytest.warns(ConvergenceWarning, match="no maximum.*Give a finite C"):
            model = MaxEntClassifier(np.inf).fit(made(data), y)
        assert not model.converged_
        assert MaxEntClassifier(100.0).fit(made(data), y).converged_


FAR = {
    "small": (1e-8, 0.0),
    "large": (1e8, 0.0),
    "far": (1.0, 1e8),
    "mixed": (10.0 ** np.arange(-9, 9, 3), np.array([0.1, 0.0, -1e5, 1e8, 0.0, 1.0])),
}


@pytest.mark.parametrize("units", FAR)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, "blocks"])
def test_units_and_origins_change_weights_alone(make, classes, units, rng, tmp_path):
    unit, origin = (np.broadcast_to(part, 6) for part in FAR[units])
    X, y = rows(rng, classes)
    w = rng.gamma(1.0, size=len(y))
    plain = MaxEntClassifier(np.inf, tol=1e-8).fit(X, y, sample_weight=w)
    moved = origin + unit * X
    if make == "blocks":
        np.save(tmp_path / "X.npy", moved)
        data = RowBlocks(tmp_path / "X.npy", 50)
    else:
        data = make(moved)
    model = MaxEntClassifier(np.inf, tol=1e-8).fit(data, y, sample_weight=w)
    assert plain.converged_ and model.converged_
    # entries at 1e8 are rounded to 1e-8, and so are scores of their rows
    assert model.objective_ == pytest.approx(plain.objective_, abs=1e-7)
    np.testing.assert_allclose(model.coef_ * unit, plain.coef_, atol=1e-5)
    p = model.predict_proba(moved)
    np.testing.assert_allclose(p, plain.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("origin", [0.0, 1e4, 1e8])
def test_convergence_without_intercept_is_no_empty_claim(origin, rng):
    X, y = rows(rng, 2)
    X = X + origin
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MaxEntClassifier(np.inf, fit_intercept=False).fit(X, y)
    if not model.converged_:
        assert origin == 1e8
        return
    # the same functions of the rows, with one column that holds the origin
    basis = np.linalg.qr(np.column_stack([np.ones(6), np.eye(6)[:, 1:]]))[0]
    best = MaxEntClassifier(np.inf, fit_intercept=False).fit(X @ basis, y)
    assert model.objective_ == pytest.approx(best.objective_, abs=1e-7)


def test_a_row_far_out_leaves_the_others_their_digits(rng):
    X, y = rows(rng, 2)
    X[0, 0] = 1e6
    for origin in (0.0, 1e4):
        model = MaxEntClassifier(np.inf).fit(X + origin, y)
        exact = MaxEntClassifier(np.inf, tol=1e-10).fit(X, y)
        assert model.objective_ == pytest.approx(exact.objective_, abs=1e-10)


def test_weights_of_several_classes_add_up_to_zero(rng):
    X, y = rows(rng, 4)
    for C in (1.0, np.inf):
        model = MaxEntClassifier(C).fit(X + 5.0, y)
        np.testing.assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(model.intercept_.sum(), 0.0, atol=1e-10)
