"""Scores of data under each kind of model, by Fisher's identity.

    d log p(x) / d theta = E[d log p(x, h) / d theta | x]

Every block of parameters has coordinates in which its complete-data score is a count
less its expectation:

    probabilities theta_k = exp(a_k) / sum_j exp(a_j)     n_k - theta_k sum_j n_j
    natural parameters of a family                         T(x) - E T
    matrices of linear Gaussian steps                      cov^{-1} (residual products)

Sources: Jaakkola & Haussler (1999); Jebara, Kondor & Howard (2004), section 7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent._inputs.sequences import Sequences, symbol_sequences
from maxent._support import validation as v
from maxent.families import (
    ExponentialFamily,
)
from maxent.families._gaps import expected_statistics
from maxent.kernels.scores._expected_counts import chain_counts, factor_counts
from maxent.kernels.scores._score_blocks import (
    Array,
    Coordinates,
    Scorer,
    family_coordinates,
    logit_scores,
    probabilities,
)
from maxent.kernels.scores._system_scores import (
    FactorialScorer,
    NetworkScorer,
    SwitchingScorer,
    SystemScorer,
)
from maxent.models import (
    FactorialHMM,
    LinearDynamicalSystem,
    LinearGaussianNetwork,
    MarkovChain,
    Mixture,
    Mixtures,
    SwitchingLDS,
)
from maxent.models.chains.hidden_markov import HiddenMarkovModel
from maxent.models.chains.markov import first_symbols, words
from maxent.models.networks._elimination import MAX_TABLE
from maxent.models.networks.bayes_net import BayesNet
from maxent.models.networks.random_field import MarkovRandomField


class FamilyScorer(Scorer):
    """One distribution, or d independent ones for the columns."""

    def coordinates(self) -> list[Coordinates]:
        P = self.model
        if len(P.batch_shape) > 1 or (P.batch_shape and P.event_shape):
            raise ValueError(
                f"model has batch shape {P.batch_shape}; one distribution is expected "
                "(model[0], say), or (d,) distributions of the d columns."
            )
        return [family_coordinates("natural_parameters", P)]

    def blocks(self, data: Any) -> tuple[Array, list[Array]]:
        P = self.model
        if not P.batch_shape:
            T = P.sufficient_statistics(data)
            return P.log_prob(data), [T - P.mean_parameters]
        X = v.as_doubles("X", data)
        (d,) = P.batch_shape
        if X.ndim != 2 or X.shape[1] != d:
            raise ValueError(
                f"X has shape {X.shape}, expected (n_samples, {d}): one column for "
                "each distribution."
            )
        U = P.sufficient_statistics(X.T) - P.mean_parameters[:, None]
        return P.log_prob(X.T).sum(axis=0), [np.moveaxis(U, 0, 1)]


class MixtureScorer(Scorer):
    """Weights and components."""

    def coordinates(self) -> list[Coordinates]:
        M = self.model
        return [
            probabilities("weights", M.weights),
            family_coordinates("components", M.components),
        ]

    def blocks(self, data: Any) -> tuple[Array, list[Array]]:
        M = self.model
        log_lik = M.log_prob(data)
        refuse_impossible(log_lik)
        share = M.posterior(data)
        T = _statistics(M.components, v.as_doubles("X", data))
        ends = np.arange(len(share) + 1)
        return log_lik, [
            share - M.weights,
            emission_scores(M.components, T, share, ends),
        ]


class ChainScorer(Scorer):
    """Hidden Markov models: start, transition, and what the states show."""

    def coordinates(self) -> list[Coordinates]:
        M = self.model
        chain = [
            probabilities("start", M.start),
            probabilities("transition", M.transition),
        ]
        shown = M.emission
        if not isinstance(shown, Mixtures):
            return [*chain, family_coordinates("emission", shown)]
        return [
            *chain,
            probabilities("weights", shown.weights),
            family_coordinates("emission", shown.members),
        ]

    def blocks(self, data: Any) -> tuple[Array, list[Array]]:
        M = self.model
        found = M._read(data, None, partly=True)
        counts = chain_counts(M, found, self.n_jobs)
        refuse_impossible(counts.log_likelihood)
        start = counts.start - M.start
        transition = logit_scores(counts.transition, M.transition)
        if M._emissions.shared:
            emission = logit_scores(counts.emission.swapaxes(1, 2), M.emission.prob)
            return counts.log_likelihood, [start, transition, emission]
        blocks, members, share = [start, transition], M.emission, counts.emission
        X = M._emissions.filled(M.emission, found)  # lost steps have counts of zero
        if isinstance(members, Mixtures):
            within = members.posterior(X).transpose(2, 0, 1)
            own = within * share[:, :, None]
            total = np.add.reduceat(own, found.offsets[:-1], axis=0)
            blocks.append(logit_scores(total, members.weights))
            members, share = members.members, own.reshape(len(own), -1)
        T = _statistics(members, X)
        blocks.append(emission_scores(members, T, share, found.offsets))
        return counts.log_likelihood, blocks


class MarkovScorer(Scorer):
    """Markov chains: the law of the first symbols, and the transitions."""

    def coordinates(self) -> list[Coordinates]:
        M = self.model
        return [
            probabilities("start", M.start),
            probabilities("transition", M.transition),
        ]

    def blocks(self, data: Any) -> tuple[Array, list[Array]]:
        M = self.model
        found = symbol_sequences(
            data, alphabet=M.alphabet, n_symbols=M.n_symbols, missing=M.missing
        )
        n, O = len(found), M.n_symbols
        cells = M.transition.size
        v.check_memory(f"order={M.order}, the scores", n, 24.0 * n * cells)
        log_lik = M.log_likelihood(found)
        refuse_impossible(log_lik)
        moves = np.zeros(n * cells)
        for word, _, owner in words(found, M.order + 1, O):
            np.add.at(moves, owner * cells + word, 1.0)
        moves = moves.reshape(n, *M.transition.shape)
        starts = self._starts(found)
        lost = np.add.reduceat(found.values < 0, found.offsets[:-1]) > 0
        if lost.any() and M.order:
            self._expect(found, np.flatnonzero(lost), starts, moves)
        return log_lik, [starts - M.start, logit_scores(moves, M.transition)]

    def _starts(self, found: Sequences) -> Array:
        """Probabilities (n, contexts) of the first m symbols given what is shown."""
        M = self.model
        out = np.ones((len(found), len(M.start)))
        for k in range(1, M.order + 1):
            own = np.minimum(found.lengths, M.order) == k
            first = np.maximum(first_symbols(found, k, M.n_symbols)[own], 0)
            tails = M.start.reshape(M.n_symbols**k, -1)
            given = tails[first] / _positive(tails[first].sum(axis=1, keepdims=True))
            rows = np.zeros((len(first), *tails.shape))
            rows[np.arange(len(first)), first] = given
            out[own] = rows.reshape(-1, len(M.start))
        return out

    def _expect(
        self, found: Sequences, lost: NDArray[np.intp], starts: Array, moves: Array
    ) -> None:
        """Expected counts of sequences with missing symbols, by the chain's HMM."""
        M = self.model
        O, m = M.n_symbols, M.order
        hmm = M.as_hmm()
        ends = np.cumsum([0, *(O**k for k in range(1, m + 1))])
        full = np.arange(ends[m - 1], ends[m])  # states of m symbols
        following = ends[m - 1] + (np.arange(O**m)[:, None] * O + np.arange(O)) % O**m
        singles = found.singles()
        for i in lost:
            counts = chain_counts(hmm, singles[i], self.n_jobs)
            moves[i] = counts.transition[0][full[:, None], following]
            k = min(m, len(found[i]))
            share = hmm.posterior(singles[i])[0][k - 1, ends[k - 1] : ends[k]]
            tails = M.start.reshape(O**k, -1)
            given = tails / _positive(tails.sum(axis=1, keepdims=True))
            starts[i] = (share[:, None] * given).ravel()


class NetScorer(Scorer):
    """Bayes nets: the table of every node."""

    def coordinates(self) -> list[Coordinates]:
        return [probabilities(nodes[-1], table) for nodes, table in self.model.factors]

    def blocks(self, data: Any) -> tuple[Array, list[Array]]:
        log_lik, counts = factor_counts(self.model, data, MAX_TABLE)
        refuse_impossible(log_lik)
        tables = [table for _, table in self.model.factors]
        return log_lik, [logit_scores(c, t) for c, t in zip(counts, tables)]


class FieldScorer(Scorer):
    """Markov random fields: the entries of the logarithms of all factors."""

    def coordinates(self) -> list[Coordinates]:
        out = []
        for nodes, table in self.model.log_factors:
            kept = np.flatnonzero(np.isfinite(table))
            name = " - ".join(nodes)
            out.append(Coordinates(name, table.shape, kept, np.ones(len(kept))))
        return out

    def blocks(self, data: Any) -> tuple[Array, list[Array]]:
        M = self.model
        log_lik, counts = factor_counts(M, data, MAX_TABLE)
        refuse_impossible(log_lik)
        nothing = np.full((1, M.n_features), -1)
        log_z, expected = factor_counts(M, nothing, MAX_TABLE)
        return log_lik - log_z, [c - e for c, e in zip(counts, expected)]


def emission_scores(
    P: ExponentialFamily, T: Array, share: Array, offsets: NDArray[np.intp]
) -> Array:
    """sum_t share[t, h] (T(x_t) - E_h T), (n, states, k), over the steps of each datum.

    The statistics T are (n_steps, k), or (states, n_steps, k) where every state has its
    own, of steps that are missing in part.
    """
    mean = P.mean_parameters
    out = np.empty((len(offsets) - 1, *mean.shape))
    for h in range(len(mean)):
        terms = share[:, h, None] * ((T if T.ndim == 2 else T[h]) - mean[h])
        out[:, h] = np.add.reduceat(terms, offsets[:-1], axis=0)
    return out


def _statistics(P: Any, X: Array) -> Array:
    """Sufficient statistics (n, k) of rows, or (states, n, k) where some have NaN."""
    if P._fills_gaps and np.isnan(X).any():
        return expected_statistics(P, X)
    return np.asarray(P.sufficient_statistics(X), dtype=np.float64)


def refuse_impossible(log_lik: Array) -> None:
    """Refuse data of probability zero."""
    wrong = np.isneginf(log_lik)
    if wrong.any():
        raise ValueError(
            f"datum {int(np.argmax(wrong))} has probability 0 under the model, so it "
            "has no score; fit with smoothing > 0, or leave it out."
        )


def _positive(total: Array) -> Array:
    return np.where(total > 0, total, 1.0)


# A model takes the scorer of its class or of the nearest base class.
SCORERS: dict[type[Any], Callable[..., Scorer]] = {
    ExponentialFamily: FamilyScorer,
    Mixture: MixtureScorer,
    MarkovChain: MarkovScorer,
    HiddenMarkovModel: ChainScorer,
    BayesNet: NetScorer,
    MarkovRandomField: FieldScorer,
    LinearDynamicalSystem: SystemScorer,
    SwitchingLDS: SwitchingScorer,
    FactorialHMM: FactorialScorer,
    LinearGaussianNetwork: NetworkScorer,
}


def has_scores(cls: type[Any]) -> bool:
    """True if the models of a class have scores."""
    return any(base in SCORERS for base in cls.__mro__)


def scorer_of(model: Any, n_jobs: int | None) -> Scorer:
    """Return the scorer of a model, by its class.

    Raises
    ------
    TypeError
        For a model whose class has no scores here.
    """
    for cls in type(model).__mro__:
        if cls in SCORERS:
            return SCORERS[cls](model, n_jobs)
    if isinstance(model, type) and has_scores(model):
        raise TypeError(
            f"model={model.__name__} is a class, and one model is expected: fit it "
            f"first, by {model.__name__}.fit."
        )
    known = ", ".join(cls.__name__ for cls in SCORERS)
    raise TypeError(
        f"model={v.shown(model)} is of a class without scores; use one of {known}."
    )
