"""Solvers of multi-class duals too large for the interior point.

Coordinate ascent over the constraints of one example at a time: in random blocks with
their Gram matrix for kernels, with one weight vector a class for linear machines. And
L-BFGS on the primal of linear machines with a smooth loss.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

from maxent._core.joint import joint_block, joint_csr, joint_dense
from maxent._optimize.certificate import certify, repair_equality
from maxent._optimize.quadratics import Quadratic
from maxent._support.gram_store import PartGram
from maxent._support.results import Certified, DualResult, Monitor, Status
from maxent.discrimination.duals._proximal_bias import ProximalBias

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


def solve_coordinate(
    scores,
    constraints,
    flat,
    *,
    tol,
    max_iter,
    worth=None,
    callback=None,
    seed=0,
):
    """Ascend until the certificate holds.

    Parameters
    ----------
    scores : KernelScores or LinearScores
    constraints : MulticlassRows
    flat : bool
        Is the prior of the biases flat?
    tol : float
        Stop when gap <= tol * (1 + objective).
    max_iter : int
        Sweeps over the examples.
    worth : callable(in_play) or None
        Bound on the sweeps, None for no other than max_iter, where so many constraints
        have a multiplier or ask for one.

    Returns
    -------
    DualResult
        `lam` (n * (m - 1),), `bias` (m - 1,) against the last class for a flat prior,
        else None.
    """
    ascent = _CoordinateAscent(scores, constraints, flat, tol, seed)
    monitor = Monitor(tol, callback, solver="coordinate")
    status, n_iter, next_check = Status.MAX_ITER, 0, 0
    while n_iter < max_iter and status is Status.MAX_ITER:
        n_iter += 1
        if not ascent.sweep():
            status = Status.NONFINITE
        elif n_iter >= next_check and (
            ascent.nearly_done() or n_iter % 50 == 0 or n_iter == max_iter
        ):
            status = ascent.check(n_iter, monitor)
            next_check = n_iter + 2
            bound = None if worth is None else worth(ascent.in_play)
            if bound is not None and _out_of_reach(monitor.history, tol, bound):
                break
    best = ascent.best(monitor)
    lam, b = best.point
    return DualResult(
        lam,
        b,
        best.objective,
        best.gap,
        n_iter,
        status,
        solver="coordinate",
        history=monitor.history,
    )


def _out_of_reach(history, tol, bound):
    """Whether the gap, falling as it last did, is not to meet tol in time.

    Asked of a quarter of the bound on the sweeps at least; the pace is that of the
    latter half.
    """
    sweeps, J, _ = history[-1]
    half = [gap for n_iter, _, gap in history if n_iter >= sweeps / 2]
    gap, allowed = min(half), tol * (1.0 + max(J, 0.0))
    if sweeps < bound / 4 or len(half) < 2 or gap <= allowed:
        return False
    if not gap < np.inf:
        return True
    pace = np.log(half[0] / gap) / (sweeps / 2)
    return np.log(gap / allowed) > pace * (bound - sweeps)


def _best_of(monitor, rows, scores, E):
    """The best certification; zero multipliers if none was of balanced ones."""
    if monitor.best is not None:
        return monitor.best
    lam = np.zeros(len(rows.q))
    J, gap, b, _ = certify(rows, scores, lam, E, np.zeros(scores.c.m - 1))
    return Certified((lam, b), J, gap)


class _CoordinateAscent:
    """Multipliers, scores and biases, kept up to date by sweeps over the examples."""

    def __init__(self, scores, constraints, flat, tol, seed):
        c, v = constraints, scores.class_weight_variance
        self.scores, self.c, self.rows, self.tol = scores, c, c.rows, tol
        self.rng = np.random.default_rng(seed)
        self.E = c.incidence() if flat else None
        self.bias = ProximalBias(c.m, flat, v * scores.variance, v * scores.diagonal)
        self.lam = np.zeros((c.n, c.m - 1))
        if not self.rows.potential.finite_at_zero:
            self.lam[:] = self.rows.start_inside().reshape(self.lam.shape)
            beta = self._beta()
            scores.begin(beta)
            self.bias.add(beta.sum(axis=0))
        self.objective, self.total = 0.0, np.inf
        self.in_play = self.lam.size  # constraints, when last certified
        self.last = None

    def _beta(self):
        return self.c.beta(self.lam.reshape(-1))

    def sweep(self):
        """Visit the examples once; whether the objective is finite."""
        bias = self.bias
        self.total = self.scores.sweep(self.lam, bias.value, bias.variance, self.rng)
        beta = self._beta()
        bias.end_sweep(beta.sum(axis=0))
        value = self.rows.value(self.lam.reshape(-1))
        self.objective = value - self.scores.norm(beta)
        return np.isfinite(self.objective)

    def nearly_done(self):
        """Whether the terms met are within the tolerance."""
        return self.total <= self.tol * (1 + max(self.objective, 0.0))

    def check(self, n_iter, monitor):
        """Certify the multipliers, balanced; the status that follows."""
        rows, scores, b = self.rows, self.scores, self.bias.value
        lam = repair_equality(self.lam.reshape(-1), rows.upper, self.E)
        J, gap, b, d = certify(rows, scores, lam, self.E, b[:-1] - b[-1])
        if lam is not None:
            lam = lam.copy()
            allowed = self.tol * (1.0 + max(J, 0.0))
            self.in_play = np.count_nonzero(self.c.in_play(lam, d, allowed))
            self.last = Certified((lam, b), J, gap)
        if monitor.record(n_iter, J, gap, (lam, b)):
            return monitor.status
        if rows.potential.hard and J * min(1.0, float(scores.diagonal.mean())) > 1e12:
            return Status.UNBOUNDED
        scores.refresh(self._beta())
        return Status.MAX_ITER

    def best(self, monitor):
        """The point of the smallest gap; the last one while no margin is met."""
        known = monitor.best
        if self.last is not None and (known is None or not known.gap < np.inf):
            return self.last
        return _best_of(monitor, self.rows, self.scores, self.E)


class _Enough(Exception):
    """The certificate holds, or the callback stops: leave the optimiser."""


def solve_primal(scores, constraints, flat, *, tol, max_iter, callback=None):
    """L-BFGS on the conjugate loss of a linear machine, until the certificate holds.

    Parameters and result as for :func:`solve_coordinate`; for dense features and priors
    with a smooth loss.
    """
    loss = _PrimalLoss(scores, constraints, flat)
    monitor, count = Monitor(tol, callback, solver="lbfgs"), 0

    def certify_at(x):
        lam, b = loss.multipliers(x)
        J, gap, b, _ = certify(constraints.rows, scores, lam, loss.E, b)
        if monitor.record(count, J, gap, (lam, b)):
            raise _Enough

    def step(x):
        nonlocal count
        count += 1
        if count % 20 == 0:
            certify_at(x)

    x = np.zeros(loss.size)
    options = {"maxfun": 100 * max_iter, "maxcor": 30, "ftol": 0.0, "gtol": 1e-10}
    try:
        for _ in range(3):  # fresh curvature pairs help near the optimum
            options["maxiter"] = max(max_iter - count, 1)
            x = minimize(
                loss, x, jac=True, method="L-BFGS-B", callback=step, options=options
            ).x
            certify_at(x)
        status = Status.MAX_ITER if count >= max_iter else Status.STALLED
    except _Enough:
        status = monitor.status
    best = _best_of(monitor, loss.rows, scores, loss.E)
    lam, b = best.point
    return DualResult(
        lam,
        b,
        best.objective,
        best.gap,
        count,
        status,
        solver="lbfgs",
        history=monitor.history,
    )


class _PrimalLoss:
    """Conjugate loss and Gaussian penalty of class weights and biases, one vector.

    Parameters
    ----------
    scores : LinearScores
        With dense features.
    constraints : MulticlassRows
    flat : bool
    """

    def __init__(self, scores, constraints, flat):
        self.scores, self.c, self.rows = scores, constraints, constraints.rows
        self.E = constraints.incidence() if flat else None
        self.with_bias = flat or scores.variance > 0
        self.precision = 0.0 if flat or not scores.variance else 1.0 / scores.variance
        self.weights = constraints.m * scores.X.shape[1]
        self.size = self.weights + (constraints.m if self.with_bias else 0)

    def _split(self, x):
        W = x[: self.weights].reshape(self.c.m, -1)
        return W, x[self.weights :] if self.with_bias else np.zeros(self.c.m)

    def _loss(self, W, b):
        scores = self.scores.X @ W.T + b
        return self.rows.loss(self.rows.q - self.c.margins(scores))[:2]

    def __call__(self, x):
        """The primal objective and its gradient."""
        scores, (W, b) = self.scores, self._split(x)
        value, lam = self._loss(W, b)
        beta = self.c.beta(lam)
        squares = float(np.vdot(W, W)) + self.precision * float(b @ b)
        parts = [(W / scores.class_weight_variance - beta.T @ scores.X).reshape(-1)]
        if self.with_bias:
            parts.append(
                self.precision / scores.class_weight_variance * b - beta.sum(axis=0)
            )
        return value + 0.5 / scores.class_weight_variance * squares, np.concatenate(
            parts
        )

    def multipliers(self, x):
        """Balanced multipliers (None if they are far from it) and m - 1 biases."""
        W, b = self._split(x)
        lam = repair_equality(self._loss(W, b)[1], self.rows.upper, self.E)
        return lam, b[:-1] - b[-1]
