"""Passes of pairwise dual ascent over margin problems with sparse rows."""

from __future__ import annotations

import numpy as np

from maxent._core import margin_ascent as _core
from maxent._support.results import DualResult, Monitor, Status
from maxent.minentropy._margin_dual import Pair

_LOOK = 5  # passes between two certificates
_QUIET = 0.1  # share of the mean violation below which a group is passed over


def solve_ascent(Z, ell, groups, *, tol, max_iter, callback=None):
    """Best pair (w, a) and the result of at most `max_iter` passes.

    Between two certificates groups whose violation was far below the mean are passed
    over; the pass before a certificate visits all.
    """
    Z.sort_indices()
    monitor, n = Monitor(tol, callback), len(groups.starts)
    starts = np.append(groups.starts, len(ell)).astype(np.intp)
    norm = np.asarray(Z.multiply(Z).sum(axis=1)).ravel()
    a, room, w = np.zeros(len(ell)), groups.c.copy(), np.zeros(Z.shape[1])
    violation, scratch = np.zeros(n), np.empty(int(np.diff(starts).max()))
    rng, status, n_iter = np.random.default_rng(0), Status.MAX_ITER, 0
    arrays = (Z.indptr, Z.indices, Z.data, ell, norm, starts, groups.c)
    while n_iter < max_iter:
        n_iter += 1
        order = rng.permutation(n)
        if n_iter % _LOOK > 1:
            order = order[violation[order] > _QUIET * violation.mean()]
        _core.ascend(*arrays, order, a, room, w, scratch, violation)
        if n_iter % _LOOK and n_iter < max_iter:
            continue
        a = groups.clipped(a)
        room = np.maximum(groups.c - groups.sum(a), 0.0)
        w = Z.T @ a
        gap = groups.gap(a, ell - Z @ w)
        J = float(a @ ell) - 0.5 * float(w @ w)
        if monitor.record(n_iter, J, gap, Pair(w.copy(), a.copy(), gap)):
            status = monitor.status
            break
    best = monitor.best
    result = DualResult(
        *(best.point.a, np.zeros(0), best.objective, best.gap, n_iter, status),
        "ascent",
        history=monitor.history,
    )
    return best.point, result
