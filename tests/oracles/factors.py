"""Products of tables over named nodes, by enumeration of all joint states."""

from itertools import product

import numpy as np
from scipy.special import logsumexp


def sizes_of(factors):
    """Number of states of every node, {name: size}."""
    return {n: s for nodes, t in factors for n, s in zip(nodes, np.shape(t))}


def states(sizes):
    """All joint states, as dicts."""
    for codes in product(*map(range, sizes.values())):
        yield dict(zip(sizes, codes))


def log_weight(log_factors, state):
    """Sum of the logarithms of all factors at a state."""
    return sum(float(t[tuple(state[n] for n in nodes)]) for nodes, t in log_factors)


def table(log_factors, names):
    """Log of the sum over all other nodes, one axis for each name."""
    sizes = sizes_of(log_factors)
    found = {}
    for state in states(sizes):
        at = tuple(state[n] for n in names)
        found.setdefault(at, []).append(log_weight(log_factors, state))
    out = np.full([sizes[n] for n in names], -np.inf)
    for at, values in found.items():
        out[at] = logsumexp(values)
    return out


def log_partition(log_factors):
    """log Z."""
    return float(table(log_factors, ())[()])


def log_prob(log_factors, observed, row):
    """log p of a row with -1 where missing, not normalised."""
    keep = [
        log_weight(log_factors, state)
        for state in states(sizes_of(log_factors))
        if all(c < 0 or state[n] == c for n, c in zip(observed, row))
    ]
    return logsumexp(keep)


def log_kernel(left, right, observed, rho):
    """log sum_x (sum_h p^rho) (sum_h' p'^rho), factors not normalised."""
    powers = [
        table([(nodes, rho * np.asarray(t)) for nodes, t in model], observed)
        for model in (left, right)
    ]
    return float(logsumexp(powers[0] + powers[1]))


def exact_kernel(left, right, observed, rho):
    """log sum_x p(x)^rho p'(x)^rho."""
    return float(logsumexp(rho * (table(left, observed) + table(right, observed))))
