"""Newton directions by conjugate gradients, for Hessians known by products."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from maxent._optimize.newton_system import Projection, conjugate_gradients

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
        True for a residual that will do, with its ratio to the preconditioner.
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
    project = Projection(lambda r: r / diagonal, None)
    x = np.zeros_like(gradient)
    iterates = conjugate_gradients(product, project, -gradient)
    for iterate, _, r, z, _ in islice(iterates, 1, most + 1):
        x = iterate
        if small(r, z):
            break
    return x if x.any() else -gradient / diagonal
