"""Generative classifiers: wrong input, each refused in a sentence."""

import numpy as np
import pandas as pd
import pytest
from problems import categories, two_gaussians
from refusals import refused
from sklearn.exceptions import ConvergenceWarning

import maxent
from maxent import MEDBayesNetClassifier, MEDGaussianClassifier
from maxent.discrimination import ExponentialMargin
from maxent.families import NormalInverseWishart

GAUSSIAN = {
    "C": [0.0, -1.0, np.nan, np.inf, "a", None],
    "margin": ["a", None, 3.0, ExponentialMargin, np.ones(2)],
    "level": [np.nan, np.inf, "a", [1.0]],
    "percentile": [-1, 101, np.nan, "a", None],
    "prior": ["a", 3.0, np.eye(2), NormalInverseWishart.improper(2)],
    "tempering": [-0.1, np.nan, np.inf, "a", None],
    "bias": ["a", -1.0, (1.0, 0.0)],
    "tol": [0, -1.0, np.nan, "a"],
    "max_iter": [0, 2.5, "a", None],
}
NET = {
    "ess": [0.0, -1.0, np.nan, np.inf, "a", None],
    "handle_unknown": ["a", None, 3],
    "parents": [
        [()],
        [(), (0,), (9,), ()],
        [(1,), (0,), (), ()],
        [(0,), (), (), ()],
        [(), (0, 0), (), ()],
        [(), (0.5,), (), ()],
        [(), 1, (), ()],
        [(), "a", (), ()],
        "abcd",
        3,
    ],
}


def flat(table):
    return [(name, value) for name, values in table.items() for value in values]


@pytest.mark.parametrize(("name", "value"), flat(GAUSSIAN))
def test_wrong_parameters_of_the_gaussian_classifier_are_named(name, value, rng):
    X, y = two_gaussians(rng)
    refused(lambda: MEDGaussianClassifier(**{name: value}).fit(X, y), rf"\b{name}\b")


@pytest.mark.parametrize(("name", "value"), flat(NET))
def test_wrong_parameters_of_the_net_are_named(name, value, rng):
    X, y = categories(rng)
    refused(lambda: MEDBayesNetClassifier(**{name: value}).fit(X, y), rf"\b{name}\b")


@pytest.mark.parametrize("few", [1, 3])
def test_a_class_with_too_few_rows_is_named_with_count_and_remedy(few, rng):
    X, y = two_gaussians(rng)
    names = np.where(y == 1, "ant", "bee")
    keep = np.concatenate([np.flatnonzero(y == 1)[:few], np.flatnonzero(y == 0)])
    model = MEDGaussianClassifier(prior="improper")
    refused(
        lambda: model.fit(X[keep], names[keep]),
        rf"class 'ant' with {few} rows .*prior='weak'",
    )
    with pytest.warns(UserWarning, match=r"'ant' .*Here prior='weak' was used"):
        MEDGaussianClassifier().fit(X[keep], names[keep])


def test_scatter_that_is_singular_in_one_class_is_named(rng):
    X, y = two_gaussians(rng)
    X[y == 1, 2] = X[y == 1, 0]
    refused(
        lambda: MEDGaussianClassifier(prior="improper").fit(X, y),
        "class 1 with 30 rows .*singular: features 0, 2 are .* dependent; drop 1 of",
    )
    with pytest.warns(UserWarning, match="prior='weak' was used"):
        assert MEDGaussianClassifier().fit(X, y).converged_


@pytest.mark.parametrize("prior", [None, "improper", "weak"])
def test_constant_features_are_left_out_with_one_warning(prior, rng, tmp_path):
    """A category of a one-hot encoding may be absent from a fold."""
    X, y = two_gaussians(rng)
    wide = pd.DataFrame(X, columns=["a", "b", "c"])
    wide.insert(1, "none", 0.0)
    wide["same"] = 3.5
    model = MEDGaussianClassifier(prior=prior)
    with pytest.warns(UserWarning, match="constant in features 'none', 'same'") as told:
        model.fit(wide, y)
    assert len(told) == 1
    want = MEDGaussianClassifier(prior=prior).fit(X, y).decision_function(X)
    other = wide.assign(same=7.0)  # of which training knows nothing
    path = tmp_path / "model.npz"
    maxent.save(model, path)
    for fitted in (model, maxent.load(path)):
        assert fitted.features_.tolist() == [0, 2, 3]
        np.testing.assert_allclose(fitted.decision_function(other), want, rtol=1e-9)
    model.features_ = np.array([0, 2, 9])
    refused(lambda: model.predict(wide), "features_=.*must hold numbers of 5 features")


def test_a_prior_of_ones_own_keeps_constant_features(rng):
    X, y = two_gaussians(rng)
    X[:, 1] = 3.5
    prior = NormalInverseWishart(np.zeros(3), 1.0, 5.0, np.eye(3))
    model = MEDGaussianClassifier(prior=prior).fit(X, y)
    assert model.features_.tolist() == [0, 1, 2]
    refused(
        lambda: MEDGaussianClassifier().fit(np.ones((60, 2)), y), "every feature of X"
    )


def test_dependent_features_of_a_class_are_named(rng):
    X, y = two_gaussians(rng)
    X = pd.DataFrame(X, columns=list("abc")).assign(d=rng.normal(size=60), e=0.0)
    X["e"] = X["a"] - 2.0 * X["c"] + 1e3
    X.loc[y == 0, "d"] = 4.0
    refused(
        lambda: MEDGaussianClassifier(prior="improper").fit(X, y),
        "feature 'd' is constant; drop it, and features 'a', 'c', 'e' are linearly "
        "dependent; drop 1 of them, or use",
    )


def test_tempering_zero_with_an_improper_prior_names_the_remedy(rng):
    X, y = two_gaussians(rng)
    refused(lambda: MEDGaussianClassifier(tempering=0.0).fit(X, y), "prior='weak'")


def test_the_training_error_bias_is_for_two_classes(rng):
    X = rng.normal(size=(30, 2))
    refused(
        lambda: MEDGaussianClassifier(bias="train_error").fit(X, np.arange(30) % 3),
        "bias='train_error' is for two classes, and y has 3",
    )


def test_one_class_is_refused(rng):
    X, y = two_gaussians(rng)
    for cls in (MEDGaussianClassifier, MEDBayesNetClassifier):
        refused(lambda c=cls: c().fit(X, np.ones(60)), "one class")
        refused(lambda c=cls: c().fit(X, y, y.astype(float)), "one class")


def test_a_fixed_margin_out_of_reach_is_refused(rng):
    X, y = categories(rng, 40, 2)
    model = MEDBayesNetClassifier(margin="fixed", level=50.0)
    refused(lambda: model.fit(X, y), "fixed margin.*margin='exponential'")


def test_rows_that_are_not_finite_are_refused(rng):
    X, y = two_gaussians(rng)
    for bad in (np.nan, np.inf):
        wrong = X.copy()
        wrong[3, 1] = bad
        with pytest.raises(ValueError, match="X contains"):
            MEDGaussianClassifier().fit(wrong, y)
        model = MEDGaussianClassifier().fit(X, y)
        with pytest.raises(ValueError, match="X contains"):
            model.predict(wrong)


def test_the_rows_of_a_class_are_too_few_where_the_weights_would_do():
    """Two points carry a plane's degrees of freedom, but no scatter."""
    X = np.array(
        [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 3.0], [5.0, 5.0], [6.0, 5.0]]
    )
    refused(
        lambda: MEDGaussianClassifier(prior="improper").fit(X, [0, 0, 0, 0, 1, 1]),
        "class 1 with 2 rows .*too few for a Gaussian of 2 features.*prior='weak'",
    )


def test_nothing_is_said_to_have_been_used_that_failed_too(rng):
    X, y = two_gaussians(rng)
    X[:, 1] = 3.5 + 1e-15 * (np.arange(60) == 4)
    refused(lambda: MEDGaussianClassifier().fit(X, y), "feature 1 varies from")


@pytest.mark.parametrize("change", [lambda X: 1e-200 * X, lambda X: X + 1e17])
def test_features_without_digits_are_not_called_constant(change, rng):
    X, y = two_gaussians(rng)
    X = change(X)
    X[0] = np.nextafter(X[1], np.inf)  # two values at least
    for names, word in ((None, "0"), (["size", "b", "c"], "'size'")):
        table = X if names is None else pd.DataFrame(X, columns=names)
        refused(
            lambda table=table: MEDGaussianClassifier(prior="weak").fit(table, y),
            f"feature {word} varies from .* to .* only.*shift or scale it",
        )


def test_features_beyond_the_range_of_squares_are_refused(rng):
    X, y = two_gaussians(rng)
    for prior in (None, "improper", "weak"):
        model = MEDGaussianClassifier(prior=prior)
        refused(lambda m=model: m.fit(1e200 * X, y), "X has entries as large as")
    model = MEDGaussianClassifier().fit(X, y)
    refused(lambda: model.predict(1e200 * X), "X has entries as large as")


@pytest.mark.parametrize("level", [1e8, 1e15, 1e100])
def test_levels_beyond_every_margin_end_with_a_warning(level, rng):
    X, y = two_gaussians(rng)
    model = MEDGaussianClassifier(level=level)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert not model.converged_ and np.isfinite(model.decision_function(X)).all()


def test_a_fixed_margin_is_refused_by_its_own_level(rng):
    X, y = categories(rng, 40, 2)
    model = MEDBayesNetClassifier(margin="fixed", level=50.0)
    refused(lambda: model.fit(X, y), r"FixedMargin\(level=50\.0\)")


def test_categories_that_have_no_order_are_named():
    X = np.array([["a", "x"], ["b", "y"], ["a", "x"], ["b", "y"]], dtype=object)
    y = [0, 1, 0, 1]
    mixed, missing = X.copy(), X.copy()
    mixed[1, 0], missing[2, 1] = 3, None
    refused(
        lambda: MEDBayesNetClassifier().fit(mixed, y),
        r"feature 0 of X mixes .* int, str.*X\.astype\(str\)",
    )
    refused(lambda: MEDBayesNetClassifier().fit(missing, y), r"X\[2, 1\] is None.*fill")
