"""The biases of the smallest duality gap at given shortfalls."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from maxent._core.machines import signed_rows
from maxent._support.linalg import weighted_products


def best_bias(rows, d, sign, guess=0.0):
    """argmin over b of the total loss at shortfalls d - sign * b.

    One-dimensional, convex: Newton inside a bracket. Where a whole interval is
    optimal, its midpoint, or 0 if it contains 0. Fixed margins have no finite loss:
    there it is the bias of the largest smallest margin.

    `sign` holds labels, or their means between -1 and 1.
    """
    if not sign.all():  # such rows do not see the bias
        seen = np.flatnonzero(sign)
        return best_bias(rows.subset(seen), d[seen], sign[seen], guess)
    if rows.potential.hard:
        return _hard_bias(d, sign, guess)
    if rows.potential.linear:
        return _hinge_bias(d / sign, sign, rows.upper * np.abs(sign), guess)

    data = (
        rows.potential.core_spec,
        d,
        np.ascontiguousarray(sign, dtype=float),
        rows.rate,
        rows.weight,
    )

    def slope(b):
        return signed_rows.loss_slope(*data, b)

    near = signed_rows.newton_bias(*data, guess)
    if near is None:
        near = _bias_without_loss(rows, d, sign)
    if near is not None:
        return near
    lo, hi = _bracket(slope, guess, sign)
    if lo is None or hi is None:
        return guess
    return _root(slope, guess, lo, hi)


def _root(slope, guess, lo, hi):
    """Bias of zero slope in a bracket, by Newton steps and halvings."""
    b = guess if lo < guess < hi else 0.5 * (lo + hi)
    for _ in range(200):
        s, h = slope(b)
        if s == 0:
            return b if h > 0 else _middle_of_flat(slope, b, lo, hi)
        if s > 0:
            hi = b
        else:
            lo = b
        step = b - s / h if h > 0 else lo
        new = step if lo < step < hi else 0.5 * (lo + hi)
        if abs(new - b) <= 4e-16 * max(1.0, abs(b)) or hi - lo <= 4e-16 * max(
            1.0, abs(lo), abs(hi)
        ):
            return new
        b = new
    return b


def _hard_bias(d, sign, guess):
    """Bias of the largest smallest margin; the guess if it has none."""
    if not ((sign > 0).any() and (sign < 0).any()):
        return guess
    if not (np.abs(sign) == 1).all():
        return float(max_margin_bias(d, sign[:, None])[0])
    return 0.5 * float(d[sign > 0].max() - d[sign < 0].max())


def _hinge_bias(corner, sign, top, guess):
    """Middle of the flat bottom of a sum of hinges with these corners, or 0 in it."""
    rising, falling = top[sign < 0].sum(), top[sign > 0].sum()
    if rising == 0 or falling == 0:
        return guess
    order = np.argsort(corner, kind="stable")
    slope = np.cumsum(top[order]) - falling  # just beyond each corner
    tiny = 1e-12 * (rising + falling)
    first = int(np.searchsorted(slope, -tiny))
    lo = hi = float(corner[order[first]])
    last = int(np.searchsorted(slope, tiny, side="right"))
    if last > first:
        hi = float(corner[order[min(last, len(order) - 1)]])
    return 0.0 if lo <= 0.0 <= hi else 0.5 * (lo + hi)


def _bias_without_loss(rows, d, sign):
    """Middle of the biases at which no row has a loss, or 0 among them; None if none.

    A row has none while its shortfall stays below the one that asks for a multiplier.
    """
    up = sign > 0
    corner = (d + rows.slope(np.zeros_like(d))) / sign
    if up.all() or not up.any():
        return None
    lo, hi = float(corner[up].max()), float(corner[~up].min())
    if not lo <= hi:
        return None
    return 0.0 if lo <= 0.0 <= hi else 0.5 * (lo + hi)


def _bracket(slope, guess, sign):
    """Points where the slope is negative and positive; None on a side without one."""
    if not ((sign > 0).any() and (sign < 0).any()):
        return None, None
    ends = []
    for direction in (-1.0, 1.0):
        step, end = 1.0, None
        while step < 1e18:
            s, _ = slope(guess + direction * step)
            if s * direction > 0:
                end = guess + direction * step
                break
            step *= 4.0
        ends.append(end)
    return ends[0], ends[1]


def _middle_of_flat(slope, b, lo, hi):
    """Middle of the interval of zero slope around b (0 if it lies inside)."""
    if slope(0.0)[0] == 0:
        return 0.0
    ends = []
    for outer in (lo, hi):
        inner = b
        for _ in range(100):
            mid = 0.5 * (inner + outer)
            if slope(mid)[0] == 0:
                inner = mid
            else:
                outer = mid
        ends.append(inner)
    return 0.5 * (ends[0] + ends[1])


def best_bias_of(rows, d, E, guess, total=None):
    """Bias of smallest gap for shortfalls d (bias excluded); vector if E has columns.

    For several biases (one gauge removed) a damped Newton method. They are the Lagrange
    multipliers of ``E' lam = total``, zero by default.
    """
    if E is None:
        return None
    if E.shape[1] == 1 and total is None:
        return np.array([best_bias(rows, d, E[:, 0], float(guess[0]))])
    b = guess.copy()
    if rows.potential.hard:
        return b
    total = np.zeros(len(b)) if total is None else total

    def cost(b):
        loss, *rest = rows.loss(d - E @ b)
        return loss + float(total @ b), *rest

    reach = 1.0 + float(np.abs(d - E @ b).max())
    value, lam, curvature = cost(b)
    for _ in range(50):
        if not curvature.any():
            break  # piecewise linear here: the interior point's own bias stands
        grad = total - E.T @ lam
        step = _bounded_step(E, grad, curvature, reach)
        slope, t = float(grad @ step), 1.0
        if not slope < 0:
            break
        while t > 1e-10:
            new = cost(b + t * step)
            if new[0] <= value + 1e-4 * t * slope:
                break
            t *= 0.5
        else:
            break
        done = value - new[0] <= 1e-16 * abs(value)
        b = b + t * step
        value, lam, curvature = new
        if done:
            break
    return b


def _bounded_step(E, grad, curvature, reach):
    """Newton step of several biases that moves no shortfall by more than `reach`.

    Losses that are nearly linear would ask for farther ones.
    """
    H = weighted_products(E, curvature)
    H.flat[:: len(H) + 1] += 1e-14 * max(np.trace(H), 1e-300)
    step = np.linalg.lstsq(H, -grad, rcond=None)[0]
    if not np.abs(step).max() < 1e100:
        step = -grad
    far = float(np.abs(E @ step).max())
    return step * (min(1.0, reach / far) if far else 1.0)


def equality_multipliers(rows, d, E, guess, total=None):
    """Biases of the smallest gap; of several, for hinges, by a linear program."""
    if rows.potential.linear and (E.shape[1] > 1 or total is not None):
        found, _ = hinge_bias_lp(rows, d, E, total)
        return guess if found is None else found
    return best_bias_of(rows, d, E, guess, total)


def max_margin_bias(d, E):
    """Biases of the largest smallest margin for shortfalls d; 0 if none are needed.

    Where no row has a loss, a whole set of biases is optimal.
    """
    if (d <= 0).all():
        return np.zeros(E.shape[1])
    k = E.shape[1]
    found = linprog(
        np.append(np.zeros(k), -1.0),
        A_ub=np.column_stack([-E, np.ones(len(d))]),
        b_ub=-d,
        bounds=[(None, None)] * (k + 1),
    )
    return found.x[:k] if found.success else np.zeros(k)


def hinge_bias_lp(rows, d, E, total=None):
    """Biases (k,) of the smallest total loss of hinges, and multipliers (n,).

    The biases are the dual variables of the linear program ``max d' lam`` with ``E' lam
    = total``, zero by default, and lam within its bounds. None for both if it is not
    solved.
    """
    found = linprog(
        -d,
        A_eq=E.T,
        b_eq=np.zeros(E.shape[1]) if total is None else total,
        bounds=np.column_stack([np.zeros_like(d), rows.upper]),
    )
    return (-found.eqlin.marginals, found.x) if found.success else (None, None)
