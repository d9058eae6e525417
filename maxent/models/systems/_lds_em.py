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
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from maxent._core.systems import expected_states
from maxent._inputs.sequences import Sequences
from maxent._support.threads import effective_threads
from maxent.models._partial import expected_observations, is_partial
from maxent.models._quasi_newton import QuasiNewton
from maxent.models._state_space import Parameters, spectral_radius
from maxent.models.systems._derivatives import refuse_failure, total_gradient
from maxent.models.systems._free_parameters import COVARIANCES, Coordinates, Held
from maxent.models.systems._state_posterior import smoothed

_LOG_2PI = math.log(2.0 * math.pi)
_AT_LIMIT = 1e-8  # modulus below one at which an eigenvalue is at the limit
_REFINEMENTS = 10  # by 16 each, of the step towards an unstable transition matrix


@dataclass(frozen=True)
class Products:
    """Sums of expected products over all sequences, z = (s, u, 1) with the inputs u.

    Of k inputs, m = n + k + 1. Before a transition z = (s_{t-1}, u_t, 1). Sums that a
    step does not need are left empty.
    """

    n_sequences: int
    before: NDArray[np.float64]  # z z' before transitions, (m, m)
    across: NDArray[np.float64]  # s_t z', (n, m)
    after: NDArray[np.float64]  # s_t s_t', (n, n)
    seen: NDArray[np.float64]  # z_t z_t' over observed steps, (m, m)
    xz: NDArray[np.float64]  # x_t z_t', (d, m)
    xx: NDArray[np.float64]  # (d, d)
    first: NDArray[np.float64]  # s_0, (n,)
    second: NDArray[np.float64]  # s_0 s_0', (n, n)

    @classmethod
    def of_row(
        cls, row: NDArray[np.float64], n: int, d: int, n_sequences: int, k: int = 0
    ) -> Self:
        """From a sum of the rows that the compiled function writes; k inputs."""
        m, parts, at = n + k + 1, [], 0
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


def n_products(n: int, d: int, k: int = 0) -> int:
    """Numbers in a row of `Products` with k inputs."""
    m = n + k + 1
    return 2 * m * m + n * m + n * n + d * m + d * d + n + n * n


def expected_products(
    parameters: Parameters,
    data: Sequences,
    n_jobs: int | None = None,
    inputs: list[NDArray[np.float64]] | None = None,
) -> tuple[float, Products]:
    """Log-likelihood and expected products."""
    partial = is_partial(data.values)
    if inputs is not None or parameters.diffuse.any() or partial.any():
        return _products_one_by_one(parameters, data, partial, n_jobs, inputs)
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


def _products_one_by_one(p, data, partial, n_jobs, inputs):
    """`expected_products` of sequences that the compiled function does not take.

    It takes those that are whole, where the system has no inputs and a prior.
    """
    n, d, k = len(p.initial_mean), data.values.shape[1], p.transition_input.shape[1]
    some = np.logical_or.reduceat(partial, data.offsets[:-1])
    some = some | (inputs is not None) | p.diffuse.any()
    total, row = 0.0, np.zeros(n_products(n, d, k))
    whole = [x for x, part in zip(data, some) if not part]
    if whole:
        ends = np.cumsum([0, *map(len, whole)])
        own = Sequences(np.concatenate(whole), ends)
        total, products = expected_products(p, own, n_jobs)
        row += products.as_row()
    for i in np.flatnonzero(some):
        u = None if inputs is None else inputs[i]
        states = smoothed(p.compiled(u), data[i], n, int(i), p.diffuse)
        total += states.log_likelihood
        row += _row_of_one(p, data[i], states, u)
    return total, Products.of_row(row, n, d, len(data), k)


def _row_of_one(p, x, states, inputs):
    """The sums of `Products` over one sequence."""
    m, P, lag = states.mean, states.cov, states.lag_cov
    u = np.zeros((len(m), 0)) if inputs is None else inputs
    n = m.shape[1]
    z = np.concatenate([m[:-1], u[1:], np.ones((len(m) - 1, 1))], axis=1)
    before = z.T @ z
    before[:n, :n] += P[:-1].sum(axis=0)
    across = m[1:].T @ z
    across[:, :n] += lag.sum(axis=0)
    after = m[1:].T @ m[1:] + P[1:].sum(axis=0)
    c = p.observation_offset + u @ p.observation_input.T
    law = p.observation, c, p.observation_cov
    seen, xz, xx = expected_observations(*law, x, m, P, u)
    second = P[0] + np.outer(m[0], m[0])
    parts = (before, across, after, seen, xz, xx, m[0], second)
    return np.concatenate([part.ravel() for part in parts])


@dataclass(frozen=True)
class CovariancePrior:
    """`count` pseudo-observations of covariances, of the identity."""

    count: float

    def log_density(self, p: Parameters, held: Held) -> float:
        """Of the covariances that are fitted, without the constant."""
        if self.count == 0:
            return 0.0
        return sum(
            self.term(own)
            for own in (_free_part(p, name, held) for name in COVARIANCES)
            if own.size
        )

    def term(self, cov: NDArray[np.float64]) -> float:
        """-(count / 2) (log|cov| + tr cov^{-1})."""
        if self.count == 0:
            return 0.0
        values = np.linalg.eigvalsh(cov)
        return -0.5 * self.count * float((np.log(values) + 1.0 / values).sum())

    def derivative(self, p: Parameters, held: Held) -> dict[str, NDArray[np.float64]]:
        """Derivatives of `log_density` by the covariances."""
        found = {}
        for name in COVARIANCES:
            own = _free_part(p, name, held)
            found[name] = np.zeros(getattr(p, name).shape)
            if own.size and self.count:
                inverse = np.linalg.inv(own)
                term = -0.5 * self.count * (inverse - inverse @ inverse)
                found[name][held.inner(name)] = term
        return found

    def mode(
        self, scatter: NDArray[np.float64], count: float
    ) -> NDArray[np.float64] | None:
        """Covariance at the mode of the posterior; None without information."""
        total = count + self.count
        if total == 0:
            return None
        cov = (scatter + self.count * np.eye(len(scatter))) / total
        return 0.5 * (cov + cov.T)


def _free_part(p, name, held):
    """The block of a covariance that is fitted."""
    return getattr(p, name)[held.inner(name)]


def regression(cross, second, old=None, held=None, cov=None):
    """B that minimises the expected tr cov^{-1} (y - B z)(y - B z)'; some entries held.

    cross = sum y z', second = sum z z'. Without entries that are held, or with columns
    of them, cov changes nothing; rows of a diagonal one are apart.
    """
    if held is None or not held.any():
        return solve_right(cross, second)
    if held.all():
        return old
    if (held == held[0]).all():
        return _beside(cross, second, old, held[0])
    if not np.any(cov - np.diag(np.diagonal(cov))):
        each = zip(cross, old, held)
        rows = [_beside(y[None], second, B[None], kept) for y, B, kept in each]
        return np.concatenate(rows)
    return _weighted(cross, second, old, held, np.linalg.inv(cov))


def _beside(cross, second, old, kept):
    """Regression with the columns that are kept at their old values."""
    new = np.array(old)
    if not kept.all():
        free = ~kept
        left = cross[:, free] - old[:, kept] @ second[np.ix_(kept, free)]
        new[:, free] = solve_right(left, second[np.ix_(free, free)])
    return new


def _weighted(cross, second, old, held, weight):
    """Regression whose rows the precision `weight` of the noise ties together."""
    free = ~held.ravel()
    K, new = np.kron(weight, second), np.array(old)
    known = np.where(held, old, 0.0).ravel()
    right = (weight @ cross).ravel()[free] - K[free] @ known
    new[~held] = solve_right(right[None], K[np.ix_(free, free)])[0]
    return new


def split_offset(B):
    """Slope and offset of a regression on (s, 1)."""
    return B[:, :-1], B[:, -1]


def solve_right(cross, second):
    """cross second^{-1}; of least norm where `second` is singular."""
    scale = np.sqrt(np.maximum(np.diagonal(second), np.finfo(float).tiny))
    scaled = second / scale[:, None] / scale
    return np.linalg.lstsq(scaled, (cross / scale).T, rcond=1e-13)[0].T / scale


def residual_scatter(slope, offset, square, cross, second):
    """sum E (y - B z)(y - B z)' with B = [slope offset]."""
    return scatter_of(np.column_stack([slope, offset]), square, cross, second)


def scatter_of(B, square, cross, second):
    """sum E (y - B z)(y - B z)'."""
    half = B @ cross.T
    return square - half - half.T + B @ second @ B.T


def stable_step(old, new):
    """The last point on the way from `old` to `new` with spectral radius <= 1.

    The expected log-likelihood is concave along it, so every point gains on `old`.
    """
    if spectral_radius(new) <= 1.0:
        return new
    return old + stable_share(old, new) * (new - old)


def stable_share(old, new):
    """Share of the way from `old` to `new` on which the spectral radius is <= 1."""
    if spectral_radius(new) <= 1.0:
        return 1.0
    low, width = 0.0, 1.0
    parts = np.arange(1, 17) / 16.0
    for _ in range(_REFINEMENTS):
        shares = low + width * parts
        points = old + shares[:, None, None] * (new - old)
        beyond = np.abs(np.linalg.eigvals(points)).max(axis=1) > 1.0
        low, width = low + width * int(np.argmax(beyond)) / 16.0, width / 16.0
    return low


def along_limit(A, slope):
    """The part of a derivative that does not lead beyond the spectral radius one.

    The radius grows along Re(u w') / Re(w' v) at an eigenvalue of modulus one, with its
    right and left eigenvectors v and w and their phases in u.
    """
    values, right = np.linalg.eig(A)
    k = int(np.argmax(np.abs(values)))
    if np.abs(values[k]) < 1.0 - _AT_LIMIT:
        return slope
    others, left = np.linalg.eig(A.T)
    w, v = left[:, np.argmin(np.abs(others - values[k]))], right[:, k]
    scale = w @ v
    if np.abs(scale) < _AT_LIMIT:  # a defective eigenvalue, whose modulus has no slope
        return slope
    outward = np.real(np.conj(values[k]) * np.outer(w, v) / scale)
    outward = np.where(slope == 0.0, 0.0, outward)
    beyond = np.sum(outward * slope)
    return slope - max(beyond, 0.0) / max(np.sum(outward**2), 1e-300) * outward


def maximised(
    p: Parameters, e: Products, prior: CovariancePrior, held: Held, stable: bool
) -> Parameters:
    """M step; where entries of few rows are held, each part given the others."""
    new = p._asdict()
    if e.before[-1, -1]:
        transition_step(new, p, e, prior, held, stable)
    observation_step(new, p, e, prior, held)
    first_step(new, p, e, prior, held)
    return Parameters(**new)


_TRANSITION = ("transition", "transition_input", "transition_offset")
_OBSERVATION = ("observation", "observation_input", "observation_offset")


def transition_step(
    new: dict[str, Any],
    p: Parameters,
    e: Products,
    prior: CovariancePrior,
    held: Held,
    stable: bool,
) -> None:
    """M step of what leads from state to state, written into `new`."""
    n, law = len(p.initial_mean), (e.across, e.before)
    B, mask = _stacked(p, _TRANSITION), _stacked(held.masks, _TRANSITION)
    best = regression(*law, B, mask, p.transition_cov)
    if stable and not held.every("transition"):
        limited = stable_step(B[:, :n], best[:, :n])
        if not np.array_equal(limited, best[:, :n]):
            kept = np.array(mask)
            kept[:, :n] = True
            start = np.concatenate([limited, B[:, n:]], axis=1)
            best = regression(*law, start, kept, p.transition_cov)
    _unstack(new, _TRANSITION, best, n)
    scatter = scatter_of(best, e.after, *law)
    _cov_step(new, "transition_cov", scatter, e.before[-1, -1], prior, held)


def observation_step(
    new: dict[str, Any],
    p: Parameters,
    e: Products,
    prior: CovariancePrior,
    held: Held,
) -> None:
    """M step of what states show, written into `new`."""
    B, mask = _stacked(p, _OBSERVATION), _stacked(held.masks, _OBSERVATION)
    best = regression(e.xz, e.seen, B, mask, p.observation_cov)
    _unstack(new, _OBSERVATION, best, len(p.initial_mean))
    scatter = scatter_of(best, e.xx, e.xz, e.seen)
    _cov_step(new, "observation_cov", scatter, e.seen[-1, -1], prior, held)


def _stacked(p, names):
    """Slope, input matrix and offset beside one another."""
    return np.column_stack([getattr(p, name) for name in names])


def _unstack(new, names, B, n):
    new[names[0]], new[names[1]], new[names[2]] = B[:, :n], B[:, n:-1], B[:, -1]


def first_step(
    new: dict[str, Any],
    p: Parameters,
    e: Products,
    prior: CovariancePrior,
    held: Held,
) -> None:
    """M step of the law of the first state, where it has a prior, into `new`."""
    own, N = ~p.diffuse, np.array([[float(e.n_sequences)]])
    if not own.any():
        return
    P, m = p.initial_cov[np.ix_(own, own)], np.array(p.initial_mean)
    kept = held.mask("initial_mean")[own][:, None]
    m[own] = regression(e.first[own][:, None], N, m[own][:, None], kept, P)[:, 0]
    new["initial_mean"] = m
    scatter = scatter_of(m[:, None], e.second, e.first[:, None], N)
    _cov_step(new, "initial_cov", scatter, e.n_sequences, prior, held)


def _cov_step(new, name, scatter, count, prior, held):
    if not held.block(name).any():
        return
    cov = prior.mode(scatter[held.inner(name)], count)
    if cov is not None:
        new[name] = np.array(new[name])
        if name in held.diagonal:
            cov = np.diag(np.diagonal(cov))
        new[name][held.inner(name)] = cov


@dataclass(frozen=True)
class Problem:
    """One EM step, for `maximize_by_em`; points are `Parameters`.

    The objective is the log-likelihood plus the log-density of the prior, and `shift`,
    by which the units of the data change it.
    """

    data: Sequences  # standardised
    prior: CovariancePrior
    held: Held
    stable: bool
    shift: float
    n_jobs: int | None
    inputs: list[NDArray[np.float64]] | None = None

    def step(self, p: Parameters) -> tuple[float, Parameters]:
        """Objective at a point, and the point after one EM step."""
        try:
            value, products = expected_products(p, self.data, self.n_jobs, self.inputs)
        except FloatingPointError as error:
            if self.prior.count > 0.0:
                raise
            raise ValueError(
                "prior=0 leaves a covariance singular, and the likelihood has no "
                "maximum; set prior > 0, drop constant columns, or add rows."
            ) from error
        new = maximised(p, products, self.prior, self.held, self.stable)
        return value + self.prior.log_density(p, self.held) + self.shift, new

    def faster(self, p: Parameters) -> QuasiNewton[Parameters]:
        """Steps of a run from a start.

        EM does not move what is seen without noise, so it is no beginning there.
        """
        covs = p.transition_cov, p.observation_cov
        noisy = all((np.diagonal(cov) > 0.0).all() for cov in covs)
        return QuasiNewton(self) if noisy else QuasiNewton(self, em_steps=0)

    def slope(self, p: Parameters) -> tuple[float, Coordinates, NDArray[np.float64]]:
        """Objective at a point, coordinates there, and the derivatives by them."""
        value, by_entry = total_gradient(p, self.data, self.inputs)
        more = self.prior.derivative(p, self.held)
        by_entry = by_entry._replace(
            **{name: getattr(by_entry, name) + own for name, own in more.items()}
        )
        coordinates = Coordinates.of(p, self.held)
        if self.stable:
            moved = np.where(self.held.mask("transition"), 0.0, by_entry.transition)
            along = along_limit(p.transition, moved)
            by_entry = by_entry._replace(transition=along)
        value += self.prior.log_density(p, self.held) + self.shift
        return value, coordinates, coordinates.pull(p, by_entry)

    def reach(self, old: Parameters, new: Parameters) -> float:
        """Share of the way from one point to another on which it is stable."""
        if not self.stable or self.held.every("transition"):
            return 1.0
        return stable_share(old.transition, new.transition)

    def within(self, old: Parameters, new: Parameters) -> Parameters:
        """The last allowed point on the way from an old transition to a new one."""
        if not self.stable or self.held.every("transition"):
            return new
        radius = spectral_radius(new.transition)
        if radius > 1.0 and not self.held.mask("transition").any():
            # Towards zero there is a stable matrix at once, and a point at the limit
            # can move along it.
            return new._replace(transition=new.transition / radius)
        return new._replace(transition=stable_step(old.transition, new.transition))


# -- start ---------------------------------------------------------------------------
def start(
    data: Sequences, n: int, rng: np.random.Generator | None = None, n_inputs: int = 0
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
    C, c = split_offset(regression(X.T @ z, second))
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
        A, b = split_offset(regression(after.T @ before, second))
        A = A * min(1.0, 0.98 / max(spectral_radius(A), 1e-300))
        b = (after - before[:, :n] @ A.T).mean(axis=0)
        Q = np.cov(after - before[:, :n] @ A.T - b, rowvar=False, bias=True)
        Q = Q.reshape(n, n) + 0.05 * np.eye(n)
    R = R + 0.05 * np.eye(d)
    m = states[firsts].mean(axis=0)
    none = np.zeros((n, n_inputs)), np.zeros((d, n_inputs))
    return Parameters(A, Q, C, R, m, np.eye(n), b, c, *none)


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
