"""Multi-class machines: one constraint for every wrong class of every row.

    maximise  sum_{t, j != y_t} phi_t(lam_tj) - v/2 trace(beta' K beta)
    beta_tk = [k = y_t] sum_j lam_tj - [k != y_t] lam_tk
    f_k(x) = v sum_t beta_tk k(x_t, x) + b_k

v = 1/2, so that the difference of two class scores has the prior of the two-class
machine, and two classes give exactly that machine. A flat bias prior asks
``sum_t beta_tk = 0`` for every class; one bias is fixed by ``sum_k b_k = 0``.

Source: Jaakkola, Meila & Jebara (1999), eq. (4)-(5).
"""

from __future__ import annotations

from functools import cached_property, partial

import numpy as np

from maxent._optimize.rows import settle, tolerance_for
from maxent._support.results import Status, relayed
from maxent._support.threads import single_threaded_blas
from maxent.discrimination.duals._definiteness import (
    has_negative_curvature,
    without_certificate,
)
from maxent.discrimination.duals._multiclass_ascent import solve_coordinate
from maxent.discrimination.duals._multiclass_interior import solve_interior
from maxent.discrimination.duals._multiclass_primal import (
    has_cheap_factor,
    solve_by_newton,
)
from maxent.discrimination.duals._multiclass_scores import KernelScores, LinearScores
from maxent.discrimination.duals._refusals import refuse_inseparable
from maxent.discrimination.duals.class_pairs import (
    CLASS_WEIGHT_VARIANCE,
    MulticlassRows,
)

_INTERIOR_WINS = 400  # constraints: it takes some 10 ms then and gives every digit
_LOOSE = (
    1e-5  # tolerance from which ascent is a few times as fast, but on linear kernels
)
_TALL = 8  # rows per column from which on Newton is faster than ascent; half if curved
_NARROW = 2e7  # multiplications below which the interior point beats Newton on hinges
_INTERIOR_LIMIT = 4000  # of constraints in play, above which its steps are too long
_INTERIOR_STEPS = 500  # hard problems take 100
_SWEEPS = 2000  # that coordinate ascent has at least, with no other solver behind it
_SWEEP_WORK = 5e10  # and more, up to as many multiplications: half a minute


def solve_multiclass(
    kernel,
    codes,
    n_classes,
    margin,
    bias,
    weight,
    *,
    tol,
    max_iter,
    solver="auto",
    cache_size=500.0,
    callback=None,
):
    """Solve the multi-class dual.

    Parameters
    ----------
    kernel : VectorKernel
    codes : ndarray of int (n,)
    n_classes : int
    margin : MarginPrior
    bias : "flat", float or None
    weight : ndarray (n,)
    tol : float
        Relative duality gap.
    max_iter : int
        Sweeps, or steps.
    solver : {"auto", "interior", "coordinate", "newton"}
        "interior" costs O((n (m - 1))**3) a step, or through the features of a linear
        kernel O(n (m - 1) (m d)**2); "newton" is for dense features. "auto" begins with
        ascent, or with Newton's method for many more rows than columns, and falls back
        on the interior point.
    cache_size : float
        Memory for kernel values, in MB.
    callback : callable(n_iter, objective, gap) or None

    Returns
    -------
    result : DualResult
        `lam` (n, m) with zeros at the row's own class, `bias` (m,) summing to zero.
    beta : ndarray (n, m)
        Coefficients of the class scores, v included.
    """
    constraints = MulticlassRows(codes, n_classes, margin, weight)
    if margin.unit_potential.hard:
        largest = kernel.diagonal().max() + (0.0 if bias in ("flat", None) else bias)
        asked, tol = (
            tol,
            tolerance_for(margin.unit_potential, margin.level, largest, tol),
        )
    indefinite = _has_negative_curvature(kernel, constraints, bias)
    problem = _Problem(kernel, constraints, bias, tol, cache_size)

    def finished(result):
        result, beta = problem.by_class(result)
        return without_certificate(result) if indefinite else result, beta

    callback = relayed(callback, lambda report: report.translated(finished))
    with single_threaded_blas():
        # Ascent ends at a stationary point of a dual that is not concave.
        steady = indefinite and solver == "auto"
        solvers = ("coordinate",) if steady else problem.solvers(solver)
        result = problem.solve(solvers, max_iter, callback)
    if margin.unit_potential.hard:
        settle(result, asked)
    refuse_inseparable(margin, result)
    return finished(result)


def _has_negative_curvature(kernel, c, bias):
    """True if the dual is not concave, as far as a sample of the rows tells.

    beta is linear in the multipliers of a row, with |beta|^2 <= m |lam|^2.
    """
    potential, m = c.rows.potential, c.m
    curvature = potential.least_curvature / (c.weight * c.margin.rate**2)
    with single_threaded_blas():
        return has_negative_curvature(
            kernel, bias, curvature / (CLASS_WEIGHT_VARIANCE * m)
        )


class _Problem:
    """A multi-class dual with all that its solvers take, and the order of these.

    Parameters
    ----------
    kernel : VectorKernel
    constraints : MulticlassRows
    bias : "flat", float or None
    tol, cache_size : float
    """

    def __init__(self, kernel, constraints, bias, tol, cache_size):
        self.kernel, self.constraints, self.tol = kernel, constraints, tol
        self.cache_size, self.flat = cache_size, bias == "flat"
        self.variance = 0.0 if bias in ("flat", None) else float(bias)
        self.size = len(constraints.example)
        self.linear = kernel.kernel == "linear"
        self.width = constraints.m * kernel.X.shape[1]  # of features of constraints
        # Constraints whose matrix there is room, and time, for.
        room = int(np.sqrt(max(cache_size, 100.0) / 24e-6))
        self.limit = min(room, _INTERIOR_LIMIT)

    @cached_property
    def incidence(self):
        """Matrix of the flat biases, or None."""
        return self.constraints.incidence() if self.flat else None

    def by_class(self, result):
        """Result with multipliers (n, m) and biases (m,); coefficients of scores."""
        c = self.constraints
        beta = CLASS_WEIGHT_VARIANCE * c.beta(result.lam)
        if self.flat:
            b = np.append(result.bias, 0.0)
            b -= b.mean()
        else:
            b = self.variance * beta.sum(axis=0)
        lam = np.zeros((c.n, c.m))
        lam[c.example, c.wrong] = result.lam
        result.lam, result.bias = lam, b
        return result, beta

    # -- the choice ----------------------------------------------------------------
    def solvers(self, asked):
        """Names of solvers, the next for the case that those before do not converge.

        Measured on 223 problems of 3 to 26 classes, 200 to 5000 rows and 5 to 200
        columns.
        """
        g, kernel = self.constraints.rows.potential, self.kernel
        # A second interior point, on the active constraints alone, loses fewer digits.
        if asked != "auto":
            return (asked, "interior") if asked == "interior" else (asked,)
        exact = self.linear or self.tol < _LOOSE
        if self.size <= _INTERIOR_WINS and exact:
            return "interior", "interior", "coordinate"
        if not self.linear or kernel.sparse or g.hard:
            return "coordinate", "interior"
        tall = len(kernel) > (_TALL / 2 if g.curved else _TALL) * kernel.X.shape[1]
        # Conjugate gradients take hundreds of products where most losses are flat.
        if not (tall and (g.curved or has_cheap_factor(self.width, len(kernel)))):
            return "coordinate", "interior"
        if not g.smooth and self.size * float(self.width) ** 2 <= _NARROW:
            return "interior", "newton"
        return "newton", "interior"

    # -- solvers -------------------------------------------------------------------
    def solve(self, names, max_iter, callback):
        """The first result that converges, or the one with the smallest gap."""
        result = None
        run = {"coordinate": self._ascent, "newton": self._newton}
        for i, name in enumerate(names):
            solve = run.get(name, self._interior)
            last = i + 1 == len(names)
            other = solve(result, last, max_iter=max_iter, callback=callback)
            if result is None or other.converged or not result.gap < other.gap:
                result = other
            ends = (Status.UNBOUNDED, Status.STOPPED)
            done = result.converged or other.status in ends
            if done or other.n_iter >= max_iter:
                break
        return result

    def _ascent(self, start, last, *, max_iter, callback):
        """Coordinate ascent, with the solver that follows in mind unless it is last."""
        scores = self._scores()
        hard = self.constraints.rows.potential.hard  # met within few, or not at all
        more = 0 if hard else int(_SWEEP_WORK / scores.sweep_work)
        worth = None if last else partial(self._sweeps_worth, scores.sweep_work)
        options = {"tol": self.tol, "worth": worth, "callback": callback}
        bound = min(max_iter, max(_SWEEPS, more))
        result = solve_coordinate(
            scores, self.constraints, self.flat, max_iter=bound, **options
        )
        return _bounded(result, max_iter)

    def _sweeps_worth(self, work, in_play):
        """Sweeps in the time of the interior point; None where that is out of reach."""
        if in_play > 0.75 * self.limit < 0.75 * self.size:
            return None  # more sweeps leave fewer in play
        return max(200, 0.25 * in_play**3 / work)

    def _newton(self, start, last, *, max_iter, callback):
        """Newton's method on the conjugate loss of a linear machine."""
        options = {"tol": self.tol, "callback": callback, "start": start}
        result = solve_by_newton(
            self._scores(by_weights=True),
            self.constraints,
            self.flat,
            max_iter=max_iter,
            **options,
        )
        return _bounded(result, max_iter)

    def _interior(self, start, last, *, max_iter, callback):
        """Interior point on all constraints, or from a start on those in play."""
        steps = min(max_iter, _INTERIOR_STEPS)
        options = {"max_iter": steps, "callback": callback}
        result = solve_interior(self, self._scores(), start, **options)
        return result if result is start else _bounded(result, max_iter, steps)

    def _scores(self, by_weights=False):
        """Class scores by weights, or by kernel values where these are shorter."""
        kernel = self.kernel
        n, d = len(kernel), kernel.X.shape[1]
        short = n <= 8 * d and 4e-6 * n * n <= self.cache_size and not by_weights
        options = self.constraints, CLASS_WEIGHT_VARIANCE, self.variance
        if self.linear and (kernel.sparse or not short):
            return LinearScores(kernel.X, *options)
        return KernelScores(kernel, *options, self.cache_size)


def _bounded(result, max_iter, bound=None):
    """The result with the bound that ended it, where that is not `max_iter`."""
    bound = result.n_iter if bound is None else bound
    result.max_iter = bound if bound < max_iter else None
    return result
