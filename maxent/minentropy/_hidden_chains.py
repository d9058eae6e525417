"""Features of hidden states on chains and trees, summed over by recursions."""

from __future__ import annotations

import numpy as np

from maxent._core import latent_trees as _core
from maxent._support.threads import effective_threads
from maxent.minentropy._features import HiddenFeatures, checked_masks, side_rows

_NEAR_ONE = 0.01  # |alpha - 1| up to which differences lose more than quadrature
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


class TreeFeatures(HiddenFeatures):
    """s(y, h) = sum_v W_y[h_v] . x_v + sum_edges A_y[h_parent, h_v].

    F and its gradient come from log-sums L and marginals mu of the tempered model: with
    E_t[s] = L'(t), F is the mean of E_t[s] over t between 1 and alpha, and the weights
    of the marginals that of d (t mu) / dt; away from 1 these means are differences.

    Parameters
    ----------
    X : list of ndarray (T_i, p)
    n_states : int
    parents : ndarray of int (T,) or None
        Of a tree on all samples alike; chains of any length without.
    K : int
    """

    def __init__(self, X, n_states, parents, K):
        self.n, self.K, self.S, self.p = len(X), K, n_states, X[0].shape[1]
        self.block = n_states * (self.p + n_states)
        self.d = K * self.block
        self.lengths = np.array([len(x) for x in X])
        self.groups = []  # samples of one length: places, observations, parents
        for T in np.unique(self.lengths):
            at = np.flatnonzero(self.lengths == T)
            own = np.arange(-1, T - 1) if parents is None else parents
            x = np.ascontiguousarray(np.stack([X[i] for i in at]))
            self.groups.append((at, x, np.ascontiguousarray(own, dtype=np.intp)))
        self.masks = None  # allowed states (T_i, S) of the samples, of these outputs

    @property
    def is_visible(self):
        return self.S == 1

    def _restrict(self, hidden_mask, codes):
        shapes = [(int(T), self.S) for T in self.lengths]
        self.masks, self.codes = checked_masks(hidden_mask, shapes), codes

    def _tables(self, w, at, x, y):
        """Scores of states (m, T, S) and of pairs of states (m, T, S, S).

        Scores of states that are not allowed are -inf.
        """
        own = w.reshape(self.K, self.block)[y]
        W, A = own[: self.S * self.p], own[self.S * self.p :]
        unary = x @ W.reshape(self.S, self.p).T
        pair = np.broadcast_to(A.reshape(self.S, self.S), (*unary.shape, self.S))
        if self.masks is not None:
            for row in np.flatnonzero(self.codes[at] == y):
                unary[row][~self.masks[at[row]]] = -np.inf
        return np.ascontiguousarray(unary), np.ascontiguousarray(pair)

    def _sums(self, tables, parents, t, marginals=True):
        """L, E_t[s], and the marginals of states and edges with their tangents."""
        unary, pair = tables
        n, none = len(unary), np.empty((0, 0, 0))
        L, mean = np.empty(n), np.empty(n)
        nodes = [np.empty_like(unary) if marginals else none for _ in range(2)]
        none = np.empty((0, 0, 0, 0))
        edges = [np.empty_like(pair) if marginals else none for _ in range(2)]
        _core.tree_sums(
            *(unary, pair, parents, float(t), L, mean, *nodes, *edges),
            effective_threads(),
        )
        return L, mean, (nodes[0], edges[0]), (nodes[1], edges[1])

    def _best_states(self, tables, parents):
        unary, pair = tables
        value = np.empty(len(unary))
        states = np.empty(unary.shape[:2], dtype=np.intp)
        _core.tree_best(unary, pair, parents, value, states, effective_threads())
        return value, states

    def _pooled(self, x, weights):
        """Features (m, block) under weights of states and edges."""
        nodes, edges = weights
        own = np.einsum("ivs,ivp->isp", nodes, x).reshape(len(x), -1)
        return np.concatenate([own, edges.sum(axis=1).reshape(len(x), -1)], axis=1)

    def _indicators(self, states, parents):
        """Weights of states and edges that are one at given states."""
        one = np.eye(self.S)
        nodes = one[states]
        edges = np.zeros((*nodes.shape, self.S))
        inner = parents >= 0
        above = one[states[:, parents[inner]]]
        edges[:, inner] = above[..., None] * nodes[:, inner, None, :]
        return nodes, edges

    def _renyi(self, tables, parents, a, gradient):
        """F (m,) and weights of states and edges at one order."""
        if a == np.inf:
            F, states = self._best_states(tables, parents)
            return F, self._indicators(states, parents)
        if abs(a - 1.0) <= _NEAR_ONE:
            return self._averaged(tables, parents, a, gradient)
        L, _, mu, _ = self._sums(tables, parents, 1.0, gradient)
        if a == 0:
            return L - np.log(np.isfinite(tables[0]).sum(axis=2)).sum(axis=1), mu
        La, _, mu_a, _ = self._sums(tables, parents, a, gradient)
        b = a - 1.0
        weights = [(a * u - p) / b for u, p in zip(mu_a, mu, strict=True)]
        return (La - L) / b, weights

    def _averaged(self, tables, parents, a, gradient):
        """Means over t between 1 and a, by Gauss-Legendre."""
        nodes, shares = (_NODES, _WEIGHTS / 2) if a != 1 else ([-1.0], [1.0])
        F, weights = 0.0, [0.0, 0.0]
        for node, share in zip(nodes, shares, strict=True):
            t = 1.0 + (a - 1.0) * 0.5 * (1.0 + node)
            _, mean, mu, tangent = self._sums(tables, parents, t, gradient)
            F = F + share * mean
            for k in range(2 if gradient else 0):
                weights[k] = weights[k] + share * (mu[k] + t * tangent[k])
        return F, weights

    def _collect(self, w, one, gradient=True):
        """Values (n, K) and G of a function of the tables of each output."""
        values = np.empty((self.n, self.K))
        G = np.empty((self.n, self.K, self.block)) if gradient else None
        for at, x, parents in self.groups:
            for y in range(self.K):
                values[at, y], weights = one(self._tables(w, at, x, y), parents, y)
                if gradient:
                    G[at, y] = self._pooled(x, weights)
        return values, G

    def renyi(self, w, alpha, gradient=True):
        def one(tables, parents, y):
            return self._renyi(tables, parents, alpha[y], gradient)

        return self._collect(w, one, gradient)

    def tempered(self, w, t):
        def one(tables, parents, y):
            if t == np.inf:
                return self._renyi(tables, parents, t, True)
            L, _, mu, _ = self._sums(tables, parents, t)
            return L, mu

        return self._collect(w, one)

    def spread(self, w):
        # the range is at most the sum of those of the m nodes and edges, its square m
        # times the sum of their squares, each at most 2 |s - mean|^2
        def one(tables, parents, y):
            inner = parents >= 0
            m = 2.0 * (len(parents) + inner.sum())
            nodes = _centred(tables[0], (2,))
            edges = _centred(tables[1], (2, 3)) * inner[:, None, None]
            q = m * ((nodes**2).sum(axis=(1, 2)) + (edges**2).sum(axis=(1, 2, 3)))
            return q, (m * nodes, m * edges)

        return self._collect(w, one)

    def best(self, w):
        out = np.full((self.n, self.K, self.lengths.max()), -1, dtype=np.intp)
        for at, x, parents in self.groups:
            for y in range(self.K):
                _, states = self._best_states(self._tables(w, at, x, y), parents)
                out[at, y, : len(parents)] = states
        return out

    def posteriors(self, w):
        """Marginals (T_i, S) of every sample and output."""
        out = [[None] * self.K for _ in range(self.n)]
        for at, x, parents in self.groups:
            for y in range(self.K):
                mu = self._sums(self._tables(w, at, x, y), parents, 1.0)[2][0]
                for i, own in zip(at, mu, strict=True):
                    out[i][y] = own
        return out

    def split(self, values, codes):
        """Marginals of the outputs `codes`."""
        return [own[y] for own, y in zip(values, codes, strict=True)]

    def random(self, rng):
        def one(tables, parents, y):
            draw = np.where(np.isfinite(tables[0]), rng.random(tables[0].shape), -1.0)
            return 0.0, self._indicators(draw.argmax(axis=2), parents)

        return self._collect(np.zeros(self.d), one)[1]

    def rows(self, G, i, y):
        return side_rows(G, i, y, self.K)

    def at_weights(self, G, w):
        return np.einsum("iyp,yp->iy", G, w.reshape(self.K, self.block))


def _centred(tables, axes):
    """Finite entries less their means over axes, zero elsewhere."""
    allowed = np.isfinite(tables)
    mean = np.mean(tables, axis=axes, keepdims=True, where=allowed)
    return np.where(allowed, tables - mean, 0.0)
