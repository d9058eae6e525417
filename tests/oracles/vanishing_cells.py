"""Primal values of trees with random tables, tree by tree, and limits of them."""

import itertools

import numpy as np
from scipy.special import gammaln, logsumexp, psi

from oracles.spanning_trees import all_trees
from oracles.tree_classifiers import directed


class EveryTree:
    """All trees with Dirichlet tables: counts (D, D) of pairs, letters on the diagonal.

    Each tree is directed; its first column has one Dirichlet distribution, every other
    column one for each letter of its parent.
    """

    def __init__(self, counts, sizes, log_weights):
        first = np.concatenate([[0], np.cumsum(sizes)])
        self.at = [slice(a, b) for a, b in itertools.pairwise(first)]
        self.counts, self.n = counts, len(sizes)
        self.trees = [directed(edges, self.n) for edges in all_trees(self.n)]
        self.log_weights = [
            sum(log_weights[u, v] for u, v in edges) for edges in all_trees(self.n)
        ]

    def tables(self, tree):
        """Dirichlet parameters of a tree: (column, parent or None, (rows, letters))."""
        for child, parent in tree:
            if parent is None:
                own = self.counts[self.at[child], self.at[child]].diagonal()
                yield child, None, own[None]
            else:
                yield child, parent, self.counts[self.at[parent], self.at[child]]


def dirichlet_constant(a):
    """Sum of the log normalisers of rows of Dirichlet parameters."""
    return float((gammaln(a).sum(axis=1) - gammaln(a.sum(axis=1))).sum())


def dirichlet_divergence(a, b):
    """KL from Dirichlet distributions with parameters b to those with a, over rows."""
    logs = psi(a) - psi(a.sum(axis=1, keepdims=True))
    return dirichlet_constant(b) - dirichlet_constant(a) + float(((a - b) * logs).sum())


def posterior(trees, counts, prior):
    """Log-probabilities of the trees when tables with these counts are the posterior.

    `trees` holds the prior's counts, `prior` its log-probabilities.
    """
    after = EveryTree.__new__(EveryTree)
    after.__dict__.update(vars(trees), counts=counts)
    change = [
        sum(dirichlet_constant(a) for _, _, a in after.tables(tree))
        - sum(dirichlet_constant(b) for _, _, b in trees.tables(tree))
        for tree in trees.trees
    ]
    log_p = prior + np.array(change)
    return after, log_p - logsumexp(log_p)


def divergence(trees, prior, after, log_p):
    """KL of trees and tables from the prior's."""
    total = 0.0
    for before, now, tree, old, new in zip(
        [list(trees.tables(tree)) for tree in trees.trees],
        [list(after.tables(tree)) for tree in trees.trees],
        trees.trees,
        prior,
        log_p,
        strict=True,
    ):
        assert len(before) == len(now) == len(tree)
        inner = sum(
            dirichlet_divergence(a, b)
            for (_, _, a), (_, _, b) in zip(now, before, strict=True)
        )
        total += np.exp(new) * (new - old + inner)
    return float(total)


def expected_logs(after, log_p, X):
    """E log p of rows under trees and tables."""
    out = np.zeros(len(X))
    for tree, weight in zip(after.trees, np.exp(log_p), strict=True):
        for child, parent, a in after.tables(tree):
            logs = psi(a) - psi(a.sum(axis=1, keepdims=True))
            row = 0 if parent is None else X[:, parent]
            out += weight * logs[row, X[:, child]]
    return out


def rare_trees(trees, prior, after, log_p, duals, X, share):
    """A share of other trees whose E log p of rows have -z where a cell has a dual z.

    For every such cell the likeliest tree with its edge, the count at the cell so small
    that E log T = -z / share. Returns the sum of what they add to E log p (len(X),) and
    of their KL from the prior's, both times the share.
    """
    first = np.array([own.start for own in trees.at])
    logs, apart = np.zeros(len(X)), 0.0
    for i, j in np.argwhere(np.triu(duals)):
        edge = {int(np.searchsorted(first, k, "right")) - 1 for k in (i, j)}
        holds = [
            any({child, parent} == edge for child, parent in tree)
            for tree in trees.trees
        ]
        best = int(np.where(holds, log_p, -np.inf).argmax())
        counts = after.counts.copy()
        counts[i, j] = counts[j, i] = share / duals[i, j]
        rare = EveryTree.__new__(EveryTree)
        rare.__dict__.update(vars(trees), counts=counts, trees=[trees.trees[best]])
        logs += share * expected_logs(rare, np.zeros(1), X)
        before = EveryTree.__new__(EveryTree)
        before.__dict__.update(vars(trees), trees=rare.trees)
        old, new = prior[best : best + 1], np.zeros(1)
        apart += share * divergence(before, old, rare, new)
    return logs, apart
