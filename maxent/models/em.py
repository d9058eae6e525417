"""The one EM loop: objectives that never fall, honest ends, one problem or many.

Source: Dempster, Laird & Rubin (1977), theorem 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from maxent._support.results import Monitor, Status

P = TypeVar("P")
Points = tuple[NDArray[np.float64], ...]

# A fall of the objective below this share of 1 + |objective| is rounding: sums of 1e6
# terms, each correct to 2e-16 of its size, lose at most 1e-10 of their size.
ROUNDING = 1e-10


@dataclass
class EMResult:
    """How an EM fit ended.

    Parameters
    ----------
    objective : float
        Objective at the returned parameters: the log-likelihood, or a lower bound of
        it, plus the log-density of the prior where there is one.
    n_iter : int
        M steps taken in the run that is kept.
    status : Status
        ``"converged"`` only if the last gain is at most ``tol * (1 + |objective|)``;
        ``"stalled"`` if the objective fell by more than rounding.
    history : list of tuple (int, float, float)
        M steps done, objective, and its gain since the step before.
    residual : float or None
        Largest relative change of a parameter in one more EM step.
    objectives : list of float
        Final objective of every start.
    """

    objective: float
    n_iter: int
    status: Status
    history: list[tuple[int, float, float]] = field(default_factory=list)
    residual: float | None = None
    objectives: list[float] = field(default_factory=list)

    @property
    def converged(self) -> bool:
        """True if the tolerance that was asked for is met."""
        return self.status is Status.CONVERGED

    @property
    def gain(self) -> float:
        """Gain of the last step; inf where none was taken."""
        return self.history[-1][2] if self.history else math.inf

    @property
    def objective_history(self) -> NDArray[np.float64]:
        """Objective at the start and after every M step."""
        return np.array([h[1] for h in self.history])


class MonotoneMonitor(Monitor):
    """Record of a loop whose objective never falls: the greatest one is the best.

    Converged once the gain is at most ``tol * (1 + |objective|)``; `record` takes the
    gain in the place of the gap.
    """

    def _meets(self, certified):
        size = abs(certified.objective)
        return size < math.inf and certified.gap <= self.tol * (1.0 + size)

    def rank(self, certified):
        """Points of greater objective come first, whether or not they converged."""
        return -certified.objective

    def _solution(self, certified, n_iter):
        return certified.point

    def fell(self) -> bool:
        """Whether the last objective is below the one before by more than rounding."""
        _, objective, gain = self.history[-1]
        return gain < -ROUNDING * (1.0 + abs(objective))


def maximize_by_em(
    step: Callable[[P], tuple[float, P]],
    starts: Iterable[P],
    *,
    tol: float,
    max_iter: int,
    change: Callable[[P, P], float] | None = None,
    callback: Callable[[int, float, float], object] | None = None,
) -> tuple[P, EMResult]:
    """Run EM from every start and keep the greatest objective.

    Parameters
    ----------
    step : callable
        From parameters to (their objective, the parameters after one EM step).
    starts : iterable
        Parameters to start from.
    tol : float
        A run ends once a step gains at most ``tol * (1 + |objective|)``.
    max_iter : int
        M steps at most, of each run.
    change : callable, optional
        Relative change of two parameters, for the residual; None takes them as arrays
        or tuples of arrays.
    callback : callable(n_iter, objective, gain), optional
        Called after every E step; True stops the fit, the starts left included.

    Returns
    -------
    parameters
        The best that were seen.
    EMResult

    Raises
    ------
    FloatingPointError
        If an objective is not finite, but for -inf at a start; the iteration is named.
    """
    best, objectives = None, []
    for start in starts:
        point, result = _one_run(step, start, tol, max_iter, change, callback)
        objectives.append(result.objective)
        if best is None or result.objective > best[1].objective:
            best = point, result
        if result.status is Status.STOPPED:
            break
    if best is None:
        raise ValueError("EM needs at least one start.")
    best[1].objectives = objectives
    return best


def _one_run(step, point, tol, max_iter, change, callback):
    monitor = MonotoneMonitor(tol, callback)
    previous, status, residual = -math.inf, Status.MAX_ITER, None
    for n_iter in range(max_iter + 1):
        objective, following = step(point)
        # a start may have entries of density zero, which the first step moves
        if not math.isfinite(objective) and (n_iter or objective != -math.inf):
            raise FloatingPointError(_not_finite(objective, n_iter))
        gain = objective - previous if previous > -math.inf else math.inf
        ended = monitor.record(n_iter, objective, gain, point)
        if monitor.best is not None and monitor.best.point is point:
            residual = (change or relative_change)(point, following)
        if monitor.fell() or ended:
            status = Status.STALLED if monitor.fell() else monitor.status
            break
        point, previous = following, objective
    best = monitor.best
    result = EMResult(
        best.objective, n_iter, status, monitor.history, residual, [best.objective]
    )
    return best.point, result


def maximize_many_by_em(
    step: Callable[[NDArray[np.intp], Points], tuple[NDArray[np.float64], Points]],
    points: Points,
    *,
    tol: float,
    max_iter: int,
) -> tuple[Points, list[EMResult]]:
    """Run EM on many problems at once, each by the rule of `maximize_by_em`.

    Parameters
    ----------
    step : callable
        From the numbers (k,) of the problems that still run and their points to their
        objectives (k,) and their points after one EM step.
    points : tuple of ndarray (n, ...)
        Starts of all problems.
    tol : float
        A problem ends once a step gains at most ``tol * (1 + |objective|)``.
    max_iter : int
        M steps at most, of each problem.

    Returns
    -------
    points : tuple of ndarray (n, ...)
        The best that each problem has seen.
    results : list of EMResult

    Raises
    ------
    FloatingPointError
        If an objective is not finite, but for -inf at a start.
    """
    runs = _ManyRuns(points, tol)
    running, now = np.arange(len(points[0])), points
    for n_iter in range(max_iter + 1):
        objective, following = step(running, now)
        done = runs.record(running, now, objective, n_iter)
        runs.leave(running, now, following, done | (n_iter == max_iter))
        now = tuple(part[~done] for part in following)
        running = running[~done]
        if not len(running):
            break
    return runs.best, runs.results()


class _ManyRuns:
    """Best points, traces and ends of many runs; the rule is that of `_one_run`."""

    def __init__(self, points, tol):
        n = len(points[0])
        self.tol, self.trace = tol, []
        self.best = tuple(np.array(part) for part in points)
        self.top, self.previous = np.full(n, -np.inf), np.full(n, -np.inf)
        self.n_iter, self.residual = np.zeros(n, dtype=int), np.zeros(n)
        self.status = [Status.MAX_ITER] * n

    def record(self, running, now, objective, n_iter):
        """Keep what runs have reached; which of them have ended."""
        _check_objectives(objective, n_iter)
        row = np.full(len(self.top), np.nan)
        row[running] = objective
        self.trace.append(row)
        better = objective > self.top[running]
        at = running[better]
        for part, new in zip(self.best, now):
            part[at] = new[better]
        self.top[at] = objective[better]
        before = self.previous[running]
        known = before > -np.inf  # a start may have the objective -inf
        gain = np.where(known, objective - np.where(known, before, 0.0), np.inf)
        size = 1.0 + np.abs(objective)
        fell = gain < -ROUNDING * size
        done = known & (gain <= self.tol * size)
        self.previous[running], self.n_iter[running] = objective, n_iter
        for k in np.flatnonzero(done):
            self.status[running[k]] = Status.STALLED if fell[k] else Status.CONVERGED
        return done

    def leave(self, running, now, following, ended):
        """Keep the residuals of runs that have ended."""
        if ended.any():
            pairs = zip(now, following)
            change = [_row_change(a[ended], b[ended]) for a, b in pairs]
            self.residual[running[ended]] = np.max(change, axis=0)

    def results(self):
        """How every run ended."""
        trace = np.array(self.trace).T  # (runs, steps), NaN after the end of a run
        gain = np.full(trace.shape, np.inf)
        known = np.isfinite(trace[:, :-1])
        np.subtract(trace[:, 1:], trace[:, :-1], out=gain[:, 1:], where=known)
        out = []
        for i, (top, end) in enumerate(zip(self.top.tolist(), self.n_iter.tolist())):
            own = slice(end + 1)
            seen, up = trace[i, own].tolist(), gain[i, own].tolist()
            steps = list(zip(range(end + 1), seen, up))
            residual = float(self.residual[i])
            out.append(EMResult(top, end, self.status[i], steps, residual, [top]))
        return out


def _row_change(old, new):
    """`relative_change` of every member."""
    change = np.abs(new - old) / (1.0 + np.abs(old))
    return change.reshape(len(old), -1).max(axis=1)


def _check_objectives(objective, n_iter):
    wrong = ~np.isfinite(objective) & ~((objective == -np.inf) & (n_iter == 0))
    if wrong.any():
        raise FloatingPointError(_not_finite(objective[wrong][0], n_iter))


def _not_finite(objective, n_iter):
    return (
        f"objective={objective} at EM iteration {n_iter}: the model gives some data "
        "probability zero or infinity; scale the data, or use a prior that keeps "
        "probabilities and variances above zero."
    )


def relative_change(old: Any, new: Any) -> float:
    """Largest ``|new - old| / (1 + |old|)`` over arrays or tuples of arrays."""
    if isinstance(old, tuple):
        return max((relative_change(a, b) for a, b in zip(old, new)), default=0.0)
    old, new = np.asarray(old, dtype=np.float64), np.asarray(new, dtype=np.float64)
    return float(np.max(np.abs(new - old) / (1.0 + np.abs(old)), initial=0.0))
