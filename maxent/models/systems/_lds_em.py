"""EM for linear dynamical systems: expected products, M step, prior, start.

    [A b] = (sum E s_t z') (sum E z z')^{-1},   Q = (scatter + nu Q0) / (count + nu)

with z = (s_{t-1}, 1), and likewise [C c] and R from the observed steps, m and P from
the first states. nu pseudo-observations of the covariances Q0 = P0 = R0 = I are the
prior: its log-density is -(nu / 2) (log|Q| + tr Q^{-1} Q0) and a constant. Data are
standardised, so that R0 has the variances of the columns.

Sources: Shumway & Stoffer (1982); Ghahramani & Hinton (1996).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from maxent._core.systems import expected_states
from maxent._inputs.sequences import Sequences
from maxent._support.threads import effective_threads
from maxent.models import _state_space as checks
from maxent.models._partial import expected_observations, is_partial
from maxent.models._state_space import Arrays, compiled, spectral_radius
from maxent.models.systems._state_posterior import refuse_failure, smoothed

_LOG_2PI = math.log(2.0 * math.pi)
_HALVINGS = 40  # of the step towards an unstable transition matrix


class Parameters(NamedTuple):
    """Arguments of the constructor, in its order."""

    transition: Any
    transition_cov: Any
    observation: Any
    observation_cov: Any
    initial_mean: Any
    initial_cov: Any
    transition_offset: Any
    observation_offset: Any

    def compiled(self) -> Arrays:
        """Arrays for the compiled functions."""
        return compiled(
            self.initial_mean,
            self.initial_cov,
            self.transition,
            self.transition_offset,
            self.transition_cov,
            self.observation,
            self.observation_offset,
            self.observation_cov,
        )


def checked(given: Parameters) -> tuple[Parameters, int | None]:
    """Checked parameters, and the length of those that vary with time."""
    A = checks.square_arrays("transition", given.transition)
    n = A.shape[-1]
    C = checks.shaped_like("observation", given.observation, n)
    d = C.shape[-2]
    R = checks.covariances("observation_cov", given.observation_cov, d, definite=True)
    found = Parameters(
        A,
        checks.covariances("transition_cov", given.transition_cov, n),
        C,
        R,
        checks.shaped("initial_mean", given.initial_mean, (n,)),
        checks.covariances("initial_cov", given.initial_cov, n),
        checks.shaped("transition_offset", given.transition_offset, (n,)),
        checks.shaped("observation_offset", given.observation_offset, (d,)),
    )
    lengths = []
    for name, array in found._asdict().items():
        core = 1 if name.endswith(("mean", "offset")) else 2
        constant = name.startswith("initial")
        if array.ndim > core + (not constant):
            axes = "no axis of steps" if constant else "one axis of steps at most"
            raise ValueError(f"{name} has shape {array.shape}; it has {axes}.")
        if array.ndim > core:
            lengths.append((name, len(array)))
    return found, checks.record_count(lengths)


@dataclass(frozen=True)
class Products:
    """Sums of expected products over all sequences, z = (s, 1)."""

    n_sequences: int
    before: NDArray[np.float64]  # z_{t-1} z_{t-1}' over transitions, (n + 1, n + 1)
    across: NDArray[np.float64]  # s_t z_{t-1}', (n, n + 1)
    after: NDArray[np.float64]  # s_t s_t', (n, n)
    seen: NDArray[np.float64]  # z_t z_t' over observed steps, (n + 1, n + 1)
    xz: NDArray[np.float64]  # x_t z_t', (d, n + 1)
    xx: NDArray[np.float64]  # (d, d)
    first: NDArray[np.float64]  # s_0, (n,)
    second: NDArray[np.float64]  # s_0 s_0', (n, n)

    @classmethod
    def of_row(cls, row: NDArray[np.float64], n: int, d: int, n_sequences: int) -> Self:
        """From a sum of the rows that the compiled function writes."""
        m, parts, at = n + 1, [], 0
        for shape in (
            (m, m), (n, m), (n, n), (m, m), (d, m), (d, d), (n,), (n, n),
        ):  # fmt: skip
            size = math.prod(shape)
            parts.append(row[at : at + size].reshape(shape))
            at += size
        return cls(n_sequences, *parts)

    def as_row(self) -> NDArray[np.float64]:
        """The sums in one row, as the compiled function writes them."""
        names = ("before", "across", "after", "seen", "xz", "xx", "first", "second")
        return np.concatenate([getattr(self, name).ravel() for name in names])


def n_products(n: int, d: int) -> int:
    """Numbers in a row of `Products`."""
    m = n + 1
    return 2 * m * m + n * m + n * n + d * m + d * d + n + n * n


def expected_products(
    parameters: Parameters, data: Sequences, n_jobs: int | None = None
) -> tuple[float, Products]:
    """Log-likelihood and expected products."""
    partial = is_partial(data.values)
    if partial.any():
        return _products_in_part(parameters, data, partial, n_jobs)
    n, d = parameters.initial_mean.shape[-1], data.values.shape[1]
    N = len(data)
    rows, values = np.empty((N, n_products(n, d))), np.empty(N)
    bad = np.empty(N, dtype=np.intp)
    expected_states.statistics(
        parameters.compiled(),
        data.values,
        data.offsets,
        effective_threads(n_jobs),
        rows,
        values,
        bad,
    )
    refuse_failure(bad)
    observed = np.count_nonzero(~np.isnan(data.values[:, 0]))
    log_likelihood = values.sum() - 0.5 * observed * d * _LOG_2PI
    return log_likelihood, Products.of_row(rows.sum(axis=0), n, d, N)


def _products_in_part(parameters, data, partial, n_jobs):
    """`expected_products` of sequences some of which miss parts of rows."""
    n, d = parameters.initial_mean.shape[-1], data.values.shape[1]
    arrays = parameters.compiled()
    some = np.logical_or.reduceat(partial, data.offsets[:-1])
    total, row = 0.0, np.zeros(n_products(n, d))
    whole = [x for x, part in zip(data, some) if not part]
    if whole:
        ends = np.cumsum([0, *map(len, whole)])
        own = Sequences(np.concatenate(whole), ends)
        total, products = expected_products(parameters, own, n_jobs)
        row += products.as_row()
    for i in np.flatnonzero(some):
        states = smoothed(arrays, data[i], n, int(i))
        total += states.log_likelihood
        row += _row_in_part(arrays, data[i], states)
    return total, Products.of_row(row, n, d, len(data))


def _row_in_part(arrays, x, states):
    """The sums of `Products` over one sequence."""
    m, P, lag = states.mean, states.cov, states.lag_cov
    z = np.concatenate([m, np.ones((len(m), 1))], axis=1)
    before = z[:-1].T @ z[:-1]
    before[:-1, :-1] += P[:-1].sum(axis=0)
    across = m[1:].T @ z[:-1]
    across[:, :-1] += lag.sum(axis=0)
    after = m[1:].T @ m[1:] + P[1:].sum(axis=0)
    seen, xz, xx = expected_observations(*(own[0] for own in arrays[5:8]), x, m, P)
    second = P[0] + np.outer(m[0], m[0])
    parts = (before, across, after, seen, xz, xx, m[0], second)
    return np.concatenate([part.ravel() for part in parts])


@dataclass(frozen=True)
class CovariancePrior:
    """`count` pseudo-observations of covariances, of the identity."""

    count: float

    def log_density(self, p: Parameters, fixed: frozenset[str]) -> float:
        """Of the covariances that are fitted, without the constant."""
        total = 0.0
        for name in ("transition_cov", "initial_cov", "observation_cov"):
            if name not in fixed:
                total += self.term(getattr(p, name))
        return total

    def term(self, cov: NDArray[np.float64]) -> float:
        """-(count / 2) (log|cov| + tr cov^{-1})."""
        if self.count == 0:
            return 0.0
        values = np.linalg.eigvalsh(cov)
        return -0.5 * self.count * float((np.log(values) + 1.0 / values).sum())

    def mode(
        self, scatter: NDArray[np.float64], count: float
    ) -> NDArray[np.float64] | None:
        """Covariance at the mode of the posterior; None without information."""
        total = count + self.count
        if total == 0:
            return None
        cov = (scatter + self.count * np.eye(len(scatter))) / total
        return 0.5 * (cov + cov.T)


def regression(cross, second, slope, offset, fix_slope, fix_offset):
    """[slope offset] that minimises the expected squared residual, and its scatter.

    cross = sum y z', second = sum z z' with z = (s, 1).
    """
    n = len(second) - 1
    if not fix_slope and not fix_offset:
        both = solve_right(cross, second)
        return both[:, :n], both[:, n]
    if not fix_slope:
        slope = solve_right(
            cross[:, :n] - np.outer(offset, second[n, :n]), second[:n, :n]
        )
    elif not fix_offset:
        offset = (cross[:, n] - slope @ second[:n, n]) / second[n, n]
    return slope, offset


def solve_right(cross, second):
    """cross second^{-1}; of least norm where `second` is singular."""
    scale = np.sqrt(np.maximum(np.diagonal(second), np.finfo(float).tiny))
    scaled = second / scale[:, None] / scale
    return np.linalg.lstsq(scaled, (cross / scale).T, rcond=1e-13)[0].T / scale


def residual_scatter(slope, offset, square, cross, second):
    """sum E (y - B z)(y - B z)' with B = [slope offset]."""
    B = np.column_stack([slope, offset])
    half = B @ cross.T
    return square - half - half.T + B @ second @ B.T


def stable_step(old, new):
    """The last point on the way from `old` to `new` with spectral radius <= 1.

    The expected log-likelihood is concave along it, so every point gains on `old`.
    """
    if spectral_radius(new) <= 1.0:
        return new
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if spectral_radius(old + middle * (new - old)) <= 1.0:
            low = middle
        else:
            high = middle
    return old + low * (new - old)


def maximised(
    p: Parameters,
    e: Products,
    prior: CovariancePrior,
    fixed: frozenset[str],
    stable: bool,
) -> Parameters:
    """M step."""
    new = p._asdict()
    n = len(e.first)
    n_transitions = e.before[n, n]
    if n_transitions:
        A, b = _transition_step(p, e, fixed, stable)
        new["transition"], new["transition_offset"] = A, b
        scatter = residual_scatter(A, b, e.after, e.across, e.before)
        _cov_step(new, "transition_cov", scatter, n_transitions, prior, fixed)
    C, c = regression(
        e.xz,
        e.seen,
        p.observation,
        p.observation_offset,
        "observation" in fixed,
        "observation_offset" in fixed,
    )
    new["observation"], new["observation_offset"] = C, c
    scatter = residual_scatter(C, c, e.xx, e.xz, e.seen)
    _cov_step(new, "observation_cov", scatter, e.seen[n, n], prior, fixed)
    if "initial_mean" not in fixed:
        new["initial_mean"] = e.first / e.n_sequences
    m = new["initial_mean"]
    half = np.outer(m, e.first)
    scatter = e.second - half - half.T + e.n_sequences * np.outer(m, m)
    _cov_step(new, "initial_cov", scatter, e.n_sequences, prior, fixed)
    return Parameters(**new)


def _transition_step(p, e, fixed, stable):
    fix_A, fix_b = "transition" in fixed, "transition_offset" in fixed
    A, b = regression(
        e.across, e.before, p.transition, p.transition_offset, fix_A, fix_b
    )
    if stable and not fix_A:
        limited = stable_step(p.transition, A)
        if limited is not A:
            A = limited
            b = p.transition_offset
            _, b = regression(e.across, e.before, A, b, True, fix_b)
    return A, b


def _cov_step(new, name, scatter, count, prior, fixed):
    if name not in fixed:
        cov = prior.mode(scatter, count)
        if cov is not None:
            new[name] = cov


@dataclass(frozen=True)
class Problem:
    """One EM step, for `maximize_by_em`; points are `Parameters`.

    The objective is the log-likelihood plus the log-density of the prior, and `shift`,
    by which the units of the data change it.
    """

    data: Sequences  # standardised
    prior: CovariancePrior
    fixed: frozenset[str]
    stable: bool
    shift: float
    n_jobs: int | None

    def step(self, p: Parameters) -> tuple[float, Parameters]:
        """Objective at a point, and the point after one EM step."""
        try:
            value, products = expected_products(p, self.data, self.n_jobs)
        except FloatingPointError as error:
            if self.prior.count > 0.0:
                raise
            raise ValueError(
                "prior=0 leaves a covariance singular, and the likelihood has no "
                "maximum; set prior > 0, drop constant columns, or add rows."
            ) from error
        new = maximised(p, products, self.prior, self.fixed, self.stable)
        return value + self.prior.log_density(p, self.fixed) + self.shift, new


# -- start ---------------------------------------------------------------------------
def start(
    data: Sequences, n: int, rng: np.random.Generator | None = None
) -> Parameters:
    """Principal components of windows as states of unit variance, then regressions.

    A window holds as many rows as n states need; missing rows are interpolated. `rng`
    adds noise to the states, for further starts. The data are standardised.
    """
    d = data.values.shape[1]
    width = -(-n // d)
    filled = [_interpolated(x) for x in data]
    windows = np.concatenate([_windows(x, width) for x in filled])
    X = np.concatenate(filled)
    centred = windows - windows.mean(axis=0)
    _, s, Vt = np.linalg.svd(centred, full_matrices=False)
    states = np.zeros((len(X), n))
    k = min(n, len(s))
    root = np.sqrt(max(len(X) - 1, 1))
    kept = s[:k] > 1e-8 * max(s[0], 1e-300)
    states[:, :k][:, kept] = (centred @ Vt[:k][kept].T) / s[:k][kept] * root
    if rng is not None:
        states = states + rng.normal(size=states.shape)
    z = np.column_stack([states, np.ones(len(states))])
    second = z.T @ z + np.diag(np.r_[np.full(n, 1e-3 * len(z)), 0.0])
    C, c = regression(X.T @ z, second, None, None, False, False)
    R = np.cov(X - states @ C.T - c, rowvar=False, bias=True).reshape(d, d)
    last = np.zeros(len(z), dtype=bool)
    last[data.offsets[1:] - 1] = True
    firsts = np.zeros(len(z), dtype=bool)
    firsts[data.offsets[:-1]] = True
    A, b, Q = 0.5 * np.eye(n), np.zeros(n), np.eye(n)
    if (~last).sum() > 1:
        before, after = z[~last], states[~firsts]
        second = before.T @ before
        second = second + np.diag(np.r_[np.full(n, 1e-3 * len(before) + 1e-3), 0.0])
        A, b = regression(after.T @ before, second, None, None, False, False)
        A = A * min(1.0, 0.98 / max(spectral_radius(A), 1e-300))
        b = (after - before[:, :n] @ A.T).mean(axis=0)
        Q = np.cov(after - before[:, :n] @ A.T - b, rowvar=False, bias=True)
        Q = Q.reshape(n, n) + 0.05 * np.eye(n)
    R = R + 0.05 * np.eye(d)
    m = states[firsts].mean(axis=0)
    return Parameters(A, Q, C, R, m, np.eye(n), b, c)


def _interpolated(x):
    """Rows with what is missing on the lines between its neighbours."""
    lost = np.isnan(x)
    if not lost.any():
        return x
    t = np.arange(len(x))
    columns = [
        np.interp(t, t[~gone], column[~gone]) if not gone.all() else np.zeros(len(x))
        for column, gone in zip(x.T, lost.T)
    ]
    return np.column_stack(columns)


def _windows(x, width):
    """Each row beside those before it, the first repeated at the beginning."""
    padded = np.concatenate([np.repeat(x[:1], width - 1, axis=0), x])
    parts = [padded[width - 1 - k : len(padded) - k] for k in range(width)]
    return np.concatenate(parts, axis=1)
