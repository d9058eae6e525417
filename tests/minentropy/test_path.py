"""alpha_path: each order starts from the one before; nothing else changes."""

import itertools
import re

import numpy as np
import pytest

from maxent import MEDClassifier
from maxent.minentropy import M3EClassifier, M3EModel, alpha_path
from maxent.minentropy._starts import PATH


def bags(rng, n=40, H=4, p=2, shift=3.0):
    X, y = rng.standard_normal((n, H, p)), np.arange(n) % 2
    X[y == 1, rng.integers(H, size=(y == 1).sum())] += shift
    return X, y


def objective(model, X, y, w):
    """f(w) at the order of the model, by the definition."""
    probe = M3EClassifier(model.alpha, model.C)
    probe.fit_intercept, probe.classes_ = False, model.classes_
    probe.coef_, probe.intercept_ = w[None], np.zeros(1)
    probe.n_features_in_ = X.shape[2]
    side = np.where(y == 1, 1.0, -1.0)
    slack = np.maximum(1.0 - side * probe.decision_function(X), 0.0)
    return 0.5 * w @ w + model.C * slack.mean()


def test_every_order_starts_from_the_one_before(rng):
    X, y = bags(rng)
    # the constant is a feature: through zero, all bags may get one label
    X = np.concatenate([X, np.ones((*X.shape[:2], 1))], axis=2)
    estimator = M3EClassifier(C=20.0, init="path", fit_intercept=False)
    path = alpha_path(estimator, X, y, [0.0, 0.5, 2.0, np.inf])
    assert [model.alpha for model in path] == [0.0, 0.5, 2.0, np.inf]
    assert not hasattr(estimator, "coef_") and estimator.alpha == np.inf
    for before, model in itertools.pairwise(path):
        assert [name for name, *_ in model.restarts_] == ["before"]
        start = objective(model, X, y, before.coef_[0])
        np.testing.assert_allclose(model.objective_history_[0], start, rtol=1e-9)
        assert model.objective_ <= start
        end = objective(model, X, y, model.coef_[0])
        np.testing.assert_allclose(model.objective_, end, rtol=1e-9)


def test_random_starts_are_made_besides(rng):
    X, y = bags(rng, n=24)
    estimator = M3EClassifier(C=5.0, n_init=2, random_state=3)
    first, second = alpha_path(estimator, X, y, [0.5, 4.0])
    names = [name for name, *_ in second.restarts_]
    assert names == ["before", "random", "random"]
    assert second.objective_ == min(f for _, f, _ in second.restarts_)
    alone = M3EClassifier(0.5, 5.0, n_init=2, random_state=3).fit(X, y)
    np.testing.assert_array_equal(first.coef_, alone.coef_)


def test_scale_of_the_weights_and_constants_are_passed_on(rng):
    # with a temperature the learners have other units, and constants are weights too
    X, y = bags(rng, n=24)
    options = {"temperature": 2.0, "intercept_scaling": 3.0, "init": "path"}
    first, second = alpha_path(M3EClassifier(C=5.0, **options), X, y, [1.0, 1.01])
    near = second.objective_history_[0]
    np.testing.assert_allclose(near, first.objective_, rtol=0.02)


def test_one_order_for_each_output(rng):
    psi, y = rng.standard_normal((20, 2, 3, 4)), np.arange(20) % 2
    path = alpha_path(M3EModel(init="zero"), psi, y, [[0.0, 0.0], [0.0, 2.0]])
    np.testing.assert_array_equal(path[1].alpha, [0.0, 2.0])
    assert path[1].restarts_[0][0] == "before"


def test_default_orders_end_at_infinity(rng):
    X, y = bags(rng, n=20)
    path = alpha_path(M3EClassifier(C=2.0, init="path"), X, y)
    assert [model.alpha for model in path] == list(PATH)
    whole = M3EClassifier(C=2.0, init="path").fit(X, y)
    # the path inside `fit` is solved more coarsely; both end at a stationary point
    assert path[-1].converged_ and whole.converged_


@pytest.mark.parametrize("seed", [1, 2])
def test_the_path_leaves_zero_where_averages_tell_little(seed):
    # e_1(0) / C is between 1e-3, a trap, and 1e-2, the tolerance of orders on the way
    rng = np.random.default_rng(seed)
    X, y = bags(rng, n=60, H=40, p=3, shift=[6.0, 0.0, 0.0])
    path = M3EClassifier(C=3.0, init="path").fit(X, y)
    random = M3EClassifier(C=3.0, init="random", n_init=2, random_state=0).fit(X, y)
    assert [name for name, *_ in path.restarts_] == ["path"]
    assert path.objective_history_[0] < 0.8 * path.C  # f(0) is C
    assert path.objective_ <= 1.001 * random.objective_
    assert path.score(X, y) > 0.8


@pytest.mark.parametrize(
    "estimator, alphas, words",
    [
        (M3EClassifier(), [0.0, -1.0], "alpha=-1 must be an order from 0"),
        (M3EClassifier(), [np.nan], "alpha=nan must be an order"),
        (M3EClassifier(), [], "alphas has shape (0,)"),
        (M3EClassifier(), 1.0, "alphas has shape ()"),
        (M3EClassifier(init="random"), [0.0], "init='random' leaves no path"),
        (M3EClassifier(init=np.zeros(3)), [0.0], "leaves no path"),
        (M3EClassifier(solver="prox"), [0.0, np.inf], "no derivative at alpha=inf"),
        (MEDClassifier(), [0.0], "estimator=MEDClassifier() must be an M3EClassifier"),
    ],
)
def test_bad_input_is_named(estimator, alphas, words, rng):
    X, y = bags(rng, n=8)
    with pytest.raises(ValueError, match=re.escape(words)):
        alpha_path(estimator, X, y, alphas)


def test_the_origin_of_the_features_leaves_the_path(rng):
    X, y = rng.standard_normal((60, 5, 2)), np.arange(60) % 2
    X[y == 1, 3] += 4.0
    estimator = M3EClassifier(init="path", random_state=0)
    paths = [alpha_path(estimator, X + c, y, [0.0, 1.0, np.inf]) for c in (0.0, 1e4)]
    for one, other in zip(*paths, strict=True):
        assert one.objective_ == pytest.approx(other.objective_, rel=1e-6)
        assert one.n_iter_ == other.n_iter_
