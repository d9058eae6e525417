"""Newton directions by conjugate gradients, for Hessians known by products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def newton_direction(
    product: Callable[[Array], Array],
    diagonal: Array,
    gradient: Array,
    small: Callable[[Array, Array], bool],
    most: int = 200,
) -> Array:
    """Solve H x = -g until the residual is small.

    Parameters
    ----------
    product : callable (n,) -> (n,)
        The positive semidefinite H times a vector.
    diagonal : ndarray (n,)
        Preconditioner, > 0.
    gradient : ndarray (n,)
        g.
    small : callable(residual, preconditioned)
        Whether the residual, given with its ratio to the preconditioner, will do.
    most : int, default=200
        Bound on the products.

    Returns
    -------
    ndarray (n,)
        A direction of descent; -g / diagonal where H has no curvature along g.

    References
    ----------
    Dembo & Steihaug (1983), Truncated-Newton algorithms for large-scale unconstrained
    optimization.
    """
    x, r = np.zeros_like(gradient), -gradient
    z = r / diagonal
    p, rz = z.copy(), float(r @ z)
    for _ in range(most):
        Hp = product(p)
        curvature = float(p @ Hp)
        if curvature <= 0.0:
            break
        alpha = rz / curvature
        x += alpha * p
        r -= alpha * Hp
        z = r / diagonal
        if small(r, z):
            break
        new = float(r @ z)
        p, rz = z + (new / rz) * p, new
    return x if x.any() else -gradient / diagonal
