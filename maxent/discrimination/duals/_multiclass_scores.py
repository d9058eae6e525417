"""Scores of every class of kernel and of linear machines, with sweeps over examples."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from maxent._core.joint import joint_block, joint_csr, joint_dense
from maxent._optimize.certificate import certify
from maxent._optimize.quadratics import Quadratic
from maxent._support.gram_store import PartGram
from maxent._support.results import Certified

_BLOCK = 512  # examples whose Gram matrix stays in cache
_PASSES = 3


class KernelScores(Quadratic):
    """Scores, sweeps and exact margins of a kernel machine.

    Parameters
    ----------
    kernel : VectorKernel
    constraints : MulticlassRows
    class_weight_variance : float
        Variance of the weights of each class.
    variance : float
        Variance of the bias of each class over that of its weights, 0 for none or
        flat.
    cache_size : float
        Memory for kernel values, in MB.
    """

    def __init__(
        self, kernel, constraints, class_weight_variance, variance, cache_size
    ):
        self.kernel, self.c = kernel, constraints
        self.class_weight_variance, self.variance = class_weight_variance, variance
        self.diagonal = kernel.diagonal()
        n = constraints.n
        self.F = np.zeros((n, constraints.m))
        self.store = None
        if 4e-6 * n * n <= cache_size:
            self.store = PartGram(kernel, n)
            self.store.add(np.arange(n))

    @property
    def sweep_work(self):
        """Multiplications of a sweep over all examples, about."""
        n, m = self.F.shape
        return n * m * (_PASSES * min(n, _BLOCK) + n)

    # -- the regulariser, as the certificate wants it --------------------------------
    def value_and_margins(self, lam):
        """(half the squared norm, margins without flat bias), from scratch."""
        beta = self.c.beta(lam)
        used = np.flatnonzero(beta.any(axis=1))
        scores = self.class_weight_variance * np.asarray(
            self.kernel.apply(used, beta[used])
        )
        scores += self.class_weight_variance * self.variance * beta.sum(axis=0)
        return 0.5 * float(np.vdot(beta, scores)), self.c.margins(scores)

    def norm(self, beta):
        """Half the squared norm, from the scores at hand."""
        return 0.5 * float(np.vdot(beta, self.F))

    def begin(self, beta):
        """Scores of given coefficients."""
        used = np.flatnonzero(beta.any(axis=1))
        if len(used):
            self.F = self.class_weight_variance * np.asarray(
                self.kernel.apply(used, beta[used], single=True), dtype=np.float64
            )

    def sweep(self, lam, bias, variance, rng):
        """Visit the examples in play; the Fenchel-Young terms met."""
        c, rows = self.c, self.c.rows
        active = np.flatnonzero(self.in_play(lam, bias))
        total = 0.0
        parts = max(1, -(-len(active) // _BLOCK))
        for block in np.array_split(rng.permutation(active), parts):
            q = len(block)
            if not q:
                continue
            order = np.stack([rng.permutation(q) for _ in range(_PASSES)])
            part = np.ascontiguousarray(lam[block])
            change = np.empty((q, c.m))
            first, _ = joint_block(
                rows.potential.core_spec,
                self.gram(block),
                np.ascontiguousarray(self.F[block]),
                np.ascontiguousarray(c.codes[block]),
                np.ascontiguousarray(c.weight[block]),
                c.margin.level,
                c.margin.rate,
                self.class_weight_variance,
                variance,
                order,
                part,
                bias,
                change,
            )
            total += first
            lam[block] = part
            moved = np.flatnonzero(change.any(axis=1))
            if len(moved):
                self.add(
                    block[moved], self.class_weight_variance * change[moved], active
                )
        return total

    def in_play(self, lam, bias):
        """Rows with a multiplier, or with a margin not far above the level."""
        c = self.c
        scores = self.F + bias
        other = scores.copy()
        other[np.arange(c.n), c.codes] = -np.inf
        margin = scores[np.arange(c.n), c.codes] - other.max(axis=1)
        unit = c.rows.subset(np.arange(1))
        top = float(c.margin.level + unit.slope(np.zeros(1))[0])
        if not np.isfinite(top):
            return np.ones(c.n, dtype=bool)
        near = margin < top + 0.1 * max(abs(top), c.margin.level)
        return lam.any(axis=1) | near

    def gram(self, block):
        """Single-precision Gram matrix of a few rows."""
        if self.store is not None:
            return np.ascontiguousarray(self.store.matrix[block][:, block])
        small = PartGram(self.kernel, len(block))
        small.add(block)
        return np.ascontiguousarray(small.matrix[:, : len(block)])

    def add(self, columns, A, active):
        """F += K[:, columns] A: on all rows if K is here, else on those in play."""
        if self.store is not None:
            K = self.store.matrix[columns, : self.c.n]
            self.F += K.T @ A.astype(np.float32)
            return
        self.F[active] += self.kernel.apply(columns, A, single=True, rows=active)

    def refresh(self, beta):
        """Scores of the rows that were out of play."""
        if self.store is None:
            self.begin(beta)


class LinearScores(Quadratic):
    """The same for the linear kernel: weights, never kernel values."""

    def __init__(self, X, constraints, class_weight_variance, variance):
        self.c, self.variance = constraints, variance
        self.class_weight_variance = class_weight_variance
        self.sparse = sp.issparse(X)
        if self.sparse:
            X = sp.csr_array(X).astype(np.float64, copy=False)
            self.diagonal = np.asarray(X.multiply(X).sum(axis=1)).ravel()
            if X.indices.dtype != X.indptr.dtype:
                X.indices = X.indices.astype(np.int64)
                X.indptr = X.indptr.astype(np.int64)
            self.W = np.zeros((X.shape[1], constraints.m))
        else:
            X = np.ascontiguousarray(X, dtype=np.float64)
            self.diagonal = np.einsum("ij,ij->i", X, X)
            self.W = np.zeros((constraints.m, X.shape[1]))
        self.X = X

    @property
    def sweep_work(self):
        """Multiplications of a sweep over all examples, about."""
        n, d = self.X.shape
        entries = self.X.nnz if self.sparse else n * d
        return self.c.m * (2 * entries + 150 * n)  # a step has the time of 150

    def _weights(self, beta):
        W = self.class_weight_variance * np.asarray(self.X.T @ beta)
        return W if self.sparse else np.ascontiguousarray(W.T)

    def value_and_margins(self, lam):
        """(half the squared norm, margins without flat bias), from scratch."""
        beta = self.c.beta(lam)
        W = self.class_weight_variance * np.asarray(self.X.T @ beta)
        b = self.class_weight_variance * self.variance * beta.sum(axis=0)
        value = 0.5 / self.class_weight_variance * float(np.vdot(W, W))
        value += 0.5 * float(b @ beta.sum(axis=0))
        return value, self.c.margins(np.asarray(self.X @ W) + b)

    def norm(self, beta):
        """Half the squared norm, from the weights at hand."""
        return 0.5 / self.class_weight_variance * float(np.vdot(self.W, self.W))

    def begin(self, beta):
        """Weights of given coefficients."""
        self.W = self._weights(beta)

    def sweep(self, lam, bias, variance, rng):
        """Visit every example once; the Fenchel-Young terms met."""
        c, rows = self.c, self.c.rows
        visit = joint_csr if self.sparse else joint_dense
        data = (
            (self.X.data, self.X.indices, self.X.indptr) if self.sparse else (self.X,)
        )
        return visit(
            rows.potential.core_spec,
            *data,
            self.diagonal,
            c.codes,
            c.weight,
            c.margin.level,
            c.margin.rate,
            self.class_weight_variance,
            variance,
            rng.permutation(c.n),
            lam,
            self.W,
            bias,
        )

    def refresh(self, beta):
        """Nothing is out of play here."""


def best_certified(monitor, rows, scores, E):
    """The best certification; zero multipliers if none was of balanced ones."""
    if monitor.best is not None:
        return monitor.best
    lam = np.zeros(len(rows.q))
    J, gap, b, _ = certify(rows, scores, lam, E, np.zeros(scores.c.m - 1))
    return Certified((lam, b), J, gap)
