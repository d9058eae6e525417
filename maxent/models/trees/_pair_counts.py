"""Rows bound to trees over categorical columns, tables over all pairs of categories.

A table is (D, D), D the number of categories of all columns; column v owns the rows and
columns offset[v] .. offset[v + 1]. Counts hold single categories on the diagonal; sums
over pairs read the part above the diagonal blocks.
"""

from __future__ import annotations

import functools

import numpy as np

from maxent._core.trees import laplacian as _laplacian
from maxent._core.trees import tree_tables as _tree_tables
from maxent._core.trees.tables import Columns
from maxent._inputs.codes import CategoryIndex, transposed_codes
from maxent._support.threads import effective_threads, single_threaded_blas

_FEATURES = 4_000_000  # entries of rows by edges that may be stored: 32 MB
_AT_ONCE = 1_000_000  # entries of the weights of trees, one tree per row
_CANCELLED = 1e-2  # share of a count below which what is left of it is summed anew


class TreeRows:
    """Rows of codes, -1 where a value is missing.

    A missing value is one more category of its column, at which all tables are zero: it
    leaves out every factor that it enters.

    Parameters
    ----------
    X : array-like (n_rows, n)
    index : CategoryIndex
    """

    def __init__(self, X, index):
        self.codes, missing = transposed_codes(X, index.sizes)
        self.n_rows = self.codes.shape[1]
        self.own = index  # categories of the rows, missing values included
        self._at = None  # where the categories of the tables are among them
        if missing.any():
            self.own = CategoryIndex(np.add(index.sizes, missing))
            shift = self.own.offset[:-1] - index.offset[:-1]
            self._at = np.arange(index.total) + shift[index.column]
        self.complete = self._at is None
        self.keeps_features = False
        self._features = self._singles = (None, None)
        self._whole = (None, None)

    def part(self, rows):
        """The rows of these numbers."""
        if np.array_equal(rows, np.arange(self.n_rows)):
            return self
        part = object.__new__(type(self))
        part.n_rows, part.own = len(rows), self.own
        part.complete, part._at = self.complete, self._at
        part.codes = self.codes.take(rows, axis=1)
        part.keeps_features = self.keeps_features
        part._features = part._singles = (None, None)
        part._whole = (self, rows)
        return part

    @functools.cached_property
    def columns(self):
        """Their columns as compiled passes want them."""
        return Columns(self.codes, self.own.offset)

    def counts(self, weight):
        """Weighted counts of categories and pairs of categories, (D, D)."""
        D = self.own.total
        out = np.zeros((D, D))
        if self.n_rows:
            self.columns.counts(counted(weight), effective_threads(), out)
        return out if self.complete else out[np.ix_(self._at, self._at)]

    def counts_on(self, start, weight):
        """`start` plus the weighted counts, cells that nearly vanish to full precision.

        The weights are split into multiples of a unit, whose sums have no rounding, and
        remainders below it.
        """
        change = self.counts(weight)
        out = start + change
        if not ((out > 0) & (out < _CANCELLED * start)).any():
            return change, out
        unit = np.ldexp(1.0, int(np.frexp(np.abs(weight).sum())[1]) - 52)
        if not unit > 0:  # weights near the smallest numbers have no finer ones
            return change, out
        coarse = np.rint(weight / unit) * unit
        fine = self.counts(weight - coarse)
        return change, (start + self.counts(coarse)) + fine

    def scores(self, table):
        """Sums of a table over the categories, and pairs of them, of every row."""
        out = np.zeros(self.n_rows)
        if self.n_rows:
            table = self._padded(table)
            self.columns.scores(table, effective_threads(), out)
        return out

    def log_mean(self, log_weights, table):
        """log E exp(sum of the table over columns and edges) over random trees."""
        n = len(log_weights)
        log_z = np.empty(self.n_rows)
        singles = np.zeros_like(table)
        np.fill_diagonal(singles, table.diagonal())
        known = self._padded(table)
        step = max(1, _AT_ONCE // n**2)
        status = np.zeros(step, dtype=np.intc)
        for lo in range(0, self.n_rows, step):
            rows = min(step, self.n_rows - lo)
            weights = np.empty((rows, n, n))
            _tree_tables.row_weights(
                self.codes, self.own.offset, known, log_weights, lo, weights
            )
            with single_threaded_blas():
                _laplacian.partition(
                    weights,
                    0,
                    effective_threads(),
                    log_z[lo : lo + rows],
                    None,
                    status[:rows],
                )
            if status.any():
                raise MemoryError("the work space of spanning trees is too large.")
        return self.scores(singles) + log_z

    def features(self, table):
        """Values of a table at the edges of every row, (n_rows, n (n - 1) / 2)."""
        known, out = self._features
        if known is not table:
            whole, rows = self._whole
            if whole is not None and whole._features[0] is table:
                out = whole._features[1][rows]
            else:
                out = np.empty((self.n_rows, self.own.n * (self.own.n - 1) // 2))
                padded = self._padded(table)
                _tree_tables.edge_features(self.codes, self.own.offset, padded, out)
            self._features = (table, out)
        return out

    def singles(self, values):
        """Sums of a number per category over the categories of every row, (n_rows,)."""
        known, out = self._singles
        if known is not values:
            out = self.scores(np.diag(values))
            self._singles = (values, out)
        return out

    def may_store_features(self):
        """True if rows by edges fit the space meant for them."""
        return self.n_rows * self.own.n * (self.own.n - 1) // 2 <= _FEATURES

    def keep_features(self):
        """Prefer products with features of one table, which are kept, where they fit.

        Their making costs less than one pass of counts, and a product a fifth of it.
        """
        self.keeps_features = self.may_store_features()

    def agreements(self, table, constant):
        """Sums of a table over what every two rows agree in, (n_rows, n_rows)."""
        out = np.empty((self.n_rows, self.n_rows))
        padded = self._padded(table)
        _tree_tables.agreements(self.codes, self.own.offset, padded, constant, out)
        return out

    def _padded(self, table):
        if self.complete:
            return np.ascontiguousarray(table)
        out = np.zeros((self.own.total, self.own.total))
        out[np.ix_(self._at, self._at)] = table
        return out


def counted(weight):
    """Weights as counts take them: None where every row counts once, contiguous."""
    if weight is None or (weight == 1.0).all():
        return None
    return np.ascontiguousarray(weight)


def uniform_counts(ess, index):
    """Counts (D, D) of `ess` rows spread evenly over the cells of every table."""
    share = 1.0 / np.asarray(index.sizes, dtype=float)[index.column]
    out = ess * np.outer(share, share)
    first = index.offset
    for u in range(index.n):
        own = slice(first[u], first[u + 1])
        out[own, own] = np.diag(ess * share[own])
    return out


def log_tables(counts, log, index, cells=None):
    """log of single categories (D,) and log ratios of pairs (D, D) from counts.

    With `log` the logarithm, log T_v and log T_uv / (T_u T_v) of the shares T; with the
    digamma function their expectations where the counts are of Dirichlet priors.

    Parameters
    ----------
    counts : ndarray (D, D)
    log : callable
    index : CategoryIndex
    cells : ndarray of bool (D, D), optional
        Pairs of categories that are wanted; all of u < v by default. Others are zero.
    """
    cells = index.above() if cells is None else cells
    single = counts.diagonal()
    total = float(single[: index.sizes[0]].sum())
    log_single, log_total = log(single), float(log(total))
    ratios = np.zeros_like(counts)
    ratios[cells] = log(counts[cells]) + log_total
    np.subtract(ratios, log_single[:, None], where=cells, out=ratios)
    np.subtract(ratios, log_single[None, :], where=cells, out=ratios)
    return log_single - log_total, ratios
