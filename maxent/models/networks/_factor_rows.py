"""Rows of codes under a model of factors: sums over what they do not show.

Equal rows are joined; rows with values at the same nodes take the same steps of
elimination side by side, as the last axis of the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxent.models.networks._elimination import Elimination, Scope
from maxent.models.networks._factor_input import Array, Codes


class Rows:
    """Rows of codes: equal ones joined, grouped by the columns that are missing."""

    def __init__(self, codes, columns, scopes, sizes, max_table):
        self.codes, self.inverse = np.unique(codes, axis=0, return_inverse=True)
        self.inverse = self.inverse.reshape(-1)
        self.columns, self.scopes, self.sizes = columns, scopes, sizes
        self.max_table = max_table

    def parts(self, backwards: bool = False) -> Iterator[Part]:
        """Rows in parts that take the same steps; fewer if these go backwards too."""
        patterns, group = np.unique(self.codes < 0, axis=0, return_inverse=True)
        group = group.reshape(-1)
        for k, missing in enumerate(patterns):
            known = {u for u, gone in zip(self.columns, missing) if not gone}
            free = [tuple(u for u in s if u not in known) for s in self.scopes]
            plan = Elimination(free, self.sizes, max_table=self.max_table)
            index = np.flatnonzero(group == k)
            for part in plan.parts(len(index), backwards):
                codes = self.codes[index[part]]
                seen = {u: codes[:, c] for c, u in enumerate(self.columns)}
                held = [seen[u] if u in known else None for u in range(len(self.sizes))]
                yield Part(plan, index[part], held, self.scopes)


@dataclass
class Part:
    """Some rows with values at the same nodes; None of the nodes without."""

    plan: Elimination
    index: NDArray[np.intp]
    known: list[Codes | None]
    scopes: Sequence[Scope]

    def tables(self, tables: Sequence[Array]) -> list[Array]:
        """Tables at the known values, the rows as the last axis of the batch."""
        return [self._cut(scope, t) for scope, t in zip(self.scopes, tables)]

    def _cut(self, scope, table):
        shown = [i for i, u in enumerate(scope) if self.known[u] is not None]
        if not shown:
            return table[..., None, None]
        table = np.moveaxis(table, shown, range(len(shown)))
        rows = table[tuple(self.known[scope[i]] for i in shown)]
        return np.moveaxis(rows, 0, -1)[..., None, :]

    def posterior(self, tables: Sequence[Array]) -> tuple[Array, list[Array]]:
        """Log sums (rows,) and posterior probabilities of every table, by rows."""
        n = len(self.index)
        cut = [
            np.broadcast_to(t, (*t.shape[:-1], n)) if t.shape[-1] < n else t
            for t in self.tables(tables)
        ]
        total, beliefs = self.plan.beliefs(cut)
        return np.broadcast_to(total[0], (n,)), beliefs

    def counter(self, sizes: Sequence[int]) -> list[tuple[list[int], Any]]:
        """For every table: its known axes, and (cells of these, rows) of ones."""
        out: list[tuple[list[int], Any]] = []
        n = len(self.index)
        for scope in self.scopes:
            shown = [i for i, u in enumerate(scope) if self.known[u] is not None]
            if not shown:
                out.append((shown, None))
                continue
            shape = tuple(sizes[scope[i]] for i in shown)
            codes: Any = tuple(self.known[scope[i]] for i in shown)
            at = np.ravel_multi_index(codes, shape)
            ones = sp.csr_array(
                (np.ones(n), (at, np.arange(n))), shape=(int(np.prod(shape)), n)
            )
            out.append((shown, ones))
        return out


class Counts:
    """Expected counts of the entries of tables, given weighted rows."""

    def __init__(self, rows: Rows, weights: Array):
        self.sizes, self.scopes = rows.sizes, rows.scopes
        joined: Any = np.bincount(rows.inverse, weights, len(rows.codes))
        self.parts = [
            (part, joined[part.index], part.counter(self.sizes))
            for part in rows.parts(backwards=True)
        ]
        self.complete = all(not part.plan.steps for part, _, _ in self.parts)

    def __call__(self, tables: Sequence[Array]) -> tuple[float, list[Array]]:
        """Weighted log sum, and the expected counts of every table."""
        counts = [np.zeros([self.sizes[u] for u in s]) for s in self.scopes]
        objective = 0.0
        for part, weight, counter in self.parts:
            total, beliefs = part.plan.beliefs(part.tables(tables), weight)
            total = np.broadcast_to(total[0], weight.shape)
            used = weight > 0
            objective += float(weight[used] @ total[used])
            for f, (shown, ones) in enumerate(counter):
                counts[f] += self._spread(f, beliefs[f], shown, ones)
        return objective, counts

    def _spread(self, f, belief, shown, ones):
        if ones is None:
            return belief[..., 0, 0]
        scope = self.scopes[f]
        belief = np.broadcast_to(belief, (*belief.shape[:-1], ones.shape[1]))
        found = ones @ belief.reshape(-1, ones.shape[1]).T
        first = [self.sizes[scope[i]] for i in shown]
        rest = [self.sizes[u] for i, u in enumerate(scope) if i not in shown]
        return np.moveaxis(found.reshape(*first, *rest), range(len(shown)), shown)
