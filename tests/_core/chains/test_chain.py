"""Compiled passes over hidden chains: underflow, length, threads, memory maps."""

import numpy as np
import pytest
from models.sequence_cases import random_chain, random_codes, random_hmm
from oracles.sequence_models import log_emission_of, posteriors
from scipy.special import logsumexp

from maxent import MEDSequenceOutlierDetector
from maxent._core.chains import chain
from maxent._inputs.sequences import Sequences
from maxent.kernels.scores._expected_counts import chain_counts
from maxent.models import CategoricalHMM
from maxent.models.chains import _many_chains
from maxent.models.chains._hidden_chain import Observations


def run(start, transition, log_tables, weights=True, n_jobs=1):
    """Log-likelihoods and counts of sequences given by their log emissions."""
    ends = np.concatenate([[0], np.cumsum([len(x) for x in log_tables])]).astype(int)
    table = np.concatenate(log_tables)
    seen = Observations(Sequences(table, ends), np.arange(len(table)), shared=False)
    own = np.ones(len(log_tables)) if weights else None
    return seen.expect(np.asarray(start), np.asarray(transition), table, own, n_jobs)


def logs(start, transition, log_table):
    """log p(x) by the forward recursion in logs."""
    with np.errstate(divide="ignore"):
        alpha = np.log(start) + log_table[0]
        for row in log_table[1:]:
            alpha = logsumexp(alpha[:, None] + np.log(transition), axis=0) + row
    return logsumexp(alpha)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("S", [1, 2, 3, 5, 8, 11])
@pytest.mark.parametrize("n", [1, 3, 8, 19])
def test_counts_of_vectors_and_of_single_sequences(S, n, sparse, rng):
    # eight sequences a vector, or one: the same numbers either way
    start, transition = random_chain(rng, S, sparse)
    tables = [rng.normal(size=(m, S)) for m in rng.integers(1, 80, size=n)]
    together = run(start, transition, tables)
    alone = [run(start, transition, [table]) for table in tables]
    values = np.array([one.log_likelihood[0] for one in alone])
    np.testing.assert_allclose(together.log_likelihood, values, rtol=1e-12)
    expected = [logs(start, transition, table) for table in tables]
    np.testing.assert_allclose(values, expected, rtol=1e-11)
    for part in ("start", "transition"):
        total = sum(getattr(one, part) for one in alone)
        np.testing.assert_allclose(getattr(together, part), total, atol=1e-10)
    gamma = np.concatenate([one.emission for one in alone])
    np.testing.assert_allclose(together.emission, gamma, atol=1e-11)
    np.testing.assert_allclose(gamma.sum(axis=1), 1.0, atol=1e-11)
    only = run(start, transition, tables, weights=False)
    np.testing.assert_allclose(only.log_likelihood, values, rtol=1e-12)


@pytest.mark.parametrize("n", [1, 8])
def test_steps_of_tiny_probability_do_not_underflow(n, rng):
    # every step has a probability around 1e-300, and states differ by as much
    start, transition = random_chain(rng, 3)
    tables = [rng.uniform(-1400.0, -600.0, size=(40, 3)) for _ in range(n)]
    found = run(start, transition, tables)
    expected = [logs(start, transition, table) for table in tables]
    np.testing.assert_allclose(found.log_likelihood, expected, rtol=1e-12)
    np.testing.assert_allclose(found.emission.sum(axis=1), 1.0, atol=1e-11)


@pytest.mark.parametrize("n", [1, 8])
def test_a_path_that_underflows_and_comes_back(n):
    # state 1 is 1e-400 times as likely for a while, and then the only one
    start, transition = np.array([0.5, 0.5]), np.eye(2)
    table = np.array([[0.0, -500.0]] * 2 + [[-2000.0, 0.0]] * 2)
    found = run(start, transition, [table] * n)
    np.testing.assert_allclose(found.log_likelihood, -1000.0 + np.log(0.5), rtol=1e-13)
    np.testing.assert_allclose(
        found.emission, np.tile([0.0, 1.0], (4 * n, 1)), atol=1e-12
    )
    only = run(start, transition, [table] * n, weights=False)
    np.testing.assert_allclose(only.log_likelihood, -1000.0 + np.log(0.5), rtol=1e-13)


@pytest.mark.parametrize("n", [1, 8])
def test_a_forced_transition_of_tiny_probability(n):
    # start in 0, the second symbol needs state 1, reached with probability 1e-300
    start = np.array([1.0, 0.0])
    transition = np.array([[1.0, 1e-300], [0.0, 1.0]])
    table = np.array([[0.0, 0.0], [-np.inf, -700.0]] + [[0.0, -700.0]] * 30)
    found = run(start, transition, [table] * n)
    expected = logs(start, transition, table)
    np.testing.assert_allclose(found.log_likelihood, expected, rtol=1e-13)
    np.testing.assert_allclose(found.transition[0, 1], n, rtol=1e-11)


def test_unreachable_states_do_not_overflow(rng):
    # state 1 explains everything but cannot be reached: its beta is 1e+3000
    start, transition = np.array([1.0, 0.0]), np.eye(2)
    table = np.array([[-30.0, 0.0]] * 200)
    for n in (1, 8):
        found = run(start, transition, [table] * n)
        np.testing.assert_allclose(found.log_likelihood, -6000.0, rtol=1e-13)
        np.testing.assert_allclose(found.emission[:, 0], 1.0, atol=1e-12)
        assert np.isfinite(found.transition).all()


@pytest.mark.parametrize("sparse", [False, True])
def test_emissions_that_differ_by_many_orders_of_magnitude(sparse, rng):
    for _ in range(20):
        S = int(rng.integers(2, 5))
        start, transition = random_chain(rng, S, sparse)
        tables = [-rng.exponential(400.0, size=(5, S)) for _ in range(9)]
        found = run(start, transition, tables)
        gammas = []
        for table, value in zip(tables, found.log_likelihood):
            expected, gamma, *_ = posteriors(start, transition, table)
            np.testing.assert_allclose(value, expected, rtol=1e-12)
            gammas.append(gamma)
        np.testing.assert_allclose(found.emission, np.concatenate(gammas), atol=1e-11)


def test_impossible_sequences_are_minus_infinity_and_count_for_nothing(rng):
    start, transition = random_chain(rng, 2)
    good, bad = rng.normal(size=(4, 2)), np.full((4, 2), -np.inf)
    found = run(start, transition, [good, bad] + [good] * 7)
    assert found.log_likelihood[1] == -np.inf
    alone = run(start, transition, [good] * 8)
    np.testing.assert_allclose(found.transition, alone.transition, atol=1e-12)
    assert not found.emission[4:8].any()


def test_a_million_steps(rng):
    model = random_hmm(rng, 4, 3)
    X = model.sample(1, 1_000_000, rng)
    whole = model.log_likelihood(X)[0]
    assert np.isfinite(whole)
    # the entropy rate of a part of it, times the length
    part = model.log_likelihood([X[0][:100_000]])[0]
    assert abs(whole / part - 10.0) < 0.2
    value = CategoricalHMM([1.0], [[1.0]], [[0.3, 0.7]]).log_likelihood(
        [np.arange(1_000_000) % 2]
    )
    np.testing.assert_allclose(value, 5e5 * np.log(0.21), rtol=1e-12)


def test_any_number_of_threads_gives_the_same_bits(rng):
    model = random_hmm(rng, 5, 4)
    X = model.sample(700, rng.integers(20, 150, size=700), rng)
    seen = model._observations(model._read(X, None))
    table, weights = model._log_table(None), rng.random(700)
    one, two, four = (
        seen.expect(model.start, model.transition, table, weights, n_jobs)
        for n_jobs in (1, 2, 4)
    )
    for other in (two, four):
        for part in ("log_likelihood", "start", "transition", "emission"):
            np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
    paths = [model.viterbi(X, n_jobs=k)[0] for k in (1, 4)]
    assert all(np.array_equal(a, b) for a, b in zip(*paths))


def test_read_only_arrays_are_read(rng):
    model = random_hmm(rng, 2, 3)
    codes = random_codes(rng, 1, 3, low=5)[0]
    codes.setflags(write=False)
    expected = posteriors(
        model.start, model.transition, log_emission_of(model.emission.prob, codes)
    )[0]
    np.testing.assert_allclose(model.log_likelihood([codes])[0], expected)


def test_draws_follow_the_edges():
    # context (last two of three symbols); symbol = context // 3 with certainty
    edges = np.repeat((np.arange(3) == np.arange(9)[:, None] // 3), 1, axis=1)
    edges = np.cumsum(edges.astype(float), axis=1)
    path = chain.draw_chain(
        edges, np.array([5, 0]), np.full(8, 0.5), np.array([0, 5, 8])
    )
    # 5 = (1, 2): 1, then context (2, 1): 2, then (1, 2): 1, ...
    assert path.tolist() == [1, 2, 1, 2, 1, 0, 0, 0]


def test_most_likely_paths_of_long_sequences_go_on_from_piece_to_piece(rng):
    # more pairs of states than are compared between two looks for Ctrl-C
    model = random_hmm(rng, 150, 3)
    X = model.sample(3, [4000, 20, 1600], rng)
    paths, log_prob = model.viterbi(X, n_jobs=2)
    move, table = np.log(model.transition), np.log(model.emission.prob)
    for x, path, value in zip(X, paths, log_prob):
        best, back = np.log(model.start) + table[:, x[0]], []
        for symbol in x[1:]:
            scores = best[:, None] + move
            back.append(scores.argmax(axis=0))
            best = scores.max(axis=0) + table[:, symbol]
        states = [int(best.argmax())]
        for previous in reversed(back):
            states.append(int(previous[states[-1]]))
        np.testing.assert_allclose(value, best.max(), rtol=1e-12)
        np.testing.assert_array_equal(path, states[::-1])


@pytest.mark.parametrize("S", [1, 2, 5, 8, 9, 17])
def test_most_likely_paths_are_those_of_plain_maxima_with_ties(S, rng):
    # whole numbers, so that many paths are as likely; steps of nothing; few rows, so
    # that the last entries of the table are read too
    log_start, log_trans = (
        -1.0 * rng.integers(0, 3, S),
        -1.0 * rng.integers(0, 3, (S, S)),
    )
    log_table = -1.0 * rng.integers(0, 3, (3, S))
    log_trans[rng.random((S, S)) < 0.3] = -np.inf
    lengths = rng.integers(1, 12, size=30)
    offset = np.r_[0, np.cumsum(lengths)].astype(np.intp)
    row = rng.integers(-1, 3, offset[-1]).astype(np.intp)
    found, log_prob = chain.viterbi(log_start, log_trans, log_table, row, offset, 2)
    for i in range(len(lengths)):
        own = row[offset[i] : offset[i + 1]]
        shown = np.where(own[:, None] >= 0, log_table[own], 0.0)
        best, origins = log_start + shown[0], []
        for e in shown[1:]:
            ahead = best[:, None] + log_trans
            origins.append(ahead.argmax(axis=0))  # the first of several
            best = ahead.max(axis=0) + e
        path = [int(best.argmax())]
        for origin in reversed(origins):
            path.append(int(origin[path[-1]]))
        assert log_prob[i] == best.max()
        np.testing.assert_array_equal(found[offset[i] : offset[i + 1]], path[::-1])


@pytest.mark.parametrize("S", [1, 5, 8])
def test_rows_less_their_largest_entry(S, rng):
    table = rng.normal(size=(40, S)) * 400
    table[rng.random((40, S)) < 0.3] = -np.inf
    table[0] = -np.inf
    relative, top = chain.relative(table)
    most = table.max(axis=1)
    np.testing.assert_array_equal(top, np.where(most > -np.inf, most, 0.0))
    np.testing.assert_array_equal(relative, table - top[:, None])


def test_expected_counts_together_are_those_of_each_alone(rng):
    model = random_hmm(rng, 4, 3)
    lengths = [60, 1, 7, 30, 30, 2, 300, 5, 12, 3]
    X = model.sample(len(lengths), lengths, rng)
    together = chain_counts(model, model._read(X, None), 2)
    for i, x in enumerate(X):
        alone = chain_counts(model, model._read([x], None))
        for own, one in zip(together, alone, strict=True):
            np.testing.assert_allclose(own[i], one[0], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("longest", [0, 4 * 20, 1 << 20])
def test_counts_of_a_chain_are_those_of_each_alone(longest, rng, monkeypatch):
    """Long sequences, and few, take no vector."""
    model = random_hmm(rng, 4, 3)
    lengths = np.array([300, 60, 30, 30, 12, 7, 5, 3, 2, 1])
    X = [rng.integers(3, size=n) for n in lengths]
    logs = np.log(model.start), np.log(model.transition)
    symbols = model._log_table(model._read(X, None))
    monkeypatch.setattr(_many_chains, "LONGEST", longest)
    places = np.cumsum(lengths) - lengths
    table = np.repeat(symbols[None], len(X), axis=0)
    found = _many_chains.counts_of_chain(
        np.concatenate(X), places, lengths, *logs, table, 2
    )
    for i, x in enumerate(X):
        alone = chain_counts(model, model._read([x], None))
        for own, one in zip(found, alone, strict=True):
            np.testing.assert_allclose(own[i], one[0], rtol=1e-10, atol=1e-12)


def test_a_long_sequence_takes_no_vector(rng, monkeypatch):
    calls = []
    monkeypatch.setattr(_many_chains.chain, "expect_each", calls.append)
    X = [rng.integers(2, size=3000)]
    MEDSequenceOutlierDetector(2, n_init=1, tol=0.1, random_state=0).fit(X)
    assert not calls  # in which seven lanes would be idle
