"""Newton systems between bounds, solved by a factor or by products.

    (H + D) x + E y = rhs,   E' x = lack

Conjugate gradients between directions that keep E' x (Gould, Hribar & Nocedal 2001)
solve it in one run, whatever the number of equalities.
"""

from __future__ import annotations

from itertools import islice

import numpy as np

from maxent._support.linalg import small_solve

NEAREST_END = 1.0 - 1e-15  # share of an open domain that multipliers stay below


class Projection:
    """Function of a slope r: the y of the equalities, r - E y, and `solve` of that.

    The last is a direction with E' z = 0, or E' z = lack.

    Parameters
    ----------
    solve : callable (n,) or (n, k) -> the same
        Symmetric and positive: a preconditioner, or an exact solver.
    E : ndarray (n, k) or None
        Without equalities y is None.
    """

    def __init__(self, solve, E):
        self.solve, self.E = solve, E
        if E is not None:
            self.along = solve(E)
            self.among = E.T @ self.along

    def __call__(self, r, lack=0.0):
        z = self.solve(r)
        if self.E is None:
            return None, r, z
        y = small_solve(self.among, self.E.T @ z - lack)
        return y, r - self.E @ y, z - self.along @ y

    def towards(self, lack):
        """The smallest move x, in the norm of the preconditioner, with E' x = lack."""
        return self.along @ small_solve(self.among, lack)


def conjugate_gradients(product, project, slope):
    """Iterates that maximise slope' x - x' H x / 2 with E' x = 0, from x = 0.

    Yields x, y, the projected slope r that is left, z and r' z, for z the direction of
    `project`. Ends where H has no positive curvature along the next direction.
    """
    x = np.zeros_like(slope)
    y, r, z = project(slope)
    p, size = z, float(r @ z)
    while True:
        yield x, y, r, z, size
        Hp = product(p)
        curvature = float(p @ Hp)
        if not curvature > 0:
            return
        a = size / curvature
        x = x + a * p
        more, r, z = project(r - a * Hp)
        y = y if y is None else y + more
        last, size = size, float(r @ z)
        p = z + size / last * p


class NewtonSystem:
    """Function of rhs (n,) or (n, k) that solves (H + D) x = rhs.

    Parameters
    ----------
    solve : callable (n,) or (n, k) -> the same, or None
        An exact solver. None for a system that is known by products.
    product : callable (n,) -> (n,)
        Products with H + D.
    precondition : callable (n,) or (n, k) -> the same
        Solves nearly.
    factor : callable() or None
        Makes an exact solver, for right-hand sides that take too many products. None:
        their last iterate is the answer.
    most : int
        Products for one right-hand side.
    accuracy : float
        Error of x over x, in the norm of the system, estimated by the residual.
    """

    def __init__(
        self,
        solve=None,
        *,
        product=None,
        precondition=None,
        factor=None,
        most=0,
        accuracy=0.0,
    ):
        self._solve, self._factor = solve, factor
        self._product, self._precondition = product, precondition
        self._most, self._accuracy = most, accuracy

    def __call__(self, rhs):
        if self._solve is not None:
            return self._solve(rhs)
        solve = self.bordered(None)
        columns = [solve(b, None)[0] for b in rhs.reshape(len(rhs), -1).T]
        return np.column_stack(columns).reshape(rhs.shape)

    def bordered(self, E):
        """Function of (rhs, lack): x and y of the system with the equalities E."""
        nearly = exactly = None

        def solve_both(rhs, lack):
            nonlocal nearly, exactly
            if self._solve is None:
                nearly = nearly or Projection(self._precondition, E)
                solution = self._by_products(nearly, rhs, lack)
                if solution is not None:
                    return solution
                self._solve = self._factor()
            exactly = exactly or Projection(self._solve, E)
            y, _, x = exactly(rhs, lack)
            return x, y

        return solve_both

    def _by_products(self, project, rhs, lack):
        """Solution x and y, or None where it takes too many products."""
        start, r, enough = 0.0, rhs, None
        if lack is not None and lack.any():
            start = project.towards(lack)
            r = rhs - self._product(start)
        iterates = conjugate_gradients(self._product, project, r)
        for x, y, _, _, size in islice(iterates, self._most + 1):
            enough = self._accuracy**2 * size if enough is None else enough
            if size <= enough:
                return start + x, y
        return None if self._factor else (start + x, y)


def equality_residual(E, lam):
    """Return -E' lam, the residual of the equalities; None without any."""
    return None if E is None else -(E.T @ lam)


def longest_step(x, dx, bound=None):
    """Largest t <= 1 with x + t dx >= 0 (and <= bound)."""
    with np.errstate(all="ignore"):  # 0 / 0 is no end: fmax passes over it
        most = np.fmax.reduce(-dx / x, initial=1.0)
        if bound is not None:
            most = max(most, np.fmax.reduce(dx / (bound - x), initial=1.0))
    return 1.0 / float(most)
