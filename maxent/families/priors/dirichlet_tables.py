"""Dirichlet distributions over tables of probabilities.

Cells are grouped into tables; each table is a distribution over its cells with a
Dirichlet prior. A row counts how often it visits each cell, so that

    log p(x | theta) = sum over cells of count * log theta_cell.

Products of multinomials, counts of words and Bayes nets of fixed structure differ only
in which cells a row visits.

Source: Jaakkola, Meila & Jebara (1999), section 3.6 and eq. (46).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import polygamma, psi

from maxent._core.tall_matrices import (
    DenseRows,
    SparseRows,
    TallMatrix,
    VisitRows,
)
from maxent._support import validation as v
from maxent._support.linalg import times, transposed_times
from maxent._support.threads import single_threaded_blas
from maxent._support.typing import ArrayLike, FloatArray
from maxent.families import _checks
from maxent.families._special import log_gamma_ratio
from maxent.families.priors.conjugate import ConjugatePrior

_WIDE = 10  # cells per row from which on visits are multiplied as sparse matrices


class DirichletTables(ConjugatePrior):
    """Base class: Dirichlet priors over grouped cells.

    A subclass defines `_counts(X)`, the CSR matrix (n, n_cells) of visits, and
    `_with(tables)`, a value of its class with other pseudo-counts.

    Attributes
    ----------
    pseudo_counts : list of ndarray
        One array a node, of shape (parent configurations, categories).
    """

    pseudo_counts: list[FloatArray]
    _largest = 0.0
    _log_gain = 0.0  # log of the normaliser, less that before the update with rows

    def _set_cells(self, tables):
        """Tables (q, r): q groups of r cells each."""
        self.pseudo_counts = tables
        for table in tables:
            table.setflags(write=False)
        self._alpha = np.concatenate([table.ravel() for table in tables])
        sizes = np.concatenate([np.full(len(t), t.shape[1]) for t in tables])
        self._group = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        self._total = np.bincount(self._group, self._alpha)

    def _tables(self, alpha):
        """Flat pseudo-counts in the shapes of the tables."""
        ends = np.cumsum([table.size for table in self.pseudo_counts])
        parts = np.split(alpha, ends[:-1])
        return [
            p.reshape(t.shape) for p, t in zip(parts, self.pseudo_counts, strict=True)
        ]

    # -- on rows -------------------------------------------------------------------
    def _prepare(self, X):
        cells = _with_short_indices(self._counts(X))
        groups = sp.csr_array(
            (cells.data, self._group[cells.indices], cells.indptr),
            shape=(cells.shape[0], len(self._total)),
        )
        if not groups.has_canonical_format:
            groups = groups.copy()
            groups.sum_duplicates()
        return cells, groups

    def _length(self, data):
        return data[0].shape[0]

    def _update(self, data, weight):
        change = _transposed_times(data[0], weight)
        alpha = self._alpha + change
        if not (np.isfinite(alpha).all() and (alpha > 0).all()):
            return None
        value = self._with(self._tables(alpha))
        # from the change: of large pseudo-counts it has more digits than they have
        rise = log_gamma_ratio(self._alpha, change, alpha).sum()
        total = np.bincount(self._group, change)
        rise -= log_gamma_ratio(self._total, total, value._total).sum()
        value._log_gain = float(rise)
        return value

    def _log_normalizer(self):
        return self._log_gain

    def _expected(self, data):
        return _times(data[0], psi(self._alpha) - psi(self._total)[self._group])

    def _predictive(self, data):
        cells, groups = data
        if (cells.data == 1).all() and (groups.data == 1).all():
            return _times(cells, np.log(self._alpha) - np.log(self._total)[self._group])
        # counts: the sequential predictive in closed form
        rise = _rise(cells, self._alpha).sum(axis=1)
        return np.asarray(rise - _rise(groups, self._total).sum(axis=1)).ravel()

    def _factor_rows(self, data):
        """Symmetric root of each table's diag(u) - c 11', applied to the visits."""
        cells, groups = data
        u, c = self._curvatures
        root = np.sqrt(u)
        load = np.bincount(self._group, 1.0 / u)
        # I - c vv' with v = u^(-1/2) has the root I - beta vv'
        beta = c / (1.0 + np.sqrt(np.maximum(1.0 - c * load, 0.0)))
        spread = beta[self._group] / root
        if not sp.issparse(cells):
            onto = sp.csr_array(
                (spread, (self._group, np.arange(len(u)))), shape=(len(c), len(u))
            )
            return DenseRows(np.ascontiguousarray(cells * root - groups @ onto))
        first = np.searchsorted(self._group, np.arange(len(c) + 1))
        return VisitRows(*_parts(cells), *_parts(groups), first, root, spread)

    def _rank(self, data):
        return len(self._alpha)

    @functools.cached_property
    def _curvatures(self):
        """Second derivatives of log Gamma, of the cells and of the totals."""
        return polygamma(1, self._alpha), polygamma(1, self._total)

    def _product(self, data, x):
        cells, _ = data
        u, c = self._curvatures
        along = _transposed_times(cells, x)
        total = np.bincount(self._group, along)
        return _times(cells, u * along - (c * total)[self._group])

    def _part(self, data, rows):
        return tuple(visits[rows] for visits in data)

    def _matrix(self, data, curvature=None):
        cells, groups = data
        if not sp.issparse(cells) or cells.shape[1] <= _WIDE * cells.shape[0]:
            F = self._factor(data)
            with single_threaded_blas():
                return F @ F.T
        u, c = self._curvatures
        inner = cells.multiply(u) @ cells.T - groups.multiply(c) @ groups.T
        return inner.toarray()

    def _max_step(self, data, direction):
        change = _transposed_times(data[0], direction)
        down = change < 0
        if not down.any():
            return np.inf
        with np.errstate(over="ignore"):  # no limit
            return float(np.min(self._alpha[down] / -change[down]))

    def _why_improper(self, data, weight):
        at = int(np.argmin(self._alpha + _transposed_times(data[0], weight)))
        return (
            f"the weighted counts leave cell {at} at or below zero; raise the "
            "pseudo-counts."
        )


def _with_short_indices(visits):
    """CSR with arrays as compiled loops take them."""
    if visits.nnz > np.iinfo(np.int32).max:
        raise ValueError(
            f"the rows have {visits.nnz} entries that are not zero; tables take fewer "
            "than 2**31: fit on fewer rows."
        )
    kinds = np.float64, np.int32, np.int32
    arrays = visits.data, visits.indices, visits.indptr
    parts = [
        np.ascontiguousarray(a, dtype=t) for a, t in zip(arrays, kinds, strict=True)
    ]
    if all(a is b for a, b in zip(arrays, parts, strict=True)):
        return visits
    return sp.csr_array(tuple(parts), shape=visits.shape)


def _parts(visits):
    """Ends of rows, columns and values of CSR."""
    return visits.indptr, visits.indices, visits.data


def _matrix_of(visits):
    return TallMatrix([SparseRows(*_parts(visits), visits.shape[1])])


def _times(visits, x):
    if not sp.issparse(visits):
        return visits @ x
    return times(_matrix_of(visits), x)


def _transposed_times(visits, x):
    if not sp.issparse(visits):
        return visits.T @ x
    return transposed_times(_matrix_of(visits), x)


def _rise(counts, alpha):
    """log Gamma(alpha + n) - log Gamma(alpha) over the visited cells, CSR."""
    out = counts.copy()
    out.data = log_gamma_ratio(alpha[out.indices], out.data)
    return out


class DirichletCounts(DirichletTables):
    """Prior over a multinomial: rows are vectors of counts, such as words.

    The multinomial coefficient, which no parameter changes, is left out of the
    log-likelihood. Rows are dense or sparse, and need not be integers.

    Parameters
    ----------
    pseudo_counts : array-like (r,)
        Entries > 0.

    Examples
    --------
    >>> from maxent.families import DirichletCounts
    >>> DirichletCounts([1.0, 1.0]).posterior([[3, 0], [1, 2]]).pseudo_counts[0]
    array([[5., 3.]])
    """

    _takes_sparse = True

    def __init__(self, pseudo_counts: ArrayLike) -> None:
        table = np.reshape(pseudo_counts, (1, -1))
        self._set_cells([check_table(0, table, table.shape)])

    def __repr__(self) -> str:
        return f"DirichletCounts(pseudo_counts={self.pseudo_counts[0][0]!r})"

    def get_spec(self) -> dict[str, Any]:
        """Parameters by name, enough to build an equal value.

        Returns
        -------
        dict
            Keyword arguments of the constructor.
        """
        return {"pseudo_counts": self.pseudo_counts[0][0]}

    def _with(self, tables):
        value = object.__new__(type(self))
        value._set_cells(tables)
        return value

    def _counts(self, X):
        X = X if sp.issparse(X) else v.as_doubles("X", X)
        r = len(self._alpha)
        if X.ndim != 2 or X.shape[1] != r:
            remedy = ""
            if r == 1 and X.ndim == 2:
                remedy = (
                    " A prior of all columns has one pseudo-count for each: "
                    f"np.ones({X.shape[1]})."
                )
            raise ValueError(
                f"X has shape {X.shape}; rows of {r} counts are expected.{remedy}"
            )
        X = sp.csr_array(X, dtype=np.float64)
        if not X.has_canonical_format:  # of entries that stand twice the sum counts
            X = X.copy()
            X.sum_duplicates()
        wrong = np.flatnonzero(~(np.isfinite(X.data) & (X.data >= 0)))
        if len(wrong):
            row = int(np.searchsorted(X.indptr, wrong[0], side="right")) - 1
            raise ValueError(
                f"X[{row}, {X.indices[wrong[0]]}]={X.data[wrong[0]]:g} must be a count "
                ">= 0; drop such rows or correct them."
            )
        return X


def check_table(
    k: int, table: ArrayLike, shape: tuple[int, ...], zeros: bool = False
) -> FloatArray:
    """Pseudo-counts > 0 of this shape, as a copy; with `zeros` one a row."""
    table = np.array(v.as_doubles(f"pseudo_counts[{k}]", table))
    if table.shape != shape:
        raise ValueError(
            f"pseudo_counts[{k}] has shape {table.shape}; its parents and categories "
            f"ask for {shape}."
        )
    if not table.size:
        raise ValueError(f"pseudo_counts[{k}] is empty; a table needs categories.")
    if not np.isfinite(table).all() or not (table > 0).all():
        possible = zeros and np.isfinite(table).all() and (table >= 0).all()
        if not (possible and (table > 0).any(axis=-1).all()):
            raise ValueError(
                f"pseudo_counts[{k}] has entries that are not > 0; every "
                f"{'row' if zeros else 'category'} needs a positive pseudo-count."
            )
    v.check_range(f"pseudo_counts[{k}]", table)
    if ((table < _checks.SMALLEST) & (table != 0)).any():
        raise ValueError(
            f"pseudo_counts[{k}] has entries below {_checks.SMALLEST:g}; they leave "
            "double precision."
        )
    return table
