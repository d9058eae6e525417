"""Duals over signed multipliers: the problem, its certificate, the choice of solver.

One multiplier a_t per row, a_t = y_t lam_t for a class label (one sign),
a_t = lam_t+ - lam_t- for a regression target (both signs, a kink at zero):

    maximise  sum_t [ target_t a_t + phi_t(|a_t|) ] - a' K a / 2 - bias potential
    f(x) = sum_t a_t k(x_t, x) + b

Small problems go to the interior point, the others to working sets.

Source: Jaakkola, Meila & Jebara (1999), Theorem 2; Jebara & Jaakkola (2000).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from maxent._optimize.certificate import certify
from maxent._optimize.interior_point import interior_point
from maxent._optimize.quadratics import DenseQuadratic
from maxent._optimize.rows import NEGATIVE, POSITIVE, Rows, tolerance_for
from maxent._support import validation as v
from maxent._support.reports import relayed
from maxent._support.results import DualResult, Status
from maxent._support.threads import single_threaded_blas
from maxent.discrimination.duals._definiteness import (
    has_negative_curvature,
    without_certificate,
)
from maxent.discrimination.duals._refusals import refuse_inseparable
from maxent.discrimination.duals._smo import WorkingSets

_INTERIOR_ROWS = 60  # below this it costs milliseconds and gives every digit
_INTERIOR_STEPS = 500  # it needs tens; many more mean that rounding has stopped it
_INTERIOR_LIMIT = 4000  # above this its O(n^3) steps are too long


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

    @property
    def potential(self):
        """Unit potential of the margin prior."""
        return self.margin.unit_potential

    def rows(self):
        """(Rows, index of the data row, sign): one entry per allowed side."""
        pos = np.flatnonzero(self.sides & POSITIVE)
        neg = np.flatnonzero(self.sides & NEGATIVE)
        index = np.concatenate([pos, neg])
        sign = np.concatenate([np.ones(len(pos)), -np.ones(len(neg))])
        order = np.argsort(index, kind="stable")
        index, sign = index[order], sign[order]
        q = self.level[index] + sign * self.target[index]
        rows = Rows(self.potential, q, self.rate[index], self.weight[index])
        return rows, index, sign

    def in_units_of(self, unit):
        """Return the problem with targets, multipliers and biases in other units."""
        return replace(
            self,
            level=self.level / unit,
            rate=self.rate * unit,
            weight=self.weight / unit**2,
            target=self.target / unit,
        )

    def curvature(self):
        """Smallest curvature of each row's own term, (n,)."""
        return self.potential.least_curvature / (self.weight * self.rate**2)

    @property
    def bias_variance(self):
        """Variance added to every kernel entry (0 for flat and none)."""
        return 0.0 if self.bias in ("flat", None) else float(self.bias)


def in_units(result, unit):
    """DualResult of a problem from that of ``problem.in_units_of(unit)``."""
    square = unit**2
    return replace(
        result,
        lam=result.lam * unit,
        bias=result.bias * unit,
        objective=result.objective * square,
        gap=result.gap * square,
        history=[(n, J * square, gap * square) for n, J, gap in result.history],
        coef=None if result.coef is None else result.coef * unit,
        kkt_violation=_times(result.kkt_violation, unit),
        kkt_tol=_times(result.kkt_tol, unit),
        unit=result.unit * square,
    )


def _times(number, unit):
    return None if number is None else number * unit


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


def clip_to_domain(lam, rows):
    """Warm starts strictly inside the domain of the potentials."""
    end = 1.0 if rows.potential.closed else 1.0 - 1e-9
    return np.clip(lam, 0.0, end * rows.upper)


def clip_signed_to_domain(a, problem):
    """Return signed multipliers clipped to the inside of their domains."""
    end = 1.0 if problem.potential.closed else 1.0 - 1e-9
    top = end * problem.potential.upper * problem.weight * problem.rate
    return np.clip(a, -top, top)


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
        flat = self.problem.bias == "flat"
        total = float(a.sum())
        b = self.problem.bias_variance * total  # of a Gaussian prior
        product = _Product(
            0.5 * (float(a @ f) + b * total), self.sign * (f[self.index] + b)
        )
        E, start = (self.sign[:, None], np.array([guess])) if flat else (None, None)
        lam = self.split(a)
        objective, gap, best, _ = certify(self.rows, product, lam, E, start)
        return objective, gap, float(best[0]) if flat else b


@dataclass
class _Product:
    """Value and margins of a quadratic at multipliers whose product is known."""

    value: float
    margins: np.ndarray
    homogeneous = True

    def value_and_margins(self, lam):
        return self.value, self.margins


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
    gram=None,
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
        Memory for the Gram matrix of the active rows, in MB.
    callback : callable(n_iter, objective, gap) or None
    gram : WholeGram or None
        The matrix of all rows for working sets, if the caller holds it.

    Returns
    -------
    DualResult
        `lam` holds the signed multipliers a_t.
    """
    margin = problem.margin
    v.check_choice("solver", solver, ("auto", "interior", "smo"))
    result = None
    with single_threaded_blas():
        kernel = kernel.held(cache_size)
        largest = kernel.diagonal().max(initial=0.0)
        tol = tolerance_for(problem.potential, margin.level, largest, tol)
        indefinite = has_negative_curvature(kernel, problem.bias, problem.curvature())
        solvers = (solver,)
        if solver == "auto":
            # the interior point needs a concave objective
            concave = not indefinite
            solvers = ("smo",)
            if concave:
                solvers = _solvers(kernel, problem, tol, cache_size, gram)
        for name in solvers:
            if name == "interior":
                steps = min(max_iter, _INTERIOR_STEPS)
                other = _solve_interior(kernel, problem, tol, steps, init, callback)
            else:
                # where another solver follows, this one may not take long
                steps = max_iter
                if len(solvers) > 1:
                    steps = min(max_iter, 50_000 + 100 * len(kernel))
                sets = WorkingSets(
                    kernel,
                    problem,
                    Certifier(problem),
                    tol,
                    kkt_tol,
                    steps,
                    cache_size,
                    callback,
                    gram,
                )
                other = sets.solve(init)
                indefinite |= sets.indefinite and not kernel.semidefinite
            other.max_iter = steps
            if result is None or other.converged or not result.gap <= other.gap:
                result = other
            ends = (Status.UNBOUNDED, Status.STOPPED)
            if result.converged or other.status in ends:
                break
    refuse_inseparable(margin, result)
    return without_certificate(result) if indefinite else result


def _solvers(kernel, problem, tol, cache_size, gram):
    """Solvers by size, the second one for problems on which the first stalls.

    Of many small problems with a matrix at hand, milliseconds each would be long.
    """
    n = len(kernel)
    dense = 8e-6 * n * n * 3 <= max(cache_size, 100.0) and n <= _INTERIOR_LIMIT
    if not dense:
        return ("smo",)
    small = n <= _INTERIOR_ROWS and gram is None
    if small or tol < 1e-7 or problem.potential.hard:
        return ("interior", "smo")
    return ("smo", "interior")


def _solve_interior(kernel, problem, tol, max_iter, init, callback):
    rows, index, sign = problem.rows()
    everything = np.arange(len(kernel))
    K = kernel.block(everything, everything)
    if problem.bias_variance:
        K = K + problem.bias_variance
    Q = np.empty((len(index), len(index)))
    for lo in range(0, len(index), 256):  # by blocks so that Ctrl-C is seen
        part = slice(lo, lo + 256)
        np.take(K[index[part]], index, axis=1, out=Q[part])
        Q[part] *= sign[part, None] * sign
    E = sign[:, None] if problem.bias == "flat" else None
    start = None
    if init is not None:
        start = np.maximum(sign * init[index], 0.0)

    def certified(result):
        a = np.zeros(len(kernel))
        np.add.at(a, index, sign * result.lam)
        f = K @ a - problem.bias_variance * a.sum()
        guess = 0.0 if result.bias is None else float(result.bias[0])
        objective, gap, b = Certifier(problem)(a, f, guess)
        result.lam, result.bias = a, b
        result.objective, result.gap = objective, gap
        return result

    progress = relayed(callback, lambda report: report.translated(certified))
    options = {"tol": tol, "max_iter": max_iter, "init": start, "callback": progress}
    try:
        result = interior_point(rows, DenseQuadratic(Q), E, **options)
    except np.linalg.LinAlgError:  # slopes out of range
        lam = np.zeros(len(index)) if start is None else start
        result = DualResult(lam, None, -np.inf, np.inf, 0, Status.STALLED)
    result = certified(result)
    if result.relative_gap <= tol:
        result.status = Status.CONVERGED
    elif result.status is Status.CONVERGED:
        result.status = Status.STALLED
    return result
