"""Boltzmann machines too large to enumerate: stochastic ascent, and its evaluation.

    dL/dlam = eta(lam) - E_lam f - lam / s2,   eta exact given each row, E f by chains

Persistent chains make a sweep per update of the weights. The step is the gradient in
centred units, x - mu, divided by the variances of its products; in these the gradient
of the biases does not depend on that of the weights. The step's size is the reciprocal
of the largest eigenvalue of the scaled covariance, by power iteration on the chains,
and falls over the second half of the updates, whose weights are averaged.

The average is evaluated by chains that had no part in the ascent: annealed from
independent units, which gives log Phi and its error, resampled by weight and swept for
the means and theirs.

Sources: Younes (1989) and Tieleman (2008) for persistent chains; Polyak & Juditsky
(1992) for the average; Melchior, Fischer & Wiskott (2016), section 2.3, for centring.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from maxent._support.compiling import compiled
from maxent._support.progress import Progress
from maxent._support.reports import Report, tell
from maxent._support.threads import single_threaded_blas
from maxent._support.typing import Callback
from maxent.latent._chains import Chains, annealed, second_moments
from maxent.latent._em_is import Likelihood
from maxent.latent._stationary_points import gated, parts_of

Array = NDArray[np.float64]
BURN_IN = 100  # sweeps before the first update, and before the means are taken
_EVALUATION = 300  # sweeps for the means at the end
_FLOOR = 0.01  # of the variance of a unit, for the scale of a step
_SAFE = 3.0  # standard errors above an estimate that a gate looks at
_FEWEST = 20.0  # effective chains below which annealing has failed
_STEP_EVERY = 50  # updates between two estimates of the step's size


@dataclass(frozen=True)
class Sampling:
    """How much is sampled.

    Attributes
    ----------
    n_chains : int
        Persistent chains, and chains of the annealing.
    n_updates : int
        Updates of the weights.
    n_temperatures : int
        Steps of the annealing.
    inner : int
        Updates per E step.
    tol : float
        Relative gradient of an admitted candidate, for the reports.
    """

    n_chains: int
    n_updates: int
    n_temperatures: int
    inner: int
    tol: float = np.nan


def start(model: Any, observed: Any, rng: np.random.Generator) -> Array:
    """Weights (N,) near independent units with the means of the data.

    Random weights of hidden units are small enough for chains to move: M of variance
    1 / M in all.
    """
    mean, scale = unit_means(model, observed), min(0.5, model.M**-0.5)
    lam = np.zeros(model.n_features)
    hidden = (model.i >= model.J) | (model.j >= model.J)
    lam[: model.n_pairs] = np.where(
        hidden, rng.normal(scale=scale, size=model.n_pairs), 0.0
    )
    W, _ = model.matrices(lam)
    lam[model.n_pairs :] = (logit(mean) - W @ mean)[model.biased]
    return lam


def unit_means(model: Any, observed: Any) -> Array:
    """Shares of the visible units that are on, hidden ones one half, all inside."""
    mean = np.full(model.M, 0.5)
    mean[: model.J] = np.diag(observed.second)
    return np.clip(mean, 0.02, 0.98)


class Ascent:
    """Stochastic ascent from one start.

    Parameters
    ----------
    likelihood : Likelihood
        Of a Boltzmann machine.
    lam : ndarray (N,)
        Weights to start from.
    sampling : Sampling
    rng : numpy.random.Generator
    """

    def __init__(
        self,
        likelihood: Likelihood,
        lam: Array,
        sampling: Sampling,
        rng: np.random.Generator,
    ):
        self.model, self.observed = likelihood.model, likelihood.observed
        self.likelihood, self.sampling, self.rng = likelihood, sampling, rng
        self.lam = np.clip(lam, -likelihood.bound, likelihood.bound)
        self.mean = unit_means(self.model, self.observed)
        on = rng.random((sampling.n_chains, self.model.M)) < self.mean
        self.chains = Chains(on.astype(np.float64), rng)
        self.n_iter, self.stopped = 0, False
        self.numerator, self.residual = np.nan, np.inf
        self.direction = rng.normal(size=(self.model.M, self.model.M))

    # -- the ascent --------------------------------------------------------------------
    def run(self, callback: Callback | None) -> Array:
        """Average of the weights of the second half of the updates."""
        n, total, weight = self.sampling.n_updates, np.zeros_like(self.lam), 0
        found = self._means(self.chains.sweep(*self.model.matrices(self.lam), BURN_IN))
        for t in range(n):
            if t % self.sampling.inner == 0:
                self._e_step()
            if t % _STEP_EVERY == 0:
                size = self._step_size(found)
            decay = 1.0 if t < n // 2 else (1.0 + (t - n // 2) / (0.1 * n)) ** -0.75
            found = self._update(found, size * decay)
            if t >= n // 2:
                total += self.lam
                weight += 1
            self.n_iter = t + 1
            if (t + 1) % max(n // 50, 1) == 0 and self._tell(callback, t + 1 == n):
                self.stopped = True
                break
        return total / weight if weight else self.lam

    def _means(self, p):
        """Means of the features under the chains."""
        return self.model.features_of(second_moments(self.chains.states, p))

    def _e_step(self):
        numerator, target = self.model.posterior(self.lam[None], self.observed)
        self.numerator, self.target = float(numerator[0]), target[0]
        M, J = self.model.M, self.model.J
        hidden = self.target[self.model.n_pairs :][self.model.biased >= J]
        if len(hidden) == M - J:
            self.mean[J:] = 0.9 * self.mean[J:] + 0.1 * np.clip(hidden, 0.02, 0.98)

    def _update(self, mean, size):
        """A step of the weights and a sweep of the chains; the new means."""
        model, bound = self.model, self.likelihood.bound
        gradient = self.target - mean - self.likelihood.weight * self.lam
        self.residual = float((np.abs(gradient) / (1.0 + self.target)).max())
        # no momentum: chains lag behind the weights, and it diverges
        self.lam = np.clip(self.lam + size * self._centred(gradient), -bound, bound)
        return self._means(self.chains.sweep(*model.matrices(self.lam), 1))

    def _centred(self, gradient):
        """Gradient in centred units over the variances, in units of the weights."""
        G, g = self.model.matrices(gradient)
        mu, spread = self.mean, self._spread()
        every = len(self.model.biased) == self.model.M
        if every:
            G = G - np.outer(mu, g) - np.outer(g, mu)
            G *= self.model.free
            np.fill_diagonal(G, 0.0)
        G /= np.outer(spread, spread)
        g = g / spread
        if every:
            g = g - G @ mu
        return np.concatenate([G[self.model.i, self.model.j], g[self.model.biased]])

    def _spread(self):
        return np.maximum(self.mean * (1.0 - self.mean), _FLOOR)

    def _step_size(self, mean):
        """Reciprocal of the largest eigenvalue of the scaled covariance, at most 1."""
        free = self.model.free & ~np.eye(self.model.M, dtype=bool)
        root = np.sqrt(self._spread())
        x = (self.chains.states - self.chains.states.mean(axis=0)) / root
        bias = np.diag(self.model.free).astype(float)
        A, a, largest = self.direction * free, np.ones_like(root) * bias, 1.0
        A = A + A.T
        for _ in range(5):
            norm = max(np.sqrt(0.5 * np.sum(A * A) + a @ a), 1e-300)
            A, a = A / norm, a / norm
            y = 0.5 * np.sum((x @ A) * x, axis=1) + x @ a
            y -= y.mean()
            A, a = free * ((x.T * y) @ x) / len(x), bias * (y @ x) / len(x)
            largest = np.sqrt(0.5 * np.sum(A * A) + a @ a)
        self.direction = A
        prior = float(self.likelihood.weight.max()) / _FLOOR
        return 1.0 / max(largest + prior, 1.0)

    def _tell(self, callback, last):
        if callback is None:
            return False
        lam = self.lam
        penalty = 0.5 * float(np.sum(self.likelihood.weight * lam * lam))
        W, b = self.model.matrices(lam)
        steps = max(self.sampling.n_temperatures // 10, 10)
        base, n = logit(self.mean), self.sampling.n_chains
        # random numbers of its own: nothing depends on who looks
        own = annealed(W, b, base, n, steps, np.random.default_rng(self.n_iter))
        objective = self.numerator - own.log_partition - penalty
        point = lam, self.n_iter, objective, own
        report = Report(self.n_iter, objective, self.residual, "persistent-chains")
        report = replace(report, reached=self.residual, tol=self.sampling.tol)
        report = replace(report, measure="relative gradient", last=last)
        return tell(callback, replace(report, solution=lambda: point))


def evaluated(ascent: Ascent, lam: Array) -> dict[str, float]:
    """Row of the table at weights lam, by new chains."""
    likelihood, model, sampling = ascent.likelihood, ascent.model, ascent.sampling
    W, b = model.matrices(lam)
    chain_means = ascent.chains.states.mean(axis=0)
    base = logit(np.clip(chain_means, 0.02, 0.98))
    size = sampling.n_chains, sampling.n_temperatures
    own = annealed(W, b, base, *size, ascent.rng)
    chains = Chains(own.resampled(ascent.rng), ascent.rng)
    chains.sweep(W, b, BURN_IN)
    each = model.features_of(chains.moments(W, b, _EVALUATION))
    mean, error = each.mean(axis=0), _error(each)
    numerator, target = (x[0] for x in model.posterior(lam[None], likelihood.observed))
    weight, bound = likelihood.weight, likelihood.bound
    gradient = target - mean - weight * lam
    outward = (np.abs(lam) >= bound) & (gradient * lam > 0)
    high = np.where(outward, 0.0, np.abs(gradient) + _SAFE * error) / (1.0 + target)
    penalty = 0.5 * float(np.sum(weight * lam * lam))
    value = float(numerator) - own.log_partition
    entropy = own.log_partition - float(lam @ mean)
    enough = own.effective >= min(_FEWEST, sampling.n_chains / 2.0)
    return {
        "log_likelihood": value,
        "log_likelihood_error": own.error,
        "objective": value - penalty,
        "entropy": entropy,
        "entropy_error": float(np.hypot(own.error, _error(each @ lam))),
        "regularized_entropy": entropy - penalty,
        "log_partition": own.log_partition,
        "residual": float(high.max()) if enough else np.inf,
        "residual_error": float((error / (1.0 + target)).max()),
        "effective_chains": own.effective,
        "dependence": float(model.dependence(lam[None], likelihood.observed)[0]),
        "n_iter": ascent.n_iter,
        "maximum": True,
    }


def _error(each):
    """Standard error of the mean over groups."""
    n = len(each)
    return each.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.inf + 0 * each[0]


def climbed(
    likelihood: Likelihood,
    sampling: Sampling,
    rngs: list[np.random.Generator],
    callback: Any = None,
) -> tuple[dict[str, NDArray[Any]], Array]:
    """Candidates of a few starts, one after another."""
    rows, weights = [], []
    with single_threaded_blas():
        for rng in rngs:
            lam = start(likelihood.model, likelihood.observed, rng)
            ascent = Ascent(likelihood, lam, sampling, rng)
            weights.append(ascent.run(callback))
            rows.append(evaluated(ascent, weights[-1]))
            if ascent.stopped:
                break
    table = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return table, np.stack(weights)


def sampled_candidates(
    likelihood: Likelihood,
    rngs: list[np.random.Generator],
    sampling: Sampling,
    *,
    tol: float,
    mi_tol: float,
    progress: Progress,
    store: Callable[[Any, Any], object],
    n_jobs: int | None = None,
) -> tuple[dict[str, NDArray[Any]], Array]:
    """Table of the candidates of all starts, a start for each generator; weights."""
    compiled("gibbs", verbose=progress.lines is not None)
    listener = partial(progress.callback, store, task="update")
    work = partial(climbed, likelihood, sampling)
    parts = parts_of(work, [[rng] for rng in rngs], progress, listener, n_jobs)
    return gated(parts, tol, mi_tol, progress)


def take_sampled(model: Any, found: Any) -> None:
    """Make weights that an ascent has reached the model."""
    lam, n_iter, _, own = found
    model.candidate_weights_ = lam[None].copy()
    model.candidates_ = {
        "n_iter": np.array([n_iter]),
        "log_partition": np.array([own.log_partition]),
        "log_likelihood_error": np.array([own.error]),
    }
    model._keep(0)


def visible_draws(
    model: Any, lam: Array, n: int, steps: int, rng: np.random.Generator
) -> Array:
    """Visible rows (n, J) of annealed chains after more sweeps; approximate."""
    W, b = model.matrices(lam)
    own = annealed(W, b, np.zeros(model.M), n, steps, rng)
    chains = Chains(own.states, rng)
    chains.sweep(W, b, BURN_IN)
    return chains.states[:, : model.J].copy()
