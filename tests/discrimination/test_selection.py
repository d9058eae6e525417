"""MEDFeatureSelector: contract, limits, selection."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxent import MEDClassifier, MEDFeatureSelector


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:No features were selected")
@parametrize_with_checks([MEDFeatureSelector(), MEDFeatureSelector(0.5, bias=1.0)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def sparse_problem(rng, n=200, d=30):
    X = rng.normal(size=(n, d))
    return X, X[:, 0] - X[:, 7] + 0.5 * rng.normal(size=n) > 0


@pytest.mark.parametrize("bias", ["flat", 2.0, None])
def test_switches_always_on_are_the_plain_machine(bias, rng):
    X, y = sparse_problem(rng)
    ours = MEDFeatureSelector(1.0, C=3.0, bias=bias, tol=1e-10).fit(X, y)
    plain = MEDClassifier("linear", C=3.0, bias=bias, tol=1e-10).fit(X, y)
    assert ours.objective_ == pytest.approx(plain.objective_, rel=1e-9)
    np.testing.assert_allclose(ours.coef_, plain.coef_, atol=1e-6)


def test_the_features_that_matter_are_selected(rng):
    X, y = sparse_problem(rng)
    model = MEDFeatureSelector(0.05, C=5.0).fit(X, y)
    assert model.get_support(indices=True).tolist() == [0, 7]
    assert model.transform(X).shape == (len(X), 2)


@pytest.mark.parametrize("prior_inclusion", [0.5, 0.1, 1e-3, 1e-6])
def test_gap_is_met_and_weights_follow_from_switches(prior_inclusion, rng):
    X, y = sparse_problem(rng)
    model = MEDFeatureSelector(prior_inclusion, C=5.0, tol=1e-9).fit(X, y)
    assert model.converged_
    assert 0 <= model.duality_gap_ <= 1e-9 * (1 + model.objective_)
    signs = np.where(y, 1.0, -1.0)
    lam = np.zeros(len(y))
    lam[model.support_] = np.abs(model.dual_coef_[0])
    W = X.T @ (signs * lam)
    odds = prior_inclusion / (1 - prior_inclusion) * np.exp(0.5 * W**2)
    np.testing.assert_allclose(model.inclusion_proba_, odds / (1 + odds), atol=1e-9)


@pytest.mark.parametrize("p", [0.0, -0.1, 1.1, np.nan])
def test_bad_inclusion_probability_is_named(p, rng):
    X, y = sparse_problem(rng)
    with pytest.raises(ValueError, match="prior_inclusion"):
        MEDFeatureSelector(p).fit(X, y)
