"""The dual of linear machines with a random switch on every feature.

Source: Jebara & Jaakkola (2000), section on feature selection.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import expit

from maxent._optimize.certificate import certify
from maxent._optimize.interior_point import interior_point
from maxent._optimize.quadratics import LowRankQuadratic
from maxent._optimize.rows import Rows
from maxent._support.linalg import times
from maxent._support.results import Certified, Monitor, Status, relative_gap, relayed
from maxent._support.threads import single_threaded_blas

# Steps before the undamped method is given up. Where no switch stays near its threshold
# it takes 10 to 55 (breast cancer data and random data, C from 1 to 100).
_DIRECT_STEPS = 80


class SwitchedFeatures(LowRankQuadratic):
    """R(lam) = sum_i A(W_i) + |B' lam|^2 / 2, W = Z' lam: features with switches.

    ``A(W) = log(1 - p0 + p0 exp(W^2 / 2))`` is the cumulant of one weight that is
    N(0, 1) with probability p0 and zero otherwise.

    Parameters
    ----------
    Z : ndarray (n, d)
        Signed features.
    extra : ndarray (n, r)
        Columns without a switch (a Gaussian bias); may have no columns.
    prior_inclusion : float
    """

    homogeneous = False

    def __init__(self, Z, extra, prior_inclusion):
        super().__init__(np.column_stack([Z, extra]))
        self.d = Z.shape[1]
        self.log_on = np.log(prior_inclusion)
        with np.errstate(divide="ignore"):
            self.log_off = np.log1p(-prior_inclusion)  # -inf: always on
        self.log_odds = self.log_on - self.log_off

    def fields(self, lam):
        """W (d,) and the coordinates of the columns without a switch."""
        x = self.along(lam)
        return x[: self.d], x[self.d :]

    def inclusion(self, W):
        """Posterior probability of each switch."""
        return expit(0.5 * W * W + self.log_odds)

    def _value_and_slope(self, w):
        W, rest = w[: self.d], w[self.d :]
        value = np.logaddexp(self.log_off, self.log_on + 0.5 * W * W).sum()
        mean = np.concatenate([self.inclusion(W) * W, rest])
        return float(value + 0.5 * rest @ rest), mean

    def scale(self, lam):
        """A''(W), and one for the columns without a switch."""
        W, rest = self.fields(lam)
        p = self.inclusion(W)
        return np.concatenate([p + W * W * p * (1 - p), np.ones(len(rest))])

    def restricted(self, index, lam):
        """Newton systems over a subset of the multipliers, at lam."""
        return LowRankQuadratic(self.Z, self.scale(lam)).restricted(index, lam)

    def expansion(self, lam, floor):
        """Quadratic that touches R at lam, and what its slope takes from q.

        Of second order where A'' >= floor. With floor = 1 it is close to an upper
        bound of R wherever switches are off: A(W) <= A(0) + W^2 / 2.
        """
        x, curvature = self.along(lam), np.maximum(self.scale(lam), floor)
        _, mean = self._value_and_slope(x)
        return (
            LowRankQuadratic(self.Z, curvature),
            times(self.Z, mean - curvature * x),
        )


def newton_line_search(rows, R, E, start, *, tol, max_iter, callback=None):
    """Solve by Newton steps on R alone, with a line search on the dual objective.

    Near W^2 = 2 log(1 / p0) a switch turns on and A'' rises from p0 to about
    log(1 / p0) / 2 and falls to 1, so a quadratic expansion of R holds on one side of
    that threshold only and the undamped interior point may cycle across it. Here
    the potentials stay exact and R is replaced by its expansion. The maximiser of
    that model is a direction of ascent of the concave J, so a line search on J
    converges from any start, and takes full steps in the end.

    Parameters
    ----------
    start : DualResult
        Where the undamped method stopped; its multipliers are feasible.
    max_iter : int
        Bound on all interior-point steps, those of `start` included.
    callback : callable(n_iter, objective, gap) or None
    """
    lam, n_iter = start.lam, start.n_iter
    J, gap, b, _ = certify(rows, R, lam, E, start.bias)
    monitor = Monitor(tol, callback, solver="interior")
    monitor.history = list(start.history)
    monitor.best = Certified((lam, b), J, gap)
    status, floor = Status.STALLED, 1.0
    while relative_gap(monitor.best.gap, monitor.best.objective) > min(tol, 1e-12):
        if n_iter >= max_iter:
            status = Status.MAX_ITER
            break
        quadratic, taken = R.expansion(lam, floor)
        model = replace(rows, q=rows.q - taken)
        few = min(max_iter - n_iter, _DIRECT_STEPS)
        target = interior_point(
            model, quadratic, E, tol=1e-2 * tol, max_iter=few, init=lam
        )
        n_iter += target.n_iter
        here = model.value(lam) - quadratic.value_and_margins(lam)[0]
        expected = target.objective - here
        new, a = _line_search(rows, R, lam, target.lam - lam, J, expected)
        # Near the optimum J no longer tells points apart; the gap, linear in their
        # distance where J is quadratic, still does.
        if a == 0.0:
            new = target.lam
        value, gap, b, _ = certify(rows, R, new, E, target.bias)
        if a == 0.0 and not gap < 0.5 * monitor.best.gap:
            if floor == 0.0:
                break
            floor = 0.0
            continue
        floor = 0.1 * floor if a == 1.0 else min(10.0 * floor, 1.0)
        lam, J = new, value
        monitor.record(n_iter, J, gap, (lam, b))
        if monitor.stopped:
            status = Status.STOPPED
            break
    return monitor.result(n_iter, Status.CONVERGED if monitor.converged else status)


def _line_search(rows, R, lam, step, J, expected):
    """lam + a step and a, of a = 1, 1/2, 1/4, ...: the last before J falls again.

    J is concave along the step, and the first a that gains 1e-4 a `expected` (the
    gain of the model at a = 1) ends in a smaller one only if that is better still.
    a = 0 if none gains anything that doubles can tell.
    """
    best, value, a = (lam, 0.0), J, 1.0
    while expected > 0 and a > 1e-12:
        new = lam + a * step
        now = rows.value(new) - R.value_and_margins(new)[0]
        if now > value and now >= J + 1e-4 * a * expected:
            best, value = (new, a), now
        elif best[1] > 0:
            break
        a *= 0.5
    return best


def solve_selection(
    X, y, margin, prior_inclusion, bias, weight, *, tol, max_iter, q=None, callback=None
):
    """Solve the dual of feature selection by interior point.

    Parameters
    ----------
    X : ndarray (n, d)
    y : ndarray (n,)
        Sign of each constraint, -1 or +1, or the mean of an uncertain label.
    margin : MarginPrior
    prior_inclusion : float in (0, 1]
    bias : "flat", float or None
    weight : ndarray (n,)
    q : ndarray (n,), optional
        Level of each constraint, that of the prior by default.
    callback : callable(n_iter, objective, gap) or None

    Returns
    -------
    result : DualResult
        `coef` holds E[s_i theta_i] (d,).
    inclusion : ndarray (d,)
    """
    n = len(y)
    rows = Rows.of(margin, weight, q)
    gaussian = bias not in ("flat", None)
    extra = np.sqrt(bias) * y[:, None] if gaussian else np.empty((n, 0))
    R = SwitchedFeatures(y[:, None] * X, extra, prior_inclusion)
    E = y[:, None] if bias == "flat" else None

    def finished(result):
        W, _ = R.fields(result.lam)
        inclusion = R.inclusion(W)
        result.coef = inclusion * W
        if bias == "flat":
            result.bias = float(result.bias[0])
        else:
            result.bias = float(bias * (y @ result.lam)) if gaussian else 0.0
        return result, inclusion

    with single_threaded_blas():
        few = min(max_iter, _DIRECT_STEPS)
        callback = relayed(callback, lambda report: report.translated(finished))
        result = interior_point(rows, R, E, tol=tol, max_iter=few, callback=callback)
        ended = (Status.CONVERGED, Status.UNBOUNDED, Status.STOPPED)
        stuck = result.status not in ended
        if stuck and result.n_iter < max_iter:
            options = {"tol": tol, "max_iter": max_iter, "callback": callback}
            result = newton_line_search(rows, R, E, result, **options)
    return finished(result)
