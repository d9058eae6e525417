"""The dual of conditional maximum entropy and its Newton solver.

    D(W) = (1/T) sum_i w_i [log sum_k e^{s_ik} - s_i,y_i] + sum W^2 / (2 s2),  T = sum w

Newton steps by preconditioned conjugate gradients: word counts span orders of
magnitude, which the diagonal of the Hessian takes out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import logsumexp

from maxent._support.compiling import compiled
from maxent._support.reports import Report, tell
from maxent._support.results import Status

Array = NDArray[np.float64]


class SparseRows:
    """Loss passes over CSR rows, compiled."""

    def __init__(self, X, y, w, K, verbose=False):
        self.X, self.y, self.w = X, y, w
        self.core = compiled("softmax_rows", verbose)
        self.P = np.empty((X.shape[0], K))
        self.parts = X.indptr, X.indices, X.data

    def value_gradient(self, W, b):
        G, g = np.empty_like(W), np.empty_like(b)
        loss = self.core.value_gradient(*self.parts, self.y, self.w, W, b, self.P, G, g)
        return loss, G, g

    def hessian_product(self, V, v):
        H, h = np.empty_like(V), np.empty_like(v)
        self.core.hessian_product(*self.parts, self.w, self.P, V, v, H, h)
        return H, h

    def diagonal(self, shape):
        D, d = np.empty(shape), np.empty(shape[1])
        self.core.diagonal(*self.parts, self.w, self.P, D, d)
        return D, d


class DenseRows:
    """Loss passes over dense rows: matrix products."""

    def __init__(self, X, y, w, K, verbose=False):
        self.X, self.y, self.w = X, y, w
        self.P = np.empty((len(X), K))

    def value_gradient(self, W, b):
        s = self.X @ W + b
        own = s[np.arange(len(s)), self.y]
        top = logsumexp(s, axis=1)
        self.P = np.exp(s - top[:, None])
        R = self.w[:, None] * self.P
        R[np.arange(len(s)), self.y] -= self.w
        return float(self.w @ (top - own)), self.X.T @ R, R.sum(axis=0)

    def hessian_product(self, V, v):
        t = self.X @ V + v
        t = self.P * (t - (self.P * t).sum(axis=1, keepdims=True))
        t *= self.w[:, None]
        return self.X.T @ t, t.sum(axis=0)

    def diagonal(self, shape):
        R = self.w[:, None] * self.P * (1.0 - self.P)
        return (self.X * self.X).T @ R, R.sum(axis=0)


class ConditionalDual:
    """D and its derivatives at W (d, K), b (K,), as one vector.

    Two classes have one column: the features of class 1 alone. `intercept` False keeps
    b at zero.
    """

    def __init__(self, X, y, w, n_classes, sigma2, intercept, verbose=False):
        self.binary = n_classes == 2
        self.K = n_classes
        self.columns = 1 if self.binary else n_classes
        self.d, self.intercept, self.total = X.shape[1], intercept, float(w.sum())
        self.ridge = 1.0 / sigma2
        rows = SparseRows if sp.issparse(X) else DenseRows
        self.rows = rows(X, y, w, n_classes, verbose)
        self.size = (self.d + 1) * self.columns

    def split(self, x: Array) -> tuple[Array, Array]:
        """Weights (d, columns) and biases (columns,)."""
        x = x.reshape(self.d + 1, self.columns)
        return x[:-1], x[-1]

    def _full(self, x):
        """Weights of all classes, class 0 of two being zero."""
        W, b = self.split(x)
        if self.binary:
            W = np.hstack([np.zeros_like(W), W])
            b = np.concatenate([np.zeros(1), b])
        return np.ascontiguousarray(W), np.ascontiguousarray(b)

    def _joined(self, W, b):
        if self.binary:
            W, b = W[:, 1:], b[1:]
        if not self.intercept:
            b = np.zeros_like(b)
        return np.concatenate([W.ravel(), b]) / self.total

    def _penalized(self, x):
        out = self.ridge * x
        out[-self.columns :] = 0.0
        return out

    def value_gradient(self, x: Array) -> tuple[float, Array]:
        loss, G, g = self.rows.value_gradient(*self._full(x))
        pull = self._penalized(x)
        return loss / self.total + 0.5 * float(x @ pull), self._joined(G, g) + pull

    def hessian_product(self, x: Array) -> Array:
        return self._joined(*self.rows.hessian_product(*self._full(x))) + (
            self._penalized(x)
        )

    def diagonal(self) -> Array:
        D = self._joined(*self.rows.diagonal((self.d, self.K)))
        D += self._penalized(np.ones_like(D))
        return np.where(D > 0, D, 1.0)


def newton_cg(
    dual: ConditionalDual,
    x: Array,
    tol: float,
    max_iter: int,
    callback: Callable[[int, float, float], object] | None = None,
) -> tuple[Array, float, float, int, Status, list[tuple[int, float, float]]]:
    """Truncated Newton; (x, value, residual, n_iter, status, history)."""
    value, g = dual.value_gradient(x)
    history, status, n_iter = [], Status.MAX_ITER, 0
    for n_iter in range(max_iter + 1):
        residual = float(np.abs(g).max(initial=0.0))
        history.append((n_iter, value, residual))
        met = residual <= tol
        report = Report(n_iter, value, residual, "newton", residual, tol, "residual")
        point = x, value, residual, n_iter
        stop = tell(callback, replace(report, last=met, solution=partial(tuple, point)))
        if met or stop:
            status = Status.CONVERGED if met else Status.STOPPED
            break
        if n_iter == max_iter:
            break
        step = _conjugate_gradients(dual, g, tol)
        found = _line_search(dual, x, step, value, g)
        if found is None:
            status = Status.STALLED
            break
        x, value, g = found
    return x, value, residual, n_iter, status, history


def _conjugate_gradients(dual, g, tol):
    """H x = -g, until the residual is a fraction of the gradient."""
    M = dual.diagonal()
    size = np.abs(g).max()
    x, r = np.zeros_like(g), -g
    z = r / M
    d, rz = z.copy(), float(r @ z)
    aim = max(min(0.25, np.sqrt(size)) * size, 0.3 * tol)
    for _ in range(200):
        Hd = dual.hessian_product(d)
        curvature = float(d @ Hd)
        if curvature <= 0.0:
            break
        alpha = rz / curvature
        x += alpha * d
        r -= alpha * Hd
        if np.abs(r).max() <= aim:
            break
        z = r / M
        new = float(r @ z)
        d, rz = z + (new / rz) * d, new
    return x if x.any() else -g / M


def _line_search(dual, x, step, value, g):
    slope, t = float(g @ step), 1.0
    flat = 1e-14 * (1.0 + abs(value))
    for _ in range(40):
        trial = x + t * step
        new, gradient = dual.value_gradient(trial)
        better = np.abs(gradient).max() < np.abs(g).max()
        if new <= value + 1e-4 * t * slope or (new <= value + flat and better):
            return trial, new, gradient
        t *= 0.5
    return None
