"""Newton's method on hinges whose corner is rounded less and less.

The multipliers of a rounded hinge are feasible for the hinge, and what is lost falls as
the square of the width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxent._support.results import Monitor, Status

WIDEST = 1.0  # corner that a problem begins with
_NARROWEST, _NARROWING = 1e-9, 4.0


@dataclass(frozen=True)
class RoundedHinge:
    """Losses max(x, 0) with a parabola of this width around the corner.

    Source: Chapelle (2007), Training a support vector machine in the primal.
    """

    width: float

    def loss_derivatives(self, x):
        """Loss, slope and curvature."""
        h = self.width
        share = np.clip(x / h + 0.5, 0.0, 1.0)
        inside = (share > 0) & (share < 1)
        return 0.5 * h * share**2 + np.maximum(x - 0.5 * h, 0.0), share, inside / h


def solve_by_rounded_hinges(problem, run, tol, max_iter, callback, close=1e-4):
    """Newton's method until the multipliers certify the hinge itself.

    Parameters
    ----------
    problem : object with `rounding`, the width of the corner, and `certified`
    run : NewtonRun, or what has its steps and state
        Of the problem.
    tol : float
    max_iter : int
        Steps.
    callback : callable(n_iter, objective, gap) or None
    close : float, default=1e-4
        What is left to gain when the corner is made narrower, as a share of the gap
        that is allowed. Less is wanted where the machine certified is that of the
        multipliers, which change by much with the scores.

    Returns
    -------
    DualResult
    """
    monitor = Monitor(tol, callback, solver="newton")
    status = Status.MAX_ITER
    while run.iteration < max_iter and status is Status.MAX_ITER:
        while run.iteration < max_iter and run.step() is Status.MAX_ITER:
            if run.decrement <= close * tol * (1 + abs(run.total)):
                break
        certified = problem.certified(run.x, run.lam)
        if monitor.record(
            run.iteration, certified.objective, certified.gap, certified.point
        ):
            status = monitor.status
        elif problem.rounding < _NARROWEST:
            status = Status.STALLED
        else:
            problem.rounding /= _NARROWING
            run.restart()
    return monitor.result(run.iteration, status)
