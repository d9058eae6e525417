"""What the states of a hidden Markov model show: symbols, or rows of any other family.

Symbols share the rows of one table of log-likelihoods; each step of the others has its
own. Rows of Gaussians may miss entries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._inputs.sequences import (
    Sequences,
    decoded,
    symbol_sequences,
    vector_sequences,
)
from maxent._support import validation as v
from maxent.families import Categorical, ExponentialFamily
from maxent.models._chain_input import (
    Array,
    alphabet_size,
    symbols_of,
    with_pseudo_counts,
)
from maxent.models._components import (
    Components,
    constant_columns,
    log_densities,
)
from maxent.models._online import refitted
from maxent.models._partial import check_columns, is_missing, is_partial
from maxent.models.chains._chain_search import clustered_starts
from maxent.models.chains._hidden_chain import HiddenChainProblem, Observations, Point
from maxent.models.chains._random_tables import random_tables
from maxent.models.chains._rules import Rules
from maxent.models.chains._runs_together import runs_together


class Emissions(ABC):
    """How sequences are read, and which problem EM has; holds settings, no data."""

    shared: ClassVar[bool]  # True if sequences share rows of the table

    @abstractmethod
    def read(
        self, sequences: Any, lengths: ArrayLike | None = None, partly: bool = True
    ) -> Sequences:
        """Checked sequences; `partly` with rows missing in part where there may be."""

    @abstractmethod
    def observations(self, found: Sequences) -> Observations:
        """Sequences as rows of `log_table`."""

    @abstractmethod
    def log_table(self, emission: Any, found: Sequences) -> Array:
        """Log-likelihoods (rows, n_states) of what the steps show."""

    @abstractmethod
    def written(self, values: NDArray[Any]) -> Any:
        """One drawn sequence as `sample` returns it."""

    @abstractmethod
    def problem(
        self,
        found: Sequences,
        weights: Array,
        rules: Rules,
        n_jobs: int | None = None,
    ) -> HiddenChainProblem:
        """EM of sequences."""

    @abstractmethod
    def counts_shape(self, problem: Any, n_states: int) -> tuple[int, ...]:
        """Shape of pseudo-counts of the emission; () for a number only."""

    @abstractmethod
    def size_of_one(self, problem: Any) -> int:
        """Size of one state, by which a length suits a number of states."""

    @abstractmethod
    def starts(
        self, problem: Any, n_states: int, n_init: int, rng: np.random.Generator
    ) -> Iterable[Point]:
        """Points to start from."""

    # -- sequences in blocks -----------------------------------------------------------
    @abstractmethod
    def check_start(self, init: Any, sequences: Any) -> None:
        """Refuse a start for steps of another width, before a pass over them."""

    @abstractmethod
    def read_block(self, values: Any, lengths: Any) -> Sequences:
        """Checked sequences of a partition."""

    @abstractmethod
    def facts(self, found: Sequences, weights: Array) -> tuple[float, float]:
        """(weight of the steps that were observed, largest code)."""

    @abstractmethod
    def learn(self, largest: float) -> None:
        """Take note of the largest code of all partitions."""

    @abstractmethod
    def part(self, found: Sequences, weights: Array) -> HiddenChainProblem:
        """EM of a partition, without the prior."""

    @abstractmethod
    def own_sums(self, emission: Any, shown: Array) -> tuple[Array, ...]:
        """Expected sums of a problem from steps in the states, shown (n_states,)."""

    @abstractmethod
    def shown(self, sums: Any) -> Array:
        """Steps (n_states,) that sums are of."""

    @abstractmethod
    def refitted(self, emission: Any, sums: Any, rows: float, rules: Rules) -> Any:
        """M step from sums of one row, where there were so many."""

    @abstractmethod
    def maximum(self, problem: Any, sums: Any, emission: Any) -> tuple[float, Any]:
        """Log-density of the prior of a problem, and the M step from sums."""


# -- symbols ---------------------------------------------------------------------------
class Symbols(Emissions):
    """Tables (n_states, n_symbols) of probabilities."""

    shared = True

    def __init__(
        self,
        n_symbols: int | None,
        alphabet: str | None = None,
        missing: str | None = None,
    ) -> None:
        self.n_symbols, self.alphabet, self.missing = n_symbols, alphabet, missing

    def read(self, sequences, lengths=None, partly=True):
        return symbols_of(self, sequences, lengths)

    def observations(self, found):
        return Observations(found, found.values, shared=True)

    def log_table(self, emission, found):
        with np.errstate(divide="ignore"):
            return np.log(emission.prob.T)

    def written(self, values):
        return values if self.alphabet is None else decoded(values, self.alphabet)

    def problem(self, found, weights, rules, n_jobs=None):
        return SymbolProblem(self.observations(found), weights, rules, n_jobs)

    def counts_shape(self, problem, n_states):
        return n_states, self.size_of_one(problem)

    def size_of_one(self, problem):
        return alphabet_size(problem.seen.sequences, self.alphabet, self.n_symbols)

    def starts(self, problem, n_states, n_init, rng):
        codes, n_symbols = problem.seen.sequences.values, self.size_of_one(problem)
        for start, move, prob in random_tables(codes, n_states, n_symbols, n_init, rng):
            yield start, move, tables(prob)

    def check_start(self, init, sequences):
        """Symbols have one width; those beyond the start's are found by the rows."""

    def read_block(self, values, lengths):
        v.refuse_sparse("sequences", values)
        if np.asarray(values).dtype.kind not in "iuf":
            raise ValueError(
                f"sequences has dtype {values.dtype}; a Dask array holds codes 0, 1, "
                "..., and -1 where missing."
            )
        return symbol_sequences(values, lengths, n_symbols=self.n_symbols)

    def facts(self, found, weights):
        own = np.repeat(weights, found.lengths) * (found.values >= 0)
        return float(own.sum()), float(found.values.max(initial=0))

    def learn(self, largest):
        if self.n_symbols is None:
            self.n_symbols = (
                int(largest) + 1 if self.alphabet is None else len(self.alphabet)
            )

    def part(self, found, weights):
        return self.problem(found, weights, Rules(0.0), 1)

    def own_sums(self, emission, shown):
        return ((shown[:, None] * emission.prob).T,)

    def shown(self, sums):
        return sums[0].sum(axis=0)

    def refitted(self, emission, sums, rows, rules):
        return tables(rules.maximum("emission", rows * sums[0].T, emission.prob))

    def maximum(self, problem, sums, emission):
        log_prior = problem.rules.log_prior(emission=emission.prob)
        return log_prior, problem.fit_emission(sums[0], emission)


class SymbolProblem(HiddenChainProblem):
    """EM of tables; every entry that is not zero at the start has pseudo-counts."""

    def log_table(self, emission):
        with np.errstate(divide="ignore"):
            table = np.log(emission.prob.T)
        if self.known is not None:  # then every step has a row of its own
            codes = self.seen.sequences.values
            table = np.where(codes[:, None] >= 0, table[codes], 0.0)
        return table, self.rules.log_prior(emission=emission.prob)

    def fit_emission(self, counts, emission):
        (counts,) = self.sums(counts, emission)
        return tables(self.rules.maximum("emission", counts.T, emission.prob))

    def sums(self, counts, emission):
        if len(counts) == emission.prob.shape[1] and self.known is None:
            return (counts,)
        codes = self.seen.sequences.values
        by_code = np.zeros((emission.prob.shape[1], counts.shape[1]))
        np.add.at(by_code, codes[codes >= 0], counts[codes >= 0])
        return (by_code,)

    def tell(self, known):
        super().tell(known)
        step = np.arange(len(known), dtype=np.intp)
        self.seen = Observations(self.seen.sequences, step, shared=False)

    def start_at(self, point: Point) -> Point:
        """The point: pseudo-counts depend on no data."""
        return point


def tables(prob: Array) -> Categorical:
    """Batch of tables that are known to be valid, as EM leaves them."""
    return Categorical._from_valid({"prob": np.array(prob)}, {})


# -- rows ------------------------------------------------------------------------------
class Rows(Emissions):
    """Any family whose events are numbers or vectors; a step of NaN shows nothing.

    Parameters
    ----------
    family : class
    options : dict, optional
        Further arguments of its `fit`.
    event_shape : tuple of int, optional
        Of a given batch.
    columns : tuple of str, optional
        Names that the columns of data frames must have.
    """

    shared = False

    def __init__(
        self,
        family: type[ExponentialFamily],
        options: dict[str, Any] | None = None,
        event_shape: tuple[int, ...] | None = None,
        columns: tuple[str, ...] | None = None,
    ) -> None:
        self.family, self.options = family, options
        self.event_shape, self.columns = event_shape, columns
        self.is_scalar = not family._event_to_fit()

    def read(self, sequences, lengths=None, partly=True):
        width = None
        if self.is_scalar:
            width = 1
        elif self.event_shape is not None:
            (width,) = self.event_shape
        found = vector_sequences(
            sequences,
            lengths,
            n_features=width,
            partly=partly and self.family._takes_gaps,
            columns=self.columns,
        )
        self._check_support(found)
        return found

    def _check_support(self, found):
        """Refuse rows outside the support, which no state can show."""
        if self.family._fills_gaps:
            return
        shown = np.flatnonzero(~is_missing(found.values))
        events = self._events(found)[shown]
        options = self.family._complete(events, self.options or {})
        known = self.family._kept(options)
        inside = self.family._inside(events, **known)
        if not inside.all():
            step = int(shown[np.argmin(inside)])
            i, t = found.place(step)
            raise ValueError(
                f"sequences[{i}][{t}]={v.shown(found.values[step].tolist())} is "
                f"outside the support of {self.family.__name__}: "
                f"{self.family._support_text(**known)}."
            )

    def _events(self, found):
        return found.values[:, 0] if self.is_scalar else found.values

    def filled(self, emission: Any, found: Sequences) -> Array:
        """Events (n_steps, event) with a row of the support where nothing was seen."""
        lost = is_missing(found.values)
        X = np.where(lost[:, None], emission._inner_point(), found.values)
        return X[:, 0] if self.is_scalar else X

    def observations(self, found):
        row = np.arange(len(found.values), dtype=np.intp)
        row[is_missing(found.values)] = -1
        return Observations(found, row, shared=False)

    def log_table(self, emission, found):
        shown = ~is_missing(found.values)
        events = self._events(found)
        events = events if shown.all() else events[shown]
        return by_step(log_densities(emission, events), shown)

    def written(self, values):
        return values

    def problem(self, found, weights, rules, n_jobs=None):
        problem = self._problem(found, weights, rules, n_jobs)
        problem.check()
        return problem

    def counts_shape(self, problem, n_states):
        return ()

    def size_of_one(self, problem):
        return problem.components.one()._n_free() + 1

    def starts(self, problem, n_states, n_init, rng):
        return clustered_starts(problem, n_states, n_init, rng)

    def _problem(self, found, weights, rules, n_jobs):
        seen, rows = self.observations(found), self._events(found)
        return RowProblem(seen, rows, weights, rules, self.family, self.options, n_jobs)

    def check_start(self, init, sequences):
        columns = sequences.shape[1] if sequences.ndim == 2 else 1
        (width,) = init.emission.event_shape or (1,)
        if columns != width:
            raise ValueError(
                f"init has {width} features, and sequences has shape "
                f"{sequences.shape}; give a start for the columns of the sequences."
            )

    def read_block(self, values, lengths):
        found = vector_sequences(values, lengths, partly=True)
        part = is_partial(found.values)
        if part.any():
            i, t = found.place(int(np.argmax(part)))
            raise ValueError(
                f"sequences[{i}][{t}] is NaN in part; fits to Dask arrays take rows "
                "that are NaN as a whole: fill in the missing part or drop the row."
            )
        self._check_support(found)
        return found

    def facts(self, found, weights):
        v.check_range("sequences", np.nan_to_num(found.values, nan=0.0))
        own = np.repeat(weights, found.lengths) * ~np.isnan(found.values[:, 0])
        return float(own.sum()), 0.0

    def learn(self, largest):
        """Rows have no codes."""

    def part(self, found, weights):
        # what is refused of all data may be right for a part of them
        return self._problem(found, weights, Rules(0.0), 1)

    def own_sums(self, emission, shown):
        return emission._own_sums(shown)

    def shown(self, sums):
        return sums[0]

    def refitted(self, emission, sums, rows, rules):
        return refitted(emission, sums)

    def maximum(self, problem, sums, emission):
        prior = problem.components.prior
        used = prior.decides(sums[0])
        fitted = prior.of_members(used).refitted(
            emission[used], *(s[used] for s in sums)
        )
        log_prior = float(prior.log_density(emission).sum())
        return log_prior, emission._replaced(used, fitted)


class RowProblem(HiddenChainProblem):
    """EM of rows of a family; rows missing in part are filled in by each state."""

    def __init__(
        self,
        seen: Observations,
        rows: Array,
        weights: Array,
        rules: Rules,
        family: type[ExponentialFamily],
        options: dict[str, Any] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(seen, weights, rules, n_jobs)
        self.shown = seen.row >= 0
        own = np.repeat(weights, seen.sequences.lengths)[self.shown]
        self.components = Components(family, rows[self.shown], own, options)

    def check(self) -> None:
        """Refuse rows that have no fit."""
        rows, own = self.components.X, self.components.weights
        if not own.any():
            raise ValueError(
                "every observation is missing or has weight 0: there is nothing to fit."
            )
        if not self.components.family._fills_gaps:
            return
        check_columns(rows)
        v.check_range("sequences", self.components.filled())
        constant = constant_columns(rows)
        if constant.any():
            if len(rows) == 1:
                raise ValueError("there is one observation; a variance needs two.")
            raise ValueError(
                f"column {int(np.argmax(constant))} of the sequences is constant, so "
                "its variance is zero; drop the column, or add noise of the size of "
                "its resolution."
            )

    def together(self, points):
        return runs_together(self, points)

    def log_table(self, emission):
        log_prob = self.components.log_prob(emission)
        log_prior = self.components.prior.log_density(emission, log_prob).sum()
        return by_step(log_prob, self.shown), float(log_prior)

    def fit_emission(self, counts, emission):
        mass = self._of_shown(counts)
        return self.components.fit(mass, emission, self.rules.held)

    def _of_shown(self, counts):
        """Counts (n_states, rows) of the steps that were observed."""
        return counts.T if self.shown.all() else counts[self.shown].T

    def sums(self, counts, emission):
        return emission._part_sums(self.components.X, self._of_shown(counts))

    def start_at(self, point: Point) -> Point:
        """The point, whose states' most likely rows decide about the prior."""
        shares = self.expected(point)[0].emission[self.shown].T
        labels, count = shares.argmax(axis=0), self.rules.smoothing
        self.components.set_prior(labels, len(shares), count)
        return point

    def counts_of_moves(self, shares: Array) -> tuple[Array, Array]:
        """Weighted first states, and pairs of states, of rows with shares (k, rows)."""
        after = np.zeros((len(self.shown), len(shares)))
        after[self.shown] = shares.T * self.components.weights[:, None]
        before = np.zeros_like(after)
        before[self.shown] = shares.T
        first = self.seen.sequences.offsets[:-1]
        start = after[first].sum(axis=0)
        after[first] = 0.0
        return start, before[:-1].T @ after[1:]

    def moves_of(self, shares: Array) -> tuple[Array, Array]:
        """Start and transition of states that have shares (k, rows) of the rows.

        They are those of the rows' shares, and a tenth of even ones, as EM could never
        leave a zero.
        """
        start, moves = self.counts_of_moves(shares)
        even = np.full(moves.shape, 1.0 / len(shares))
        start = 0.9 * with_pseudo_counts(start, 0.0, even[0]) + 0.1 * even[0]
        moves = 0.9 * with_pseudo_counts(moves, 0.0, even) + 0.1 * even
        return start, moves


def by_step(log_prob: Array, shown: NDArray[np.bool_]) -> Array:
    """Table (n_steps, k) of log-densities (k, rows) of the steps that were observed."""
    if shown.all():
        return np.ascontiguousarray(log_prob.T)
    out = np.zeros((len(shown), len(log_prob)))
    out[shown] = log_prob.T
    return out
