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

from maxent._core.chains import chain_pairs
from maxent._support.threads import effective_threads, single_threaded_blas
from maxent.families import Categorical
from maxent.families._batch import concatenated
from maxent.models.chains._many_chains import LANES, in_vectors

Array = NDArray[np.float64]

# log factors below which the product of a few may underflow
_TINY, _TINY_IN_TABLE, _TINY_PSI = np.log([1e-70, 1e-150, 1e-300])
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
        self.start, self.log_start = _powers([m.start for m in own], rho)
        self.transition, self.log_transition = _powers([m.transition for m in own], rho)
        self.emission = concatenated([model.emission for model in own])
        self.table = self.log_table = None
        if isinstance(self.emission, Categorical):
            table = self.emission.prob.reshape(self.n, self.states, -1)
            self.table, self.log_table = _powers(table.swapaxes(1, 2), rho)

    def in_logs(self, members: slice) -> tuple[Array | None, ...]:
        """Arguments of `chain_pairs.hmm_kernel_in_logs` for some members."""
        parts = (
            self.log_start,
            self.transition,
            self.log_transition,
            self.table,
            self.log_table,
        )
        return tuple(None if x is None else x[members] for x in parts)

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

    def tiny(self, begin: Array | None = None) -> NDArray[np.bool_]:
        """Models with entries, or features at the beginning, that may underflow."""
        parts = [(self.log_start, _TINY), (self.log_transition, _TINY)]
        if self.log_table is not None:
            parts.append((self.log_table, _TINY_IN_TABLE))
        if begin is not None:
            with np.errstate(divide="ignore"):
                parts.append((np.log(begin), _TINY))
        return np.logical_or.reduce(
            [
                ((x > -np.inf) & (x < least)).reshape(self.n, -1).any(axis=1)
                for x, least in parts
            ]
        )


def _powers(arrays: Any, rho: float) -> tuple[Array, Array]:
    """Arrays to the power rho, and their logs, which do not underflow."""
    stack = np.ascontiguousarray(np.stack(arrays))
    with np.errstate(divide="ignore"):
        return stack**rho, rho * np.log(stack)


def _groups(models: Sequence[Any], rho: float) -> list[Group]:
    sizes: dict[int, list[int]] = {}
    for i, model in enumerate(models):
        sizes.setdefault(len(model.start), []).append(i)
    return [Group(models, index, rho) for index in sizes.values()]


def letters_at_ends(letters: int, s: int, s2: int, horizon: int) -> int:
    """Letters k at either end whose sums over states cost less than k transitions."""
    k = np.arange(horizon // 2 + 1)[:20]
    cost = float(letters) ** k - k * (s + s2)
    return int(np.argmin(cost))


def _group_pairs(left, right, rho, horizon, every, lower, n_jobs):
    """Log kernels (horizons, n, n2) of two groups."""
    how = (horizon, every, lower, effective_threads(n_jobs))
    if left.table is not None and right.table is not None:
        return _table_pairs(left, right, *how)
    L = np.full((horizon + 1 if every else 1, left.n, right.n), np.nan)
    wave = max(1, _MOST_PSI // (left.states * right.states * (right.n + LANES)))
    for lo in range(0, left.n, wave):
        rows = slice(lo, min(lo + wave, left.n))
        columns = slice(lo if lower else 0, right.n)
        L[:, rows, columns] = _psi_pairs(left, right, rows, columns, rho, *how)
    return L


def _psi_pairs(left, right, rows, columns, rho, horizon, every, lower, threads):
    """Log-kernels of some rows and columns, from elementary kernels of all pairs."""
    log_psi = _elementary(left, right, rows, columns, rho)
    top = log_psi.max(axis=(2, 3), keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    log_psi -= top
    begin, begin2 = left.start[:, None], right.start[:, None]
    tiny = left.tiny()[rows, None] | right.tiny()[columns]
    L = chain_pairs.hmm_kernel(
        (begin[rows], left.transition[rows], None, None),
        (
            in_vectors(begin2[columns]),
            in_vectors(right.transition[columns]),
            None,
            None,
        ),
        np.stack([in_vectors(one) for one in np.exp(log_psi)]),
        _marks(tiny | _underflows(log_psi)),
        log_psi.shape[1],
        horizon,
        every,
        lower,
        threads,
    )
    _redo(
        L, left.in_logs(rows), right.in_logs(columns), log_psi, lower, horizon, threads
    )
    steps = np.arange(horizon + 1) if every else np.array([horizon])
    return L + (steps + 1.0)[:, None, None] * top[..., 0, 0]


def _table_pairs(left, right, horizon, every, lower, threads):
    """Log-kernels of groups with tables of emissions."""
    k = 0
    if not every:
        letters = left.table.shape[1]
        k = letters_at_ends(letters, left.states, right.states, horizon)
    begin, end = left.ends(k)
    begin2, end2 = right.ends(k)
    L = chain_pairs.hmm_kernel(
        (begin, left.transition, left.table, end if k else None),
        (
            in_vectors(begin2),
            in_vectors(right.transition),
            in_vectors(right.table),
            in_vectors(end2) if k else None,
        ),
        None,
        _marks(left.tiny(begin)[:, None] | right.tiny(begin2)),
        right.n,
        horizon - 2 * k,
        every,
        lower,
        threads,
    )
    every_row = slice(None)
    _redo(
        L,
        left.in_logs(every_row),
        right.in_logs(every_row),
        None,
        lower,
        horizon,
        threads,
    )
    return L


def _elementary(left, right, rows, columns, rho):
    """log psi (rows, columns, states, states2)."""

    def members(group, part):
        return group.emission[part.start * group.states : part.stop * group.states]

    with single_threaded_blas():
        log_psi = members(left, rows).log_affinity(members(right, columns), rho)
    log_psi = log_psi.reshape(
        -1, left.states, columns.stop - columns.start, right.states
    )
    return np.ascontiguousarray(log_psi.swapaxes(1, 2))


def _underflows(log_psi):
    """Pairs (n, n2) with a positive elementary kernel that is zero in doubles."""
    least = np.where(np.isneginf(log_psi), 0.0, log_psi).min(axis=(2, 3))
    return least < _TINY_PSI


def _marks(pairs):
    """Marks (n, vectors * lanes) of pairs (n, n2), as the compiled loop reads them."""
    out = np.zeros((len(pairs), -(-pairs.shape[1] // LANES) * LANES), np.uint8)
    out[:, : pairs.shape[1]] = pairs
    return out


def _redo(L, left, right, log_psi, lower, horizon, threads):
    """Compute in logs the pairs that are NaN: those that may have underflowed."""
    again = np.isnan(L).any(axis=0)
    if lower:
        again = np.triu(again)
    first, second = (index.astype(np.intp) for index in np.nonzero(again))
    if len(first):
        L[:, first, second] = chain_pairs.hmm_kernel_in_logs(
            left,
            right,
            None if log_psi is None else log_psi[again],
            first,
            second,
            horizon,
            len(L) > 1,
            threads,
        )
