"""class_weight of the generative classifiers: costs of rows, not evidence."""

import warnings

import numpy as np
import pytest
from oracles.block_cases import agree
from oracles.tree_problems import categories
from problems import overlapping
from refusals import refused

from maxent import (
    ChowLiuClassifier,
    MEDBayesNetClassifier,
    MEDClassifier,
    MEDGaussianClassifier,
    MEDTreeClassifier,
)
from maxent.discrimination._class_rows import class_rows


def problem(name, rng):
    """An estimator's class with its options, and rows of a class and a rarer one."""
    if name == "gaussian":
        X, y = overlapping(rng, 160)[:2]
    else:
        X, y = categories(rng, 160)
    keep = (y == 0) | (rng.random(len(y)) < 0.4)
    keep[np.flatnonzero(y == 1)[:8]] = True
    cls, options = {
        "gaussian": (MEDGaussianClassifier, {"prior": "weak", "level": 4.0}),
        "net": (MEDBayesNetClassifier, {"level": 3.0}),
        "trees": (MEDTreeClassifier, {"level": 2.0}),
        "random tables": (MEDTreeClassifier, {"parameters": "dirichlet", "level": 3.0}),
        "chow liu": (ChowLiuClassifier, {}),
    }[name]
    return cls, options, X[keep], y[keep]


MED = ["gaussian", "net", "trees", "random tables"]


def decisions(model, X):
    if isinstance(model, ChowLiuClassifier):
        log_proba = model.predict_log_proba(X)
        return log_proba[:, 1] - log_proba[:, 0]
    return model.decision_function(X)


@pytest.mark.parametrize("name", [*MED, "chow liu"])
def test_balanced_weights_are_those_of_scikit_learn(name, rng):
    cls, options, X, y = problem(name, rng)
    w = rng.integers(1, 3, size=len(y)).astype(float)
    share = {k: w.sum() / (2.0 * w[y == k].sum()) for k in (0, 1)}
    one = cls(class_weight="balanced", **options).fit(X, y, sample_weight=w)
    other = cls(class_weight=share, **options).fit(X, y, sample_weight=w)
    plain = cls(**options).fit(X, y, sample_weight=w)
    agree(decisions(one, X), decisions(other, X), 1e-6, 1.0)
    assert np.abs(decisions(one, X) - decisions(plain, X)).max() > 1e-4
    unit = cls(class_weight={0: 1.0, 1: 1.0}, **options).fit(X, y, sample_weight=w)
    np.testing.assert_array_equal(decisions(unit, X), decisions(plain, X))


@pytest.mark.parametrize("name", MED)
def test_the_weight_of_every_class_scales_the_cap_of_the_hinge(name, rng):
    cls, options, X, y = problem(name, rng)
    options = {**options, "margin": "hinge", "tol": 1e-10}
    one = cls(C=0.5, class_weight={0: 4.0, 1: 4.0}, **options).fit(X, y)
    other = cls(C=2.0, **options).fit(X, y)
    agree(one.objective_, other.objective_, 1e-8, 1.0)
    agree(one.decision_function(X), other.decision_function(X), 1e-4, 1.0)
    uneven = cls(C=0.5, class_weight={0: 4.0}, **options).fit(X, y)
    caps = np.where(y[uneven.support_] == 0, 2.0, 0.5)
    assert (np.abs(uneven.dual_coef_[0]) <= caps * (1 + 1e-12)).all()
    assert np.abs(uneven.dual_coef_[0]).max() > 0


@pytest.mark.parametrize("name", [*MED, "chow liu"])
def test_a_heavier_class_gets_more_of_the_rows(name, rng):
    cls, options, X, y = problem(name, rng)
    found = [
        (cls(class_weight={1: w}, **options).fit(X, y).predict(X) == 1).sum()
        for w in (1e-2, 1.0, 1e2)
    ]
    assert found[0] <= found[1] <= found[2] and found[0] < found[2]


@pytest.mark.parametrize("prior", ["empirical", "uniform", [0.7, 0.3]])
def test_class_weights_multiply_the_class_probabilities(prior, rng):
    cls, _, X, y = problem("chow liu", rng)
    plain = cls(class_prior=prior).fit(X, y).class_log_prior_
    heavy = cls(class_prior=prior, class_weight={1: 3.0}).fit(X, y)
    want = np.exp(plain) * [1.0, 3.0]
    agree(np.exp(heavy.class_log_prior_), want / want.sum(), 1e-13)
    np.testing.assert_array_equal(heavy.trees_, cls().fit(X, y).trees_)


@pytest.mark.parametrize("name", [*MED, "chow liu"])
@pytest.mark.parametrize("wrong", ["even", 3.0, {0: -1.0}, {1: np.nan}, [1.0, 2.0]])
def test_wrong_class_weights_are_named(name, wrong, rng):
    cls, options, X, y = problem(name, rng)
    refused(lambda: cls(class_weight=wrong, **options).fit(X, y), r"\bclass_weight\b")


def test_balanced_weights_leave_out_classes_without_weight(rng):
    X, y = rng.normal(size=(60, 3)), np.repeat([0, 1, 2], [10, 20, 30])
    sample = np.where(y == 2, 0.0, rng.uniform(0.5, 2.0, 60))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classes, keep, _, _, weight = class_rows("model", y, sample, "balanced")
        part = class_rows("model", y[:30], sample[:30], "balanced")[4]
    assert classes.tolist() == [0, 1] and keep.tolist() == list(range(30))
    np.testing.assert_array_equal(weight, part)
    assert np.isclose(weight[:10].sum(), weight[10:].sum())
    with_all = MEDClassifier(class_weight="balanced", gamma=0.5)
    alone = MEDClassifier(class_weight="balanced", gamma=0.5)
    with_all.fit(X, y, sample_weight=sample)
    alone.fit(X[:30], y[:30], sample_weight=sample[:30])
    np.testing.assert_allclose(
        with_all.decision_function(X), alone.decision_function(X), rtol=1e-12
    )
