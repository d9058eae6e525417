"""Forecasts of sequences: moments and intervals of the steps to come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from maxent._support import validation as v

Array = NDArray[np.float64]
_BISECTIONS = 60  # of the quantiles of mixtures


@dataclass(frozen=True, repr=False)
class Forecast:
    """Distribution of each of the steps that follow one sequence.

    Parameters
    ----------
    mean : ndarray (steps, d)
        Expectation of every step; of symbols, their probabilities (steps, n_symbols).
    variance : ndarray (steps, d)
        Variances of the coordinates.
    lower : ndarray (steps, d)
    upper : ndarray (steps, d)
        Each value lies between them with the probability `level`; values of different
        steps and columns are not meant together.
    level : float
        Probability of the intervals.
    cov : ndarray (steps, d, d), optional
        Covariances of Gaussian steps.
    states : ndarray (steps, n_states), optional
        Probabilities of hidden states.
    """

    mean: Array
    variance: Array
    lower: Array
    upper: Array
    level: float
    cov: Array | None = None
    states: Array | None = None

    def __repr__(self) -> str:
        steps, d = self.mean.shape
        return f"Forecast({steps} steps, {d} columns, level={self.level:g})"


def gaussian_forecast(mean: Array, cov: Array, level: float) -> Forecast:
    """Forecast of Gaussian steps."""
    variance = np.maximum(np.diagonal(cov, axis1=1, axis2=2), 0.0)
    half = float(ndtri(0.5 + 0.5 * level)) * np.sqrt(variance)
    return Forecast(mean, variance, mean - half, mean + half, level, cov=cov)


def mixture_interval(
    weight: Array, mean: Array, scale: Array, level: float
) -> tuple[Array, Array]:
    """Ends (d,) of the intervals of mixtures of Gaussians, by bisection.

    Components have weights (k,), and means and standard deviations (k, d).
    """
    tail = 0.5 - 0.5 * level
    ends = []
    for share in (tail, 1.0 - tail):
        low = (mean - 40.0 * scale).min(axis=0)
        high = (mean + 40.0 * scale).max(axis=0)
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            below = weight @ ndtr((middle - mean) / scale) < share
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        ends.append(0.5 * (low + high))
    return ends[0], ends[1]


def check_level(level: Any) -> float:
    """A probability of an interval, in (0, 1)."""
    if not 0.0 < v.check_number("level", level) < 1.0:
        raise v.not_this("level", level, "between 0 and 1, such as 0.9")
    return float(level)
