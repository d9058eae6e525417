"""Wrong input of the outlier detector, by name."""

import numpy as np
import pandas as pd
import pytest
from oracles.block_cases import codes
from problems import tails
from refusals import refused
from sklearn.svm import OneClassSVM

from maxent import MEDOutlierDetector
from maxent.discrimination import (
    ExponentialMargin,
    GaussianCentre,
    GaussianScores,
    LatentMixture,
)
from maxent.families import DirichletCounts, DirichletProduct, NormalInverseWishart

# easy levels in some tests; one test asserts the warning itself


# --------------------------------------------------------------------------- refusals

WRONG = {
    "model": ["a", None, 3.0, np.eye(2), OneClassSVM(), GaussianScores],
    "level": [np.nan, np.inf, "a", [1.0]],
    "quantile": [-0.1, 1.1, np.nan, "a", None, 20],
    "contamination": [0.0, -0.1, 0.51, np.nan, "auto", [0.1], True],
    "C": [0.0, -1.0, np.nan, np.inf, "a", None],
    "margin": ["a", None, 3.0, ExponentialMargin],
    "likelihood": ["a", None, 3],
    "tol": [0, -1.0, np.nan, "a"],
    "max_iter": [0, 2.5, "a", None],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, x) for name, values in WRONG.items() for x in values]
)
def test_wrong_parameters_are_named(name, value, rng):
    X = tails(rng)
    refused(lambda: MEDOutlierDetector(**{name: value}).fit(X), rf"\b{name}\b")


def test_levels_above_every_probability_are_refused(rng):
    X = codes(rng, 30, [3, 4])
    for model in ("multinomial", DirichletProduct(1.0, [3, 4])):
        refused(
            lambda m=model: MEDOutlierDetector(m, level=0.5).fit(X),
            r"level=0\.5 is above 0, the largest log-probability .*quantile",
        )
    refused(lambda: MEDOutlierDetector(GaussianCentre(), level=0.1).fit(X), "level=0.1")
    # densities have no such bound
    assert MEDOutlierDetector(level=0.5).fit(1e-3 * tails(rng)).converged_


def test_one_row_is_no_gaussian(rng):
    X = tails(rng)
    weight = np.arange(len(X)) == 4
    refused(lambda: MEDOutlierDetector().fit(X[:1]), "1 sample")
    refused(lambda: MEDOutlierDetector().fit(X, sample_weight=1.0 * weight), "1 sample")


@pytest.mark.parametrize("model", ["gaussian", LatentMixture(random_state=0)])
def test_constant_features_are_left_out_with_a_warning(model, rng):
    X = tails(rng)
    X = np.insert(X, [1, 3], [2.0, 0.0], axis=1)
    frame = pd.DataFrame(X).rename(columns=lambda k: f"x{k}")
    whole = MEDOutlierDetector(model).fit(X[:, [0, 2, 3]])
    for data, names in ((X, "features 1, 4"), (frame, "features 'x1', 'x4'")):
        with pytest.warns(UserWarning, match=f"constant in {names}, left out") as told:
            detector = MEDOutlierDetector(model).fit(data)
        assert len(told) == 1
        np.testing.assert_array_equal(detector.features_, [0, 2, 3])
        np.testing.assert_array_equal(
            detector.score_samples(data), whole.score_samples(X[:, [0, 2, 3]])
        )
        assert detector.n_features_in_ == 5
        detector.features_ = np.array([0, 2, 9])
        refused(lambda d=detector, x=data: d.predict(x), "inconsistent: features_=")
    refused(
        lambda: MEDOutlierDetector(model).fit(np.ones((9, 2))),
        "every feature of X is constant",
    )


def test_one_pseudo_count_is_no_prior_of_many_columns(rng):
    X = rng.integers(0, 3, size=(20, 4))
    model = MEDOutlierDetector(DirichletCounts(1.0))
    refused(lambda: model.fit(X), r"rows of 1 counts .* np\.ones\(4\)")


def test_improper_priors_and_priors_of_other_data_are_refused(rng):
    X = tails(rng)
    improper = NormalInverseWishart.improper(3)
    refused(lambda: MEDOutlierDetector(improper).fit(X), "too few for a Gaussian of 3")
    other = NormalInverseWishart(np.zeros(2), 1.0, 4.0, np.eye(2))
    refused(lambda: MEDOutlierDetector(other).fit(X), "rows of 2 features")
    refused(
        lambda: MEDOutlierDetector(DirichletProduct(1.0, [3] * 3)).fit(X), "integer"
    )


def test_a_level_that_asks_for_nothing_is_warned_of(rng):
    X = rng.integers(0, 2, size=(30, 2))
    with pytest.warns(UserWarning, match="nothing was learnt; raise level or quantile"):
        model = MEDOutlierDetector("multinomial", level=-1e3).fit(X)
    assert len(model.support_) == 0


# ------------------------------------------------------- margins that teach nothing


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"level": 1.0}, "mean margin 0, .*Raise level or C"),
        ({"level": 0.0, "margin": "hinge"}, "mean margin 0, .*Raise level or C"),
        ({"level": -1.0, "margin": "gaussian"}, "mean margin -1, .*Raise level or C"),
        ({"gamma": 1e6}, r"mean margin 0, .*level \(the quantile of 40 sample\(s\)\)"),
    ],
)
def test_scores_that_start_from_zero_need_a_positive_mean_margin(options, remedy, rng):
    options = dict(options)
    model = GaussianScores(gamma=options.pop("gamma", 1.0))
    X = rng.normal(size=(40, 3))
    refused(lambda: MEDOutlierDetector(model, **options).fit(X), remedy)
