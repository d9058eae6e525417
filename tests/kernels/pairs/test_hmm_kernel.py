"""Product kernels between hidden Markov models."""

import numpy as np
import pytest
from models.sequence_cases import random_gaussian_hmm, random_hmm
from oracles.sequence_models import log_kernel, scalar_gaussian_kernel

from maxent._core.chains import chain_pairs
from maxent.families import Categorical
from maxent.kernels.pairs._hmm import letters_at_ends, log_hmm_kernel
from maxent.models import CategoricalHMM, GaussianHMM

RHO = (0.25, 0.5, 0.8, 1.0, 1.7)


def tables(model):
    return model.start, model.transition, model.emission.prob


@pytest.mark.parametrize("rho", RHO)
def test_kernel_by_enumeration(rho, rng):
    P = [
        random_hmm(rng, S, 2, sparse) for S, sparse in ((1, 0), (2, 0), (3, 0), (2, 1))
    ]
    every = log_hmm_kernel(P, rho=rho, horizon=3, every=True)
    for T in range(4):
        expected = [[log_kernel(tables(p), tables(q), rho, T) for q in P] for p in P]
        np.testing.assert_allclose(every[T], expected, rtol=1e-11, atol=1e-12)
        one = log_hmm_kernel(P, rho=rho, horizon=T)
        np.testing.assert_allclose(one, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("rho", (0.5, 1.0))
@pytest.mark.parametrize("horizon", (0, 1))
def test_gaussian_kernel_by_quadrature(rho, horizon, rng):
    P = [
        GaussianHMM(
            m.start, m.transition, m.mean[:, :1], rng.uniform(0.5, 2.0, m.n_states)
        )
        for m in (random_gaussian_hmm(rng, 2, 1), random_gaussian_hmm(rng, 3, 1))
    ]
    found = log_hmm_kernel(P, rho=rho, horizon=horizon)
    for i, p in enumerate(P):
        for j, q in enumerate(P):
            expected = scalar_gaussian_kernel(
                (p.start, p.transition, p.mean[:, 0], p.cov),
                (q.start, q.transition, q.mean[:, 0], q.cov),
                rho,
                horizon,
                reach=20.0,
            )
            np.testing.assert_allclose(found[i, j], expected, atol=1e-9)


def test_rectangular_and_symmetric_grams_agree(rng):
    P = [random_hmm(rng, int(S), 3) for S in rng.integers(1, 6, size=21)]
    whole = log_hmm_kernel(P, rho=0.5, horizon=6)
    np.testing.assert_array_equal(whole, whole.T)
    np.testing.assert_allclose(
        log_hmm_kernel(P, P, rho=0.5, horizon=6), whole, rtol=1e-12
    )
    part = log_hmm_kernel(P[:4], P[3:], rho=0.5, horizon=6)
    np.testing.assert_allclose(part, whole[:4, 3:], rtol=1e-12)


def test_letters_at_the_ends_change_nothing(rng):
    P = [random_hmm(rng, 10, 2) for _ in range(5)]
    assert letters_at_ends(2, 10, 10, 9) > 1
    every = log_hmm_kernel(P, rho=0.7, horizon=9, every=True)
    for T in range(10):
        one = log_hmm_kernel(P, rho=0.7, horizon=T)
        np.testing.assert_allclose(one, every[T], rtol=1e-12)


@pytest.mark.parametrize("rho", (0.5, 1.0, 1.7))
def test_gram_is_positive_semidefinite(rho, rng):
    for P in (
        [random_hmm(rng, int(S), 3) for S in rng.integers(1, 5, size=30)],
        [random_gaussian_hmm(rng, int(S), 2) for S in rng.integers(1, 5, size=30)],
    ):
        L = log_hmm_kernel(P, rho=rho, horizon=7)
        own = np.diagonal(L)
        K = np.exp(L - 0.5 * (own[:, None] + own))
        assert (K <= 1 + 1e-12).all()
        assert np.linalg.eigvalsh(K)[0] >= -1e-12 * len(K)


def test_permuted_states_change_nothing(rng):
    m, k = random_hmm(rng, 4, 3), rng.permutation(4)
    other = CategoricalHMM(m.start[k], m.transition[k][:, k], m.emission[k])
    L = log_hmm_kernel([m, other], rho=0.6, horizon=5)
    np.testing.assert_allclose(L, L[0, 0], rtol=1e-12)


def test_one_step_is_the_mixture_kernel(rng):
    p, q = random_hmm(rng, 3, 4), random_hmm(rng, 2, 4)
    psi = np.exp(p.emission.log_affinity(q.emission, 0.5))
    expected = np.log(np.sqrt(p.start) @ psi @ np.sqrt(q.start))
    np.testing.assert_allclose(log_hmm_kernel([p], [q], rho=0.5, horizon=0), expected)


def test_disjoint_supports_are_minus_infinity():
    one = CategoricalHMM([1.0], [[1.0]], [[1.0, 0.0]])
    two = CategoricalHMM([1.0], [[1.0]], [[0.0, 1.0]])
    L = log_hmm_kernel([one, two], rho=0.5, horizon=4)
    np.testing.assert_array_equal(L, [[0.0, -np.inf], [-np.inf, 0.0]])


def test_long_horizons_and_tiny_probabilities_do_not_underflow(rng):
    P = [random_hmm(rng, 3, 4) for _ in range(3)]
    every = log_hmm_kernel(P, rho=1.0, horizon=3000, every=True)
    assert np.isfinite(every).all()
    step = np.diff(every[-100:], axis=0)  # the rate of the Perron root
    assert np.ptp(step, axis=0).max() < 1e-9
    # left to right with a step of probability 1e-250, twice in a pair
    m = CategoricalHMM(
        [1.0, 0.0], [[1.0 - 1e-16, 1e-250], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]
    )
    other = CategoricalHMM([1.0, 0.0], [[0.0, 1.0], [0.0, 1.0]], m.emission)
    L = log_hmm_kernel([m, other], rho=1.0, horizon=1)
    np.testing.assert_allclose(L[0, 1], -250 * np.log(10), rtol=1e-12)
    np.testing.assert_allclose(
        log_hmm_kernel([m, m], rho=1.7, horizon=9), 0.0, atol=1e-14
    )


def test_far_gaussians_do_not_underflow():
    near = GaussianHMM([1.0], [[1.0]], [[0.0]], [1.0])
    far = GaussianHMM([1.0], [[1.0]], [[80.0]], [1.0])
    L = log_hmm_kernel([near, far], rho=0.5, horizon=9)
    np.testing.assert_allclose(L[0, 1], -10 * 80.0**2 / 8, rtol=1e-12)


def test_any_number_of_threads_gives_the_same_bits(rng):
    P = [random_hmm(rng, int(S), 3) for S in rng.integers(2, 5, size=60)]
    one, four = (log_hmm_kernel(P, rho=0.5, horizon=5, n_jobs=k) for k in (1, 4))
    np.testing.assert_array_equal(one, four)


def test_emissions_of_other_batches_are_stacked(rng):
    E = Categorical(rng.dirichlet(np.ones(3), size=2))
    p = CategoricalHMM([0.5, 0.5], np.full((2, 2), 0.5), E)
    assert log_hmm_kernel([p] * 9, rho=0.5, horizon=2).shape == (9, 9)


def in_logs(p, q, rho, horizon):
    """Log kernels for the horizons 0 .. T by the recursion in logs."""
    with np.errstate(divide="ignore"):
        start, start2 = rho * np.log(p.start), rho * np.log(q.start)
        A, B = rho * np.log(p.transition), rho * np.log(q.transition)
        if isinstance(p, CategoricalHMM):
            E, F = rho * np.log(p.emission.prob), rho * np.log(q.emission.prob)
            psi = np.logaddexp.reduce(E[:, None] + F, axis=2)
        else:
            psi = p.emission.log_affinity(q.emission, rho)
    X, out = start[:, None] + start2 + psi, []
    for _ in range(horizon + 1):
        out.append(np.logaddexp.reduce(X, axis=None))
        X = np.logaddexp.reduce(X[:, None] + A[:, :, None], axis=0)
        X = np.logaddexp.reduce(X[:, :, None] + B, axis=1) + psi
    return out


def left_to_right(rng, S, letters, spread=1.0):
    """Stay or move on; entries of transitions and emissions down to 10^-spread."""
    stay = rng.uniform(0.1, 0.9, size=S) * 10.0 ** -rng.uniform(0, spread, size=S)
    stay[-1] = 1.0
    A = np.diag(stay) + np.diag(1 - stay[:-1], 1)
    E = rng.dirichlet(np.ones(letters), size=S)
    E *= 10.0 ** -rng.uniform(0, spread, size=E.shape)
    return CategoricalHMM(np.eye(S)[0], A, E / E.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("spread", (0.0, 60.0, 250.0))
@pytest.mark.parametrize("rho", (0.5, 1.0, 1.7))
def test_zeros_and_tiny_entries_agree_with_logs(spread, rho, rng):
    P = [left_to_right(rng, S, 3, spread) for S in (1, 3, 4, 4)]
    P += [random_hmm(rng, 3, 3), random_hmm(rng, 4, 3, sparse=True)]
    every = log_hmm_kernel(P, rho=rho, horizon=60, every=True)
    for i, j in zip(*np.triu_indices(len(P))):
        expected = in_logs(P[i], P[j], rho, 60)
        np.testing.assert_allclose(every[:, i, j], expected, rtol=1e-11, atol=1e-11)
    last = log_hmm_kernel(P[2:5], P, rho=rho, horizon=60)
    np.testing.assert_allclose(last, every[60, 2:5], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("rho", (0.5, 1.0))
def test_far_left_to_right_gaussians_agree_with_logs(rho, rng):
    P = []
    for S in (2, 4, 4, 5):
        chain = left_to_right(rng, S, 2)
        mean = rng.normal(size=(S, 2)) * 10.0 ** rng.uniform(0, 2, size=(S, 1))
        P.append(GaussianHMM(chain.start, chain.transition, mean, np.ones(S)))
    every = log_hmm_kernel(P, rho=rho, horizon=30, every=True)
    for i, j in zip(*np.triu_indices(len(P))):
        expected = in_logs(P[i], P[j], rho, 30)
        np.testing.assert_allclose(every[:, i, j], expected, rtol=1e-11, atol=1e-11)


def test_powers_that_underflow():
    # the second symbol needs state 1, and 1e-250 to the power 1.7 is no double
    A = np.array([[1.0, 1e-250], [0.0, 1.0]])
    m = CategoricalHMM([1.0, 0.0], A, [[1.0, 0.0], [0.0, 1.0]])
    other = CategoricalHMM([1.0, 0.0], [[0.0, 1.0], [0.0, 1.0]], m.emission)
    L = log_hmm_kernel([m, other], rho=1.7, horizon=1)
    np.testing.assert_allclose(L[0, 1], -1.7 * 250 * np.log(10), rtol=1e-12)
    tables = [[1.0, 1e-250], [1e-250, 1.0]]
    P = [CategoricalHMM([1.0], [[1.0]], [row]) for row in tables]
    L = log_hmm_kernel(P, rho=1.7, horizon=4)
    np.testing.assert_allclose(
        L[0, 1], 5 * (np.log(2) - 1.7 * 250 * np.log(10)), rtol=1e-12
    )


def test_a_path_that_is_lost_for_long_and_wins_in_the_end():
    # 0 stays in 0 at 2e-10 a step, or goes through 34 states at 2e-30 each to one at 1:
    # no entry is small, yet that path is 1e-660 times as likely on the way
    S, near, far = 36, 1e-10, 1e-30
    A = np.eye(S, k=1)
    A[0, :2], A[-1, -1] = 0.5, 1.0
    E = np.zeros((S, 5))
    E[0, :2], E[1:-1, 2:4], E[-1, 4] = (near, 1 - near), (far, 1 - far), 1.0
    p = CategoricalHMM(np.eye(S)[0], A, E)
    q = CategoricalHMM(p.start, A, E[:, [1, 0, 3, 2, 4]])
    every = log_hmm_kernel([p], [q], rho=1.0, horizon=200, every=True)[:, 0, 0]
    np.testing.assert_allclose(every, in_logs(p, q, 1.0, 200), rtol=1e-12)
    assert every[200] > 200 * np.log(0.5 * near)


def test_usual_left_to_right_models_need_no_logs(rng, monkeypatch):
    P = [left_to_right(rng, 10, 4) for _ in range(20)]
    P += [CategoricalHMM([1.0], [[1.0]], [[1.0, 0.0, 0.0, 0.0]])]
    P += [CategoricalHMM([1.0], [[1.0]], [[0.0, 1.0, 0.0, 0.0]])]

    def refuse(*args):
        raise AssertionError(f"{len(args[3])} pairs go to logs")

    monkeypatch.setattr(chain_pairs, "hmm_kernel_in_logs", refuse)
    L = log_hmm_kernel(P, rho=0.5, horizon=60)
    assert np.isneginf(L[-1, -2])
    assert np.isfinite(L[:20, :20]).all()


def test_pairs_in_logs_have_the_same_bits_for_any_number_of_threads(rng):
    P = [left_to_right(rng, 4, 3, 250.0) for _ in range(30)]
    one, four = (log_hmm_kernel(P, rho=1.0, horizon=40, n_jobs=k) for k in (1, 4))
    np.testing.assert_array_equal(one, four)
