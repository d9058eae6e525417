"""Newton's method on the constraints that can matter, for problems of many classes.

A row has a constraint for every wrong class, and a trained model meets most of them
with room to spare: the Hessian between the others is far smaller than one factor of the
blocks. A round solves the problem of a working set; the multipliers of other
constraints are zero. The certificate is that of the whole problem at every step, and
the constraints that violate it most join the next round. J never falls.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from maxent._optimize.block_sum import BlockSum
from maxent._optimize.certificate import DualPoint, certify
from maxent._optimize.projected_newton import projected_newton
from maxent._support.results import DualResult, Listener, Monitor, Status

_FIRST = 700  # constraints of the first round; 300 take twice the rounds
_JOIN = 200  # constraints that may join, or half of those with a multiplier
_LARGEST = 2000  # multipliers whose matrix may be stored, 32 MB
_SMALLEST = 600  # columns of the blocks' factors up to which these are cheap enough
_NOTHING = 1e-12  # gain, in units of 1 + |J|, that is no gain
_OWN = 0.1  # share of the gap that a round may leave to its own constraints


def few_can_matter(R):
    """True if a working set is likely to be much smaller than the blocks' factors."""
    several = len(R.blocks) > 2 and R.n > 2 * _FIRST
    return several and sum(block.rank for block in R.blocks) > _SMALLEST


def constraint_rounds(rows, R, E, *, tol, max_iter, init=None, callback=None):
    """Solve the dual; returns a DualResult, stalled where too many constraints matter.

    Parameters
    ----------
    rows : Rows
        Of a margin prior whose slope at zero and whose losses are finite.
    R : BlockSum
    E : ndarray (n, k) or None
    tol : float
        Stop when gap <= tol * (1 + objective).
    max_iter : int
        Bound on the Newton steps of all rounds.
    init : ndarray (n,) or None
        Multipliers to start from.
    callback : callable(n_iter, objective, gap) or None
    """
    return _Rounds(rows, R, E, Monitor(tol, callback, solver="newton")).run(
        init, max_iter
    )


class _Rounds:
    def __init__(self, rows, R, E, monitor):
        self.rows, self.R, self.E, self.monitor = rows, R, E, monitor
        # a constraint has two classes of many
        several = E is not None and E.shape[1] > 1
        self.incidence = sp.csr_array(E) if several else E
        self.at_zero = rows.slope(np.zeros(len(rows.q)))
        # Beyond as many a factor of the blocks is the cheaper one, where one is stored;
        # else Newton systems would take hundreds of products for each of the biases.
        columns = sum(block.rank for block in R.blocks)
        self.largest = min(_LARGEST, columns) if R.stores_factor else R.n

    def run(self, init, max_iter):
        lam = np.zeros(len(self.rows.q)) if init is None else init
        guess = None if self.E is None else np.zeros(self.E.shape[1])
        self.point = self._certified(lam, guess, polish=True)
        working, steps, status = self._working_set(_FIRST), 0, Status.MAX_ITER
        while steps < max_iter:
            before = self.point.objective
            steps += self._round(working, steps, max_iter - steps).n_iter
            still = self.point.objective <= before + _NOTHING * (1.0 + abs(before))
            if still and not self._has_ended():
                # These are solved: biases that leave them so may violate others less,
                # and what the best biases of all constraints violate has to join.
                lam, bias = self.point.lam, self.point.bias
                self._record(steps, self._certified(lam, bias, polish=True))
            if self._has_ended():
                break
            active = np.count_nonzero(self.point.lam)
            kept = working if still else slice(0)
            new = self._working_set(max(_JOIN, active // 2), kept)
            if (still and len(new) == len(working)) or len(new) > self.largest:
                status = Status.STALLED
                break
            working = new
        return self._result(steps, status)

    def _has_ended(self):
        return self.monitor.converged or self.monitor.stopped

    def _record(self, steps, point):
        """Go to a point; whether that ends the method."""
        self.point = point
        return self.monitor.record(steps, point.objective, point.gap, point)

    def _certified(self, lam, bias, polish=False):
        """The point of the whole problem at these multipliers."""
        J, gap, bias, d = certify(
            self.rows, self.R, lam, self.incidence, bias, polish=polish
        )
        return DualPoint(lam, J, gap, bias, d)

    def _working_set(self, most, kept=slice(0)):
        """Constraints with a multiplier, those kept, and `most` that want one most."""
        wanted = self.point.d + self.at_zero
        wanted[self.point.lam > 0] = np.inf
        wanted[kept] = np.inf
        size = np.count_nonzero(wanted == np.inf) + most
        if size >= len(wanted):
            return np.arange(len(wanted))
        return np.sort(np.argpartition(-wanted, size)[:size])

    def _round(self, working, steps, max_iter):
        """Newton steps on a working set, until others matter more."""
        rows, R, E, monitor = self.rows, self.R, self.E, self.monitor
        maps = [A[:, working] for A in R.maps]
        part = BlockSum(R.blocks, maps, None if R.bias is None else R.bias[working])

        def certified(report):
            result = report.solution()
            lam = np.zeros(len(rows.q))
            lam[working] = result.lam
            point = self._certified(lam, result.bias)
            done = self._record(steps + report.n_iter, point)
            return done or report.gap <= _OWN * point.gap

        return projected_newton(
            rows.subset(working),
            part,
            None if E is None else E[working],
            tol=0.1 * monitor.tol,
            max_iter=max_iter,
            init=self.point.lam[working],
            bias=self.point.bias,
            callback=Listener(certified),
        )

    def _result(self, steps, status):
        best = self.monitor.best
        point = self.point if best is None else best.point
        if self.monitor.converged:
            status = Status.CONVERGED
        elif self.monitor.stopped:
            status = Status.STOPPED
        return DualResult(
            point.lam,
            point.bias,
            point.objective,
            point.gap,
            steps,
            status,
            "newton",
            history=self.monitor.history,
        )
