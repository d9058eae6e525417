"""The sum of the log-partition functions of blocks, as the interior point needs it.

    R(lam) = sum_s log Z_s(A_s lam) + variance |E' lam|^2 / 2

with its gradient, its Newton systems and the way to the boundary of its domain. What
blocks answer is checked here: they may be a user's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg

from maxent._core.tall_matrices import DenseRows, TallMatrix
from maxent._optimize.few_products import FewProducts
from maxent._optimize.hessian_products import FreeHessian
from maxent._optimize.mapped_factors import MappedFactors
from maxent._optimize.maps import Diagonal
from maxent._optimize.quadratics import LowRankQuadratic
from maxent._support import validation as v
from maxent._support.linalg import TALL, as_array, row_chunks
from maxent._support.validation import check_answer

_FACTOR_WORK = 3e10  # multiplications of a factorisation beyond which CG is faster
_FACTOR_SIZE = 1e8  # entries of the Hessian's factor that may be stored
_MATRIX_SIZE = 2000  # multipliers up to which CG may store the Hessian, 32 MB
_LEAST_PRODUCTS, _MOST_PRODUCTS = 10, 100  # for one system
_PRODUCT_COLUMNS = 20  # columns of factors whose making and use costs one of them
_RECYCLED_SIZE = 2500  # multipliers whose matrix may be stored, 50 MB
_RECYCLED_PRODUCTS = 15  # per right-hand side; three sides cost about half a matrix
_RECYCLED_ACCURACY = 1e-5  # of a step; its error shows in the next residual
_SLOPE_TOL = 1e-4  # of the sum of |mean|: rounding in log Z that leaves a gap of 1e-8


def _is_of_the_package(block):
    """True if the tests of this package have compared mean and log Z of a block."""
    parts = (block, getattr(block, "prior", block))
    return all(type(part).__module__.startswith("maxent.") for part in parts)


@dataclass
class _Point:
    """Multipliers (their bytes, quick to compare), and what they cost to know."""

    key: bytes
    weights: list[Any]
    value: tuple[Any, ...] | None = None
    factor: np.ndarray | TallMatrix | None = None
    curvatures: list[Any] | None = None


class BlockSum:
    """R(lam), for :func:`interior_point`.

    Parameters
    ----------
    blocks : list of Block
    maps : list of csr_array or Diagonal (block.n_rows, n)
    bias : ndarray (n, k) or None
        Columns of a Gaussian bias, scaled by its standard deviation.
    """

    homogeneous = False
    bounds_dual = False

    def __init__(self, blocks, maps, bias=None):
        self.blocks, self.maps = blocks, maps
        self.transposed = [A.T for A in maps]
        self.bias = bias
        self.n = maps[0].shape[1]
        self._points = []  # the last few: they are asked for again and again
        self.iteration = 1  # for errors
        self._checked = False  # whether means were compared with slopes

    @property
    def stores_factor(self):
        """True if a factor of the Hessian is small enough to be stored."""
        return self.n * sum(block.rank for block in self.blocks) <= _FACTOR_SIZE

    def mean_diagonal(self):
        """The scale of multipliers at which the dual counts as unbounded."""
        return 1.0

    def _at(self, lam):
        """Return the cached values at a point: weights of the rows, and more."""
        key = lam.tobytes()
        for point in self._points:
            if point.key == key:
                return point
        point = _Point(key, [A @ lam for A in self.maps])
        self._points = [point, *self._points[:2]]
        return point

    def row_weights(self, lam):
        """Weights of the rows of every block, a list of (block.n_rows,)."""
        return self._at(lam).weights

    def value_and_margins(self, lam):
        """R(lam) and its gradient; (inf, zeros) outside the domain."""
        point = self._at(lam)
        if point.value is None:
            point.value = self._value_and_margins(lam, point.weights)
        return point.value

    def _value_and_margins(self, lam, weights):
        value, margins = 0.0, np.zeros(self.n)
        for block, At, a in zip(self.blocks, self.transposed, weights, strict=True):
            part = block.log_partition(a)
            if np.ndim(part) == 0 and part == np.inf:
                return np.inf, np.zeros(self.n)
            mean = block.mean(a)
            self.check_answer(block, "log_partition", part, ())
            self.check_answer(block, "mean", mean, (block.n_rows,))
            if not (self._checked or _is_of_the_package(block)):
                self._check_gradient(block, a, part, mean)
            value += part
            margins += At @ mean
        self._checked = True
        if self.bias is not None:
            total = self.bias.T @ lam
            value += 0.5 * float(total @ total)
            margins += self.bias @ total
        return float(value), margins

    def check_answer(self, block, name, found, shape):
        """Refuse what is no array of finite numbers of this shape (None: any size)."""
        check_answer(
            f"{type(block).__name__}.{name}",
            found,
            shape,
            f"at iteration {self.iteration}, at weights inside its domain",
        )

    def _check_gradient(self, block, a, value, mean):
        """Refuse a block whose `mean` is not the gradient of a convex log Z.

        Of a convex function the slope between two points lies between the derivatives
        at these, whatever their distance h:

            mean(a).d  <=  (log Z(a + h d) - log Z(a)) / h  <=  mean(a + h d).d

        Positive weights d stay in the usual domains. The first h adds 1e-5 of a row,
        where both ends are all but equal and the first is enough; with much curvature,
        or few digits in log Z, larger ones and both ends decide.
        """
        d = np.random.default_rng(0).uniform(0.5, 1.5, block.n_rows)
        d /= d.sum()
        mean = np.asarray(mean)
        low = float(mean @ d)
        room = _SLOPE_TOL * float(np.abs(mean) @ d)
        for h in (1e-5, 1e-3, 1e-1):
            other = block.log_partition(a + h * d)
            if not (np.ndim(other) == 0 and np.isfinite(other)):
                return  # outside the domain, or refused when a solver comes there
            slope = float(other - value) / h
            if abs(slope - low) <= room:
                return
            there = np.asarray(block.mean(a + h * d))
            self.check_answer(block, "mean", there, (block.n_rows,))
            high = float(there @ d)
            if low - room <= slope <= high + room:
                return
        raise ValueError(
            f"{type(block).__name__}.mean is not the gradient of its log_partition, or "
            "that is not convex: along a random direction log_partition changes by "
            f"{slope:.6g} per row of weight, and mean gives {low:.6g} at the one end "
            f"and {high:.6g} at the other. maxent.families.check_block(block) names "
            "the rows."
        )

    def max_step(self, lam, direction):
        """Supremum of t with lam + t * direction in the domain of every block."""
        steps = [np.inf]
        weights = self.row_weights(lam)
        for block, A, a in zip(self.blocks, self.maps, weights, strict=True):
            steps.append(block.max_step(a, A @ direction))
            if not steps[-1] > 0 and np.isfinite(direction).all():
                raise ValueError(
                    f"{type(block).__name__}.max_step returned {v.shown(steps[-1])} at "
                    "weights inside its domain; it must return a number > 0, or inf."
                )
        return min(steps)

    def factor(self, lam, curvatures=None):
        """G (n, p) with G G' the Hessian, and what is added along slacks of blocks.

        An array, or a TallMatrix where that is quicker.
        """
        point = self._at(lam)
        if point.factor is None or point.curvatures is not curvatures:
            for other in self._points:
                other.factor = None  # one is enough, and may be large
            point.curvatures = curvatures
            point.factor = self._joined_factor(point, curvatures)
        return point.factor

    def _joined_factor(self, point, curvatures):
        """The mapped factors of all blocks, and the bias, side by side."""
        every = zip(self.maps, self._with_extras(point, curvatures), strict=True)
        sources, scales = [], []
        for A, (block, At, a, extra) in every:
            diagonal = isinstance(A, Diagonal)
            rows = block._factor_rows(a) if diagonal and extra is None else None
            if rows is None or not rows.finite:
                F = self._block_factor(block, a, extra)
                rows = _dense(F if diagonal else At @ F)
            sources.append(rows)
            scales.append(_contiguous(A.entries) if diagonal else None)
        if self.bias is not None:
            sources.append(_dense(self.bias))
            scales.append(None)
        G = TallMatrix(sources, scales)
        return G if G.n_rows * G.n_columns >= TALL else G.to_array()

    def _block_factors(self, point, curvatures):
        """F (n_rows, rank) of every block, with F F' its Hessian."""
        return [
            self._block_factor(block, a, extra)
            for block, _, a, extra in self._with_extras(point, curvatures)
        ]

    def _block_factor(self, block, a, extra):
        if extra is None:
            F = block.hessian_factor(a)
        else:
            F = block.barrier_factor(a, extra)
        self.check_answer(block, "hessian_factor", F, (block.n_rows, None))
        return F

    @cached_property
    def _recycled(self):
        """Newton systems by an old Hessian, or None where a factor is cheap."""
        return RecycledHessian(self) if RecycledHessian.serves(self) else None

    @cached_property
    def _mapped(self):
        """The maps stacked, or None where they are not sparse."""
        if not all(sp.issparse(A) for A in self.maps):
            return None
        return MappedFactors(self.maps, self.bias)

    def _with_extras(self, point, curvatures):
        """Block, transposed map, weights and curvature along slacks of each."""
        extras = [None] * len(self.blocks) if curvatures is None else curvatures
        return zip(self.blocks, self.transposed, point.weights, extras, strict=True)

    def solver(self, lam, diagonal, index=slice(None), curvatures=None, accuracy=None):
        """Function that solves (Hessian + diag) x = rhs, over the rows at `index`.

        `curvatures` of blocks, None for none, are added to the Hessian along slacks.
        With an accuracy, an error of x that will do as a share of x, blocks with cheap
        products are solved by these.
        """
        exact = partial(self._exact, lam, diagonal, index, curvatures)
        if accuracy is None or not all(block.cheap_products for block in self.blocks):
            return exact()
        extras = [None] * len(self.blocks) if curvatures is None else curvatures
        H = FreeHessian(self, lam, np.arange(self.n)[index], diagonal, extras)
        return FewProducts(
            H.product,
            lambda r: (r.T / H.diagonal).T,
            exact,
            most=self._most_products(),
            accuracy=accuracy,
        )

    def _most_products(self):
        """Products that cost about as much as a factor."""
        columns = sum(block.rank for block in self.blocks)
        worth = (columns + min(columns, self.n)) // _PRODUCT_COLUMNS
        return min(max(worth, _LEAST_PRODUCTS), _MOST_PRODUCTS)

    def _exact(self, lam, diagonal, index, curvatures):
        """As `solver`, by a factor of the Hessian where that pays."""
        if self._recycled is not None:
            return self._recycled.solver(lam, diagonal, index, curvatures)
        ranks = [block.rank for block in self.blocks]
        p = sum(ranks)
        mapped = self._mapped if 0 < p < self.n and p * p <= _FACTOR_SIZE else None
        if mapped is not None and mapped.is_worth_it(ranks, _FACTOR_WORK):
            return self._mapped_solver(mapped, lam, diagonal, index, curvatures)
        if not self.stores_factor or self.n * p * min(self.n, p) > _FACTOR_WORK:
            return self._conjugate_gradients(lam, diagonal, index, curvatures)
        G = self.factor(lam, curvatures)
        if len(diagonal) < self.n:
            quadratic = LowRankQuadratic(G).restricted(index, lam)
        else:
            quadratic = LowRankQuadratic(G)
        try:
            return quadratic.solver(lam, diagonal)
        except np.linalg.LinAlgError:
            # equal rows and no curvature of their own: any split of their
            # multipliers will do, and a proximal term chooses one
            chunks = row_chunks(self.n, 1000 * p)
            squares = [np.square(as_array(G, at)).sum(axis=1) for at in chunks]
            largest = np.concatenate(squares)[index].max(initial=0.0)
            least = 1e-12 * float(largest)
            return quadratic.solver(lam, np.maximum(diagonal, least))

    def _mapped_solver(self, mapped, lam, diagonal, index, curvatures):
        factors = self._block_factors(self._at(lam), curvatures)
        if len(diagonal) < self.n:
            mapped = mapped.restricted(index)
        least = 0.0
        if not diagonal.all():  # as below
            least = 1e-12 * max(float(np.square(F).sum(axis=1).max()) for F in factors)
        return mapped.solver(factors, np.maximum(diagonal, least))

    def _conjugate_gradients(self, lam, diagonal, index, curvatures):
        """As `solver`, by products; a small Hessian that blocks make preconditions."""
        extras = [None] * len(self.blocks) if curvatures is None else curvatures
        H = FreeHessian(self, lam, np.arange(self.n)[index], diagonal, extras)
        if H.direct and H.size <= _MATRIX_SIZE:
            H.assemble()
        nearly = H.preconditioner(np.arange(H.size))
        shape = H.size, H.size
        operator = LinearOperator(shape, matvec=H.product, dtype=np.float64)
        inverse = LinearOperator(shape, matvec=nearly, dtype=np.float64)

        def solve(rhs):
            columns = rhs.reshape(H.size, -1)
            out = np.column_stack(
                [
                    cg(operator, c, rtol=1e-9, atol=0.0, maxiter=500, M=inverse)[0]
                    for c in columns.T
                ]
            )
            return out.reshape(rhs.shape)

        return solve

    def restricted(self, index, lam):
        """Newton systems over a subset of the multipliers, at lam."""
        return _Restricted(self, index, lam)


def _contiguous(x):
    return np.ascontiguousarray(x, dtype=np.float64)


def _dense(F):
    return DenseRows(_contiguous(F))


class _Restricted:
    """Some rows of a BlockSum, with the Hessian at one point."""

    def __init__(self, R, index, lam):
        self.R, self.index, self.lam = R, index, lam

    def solver(self, lam, diagonal):
        return self.R.solver(self.lam, diagonal, self.index)


class RecycledHessian:
    """Newton systems of an interior point by a Hessian of some steps before.

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
        ranks = sum(block.rank for block in R.blocks)
        return cheap and R.n <= _RECYCLED_SIZE and ranks >= R.n

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
            H.product,
            precondition,
            renewed,
            most=_RECYCLED_PRODUCTS,
            accuracy=_RECYCLED_ACCURACY,
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
