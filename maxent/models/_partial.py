"""Vectors of which a part is missing: what the observed part says of the rest.

Of a Gaussian x ~ N(mu, S) with observed coordinates o and missing ones m,

    x_m | x_o ~ N(mu_m + K (x_o - mu_o), S_mm - K S_om),    K = S_mo S_oo^{-1},

and the log-density of the observation is that of x_o.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._support import validation as v
from maxent.families import _checks
from maxent.families.gaussian import covariances
from maxent.models._state_space import Arrays

Array = NDArray[np.float64]
_SINGULAR = 1e-13  # least eigenvalue of a correlation that is rounding


def is_partial(X: Array) -> NDArray[np.bool_]:
    """Mask of the rows (n, d) of which some entries, but not all, are missing."""
    lost = np.isnan(X)
    return np.asarray(lost.any(axis=1) & ~lost.all(axis=1))


def rows_in_part(X: ArrayLike, n_features: int) -> Array:
    """Rows (n, n_features), NaN where an entry is missing."""
    X = v.as_doubles("X", X)
    if X.ndim != 2 or X.shape[1] != n_features:
        raise ValueError(
            f"X has shape {X.shape}, expected (n_samples, {n_features}): one column "
            "for each coordinate of the observed nodes."
        )
    refuse_infinite(X)
    return X


def refuse_infinite(X: Array) -> None:
    """Refuse infinite entries among missing ones."""
    wrong = np.isinf(X)
    if wrong.any():
        at = _checks.first(wrong)
        raise ValueError(
            f"{_checks.label('X', at)}={X[at]} must be a finite number, or NaN where "
            "it is missing."
        )


def check_columns(X: Array, what: str = "the sequences", unit: str = "step") -> None:
    """Refuse a column of which nothing was observed."""
    empty = np.isnan(X).all(axis=0)
    if empty.any():
        raise ValueError(
            f"column {int(np.argmax(empty))} of {what} is missing (NaN) in every "
            f"{unit}; drop it."
        )


def observed_moments(X: Array, weights: Array) -> tuple[Array, Array]:
    """Means and variances of the columns, of what was observed in weighted rows.

    A column that rows of weight zero alone show has those of its own entries.
    """
    seen = ~np.isnan(X)
    mass = seen * weights[:, None]
    mass = np.where(mass.any(axis=0), mass, seen)
    share = mass / mass.sum(axis=0)
    mean = (share * np.where(seen, X, 0.0)).sum(axis=0)
    return mean, (share * np.where(seen, X - mean, 0.0) ** 2).sum(axis=0)


def with_column_means(X: Array, weights: Array) -> Array:
    """Rows with the weighted mean of the column where an entry is missing."""
    return np.where(np.isnan(X), observed_moments(X, weights)[0], X)


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


# -- Gaussian emissions ----------------------------------------------------------------
def marginal_table(gaussians: Any, X: Array) -> Array:
    """Log-densities (n, members) of what is observed of every row."""
    mean, cov = gaussians.mean, covariances(gaussians)
    out = np.zeros((len(X), len(mean)))
    for o, _, rows in patterns(X):
        own = cov
        if cov.ndim == 3:
            own = cov[:, o[:, None], o]
        elif cov.ndim == 2:
            own = cov[:, o]
        part = type(gaussians)(mean[:, o], own)
        out[rows] = part.log_prob(X[np.ix_(rows, o)]).T
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


def expected_statistics(gaussians: Any, X: Array) -> Array:
    """Expected statistics (members, n, k) of rows given what is observed of them.

    A row of NaN has the mean statistics of each member.
    """
    mean, cov = gaussians.mean, covariances(gaussians)
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
    mean, cov = gaussians.mean, covariances(gaussians)
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


# -- state-space models ----------------------------------------------------------------
def masked_observations(
    C: Array, c: Array, R: Array, x: Array
) -> tuple[Array, Array, Array, Array, NDArray[np.bool_]]:
    """Observation parameters (T, ...) under which whole rows say what partial ones do.

    Missing coordinates of a row get no part of the states, independent noise of
    variance one, and the value of their mean, zero: they add nothing to
    log-determinants and distances. Last come these rows, and which entries miss.
    """
    hidden = np.isnan(x) & is_partial(x)[:, None]
    either = hidden[:, :, None] | hidden[:, None, :]
    return (
        np.where(hidden[:, :, None], 0.0, C),
        np.where(hidden, 0.0, c),
        np.where(either, np.eye(x.shape[1]), R),
        np.where(hidden, 0.0, x),
        hidden,
    )


def masked(arrays: Arrays, x: Array) -> tuple[Arrays, Array]:
    """A time-varying system and rows without missing parts, of the same likelihood."""
    mean, cov, A, b, Q, C, c, R, which = arrays
    at = which[: len(x)] if len(A) > 1 else np.zeros(len(x), dtype=np.intp)
    C, c, R, x, _ = masked_observations(C[at], c[at], R[at], x)
    steps = np.arange(len(x), dtype=np.intp)
    return (mean, cov, A[at], b[at], Q[at], C, c, R, steps), x


def filling(own: Array, R: Array, hidden: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Regression of missing coordinates on the others, and what it leaves (T, d, d).

    `own` are covariances in which missing coordinates are independent.
    """
    cross = np.where(hidden[:, :, None] & ~hidden[:, None, :], R, 0.0)
    if _checks.least_of_correlation(R).min() > _SINGULAR:
        solved = np.linalg.solve(own, cross.swapaxes(1, 2))
    else:  # outputs without noise, or whose noise is that of others
        solved = np.linalg.pinv(own, hermitian=True) @ cross.swapaxes(1, 2)
    K = np.asarray(solved.swapaxes(1, 2), dtype=np.float64)
    both = hidden[:, :, None] & hidden[:, None, :]
    return K, np.where(both, R - K @ cross.swapaxes(1, 2), 0.0)


def expected_observations(
    C: Array,
    c: Array,
    R: Array,
    x: Array,
    mean: Array,
    cov: Array,
    inputs: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Sums of E z z', E x z' and E x x' over the observed steps of a constant system.

    Given the states, missing coordinates are G s + g and noise; z = (s, u, 1) with the
    inputs u, whose part c has, of each step then. `mean` and `cov` are those of the
    states given the sequence.
    """
    seen = ~np.isnan(x).all(axis=1)
    u = np.zeros((len(x), 0)) if inputs is None else inputs
    x, m, P, u = x[seen], mean[seen], cov[seen], u[seen]
    c = c[seen] if c.ndim > 1 else c
    n = m.shape[1]
    _, _, own, filled, hidden = masked_observations(C, c, R, x)
    K, left = filling(own, R, hidden)
    away = np.where(hidden, 0.0, filled - c)
    G = np.where(hidden[:, :, None], C - K @ C, 0.0)
    g = np.where(hidden, c + (K @ away[..., None])[..., 0], filled)
    z = np.concatenate([m, u, np.ones((len(m), 1))], axis=1)
    second = z[:, :, None] * z[:, None, :]
    second[:, :n, :n] += P
    none = np.zeros((*g.shape, u.shape[1]))
    B = np.concatenate([G, none, g[:, :, None]], axis=2)  # E (x | s) = B z
    xz = B @ second
    return (
        second.sum(axis=0),
        xz.sum(axis=0),
        (xz @ B.swapaxes(1, 2) + left).sum(axis=0),
    )
