"""Kernel duals: the certified machines behind classification and regression.

Signed form: one multiplier a_t per row, a_t = y_t lam_t for a class label (one sign),
a_t = lam_t+ - lam_t- for a regression target (both signs, a kink at zero):

    maximise  sum_t [ target_t a_t + phi_t(|a_t|) ] - a' K a / 2 - bias potential
    f(x) = sum_t a_t k(x_t, x) + b

Small problems go to the interior point; the others to working sets: a single-precision
Gram matrix of the rows in play, sequential minimal optimisation on it, and residuals
recomputed in double precision on all rows until the certificate holds.

Source: Jaakkola, Meila & Jebara (1999), Theorem 2; Jebara & Jaakkola (2000).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxent._core.smo import smo
from maxent._support import validation as v
from maxent._support.results import CORE_STATUS, DualResult, Status, relative_gap
from maxent._support.threads import effective_threads, single_threaded_blas
from maxent._support.vector_kernels import VectorKernel, resolve_gamma
from maxent.discrimination._interior import DenseQuadratic, interior_point
from maxent.discrimination.certificate import Rows, best_bias
from maxent.discrimination.margins import check_asks_for_something

_INTERIOR_ROWS = 200  # below this the interior point wins outright
_INTERIOR_LIMIT = 4000  # above this its O(n^3) steps are too long
POSITIVE, NEGATIVE, BOTH = 1, 2, 3


@dataclass
class SignedProblem:
    """A dual over signed multipliers.

    Attributes
    ----------
    margin : MarginPrior
    level, rate, weight, target : ndarray (n,)
    sides : ndarray of int8 (n,)
        POSITIVE, NEGATIVE or BOTH: the signs a multiplier may take.
    bias : "flat", float or None
        Flat prior, variance of a Gaussian prior, or no bias.
    """

    margin: object
    level: np.ndarray
    rate: np.ndarray
    weight: np.ndarray
    target: np.ndarray
    sides: np.ndarray
    bias: object

    def rows(self):
        """(Rows, index of the data row, sign): one entry per allowed side."""
        pos = np.flatnonzero(self.sides & POSITIVE)
        neg = np.flatnonzero(self.sides & NEGATIVE)
        index = np.concatenate([pos, neg])
        sign = np.concatenate([np.ones(len(pos)), -np.ones(len(neg))])
        order = np.argsort(index, kind="stable")
        index, sign = index[order], sign[order]
        q = self.level[index] + sign * self.target[index]
        rows = Rows(self.margin, q, self.rate[index], self.weight[index])
        return rows, index, sign

    @property
    def bias_variance(self):
        """Variance added to every kernel entry (0 for flat and none)."""
        return 0.0 if self.bias in ("flat", None) else float(self.bias)


class Certifier:
    """Objective, gap and bias of signed multipliers from f = K a."""

    def __init__(self, problem):
        self.problem = problem
        self.rows, self.index, self.sign = problem.rows()

    def split(self, a):
        """Nonnegative multiplier of every constraint row."""
        return np.maximum(self.sign * a[self.index], 0.0)

    def __call__(self, a, f, guess=0.0):
        """(objective, gap, bias); f excludes the bias, and a sums to 0 if flat."""
        p, rows = self.problem, self.rows
        lam = self.split(a)
        objective = rows.potential(lam) - 0.5 * float(a @ f)
        d = rows.q - self.sign * f[self.index]
        if p.bias == "flat":
            b = best_bias(rows, d, self.sign, guess)
        else:
            total = float(a.sum())
            b = p.bias_variance * total
            objective -= 0.5 * b * total
        d = d - self.sign * b
        if p.margin.name == "fixed":
            norm = float(a @ f) + p.bias_variance * float(a.sum()) ** 2
            return objective, rows.hard_gap(d, norm, objective), b
        return objective, rows.gap(lam, d), b


def solve_signed(
    kernel,
    problem,
    *,
    tol,
    kkt_tol=None,
    max_iter,
    init=None,
    solver="auto",
    cache_size=500.0,
    callback=None,
):
    """Solve a signed kernel dual to a certified gap.

    Parameters
    ----------
    kernel : VectorKernel
    problem : SignedProblem
    tol : float
        Relative duality gap, gap <= tol * (1 + objective).
    kkt_tol : float or None
        Optimality gap asked for in margin units besides the duality gap; None asks
        for the duality gap alone.
    max_iter : int
        Steps of the working-set solver, or of the interior point.
    init : ndarray (n,) or None
        Signed multipliers to start from.
    solver : {"auto", "interior", "smo"}
    cache_size : float
        Memory for the Gram matrix of the rows in play, in MB.
    callback : callable(n_iter, objective, gap) or None

    Returns
    -------
    DualResult
        `lam` holds the signed multipliers a_t.
    """
    n = len(problem.level)
    if solver == "auto":
        fits = 8e-6 * n * n * 3 <= max(cache_size, 100.0)
        small = n <= _INTERIOR_ROWS
        sharp = n <= _INTERIOR_LIMIT and tol < 1e-7
        smooth = problem.margin.name == "logistic" and n <= 2000
        solver = "interior" if fits and (small or sharp or smooth) else "smo"
    with single_threaded_blas():
        if solver == "interior":
            result = _solve_interior(kernel, problem, tol, min(max_iter, 500), init)
        elif solver == "smo":
            result = _WorkingSets(
                kernel, problem, tol, kkt_tol, max_iter, cache_size, callback
            ).solve(init)
        else:
            raise ValueError(
                f"solver={solver!r} is not known; use 'auto', 'interior' or 'smo'."
            )
    refuse_inseparable(problem, result)
    return result


def refuse_inseparable(problem, result):
    """Raise where no certified answer exists, naming the cause."""
    if result.status is Status.UNBOUNDED or (
        problem.margin.name == "fixed"
        and result.status is not Status.CONVERGED
        and not np.isfinite(result.gap)
    ):
        raise ValueError(
            f"the data cannot be separated with the fixed margin "
            f"{problem.margin!r}: the dual is unbounded (objective "
            f"{result.objective:.3g} and growing). Use a margin prior that allows "
            "losses, such as margin='exponential', or a richer kernel."
        )
    if result.status is Status.NONFINITE:
        raise FloatingPointError(
            f"the objective became non-finite at iteration {result.n_iter}; "
            "scale the features or the kernel."
        )


def _solve_interior(kernel, problem, tol, max_iter, init):
    rows, index, sign = problem.rows()
    everything = np.arange(len(kernel))
    K = kernel.block(everything, everything)
    if problem.bias_variance:
        K = K + problem.bias_variance
    Q = K[np.ix_(index, index)] * sign[:, None] * sign[None, :]
    E = sign[:, None] if problem.bias == "flat" else None
    start = None
    if init is not None:
        start = np.maximum(sign * init[index], 0.0)
    result = interior_point(
        rows, DenseQuadratic(Q), E, tol=tol, max_iter=max_iter, init=start
    )
    a = np.zeros(len(kernel))
    np.add.at(a, index, sign * result.lam)
    f = K @ a - problem.bias_variance * a.sum()
    guess = 0.0 if result.bias is None else float(result.bias[0])
    objective, gap, b = Certifier(problem)(a, f, guess)
    result.lam, result.bias = a, b
    result.objective, result.gap = objective, gap
    if relative_gap(gap, objective) <= tol:
        result.status = Status.CONVERGED
    elif result.status is Status.CONVERGED:
        result.status = Status.STALLED
    return result


class _WorkingSets:
    """Growing sets of rows; SMO inside, double-precision residuals outside."""

    # rows of the first subset, and the number of rows below which all are taken
    FIRST = 2000

    def __init__(self, kernel, problem, tol, kkt_tol, max_iter, cache_size, callback):
        self.kernel, self.p = kernel, problem
        self.tol = tol
        # the duality gap is quadratic in the optimality gap
        guess = min(max(0.1 * np.sqrt(tol), 1e-9), 1e-3)
        self.kkt = guess if kkt_tol is None else kkt_tol
        self.kkt_asked = np.inf if kkt_tol is None else kkt_tol
        self.max_iter = max_iter
        self.callback = callback
        self.certify = Certifier(problem)
        self.n = len(problem.level)
        self.limit = max(64, int(np.sqrt(cache_size * 1e6 / 4.0)) - 32)
        self.free_bias = problem.bias == "flat"
        self.steps = 0
        self.history = []
        self.gram = None
        self.set = None

    # -- pieces --------------------------------------------------------------------
    def one_sided(self, a, f, b):
        """(up, low) derivatives of every row at decision values f + b."""
        p = self.p
        unit = np.abs(a) / (p.weight * p.rate)
        rows = Rows(p.margin, p.level, p.rate, p.weight)
        slope = p.level + rows._call(1, unit) / p.rate
        base = p.target - f - b
        sign = np.sign(a)
        at_zero = a == 0
        up = base + np.where(at_zero, slope, sign * slope)
        low = base + np.where(at_zero, -slope, sign * slope)
        top = np.abs(a) >= p.margin._upper * p.weight * p.rate * (1 - 1e-15)
        up[(at_zero & ((p.sides & POSITIVE) == 0)) | (top & (a > 0))] = -np.inf
        low[(at_zero & ((p.sides & NEGATIVE) == 0)) | (top & (a < 0))] = np.inf
        return up, low

    def f_of(self, a, single=False):
        """K a over all rows, from scratch."""
        columns = np.flatnonzero(a)
        if not len(columns):
            return np.zeros(self.n)
        return np.asarray(
            self.kernel.apply(columns, a[columns, None], single=single)[:, 0],
            dtype=np.float64,
        )

    def run(self, rows, a, f, b, kkt):
        """SMO on the rows, from residuals f; a is changed in place."""
        p = self.p
        extra = 0 if self.free_bias else 1
        if self.set is None or not np.array_equal(rows, self.set):
            self.gram = None  # free before the next one is allocated
            self.gram = self.kernel.gram32(rows, extra=extra)
            self.set = rows
        m = len(rows)

        def with_bias_row(x, value):
            return np.append(x[rows], value) if extra else x[rows].copy()

        part = with_bias_row(a, 0.0)
        if extra:
            # The bias as one more row without potential: K_bb = variance.
            part[m] = -float(a.sum())
            self.gram[m, m] = p.bias_variance
        residual = with_bias_row(p.target - f - b, 0.0)
        if extra:
            residual[m] = -p.bias_variance * part[m] - b
        steps, violation, middle, code = smo(
            p.margin.core_spec,
            self.gram,
            part,
            residual,
            with_bias_row(p.level, 0.0),
            with_bias_row(p.rate, np.inf),
            with_bias_row(p.weight, np.inf),
            with_bias_row(p.sides, BOTH).astype(np.int8),
            kkt,
            max(self.max_iter - self.steps, 0),
        )
        self.steps += steps
        a[rows] = part[:m]
        return violation, b + middle, CORE_STATUS[code]

    def start(self, init):
        """Feasible multipliers to start from."""
        p = self.p
        if init is not None:
            a = np.array(init, dtype=np.float64)
        elif p.margin.name == "logistic":
            # the slope is infinite at zero: start inside
            a = 1e-2 * p.weight * p.rate * np.where(p.sides == NEGATIVE, -1.0, 1.0)
            if (p.sides == BOTH).any():
                a[:] = 0.0
        else:
            return np.zeros(self.n)
        if self.free_bias:
            total_up, total_low = a[a > 0].sum(), -a[a < 0].sum()
            if total_up > 0 and total_low > 0:
                target = min(total_up, total_low)
                a[a > 0] *= target / total_up
                a[a < 0] *= target / total_low
            else:
                a[:] = 0.0
        return a

    def balance(self, a):
        """Remove the rounding error of sum a = 0."""
        for _ in range(3):
            total = a.sum()
            if total == 0 or not self.free_bias:
                return
            top = self.p.margin._upper * self.p.weight * self.p.rate
            room = np.minimum(
                np.abs(a), np.where(np.isfinite(top), top, np.inf) - np.abs(a)
            )
            w = np.maximum(room, 0.0) ** 2
            if not w.sum() > 0:
                return
            a -= w * (total / w.sum())

    # -- the loop --------------------------------------------------------------------
    def solve(self, init):
        """Grow the working set until the certificate holds on all rows."""
        a = self.start(init)
        cold = not a.any()
        f = np.zeros(self.n) if cold else self.f_of(a)
        b = 0.0
        if self.free_bias and not cold:
            b = self.certify(a, f)[2]
        kkt, best, status = self.kkt, None, Status.MAX_ITER
        rows = self.first_set(cold)
        grown = len(rows) == self.n
        stalled = 0
        for _ in range(200):
            loose = kkt if grown else max(10 * kkt, 1e-2)
            _, b, code = self.run(rows, a, f, b, loose)
            self.balance(a)
            if code in (Status.UNBOUNDED, Status.NONFINITE):
                status = code
                break
            if not grown:
                # single precision suffices to choose the next rows
                f = self.f_of(a, single=True)
                rows = self.next_set(a, f, b, kkt)
                grown = True
                continue
            f = self.f_of(a)
            objective, gap, b = self.certify(a, f, b)
            self.history.append((self.steps, objective, gap))
            if self.callback is not None:
                self.callback(self.steps, objective, gap)
            up, low = self.one_sided(a, f, b)
            worst = float(up.max() - low.min())
            improved = best is None or gap < 0.9 * best[2]
            if best is None or gap < best[2]:
                best = (a.copy(), objective, gap, b)
            if relative_gap(gap, objective) <= self.tol and worst <= 2 * self.kkt_asked:
                status = Status.CONVERGED
                break
            if self.steps >= self.max_iter:
                break
            stalled = 0 if improved else stalled + 1
            if stalled >= 8:
                status = Status.STALLED
                break
            if len(rows) < self.n:
                rows = self.extended_set(rows, a, up, low, kkt)
            if worst <= 2 * kkt:
                kkt = max(0.1 * kkt, 1e-14)
        if best is None:
            objective, gap, b = self.certify(a, self.f_of(a), b)
            best = (a, objective, gap, b)
        a, objective, gap, b = best
        if (
            self.p.margin.name == "fixed"
            and status in (Status.MAX_ITER, Status.STALLED)
            and not np.isfinite(gap)
        ):
            status = Status.UNBOUNDED
        return DualResult(
            a,
            b,
            objective,
            gap,
            self.steps,
            status,
            solver="smo",
            history=self.history,
        )

    def first_set(self, cold):
        """All rows, or evenly spread rows that give a first idea of the machine."""
        n = self.n
        dense = self.kernel.spec is not None
        small = n <= 2 * self.FIRST or not cold or not dense
        if small and n <= self.limit:
            return np.arange(n)
        size = min(max(self.FIRST, n // 4), self.limit)
        # evenly through the rows of each kind, so that any order of rows will do
        kind = np.lexsort((np.arange(n), self.p.target, self.p.sides))
        pick = kind[np.linspace(0, n - 1, size).astype(np.intp)]
        return np.unique(pick)

    def next_set(self, a, f, b, kkt):
        """Rows that are in play or ask for it, worst first, as memory allows."""
        up, low = self.one_sided(a, f, b)
        excess = np.maximum(up, -low)
        excess[a != 0] = np.inf
        chosen = excess > -0.05
        count = int(chosen.sum())
        room = min(self.n, self.limit)
        if count >= 0.8 * self.n and self.n <= room:
            return np.arange(self.n)
        if count > room:
            chosen = np.zeros(self.n, dtype=bool)
            chosen[np.argpartition(-excess, room - 1)[:room]] = True
        return np.flatnonzero(chosen)

    def extended_set(self, rows, a, up, low, kkt):
        """Add the violators; when memory is short, drop settled rows for them."""
        excess = np.maximum(up, -low)
        inside = np.zeros(self.n, dtype=bool)
        inside[rows] = True
        new = ~inside & (excess > 0.5 * kkt)
        if not new.any():
            return rows
        room = min(self.n, self.limit)
        if inside.sum() + new.sum() <= room:
            return np.flatnonzero(inside | new)
        violation = np.maximum(up, -low)
        violation[a != 0] = np.maximum(violation[a != 0], 0.0)
        keep = np.argpartition(-violation, room - 1)[:room]
        return np.sort(keep)


def binary_problem(y, margin, bias, sample_weight):
    """SignedProblem of a two-class machine; y in {-1, +1}."""
    n = len(y)
    weight = np.ones(n) if sample_weight is None else sample_weight
    return SignedProblem(
        margin,
        np.full(n, margin.level),
        np.full(n, margin.rate),
        np.ascontiguousarray(weight, dtype=np.float64),
        np.zeros(n),
        np.where(y > 0, POSITIVE, NEGATIVE).astype(np.int8),
        bias,
    )


def drop_weightless(sample_weight, n, *arrays):
    """Drop rows of weight zero: (weights or None, kept rows or None, arrays)."""
    w = v.check_weights(sample_weight, n)
    if w is None or (w > 0).all():
        return w, None, arrays
    keep = np.flatnonzero(w > 0)
    return w[keep], keep, tuple(x[keep] for x in arrays)


def _unsigned(result, y, keep, n):
    """Result with lam = |a| over all rows."""
    lam = np.abs(result.lam)
    if keep is not None:
        full = np.zeros(n)
        full[keep] = lam
        lam = full
    result.lam = lam
    return result


def _clip_to_domain(a, problem):
    """Warm starts strictly inside the domain of the potentials."""
    top = problem.margin._upper * problem.weight * problem.rate
    if problem.margin._closed:
        return np.clip(a, -top, top)
    return np.clip(a, -(1 - 1e-9) * top, (1 - 1e-9) * top)


def solve_dual(
    K,
    y,
    margin,
    *,
    bias="flat",
    sample_weight=None,
    tol=1e-6,
    max_iter=10_000_000,
    init=None,
    solver="auto",
    callback=None,
):
    """Solve the two-class maximum entropy discrimination dual of a kernel matrix.

    maximise ``sum_t phi_t(lam_t) - 1/2 sum_st lam_s lam_t y_s y_t K_st`` over
    ``0 <= lam_t < upper``, with ``sum_t lam_t y_t = 0`` for a flat bias prior
    (JMJ 1999, eq. 14). The decision value of row s is
    ``sum_t lam_t y_t K_st + bias``.

    Parameters
    ----------
    K : array-like (n, n)
        Kernel matrix, symmetric, positive semidefinite.
    y : array-like (n,)
        Labels -1 and +1.
    margin : MarginPrior
    bias : {"flat", None} or float, default="flat"
        Prior of the bias: flat, none, or Gaussian with this variance.
    sample_weight : array-like (n,), optional
        Weight w stands for w copies of the row; 0 drops it.
    tol : float, default=1e-6
        Stop when ``gap <= tol * (1 + objective)``.
    max_iter : int
        Steps of the working-set solver (the interior point takes at most 500).
    init : array-like (n,), optional
        Multipliers to start from.
    solver : {"auto", "interior", "smo"}, default="auto"
        "interior" costs O(n^3) a step and reaches 1e-10 in tens of steps; "smo"
        scales to large n.
    callback : callable(n_iter, objective, gap), optional

    Returns
    -------
    DualResult

    Raises
    ------
    ValueError
        For invalid input, a prior that asks for nothing, or a fixed margin on data
        that cannot be separated.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.discrimination import ExponentialMargin, solve_dual
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> result = solve_dual(np.outer(x, x), [-1, -1, 1, 1], ExponentialMargin(5.0))
    >>> result.converged, int((result.lam > 0).sum())
    (True, 2)
    """
    y = v.check_signs(y)
    n = len(y)
    K = v.check_gram(K, n)
    check_asks_for_something(margin)
    bias = v.check_bias(bias)
    tol = v.check_positive("tol", tol)
    max_iter = v.check_count("max_iter", max_iter)
    if init is not None:
        init = y * v.check_multipliers(init, n)
    w, keep, (yk,) = drop_weightless(sample_weight, n, y)
    if keep is not None:
        v.check_signs(yk)
        K = K[np.ix_(keep, keep)]
        init = None if init is None else init[keep]
    problem = binary_problem(yk, margin, bias, w)
    if init is not None:
        init = _clip_to_domain(init, problem)
    kernel = VectorKernel(K, "precomputed")
    result = solve_signed(
        kernel,
        problem,
        tol=tol,
        max_iter=max_iter,
        init=init,
        solver=solver,
        cache_size=4e-6 * (n + 64) ** 2 + 100,
        callback=callback,
    )
    return _unsigned(result, yk, keep, n)


def solve_kernel_dual(
    X,
    y,
    margin,
    *,
    kernel="rbf",
    gamma="scale",
    degree=3,
    coef0=0.0,
    bias="flat",
    sample_weight=None,
    tol=1e-6,
    max_iter=10_000_000,
    init=None,
    solver="auto",
    cache_size=500.0,
    n_jobs=None,
    callback=None,
):
    """Solve the two-class dual from feature vectors, computing K as needed.

    As :func:`solve_dual`, but kernel values are computed in tiles, in single
    precision for the rows in play and in double precision for residuals and the
    certificate; the whole matrix is never stored if it exceeds `cache_size`.

    Parameters
    ----------
    X : array-like or CSR (n, d)
    y, margin, bias, sample_weight, tol, max_iter, init, solver, callback
        As for :func:`solve_dual`.
    kernel : {"linear", "rbf", "poly", "sigmoid"} or callable, default="rbf"
        A callable gets two blocks of rows and returns their kernel block.
    gamma, degree, coef0
        Kernel parameters, as in scikit-learn's SVC.
    cache_size : float, default=500
        Memory for kernel values, in MB.
    n_jobs : int or None
        Threads for the kernel tiles; None takes the default of OpenMP.

    Returns
    -------
    DualResult
    """
    X = _checked_features(X)
    y = v.check_signs(y)
    n = len(y)
    if X.shape[0] != n:
        raise ValueError(f"X has {X.shape[0]} rows but y has {n}.")
    check_asks_for_something(margin)
    bias = v.check_bias(bias)
    tol = v.check_positive("tol", tol)
    max_iter = v.check_count("max_iter", max_iter)
    cache_size = v.check_positive("cache_size", cache_size)
    if init is not None:
        init = y * v.check_multipliers(init, n)
    w, keep, (yk,) = drop_weightless(sample_weight, n, y)
    if keep is not None:
        v.check_signs(yk)
        X = X[keep]
        init = None if init is None else init[keep]
    vectors = VectorKernel(
        X,
        kernel,
        gamma=resolve_gamma(gamma, X),
        degree=degree,
        coef0=coef0,
        n_threads=effective_threads(n_jobs),
    )
    problem = binary_problem(yk, margin, bias, w)
    if init is not None:
        init = _clip_to_domain(init, problem)
    result = solve_signed(
        vectors,
        problem,
        tol=tol,
        max_iter=max_iter,
        init=init,
        solver=solver,
        cache_size=cache_size,
        callback=callback,
    )
    return _unsigned(result, yk, keep, n)


def _checked_features(X):
    from sklearn.utils import check_array

    return check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])


def dual_path(K, y, margin, C, *, bias="flat", tol=1e-6, **options):
    """Duals over a path of C, each started from the one before.

    Parameters
    ----------
    K, y, margin, bias, tol
        As for :func:`solve_dual`.
    C : array-like
        Values of C > 0 in any order, with the meaning they have in the estimators:
        row weights are ``margin.unit_weight(C)``.
    **options
        Passed on to :func:`solve_dual`.

    Returns
    -------
    list of DualResult
        In the order of C.
    """
    C = np.asarray(C, dtype=np.float64)
    if C.ndim != 1 or not (np.isfinite(C) & (C > 0)).all():
        raise ValueError(f"C={C!r} must be a list of finite numbers > 0.")
    results, lam, before = [None] * len(C), None, None
    for k in np.argsort(C, kind="stable"):
        weight = margin.unit_weight(C[k])
        start = None if lam is None else lam * (weight / before)
        results[k] = solve_dual(
            K,
            y,
            margin,
            bias=bias,
            tol=tol,
            init=start,
            sample_weight=np.full(len(y), weight),
            **options,
        )
        lam, before = results[k].lam, weight
    return results
