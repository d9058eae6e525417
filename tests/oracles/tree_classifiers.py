"""Distributions over trees of categorical columns, one tree after the other.

Every sum over trees is a sum over a list, every tree a Bayes net directed away from
column 0, and every count a loop over rows.
"""

import warnings

import numpy as np
from scipy.optimize import linprog, minimize
from scipy.special import gammaln, logsumexp, xlogy

from oracles.conjugate import log_mean_exp
from oracles.spanning_trees import all_trees, tree_sums


def pair_tables(X, weight, sizes, ess):
    """Smoothed counts {(u, v): (r_u, r_v)}, u <= v; single letters for u = v."""
    n = len(sizes)
    out = {}
    for u in range(n):
        for v in range(u, n):
            cells = np.eye(sizes[u]) if u == v else np.ones((sizes[u], sizes[v]))
            table = ess * cells / cells.sum()
            for row, w in zip(X, weight, strict=True):
                table[row[u], row[v]] += w
            out[u, v] = table
    return out


def full_table(tables, sizes):
    """The same as one symmetric matrix over all letters."""
    first = np.concatenate([[0], np.cumsum(sizes)])
    out = np.zeros((first[-1], first[-1]))
    for (u, v), table in tables.items():
        out[first[u] : first[u + 1], first[v] : first[v + 1]] = table
        out[first[v] : first[v + 1], first[u] : first[u + 1]] = table.T
    return out


def directed(edges, n):
    """Parent of every column of a tree with root 0, in an order of growth."""
    order, parent = [0], {0: None}
    while len(order) < n:
        for u, v in edges:
            for a, b in ((u, v), (v, u)):
                if a in parent and b not in parent:
                    parent[b] = int(a)
                    order.append(int(b))
    return [(k, parent[k]) for k in order]


def _table(tables, child, parent):
    """Counts (r_parent, r_child)."""
    if parent is None:
        return np.diag(tables[child, child])[None]
    if parent < child:
        return tables[parent, child]
    return tables[child, parent].T


def tree_log_probs(tables, X, n):
    """log T_E(x_t) with the shares of the tables, (n_trees, n_rows)."""
    out = []
    for edges in all_trees(n):
        total = np.zeros(len(X))
        for child, parent in directed(edges, n):
            table = _table(tables, child, parent)
            shares = table / table.sum(axis=1, keepdims=True)
            at = np.zeros(len(X), dtype=int) if parent is None else X[:, parent]
            total += np.log(shares[at, X[:, child]])
        out.append(total)
    return np.array(out)


def _weighted_counts(X, a, child, parent, shape):
    out = np.zeros(shape)
    at = np.zeros(len(X), dtype=int) if parent is None else X[:, parent]
    np.add.at(out, (at, X[:, child]), a)
    return out


def dirichlet_log_partitions(tables, X, a, n):
    """log E exp(sum_t a_t log T_E(x_t)) of every tree, by its conditional tables."""
    out = []
    for edges in all_trees(n):
        total = 0.0
        for child, parent in directed(edges, n):
            prior = _table(tables, child, parent)
            after = prior + _weighted_counts(X, a, child, parent, prior.shape)
            if not (after > 0).all():
                return np.full(n ** (n - 2), np.inf)
            total += float((gammaln(after) - gammaln(prior)).sum())
            rows = gammaln(after.sum(axis=1)) - gammaln(prior.sum(axis=1))
            total -= float(rows.sum())
        out.append(total)
    return np.array(out)


def dirichlet_sequential(tables, X, n):
    """log E prod_t T_E(x_t) of every tree: predictive after predictive."""
    out = []
    for edges in all_trees(n):
        total, counts = 0.0, {}
        for child, parent in directed(edges, n):
            counts[child] = _table(tables, child, parent).copy()
        for row in X:
            for child, parent in directed(edges, n):
                at = 0 if parent is None else row[parent]
                line = counts[child][at]
                total += np.log(line[row[child]] / line.sum())
                line[row[child]] += 1.0
        out.append(total)
    return np.array(out)


def dirichlet_draws(tables, X, a, n, rng, size):
    """(log mean, its standard error) of exp(sum a log T_E(x)), one tree after another.

    Tables are drawn along the edges: the root's, and every child's given its parent.
    """
    out = []
    for edges in all_trees(n):
        total = np.zeros(size)
        for child, parent in directed(edges, n):
            prior = _table(tables, child, parent)
            counts = _weighted_counts(X, a, child, parent, prior.shape)
            for alpha, count in zip(prior, counts, strict=True):
                total += np.log(rng.dirichlet(alpha, size=size)) @ count
        out.append(log_mean_exp(total))
    return np.array(out)


def structure_prior(log_weights):
    """log P(E) of every tree."""
    scores = tree_sums(log_weights)
    return scores - logsumexp(scores)


class ListedTrees:
    """Block of given tables: all trees, all rows, one matrix of log-probabilities."""

    def __init__(self, log_probs, log_prior):
        self.L, self.log_prior = log_probs, log_prior
        self.n_rows = log_probs.shape[1]
        self.rank = self.n_rows

    def _share(self, a):
        scores = self.log_prior + self.L @ a
        log_z = logsumexp(scores)
        return log_z, np.exp(scores - log_z)

    def log_partition(self, a):
        return float(self._share(a)[0])

    def mean(self, a):
        return self._share(a)[1] @ self.L

    def hessian(self, a):
        p = self._share(a)[1]
        centred = self.L - p @ self.L
        return (centred.T * p) @ centred


def primal(blocks, maps, prior, level):
    """min KL + sum of losses over the probabilities of the trees themselves."""
    sizes = [len(block.log_prior) for block in blocks]
    ends = np.cumsum(sizes)[:-1]
    start = np.concatenate([np.exp(block.log_prior) for block in blocks])
    base = np.concatenate([block.log_prior for block in blocks])
    G = np.concatenate(
        [block.L @ A for block, A in zip(blocks, maps, strict=True)], axis=0
    )
    machine = prior.with_level(level)

    def value(p):
        loss = np.sum([machine.loss(m) for m in p @ G])
        return float(np.sum(xlogy(p, p) - p * base) + loss)

    def gradient(p):
        slope = np.array([machine.loss_slope(m) for m in p @ G])
        return np.log(np.maximum(p, 1e-300)) + 1.0 - base + G @ slope

    rows = np.array(
        [
            np.concatenate([np.full(k, float(s == j)) for j, k in enumerate(sizes)])
            for s in range(len(sizes))
        ]
    )
    best = start
    for _ in range(8):
        with warnings.catch_warnings():  # SciPy tells of steps that it cuts at bounds
            warnings.simplefilter("ignore", RuntimeWarning)
            found = minimize(
                value,
                best,
                jac=gradient,
                method="SLSQP",
                bounds=[(1e-12, 1.0)] * len(start),
                constraints=[
                    {
                        "type": "eq",
                        "fun": lambda p: rows @ p - 1.0,
                        "jac": lambda p: rows,
                    }
                ],
                options={"ftol": 1e-15, "maxiter": 3000},
            )
        best = found.x
    assert np.allclose([part.sum() for part in np.split(best, ends)], 1.0)
    return value(best)


def largest_margin(blocks, maps, E=None):
    """max over mixtures of trees (and biases) of the smallest mean margin, by LP."""
    parts = [block.L @ A for block, A in zip(blocks, maps, strict=True)]
    sizes = [len(part) for part in parts]
    G = np.concatenate(parts).T  # margins of rows, by trees
    k = 0 if E is None else E.shape[1]
    columns = [-G, np.ones((len(G), 1))]
    if k:
        columns.insert(1, -E)
    total = sum(sizes)
    equal = np.zeros((len(sizes), total + k + 1))
    at = 0
    for s, size in enumerate(sizes):
        equal[s, at : at + size] = 1.0
        at += size
    found = linprog(
        np.append(np.zeros(total + k), -1.0),
        A_ub=np.concatenate(columns, axis=1),
        b_ub=np.zeros(len(G)),
        A_eq=equal,
        b_eq=np.ones(len(sizes)),
        bounds=[(0, None)] * total + [(None, None)] * (k + 1),
    )
    assert found.success
    return -found.fun
