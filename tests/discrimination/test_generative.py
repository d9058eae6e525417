"""Generative classifiers: maps, Bayes limits, biases, published gains, nets."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from oracles.block_cases import agree
from problems import categories, two_gaussians
from refusals import refused

import maxent
from maxent import (
    MEDBayesNetClassifier,
    MEDGaussianClassifier,
    MEDOutlierDetector,
    MEDTreeClassifier,
)
from maxent.datasets import load_crabs
from maxent.discrimination import (
    ExponentialMargin,
    GaussianMargin,
    _generative_base,
    generative,
)
from maxent.discrimination._generative_base import (
    least_errors_bias,
    weighted_percentile,
)
from maxent.discrimination.duals.block_dual import solve_blocks
from maxent.discrimination.duals.class_pairs import MulticlassRows, class_maps
from maxent.families import NormalInverseWishart

# ------------------------------------------------------------------------------- maps


def test_the_maps_of_two_classes_are_the_signs_of_the_labels(rng):
    codes = rng.permutation(np.arange(12) % 2)
    rows = MulticlassRows(codes, 2, ExponentialMargin(), np.ones(12))
    y = np.where(codes == 1, 1.0, -1.0)
    zero, one = class_maps(rows)
    np.testing.assert_array_equal(one.toarray(), np.diag(y))
    np.testing.assert_array_equal(zero.toarray(), np.diag(-y))


@pytest.mark.parametrize("m", [2, 3, 5])
def test_the_maps_give_the_right_class_what_they_take_from_the_wrong(m, rng):
    codes = rng.permutation(np.arange(15) % m)
    rows = MulticlassRows(codes, m, ExponentialMargin(), np.ones(15))
    lam = rng.random(15 * (m - 1))
    want = np.zeros((15, m))
    for value, t, wrong in zip(lam, rows.example, rows.wrong, strict=True):
        assert wrong != codes[t]
        want[t, codes[t]] += value
        want[t, wrong] -= value
    found = np.column_stack([A @ lam for A in class_maps(rows)])
    np.testing.assert_allclose(found, want, rtol=1e-14)
    # the bias sees every constraint through the same weights
    np.testing.assert_allclose(rows.incidence().T @ lam, want.sum(axis=0)[:-1])


# ----------------------------------------------------------------------- Bayes limits


@pytest.mark.parametrize(
    ("model", "remedy"),
    [
        (MEDGaussianClassifier(C=0.02), "raise C or level"),
        (MEDBayesNetClassifier(C=0.02), "raise C or level"),
        (MEDTreeClassifier(C=0.02), "raise C or level"),
        (MEDTreeClassifier(margin=ExponentialMargin(0.02)), "raise the rate of margin"),
    ],
    ids=str,
)
def test_a_small_rate_is_named_where_margins_below_the_level_ask_for_nothing(
    model, remedy, rng
):
    X, y = categories(rng)
    X = X + 0.1 * rng.normal(size=X.shape) if hasattr(model, "prior") else X
    words = rf"every margin is above -\d.* of level [^ ]+ and (C|rate)=0.02, .*{remedy}"
    with pytest.warns(UserWarning, match=words):
        model.fit(X, y)


def test_mean_and_level_of_the_margin_prior_are_told_apart():
    y = np.arange(60) % 2
    X = np.column_stack([y] * 200)
    least = MEDBayesNetClassifier(level=-1.0).fit(X, y).decision_function(X)[1]
    with pytest.warns(UserWarning, match="mean of the margin prior") as caught:
        MEDBayesNetClassifier(level=least + 0.02, C=10.0).fit(X, y)
    text = str(caught[0].message)
    found = re.search(r"above ([\d.]+), .* level ([\d.]+) and C=10", text)
    mean, level = found.groups()
    assert 1000 < float(mean) < float(level) < float(mean) + 1


@pytest.mark.parametrize("kind", ["gaussian", "net"])
def test_nothing_asked_is_the_bayes_classifier(kind, rng):
    X, y = two_gaussians(rng) if kind == "gaussian" else categories(rng)
    cls = MEDGaussianClassifier if kind == "gaussian" else MEDBayesNetClassifier
    model = cls(level=-1e3)
    with pytest.warns(UserWarning, match="every margin is above the level -1e"):
        model.fit(X, y)
    assert model.objective_ == 0.0 and len(model.support_) == 0
    assert model.duality_gap_ <= 1e-12 and model.intercept_[0] == 0.0
    prior = (
        NormalInverseWishart.improper(3)
        if kind == "gaussian"
        else model.posteriors_[0].__class__(1.0, None, [3] * 4)
    )
    found = [prior.posterior(X[y == k]).expected_log_prob(X) for k in (0, 1)]
    agree(model.decision_function(X), found[1] - found[0], 1e-12, 10.0)


def test_margins_on_the_support_are_those_the_prior_pays_for(rng):
    X, y = two_gaussians(rng)
    # half of the margins of the Bayes posteriors miss this level
    model = MEDGaussianClassifier(C=2.0, percentile=50, tol=1e-11).fit(X, y)
    sign = np.where(y == 1, 1.0, -1.0)
    margins = sign * model.decision_function(X)
    prior = ExponentialMargin(2.0, model.level_)
    lam = np.zeros(len(y))
    lam[model.support_] = np.abs(model.dual_coef_[0])
    on = lam > 1e-6
    agree(margins[on], prior.mean(lam[on]), 1e-4)
    assert (margins[~on] > prior.prior_mean - 1e-4).all()
    assert (np.sign(model.dual_coef_[0]) == sign[model.support_]).all()
    # J is the relative entropy; every row can be priced on its own
    gap = prior.fenchel_young(lam, margins).sum()
    assert gap == pytest.approx(model.duality_gap_, rel=0.05, abs=1e-7)


def test_an_object_as_margin_has_its_own_rate_and_level(rng):
    X, y = two_gaussians(rng)
    one = MEDGaussianClassifier(C=0.5, margin="gaussian", level=4.0).fit(X, y)
    other = MEDGaussianClassifier(margin=GaussianMargin(0.5, 4.0)).fit(X, y)
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
    assert other.level_ == 4.0


def test_tempering_zero_starts_from_the_prior_alone(rng):
    X, y = two_gaussians(rng)
    prior = NormalInverseWishart(np.zeros(3), 2.0, 6.0, 3.0 * np.eye(3))
    with pytest.warns(UserWarning, match="above the level"):
        model = MEDGaussianClassifier(prior=prior, tempering=0.0, level=-9.0).fit(X, y)
    for posterior in model.posteriors_:
        np.testing.assert_allclose(posterior.scale, prior.scale, rtol=1e-14)
    assert (model.decision_function(X) == 0).all()


def test_the_leave_one_out_bound_holds_where_it_is_given(rng):
    X, y = two_gaussians(rng, 24)
    prior = NormalInverseWishart(np.zeros(3), 3.0, 12.0, 12.0 * np.eye(3))
    options = {"prior": prior, "tempering": 0.0, "level": 2.0, "tol": 1e-10}
    model = MEDGaussianClassifier(**options).fit(X, y)
    errors = 0
    for t in range(24):
        rest = np.arange(24) != t
        one = MEDGaussianClassifier(**options).fit(X[rest], y[rest])
        wrong = one.predict(X[t : t + 1])[0] != y[t]
        errors += wrong
        if t not in model.support_:
            assert not wrong
            agree(one.decision_function(X), model.decision_function(X), 1e-3)
    assert errors / 24 <= model.loo_bound_ == len(model.support_) / 24
    assert np.isnan(MEDGaussianClassifier(level=2.0).fit(X, y).loo_bound_)
    given = MEDGaussianClassifier(
        prior=prior, tempering=0.0, margin=ExponentialMargin(3.0, 2.0), tol=1e-10
    ).fit(X, y)
    assert given.loo_bound_ == model.loo_bound_


@pytest.mark.parametrize(
    "change",
    [
        {"level": None, "percentile": 90},
        {"tempering": 1.0},
        {"prior": "weak"},
        {"bias": "train_error"},
        {"level": -0.5},
        {"margin": "logistic"},
        {"max_iter": 1},
    ],
    ids=lambda change: next(iter(change.values())),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_bound_is_given_where_none_is_proved(change, rng):
    """Rows shaped prior, level or bias; the side or the bias of a row is open."""
    X, y = two_gaussians(rng, 24)
    prior = NormalInverseWishart(np.zeros(3), 3.0, 12.0, 12.0 * np.eye(3))
    options = {"prior": prior, "tempering": 0.0, "level": 2.0}
    assert MEDGaussianClassifier(**options).fit(X, y).loo_bound_ > 0
    assert np.isnan(MEDGaussianClassifier(**options | change).fit(X, y).loo_bound_)


# ------------------------------------------------------------------------------- bias


def least_errors(scores, y, weight):
    """Smallest weight of errors over every threshold, by trying them all."""
    s = np.unique(scores)
    tries = np.concatenate([[s[0] - 1], 0.5 * (s[1:] + s[:-1]), [s[-1] + 1]])
    return min(weight[np.sign(scores - b) != y].sum() for b in tries)


def test_the_training_error_bias_makes_the_fewest_errors(rng):
    for n in (2, 3, 8, 30):
        for _ in range(20):
            scores = rng.normal(size=n).round(1)  # ties
            y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
            w = rng.integers(1, 4, size=n).astype(float)
            b = least_errors_bias(scores, y, w)
            assert w[np.sign(scores + b) != y].sum() == least_errors(scores, y, w)


def test_the_training_error_bias_is_in_the_middle_of_the_widest_gap():
    scores = np.array([-3.0, -1.0, 1.0, 5.0, 6.0])
    y = np.array([-1.0, -1.0, -1.0, 1.0, 1.0])
    assert least_errors_bias(scores, y, np.ones(5)) == -3.0
    # one error in the gap (-1, 1) as in (5, 6), which is narrower or wider
    y = np.array([-1.0, -1.0, 1.0, -1.0, 1.0])
    assert least_errors_bias(scores, y, np.ones(5)) == 0.0
    scores[4] = 9.0
    assert least_errors_bias(scores, y, np.ones(5)) == -7.0


def test_both_biases_share_the_discriminant(rng):
    X, y = two_gaussians(rng)
    flat = MEDGaussianClassifier().fit(X, y)
    least = MEDGaussianClassifier(bias="train_error").fit(X, y)
    moved = least.decision_function(X) - flat.decision_function(X)
    agree(moved, np.full(60, moved[0]), 1e-9, 1.0)
    assert least.score(X, y) >= flat.score(X, y)
    ratio = flat.decision_function(X) - flat.intercept_[0]
    sign = np.where(y == 1, 1.0, -1.0)
    assert 60 - 60 * least.score(X, y) == pytest.approx(
        least_errors(ratio, sign, np.ones(60))
    )


def test_the_percentile_is_that_of_repeated_values(rng):
    values, w = rng.normal(size=20).round(1), rng.integers(1, 4, size=20)
    for q in (0.0, 10.0, 25.0, 50.0, 100.0):
        found = weighted_percentile(values, w.astype(float), q)
        many = np.sort(np.repeat(values, w))
        rank = max(int(np.ceil(q / 100.0 * len(many))), 1)
        assert found == many[rank - 1]


# -------------------------------------------------------------------------- published


def crabs_split(rng, X, groups):
    train = np.concatenate(
        [rng.permutation(np.flatnonzero(groups == g))[:20] for g in np.unique(groups)]
    )
    return train, np.setdiff1d(np.arange(len(X)), train)


def test_crabs_training_errors_fall_and_test_errors_fall_by_about_one(rng):
    """JMJ (1999), Table 1, over splits: 20 crabs of every species and sex train."""
    X, y = load_crabs(return_X_y=True)
    species = np.repeat([0, 1], 100)  # the file is in order of species
    groups = [f"{a}{b}" for a, b in zip(species, y)]
    groups = np.array(groups)
    assert [np.sum(groups == g) for g in np.unique(groups)] == [50] * 4
    gains, train_bayes, train_med = [], [], []
    for _ in range(40):
        train, test = crabs_split(rng, X, groups)
        errors = {}
        for level in (None, -1e6):
            model = MEDGaussianClassifier(bias="train_error", level=level)
            if level is None:
                model.fit(X[train], y[train])
            else:
                with pytest.warns(UserWarning, match="above the level"):
                    model.fit(X[train], y[train])
            errors[level] = [
                int(np.sum(model.predict(X[part]) != y[part])) for part in (train, test)
            ]
        train_bayes.append(errors[-1e6][0])
        train_med.append(errors[None][0])
        gains.append(errors[-1e6][1] - errors[None][1])
    assert np.mean(train_med) < np.mean(train_bayes) - 0.5
    # published over 100 splits: 1.05 with a standard error of 0.20, sd 2.0
    assert abs(np.mean(gains) - 1.05) < 3.0 * np.hypot(0.2, 2.0 / np.sqrt(40))


# ------------------------------------------------------------------- structure of nets


def test_parents_let_a_net_see_what_naive_bayes_cannot(rng):
    bits = rng.integers(0, 2, size=(120, 2))
    y = bits[:, 0] ^ bits[:, 1]
    net = MEDBayesNetClassifier(parents=[(), (0,)], level=12.0).fit(bits, y)
    naive = MEDBayesNetClassifier(level=2.0).fit(bits, y)
    assert net.score(bits, y) == 1.0
    assert naive.score(bits, y) < 0.9


def test_unknown_categories_are_left_out_or_refused(rng):
    X, y = categories(rng)
    model = MEDBayesNetClassifier(level=2.0).fit(X, y)
    new = np.array([[0, 1, 9, 1]])
    codes = np.array([[0, 1, -1, 1]])
    want = [p.expected_log_prob(codes)[0] for p in model.posteriors_]
    found = model.decision_function(new)[0]
    assert found == pytest.approx(want[1] - want[0] + model.intercept_[0], rel=1e-12)
    strict = MEDBayesNetClassifier(level=2.0, handle_unknown="error").fit(X, y)
    refused(
        lambda: strict.predict(new),
        r"X\[0, 2\] = .*9.* unseen in training; feature 2 .*handle_unknown='ignore'",
    )


def test_values_of_another_type_are_unknown_categories():
    text = np.array([["a", "x"], ["b", "y"], ["a", "y"], ["b", "x"]] * 4)
    y = np.tile([0, 1, 0, 1], 4)
    options = {"level": 6.0}
    for X in (text, text.astype(object)):
        model = MEDBayesNetClassifier(**options).fit(X, y)
        want = model.decision_function(np.array([["a", "?"]]))
        for other in (None, 3, 1.5):
            new = np.array([["a", other]], dtype=object)
            assert model.decision_function(new) == want
            strict = MEDBayesNetClassifier(**options, handle_unknown="error").fit(X, y)
            refused(lambda n=new, m=strict: m.predict(n), r"X\[0, 1\] = .*unseen")
        all_unknown = model.decision_function(np.array([["?", "?"]]))
        assert model.decision_function(np.array([[1, 2]])) == all_unknown
    assert want != all_unknown


def test_columns_of_a_frame_keep_their_types_and_fit_in_a_file(tmp_path):
    import maxent

    frame = pd.DataFrame({"u": ["a", "b", "a", "b"] * 4, "v": [10, 9, 9, 10] * 4})
    model = MEDBayesNetClassifier(level=6.0).fit(frame, np.tile([0, 1], 8))
    assert [c.dtype.kind for c in model.categories_] == ["U", "i"]
    assert model.categories_[1].tolist() == [9, 10]
    maxent.save(model, tmp_path / "net.npz")
    again = maxent.load(tmp_path / "net.npz")
    np.testing.assert_array_equal(
        again.decision_function(frame), model.decision_function(frame)
    )


def test_all_unknown_is_decided_by_the_bias(rng):
    X, y = categories(rng)
    model = MEDBayesNetClassifier(level=2.0).fit(X, y)
    assert model.decision_function(np.full((1, 4), 7))[0] == model.intercept_[0]


# ------------------------------------------------------------------------ all priors


def test_the_multipliers_of_a_hinge_end_at_c(rng):
    data = {
        MEDGaussianClassifier: two_gaussians(rng),
        MEDBayesNetClassifier: categories(rng),
        MEDTreeClassifier: categories(rng),
        MEDOutlierDetector: (two_gaussians(rng)[0], None),
    }
    for (cls, (X, y)), C in itertools.product(data.items(), (0.3, 2.0)):
        lam = np.abs(cls(margin="hinge", C=C, level=20.0).fit(X, y).dual_coef_)
        assert lam.max() == pytest.approx(C, rel=1e-6)
        assert (lam > 0.99 * C).sum() > 1


def test_every_margin_prior_trains_both_kinds(rng):
    names = ("exponential", "erlang", "laplace", "gaussian", "logistic", "hinge")
    data = {
        MEDGaussianClassifier: two_gaussians(rng),
        MEDBayesNetClassifier: categories(rng),
    }
    for (cls, (X, y)), name in itertools.product(data.items(), names):
        model = cls(margin=name, C=3.0, level=2.0).fit(X, y)
        assert model.converged_ and model.duality_gap_ <= 1e-8 * (1 + model.objective_)
        assert model.objective_ > 0 and model.n_iter_ == len(model.objective_history_)


# ----------------------------------------------------------------------- many classes


def many_classes(rng, n_classes=8, n_features=12):
    """Categories of classes of 12 rows and rare ones, whose columns may be missing."""
    sizes = np.full(n_classes, 12)
    sizes[-3:] = [1, 2, 4]
    y = np.repeat(np.arange(n_classes), sizes)
    tables = rng.dirichlet(np.full(4, 0.5), size=(n_classes, n_features))
    draws = rng.random((len(y), n_features, 1))
    X = (draws > tables.cumsum(axis=2)[y][:, :, :-1]).sum(axis=2)
    missing = (y >= n_classes - 3)[:, None] & (rng.random(n_features) < 0.5)
    X[missing] = 4
    return X, y


@pytest.mark.parametrize("margin", ["exponential", "gaussian", "hinge"])
def test_products_and_factors_of_the_hessian_give_one_net(margin, monkeypatch, rng):
    X, y = many_classes(rng)
    fits = []
    for work in (0.0, np.inf):
        monkeypatch.setattr(generative, "_FACTOR_WORK", work)
        model = MEDBayesNetClassifier(margin=margin, percentile=50).fit(X, y)
        assert model.converged_ and model.objective_ > 0
        assert np.isfinite(model.objective_history_).all() or work
        fits.append(model)
    by_products, by_factors = fits
    # both are below the optimum, by their gaps at most
    apart = by_products.objective_ - by_factors.objective_
    assert -by_products.duality_gap_ <= apart + 1e-12 * by_factors.objective_
    assert apart <= by_factors.duality_gap_ + 1e-12 * by_factors.objective_


def test_many_classes_are_solved_by_products(monkeypatch, rng):
    seen = []

    def watched(blocks, *args, **options):
        seen.append(all(block.cheap_products for block in blocks))
        return solve_blocks(blocks, *args, **options)

    monkeypatch.setattr(_generative_base, "solve_blocks", watched)
    X, y = many_classes(rng)
    MEDBayesNetClassifier(percentile=50).fit(X, y)
    monkeypatch.setattr(generative, "_FACTOR_WORK", 1e6)
    MEDBayesNetClassifier(percentile=50).fit(X, y)
    assert seen == [False, True]


@pytest.mark.parametrize("kind", ["gaussian", "net"])
def test_a_hinge_without_a_level_starts(kind, rng):
    """Neither level nor potential has a slope at zero, only the classes have."""
    y = np.arange(80) % 2
    X = rng.normal(size=(80, 3)) + 0.6 * y[:, None]
    model = MEDGaussianClassifier(margin="hinge", level=0.0)
    if kind == "net":
        X, model = (X > 0).astype(int), MEDBayesNetClassifier(margin="hinge", level=0.0)
    model.fit(X, y)
    assert model.converged_ and model.objective_ > 0.1


@pytest.mark.parametrize("kind", ["gaussian", "bayesnet"])
def test_class_weights_move_costs_and_not_the_level(kind, rng):
    y = (rng.random(300) < 0.15).astype(int)
    X = rng.normal(size=(300, 3)) + y[:, None]
    if kind == "bayesnet":
        X = (X > 0).astype(int)
    make = {"gaussian": MEDGaussianClassifier, "bayesnet": MEDBayesNetClassifier}[kind]
    fits = [make(class_weight={0: 1, 1: w}).fit(X, y) for w in (1, 2, 4, 8)]
    assert {fit.level_ for fit in fits} == {make().fit(X, y).level_}
    counts = [int(fit.predict(X).sum()) for fit in fits]
    assert counts == sorted(counts) and counts[-1] > counts[0]


def test_parents_are_named_by_the_columns_of_a_data_frame(rng, tmp_path):
    X = rng.integers(0, 3, size=(90, 3))
    y = ((X[:, 0] + X[:, 1]) % 2).astype(int)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    want = MEDBayesNetClassifier(parents=[(), (0,), (0, 1)]).fit(X, y)
    for parents in ({"b": ["a"], "c": ["a", "b"]}, [(), ("a",), ("a", 1)]):
        model = MEDBayesNetClassifier(parents=parents).fit(frame, y)
        np.testing.assert_array_equal(
            model.decision_function(frame), want.decision_function(X)
        )
        maxent.save(model, tmp_path / "m")
        again = maxent.load(tmp_path / "m")
        np.testing.assert_array_equal(again.predict(frame), want.predict(X))
    for parents, data, match in (
        ({"b": ["d"]}, frame, "names 'd', which is no column of X"),
        ({"d": ["a"]}, frame, "names 'd', which is no column of X"),
        ({"b": ["a"]}, X, "none: X is no data frame"),
        ({"b": "a"}, frame, r"parents\[1\]='a' must be a tuple"),
        ({"b": ["a"], "a": ["b"]}, frame, "cycle"),
    ):
        with pytest.raises(ValueError, match=match):
            MEDBayesNetClassifier(parents=parents).fit(data, y)


def test_numbers_that_are_no_features_are_refused_as_keys_of_parents(rng):
    X = rng.integers(0, 2, size=(40, 3))
    y = X[:, 0] ^ (rng.random(40) < 0.2)
    want = MEDBayesNetClassifier(parents=[(), (0,), ()]).fit(X, y)
    found = MEDBayesNetClassifier(parents={1: (0,)}).fit(X, y)
    np.testing.assert_array_equal(found.decision_function(X), want.decision_function(X))
    for key in (3, -1, 1.5, True):
        with pytest.raises(ValueError, match=r"has the key .* numbers from 0 to 2"):
            MEDBayesNetClassifier(parents={key: (0,)}).fit(X, y)


def test_predictive_biases_are_shares_of_rows_times_class_weights(rng):
    X, y = two_gaussians(rng, 60)
    own = {"likelihood": "predictive", "prior": "weak"}
    plain = MEDGaussianClassifier(**own).fit(X, y)
    costly = MEDGaussianClassifier(class_weight={0: 1.0, 1: 3.0}, **own).fit(X, y)
    shift = costly.intercept_ - plain.intercept_
    np.testing.assert_allclose(shift, np.log(3.0))
