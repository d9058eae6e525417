"""Many hidden Markov models at once, each with a sequence of its own.

Eight models share a vector of the compiled passes, so that short sequences cost no more
than their arithmetic.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from maxent._core.chains import chain, chain_em
from maxent._inputs.sequences import Sequences
from maxent._support.results import Status
from maxent.models._chain_input import (
    Array,
    log_of_pseudo_counts,
    with_pseudo_counts,
)
from maxent.models.em import ROUNDING, EMResult, maximize_by_em, not_finite

LANES = chain.lanes()  # models in one vector of the compiled loops
LONGEST = 1 << 20  # steps times states of a sequence that shares a vector
FEW = 2  # sequences that are faster alone


def in_vectors(array: Array) -> Array:
    """(n, ...) to (vectors, ..., lanes); the last member fills the last vector up."""
    n, vectors = len(array), -(-len(array) // LANES)
    if n and array.strides[0] == 0:  # one member, broadcast
        full = np.broadcast_to(array[0][..., None], (vectors, *array.shape[1:], LANES))
    else:
        index = np.minimum(np.arange(vectors * LANES), n - 1)
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


def expected_counts(
    row: NDArray[np.intp],
    begin: NDArray[np.intp],
    length: NDArray[np.intp],
    start: Array,
    transition: Array,
    table: Array,
    n_threads: int,
    by_step: bool = False,
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
    table : ndarray (n, rows, states), or (1, rows, states) of all
        Likelihoods.
    n_threads : int
    by_step : bool, default=False
        Whether each step has its own row, so that sequences share the counts too.

    Returns
    -------
    log_likelihood (n,), starts (n, states), moves (n, states, states), counts (n, rows,
    states) or (1, rows, states)
        log_likelihood is NaN where a sequence underflows, and the rest has nothing of
        it.
    """
    log_lik, starts, moves, counts = chain.expect_each(
        in_vectors(start),
        in_vectors(transition),
        in_vectors(transition.swapaxes(1, 2)),
        table,
        row,
        begin,
        length,
        by_step,
        n_threads,
    )
    n = len(begin)
    return log_lik, out_of_vectors(starts, n), out_of_vectors(moves, n), counts


def counts_of_chain(
    row: NDArray[np.intp],
    begin: NDArray[np.intp],
    length: NDArray[np.intp],
    log_start: Array,
    log_transition: Array,
    log_table: Array,
    n_threads: int,
) -> tuple[Array, Array, Array, Array]:
    """As `expected_counts` of one chain, given by logs; what underflows stays in logs.

    Long sequences, and few, take no vector: its other lanes would be idle.
    `log_table` (n, rows, states) has a table for every sequence, the largest entry of a
    row about zero.
    """
    n, S = len(begin), len(log_start)
    start, transition = np.exp(log_start), np.exp(log_transition)
    log_lik, starts = np.full(n, np.nan), np.empty((n, S))
    moves, counts = np.empty((n, S, S)), np.empty(log_table.shape)
    short = slice(int(np.count_nonzero(length * S > LONGEST)), n)
    faint = chain.underflows(start, log_start) or chain.underflows(
        transition, log_transition
    )
    if n - short.start > FEW and not faint:
        table = log_table[short]
        log_lik[short], starts[short], moves[short], counts[short] = expected_counts(
            row,
            begin[short],
            length[short],
            np.broadcast_to(start, (n - short.start, S)),
            np.broadcast_to(transition, (n - short.start, S, S)),
            chain.likelihoods(table.reshape(-1, S)).reshape(table.shape),
            n_threads,
        )
    for i in np.flatnonzero(np.isnan(log_lik)):
        log_lik[i], counts[i], starts[i], moves[i] = expect_one(
            (start, transition, log_start, log_transition, log_table[i]),
            row[begin[i] : begin[i] + length[i]],
        )
    return log_lik, starts, moves, counts


def fit_tables(
    sequences: Sequences,
    starts: list[list[tuple[Array, Array, Array]]],
    smoothing: float,
    tol: float,
    max_iter: int,
    n_threads: int,
) -> list[tuple[tuple[Array, ...], EMResult]]:
    """Best point and result of every sequence, from its starts.

    EM follows the rule of `maximize_by_em`; a run whose pass underflows is done by it,
    in logs.
    """
    found: list[list[tuple[tuple[Array, ...], EMResult]]] = [[] for _ in starts]
    order = np.argsort(-sequences.lengths, kind="stable")
    sizes = np.array([len(own[0][0]) for own in starts])
    for size in np.unique(sizes):
        own = [i for i in order if sizes[i] == size for _ in starts[i]]
        points = [point for i in order if sizes[i] == size for point in starts[i]]
        runs = _fit_points(
            sequences, np.array(own), points, smoothing, tol, max_iter, n_threads
        )
        for i, run in zip(own, runs):
            found[i].append(run)
    out = []
    for runs in found:
        objectives = [result.objective for _, result in runs]
        point, result = runs[objectives.index(max(objectives))]
        result.objectives = objectives
        out.append((point, result))
    return out


def _fit_points(sequences, own, points, smoothing, tol, max_iter, n_threads):
    """Point and result of every run; run k fits a model to the sequence `own[k]`."""
    row = np.ascontiguousarray(sequences.values, dtype=np.intp)
    begin, length = sequences.offsets[own], sequences.lengths[own]
    start, transition, table = (np.array(parts) for parts in zip(*points))
    table = np.ascontiguousarray(table.swapaxes(1, 2))  # by symbol
    status, n_iter, trace, residual = chain_em.fit_each(
        *(start, transition, table, row, begin, length),
        *(smoothing, tol, ROUNDING, max_iter, n_threads),
    )
    table = np.ascontiguousarray(table.swapaxes(1, 2))
    for k in np.flatnonzero(status == chain_em.NOT_FINITE):
        raise FloatingPointError(not_finite(trace[k, n_iter[k]], n_iter[k]))
    runs = []
    for k, (code, end) in enumerate(zip(status.tolist(), n_iter.tolist())):
        if code == chain_em.UNDERFLOW:
            codes = row[begin[k] : begin[k] + length[k]]
            step = partial(_step_in_logs, codes, smoothing)
            runs.append(maximize_by_em(step, [points[k]], tol=tol, max_iter=max_iter))
            continue
        seen = trace[k, : end + 1].tolist()
        top, change = max(seen), float(residual[k])
        result = EMResult(top, end, _STATUS[code], seen, change, [top])
        runs.append(((start[k], transition[k], table[k]), result))
    return runs


_STATUS = {
    chain_em.CONVERGED: Status.CONVERGED,
    chain_em.STALLED: Status.STALLED,
    chain_em.MAX_ITER: Status.MAX_ITER,
}


def _step_in_logs(codes, smoothing, point):
    """Objective of a model of one sequence, and the point after one EM step."""
    start, transition, table = point
    with np.errstate(divide="ignore"):
        logs = np.log(start), np.log(transition), np.log(np.ascontiguousarray(table.T))
    value, counts, starts, moves = expect_one((start, transition, *logs), codes)
    return float(value) + log_of_pseudo_counts(smoothing, *point), (
        with_pseudo_counts(starts, smoothing, start),
        with_pseudo_counts(moves, smoothing, transition),
        with_pseudo_counts(counts.T, smoothing, table),
    )


def expect_one(tables, row):
    """Log-likelihood and expected counts of a sequence, in logs where it underflows."""
    value, counts, starts, moves = chain.expect(
        *tables,
        row,
        np.array([0, len(row)]),
        np.zeros(1, dtype=np.intp),
        np.ones(1),
        True,
        1,
    )
    return value[0], counts, starts, moves
