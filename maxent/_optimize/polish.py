"""Exact zeros for the multipliers of inactive rows, and a last Newton iteration.

The optimum of the interior point has small positive multipliers where the exact one has
zeros. Active rows are told from inactive ones by their complementary pairs; Newton's
method on the active rows alone then converges quadratically.
"""

from __future__ import annotations

import numpy as np

from maxent._optimize.certificate import DualPoint, certify, repair_equality
from maxent._optimize.newton_system import (
    NEAREST_END,
    equality_residual,
    longest_step,
)


def polished(best, rows, certified_rows, R, E):
    """The point with the multipliers of inactive rows exactly zero, by Newton.

    Accepted only if the certificate improves (or stays at rounding level).

    Parameters
    ----------
    best : DualPoint
        With feasible multipliers, and no duals of slacks.
    rows : Rows
        Those that the solver met.
    certified_rows : Rows
        Those whose certificate is wanted.
    R : regulariser with value_and_margins, restricted
    E : ndarray (n, k) or None

    Returns
    -------
    DualPoint
    """
    upper = rows.upper
    free, at_end = _active_set(best, rows)
    if not free.any():
        return best

    def certified(lam, bias):
        lam = repair_equality(lam, upper, E)
        return DualPoint(lam, *certify(certified_rows, R, lam, E, bias))

    sparse = np.where(free | at_end, best.lam, 0.0)
    start = sparse.copy()
    if rows.potential.closed:
        start[at_end] = upper[at_end]
    candidate = _newton(start, np.flatnonzero(free), best, rows, R, E)
    if candidate is None:
        return best
    candidate = certified(*candidate)
    # Margins that are all met as asked leave the difference of the two levels open.
    lift = float((rows.q - certified_rows.q) @ best.lam)
    rounding = _rounding(best, rows, free)
    if np.isfinite(candidate.gap) and candidate.gap <= best.gap + (lift + rounding):
        return candidate
    # Where Newton did not help, the zeros alone may.
    candidate = certified(sparse, best.bias)
    if np.isfinite(candidate.gap) and candidate.gap <= max(2 * best.gap, rounding):
        return candidate
    return best


def _rounding(best, rows, free):
    """Level of the gap that is lost in rounding.

    A shortfall of zero, a difference of level and margin, comes out as some units in
    the last place of these. Where the loss has its corner, the gap grows by as much
    times the upper bound of the multiplier, which may be far above the objective.
    """
    lost = 1e-15 * (1 + abs(best.objective))
    if not rows.potential.linear:
        return lost
    steepest = np.where(np.isfinite(rows.upper), rows.upper, best.lam)
    size = np.abs(rows.q) + np.abs(rows.q - best.d)
    return lost + 1e-15 * float(steepest[free] @ size[free])


def _active_set(best, rows):
    """Multipliers inside their domain and multipliers at its end, as masks."""
    lam, upper = best.lam, rows.upper
    top = np.where(np.isfinite(upper), upper, max(lam.max(initial=0.0), 1e-300))
    if rows.potential.closed:
        at_end = lam >= (1 - 1e-7) * upper
        free = lam > 1e-7 * top
    else:
        _, wanted, _ = rows.loss(best.d)
        # Of a pair (multiplier, slack) the smaller one, by its scale, tends to zero.
        slack = -(best.d + rows.slope(lam)) / max(float(np.abs(rows.q).max()), 1e-3)
        free = (wanted > 0) | (lam > np.maximum(slack, 1e-7) * top)
        at_end = lam >= NEAREST_END * upper
    return free & ~at_end, at_end


def _newton(lam, index, best, rows, R, E):
    """Multipliers and bias after Newton steps at `index`; None without a factor."""
    b, part, lam = best.bias, rows.subset(index), lam.copy()
    restricted = R.restricted(index, best.lam)
    Ef = None if E is None else E[index]
    # The gap is the square of the last step, but for piecewise linear losses.
    enough = 0.0 if rows.potential.linear else 1e-8
    for _ in range(3):
        _, margins = R.value_and_margins(lam)
        rhs = (rows.q - margins + rows.slope(lam))[index]
        if E is not None:
            rhs = rhs - Ef @ b
        diagonal = part.curvature(lam[index])
        scale = 1e-12 * max(float(np.abs(diagonal).max(initial=0.0)), 1e-3)
        try:
            system = restricted.solver(lam[index], diagonal + scale)
            step, db = system.bordered(Ef)(rhs, equality_residual(E, lam))
        except np.linalg.LinAlgError:
            return None
        a = longest_step(lam[index], step, part.upper)
        a = 1.0 if a >= 1.0 else 0.9 * a
        lam[index] = np.minimum(lam[index] + a * step, NEAREST_END * part.upper)
        if E is not None:
            b = b + a * db
        if (np.abs(step) <= enough * lam[index]).all():
            break
    return np.maximum(lam, 0.0), b
