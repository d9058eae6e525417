"""Probabilities of classes: Bayes' rule, the logistic prior, and where none exist."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import predictive as oracle
from oracles.block_cases import agree
from problems import categories, two_gaussians
from refusals import refused
from scipy.special import logsumexp

from maxent import (
    ChowLiuClassifier,
    MEDBayesNetClassifier,
    MEDClassifier,
    MEDFeatureSelector,
    MEDGaussianClassifier,
    MEDPartialLabelClassifier,
    MEDTreeClassifier,
)
from maxent.discrimination import ExponentialMargin, LogisticMargin
from maxent.discrimination._probabilities import log_probabilities, probabilities

PREDICTIVE = {"likelihood": "predictive", "level": 2.0, "tol": 1e-10}


def bayes_rule(densities, y):
    """Logarithms of class probabilities from densities (n, m) and shares of labels."""
    joint = densities + np.log(np.bincount(y) / len(y))
    return joint - logsumexp(joint, axis=1, keepdims=True)


def obeys_bayes_rule(model, X, y, new, densities, rtol):
    want = bayes_rule(np.column_stack(densities), y)
    agree(model.predict_log_proba(new), want, rtol)
    agree(model.predict_proba(new), np.exp(want), rtol)
    assert (model.predict(new) == model.classes_[want.argmax(axis=1)]).all()


# ---------------------------------------------------------- Bayes' rule, by its oracles


def unequal_classes(rng, n, d, m=2):
    """Gaussian classes 0 .. m - 1 of sizes in the ratios 2 : 3 : 4."""
    y = np.sort(np.repeat(np.arange(m), 2 + np.arange(m)).tolist() * n)
    X = rng.normal(size=(len(y), d)) * (1.0 + 0.4 * y[:, None]) + 0.9 * y[:, None]
    return X, y


@pytest.mark.parametrize("m", [2, 3])
def test_gaussian_densities_are_integrals_over_mean_and_variance(m, rng):
    X, y = unequal_classes(rng, 6, 1, m)
    model = MEDGaussianClassifier(C=0.5, **PREDICTIVE).fit(X, y)
    assert model.support_.size
    new = np.linspace(-3.0, 4.0, 7)
    weights = oracle.class_weights(model, y)
    densities = [oracle.gaussian_by_grid(X[:, 0], w, new) for w in weights]
    # the grid ends where a Student density of some 12 degrees has lost nine digits
    obeys_bayes_rule(model, X, y, new[:, None], densities, 1e-7)


@pytest.mark.parametrize("margin", ["exponential", "gaussian", "logistic"])
@pytest.mark.parametrize("m", [2, 3])
def test_gaussian_densities_are_student(m, margin, rng):
    X, y = unequal_classes(rng, 8, 3, m)
    model = MEDGaussianClassifier(C=0.5, margin=margin, **PREDICTIVE).fit(X, y)
    weights = oracle.class_weights(model, y)
    densities = [oracle.gaussian_by_student(X, w, X) for w in weights]
    obeys_bayes_rule(model, X, y, X, densities, 1e-9)


@pytest.mark.parametrize("parents", [None, [(), (0,), (0, 1), (2,)]])
def test_net_densities_are_ratios_of_counts(parents, rng):
    X, y = categories(rng)
    keep = (y == 1) | (rng.random(60) < 0.6)
    X, y = X[keep], y[keep]
    model = MEDBayesNetClassifier(parents, ess=2.0, **PREDICTIVE).fit(X, y)
    codes = np.column_stack(
        [np.searchsorted(c, X[:, k]) for k, c in enumerate(model.categories_)]
    )
    sizes = [len(c) for c in model.categories_]
    given = [()] * 4 if parents is None else parents
    densities = [
        oracle.net_by_counting(codes, w, codes, sizes, given, 2.0)
        for w in oracle.class_weights(model, y)
    ]
    obeys_bayes_rule(model, X, y, X, densities, 1e-9)


@pytest.mark.parametrize("parameters", ["fixed", "dirichlet"])
def test_tree_densities_are_averages_over_all_trees(parameters, rng):
    X, y = categories(rng)
    X = np.minimum(X, 1)
    X[:2], X[2:4] = 0, 1
    keep = (y == 1) | (np.arange(60) < 36)
    X, y = X[keep], y[keep]
    model = MEDTreeClassifier(parameters, C=1.0, ess=2.0, **PREDICTIVE).fit(X, y)
    assert model.support_.size
    new, sizes = X[::5], [2] * 4
    if parameters == "fixed":
        densities = [
            oracle.fixed_trees(X, y == k, edges, new, sizes, 2.0)
            for k, edges in enumerate(model.edge_log_weights_)
        ]
    else:
        densities = [
            oracle.dirichlet_trees(X, w, new, sizes, 2.0)
            for w in oracle.class_weights(model, y)
        ]
    obeys_bayes_rule(model, X, y, new, densities, 1e-8)


def test_shares_of_the_classes_are_weighted(rng):
    X, y = two_gaussians(rng)
    weight = rng.integers(0, 3, size=60).astype(float)
    model = MEDGaussianClassifier(prior="weak", **PREDICTIVE)
    repeated = np.repeat(np.arange(60), weight.astype(int))
    agree(
        model.fit(X, y, sample_weight=weight).predict_log_proba(X),
        MEDGaussianClassifier(prior="weak", **PREDICTIVE)
        .fit(X[repeated], y[repeated])
        .predict_log_proba(X),
        1e-6,  # two solutions within a relative gap of 1e-10 of a quadratic optimum
    )


def test_trees_without_a_bias_take_classes_for_equally_frequent(rng):
    X, y = categories(rng)
    keep = (y == 1) | (np.arange(60) < 20)
    model = MEDTreeClassifier(bias=None, **PREDICTIVE).fit(X[keep], y[keep])
    assert model.intercept_ == 0
    assert MEDTreeClassifier(**PREDICTIVE).fit(X[keep], y[keep]).intercept_[0] > 0.5


# ------------------------------------------------------------------- the logistic prior


def logistic_machines():
    logistic = {"margin": "logistic", "level": 0, "tol": 1e-10}
    prior = {"margin": LogisticMargin(2.0), "tol": 1e-10}
    net = MEDBayesNetClassifier(margin=LogisticMargin(0.5), tol=1e-10)
    return [
        pytest.param(
            MEDClassifier("linear", C=2.0, margin="logistic", tol=1e-9), 1.0, 2.0
        ),
        pytest.param(
            MEDClassifier(C=0.5, margin=LogisticMargin(3.0), tol=1e-9), 3.0, None
        ),
        pytest.param(MEDFeatureSelector(C=2.0, margin="logistic", tol=1e-10), 1.0, 2.0),
        pytest.param(MEDGaussianClassifier(C=0.7, **logistic), 0.7, 0.7),
        pytest.param(MEDGaussianClassifier(C=0.7, **prior), 2.0, 2.0),
        pytest.param(MEDBayesNetClassifier(C=0.3, **logistic), 0.3, 0.3),
        pytest.param(net, 0.5, 0.5),
        pytest.param(MEDTreeClassifier(C=0.4, **logistic), 0.4, 0.4),
        pytest.param(MEDTreeClassifier("dirichlet", C=0.4, **logistic), 0.4, 0.4),
    ]


def rows_for(model, rng):
    categorical = isinstance(model, (MEDBayesNetClassifier, MEDTreeClassifier))
    return categories(rng) if categorical else two_gaussians(rng)


@pytest.mark.parametrize(("model", "rate", "scale"), logistic_machines())
def test_multipliers_are_probabilities_of_the_wrong_class(model, rate, scale, rng):
    # the derivative of log(1 + exp(-rate m)) is -rate times that probability
    X, y = rows_for(model, rng)
    model.fit(X, y)
    p = model.predict_proba(X)
    f = model.decision_function(X)
    agree(p[:, 1], 1.0 / (1.0 + np.exp(-rate * f)), 1e-12)
    if scale is None:
        scale = rate * model.margin.unit_weight(model.C)
    lam = np.zeros(len(y))
    lam[model.support_] = np.abs(model.dual_coef_[0])
    wrong = p[np.arange(len(y)), 1 - y]
    # the gap is at least (curvature 4 / rate) / 2 times the squared error of lam / rate
    gap = model.duality_gap_ / max(scale / rate, 1e-300)
    assert np.abs(lam / scale - wrong).max() <= 10 * np.sqrt(max(gap, 1e-15))


@pytest.mark.parametrize("cls", [MEDClassifier, MEDGaussianClassifier])
def test_odds_of_two_of_three_classes_are_differences_of_scores(cls, rng):
    X, y = unequal_classes(rng, 8, 2, 3)
    model = cls(C=0.8, margin="logistic")
    if cls is MEDGaussianClassifier:
        model.set_params(level=0.0)
    rate = 1.0 if cls is MEDClassifier else 0.8
    log_p = model.fit(X, y).predict_log_proba(X)
    scores = model.decision_function(X)
    agree(np.diff(log_p, axis=1), rate * np.diff(scores, axis=1), 1e-10)
    assert (model.predict(X) == log_p.argmax(axis=1)).all()


# --------------------------------------------------------------------------- properties

ANY = st.floats(-1.7e308, 1.7e308) | st.floats(-50.0, 50.0)


@settings(max_examples=200)
@given(st.lists(st.lists(ANY, min_size=3, max_size=3), min_size=1), st.floats(1e-3, 50))
def test_rows_sum_to_one_and_logarithms_agree(rows, rate):
    scores = np.array(rows)
    for some in (scores, scores[:, 0], scores[:, :2]):
        p, log_p = probabilities(some, rate), log_probabilities(some, rate)
        assert (
            p.shape
            == log_p.shape
            == (len(some), 2 if some.ndim == 1 else some.shape[1])
        )
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-15)
        assert (p >= 0).all()
        assert (log_p <= 0).all()
        np.testing.assert_allclose(np.exp(log_p), p, rtol=1e-13, atol=1e-300)
    order = np.argsort(scores[:, 0])
    assert (np.diff(probabilities(scores[order, 0], rate)[:, 1]) >= 0).all()
    top = scores.argmax(axis=1)
    p = probabilities(scores, rate)
    assert (p[np.arange(len(p)), top] == p.max(axis=1)).all()


# --------------------------------------------------------------------- where none exist


def machines_without():
    other = ExponentialMargin(2.0)
    return [
        (MEDClassifier(), "margin='exponential'"),
        (MEDClassifier(margin=LogisticMargin(1.0, 0.5)), r"level=0\.5"),
        (MEDFeatureSelector(margin=other), "margin=ExponentialMargin"),
        (MEDGaussianClassifier(), "likelihood='expected'"),
        (MEDGaussianClassifier(margin="logistic"), "level=None"),
        (MEDGaussianClassifier(margin="logistic", level=1), "level=1"),
        (
            MEDGaussianClassifier(margin="logistic", level=0, bias="train_error"),
            "bias='train_error'; use .* and bias='flat'",
        ),
        (MEDGaussianClassifier(margin=LogisticMargin(), level=2.0), "level=2"),
        (MEDBayesNetClassifier(margin="hinge"), "margin='hinge'"),
        (MEDTreeClassifier(), "='exponential', level=None, .*level=0 and C=1"),
        (MEDTreeClassifier(margin="fixed", level="0.5*max"), r"level='0\.5\*max'"),
    ]


@pytest.mark.parametrize(("model", "match"), machines_without())
@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba"])
def test_the_error_says_what_to_set(model, match, method):
    assert not hasattr(model, method)
    with pytest.raises(AttributeError, match=match) as error:
        getattr(model, method)
    assert error.value.__cause__ is None
    assert "CalibratedClassifierCV" in str(error.value)
    assert "margin='logistic'" in str(error.value)


def test_soft_labels_are_not_said_to_be_calibrated():
    with pytest.raises(AttributeError, match=r"no probabilities .*held out") as error:
        MEDPartialLabelClassifier().predict_proba  # noqa: B018
    assert "logistic" not in str(error.value.__cause__ or error.value)


def test_asking_the_class_gives_the_documented_method():
    assert "rows add up to one" in MEDTreeClassifier.predict_proba.__doc__
    with pytest.raises(AttributeError, match="has no attribute 'predict_probability'"):
        MEDClassifier().predict_probability  # noqa: B018


def test_bayes_rule_refuses_other_biases_and_words(rng):
    X, y = two_gaussians(rng)
    model = MEDGaussianClassifier(likelihood="predictive", bias="train_error")
    refused(lambda: model.fit(X, y), "bias='train_error'; use bias='flat'")
    model = MEDBayesNetClassifier(likelihood="bayes")
    refused(lambda: model.fit(X.round(), y), "likelihood='bayes'")


def test_bayes_rule_changes_the_decision_alone(rng):
    X, y = two_gaussians(rng)
    one = MEDGaussianClassifier().fit(X, y)
    two = MEDGaussianClassifier(likelihood="predictive").fit(X, y)
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    assert np.isnan(two.loo_bound_)


def test_chow_liu_probabilities_are_the_same_formula(rng):
    X, y = categories(rng)
    model = ChowLiuClassifier().fit(X, y)
    np.testing.assert_array_equal(
        model.predict_log_proba(X), log_probabilities(model._decision(X))
    )
