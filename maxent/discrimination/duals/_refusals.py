"""Problems without an answer, named; rows without a weight, dropped."""

from __future__ import annotations

import numpy as np

from maxent._support import validation as v
from maxent._support.results import Status


def drop_weightless(sample_weight, n, *arrays):
    """Drop rows of weight zero: (weights or None, kept rows or None, arrays)."""
    w = v.check_weights(sample_weight, n)
    if w is None or (w > 0).all():
        return w, None, arrays
    keep = np.flatnonzero(w > 0)
    return w[keep], keep, tuple(x[keep] for x in arrays)


def refuse_inseparable(margin, result, easier="scaled features or a richer kernel"):
    """Raise where no certified answer exists, naming the cause."""
    if result.status is Status.UNBOUNDED and margin.unit_potential.finite_loss:
        raise ValueError(
            f"the dual is unbounded (objective {result.objective:.3g}, growing) with "
            f"{margin!r}: the kernel matrix is not positive semidefinite. Use a kernel "
            "that is, or a margin prior with bounded multipliers."
        )
    if result.status is Status.UNBOUNDED:
        raise ValueError(
            f"the data cannot be separated with {_named(margin)}: the dual is "
            "unbounded. Use a margin prior that allows losses, such as "
            f"margin='exponential', or {easier}."
        )
    if (
        not margin.unit_potential.finite_loss
        and result.status not in (Status.CONVERGED, Status.STOPPED)
        and not np.isfinite(result.gap)
    ):
        raise ValueError(
            f"no machine that meets {_named(margin)} was found (status "
            f"{result.status.value!r} after {result.n_iter} iterations): the data "
            f"cannot be separated, or barely. Use {easier}, or a margin prior that "
            "allows losses, such as margin='exponential'."
        )
    if result.status is Status.NONFINITE:
        raise FloatingPointError(
            f"the objective became non-finite at iteration {result.n_iter}; scale the "
            "features or the kernel, or use one that is positive semidefinite."
        )


def _named(margin):
    """A prior with losses that are infinite, as messages call it."""
    if margin.name == "fixed":
        return f"the fixed margin {margin!r}"
    return f"{margin!r}, which has a least margin"
