"""Brute force for log-linear models: explicit sums, no shared code with the package."""

import itertools
import math

import numpy as np


def finite(features, lam, log_q=None):
    """(log Phi, p) over states, by plain sums."""
    weights = []
    for s in range(len(features)):
        u = sum(lam[i] * features[s][i] for i in range(len(lam)))
        weights.append(u + (0.0 if log_q is None else log_q[s]))
    top = max(weights)
    total = math.fsum(math.exp(u - top) for u in weights)
    log_phi = top + math.log(total)
    return log_phi, np.array([math.exp(u - log_phi) for u in weights])


def latent(features, lam, shares):
    """L, eta, E f, H, Q and Hm of p(y, z), features (n_y, n_z, N), shares (n_y,)."""
    n_y, n_z, n = features.shape
    log_phi, p = finite(features.reshape(n_y * n_z, n), lam)
    p = p.reshape(n_y, n_z)
    mean = np.einsum("yz,yzn->n", p, features)
    entropy = -np.sum(p * np.log(p))
    L = Q = Hm = 0.0
    eta = np.zeros(n)
    for y in range(n_y):
        marginal = p[y].sum()
        given = p[y] / marginal
        L += shares[y] * math.log(marginal)
        for z in range(n_z):
            eta += shares[y] * given[z] * features[y, z]
            Q += shares[y] * given[z] * math.log(p[y, z])
            Hm -= shares[y] * given[z] * math.log(given[z])
    return {
        "L": L,
        "eta": eta,
        "mean": mean,
        "H": entropy,
        "Q": Q,
        "Hm": Hm,
        "log_phi": log_phi,
        "p": p,
    }


def boltzmann(W, b):
    """log Phi and E x x' by a loop over all states."""
    M = len(b)
    states = list(itertools.product([0, 1], repeat=M))
    energies = []
    for x in states:
        e = sum(b[i] for i in range(M) if x[i])
        e += sum(W[i, j] for i in range(M) for j in range(i) if x[i] and x[j])
        energies.append(e)
    top = max(energies)
    weights = [math.exp(e - top) for e in energies]
    total = math.fsum(weights)
    second = np.zeros((M, M))
    for x, w in zip(states, weights):
        on = np.flatnonzero(x)
        second[np.ix_(on, on)] += w / total
    return top + math.log(total), second


def coupling(rng, M, scale=1.0):
    """Random symmetric weights with zero diagonal, and biases."""
    W = rng.normal(scale=scale, size=(M, M))
    W = np.triu(W, 1)
    return W + W.T, rng.normal(scale=scale, size=M)
