"""Product kernels by enumeration, summation and quadrature, from densities only."""

from itertools import product

import numpy as np
from scipy.special import logsumexp

from oracles.sequence_models import log_markov


def log_mixture(log_w, log_p, log_w2, log_q, rho, log_step=0.0):
    """log of the sum over points of both sums over components, to the power rho.

    log_p (components, points).
    """
    left = logsumexp(rho * (np.asarray(log_w)[:, None] + log_p), axis=0)
    right = logsumexp(rho * (np.asarray(log_w2)[:, None] + log_q), axis=0)
    return logsumexp(left + right) + log_step


def log_markov_kernel(p, q, rho, horizon):
    """Markov chains (start, transition, order) over all sequences x_0 .. x_T."""
    O = np.shape(p[1])[1]
    terms = [
        rho * (log_markov(*p, x) + log_markov(*q, x))
        for x in product(range(O), repeat=horizon + 1)
    ]
    return logsumexp(terms)


def log_observed_kernel(log_p, log_q, rho):
    """log sum_x p(x)^rho q(x)^rho from the logs of all x."""
    return logsumexp(rho * (log_p + log_q))


def all_sequences(n_symbols, length):
    return [np.array(x) for x in product(range(n_symbols), repeat=length)]


def geometric_hmm_kernel(p, q, rho, g):
    """(1 - g) sum_T g^T k_T of two chains (start, A, E) by one linear solve."""
    (s, A, E), (s2, B, F) = p, q
    psi = (np.power(E, rho) @ np.power(F, rho).T).reshape(-1)
    v = np.outer(np.power(s, rho), np.power(s2, rho)).reshape(-1)
    M = np.kron(np.power(A, rho), np.power(B, rho)).T * psi
    return (1 - g) * psi @ np.linalg.solve(np.eye(len(v)) - g * M, v)
