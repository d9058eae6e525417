"""Products with the Hessian of blocks between the multipliers that are free."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from maxent._optimize.maps import Diagonal
from maxent._optimize.quadratics import LowRankQuadratic
from maxent._support.linalg import times, transposed_times

_SIZE = 1000  # multipliers up to which products make their matrix, 8 MB
_DIRECT_SIZE = 2500  # multipliers, and rows, up to which blocks make it, 50 MB
_FACTOR_COST = 0.05  # of a factor of such a matrix in products, by size
_FEW = 0.25  # columns of a factor, as a share of the multipliers, that count as few
_STORED = 1e8  # entries of a factor
_WORST = 1e8  # largest diagonal of the Hessian over that of the potentials, of a factor
_DROPPED = 0.05  # share of the rows of a factor that may have met a bound since


@dataclass
class _Part:
    """A block between its rows that free multipliers weigh, B their map."""

    block: object
    rows: np.ndarray
    weights: np.ndarray
    curvature: np.ndarray | None
    B: object

    def __post_init__(self):
        self.Bt = self.B.T
        self.product = self.block.hessian_among(self.weights, self.rows, self.curvature)

    def matrix(self):
        """B' H B, or None if the block makes no H."""
        H = self.block.hessian_matrix(self.weights, self.rows, self.curvature)
        if H is None:
            return None
        if isinstance(self.B, Diagonal):
            return self.B.congruent(H)
        return self.Bt @ (self.Bt @ H).T


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
    assemble_after : float
        Cost of products, in units of that of the matrix, after which it is made.

    Attributes
    ----------
    products : int
        Products made so far by the blocks.
    direct : bool
        Whether blocks make the matrix, as far as is known.
    work : float
        The same with those with a matrix that was made and the making of its factors.
    """

    def __init__(self, R, lam, free, diagonal, curvatures, assemble_after=1.0):
        self.assemble_after = assemble_after
        self.R, self.size, self.diagonal = R, len(free), np.zeros(len(free))
        self.bias = None if R.bias is None else R.bias[free]
        self.products, self.work = 0, 0.0
        # where products are no cheaper than a factor, the matrix is made at once
        every = all(block.cheap_products for block in R.blocks)
        costs = [block._matrix_cost for block in R.blocks]
        self._direct_cost = max(costs) if every else 0.0
        self._matrix = self._factor = None
        # G with Hessian G G', where that has few columns: solved by Woodbury's identity
        self._columns, self._at = None, (lam, free, curvatures)
        rank = sum(block.rank for block in R.blocks)
        self._rank = rank + (0 if R.bias is None else R.bias.shape[1])
        self._low = rank > 0 and self._rank <= _FEW * self.size
        self._low &= R.n * self._rank <= _STORED
        self.parts = []
        for block, A, a, extra in zip(
            R.blocks, R.maps, R.row_weights(lam), curvatures, strict=True
        ):
            if isinstance(A, Diagonal):
                rows, B = free, Diagonal(A.entries[free])
            else:
                B = A[:, free]
                rows = np.flatnonzero(np.diff(B.indptr))
                B = B[rows]
            self.parts.append(_Part(block, rows, a, extra, B))
        # the matrix between rows, as of all steps of sequences, may be far larger
        self.direct = all(len(part.rows) <= _DIRECT_SIZE for part in self.parts)
        self._set_diagonal(diagonal)

    def _set_diagonal(self, curvature):
        """Curvatures of the potentials; where they have none, a proximal term.

        Multipliers of equal rows could grow against one another without end.
        """
        if curvature.all():
            self.diagonal = curvature
            return
        least = 1e-12 * float(curvature.max(initial=0.0))
        if not least:
            along = self.product(np.cos(1.0 + np.arange(self.size)))
            # where nothing is curved, steps go on to the bounds
            least = max(1e-9 * float(np.abs(along).max(initial=0.0)), 1e-12)
        self.diagonal = np.maximum(curvature, least)

    def product(self, x):
        """The Hessian times x (size,)."""
        self.work += 1.0
        if self._matrix is not None:
            return self._matrix @ x
        if self._columns is not None:
            along = transposed_times(self._columns, x)
            return self.diagonal * x + times(self._columns, along)
        self.products += 1
        out = self.diagonal * x
        for part in self.parts:
            found = part.product(part.B @ x)
            self._check(part, found, (len(part.rows),))
            out += part.Bt @ found
        if self.bias is not None:
            out += self.bias @ (self.bias.T @ x)
        return out

    def _check(self, part, found, shape):
        self.R.check_answer(part.block, "hessian_product", found, shape)

    @property
    def assembled(self):
        """True if the matrix was made, or a factor of few columns."""
        return self._matrix is not None or self._columns is not None

    def should_assemble(self):
        """True if products were so many that the matrix is worth its making."""
        if self._low and not self.assembled:
            return self.products >= self._direct_cost * self.assemble_after * self._rank
        if self.assembled or self.size > (_DIRECT_SIZE if self.direct else _SIZE):
            return False
        cost = self._direct_cost if self.direct else 1.0
        return self.products >= cost * self.assemble_after * self.size

    def assemble(self):
        """Make and keep the matrix: by the blocks, or one product per column.

        Where blocks make none, the columns wait for more products. A factor of few
        columns takes its place.
        """
        if self._low:
            self._low = False
            lam, free, curvatures = self._at
            G = self.R.factor(lam, curvatures)[free]
            largest = float(np.einsum("ij,ij->i", G, G).max(initial=0.0))
            if largest <= _WORST * self.diagonal.min():
                self._columns = G
            return
        if not self.direct:
            columns = [self.product(unit) for unit in np.eye(self.size)]
            matrix = np.array(columns)
            self._matrix = 0.5 * (matrix + matrix.T)
            return
        matrix = np.diag(self.diagonal)
        for part in self.parts:
            found = part.matrix()
            if found is None:
                self.direct = False
                return
            self._check(part, found.ravel(), (None,))
            matrix += found
        if self.bias is not None:
            matrix += self.bias @ self.bias.T
        self._matrix = matrix

    def assembled_matrix(self):
        """The matrix, made by whatever way there is."""
        self._low = False
        while self._matrix is None:
            self.assemble()
        return self._matrix

    def preconditioner(self, at):
        """Function that nearly solves with the rows and columns `at`.

        The inverse between more rows, restricted to these, differs from theirs by a
        matrix of as small a rank as there are others; a new factor costs more than the
        steps of conjugate gradients that this takes.
        """
        if self._columns is not None:
            try:
                own = LowRankQuadratic(self._columns[at])
                return own.solver(None, self.diagonal[at])
            except LinAlgError:
                return self._scaling(at)
        if self._matrix is None:
            return self._scaling(at)
        if self._factor is not None:
            among, factor = self._factor
            place = np.minimum(np.searchsorted(among, at), len(among) - 1)
            few = len(among) - len(at) <= _DROPPED * len(among)
            if few and (among[place] == at).all():
                return partial(_restricted_solve, factor, len(among), place)
        A = self._matrix[np.ix_(at, at)]
        A.flat[:: len(at) + 1] *= 1.0 + 1e-14
        self.work += _FACTOR_COST * len(at)
        try:
            factor = cho_factor(A, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return self._scaling(at)
        self._factor = at, factor
        return partial(cho_solve, factor, check_finite=False)

    def _scaling(self, at):
        scale = self.diagonal[at]
        return lambda r: (r.T / scale).T


def _restricted_solve(factor, size, place, r):
    """Solution at some places of a system whose right-hand side is zero elsewhere."""
    full = np.zeros((size, *r.shape[1:]))
    full[place] = r
    return cho_solve(factor, full, check_finite=False)[place]
