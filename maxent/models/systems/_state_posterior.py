"""States of linear dynamical systems: smoothed by data, and drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxent._core.systems import statespace
from maxent._inputs.sequences import Sequences
from maxent.models import _state_space as checks
from maxent.models._partial import is_partial, masked
from maxent.models._state_space import Arrays
from maxent.models.systems._derivatives import Filtered, FreeStart, refuse_failure


@dataclass(frozen=True, repr=False)
class StatePosterior:
    """Distribution of the states of one sequence given its observations.

    Parameters
    ----------
    mean : ndarray (n_steps, n_states)
        Given the whole sequence (smoothed).
    cov : ndarray (n_steps, n_states, n_states)
    lag_cov : ndarray (n_steps - 1, n_states, n_states)
        Cov(s_{t+1}, s_t) given the whole sequence.
    filtered_mean, filtered_cov : ndarray
        Given the observations up to the step.
    predicted_mean, predicted_cov : ndarray
        Given the observations before the step.
    log_likelihood : float
        Log-density of the sequence.
    """

    mean: NDArray[np.float64]
    cov: NDArray[np.float64]
    lag_cov: NDArray[np.float64]
    filtered_mean: NDArray[np.float64]
    filtered_cov: NDArray[np.float64]
    predicted_mean: NDArray[np.float64]
    predicted_cov: NDArray[np.float64]
    log_likelihood: float

    def __repr__(self) -> str:
        n_steps, n_states = self.mean.shape
        return (
            f"StatePosterior({n_steps} steps, {n_states} states, "
            f"log_likelihood={self.log_likelihood:.6g})"
        )


@dataclass(frozen=True, repr=False)
class FilteredStates:
    """Distribution of each state of one sequence given the observations up to it.

    Parameters
    ----------
    mean : ndarray (n_steps, n_states)
    cov : ndarray (n_steps, n_states, n_states)
        Infinite in a direction of which neither a prior nor an observation has said
        anything yet; the mean has zero there.
    log_likelihood : float
        Log-density of the sequence.
    """

    mean: NDArray[np.float64]
    cov: NDArray[np.float64]
    log_likelihood: float

    def __repr__(self) -> str:
        n_steps, n_states = self.mean.shape
        return (
            f"FilteredStates({n_steps} steps, {n_states} states, "
            f"log_likelihood={self.log_likelihood:.6g})"
        )


def filtered_terms(
    arrays: Arrays, data: Sequences
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """log|F_t| and squared distances of the innovations of every step."""
    log_det, far = np.empty((2, len(data.values)))
    if not is_partial(data.values).any():
        _filter(arrays, data.values, data.offsets, log_det, far, 0)
        return log_det, far
    for i, x in enumerate(data):
        own, filled = arrays, np.ascontiguousarray(x)
        if is_partial(x).any():
            own, filled = masked(arrays, x)
        part = slice(data.offsets[i], data.offsets[i + 1])
        _filter(own, filled, np.array([0, len(x)]), log_det[part], far[part], i)
    return log_det, far


def _filter(arrays, values, offsets, log_det, far, number):
    """Filter sequences, of which the first is `number`."""
    bad = statespace.log_likelihoods(arrays, values, offsets, log_det, far)
    if bad >= 0:
        i, t = Sequences(values, offsets).place(bad)
        failed = np.full(number + i + 1, -1, dtype=np.intp)
        failed[number + i] = t
        refuse_failure(failed)


def smoothed(
    arrays: Arrays,
    x: NDArray[np.float64],
    n: int,
    number: int = 0,
    diffuse: NDArray[np.bool_] | None = None,
) -> StatePosterior:
    """Posterior of one sequence under compiled arrays.

    `diffuse` marks the states that begin without a prior.
    """
    arrays, filled = masked(arrays, x) if is_partial(x).any() else (arrays, x)
    filled = np.ascontiguousarray(filled)
    start = None
    if diffuse is not None and diffuse.any():
        start = FreeStart.of(arrays, filled, diffuse, number)
        start.refuse_undetermined(number)
        arrays = start.arrays()
    T, lag = len(x), np.empty((len(x), n, n))
    m, P = np.empty((T, n)), np.empty((T, n, n))
    run = Filtered.of(arrays, filled, number, m, P, lag)
    log_lik = run.log_likelihood(np.count_nonzero(~np.isnan(x)))
    if start is None:
        moments = run.mean, run.cov, run.predicted_mean, run.predicted_cov
        return StatePosterior(m, P, lag[:-1], *moments, log_lik)
    columns = start.smoothed_columns()
    turned = columns.swapaxes(1, 2)
    return StatePosterior(
        m,
        P + columns @ turned,
        lag[:-1] + columns[1:] @ turned[:-1],
        *start.filtered_moments(),
        *start.predicted_moments(),
        start.log_likelihood(np.count_nonzero(~np.isnan(x))),
    )


def filtered(
    arrays: Arrays,
    x: NDArray[np.float64],
    number: int = 0,
    diffuse: NDArray[np.bool_] | None = None,
) -> FilteredStates:
    """The states of one sequence given the observations up to each step."""
    arrays, filled = masked(arrays, x) if is_partial(x).any() else (arrays, x)
    filled, seen = np.ascontiguousarray(filled), np.count_nonzero(~np.isnan(x))
    if diffuse is not None and diffuse.any():
        start = FreeStart.of(arrays, filled, diffuse, number)
        return FilteredStates(*start.filtered_moments(), start.log_likelihood(seen))
    run = Filtered.of(arrays, filled, number)
    return FilteredStates(run.mean, run.cov, run.log_likelihood(seen))


def draw(
    arrays: Arrays, T: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """States and observations of one sequence."""
    mean, cov, A, b, Q, C, c, R, which = arrays
    which = which[:T] if len(A) > 1 else np.zeros(T, dtype=np.intp)
    Q_root, R_root = checks.root(Q), checks.root(R)
    n, d = len(mean), R.shape[-1]
    noise, blur = rng.normal(size=(T, n)), rng.normal(size=(T, d))
    s = np.empty((T, n))
    s[0] = mean + checks.root(cov) @ noise[0]
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(1, T):
            r = which[t]
            s[t] = A[r] @ s[t - 1] + b[r] + Q_root[r] @ noise[t]
        x = np.einsum("tij,tj->ti", C[which], s) + c[which]
    checks.refuse_overflow(s, x)
    return s, x + np.einsum("tij,tj->ti", R_root[which], blur)
