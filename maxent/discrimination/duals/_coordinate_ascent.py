"""Coordinate ascent on the multipliers of a linear dual, dense or sparse.

Source: Hsieh, Chang, Lin, Keerthi & Sundararajan (2008), A dual coordinate descent
method for large-scale linear SVM.
"""

from __future__ import annotations

import numpy as np

from maxent._core.coordinate import epoch_csr, epoch_dense
from maxent._optimize.certificate import repair_equality
from maxent._support.results import DualResult, Status, relative_gap


def coordinate_ascent(linear, tol, max_iter, init, callback, seed):
    """DualResult of a LinearProblem, by epochs over its constraint rows."""
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
    elif not local.potential.finite_at_zero:
        lam = local.start_inside()
        if linear.flat:
            lam = repair_equality(lam, local.upper, sign[:, None])
    if lam.any():
        a = np.bincount(where, weights=sign * lam, minlength=X.shape[0])
        w = np.asarray(X.T @ a).ravel()
        bias[0] = variance * a.sum()
    fixed = (
        local.potential.core_spec,
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
                objective = local.value(lam) - 0.5 * float(w @ w)
        if not np.isfinite(found) and local.potential.finite_loss:
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
