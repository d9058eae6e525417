"""Markov random fields of categorical nodes, some of them hidden.

    p(x) = prod_f exp(theta_f(x_f)) / Z

Sums over all states are by variable elimination; where a field is too dense for it mean
field bounds log Z from below. Fits are by iterative proportional fitting, inside EM
where nodes are hidden.

Sources: Jebara, Kondor & Howard (2004), section 4.3; Darroch & Ratcliff (1972); Deming
& Stephan (1940).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, product
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._inputs.frames import columns_of_nodes
from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent.families import _checks
from maxent.models._chain_input import check_init
from maxent.models._criteria import NONE_HELD
from maxent.models._graphs import Graph
from maxent.models._holding import held_of
from maxent.models.base import maximize_by_em
from maxent.models.networks import _factor_input as given
from maxent.models.networks._elimination import MAX_TABLE, Elimination, TooLargeError
from maxent.models.networks._factor_input import Array, Names
from maxent.models.networks._factor_model import (
    FactorModel,
    flat_factors,
    sorted_factors,
)
from maxent.models.networks._factor_rows import Counts, Rows
from maxent.models.networks._mean_field import best_bounds, numbered_clusters

LogFactors = Iterable[tuple[str | Sequence[str], ArrayLike]]


class MarkovRandomField(FactorModel):
    """Undirected network of categorical nodes: a product of factors.

    Parameters
    ----------
    log_factors : list of (nodes, array-like)
        Logarithms of the factors: names of nodes, and a table with one axis for each.
        -inf forbids a combination. Factors may share nodes.
    observed : sequence of str, optional
        Nodes that data show, in the order of their columns; None is all of them.

    Attributes
    ----------
    nodes, hidden : tuple of str
        All nodes as they appear first, and those that are not observed.
    scopes : list of tuple of str
        Nodes of every factor.
    n_categories : dict {str: int}
    n_features : int
        Columns of the data.
    fit_result : EMResult or None

    See Also
    --------
    BayesNet : Factors that are conditional probabilities.
    maxent.kernels.bayes_net_kernel : Kernel between such fields.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 4.3.

    Examples
    --------
    Three spins that like to agree:

    >>> import numpy as np
    >>> from maxent.models import MarkovRandomField
    >>> agree = np.array([[0.5, -0.5], [-0.5, 0.5]])
    >>> field = MarkovRandomField(
    ...     [(("a", "b"), agree), (("b", "c"), agree), (("a", "c"), agree)])
    >>> round(field.log_partition(), 4)
    2.5339
    >>> field.marginal(["a", "c"]).round(3)
    array([[0.404, 0.096],
           [0.096, 0.404]])
    """

    _names = ("log_factors", "observed")
    log_factors: tuple[tuple[Names, Array], ...]
    observed: Names

    def __init__(
        self, log_factors: LogFactors, observed: Sequence[str] | None = None
    ) -> None:
        found = given.check_factors("log_factors", log_factors, _log_table)
        names = dict.fromkeys(name for nodes, _ in found for name in nodes)
        self._set(
            log_factors=tuple(found),
            observed=given.check_observed(observed, tuple(names)),
        )

    @classmethod
    def pairwise(
        cls,
        nodes: Mapping[str, ArrayLike],
        edges: Mapping[tuple[str, str], ArrayLike],
        observed: Sequence[str] | None = None,
    ) -> Self:
        """Field of single nodes and edges.

        Parameters
        ----------
        nodes : mapping {str: array-like (n_categories,)}
            Logarithms of the factor of every node, in the order of the nodes.
        edges : mapping {(str, str): array-like}
            Logarithms of the factors of pairs.
        observed : sequence of str, optional
            None is all nodes.

        Returns
        -------
        MarkovRandomField

        Examples
        --------
        >>> from maxent.models import MarkovRandomField
        >>> MarkovRandomField.pairwise(
        ...     {"a": [0.0, 1.0], "b": [0.0, 0.0]}, {("a", "b"): [[1.0, 0.0], [0, 1]]})
        MarkovRandomField(a, b, a - b; observed=['a', 'b'])
        """
        for pair in edges:
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise ValueError(
                    f"edges has the key {v.shown(pair)}; keys are pairs of nodes."
                )
            for name in pair:
                if name not in nodes:
                    raise ValueError(
                        f"edges has the key {v.shown(pair)}, but {name!r} is no key of "
                        "nodes; add it, with zeros if it has no factor of its own."
                    )
        return cls([*((k, t) for k, t in nodes.items()), *edges.items()], observed)

    def __repr__(self) -> str:
        inside = ", ".join(" - ".join(nodes) for nodes, _ in self.log_factors)
        return f"MarkovRandomField({inside}; observed={list(self.observed)!r})"

    @property
    def scopes(self) -> list[Names]:
        """Nodes of every factor."""
        return [nodes for nodes, _ in self.log_factors]

    @property
    def _log_factors(self) -> tuple[tuple[Names, Array], ...]:
        return self.log_factors

    def _graph(self):
        sizes, shown = self.n_categories, self.observed
        nodes = {
            name: {"observed": name in shown, "n_categories": sizes[name]}
            for name in self.nodes
        }
        pairs = (pair for scope in self.scopes for pair in combinations(scope, 2))
        return Graph(False, nodes, {pair: {} for pair in pairs})

    def _free_parameters(self, held=NONE_HELD):
        """One contrast for each interaction of nodes.

        A field that forbids combinations has none that is known, and raises.
        """
        for nodes, table in self.log_factors:
            if np.isneginf(table).any():
                raise ValueError(
                    "n_parameters is not known of a field that forbids combinations, "
                    f"as the factor of {v.shown(list(nodes))} does by -inf; fit with "
                    "smoothing > 0."
                )
        sizes = self.n_categories
        masks = [held.get(_key(nodes)) for nodes in self.scopes]
        whole = {
            frozenset(own)
            for nodes, mask in zip(self.scopes, masks)
            if mask is None
            for r in range(1, len(nodes) + 1)
            for own in combinations(nodes, r)
        }
        count = sum(math.prod(sizes[name] - 1 for name in own) for own in whole)
        rows = [
            _interactions(nodes, codes, sizes)
            for nodes, mask in zip(self.scopes, masks)
            if mask is not None
            for codes in np.argwhere(~mask).tolist()
        ]
        names = {
            name: frozenset(node for node, _ in name) for row in rows for name in row
        }
        columns = [
            name for name, nodes in names.items() if nodes and nodes not in whole
        ]
        if not columns:
            return count
        matrix = [[row.get(name, 0) for name in columns] for row in rows]
        return count + int(np.linalg.matrix_rank(np.array(matrix)))

    def _holdable(self):
        """Shapes of masks of the factors, by their nodes."""
        return {_key(nodes): table.shape for nodes, table in self.log_factors}

    # -- partition function ------------------------------------------------------------
    def log_partition(
        self,
        *,
        method: Literal["auto", "exact", "meanfield"] = "auto",
        clusters: Sequence[Sequence[str]] | None = None,
        max_table: int = MAX_TABLE,
        n_init: int = 4,
        random_state: Any = 0,
    ) -> float:
        """Logarithm of the partition function Z, or a lower bound of it.

        Parameters
        ----------
        method : {"auto", "exact", "meanfield"}, default="auto"
            "exact" is variable elimination. "meanfield" is the greatest of several
            local maxima of a lower bound. "auto" is "exact" where no table is larger
            than `max_table`.
        clusters : sequence of sequences of str, optional
            Nodes that mean field keeps together; others are each alone.
        max_table : int, default=2**26
            Entries that a table may have.
        n_init : int, default=4
            Random starts of mean field.
        random_state : int, Generator, RandomState or None, default=0
            For these starts.

        Returns
        -------
        float
            In nats; -inf if the factors forbid every state.

        Raises
        ------
        ValueError
            With ``method="exact"``, if a table would be too large; the error has its
            width and bytes.
        """
        v.check_choice("method", method, ("auto", "exact", "meanfield"))
        n_init = v.check_count("n_init", n_init)
        joined = numbered_clusters(clusters, {n: [i] for i, n in enumerate(self.nodes)})
        if method != "meanfield":
            try:
                return self._exact_log_partition(max_table)
            except TooLargeError:
                if method == "exact":
                    raise
        scopes, tables = self._sorted
        sizes = tuple(self.n_categories.values())
        logs = [table[..., None, None] for table in tables]
        rng = as_generator(random_state)
        bound = best_bounds(scopes, sizes, logs, joined, n_init, 1, rng, max_table)
        return float(bound[0])

    def _exact_log_partition(self, max_table: int) -> float:
        known = self.__dict__.get("_log_z")
        if known is None:
            scopes, tables = self._sorted
            plan = Elimination(
                scopes, tuple(self.n_categories.values()), max_table=max_table
            )
            logs = [table[..., None, None] for table in tables]
            known = float(plan.log_sum(logs)[0, 0])
            self.__dict__["_log_z"] = known
        return known

    def _log_normalizer(self, max_table: int = MAX_TABLE) -> float:
        log_z = self._exact_log_partition(max_table)
        if log_z == -math.inf:
            raise ValueError(
                "log_factors forbid every state, so that there is no distribution; "
                "give a state finite entries in all of them."
            )
        return log_z

    def _draw(self, n: int, rng: np.random.Generator) -> dict[int, NDArray[np.intp]]:
        self._log_normalizer()
        scopes, tables = self._sorted
        plan = Elimination(scopes, tuple(self.n_categories.values()))
        return plan.draw([table[..., None, None] for table in tables], n, rng)

    # -- files -------------------------------------------------------------------------
    def _arguments(self):
        return {
            "log_factors": flat_factors(self.log_factors),
            "observed": list(self.observed),
        }

    @classmethod
    def _from_arguments(cls, arguments):
        flat = arguments["log_factors"]
        return cls._from_flat(flat, {"observed": arguments["observed"]})

    # -- fit ---------------------------------------------------------------------------
    @classmethod
    def fit(
        cls,
        X: ArrayLike,
        scopes: Sequence[str | Sequence[str]],
        observed: Sequence[str] | None = None,
        *,
        n_categories: Mapping[str, int] | None = None,
        weights: ArrayLike | None = None,
        smoothing: float = 0.01,
        init: MarkovRandomField | None = None,
        fixed: Any = None,
        n_init: int = 3,
        tol: float = 1e-8,
        max_iter: int = 2000,
        max_table: int = MAX_TABLE,
        callback: Callable[[int, float, float], object] | None = None,
        random_state: Any = None,
    ) -> Self:
        """Fit factors of given scopes: the greatest entropy with the data's marginals.

        Parameters
        ----------
        X : array-like (n_samples, n_features)
            Codes 0, 1, ... of the observed nodes; -1 or NaN where a value is missing.
            Columns of a data frame are those of the nodes that they name.
        scopes : sequence of (str or sequence of str)
            Nodes of every factor.
        observed : sequence of str, optional
            Nodes of the columns; None is all nodes as they appear first in `scopes`.
        n_categories : mapping {str: int}, optional
            Needed of hidden nodes; others have by default the largest code plus one.
        weights : array-like (n_samples,), optional
            Weights >= 0; weight 2 equals the row twice.
        smoothing : float, default=0.01
            Pseudo-rows >= 0, spread evenly over all states.
        init : MarkovRandomField, optional
            Field of the same scopes to start from, in place of random starts; its -inf
            stay, and need ``smoothing=0``.
        fixed : list of (str or tuple of str), or dict, optional
            Factors that keep the values of `init`, by their nodes as these are in its
            `scopes`; a dict has True or masks of entries.
        n_init : int, default=3
            Random starts where there are hidden nodes.
        tol : float, default=1e-8
            Relative, of all data together and not per value: a run ends once a step
            gains at most ``tol * (1 + |objective|)`` nats, where the objective is their
            log-likelihood plus the logarithm of the prior, up to a constant.
        max_iter : int, default=2000
            Steps of a run at most.
        max_table : int, default=2**26
            Entries that a table of the sums may have.
        callback : callable(n_iter, objective, gain), optional
            Called at every step.
        random_state : int, Generator, RandomState or None, default=None
            Source of the starts.

        Returns
        -------
        MarkovRandomField
            Its `fit_result` has the objective after every step, the log-likelihood of
            the rows and pseudo-rows; it never falls.

        Raises
        ------
        ValueError
            For values that are no category, and fields whose sums need a table above
            `max_table`; if `init` has other scopes or cannot produce a row, or entries
            that stay are in no row and no pseudo-row.

        Warns
        -----
        ConvergenceWarning
            If the kept run reached `max_iter`, or its objective fell by more than
            rounding.

        Notes
        -----
        A step finds the expected counts of every factor given the data, and multiplies
        each factor once by their ratio to those of the model (iterative proportional
        fitting); with hidden nodes this is a generalised EM. Where entries of a factor
        stay, the others have the ratio to each other of their counts, and to those that
        stay together that of the counts of both: the maximum over them.

        References
        ----------
        Deming & Stephan (1940), On a least squares adjustment of a sampled frequency
        table, Annals of Mathematical Statistics 11.

        Examples
        --------
        >>> from maxent.models import MarkovRandomField
        >>> X = [[0, 0], [0, 0], [0, 1], [1, 1]]
        >>> field = MarkovRandomField.fit(X, [("a", "b")], smoothing=0)
        >>> field.marginal(["a", "b"])
        array([[0.5 , 0.25],
               [0.  , 0.25]])

        The nodes' own factors, beside a coupling that is known:

        >>> start = MarkovRandomField(
        ...     [(("a", "b"), [[1.0, 0.0], [0.0, 1.0]]), ("a", [0, 0]), ("b", [0, 0])])
        >>> field = MarkovRandomField.fit(
        ...     X, start.scopes, init=start, fixed=[("a", "b")])
        >>> field.log_factors[0][1].tolist(), field.n_parameters
        ([[1.0, 0.0], [0.0, 1.0]], 2)
        >>> field.marginal("b").round(2)
        array([0.5, 0.5])
        """
        tol, max_iter = v.check_stop(tol, max_iter)
        scopes = [scopes] if isinstance(scopes, str) else list(scopes)
        found = [given.node_names(f"scopes[{k}]", own) for k, own in enumerate(scopes)]
        nodes = tuple(dict.fromkeys(name for own in found for name in own))
        if not nodes:
            raise ValueError(f"scopes={v.shown(scopes)} has no node.")
        shown = given.check_observed(observed, nodes)
        X = columns_of_nodes("X", X, shown)
        held = _held(fixed, init, found)
        if init is not None:
            n_categories = init.n_categories
        sizes = given.category_counts(X, nodes, shown, n_categories)
        options = sizes, weights, smoothing, max_table
        problem = _Problem(X, found, shown, *options)
        rng = as_generator(random_state)
        n_init = v.check_count("n_init", n_init) if len(shown) < len(nodes) else 1
        if init is None:
            lost = len(shown) < len(nodes)
            starts = iter([problem.start(rng, lost) for _ in range(n_init)])
        else:
            starts = iter([problem.start_at(init, held)])
        best, result = maximize_by_em(
            problem.step,
            starts,
            tol=tol,
            max_iter=max_iter,
            callback=callback,
            change=_change,
        )
        model = cls(list(zip(problem.names, best)), shown)._with_result(result)
        if not any(np.isneginf(table).any() for table in best):
            masks = zip(map(_key, problem.names), problem.held)
            model._with_held({name: mask for name, mask in masks if mask.any()})
        return model._warned(tol, max_iter)


class _Problem:
    """One step; points are tuples of logarithms of factors."""

    def __init__(self, X, names, observed, sizes, weights, smoothing, max_table):
        self.smoothing = v.check_nonnegative("smoothing", smoothing)
        for own in names:
            cells = math.prod(sizes[name] for name in own)
            if cells > max_table:
                raise ValueError(
                    f"the factor of {v.shown(list(own))} would have {cells:.3g} "
                    f"entries, {8 * cells:.3g} bytes; max_table={max_table} allows "
                    f"{8 * max_table:.3g}. Use smaller factors."
                )
        nodes = list(sizes)
        empty = [(own, np.empty([sizes[n] for n in own])) for own in names]
        self.scopes, tables = sorted_factors(empty, nodes)
        self.names = [tuple(nodes[u] for u in scope) for scope in self.scopes]
        self.shapes = [table.shape for table in tables]
        self.plan = Elimination(self.scopes, tuple(sizes.values()), max_table=max_table)
        codes = given.codes_of(X, [sizes[name] for name in observed])
        own, self.total = _checks.row_weights(weights, (len(codes),))
        columns = tuple(nodes.index(name) for name in observed)
        rows = Rows(codes, columns, self.scopes, tuple(sizes.values()), max_table)
        self.counts = Counts(rows, own)
        self.nodes, self.held = nodes, [np.zeros(s, bool) for s in self.shapes]

    def start_at(self, init, held):
        """The point of a field, of which entries are held."""
        point = sorted_factors(init.log_factors, self.nodes)[1]
        none = np.zeros((), bool)
        masks = [
            (nodes, np.broadcast_to(held.get(_key(nodes), none), table.shape))
            for nodes, table in init.log_factors
        ]
        self.held = sorted_factors(masks, self.nodes)[1]
        if self.smoothing and any(np.isneginf(table).any() for table in point):
            raise ValueError(
                "init forbids combinations by -inf, which pseudo-rows show: smoothing="
                f"{self.smoothing:g}; set it to 0."
            )
        if self.counts(point)[0] == -np.inf:
            raise ValueError(
                "init gives a row of X probability 0; give it finite entries there, or "
                "drop the row."
            )
        return tuple(point)

    def start(self, rng, random):
        """Independent nodes; with hidden ones a little away from it."""
        return tuple(rng.normal(size=s) if random else np.zeros(s) for s in self.shapes)

    def step(self, point):
        """Objective at a point, and the point after one step."""
        log_z, shares = self.plan.beliefs([t[..., None, None] for t in point])
        log_z = float(log_z[0, 0])
        objective, counts = self.counts(point)
        total = float(np.sum(self.total)) + self.smoothing
        objective -= total * log_z
        if self.smoothing:
            objective += self.smoothing * float(sum(t.mean() for t in point))
        following = list(point)
        for f, (count, held) in enumerate(zip(counts, self.held)):
            if held.all():
                continue
            target = (count + self.smoothing / count.size) / total
            if f:
                _, shares = self.plan.beliefs([t[..., None, None] for t in following])
            share = shares[f][..., 0, 0]
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.log(target) - np.log(share)
            stays, own = share[held].sum(), target[held].sum()
            if stays > 0:
                if own == 0:
                    raise ValueError(
                        f"the entries of {v.shown(_key(self.names[f]))} that fixed= "
                        "keeps are in no row, so that the others have no finite "
                        "maximum; set smoothing > 0."
                    )
                ratio += np.log(stays) - np.log(own)
            new = np.where(target > 0, following[f] + ratio, -np.inf)
            following[f] = np.where(held, following[f], new)
        return objective, tuple(following)


def _key(nodes):
    """Name of a factor in `fixed`."""
    return nodes[0] if len(nodes) == 1 else tuple(nodes)


def _held(fixed, init, scopes):
    """Masks of entries that stay as they are in a start, by the names of factors."""
    if init is not None:
        check_init(init, MarkovRandomField)
        if list(map(set, init.scopes)) != list(map(set, scopes)):
            raise ValueError(
                "init has other scopes than the field to fit; pass scopes=init.scopes."
            )
        if fixed and len(set(map(frozenset, scopes))) < len(scopes):
            raise ValueError(
                f"scopes={v.shown(scopes)} has nodes twice, which fixed= cannot tell "
                "apart; join such factors to one."
            )
    return held_of(fixed, init)


def _interactions(nodes, codes, sizes):
    """Products of indicators of codes > 0, and their factors, that one state is."""
    each = [
        [(((n, c),), 1)]
        if c
        else [((), 1), *((((n, k),), -1) for k in range(1, sizes[n]))]
        for n, c in zip(nodes, codes)
    ]
    return {
        frozenset(pair for own, _ in parts for pair in own): math.prod(
            x for _, x in parts
        )
        for parts in product(*each)
    }


def _change(old, new):
    """Largest change of a factor, exp(theta) / max."""
    scaled = [[np.exp(t - t.max()) for t in point] for point in (old, new)]
    return max(float(np.abs(a - b).max()) for a, b in zip(*scaled))


def _log_table(name, table):
    """Finite logarithms, or -inf."""
    array = v.as_doubles(name, table)
    wrong = np.isnan(array) | (array == np.inf)
    if wrong.any():
        at = _checks.first(wrong)
        raise ValueError(
            f"{_checks.label(name, at)}={array[at]} must be the logarithm of a factor: "
            "a finite number, or -inf."
        )
    return array
