"""Exact sums of a trigram model whose words have topics, one document at a time.

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

A document costs O((V + B + N) T). Compiled by Numba when first used, kept on disk.

Source: Wang, Schuurmans & Zhao (2012), section 8, eqs. (38)-(44), rearranged.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def potentials(table, topics, share, out):
    """out[i] = sum_k share_k table[i, topics_k]: phi, psi or chi of one document.

    table (n, T) are exponentials of all weights but the document's, share those of the
    document's weights, for its topics.
    """
    for i in range(len(out)):
        total = 0.0
        for k in range(len(topics)):
            total += share[k] * table[i, topics[k]]
        out[i] = total


@njit(cache=True, nogil=True)
def masses(phi, psi, chi, first, second, t_uv, t_vw, n1, n2, n3):
    """Z, and the masses of words whose topic uses phi (n1), psi (n2) and chi (n3).

    Not divided by Z; n1, n2 and n3 are overwritten and add up to 3 Z.
    """
    V, B, N = len(phi), len(psi), len(chi)
    S = phi.sum()
    R, A = np.full(V, S), S * phi
    Zu = np.zeros(V)
    before, ends = np.zeros(V), np.zeros(V)  # over the u of observed bigrams u w
    for b in range(B):
        u, v = first[b], second[b]
        R[u] += psi[b] - phi[v]
        A[v] += phi[u] * (psi[b] - phi[v])
        before[v] += phi[u]
    X = np.empty(B)
    for b in range(B):
        X[b] = R[second[b]]
        ends[second[b]] += A[first[b]]
    for n in range(N):
        X[t_uv[n]] += chi[n] - psi[t_vw[n]]
    base = 0.0
    for v in range(V):
        base += phi[v] * R[v]
    Zu[:] = base
    for b in range(B):
        u, v = first[b], second[b]
        Zu[u] += psi[b] * X[b] - phi[v] * R[v]
        n2[b] = phi[u] * psi[b] * X[b] + psi[b] * A[u]
    Z, total = 0.0, A.sum()
    for u in range(V):
        Z += phi[u] * Zu[u]
        n1[u] = phi[u] * Zu[u]
        n1[u] += R[u] * phi[u] * (S - before[u]) + phi[u] * (total - ends[u])
    for n in range(N):
        u = first[t_uv[n]]
        left = phi[u] * psi[t_uv[n]]
        n2[t_vw[n]] -= left * psi[t_vw[n]]
        n3[n] = left * chi[n]
    return Z


@njit(cache=True, nogil=True)
def spread(mass, table, topics, share, potential, out, own):
    """Split masses over topics by their local posteriors.

    Adds mass_i share_k table[i, t] / potential_i to out[i, t] and, summed over i, to
    own[k], t the k-th topic of the document.
    """
    for i in range(len(mass)):
        if mass[i] != 0.0:
            m = mass[i] / potential[i]
            for k in range(len(topics)):
                p = m * share[k] * table[i, topics[k]]
                out[i, topics[k]] += p
                own[k] += p


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
