"""Product kernels between hidden Markov models, from one recursion for all horizons.

    psi[a, b]  = int p(x | a)^rho q(x | b)^rho dx
    Phi_0      = pi^rho (pi'^rho)',   Phi_t = (A^rho)' (Phi_{t-1} o psi) A'^rho
    k_T        = sum (Phi_T o psi),   sequences x_0 .. x_T

It is the power of the joint law of states and observations that is integrated; the same
as the power of the marginal law for rho = 1.

Source: Jebara, Kondor & Howard (2004), section 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent._core import chain
from maxent._support.threads import effective_threads, single_threaded_blas
from maxent.families import Categorical
from maxent.models._many_chains import LANES, in_vectors

Array = NDArray[np.float64]

_DENSE = 1e-100  # transitions below it may hide what underflows
_MOST_PSI = 1 << 24  # elementary kernels in memory at a time


def log_hmm_kernel(
    P: Sequence[Any],
    Q: Sequence[Any] | None = None,
    *,
    rho: float,
    horizon: int,
    every: bool = False,
    n_jobs: int | None = None,
) -> Array:
    """Log product kernels of all pairs of hidden Markov models.

    Parameters
    ----------
    P, Q : list of models
        With `start`, `transition` and a batch of `emission`, all of one family and one
        space; numbers of states may differ. None: the pairs of P with itself.
    rho : float
        Power, > 0.
    horizon : int
        T >= 0: kernels of the laws of x_0 .. x_T.
    every : bool, default=False
        Return all horizons 0 .. T.
    n_jobs : int, optional
        Threads; the result has the same bits for any number.

    Returns
    -------
    ndarray (len(P), len(Q)), or (horizon + 1, len(P), len(Q)) if `every`
        -inf where no sequence is possible under both.
    """
    same = Q is None
    Q = P if Q is None else Q
    out = np.empty((horizon + 1 if every else 1, len(P), len(Q)))
    rows = _groups(P, rho)
    columns = rows if same else _groups(Q, rho)
    for g, left in enumerate(rows):
        for h, right in enumerate(columns):
            if same and h < g:
                continue
            lower = same and g == h
            L = _group_pairs(left, right, rho, horizon, every, lower, n_jobs)
            if lower:
                below = np.tril_indices(len(L[0]), -1)
                L[:, below[0], below[1]] = L[:, below[1], below[0]]
            out[:, left.index[:, None], right.index] = L
            if same and h > g:
                out[:, right.index[:, None], left.index] = L.swapaxes(1, 2)
    return out if every else out[0]


class Group:
    """Models of one number of states: stacked parameters to the power rho."""

    def __init__(self, models: Sequence[Any], index: list[int], rho: float):
        self.index = np.array(index)
        own = [models[i] for i in index]
        self.n, self.states = len(own), len(own[0].start)
        self.start = np.stack([m.start for m in own]) ** rho
        self.transition = np.stack([m.transition for m in own]) ** rho
        self.emission = stacked([m.emission for m in own])
        self.table = None
        if isinstance(self.emission, Categorical):
            table = self.emission.prob.reshape(self.n, self.states, -1) ** rho
            self.table = np.ascontiguousarray(table.swapaxes(1, 2))
        with np.errstate(divide="ignore"):
            self.log_start, self.log_transition = (
                np.log(self.start),
                np.log(self.transition),
            )
        self.sparse = (self.transition < _DENSE).any(axis=(1, 2))

    def ends(self, k: int) -> tuple[Array, Array]:
        """Sums over the states of k letters at either end, (n, letters ** k, states).

        Of the first k letters and the state after them; of the last k letters given
        the state before them.
        """
        table = self.table
        assert table is not None  # of categorical emissions
        begin = self.start[:, None]
        end = np.ones((self.n, 1, self.states))
        for _ in range(k):
            shown = begin[:, :, None] * table[:, None]
            begin = shown.reshape(self.n, -1, self.states) @ self.transition
            shown = end[:, None] * table[:, :, None]
            end = shown.reshape(self.n, -1, self.states)
            end = end @ self.transition.swapaxes(1, 2)
        return begin, end

    def tiny(self) -> NDArray[np.bool_]:
        """Models with entries that may underflow in a product."""
        parts = [self.start, self.transition.reshape(self.n, -1)]
        if self.table is not None:
            parts.append(self.table.reshape(self.n, -1))
        every = np.concatenate(parts, axis=1)
        return np.logical_or.reduce((every > 0) & (every < _DENSE), axis=1)


def _groups(models: Sequence[Any], rho: float) -> list[Group]:
    sizes: dict[int, list[int]] = {}
    for i, model in enumerate(models):
        sizes.setdefault(len(model.start), []).append(i)
    return [Group(models, index, rho) for index in sizes.values()]


def stacked(batches: list[Any]) -> Any:
    """One batch of all the members of batches of one axis."""
    first = batches[0]
    parts = {
        name: np.concatenate([getattr(b, name) for b in batches])
        for name, _ in first._core
    }
    return type(first)(
        **parts, **{name: getattr(first, name) for name in first._common}
    )


def letters_at_ends(letters: int, s: int, s2: int, horizon: int) -> int:
    """Letters k at either end whose sums over states cost less than k transitions."""
    k = np.arange(horizon // 2 + 1)[:20]
    cost = float(letters) ** k - k * (s + s2)
    return int(np.argmin(cost))


def _group_pairs(left, right, rho, horizon, every, lower, n_jobs):
    """Log kernels (horizons, n, n2) of two groups."""
    transition2 = in_vectors(right.transition)
    threads = effective_threads(n_jobs)
    if left.table is not None and right.table is not None:
        letters, k = left.table.shape[1], 0
        if not every:
            k = letters_at_ends(letters, left.states, right.states, horizon)
        begin, end = left.ends(k)
        begin2, end2 = right.ends(k)
        L = chain.hmm_kernel(
            begin,
            left.transition,
            left.table,
            end if k else None,
            in_vectors(begin2),
            transition2,
            in_vectors(right.table),
            in_vectors(end2) if k else None,
            None,
            right.n,
            horizon - 2 * k,
            every,
            lower,
            threads,
        )
        _redo(L, 0, left, right, None, lower, horizon)
        return L
    L = np.empty((horizon + 1 if every else 1, left.n, right.n))
    steps = np.arange(horizon + 1) if every else np.array([horizon])
    size = left.states * right.states
    wave = max(1, _MOST_PSI // (size * (right.n + LANES)))
    for lo in range(0, left.n, wave):
        rows = slice(lo, min(lo + wave, left.n))
        log_psi = _elementary(left, right, rows, rho)
        top = log_psi.max(axis=(2, 3))
        top = np.where(np.isfinite(top), top, 0.0)
        psi = np.exp(log_psi - top[..., None, None])
        part = chain.hmm_kernel(
            left.start[rows, None],
            left.transition[rows],
            None,
            None,
            in_vectors(right.start[:, None]),
            transition2,
            None,
            None,
            np.stack([in_vectors(one) for one in psi]),
            right.n,
            horizon,
            every,
            False,
            threads,
        )
        _redo(part, lo, left, right, log_psi - top[..., None, None], False, horizon)
        L[:, rows] = part + (steps + 1.0)[:, None, None] * top
    return L


def _elementary(left, right, rows, rho):
    """log psi (rows, n2, states, states2)."""
    own = left.emission[rows.start * left.states : rows.stop * left.states]
    with single_threaded_blas():
        log_psi = own.log_affinity(right.emission, rho)
    n = rows.stop - rows.start
    return log_psi.reshape(n, left.states, right.n, right.states).swapaxes(1, 2)


def _redo(L, first, left, right, log_psi, lower, horizon):
    """In logs: pairs that underflowed, and those where it could pass unnoticed.

    With all transitions above `_DENSE` what underflows never matters again: every state
    of the next step gets far more from the others.
    """
    again = np.isnan(L).any(axis=0)
    rows = slice(first, first + len(again))
    tiny = left.tiny()[rows, None] | right.tiny()
    if log_psi is not None:
        least = np.where(np.isneginf(log_psi), 0.0, log_psi).min(axis=(2, 3))
        tiny = tiny | (least < np.log(_DENSE))
    again |= tiny & (left.sparse[rows, None] | right.sparse)
    if lower:
        again = np.triu(again)
    for i, j in np.argwhere(again):
        own = None if log_psi is None else log_psi[i, j]
        own = _log_tables(left, first + i, right, j) if own is None else own
        L[:, i, j] = _pair_in_logs(left, first + i, right, j, own, horizon)[-len(L) :]


def _log_tables(left, i, right, j):
    """log psi of a pair with tables."""
    with np.errstate(divide="ignore"):
        own, other = np.log(left.table[i]), np.log(right.table[j])
    return np.logaddexp.reduce(own[:, :, None] + other[:, None], axis=0)


def _pair_in_logs(left, i, right, j, log_psi, horizon):
    """Log kernels of one pair for the horizons 0 .. T, all in logs."""
    A, B = left.log_transition[i], right.log_transition[j]
    X = left.log_start[i][:, None] + right.log_start[j] + log_psi
    out = np.empty(horizon + 1)
    for t in range(horizon + 1):
        out[t] = np.logaddexp.reduce(X, axis=None)
        Y = np.logaddexp.reduce(X[:, None, :] + A[:, :, None], axis=0)
        X = np.logaddexp.reduce(Y[:, :, None] + B, axis=1) + log_psi
    return out
