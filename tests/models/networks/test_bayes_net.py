"""Bayes nets: probabilities by enumeration, counts, EM, input that is refused."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models.factor_cases import (
    hmm_as_net,
    log_factors,
    random_field,
    random_fit,
    random_net,
    random_rows,
)
from models.sequence_cases import quiet, random_hmm
from oracles import factors as brute
from refusals import refused
from sklearn.exceptions import ConvergenceWarning

from maxent.families import DirichletBayesNet
from maxent.models import BayesNet, CategoricalHMM, MarkovRandomField
from maxent.models.trees.chow_liu import chow_liu_tree

SIZES = {"a": 2, "b": 3, "c": 2, "d": 2, "e": 3}
AB = {"a": [], "b": ["a"]}


def columns(net):
    return [net.n_categories[name] for name in net.observed]


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_log_prob_and_posterior_by_enumeration(number, zeros):
    rng = np.random.default_rng(number)
    count = int(rng.integers(1, 6))
    observed = [str(n) for n in rng.choice(list(SIZES), count, replace=False)]
    net = random_net(rng, SIZES, observed, zeros=zeros)
    X = random_rows(rng, columns(net), 6)
    logs = log_factors(net)
    found = net.log_prob(X)
    expected = [brute.log_prob(logs, observed, row) for row in X]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    possible = np.isfinite(found)
    if not possible.all():
        with pytest.raises(ValueError, match=rf"X\[{np.argmin(possible)}\] has prob"):
            net.posterior(X)
    if not possible.any():
        return
    X = X[possible]
    for name, p in net.posterior(X, net.nodes).items():
        for row, own in zip(X, p):
            for code in range(len(own)):
                both, at = (*observed, name), np.append(row, code)
                if name in observed:
                    k = observed.index(name)
                    both, at = observed, np.where(np.arange(count) == k, code, row)
                    if row[k] >= 0 and row[k] != code:
                        assert own[code] == 0.0
                        continue
                share = brute.log_prob(logs, both, at)
                share -= brute.log_prob(logs, observed, row)
                assert own[code] == pytest.approx(np.exp(share), abs=1e-12)


@pytest.mark.parametrize("make", [random_net, random_field])
def test_missing_values_are_the_most_likely_ones_of_enumeration(make, rng):
    for observed in (list("cabde"), list("eb")):
        model = make(rng, SIZES, observed)
        logs, sizes = log_factors(model), columns(model)
        X = random_rows(rng, sizes, 8, missing=0.5)
        filled = model.impute(np.where(X < 0, np.nan, X))
        assert filled.dtype == np.intp
        np.testing.assert_array_equal(filled[X >= 0], X[X >= 0])
        for i, k in np.argwhere(X < 0):
            rows = np.repeat(X[[i]], sizes[k], axis=0)
            rows[:, k] = np.arange(sizes[k])
            log_p = [brute.log_prob(logs, observed, row) for row in rows]
            assert filled[i, k] == np.argmax(log_p)
        np.testing.assert_array_equal(model.impute(filled), filled)


def test_columns_of_frames_are_filled_in_by_name(rng):
    net = random_net(rng, SIZES, list("cab"))
    X = random_rows(rng, columns(net), 6, missing=0.5)
    frame = pd.DataFrame(np.where(X < 0, np.nan, X), columns=list("cab"))
    np.testing.assert_array_equal(net.impute(frame[list("bca")]), net.impute(X))


@pytest.mark.parametrize("make", [random_net, random_field])
def test_parameters_are_the_directions_in_which_the_law_moves(make, rng):
    for _ in range(4):
        model = make(rng, {"a": 2, "b": 3, "c": 2, "d": 2})
        logs = log_factors(model)
        codes = np.array(list(np.ndindex(*model.n_categories.values())))
        design = [
            (codes[:, [model.nodes.index(n) for n in nodes]] == cell).all(axis=1)
            for nodes, table in logs
            for cell in np.ndindex(table.shape)
        ]
        if make is random_field:  # log-linear: cells of factors, less the constant
            rank = np.linalg.matrix_rank(np.array(design, float)) - 1
        else:  # scores of the rows of the tables
            rank = np.linalg.matrix_rank(scores_of_tables(model, codes))
        assert model.n_parameters == rank
        X = random_rows(rng, columns(model), 9, missing=0.5)
        X[4] = -1  # tells nothing
        n = (X >= 0).any(axis=1).sum()
        total = model.log_likelihood(X).sum()
        assert model.aic(X) == pytest.approx(2 * rank - 2 * total)
        assert model.bic(X) == pytest.approx(np.log(n) * rank - 2 * total)


def scores_of_tables(net, codes):
    """Derivatives of the log-probabilities by the logits of the tables."""
    out = []
    for nodes, table in net.factors:
        at = codes[:, [net.nodes.index(name) for name in nodes]]
        for above in np.ndindex(table.shape[:-1]):
            here = (at[:, :-1] == above).all(axis=1)
            for k, p in enumerate(table[above]):
                out.append(here * ((at[:, -1] == k) - p))
    return np.array(out)


def test_zeros_of_tables_are_no_parameters():
    net = BayesNet([("a", [1.0, 0.0]), (("a", "b"), [[0.5, 0.5, 0.0], [0, 0.5, 0.5]])])
    assert net.n_parameters == 0 + 1 + 1


def test_probabilities_of_all_rows_sum_to_one(rng):
    net = random_net(rng, SIZES, ["e", "b", "a"])
    every = np.array(list(np.ndindex(*columns(net))))
    assert np.exp(net.log_prob(every)).sum() == pytest.approx(1.0, abs=1e-13)


def test_marginals_given_values_by_enumeration(rng):
    net = random_net(rng, SIZES)
    joint = np.exp(brute.table(log_factors(net), ["d", "a", "e"]))
    np.testing.assert_allclose(net.marginal(["d", "a", "e"]), joint, atol=1e-13)
    own = joint[1, :, :] / joint[1].sum()
    np.testing.assert_allclose(net.marginal(["a", "e"], {"d": 1}), own, atol=1e-13)
    np.testing.assert_allclose(
        net.marginal("e", {"d": 1, "a": 0}), own[0] / own[0].sum(), atol=1e-13
    )


def test_draws_have_the_right_frequencies(rng):
    net = random_net(rng, {"a": 2, "b": 3, "h": 2}, ["b", "a"])
    n = 20000
    X, hidden = net.sample(n, rng, return_hidden=True)
    assert X.shape == (n, 2) and hidden.shape == (n, 1)
    counts = np.zeros((3, 2, 2))
    np.add.at(counts, (*X.T, hidden[:, 0]), 1.0)
    p = net.marginal(["b", "a", "h"])
    error = (counts / n - p) / np.sqrt(p * (1 - p) / n + 1e-12)
    assert np.abs(error).max() < 5.5
    np.testing.assert_array_equal(net.sample(5, 1), net.sample(5, 1))


# -- reductions ------------------------------------------------------------------------
def test_a_chain_of_hidden_nodes_is_a_hidden_markov_model(rng):
    model = random_hmm(rng, 3, 4)
    net = hmm_as_net(model, 7)
    X = random_rows(rng, [4] * 7, 10)
    np.testing.assert_allclose(
        net.log_likelihood(X), model.log_likelihood(list(X)), rtol=1e-12
    )


def test_one_hidden_cause_is_a_mixture_step_by_step(rng):
    """The steps of EM for latent classes, written out."""
    X = rng.integers(0, 4, size=(40, 1))
    start = random_hmm(rng, 3, 4)
    init = hmm_as_net(CategoricalHMM(start.start, np.eye(3), start.emission), 1)
    options = {"smoothing": 0.5, "tol": 1e-12, "max_iter": 30}
    with pytest.warns(ConvergenceWarning):
        net = BayesNet.fit(X, init.parents, ["x0"], init=init, **options)
    point = start.start, start.emission.prob
    for _ in range(30):
        joint = point[0][:, None] * point[1][:, X[:, 0]]
        share = joint / joint.sum(axis=0)
        counts = np.stack([share @ (X[:, 0] == o) for o in range(4)], axis=1) + 0.5
        weight = share.sum(axis=1) + 0.5
        point = weight / weight.sum(), counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(net.factors[0][1], point[0], atol=1e-12)
    np.testing.assert_allclose(net.factors[1][1], point[1], atol=1e-12)


def test_a_tree_has_the_likelihood_of_its_pairs(rng):
    """sum_i log p(x_i) + sum_edges log p(x_i, x_j) / p(x_i) p(x_j), any root."""
    X = rng.integers(0, 3, size=(60, 5))
    X[:, 1] = (X[:, 0] + (rng.random(60) < 0.2)) % 3
    edges = chow_liu_tree(X)
    single = [np.bincount(X[:, i], minlength=3) / 60 for i in range(5)]
    expected = sum(np.log(single[i])[X[:, i]] for i in range(5))
    for i, j in edges:
        pair = np.zeros((3, 3))
        np.add.at(pair, (X[:, i], X[:, j]), 1 / 60)
        expected = expected + np.log(pair[X[:, i], X[:, j]])
        expected = expected - np.log(single[i])[X[:, i]] - np.log(single[j])[X[:, j]]
    for root in (0, 3):
        parents, left = {str(root): []}, edges.tolist()
        while left:
            i, j = next(
                (i, j) for i, j in left if str(i) in parents or str(j) in parents
            )
            left.remove([i, j])
            i, j = (i, j) if str(i) in parents else (j, i)
            parents[str(j)] = [str(i)]
        net = BayesNet.fit(X, parents, [str(i) for i in range(5)], smoothing=0)
        np.testing.assert_allclose(net.log_prob(X), expected, rtol=1e-11)


def test_counts_are_those_of_the_dirichlet_prior(rng):
    X = np.stack([rng.integers(0, r, size=30) for r in (2, 3, 2)], axis=1)
    prior = DirichletBayesNet(
        [np.full((1, 2), 0.3), np.full((4, 3), 0.3), np.full((2, 2), 0.3)],
        [(), (0, 2), (0,)],
    )
    parents = {"a": [], "b": ["a", "c"], "c": ["a"]}
    sizes = {"a": 2, "b": 3, "c": 2}
    net = BayesNet.fit(X, parents, smoothing=0.3, n_categories=sizes)
    assert net.fit_result is None
    for counts, (_, table) in zip(prior.posterior(X).pseudo_counts, net.factors):
        own = counts / counts.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(table.reshape(own.shape), own, atol=1e-14)


# -- fits ------------------------------------------------------------------------------
def test_weights_are_repeated_rows_and_unseen_parents_are_even(rng):
    X = np.array([[0, 1], [0, 0], [2, 1]])
    own = {"smoothing": 0.0, "n_categories": {"a": 3, "b": 2}}
    one = BayesNet.fit(X, AB, weights=[2, 1, 1], **own)
    two = BayesNet.fit(np.repeat(X, [2, 1, 1], axis=0), AB, **own)
    for (_, s), (_, t) in zip(one.factors, two.factors):
        np.testing.assert_allclose(s, t, rtol=1e-15)
    np.testing.assert_allclose(one.factors[1][1], [[1 / 3, 2 / 3], [0.5, 0.5], [0, 1]])


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_objective_never_falls_and_is_that_of_the_model(smoothing, rng):
    for _ in range(4):
        truth = random_net(rng, SIZES, ["a", "c", "e"])
        X = truth.sample(50, rng).astype(float)
        X[rng.random(X.shape) < 0.1] = np.nan
        net = quiet(BayesNet.fit,
            X, truth.parents, truth.observed, n_categories=truth.n_categories,
            smoothing=smoothing, n_init=2, max_iter=60, random_state=rng,
        )  # fmt: skip
        result = net.fit_result
        history = result.objective_history
        assert np.diff(history).min() >= -1e-12 * (1 + np.abs(history[-1]))
        own = net.log_prob(X).sum()
        if smoothing:
            own += smoothing * sum(np.log(t).sum() for _, t in net.factors)
        assert result.objective == pytest.approx(own, rel=1e-11)
        assert result.objective == max(result.objectives)


def worst_step(seed):
    def fit(net, X, **options):
        return quiet(BayesNet.fit, X, net.parents, **options)

    return random_fit(seed, random_net, fit)


def test_the_objective_never_falls(seed):
    # rounding of sums of some hundred terms
    assert min(worst_step([seed, k]) for k in range(20)) > -1e-12


def test_an_em_step_has_the_expected_counts_of_enumeration(rng):
    net = random_net(rng, SIZES, ["a", "c", "e"])
    X = random_rows(rng, columns(net), 8, missing=0.3)
    with pytest.warns(ConvergenceWarning):
        moved = BayesNet.fit(
            X, net.parents, net.observed, init=net, smoothing=0.2, max_iter=1
        )
    logs = log_factors(net)
    for (nodes, _), (own, table) in zip(net.factors, moved.factors):
        assert nodes == own
        counts = np.full(table.shape, 0.2)
        for row in X:
            total = brute.log_prob(logs, net.observed, row)
            for at in np.ndindex(*table.shape):
                known = dict(zip(net.observed, row))
                if any(known.get(n, -1) not in (-1, c) for n, c in zip(nodes, at)):
                    continue
                known.update(zip(nodes, at))
                p = brute.log_prob(logs, tuple(known), tuple(known.values()))
                counts[at] += np.exp(p - total)
        expected = counts / counts.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(table, expected, atol=1e-12)


def test_a_hidden_cause_is_found_again(rng):
    truth = BayesNet(
        [
            ("h", [0.4, 0.6]),
            *(((("h", f"x{k}")), [[0.9, 0.1], [0.15, 0.85]]) for k in range(6)),
        ],
        [f"x{k}" for k in range(6)],
    )
    X = truth.sample(3000, rng)
    fitted = BayesNet.fit(
        X, truth.parents, truth.observed, n_categories={"h": 2}, random_state=0
    )
    assert fitted.fit_result.converged
    assert fitted.log_prob(X).sum() >= truth.log_prob(X).sum() - 1.0
    order = np.argsort([fitted.factors[1][1][h, 0] for h in range(2)])[::-1]
    error = fitted.factors[1][1][order] - truth.factors[1][1]
    assert np.abs(error).max() < 0.08


def test_fit_many_fits_each(rng):
    data = [rng.integers(0, 2, size=(20, 2)) for _ in range(3)]
    many = BayesNet.fit_many(data, parents=AB)
    assert many == [BayesNet.fit(X, AB) for X in data]


# -- values ----------------------------------------------------------------------------
def test_a_net_comes_back_from_its_specification(rng):
    net = random_net(rng, {f"n{k}": 2 for k in range(12)}, ["n3", "n1"])
    wide = BayesNet(
        [*((f"n{k}", [0.5, 0.5]) for k in range(10)),
         ((*(f"n{k}" for k in range(10)), "y"), np.full((2,) * 11, 0.5))]
    )  # fmt: skip
    for one in (net, wide):
        back = BayesNet.from_spec(one.get_spec())
        assert back == one and hash(back) == hash(one)
    assert net != wide


def test_a_net_is_immutable_and_keeps_its_own_tables(rng):
    table = np.array([0.5, 0.5])
    net = BayesNet([("a", table)])
    table[0] = 0.0
    assert net.factors[0][1][0] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        net.factors[0][1][0] = 1.0
    with pytest.raises(AttributeError, match="immutable"):
        net.observed = ("a",)
    assert repr(net) == "BayesNet(a; observed=['a'])"


A = ("a", [0.5, 0.5])


@pytest.mark.parametrize(
    "factors, match",
    [
        ([("a", [0.5, 0.4])], r"factors\[0\] sums to 0.9"),
        ([A, (("a", "b"), [[0.5, 0.5], [1.0, 0.1]])], r"factors\[1\]\[1\] sums to 1.1"),
        (
            [A, (("a", "b"), np.full((3, 2), 0.5))],
            r"factors\[1\] has 3 categories of 'a'",
        ),
        ([A, ("a", [1.0, 0.0])], r"second table of 'a', after factors\[0\]"),
        ([(("a", "b"), np.full((2, 2), 0.5))], "'a' is a parent of 'b' but no node"),
        (
            [(("a", "b"), np.full((2, 2), 0.5)), (("b", "a"), np.full((2, 2), 0.5))],
            r"cycle among the features \['b', 'a'\]|\['a', 'b'\]",
        ),
        ([("a", [[0.5, 0.5]])], r"shape \(1, 2\) over the nodes \['a'\]"),
        ([("a", [1.5, -0.5])], r"factors\[0\]\[0\]=1.5 must be in \[0, 1\]"),
        ([("a", [np.nan, 0.5])], "finite"),
        ([(("a", "a"), np.full((2, 2), 0.5))], "a node twice"),
        ([((1,), [0.5, 0.5])], "names of nodes are strings"),
        ([((), 1.0)], "one distribution|names no node"),
        ([], "has no node"),
        ({"a": [1.0]}, "must be a list of pairs"),
        ([[0.5, 0.5, 0.0]], r"factors\[0\]=.* must be a pair"),
    ],
)
def test_wrong_tables_are_refused(factors, match):
    refused(lambda: BayesNet(factors), match)


@pytest.mark.parametrize(
    "observed, match",
    [(["q"], "'q', which is no node"), ([], "has no node"), (["a", "a"], "twice")],
)
def test_wrong_observed_nodes_are_refused(observed, match):
    refused(lambda: BayesNet([A], observed), match)


@pytest.mark.parametrize(
    "X, options, match",
    [
        ([[0, 3]], {"n_categories": {"b": 2}}, r"X\[0, 1\] = 3 is not a category"),
        ([[0, 0.5]], {}, "integer codes"),
        ([[0, -2]], {}, r"X\[0, 1\] = -2 is not a category"),
        ([[0]], {}, r"X has shape \(1, 1\)"),
        (np.zeros((0, 2)), {}, r"X has shape \(0, 2\)"),
        ([["x", "y"]], {}, "X"),
        ([[0, 1]], {"parents": {"a": ["b"], "b": ["a"]}}, r"cycle .*\['a', 'b'\]"),
        ([[0, 1]], {"parents": {"a": ["q"], "b": []}}, "'q' is a parent of 'a' but"),
        ([[0, 1]], {"parents": {"a": ["a"], "b": []}}, "'a' is a parent of itself"),
        ([[0, 1]], {"parents": [(), (0,)]}, "must be a dict"),
        (
            [[0, 1]],
            {"parents": {**AB, "h": []}, "observed": ["a", "b"]},
            "hidden node 'h'",
        ),
        ([[0, 1]], {"n_categories": {"q": 2}}, "'q', which is no node"),
        ([[0, 1]], {"n_categories": {"a": 0}}, "integer >= 1"),
        ([[0, 1]], {"n_categories": 3}, "must be a dict"),
        ([[0, 1]], {"smoothing": -1.0}, "smoothing"),
        ([[0, 1]], {"weights": [1.0, 1.0]}, "weights"),
        ([[1, 1]], {"max_table": 3}, "the table of 'b' with 1 parents would have 4"),
    ],
)
def test_wrong_data_and_structures_are_refused(X, options, match):
    refused(lambda: BayesNet.fit(X, **{"parents": AB, **options}), match)


def test_sums_above_the_limit_are_refused_with_the_width(rng):
    names = [f"h{k}" for k in range(6)]
    parents = {name: [] for name in names} | {
        f"x{i}{j}": [names[i], names[j]] for i in range(6) for j in range(i + 1, 6)
    }
    shown = [name for name in parents if name not in names]
    net = random_net(rng, dict.fromkeys(parents, 2), shown, parents)
    X = net.sample(3, rng)
    refused(lambda: net.log_prob(X, max_table=32), r"width 5 or more.*max_table=32")
    assert np.isfinite(net.log_prob(X, max_table=64)).all()


@pytest.mark.parametrize(
    "nodes, given, match",
    [
        ("q", None, "'q', which is no node"),
        ("b", {"a": 2}, r"given\['a'\]=2 is not a category"),
        ("b", {"a": "x"}, "is not a category"),
        ("a", {"a": 0}, "has 'a', which is given"),
        ("b", {"a": 1}, "has probability 0"),
    ],
)
def test_wrong_questions_are_refused(nodes, given, match):
    net = BayesNet([("a", [1.0, 0.0]), (("a", "b"), [[0.5, 0.5]] * 2)])
    refused(lambda: net.marginal(nodes, given), match)


def test_a_start_may_name_its_nodes_in_another_order(rng):
    net = random_net(rng, {"a": 2, "b": 2, "c": 2}, ["b", "c"])
    X = net.sample(80, rng)
    options = {"observed": ["b", "c"], "init": net, "max_iter": 1, "tol": 1e-300}
    order = dict(reversed(net.parents.items()))
    found, other = (
        quiet(BayesNet.fit, X, parents, **options) for parents in (net.parents, order)
    )
    assert list(other.parents) == list(order)
    assert found.fit_result.objective == pytest.approx(other.fit_result.objective)
    np.testing.assert_allclose(found.log_prob(X), other.log_prob(X), rtol=1e-12)


def test_no_warning_of_a_fit_that_a_callback_has_stopped(rng, recwarn):
    net = random_net(rng, SIZES, ["a", "c"])
    X = net.sample(40, rng)
    model = BayesNet.fit(
        X,
        net.parents,
        ["a", "c"],
        n_categories=net.n_categories,
        callback=lambda *report: True,
    )
    assert model.fit_result.status.value == "stopped"
    assert not recwarn.list


def test_fit_many_names_an_argument_that_the_model_does_not_have():
    with pytest.raises(TypeError, match="no argument 'zeta'"):
        MarkovRandomField.fit_many([np.zeros((3, 1))], zeta=1)
