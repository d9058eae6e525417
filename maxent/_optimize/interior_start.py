"""The start of the interior point: multipliers, biases and all duals."""

from __future__ import annotations

import numpy as np

from maxent._optimize.bias import best_bias_of
from maxent._optimize.certificate import repair_equality
from maxent._optimize.slack_barrier import PrimalDualSlacks

# Weight of an open end's own barrier, in units of a row's largest objective, below
# which the end has a dual. Quadratics at sharpness 5 take 10 steps without one, and at
# 1e3, 1e6 and 1e12 they take 18, 33 and 64; with it 9, 18 and 26.
_WEAK = 1e-2


def start_inside(rows, R, E, init=None):
    """lam, b, duals of zero and of the end, and the slacks of R's domain.

    Parameters
    ----------
    rows : Rows
    R : regulariser
    E : ndarray (n, k) or None
    init : ndarray (n,) or None
        Multipliers that are moved into the domain.
    """
    lam = _into_domain(R, _multipliers(rows, R, E, init))
    z, t = _duals(rows, R, lam)
    domain = PrimalDualSlacks(R, lam)
    domain.init_duals(0.02 * _scale(rows, lam))
    return lam, np.zeros(0 if E is None else E.shape[1]), z, t, domain


def has_upper_duals(rows, R):
    """True if upper ends of the multipliers have slacks and duals of their own.

    Ends that are attained have. An open end has a barrier, -weight log(1 - u) say; a
    weak one is felt next to the end only, where Newton steps without a dual run into it
    and come away slowly. Log-partition functions bend too much for many such duals.
    """
    if rows.potential.has_end or R.blocks or not np.isfinite(rows.upper).all():
        return rows.potential.has_end
    return bool((rows.weight < _WEAK * _scale(rows, rows.upper)).all())


def _multipliers(rows, R, E, init):
    """Interior start: a tenth of the domain, or as far as the quadratic pays for.

    Open domains have their own barrier, which makes a start far out the better one;
    boxes and unbounded domains start near the best point of a uniform ray.
    """
    upper = rows.upper
    unbounded = ~np.isfinite(upper)
    lam = 0.1 * np.where(unbounded, rows.weight * rows.rate, upper)
    if not (R.homogeneous or rows.potential.closed or unbounded.any()):
        lam = _response(rows, R, E, upper)
    balanced = repair_equality(lam, upper, E)
    lam = lam if balanced is None else np.maximum(balanced, 1e-3 * lam)
    if unbounded.any() or rows.potential.closed:
        lam = _into_domain(R, lam)
        # J along the ray is nearly slope @ lam - curved; a level of zero leaves no
        # slope but that of R.
        value, _ = R.value_and_margins(lam)
        slope, curved = rows.q + rows.slope(1e-3 * lam), value
        if not R.homogeneous:
            _, margins = R.value_and_margins(np.zeros_like(lam))
            slope, curved = slope - margins, value - float(margins @ lam)
        far = 0.5 * float(np.abs(slope) @ lam) / curved if curved > 0 else 1.0
        if far > 0:
            lam = lam * (far if unbounded.all() else min(far, 1.0))
    if init is None:
        return lam
    lam = np.maximum(init, 1e-2 * lam)
    return np.where(unbounded, lam, np.minimum(lam, (1 - 1e-3) * upper))


def _response(rows, R, E, upper):
    """Multipliers that the rows ask for at the margins of a model before training."""
    _, margins = R.value_and_margins(np.zeros_like(upper))
    d = rows.q - margins
    if E is not None:
        d = d - E @ best_bias_of(rows, d, E, np.zeros(E.shape[1]))
    return np.clip(rows.loss(d)[1], 0.01 * upper, 0.5 * upper)


def _into_domain(R, lam):
    """Multipliers shrunk until they are well inside the domain of R."""
    far = R.max_step(np.zeros_like(lam), lam)
    lam = lam if far > 1.6 else 0.6 * far * lam
    for _ in range(100 if not R.homogeneous else 0):  # `far` may be a user's mistake
        if R.value_and_margins(lam)[0] < np.inf:
            break
        lam = 0.5 * lam
    return lam


def _duals(rows, R, lam):
    """Duals of lam >= 0 and, if there is one, of the end: stationary if cheap."""
    if not has_upper_duals(rows, R):
        share = 0.1 if R.homogeneous else 0.02
        z = share * _scale(rows, lam) / lam
        if R.homogeneous:
            return z, None
        # Margins of a model with a prior over its parameters start far above levels.
        _, margins = R.value_and_margins(lam)
        return z + np.maximum(margins - rows.slope(lam) - rows.q, 0.0), None
    _, margins = R.value_and_margins(lam)
    r = rows.q - margins + rows.slope(lam)
    mu = 0.1 * float(np.mean(lam * np.abs(r))) + 1e-10
    room = rows.upper - lam
    return np.maximum(-r, 0.0) + mu / lam, np.maximum(r, 0.0) + mu / room


def _scale(rows, lam):
    """A product of multiplier and slack of the size of the problem."""
    return float(np.mean(lam * np.maximum(np.abs(rows.q), 1e-3)))
