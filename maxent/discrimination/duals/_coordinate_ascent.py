"""Coordinate ascent on the multipliers of a linear dual, dense or sparse.

Source: Hsieh, Chang, Lin, Keerthi & Sundararajan (2008), A dual coordinate descent
method for large-scale linear SVM.
"""

from __future__ import annotations

import numpy as np

from maxent._core.machines.coordinate import epoch_csr, epoch_dense
from maxent._support.results import Certified, Monitor, Status
from maxent.discrimination.duals._proximal_bias import ProximalBias

_PARTIAL = 4  # epochs over the rows that move, between two over all
_WORTH = 0.9  # share of the rows, above which an epoch over all costs little more


def coordinate_ascent(linear, tol, max_iter, init, callback, seed):
    """DualResult of a LinearProblem, by epochs over its constraint rows."""
    epochs = _Epochs(linear, tol, init, seed)
    monitor = Monitor(tol, callback, solver="coordinate")
    status, n_iter, next_check = Status.MAX_ITER, 0, 0
    while n_iter < max_iter and status is Status.MAX_ITER:
        n_iter += 1
        if not epochs.run():
            status = Status.NONFINITE
        elif n_iter >= next_check and (epochs.nearly_done() or n_iter % 25 == 0):
            status = epochs.check(n_iter, monitor)
            next_check = n_iter + 1 + n_iter // 10
    if monitor.best is None:
        return monitor.result(n_iter, status, epochs.certified())
    return monitor.result(n_iter, Status.CONVERGED if monitor.converged else status)


class _Epochs:
    """Multipliers, weights and bias, kept up to date by epochs over the rows.

    Every epoch visits the rows in a new random order. Where neighbours stay together,
    as in runs of a few rows that lie side by side, the bias of the epoch before is met
    again by all of them, and what rows share takes three times as many epochs.

    An epoch over all rows is followed by a few over those that it moved: a multiplier
    that rests at an end of its domain mostly stays there.
    """

    def __init__(self, linear, tol, init, seed):
        self.linear, self.tol = linear, tol
        self.rng = np.random.default_rng(seed)
        self.rows = rows = linear.rows
        norms = linear.squared_norms()
        self.bias = ProximalBias(1, linear.flat, linear.problem.bias_variance, norms)
        self.norm = norms[linear.index] + self.bias.variance
        self.epoch, arrays = epoch_of(linear)
        self.constants = (
            rows.potential.core_spec,
            *arrays,
            rows.q,
            rows.rate,
            rows.weight,
            linear.sign,
            self.norm,
            linear.index,
        )
        self._start(init)
        self.moving, self.left, self.full = None, 0, 0
        self.objective, self.total = 0.0, np.inf

    def _start(self, init):
        """First multipliers, with the weights and the bias that belong to them."""
        linear, rows = self.linear, self.rows
        self.lam, self.w = np.zeros(len(rows.q)), np.zeros(linear.X.shape[1])
        if init is not None:
            self.lam = init.copy()
        elif not rows.potential.finite_at_zero:
            self.lam = linear.repaired(rows.start_inside())
        if self.lam.any():
            self.w = linear.weights_of(self.lam)
            self.bias.add(float(linear.sign @ self.lam))

    def run(self):
        """Make an epoch; return True if its numbers are finite."""
        order, look = self.moving, False
        if not self.left:
            # An estimate of the gap costs a logarithm a visit: not in every epoch.
            look = self.full % 3 == 0 or self.total <= self._allowed(10.0)
            self.full += 1
            order = len(self.lam)
        before = self.lam.copy()
        total, _ = self.epoch(
            *self.constants,
            self.rng.permutation(order),
            self.bias.variance,
            look,
            self.lam,
            self.w,
            self.bias.value,
        )
        self._choose(before)
        self.bias.end_sweep(float(self.linear.sign @ self.lam))
        if look:
            self.total = total
            # The bias moves little, and its logarithms cost a fifth of an epoch.
            if self.full <= 10 or total <= self._allowed(3.0):
                value = self.rows.value(self.lam)
                self.objective = value - 0.5 * float(self.w @ self.w)
        return np.isfinite(total) or not self.rows.potential.finite_loss

    def _choose(self, before):
        """Choose the rows of the next epoch, by those that this one has moved."""
        self.left = self.left - 1 if self.left else _PARTIAL
        self.moving = np.flatnonzero(self.lam != before)
        if not 0 < len(self.moving) <= _WORTH * len(self.lam):
            self.left = 0

    def _allowed(self, times):
        return times * self.tol * (1 + abs(self.objective))

    def nearly_done(self):
        """True if the estimated gap is close to the tolerance."""
        return self.total <= self._allowed(2.0)

    def certified(self):
        """Certificate of the multipliers, with (lam, bias, w) for its point."""
        lam = self.linear.repaired(self.lam.copy())
        J, gap, b, w, _ = self.linear.certify(lam, self.bias.value[0])
        return Certified((lam, b, w), J, gap)

    def check(self, n_iter, monitor):
        """Record the certificate; the status that follows."""
        certified = self.certified()
        if monitor.record(n_iter, certified.objective, certified.gap, certified.point):
            return monitor.status
        scale = min(1.0, self.norm.mean())
        if not np.isfinite(certified.gap) and certified.objective * scale > 1e12:
            return Status.UNBOUNDED
        if self.bias.flat:
            self.bias.value[0] = certified.point[1]
        return Status.MAX_ITER


def epoch_of(linear):
    """Compiled epoch for the features of a LinearProblem, and the arrays of these."""
    X = linear.X
    if not linear.sparse:
        return epoch_dense, (X,)
    kind = np.int32 if X.indices.dtype == X.indptr.dtype == np.int32 else np.int64
    ends = X.indptr.astype(kind, copy=False)
    return epoch_csr, (X.data, X.indices.astype(kind, copy=False), ends)
