"""Structural time series as linear systems of which most is held."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from maxent.models import LinearDynamicalSystem

REST = ("initial_mean", "initial_cov", "transition_offset", "observation_offset")


@dataclass(frozen=True)
class Case:
    """A system with its free entries, and series of it."""

    start: Any
    free: list  # (parameter, entry)
    data: Any

    @property
    def questions(self):
        """Arguments of a fit, and of its standard errors, about what is held."""
        fixed = {name: True for name in REST}
        for name in ("transition", "observation", "transition_cov", "observation_cov"):
            mask = np.ones(getattr(self.start, name).shape, bool)
            for at in (at for parameter, at in self.free if parameter == name):
                mask[at] = False
            diagonal = name.endswith("cov") and not mask.all()
            fixed[name] = np.diagonal(mask) if diagonal else mask
        types = {}
        for name in ("transition_cov", "observation_cov"):
            if not np.all(fixed[name]):
                types[f"{name}_type"] = "diagonal"
        return {"fixed": fixed, **types}

    @property
    def options(self):
        return {**self.questions, "stable": False}

    @property
    def first(self):
        return self.values(self.start)

    def values(self, model):
        return np.array([getattr(model, name)[at] for name, at in self.free])

    def errors(self, found):
        return np.array([found[name][at] for name, at in self.free])

    def moved(self, values):
        """The system with these free entries."""
        arrays = {k: np.array(v) for k, v in self.start.parameters().items()}
        for (name, at), value in zip(self.free, values):
            arrays[name][at] = value
        return LinearDynamicalSystem(**arrays)


def system(A, variances, C, R, P=None):
    n = len(A)
    P = np.diag(np.full(n, np.inf)) if P is None else P
    return LinearDynamicalSystem(A, np.diag(variances), C, [[R]], np.zeros(n), P)


def level_series(rng, T=100):
    return 1000.0 + 38.0 * np.cumsum(rng.normal(size=T)) + 120.0 * rng.normal(size=T)


def trend_series(rng, T=150):
    slope = np.cumsum(0.2 * rng.normal(size=T))
    return np.cumsum(slope + rng.normal(size=T)) + 2.0 * rng.normal(size=T)


def seasonal_series(rng, T=100):
    wave = 3.0 * np.sin(2.0 * np.pi * np.arange(T) / 4.0)
    return np.cumsum(0.3 * rng.normal(size=T)) + wave + rng.normal(size=T)


def arma_series(rng, T=300):
    e, y = rng.normal(size=T + 50), np.zeros(T + 50)
    for t in range(2, T + 50):
        y[t] = 1.2 * y[t - 1] - 0.5 * y[t - 2] + e[t] + 0.4 * e[t - 1]
    return y[50:]


TURN = np.array([[0.0, 1.0], [-1.0, 0.0]])
CASES = {
    "local level": Case(
        system([[1.0]], [1000.0], [[1.0]], 10000.0),
        [("observation_cov", (0, 0)), ("transition_cov", (0, 0))],
        level_series,
    ),
    "local linear trend": Case(
        system([[1.0, 1.0], [0.0, 1.0]], [1.0, 1.0], [[1.0, 0.0]], 1.0),
        [
            ("observation_cov", (0, 0)),
            ("transition_cov", (0, 0)),
            ("transition_cov", (1, 1)),
        ],
        trend_series,
    ),
    "trigonometric season": Case(
        system(
            block_diag([[1.0]], TURN, [[-1.0]]),
            [0.1, 0.0, 0.0, 0.0],
            [[1.0, 1.0, 0.0, 1.0]],
            1.0,
        ),
        [("observation_cov", (0, 0)), ("transition_cov", (0, 0))],
        seasonal_series,
    ),
    "dummy season": Case(
        system(
            block_diag([[1.0]], [[-1.0, -1.0, -1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
            [0.1, 0.1, 0.0, 0.0],
            [[1.0, 1.0, 0.0, 0.0]],
            1.0,
        ),
        [
            ("observation_cov", (0, 0)),
            ("transition_cov", (0, 0)),
            ("transition_cov", (1, 1)),
        ],
        lambda rng: seasonal_series(rng) + np.tile(np.cumsum(rng.normal(size=25)), 4),
    ),
    # x_t = s_t + theta s_{t-1} of an autoregression s, without noise of observation
    "ARMA(2, 1)": Case(
        system(
            [[0.5, 0.0], [1.0, 0.0]], [1.0, 0.0], [[1.0, 0.1]], 0.0, 4.0 * np.eye(2)
        ),
        [
            ("transition", (0, 0)),
            ("transition", (0, 1)),
            ("observation", (0, 1)),
            ("transition_cov", (0, 0)),
        ],
        arma_series,
    ),
}
