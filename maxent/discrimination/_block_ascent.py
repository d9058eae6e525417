"""The dual over blocks by a quasi-Newton method in the box of the multipliers.

The interior point of :mod:`.block_dual` needs the Hessian of every block, which for
distributions over trees costs a hundred evaluations of the objective and its gradient.
Limited-memory BFGS needs about fifty evaluations in all, and leaves multipliers that
are not needed at exactly zero. Its stop is the same certificate.

A flat bias asks for E' lam = 0, which an augmented Lagrangian meets:

    maximise  J(lam) - b' E' lam - rho |E' lam|^2 / 2,   then  b <- b + rho E' lam

Source: Jaakkola, Meila & Jebara (1999), Theorem 1. Byrd, Lu, Nocedal & Zhu (1995), A
limited memory algorithm for bound constrained optimization. Nocedal & Wright (2006),
Numerical optimization, section 17.3.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from maxent._support.results import DualResult, Status, relative_gap
from maxent._support.threads import single_threaded_blas
from maxent.discrimination._block_sum import BlockSum
from maxent.discrimination.block_dual import (
    check_blocks,
    check_incidence,
    prefer_zero,
    solve_blocks,
)
from maxent.discrimination.certificate import Rows, certify, repair_equality

# entropies have infinite slopes at zero, fixed margins no finite loss
_SMOOTH = ("exponential", "erlang", "laplace", "gaussian", "hinge")
_PAIRS = 30  # of differences that stand for the Hessian
_ROUNDS = 30  # of the augmented Lagrangian
_PATIENCE = 300  # evaluations, where the interior point could take over
_FEW = 2000  # constraints, and columns of a Hessian's factor, for which it could


class _Enough(Exception):
    """The certificate is as good as asked, or the evaluations are used up."""


def ascend_blocks(
    blocks,
    maps,
    margin,
    *,
    bias=None,
    incidence=None,
    sample_weight,
    level,
    tol,
    max_iter,
    callback=None,
):
    """Solve the dual; :func:`solve_blocks` steps in where this does not get there.

    Parameters, result and errors are those of :func:`solve_blocks`, with weights and
    levels checked already; `max_iter` bounds the evaluations of the objective.
    """

    def interior(init=None):
        return solve_blocks(
            blocks,
            maps,
            margin,
            bias=bias,
            incidence=incidence,
            sample_weight=sample_weight,
            level=level,
            tol=tol,
            max_iter=max_iter,
            init=init,
            callback=callback,
        )

    if margin.name not in _SMOOTH:
        return interior()
    rate = np.full(len(level), margin.rate)
    rows = Rows(margin, np.asarray(level), rate, np.asarray(sample_weight))
    E = None if bias is None else check_incidence(incidence, len(level))
    with single_threaded_blas():
        ascent = _Ascent(blocks, check_blocks(blocks, maps)[1], rows, E, bias, tol)
        few = max(len(level), *(block.rank for block in blocks)) <= _FEW
        result = ascent.run(min(max_iter, _PATIENCE if few else max_iter), callback)
    if few and not result.converged and result.n_iter < max_iter:
        other = interior(result.lam)
        other.n_iter += result.n_iter
        other.history = [*result.history, *other.history]
        return other
    return result


class _Ascent:
    def __init__(self, blocks, maps, rows, E, bias, tol):
        self.rows, self.tol = rows, tol
        self.flat = bias == "flat"
        self.variance = None if E is None or self.flat else bias
        # the square of the augmented Lagrangian is a Gaussian bias of this variance
        self.rho = 1.0 if self.flat else self.variance
        self.R = BlockSum(list(blocks), maps)
        self.E, self.b = E, None if E is None else np.zeros(E.shape[1])
        closed = rows.margin._closed
        self.top = rows.upper if closed else (1.0 - 1e-12) * rows.upper
        self.best = None
        self.history = []
        self.calls = 0
        self.inside = (np.zeros(len(rows.q)), 0.0, -rows.q)  # point, value, slope

    def run(self, max_iter, callback):
        self.max_iter, self.callback = max_iter, callback
        lam = np.zeros(len(self.rows.q))
        status = Status.STALLED
        accuracy, lack = (1e-2 if self.flat else 0.0), np.inf
        try:
            for _ in range(_ROUNDS if self.flat else 1):
                lam = np.clip(self._climb(lam, accuracy), 0.0, self.top)
                if self.flat:
                    before, lack = lack, float(np.abs(self.E.T @ lam).max())
                    self.b = self.b + self.rho * (self.E.T @ lam)
                    self._certify(lam)
                    if lack > 0.1 * before:  # few rows tell the bias what to do
                        self.rho *= 10.0
                    accuracy = max(0.03 * accuracy, 1e-3 * self.tol)
        except _Enough:
            pass
        # several biases, multipliers far from balance, or balanced out of the domain
        if self.best is None or not np.isfinite(self.best[2]):
            lam = np.zeros(len(self.rows.q))
            certified = certify(self.rows, self.R, lam, self.E, self.b)
            self.best = (lam, *certified)
        lam, J, gap, b, _ = self.best
        result = DualResult(
            lam, b, J, gap, self.calls, status, "ascent", history=self.history
        )
        if relative_gap(gap, J) <= self.tol:
            result.status = Status.CONVERGED
        elif self.calls >= max_iter:
            result.status = Status.MAX_ITER
        if result.objective <= self.tol:
            prefer_zero(
                result, self.rows, self.R, self.E if self.flat else None, self.tol
            )
        if self.variance is not None:
            result.bias = self.variance * (self.E.T @ result.lam)
        return result

    def _climb(self, lam, accuracy):
        """Multipliers with projected gradients below a share of the levels."""
        slack = accuracy * max(1.0, float(np.abs(self.rows.q).max(initial=0.0)))
        found = minimize(
            self._descend,
            lam,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, top) for top in self.top],
            options={
                "maxcor": _PAIRS,
                "maxiter": 10**6,
                "maxfun": 10**6,
                "ftol": 0.0,
                "gtol": slack,
            },
        )
        return found.x

    def _descend(self, lam):
        """Minus the (augmented) objective and its gradient."""
        if self.calls >= self.max_iter:
            if self.flat:
                self._certify(self.inside[0])
            raise _Enough
        self.calls += 1
        lam = np.clip(lam, 0.0, self.top)  # line searches round
        value, margins = self.R.value_and_margins(lam)
        if not value < np.inf:
            return self._outside(lam)
        rows, bias = self.rows, 0.0
        if self.E is not None:
            total = self.E.T @ lam
            value += 0.5 * self.rho * float(total @ total)
            bias = self.E @ (self.rho * total)
        d = rows.q - margins - (bias if self.variance is not None else 0.0)
        slope = rows.q - margins - bias + rows.slope(lam)
        J = rows.potential(lam) - value
        if self.flat:
            slope = slope - self.E @ self.b
            J = J - float(self.b @ total)
        self.inside = (lam.copy(), -J, -slope)
        self._note(lam, d, J)
        return -J, -slope

    def _outside(self, lam):
        """A rise that sends the line search about half the way back."""
        start, value, slope = self.inside
        step = lam - start
        length = float(step @ step)
        if not length > 1e-32 * (
            1.0 + float(lam @ lam)
        ):  # at the boundary to the last digit
            if self.flat:
                self._certify(start)
            raise _Enough
        rise = abs(float(slope @ step)) + 1e-8 * (1.0 + abs(value))
        return value + rise, 2.0 * rise / length * step

    def _note(self, lam, d, J):
        """Keep the point if it is the best so far; stop if it is good enough."""
        if self.flat:
            # cheap look: what is left but for the balance of the multipliers
            gap = self.rows.gap(lam, d - self.E @ self.b)
            if relative_gap(gap, J) <= 0.5 * self.tol:
                self._certify(lam)
            return
        gap = self.rows.gap(lam, d)
        self.history.append((self.calls, J, gap))
        if self.callback is not None:
            self.callback(self.calls, J, gap)
        if self.best is None or gap < self.best[2]:
            self.best = (lam.copy(), J, gap, None, d)
        if relative_gap(gap, J) <= self.tol:
            raise _Enough

    def _certify(self, lam):
        """Certificate of a flat bias at balanced multipliers."""
        balanced = repair_equality(lam, self.rows.upper, self.E)
        J, gap, b, d = certify(self.rows, self.R, balanced, self.E, self.b)
        self.history.append((self.calls, J, gap))
        if self.callback is not None:
            self.callback(self.calls, J, gap)
        if balanced is not None and (self.best is None or gap < self.best[2]):
            self.best = (balanced, J, gap, b, d)
        if relative_gap(gap, J) <= self.tol:
            raise _Enough
