"""Markov chains that are coupled through a quadratic energy of the sum of their means.

    p(q) ~ prod_c pi^c A^c ... prod_t exp(-r_t' L r_t / 2),  r_t = y_t - sum_c W^c_q

Mean field over chains, each kept whole: chain c meets the local evidence

    h_t(i) = W_i' L (y_t - sum_{c' != c} E m^{c'}_t) - W_i' L W_i / 2

and is updated by forward-backward, which raises the lower bound of log Z. For small
chains the sum over all states is exact: one axis per chain, each transition along its
own.

Sources: Ghahramani & Jordan (1997), Factorial hidden Markov models, appendix C; Jebara,
Kondor & Howard (2004), section 6.1, with the corrections on the errata page.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from maxent._inputs.sequences import Sequences
from maxent.models._settling import SETTLED, settle
from maxent.models.chains._hidden_chain import Observations, logs_of

Array = NDArray[np.float64]
_SURE = 1e-280  # a sum above it has lost nothing to underflow
_PIECE = 1 << 14  # sums that are added up again at a time


class CoupledChains:
    """Mean field of coupled chains over sequences that lie one after the other.

    Parameters
    ----------
    starts, transitions : sequences of ndarray
        Tables of every chain, (S,) and (S, S); powers of probabilities need not sum to
        one.
    means : sequence of ndarray (S, d)
    precision : ndarray (d, d), or (steps, d, d)
        L, of all steps or of each.
    target : ndarray (steps, d)
        y; rows of NaN carry no energy.
    offsets : ndarray of int (sequences + 1,)
    beliefs : sequence of ndarray (steps, S)
        Probabilities of the states of every chain to start from.
    """

    def __init__(
        self,
        starts: Sequence[Array],
        transitions: Sequence[Array],
        means: Sequence[Array],
        precision: Array,
        target: Array,
        offsets: NDArray[np.intp],
        beliefs: Sequence[Array],
    ):
        self.offsets = offsets
        self.seen: NDArray[np.bool_] = np.asarray(~np.isnan(target).all(axis=1))
        self.target = np.nan_to_num(target, nan=0.0)
        steps = Sequences(np.empty(len(target)), offsets)
        self.steps = Observations(steps, np.arange(len(target)), shared=False)
        self.beliefs = list(beliefs)
        C, N = len(starts), len(offsets) - 1
        self.entropy: list[float] = [np.nan] * C
        self.start_counts: list[Array] = [np.zeros(0)] * C
        self.switch_counts: list[Array] = [np.zeros(0)] * C
        self.free = np.zeros((C, N))  # E log p(q) + H per sequence, at the last update
        self.set(starts, transitions, means, precision)

    def set(
        self,
        starts: Sequence[Array],
        transitions: Sequence[Array],
        means: Sequence[Array],
        precision: Array,
    ) -> None:
        """Other parameters, the same beliefs."""
        self.starts, self.transitions = list(starts), list(transitions)
        self.means, self.precision = list(means), precision
        self.expected = [q @ W for q, W in zip(self.beliefs, self.means)]

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return len(self.starts)

    def evidence(self, c: int) -> Array:
        """Log-evidence h of the states of chain c from the other chains and targets."""
        others = sum(
            (m for k, m in enumerate(self.expected) if k != c),
            np.zeros_like(self.target),
        )
        LW = self.means[c] @ self.precision
        own = 0.5 * np.einsum("...id,id->...i", LW, self.means[c])
        r = self.target - others
        if self.precision.ndim == 3:
            h = np.einsum("td,tid->ti", r, LW) - own
        else:
            h = r @ LW.T - own
        return h * self.seen[:, None]

    def update(self, c: int) -> float:
        """Replace the distribution of chain c by the best one given the others.

        Returns the largest change of a probability.
        """
        h = self.evidence(c)
        found = self.steps.expect(
            self.starts[c], self.transitions[c], h, np.ones(len(self.offsets) - 1), 1
        )
        q = found.emission
        change = float(np.abs(q - self.beliefs[c]).max())
        self.beliefs[c], self.expected[c] = q, q @ self.means[c]
        energy = np.add.reduceat((q * h).sum(axis=1), self.offsets[:-1])
        self.free[c] = found.log_likelihood - energy
        self.start_counts[c], self.switch_counts[c] = found.start, found.transition
        self.entropy[c] = self.free[c].sum() - self._log_tables(c)
        return change

    def viterbi(self, c: int) -> NDArray[np.intp]:
        """Most likely states (steps,) of chain c under its own distribution."""
        own = logs_of(self.starts[c], self.transitions[c])
        return self.steps.viterbi(*own, self.evidence(c))[0]

    def _log_tables(self, c):
        return float(
            xlogy(self.start_counts[c], self.starts[c]).sum()
            + xlogy(self.switch_counts[c], self.transitions[c]).sum()
        )

    def energies(self) -> Array:
        """Expected energy of every step, (steps,)."""
        r, L = self.target - sum(self.expected), self.precision
        each = L.ndim == 3
        form = "td,tde,te->t" if each else "td,de,te->t"
        out = np.einsum(form, r, L, r)
        for q, W, m in zip(self.beliefs, self.means, self.expected):
            if each:
                out += (q * np.einsum("id,tde,ie->ti", W, L, W)).sum(axis=1)
                out -= np.einsum(form, m, L, m)
            else:
                square = np.einsum("id,de,ie->i", W, L, W)
                out += q @ square - np.einsum(form, m, L, m)
        return -0.5 * out * self.seen

    def bound(self) -> float:
        """Lower bound of log Z, after every chain has been updated once."""
        chains = sum(
            self.entropy[c] + self._log_tables(c) for c in range(self.n_chains)
        )
        return float(chains + self.energies().sum())

    def bounds(self) -> Array:
        """Lower bounds of log Z of every sequence, with the last parameters."""
        energy = np.add.reduceat(self.energies(), self.offsets[:-1])
        return self.free.sum(axis=0) + energy

    def sweep(self) -> float:
        """Update every chain; returns the largest change of a probability."""
        return max(self.update(c) for c in range(self.n_chains))

    def settle(self, left: float = SETTLED) -> float:
        """Sweep until the beliefs stand still; returns the bound."""
        settle(self.sweep, "a factorial hidden Markov model", left)
        return self.bound()


def random_beliefs(
    sizes: Sequence[int], steps: int, rng: np.random.Generator
) -> list[Array]:
    """Random probabilities of the states of every chain at every step."""
    return [rng.dirichlet(np.ones(S), size=steps) for S in sizes]


def total_means(means: Sequence[Array]) -> Array:
    """Sums of one mean per chain, (S_1 ... S_C, d), the last chain fastest."""
    out = np.zeros((1, means[0].shape[1]))
    for W in means:
        out = (out[:, None] + W).reshape(-1, W.shape[1])
    return out


def exact_log_sums(
    log_starts: Sequence[Array],
    log_transitions: Sequence[Array],
    log_tables: Sequence[Array] | Array,
    n_steps: int,
) -> Array:
    """log of the sum over all paths of the first steps, for every number of steps.

    `log_tables` has the potentials of all joint states (S_1 ... S_C,), one for every
    step or one for all. Costs n_steps (S_1 ... S_C) (S_1 + ... + S_C) multiplications.

    Joint states keep their logarithms from step to step: the state that one step nearly
    excludes may be the only one that the transitions lead to from there.
    """
    X = np.zeros(1)
    for log_start in log_starts:
        X = (X[:, None] + log_start).ravel()
    one = isinstance(log_tables, np.ndarray) and log_tables.ndim == 1
    tables = [np.exp(log_A) for log_A in log_transitions]
    out = np.empty(n_steps)
    for t in range(n_steps):
        if t:
            # the last axis becomes the first, so that all come round to their places
            for A, log_A in zip(reversed(tables), reversed(log_transitions)):
                X = _log_product(X.reshape(-1, len(A)), A, log_A).T.ravel()
        X = X + (log_tables if one else log_tables[t])
        out[t] = np.logaddexp.reduce(X)
    return out


def _log_product(X: Array, A: Array, log_A: Array) -> Array:
    """log(exp(X) @ A) of rows X (n, S); -inf where nothing leads to a state.

    Rows are exponentiated less their greatest entry. A sum so small that terms of it
    may have underflowed is added up again, term by term.
    """
    top = X.max(axis=1, keepdims=True)
    top = np.where(np.isneginf(top), 0.0, top)
    sums = np.exp(X - top) @ A
    with np.errstate(divide="ignore"):
        out = np.log(sums) + top
    small = sums < _SURE
    if small.any():  # but for those without any term
        small &= np.isfinite(X).astype(float) @ np.isfinite(log_A) > 0.0
    rows, columns = np.nonzero(small)
    for lo in range(0, len(rows), _PIECE):
        i, j = rows[lo : lo + _PIECE], columns[lo : lo + _PIECE]
        out[i, j] = np.logaddexp.reduce(X[i] + log_A.T[j], axis=1)
    return out
