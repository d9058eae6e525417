"""Gram matrices kept for a solver: whole, or of the active rows.

Both hold single-precision values, padded as the solver wants them. A free row and
column in front (`extra`) serves a bias that is one more variable.
"""

from __future__ import annotations

import numpy as np

from maxent._core.machines import gram as _gram
from maxent._core.machines.smo import compress, padded

_IDLE = 0.05  # share of the rows held that may be of no use


class _Store:
    """Memory for a matrix of at most `capacity` rows, with the free row and column."""

    def __init__(self, capacity, extra):
        self.extra = extra
        n = capacity + extra
        self.matrix = np.zeros((n, padded(n)), dtype=np.float32)

    def clear_extra(self, n):
        """Zeros in the free row and column of the leading n rows."""
        if self.extra:
            self.matrix[0, : n + 1] = 0.0
            self.matrix[: n + 1, 0] = 0.0

    def part(self, positions):
        """PartGram of some rows, copied from this matrix."""
        part = PartGram(None, len(positions), self.extra)
        part.rows = self.rows[positions]
        part.clear_extra(len(positions))
        places = _with_extra(positions, self.extra)
        compress(self.matrix, places, part.matrix, self.kernel.n_threads)
        return part


class WholeGram(_Store):
    """The matrix of all rows, and exact products with it.

    Values are held to 48 bits or more, so that products need no kernel evaluations.

    Parameters
    ----------
    kernel : VectorKernel
    extra : {0, 1}
    """

    one_of_many = False

    def __init__(self, kernel, extra=0):
        n, self.kernel = len(kernel), kernel
        self._last = None  # multipliers and their product, asked for again
        super().__init__(n, extra)
        self.clear_extra(n)
        self.rows = np.arange(n)
        inner = self.matrix[extra:, extra:]
        if kernel.has_tiles:
            self.exact = None
            self.low = np.empty(n * (n + 1) // 2, dtype=np.float32)
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
    def megabytes(kernel, n=None):
        """Memory of the matrix of n rows, or of all, and of a part of it."""
        held = 4 if kernel.kernel == "precomputed" else 6 if kernel.has_tiles else 12
        return 1e-6 * (len(kernel) if n is None else n) ** 2 * (held + 2)

    @staticmethod
    def pays(kernel):
        """True if a kernel value costs more than to keep it in double precision."""
        return not kernel.has_tiles or kernel.X.shape[1] >= 64

    def product(self, a):
        """K a in double precision, (n,)."""
        if self._last is None or not np.array_equal(self._last[0], a):
            held = self.matrix[self.extra :, self.extra :]
            self._last = a.copy(), self.product_from(held, a)
        return self._last[1].copy()

    def product_from(self, held, a):
        """K a by the single-precision matrix, or by a copy that is still in cache."""
        if self.exact is not None:
            return self.exact @ a
        out = np.empty(len(a))
        a = np.ascontiguousarray(a)
        _gram.split_apply(held, self.low, a, out, self.kernel.n_threads)
        return out


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
        self.kernel, self.capacity = kernel, capacity
        self.rows = np.empty(0, dtype=np.intp)

    def exchange(self, rows):
        """Hold exactly these rows; values that are here already are kept."""
        wanted = np.zeros(len(self.kernel), dtype=bool)
        wanted[rows] = True
        self.keep(np.flatnonzero(wanted[self.rows]))
        wanted[self.rows] = False
        self.add(np.flatnonzero(wanted))

    def cover(self, rows):
        """Hold these rows, and keep a few others held; the rows that are added."""
        new = np.setdiff1d(rows, self.rows, assume_unique=True)
        idle = len(self.rows) + len(new) - len(rows)
        if idle > _IDLE * len(self.rows) or idle + len(rows) > self.capacity:
            self.exchange(rows)
        else:
            self.add(new)
        return new

    def keep(self, positions):
        """Drop all rows but those at these ascending positions."""
        if len(positions) < len(self.rows):
            places = _with_extra(positions, self.extra)
            compress(self.matrix, places, self.matrix, self.kernel.n_threads)
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


class ClassGrams:
    """Matrices of the rows of two classes at a time.

    The values within a class are computed once, for all pairs that it is in.

    Parameters
    ----------
    kernel : VectorKernel
        Of rows that lie class by class.
    ends : ndarray of int (n_classes,)
        Where each class ends.
    cache_size : float
        Memory in MB: where the matrices of all classes take more than half of it, none
        are kept.
    extra : {0, 1}
    n_threads : int, default=1
        Pairs that may be asked for at a time, each by a thread of its own.

    Attributes
    ----------
    at_once : int
        Pairs that there is memory for at a time.
    """

    def __init__(self, kernel, ends, cache_size, extra=0, n_threads=1):
        self.kernel = kernel
        starts = np.append(0, ends[:-1])
        self.slices = [slice(lo, hi) for lo, hi in zip(starts, ends, strict=True)]
        sizes = ends - starts
        largest = int(np.sort(sizes)[-2:].sum())
        each = [WholeGram.megabytes(kernel, int(k)) for k in sizes]
        free = 0.5 * cache_size - sum(each)
        self.at_once = 1
        self.within = None
        if kernel.spec is not None and 4e-6 * largest**2 <= free:
            self.within = [WholeGram(part) for part in map(kernel.among, self.slices)]
            self.at_once = min(n_threads, int(free / (4e-6 * largest**2)))
            self.stores = [_Store(largest, extra) for _ in range(self.at_once)]
        # class whose values the memory of each begins with
        self.first = [None] * self.at_once

    def pair(self, i, j, thread=0):
        """(VectorKernel, PairGram or None) of the rows of two classes."""
        kernel = self.kernel.joined(self.slices[i], self.slices[j])
        if self.within is None:
            return kernel, None
        if self.at_once > 1:
            kernel.n_threads = 1
        parts = self.within[i], self.within[j]
        held = i == self.first[thread]
        self.first[thread] = i
        return kernel, PairGram(kernel, *parts, self.stores[thread], held=held)


class PairGram(_Store):
    """The matrix of the rows of two classes, as working sets take it.

    Parameters
    ----------
    kernel : VectorKernel
        Of these rows.
    one, other : WholeGram
        Of the rows of each class.
    store : _Store
        Whose memory it uses.
    held : bool
        Whether that begins with the values within the first class.
    """

    one_of_many = True  # problems, of which each should be solved within a millisecond

    def __init__(self, kernel, one, other, store, held=False):
        self.kernel, self.one, self.other = kernel, one, other
        self.extra, self.matrix = store.extra, store.matrix
        n, p = len(kernel), len(one.rows)
        self.rows = np.arange(n)
        self.split = p
        self.clear_extra(n)
        inner = self.matrix[self.extra :, self.extra :]
        if not held:
            inner[:p, :p] = one.matrix[:, :p]
        inner[p:n, p:n] = other.matrix[:, : n - p]
        kernel.single_block(slice(p, n), slice(0, p), inner[p:n, :p])
        _gram.mirror(inner, p, n)

    def product(self, a):
        """K a in double precision, (n,)."""
        p, n = self.split, len(a)
        inner = self.matrix[self.extra :, self.extra :]
        used = np.flatnonzero(a)
        first = np.searchsorted(used, p)
        out = np.empty(n)
        for gram, at, others in (
            (self.one, slice(0, p), used[first:]),
            (self.other, slice(p, n), used[:first]),
        ):
            out[at] = gram.product_from(inner[at, at], a[at])
            if len(others):
                out[at] += self.kernel.apply(others, a[others, None], rows=at)[:, 0]
        return out


def _with_extra(positions, extra):
    positions = np.asarray(positions, dtype=np.intp)
    if not extra:
        return positions
    return np.concatenate([np.zeros(1, dtype=np.intp), positions + 1])
