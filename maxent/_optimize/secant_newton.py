"""Damped Newton ascent for priors whose slopes at zero are infinite.

    maximise  J(lam) = sum_r phi_r(lam_r) - R(lam),   E' lam = 0,   0 < lam < upper

At shortfalls d the prior asks for multipliers lam*(d), where d + slope(lam*) = 0.
Newton steps with the curvature of phi at lam are useless far from there: near an end it
is huge, or the step leaves the box by a factor of hundreds. With the secant between lam
and lam* in its place,

    (H + diag(gradient / (lam* - lam))) step = gradient,

a step is one of ascent, ends at lam* where H is zero, and is Newton's step at the
optimum. The line search follows the step with every multiplier stopped at a share of
its distance to the end. It serves duals whose R is nearly a maximum of a few linear
functions, as the log partition function of few trees with large multipliers is; the
interior point does not damp its steps across the kinks of these and can cycle.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from maxent._optimize.certificate import DualPoint, certify, repair_equality
from maxent._optimize.newton_system import equality_residual
from maxent._support.results import Certified, Monitor, Status, relative_gap

_KEPT = 0.01  # share of its distance to the end that a multiplier keeps in a step
_LEAST = 1e-250  # multipliers and, times `upper`, distances below this serve nothing
_NEAR = 1e-15
_FLAT = 0.1  # the line search ends where the slope has fallen to this share
_START = 4.0  # ends of multipliers from which weights are doubled
_ROUGH = 1e-4  # relative gap of the stages before the last
_TRIALS = 40
_ACCURACY = 0.03  # of a step, a share of it


def secant_newton(rows, R, E, *, tol, max_iter, init=None, callback=None):
    """Solve the dual; returns a DualResult (lam, bias vector, certificate).

    Large weights are reached by continuation: the log odds that a maximum of linear
    functions has at its kinks change little when weights double, so the solution for
    half the weights, its multipliers doubled, is within reach of Newton's steps.

    Parameters
    ----------
    rows : Rows
        With a finite loss and an infinite slope at zero.
    R : regulariser with value_and_margins and solver
    E : ndarray (n, k) or None
    tol : float
        Stop when gap <= tol * (1 + objective).
    max_iter : int
        Bound on the steps of all stages together.
    init : ndarray (n,) or None
        Multipliers to start from, in one stage.
    callback : callable(n_iter, objective, gap) or None
        Called after each step with the dual that is asked for, whatever the stage.
    """
    largest = float(np.where(np.isfinite(rows.upper), rows.upper, 0.0).max())
    stages = max(0, math.ceil(math.log2(max(largest, 1.0) / _START)))
    stages = stages if init is None else 0
    whole, monitor = _SecantNewton(rows, R, E), Monitor(tol, callback, solver="newton")
    lam, inside = init, np.zeros(len(rows.q))
    b = None if E is None else np.zeros(E.shape[1])
    n_iter = 0
    for s in 2.0 ** np.arange(stages, -1, -1):
        easier = _SecantNewton(replace(rows, weight=rows.weight / s), R, E)
        problem = whole if s == 1.0 else easier
        point = problem.at(_start(problem.rows, R, lam, inside), b)
        status = Status.MAX_ITER
        while n_iter < max_iter and status is not Status.STALLED:
            n_iter += 1
            new = None if point.objective == -np.inf else problem.improved(point)
            status = Status.STALLED if new is None else status
            point = point if new is None else new
            reported = point if problem is whole else whole.at(point.lam, point.bias)
            if monitor.record(n_iter, reported.objective, reported.gap, reported):
                return monitor.result(n_iter, monitor.status)
            if (
                problem is not whole
                and relative_gap(point.gap, point.objective) <= _ROUGH
            ):
                break
        inside, b, lam = point.lam, point.bias, 2.0 * point.lam
    if monitor.best is None:  # nowhere inside the domain
        monitor.best = Certified(point, point.objective, point.gap)
    return monitor.result(n_iter, status)


def _start(rows, R, lam, inside):
    """Multipliers to start from, or between these and some inside the domain."""
    lam = rows.start_inside() if lam is None else lam
    for _ in range(_TRIALS):
        if R.value_and_margins(lam)[0] < np.inf:
            break
        lam = inside + 0.5 * (lam - inside)
    return lam


class _SecantNewton:
    def __init__(self, rows, R, E):
        self.rows, self.R, self.E = rows, R, E
        self.upper = rows.upper

    def _inside(self, lam):
        return np.clip(lam, _LEAST, self.upper * (1 - _NEAR))

    def at(self, lam, guess):
        """The point of multipliers moved inside; of value -inf beyond the domain."""
        lam = repair_equality(self._inside(lam), self.upper, self.E)
        return DualPoint(lam, *certify(self.rows, self.R, lam, self.E, guess))

    def improved(self, point):
        """A point of larger value; None if rounding allows none."""
        steps = self._step(point)
        if steps is None:
            return None
        step, db = steps
        full = slope_low = float((point.d + self.rows.slope(point.lam)) @ step)
        low, high, slope_high, t, best = 0.0, 1.0, None, 1.0, None
        for _ in range(_TRIALS):
            new, slope = self._along(point, step, db, t)
            gained = new.objective > point.objective
            if gained and (best is None or new.objective > best.objective):
                best = new
            if gained and (abs(slope) <= _FLAT * full or (slope > 0 and t == 1.0)):
                break
            if gained and slope > 0:
                low, slope_low = t, slope
            else:
                high, slope_high = t, slope
            share = 0.5
            if slope_high is not None and -np.inf < slope_high < 0:
                share = min(max(slope_low / (slope_low - slope_high), 0.1), 0.9)
            t = low + share * (high - low)
        return best

    def _step(self, point):
        """Newton's steps of multipliers and biases; None if there are none."""
        lam = point.lam
        gradient = point.d + self.rows.slope(lam)
        _, wanted, _ = self.rows.losses(point.d)
        move = self._inside(wanted) - lam
        with np.errstate(all="ignore"):
            secant = gradient / move
            usable = (np.abs(move) > 1e-9 * lam) & (secant > 0) & np.isfinite(secant)
        diagonal = np.where(usable, secant, self.rows.curvature(lam))
        lack = equality_residual(self.E, lam)
        try:
            system = self.R.solver(lam, diagonal, accuracy=_ACCURACY)
            step, db = system.bordered(self.E)(gradient, lack)
        except np.linalg.LinAlgError:
            return None
        ascends = np.isfinite(step).all() and gradient @ step > 0
        return (step, db) if ascends else None

    def _along(self, point, step, db, t):
        """The point a share t along the step, and the slope of the value there."""
        lam, room = point.lam, self.upper - point.lam
        with np.errstate(invalid="ignore"):
            high = np.where(np.isfinite(room), self.upper - _KEPT * room, np.inf)
        low, free = _KEPT * lam, lam + t * step
        b = point.bias if db is None else point.bias + t * db
        new = self.at(np.clip(free, low, high), b)
        if new.objective == -np.inf:
            return new, -np.inf
        moving = np.where((free > low) & (free < high), step, 0.0)
        return new, float((new.d + self.rows.slope(new.lam)) @ moving)
