"""Starts of hidden Markov models of rows: mixtures and windows, then moves of states.

Groups that overlap are told apart by the order of the rows, which a mixture does not
see. States that last show their means, spreads and correlations in windows of rows,
which are clustered too. The best start is searched once more with the states' posterior
shares. The probability of a state where its row is not known comes from all other rows;
with it in the place of the mixture's weights, gains and losses are those of states that
move alike. Two halves of a state that move in different ways gain more than that, so
the nearest misses are tried too, and the objective of the chain decides.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from maxent._support.threads import with_single_threaded_blas
from maxent.families import ExponentialFamily
from maxent.models._chain_input import Array
from maxent.models._component_search import (
    ComponentSearch,
    Expectation,
    Start,
    different,
    k_means_labels,
    scaled,
    some_rows,
)
from maxent.models.chains._hidden_chain import Point
from maxent.models.chains._runs_together import runs_together

_SMOOTHING = 3.0  # of the emissions of a search
WINDOWS = 5, 20, 80  # rows
_FEW_COLUMNS = 5  # whose correlations describe a window
_ALL_CLUSTERED = 3  # starts; of more, half have random moves
_LEAST_VARIANCE = 1e-3  # of a window, relative to that of all rows


@with_single_threaded_blas
def clustered_starts(
    problem: Any, n_states: int, n_init: int, rng: np.random.Generator
) -> list[Point]:
    """Starts from mixtures of the rows and from windows; the best one after moves."""
    components = problem.components
    family, options = components.family, components.options
    used = components.weights > 0
    X, own = components.filled()[used], components.weights[used]
    if n_states > len(X):
        raise ValueError(
            f"n_states={n_states} is more than the {len(X)} observations; lower it."
        )
    check_observations(family, X, own, options)
    X, own = some_rows(X, own, n_states, rng, many=True)
    mixtures = ComponentSearch(X, own, family, n_states, _SMOOTHING, options)
    chains = ChainSearch(problem, n_states)
    n_random = n_init // 2 if n_init > _ALL_CLUSTERED and n_states > 1 else 0
    n_found = n_init - n_random
    shares = [chains.shares_in(*point) for point in mixtures.starts(n_found, rng)]
    for number in range(max(n_found, len(WINDOWS)) if n_states > 1 else 0):
        labels = chains.labels_of_windows(WINDOWS[number % len(WINDOWS)], rng)
        shares.append(chains.shares_of(labels))
    points = [chains.prior_and_point(own) for own in shares]
    points += [chains.random_point(rng) for _ in range(2 * n_random)]
    after = chains.after_steps_of_all(points)
    starts = different(after[: len(shares)])
    starts = [chains.after_all_moves(starts[0]), *starts[1:n_found]]
    starts += different(after[len(shares) :])[: n_init - len(starts)]
    return [problem.start_at(starts[0].point), *(one.point for one in starts[1:])]


class ChainSearch(ComponentSearch):
    """Search for a start of a chain; points are those of its problem."""

    def __init__(self, problem: Any, n_states: int) -> None:
        self.problem = copy(problem)
        self.problem.components = components = copy(problem.components)
        self.at = components.weights > 0
        X, own = components.filled()[self.at], components.weights[self.at]
        rest = n_states, _SMOOTHING, components.options
        super().__init__(X, own, components.family, *rest)
        self.rows = None  # whose steps do not see the chain

    def labels_of_windows(self, length: int, rng: np.random.Generator) -> NDArray[Any]:
        """Labels (n,) of a clustering of windows of so many rows of a sequence.

        Windows are described by their means, logarithms of variances, and, of few
        columns, correlations.
        """
        sequences = self.problem.seen.sequences
        owner = np.repeat(np.arange(len(sequences)), sequences.lengths)
        owner = owner[self.problem.shown][self.at]
        place = np.arange(len(owner)) - np.searchsorted(owner, owner)
        begins = place % length == 0
        begin, window = np.flatnonzero(begins), np.cumsum(begins) - 1
        mass = np.add.reduceat(self.weights, begin)
        share = self.weights / self.weights.sum()
        X = self.X.reshape(len(self.X), -1)
        R = scaled(X - share @ X, share)

        def mean(A):
            return np.add.reduceat(A * self.weights[:, None], begin) / mass[:, None]

        centre = mean(R)
        R = R - centre[window]
        var = mean(np.square(R)) + _LEAST_VARIANCE
        features = [centre, np.log(var)]
        if 1 < R.shape[1] <= _FEW_COLUMNS:
            i, j = np.triu_indices(R.shape[1], 1)
            features.append(mean(R[:, i] * R[:, j]) / np.sqrt(var[:, i] * var[:, j]))
        labels = k_means_labels(np.hstack(features), mass, self.k, rng, by_column=True)
        return labels[window]

    def shares_in(self, weights, components):
        """Posterior shares (k, n) of a mixture."""
        with np.errstate(divide="ignore"):
            log_weights = np.log(weights)[:, None]
        log_prob = components.log_prob(self.X)
        return Expectation(components, log_prob, log_weights).shares

    def expected(self, prior, point):
        components = point[2]
        self.problem.components.prior = prior
        counts = self.problem.expected(point)[0].emission[self.problem.shown]
        log_prob = components.log_prob(self.X)
        with np.errstate(divide="ignore"):
            log_shares = np.log(counts[self.at].T / self.weights)
        others = log_shares - log_prob
        return Expectation(components, log_prob, others - logsumexp(others, axis=0))

    def value(self, prior, point):
        self.problem.components.prior = prior
        return self.problem.step(point)[0]

    def step(self, prior, point):
        self.problem.components.prior = prior
        return self.problem.step(point)[1]

    def random_point(self, rng):
        """Prior, and a point of wide states and random moves between them.

        The states are half those of a clustering, half those of all rows.
        """
        labels = k_means_labels(self.X, self.weights, self.k, rng)
        shares = 0.5 * self.shares_of(labels) + 0.5 / self.k
        prior, (_, _, components) = self.prior_and_point(shares)
        drawn = rng.dirichlet(np.full(self.k, 1.0 / self.k), size=self.k + 1)
        start, *moves = 0.9 * drawn + 0.1 / self.k
        return prior, (start, np.array(moves), components)

    def after_steps_of_all(self, starts):
        """Starts after a few steps from priors and points, taken side by side."""
        priors, points = zip(*starts)
        runs = runs_together(self.problem, points, priors)
        if runs is None:
            return [self.after_steps_from(*start) for start in starts]
        for _ in range(self.n_steps):
            _, runs = runs.step()
        values, _ = runs.step()
        each = zip(values.tolist(), priors, map(runs.point, range(len(runs))))
        return [Start(*own) for own in each]

    def maximum(self, prior, shares):
        _, components = super().maximum(prior, shares)
        rows = np.zeros((self.k, len(self.at)))
        rows[:, self.at] = shares
        start, moves = self.problem.moves_of(rows)
        return start, moves, components


def check_observations(
    family: type[ExponentialFamily], X: Array, weights: Array, options: dict[str, Any]
) -> None:
    """Refuse observations that have no fit; what that means here, and the remedy."""
    try:
        family.fit(X, weights, **options)
    except ValueError as error:
        if "singular" not in str(error):
            raise
        d = X.shape[1]
        raise ValueError(
            f"the covariance of a state, or of all observations ({len(X)} rows of {d} "
            f"columns), is singular: full ones need at least {d + 1} rows that are not "
            "in one plane. Give more observations, drop columns that follow from the "
            "others, or use covariance_type='diagonal'. smoothing > 0 helps where the "
            "observations together are not in one plane."
        ) from error
