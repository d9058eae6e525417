"""The primal of linear multi-class machines: Newton's method and L-BFGS.

The losses are smooth, or hinges whose corner is rounded.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from scipy.optimize import minimize

from maxent._optimize.certificate import certify, repair_equality
from maxent._support.linalg import row_chunks
from maxent._support.results import Certified, Monitor, Status
from maxent.discrimination.duals._multiclass_scores import best_certified
from maxent.discrimination.duals._primal_newton import NewtonRun, newton_ascent
from maxent.discrimination.duals._rounded_hinges import (
    WIDEST,
    RoundedHinge,
    solve_by_rounded_hinges,
)

_CLOSE = 1e-9
_PATIENCE = 100  # short steps are still faster than those of L-BFGS


class _Enough(Exception):
    """The certificate holds, or the callback stops: leave the optimiser."""


def solve_by_newton(
    scores, constraints, flat, *, tol, max_iter, callback=None, start=None
):
    """Newton's method on the conjugate loss of a linear machine with few columns.

    Parameters and result as for :func:`solve_coordinate`; for dense features. It begins
    with the machine of the result `start`.
    """
    loss = _PrimalLoss(scores, constraints, flat)
    run = NewtonRun(loss, loss.point_of(start), patience=_PATIENCE)
    if loss.rounding:
        return solve_by_rounded_hinges(loss, run, tol, max_iter, callback, _CLOSE)
    return newton_ascent(loss, run, tol, max_iter, callback)


def solve_by_lbfgs(
    scores, constraints, flat, *, tol, max_iter, callback=None, start=None
):
    """L-BFGS on the conjugate loss of a linear machine, until the certificate holds.

    Parameters and result as for :func:`solve_by_newton`; for smooth losses.
    """
    loss = _PrimalLoss(scores, constraints, flat)
    monitor, count = Monitor(tol, callback, solver="lbfgs"), 0

    def certify_at(x):
        found = loss.certified(x, loss.loss_pass(x)[1])
        if monitor.record(count, found.objective, found.gap, found.point):
            raise _Enough

    def step(x):
        nonlocal count
        count += 1
        if count % 20 == 0:
            certify_at(x)

    x = loss.point_of(start)
    options = {"maxfun": 100 * max_iter, "maxcor": 30, "ftol": 0.0, "gtol": 1e-10}
    try:
        for _ in range(3):  # fresh curvature pairs help near the optimum
            options["maxiter"] = max(max_iter - count, 1)
            x = minimize(
                loss, x, jac=True, method="L-BFGS-B", callback=step, options=options
            ).x
            certify_at(x)
        status = Status.MAX_ITER if count >= max_iter else Status.STALLED
    except _Enough:
        status = monitor.status
    best = best_certified(monitor, loss.rows, scores, loss.E)
    return monitor.result(count, status, best)


class _PrimalLoss:
    """Conjugate loss of class weights and biases, as :class:`NewtonRun` takes it.

    A point has the weights of every class with its bias behind them, m (d + 1) numbers.

    Parameters
    ----------
    scores : LinearScores
        With dense features.
    constraints : MulticlassRows
    flat : bool

    Attributes
    ----------
    size : int
    precision : ndarray (size,)
        Inverse prior variances, infinite for a bias that is zero: all of them where
        there is none, the last where the prior is flat.
    rounding : float
        Width of the rounded corner of hinges, 0 for smooth losses.
    """

    def __init__(self, scores, constraints, flat):
        self.scores, self.c, self.rows = scores, constraints, constraints.rows
        self.rounding = 0.0 if self.rows.potential.smooth else WIDEST
        self.E = constraints.sparse_incidence() if flat else None
        self.shape = constraints.m, scores.X.shape[1] + 1
        self.size = self.shape[0] * self.shape[1]
        precision = np.full(self.shape, 1.0 / scores.class_weight_variance)
        if flat:
            precision[:-1, -1], precision[-1, -1] = 0.0, np.inf
        elif scores.variance:
            precision[:, -1] /= scores.variance
        else:
            precision[:, -1] = np.inf
        self.precision = precision.reshape(-1)
        self.free = np.isfinite(self.precision)
        self.penalty = np.where(self.free, self.precision, 0.0)

    def point_of(self, start):
        """Weights and biases of a result, zeros of None."""
        x, scores = np.zeros(self.shape), self.scores
        if start is not None:
            beta = scores.class_weight_variance * self.c.beta(start.lam)
            x[:, :-1] = beta.T @ scores.X
            if self.E is None:
                x[:, -1] = scores.variance * beta.sum(axis=0)
            else:
                x[:-1, -1] = start.bias
        return x.reshape(-1)

    def __call__(self, x):
        """The primal objective and its gradient."""
        value, _, gradient, _ = self.loss_pass(x)
        total = value + 0.5 * float(self.penalty @ x**2)
        return total, np.where(self.free, gradient + self.penalty * x, 0.0)

    @property
    def _asked(self):
        """The rows whose losses are minimised."""
        if not self.rounding:
            return self.rows
        return replace(self.rows, potential=RoundedHinge(self.rounding))

    def loss_pass(self, x, hessian=False):
        """Loss, multipliers, gradient, and the Hessian or None, without penalties."""
        W, X = x.reshape(self.shape), self.scores.X
        scores = X @ W[:, :-1].T + W[:, -1]
        value, lam, curvature = self._asked.loss(self.rows.q - self.c.margins(scores))
        beta = self.c.beta(lam)
        gradient = np.empty(self.shape)
        gradient[:, :-1] = -beta.T @ X
        gradient[:, -1] = -beta.sum(axis=0)
        H = self._hessian(curvature) if hessian else None
        return value, lam, gradient.reshape(-1), H

    @cached_property
    def _by_class(self):
        """For every class its rows, and their features and a one, single precision."""
        X, groups = self.scores.X, []
        for k in range(self.c.m):
            rows = np.flatnonzero(self.c.codes == k)
            Z = np.ones((len(rows), self.shape[1]), dtype=np.float32)
            Z[:, :-1] = X[rows]
            groups.append((rows, Z))
        return groups

    def _hessian(self, curvature):
        """Sum over the constraints (t, j) of c_tj (e_y - e_j)(e_y - e_j)' x x_t x_t'.

        The products of rows of class k, weighted by their curvature against class l,
        are added to the blocks of k and of l and taken from the two between them.
        """
        m, D = self.shape
        H = np.zeros((m, D, m, D))
        own = np.einsum("kikj->kij", H)
        curvature = curvature.reshape(self.c.n, m - 1).astype(np.float32)
        for k, (rows, Z) in enumerate(self._by_class):
            others = np.insert(curvature[rows], k, 0.0, axis=1)
            G = np.zeros((D, m, D))
            for part in row_chunks(len(rows), m * D):
                weighted = others[part, :, None] * Z[part, None, :]
                G += (Z[part].T @ weighted.reshape(len(weighted), -1)).reshape(G.shape)
            H[k] -= G
            H[:, :, k] -= G.transpose(1, 0, 2)
            own += G.transpose(1, 0, 2)
            own[k] += G.sum(axis=1)
        return H.reshape(self.size, self.size)

    def certified(self, x, lam):
        """Certificate of the multipliers of a pass, balanced for a flat bias.

        Those too far from balance are replaced by zeros.
        """
        W = x.reshape(self.shape)
        lam = repair_equality(lam, self.rows.upper, self.E)
        if lam is None:
            lam = np.zeros(len(self.rows.q))
        guess = W[:-1, -1] - W[-1, -1]
        J, gap, b, _ = certify(self.rows, self.scores, lam, self.E, guess)
        return Certified((lam, b, None), J, gap)
