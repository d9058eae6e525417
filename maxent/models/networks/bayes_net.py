"""Bayes nets of categorical nodes, some of them hidden.

    p(x) = prod_i p(x_i | x_pa(i))

Complete data give the tables by counting. With hidden nodes or missing values EM takes
expected counts, from variable elimination.

Source: Jebara, Kondor & Howard (2004), section 4.3; Lauritzen (1995), The EM algorithm
for graphical association models with missing data.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._inputs.frames import columns_of_nodes
from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent.families import _checks
from maxent.models._chain_input import (
    check_init,
    log_of_pseudo_counts,
    with_pseudo_counts,
)
from maxent.models._criteria import NONE_HELD, free_probabilities
from maxent.models._graphs import Graph
from maxent.models._holding import held_of, maximum_of_free
from maxent.models.base import maximize_by_em
from maxent.models.networks import _factor_input as given
from maxent.models.networks._elimination import MAX_TABLE
from maxent.models.networks._factor_input import Array, Names
from maxent.models.networks._factor_model import FactorModel, flat_factors
from maxent.models.networks._factor_rows import Counts, Rows

Factors = Iterable[tuple[str | Sequence[str], ArrayLike]]


class BayesNet(FactorModel):
    """Directed network of categorical nodes with a conditional table each.

    Parameters
    ----------
    factors : list of (nodes, array-like)
        One pair for each node, in any order: the names of its parents and, last, its
        own, and the table of shape (categories of the parents, own categories). Rows
        along the last axis sum to one.
    observed : sequence of str, optional
        Nodes that data show, in the order of their columns; None is all of them.

    Attributes
    ----------
    nodes, hidden : tuple of str
        All nodes in the order of the factors, and those that are not observed.
    n_categories : dict {str: int}
    parents : dict {str: tuple of str}
    n_features : int
        Columns of the data.
    fit_result : EMResult or None
        How the fit ended; None of a net made by counting or by its tables.

    Raises
    ------
    ValueError
        For cycles among the parents, nodes without a table or with two, tables whose
        rows do not sum to one, and tables that disagree on the categories of a node.

    See Also
    --------
    MarkovRandomField : Factors that are no conditional probabilities.
    maxent.kernels.bayes_net_kernel : Kernel between such nets.
    maxent.families.DirichletBayesNet : Prior over the tables.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 4.3.

    Examples
    --------
    A hidden cause of two symptoms:

    >>> from maxent.models import BayesNet
    >>> net = BayesNet(
    ...     [("cause", [0.9, 0.1]),
    ...      (("cause", "cough"), [[0.8, 0.2], [0.1, 0.9]]),
    ...      (("cause", "fever"), [[0.95, 0.05], [0.3, 0.7]])],
    ...     observed=["cough", "fever"])
    >>> net.marginal("fever", given={"cough": 1}).round(3)
    array([0.733, 0.267])
    >>> net.posterior([[1, 1], [1, -1]])["cause"].round(3)
    array([[0.125, 0.875],
           [0.667, 0.333]])
    """

    _names = ("factors", "observed")
    factors: tuple[tuple[Names, Array], ...]
    observed: Names
    parents: dict[str, Names]
    _order: list[int]  # of the factors, parents before children

    def __init__(self, factors: Factors, observed: Sequence[str] | None = None) -> None:
        found = given.check_factors("factors", factors, _checks.simplex_array)
        owner: dict[str, int] = {}
        for k, (nodes, _) in enumerate(found):
            if not nodes:
                raise ValueError(f"factors[{k}] names no node; name one at least.")
            if nodes[-1] in owner:
                raise ValueError(
                    f"factors[{k}] is a second table of {nodes[-1]!r}, after "
                    f"factors[{owner[nodes[-1]]}]; every node has one, and comes last "
                    "in it."
                )
            owner[nodes[-1]] = k
        parents = {nodes[-1]: nodes[:-1] for nodes, _ in found}
        order = given.parents_before_children(parents)
        self._set(
            factors=tuple(found),
            observed=given.check_observed(observed, tuple(parents)),
        )
        self.__dict__["parents"] = parents
        self.__dict__["_order"] = order

    def __repr__(self) -> str:
        inside = ", ".join(
            f"{child} | {', '.join(above)}" if above else child
            for child, above in self.parents.items()
        )
        return f"BayesNet({inside}; observed={list(self.observed)!r})"

    @functools.cached_property
    def n_categories(self) -> dict[str, int]:
        """Number of categories of every node."""
        return {nodes[-1]: table.shape[-1] for nodes, table in self.factors}

    @functools.cached_property
    def _log_factors(self) -> list[tuple[Names, Array]]:
        with np.errstate(divide="ignore"):
            return [(nodes, np.log(table)) for nodes, table in self.factors]

    def _graph(self):
        nodes, edges = {}, {}
        for (*parents, own), table in self.factors:
            nodes[own] = {
                "observed": own in self.observed,
                "n_categories": self.n_categories[own],
                "parents": tuple(parents),
                "table": table,
            }
            edges |= {(parent, own): {} for parent in parents}
        return Graph(True, nodes, edges)

    def _free_parameters(self, held=NONE_HELD):
        return sum(
            free_probabilities(table, held.get(nodes[-1]))
            for nodes, table in self.factors
        )

    def _holdable(self):
        """Shapes of masks of the tables of nodes."""
        return {nodes[-1]: table.shape for nodes, table in self.factors}

    def _log_normalizer(self, max_table: int = MAX_TABLE) -> float:
        return 0.0

    def _draw(self, n: int, rng: np.random.Generator) -> dict[int, NDArray[np.intp]]:
        place = {name: i for i, name in enumerate(self.nodes)}
        drawn: dict[int, NDArray[np.intp]] = {}
        for k in self._order:
            nodes, table = self.factors[k]
            rows = table[tuple(drawn[place[name]] for name in nodes[:-1])]
            ends = np.cumsum(rows, axis=-1)
            point = rng.random((n, 1)) * ends[..., -1:]
            drawn[k] = (point >= ends[..., :-1]).sum(axis=-1).astype(np.intp)
        return drawn

    # -- files -------------------------------------------------------------------------
    def _arguments(self):
        return {
            "factors": flat_factors(self.factors),
            "observed": list(self.observed),
        }

    @classmethod
    def _from_arguments(cls, arguments):
        flat = arguments["factors"]
        return cls._from_flat(flat, {"observed": arguments["observed"]})

    # -- fit ---------------------------------------------------------------------------
    @classmethod
    def fit(
        cls,
        X: ArrayLike,
        parents: Mapping[str, Sequence[str]],
        observed: Sequence[str] | None = None,
        *,
        n_categories: Mapping[str, int] | None = None,
        weights: ArrayLike | None = None,
        smoothing: float = 0.01,
        init: BayesNet | None = None,
        fixed: Any = None,
        n_init: int = 3,
        tol: float = 1e-8,
        max_iter: int = 2000,
        max_table: int = MAX_TABLE,
        callback: Callable[[int, float, float], object] | None = None,
        random_state: Any = None,
    ) -> Self:
        """Fit the tables of a net of given structure: by counts, or by EM.

        Parameters
        ----------
        X : array-like (n_samples, n_features)
            Codes 0, 1, ... of the observed nodes; -1 or NaN where a value is missing.
            Columns of a data frame are those of the nodes that they name.
        parents : mapping {str: sequence of str}
            Every node, with its parents.
        observed : sequence of str, optional
            Nodes of the columns; None is all nodes in the order of `parents`.
        n_categories : mapping {str: int}, optional
            Needed of hidden nodes; others have by default the largest code plus one.
        weights : array-like (n_samples,), optional
            Weights >= 0; weight 2 equals the row twice.
        smoothing : float, default=0.01
            Pseudo-counts >= 0 of every entry of the tables (Dirichlet priors with
            parameters 1 + smoothing). 0 is maximum likelihood; configurations of the
            parents that never occur then have all categories alike.
        init : BayesNet, optional
            Start of a single run of EM; `parents` must be its own, in any order;
            `n_categories` and `n_init` are not read. Its zeros stay zero.
        fixed : str, list of str, or dict, optional
            Nodes whose tables stay as in `init`; or {node: boolean mask}, True where an
            entry of the table stays.
        n_init : int, default=3
            Random starts of EM where there are hidden nodes; the run of the greatest
            objective is kept.
        tol : float, default=1e-8
            Relative, of all data together and not per value: a run ends once a step
            gains at most ``tol * (1 + |objective|)`` nats, where the objective is their
            log-likelihood plus the logarithm of the prior, up to a constant.
        max_iter : int, default=2000
            EM steps of a run at most.
        max_table : int, default=2**26
            Entries that a table of the sums over hidden nodes may have.
        callback : callable(n_iter, objective, gain), optional
            Called after every E step.
        random_state : int, Generator, RandomState or None, default=None
            Source of the starts.

        Returns
        -------
        BayesNet
            Its `fit_result` has the objective after every step of EM, the
            log-likelihood plus ``smoothing`` times the sum of the logarithms of all
            entries; it never falls. Complete data need no EM, the result is then None.

        Raises
        ------
        ValueError
            For cycles among the parents, values that are no category, and nets whose
            sums need a table above `max_table`; the error has its width and bytes.

        Warns
        -----
        ConvergenceWarning
            If the kept run reached `max_iter`, or its objective fell by more than
            rounding.

        References
        ----------
        Lauritzen (1995), The EM algorithm for graphical association models with missing
        data, Computational Statistics & Data Analysis 19.

        Examples
        --------
        >>> from maxent.models import BayesNet
        >>> X = [[0, 0], [0, 0], [0, 1], [1, 1]]
        >>> net = BayesNet.fit(X, {"a": [], "b": ["a"]}, smoothing=0)
        >>> net.factors[1][1].round(3)
        array([[0.667, 0.333],
               [0.   , 1.   ]])
        """
        tol, max_iter = v.check_stop(tol, max_iter)
        parents = given.check_structure(parents)
        shown = given.check_observed(observed, tuple(parents))
        X = columns_of_nodes("X", X, shown)
        if init is not None:
            check_init(init, BayesNet)
            if init.parents != parents:
                raise ValueError(
                    "init has other parents than the net to fit; pass "
                    "parents=init.parents."
                )
            n_categories = init.n_categories
        held = held_of(fixed, init)
        sizes = given.category_counts(X, tuple(parents), shown, n_categories)
        options = sizes, weights, smoothing, max_table, held
        problem = _Problem(X, parents, shown, *options)
        start = problem.uniform()
        if init is not None:
            own = {nodes[-1]: table for nodes, table in init.factors}
            start = tuple(own[name] for name in parents)
        if problem.counts.complete:
            tables = problem.step(start)[1]
            return cls(problem.factors(tables), shown)._with_held(held)
        n_init = v.check_count("n_init", n_init)
        if init is not None:
            starts = iter([start])
        else:
            rng = as_generator(random_state)
            n_init = n_init if len(shown) < len(parents) else 1
            starts = (problem.start(rng) for _ in range(n_init))
        best, result = maximize_by_em(
            problem.step, starts, tol=tol, max_iter=max_iter, callback=callback
        )
        return (
            cls(problem.factors(best), shown)
            ._with_result(result)
            ._with_held(held)
            ._warned(tol, max_iter)
        )


class _Problem:
    """One EM step; points are tuples of tables, the node of each as the last axis."""

    def __init__(
        self, X, parents, observed, sizes, weights, smoothing, max_table, held
    ):
        self.smoothing = v.check_nonnegative("smoothing", smoothing)
        self.held = [held.get(child) for child in parents]
        self.observed = observed
        self.nodes = [(*above, child) for child, above in parents.items()]
        place = {name: i for i, name in enumerate(parents)}
        numbers = [[place[name] for name in nodes] for nodes in self.nodes]
        self.shapes = [tuple(sizes[name] for name in nodes) for nodes in self.nodes]
        for nodes, shape in zip(self.nodes, self.shapes):
            cells = np.prod(shape, dtype=float)
            if cells > max_table:
                raise ValueError(
                    f"the table of {nodes[-1]!r} with {len(nodes) - 1} parents would "
                    f"have {cells:.3g} entries, {8 * cells:.3g} bytes; max_table="
                    f"{max_table} allows {8 * max_table:.3g}. Give it fewer parents."
                )
        self.orders = [np.argsort(u) for u in numbers]  # axes by numbers of nodes
        scopes = [tuple(sorted(u)) for u in numbers]
        columns = tuple(place[name] for name in observed)
        codes = given.codes_of(X, [sizes[name] for name in observed])
        own, _ = _checks.row_weights(weights, (len(codes),))
        rows = Rows(codes, columns, scopes, tuple(sizes.values()), max_table)
        self.counts = Counts(rows, own)

    def factors(self, tables):
        return list(zip(self.nodes, tables))

    def uniform(self):
        return tuple(np.full(shape, 1.0 / shape[-1]) for shape in self.shapes)

    def start(self, rng):
        """Random rows, which lean to the expected counts where nothing is hidden."""
        _, counts = self.counts(self._logs(self.uniform()))
        out = []
        for nodes, shape, order, count in zip(
            self.nodes, self.shapes, self.orders, counts
        ):
            rows = rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])
            if set(nodes) <= set(self.observed):
                own = np.transpose(count, np.argsort(order))
                rows = with_pseudo_counts(own, 0.1, rows)
            out.append(rows)
        return tuple(out)

    def _logs(self, tables):
        with np.errstate(divide="ignore"):
            return [
                np.transpose(np.log(t), order) for t, order in zip(tables, self.orders)
            ]

    def step(self, point):
        """Objective at a point, and the point after one EM step."""
        logs = self._logs(point)
        objective, counts = self.counts(logs)
        objective += log_of_pseudo_counts(self.smoothing, *point)
        following = tuple(
            maximum_of_free(np.transpose(c, np.argsort(order)), self.smoothing, *table)
            for c, order, *table in zip(counts, self.orders, point, self.held)
        )
        return objective, following
