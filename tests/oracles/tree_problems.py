"""Problems for trees: columns that copy one another, blocks, priors, fits."""

import numpy as np
from scipy.special import logsumexp

from maxent.discrimination import DirichletTrees, SpanningTrees
from maxent.discrimination.duals.block_dual import solve_blocks
from maxent.discrimination.duals.class_pairs import MulticlassRows, class_maps
from oracles import tree_classifiers as oracle
from oracles.block_cases import inside


def categories(rng, n=48, d=4, n_classes=2):
    """Columns that copy one another, others in every class, with noise."""
    y = rng.permutation(np.arange(n) % n_classes)
    X = rng.integers(0, 3, size=(n, d))
    for k in range(n_classes):
        own = (y == k) & (rng.random(n) < 0.8)
        X[own, 1 + k % (d - 1)] = X[own, 0]
    return X, y


def classes(rng, n=3, rows=12):
    """Blocks of two classes by the list of trees and by the package, and maps."""
    sizes = [int(r) for r in rng.integers(2, 4, size=n)]
    y = np.where(np.arange(rows) % 2, 1.0, -1.0)
    X = np.column_stack([rng.integers(0, r, size=rows) for r in sizes])
    weights = np.zeros((n, n))
    np.fill_diagonal(weights, -np.inf)
    listed, blocks = [], []
    for k in (-1, 1):
        own = X[y == k]
        tables = oracle.pair_tables(own, np.ones(len(own)), sizes, 1.0)
        listed.append(
            oracle.ListedTrees(
                oracle.tree_log_probs(tables, X, n), oracle.structure_prior(weights)
            )
        )
        blocks.append(SpanningTrees.fit(own, n_categories=sizes).block(X))
    return listed, blocks, [np.diag(-y), np.diag(y)], y


def problem(rng, n, rows=9):
    """CategoryIndex, rows, smoothed counts of weighted rows, log weights of edges."""
    sizes = [int(r) for r in rng.integers(1, 5, size=n)]
    sizes[0] += sizes[0] == 1  # rows that are all alike have no boundary to meet
    X = np.column_stack([rng.integers(0, r, size=rows) for r in sizes])
    weight = rng.uniform(0.2, 2.0, size=rows)
    weights = rng.normal(size=(n, n))
    weights = weights + weights.T
    np.fill_diagonal(weights, -np.inf)
    return sizes, X, weight, oracle.pair_tables(X, weight, sizes, 1.3), weights


def make(kind, rng, n, rows=9):
    """(prior, rows, weights inside the domain, log Z by the list of all trees)."""
    sizes, X, weight, tables, weights = problem(rng, n, rows)
    if kind == "fixed":
        prior = SpanningTrees.fit(
            X, weight, ess=1.3, n_categories=sizes, log_weights=weights
        )
        listed = oracle.tree_log_probs(tables, X, n)

        def log_z(a):
            return float(logsumexp(oracle.structure_prior(weights) + listed.T.T @ a))
    else:
        prior = DirichletTrees(oracle.full_table(tables, sizes), sizes, weights)

        def log_z(a):
            by_tree = oracle.dirichlet_log_partitions(tables, X, a, n)
            return float(logsumexp(oracle.structure_prior(weights) + by_tree))

    return prior, X, inside(rng, prior.block(X)), log_z


def trained(X, y, kind, prior, level, bias, *, ess=1.0, tol=1e-8, wrap=None, **options):
    """Blocks, maps, incidence and the solution of one problem."""
    m = int(y.max()) + 1
    sizes = [int(r) + 1 for r in X.max(axis=0)]
    blocks = []
    for k in range(m):
        own = (y == k).astype(float)
        if kind == "fixed":
            tables = SpanningTrees.fit(X[y == k], ess=ess, n_categories=sizes)
            blocks.append(tables.block(X))
        else:
            blocks.append(DirichletTrees(ess, sizes).block(X, own))
    blocks = blocks if wrap is None else [wrap(block) for block in blocks]
    rows = MulticlassRows(y, m, prior, np.ones(len(y)))
    maps, E = class_maps(rows), rows.incidence()
    n = maps[0].shape[1]
    result = solve_blocks(
        blocks,
        maps,
        prior,
        bias=bias,
        incidence=None if bias is None else E,
        sample_weight=np.ones(n),
        level=np.full(n, level),
        tol=tol,
        max_iter=options.pop("max_iter", 300),
        **options,
    )
    return blocks, maps, E, result
