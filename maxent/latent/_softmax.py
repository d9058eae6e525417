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

from maxent._optimize.truncated_newton import newton_direction
from maxent._support.compiling import compiled
from maxent._support.reports import Report, tell
from maxent._support.results import Status

Array = NDArray[np.float64]


class SparseRows:
    """Loss passes over CSR rows, compiled."""

    def __init__(self, X, y, w, K):
        self.X, self.y, self.w = X, y, w
        self.core = compiled("softmax_rows")
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

    def __init__(self, X, y, w, K):
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


def rows_of(X, y, w, n_classes):
    """Loss passes over the rows of this process."""
    rows = SparseRows if sp.issparse(X) else DenseRows
    return rows(X, y, w, n_classes)


class PartitionedRows:
    """Loss passes over partitions of (X, y, weight).

    Products with the Hessian begin with the probabilities: nothing is kept between two
    passes.

    Parameters
    ----------
    parts : Partitions
    classes : ndarray (K,)
        Sorted labels.
    factor : ndarray (K,)
        Factors of the sample weights by class.
    """

    def __init__(self, parts, classes, factor):
        self.parts, self.classes, self.factor = parts, classes, factor

    def value_gradient(self, W, b):
        self.at = W, b
        return self._total("value_gradient", W, b)

    def hessian_product(self, V, v):
        return self._total("hessian_product", V, v)

    def diagonal(self, shape):
        return self._total("diagonal", shape)

    def _total(self, name, *args):
        known = self.classes, self.factor, self.at
        return self.parts.total(_pass_of_part, *known, name, args)


def _pass_of_part(X, y, weight, classes, factor, at, name, args):
    """One of the passes over the rows of a partition."""
    weight = np.ones(X.shape[0]) if weight is None else np.asarray(weight, dtype=float)
    codes = np.searchsorted(classes, y)
    codes[codes == len(classes)] = 0
    keep = (weight > 0) & (classes[codes] == y)  # labels without weight are no classes
    if not keep.all():
        X, codes, weight = X[keep], codes[keep], weight[keep]
    X = X.astype(np.float64, copy=False)
    if sp.issparse(X):
        X = sp.csr_array(X)
    rows = rows_of(X, codes, weight * factor[codes], len(classes))
    if name != "value_gradient":
        rows.value_gradient(*at)
    return getattr(rows, name)(*args)


class ConditionalDual:
    """D and its derivatives at W (d, K), b (K,), as one vector.

    Two classes have one column: the features of class 1 alone. `intercept` False keeps
    b at zero.

    Parameters
    ----------
    rows : SparseRows, DenseRows or PartitionedRows
    n_columns, n_classes : int
    total, sigma2 : float
        Sum of the weights, and the variance of the penalty.
    intercept : bool
    """

    def __init__(self, rows, n_columns, n_classes, total, sigma2, intercept):
        self.binary = n_classes == 2
        self.K = n_classes
        self.columns = 1 if self.binary else n_classes
        self.d, self.intercept, self.total = n_columns, intercept, float(total)
        self.ridge = 1.0 / sigma2
        self.rows = rows
        self.size = (self.d + 1) * self.columns

    def split(self, x: Array) -> tuple[Array, Array]:
        """Weights (d, columns) and biases (columns,)."""
        x = x.reshape(self.d + 1, self.columns)
        return x[:-1], x[-1]

    def full(self, x):
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
        loss, G, g = self.rows.value_gradient(*self.full(x))
        pull = self._penalized(x)
        return loss / self.total + 0.5 * float(x @ pull), self._joined(G, g) + pull

    def hessian_product(self, x: Array) -> Array:
        return self._joined(*self.rows.hessian_product(*self.full(x))) + (
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
        size = np.abs(g).max()
        aim = max(min(0.25, np.sqrt(size)) * size, 0.3 * tol)
        small = partial(_below, aim)
        step = newton_direction(dual.hessian_product, dual.diagonal(), g, small)
        found = _line_search(dual, x, step, value, g)
        if found is None:
            status = Status.STALLED
            break
        x, value, g = found
    return x, value, residual, n_iter, status, history


def _below(aim, residual, preconditioned):
    return np.abs(residual).max() <= aim


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
