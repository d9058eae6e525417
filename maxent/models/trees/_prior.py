"""Base class of distributions over trees of categorical columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxent._support import validation as v
from maxent._support.threads import single_threaded_blas
from maxent._support.typing import FloatArray, IntArray, RandomState
from maxent.families.priors.conjugate import ConjugatePrior
from maxent.models._graphs import Graph
from maxent.models.trees._edge_moments import (
    DenseEdgeCovariance,
    edge_covariance,
    partition,
    semidefinite_root,
    stored_edge_covariance,
)
from maxent.models.trees._pair_counts import TreeRows
from maxent.models.trees._tree_input import check_log_weights
from maxent.models.trees.chow_liu import max_spanning_tree
from maxent.models.trees.partition import sample_spanning_trees

NO_FACTOR = 10**12  # a rank at which solvers turn to products with the Hessian


class TreePrior(ConjugatePrior):
    """Base class: random trees over categorical columns.

    Attributes
    ----------
    log_weights : ndarray (n, n)
        Logarithms of the weights of the edges, -inf on the diagonal and where there is
        no edge.
    n_categories : tuple of int
        Number of categories of every column.
    """

    _cheap_products = True

    def _set_trees(self, index, log_weights, constant=0.0):
        self._index = index
        self.n_categories = index.sizes
        log_weights.setflags(write=False)
        self.log_weights = log_weights
        # what rows have added to log Z besides the sum over trees
        self._constant = constant
        self._partition = self._covariance = None

    def _trees(self):
        """log of the sum over trees, and the probabilities of the edges."""
        if self._partition is None:
            self._partition = partition(self.log_weights)
            self._partition[1].setflags(write=False)
        return self._partition

    def _edge_covariance(self):
        if self._covariance is None:
            self._covariance = edge_covariance(self.log_weights, self._trees()[1])
        return self._covariance

    @property
    def edge_probabilities(self) -> FloatArray:
        """Probability of every edge, (n, n); they add up to 2 (n - 1)."""
        return self._trees()[1]

    @property
    def best_tree(self) -> IntArray:
        """Edges (n - 1, 2) of the most probable tree, u < v, sorted."""
        return max_spanning_tree(self.log_weights)

    def sample_trees(self, size: int = 1, random_state: RandomState = None) -> IntArray:
        """Independent random trees.

        Parameters
        ----------
        size : int, default=1
            Number of trees, >= 1.
        random_state : int, RandomState, Generator or None, default=None
            The same seed gives the same trees.

        Returns
        -------
        ndarray of int (size, n - 1, 2)
            Edges (u, v), u < v, of every tree, sorted.
        """
        return sample_spanning_trees(self.log_weights, size, random_state)

    def to_networkx(
        self, feature_names: Sequence[str] | None = None, *, least: float = 0.0
    ) -> Any:
        """Return the edges that trees may have as a graph of networkx.

        Parameters
        ----------
        feature_names : sequence of str, optional
            Names of the columns; numbers from 0 by default.
        least : float, default=0.0
            Edges that are less probable are left out, but for those of the best tree.

        Returns
        -------
        networkx.Graph
            A node for each column, with ``n_categories``; on the edges ``probability``,
            and ``best``, whether the most probable tree has it.

        Raises
        ------
        ImportError
            If networkx is not installed.
        ValueError
            For a wrong number of names.
        """
        return self._graph(feature_names, least).to_networkx()

    def to_graphviz(
        self, feature_names: Sequence[str] | None = None, *, least: float = 0.05
    ) -> str:
        """Return the edges that trees may have as text in GraphViz's language DOT.

        Parameters
        ----------
        feature_names : sequence of str, optional
            Names of the columns; numbers from 0 by default.
        least : float, default=0.05
            Edges that are less probable are left out, but for those of the best tree.

        Returns
        -------
        str
            For the command ``dot``, or ``graphviz.Source``. Edges have their
            probabilities, and lines as wide.

        Raises
        ------
        ValueError
            For a wrong number of names.
        """
        return self._graph(feature_names, least).to_graphviz()

    def _graph(self, feature_names, least):
        v.check_nonnegative("least", least)
        n = len(self.n_categories)
        names = range(n) if feature_names is None else list(feature_names)
        if len({*names}) != n:
            raise ValueError(
                f"feature_names={v.shown(feature_names)} must hold {n} different "
                "names, one per column, or be None for numbers."
            )
        nodes = {
            name: {"n_categories": int(size)}
            for name, size in zip(names, self.n_categories, strict=True)
        }
        shares, best = self.edge_probabilities, {*map(tuple, self.best_tree.tolist())}
        edges = {
            (names[i], names[j]): {
                "probability": float(shares[i, j]),
                "best": (i, j) in best,
            }
            for i in range(n)
            for j in range(i + 1, n)
            if (i, j) in best or (shares[i, j] > 0 and shares[i, j] >= least)
        }
        return Graph(False, nodes, edges)

    # -- on rows -------------------------------------------------------------------
    def _prepare(self, X):
        return TreeRows(X, self._index)

    def _length(self, data):
        return data.n_rows

    def _part(self, data, rows):
        return data.part(rows)

    def _log_normalizer(self):
        return self._constant + self._trees()[0]

    def _row_table(self, single, ratios, pairs):
        """Table whose scores are sum_v single_v + sum_{uv} pairs_uv ratios_uv."""
        table = self._index.expand(pairs) * ratios
        np.fill_diagonal(table, single)
        return table

    def _tree_covariance(self, data, ratios):
        """Covariances (n_rows, n_rows) of the sums of `ratios` over the edges."""
        F = data.features(ratios)
        found = self._edge_covariance()
        if not isinstance(found, DenseEdgeCovariance):
            found = self._stored_edges()
        with single_threaded_blas():
            out = (F @ found.matrix) @ F.T
        return 0.5 * (out + out.T)

    def _tree_factor(self, data, ratios):
        """F with F F' the covariance of the sums of `ratios` over the edges."""
        return data.features(ratios) @ self._stored_edges().root()

    def _stored_edges(self):
        return stored_edge_covariance(self.log_weights, self._trees()[1])


def factor_by_products(prior, data, *curvature):
    """The factor where only products are cheap: for few rows, and for tests."""
    rows = np.eye(data.n_rows)
    H = np.column_stack([prior._product(data, row, *curvature) for row in rows])
    return semidefinite_root(0.5 * (H + H.T))


def check_weights_of(index, log_weights):
    """Checked log weights (n, n), a copy; zeros off the diagonal by default."""
    n = index.n
    if log_weights is None:
        out = np.zeros((n, n))
        np.fill_diagonal(out, -np.inf)
        return out
    weights = check_log_weights(log_weights, one=True)
    if len(weights) != n:
        raise ValueError(
            f"log_weights has n={len(weights)} columns, and n_categories has {n}."
        )
    return np.array(0.5 * (weights + weights.T))


def check_pairs(name, table, index):
    """Symmetric (D, D), a copy."""
    table = np.array(v.as_doubles(name, table))
    shape = (index.total, index.total)
    if table.shape != shape:
        raise ValueError(
            f"{name} has shape {table.shape}; n_categories ask for {shape}."
        )
    with np.errstate(invalid="ignore"):
        differs = ~(np.abs(table - table.T) <= 1e-8 * (1.0 + np.abs(table)))
    differs &= np.isfinite(table)
    if differs.any():
        i, j = (int(k) for k in np.argwhere(differs)[0])
        raise ValueError(
            f"{name} is not symmetric: {name}[{i}, {j}]={table[i, j]:g} but "
            f"{name}[{j}, {i}]={table[j, i]:g}."
        )
    return table
