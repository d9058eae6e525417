"""Exact sums of a trigram model whose words have topics, for a block of documents.

With u, v, w three words in a row, each with a topic of its own, and n-gram weights for
observed n-grams only (B bigrams, N trigrams), summing the topics out leaves

    phi(u)       = sum_t exp(uni_u + topic_tu + doc_t)
    psi(u, v)    = sum_t exp(the same of v + bi_uv + topic_t,uv)     uv observed
    chi(u, v, w) = sum_t exp(that of (v, w) + tri_uvw + topic_t,uvw) uvw observed

and psi falls back to phi(v), chi to psi(v, w). Sums over all words are those of the
fall-backs plus corrections over the observed n-grams:

    S = sum phi,  R(v) = S + sum_{vw observed} (psi(v, w) - phi(w))
    X(uv) = R(v) + sum_{uvw observed} (chi - psi(v, w))
    Z_u = sum_v phi(v) R(v) + sum_{uv observed} [psi(u, v) X(uv) - phi(v) R(v)]
    Z = sum_u phi(u) Z_u

A document costs O(V + B + N) besides the potentials, which are matrix products of
exponentials of the weights with the documents' topics. Tables are (n, K), K documents
side by side: an n-gram's neighbours are looked up once for all K, in one cache line.
Compiled by Numba when first used, kept on disk.

Source: Wang, Schuurmans & Zhao (2012), section 8, eqs. (38)-(44), rearranged.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, inline="always")
def _neighbour_sums(phi, psi, first, second):
    """Sums over all words (K,), and for each word over its neighbours (V, K).

    S is that of phi, `base` that of phi(v) R(v). R(v) is the sum over the words after
    v, A(v) the mass of the pairs that end in v, and `before` the sum of phi(u) over
    observed bigrams u v.
    """
    V, K = phi.shape
    S, before = np.zeros(K), np.zeros((V, K))
    for v in range(V):
        for k in range(K):
            S[k] += phi[v, k]
    R, A = np.empty((V, K)), np.empty((V, K))
    for v in range(V):
        for k in range(K):
            R[v, k] = S[k]
            A[v, k] = S[k] * phi[v, k]
    for b in range(len(psi)):
        u, v = first[b], second[b]
        for k in range(K):
            more = psi[b, k] - phi[v, k]
            R[u, k] += more
            A[v, k] += phi[u, k] * more
            before[v, k] += phi[u, k]
    base = np.zeros(K)
    for v in range(V):
        for k in range(K):
            base[k] += phi[v, k] * R[v, k]
    return S, base, R, A, before


@njit(cache=True, nogil=True)
def multiplicities(phi, psi, chi, first, second, t_uv, t_vw, r1, r2, r3):
    """Z (K,), and its derivatives by phi (r1), psi (r2) and chi (r3), (n, K).

    phi * r1 is the mass of words whose topic uses phi, not divided by Z, and so on;
    the masses add up to 3 Z. r1, r2 and r3 are overwritten.
    """
    V, K = phi.shape
    B, N = len(psi), len(chi)
    S, base, R, A, before = _neighbour_sums(phi, psi, first, second)
    ends = np.zeros((V, K))  # sums of A(u) over the u of observed u w
    for b in range(B):
        u, v = first[b], second[b]
        for k in range(K):
            r2[b, k] = R[v, k]
            ends[v, k] += A[u, k]
    for n in range(N):
        b, c = t_uv[n], t_vw[n]
        for k in range(K):
            r2[b, k] += chi[n, k] - psi[c, k]
    for v in range(V):
        for k in range(K):
            r1[v, k] = base[k]
    for b in range(B):
        u, v = first[b], second[b]
        for k in range(K):
            r1[u, k] += psi[b, k] * r2[b, k] - phi[v, k] * R[v, k]
            r2[b, k] = phi[u, k] * r2[b, k] + A[u, k]
    Z, total = np.zeros(K), np.zeros(K)
    for u in range(V):
        for k in range(K):
            Z[k] += phi[u, k] * r1[u, k]
            total[k] += A[u, k]
    for u in range(V):
        for k in range(K):
            r1[u, k] += R[u, k] * (S[k] - before[u, k]) + total[k] - ends[u, k]
    for n in range(N):
        b, c = t_uv[n], t_vw[n]
        u = first[b]
        for k in range(K):
            left = phi[u, k] * psi[b, k]
            r2[c, k] -= left
            r3[n, k] = left
    return Z


@njit(cache=True, nogil=True)
def add_rows(rows, at, out):
    """out[at_i] += rows_i."""
    for i in range(len(at)):
        for k in range(rows.shape[1]):
            out[at[i], k] += rows[i, k]


@njit(cache=True, nogil=True)
def successors(phi, psi, chi, first, second, t_uv, t_vw, R, X):
    """Sums over the next word: R(v) after a word, X(uv) after an observed bigram."""
    R[:] = phi.sum()
    for b in range(len(psi)):
        R[first[b]] += psi[b] - phi[second[b]]
    for b in range(len(psi)):
        X[b] = R[second[b]]
    for n in range(len(chi)):
        X[t_uv[n]] += chi[n] - psi[t_vw[n]]
