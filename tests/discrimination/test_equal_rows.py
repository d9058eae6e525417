"""Equal rows: the same problem as one row with the sum of their weights."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from maxent import MEDClassifier, MEDRegressor
from maxent.discrimination import ExponentialMargin
from maxent.discrimination._equal_rows import EqualRows, distinct
from maxent.discrimination.duals._signed_problem import binary_problem


def copies(rng, n=1200, kinds=40, m=2):
    """Rows of a few kinds, labels that do not follow from them, and weights."""
    base = rng.normal(size=(kinds, 3))
    kind = np.r_[np.arange(kinds), rng.integers(kinds, size=n - kinds)]
    y = (kind % m + (rng.random(n) < 0.3)) % m
    return base[kind], kind, y, rng.choice([0.5, 1.0, 2.0], size=n)


def merged(X, y, weight):
    """Distinct rows, labels, weights, and the place of every row, by a dict."""
    seen, place = {}, []
    for row, label in zip(X, y, strict=True):
        place.append(seen.setdefault((*row, label), len(seen)))
    first = [place.index(k) for k in range(len(seen))]
    return X[first], y[first], np.bincount(place, weight), np.array(place)


def multipliers(model, n):
    lam = np.zeros(n)
    lam[model.support_] = np.abs(model.dual_coef_[0])
    return lam


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("margin", ["exponential", "hinge", "logistic", "gaussian"])
def test_two_classes_are_those_of_the_weighted_rows(kernel, margin, rng):
    X, _, y, weight = copies(rng)
    options = {"margin": margin, "gamma": 0.5, "tol": 1e-8}
    whole = MEDClassifier(kernel, **options).fit(X, y, weight)
    Z, z, w, place = merged(X, y, weight)
    assert len(Z) < 100
    few = MEDClassifier(kernel, **options).fit(Z, z, w)
    assert whole.converged_ and few.converged_
    assert whole.objective_ == pytest.approx(few.objective_, rel=1e-7)
    np.testing.assert_allclose(
        whole.decision_function(Z), few.decision_function(Z), atol=1e-3
    )
    # each copy has its share, none is left out
    lam, totals = multipliers(whole, len(X)), multipliers(few, len(Z))
    np.testing.assert_allclose(np.bincount(place, lam), totals, atol=1e-2)
    share = np.bincount(place, lam)[place] * weight / w[place]
    np.testing.assert_allclose(lam, share, rtol=1e-9)


def test_the_objective_is_that_of_all_rows(rng):
    X, _, y, weight = copies(rng)
    C, rate = 2.0, 10.0
    model = MEDClassifier(C=C, gamma=0.5, bias=1.0, tol=1e-9).fit(X, y, weight)
    a = np.zeros(len(X))
    a[model.support_] = model.dual_coef_[0]
    assert (a * np.where(y == 1, 1, -1) >= 0).all()
    w = weight * C / rate
    lam = np.abs(a)
    J = np.sum(lam + w * np.log1p(-lam / (w * rate)))
    J -= 0.5 * a @ (rbf_kernel(X, gamma=0.5) + 1.0) @ a
    assert model.objective_ == pytest.approx(J, rel=1e-8)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_pairs_of_classes_are_those_of_the_weighted_rows(kernel, rng):
    X, _, y, weight = copies(rng, m=3)
    options = {"gamma": 0.5, "tol": 1e-8, "multi_class": "ovo"}
    whole = MEDClassifier(kernel, **options).fit(X, y, weight)
    Z, z, w, _ = merged(X, y, weight)
    few = MEDClassifier(kernel, **options).fit(Z, z, w)
    assert whole.objective_ == pytest.approx(few.objective_, rel=1e-6)
    np.testing.assert_allclose(
        whole.decision_function(Z), few.decision_function(Z), atol=1e-2
    )
    assert whole.n_support_.sum() == len(whole.support_)
    counts = np.bincount(y[whole.support_], minlength=3)
    np.testing.assert_array_equal(whole.n_support_, counts)


@pytest.mark.parametrize("margin", ["exponential", "hinge", "gaussian"])
def test_regressions_on_marks_are_those_of_the_weighted_rows(margin, rng):
    X, _, _, weight = copies(rng)
    y = np.round(3.0 * X[:, 0] + rng.normal(size=len(X)))
    options = {"margin": margin, "gamma": 0.5, "tol": 1e-8}
    whole = MEDRegressor(**options).fit(X, y, weight)
    Z, z, w, _ = merged(X, y, weight)
    # medians of targets, which shift the bias alone, are of other rows
    few = MEDRegressor(**options).fit(Z, z, w)
    assert whole.objective_ == pytest.approx(few.objective_, rel=1e-6)
    np.testing.assert_allclose(whole.predict(Z), few.predict(Z), atol=2e-3)


def problem_of(y):
    return binary_problem(y, ExponentialMargin(5.0), "flat", np.ones(len(y)))


def test_copies_are_found_wherever_they_lie(rng):
    base = rng.normal(size=(2500, 2))
    y = np.ones(5000)
    for X in (np.repeat(base, 2, axis=0), np.tile(base, (2, 1))):
        equal = EqualRows.of(X, problem_of(y))
        assert len(equal.first) == 2500
        np.testing.assert_array_equal(equal.problem.weight, 2.0)
        lam = rng.random(2500)
        np.testing.assert_allclose(equal.gathered(equal.spread(lam)), lam)
    assert EqualRows.of(rng.normal(size=(5000, 2)), problem_of(y)) is None
    few = rng.normal(size=(5000, 2))
    few[:1000] = few[1000:2000]
    assert EqualRows.of(few, problem_of(y)) is None


def test_rows_that_differ_in_anything_stay_apart(rng):
    X = np.repeat(rng.normal(size=(600, 2)), 2, axis=0)
    y = np.tile([1.0, -1.0], 600)
    assert EqualRows.of(X, problem_of(y)) is None
    first, place = distinct(np.array([[1, 2], [0, 5], [1, 2], [0, 4], [0, 5]]))
    assert first.tolist() == [0, 1, 3] and place.tolist() == [0, 1, 0, 2, 1]


def test_bits_are_the_same_for_any_number_of_threads(rng):
    X, _, y, _ = copies(rng)
    one, two = (MEDClassifier(n_jobs=k).fit(X, y) for k in (1, 2))
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
