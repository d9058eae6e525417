"""Random trees as conjugate priors: what is refused, and in which words."""

import numpy as np
import pytest
from oracles.tree_problems import make
from refusals import refusals, refused

from maxent.discrimination import (
    DirichletTrees,
    SpanningTrees,
)

KINDS = pytest.mark.parametrize("kind", ["fixed", "dirichlet"])


SINGLE = np.log([0.5, 0.5, 0.3, 0.7])


test_wrong_parameters_are_named = refusals(
    [
        (lambda: SpanningTrees(SINGLE, np.zeros((4, 4)), [4]), "two or more columns"),
        (
            lambda: SpanningTrees(SINGLE, np.zeros((4, 4)), [2, 3]),
            r"log_marginals.*\(5,\)",
        ),
        (
            lambda: SpanningTrees(SINGLE, np.zeros((3, 3)), [2, 2]),
            r"log_ratios.*\(4, 4\)",
        ),
        (
            lambda: SpanningTrees(SINGLE - np.inf, np.zeros((4, 4)), [2, 2]),
            "log_marginals",
        ),
        (lambda: SpanningTrees(SINGLE, np.eye(4) * np.nan, [2, 2]), "log_ratios"),
        (
            lambda: SpanningTrees(SINGLE, np.triu(np.ones((4, 4))), [2, 2]),
            r"log_ratios is not symmetric: log_ratios\[0, 1\]=1",
        ),
        (
            lambda: SpanningTrees(SINGLE, np.zeros((4, 4)), [2, 2], np.zeros((2, 2))),
            r"log_weights\[0, 0\]=0 joins",
        ),
        (
            lambda: SpanningTrees(
                SINGLE, np.zeros((4, 4)), [2, 2], np.full((2, 2), -np.inf)
            ),
            "no spanning tree",
        ),
        (lambda: DirichletTrees(0.0, [2, 2]), "pseudo_counts=0.0 must be"),
        (lambda: DirichletTrees(-1.0, [2, 2]), "pseudo_counts"),
        (lambda: DirichletTrees(np.nan, [2, 2]), "pseudo_counts"),
        (lambda: DirichletTrees(1.0, [2]), "two or more columns"),
        (lambda: DirichletTrees(1.0, [2, 0]), "n_categories=0"),
        (lambda: DirichletTrees(1.0, [2, 10**5]), "n_categories=100000 of column 1"),
        (lambda: DirichletTrees(np.ones((3, 3)), [2, 2]), r"pseudo_counts.*\(4, 4\)"),
        (
            lambda: DirichletTrees(np.zeros((4, 4)), [2, 2]),
            r"pseudo_counts\[0, 0\]=0 is not > 0",
        ),
        (
            lambda: DirichletTrees(np.kron(np.eye(2), np.eye(2)) + 0.1, [2, 2]),
            "pseudo_counts do not agree: category 0 of column 0",
        ),
        (lambda: SpanningTrees.fit([[0, 1]], ess=-1.0), "ess=-1.0"),
        (lambda: SpanningTrees.fit([[0, 1.5]]), "integer codes"),
        (lambda: SpanningTrees.fit([[0], [1]]), "two or more columns"),
        (lambda: SpanningTrees.fit([0, 1]), r"X has shape \(2,\)"),
        (lambda: SpanningTrees.fit([[0, 2]], n_categories=[2, 2]), r"X\[0, 1\] = 2"),
        (
            lambda: SpanningTrees.fit([[0, -1]], n_categories=[2, 2]),
            "without a missing value",
        ),
        (
            lambda: SpanningTrees.fit([[0, 1], [1, 0]], ess=0),
            "columns 0 and 1 empty at category 0 with category 0.*ess > 0",
        ),
    ]
)


def test_counts_of_letters_that_are_no_sequence_are_named():
    for build in (
        lambda n: DirichletTrees(1.0, n),
        lambda n: SpanningTrees.fit([[0, 1], [1, 0]], n_categories=n),
    ):
        refused(lambda build=build: build(3), "n_categories=3 must be a sequence")


def test_tables_beyond_the_memory_are_refused_before_they_are_made():
    with pytest.raises(MemoryError, match="n_categories of 3000 columns"):
        DirichletTrees(1.0, [1000] * 3000)


@KINDS
def test_rows_and_weights_that_do_not_fit_are_named(kind, rng):
    prior, X, _, _ = make(kind, rng, 3)
    refused(lambda: prior.block(X[:, :2]), r"\bX\b.*3 categorical features")
    refused(lambda: prior.block(X + 0.5), "integer codes")
    refused(lambda: prior.block(X + 9), r"X\[0, 0\] = ")
    refused(lambda: prior.block(X, np.ones(3)), "base_weight")
    refused(lambda: prior.posterior(X, np.full(9, np.nan)), "weight")


def test_rows_that_take_too_much_are_named_by_their_cell():
    X = np.array([[0, 1], [1, 0]])
    prior = DirichletTrees(1.0, [2, 2])
    refused(
        lambda: prior.block(X, [-1.0, 0.0]),
        "category 0 of column 0 with category 1 of column 1 at or below zero",
    )
    refused(lambda: prior.posterior(X, [-1.0, 0.0]), "no posterior at these weights")
