"""Markov random fields: sums, fits and bounds against enumeration."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models.factor_cases import (
    log_factors,
    random_field,
    random_fit,
    random_net,
    random_rows,
)
from models.sequence_cases import quiet
from oracles import factors as brute
from refusals import refusals, refused
from scipy.special import logsumexp

from maxent.models import BayesNet, MarkovRandomField

SIZES = {"a": 2, "b": 3, "c": 2, "d": 2}


def spins(coupling, n):
    """A ring of n spins."""
    table = coupling * np.array([[1.0, -1.0], [-1.0, 1.0]])
    return MarkovRandomField.pairwise(
        {f"s{k}": np.zeros(2) for k in range(n)},
        {(f"s{k}", f"s{(k + 1) % n}"): table for k in range(n)},
    )


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 300.0]))
def test_log_prob_and_marginals_by_enumeration(number, scale):
    rng = np.random.default_rng(number)
    observed = [str(n) for n in rng.permutation(list(SIZES))[: rng.integers(1, 5)]]
    field = random_field(rng, SIZES, observed, scale=scale)
    logs = log_factors(field)
    log_z = brute.log_partition(logs)
    assert field.log_partition() == pytest.approx(log_z, rel=1e-13)
    X = random_rows(rng, [SIZES[n] for n in observed], 6)
    expected = [brute.log_prob(logs, observed, row) - log_z for row in X]
    tol = 1e-13 * (1 + abs(log_z))
    np.testing.assert_allclose(field.log_prob(X), expected, rtol=1e-11, atol=tol)
    p = np.exp(brute.table(logs, ["c", "a"]) - log_z)
    np.testing.assert_allclose(field.marginal(["c", "a"]), p, atol=10 * tol)


def test_parameters_of_a_field_that_forbids_states_are_refused():
    field = MarkovRandomField([(("a", "b"), [[0.0, -np.inf], [0.0, 0.0]])])
    refused(lambda: field.bic([[0, 0]]), "forbids combinations, as the factor")


def test_a_ring_of_spins_has_the_known_partition_function():
    for n in (3, 8, 200):
        top, low = n * np.log(2 * np.cosh(0.4)), n * np.log(2 * np.sinh(0.4))
        expected = np.logaddexp(top, low)
        assert spins(0.4, n).log_partition() == pytest.approx(expected, rel=1e-13)


def test_a_bayes_net_is_a_field_of_its_logarithms(rng):
    net = random_net(rng, SIZES, ["d", "a"])
    field = MarkovRandomField(log_factors(net), net.observed)
    assert field.log_partition() == pytest.approx(0.0, abs=1e-14)
    X = random_rows(rng, [2, 2], 8)
    np.testing.assert_allclose(field.log_prob(X), net.log_prob(X), atol=1e-13)


def test_draws_have_the_right_frequencies(rng):
    field = random_field(rng, {"a": 2, "b": 3, "h": 2}, ["b", "a"])
    n = 20000
    X, hidden = field.sample(n, rng, return_hidden=True)
    counts = np.zeros((3, 2, 2))
    np.add.at(counts, (*X.T, hidden[:, 0]), 1.0)
    p = field.marginal(["b", "a", "h"])
    error = (counts / n - p) / np.sqrt(p * (1 - p) / n + 1e-12)
    assert np.abs(error).max() < 5.5


# -- fits ------------------------------------------------------------------------------
def test_a_fit_has_the_marginals_of_the_data(rng):
    X = random_rows(rng, [2, 3, 2], 60, missing=0.0)
    scopes = [("a", "b"), ("b", "c"), ("c", "a")]
    field = MarkovRandomField.fit(X, scopes, smoothing=0.0, tol=1e-14)
    assert field.fit_result.converged
    for i, j in ((0, 1), (1, 2), (2, 0)):
        pair = np.zeros((2 + (i == 1), 2 + (j == 1)))
        np.add.at(pair, (X[:, i], X[:, j]), 1 / 60)
        found = field.marginal(["abc"[i], "abc"[j]])
        np.testing.assert_allclose(found, pair, atol=1e-5)
    # one more step changes no factor
    assert field.fit_result.converged and field.fit_result.residual < 1e-3


def test_a_fitted_tree_is_the_bayes_net_of_the_tree(rng):
    X = random_rows(rng, [2, 3, 2], 60, missing=0.0)
    net = BayesNet.fit(X, {"a": [], "b": ["a"], "c": ["b"]}, smoothing=0.0)
    field = MarkovRandomField.fit(X, [("a", "b"), ("b", "c")], smoothing=0.0)
    np.testing.assert_allclose(field.log_prob(X), net.log_prob(X), rtol=1e-9)


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_objective_never_falls_and_is_that_of_the_model(smoothing, rng):
    for _ in range(4):
        truth = random_field(rng, SIZES, ["a", "b", "c"])
        X = truth.sample(40, rng)
        X[rng.random(X.shape) < 0.1] = -1
        scopes = [nodes for nodes, _ in truth.log_factors]
        field = quiet(MarkovRandomField.fit,
            X, scopes, truth.observed, n_categories=truth.n_categories,
            smoothing=smoothing, n_init=2, max_iter=40, random_state=rng,
        )  # fmt: skip
        history = field.fit_result.objective_history
        assert np.diff(history).min() >= -1e-12 * (1 + np.abs(history[-1]))
        own = field.log_prob(X).sum()
        if smoothing:
            every = np.array(list(np.ndindex(2, 3, 2, 2)))
            whole = MarkovRandomField(field.log_factors, list(SIZES))
            own += smoothing * whole.log_prob(every).mean()
        assert field.fit_result.objective == pytest.approx(own, rel=1e-11)


def worst_step(seed):
    def fit(field, X, **options):
        scopes = [nodes for nodes, _ in field.log_factors]
        return quiet(MarkovRandomField.fit, X, scopes, **options)

    return random_fit(seed, random_field, fit)


# -- bounds ----------------------------------------------------------------------------
@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([0.0, 0.2]))
def test_mean_field_is_below_the_partition_function(number, joined, forbid):
    rng = np.random.default_rng(number)
    field = random_field(rng, SIZES, forbid=forbid)
    exact = brute.log_partition(log_factors(field))
    clusters = [["a", "d"]] if joined else None
    bound = field.log_partition(method="meanfield", clusters=clusters, random_state=rng)
    assert bound <= exact + 1e-10
    one = field.log_partition(method="meanfield", clusters=[list(SIZES)])
    if forbid == 0.0:  # one cluster is everything
        assert one == pytest.approx(exact, abs=1e-9)


def test_independent_nodes_have_no_gap(rng):
    tables = {name: rng.normal(size=3) for name in "abcd"}
    field = MarkovRandomField.pairwise(tables, {})
    expected = sum(logsumexp(t) for t in tables.values())
    assert field.log_partition(method="meanfield") == pytest.approx(expected, rel=1e-13)


def test_auto_takes_the_bound_only_where_sums_are_refused(rng):
    dense = {(f"s{i}", f"s{j}"): 0.05 * rng.normal(size=(2, 2))
             for i in range(12) for j in range(i + 1, 12)}  # fmt: skip
    field = MarkovRandomField.pairwise({f"s{k}": np.zeros(2) for k in range(12)}, dense)
    refused(
        lambda: field.log_partition(method="exact", max_table=2**11),
        r"12 variables \(width 11 or more\) with 4.1e\+03 entries, 3.28e\+04 bytes",
    )
    bound = field.log_partition(max_table=2**11)
    exact = field.log_partition()
    assert bound < exact < bound + 0.1


# -- values ----------------------------------------------------------------------------
def test_a_field_comes_back_from_its_specification(rng):
    field = random_field(rng, SIZES, ["a"], forbid=0.2)
    back = MarkovRandomField.from_spec(field.get_spec())
    assert back == field and hash(back) == hash(field)
    assert repr(spins(1.0, 3)) == (
        "MarkovRandomField(s0, s1, s2, s0 - s1, s1 - s2, s2 - s0; "
        "observed=['s0', 's1', 's2'])"
    )


@pytest.mark.parametrize(
    "factors, match",
    [
        ([("a", [0.0, np.inf])], r"log_factors\[0\]\[1\]=inf must be the logarithm"),
        ([("a", [np.nan, 0.0])], r"log_factors\[0\]\[0\]=nan"),
        ([("a", [0.0]), (("a", "b"), np.zeros((2, 2)))], "2 categories of 'a'"),
        ([("a", np.zeros((2, 2)))], r"shape \(2, 2\) over the nodes \['a'\]"),
        ([("a", [])], "shape"),
        ([], "has no node"),
    ],
)
def test_wrong_factors_are_refused(factors, match):
    refused(lambda: MarkovRandomField(factors), match)


def test_a_field_without_a_possible_state_has_no_probabilities():
    field = MarkovRandomField([("a", [-np.inf, 0.0]), ("a", [0.0, -np.inf])])
    assert field.log_partition() == -np.inf
    refused(lambda: field.log_prob([[0]]), "forbid every state")
    refused(lambda: field.sample(1), "forbid every state")


test_wrong_arguments_are_refused = refusals(
    [
        (
            lambda: MarkovRandomField.pairwise({"a": [0.0]}, {("a", "b"): [[0.0]]}),
            "'b'",
        ),
        (lambda: MarkovRandomField.pairwise({"a": [0.0]}, {"ab": [[0.0]]}), "pairs"),
        (lambda: spins(1, 3).log_partition(method="loopy"), "method='loopy'"),
        (lambda: spins(1, 3).log_partition(clusters=[["q"]]), "'q', which is no node"),
        (
            lambda: spins(1, 3).log_partition(clusters=[["s0"], ["s0", "s1"]]),
            "'s0', which is in two clusters",
        ),
        (lambda: MarkovRandomField.fit([[0, 1]], [], None), "has no node"),
        (lambda: MarkovRandomField.fit([[0]], [("a", "b")]), "rows of the 2 observed"),
        (
            lambda: MarkovRandomField.fit([[0, 1]], [("a", "b"), "h"], ["a", "b"]),
            "hidden node 'h'",
        ),
        (
            lambda: MarkovRandomField.fit([[3, 3]], [("a", "b")], max_table=8),
            "would have 16 entries, 128 bytes",
        ),
    ]
)


def test_one_scope_needs_no_list(rng):
    X = rng.integers(0, 2, size=(20, 1))
    field = MarkovRandomField.fit(X, "ab")
    assert field.nodes == ("ab",) and field == MarkovRandomField.fit(X, ["ab"])
