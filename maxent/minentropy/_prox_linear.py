"""Prox-linear learning, and the trust-region algorithm of the paper.

The scores F are linearised at w_t; what is left is the margin problem, solved with the
term nu / 2 |w - w_t|^2, or in a ball. Of f the model predicts the decrease `pred`; a
step is kept if a tenth of it comes true, so that f never rises.

    e_nu(w) = f(w) - min_z [model_w(z) + nu / 2 |z - w|^2] >= 0

is zero where w is stationary, and max(1, nu) e_nu bounds e_1. The rounding of f counts
as a part of e_nu, for a large nu makes much of it.

Source: Miller et al. (2012), algorithm 2; Lewis & Wright (2016), A proximal method for
composite minimization; Drusvyatskiy & Paquette (2019).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from maxent._support.results import Monitor, Status, relayed
from maxent._support.typing import FloatArray

_NU = 1e-3  # the first proximal weight, and the least
_ROUNDING = 2.0**-52  # of f, as a share of it
STUCK = 1e15  # a proximal weight at which steps are rounding


@dataclass
class LearnResult:
    """A stationary point of f.

    Attributes
    ----------
    w : ndarray (d,)
        Weights.
    objective : float
        f(w).
    stationarity : float
        Upper bound of e_1 / sum c.
    n_iter : int
        Outer steps, those that were refused included.
    status : Status
    history : list of tuple (int, float, float)
        Steps done, f and stationarity at every accepted one.
    solver : str
        Name of the method.
    """

    w: FloatArray
    objective: float
    stationarity: float
    n_iter: int
    status: Status
    history: list[tuple[int, float, float]] = field(default_factory=list)
    solver: str = ""

    @property
    def converged(self):
        """True if the tolerance is met."""
        return self.status is Status.CONVERGED


class DescentMonitor(Monitor):
    """Record of a descent: f never rises, so that the last point is the best.

    `record` takes the stationarity in the place of the gap; converged once it is at
    most `tol`. A point that is recorded again, after steps that were refused, keeps
    its place in the history.
    """

    def __init__(self, tol, callback, solver):
        super().__init__(tol, relayed(callback, _measured), solver=solver)

    def record(self, n_iter, objective, gap, point, violation=0.0):
        again = self.best is not None and self.best.point is point
        first = self.history.pop()[0] if again else n_iter
        ended = super().record(n_iter, objective, gap, point, violation)
        self.history[-1] = (first, objective, gap)
        return ended

    def result(self, n_iter, status):
        """LearnResult of a method that ends at the last point."""
        w, f, e = self.best.point, self.best.objective, self.best.gap
        return LearnResult(w, f, e, n_iter, status, list(self.history), self.solver)

    @property
    def status(self):
        """Status of a method that ended where `record` said so.

        A wish to stop comes first, for other starts are to follow.
        """
        return Status.STOPPED if self.stopping else super().status

    def _meets(self, certified):
        return certified.gap <= self.tol

    def rank(self, certified):
        """The smaller objective comes first, then the smaller stationarity."""
        return certified.objective, certified.gap

    def _solution(self, certified, n_iter):
        return self.result(n_iter, self.status)


def _measured(report):
    return replace(report, reached=report.gap, measure="stationarity")


def prox_linear(objective, w, *, tol, qp_tol, max_iter, callback=None):
    """Minimise f from w by proximal steps on linearised scores."""
    nu, total, monitor = _NU, objective.total, DescentMonitor(tol, callback, "prox")
    f, problem = objective.linearised(w)
    status, n_iter, e = Status.MAX_ITER, 0, np.inf
    while n_iter < max_iter:
        n_iter += 1
        step = problem.solve(w, nu, tol=qp_tol, unit=total)
        away = step.w - w
        e = min(e, _certified(f, step, nu))
        if monitor.record(n_iter - 1, f, e / total, w):
            status = monitor.status
            break
        pred = f - step.objective + 0.5 * nu * float(away @ away)
        new = objective.value(step.w)
        ratio = (f - new) / pred if pred > 0 else -1.0
        if ratio < 0.1:
            nu *= 4.0
            if nu > STUCK:
                status = Status.STALLED
                break
            continue
        w, e = step.w, np.inf
        f, problem = objective.linearised(w)
        nu = max(nu / 4.0, _NU) if ratio > 0.7 else nu * 2.0 if ratio < 0.3 else nu
    if e == np.inf and _ends_at(w, f, problem, qp_tol, total, monitor, n_iter):
        status = monitor.status  # after the last step
    return monitor.result(n_iter, status)


def trust_region(
    objective,
    w,
    *,
    tol,
    qp_tol,
    max_iter,
    callback=None,
    largest=100.0,
    factor=4.0,
    least=1e-10,
):
    """Minimise f from w by the paper's algorithm 2.

    The linearised problem is solved in |w - w_t|^2 <= mu. mu begins at `largest`, is
    divided by `factor` until f falls by epsilon, and begins anew after that. What the
    paper leaves open: epsilon is tol sum c, a tenth of that if mu < `least` is reached
    at a point that is not stationary, and so on down to a thousandth.
    """
    total, monitor = objective.total, DescentMonitor(tol, callback, "ball")
    f, problem = objective.linearised(w)
    mu, n_iter = largest, 0
    enough, measured = tol * total, False
    monitor.record(0, f, np.inf, w)
    while n_iter < max_iter and not monitor.stopped:
        n_iter += 1
        step = problem.solve_ball(w, np.sqrt(mu), tol=qp_tol, unit=total)
        new = objective.value(step.w)
        if f - new >= enough:
            w, mu, measured = step.w, largest, False
            f, problem = objective.linearised(w)
            monitor.record(n_iter, f, np.inf, w)
            continue
        mu /= factor
        if mu >= least:
            continue
        if not measured:
            measured = True
            if _ends_at(w, f, problem, qp_tol, total, monitor, n_iter):
                return monitor.result(n_iter, monitor.status)
        if enough < 2e-3 * tol * total:
            return monitor.result(n_iter, Status.STALLED)
        mu, enough = largest, 0.1 * enough
    if monitor.stopped:
        return monitor.result(n_iter, Status.STOPPED)
    ended = _ends_at(w, f, problem, qp_tol, total, monitor, n_iter)
    return monitor.result(n_iter, monitor.status if ended else Status.MAX_ITER)


def _ends_at(w, f, problem, qp_tol, total, monitor, n_iter):
    """Measure and record how stationary w is; whether the descent ends there."""
    step = problem.solve(w, 1.0, tol=qp_tol, unit=total)
    return monitor.record(n_iter, f, _certified(f, step, 1.0) / total, w)


def _certified(f, step, nu):
    """Bound of e_1 from the step of proximal weight nu; rounding of f included."""
    e = max(f - (step.objective - step.gap), 0.0) + _ROUNDING * f
    return max(1.0, nu) * e
