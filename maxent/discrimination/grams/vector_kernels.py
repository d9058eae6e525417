"""Kernels between feature vectors: Gram tiles and products.

One object per fitted kernel. It hides whether the features are dense, sparse,
handled by a user's function, or already a Gram matrix.
"""

from __future__ import annotations

import copy

import numpy as np
import scipy.sparse as sp

from maxent._core.machines import gram as _gram
from maxent._support import validation as v
from maxent._support.threads import effective_threads
from maxent.discrimination.grams.kernel_parameters import (
    LARGEST_FEATURE,
    call_kernel,
    check_callable,
    check_kernel,
)
from maxent.discrimination.grams.sparse_kernels import (
    norms_cancel,
    on_shared_columns,
    sparse_norms,
    transform_inner_products,
)

_KINDS = {"linear": 0, "rbf": 1, "poly": 2, "sigmoid": 3}


def _dense_if_faster(X):
    """Sparse rows as an array where kernel values come faster from it.

    An inner product of dense rows costs one multiplication a column, thirty times as
    fast as the look-ups of a sparse product; and the copies should not take over.
    """
    if not sp.issparse(X) or not X.shape[0]:
        return X
    n, d = X.shape
    lookups = (X.nnz / n) ** 2 / max(d, 1)
    fast = d <= 200 + 30 * lookups
    return X.toarray() if fast and 12 * n * d <= max(1e8, 100 * X.nnz) else X


def _centred(X, offset, gamma):
    """sqrt(gamma) (X - offset): the rows of an RBF kernel of unit gamma."""
    X = X - offset
    X *= np.sqrt(gamma)
    return X


def _squared_norms(X):
    return np.einsum("ij,ij->i", X, X)


class VectorKernel:
    """A kernel with its data: Gram blocks and products, in either precision.

    Parameters
    ----------
    X : ndarray (n, d), CSR (n, d), or for "precomputed" the Gram matrix (n, n)
    kernel : one of KERNEL_NAMES, or a callable f(X, Z) -> (len(X), len(Z))
    gamma, degree, coef0 : parameters of the named kernels
    n_threads : int
    """

    def __init__(self, X, kernel="rbf", *, gamma=1.0, degree=3, coef0=0.0, n_threads=1):
        check_kernel(kernel, gamma=gamma, degree=degree, coef0=coef0)
        self.kernel = kernel
        self.n_threads = n_threads
        self.X = X
        self.spec = None
        self.raw = None  # (gamma, rows) in their own units, where norms cancel
        if isinstance(kernel, str) and kernel != "precomputed":
            self.spec = (_KINDS[kernel], float(gamma), float(coef0), int(degree))
            self._prepare_named(X)

    def _prepare_named(self, X):
        # Dense copies in both precisions; the RBF kernel sees differences only, so
        # centring costs nothing and saves digits of the squared distances.
        if self.kernel != "linear":
            X = _dense_if_faster(X)
        self.sparse = sp.issparse(X)
        if self.sparse:
            self.X = sp.csr_array(X).astype(np.float64, copy=False)
            v.check_range("X", self.X, LARGEST_FEATURE)
            self.norms = sparse_norms(self.X)
            self.used, _ = on_shared_columns(self.X, self.X)
            return
        X = given = np.ascontiguousarray(X, dtype=np.float64)
        if self.kernel == "rbf" and len(X):
            # unit gamma: then no scale of the features leaves single precision
            gamma = self.spec[1]
            X = _centred(X, X.mean(axis=0), gamma)
            self.spec = (self.spec[0], 1.0, *self.spec[2:])
        self.X = X
        if self.kernel == "rbf":
            v.check_range("X", X)
        else:
            v.check_range("X", X, LARGEST_FEATURE)
        with np.errstate(over="ignore", invalid="ignore"):
            self.norms = _squared_norms(X)
            self.X32 = X.astype(np.float32)
            self.norms32 = _squared_norms(self.X32)
        if self.kernel == "rbf" and norms_cancel(1.0, self.norms, self.norms):
            self.raw = (gamma, given)

    def raw_rows(self, *selections):
        """Some sets of rows in their own units, where the kernel's tiles want them.

        Returns
        -------
        tuple (gamma, rows, ...) or None
            The argument `raw` of the functions of :mod:`maxent._core.machines.gram`.
        """
        if self.raw is None:
            return None
        gamma, X = self.raw
        return gamma, *(X if rows is None else X[rows] for rows in selections)

    def __len__(self):
        return self.X.shape[0]

    @property
    def has_tiles(self):
        """True if compiled code computes the values from dense rows."""
        return self.spec is not None and not self.sparse

    @property
    def semidefinite(self):
        """True if every matrix of this kernel is known to be positive semidefinite."""
        if self.kernel == "poly":
            return self.spec[2] >= 0
        return isinstance(self.kernel, str) and self.kernel in ("linear", "rbf")

    def among(self, rows):
        """The kernel of some of the rows, by their places or a slice."""
        part = copy.copy(self)
        if self.kernel == "precomputed":
            part.X = self.X[rows][:, rows]
            return part
        part._take_rows(self, lambda x: x[rows])
        return part

    def joined(self, one, other):
        """The kernel of the rows of two slices."""
        if not self.has_tiles:
            n = np.arange(len(self))
            return self.among(np.concatenate([n[one], n[other]]))
        part = copy.copy(self)
        part._take_rows(self, lambda x: np.concatenate([x[one], x[other]]))
        return part

    def _take_rows(self, whole, some):
        """Set the arrays of rows to `some` of those of another kernel."""
        self.X = some(whole.X)
        if self.spec is None:
            return
        self.norms = some(whole.norms)
        if self.sparse:
            self.used = some(whole.used)
            return
        self.X32, self.norms32 = some(whole.X32), some(whole.norms32)
        if self.raw is not None:
            self.raw = whole.raw[0], some(whole.raw[1])

    def held(self, cache_size):
        """This kernel, or a matrix of its values if a function is asked for them.

        Parameters
        ----------
        cache_size : float
            MB that a matrix of all values and what is made of it may take.
        """
        n = len(self)
        if self.spec is not None or not callable(self.kernel):
            return self
        if 14e-6 * n * n > cache_size:
            return self
        everything = np.arange(n)
        return VectorKernel(self.block(everything, everything), "precomputed")

    # -- blocks ----------------------------------------------------------------
    def block(self, rows, columns):
        """Double-precision kernel block between rows and columns of the data."""
        if self.kernel == "precomputed":
            return self.X[np.ix_(rows, columns)]
        if self.spec is None:
            return call_kernel(self.kernel, self.X[rows], self.X[columns])
        if self.sparse:
            inner = (self.used[rows] @ self.used[columns].T).toarray()
            return transform_inner_products(
                self.kernel,
                self.spec,
                inner,
                self.norms[rows],
                self.norms[columns],
                (self.X, rows),
                (self.X, columns),
            )
        X, Z = self.X[rows], self.X[columns]
        out = np.empty((len(X), len(Z)))
        _gram.gram(
            self.spec,
            X,
            self.norms[rows],
            Z,
            self.norms[columns],
            out,
            self.n_threads,
            self.raw_rows(rows, columns),
        )
        return out

    def single_block(self, rows, columns, out):
        """Block between two slices of the rows, in single precision where it is fast.

        Parameters
        ----------
        rows, columns : slice
        out : ndarray of float32
            Takes the block; its rows are contiguous.
        """
        if not self.has_tiles:
            everything = np.arange(len(self))
            out[:] = self.block(everything[rows], everything[columns])
            return
        _gram.gram(
            self.spec,
            self.X32[rows],
            self.norms32[rows],
            self.X32[columns],
            self.norms32[columns],
            out,
            self.n_threads,
            self.raw_rows(rows, columns),
        )

    def diagonal(self):
        """k(x_t, x_t) of every row, (n,)."""
        if self.kernel == "precomputed":
            return np.ascontiguousarray(np.diagonal(self.X), dtype=np.float64)
        if self.spec is None:
            return np.array(
                [
                    call_kernel(self.kernel, self.X[[t]], self.X[[t]])[0, 0]
                    for t in range(len(self))
                ]
            )
        _, gamma, coef0, degree = self.spec
        if self.kernel == "linear":
            return self.norms.copy()
        if self.kernel == "rbf":
            return np.ones(len(self))
        inner = gamma * self.norms + coef0
        return inner**degree if self.kernel == "poly" else np.tanh(inner)

    # -- products --------------------------------------------------------------
    def apply(self, columns, A, single=False, rows=None):
        """k(X[rows], X[columns]) @ A, (len(rows), k).

        In double precision unless `single`; all rows unless some are given, by their
        places or a slice.
        """
        A = np.ascontiguousarray(A, dtype=np.float64)
        if not self.has_tiles:
            return self._apply_by_blocks(columns, A, rows)
        X, norms = (self.X32, self.norms32) if single else (self.X, self.norms)
        A = A.astype(X.dtype, copy=False)
        if rows is None:
            return self._apply_to_all(X, norms, columns, A)
        some = X[rows]
        out = np.empty((len(some), A.shape[1]), X.dtype)
        _gram.kernel_apply(
            self.spec,
            some,
            norms[rows],
            X[columns],
            norms[columns],
            A,
            out,
            self.n_threads,
            self.raw_rows(rows, columns),
        )
        return out

    def _apply_to_all(self, X, norms, columns, A):
        """k(X, X[columns]) @ A; the columns' own block is used by its symmetry."""
        spec, n_threads = self.spec, self.n_threads
        Z, zz = X[columns], norms[columns]
        out = np.empty((len(X), A.shape[1]), X.dtype)
        own = np.empty((len(Z), A.shape[1]), X.dtype)
        raw = self.raw_rows(columns)
        _gram.kernel_apply_symmetric(spec, Z, zz, A, own, n_threads, raw)
        if len(columns) == len(X):
            out[columns] = own
            return out
        others = np.ones(len(X), dtype=bool)
        others[columns] = False
        rest = np.empty((len(X) - len(Z), A.shape[1]), X.dtype)
        raw = self.raw_rows(others, columns)
        _gram.kernel_apply(
            spec, X[others], norms[others], Z, zz, A, rest, n_threads, raw
        )
        out[columns] = own
        out[others] = rest
        return out

    def _apply_by_blocks(self, columns, A, rows):
        if self.kernel == "precomputed" and rows is None:
            whole = np.zeros((len(self), A.shape[1]))
            whole[columns] = A
            return self.X @ whole
        rows = np.arange(len(self))[slice(None) if rows is None else rows]
        out = np.empty((len(rows), A.shape[1]))
        step = max(1, int(1e7 // max(len(columns), 1)))
        for lo in range(0, len(rows), step):
            out[lo : lo + step] = self.block(rows[lo : lo + step], columns) @ A
        return out


def apply_kernel(X, Z, A, kernel, *, gamma=1.0, degree=3, coef0=0.0, n_threads=1):
    """k(X, Z) @ A for new rows X, without storing the whole kernel matrix.

    Parameters
    ----------
    X : ndarray or CSR (n, d); for "precomputed" the kernel block (n, m)
    Z : ndarray or CSR (m, d); ignored for "precomputed"
    A : ndarray (m, k)
    """
    return KernelValues(X, Z, kernel, gamma, degree, coef0, n_threads).times(A)


class KernelValues:
    """Kernel values between new rows X and the rows Z of a machine.

    Parameters
    ----------
    X, Z, kernel, gamma, degree, coef0, n_threads
        As for :func:`apply_kernel`.
    """

    def __init__(self, X, Z, kernel, gamma, degree, coef0, n_threads):
        self.kernel, self.n_threads = kernel, n_threads
        self.given = kernel == "precomputed" if isinstance(kernel, str) else False
        if isinstance(kernel, str) and not self.given:
            X, Z = _dense_if_faster(X), _dense_if_faster(Z)
        self.dense = isinstance(kernel, str) and not (
            self.given or sp.issparse(X) or sp.issparse(Z)
        )
        self.shape = X.shape[0], X.shape[1] if self.given else Z.shape[0]
        if self.dense:
            self._prepare_dense(X, Z, float(gamma), float(coef0), int(degree))
        elif isinstance(kernel, str) and not self.given:
            X, Z = self.rows = sp.csr_array(X), sp.csr_array(Z)
            self.spec = 0, gamma, coef0, degree
            self.xx, self.zz = sparse_norms(X), sparse_norms(Z)
            X, Z = on_shared_columns(X, Z)
        if not self.dense:
            self.X, self.Z = X, Z

    def _prepare_dense(self, X, Z, gamma, coef0, degree):
        X = np.ascontiguousarray(X, dtype=np.float64)
        Z = np.ascontiguousarray(Z, dtype=np.float64)
        raw = gamma, X, Z
        if self.kernel == "rbf" and len(Z):
            offset = Z.mean(axis=0)
            X, Z = _centred(X, offset, gamma), _centred(Z, offset, gamma)
            gamma = 1.0
        self.X, self.Z = X, Z
        self.xx, self.zz = xx, zz = _squared_norms(X), _squared_norms(Z)
        self.spec = _KINDS[self.kernel], gamma, coef0, degree
        far = self.kernel == "rbf" and norms_cancel(gamma, xx, zz)
        self.raw = raw if far else None

    def times(self, A):
        """The values times A (len(Z), k)."""
        A = np.ascontiguousarray(A, dtype=np.float64)
        if self.given:
            return self.X @ A
        out = np.empty((self.shape[0], A.shape[1]))
        if not self.dense:
            for part, block in self.blocks(1e7):
                out[part] = block @ A
            return out
        _gram.kernel_apply(
            self.spec,
            self.X,
            self.xx,
            self.Z,
            self.zz,
            A,
            out,
            self.n_threads,
            self.raw,
        )
        return out

    def blocks(self, size):
        """Yield slices of the rows X with their values, about `size` at a time."""
        step = max(1, int(size // max(self.shape[1], 1)))
        for lo in range(0, self.shape[0], step):
            part = slice(lo, lo + step)
            yield part, self._block(part)

    def _block(self, part):
        if self.given:
            return self.X[part]
        if not isinstance(self.kernel, str):
            return call_kernel(self.kernel, self.X[part], self.Z)
        if not self.dense:
            inner = (self.X[part] @ self.Z.T).toarray()
            rows = (self.rows[0], part), (self.rows[1], None)
            return transform_inner_products(
                self.kernel, self.spec, inner, self.xx[part], self.zz, *rows
            )
        X, xx = self.X[part], self.xx[part]
        out = np.empty((len(X), len(self.Z)))
        raw = None
        if self.raw is not None:
            raw = self.raw[0], self.raw[1][part], self.raw[2]
        _gram.gram(self.spec, X, xx, self.Z, self.zz, out, self.n_threads, raw)
        return out


def kernel_of_rows(X, kernel, *, gamma, degree, coef0, n_jobs):
    """VectorKernel of checked parameters, its values looked at as far as that is cheap.

    Named kernels are bounded by the lengths of the rows; a callable is asked for the
    values between a few rows, which must be symmetric.
    """
    vectors = VectorKernel(
        X,
        kernel,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        n_threads=effective_threads(n_jobs),
    )
    if kernel == "poly":
        with np.errstate(over="ignore"):
            largest = (gamma * vectors.norms.max() + abs(coef0)) ** degree
        v.check_kernel_size("kernel='poly'", largest)
    elif callable(kernel):
        check_callable(kernel, X)
    return vectors
