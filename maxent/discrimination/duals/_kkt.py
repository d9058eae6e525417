"""Violations of the KKT condition by the rows of a signed problem, and working sets.

The one-sided derivatives of the objective in a row's signed multiplier bound the bias
at which the row is optimal; rows that carry a multiplier, or violate their bounds or
nearly do, are active.
"""

from __future__ import annotations

import numpy as np

from maxent._core.machines import signed_rows
from maxent._core.machines.smo import least_share
from maxent._optimize.rows import BOTH, NEGATIVE, Rows


class ActiveRows:
    """Multipliers a, decision values f and the bias b of a SignedProblem.

    Parameters
    ----------
    problem : SignedProblem
    limit : int
        Rows whose kernel matrix fits in memory.
    """

    def __init__(self, problem, limit):
        self.p, self.limit = problem, limit
        self.n = len(problem.level)
        self.flat = problem.bias == "flat"
        self.least = least_share(problem.potential.core_spec)

    # -- feasible multipliers ------------------------------------------------------
    def start(self, init):
        """Feasible multipliers to start from."""
        p = self.p
        a = np.zeros(self.n) if init is None else np.array(init, dtype=np.float64)
        if not p.potential.finite_at_zero and not (p.sides == BOTH).any():
            least = p.potential.start_inside(p.weight * p.rate)
            a = np.where(p.sides == NEGATIVE, -1.0, 1.0) * np.maximum(np.abs(a), least)
        if self.flat and a.any():
            total_up, total_low = a[a > 0].sum(), -a[a < 0].sum()
            if total_up > 0 and total_low > 0:
                target = min(total_up, total_low)
                a[a > 0] *= target / total_up
                a[a < 0] *= target / total_low
            else:
                a[:] = 0.0
        return a

    def balance(self, a):
        """Remove the rounding errors of sum a = 0 and of multipliers at their caps."""
        p = self.p
        if self.flat:
            signed_rows.balance(a, p.potential.upper, p.rate, p.weight)
        if p.potential.closed and np.isfinite(p.potential.upper):
            top = p.potential.upper * p.weight * p.rate
            np.clip(a, -top, top, out=a)

    def settled(self, a, f, b, violation, most):
        """Multipliers, those moved to a bound that are near it and drawn to it.

        An interior point leaves them within rounding of the bound. The gap hardly
        counts them, but they violate the optimality condition.

        Parameters
        ----------
        a, f : ndarray (n,)
        b : float
        violation : float
            Of the condition, by rows that are moved.
        most : float
            Bound on the sum of all moves; the nearest rows come first.
        """
        p, size = self.p, np.abs(a)
        if not p.potential.finite_at_zero:
            return a
        up, low = self.kkt_bounds(a, f, b)
        rise = np.where(a > 0, up, -low)  # derivative in the size
        bound = np.where(rise < -violation, 0.0, size)
        if p.potential.closed and np.isfinite(p.potential.upper):
            top = p.potential.upper * p.weight * p.rate
            bound = np.where((a != 0) & (rise > violation), top, bound)
        distance = np.abs(bound - size)
        order = np.argsort(distance, kind="stable")
        moved = order[np.cumsum(distance[order]) <= most]
        settled = a.copy()
        settled[moved] = np.copysign(bound, a)[moved]
        self.balance(settled)
        return settled

    # -- KKT condition -------------------------------------------------------------
    def kkt_bounds(self, a, f, b, rows=slice(None)):
        """(up, low): one-sided derivatives of rows at decision values f + b."""
        p = self.p
        a, f = a[rows], f[rows]
        up, low = np.empty_like(a), np.empty_like(a)
        signed_rows.kkt_bounds(
            p.potential.core_spec,
            a,
            f,
            b,
            p.target[rows],
            p.level[rows],
            p.rate[rows],
            p.weight[rows],
            p.sides[rows],
            self.least,
            up,
            low,
        )
        return up, low

    def kkt_violation(self, a, f, b, rows=slice(None)):
        """Violation of the KKT condition by each row (> 0), or its slack (< 0)."""
        up, low = self.kkt_bounds(a, f, b, rows)
        return np.maximum(up, -low)

    def scale(self, a, f, b):
        """A length in margin units: how far the rows are apart at the start."""
        up, low = self.kkt_bounds(a, f, b)
        values = np.concatenate([up[np.isfinite(up)], low[np.isfinite(low)]])
        half = 0.5 * float(values.max() - values.min())
        typical = 2.0 * float(np.median(np.abs(values - np.median(values))))
        return min(half, typical) if typical > 0 else half

    def spread(self, size):
        """Rows spread evenly over each kind, so that any order of rows will do."""
        kind = np.lexsort((np.arange(self.n), self.p.target, self.p.sides))
        return np.unique(kind[np.linspace(0, self.n - 1, size).astype(np.intp)])

    def active(self, a, f, b, slack, rows=None):
        """Rows that carry a multiplier or violate the condition up to a slack.

        Of all rows, or of some.
        """
        some = slice(None) if rows is None else rows
        violates = self.kkt_violation(a, f, b, some) > -slack
        places = np.flatnonzero((a[some] != 0) | violates)
        return places if rows is None else rows[places]

    def working_set(self, a, f, b, slack):
        """Active rows, the largest violations if memory is short."""
        rows = self.active(a, f, b, slack)
        if len(rows) > self.limit:
            violation = np.where(
                a[rows] != 0, np.inf, self.kkt_violation(a, f, b, rows)
            )
            worst = np.argpartition(-violation, self.limit - 1)[: self.limit]
            rows = np.sort(rows[worst])
        return rows

    def worst(self, a, f, b, rows, size):
        """Rows to solve for next, ascending: the worst violators among some.

        As many as fit in memory are rows of low curvature in the first place, which
        answer to all others, and violators in the second.
        """
        violation = self.kkt_violation(a, f, b, rows)
        core = np.zeros(0, dtype=np.intp)
        if size == self.limit:
            p = self.p
            unit = Rows(p.potential, p.level[rows], p.rate[rows], p.weight[rows])
            shrunk = (a[rows] == 0) & (violation <= 0)
            curvature = np.where(shrunk, np.inf, unit.curvature(np.abs(a[rows])))
            core = np.argsort(curvature, kind="stable")[: 3 * size // 4]
            violation[core] = -np.inf
        rest = np.argsort(-violation, kind="stable")[: size - len(core)]
        return np.sort(rows[np.concatenate([core, rest])])

    def max_violation(self, a, f, b, rows=slice(None)):
        """Largest violation by a pair of rows, and the bias in the middle of it."""
        up, low = self.kkt_bounds(a, f, b, rows)
        highest, lowest = float(up.max()), float(low.min())
        return highest - lowest, 0.5 * (highest + lowest)
