"""MEDFeatureSelector: contract, limits, selection."""

import warnings

import numpy as np
import pytest
from refusals import refused

from maxent import MEDClassifier, MEDFeatureSelector


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
    model = MEDFeatureSelector(0.05, C=5.0, threshold=0.5).fit(X, y)
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


# ------------------------------------------------------------------- what is selected


def test_standardised_features_that_matter_pass_by_default(rng):
    X = rng.normal(size=(400, 40))
    y = X[:, :3] @ [2.0, -2.0, 1.5] + 0.5 * rng.normal(size=400) > 0
    model = MEDFeatureSelector().fit(X, y)
    assert model.get_support()[:3].all()
    assert model.threshold_ == pytest.approx(0.2 / 1.1, rel=1e-15)
    assert not model.set_params(threshold=0.9999).get_support().any()


@pytest.mark.parametrize("p0", [1e-6, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0, 30.0])
def test_threshold_is_a_factor_of_the_prior_odds(p0, factor, rng):
    X, y = sparse_problem(rng)
    model = MEDFeatureSelector(p0, C=3.0, threshold=f"{factor} * prior")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*no feature passes", UserWarning)
        model.fit(X, y)
    p = model.inclusion_proba_
    with np.errstate(divide="ignore"):
        ratio = p * (1 - p0) / (p0 * (1 - p))
    assert model.threshold_ == pytest.approx(factor * p0 / (1 - p0 + factor * p0))
    clear = np.abs(ratio / factor - 1) > 1e-6
    np.testing.assert_array_equal(model.get_support()[clear], (ratio > factor)[clear])


def test_switches_always_on_select_every_feature(rng):
    X, y = sparse_problem(rng)
    assert MEDFeatureSelector(1.0).fit(X, y).get_support().all()


@pytest.mark.parametrize("k", [1, 2, 7, 30, 100])
def test_the_most_probable_features_are_kept(k, rng):
    X, y = sparse_problem(rng)
    model = MEDFeatureSelector(C=5.0, max_features=k, threshold=-np.inf).fit(X, y)
    chosen = model.get_support()
    p = model.inclusion_proba_
    assert chosen.sum() == min(k, 30)
    assert chosen.all() or p[chosen].min() >= p[~chosen].max()
    both = model.set_params(threshold="2*prior").get_support()
    np.testing.assert_array_equal(both, chosen & (p > model.threshold_))


def test_fit_says_that_no_feature_passes(rng):
    X, y = sparse_problem(rng)
    model = MEDFeatureSelector(threshold=1.0)
    with pytest.warns(UserWarning, match=r"no feature passes threshold=1\.0.*max_feat"):
        model.fit(X, y)
    with pytest.warns(
        UserWarning, match=r"passes threshold='2\*prior', .*above 0\.182"
    ):
        MEDFeatureSelector().fit(1e-6 * X, y)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("threshold", x) for x in ("mean", "prior", "0*prior", "-2*prior", "2*", "")),
        *(("threshold", x) for x in (None, np.nan, np.inf, [0.5], "1e400*prior")),
        *(("max_features", x) for x in (0, -1, 2.5, "all", True)),
    ],
)
def test_wrong_selections_are_named(name, value, rng):
    X, y = sparse_problem(rng, 40, 8)
    refused(lambda: MEDFeatureSelector(**{name: value}).fit(X, y), rf"\b{name}=")


@pytest.mark.parametrize(
    ("n_rare", "first"), [(15, "Class 1 is rare: set class_"), (150, "Lower")]
)
def test_unequal_classes_are_named_first_where_no_feature_passes(n_rare, first, rng):
    y = (np.arange(300) < n_rare).astype(int)
    X = rng.normal(size=(300, 6))
    with pytest.warns(UserWarning, match=rf"no feature passes .*=0\.1\. {first}"):
        MEDFeatureSelector(threshold=0.99).fit(X, y)
    with pytest.warns(UserWarning, match=r"no feature passes .*=0\.1\. Lower"):
        MEDFeatureSelector(threshold=0.99, class_weight="balanced").fit(X, y)
