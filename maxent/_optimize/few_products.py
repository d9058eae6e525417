"""Newton systems by few products with the Hessian, and by a factor beyond.

    (H + D) x + E y = rhs,   E' x = lack

Conjugate gradients between directions that keep E' x (Gould, Hribar & Nocedal 2001)
solve it in one run, whatever the number of equalities.
"""

from __future__ import annotations

import numpy as np

from maxent._optimize.newton_step import Projection, bordered


class FewProducts:
    """Function of rhs (n,) or (n, k) that solves (H + D) x = rhs.

    Parameters
    ----------
    product : callable (n,) -> (n,)
        Products with H + D.
    precondition : callable (n,) or (n, k) -> the same
        Solves nearly.
    exact : callable()
        Makes a solver by a factor, for right-hand sides that take too many products.
    most : int
        Products for one right-hand side.
    accuracy : float
        Error of x over x, in the norm of the system.
    """

    def __init__(self, product, precondition, exact, *, most, accuracy):
        self._product, self._precondition = product, precondition
        self._make_exact, self._exact = exact, None
        self._options = {"most": most, "accuracy": accuracy}

    def __call__(self, rhs):
        project = Projection(self._precondition, None)
        columns = []
        for b in rhs.reshape(len(rhs), -1).T:
            found = self._found(b, None, project)
            if found is None:
                return self._exact(rhs)
            columns.append(found[0])
        return np.column_stack(columns).reshape(rhs.shape)

    def bordered(self, E):
        """Function of (rhs, lack), as :func:`.newton_step.bordered` makes one."""
        project, by_factor = Projection(self._precondition, E), None

        def solve_both(rhs, lack):
            nonlocal by_factor
            found = self._found(rhs, lack, project)
            if found is None:
                by_factor = by_factor or bordered(self._exact, E)
                found = by_factor(rhs, lack)
            return found

        return solve_both

    def _found(self, rhs, lack, project):
        """x and y by products; None once a factor is the quicker way."""
        if self._exact is None:
            found = few_products(self._product, project, rhs, lack, **self._options)
            if found is not None:
                return found
            self._exact = self._make_exact()
        return None


def few_products(product, project, rhs, lack, *, most, accuracy):
    """Solution x and y of the bordered system, or None if it takes many products.

    Parameters
    ----------
    product : callable (n,) -> (n,)
    project : Projection
    rhs : ndarray (n,)
    lack : ndarray (k,) or None
        Of the k equalities; None without any.
    most, accuracy
        As for :class:`FewProducts`; the error is estimated by the residual.
    """
    x, r = np.zeros(len(rhs)), rhs
    if lack is not None and lack.any():
        x = project.towards(lack)
        r = rhs - product(x)
    y, r, z = project(r)
    p, size = z, float(r @ z)
    enough = accuracy**2 * size
    for _ in range(most):
        if not size > enough:
            break
        Hp = product(p)
        curvature = float(p @ Hp)
        if not curvature > 0:  # of rounding
            return None
        a = size / curvature
        x = x + a * p
        more, r, z = project(r - a * Hp)
        y = y if y is None else y + more
        last, size = size, float(r @ z)
        p = z + size / last * p
    return (x, y) if size <= enough else None
