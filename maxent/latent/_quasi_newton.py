"""Newton steps, and L-BFGS-B on a smooth function plus a penalty."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import Bounds, minimize

from maxent.latent._penalty import Box, Penalty

Array = NDArray[np.float64]


def newton_step(H: Array, g: Array) -> Array:
    """Return the step x of H x = -g; of the least squares where H is singular."""
    diagonal = np.sqrt(np.maximum(np.diag(H), 1e-300))
    C = H / diagonal[:, None] / diagonal
    try:
        # collinear features: the ridge leaves p, and chooses among equal weights
        C[np.diag_indices_from(C)] += 1e-13 * len(g)
        with np.errstate(over="ignore", invalid="ignore"):  # then not finite
            step = -cho_solve(cho_factor(C), g / diagonal) / diagonal
        if np.isfinite(step).all() and g @ step < 0:
            return np.asarray(step, dtype=np.float64)
    except LinAlgError:
        pass
    found = -np.linalg.lstsq(H, g, rcond=1e-12)[0]
    return np.asarray(found, dtype=np.float64)


def lbfgs(
    smooth: Callable[[Array], tuple[float, Array]],
    penalty: Penalty,
    lam: Array,
    options: dict[str, Any],
    bound: float | Array = np.inf,
    callback: Callable[[Array], bool] | None = None,
) -> Array:
    """Minimise smooth(lam) + U*(lam), |lam| <= bound; never to a greater value.

    smooth returns its value and gradient. With sum w_i |lam_i| the variables are u and
    v >= 0, lam = u - v. The callback sees lam and ends the iterations by True.
    """
    n, ends = len(lam), np.broadcast_to(bound, lam.shape)
    split = isinstance(penalty, Box)

    def joined(x):
        return x[:n] - x[n:] if split else x

    def both(x):
        value, gradient = smooth(joined(x))
        if isinstance(penalty, Box):
            width = penalty.width
            value += float(width @ (x[:n] + x[n:]))
            return value, np.concatenate([gradient + width, width - gradient])
        return value + penalty.value(x), gradient + penalty.gradient(x)

    def progress(x):
        if callback is not None and callback(joined(x)):
            raise StopIteration

    start = lam
    if split:
        start = np.concatenate([np.maximum(lam, 0.0), np.maximum(-lam, 0.0)])
    first = both(start)[0]
    result = minimize(
        both,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(*((0.0, np.tile(ends, 2)) if split else (-ends, ends))),
        callback=None if callback is None else progress,
        options=options,
    )
    return joined(result.x) if result.fun <= first else lam
