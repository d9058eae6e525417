"""Rows of Gaussians of which a part is missing: what the rest says of it.

Of a Gaussian x ~ N(mu, S) with observed coordinates o and missing ones m,

    x_m | x_o ~ N(mu_m + K (x_o - mu_o), S_mm - K S_om),    K = S_mo S_oo^{-1},

and the log-density of the observation is that of x_o. Missing entries are NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from maxent._support.typing import FloatArray as Array
from maxent._support.typing import NDArray


def patterns(X: Array) -> Iterator[tuple[Any, Any, NDArray[np.intp]]]:
    """Observed and missing coordinates, and the rows (not all NaN) that have these."""
    kinds, which = np.unique(np.isnan(X), axis=0, return_inverse=True)
    which = which.reshape(-1)
    for k, lost in enumerate(kinds):
        if not lost.all():
            yield (
                np.flatnonzero(~lost),
                np.flatnonzero(lost),
                np.flatnonzero(which == k),
            )


def log_prob_of_seen(gaussians: Any, X: Array) -> Array:
    """Log-densities (members, n) of what is observed of every row."""
    mean, cov = gaussians.mean, gaussians._covariances()
    out = np.zeros((len(mean), len(X)))
    for o, _, rows in patterns(X):
        own = cov
        if cov.ndim == 3:
            own = cov[:, o[:, None], o]
        elif cov.ndim == 2:
            own = cov[:, o]
        part = type(gaussians)(mean[:, o], own)
        out[:, rows] = part.log_prob(X[np.ix_(rows, o)])
    return out


def fillings(
    X: Array, mean: Array, cov: Array
) -> Iterator[tuple[Any, Any, Array, Array]]:
    """Moments of the missing coordinates under each state, for each pattern with some.

    Rows, missing coordinates m, their means (states, rows, m) and covariances
    (states, m, m), or variances (states, m) of independent ones, given what is
    observed; rows of NaN only are passed over.
    """
    for o, m, rows in patterns(X):
        if not len(m):
            continue
        if cov.ndim == 3:
            cross = cov[:, o[:, None], m]
            K = np.linalg.solve(cov[:, o[:, None], o], cross).swapaxes(1, 2)
            away = X[np.ix_(rows, o)] - mean[:, None, o]
            expected = mean[:, None, m] + away @ K.swapaxes(1, 2)
            yield rows, m, expected, cov[:, m[:, None], m] - K @ cross
        else:
            expected = np.repeat(mean[:, None, m], len(rows), axis=1)
            var = cov[:, m] if cov.ndim == 2 else np.repeat(cov[:, None], len(m), 1)
            yield rows, m, expected, var


def imputed(gaussians: Any, X: Array, shares: Array) -> tuple[Array, Array]:
    """Expectations and variances (n, d) of missing entries of rows.

    Rows belong to the members with probabilities `shares` (members, n).
    """
    mean, cov = gaussians.mean, gaussians._covariances()
    first = shares.T @ mean
    second = shares.T @ (gaussians._moments()[1] + mean**2)
    for rows, m, expected, left in fillings(X, mean, cov):
        var = np.diagonal(left, axis1=1, axis2=2) if left.ndim == 3 else left
        weight, at = shares[:, rows, None], np.ix_(rows, m)
        first[at] = (weight * expected).sum(axis=0)
        second[at] = (weight * (expected**2 + var[:, None])).sum(axis=0)
    return first, second - first**2


def expected_statistics(gaussians: Any, X: Array) -> Array:
    """Expected statistics (members, n, k) of rows given what is observed of them.

    A row of NaN has the mean statistics of each member.
    """
    mean, cov = gaussians.mean, gaussians._covariances()
    S, d = mean.shape
    lost = np.asarray(np.isnan(X).all(axis=1))
    filled = np.repeat(np.where(lost[:, None], 0.0, X)[None], S, axis=0)
    found = list(fillings(X, mean, cov))
    for rows, m, expected, _ in found:
        filled[np.ix_(np.arange(S), rows, m)] = expected
    T = np.array(gaussians.sufficient_statistics(filled))
    for rows, m, _, left in found:
        # second moments stand behind the coordinates: of all pairs, each, or their sum
        if cov.ndim == 3:
            at, more = (m[:, None] * d + m).ravel(), left.reshape(S, -1)
        else:
            at, more = m, left
        if cov.ndim == 1:
            at, more = np.zeros(1, np.intp), more.sum(axis=1, keepdims=True)
        T[np.ix_(np.arange(S), rows, d + at)] += more[:, None]
    T[:, lost] = gaussians.mean_parameters[:, None]
    return T


def expected_fit(X: Array, weights: Array, gaussians: Any) -> tuple[Array, Array]:
    """Weighted means and covariances of rows filled in by each member, one M step.

    Parameters
    ----------
    X : ndarray (n, d)
    weights : ndarray (members, n)
        Of positive sums.
    gaussians : batch (members,)
        Those that fill the rows in.

    Returns
    -------
    mean, cov : ndarray
        In the shapes of the batch.
    """
    mean, cov = gaussians.mean, gaussians._covariances()
    S, d = mean.shape
    filled = np.repeat(X[None], S, axis=0)
    full = cov.ndim == 3
    # sum of the weighted (co)variances of what is missing
    spread = np.zeros((S, d, d) if full else (S, d))
    for rows, m, expected, left in fillings(X, mean, cov):
        filled[np.ix_(np.arange(S), rows, m)] = expected
        total = weights[:, rows].sum(axis=1)
        if full:
            spread[:, m[:, None], m] += total[:, None, None] * left
        else:
            spread[:, m] += total[:, None] * left
    share = weights / weights.sum(axis=1, keepdims=True)
    center = np.einsum("kn,knd->kd", share, filled)
    R = (filled - center[:, None]) * np.sqrt(share)[..., None]
    spread /= weights.sum(axis=1).reshape(-1, *(1,) * (spread.ndim - 1))
    if full:
        found = R.swapaxes(1, 2) @ R + spread
        return center, 0.5 * (found + found.swapaxes(1, 2))
    var = np.square(R).sum(axis=1) + spread
    return center, var if cov.ndim == 2 else var.mean(axis=1)
