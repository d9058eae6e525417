"""The solvers for arrays: kernels, linear machines, paths, blocks of one's own."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent.discrimination import (
    DualResult,
    ExponentialMargin,
    HingeMargin,
    dual_path,
    solve_blocks,
    solve_dual,
    solve_kernel_dual,
    solve_linear_dual,
)
from maxent.families import Block, Gaussian, NormalInverseWishart

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
y = np.where(X[:, 0] + 0.3 * rng.normal(size=40) > 0, 1, -1)
K = X @ X.T


def progress(n_iter: int, objective: float, gap: float) -> None:
    """What a solver reports."""
    assert n_iter >= 0 and not math.isnan(objective)


result: DualResult = solve_dual(K, y, ExponentialMargin(5.0), callback=progress)
lam: NDArray[np.float64] = result.lam
print(result.gap, result.converged, result.n_iter, lam.sum(), result.bias)

prior = ExponentialMargin(5.0, level=2.0)
print(prior.potential(0.5), prior.loss([0.0, 1.0]), prior.upper)
flat = solve_linear_dual(X, y, HingeMargin(1.0), bias=None, tol=1e-4)
curved = solve_kernel_dual(X, y, prior, kernel="rbf", gamma=0.5, init=flat.lam)
path = dual_path(K, y, prior, [0.1, 1.0, 10.0])
print(flat.gap, curved.gap, [step.gap for step in path])


class Location(Block):
    """Unknown mean of a Gaussian with known variance, a standard prior."""

    def __init__(self, x: ArrayLike) -> None:
        self.x = np.asarray(x, dtype=np.float64)
        self.n_rows = len(self.x)

    def _posterior(self, a: NDArray[np.float64]) -> tuple[float, float]:
        precision = 1.0 + float(a.sum())
        return float(a @ self.x) / precision, precision

    def log_partition(self, a: NDArray[np.float64]) -> float:
        m, t = self._posterior(a)
        if t <= 0:
            return math.inf
        square = float(a @ self.x**2)
        log_unit = -0.5 * math.log(2 * math.pi) * float(a.sum())
        return log_unit - 0.5 * math.log(t) + 0.5 * (t * m * m - square)

    def mean(self, a: NDArray[np.float64]) -> NDArray[np.float64]:
        m, t = self._posterior(a)
        found = -0.5 * ((self.x - m) ** 2 + 1.0 / t + math.log(2 * math.pi))
        return np.asarray(found)

    def hessian_factor(self, a: NDArray[np.float64]) -> NDArray[np.float64]:
        m, t = self._posterior(a)
        r = self.x - m
        return np.column_stack([r / math.sqrt(t), np.full(len(r), math.sqrt(0.5) / t)])

    def max_step(self, a: NDArray[np.float64], direction: NDArray[np.float64]) -> float:
        change = float(direction.sum())
        return math.inf if change >= 0 else (1.0 + float(a.sum())) / -change


one = Location(X[:, 0])
two = NormalInverseWishart.weak(X).block(X)
rows = np.diag(y.astype(np.float64))
joint = solve_blocks([one, two], [rows, rows], ExponentialMargin(3.0), tol=1e-6)
print(joint.gap, joint.converged, Gaussian.fit(X).mean)
