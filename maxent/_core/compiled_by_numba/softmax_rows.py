"""Passes of conditional maximum entropy over sparse rows, forward and back in one.

    s_i = x_i' W,   p_i = softmax(s_i),   loss = sum w_i (log sum e^{s_i} - s_i[y_i])
    gradient = sum w_i x_i (p_i - e_{y_i})'
    Hessian V = sum w_i x_i (p_i * (x_i' V) - p_i (p_i' x_i' V))'

A row of X is read once from memory for both directions. Weights lie by feature, (d, K),
so that a nonzero meets K neighbours. Compiled by Numba when first used, kept on disk.
"""

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def value_gradient(indptr, indices, data, y, w, W, bias, P, G, g):
    """Loss; P (n, K) probabilities, G (d, K) and g (K,) gradients, which are zeroed."""
    n, K = P.shape
    G[:] = 0.0
    g[:] = 0.0
    loss = 0.0
    s = np.empty(K)
    for i in range(n):
        for k in range(K):
            s[k] = bias[k]
        for e in range(indptr[i], indptr[i + 1]):
            row, x = W[indices[e]], data[e]
            for k in range(K):
                s[k] += x * row[k]
        top = s[0]
        for k in range(1, K):
            top = max(top, s[k])
        score, total = s[y[i]], 0.0
        for k in range(K):
            s[k] = math.exp(s[k] - top)
            total += s[k]
        loss += w[i] * (top + math.log(total) - score)
        for k in range(K):
            s[k] /= total
            P[i, k] = s[k]
            s[k] *= w[i]
        s[y[i]] -= w[i]
        for k in range(K):
            g[k] += s[k]
        for e in range(indptr[i], indptr[i + 1]):
            out, x = G[indices[e]], data[e]
            for k in range(K):
                out[k] += x * s[k]
    return loss


@njit(cache=True, nogil=True)
def hessian_product(indptr, indices, data, w, P, V, v, H, h):
    """H (d, K) and h (K,): Hessian of the loss times (V, v); they are zeroed."""
    n, K = P.shape
    H[:] = 0.0
    h[:] = 0.0
    t = np.empty(K)
    for i in range(n):
        for k in range(K):
            t[k] = v[k]
        for e in range(indptr[i], indptr[i + 1]):
            row, x = V[indices[e]], data[e]
            for k in range(K):
                t[k] += x * row[k]
        mean = 0.0
        for k in range(K):
            mean += P[i, k] * t[k]
        for k in range(K):
            t[k] = w[i] * P[i, k] * (t[k] - mean)
            h[k] += t[k]
        for e in range(indptr[i], indptr[i + 1]):
            out, x = H[indices[e]], data[e]
            for k in range(K):
                out[k] += x * t[k]


@njit(cache=True, nogil=True)
def diagonal(indptr, indices, data, w, P, D, d):
    """D (d, K) and d (K,): diagonal of the Hessian of the loss; they are zeroed."""
    n, K = P.shape
    D[:] = 0.0
    d[:] = 0.0
    t = np.empty(K)
    for i in range(n):
        for k in range(K):
            t[k] = w[i] * P[i, k] * (1.0 - P[i, k])
            d[k] += t[k]
        for e in range(indptr[i], indptr[i + 1]):
            out, x = D[indices[e]], data[e] * data[e]
            for k in range(K):
                out[k] += x * t[k]
