"""What hidden Markov models share, whatever they emit.

    p(x, z) = start[z_0] prod_t transition[z_{t-1}, z_t] prod_t p(x_t | z_t)

A kind of emission states the log-likelihoods of its observations and its M step.

Source: Rabiner (1989), sections III and V.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._core.chains import chain
from maxent._inputs.sequences import Sequences
from maxent._support.random_state import as_generator
from maxent._support.threads import effective_threads
from maxent._support.typing import Callback
from maxent.models._chain_input import (
    Array,
    drawn_offsets,
    drawn_paths,
    log_of_pseudo_counts,
    with_pseudo_counts,
)
from maxent.models._criteria import InformationCriteria, free_probabilities
from maxent.models.base import Model, maximize_by_em


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
        """The same of probabilities that may underflow, by their logarithms."""
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
    top = log_table.max(axis=1) if len(log_table) else np.zeros(0)
    top = np.where(np.isfinite(top), top, 0.0)
    if shared and (np.abs(top + 50.0) <= 50.0).all():
        return np.ascontiguousarray(log_table), np.zeros_like(top)
    return np.ascontiguousarray(log_table - top[:, None]), top


class HiddenMarkovModel(InformationCriteria, Model):
    """Hidden Markov model; base class of the kinds of emission.

    Attributes
    ----------
    start : ndarray (n_states,)
    transition : ndarray (n_states, n_states)
    emission : family batch (n_states,)
    """

    start: Array
    transition: Array
    emission: Any

    @property
    def n_states(self) -> int:
        """Number of hidden states."""
        return len(self.start)

    # -- what a kind of emission defines -----------------------------------------------
    @abstractmethod
    def _read(
        self, sequences: Any, lengths: ArrayLike | None, partly: bool = False
    ) -> Sequences:
        """Sequences that fit this model; `partly` with rows missing in part."""

    @staticmethod
    @abstractmethod
    def _observations(sequences: Sequences) -> Observations:
        """Sequences as rows of `_log_table`."""

    @abstractmethod
    def _log_table(self, sequences: Sequences) -> Array:
        """Log-likelihoods (rows, n_states) of what the steps show."""

    @abstractmethod
    def _written(self, values: NDArray[Any]) -> Any:
        """One drawn sequence as `sample` returns it."""

    # -- inference -----------------------------------------------------------------
    def log_likelihood(
        self,
        sequences: Any,
        lengths: ArrayLike | None = None,
        *,
        n_jobs: int | None = None,
    ) -> Array:
        """Log-likelihood of every sequence.

        Parameters
        ----------
        sequences : list of sequences, array-like, or path of symbols
            As for `fit`.
        lengths : array-like of int, optional
            Lengths of the sequences in one array.
        n_jobs : int, optional
            Threads; the result has the same bits for any number.

        Returns
        -------
        ndarray (n_sequences,)
            In nats; -inf of a sequence that the model cannot produce.
        """
        found, seen = self._seen(sequences, lengths)
        table = self._log_table(found)
        counts = seen.expect(self.start, self.transition, table, None, n_jobs)
        return counts.log_likelihood

    def posterior(
        self,
        sequences: Any,
        lengths: ArrayLike | None = None,
        *,
        n_jobs: int | None = None,
    ) -> list[Array]:
        """Posterior probabilities of the states at every step.

        Parameters
        ----------
        sequences, lengths, n_jobs
            As for `log_likelihood`.

        Returns
        -------
        list of ndarray (n_steps, n_states)
            One for each sequence; rows sum to one.

        Raises
        ------
        ValueError
            If the model cannot produce a sequence; it is named.
        """
        found, seen = self._seen(sequences, lengths)
        # a row for every step, those without an observation included
        table, row = self._log_table(found), seen.row
        log_table = np.zeros((len(row), self.n_states))
        log_table[row >= 0] = table[row[row >= 0]]
        steps = Observations(found, np.arange(len(row)), shared=False)
        counts = steps.expect(
            self.start, self.transition, log_table, np.ones(len(found)), n_jobs
        )
        impossible = np.isneginf(counts.log_likelihood)
        if impossible.any():
            raise ValueError(
                f"sequences[{int(np.argmax(impossible))}] has probability 0 under the "
                "model, so its states have no posterior; fit with smoothing > 0."
            )
        return list(Sequences(counts.emission, found.offsets))

    def viterbi(
        self,
        sequences: Any,
        lengths: ArrayLike | None = None,
        *,
        n_jobs: int | None = None,
    ) -> tuple[list[NDArray[np.intp]], Array]:
        """Most likely state path of every sequence.

        Parameters
        ----------
        sequences, lengths, n_jobs
            As for `log_likelihood`.

        Returns
        -------
        paths : list of ndarray of int (n_steps,)
            Ties go to the state of the lowest number.
        log_prob : ndarray (n_sequences,)
            Log-probability of path and sequence together.
        """
        found, seen = self._seen(sequences, lengths)
        table = self._log_table(found)
        chain_in_logs = logs_of(self.start, self.transition)
        path, log_prob = seen.viterbi(*chain_in_logs, table, n_jobs)
        return list(Sequences(path, found.offsets)), log_prob

    def _read_all(self, sequences, lengths):
        return self._read(sequences, lengths, partly=True)

    @property
    @abstractmethod
    def _emission_parameters(self) -> int:
        """Free parameters of what all states show."""

    @property
    def n_parameters(self) -> int:
        """Number of free parameters; probabilities of zero are none."""
        chain = free_probabilities(self.start) + free_probabilities(self.transition)
        return chain + self._emission_parameters

    def _seen(self, sequences, lengths):
        found = self._read_all(sequences, lengths)
        return found, self._observations(found)

    @overload
    def sample(
        self,
        n: int,
        length: ArrayLike,
        random_state: Any = ...,
        *,
        return_states: Literal[False] = ...,
    ) -> list[Any]: ...
    @overload
    def sample(
        self,
        n: int,
        length: ArrayLike,
        random_state: Any = ...,
        *,
        return_states: Literal[True],
    ) -> tuple[list[Any], list[NDArray[np.intp]]]: ...
    def sample(
        self,
        n: int,
        length: ArrayLike,
        random_state: Any = None,
        *,
        return_states: bool = False,
    ) -> Any:
        """Draw sequences.

        Parameters
        ----------
        n : int
            Number of sequences, >= 1.
        length : int or array-like of int (n,)
            Steps of each, >= 1.
        random_state : int, Generator, RandomState or None, default=None
            The same seed gives the same draws.
        return_states : bool, default=False
            Return the hidden states too.

        Returns
        -------
        sequences : list
            Arrays, or strings of a model with an alphabet.
        states : list of ndarray of int (n_steps,)
            Only if `return_states`.
        """
        rng = as_generator(random_state)
        offsets = drawn_offsets(n, length)
        states = drawn_paths(self.start, self.transition, offsets, rng)
        values = None
        for k in range(self.n_states):
            own = np.flatnonzero(states == k)
            if len(own):
                drawn = self.emission[k].sample(len(own), rng)
                if values is None:
                    values = np.empty((len(states), *drawn.shape[1:]), drawn.dtype)
                values[own] = drawn
        assert values is not None  # there is a step, and it is in some state
        sequences = [self._written(one) for one in Sequences(values, offsets)]
        if return_states:
            return sequences, list(Sequences(states, offsets))
        return sequences

    # -- EM ------------------------------------------------------------------------
    @classmethod
    def _best_of(
        cls,
        problem: HiddenChainProblem,
        starts: Any,
        fixed: dict[str, Any],
        tol: float,
        max_iter: int,
        callback: Callback | None,
    ) -> Self:
        """EM from every start; the model of the greatest objective."""
        best, result = maximize_by_em(
            problem.step, starts, tol=tol, max_iter=max_iter, callback=callback
        )
        return cls(*best, **fixed)._with_result(result)


class HiddenChainProblem(ABC):
    """One EM step of a hidden Markov model, for `maximize_by_em`.

    Parameters are tuples (start, transition, what the emission has). The objective is
    the weighted log-likelihood plus, up to a constant, the log-density of Dirichlet
    priors with parameters 1 + smoothing of the probabilities that are not zero at the
    start, and of the emission's own prior.
    """

    def __init__(
        self,
        seen: Observations,
        weights: Array,
        smoothing: float,
        n_jobs: int | None = None,
    ):
        self.seen, self.weights = seen, weights
        self.smoothing, self.n_jobs = smoothing, n_jobs

    def step(self, point: tuple[Array, ...]) -> tuple[float, tuple[Array, ...]]:
        """Objective at a point, and the point after one EM step."""
        start, transition, *emission = point
        counts, log_likelihood, log_prior = self.expected(point)
        c = self.smoothing
        objective = log_likelihood + log_prior
        objective += log_of_pseudo_counts(c, start, transition)
        following = (
            with_pseudo_counts(counts.start, c, start),
            with_pseudo_counts(counts.transition, c, transition),
            *self.fit_emission(counts.emission, emission),
        )
        return objective, following

    def expected(self, point: tuple[Array, ...]) -> tuple[Counts, float, float]:
        """Expected counts, log-likelihood, log-density of the emission's prior."""
        start, transition, *emission = point
        table, log_prior = self.log_table(emission)
        counts = self.seen.expect(start, transition, table, self.weights, self.n_jobs)
        used = self.weights > 0
        log_likelihood = float(self.weights[used] @ counts.log_likelihood[used])
        return counts, log_likelihood, log_prior

    @abstractmethod
    def log_table(self, emission: Sequence[Array]) -> tuple[Array, float]:
        """Log-likelihoods (rows, n_states), and the log-density of the prior."""

    @abstractmethod
    def fit_emission(
        self, counts: Array, emission: Sequence[Array]
    ) -> tuple[Array, ...]:
        """M step of the emission from expected counts (rows, n_states)."""
