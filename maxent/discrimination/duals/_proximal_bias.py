"""Biases of coordinate ascent: Gaussian ones, and flat ones by proximal sweeps.

A flat prior asks for ``E' lam = 0``, which steps of one multiplier at a time cannot
keep. The method of multipliers meets it in the limit: each sweep has a Gaussian prior
of variance v around the biases c of the sweep before,

    bias = c + v E' lam  during a sweep,   c <- c + v E' lam  after it.

Source: Bertsekas (1982), Constrained optimization and Lagrange multiplier methods.
"""

from __future__ import annotations

import numpy as np

# The variance v as a share of the mean of |x|^2. A large one slows down the sweeps, of
# a small one more are needed. Between 0.03 and 0.3 the sweeps are within a third of the
# fewest, and half as many as at 1: linear machines of 3 to 3000 columns and RBF
# machines of three classes, C from 1 to 1e4, priors of exponential, Gaussian and hinge.
_SHARE = 0.1


def proximal_variance(mean_norm):
    """Variance between two sweeps under a flat prior, for rows of this mean |x|^2."""
    return _SHARE * (mean_norm or 1.0)


class ProximalBias:
    """Biases that sweeps keep up to date, and the variance that they have meanwhile.

    Parameters
    ----------
    size : int
        Number of biases; of several, the mean is zero under a flat prior.
    flat : bool
    variance : float
        Variance of a Gaussian prior, 0 without biases.
    diagonal : ndarray (n,)
        |x|^2 of the rows, the scale of a flat prior's sweeps.

    Attributes
    ----------
    value : ndarray (size,)
    variance : float
        What a unit of E' lam adds to the biases.
    """

    def __init__(self, size, flat, variance, diagonal):
        self.flat = flat
        self.value = np.zeros(size)
        self.variance = variance
        if flat:
            self.variance = proximal_variance(float(np.mean(diagonal)))

    def add(self, total):
        """Add the share of multipliers of which E' lam is the total."""
        self.value += self.variance * total

    def end_sweep(self, total):
        """Move the centre of a flat prior to the biases of this sweep."""
        if self.flat:
            self.add(total)
            if len(self.value) > 1:
                self.value -= self.value.mean()
