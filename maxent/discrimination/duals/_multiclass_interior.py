"""Interior points for the multi-class dual.

Newton systems go through the features of a linear kernel, where they are narrow, or
through the matrix of the constraints. From a start it is that of the constraints in
play alone (Joachims 1999): most wrong classes of most rows have no multiplier.

Source: Jaakkola, Meila & Jebara (1999), eq. (4)-(5); Joachims (1999), Making
large-scale SVM learning practical.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from maxent._optimize.certificate import certify
from maxent._optimize.interior_point import interior_point
from maxent._optimize.quadratics import DenseQuadratic, LowRankQuadratic
from maxent._support.results import Monitor, Status
from maxent.discrimination.duals.class_pairs import CLASS_WEIGHT_VARIANCE


def features_quadratic(kernel, c, variance, index):
    """Regulariser Z Z' of a linear kernel: the right class's features, minus wrong."""
    X = kernel.X.toarray() if sp.issparse(kernel.X) else kernel.X
    if variance:
        X = np.column_stack([X, np.full(len(X), np.sqrt(variance))])
    rows = np.sqrt(CLASS_WEIGHT_VARIANCE) * X[c.example[index]]
    Z = np.zeros((len(index), c.m, X.shape[1]))
    at = np.arange(len(index))
    Z[at, c.right[index]] = rows
    Z[at, c.wrong[index]] = -rows
    return LowRankQuadratic(Z.reshape(len(index), -1))


def stored_quadratic(kernel, c, variance, index):
    """Regulariser between some constraints: K times the agreement of their classes."""
    examples, at = np.unique(c.example[index], return_inverse=True)
    right, wrong = c.right[index], c.wrong[index]
    agree = (right[:, None] == right).astype(np.float64)
    agree -= right[:, None] == wrong
    agree -= wrong[:, None] == right
    agree += wrong[:, None] == wrong
    K = CLASS_WEIGHT_VARIANCE * (kernel.block(examples, examples) + variance)
    agree *= K[np.ix_(at, at)]
    return DenseQuadratic(agree)


def solve_interior(problem, scores, start, *, max_iter, callback=None):
    """Solve on the active constraints; add violated ones and repeat.

    Parameters
    ----------
    problem : object with kernel, constraints, incidence, variance, tol, linear, width
        and limit, the number of constraints whose matrix may be stored
    scores : KernelScores or LinearScores
    start : DualResult or None
        The end of another solver; its multipliers are feasible. None: all constraints
        are active, however many they are.
    max_iter : int
        Bound on all interior-point steps.
    callback : callable(n_iter, objective, gap) or None

    Returns
    -------
    DualResult
        The start, if it has too many active constraints.
    """
    c, E, tol = problem.constraints, problem.incidence, problem.tol
    if start is None:
        R = _quadratic(problem, np.arange(len(c.example)))
        options = {"tol": tol, "max_iter": max_iter, "callback": callback}
        return interior_point(c.rows, R, E, **options)
    rows, monitor = c.rows, Monitor(tol, callback, solver="interior")
    lam, steps, status = start.lam, 0, Status.MAX_ITER
    active, gap, last = np.zeros(len(lam), dtype=bool), np.inf, np.inf
    J, _, _, d = certify(rows, scores, lam, E, start.bias)
    stalled = False
    while steps < max_iter and status is Status.MAX_ITER:
        before, active = active, c.in_play(lam, d, tol * (1.0 + max(J, 0.0)))
        index = np.flatnonzero(active)
        better = gap < 0.5 * last or (active & ~before).any()
        if not (better and _is_small(problem, len(index))):
            status = Status.STALLED
            break
        last = gap
        solving = interior_point(
            rows.subset(index),
            _quadratic(problem, index),
            None if E is None else E[index],
            tol=0.5 * tol,
            max_iter=max_iter - steps,
            init=lam[index] if stalled else None,
        )
        stalled = not solving.converged
        steps += solving.n_iter
        lam = np.zeros_like(lam)
        lam[index] = solving.lam
        J, gap, b, d = certify(rows, scores, lam, E, solving.bias)
        if monitor.record(steps, J, gap, (lam, b)):
            status = monitor.status
        elif not solving.gap < np.inf:
            status = solving.status  # no machine has these constraints' margins
    return start if monitor.best is None else monitor.result(steps, status)


def _is_small(problem, size):
    """True if so many take no more room and time than the largest matrix allowed."""
    limit, width = float(problem.limit), float(problem.width)
    narrow = problem.linear and size * width <= limit**2
    return size <= limit or (narrow and size * width**2 <= limit**3 / 3.0)


def _quadratic(problem, index):
    """The regulariser between some constraints, by the shorter of its factors."""
    narrow = problem.linear and problem.width <= len(index)
    make = features_quadratic if narrow else stored_quadratic
    return make(problem.kernel, problem.constraints, problem.variance, index)
