"""Structured variational EM for switching linear dynamical systems.

Q(q) Q(s): Q(s) is the Gaussian chain with the potentials of the regimes averaged by
gamma, in information form (block tridiagonal precision); Q(q) is the Markov chain with
local evidence E_Q(s) log N(s_t; A_k s_{t-1} + b_k, Q_k). After the update of Q(q)

    bound = log Z of that chain + E log p(x | s) + E log p(s_0) + H(Q(s)) <= log p(x).

Every update and the M step, weighted regressions per regime, raise it.

Sources: Ghahramani & Hinton (2000), Variational learning for switching state-space
models; Jebara, Kondor & Howard (2004), section 5.1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from maxent._core.systems import expected_states
from maxent._inputs.sequences import Sequences
from maxent.models import _state_space as checks
from maxent.models._chain_input import check_chain, log_of_pseudo_counts
from maxent.models._holding import maximum_of_free
from maxent.models._partial import (
    expected_observations,
    is_partial,
    masked_observations,
)
from maxent.models._state_space import Parameters as System
from maxent.models.chains._hidden_chain import Observations, logs_of
from maxent.models.systems import _lds_em as em
from maxent.models.systems._free_parameters import COVARIANCES, Held, n_held

Array = NDArray[np.float64]
_LOG_2PI = math.log(2.0 * math.pi)
_FEWEST = 1e-8  # weight of a regime below which its regression keeps the old values


class Parameters(NamedTuple):
    """Arguments of the constructor, in its order."""

    start: Any
    switching: Any
    transition: Any
    transition_cov: Any
    observation: Any
    observation_cov: Any
    initial_mean: Any
    initial_cov: Any
    transition_offset: Any
    observation_offset: Any

    def of_regime(self, k: int) -> System:
        """The linear system of a regime."""
        own = {name: getattr(self, name) for name in Parameters._fields[2:]}
        own |= {name: own[name][k] for name in _OF_REGIMES}
        d, n = self.observation.shape
        none = np.zeros((n, 0)), np.zeros((d, 0))
        return System(**own, transition_input=none[0], observation_input=none[1])


_OF_REGIMES = ("transition", "transition_cov", "transition_offset")


def checked(given: Parameters) -> Parameters:
    """Checked parameters."""
    start, switching = check_chain(given.start, given.switching)
    K = len(start)
    A = checks.square_arrays("transition", given.transition)
    n = A.shape[-1]
    Q = checks.covariances("transition_cov", given.transition_cov, n)
    for name, array in (("transition", A), ("transition_cov", Q)):
        if array.shape != (K, n, n):
            raise ValueError(
                f"{name} has shape {array.shape}, expected ({K}, {n}, {n}): one "
                "matrix per regime."
            )
    C = checks.shaped_like("observation", given.observation, n)
    d = C.shape[-2]
    found = Parameters(
        start,
        switching,
        A,
        Q,
        C,
        checks.covariances("observation_cov", given.observation_cov, d, definite=True),
        checks.shaped("initial_mean", given.initial_mean, (n,)),
        checks.covariances("initial_cov", given.initial_cov, n),
        checks.shaped("transition_offset", given.transition_offset, (K, n)),
        checks.shaped("observation_offset", given.observation_offset, (d,)),
    )
    for name in Parameters._fields[4:]:
        array = getattr(found, name)
        core = 1 if name in ("initial_mean", "observation_offset") else 2
        if array.ndim != core:
            raise ValueError(
                f"{name} has shape {array.shape}, expected {core} "
                f"{'axis' if core == 1 else 'axes'}."
            )
    return found


@dataclass(frozen=True)
class Beliefs:
    """Q(s) and Q(q) of all sequences, one after the other."""

    mean: Array  # (steps, n)
    cov: Array  # (steps, n, n)
    lag: Array  # (steps - 1, n, n), Cov(s_{t + 1}, s_t)
    regimes: Array  # (transitions, K)
    start_counts: Array  # (K,)
    switch_counts: Array  # (K, K)
    bounds: Array  # (sequences,)


class Problem:
    """Sequences with the places of their transitions.

    Attributes
    ----------
    into : ndarray of int
        Steps that a transition leads into: all but the first of each sequence.
    chains : Observations or None
        Transitions as chains of regimes; None where no sequence has any.
    """

    def __init__(self, data: Sequences):
        self.data = data
        steps = np.arange(len(data.values))
        self.first = data.offsets[:-1]
        self.into = np.delete(steps, self.first)
        self.observed = ~np.isnan(data.values).all(axis=1)
        self.partial = bool(is_partial(data.values).any())
        lengths = data.lengths - 1
        self.long = np.flatnonzero(lengths > 0)
        ends = np.concatenate([[0], np.cumsum(lengths[self.long])]).astype(np.intp)
        chains = Sequences(np.empty(len(self.into)), ends)
        self.chains = None
        if len(self.long):
            self.chains = Observations(chains, np.arange(len(self.into)), shared=False)

    def per_sequence(self, terms: Array) -> Array:
        """Sums over the steps of every sequence."""
        return np.add.reduceat(terms, self.first)

    # -- Q(s) ----------------------------------------------------------------------
    def states(
        self, p: Parameters, regimes: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Mean, covariances and log|precision| (per sequence) of Q(s) given Q(q)."""
        diagonal, below, linear = self._information(p, regimes)
        T, n = linear.shape
        mean, cov, lag = np.empty((T, n)), np.empty((T, n, n)), np.empty((T - 1, n, n))
        log_det = np.empty(len(self.data))
        for i in range(len(self.data)):
            lo, hi = self.data.offsets[i : i + 2]
            value = expected_states.information_chain(
                diagonal[lo:hi], below[lo : hi - 1], linear[lo:hi], mean[lo:hi],
                cov[lo:hi], lag[lo : hi - 1],
            )  # fmt: skip
            if value is None:
                raise FloatingPointError(
                    f"the posterior precision of the states of sequence {i} is not "
                    "positive definite in double precision; scale the data, or use a "
                    "larger prior."
                )
            log_det[i] = value
        return mean, cov, lag, log_det

    def _information(self, p, regimes):
        """Precision of Q(s), its blocks (T, n, n) and (T - 1, n, n), and linear term.

        Transitions count by the probabilities of the regimes.
        """
        into, n = self.into, p.initial_mean.shape[0]
        T = len(self.data.values)
        K = np.linalg.inv(p.transition_cov)
        KA = K @ p.transition
        AKA = p.transition.swapaxes(1, 2) @ KA
        Kb = (K @ p.transition_offset[..., None])[..., 0]
        AKb = (p.transition.swapaxes(1, 2) @ Kb[..., None])[..., 0]
        diagonal, linear = np.zeros((T, n, n)), np.zeros((T, n))
        below = np.zeros((T - 1, n, n))

        def averaged(X):
            return np.tensordot(regimes, X, 1)

        diagonal[into] += averaged(K)
        diagonal[into - 1] += averaged(AKA)
        below[into - 1] = -averaged(KA)
        linear[into] += averaged(Kb)
        linear[into - 1] -= averaged(AKb)
        start = np.linalg.inv(p.initial_cov)
        diagonal[self.first] += start
        linear[self.first] += start @ p.initial_mean
        self._add_observations(p, diagonal, linear)
        return diagonal, below, linear

    def _add_observations(self, p, diagonal, linear):
        """Add what the observations say of the states."""
        if self.partial:
            C, c, R, seen, _ = self.masked(p)
            CR = np.linalg.solve(R, C).swapaxes(1, 2)
            diagonal[self.observed] += CR @ C
            linear[self.observed] += np.einsum("tij,tj->ti", CR, seen - c)
        else:
            CR = np.linalg.solve(p.observation_cov, p.observation).T
            diagonal[self.observed] += CR @ p.observation
            x = self.data.values[self.observed]
            linear[self.observed] += (x - p.observation_offset) @ CR.T

    def masked(
        self, p: Parameters
    ) -> tuple[Array, Array, Array, Array, NDArray[np.bool_]]:
        """Observations that miss parts, as `masked_observations` has them."""
        x = self.data.values[self.observed]
        return masked_observations(
            p.observation, p.observation_offset, p.observation_cov, x
        )

    # -- Q(q) ----------------------------------------------------------------------
    def evidence(self, p: Parameters, mean: Array, cov: Array, lag: Array) -> Array:
        """E_Q(s) log N(s_t; A_k s_{t-1} + b_k, Q_k), (transitions, K)."""
        into, n = self.into, mean.shape[1]
        out = np.empty((len(into), len(p.start)))
        for k in range(len(p.start)):
            A, Q = p.transition[k], p.transition_cov[k]
            r = mean[into] - mean[into - 1] @ A.T - p.transition_offset[k]
            half = lag[into - 1] @ A.T
            S = cov[into] - half - half.swapaxes(1, 2) + A @ cov[into - 1] @ A.T
            S += r[:, :, None] * r[:, None, :]
            inverse = np.linalg.inv(Q)
            constant = n * _LOG_2PI + np.linalg.slogdet(Q)[1]
            out[:, k] = -0.5 * (constant + np.einsum("tij,ij->t", S, inverse))
        return out

    def believe(self, p: Parameters, regimes: Array) -> Beliefs:
        """Q(s) given the regimes, then Q(q), and the bound after both."""
        mean, cov, lag, log_det = self.states(p, regimes)
        n, d = mean.shape[1], self.data.values.shape[1]
        bounds = 0.5 * (n * (1.0 + _LOG_2PI) * self.data.lengths - log_det)
        bounds += self.per_sequence(self._emission_terms(p, mean, cov, d))
        bounds += self._initial_terms(p, mean, cov, n)
        K = len(p.start)
        if self.chains is None:
            nothing = np.zeros((0, K))
            counts = np.zeros(K), np.zeros((K, K))
            return Beliefs(mean, cov, lag, nothing, *counts, bounds)
        found = self.chains.expect(
            p.start,
            p.switching,
            self.evidence(p, mean, cov, lag),
            np.ones(len(self.long)),
            1,
        )
        bounds[self.long] += found.log_likelihood
        return Beliefs(
            mean, cov, lag, found.emission, found.start, found.transition, bounds
        )

    def best_regimes(self, p: Parameters, q: Beliefs) -> NDArray[np.intp]:
        """Most likely path (transitions,) of Q(q)."""
        if self.chains is None:
            return np.zeros(0, dtype=np.intp)
        evidence = self.evidence(p, q.mean, q.cov, q.lag)
        return self.chains.viterbi(*logs_of(p.start, p.switching), evidence)[0]

    def _emission_terms(self, p, mean, cov, d):
        seen = self.observed
        if self.partial:
            return self._terms_in_part(p, mean, cov)
        r = self.data.values[seen] - mean[seen] @ p.observation.T - p.observation_offset
        inverse = np.linalg.inv(p.observation_cov)
        CRC = p.observation.T @ inverse @ p.observation
        constant = d * _LOG_2PI + np.linalg.slogdet(p.observation_cov)[1]
        terms = np.zeros(len(seen))
        terms[seen] = -0.5 * (
            constant
            + np.einsum("ti,ij,tj->t", r, inverse, r)
            + np.einsum("tij,ij->t", cov[seen], CRC)
        )
        return terms

    def _terms_in_part(self, p, mean, cov):
        """Terms of the observations where these miss parts."""
        seen, terms = self.observed, np.zeros(len(self.observed))
        C, c, R, x, hidden = self.masked(p)
        r = x - np.einsum("tdn,tn->td", C, mean[seen]) - c
        S = r[:, :, None] * r[:, None, :] + C @ cov[seen] @ C.swapaxes(1, 2)
        constant = _LOG_2PI * (~hidden).sum(axis=1) + np.linalg.slogdet(R)[1]
        inverse = np.linalg.inv(R)
        terms[seen] = -0.5 * (constant + np.einsum("tij,tij->t", S, inverse))
        return terms

    def _initial_terms(self, p, mean, cov, n):
        r = mean[self.first] - p.initial_mean
        S = cov[self.first] + r[:, :, None] * r[:, None, :]
        constant = n * _LOG_2PI + np.linalg.slogdet(p.initial_cov)[1]
        inverse = np.linalg.inv(p.initial_cov)
        return -0.5 * (constant + np.einsum("tij,ij->t", S, inverse))


# -- M step ----------------------------------------------------------------------------
@dataclass(frozen=True)
class Rules:
    """What an M step keeps to.

    Attributes
    ----------
    prior : CovariancePrior
    smoothing : float
    stable : bool
    held : dict
        Masks of `fixed=`, by name.
    each : list of Held
        The same, of the system of each regime.
    """

    prior: em.CovariancePrior
    smoothing: float
    stable: bool
    held: Mapping[str, Any]
    each: list[Held]

    @classmethod
    def of(
        cls,
        prior: em.CovariancePrior,
        smoothing: float,
        stable: bool,
        held: Mapping[str, Any],
        p: Parameters,
    ) -> Self:
        """For parameters of these shapes."""
        each = [Held.of(own, law) for law, own in systems(p, held)]
        return cls(prior, smoothing, stable, held, each)


def whole_covariances(held: Mapping[str, Any], p: Parameters) -> dict[str, Any]:
    """Masks in the shapes of parameters, of which covariances stay as a whole."""
    return {
        name: np.broadcast_to(mask[..., None, None], getattr(p, name).shape)
        if name in COVARIANCES
        else mask
        for name, mask in held.items()
    }


def systems(
    p: Parameters, held: Mapping[str, Any]
) -> list[tuple[System, dict[str, Any]]]:
    """The linear systems of the regimes, and the masks of each."""
    of_states = {name: mask for name, mask in held.items() if name in System._fields}
    return [
        (
            p.of_regime(k),
            {n: m[k] if n in _OF_REGIMES else m for n, m in of_states.items()},
        )
        for k in range(len(p.start))
    ]


def n_held_of(p: Parameters, held: Mapping[str, Any]) -> int:
    """Number of free parameters that masks take from the systems of the regimes."""
    first, *others = systems(p, held)
    own = [(q, {n: m for n, m in g.items() if n in _OF_REGIMES}) for q, g in others]
    return n_held([first, *own])


def maximised(problem: Problem, p: Parameters, q: Beliefs, rules: Rules) -> Parameters:
    """M step: weighted regressions."""
    new, prior, held = p._asdict(), rules.prior, rules.held
    for name, counts in (("start", q.start_counts), ("switching", q.switch_counts)):
        old = getattr(p, name)
        new[name] = maximum_of_free(counts, rules.smoothing, old, held.get(name))
    one, products = p.of_regime(0), expected_products(problem, p, q)
    em.observation_step(new, one, products, prior, rules.each[0])
    em.first_step(new, one, products, prior, rules.each[0])
    new |= {name: np.array(getattr(p, name)) for name in _OF_REGIMES}
    for k, own in enumerate(rules.each):
        e = regime_products(problem, q, k)
        if e.before[-1, -1] >= _FEWEST:
            law = p.of_regime(k)
            found: dict[str, Any] = {"transition_cov": law.transition_cov}
            em.transition_step(found, law, e, prior, own, rules.stable)
            for name in _OF_REGIMES:
                new[name][k] = found[name]
    return Parameters(**{name: new[name] for name in Parameters._fields})


def expected_products(problem: Problem, p: Parameters, q: Beliefs) -> em.Products:
    """Products for the observations and the first states."""
    seen, x = problem.observed, problem.data.values
    z = np.column_stack([q.mean, np.ones(len(q.mean))])
    n = q.mean.shape[1]
    if problem.partial:
        law = p.observation, p.observation_offset, p.observation_cov
        second, xz, xx = expected_observations(*law, x, q.mean, q.cov)
    else:
        second = z[seen].T @ z[seen]
        second[:n, :n] += q.cov[seen].sum(axis=0)
        xz, xx = x[seen].T @ z[seen], x[seen].T @ x[seen]
    first = q.mean[problem.first]
    scatter = first.T @ first + q.cov[problem.first].sum(axis=0)
    none = np.zeros((0, 0))
    return em.Products(
        len(problem.data), none, none, none, second, xz, xx, first.sum(axis=0), scatter
    )


def regime_products(problem: Problem, q: Beliefs, k: int) -> em.Products:
    """Products for the transitions, weighted by the probability of a regime."""
    into, w, n = problem.into, q.regimes[:, k], q.mean.shape[1]
    z = np.column_stack([q.mean[into - 1], np.ones(len(into))])
    weighted = z * w[:, None]
    before = weighted.T @ z
    before[:n, :n] += np.tensordot(w, q.cov[into - 1], 1)
    across = q.mean[into].T @ weighted
    across[:, :n] += np.tensordot(w, q.lag[into - 1], 1)
    after = (q.mean[into] * w[:, None]).T @ q.mean[into]
    after += np.tensordot(w, q.cov[into], 1)
    none = np.zeros((0, 0))
    return em.Products(
        len(problem.data), before, across, after, none, none, none, none, none
    )


def log_prior(p: Parameters, prior: em.CovariancePrior, smoothing: float) -> float:
    """Log-density of the priors, up to a constant."""
    total = log_of_pseudo_counts(smoothing, p.start, p.switching)
    covs = (*p.transition_cov, p.initial_cov, p.observation_cov)
    return total + sum(map(prior.term, covs))


# -- start -----------------------------------------------------------------------------
def random_segments(
    problem: Problem, n_regimes: int, rng: np.random.Generator, length: float = 8.0
) -> Array:
    """Regime probabilities of random segments of about this length."""
    T = len(problem.into)
    if n_regimes == 1:
        return np.ones((T, 1))
    changes = rng.random(T) < 1.0 / length
    path = np.zeros(0, dtype=np.intp)
    if T:
        path = rng.integers(n_regimes, size=T + 1)[np.cumsum(changes)]
    regimes = np.full((T, n_regimes), 0.1 / n_regimes)
    regimes[np.arange(T), path] += 0.9
    return regimes
