"""Variances of columns within groups of rows, which priors take for their scale."""

from __future__ import annotations

import numpy as np

from maxent._support.typing import ArrayLike, FloatArray

_ROUNDING = 1e-24  # variance within groups that is rounding, relative to that of all
_IN_ITS_PLACE = 1e-2  # of that of all


def variances_within(
    X: FloatArray, weight: FloatArray, groups: ArrayLike
) -> FloatArray:
    """Variances (d,) of rows (n, d) within groups, regular ones."""
    groups = np.asarray(groups)
    if groups.shape != (len(X),):
        raise ValueError(
            f"groups has shape {groups.shape}; one label for each of the {len(X)} rows "
            "of X is expected."
        )
    within = np.zeros(X.shape[1])
    for h in np.unique(groups[weight > 0]):
        at = groups == h
        mean = np.average(X[at], axis=0, weights=weight[at])
        within += weight[at] @ np.square(X[at] - mean)
    total = weight.sum()
    overall = weight @ np.square(X - weight @ X / total)
    return regular_variances(within / total, overall / total)


def regular_variances(within: FloatArray, overall: FloatArray) -> FloatArray:
    """Variances within groups; a hundredth of all where groups explain a column."""
    return np.where(within > _ROUNDING * overall, within, _IN_ITS_PLACE * overall)
