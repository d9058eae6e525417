"""Equal rows as one row with the sum of their weights, which is the same problem.

Multipliers of equal rows enter a dual by their sum S alone, and their potentials are

    sum_t w_t phi(lam_t / w_t) <= W phi(S / W),    W = sum_t w_t,

with equality where each has its share w_t / W of S, since phi is concave.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

_FEW = 1000  # rows that are solved as soon as they are compared
_SAMPLE = 2000  # rows among which two are equal if half of all are copies
_MOST = 0.7  # share of distinct rows up to which it is worth while


def distinct(rows):
    """Places of the distinct rows (n, k), by first appearance, and of every row there.

    Returns
    -------
    first : ndarray of int (m,)
    place : ndarray of int (n,)
    """
    rows = np.ascontiguousarray(rows)
    rows = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    _, first, place = np.unique(rows, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return first[order], np.argsort(order)[place]


class EqualRows:
    """A signed problem without copies of rows.

    Parameters
    ----------
    problem : SignedProblem
    first, place : ndarray of int
        As from :func:`distinct`.

    Attributes
    ----------
    first : ndarray of int (m,)
        Rows of the data that are left.
    problem : SignedProblem
        Theirs.
    """

    def __init__(self, problem, first, place):
        self.first, self._place = first, place
        total = np.bincount(place, problem.weight)
        self._share = problem.weight / total[place]
        self.problem = replace(problem.among(first), weight=total)

    @classmethod
    def of(cls, data, problem, *more):
        """EqualRows of dense features; None where there are few copies or none.

        Rows are equal if their entries in `more` are too, arrays (n,).
        """
        n = len(problem.weight)
        if not isinstance(data, np.ndarray) or not data.shape[1] or n < _FEW:
            return None
        # not the first rows, nor every k-th: copies may lie side by side
        some = np.unique(np.random.default_rng(0).integers(n, size=_SAMPLE))
        if len(distinct(data[some])[0]) == len(some):
            return None
        own = problem.target, problem.level, problem.rate, problem.sides
        first, place = distinct(np.column_stack([data, *own, *more]))
        return cls(problem, first, place) if len(first) <= _MOST * n else None

    def spread(self, lam):
        """Signed multipliers (.., n) of all rows from those of the distinct ones."""
        return lam[..., self._place] * self._share

    def gathered(self, lam):
        """Signed multipliers of the distinct rows from those of all."""
        return np.bincount(self._place, lam, minlength=len(self.first))
