"""Coordinate ascent on a multi-class dual: the constraints of one example at a time.

For kernels in random blocks with their Gram matrix; for linear machines with one weight
vector per class.
"""

from __future__ import annotations

import numpy as np

from maxent._optimize.certificate import certify, repair_equality
from maxent._support.results import Certified, Monitor, Status
from maxent.discrimination.duals._multiclass_scores import best_certified
from maxent.discrimination.duals._proximal_bias import ProximalBias

_STILL = 20  # certifications without any change, after which there will be none
_EVERY = 50  # sweeps between certifications where little is left, or known
_MANY = 8  # classes whose incidence matrix is mostly zeros


def solve_coordinate(
    scores,
    constraints,
    flat,
    *,
    tol,
    max_iter,
    worth=None,
    callback=None,
    seed=0,
):
    """Ascend until the certificate holds.

    Parameters
    ----------
    scores : KernelScores or LinearScores
    constraints : MulticlassRows
    flat : bool
        True for a flat prior of the biases.
    tol : float
        Stop when gap <= tol * (1 + objective).
    max_iter : int
        Sweeps over the examples.
    worth : callable(in_play) or None
        Bound on the sweeps, None for no other than max_iter, where so many constraints
        have a multiplier or ask for one.

    Returns
    -------
    DualResult
        `lam` (n * (m - 1),), `bias` (m - 1,) against the last class for a flat prior,
        else None.
    """
    ascent = _CoordinateAscent(scores, constraints, flat, tol, seed)
    monitor = Monitor(tol, callback, solver="coordinate")
    status, n_iter, next_check, every = Status.MAX_ITER, 0, 0, _EVERY
    if worth is not None and (bound := worth(ascent.in_play)) is not None:
        every = int(np.clip(bound / 8, 5, _EVERY))  # two before a quarter of it
    while n_iter < max_iter and status is Status.MAX_ITER:
        n_iter += 1
        if not ascent.sweep():
            status = Status.NONFINITE
        elif n_iter >= next_check and (
            ascent.nearly_done() or n_iter % every == 0 or n_iter == max_iter
        ):
            status = ascent.check(n_iter, monitor)
            next_check = n_iter + 2
            bound = None if worth is None else worth(ascent.in_play)
            if bound is not None and _out_of_reach(monitor.history, tol, bound):
                break
    return monitor.result(n_iter, status, ascent.best(monitor))


def _out_of_reach(history, tol, bound):
    """True if the gap, falling as it last did, is not to meet tol in time.

    Asked of a quarter of the bound on the sweeps at least; the pace is that of the
    latter half.
    """
    sweeps, J, _ = history[-1]
    half = [gap for n_iter, _, gap in history if n_iter >= sweeps / 2]
    gap, allowed = min(half), tol * (1.0 + max(J, 0.0))
    if sweeps < bound / 4 or len(half) < 2 or gap <= allowed:
        return False
    if not gap < np.inf:
        return True
    pace = np.log(half[0] / gap) / (sweeps / 2)
    return np.log(gap / allowed) > pace * (bound - sweeps)


class _CoordinateAscent:
    """Multipliers, scores and biases, kept up to date by sweeps over the examples."""

    def __init__(self, scores, constraints, flat, tol, seed):
        c, v = constraints, scores.class_weight_variance
        self.scores, self.c, self.rows, self.tol = scores, c, c.rows, tol
        self.rng = np.random.default_rng(seed)
        self.E = None
        if flat:
            self.E = c.sparse_incidence() if c.m > _MANY else c.incidence()
        self.bias = ProximalBias(c.m, flat, v * scores.variance, v * scores.diagonal)
        self.lam = np.zeros((c.n, c.m - 1))
        if not self.rows.potential.finite_at_zero:
            self.lam[:] = self.rows.start_inside().reshape(self.lam.shape)
            beta = self._beta()
            scores.begin(beta)
            self.bias.add(beta.sum(axis=0))
        self.objective, self.total = 0.0, np.inf
        self.in_play = self.lam.size  # constraints, when last certified
        self.last = None

    def _beta(self):
        return self.c.beta(self.lam.reshape(-1))

    def sweep(self):
        """Visit the examples once; return True if the objective is finite."""
        bias = self.bias
        self.total = self.scores.sweep(self.lam, bias.value, bias.variance, self.rng)
        beta = self._beta()
        bias.end_sweep(beta.sum(axis=0))
        value = self.rows.value(self.lam.reshape(-1))
        self.objective = value - self.scores.norm(beta)
        return np.isfinite(self.objective)

    def nearly_done(self):
        """True if the terms met are within the tolerance."""
        return self.total <= self.tol * (1 + max(self.objective, 0.0))

    def check(self, n_iter, monitor):
        """Certify the multipliers, balanced; the status that follows."""
        rows, scores, b = self.rows, self.scores, self.bias.value
        lam = repair_equality(self.lam.reshape(-1), rows.upper, self.E)
        J, gap, b, d = certify(rows, scores, lam, self.E, b[:-1] - b[-1])
        if lam is not None:
            lam = lam.copy()
            allowed = self.tol * (1.0 + max(J, 0.0))
            self.in_play = np.count_nonzero(self.c.in_play(lam, d, allowed))
            self.last = Certified((lam, b), J, gap)
        if monitor.record(n_iter, J, gap, (lam, b)):
            return monitor.status
        if rows.potential.hard and J * min(1.0, float(scores.diagonal.mean())) > 1e12:
            return Status.UNBOUNDED
        last = {entry[1:] for entry in monitor.history[-_STILL:]}
        if len(monitor.history) >= _STILL and len(last) == 1:
            return Status.STALLED  # as at a stationary point of an indefinite kernel
        scores.refresh(self._beta())
        return Status.MAX_ITER

    def best(self, monitor):
        """The point of the smallest gap; the last one while no margin is met."""
        best = monitor.best
        if self.last is not None and (best is None or not best.gap < np.inf):
            return self.last
        return best_certified(monitor, self.rows, self.scores, self.E)
