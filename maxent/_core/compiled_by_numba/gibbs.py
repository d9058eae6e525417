"""Gibbs sampling of binary units with pairwise weights, and its annealing.

    p(x) = exp(x' W x / 2 + b . x) / Phi,  x in {0, 1}^M, W symmetric, zero diagonal

A sweep draws every unit once given the others, in the order of the units: units without
weights among them (a layer of a restricted machine) are drawn as one block. A chain
keeps W x; a unit that changes adds or subtracts its row. Cost of a sweep: M draws, and
M per change.

Annealed importance sampling goes from independent units, exponent b0 . x, to p by

    p_beta(x) = exp((1 - beta) b0 . x + beta (x' W x / 2 + b . x)),

a sweep at each beta. The mean of its weights estimates Phi / prod (1 + exp(b0_i))
without bias. Every chain has random numbers of its own, so that results do not depend
on how chains are spread over threads. Compiled by Numba when first used, kept on disk.

Sources: Geman & Geman (1984); Neal (2001), eqs. (3)-(11); Salakhutdinov & Murray
(2008); Steele, Lea & Flood (2014) for the random numbers (SplitMix64).
"""

import math

import numpy as np
from numba import njit

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S11, _S27, _S30, _S31 = (np.uint64(n) for n in (11, 27, 30, 31))
_ULP = 1.0 / 9007199254740992.0  # 2^-53


@njit(cache=True, nogil=True)
def _uniform(state, c):
    """Next number of stream c in [0, 1)."""
    z = state[c] + _GAMMA
    state[c] = z
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return ((z ^ (z >> _S31)) >> _S11) * _ULP


@njit(cache=True, nogil=True)
def _on(logit, u):
    """True if a unit of these log-odds is on, for a uniform draw u."""
    return u * (1.0 + math.exp(-logit)) < 1.0


@njit(cache=True, nogil=True)
def _fill(weights, x, field):
    """field = W x."""
    field[:] = 0.0
    for i in range(len(x)):
        if x[i] != 0.0:
            row = weights[i]
            for j in range(len(x)):
                field[j] += row[j]


@njit(cache=True, nogil=True)
def _sweep(weights, bias, base, beta, x, field, state, c):
    """Draw every unit once at inverse temperature beta."""
    for i in range(len(x)):
        logit = beta * (field[i] + bias[i]) + (1.0 - beta) * base[i]
        new = 1.0 if _on(logit, _uniform(state, c)) else 0.0
        if new != x[i]:
            step, row = new - x[i], weights[i]
            for j in range(len(x)):
                field[j] += step * row[j]
            x[i] = new


@njit(cache=True, nogil=True)
def gibbs(weights, bias, n_sweeps, x, field, state):
    """Sweep all chains; updates x (R, M) and state (R,); field (R, M) ends as x W."""
    for c in range(len(x)):
        _fill(weights, x[c], field[c])
        for _ in range(n_sweeps):
            _sweep(weights, bias, bias, 1.0, x[c], field[c], state, c)


@njit(cache=True, nogil=True)
def anneal(weights, bias, base, betas, x, state, log_weight):
    """Anneal R chains through betas (from > 0 to 1); x (R, M), log_weight (R,) OUT."""
    field = np.empty(x.shape[1])
    for c in range(len(x)):
        units = x[c]
        for i in range(len(units)):
            units[i] = 1.0 if _on(base[i], _uniform(state, c)) else 0.0
        _fill(weights, units, field)
        total, before = 0.0, 0.0
        for beta in betas:
            gap = 0.0
            for i in range(len(units)):
                if units[i] != 0.0:
                    gap += 0.5 * field[i] + bias[i] - base[i]
            total += (beta - before) * gap
            _sweep(weights, bias, base, beta, units, field, state, c)
            before = beta
        log_weight[c] = total
