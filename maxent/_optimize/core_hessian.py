"""Newton systems where the curvature of few potentials is small.

Margin priors with an infinite slope at zero give every row a multiplier, most of them
next to nothing: there the curvature of the potential is far larger than that of the
blocks, and the row hardly depends on the others. The matrix between the rest, the core,
and the diagonal elsewhere are a preconditioner under which conjugate gradients end
after a few products.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from maxent._optimize.hessian_products import DIRECT_SIZE, FreeHessian
from maxent._optimize.recycled_hessian import few_products

_COUPLED = 10.0  # times the mean curvature of the blocks, beyond which rows are alone
_WORTH = 5e7  # multiplications of a factorisation below which that is the quicker way
_SHARE = 0.6  # of the rows, and of the columns of factors: more cost as much as all


def core_solver(R, lam, diagonal, index, curvatures, exact):
    """Function that solves (Hessian + diag) x = rhs, or None where a factor is quicker.

    That is for small systems, and where the core is large.

    Parameters
    ----------
    R : BlockSum
        Of blocks with cheap products.
    lam, diagonal, index, curvatures
        As for :meth:`BlockSum.solver`.
    exact : callable()
        Makes the solver by a factor, for right-hand sides that take many products.
    """
    at, columns = np.arange(R.n)[index], sum(block.rank for block in R.blocks)
    few = min(len(at), columns)
    if len(at) * columns * few < _WORTH:
        return None
    extras = [None] * len(R.blocks) if curvatures is None else curvatures
    alone = FreeHessian(R, lam, at, np.ones(len(at)), extras)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], len(at))
    mean = float(signs @ alone.product(signs)) / len(at) - 1.0  # of its diagonal
    core = np.flatnonzero(diagonal <= _COUPLED * mean)
    if len(core) > min(_SHARE * few, DIRECT_SIZE):
        return None
    try:
        H = FreeHessian(R, lam, at, diagonal, extras)
        if len(core):
            among = FreeHessian(R, lam, at[core], H.diagonal[core], extras)
            factor = cho_factor(among.assembled_matrix(), check_finite=False)
    except LinAlgError:
        return None
    exact_solver = None

    def precondition(r):
        z = r / H.diagonal
        if len(core):
            z[core] = cho_solve(factor, r[core], check_finite=False)
        return z

    def solve(rhs):
        nonlocal exact_solver
        if exact_solver is None:
            found = few_products(H.product, precondition, rhs)
            if found is not None:
                return found
            exact_solver = exact()
        return exact_solver(rhs)

    return solve
