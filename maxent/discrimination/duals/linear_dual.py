"""Linear duals that never form the kernel matrix.

Three solvers with the same certificate: coordinate ascent on the multipliers (sparse
data, any prior), primal Newton on the conjugate loss (dense data with many more rows
than columns), and the interior point with a low-rank quadratic (small data, or priors
so sharp that Newton makes slow progress).

Source: Jaakkola, Meila & Jebara (1999), Theorem 2; coordinate ascent after Hsieh et
al. (2008).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from maxent._optimize.interior_point import interior_point
from maxent._optimize.quadratics import LowRankQuadratic
from maxent._optimize.rows import settle, tolerance_for
from maxent._support import validation as v
from maxent._support.results import (
    DualResult,
    Status,
    relative_gap,
    relayed,
    result_in_turn,
    resumed_callback,
)
from maxent._support.threads import single_threaded_blas
from maxent._support.typing import ArrayLike, Bias, Callback, MatrixLike
from maxent.discrimination.duals._coordinate_ascent import coordinate_ascent
from maxent.discrimination.duals._linear_problem import LinearProblem
from maxent.discrimination.duals._primal_newton import primal_newton
from maxent.discrimination.duals._refusals import refuse_inseparable
from maxent.discrimination.duals._signed_problem import (
    clip_to_domain,
)
from maxent.discrimination.duals._two_class_input import TwoClassInput, checked_features
from maxent.discrimination.margins.base import MarginPrior, check_positive_mean

_SMALL = 400
_INTERIOR_STEPS = 500  # hard problems take 100


def solve_linear(
    X,
    problem,
    *,
    tol,
    max_iter,
    init=None,
    solver="auto",
    callback=None,
    seed=0,
    check=True,
):
    """Solve a signed linear dual; `lam` of the result is signed, `coef` is w."""
    linear = LinearProblem(X, problem, check, keep_single=True)
    margin, asked = problem.margin, tol
    if margin.unit_potential.hard:
        largest = linear.squared_norms().max() + problem.bias_variance
        tol = tolerance_for(margin.unit_potential, margin.level, largest, tol)
    if init is not None:
        init = clip_to_domain(init, linear.rows)
    if solver == "auto":
        solver = _choose(linear, tol)
    elif solver == "newton":
        _check_newton(linear, margin)
    if solver != "newton":
        linear.in_doubles()

    def signed(result):
        result.lam = linear.collect(result.lam)
        return result

    callback = relayed(callback, lambda report: report.translated(signed))
    with single_threaded_blas():
        if solver == "interior":
            result = _interior(linear, tol, max_iter, init, callback)
        else:
            options = (max_iter, init, callback, seed)
            result = _with_fallback(linear, solver, tol, *options)
    if margin.unit_potential.hard:
        settle(result, asked)
    refuse_inseparable(margin, result)
    return signed(result)


def _check_newton(linear, margin):
    """Refuse losses and features that primal Newton does not take."""
    if not margin.unit_potential.finite_loss:
        raise ValueError(
            "solver='newton' needs a margin prior with finite losses, not "
            f"{margin!r}; use 'auto', 'coordinate' or 'interior'."
        )
    if linear.sparse:
        raise ValueError(
            "solver='newton' needs dense features; use 'coordinate' for sparse "
            "ones, or X.toarray()."
        )


def _choose(linear, tol):
    n, d = linear.X.shape
    smooth = linear.rows.potential.smooth
    if linear.sparse:
        density = linear.X.nnz / max(n * d, 1)
        if n > _SMALL or density < 0.1:
            return "coordinate"
        return "interior"
    if n <= _SMALL or not smooth:
        return "interior" if _interior_is_cheap(linear) else "coordinate"
    if d <= 2000:
        return "newton"
    return "coordinate"


def _with_fallback(linear, solver, tol, max_iter, init, callback, seed):
    """By coordinate ascent or Newton; where these crawl, by the interior point.

    Coordinate steps on many rows of few columns undo one another. On 200 x 2 rows with
    Gaussian margins of rate 70, 100,000 epochs leave a relative gap of 4e-4, and 23
    steps of the interior point none.
    """
    cheap = _interior_is_cheap(linear)
    if solver == "newton":
        result = primal_newton(linear, tol, max_iter, init, callback)
    else:
        epochs = min(max_iter, _epochs_worth(linear)) if cheap else max_iter
        result = coordinate_ascent(linear, tol, epochs, init, callback, seed)
        result.max_iter = epochs if epochs < max_iter else None
    more = result.status is Status.MAX_ITER and result.n_iter < max_iter
    if not (cheap and (more or result.status is Status.STALLED)):
        return result
    left = max(max_iter - result.n_iter, 1)
    progress = resumed_callback(result, callback)
    other = _interior(linear, tol, left, result.lam, progress)
    return result_in_turn(result, other, callback)


def _interior_is_cheap(linear):
    """True if the interior point takes seconds, and its features little memory."""
    n, d = linear.X.shape
    most = 1e7 if linear.sparse else 4e7
    return n * d * min(n, d) <= 4e9 and n * d <= most


def _epochs_worth(linear):
    """Epochs in the time of the interior point: some 30 steps of O(n d min(n, d))."""
    n, d = linear.X.shape
    return 100 + 10 * min(n, d)


# -- interior point --------------------------------------------------------------------
def _interior(linear, tol, max_iter, init, callback):
    X = linear.X.toarray() if linear.sparse else linear.in_doubles().X
    Z = linear.sign[:, None] * (X if linear.one_to_one else X[linear.index])
    if linear.problem.bias_variance:
        root = np.sqrt(linear.problem.bias_variance)
        Z = np.column_stack([Z, root * linear.sign])
    E = linear.sign[:, None] if linear.flat else None
    R = LowRankQuadratic(Z)
    steps = min(max_iter, _INTERIOR_STEPS)

    def certified(result):
        guess = 0.0 if result.bias is None else float(result.bias[0])
        J, gap, b, w, _ = linear.certify(result.lam, guess)
        result.objective, result.gap, result.bias, result.coef = J, gap, b, w
        return result

    progress = relayed(callback, lambda report: report.translated(certified))
    options = {"tol": tol, "max_iter": steps, "init": init, "callback": progress}
    result = certified(interior_point(linear.rows, R, E, **options))
    result.max_iter, gap, J = None, result.gap, result.objective
    if steps < max_iter:
        result.max_iter = steps
    if result.status in (Status.CONVERGED, Status.STALLED, Status.MAX_ITER):
        if relative_gap(gap, J) <= tol:
            result.status = Status.CONVERGED
        elif result.status is Status.CONVERGED:
            result.status = Status.STALLED
    return result


def solve_linear_dual(
    X: MatrixLike,
    y: ArrayLike,
    margin: MarginPrior,
    *,
    bias: Bias = "flat",
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    init: ArrayLike | None = None,
    solver: Literal["auto", "coordinate", "newton", "interior"] = "auto",
    random_state: int = 0,
    callback: Callback | None = None,
) -> DualResult:
    """Solve the two-class dual with the linear kernel, without forming it.

    Parameters
    ----------
    X : array-like or CSR (n, d)
        32 and 64 bit sparse indices are accepted. Rows are taken as they are: where
        columns are 1e6 times their spread from zero, subtract their means, which
        changes only the bias if that is flat.
    y, margin, bias, sample_weight, tol, init
        As for :func:`solve_dual`.
    max_iter : int, default=1000
        Epochs of coordinate ascent, or Newton steps.
    solver : {"auto", "coordinate", "newton", "interior"}, default="auto"
        "coordinate": closed-form steps keeping w, O(nnz) per epoch. "newton": primal
        Newton, O(n d^2) per step, for dense data with n >> d and a smooth prior.
        "interior": O(n d^2) per step, any prior, tens of steps. Where the first two
        make no progress and the third is cheap, it finishes; the result names it.
    random_state : int, default=0
        Seed of the order of visits.
    callback : callable(n_iter, objective, gap), optional
        Called at each certification; True ends the solver.

    Returns
    -------
    DualResult
        `coef` holds the weights w (d,) that the gap certifies. "newton" finds them
        directly: there the weights X' (y lam) of the multipliers are as far from them
        as sqrt(2 gap), at most.

    Raises
    ------
    ValueError, TypeError, FloatingPointError
        As from :func:`solve_dual`; a solver that needs a smooth prior refuses others.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.discrimination import ExponentialMargin, solve_linear_dual
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> result = solve_linear_dual(X, [-1, -1, 1, 1], ExponentialMargin(5.0))
    >>> result.converged, result.coef.shape
    (True, (1,))
    """
    check_positive_mean(margin)
    v.check_choice("solver", solver, ("auto", "coordinate", "newton", "interior"))
    v.check_callback(callback)
    X = checked_features(X)
    data = TwoClassInput.check(y, sample_weight, init, X.shape)
    bias = v.check_bias(bias)
    tol, max_iter = v.check_stop(tol, max_iter)
    result = solve_linear(
        data.rows_of(X),
        data.problem(margin, bias),
        tol=tol,
        max_iter=max_iter,
        init=data.init,
        solver=solver,
        callback=callback,
        seed=random_state,
    )
    return data.unsigned(result)
