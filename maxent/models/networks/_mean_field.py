"""Mean field: lower bounds of log Z of a product of tables.

    log Z >= sum_f E_Q[log f] + H(Q),   Q = prod_c Q_c over clusters of variables

is raised by setting one cluster at a time to its best distribution given the others,

    Q_c ~ exp(sum_f E_{Q without c}[log f]).

A cluster of several variables has tables of its own, the expectations above, and its
marginals come from variable elimination. The bound holds after every update.

Sources: Jebara, Kondor & Howard (2004), section 6; Saul & Jordan (1996), Exploiting
tractable substructures in intractable networks; Wainwright & Jordan (2008), chapter 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent._support import validation as v
from maxent.models._settling import SWEEPS
from maxent.models.networks._elimination import Elimination, Scope
from maxent.models.networks._factor_input import node_names

Array = NDArray[np.float64]

_GAIN = 1e-10  # relative gain of a bound by a sweep that ends them
_FLOOR = 50.0  # nats below the top that stand for -inf at first
_GONE = 1e-9  # probability of what the floor forbids once the beliefs have settled


class MeanField:
    """Mean field over clusters of variables, for a batch of tables at once.

    Parameters
    ----------
    scopes : sequence of tuple of int
        Variables of every table, increasing.
    sizes : sequence of int
        Number of states of every variable.
    tables : sequence of ndarray
        Logarithms over the scopes, with the two axes of the batch at the end.
    clusters : sequence of tuple of int
        Disjoint; together all variables of the scopes.
    shape : tuple of int
        Lengths of the two axes of the batch.
    max_table : int
        Entries that a table over a cluster may have.
    """

    def __init__(
        self,
        scopes: Sequence[Scope],
        sizes: Sequence[int],
        tables: Sequence[Array],
        clusters: Sequence[Scope],
        shape: tuple[int, int],
        max_table: int,
    ):
        self.scopes, self.sizes, self.shape = list(scopes), sizes, shape
        self.clusters = [tuple(sorted(c)) for c in clusters]
        home = {u: c for c, own in enumerate(self.clusters) for u in own}
        self.homes = [sorted({home[u] for u in scope}) for scope in self.scopes]
        self.inner: list[dict[int, Scope]] = [{} for _ in self.clusters]
        for f, scope in enumerate(self.scopes):
            for c in self.homes[f]:
                self.inner[c][f] = tuple(u for u in scope if home[u] == c)
        self.plans = [
            Elimination(
                list(own.values()), sizes, max_table=max_table, what="a cluster"
            )
            for own in self.inner
        ]
        self.beliefs: list[dict[int, Array]] = [{} for _ in self.clusters]
        self.entropy: list[Array] = [np.zeros(shape) for _ in self.clusters]
        self.impossible = np.zeros(shape, dtype=bool)
        self.set(tables)

    def set(self, tables: Sequence[Array]) -> None:
        """Other tables, the same beliefs."""
        self.tables = list(tables)

    def randomize(self, rng: np.random.Generator) -> None:
        """Independent variables with random probabilities.

        They vary over the starts only, so that no table depends on those beside it.
        """
        for c, own in enumerate(self.clusters):
            single, self.entropy[c] = {}, np.zeros(self.shape)
            for u in own:
                q = rng.standard_exponential((self.sizes[u], self.shape[0], 1))
                single[u] = np.broadcast_to(
                    q / q.sum(axis=0), (self.sizes[u], *self.shape)
                )
                self.entropy[c] -= (single[u] * np.log(single[u])).sum(axis=0)
            for f, scope in self.inner[c].items():
                q = np.ones(self.shape)
                for i, u in enumerate(scope):
                    at: list[Any] = [None] * len(scope)
                    at[i] = slice(None)
                    q = q * single[u][tuple(at)]
                self.beliefs[c][f] = q

    def update(self, c: int) -> None:
        """Replace the distribution of cluster c by the best one given the others."""
        inputs = [self._expected(f, c) for f in self.inner[c]]
        # the batch as a whole, also where no table varies over it
        inputs = [np.broadcast_to(t, (*t.shape[:-2], *self.shape)) for t in inputs]
        log_z, found = self.plans[c].beliefs(inputs)
        self.impossible |= np.isneginf(log_z)
        entropy = np.where(np.isneginf(log_z), 0.0, log_z)
        for f, table, q in zip(self.inner[c], inputs, found):
            self.beliefs[c][f] = q
            entropy = entropy - _sum_of_products(table, q, range(table.ndim - 2))
        self.entropy[c] = entropy

    def _expected(self, f: int, c: int | None) -> Array:
        """E of table f under all clusters but c, over the variables of c."""
        table, scope = self.tables[f], self.scopes[f]
        for d in self.homes[f]:
            if d == c:
                continue
            inner = self.inner[d][f]
            q = self.beliefs[d][f]
            q = q[tuple(slice(None) if u in inner else None for u in scope)]
            table = _sum_of_products(
                table, q, [i for i, u in enumerate(scope) if u in inner]
            )
            scope = tuple(u for u in scope if u not in inner)
        return table

    def bound(self) -> Array:
        """Lower bounds of log Z, over the batch."""
        out = sum(self.entropy, np.zeros(self.shape))
        for f in range(len(self.scopes)):
            out = out + self._expected(f, None)
        return np.where(self.impossible, -np.inf, out)

    def sweep(self) -> None:
        """Update every cluster."""
        for c in range(len(self.clusters)):
            self.update(c)

    def settle(self) -> Array:
        """Sweep until no bound of the batch gains more than 1e-10 of its size."""
        self.sweep()
        value = self.bound()
        for _ in range(SWEEPS):
            self.sweep()
            new = self.bound()
            both = np.isfinite(new) & np.isfinite(value)
            gain = np.where(both, new, 0.0) - np.where(both, value, 0.0)
            value = new
            if (gain <= _GAIN * (1.0 + np.abs(np.where(both, new, 0.0)))).all():
                break
        return value

    def settle_with_zeros(self) -> Array:
        """Settle on tables with entries -inf, which freeze the states that they meet.

        The entries -inf are far below the others at first. States that have become
        improbable are then left out, and the bound is raised with the true tables.
        """
        true = self.tables
        self.set([_floored(table) for table in true])
        self.settle()
        self.set(true)
        for own in self.beliefs:
            for f, q in own.items():
                q = np.where(q < _GONE, 0.0, q)
                axes = tuple(range(q.ndim - 2))
                own[f] = q / q.sum(axis=axes, keepdims=True)
        return self.settle()


def best_bounds(
    scopes: Sequence[Scope],
    sizes: Sequence[int],
    tables: Sequence[Array],
    clusters: Sequence[Scope],
    n_init: int,
    n: int,
    rng: np.random.Generator,
    max_table: int,
) -> Array:
    """Greatest bound of several random starts, for every one of n tables.

    The tables vary over the last axis of the batch; starts are the axis before it.
    """
    field = MeanField(scopes, sizes, tables, clusters, (n_init, n), max_table)
    field.randomize(rng)
    zeros = any(np.isneginf(table).any() for table in tables)
    found = field.settle_with_zeros() if zeros else field.settle()
    return found.max(axis=0)


def numbered_clusters(
    given: Sequence[Sequence[str]] | None, places: Mapping[str, Sequence[int]]
) -> list[Scope]:
    """Clusters of variables from names; a name has one variable or several."""
    out, left = [], dict(places)
    for k, own in enumerate(() if given is None else given):
        names = node_names(f"clusters[{k}]", own)
        for name in names:
            if name not in left:
                why = "is in two clusters" if name in places else "is no node"
                raise ValueError(
                    f"clusters[{k}]={v.shown(list(names))} has {name!r}, which {why}."
                )
        out.append(tuple(sorted(u for name in names for u in left.pop(name))))
    out += [(u,) for own in left.values() for u in own]
    return [own for own in out if own]


def _sum_of_products(table: Array, q: Array, axes: Any) -> Array:
    """sum of q table over axes, where 0 times -inf is 0."""
    with np.errstate(invalid="ignore"):
        product = table * q
    if np.isnan(product).any():
        product = np.where(q == 0.0, 0.0, product)
    return product.sum(axis=tuple(axes))


def _floored(table: Array) -> Array:
    """Entries -inf a fixed distance below the others."""
    axes = tuple(range(table.ndim - 2))
    finite = np.where(np.isneginf(table), np.inf, table)
    low = finite.min(axis=axes, keepdims=True)
    low = np.where(np.isfinite(low), low, 0.0) - _FLOOR
    return np.where(np.isneginf(table), low, table)
