"""Hidden states of small trees, one by one: scores and features of every path."""

from itertools import product

import numpy as np


def paths(x, n_states, parents, K):
    """Features (K, S^T, d) of all paths of one sample, and the paths (S^T, T)."""
    T, p = x.shape
    S, block = n_states, n_states * (p + n_states)
    states = np.array(list(product(range(S), repeat=T)))
    psi = np.zeros((K, len(states), K * block))
    for h, path in enumerate(states):
        own = np.zeros(block)
        for t, s in enumerate(path):
            own[s * p : (s + 1) * p] += x[t]
            if parents[t] >= 0:
                own[S * p + path[parents[t]] * S + s] += 1.0
        for y in range(K):
            psi[y, h, y * block : (y + 1) * block] = own
    return psi, states
