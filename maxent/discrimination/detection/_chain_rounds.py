"""Hidden Markov models in the rounds of outlier detection.

    log p(x, z | theta) = log start[z_0] + sum_t log transition[z_{t-1}, z_t]
                          + sum_t log p(x_t | z_t)

The rows of all tables have Dirichlet priors, Gaussian emissions a
normal-inverse-Wishart one. Forward-backward with exp E log of the tables, which sum to
less than one, gives the best posteriors of the state paths and the bound.

Source: Jaakkola, Meila & Jebara (1999), section 4.1; Rabiner (1989), section V.A.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxent._inputs.sequences import Sequences
from maxent._support import validation as v
from maxent._support.threads import effective_threads
from maxent._support.typing import FloatArray
from maxent.discrimination.detection._latent_rounds import Hidden, LatentProblem
from maxent.discrimination.detection.chain_posterior import (
    ChainPosterior,
    expected_logs,
)
from maxent.families.priors.dirichlet_tables import DirichletTables, check_table
from maxent.models._components import log_densities
from maxent.models.chains._emissions import Rows
from maxent.models.chains._hidden_chain import relative_rows
from maxent.models.chains._many_chains import counts_of_chain
from maxent.models.chains._random_tables import random_tables
from maxent.models.chains._rules import Rules
from maxent.models.chains.gaussian_hmm import FAMILIES

_CHUNK = 1 << 22  # doubles of the tables of one pass
_SMOOTHING = 0.01  # of the clusterings that Gaussian states start from


class ChainTables(DirichletTables):
    """Dirichlet priors of the rows of several tables; data are counts of all cells.

    Cells of pseudo-count zero never occur: they have no part in the distribution.
    """

    def __init__(self, tables: list[FloatArray]) -> None:
        checked = [check_table(k, t, t.shape, zeros=True) for k, t in enumerate(tables)]
        self._set_cells(checked)

    def _set_cells(self, tables):
        super()._set_cells(tables)
        self._possible = self._alpha > 0
        self._alpha = self._alpha[self._possible]
        self._group = self._group[self._possible]

    def _tables(self, alpha):
        every = np.zeros(len(self._possible))
        every[self._possible] = alpha
        return super()._tables(every)

    def _with(self, tables):
        value = object.__new__(type(self))
        value._set_cells(tables)
        return value

    def _prepare(self, X):
        # expected counts have no zeros: dense products are the quicker ones
        first = np.flatnonzero(np.diff(self._group, prepend=-1))
        X = X if self._possible.all() else np.ascontiguousarray(X[:, self._possible])
        return X, np.add.reduceat(X, first, axis=1)


class ChainProblem(LatentProblem):
    """Sequences of hidden states; base class of the kinds of emission.

    `expected` of its hidden posteriors is a tuple of counts for every sequence, starts
    (n, S) and moves (n, S, S), and what the steps show.

    Parameters
    ----------
    found : Sequences
    n_states : int
    pseudo_count : dict
        Of ``start``, ``transition`` and ``emission``: of all cells, or arrays.
    unit : ndarray (n,)
        What log-likelihoods are multiplied by.
    weight : ndarray (n,)
        Weights of the sequences, for the starts.
    n_jobs : int or None
        Threads.
    """

    def __init__(
        self,
        found: Sequences,
        n_states: int,
        pseudo_count: dict[str, Any],
        unit: FloatArray,
        weight: FloatArray | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.found, self.n, self.S = found, len(found), n_states
        self.unit, self.n_jobs = unit, n_jobs
        self.weight = np.ones(self.n) if weight is None else weight
        self.per_sequence = sp.diags_array(unit, format="csr")
        self.pseudo_counts = [
            np.broadcast_to(np.asarray(pseudo_count[name], dtype=float), shape)
            for name, shape in (
                ("start", (1, n_states)),
                ("transition", (n_states, n_states)),
            )
        ]
        # fixed by the data, so that sums have the same bits for any number of threads
        self.order = np.argsort(-found.lengths, kind="stable")

    # -- what a kind of emission defines -----------------------------------------------
    row: Any  # row of a sequence's own table for every step, -1 for none

    @abstractmethod
    def _chunk_table(self, own, logs):
        """Log-likelihoods (k, rows, S) less the largest of a row, by sequence."""

    @abstractmethod
    def _collected(self, parts):
        """Expected counts of all chunks, (sequences, counts (k, rows, S)), joined."""

    @abstractmethod
    def _tops(self, logs):
        """Largest log-likelihood of every step, summed over sequences (n,)."""

    @abstractmethod
    def _emission_term(self, shown, logs):
        """Expected log-likelihood (n,) of what sequences show."""

    @abstractmethod
    def _random(self, rng):
        """Random start and transition probabilities, and logs of the emission."""

    @abstractmethod
    def _rows_of_chunk(self, own):
        """Rows of the tables of these sequences."""

    # -- the pass over all sequences ---------------------------------------------------
    def _pass(self, start, transition, logs):
        """Posteriors from logs of start, transition and emission."""
        starts, moves = np.empty((self.n, self.S)), np.empty((self.n, self.S, self.S))
        bound, parts = np.empty(self.n), []
        lengths, begins = self.found.lengths, self.found.offsets[:-1]
        for own in self._chunks():
            bound[own], starts[own], moves[own], counts = counts_of_chain(
                self.row,
                np.ascontiguousarray(begins[own]),
                np.ascontiguousarray(lengths[own]),
                start,
                transition,
                self._chunk_table(own, logs),
                effective_threads(self.n_jobs),
            )
            parts.append((own, counts))
        bound += self._tops(logs)
        shown = self._collected(parts)
        complete = starts @ _of_possible(start)
        complete += np.einsum("tij,ij->t", moves, _of_possible(transition))
        complete += self._emission_term(shown, logs)
        # rounding may leave an entropy of zero below it
        entropy = np.maximum(bound - complete, 0.0)
        expected = starts, moves, shown
        return Hidden(self.unit * bound, self.unit * entropy, expected)

    def _chunks(self):
        """Sequences of similar lengths, as many as fit into the memory of a pass."""
        at = 0
        while at < self.n:
            rows = self._rows_of_chunk(self.order[at : at + 1])
            each = self.S * (rows + 4 * self.S)
            k = max(8, _CHUNK // each)
            yield self.order[at : at + k]
            at += k

    def start(self, rng):
        start, transition, logs = self._random(rng)
        where = [np.where(counts > 0, 0.0, -np.inf) for counts in self.pseudo_counts]
        return self._pass(start + where[0][0], transition + where[1], logs)


def _of_possible(logs):
    """Logs, zero of what never happens and so has a count of zero."""
    return np.where(np.isneginf(logs), 0.0, logs)


class CategoricalChains(ChainProblem):
    """Sequences of symbols; what they show is counted by state, (n, S, symbols)."""

    largest = 0.0

    def __init__(self, found, n_states, pseudo_count, unit, n_symbols, *more):
        super().__init__(found, n_states, pseudo_count, unit, *more)
        # counts of every sequence, joined for the dual, and a factor as large
        cells = n_states * (1 + n_states + n_symbols)
        v.check_memory("n_states", n_states, 32.0 * self.n * cells)
        self.M = n_symbols
        self.row = np.ascontiguousarray(found.values, dtype=np.intp)
        seen = np.flatnonzero(self.row >= 0)
        owner = np.repeat(np.arange(self.n), found.lengths)[seen]
        self.counts = np.zeros((self.n, n_symbols))  # of every symbol, by sequence
        np.add.at(self.counts, (owner, self.row[seen]), 1.0)
        shown = np.broadcast_to(pseudo_count["emission"], (n_states, n_symbols))
        self.prior = ChainTables([*self.pseudo_counts, np.array(shown, dtype=float)])

    def _rows_of_chunk(self, own):
        return self.M

    def _chunk_table(self, own, logs):
        relative, _ = relative_rows(logs.T, True)
        return np.repeat(relative[None], len(own), axis=0)

    def _tops(self, logs):
        return self.counts @ relative_rows(logs.T, True)[1]

    def _collected(self, parts):
        shown = np.empty((self.n, self.S, self.M))
        for own, counts in parts:
            shown[own] = counts.swapaxes(1, 2)
        return shown

    def _emission_term(self, shown, logs):
        return np.einsum("tkx,kx->t", shown, logs)

    def _random(self, rng):
        own = np.repeat(self.weight, self.found.lengths)
        tables = random_tables(self.found.values, self.S, self.M, 1, rng, own)
        return tuple(np.log(table) for table in next(tables))

    def blocks(self, hidden):
        flat = [part.reshape(self.n, -1) for part in hidden.expected]
        block = self.prior.block(np.concatenate(flat, axis=1))
        return [block], [self.per_sequence]

    def hidden(self, blocks, weights):
        return self._pass(*map(expected_logs, self._found(blocks, weights)))

    def posterior(self, blocks, weights):
        return ChainPosterior(*self._found(blocks, weights))

    def _found(self, blocks, weights):
        start, transition, table = blocks[0].posterior(weights[0]).pseudo_counts
        return start[0], transition, table


class GaussianChains(ChainProblem):
    """Sequences of vectors; what they show is the states of the observed steps (N, S).

    Blocks are the tables, and one Gaussian a state over all observed steps; or, where
    `prior` is a list of those of the columns, one for each column of a state.
    """

    largest = np.inf

    def __init__(self, found, n_states, pseudo_count, unit, prior, *more):
        super().__init__(found, n_states, pseudo_count, unit, *more)
        lengths = found.lengths
        place = np.arange(len(found.values)) - np.repeat(found.offsets[:-1], lengths)
        observed = ~np.isnan(found.values[:, 0])
        self.row = np.where(observed, place, -1).astype(np.intp)
        self.steps = np.flatnonzero(observed)
        self.owner = np.repeat(np.arange(self.n), lengths)[self.steps]
        self.X = np.ascontiguousarray(found.values[self.steps])
        self.prior, self.diagonal = (
            ChainTables(self.pseudo_counts),
            isinstance(prior, list),
        )
        parts = [(prior, self.X)]
        if isinstance(prior, list):
            parts = list(zip(prior, np.hsplit(self.X, self.X.shape[1]), strict=True))
        self.n_parts = len(parts)  # of the Gaussian of a state
        self.states = [own.block(X) for _ in range(n_states) for own, X in parts]

    def _rows_of_chunk(self, own):
        return int(self.found.lengths[own].max())

    def _chunk_table(self, own, logs):
        table = np.zeros((len(own), self._rows_of_chunk(own), self.S))
        relative = np.zeros((len(self.row), self.S))
        relative[self.steps] = logs - logs.max(axis=1, keepdims=True)
        for k, i in enumerate(own):
            lo, hi = self.found.offsets[i : i + 2]
            table[k, : hi - lo] = relative[lo:hi]
        return table

    def _tops(self, logs):
        return np.bincount(self.owner, logs.max(axis=1), minlength=self.n)

    def _collected(self, parts):
        shown = np.empty((len(self.row), self.S))
        for own, counts in parts:
            for k, i in enumerate(own):
                lo, hi = self.found.offsets[i : i + 2]
                shown[lo:hi] = counts[k, : hi - lo]
        return shown[self.steps]

    def _emission_term(self, shown, logs):
        return np.bincount(self.owner, (shown * logs).sum(axis=1), minlength=self.n)

    def _random(self, rng):
        states = Rows(FAMILIES["diagonal" if self.diagonal else "full"])
        problem = states.problem(self.found, self.weight, Rules(_SMOOTHING))
        start, transition, emission = states.starts(problem, self.S, 1, rng)[0]
        logs = np.ascontiguousarray(log_densities(emission, self.X).T)
        return np.log(start), np.log(transition), logs

    def blocks(self, hidden):
        starts, moves, shown = hidden.expected
        counts = np.concatenate([starts, moves.reshape(self.n, -1)], axis=1)
        ends = np.arange(len(self.steps) + 1)
        shape = (len(self.steps), self.n)
        weighted = shown * self.unit[self.owner, None]
        maps = [sp.csr_array((q, self.owner, ends), shape=shape) for q in weighted.T]
        maps = [one for one in maps for _ in range(self.n_parts)]
        return [self.prior.block(counts), *self.states], [self.per_sequence, *maps]

    def hidden(self, blocks, weights):
        start, transition = blocks[0].posterior(weights[0]).pseudo_counts
        means = [
            block.mean(a) for block, a in zip(blocks[1:], weights[1:], strict=True)
        ]
        means = np.reshape(means, (self.S, self.n_parts, -1)).sum(axis=1)
        logs = np.ascontiguousarray(means.T)
        return self._pass(expected_logs(start[0]), expected_logs(transition), logs)

    def posterior(self, blocks, weights):
        start, transition = blocks[0].posterior(weights[0]).pseudo_counts
        states = [
            block.posterior(a) for block, a in zip(blocks[1:], weights[1:], strict=True)
        ]
        if self.diagonal:
            k = self.n_parts
            return ChainPosterior(
                start[0],
                transition,
                [states[i : i + k] for i in range(0, len(states), k)],
            )
        return ChainPosterior(start[0], transition, states)
