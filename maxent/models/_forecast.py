"""Forecasts of sequences: moments and intervals of the steps to come."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Forecast:
    """What a model says of the steps after a sequence, each by itself.

    Attributes
    ----------
    mean : ndarray (steps, d)
        Expectations; of symbols, their probabilities (steps, n_symbols).
    variance : ndarray (steps, d)
        Variances of the coordinates.
    lower, upper : ndarray (steps, d)
        Ends of intervals that hold each coordinate with the probability asked for.
    states : ndarray (steps, n_states)
        Probabilities of hidden states.
    """

    mean: Array
    variance: Array
    lower: Array
    upper: Array
    states: Array
