"""Distributions over dependency trees and their tables, as a conjugate prior.

Source: Jaakkola, Meila & Jebara (1999), section 3.5 and appendix B. Their eq. (67) and
(68) are right in sum only: log T_uv / (T_u T_v) has the digamma function of the total
count besides, which the n - 1 edges and the n columns leave with weight minus one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.special import polygamma, psi

from maxent._inputs.codes import check_sizes
from maxent._support import validation as v
from maxent._support.typing import ArrayLike, FloatArray
from maxent.families._special import log_gamma_ratio
from maxent.models.trees._edge_moments import SMALL, semidefinite_root
from maxent.models.trees._pair_counts import (
    log_tables,
    uniform_counts,
)
from maxent.models.trees._prior import (
    NO_FACTOR,
    TreePrior,
    check_pairs,
    check_weights_of,
    factor_by_products,
)

_DENSE_ROWS = 1500  # rows whose whole Hessian is factorised


class DirichletTrees(TreePrior):
    """Random trees over categorical columns with random tables.

    Given the tree, the tables have Dirichlet distributions that agree on their margins;
    a posterior has more counts, and other weights of the edges.

    Parameters
    ----------
    pseudo_counts : float or array-like (D, D)
        Prior counts of all pairs of categories, > 0: the tables of two columns. The
        block of one column is diagonal and holds the counts of its categories. The
        margins of all tables agree. A float is an equivalent sample size, spread evenly
        over every table.
    n_categories : sequence of int
        Number of categories of every column; they add up to D.
    log_weights : array-like (n, n), optional
        Logarithms of the edge weights, symmetric, -inf on the diagonal and for edges
        that no tree has. All trees are alike by default.
    cell_duals : array-like (D, D), optional
        Lagrange multipliers >= 0 of the counts of cells, symmetric; 0 for cells that no
        tree reads. None by default: see the Notes.

    Attributes
    ----------
    pseudo_counts, log_weights, cell_duals : ndarray
        The parameters; read-only. `cell_duals` may be None.
    n_categories : tuple of int
    total : float
        Count of all rows, those of the prior included.

    Raises
    ------
    ValueError
        For fewer than two columns, shapes that do not fit, counts that are not positive
        or whose margins disagree, and edges that do not connect all columns.
    MemoryError
        Where the tables would exceed the memory of the machine.

    See Also
    --------
    SpanningTrees : Tables that are given.

    Notes
    -----
    With pseudo-counts N' and counts N of weighted rows, the weight of edge uv is
    multiplied by kappa_uv / (kappa_u kappa_v), where kappa is the product of Gamma(N +
    N') / Gamma(N') over the cells of a table. Negative weights are limited: the domain
    is N + N' > 0 at every cell of the edges allowed. No value may be missing in rows of
    nonzero weight; in rows to be scored, a missing value, code -1, drops every factor
    that contains it.

    Training for margins can make the count of a cell vanish: zero is an active
    constraint, with a Lagrange multiplier z, its entry in `cell_duals`. The posterior
    is the limit of distributions whose trees have the cell's edge with a probability
    e -> 0, and then E log T = -z / e at the cell. Its expected log-probabilities have
    -z there; its predictive ones, and its divergences from other distributions, are
    those without `cell_duals`. So are its own posteriors.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), section 3.5 and appendix B, eqs. (41), (63)-(68).

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.discrimination import DirichletTrees
    >>> X = np.array([[0, 0, 1], [0, 0, 0], [1, 1, 0], [1, 1, 1]])
    >>> trees = DirichletTrees(4.0, [2, 2, 2]).posterior(X)
    >>> trees.edge_probabilities.round(2)
    array([[0.  , 0.89, 0.56],
           [0.89, 0.  , 0.56],
           [0.56, 0.56, 0.  ]])
    """

    _largest = 0.0
    pseudo_counts: FloatArray
    cell_duals: FloatArray | None = None

    def __init__(
        self,
        pseudo_counts: float | ArrayLike,
        n_categories: Iterable[int],
        log_weights: ArrayLike | None = None,
        cell_duals: ArrayLike | None = None,
    ) -> None:
        index = check_sizes(n_categories)
        weights = check_weights_of(index, log_weights)
        if v.is_real(pseudo_counts):
            ess = v.check_positive("pseudo_counts", pseudo_counts)
            counts = uniform_counts(ess, index)
        else:
            counts = check_pairs("pseudo_counts", pseudo_counts, index)
            check_prior_counts(counts, index, weights)
        # pairs of categories that some tree reads, once
        self._set_counts(counts, index.expand(np.triu(~np.isneginf(weights), 1)))
        if cell_duals is not None:
            self.cell_duals = check_cell_duals(cell_duals, index, self._cells)
        self._set_trees(index, weights)
        self._trees()

    def _set_counts(self, counts, cells):
        counts.setflags(write=False)
        self.pseudo_counts, self._cells = counts, cells
        self._expected_logs = self._curved = None

    def _without_rows(self):
        value = object.__new__(type(self))
        value._set_counts(self.pseudo_counts, self._cells)
        value._set_trees(self._index, self.log_weights, self._constant)
        value._partition, value.cell_duals = self._partition, self.cell_duals
        return value

    def __repr__(self):
        return f"DirichletTrees(n_categories={list(self.n_categories)!r})"

    def get_spec(self) -> dict[str, Any]:
        """Parameters by name, enough to build an equal value.

        Returns
        -------
        dict
            Keyword arguments of the constructor.
        """
        spec = {
            "pseudo_counts": self.pseudo_counts,
            "n_categories": list(self.n_categories),
            "log_weights": self.log_weights,
        }
        if self.cell_duals is not None:
            spec["cell_duals"] = self.cell_duals
        return spec

    # -- on rows -------------------------------------------------------------------
    def _update(self, data, weight):
        if not data.complete:
            self._refuse_missing(data, weight)
        change, counts = data.counts_on(self.pseudo_counts, weight)
        single, before = counts.diagonal(), self.pseudo_counts.diagonal()
        if not ((counts > 0) | ~self._cells).all() or not (single > 0).all():
            return None
        index = self._index
        rise = np.zeros_like(counts)
        rise[self._cells] = log_gamma_ratio(
            self.pseudo_counts[self._cells],
            change[self._cells],
            counts[self._cells],
        )
        own = log_gamma_ratio(before, change.diagonal(), single)
        node = index.column_sums(own)
        moved = index.pair_sums(rise)
        moved = moved + moved.T - (node[:, None] + node[None, :])
        first = slice(0, index.sizes[0])
        total = log_gamma_ratio(
            *(np.array([a[first].sum()]) for a in (before, change.diagonal(), single))
        )
        value = object.__new__(type(self))
        value._set_counts(counts, self._cells)
        constant = self._constant + float(node.sum() - total[0])
        value._set_trees(index, self.log_weights + moved, constant)
        return value

    def _change(self, data, weight):
        """Counts that weighted rows add; rows of weight must be complete."""
        if not data.complete:
            self._refuse_missing(data, weight)
        return data.counts(weight)

    def _refuse_missing(self, data, weight):
        sizes = np.array(self.n_categories)
        gone = (data.codes == sizes[:, None]) & (weight != 0)
        if gone.any():
            column, row = (int(k) for k in np.argwhere(gone)[0])
            raise ValueError(
                f"X[{row}, {column}] is missing, and trees with Dirichlet tables learn "
                "from complete rows only; fill it in or leave the row out."
            )

    @property
    def total(self) -> float:
        """Count of all rows, those of the prior included."""
        return float(self.pseudo_counts.diagonal()[: self.n_categories[0]].sum())

    def _expected(self, data):
        single, ratios = self._logs()
        table = self._row_table(single, ratios, self._trees()[1])
        if self.cell_duals is not None:
            table -= self.cell_duals
        return data.scores(table)

    def _logs(self):
        """Expected logarithms of the tables."""
        if self._expected_logs is None:
            self._expected_logs = self._tables(psi)
        return self._expected_logs

    def _tables(self, log):
        return log_tables(self.pseudo_counts, log, self._index, self._cells)

    def _predictive(self, data):
        single, table = self._tables(np.log)
        np.fill_diagonal(table, single)
        return data.log_mean(self.log_weights, table) - self._trees()[0]

    def _curvature(self):
        """Table and constant of the expected covariance given the tree.

        Given the tree, a row's log-probability is a sum of logarithms of entries of
        Dirichlet distributions, whose covariances are trigamma functions.
        """
        if self._curved is not None:
            return self._curved
        index, p = self._index, self._trees()[1]
        cells = polygamma(1, self.pseudo_counts[self._cells])
        table = np.zeros_like(self.pseudo_counts)
        table[self._cells] = cells * index.expand(p)[self._cells]
        degree = p.sum(axis=1)[index.column]
        single = (1.0 - degree) * polygamma(1, self.pseudo_counts.diagonal())
        np.fill_diagonal(table, single)
        self._curved = table, -float(polygamma(1, self.total))
        return self._curved

    def _curvature_with(self, curvature):
        """The same, with what is added along the slacks."""
        table, constant = self._curvature()
        if curvature is not None:
            table = table.copy()
            table[self._cells] += curvature
        return table, constant

    def _rank(self, data):
        n = self._index.n
        stored = data.may_store_features() and data.n_rows <= _DENSE_ROWS
        return data.n_rows if stored and n <= SMALL else NO_FACTOR

    def _factor(self, data, curvature=None):
        if self._index.n > SMALL:
            return factor_by_products(self, data, curvature)
        F = self._tree_factor(data, self._logs()[1])
        table, constant = self._curvature_with(curvature)
        return semidefinite_root(data.agreements(table, constant) + F @ F.T)

    def _matrix(self, data, curvature=None):
        if self._index.n > SMALL or not data.may_store_features():
            return None
        table, constant = self._curvature_with(curvature)
        trees = self._tree_covariance(data, self._logs()[1])
        return data.agreements(table, constant) + trees

    def _product(self, data, x, curvature=None):
        ratios = self._logs()[1]
        table, constant = self._curvature_with(curvature)
        counts = self._change(data, x)
        dp = self._edge_covariance().product(
            _symmetric(self._index.pair_sums(ratios * counts))
        )
        along = table * counts
        move = self._row_table(along.diagonal(), ratios, dp)
        np.add(move, along, where=self._cells, out=move)
        return data.scores(move) + constant * float(np.sum(x))

    def _slacks(self):
        return self.pseudo_counts[self._cells]

    def _slack_changes(self, data, x):
        return self._change(data, x)[self._cells]

    def _slack_gradient(self, data, z):
        table = np.zeros_like(self.pseudo_counts)
        table[self._cells] = z
        return data.scores(table)

    def _with_slack_duals(self, duals):
        value = self._without_rows()
        value.cell_duals = np.zeros_like(self.pseudo_counts)
        value.cell_duals[self._cells] = duals
        value.cell_duals += value.cell_duals.T
        value.cell_duals.setflags(write=False)
        return value

    def _max_step(self, data, direction):
        change = self._change(data, direction)
        down = self._cells & (change < 0)
        if not down.any():
            return np.inf
        return float(np.min(self.pseudo_counts[down] / -change[down]))

    def _why_improper(self, data, weight):
        counts = self.pseudo_counts + self._change(data, weight)
        i, j = np.unravel_index(
            np.argmin(np.where(self._cells, counts, np.inf)), counts.shape
        )
        first, column = self._index.offset, self._index.column
        u, w = int(column[i]), int(column[j])
        return (
            f"the weighted counts leave category {int(i - first[u])} of column {u} "
            f"with category {int(j - first[w])} of column {w} at or below zero; raise "
            "the pseudo-counts."
        )


def _symmetric(above):
    above = np.triu(above, 1)
    return above + above.T


def check_cell_duals(duals, index, cells):
    """Symmetric (D, D) of numbers >= 0, zero where no tree reads a cell."""
    duals = check_pairs("cell_duals", duals, index)
    wrong = ~((duals >= 0) & np.isfinite(duals)) | ((duals != 0) & ~(cells | cells.T))
    if wrong.any():
        i, j = (int(k) for k in np.argwhere(wrong)[0])
        raise ValueError(
            f"cell_duals[{i}, {j}]={duals[i, j]:g} is not a number >= 0, or the "
            "categories are of columns that no edge joins, whose entries must be 0."
        )
    duals.setflags(write=False)
    return duals


def check_prior_counts(counts, index, weights):
    """Positive counts whose tables agree on their margins."""
    sizes, first = index.sizes, index.offset
    single = counts.diagonal()
    cells = index.expand(~np.isneginf(weights))
    wrong = cells & ~((counts > 0) & np.isfinite(counts))
    wrong |= np.diag(~((single > 0) & np.isfinite(single)))
    if wrong.any():
        i, j = (int(k) for k in np.argwhere(wrong)[0])
        raise ValueError(
            f"pseudo_counts[{i}, {j}]={counts[i, j]:g} is not > 0; every pair of "
            "categories of columns that an edge may join needs a positive count."
        )
    for u in range(len(sizes)):
        rows = slice(first[u], first[u + 1])
        sums = np.add.reduceat(counts[rows], first[:-1], axis=1)
        far = np.abs(sums - single[rows, None]) > 1e-9 * single[rows, None]
        if far.any():
            i, w = (int(k) for k in np.argwhere(far)[0])
            raise ValueError(
                f"pseudo_counts do not agree: category {i} of column {u} has the count "
                f"{single[first[u] + i]:g} on the diagonal and {sums[i, w]:g} in the "
                f"table with column {w}. Make all tables from the same rows, spreading "
                "an equivalent sample size evenly over each."
            )
