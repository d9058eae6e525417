"""A projected Newton method for the dual over blocks, by products with the Hessian.

    maximise  J(lam) = sum_r phi_r(lam_r) - R(lam),   0 <= lam <= top,  E' lam = total

Where a product with the Hessian costs about as much as a gradient and a factor of it is
dear, conjugate gradients find the Newton step. Most rows of a trained model have no
multiplier, and those that stay at zero need no product. Every accepted point meets the
bounds and the balance and lies inside the domain of R; J rises from point to point,
with the barrier of :mod:`._slack_barrier` while there is one.

Source: Bertsekas (1982), Projected Newton methods for optimization problems with simple
constraints. Lin & More (1999), Newton's method for large bound-constrained optimization
problems. Jaakkola, Meila & Jebara (1999), Theorem 1.
"""

from __future__ import annotations

import numpy as np

from maxent._optimize.bias import balanced_hinges, best_prices
from maxent._optimize.bounded_cg import climb_model
from maxent._optimize.certificate import certify, repair_equality
from maxent._optimize.hessian_products import FreeHessian
from maxent._optimize.slack_barrier import SlackBarrier
from maxent._support.results import DualResult, Status, relative_gap

_KEEP = 0.98  # of the way to a boundary that must not be met
_TRIALS = 40  # points along a step
_IDLE = 50  # steps at the level of rounding after which there is nothing more to come


def projected_newton(
    rows,
    R,
    E,
    *,
    tol,
    max_iter,
    init=None,
    bias=None,
    total=None,
    worn=None,
    callback=None,
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
        Multipliers to start from, zero by default. If they cannot be balanced inside
        the domain, nothing is done.
    bias : ndarray (k,) or None
        Biases to start from, zero by default.
    total : ndarray (k,) or None
        What E' lam is to be, zero by default.
    worn : callable(lam) or None
        Whether to stop, as stalled, at multipliers.
    callback : callable(n_iter, objective, gap) or None

    Raises
    ------
    FloatingPointError
        If a block's answer is not finite inside its domain.
    """
    lam = np.zeros(len(rows.q))
    if init is not None:
        lam = repair_equality(init, rows.upper, E, total)
        if lam is None or not R.value_and_margins(lam)[0] < np.inf:
            return DualResult(init, bias, -np.inf, np.inf, 0, Status.STALLED, "newton")
    return _Ascent(rows, R, E, bias, total, tol, lam).run(lam, max_iter, worn, callback)


class _Ascent:
    def __init__(self, rows, R, E, bias, total, tol, lam):
        self.rows, self.R, self.E, self.tol = rows, R, E, tol
        self.total = total
        self.closed, self.top = rows.potential.closed, rows.upper
        self.bias = np.zeros(0 if E is None else E.shape[1]) if bias is None else bias
        self.assemble_after = 1.0
        self.barrier = SlackBarrier(R, lam)

    def run(self, lam, max_iter, worn, callback):
        history, best = [], None
        status, steps, mark = Status.MAX_ITER, 0, (0, -np.inf, np.inf)
        while True:
            self.R.iteration = steps + 1
            point = self._certified(lam)
            _, J, gap, self.bias, _ = point
            done = relative_gap(gap, J) <= self.tol or steps == max_iter
            if steps or done:
                history.append((steps, J, gap))
                if callback is not None:
                    callback(steps, J, gap)
            if best is None or gap < best[2]:
                best = point
            if done:
                break
            if gap < 0.99 * mark[2] or mark[1] + 1e-12 * (1.0 + abs(J)) < J:
                mark = steps, J, gap
            steps += 1
            lam = self._improve(*point) if steps - mark[0] <= _IDLE else None
            if lam is None or (worn is not None and worn(lam)):
                status = Status.STALLED
                break
        lam, J, gap, bias, _ = best
        if relative_gap(gap, J) <= self.tol:
            status = Status.CONVERGED
        return DualResult(lam, bias, J, gap, steps, status, "newton", history=history)

    def _best_bias(self, d):
        return best_prices(self.rows, d, self.E, self.bias, self.total)

    def _certified(self, lam):
        """(lam, objective, gap, bias, shortfalls) with the best bias."""
        bias = self.bias
        if self.E is not None:
            bias = self._best_bias(self.rows.q - self.R.value_and_margins(lam)[1])
        return lam, *certify(self.rows, self.R, lam, self.E, bias, polish=False)

    def _improve(self, lam, J, gap, _, d):
        """A better point; None if there is none within rounding."""
        barrier = self.barrier
        slope, d = self._slope(lam, J, d)
        step = self._newton_step(lam, slope, relative_gap(gap, J))
        changes = barrier.changes(step)
        if not barrier.mu and barrier.max_step(changes) < 0.5:
            barrier.start(gap)
            slope, d = self._slope(lam, J, d)
            step = self._newton_step(lam, slope, relative_gap(gap, J))
            changes = barrier.changes(step)
        new = self._search(lam, J, step, changes, slope)
        if new is None:
            # losses without curvature leave the bias, and with it who is held, open
            step = self._newton_step(lam, slope, relative_gap(gap, J), hold=False)
            changes = barrier.changes(step)
            new = self._search(lam, J, step, changes, slope)
        if new is None and barrier.mu:
            return lam if barrier.raise_mu(J) else None
        if new is None:
            # towards what the rows ask for J rises by the gap at first
            step = self._wanted(d) - lam
            new = self._search(lam, J, step, barrier.changes(step), slope)
        if new is not None:
            barrier.move(new, changes)
        return new

    def _wanted(self, d):
        """Multipliers that the rows ask for; where ties leave some open, balanced."""
        if self.closed and self.E is not None:
            found = balanced_hinges(self.rows, d, self.E, self.total)[1]
            if found is not None:
                return found
        return self.rows.loss(d)[1]

    def _slope(self, lam, J, d):
        """Gradient of J and the barrier with the best bias, and its shortfalls."""
        rows, barrier = self.rows, self.barrier
        while barrier.mu:
            near = d + barrier.gradient()
            if self.E is not None:
                near = near + self.E @ self.bias
                near = near - self.E @ self._best_bias(near)
            if not barrier.lower(rows.gap(lam, near), self.tol, J):
                return near + rows.slope(lam), near
        return d + rows.slope(lam), d

    def _newton_step(self, lam, slope, gap, hold=True):
        """Change of the multipliers that the quadratic model asks for."""
        tie = 0.0 if self.E is None else 1e-9 * float(np.abs(slope).max(initial=0.0))
        held = hold & (lam <= 0) & (slope <= -tie)
        if self.closed:
            held |= hold & (lam >= self.top) & (slope >= tie)
        free = np.flatnonzero(~held)
        at = lam[free]
        H = FreeHessian(
            self.R,
            lam,
            free,
            self.rows.curvature(lam)[free],
            self.barrier.curvatures(),
            self.assemble_after,
        )
        step = np.zeros_like(lam)
        step[free] = climb_model(
            H,
            slope[free],
            -at,
            self.top[free] - at if self.closed else np.full(len(at), np.inf),
            None if self.E is None else self.E[free],
            min(0.1, max(np.sqrt(gap), 1e-3)),
        )
        # what rounding has left of classes that do not move could not be balanced
        step[(lam <= 0) & (np.abs(step) <= 1e-13 * np.abs(step).max(initial=0.0))] = 0.0
        # the next step will need as many
        self.assemble_after = 0.1 if H.assembled else 1.0
        return step

    def _search(self, lam, J, step, changes, slope):
        """The point along a step at which J, with the barrier, has risen enough.

        A step too long ends on a slope that falls as steeply as it rose: where J is
        close to a barrier of its own, the next steps would be spent on the way back.
        """
        R, rows, barrier = self.R, self.rows, self.barrier
        t = min(1.0, _KEEP * barrier.max_step(changes))
        if barrier.partial:
            t = min(t, _KEEP * R.max_step(lam, step))
        for _ in range(_TRIALS if t > 0 else 0):
            new = self._feasible(lam, lam + t * step)
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
                    rise = rows.value(new) - value - J + barrier.rise(changes)
                    rounding = 1e-13 * (1.0 + abs(J) + abs(value))
                    # where J is rounded, its slopes at both ends say that it rose
                    if rise >= 1e-4 * promised or abs(rise) <= rounding:
                        return new
            t *= 0.5
        return None

    def _inside(self, lam, move):
        """Whether a move ends inside the domain, before anything is computed there."""
        if not self.barrier.max_step(self.barrier.changes(move)) > 1.0:
            return False
        return not self.barrier.partial or self.R.max_step(lam, move) > 1.0

    def _feasible(self, lam, new):
        """Multipliers within their bounds, and balanced; None if that is too far."""
        top = self.top if self.closed else lam + _KEEP * (self.top - lam)
        new = np.clip(new, 0.0, top)
        return repair_equality(new, self.top, self.E, self.total)
