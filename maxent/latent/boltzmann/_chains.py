"""Gibbs chains of a Boltzmann machine: means with errors, log Phi by annealing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from maxent._support.compiling import compiled

Array = NDArray[np.float64]
GROUPS = 20  # of chains, whose spread gives standard errors
_DRAWS = 2_000_000  # of units per call, some 50 ms: Ctrl-C is heard in between


class Chains:
    """States of R chains, each with random numbers of its own, and their weights.

    Chains that follow a model whose weights change keep up with it by weights of their
    own, exp((lam' - lam) . f(x)) for each change, also where they pass between modes
    too rarely; resampling makes the weights equal again (Asuncion et al. 2010).

    Parameters
    ----------
    states : ndarray (R, M)
        Zeros and ones; changed in place.
    rng : numpy.random.Generator
        Source of the seeds.
    """

    def __init__(self, states: Array, rng: np.random.Generator):
        self.states = np.ascontiguousarray(states, dtype=np.float64)
        self.field = np.empty_like(self.states)
        self.seeds = seeds(len(states), rng)
        self.share = np.full(len(states), 1.0 / len(states))

    def reweight(self, W: Array, b: Array, rng: np.random.Generator) -> None:
        """Follow a change W, b of the weights; resample if few chains count."""
        x = self.states
        gain = 0.5 * np.sum((x @ W) * x, axis=1) + x @ b
        log_share = np.log(np.maximum(self.share, 1e-300)) + gain
        self.share = np.exp(log_share - logsumexp(log_share))
        if self.share @ self.share * len(x) > 2.0:
            x[:] = x[systematic(self.share, rng)]
            self.share[:] = 1.0 / len(x)

    def sweep(self, W: Array, b: Array, n: int) -> Array:
        """Draw all units n times; p(x_i = 1 | all others) of the last states (R, M)."""
        core = compiled("gibbs")
        for part in _parts(len(self.states), n * len(b)):
            core.gibbs(W, b, n, self.states[part], self.field[part], self.seeds[part])
        return expit(self.field + b)

    def moments(self, W: Array, b: Array, n: int) -> Array:
        """Means of x x', diagonal x, over n sweeps, by groups of chains (G, M, M).

        Conditional means stand for one unit of each pair: E x_i x_j is the mean of
        x_i p(x_j = 1 | others), which varies less.
        """
        G = min(GROUPS, len(self.states))
        edges = np.linspace(0, len(self.states), G + 1).astype(int)
        out = np.zeros((G, len(b), len(b)))
        for _ in range(n):
            p = self.sweep(W, b, 1)
            for g in range(G):
                part = slice(edges[g], edges[g + 1])
                share = np.full(edges[g + 1] - edges[g], 1.0)
                out[g] += second_moments(self.states[part], p[part], share / len(share))
        return out / n


def seeds(n: int, rng: np.random.Generator) -> NDArray[np.uint64]:
    """Seeds of n chains."""
    return rng.integers(2**64, size=n, dtype=np.uint64)


def _parts(n: int, draws: int) -> Iterator[slice]:
    """Slices of n chains that make so many draws each."""
    size = max(_DRAWS // max(draws, 1), 1)
    for lo in range(0, n, size):
        yield slice(lo, lo + size)


def second_moments(x: Array, p: Array, share: Array) -> Array:
    """Mean of x p' made symmetric, its diagonal the mean of p; shares of the rows."""
    out = (x.T * share) @ p
    out = (out + out.T) / 2.0
    np.fill_diagonal(out, share @ p)
    return out


def systematic(share: Array, rng: np.random.Generator) -> NDArray[np.intp]:
    """Numbers drawn by their shares, copies side by side (systematic resampling)."""
    n = len(share)
    at = np.searchsorted(np.cumsum(share), (rng.random() + np.arange(n)) / n)
    return np.minimum(at, n - 1)


@dataclass
class Annealed:
    """Annealed importance sampling: log Phi, its standard error, and the chains.

    `effective` is how many equal weights would be as good as the chains' weights.
    """

    log_partition: float
    error: float
    effective: float
    states: Array
    log_weight: Array

    def resampled(self, rng: np.random.Generator) -> Array:
        """States drawn by weight."""
        share = np.exp(self.log_weight - logsumexp(self.log_weight))
        return self.states[systematic(share, rng)]


def annealed(
    W: Array, b: Array, base: Array, n: int, steps: int, rng: np.random.Generator
) -> Annealed:
    """Anneal n chains from independent units of log-odds `base` in equal steps.

    The error is that of the mean of the weights, relative to it. An estimate by few
    weights is too low more often than too high.
    """
    states, log_weight = np.empty((n, len(b))), np.empty(n)
    betas = np.arange(1, steps + 1) / steps
    core, own = compiled("gibbs"), seeds(n, rng)
    for part in _parts(n, steps * len(b)):
        core.anneal(W, b, base, betas, states[part], own[part], log_weight[part])
    total = logsumexp(log_weight)
    share = np.exp(log_weight - total)
    log_phi = float(np.logaddexp(0.0, base).sum() + total - np.log(n))
    spread = max(n * (share @ share) - 1.0, 0.0)
    error = float(np.sqrt(spread / (n - 1))) if n > 1 else np.inf
    return Annealed(log_phi, error, 1.0 / float(share @ share), states, log_weight)
