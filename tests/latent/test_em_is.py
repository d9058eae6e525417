"""EM-IS: identities, monotone likelihood, agreement of its M steps."""

import numpy as np
import pytest
from oracles.latent import latent
from scipy.special import xlogy
from sklearn.exceptions import ConvergenceWarning

from maxent.latent import FiniteLatentModel, em_is
from maxent.latent._em_is import _check_rise
from maxent.latent._likelihood import M_STEPS, Likelihood, m_step, polished
from maxent.latent._penalty import L2, Box, make_penalty


def problem(rng, shape=(5, 3, 4), n=60):
    f = rng.normal(size=shape)
    y = rng.choice(shape[0], size=n, p=rng.dirichlet(2.0 * np.ones(shape[0])))
    return FiniteLatentModel(f), y, f


def test_quantities_are_those_of_brute_force(rng):
    model, y, f = problem(rng)
    lam = rng.normal(size=4)
    shares = np.bincount(y, minlength=5) / len(y)
    exact = latent(f, lam, shares)
    found, log_phi, mean = model.expectation(lam[None], model.observe(y))
    assert found.log_likelihood[0] == pytest.approx(exact["L"], abs=1e-10)
    assert log_phi[0] == pytest.approx(exact["log_phi"], abs=1e-10)
    np.testing.assert_allclose(found.target[0], exact["eta"], atol=1e-10)
    np.testing.assert_allclose(mean[0], exact["mean"], atol=1e-10)
    assert exact["L"] == pytest.approx(exact["Q"] + exact["Hm"], abs=1e-10)
    p = exact["p"]
    own = np.sum(p * np.log(p / np.outer(p.sum(axis=1), p.sum(axis=0))))
    assert model.dependence(lam[None], None)[0] == pytest.approx(own, abs=1e-10)


def test_gradient_and_hessian_are_those_of_finite_differences(rng):
    model, y, f = problem(rng)
    shares, lam, h = np.bincount(y, minlength=5) / len(y), rng.normal(size=4), 1e-5
    exact = latent(f, lam, shares)

    def around(i):
        return [latent(f, lam + s * h * np.eye(4)[i], shares) for s in (1, -1)]

    pairs = [around(i) for i in range(4)]
    slope = [(a["L"] - b["L"]) / (2 * h) for a, b in pairs]
    np.testing.assert_allclose(exact["eta"] - exact["mean"], slope, atol=1e-8)
    bend = [
        ((a["eta"] - a["mean"]) - (b["eta"] - b["mean"])) / (2 * h) for a, b in pairs
    ]
    np.testing.assert_allclose(model.hessian(lam, shares), bend, atol=1e-7)


def test_entropy_at_a_feasible_point(rng):
    model, y, f = problem(rng)
    shares = np.bincount(y, minlength=5) / len(y)
    result = em_is(
        model, y, rng.normal(size=4), sigma2=50.0, method="newton", tol=1e-11
    )
    exact = latent(f, result.lam, shares)
    assert result.entropy == pytest.approx(exact["H"], abs=1e-9)
    # -[Q - sum lam^2 / (2 s2)] = H - U, U = sum s2 eps^2 / 2, eps = -lam / s2
    cost = np.sum(result.lam**2) / (2 * 50.0)
    assert -(exact["Q"] - cost) == pytest.approx(exact["H"] - cost, abs=1e-8)
    # without a penalty weights may grow without end, and moments are met ever better
    free = em_is(model, y, result.lam, method="newton", tol=1e-5, max_iter=20_000)
    exact = latent(f, free.lam, shares)
    unmet = float(free.lam @ (exact["eta"] - exact["mean"]))
    assert exact["H"] + exact["Q"] == pytest.approx(unmet, abs=1e-9)
    assert exact["L"] == pytest.approx(-exact["H"] + unmet + exact["Hm"], abs=1e-9)
    assert abs(unmet) < 1e-3


def worst_falls(seed, n_problems, inner, method):
    """Largest relative falls of the bound Q in a step, L below its E step, L in a step.

    Every second problem has no penalty.
    """
    worst = np.zeros(3)
    for k in range(n_problems):
        rng = np.random.default_rng([seed, k])
        shape = tuple(rng.integers(2, 6, size=2)) + (int(rng.integers(1, 6)),)
        f = rng.normal(size=shape) * 10.0 ** rng.uniform(-1, 1)
        f = np.round(f) if k % 3 == 0 else f
        model = FiniteLatentModel(f)
        weight = 10.0 ** -rng.uniform(0, 3) * (k % 2)
        y = rng.integers(0, shape[0], size=20)
        penalty = L2.of_weight(np.full(shape[2], weight))
        own = Likelihood(model, model.observe(y), penalty, 50.0)
        lam = rng.normal(size=(1, shape[2])) / max(np.abs(f).max(), 1.0)

        def bound(lam, eta, model=model, weight=weight):
            penalty = 0.5 * weight * np.sum(lam**2)
            return float(lam[0] @ eta[0] - model.partition(lam)[0][0] - penalty)

        for _ in range(2):
            found, _, _, value, _, _ = own.evaluate(lam)
            before, last = bound(lam, found.target), value
            for _ in range(inner):  # inner steps towards one target
                lam = m_step(own, lam, found.target, 1, method)
                after, new = bound(lam, found.target), own.evaluate(lam)[3]
                falls = np.r_[before - after, value - new, last - new]
                falls /= 1 + np.abs([before, value[0], value[0]])
                worst = np.maximum(worst, falls)
                before, last = after, new
    return worst


@pytest.mark.parametrize("method", ["gis", "iis", "scgis"])
@pytest.mark.parametrize("inner", [1, 5])
def test_likelihood_never_falls_below_the_e_step(inner, method, seed):
    bound, below, _ = worst_falls(seed, 40, inner, method)
    assert bound <= 1e-12 and below <= 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gis", "iis", "scgis"])
def test_likelihood_never_falls_below_the_e_step_in_a_thousand_problems(method, seed):
    bound, below, between = worst_falls(seed, 1000, 8, method)
    print(f"{method}: Q {bound:.1e}, L {below:.1e}, L between {between:.1e}")
    assert bound <= 1e-12 and below <= 1e-12


@pytest.mark.parametrize("method", ["gis", "iis", "scgis"])
def test_likelihood_may_fall_from_one_inner_step_to_the_next(method):
    f = np.array([[[3.0, 1.0], [1.0, 2.0]], [[1.0, 3.0], [2.0, 0.0]]])
    model = FiniteLatentModel(f)
    own = Likelihood(model, model.observe([0]), L2(np.inf, 2))
    lam = np.full((1, 2), -2.0)
    target, values = own.evaluate(lam)[0].target, []
    for _ in range(9):
        values.append(latent(f, lam[0], np.array([1.0, 0.0]))["L"])
        lam = m_step(own, lam, target, 1, method)
    assert np.diff(values).min() < -1e-3 and min(values) == values[0]


def divergence(a, b):
    return float(np.sum(xlogy(a, a / b)))


def with_posterior(p, shares):
    """pt(y) p(z | y)."""
    return shares[:, None] * p / p.sum(axis=1, keepdims=True)


def test_data_completed_by_the_model_are_nearest_to_it(rng):
    # D(pt p(z|y) || p) = D(pt || p(y)), the least over joints with marginal pt
    _, y, f = problem(rng)
    shares = np.bincount(y, minlength=5) / len(y)
    p = latent(f, rng.normal(size=4), shares)["p"]
    least = divergence(with_posterior(p, shares), p)
    assert least == pytest.approx(divergence(shares, p.sum(axis=1)), abs=1e-12)
    for _ in range(20):
        other = rng.dirichlet(np.ones(3), size=5) * shares[:, None]
        assert divergence(other, p) >= least


def test_pythagorean_property_of_a_feasible_point(rng):
    # D(pbar* || p_lam) = D(pbar* || p_lam*) + D(p_lam* || p_lam) for all lam
    shares = np.full(5, 0.2)
    f = rng.normal(size=(5, 3, 4))
    truth = latent(f, rng.normal(size=4), shares)["p"].sum(axis=1)  # of the model
    model = FiniteLatentModel(f)
    observed = Likelihood(model, truth, L2(np.inf, 4))
    lam = polished(observed, 0.5 * rng.normal(size=4), 1e-12, 5000)
    best = latent(f, lam, truth)
    np.testing.assert_allclose(best["eta"], best["mean"], atol=1e-9)
    bar = with_posterior(best["p"], truth)
    for _ in range(20):
        p = latent(f, rng.normal(size=4), truth)["p"]
        both = divergence(bar, best["p"]) + divergence(best["p"], p)
        assert divergence(bar, p) == pytest.approx(both, abs=1e-8)


def test_a_penalty_that_vanishes_leaves_the_likelihood(rng):
    shares = np.full(5, 0.2)
    f = rng.normal(size=(5, 3, 4))
    w = latent(f, 0.5 * rng.normal(size=4), shares)["p"].sum(axis=1)
    model, ends = FiniteLatentModel(f), []
    for s2 in (1e2, 1e4, 1e6, np.inf):
        likelihood = Likelihood(model, w, L2(s2, 4))
        lam = polished(likelihood, np.full(4, 0.1), 1e-9, 5000)
        assert likelihood.evaluate(lam[None])[5][0] <= 1e-7
        ends.append(model.expectation(lam[None], w)[0].log_likelihood[0])
    gaps = ends[-1] - np.array(ends[:-1])
    assert (gaps >= -1e-9).all() and gaps[2] < 1e-3 * max(gaps[0], 1e-3)


@pytest.mark.parametrize("method", M_STEPS)
def test_every_m_step_climbs_to_a_feasible_point(method, rng):
    model, y, f = problem(rng)
    lam0 = 0.3 * rng.normal(size=(3, 4))
    result = em_is(
        model, y, lam0, method=method, sigma2=20.0, tol=1e-7, max_iter=50_000
    )
    assert result.converged
    history = np.array([h[1] for h in result.history])
    assert np.diff(history, axis=0).min() >= -1e-12
    shares = np.bincount(y, minlength=5) / len(y)
    for lam in result.lam:
        exact = latent(f, lam, shares)
        np.testing.assert_allclose(exact["eta"] - exact["mean"], lam / 20, atol=1e-6)


def test_all_m_steps_find_the_same_maximum_from_near_it(rng):
    model, y, _ = problem(rng)
    near = em_is(model, y, rng.normal(size=4), sigma2=20.0, tol=1e-4).lam
    ends = [
        em_is(model, y, near, method=m, sigma2=20.0, tol=1e-7, max_iter=100_000)
        for m in M_STEPS
    ]
    values = [end.objective for end in ends]
    assert max(values) - min(values) <= 1e-8


def test_constant_hidden_variable_is_complete_data_maxent(rng):
    from maxent.latent import fit_maxent

    f = rng.normal(size=(6, 1, 3))
    y = np.arange(6).repeat(rng.integers(1, 5, size=6))
    result = em_is(FiniteLatentModel(f), y, np.zeros(3), tol=1e-10, max_iter=100_000)
    shares = np.bincount(y) / len(y)
    exact = fit_maxent(f[:, 0], shares @ f[:, 0])
    np.testing.assert_allclose(result.lam, exact.lam, atol=1e-6)


def test_weights_are_repetition(rng):
    model, y, _ = problem(rng)
    w = rng.integers(0, 4, size=len(y))
    a = model.observe(y, w.astype(float))
    np.testing.assert_allclose(a, model.observe(np.repeat(y, w)), atol=1e-15)


def test_bounds_hold_and_count_in_the_certificate(rng):
    f = np.zeros((3, 2, 2))
    f[2, :, 0] = 1.0  # a value that the data never show
    f[:, 0, 1] = np.arange(3.0)
    y = [0] * 30 + [1] * 20
    result = em_is(FiniteLatentModel(f), y, np.zeros(2), bound=8.0, max_iter=50_000)
    assert result.converged and result.at_bound[0] and result.lam[0] == -8.0
    with pytest.raises(ValueError, match="feature 0 has its smallest value given"):
        em_is(FiniteLatentModel(f), y, np.zeros(2))


@pytest.mark.parametrize("method", ["gis", "iis", "scgis"])
def test_targets_at_the_end_of_a_feature_are_named(method):
    f = np.zeros((2, 2, 1))
    f[0, :, 0] = [3.0, 1.0]
    with pytest.raises(ValueError, match="feature 0 has its smallest value"):
        em_is(FiniteLatentModel(f), [1, 1], [0.0], method=method)
    if method == "scgis":
        g = np.zeros((2, 2, 1))
        g[1] = 2.0
        with pytest.raises(ValueError, match="feature 0 has its largest value"):
            em_is(FiniteLatentModel(g), [1, 1], [0.0], method=method)


# -- penalties that are not quadratic --------------------------------------------------
class Pseudo:
    """U* = sum sqrt(1 + lam^2) - 1, which has the slope lam / sqrt(1 + lam^2)."""

    def conjugate(self, lam):
        return float(np.sum(np.sqrt(1.0 + lam**2) - 1.0)) / 20.0

    def conjugate_gradient(self, lam):
        return lam / np.sqrt(1.0 + lam**2) / 20.0


def penalised(f, shares, value):
    """The penalised likelihood of weights lam, by brute force."""
    return lambda lam: latent(f, lam, shares)["L"] - value(lam)


def test_curvature_of_a_cost_of_the_callers_own(rng):
    lam = rng.normal(size=3)
    hessian = make_penalty(Pseudo(), np.inf, None, 3).hessian(lam)
    # differences with a step of 1e-5 of the size of lam
    expected = np.diag((1.0 + lam**2) ** -1.5 / 20.0)
    np.testing.assert_allclose(hessian, expected, atol=1e-9)


@pytest.mark.parametrize("method", ["iis", "gis", "newton", "lbfgs"])
def test_the_box_leaves_means_within_its_widths(method, rng):
    model, y, f = problem(rng, n=200)
    shares = np.bincount(y, minlength=5) / len(y)
    width = np.array([0.02, 0.05, 0.3, 0.4])
    start = 0.3 * rng.normal(size=4)
    options = {"penalty": "box", "width": width, "tol": 1e-5, "max_iter": 50_000}
    result = em_is(model, y, start, method=method, **options)
    assert result.converged
    history = np.array([h[1] for h in result.history])
    assert np.diff(history).min() >= -1e-12
    exact = latent(f, result.lam, shares)
    unmet, lam = exact["mean"] - exact["eta"], result.lam
    assert (lam == 0).any() and (lam != 0).any()
    assert (np.abs(unmet) <= width + 1e-4).all()
    np.testing.assert_allclose(unmet[lam != 0], (-width * np.sign(lam))[lam != 0],
                               atol=1e-4)  # fmt: skip
    # no point near it has a larger penalised likelihood
    own = penalised(f, shares, lambda x: float(width @ np.abs(x)))
    assert result.objective == pytest.approx(own(lam), abs=1e-10)
    for _ in range(50):
        assert own(lam + 1e-2 * rng.normal(size=4)) < result.objective + 1e-5


def test_all_steps_of_the_box_end_at_one_point(rng):
    model, y, _ = problem(rng, n=200)
    options = {"penalty": "box", "width": 0.03, "max_iter": 20_000}
    near = em_is(model, y, np.zeros(4), method="lbfgs", tol=1e-5, **options).lam
    found = [
        em_is(model, y, near, method=m, tol=1e-7, **options).lam
        for m in ("iis", "newton", "lbfgs")
    ]
    for lam in found[1:]:
        np.testing.assert_allclose(lam, found[0], atol=1e-5)
    ended = polished(
        Likelihood(model, model.observe(y), Box(0.03, 4)), near, 1e-10, 5000
    )
    np.testing.assert_allclose(ended, found[0], atol=1e-5)


@pytest.mark.parametrize("method", ["newton", "cg", "lbfgs"])
def test_a_cost_of_the_callers_own(method, rng):
    model, y, f = problem(rng, n=200)
    shares = np.bincount(y, minlength=5) / len(y)
    starts = 0.3 * rng.normal(size=(3, 4))
    result = em_is(
        model, y, starts, method=method, penalty=Pseudo(), tol=1e-6, max_iter=50_000
    )
    assert result.converged
    own = penalised(f, shares, Pseudo().conjugate)
    for lam, value in zip(result.lam, result.objective):
        exact = latent(f, lam, shares)
        unmet = exact["mean"] - exact["eta"]
        np.testing.assert_allclose(unmet, -Pseudo().conjugate_gradient(lam), atol=1e-5)
        assert value == pytest.approx(own(lam), abs=1e-10)


@pytest.mark.parametrize(
    "penalty, words",
    [
        ("box", "has no steps with penalty='box'; use 'iis', 'gis', 'newton' or"),
        (Pseudo(), "has no steps with a ConvexPenalty; use 'newton', 'cg' or 'lbfgs'"),
    ],
)
def test_steps_that_a_penalty_has_not_are_named(penalty, words, rng):
    model, y, _ = problem(rng)
    width = 0.1 if penalty == "box" else None
    with pytest.raises(ValueError, match=words):
        em_is(model, y, np.zeros(4), method="scgis", penalty=penalty, width=width)


def test_a_start_whose_weight_would_be_infinite_rests_beside_others():
    f = np.zeros((3, 2, 2))
    f[:, 0, 0] = 1.0  # the hidden value, of which a start may be certain
    f[:, :, 1] = np.arange(3.0)[:, None]
    model, y = FiniteLatentModel(f), [0, 1, 2, 1]
    own = Likelihood(model, model.observe(y), L2(np.inf, 2))
    target = np.array([[0.0, 1.0], [0.5, 1.0]])  # the first is the least of feature 0
    lam = m_step(own, np.array([[-3.0, 0.1], [0.2, 0.3]]), target, 2, "iis")
    np.testing.assert_array_equal(lam[0], [-3.0, 0.1])
    assert np.isfinite(lam).all() and lam[1, 0] != 0.2
    with pytest.raises(ValueError, match="would be infinite"):
        m_step(own, np.zeros((1, 2)), target[:1], 2, "iis")


@pytest.mark.parametrize(
    "change, words",
    [
        ({"model": 3}, "model=3 must be a LogLinearModel"),
        ({"data": [0, 9]}, r"data\[1\]=9"),
        ({"data": [0.5]}, r"data\[0\]=0.5"),
        ({"data": []}, "not empty"),
        ({"lam0": [0.0]}, "lam0 has shape"),
        ({"lam0": [np.nan] * 4}, "finite"),
        ({"inner": 0}, "inner=0"),
        ({"method": "em"}, "method='em' is not known"),
        ({"sigma2": -1.0}, "sigma2=-1"),
        ({"penalty": "l1"}, "penalty='l1'"),
        ({"penalty": "box"}, "penalty='box' needs width"),
        ({"penalty": "box", "width": 1, "sigma2": 2}, "sigma2=2 has no meaning with"),
        ({"penalty": Pseudo(), "width": 1}, "width=1 has no meaning with"),
        ({"width": 0.1}, "width=0.1 has no meaning with penalty='l2'"),
        ({"bound": 0}, "bound=0"),
        ({"sample_weight": [-1.0, 1.0]}, "negative"),
    ],
)
def test_bad_input_is_named(change, words, rng):
    model, _, _ = problem(rng)
    good = {"model": model, "data": [0, 1], "lam0": np.zeros(4)}
    with pytest.raises((ValueError, TypeError), match=words):
        em_is(**(good | change))


@pytest.mark.parametrize("wrong", [-1, 3])
def test_numbers_beyond_the_observed_values_are_named(wrong):
    model = FiniteLatentModel(np.arange(12.0).reshape(3, 2, 2))
    np.testing.assert_array_equal(model.observe([0, 2]), [0.5, 0.0, 0.5])
    with pytest.raises(ValueError, match=rf"data\[1\]={wrong} .* integers 0\.\.2"):
        model.observe([0, wrong])


def test_features_of_a_wrong_shape_are_named():
    with pytest.raises(ValueError, match="n_observed, n_hidden"):
        FiniteLatentModel(np.zeros((3, 2)))


def test_a_bound_on_the_steps_is_said(rng):
    model, y, _ = problem(rng)
    with pytest.warns(ConvergenceWarning, match="1 of 1 starts"):
        em_is(model, y, rng.normal(size=4), max_iter=1)


@pytest.mark.parametrize("level", [0.0, -1.0, -1e6])
def test_a_fall_of_the_likelihood_beyond_rounding_is_an_error(level):
    old, fall = np.array([level, level]), 1e-10 * (1.0 + abs(level))
    _check_rise(old, old - [0.0, 0.5 * fall], 3)
    with pytest.raises(FloatingPointError, match="at E step 3; the model's posterior"):
        _check_rise(old, old - [0.0, 2.0 * fall], 3)
    with pytest.raises(FloatingPointError, match="log-likelihood is nan at E step 4"):
        _check_rise(old, np.array([level, np.nan]), 4)


def test_a_callback_hears_objectives_and_residuals(rng):
    model, y, _ = problem(rng)
    heard = []
    found = em_is(
        model,
        y,
        rng.normal(size=4),
        sigma2=2.0,
        callback=lambda n, objective, residual: heard.append(
            (n, float(objective[0]), float(residual[0]))
        ),
    )
    n, objective, residual = np.array(heard).T
    assert (n == np.arange(len(n))).all()
    assert (np.diff(objective) >= -1e-12).all()
    assert objective[-1] == pytest.approx(found.objective, abs=1e-12)
    assert residual[-1] == pytest.approx(found.residual, abs=1e-12)


@pytest.mark.parametrize("method", M_STEPS)
def test_units_and_origins_change_weights_alone(method, rng):
    _, y, f = problem(rng)
    unit, origin = np.array([1e-12, 1e6, 1.0, 3.0]), np.array([0.0, 0.0, 1e8, -0.5])
    first = em_is(FiniteLatentModel(f), y, rng.normal(size=4), sigma2=5.0)
    lam = first.lam + 0.1 * rng.normal(size=4)  # paths differ: a basin for both
    options = {"method": method, "tol": 1e-6, "max_iter": 100_000}
    plain = em_is(FiniteLatentModel(f), y, lam, sigma2=5.0, **options)
    moved = FiniteLatentModel(origin + unit * f)
    found = em_is(moved, y, lam / unit, sigma2=5.0 / unit**2, **options)
    assert plain.converged and found.converged
    # entries at 1e8 are rounded to 1e-8; weights are tol over a curvature apart
    assert found.objective == pytest.approx(plain.objective, abs=1e-6)
    np.testing.assert_allclose(found.lam * unit, plain.lam, atol=1e-2)
    target = (found.target - origin) / unit
    np.testing.assert_allclose(target, plain.target, atol=1e-2)
    log_phi = found.log_partition - found.lam @ origin
    assert log_phi == pytest.approx(plain.log_partition, abs=1e-2)


def test_a_bound_is_that_of_the_weights_in_their_units(rng):
    _, y, f = problem(rng)
    options = {"bound": 0.05, "method": "scgis", "max_iter": 100_000}
    plain = em_is(FiniteLatentModel(f), y, np.zeros(4), **options)
    options["bound"] /= 1e-6
    found = em_is(FiniteLatentModel(f * 1e-6), y, np.zeros(4), **options)
    np.testing.assert_array_equal(found.at_bound, plain.at_bound)
    assert plain.at_bound.any() and found.lam.max() <= options["bound"]
    assert found.log_likelihood == pytest.approx(plain.log_likelihood, abs=1e-9)
