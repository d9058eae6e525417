"""Classifiers with trees: what scikit-learn asks, invariances, what is reported."""

import itertools

import numpy as np
import pandas as pd
import pytest
from oracles import tree_classifiers as oracle
from oracles.block_cases import agree
from oracles.tree_problems import categories
from refusals import refused

from maxent import ChowLiuClassifier, MEDOutlierDetector, MEDTreeClassifier, load, save
from maxent.discrimination import (
    DirichletTrees,
    ExponentialMargin,
    SpanningTrees,
    solve_blocks,
)
from maxent.discrimination.duals import block_dual

KINDS = pytest.mark.parametrize("parameters", ["fixed", "dirichlet"])
# easy levels in some tests; one test asserts the warning itself


# ------------------------------------------------------------------------- invariances


@KINDS
def test_weight_two_is_the_row_twice_and_weight_zero_its_absence(parameters, rng):
    X, y = categories(rng)
    w = rng.integers(0, 3, size=len(y)).astype(float)
    w[:4] = 1.0
    # every category is met in both: those of rows without weight are not learnt
    twice = np.repeat(np.arange(len(y)), w.astype(int))
    one = MEDTreeClassifier(parameters, level=3.0, tol=1e-11)
    one.fit(X, y, sample_weight=w)
    other = MEDTreeClassifier(parameters, level=3.0, tol=1e-11).fit(X[twice], y[twice])
    agree(one.objective_, other.objective_, 1e-8, 1.0)
    agree(one.decision_function(X), other.decision_function(X), 1e-4)
    assert set(one.support_) <= set(np.flatnonzero(w))
    before = ChowLiuClassifier().fit(X, y, sample_weight=w)
    after = ChowLiuClassifier().fit(X[twice], y[twice])
    agree(before.predict_log_proba(X), after.predict_log_proba(X), 1e-10)


@KINDS
def test_order_of_rows_columns_and_classes_does_not_matter(parameters, rng):
    X, y = categories(rng)
    rows, columns = rng.permutation(len(y)), rng.permutation(4)
    one = MEDTreeClassifier(parameters, level=3.0, tol=1e-11).fit(X, y)
    other = MEDTreeClassifier(parameters, level=3.0, tol=1e-11)
    other.fit(X[rows][:, columns], y[rows])
    agree(other.decision_function(X[:, columns]), one.decision_function(X), 1e-4)
    agree(
        other.edge_probabilities_,
        one.edge_probabilities_[:, columns][:, :, columns],
        1e-4,
    )
    flipped = MEDTreeClassifier(parameters, level=3.0, tol=1e-11).fit(X, 1 - y)
    agree(flipped.decision_function(X), -one.decision_function(X), 1e-4)


@pytest.mark.parametrize("cls", [MEDTreeClassifier, ChowLiuClassifier])
def test_columns_by_name_and_categories_as_text(cls, rng):
    X, y = categories(rng)
    text = pd.DataFrame(np.array(["x", "y", "z"])[X], columns=list("abcd"))
    names = np.array(["no", "yes"])[y]
    one, other = cls().fit(X, y), cls().fit(text, names)
    assert (other.predict(text) == np.array(["no", "yes"])[one.predict(X)]).all()
    assert [list(c) for c in other.categories_] == [["x", "y", "z"]] * 4
    assert other.feature_names_in_.tolist() == list("abcd")


# -------------------------------------------------------------------- what is reported


@KINDS
def test_edges_of_every_class_are_reported(parameters, rng):
    X, y = categories(rng, 200, 4, 3)
    model = MEDTreeClassifier(parameters, level=3.0, tol=1e-6).fit(X, y)
    p, weights = model.edge_probabilities_, model.edge_log_weights_
    assert p.shape == weights.shape == (3, 4, 4)
    agree(p.sum(axis=(1, 2)), np.full(3, 6.0), 1e-12)
    assert model.best_trees_.shape == (3, 3, 2)
    trees = model.sample_trees(2000, random_state=0)
    assert trees.shape == (3, 2000, 3, 2)
    again = model.sample_trees(2000, random_state=0)
    np.testing.assert_array_equal(trees, again)
    for k in range(3):
        share = np.zeros((4, 4))
        np.add.at(share, (trees[k, ..., 0].ravel(), trees[k, ..., 1].ravel()), 5e-4)
        assert np.abs(np.triu(p[k]) - share).max() < 0.06
    assert model.dual_coef_.shape == (3, len(model.support_))
    assert model.n_iter_ >= len(model.objective_history_) > 0


def test_forbidden_edges_are_in_no_tree(rng):
    X, y = categories(rng)
    prior = np.ones((4, 4))
    prior[0, 1] = prior[1, 0] = 0.0
    model = MEDTreeClassifier(edge_prior=prior, level=3.0, tol=1e-6).fit(X, y)
    assert (model.edge_probabilities_[:, 0, 1] == 0).all()
    free = MEDTreeClassifier(level=3.0, tol=1e-6).fit(X, y)
    assert (free.edge_probabilities_[:, 0, 1] > 0).all()


def test_the_leave_one_out_bound_holds_with_tables_as_they_are(rng):
    """Lemma 1: the tables of all rows are kept, and the rows go one by one."""
    X, y = categories(rng, 24)
    sign = np.where(y == 1, 1.0, -1.0)
    model = MEDTreeClassifier(bias=None, level=2.0, tol=1e-11).fit(X, y)
    assert model.loo_bound_ == len(model.support_) / 24
    tables = [
        SpanningTrees.fit(X, (y == k).astype(float), n_categories=[3] * 4)
        for k in (0, 1)
    ]
    errors = 0
    for t in range(24):
        rest = np.arange(24) != t
        blocks = [table.block(X[rest]) for table in tables]
        found = solve_blocks(
            blocks,
            [np.diag(-sign[rest]), np.diag(sign[rest])],
            ExponentialMargin(5.0),
            level=np.full(23, 2.0),
            solver="interior",
            tol=1e-11,
        )
        no, yes = (
            block.score(s * found.lam, X[t : t + 1])[0]
            for block, s in zip(blocks, (-sign[rest], sign[rest]), strict=True)
        )
        wrong = sign[t] * (yes - no) <= 0
        errors += wrong
        if t not in model.support_:
            assert not wrong
            agree(yes - no, model.decision_function(X[t : t + 1])[0], 1e-3, 1.0)
    assert errors / 24 <= model.loo_bound_
    # rows without a multiplier may be wrong, or the rows chose the level
    assert np.isnan(MEDTreeClassifier(C=0.4, level=2.0).fit(X, y).loo_bound_)


@KINDS
def test_the_predictive_decides_by_averages_of_probabilities(parameters, rng):
    X, y = categories(rng)
    model = MEDTreeClassifier(parameters, level=3.0, likelihood="predictive").fit(X, y)
    want = [p.predictive_log_prob(X) for p in model.posteriors_]
    found = model.decision_function(X)
    agree(found, want[1] - want[0] + model.intercept_[0], 1e-12)
    other = MEDTreeClassifier(parameters, level=3.0).fit(X, y)
    assert np.abs(found - other.decision_function(X)).max() > 1e-6


def test_unknown_categories_are_left_out_or_refused(rng):
    X, y = categories(rng)
    for cls in (MEDTreeClassifier, ChowLiuClassifier):
        model = cls().fit(X, y)
        new, codes = np.array([[0, 9, 1, 2]]), np.array([[0, -1, 1, 2]])
        posteriors = getattr(model, "posteriors_", getattr(model, "models_", None))
        want = [p.expected_log_prob(codes)[0] for p in posteriors]
        if cls is MEDTreeClassifier:
            found = model.decision_function(new)[0] - model.intercept_[0]
        else:
            joint = model.predict_log_proba(new) - model.class_log_prior_
            found = np.diff(joint)[0, 0]
        assert found == pytest.approx(want[1] - want[0], rel=1e-10)
        strict = cls(handle_unknown="error").fit(X, y)
        refused(lambda s=strict, x=new: s.predict(x), r"X\[0, 1\] = .*9.* unseen")


@KINDS
@pytest.mark.parametrize("n_classes", [2, 3])
def test_loaded_models_decide_to_the_bit(parameters, n_classes, rng, tmp_path):
    X, y = categories(rng, n_classes=n_classes)
    model = MEDTreeClassifier(parameters, level=3.0, tol=1e-4).fit(X, y)
    other = ChowLiuClassifier().fit(X, y)
    for one, ask in ((model, "decision_function"), (other, "predict_proba")):
        save(one, tmp_path / "model.npz")
        back = load(tmp_path / "model.npz")
        np.testing.assert_array_equal(getattr(back, ask)(X), getattr(one, ask)(X))


def test_nothing_asked_leaves_the_tables_alone(rng):
    X, y = categories(rng)
    model = MEDTreeClassifier(level=-50.0)
    with pytest.warns(UserWarning, match="every margin is above the level -50"):
        model.fit(X, y)
    assert model.objective_ == 0.0 and len(model.support_) == 0
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(model.edge_probabilities_[:, off], 0.5, rtol=1e-12)


def test_every_margin_prior_trains_both_kinds(rng):
    X, y = categories(rng, 30, 3)
    names = ("exponential", "erlang", "laplace", "gaussian", "logistic", "hinge")
    for parameters, name in itertools.product(("fixed", "dirichlet"), names):
        model = MEDTreeClassifier(parameters, margin=name, level=3.0).fit(X, y)
        assert model.converged_
        assert model.duality_gap_ <= 1e-8 * (1 + model.objective_)
        assert model.objective_ > 0


@pytest.mark.parametrize("parameters", ["fixed", "dirichlet"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_hinges_with_a_flat_bias_converge(parameters, n_classes, rng):
    for rows in (30, 36, 60):
        X, y = categories(rng, rows, 3, n_classes)
        for C, level in itertools.product((1.0, 5.0), (1.0, 3.0)):
            model = MEDTreeClassifier(parameters, C=C, margin="hinge", level=level)
            assert model.fit(X, y).converged_


def test_many_products_give_way_to_the_interior_point(rng, monkeypatch):
    X, y = categories(rng, 300, 7)  # few of them equal
    model = MEDTreeClassifier(level=8.0, C=20.0).fit(X, y)
    assert model.converged_ and len(model.support_) > 200
    monkeypatch.setattr(block_dual, "_PRODUCTS", 30)
    monkeypatch.setattr(block_dual, "_PRODUCTS_SHARE", 0.0)
    other = MEDTreeClassifier(level=8.0, C=20.0).fit(X, y)
    assert other.converged_ and other.n_iter_ != model.n_iter_
    assert model.objective_ == pytest.approx(other.objective_, rel=2e-8)


# passengers by class, age, sex and whether they survived (Dawson, 1995)
TITANIC = np.array(
    [
        [[[118, 57], [4, 140]], [[0, 5], [0, 1]]],
        [[[154, 14], [13, 80]], [[0, 11], [0, 13]]],
        [[[387, 75], [89, 76]], [[35, 13], [17, 14]]],
    ]
)


def test_a_table_of_few_distinct_rows_converges_as_the_weighted_one():
    """With a multiplier each, equal rows leave the Hessian singular: it stalled."""
    counts = TITANIC[TITANIC > 0]
    kinds = np.argwhere(TITANIC)
    X, y = np.hsplit(np.repeat(kinds, counts, axis=0), [3])
    y = y.ravel()
    model = MEDTreeClassifier(level=3.0).fit(X, y)
    other = MEDTreeClassifier(level=3.0).fit(kinds[:, :3], kinds[:, 3], counts)
    assert model.converged_ and other.converged_
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-7)
    assert len(model.support_) == counts[other.support_].sum()
    # equal rows have equal multipliers
    at = (X[model.support_] == kinds[other.support_[0], :3]).all(axis=1)
    at &= y[model.support_] == kinds[other.support_[0], 3]
    assert at.sum() == counts[other.support_[0]]
    np.testing.assert_allclose(np.ptp(model.dual_coef_[0, at]), 0.0, atol=1e-12)


def test_rounding_at_bounds_is_no_gain():
    """On these rows steps between bounds met and left the same vertex without end."""
    test_hinges_with_a_flat_bias_converge("fixed", 3, np.random.default_rng(1))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_entropies_bear_levels_beyond_what_their_slopes_can_say(n_classes, rng):
    X, y = categories(rng, 40, 3, n_classes)
    for (C, level), bias in itertools.product(
        ((5.0, 8.0), (5.0, 30.0), (100.0, 4.0)), (None, "flat")
    ):
        model = MEDTreeClassifier(C=C, margin="logistic", level=level, bias=bias)
        model.fit(X, y)
        assert model.converged_ and np.isfinite(model.decision_function(X)).all()


def test_two_columns_have_one_tree_and_nothing_to_train(rng):
    X, y = rng.integers(0, 2, size=(320, 2)), np.arange(320) % 4
    model = MEDTreeClassifier(margin="logistic", C=1.0, level=0.5, bias=None).fit(X, y)
    assert model.converged_
    np.testing.assert_array_equal(model.edge_probabilities_[:, 0, 1], 1.0)


def test_a_level_of_its_own_forgets_the_largest_margin(rng):
    X = np.repeat(rng.integers(0, 3, size=(20, 1)), 4, axis=1)
    y = np.arange(20) % 2
    X[y == 1, 2:] = (X[y == 1, 2:] + rng.integers(1, 3, size=(10, 1))) % 3
    model = MEDTreeClassifier(margin="fixed", level="0.5*max", bias=None).fit(X, y)
    assert model.level_ == 0.5 * model.max_margin_ > 0
    model.set_params(level=0.25 * model.max_margin_).fit(X, y)
    assert not hasattr(model, "max_margin_")


def test_edges_start_from_their_prior_weights(rng):
    X, y = categories(rng, 40, 4)
    prior = np.exp(rng.normal(size=(4, 4)))
    prior = prior + prior.T
    with pytest.warns(UserWarning, match="every margin is above the level"):
        model = MEDTreeClassifier(edge_prior=prior, level=-50.0).fit(X, y)
    off = ~np.eye(4, dtype=bool)
    for weights in model.edge_log_weights_:
        np.testing.assert_allclose(weights[off], np.log(prior[off]), rtol=1e-12)


# ------------------------------------------------------------------------- Chow & Liu


def test_the_chow_liu_classifier_is_bayes_rule_with_its_trees(rng):
    X, y = categories(rng, 90, 4, 3)
    model = ChowLiuClassifier().fit(X, y)
    joint = np.zeros((90, 3))
    for k in range(3):
        tables = oracle.pair_tables(X[y == k], np.ones((y == k).sum()), [3] * 4, 1.0)
        for child, parent in oracle.directed(model.trees_[k], 4):
            table = oracle._table(tables, child, parent)
            share = table / table.sum(axis=1, keepdims=True)
            at = np.zeros(90, dtype=int) if parent is None else X[:, parent]
            joint[:, k] += np.log(share[at, X[:, child]])
        joint[:, k] += np.log((y == k).mean())
    want = np.exp(joint) / np.exp(joint).sum(axis=1, keepdims=True)
    agree(model.predict_proba(X), want, 1e-10)
    assert (model.predict(X) == joint.argmax(axis=1)).all()
    given = ChowLiuClassifier(class_prior=[0.2, 0.3, 0.5]).fit(X, y)
    moved = given.predict_log_proba(X) - model.predict_log_proba(X)
    step = np.log([0.2, 0.3, 0.5]) - np.log(np.bincount(y) / 90)
    moved -= moved[:, :1]  # what normalising adds to all classes
    agree(moved, np.tile(step - step[0], (90, 1)), 1e-10)
    uniform = ChowLiuClassifier(class_prior="uniform").fit(X, y)
    assert np.ptp(uniform.class_log_prior_) == 0


# ------------------------------------------------------------------------ the detector


def test_the_detector_with_trees_sees_broken_dependence(rng):
    X = rng.integers(0, 3, size=(200, 4))
    X[:, 1] = X[:, 0]
    detector = MEDOutlierDetector("tree").fit(X)
    assert detector.converged_
    normal, broken = [[2, 2, 0, 1]], [[2, 1, 0, 1]]
    assert detector.score_samples(normal)[0] > detector.score_samples(broken)[0] + 2.0
    assert detector.predict(broken)[0] == -1
    # a category that training did not meet leaves out its factors, and their evidence
    new, missing = detector.score_samples([[2, 9, 0, 1], [2, 8, 0, 1]])
    assert new == missing > detector.score_samples(broken)[0]
    other = MEDOutlierDetector(DirichletTrees(1.0, [3] * 4)).fit(X)
    np.testing.assert_array_equal(other.score_samples(X), detector.score_samples(X))


def test_lists_of_text_and_numbers_are_the_table_that_they_show():
    rows, y = [["x", 1, True], ["y", 2, False]] * 10, [0, 1] * 10
    table = pd.DataFrame(rows)
    model = MEDTreeClassifier().fit(np.array(rows, dtype=object), y)
    want = model.decision_function(table.to_numpy())
    np.testing.assert_array_equal(model.decision_function(rows), want)
    again = MEDTreeClassifier().fit(rows, y)
    np.testing.assert_array_equal(again.decision_function(rows), want)
