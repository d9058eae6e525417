"""What Bayes nets and Markov random fields share: sums over their hidden nodes."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._inputs.frames import columns_of_nodes
from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent.models._criteria import RowCriteria
from maxent.models._graphs import NetGraph
from maxent.models.base import Model
from maxent.models.networks._elimination import MAX_TABLE, Elimination, Scope
from maxent.models.networks._factor_input import (
    Array,
    Codes,
    Names,
    codes_of,
    node_names,
)
from maxent.models.networks._factor_rows import Rows


class FactorModel(NetGraph, RowCriteria, Model):
    """Distribution ``p(x) = prod_f f(x_f) / Z`` of categorical nodes.

    A subclass stores its factors and `observed`, and defines `_log_factors` and
    `_log_normalizer`.
    """

    observed: Names

    # -- structure ---------------------------------------------------------------------
    @property
    @abstractmethod
    def _log_factors(self) -> Sequence[tuple[Names, Array]]:
        """Factors as (nodes, logarithms of the table)."""

    @abstractmethod
    def _log_normalizer(self, max_table: int = MAX_TABLE) -> float:
        """log Z."""

    @functools.cached_property
    def n_categories(self) -> dict[str, int]:
        """Number of categories of every node, in the order of the nodes."""
        return {
            name: size
            for nodes, table in self._log_factors
            for name, size in zip(nodes, table.shape)
        }

    @property
    def nodes(self) -> Names:
        """Names of all nodes."""
        return tuple(self.n_categories)

    @property
    def hidden(self) -> Names:
        """Names of the nodes that data do not show."""
        return tuple(name for name in self.nodes if name not in self.observed)

    @property
    def n_features(self) -> int:
        """Columns of the data."""
        return len(self.observed)

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of the data: the observed nodes.

        Data frames have them in any order; arrays have their columns in this one.
        """
        return list(self.observed)

    @property
    def observed_sizes(self) -> dict[str, int]:
        """Number of categories of every observed node."""
        return {name: self.n_categories[name] for name in self.observed}

    @functools.cached_property
    def _sorted(self) -> tuple[list[Scope], list[Array]]:
        """Scopes by numbers of nodes, increasing, and tables with these axes."""
        return sorted_factors(self._log_factors, list(self.n_categories))

    @functools.cached_property
    def _by_name(self) -> tuple[list[Scope], list[Array]]:
        """Scopes and tables with nodes sorted by name, and factors by scope."""
        scopes, tables = sorted_factors(self._log_factors, sorted(self.n_categories))
        order = sorted(range(len(scopes)), key=scopes.__getitem__)
        return [scopes[k] for k in order], [tables[k] for k in order]

    @functools.cached_property
    def _structure(self) -> tuple[Any, ...]:
        """Equal for models whose tables differ only, in whatever order they come."""
        sizes = tuple(sorted(self.n_categories.items()))
        return tuple(self._by_name[0]), sizes, tuple(sorted(self.observed))

    def _codes(self, X: ArrayLike) -> Codes:
        """Codes (n, n_features) of the observed nodes, -1 where a value is missing."""
        X = columns_of_nodes("X", X, self.observed)
        return codes_of(X, list(self.observed_sizes.values()))

    def _rows(self, X: ArrayLike, max_table: int) -> Rows:
        sizes = tuple(self.n_categories.values())
        columns = tuple(self.nodes.index(name) for name in self.observed)
        return Rows(self._codes(X), columns, self._sorted[0], sizes, max_table)

    def _n_observed(self, X: ArrayLike) -> int:
        return int(np.count_nonzero((self._codes(X) >= 0).any(axis=1)))

    # -- inference ---------------------------------------------------------------------
    def log_prob(self, X: ArrayLike, *, max_table: int = MAX_TABLE) -> Array:
        """Log-probability of every row of the observed nodes.

        Parameters
        ----------
        X : array-like (n_samples, n_features)
            Codes 0, 1, ... of the categories; -1 or NaN where a value is missing.
            Missing values and hidden nodes are summed over.
        max_table : int, default=2**26
            Entries that a table of these sums may have.

        Returns
        -------
        ndarray (n_samples,)
            In nats; -inf of a row that the model cannot produce.

        Raises
        ------
        ValueError
            For values that are no category, and if a table would be too large.
        """
        rows = self._rows(X, max_table)
        _, tables = self._sorted
        out = np.empty(len(rows.codes))
        for part in rows.parts():
            out[part.index] = part.plan.log_sum(part.tables(tables))[0]
        return out[rows.inverse] - self._log_normalizer(max_table)

    def log_likelihood(self, X: ArrayLike, *, max_table: int = MAX_TABLE) -> Array:
        """Log-likelihood of every row; the same as `log_prob`.

        Parameters
        ----------
        X : array-like (n_samples, n_features)
            As for `log_prob`.
        max_table : int, default=2**26
            Entries that a table of the sums may have.

        Returns
        -------
        ndarray (n_samples,)
        """
        return self.log_prob(X, max_table=max_table)

    def posterior(
        self,
        X: ArrayLike,
        nodes: Sequence[str] | None = None,
        *,
        max_table: int = MAX_TABLE,
    ) -> dict[str, Array]:
        """Posterior probabilities of the categories of single nodes for every row.

        Parameters
        ----------
        X : array-like (n_samples, n_features)
            Codes of the observed nodes; -1 or NaN where a value is missing.
        nodes : sequence of str, optional
            None takes the hidden ones. Observed ones have the posterior of their
            missing values.
        max_table : int, default=2**26
            Entries that a table of the sums may have.

        Returns
        -------
        dict {str: ndarray (n_samples, n_categories of the node)}
            Rows sum to one.

        Raises
        ------
        ValueError
            If a row has probability zero; the first one is named.
        """
        wanted = self._numbers("nodes", self.hidden if nodes is None else nodes)
        rows = self._rows(X, max_table)
        scopes, tables = self._sorted
        sizes = tuple(self.n_categories.values())
        rows.scopes = [*scopes, *((u,) for u in wanted.values())]
        extra = [np.zeros(sizes[u]) for u in wanted.values()]
        out = {
            name: np.empty((len(rows.codes), sizes[u])) for name, u in wanted.items()
        }
        total = np.empty(len(rows.codes))
        for part in rows.parts(backwards=True):
            total[part.index], beliefs = part.posterior([*tables, *extra])
            for (name, u), belief in zip(wanted.items(), beliefs[len(scopes) :]):
                known = part.known[u]
                full = np.eye(sizes[u])[known] if known is not None else belief[:, 0].T
                out[name][part.index] = full
        wrong = np.isneginf(total)[rows.inverse]
        if wrong.any():
            raise ValueError(
                f"X[{int(np.argmax(wrong))}] has probability 0 under the model, so it "
                "has no posterior."
            )
        return {name: table[rows.inverse] for name, table in out.items()}

    def impute(self, X: ArrayLike, *, max_table: int = MAX_TABLE) -> Codes:
        """Rows with every missing value at its most likely category.

        Each value alone is the most likely one given what is observed of the row; of
        several missing ones, `posterior` of their columns has all probabilities.

        Parameters
        ----------
        X : array-like (n_samples, n_features)
            Codes of the observed nodes; -1 or NaN where a value is missing.
        max_table : int, default=2**26
            Entries that a table of the sums may have.

        Returns
        -------
        ndarray of int (n_samples, n_features)
            In the order of `feature_names`. Ties go to the lowest code.

        Raises
        ------
        ValueError
            If a row has probability zero; the first one is named.

        Examples
        --------
        >>> from maxent.models import BayesNet
        >>> net = BayesNet([("a", [0.6, 0.4]), (("a", "b"), [[0.9, 0.1], [0.2, 0.8]])])
        >>> net.impute([[0, -1], [-1, 1], [-1, -1]])
        array([[0, 0],
               [1, 1],
               [0, 0]])
        >>> net.posterior([[-1, 1]], ["a"])["a"].round(3)
        array([[0.158, 0.842]])
        """
        out = self._codes(X)
        lost = out < 0
        places = {self.observed[k]: k for k in range(out.shape[1]) if lost[:, k].any()}
        if places:
            likely = self.posterior(out, tuple(places), max_table=max_table)
            for name, k in places.items():
                out[lost[:, k], k] = likely[name][lost[:, k]].argmax(axis=1)
        return out

    def marginal(
        self,
        nodes: str | Sequence[str],
        given: Mapping[str, int] | None = None,
        *,
        max_table: int = MAX_TABLE,
    ) -> Array:
        """Joint distribution of some nodes.

        Parameters
        ----------
        nodes : str or sequence of str
            Hidden or observed.
        given : mapping {str: int}, optional
            Codes of nodes on which it is conditioned.
        max_table : int, default=2**26
            Entries that a table of the sums may have.

        Returns
        -------
        ndarray
            One axis a node, in their order; entries sum to one.

        Raises
        ------
        ValueError
            If `given` has probability zero, or a table would be too large.
        """
        wanted = list(self._numbers("nodes", nodes).values())
        known = self._given(given or {})
        overlap = [u for u in wanted if u in known]
        if overlap:
            raise ValueError(
                f"nodes={v.shown(nodes)} has {self.nodes[overlap[0]]!r}, which is "
                "given; ask for others."
            )
        scopes, tables = self._sorted
        sizes = tuple(self.n_categories.values())
        free = [tuple(u for u in scope if u not in known) for scope in scopes]
        cut = [
            t[tuple(known.get(u, slice(None)) for u in scope)][..., None, None]
            for scope, t in zip(scopes, tables)
        ]
        plan = Elimination(free, sizes, wanted, max_table=max_table)
        log_p = plan.log_sum(cut)[..., 0, 0]
        top = log_p.max()
        if top == -np.inf:
            raise ValueError(f"given={v.shown(given)} has probability 0.")
        p = np.exp(log_p - top)
        order = np.argsort(np.argsort(wanted))
        return np.transpose(p / p.sum(), order)

    def _numbers(self, what: str, nodes: Any) -> dict[str, int]:
        place = {name: i for i, name in enumerate(self.nodes)}
        names = node_names(what, nodes)
        for name in names:
            if name not in place:
                raise ValueError(
                    f"{what}={v.shown(nodes)} has {name!r}, which is no node: choose "
                    f"from {v.shown(list(place))}."
                )
        return {name: place[name] for name in names}

    def _given(self, given: Mapping[str, Any]) -> dict[int, int]:
        places = self._numbers("given", tuple(given))
        for name, code in given.items():
            size = self.n_categories[name]
            if not isinstance(code, Integral) or not 0 <= int(code) < size:
                raise ValueError(
                    f"given[{name!r}]={v.shown(code)} is not a category; codes are 0 "
                    f"to {size - 1}."
                )
        return {u: int(given[name]) for name, u in places.items()}

    # -- draws -------------------------------------------------------------------------
    @abstractmethod
    def _draw(self, n: int, rng: np.random.Generator) -> dict[int, NDArray[np.intp]]:
        """Draws of all nodes by their numbers."""

    @overload
    def sample(
        self, n: int, random_state: Any = ..., *, return_hidden: Literal[False] = ...
    ) -> NDArray[np.intp]: ...
    @overload
    def sample(
        self, n: int, random_state: Any = ..., *, return_hidden: Literal[True]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]: ...
    def sample(
        self, n: int, random_state: Any = None, *, return_hidden: bool = False
    ) -> Any:
        """Independent draws.

        Parameters
        ----------
        n : int
            Number of rows, >= 1.
        random_state : int, Generator, RandomState or None, default=None
            The same seed gives the same draws.
        return_hidden : bool, default=False
            Return the hidden nodes too.

        Returns
        -------
        X : ndarray of int (n, n_features)
            Codes of the observed nodes.
        hidden : ndarray of int (n, n_hidden)
            Only if `return_hidden`; in the order of `hidden`.
        """
        drawn = self._draw(v.check_count("n", n), as_generator(random_state))

        def columns(names):
            found = [drawn[self.nodes.index(name)] for name in names]
            return np.array(found, dtype=np.intp).reshape(len(found), n).T

        X = columns(self.observed)
        return (X, columns(self.hidden)) if return_hidden else X

    # -- files -------------------------------------------------------------------------
    @classmethod
    def _from_flat(cls, factors: Sequence[Any], rest: dict[str, Any]) -> Self:
        """From factors (nodes, shape, entries); files hold no arrays of many axes."""
        whole = [
            (nodes, np.reshape(entries, tuple(int(size) for size in shape)))
            for nodes, shape, entries in factors
        ]
        make: Any = cls
        return make(whole, **rest)


def flat_factors(factors: Sequence[tuple[Names, Array]]) -> list[Any]:
    """Factors as (nodes, shape, entries)."""
    return [[list(nodes), list(t.shape), t.ravel()] for nodes, t in factors]


def sorted_factors(
    factors: Sequence[tuple[Names, Array]], nodes: Sequence[str]
) -> tuple[list[Scope], list[Array]]:
    """Scopes by places among the nodes, increasing, and tables with these axes."""
    place = {name: i for i, name in enumerate(nodes)}
    scopes, tables = [], []
    for names, table in factors:
        numbers = [place[name] for name in names]
        order = np.argsort(numbers)
        scopes.append(tuple(numbers[i] for i in order))
        tables.append(np.transpose(table, order))
    return scopes, tables
