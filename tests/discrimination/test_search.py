"""C and gamma chosen by cross-validation, beside scikit-learn's search."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxent import (
    MEDClassifier,
    MEDClassifierCV,
    MEDRegressor,
    MEDRegressorCV,
    load,
    save,
)
from maxent.discrimination import GaussianMargin
from maxent.discrimination.duals._along_c import AlongC, start_at

C, GAMMA = [30.0, 0.1, 1.0], [0.5, 0.05]


def rows_and_labels(rng, n=120, classes=2):
    y = np.arange(n) % classes
    X = rng.normal(size=(n, 3)) + 1.2 * rng.normal(size=(classes, 3))[y]
    return X, np.array(["a", "b", "c"])[y]


def columns(results, n):
    names = [f"split{k}_test_score" for k in range(n)]
    return np.array([results[name] for name in names])


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", "sparse", "precomputed"])
@pytest.mark.parametrize("margin", ["exponential", "hinge", GaussianMargin(1.0)])
def test_scores_are_those_of_the_search_of_scikit_learn(kernel, classes, margin, rng):
    X, y = rows_and_labels(rng, classes=classes)
    if kernel == "precomputed":
        X = X @ X.T
    if kernel == "sparse":
        X, kernel = sp.csr_array(X), "rbf"
    machine = MEDClassifier(kernel, margin=margin, tol=1e-6)
    grid = {"C": sorted(C)}
    if kernel in ("rbf", "poly"):
        grid["gamma"] = sorted(GAMMA)
    found = MEDClassifierCV(machine, Cs=sorted(C), gammas=sorted(GAMMA), cv=3)
    found.fit(X, y)
    expected = GridSearchCV(machine, grid, cv=3).fit(X, y)
    results = found.cv_results_
    assert results["params"] == expected.cv_results_["params"]
    own, other = columns(results, 3), columns(expected.cv_results_, 3)
    # a row on the boundary may fall on either side
    assert np.abs(own - other).max() <= 1 / 40 + 1e-9
    assert (own == other).mean() >= 0.9
    np.testing.assert_allclose(results["mean_test_score"], own.mean(axis=0))
    np.testing.assert_allclose(results["std_test_score"], own.std(axis=0))
    assert found.best_score_ == results["mean_test_score"].max()
    assert found.best_params_ == results["params"][found.best_index_]
    assert results["rank_test_score"][found.best_index_] == 1
    assert results["converged"].all()
    again = MEDClassifier(kernel, margin=margin, tol=1e-6, **found.best_params_)
    again.fit(X, y)
    np.testing.assert_array_equal(found.predict(X), again.predict(X))
    np.testing.assert_array_equal(
        found.decision_function(X), again.decision_function(X)
    )
    assert found.score(X, y) == again.score(X, y)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("weighted", [False, True])
def test_regression_is_that_of_the_search_of_scikit_learn(kernel, weighted, rng):
    X = rng.normal(size=(90, 2))
    y = 1e3 * (np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=90)) + 1e5
    weight = rng.integers(1, 3, size=90).astype(float) if weighted else None
    machine = MEDRegressor(kernel, epsilon=10.0, tol=1e-6)
    grid = {"C": [10.0, 1e3]} | ({"gamma": GAMMA} if kernel == "rbf" else {})
    cv = KFold(4, shuffle=True, random_state=0)
    found = MEDRegressorCV(machine, Cs=[10.0, 1e3], gammas=GAMMA, cv=cv)
    found.fit(X, y, sample_weight=weight)
    own = columns(found.cv_results_, 4)
    for k, (train, test) in enumerate(cv.split(X)):
        for at, params in enumerate(found.cv_results_["params"]):
            model = MEDRegressor(kernel, epsilon=10.0, tol=1e-6).set_params(**params)
            given = None if weight is None else weight[train]
            model.fit(X[train], y[train], sample_weight=given)
            given = None if weight is None else weight[test]
            score = model.score(X[test], y[test], given)
            assert own[k, at] == pytest.approx(score, abs=1e-4)
    if not weighted:
        expected = GridSearchCV(machine, grid, cv=cv).fit(X, y)
        assert found.best_params_ == expected.best_params_


def test_threads_change_no_bit(rng):
    X, y = rows_and_labels(rng, 200)
    one, two = (
        MEDClassifierCV(Cs=4, gammas=3, cv=4, n_jobs=n_jobs).fit(X, y)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(
        columns(one.cv_results_, 4), columns(two.cv_results_, 4)
    )
    assert one.best_params_ == two.best_params_


def test_values_of_gamma_are_relative_to_the_spread(rng):
    X, y = rows_and_labels(rng)
    small, large = (
        MEDClassifierCV(Cs=[1.0], gammas=5).fit(factor * X, y) for factor in (1.0, 1e3)
    )
    gamma = small.cv_results_["param_gamma"]
    np.testing.assert_allclose(gamma, np.logspace(-2, 2, 5) / (3 * X.var()))
    np.testing.assert_allclose(large.cv_results_["param_gamma"], 1e-6 * gamma)
    np.testing.assert_array_equal(
        columns(small.cv_results_, 5), columns(large.cv_results_, 5)
    )


def test_other_scores_and_probabilities(rng):
    X, y = rows_and_labels(rng)
    machine = MEDClassifier(margin="logistic")
    options = {"cv": StratifiedKFold(3), "scoring": "neg_log_loss"}
    found = MEDClassifierCV(machine, Cs=C, gammas=GAMMA, **options).fit(X, y)
    expected = GridSearchCV(machine, {"C": C, "gamma": GAMMA}, **options).fit(X, y)
    np.testing.assert_allclose(
        columns(found.cv_results_, 3), columns(expected.cv_results_, 3), atol=2e-3
    )
    np.testing.assert_allclose(found.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_allclose(
        np.exp(found.predict_log_proba(X)), found.predict_proba(X)
    )
    assert found.score(X, y) < 0
    assert not hasattr(MEDClassifierCV(), "predict_proba")


def test_equal_scores_choose_the_smallest_C():
    X = np.repeat([[0.0], [1.0]], 20, axis=0)
    y = np.repeat([0, 1], 20)
    found = MEDClassifierCV(Cs=[10.0, 1.0, 100.0], gammas=[1.0], cv=2).fit(X, y)
    assert found.best_score_ == 1.0
    assert found.best_params_["C"] == 1.0


def test_starts_stay_in_their_domain(rng):
    lam = rng.normal(size=50)
    upper = np.abs(lam) / rng.uniform(0.05, 0.99, size=50)
    for ratio in (1.0, 7.0):
        start = start_at(lam, upper, ratio)
        assert (np.abs(start) <= ratio * upper).all()
        assert (np.sign(start) == np.sign(lam)).all()
    np.testing.assert_array_equal(start_at(lam, upper, 1.0), lam)


def test_a_matrix_that_is_too_large_is_not_shared(rng):
    X, y = rows_and_labels(rng, 300)
    few = {"Cs": C, "gammas": GAMMA, "cv": 3}
    small = MEDClassifierCV(MEDClassifier(cache_size=0.1), **few).fit(X, y)
    large = MEDClassifierCV(**few).fit(X, y)
    off = columns(small.cv_results_, 3) - columns(large.cv_results_, 3)
    assert np.abs(off).max() <= 0.011
    along = AlongC(1e-6)
    model = MEDClassifier()
    model._along = along
    model.fit(X, y)
    assert along.gram is None
    assert along.matrix_of(None, "flat") is None


def test_fits_that_do_not_converge_are_told(rng):
    X, y = rows_and_labels(rng)
    machine = MEDClassifier(max_iter=2)
    with pytest.warns(ConvergenceWarning, match="max_iter") as caught:
        found = MEDClassifierCV(machine, Cs=[1.0, 100.0], gammas=[0.1]).fit(X, y)
    assert len(caught) == 1  # and not one for every candidate
    assert not found.cv_results_["converged"].any()


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"Cs": 0}, ValueError, "Cs=0"),
        ({"Cs": [1.0, -1.0]}, ValueError, r"Cs=.*> 0"),
        ({"Cs": []}, ValueError, "Cs"),
        ({"gammas": [np.inf]}, ValueError, "gammas"),
        ({"estimator": MEDRegressor()}, TypeError, "must be a MEDClassifier"),
        ({"estimator": MEDClassifier(kernel="no")}, ValueError, "kernel='no'"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
        (
            {"cv": [(range(60), range(60, 120))], "scoring": lambda *_: np.nan},
            ValueError,
            "gave NaN",
        ),
    ],
)
def test_what_is_refused(options, error, match, rng):
    X, y = rows_and_labels(rng)
    search = MEDClassifierCV(**{"Cs": [1.0], "gammas": [0.1]} | options)
    with pytest.raises(error, match=match), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, y)
    with pytest.raises(NotFittedError):
        search.predict(X)


def test_rows_in_blocks_are_refused(rng):
    from maxent import RowBlocks

    X, y = rows_and_labels(rng)
    blocks = RowBlocks(X, 60)
    with pytest.raises(ValueError, match="rows in memory"):
        MEDClassifierCV().fit(blocks, y)


def test_units_of_the_targets_change_nothing(rng):
    X = rng.normal(size=(80, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=80)
    found = [
        MEDRegressorCV(
            MEDRegressor(margin="hinge", epsilon=0.1 * unit), Cs=4, gammas=3
        ).fit(X, unit * y)
        for unit in (1.0, 2.0**20)
    ]
    np.testing.assert_allclose(
        *(one.cv_results_["mean_test_score"] for one in found), atol=1e-3
    )
    C = found[1].cv_results_["param_C"]
    np.testing.assert_allclose(C, 2.0**20 * found[0].cv_results_["param_C"])


def test_scores_that_the_search_cannot_take_are_refused_before_fits(rng):
    X, y = rows_and_labels(rng)
    with pytest.raises(
        ValueError, match=r"use MEDClassifierCV\(MEDClassifier\(margin='l"
    ):
        MEDClassifierCV(scoring="neg_log_loss").fit(X, y)
    with pytest.raises(TypeError, match="must be one name"):
        MEDClassifierCV(scoring=["accuracy", "roc_auc"]).fit(X, y)


def test_a_pipeline_that_ends_in_a_search_is_saved_by_its_best_machine(rng, tmp_path):
    X, y = rows_and_labels(rng)
    search = MEDClassifierCV(Cs=[1.0], gammas=[0.1], cv=2)
    pipeline = make_pipeline(StandardScaler(), search).fit(X, y)
    with pytest.raises(TypeError, match=r"make_pipeline\(\*pipeline\[:-1\]"):
        save(pipeline, tmp_path / "search.npz")
    best = make_pipeline(*pipeline[:-1], pipeline[-1].best_estimator_)
    save(best, tmp_path / "best.npz")
    np.testing.assert_array_equal(
        load(tmp_path / "best.npz").predict(X), pipeline.predict(X)
    )


def test_a_search_is_saved_by_its_best_machine(rng, tmp_path):
    X, y = rows_and_labels(rng)
    found = MEDClassifierCV(Cs=[1.0], gammas=[0.1], cv=2).fit(X, y)
    with pytest.raises(TypeError, match="save its best_estimator_"):
        save(found, tmp_path / "search.npz")
    save(found.best_estimator_, tmp_path / "best.npz")
    np.testing.assert_array_equal(
        load(tmp_path / "best.npz").predict(X), found.predict(X)
    )
