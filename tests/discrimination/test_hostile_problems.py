"""Hostile problems: degenerate, inseparable, indefinite, far out of scale."""

import math
import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from refusals import outcome, refused
from sklearn.exceptions import ConvergenceWarning

from maxent import MEDClassifier, MEDFeatureSelector
from maxent.discrimination import (
    ExponentialMargin,
    GaussianMargin,
    HingeMargin,
    LogisticMargin,
    solve_dual,
    solve_linear_dual,
)

PRIOR = ExponentialMargin(5.0)
MARGINS = ["exponential", "erlang", "laplace", "gaussian", "logistic", "hinge"]


@pytest.fixture
def data(rng):
    X = rng.normal(size=(24, 3))
    y = np.where(np.arange(24) % 2, 1, -1)
    X[:, 0] += 0.5 * y
    return X, y


# ------------------------------------------------------------- degenerate data


@pytest.mark.parametrize("margin", [*MARGINS, "fixed"])
@pytest.mark.parametrize("solver", ["interior", "smo"])
def test_two_rows(margin, solver):
    model = outcome(
        lambda: MEDClassifier(margin=margin, solver=solver).fit([[0.0], [1.0]], [3, 7])
    )
    assert model.converged_
    assert model.predict([[-1.0], [2.0]]).tolist() == [3, 7]
    assert model.intercept_[0] == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("margin", [*MARGINS, "fixed"])
def test_one_row_per_class(margin):
    model = outcome(
        lambda: MEDClassifier(margin=margin, gamma=1.0).fit(
            [[0.0], [4.0], [9.0]], [5, 2, 8]
        )
    )
    assert model.converged_
    assert model.predict([[0.0], [4.0], [9.0]]).tolist() == [5, 2, 8]


@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize("solver", ["interior", "smo"])
@pytest.mark.parametrize("bias", ["flat", 2.0, None])
def test_degenerate_features(margin, solver, bias):
    labels = [0, 1] * 6 + [1]
    tables = {
        "duplicated rows with contrary labels": np.repeat(
            [[0.0], [1.0]], [6, 7], axis=0
        ),
        "constant features": np.full((13, 2), 3.0),
        "zeros": np.zeros((13, 2)),
        "one useful column among constant ones": np.column_stack(
            [np.ones(13), np.arange(13.0), np.zeros(13)]
        ),
    }
    for name, X in tables.items():
        for kernel in ("rbf", "linear"):
            model = outcome(
                lambda k=kernel, X=X: MEDClassifier(
                    k, C=3.0, margin=margin, solver=solver, bias=bias
                ).fit(X, labels)
            )
            assert model.converged_, (name, kernel)
            assert np.isfinite(model.decision_function(X)).all()


def test_contrary_duplicates_among_three_classes():
    X = np.repeat([[0.0], [1.0], [2.0]], 4, axis=0)
    model = MEDClassifier(margin="gaussian").fit(X, [0, 1, 2, 0] * 3)
    assert model.converged_


@pytest.mark.parametrize("weight", [1e-12, 1e12])
@pytest.mark.parametrize("margin", MARGINS)
def test_weights_of_very_different_size(weight, margin, data):
    X, y = data
    w = np.ones(24)
    w[5] = weight
    model = outcome(lambda: MEDClassifier(margin=margin).fit(X, y, sample_weight=w))
    assert np.isfinite(model.decision_function(X)).all()
    assert model.converged_


@pytest.mark.parametrize("C", [1e-300, 1e-12, 1e9])
def test_extreme_C(C, data):
    X, y = data
    model = outcome(lambda: MEDClassifier(C=C, gamma=0.3).fit(X, y))
    assert model.converged_
    assert np.abs(model.dual_coef_).max() < C


@pytest.mark.parametrize("sharpness", [1 + 1e-12, 1e6, 1e12])
@pytest.mark.parametrize("solver", ["interior", "smo"])
def test_extreme_sharpness(sharpness, solver, data):
    X, y = data
    model = outcome(
        lambda: MEDClassifier(sharpness=sharpness, solver=solver, C=2.0).fit(X, y)
    )
    assert np.isfinite(model.decision_function(X)).all()
    assert model.converged_


@pytest.mark.parametrize("sharpness", [1e6, 1e9, 1e12])
@pytest.mark.parametrize("margin", ["exponential", "erlang", "laplace"])
def test_sharp_losses_take_as_few_steps_as_hinges(margin, sharpness, data):
    """Without duals of the ends, distances that are too small double in a step."""
    X, y = data
    model = MEDClassifier(
        margin=margin, sharpness=sharpness, solver="interior", C=2.0, tol=1e-7
    )
    assert model.fit(X, y).converged_
    assert model.n_iter_ <= 45


def test_sharp_feature_selection_converges(data):
    X, y = data
    for sharpness in (1e5, 1e12):
        model = MEDFeatureSelector(sharpness=sharpness, tol=1e-6).fit(X, y)
        assert model.converged_
        assert model.n_iter_ <= 45


# ------------------------------------------------------------- indefinite kernels


@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize("solver", ["auto", "smo"])
def test_indefinite_kernels_still_give_a_machine(margin, solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=60) > 0, 1, -1)
    model = MEDClassifier("sigmoid", margin=margin, solver=solver)
    outcome(lambda: model.fit(X, y))
    assert np.isfinite(model.decision_function(X)).all()
    assert model.score(X, y) > 0.65


@pytest.mark.parametrize("solver", ["interior", "smo"])
@pytest.mark.parametrize("shift", [0.5, 3.0, 100.0])
def test_indefinite_matrices_end_in_an_answer_or_a_status(solver, shift, data):
    X, y = data
    for K in (X @ X.T - shift * np.eye(24), -X @ X.T):
        for margin in (PRIOR, HingeMargin(), GaussianMargin(2.0), LogisticMargin()):
            try:
                r = outcome(
                    lambda K=K, m=margin: solve_dual(
                        K, y, m, solver=solver, max_iter=5000
                    )
                )
            except (ValueError, FloatingPointError) as error:
                assert re.search("unbounded|scale", str(error))
                continue
            assert np.isfinite(r.lam).all()
            assert math.isfinite(r.bias)
            assert not r.converged or r.gap <= 1e-6 * (1 + r.objective)


def test_unbounded_duals_of_indefinite_matrices_are_not_called_fixed(data):
    X, y = data
    with pytest.raises(ValueError, match="unbounded") as error:
        solve_dual(-X @ X.T, y, GaussianMargin(2.0), solver="smo")
    assert "fixed margin" not in str(error.value)


# ------------------------------------------------------------- scales


@pytest.mark.parametrize("n", [60, 300])
@pytest.mark.parametrize("scale", [1e-15, 1e-6, 1e6, 1e15])
def test_scale_of_the_features_does_not_matter_to_gamma_scale(n, scale, rng):
    X = rng.normal(size=(n, 3))
    y = X[:, 0] + rng.normal(size=n) > 0
    plain = MEDClassifier(tol=1e-6).fit(X, y)
    scaled = outcome(lambda: MEDClassifier(tol=1e-6).fit(scale * X, y))
    assert scaled.converged_
    assert scaled.objective_ == pytest.approx(plain.objective_, rel=1e-5)
    np.testing.assert_allclose(
        scaled.decision_function(scale * X), plain.decision_function(X), atol=2e-2
    )


@pytest.mark.parametrize(
    "scale",
    [
        1e-100,
        1e-30,
        1e30,
        1e100,
    ],
)
def test_far_scales_of_the_features_do_not_matter_to_gamma_scale(scale, rng):
    X = rng.normal(size=(300, 3))
    y = X[:, 0] + rng.normal(size=300) > 0
    plain = MEDClassifier().fit(X, y)
    scaled = outcome(lambda: MEDClassifier().fit(scale * X, y))
    assert scaled.objective_ == pytest.approx(plain.objective_, rel=2e-3)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_overflow_is_named(kernel, data):
    X, y = data
    with pytest.raises((ValueError, FloatingPointError), match=r"scale|large") as error:
        outcome(lambda: MEDClassifier(kernel).fit(1e160 * X, y))
    assert not isinstance(error.value, np.linalg.LinAlgError)


def test_overflow_never_gives_a_machine_of_nan(rng):
    X = rng.normal(size=(500, 3))
    y = X[:, 0] > 0
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = MEDClassifier().fit(1e160 * X, y)
    except (ValueError, FloatingPointError) as error:
        assert re.search("scale|large", str(error))
    else:
        assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("margin", ["exponential", "laplace", "gaussian", "logistic"])
@pytest.mark.parametrize("mixed", [False, True])
def test_unscaled_linear_features_are_solved(margin, mixed, rng):
    X = 1e6 * rng.normal(size=(500, 3))
    y = X[:, 0] + 5e5 * rng.normal(size=500) > 0
    if mixed:
        X *= [1.0, 1e-6, 1e-9]
    model = outcome(lambda: MEDClassifier("linear", margin=margin).fit(X, y))
    assert model.converged_
    assert model.score(X, y) > 0.7


def test_what_unscaled_features_make_hopeless_is_not_called_converged(rng):
    X = 1e12 * rng.normal(size=(500, 3))
    y = X[:, 0] + 5e11 * rng.normal(size=500) > 0
    with pytest.warns(ConvergenceWarning, match="scale the features|raise tol"):
        model = MEDClassifier("linear").fit(X, y)
    assert not model.converged_


@pytest.mark.parametrize("n", [50, 500])
@pytest.mark.parametrize("kernel", ["linear", "poly", "sigmoid"])
def test_features_beyond_all_digits_are_refused(kernel, n, rng):
    X = rng.normal(size=(n, 3))
    y = X[:, 0] > 0
    X[0, 1] = -1e25
    model = MEDClassifier(kernel, gamma=1.0)
    refused(lambda: model.fit(X, y), "as large as 1e.25.*scale X")
    refused(lambda: model.fit(sp.csr_array(X), y), "as large as 1e.25.*scale X")


def test_tiny_features_end_in_an_answer_or_a_sentence(data):
    X, y = data
    with np.errstate(all="ignore"):
        model = outcome(lambda: MEDClassifier().fit(1e-160 * X, y))
    assert np.isfinite(model.decision_function(X)).all()


# ------------------------------------------------------------- starts


@pytest.mark.parametrize("solver", ["interior", "smo"])
@pytest.mark.parametrize("size", [0.0, 1e-300, 1.0, 5.0, 1e6])
def test_any_start_leads_to_the_optimum(solver, size, data, rng):
    X, y = data
    K = X @ X.T
    best = solve_dual(K, y, PRIOR, tol=1e-8)
    init = size * rng.random(24) * (rng.random(24) < 0.6)
    r = solve_dual(K, y, PRIOR, tol=1e-6, init=init, solver=solver)
    assert r.converged
    assert r.objective == pytest.approx(best.objective, rel=2e-6)


@pytest.mark.parametrize(
    "solver",
    [
        "interior",
        "newton",
        "coordinate",
    ],
)
def test_linear_starts_beyond_the_domain_are_cut(solver, data):
    X, y = data
    r = solve_linear_dual(X, y, PRIOR, init=np.full(24, 100.0), solver=solver)
    assert r.converged


@pytest.mark.parametrize(
    "solver",
    [
        "interior",
        "smo",
    ],
)
def test_logistic_machines_may_start_at_zero(solver, data):
    X, y = data
    r = solve_dual(X @ X.T, y, LogisticMargin(), init=np.zeros(24), solver=solver)
    assert r.converged


@pytest.mark.parametrize("solver", ["interior", "auto"])
def test_heavy_logistic_rows_are_solved(solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=200) > 0, 1, -1)
    K = (X @ X.T / 3) ** 3
    w = np.full(200, 100.0)
    r = solve_dual(K, y, LogisticMargin(), sample_weight=w, tol=1e-3, solver=solver)
    assert r.converged


def test_custom_priors_in_the_working_set_solver(capfd):
    from maxent.discrimination import CustomMargin

    mine = CustomMargin(
        lambda lam: lam + math.log1p(-lam / 5.0),
        lambda lam: 1.0 - 1.0 / (5.0 - lam),
        lambda lam: 1.0 / (5.0 - lam) ** 2,
        upper=5.0,
    )
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(80, 3))
        y = np.where(X[:, 0] + rng.normal(size=80) > 0, 1, -1)
        K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=-1))
        w = rng.uniform(2e-3, 2e-2, 80)
        r = solve_dual(K, y, mine, sample_weight=w, solver="smo")
        assert r.converged
        named = solve_dual(K, y, PRIOR, sample_weight=w, solver="interior")
        assert r.objective == pytest.approx(named.objective, abs=2e-6)
    assert capfd.readouterr().err == ""
