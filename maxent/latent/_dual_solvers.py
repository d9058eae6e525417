"""Minimisers of the complete-data dual D(lam) = log Phi - lam . eta + U*(lam).

Each takes a `DualProblem` and a start and returns (lam, iterations). The measure of all
is the residual: how far lam is from stationary, in standard deviations of the features.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from maxent._optimize.truncated_newton import newton_direction
from maxent._support.results import Report, tell
from maxent._support.typing import Callback
from maxent.latent._hull import check_dual, check_hull, check_reach, reach_within
from maxent.latent._penalty import L2, Box, Convex, Penalty
from maxent.latent._quasi_newton import lbfgs as quasi_newton
from maxent.latent._quasi_newton import newton_step
from maxent.latent._scaling_steps import scaled
from maxent.latent._space import FeatureSpace

Array = NDArray[np.float64]
Solution: TypeAlias = tuple[Array, int]  # weights, iterations

NEWTON_UP_TO = 500  # weights: a factorisation of 500 x 500 takes about a millisecond
_FIRST_REACH = 10.0  # log-odds of two states that a step may change at first
_MANY = 200  # iterations, after which weights of scaling may still be small
_ENDLESS = 1e8  # weight times range that no sensible cost of unmet moments explains
FAR = 1e3  # weight times range; beyond, with an unmet moment, there is no minimum


class DualProblem:
    """A feature space, targets and a penalty, with a record of the iterations.

    Weights, targets and the penalty are those of features of order one.
    """

    def __init__(
        self,
        space: FeatureSpace,
        target: Array,
        penalty: Penalty,
        tol: float,
        callback: Callback | None = None,
    ):
        self.space = space.standard
        self.target = self.space.units.moments_in(target)
        # no weight changes the mean of a constant; its target may be off by rounding
        low, high = self.space.extremes
        slack = np.where(self.space.units.origin != 0.0, tol, 0.0)
        met = (low == high) & (np.abs(self.target - low) <= slack) & penalty.hard
        self.target = np.where(met, low, self.target)
        self.penalty = penalty.in_units(self.space.units.unit)
        self.tol, self.callback = tol, callback
        self.history: list[tuple[int, float, float]] = []
        self.stopped = False  # by the callback
        self.reachable: bool | None = None  # False: too large to tell; None: not asked

    def value(self, lam: Array) -> float:
        log_phi, _ = self.space.probabilities(lam)
        return float(log_phi - lam @ self.target + self.penalty.value(lam))

    def evaluate(self, lam: Array) -> tuple[float, Array, Array, float]:
        """Dual, p, E f, and the residual in standard deviations of the features."""
        log_phi, p, mean = self.space.evaluate(lam)
        dual = float(log_phi - lam @ self.target + self.penalty.value(lam))
        residual = self.penalty.residual(lam, mean - self.target)
        residual = np.abs(residual) / self.space.spread(p, mean)
        return dual, p, mean, float(np.max(residual))

    def record(self, n_iter: int, lam: Array, dual: float, residual: float) -> bool:
        """Keep an iteration; whether the solver ends here.

        It does where the tolerance is met or the callback asks for it. Targets that
        turn out to be out of reach are refused.
        """
        check_dual(self.space, self.target, self.penalty, lam, dual)
        far = self.pull(lam) > reach_within(self.tol) or n_iter >= _MANY
        if far:
            self.check_reach()
        if not self.penalty.hard.any():
            self.check_finite(lam, _ENDLESS)
        self.history.append((n_iter, dual, residual))
        self.stopped = tell(self.callback, Report(n_iter, dual, residual))
        return self.stopped or residual <= self.tol

    def check_reach(self) -> bool:
        """Refuse targets out of reach; whether they are known to be within."""
        if self.reachable is None:
            self.reachable = check_reach(
                self.space, self.target, self.penalty, self.tol
            )
        return self.reachable

    def check_finite(self, lam: Array, limit: float) -> None:
        """Refuse targets whose weights exceed what a cost U of the caller explains."""
        far = (np.abs(lam) * self.space.span).max() > limit
        if far and isinstance(self.penalty, Convex):
            check_hull(self.space, self.target, self.penalty, self.tol)

    def log_odds(self, step: Array) -> float:
        """Largest change of the log-odds of two states by a step of the weights."""
        change = self.space.weighted_sums(step)
        if self.space.log_prior is not None:
            change = change[np.isfinite(self.space.log_prior)]
        return float(np.ptp(change))

    def pull(self, lam: Array) -> float:
        """Largest weight times range, of the moments that must be met."""
        return float(np.max(np.abs(lam) * self.space.span * self.penalty.hard))

    def gradient(self, lam: Array, mean: Array) -> Array:
        assert not isinstance(self.penalty, Box)  # which is not smooth
        return mean - self.target + self.penalty.gradient(lam)


def scaling(problem: DualProblem, lam: Array, max_iter: int, method: str) -> Solution:
    """Generalised, improved or sequential iterative scaling."""
    weight = problem.penalty.weight
    assert weight is not None  # of penalty="l2" alone
    for n_iter in range(max_iter + 1):
        dual, _, _, residual = problem.evaluate(lam)
        if problem.record(n_iter, lam, dual, residual) or n_iter == max_iter:
            break
        lam = scaled(problem.space, lam, problem.target, weight, method)
    return lam, n_iter


def lbfgs(problem: DualProblem, lam: Array, max_iter: int) -> Solution:
    """L-BFGS, finished by Newton where it stops short of the tolerance.

    With a corner at zero the Newton steps are those of the weights left nonzero; else
    they are made by conjugate gradients.
    """
    penalty, steps = problem.penalty, [0]
    box = isinstance(penalty, Box)

    def smooth(x):
        log_phi, _, mean = problem.space.evaluate(x)
        return float(log_phi - x @ problem.target), mean - problem.target

    def progress(x):
        steps[0] += 1
        dual, _, _, residual = problem.evaluate(x)
        return problem.record(steps[0], x, dual, residual)

    options = {"maxiter": max_iter, "maxfun": 20 * max_iter, "ftol": 0.0}
    options |= {"gtol": 1e-9} if box else {"gtol": 0.0, "maxcor": 20}
    lam = quasi_newton(smooth, penalty, lam, options, callback=progress)
    if problem.stopped:
        return lam, steps[0]
    if isinstance(penalty, Box):
        return _active_newton(problem, penalty.width, lam, max_iter, steps[0])
    if problem.evaluate(lam)[3] <= problem.tol or steps[0] >= max_iter:
        return lam, steps[0]
    lam, n_iter = newton(problem, lam, max_iter, start=steps[0], direct=False)
    unmet = n_iter < max_iter and problem.evaluate(lam)[3] > problem.tol
    if unmet and not problem.stopped and len(lam) <= NEWTON_UP_TO:
        return newton(problem, lam, max_iter, start=n_iter + 1)
    return lam, n_iter


def newton(
    problem: DualProblem,
    lam: Array,
    max_iter: int,
    start: int = 0,
    direct: bool = True,
) -> Solution:
    """Damped Newton; steps by a factorisation, or by conjugate gradients.

    A step changes the log-odds of two states by at most `reach`, which grows while such
    steps lower the dual: one that leaves all probability on one state loses the
    covariance of the features, and with it the way back. Where it is lost, the step is
    along the gradient.
    """
    reach, step_of = _FIRST_REACH, _direct_step if direct else _cg_step
    dual, p, mean, residual = problem.evaluate(lam)
    for n_iter in range(start, max_iter + 1):
        if problem.record(n_iter, lam, dual, residual) or n_iter == max_iter:
            break
        g = problem.gradient(lam, mean)
        new = None
        for step, most in ((step_of(problem, lam, p, mean, g), 1.0), (-g, np.inf)):
            change = problem.log_odds(step)
            if not (g @ step < 0.0 and 0.0 < change < np.inf):
                continue
            longest = min(most, reach / change)
            new = _line_search(problem, lam, longest * step, dual, g, residual)
            if new is not None:
                break
        if new is None:
            break
        taken = problem.log_odds(new[0] - lam)
        reach = max(_FIRST_REACH, (4.0 if taken > 0.9 * reach else 1.0) * reach)
        lam, (dual, p, mean, residual) = new
        if problem.pull(lam) > _ENDLESS and not problem.check_reach():
            break
    return lam, n_iter


def _direct_step(problem, lam, p, mean, g):
    H = problem.space.covariance(p, mean)
    if isinstance(problem.penalty, L2):
        H[np.diag_indices_from(H)] += problem.penalty.weight
    else:
        H += problem.penalty.hessian(lam)
    return newton_step(H, g)


def _cg_step(problem, lam, p, mean, g):
    """Conjugate gradients on H x = -g to a tenth of the gradient, then more."""
    size = np.linalg.norm(g)
    enough = min(0.1, np.sqrt(size)) * size

    def product(d):
        Hd = problem.space.covariance_product(p, mean, d)
        return Hd + problem.penalty.curvature(lam, d)

    def small(residual, _):
        return np.linalg.norm(residual) <= enough

    return newton_direction(product, np.ones_like(g), g, small, min(10 * len(g), 500))


def _line_search(problem, lam, step, dual, g, residual):
    """Halve until the dual falls; where it is flat to rounding, the residual."""
    slope = g @ step
    t, flat = 1.0, 1e-13 * (1.0 + abs(dual))
    for _ in range(50):
        new = lam + t * step
        found = problem.evaluate(new)
        if found[0] <= dual + 1e-4 * t * slope or (
            found[0] <= dual + flat and found[3] < residual
        ):
            return new, found
        t *= 0.5
    return None


def _active_newton(problem, width, lam, max_iter, done):
    """Newton on the nonzero weights, whose signs stay; others enter if they must."""
    for n_iter in range(done, max_iter + 1):
        dual, p, mean, residual = problem.evaluate(lam)
        if problem.record(n_iter, lam, dual, residual):
            break
        excess = mean - problem.target
        sign = np.where(lam != 0, np.sign(lam), -np.sign(excess))
        active = (lam != 0) | (np.abs(excess) > width)
        g = (excess + width * sign)[active]
        H = problem.space.covariance(p, mean)[np.ix_(active, active)]
        step = np.zeros_like(lam)
        step[active] = -np.linalg.lstsq(H, g, rcond=1e-12)[0]
        t, best = 1.0, None
        for _ in range(40):
            new = lam + t * step
            new[active & (new * sign < 0)] = 0.0
            found = problem.evaluate(new)
            if found[0] < dual or found[3] < residual:
                best = new
                break
            t *= 0.5
        if best is None:
            break
        lam = best
    return lam, n_iter


SOLVERS: dict[str, Callable[[DualProblem, Array, int], Solution]] = {
    "newton": newton,
    "lbfgs": lbfgs,
    "gis": partial(scaling, method="gis"),
    "iis": partial(scaling, method="iis"),
    "scgis": partial(scaling, method="scgis"),
}
