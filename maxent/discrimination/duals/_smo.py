"""Working sets: sequential minimal optimisation in single precision, proof in double.

The solver works on a single-precision Gram matrix of the active rows. The rows that
will carry a multiplier show early; once they do, the others are set aside and the
rest of the work is done on a matrix of those rows alone. Residuals are then
recomputed in double precision on all rows, and the solver goes on from there until the
certificate holds.

If there are too many rows for a matrix of all of them, a subset gives a first machine,
which chooses the rows of the next.
"""

from __future__ import annotations

import numpy as np

from maxent._core.machines.smo import smo
from maxent._optimize.rows import BOTH
from maxent._support.results import (
    CORE_STATUS,
    Certified,
    Monitor,
    Status,
    relative_gap,
)
from maxent.discrimination.duals._kkt import ActiveRows
from maxent.discrimination.grams.gram_store import PartGram, WholeGram

_SMALL = 1000  # rows too few to be worth setting any aside
_SUBSET = 4000  # rows of the first subset
_BLOCK = 4096  # rows solved for together at first where the active ones do not fit
_ROUNDS = 4  # after which that are too few, as rows that are left out answer to them
_IDLE_SHARE = 0.2  # of rows that could be set aside, below which none are
_LEAST = 1e-3  # share of an optimality gap to reach without a certificate
_AT_ONCE = 8000  # rows that need no subset if they fit in memory
_FAILED = (Status.UNBOUNDED, Status.NONFINITE)


class WorkingSets(ActiveRows):
    """One solution of a SignedProblem.

    Parameters
    ----------
    kernel : VectorKernel
    problem : SignedProblem
    certify : Certifier
    tol : float
        Relative duality gap.
    kkt_tol : float or None
        Optimality gap in margin units asked for besides.
    max_iter : int
    cache_size : float
        Memory for kernel values, in MB.
    callback : callable or None
    gram : WholeGram or None
        The matrix of all rows, where the caller holds it for several problems.
    """

    def __init__(
        self,
        kernel,
        problem,
        certify,
        tol,
        kkt_tol,
        max_iter,
        cache_size,
        callback,
        gram=None,
    ):
        most = max(64, int(np.sqrt(cache_size * 1e6 / 4.0)) - 32)
        super().__init__(problem, min(len(problem.level), most))
        self.kernel, self.certify = kernel, certify
        self.tol = tol
        # The duality gap is quadratic in the optimality gap.
        guess = min(max(0.1 * np.sqrt(tol), 1e-9), 1e-3)
        self.kkt = guess if kkt_tol is None else 0.9 * kkt_tol
        self.kkt_asked = np.inf if kkt_tol is None else kkt_tol
        self.max_iter = max_iter
        self.extra = 0 if self.flat else 1
        self.gram = gram
        self.whole = (
            gram is not None
            or self.n <= 64
            or (WholeGram.megabytes(kernel) <= cache_size and WholeGram.pays(kernel))
        )
        self.at_once = self.whole or self.n <= min(self.limit, _AT_ONCE)
        self.steps = 0
        self.indefinite = False  # a pair has shown negative curvature
        self.monitor = Monitor(tol, callback, self.kkt_asked, solver="smo")

    # -- pieces ------------------------------------------------------------------
    def f_of(self, a, single=False):
        """K a over all rows, from scratch."""
        columns = np.flatnonzero(a)
        if not len(columns):
            return np.zeros(self.n)
        f = self.kernel.apply(columns, a[columns, None], single=single)[:, 0]
        return np.asarray(f, dtype=np.float64)

    def run(self, store, a, f, b, kkt):
        """SMO on the rows held: changes a and f there in place; (b, status)."""
        p, rows, extra = self.p, store.rows, self.extra

        def with_bias_row(x, value):
            x = x[rows]
            return np.concatenate([[value], x]) if extra else x

        part = with_bias_row(a, 0.0)
        residual = with_bias_row(p.target - f - b, 0.0)
        if extra:
            # The bias is one more row without potential: K_bb = variance.
            part[0] = -float(a.sum())
            residual[0] = -p.bias_variance * part[0] - b
            store.matrix[0, 0] = p.bias_variance
        steps, _, middle, code, indefinite = smo(
            p.potential.core_spec,
            store.matrix,
            part,
            residual,
            with_bias_row(p.level, 0.0),
            with_bias_row(p.rate, np.inf),
            with_bias_row(p.weight, np.inf),
            with_bias_row(p.sides, BOTH).astype(np.int8),
            kkt,
            max(self.max_iter - self.steps, 0),
        )
        self.steps += steps
        self.indefinite = self.indefinite or indefinite
        a[rows] = part[extra:]
        f[rows] = p.target[rows] - b - residual[extra:]
        self.monitor.announce(self.steps)
        return b + middle, CORE_STATUS[code]

    def ended(self):
        """True if no further step may be taken."""
        return self.steps >= self.max_iter or self.monitor.stopping

    # -- solution -----------------------------------------------------------------
    def solve(self, init):
        """DualResult, with the best certificate met."""
        a = self.start(init)
        f, b = np.zeros(self.n), 0.0
        cold = not a.any()
        if not cold:
            f = self.f_of(a) if self.gram is None else self.gram.product(a)
            if init is None:
                # The steps end at the margins that are asked for.
                shrink = min(1.0, 1.0 / max(float(np.abs(f).max()), 1e-300))
                a *= shrink
                f *= shrink
            b = self.p.bias_variance * a.sum()
            if self.flat:
                near = self.gram is not None  # then a start is near the solution
                b = self.max_violation(a, f, 0.0)[1] if near else self.certify(a, f)[2]
        if self.whole:
            store = self.gram or WholeGram(self.kernel, self.extra)
        else:
            store = PartGram(self.kernel, self.limit, self.extra)
            if self.at_once:
                store.add(np.arange(self.n))
        if self.at_once:
            b, status = self.approach_at_once(store, a, f, b)
        else:
            b, status = self.approach_by_subsets(store, a, f, b, cold)
        return self.finish(store, a, f, b, status)

    def approach_at_once(self, store, a, f, b):
        """First machine from a matrix of all rows."""
        if self.n <= _SMALL:
            return self.run(store, a, f, b, self.kkt)
        scale = self.scale(a, f, b)
        loose = max(self.kkt, 0.3 * scale)
        b, status = self.run(store, a, f, b, loose)
        if status in _FAILED or loose == self.kkt or self.monitor.stopping:
            return b, status
        stay = self.active(a, f, b, 0.15 * scale)
        if len(stay) < 0.8 * self.n:
            if isinstance(store, PartGram):
                store.keep(stay)
            else:
                store = store.part(stay)
        return self.run(store, a, f, b, self.kkt)

    def approach_by_subsets(self, store, a, f, b, cold):
        """First machine from the rows that a smaller one chooses."""
        scale = self.scale(a, f, b)
        seen = a.copy()
        if cold:
            store.add(self.spread(min(max(_SUBSET, self.n // 4), self.limit)))
            b, status = self.run(store, a, f, b, max(self.kkt, 0.05 * scale))
            if status in _FAILED or self.monitor.stopping:
                return b, status
            f[:] = self.refreshed(np.zeros(self.n), seen, a)
        store.exchange(self.working_set(a, f, b, 0.3 * scale))
        loose = 0.2 * scale
        # Restarts are expensive near convergence: check shrunk rows early.
        for _ in range(6 if loose > self.kkt else 0):
            before = f.copy()
            b, status = self.run(store, a, f, b, loose)
            if status in _FAILED or self.monitor.stopping:
                return b, status
            f[:] = self.refreshed(before, seen, a)
            rows = self.active(a, f, b, 0.1 * scale)
            if len(rows) > self.limit:
                return self.sweeps(store, a, f, b, self.kkt)
            if not len(store.cover(rows)):
                break
        return self.run(store, a, f, b, self.kkt)

    def refreshed(self, f, seen, a):
        """f of multipliers a from that of `seen`, which becomes a copy of a."""
        self.balance(a)
        change = a - seen
        seen[:] = a
        return f + self.f_of(change, single=True)

    def sweeps(self, store, a, f, b, kkt):
        """Solve for the worst active rows in turn where all do not fit in memory.

        Once the others have settled, all that are left may fit. Rows without a
        multiplier that are far from violating the condition are set aside, and their
        decision values are left as they are: certification computes them afresh.
        """
        slack = 0.1 * max(self.scale(a, f, b), kkt)
        status, done, size, left = Status.MAX_ITER, -1, _BLOCK, _ROUNDS
        near, next_look, exact = np.arange(self.n), np.inf, -1
        violation, middle = self.max_violation(a, f, b)
        while not self.ended():
            if violation <= 1.05 * kkt or done == self.steps:
                if exact == self.steps or len(near) == self.n:
                    break
                # Rounding of single precision may hide violations: look at these few.
                columns = np.flatnonzero(a)
                f[near] = self.kernel.apply(columns, a[columns, None], rows=near)[:, 0]
                exact, done = self.steps, -1
                violation, middle = self.max_violation(a, f, b, near)
                continue
            done, b = self.steps, b + middle
            if violation < next_look:
                next_look = 0.25 * violation
                far = self.far(a, f, b, near, max(slack, 4.0 * violation))
                near = near[~far] if far.mean() > _IDLE_SHARE else near
            # Shrunk rows will violate the condition: first steps may be rough.
            rows = self.active(a, f, b, max(slack, 0.05 * violation), near)
            target = max(0.05 * violation, kkt)
            if len(rows) > self.limit:
                if left == 0:  # the working set is cycling
                    size, left = 2 * size, _ROUNDS
                left -= 1
                rows = self.worst(a, f, b, rows, min(size, self.limit))
                target = max(0.3 * violation, 0.5 * kkt)
            store.cover(rows)
            before = a.copy()
            b, status = self.run(store, a, f, b, target)
            if status in _FAILED:
                return b, status
            moved = np.flatnonzero(a != before)
            others = np.setdiff1d(near, store.rows, assume_unique=True)
            if len(moved) and len(others):
                change = (a - before)[moved, None]
                f[others] += self.kernel.apply(moved, change, True, others)[:, 0]
            violation, middle = self.max_violation(a, f, b, near)
            if self.monitor.callback is not None and len(near) == self.n:
                self.monitor.report(self.steps, *self.certify(a, f, b)[:2])
        self.balance(a)
        return b + middle, status

    def far(self, a, f, b, rows, slack):
        """Marks of rows, among some, without a multiplier and with more slack."""
        return (a[rows] == 0) & (self.kkt_violation(a, f, b, rows) < -slack)

    def extend(self, store, a, f, b, kkt):
        """Add rows that violate the condition: "same", "more" rows held, or "full"."""
        outside = np.ones(self.n, dtype=bool)
        outside[store.rows] = False
        new = np.flatnonzero(outside & (self.kkt_violation(a, f, b) > 0.5 * kkt))
        if not len(new):
            return "same"
        if len(store.rows) + len(new) > self.limit:
            rows = self.active(a, f, b, 0.5 * kkt)
            if len(rows) > self.limit:
                return "full"
            store.exchange(rows)
        else:
            store.add(new)
        return "more"

    def advance(self, store, a, f, b, kkt):
        """Solve on from the residuals at hand; (b, status)."""
        part = isinstance(store, PartGram)
        if part and self.extend(store, a, f, b, kkt) == "full":
            return self.sweeps(store, a, f, b, kkt)
        return self.run(store, a, f, b, kkt)

    def finish(self, store, a, f, b, status):
        """Certify, and go on where the certificate asks for it."""
        monitor, kkt, stalled = self.monitor, self.kkt, 0
        while status not in _FAILED:
            self.balance(a)
            # A product in single precision would be enough to find violated rows, but
            # its error, 3e-3 at multipliers of 100, undoes multipliers that are right.
            f[:] = store.product(a) if self.whole else self.f_of(a)
            objective, gap, b = self.certify(a, f, b)
            violation, _ = self.max_violation(a, f, b)
            before = monitor.best
            if monitor.record(self.steps, objective, gap, (a.copy(), b), violation):
                return self.result(monitor.status)
            status = Status.MAX_ITER
            if self.steps >= self.max_iter:
                break
            best = monitor.best  # none while no point has a finite objective
            improved = best is not None and (
                before is None or monitor.rank(best) < 0.9 * monitor.rank(before)
            )
            stalled = 0 if improved else stalled + 1
            if stalled >= 8:
                status = Status.STALLED
                break
            if violation <= 2 * kkt:
                kkt = max(self.tightening(violation, objective, gap) * kkt, 1e-14)
            b, code = self.advance(store, a, f, b, kkt)
            if code in _FAILED:
                status = code
        if monitor.best is None:
            objective, gap, b = self.certify(a, self.f_of(a), b)
            violation, _ = self.max_violation(a, f, b)
            monitor.best = Certified((a, b), objective, gap, violation)
        return self.result(status)

    def tightening(self, violation, objective, gap):
        """Share of the optimality gap to ask for next."""
        if violation > self.kkt_asked:
            return 0.5  # single precision may not go much beyond what is asked
        if not np.isfinite(gap):
            return 0.1
        # Violations of many rows add up to a gap in proportion.
        return min(0.1, max(0.5 * self.tol / relative_gap(gap, objective), _LEAST))

    def result(self, status):
        """DualResult of the best point, with a status of the last."""
        best = self.monitor.best
        unfinished = status in (Status.MAX_ITER, Status.STALLED)
        if unfinished and not (self.p.potential.finite_loss or np.isfinite(best.gap)):
            status = Status.UNBOUNDED
        asked = self.kkt_asked if np.isfinite(self.kkt_asked) else None
        measures = {"kkt_violation": best.violation, "kkt_tol": asked}
        return self.monitor.result(self.steps, status, **measures)
