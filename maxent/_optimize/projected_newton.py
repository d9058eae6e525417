"""A projected Newton method for the dual over blocks, by products with the Hessian.

    maximise  J(lam) = sum_r phi_r(lam_r) - R(lam),   0 <= lam <= top,  E' lam = 0

Where a product with the Hessian costs about as much as a gradient and a factor of it is
dear, conjugate gradients find the Newton step. Most rows of a trained model have no
multiplier, and those that stay at zero need no product. Every accepted point meets the
bounds and the balance and lies inside the domain of R; J rises from point to point,
with the barrier of :mod:`.slack_barrier` while there is one.

Source: Bertsekas (1982), Projected Newton methods for optimization problems with simple
constraints. Lin & More (1999), Newton's method for large bound-constrained optimization
problems. Jaakkola, Meila & Jebara (1999), Theorem 1.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from maxent._optimize.bias import equality_multipliers, hinge_bias_lp
from maxent._optimize.bounded_cg import maximize_bounded_quadratic
from maxent._optimize.certificate import DualPoint, certify, repair_equality
from maxent._optimize.hessian_products import FreeHessian
from maxent._optimize.slack_barrier import SlackBarrier
from maxent._optimize.vanishing_slacks import certify_with_slack_duals
from maxent._support.results import Certified, Monitor, Status, relative_gap

_KEEP = 0.98  # share of the way to a boundary that must not be met
_TRIALS = 40  # points along a step
_IDLE = 50  # steps at the level of rounding after which the method stops
_ROUNDED = 1e-8  # gain, in units of 1 + |J|, that is judged by slopes alone
_NOTHING = 1e-14  # gain, in the same units, that is no gain


def projected_newton(
    rows, R, E, *, tol, max_iter, init=None, bias=None, callback=None, most=np.inf
):
    """Solve the dual; returns a DualResult (lam, bias vector, certificate).

    Parameters
    ----------
    rows : Rows
        Of a margin prior whose slope at zero is finite.
    R : BlockSum
    E : ndarray (n, k) or None
    tol : float
        Stop when gap <= tol * (1 + objective).
    max_iter : int
        Bound on the Newton steps.
    init : ndarray (n,) or None
        Multipliers to start from, zero by default. They are balanced, and shrunk until
        they lie inside the domain.
    callback : callable(n_iter, objective, gap) or None
    most : float
        Products with the Hessian beyond which the method is given up as stalled.

    Raises
    ------
    FloatingPointError
        If a block's answer is not finite inside its domain.
    """
    lam = np.zeros(len(rows.q))
    if init is not None:
        balanced = repair_equality(init, rows.upper, E)
        lam = lam if balanced is None else balanced
        while lam.any() and not R.value_and_margins(lam)[0] < np.inf:
            lam = 0.5 * lam
    if E is not None and bias is None:
        bias = np.zeros(E.shape[1])
    method = _ProjectedNewton(rows, R, E, tol, lam, bias, most)
    return method.run(lam, max_iter, callback)


class _ProjectedNewton:
    def __init__(self, rows, R, E, tol, lam, bias, most):
        self.rows, self.R, self.E, self.tol, self.left = rows, R, E, tol, most
        self.closed, self.top = rows.potential.closed, rows.upper
        self.bias = bias
        self.assemble_after = 1.0
        self.barrier = SlackBarrier(R, lam)
        self.gain = self.residual = np.inf
        self.last_progress = 0, -np.inf, np.inf, 0.0

    def run(self, lam, max_iter, callback):
        monitor = Monitor(self.tol, callback, solver="newton")
        status, n_iter = Status.MAX_ITER, 0
        while True:
            self.R.iteration = n_iter + 1
            point = self._certify(lam)
            met = relative_gap(point.gap, point.objective) <= self.tol
            if n_iter or met:
                monitor.record(n_iter, point.objective, point.gap, point)
            else:
                monitor.best = Certified(point, point.objective, point.gap)
            if met or monitor.stopped or n_iter == max_iter:
                status = Status.STOPPED if monitor.stopped else status
                break
            n_iter += 1
            lam = self._improve(point) if self._progresses(n_iter, point) else None
            if lam is None or self.left <= 0:
                status = Status.STALLED
                break
        return monitor.result(n_iter, Status.CONVERGED if monitor.converged else status)

    def _progresses(self, n_iter, point):
        """True if gap, objective or barrier have changed within the last steps."""
        J, gap, mu = point.objective, point.gap, self.barrier.mu
        last, last_J, last_gap, last_mu = self.last_progress
        if gap < 0.99 * last_gap or last_J + 1e-12 * (1.0 + abs(J)) < J or mu < last_mu:
            self.last_progress = last, *_ = n_iter, J, gap, mu
        return n_iter - last <= _IDLE

    def _certify(self, lam):
        """The point with the best bias, and with duals where slacks vanish.

        The barrier is lowered as far as its problem is solved.
        """
        rows, R, E, barrier = self.rows, self.R, self.E, self.barrier
        _, margins = R.value_and_margins(lam)
        _, self.bias = self._with_best_bias(rows.q - margins)
        J, gap, bias, d = certify(rows, R, lam, E, self.bias, polish=False)
        point = DualPoint(lam, J, gap, bias, d)
        target = self.tol * (1.0 + max(J, 0.0))
        while barrier.mu and point.gap > target:
            near, bias = self._moved(d, barrier.dual_gradient())
            residual = rows.gap(lam, near)
            rounded = self.gain <= _NOTHING * (1.0 + abs(J))
            rounded &= residual > 0.5 * self.residual
            self.residual = residual
            solved = rounded or barrier.is_solved(residual)
            if solved or residual + barrier.complementarity() <= target:
                with_duals = certify_with_slack_duals(
                    *(rows, R, E, lam, gap, bias, barrier),
                    target=target,
                    refine=rounded,
                )
                if with_duals is not None and with_duals[0] < point.gap:
                    point = replace(
                        point,
                        gap=with_duals[0],
                        bias=with_duals[1],
                        blocks=with_duals[2],
                    )
            if not solved:
                break
            barrier.lower(self.tol, J)
            self.residual = np.inf
        return point

    def _with_best_bias(self, d):
        """Shortfalls d with the bias of the smallest gap added, and that bias."""
        if self.E is None:
            return d, None
        bias = equality_multipliers(self.rows, d, self.E, self.bias)
        return d - self.E @ bias, bias

    def _moved(self, d, gradient):
        """Shortfalls at the bias that is best with a gradient added to them."""
        if self.E is not None:
            d = d + self.E @ self.bias
        return self._with_best_bias(d + gradient)

    def _improve(self, point):
        """Better multipliers; None if there are none within rounding."""
        barrier, lam = self.barrier, point.lam
        slope, d = self._slope(point)
        step, changes = self._newton_step(point, slope)
        if not barrier.mu and barrier.max_step(changes) < 0.5:
            barrier.start(point.gap)
            slope, d = self._slope(point)
            step, changes = self._newton_step(point, slope)
        self.gain = float(slope @ step)
        new = self._search(point, step, changes, slope)
        if new is None:
            # Losses without curvature leave the bias open, and with it the multipliers
            # that stay at a bound.
            step, changes = self._newton_step(point, slope, fix=False)
            new = self._search(point, step, changes, slope)
        if new is None and barrier.mu:
            return self._changed_barrier(point, float(slope @ step))
        if new is None:
            # Towards the multipliers that rows ask for, J rises by the gap at first.
            step = self._wanted(d) - lam
            changes = barrier.changes(step)
            new = self._search(point, step, changes, slope)
        if new is not None:
            barrier.move(new, changes)
        return new

    def _changed_barrier(self, point, gain):
        """Return the point with a barrier that lets it move, or None if none does."""
        barrier, lam, J = self.barrier, point.lam, point.objective
        if gain <= _NOTHING * (1.0 + abs(J)):  # at its optimum
            barrier.move(lam, barrier.changes(np.zeros_like(lam)))
            barrier.lower(self.tol, J)
            return lam
        return lam if barrier.raise_mu(J) else None

    def _wanted(self, d):
        """Multipliers that the rows ask for; where ties leave some open, balanced."""
        if self.closed and self.E is not None:
            balanced = hinge_bias_lp(self.rows, d, self.E)[1]
            if balanced is not None:
                return balanced
        return self.rows.loss(d)[1]

    def _slope(self, point):
        """Gradient of J and the barrier with the best bias, and its shortfalls."""
        d = point.d
        if self.barrier.mu:
            d, self.bias = self._moved(d, self.barrier.gradient())
        return d + self.rows.slope(point.lam), d

    def _newton_step(self, point, slope, fix=True):
        """The step that the quadratic model asks for, and its changes of the slacks.

        Multipliers at a bound that they would leave stay there, if `fix`.
        """
        lam = point.lam
        tie = 0.0 if self.E is None else 1e-9 * float(np.abs(slope).max(initial=0.0))
        fixed = fix & (lam <= 0) & (slope <= -tie)
        if self.closed:
            fixed |= fix & (lam >= self.top) & (slope >= tie)
        free = np.flatnonzero(~fixed)
        at = lam[free]
        H = FreeHessian(
            self.R,
            lam,
            free,
            self.rows.curvature(lam)[free],
            self.barrier.curvatures(),
            self.assemble_after,
        )
        gap = relative_gap(point.gap, point.objective)
        step = np.zeros_like(lam)
        step[free] = maximize_bounded_quadratic(
            H,
            slope[free],
            -at,
            self.top[free] - at if self.closed else np.full(len(at), np.inf),
            None if self.E is None else self.E[free],
            min(0.1, max(np.sqrt(gap), 1e-3)),
            self.left,
        )
        self.left -= H.work
        # Steps that are rounding alone, of classes that do not move, have no balance.
        step[(lam <= 0) & (np.abs(step) <= 1e-13 * np.abs(step).max(initial=0.0))] = 0.0
        # The next step will need as many products.
        self.assemble_after = 0.1 if H.assembled else 1.0
        return step, self.barrier.changes(step)

    def _search(self, point, step, changes, slope):
        """The point along a step at which J, with the barrier, has risen enough.

        A step too long ends on a slope that falls as steeply as it rose: where J is
        close to a barrier of its own, the next steps would be spent on the way back.
        J is concave, so that the slopes at both ends bound what it gains.
        """
        R, rows, barrier = self.R, self.rows, self.barrier
        lam, J = point.lam, point.objective
        if not step.any():
            return None
        t = min(1.0, _KEEP * barrier.max_step(changes))
        if barrier.partial:
            t = min(t, _KEEP * R.max_step(lam, step))
        hopeless = None
        for _ in range(_TRIALS if t > 0 else 0):
            wanted = lam + t * step
            # The set of zeros decides whether scaling can balance the others.
            zeros = wanted <= 0
            if hopeless is not None and (zeros == hopeless).all():
                t *= 0.5
                continue
            new = self._feasible(lam, wanted)
            hopeless = zeros if new is None else None
            move = None if new is None else new - lam
            promised = 0.0 if new is None else float(slope @ move)
            if promised > 0 and self._inside(lam, move):
                value, margins = R.value_and_margins(new)
                if value < np.inf:
                    changes = barrier.changes(move)
                    end = rows.q - margins + rows.slope(new)
                    end = float((end + barrier.gradient(changes)) @ move)
                    if end < -0.5 * promised:
                        t *= max(promised / (promised - end), 0.2)
                        continue
                    # log Z may be a difference of numbers much larger than J.
                    rounding = _ROUNDED * (1.0 + abs(J) + abs(value))
                    rise = rows.value(new) - value - J + barrier.rise(changes)
                    if promised <= rounding or rise >= 1e-4 * promised:
                        return new
            t *= 0.5
        return None

    def _inside(self, lam, move):
        """True if a move ends inside the domain, before anything is computed there."""
        if not self.barrier.max_step(self.barrier.changes(move)) > 1.0:
            return False
        return not self.barrier.partial or self.R.max_step(lam, move) > 1.0

    def _feasible(self, lam, new):
        """Multipliers within their bounds, and balanced; None if that is too far."""
        top = self.top if self.closed else lam + _KEEP * (self.top - lam)
        new = np.clip(new, 0.0, top)
        return repair_equality(new, self.top, self.E)
