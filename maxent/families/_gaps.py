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
    share = weights / weights.sum(axis=1, keepdims=True)
    away, left = _filled_in(X, share, gaussians)
    shift = np.einsum("kn,knd->kd", share, away)
    spread = gaussians._spread(away - shift[:, None], share, 0.0) + left
    return gaussians.mean + shift, _symmetric(spread)


def expected_sums(X: Array, weights: Array, gaussians: Any) -> tuple[Array, ...]:
    """Sums of `_part_sums`, expected of rows (n, d) given what is observed of them."""
    away, left = _filled_in(X, weights, gaussians)
    first = np.einsum("kn,knd->kd", weights, away)
    second = gaussians._spread(away, weights, 0.0) + left
    return weights.sum(axis=1), first, _symmetric(second)


def _filled_in(X, weights, gaussians):
    """Rows (members, n, d) about the means, each member's expectations where NaN.

    With them the sums over rows of the weighted (co)variances of what is missing.
    """
    mean, cov = gaussians.mean, gaussians._covariances()
    S, d = mean.shape
    away = X - mean[:, None]
    lost = np.isnan(X).all(axis=1)
    away[:, lost] = 0.0
    total = weights[:, lost].sum(axis=1)
    spread = total.reshape(-1, *(1,) * (cov.ndim - 1)) * cov
    for rows, m, expected, left in fillings(X, mean, cov):
        away[np.ix_(np.arange(S), rows, m)] = expected - mean[:, None, m]
        total = weights[:, rows].sum(axis=1)
        if cov.ndim == 3:
            spread[:, m[:, None], m] += total[:, None, None] * left
        elif cov.ndim == 2:
            spread[:, m] += total[:, None] * left
        else:
            spread += total * left.sum(axis=1) / d
    return away, spread


def _symmetric(spread):
    return 0.5 * (spread + spread.swapaxes(1, 2)) if spread.ndim == 3 else spread
