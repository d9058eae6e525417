"""Pieces of Newton steps between bounds: the bordered system, the longest step."""

from __future__ import annotations

import numpy as np

from maxent._support.linalg import small_solve

NEAREST_END = 1.0 - 1e-15  # share of an open domain that multipliers stay below


def equality_residual(E, lam):
    """Return -E' lam, the residual of the equalities; None without any."""
    return None if E is None else -(E.T @ lam)


def bordered(solve, E):
    """Function of (rhs, lack): dlam, db of (H + D) dlam + E db = rhs, E' dlam = lack.

    `solve` answers for H + D alone; what it says of E is asked once, with the first
    right-hand side. One with a method `bordered` makes the function itself.
    """
    if E is None:
        return lambda rhs, lack: (solve(rhs), None)
    if hasattr(solve, "bordered"):
        return solve.bordered(E)
    S = among = None

    def solve_both(rhs, lack):
        nonlocal S, among
        if S is None:
            every = solve(np.column_stack([rhs, E]))
            x, S = every[:, 0], every[:, 1:]
            among = E.T @ S
        else:
            x = solve(rhs)
        db = small_solve(among, E.T @ x - lack)
        return x - S @ db, db

    return solve_both


class Projection:
    """Function of a slope r: the y of the equalities, r - E y, and `solve` of that.

    The last is a direction with E' z = 0.

    Parameters
    ----------
    solve : callable (n,) or (n, k) -> the same
        Symmetric and positive, a preconditioner.
    E : ndarray (n, k) or None
        Without equalities y is None.
    """

    def __init__(self, solve, E):
        self.solve, self.E = solve, E
        if E is not None:
            self.along = solve(E)
            self.among = E.T @ self.along

    def __call__(self, r):
        z = self.solve(r)
        if self.E is None:
            return None, r, z
        y = small_solve(self.among, self.E.T @ z)
        return y, r - self.E @ y, z - self.along @ y

    def towards(self, lack):
        """The smallest move x, in the norm of the preconditioner, with E' x = lack."""
        return self.along @ small_solve(self.among, lack)


def longest_step(x, dx, bound=None):
    """Largest t <= 1 with x + t dx >= 0 (and <= bound)."""
    with np.errstate(all="ignore"):  # 0 / 0 is no end: fmax passes over it
        most = np.fmax.reduce(-dx / x, initial=1.0)
        if bound is not None:
            most = max(most, np.fmax.reduce(dx / (bound - x), initial=1.0))
    return 1.0 / float(most)
