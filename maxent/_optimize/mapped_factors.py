"""Newton systems of blocks whose maps are sparse, without the product of both.

The Hessian of sum_s log Z_s(A_s lam) is G G' with G = [A_1' F_1, A_2' F_2, ...] and
F_s the factor of a block. Where a multiplier weighs rows of two blocks of many, as in
problems of many classes, most of G is zero: its Gram matrix is made of blocks

    (G' D^-1 G)_st = F_s' (A_s D^-1 A_t') F_t,

whose middle is a sparse matrix between the rows of two blocks.
"""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import scipy.sparse as sp

from maxent._optimize.newton_system import NewtonSystem
from maxent._support.linalg import blocked_cholesky, solve_lower

_WORTH = 0.5  # share of the multiplications of the dense product below which this pays
_MOST_PAIRS = 1e7  # of entries of a column, half a gigabyte for a moment


class MappedFactors:
    """Maps of blocks to the multipliers, stacked.

    Parameters
    ----------
    maps : list of csr_array (n_rows of a block, n)
    bias : ndarray (n, k) or None
        Further columns of G.
    """

    def __init__(self, maps, bias=None):
        self.A = sp.csr_array(sp.vstack(maps, format="csr"))
        self.meetings = None  # of rows, made when they are needed
        self.bias = np.zeros((self.A.shape[1], 0)) if bias is None else bias
        ends = np.cumsum([0] + [A.shape[0] for A in maps])
        self.rows = [slice(lo, hi) for lo, hi in itertools.pairwise(ends)]
        self.n_pairs = _pairs_of(sp.csc_array(self.A)).sum()
        touched = (self.A != 0).astype(np.float64)
        pairs = touched @ touched.T
        # Entry (s, t) counts the rows of block s that meet rows of block t.
        self.meeting = np.array(
            [
                [np.count_nonzero(np.diff(pairs[s][:, t].indptr)) for t in self.rows]
                for s in self.rows
            ]
        )

    def restricted(self, index):
        """Maps and biases of the multipliers at `index` only."""
        part = object.__new__(type(self))
        part.A, part.bias = sp.csr_array(self.A[:, index]), self.bias[index]
        part.rows, part.meeting, part.meetings = self.rows, self.meeting, None
        return part

    def work(self, ranks):
        """Multiplications of G' D^-1 G for factors of these ranks."""
        ranks = np.asarray(ranks, dtype=float)
        return float(np.tril(self.meeting * np.outer(ranks, ranks)).sum())

    def is_worth_it(self, ranks, most):
        """True if this is much less work than the dense product, and no more than that.

        Parameters
        ----------
        ranks : list of int
        most : float
            Multiplications of a factorisation that are affordable.
        """
        n, p, work = self.A.shape[1], sum(ranks), self.work(ranks)
        less = work < _WORTH * 0.5 * n * p * p and self.n_pairs <= _MOST_PAIRS
        return less and work + p**3 / 3.0 <= most

    def solver(self, factors, diagonal):
        """Newton system (G G' + diag) x = rhs, for factors F_s."""
        ends = np.cumsum([0] + [F.shape[1] for F in factors])
        places = [slice(lo, hi) for lo, hi in itertools.pairwise(ends)]
        last = slice(ends[-1], ends[-1] + self.bias.shape[1])
        if not last.stop:
            return NewtonSystem(lambda rhs: (rhs.T / diagonal).T)
        L = blocked_cholesky(self._inner(factors, places, last, diagonal))

        def down(x):  # G' x
            along = self.A @ x
            parts = [F.T @ along[r] for F, r in zip(factors, self.rows, strict=True)]
            return np.concatenate([*parts, self.bias.T @ x])

        def up(y):  # G y
            parts = [F @ y[place] for F, place in zip(factors, places, strict=True)]
            return self.A.T @ np.concatenate(parts) + self.bias @ y[last]

        def solve(rhs):
            # This is Woodbury's identity.
            x = (rhs.T / diagonal).T
            return x - (up(solve_lower(L, down(x))).T / diagonal).T

        return NewtonSystem(solve)

    def _inner(self, factors, places, last, diagonal):
        """I + G' D^-1 G, its lower triangle."""
        if self.meetings is None:
            self.meetings = _Meetings(self.A, self.rows)
        inner = np.eye(last.stop)
        for s, t, rows, middle in self.meetings.of(1.0 / diagonal):
            product = middle(factors[t])
            inner[places[s], places[t]] += factors[s][rows].T @ product
        crossed = self.A @ (self.bias / diagonal[:, None])
        for F, rows, place in zip(factors, self.rows, places, strict=True):
            inner[last, place] += (F.T @ crossed[rows]).T
        inner[last, last] += self.bias.T @ (self.bias / diagonal[:, None])
        return inner


def _pairs_of(A):
    """Pairs of entries of each column of a sparse matrix by columns."""
    return np.diff(A.indptr).astype(np.intp) ** 2


class _Meetings:
    """Entries of A D A' between the rows of two blocks, for diagonals D that change.

    Their places are computed once. SciPy's product computes them each time, and leaves
    out entries that happen to be zero.
    """

    def __init__(self, A, blocks):
        A = sp.csc_array(A)
        first = np.array([rows.start for rows in blocks])
        count, squares = np.diff(A.indptr), _pairs_of(A)
        column = np.repeat(np.arange(len(count)), squares)
        within = np.arange(len(column)) - (np.cumsum(squares) - squares)[column]
        left = A.indptr[column] + within // count[column]
        right = A.indptr[column] + within % count[column]
        s, t = (
            np.searchsorted(first, A.indices[k], side="right") - 1
            for k in (left, right)
        )
        lower = t <= s
        column, left, right, s, t = (k[lower] for k in (column, left, right, s, t))
        n = A.shape[0]
        key = (s * len(first) + t) * n + A.indices[left]
        key, entry = np.unique(key * n + A.indices[right], return_inverse=True)
        self.products = sp.csr_array(
            (A.data[left] * A.data[right], (entry, column)), (len(key), A.shape[1])
        )
        key, columns = np.divmod(key, n)
        key, rows = np.divmod(key, n)
        pairs, starts = np.unique(key, return_index=True)
        ends = itertools.pairwise(np.append(starts, len(key)))
        self.parts = []
        for pair, (lo, hi) in zip(pairs.tolist(), ends, strict=True):
            s, t = divmod(pair, len(first))
            met, begin = np.unique(rows[lo:hi] - first[s], return_index=True)
            indptr = np.append(begin, hi - lo)
            self.parts.append(
                (s, t, met, slice(lo, hi), columns[lo:hi] - first[t], indptr)
            )

    def of(self, diagonal):
        """Of all pairs of blocks s >= t: s, t, rows of s, F -> their product with F."""
        entries = self.products @ diagonal
        for s, t, met, part, columns, indptr in self.parts:
            yield s, t, met, partial(_times, entries[part], columns, indptr)


def _times(weights, columns, indptr, F):
    """Sparse rows times F."""
    if len(indptr) == len(columns) + 1:  # one entry a row
        return weights[:, None] * F[columns]
    shape = len(indptr) - 1, len(F)
    return sp.csr_array((weights, columns, indptr), shape=shape) @ F
