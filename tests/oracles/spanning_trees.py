"""All spanning trees by enumeration, and edge probabilities with many digits."""

import functools
import itertools

import mpmath
import numpy as np


@functools.cache
def all_trees(n):
    """Edges (n^(n-2), n - 1, 2) of all trees on n nodes, decoded from Pruefer codes."""
    trees = []
    for code in itertools.product(range(n), repeat=n - 2):
        degree = [1 + code.count(v) for v in range(n)]
        edges = []
        for u in code:
            leaf = degree.index(1)
            edges.append((min(u, leaf), max(u, leaf)))
            degree[leaf] -= 1
            degree[u] -= 1
        u, v = (w for w in range(n) if degree[w] == 1)
        edges.append((u, v))
        trees.append(sorted(edges))
    return np.array(trees)


def tree_sums(values):
    """Sum of an (n, n) array over the edges of every tree."""
    trees = all_trees(len(values))
    return values[trees[..., 1], trees[..., 0]].sum(axis=1)


def distribution(log_weights):
    """log Z and the probability of every tree."""
    score = tree_sums(log_weights)
    top = score.max()
    mass = np.exp(score - top)
    return top + np.log(mass.sum()), mass / mass.sum()


def marginals(log_weights):
    """log Z and the probability of every edge."""
    n = len(log_weights)
    log_z, probability = distribution(log_weights)
    trees = all_trees(n)
    out = np.zeros((n, n))
    for k in range(n - 1):
        np.add.at(out, (trees[:, k, 0], trees[:, k, 1]), probability)
    return log_z, out + out.T


def covariance(log_weights, f, g):
    """Covariance of the sums of f and of g over the edges."""
    _, probability = distribution(log_weights)
    f, g = tree_sums(f), tree_sums(g)
    return probability @ ((f - probability @ f) * (g - probability @ g))


def digits_for(log_weights):
    """Decimal digits that hold products of two weights beside one another."""
    finite = log_weights[np.isfinite(log_weights)]
    return int(60 + 2 * np.ptp(finite) / np.log(10))


def exact_covariances(log_weights, *values):
    """Matrix of `covariance`, also where one tree has nearly all the probability."""
    trees = all_trees(len(log_weights))
    with mpmath.workdps(digits_for(log_weights)):

        def sums(values):
            edges = values[trees[..., 1], trees[..., 0]].tolist()
            return [mpmath.fsum(row) for row in edges]

        def mean(values):
            return mpmath.fdot(mass, values) / z

        def centred(values):
            middle = mean(values)
            return [value - middle for value in values]

        mass = [mpmath.exp(score) for score in sums(log_weights)]
        z = mpmath.fsum(mass)
        rest = [centred(sums(value)) for value in values]
        return np.array(
            [[float(mean(a * b for a, b in zip(f, g))) for g in rest] for f in rest]
        )


def exact_marginals(log_weights):
    """log Z and edge probabilities by the inverse Laplacian, with all digits needed.

    Inverting loses as many digits as the weights span decades, squared at worst.
    """
    n = len(log_weights)
    with mpmath.workdps(digits_for(log_weights)):
        W = [[mpmath.exp(mpmath.mpf(float(x))) for x in row] for row in log_weights]
        Q = mpmath.matrix(n - 1, n - 1)
        for i in range(n - 1):
            for j in range(n - 1):
                Q[i, j] = -W[i][j]
            Q[i, i] = mpmath.fsum(W[i])
        G = Q**-1
        log_z = float(mpmath.log(mpmath.det(Q)))
        out = np.zeros((n, n))
        for i in range(n):
            for j in range(i):
                R = G[j, j]
                if i < n - 1:
                    R += G[i, i] - 2 * G[i, j]
                out[i, j] = out[j, i] = float(W[i][j] * R)
    return log_z, out


def plain_marginals(log_weights):
    """The textbook in double precision: numpy's inverse of the Laplacian."""
    W = np.exp(log_weights - log_weights.max())
    G = np.zeros_like(W)
    G[:-1, :-1] = np.linalg.inv((np.diag(W.sum(axis=0)) - W)[:-1, :-1])
    d = np.diag(G)
    return W * (d[:, None] + d[None, :] - 2 * G)
