"""Joint multi-class duals too large for the interior point.

Coordinate ascent over the constraints of one example at a time: in random blocks with
their Gram matrix for kernels, with one weight vector a class for linear machines. A
flat bias is reached by the method of multipliers: every sweep has a Gaussian prior
around the biases of the sweep before.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

from maxent._core.joint import joint_block, joint_csr, joint_dense
from maxent._optimize.certificate import certify, repair_equality
from maxent._optimize.quadratics import Quadratic
from maxent._support.gram_store import PartGram
from maxent._support.results import DualResult, Status, relative_gap

_BLOCK = 512  # examples whose Gram matrix stays in cache
_PASSES = 3


class KernelSide(Quadratic):
    """Scores, sweeps and exact margins of a kernel machine.

    Parameters
    ----------
    kernel : VectorKernel
    constraints : MulticlassRows
    share : float
        Variance of the weights of each class.
    variance : float
        Variance of the bias of each class (not times share), 0 for none or flat.
    cache_size : float
        Memory for kernel values, in MB.
    """

    def __init__(self, kernel, constraints, share, variance, cache_size):
        self.kernel, self.c = kernel, constraints
        self.share, self.variance = share, variance
        self.diagonal = kernel.diagonal()
        n = constraints.n
        self.F = np.zeros((n, constraints.m))
        self.store = None
        if 4e-6 * n * n <= cache_size:
            self.store = PartGram(kernel, n)
            self.store.add(np.arange(n))

    # -- the regulariser, as the certificate wants it --------------------------------
    def value_and_margins(self, lam):
        """(half the squared norm, margins without flat bias), from scratch."""
        beta = self.c.beta(lam)
        used = np.flatnonzero(beta.any(axis=1))
        scores = self.share * np.asarray(self.kernel.apply(used, beta[used]))
        scores += self.share * self.variance * beta.sum(axis=0)
        return 0.5 * float(np.vdot(beta, scores)), self.c.margins(scores)

    def norm(self, beta):
        """Half the squared norm, from the scores at hand."""
        return 0.5 * float(np.vdot(beta, self.F))

    def begin(self, beta):
        """Scores of given coefficients."""
        used = np.flatnonzero(beta.any(axis=1))
        if len(used):
            self.F = self.share * np.asarray(
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
                self.share,
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
                self.add(block[moved], self.share * change[moved], active)
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


class LinearSide(Quadratic):
    """The same for the linear kernel: weights, never kernel values."""

    def __init__(self, X, constraints, share, variance):
        self.c, self.share, self.variance = constraints, share, variance
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

    def _weights(self, beta):
        W = self.share * np.asarray(self.X.T @ beta)
        return W if self.sparse else np.ascontiguousarray(W.T)

    def value_and_margins(self, lam):
        """(half the squared norm, margins without flat bias), from scratch."""
        beta = self.c.beta(lam)
        W = self.share * np.asarray(self.X.T @ beta)
        b = self.share * self.variance * beta.sum(axis=0)
        value = 0.5 / self.share * float(np.vdot(W, W))
        value += 0.5 * float(b @ beta.sum(axis=0))
        return value, self.c.margins(np.asarray(self.X @ W) + b)

    def norm(self, beta):
        """Half the squared norm, from the weights at hand."""
        return 0.5 / self.share * float(np.vdot(self.W, self.W))

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
            self.share,
            variance,
            rng.permutation(c.n),
            lam,
            self.W,
            bias,
        )

    def refresh(self, beta):
        """Nothing is out of play here."""


def solve_joint(side, constraints, flat, *, tol, max_iter, callback=None, seed=0):
    """Ascend until the certificate holds.

    Parameters
    ----------
    side : KernelSide or LinearSide
    constraints : MulticlassRows
    flat : bool
        Is the prior of the biases flat?
    tol : float
        Stop when gap <= tol * (1 + objective).
    max_iter : int
        Sweeps over the examples.

    Returns
    -------
    DualResult
        `lam` (n * (m - 1),), `bias` (m - 1,) against the last class for a flat prior,
        else None.
    """
    c, rows = constraints, constraints.rows
    rng = np.random.default_rng(seed)
    E = c.incidence() if flat else None
    mean = float(np.mean(side.diagonal)) or 1.0
    variance = side.share * (mean if flat else side.variance)
    lam = np.zeros((c.n, c.m - 1))
    bias = np.zeros(c.m)
    entropy = not rows.potential.finite_at_zero
    if entropy:
        lam[:] = rows.start_inside().reshape(lam.shape)
        beta = c.beta(lam.reshape(-1))
        side.begin(beta)
        bias += variance * beta.sum(axis=0)
    history, best, status, sweep = [], None, Status.MAX_ITER, 0
    wait = 0
    for sweep in range(1, max_iter + 1):
        total = side.sweep(lam, bias, variance, rng)
        beta = c.beta(lam.reshape(-1))
        if flat:
            bias += variance * beta.sum(axis=0)
            bias -= bias.mean()
        objective = rows.value(lam.reshape(-1)) - side.norm(beta)
        if not np.isfinite(objective):
            status = Status.NONFINITE
            break
        if sweep < wait or not (
            total <= tol * (1 + max(objective, 0.0)) or sweep % 50 == 0
        ):
            continue
        wait = sweep + 2
        exact = repair_equality(lam.reshape(-1), rows.upper, E)
        guess = bias[:-1] - bias[-1]
        J, gap, b, _ = certify(rows, side, exact, E, guess)
        history.append((sweep, J, gap))
        if callback is not None:
            callback(sweep, J, gap)
        if exact is not None and (best is None or gap < best[2]):
            best = (exact.copy(), J, gap, b)
        if relative_gap(gap, J) <= tol:
            status = Status.CONVERGED
            break
        if rows.potential.hard and J * min(1.0, mean) > 1e12:
            status = Status.UNBOUNDED
            break
        side.refresh(beta)
    if best is None:
        exact = np.zeros(c.n * (c.m - 1))
        if entropy:
            exact = None
        best = (
            lam.reshape(-1) if exact is None else exact,
            *certify(rows, side, exact, E, bias[:-1] - bias[-1])[:3],
        )
    lam, J, gap, b = best
    return DualResult(
        lam, b, J, gap, sweep, status, solver="coordinate", history=history
    )


class _Enough(Exception):
    """The certificate holds: leave the optimiser."""


def solve_primal(side, constraints, flat, *, tol, max_iter, callback=None):
    """L-BFGS on the conjugate loss of a linear machine, until the certificate holds.

    Parameters and result as for :func:`solve_joint`; for dense features and priors
    with a smooth loss.
    """
    c, rows, X = constraints, constraints.rows, side.X
    n, m, d = c.n, c.m, X.shape[1]
    E = c.incidence() if flat else None
    free_bias = flat or side.variance > 0
    precision = 0.0 if flat or not side.variance else 1.0 / side.variance
    history, best = [], None

    def split(x):
        return x[: m * d].reshape(m, d), x[m * d :] if free_bias else np.zeros(m)

    def multipliers(x):
        W, b = split(x)
        scores = X @ W.T + b
        return rows.loss(rows.q - c.margins(scores))[:2]

    def primal(x):
        W, b = split(x)
        value, lam = multipliers(x)
        beta = c.beta(lam)
        value += 0.5 / side.share * (float(np.vdot(W, W)) + precision * float(b @ b))
        parts = [(W / side.share - beta.T @ X).reshape(-1)]
        if free_bias:
            parts.append(precision / side.share * b - beta.sum(axis=0))
        return value, np.concatenate(parts)

    def look(x):
        nonlocal best
        _, b = split(x)
        lam = repair_equality(multipliers(x)[1], rows.upper, E)
        J, gap, b, _ = certify(rows, side, lam, E, b[:-1] - b[-1])
        history.append((len(history) + 1, J, gap))
        if callback is not None:
            callback(count, J, gap)
        if lam is not None and (best is None or gap < best[1][1]):
            best = (lam, (J, gap, b))
        return relative_gap(gap, J) <= tol

    count = 0

    def step(x):
        nonlocal count
        count += 1
        if count % 20 == 0 and look(x):
            raise _Enough

    x = np.zeros(m * d + (m if free_bias else 0))
    status = Status.MAX_ITER
    try:
        for _ in range(3):  # fresh curvature pairs help near the optimum
            result = minimize(
                primal,
                x,
                jac=True,
                method="L-BFGS-B",
                callback=step,
                options={
                    "maxiter": max(max_iter - count, 1),
                    "maxfun": 100 * max_iter,
                    "maxcor": 30,
                    "ftol": 0.0,
                    "gtol": 1e-10,
                },
            )
            x = result.x
            if look(x):
                raise _Enough
        status = Status.MAX_ITER if count >= max_iter else Status.STALLED
    except _Enough:
        status = Status.CONVERGED
    if best is None:
        lam = np.zeros(n * (m - 1))
        best = (lam, certify(rows, side, lam, E, np.zeros(m - 1))[:3])
    lam, (J, gap, b) = best
    return DualResult(lam, b, J, gap, count, status, solver="lbfgs", history=history)
