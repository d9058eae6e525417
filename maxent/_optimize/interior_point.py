"""Primal-dual interior point for small duals, with a certified stop.

    maximise  sum_r [ q_r lam_r + w_r g(lam_r / (w_r c_r)) ] - R(lam)
    subject to  lam >= 0,  E' lam = total

R is convex with Hessian H(lam); the Newton system (H + D) dlam + E db = rhs is solved
through R itself (see :mod:`._quadratics`). The multiplier b of the equality is the
bias.

Source: Mehrotra (1992), On the implementation of a primal-dual interior point method.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxent._optimize.certificate import DualPoint, certify, repair_equality
from maxent._optimize.interior_start import has_upper_duals, start_inside
from maxent._optimize.newton_system import (
    NEAREST_END,
    equality_residual,
    longest_step,
)
from maxent._optimize.polish import polished
from maxent._optimize.vanishing_slacks import certify_with_slack_duals
from maxent._support.results import DualResult, Monitor, Status, relative_gap

_IDLE = 100  # steps without one per cent off the gap, after which no more will come
_NEAR = 1e-3  # the relative gap from which on the best bias matters


def interior_point(
    rows,
    R,
    E,
    *,
    tol,
    max_iter,
    init=None,
    certified=None,
    callback=None,
    start=start_inside,
):
    """Solve the dual; returns a DualResult (lam, bias vector, certificate).

    Parameters
    ----------
    rows : Rows
    R : regulariser with value_and_margins, solver, restricted
    E : ndarray (n, k) or None
    tol : float
        Stop when gap <= tol * (1 + objective).
    max_iter : int
        Bound on the steps.
    init : ndarray or None
        Warm start; moved into the interior.
    certified : Rows or None
        The rows whose certificate is wanted, if they differ a little from `rows`.
    callback : callable(n_iter, objective, gap) or None
    start : callable
        The start as :func:`start_inside` makes it, from the rows, R, E and `init`. It
        need not be stationary: residuals fade with the steps.
    """
    certified = rows if certified is None else certified
    monitor = Monitor(tol, callback, solver="interior")
    solver = _InteriorPoint(rows, R, E, certified, monitor)
    return solver.run(start(rows, R, E, init), max_iter)


@dataclass
class _State:
    """An iterate; the slacks of R's domain and their duals are kept apart.

    Attributes
    ----------
    lam : ndarray (n,)
        Multipliers.
    bias : ndarray (k,)
        Multipliers of the equality.
    z : ndarray (n,)
        Duals of lam >= 0.
    t : ndarray (n,) or None
        Duals of lam <= upper, where there are some.
    upper_slack : ndarray (n,) or None
        The distance to that end.
    gradient : ndarray (n,) or None
        Of the Lagrangian in lam, all duals of inequalities aside; None outside the
        domain of R.
    """

    lam: np.ndarray
    bias: np.ndarray
    z: np.ndarray
    t: np.ndarray | None
    upper_slack: np.ndarray | None = None
    gradient: np.ndarray | None = None

    def moved(self, step, a):
        """The state after a share a of a step; its gradient is not known."""
        return _State(
            self.lam + a * step.lam,
            self.bias if step.bias is None else self.bias + a * step.bias,
            self.z + a * step.z,
            None if self.t is None else self.t + a * step.t,
            None if self.t is None else self.upper_slack - a * step.lam,
        )

    def complementarity(self):
        """Sum of all products of a slack and its dual."""
        total = self.lam @ self.z
        return total if self.t is None else total + self.upper_slack @ self.t

    def residual(self, domain_gradient):
        """Norm of the stationarity condition, given the part of R's domain."""
        r = self.gradient + domain_gradient + self.z
        r = r if self.t is None else r - self.t
        return math.sqrt(r @ r)


@dataclass
class _Step:
    """Changes of a state, and of the slacks of R's domain with their duals."""

    lam: np.ndarray
    bias: np.ndarray | None
    z: np.ndarray
    t: np.ndarray | None
    domain: tuple[Any, ...]


@dataclass
class _Targets:
    """Products of slacks and duals to aim at: of lam, of its end, of R's domain."""

    lower: np.ndarray | float
    upper: np.ndarray | float | None
    domain: list[Any]


class _InteriorPoint:
    """The iteration: predict, correct, accept, certify."""

    def __init__(self, rows, R, E, certified_rows, monitor):
        self.rows, self.R, self.E = rows, R, E
        self.certified_rows, self.monitor = certified_rows, monitor
        self.upper, self.has_end = rows.upper, has_upper_duals(rows, R)
        self.largest = float(np.abs(rows.q).max(initial=0.0))
        # Blocks under hard margins: 1e9 nats are far beyond a divergence that rows can
        # ask for, and the steps of an objective without bound get slow before 1e12.
        most = 1e9 if rows.potential.hard and not R.homogeneous else 1e12
        most *= max(1.0, 1.0 / max(R.mean_diagonal(), 1e-300))
        most *= max(1.0, self.largest) ** 2
        self.unbounded_from = np.inf if R.bounds_dual else most
        # Quadratics are cheap enough to go on to the last digit.
        self.enough = min(monitor.tol, 1e-12) if R.homogeneous else monitor.tol
        self.last_progress = 0, np.inf, -np.inf

    def run(self, start, max_iter):
        """The result after at most `max_iter` steps."""
        *start, self.domain = start
        state = self._evaluated(_State(*start), rebalance=False)
        status, n_iter = None, 0
        while status is None and n_iter < max_iter:
            n_iter += 1
            products = state.complementarity() + self.domain.complementarity()
            new = self._advance(state, products)
            if new is None:
                status = Status.STALLED
                break
            state, point = new, self._certify(new)
            self.monitor.record(n_iter, point.objective, point.gap, point)
            status = self._should_stop(n_iter, point, products)
            if status is None and self.monitor.stopped:
                status = Status.STOPPED
        return self._result(state, n_iter, status or Status.MAX_ITER)

    # -- one step ------------------------------------------------------------------
    def _advance(self, state, products):
        """The next state; None if the Newton system has no factor, or no step helps.

        `products` is the complementarity at the state.
        """
        try:  # a recycled Hessian may need a factor as late as for a right-hand side
            solve = self._newton_system(state)
            targets = self._predict(state, solve, products)
            step, share = self._correct(state, solve, targets)
        except np.linalg.LinAlgError:
            return None
        return self._accept(state, step, share)

    def _newton_system(self, state):
        """Function that solves the bordered Newton system."""
        diagonal = self.rows.curvature(state.lam) + state.z / state.lam
        if self.has_end:
            diagonal = diagonal + state.t / state.upper_slack
        return self.domain.solver(state.lam, diagonal).bordered(self.E)

    def _predict(self, state, solve, products):
        """Targets of the step, from the affine one (Mehrotra 1992).

        The affine step tells how much of the complementarity can go, and what the
        linear model of the products neglects; counted in full, short steps can run in
        circles.
        """
        domain, has_end = self.domain, self.has_end
        zero = _Targets(
            0.0, 0.0 if has_end else None, domain.complementarity_target(0.0)
        )
        affine = self._direction(state, solve, zero)
        a = min(self._step_length(state, affine, 1.0), domain.max_share(affine.domain))
        after = state.moved(affine, a).complementarity()
        after = after + domain.complementarity(affine.domain, a)
        mu = self._barrier_weight(state, products, after)
        return _Targets(
            mu - a * affine.lam * affine.z,
            mu + a * affine.lam * affine.t if has_end else None,
            domain.complementarity_target(mu, affine.domain, a),
        )

    def _barrier_weight(self, state, products, after):
        """The product mu of every slack and its dual to aim at."""
        rows, domain, n = self.rows, self.domain, len(state.lam)
        sigma = min(max((after / products) ** 3, 1e-6), 0.5)
        mu = sigma * products / (n * (2 if self.has_end else 1) + domain.count)
        if domain.count:
            # Complementarity must not go ahead of the conditions on the slopes.
            d = state.gradient + domain.dual_gradient() - rows.slope(state.lam)
            ahead = rows.gap(state.lam, d) > products
            share = domain.least_shares[int(ahead)]
            mu = max(mu, share * products / (n + domain.count))
        elif not self.R.homogeneous and rows.potential.finite_at_zero:
            # Slacks that vanish long before the slopes do hold multipliers at zero.
            # Infinite slopes do not, and change by log(10) where mu changes tenfold.
            residual = state.residual(domain.dual_gradient())
            mu = max(mu, 1e-6 * residual / math.sqrt(n) * float(state.lam.mean()))
        return mu

    def _correct(self, state, solve, targets):
        """The step to the targets of the predictor, and the share of it to take."""
        step = self._direction(state, solve, targets)
        a = self._step_length(state, step, 0.99)
        a = min(a, 0.99 * self.R.max_step(state.lam, step.lam))
        return step, min(a, 0.99 * self.domain.max_share(step.domain))

    def _direction(self, state, solve, targets):
        """Newton direction towards the targets of the products."""
        lam, z, t, room = state.lam, state.z, state.t, state.upper_slack
        below, above = targets.lower, targets.upper
        rhs = state.gradient + self.domain.target_gradient(targets.domain) + below / lam
        if t is not None:
            rhs = rhs - above / room
        step, db = solve(rhs, equality_residual(self.E, lam))
        dz = below / lam - z - z / lam * step
        dt = None if t is None else above / room - t + t / room * step
        return _Step(step, db, dz, dt, self.domain.direction(step, targets.domain))

    def _step_length(self, state, step, keep):
        """Largest step <= 1 that stays inside; a share `keep` of it if below 1."""
        a = min(
            longest_step(state.lam, step.lam, self.upper), longest_step(state.z, step.z)
        )
        if state.t is not None:
            a = min(a, longest_step(state.t, step.t))
        # From far beyond the answer, a whole step ends at zero by rounding.
        inside = (state.lam + step.lam > 0).all() and (state.z + step.z > 0).all()
        return 1.0 if a >= 1.0 and inside else keep * a

    def _accept(self, state, step, share):
        """The state after a share of a step, or less; None if none is in the domain.

        The share is halved while the step leaves the domain of R, which rounding or a
        block's own `max_step` may misjudge, and while the residual explodes.
        """
        domain, residual = self.domain, state.residual(self.domain.dual_gradient())
        max_residual = 10.0 * residual + 1e-6 * (1.0 + self.largest)
        for a in share * 0.5 ** np.arange(31):
            new = self._evaluated(state.moved(step, a))
            residual = np.inf
            if new.gradient is not None:
                residual = new.residual(domain.dual_gradient(step.domain, a))
            if residual <= max_residual:
                break
        if not (residual < np.inf and a > 0.0):
            return None
        domain.update(new.lam, step.domain, a)
        return new

    def _evaluated(self, state, rebalance=True):
        """The state with its gradient and slack of the end, rounding errors removed."""
        rows, lam = self.rows, state.lam
        if rebalance:
            lam = self._rebalanced(lam)
        upper_slack = None
        if self.has_end:
            upper_slack = np.maximum(self.upper - lam, 1e-16 * self.upper)
        value, margins = self.R.value_and_margins(lam)
        gradient = None
        if value != np.inf:
            gradient = rows.q - margins + rows.slope(lam)
            if self.E is not None:
                gradient = gradient - self.E @ state.bias
            if not rows.potential.closed:
                # Multipliers at the last number below the end of an open domain cannot
                # grow.
                gradient[(lam >= NEAREST_END * self.upper) & (gradient > 0)] = 0.0
        return replace(state, lam=lam, upper_slack=upper_slack, gradient=gradient)

    def _rebalanced(self, lam):
        """Multipliers freed of what rounding has added to E' lam.

        The certificate at the next point then needs no second evaluation of R.
        """
        lam = np.minimum(lam, NEAREST_END * self.upper)
        if self.E is None:
            return lam
        lack, size = np.abs(equality_residual(self.E, lam)), np.abs(self.E.T) @ lam
        if (lack > 1e-10 * size).any():
            return lam
        new = repair_equality(lam, self.upper, self.E)
        return lam if new is None else new

    # -- certificates --------------------------------------------------------------
    def _point(self, lam, bias, polish=True):
        """Certified point at multipliers that may be infeasible (None)."""
        if self.E is None:
            bias = None
        certificate = certify(
            self.certified_rows, self.R, lam, self.E, bias, polish=polish
        )
        return DualPoint(lam, *certificate)

    def _certify(self, state):
        """Certified point near a state, with the duals of slacks that vanish."""
        lam = repair_equality(state.lam, self.upper, self.E)
        point = self._point(lam, state.bias, polish=False)
        if self.E is not None and relative_gap(point.gap, point.objective) <= _NEAR:
            point = self._point(lam, state.bias)  # with the best bias
        J, tol = point.objective, self.monitor.tol
        if self.domain.count and relative_gap(point.gap, J) > tol and -np.inf < J:
            with_duals = certify_with_slack_duals(
                *(self.certified_rows, self.R, self.E, lam, point.gap, point.bias),
                self.domain,
                target=tol * (1.0 + max(J, 0.0)),
            )
            if with_duals is not None:
                gap, bias, blocks = with_duals
                point = replace(point, gap=gap, bias=bias, blocks=blocks)
        return point

    def _should_stop(self, n_iter, point, products):
        """The status that ends the iteration, or None.

        `products` is the complementarity before the step.
        """
        J, gap, history = point.objective, point.gap, self.monitor.history
        if relative_gap(gap, J) <= self.enough:
            return Status.CONVERGED
        last, last_gap, last_J = self.last_progress
        if gap < 0.99 * last_gap or last_J + 1e-6 * abs(J) < J:
            self.last_progress = last, *_ = n_iter, gap, J
        if n_iter - last > _IDLE:
            return Status.STALLED
        slow = len(history) > 5 and gap > 0.5 * history[-4][2]
        if slow and self.monitor.converged:
            return Status.CONVERGED
        if self.unbounded_from < J:
            return Status.UNBOUNDED
        # Newton's steps may still be on their way when all slacks have vanished
        unit = 0.0 if self.rows.potential.hard else 1.0
        gone = products < 1e-18 * (unit + max(J, 0.0))
        return Status.STALLED if gone and (slow or products < 1e-200) else None

    # -- the end -------------------------------------------------------------------
    def _result(self, state, n_iter, status):
        """The best point met, polished if that keeps what it proves."""
        tol, best = self.monitor.tol, self.monitor.best
        if best is None:
            best = self._point(np.zeros_like(state.lam), state.bias)
        else:
            best = best.point
            if relative_gap(best.gap, best.objective) > _NEAR and best.blocks is None:
                best = self._point(best.lam, best.bias)
        final = best
        if best.objective > -np.inf and best.blocks is None:
            final = polished(best, self.rows, self.certified_rows, self.R, self.E)
        # Exact zeros are refused if they cost the tolerance.
        met, still_met = (
            relative_gap(p.gap, p.objective) <= tol for p in (best, final)
        )
        if still_met or not met:
            best = final
        if met or still_met:
            status = Status.CONVERGED
        elif status is Status.CONVERGED:
            status = Status.STALLED
        return DualResult(
            best.lam,
            best.bias,
            best.objective,
            best.gap,
            n_iter,
            status,
            "interior",
            history=self.monitor.history,
            blocks=best.blocks,
        )
