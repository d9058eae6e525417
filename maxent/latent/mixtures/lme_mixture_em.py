"""EM of mixtures from many starts at a time, accelerated and monotone.

EM as a map on parameter vectors, extrapolated by its last two steps where that raises
the likelihood (squared extrapolation), so that crawling near saddles is left behind.
Every step that is kept raises the objective.

Source: Varadhan & Roland (2008), scheme S3, for the extrapolation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from maxent._support.results import Listener, Report, tell
from maxent.latent._em_is import ROUNDING

Array = NDArray[np.float64]
_EPS = 8.0 * np.finfo(np.float64).eps  # rounding of terms that cancel
_PLAIN = 10  # EM steps before the first extrapolation
# A report is due after a share 1 / _SPACING of the steps so far: one each step costs
# callbacks 0.1 ms, a quarter of a step on 1000 rows.
_SPACING = 10


@dataclass
class Step:
    """One EM step from parameters (R, P)."""

    objective: Array  # (R,) average log-likelihood, plus log prior / W
    following: Array  # (R, P) parameters after the M step
    residual: Array  # (R,) max |E_new f - E_old f| in spreads of f: the gradient
    broken: NDArray[np.bool_]  # (R,) a component has vanished
    size: Array | float = 0.0  # (R,) of the largest terms that cancel in the objective


class MixtureProblem(Protocol):
    """EM on parameter vectors."""

    def em(self, phi: Array) -> Step:
        """One EM step of every restart."""


@dataclass
class Runs:
    """Where the restarts ended."""

    phi: Array
    objective: Array
    residual: Array
    n_iter: NDArray[np.intp]  # EM steps
    broken: NDArray[np.bool_]
    history: list[tuple[int, float]]  # EM steps, best objective so far
    stopped: bool = False  # by a callback

    @classmethod
    def at_starts(cls, phi: Array) -> Self:
        """Runs that have not begun."""
        R = len(phi)
        return cls(
            phi.copy(),
            np.full(R, -np.inf),
            np.full(R, np.inf),
            np.zeros(R, dtype=np.intp),
            np.zeros(R, dtype=bool),
            [],
        )

    def put(self, at: NDArray[np.intp], phi: Array, step: Step, steps: int) -> None:
        """Store the parameters of these restarts after so many steps, and the step."""
        self.phi[at], self.objective[at] = phi, step.objective
        self.residual[at], self.broken[at] = step.residual, step.broken
        self.n_iter[at] = steps


def leader(runs: Runs) -> int:
    """Number of the restart with the greatest objective, of the sound ones if any."""
    return int(np.argmax(np.where(runs.broken, -np.inf, runs.objective)))


def _report(runs, steps, tol, last):
    """Report of the best restart."""
    i = leader(runs)
    left = float(runs.residual[i])
    report = Report(steps, float(runs.objective[i]), left, "EM", left, tol)
    open_ = int(((runs.residual > tol) & ~runs.broken).sum())
    return replace(
        report,
        measure="relative gradient",
        note=f"{open_} of {len(runs.phi)} starts go on",
        last=last,
        solution=lambda: runs,
    )


def climb(
    problem: MixtureProblem,
    phi: Array,
    tol: float,
    max_iter: int,
    *,
    accelerate: bool = True,
    change_tol: float = 0.0,
    callback: Listener | None = None,
) -> Runs:
    """EM from every start until its relative gradient is within tol.

    With `change_tol` a run also ends once the objective gains less in a plain step.
    The callback hears of the first 10 steps and then after every tenth part more.
    """
    out = Runs.at_starts(phi)
    active, x0, first = np.arange(len(phi)), phi.copy(), problem.em(phi)
    steps, due = 1, 1
    while True:
        out.put(active, x0, first, steps)
        out.history.append((steps, float(out.objective.max())))
        open_ = (first.residual > tol) & ~first.broken
        done = not open_.any() or steps >= max_iter
        if callback is not None and (done or steps >= due):
            due = steps + 1 + steps // _SPACING
            out.stopped = tell(callback, _report(out, steps, tol, done)) and not done
        if done or out.stopped:
            return out
        active, x0, first = active[open_], x0[open_], _taken(first, open_)
        second = problem.em(first.following)
        steps += 1
        _check_rise(first, second, steps)
        gain = second.objective - first.objective
        x, step = first.following, second
        if accelerate and steps > _PLAIN:
            x, step = _extrapolated(problem, x0, first, second)
            steps += 1
        ended = (gain <= change_tol) if change_tol else np.zeros(len(gain), dtype=bool)
        if ended.any():
            out.put(active[ended], x[ended], _taken(step, ended), steps)
            if ended.all():
                return out
            active, x, step = active[~ended], x[~ended], _taken(step, ~ended)
        x0, first = x, step


def _extrapolated(problem, x0, first, second):
    """The extrapolated points where they are better than the EM steps, else these."""
    x1, x2 = first.following, second.following
    r = x1 - x0
    curve = (x2 - x1) - r
    size = np.linalg.norm(curve, axis=1)
    with np.errstate(all="ignore"):
        alpha = np.linalg.norm(r, axis=1) / size
    alpha = np.where(np.isfinite(alpha), np.clip(alpha, 1.0, 1e4), 1.0)[:, None]
    trial = x0 + 2.0 * alpha * r + alpha**2 * curve
    trial = np.where(np.isfinite(trial), trial, x1)
    third = problem.em(trial)
    better = (third.objective >= second.objective) & ~third.broken
    x = np.where(better[:, None], trial, x1)
    return x, Step(
        np.where(better, third.objective, second.objective),
        np.where(better[:, None], third.following, second.following),
        np.where(better, third.residual, second.residual),
        np.where(better, third.broken, second.broken),
        np.where(better, third.size, second.size),
    )


def _taken(step, keep):
    return Step(
        step.objective[keep],
        step.following[keep],
        step.residual[keep],
        step.broken[keep],
        np.broadcast_to(step.size, keep.shape)[keep],
    )


def _check_rise(first, second, steps):
    """A fall beyond rounding is an error of ours, except where a component vanishes."""
    fall = first.objective - second.objective
    rounding = ROUNDING * (1.0 + np.abs(first.objective))
    rounding += _EPS * np.maximum(first.size, second.size)
    wrong = ~(fall <= rounding)
    wrong &= ~(first.broken | second.broken)
    if wrong.any():
        raise FloatingPointError(
            f"the log-likelihood fell by {fall[wrong].max():.1e} at EM step {steps}; "
            "scale the data, or set a prior that keeps covariances away from zero."
        )


def mean_posterior_entropy(rho, w, total):
    """sum_t w_t H(rho_t) / total; rho (K, n)."""
    return float(-(xlogy(rho, rho).sum(axis=0) @ w) / total)


def weight_entropy(theta):
    """Entropy of mixture weights, in nats."""
    return float(-xlogy(theta, theta).sum())
