"""Coordinate ascent on the multipliers of a linear dual, dense or sparse.

Source: Hsieh, Chang, Lin, Keerthi & Sundararajan (2008), A dual coordinate descent
method for large-scale linear SVM.
"""

from __future__ import annotations

import numpy as np

from maxent._core.machines.coordinate import epoch_csr, epoch_dense
from maxent._optimize.certificate import repair_equality
from maxent._support.results import Certified, Monitor, Status
from maxent.discrimination.duals._proximal_bias import ProximalBias


def coordinate_ascent(linear, tol, max_iter, init, callback, seed):
    """DualResult of a LinearProblem, by epochs over its constraint rows."""
    epochs = _Epochs(linear, tol, init, seed)
    monitor = Monitor(tol, callback, solver="coordinate")
    status, n_iter, next_check = Status.MAX_ITER, 0, 0
    while n_iter < max_iter and status is Status.MAX_ITER:
        n_iter += 1
        if not epochs.run(n_iter):
            status = Status.NONFINITE
        elif n_iter >= next_check and (epochs.nearly_done() or n_iter % 25 == 0):
            status = epochs.check(n_iter, monitor)
            next_check = n_iter + 1 + n_iter // 10
    if monitor.best is None:
        return monitor.result(n_iter, status, epochs.certified())
    return monitor.result(n_iter, Status.CONVERGED if monitor.converged else status)


class _Epochs:
    """Multipliers, weights and bias, kept up to date by epochs over the rows.

    Rows are laid out in random order once; an epoch then visits short runs of them in a
    fresh random order: nearly random visits at the speed of streaming.
    """

    def __init__(self, linear, tol, init, seed):
        self.linear, self.tol = linear, tol
        self.rng = np.random.default_rng(seed)
        shuffle = self.rng.permutation(linear.X.shape[0])
        place = np.empty_like(shuffle)
        place[shuffle] = np.arange(len(shuffle))
        self.order = np.argsort(place[linear.index], kind="stable")
        self.place = place[linear.index[self.order]]
        self.rows = linear.rows.subset(self.order)
        self.sign = np.ascontiguousarray(linear.sign[self.order])
        norms = linear.squared_norms()[shuffle]
        self.bias = ProximalBias(1, linear.flat, linear.problem.bias_variance, norms)
        self.norm = norms[self.place] + self.bias.variance
        X = linear.X[shuffle]
        self._prepare(X)
        self._start(X, init)
        self.objective, self.total = 0.0, np.inf

    def _prepare(self, X):
        """Everything that the compiled epochs take besides the state."""
        if self.linear.sparse:
            kinds = {X.indices.dtype, X.indptr.dtype}
            if len(kinds) > 1 or kinds - {np.dtype(np.int32), np.dtype(np.int64)}:
                X.indices = X.indices.astype(np.int64)
                X.indptr = X.indptr.astype(np.int64)
            self.epoch, data = epoch_csr, (X.data, X.indices, X.indptr)
        else:
            self.epoch, data = epoch_dense, (X,)
        rows = self.rows
        self.constants = (
            rows.potential.core_spec,
            *data,
            rows.q,
            rows.rate,
            rows.weight,
            self.sign,
            self.norm,
            self.place,
        )

    def _start(self, X, init):
        """First multipliers, with the weights and the bias that belong to them."""
        n, d = len(self.sign), X.shape[1]
        self.lam, self.w = np.zeros(n), np.zeros(d)
        if init is not None:
            self.lam = np.ascontiguousarray(init[self.order])
        elif not self.rows.potential.finite_at_zero:
            self.lam = self.rows.start_inside()
            if self.linear.flat:
                self.lam = repair_equality(
                    self.lam, self.rows.upper, self.sign[:, None]
                )
        if self.lam.any():
            a = np.bincount(
                self.place, weights=self.sign * self.lam, minlength=X.shape[0]
            )
            self.w = np.asarray(X.T @ a).ravel()
            self.bias.add(a.sum())

    def run(self, n_iter):
        """One epoch; whether its numbers are finite."""
        # an estimate of the gap costs a logarithm a visit: not in every epoch
        look = n_iter % 3 == 1 or self.total <= self._allowed(10.0)
        total, _ = self.epoch(
            *self.constants,
            block_order(len(self.lam), self.rng),
            self.bias.variance,
            look,
            self.lam,
            self.w,
            self.bias.value,
        )
        self.bias.end_sweep(float(self.sign @ self.lam))
        if look:
            self.total = total
            # it moves little, and its logarithms cost a fifth of an epoch
            if n_iter <= 10 or total <= self._allowed(3.0):
                value = self.rows.value(self.lam)
                self.objective = value - 0.5 * float(self.w @ self.w)
        return np.isfinite(total) or not self.rows.potential.finite_loss

    def _allowed(self, times):
        return times * self.tol * (1 + abs(self.objective))

    def nearly_done(self):
        """True if the estimated gap is close to the tolerance."""
        return self.total <= self._allowed(2.0)

    def multipliers(self):
        """Multipliers in the order of the problem, balanced."""
        lam = np.empty(len(self.lam))
        lam[self.order] = self.lam
        return self.linear.repaired(lam)

    def certified(self):
        """Certificate of the multipliers, with (lam, bias, w) for its point."""
        lam = self.multipliers()
        J, gap, b, w, _ = self.linear.certify(lam, self.bias.value[0])
        return Certified((lam, b, w), J, gap)

    def check(self, n_iter, monitor):
        """Record the certificate; the status that follows."""
        found = self.certified()
        if monitor.record(n_iter, found.objective, found.gap, found.point):
            return monitor.status
        scale = min(1.0, self.norm.mean())
        if not np.isfinite(found.gap) and found.objective * scale > 1e12:
            return Status.UNBOUNDED
        if self.bias.flat:
            self.bias.value[0] = found.point[1]
        return Status.MAX_ITER


def block_order(n, rng, block=32):
    """Nearly random order of n visits: short runs, in random order."""
    if n <= 64 * block:
        return rng.permutation(n)
    blocks = rng.permutation(-(-n // block))
    order = (blocks[:, None] * block + np.arange(block)[None, :]).reshape(-1)
    return order[order < n]
