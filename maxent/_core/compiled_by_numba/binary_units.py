"""Sums over all states of binary units with pairwise weights.

    p(x) = exp(sum_{i<j} W_ij x_i x_j + sum_i b_i x_i) / Phi,     x in {0, 1}^M

Below 2^16 states: tables of 2^M numbers made by doubling (a unit that is switched on
adds its bias and its row of weights, itself a table made by doubling) and folded again
for the moments, about six passes in all, by Numba. From there on two tables of half of
the units each. exp of the cross energy of two half states is a product of two numbers,
one for each quarter of the second half, so that log Phi and all moments are four
products of 2^(M/2) x 2^(M/4) matrices; where exponents are too large for products of
exponentials, blocks of the table of energies stay in cache. No table of 2^M numbers is
made.

Compiled when first used and cached on disk.
"""

import math

import numpy as np
from numba import njit
from scipy.special import logsumexp

HALVES_FROM = 16  # units
_BLOCK = 1 << 17  # states per block of the products


@njit(cache=True, nogil=True)
def energies(weights, bias):
    """Table of the exponents, (2^M,); bit j of the index is unit j."""
    m = len(bias)
    out = np.zeros(1 << m)
    row = np.zeros(1 << max(m - 1, 0))
    for j in range(m):
        size = 1 << j
        row[0] = bias[j]
        for i in range(j):
            step, w = 1 << i, weights[j, i]
            for s in range(step):
                row[step + s] = row[s] + w
        for s in range(size):
            out[size + s] = out[s] + row[s]
    return out


@njit(cache=True, nogil=True)
def _exponentials(table):
    """Table to exp(table - max) in place; log of the sum of exp(table)."""
    top = -np.inf
    for s in range(len(table)):
        top = max(top, table[s])
    total = 0.0
    for s in range(len(table)):
        table[s] = math.exp(table[s] - top)
        total += table[s]
    scale = 1.0 / total
    for s in range(len(table)):
        table[s] *= scale
    return top + math.log(total)


@njit(cache=True, nogil=True)
def _fold(table, m, out):
    """Pair moments of a table over m units, which is destroyed; diagonal: E x_i."""
    part = np.empty(1 << max(m - 1, 0))
    for i in range(m - 1, -1, -1):
        size = 1 << i
        for s in range(size):
            part[s] = table[size + s]
            table[s] += table[size + s]
        for j in range(i - 1, -1, -1):
            half, total = 1 << j, 0.0
            for s in range(half):
                total += part[half + s]
                part[s] += part[half + s]
            out[i, j] = total
            out[j, i] = total
        out[i, i] = part[0]


@njit(cache=True, nogil=True)
def pair_moments_direct(weights, bias):
    """log Phi and E x x' by tables; weights symmetric (M, M), its diagonal unused."""
    m = len(bias)
    table = energies(weights, bias)
    log_phi = _exponentials(table)
    out = np.empty((m, m))
    _fold(table, m, out)
    return log_phi, out


@njit(cache=True, nogil=True)
def _by_value(prob, value, n_values, m):
    """out[v, i, j] = sum of the probabilities of states of value v with i and j on."""
    out = np.zeros((n_values, m, m))
    on = np.empty(m, np.int64)
    for s in range(len(prob)):
        k = 0
        for i in range(m):
            if (s >> i) & 1:
                on[k] = i
                k += 1
        at = value[s]
        for a in range(k):
            for b in range(a + 1):
                out[at, on[a], on[b]] += prob[s]
    for at in range(n_values):
        for i in range(m):
            for j in range(i):
                out[at, j, i] = out[at, i, j]
    return out


def feature_sums(free):
    """f# of every state, (2^M,): how many free pairs and free biases are active.

    free : symmetric boolean (M, M); the diagonal says which biases are free.
    """
    count = np.asarray(free, dtype=np.float64)
    return np.rint(energies(count, np.diagonal(count).copy())).astype(np.int64)


def moments_by_value(weights, bias, value, n_values):
    """log Phi and E x x' 1[value(x) = v] for v < n_values, by tables (small M)."""
    table = energies(weights, bias)
    log_phi = _exponentials(table)
    return log_phi, _by_value(table, value, n_values, len(bias))


def all_states(m):
    """Table of all states, float (2^m, m); bit j of the row number is unit j."""
    return ((np.arange(1 << m)[:, None] >> np.arange(m)) & 1).astype(np.float64)


class HalfTables:
    """Sums over the states of M units as sums over pairs of half states.

    Parameters
    ----------
    first, second : int arrays
        Units of the two halves.
    """

    def __init__(self, first, second):
        self.units = np.asarray(first), np.asarray(second)
        self.tables = [all_states(len(u)) for u in self.units]

    def _own_energies(self, half, weights, bias):
        """Exponents of the states of one half by themselves."""
        units, X = self.units[half], self.tables[half]
        W = weights[np.ix_(units, units)].copy()
        np.fill_diagonal(W, 2.0 * bias[units])
        return 0.5 * ((X @ W) * X).sum(axis=1)

    def _quarters(self, weights, bias):
        """(V, W, f, G, shift), or None where their exponents are too large.

        exp of the exponents of states x and y = (l, h), the low and the high units of
        the second half, is e^shift f[x] V[x, l] W[x, h] G[h, l].
        """
        (X, Y), across = self.tables, weights[np.ix_(*self.units)]
        energies = [self._own_energies(h, weights, bias) for h in (0, 1)]
        if np.abs(across).sum() + np.ptp(energies[1]) >= 500.0:
            return None
        low = Y.shape[1] // 2
        V = np.exp(X @ (across[:, :low] @ Y[: 1 << low, :low].T))
        W = np.exp(X @ (across[:, low:] @ Y[:: 1 << low, low:].T))
        top = energies[0].max(), energies[1].max()
        G = np.exp(energies[1] - top[1]).reshape(-1, 1 << low)
        return V, W, np.exp(energies[0] - top[0]), G, top[0] + top[1]

    def _blocks(self, weights, bias):
        """(row slice, shift, table) over blocks of the first half.

        exp of the exponents is e^shift * table, whose largest number is 1.
        """
        (X, Y), across = self.tables, weights[np.ix_(*self.units)]
        energies = [self._own_energies(h, weights, bias) for h in (0, 1)]
        size = min(max(_BLOCK // len(Y), 1), len(X))
        room = np.empty((size, len(Y)))
        for start in range(0, len(X), size):
            part = slice(start, start + size)
            block = np.matmul(X[part] @ across, Y.T, out=room)
            block += energies[0][part, None]
            block += energies[1]
            shift = block.max()
            block -= shift
            yield part, shift, np.exp(block, out=block)

    def log_partition(self, weights, bias):
        """log Phi."""
        quarters = self._quarters(weights, bias)
        if quarters is not None:
            V, W, f, G, shift = quarters
            return float(shift + np.log(f @ ((W @ G) * V).sum(axis=1)))
        each = [
            shift + math.log(table.sum())
            for _, shift, table in self._blocks(weights, bias)
        ]
        return float(logsumexp(each))

    def pair_moments(self, weights, bias):
        """log Phi and E x x', its diagonal E x; one pass over all states."""
        quarters = self._quarters(weights, bias)
        if quarters is None:
            log_phi, *sums = self._sums_of_blocks(weights, bias)
        else:
            log_phi, *sums = self._sums_of_quarters(*quarters)
        X, Y = self.tables
        return float(log_phi), self._assembled(X, Y, *sums, X.shape[1] + Y.shape[1])

    def _sums_of_quarters(self, V, W, f, G, shift):
        """log Phi, P(x), P(y) and E x y'."""
        X, Y = self.tables
        low = Y.shape[1] // 2
        fV = f[:, None] * V
        with_low = W @ G
        with_low *= fV  # sums over h of the probability of (x, l), times Phi
        row = with_low.sum(axis=1)
        total = row.sum()
        with_high = fV @ G.T
        with_high *= W
        cross = np.hstack(
            [
                (X.T @ with_low) @ Y[: 1 << low, :low],
                (X.T @ with_high) @ Y[:: 1 << low, low:],
            ]
        )
        col = ((W.T @ fV) * G).ravel()
        return shift + math.log(total), row / total, col / total, cross / total

    def _sums_of_blocks(self, weights, bias):
        """log Phi, P(x), P(y) and E x y'."""
        X, Y = self.tables
        log_phi = -np.inf
        row, col = np.zeros(len(X)), np.zeros(len(Y))
        cross = np.zeros((X.shape[1], Y.shape[1]))
        for part, shift, table in self._blocks(weights, bias):
            sums = table.sum(axis=1)
            new = np.logaddexp(log_phi, shift + math.log(sums.sum()))
            old, scale = math.exp(log_phi - new), math.exp(shift - new)
            col *= old
            cross *= old
            row *= old
            row[part] = scale * sums
            col += scale * table.sum(axis=0)
            cross += scale * (X[part].T @ (table @ Y))
            log_phi = new
        return log_phi, row, col, cross

    def _assembled(self, A, B, row, col, cross, m):
        out = np.empty((m, m))
        first, second = self.units
        out[np.ix_(first, first)] = (A.T * row) @ A
        out[np.ix_(second, second)] = (B.T * col) @ B
        out[np.ix_(first, second)] = cross
        out[np.ix_(second, first)] = cross.T
        return out

    def moments_by_counts(self, weights, bias, value, n_values):
        """log Phi and E x x' by value(k1, k2) of the numbers of active units.

        value : int array (m1 + 1, m2 + 1).
        """
        (X, Y), m = self.tables, len(bias)
        groups = _by_count(X), _by_count(Y)
        quarters = self._quarters(weights, bias)
        if quarters is None:
            log_phi = self.log_partition(weights, bias)
            parts = self._counted_blocks(weights, bias, log_phi, *groups)
        else:
            log_phi, parts = self._counted_quarters(*quarters, *groups)
        out = np.zeros((n_values, m, m))
        for k1, k2, x, *sums in parts:
            moments = self._assembled(X[x], Y[groups[1][k2]], *sums, m)
            out[value[k1, k2]] += moments
        return log_phi, out

    def _counted_blocks(self, weights, bias, log_phi, of_x, of_y):
        """k1, k2, states x and P(x), P(y), E x y' of these numbers of active units."""
        X, Y = self.tables
        for part, shift, table in self._blocks(weights, bias):
            table *= math.exp(shift - log_phi)
            for k1, group in enumerate(of_x):
                at = group[(part.start <= group) & (group < part.stop)]
                P = table[at - part.start]
                for k2, y in enumerate(of_y if len(at) else ()):
                    Q = P[:, y]
                    yield k1, k2, at, Q.sum(axis=1), Q.sum(axis=0), X[at].T @ Q @ Y[y]

    def _counted_quarters(self, V, W, f, G, shift, of_x, of_y):
        """log Phi and the same, by products of the quarters."""
        X, Y = self.tables
        low = Y.shape[1] // 2
        L, H = Y[: 1 << low, :low], Y[:: 1 << low, low:]
        of_l, of_h = _by_count(L), _by_count(H)
        fV = f[:, None] * V
        row = np.zeros((len(of_y), len(X)))
        along = np.zeros((*row.shape, Y.shape[1]))  # sums of P(x, y) y
        for high, h in enumerate(of_h):
            with_low = W[:, h] @ G[h]
            with_low *= fV  # P(x, l) times Phi, of so many active high units
            for few, l in enumerate(of_l):
                row[few + high] += with_low[:, l].sum(axis=1)
                along[few + high, :, :low] += with_low[:, l] @ L[l]
        for few, l in enumerate(of_l):
            with_high = fV[:, l] @ G[:, l].T
            with_high *= W
            for high, h in enumerate(of_h):
                along[few + high, :, low:] += with_high[:, h] @ H[h]
        total = row.sum()

        def parts():
            for k1, x in enumerate(of_x):
                col = ((W[x].T @ fV[x]) * G).ravel() / total
                for k2, y in enumerate(of_y):
                    cross = X[x].T @ along[k2, x] / total
                    yield k1, k2, x, row[k2, x] / total, col[y], cross

        return float(shift + math.log(total)), parts()


def _by_count(X):
    """Row numbers of the states with 0, 1, .. active units."""
    counts = X.sum(axis=1)
    return [np.flatnonzero(counts == k) for k in range(X.shape[1] + 1)]


def split_evenly(m):
    """Halves of m units."""
    return np.arange(m // 2), np.arange(m // 2, m)


def pair_moments(weights, bias):
    """log Phi and E x x' of M units: tables below 2^16 states, halves from there on."""
    if len(bias) < HALVES_FROM:
        return pair_moments_direct(weights, bias)
    return HalfTables(*split_evenly(len(bias))).pair_moments(weights, bias)
