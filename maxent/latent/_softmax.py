"""The dual of conditional maximum entropy and its Newton solver.

    D(W) = (1/T) sum_i w_i [log sum_k e^{s_ik} - s_i,y_i] + sum W^2 / (2 s2),  T = sum w

Newton steps by preconditioned conjugate gradients: word counts span orders of
magnitude, which the diagonal of the Hessian takes out. With an intercept columns are
centred, which moves it alone and keeps the digits of columns far from zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxent._core import softmax
from maxent._optimize.truncated_newton import newton_direction
from maxent._partitions.partition_checks import rows_of_weight, sample_of
from maxent._support.compiling import compiled
from maxent._support.results import Report, Status, tell

Array = NDArray[np.float64]

_LEAST_SPREAD = 1e-8  # of a column's, below which the rounding of sums over rows counts
_CACHED = 50_000  # entries of X in the cache of a core
_SAMPLE = 1000  # rows that tell where columns lie


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
    """Loss passes over dense rows: matrix products, and compiled loops between them.

    A few rows at a time, which both products then find in cache.
    """

    def __init__(self, X, y, w, K):
        X, P = np.ascontiguousarray(X), np.empty((len(X), K))
        parts = _parts(X)
        scores = np.empty((parts[0].stop if parts else 0, K))
        self._parts = [
            (X[part], y[part], w[part], P[part], scores[: len(X[part])])
            for part in parts
        ]
        self.X, self.y = X, y

    def value_gradient(self, W, b):
        loss, G, g = 0.0, np.zeros_like(W), np.zeros_like(b)
        for X, y, w, P, s in self._parts:
            np.matmul(X, W, out=s)
            loss += softmax.residuals(s, b, y, w, P, g)
            G += X.T @ s
        return loss, G, g

    def hessian_product(self, V, v):
        H, h = np.zeros_like(V), np.zeros_like(v)
        for X, _, w, P, u in self._parts:
            np.matmul(X, V, out=u)
            softmax.curvatures(u, v, P, w, h)
            H += X.T @ u
        return H, h

    def diagonal(self, shape):
        D, d = np.zeros(shape), np.zeros(shape[1])
        for X, _, w, P, R in self._parts:
            np.subtract(1.0, P, out=R)
            R *= P
            R *= w[:, None]
            D += np.square(X).T @ R
            d += R.sum(axis=0)
        return D, d


def rows_of(X, y, w, n_classes):
    """Loss passes over the rows of this process."""
    rows = SparseRows if sp.issparse(X) else DenseRows
    return rows(X, y, w, n_classes)


# -- origins and units of the columns --------------------------------------------------
def origins(X):
    """Medians (d,) of the columns of a sample; zero of sparse columns with zeros.

    Any origin amid the rows will do; the mean may lie far from most of them.
    """
    n, d = X.shape
    sample, where = X[:: -(-n // _SAMPLE)], np.arange(d)
    if sp.issparse(X):
        where = np.flatnonzero(np.bincount(X.indices, minlength=d) == n)
        sample = sample[:, where].toarray()
    out = np.zeros(d)
    out[where] = np.median(sample, axis=0)
    return out


def moved(X, origin):
    """X - origin, for an origin that is zero of sparse columns with zeros."""
    if not origin.any():
        return X
    if not sp.issparse(X):
        return X - origin
    X = X.copy()
    X.data -= origin[X.indices]
    return X


def sums_of_columns(X, w):
    """Sum of weights, weighted sums of the columns, and of their squares."""
    if sp.issparse(X):
        squares = np.asarray(w @ X.multiply(X))
    else:
        squares = np.zeros(X.shape[1])
        for part in _parts(X):
            squares += w[part] @ np.square(X[part])
    return float(w.sum()), np.asarray(w @ X), squares


def _parts(X):
    """Slices of dense rows that stay in cache."""
    step = max(1, _CACHED // max(1, X.shape[1]))
    return [slice(lo, lo + step) for lo in range(0, len(X), step)]


def spreads(origin, total, first, second):
    """Standard deviations (d,) from sums over X - origin; sizes of constant columns."""
    mean = first / total
    sd = np.sqrt(np.maximum(second / total - mean * mean, 0.0))
    size = np.abs(origin + mean)
    constant = sd <= 1e-15 * size
    return np.where(constant, np.where(size > 0, size, 1.0), sd)


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
    lengths : list of int
        Rows of each partition.
    centred : bool
        Whether to centre the columns, if no block is sparse.
    """

    def __init__(self, parts, classes, factor, lengths, centred):
        self.parts, self.classes, self.factor = parts, classes, factor
        sample = sample_of(parts, lengths, _SAMPLE)[0]
        origin = np.zeros(parts.n_columns)
        if not sp.issparse(sample):
            origin = origins(np.asarray(sample, dtype=np.float64))
        self.origin, self.at = origin, None
        self.spread = spreads(origin, *self._total("sums"))
        self.origin = origin if centred else np.zeros_like(origin)

    def value_gradient(self, W, b):
        self.at = W, b
        return self._total("value_gradient", W, b)

    def hessian_product(self, V, v):
        return self._total("hessian_product", V, v)

    def diagonal(self, shape):
        return self._total("diagonal", shape)

    def _total(self, name, *args):
        known = self.classes, self.factor, self.origin, self.at
        return self.parts.total(_pass_of_part, *known, name, args)


def _pass_of_part(X, y, weight, classes, factor, origin, at, name, args):
    """One of the passes over the rows of a partition."""
    X, y, weight = rows_of_weight(X, y, weight)
    codes = np.searchsorted(classes, y)
    X = moved(X.astype(np.float64, copy=False), origin)
    if sp.issparse(X):
        X = sp.csr_array(X)
    if name == "sums":
        return sums_of_columns(X, weight * factor[codes])
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
    spread : ndarray (d,)
        Standard deviations of the columns.
    """

    def __init__(self, rows, n_columns, n_classes, total, sigma2, intercept, spread):
        self.binary = n_classes == 2
        self.K = n_classes
        self.columns = 1 if self.binary else n_classes
        self.d, self.intercept, self.total = n_columns, intercept, float(total)
        self.ridge = 1.0 / sigma2
        self.rows = rows
        self.size = (self.d + 1) * self.columns
        self.spread = np.repeat(np.append(spread, 1.0), self.columns)

    def split(self, x: Array) -> tuple[Array, Array]:
        """Weights (d, columns) and biases (columns,)."""
        x = x.reshape(self.d + 1, self.columns)
        return x[:-1], x[-1]

    def weights(self, x: Array) -> tuple[Array, Array]:
        """Weights and biases; of several classes those that add up to zero.

        What all classes have in common changes no probability.
        """
        W, b = self.split(x)
        if self.binary:
            return W, b
        return W - W.mean(axis=1, keepdims=True), b - b.mean()

    def full(self, x):
        """Weights of all classes, class 0 of two being zero."""
        W, b = self.split(x)
        if self.binary:
            both = np.zeros((self.d + 1, 2))
            both[:-1, 1:], both[-1, 1:] = W, b
            W, b = both[:-1], both[-1]
        return W, b

    def _joined(self, W, b):
        first = 1 if self.binary else 0
        out = np.zeros((self.d + 1, self.columns))
        out[:-1] = W[:, first:]
        if self.intercept:
            out[-1] = b[first:]
        out /= self.total
        return out.ravel()

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

    def diagonal(self) -> tuple[Array, Array]:
        """Diagonal of the Hessian, and units of the moments.

        These are standard deviations of the moments given the rows.
        """
        D = self._joined(*self.rows.diagonal((self.d, self.K)))
        unit = np.clip(np.sqrt(D), _LEAST_SPREAD * self.spread, self.spread)
        D += self._penalized(np.ones_like(D))
        return np.where(D > 0, D, 1.0), unit


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
        diagonal, unit = dual.diagonal()
        residual = float((np.abs(g) / unit).max(initial=0.0))
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
        aim = max(min(0.25, np.sqrt(residual)) * residual, 0.3 * tol)
        small = partial(_below, aim * unit)
        step = newton_direction(dual.hessian_product, diagonal, g, small)
        found = _line_search(dual, x, step, value, g, unit)
        if found is None:
            status = Status.STALLED
            break
        x, value, g = found
    return x, value, residual, n_iter, status, history


def _below(aim, residual, preconditioned):
    return (np.abs(residual) <= aim).all()


def _line_search(dual, x, step, value, g, unit):
    """The first of x + step, x + step / 2, ... that is lower, or None.

    Values that differ by less than the scores are rounded to do not compare. A convex
    objective rises by no more than the slope at the end of a step times its length.
    """
    slope, t = float(g @ step), 1.0
    flat = 1e-14 * (1.0 + abs(value))
    for _ in range(40):
        trial = x + t * step
        if (trial == x).all():
            return None
        new, gradient = dual.value_gradient(trial)
        better = (np.abs(gradient) / unit).max() < (np.abs(g) / unit).max()
        rise = min(new - value, t * float(gradient @ step))
        if new <= value + 1e-4 * t * slope or (rise <= flat and better):
            return trial, new, gradient
        t *= 0.5
    return None
