"""L-BFGS on the primal of linear multi-class machines with a smooth loss."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from maxent._optimize.certificate import certify, repair_equality
from maxent._support.results import DualResult, Monitor, Status
from maxent.discrimination.duals._multiclass_scores import best_certified


class _Enough(Exception):
    """The certificate holds, or the callback stops: leave the optimiser."""


def solve_primal(scores, constraints, flat, *, tol, max_iter, callback=None):
    """L-BFGS on the conjugate loss of a linear machine, until the certificate holds.

    Parameters and result as for :func:`solve_coordinate`; for dense features and priors
    with a smooth loss.
    """
    loss = _PrimalLoss(scores, constraints, flat)
    monitor, count = Monitor(tol, callback, solver="lbfgs"), 0

    def certify_at(x):
        lam, b = loss.multipliers(x)
        J, gap, b, _ = certify(constraints.rows, scores, lam, loss.E, b)
        if monitor.record(count, J, gap, (lam, b)):
            raise _Enough

    def step(x):
        nonlocal count
        count += 1
        if count % 20 == 0:
            certify_at(x)

    x = np.zeros(loss.size)
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
    lam, b = best.point
    return DualResult(
        lam,
        b,
        best.objective,
        best.gap,
        count,
        status,
        solver="lbfgs",
        history=monitor.history,
    )


class _PrimalLoss:
    """Conjugate loss and Gaussian penalty of class weights and biases, one vector.

    Parameters
    ----------
    scores : LinearScores
        With dense features.
    constraints : MulticlassRows
    flat : bool
    """

    def __init__(self, scores, constraints, flat):
        self.scores, self.c, self.rows = scores, constraints, constraints.rows
        self.E = constraints.incidence() if flat else None
        self.with_bias = flat or scores.variance > 0
        self.precision = 0.0 if flat or not scores.variance else 1.0 / scores.variance
        self.weights = constraints.m * scores.X.shape[1]
        self.size = self.weights + (constraints.m if self.with_bias else 0)

    def _split(self, x):
        W = x[: self.weights].reshape(self.c.m, -1)
        return W, x[self.weights :] if self.with_bias else np.zeros(self.c.m)

    def _loss(self, W, b):
        scores = self.scores.X @ W.T + b
        return self.rows.loss(self.rows.q - self.c.margins(scores))[:2]

    def __call__(self, x):
        """The primal objective and its gradient."""
        scores, (W, b) = self.scores, self._split(x)
        value, lam = self._loss(W, b)
        beta = self.c.beta(lam)
        squares = float(np.vdot(W, W)) + self.precision * float(b @ b)
        parts = [(W / scores.class_weight_variance - beta.T @ scores.X).reshape(-1)]
        if self.with_bias:
            parts.append(
                self.precision / scores.class_weight_variance * b - beta.sum(axis=0)
            )
        return value + 0.5 / scores.class_weight_variance * squares, np.concatenate(
            parts
        )

    def multipliers(self, x):
        """Balanced multipliers (None if they are far from it) and m - 1 biases."""
        W, b = self._split(x)
        lam = repair_equality(self._loss(W, b)[1], self.rows.upper, self.E)
        return lam, b[:-1] - b[-1]
