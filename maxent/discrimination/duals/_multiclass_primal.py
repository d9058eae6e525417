"""The primal of linear multi-class machines, by Newton's method.

The losses are smooth, or hinges whose corner is rounded.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from maxent._optimize.certificate import certify, repair_equality
from maxent._support.linalg import row_chunks
from maxent._support.results import Certified
from maxent.discrimination.duals._primal_newton import (
    NewtonRun,
    TruncatedRun,
    newton_ascent,
)
from maxent.discrimination.duals._rounded_hinges import (
    WIDEST,
    RoundedHinge,
    solve_by_rounded_hinges,
)
from maxent.discrimination.duals.class_pairs import CLASS_WEIGHT_VARIANCE

_CLOSE = 1e-9  # share of the gap that is left when a corner is made narrower
_PATIENCE = 100  # short steps in a row, which sharp losses take
_PRODUCTS = 100  # with the Hessian, that take about as long as its factor


def solve_by_newton(
    scores, constraints, flat, *, tol, max_iter, callback=None, start=None
):
    """Newton's method on the conjugate loss of a linear machine.

    Directions are those of a factor of the Hessian for few columns and for hinges, else
    of conjugate gradients. Parameters and result as for :func:`solve_coordinate`; for
    dense features. It begins with the machine of the result `start`.
    """
    loss = PrimalLoss(scores, constraints, flat)
    x = loss.point_of(start)
    if loss.rounding or has_cheap_factor(loss.size, constraints.n):
        run = NewtonRun(loss, x, patience=_PATIENCE)
    else:
        run = TruncatedRun(loss, x)
    if loss.rounding:
        return solve_by_rounded_hinges(loss, run, tol, max_iter, callback, _CLOSE)
    return newton_ascent(loss, run, tol, max_iter, callback)


def has_cheap_factor(size, n):
    """True if the Hessian's factor is as fast as the products that take its place."""
    return size**2 <= _PRODUCTS * n


class PrimalLoss:
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
    curvature : ndarray
        Of the losses of all constraints at the last curved pass.
    """

    def __init__(self, scores, constraints, flat):
        self.scores, self.c, self.rows = scores, constraints, constraints.rows
        self.rounding = 0.0 if self.rows.potential.smooth else WIDEST
        self.E = constraints.sparse_incidence() if flat else None
        self.shape = constraints.m, scores.X.shape[1] + 1
        self.size = self.shape[0] * self.shape[1]
        self.precision = class_precision(self.shape, flat, scores.variance)

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

    @property
    def _asked(self):
        """The rows whose losses are minimised."""
        if not self.rounding:
            return self.rows
        return replace(self.rows, potential=RoundedHinge(self.rounding))

    def loss_pass(self, x, hessian=False):
        """Loss, multipliers, gradient, and the Hessian or None, without penalties."""
        value, lam, curvature = self._asked.loss(self.rows.q - self._margins(x))
        H = self._hessian(curvature) if hessian else None
        return value, lam, -self.spread(lam), H

    def curved_pass(self, x):
        """Loss, multipliers, gradient, and the diagonal of the Hessian.

        The curvatures are kept for products.
        """
        value, lam, self.curvature = self._asked.loss(self.rows.q - self._margins(x))
        weights, diagonal = np.abs(self.c.beta(self.curvature)), np.empty(self.shape)
        diagonal[:, :-1] = weights.T @ self._squares
        diagonal[:, -1] = weights.sum(axis=0)
        return value, lam, -self.spread(lam), diagonal.reshape(-1)

    def hessian_product(self, x):
        """The Hessian of the losses at the last curved pass, times x (size,)."""
        return self.spread(self.curvature * self._margins(x))

    def multipliers(self, x):
        """The multipliers that the losses ask for at x, and the margins' shortfalls."""
        d = self.rows.q - self._margins(x)
        return self._asked.losses(d)[1], d

    def _margins(self, x):
        W = x.reshape(self.shape)
        return self.c.margins(self.scores.X @ W[:, :-1].T + W[:, -1])

    def spread(self, lam):
        """Weights and biases of multipliers: the transpose of the margins' map."""
        beta, out = self.c.beta(lam), np.empty(self.shape)
        out[:, :-1] = beta.T @ self.scores.X
        out[:, -1] = beta.sum(axis=0)
        return out.reshape(-1)

    @cached_property
    def _squares(self):
        X = self.scores.X
        return X.power(2) if self.scores.sparse else X**2

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
        diagonal = np.einsum("kikj->kij", H)
        curvature = curvature.reshape(self.c.n, m - 1).astype(np.float32)
        for k, (rows, Z) in enumerate(self._by_class):
            others = np.insert(curvature[rows], k, 0.0, axis=1)
            G = np.zeros((D, m, D))
            for part in row_chunks(len(rows), m * D):
                weighted = others[part, :, None] * Z[part, None, :]
                G += (Z[part].T @ weighted.reshape(len(weighted), -1)).reshape(G.shape)
            H[k] -= G
            H[:, :, k] -= G.transpose(1, 0, 2)
            diagonal += G.transpose(1, 0, 2)
            diagonal[k] += G.sum(axis=1)
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


def class_precision(shape, flat, bias_variance):
    """Inverse prior variances of class weights and biases, infinite for a bias of zero.

    Parameters
    ----------
    shape : (m, d + 1)
    flat : bool
    bias_variance : float
        Variance of the bias of each class over that of its weights, 0 for none.
    """
    precision = np.full(shape, 1.0 / CLASS_WEIGHT_VARIANCE)
    if flat:
        precision[:-1, -1], precision[-1, -1] = 0.0, np.inf
    elif bias_variance:
        precision[:, -1] /= bias_variance
    else:
        precision[:, -1] = np.inf
    return precision.reshape(-1)
