"""Newton systems of an interior point by a Hessian of some steps before.

Blocks over trees make a product with their Hessian in about the time of a gradient, and
the matrix in a hundred times as much. Between the steps of an interior point the
diagonal of the potentials changes by orders of magnitude and the Hessian of the blocks
little: an old one, with the new diagonal, is a preconditioner under which conjugate
gradients end after a few products. Where they do not, the matrix is made anew.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from maxent._optimize.few_products import FewProducts
from maxent._optimize.hessian_products import FreeHessian

_LARGEST = 2500  # multipliers whose matrix may be stored, 50 MB
_MOST = 15  # products per right-hand side; three sides cost about half a matrix
_ACCURACY = 1e-5  # of a step; its error shows in the next residual


class RecycledHessian:
    """Newton systems of one problem, at one point after another.

    Parameters
    ----------
    R : BlockSum
    """

    def __init__(self, R):
        self.R, self.matrix = R, None

    @classmethod
    def serves(cls, R):
        """True if its products are cheap enough, and its matrix small."""
        cheap = all(block.cheap_products for block in R.blocks)
        ranks = sum(block.rank for block in R.blocks)
        return cheap and R.n <= _LARGEST and ranks >= R.n

    def solver(self, lam, diagonal, index, curvatures):
        """Function that solves (Hessian + diag) x = rhs; None without a factor."""
        at = np.arange(self.R.n)[index]
        extras = [None] * len(self.R.blocks) if curvatures is None else curvatures
        H = FreeHessian(self.R, lam, at, diagonal, extras)
        if self.matrix is None:
            return self._renewed(H, lam, extras, at)
        try:
            factor = self._factor(at, H.diagonal)
        except LinAlgError:
            return self._renewed(H, lam, extras, at)
        precondition = partial(cho_solve, factor, check_finite=False)
        renewed = partial(self._renewed, H, lam, extras, at)
        return FewProducts(
            H.product, precondition, renewed, most=_MOST, accuracy=_ACCURACY
        )

    def _factor(self, at, diagonal):
        A = self.matrix[np.ix_(at, at)]
        A.flat[:: len(at) + 1] += diagonal
        return cho_factor(A, overwrite_a=True, check_finite=False)

    def _renewed(self, H, lam, extras, at):
        """Direct solutions by the matrix of this point, which is kept."""
        n = self.R.n
        whole = FreeHessian(self.R, lam, np.arange(n), np.ones(n), extras)
        self.matrix = whole.assembled_matrix() - np.eye(n)
        factor = self._factor(at, H.diagonal)
        return lambda rhs: cho_solve(factor, rhs, check_finite=False)
