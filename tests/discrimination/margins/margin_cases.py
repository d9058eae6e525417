"""Margin priors of every kind, and where to look at them."""

import math

import numpy as np
import pytest

from maxent.discrimination import (
    ErlangMargin,
    ExponentialMargin,
    FixedMargin,
    GaussianMargin,
    HingeMargin,
    LaplaceMargin,
    LogisticMargin,
    UniformExponentialMargin,
)

# priors that are distributions, under the names of the oracle
PROPER = [
    ExponentialMargin(5.0, 1.0),
    ExponentialMargin(0.7, 3.0),
    ErlangMargin(3, 6.0, 1.0),
    ErlangMargin(2, 200.0, 0.5),
    LaplaceMargin(4.0, 1.0),
    LaplaceMargin(0.3, -1.0),
    GaussianMargin(2.0, 1.0),
    GaussianMargin(50.0, 0.2),
    LogisticMargin(1.0, 0.0),
    LogisticMargin(8.0, 0.4),
    UniformExponentialMargin(0.3, 5.0),
    UniformExponentialMargin(2.0, 0.8, 1.5),
]


ALL = [*PROPER, FixedMargin(0.8), HingeMargin(1.2)]


SMOOTH = PROPER


def by_name(value):
    return getattr(value, "name", str(value))


every = pytest.mark.parametrize("prior", ALL, ids=by_name)


smooth = pytest.mark.parametrize("prior", SMOOTH, ids=by_name)


def oracle(prior):
    """(kind, level, rate, shape) of the brute-force functions, and a shift."""
    if prior.name == "uniform_exponential":
        # there the tolerance is -gamma; a level moves the margin
        return ("uniform_exp", -prior.width, prior.rate, 1.0), prior.level
    return (prior.name, prior.level, prior.rate, getattr(prior, "shape", 1.0)), 0.0


def multipliers(prior):
    """Multipliers over the domain, both ends included where they belong to it."""
    top = prior.upper if math.isfinite(prior.upper) else 20.0 * prior.rate
    inside = [1e-6, 1e-3, 0.1, 0.37, 0.5, 0.8, 0.95, 0.999]
    return top * np.array(inside)


def margins_around(prior):
    unit = 1.0 / prior.rate
    return prior.level + unit * np.array(
        [-300.0, -30.0, -5.0, -2.0, -1.1, -0.6, 0.0, 0.5, 3.0, 30.0]
    )
