"""MEDRegressor: contract and truth against other machines."""

import numpy as np
import pytest

from maxent import MEDRegressor
from maxent.discrimination import ExponentialMargin


def curve(rng, n=120):
    X = rng.normal(size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n) + 5.0


def test_gaussian_prior_without_tube_is_kernel_ridge(rng):
    from sklearn.kernel_ridge import KernelRidge

    X, y = curve(rng)
    ours = MEDRegressor(
        C=4.0, epsilon=0.0, margin="gaussian", bias=None, gamma=0.5, tol=1e-10
    ).fit(X, y)
    theirs = KernelRidge(alpha=0.25, kernel="rbf", gamma=0.5).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-8)


@pytest.mark.parametrize("solver", ["interior", "smo"])
def test_hinge_member_is_support_vector_regression(solver, rng):
    from sklearn.svm import SVR

    X, y = curve(rng)
    theirs = SVR(C=2.0, epsilon=0.1, gamma=0.5, tol=1e-8).fit(X, y)
    ours = MEDRegressor(
        C=2.0, epsilon=0.1, gamma=0.5, margin="hinge", tol=1e-7, solver=solver
    ).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)


@pytest.mark.parametrize(
    "margin", ["exponential", "erlang", "laplace", "gaussian", "uniform_exponential"]
)
def test_solvers_agree_and_certify(margin, rng):
    X, y = curve(rng)
    fits = [
        MEDRegressor(C=3.0, gamma=0.5, margin=margin, tol=1e-8, solver=solver).fit(X, y)
        for solver in ("interior", "smo")
    ]
    for model in fits:
        assert model.converged_
        assert 0 <= model.duality_gap_ <= 1e-8 * (1 + model.objective_)
    assert fits[0].objective_ == pytest.approx(fits[1].objective_, rel=1e-7)


@pytest.mark.parametrize("margin", ["exponential", "gaussian", "laplace"])
def test_linear_roads_agree(margin, rng):
    X = rng.normal(size=(600, 4))
    y = X @ [1.0, -2.0, 0.5, 0.0] + 0.3 * rng.normal(size=600)
    fits = [
        MEDRegressor("linear", margin=margin, tol=1e-6, solver=solver).fit(X, y)
        for solver in ("auto", "smo", "coordinate", "newton")
    ]
    for model in fits[1:]:
        np.testing.assert_allclose(model.coef_, fits[0].coef_, atol=5e-3)
        assert model.objective_ == pytest.approx(fits[0].objective_, rel=1e-5)


@pytest.mark.parametrize("exponent", [-20, 1, 20, 40])
@pytest.mark.parametrize(
    ("kernel", "n"), [("rbf", 40), ("rbf", 300), ("linear", 100), ("linear", 500)]
)
@pytest.mark.parametrize("margin", ["exponential", "hinge", "laplace"])
def test_fits_scale_with_the_targets(kernel, n, margin, exponent, rng):
    # powers of two, by which nothing is rounded
    X, y = curve(rng, n)
    unit = 2.0**exponent

    def fit(unit):
        model = MEDRegressor(
            kernel, C=unit, epsilon=0.125 * unit, sharpness=8 / unit, margin=margin
        )
        return model.fit(X, unit * y)

    plain, scaled = fit(1.0), fit(unit)
    assert plain.converged_ and scaled.converged_
    assert scaled.n_iter_ == plain.n_iter_
    assert (scaled.dual_coef_ == unit * plain.dual_coef_).all()
    assert scaled.objective_ == unit**2 * plain.objective_
    assert scaled.duality_gap_ == unit**2 * plain.duality_gap_
    # the middle of the targets may round where they are added
    np.testing.assert_allclose(
        scaled.predict(X), unit * plain.predict(X), rtol=1e-13, atol=1e-13 * unit
    )


@pytest.mark.filterwarnings("ignore:.*predictions are nearly the same:UserWarning")
@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("bias", ["flat", None])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_targets_of_any_size_are_solved(kernel, bias, scale, rng):
    X, y = curve(rng, 2000)
    options = {"kernel": kernel, "bias": bias, "max_iter": 100_000}
    plain = MEDRegressor(**options).fit(X, y)
    model = MEDRegressor(
        C=scale, epsilon=0.1 * scale, sharpness=10 / scale, **options
    ).fit(X, scale * y)
    assert model.converged_
    assert model.score(X, scale * y) == pytest.approx(plain.score(X, y), abs=2e-3)
    # multipliers are bounded by C however large the targets
    assert MEDRegressor(**options).fit(X, 1e6 * y).converged_


def test_tolerances_are_in_units_of_the_targets(rng):
    X, y = curve(rng, 300)
    target = 1e6 * (y - np.median(y))
    unit = 2.0 ** np.round(np.log2(np.median(np.abs(target))))
    model = MEDRegressor(C=1e6, epsilon=1e5, margin="hinge", tol=1e-2, gamma=0.5)
    model.fit(X, target)
    assert model.converged_
    assert model.duality_gap_ <= 1e-2 * (unit**2 + model.objective_)
    # residuals of rows between the bounds are those of the tube, within tol
    a = model.dual_coef_[0]
    free = (np.abs(a) > 1e-6 * 1e6) & (np.abs(a) < (1 - 1e-6) * 1e6)
    residual = target[model.support_] - model.predict(X[model.support_])
    assert np.abs(np.abs(residual[free]) - 1e5).max() <= 1e-2 * unit * (1 + 1e-9)


@pytest.mark.filterwarnings("ignore:.*predictions are nearly the same:UserWarning")
def test_constant_targets_are_predicted(rng):
    X, _ = curve(rng)
    for value in (0.0, 5.0, 1e6):
        model = MEDRegressor().fit(X, np.full(len(X), value))
        assert model.converged_
        np.testing.assert_allclose(model.predict(X), value, rtol=1e-12)
    # all but a few at one value
    y = np.where(np.arange(len(X)) < 5, 1e6, 0.0)
    assert MEDRegressor(C=10.0).fit(X, y).converged_


@pytest.mark.filterwarnings("ignore:.*predictions are nearly the same:UserWarning")
def test_progress_is_shown_in_target_units(capsys, rng):
    X, y = curve(rng, 200)
    model = MEDRegressor(verbose=True).fit(X, 1e6 * y)
    shown = capsys.readouterr().out.splitlines()[-1]
    assert f"objective {model.objective_:.6g}," in shown


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"margin": ExponentialMargin(5.0, 1.0)}, "tube"),
        ({"solver": "newton"}, "kernel='linear'"),
    ],
)
def test_bad_parameters_are_named(parameters, message, rng):
    X, y = curve(rng)
    with pytest.raises(ValueError, match=message):
        MEDRegressor(**parameters).fit(X, y)
