"""Kernel duals: the certified machines behind kernel classification, for arrays.

Source: Jaakkola, Meila & Jebara (1999), Theorem 2; Jebara & Jaakkola (2000).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from maxent._support import validation as v
from maxent._support.results import DualResult, asks_to_stop
from maxent._support.typing import (
    ArrayLike,
    Bias,
    Callback,
    FloatArray,
    Gamma,
    KernelFunction,
    MatrixLike,
    NamedKernel,
)
from maxent.discrimination.duals._along_c import start_at
from maxent.discrimination.duals._definiteness import warn_indefinite
from maxent.discrimination.duals._signed_dual import solve_signed
from maxent.discrimination.duals._two_class_input import TwoClassInput, checked_features
from maxent.discrimination.grams.kernel_parameters import (
    check_features,
    check_kernel,
    resolve_gamma,
)
from maxent.discrimination.grams.vector_kernels import VectorKernel, kernel_of_rows
from maxent.discrimination.margins.base import MarginPrior, check_positive_mean


def _check_options(margin, bias, tol, max_iter, solver, callback):
    """Checked bias, and options of a solver; free, so it comes before the arrays."""
    check_positive_mean(margin)
    v.check_choice("solver", solver, ("auto", "interior", "smo"))
    v.check_callback(callback)
    bias = v.check_bias(bias)
    tol, max_iter = v.check_stop(tol, max_iter)
    options = {"tol": tol, "max_iter": max_iter, "solver": solver, "callback": callback}
    return bias, options


def _solve_two_classes(data, kernel, margin, bias, name, **options):
    """Result with lam = |a| over all rows; a warning if it has no certificate."""
    problem = data.problem(margin, bias)
    result = solve_signed(kernel, problem, init=data.signed_init(problem), **options)
    if result.gap != result.gap:
        warn_indefinite(name, result)
    return data.unsigned(result)


def solve_dual(
    K: ArrayLike,
    y: ArrayLike,
    margin: MarginPrior,
    *,
    bias: Bias = "flat",
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 10_000_000,
    init: ArrayLike | None = None,
    solver: Literal["auto", "interior", "smo"] = "auto",
    callback: Callback | None = None,
) -> DualResult:
    """Solve the two-class maximum entropy discrimination dual of a kernel matrix.

    maximise ``sum_t phi_t(lam_t) - 1/2 sum_st lam_s lam_t y_s y_t K_st`` over
    ``0 <= lam_t < upper``, with ``sum_t lam_t y_t = 0`` for a flat bias prior
    (JMJ 1999, eq. 14). The decision value of row s is
    ``sum_t lam_t y_t K_st + bias``.

    Parameters
    ----------
    K : array-like (n, n)
        Kernel matrix, symmetric, positive semidefinite; for a flat bias on vectors that
        sum to zero. Otherwise the gap is NaN and a ConvergenceWarning is given.
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
        Called at each certification; True ends the solver. "interior" certifies every
        step, "smo" where its steps seem to have met the tolerance, often once at the
        end, and between its blocks of rows where the matrix does not fit in memory.

    Returns
    -------
    DualResult

    Raises
    ------
    ValueError
        For invalid input, a prior whose mean is not positive, or a fixed margin on data
        that cannot be separated.
    TypeError
        For a `margin` that is no margin prior, or a `callback` that is no function.
    FloatingPointError
        If the objective becomes non-finite.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.discrimination import ExponentialMargin, solve_dual
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> result = solve_dual(np.outer(x, x), [-1, -1, 1, 1], ExponentialMargin(5.0))
    >>> result.converged, int((result.lam > 0).sum())
    (True, 2)
    """
    bias, options = _check_options(margin, bias, tol, max_iter, solver, callback)
    data = TwoClassInput.check(y, sample_weight, init)
    n = data.n
    K = v.check_gram(K, n)
    if data.keep is not None:
        K = K[np.ix_(data.keep, data.keep)]
    kernel = VectorKernel(K, "precomputed")
    options["cache_size"] = 12e-6 * (n + 64) ** 2 + 100
    return _solve_two_classes(data, kernel, margin, bias, "solve_dual", **options)


def solve_kernel_dual(
    X: MatrixLike,
    y: ArrayLike,
    margin: MarginPrior,
    *,
    kernel: NamedKernel | KernelFunction = "rbf",
    gamma: Gamma = "scale",
    degree: int = 3,
    coef0: float = 0.0,
    bias: Bias = "flat",
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 10_000_000,
    init: ArrayLike | None = None,
    solver: Literal["auto", "interior", "smo"] = "auto",
    cache_size: float = 500.0,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> DualResult:
    """Solve the two-class dual from feature vectors, computing K as needed.

    As :func:`solve_dual`, but kernel values are computed in tiles, in single
    precision for the active rows and in double precision for residuals and the
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
        Memory for kernel values, in MB. A bound for working sets; an interior point on
        the active rows may take up to 100 MB where that is more, and solver="interior"
        three matrices of all rows, whatever the bound.
    n_jobs : int or None
        Threads for the kernel tiles; None takes the default of OpenMP.

    Returns
    -------
    DualResult
        As from :func:`solve_dual`.

    Raises
    ------
    ValueError
        As from :func:`solve_dual`; for features so large that their squares or their
        kernel values overflow; and for a callable kernel that is not symmetric, which
        is checked on a few rows.
    TypeError, FloatingPointError
        As from :func:`solve_dual`.

    Examples
    --------
    >>> from maxent.datasets import load_crabs
    >>> from maxent.discrimination import ExponentialMargin, solve_kernel_dual
    >>> X, y = load_crabs(return_X_y=True)
    >>> result = solve_kernel_dual(X, 2 * y - 1, ExponentialMargin(10.0))
    >>> result.converged, bool(result.gap <= 1e-6 * (1 + result.objective))
    (True, True)
    """
    bias, options = _check_options(margin, bias, tol, max_iter, solver, callback)
    options["cache_size"] = v.check_positive("cache_size", cache_size)
    n_jobs = v.check_jobs(n_jobs)
    _check_kernel_of_rows(kernel, gamma, degree, coef0)
    X = checked_features(X)
    data = TwoClassInput.check(y, sample_weight, init, X.shape)
    X = data.rows_of(X)
    check_features(X, kernel)
    vectors = kernel_of_rows(
        X,
        kernel,
        gamma=resolve_gamma(gamma, X, None if sample_weight is None else data.weight),
        degree=degree,
        coef0=coef0,
        n_jobs=n_jobs,
    )
    name = "solve_kernel_dual"
    return _solve_two_classes(data, vectors, margin, bias, name, **options)


def _check_kernel_of_rows(kernel, gamma, degree, coef0):
    """Refuse kernels and parameters that do not go with features."""
    check_kernel(kernel, gamma=gamma, degree=degree, coef0=coef0)
    if isinstance(kernel, str) and kernel == "precomputed":
        raise ValueError(
            "kernel='precomputed' is not for features; pass the kernel matrix to "
            "solve_dual."
        )


def dual_path(
    K: ArrayLike,
    y: ArrayLike,
    margin: MarginPrior,
    C: ArrayLike,
    *,
    bias: Bias = "flat",
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 10_000_000,
    init: ArrayLike | None = None,
    solver: Literal["auto", "interior", "smo"] = "auto",
    callback: Callback | None = None,
) -> list[DualResult]:
    """Solve the dual over a path of C, each solution started from the one before.

    Parameters
    ----------
    K, y, margin, bias, tol, max_iter, solver
        As for :func:`solve_dual`.
    C : array-like
        Values of C > 0 in any order, with the meaning they have in the estimators:
        row weights are ``margin.unit_weight(C)``.
    sample_weight : array-like (n,), optional
        Multiplies the row weights; 0 drops a row.
    init : array-like (n,), optional
        Multipliers to start the smallest C from.
    callback : callable(n_iter, objective, gap), optional
        Called at each certification of each C; True ends the path.

    Returns
    -------
    list of DualResult
        In the order of C. They are solved from the smallest to the largest: of a path
        that a callback has ended there are those of the smallest values.

    Raises
    ------
    ValueError
        As from :func:`solve_dual`, and for values of C that are not > 0.
    TypeError, FloatingPointError
        As from :func:`solve_dual`.

    See Also
    --------
    maxent.displays.DualPathDisplay : Draws such a path.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.discrimination import ExponentialMargin, dual_path
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> path = dual_path(
    ...     np.outer(x, x), [-1, -1, 1, 1], ExponentialMargin(10.0), [0.1, 1.0, 10.0]
    ... )
    >>> [int((result.lam > 0).sum()) for result in path]
    [4, 2, 2]
    """
    bias, options = _check_options(margin, bias, tol, max_iter, solver, callback)
    y = v.check_signs(y)
    C = _checked_path(C)
    w = v.check_weights(sample_weight, len(y))
    w = np.ones(len(y)) if w is None else w
    results: list[Any] = [None] * len(C)
    before, ended = None, False

    def heard(n_iter, objective, gap):
        nonlocal ended
        ended |= asks_to_stop(callback(n_iter, objective, gap))
        return ended

    options["callback"] = None if callback is None else heard
    for k in np.argsort(C, kind="stable"):
        unit = margin.unit_weight(C[k])
        if before is not None:
            last = margin.unit_weight(C[before])
            upper = margin.unit_potential.upper * margin.rate * last * w
            init = start_at(results[before].lam, upper, unit / last)
        results[k] = solve_dual(
            K, y, margin, bias=bias, sample_weight=unit * w, init=init, **options
        )
        before = k
        if ended:
            break
    return [result for result in results if result is not None]


def _checked_path(C: ArrayLike) -> FloatArray:
    """Values of C as an array."""
    C = v.as_doubles("C", C)
    if C.ndim != 1 or not (np.isfinite(C) & (C > 0)).all():
        values = v.shown(C.tolist())
        raise ValueError(
            f"C={values} must be a list of finite numbers > 0, such as [0.1, 1, 10]."
        )
    return C
