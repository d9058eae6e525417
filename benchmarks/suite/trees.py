"""Spanning trees: sums over all of them, samples, best trees, passes over the data."""

import numpy as np
from maxent._core.trees.tables import Columns
from scipy.special import logsumexp

from maxent._support.threads import effective_threads
from maxent.discrimination import (
    chow_liu_tree,
    sample_spanning_trees,
    spanning_tree_covariance,
    spanning_tree_log_partition,
)

from .common import Measured, profile


def log_weights(kind, n, batch=(), seed=0):
    """Symmetric log weights (*batch, n, n).

    "normal" ones have standard deviation one; "uniform" ones lie in (-1000, 1000), so
    that most trees have no weight to speak of; "levels" have bottlenecks at all heights
    from -1000 to 1000.
    """
    rng = np.random.default_rng(seed)
    if kind == "normal":
        a = rng.normal(size=(*batch, n, n))
    elif kind == "uniform":
        a = rng.uniform(-1000.0, 1000.0, (*batch, n, n))
    else:
        height = rng.permutation(np.linspace(-1000.0, 1000.0, n))
        a = np.minimum.outer(height, height) + rng.normal(size=(*batch, n, n))
    a = np.tril(a, -1)
    a = a + a.swapaxes(-1, -2)
    a[..., np.arange(n), np.arange(n)] = -np.inf
    return a


def letters(rows, columns, r, seed=0):
    """Codes 0 .. r - 1: every column copies an earlier one in half of the rows."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, r, (rows, columns))
    for v in range(1, columns):
        source = X[:, rng.integers(0, v)]
        X[:, v] = np.where(rng.random(rows) < 0.5, source, X[:, v])
    return X


class EdgeSums:
    """What one gradient of a tree model needs from its data, as the package does it.

    log W_uv = sum_t a_t M_uv(x_t), edge probabilities p of the trees with weights W,
    scores g_t = sum_{u < v} p_uv M_uv(x_t).
    """

    def __init__(self, X, r):
        n = X.shape[1]
        self.offset = np.arange(0, r * n + 1, r, dtype=np.intp)
        self.columns = Columns(np.ascontiguousarray(X.T, dtype=np.uint16), self.offset)
        self.column = np.repeat(np.arange(n), r)
        self.upper = self.column[:, None] < self.column[None, :]
        self.counts = np.empty((r * n, r * n))
        self.score = np.empty(len(X))

    def gradient(self, a, M):
        """Edge probabilities (n, n) and scores (T,)."""
        threads = effective_threads()
        self.columns.counts(a, threads, self.counts)
        first = self.offset[:-1]
        sums = np.add.reduceat(np.add.reduceat(M * self.counts, first, 0), first, 1)
        above = np.triu(sums, 1)
        log_weights = above + above.T
        np.fill_diagonal(log_weights, -np.inf)
        _, p = spanning_tree_log_partition(log_weights, marginals=True)
        weighted = np.where(self.upper, M * p[self.column][:, self.column], 0.0)
        self.columns.scores(weighted, threads, self.score)
        return p, self.score


class Partition(Measured):
    """log Z and edge probabilities."""

    params = (
        profile([(25, 200), (400, 1)], [(1000, 1)]),
        ["normal", "uniform", "levels"],
    )
    param_names = ("variables, graphs", "log weights")

    def data(self, size, kind):
        n, batch = size
        self.log_weights = log_weights(kind, n, (batch,))

    def work(self, tol=None):
        return spanning_tree_log_partition(self.log_weights, marginals=True)

    def objective(self, result):
        log_z, p = result
        return log_z.sum() + np.sqrt(p).sum()


class Covariance(Measured):
    """Covariance of two edge sums, along the elimination and by products."""

    params = (profile([100, 400], [1000]),)
    param_names = ("variables",)

    def data(self, n):
        self.log_weights = log_weights("normal", n)
        self.f, self.g = (np.exp(log_weights("normal", n, seed=k)) for k in (1, 2))

    def work(self, tol=None):
        return spanning_tree_covariance(self.log_weights, self.f, self.g)

    def objective(self, result):
        return result


class Samples(Measured):
    """A thousand trees, by the walk and by the elimination."""

    params = (profile([100], [400]), ["normal", "levels"])
    param_names = ("variables", "log weights")

    def data(self, n, kind):
        self.log_weights = log_weights(kind, n)

    def work(self, tol=None):
        return sample_spanning_trees(self.log_weights, 1000, random_state=0)

    def objective(self, result):
        return logsumexp(self.log_weights[result[..., 0], result[..., 1]].sum(axis=1))


class ChowLiu(Measured):
    """The tree of categorical columns, with and without weights of rows."""

    params = (profile([(10000, 50)], [(10000, 100)]), [2, 4, 20], [False, True])
    param_names = ("rows, columns", "letters", "weights")

    def data(self, size, r, weights):
        self.X = letters(*size, r)
        rng = np.random.default_rng(1)
        self.weight = rng.uniform(0.5, 2.0, size[0]) if weights else None

    def work(self, tol=None):
        return chow_liu_tree(self.X, sample_weight=self.weight, return_information=True)

    def objective(self, result):
        return result[1].sum()


class GradientPass(Measured):
    """Counts, weights, probabilities and scores of one gradient."""

    params = (profile([(10000, 25)], [(10000, 100)]), [2, 4])
    param_names = ("rows, columns", "letters")

    def data(self, size, r):
        X = letters(*size, r)
        rng = np.random.default_rng(1)
        self.a = rng.normal(size=size[0])
        self.M = 0.1 * rng.normal(size=(r * size[1],) * 2)
        self.sums = EdgeSums(X, r)

    def work(self, tol=None):
        return self.sums.gradient(self.a, self.M)

    def objective(self, result):
        return np.abs(result[1]).sum()
