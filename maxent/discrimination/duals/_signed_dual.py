"""Duals over signed multipliers: the choice of solver.

Small problems go to the interior point, the others to working sets; where these creep,
as they do where multipliers are large, the interior point solves for the active rows.
"""

from __future__ import annotations

import numpy as np

from maxent._optimize.rows import settle, tolerance_for
from maxent._support import validation as v
from maxent._support.results import Status
from maxent._support.threads import single_threaded_blas
from maxent.discrimination.duals._definiteness import (
    has_negative_curvature,
    without_certificate,
)
from maxent.discrimination.duals._refusals import refuse_inseparable
from maxent.discrimination.duals._signed_interior import solve_active, solve_interior
from maxent.discrimination.duals._signed_problem import Certifier
from maxent.discrimination.duals._smo import WorkingSets

_INTERIOR_ROWS = 60  # below this it costs milliseconds and gives every digit
_INTERIOR_STEPS = 500  # it needs tens; many more mean that rounding has stopped it
_ACTIVE_STEPS = 150  # long ones, where working sets may go on
_INTERIOR_LIMIT = 4000  # above this its O(n^3) steps are too long
_TURNS = 3  # of working sets, after each of which the active rows may be few enough


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
    v.check_choice("solver", solver, ("auto", "interior", "smo"))
    with single_threaded_blas():
        kernel = kernel.held(cache_size)
        options = {"max_iter": max_iter, "init": init, "callback": callback}
        solution = _Solution(kernel, problem, tol, kkt_tol, cache_size, gram, **options)
        result = solution.solve(solver)
    if problem.potential.hard:
        settle(result, tol)
    refuse_inseparable(problem.margin, result)
    return without_certificate(result) if solution.indefinite else result


def patience(n, limit):
    """Steps of pairs among n rows that take a fraction of the time of interior points.

    Of these, on `limit` rows at most, the time is cubic in the rows, of a step linear.
    """
    rows = min(n, limit)
    return 50_000 + max(100 * n, rows * rows // 4)


class _Solution:
    """A signed problem with all that its solvers take, and the order of these.

    Parameters
    ----------
    kernel, problem, tol, kkt_tol, cache_size, gram, max_iter, init, callback
        As for :func:`solve_signed`.

    Attributes
    ----------
    indefinite : bool
        True once the kernel has proved to have negative curvature.
    """

    def __init__(
        self,
        kernel,
        problem,
        tol,
        kkt_tol,
        cache_size,
        gram,
        *,
        max_iter,
        init,
        callback,
    ):
        self.kernel, self.problem = kernel, problem
        self.kkt_tol, self.cache_size, self.gram = kkt_tol, cache_size, gram
        self.max_iter, self.init, self.callback = max_iter, init, callback
        self.tol, self.indefinite = tol, False
        if problem.potential.hard:
            largest = kernel.diagonal().max(initial=0.0)
            level = problem.margin.level
            self.tol = tolerance_for(problem.potential, level, largest, tol)
        if not kernel.semidefinite:
            curvature = problem.curvature()
            self.indefinite = has_negative_curvature(kernel, problem.bias, curvature)
        room = int(np.sqrt(max(cache_size, 100.0) / 24e-6))
        self.limit = min(_INTERIOR_LIMIT, room)  # rows of an interior point

    def solve(self, asked):
        """The first result that converges, or the best."""
        names = self._solvers() if asked == "auto" else (asked,)
        result = latest = None
        tried = False
        for i, name in enumerate(names):
            if name == "interior":
                other = self._interior()
            elif name == "active":
                other = None if tried else self._active(result)
                tried = tried or other is not None
            else:
                goes_on = latest is not None and latest.solver == "smo"
                start = latest if goes_on else result
                other = self._working_sets(start, names[i + 1 :])
            if other is None:
                continue
            latest = other
            if result is None or other.converged or not result.gap <= other.gap:
                result = other
            ends = (Status.UNBOUNDED, Status.STOPPED)
            spent = name == "smo" and other.n_iter >= self.max_iter
            if result.converged or other.status in ends or spent:
                break
        return result

    def _solvers(self):
        """Solvers by size, the next for problems on which those before stall.

        Of many small problems with a matrix at hand, milliseconds each would be long.
        """
        if self.indefinite:  # the interior point needs a concave objective
            return ("smo",)
        n = len(self.kernel)
        if n > self.limit:
            return ("smo", "active") * _TURNS + ("smo",)
        many = self.gram is not None and self.gram.one_of_many
        small = n <= _INTERIOR_ROWS and not many
        if small or self.tol < 1e-7 or self.problem.potential.hard:
            return ("interior", "smo")
        return ("smo", "active", "smo", "interior")

    def _working_sets(self, before, following):
        """Working sets, from another result; not for long if others follow."""
        steps, init, done = self.max_iter, self.init, 0
        if before is not None and np.isfinite(before.lam).all():
            init = before.lam
            done = before.n_iter if before.solver == "smo" else 0
        if following:
            steps = min(steps, done + patience(len(self.kernel), self.limit))
        sets = WorkingSets(
            self.kernel,
            self.problem,
            Certifier(self.problem),
            self.tol,
            self.kkt_tol,
            steps - done,
            self.cache_size,
            self.callback,
            self.gram,
        )
        result = sets.solve(init)
        self.indefinite |= sets.indefinite and not self.kernel.semidefinite
        result.n_iter += done
        result.max_iter = steps
        return result

    def _interior(self):
        steps = min(self.max_iter, _INTERIOR_STEPS)
        options = {"init": self.init, "callback": self.callback}
        return solve_interior(self.kernel, self.problem, self.tol, steps, **options)

    def _active(self, before):
        """Interior point on the rows that the working sets have left active."""
        if self.indefinite:
            return None
        steps = min(self.max_iter, _ACTIVE_STEPS)
        tolerances = self.tol, self.kkt_tol
        options = {"limit": self.limit, "callback": self.callback}
        return solve_active(
            self.kernel, self.problem, tolerances, steps, before, **options
        )
