"""Divergence from the truth of both choices, by the number of rows."""

import matplotlib.pyplot as plt
import numpy as np

from maxent import LMEGaussianMixture
from maxent.displays import SampleSizeDisplay
from maxent.families import Gaussian

centres = Gaussian([[0, -3], [0, 0], [0, 3]], np.diag([2.0, 1.0]))


def draw(n, rng):
    which = rng.integers(3, size=n)
    return rng.normal(size=(n, 2)) * np.sqrt([2.0, 1.0]) + centres.mean[which]


def log_density(X):
    return np.logaddexp.reduce(centres.log_prob(X), axis=0) - np.log(3)


SampleSizeDisplay.from_estimator(
    LMEGaussianMixture(3, n_init=20, init_params="random_from_data"),
    *(draw, [50, 100, 200, 500]),
    log_prob=log_density,
    n_trials=12,
    random_state=0,
)
plt.show()
