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


def changed(field, f, at, by):
    """The field with one entry of one factor changed."""
    factors = [(nodes, np.array(table)) for nodes, table in field.log_factors]
    factors[f][1][tuple(at)] += by
    return MarkovRandomField(factors, field.observed)


def field_and_masks(rng, observed):
    """A random field, one factor whole and others in part held, and all its masks."""
    scopes = [("b", "a"), ("b", "c"), ("a",), ("c", "d"), ("d", "a")]
    tables = [rng.normal(size=[SIZES[n] for n in own]) for own in scopes]
    init = MarkovRandomField(list(zip(scopes, tables)), observed)
    masks = [rng.random(table.shape) < rng.choice([0.0, 0.3, 0.6]) for table in tables]
    masks[0][:] = True
    keys = [own if len(own) > 1 else own[0] for own in scopes]
    return init, masks, {key: mask for key, mask in zip(keys, masks) if mask.any()}


@pytest.mark.parametrize("observed", [["a", "b", "c", "d"], ["b", "d", "c"]])
def test_held_entries_keep_their_bits_and_the_rest_is_at_the_maximum(observed, rng):
    init, masks, fixed = field_and_masks(rng, observed)
    if len(observed) == 4:  # of the mask True, too
        fixed["b", "a"] = True
    X = random_rows(rng, [SIZES[n] for n in observed], 40)
    w, smoothing = rng.uniform(0.5, 2.0, size=40), 0.7
    fit = quiet(
        MarkovRandomField.fit,
        *(X, init.scopes, observed),
        **{"weights": w, "smoothing": smoothing, "init": init, "fixed": fixed},
        **{"tol": 1e-12, "max_iter": 5000},
    )
    trace = fit.fit_result.objective_history
    assert (np.diff(trace) >= -1e-11 * (1.0 + np.abs(trace[1:]))).all()
    assert trace[-1] > trace[0]
    order = {own: k for k, own in enumerate(map(frozenset, fit.scopes))}
    place = [order[frozenset(own)] for own in init.scopes]
    for k, (nodes, table) in zip(place, init.log_factors):
        own, found = fit.log_factors[k]
        found = np.transpose(found, [own.index(name) for name in nodes])
        mask = masks[place.index(k)]
        np.testing.assert_array_equal(found[mask], table[mask])

    def objective(field):
        log_z = field.log_partition(method="exact")
        even = sum(table.mean() for _, table in field.log_factors) - log_z
        return w @ field.log_prob(X) + smoothing * even

    assert objective(fit) == pytest.approx(trace[-1], rel=1e-9)
    for k, (nodes, _), mask in zip(place, init.log_factors, masks):
        axes = [nodes.index(name) for name in fit.log_factors[k][0]]
        for at in np.argwhere(~np.transpose(mask, axes)):
            ends = [objective(changed(fit, k, at, h)) for h in (1e-4, -1e-4)]
            assert abs(ends[0] - ends[1]) / 2e-4 < 1e-2


def test_one_step_of_one_factor_ends_at_the_maximum(rng):
    init = MarkovRandomField([(("a", "b"), 3.0 * rng.normal(size=(2, 3)))])
    mask = np.array([[True, False, False], [False, True, False]])
    X = np.concatenate([np.argwhere(~mask), [[0, 0], *rng.integers(2, size=(20, 2))]])
    fit = quiet(
        MarkovRandomField.fit,
        *(X, init.scopes),
        **{"init": init, "fixed": {("a", "b"): mask}, "smoothing": 0, "max_iter": 1},
    )
    seen = np.zeros((2, 3))
    np.add.at(seen, tuple(X.T), 1 / len(X))
    np.testing.assert_allclose(fit.marginal(["a", "b"])[~mask], seen[~mask], rtol=1e-9)


def test_the_count_without_held_entries_is_the_rank_of_the_law(rng):
    init, _, masks = field_and_masks(rng, list(SIZES))
    X = np.array(list(np.ndindex(*SIZES.values())))
    for fixed in (masks, {}, ["a", ("d", "a")], init._holdable().keys()):
        given = dict(fixed) if isinstance(fixed, dict) else dict.fromkeys(fixed, True)
        start = {"init": init, "fixed": fixed, "max_iter": 1}
        fit = quiet(MarkovRandomField.fit, X, init.scopes, list(SIZES), **start)
        law = []
        for f, (nodes, table) in enumerate(init.log_factors):
            mask = given.get(nodes if len(nodes) > 1 else nodes[0], False)
            for at in np.argwhere(~np.broadcast_to(mask, table.shape)):
                ends = [changed(init, f, at, h).log_prob(X) for h in (1e-4, -1e-4)]
                law.append(np.subtract(*ends))
        rank = np.linalg.matrix_rank(np.array(law), tol=1e-8) if law else 0
        assert fit.n_parameters == rank
        again = MarkovRandomField.from_spec(fit.get_spec())
        assert again.n_parameters == rank
        total = fit.log_prob(X).sum()
        assert fit.aic(X) == pytest.approx(2 * rank - 2 * total)
        assert fit.bic(X) == pytest.approx(np.log(len(X)) * rank - 2 * total)


def test_starts_of_other_fields_and_hopeless_ones_are_refused(rng):
    table = np.array([[0.0, 1.0], [0.5, 0.0]])
    init = MarkovRandomField([(("a", "b"), table), ("a", [0.0, 1.0])])
    zeros = MarkovRandomField([(("a", "b"), [[0.0, -np.inf], [0.0, 0.0]])])
    twice = MarkovRandomField([(("a", "b"), table), (("b", "a"), table)])
    X, fit = [[0, 0], [1, 1], [0, 0]], MarkovRandomField.fit
    mask = {("a", "b"): [[False, True], [False, False]]}
    bare = {"smoothing": 0.0}
    for call, match in [
        (lambda: fit(X, [("a", "b")], init=init), "scopes=init.scopes"),
        (lambda: fit(X, init.scopes, init=BayesNet([("a", [1.0])])), "init="),
        (lambda: fit(X, init.scopes, fixed=["a"]), "give it by init="),
        (lambda: fit(X, init.scopes, init=init, fixed=["b"]), "what can stay is"),
        (lambda: fit(X, init.scopes, init=init, fixed={"a": [True]}), "shape"),
        (lambda: fit(X, zeros.scopes, init=zeros), "smoothing=0.01; set it to 0"),
        (lambda: fit([[0, 1]], zeros.scopes, init=zeros, **bare), "probability 0"),
        (lambda: fit(X, twice.scopes, init=twice, fixed=mask), "nodes twice"),
        (lambda: fit(X, init.scopes, init=init, fixed=mask, **bare), "in no row"),
    ]:
        refused(call, match)
    kept = fit([[0, 0], [1, 0], [1, 1]], zeros.scopes, init=zeros, fixed=mask, **bare)
    np.testing.assert_allclose(kept.marginal(["a", "b"]), [[1 / 3, 0], [1 / 3, 1 / 3]])
    refused(lambda: kept.n_parameters, "forbids combinations")


def test_one_scope_needs_no_list(rng):
    X = rng.integers(0, 2, size=(20, 1))
    field = MarkovRandomField.fit(X, "ab")
    assert field.nodes == ("ab",) and field == MarkovRandomField.fit(X, ["ab"])
