"""Products with the Hessian of blocks between the multipliers that are free."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from maxent._optimize.maps import Diagonal
from maxent._optimize.newton_system import NewtonSystem
from maxent._optimize.quadratics import LowRankQuadratic
from maxent._support.linalg import times, transposed_times

_SIZE = 2500  # multipliers, and rows, up to which the matrix may be made, 50 MB
_FACTOR_COST = 0.05  # of a factor of such a matrix in products, by size
_FEW = 0.25  # columns of a factor, as a share of the multipliers, that count as few
_STORED = 1e8  # entries of a factor
_WORST = 1e8  # largest diagonal of the Hessian over that of the potentials, of a factor
_DROPPED = 0.05  # share of the rows of a factor that may have met a bound since
_RENEW_AFTER = 15  # products per right-hand side; three sides cost about half a matrix
_ACCURACY = 1e-5  # of a step by a recycled matrix; its error shows in the next residual


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

    @classmethod
    def between(cls, block, A, weights, curvature, free):
        """The part of a block between the multipliers at `free`, A its map."""
        if isinstance(A, Diagonal):
            return cls(block, free, weights, curvature, Diagonal(A.entries[free]))
        B = A[:, free]
        rows = np.flatnonzero(np.diff(B.indptr))
        return cls(block, rows, weights, curvature, B[rows])

    def matrix(self):
        """B' H B, or None if the block makes no H."""
        H = self.block.hessian_matrix(self.weights, self.rows, self.curvature)
        if H is None or isinstance(self.B, Diagonal):
            return None if H is None else self.B.congruent(H)
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
        The additions of every block along its slacks; None for none.
    assemble_after : float
        Cost of products, in units of that of the matrix, after which it is made.

    Attributes
    ----------
    products : int
        Products made so far by the blocks.
    direct : bool
        True while the blocks are expected to make the matrix themselves.
    work : float
        The products, those with a matrix too, and the making of its factors.
    """

    def __init__(self, R, lam, free, diagonal, curvatures=None, assemble_after=1.0):
        curvatures = [None] * len(R.blocks) if curvatures is None else curvatures
        self.R, self.size, self.assemble_after = R, len(free), assemble_after
        self.bias = None if R.bias is None else R.bias[free]
        self.products, self.work = 0, 0.0
        self._matrix = self._factor = None
        # Columns G, few, with Hessian G G' and systems by Woodbury's identity.
        self._columns, self._at = None, (lam, free, curvatures)
        rank = sum(block.rank for block in R.blocks)
        self._rank = rank + (0 if R.bias is None else R.bias.shape[1])
        self._low = rank > 0 and self._rank <= _FEW * self.size
        self._low &= R.n * self._rank <= _STORED
        weights = R.row_weights(lam)
        self.parts = [
            _Part.between(*of_block, free)
            for of_block in zip(R.blocks, R.maps, weights, curvatures, strict=True)
        ]
        # The matrix between rows, as of all steps of sequences, may be far larger.
        self.direct = all(len(part.rows) <= _SIZE for part in self.parts)
        # Where products are no cheaper than a factor, the matrix is made at once.
        cheap = all(block.cheap_products for block in R.blocks)
        self._cost = cheap * max(block._matrix_cost for block in R.blocks)
        self.diagonal = np.zeros(self.size)
        self.diagonal = self._without_zeros(diagonal)

    def _without_zeros(self, curvature):
        """Curvatures of the potentials; where they have none, a proximal term.

        Multipliers of equal rows could grow against one another without end.
        """
        if curvature.all():
            return curvature
        least = 1e-12 * float(curvature.max(initial=0.0))
        if not least:
            along = self.product(np.cos(1.0 + np.arange(self.size)))
            # Where R is flat as well, steps go on to the bounds.
            least = max(1e-9 * float(np.abs(along).max(initial=0.0)), 1e-12)
        return np.maximum(curvature, least)

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
            answer = part.product(part.B @ x)
            self._check(part, answer, (len(part.rows),))
            out += part.Bt @ answer
        if self.bias is not None:
            out += self.bias @ (self.bias.T @ x)
        return out

    def _check(self, part, answer, shape):
        self.R.check_answer(part.block, "hessian_product", answer, shape)

    @property
    def assembled(self):
        """True if the matrix was made, or a factor of few columns."""
        return self._matrix is not None or self._columns is not None

    def should_assemble(self):
        """True if products were so many that the matrix is worth its making."""
        if self.assembled or not (self._low or self.size <= _SIZE):
            return False
        size = self._rank if self._low else self.size
        cost = self._cost if self._low or self.direct else 1.0
        return self.products >= cost * self.assemble_after * size

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
        self._matrix = self._by_blocks() if self.direct else self._by_products()

    def _by_blocks(self):
        """The matrix from those of the blocks; None where one makes none."""
        matrix = np.diag(self.diagonal)
        for part in self.parts:
            H = part.matrix()
            if H is None:
                self.direct = False
                return None
            self._check(part, H.ravel(), (None,))
            matrix += H
        return matrix if self.bias is None else matrix + self.bias @ self.bias.T

    def _by_products(self):
        matrix = np.array([self.product(unit) for unit in np.eye(self.size)])
        return 0.5 * (matrix + matrix.T)

    def assembled_matrix(self):
        """The matrix, made by whatever way there is."""
        self._low = False
        while self._matrix is None:
            self.assemble()
        return self._matrix

    def preconditioner(self, at):
        """Function that nearly solves with the rows and columns `at`."""
        try:
            if self._matrix is not None:
                return self._factored(at)
            if self._columns is not None:
                return LowRankQuadratic(self._columns[at]).solver(
                    None, self.diagonal[at]
                )
        except LinAlgError:
            pass
        scale = self.diagonal[at]
        return lambda r: (r.T / scale).T

    def _factored(self, at):
        """Solver of the matrix between the multipliers `at`.

        The inverse between more rows, restricted to these, differs from theirs by a
        matrix of as small a rank as there are others; a new factor costs more than the
        steps of conjugate gradients that this takes.
        """
        if self._factor is not None:
            among, factor = self._factor
            place = np.minimum(np.searchsorted(among, at), len(among) - 1)
            few = len(among) - len(at) <= _DROPPED * len(among)
            if few and (among[place] == at).all():
                return partial(_restricted_solve, factor, len(among), place)
        self.work += _FACTOR_COST * len(at)
        factor = _factor_of(self._matrix, at, 1e-14 * self._matrix.diagonal()[at])
        self._factor = at, factor
        return partial(cho_solve, factor, check_finite=False)


class RecycledHessian:
    """Newton systems of one problem, by a Hessian of some steps before.

    Blocks over trees make a product with their Hessian in about the time of a gradient,
    and the matrix in a hundred times as much. Between the steps of an interior point
    the diagonal of the potentials changes by orders of magnitude and the Hessian of the
    blocks little: an old one, with the new diagonal, is a preconditioner under which
    conjugate gradients end after a few products. Where they do not, the matrix is made
    anew.

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
        return cheap and R.n <= _SIZE and sum(b.rank for b in R.blocks) >= R.n

    def solver(self, lam, diagonal, index, curvatures):
        """Newton system of the Hessian and the diagonal at the multipliers `index`."""
        at = np.arange(self.R.n)[index]
        H = FreeHessian(self.R, lam, at, diagonal, curvatures)
        renewed = partial(self._renewed, H, lam, curvatures, at)
        if self.matrix is None:
            return NewtonSystem(renewed())
        try:
            nearly = self._by_factor(at, H.diagonal)
        except LinAlgError:
            return NewtonSystem(renewed())
        return NewtonSystem(
            product=H.product,
            precondition=nearly,
            factor=renewed,
            most=_RENEW_AFTER,
            accuracy=_ACCURACY,
        )

    def _by_factor(self, at, diagonal):
        factor = _factor_of(self.matrix, at, diagonal)
        return partial(cho_solve, factor, check_finite=False)

    def _renewed(self, H, lam, curvatures, at):
        """Solutions by the matrix of this point, which is kept."""
        n = self.R.n
        whole = FreeHessian(self.R, lam, np.arange(n), np.ones(n), curvatures)
        self.matrix = whole.assembled_matrix() - np.eye(n)
        return self._by_factor(at, H.diagonal)


def _factor_of(matrix, at, diagonal):
    """Cholesky factor of some rows and columns of a matrix, and a diagonal."""
    A = matrix[np.ix_(at, at)]
    A.flat[:: len(at) + 1] += diagonal
    return cho_factor(A, overwrite_a=True, check_finite=False)


def _restricted_solve(factor, size, place, r):
    """Solution at some places of a system whose right-hand side is zero elsewhere."""
    full = np.zeros((size, *r.shape[1:]))
    full[place] = r
    return cho_solve(factor, full, check_finite=False)[place]
