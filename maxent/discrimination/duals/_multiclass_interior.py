"""Interior points for the multi-class dual.

Through the features of a linear kernel, with the matrix of all constraints, or with
that of the constraints in play, which shrinking finds (Joachims 1999): most wrong
classes of most rows have no multiplier.

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


def features_quadratic(kernel, c, variance):
    """Regulariser Z Z' of a linear kernel: the right class's features, minus wrong."""
    X = kernel.X.toarray() if sp.issparse(kernel.X) else kernel.X
    if variance:
        X = np.column_stack([X, np.full(len(X), np.sqrt(variance))])
    rows = np.sqrt(CLASS_WEIGHT_VARIANCE) * X[c.example]
    Z = np.zeros((len(c.example), c.m, X.shape[1]))
    at = np.arange(len(c.example))
    Z[at, c.right] = rows
    Z[at, c.wrong] = -rows
    return LowRankQuadratic(Z.reshape(len(c.example), -1))


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


def solve_active(problem, scores, start, *, limit, max_iter, callback=None):
    """Solve for the constraints in play, and again with those whose margins ask then.

    Parameters
    ----------
    problem : object with kernel, constraints, incidence, variance and tol
    scores : KernelScores or LinearScores
    start : DualResult
        Where another solver stopped; its multipliers are feasible.
    limit : int
        Constraints whose matrix may be stored.
    max_iter : int
        Bound on all interior-point steps.
    callback : callable(n_iter, objective, gap) or None

    Returns
    -------
    DualResult or None
        None if more constraints than `limit` are in play at the start.
    """
    c, E, tol = problem.constraints, problem.incidence, problem.tol
    rows, monitor = c.rows, Monitor(tol, callback, solver="interior")
    lam, steps, status = start.lam, 0, Status.MAX_ITER
    active, gap, last = np.zeros(len(lam), dtype=bool), np.inf, np.inf
    J, _, _, d = certify(rows, scores, lam, E, start.bias)
    stalled = False
    while steps < max_iter and status is Status.MAX_ITER:
        before, active = active, c.in_play(lam, d, tol * (1.0 + max(J, 0.0)))
        index = np.flatnonzero(active)
        better = gap < 0.5 * last or (active & ~before).any()
        if len(index) > limit or not better:
            status = Status.STALLED
            break
        last = gap
        result = interior_point(
            rows.subset(index),
            stored_quadratic(problem.kernel, c, problem.variance, index),
            None if E is None else E[index],
            tol=0.5 * tol,
            max_iter=max_iter - steps,
            init=lam[index] if stalled else None,
        )
        stalled = not result.converged
        steps += result.n_iter
        lam = np.zeros_like(lam)
        lam[index] = result.lam
        J, gap, b, d = certify(rows, scores, lam, E, result.bias)
        if monitor.record(steps, J, gap, (lam, b)):
            status = monitor.status
        elif not result.gap < np.inf:
            status = result.status  # no machine has these constraints' margins
    return None if monitor.best is None else monitor.result(steps, status)
