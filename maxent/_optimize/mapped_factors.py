"""Newton systems of blocks whose maps are sparse, without the product of both.

The Hessian of sum_s log Z_s(A_s lam) is G G' with G = [A_1' F_1, A_2' F_2, ...] and
F_s the factor of a block. Where a multiplier weighs rows of two blocks of many, as in
problems of many classes, most of G is zero: its Gram matrix is made of blocks

    (G' D^-1 G)_st = F_s' (A_s D^-1 A_t') F_t,

whose middle is a sparse matrix between the rows of two blocks.
"""

from __future__ import annotations

import itertools

import numpy as np
import scipy.sparse as sp

from maxent._support.linalg import blocked_cholesky, solve_lower

_WORTH = 0.5  # share of the multiplications of the dense product below which this pays


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
        self.bias = np.zeros((self.A.shape[1], 0)) if bias is None else bias
        ends = np.cumsum([0] + [A.shape[0] for A in maps])
        self.rows = [slice(lo, hi) for lo, hi in itertools.pairwise(ends)]
        touched = (self.A != 0).astype(np.float64)
        pairs = touched @ touched.T
        # rows of block s that meet rows of block t, (s, t)
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
        part.rows, part.meeting = self.rows, self.meeting
        return part

    def work(self, ranks):
        """Multiplications of G' D^-1 G for factors of these ranks."""
        ranks = np.asarray(ranks, dtype=float)
        return float(np.tril(self.meeting * np.outer(ranks, ranks)).sum())

    def is_worth_it(self, ranks, most):
        """Whether this is much less work than the dense product, and no more than that.

        Parameters
        ----------
        ranks : list of int
        most : float
            Multiplications of a factorisation that are affordable.
        """
        n, p, work = self.A.shape[1], sum(ranks), self.work(ranks)
        return work < _WORTH * 0.5 * n * p * p and work + p**3 / 3.0 <= most

    def solver(self, factors, diagonal):
        """Function that solves (G G' + diag) x = rhs, for factors F_s."""
        ends = np.cumsum([0] + [F.shape[1] for F in factors])
        places = [slice(lo, hi) for lo, hi in itertools.pairwise(ends)]
        last = slice(ends[-1], ends[-1] + self.bias.shape[1])
        if not last.stop:
            return lambda rhs: (rhs.T / diagonal).T
        L = blocked_cholesky(self._inner(factors, places, last, diagonal))

        def down(x):  # G' x
            along = self.A @ x
            parts = [F.T @ along[r] for F, r in zip(factors, self.rows, strict=True)]
            return np.concatenate([*parts, self.bias.T @ x])

        def up(y):  # G y
            parts = [F @ y[place] for F, place in zip(factors, places, strict=True)]
            return self.A.T @ np.concatenate(parts) + self.bias @ y[last]

        def solve(rhs):
            # Woodbury's identity
            x = (rhs.T / diagonal).T
            return x - (up(solve_lower(L, down(x))).T / diagonal).T

        return solve

    def _inner(self, factors, places, last, diagonal):
        """I + G' D^-1 G, its lower triangle."""
        inner = np.eye(last.stop)
        scaled = self.A.copy()
        scaled.data = scaled.data / diagonal[scaled.indices]
        middle = sp.csr_array(scaled @ self.A.T)
        crossed = scaled @ self.bias
        for s, (F, rows, place) in enumerate(
            zip(factors, self.rows, places, strict=True)
        ):
            own = middle[rows]
            for t in range(s + 1):
                part = own[:, self.rows[t]]
                met = np.flatnonzero(np.diff(part.indptr))
                inner[place, places[t]] += F[met].T @ (part[met] @ factors[t])
            inner[last, place] += (F.T @ crossed[rows]).T
        inner[last, last] += self.bias.T @ (self.bias / diagonal[:, None])
        return inner
