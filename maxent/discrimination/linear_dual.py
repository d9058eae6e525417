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
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import ssyrk

from maxent._core.coordinate import epoch_csr, epoch_dense
from maxent._support import validation as v
from maxent._support.results import DualResult, Status, relative_gap
from maxent._support.threads import single_threaded_blas
from maxent.discrimination._interior import (
    LowRankQuadratic,
    interior_point,
    repair_equality,
)
from maxent.discrimination._signed import (
    binary_problem,
    drop_weightless,
    refuse_inseparable,
)
from maxent.discrimination.certificate import best_bias
from maxent.discrimination.margins import check_asks_for_something

_CHUNK = 4096
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
            X.sum_duplicates()
            X.sort_indices()
        self.X = X.astype(np.float64, copy=False)
        if not self.sparse:
            self.X = np.ascontiguousarray(self.X)
        self.one_to_one = len(self.index) == X.shape[0]

    @property
    def flat(self):
        """Is the bias prior flat?"""
        return self.problem.bias == "flat"

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

    def certify(self, lam, guess=0.0):
        """Certificate of multipliers, w and b recomputed from them.

        Returns (objective, gap, bias, w, shortfalls).
        """
        rows, p = self.rows, self.problem
        a = self.collect(lam)
        w = np.asarray(self.X.T @ a).ravel()
        d = rows.q - self.sign * self.expand(np.asarray(self.X @ w).ravel())
        objective = rows.potential(lam) - 0.5 * float(w @ w)
        if self.flat:
            b = best_bias(rows, d, self.sign, guess)
        else:
            b = p.bias_variance * float(a.sum())
            objective -= 0.5 * b * float(a.sum())
        d = d - self.sign * b
        if p.margin.name == "fixed":
            norm = float(w @ w) + b * float(a.sum()) * (not self.flat)
            return objective, rows.hard_gap(d, norm, objective), b, w, d
        return objective, rows.gap(lam, d), b, w, d

    def repaired(self, lam):
        """Multipliers that satisfy the equality of a flat bias exactly."""
        if not self.flat:
            return lam
        return repair_equality(lam, self.rows.upper, self.sign[:, None])


def solve_linear(
    X, problem, *, tol, max_iter, init=None, solver="auto", callback=None, seed=0
):
    """Solve a signed linear dual; `lam` of the result is signed, `coef` is w."""
    linear = LinearProblem(X, problem)
    if solver == "auto":
        solver = _choose(linear, tol)
    with single_threaded_blas():
        if solver == "coordinate":
            result = _coordinate(linear, tol, max_iter, init, callback, seed)
        elif solver == "newton":
            result = _newton(linear, tol, max_iter, init, callback)
            if not result.converged and result.status is not Status.MAX_ITER:
                result = _interior(linear, tol, max_iter, init)
        elif solver == "interior":
            result = _interior(linear, tol, max_iter, init)
        else:
            raise ValueError(
                f"solver={solver!r} is not known; use 'auto', 'coordinate', 'newton' "
                "or 'interior'."
            )
    result.lam = linear.collect(result.lam)
    refuse_inseparable(problem.margin, result)
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
    if linear.sparse:
        norms = np.asarray(X.multiply(X).sum(axis=1)).ravel()
        if X.indices.dtype != X.indptr.dtype or X.indices.dtype not in (
            np.int32,
            np.int64,
        ):
            X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    else:
        norms = np.einsum("ij,ij->i", X, X)
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
    next_check = np.inf
    for iteration in range(1, max_iter + 1):
        total, _ = epoch(*fixed, _block_order(n, rng), lam, w, bias)
        imbalance = float(sign @ lam)
        if linear.flat:
            bias[0] += variance * imbalance
        objective = local.potential(lam) - 0.5 * float(w @ w)
        if not np.isfinite(total) and p.margin.name != "fixed":
            status = Status.NONFINITE
            break
        due = total <= 2.0 * tol * (1 + abs(objective)) or iteration % 25 == 0
        if due and (iteration >= next_check or next_check == np.inf):
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
            if not np.isfinite(gap) and J > 1e12:
                status = Status.UNBOUNDED
                break
            if linear.flat:
                bias[0] = b
            next_check = iteration + 1
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


# -- primal Newton ---------------------------------------------------------------------
def _loss_pass(linear, w, b, hessian):
    """Loss, multipliers, gradient and (float32) Hessian of the loss, by chunks."""
    rows, sign, X = linear.rows, linear.sign, linear.X
    d = X.shape[1]
    H = np.zeros((d + 1, d + 1), order="F") if hessian else None
    lam = np.empty(len(rows.q))
    value, gradient = 0.0, np.zeros(d + 1)
    wide = np.ones((_CHUNK, d + 1), dtype=np.float32)
    for lo in range(0, len(lam), _CHUNK):
        part = slice(lo, lo + _CHUNK)
        Xc = X[part] if linear.one_to_one else X[linear.index[part]]
        s = sign[part]
        f = Xc @ w + b
        loss, lam_c, curvature = rows.subset(part).loss(rows.q[part] - s * f)
        lam[part] = lam_c
        value += loss
        a = s * lam_c
        gradient[:d] -= a @ Xc
        gradient[d] -= a.sum()
        if hessian:
            root = np.sqrt(curvature).astype(np.float32)
            Z = wide[: len(root)]
            np.multiply(Xc, root[:, None], out=Z[:, :d], casting="same_kind")
            Z[:, d] = root
            H += ssyrk(1.0, Z.T)
    return value, lam, gradient, H


def _newton(linear, tol, max_iter, init, callback):
    p = linear.problem
    d = linear.X.shape[1]
    w, b = np.zeros(d), 0.0
    if init is not None:
        w = linear.weights_of(init)
        b = linear.certify(linear.repaired(init))[2]
    # inverse prior variances of (w, b)
    precision = np.ones(d + 1)
    precision[d] = 0.0
    if not linear.flat:
        precision[d] = 1.0 / p.bias_variance if p.bias_variance else np.inf
    free = np.isfinite(precision)
    penalty = np.where(free, precision, 0.0)
    history, status, best, iteration = [], Status.MAX_ITER, None, 0
    value, lam, gradient, H = _loss_pass(linear, w, b, True)
    x = np.append(w, b)
    total = value + 0.5 * float(penalty @ x**2)
    slow = 0
    for iteration in range(1, min(max_iter, 200) + 1):
        grad = (gradient + penalty * x)[free]
        A = H[np.ix_(free, free)]
        A = np.triu(A) + np.triu(A, 1).T
        A.flat[:: len(A) + 1] += penalty[free] + 1e-7 * (np.trace(A) / len(A) + 1e-30)
        try:
            step = np.zeros(d + 1)
            step[free] = -cho_solve(cho_factor(A, check_finite=False), grad)
        except LinAlgError:
            status = Status.STALLED
            break
        slope = float((gradient + penalty * x) @ step)
        # the Newton decrement estimates the gap; certify when it is small
        if -slope <= tol * (1 + abs(total)) or iteration % 10 == 0:
            full = linear.repaired(lam)
            J, gap, bias, w_exact, _ = linear.certify(full, x[d])
            history.append((iteration, J, gap))
            if callback is not None:
                callback(iteration, J, gap)
            if best is None or gap < best[2]:
                best = (full, J, gap, bias, w_exact)
            if relative_gap(gap, J) <= tol:
                status = Status.CONVERGED
                break
            if -slope <= 1e-14 * (1 + abs(total)):
                status = Status.STALLED
                break
        t = 1.0
        for _ in range(40):
            trial = x + t * step
            value, lam, gradient, H = _loss_pass(linear, trial[:d], trial[d], True)
            new = value + 0.5 * float(penalty @ trial**2)
            if new <= total + 1e-4 * t * slope + 1e-13 * abs(total):
                break
            t *= 0.5
        else:
            status = Status.STALLED
            break
        slow = slow + 1 if t < 0.5 else 0
        x, total = trial, new
        if slow > 10:
            status = Status.STALLED
            break
    if best is None:
        full = linear.repaired(lam)
        best = (full, *linear.certify(full, x[d])[:4])
    lam, J, gap, b, w = best
    if relative_gap(gap, J) <= tol:
        status = Status.CONVERGED
    return DualResult(
        lam, b, J, gap, iteration, status, solver="newton", history=history, coef=w
    )


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
        `coef` holds the weights w (d,).

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
    check_asks_for_something(margin)
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
