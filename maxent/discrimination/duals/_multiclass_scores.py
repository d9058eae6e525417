"""Scores of every class of kernel and of linear machines, with sweeps over examples."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from maxent._core.machines.multiclass import joint_block, joint_csr, joint_dense
from maxent._core.machines.smo import least_share
from maxent._optimize.certificate import certify
from maxent._optimize.quadratics import Quadratic
from maxent._support.results import Certified
from maxent.discrimination.duals.class_pairs import class_coefficients
from maxent.discrimination.grams.gram_store import PartGram

_PASSES = 8  # over the examples held, where many come to rest at zero
_FEW_PASSES = 3  # where none does
_FURTHER = 16  # visits of the examples that move, after one of all
_MOVING = 0.9  # share of the examples, above which they are not told apart
_SHARE = 0.3  # of the largest violation: examples that violate less are passed over
_FEW = 0.02  # share of the examples visited, below which another pass can wait
_FULL = 0.8  # share in play of the examples held, below which the others are let go


class KernelScores(Quadratic):
    """Scores, sweeps and exact margins of a kernel machine.

    The Gram matrix held is that of the examples in play, as many as fit in memory.

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
        n, m = constraints.n, constraints.m
        self.F = np.zeros((m, n))  # scores without bias
        self.current = np.ones(n, dtype=bool)  # examples with scores up to date
        self.limit = min(n, max(64, int(np.sqrt(cache_size * 1e6 / 4.0)) - 32))
        self.store = PartGram(kernel, self.limit)
        self.least = 1.5 * least_share(constraints.rows.potential.core_spec)
        self.passes = _FEW_PASSES if constraints.rows.potential.curved else _PASSES
        self.worst = 0.0  # violation met last

    @property
    def sweep_work(self):
        """Multiplications of a sweep over all examples, about."""
        n, m = self.c.n, self.c.m
        return n * (self.passes * m + 1.5 * n)

    # -- the regulariser, as the certificate wants it --------------------------------
    def value_and_margins(self, lam):
        """(half the squared norm, margins without flat bias), from scratch."""
        beta = self.c.beta(lam)
        scores = self._exact(beta)
        scores += self.class_weight_variance * self.variance * beta.sum(axis=0)
        return 0.5 * float(np.vdot(beta, scores)), self.c.margins(scores)

    def _exact(self, beta):
        """Scores of all examples without bias, (n, m)."""
        used = np.flatnonzero(beta.any(axis=1))
        values = np.asarray(self.kernel.apply(used, beta[used]))
        return self.class_weight_variance * values

    def norm(self, beta):
        """Half the squared norm, from the scores at hand."""
        return 0.5 * float(np.vdot(beta, self.F.T))

    def begin(self, beta):
        """Set the scores of these coefficients."""
        self.F[:] = self._exact(beta).T
        self.current[:] = True

    def refresh(self, beta):
        """Scores of the examples that were out of play, and of all without drift."""
        self.begin(beta)

    # -- sweeps ------------------------------------------------------------------
    def sweep(self, lam, bias, variance, rng):
        """Visit the examples in play; the Fenchel-Young terms met."""
        active = np.flatnonzero(self.current & self.in_play(lam, bias))
        total, skip = 0.0, _SHARE * self.worst
        skip, self.worst = skip if np.isfinite(skip) else 0.0, 0.0
        for block, others in self._blocks(active, rng):
            self.store.exchange(block)
            total += self._visit(lam, bias, variance, rng, skip, others)
        return total

    def in_play(self, lam, bias):
        """Examples with a multiplier, or with a margin not far above the level."""
        c = self.c
        unit = c.rows.subset(np.arange(1))
        top = float(c.margin.level + unit.slope(np.zeros(1))[0])
        if not np.isfinite(top):
            return np.ones(c.n, dtype=bool)
        scores, at = self.F + bias[:, None], (c.codes, np.arange(c.n))
        right = scores[at]
        scores[at] = -np.inf
        near = right - scores.max(axis=0) < top + 0.1 * max(abs(top), c.margin.level)
        return lam.any(axis=1) | near

    def _blocks(self, active, rng):
        """Pairs of examples that fit in memory, and the others in play."""
        held = self.store.rows
        if 0 < len(held) * _FULL < len(active) <= len(held):
            still = np.zeros(self.c.n, dtype=bool)
            still[held] = True
            if still[active].all():
                active = held
        self.current[:] = False
        self.current[active] = True
        parts = -(-len(active) // self.limit)
        if parts == 1:
            yield active, None
        elif parts:
            for block in np.array_split(rng.permutation(active), parts):
                yield np.sort(block), np.setdiff1d(active, block, assume_unique=True)

    def _visit(self, lam, bias, variance, rng, skip, others):
        """Passes over the examples held; the Fenchel-Young terms of the first."""
        c, v, rows = self.c, self.class_weight_variance, self.store.rows
        q, first = len(rows), None
        F, part = np.ascontiguousarray(self.F[:, rows]), lam[rows]
        moved = np.zeros(F.shape, dtype=np.float32)
        fixed = (
            c.codes[rows],
            c.weight[rows],
            c.margin.level,
            c.margin.rate,
            v,
            variance,
        )
        spec, K = c.rows.potential.core_spec, self.store.matrix
        for _ in range(self.passes):
            order = rng.permutation(q)
            terms, visits, worst = joint_block(
                spec,
                K,
                F,
                moved,
                *fixed,
                order,
                part,
                bias,
                skip,
                self.least,
            )
            first = terms if first is None else first
            if visits < _FEW * q:
                break
        self.worst = max(self.worst, worst)
        if others is not None:
            change = class_coefficients(part - lam[rows], c.codes[rows])
            at = np.flatnonzero(change.any(axis=1))
            values = self.kernel.apply(rows[at], v * change[at], True, others)
            self.F[:, others] += values.T
        lam[rows], self.F[:, rows] = part, F + moved
        return first


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
        """Set the weights of these coefficients."""
        self.W = self._weights(beta)

    def sweep(self, lam, bias, variance, rng):
        """Visit all examples, then those that move; the Fenchel-Young terms met first.

        The multipliers of most examples rest at zero from some sweep on.
        """
        c, first, order = self.c, None, self.c.n
        visit, data = joint_dense, (self.X,)
        if self.sparse:
            visit, data = joint_csr, (self.X.data, self.X.indices, self.X.indptr)
        for _ in range(1 + _FURTHER):
            before = lam.copy()
            terms = visit(
                c.rows.potential.core_spec,
                *data,
                self.diagonal,
                c.codes,
                c.weight,
                c.margin.level,
                c.margin.rate,
                self.class_weight_variance,
                variance,
                rng.permutation(order),
                first is None,
                lam,
                self.W,
                bias,
            )
            first = terms if first is None else first
            order = np.flatnonzero((lam != before).any(axis=1))
            if not 0 < len(order) <= _MOVING * c.n:
                break
        return first

    def refresh(self, beta):
        """Nothing is out of play here."""


def best_certified(monitor, rows, scores, E):
    """The best certification; zero multipliers if none was of balanced ones."""
    if monitor.best is not None:
        return monitor.best
    lam = np.zeros(len(rows.q))
    J, gap, b, _ = certify(rows, scores, lam, E, np.zeros(scores.c.m - 1))
    return Certified((lam, b), J, gap)
