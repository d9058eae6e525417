"""Filters of one sequence, starts without a prior, and derivatives of likelihoods.

A state that begins without a prior is an unknown number delta with a flat density.
Given delta everything is Gaussian and linear in it:

    log p(x) = log int p(x | delta) d delta,   delta | x ~ N(S^{-1} s, S^{-1}),

The parts have a normal law besides, of variance one: the sum of a flat number and a
normal one is as flat, and F is definite even where outputs have no noise. Here
S = sum E' F^{-1} E and s = sum E' F^{-1} v over the innovations v, of which E is
the derivative by -delta. That is the exact diffuse likelihood, the limit of proper
ones.

Sources: de Jong (1991), The diffuse Kalman filter; Durbin & Koopman (2012), chapter 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent._core.systems import statespace, system_scores
from maxent.models._partial import is_partial, masked
from maxent.models._state_space import Arrays, Parameters

Array = NDArray[np.float64]
_LOG_2PI = math.log(2.0 * math.pi)
# Eigenvalues of the scaled information below this share of one are rounding: the
# direction is not determined. Sums of 1e4 steps lose about 1e-12.
_UNKNOWN = 1e-11


def refuse_failure(bad: NDArray[np.intp]) -> None:
    """Error if the filter of a sequence met a covariance that is not definite."""
    if (bad >= 0).any():
        i = int(np.argmax(bad >= 0))
        raise FloatingPointError(
            f"the covariance of observation {bad[i]} of sequence {i}, given those "
            "before it, is not positive definite in double precision: the state "
            "covariance has grown beyond it. Use a transition of spectral radius <= 1, "
            "or a larger observation_cov; outputs without noise need states with "
            "noise that no two of them share."
        )


@dataclass(frozen=True)
class Filtered:
    """Moments of the filter of one sequence."""

    predicted_mean: Array  # (T, n)
    predicted_cov: Array  # (T, n, n)
    mean: Array
    cov: Array
    log_det: Array  # (T,)
    distance: Array

    @classmethod
    def of(cls, arrays: Arrays, x: Array, number: int, *smoothed: Array) -> Filtered:
        """Run the filter, and the smoother if there are arrays to fill by it."""
        T, n = len(x), len(arrays[0])
        vectors, matrices = np.empty((2, T, n)), np.empty((2, T, n, n))
        log_det, far = np.empty((2, T))
        moments = vectors[0], matrices[0], vectors[1], matrices[1]
        bad = statespace.smooth(arrays, x, *moments, log_det, far, *smoothed)
        if bad >= 0:
            failed = np.full(number + 1, -1, dtype=np.intp)
            failed[number] = bad
            refuse_failure(failed)
        return cls(*moments, log_det, far)

    def log_likelihood(self, observed: Any) -> float:
        """Log-density of a sequence with this number of observed values."""
        total = self.log_det.sum() + self.distance.sum() + observed * _LOG_2PI
        return -0.5 * float(total)


@dataclass(frozen=True)
class FreeStart:
    """One sequence whose first state has parts delta without a prior.

    Means come in columns: that at the expected delta, and those of the directions L of
    delta, where L L' is its covariance.
    """

    at_zero: Arrays
    x: Array
    run: Filtered
    free: NDArray[np.bool_]
    predicted: Array  # (T, n, 1 + q): the mean at delta = 0, and derivatives
    filtered: Array
    information: Array  # (T, 1 + q, 1 + q) of steps so far

    @classmethod
    def of(
        cls, arrays: Arrays, x: Array, free: NDArray[np.bool_], number: int
    ) -> FreeStart:
        """Filter a sequence given delta = 0, and find how means move with delta."""
        run = Filtered.of(arrays, x, number)
        (T, n), k = run.mean.shape, 1 + int(np.count_nonzero(free))
        predicted, filtered = np.zeros((2, T, n, k))
        information = np.empty((T, k, k))
        predicted[0, :, 0] = arrays[0]
        predicted[0, free, 1:] = np.eye(k - 1)
        system_scores.spread_columns(
            arrays, x, run.predicted_cov, predicted, filtered, information
        )
        return cls(arrays, x, run, free, predicted, filtered, information)

    def _laws(self, sums: Array) -> tuple[Array, Array, Array]:
        """Expected delta, columns L and columns of unknown directions, for each sum.

        Columns of directions that are not of their kind are zero.
        """
        S = sums[:, 1:, 1:]
        scale = np.sqrt(np.maximum(np.diagonal(S, axis1=1, axis2=2), 0.0))
        scale = np.where(scale > 0.0, scale, 1.0)[:, :, None]
        values, vectors = np.linalg.eigh(S / scale / scale.swapaxes(1, 2))
        known = values > _UNKNOWN
        size = np.where(known, 1.0 / np.sqrt(np.where(known, values, 1.0)), 0.0)
        root = vectors / scale * size[:, None, :]
        unknown = vectors / scale * ~known[:, None, :]
        delta = -root @ (root.swapaxes(1, 2) @ sums[:, 1:, :1])
        return delta[..., 0], root, unknown

    def _law(self) -> tuple[Array, Array, Array]:
        """Estimate and roots of what determines delta after the last step."""
        delta, root, unknown = self._laws(self.information[-1:])
        return delta[0], root[0], unknown[0]

    def refuse_undetermined(self, number: int) -> None:
        """Error if the sequence does not determine delta."""
        unknown = np.asarray(self._law()[2].any(axis=0))
        if unknown.any():
            known = len(unknown) - np.count_nonzero(unknown)
            raise ValueError(
                f"sequence {number} determines {known} of the {len(unknown)} "
                "directions of the states that begin without a prior (initial_cov=inf):"
                " give initial_cov a finite variance there, or a longer sequence."
            )

    def log_likelihood(self, observed: Any) -> float:
        """Diffuse log-likelihood; directions that are not determined are left out."""
        root = self._law()[1]
        root = root[:, root.any(axis=0)]
        gain = np.square(root.T @ self.information[-1, 1:, 0]).sum()
        log_det = np.linalg.slogdet(root.T @ root)[1] if root.size else 0.0
        return self.run.log_likelihood(observed) + 0.5 * float(gain + log_det)

    def arrays(self) -> Arrays:
        """The system that begins at the expected delta."""
        mean = np.array(self.at_zero[0])
        mean[self.free] += self._law()[0]
        return (mean, *self.at_zero[1:])

    def columns(self) -> tuple[Array, Array]:
        """Columns of predicted and filtered means given the whole sequence's delta."""
        delta, root, _ = self._law()
        turn = np.zeros((1 + len(delta), 1 + root.shape[1]))
        turn[0, 0], turn[1:, 0], turn[1:, 1:] = 1.0, delta, root
        return self.predicted @ turn, self.filtered @ turn

    def smoothed_columns(self) -> Array:
        """Columns (T, n, q) of the smoothed states."""
        predicted, filtered = self.columns()
        back = Adjoint.of(self.at_zero, self.x, predicted, filtered, self.run)
        return predicted[..., 1:] + self.run.predicted_cov @ back.states[..., 1:]

    def filtered_moments(self) -> tuple[Array, Array]:
        """Moments of each state given the observations up to it."""
        return self._moments(self.filtered, self.run.cov, 0)

    def predicted_moments(self) -> tuple[Array, Array]:
        """Moments of each state given the observations before it."""
        return self._moments(self.predicted, self.run.predicted_cov, 1)

    def _moments(self, columns, cov, behind):
        sums = np.zeros_like(self.information)
        sums[behind:] = self.information[: len(sums) - behind]
        delta, root, unknown = self._laws(sums)
        own = columns[..., 1:]
        mean = columns[..., 0] + (own @ delta[..., None])[..., 0]
        spread, lost = own @ root, own @ unknown
        cov = cov + spread @ spread.swapaxes(1, 2)
        for t in np.flatnonzero(unknown.any(axis=(1, 2))):
            cov[t] = _without_limit(cov[t], lost[t], own[t])
        return mean, cov


def _without_limit(cov: Array, lost: Array, own: Array) -> Array:
    """Covariance with infinite entries where columns of no limit reach."""
    size = max(float(np.abs(own).max()), np.finfo(float).tiny)
    scale = max(float(np.abs(lost).max()), np.finfo(float).tiny)
    reach = np.where(np.abs(lost) > 1e-9 * scale, lost, 0.0) / size
    product = reach @ reach.T
    tiny = np.abs(product) <= 1e-12 * np.abs(product).max()
    return np.where(tiny, cov, np.copysign(np.inf, product))


@dataclass(frozen=True)
class Adjoint:
    """Derivatives of the log-likelihood of one sequence."""

    matrices: list[Array]  # by A, Q, C and R
    states: Array  # (T, n, k) by the predicted means; the first column by b of a step
    errors: Array  # (T, d) by c of a step
    first_cov: Array  # by the first covariance

    @classmethod
    def of(
        cls, arrays: Arrays, x: Array, predicted: Array, filtered: Array, run: Filtered
    ) -> Adjoint:
        """Go back over one sequence."""
        T, n, k = predicted.shape
        d = x.shape[1]
        shapes = (n, n), (n, n), (d, n), (d, d)
        ends = np.cumsum([rows * columns for rows, columns in shapes])
        out, states = np.empty(ends[-1]), np.empty((T, n, k))
        errors, first_cov = np.empty((T, d)), np.empty((n, n))
        system_scores.adjoint(
            arrays, x, *map(np.ascontiguousarray, (predicted, run.predicted_cov)),
            *map(np.ascontiguousarray, (filtered, run.cov)), out, states, errors,
            first_cov,
        )  # fmt: skip
        parts = [
            part.reshape(shape) for part, shape in zip(np.split(out, ends[:-1]), shapes)
        ]
        return cls(parts, states, errors, first_cov)


def gradient(
    p: Parameters, x: Array, inputs: Array | None = None, number: int = 0
) -> tuple[float, Parameters]:
    """Log-likelihood of one sequence and its derivatives, in the form of parameters.

    Those by covariances G are symmetric: the derivative along dQ is tr(G dQ).
    """
    arrays, free = p.compiled(inputs), p.diffuse
    observed, hidden = np.count_nonzero(~np.isnan(x)), np.zeros(x.shape[1])
    if is_partial(x).any():
        hidden = np.isnan(x)[is_partial(x)].sum(axis=0)
        arrays, x = masked(arrays, x)
    x = np.ascontiguousarray(x)
    if free.any():
        start = FreeStart.of(arrays, x, free, number)
        start.refuse_undetermined(number)
        run, value = start.run, start.log_likelihood(observed)
        columns = start.columns()
    else:
        run = Filtered.of(arrays, x, number)
        value = run.log_likelihood(observed)
        columns = run.predicted_mean[..., None], run.mean[..., None]
    back = Adjoint.of(arrays, x, *columns, run)
    A, Q, C, R = back.matrices
    moved = back.states[..., 0]
    if inputs is None:
        inputs = np.zeros((len(x), 0))
    kept = ~free
    return value, Parameters(
        A,
        Q,
        C,
        # the noise of variance one in the place of missing entries is no parameter
        R + np.diag(0.5 * hidden),
        np.where(kept, moved[0], 0.0),
        np.where(np.outer(kept, kept), back.first_cov, 0.0),
        moved[1:].sum(axis=0),
        back.errors.sum(axis=0),
        moved[1:].T @ inputs[1:],
        back.errors.T @ inputs,
    )


def total_gradient(
    p: Parameters, data: Any, inputs: list[Array] | None = None
) -> tuple[float, Parameters]:
    """Sums over sequences."""
    each = [
        gradient(p, x, None if inputs is None else inputs[i], i)
        for i, x in enumerate(data)
    ]
    total = [np.sum(parts, axis=0) for parts in zip(*(g for _, g in each))]
    return math.fsum(value for value, _ in each), Parameters(*total)
