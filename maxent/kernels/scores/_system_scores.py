"""Scores of data under models of linear Gaussian steps, by Fisher's identity.

Switching and factorial models have scores of their variational lower bound, which is
stationary in the beliefs, so that its gradient is the expected complete-data score.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent._core.systems import expected_states
from maxent._support.threads import effective_threads
from maxent.kernels.scores._score_blocks import (
    Coordinates,
    Scorer,
    cov_score,
    free,
    logit_scores,
    probabilities,
    symmetric,
)
from maxent.models._partial import is_partial
from maxent.models.chains._factorial_em import even_beliefs, log_bounds, settled_chains
from maxent.models.systems import _lds_em as lds_em
from maxent.models.systems import _switching_em as switching_em
from maxent.models.systems._lds_em import Products, n_products, residual_scatter
from maxent.models.systems._state_posterior import refuse_failure
from maxent.models.systems._switching_em import regime_products

Array = NDArray[np.float64]


class SystemScorer(Scorer):
    """Linear dynamical systems: matrices, offsets and covariances."""

    _COVS = ("transition_cov", "observation_cov", "initial_cov")

    def coordinates(self) -> list[Coordinates]:
        M = self.model
        if M.n_steps is not None:
            raise ValueError(
                "model is a LinearDynamicalSystem whose parameters vary with time; "
                "scores are of a constant one."
            )
        M._check_law()
        _refuse_singular(M, self._COVS)
        n, d = M.n_states, M.n_features
        return [
            free("transition", (n, n)),
            free("transition_offset", (n,)),
            symmetric("transition_cov", (n * n,)),
            free("observation", (d, n)),
            free("observation_offset", (d,)),
            symmetric("observation_cov", (d * d,)),
            free("initial_mean", (n,)),
            symmetric("initial_cov", (n * n,)),
        ]

    def blocks(self, data: Any) -> tuple[Array, list[Array]]:
        M = self.model
        found = M._read(data)
        if is_partial(found.values).any():
            own = [
                lds_em.expected_products(M._parameters, one) for one in found.singles()
            ]
            each = [self._score(products) for _, products in own]
            values = np.array([log_lik for log_lik, _ in own])
            return values, [np.array(block) for block in zip(*each)]
        N, n, d = len(found), M.n_states, M.n_features
        rows, values = np.empty((N, n_products(n, d))), np.empty(N)
        bad = np.empty(N, dtype=np.intp)
        threads = effective_threads(self.n_jobs)
        expected_states.statistics(
            M._compiled, found.values, found.offsets, threads, rows, values, bad
        )
        refuse_failure(bad)
        each = [self._score(Products.of_row(row, n, d, 1)) for row in rows]
        return values, [np.array(block) for block in zip(*each)]

    def _score(self, e: Products) -> list[Array]:
        """Scores of one sequence."""
        M = self.model
        A, b, Q = M.transition, M.transition_offset, M.transition_cov
        m, P = M.initial_mean, M.initial_cov
        n = len(m)
        moved = np.linalg.solve(Q, e.across - np.column_stack([A, b]) @ e.before)
        scatter = residual_scatter(A, b, e.after, e.across, e.before)
        first = e.second - np.outer(e.first, m) - np.outer(m, e.first) + np.outer(m, m)
        return [
            moved[:, :n],
            moved[:, n],
            cov_score(Q, scatter, e.before[-1, -1]),
            *_observation_scores(M, e.xz, e.seen, e.xx),
            np.linalg.solve(P, e.first - m),
            cov_score(P, first, 1.0),
        ]


def _observation_scores(
    model: Any, xz: Array, seen: Array, xx: Array
) -> tuple[Array, Array, Array]:
    """Of C, c and R, from sums of expected products over the observed steps."""
    C, c, R = model.observation, model.observation_offset, model.observation_cov
    slope = np.linalg.solve(R, xz - np.column_stack([C, c]) @ seen)
    noise = residual_scatter(C, c, xx, xz, seen)
    return slope[:, :-1], slope[:, -1], cov_score(R, noise, seen[-1, -1])


class SwitchingScorer(Scorer):
    """Switching systems: gradient of the lower bound."""

    def coordinates(self) -> list[Coordinates]:
        M = self.model
        _refuse_singular(M, ("transition_cov", "observation_cov", "initial_cov"))
        K, n, d = M.n_regimes, M.n_states, M.n_features
        return [
            probabilities("start", M.start),
            probabilities("switching", M.switching),
            free("transition", (K, n, n)),
            free("transition_offset", (K, n)),
            symmetric("transition_cov", (K, n * n)),
            free("observation", (d, n)),
            free("observation_offset", (d,)),
            symmetric("observation_cov", (d * d,)),
            free("initial_mean", (n,)),
            symmetric("initial_cov", (n * n,)),
        ]

    def blocks(self, data: Any) -> tuple[Array, list[Array]]:
        M = self.model
        found = M._read(data).singles()
        each, bounds = [], []
        for one in found:
            problem, q = M._beliefs(one)
            bounds.append(q.bounds[0])
            each.append(self._score(problem, q))
        return np.array(bounds), [np.array(block) for block in zip(*each)]

    def _score(self, problem: Any, q: Any) -> list[Array]:
        M = self.model
        slopes, offsets, covs = [], [], []
        for k in range(M.n_regimes):
            A, b, Q = M.transition[k], M.transition_offset[k], M.transition_cov[k]
            e = regime_products(problem, q, k)
            moved = np.linalg.solve(Q, e.across - np.column_stack([A, b]) @ e.before)
            scatter = residual_scatter(A, b, e.after, e.across, e.before)
            slopes.append(moved[:, :-1])
            offsets.append(moved[:, -1])
            covs.append(cov_score(Q, scatter, e.before[-1, -1]))
        e = switching_em.expected_products(problem, M._parameters, q)
        m, P = M.initial_mean, M.initial_cov
        first = e.second - np.outer(e.first, m) - np.outer(m, e.first) + np.outer(m, m)
        return [
            logit_scores(q.start_counts, M.start),
            logit_scores(q.switch_counts, M.switching),
            np.array(slopes),
            np.array(offsets),
            np.array(covs),
            *_observation_scores(M, e.xz, e.seen, e.xx),
            np.linalg.solve(P, e.first - m),
            cov_score(P, first, 1.0),
        ]


class FactorialScorer(Scorer):
    """Factorial hidden Markov models: gradient of the lower bound."""

    def coordinates(self) -> list[Coordinates]:
        M = self.model
        out = []
        for c in range(M.n_chains):
            out += [
                probabilities(f"start[{c}]", M.start[c]),
                probabilities(f"transition[{c}]", M.transition[c]),
                free(f"mean[{c}]", M.mean[c].shape),
            ]
        return [*out, symmetric("cov", (M.n_features**2,))]

    def blocks(self, data: Any) -> tuple[Array, list[Array]]:
        M = self.model
        each, bounds = [], []
        for one in M._read(data).singles():
            even = even_beliefs(M.n_states, len(one.values))
            chains = settled_chains(M, one, even)
            bounds.append(log_bounds(chains, M.cov, one.values)[0])
            each.append(self._score(chains))
        return np.array(bounds), [np.array(block) for block in zip(*each)]

    def _score(self, chains: Any) -> list[Array]:
        M = self.model
        seen = chains.seen
        # the precision of what was observed of each step
        L = np.broadcast_to(chains.precision, (len(seen), *M.cov.shape))[seen]
        r = (chains.target - sum(chains.expected))[seen]
        scatter, out = r[:, :, None] * r[:, None, :], []
        for c, W in enumerate(chains.means):  # about their centres, as the targets are
            q, own = chains.beliefs[c][seen], chains.expected[c][seen]
            # x less the other chains, given the state of this one
            away = (r + own)[:, None] - W
            slope = np.einsum("ti,tid,tde->ie", q, away, L)
            scatter += np.einsum("ti,id,ie->tde", q, W, W)
            scatter -= own[:, :, None] * own[:, None, :]
            out += [
                logit_scores(chains.start_counts[c], M.start[c]),
                logit_scores(chains.switch_counts[c], M.transition[c]),
                slope,
            ]
        return [*out, (0.5 * (L @ scatter @ L - L).sum(axis=0)).ravel()]


class NetworkScorer(Scorer):
    """Linear Gaussian networks: coefficients that are not zero, offsets, covariances.

    A block of coefficients from one node to another counts as missing if all are zero.
    """

    def coordinates(self) -> list[Coordinates]:
        M = self.model
        out = []
        for child, parent, rows, columns in self._edges():
            size = (rows.stop - rows.start, columns.stop - columns.start)
            out.append(free(f"coefficients[{child},{parent}]", size))
        out.append(free("offsets", M.offsets.shape))
        for name, size in M.order:
            own = M._place[name]
            _refuse_singular_matrix(f"covs[{name!r}]", M.covs[own, own])
            out.append(symmetric(f"covs[{name}]", (size * size,)))
        return out

    def _edges(self) -> list[tuple[str, str, slice, slice]]:
        M = self.model
        pairs = [(a, b) for a, _ in M.order for b, _ in M.order]
        found = [(a, b, M._place[a], M._place[b]) for a, b in pairs]
        return [edge for edge in found if M.coefficients[edge[2], edge[3]].any()]

    def blocks(self, data: Any) -> tuple[Array, list[Array]]:
        M = self.model
        X = M._rows(data)
        log_lik = M.log_likelihood(X)
        mean, cov = M._all_given(X)  # the covariance of each row, if rows miss parts
        B = np.eye(len(M.offsets)) - M.coefficients
        # residuals (I - B) y - b of all nodes: S^{-1} E r y', S^{-1} E r, E r r'
        r = mean @ B.T - M.offsets
        inverse = np.linalg.inv(M.covs)
        half = r @ inverse
        cross = B @ cov
        out = []
        for _, _, rows, columns in self._edges():
            spread = inverse[rows] @ cross[..., columns]
            out.append(half[:, rows, None] * mean[:, None, columns] + spread)
        out.append(half)
        spread = inverse @ (cross @ B.T) @ inverse
        for name, _ in M.order:
            own = M._place[name]
            score = half[:, own, None] * half[:, None, own]
            score = 0.5 * (score + spread[..., own, own] - inverse[own, own])
            out.append(score.reshape(len(score), -1))
        return log_lik, out


def _refuse_singular(model: Any, names: tuple[str, ...]) -> None:
    for name in names:
        covs = getattr(model, name)
        for cov in covs.reshape(-1, *covs.shape[-2:]):
            _refuse_singular_matrix(name, cov)


def _refuse_singular_matrix(name: str, cov: Array) -> None:
    """Refuse a covariance without density."""
    if np.linalg.matrix_rank(cov, hermitian=True) < len(cov):
        raise ValueError(
            f"{name} of the model is singular, so that its density has no score; add a "
            "ridge to its diagonal, or fit with prior > 0."
        )
