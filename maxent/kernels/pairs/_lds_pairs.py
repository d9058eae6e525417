"""All pairs of linear dynamical systems, packed for the compiled filter.

The law of (x_0, ..., x_T) is Gaussian; its log-determinants and distances come from
filters (`maxent._core.systems.statespace`). Orthogonal coordinates of the states in
which the observation matrix is lower triangular save a part of the work and change
nothing.

Source: Jebara, Kondor & Howard (2004), section 4.5, with the joint law in the place of
the marginal ones; see the errata page of the documentation.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxent._core.systems import statespace, system_pairs
from maxent._support.threads import effective_threads
from maxent._support.validation import user_stacklevel
from maxent.kernels.pairs._gaussian_parts import GaussianParts
from maxent.models._state_space import Arrays

# Steps from which covariances that have converged are held; before, the test for it
# costs more than it saves.
_FREEZE_FROM = 50
# Growth of rounding errors, r^{2T} eps, from which a warning is given
_DOUBTFUL = 1e-6


@dataclass(frozen=True)
class Packed:
    """Systems with one number of states."""

    index: NDArray[np.intp]  # their places in the list
    n: int
    rows: NDArray[np.float64]  # (N, size)
    varies: bool

    def lanes(self) -> NDArray[np.float64]:
        """Systems side by side (blocks, size, PAIRS); the last one repeats."""
        width = system_pairs.PAIRS
        blocks = -(-len(self.rows) // width)
        at = np.minimum(np.arange(blocks * width), len(self.rows) - 1)
        wide = self.rows[at].reshape(blocks, width, -1).swapaxes(1, 2)
        # vectors that cross no cache line: a third less time
        bytes_ = wide.size * 8 + system_pairs.ALIGNMENT
        memory = np.empty(bytes_ // 8)
        skip = -memory.ctypes.data % system_pairs.ALIGNMENT // 8
        out = memory[skip : skip + wide.size].reshape(wide.shape)
        out[:] = wide
        return out


def pair_parts(
    P: Sequence[Arrays],
    Q: Sequence[Arrays] | None,
    horizons: NDArray[np.intp],
    n_jobs: int | None = None,
    freeze: bool | None = None,
) -> GaussianParts:
    """Parts of the exact kernel for all pairs and horizons (increasing).

    Systems are the arrays of `maxent.models._state_space.compiled`; Q None is P.
    """
    T, d = int(horizons[-1]), P[0][7].shape[-1]
    systems = [*P, *(Q or ())]
    triangular = all(_is_shared(system[5]) for system in systems)
    if freeze is None:
        freeze = T >= _FREEZE_FROM and all(len(s[2]) == 1 for s in systems)
    options = (d, horizons, triangular, freeze, effective_threads(n_jobs))
    left = _groups(P, T, triangular)
    right = left if Q is None else _groups(Q, T, triangular)
    own = _own(P, left, options)
    other = own if Q is None else _own(Q, right, options)
    shape = (len(P), len(P if Q is None else Q), len(horizons))
    log_det, distance, suspects = _all_terms(left, right, shape, Q is None, options)
    for a, b in suspects:
        if Q is None and a == b:
            continue
        exact = joseph_terms(difference(P[a], (Q or P)[b]), horizons, (a, b))
        log_det[a, b], distance[a, b] = exact
        if Q is None:
            log_det[b, a], distance[b, a] = exact
    D = (horizons + 1) * d
    if Q is None:  # |S + S| = 2^D |S|, without the filter of x - x
        i = np.arange(len(P))
        log_det[i, i], distance[i, i] = own + D * np.log(2.0), 0.0
    return GaussianParts(D, own, other, log_det, distance, symmetric=Q is None)


def _all_terms(left, right, shape, same, options):
    """Terms (n, m, horizons) of all pairs, and the pairs whose terms are doubtful.

    With `same` a list of systems meets itself: every two groups are compared once.
    """
    log_det, distance = np.empty(shape), np.empty(shape)
    suspects = []
    for g in left:
        for h in right:
            if same and h.n < g.n:
                continue
            L, q, marks = _terms(g, h, g is h, options)
            at = _places(g, h, shape)
            log_det[at], distance[at] = L, q
            i, j = np.nonzero(marks)
            if g is h and same:
                i, j = i[i <= j], j[i <= j]
            suspects += zip(g.index[i].tolist(), h.index[j].tolist())
            if same and g is not h:
                back = _places(h, g, shape)
                log_det[back], distance[back] = L.swapaxes(0, 1), q.swapaxes(0, 1)
    return log_det, distance, suspects


def _places(g, h, shape):
    """Index of the pairs of two groups in arrays over all pairs."""
    if (len(g.rows), len(h.rows)) == shape[:2]:
        return slice(None)
    return np.ix_(g.index, h.index)


def _is_shared(C: NDArray[np.float64]) -> bool:
    return len(C) == 1 or bool((C[0] == C).all())


def _terms(g, h, symmetric, options):
    d, horizons, triangular, freeze, n_threads = options
    shape = (len(g.rows), len(h.rows))
    log_det, distance = np.empty((2, *shape, len(horizons)))
    marks = np.empty(shape, dtype=np.uint8)
    system_pairs.pair_terms(
        g.rows, g.n, g.varies, h.lanes(), h.n, h.varies, d, horizons, symmetric,
        triangular, freeze, n_threads, log_det, distance, marks,
    )  # fmt: skip
    return log_det, distance, marks


def _own(systems, groups, options):
    """log|S| of every system: pairs with a system that is zero throughout."""
    d, horizons = options[:2]
    size = 2 + (2 + 1 + d + d + d * d + 1)
    zero = Packed(np.zeros(1, dtype=np.intp), 1, np.zeros((1, size)), False)
    out = np.empty((len(systems), len(horizons)))
    for g in groups:
        L, _, marks = _terms(g, zero, False, options)
        out[g.index] = L[:, 0]
        for k in np.flatnonzero(marks[:, 0]):
            i = g.index[k]
            out[i] = joseph_terms(systems[i], horizons, (i,))[0]
    return out


def joseph_terms(
    arrays: Arrays, horizons: NDArray[np.intp], number: Sequence[int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """log|S| and the squared distance of zeros from the mean, by the Joseph form."""
    T, d = int(horizons[-1]), arrays[7].shape[-1]
    log_det, far = np.empty((2, T + 1))
    bad = statespace.log_likelihoods(
        arrays, np.zeros((T + 1, d)), np.array([0, T + 1]), log_det, far
    )
    finite = np.isfinite(log_det).all() and np.isfinite(far).all()
    if bad >= 0 or not finite:
        raise FloatingPointError(
            f"the covariance of the first {T + 1} observations of model "
            f"{' and '.join(map(str, number))} cannot be factorised in double "
            "precision: the systems are unstable or their noise is negligible. Use a "
            "smaller horizon, transitions of spectral radius <= 1, or a larger "
            "observation_cov."
        )
    return np.cumsum(log_det)[horizons], np.cumsum(far)[horizons]


def difference(p: Arrays, q: Arrays) -> Arrays:
    """The system of x - x', with states (s, s')."""
    records = max(len(p[2]), len(q[2]), len(p[8]), len(q[8]), 1)

    def at(system, k):
        X, which = system[k], system[8]
        if len(X) == 1:
            return np.broadcast_to(X[0], (records, *X.shape[1:]))
        return X[np.resize(which, records)]

    n, m = len(p[0]), len(q[0])

    def diagonal(k):
        out = np.zeros((records, n + m, n + m))
        out[:, :n, :n], out[:, n:, n:] = at(p, k), at(q, k)
        return out

    cov = np.zeros((n + m, n + m))
    cov[:n, :n], cov[n:, n:] = p[1], q[1]
    both = (
        np.concatenate([p[0], q[0]]),
        cov,
        diagonal(2),
        np.concatenate([at(p, 3), at(q, 3)], axis=1),
        diagonal(4),
        np.concatenate([at(p, 5), -at(q, 5)], axis=2),
        at(p, 6) - at(q, 6),
        at(p, 7) + at(q, 7),
    )
    which = np.arange(records if records > 1 else 0)
    return (*map(np.ascontiguousarray, both), which)


# -- packing ---------------------------------------------------------------------------
def _groups(systems: Sequence[Arrays], T: int, triangular: bool) -> list[Packed]:
    """Systems of one number of states and of records together."""
    keys = [(len(s[0]), len(s[2]) > 1, len(s[2])) for s in systems]
    groups = []
    for key in sorted(set(keys)):
        index = np.array([i for i, own in enumerate(keys) if own == key])
        chosen = [systems[i] for i in index]
        groups.append(Packed(index, key[0], _packed(chosen, T, triangular), key[1]))
    return groups


def _packed(systems, T, triangular):
    """Rows of packed systems: see pair_filter.h."""
    mean, cov, A, b, Q, C, c, R = (
        np.stack([system[k] for system in systems]) for k in range(8)
    )
    if triangular:
        U = np.linalg.qr(C[:, 0].swapaxes(1, 2), mode="complete")[0]
        V = U.swapaxes(1, 2)
        mean, b = _times(V, mean), _times(V[:, None], b)
        cov = V @ cov @ U
        A, Q = (V[:, None] @ X @ U[:, None] for X in (A, Q))
        C = np.tril(C @ U[:, None])
    floor = np.linalg.eigvalsh(R)[..., :1]
    flat = [X.reshape(*X.shape[:2], -1) for X in (A, b, Q, C, c, R, floor)]
    records = np.concatenate(flat, axis=2)
    if records.shape[1] > 1:
        which = np.stack([system[8][: T + 1] for system in systems])
        records = np.take_along_axis(records, which[..., None], axis=1)
    head = np.concatenate([mean, cov.reshape(len(cov), -1)], axis=1)
    return np.concatenate([head, records.reshape(len(head), -1)], axis=1)


def _times(matrix, vector):
    return (matrix @ vector[..., None])[..., 0]


def warn_of_growth(P: Sequence[Arrays], Q: Sequence[Arrays] | None, T: int) -> None:
    """One warning if two unstable systems make the kernel ill-conditioned."""
    left = _radii(P)
    right = left if Q is None else _radii(Q)
    both = np.minimum(left.max(), right.max())
    if Q is None and len(P) > 1:
        both = np.partition(left, -2)[-2]
    growth = 2 * T * np.log(max(both, 1.0)) + np.log(np.finfo(float).eps)
    if growth > np.log(_DOUBTFUL):
        warnings.warn(
            f"two systems have a transition of spectral radius {both:.4g} or more: at "
            f"horizon={T} rounding may reach {np.exp(min(growth, 700.0)):.1e} of their "
            "kernel. Use a smaller horizon, or fit with stable=True.",
            RuntimeWarning,
            stacklevel=user_stacklevel(),
        )


def _radii(systems):
    """Spectral radius of every system, at its most unstable step."""
    out = np.empty(len(systems))
    shapes = [system[2].shape for system in systems]
    for shape in set(shapes):
        index = [i for i, own in enumerate(shapes) if own == shape]
        A = np.stack([systems[i][2] for i in index])
        out[index] = np.abs(np.linalg.eigvals(A)).max(axis=(1, 2))
    return out
