"""Shares of columns in scores against Shapley values by enumeration of all orders."""

import itertools
import math

import numpy as np
import pytest

from maxent import LMEGaussianMixture, MEDOutlierDetector
from maxent.discrimination import GaussianScores, LatentMixture

pytestmark = pytest.mark.filterwarnings("ignore:.*training data score below")
GAUSSIAN_MIXTURE = LatentMixture("gaussian", 2, 2, random_state=0)


def shapley(score, x, reference):
    """Shapley values of the columns by all orders in which they move to the row."""
    d = len(x)
    out = np.zeros(d)
    for order in itertools.permutations(range(d)):
        row = np.array(reference)
        before = score(row[None])[0]
        for j in order:
            row[j] = x[j]
            after = score(row[None])[0]
            out[j] += after - before
            before = after
    return out / math.factorial(d)


def numbers(rng, n=60, d=4):
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 3.0


def codes(rng, n=80):
    X = rng.integers(0, 3, (n, 4))
    X[:, 1] = np.where(rng.random(n) < 0.8, X[:, 0], X[:, 1])
    return X


def test_shares_of_a_gaussian_are_shapley_values(rng):
    X, new = numbers(rng), 3.0 * numbers(rng, 5)
    detector = MEDOutlierDetector().fit(X)
    mean = detector.posterior_.mean
    shares = detector.feature_scores(new)
    expected = [shapley(detector.score_samples, x, mean) for x in new]
    np.testing.assert_allclose(shares, expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(detector.feature_scores(mean[None]), 0, atol=1e-10)


@pytest.mark.parametrize("model", ["multinomial", "tree"])
def test_shares_of_categories_are_shapley_values(rng, model):
    X, new = codes(rng), rng.integers(0, 5, (6, 4))  # two categories are unseen
    detector = MEDOutlierDetector(model, contamination=0.1).fit(X)
    # the commonest category of every column: of all rows, as the multipliers weigh them
    weight = np.zeros(len(X))
    weight[detector.support_] = detector.dual_coef_
    reference = [
        max(c.tolist(), key=lambda a: weight[X[:, j] == a].sum())
        for j, c in enumerate(detector.categories_)
    ]
    shares = detector.feature_scores(new)
    expected = [shapley(detector.score_samples, x, reference) for x in new]
    np.testing.assert_allclose(shares, expected, rtol=1e-8, atol=1e-8)
    assert (detector.feature_scores([reference]) == 0).all()


def test_predictive_shares_keep_the_proportions(rng):
    X, new = numbers(rng), 2.0 * numbers(rng, 5)
    law = MEDOutlierDetector(likelihood="predictive").fit(X)
    plain = MEDOutlierDetector().fit(X).feature_scores(new)
    shares = law.feature_scores(new)
    np.testing.assert_allclose(
        shares / shares.sum(axis=1, keepdims=True),
        plain / plain.sum(axis=1, keepdims=True),
        rtol=1e-8,
    )
    at_mean = law.score_samples(law.posterior_.mean[None])
    np.testing.assert_allclose(
        shares.sum(axis=1), law.score_samples(new) - at_mean, rtol=1e-8
    )


@pytest.mark.parametrize("likelihood", ["expected", "predictive"])
def test_shares_of_a_mixture_leave_its_constant(rng, likelihood):
    X = np.vstack([numbers(rng), numbers(rng) + 15.0])
    new = np.vstack([X[:3], 2.0 * numbers(rng, 4)])
    law = MEDOutlierDetector(GAUSSIAN_MIXTURE, likelihood=likelihood).fit(X)
    posterior, predictive = law.posterior_, likelihood == "predictive"
    joint = posterior.log_joint(new, predictive)
    q = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
    means = np.stack([part.mean for part in posterior.components])
    reference = posterior.log_joint(means, predictive).diagonal()
    constant = q @ reference - np.sum(q * np.log(np.maximum(q, 1e-300)), axis=1)
    np.testing.assert_allclose(
        law.feature_scores(new).sum(axis=1),
        law.score_samples(new) - constant,
        rtol=1e-7,
        atol=1e-7,
    )


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_shares_of_a_latent_mixture(rng, kind):
    X = np.vstack([rng.normal(size=(60, 3)), rng.normal(size=(60, 3)) + 9.0])
    model = LMEGaussianMixture(2, kind, n_init=3, random_state=0).fit(X)
    new = 4.0 * rng.normal(size=(5, 3))
    q = model.predict_proba(new)
    reference = model._log_joint(model.means_).diagonal()
    constant = q @ reference - np.sum(q * np.log(np.maximum(q, 1e-300)), axis=1)
    shares = model.feature_scores(new)
    np.testing.assert_allclose(
        shares.sum(axis=1), model.score_samples(new) - constant, rtol=1e-8, atol=1e-8
    )
    one = LMEGaussianMixture(1, kind).fit(X)
    expected = [shapley(one.score_samples, x, one.means_[0]) for x in new]
    np.testing.assert_allclose(one.feature_scores(new), expected, atol=1e-8)


def test_shares_do_not_depend_on_the_order_of_columns(rng):
    X, new, order = numbers(rng), 2.0 * numbers(rng, 5), rng.permutation(4)
    shares = MEDOutlierDetector().fit(X).feature_scores(new)
    other = MEDOutlierDetector().fit(X[:, order]).feature_scores(new[:, order])
    np.testing.assert_allclose(other, shares[:, order], rtol=1e-6, atol=1e-8)


def test_constant_columns_have_no_share(rng):
    X = np.c_[numbers(rng), np.ones(60)][:, [0, 4, 1, 2, 3]]
    with pytest.warns(UserWarning, match="constant in feature 1"):
        detector = MEDOutlierDetector().fit(X)
    shares = detector.feature_scores(X[:5] * 2.0)
    assert shares.shape == (5, 5) and (shares[:, 1] == 0).all()


def test_missing_categories_have_shares_that_sum(rng):
    detector = MEDOutlierDetector("multinomial", contamination=0.1).fit(
        codes(rng).astype(object)
    )
    new = np.array([[0, 1, 2, 0], [None, 1, 0, 2]], dtype=object)
    left = detector.score_samples(new) - detector.feature_scores(new).sum(axis=1)
    np.testing.assert_allclose(left, left[0])


def test_models_without_exact_shares_are_refused(rng):
    X = numbers(rng)
    kernel = MEDOutlierDetector(GaussianScores("rbf"), level=2.0).fit(X)
    with pytest.raises(ValueError, match="have no exact shares"):
        kernel.feature_scores(X)
    tree = MEDOutlierDetector("tree", likelihood="predictive", contamination=0.1)
    with pytest.raises(ValueError, match=r"'tree' with likelihood='predictive' have"):
        tree.fit(codes(rng)).feature_scores(codes(rng))
