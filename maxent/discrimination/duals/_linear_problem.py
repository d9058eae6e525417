"""Features and constraint rows of a linear dual, and its certificate."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from maxent._core.machines.coordinate import scale_rows
from maxent._optimize.bias import best_bias
from maxent._optimize.certificate import repair_equality
from maxent._support import linalg
from maxent._support import validation as v
from maxent._support.results import Certified
from maxent._support.threads import share_out
from maxent.discrimination.grams.kernel_parameters import LARGEST_FEATURE

_CHUNK = 8192  # rows of a loss pass at a time
_PIECES = 8  # of a loss pass, which threads share out


def prior_precision(n_columns, problem):
    """Inverse prior variances of (w, b), infinite for a bias that is zero."""
    precision = np.ones(n_columns + 1)
    precision[-1] = 0.0
    if problem.bias != "flat":
        variance = problem.bias_variance
        precision[-1] = 1.0 / variance if variance else np.inf
    return precision


def _added(sums, more):
    return tuple(a + b for a, b in zip(sums, more, strict=True))


class LinearProblem:
    """Features with the constraint rows of a signed problem.

    Parameters
    ----------
    X : ndarray (n, d) or csr_array
    problem : SignedProblem
    check : bool, default=True
        True to look for entries too large for double precision.
    keep_single : bool, default=False
        True to keep dense features in single precision. All sums are in double
        precision all the same: rows are converted a few at a time.
    """

    def __init__(self, X, problem, check=True, keep_single=False):
        self.problem = problem
        self.rows, self.index, self.sign = problem.rows()
        self.upper = self.rows.upper
        self.sparse = sp.issparse(X)
        if self.sparse:
            X = sp.csr_array(X)
            if not X.has_canonical_format:
                X = X.copy()  # not in the caller's arrays
                X.sum_duplicates()
        if not (keep_single and not self.sparse and X.dtype == np.float32):
            X = X.astype(np.float64, copy=False)
        self.X = X if self.sparse else np.ascontiguousarray(X)
        self.one_to_one = len(self.index) == X.shape[0]
        self._last = None  # pass
        if check:
            v.check_range("X", self.X, LARGEST_FEATURE)

    @property
    def single(self):
        """Are the features in single precision?"""
        return self.X.dtype == np.float32

    def in_doubles(self):
        """Convert all features to double precision, for solvers that need them."""
        self.X = self.X.astype(np.float64, copy=False)
        return self

    def times(self, w):
        """X w, in double precision."""
        if self.sparse:
            return np.asarray(self.X @ w).ravel()
        if not self.single:
            return linalg.times(self.X, w)
        return np.concatenate([rows @ w for rows in self._double_chunks()])

    def transposed_times(self, a):
        """X' a, in double precision."""
        if self.sparse:
            return np.asarray(self.X.T @ a).ravel()
        if not self.single:
            return linalg.transposed_times(self.X, a)
        out, lo = np.zeros(self.X.shape[1]), 0
        for rows in self._double_chunks():
            out += a[lo : lo + len(rows)] @ rows
            lo += len(rows)
        return out

    def _double_chunks(self):
        for lo in range(0, self.X.shape[0], _CHUNK):
            yield self.X[lo : lo + _CHUNK].astype(np.float64)

    def squared_norms(self):
        """|x|^2 of every data row."""
        if not self.sparse:
            return np.einsum("ij,ij->i", self.X, self.X, dtype=np.float64)
        indptr, data = self.X.indptr, self.X.data
        full = np.flatnonzero(np.diff(indptr))
        out = np.zeros(len(indptr) - 1)
        # Few rows at a time are squared: fresh memory costs more than the squares.
        for lo in range(0, len(full), 10_000):
            some = full[lo : lo + 10_000]
            first, last = indptr[some[0]], indptr[some[-1] + 1]
            squares = data[first:last] ** 2
            out[some] = np.add.reduceat(squares, indptr[some] - first)
        return out

    @property
    def flat(self):
        """Is the bias prior flat?"""
        return self.problem.bias == "flat"

    @property
    def precision(self):
        """Inverse prior variances of (w, b), infinite for a bias that is zero."""
        return prior_precision(self.X.shape[1], self.problem)

    def part(self, pick, factor):
        """Some constraint rows (in order), their weights multiplied by a factor."""
        part = object.__new__(LinearProblem)
        part.problem, part.sparse = self.problem, self.sparse
        rows = self.rows.subset(pick)
        part.rows = replace(rows, weight=rows.weight * factor)
        part.X, part.sign = self.X[self.index[pick]], self.sign[pick]
        part.index, part.one_to_one = np.arange(len(pick)), True
        part._last = None
        return part

    def expand(self, f):
        """Decision values per constraint row."""
        return f if self.one_to_one else f[self.index]

    def collect(self, lam):
        """Signed multipliers per data row."""
        a = self.sign * lam
        if self.one_to_one:
            return a
        return np.bincount(self.index, weights=a, minlength=self.X.shape[0])

    def weights_of(self, lam):
        """w = X' a."""
        return self.transposed_times(self.collect(lam))

    def shortfalls(self, x):
        """By how much margins of weights and bias x (d + 1,) miss their levels."""
        f = self.times(x[:-1]) + x[-1]
        return self.rows.q - self.sign * self.expand(f)

    def loss_pass(self, x, hessian=False):
        """Loss of weights and bias x (d + 1,), and what follows from it.

        Returns (value, multipliers, gradient, Hessian in single precision or None);
        the Hessian is for dense features. Another pass at the same array `x` takes the
        losses of the last one.
        """
        if self._last is None or self._last[0] is not x:
            self._last = (x, *self._losses(x))
        _, value, lam, gradient, curvature = self._last
        return value, lam, gradient, self._hessian(curvature) if hessian else None

    def _losses(self, x):
        """Value, multipliers, gradient, and curvature of every row's loss."""
        n = len(self.rows.q)
        lam, curvature = np.empty(n), np.empty(n)

        def sums(part):
            rows, s = self.rows.subset(part), self.sign[part]
            X = self._features(part)
            f = X @ x[:-1]
            f += x[-1]
            f *= s
            value, lam[part], curvature[part] = rows.loss(rows.q - f)
            a = s * lam[part]
            gradient = np.empty(len(x))
            gradient[:-1] = X.T @ a if self.sparse else a @ X
            gradient[-1] = a.sum()
            return value, -gradient

        value, gradient = self._summed(sums)
        return value, lam, gradient, curvature

    def _hessian(self, curvature):
        """Sum of curvature [x, 1] [x, 1]' over the rows, in single precision."""
        width, root = self.X.shape[1] + 1, np.sqrt(curvature)

        def product(part):
            Z = np.empty((part.stop - part.start, width), dtype=np.float32)
            scale_rows(self._features(part), root[part], Z)
            return ((Z.T @ Z).astype(np.float64),)

        return self._summed(product)[0]

    def _features(self, part):
        """Features of a slice of the constraint rows, in double precision."""
        X = self.X if self._all_at_once else self.X[self._data_rows(part)]
        return X.astype(np.float64, copy=False)

    def _data_rows(self, part):
        return part if self.one_to_one else self.index[part]

    def _summed(self, sums):
        """Sums (tuple) of slices of the constraint rows, which threads share out.

        They are added in the order of the rows, so that bits are the same for any
        number of threads.
        """
        pieces = self._pieces()
        out = [None] * len(pieces)

        def work(k, _, stop):
            for part in pieces[k]:
                if stop.is_set():
                    break
                more = sums(part)
                out[k] = more if out[k] is None else _added(out[k], more)

        share_out(work, len(pieces), self.X.size)  # a nanosecond for an entry
        return functools.reduce(_added, out)

    @property
    def _all_at_once(self):
        """True if a pass takes all rows together: parts of sparse ones are copies."""
        return self.sparse and self.one_to_one

    def _pieces(self):
        """Slices of the constraint rows, grouped by those that one thread takes."""
        n = len(self.rows.q)
        size = max(n, 1) if self._all_at_once else _CHUNK
        parts = [slice(lo, min(lo + size, n)) for lo in range(0, max(n, 1), size)]
        each = max(1, -(-len(parts) // _PIECES))
        return [parts[lo : lo + each] for lo in range(0, len(parts), each)]

    def certified(self, x, lam):
        """Certificate of weights and bias x (d + 1,) by the multipliers of its pass."""
        lam = self.repaired(lam)
        J, gap, bias, w, _ = self.certify(lam, x[-1], x[:-1])
        return Certified((lam, bias, w), J, gap)

    def certify(self, lam, guess=0.0, w=None):
        """Certificate of multipliers, everything recomputed from them.

        The primal point is the machine of the multipliers, or the weights w if they
        are given: then the gap has half the squared distance of the two besides.

        Returns (objective, gap, bias, w, shortfalls).
        """
        rows, p = self.rows, self.problem
        a = self.collect(lam)
        dual_w = self.transposed_times(a)
        w = dual_w if w is None else w
        d = rows.q - self.sign * self.expand(self.times(w))
        objective = rows.value(lam) - 0.5 * float(dual_w @ dual_w)
        if self.flat:
            b = best_bias(rows, d, self.sign, guess)
        else:
            b = p.bias_variance * float(a.sum())
            objective -= 0.5 * b * float(a.sum())
        d = d - self.sign * b
        if rows.potential.hard:
            norm = float(w @ w) + b * float(a.sum()) * (not self.flat)
            return objective, rows.hard_gap(d, norm, objective), b, w, d
        apart = float((w - dual_w) @ (w - dual_w))
        return objective, rows.gap(lam, d) + 0.5 * apart, b, w, d

    def repaired(self, lam):
        """Multipliers that satisfy the equality of a flat bias exactly."""
        if not self.flat:
            return lam
        return repair_equality(lam, self.rows.upper, self.sign[:, None])
