"""Quasi-Newton steps between EM steps, where the gradient of the objective is known.

EM gains little per step where much of the complete data is missing. Its first steps go
far from any start, though, and no step falls: they come first, and again wherever a
quasi-Newton step does not rise.

Sources: Jamshidian & Jennrich (1997), Acceleration of the EM algorithm by using
quasi-Newton methods; Nocedal (1980), Updating quasi-Newton matrices with limited
storage.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from maxent.models.em import em_step

Array = NDArray[np.float64]
P = TypeVar("P")

_EM_STEPS = 10  # before the first quasi-Newton step
_RECENT = 20  # steps whose gain bounds what the next are expected to make
_KNOWN = 15  # pairs with which a predicted gain is one
_MEMORY = 30  # pairs of moves and changes of the gradient
_FARTHEST = 2.0  # change of a coordinate in one step
_SHARES = 0.25 ** np.arange(6.0)  # of a step that are tried
_LEAST = 1e-3  # share of a step below which it bends at a limit and does not end there
_RISE = 0.1  # share of the predicted gain that a step must have


class Space(Protocol):
    """Coordinates of points."""

    def pack(self, p: Any) -> Array: ...
    def unpack(self, vector: Array) -> Any: ...


class Slopes(Protocol[P]):
    """Objective whose gradient is known."""

    def slope(self, p: P) -> tuple[float, Space, Array]:
        """Objective at a point, coordinates there, and the gradient by them."""

    def reach(self, old: P, new: P) -> float:
        """Share of the way from one point to another that is allowed."""

    def within(self, old: P, new: P) -> P:
        """The last allowed point on the way from one to the other."""


class QuasiNewton(Generic[P]):
    """Steps of one run: EM at first, then limited-memory BFGS that falls back on it.

    Parameters
    ----------
    objective : Slopes
        Of the points; rises by EM steps.
    em_steps : int
        EM steps before the first other one.
    """

    def __init__(self, objective: Slopes[P], em_steps: int = _EM_STEPS):
        self.objective = objective
        self.expected = 0.0 if em_steps else np.inf
        self._wait = em_steps
        self._pairs: deque[tuple[Array, Array]] = deque(maxlen=_MEMORY)
        self._recent: deque[float] = deque(maxlen=_RECENT)
        self._last: tuple[Array, Array] | None = None
        self._here: tuple[float, Space, Array] | None = None

    def __call__(
        self,
        step: Callable[[P], tuple[float, P]],
        point: P,
        objective: float,
        following: P | None,
    ) -> tuple[P, tuple[float, P | None]]:
        """The next point, its objective, and the EM step from it if that is known."""
        self.expected = 0.0
        if self._wait > 0:
            self._wait -= 1
            return em_step(step, point, following)
        _, space, slope = self._here or self.objective.slope(point)
        self._here = None
        at = space.pack(point)
        self._remember(at, slope)
        if self._pairs:
            way = self._way(slope)
        else:
            following = step(point)[1] if following is None else following
            try:
                way = space.pack(following) - at
            except np.linalg.LinAlgError:  # its covariances have no coordinates here
                way = np.zeros_like(at)
        gain = float(slope @ way)
        if gain > 0.0:
            way *= min(1.0, _FARTHEST / float(np.abs(way).max()))
            most = self.objective.reach(point, space.unpack(at + way))
            most = most if most > _LEAST else 1.0
            for share in most * _SHARES:
                new = self.objective.within(point, space.unpack(at + share * way))
                value = self._tried(new)
                if value >= objective + _RISE * share * gain:
                    known = len(self._pairs) >= _KNOWN
                    self._expect(objective, 0.5 * gain if known else np.inf)
                    return new, (value, None)
        # An EM step that gains little says little: only if a fresh start has failed as
        # well, or many steps have gained little together, may it end the run.
        self._expect(objective, np.inf if self._pairs else 0.0)
        self._pairs.clear()
        self._last = self._here = None
        return em_step(step, point, following)

    def _expect(self, objective, gain):
        """The predicted gain, but no more than recent steps have made together."""
        if len(self._recent) == _RECENT:
            gain = min(gain, objective - self._recent[0])
        self._recent.append(objective)
        self.expected = gain

    def _tried(self, point):
        """Objective of a point; of one that has none, minus infinity."""
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                self._here = self.objective.slope(point)
        except (FloatingPointError, ValueError, np.linalg.LinAlgError):
            return -np.inf
        value, _, slope = self._here
        return value if np.isfinite(value) and np.isfinite(slope).all() else -np.inf

    def _remember(self, at, slope):
        """Keep the move since the last point if the objective is concave along it."""
        if self._last is not None and len(self._last[0]) == len(at):
            move, change = at - self._last[0], self._last[1] - slope
            size = np.linalg.norm(move) * np.linalg.norm(change)
            if move @ change > 1e-10 * size:
                self._pairs.append((move, change))
        else:
            self._pairs.clear()
        self._last = at, slope

    def _way(self, slope):
        """The inverse of the curvature that the pairs say, times the slope."""
        way, shares = np.array(slope), []
        for move, change in reversed(self._pairs):
            share = (move @ way) / (move @ change)
            way -= share * change
            shares.append(share)
        move, change = self._pairs[-1]
        way *= (move @ change) / (change @ change)
        for (move, change), share in zip(self._pairs, reversed(shares)):
            way += (share - (change @ way) / (move @ change)) * move
        return way
