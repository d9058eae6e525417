"""Generative classifiers: what changes nothing, or only names and units."""

import numpy as np
import pandas as pd
import pytest
from oracles.block_cases import agree
from problems import categories, two_gaussians

from maxent import MEDBayesNetClassifier, MEDGaussianClassifier


@pytest.mark.parametrize("n_classes", [2, 3])
def test_affine_maps_of_the_features_change_no_decision(n_classes, rng):
    X = rng.normal(size=(60, 3))
    y = np.arange(60) % n_classes
    X += 0.8 * np.eye(3)[y]
    A = rng.normal(size=(3, 3)) + 2.0 * np.eye(3)
    one = MEDGaussianClassifier(tol=1e-10).fit(X, y)
    other = MEDGaussianClassifier(tol=1e-10).fit(X @ A.T + 7.0, y)
    agree(other.level_, one.level_, 1e-9)
    found = other.decision_function(X @ A.T + 7.0)
    want = one.decision_function(X)
    if n_classes == 3:  # scores of all classes move together
        found, want = found - found[:, :1], want - want[:, :1]
    agree(found, want, 1e-4)
    agree(other.objective_, one.objective_, 1e-8, 1.0)


@pytest.mark.parametrize("kind", ["gaussian", "net"])
def test_weight_two_is_the_row_twice_and_weight_zero_its_absence(kind, rng):
    X, y = two_gaussians(rng) if kind == "gaussian" else categories(rng)
    cls = MEDGaussianClassifier if kind == "gaussian" else MEDBayesNetClassifier
    w = rng.integers(0, 3, size=len(y)).astype(float)
    twice = np.repeat(np.arange(len(y)), w.astype(int))
    one = cls(C=10.0, percentile=60, tol=1e-11).fit(X, y, sample_weight=w)
    other = cls(C=10.0, percentile=60, tol=1e-11).fit(X[twice], y[twice])
    agree(one.level_, other.level_, 1e-9)
    agree(one.objective_, other.objective_, 1e-8, 1.0)
    agree(one.decision_function(X), other.decision_function(X), 1e-4)
    assert set(one.support_) <= set(np.flatnonzero(w))


def test_the_order_of_rows_and_the_names_of_classes_do_not_matter(rng):
    X, y = two_gaussians(rng)
    order = rng.permutation(len(y))
    one = MEDGaussianClassifier(tol=1e-10).fit(X, y)
    names = np.array(["no", "yes"])
    other = MEDGaussianClassifier(tol=1e-10).fit(X[order], names[y[order]])
    agree(other.decision_function(X), one.decision_function(X), 1e-5)
    assert (other.predict(X) == names[one.predict(X)]).all()
    flipped = MEDGaussianClassifier(tol=1e-10).fit(X, 1 - y)
    agree(flipped.decision_function(X), -one.decision_function(X), 1e-5)


@pytest.mark.parametrize("margin", ["exponential", "hinge", "erlang", "logistic"])
def test_a_third_class_far_away_leaves_the_other_two_alone(margin, rng):
    """Its constraints are met with room: the problem of two classes remains."""
    X, y = two_gaussians(rng)
    far = rng.normal(size=(20, 3)) + 1000.0
    two = MEDGaussianClassifier(margin=margin, level=3.0, tol=1e-10).fit(X, y)
    three = MEDGaussianClassifier(margin=margin, level=3.0, tol=1e-10).fit(
        np.concatenate([X, far]), np.concatenate([y, np.full(20, 2)])
    )
    agree(three.objective_, two.objective_, 1e-7)
    scores = three.decision_function(X)
    agree(scores[:, 1] - scores[:, 0], two.decision_function(X), 1e-4)


def test_columns_by_name_and_categories_as_text(rng):
    X, y = categories(rng)
    text = pd.DataFrame(np.array(["x", "y", "z"])[X], columns=list("abcd"))
    one = MEDBayesNetClassifier(level=2.0).fit(X, y)
    other = MEDBayesNetClassifier(level=2.0).fit(text, y)
    np.testing.assert_array_equal(
        one.decision_function(X), other.decision_function(text)
    )
    assert [list(c) for c in other.categories_] == [["x", "y", "z"]] * 4
    assert other.feature_names_in_.tolist() == list("abcd")


@pytest.mark.parametrize("size", [1e-100, 1e-6, 1e6, 1e100])
def test_features_of_any_scale_give_the_same_classifier(size, rng):
    X, y = two_gaussians(rng)
    one = MEDGaussianClassifier().fit(X, y)
    other = MEDGaussianClassifier().fit(X * size, y)
    agree(other.decision_function(X * size), one.decision_function(X), 1e-3)
