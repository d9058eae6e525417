"""The dual of discrimination over any blocks.

    maximise  J(lam) = sum_r phi_r(lam_r) - sum_s log Z_s(A_s lam) - bias potential

over lam >= 0 in the domain, where Z_s is the partition function of a block (see
:mod:`maxent.families.conjugate`) and the map A_s turns multipliers into weights of its
rows. J is concave and -log Z is a barrier of the blocks' domain, so the interior point
of the vector machines serves here too; only its linear systems differ.

Source: Jaakkola, Meila & Jebara (1999), Theorem 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, cg

from maxent._support import validation as v
from maxent._support.threads import single_threaded_blas
from maxent.discrimination._interior import interior_point
from maxent.discrimination._quadratics import LowRankQuadratic
from maxent.discrimination._signed import clip_to_domain, refuse_inseparable
from maxent.discrimination.certificate import Rows, roomiest_bias
from maxent.discrimination.margins import check_asks_for_something

_FACTOR_WORK = 3e10  # multiplications of a factorisation beyond which CG is faster
_FACTOR_SIZE = 1e8  # entries of the Hessian's factor that may be stored


class Diagonal:
    """A diagonal map: its products without the overhead of sparse matrices."""

    def __init__(self, entries):
        self.entries = entries
        self.shape = (len(entries), len(entries))

    @property
    def T(self):
        return self

    def __matmul__(self, x):
        return (self.entries * x.T).T


@dataclass
class _Point:
    """Multipliers, and what they cost to know."""

    lam: np.ndarray
    weights: list
    value: tuple | None = None
    factor: np.ndarray | None = None


class BlockSum:
    """R(lam) = sum_s log Z_s(A_s lam) + variance |E' lam|^2 / 2 for interior_point.

    Parameters
    ----------
    blocks : list of Block
    maps : list of csr_array (block.n_rows, n)
    bias : ndarray (n, k) or None
        Columns of a Gaussian bias, scaled by its standard deviation.
    """

    homogeneous = False

    def __init__(self, blocks, maps, bias=None):
        self.blocks, self.maps = blocks, maps
        self.transposed = [A.T for A in maps]
        self.bias = bias
        self.n = maps[0].shape[1]
        self._points = []  # the last few: they are asked for again and again

    def mean_diagonal(self):
        """The scale of multipliers at which the dual counts as unbounded."""
        return 1.0

    def _at(self, lam):
        """What is known of a point: the weights of every block's rows, and more."""
        for point in self._points:
            if (point.lam == lam).all():
                return point
        point = _Point(lam.copy(), [A @ lam for A in self.maps])
        self._points = [point, *self._points[:2]]
        return point

    def value_and_margins(self, lam):
        """R(lam) and its gradient; (inf, zeros) outside the domain."""
        point = self._at(lam)
        if point.value is None:
            point.value = self._value_and_margins(point)
        return point.value

    def _value_and_margins(self, point):
        lam, value, margins = point.lam, 0.0, np.zeros(self.n)
        for block, At, a in zip(
            self.blocks, self.transposed, point.weights, strict=True
        ):
            part = block.log_partition(a)
            if part == np.inf:
                return np.inf, np.zeros(self.n)
            mean = block.mean(a)
            for name, found in (("log_partition", part), ("mean", mean)):
                if not np.isfinite(found).all():
                    raise FloatingPointError(
                        f"{type(block).__name__}.{name} returned NaN or infinity at "
                        "weights inside its domain."
                    )
            value += part
            margins += At @ mean
        if self.bias is not None:
            total = self.bias.T @ lam
            value += 0.5 * float(total @ total)
            margins += self.bias @ total
        return float(value), margins

    def max_step(self, lam, direction):
        """Supremum of t with lam + t * direction in the domain of every block."""
        return min(
            block.max_step(a, A @ direction)
            for block, A, a in zip(
                self.blocks, self.maps, self._at(lam).weights, strict=True
            )
        )

    def factor(self, lam):
        """G (n, p) with Hessian G G'."""
        point = self._at(lam)
        if point.factor is None:
            for other in self._points:
                other.factor = None  # one is enough, and may be large
            parts = [
                At @ block.hessian_factor(a)
                for block, At, a in zip(
                    self.blocks, self.transposed, point.weights, strict=True
                )
            ]
            if self.bias is not None:
                parts.append(self.bias)
            point.factor = np.concatenate(parts, axis=1)
        return point.factor

    def solver(self, lam, diagonal, index=slice(None)):
        """Function that solves (Hessian + diag) x = rhs, over the rows at `index`."""
        p = sum(block.rank for block in self.blocks)
        if self.n * p > _FACTOR_SIZE or self.n * p * min(self.n, p) > _FACTOR_WORK:
            return self._conjugate_gradients(lam, diagonal, index)
        G = self.factor(lam)[index]
        try:
            return LowRankQuadratic(G).solver(lam, diagonal)
        except np.linalg.LinAlgError:
            # equal rows and no curvature of their own: any split of their
            # multipliers will do, and a proximal term chooses one
            least = 1e-12 * float(np.einsum("ij,ij->i", G, G).max(initial=0.0))
            return LowRankQuadratic(G).solver(lam, np.maximum(diagonal, least))

    def _conjugate_gradients(self, lam, diagonal, index):
        weights, size = self._at(lam).weights, len(diagonal)

        def product(x):
            full = np.zeros(self.n)
            full[index] = np.ravel(x)
            out = np.zeros(self.n)
            for block, A, At, a in zip(
                self.blocks, self.maps, self.transposed, weights, strict=True
            ):
                out += At @ block.hessian_product(a, A @ full)
            if self.bias is not None:
                out += self.bias @ (self.bias.T @ full)
            return out[index] + diagonal * np.ravel(x)

        operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
        scaled = LinearOperator(
            (size, size), matvec=lambda x: np.ravel(x) / diagonal, dtype=np.float64
        )

        def solve(rhs):
            columns = rhs.reshape(size, -1)
            out = np.column_stack(
                [
                    cg(operator, c, rtol=1e-9, atol=0.0, maxiter=500, M=scaled)[0]
                    for c in columns.T
                ]
            )
            return out.reshape(rhs.shape)

        return solve

    def restricted(self, index, lam):
        """Newton systems over a subset of the multipliers, at lam."""
        return _Restricted(self, index, lam)


class _Restricted:
    """Some rows of a BlockSum, with the Hessian at one point."""

    def __init__(self, R, index, lam):
        self.R, self.index, self.lam = R, index, lam

    def solver(self, lam, diagonal):
        return self.R.solver(self.lam, diagonal, self.index)


def solve_blocks(
    blocks,
    maps,
    margin,
    *,
    bias=None,
    incidence=None,
    sample_weight=None,
    level=None,
    tol=1e-8,
    max_iter=200,
    init=None,
    callback=None,
):
    """Solve the dual of discrimination over any blocks.

    Parameters
    ----------
    blocks : list of Block
        Models with their priors, bound to rows.
    maps : list of array-like or sparse (block.n_rows, n)
        A_s of every block: its row weights are A_s lam. Two classes: +1 or -1 times the
        label on the diagonal. Anomaly detection: the identity.
    margin : MarginPrior
        Shared by all constraints.
    bias : {None, "flat"} or float, default=None
        Prior of the biases of `incidence`: none, flat, or Gaussian of this variance.
    incidence : array-like (n,) or (n, k), optional
        How the constraints see the biases, for two classes the labels. Needed unless
        bias is None.
    sample_weight : array-like (n,), optional
        Weight w stands for w copies of a constraint; > 0.
    level : array-like (n,), optional
        Levels that replace the prior's own, one a constraint.
    tol : float, default=1e-8
        Relative duality gap asked for.
    max_iter : int, default=200
        Steps of the interior point.
    init : array-like (n,), optional
        Multipliers to start from; they are moved into the domain.
    callback : callable(n_iter, objective, gap), optional

    Returns
    -------
    DualResult
        `lam` (n,) and `bias` (k,) with plus sign, None without biases.

    Raises
    ------
    ValueError
        For maps that do not fit, a prior that asks for nothing, or fixed margins that
        cannot be met.
    FloatingPointError
        If the objective becomes non-finite.

    Notes
    -----
    Each step solves one linear system with the Hessian, through a factor of it where
    that pays and by conjugate gradients beyond; memory is linear in n either way.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), Theorem 1 and Lemma 1.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.discrimination import ExponentialMargin, solve_blocks
    >>> from maxent.families import DirichletProduct
    >>> X = [[0, 1], [0, 0], [1, 1], [1, 0]]
    >>> y = np.array([1, 1, -1, -1])
    >>> prior = DirichletProduct(1.0, n_categories=[2, 2])
    >>> blocks = [prior.block(X, y == 1), prior.block(X, y == -1)]
    >>> maps = [np.diag(y), np.diag(-y)]
    >>> result = solve_blocks(blocks, maps, ExponentialMargin(5.0))
    >>> result.converged
    True
    """
    if level is None:
        check_asks_for_something(margin)
    tol = v.check_positive("tol", tol)
    max_iter = v.check_count("max_iter", max_iter)
    v.check_callback(callback)
    maps = _check_maps(blocks, maps)
    n = maps[0].shape[1]
    bias = v.check_bias(bias)
    E = None if bias is None else _check_incidence(incidence, n)
    weight = v.check_weights(sample_weight, n)
    weight = np.ones(n) if weight is None else weight
    if not (weight > 0).all():
        raise ValueError("sample_weight must be > 0; drop constraints of weight zero.")
    q = np.full(n, margin.level)
    if level is not None:
        q = np.array(v.as_doubles("level", level))
        if q.shape != (n,) or not np.isfinite(q).all():
            raise ValueError(f"level must hold {n} finite numbers.")
    rows = Rows(margin, q, np.full(n, margin.rate), weight)
    if init is not None:
        init = clip_to_domain(v.check_multipliers(init, n), rows)
    flat = bias == "flat"
    columns = None if E is None or flat else np.sqrt(bias) * E
    R = BlockSum(list(blocks), maps, columns)
    inner = rows
    if margin.name == "fixed":
        # aim a little higher, so that rounding leaves every margin met
        lift = 0.05 * tol * np.maximum(np.abs(q), 1e-3)
        inner = Rows(margin, q + lift, rows.rate, weight)
    with single_threaded_blas():
        result = interior_point(
            inner,
            R,
            E if flat else None,
            tol=tol,
            max_iter=max_iter,
            init=init,
            certified=rows,
            callback=callback,
        )
    if result.objective <= tol:
        _prefer_zero(result, rows, R, E if flat else None, tol)
    if E is not None and not flat:
        result.bias = bias * (E.T @ result.lam)
    refuse_inseparable(margin, result)
    return result


def _prefer_zero(result, rows, R, E, tol):
    """Zero multipliers where they are optimal within tol.

    A whole set of biases is optimal then; this names one that does not depend on the
    way there.
    """
    lam = np.zeros(len(rows.q))
    _, margins = R.value_and_margins(lam)
    d, b = rows.q - margins, None
    if E is not None:
        b = roomiest_bias(d + rows.slope(lam), E)
        d = d - E @ b
    gap = rows.gap(lam, d)
    if gap <= tol:
        result.lam, result.bias, result.objective, result.gap = lam, b, 0.0, gap


def _check_maps(blocks, maps):
    if len(blocks) != len(maps) or not len(maps):
        raise ValueError(
            f"{len(blocks)} blocks and {len(maps)} maps: every block needs its map."
        )
    out = []
    for s, (block, A) in enumerate(zip(blocks, maps, strict=True)):
        A = sp.csr_array(A, dtype=np.float64)
        if A.shape[0] != block.n_rows or (out and A.shape[1] != out[0].shape[1]):
            n = out[0].shape[1] if out else A.shape[1]
            raise ValueError(
                f"maps[{s}] has shape {A.shape}; block {s} has {block.n_rows} rows and "
                f"there are {n} multipliers."
            )
        if not np.isfinite(A.data).all():
            raise ValueError(f"maps[{s}] has NaN or infinite entries.")
        rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
        diagonal = A.shape[0] == A.shape[1] and (A.indices == rows).all()
        out.append(Diagonal(A.diagonal()) if diagonal else A)
    return out


def _check_incidence(incidence, n):
    if incidence is None:
        raise ValueError(
            "incidence is needed with a bias: for two classes the labels +1 and -1."
        )
    E = v.as_doubles("incidence", incidence)
    E = E[:, None] if E.ndim == 1 else E
    if E.ndim != 2 or len(E) != n or not np.isfinite(E).all():
        raise ValueError(
            f"incidence has shape {np.shape(incidence)}; it must hold one finite row "
            f"for each of the {n} multipliers."
        )
    return E
