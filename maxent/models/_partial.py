"""Vectors of which a part is missing: what the observed part says of the rest.

Gaussians themselves are in `maxent.families._gaps`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._support import validation as v
from maxent.families import _checks
from maxent.models._state_space import Arrays

Array = NDArray[np.float64]
_SINGULAR = 1e-13  # least eigenvalue of a correlation that is rounding


def is_partial(X: Array) -> NDArray[np.bool_]:
    """Mask of the rows (n, d) of which some entries, but not all, are missing."""
    lost = np.isnan(X)
    return np.asarray(lost.any(axis=1) & ~lost.all(axis=1))


def is_missing(X: Array) -> NDArray[np.bool_]:
    """Mask of the rows (n, d) of which every entry is missing."""
    lost = np.isnan(X[:, 0])  # of which most often there are few
    lost[lost] = np.isnan(X[lost]).all(axis=1)
    return np.asarray(lost)


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
