"""Hidden Markov models fitted to steps in blocks: the E step visits every block."""

from __future__ import annotations

import numpy as np

from maxent._partitions.sequence_partitions import sequence_partitions
from maxent._support import validation as v
from maxent.models._chain_input import log_of_pseudo_counts, with_pseudo_counts
from maxent.models.chains._hidden_chain import Point, fitted_chain

_SAMPLE = 1 << 14  # steps of the sequences of the start, about


class PartitionedChains:
    """One EM step over partitions of sequences, for `maximize_by_em`.

    Parameters
    ----------
    emissions : Emissions
        Sent to the workers with every pass.
    sequences, lengths, weights
        A Dask array or RowBlocks of steps, and arrays of one entry per sequence.
    smoothing : float
    init : model or None
        The start; None for a fit to the sample.
    asked : RandomStarts
        Of that fit.
    """

    def __init__(self, emissions, sequences, lengths, weights, smoothing, init, asked):
        if init is None:
            v.check_count("n_init", asked.n_init)
            if asked.n_states is not None:
                v.check_count("n_states", asked.n_states)
        else:
            emissions.check_start(init, sequences)
        self.emissions, self.smoothing = emissions, smoothing
        self.parts = sequence_partitions(sequences, lengths, weights)
        self.parts.keep_shapes()
        found = self.parts.map(_read, emissions)
        for i, (wrong, _) in enumerate(found):
            if wrong is not None:
                raise ValueError(f"partition {i}: {wrong}")
        shown = [facts for _, facts in found]
        emissions.learn(max(code for _, code in shown))
        if not sum(weight for weight, _ in shown) > 0:
            raise ValueError(
                "every observation is missing or has weight 0: there is nothing to fit."
            )

    def sample(self):
        """Whole sequences of every partition, and weights that stand for all."""
        share = min(1.0, _SAMPLE / sum(self.parts.lengths))
        values, lengths, weights = zip(*self.parts.map(_drawn, share), strict=True)
        found = self.emissions.read_block(
            np.concatenate(values), np.concatenate(lengths)
        )
        return found, np.concatenate(weights)

    def fit(self, start, tol, max_iter, callback):
        """Point and result of EM; `start` makes the start of the sample."""
        found, weights = self.sample()
        self.whole = self.emissions.problem(found, weights, self.smoothing, 1)
        start = self.whole.start_at(start(found, weights))
        return fitted_chain(self, [start], tol, max_iter, callback)

    def step(self, point: Point) -> tuple[float, Point]:
        """Objective at a point, and the point after one EM step."""
        start, transition, emission = point
        c = self.smoothing
        objective, starts, transitions, *sums = self.parts.total(
            _e_step, self.emissions, point
        )
        prior, new = self.emissions.maximum(self.whole, sums, emission)
        objective += prior + log_of_pseudo_counts(c, start, transition)
        following = (
            with_pseudo_counts(starts, c, start),
            with_pseudo_counts(transitions, c, transition),
            new,
        )
        return objective, following


# -- functions of one partition (steps, lengths, weights) ------------------------------
def _read(values, lengths, weights, emissions):
    """(what is wrong or None, facts)."""
    try:
        found = emissions.read_block(values, lengths)
    except (TypeError, ValueError) as error:
        return str(error), (0.0, 0.0)
    return None, emissions.facts(found, weights)


def _drawn(values, lengths, weights, share):
    """A share of the sequences, at least one, with weights that stand for all."""
    n = len(lengths)
    count = min(n, int(np.ceil(share * n)))
    pick = np.sort(np.random.default_rng(n).permutation(n)[:count])
    ends = np.cumsum(lengths)
    steps = [values[ends[i] - lengths[i] : ends[i]] for i in pick]
    return np.concatenate(steps), lengths[pick], weights[pick] * (n / count)


def _e_step(values, lengths, weights, emissions, point):
    """(log-likelihood, counts of starts and transitions, sums of the emission)."""
    problem = emissions.part(emissions.read_block(values, lengths), weights)
    counts, log_likelihood, _ = problem.expected(point)
    sums = problem.sums(counts.emission, point[2])
    return log_likelihood, counts.start, counts.transition, *sums
