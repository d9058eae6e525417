"""Kernels between Bayes nets and Markov random fields."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models.factor_cases import (
    hmm_as_net,
    log_factors,
    random_field,
    random_net,
    random_parents,
)
from models.sequence_cases import random_hmm
from oracles import factors as brute
from oracles.sequence_models import log_markov
from refusals import refused

from maxent.families import Bernoulli, Categorical
from maxent.kernels import bayes_net_kernel, product_kernel
from maxent.kernels.pairs._hmm import log_hmm_kernel
from maxent.models import BayesNet, MarkovChain, MarkovRandomField
from maxent.models.networks import _elimination

RHO = (0.25, 0.5, 0.8, 1.0, 1.7)
SHOWN = {"x": 2, "y": 3, "z": 2}


def random_models(rng, n, hidden=(("h", 2), ("g", 3)), zeros=False):
    """Nets and fields over the same observed nodes, hidden ones of their own."""
    out = []
    for k in range(n):
        own = dict(hidden[: int(rng.integers(0, len(hidden) + 1))])
        order = [str(name) for name in rng.permutation(list(SHOWN))]
        if k % 3 == 2:
            out.append(random_field(rng, SHOWN | own, order, forbid=0.1 * zeros))
        else:
            out.append(random_net(rng, SHOWN | own, order, zeros=zeros))
    return out


def expected_kernel(p, q, rho):
    left, right = log_factors(p), log_factors(q)
    own = brute.log_partition(left) + brute.log_partition(right)
    return brute.log_kernel(left, right, list(SHOWN), rho) - rho * own


def gram(P, Q, function):
    return np.array([[function(p, q) for q in Q] for p in P])


@settings(max_examples=12)
@given(st.integers(0, 2**32 - 1), st.sampled_from(RHO), st.booleans())
def test_kernel_by_enumeration(number, rho, zeros):
    rng = np.random.default_rng(number)
    P = random_models(rng, 4, zeros=zeros)
    P = [p for p in P if np.isfinite(p._log_normalizer())] if not zeros else P[:2]
    L = bayes_net_kernel(P, rho=rho, log=True)
    expected = gram(P, P, lambda p, q: expected_kernel(p, q, rho))
    np.testing.assert_allclose(L, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("rho", RHO)
def test_without_hidden_nodes_it_is_the_exact_kernel(rho, rng):
    P = random_models(rng, 4, hidden=())
    L = bayes_net_kernel(P, rho=rho, log=True)

    def exact(p, q):
        left, right = log_factors(p), log_factors(q)
        own = brute.log_partition(left) + brute.log_partition(right)
        return brute.exact_kernel(left, right, list(SHOWN), rho) - rho * own

    np.testing.assert_allclose(L, gram(P, P, exact), atol=1e-11)
    if rho == 0.5:
        np.testing.assert_allclose(np.diagonal(L), 0.0, atol=1e-13)


def test_with_hidden_nodes_it_is_exact_at_rho_1_and_ordered_elsewhere(rng):
    P = random_models(rng, 6)
    observed = np.array(list(np.ndindex(*SHOWN.values())))
    logs = np.array(
        [
            p.log_prob(observed[:, [list(SHOWN).index(name) for name in p.observed]])
            for p in P
        ]
    )
    for rho in RHO:
        exact = np.exp(rho * logs) @ np.exp(rho * logs).T
        found = bayes_net_kernel(P, rho=rho)
        if rho == 1.0:
            np.testing.assert_allclose(found, exact, rtol=1e-11)
        assert (np.sign(1.0 - rho) * (found / exact - 1.0) > -1e-11).all()


def test_rectangular_and_square_kernels_agree_in_any_order(rng):
    same = random_net(rng, SHOWN | {"h": 2}, list(SHOWN))
    P = random_models(rng, 7)
    P += [
        random_net(rng, SHOWN | {"h": 2}, list(SHOWN), same.parents) for _ in range(9)
    ]
    P = [P[k] for k in rng.permutation(len(P))]
    for normalize in (False, True):
        whole = bayes_net_kernel(P, log=True, normalize=normalize)
        np.testing.assert_array_equal(whole, whole.T)
        part = bayes_net_kernel(P[:5], P[3:], log=True, normalize=normalize)
        np.testing.assert_allclose(part, whole[:5, 3:], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(np.diagonal(whole), 0.0)
    assert (whole <= 1e-12).all()


def test_tiles_change_nothing(rng, monkeypatch):
    net = random_net(rng, SHOWN | {"h": 3}, list(SHOWN))
    P = [
        random_net(rng, net.n_categories, net.observed, net.parents) for _ in range(23)
    ]
    whole = bayes_net_kernel(P, log=True)
    other = bayes_net_kernel(P[:10], P[10:], log=True, normalize=True)
    for entries in (1, 200, 1000):
        monkeypatch.setattr(_elimination, "CACHE", entries)
        monkeypatch.setattr(_elimination, "_VECTOR", 1 + entries // 300)
        monkeypatch.setattr(_elimination, "_MOST_KEPT", 2 * entries)
        again = bayes_net_kernel(P, log=True)
        np.testing.assert_allclose(again, whole, rtol=1e-13, atol=1e-13)
        again = bayes_net_kernel(P[:10], P[10:], log=True, normalize=True)
        np.testing.assert_allclose(again, other, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("rho", (0.5, 1.0, 1.7))
def test_gram_is_positive_semidefinite(rho, rng):
    P = random_models(rng, 30)
    K = bayes_net_kernel(P, rho=rho, normalize=True)
    assert np.linalg.eigvalsh(K)[0] >= -1e-12 * len(K)


# -- reductions ------------------------------------------------------------------------
@pytest.mark.parametrize("rho", RHO)
def test_chains_of_hidden_nodes_have_the_kernel_of_hidden_markov_models(rho, rng):
    H = [
        random_hmm(rng, S, 3, sparse) for S, sparse in ((2, 0), (3, 0), (2, 0), (3, 1))
    ]
    nets = [hmm_as_net(m, 6) for m in H]
    L = bayes_net_kernel(nets, rho=rho, log=True)
    np.testing.assert_allclose(
        L, log_hmm_kernel(H, rho=rho, horizon=5), rtol=1e-11, atol=1e-11
    )


def test_chains_have_the_kernel_of_markov_chains(rng):
    def chain():
        start, rows = rng.dirichlet(np.ones(2)), rng.dirichlet(np.ones(2), size=2)
        factors = [("x0", start)]
        factors += [((f"x{t}", f"x{t + 1}"), rows) for t in range(4)]
        return BayesNet(factors), MarkovChain(start, rows)

    (p, one), (q, two) = chain(), chain()
    expected = -np.inf
    for x in np.ndindex(*[2] * 5):
        logs = [log_markov(m.start, m.transition, 1, x) for m in (one, two)]
        expected = np.logaddexp(expected, 0.8 * sum(logs))
    found = bayes_net_kernel([p], [q], rho=0.8, log=True)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_nodes_without_edges_have_the_kernel_of_bernoulli_vectors(rng):
    g = rng.uniform(size=(5, 8))
    nets = [BayesNet([(f"x{k}", [1 - p, p]) for k, p in enumerate(row)]) for row in g]
    L = bayes_net_kernel(nets, rho=0.7, log=True)
    single = Bernoulli(g).log_affinity(Bernoulli(g), 0.7)
    np.testing.assert_allclose(L, np.einsum("ikjk->ij", single), atol=1e-12)


def test_a_hidden_root_has_the_kernel_of_mixtures(rng):
    """sum_{h, h'} (w_h w'_h')^rho prod_i psi_i(h, h')."""

    def star(S):
        w = rng.dirichlet(np.ones(S))
        leaves = [rng.dirichlet(np.ones(3), size=S) for _ in range(4)]
        factors = [("h", w), *((("h", f"x{i}"), t) for i, t in enumerate(leaves))]
        return BayesNet(factors, [f"x{i}" for i in range(4)]), w, leaves

    (p, w, left), (q, u, right) = star(2), star(3)
    psi = sum(
        Categorical(s).log_affinity(Categorical(t), 0.6) for s, t in zip(left, right)
    )
    expected = np.log((w**0.6) @ np.exp(psi) @ (u**0.6))
    found = bayes_net_kernel([p], [q], rho=0.6, log=True)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_two_loops_of_spins_by_enumeration(rng):
    def loop():
        tables = {
            (f"s{k}", f"s{(k + 1) % 5}"): rng.normal(size=(2, 2)) for k in range(5)
        }
        nodes = {f"s{k}": np.zeros(2) for k in range(5)}
        return MarkovRandomField.pairwise(nodes, tables, ["s0", "s1", "s2"])

    p, q = loop(), loop()
    left, right = log_factors(p), log_factors(q)
    expected = brute.log_kernel(left, right, p.observed, 0.5)
    expected -= 0.5 * (brute.log_partition(left) + brute.log_partition(right))
    found = bayes_net_kernel([p], [q], log=True)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_disjoint_supports_have_no_overlap():
    one, two = BayesNet([("a", [1.0, 0.0])]), BayesNet([("a", [0.0, 1.0])])
    np.testing.assert_array_equal(bayes_net_kernel([one, two]), np.eye(2))
    np.testing.assert_array_equal(
        bayes_net_kernel([one, two], normalize=True), np.eye(2)
    )


def test_long_chains_and_tiny_probabilities_do_not_underflow(rng):
    rows = np.array([[1.0 - 1e-12, 1e-300], [1e-300, 1.0]])
    rows[0, 0] = 1.0 - rows[0, 1]
    sure = BayesNet(
        [("x0", [1.0, 0.0]), *(((f"x{t}", f"x{t + 1}"), rows) for t in range(300))]
    )
    swap = rows[:, ::-1]
    other = BayesNet(
        [("x0", [1.0, 0.0]), *(((f"x{t}", f"x{t + 1}"), swap) for t in range(300))]
    )
    L = bayes_net_kernel([sure], [other], rho=1.0, log=True)
    # 2 ** 300 paths, every step of probability 1e-300 under one of the models
    np.testing.assert_allclose(L, 300 * (np.log(2.0) - 300 * np.log(10.0)), rtol=1e-12)


def test_names_of_states_and_the_order_of_factors_change_nothing(rng):
    p, q = (random_net(rng, SHOWN | {"h": 3}, list(SHOWN)) for _ in range(2))
    whole = bayes_net_kernel([p, q], rho=0.7, log=True)
    k, factors = rng.permutation(3), []
    for nodes, table in p.factors[::-1]:
        if "h" in nodes:
            table = np.take(table, k, axis=nodes.index("h"))
        factors.append((tuple("g" if n == "h" else n for n in nodes), table))
    other = BayesNet(factors, p.observed[::-1])
    again = bayes_net_kernel([other, q], rho=0.7, log=True)
    np.testing.assert_allclose(again, whole, rtol=1e-12, atol=1e-12)


def test_logarithms_are_convex_in_the_power(rng):
    P = random_models(rng, 5)
    powers = np.linspace(0.2, 2.0, 10)
    L = np.stack([bayes_net_kernel(P, rho=rho, log=True) for rho in powers])
    assert np.diff(L, 2, axis=0).min() >= -1e-11


# -- mean field ------------------------------------------------------------------------
@settings(max_examples=7)
@given(st.integers(0, 2**32 - 1), st.sampled_from((0.5, 1.0, 1.7)), st.booleans())
def test_bounds_are_below_the_kernel(number, rho, zeros):
    rng = np.random.default_rng(number)
    P = [*random_models(rng, 2), random_field(rng, SHOWN | {"g": 2}, list(SHOWN))]
    P += [random_net(rng, SHOWN | {"h": 2}, list(SHOWN), zeros=zeros)]
    exact = bayes_net_kernel(P, rho=rho, log=True)
    for clusters in (None, [["h", "x"], ["y", "z"]], [["x", "y", "z", "h", "g"]]):
        bound = bayes_net_kernel(
            P, rho=rho, log=True, method="meanfield", clusters=clusters, random_state=0
        )
        np.testing.assert_array_equal(bound, bound.T)
        slack = np.where(np.isfinite(exact), 1e-10 * np.abs(exact), 0.0) + 1e-10
        assert (bound <= exact + slack).all()
    if not zeros:  # one cluster is everything
        np.testing.assert_allclose(bound, exact, atol=1e-9)


def test_auto_takes_bounds_only_where_elimination_is_refused(rng):
    P = random_models(rng, 5, hidden=(("h", 2),))
    exact = bayes_net_kernel(P, log=True)
    np.testing.assert_array_equal(bayes_net_kernel(P, log=True, method="exact"), exact)
    most = 24  # of two fields with three joint nodes
    bound = bayes_net_kernel(P, log=True, max_table=most)
    assert (bound <= exact + 1e-10).all()


def test_normalized_bounds_of_new_models(rng):
    net = random_net(rng, SHOWN | {"h": 2}, list(SHOWN))
    P = [random_net(rng, net.n_categories, net.observed, net.parents) for _ in range(4)]
    options = {"method": "meanfield", "n_init": 8, "log": True}
    whole = bayes_net_kernel(P, normalize=True, **options)
    part = bayes_net_kernel(P[:2], P, normalize=True, **options)
    # bounds of several starts, which need not end at the same maximum
    assert np.abs(part - whole[:2]).max() < 0.5
    # a bound depends on its pair only
    turned = bayes_net_kernel(P[1::-1], P[::-1], normalize=True, **options)
    np.testing.assert_allclose(turned[::-1, ::-1], part, atol=1e-8)
    one = bayes_net_kernel(P[1:2], P[2:3], normalize=True, **options)
    np.testing.assert_allclose(one, part[1:2, 2:3], atol=1e-8)


# -- refusals --------------------------------------------------------------------------
A = BayesNet([("a", [0.5, 0.5])])


def dense(rng, n):
    names = {f"x{k}": np.zeros(2) for k in range(n)}
    pairs = {
        (f"x{i}", f"x{j}"): rng.normal(size=(2, 2))
        for i in range(n)
        for j in range(i + 1, n)
    }
    return MarkovRandomField.pairwise(names, pairs)


@pytest.mark.parametrize(
    "P, options, match",
    [
        ([A, BayesNet([("b", [0.5, 0.5])])], {}, r"P\[1\] has observed_sizes={'b': 2}"),
        (
            [A, BayesNet([("a", [0.2, 0.3, 0.5])])],
            {},
            r"{'a': 3}, the first .*{'a': 2}",
        ),
        ([], {}, "has no model"),
        (A, {}, "single FactorModel|pass a list"),
        ([A, MarkovChain([0.5, 0.5], np.eye(2))], {}, r"P\[1\]=MarkovChain"),
        ([A], {"rho": 0.0}, "rho=0.0"),
        ([A], {"rho": np.inf}, "rho=inf"),
        ([A], {"method": "loopy"}, "method='loopy'"),
        ([A], {"max_table": 0}, "max_table=0"),
        ([A], {"n_init": 0}, "n_init=0"),
        ([A], {"Q": [BayesNet([("b", [1.0])])]}, r"Q\[0\] has observed_sizes"),
        ([A], {"clusters": [["q"]], "method": "meanfield"}, "'q', which is no node"),
    ],
)
def test_wrong_arguments_are_refused(P, options, match):
    refused(lambda: bayes_net_kernel(P, **options), match)


def test_tables_above_the_limit_are_refused_before_any_kernel(rng):
    names = {f"x{k}": np.zeros(2) for k in range(12)}
    orders = [[f"x{step * k % 12}" for k in range(12)] for step in (1, 5)]
    chains = [
        MarkovRandomField.pairwise(
            names, {pair: rng.normal(size=(2, 2)) for pair in pairwise(order)}
        )
        for order in orders
    ]
    refused(
        lambda: bayes_net_kernel(chains, method="exact", max_table=8),
        r"two models need a table over \d variables \(width \d or more\).* bytes.* "
        "Use method='meanfield'",
    )
    exact = bayes_net_kernel(chains, log=True)
    mixed = bayes_net_kernel(chains, max_table=8, log=True)
    np.testing.assert_array_equal(np.diagonal(mixed), np.diagonal(exact))
    assert mixed[0, 1] < exact[0, 1]
    wide = dense(rng, 10)
    refused(
        lambda: bayes_net_kernel([wide], max_table=2**9, method="meanfield"),
        r"P\[0\] needs its exact partition function.*width 9 or more.*larger max_table",
    )
    assert bayes_net_kernel([wide], max_table=2**10).shape == (1, 1)


def test_structures_of_many_kinds(rng):
    """Every pair of structures has an order of its own."""
    P = [
        random_net(rng, SHOWN, list(SHOWN), random_parents(rng, list(SHOWN), 2))
        for _ in range(8)
    ]
    L = bayes_net_kernel(P, log=True)
    expected = gram(P, P, lambda p, q: expected_kernel(p, q, 0.5))
    np.testing.assert_allclose(L, expected, atol=1e-12)


def test_product_kernel_takes_nets_and_fields(rng):
    P = random_models(rng, 6)
    for rho in (0.5, 1.7):
        for method in ("auto", "exact"):
            np.testing.assert_array_equal(
                product_kernel(P, rho=rho, method=method, log=True),
                bayes_net_kernel(P, rho=rho, log=True),
            )
        part = product_kernel(P[:2], P, rho=rho, normalize=True)
        whole = bayes_net_kernel(P, rho=rho, normalize=True)
        np.testing.assert_allclose(part, whole[:2], rtol=1e-11)
    bounds = product_kernel(P, rho=0.5, method="meanfield", log=True)
    exact = product_kernel(P, rho=[0.5, 1.0], log=True)
    assert exact.shape == (6, 6, 2)
    assert (bounds <= exact[..., 0] + 1e-11).all()
    assert np.isfinite(bounds).all()


def test_product_kernel_of_nets_by_a_shared_sample(rng):
    P = [random_net(rng, SHOWN | {"h": 2}, [*SHOWN, "h"]) for _ in range(3)]
    P = [BayesNet(p.factors, observed=list(SHOWN)) for p in P]
    n = 20000
    K = product_kernel(P, rho=0.5, method="shared_sample", n_samples=n)
    X = np.array(list(np.ndindex(*SHOWN.values())))
    half = np.exp(0.5 * np.array([p.log_prob(X) for p in P]))
    # terms (p q)^{1/2} / g are at most 3/2 < 3: six standard errors and more
    assert np.abs(K - half @ half.T).max() < 6 * 3 / np.sqrt(n)
    other = BayesNet(P[0].factors, observed=["z", "y", "x"])
    refused(
        lambda: product_kernel([P[0], other], method="shared_sample"),
        r"P\[1\] has the columns \['z', 'y', 'x'\].*observed=",
    )
    assert product_kernel([P[0], other], rho=1.0).shape == (2, 2)
