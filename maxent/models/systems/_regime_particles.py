"""Particle filters over the regimes of switching systems.

A particle is a path of regimes with the Kalman filter given it. Each step extends all
particles by every regime; if that makes more than are kept, systematic resampling draws
those to keep by their weights. The sum of the weights is then an unbiased estimate of
the density of the sequence, and exact while nothing was drawn.

Sources: Doucet, de Freitas, Murphy & Russell (2000), Rao-Blackwellised particle
filtering for dynamic Bayesian networks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent.models._chain_input import drawn_offsets
from maxent.models._forecast import Forecast, check_level, mixture_interval
from maxent.models.systems._regime_paths import RegimePaths
from maxent.models.systems._state_answers import filled
from maxent.models.systems._state_posterior import draw, smoothed

Array = NDArray[np.float64]
_LOG_2PI = math.log(2.0 * math.pi)
_MOST_PATHS = 100  # over which missing entries are averaged
_IMPUTE_RUNS = 5  # of the filter, whose paths differ in early steps


@dataclass(frozen=True, repr=False)
class FilteredRegimes:
    """Distribution of states and regimes given the observations up to each step.

    Parameters
    ----------
    mean : ndarray (n_steps, n_states)
        Over all particles, as the others are.
    cov : ndarray (n_steps, n_states, n_states)
    regimes : ndarray (n_steps - 1, n_regimes)
        Probabilities of the regimes of the steps into s_1, s_2, ...
    log_likelihood : float
        Logarithm of an unbiased estimate of the density of the sequence.
    """

    mean: Array
    cov: Array
    regimes: Array
    log_likelihood: float

    def __repr__(self) -> str:
        n_steps, n_states = self.mean.shape
        return (
            f"FilteredRegimes({n_steps} steps, {n_states} states, "
            f"{self.regimes.shape[1]} regimes, "
            f"log_likelihood={self.log_likelihood:.6g})"
        )


@dataclass(frozen=True)
class LikelihoodEstimate:
    """Log-likelihoods by independent particle filters.

    Parameters
    ----------
    value : ndarray (n_sequences,)
        Logarithm of the mean of unbiased estimates of the density. The logarithm is too
        small by about half of the squared standard error.
    standard_error : ndarray (n_sequences,)
        Of `value`, from the spread of the runs; zero where the filters are exact.
    """

    value: Array
    standard_error: Array


@dataclass(frozen=True)
class Particles:
    """Weighted paths of regimes, with the moments of the last state given each."""

    log_weight: Array  # (N,); the sum of the weights estimates the density
    mean: Array  # (N, n)
    cov: Array  # (N, n, n)
    path: NDArray[np.intp]  # (N, steps - 1)

    @property
    def weight(self) -> Array:
        """Weights whose sum is one."""
        return np.asarray(np.exp(self.log_weight - logsumexp(self.log_weight)))

    def moments(self) -> tuple[Array, Array]:
        """Mean and covariance of the state."""
        return mixture_moments(self.weight, self.mean, self.cov)

    def shares(self, n_regimes: int) -> Array:
        """Probabilities of the last regime."""
        last = self.path[:, -1]
        counts: Array = np.bincount(last, self.weight, n_regimes).astype(np.float64)
        return counts

    def extended(self, model: Any) -> Particles:
        """All particles with every regime of the next step."""
        N, K = len(self.mean), model.n_regimes
        row = np.tile(model.start, (N, 1))
        if self.path.shape[1]:
            row = model.switching[self.path[:, -1]]
        with np.errstate(divide="ignore"):
            log_weight = (self.log_weight[:, None] + np.log(row)).ravel()
        A = model.transition
        mean = np.einsum("kij,pj->pki", A, self.mean) + model.transition_offset
        cov = A @ self.cov[:, None] @ A.swapaxes(1, 2) + model.transition_cov
        n = mean.shape[2]
        regimes = np.tile(np.arange(K), N)[:, None]
        path = np.concatenate([np.repeat(self.path, K, axis=0), regimes], axis=1)
        new = Particles(log_weight, mean.reshape(-1, n), cov.reshape(-1, n, n), path)
        return new.chosen(np.flatnonzero(log_weight > -np.inf), log_weight)

    def chosen(self, which: NDArray[np.intp], log_weight: Array) -> Particles:
        """Some of the particles, with weights of all."""
        return Particles(
            log_weight[which], self.mean[which], self.cov[which], self.path[which]
        )

    def observed(self, model: Any, x: Array) -> Particles:
        """The particles given an observation, of which entries may be missing."""
        seen = np.flatnonzero(~np.isnan(x))
        if not len(seen):
            return self
        C = model.observation[seen]
        R = model.observation_cov[np.ix_(seen, seen)]
        r = x[seen] - self.mean @ C.T - model.observation_offset[seen]
        CP = C @ self.cov
        F = CP @ C.T + R
        K = np.linalg.solve(F, CP).swapaxes(1, 2)
        mean = self.mean + (K @ r[..., None])[..., 0]
        G = np.eye(len(mean[0])) - K @ C
        cov = G @ self.cov @ G.swapaxes(1, 2) + K @ R @ K.swapaxes(1, 2)
        far = np.einsum("pi,pi->p", r, np.linalg.solve(F, r[..., None])[..., 0])
        density = -0.5 * (far + np.linalg.slogdet(F)[1] + len(seen) * _LOG_2PI)
        return replace(self, log_weight=self.log_weight + density, mean=mean, cov=cov)

    def resampled(self, n: int, rng: np.random.Generator) -> Particles:
        """No more than n particles: drawn by their weights if there are more."""
        if len(self.log_weight) <= n:
            return self
        points = (rng.random() + np.arange(n)) / n
        which = np.searchsorted(np.cumsum(self.weight), points)
        which = np.minimum(which, len(self.log_weight) - 1)
        total = float(logsumexp(self.log_weight)) - math.log(n)
        return self.chosen(which, np.full(len(self.log_weight), total))


def mixture_moments(weight: Array, mean: Array, cov: Array) -> tuple[Array, Array]:
    """Mean and covariance of a mixture, whose members are on the first axis."""
    centre = np.tensordot(weight, mean, 1)
    away = mean - centre
    spread = cov + away[..., :, None] * away[..., None, :]
    return centre, np.tensordot(weight, spread, 1)


def filtered_regimes(
    model: Any, x: Array, n_particles: int, rng: np.random.Generator
) -> tuple[FilteredRegimes, Particles]:
    """Filter of one sequence, and the particles at its end."""
    n, K = model.n_states, model.n_regimes
    means, covs = np.empty((len(x), n)), np.empty((len(x), n, n))
    regimes = np.empty((len(x) - 1, K))
    first = model.initial_mean[None], model.initial_cov[None]
    now = Particles(np.zeros(1), *first, np.zeros((1, 0), np.intp))
    for t, row in enumerate(x):
        if t:
            now = now.extended(model)
        now = now.observed(model, row)
        means[t], covs[t] = now.moments()
        if t:
            regimes[t - 1] = now.shares(K)
        now = now.resampled(n_particles, rng)
    total = float(logsumexp(now.log_weight))
    return FilteredRegimes(means, covs, regimes, total), now


def estimated_likelihood(
    model: Any, x: Array, n_particles: int, n_runs: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Log of the mean density of independent runs, and its standard error."""
    runs = np.array(
        [
            filtered_regimes(model, x, n_particles, rng)[0].log_likelihood
            for _ in range(n_runs)
        ]
    )
    ratio = np.exp(runs - runs.max())
    error = ratio.std(ddof=1) / (ratio.mean() * math.sqrt(n_runs))
    return float(runs.max() + math.log(ratio.mean())), float(error)


def forecast_of(
    model: Any,
    last: Particles,
    steps: int,
    level: float,
    n_particles: int,
    rng: np.random.Generator,
) -> Forecast:
    """Forecast from the particles at the end of a sequence."""
    C, c, R = model.observation, model.observation_offset, model.observation_cov
    parts = []
    for _ in range(steps):
        ahead = last.extended(model)
        weight, seen = ahead.weight, ahead.mean @ C.T + c
        spread = C @ ahead.cov @ C.T + R
        scale = np.sqrt(np.diagonal(spread, axis1=1, axis2=2))
        ends = mixture_interval(weight, seen, scale, level)
        parts.append((*mixture_moments(weight, seen, spread), *ends))
        last = ahead.resampled(n_particles, rng)
    mean, cov, lower, upper = (np.array(part) for part in zip(*parts))
    variance = np.diagonal(cov, axis1=1, axis2=2)
    return Forecast(mean, variance, lower, upper, level, cov=cov)


def likely_paths(
    model: Any, x: Array, n_particles: int, rng: np.random.Generator
) -> tuple[NDArray[np.intp], Array]:
    """Paths of regimes given a sequence, and their weights.

    Runs of the filter count by their estimates of the density.
    """
    runs = [
        filtered_regimes(model, x, n_particles, rng)[1] for _ in range(_IMPUTE_RUNS)
    ]
    every = Particles(*(np.concatenate([getattr(p, name) for p in runs]) for name in (
        "log_weight", "mean", "cov", "path")))  # fmt: skip
    every = every.resampled(_MOST_PATHS, rng)
    paths, which = np.unique(every.path, axis=0, return_inverse=True)
    weight: Array = np.bincount(which.ravel(), every.weight).astype(np.float64)
    return paths, weight


class RegimeAnswers(RegimePaths):
    """Switching systems of which states and observations are asked; base class."""

    def filter(
        self,
        sequences: Any,
        lengths: ArrayLike | None = None,
        *,
        n_particles: int = 500,
        random_state: Any = 0,
    ) -> list[FilteredRegimes]:
        """Distribution of states and regimes given the observations up to each step.

        Parameters
        ----------
        sequences : list, array-like (n_steps, n_features) or (n, n_steps, n_features)
            NaN where an entry, or a whole row, was not observed.
        lengths : array-like of int, optional
            Lengths of the sequences in one array.
        n_particles : int, default=500
            Paths of regimes that are kept, each with its Kalman filter; exact up to
            the step at which there are more paths.
        random_state : int, Generator, RandomState or None, default=0
            Of the draws of paths.

        Returns
        -------
        list of FilteredRegimes
            One per sequence.
        """
        n, rng = v.check_count("n_particles", n_particles), as_generator(random_state)
        data = self._read(sequences, lengths)
        return [filtered_regimes(self, x, n, rng)[0] for x in data]

    def likelihood_estimate(
        self,
        sequences: Any,
        lengths: ArrayLike | None = None,
        *,
        n_particles: int = 500,
        n_runs: int = 10,
        random_state: Any = 0,
    ) -> LikelihoodEstimate:
        """Log-density of every sequence by particle filters, with its standard error.

        Parameters
        ----------
        sequences, lengths
            As of :meth:`filter`.
        n_particles : int, default=500
            Paths of regimes that every run keeps.
        n_runs : int, default=10
            Independent runs, >= 2.
        random_state : int, Generator, RandomState or None, default=0
            Of the draws of paths.

        Returns
        -------
        LikelihoodEstimate
            Each run estimates the density without bias. The logarithm of their mean
            is too small, by about half of its squared standard error; where that is
            not far below one, take more particles.
        """
        n, rng = v.check_count("n_particles", n_particles), as_generator(random_state)
        runs = v.check_count("n_runs", n_runs, 2)
        data = self._read(sequences, lengths)
        each = [estimated_likelihood(self, x, n, runs, rng) for x in data]
        value, error = np.array(each).T
        return LikelihoodEstimate(value, error)

    def forecast(
        self,
        sequences: Any,
        steps: int,
        *,
        lengths: ArrayLike | None = None,
        level: float = 0.9,
        n_particles: int = 500,
        random_state: Any = 0,
    ) -> list[Forecast]:
        """Distribution of each of the steps that follow every sequence.

        Parameters
        ----------
        sequences : list, array-like (n_steps, n_features) or (n, n_steps, n_features)
            NaN where an entry, or a whole row, was not observed.
        steps : int
            Number of steps, >= 1.
        lengths : array-like of int, optional
            Lengths of the sequences in one array.
        level : float, default=0.9
            Probability of the intervals.
        n_particles : int, default=500
            Paths of regimes that are kept.
        random_state : int, Generator, RandomState or None, default=0
            Of the draws of paths.

        Returns
        -------
        list of Forecast
            One per sequence: moments and quantiles of the mixture of Gaussians over
            the paths, which need not be symmetric.
        """
        level, steps = check_level(level), v.check_count("steps", steps)
        n, rng = v.check_count("n_particles", n_particles), as_generator(random_state)
        out = []
        for x in self._read(sequences, lengths):
            last = filtered_regimes(self, x, n, rng)[1]
            out.append(forecast_of(self, last, steps, level, n, rng))
        return out

    def impute(
        self,
        sequences: Any,
        lengths: ArrayLike | None = None,
        *,
        return_cov: bool = False,
        n_particles: int = 500,
        random_state: Any = 0,
    ) -> Any:
        """Sequences whose missing entries have their expectation given all others.

        Parameters
        ----------
        sequences : list, array-like (n_steps, n_features) or (n, n_steps, n_features)
            NaN where an entry, or a whole row, was not observed.
        lengths : array-like of int, optional
            Lengths of the sequences in one array.
        return_cov : bool, default=False
            Return the covariances of what was filled in, too.
        n_particles : int, default=500
            Paths of regimes that are kept.
        random_state : int, Generator, RandomState or None, default=0
            Of the draws of paths.

        Returns
        -------
        sequences : list of ndarray (n_steps, n_features)
            Entries that were observed are as they were.
        covs : list of ndarray (n_steps, n_features, n_features)
            Only if `return_cov`.

        Notes
        -----
        Given a path of regimes the answer is exact; it is averaged over at most 100
        paths of five particle filters. Paths of long sequences agree in their early
        steps, where few of them then stand for all: covariances of gaps far from the
        end come out too small.
        """
        n, rng = v.check_count("n_particles", n_particles), as_generator(random_state)
        values, covs = [], []
        for i, x in enumerate(self._read(sequences, lengths)):
            paths, weight = likely_paths(self, x, n, rng)
            each = []
            for law in self._compiled(paths):
                states = smoothed(law, x, self.n_states, i)
                each.append(filled(law, x, states.mean, states.cov))
            mean, cov = (np.array(part) for part in zip(*each))
            value, spread = mixture_moments(weight, mean, cov)
            values.append(np.where(np.isnan(x), value, x))
            covs.append(spread)
        return (values, covs) if return_cov else values

    def _futures(
        self, n: int, length: ArrayLike, given: Any, n_particles: int, rng: Any
    ) -> tuple[list[Array], list[NDArray[np.intp]]]:
        """Draws of what follows one sequence, and their regimes."""
        past = self._read([given]).values
        last = filtered_regimes(self, past, n_particles, rng)[1]
        sequences, regimes = [], []
        for T in np.diff(drawn_offsets(n, length)).tolist():
            k = int(rng.choice(len(last.mean), p=last.weight))
            begin = last.path[k, -1] if last.path.shape[1] else None
            path = self._following(begin, T, rng)
            law = self._compiled(path[None])[0]
            # the state before the first drawn one is that of step 0 here
            law = (last.mean[k], last.cov[k], *law[2:])
            sequences.append(draw(law, T + 1, rng)[1][1:])
            regimes.append(path)
        return sequences, regimes

    def _following(self, regime, length, rng):
        """Regimes of steps after one of this regime; of the first steps of None."""
        if regime is None:
            return self.sample_paths(1, length, rng)[0]
        later = {**self.parameters(), "start": self.switching[regime]}
        return type(self)(**later).sample_paths(1, length, rng)[0]
