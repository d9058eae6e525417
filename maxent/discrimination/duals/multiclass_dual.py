"""Joint multi-class machines: one constraint for every wrong class of every row.

    maximise  sum_{t, j != y_t} phi_t(lam_tj) - v/2 trace(beta' K beta)
    beta_tk = [k = y_t] sum_j lam_tj - [k != y_t] lam_tk
    f_k(x) = v sum_t beta_tk k(x_t, x) + b_k

v = 1/2, so that the difference of two class scores has the prior of the two-class
machine, and two classes give exactly that machine. A flat bias prior asks
``sum_t beta_tk = 0`` for every class; one bias is fixed by ``sum_k b_k = 0``.

Source: Jaakkola, Meila & Jebara (1999), eq. (4)-(5).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from maxent._optimize.interior_point import interior_point
from maxent._optimize.quadratics import DenseQuadratic, LowRankQuadratic
from maxent._optimize.rows import tolerance_for
from maxent._support.results import Status
from maxent._support.threads import single_threaded_blas
from maxent.discrimination.duals._definiteness import (
    has_negative_curvature,
    without_certificate,
)
from maxent.discrimination.duals._multiclass_solvers import (
    KernelSide,
    LinearSide,
    solve_joint,
    solve_primal,
)
from maxent.discrimination.duals._refusals import refuse_inseparable
from maxent.discrimination.duals.class_pairs import SHARE, MulticlassRows

_INTERIOR_WINS = 400  # constraints below which the interior point is fastest
_INTERIOR_LIMIT = 4000  # and below which it serves where many digits are asked


def solve_multiclass(
    kernel,
    codes,
    n_classes,
    margin,
    bias,
    weight,
    *,
    tol,
    max_iter,
    solver="auto",
    cache_size=500.0,
    callback=None,
):
    """Solve the joint dual.

    Parameters
    ----------
    kernel : VectorKernel
    codes : ndarray of int (n,)
    n_classes : int
    margin : MarginPrior
    bias : "flat", float or None
    weight : ndarray (n,)
    tol : float
        Relative duality gap.
    max_iter : int
        Sweeps, or interior-point steps.
    solver : {"auto", "interior", "coordinate", "lbfgs"}
        "interior" costs O((n (m - 1))**3) a step.
    cache_size : float
        Memory for kernel values, in MB.
    callback : callable(n_iter, objective, gap) or None

    Returns
    -------
    result : DualResult
        `lam` (n, m) with zeros at the row's own class, `bias` (m,) summing to zero.
    beta : ndarray (n, m)
        Coefficients of the class scores, v included.
    """
    constraints = MulticlassRows(codes, n_classes, margin, weight)
    if margin.unit_potential.hard:
        largest = kernel.diagonal().max() + (0.0 if bias in ("flat", None) else bias)
        tol = tolerance_for(margin.unit_potential, margin.level, largest, tol)
    variance = 0.0 if bias in ("flat", None) else float(bias)
    indefinite = _has_negative_curvature(kernel, constraints, bias)
    if solver == "auto":
        solver = "coordinate" if indefinite else _choose(kernel, constraints, tol)
    # with few rows for the columns, kernel values are the shorter way
    n, d = len(kernel), kernel.X.shape[1]
    short = n <= 8 * d and 4e-6 * n * n <= cache_size
    linear = kernel.kernel == "linear" and (kernel.sparse or not short)
    with single_threaded_blas():
        if solver == "interior":
            result = _by_interior_point(
                kernel, constraints, bias, variance, tol, min(max_iter, 500)
            )
        else:
            if linear:
                side = LinearSide(kernel.X, constraints, SHARE, variance)
            else:
                side = KernelSide(kernel, constraints, SHARE, variance, cache_size)
            solve = solve_primal if solver == "lbfgs" else solve_joint
            result = solve(
                side,
                constraints,
                bias == "flat",
                tol=tol,
                max_iter=min(max_iter, 100_000),
                callback=callback,
            )
            if (
                result.status is Status.STALLED
                and linear
                and _low_rank(kernel, constraints)
            ):
                result = _by_interior_point(
                    kernel, constraints, bias, variance, tol, min(max_iter, 500)
                )
    refuse_inseparable(margin, result)
    beta = SHARE * constraints.beta(result.lam)
    if bias == "flat":
        b = np.append(result.bias, 0.0)
        b -= b.mean()
    else:
        b = variance * beta.sum(axis=0)
    lam = np.zeros((len(codes), n_classes))
    lam[constraints.example, constraints.wrong] = result.lam
    result.lam, result.bias = lam, b
    return without_certificate(result) if indefinite else result, beta


def _has_negative_curvature(kernel, c, bias):
    """Whether the dual is not concave, as far as a sample of the rows tells.

    beta is linear in the multipliers of a row, with |beta|^2 <= m |lam|^2.
    """
    potential, m = c.rows.potential, c.m
    own = potential.least_curvature / (c.weight * c.margin.rate**2)
    with single_threaded_blas():
        return has_negative_curvature(kernel, bias, own / (SHARE * m))


def _choose(kernel, c, tol):
    """Solver by size: interior point, L-BFGS on the primal, or coordinate ascent."""
    size = len(c.example)
    if size <= _INTERIOR_WINS:
        return "interior"
    if kernel.kernel == "linear":
        smooth = c.rows.potential.smooth
        if smooth and not kernel.sparse and len(kernel) > 8 * kernel.X.shape[1]:
            return "lbfgs"
        return "interior" if _low_rank(kernel, c) else "coordinate"
    return "interior" if size <= _INTERIOR_LIMIT and tol < 1e-7 else "coordinate"


def _low_rank(kernel, c):
    """Is the interior point cheap through the features?"""
    size, width = len(c.example), c.m * kernel.X.shape[1]
    return size * width <= 1e7 and size * float(width) ** 2 <= 2e10


def _by_interior_point(kernel, constraints, bias, variance, tol, max_iter):
    E = constraints.incidence() if bias == "flat" else None
    if kernel.kernel == "linear":
        R = LowRankQuadratic(_joint_features(kernel.X, constraints, variance))
    else:
        everything = np.arange(len(kernel))
        K = kernel.block(everything, everything)
        R = DenseQuadratic(_joint_quadratic(constraints, SHARE * (K + variance)))
    return interior_point(constraints.rows, R, E, tol=tol, max_iter=max_iter)


def _joint_features(X, c, variance):
    """Z with Q = Z Z': a constraint's features under the right class, minus wrong."""
    X = X.toarray() if sp.issparse(X) else X
    if variance:
        X = np.column_stack([X, np.full(len(X), np.sqrt(variance))])
    rows = np.sqrt(SHARE) * X[c.example]
    Z = np.zeros((len(c.example), c.m, X.shape[1]))
    at = np.arange(len(c.example))
    Z[at, c.right] = rows
    Z[at, c.wrong] = -rows
    return Z.reshape(len(c.example), -1)


def _joint_quadratic(c, K):
    """Q over constraints: K between rows times the agreement of their classes."""
    agree = (
        (c.right[:, None] == c.right[None, :]).astype(np.float64)
        - (c.right[:, None] == c.wrong[None, :])
        - (c.wrong[:, None] == c.right[None, :])
        + (c.wrong[:, None] == c.wrong[None, :])
    )
    agree *= K[np.ix_(c.example, c.example)]
    return agree
