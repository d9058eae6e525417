"""M3EClassifier: scikit-learn's checks, invariances, masks, weights, refusals."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from maxent.minentropy import M3EClassifier, renyi_score


def bags(rng, n=40, H=5, p=3, K=2):
    """One instance of a bag tells its class; where it is varies."""
    y = np.arange(n) % K
    X = rng.standard_normal((n, H, p))
    place = rng.integers(H, size=n)
    centers = 4.0 * np.eye(K, p) if K > 2 else np.array([np.zeros(p), [4.0] * p])
    X[np.arange(n), place] += centers[y]
    return X, y, place


@pytest.mark.parametrize("alpha", [0.0, 1.0, 4.0, np.inf])
@pytest.mark.parametrize("K", [2, 3])
def test_learns_and_finds_the_instance(alpha, K, rng):
    X, y, place = bags(rng, K=K, n=60)
    model = M3EClassifier(alpha, 50.0, random_state=0, n_init=2).fit(X, y)
    assert model.score(X, y) >= 0.9
    assert np.diff(model.objective_history_).max(initial=-1) <= 0
    told = y > 0 if K == 2 else y >= 0
    assert (model.predict_hidden(X, y)[told] == place[told]).mean() >= 0.9


@pytest.mark.parametrize("alpha", [0.0, 1.0, 4.0, np.inf, [0.5, 2.0, np.inf]])
def test_scores_are_renyi_scores_of_instances(alpha, rng):
    X, y, _ = bags(rng, K=3)
    model = M3EClassifier(alpha, 5.0, random_state=0, n_init=1, tol=1e-2).fit(X, y)
    S = X @ model.coef_.T + model.intercept_  # (n, H, K)
    F = renyi_score(S, np.broadcast_to(alpha, 3), axis=1)
    np.testing.assert_allclose(model.decision_function(X), F, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), F.argmax(axis=1))
    best = S[np.arange(len(X)), :, model.predict(X)].argmax(axis=1)
    np.testing.assert_array_equal(model.predict_hidden(X), best)
    for row, own in zip(model.hidden_proba(X, y), S[np.arange(len(X)), :, y]):
        e = np.exp(own - own.max())
        np.testing.assert_allclose(row, e / e.sum(), rtol=1e-10)


def test_lists_of_bags_are_like_arrays(rng):
    X, y, _ = bags(rng)
    one = M3EClassifier(2.0, 5.0, random_state=0, n_init=1).fit(X, y)
    other = M3EClassifier(2.0, 5.0, random_state=0, n_init=1).fit(list(X), y)
    np.testing.assert_array_equal(one.coef_, other.coef_)
    ragged = [bag[: 2 + i % 3] for i, bag in enumerate(X)]
    model = M3EClassifier(2.0, 5.0, random_state=0, n_init=1).fit(ragged, y)
    np.testing.assert_array_equal(
        model.decision_function(ragged)[:3], model.decision_function(ragged[:3])
    )


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("alpha", [0.5, np.inf])
def test_weight_two_is_the_bag_twice_and_zero_its_absence(alpha, class_weight, rng):
    X, y, _ = bags(rng, n=24)
    weight = rng.integers(0, 3, size=24).astype(float)
    weight[:2] = 1.0
    weight[y == 1] *= 2.0
    rows = np.repeat(np.arange(24), weight.astype(int))
    options = {"init": "path", "tol": 1e-7, "max_iter": 1000, "qp_tol": 1e-10}
    options["class_weight"] = class_weight
    one = M3EClassifier(alpha, 5.0, **options).fit(X, y, sample_weight=weight)
    other = M3EClassifier(alpha, 5.0, **options).fit(X[rows], y[rows])
    np.testing.assert_allclose(one.objective_, other.objective_, rtol=1e-5)


def test_order_of_samples_and_instances_does_not_matter(rng):
    X, y, _ = bags(rng, n=24)
    rows, places = rng.permutation(24), rng.permutation(5)
    options = {"init": "path", "tol": 1e-7, "max_iter": 1000, "qp_tol": 1e-10}
    one = M3EClassifier(1.0, 5.0, **options).fit(X, y)
    other = M3EClassifier(1.0, 5.0, **options).fit(X[rows][:, places], y[rows])
    np.testing.assert_allclose(one.objective_, other.objective_, rtol=1e-5)


def test_instances_that_the_mask_leaves_out_have_no_say(rng):
    X, y, place = bags(rng)
    mask = np.zeros(X.shape[:2], dtype=bool)
    mask[np.arange(len(X)), place] = True
    model = M3EClassifier(np.inf, 50.0, random_state=0, n_init=1)
    model.fit(X, y, hidden_mask=mask)
    assert (model.predict_hidden(X, y)[y == 1] == place[y == 1]).mean() > 0.9
    wrong = mask.copy()
    wrong[3] = False
    with pytest.raises(ValueError, match=r"hidden_mask\[3\] allows no hidden value"):
        model.fit(X, y, hidden_mask=wrong)
    with pytest.raises(ValueError, match=r"hidden_mask\[0\] has shape \(2,\)"):
        model.fit(X, y, hidden_mask=[np.ones(2, bool)] * len(X))


def test_class_weights_and_loss_matrix_move_the_boundary(rng):
    X, y, _ = bags(rng, n=60)
    X = X + 1.5 * rng.standard_normal(X.shape)
    plain = M3EClassifier(1.0, 20.0, random_state=0, n_init=1).fit(X, y)
    heavy = clone(plain).set_params(class_weight={0: 1.0, 1: 3.0}).fit(X, y)
    assert heavy.predict(X).sum() >= plain.predict(X).sum()
    costly = clone(plain).set_params(loss_matrix=[[0, 1], [3, 0]]).fit(X, y)
    assert costly.predict(X).sum() >= plain.predict(X).sum()


def test_temperature_is_another_order_at_another_scale(rng):
    X, y, _ = bags(rng)
    b, a = 2.0, 3.0
    options = {"init": "path", "tol": 1e-7, "max_iter": 1000, "qp_tol": 1e-10}
    one = M3EClassifier(a, 4.0, temperature=b, **options).fit(X, y)
    other = M3EClassifier(
        1 + (a - 1) / b, 4.0 * b, loss_matrix=b * (1 - np.eye(2)), **options
    ).fit(X, y)
    np.testing.assert_allclose(one.objective_, other.objective_ / b**2, rtol=1e-5)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


def test_grid_search_over_orders(rng):
    X, y, _ = bags(rng)
    search = GridSearchCV(
        M3EClassifier(n_init=1, random_state=0), {"alpha": [0.0, np.inf]}, cv=2
    ).fit(X, y)
    assert search.best_score_ > 0.5


def test_positive_bags_are_those_of_the_positive_label(rng):
    X, y, _ = bags(rng)
    model = M3EClassifier(1.0, pos_label=0, n_init=1, random_state=0).fit(X, 1 - y)
    other = M3EClassifier(1.0, n_init=1, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.coef_, other.coef_)
    np.testing.assert_array_equal(model.predict(X), 1 - other.predict(X))


def test_trap_is_told(rng):
    X = np.zeros((30, 4, 1))
    X[::2, 0], X[::2, 1] = 3.0, -3.0
    model = M3EClassifier(2.0, 1e-3, fit_intercept=False, init="zero", n_init=1)
    with pytest.warns(UserWarning, match="w = 0 is nearly stationary at C=0.001"):
        model.fit(X, np.arange(30) % 2)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"alpha": -1.0}, "alpha=-1"),
        ({"alpha": np.nan}, "alpha=nan"),
        ({"alpha": [1.0, 2.0, 3.0]}, "alpha has shape"),
        ({"C": 0.0}, "C=0.0"),
        ({"mode": "bags"}, "mode='bags'"),
        ({"pos_label": 7}, r"pos_label=7 is none of the labels \[0, 1\]"),
        ({"pos_label": 0, "mode": "blocks"}, "pos_label=0 is for one-sided models"),
        ({"init": "best"}, "init='best'"),
        ({"init": [1.0]}, r"init=\[1.0\] must be one of auto, zero, .* or 4 finite"),
        ({"n_init": 0}, "n_init=0"),
        ({"solver": "prox"}, "solver='prox'"),
        ({"solver": "latent_svm", "alpha": 1.0}, "needs alpha=inf"),
        ({"temperature": 0.0}, "temperature=0.0"),
        ({"intercept_scaling": -1.0}, "intercept_scaling=-1.0"),
        ({"tol": 0}, "tol=0"),
        ({"loss_matrix": np.ones((2, 2))}, r"loss_matrix\[0, 0\]=1 is on the diagonal"),
        ({"class_weight": {2: 1.0}}, "has the key 2, which is none"),
        ({"loss_matrix": np.ones((3, 3))}, "loss_matrix has shape"),
        ({"loss_matrix": [[0, -1], [1, 0]]}, r"loss_matrix\[0, 1\]=-1"),
    ],
)
def test_impossible_parameters_are_refused(change, message, rng):
    X, y, _ = bags(rng, n=6)
    with pytest.raises(ValueError, match=message):
        M3EClassifier(**change).fit(X, y)


@pytest.mark.parametrize(
    "X, message",
    [
        ([np.ones((2, 3)), np.ones((0, 3))], r"X\[1\] has no instance"),
        ([np.ones((2, 3)), np.ones((2, 4))], r"X\[1\] has 4 features"),
        ([np.ones((2, 3)), np.full((1, 3), np.nan)], r"X\[1\]\[0, 0\]=nan"),
        (np.ones((3, 2, 3)), "X has 3 samples and y 2"),
        (np.ones((2, 2, 3, 4)), r"X has shape \(2, 2, 3, 4\); bags are .*X.reshape"),
    ],
)
def test_impossible_bags_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        M3EClassifier().fit(X, [0, 1])


def test_sparse_bags_are_refused_by_name(rng):
    X, y, _ = bags(rng, n=8)
    model = M3EClassifier(1.0, n_init=1, random_state=0).fit(X, y)
    sparse = [sp.csr_array(bag) for bag in X]
    for run in (lambda: M3EClassifier().fit(sparse, y), lambda: model.predict(sparse)):
        with pytest.raises(TypeError, match=r"X\[0\] is sparse; make it dense"):
            run()


def test_other_features_are_refused(rng):
    X, y, _ = bags(rng, n=8)
    model = M3EClassifier(1.0, n_init=1, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="X has 2 features"):
        model.predict(X[:, :, :2])
    with pytest.raises(ValueError, match="must hold 8 of the labels"):
        model.predict_hidden(X, np.full(8, 5))


@pytest.mark.parametrize(
    ("y", "told"),
    [
        ([1, None, 1, 1, None, 1], r"y\[1\]=None"),
        ([1, "a", 2, 1, "a", 2], r"y mixes labels of several types \(y\[0\]=1 is int"),
        ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], "holds numbers that are not integers"),
    ],
)
def test_labels_that_are_refused_are_named(y, told):
    y = np.array(y, dtype=None if isinstance(y[0], float) else object)
    with pytest.raises(ValueError, match=told):
        M3EClassifier().fit(np.zeros((6, 2, 1)), y)


ORIGINS = [100.0, np.array([1e8, -1e6, 0.0]), 1e12]


@pytest.mark.parametrize(
    "K, alpha, origin",
    [
        (2 + (i + j) % 2, alpha, origin)
        for i, origin in enumerate(ORIGINS)
        for j, alpha in enumerate([1.0, np.inf])
    ],
)
def test_the_origin_of_the_features_changes_the_constant_alone(K, alpha, origin, rng):
    X, y, _ = bags(rng, n=45, K=K)
    w = rng.gamma(1.0, size=len(y))
    # entries far from zero are rounded, and so are scores of their instances
    digits = 1e-6 + 20 * np.finfo(float).eps * np.max(np.abs(origin))
    options = {"init": "path", "random_state": 0, "intercept_scaling": 3.0}
    plain = M3EClassifier(alpha, **options).fit(X, y, sample_weight=w)
    moved = M3EClassifier(alpha, **options).fit(X + origin, y, sample_weight=w)
    assert plain.converged_ and moved.converged_
    assert moved.objective_ == pytest.approx(plain.objective_, rel=1e2 * digits)
    np.testing.assert_allclose(moved.coef_, plain.coef_, atol=1e3 * digits)
    scores = plain.decision_function(X)
    atol = 1e3 * digits
    np.testing.assert_allclose(moved.decision_function(X + origin), scores, atol=atol)


def test_five_classes_away_from_zero_are_told_apart(rng):
    centres = np.array([[0, 0], [4, 0], [0, 4], [4, 4], [2, 2]])
    y = np.arange(150) % 5
    X = centres[y] + rng.standard_normal((150, 2))
    fits = [M3EClassifier(random_state=0).fit(X + origin, y) for origin in (0.0, 100.0)]
    assert fits[0].objective_ == pytest.approx(fits[1].objective_, rel=1e-6)
    assert fits[1].score(X + 100.0, y) >= 0.75


def test_the_mean_is_of_the_instances_that_are_there(rng):
    X, y, _ = bags(rng)
    mask = np.ones(X.shape[:2], dtype=bool)
    mask[:, 0] = False
    options = {"init": "path", "random_state": 0}
    fits = []
    for origin in (0.0, 1e6):
        missing = X + origin
        missing[:, 0] = np.nan
        fits.append(M3EClassifier(1.0, **options).fit(missing, y, hidden_mask=mask))
        fits.append(M3EClassifier(1.0, **options).fit(X[:, 1:] + origin, y))
    for fit in fits:
        assert fit.objective_ == pytest.approx(fits[0].objective_, rel=1e-6)


def test_given_weights_are_those_of_the_features_as_they_are(rng):
    X, y, _ = bags(rng, K=3, n=45)
    X = X + 50.0
    options = {"intercept_scaling": 2.0, "random_state": 0, "tol": 1e-6}
    model = M3EClassifier(1.0, init="path", **options).fit(X, y)
    init = np.column_stack([model.coef_, model.intercept_ / 2.0]).ravel()
    again = M3EClassifier(1.0, init=init, **options).fit(X, y)
    assert again.n_iter_ <= 2
    assert again.objective_ == pytest.approx(model.objective_, rel=1e-8)


@pytest.mark.parametrize(
    "alpha, origin", [(1.0, 1e8), (np.inf, 1e12), (1.0, 1e16), (np.inf, 1e16)]
)
def test_features_far_from_zero_without_a_constant_are_no_crash(alpha, origin, rng):
    X, y, _ = bags(rng)
    options = {"fit_intercept": False, "random_state": 0, "n_init": 1}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = M3EClassifier(alpha, **options).fit(X + origin, y)
    told = [w for w in said if issubclass(w.category, ConvergenceWarning)]
    assert model.converged_ is not bool(told)
    assert np.isfinite(model.coef_).all()
