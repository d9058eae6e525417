"""The objective of margin learning with hidden variables, and its models.

    f(w) = |w|^2 / 2 + sum_i c_i max(0, max_{y != y_i} [Delta(y_i, y) + F_iy - F_iy_i])

Source: Miller, Kumar, Packer, Goodman & Koller (2012), eqs. (6)-(11).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxent._support.typing import FloatArray, IntArray
from maxent.minentropy._features import HiddenFeatures
from maxent.minentropy.margin_qp import MarginProblem


@dataclass
class Objective:
    """f of one data set.

    Attributes
    ----------
    features : HiddenFeatures
    codes : ndarray of int (n,)
        True outputs y_i.
    c : ndarray (n,)
        Weights of the slacks.
    loss : ndarray (K, K)
        Delta, with a zero diagonal.
    alpha : ndarray (K,)
        Order of every output.
    """

    features: HiddenFeatures
    codes: IntArray
    c: FloatArray
    loss: FloatArray
    alpha: FloatArray

    def __post_init__(self):
        n, K = self.features.n, self.features.K
        self.total = float(self.c.sum())
        self.sample = np.repeat(np.arange(n), K - 1)
        other = np.tile(np.arange(K - 1), n)
        self.wrong = other + (other >= self.codes[self.sample])
        self.right = self.codes[self.sample]
        self.delta = self.loss[self.right, self.wrong]

    def at_order(self, alpha):
        """Return the objective with the orders `alpha`."""
        return Objective(self.features, self.codes, self.c, self.loss, alpha)

    def slacks(self, F):
        """xi (n,) at scores F (n, K)."""
        with np.errstate(invalid="ignore"):
            m = self.delta + F[self.sample, self.wrong] - F[self.sample, self.right]
        return np.maximum(m.reshape(len(F), -1).max(axis=1), 0.0)

    def value(self, w, F=None):
        """f(w)."""
        if F is None:
            F, _ = self.features.renyi(w, self.alpha, gradient=False)
        return 0.5 * float(w @ w) + float(self.c @ self.slacks(F))

    def linearised(self, w):
        """f(w), and the margin problem of F linearised at w."""
        F, G = self.features.renyi(w, self.alpha)
        return self.value(w, F), self.problem(F - self._dot(G, w), G)

    def _dot(self, G, w):
        return self.features.at_weights(G, w) if w.any() else 0.0

    def problem(self, b, G):
        """The margin problem of scores b + G . w."""
        rows, i = self.features.rows, self.sample
        ell = self.delta + b[i, self.wrong] - b[i, self.right]
        D = rows(G, i, self.right) - rows(G, i, self.wrong)
        return MarginProblem(D, ell, self.c, i, ell.shape)

    def predictions(self, w):
        """Outputs (n,) of the largest scores, which know no masks."""
        F, _ = self.features.unmasked.renyi(w, self.alpha, gradient=False)
        return F.argmax(axis=1)

    def error(self, w):
        """Mean loss of the predictions, weighted by c."""
        missed = self.loss[self.codes, self.predictions(w)]
        return float(self.c @ missed) / self.total if self.total else 0.0
