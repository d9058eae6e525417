"""Dirichlet distributions over tables of probabilities.

Cells are grouped into tables; each table is a distribution over its cells with a
Dirichlet prior. A row counts how often it visits each cell, so that

    log p(x | theta) = sum over cells of count * log theta_cell.

Products of multinomials, counts of words and Bayes nets of fixed structure differ only
in which cells a row visits.

Source: Jaakkola, Meila & Jebara (1999), section 3.6 and eq. (46).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln, polygamma, psi

from maxent._support import validation as v
from maxent.families.conjugate import ConjugatePrior


class DirichletTables(ConjugatePrior):
    """Base class: Dirichlet priors over grouped cells.

    A subclass defines `_counts(X)`, the CSR matrix (n, n_cells) of visits, and
    `_with(alpha)`, a value of its class with other pseudo-counts.

    Attributes
    ----------
    pseudo_counts : list of ndarray
        One array a node, of shape (parent configurations, categories).
    """

    _largest = 0.0

    def _set_cells(self, tables):
        """Tables (q, r): q groups of r cells each."""
        self.pseudo_counts = tables
        for table in tables:
            table.setflags(write=False)
        self._alpha = np.concatenate([table.ravel() for table in tables])
        sizes = np.concatenate([np.full(len(t), t.shape[1]) for t in tables])
        self._group = np.repeat(np.arange(len(sizes)), sizes)
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
        cells = self._counts(X)
        groups = sp.csr_array(
            (
                np.ones(len(self._group)),
                self._group,
                np.arange(len(self._group) + 1),
            ),
            shape=(len(self._group), len(self._total)),
        )
        return cells, sp.csr_array(cells @ groups)

    def _length(self, data):
        return data[0].shape[0]

    def _update(self, data, weight):
        alpha = self._alpha + data[0].T @ weight
        if not (np.isfinite(alpha).all() and (alpha > 0).all()):
            return None
        return self._with(self._tables(alpha))

    def _log_normalizer(self):
        return float(gammaln(self._alpha).sum() - gammaln(self._total).sum())

    def _expected(self, data):
        return data[0] @ psi(self._alpha) - data[1] @ psi(self._total)

    def _predictive(self, data):
        cells, groups = data
        if (cells.data == 1).all() and (groups.data == 1).all():
            return cells @ np.log(self._alpha) - groups @ np.log(self._total)
        # counts: the sequential predictive in closed form
        rise = _rise(cells, self._alpha).sum(axis=1)
        return np.asarray(rise - _rise(groups, self._total).sum(axis=1)).ravel()

    def _factor(self, data):
        """Symmetric root of each table's diag(u) - c 11', applied to the visits."""
        cells, groups = data
        u, c = polygamma(1, self._alpha), polygamma(1, self._total)
        load = np.bincount(self._group, 1.0 / u)
        # I - c vv' with v = u^(-1/2) has the root I - beta vv'
        beta = c / (1.0 + np.sqrt(np.maximum(1.0 - c * load, 0.0)))
        spread = sp.csr_array(
            (
                beta[self._group] / np.sqrt(u),
                (self._group, np.arange(len(u))),
            ),
            shape=(len(c), len(u)),
        )
        return cells.multiply(np.sqrt(u)).toarray() - (groups @ spread).toarray()

    def _rank(self, data):
        return len(self._alpha)

    def _product(self, data, x):
        cells, groups = data
        inner = polygamma(1, self._alpha) * (cells.T @ x)
        return cells @ inner - groups @ (polygamma(1, self._total) * (groups.T @ x))

    def _max_step(self, data, direction):
        change = data[0].T @ direction
        down = change < 0
        if not down.any():
            return np.inf
        return float(np.min(self._alpha[down] / -change[down]))

    def _why_improper(self, data, weight):
        at = int(np.argmin(self._alpha + data[0].T @ weight))
        return (
            f"the weighted counts leave cell {at} at or below zero; raise the "
            "pseudo-counts."
        )


def _rise(counts, alpha):
    """log Gamma(alpha + n) - log Gamma(alpha) over the visited cells, CSR."""
    out = counts.copy()
    at = alpha[out.indices]
    out.data = gammaln(at + out.data) - gammaln(at)
    return out


def check_codes(X, sizes):
    """Integer codes (n, n_nodes), X[:, i] < sizes[i]; -1 where a value is missing."""
    X = v.as_doubles("X", X)
    if X.ndim != 2 or X.shape[1] != len(sizes):
        raise ValueError(
            f"X has shape {X.shape}; rows of {len(sizes)} categorical features are "
            "expected."
        )
    if not (np.isfinite(X).all() and (np.floor(X) == X).all()):
        raise ValueError("X must hold integer codes of categories, without NaN.")
    known = (X >= -1) & (np.asarray(sizes) > X)
    if not known.all():
        row, column = np.argwhere(~known)[0]
        raise ValueError(
            f"X[{row}, {column}] = {X[row, column]:g} is not a category: feature "
            f"{column} has the codes 0 to {sizes[column] - 1}, or -1 if it is missing."
        )
    return X.astype(np.intp)


class DirichletBayesNet(DirichletTables):
    """Prior over a Bayes net of fixed structure on categorical features.

    Rows are integer codes; -1 is a missing value and leaves out every factor that it
    enters, which is exact for a feature without children.

    Parameters
    ----------
    pseudo_counts : list of array-like, or float
        One table for each feature, of shape (q, r): q configurations of its parents,
        in C order of their codes, and r categories, all entries > 0. A float is spread
        evenly over every table, which is the same total in every table of a feature:
        an equivalent sample size.
    parents : list of tuple of int, optional
        Parents of each feature; none by default, which is naive Bayes.
    n_categories : list of int, optional
        Needed if `pseudo_counts` is a float.

    Raises
    ------
    ValueError
        For cyclic parents, tables of the wrong shape, or entries <= 0.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), section 3.6.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.families import DirichletBayesNet
    >>> net = DirichletBayesNet(1.0, parents=[(), (0,)], n_categories=[2, 3])
    >>> [table.shape for table in net.pseudo_counts]
    [(1, 2), (2, 3)]
    >>> block = net.block([[0, 2], [1, 0], [0, 1]])
    >>> round(block.log_partition(np.ones(3)), 6)
    -7.167038
    """

    def __init__(self, pseudo_counts, parents=None, n_categories=None):
        if n_categories is None:
            if v.is_real(pseudo_counts):
                raise ValueError(
                    "n_categories is needed if pseudo_counts is one number."
                )
            n_categories = [np.shape(table)[-1] for table in pseudo_counts]
        sizes = [v.check_count("n_categories", r) for r in n_categories]
        if not sizes:
            raise ValueError("there are no tables; a net needs at least one feature.")
        parents = [()] * len(sizes) if parents is None else parents
        self.parents = check_parents(parents, len(sizes))
        self.n_categories = tuple(sizes)
        shapes = [
            (int(np.prod([sizes[p] for p in found], dtype=float)), sizes[k])
            for k, found in enumerate(self.parents)
        ]
        for k, (q, r) in enumerate(shapes):
            if q * r > 10_000_000:
                raise ValueError(
                    f"feature {k} has {q} parent configurations of {r} categories: "
                    "too many cells for a table. Give it fewer parents."
                )
        if v.is_real(pseudo_counts):
            size = v.check_positive("pseudo_counts", pseudo_counts)
            tables = [np.full(shape, size / np.prod(shape)) for shape in shapes]
        else:
            if len(pseudo_counts) != len(shapes):
                raise ValueError(
                    f"pseudo_counts has {len(pseudo_counts)} tables; one for each of "
                    f"the {len(shapes)} features is needed."
                )
            tables = [
                _check_table(k, table, shape)
                for k, (table, shape) in enumerate(
                    zip(pseudo_counts, shapes, strict=True)
                )
            ]
        self._set_cells(tables)

    def __repr__(self):
        return (
            f"DirichletBayesNet(parents={list(self.parents)!r}, "
            f"n_categories={list(self.n_categories)!r})"
        )

    def get_spec(self):
        """Parameters by name, enough to build an equal value.

        Returns
        -------
        dict
            Keyword arguments of the constructor.
        """
        return {
            "pseudo_counts": list(self.pseudo_counts),
            "parents": list(self.parents),
            "n_categories": list(self.n_categories),
        }

    def _with(self, tables):
        value = object.__new__(type(self))
        value.parents, value.n_categories = self.parents, self.n_categories
        value._set_cells(tables)
        return value

    def _counts(self, X):
        codes = check_codes(X, self.n_categories)
        cells = np.empty(codes.shape, dtype=np.intp)
        known = codes >= 0
        first = 0
        for k, found in enumerate(self.parents):
            at = np.zeros(len(codes), dtype=np.intp)
            for p in found:
                at = at * self.n_categories[p] + codes[:, p]
                known[:, k] &= codes[:, p] >= 0
            cells[:, k] = first + at * self.n_categories[k] + codes[:, k]
            first += self.pseudo_counts[k].size
        # a factor with a missing value is left out
        ends = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
        return sp.csr_array(
            (np.ones(ends[-1]), cells[known], ends), shape=(len(codes), first)
        )


class DirichletProduct(DirichletBayesNet):
    """Prior over a product of categorical distributions, one for each feature.

    Parameters
    ----------
    pseudo_counts : list of array-like, or float
        One vector (r,) for each feature with entries > 0, or the number that every
        category gets.
    n_categories : list of int, optional
        Needed if `pseudo_counts` is a float.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), eq. (46).

    Examples
    --------
    >>> from maxent.families import DirichletProduct
    >>> prior = DirichletProduct(1.0, n_categories=[4, 4])
    >>> prior.posterior([[0, 1], [0, 3]]).pseudo_counts[0]
    array([[3., 1., 1., 1.]])
    """

    def __init__(self, pseudo_counts, n_categories=None):
        if v.is_real(pseudo_counts):
            each = v.check_positive("pseudo_counts", pseudo_counts)
            if n_categories is None:
                raise ValueError(
                    "n_categories is needed if pseudo_counts is one number."
                )
            pseudo_counts = [
                np.full(v.check_count("n_categories", r), each) for r in n_categories
            ]
        tables = [np.reshape(table, (1, -1)) for table in pseudo_counts]
        super().__init__(tables)

    def __repr__(self):
        return f"DirichletProduct(n_categories={list(self.n_categories)!r})"

    def get_spec(self):
        """Parameters by name, enough to build an equal value.

        Returns
        -------
        dict
            Keyword arguments of the constructor.
        """
        return {"pseudo_counts": [table[0] for table in self.pseudo_counts]}


class DirichletCounts(DirichletTables):
    """Prior over a multinomial: rows are vectors of counts, such as words.

    The multinomial coefficient, which no parameter changes, is left out of the
    log-likelihood.

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

    def __init__(self, pseudo_counts):
        table = np.reshape(pseudo_counts, (1, -1))
        self._set_cells([_check_table(0, table, table.shape)])

    def __repr__(self):
        return f"DirichletCounts(pseudo_counts={self.pseudo_counts[0][0]!r})"

    def get_spec(self):
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
            raise ValueError(f"X has shape {X.shape}; rows of {r} counts are expected.")
        X = sp.csr_array(X, dtype=np.float64)
        if not np.isfinite(X.data).all() or (X.data < 0).any():
            raise ValueError("X must hold counts >= 0, without NaN.")
        return X


def check_parents(parents, n):
    """Tuple of parents for each of n features, without a cycle."""
    parents = list(parents)
    if len(parents) != n:
        raise ValueError(
            f"parents has {len(parents)} entries; one for each of the {n} features is "
            "needed."
        )
    out = []
    for k, found in enumerate(parents):
        found = tuple(int(p) for p in found)
        if any(not 0 <= p < n or p == k for p in found) or len(set(found)) < len(found):
            raise ValueError(
                f"parents[{k}] = {found} must be different features between 0 and "
                f"{n - 1}, other than {k} itself."
            )
        out.append(found)
    placed: set[int] = set()
    while len(placed) < n:
        ready = {k for k in range(n) if k not in placed and placed.issuperset(out[k])}
        if not ready:
            cycle = sorted(set(range(n)) - placed)
            raise ValueError(
                f"parents has a cycle among the features {cycle}; a Bayes net has none."
            )
        placed |= ready
    return tuple(out)


def _check_table(k, table, shape):
    table = np.array(v.as_doubles(f"pseudo_counts[{k}]", table))
    if table.shape != shape:
        raise ValueError(
            f"pseudo_counts[{k}] has shape {table.shape}; its parents and categories "
            f"ask for {shape}."
        )
    if not table.size:
        raise ValueError(f"pseudo_counts[{k}] is empty; a table needs categories.")
    if not np.isfinite(table).all() or not (table > 0).all():
        raise ValueError(
            f"pseudo_counts[{k}] has entries that are not > 0; every category needs a "
            "positive pseudo-count."
        )
    return table
