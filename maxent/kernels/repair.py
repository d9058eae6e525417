"""The nearest positive semidefinite kernel matrix."""

from __future__ import annotations

import warnings

import numpy as np

from maxent._support import validation as v
from maxent._support.threads import single_threaded_blas
from maxent._support.typing import ArrayLike, FloatArray
from maxent._support.validation import user_stacklevel
from maxent.kernels._unit_diagonal import scaled_by


def repair_kernel(K: ArrayLike, *, normalize: bool = False) -> FloatArray:
    """Return the nearest positive semidefinite matrix: negative eigenvalues become 0.

    Kernel machines need a matrix without negative eigenvalues. Several similarities do
    not give one: :func:`kl_kernel`, :func:`heat_kernel` with a large `t`, mean-field
    bounds and ``method="pair_sample"`` of :func:`product_kernel`.

    Parameters
    ----------
    K : array-like (n, n)
        Symmetric and finite.
    normalize : bool, default=False
        Divide by the square roots of the new diagonal, so that it is one.

    Returns
    -------
    ndarray (n, n)
        Symmetric; equal to K if no eigenvalue is below zero by more than rounding,
        ``n eps max |eigenvalue|``.

    Warns
    -----
    UserWarning
        With the number of negative eigenvalues and the smallest one.

    Notes
    -----
    Costs O(n^3). No other positive semidefinite matrix is nearer to K in the Frobenius
    norm. The repaired matrix belongs to these data: kernels of further data with them
    are not repaired, so that training and new data have to be repaired together.

    References
    ----------
    Higham (1988), Computing a nearest symmetric positive semidefinite matrix, Linear
    Algebra and its Applications 103.

    Examples
    --------
    >>> import warnings
    >>> from maxent.kernels import repair_kernel
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     repair_kernel([[1.0, 2.0], [2.0, 1.0]])
    array([[1.5, 1.5],
           [1.5, 1.5]])
    """
    out = v.check_gram(K)
    with single_threaded_blas():
        values, vectors = np.linalg.eigh(out)
        largest = float(np.abs(values).max(initial=0.0))
        if values[0] < -len(out) * np.finfo(np.float64).eps * largest:
            count = int((values < 0).sum())
            warnings.warn(
                f"the kernel matrix is not positive semidefinite: {count} of "
                f"{len(out)} eigenvalues are negative, the smallest is {values[0]:.3g} "
                f"and the largest {values[-1]:.3g}. The negative ones are set to 0.",
                UserWarning,
                stacklevel=user_stacklevel(),
            )
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            out = root @ root.T
            out = 0.5 * (out + out.T)
    return scaled_by(out, np.diagonal(out)) if normalize else out
