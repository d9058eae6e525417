"""Probabilities of hundreds of orders of magnitude, against paths summed in logs.

A state that one step all but excludes may be the only one that leads to the next: sums
that are scaled from step to step must not lose it.
"""

import numpy as np
import pytest
from oracles import sequence_models as oracle
from scipy import stats
from scipy.special import logsumexp

from maxent._inputs.sequences import symbol_sequences
from maxent.discrimination.detection._chain_rounds import CategoricalChains
from maxent.discrimination.detection.chain_posterior import (
    ChainPosterior,
    expected_logs,
)
from maxent.kernels import factorial_hmm_kernel, product_kernel
from maxent.models import FactorialHMM, GaussianHMM, MarkovChain
from maxent.models.chains._coupled_chains import total_means

NATS = (5.0, 340.0, 700.0)  # that entries of a row lie apart
ROUNDING = 1e-10  # of sums of logs of some thousand nats


def close(value, nats=0.0):
    """Equal but for rounding, of logs as large as `nats`; -inf too."""
    return pytest.approx(value, abs=ROUNDING * (1.0 + nats), rel=ROUNDING)


def extreme_row(rng, size, nats, zeros):
    """Probabilities down to exp(-nats), some of them zero."""
    while True:
        small = rng.random(size) < 0.6
        p = np.exp(-nats * rng.random(size) ** 2 * small)
        p[rng.random(size) < zeros] = 0.0
        if p.sum() > 1e-300:
            return p / p.sum()


def extreme_chain(rng, S, nats, zeros):
    rows = [extreme_row(rng, S, nats, zeros) for _ in range(S)]
    return extreme_row(rng, S, nats, zeros), np.array(rows)


def cases(rng, n):
    for _ in range(n):
        yield rng.choice(NATS), rng.choice([0.0, 0.3, 0.6]), rng.choice([1.0, 40, 300])


def extreme_factorial(rng, nats, zeros, far):
    sizes = rng.integers(1, 3, size=rng.integers(1, 4))
    chains = [extreme_chain(rng, S, nats, zeros) for S in sizes]
    means = [far * rng.normal(size=(S, 1)) for S in sizes]
    return FactorialHMM(*zip(*chains), means, [[rng.uniform(0.3, 3.0)]])


def test_the_likelihood_of_chains_that_never_switch():
    """Both states are 40 standard deviations apart: by hand, one path each."""
    model = FactorialHMM([[0.5, 0.5]], [np.eye(2)], [[[0.0], [40.0]]], [[1.0]])
    y = np.r_[0.0, 0.0, np.full(5, 40.0)][:, None]
    log_density = -0.5 * 7 * np.log(2 * np.pi)
    paths = [log_density - 0.5 * 1600 * k - np.log(2) for k in (5, 2)]
    assert model.log_likelihood([y])[0] == pytest.approx(logsumexp(paths), rel=1e-12)
    assert model.lower_bound([y])[0] <= model.log_likelihood([y])[0] + 1e-9


def test_factorial_models_sum_over_all_paths(rng):
    for case in cases(rng, 60):
        model = extreme_factorial(rng, *case)
        y = case[-1] * rng.normal(size=(rng.integers(1, 5), 1))
        means = total_means(model.mean)[:, 0]
        steps = stats.norm(means, np.sqrt(model.cov[0, 0])).logpdf(y)
        chain = oracle.joint_chain(model.start, model.transition)
        Z, terms = oracle.log_terms(*chain, steps)
        total = logsumexp(terms)
        assert model.log_likelihood([y])[0] == close(total)
        assert model.lower_bound([y])[0] <= total + 1e-7 * (1.0 + abs(total))
        assert model.viterbi([y])[1][0] == close(terms.max())
        if total == -np.inf:
            continue
        weight = np.exp(terms - total)
        states = np.array(np.unravel_index(Z, model.n_states))  # (chains, paths, steps)
        for own, q in zip(states, model.posterior([y])[0]):
            want = [
                [weight[own[:, t] == k].sum() for k in range(q.shape[1])]
                for t in range(len(y))
            ]
            np.testing.assert_allclose(q, want, atol=1e-9)


@pytest.mark.parametrize("rho", [0.5, 1.0, 2.0])
def test_factorial_kernels_sum_over_all_pairs_of_paths(rho, rng):
    for case in cases(rng, 20):
        P = [extreme_factorial(rng, *case) for _ in range(2)]
        T = rng.integers(0, 3)
        L = factorial_hmm_kernel(P, rho=rho, horizon=int(T), log=True, method="exact")
        for i, p in enumerate(P):
            for j, q in enumerate(P):
                R, S = p.cov[0, 0], q.cov[0, 0]
                r = total_means(p.mean) - total_means(q.mean).T
                # int N(m, R)^rho N(m', S)^rho
                psi = 0.5 * (1 - rho) * np.log(4 * np.pi**2 * R * S) - np.log(rho)
                psi = psi + stats.norm(0.0, np.sqrt((R + S) / rho)).logpdf(r)
                ends = [
                    [rho * part for part in oracle.joint_chain(m.start, m.transition)]
                    for m in (p, q)
                ]
                start = np.add.outer(ends[0][0], ends[1][0]).ravel()
                moves = ends[0][1][:, None, :, None] + ends[1][1][:, None]
                moves = moves.reshape(len(start), -1)
                _, terms = oracle.log_terms(start, moves, [psi.ravel()] * (T + 1))
                assert L[i, j] == close(logsumexp(terms))


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("rho", [0.5, 1.0, 2.0])
def test_markov_kernels_sum_over_all_sequences(rho, order, rng):
    for nats, zeros, _ in cases(rng, 20):
        P = []
        for _ in range(2):
            rows = [extreme_row(rng, 2, nats, zeros) for _ in range(2**order)]
            start = extreme_row(rng, 2**order, nats, zeros)
            P.append(MarkovChain(start, rows, order))
        n = int(rng.integers(order, 12))
        L = product_kernel(P, rho=rho, horizon=n - 1, log=True)
        x = oracle.paths(2, n)
        place = 2 ** np.arange(order)[::-1]
        each = []
        for p in P:
            log_start, log_A = oracle.logs(p.start, p.transition)
            value = log_start[x[:, :order] @ place]
            for t in range(order, n):
                value = value + log_A[x[:, t - order : t] @ place, x[:, t]]
            each.append(rho * value)
        for i, j in np.ndindex(2, 2):
            assert L[i, j] == close(logsumexp(each[i] + each[j]))


def test_a_first_symbol_that_underflows_wins_without_any_zero():
    """Squares by hand: 1e-340 for ever 0, and 1e-300 before 1e-200 a step for 1."""
    least = 1e-100
    p = MarkovChain([1e-170, 1.0], [[1.0, least], [1.0, least]])
    q = MarkovChain([1.0, 1e-150], [[1.0, least], [least, 1.0]])
    L = product_kernel([p], [q], rho=2.0, horizon=3, log=True)
    assert L[0, 0] == pytest.approx(-340.0 * np.log(10.0), rel=1e-12)


def test_markov_kernels_of_fewer_symbols_than_the_order(rng):
    """Laws of the first symbols are sums, which may round to more than one."""
    for order in (2, 3):
        rows = rng.dirichlet(np.ones(3), size=3**order)
        P = [
            MarkovChain(rng.dirichlet(np.ones(3**order)), rows, order)
            for _ in range(50)
        ]
        K = product_kernel(P, horizon=0)
        first = np.array([p.start.reshape(3, -1).sum(axis=1) for p in P])
        np.testing.assert_allclose(K, np.sqrt(first) @ np.sqrt(first).T, rtol=1e-12)
    above = MarkovChain([0.5, 0.5 + 2.0**-51, 0.0, 0.0], np.full((4, 2), 0.5), 2)
    assert product_kernel([above], horizon=0)[0, 0] == pytest.approx(1.0, rel=1e-12)


def extreme_posterior(rng, S, O):
    """Pseudo-counts of which some are so small that exp(E log p) underflows."""
    tables = [
        np.where(rng.random(shape) < 0.4, 1e-3, rng.uniform(1, 99, shape))
        for shape in (S, (S, S), (S, O))
    ]
    return ChainPosterior(*tables)


def test_scores_under_posteriors_with_tiny_pseudo_counts(rng):
    for _ in range(20):
        S, O = rng.integers(1, 4, size=2)
        q = extreme_posterior(rng, S, O)
        chain = expected_logs(q.start), expected_logs(q.transition)
        X = [rng.integers(0, O, size=n) for n in (1, 3, 5)]
        for x, score in zip(X, q.expected_log_prob(X)):
            steps = expected_logs(q.emission).T[x]
            assert score == close(logsumexp(oracle.log_terms(*chain, steps)[1]))


def test_rounds_of_detectors_under_tiny_pseudo_counts(rng):
    for _ in range(20):
        S, O = rng.integers(1, 4, size=2)
        q = extreme_posterior(rng, S, O)
        start, moves, table = map(expected_logs, (q.start, q.transition, q.emission))
        X = [rng.integers(0, O, size=n) for n in (5, 1, 3)]
        found = symbol_sequences(X, n_symbols=int(O))
        counts = dict.fromkeys(("start", "transition", "emission"), 1.0)
        problem = CategoricalChains(found, S, counts, np.ones(3), int(O))
        hidden = problem._pass(start, moves, table)
        starts, switches, _ = hidden.expected
        for x, bound, first, pairs in zip(X, hidden.bound, starts, switches):
            Z, terms = oracle.log_terms(start, moves, table.T[x])
            assert bound == close(logsumexp(terms))
            weight = np.exp(terms - logsumexp(terms))
            np.testing.assert_allclose(
                first, np.bincount(Z[:, 0], weight, S), atol=1e-9
            )
            want = np.zeros((S, S))
            for t in range(1, len(x)):
                np.add.at(want, (Z[:, t - 1], Z[:, t]), weight)
            np.testing.assert_allclose(pairs, want, atol=1e-9)


def test_posteriors_sum_to_one_however_large_the_logs_are():
    """Two states alike at -5e11 nats a step; the third, where the data are, is shut."""
    model = GaussianHMM([0.5, 0.5, 0], np.eye(3), [[1], [-1], [0]], [1e-12] * 3)
    q = model.posterior([np.zeros((50, 1))])[0]
    np.testing.assert_allclose(q, np.tile([0.5, 0.5, 0.0], (50, 1)), atol=1e-12)
