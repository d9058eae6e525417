"""The duality gap, recomputed here from lam, bias and K; what fits say about it."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.closed_forms import Potentials
from oracles.dual_cvxopt import solve_feature_selection
from sklearn.exceptions import ConvergenceWarning

from maxent import MEDClassifier, MEDFeatureSelector, MEDRegressor
from maxent._optimize.interior_point import interior_point
from maxent._optimize.rows import Rows
from maxent.discrimination import (
    ErlangMargin,
    ExponentialMargin,
    FixedMargin,
    GaussianMargin,
    HingeMargin,
    LaplaceMargin,
    LogisticMargin,
    solve_dual,
    solve_kernel_dual,
    solve_linear_dual,
)
from maxent.discrimination._margin_parameters import classification_margin
from maxent.discrimination.duals import _selection_dual

PRIORS = [
    ExponentialMargin(5.0),
    ErlangMargin(2, 6.0),
    LaplaceMargin(4.0),
    GaussianMargin(1.5),
    LogisticMargin(2.0, 0.2),
    HingeMargin(),
]
NAMES = ["exponential", "erlang", "laplace", "gaussian", "logistic", "hinge"]
BIASES = ["flat", 0.7, None]


def by_name(value):
    return getattr(value, "name", str(value))


priors = pytest.mark.parametrize("margin", PRIORS, ids=by_name)
biases = pytest.mark.parametrize("bias", BIASES)


def problem(rng, n=50, d=3):
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = -1.0, 1.0
    K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=-1))
    return X, y, K


def primal_and_dual(K, y, lam, b, margin, bias, weight):
    """Both objectives from their definitions, with the oracle's closed forms."""
    pots = Potentials(
        margin.name,
        np.full(len(y), margin.level),
        margin.rate,
        weight,
        getattr(margin, "shape", 1.0),
    )
    a = y * lam
    f = K @ a
    primal = 0.5 * a @ f + np.sum(pots.loss(y * (f + b)))
    dual = np.sum(pots.value(lam)) - 0.5 * a @ f
    if bias not in ("flat", None):
        primal += 0.5 * b**2 / bias
        dual -= 0.5 * bias * a.sum() ** 2
    return primal, dual


# ------------------------------------------------------------- the number itself


@priors
@biases
@pytest.mark.parametrize("solver", ["interior", "smo"])
def test_gap_and_objective_are_what_their_definitions_give(margin, bias, solver, rng):
    _, y, K = problem(rng)
    w = rng.uniform(0.5, 2.0, len(y))
    # stop early, so that the gap is large enough to be compared
    r = solve_dual(
        K, y, margin, bias=bias, sample_weight=w, tol=1e-2, max_iter=40, solver=solver
    )
    primal, dual = primal_and_dual(K, y, r.lam, r.bias, margin, bias, w)
    assert r.objective == pytest.approx(dual, abs=1e-10 * (1 + abs(dual)))
    assert r.gap == pytest.approx(primal - dual, abs=1e-9 * (1 + abs(primal)))
    assert r.relative_gap == r.gap / (1 + max(r.objective, 0.0))
    if bias == "flat":
        assert abs(y @ r.lam) <= 1e-12 * (1 + r.lam.sum())
    elif bias is None:
        assert r.bias == 0
    else:
        assert r.bias == pytest.approx(bias * (y @ r.lam), abs=1e-12)


@priors
@pytest.mark.parametrize("solver", ["coordinate", "newton", "interior"])
@biases
def test_gap_of_the_linear_solvers(margin, solver, bias, rng):
    X, y, _ = problem(rng)
    w = rng.uniform(0.5, 2.0, len(y))
    r = solve_linear_dual(
        X, y, margin, bias=bias, sample_weight=w, tol=1e-2, max_iter=500, solver=solver
    )
    dual = primal_and_dual(X @ X.T, y, r.lam, r.bias, margin, bias, w)[1]
    # the machine given is w itself, which may differ from that of the multipliers
    primal = 0.5 * r.coef @ r.coef + w @ margin.loss(y * (X @ r.coef + r.bias))
    if bias not in ("flat", None):
        primal += 0.5 * r.bias**2 / bias
    assert r.objective == pytest.approx(dual, abs=1e-10 * (1 + abs(dual)))
    assert r.gap == pytest.approx(primal - dual, abs=1e-9 * (1 + abs(primal)))
    apart = r.coef - X.T @ (y * r.lam)
    assert 0.5 * apart @ apart <= r.gap + 1e-12


@priors
def test_flat_bias_makes_the_gap_smallest(margin, rng):
    _, y, K = problem(rng)
    r = solve_dual(K, y, margin, tol=1e-1, solver="smo", max_iter=30)
    w = np.ones(len(y))
    best = primal_and_dual(K, y, r.lam, r.bias, margin, "flat", w)[0]
    for step in (-0.3, -1e-3, 1e-3, 0.3):
        other = primal_and_dual(K, y, r.lam, r.bias + step, margin, "flat", w)[0]
        assert other >= best - 1e-10 * (1 + abs(best))


def test_gap_of_fixed_margins_is_that_of_the_machine_scaled_to_its_margins(rng):
    X, y, _ = problem(rng, n=30)
    X[:, 0] = y * (1.0 + np.abs(X[:, 0]))
    K = X @ X.T
    r = solve_dual(K, y, FixedMargin(0.7), tol=1e-2, solver="smo")
    a = y * r.lam
    m = y * (K @ a + r.bias)
    assert m.min() > 0
    primal = 0.5 * (a @ K @ a) * (0.7 / m.min()) ** 2
    dual = 0.7 * r.lam.sum() - 0.5 * a @ K @ a
    assert r.objective == pytest.approx(dual, rel=1e-10)
    assert r.gap == pytest.approx(max(primal - dual, 0), abs=1e-9 * primal)


@priors
@biases
@settings(max_examples=12)
@given(
    shares=st.lists(st.floats(0, 0.999), min_size=12, max_size=12),
    b=st.floats(-5, 5),
    scale=st.floats(0.1, 10),
)
def test_any_feasible_dual_value_is_below_any_primal_value(
    margin, bias, shares, b, scale
):
    """Weak duality at random feasible points, and the solver's answer in between."""
    rng = np.random.default_rng(12)
    _, y, K = problem(rng, n=12)
    K = scale * K
    top = margin.upper if math.isfinite(margin.upper) else 3.0
    lam = top * np.array(shares)
    if bias == "flat":  # scale the heavier side down
        up, down = lam[y > 0].sum(), lam[y < 0].sum()
        lam = lam * np.where(y > 0, min(up, down) / up if up else 0, 1)
        lam = lam * np.where(y < 0, min(up, down) / down if down else 0, 1)
    if bias is None:
        b = 0.0
    w = np.ones(12)
    dual = primal_and_dual(K, y, lam, b, margin, bias, w)[1]
    # the primal at an unrelated machine
    other = top * rng.random(12)
    primal = primal_and_dual(K, y, other, b, margin, bias, w)[0]
    assert dual <= primal + 1e-9 * (1 + abs(primal))
    r = solve_dual(K, y, margin, bias=bias, tol=1e-9)
    assert dual <= r.objective + r.gap + 1e-9 * (1 + abs(dual))
    assert primal >= r.objective - 1e-9 * (1 + abs(primal))
    assert r.gap >= 0


# ------------------------------------------------------------- sharp tolerances


@pytest.mark.parametrize("margin", NAMES)
@biases
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_tolerance_1e_10_is_reached_on_random_problems(margin, bias, classes, rng):
    for _ in range(2):
        n = int(rng.integers(2 * classes, 50))
        X = rng.normal(size=(n, int(rng.integers(1, 6))))
        y = rng.integers(0, classes, n)
        y[:classes] = np.arange(classes)
        model = MEDClassifier(
            rng.choice(["rbf", "linear"]),
            C=10 ** rng.uniform(-2, 3),
            margin=margin,
            sharpness=10 ** rng.uniform(0.3, 2),
            bias=bias,
            tol=1e-10,
        ).fit(X, y)
        assert model.converged_
        assert 0 <= model.duality_gap_ <= 1e-10 * (1 + model.objective_)


@pytest.mark.parametrize(
    "margin", ["exponential", "erlang", "laplace", "gaussian", "uniform_exponential"]
)
@biases
def test_tolerance_1e_10_is_reached_in_regression(margin, bias, rng):
    for epsilon in (0.0, 0.2):
        X = rng.normal(size=(40, 2))
        y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=40) + rng.normal(scale=20)
        C = 10 ** rng.uniform(-1, 2)
        model = MEDRegressor(
            C=C, epsilon=epsilon, margin=margin, bias=bias, tol=1e-10
        ).fit(X, y)
        assert model.converged_
        assert 0 <= model.duality_gap_ <= 1e-10 * (1 + model.objective_)


@pytest.mark.parametrize("margin", NAMES)
@biases
def test_tolerance_1e_10_is_reached_with_switches(margin, bias, rng):
    X = rng.normal(size=(40, 6))
    y = X[:, 0] + rng.normal(size=40) > 0
    for p0 in (0.05, 0.3, 1.0):
        C = 10 ** rng.uniform(-1, 0.5)
        # corners of the hinge leave the low-rank systems fewer digits
        tol = 1e-8 if margin == "hinge" else 1e-10
        options = {"C": C, "margin": margin, "bias": bias, "tol": tol}
        model = MEDFeatureSelector(p0, threshold=0.0, **options)
        model.fit(X, y)
        assert model.converged_
        assert 0 <= model.duality_gap_ <= tol * (1 + model.objective_)


def test_rare_switches_and_large_multipliers_are_solved():
    for seed in range(15):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 6))
        y = X[:, 0] + rng.normal(size=60) > 0
        assert MEDFeatureSelector(1e-3, C=100.0).fit(X, y).converged_


@pytest.mark.parametrize(
    ("margin", "seed"), [("exponential", 5), ("exponential", 6), ("logistic", 6)]
)
def test_optimumnewton_line_search_of_the_switches_is_the_independent_one(margin, seed):
    """Problems on which undamped Newton steps alone fail."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 6))
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, 1.0, -1.0)
    model = MEDFeatureSelector(1e-3, C=100.0, margin=margin, tol=1e-10).fit(X, y)
    assert model.converged_
    prior = classification_margin(margin, 10.0)
    weight = prior.unit_weight(100.0)
    oracle = solve_feature_selection(
        X, y, margin, prior.level, prior.rate, 1e-3, "flat", weight
    )
    assert model.objective_ == pytest.approx(oracle.objective, rel=1e-8)
    # the primal is strongly convex: a gap g leaves coef within sqrt(2 g / min A*'')
    np.testing.assert_allclose(model.coef_[0], oracle.coef, atol=1e-4)


@priors
@biases
def test_no_stepnewton_line_search_lowers_the_dual_objective(margin, bias, rng):
    n = 60
    X = rng.normal(size=(n, 6))
    y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    rows = Rows.of(margin, np.full(n, 10.0))
    extra = np.sqrt(bias) * y[:, None] if bias == 0.7 else np.empty((n, 0))
    R = _selection_dual.SwitchedFeatures(y[:, None] * X, extra, 1e-3)
    E = y[:, None] if bias == "flat" else None
    start = interior_point(rows, R, E, tol=1e-9, max_iter=1)
    options = {"callback": lambda *news: seen.append(news), "max_iter": 2000}
    seen = []
    r = _selection_dual.newton_line_search(rows, R, E, start, tol=1e-9, **options)
    assert r.converged
    assert r.history == start.history + seen
    assert r.gap <= 1e-9 * (1 + r.objective)
    objectives = np.array([h[1] for h in r.history])
    assert len(objectives) > 2
    assert np.diff(objectives).min() >= -1e-10 * (1 + r.objective)


@pytest.mark.slow
@pytest.mark.parametrize("margin", NAMES)
@pytest.mark.parametrize("solver", ["interior", "smo"])
def test_many_random_problems(margin, solver, rng):
    for _ in range(40):
        n = int(rng.integers(2, 300))
        _, y, K = problem(rng, n, int(rng.integers(1, 6)))
        w = rng.uniform(0.1, 3, n) * 10 ** rng.uniform(-2, 1)
        prior = PRIORS[NAMES.index(margin)]
        bias = BIASES[int(rng.integers(3))]
        r = solve_dual(K, y, prior, bias=bias, sample_weight=w, tol=1e-5, solver=solver)
        assert r.converged
        primal, dual = primal_and_dual(K, y, r.lam, r.bias, prior, bias, w)
        assert -1e-9 <= primal - dual <= 1.1e-5 * (1 + dual)


# ------------------------------------------------------------- honest failure


def unconverged(run):
    """(result, warnings) of a fit that is stopped early."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        return run(), [w for w in seen if w.category is ConvergenceWarning]


FITS = {
    "binary-smo": lambda X, y: MEDClassifier(C=100, solver="smo", tol=1e-6, max_iter=5),
    "binary-interior": lambda X, y: MEDClassifier(solver="interior", max_iter=3),
    "joint": lambda X, y: MEDClassifier(
        C=100, tol=1e-6, max_iter=2, multi_class="joint"
    ),
    "coordinate": lambda X, y: MEDClassifier(
        "linear", C=100, solver="coordinate", tol=1e-8, max_iter=2
    ),
    "newton": lambda X, y: MEDClassifier(
        "linear", C=100, solver="newton", tol=1e-8, max_iter=1
    ),
    "regression": lambda X, y: MEDRegressor(C=100, solver="smo", tol=1e-6, max_iter=5),
    "selection": lambda X, y: MEDFeatureSelector(C=100, max_iter=2),
}


@pytest.mark.parametrize("name", FITS)
def test_too_few_steps_are_admitted_once_with_the_gap_and_a_remedy(name, rng):
    X = rng.normal(size=(120, 4))
    y = (X[:, 0] + rng.normal(size=120) > 0).astype(int)
    if name == "joint":
        y += X[:, 1] > 0.5
    model = FITS[name](X, y)
    model, seen = unconverged(lambda: model.fit(X, y))
    assert model.converged_ is False
    assert len(seen) == 1
    text = str(seen[0].message)
    unit = 1.0
    if name == "regression":  # in units of the targets, a power of two
        size = np.abs(y - np.median(y))
        unit = 4.0 ** np.round(np.log2(np.median(size) or size.mean()))
    relative = model.duality_gap_ / (unit + max(model.objective_, 0.0))
    assert relative > model.tol
    assert type(model).__name__ in text
    assert f"{relative:.2e}" in text
    assert f"tol={model.tol:g}" in text
    assert "max_iter" in text or "raise tol" in text
    assert seen[0].filename == __file__
    model.predict(X)


@pytest.mark.parametrize("name", FITS)
def test_enough_steps_are_not_warned_about(name, rng):
    X = rng.normal(size=(120, 4))
    y = (X[:, 0] + rng.normal(size=120) > 0).astype(int)
    if name == "joint":
        y += X[:, 1] > 0.5
    model = FITS[name](X, y)
    model.set_params(C=1.0, max_iter=100_000, tol=1e-4)
    model, seen = unconverged(lambda: model.fit(X, y))
    assert model.converged_ is True
    assert seen == []
    assert model.duality_gap_ <= 1e-4 * (1 + model.objective_)
    assert model.n_iter_ >= 1


def test_functions_do_not_warn_but_say_so_in_their_status(rng):
    X, y, K = problem(rng)
    for r in (
        solve_dual(K, y, PRIORS[0], solver="smo", max_iter=2),
        solve_kernel_dual(X, y, PRIORS[0], solver="smo", max_iter=2),
        solve_linear_dual(X, y, PRIORS[0], solver="coordinate", max_iter=1, tol=1e-9),
    ):
        assert not r.converged
        assert r.status == "max_iter"
        assert r.relative_gap > 1e-9


@pytest.mark.parametrize("solver", ["smo", "coordinate", "newton"])
def test_history_ends_with_the_result_and_callbacks_see_it(solver, rng):
    X, y, K = problem(rng)
    seen = []

    def callback(*step):
        seen.append(step)

    solve = solve_dual if solver == "smo" else solve_linear_dual
    data = K if solver == "smo" else X
    r = solve(data, y, PRIORS[0], solver=solver, tol=1e-6, callback=callback)
    assert len(r.history) >= 1
    assert [tuple(h) for h in r.history] == seen
    assert min(h[2] for h in r.history) == r.gap
