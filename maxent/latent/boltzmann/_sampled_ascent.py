"""Boltzmann machines too large to enumerate: stochastic ascent, and its evaluation.

    dL/dlam = eta(lam) - E_lam f - lam / s2,   eta exact given each row, E f by chains

Persistent chains, begun at rows of the data, make a sweep per update of the weights,
and carry weights of their own that follow the change of the model where chains do not
pass between modes. Twenty times they are replaced by annealed ones.

The step is the gradient in centred units, x - mu, divided by the variances of its
products; in these the gradient of the biases does not depend on that of the weights.
Its size is the reciprocal of the largest eigenvalue of the scaled covariance, by power
iteration on the chains and on the data, and falls over the second half of the updates,
whose weights are averaged; no step may change log-probabilities by more than 0.3 nats.

The average is evaluated by chains that had no part in the ascent: annealed from
independent units, which gives log Phi and its error, resampled by weight and swept for
the means and theirs.

Sources: Younes (1989) and Tieleman (2008) for persistent chains; Asuncion, Liu, Ihler &
Smyth (2010) for their weights; Polyak & Juditsky (1992) for the average; Melchior,
Fischer & Wiskott (2016), section 2.3, for centring.
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
from maxent._support.results import Report, tell
from maxent._support.threads import single_threaded_blas
from maxent._support.typing import Callback
from maxent.latent._likelihood import Likelihood
from maxent.latent._stationary_points import gated, parts_of
from maxent.latent.boltzmann._chains import Chains, annealed, second_moments

Array = NDArray[np.float64]
BURN_IN = 100  # sweeps before the first update, and before the means are taken
_EVALUATION = 300  # sweeps for the means at the end
_FLOOR = 0.01  # of the variance of a unit, for the scale of a step
_SAFE = 3.0  # standard errors above an estimate that a gate looks at
_FEWEST = 20.0  # effective chains below which annealing has failed
_REFRESHED = 20  # times that annealed chains take the place of the persistent ones
_TRUST = 0.3  # nats
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
        self.model: Any = likelihood.model
        self.observed = likelihood.observed
        self.likelihood, self.sampling, self.rng = likelihood, sampling, rng
        self.lam = np.clip(lam, -likelihood.bound, likelihood.bound)
        self.mean = unit_means(self.model, self.observed)
        self.chains = Chains(self._from_data(sampling.n_chains), rng)
        self.n_iter, self.stopped = 0, False
        self.numerator, self.residual = np.nan, np.inf
        self.direction = rng.normal(size=self.mean.shape * 2)

    # -- the ascent --------------------------------------------------------------------
    def run(self, callback: Callback | None) -> Array:
        """Average of the weights of the second half of the updates."""
        n, total, weight = self.sampling.n_updates, np.zeros_like(self.lam), 0
        W, b = self.model.matrices(self.lam)
        fresh = max(n // _REFRESHED, 1)
        found = self._means(self.chains.sweep(W, b, BURN_IN))
        for t in range(n):
            if t % self.sampling.inner == 0:
                self._e_step()
            if t % fresh == fresh - 1:
                found = self._refresh()
            if t % _STEP_EVERY == 0:
                size = self._step_size()
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

    def _from_data(self, n):
        """States of n chains: visible units of rows of the data, hidden ones drawn."""
        model, rows = self.model, self.observed.rows
        at = self.rng.choice(len(rows), size=n, p=self.observed.share)
        out = (self.rng.random((n, model.M)) < self.mean).astype(np.float64)
        out[:, : model.J] = rows[at]
        return out

    def _refresh(self):
        """Replace the chains by annealed ones: modes between which none passes."""
        W, b = self.model.matrices(self.lam)
        steps = max(self.sampling.n_temperatures // 5, 10)
        own = annealed(W, b, logit(self.mean), len(self.chains.states), steps, self.rng)
        self.chains = Chains(own.resampled(self.rng), self.rng)
        return self._means(self.chains.sweep(W, b, 1))

    def _means(self, p):
        """Means of the features under the chains."""
        chains = self.chains
        second = second_moments(chains.states, p, chains.share)
        return self.model.features_of(second)

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
        gradient = self.target - mean - self.likelihood.penalty.weight * self.lam
        self.residual = float((np.abs(gradient) / (1.0 + self.target)).max())
        # no momentum: chains lag behind the weights, and it diverges
        step = self._within_trust(size * self._centred(gradient))
        new = np.clip(self.lam + step, -bound, bound)
        self.chains.reweight(*model.matrices(new - self.lam), self.rng)
        self.lam = new
        return self._means(self.chains.sweep(*model.matrices(self.lam), 1))

    def _centred(self, gradient):
        """Gradient in centred units over the variances, in units of the weights.

        A weight between i and j takes mu_i of itself from the bias of j, if that is
        free: not where the step would lead beyond the bound.
        """
        model, mu, spread = self.model, self.mean, self._spread()
        G, g = model.matrices(gradient)
        _, b = model.matrices(self.lam)
        free = np.zeros(model.M)
        free[model.biased] = 1.0
        for _ in range(3):
            own = free * g
            pairs = (G - np.outer(mu, own) - np.outer(own, mu)) * model.free
            np.fill_diagonal(pairs, 0.0)
            pairs /= np.outer(spread, spread)
            step = free * (g / spread - pairs @ mu)
            blocked = (np.abs(b) >= self.likelihood.bound) & (step * b > 0)
            if not blocked.any():
                break
            free[blocked] = 0.0
        return np.concatenate([pairs[model.i, model.j], step[model.biased]])

    def _spread(self):
        return np.maximum(self.mean * (1.0 - self.mean), _FLOOR)

    def _within_trust(self, step):
        """Step, shortened so that log-probabilities change by _TRUST at most (sd).

        Twice the divergence of the new model from the old one is the variance of that
        change. Rows of the data are in it for the modes that no chain is in.
        """
        W, b = self.model.matrices(step)
        spread = max(
            (0.5 * np.sum((x @ W) * x, axis=1) + x @ b).std()
            for x in (self.chains.states, self.seen)
        )
        return step * min(1.0, _TRUST / max(spread, 1e-300))

    def _step_size(self):
        """Reciprocal of the largest eigenvalue of the scaled covariance, at most 1.

        The larger one of the chains' and the data's: chains that are all in one mode
        do not show how the modes differ.
        """
        self.seen = self._inferred()
        largest = max(self._largest(self.chains.states), self._largest(self.seen))
        prior = float(self.likelihood.penalty.weight.max()) / _FLOOR
        return 1.0 / max(largest + prior, 1.0)

    def _inferred(self):
        """Rows of the data with the means of the hidden units (n_chains, M)."""
        n, model = self.sampling.n_chains, self.model
        rows = self.observed.rows
        rows = rows[self.rng.choice(len(rows), size=n, p=self.observed.share)]
        parts = model._hidden(*model.matrices(self.lam), rows, np.full(n, 1.0 / n))
        return np.hstack([rows, np.concatenate([mean for _, _, mean, _ in parts])])

    def _largest(self, states):
        """Largest eigenvalue of the scaled covariance of the features of states."""
        free = self.model.free & ~np.eye(self.model.M, dtype=bool)
        bias = np.diag(self.model.free).astype(float)
        x = (states - states.mean(axis=0)) / np.sqrt(self._spread())
        A, a, largest = self.direction * free, bias, 1.0
        A = A + A.T
        for _ in range(8):
            norm = max(np.sqrt(0.5 * np.sum(A * A) + a @ a), 1e-300)
            A, a = A / norm, a / norm
            y = 0.5 * np.sum((x @ A) * x, axis=1) + x @ a
            y -= y.mean()
            A, a = free * ((x.T * y) @ x) / len(x), bias * (y @ x) / len(x)
            largest = np.sqrt(0.5 * np.sum(A * A) + a @ a)
        return float(largest)

    def _tell(self, callback, last):
        if callback is None:
            return False
        lam = self.lam
        penalty = float(self.likelihood.penalty.value(lam))
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
    likelihood, sampling = ascent.likelihood, ascent.sampling
    model: Any = ascent.model
    W, b = model.matrices(lam)
    size = sampling.n_chains, sampling.n_temperatures
    own = annealed(W, b, logit(ascent.mean), *size, ascent.rng)
    chains = Chains(own.resampled(ascent.rng), ascent.rng)
    chains.sweep(W, b, BURN_IN)
    each = model.features_of(chains.moments(W, b, _EVALUATION))
    mean, error = each.mean(axis=0), _error(each)
    numerator, target = (x[0] for x in model.posterior(lam[None], likelihood.observed))
    gradient = -likelihood.penalty.residual(lam, mean - target)
    outward = likelihood.outward(lam, gradient)
    high = np.where(outward, 0.0, np.abs(gradient) + _SAFE * error) / (1.0 + target)
    penalty = float(likelihood.penalty.value(lam))
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
    compiled("gibbs")  # announced here, not in a process
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
