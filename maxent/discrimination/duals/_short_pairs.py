"""Machines of pairs of small classes, solved in compiled code by what they share.

The kernel values within the classes are computed once, those between a class and all
later ones in one call.
"""

from __future__ import annotations

import numpy as np

from maxent._core.machines.class_pairs import solve_against_later

SHORT = 256  # of a pair, at most
_LEAST_TOL = 1e-7  # below which single precision takes many turns


class ShortPairs:
    """Pairs of classes of few rows, with a flat bias.

    Parameters
    ----------
    kernel : VectorKernel
        Of rows that lie class by class.
    ends : ndarray of int (n_classes,)
        Where each class ends.
    problem : SignedProblem
        Of all rows; level and rate are the same for each.
    tol : float
        Of the relative gap and of the optimality condition.
    max_iter : int
    n_threads : int
    """

    def __init__(self, kernel, ends, problem, tol, max_iter, n_threads):
        self.kernel, self.problem, self.n_threads = kernel, problem, n_threads
        self.first = np.append(0, ends).astype(np.intp)
        self.options = tol, tol, max_iter, SHORT
        self.few = np.diff(self.first) < SHORT
        within = [
            np.ravel(self._block(lo, hi, lo, hi)) if hi - lo < SHORT else np.empty(0)
            for lo, hi in zip(self.first[:-1], self.first[1:], strict=True)
        ]
        sizes = [len(values) for values in within]
        self.place = np.append(0, np.cumsum(sizes)[:-1]).astype(np.intp)
        self.within = np.concatenate(within)

    @staticmethod
    def serves(kernel, ends, problem, tol, cache_size):
        """True if there may be such pairs, and memory for their kernel values."""
        potential = problem.potential
        curved = potential.smooth and not potential.closed and potential.finite_at_zero
        if problem.bias != "flat" or not curved or tol < _LEAST_TOL:
            return False
        sizes = np.sort(np.diff(ends, prepend=0))
        held = 8e-6 * min(int(sizes[-1]), SHORT) * 2 * len(kernel)
        return sizes[:2].sum() <= SHORT and held <= cache_size and kernel.semidefinite

    def against_later(self, i, lam):
        """Solve the pairs of class i with later ones.

        Parameters
        ----------
        i : int
        lam : ndarray (n_classes - 1, n)
            Takes the signed multipliers of the pairs that are solved.

        Returns
        -------
        ndarray (n_classes - 1 - i, 7)
            Of each pair: 1, bias, objective, gap, violation of the optimality
            condition, steps, rows with a multiplier; zeros of those not solved.
        """
        lo, hi, n = self.first[i], self.first[i + 1], self.first[-1]
        found = np.zeros((len(self.first) - 2 - i, 7))
        if self.few[i]:
            solve_against_later(
                self.problem.potential.core_spec,
                i,
                self.first,
                self.within,
                self.place,
                self._block(lo, hi, hi, n),
                self.problem.margin.level,
                self.problem.margin.rate,
                self.problem.weight,
                *self.options,
                lam,
                found,
                self.n_threads,
            )
        return found

    def _block(self, lo, hi, start, stop):
        """Kernel values between two ranges of rows."""
        if self.kernel.has_tiles:
            return self.kernel.block(slice(lo, hi), slice(start, stop))
        return np.ascontiguousarray(
            self.kernel.block(np.arange(lo, hi), np.arange(start, stop))
        )
