"""Linear duals that never form the kernel matrix.

Three roads to the same certificate: coordinate ascent on the multipliers (sparse data,
any prior), primal Newton on the conjugate loss (dense data with many more rows than
columns), and the interior point with a low-rank quadratic (small data, or priors so
sharp that Newton crawls).

Source: Jaakkola, Meila & Jebara (1999), Theorem 2; coordinate ascent after Hsieh et
al. (2008).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from maxent._core.coordinate import epoch_csr, epoch_dense
from maxent._support import validation as v
from maxent._support.results import DualResult, Status, relative_gap
from maxent._support.threads import single_threaded_blas
from maxent._support.vector_kernels import LARGEST_FEATURE
from maxent.discrimination._interior import interior_point
from maxent.discrimination._primal_newton import primal_newton
from maxent.discrimination._quadratics import LowRankQuadratic
from maxent.discrimination._signed import (
    binary_problem,
    clip_to_domain,
    drop_weightless,
    refuse_inseparable,
)
from maxent.discrimination.certificate import best_bias, repair_equality, tolerance_for
from maxent.discrimination.margins import check_asks_for_something

_SMALL = 400


class LinearProblem:
    """Features with the constraint rows of a signed problem.

    Parameters
    ----------
    X : ndarray (n, d) or csr_array
    problem : SignedProblem
    """

    def __init__(self, X, problem):
        self.problem = problem
        self.rows, self.index, self.sign = problem.rows()
        self.sparse = sp.issparse(X)
        if self.sparse:
            X = sp.csr_array(X)
            if not X.has_canonical_format:
                X = X.copy()  # not in the caller's arrays
                X.sum_duplicates()
        self.X = X.astype(np.float64, copy=False)
        if not self.sparse:
            self.X = np.ascontiguousarray(self.X)
        self.one_to_one = len(self.index) == X.shape[0]
        v.check_range("X", self.X, LARGEST_FEATURE)

    def squared_norms(self):
        """|x|^2 of every data row."""
        if not self.sparse:
            return np.einsum("ij,ij->i", self.X, self.X)
        indptr, data = self.X.indptr, self.X.data
        full = np.flatnonzero(np.diff(indptr))
        out = np.zeros(len(indptr) - 1)
        # a few rows at a time: fresh memory costs more than the squares
        for lo in range(0, len(full), 10_000):
            some = full[lo : lo + 10_000]
            first, last = indptr[some[0]], indptr[some[-1] + 1]
            squares = data[first:last] ** 2
            out[some] = np.add.reduceat(squares, indptr[some] - first)
        return out

    @property
    def flat(self):
        """Is the bias prior flat?"""
        return self.problem.bias == "flat"

    def part(self, pick, factor):
        """Some constraint rows (in order), their weights multiplied by a factor."""
        part = object.__new__(LinearProblem)
        part.problem, part.sparse, part.X = self.problem, self.sparse, self.X
        part.rows = self.rows.subset(pick)
        part.rows.weight = part.rows.weight * factor
        part.index, part.sign = self.index[pick], self.sign[pick]
        part.one_to_one = False
        return part

    def expand(self, f):
        """Decision values per constraint row."""
        return f if self.one_to_one else f[self.index]

    def collect(self, lam):
        """Signed multipliers per data row."""
        a = self.sign * lam
        if self.one_to_one:
            return a
        return np.bincount(self.index, weights=a, minlength=self.X.shape[0])

    def weights_of(self, lam):
        """w = X' a."""
        return np.asarray(self.X.T @ self.collect(lam)).ravel()

    def certify(self, lam, guess=0.0, w=None):
        """Certificate of multipliers, everything recomputed from them.

        The primal point is the machine of the multipliers, or the weights w if they
        are given: then the gap has half the squared distance of the two besides.

        Returns (objective, gap, bias, w, shortfalls).
        """
        rows, p = self.rows, self.problem
        a = self.collect(lam)
        dual_w = np.asarray(self.X.T @ a).ravel()
        w = dual_w if w is None else w
        d = rows.q - self.sign * self.expand(np.asarray(self.X @ w).ravel())
        objective = rows.potential(lam) - 0.5 * float(dual_w @ dual_w)
        if self.flat:
            b = best_bias(rows, d, self.sign, guess)
        else:
            b = p.bias_variance * float(a.sum())
            objective -= 0.5 * b * float(a.sum())
        d = d - self.sign * b
        if p.margin.name == "fixed":
            norm = float(w @ w) + b * float(a.sum()) * (not self.flat)
            return objective, rows.hard_gap(d, norm, objective), b, w, d
        apart = float((w - dual_w) @ (w - dual_w))
        return objective, rows.gap(lam, d) + 0.5 * apart, b, w, d

    def repaired(self, lam):
        """Multipliers that satisfy the equality of a flat bias exactly."""
        if not self.flat:
            return lam
        return repair_equality(lam, self.rows.upper, self.sign[:, None])


def solve_linear(
    X, problem, *, tol, max_iter, init=None, solver="auto", callback=None, seed=0
):
    """Solve a signed linear dual; `lam` of the result is signed, `coef` is w."""
    linear, margin = LinearProblem(X, problem), problem.margin
    if margin.name == "fixed":
        largest = linear.squared_norms().max() + problem.bias_variance
        tol = tolerance_for(margin, margin.level, largest, tol)
    if init is not None:
        init = clip_to_domain(init, linear.rows)
    if solver == "auto":
        solver = _choose(linear, tol)
    elif solver == "newton":
        if margin.name == "fixed":
            raise ValueError(
                "solver='newton' needs a margin prior with finite losses, not 'fixed'; "
                "use 'auto', 'coordinate' or 'interior'."
            )
        if linear.sparse:
            raise ValueError(
                "solver='newton' needs dense features; use 'coordinate' for sparse "
                "ones, or X.toarray()."
            )
    with single_threaded_blas():
        if solver == "coordinate":
            result = _coordinate(linear, tol, max_iter, init, callback, seed)
        elif solver == "newton":
            result = primal_newton(linear, tol, max_iter, init, callback)
            n, d = linear.X.shape
            slow = result.status is Status.MAX_ITER and result.n_iter < max_iter
            if (slow or result.status is Status.STALLED) and n * d * min(n, d) <= 1e9:
                result = _interior(linear, tol, max_iter, init)
        else:
            result = _interior(linear, tol, max_iter, init)
    result.lam = linear.collect(result.lam)
    refuse_inseparable(margin, result)
    return result


def _choose(linear, tol):
    n, d = linear.X.shape
    smooth = linear.problem.margin.name not in ("hinge", "fixed")
    if linear.sparse:
        density = linear.X.nnz / max(n * d, 1)
        if n > _SMALL or density < 0.1:
            return "coordinate"
        return "interior"
    if n <= _SMALL or not smooth:
        return "interior" if n * min(d, n) <= 2e6 else "coordinate"
    if d <= 2000:
        return "newton"
    return "coordinate"


# -- coordinate ascent -----------------------------------------------------------------
def _coordinate(linear, tol, max_iter, init, callback, seed):
    rows, p = linear.rows, linear.problem
    n = len(rows.q)
    rng = np.random.default_rng(seed)
    # Rows are laid out in random order once; an epoch then visits short runs of them
    # in a fresh random order: nearly random visits at the speed of streaming.
    shuffle = rng.permutation(linear.X.shape[0])
    X = linear.X[shuffle]
    place = np.empty_like(shuffle)
    place[shuffle] = np.arange(len(shuffle))
    order = np.argsort(place[linear.index], kind="stable")
    local = rows.subset(order)
    sign = np.ascontiguousarray(linear.sign[order])
    where = place[linear.index[order]]
    norms = linear.squared_norms()[shuffle]
    if linear.sparse:
        kinds = {X.indices.dtype, X.indptr.dtype}
        if len(kinds) > 1 or kinds - {np.dtype(np.int32), np.dtype(np.int64)}:
            X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    # A flat bias is reached by proximal steps: each epoch has a Gaussian prior of
    # this variance around the bias of the epoch before.
    variance = float(np.mean(norms)) or 1.0 if linear.flat else p.bias_variance
    norm = norms[where] + variance
    lam = np.zeros(n)
    w = np.zeros(X.shape[1])
    bias = np.array([0.0, variance])
    if init is not None:
        lam = np.ascontiguousarray(init[order])
    elif p.margin.name == "logistic":
        lam = 1e-3 * local.upper
        if linear.flat:
            lam = repair_equality(lam, local.upper, sign[:, None])
    if lam.any():
        a = np.bincount(where, weights=sign * lam, minlength=X.shape[0])
        w = np.asarray(X.T @ a).ravel()
        bias[0] = variance * a.sum()
    fixed = (
        p.margin.core_spec,
        *((X.data, X.indices, X.indptr) if linear.sparse else (X,)),
        local.q,
        local.rate,
        local.weight,
        sign,
        norm,
        where,
    )
    epoch = epoch_csr if linear.sparse else epoch_dense
    history, status, best, iteration = [], Status.MAX_ITER, None, 0
    next_check, objective, total = 0, 0.0, np.inf
    for iteration in range(1, max_iter + 1):
        # an estimate of the gap costs a logarithm a visit: not in every epoch
        look = iteration % 3 == 1 or total <= 10.0 * tol * (1 + abs(objective))
        found, _ = epoch(*fixed, _block_order(n, rng), look, lam, w, bias)
        if linear.flat:
            bias[0] += variance * float(sign @ lam)
        if look:
            total = found
            # it moves little, and its logarithms cost a fifth of an epoch
            if iteration <= 10 or total <= 3.0 * tol * (1 + abs(objective)):
                objective = local.potential(lam) - 0.5 * float(w @ w)
        if not np.isfinite(found) and p.margin.name != "fixed":
            status = Status.NONFINITE
            break
        due = total <= 2.0 * tol * (1 + abs(objective)) or iteration % 25 == 0
        if due and iteration >= next_check:
            full = np.empty(n)
            full[order] = lam
            full = linear.repaired(full)
            J, gap, b, w_exact, _ = linear.certify(full, bias[0])
            history.append((iteration, J, gap))
            if callback is not None:
                callback(iteration, J, gap)
            if best is None or gap < best[2]:
                best = (full, J, gap, b, w_exact)
            if relative_gap(gap, J) <= tol:
                status = Status.CONVERGED
                break
            if not np.isfinite(gap) and J * min(1.0, norm.mean()) > 1e12:
                status = Status.UNBOUNDED
                break
            if linear.flat:
                bias[0] = b
            next_check = iteration + 1 + iteration // 10
    if best is None:
        full = np.empty(n)
        full[order] = lam
        full = linear.repaired(full)
        best = (full, *linear.certify(full, bias[0])[:4])
    lam, J, gap, b, w = best
    if relative_gap(gap, J) <= tol:
        status = Status.CONVERGED
    return DualResult(
        lam,
        b,
        J,
        gap,
        iteration,
        status,
        solver="coordinate",
        history=history,
        coef=w,
    )


def _block_order(n, rng, block=32):
    if n <= 64 * block:
        return rng.permutation(n)
    blocks = rng.permutation(-(-n // block))
    order = (blocks[:, None] * block + np.arange(block)[None, :]).reshape(-1)
    return order[order < n]


# -- interior point --------------------------------------------------------------------
def _interior(linear, tol, max_iter, init):
    X = linear.X.toarray() if linear.sparse else linear.X
    Z = linear.sign[:, None] * (X if linear.one_to_one else X[linear.index])
    if linear.problem.bias_variance:
        root = np.sqrt(linear.problem.bias_variance)
        Z = np.column_stack([Z, root * linear.sign])
    E = linear.sign[:, None] if linear.flat else None
    R = LowRankQuadratic(Z)
    result = interior_point(
        linear.rows, R, E, tol=tol, max_iter=min(max_iter, 500), init=init
    )
    guess = 0.0 if result.bias is None else float(result.bias[0])
    J, gap, b, w, _ = linear.certify(result.lam, guess)
    result.objective, result.gap, result.bias, result.coef = J, gap, b, w
    if result.status in (Status.CONVERGED, Status.STALLED, Status.MAX_ITER):
        if relative_gap(gap, J) <= tol:
            result.status = Status.CONVERGED
        elif result.status is Status.CONVERGED:
            result.status = Status.STALLED
    return result


def solve_linear_dual(
    X,
    y,
    margin,
    *,
    bias="flat",
    sample_weight=None,
    tol=1e-6,
    max_iter=1000,
    init=None,
    solver="auto",
    random_state=0,
    callback=None,
):
    """Solve the two-class dual with the linear kernel, without forming it.

    Parameters
    ----------
    X : array-like or CSR (n, d)
        32 and 64 bit sparse indices are accepted.
    y, margin, bias, sample_weight, tol, init
        As for :func:`solve_dual`.
    max_iter : int, default=1000
        Epochs of coordinate ascent, or Newton steps.
    solver : {"auto", "coordinate", "newton", "interior"}, default="auto"
        "coordinate": closed-form steps keeping w, O(nnz) an epoch. "newton": primal
        Newton, O(n d^2) a step, for dense data with n >> d and a smooth prior.
        "interior": O(n d^2) a step, any prior, tens of steps.
    random_state : int, default=0
        Seed of the order of visits.
    callback : callable(n_iter, objective, gap), optional

    Returns
    -------
    DualResult
        `coef` holds the weights w (d,) that the gap certifies. "newton" finds them
        directly: there the weights X' (y lam) of the multipliers are as far from them
        as sqrt(2 gap), at most.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.discrimination import ExponentialMargin, solve_linear_dual
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> result = solve_linear_dual(X, [-1, -1, 1, 1], ExponentialMargin(5.0))
    >>> result.converged, result.coef.shape
    (True, (1,))
    """
    from sklearn.utils import check_array

    check_asks_for_something(margin)
    v.check_choice("solver", solver, ("auto", "coordinate", "newton", "interior"))
    v.check_callback(callback)
    with np.errstate(over="ignore", invalid="ignore"):  # sums of huge entries
        X = check_array(
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            accept_large_sparse=True,
        )
    y = v.check_signs(y)
    n = len(y)
    if X.shape[0] != n:
        raise ValueError(f"X has {X.shape[0]} rows but y has {n}.")
    bias = v.check_bias(bias)
    tol = v.check_positive("tol", tol)
    max_iter = v.check_count("max_iter", max_iter)
    if init is not None:
        init = v.check_multipliers(init, n)
    w, keep, (yk,) = drop_weightless(sample_weight, n, y)
    if keep is not None:
        v.check_signs(yk)
        X = X[keep]
        init = None if init is None else init[keep]
    result = solve_linear(
        X,
        binary_problem(yk, margin, bias, w),
        tol=tol,
        max_iter=max_iter,
        init=init,
        solver=solver,
        callback=callback,
        seed=random_state,
    )
    lam = np.zeros(n)
    lam[slice(None) if keep is None else keep] = np.abs(result.lam)
    result.lam = lam
    return result
