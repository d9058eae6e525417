"""Kernel matrices that are not positive semidefinite, whose duals have no certificate.

The objective of a dual is concave, and primal minus dual objective bounds the distance
from the optimum, if the kernel matrix has no negative eigenvalue: on multipliers that
sum to zero where the bias prior is flat. Otherwise a solver ends in a stationary point
that depends on where it started.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.linalg.lapack import dpotrf

from maxent._support.results import Status
from maxent._support.validation import user_stacklevel

_FEW = 64  # rows whose matrix is looked at whole: tens of microseconds
_SAMPLE = 8  # of more rows one in eight, which is 2 % of the kernel values
_MOST = 400  # rows: a millisecond
# Kernel values in single precision are off by 1e-7 to 1e-5 of the largest, differences
# of squares most, and the eigenvalues of m rows by 2 sqrt(m) times as much at most.
NOISE = 1e-5


def has_negative_curvature(kernel, bias, curvature):
    """True if a sample of the rows shows a dual that is not concave.

    Curvature of the rows' own terms makes up for as much in the kernel; half of it is
    counted, so that the gap is right within a factor of two.

    Parameters
    ----------
    kernel : VectorKernel
    bias : "flat", float or None
    curvature : ndarray (n,)
        Smallest of each row's own term.
    """
    if kernel.semidefinite:
        return False
    n = len(kernel)
    m = min(n, max(_FEW, min(n // _SAMPLE, _MOST)))
    rows = np.linspace(0, n - 1, m).astype(np.intp)
    K = np.array(kernel.block(rows, rows))
    largest = float(np.abs(K).max())
    if largest == 0:
        return False
    if bias == "flat":
        means = K.mean(axis=0)
        K += means.mean() - means - means[:, None]
    elif bias is not None:
        K += bias
        largest += bias
    K.flat[:: m + 1] += 0.5 * curvature[rows] + NOISE * np.sqrt(m) * largest
    return dpotrf(K.T, overwrite_a=True)[1] != 0  # K.T is in Fortran order


def without_certificate(result):
    """Mark a result as one of a dual that is not concave."""
    result.gap = np.nan
    if result.status is Status.CONVERGED:
        result.status = Status.INDEFINITE
    return result


def warn_indefinite(name, result):
    """One ConvergenceWarning of a fit whose dual is not concave."""
    from sklearn.exceptions import ConvergenceWarning

    end = "ended in a stationary point, which may be far from the optimum,"
    if result.status is not Status.INDEFINITE:
        end = f"stopped with status {result.status.value!r}"
    warnings.warn(
        f"the kernel matrix is not positive semidefinite: {name} {end} after "
        f"{result.n_iter} iterations, and nothing bounds its distance from the optimum "
        "(the duality gap is NaN). Use a kernel that is positive semidefinite.",
        ConvergenceWarning,
        stacklevel=user_stacklevel(),
    )
