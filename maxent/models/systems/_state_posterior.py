"""States of linear dynamical systems: smoothed by data, and drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxent._core.systems import statespace
from maxent._inputs.sequences import Sequences
from maxent.models import _state_space as checks
from maxent.models._partial import is_partial, masked
from maxent.models._state_space import Arrays

_LOG_2PI = math.log(2.0 * math.pi)


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


def refuse_failure(bad: NDArray[np.intp]) -> None:
    """Error if the filter of a sequence met a covariance that is not definite."""
    if (bad >= 0).any():
        i = int(np.argmax(bad >= 0))
        raise FloatingPointError(
            f"the covariance of observation {bad[i]} of sequence {i}, given those "
            "before it, is not positive definite in double precision: the state "
            "covariance has grown beyond it. Use a transition of spectral radius <= 1, "
            "or a larger observation_cov."
        )


def smoothed(
    arrays: Arrays, x: NDArray[np.float64], n: int, number: int = 0
) -> StatePosterior:
    """Posterior of one sequence under compiled arrays."""
    T = len(x)
    observed = np.count_nonzero(~np.isnan(x))
    if is_partial(x).any():
        arrays, x = masked(arrays, x)
    vectors = [np.empty((T, n)) for _ in range(3)]
    matrices = [np.empty((T, n, n)) for _ in range(4)]
    log_det, far = np.empty((2, T))
    pm, fm, m = vectors
    pP, fP, P, lag = matrices
    x = np.ascontiguousarray(x)
    bad = statespace.smooth(arrays, x, pm, pP, fm, fP, m, P, lag, log_det, far)
    if bad >= 0:
        failed = np.full(number + 1, -1, dtype=np.intp)
        failed[number] = bad
        refuse_failure(failed)
    value = -0.5 * float(log_det.sum() + far.sum() + observed * _LOG_2PI)
    return StatePosterior(m, P, lag[:-1], fm, fP, pm, pP, value)


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
