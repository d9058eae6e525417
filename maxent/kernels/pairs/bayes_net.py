"""Kernel between Bayes nets and Markov random fields.

    k = sum_{x, h, h'} p(x, h)^rho p'(x, h')^rho

is the partition function of all factors of both models to the power rho: observed nodes
are shared by name, hidden nodes are private. It is found by variable elimination, for
many pairs of models of the same two structures at once, or bounded by mean field.

Source: Jebara, Kondor & Howard (2004), sections 4.3 and 6.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from maxent._support import validation as v
from maxent._support.random_state import one_seed
from maxent.kernels._lists import check_models
from maxent.kernels._unit_diagonal import exponential, log_scaled
from maxent.kernels.pairs._gaussian_parts import check_one_power
from maxent.models.networks._elimination import (
    MAX_TABLE,
    Elimination,
    Scope,
    TooLargeError,
)
from maxent.models.networks._factor_input import Names
from maxent.models.networks._factor_model import FactorModel
from maxent.models.networks._mean_field import best_bounds, numbered_clusters
from maxent.models.networks.bayes_net import BayesNet
from maxent.models.networks.random_field import MarkovRandomField

Array = NDArray[np.float64]
Method = Literal["auto", "exact", "meanfield"]


def bayes_net_kernel(
    P: Sequence[BayesNet | MarkovRandomField],
    Q: Sequence[BayesNet | MarkovRandomField] | None = None,
    *,
    rho: float = 0.5,
    method: Method = "auto",
    clusters: Sequence[Sequence[str]] | None = None,
    max_table: int = MAX_TABLE,
    n_init: int = 4,
    log: bool = False,
    normalize: bool = False,
    random_state: Any = 0,
) -> Array:
    """Return the product kernel of Bayes nets and Markov random fields.

    The power is taken on the joint law of all nodes, as the paper does; without hidden
    nodes, or at rho = 1, that is the kernel of the observed ones.

    Parameters
    ----------
    P, Q : list of BayesNet or MarkovRandomField
        Structures and hidden nodes may differ, observed nodes and their categories may
        not. Q None is P.
    rho : float, default=0.5
        Power > 0.
    method : {"auto", "exact", "meanfield"}, default="auto"
        "exact" is variable elimination. "meanfield" is the greatest of several local
        maxima of a lower bound; the bounds need not make a positive semidefinite
        matrix. "auto" is "exact" for every pair of structures whose tables are not
        above `max_table`, and "meanfield" beyond. With every method the partition
        function of each random field is summed exactly, within `max_table`.
    clusters : sequence of sequences of str, optional
        Names of nodes that mean field keeps together, hidden ones of both models;
        others are each alone.
    max_table : int, default=2**26
        Entries that a table may have; 8 bytes each.
    n_init : int, default=4
        Random starts of mean field; the greatest bound is kept.
    log : bool, default=False
        Return logarithms.
    normalize : bool, default=False
        Divide by the square roots of the kernels of each model with itself. Of bounds
        the quotient may exceed one.
    random_state : int, Generator, RandomState or None, default=0
        For the starts of mean field.

    Returns
    -------
    ndarray (len(P), len(Q))

    Raises
    ------
    ValueError
        For models over different nodes or categories, for tables above `max_table` with
        ``method="exact"``, and, with every method, for random fields whose partition
        function needs a table above `max_table`; width and bytes are named, before any
        kernel is computed.

    Notes
    -----
    Costs the sum of the sizes of the tables, for every pair; the order of elimination
    is found once for every pair of structures. Two chains, or two trees with the same
    edges, have tables of three nodes.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, sections 4.3 and 6.

    Examples
    --------
    >>> from maxent.kernels import bayes_net_kernel
    >>> from maxent.models import BayesNet
    >>> P = [BayesNet([("a", [0.5, 0.5]), (("a", "b"), [[p, 1 - p], [1 - p, p]])])
    ...      for p in (0.5, 0.9)]
    >>> bayes_net_kernel(P).round(4)
    array([[1.    , 0.8944],
           [0.8944, 1.    ]])
    """
    rho = check_one_power(rho)
    v.check_choice("method", method, ("auto", "exact", "meanfield"))
    n_init = v.check_count("n_init", n_init)
    max_table = v.check_count("max_table", max_table)
    kind: Any = FactorModel
    P = check_models("P", P, kind, space="observed_sizes")
    if Q is not None:
        Q = check_models("Q", Q, kind, space="observed_sizes", like=P)
    names = dict.fromkeys(name for model in (*P, *(Q or ())) for name in model.nodes)
    numbered_clusters(clusters, dict.fromkeys(names, ()))
    seed = one_seed(random_state)
    options = _Options(method, clusters, names, max_table, n_init, seed)
    rows = _groups("P", P, rho, max_table)
    if Q is None:
        L = _square(rows, options, len(P))
    else:
        columns = _groups("Q", Q, rho, max_table)
        L = _rectangle(rows, columns, options, (len(P), len(Q)), normalize)
    if normalize and Q is None:
        L = log_scaled(L, _finite_diagonal(np.diagonal(L).copy(), "P"))
    return L if log else exponential(L)


class _Options:
    """How pairs are computed."""

    def __init__(self, method, clusters, names, max_table, n_init, seed):
        self.method, self.clusters, self.names = method, clusters, names
        self.max_table = max_table
        self.n_init, self.seed = n_init, seed


class _Group:
    """Models of one structure: rho times the logarithms of their factors, stacked."""

    def __init__(self, models, index, rho, log_z):
        self.index = np.array(index)
        own = [models[i] for i in index]
        self.n, self.first = len(own), own[0]
        tables = zip(*(model._by_name[1] for model in own))
        self.tables = [rho * np.stack(found, axis=-1) for found in tables]
        self.offset = rho * np.array([log_z[i] for i in index])

    def placed(self, observed: Names, after: int) -> tuple[list[Scope], list[Array]]:
        """Scopes and tables by places: observed nodes first, hidden ones from `after`.

        Scopes increase, and the axes of the tables are in their order.
        """
        place = {name: k for k, name in enumerate(observed)}
        place.update({name: after + k for k, name in enumerate(self.first.hidden)})
        numbers = [place[name] for name in sorted(self.first.nodes)]
        scopes, tables = [], []
        for scope, table in zip(self.first._by_name[0], self.tables):
            mapped = [numbers[u] for u in scope]
            order = np.argsort(mapped)
            scopes.append(tuple(mapped[i] for i in order))
            tables.append(np.transpose(table, [*order, len(order)]))
        return scopes, tables


def _groups(name, models, rho, max_table):
    """Models by structure; the partition functions of all are known."""
    log_z = []
    for i, model in enumerate(models):
        try:
            log_z.append(model._log_normalizer(max_table))
        except TooLargeError as error:
            raise TooLargeError(
                f"{name}[{i}] needs its exact partition function, with mean field too "
                f"(a bound of it would not bound the kernel), but {error} Pass a "
                "larger max_table to bayes_net_kernel, or use fields of smaller width."
            ) from None
    found: dict[Any, list[int]] = {}
    for i, model in enumerate(models):
        found.setdefault(model._structure, []).append(i)
    return [_Group(models, index, rho, log_z) for index in found.values()]


class _Pairs:
    """All pairs of two groups."""

    def __init__(self, left: _Group, right: _Group, options: _Options):
        self.left, self.right, self.options = left, right, options
        observed = left.first.observed
        k, h = len(observed), len(left.first.hidden)
        scopes, self.tables = left.placed(observed, k)
        scopes2, self.tables2 = right.placed(observed, k + h)
        self.scopes = scopes + scopes2
        size, size2 = left.first.n_categories, right.first.n_categories
        self.sizes = [
            *(size[name] for name in observed),
            *(size[name] for name in left.first.hidden),
            *(size2[name] for name in right.first.hidden),
        ]
        places: dict[str, list[int]] = {name: [] for name in options.names}
        names = (*observed, *left.first.hidden, *right.first.hidden)
        for u, name in enumerate(names):
            places[name].append(u)
        self.clusters = numbered_clusters(options.clusters, places)
        self.plan = self._elimination()

    def _elimination(self) -> Elimination | None:
        if self.options.method == "meanfield":
            return None
        try:
            return Elimination(
                self.scopes,
                self.sizes,
                max_table=self.options.max_table,
                what="two models",
            )
        except TooLargeError as error:
            if self.options.method == "exact":
                raise TooLargeError(f"{error} Use method='meanfield'.") from None
            return None

    def log_kernels(self, upper: bool) -> Array:
        """(n, n2); of a group with itself the entries j >= i are enough."""
        n, n2 = self.left.n, self.right.n
        L = np.empty((n, n2))
        left = [t[..., None] for t in self.tables]
        right = [t[..., None, :] for t in self.tables2]
        ahead, ahead2 = self._ahead(left, right)
        for rows, columns in self._tiles(n, n2, upper):
            tables = [t[..., rows, :] for t in left] + [t[..., columns] for t in right]
            known = {k: t[..., rows, :] for k, t in ahead.items()}
            known |= {k: t[..., columns] for k, t in ahead2.items()}
            width = columns.stop - columns.start
            L[rows, columns] = self._values(tables, width, known)
        L -= self.left.offset[:, None] + self.right.offset
        if upper:
            below = np.tril_indices(n, -1)
            L[below] = L.T[below]
        return L

    def own_kernels(self) -> Array:
        """Kernels (n,) of the models of one group with themselves."""
        out = np.empty(self.left.n)
        n = len(out)
        parts = [slice(0, n)] if self.plan is None else self.plan.parts(n)
        for part in parts:
            tables = [t[..., None, part] for t in self.tables + self.tables2]
            out[part] = self._values(tables, part.stop - part.start)[0]
        return out - self.left.offset - self.right.offset

    def _ahead(self, left, right):
        """Sums that depend on one model only, once for all pairs."""
        if self.plan is None:
            return {}, {}
        return (
            self.plan.ahead(dict(enumerate(left)), -2),
            self.plan.ahead(dict(enumerate(right, start=len(left))), -1),
        )

    def _tiles(self, n: int, n2: int, upper: bool) -> Iterator[tuple[slice, slice]]:
        if self.plan is None:
            for i in range(n):
                yield slice(i, i + 1), slice(i if upper else 0, n2)
            return
        width = self.plan.lanes(n2)
        height = max(1, min(n, self.plan.lanes(n * n2) // width))
        for lo in range(0, n, height):
            rows = slice(lo, min(lo + height, n))
            for first in range(lo if upper else 0, n2, width):
                yield rows, slice(first, min(first + width, n2))

    def _values(self, tables: list[Array], n2: int, known: Any = None) -> Array:
        if self.plan is not None:
            return self.plan.log_sum(tables, known)
        o = self.options
        return best_bounds(
            self.scopes, self.sizes, tables, self.clusters, o.n_init, n2,
            np.random.default_rng(o.seed), o.max_table,
        )[None]  # fmt: skip


def _square(groups: list[_Group], options: _Options, n: int) -> Array:
    """Kernels of all pairs of one list."""
    jobs = [
        (left, right, _Pairs(left, right, options))
        for g, left in enumerate(groups)
        for right in groups[g:]
    ]
    L = np.empty((n, n))
    for left, right, pairs in jobs:
        found = pairs.log_kernels(upper=left is right)
        L[left.index[:, None], right.index] = found
        L[right.index[:, None], left.index] = found.T
    return L


def _rectangle(rows, columns, options, shape, normalize):
    """Kernels of two lists, less half those of each model with itself."""
    jobs = [
        (left, right, _Pairs(left, right, options))
        for left in rows
        for right in columns
    ]
    own = []
    if normalize:
        own = [
            [(g, _Pairs(g, g, options)) for g in groups] for groups in (rows, columns)
        ]
    L = np.empty(shape)
    for left, right, pairs in jobs:
        L[left.index[:, None], right.index] = pairs.log_kernels(upper=False)
    for axis, found in enumerate(own):
        half = np.empty(shape[axis])
        for group, pairs in found:
            half[group.index] = 0.5 * pairs.own_kernels()
        L -= np.expand_dims(_finite_diagonal(half, "PQ"[axis]), 1 - axis)
    return L


def _finite_diagonal(own: Array, name: str) -> Array:
    wrong = np.isneginf(own)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ValueError(
            f"no bound above zero was found for the kernel of {name}[{i}] with itself, "
            "so it cannot be normalised: raise n_init, or keep nodes that determine "
            "one another together by clusters."
        )
    return own
