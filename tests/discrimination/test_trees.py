"""Classifiers with trees: optima by other means, the largest margin, refusals."""

import itertools

import numpy as np
import pandas as pd
import pytest
from oracles import block_dual as dual_oracle
from oracles import tree_classifiers as oracle
from oracles.block_cases import agree
from refusals import cases, refused
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxent import ChowLiuClassifier, MEDOutlierDetector, MEDTreeClassifier, load, save
from maxent.discrimination import (
    DirichletTrees,
    ExponentialMargin,
    GaussianMargin,
    LaplaceMargin,
    SpanningTrees,
    max_margin,
    solve_blocks,
)
from maxent.discrimination._block_ascent import ascend_blocks
from maxent.discrimination._generative import class_maps
from maxent.discrimination.multiclass import MulticlassRows

KINDS = pytest.mark.parametrize("parameters", ["fixed", "dirichlet"])
# easy levels in some tests; one test asserts the warning itself
pytestmark = pytest.mark.filterwarnings("ignore:.*nothing was learnt:UserWarning")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        MEDTreeClassifier(),
        MEDTreeClassifier("dirichlet", level=4.0, bias=None),
        MEDTreeClassifier(margin="laplace", bias=2.0, likelihood="predictive"),
        ChowLiuClassifier(),
        ChowLiuClassifier(0.5, class_prior="uniform"),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def categories(rng, n=48, d=4, n_classes=2):
    """Columns that copy one another, others in every class, with noise."""
    y = rng.permutation(np.arange(n) % n_classes)
    X = rng.integers(0, 3, size=(n, d))
    for k in range(n_classes):
        own = (y == k) & (rng.random(n) < 0.8)
        X[own, 1 + k % (d - 1)] = X[own, 0]
    return X, y


def classes(rng, n=3, rows=12):
    """Blocks of two classes by the list of trees and by the package, and maps."""
    sizes = [int(r) for r in rng.integers(2, 4, size=n)]
    y = np.where(np.arange(rows) % 2, 1.0, -1.0)
    X = np.column_stack([rng.integers(0, r, size=rows) for r in sizes])
    weights = np.zeros((n, n))
    np.fill_diagonal(weights, -np.inf)
    listed, blocks = [], []
    for k in (-1, 1):
        own = X[y == k]
        tables = oracle.pair_tables(own, np.ones(len(own)), sizes, 1.0)
        listed.append(
            oracle.ListedTrees(
                oracle.tree_log_probs(tables, X, n), oracle.structure_prior(weights)
            )
        )
        blocks.append(SpanningTrees.fit(own, n_categories=sizes).block(X))
    return listed, blocks, [np.diag(-y), np.diag(y)], y


# ---------------------------------------------------------------- optima by other means


@pytest.mark.parametrize(
    "prior",
    [ExponentialMargin(5.0, 3.0), LaplaceMargin(2.0, 3.0), GaussianMargin(1.5, 3.0)],
    ids=lambda p: p.name,
)
def test_the_dual_is_the_least_relative_entropy_over_all_trees(prior, rng):
    listed, blocks, maps, _ = classes(rng)
    want = oracle.primal(listed, maps, prior, 3.0)
    found = ascend_blocks(
        blocks,
        maps,
        prior,
        sample_weight=np.ones(12),
        level=np.full(12, 3.0),
        tol=1e-11,
        max_iter=500,
    )
    assert found.converged and found.objective > 0.01
    # SLSQP's own tolerance
    assert found.objective == pytest.approx(want, rel=1e-6)
    assert found.objective <= want + 1e-8


@KINDS
@pytest.mark.parametrize("bias", [None, 2.0, "flat"])
def test_both_solvers_and_a_general_one_agree(parameters, bias, rng):
    X, y = categories(rng, 16, 3)
    sign = np.where(y == 1, 1.0, -1.0)
    at = 3.0 if parameters == "fixed" else 12.0
    model = MEDTreeClassifier(parameters, bias=bias, level=at, tol=1e-11).fit(X, y)
    blocks = model._class_blocks(X, y, np.ones(16))
    maps = [np.diag(-sign), np.diag(sign)]
    prior, level, one = ExponentialMargin(5.0), np.full(16, at), np.ones(16)
    other = solve_blocks(
        blocks, maps, prior, bias=bias, incidence=sign, level=level, tol=1e-11
    )
    assert model.objective_ > 0.01
    agree(model.objective_, other.objective, 1e-9)
    E = sign[:, None]
    if parameters == "dirichlet":  # whose boundary the general solver runs into
        return
    general = dual_oracle.solve(blocks, maps, prior, level, one, bias, E)
    value = general[0] if isinstance(general, tuple) else general
    agree(model.objective_, np.max(value), 1e-6)
    if bias is not None:
        b = np.ravel(other.bias)[0]
        assert model.intercept_[0] == pytest.approx(b, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("m", [2, 3])
def test_the_ascent_finds_flat_biases_by_itself(m, rng):
    X, y = categories(rng, 60, 4, m)
    blocks = [
        SpanningTrees.fit(X[y == k], n_categories=[3] * 4).block(X) for k in range(m)
    ]
    rows = MulticlassRows(y, m, ExponentialMargin(5.0), np.ones(60))
    options = {
        "bias": "flat",
        "incidence": rows.incidence(),
        "sample_weight": rows.rows.weight,
        "level": np.full(len(rows.example), 3.0),
    }
    maps = class_maps(rows)
    found = ascend_blocks(
        blocks, maps, ExponentialMargin(5.0), tol=1e-9, max_iter=300, **options
    )
    want = solve_blocks(blocks, maps, ExponentialMargin(5.0), tol=1e-9, **options)
    assert found.solver == "ascent" and found.converged and want.objective > 0.1
    agree(found.objective, want.objective, 1e-8)
    agree(found.bias, want.bias, 1e-3, 1.0)
    assert np.abs(rows.incidence().T @ found.lam).max() < 1e-9


def test_the_ascent_hands_over_where_it_does_not_get_on(rng):
    """Levels at the end of what prior counts can pay for: next to the boundary."""
    X, y = categories(rng, 40, 4)
    model = MEDTreeClassifier("dirichlet", C=1.0, level=30.0, bias=None).fit(X, y)
    assert model.converged_
    assert model.duality_gap_ <= 1e-8 * (1.0 + model.objective_)


@KINDS
def test_two_classes_are_the_smallest_case_of_many(parameters, rng):
    """A third class far away leaves the other two alone."""
    X, y = categories(rng)
    far = rng.integers(3, 6, size=(12, 4))
    two = MEDTreeClassifier(parameters, level=3.0, tol=1e-10)
    two.fit(np.concatenate([X, far[:0]]), y)
    three = MEDTreeClassifier(parameters, level=3.0, tol=1e-10)
    three.fit(np.concatenate([X, far]), np.concatenate([y, np.full(12, 2)]))
    # the categories of the third class change the smoothing of the tables: same data
    encoded = three._encode(X.astype(X.dtype))
    sizes = [len(c) for c in three.categories_]
    alone = MulticlassRows(y, 2, ExponentialMargin(5.0), np.ones(len(y)))
    blocks = []
    for k in (0, 1):
        own = (y == k).astype(float)
        if parameters == "fixed":
            prior = SpanningTrees.fit(encoded, own, n_categories=sizes)
            blocks.append(prior.block(encoded))
        else:
            blocks.append(DirichletTrees(1.0, sizes).block(encoded, own))
    want = solve_blocks(
        blocks,
        class_maps(alone),
        ExponentialMargin(5.0),
        bias="flat",
        incidence=alone.incidence(),
        level=np.full(len(y), 3.0),
        tol=1e-10,
    )
    agree(three.objective_, want.objective, 1e-6)
    assert two.objective_ > 0 and set(three.support_) <= set(range(len(y)))


@KINDS
def test_margins_on_the_support_are_those_the_prior_pays_for(parameters, rng):
    X, y = categories(rng)
    model = MEDTreeClassifier(parameters, C=2.0, level=4.0, tol=1e-11).fit(X, y)
    sign = np.where(y == 1, 1.0, -1.0)
    margins = sign * model.decision_function(X)
    prior = ExponentialMargin(2.0, 4.0)
    lam = np.zeros(len(y))
    lam[model.support_] = np.abs(model.dual_coef_[0])
    on = lam > 1e-5
    assert on.sum() > 3
    agree(margins[on], prior.mean(lam[on]), 1e-3)
    assert (margins[~on] > prior.prior_mean - 1e-3).all()
    assert prior.fenchel_young(lam, margins).sum() <= 1e-6 * (1 + model.objective_)
    assert sign @ lam == pytest.approx(0.0, abs=1e-8)


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
            found = np.diff(model._joint(new) - model.class_log_prior_)[0, 0]
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


# --------------------------------------------------------------------- largest margin


@pytest.mark.parametrize("bias", [None, "flat"])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_largest_margin_is_that_of_a_program_over_all_trees(n, bias, rng):
    for _ in range(4):
        listed, blocks, maps, y = classes(rng, n)
        E = None if bias is None else y[:, None]
        want = oracle.largest_margin(listed, maps, E)
        found = max_margin(blocks, maps, bias=bias, incidence=E, tol=1e-9)
        assert found.converged
        # the tolerance of the linear programs
        assert found.lower - 1e-6 <= want <= found.upper + 1e-6
        assert found.upper - found.lower <= 1e-6 * (1 + abs(want))
        agree(found.shares.sum(), 1.0, 1e-12)
        # the shares prove the upper bound: no distribution does better on them
        best = sum((b.L @ (A @ found.shares)).max() for b, A in zip(listed, maps))
        assert best == pytest.approx(found.upper, abs=1e-9)


def test_fixed_margins_are_met_up_to_the_largest_one_and_refused_beyond(rng):
    X, y = categories(rng, 24)
    X[:, 3] = y  # separable
    sign = np.where(y == 1, 1.0, -1.0)
    for bias in (None, "flat"):
        model = MEDTreeClassifier(
            margin="fixed", level="0.8*max", bias=bias, tol=1e-6
        ).fit(X, y)
        assert model.level_ == pytest.approx(0.8 * model.max_margin_, rel=1e-12)
        margins = sign * model.decision_function(X)
        assert margins.min() >= model.level_ * (1 - 1e-6)
        assert np.isnan(model.loo_bound_)
        beyond = 1.01 * model.max_margin_
        refused(
            lambda b=bias, lv=beyond: MEDTreeClassifier(
                margin="fixed", level=lv, bias=b
            ).fit(X, y),
            rf"beyond the largest margin .*{model.max_margin_:.6g} nats.*'0.8\*max'",
        )
    # multipliers are far out there, and digits fewer
    most = MEDTreeClassifier(margin="fixed", level="max", bias=None, tol=1e-5)
    most.fit(X, y)
    assert most.level_ == pytest.approx(0.95 * most.max_margin_)
    assert most.score(X, y) == 1.0


def test_a_share_of_a_margin_that_is_not_there_is_refused(rng):
    X = np.array([[0, 0], [0, 0], [1, 1], [1, 1], [0, 1], [0, 1]])
    y = np.array([0, 1, 0, 1, 0, 1])  # equal rows in both classes
    refused(
        lambda: MEDTreeClassifier(margin="fixed", level="0.5*max").fit(X, y),
        "largest margin that all rows can meet is .*cannot be separated",
    )


def test_the_largest_margin_is_for_given_tables(rng):
    X, _ = categories(rng, 20)
    blocks = [DirichletTrees(1.0, [3] * 4).block(X) for _ in (0, 1)]
    refused(
        lambda: max_margin(blocks, [np.eye(20), np.eye(20)]),
        r"blocks\[0\].*no block of SpanningTrees",
    )


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
    moved = given._joint(X) - model._joint(X)
    agree(
        moved, np.log([0.2, 0.3, 0.5]) - np.log(np.bincount(y) / 90) + 0 * moved, 1e-10
    )
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
    # a category that training did not meet is stranger than any that it met
    new = detector.score_samples([[2, 9, 0, 1]])[0]
    assert new < min(detector.score_samples([[2, k, 0, 1]])[0] for k in (2,))
    other = MEDOutlierDetector(DirichletTrees(1.0, [3] * 4)).fit(X)
    np.testing.assert_array_equal(other.score_samples(X), detector.score_samples(X))


# --------------------------------------------------------------------------- refusals

WRONG = {
    "parameters": ["a", None, 1],
    "C": [0.0, -1.0, np.nan, "a", None],
    "margin": ["a", None, 3.0],
    "level": [np.nan, np.inf, "a", "2*max", "x*max", [1.0]],
    "ess": [-1.0, np.nan, np.inf, "a", None],
    "bias": ["a", 0.0, -1.0, np.nan],
    "likelihood": ["mean", None],
    "handle_unknown": ["a", None],
    "tol": [0, -1.0, np.nan, "a"],
    "max_iter": [0, 2.5, "a"],
    "edge_prior": [
        "a",
        np.ones(4),
        np.ones((3, 3)),
        -np.ones((4, 4)),
        np.triu(np.ones((4, 4))),
        np.eye(4),
        np.full((4, 4), np.nan),
    ],
}


@pytest.mark.parametrize(("name", "value"), cases(WRONG))
def test_wrong_parameters_are_named(name, value, rng):
    X, y = categories(rng)
    refused(lambda: MEDTreeClassifier(**{name: value}).fit(X, y), rf"\b{name}\b")


@pytest.mark.parametrize(
    ("name", "value"),
    cases(
        {
            "ess": [-1.0, np.nan, "a"],
            "class_prior": ["a", [0.5, 0.3, 0.2], [1.0, 0.0], [1.0, np.nan], 3.0],
            "handle_unknown": ["a", None],
        }
    ),
)
def test_wrong_parameters_of_the_chow_liu_classifier_are_named(name, value, rng):
    X, y = categories(rng)
    refused(lambda: ChowLiuClassifier(**{name: value}).fit(X, y), rf"\b{name}\b")


def test_parts_that_an_edge_prior_leaves_are_named(rng):
    X, y = categories(rng)
    prior = np.zeros((4, 4))
    prior[0, 1] = prior[1, 0] = prior[2, 3] = prior[3, 2] = 1.0
    refused(
        lambda: MEDTreeClassifier(edge_prior=prior).fit(X, y),
        r"edge_prior leaves the features in 2 separate parts, \[0, 1\], \[2, 3\]",
    )


def test_an_empty_cell_without_smoothing_names_class_columns_and_letters(rng):
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [0, 0], [0, 1], [1, 1]])
    y = np.array(["all"] * 4 + ["few"] * 3)
    for cls in (MEDTreeClassifier, ChowLiuClassifier):
        refused(
            lambda c=cls: c(ess=0.0).fit(X, y),
            "class 'few' with 3 rows .*columns 0 and 1 empty at letter 1 with letter 0",
        )
    refused(lambda: MEDTreeClassifier("dirichlet", ess=0.0).fit(X, y), "ess=0.0")


def test_one_column_and_one_class_are_refused(rng):
    X, y = categories(rng)
    for cls in (MEDTreeClassifier, ChowLiuClassifier):
        refused(lambda c=cls: c().fit(X[:, :1], y), r"1 feature\(s\): trees join two")
        refused(lambda c=cls: c().fit(X, np.ones(48)), "one class")
    refused(lambda: MEDOutlierDetector("tree").fit(X[:, :1]), r"1 feature\(s\)")


def test_a_share_of_the_largest_margin_needs_fixed_margins(rng):
    X, y = categories(rng)
    for options in ({}, {"parameters": "dirichlet", "margin": "fixed"}):
        refused(
            lambda o=options: MEDTreeClassifier(level="max", **o).fit(X, y),
            "level='max' needs margin='fixed' and parameters='fixed'",
        )


def test_tables_beyond_the_memory_are_refused(rng):
    X = rng.integers(0, 400, size=(400, 3000)) * 1000
    y = np.arange(400) % 2
    with pytest.raises(MemoryError, match="n_categories of 3000 columns"):
        MEDTreeClassifier().fit(X, y)
