"""Interior point for duals over signed multipliers: on all rows, or the active ones."""

from __future__ import annotations

import numpy as np

from maxent._optimize.interior_point import interior_point
from maxent._optimize.quadratics import DenseQuadratic
from maxent._support.results import DualResult, Monitor, Status, relayed
from maxent.discrimination.duals._kkt import ActiveRows
from maxent.discrimination.duals._signed_problem import Certifier

_ROUNDS = 10  # in which rows that turn out to be active join the others


def solve_interior(kernel, problem, tol, max_iter, init=None, callback=None):
    """DualResult of a signed problem, by the matrix of all rows.

    Parameters
    ----------
    kernel : VectorKernel
    problem : SignedProblem
    tol : float
        Relative duality gap.
    max_iter : int
    init : ndarray (n,) or None
        Signed multipliers to start from.
    callback : callable or None
    """
    rows, index, sign = problem.rows()
    everything = np.arange(len(kernel))
    K = kernel.block(everything, everything)
    if problem.bias_variance:
        K = K + problem.bias_variance
    Q = np.empty((len(index), len(index)))
    for lo in range(0, len(index), 256):  # by blocks so that Ctrl-C is seen
        part = slice(lo, lo + 256)
        np.take(K[index[part]], index, axis=1, out=Q[part])
        Q[part] *= sign[part, None] * sign
    E = sign[:, None] if problem.bias == "flat" else None
    start = None
    if init is not None:
        start = np.maximum(sign * init[index], 0.0)

    def certified(result):
        a = np.zeros(len(kernel))
        np.add.at(a, index, sign * result.lam)
        f = K @ a - problem.bias_variance * a.sum()
        guess = 0.0 if result.bias is None else float(result.bias[0])
        objective, gap, b = Certifier(problem)(a, f, guess)
        result.lam, result.bias = a, b
        result.objective, result.gap = objective, gap
        return result

    progress = relayed(callback, lambda report: report.translated(certified))
    options = {"tol": tol, "max_iter": max_iter, "init": start, "callback": progress}
    try:
        result = interior_point(rows, DenseQuadratic(Q), E, **options)
    except np.linalg.LinAlgError:  # slopes out of range
        lam = np.zeros(len(index)) if start is None else start
        result = DualResult(lam, None, -np.inf, np.inf, 0, Status.STALLED)
    result = certified(result)
    if result.relative_gap <= tol:
        result.status = Status.CONVERGED
    elif result.status is Status.CONVERGED:
        result.status = Status.STALLED
    return result


def solve_active(kernel, problem, tolerances, max_iter, start, *, limit, callback):
    """Solve for the rows that carry a multiplier or ask for one, until no others do.

    Parameters
    ----------
    kernel : VectorKernel
    problem : SignedProblem
    tolerances : (float, float or None)
        Of the relative duality gap and of the optimality condition.
    max_iter : int
        Bound on the steps of all rounds.
    start : DualResult
        Where working sets stopped.
    limit : int
        Rows whose matrix may be stored.
    callback : callable or None

    Returns
    -------
    DualResult or None
        None if more rows than `limit` are active.
    """
    tol, kkt_tol = tolerances
    asked = np.inf if kkt_tol is None else kkt_tol
    monitor = Monitor(tol, callback, asked, solver="interior")
    rows = ActiveRows(problem, limit)
    a, b = start.lam, start.bias
    f, steps, status = _decisions(kernel, a), 0, Status.STALLED
    active = np.zeros(len(a), dtype=bool)
    # what is violated by less will be settled with the rest
    slack = 0.1 * rows.max_violation(a, f, b)[0]
    for _ in range(_ROUNDS):
        new = (a != 0) | (rows.kkt_violation(a, f, b) > slack)
        if not (new & ~active).any():
            break  # what is left, working sets settle in a few steps
        active |= new
        index = np.flatnonzero(active)
        if len(index) > limit:
            return None
        part = kernel.among(index), problem.among(index)
        result = solve_interior(*part, 0.1 * tol, max_iter - steps)
        steps += result.n_iter
        a = np.zeros(len(a))
        a[index] = result.lam
        f = _decisions(kernel, a)
        b = float(result.bias)
        if kkt_tol is not None:
            most = 0.2 * kkt_tol / max(kernel.diagonal().max(), 1e-300)
            a = rows.settled(a, f, b, 0.5 * kkt_tol, most)
            f = _decisions(kernel, a)
        objective, gap, b = Certifier(problem)(a, f, b)
        violation, _ = rows.max_violation(a, f, b)
        if monitor.record(steps, objective, gap, (a, b), violation):
            status = monitor.status
            break
        if not result.converged or steps >= max_iter:
            break
        slack = 0.5 * min(asked, violation)
    if monitor.best is None:
        return None
    measures = {"kkt_violation": monitor.best.violation, "kkt_tol": kkt_tol}
    return monitor.result(steps, status, **measures)


def _decisions(kernel, a):
    """K a over all rows, (n,)."""
    columns = np.flatnonzero(a)
    if not len(columns):
        return np.zeros(len(a))
    return np.asarray(kernel.apply(columns, a[columns, None]))[:, 0]
