"""Kernel between linear dynamical systems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._support import validation as v
from maxent.families._pairs import sum_log_det
from maxent.kernels._lists import check_horizons, check_models
from maxent.kernels.pairs._gaussian_parts import GaussianParts, check_powers
from maxent.kernels.pairs._lds_pairs import pair_parts, warn_of_growth
from maxent.models.systems.lds import LinearDynamicalSystem

Method = Literal["joint", "per_step"]


def lds_kernel(
    P: Sequence[LinearDynamicalSystem],
    Q: Sequence[LinearDynamicalSystem] | None = None,
    *,
    rho: ArrayLike = 0.5,
    horizon: ArrayLike,
    method: Method = "joint",
    log: bool = False,
    normalize: bool = False,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """Return the probability product kernel of linear dynamical systems.

    k = int p(x)^rho p'(x)^rho dx over sequences x = (x_0, ..., x_T), exact for every
    rho.

    Parameters
    ----------
    P, Q : list of LinearDynamicalSystem
        Numbers of states may differ, numbers of features may not. Q None is P.
    rho : float or array-like (n_powers,), default=0.5
        Powers > 0. Further powers cost nothing.
    horizon : int or array-like of int (n_horizons,)
        T >= 0: sequences have T + 1 observations. Smaller horizons beside the largest
        one cost nothing.
    method : {"joint", "per_step"}, default="joint"
        "joint" takes the law of the whole sequence. "per_step" takes the product of
        the laws of the single observations, as the paper prints it: it does not see
        how observations depend on those before.
    log : bool, default=False
        Return logarithms. Kernels that are not normalised leave the range of doubles
        easily.
    normalize : bool, default=False
        Divide by the square roots of the kernels of each model with itself.
    n_jobs : int, optional
        Threads; the results have the same bits for any number.

    Returns
    -------
    ndarray (len(P), len(Q)), then an axis for several horizons and one for powers

    Raises
    ------
    ValueError
        For powers <= 0, horizons that are negative, and models over different spaces.
    FloatingPointError
        If the observations' covariance cannot be factorised in double precision.

    Warns
    -----
    RuntimeWarning
        If two systems are so unstable that rounding may show.

    See Also
    --------
    lds_affinity_parts : What all powers and horizons are computed from.

    Notes
    -----
    With S and S' the covariances of (x_0, ..., x_T), log|S + S'| and the distance of
    the means are read off the Kalman filter of x - x' at observations zero, in time
    O(T (n + n')^3) per pair instead of O(T^3).

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 4.5.

    Examples
    --------
    Two systems with the same marginal law and opposite dynamics:

    >>> from maxent.kernels import lds_kernel
    >>> from maxent.models import LinearDynamicalSystem
    >>> P = [LinearDynamicalSystem([[a]], [[0.19]], [[1.0]], [[0.01]], [0.0], [[1.0]])
    ...      for a in (0.9, -0.9)]
    >>> lds_kernel(P, horizon=20, normalize=True).round(4)
    array([[1.    , 0.0024],
           [0.0024, 1.    ]])
    >>> lds_kernel(P, horizon=20, normalize=True, method="per_step").round(4)
    array([[1., 1.],
           [1., 1.]])
    """
    check_powers(rho)
    parts = _parts(P, Q, horizon, method, n_jobs)
    return parts.kernel(rho, log=log, normalize=normalize)


def lds_affinity_parts(
    P: Sequence[LinearDynamicalSystem],
    Q: Sequence[LinearDynamicalSystem] | None = None,
    *,
    horizon: ArrayLike,
    method: Method = "joint",
    n_jobs: int | None = None,
) -> GaussianParts:
    """Return log-determinants and distances from which kernels of any power follow.

    Parameters
    ----------
    P, Q, horizon, method, n_jobs
        As in :func:`lds_kernel`.

    Returns
    -------
    GaussianParts
        With methods ``log_kernel(rho)``, ``log_normalized(rho)`` and
        ``log_self(rho)``.

    Raises
    ------
    ValueError, FloatingPointError
        As for :func:`lds_kernel`.

    Warns
    -----
    RuntimeWarning
        As for :func:`lds_kernel`.

    Examples
    --------
    >>> from maxent.kernels import lds_affinity_parts
    >>> from maxent.models import LinearDynamicalSystem
    >>> P = [LinearDynamicalSystem([[a]], [[1.0]], [[1.0]], [[1.0]], [0.0], [[1.0]])
    ...      for a in (0.1, 0.5, 0.9)]
    >>> parts = lds_affinity_parts(P, horizon=[5, 10, 20])
    >>> parts.log_kernel([0.1, 0.5, 1.0]).shape
    (3, 3, 3, 3)
    """
    return _parts(P, Q, horizon, method, n_jobs)


def _parts(P, Q, horizon, method, n_jobs):
    v.check_choice("method", method, ("joint", "per_step"))
    P = check_models("P", P, LinearDynamicalSystem)
    Q = None if Q is None else check_models("Q", Q, LinearDynamicalSystem, like=P)
    horizons, one = check_horizons(horizon, [*P, *(Q or ())])
    if method == "per_step":
        return _squeezed(_per_step(P, Q, horizons), one)
    left = [model._compiled for model in P]
    right = None if Q is None else [model._compiled for model in Q]
    warn_of_growth(left, right, int(horizons[-1]))
    return _squeezed(pair_parts(left, right, horizons, n_jobs), one)


def _squeezed(parts: GaussianParts, one: bool) -> GaussianParts:
    """Without the axis of horizons where one number was given."""
    if not one:
        return parts
    return GaussianParts(
        int(parts.dimension[0]),
        parts.left[..., 0],
        parts.right[..., 0],
        parts.log_det[..., 0],
        parts.distance[..., 0],
        parts.symmetric,
    )


def _per_step(P, Q, horizons):
    """Sums over steps of the parts of the marginal laws."""
    T = int(horizons[-1])
    left = [model.marginals(T) for model in P]
    right = left if Q is None else [model.marginals(T) for model in Q]
    m, S = np.stack([g.mean for g in left]), np.stack([g.cov for g in left])
    m2, S2 = (m, S) if Q is None else (
        np.stack([g.mean for g in right]),
        np.stack([g.cov for g in right]),
    )  # fmt: skip
    log_det, distance = np.empty((2, T + 1, len(m), len(m2)))
    for t in range(T + 1):
        x, U = np.ascontiguousarray(m[:, t]), np.ascontiguousarray(S[:, t])
        y, V = (x, U) if Q is None else (m2[:, t], S2[:, t])
        log_det[t], distance[t] = sum_log_det(U, V, x, y)
    own, other = (
        np.cumsum([g._log_det for g in side], axis=1)[:, horizons]
        for side in (left, right)
    )
    both = (np.moveaxis(np.cumsum(X, 0)[horizons], 0, -1) for X in (log_det, distance))
    D = (horizons + 1) * P[0].n_features
    return GaussianParts(D, own, other, *both, symmetric=Q is None)
