"""Fits of one problem at growing C: one kernel matrix, each fit begun from the last."""

from __future__ import annotations

import numpy as np

from maxent.discrimination.grams.gram_store import WholeGram

_AT_BOUND = 0.5  # share of a multiplier's domain from which on it grows with C


def start_at(lam, upper, ratio):
    """Signed multipliers to start from where all weights are `ratio` times as large.

    Those of rows on the wrong side of their margins grow with the weights, those of
    rows on the margin stay about as they are.

    Parameters
    ----------
    lam : ndarray (n,)
        The solution before.
    upper : ndarray (n,)
        Its upper bounds.
    ratio : float
    """
    return np.where(np.abs(lam) > _AT_BOUND * upper, ratio * lam, lam)


class AlongC:
    """What the fits of some rows at growing C share.

    Parameters
    ----------
    cache_size : float
        MB that the kernel matrix of the rows may take.
    """

    def __init__(self, cache_size):
        self.cache_size, self.gram = cache_size, None
        self._last, self._made = None, False

    def matrix_of(self, make_kernel, bias):
        """WholeGram of the rows, made at the first call; None where it is too large.

        `make_kernel` gives the VectorKernel.
        """
        if not self._made:
            self._made, kernel = True, make_kernel()
            if WholeGram.megabytes(kernel) <= self.cache_size:
                self.gram = WholeGram(kernel, 0 if bias == "flat" else 1)
        return self.gram

    def start(self, problem):
        """Signed multipliers to start a problem from; None for the first."""
        if self._last is None:
            return None
        lam, before = self._last
        ratio = float(problem.weight[0] / before.weight[0])
        upper = before.potential.upper * before.weight * before.rate
        return start_at(lam, upper, ratio)

    def note(self, problem, lam):
        """Keep a solution for the next problem."""
        self._last = lam, problem
