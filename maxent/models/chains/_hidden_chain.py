"""Forward and backward passes of hidden Markov models, and one EM step.

    p(x, z) = start[z_0] prod_t transition[z_{t-1}, z_t] prod_t p(x_t | z_t)

Source: Rabiner (1989), sections III and V.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maxent._core.chains import chain
from maxent._inputs.sequences import Sequences
from maxent._support.threads import effective_threads
from maxent._support.typing import Callback
from maxent.models._chain_input import Array
from maxent.models.chains._rules import Rules, matching_order, only_known
from maxent.models.em import EMResult, maximize_by_em, relative_change

Point: TypeAlias = tuple[Array, Array, Any]  # start, transition, batch of a family


@dataclass
class Counts:
    """Weighted expected counts of sequences under a model."""

    log_likelihood: Array  # (n,)
    start: Array  # (states,)
    transition: Array  # (states, states)
    emission: Array  # (rows, states): by symbol, or by step


class Observations:
    """Sequences as the compiled passes read them: rows of a table of log-likelihoods.

    Parameters
    ----------
    sequences : Sequences
    row : ndarray of int (n_steps,)
        Row of the table that each step shows; -1 where nothing was observed.
    shared : bool
        Whether several steps show one row, as with symbols.
    """

    def __init__(self, sequences: Sequences, row: NDArray[np.intp], shared: bool):
        self.sequences, self.shared = sequences, shared
        self.row = np.ascontiguousarray(row, dtype=np.intp)
        self.order = np.argsort(-sequences.lengths, kind="stable").astype(np.intp)

    def expect(
        self,
        start: Array,
        transition: Array,
        log_table: Array,
        weights: Array | None,
        n_jobs: int | None = None,
    ) -> Counts:
        """Log-likelihoods and, unless `weights` is None, expected counts."""
        tables = start, transition, *logs_of(start, transition)
        return self._expect(tables, log_table, weights, n_jobs)

    def expect_of_logs(
        self,
        log_start: Array,
        log_transition: Array,
        log_table: Array,
        weights: Array | None,
        n_jobs: int | None = None,
    ) -> Counts:
        """Counts as of `expect`, from logarithms, where probabilities underflow."""
        tables = np.exp(log_start), np.exp(log_transition), log_start, log_transition
        return self._expect(tables, log_table, weights, n_jobs)

    def _expect(self, tables, log_table, weights, n_jobs):
        relative, top = relative_rows(log_table, self.shared)
        found = chain.expect(
            *map(np.ascontiguousarray, tables),
            relative,
            self.row,
            self.sequences.offsets,
            self.order,
            weights,
            self.shared,
            effective_threads(n_jobs),
        )
        log_lik, emission, starts, transitions = found
        return Counts(log_lik + self.sums(top), starts, transitions, emission)

    def viterbi(
        self,
        log_start: Array,
        log_transition: Array,
        log_table: Array,
        n_jobs: int | None = None,
    ) -> tuple[NDArray[np.intp], Array]:
        """Most likely states (steps,), and log-probabilities (n,) with what is seen."""
        path, log_prob = chain.viterbi(
            log_start,
            np.ascontiguousarray(log_transition),
            np.ascontiguousarray(log_table),
            self.row,
            self.sequences.offsets,
            effective_threads(n_jobs),
        )
        return path, log_prob

    def sums(self, top: Array) -> Array:
        """Sums over the steps of each sequence of what its rows have, (n,)."""
        if not top.any():
            return np.zeros(len(self.sequences))
        steps = np.where(self.row >= 0, top[self.row], 0.0)
        return np.add.reduceat(steps, self.sequences.offsets[:-1])


def logs_of(start: Array, transition: Array) -> tuple[Array, Array]:
    """Logarithms of the probabilities of a chain."""
    with np.errstate(divide="ignore"):
        return np.log(start), np.log(transition)


def relative_rows(log_table: Array, shared: bool) -> tuple[Array, Array]:
    """Rows less their largest entry, and these; a row of -inf stays as it is.

    Rows of probabilities that do not come near underflow stay as they are too.
    """
    log_table = np.ascontiguousarray(log_table)
    relative, top = chain.relative(log_table)
    if shared and (np.abs(top + 50.0) <= 50.0).all():
        return log_table, np.zeros_like(top)
    return relative, top


class ChainEM(ABC):
    """One EM step of a hidden Markov model, for `maximize_by_em`.

    Points are tuples (start, transition, emission), the last a batch of a family. The
    objective is the weighted log-likelihood plus, up to a constant, the log-density of
    Dirichlet priors with parameters 1 + smoothing of the probabilities that are not
    zero at the start, and of the emission's own prior.
    """

    rules: Rules

    def step(self, point: Point) -> tuple[float, Point]:
        """Objective at a point, and the point after one EM step."""
        start, transition, old = point
        objective, starts, transitions, emission = self.expected_and_fitted(point)
        objective += self.rules.log_prior(start=start, transition=transition)
        following = (
            self.rules.maximum("start", starts, start),
            self.rules.maximum("transition", transitions, transition),
            self.rules.hold_members(emission, old),
        )
        return objective, following

    def together(self, points: list[Point]) -> Any:
        """Runs from several points side by side; None where they are one by one."""
        return None

    @abstractmethod
    def expected_and_fitted(self, point: Point) -> tuple[float, Array, Array, Any]:
        """Log-likelihood and log-prior of the emission; counts; the new emission."""


class HiddenChainProblem(ChainEM):
    """EM of sequences in the memory of this process."""

    def __init__(
        self,
        seen: Observations,
        weights: Array,
        rules: Rules,
        n_jobs: int | None = None,
    ):
        self.seen, self.weights = seen, weights
        self.rules, self.n_jobs = rules, n_jobs
        self.known: NDArray[np.intp] | None = None

    def tell(self, known: NDArray[np.intp]) -> None:
        """Take note of states (n_steps,) that are known, -1 of others."""
        self.known = known
        step = np.arange(len(known), dtype=np.intp)
        row = np.where(known >= 0, step, self.seen.row)
        self.seen = Observations(self.seen.sequences, row, shared=False)

    def in_order_of_known(self, point: Point) -> Point:
        """The point with its states in the order that agrees best with known ones."""
        known = self.known
        assert known is not None
        self.known = np.full(len(known), -1)
        shares = self.expected(point)[0].emission
        self.known = known
        order = matching_order(shares, known)
        start, transition, emission = point
        return start[order], transition[np.ix_(order, order)], emission[order]

    def expected_and_fitted(self, point):
        counts, log_likelihood, log_prior = self.expected(point)
        emission = self.fit_emission(counts.emission, point[2])
        return log_likelihood + log_prior, counts.start, counts.transition, emission

    def expected(self, point: Point) -> tuple[Counts, float, float]:
        """Expected counts, log-likelihood, log-density of the emission's prior."""
        start, transition, emission = point
        table, log_prior = self.log_table(emission)
        if self.known is not None:
            table = only_known(table, self.known)
        counts = self.seen.expect(start, transition, table, self.weights, self.n_jobs)
        used = self.weights > 0
        log_likelihood = float(self.weights[used] @ counts.log_likelihood[used])
        return counts, log_likelihood, log_prior

    @abstractmethod
    def log_table(self, emission: Any) -> tuple[Array, float]:
        """Log-likelihoods (rows, n_states), and the log-density of the prior."""

    @abstractmethod
    def fit_emission(self, counts: Array, emission: Any) -> Any:
        """M step of the emission from expected counts (rows, n_states)."""

    @abstractmethod
    def sums(self, counts: Array, emission: Any) -> tuple[Array, ...]:
        """Sums of the M step, which add up over parts of the sequences."""


def chain_change(old: Point, new: Point) -> float:
    """Relative change of the parameters of a point."""
    arrays = [(start, move, *batch._arrays()) for start, move, batch in (old, new)]
    return relative_change(*arrays)


def fitted_chain(
    problem: Any,
    starts: Any,
    tol: float,
    max_iter: int,
    callback: Callback | None,
) -> tuple[Point, EMResult]:
    """The best point of EM from every start, and how it ended."""
    return maximize_by_em(
        problem.step,
        starts,
        tol=tol,
        max_iter=max_iter,
        callback=callback,
        change=chain_change,
        together=problem.together,
    )
