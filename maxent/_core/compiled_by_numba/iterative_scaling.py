"""Iterative scaling: histograms of the feature sum, roots of its equations, sweeps.

With p the model, f >= 0 the features and f# = sum_i f_i, improved iterative scaling
moves every weight by the root gamma_i of

    sum_k a_ik e^{gamma k} + (lam_i + gamma) / s2_i = eta_i,
    a_ik = sum_{x: f#(x) = k} p(x) f_i(x).

Compiled by Numba when first used and cached on disk. All functions stand in this one
file: Numba's cache does not see edits of a function that another file defines.

Sources: Della Pietra, Della Pietra & Lafferty (1997), section 4; Goodman (2002);
Wang, Schuurmans & Zhao (2012), eq. (26).
"""

import math

import numpy as np
from numba import njit

_REACH, _FAR = 30.0, 300.0  # doubles underflow at exp(-745)
_STEPS = 200  # Newton needs below 60 (targets 1e8 times off); the rest is a bound


@njit(cache=True, nogil=True)
def moments_by_sum(prob, indptr, indices, data, bucket, out):
    """Add prob(x) f_i(x) to out[i, bucket(x)]; features are the rows of a CSR matrix.

    One pass over the nonzeros.
    """
    for s in range(len(prob)):
        p, k = prob[s], bucket[s]
        if p > 0.0:
            for e in range(indptr[s], indptr[s + 1]):
                out[indices[e], k] += p * data[e]


@njit(cache=True, nogil=True)
def _log_sum(a, values, gamma):
    """log sum_k a_k e^{gamma k} and its slope; -inf where all a are zero."""
    top = -np.inf
    for k in range(len(a)):
        if a[k] > 0.0:
            top = max(top, math.log(a[k]) + gamma * values[k])
    if top == -np.inf:
        return top, 0.0
    total, slope = 0.0, 0.0
    for k in range(len(a)):
        if a[k] > 0.0:
            w = math.exp(math.log(a[k]) + gamma * values[k] - top)
            total += w
            slope += w * values[k]
    return top + math.log(total), slope / total


@njit(cache=True, nogil=True)
def _log_root(a, values, target, gamma):
    """Root of log sum_k a_k e^{gamma k} = log target: Newton, from any start.

    The function is convex and increasing with slopes in [min k, max k].
    """
    goal = math.log(target)
    for _ in range(_STEPS):
        value, slope = _log_sum(a, values, gamma)
        if slope == 0.0:  # all probability is where the sum of features is zero
            break
        step = (goal - value) / slope
        gamma += step
        if abs(step) <= 1e-15 * (1.0 + abs(gamma)):
            break
    return gamma


@njit(cache=True, nogil=True)
def _penalized_root(a, values, target, lam, weight):
    """Root of sum_k a_k e^{gamma k} + weight (lam + gamma) = target, weight > 0.

    Newton from the right of the root of a convex increasing function falls onto it
    without overshooting.
    """
    total = 0.0
    for k in range(len(a)):
        total += a[k]
    gamma = 0.0
    if total + weight * lam < target:
        # the penalty grows with gamma, so without its growth the root is further right
        gamma = (target / weight) - lam
        if total > 0.0:
            gamma = min(gamma, _log_root(a, values, target - weight * lam, 0.0))
    for _ in range(_STEPS):
        log_sum, slope = _log_sum(a, values, gamma)
        value = math.exp(log_sum) if log_sum > -np.inf else 0.0
        excess = value + weight * (lam + gamma) - target
        step = excess / (value * slope + weight)
        gamma -= step
        if abs(step) <= 1e-15 * (1.0 + abs(gamma)):
            break
    return gamma


@njit(cache=True, nogil=True)
def scaling_steps(a, values, target, lam, weight, out):
    """Steps of improved iterative scaling; one row of `a` (n, K) per equation.

    `weight` is 1 / s2, 0 without penalty. Where an equation has no root (a feature
    that is zero on all states of positive probability, or a target of zero) the step
    is 0 or -inf; the caller interprets it.
    """
    for i in range(len(a)):
        if weight[i] > 0.0:
            out[i] = _penalized_root(a[i], values, target[i], lam[i], weight[i])
        elif a[i].sum() == 0.0:
            out[i] = 0.0
        elif target[i] <= 0.0:
            out[i] = -np.inf
        else:
            out[i] = _log_root(a[i], values, target[i], 0.0)


@njit(cache=True, nogil=True)
def _column_sums(u, top, data, states, gamma):
    """sum u e^{g f}, and its first two derivatives in g, over a column's states.

    All are multiplied by e^{-top}, so that no term overflows.
    """
    s0, s1, s2 = 0.0, 0.0, 0.0
    for e in range(len(states)):
        w = u[states[e]] * math.exp(gamma * data[e] - top)
        s0 += w
        s1 += w * data[e]
        s2 += w * data[e] * data[e]
    return s0, s1, s2


@njit(cache=True, nogil=True)
def _coordinate_root(u, rest, data, states, target, lam, weight):
    """Maximiser of gamma target - log sum_x u(x) e^{gamma f} - weight (lam+gamma)^2/2.

    `rest` is the mass of the states where the feature is zero. Newton steps inside a
    bracket: the derivative falls in gamma. Without penalty a target at the end of the
    feature's values has its root at infinity.
    """
    largest, least = 0.0, np.inf
    for e in range(len(states)):
        largest = max(largest, data[e])
        least = min(least, data[e])
    if rest > 0.0:
        least = 0.0
    if weight == 0.0 and target <= least:
        return -np.inf
    if weight == 0.0 and target >= largest:
        return np.inf
    low, high, gamma = -np.inf, np.inf, 0.0
    for _ in range(_STEPS):
        top = max(gamma * largest, gamma * least)
        s0, s1, s2 = _column_sums(u, top, data, states, gamma)
        total = s0 + rest * math.exp(-top)
        mean = s1 / total
        slope = s2 / total - mean * mean + weight
        gradient = target - mean - weight * (lam + gamma)
        if gradient > 0.0:
            low = gamma
        else:
            high = gamma
        step = gradient / slope if slope > 0.0 else math.copysign(np.inf, gradient)
        # a quasi-logistic derivative: longer steps leave the region where it curves
        step = min(max(step, -8.0 / largest), 8.0 / largest)
        new = gamma + step
        if step == 0.0:
            break
        if (new <= low or new >= high) and high - low < np.inf:
            new = 0.5 * (low + high)
        done = abs(new - gamma) <= 1e-15 * (1.0 + abs(gamma))
        gamma = new
        if done:
            break
    return gamma


@njit(cache=True, nogil=True)
def _binary_root(odds, target):
    """Step of a feature of 0 and 1, whose odds of 1 are given, to its target."""
    if target <= 0.0 or target >= 1.0:
        return np.inf if target > 0.5 else -np.inf
    return math.log(target / (1.0 - target)) - math.log(odds)


@njit(cache=True, nogil=True)
def _mass_outside(u, states):
    """Sum of u over the states that are not among the sorted ones."""
    total, e = 0.0, 0
    for s in range(len(u)):
        if e < len(states) and states[e] == s:
            e += 1
        else:
            total += u[s]
    return total


@njit(cache=True, nogil=True)
def coordinate_sweep(u, indptr, states, data, target, weight, bound, lam):
    """One sweep of sequential scaling: every weight in turn to its exact maximiser.

    Features are the columns of a CSC matrix (indptr, states, data), all >= 0. `u` are
    unnormalised probabilities, of which the sum is near one; `u` and `lam` are changed
    in place. Features of 0 and 1 without penalty take the closed form
    gamma = logit(target) - logit(E f). No weight leaves [-bound[i], bound[i]].

    States whose probability has underflowed are not seen. So a step changes the
    logarithm of a state by at most _REACH, which climbs too, since the dual is concave
    in one weight; and the sweep ends where steps add up to _FAR, before such a state
    could matter.
    """
    total, moved = u.sum(), 0.0
    for i in range(len(lam)):
        if moved > _FAR:
            break
        lo, hi = indptr[i], indptr[i + 1]
        if lo == hi:
            if weight[i] > 0.0:
                lam[i] = target[i] / weight[i]
            continue
        mass, largest, binary = 0.0, 0.0, True
        for e in range(lo, hi):
            mass += u[states[e]]
            largest = max(largest, data[e])
            binary = binary and data[e] == 1.0
        rest = total - mass
        if rest < 1e-3 * total:  # the difference has lost its digits
            rest = _mass_outside(u, states[lo:hi])
            total = mass + rest
        if binary and weight[i] == 0.0:
            if rest == 0.0:  # a constant
                continue
            gamma = _binary_root(mass / rest, target[i])
        else:
            gamma = _coordinate_root(
                u, rest, data[lo:hi], states[lo:hi], target[i], lam[i], weight[i]
            )
        if mass == 0.0 or abs(gamma) < np.inf:
            gamma = min(max(gamma, -_REACH / largest), _REACH / largest)
        gamma = min(max(lam[i] + gamma, -bound[i]), bound[i]) - lam[i]
        if gamma == 0.0:
            continue
        moved += abs(gamma) * largest
        lam[i] += gamma
        changed = 0.0
        for e in range(lo, hi):
            s = states[e]
            u[s] *= math.exp(gamma * data[e])
            changed += u[s]
        total = rest + changed
        if total > 1e100 or total < 1e-100:
            u /= total
            total = 1.0
        if i % 64 == 63:  # rounding of the running sum
            total = u.sum()
