"""Quadratic parts of a dual, as the interior point needs them.

A regulariser R(lam) offers its value and gradient, a solver of (H + diag) x = rhs with
H its Hessian, and its restriction to some of the multipliers.
"""

from __future__ import annotations

import numpy as np

from maxent._optimize.newton_system import NewtonSystem
from maxent._support.linalg import (
    as_array,
    blocked_cholesky,
    row_chunks,
    solve_lower,
    times,
    transposed_times,
    weighted_gram,
)

_BLOCK = 512
_DENSE = 300  # rows whose n^3 is cheap, and more accurate than Woodbury's identity


class Quadratic:
    """Base class of quadratics: no bounds, and a cost of the second degree."""

    homogeneous = True
    bounds_dual = False  # True if the domain bounds the dual at any level
    blocks = ()

    def max_step(self, lam, direction):
        """Supremum of t with lam + t * direction in the domain: no end."""
        return np.inf


class DenseQuadratic(Quadratic):
    """R(lam) = lam' Q lam / 2 with Q stored."""

    def __init__(self, Q):
        self.Q = Q

    def mean_diagonal(self):
        """Mean of the diagonal of Q."""
        return float(np.trace(self.Q)) / max(len(self.Q), 1) or 1.0

    def value_and_margins(self, lam):
        """R(lam) and its gradient."""
        margins = self.Q @ lam
        return 0.5 * float(lam @ margins), margins

    def solver(self, lam, diagonal):
        """Newton system (H + diag) x = rhs."""
        A = np.empty_like(self.Q)
        for lo in range(0, len(A), _BLOCK):  # so that Ctrl-C is seen
            A[lo : lo + _BLOCK] = self.Q[lo : lo + _BLOCK]
        A.flat[:: len(A) + 1] += diagonal
        L = blocked_cholesky(A)
        return NewtonSystem(lambda rhs: solve_lower(L, rhs))

    def restricted(self, index, lam):
        """Newton systems over a subset of the multipliers, at lam."""
        return DenseQuadratic(self.Q[np.ix_(index, index)])


class LowRankQuadratic(Quadratic):
    """R(lam) = sum_i c_i w_i^2 / 2, w = Z' lam: O(n r min(n, r)) a step, O(n r) memory.

    Parameters
    ----------
    Z : ndarray or TallMatrix (n, r)
    curvature : ndarray (r,), optional
        c >= 0 of every column; one by default.
    """

    def __init__(self, Z, curvature=None):
        self.Z = Z
        self.curvature = np.ones(Z.shape[1]) if curvature is None else curvature
        self._last = None, None, None  # multipliers, Z' times them, value and gradient

    def along(self, lam):
        """Z' lam (r,), which is asked for again and again."""
        key = lam.tobytes()  # quick to compare
        if key != self._last[0]:
            self._last = key, transposed_times(self.Z, lam), None
        return self._last[1]

    def mean_diagonal(self):
        """Mean of the diagonal of the Hessian."""
        Z = as_array(self.Z)
        squares = np.einsum("ij,ij->j", Z, Z)
        return float(squares @ self.curvature) / max(len(Z), 1) or 1.0

    def value_and_margins(self, lam):
        """R(lam) and its gradient."""
        w = self.along(lam)
        key, _, answer = self._last
        if answer is None:
            value, slope = self._value_and_slope(w)
            answer = value, times(self.Z, slope)
            answer[1].setflags(write=False)
            self._last = key, w, answer
        return answer

    def _value_and_slope(self, w):
        """R as a function of w = Z' lam, and its gradient there."""
        slope = self.curvature * w
        return 0.5 * float(w @ slope), slope

    def scale(self, lam):
        """Curvature of R along each column of Z, (r,)."""
        return self.curvature

    def solver(self, lam, diagonal):
        """Newton system (Z S Z' + diag) x = rhs."""
        n, r = self.Z.shape
        if not r:
            return NewtonSystem(lambda rhs: (rhs.T / diagonal).T)
        root = np.sqrt(self.scale(lam))
        if r > n or n <= _DENSE:
            A, Z = np.empty((n, n)), as_array(self.Z) * root
            for part in row_chunks(n, n * r):
                np.matmul(Z[part], Z[: part.stop].T, out=A[part, : part.stop])
            A.flat[:: n + 1] += diagonal
            L = blocked_cholesky(A)
            return NewtonSystem(lambda rhs: solve_lower(L, rhs))
        # Woodbury's identity
        inner = weighted_gram(self.Z, 1.0 / diagonal) * np.outer(root, root)
        inner.flat[:: r + 1] += 1.0
        L = blocked_cholesky(inner)

        def solve(rhs):
            x = (rhs.T / diagonal).T
            along = solve_lower(L, (root * transposed_times(self.Z, x).T).T)
            return x - (times(self.Z, (root * along.T).T).T / diagonal).T

        return NewtonSystem(solve)

    def restricted(self, index, lam):
        """Newton systems over a subset of the multipliers, at lam.

        Of most of many rows, Z is not copied: those left out do not move.
        """
        n, r = self.Z.shape
        if max(_DENSE, r, n // 2) < len(index) < n:
            return _MostRows(self, index)
        return LowRankQuadratic(self.Z[index], self.curvature)


class _MostRows:
    """Newton systems over most multipliers, by one over all of them."""

    def __init__(self, quadratic, index):
        self.quadratic, self.index = quadratic, index

    def solver(self, lam, diagonal):
        n, _ = self.quadratic.Z.shape
        full = np.full(n, np.inf)
        full[self.index] = diagonal
        solve_all = self.quadratic.solver(lam, full)

        def solve(rhs):
            padded = np.zeros((n, *rhs.shape[1:]))
            padded[self.index] = rhs
            return solve_all(padded)[self.index]

        return NewtonSystem(solve)
