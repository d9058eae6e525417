"""Min-entropy models: the margin problem, scores of many places, motifs and bags."""

import numpy as np

from maxent.datasets import make_motif_occupancy
from maxent.minentropy import (
    M3EClassifier,
    M3EMotifClassifier,
    renyi_weights,
    solve_margin_qp,
)

from .common import Fitted, Measured, profile


class MarginProblem(Measured):
    """The inner problem of a motif: 48 columns, weight 2 a row."""

    params = (profile([20_000], [200_000]),)
    param_names = ("rows",)

    def data(self, rows):
        rng = np.random.default_rng(0)
        self.D = rng.standard_normal((rows, 48)) + 0.05
        self.ell = np.ones(rows)

    def work(self, tol=None):
        return solve_margin_qp(self.D, self.ell, 2.0, tol=tol or 1e-8)

    def objective(self, result):
        return result.objective


class Weights(Measured):
    """Renyi weights of half a million scores, by order."""

    params = ([0.25, 1.0, 2.0, 8.0, np.inf],)
    param_names = ("alpha",)

    def data(self, alpha):
        self.S = np.random.default_rng(0).standard_normal((20_000, 29))
        self.alpha = alpha

    def work(self, tol=None):
        return renyi_weights(self.S, self.alpha)

    def objective(self, result):
        return float(np.sum(result * self.S))


class Motif(Fitted):
    """A motif in DNA, one start."""

    params = ([0.25, np.inf],)
    param_names = ("alpha",)

    def data(self, alpha):
        rows = profile([2000], [20_000])[-1]
        X, y, _ = make_motif_occupancy(rows + 1000, random_state=0)
        self.X, self.y, self.X_test, self.y_test = (
            X[:rows],
            y[:rows],
            X[rows:],
            y[rows:],
        )
        self.alpha = alpha

    def estimator(self):
        return M3EMotifClassifier(
            8, alpha=self.alpha, C=0.2 * len(self.X), init="path", tol=1e-3
        )

    def work(self, tol=None):
        # a path of local minima: at 1e-5 five digits are settled
        return super().work(None if tol is None else 1e-5)


class Bags(Fitted):
    """Bags of three classes."""

    def data(self):
        rng = np.random.default_rng(0)
        y = np.arange(800) % 3
        X = rng.standard_normal((800, 10, 20))
        X[np.arange(800), rng.integers(10, size=800), y] += 4.0
        self.X, self.y, self.X_test, self.y_test = X[:400], y[:400], X[400:], y[400:]

    def estimator(self):
        return M3EClassifier(8.0, 400.0, init="path")

    def work(self, tol=None):
        return super().work(None if tol is None else 1e-5)
