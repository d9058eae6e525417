"""The one EM loop: monotone objectives, and a status that says how a run ended.

Source: Dempster, Laird & Rubin (1977), theorem 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from maxent._support import validation as v
from maxent._support.results import Certified, Monitor, Status
from maxent._support.threads import with_single_threaded_blas

P = TypeVar("P")

# A fall of the objective below this share of 1 + |objective| is rounding: sums of 1e6
# terms, each correct to 2e-16 of its size, lose at most 1e-10 of their size.
ROUNDING = 1e-10
# A run from which no more is hoped: the steps by whose gain it is judged, how often it
# may still gain as much, and by how many nats more than that another one is ahead.
_RECENT, _HOPE, _AHEAD = 20, 200.0, 20.0


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
        ``"converged"`` only if the last gain is at most ``tol * (1 + |objective|)``, or
        ``tol * size``; ``"stalled"`` if the objective fell by more than rounding.
    trace : list of float
        Objective at the start and after every M step of that run.
    residual : float or None
        Largest relative change of a parameter in one more EM step.
    objectives : list of float
        Final objective of every start; of starts that are the same, once.
    size : float or None
        What gains are measured by: the number of observed values, of models whose
        `fit` says so; None for ``1 + |objective|``.
    """

    objective: float
    n_iter: int
    status: Status
    trace: list[float] = field(default_factory=list)
    residual: float | None = None
    objectives: list[float] = field(default_factory=list)
    size: float | None = None

    @property
    def converged(self) -> bool:
        """True if the tolerance that was asked for is met."""
        return self.status is Status.CONVERGED

    @property
    def history(self) -> list[tuple[int, float, float]]:
        """M steps done, objective, and its gain since the step before."""
        seen = self.objective_history
        gains = np.full(len(seen), math.inf)
        known = seen[:-1] > -math.inf  # a start may have the objective -inf
        np.subtract(seen[1:], seen[:-1], out=gains[1:], where=known)
        return list(zip(range(len(seen)), self.trace, gains.tolist()))

    @property
    def gain(self) -> float:
        """Gain of the last step; inf where none was taken."""
        return self.history[-1][2] if self.trace else math.inf

    @property
    def objective_history(self) -> NDArray[np.float64]:
        """Objective at the start and after every M step."""
        return np.array(self.trace)


class MonotoneMonitor(Monitor):
    """Record of a loop whose objective never falls: the greatest one is the best.

    Converged once the gain is at most ``tol * size``, and ``tol * (1 + |objective|)``
    without a size; `record` takes the gain in the place of the gap.
    """

    def __init__(self, tol, callback=None, size=None):
        super().__init__(tol, callback)
        self.size = size

    def _meets(self, certified):
        size = size_of_gains(certified.objective, self.size)
        return size < math.inf and certified.gap <= self.tol * size

    def _is_better(self, new):
        """Points of greater objective come first, whether or not they converged."""
        return new.objective > self.best.objective

    def _solution(self, certified, n_iter):
        return realised(certified.point)

    def fell(self) -> bool:
        """True if the last objective is below the one before by more than rounding."""
        _, objective, gain = self.history[-1]
        return gain < -ROUNDING * (1.0 + abs(objective))


@with_single_threaded_blas
def maximize_by_em(
    step: Callable[[P], tuple[float, P]],
    starts: Iterable[P],
    *,
    tol: float,
    max_iter: int,
    change: Callable[[P, P], float] | None = None,
    callback: Callable[[int, float, float], object] | None = None,
    size: float | None = None,
    faster: Callable[[P], Advance[P]] | None = None,
    together: Callable[[list[P]], Together[P] | None] | None = None,
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
    size : float, optional
        A run ends once a step gains at most ``tol * size`` instead. The number of
        observed values makes the rule the same in all units of the data.
    faster : callable, optional
        From a start to a rule that goes on from a point in the place of EM steps,
        to no smaller objective.
    together : callable, optional
        From all starts to what takes their steps at the same time; None where it is
        not worth it.

    Returns
    -------
    parameters
        The best that were seen.
    EMResult

    Raises
    ------
    TypeError
        For a `callback` that is no function.
    FloatingPointError
        If an objective is not finite, but for -inf at a start; the iteration is named.
    """
    v.check_callback(callback, "gain")
    if together is not None:
        starts = list(starts)
        stack = together(starts) if len(starts) > 1 else None
        if stack is not None:
            rest = tol, max_iter, change, callback, size
            parts = [Part(stack, i) for i in range(len(starts))]
            each = [_one_run(step, part, *rest) for part in parts]
            return _best_of(_side_by_side(step, stack, each))
    runs = (
        _one_run(step, start, tol, max_iter, change, callback, size, faster)
        for start in starts
    )
    return _best_of(_one_by_one(step, runs))


def _best_of(ended):
    """The greatest of ended runs, with the objectives of all."""
    ended = list(ended)
    if not ended:
        raise ValueError("EM needs at least one start.")
    best, result = max(ended, key=lambda run: run[1].objective)  # the first of equals
    result.objectives = [other.objective for _, other in ended]
    return best, result


def _one_by_one(step, runs):
    """Points and results of runs, until a callback stops one."""
    for run in runs:
        ended = _driven(step, run, next(run))
        yield ended
        if ended[1].status is Status.STOPPED:
            return


def _driven(step, run, point):
    """Point and result of a run that waits for the value of a point."""
    try:
        while True:
            point = run.send(step(point))
    except StopIteration as end:
        return end.value


def _side_by_side(step, stack, runs):
    """Points and results of runs that take their steps at the same time.

    The last one left goes on alone. A run far behind another one ends. If a callback
    stops a run, all of them end.
    """
    ended, left, stopped = [None] * len(runs), list(range(len(runs))), False
    seen, best = [[] for _ in runs], -math.inf
    for run in runs:
        next(run)
    while len(left) > 1 and not stopped:
        values, stack = stack.step()
        best, going = max(best, float(values.max())), []
        for place, i in enumerate(left):
            seen[i].append(float(values[place]))
            behind = _is_far_behind(seen[i], best) or stopped
            try:
                runs[i].send(None if behind else (values[place], Part(stack, place)))
                going.append(place)
            except StopIteration as end:
                ended[i] = end.value
                own = end.value[1].status is Status.STOPPED
                stopped = stopped or (own and not behind)
        left = [left[place] for place in going]
        if 0 < len(left) < len(stack):
            stack = stack.some(going)
    for place, i in enumerate(left):
        if stopped:
            ended[i] = _stopped(runs[i])
        else:
            ended[i] = _driven(step, runs[i], stack.point(place))
    return ended


def _is_far_behind(seen, best):
    """True if a run with these objectives has no hope to come near the best one.

    In 400 fits to random chains 98 winners had been behind others after so many steps:
    by 39 nats at most, and by 4 where the steps before had gained less than a hundredth
    of what they were behind.
    """
    if len(seen) <= _RECENT:
        return False
    gain = seen[-1] - seen[-1 - _RECENT]
    return best - seen[-1] > _AHEAD + _HOPE * gain


def _stopped(run):
    """Point and result of a run that ends where it is."""
    try:
        run.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("a run that was stopped goes on")


class Together(Protocol[P]):
    """Points of several runs, all of which take a step at the same time."""

    def __len__(self) -> int:
        """Number of runs."""

    def step(self) -> tuple[NDArray[np.float64], Together[P]]:
        """Objectives at the points, and the points after one EM step."""

    def some(self, places: list[int]) -> Together[P]:
        """Those of some of the runs."""

    def point(self, place: int) -> P:
        """That of one run."""


@dataclass(frozen=True)
class Part(Generic[P]):
    """One of the points of several runs, made when it is wanted."""

    stack: Together[P]
    place: int


def realised(point: Any) -> Any:
    """A point, also where it is one of several."""
    return point.stack.point(point.place) if isinstance(point, Part) else point


class Advance(Protocol[P]):
    """Rule that goes on from a point whose objective and EM step are known."""

    expected: float  # gain that the last step was to have

    def __call__(
        self,
        step: Callable[[P], tuple[float, P]],
        point: P,
        objective: float,
        following: P | None,
    ) -> tuple[P, tuple[float, P | None]]:
        """The next point, its objective, and the EM step from it if that is known."""


def em_step(
    step: Callable[[P], tuple[float, P]], point: P, following: P | None
) -> tuple[P, tuple[float, P]]:
    """The EM step from a point, and what `step` says there."""
    if following is None:
        following = step(point)[1]
    return following, step(following)


def _one_run(step, point, tol, max_iter, change, callback, size, faster=None):
    """A run that asks for steps: it yields points, is sent their objectives and the
    points that follow, or None to end, and returns its best point and the result."""
    monitor = MonotoneMonitor(tol, callback, size)
    advance = faster(point) if faster else None
    previous, status, last = -math.inf, Status.MAX_ITER, None
    evaluated = yield point
    for n_iter in range(max_iter + 1):
        objective, following = evaluated
        objective = float(objective)
        # a start may have entries of density zero, which the first step moves
        if not math.isfinite(objective) and (n_iter or objective != -math.inf):
            raise FloatingPointError(not_finite(objective, n_iter))
        gain = objective - previous if previous > -math.inf else math.inf
        left = gain if gain < 0.0 or advance is None else max(gain, advance.expected)
        ended = monitor.record(n_iter, objective, left, point)
        if monitor.best is not None and monitor.best.point is point:
            last = following
        if monitor.fell() or ended:
            status = Status.STALLED if monitor.fell() else monitor.status
            break
        previous = objective
        if n_iter == max_iter:
            continue
        if advance is None:
            point = following
            evaluated = yield point
        else:
            point, evaluated = advance(step, point, objective, following)
        if evaluated is None:
            status = Status.STOPPED
            break
    best = monitor.best or Certified(point, objective, gain)  # of density zero
    found = realised(best.point)
    last = step(found)[1] if last is None else realised(last)
    residual = (change or relative_change)(found, last)
    trace = [objective for _, objective, _ in monitor.history]
    value, size = best.objective, monitor.size
    result = EMResult(value, n_iter, status, trace, residual, [value], size)
    return found, result


def size_of_gains(objective: float, size: float | None) -> float:
    """Divide gains by this: the number of values, or ``1 + |objective|`` without it.

    Infinite at an objective that is, whatever the size.
    """
    if size is None or abs(objective) == math.inf:
        return 1.0 + abs(objective)
    return size


def not_finite(objective: float, n_iter: int) -> str:
    """Message about an objective that no EM step can go on from."""
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
    moved = new != old  # infinite entries stay
    old, new = old[moved], new[moved]
    return float(np.max(np.abs(new - old) / (1.0 + np.abs(old)), initial=0.0))
