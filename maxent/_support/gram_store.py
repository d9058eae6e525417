"""Gram matrices kept for a solver: whole, or of the active rows.

Both hold single-precision values, padded as the solver wants them. A free row and
column in front (`extra`) serves a bias that is one more variable.
"""

from __future__ import annotations

import numpy as np

from maxent._core import gram as _gram
from maxent._core.smo import compress, padded
from maxent._support.arenas import Arena


class _Store:
    """Memory for a matrix of at most `capacity` rows, with the free row and column."""

    def __init__(self, capacity, extra):
        self.extra = extra
        n = capacity + extra
        self.arena = Arena((n, padded(n)))
        self.matrix = self.arena.matrix

    def clear_extra(self, n):
        """Zeros in the free row and column of the leading n rows."""
        if self.extra:
            self.matrix[0, : n + 1] = 0.0
            self.matrix[: n + 1, 0] = 0.0

    def release(self):
        """Give the memory back; the store must not be used after this."""
        self.matrix = None
        self.arena.give_back()


class WholeGram(_Store):
    """The matrix of all rows, and exact products with it.

    Values are held to 48 bits or more, so that products need no kernel evaluations.

    Parameters
    ----------
    kernel : VectorKernel
    extra : {0, 1}
    """

    def __init__(self, kernel, extra=0):
        n, self.kernel = len(kernel), kernel
        self._last = None  # multipliers and their product, asked for again
        super().__init__(n, extra)
        self.clear_extra(n)
        self.rows = np.arange(n)
        inner = self.matrix[extra:, extra:]
        if kernel.has_tiles:
            self.exact = None
            self.low_arena = Arena((1, n * (n + 1) // 2))
            self.low = self.low_arena.matrix[0]
            _gram.gram_split(
                kernel.spec,
                kernel.X,
                kernel.norms,
                inner,
                self.low,
                kernel.n_threads,
                kernel.raw_rows(None),
            )
        else:
            given = kernel.kernel == "precomputed"
            self.exact = kernel.X if given else kernel.block(self.rows, self.rows)
            inner[:, :n] = self.exact

    @staticmethod
    def megabytes(kernel):
        """Memory of the matrix and of a part of it."""
        held = 4 if kernel.kernel == "precomputed" else 6 if kernel.has_tiles else 12
        return 1e-6 * len(kernel) ** 2 * (held + 2)

    @staticmethod
    def pays(kernel):
        """Whether a kernel value costs more than to keep it in double precision."""
        return not kernel.has_tiles or kernel.X.shape[1] >= 64

    def release(self):
        """Give the memory back; the store must not be used after this."""
        super().release()
        if self.exact is None:
            self.low = None
            self.low_arena.give_back()

    def product(self, a):
        """K a in double precision, (n,)."""
        if self._last is None or not np.array_equal(self._last[0], a):
            self._last = a.copy(), self._product(a)
        return self._last[1].copy()

    def _product(self, a):
        if self.exact is not None:
            return self.exact @ a
        out = np.empty(len(a))
        _gram.split_apply(
            self.matrix[self.extra :, self.extra :],
            self.low,
            np.ascontiguousarray(a),
            out,
        )
        return out

    def part(self, positions):
        """PartGram of some rows, copied from this matrix."""
        part = PartGram(None, len(positions), self.extra)
        part.rows = self.rows[positions]
        part.clear_extra(len(positions))
        compress(self.matrix, _with_extra(positions, self.extra), part.matrix)
        return part


class PartGram(_Store):
    """The matrix of the active rows, which come and go within fixed memory.

    Parameters
    ----------
    kernel : VectorKernel
    capacity : int
        Rows that may be held at a time.
    extra : {0, 1}
    """

    def __init__(self, kernel, capacity, extra=0):
        super().__init__(capacity, extra)
        self.kernel = kernel
        self.rows = np.empty(0, dtype=np.intp)

    def exchange(self, rows):
        """Hold exactly these rows; values that are here already are kept."""
        wanted = np.zeros(len(self.kernel), dtype=bool)
        wanted[rows] = True
        self.keep(np.flatnonzero(wanted[self.rows]))
        wanted[self.rows] = False
        self.add(np.flatnonzero(wanted))

    def keep(self, positions):
        """Drop all rows but those at these ascending positions."""
        if len(positions) < len(self.rows):
            compress(self.matrix, _with_extra(positions, self.extra), self.matrix)
            self.rows = self.rows[positions]

    def add(self, rows):
        """Append rows that are not held yet."""
        if not len(rows):
            return
        known, kernel = len(self.rows), self.kernel
        self.rows = np.concatenate([self.rows, rows])
        n = len(self.rows)
        self.clear_extra(n)
        inner = self.matrix[self.extra :, self.extra :]
        if kernel.has_tiles:
            _gram.gram_symmetric(
                kernel.spec,
                kernel.X32[self.rows],
                kernel.norms32[self.rows],
                inner,
                kernel.n_threads,
                known,
                kernel.raw_rows(self.rows),
            )
            return
        step = max(1, int(2e7 // n))
        for lo in range(known, n, step):
            hi = min(lo + step, n)
            inner[lo:hi, :n] = kernel.block(self.rows[lo:hi], self.rows)
        inner[:known, known:n] = inner[known:n, :known].T


def _with_extra(positions, extra):
    positions = np.asarray(positions, dtype=np.intp)
    if not extra:
        return positions
    return np.concatenate([np.zeros(1, dtype=np.intp), positions + 1])
