"""Products with the Hessian of blocks between the multipliers that are free."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from maxent._optimize.block_sum import Diagonal

_STORED = 1000  # multipliers up to which their matrix may be made, 8 MB


class FreeHessian:
    """Hessian of R and of the potentials at one point, between some multipliers.

    Parameters
    ----------
    R : BlockSum
    lam : ndarray (n,)
    free : ndarray of int (size,)
    diagonal : ndarray (size,)
        Minus the second derivatives of the potentials.
    curvatures : list of ndarray or None
        What every block adds along its slacks.
    patience : float
        Products, in units of the size, after which the matrix is made.

    Attributes
    ----------
    products : int
        Products made so far.
    """

    def __init__(self, R, lam, free, diagonal, curvatures, patience=1.0):
        self.patience = patience
        self.R, self.size, self.diagonal = R, len(free), np.zeros(len(free))
        self.bias = None if R.bias is None else R.bias[free]
        self.products, self._stored = 0, None
        self.parts = []
        for block, A, a, extra in zip(
            R.blocks, R.maps, R._at(lam).weights, curvatures, strict=True
        ):
            if isinstance(A, Diagonal):
                rows, B = free, Diagonal(A.entries[free])
            else:
                B = A[:, free]
                rows = np.flatnonzero(np.diff(B.indptr))
                B = B[rows]
            self.parts.append((block, B, B.T, block.hessian_among(a, rows, extra)))
        self._set_diagonal(diagonal)

    def _set_diagonal(self, curvature):
        """Curvatures of the potentials; where they have none, a proximal term.

        Multipliers of equal rows could grow against one another without end.
        """
        least = 1e-12 * float(curvature.max(initial=0.0))
        if not least:
            along = self.product(np.cos(1.0 + np.arange(self.size)))
            # where nothing is curved, steps go on to the bounds
            least = max(1e-9 * float(np.abs(along).max(initial=0.0)), 1e-12)
        self.diagonal = np.maximum(curvature, least)

    def product(self, x):
        """The Hessian times x (size,)."""
        if self._stored is not None:
            return self._stored @ x
        self.products += 1
        out = self.diagonal * x
        for block, B, Bt, product in self.parts:
            found = product(B @ x)
            self.R._check_answer(block, "hessian_product", found, (B.shape[0],))
            out += Bt @ found
        if self.bias is not None:
            out += self.bias @ (self.bias.T @ x)
        return out

    def wants_storing(self):
        """Whether products were so many that the matrix is worth its making."""
        few = self.products <= self.patience * self.size
        return self._stored is None and self.size <= _STORED and not few

    @property
    def stored(self):
        """Whether the matrix was made."""
        return self._stored is not None

    def store(self):
        """Make and keep the matrix, one product a column."""
        columns = [self.product(unit) for unit in np.eye(self.size)]
        matrix = np.array(columns)
        self._stored = 0.5 * (matrix + matrix.T)

    def preconditioner(self, at):
        """Function that nearly solves with the rows and columns `at`."""
        if self._stored is not None:
            A = self._stored[np.ix_(at, at)]
            A.flat[:: len(at) + 1] *= 1.0 + 1e-14
            try:
                factor = cho_factor(A)
            except LinAlgError:
                pass
            else:
                return lambda r: cho_solve(factor, r)
        scale = self.diagonal[at]
        return lambda r: (r.T / scale).T
