"""The largest value of a quadratic model between bounds, by conjugate gradients.

    maximise  g' x - x' H x / 2,    low <= x <= high,   E' x = 0

H is known by products. Projected conjugate gradients (Gould, Hribar & Nocedal 2001)
iterate until some entries meet a bound; these stay fixed and the others go on (More &
Toraldo 1991), until no slope at a bound points inwards. The value never falls, so every
answer is a direction of ascent.
"""

from __future__ import annotations

from itertools import islice

import numpy as np

from maxent._optimize.newton_system import Projection, conjugate_gradients
from maxent._support.linalg import small_solve

_FACTORISED = 1e-8  # accuracy where the preconditioner is a factor of H
_ROUNDING = 1e-12  # relative changes of the value below it are no gain


def maximize_bounded_quadratic(H, slope, low, high, E, accuracy, most=np.inf):
    """A step x (size,) whose model value is close to the largest.

    Parameters
    ----------
    H : FreeHessian
    slope : ndarray (size,)
        The gradient g.
    low, high : ndarray (size,)
        Bounds, low <= 0 <= high.
    E : ndarray (size, k) or None
    accuracy : float
        Share of the slope, in the norm of the preconditioner, that may be left; less
        where that is a factor of H.
    most : float
        Work of H beyond which it ends where it is.
    """
    return _BoundedQuadratic(H, slope, low, high, E, accuracy).solve(most)


class _BoundedQuadratic:
    def __init__(self, H, slope, low, high, E, accuracy):
        self.H, self.slope, self.low, self.high, self.E = H, slope, low, high, E
        self.accuracy = accuracy
        self.x, self.residual = np.zeros(H.size), slope
        self.free = np.ones(H.size, dtype=bool)
        self.target = None
        self.gain, self.alone = 0.0, False  # at the last release, and of one entry
        # Entries held at a bound by a large slope say nothing about the others' scale.
        held = ((low >= 0) & (slope < 0)) | ((high <= 0) & (slope > 0))
        self.held = held if not held.all() else np.zeros(H.size, dtype=bool)

    def solve(self, most):
        steps = 4 * self.H.size + 200
        for _ in range(steps):  # products with a matrix that was made count as none
            if self.H.products >= steps or self.H.work >= most:
                break
            if not self.free.any():
                if not self._release():
                    break
                continue
            if self.H.should_assemble():
                self.H.assemble()
                if self.H.assembled:
                    self.target = None  # in another norm
            beyond = self._conjugate_gradients()
            if beyond is not None:
                self._meet_bounds(beyond)
            elif not self.H.should_assemble() and not self._release():
                break
        return self.x

    def _release(self):
        """Free entries at a bound that the slope there would leave; True if any.

        Only the one of the steepest slope, where the last release has gained nothing:
        the others may stand in its way.
        """
        gain = float((self.slope + self.residual) @ self.x)
        improved = gain > (1.0 + _ROUNDING) * self.gain
        if not improved and self.alone:
            return False
        slope = self.residual  # less its part along E, that of the free entries
        inward = np.where(self.x <= self.low, slope, 0.0)
        inward = np.where(self.x >= self.high, -slope, inward)
        inward[self.free | (self.high <= self.low)] = 0.0
        largest = inward.max(initial=0.0)
        accuracy = _FACTORISED if self.H.assembled else self.accuracy
        if not largest > accuracy * np.abs(self.slope[~self.held]).max(initial=0.0):
            return False
        self.gain, self.alone = gain, not improved
        if improved:
            self.free |= inward > 0.1 * largest
        else:
            self.free[inward.argmax()] = True
        return True

    def _projection(self, at):
        """The function that projects a slope, to a direction of these entries."""
        nearly = self.H.preconditioner(at)

        def solve(r):
            z = np.zeros(r.shape)
            z[at] = nearly(r[at])
            return z

        return Projection(solve, self.E)

    def _find_target(self, norm):
        """Set the norm that may be left, a share of that of entries that are not held.

        `norm` is that of the free entries' slope.
        """
        if self.held[self.free].any():
            _, r, z = self._projection(np.flatnonzero(~self.held))(self.residual)
            norm = float(r @ z)
        accuracy = _FACTORISED if self.H.assembled else self.accuracy
        self.target = accuracy**2 * norm

    def _conjugate_gradients(self):
        """Move x up; the step that would leave the bounds, or None at the target."""
        at, start = np.flatnonzero(self.free), self.x
        project = self._projection(at)
        iterates = conjugate_gradients(self.H.product, project, self.residual)
        for x, _, residual, _, left in islice(iterates, 2 * len(at) + 21):
            new = start + x
            if (new < self.low).any() or (new > self.high).any():
                return new - self.x
            # The part along E would stay and drown the others in rounding.
            self.x, self.residual = new, residual
            if self.target is None:
                self._find_target(left)
            if not left > self.target or self.H.should_assemble():
                break
        return None

    def _meet_bounds(self, move):
        """Make the move, cut at the bounds; what meets one is no longer free."""
        y = np.clip(self.x + move, self.low, self.high)
        free = self.free & (y > self.low) & (y < self.high)
        y = self._balanced(y, free)
        if y is not None:
            residual = self.slope - self.H.product(y)
            if (self.slope + residual) @ y >= (self.slope + self.residual) @ self.x:
                self.x, self.residual, self.free = y, residual, free
                return
        # The whole cut move would lower the objective: stop at the first bound.
        room = np.full(len(move), np.inf)
        down, up = move < 0, move > 0
        room[down] = (self.low - self.x)[down] / move[down]
        room[up] = (self.high - self.x)[up] / move[up]
        a = max(0.0, float(room.min()))
        first = room <= a * (1.0 + 1e-12)
        self.x = np.clip(self.x + a * move, self.low, self.high)
        self.x[first] = np.where(down, self.low, self.high)[first]
        self.residual = self.slope - self.H.product(self.x)
        self.free = self.free & ~first

    def _balanced(self, y, free):
        """y with E' y = 0 by moves of free entries inside the bounds, or None."""
        if self.E is None:
            return y
        W = np.where(free, 1.0 / self.H.diagonal, 0.0)[:, None] * self.E
        y = y - W @ small_solve(self.E.T @ W, self.E.T @ y)
        inside = (y >= self.low).all() and (y <= self.high).all()
        met = np.abs(self.E.T @ y).max() <= 1e-9 * np.abs(y).max(initial=0.0)
        return y if inside and met else None
