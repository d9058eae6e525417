"""Newton's method on the conjugate loss of a linear machine.

For dense features with many more rows than columns and a prior with a smooth loss.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from maxent._optimize.truncated_newton import newton_direction
from maxent._support.results import Monitor, Status

_SAMPLED = 4096  # a fiftieth of the rows from which on a sample gives the start
_STEPS = 200  # losses as sharp as hinges need them; the interior point is faster


def primal_newton(linear, tol, max_iter, init, callback):
    """Newton's method whose Hessian is computed anew only when it has aged.

    A random part of the rows gives the start, and the Hessian until it proves to be
    too coarse, so that passes over all rows are few.
    """
    d = linear.X.shape[1]
    x, sample = np.zeros(d + 1), None
    if init is not None:
        x[:d] = linear.weights_of(init)
        x[d] = linear.certify(linear.repaired(init))[2]
    elif len(linear.rows.q) > 50 * _SAMPLED and linear.X.shape[0] > 100 * d:
        sample = _run_on_sample(linear)
        x = sample.x
    run = NewtonRun(linear, x, sample)
    return newton_ascent(linear, run, tol, max_iter, callback)


def newton_ascent(linear, run, tol, max_iter, callback):
    """Newton's method to a certified point.

    Parameters
    ----------
    linear : LinearProblem, or what has its `certified`
    run : NewtonRun, or what has its steps and state
    """
    monitor = Monitor(tol, callback, solver="newton")
    last, status = min(max_iter, _STEPS), Status.MAX_ITER
    while run.iteration < last and status is Status.MAX_ITER:
        status = run.step()
        # The gap is half the squared gradient, or more after repair of the equality.
        left = run.gradient[run.free]
        small = left @ left <= 1.5 * tol * (1 + abs(run.total))
        stop = status is not Status.MAX_ITER or run.iteration == last
        if small or stop or run.iteration % 10 == 0:
            here = linear.certified(run.x, run.lam)
            J, gap, point = here.objective, here.gap, here.point
            if monitor.record(run.iteration, J, gap, point):
                status = monitor.status
    best = here if monitor.best is None else monitor.best
    bound = last if last < max_iter else None
    return monitor.result(run.iteration, status, best, max_iter=bound)


def _run_on_sample(linear):
    """A run near the best machine of a random sixteenth of the rows, Hessian fresh."""
    n = len(linear.rows.q)
    # One of every sixteen neighbours: as many of every class, where rows lie by class.
    pick = 16 * np.arange(n // 16) + np.random.default_rng(0).integers(16, size=n // 16)
    run = _approximate_run(linear.part(pick, n / len(pick)))
    run.evaluate(run.x, True)
    return run


def approximate_minimum(linear, direct=True):
    """Weights and biases near the smallest loss, by a few Newton steps."""
    return _approximate_run(linear, direct).x


def _approximate_run(linear, direct=True):
    run = (NewtonRun if direct else TruncatedRun)(
        linear, np.zeros_like(linear.precision)
    )
    while run.iteration < 30 and run.step() is Status.MAX_ITER:
        if run.decrement <= 1e-3 * (1 + abs(run.total)):
            break
    return run


class _DampedSteps:
    """Points of a descent on the conjugate loss plus the Gaussian penalty.

    A subclass has `evaluate`, the objective at a point and more, and `accept`, which
    goes to a point with these.
    """

    def __init__(self, linear):
        self.linear, self.iteration, self.decrement = linear, 0, np.inf
        self.free = np.isfinite(linear.precision)
        self.penalty = np.where(self.free, linear.precision, 0.0)

    def _descend(self, step, slope):
        """Go along a step until the loss has fallen enough; the share of it, or 0."""
        t = 1.0
        for _ in range(40):
            trial = self.x + t * step
            there = self.evaluate(trial)
            if there[0] <= self.total + 1e-4 * t * slope + 1e-13 * abs(self.total):
                self.accept(trial, *there)
                return t
            t *= 0.5
        return 0.0

    def _is_flat(self, slope):
        """Note the gain that a step promises; True if rounding hides it."""
        self.decrement = -slope
        return -slope <= 1e-20 * (1 + abs(self.total))


class NewtonRun(_DampedSteps):
    """Damped Newton steps by a factor of the Hessian, which serves until it has aged.

    Parameters
    ----------
    linear : LinearProblem, or what has its `loss_pass` and `precision`
    x : ndarray (d + 1,)
        Weights and bias to start from.
    sample : NewtonRun, optional
        Of some rows, weighted to stand for all, whose Hessian serves at first.
    patience : int, default=10
        Short steps in a row after which it has stalled.
    """

    def __init__(self, linear, x, sample=None, patience=10):
        super().__init__(linear)
        self.x, self.slow, self.patience, self.factor = x, 0, patience, None
        if sample is None or sample.factor is None:
            self.evaluate(x, True)
            return
        self.factor, self.unit, self.fresh = sample.factor, sample.unit, False
        self.accept(x, *self.evaluate(x))

    def evaluate(self, x, hessian=False):
        """Objective at x; with the Hessian's factor if asked for."""
        value, lam, gradient, H = self.linear.loss_pass(x, hessian)
        total = value + 0.5 * float(self.penalty @ x**2)
        if hessian:
            self.accept(x, total, lam, gradient)
            free = self.free
            A = H[np.ix_(free, free)]
            A.flat[:: len(A) + 1] += self.penalty[free]
            # Scale to unit diagonal so that the ridge acts on all columns alike.
            self.unit = 1.0 / np.sqrt(np.maximum(A.diagonal(), 1e-7))
            A *= self.unit
            A *= self.unit[:, None]
            A.flat[:: len(A) + 1] = 1.0 + 1e-7
            factor, info = dpotrf(A.T, lower=1, overwrite_a=1)
            # Where single precision overflowed there is no factor.
            usable = info == 0 and np.isfinite(factor.diagonal()).all()
            self.factor, self.fresh = factor if usable else None, True
        return total, lam, gradient

    def restart(self):
        """Begin anew at the same point, where the losses have changed."""
        self.slow, self.decrement = 0, np.inf
        self.evaluate(self.x, True)

    def accept(self, x, total, lam, gradient):
        """Move to a point whose loss is known."""
        self.x, self.total, self.lam = x, total, lam
        self.gradient = gradient + self.penalty * x

    def step(self):
        """One step; Status.MAX_ITER while there is more to gain, else STALLED."""
        self.iteration += 1
        if self.factor is None:
            return Status.STALLED
        step = np.zeros_like(self.x)
        scaled = self.unit * self.gradient[self.free]
        step[self.free] = -self.unit * dpotrs(self.factor, scaled, lower=1)[0]
        slope = float(self.gradient @ step)
        if -slope > 0.1 * self.decrement and not self.fresh:
            # The Hessian has aged if little was gained since the last step.
            self.decrement = np.inf
            self.evaluate(self.x, True)
            return Status.MAX_ITER
        if self._is_flat(slope):
            return Status.STALLED
        # Far from the optimum a new Hessian is needed anyway.
        far = self.fresh and -slope > 1e-2 * (1 + abs(self.total))
        t = self._descend(step, slope)
        if not t:
            return Status.STALLED
        self.fresh = False
        if far or t < 1.0:
            self.evaluate(self.x, True)
        self.slow = self.slow + 1 if t < 0.5 else 0
        return Status.STALLED if self.slow > self.patience else Status.MAX_ITER


class TruncatedRun(_DampedSteps):
    """Damped Newton steps by products with the Hessian.

    Parameters
    ----------
    linear : object with `precision`, `curved_pass` and `hessian_product`
    x : ndarray
        Weights and biases to start from.
    """

    def __init__(self, linear, x):
        super().__init__(linear)
        self.accept(x, *self.evaluate(x))

    def evaluate(self, x):
        """Objective at x, multipliers, gradient, and the diagonal of the Hessian."""
        value, lam, gradient, diagonal = self.linear.curved_pass(x)
        total = value + 0.5 * float(self.penalty @ x**2)
        gradient = np.where(self.free, gradient + self.penalty * x, 0.0)
        diagonal = np.where(self.free, diagonal + self.penalty, 1.0)
        return total, lam, gradient, np.maximum(diagonal, 1e-12)

    def accept(self, x, total, lam, gradient, diagonal):
        """Move to a point whose loss is known."""
        self.x, self.total, self.lam = x, total, lam
        self.gradient, self.diagonal = gradient, diagonal

    def restart(self):
        """Begin anew at the same point, where the losses have changed."""
        self.decrement = np.inf
        self.accept(self.x, *self.evaluate(self.x))

    def step(self):
        """One step; Status.MAX_ITER while there is more to gain, else STALLED."""
        self.iteration += 1
        g = self.gradient
        size = float(g @ (g / self.diagonal))
        # Far from the optimum a rough direction is enough; a third of this share takes
        # 1.4 times as many products (linear machines of 10 and 26 classes).
        share = min(0.3, 3.0 * np.sqrt(size / (1.0 + abs(self.total))))

        def product(v):
            out = self.linear.hessian_product(v) + self.penalty * v
            return np.where(self.free, out, 0.0)

        step = newton_direction(
            product, self.diagonal, g, lambda r, z: float(r @ z) <= share**2 * size
        )
        slope = float(g @ step)
        if self._is_flat(slope) or not self._descend(step, slope):
            return Status.STALLED
        return Status.MAX_ITER
