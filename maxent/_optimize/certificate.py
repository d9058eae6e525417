"""Constraint rows, the duality gap, and the bias that makes it smallest.

A row r holds a multiplier lam_r >= 0 and a shortfall

    d_r = q_r - (Q lam)_r - (E b)_r,      q_r = level_r (plus its target)

the amount by which its margin misses the level. For any feasible multipliers

    gap = sum_r weight_r [ G(x_r) - x_r u_r - g(u_r) ] >= 0,
    x = rate * d,  u = lam / (weight * rate)

is primal minus dual objective: a sum of Fenchel-Young terms, each zero exactly when its
row satisfies its optimality condition. It is the one certificate of this package.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxent._optimize.bias import best_bias_of
from maxent._support.linalg import small_solve, weighted_products


@dataclass
class DualPoint:
    """Multipliers and their certificate, as :func:`certify` finds it.

    Attributes
    ----------
    lam : ndarray (n,) or None
        None where no feasible multipliers are known.
    objective, gap : float
    bias : ndarray (k,) or None
        The biases of the gap.
    d : ndarray (n,)
        Shortfalls at `bias`, without duals of slacks.
    blocks : list of Block or None
        Blocks with duals of slacks, where the gap is theirs.
    """

    lam: np.ndarray | None
    objective: float
    gap: float
    bias: np.ndarray | None
    d: np.ndarray
    blocks: list[Any] | None = None


def repair_equality(lam, upper, E, total=None):
    """Feasible multipliers with E' lam = total near ones that miss it by a little.

    The correction is spread over multipliers by the square of their room, so none
    leaves its domain and zeros stay zero. One equality that is missed by much is
    met by scaling the heavier side down, which is possible if the total is zero, as it
    is by default. Several equalities, or one with a total of its own, are met by
    scaling multipliers and their distances to the upper end; None if that fails.
    """
    if E is None:
        return lam
    goal = np.zeros(E.shape[1]) if total is None else total
    for _ in range(4):
        lack = E.T @ lam - goal
        if (np.abs(lack) <= 1e-14 * (abs(E.T) @ lam + np.abs(goal))).all():
            return lam
        room = np.minimum(lam, np.where(np.isfinite(upper), upper - lam, np.inf))
        W = np.maximum(room, 0.0) ** 2
        S = weighted_products(E, W)
        # Classes that are far apart have multipliers, and so entries, of other sizes.
        scale = np.sqrt(np.maximum(S.diagonal(), np.finfo(float).tiny))
        pull = small_solve(S / np.outer(scale, scale), lack / scale) / scale
        move = W * (E @ pull)
        if (np.abs(move) > 0.5 * room).any():
            break
        lam = lam - move
    if E.shape[1] > 1 or total is not None:
        return _scaled(lam, upper, E, goal)
    side = E[:, 0] * lam
    up, down = side[side > 0].sum(), -side[side < 0].sum()
    if up == 0 or down == 0:
        return np.zeros_like(lam)
    factor = np.where(side > 0, min(1.0, down / up), min(1.0, up / down))
    return lam * factor


def _scaled(lam, upper, E, goal):
    """Multipliers with E' lam = goal, of the smallest relative entropy to lam.

    Odds lam / (upper - lam), or lam itself without an upper end, are multiplied by
    exp(-E u); u minimises a smooth convex function, by damped Newton steps. None if
    they do not reach the goal.
    """
    bounded = np.isfinite(upper)
    top = np.where(bounded, upper, 1.0)
    share = np.clip(lam / top, 0.0, np.where(bounded, 1.0, np.inf))
    u = np.zeros(E.shape[1])

    def at(u):
        factor = np.exp(np.clip(-(E @ u), -700.0, 700.0))
        with np.errstate(over="ignore", invalid="ignore"):
            odds = top * (share / (share + (1.0 - share) / factor))
        new = np.where(bounded, odds, lam * factor)
        return new, E.T @ new - goal, abs(E.T) @ new + np.abs(goal)

    new, lack, size = at(u)
    for _ in range(60):
        if (np.abs(lack) <= 1e-14 * size).all():
            return new
        W = np.where(bounded, new * (1.0 - np.clip(new / top, 0.0, 1.0)), new)
        S = weighted_products(E, W)
        scale = np.sqrt(np.maximum(S.diagonal(), np.finfo(float).tiny))
        step = small_solve(S / np.outer(scale, scale), lack / scale) / scale
        if not np.isfinite(step).all():
            return None
        # Beyond a factor of e^2 the quadratic model of the exponentials is no guide.
        step *= min(1.0, 2.0 / max(float(np.abs(E @ step).max()), 1e-300))
        u = u + step
        new, lack, size = at(u)
    return None


def certify(rows, R, lam, E, guess, polish=True, total=None):
    """(objective, gap, bias, shortfalls); the gap is infinite at infeasible ones.

    The bias is the best one, or the guess if it is not to be polished.
    """
    if lam is None:
        return -np.inf, np.inf, guess, rows.q
    value, margins = R.value_and_margins(lam)
    if not value < np.inf:
        return -np.inf, np.inf, guess, rows.q
    d = rows.q - margins
    b = best_bias_of(rows, d, E, guess, total) if polish else guess
    if E is not None:
        d = d - E @ b
    objective = rows.value(lam) - value
    if rows.potential.hard and R.homogeneous:
        return objective, rows.hard_gap(d, 2 * value, objective), b, d
    return objective, rows.gap(lam, d), b, d
