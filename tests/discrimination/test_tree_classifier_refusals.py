"""Wrong input of classifiers with trees, by name."""

import numpy as np
import pandas as pd
import pytest
from oracles.tree_problems import categories
from refusals import cases, refused

from maxent import ChowLiuClassifier, MEDOutlierDetector, MEDTreeClassifier

# easy levels in some tests; one test asserts the warning itself


# --------------------------------------------------------------------------- refusals

WRONG = {
    "parameters": ["a", None, 1],
    "C": [0.0, -1.0, np.nan, "a", None],
    "margin": ["a", None, 3.0],
    "level": [np.nan, np.inf, "a", "2*max", "x*max", [1.0]],
    "ess": [-1.0, np.nan, np.inf, "a", None],
    "bias": ["a", 0.0, -1.0, np.nan],
    "likelihood": ["mean", None],
    "handle_unknown": ["a", None],
    "tol": [0, -1.0, np.nan, "a"],
    "max_iter": [0, 2.5, "a"],
    "edge_prior": [
        "a",
        np.ones(4),
        np.ones((3, 3)),
        -np.ones((4, 4)),
        np.triu(np.ones((4, 4))),
        np.eye(4),
        np.full((4, 4), np.nan),
    ],
}


@pytest.mark.parametrize(("name", "value"), cases(WRONG))
def test_wrong_parameters_are_named(name, value, rng):
    X, y = categories(rng)
    refused(lambda: MEDTreeClassifier(**{name: value}).fit(X, y), rf"\b{name}\b")


@pytest.mark.parametrize(
    ("name", "value"),
    cases(
        {
            "ess": [-1.0, np.nan, "a"],
            "class_prior": ["a", [0.5, 0.3, 0.2], [1.0, 0.0], [1.0, np.nan], 3.0],
            "handle_unknown": ["a", None],
        }
    ),
)
def test_wrong_parameters_of_the_chow_liu_classifier_are_named(name, value, rng):
    X, y = categories(rng)
    refused(lambda: ChowLiuClassifier(**{name: value}).fit(X, y), rf"\b{name}\b")


def test_parts_that_an_edge_prior_leaves_are_named(rng):
    X, y = categories(rng)
    prior = np.zeros((4, 4))
    prior[0, 1] = prior[1, 0] = prior[2, 3] = prior[3, 2] = 1.0
    refused(
        lambda: MEDTreeClassifier(edge_prior=prior).fit(X, y),
        r"edge_prior leaves the features in 2 separate parts, \[0, 1\], \[2, 3\]",
    )


def test_a_level_beyond_reach_names_the_largest_margin_for_any_number_of_classes(rng):
    for m in (2, 3, 4):
        X, y = rng.integers(0, 3, size=(12, 4)), np.arange(12) % m
        X[:m] = 0  # the same row in every class
        for bias in (None, "flat"):
            refused(
                lambda X=X, y=y, bias=bias: MEDTreeClassifier(
                    margin="fixed", level=1.0, bias=bias
                ).fit(X, y),
                "beyond the largest margin .*, [-0-9.e]+ nats. The classes cannot be",
            )


def test_edges_that_an_edge_prior_forbids_need_no_counts(rng):
    X = rng.integers(0, 2, size=(40, 3))
    X[:8, :2] = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], 2, axis=0)  # in each class
    X[:, 2], y = X[:, 1], np.arange(40) % 2  # half of the pairs of 1 and 2 are empty
    chain = np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]])
    refused(lambda: MEDTreeClassifier(ess=0.0).fit(X, y), "ess=0")
    model = MEDTreeClassifier(ess=0.0, edge_prior=chain).fit(X, y)
    assert (model.edge_probabilities_[:, 1, 2] == 0).all()


def test_an_empty_cell_without_smoothing_names_class_columns_and_letters(rng):
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [0, 0], [0, 1], [1, 1]])
    y = np.array(["all"] * 4 + ["few"] * 3)
    named = pd.DataFrame({"colour": np.array(["red", "blue"])[X[:, 0]], "n": X[:, 1]})
    for cls in (MEDTreeClassifier, ChowLiuClassifier):
        for labels in (y, y.astype(object)):
            refused(
                lambda c=cls, labels=labels: c(ess=0.0).fit(X, labels),
                "class 'few' never has 1 in feature 0 and 0 in feature 1 "
                "together, .*Use ess > 0",
            )
        refused(
            lambda c=cls: c(ess=0.0).fit(named, y),
            "never has 'blue' in feature 'colour' and 0 in feature 'n' together",
        )
    refused(lambda: MEDTreeClassifier("dirichlet", ess=0.0).fit(X, y), "ess=0.0")


def test_one_column_and_one_class_are_refused(rng):
    X, y = categories(rng)
    for cls in (MEDTreeClassifier, ChowLiuClassifier):
        refused(lambda c=cls: c().fit(X[:, :1], y), r"1 feature\(s\): trees join two")
        refused(lambda c=cls: c().fit(X, np.ones(48)), "one class")
    refused(lambda: MEDOutlierDetector("tree").fit(X[:, :1]), r"1 feature\(s\)")


def test_a_share_of_the_largest_margin_needs_fixed_margins(rng):
    X, y = categories(rng)
    for options in ({}, {"parameters": "dirichlet", "margin": "fixed"}):
        refused(
            lambda o=options: MEDTreeClassifier(level="max", **o).fit(X, y),
            "level='max' needs margin='fixed' and parameters='fixed'",
        )


def test_tables_beyond_the_memory_are_refused(rng):
    X = rng.integers(0, 400, size=(400, 3000)) * 1000
    y = np.arange(400) % 2
    with pytest.raises(MemoryError, match="2 classes to X with a sum of categories="):
        MEDTreeClassifier().fit(X, y)
