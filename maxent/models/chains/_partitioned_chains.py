"""Hidden Markov models fitted to steps in blocks: the E step visits every block."""

from __future__ import annotations

import numpy as np

from maxent._partitions.partition_checks import drawn_places, results_of
from maxent._partitions.sequence_partitions import sequence_partitions
from maxent._support import validation as v
from maxent.models.chains._hidden_chain import ChainEM, fitted_chain

_SAMPLE = 1 << 14  # steps of the sequences of the start, about


class PartitionedChains(ChainEM):
    """One EM step over partitions of sequences, for `maximize_by_em`.

    Parameters
    ----------
    emissions : Emissions
        Sent to the workers with every pass.
    sequences, lengths, weights
        A Dask array or RowBlocks of steps, and arrays of one entry per sequence.
    rules : Rules
    init : model or None
        The start; None for a fit to the sample.
    asked : RandomStarts
        Of that fit.
    """

    def __init__(self, emissions, sequences, lengths, weights, rules, init, asked):
        if init is None:
            v.check_count("n_init", asked.n_init)
            if asked.n_states is not None:
                v.check_count("n_states", asked.n_states)
        else:
            emissions.check_start(init, sequences)
        self.emissions, self.rules = emissions, rules
        self.parts = sequence_partitions(sequences, lengths, weights)
        self.parts.keep_shapes()
        observed, largest = zip(*results_of(self.parts, _facts, emissions), strict=True)
        emissions.learn(max(largest))
        if not sum(observed) > 0:
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
        self.whole = self.emissions.problem(found, weights, self.rules, 1)
        start = self.whole.start_at(start(found, weights))
        return fitted_chain(self, [start], tol, max_iter, callback)

    def expected_and_fitted(self, point):
        log_likelihood, starts, transitions, *sums = self.parts.total(
            _e_step, self.emissions, point
        )
        log_prior, emission = self.emissions.maximum(self.whole, sums, point[2])
        return log_likelihood + log_prior, starts, transitions, emission


# -- functions of one partition (steps, lengths, weights) ------------------------------
def _facts(values, lengths, weights, emissions):
    return emissions.facts(emissions.read_block(values, lengths), weights)


def _drawn(values, lengths, weights, share):
    """A share of the sequences, at least one, with weights that stand for all."""
    n = len(lengths)
    pick = drawn_places(n, share, n)
    ends = np.cumsum(lengths)
    steps = [values[ends[i] - lengths[i] : ends[i]] for i in pick]
    return np.concatenate(steps), lengths[pick], weights[pick] * (n / len(pick))


def _e_step(values, lengths, weights, emissions, point):
    """(log-likelihood, counts of starts and transitions, sums of the emission)."""
    problem = emissions.part(emissions.read_block(values, lengths), weights)
    counts, log_likelihood, _ = problem.expected(point)
    sums = problem.sums(counts.emission, point[2])
    return log_likelihood, counts.start, counts.transition, *sums
