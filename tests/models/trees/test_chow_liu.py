"""Maximum spanning trees and Chow-Liu trees."""

import numpy as np
import pytest
from oracles import spanning_trees as oracle
from oracles.tree_cases import normal, with_holes
from refusals import refused
from scipy.sparse.csgraph import minimum_spanning_tree

from maxent.discrimination import chow_liu_tree, max_spanning_tree


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_maximum_tree_is_the_best_of_all(n, rng):
    for weights in (normal(n, rng), with_holes(n, rng)):
        edges = max_spanning_tree(weights)
        best = oracle.all_trees(n)[np.argmax(oracle.tree_sums(weights))]
        assert edges.tolist() == best.tolist()


def test_maximum_tree_of_many_nodes(rng):
    weights = normal(200, rng)
    edges = max_spanning_tree(weights)
    other = minimum_spanning_tree(np.triu(5.0 - weights, 1))  # weights above zero
    value = weights[edges[:, 0], edges[:, 1]].sum()
    assert value == pytest.approx(199 * 5.0 - other.sum(), rel=1e-12)
    assert edges.tolist() == sorted(edges.tolist())


def letters(T, n, r, rng):
    """A chain of columns, each a noisy copy of the one before."""
    X = rng.integers(0, r, (T, n))
    for v in range(1, n):
        X[:, v] = np.where(rng.random(T) < 0.5, X[:, v - 1], X[:, v])
    return X


def log_likelihood(X, edges, ess=0.0):
    """Of the maximum-likelihood tree distribution of a structure."""

    def entropy(columns):
        count = np.unique(X[:, columns], axis=0, return_counts=True)[1] / len(X)
        return -(count * np.log(count)).sum()

    single = sum(entropy([v]) for v in range(X.shape[1]))
    gain = sum(entropy([u]) + entropy([v]) - entropy([u, v]) for u, v in edges)
    return len(X) * (gain - single)


@pytest.mark.parametrize("r", [2, 4, 7])
def test_chow_liu_has_the_largest_likelihood(r, rng):
    X = letters(700, 5, r, rng)[:, rng.permutation(5)]
    edges = chow_liu_tree(X)
    best = max(log_likelihood(X, tree) for tree in oracle.all_trees(5))
    assert log_likelihood(X, edges) == pytest.approx(best, rel=1e-12)


def test_chow_liu_finds_a_chain(rng):
    at = rng.permutation(12)
    edges = chow_liu_tree(letters(4000, 12, 4, rng)[:, at])
    assert {tuple(sorted(at[e])) for e in edges} == {(k, k + 1) for k in range(11)}


def test_weights_are_copies(rng):
    X = letters(600, 6, 4, rng)
    weight = rng.integers(0, 4, 600)
    for ess in (0.0, 5.0):
        _, a = chow_liu_tree(
            X, sample_weight=weight, ess=ess, n_categories=4, return_information=True
        )
        _, b = chow_liu_tree(
            np.repeat(X, weight, axis=0),
            ess=ess,
            n_categories=4,
            return_information=True,
        )
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def test_pseudo_counts_are_spread_over_the_cells(rng):
    X = letters(50, 3, 2, rng)
    ess, r = 3.0, (2, 5, 2)
    _, found = chow_liu_tree(X, ess=ess, n_categories=r, return_information=True)
    for u, v in ((0, 1), (0, 2), (1, 2)):
        C = np.full((r[u], r[v]), ess / (r[u] * r[v]))
        np.add.at(C, (X[:, u], X[:, v]), 1.0)
        C /= C.sum()
        product = C.sum(axis=1)[:, None] * C.sum(axis=0)
        assert found[u, v] == pytest.approx((C * np.log(C / product)).sum(), rel=1e-11)


def test_constant_columns_are_legal():
    edges, information = chow_liu_tree(np.zeros((9, 4), int), return_information=True)
    assert len(edges) == 3
    assert (information == 0).all()


@pytest.mark.parametrize(
    ("bad", "options", "match"),
    [
        ([[0, 1], [2, -1]], {}, r"X\[1, 1\]=-1 is no code"),
        ([[0, 1], [2, 0.5]], {}, r"X\[1, 1\]=0.5 is no code"),
        ([[0, 1], [2, np.nan]], {}, r"X\[1, 1\]=nan is no code"),
        ([[0, 1], [2, 65536]], {}, r"X\[1, 1\]=65536 is no code"),
        ([[0, 1], [2, np.inf]], {}, r"X\[1, 1\]=inf is no code"),
        ([[0], [1]], {}, r"X has shape \(2, 1\)"),
        (np.zeros((0, 3), int), {}, r"X has shape \(0, 3\)"),
        ([0, 1], {}, r"X has shape \(2,\)"),
        ([["a", "b"]], {}, "cannot be converted to real numbers"),
        ([[0, 1]], {"sample_weight": [-1.0]}, r"sample_weight\[0\]=-1 is negative"),
        ([[0, 1]], {"sample_weight": [0.0]}, "sample_weight is zero on every row"),
        ([[0, 1]], {"ess": -1.0}, "ess=-1.0 must be"),
        (
            [[0, 1]],
            {"n_categories": 1},
            "n_categories=1 of column 1 must be an integer",
        ),
        ([[0, 1]], {"n_categories": [1, 2.5]}, "n_categories=2.5 of column 1"),
        ([[0, 1]], {"n_categories": [1, np.nan]}, "n_categories=nan of column 1"),
        ([[0, 1]], {"n_categories": [1, 2, 3]}, r"n_categories has shape \(3,\)"),
    ],
)
def test_bad_data_are_refused(bad, options, match):
    refused(lambda: chow_liu_tree(bad, **options), match)
