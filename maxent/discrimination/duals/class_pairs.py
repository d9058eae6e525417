"""Constraints of several classes: one for every wrong class of every row.

Source: Jaakkola, Meila & Jebara (1999), eq. (4)-(5).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from maxent._optimize.rows import Rows

CLASS_WEIGHT_VARIANCE = 0.5  # v; the difference of two scores has variance one


class ClassPairs:
    """Constraints (t, j) of a multi-class problem: j is a wrong class of row t.

    Parameters
    ----------
    codes : ndarray of int (n,)
        Class of each row, 0 .. m-1.
    n_classes : int
    weight : ndarray (n,)

    Attributes
    ----------
    example, right, wrong : ndarray of int (n * (m - 1),)
        Row, its class, and the other class of every constraint.
    pair_weight : ndarray (n * (m - 1),)
        Weight of the row.
    """

    def __init__(self, codes, n_classes, weight):
        n, m = len(codes), n_classes
        self.n, self.m = n, m
        self.codes = np.ascontiguousarray(codes, dtype=np.intp)
        self.weight = np.ascontiguousarray(weight, dtype=np.float64)
        self.example = np.repeat(np.arange(n), m - 1)
        wrong = np.arange(m - 1)[None, :] + (
            np.arange(m - 1)[None, :] >= codes[:, None]
        )
        self.right = codes[self.example]
        self.wrong = wrong.reshape(-1)
        self.pair_weight = np.repeat(weight, m - 1)

    def beta(self, lam):
        """Class coefficients (n, m) of multipliers (n * (m - 1),)."""
        return class_coefficients(lam.reshape(self.n, self.m - 1), self.codes)

    def margins(self, scores):
        """Score of the right class minus that of the wrong one, per constraint."""
        return scores[self.example, self.right] - scores[self.example, self.wrong]

    def incidence(self):
        """Matrix E of the flat bias, without the last class (its bias is fixed)."""
        return self.sparse_incidence().toarray()

    def sparse_incidence(self, whole=False):
        """The matrix of :meth:`incidence` as CSR; the `whole` one has all classes."""
        size = len(self.example)
        entries = np.tile([1.0, -1.0], size)
        columns = np.column_stack([self.right, self.wrong]).ravel()
        starts = 2 * np.arange(size + 1)
        shape = (size, self.m)
        every = sp.csr_array((entries, columns, starts), shape=shape)
        return every if whole else every[:, :-1]


class MulticlassRows(ClassPairs):
    """The pairs with the margin prior that they share.

    Parameters
    ----------
    codes, n_classes, weight
        As for :class:`ClassPairs`.
    margin : MarginPrior
        Its level is that of all constraints.
    """

    def __init__(self, codes, n_classes, margin, weight):
        super().__init__(codes, n_classes, weight)
        self.margin = margin
        self.rows = Rows.of(margin, self.pair_weight)

    def in_play(self, lam, d, allowed):
        """Constraints with a multiplier, or whose loss without one adds to the gap.

        What the others add together is within a tenth of the gap that is allowed.
        """
        rows = self.rows
        terms = rows.potential.fenchel_young(np.zeros_like(d), rows.rate * d)
        asking = rows.weight * terms > 0.1 * allowed / len(d)
        return asking | (lam > 0) if rows.potential.finite_at_zero else asking


def class_coefficients(lam, codes):
    """Class coefficients (n, m) of the multipliers (n, m - 1) of rows of these classes.

    The own class of a row has the sum of its multipliers, every other one the
    multiplier with a minus sign.
    """
    n, m = len(lam), lam.shape[1] + 1
    wrong = np.arange(m) != codes[:, None]
    out = np.empty((n, m))
    out[wrong] = -lam.reshape(-1)
    out[~wrong] = lam.sum(axis=1)
    return out


def class_maps(pairs):
    """A_k of every class: its row weights beta_k = A_k lam."""
    shape = (pairs.n, len(pairs.example))
    maps = []
    for k in range(pairs.m):
        entry = (pairs.right == k) * 1.0 - (pairs.wrong == k)
        at = np.flatnonzero(entry)  # of one row after the other, as CSR wants them
        starts = np.searchsorted(pairs.example[at], np.arange(pairs.n + 1))
        maps.append(sp.csr_array((entry[at], at, starts), shape=shape))
    return maps
