"""(Co)variances of columns within groups of rows, which priors take for their scale."""

from __future__ import annotations

import numpy as np

from maxent._support.typing import ArrayLike, FloatArray

_CONSTANT = 1e-24  # variance within groups that is rounding, relative to that of all
_SINGULAR = 1e-13  # eigenvalue of correlations that is rounding
_IN_ITS_PLACE = 1e-2


def variances_within(
    X: FloatArray, weight: FloatArray, groups: ArrayLike
) -> FloatArray:
    """Variances (d,) of rows (n, d) within groups, made regular."""
    within = weight @ np.square(_from_means(X, weight, groups))
    overall = weight @ np.square(_from_means(X, weight, np.zeros(len(X), dtype=int)))
    total = weight.sum()
    return regular_covariance(within / total, overall / total, rounding_of(X))


def covariance_within(
    X: FloatArray, weight: FloatArray, groups: ArrayLike
) -> FloatArray:
    """Covariance (d, d) of rows (n, d) within groups, made regular."""
    R = _from_means(X, weight, groups)
    all_ = _from_means(X, weight, np.zeros(len(X), dtype=int))
    within, overall = ((A.T * weight) @ A / weight.sum() for A in (R, all_))
    return regular_covariance(within, overall, rounding_of(X))


def _from_means(X, weight, groups):
    """Rows as deviations from the means of their groups."""
    groups = np.asarray(groups)
    if groups.shape != (len(X),):
        raise ValueError(
            f"groups has shape {groups.shape}; one label for each of the {len(X)} rows "
            "of X is expected."
        )
    R = np.zeros(X.shape)
    for h in np.unique(groups[weight > 0]):
        at = groups == h
        R[at] = X[at] - np.average(X[at], axis=0, weights=weight[at])
    return R


def rounding_of(X: FloatArray) -> FloatArray:
    """Variances (d,) that may be rounding of the entries of rows (n, d)."""
    return np.square(8.0 * np.finfo(float).eps * np.abs(X).max(axis=0))


def regular_covariance(
    within: FloatArray, overall: FloatArray, rounding: FloatArray
) -> FloatArray:
    """(Co)variances within groups, made regular.

    Where a column does not vary within groups, whose values may be the groups, it has
    a hundredth of its overall variance; so have directions in which columns that do
    vary follow from each other.
    """
    if np.ndim(within) < 2:
        # one variance of all columns varies if one of them does
        least = np.maximum(_CONSTANT * overall, rounding if np.ndim(within) else 0.0)
        return np.where(within > least, within, _IN_ITS_PLACE * overall)
    own = regular_covariance(np.diag(within), np.diag(overall), rounding)
    within = np.where(np.eye(len(own)) > 0, own, within)
    scale = np.sqrt(own)
    unit = np.where(scale > 0, scale, 1.0)
    share, vectors = np.linalg.eigh(within / unit / unit[:, None])
    share = np.where(share > _SINGULAR, share, _IN_ITS_PLACE)
    half = vectors * np.sqrt(share) * scale[:, None]
    return np.asarray(half @ half.T)
