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

from maxent._optimize.interior_point import interior_point
from maxent._optimize.rows import tolerance_for
from maxent._support.results import Status, relayed
from maxent._support.threads import single_threaded_blas
from maxent.discrimination.duals._definiteness import (
    has_negative_curvature,
    without_certificate,
)
from maxent.discrimination.duals._multiclass_ascent import solve_coordinate
from maxent.discrimination.duals._multiclass_interior import (
    features_quadratic,
    solve_active,
    stored_quadratic,
)
from maxent.discrimination.duals._multiclass_primal import (
    solve_by_lbfgs,
    solve_by_newton,
)
from maxent.discrimination.duals._multiclass_scores import KernelScores, LinearScores
from maxent.discrimination.duals._refusals import refuse_inseparable
from maxent.discrimination.duals.class_pairs import (
    CLASS_WEIGHT_VARIANCE,
    MulticlassRows,
)

_INTERIOR_WINS = 400  # constraints below which the interior point is fastest
_INTERIOR_LIMIT = 4000  # of constraints in play, above which its steps are too long
_INTERIOR_STEPS = 500  # hard problems take 100
_NEWTON_COLUMNS = 2000  # of all classes, up to which Newton beats L-BFGS
_PRIMAL = {"newton": solve_by_newton, "lbfgs": solve_by_lbfgs}
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
        Sweeps, or interior-point steps.
    solver : {"auto", "interior", "coordinate", "newton", "lbfgs"}
        "interior" costs O((n (m - 1))**3) a step, or through the features of a linear
        kernel O(n (m - 1) (m d)**2). "auto" has several in turn, until one converges.
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
        tol = tolerance_for(margin.unit_potential, margin.level, largest, tol)
    indefinite = _has_negative_curvature(kernel, constraints, bias)
    problem = _Problem(kernel, constraints, bias, tol, cache_size)

    def finished(result):
        result, beta = problem.by_class(result)
        return without_certificate(result) if indefinite else result, beta

    callback = relayed(callback, lambda report: report.translated(finished))
    with single_threaded_blas():
        # a dual that is not concave: ascent ends at a stationary point
        steady = indefinite and solver == "auto"
        solvers = ("coordinate",) if steady else problem.solvers(solver)
        result = problem.solve(solvers, max_iter, callback)
    refuse_inseparable(margin, result)
    return finished(result)


def _has_negative_curvature(kernel, c, bias):
    """True if the dual is not concave, as far as a sample of the rows tells.

    beta is linear in the multipliers of a row, with |beta|^2 <= m |lam|^2.
    """
    potential, m = c.rows.potential, c.m
    own = potential.least_curvature / (c.weight * c.margin.rate**2)
    with single_threaded_blas():
        return has_negative_curvature(kernel, bias, own / (CLASS_WEIGHT_VARIANCE * m))


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
        # constraints whose matrix there is room, and time, for
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
        """Names of solvers, the next for the case that those before do not converge."""
        features = ("features",) if self._narrow() else ()
        dense = ("dense",) if self.size <= self.limit else ()
        if asked == "interior":
            if self.linear and self.width <= self.size:
                return ("features", *dense)
            return features or ("dense",)
        if asked in _PRIMAL:
            return (asked, *features)
        return self._in_turn(features, dense) if asked == "auto" else (asked,)

    def _in_turn(self, features, dense):
        g, sweeps = self.constraints.rows.potential, ("coordinate", "active")
        if self.size <= _INTERIOR_WINS:
            return (*features, *dense, *(sweeps if g.hard else ()))
        if g.hard:
            # with all constraints the interior point is slow where they cannot be met,
            # and inaccurate where they barely can
            return sweeps
        if self.linear and not self.kernel.sparse:
            tall = len(self.kernel) > 8 * self.kernel.X.shape[1]
            # losses with flat ranges have short steps where rows can be separated
            able = tall or g.curved
            newton = ("newton",) if able and self.width <= _NEWTON_COLUMNS else ()
            lbfgs = ("lbfgs",) if tall and g.smooth else ()
            last = features or dense or (() if lbfgs else ("active",))
            return ("coordinate", *newton, *lbfgs, *last)
        if features:
            return (*features, *(dense or sweeps))
        return dense if dense and self.tol < 1e-7 else sweeps

    def _narrow(self):
        """Is the interior point cheap through the features of a linear kernel?"""
        size, width = self.size, float(self.width)
        return self.linear and size * width <= 1e7 and size * width**2 <= 2e10

    # -- solvers -------------------------------------------------------------------
    def solve(self, names, max_iter, callback):
        """The first result that converges, or the one with the smallest gap."""
        result = other = None
        for i, name in enumerate(names):
            if name in ("features", "dense"):
                other = self._interior(name, max_iter, callback)
            elif name == "active":
                other = self._active(other, max_iter, callback)
            else:
                following = names[i + 1 :]
                other = self._first_order(name, max_iter, callback, following, result)
            if result is None or other.converged or not result.gap < other.gap:
                result = other
            ends = (Status.UNBOUNDED, Status.STOPPED)
            done = result.converged or other.status in ends
            if done or other.n_iter >= max_iter:
                break
        return result

    def _first_order(self, name, max_iter, callback, following, start):
        """Coordinate ascent, with the solvers that follow in mind; Newton or L-BFGS."""
        scores, bound = self._scores(name in _PRIMAL), max_iter
        options = {"tol": self.tol, "callback": callback}
        if name in _PRIMAL:
            solve, options["start"] = _PRIMAL[name], start
        else:
            solve, work = solve_coordinate, scores.sweep_work
            hard = self.constraints.rows.potential.hard  # met within few, or not at all
            more = 0 if hard else int(_SWEEP_WORK / work)
            bound = min(max_iter, max(_SWEEPS, more))
            options["worth"] = partial(self._sweeps_worth, following, work)
        result = solve(scores, self.constraints, self.flat, max_iter=bound, **options)
        result.max_iter = result.n_iter if result.n_iter < max_iter else None
        return result

    def _sweeps_worth(self, following, work, in_play):
        """Sweeps after which the solver that follows is as fast; None without one."""
        if not following:
            return None
        if following[0] in (*_PRIMAL, "features"):
            return self._work(following[0]) / work
        if in_play > 0.75 * self.limit < 0.75 * self.size:
            return None  # more sweeps leave fewer in play
        return max(200, 0.25 * in_play**3 / work)

    def _work(self, name):
        """Multiplications of sweeps in the time of a solver of linear machines, about.

        Those of matrix products are eight times as fast, in single precision sixteen.
        """
        (n, d), m = self.kernel.X.shape, self.constraints.m
        if name == "features":
            return 25.0 * self.size * float(self.width) ** 2 / 8
        one_pass = n * m * (0.5 * d + 60.0)
        if name == "lbfgs":
            return 400.0 * one_pass
        step = 4.0 * one_pass + n * m * d**2 / 16 + (m * d) ** 3 / 24
        return 20.0 * step if self.constraints.rows.potential.smooth else 60.0 * step

    def _scores(self, by_weights=False):
        """Class scores by weights, or by kernel values where these are shorter."""
        kernel = self.kernel
        n, d = len(kernel), kernel.X.shape[1]
        short = n <= 8 * d and 4e-6 * n * n <= self.cache_size and not by_weights
        if self.linear and (kernel.sparse or not short):
            return LinearScores(
                kernel.X, self.constraints, CLASS_WEIGHT_VARIANCE, self.variance
            )
        return KernelScores(
            kernel,
            self.constraints,
            CLASS_WEIGHT_VARIANCE,
            self.variance,
            self.cache_size,
        )

    def _interior(self, name, max_iter, callback):
        """Interior point on all constraints, through features or with their matrix."""
        kernel, c = self.kernel, self.constraints
        if name == "features":
            R = features_quadratic(kernel, c, self.variance)
        else:
            R = stored_quadratic(kernel, c, self.variance, np.arange(self.size))
        steps = min(max_iter, _INTERIOR_STEPS)
        options = {"tol": self.tol, "max_iter": steps, "callback": callback}
        result = interior_point(c.rows, R, self.incidence, **options)
        result.max_iter = steps if steps < max_iter else None
        return result

    def _active(self, start, max_iter, callback):
        """Interior point on the constraints in play; `start` where they are many."""
        steps = min(max_iter, _INTERIOR_STEPS)
        options = {"limit": self.limit, "max_iter": steps, "callback": callback}
        result = solve_active(self, self._scores(), start, **options)
        if result is None:
            return start
        result.max_iter = steps if steps < max_iter else None
        return result
