"""Affinities: where they are finite, symmetry, convexity, batches, refusals."""

import math

import numpy as np
import pytest
from families.family_cases import MAKERS, NAMES
from hypothesis import example, given, settings
from hypothesis import strategies as st
from refusals import refused

from maxent.families import (
    Beta,
    Categorical,
    Dirichlet,
    Gamma,
    Gaussian,
    InverseWishart,
    Multinomial,
    NegativeBinomial,
    Poisson,
    Wishart,
)
from maxent.families.discrete import log_sum

every = pytest.mark.parametrize("name", NAMES)


# -- domain ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    "P, low, high",
    [
        (Gamma(0.75, 2.0), 0.0, 2.0),
        (Gamma(1.0, 2.0), 0.0, np.inf),
        (Gamma(0.5, 2.0), 0.0, 1.0),
        (Beta(3.0, 0.75), 0.0, 2.0),
        (Dirichlet([2.0, 0.5, 3.0]), 0.0, 1.0),
        (Wishart(1.5, np.eye(2)), 0.0, 1 / 1.5),
        (Wishart(3.0, np.eye(2)), 0.0, np.inf),
        (InverseWishart(5.0, np.eye(2)), 0.25, np.inf),
        (Gaussian([0.0], [[1.0]]), 0.0, np.inf),
        (Poisson(3.0), 0.0, np.inf),
    ],
)
def test_affinities_are_finite_exactly_in_their_range(P, low, high):
    assert P.affinity_range() == (pytest.approx(low), pytest.approx(high))
    inside = max(low, 1e-3) * 1.001, min(high, 1e6) / 1.001
    for rho in inside:
        assert np.isfinite(P.log_affinity(P, rho))
    if high < np.inf:
        assert P.log_affinity(P, high) == np.inf == P.log_affinity(P, 1.5 * high)
        # it grows without bound towards the end
        near = [P.log_affinity(P, high * (1 - e)) for e in (1e-3, 1e-6)]
        assert near[0] < near[1]
    if low > 0:
        assert P.log_affinity(P, low) == np.inf == P.log_affinity(P, 0.5 * low)
    assert P.log_affinity(P, 0.5) == pytest.approx(0.0, abs=1e-12)


def test_a_pair_may_be_finite_where_one_of_them_is_not():
    P = Gamma([0.5, 2.0], 1.0)
    L = P.log_affinity(P, 1.2)
    assert L[0, 0] == np.inf and np.isfinite(L[0, 1]) and np.isfinite(L[1, 1])


@pytest.mark.parametrize("rho", [0.0, -1.0, np.nan, np.inf, "1", None, True, [0.5]])
def test_powers_that_are_none_are_refused(rho):
    P = Poisson([1.0, 2.0])
    refused(lambda: P.log_affinity(P, rho), r"^rho=.* must be a finite number > 0")


def test_other_families_and_other_spaces_are_refused():
    P = Gaussian(np.zeros(2), np.eye(2))
    for other in (Poisson(1.0), 3, None, [P]):
        for compare in (P.kl, lambda q: P.log_affinity(q, 0.5)):
            refused(lambda f=compare, q=other: f(q), "cannot compare Gaussian with")
    for a, b in [
        (P, Gaussian(np.zeros(3), np.eye(3))),
        (Multinomial([0.5, 0.5], 2), Multinomial([0.5, 0.5], 3)),
        (Categorical([1.0]), Categorical([0.5, 0.5])),
        (NegativeBinomial(0.5, 2.0), NegativeBinomial(0.5, 3.0)),
    ]:
        refused(lambda a=a, b=b: a.log_affinity(b, 0.5), "different spaces: .* and ")


# -- algebra ---------------------------------------------------------------------------
@every
@pytest.mark.parametrize("rho", [0.3, 0.5, 1.0, 1.9])
def test_gram_of_a_batch(name, rho, rng):
    P = MAKERS[name](rng, (30,))
    L = P.log_affinity(P, rho)
    np.testing.assert_array_equal(L, L.T)
    again = type(P)(**P.parameters())
    np.testing.assert_allclose(P.log_affinity(again, rho), L, rtol=1e-11, atol=1e-11)
    own = np.diagonal(L)
    excess = L - 0.5 * (own[:, None] + own)
    assert excess.max() <= 1e-12 * (1 + np.abs(L).max())  # Cauchy-Schwarz
    eigenvalues = np.linalg.eigvalsh(np.exp(excess))
    assert eigenvalues[0] >= -1e-12 * len(P)
    if rho == 0.5:
        assert (np.abs(own) <= 1e-12 * (1 + np.abs(P.cumulant()))).all()
        assert (P.kl(P) + 2 * L).min() >= -1e-9


@every
def test_log_affinity_is_convex_in_the_power(name, rng):
    P = MAKERS[name](rng, (4,))
    rho = np.linspace(0.45, 2.2, 15)
    L = np.stack([P.log_affinity(P, r) for r in rho])
    second = L[2:] - 2 * L[1:-1] + L[:-2]
    assert second.min() >= -1e-10 * (1 + np.abs(L).max())


@every
def test_batches_of_any_shape(name, rng):
    P, Q = MAKERS[name](rng, (2, 3)), MAKERS[name](rng, (4,))
    for compare in (lambda a, b: a.log_affinity(b, 0.5), lambda a, b: a.kl(b)):
        whole = compare(P, Q)
        assert whole.shape == (2, 3, 4)
        one = compare(P[1, 2], Q[3])
        assert whole[1, 2, 3] == pytest.approx(one, rel=1e-10, abs=1e-10)
        assert compare(P, Q[0]).shape == (2, 3)
        assert compare(P, Q[:0]).shape == (2, 3, 0)


@every
def test_many_pairs_in_tiles_are_the_pairs_one_by_one(name, rng, monkeypatch):
    P, Q = MAKERS[name](rng, (9,)), MAKERS[name](rng, (7,))
    rho = 0.8
    whole = P.log_affinity(Q, rho), P.kl(Q), P.log_affinity(P, rho)
    monkeypatch.setattr("maxent.families._pairs._TILE", 5)
    again = P.log_affinity(Q, rho), P.kl(Q), P.log_affinity(P, rho)
    for a, b in zip(whole, again):
        np.testing.assert_allclose(b, a, rtol=1e-13, atol=1e-13)


@settings(max_examples=25)
@given(
    rho=st.floats(0.05, 4.0),
    a=st.lists(st.floats(0.01, 1.0), min_size=3, max_size=3),
    b=st.lists(st.floats(0.01, 1.0), min_size=3, max_size=3),
    total=st.integers(1, 9),
)
def test_draws_in_order_bound_draws_that_are_counted(rho, a, b, total):
    p, q = np.array(a) / sum(a), np.array(b) / sum(b)
    counted = Multinomial(p, total).log_affinity(Multinomial(q, total), rho)
    ordered = total * Categorical(p).log_affinity(Categorical(q), rho)
    # sum over orders of c^(2 rho - 1) with c >= 1 orders of the same counts
    sign = np.sign(2 * rho - 1)
    assert sign * (counted - ordered) >= -1e-10


proportions = st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4).filter(
    lambda p: sum(p) > 1e-3
)


@settings(max_examples=60)
@given(a=proportions, b=proportions, rho=st.floats(0.5, 30.0))
@example(a=[0.0, 0.0, 0.0, 1.0], b=[0.0, 0.0, 1.0, 0.0], rho=1.0)
def test_categories_with_any_probabilities(a, b, rho):
    P = Categorical(np.array([a, b]) / np.sum([a, b], axis=1)[:, None])
    half = P.log_affinity(P, 0.5)
    np.testing.assert_allclose(np.diagonal(half), 0.0, atol=1e-14)
    assert half.max() <= 1e-14
    assert half[0, 1] == -np.inf or (P.kl(P) + 2 * half).min() >= -1e-12
    L = P.log_affinity(P, rho)
    assert L.max() <= 1e-13  # p^rho <= p^{1/2}
    # the same after another category of no probability
    wider = Categorical(np.pad(P.prob, ((0, 0), (0, 1))))
    np.testing.assert_allclose(
        wider.log_affinity(wider, rho), L, rtol=1e-12, atol=1e-12
    )


@settings(max_examples=60)
@given(
    a=st.floats(0.05, 5.0),
    b=st.floats(0.05, 5.0),
    rho=st.floats(0.1, 3.0),
    log_scale=st.floats(-20, 20),
)
def test_gamma_affinities_are_finite_where_they_should_be(a, b, rho, log_scale):
    P, Q = Gamma(a, 1.0), Gamma(b, 2.0)
    L = P.log_affinity(Q, rho)
    margin = rho * (a + b - 2) + 1
    if abs(margin) > 1e-9:
        assert np.isfinite(L) == (margin > 0)
    # another unit of the data multiplies dx and both densities
    c = math.exp(log_scale)
    scaled = Gamma(a, c).log_affinity(Gamma(b, 2 * c), rho)
    if np.isfinite(L):
        expected = L + (1 - 2 * rho) * log_scale
        assert scaled == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_sums_over_outcomes_are_refused_before_they_fill_the_memory(monkeypatch, rng):
    P = Multinomial([0.4, 0.6], 2001)
    refused(lambda: P.log_affinity(P, 0.7), "total=2001 .*Use rho=0.5, or total times")
    assert P.log_affinity(P, 0.5) == pytest.approx(0.0, abs=1e-9)
    refused(lambda: Multinomial([0.4, 0.6], 10**9).entropy(), "total=1000000000 makes")
    P = Multinomial(rng.dirichlet(np.ones(3), size=6), 4)
    sizes = []

    def watched(terms):
        sizes.append(terms.size)
        return log_sum(terms)

    monkeypatch.setattr("maxent.families._pairs._TILE", 60)
    monkeypatch.setattr("maxent.families.multinomial.log_sum", watched)
    P.log_affinity(P[::-1], 0.7)
    assert max(sizes) <= 60  # one tile, of rows and of columns
