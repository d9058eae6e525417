"""Fixed margins: met, refused with a name, at any scale."""

import numpy as np
import pytest
from refusals import outcome, refused

from maxent import MEDClassifier, MEDRegressor
from maxent.discrimination import (
    FixedMargin,
    solve_dual,
    solve_linear_dual,
)

# ------------------------------------------------------------- fixed margins


def inseparable(rng, classes=2):
    X = rng.normal(size=(80, 2))
    return X, rng.integers(0, classes, 80)


@pytest.mark.parametrize("solver", ["auto", "interior", "smo", "coordinate"])
@pytest.mark.parametrize("bias", ["flat", 1.0, None])
def test_inseparable_data_are_named(solver, bias, rng):
    X, y = inseparable(rng)
    model = MEDClassifier("linear", margin="fixed", solver=solver, bias=bias)
    with pytest.raises(ValueError, match=r"cannot be separated.*margin='exponential'"):
        outcome(lambda: model.fit(X, y))
    if solver != "coordinate":
        model = MEDClassifier(
            "poly", degree=1, gamma=1.0, margin="fixed", bias=bias, solver=solver
        )
        with pytest.raises(ValueError, match="cannot be separated"):
            outcome(lambda: model.fit(X, y))


def test_inseparable_classes_are_named_among_three(rng):
    X, y = inseparable(rng, 3)
    with pytest.raises(ValueError, match="cannot be separated"):
        outcome(lambda: MEDClassifier("linear", margin="fixed").fit(X, y))


def test_contrary_duplicates_cannot_be_separated_among_three_classes():
    X = np.repeat([[0.0], [1.0], [2.0]], 4, axis=0)
    with pytest.raises(ValueError, match="cannot be separated"):
        outcome(lambda: MEDClassifier(margin="fixed").fit(X, [0, 1, 2, 0] * 3))


def test_newton_with_fixed_margins_is_refused(rng):
    X, y = inseparable(rng)
    model = MEDClassifier("linear", margin="fixed", solver="newton")
    refused(lambda: model.fit(X, y), "newton|cannot be separated")


@pytest.mark.parametrize("distance", [1e-2, 1e-5])
@pytest.mark.parametrize("solver", ["interior", "smo"])
def test_nearly_inseparable_data_are_separated(distance, solver):
    X = np.array([[-1.0], [-distance], [distance], [1.0]])
    y = [-1, -1, 1, 1]
    r = outcome(lambda: solve_dual(X @ X.T, y, FixedMargin(), solver=solver))
    assert r.converged
    assert r.objective == pytest.approx(0.5 / distance**2, rel=1e-5)


@pytest.mark.parametrize("solve", [solve_dual, solve_linear_dual])
def test_small_features_are_not_called_inseparable(solve):
    X = 1e-7 * np.array([[-2.0], [-1.0], [1.0], [2.0]])
    data = X @ X.T if solve is solve_dual else X
    r = outcome(lambda: solve(data, [-1, -1, 1, 1], FixedMargin()))
    assert r.objective == pytest.approx(0.5e14, rel=1e-5)


def test_a_hard_tube_is_fitted_or_refused():
    X = np.arange(4.0)[:, None]
    model = MEDRegressor("linear", margin=FixedMargin(-0.5), tol=1e-6)
    try:
        outcome(lambda: model.fit(X, [0.0, 1.0, 2.0, 3.0]))
    except ValueError as error:
        assert "margin" in str(error)
    else:
        assert model.converged_
        assert model.coef_[0, 0] == pytest.approx(2 / 3, rel=1e-4)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3, 1e5])
@pytest.mark.parametrize("bias", ["flat", None])
def test_fixed_margins_are_exact_at_any_scale_of_the_features(scale, bias, rng):
    """There the objective is as small as the features are large."""
    X = rng.normal(size=(80, 3))
    X = X[np.abs(X[:, 0]) > 0.2]
    y = np.where(X[:, 0] > 0, 1, -1)
    unit = solve_dual(X @ X.T, y, FixedMargin(), bias=bias, tol=1e-12)
    X = scale * X
    for r in (
        solve_dual(X @ X.T, y, FixedMargin(), bias=bias),
        solve_dual(X @ X.T, y, FixedMargin(), bias=bias, solver="smo"),
        solve_linear_dual(X, y, FixedMargin(), bias=bias),
    ):
        assert r.converged
        assert 0 <= r.gap <= 1e-6 * r.objective
        assert r.objective * scale**2 == pytest.approx(unit.objective, rel=2e-6)
