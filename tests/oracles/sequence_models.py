"""Hidden Markov models and Markov chains by enumeration of all paths."""

from itertools import product

import numpy as np
from scipy.special import logsumexp


def paths(n_states, length):
    """All state paths (n, length)."""
    return np.array(list(product(range(n_states), repeat=length)))


def logs(*arrays):
    """Logarithms, -inf of zeros."""
    with np.errstate(divide="ignore"):
        return [np.log(x) for x in arrays]


def log_joint(start, transition, log_emission):
    """log p(x, z) of every path z; log_emission (length, n_states), 0 where missing."""
    return log_terms(*logs(start, transition), log_emission)


def log_terms(log_start, log_transition, log_steps):
    """Every path, and the sum of what its first state, moves and steps have."""
    Z = paths(len(log_start), len(log_steps))
    out = log_start[Z[:, 0]] + log_steps[0][Z[:, 0]]
    for t in range(1, len(log_steps)):
        out = out + log_transition[Z[:, t - 1], Z[:, t]] + log_steps[t][Z[:, t]]
    return Z, out


def joint_chain(starts, transitions):
    """Logs of start and transition of independent chains as one, the last fastest."""
    log_start, log_transition = logs(starts[0], transitions[0])
    for start, transition in zip(starts[1:], transitions[1:]):
        log_pi, log_A = logs(start, transition)
        log_start = (log_start[:, None] + log_pi).ravel()
        both = log_transition[:, None, :, None] + log_A[None, :, None]
        log_transition = both.reshape(len(log_start), len(log_start))
    return log_start, log_transition


def posteriors(start, transition, log_emission):
    """log p(x), gamma (length, n_states), xi summed over steps, best path and value."""
    Z, joint = log_joint(start, transition, log_emission)
    log_lik = logsumexp(joint)
    weight = np.exp(joint - log_lik)
    T, S = log_emission.shape
    gamma = np.array([[weight[Z[:, t] == k].sum() for k in range(S)] for t in range(T)])
    xi = np.zeros((S, S))
    for t in range(1, T):
        np.add.at(xi, (Z[:, t - 1], Z[:, t]), weight)
    return log_lik, gamma, xi, Z[np.argmax(joint)], joint.max()


def log_emission_of(table, codes):
    """Rows of log emission probabilities (n_states, n_symbols); 0 where missing."""
    with np.errstate(divide="ignore"):
        log_table = np.log(np.asarray(table)).T
    out = log_table[np.maximum(codes, 0)]
    out[np.asarray(codes) < 0] = 0.0
    return out


def log_markov(start, transition, order, codes):
    """log p(x) of a Markov chain; what is missing or too short is summed over."""
    O = np.shape(transition)[1]
    total = -np.inf
    length = max(len(codes), order)
    for x in product(range(O), repeat=length):
        if any(c >= 0 and c != o for c, o in zip(codes, x)):
            continue
        digits = 0
        for o in x[:order]:
            digits = digits * O + o
        p = start[digits]
        for t in range(order, length):
            context = 0
            for o in x[t - order : t]:
                context = context * O + o
            p *= transition[context][x[t]]
        with np.errstate(divide="ignore"):
            total = np.logaddexp(total, np.log(p))
    return total


def log_kernel(p, q, rho, horizon):
    """log sum_x (sum_z p(x, z)^rho) (sum_z q(x, z)^rho), tables (start, A, E)."""
    O = np.shape(p[2])[1]
    total = -np.inf
    for x in product(range(O), repeat=horizon + 1):
        both = 0.0
        for start, transition, table in (p, q):
            rows = log_emission_of(table, np.array(x))
            both += logsumexp(rho * log_joint(start, transition, rows)[1])
        total = np.logaddexp(total, both)
    return total


def scalar_gaussian_kernel(p, q, rho, horizon, points=401, reach=12.0):
    """The same for emissions N(mean, var) on a grid, horizon 0 or 1."""
    grid = np.linspace(-reach, reach, points)
    step = grid[1] - grid[0]

    def rows(mean, var):
        return -0.5 * (
            (grid[:, None] - mean) ** 2 / var + np.log(2 * np.pi * np.asarray(var))
        )

    def power(model, *at):
        start, transition, mean, var = model
        table = rows(mean, var)
        Z = paths(len(start), len(at))
        out = 0.0
        for z in Z:
            w = np.log(start[z[0]]) + table[at[0], z[0]]
            for t in range(1, len(at)):
                w = w + np.log(transition[z[t - 1], z[t]]) + table[at[t], z[t]]
            out = out + np.exp(rho * w)
        return out

    every = np.arange(points)
    if horizon == 0:
        return np.log((power(p, every) * power(q, every)).sum() * step)
    i, j = every[:, None], every[None, :]
    return np.log((power(p, i, j) * power(q, i, j)).sum() * step**2)
