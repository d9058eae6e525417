"""Sums over all states of a product of tables, by variable elimination.

    log Z = log sum_x prod_f f(x_f)

Variables are summed out one after the other; each takes the place of the tables that
contain it by one table over their other variables,

    log g(y) = log sum_v exp(sum_f log f(v, y)).

The order is greedy: the variable whose neighbours need the fewest new edges among them
comes first (min-fill), of several the one of the smallest table. It depends on the
scopes of the tables only. Backwards, the same steps give the derivatives of log Z by
the entries of the tables, which are posterior probabilities, or draws.

Tables are logarithms with two more axes at the end, the batch: of length one, or of the
length of the batch. Where two tables vary over different axes of the batch, everything
that depends on one of them alone is summed once.

Sources: Dechter (1999), Bucket elimination; Darwiche (2003), A differential approach to
inference in Bayesian networks.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Scope = tuple[int, ...]

MAX_TABLE = 2**26  # entries of the largest table, by default: 0.5 GB
_MOST_AXES = 30  # NumPy before 2.0 has 32, two of them are the batch
_MOST_KEPT = 2**26  # entries of a table with its batch: 0.5 GB
_LINEAR = 600.0  # exp(-600) and its products with 1e-40 are in the range of doubles
CACHE = 2**16  # entries of a table over a part of the batch: half a megabyte
_VECTOR = 64  # members of a batch side by side; loops over fewer are slow in NumPy


@dataclass(frozen=True)
class _Step:
    """One variable summed out."""

    variable: int
    clique: Scope  # it and all that share a table with it, increasing
    inputs: tuple[int, ...]  # tables, in the order in which they arise
    axis: int  # place of the variable in the clique
    cells: int


class TooLargeError(ValueError):
    """The elimination would need a table above the limit."""


class Elimination:
    """Order in which the variables of tables are summed out.

    Parameters
    ----------
    scopes : sequence of tuple of int
        Variables of every table, increasing.
    sizes : mapping or sequence
        Number of states of every variable.
    keep : iterable of int
        Variables that are not summed out.
    max_table : int
        Entries that a table may have, without the batch.
    what : str
        Whose tables they are, for the error.

    Raises
    ------
    TooLargeError
        With the width and the size of the first table above the limit.
    """

    def __init__(
        self,
        scopes: Sequence[Scope],
        sizes: Sequence[int],
        keep: Iterable[int] = (),
        *,
        max_table: int = MAX_TABLE,
        what: str = "the model",
    ):
        self.scopes, self.sizes = list(scopes), sizes
        self.keep = tuple(sorted(keep))
        self.steps: list[_Step] = []
        self._check(self.keep, max_table, what)
        holders: dict[int, set[int]] = {}
        for k, scope in enumerate(self.scopes):
            for u in scope:
                holders.setdefault(u, set()).add(k)
        for v, clique in _min_fill(self.scopes, sizes, self.keep):
            self._check(clique, max_table, what)
            inputs = tuple(sorted(holders.pop(v)))
            rest = tuple(u for u in clique if u != v)
            for u in rest:
                holders[u].difference_update(inputs)
                holders[u].add(len(self.scopes))
            cells = math.prod(sizes[u] for u in clique)
            self.steps.append(_Step(v, clique, inputs, clique.index(v), cells))
            self.scopes.append(rest)
        used = {k for step in self.steps for k in step.inputs}
        self.last = tuple(k for k in range(len(self.scopes)) if k not in used)

    def _check(self, clique, max_table, what):
        cells = math.prod(self.sizes[u] for u in clique)
        if cells > max_table or len(clique) > _MOST_AXES:
            raise TooLargeError(
                f"exact sums over {what} need a table over {len(clique)} variables "
                f"(width {len(clique) - 1} or more) with {cells:.3g} entries, "
                f"{8 * cells:.3g} bytes; max_table={max_table} allows "
                f"{8 * max_table:.3g} bytes."
            )

    @property
    def width(self) -> int:
        """Variables of the largest table less one: the induced width."""
        return max((len(step.clique) for step in self.steps), default=1) - 1

    @property
    def largest(self) -> int:
        """Entries of the largest table."""
        last = math.prod(self.sizes[u] for u in self.keep)
        return max([last, *(step.cells for step in self.steps)])

    @property
    def cells(self) -> int:
        """Entries of all tables together."""
        return sum(step.cells for step in self.steps) + 1

    # -- sums --------------------------------------------------------------------------
    def log_sum(
        self, tables: Sequence[Array | None], known: Mapping[int, Array] | None = None
    ) -> Array:
        """Logarithms of the sums, over the variables kept and the batch.

        Parameters
        ----------
        tables : sequence of ndarray
            Logarithms over the scopes, with the two axes of the batch at the end.
        known : mapping {int: ndarray}, optional
            Tables that `ahead` has found from some of these, which are then not read.

        Returns
        -------
        ndarray (sizes of the variables kept, batch)
        """
        known = known or {}
        held: list[Array | None] = list(tables)
        skip = self._behind(known)
        for own, step in enumerate(self.steps, start=len(tables)):
            if own in known or own in skip:
                held.append(known.get(own))
                continue
            parts = [self._aligned(held[k], k, step.clique) for k in step.inputs]
            held.append(_log_sum_axis(parts, step.axis))
            for k in step.inputs:
                held[k] = None
        return self._rest(held)

    def _behind(self, known):
        """Tables from which the known ones were made."""
        behind, first = set(), len(self.scopes) - len(self.steps)
        todo = list(known)
        while todo:
            k = todo.pop()
            if k >= first:
                inputs = self.steps[k - first].inputs
                behind.update(inputs)
                todo += inputs
        return behind

    def ahead(self, tables: Mapping[int, Array], axis: int) -> dict[int, Array]:
        """Tables that follow from some of the given ones alone, for other sums to use.

        Parameters
        ----------
        tables : mapping {int: ndarray}
            Some of the tables by their number, all of one batch along one axis.
        axis : int
            -2 or -1, the axis of the batch.

        Returns
        -------
        dict {int: ndarray}
            By the numbers of the steps that make them; none if they would be too
            large to keep.
        """
        first = len(self.scopes) - len(self.steps)
        within, made = set(tables), []
        for own, step in enumerate(self.steps, start=first):
            if within.issuperset(step.inputs):
                within.add(own)
                made.append(own)
        used = {k for own in made for k in self.steps[own - first].inputs}
        ends = [own for own in made if own not in used]
        batch = next(iter(tables.values())).shape[axis]
        size = sum(math.prod(self.sizes[u] for u in self.scopes[k]) for k in ends)
        if not ends or size * batch > _MOST_KEPT:
            return {}
        found: dict[int, list[Array]] = {own: [] for own in ends}
        for part in self.parts(batch):
            index = (..., part, slice(None)) if axis == -2 else (..., part)
            held = {k: table[index] for k, table in tables.items()}
            for own in made:
                step = self.steps[own - first]
                parts = [self._aligned(held[k], k, step.clique) for k in step.inputs]
                held[own] = _log_sum_axis(parts, step.axis)
            for own in ends:
                found[own].append(held[own])
        return {own: np.concatenate(some, axis=axis) for own, some in found.items()}

    def lanes(self, batch: int, backwards: bool = False) -> int:
        """Members of a batch to sum at a time.

        Few enough for the cache, but no fewer than make fast loops. Sums that go
        backwards too keep all tables.
        """
        kept = self.cells if backwards else self.largest
        fast = min(_VECTOR, max(1, _MOST_KEPT // kept))
        return min(batch, max(fast, CACHE // self.largest))

    def parts(self, batch: int, backwards: bool = False) -> Iterator[slice]:
        """Slices of a batch to sum at a time."""
        most = self.lanes(batch, backwards)
        for lo in range(0, batch, most):
            yield slice(lo, min(lo + most, batch))

    def _rest(self, held):
        shape = tuple(self.sizes[u] for u in self.keep)
        out = np.zeros((*shape, 1, 1))
        for k in self.last:
            out = out + self._aligned(held[k], k, self.keep)
        return out

    def _aligned(self, table, k, clique):
        """Table k with an axis of length one for what it lacks of the clique."""
        own = set(self.scopes[k])
        return table[tuple(slice(None) if u in own else None for u in clique)]

    # -- backwards ---------------------------------------------------------------------
    def beliefs(
        self, tables: Sequence[Array], weight: Array | None = None
    ) -> tuple[Array, list[Array]]:
        """Sums, and the posterior probabilities of the entries of every table.

        Parameters
        ----------
        tables : sequence of ndarray
            As for `log_sum`; no variable may be kept.
        weight : ndarray (batch), optional
            Factors of the members of the batch, ones by default.

        Returns
        -------
        log_sum : ndarray (batch)
        list of ndarray
            Of the shapes of the tables: derivatives of the weighted log sum, hence
            probabilities, summed over the axes of the batch on which a table does not
            vary; 0 where the sum is zero.
        """
        held = list(tables)
        for step in self.steps:
            parts = [self._aligned(held[k], k, step.clique) for k in step.inputs]
            held.append(_log_sum_axis(parts, step.axis))
        total = self._rest(held)
        start = np.ones_like(total) if weight is None else weight * np.ones_like(total)
        start = np.where(np.isneginf(total), 0.0, start)
        found: list[Any] = [None] * len(held)
        for k in self.last:
            found[k] = _summed_to(start, held[k].shape)
        for step, own in zip(reversed(self.steps), range(len(held) - 1, -1, -1)):
            log_share = -self._aligned(_finite(held[own]), own, step.clique)
            for k in step.inputs:
                log_share = log_share + self._aligned(held[k], k, step.clique)
            share = np.exp(log_share) * self._aligned(found[own], own, step.clique)
            found[own] = None
            for k in step.inputs:
                axes = tuple(
                    i for i, u in enumerate(step.clique) if u not in self.scopes[k]
                )
                found[k] = _summed_to(share.sum(axis=axes), held[k].shape)
        return total, found[: len(tables)]

    def draw(
        self, tables: Sequence[Array], n: int, rng: np.random.Generator
    ) -> dict[int, NDArray[np.intp]]:
        """Independent draws of all variables, n of them.

        Parameters
        ----------
        tables : sequence of ndarray
            As for `log_sum`, of one member of a batch; no variable may be kept.

        Returns
        -------
        dict {variable: ndarray of int (n,)}
        """
        held = list(tables)
        for step in self.steps:
            parts = [self._aligned(held[k], k, step.clique) for k in step.inputs]
            held.append(_log_sum_axis(parts, step.axis))
        drawn: dict[int, NDArray[np.intp]] = {}
        for step in reversed(self.steps):
            log_p = np.zeros((1, self.sizes[step.variable]))
            for k in step.inputs:
                table, scope = held[k][..., 0, 0], self.scopes[k]
                table = np.moveaxis(table, scope.index(step.variable), -1)
                at = tuple(drawn[u] for u in scope if u != step.variable)
                log_p = log_p + table[at]
            p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
            ends = np.cumsum(p, axis=1)
            point = rng.random(n)[:, None] * ends[:, -1:]
            drawn[step.variable] = (point >= ends[:, :-1]).sum(axis=1).astype(np.intp)
        return drawn


def _finite(log: Array) -> Array:
    """Logarithms with 0 in the place of -inf."""
    return np.where(np.isneginf(log), 0.0, log)


def _summed_to(array: Array, shape: tuple[int, ...]) -> Array:
    """Sum over the axes of the batch that have length one in `shape`."""
    axes = tuple(i for i in (-2, -1) if shape[i] == 1 and array.shape[i] > 1)
    return array.sum(axis=axes, keepdims=True) if axes else array


def _log_sum_axis(parts: list[Array], axis: int) -> Array:
    """Log of the sum over an axis of the product of tables given by their logs.

    Tables of a moderate range are multiplied as they are, less their greatest entry;
    what that loses is below the rounding error of the sum. Others stay logarithms.
    """
    shifted: list[Array] = []
    top: Any = 0.0
    low = 0.0
    variables = tuple(range(parts[0].ndim - 2))
    for p in parts:
        own = p.max(axis=variables, keepdims=True)
        least = p.min()
        own = _finite(own) if least == -np.inf else own
        p = p - own
        low += _finite(p).min() if least == -np.inf else p.min()
        top = top + own
        shifted.append(p)
    with np.errstate(divide="ignore"):
        if low > -_LINEAR:
            # few members of the batch first: products of all come last
            order = sorted(shifted, key=lambda p: p.shape[-2] * p.shape[-1])
            product = np.exp(order[0])
            for p in order[1:]:
                product = product * np.exp(p)
            return np.log(product.sum(axis=axis)) + np.take(top, 0, axis)
        total = sum(shifted[1:], shifted[0])
        most = _finite(total.max(axis=axis, keepdims=True))
        out = np.log(np.exp(total - most).sum(axis=axis))
        return out + np.take(most, 0, axis) + np.take(top, 0, axis)


def _min_fill(scopes, sizes, keep):
    """Variables with their cliques, in greedy order; nothing is computed too early.

    The fill of a variable is the number of pairs of its neighbours without an edge.
    """
    near = {}
    for scope in scopes:
        for u in scope:
            near.setdefault(u, set()).update(scope)
    for u, own in near.items():
        own.discard(u)
    kept = set(keep)

    def rank(u):
        own = near[u]
        joined = sum(len(near[a] & own) for a in own)
        size = math.prod(sizes[a] for a in own)
        return (len(own) * (len(own) - 1) - joined) // 2, size, u

    current = {u: rank(u) for u in near if u not in kept}
    heap = list(current.values())
    heapq.heapify(heap)
    while current:
        best = heapq.heappop(heap)
        v = best[-1]
        if current.get(v) != best:
            continue  # superseded
        yield v, tuple(sorted({v, *near[v]}))
        del current[v]
        own = near.pop(v)
        changed = set(own)
        for a in own:
            new = own - near[a] - {a}
            near[a] |= new
            near[a].discard(v)
            for b in new:
                changed |= near[a] & near[b]
        for u in changed & current.keys():
            new_rank = rank(u)
            if new_rank != current[u]:
                current[u] = new_rank
                heapq.heappush(heap, new_rank)
