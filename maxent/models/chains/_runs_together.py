"""EM runs of hidden Markov models of the same rows, one step of all at a time.

Eight runs share a vector of the compiled passes, and the states of all runs are one
batch of the family, so that a step of ten runs costs little more than that of two.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from maxent._core.chains import chain
from maxent._support.threads import effective_threads
from maxent.models._chain_input import Array
from maxent.models.chains._hidden_chain import Point, logs_of
from maxent.models.chains._many_chains import expect_one, expected_counts

_MOST = 1 << 16  # steps times states of a run that is not better alone


class RunsTogether:
    """Points of several runs, as `maximize_by_em` asks for them.

    Parameters
    ----------
    problem : RowProblem
    points : list of tuple
    priors : list, optional
        Of the emissions of every run; None is the problem's own.
    """

    def __init__(
        self, problem: Any, points: list[Point], priors: list[Any] | None = None
    ) -> None:
        start, move, emission = zip(*points)
        self._set(
            problem,
            [problem.components.prior] * len(points) if priors is None else priors,
            (
                np.stack(start),
                np.stack(move),
                type(emission[0])._concatenated(emission),
            ),
        )

    def _set(self, problem, priors, points):
        self.problem, self.priors, self.points = problem, priors, points
        self.components = copy(problem.components)
        self.components.prior = type(priors[0]).of_all(priors)
        # every run has its own rows of the table, the sequences follow by length
        seen, n = problem.seen, len(priors)
        offsets, lengths = seen.sequences.offsets, seen.sequences.lengths
        first = len(seen.row) * np.arange(n)
        step = np.where(seen.row >= 0, np.arange(len(seen.row)), -1)
        self.row = np.where(step >= 0, step + first[:, None], -1).ravel()
        self.begin = (offsets[seen.order][:, None] + first).ravel()
        self.length = np.repeat(lengths[seen.order], n)
        self.weights = problem.weights[seen.order]
        self.step_of_row = np.flatnonzero(problem.shown)
        # memory that every step needs
        k, rows = points[0].shape[1], len(self.step_of_row)
        size = n, len(seen.row)
        self.room = np.empty((*size, k)), np.empty(size), np.empty((n, k, rows))

    def __len__(self) -> int:
        return len(self.priors)

    def point(self, place: int) -> Point:
        """Point of one run."""
        start, move, emission = self.points
        own = slice(place * start.shape[1], (place + 1) * start.shape[1])
        return start[place].copy(), move[place].copy(), emission[own]

    def some(self, places: list[int]) -> RunsTogether:
        """Some of the runs."""
        start, move, emission = self.points
        states = np.arange(len(emission)).reshape(start.shape)[places].ravel()
        new = copy(self)
        points = start[places], move[places], emission[states]
        new._set(self.problem, [self.priors[i] for i in places], points)
        return new

    def step(self) -> tuple[Array, RunsTogether]:
        """Objectives, and the points after one EM step."""
        start, move, emission = self.points
        rules, components = self.problem.rules, self.components
        log_prob = np.ascontiguousarray(components.log_prob(emission))
        value, starts, moves, counts = self._expected(start, move, log_prob)
        log_prior = components.prior.log_density(emission, log_prob)
        value += log_prior.reshape(start.shape).sum(axis=1)
        value += rules.log_priors(start=start, transition=move)
        new = copy(self)
        new.points = (
            rules.maximum("start", starts, start),
            rules.maximum("transition", moves, move),
            components.fit(counts, emission),
        )
        return value, new

    def _expected(self, start, move, log_prob):
        """Log-likelihoods (runs,); starts, moves, and weights (members, rows)."""
        (n, k), problem, (table, top, mass) = start.shape, self.problem, self.room
        m, steps = len(self.weights), top.shape[1]
        chain.likelihoods_of_runs(log_prob, self.step_of_row, table, top)
        log_lik, starts, moves, counts = expected_counts(
            *(self.row, self.begin, self.length),
            *(np.tile(start, (m, 1)), np.tile(move, (m, 1, 1))),
            table.reshape(1, -1, k),
            effective_threads(problem.n_jobs),
            by_step=True,
        )
        counts = counts.reshape(-1, k)
        lost = np.flatnonzero(np.isnan(log_lik))  # by underflow: once more in logs
        log_table = self._log_table(log_prob) if len(lost) else None
        for i in lost:
            at = slice(self.begin[i], self.begin[i] + self.length[i])
            row = np.where(self.row[at] >= 0, np.arange(self.length[i]), -1)
            one = start[i % n], move[i % n]
            tables = *one, *logs_of(*one), log_table[at]
            log_lik[i], counts[at], starts[i], moves[i] = expect_one(tables, row)
        log_lik = log_lik.reshape(m, n)
        ends = problem.seen.sequences.offsets[:-1]
        log_lik += np.add.reduceat(top, ends, axis=1)[:, problem.seen.order].T
        used = self.weights > 0
        value = self.weights[used] @ log_lik[used]
        starts = np.tensordot(self.weights, starts.reshape(m, n, k), 1)
        moves = np.tensordot(self.weights, moves.reshape(m, n, k, k), 1)
        counts = counts.reshape(n, steps, k)
        shown = counts if problem.shown.all() else counts[:, problem.shown]
        np.multiply(shown.swapaxes(1, 2), problem.components.weights, out=mass)
        return value, starts, moves, mass.reshape(n * k, -1)

    def _log_table(self, log_prob):
        """Relative log-likelihoods (runs * steps, states) of the steps."""
        _, top, _ = self.room
        table = np.zeros((*top.shape, len(log_prob) // len(top)))
        own = log_prob.reshape(len(top), -1, log_prob.shape[1]).swapaxes(1, 2)
        table[:, self.step_of_row] = own - top[:, self.step_of_row, None]
        return table.reshape(-1, table.shape[2])


def runs_together(
    problem: Any, points: list[Point], priors: list[Any] | None = None
) -> RunsTogether | None:
    """Runs from several points; None where they are no faster side by side."""
    size = len(problem.seen.row) * len(points[0][0])
    layout = problem.components.options.get("layout", ())
    families = [problem.components.family, *(family for _, family, _ in layout)]
    apart = all(family._fits_apart for family in families)
    if len(points) < 2 or size > _MOST or not apart or problem.known is not None:
        return None
    return RunsTogether(problem, points, priors)
