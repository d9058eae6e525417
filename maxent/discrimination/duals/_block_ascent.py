"""The dual over blocks by the road that suits them.

The interior point of :mod:`.block_dual` factorises the Hessian of every block. Blocks
with `cheap_products`, distributions over trees among them, ask for a product with their
Hessian in about the time of a gradient, and for a factor in a hundred times as much:
for these the projected Newton method of :mod:`._projected_newton` serves.

Where these steps stall, the interior point has a try: it keeps away from the ends of
the domain and from zero at once.

Source: Jaakkola, Meila & Jebara (1999), Theorem 1.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from maxent._optimize.block_sum import BlockSum
from maxent._optimize.interior_point import interior_point
from maxent._optimize.projected_newton import projected_newton
from maxent._optimize.rows import Rows
from maxent._optimize.vanishing_slacks import goes_on
from maxent._support.results import Status
from maxent._support.threads import single_threaded_blas
from maxent.discrimination.duals.block_dual import (
    check_blocks,
    check_incidence,
    prefer_zero,
    solve_blocks,
)


def ascend_blocks(
    blocks,
    maps,
    margin,
    *,
    bias=None,
    incidence=None,
    sample_weight,
    level,
    tol,
    max_iter,
    callback=None,
):
    """Solve the dual by projected Newton steps where the blocks declare it cheap.

    Parameters, result and errors are those of :func:`solve_blocks`, with weights and
    levels checked already. Margin priors without a finite slope at zero multipliers, or
    without a finite loss, take the interior point.
    """
    blocks, checked = check_blocks(blocks, maps)
    cheap = all(getattr(block, "cheap_products", False) for block in blocks)
    g = margin.unit_potential
    # entropies have infinite slopes at zero, fixed margins no finite loss
    if not (cheap and g.finite_at_zero and g.finite_loss):
        return solve_blocks(
            blocks,
            maps,
            margin,
            bias=bias,
            incidence=incidence,
            sample_weight=sample_weight,
            level=level,
            tol=tol,
            max_iter=max_iter,
            callback=callback,
        )
    n = len(level)
    rows = Rows.of(margin, np.asarray(sample_weight), np.asarray(level))
    E = None if bias is None else check_incidence(incidence, n)
    flat = E if bias == "flat" else None
    gaussian = None if E is None or flat is not None else np.sqrt(bias) * E
    R = BlockSum(blocks, checked, gaussian)
    with single_threaded_blas():
        result = _ascend(rows, R, flat, tol, max_iter, callback)
        if result.objective <= tol:
            prefer_zero(result, rows, R, flat, tol)
    if flat is None:
        result.bias = None if E is None else bias * (E.T @ result.lam)
    return result


def _ascend(rows, R, E, tol, max_iter, callback):
    """By Newton steps, and once more by the interior point where these stall."""
    options = {"tol": tol, "max_iter": max_iter, "callback": callback}
    result = projected_newton(rows, R, E, **options)
    left = max_iter - result.n_iter
    if result.status is not Status.STALLED or not left:
        return result
    options["max_iter"] = left
    options["callback"] = goes_on(result, callback)
    other = interior_point(rows, R, E, **options)
    best = min(result, other, key=lambda one: one.relative_gap)
    status = Status.CONVERGED if best.converged else other.status
    steps = result.n_iter + other.n_iter
    result.history.append((steps, best.objective, best.gap))
    return replace(best, status=status, n_iter=steps, history=result.history)
