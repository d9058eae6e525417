"""product_kernel over every kind of model, against sums and integrals of densities."""

import numpy as np
import pytest
from families.family_cases import MAKERS
from models.sequence_cases import random_gaussian_hmm, random_hmm
from models.state_space_cases import random_lds
from oracles.product_kernels import (
    all_sequences,
    geometric_hmm_kernel,
    log_markov_kernel,
    log_mixture,
    log_observed_kernel,
)
from oracles.state_space import lds_log_kernel
from scipy import stats

from maxent.families import (
    Bernoulli,
    Categorical,
    Gaussian,
    Multinomial,
    Poisson,
)
from maxent.kernels import (
    factorial_hmm_kernel,
    hellinger_distance,
    linear_gaussian_kernel,
    product_kernel,
    switching_lds_kernel,
)
from maxent.models import (
    CategoricalHMM,
    FactorialHMM,
    GaussianHMM,
    LinearGaussianNetwork,
    MarkovChain,
    Mixture,
    SwitchingLDS,
)

RHO = (0.25, 0.5, 0.8, 1.0, 1.7)


def random_markov(rng, order, n_symbols=2, sparse=False):
    n = n_symbols**order
    A = rng.dirichlet(np.ones(n_symbols), size=n)
    if sparse:
        A[rng.random(A.shape) < 0.3] = 0.0
        A[A.sum(axis=1) == 0, 0] = 1.0
        A /= A.sum(axis=1, keepdims=True)
    return MarkovChain(rng.dirichlet(np.ones(n)), A, order)


def random_mixture(rng, k, family="gaussian"):
    return Mixture(rng.dirichlet(np.ones(k)), MAKERS[family](rng, (k,)))


def random_switching(rng, regimes, n=2, d=2):
    parts = [random_lds(rng, n, d) for _ in range(regimes)]
    return SwitchingLDS(
        rng.dirichlet(np.ones(regimes)),
        rng.dirichlet(np.ones(regimes), size=regimes),
        np.stack([p.transition for p in parts]),
        np.stack([p.transition_cov for p in parts]),
        parts[0].observation,
        parts[0].observation_cov,
        parts[0].initial_mean,
        parts[0].initial_cov,
    )


def random_factorial(rng, sizes, d=2):
    return FactorialHMM(
        [rng.dirichlet(np.ones(s)) for s in sizes],
        [rng.dirichlet(np.ones(s), size=s) for s in sizes],
        [rng.normal(size=(s, d)) for s in sizes],
        np.eye(d),
    )


def random_network(rng, hidden=True):
    order = ["h", "a", "b"] if hidden else ["a", "b"]
    edges = {("b", "a"): rng.normal()}
    if hidden:
        edges |= {("a", "h"): rng.normal(), ("b", "h"): rng.normal()}
    return LinearGaussianNetwork(
        order,
        edges,
        {"a": rng.normal(), "b": rng.normal()},
        covs=float(rng.uniform(0.5, 2.0)),
        observed=["a", "b"],
    )


# name -> list of models, horizon
LISTS = {
    "gaussian": lambda rng: (MAKERS["gaussian"](rng, (6,)), None),
    "poisson": lambda rng: (MAKERS["poisson"](rng, (6,)), None),
    "bernoulli vectors": lambda rng: (Bernoulli(rng.random((6, 5))), None),
    "mixture": lambda rng: ([random_mixture(rng, k) for k in (1, 3, 2, 4)], None),
    "markov": lambda rng: ([random_markov(rng, m) for m in (0, 1, 2, 1)], 4),
    "hmm": lambda rng: ([random_hmm(rng, s, 3) for s in (1, 2, 4, 2)], 4),
    "gaussian hmm": lambda rng: (
        [random_gaussian_hmm(rng, s, 2) for s in (1, 2, 3, 2)],
        3,
    ),
    "network": lambda rng: ([random_network(rng, h) for h in (0, 1, 1, 0)], None),
    "lds": lambda rng: ([random_lds(rng, n, 2) for n in (1, 2, 3, 2)], 5),
    "switching": lambda rng: ([random_switching(rng, k) for k in (1, 2, 3, 2)], 3),
    "factorial": lambda rng: (
        [random_factorial(rng, s) for s in ((2,), (2, 2), (3, 2), (2,))],
        3,
    ),
}


# -- every kind ------------------------------------------------------------------------
@pytest.mark.parametrize("rho", (0.5, 0.8, 1.0))
@pytest.mark.parametrize("name", LISTS)
def test_gram_is_symmetric_positive_and_agrees_with_its_blocks(name, rho, rng):
    P, T = LISTS[name](rng)
    K = product_kernel(P, rho=rho, horizon=T, normalize=True)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(np.diagonal(K), 1.0)
    assert K.min() >= 0 and K.max() <= 1 + 1e-12
    assert np.linalg.eigvalsh(K)[0] >= -1e-12 * len(K)
    L = product_kernel(P, rho=rho, horizon=T, log=True)
    np.testing.assert_allclose(
        np.log(K), L - 0.5 * (np.diag(L)[:, None] + np.diag(L)), atol=1e-9
    )
    block = product_kernel(P[:2], P[1:], rho=rho, horizon=T, normalize=True)
    np.testing.assert_allclose(block, K[:2, 1:], rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("name", LISTS)
def test_grids_of_powers_and_horizons_are_the_single_calls(name, rng):
    P, T = LISTS[name](rng)
    powers = [0.5, 1.0]
    horizons = None if T is None else [0, 1, T]
    grid = product_kernel(P, rho=powers, horizon=horizons, log=True)
    assert grid.shape == (len(P), len(P)) + (() if T is None else (3,)) + (2,)
    for k, rho in enumerate(powers):
        for h, T in enumerate(horizons or [None]):
            one = product_kernel(P, rho=rho, horizon=T, log=True)
            found = grid[..., k] if T is None else grid[:, :, h, k]
            np.testing.assert_allclose(found, one, rtol=1e-11, atol=1e-11)
    np.testing.assert_array_equal(grid, grid.swapaxes(0, 1))
    turned = product_kernel(P, P[::-1], rho=powers, horizon=horizons, log=True)
    np.testing.assert_allclose(turned, grid[:, ::-1], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("rho", RHO)
def test_log_kernel_is_convex_in_the_power(rho, rng):
    for name in ("gaussian", "mixture", "hmm", "lds"):
        P, T = LISTS[name](rng)
        L = product_kernel(P, rho=[0.9 * rho, rho, 1.1 * rho], horizon=T, log=True)
        assert (L[..., 1] <= 0.5 * (L[..., 0] + L[..., 2]) + 1e-9).all(), name


# -- families --------------------------------------------------------------------------
@pytest.mark.parametrize("name", sorted(MAKERS))
def test_families_take_their_affinities(name, rng):
    P, Q = MAKERS[name](rng, (5,)), MAKERS[name](rng, (3,))
    np.testing.assert_allclose(
        product_kernel(P, Q, log=True), P.log_affinity(Q, 0.5), rtol=1e-12
    )
    as_list = product_kernel([p for p in P], [q for q in Q])
    np.testing.assert_allclose(as_list, product_kernel(P, Q), rtol=1e-12)
    np.testing.assert_allclose(np.diagonal(product_kernel(P)), 1.0, rtol=1e-9)


@pytest.mark.parametrize("rho", RHO)
def test_independent_coordinates_by_summation(rho, rng):
    prob = rng.random((3, 4))
    prob[0, 0] = 1.0
    bits = np.array(all_sequences(2, 4))
    weight = np.prod(
        np.where(bits[None] == 1, prob[:, None], 1 - prob[:, None]), axis=-1
    )
    expected = (weight**rho) @ (weight**rho).T
    found = product_kernel(Bernoulli(prob), rho=rho)
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    rate = rng.uniform(0.1, 3.0, size=(2, 2))
    x = np.arange(80)
    one = stats.poisson.pmf(x[:, None, None], rate) ** rho
    expected = np.prod(np.einsum("xid,xjd->ijd", one, one), axis=-1)
    np.testing.assert_allclose(
        product_kernel(Poisson(rate), rho=rho), expected, rtol=1e-10
    )


# -- mixtures --------------------------------------------------------------------------
@pytest.mark.parametrize("rho", RHO)
def test_mixtures_by_quadrature_and_by_summation(rho, rng):
    x, step = np.linspace(-40, 40, 16001, retstep=True)
    for law, points, log_step in (
        ("gaussian", x, np.log(step)),
        ("poisson", np.arange(200), 0.0),
    ):
        P = []
        for k in (1, 2, 3):
            w = rng.dirichlet(np.ones(k))
            if k == 3:
                w = np.array([0.4, 0.0, 0.6])
            if law == "gaussian":
                own = Gaussian(rng.normal(size=(k, 1)), rng.uniform(0.5, 2, (k, 1, 1)))
            else:
                own = Poisson(rng.uniform(0.5, 9.0, size=k))
            P.append(Mixture(w, own))
        found = product_kernel(P, rho=rho, log=True)
        at = points[:, None] if law == "gaussian" else points
        for i, p in enumerate(P):
            for j, q in enumerate(P):
                with np.errstate(divide="ignore"):
                    expected = log_mixture(
                        np.log(p.weights),
                        p.components.log_prob(at),
                        np.log(q.weights),
                        q.components.log_prob(at),
                        rho,
                        log_step,
                    )
                assert abs(found[i, j] - expected) < 1e-9


def test_mixtures_of_many_components_are_summed_in_parts(rng, monkeypatch):
    from maxent.kernels.pairs import _family_routes

    P = [random_mixture(rng, int(k)) for k in rng.integers(1, 6, size=9)]
    whole = product_kernel(P, log=True)
    monkeypatch.setattr(_family_routes, "_MOST_PAIRS", 40)
    np.testing.assert_allclose(product_kernel(P, log=True), whole, rtol=1e-13)


def test_a_split_of_every_component_alike_changes_no_normalised_kernel(rng):
    P = [random_mixture(rng, k) for k in (1, 2, 3)]
    twice = [
        Mixture(np.repeat(p.weights, 2) / 2, p.components[np.repeat(range(k), 2)])
        for k, p in zip((1, 2, 3), P)
    ]
    for rho in (0.5, 0.8, 1.0):
        one, two = (product_kernel(X, rho=rho, log=True) for X in (P, twice))
        np.testing.assert_allclose(two - one, 2 * (1 - rho) * np.log(2), atol=1e-12)


# -- chains ----------------------------------------------------------------------------
@pytest.mark.parametrize("rho", RHO)
def test_markov_chains_by_enumeration(rho, rng):
    P = [random_markov(rng, m, sparse=m == 1) for m in (0, 1, 2, 3)]
    found = product_kernel(P, rho=rho, horizon=range(5), log=True)
    for i, p in enumerate(P):
        for j, q in enumerate(P):
            for T in range(5):
                expected = log_markov_kernel(
                    (p.start, p.transition, p.order),
                    (q.start, q.transition, q.order),
                    rho,
                    T,
                )
                assert found[i, j, T] == pytest.approx(expected, rel=1e-11, abs=1e-11)


def test_markov_chains_in_logs_where_probabilities_underflow():
    tiny = 1e-180
    p = MarkovChain([1.0, 0.0], [[1 - tiny, tiny], [0.0, 1.0]])
    q = MarkovChain([0.0, 1.0], [[1.0, 0.0], [tiny, 1 - tiny]])
    r = MarkovChain([1.0, 0.0], [[0.0, 1.0], [0.0, 1.0]])
    L = product_kernel([p, r], rho=1.0, horizon=9, log=True)
    assert L[0, 1] == pytest.approx(np.log(tiny), rel=1e-12)
    assert product_kernel([p], [q], rho=1.0, horizon=9, log=True)[0, 0] == -np.inf
    s = MarkovChain([1.0, 0.0], [[1.0, 0.0], [0.0, 1.0]])
    dim = MarkovChain([0.5, 0.5], [[0.5, 0.5]] * 2)
    L = product_kernel([s], [dim], rho=1.0, horizon=3000, log=True)
    assert L[0, 0] == pytest.approx(3001 * np.log(0.5), rel=1e-12)
    # a path that fades away is the only one in the end
    fading = MarkovChain([0.5, 0.5], [[1e-30, 1 - 1e-30], [0.5, 0.5]])
    only = MarkovChain([1.0, 0.0], [[1.0, 0.0], [0.0, 1.0]])
    L = product_kernel([fading], [only], rho=1.0, horizon=20, log=True)
    assert L[0, 0] == pytest.approx(np.log(0.5) + 20 * np.log(1e-30), rel=1e-12)


@pytest.mark.parametrize("rho", [0.5, 1.0, 2.0])
def test_powers_below_the_smallest_normal_numbers_keep_their_digits(rho):
    # the only path that both allow has rare first symbols and rare moves
    first, move = 10.0 ** (-72 / rho), 10.0 ** (-88 / rho)
    start = [1.0 - first, first, 0.0]
    p = MarkovChain(start, [[0, 0, 1], [move, 0, 1.0 - move], [1, 0, 0]])
    q = MarkovChain(start, [[0, 1, 0], [move, 1.0 - move, 0], [1, 0, 0]])
    L = product_kernel([p], [q], rho=rho, horizon=1, log=True)
    assert L[0, 0] == pytest.approx(2 * rho * (np.log(first) + np.log(move)), rel=1e-12)


def test_a_chain_that_shows_its_states_is_a_markov_chain(rng):
    P = [random_markov(rng, 1, 3) for _ in range(4)]
    H = [CategoricalHMM(p.start, p.transition, np.eye(3)) for p in P]
    for rho in (0.5, 1.0):
        np.testing.assert_allclose(
            product_kernel(P, rho=rho, horizon=[0, 3, 6]),
            product_kernel(H, rho=rho, horizon=[0, 3, 6]),
            rtol=1e-12,
        )


def test_hidden_chains_of_one_step_are_mixtures(rng):
    H = [random_gaussian_hmm(rng, s, 2) for s in (1, 2, 3)]
    M = [Mixture(h.start, h.emission) for h in H]
    for rho in RHO:
        np.testing.assert_allclose(
            product_kernel(H, rho=rho, horizon=0, log=True),
            product_kernel(M, rho=rho, log=True),
            rtol=1e-11,
            atol=1e-12,
        )


def test_order_of_states_changes_nothing_and_powers_of_the_joint_law_are_ordered(rng):
    P = [random_hmm(rng, 3, 2) for _ in range(3)]
    k = rng.permutation(3)
    moved = [
        CategoricalHMM(p.start[k], p.transition[np.ix_(k, k)], p.emission.prob[k])
        for p in P
    ]
    X = all_sequences(2, 4)
    logs = np.array([p.log_likelihood(X) for p in P])
    for rho in RHO:
        L = product_kernel(P, rho=rho, horizon=3, log=True)
        np.testing.assert_allclose(
            product_kernel(moved, rho=rho, horizon=3, log=True), L, rtol=1e-11
        )
        k_true = [[log_observed_kernel(a, b, rho) for b in logs] for a in logs]
        if rho <= 1:
            assert (np.array(k_true) - 1e-11 <= L).all()
        if rho >= 1:
            assert (np.array(k_true) + 1e-11 >= L).all()


# -- dynamical systems and networks ----------------------------------------------------
@pytest.mark.parametrize("rho", RHO)
def test_linear_systems_by_dense_joint_laws(rho, rng):
    P = [random_lds(rng, n, 2) for n in (1, 2, 3)]
    found = product_kernel(P, rho=rho, horizon=4, log=True)
    exact = [[lds_log_kernel(p, q, 4, rho) for q in P] for p in P]
    np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-9)


def test_the_functions_of_single_models_say_the_same(rng):
    P, T = LISTS["lds"](rng)
    per_step = product_kernel(P, horizon=T, method="per_step", normalize=True)
    assert not np.allclose(per_step, product_kernel(P, horizon=T, normalize=True))
    N, _ = LISTS["network"](rng)
    np.testing.assert_allclose(product_kernel(N), linear_gaussian_kernel(N))
    F, T = LISTS["factorial"](rng)
    np.testing.assert_allclose(
        product_kernel(F, horizon=T, method="exact"), factorial_hmm_kernel(F, horizon=T)
    )
    bound = product_kernel(F, horizon=T, method="collapsed", log=True)
    exact = product_kernel(F, horizon=T, log=True)
    assert (bound <= exact + 1e-9).all()
    S, T = LISTS["switching"](rng)
    np.testing.assert_allclose(
        product_kernel(S, horizon=T, method="exact"),
        switching_lds_kernel(S, horizon=T, n_paths=None),
    )
    drawn = product_kernel(S, horizon=T, n_paths=200, random_state=3)
    np.testing.assert_allclose(
        drawn, product_kernel(S, horizon=T, method="exact"), rtol=0.5
    )


def test_one_chain_and_one_regime_are_the_simpler_models(rng):
    F = [random_factorial(rng, (s,)) for s in (2, 3)]
    H = [
        GaussianHMM(
            f.start[0],
            f.transition[0],
            f.mean[0],
            np.broadcast_to(f.cov, (len(f.mean[0]), 2, 2)),
        )
        for f in F
    ]
    for rho in (0.5, 1.0):
        np.testing.assert_allclose(
            product_kernel(F, rho=rho, horizon=3),
            product_kernel(H, rho=rho, horizon=3),
            rtol=1e-10,
        )
    S = [random_switching(rng, 1) for _ in range(3)]
    L = [s.given_path(np.zeros(4, dtype=int)) for s in S]
    np.testing.assert_allclose(
        product_kernel(S, horizon=4), product_kernel(L, horizon=4), rtol=1e-9
    )


# -- sums over lengths -----------------------------------------------------------------
@pytest.mark.parametrize("rho", (0.8, 1.0))
def test_geometric_horizons_by_one_linear_solve(rho, rng):
    P = [random_hmm(rng, s, 3) for s in (1, 2, 3)]
    found = product_kernel(P, rho=rho, horizon=4, length_law="geometric")
    tables = [(p.start, p.transition, p.emission.prob) for p in P]
    expected = [[geometric_hmm_kernel(p, q, rho, 0.8) for q in tables] for p in tables]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("name", ("hmm", "markov", "lds"))
def test_sums_over_horizons_term_by_term(name, rng):
    P, _ = LISTS[name](rng)
    every = product_kernel(P, rho=1.0, horizon=range(80))
    T = np.arange(80)
    for law, w in (
        ("poisson", stats.poisson.pmf(T, 3)),
        ([0.1, 0.0, 0.7], np.array([0.1, 0.0, 0.7])),
    ):
        expected = every[..., : len(w)] @ w
        found = product_kernel(P, rho=1.0, horizon=3, length_law=law)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        K = product_kernel(P, rho=1.0, horizon=3, length_law=law, normalize=True)
        d = np.sqrt(np.diagonal(expected))
        np.testing.assert_allclose(K, expected / d[:, None] / d, rtol=1e-9)
        block = product_kernel(
            P[:1], P[1:], rho=1.0, horizon=3, length_law=law, normalize=True
        )
        np.testing.assert_allclose(block, K[:1, 1:], rtol=1e-9)


def test_sums_over_many_horizons_in_parts(rng, monkeypatch):
    from maxent.kernels import product

    P = [random_hmm(rng, 2, 3) for _ in range(7)]
    whole = product_kernel(P, horizon=5, length_law="poisson", log=True)
    monkeypatch.setattr(product, "_MOST_NUMBERS", 1000)
    again = product_kernel(P, horizon=5, length_law="poisson", log=True)
    np.testing.assert_allclose(again, whole, atol=1e-12)
    np.testing.assert_array_equal(again, again.T)


def test_totals_of_multinomials(rng):
    a = rng.dirichlet(np.ones(4), size=5)
    b = np.sqrt(a) @ np.sqrt(a).T
    P = Multinomial(a, 3)
    np.testing.assert_allclose(product_kernel(P), b**3, rtol=1e-12)
    np.testing.assert_allclose(
        product_kernel(P, length_law="geometric"), 0.25 / (1 - 0.75 * b), rtol=1e-12
    )
    np.testing.assert_allclose(
        product_kernel(P, length_law="poisson"), np.exp(3 * (b - 1)), rtol=1e-12
    )
    # which is that of independent counts
    np.testing.assert_allclose(
        product_kernel(P, length_law="poisson"),
        product_kernel(Poisson(3 * a)),
        rtol=1e-12,
    )
    np.testing.assert_allclose(
        product_kernel(P, length_law=[0.5, 0.0, 2.0]), 0.5 + 2 * b**2, rtol=1e-12
    )
    one = a @ a.T
    np.testing.assert_allclose(
        product_kernel(P, P[:2], rho=1.0, length_law=[0, 1.0]), one[:, :2], rtol=1e-12
    )


# -- distances -------------------------------------------------------------------------
def test_hellinger_distance(rng):
    a = rng.dirichlet(np.ones(4), size=5)
    expected = np.sqrt(0.5 * np.square(np.sqrt(a)[:, None] - np.sqrt(a)).sum(axis=-1))
    np.testing.assert_allclose(hellinger_distance(Categorical(a)), expected, atol=1e-7)
    assert not np.signbit(hellinger_distance(Categorical(a[:1]))).any()
    for name in LISTS:
        P, T = LISTS[name](rng)
        d = hellinger_distance(P, horizon=T)
        assert (np.diagonal(d) == 0).all() and d.max() <= 1


def test_a_change_of_variable_changes_nothing_at_one_half(rng):
    # log-normal laws are those of exp(x)
    x, step = np.linspace(-30, 30, 20001, retstep=True)
    P = Gaussian(rng.normal(size=(2, 1)), rng.uniform(0.5, 2.0, (2, 1, 1)))
    y = np.exp(x)
    density = np.exp(P.log_prob(x[:, None])) / y
    expected = (np.sqrt(density[0] * density[1]) * y).sum() * step
    assert product_kernel(P)[0, 1] == pytest.approx(expected, rel=1e-10)
