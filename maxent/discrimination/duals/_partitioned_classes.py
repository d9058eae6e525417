"""Joint machines of several classes whose rows lie in partitions.

A point has the weights of every class with its bias behind them; see
:mod:`maxent.discrimination.duals.multiclass_dual` for the problem.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from maxent._partitions.partition_checks import rows_of_weight
from maxent._support.linalg import small_solve
from maxent.discrimination.duals._multiclass_primal import (
    PrimalLoss,
    class_precision,
)
from maxent.discrimination.duals._multiclass_scores import LinearScores
from maxent.discrimination.duals._partitioned_linear import PartRows, room_of
from maxent.discrimination.duals._primal_newton import approximate_minimum
from maxent.discrimination.duals.class_pairs import (
    CLASS_WEIGHT_VARIANCE,
    MulticlassRows,
)


@dataclass(frozen=True)
class PartClassRows(PartRows):
    """Settings with which a partition makes the constraints of several classes.

    Attributes are those of :class:`PartRows`, with `factor` and `classes` (m,).
    """

    def precision(self, parts):
        """Inverse prior variances (m (d + 1),)."""
        shape = len(self.classes), self.width(parts) + 1
        return class_precision(shape, self.bias == "flat", self.bias_variance)

    def correction(self, balance):
        """A number for every class but the last, or None without a flat bias.

        Moves of multipliers by it meet the equalities of the biases. NaN where they
        are missed by so much that a multiplier might leave its domain.
        """
        if self.bias != "flat":
            return None
        lack, S = balance
        scale = np.sqrt(np.maximum(S.diagonal(), np.finfo(float).tiny))
        pull = small_solve(S / np.outer(scale, scale), lack / scale) / scale
        # no room is larger than the root of the sum of squares of its class
        most = 2.0 * np.abs(pull).max() * scale.max()
        return pull if most <= 0.5 else np.full_like(pull, np.nan)

    def problem(self, X, y, weight):
        """PrimalLoss of the rows of a partition that have weight."""
        X, y, weight = rows_of_weight(X, y, weight)
        if self.features is not None:
            X = self.features(X)
        codes = np.searchsorted(self.classes, y)
        weight = weight * np.asarray(self.factor)[codes]
        constraints = MulticlassRows(codes, len(self.classes), self.margin, weight)
        variance = CLASS_WEIGHT_VARIANCE, self.bias_variance
        scores = LinearScores(X, constraints, *variance)
        loss = PrimalLoss(scores, constraints, self.bias == "flat")
        loss.rounding = self.rounding
        return loss

    def start(self, sample, direct):
        """Weights and biases of a machine trained on a sample of the rows."""
        loss = self.problem(*sample)
        return approximate_minimum(loss, direct)

    def point(self, x):
        """Multipliers, which stay in the partitions, biases and weights."""
        W = x.reshape(len(self.classes), -1)
        b = W[:, -1] - (W[:, -1].mean() if self.bias == "flat" else 0.0)
        return np.empty(0), b, W[:, :-1].copy()

    # -- sums over the rows of a partition ---------------------------------------------
    def loss_sums(self, X, y, weight, x, hessian):
        """Loss, gradient, Hessian or None, and the balance of the multipliers."""
        loss = self.problem(X, y, weight)
        value, lam, gradient, H = loss.loss_pass(x, hessian)
        return value, gradient, H, *self._balance(loss, lam)

    def curved_sums(self, X, y, weight, x):
        """Curvatures; and loss, gradient, diagonal of the Hessian, balance."""
        loss = self.problem(X, y, weight)
        value, lam, gradient, diagonal = loss.curved_pass(x)
        balance = self._balance(loss, lam)
        return loss.curvature, (value, gradient, diagonal, *balance)

    def product(self, X, y, weight, curvature, x):
        """The Hessian with these curvatures, times x."""
        loss = self.problem(X, y, weight)
        loss.curvature = curvature
        return loss.hessian_product(x)

    def certificate_sums(self, X, y, weight, x, correction):
        """Potentials, Fenchel-Young terms, weights and biases of the multipliers."""
        loss = self.problem(X, y, weight)
        lam, d = loss.multipliers(x)
        if correction is not None:
            lam = _moved(loss, lam, correction)
        return loss.rows.value(lam), loss.rows.gap(lam, d), loss.spread(lam)

    def _balance(self, loss, lam):
        """Sums that :meth:`correction` takes: what is missed, squares of room."""
        if self.bias != "flat":
            return ()
        E, squares = loss.E, room_of(lam, loss.rows.upper) ** 2
        products = E.T @ sp.diags_array(squares) @ E
        return np.asarray(E.T @ lam), products.toarray()


def _moved(loss, lam, correction):
    """Multipliers with the correction; zeros where it is out of reach."""
    if np.isnan(correction).any():
        return np.zeros_like(lam)
    return lam - room_of(lam, loss.rows.upper) ** 2 * (loss.E @ correction)
