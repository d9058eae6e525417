"""Hidden Markov models fitted to steps in blocks: the E step visits every block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from maxent._inputs.sequences import Sequences, symbol_sequences, vector_sequences
from maxent._partitions.sequence_partitions import sequence_partitions
from maxent._support import validation as v
from maxent.models._chain_input import log_of_pseudo_counts, with_pseudo_counts
from maxent.models._partial import is_partial
from maxent.models.chains._hidden_chain import HiddenChainProblem
from maxent.models.em import maximize_by_em

_SAMPLE = 1 << 14  # steps of the sequences of the start, about


class Emission(ABC):
    """What the E step of a kind of hidden Markov model does with a partition.

    Sent to the workers with every pass: it holds settings, no rows.
    """

    @abstractmethod
    def check_start(self, init: Any, sequences: Any) -> None:
        """Refuse a start for steps of another width, before a pass over them."""

    @abstractmethod
    def read(self, values: Any, lengths: Any) -> Sequences:
        """Checked sequences of a partition."""

    @abstractmethod
    def facts(self, found: Sequences, weights: Any) -> tuple[float, float]:
        """(weight of the steps that were observed, largest code)."""

    @abstractmethod
    def set_prior(self, point: Any, found: Sequences, weights: Any) -> None:
        """Choose the prior by a start and a sample of the sequences."""

    @abstractmethod
    def problem(self, found: Sequences, weights: Any) -> HiddenChainProblem:
        """EM of this partition, without the prior."""

    @abstractmethod
    def sums(self, problem: HiddenChainProblem, counts: Any, emission: Any) -> Any:
        """Sufficient statistics of the M step, arrays that add up over partitions."""

    @abstractmethod
    def maximum(self, sums: Any, emission: Any) -> tuple[float, tuple[Any, ...]]:
        """Log-density of the prior, and the new emission."""


class PartitionedChains:
    """One EM step over partitions of sequences, for `maximize_by_em`.

    Parameters
    ----------
    emission : Emission
    sequences, lengths, weights
        A Dask array or RowBlocks of steps, and arrays of one entry per sequence.
    smoothing : float
    init : model or None
        The start; None for a fit to the sample, with these options.
    options : dict
        "n_states", None or the number, and further arguments of the fit.
    """

    def __init__(self, emission, sequences, lengths, weights, smoothing, init, options):
        if init is None:
            v.check_count("n_init", options["n_init"])
            if options["n_states"] is not None:
                v.check_count("n_states", options["n_states"])
        else:
            emission.check_start(init, sequences)
        self.emission, self.smoothing = emission, smoothing
        self.init, self.options = init, options
        self.parts = sequence_partitions(sequences, lengths, weights)
        self.parts.keep_shapes()
        found = self.parts.map(_read, emission)
        for i, (wrong, _) in enumerate(found):
            if wrong is not None:
                raise ValueError(f"partition {i}: {wrong}")
        shown = [facts for _, facts in found]
        self.total = sum(weight for weight, _ in shown)
        self.largest = max(code for _, code in shown)
        if not self.total > 0:
            raise ValueError(
                "every observation is missing or has weight 0: there is nothing to fit."
            )

    def sample(self):
        """Whole sequences of every partition, their lengths, weights for all."""
        share = min(1.0, _SAMPLE / sum(self.parts.lengths))
        values, lengths, weights = zip(*self.parts.map(_drawn, share), strict=True)
        return np.concatenate(values), np.concatenate(lengths), np.concatenate(weights)

    def fit(self, cls, fixed, tol, max_iter, callback, **more):
        """Model of a class from `init`, or from its own fit to the sample."""
        init = self.init
        values, lengths, weights = self.sample()
        if init is None:
            init = cls._fit(
                values,
                lengths=lengths,
                weights=weights,
                smoothing=self.smoothing,
                tol=tol,
                max_iter=max_iter,
                callback=callback,
                **self.options,
                **more,
            )
        start = init.start, init.transition, *init._emission_arrays()
        self.emission.set_prior(start, self.emission.read(values, lengths), weights)
        best, result = maximize_by_em(
            self.step, [start], tol=tol, max_iter=max_iter, callback=callback
        )
        return cls(*best, **fixed)._with_result(result)

    def step(self, point):
        """Objective at a point, and the point after one EM step."""
        start, transition, *emission = point
        c = self.smoothing
        objective, starts, transitions, *sums = self.parts.total(
            _e_step, self.emission, point
        )
        prior, emission = self.emission.maximum(sums, emission)
        objective += prior + log_of_pseudo_counts(c, start, transition)
        following = (
            with_pseudo_counts(starts, c, start),
            with_pseudo_counts(transitions, c, transition),
            *emission,
        )
        return objective, following


# -- functions of one partition (steps, lengths, weights) ------------------------------
def _read(values, lengths, weights, emission):
    """(what is wrong or None, facts)."""
    try:
        found = emission.read(values, lengths)
    except (TypeError, ValueError) as error:
        return str(error), (0.0, 0.0)
    return None, emission.facts(found, weights)


def _drawn(values, lengths, weights, share):
    """A share of the sequences, at least one, with weights that stand for all."""
    n = len(lengths)
    count = min(n, int(np.ceil(share * n)))
    pick = np.sort(np.random.default_rng(n).permutation(n)[:count])
    ends = np.cumsum(lengths)
    steps = [values[ends[i] - lengths[i] : ends[i]] for i in pick]
    return np.concatenate(steps), lengths[pick], weights[pick] * (n / count)


def _e_step(values, lengths, weights, emission, point):
    """(log-likelihood, counts of starts and transitions, sums of the emission)."""
    problem = emission.problem(emission.read(values, lengths), weights)
    counts, log_likelihood, _ = problem.expected(point)
    sums = emission.sums(problem, counts.emission, point[2:])
    return log_likelihood, counts.start, counts.transition, *sums


# -- the two kinds ---------------------------------------------------------------------
class Symbols(Emission):
    """Tables (n_states, n_symbols); their Dirichlet prior belongs to the M step."""

    def __init__(self, problem, observations, n_symbols, smoothing):
        self._problem, self._observations = problem, observations
        self.n_symbols, self.smoothing = n_symbols, smoothing

    def check_start(self, init, sequences):
        """Symbols have one width; those beyond the start's are found by the rows."""

    def read(self, values, lengths):
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

    def set_prior(self, point, found, weights):
        """Pseudo-counts depend on no data."""

    def problem(self, found, weights):
        return self._problem(self._observations(found), weights, 0.0, 1)

    def sums(self, problem, counts, emission):
        return (counts,)

    def maximum(self, sums, emission):
        (table,) = emission
        new = with_pseudo_counts(sums[0].T, self.smoothing, table)
        return log_of_pseudo_counts(self.smoothing, table), (new,)


class Vectors(Emission):
    """Gaussians; their prior belongs to the M step."""

    def __init__(self, problem, observations, kind, smoothing):
        self._problem, self._observations = problem, observations
        self.kind, self.smoothing = kind, smoothing
        self.prior = None

    def check_start(self, init, sequences):
        columns = sequences.shape[1] if sequences.ndim == 2 else 1
        if columns != init.n_features:
            raise ValueError(
                f"init has {init.n_features} features, and sequences has shape "
                f"{sequences.shape}; give a start for the columns of the sequences."
            )

    def read(self, values, lengths):
        found = vector_sequences(values, lengths, partly=True)
        part = is_partial(found.values)
        if part.any():
            i, t = found.place(int(np.argmax(part)))
            raise ValueError(
                f"sequences[{i}][{t}] is NaN in part; fits to Dask arrays take rows "
                "that are NaN as a whole: fill in the missing part or drop the row."
            )
        return found

    def facts(self, found, weights):
        v.check_range("sequences", np.nan_to_num(found.values, nan=0.0))
        own = np.repeat(weights, found.lengths) * ~np.isnan(found.values[:, 0])
        return float(own.sum()), 0.0

    def set_prior(self, point, found, weights):
        seen = self._observations(found)
        whole = self._problem(seen, weights, self.smoothing, self.kind, 1)
        whole.start_at(point)
        self.prior = whole.prior

    def problem(self, found, weights):
        seen = self._observations(found)
        return self._problem(seen, weights, 0.0, self.kind, 1, part=True)

    def sums(self, problem, counts, emission):
        return problem.emission_sums(counts, emission)

    def maximum(self, sums, emission):
        mean, cov = map(np.array, emission)
        batch = self._problem.batch_of(mean, cov)
        used = self.prior.decides(sums[0])
        fitted = self.prior.of_members(used).refitted(
            batch[used], *(s[used] for s in sums)
        )
        mean[used], cov[used] = self._problem.arrays_of(fitted)
        return float(self.prior.log_density(batch).sum()), (mean, cov)
