"""EM of many hidden Markov models at once, each with a sequence of its own.

Eight models share a vector of the compiled passes, and the M step is the same few
operations on arrays over all models, so that short sequences cost no more than their
arithmetic.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxent._core import chain
from maxent._support.sequences import Sequences
from maxent.models._chain_input import Array, with_pseudo_counts
from maxent.models.em import EMResult, maximize_many_by_em

LANES = chain.lanes()  # models in one vector of the compiled loops


def in_vectors(array: Array) -> Array:
    """(n, ...) to (vectors, ..., lanes); the last member fills the last vector up."""
    n = len(array)
    index = np.minimum(np.arange(-(-n // LANES) * LANES), n - 1)
    full = array[index].reshape(-1, LANES, *array.shape[1:])
    full = np.moveaxis(full, 1, -1)
    memory = np.empty(full.size + LANES)  # to begin with a whole cache line
    skip = -memory.ctypes.data % 64 // 8
    out = memory[skip : skip + full.size].reshape(full.shape)
    out[...] = full
    return out


def out_of_vectors(array: Array, n: int) -> Array:
    """The inverse of `in_vectors`, of n members."""
    return np.moveaxis(array, -1, 1).reshape(-1, *array.shape[1:-1])[:n]


class ManyTables:
    """EM steps of hidden Markov models with tables of emissions.

    Problem i fits a model to the sequence `own[i]`; sequences come by falling length.
    """

    def __init__(
        self,
        sequences: Sequences,
        own: NDArray[np.intp],
        smoothing: float,
        n_threads: int,
    ):
        self.row = np.ascontiguousarray(sequences.values, dtype=np.intp)
        self.begin = sequences.offsets[own]
        self.length = sequences.lengths[own]
        self.smoothing, self.n_threads = smoothing, n_threads

    def step(self, running, points):
        """Objectives of running problems, and their points after one EM step."""
        start, transition, table = points
        by_symbol = np.ascontiguousarray(table.swapaxes(1, 2))
        log_lik, starts, moves, counts = self._expect(
            running, start, transition, by_symbol
        )
        c, objective = self.smoothing, log_lik
        if c > 0:
            with np.errstate(divide="ignore"):
                logs = [np.log(part).reshape(len(part), -1) for part in points]
            objective = log_lik + c * sum(np.einsum("ij->i", part) for part in logs)
        following = (
            with_pseudo_counts(starts, c, start),
            with_pseudo_counts(moves, c, transition),
            with_pseudo_counts(counts.swapaxes(1, 2), c, table),
        )
        return objective, following

    def _expect(self, running, start, transition, by_symbol):
        begin, length = self.begin[running], self.length[running]
        return expected_counts(
            *(self.row, begin, length, start, transition, by_symbol, self.n_threads)
        )


def expected_counts(
    row: NDArray[np.intp],
    begin: NDArray[np.intp],
    length: NDArray[np.intp],
    start: Array,
    transition: Array,
    table: Array,
    n_threads: int,
) -> tuple[Array, Array, Array, Array]:
    """Log-likelihoods and expected counts of sequences, each under its own model.

    Parameters
    ----------
    row : ndarray of int (steps,)
        Row of its own table that each step shows, -1 where nothing was observed.
    begin, length : ndarray of int (n,)
        Where every sequence begins, and its steps; lengths fall.
    start, transition : ndarray (n, states), (n, states, states)
        Nonnegative; they need not sum to one.
    table : ndarray (n, rows, states)
        Likelihoods.
    n_threads : int

    Returns
    -------
    log_likelihood (n,), starts (n, states), moves (n, states, states), counts (n, rows,
    states)
    """
    log_lik, starts, moves, counts = chain.expect_each(
        in_vectors(start),
        in_vectors(transition),
        in_vectors(transition.swapaxes(1, 2)),
        table,
        row,
        begin,
        length,
        n_threads,
    )
    n = len(begin)
    starts, moves = out_of_vectors(starts, n), out_of_vectors(moves, n)
    for i in np.flatnonzero(np.isnan(log_lik)):  # underflowed: alone, in logs
        with np.errstate(divide="ignore"):
            log_table = np.log(table[i])
        value, counts[i], starts[i], moves[i] = chain.expect(
            np.ascontiguousarray(start[i]),
            np.ascontiguousarray(transition[i]),
            log_table,
            row[begin[i] : begin[i] + length[i]],
            np.array([0, length[i]]),
            np.zeros(1, dtype=np.intp),
            np.ones(1),
            True,
            1,
        )
        log_lik[i] = value[0]
    return log_lik, starts, moves, counts


def fit_tables(
    sequences: Sequences,
    starts: list[list[tuple[Array, Array, Array]]],
    smoothing: float,
    tol: float,
    max_iter: int,
    n_threads: int,
) -> list[tuple[tuple[Array, ...], EMResult]]:
    """Best point and result of every sequence, from its starts."""
    found: list[list[tuple[tuple[Array, ...], EMResult]]] = [[] for _ in starts]
    order = np.argsort(-sequences.lengths, kind="stable")
    sizes = np.array([len(own[0][0]) for own in starts])
    for size in np.unique(sizes):
        own = [i for i in order if sizes[i] == size for _ in starts[i]]
        points = [point for i in order if sizes[i] == size for point in starts[i]]
        problem = ManyTables(sequences, np.array(own), smoothing, n_threads)
        best, results = maximize_many_by_em(
            problem.step,
            tuple(np.array(parts) for parts in zip(*points)),
            tol=tol,
            max_iter=max_iter,
        )
        for k, (i, result) in enumerate(zip(own, results)):
            found[i].append((tuple(part[k] for part in best), result))
    out = []
    for runs in found:
        objectives = [result.objective for _, result in runs]
        point, result = runs[int(np.argmax(objectives))]
        result.objectives = objectives
        out.append((point, result))
    return out
