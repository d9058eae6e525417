"""Distributions over dependency trees of categorical columns, as conjugate priors.

A tree E over n columns with tables T gives a row the probability

    T(x) = prod_{uv in E} T_uv(x_u, x_v) / prod_v T_v(x_v)^(deg v - 1)
         = exp( w_0(x) + sum_{uv in E} w_uv(x) ),
    w_0 = sum_v log T_v,  w_uv = log T_uv / (T_u T_v).

The tree is random, with P(E) proportional to the product of the weights of its edges;
the tables are the same for all trees (:class:`SpanningTrees`), or random as well
(:class:`DirichletTrees`). All sums over the n^(n-2) trees are exact.

Source: Jaakkola, Meila & Jebara (1999), sections 3.3-3.5, appendices A and B. Their eq.
(31) takes the log weight for the weight; their eq. (67)-(68) are right in sum only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from maxent._inputs.codes import check_sizes
from maxent._support import validation as v
from maxent._support.threads import single_threaded_blas
from maxent._support.typing import ArrayLike
from maxent.models.trees._edge_moments import SMALL, edge_table, edge_vector
from maxent.models.trees._pair_counts import TreeRows, log_tables, uniform_counts
from maxent.models.trees._prior import (
    NO_FACTOR,
    TreePrior,
    check_pairs,
    check_weights_of,
    factor_by_products,
)
from maxent.models.trees.chow_liu import max_spanning_tree


class SpanningTrees(TreePrior):
    """Random trees over categorical columns with given tables.

    Parameters
    ----------
    log_marginals : array-like (D,)
        log T_v of the categories of all columns, one column after the other.
    log_ratios : array-like (D, D)
        log T_uv / (T_u T_v) at all pairs of categories, symmetric; entries of two
        categories of one column are not read. Any finite numbers will do, such as
        expectations of logarithms.
    n_categories : sequence of int
        Number of categories of every column; they add up to D.
    log_weights : array-like (n, n), optional
        Logarithms of the edge weights, symmetric, -inf on the diagonal and for edges
        that no tree has. All trees are alike by default.

    Attributes
    ----------
    log_marginals, log_ratios, log_weights : ndarray
        The parameters; read-only.
    n_categories : tuple of int

    Raises
    ------
    ValueError
        For fewer than two columns, shapes that do not fit, numbers that are not finite,
        and edges that do not connect all columns.
    MemoryError
        Where the tables would exceed the memory of the machine.

    See Also
    --------
    DirichletTrees : Tables that are random as well.
    MEDTreeClassifier : One distribution a class, trained for margins.

    Notes
    -----
    Rows x_t of weights a_t multiply the weight of edge uv by ``exp(sum_t a_t
    w_uv(x_t))``; every real weight is allowed. A missing value, code -1, leaves out
    every factor that it enters.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), sections 3.3-3.4, eqs. (27)-(40).

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.discrimination import SpanningTrees
    >>> X = np.array([[0, 0, 1], [0, 0, 0], [1, 1, 0], [1, 1, 1]])
    >>> prior = SpanningTrees.fit(X)
    >>> prior.posterior(X).edge_probabilities.round(2)
    array([[0.  , 0.95, 0.52],
           [0.95, 0.  , 0.52],
           [0.52, 0.52, 0.  ]])
    """

    def __init__(
        self,
        log_marginals: ArrayLike,
        log_ratios: ArrayLike,
        n_categories: Iterable[int],
        log_weights: ArrayLike | None = None,
    ) -> None:
        index = check_sizes(n_categories)
        single = np.array(v.as_doubles("log_marginals", log_marginals))
        if single.shape != (index.total,):
            raise ValueError(
                f"log_marginals has shape {single.shape}; n_categories ask for "
                f"({index.total},)."
            )
        if not np.isfinite(single).all():
            raise ValueError(
                "log_marginals has entries that are not finite; smooth the tables."
            )
        v.check_range("log_marginals", single)
        ratios = check_pairs("log_ratios", log_ratios, index)
        if not np.isfinite(ratios).all():
            raise ValueError(
                "log_ratios has entries that are not finite; smooth the tables."
            )
        v.check_range("log_ratios", ratios)
        ratios[~(index.above() | index.above().T)] = 0.0
        self._set_tables(single, ratios)
        self._set_trees(index, check_weights_of(index, log_weights))
        self._trees()  # refuses edges that leave separate parts

    @classmethod
    def fit(
        cls,
        X: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        ess: float = 1.0,
        n_categories: Iterable[int] | None = None,
        log_weights: ArrayLike | None = None,
    ) -> Self:
        """Tables from rows, with all trees alike.

        Parameters
        ----------
        X : array-like of int (n_rows, n)
            Codes 0, 1, ... of the categories, n >= 2 columns, none missing.
        sample_weight : array-like (n_rows,), optional
            Weights >= 0.
        ess : float, default=1.0
            Equivalent sample size, >= 0: this many rows are spread evenly over the
            cells of every table, so that all tables agree on their margins.
        n_categories : sequence of int, optional
            Number of categories of every column; the largest code plus one by default.
        log_weights : array-like (n, n), optional
            As for the constructor.

        Returns
        -------
        SpanningTrees

        Raises
        ------
        ValueError
            As for the constructor, for weights that are negative or all zero, and if a
            pair of categories never occurs and `ess` is zero.
        """
        ess = v.check_nonnegative("ess", ess)
        rows = complete_rows(X, n_categories)
        weight = v.check_weights(sample_weight, rows.n_rows)
        return cls._of_rows(rows, weight, ess, log_weights)

    @classmethod
    def _of_rows(cls, rows, weight, ess, log_weights):
        index = rows.own
        counts = rows.counts(weight) + uniform_counts(ess, index)
        cells = index.above()
        if log_weights is not None:
            allowed = ~np.isneginf(check_weights_of(index, log_weights))
            cells &= index.expand(allowed)
        check_no_empty_cell(counts, index, cells)
        single, ratios = log_tables(counts, np.log, index, cells)
        return cls._of(single, ratios, index, log_weights)

    @classmethod
    def _of(cls, single, ratios, index, log_weights):
        value = object.__new__(cls)
        value._set_tables(single, ratios + ratios.T)
        value._set_trees(index, check_weights_of(index, log_weights))
        value._trees()
        return value

    def _set_tables(self, single, ratios):
        self.log_marginals, self.log_ratios = single, ratios
        for array in (single, ratios):
            array.setflags(write=False)

    def __repr__(self):
        return f"SpanningTrees(n_categories={list(self.n_categories)!r})"

    def get_spec(self) -> dict[str, Any]:
        """Parameters by name, enough to build an equal value.

        Returns
        -------
        dict
            Keyword arguments of the constructor.
        """
        return {
            "log_marginals": self.log_marginals,
            "log_ratios": self.log_ratios,
            "n_categories": list(self.n_categories),
            "log_weights": self.log_weights,
        }

    # -- on rows -------------------------------------------------------------------
    def _bound(self, X):
        data = self._prepare(X)
        if self._index.n <= SMALL:
            data.keep_features()
        return data

    def _matrix_cost(self, data):
        return 1.0 if data.keeps_features else super()._matrix_cost(data)

    def _update(self, data, weight):
        if data.keeps_features:
            with single_threaded_blas():
                moved = edge_table(weight @ data.features(self.log_ratios))
                added = float(weight @ data.singles(self.log_marginals))
            return self._with(self.log_weights + moved, self._constant + added)
        counts = data.counts(weight)
        moved = np.tril(self._index.pair_sums(self.log_ratios * counts), -1)
        moved = moved + moved.T  # to the bit, as sums of either side may not be
        added = float(self.log_marginals @ counts.diagonal())
        return self._with(self.log_weights + moved, self._constant + added)

    def _with(self, log_weights, constant):
        value = object.__new__(type(self))
        value._set_tables(self.log_marginals, self.log_ratios)
        value._set_trees(self._index, log_weights, constant)
        return value

    def _expected(self, data):
        if data.keeps_features:
            p = edge_vector(self._trees()[1])
            with single_threaded_blas():
                trees = data.features(self.log_ratios) @ p
            return data.singles(self.log_marginals) + trees
        table = self._row_table(self.log_marginals, self.log_ratios, self._trees()[1])
        return data.scores(table)

    def _predictive(self, data):
        table = self.log_ratios.copy()
        np.fill_diagonal(table, self.log_marginals)
        return data.log_mean(self.log_weights, table) - self._trees()[0]

    def _rank(self, data):
        n = self._index.n
        stored = n <= SMALL and data.may_store_features()
        return n * (n - 1) // 2 if stored else NO_FACTOR

    def _factor(self, data):
        if self._index.n > SMALL:
            return factor_by_products(self, data)
        return self._tree_factor(data, self.log_ratios)

    def _matrix(self, data, curvature=None):
        if self._index.n > SMALL or not data.may_store_features():
            return None
        return self._tree_covariance(data, self.log_ratios)

    def _product(self, data, x):
        if data.keeps_features:
            F, covariance = data.features(self.log_ratios), self._edge_covariance()
            with single_threaded_blas():
                return F @ covariance.along(x @ F)
        f = self._index.pair_sums(self.log_ratios * data.counts(x))
        dp = self._edge_covariance().product(f)
        nothing = np.zeros(self._index.total)
        return data.scores(self._row_table(nothing, self.log_ratios, dp))

    def _max_step(self, data, direction):
        return np.inf

    def _why_improper(self, data, weight):
        return "the weights of the rows are too large for the sums over trees."


def best_tree_scores(block, a):
    """Best tree at row weights a, and its log-probabilities of all rows.

    Parameters
    ----------
    block : ConjugateBlock
        Of SpanningTrees.
    a : ndarray (n_rows,)

    Returns
    -------
    edges : ndarray of int (n - 1, 2)
        The tree of the largest weighted log-likelihood among those with a weight.
    scores : ndarray (n_rows,)
    """
    prior, data = block.prior, block.data
    index = prior._index
    weights = index.pair_sums(prior.log_ratios * data.counts(a))
    weights[np.isneginf(prior.log_weights)] = -np.inf
    edges = max_spanning_tree(weights)
    chosen = np.zeros((index.n, index.n))
    chosen[edges[:, 0], edges[:, 1]] = chosen[edges[:, 1], edges[:, 0]] = 1.0
    table = prior._row_table(prior.log_marginals, prior.log_ratios, chosen)
    return edges, data.scores(table)


def complete_rows(X, n_categories):
    """TreeRows without missing values; None takes the categories from the codes."""
    if n_categories is None:
        X = v.as_doubles("X", X)
        if X.ndim != 2 or not len(X):
            raise ValueError(f"X has shape {X.shape}; rows of two columns are needed.")
        if not (np.isfinite(X).all() and (X >= 0).all() and (np.floor(X) == X).all()):
            raise ValueError("X must hold integer codes of categories from 0 on.")
        v.check_range("X", X, 65535)
        n_categories = [int(r) + 1 for r in X.max(axis=0)]
    rows = TreeRows(X, check_sizes(n_categories))
    if not rows.complete or not rows.n_rows:
        raise ValueError("X must hold rows without a missing value, code -1.")
    return rows


class EmptyCell(ValueError):
    """A pair of categories that never occurs: `at` has column and category of both."""

    def __init__(self, at):
        self.at = at
        (u, i), (w, j) = at
        super().__init__(
            f"ess=0 leaves the table of columns {u} and {w} empty at category {i} with "
            f"category {j}: the logarithm of its probability is infinite. Use ess > 0."
        )


def check_no_empty_cell(counts, index, cells):
    """Refuse pair counts of zero among `cells`, whose logarithms are infinite."""
    empty = cells & ~(counts > 0)
    if empty.any():
        pair = np.argwhere(empty)[0]
        u = index.column[pair]
        i = pair - index.offset[u]
        raise EmptyCell([(int(a), int(b)) for a, b in zip(u, i, strict=True)])
