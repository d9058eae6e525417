"""Random trees as conjugate priors: all trees, exact integrals, posteriors."""

import numpy as np
import pytest
from oracles import tree_classifiers as oracle
from oracles.block_cases import agree, gradient_by_differences, inside
from oracles.tree_problems import make, problem
from scipy.special import logsumexp

from maxent._inputs.codes import CategoryIndex
from maxent.discrimination import (
    DirichletTrees,
    SpanningTrees,
    chow_liu_tree,
)
from maxent.families import DirichletBayesNet
from maxent.models.trees import _pair_counts

KINDS = pytest.mark.parametrize("kind", ["fixed", "dirichlet"])
NODES = pytest.mark.parametrize("n", [2, 3, 4, 5])


# ------------------------------------------------------------------------ all the trees


@KINDS
@NODES
def test_log_partition_is_the_sum_over_all_trees(kind, n, rng):
    for _ in range(5):
        prior, X, a, log_z = make(kind, rng, n)
        block = prior.block(X)
        agree(block.log_partition(a), log_z(a), 1e-10, 1.0 + np.abs(a).sum())
        assert block.log_partition(np.zeros(9)) == 0.0


@NODES
def test_mean_and_hessian_of_given_tables_are_those_of_all_trees(n, rng):
    sizes, X, weight, tables, weights = problem(rng, n)
    prior = SpanningTrees.fit(
        X, weight, ess=1.3, n_categories=sizes, log_weights=weights
    )
    block, a = prior.block(X), 2.0 * rng.normal(size=9)
    listed = oracle.ListedTrees(
        oracle.tree_log_probs(tables, X, n), oracle.structure_prior(weights)
    )
    agree(block.mean(a), listed.mean(a), 1e-11)
    scale = float(np.var(listed.L, axis=0).max()) + 1e-3
    factor = block.hessian_factor(a)
    assert factor.shape[1] <= block.rank
    agree(factor @ factor.T, listed.hessian(a), 1e-10, scale)
    x = rng.normal(size=9)
    agree(block.hessian_product(a, x), listed.hessian(a) @ x, 1e-10, 9 * scale)


@KINDS
@NODES
def test_gradient_and_hessian_are_derivatives(kind, n, rng):
    prior, X, a, _ = make(kind, rng, n)
    block = prior.block(X)
    agree(block.mean(a), gradient_by_differences(block, block.log_partition, a), 1e-6)
    hessian = gradient_by_differences(block, block.mean, a)
    scale = max(float(np.abs(hessian).max()), 1e-2)
    factor = block.hessian_factor(a)
    agree(factor @ factor.T, hessian, 1e-6, scale)
    for _ in range(3):
        x = rng.normal(size=9)
        agree(block.hessian_product(a, x), hessian @ x, 1e-6, 9 * scale)
        agree(block.hessian_product(a, x), factor @ (factor.T @ x), 1e-9, 9 * scale)


@NODES
def test_whole_numbers_of_rows_are_products_of_predictives(n, rng):
    sizes, X, _, tables, weights = problem(rng, n)
    prior = DirichletTrees(oracle.full_table(tables, sizes), sizes, weights)
    times = rng.integers(0, 4, size=9)
    repeated = np.repeat(X, times, axis=0)
    want = logsumexp(
        oracle.structure_prior(weights)
        + oracle.dirichlet_sequential(tables, repeated, n)
    )
    found = prior.block(X).log_partition(times.astype(float))
    agree(found, want, 1e-10, 1.0 + abs(want))


def test_weights_of_either_sign_are_averages_over_drawn_tables(rng):
    n = 3
    sizes, X, _, _, weights = problem(rng, n)
    # few rows taken away from plenty: the average has a finite variance
    tables = oracle.pair_tables(X, np.full(9, 6.0), sizes, 40.0)
    prior = DirichletTrees(oracle.full_table(tables, sizes), sizes, weights)
    a = rng.uniform(-1.0, 1.0, size=9)
    draws = oracle.dirichlet_draws(tables, X, a, n, rng, 20000)
    shares = oracle.structure_prior(weights)
    found = prior.block(X).log_partition(a)
    # the error of a mixture is at most that of its worst part
    assert abs(found - logsumexp(shares + draws[:, 0])) < 5.0 * draws[:, 1].max()
    assert draws[:, 1].max() < 0.05


@KINDS
def test_the_predictive_is_a_ratio_of_partitions(kind, rng):
    prior, X, a, _ = make(kind, rng, 4)
    block = prior.block(X)
    posterior = block.posterior(a)
    ratio = [
        block.log_partition(a + e) - block.log_partition(a) for e in np.eye(len(X))
    ]
    found = posterior.predictive_log_prob(X)
    agree(found, ratio, 1e-10, 10.0 + abs(block.log_partition(a)))
    assert (posterior.expected_log_prob(X) <= found + 1e-12).all()


@KINDS
def test_probabilities_of_all_rows_add_up_to_one(kind, rng):
    """Mean tables that agree on their margins are a distribution; others are not."""
    prior, X, a, _ = make(kind, rng, 4)
    every = np.array(list(np.ndindex(*prior.n_categories)))
    for value in (prior, prior.posterior(X, a)):
        total = float(np.exp(value.predictive_log_prob(every)).sum())
        assert total == pytest.approx(1.0, rel=1e-11)


# -------------------------------------------------------------------------- posteriors


@KINDS
def test_updating_twice_is_updating_with_the_sum(kind, rng):
    prior, X, _, _ = make(kind, rng, 4)
    block = prior.block(X)
    first, second = inside(rng, block, 0.4), 0.2 * rng.random(9)
    once = prior.posterior(X, first + second)
    twice = prior.posterior(X, first).posterior(X, second)
    agree(twice.edge_probabilities, once.edge_probabilities, 1e-9)
    agree(twice.expected_log_prob(X), once.expected_log_prob(X), 1e-9)
    base = prior.block(X, first)
    want = block.log_partition(first + second) - block.log_partition(first)
    agree(base.log_partition(second), want, 1e-9, 1.0 + abs(want))
    assert type(once) is type(prior)


@KINDS
@pytest.mark.parametrize("least", [0, 2])
def test_weight_two_is_the_row_twice_in_any_order(kind, least, rng):
    prior, X, _, _ = make(kind, rng, 4)
    times = rng.integers(least, 3, size=9)
    order = rng.permutation(int(times.sum()))
    one = prior.posterior(X, times.astype(float))
    other = prior.posterior(np.repeat(X, times, axis=0)[order])
    agree(other.edge_probabilities, one.edge_probabilities, 1e-10)
    agree(other.expected_log_prob(X), one.expected_log_prob(X), 1e-10)


@KINDS
def test_order_of_columns_and_names_of_letters_do_not_matter(kind, rng):
    n = 4
    sizes, X, weight, _, weights = problem(rng, n)
    order = rng.permutation(n)
    names = [rng.permutation(r) for r in sizes]
    Y = np.column_stack([names[k][X[:, k]] for k in order])
    moved = [sizes[k] for k in order]
    both = []
    for rows, letters, edges in (
        (X, sizes, weights),
        (Y, moved, weights[np.ix_(order, order)]),
    ):
        if kind == "fixed":
            prior = SpanningTrees.fit(
                rows, weight, n_categories=letters, log_weights=edges
            )
        else:
            prior = DirichletTrees(2.0, letters, edges)
        both.append(prior.posterior(rows, weight))
    one, other = both
    agree(other.edge_probabilities, one.edge_probabilities[np.ix_(order, order)], 1e-9)
    agree(other.expected_log_prob(Y), one.expected_log_prob(X), 1e-10)
    agree(other.predictive_log_prob(Y), one.predictive_log_prob(X), 1e-10)


def test_plenty_of_prior_counts_are_given_tables(rng):
    n = 4
    sizes, X, _, tables, weights = problem(rng, n, rows=12)
    counts = oracle.full_table(tables, sizes)
    random = DirichletTrees(1e7 * counts, sizes, weights).block(X)
    single = np.log(counts.diagonal() / counts.diagonal()[: sizes[0]].sum())
    total = counts.diagonal()[: sizes[0]].sum()
    ratios = np.log(
        np.maximum(counts, 1e-300) * total / np.outer(*[counts.diagonal()] * 2)
    )
    index = CategoryIndex(sizes)
    ratios[index.column[:, None] == index.column[None, :]] = 0.0
    given = SpanningTrees(single, ratios, sizes, weights).block(X)
    a = 2.0 * rng.normal(size=12)
    agree(random.log_partition(a), given.log_partition(a), 1e-6, np.abs(a).sum())
    agree(random.mean(a), given.mean(a), 1e-5)


def test_one_allowed_tree_is_a_bayes_net_with_the_same_counts(rng):
    n = 4
    sizes, X, _, tables, _ = problem(rng, n)
    edges = [(0, 2), (1, 2), (1, 3)]
    weights = np.full((n, n), -np.inf)
    for u, v in edges:
        weights[u, v] = weights[v, u] = rng.normal()
    block = DirichletTrees(oracle.full_table(tables, sizes), sizes, weights).block(X)
    for root in range(n):  # any direction of the edges
        parents = [()] * n
        reached = [root]
        for k in reached:
            for u, v in edges:
                other = {u: v, v: u}.get(k)
                if other is not None and other not in reached:
                    parents[other] = (k,)
                    reached.append(other)
        net = DirichletBayesNet(
            [
                oracle._table(tables, k, parents[k][0] if parents[k] else None)
                for k in range(n)
            ],
            parents,
            sizes,
        ).block(X)
        a = inside(rng, net)
        agree(block.log_partition(a), net.log_partition(a), 1e-10, np.abs(a).sum())
        agree(block.mean(a), net.mean(a), 1e-10)
        step = rng.normal(size=9)
        F, G = block.hessian_factor(a), net.hessian_factor(a)
        agree(F @ F.T, G @ G.T, 1e-9)
        # tables of the net are empty where no row goes; those of pairs are not
        assert block.max_step(a, step) <= net.max_step(a, step) * (1 + 1e-12)


@KINDS
def test_prior_without_rows_has_all_trees_alike(kind, rng):
    sizes = [2, 3, 2, 4, 3]
    X = np.column_stack([rng.integers(0, r, size=6) for r in sizes])
    prior = (
        SpanningTrees.fit(X, n_categories=sizes)
        if kind == "fixed"
        else DirichletTrees(1.0, sizes)
    )
    off = ~np.eye(5, dtype=bool)
    np.testing.assert_allclose(prior.edge_probabilities[off], 2 / 5, rtol=1e-12)
    moved = prior.posterior(X, 0.1 * np.ones(6)).edge_probabilities
    assert moved.sum() == pytest.approx(8.0, rel=1e-12)
    assert (moved == moved.T).all() and (moved >= 0).all() and (moved <= 1).all()


@KINDS
def test_heavy_rows_leave_the_most_likely_tree(kind, rng):
    """With many rows of its own, a class's distribution ends at its Chow-Liu tree."""
    n = 5
    X = rng.integers(0, 3, size=(60, n))
    for k in range(1, n):  # a chain, weaker from link to link
        copy = rng.random(60) < 0.95 - 0.1 * k
        X[copy, k] = X[copy, k - 1]
    tree = chow_liu_tree(X, ess=1.0, n_categories=3)
    prior = (
        SpanningTrees.fit(X, n_categories=[3] * n)
        if kind == "fixed"
        else DirichletTrees(1.0, [3] * n)
    )
    posterior = prior.posterior(X, np.full(60, 2000.0))
    np.testing.assert_array_equal(posterior.best_tree, tree)
    assert posterior.edge_probabilities[tree[:, 0], tree[:, 1]].min() > 0.99
    trees = posterior.sample_trees(5, random_state=0)
    assert (trees == tree).all()


# ------------------------------------------------------- features of rows that are kept


@pytest.mark.parametrize("n", [2, 5, 31, 40, 64])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_kept_features_answer_as_counts_do(n, missing, rng, monkeypatch):
    sizes = rng.integers(2, 5, size=n)
    X = (rng.random((30, n)) * sizes).astype(int)
    prior = SpanningTrees.fit(X, n_categories=sizes)
    X = np.where(rng.random(X.shape) < missing, -1, X)
    kept = prior.block(X)
    monkeypatch.setattr(_pair_counts, "_FEATURES", 0)
    counted = prior.block(X)
    assert kept.data.keeps_features and not counted.data.keeps_features
    rows = np.sort(rng.permutation(30)[:11])
    for a in (np.zeros(30), rng.normal(size=30)):
        agree(kept.log_partition(a), counted.log_partition(a), 1e-11, 100.0)
        agree(kept.mean(a), counted.mean(a), 1e-11, 100.0)
        size = 1.0 + np.abs(counted.hessian_product(a, np.ones(30))).max()
        x = rng.normal(size=30)
        agree(kept.hessian_product(a, x), counted.hessian_product(a, x), 1e-8, size)
        some = kept.hessian_among(a, rows), counted.hessian_among(a, rows)
        agree(some[0](x[:11]), some[1](x[:11]), 1e-8, size)


def test_features_of_some_rows_are_those_of_their_parent(rng):
    X = rng.integers(0, 3, size=(30, 4))
    prior = SpanningTrees.fit(X)
    data = prior.block(X).data
    rows = np.array([3, 7, 20])
    alone = data.part(rows).features(prior.log_ratios)  # before the parent has any
    whole = data.features(prior.log_ratios)
    np.testing.assert_array_equal(alone, whole[rows])
    np.testing.assert_array_equal(data.part(rows).features(prior.log_ratios), alone)
    other = prior.log_ratios + 1.0
    np.testing.assert_array_equal(data.part(rows).features(other), alone + 1.0)
    at = X + 3 * np.arange(4)
    agree(data.singles(prior.log_marginals), prior.log_marginals[at].sum(axis=1), 1e-12)
