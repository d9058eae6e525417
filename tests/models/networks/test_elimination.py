"""Variable elimination against enumeration of all states."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models.factor_cases import random_field
from oracles import factors as brute

from maxent.models.networks._elimination import Elimination, TooLargeError, _min_fill

SIZES = {"a": 2, "b": 3, "c": 2, "d": 1, "e": 2}


def arrays(model):
    """Scopes, sizes, and tables with an empty batch."""
    scopes, tables = model._sorted
    sizes = tuple(model.n_categories.values())
    return scopes, sizes, [t[..., None, None] for t in tables]


@settings(max_examples=40)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1.0, 200.0]),
    st.sampled_from([0.0, 0.3]),
)
def test_sums_and_beliefs_by_enumeration(number, scale, forbid):
    rng = np.random.default_rng(number)
    model = random_field(rng, SIZES, scale=scale, forbid=forbid)
    scopes, sizes, tables = arrays(model)
    plan = Elimination(scopes, sizes)
    expected = brute.log_partition(model.log_factors)
    total, beliefs = plan.beliefs(tables)
    np.testing.assert_allclose(total[0, 0], expected, rtol=1e-12, atol=1e-12)
    assert plan.log_sum(tables)[0, 0] == total[0, 0]
    for scope, belief in zip(scopes, beliefs):
        names = [model.nodes[u] for u in scope]
        log_p = brute.table(model.log_factors, names)
        possible = expected > -np.inf
        share = np.exp(log_p - expected) if possible else np.zeros(log_p.shape)
        np.testing.assert_allclose(belief[..., 0, 0], share, atol=1e-11)


def test_kept_variables_and_their_order(rng):
    model = random_field(rng, SIZES)
    scopes, sizes, tables = arrays(model)
    keep = [model.nodes.index(name) for name in ("e", "b")]
    found = Elimination(scopes, sizes, keep).log_sum(tables)[..., 0, 0]
    names = [model.nodes[u] for u in sorted(keep)]
    expected = brute.table(model.log_factors, names)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_every_pair_of_a_batch_is_what_it_is_alone(rng):
    model = random_field(rng, SIZES)
    scopes, sizes, tables = arrays(model)
    plan = Elimination(scopes, sizes)
    shapes = [(4, 1), (1, 3), (4, 3), (1, 1)]
    batch = [
        t + rng.normal(size=(*t.shape[:-2], *shapes[k % 4]))
        for k, t in enumerate(tables)
    ]
    whole = plan.log_sum(batch)
    weight = rng.uniform(0.5, 2.0, size=(4, 3))
    total, beliefs = plan.beliefs(batch, weight)
    np.testing.assert_array_equal(total, whole)
    sums = [np.zeros(t.shape) for t in batch]
    for i in range(4):
        for j in range(3):
            at = [(i % t.shape[-2], j % t.shape[-1]) for t in batch]
            one = [t[..., a, b][..., None, None] for t, (a, b) in zip(batch, at)]
            alone, own = plan.beliefs(one)
            np.testing.assert_allclose(alone[0, 0], whole[i, j], rtol=1e-13)
            for f, (a, b) in enumerate(at):
                sums[f][..., a, b] += weight[i, j] * own[f][..., 0, 0]
    for found, expected in zip(beliefs, sums):
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_chain_has_width_one_and_a_cycle_two():
    chain = [(k, k + 1) for k in range(9)]
    sizes = [3] * 10
    assert Elimination(chain, sizes).width == 1
    assert Elimination([*chain, (0, 9)], sizes).width == 2
    assert Elimination([*chain, (0, 9)], sizes).largest == 27
    star = [(0, k) for k in range(1, 10)]
    assert Elimination(star, sizes).width == 1
    # a grid of 4 x 6 spins: the width is its shorter side
    grid = [(6 * i + j, 6 * i + j + 1) for i in range(4) for j in range(5)]
    grid += [(6 * i + j, 6 * i + 6 + j) for i in range(3) for j in range(6)]
    assert Elimination(grid, [2] * 24).width == 4


def fewest_new_edges(near, sizes):
    """Variables in greedy order, with their neighbours, by looking at every pair."""

    def rank(u):
        missing = [p for p in combinations(near[u], 2) if p[1] not in near[p[0]]]
        return len(missing), math.prod(sizes[a] for a in near[u]), u

    while near:
        v = min(near, key=rank)
        yield v, tuple(sorted({v, *near[v]}))
        for a in near[v]:
            near[a] = (near[a] | near[v]) - {a, v}
        del near[v]


def test_variables_go_in_the_order_that_adds_the_fewest_edges(rng):
    n = 9
    for _ in range(20):
        sizes = rng.integers(2, 5, size=n).tolist()
        edges = [e for e in combinations(range(n), 2) if rng.random() < 0.4]
        scopes = [*edges, *((u,) for u in range(n))]
        near = {u: {a for e in edges if u in e for a in e} - {u} for u in range(n)}
        expected = list(fewest_new_edges(near, sizes))
        assert list(_min_fill(scopes, sizes, keep=())) == expected


def test_a_table_above_the_limit_is_refused_with_its_width():
    dense = [(i, j) for i in range(40) for j in range(i + 1, 40)]
    with pytest.raises(TooLargeError, match=r"40 variables \(width 39 or more\)"):
        Elimination(dense, [2] * 40)
    small = [(i, j) for i in range(6) for j in range(i + 1, 6)]
    assert Elimination(small, [2] * 6, max_table=64).largest == 64
    with pytest.raises(TooLargeError, match=r"64 entries, 512 bytes; max_table=63"):
        Elimination(small, [2] * 6, max_table=63)


def test_ranges_beyond_doubles_are_summed_in_logarithms():
    # the two paths 0101010 and 1010101 have three steps of probability 1e-250 each
    low = -250 * np.log(10)
    step = np.array([[-np.inf, low], [0.0, -np.inf]])
    scopes = [(k, k + 1) for k in range(6)]
    tables = [step[..., None, None]] * 6
    found = Elimination(scopes, [2] * 7).log_sum(tables)[0, 0]
    np.testing.assert_allclose(found, 3 * low + np.log(2), rtol=1e-14)


def test_draws_have_the_right_frequencies(rng):
    model = random_field(rng, {"a": 2, "b": 3, "c": 2})
    scopes, sizes, tables = arrays(model)
    n = 20000
    drawn = Elimination(scopes, sizes).draw(tables, n, rng)
    at = tuple(drawn[u] for u in range(3))
    counts = np.zeros(sizes)
    np.add.at(counts, at, 1.0)
    log_p = brute.table(model.log_factors, model.nodes)
    p = np.exp(log_p - brute.log_partition(model.log_factors))
    error = (counts / n - p) / np.sqrt(p * (1 - p) / n + 1e-12)
    assert np.abs(error).max() < 5.5
