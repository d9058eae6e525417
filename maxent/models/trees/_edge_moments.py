"""Moments of the edges of a random tree: probabilities and covariances."""

from __future__ import annotations

import contextlib
import functools
import math

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.lapack import dpstrf

from maxent._core.trees import laplacian as _laplacian
from maxent._core.trees import tree_tables as _tree_tables
from maxent._support.threads import single_threaded_blas
from maxent.models.trees._tree_input import refuse

SMALL = 64  # columns up to which the covariance of all edges is stored, 32 MB
_FEW = 32  # columns up to which products with what is stored are the faster ones
_SPAN = 600.0  # log weights farther apart than this leave single digits of G
_STEP = 1e-6  # of log weights


def partition(log_weights):
    """log Z and edge probabilities (n, n) of one distribution over trees."""
    n = len(log_weights)
    log_z, probability = np.empty(1), np.empty((1, n, n))
    status = np.zeros(1, dtype=np.intc)
    with single_threaded_blas():
        _laplacian.partition(log_weights[None], 0, 1, log_z, probability, status)
    if status[0]:
        refuse(int(status[0]), log_weights, ())
    return float(log_z[0]), probability[0]


@functools.lru_cache(maxsize=8)
def _edges(n):
    """Nodes u and v of all edges u < v."""
    return np.triu_indices(n, 1)


def edge_vector(table):
    """Entries of a table (n, n) at the edges u < v, (n (n - 1) / 2,)."""
    return table[_edges(len(table))]


def edge_table(values):
    """The symmetric table (n, n) of values at the edges u < v."""
    n = math.isqrt(2 * len(values)) + 1
    out = np.zeros((n, n))
    out[_edges(n)] = values
    return out + out.T


class _EdgeCovariance:
    """Covariances between the edges of a random tree, by products."""

    def along(self, f):
        """:meth:`product` for values f (p,) at the edges u < v alone, (p,)."""
        return edge_vector(self.product(edge_table(f)))


class DenseEdgeCovariance(_EdgeCovariance):
    """Covariance (p, p) of the edges of few columns, stored.

    The edges of a random tree are a determinantal process (JMJ 1999, eq. 59): with the
    vectors q of its projection, ``Cov(e, f) = [e = f] P(e) - (q_e' q_f)^2``.
    """

    def __init__(self, log_weights):
        n = len(log_weights)
        self.edges = _edges(n)
        q = np.empty((len(self.edges[0]), n - 1))
        status = _tree_tables.edge_vectors(log_weights, q)
        if status:
            refuse(status, log_weights, ())
        with single_threaded_blas():
            self.matrix = q @ q.T
        probability = self.matrix.diagonal().copy()
        np.multiply(self.matrix, -self.matrix, out=self.matrix)
        self.matrix.flat[:: len(q) + 1] += probability
        self._root = None

    def product(self, f):
        """Covariances of every edge with the sum of f (n, n) over the edges, (n, n)."""
        return edge_table(self.along(f[self.edges]))

    def along(self, f):
        return self.matrix @ f

    def root(self):
        """R (p, r) with covariance R R'."""
        if self._root is None:
            self._root = semidefinite_root(self.matrix)
        return self._root


class ConditionalEdgeCovariance(DenseEdgeCovariance):
    """The same where weights are so far apart that the vectors q lose their digits.

    ``Cov(e, f) = P(e) (P(f | e) - P(f))``, one partition function per edge: those keep
    their digits however far apart the weights are.
    """

    def __init__(self, log_weights, probabilities):
        self.edges = _edges(len(log_weights))
        known = log_weights[np.isfinite(log_weights)]
        certain = known.max() + 2.0 * (known.max() - known.min()) + _SPAN
        probability = probabilities[self.edges]
        self.matrix = np.zeros((len(probability), len(probability)))
        for e in np.flatnonzero((probability > 0.0) & (probability < 1.0)):
            u, v = self.edges[0][e], self.edges[1][e]
            given = log_weights.copy()
            given[u, v] = given[v, u] = certain
            conditional = partition(given)[1][self.edges]
            self.matrix[e] = probability[e] * (conditional - probability)
            self.matrix[e, e] = probability[e] * (1.0 - probability[e])
        self.matrix = 0.5 * (self.matrix + self.matrix.T)
        self._root = None


class LaplacianEdgeCovariance(_EdgeCovariance):
    """The same by matrix products of (n, n); never (p, p).

    Through the inverse of the Laplacian, G: along f the probabilities move by
    ``p f - W (M_uu + M_vv - 2 M_uv)`` with ``M = G L[W f] G``. Its digits go with those
    of G, which is enough for the directions of a solver and nothing else; LinAlgError
    where fewer than six are left.
    """

    def __init__(self, log_weights):
        self.W = np.exp(log_weights - log_weights.max())
        degree = self.W.sum(axis=1)
        # nodes on their own scale: their weights may differ by orders of magnitude
        scale = 1.0 / np.sqrt(degree)
        Q = np.diag(degree) - self.W
        Q *= np.outer(scale, scale)
        root = int(degree.argmax())
        rest = np.delete(np.arange(len(Q)), root)
        with single_threaded_blas():
            lower = cho_factor(Q[np.ix_(rest, rest)])
            inner = cho_solve(lower, np.eye(len(rest)))
        if not inner.diagonal().max() < 1e10:  # fewer than six digits are left
            raise LinAlgError("the weights are too far apart")
        self.G = np.zeros_like(Q)
        self.G[np.ix_(rest, rest)] = inner * np.outer(scale[rest], scale[rest])
        self.p = self.W * _resistances(self.G)

    def product(self, f):
        """Covariances of every edge with the sum of f (n, n) over the edges, (n, n)."""
        n = len(f)
        mean = float((self.p * f).sum()) / (2.0 * (n - 1))
        f = f - mean  # every tree has n - 1 edges: a constant changes nothing
        flow = self.W * f
        L = np.diag(flow.sum(axis=1)) - flow
        with single_threaded_blas():
            M = self.G @ L @ self.G
        M = 0.5 * (M + M.T)
        out = self.p * f - self.W * _resistances(M)
        np.fill_diagonal(out, 0.0)
        return out


def _resistances(G):
    """G_uu + G_vv - 2 G_uv."""
    own = G.diagonal()
    return own[:, None] + own[None, :] - 2.0 * G


class FiniteDifferenceEdgeCovariance(_EdgeCovariance):
    """The same by differences of edge probabilities, where G has lost its digits.

    Probabilities keep theirs however far apart the weights are. Differences of this
    step are right to about six digits of the largest entry.
    """

    def __init__(self, log_weights, probabilities):
        self.log_weights, self.probabilities = log_weights, probabilities

    def product(self, f):
        """Covariances of every edge with the sum of f (n, n) over the edges, (n, n)."""
        size = float(np.abs(f).max(initial=0.0))
        if not size:
            return np.zeros_like(f)
        moved = partition(self.log_weights + f * (_STEP / size))[1]
        return (moved - self.probabilities) * (size / _STEP)


def stored_edge_covariance(log_weights, probabilities):
    """The covariance of all edges as a matrix."""
    if _within_span(log_weights):
        return DenseEdgeCovariance(log_weights)
    return ConditionalEdgeCovariance(log_weights, probabilities)


def _within_span(log_weights):
    known = log_weights[~np.isneginf(log_weights)]
    return known.max() - known.min() <= _SPAN


def edge_covariance(log_weights, probabilities):
    """Products with the covariance of the edges, by the method that suits its size."""
    if _within_span(log_weights):
        if len(log_weights) <= _FEW:
            return DenseEdgeCovariance(log_weights)
        with contextlib.suppress(LinAlgError):
            return LaplacianEdgeCovariance(log_weights)
    return FiniteDifferenceEdgeCovariance(log_weights, probabilities)


def semidefinite_root(A):
    """R with A = R R' up to rounding, for positive semidefinite A (n, n)."""
    tiny = 1e-14 * float(A.diagonal().max(initial=0.0))
    with single_threaded_blas():
        factor, pivot, rank, _ = dpstrf(A, tol=max(tiny, 1e-300), lower=1)
    out = np.zeros((len(A), rank))
    out[pivot - 1] = np.tril(factor)[:, :rank]
    return out
