"""Complete-data maximum entropy: certificates, agreement, identities, refusals."""

import copy
import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.latent import finite
from scipy.special import logit
from sklearn.exceptions import ConvergenceWarning

import maxent
from maxent.latent import MaxEntModel, SampledMaxEnt, fit_maxent
from maxent.latent._dual_solvers import _line_search

METHODS = ["gis", "iis", "scgis", "lbfgs", "newton"]


def problem(rng, binary=False, states=30, features=4):
    """Features and means that some distribution with full support has."""
    F = rng.normal(size=(states, features))
    F = (F > 0.2).astype(float) if binary else F
    p = rng.dirichlet(np.ones(states)) * 0.7 + 0.3 / states
    return F, p @ F


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("sigma2", [np.inf, 2.0])
@pytest.mark.parametrize("method", METHODS)
def test_all_methods_reach_the_same_model(method, sigma2, binary, rng):
    F, eta = problem(rng, binary)
    options = {"sigma2": sigma2, "max_iter": 200_000}
    exact = fit_maxent(F, eta, tol=1e-12, **options)
    # each method takes dense and sparse rows of either kind
    features = F if binary == np.isfinite(sigma2) else sp.csr_matrix(F)
    found = fit_maxent(features, eta, method=method, tol=1e-11, **options)
    np.testing.assert_allclose(found.prob, exact.prob, atol=1e-8)
    assert np.diff([h[1] for h in found.history]).max(initial=0.0) <= 1e-13 * (
        1 + abs(found.objective)
    )
    log_phi, p = finite(F, exact.lam)
    assert exact.log_partition == pytest.approx(log_phi, abs=1e-10)
    np.testing.assert_allclose(exact.prob, p, atol=1e-12)
    np.testing.assert_allclose(p @ F - eta, -exact.lam / sigma2, atol=1e-9)


def test_dual_is_the_entropy_or_the_divergence(rng):
    F, eta = problem(rng)
    found = fit_maxent(F, eta, tol=1e-12)
    assert found.objective == pytest.approx(found.entropy, abs=1e-10)
    q = rng.dirichlet(np.ones(len(F)))
    found = fit_maxent(F, eta, log_prior=np.log(q), tol=1e-12)
    divergence = np.sum(found.prob * np.log(found.prob / q))
    assert found.objective == pytest.approx(-divergence, abs=1e-10)


def test_pythagorean_property(rng):
    # D(p || p_lam) = D(p || p*) + D(p* || p_lam) for p with the moments of p*
    F, _ = problem(rng)
    p = rng.dirichlet(np.ones(len(F)))
    best = fit_maxent(F, p @ F, tol=1e-12).prob
    other = finite(F, rng.normal(size=F.shape[1]))[1]

    def kl(a, b):
        return np.sum(a * np.log(a / b))

    assert kl(p, other) == pytest.approx(kl(p, best) + kl(best, other), abs=1e-9)


def test_one_binary_feature_has_the_logit(rng):
    found = fit_maxent([[0.0], [1.0]], [0.3], method="scgis")
    assert found.lam[0] == pytest.approx(logit(0.3), abs=1e-12)


def test_shifted_features_change_neither_weights_nor_probabilities(rng):
    F, eta = problem(rng)
    for sigma2 in (np.inf, 3.0):
        a = fit_maxent(F, eta, method="iis", sigma2=sigma2, tol=1e-11)
        b = fit_maxent(
            F + 5.0, eta + 5.0, method="iis", sigma2=sigma2, tol=1e-11, max_iter=100_000
        )
        np.testing.assert_allclose(a.lam, b.lam, atol=1e-7)
        np.testing.assert_allclose(a.prob, b.prob, atol=1e-8)


def test_steps_that_gain_next_to_nothing_are_halved():
    class Square:
        """x^2, whose residual is its slope."""

        def evaluate(self, x):
            return float(x @ x), None, None, float(np.abs(2.0 * x).max())

    start, step = np.array([1.0]), np.array([-2.0 + 2e-6])  # nearly to the other side
    new, found = _line_search(Square(), start, step, 1.0, 2.0 * start, 1e-3)
    assert abs(new[0]) < 1e-5 and found[0] < 1e-10
    assert _line_search(Square(), start, -step, 1.0, 2.0 * start, 1e-3) is None


def test_collinear_features_leave_the_probabilities_unique(rng):
    F, eta = problem(rng)
    doubled = np.column_stack([F, F[:, 0], np.ones(len(F))])
    for method in ("newton", "lbfgs"):
        found = fit_maxent(doubled, [*eta, eta[0], 1.0], method=method, tol=1e-10)
        np.testing.assert_allclose(found.prob, fit_maxent(F, eta).prob, atol=1e-7)


def test_box_penalty_meets_its_optimality_condition(rng):
    F, eta = problem(rng)
    width = 0.05
    found = fit_maxent(F, eta, penalty="box", width=width, tol=1e-8)
    excess = found.prob @ F - eta
    assert np.abs(excess).max() <= width + 1e-7
    at = found.lam != 0
    np.testing.assert_allclose(excess[at], -width * np.sign(found.lam[at]), atol=1e-7)
    assert found.regularized_entropy == pytest.approx(found.entropy)
    assert found.entropy > fit_maxent(F, eta).entropy


def test_a_penalty_of_functions_is_the_built_in_one(rng):
    class Quadratic:
        def conjugate(self, lam):
            return 0.5 * np.sum(lam * lam) / 3.0

        def conjugate_gradient(self, lam):
            return lam / 3.0

    F, eta = problem(rng)
    a = fit_maxent(F, eta, penalty=Quadratic(), tol=1e-9)
    b = fit_maxent(F, eta, sigma2=3.0, tol=1e-9)
    assert a.method == b.method == "newton"
    np.testing.assert_allclose(a.prob, b.prob, atol=1e-9)
    assert a.regularized_entropy == pytest.approx(b.regularized_entropy, abs=1e-8)
    assert b.objective == pytest.approx(b.regularized_entropy, abs=1e-7)


def test_a_prior_of_zero_excludes_a_state(rng):
    F, _ = problem(rng)
    log_q = np.zeros(len(F))
    log_q[3] = -np.inf
    p = rng.dirichlet(np.ones(len(F)))
    p[3] = 0.0
    found = fit_maxent(F, p @ F / p.sum(), log_prior=log_q)
    assert found.prob[3] == 0.0 and found.converged


@pytest.mark.parametrize(
    "target, words",
    [
        ([1.5, 0.2], r"target\[0\]=1.5 is outside \[0, 1\]"),
        ([0.0, 0.2], r"target\[0\]=0 is the smallest value"),
        ([0.6, 0.6], r"outside the convex hull of the features are target\[[01]\]"),
    ],
)
def test_moments_that_no_distribution_has_are_named(target, words):
    F = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match=words):
        fit_maxent(F, target)
    assert fit_maxent(F, target, sigma2=1.0).converged


CORNER = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])


@pytest.mark.parametrize("method", METHODS)
def test_moments_out_of_reach_are_named_within_a_few_iterations(method):
    seen = []
    options = {"method": method, "callback": lambda n, *_: seen.append(n)}
    with pytest.raises(ValueError, match=r"outside the convex hull .* target\[[01]\]"):
        fit_maxent(CORNER, [0.6, 0.6], **options)
    assert len(seen) <= 200
    with pytest.raises(ValueError, match=r"target\[[01]\]=0.5.* on the boundary"):
        fit_maxent(CORNER, [0.5, 0.5], **options)
    log_prior = [-np.inf, 0.0, 0.0]  # the remedy
    assert fit_maxent(CORNER, [0.5, 0.5], log_prior=log_prior).converged


@pytest.mark.parametrize("unit", [1.0, 10.0])
def test_moments_out_of_reach_are_named_with_the_nearest_within(unit):
    with pytest.raises(ValueError) as caught:
        fit_maxent(unit * CORNER, [0.8 * unit, 0.8 * unit])
    pattern = r"=([\d.]+) \(nearest together with the others ([\d.]+)\)"
    pairs = np.array(re.findall(pattern, str(caught.value)), dtype=float)
    # the sum of both is one unit at most
    assert (pairs[:, 0] - pairs[:, 1]).sum() == pytest.approx(0.6 * unit, rel=1e-5)


@pytest.mark.parametrize(
    "features, target, width, words",
    [
        ([[0.0], [1.0]], [1.5], 0.1, r"target\[0\]=1.5 is outside \[0, 1\].* width"),
        ([[0.0], [1.0]], [1.5], 0.5, r"target\[0\]=1.5 is the largest .* its width"),
        (CORNER, [0.9, 0.9], 0.05, r"within the widths: outside .* target\[0\]"),
        (CORNER, [0.6, 0.6], 0.1, r"boundary .* within the widths"),
    ],
)
def test_a_box_out_of_reach_is_named(features, target, width, words):
    seen = []
    options = {"penalty": "box", "callback": lambda n, *_: seen.append(n)}
    with pytest.raises(ValueError, match=words):
        fit_maxent(features, target, width=width, **options)
    assert len(seen) <= 200
    found = fit_maxent(features, target, width=width + 0.5, **options)
    assert found.converged


def test_moments_out_of_reach_are_named_in_large_spaces(rng):
    F = rng.normal(size=(30_000, 10))
    for options in ({}, {"penalty": "box", "width": 0.1}):
        with pytest.raises(ValueError, match=r"convex hull .* target\[\d\]=2.5"):
            fit_maxent(F, np.full(10, 2.5), **options)


def test_moments_whose_cost_is_infinite_are_named():
    class Bounded:  # U is infinite beyond 0.1
        def conjugate(self, lam):
            return 0.1 * np.sum(np.hypot(lam, 1.0))

        def conjugate_gradient(self, lam):
            return 0.1 * lam / np.hypot(lam, 1.0)

    with pytest.raises(ValueError, match=r"target\[0\]=1.5 .* cost U is finite"):
        fit_maxent([[0.0], [1.0]], [1.5], penalty=Bounded())


def test_a_weak_penalty_explains_large_weights():
    found = fit_maxent([[0.0], [1.0]], [1.5], sigma2=1e6)
    assert found.converged
    np.testing.assert_allclose(found.lam, 0.5e6)


@pytest.mark.parametrize("sparse", [False, True])
def test_scaling_takes_features_less_their_minimum(sparse, rng):
    F, eta = problem(rng, states=60)
    make = sp.csr_matrix if sparse else np.asarray
    log_prior = np.where(np.arange(60) == np.argmin(F[:, 0]), -np.inf, 0.0)
    for q in (None, log_prior):
        ends = [
            fit_maxent(make(F + c), eta + c, log_prior=q, method="iis", max_iter=50_000)
            for c in (0.0, 5.0, np.array([5.0, -9.0, 0.0, 1.0]))
        ]
        steps = [end.n_iter for end in ends]
        assert max(steps) <= 1.3 * min(steps)  # residuals are relative to eta
        for end in ends:
            np.testing.assert_allclose(end.lam, ends[0].lam, atol=1e-6)


def test_a_full_column_of_sparse_features_leaves_them_sparse(rng):
    from maxent.latent._space import FeatureSpace

    F = sp.random_array((500, 400), density=0.01, random_state=rng, format="csr")
    F = sp.hstack([F, np.ones((500, 1))]).tocsr()
    space = FeatureSpace(F)
    assert space.shifted.nnz <= F.nnz and space.shifted[:, [400]].nnz == 0


@pytest.mark.parametrize(
    "change, words",
    [
        ({"features": np.zeros((3, 0))}, "features has shape"),
        ({"features": [[np.nan, 0.0]]}, "NaN"),
        ({"target": [0.1]}, "target has shape"),
        ({"target": [np.inf, 0.1]}, r"target\[0\]"),
        ({"sigma2": 0.0}, "sigma2=0"),
        ({"sigma2": [1.0, 2.0, 3.0]}, "sigma2 has shape"),
        ({"method": "cg"}, "method='cg' is not known"),
        ({"penalty": "box"}, "needs width"),
        ({"penalty": 3}, "penalty=3 must be"),
        ({"width": 0.1}, "width=0.1 has no meaning"),
        ({"penalty": "box", "width": 0.1, "method": "iis"}, "penalty='l2' only"),
        ({"penalty": "box", "width": -1.0}, "width=-1"),
        ({"log_prior": [0.0, np.nan, 0.0]}, "log_prior must hold"),
        ({"log_prior": [0.0]}, "log_prior has shape"),
        ({"tol": -1}, "tol=-1"),
        ({"init": [0.0]}, "init has shape"),
    ],
)
def test_bad_input_is_named(change, words):
    good = {"features": np.eye(3)[:, :2], "target": [0.2, 0.3]}
    with pytest.raises((ValueError, TypeError), match=words):
        fit_maxent(**(good | change))


def test_a_bound_on_the_iterations_is_said(rng):
    F, eta = problem(rng)
    with pytest.warns(ConvergenceWarning, match="method='auto'"):
        found = fit_maxent(F, eta, method="gis", max_iter=2)
    assert not found.converged and found.n_iter == 2


def test_model_is_an_immutable_value(rng):
    F, eta = problem(rng)
    model = MaxEntModel.fit(F, eta)
    np.testing.assert_allclose(model.moments(), eta, atol=1e-7)
    assert model.kl(model) == 0.0 and model.prob.sum() == pytest.approx(1.0)
    again = MaxEntModel.from_spec(model.get_spec())
    np.testing.assert_array_equal(again.prob, model.prob)
    draws = model.sample(20_000, random_state=0)
    error = np.sqrt(np.diag(model.covariance()) / 20_000)
    assert (np.abs(F[draws].mean(axis=0) - eta) < 5 * error).all()
    with pytest.raises(AttributeError, match="immutable"):
        model.lam = 0
    with pytest.raises(ValueError):
        model.prob[0] = 1.0
    for other in (pickle.loads(pickle.dumps(model)), copy.copy(model)):
        assert other.fit_result.status is model.fit_result.status


@pytest.mark.parametrize("make", [np.array, sp.csr_array])
def test_a_model_keeps_copies_of_its_arrays(make, rng):
    F, prior = make(rng.normal(size=(6, 2))), np.log(np.full(6, 1 / 6))
    model = MaxEntModel(F, [0.3, -0.2], prior)
    want = model.prob.copy()
    F *= 2.0
    prior[0] = 3.0
    np.testing.assert_array_equal(model.log_prior[1:], prior[1:])
    np.testing.assert_allclose(MaxEntModel.from_spec(model.get_spec()).prob, want)


@pytest.mark.filterwarnings("ignore:the effective sample size")
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_models_are_kept_in_files(make, rng, tmp_path):
    F, eta = problem(rng)
    plain = MaxEntModel.fit(make(F), eta, log_prior=rng.normal(size=len(F)))
    sampled = SampledMaxEnt.fit(make(F), eta, log_density=rng.normal(size=len(F)))
    for model in (plain, sampled):
        maxent.save(model, tmp_path / "model.npz")
        again = maxent.load(tmp_path / "model.npz")
        assert type(again) is type(model)
        np.testing.assert_array_equal(again.prob, model.prob)


@pytest.mark.parametrize(
    "other, words",
    [
        (np.ones(30), "other sums to 30"),
        (np.r_[-1.0, 2.0, np.zeros(28)], "smallest entry is -1"),
        (np.ones(3) / 3, "other has shape"),
    ],
)
def test_divergence_from_no_distribution_is_refused(other, words, rng):
    with pytest.raises(ValueError, match=words):
        MaxEntModel.fit(*problem(rng)).kl(other)


@pytest.mark.filterwarnings("ignore:the effective sample size")
def test_draws_and_densities_that_do_not_fit_are_named(rng):
    F, eta = problem(rng)
    zero = np.zeros(len(F))
    bad = {
        r"log_density has shape \(3,\)": {"log_density": zero[:3]},
        "log_base has shape": {"log_density": zero, "log_base": [0.0, 1.0]},
        r"log_density\[2\]=inf": {
            "log_density": np.where(np.arange(30) == 2, np.inf, 0)
        },
        r"log_base\[2\]=nan": {
            "log_density": zero,
            "log_base": np.where(np.arange(30) == 2, np.nan, 0),
        },
    }
    model = SampledMaxEnt.fit(F, eta, log_density=zero)
    for words, options in bad.items():
        with pytest.raises(ValueError, match=words):
            SampledMaxEnt.fit(F, eta, **options)
        with pytest.raises(ValueError, match=words):
            model.test_moments(F, **options)
    with pytest.raises(ValueError, match="features has 3 columns"):
        model.test_moments(F[:, :3], zero)


def test_sampled_space_recovers_a_gaussian(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(scale=1.5, size=40_000)
    f = np.column_stack([x, x**2])
    log_r = -(x**2) / (2 * 1.5**2)
    model = SampledMaxEnt.fit(f, [0.3, 0.3**2 + 0.5], log_density=log_r)
    # natural parameters of N(.3, .5) up to the Monte Carlo error
    np.testing.assert_allclose(model.lam, [0.3 / 0.5, -1.0], rtol=0.15)
    y = rng.normal(scale=1.5, size=40_000)
    mean, error = model.test_moments(np.column_stack([y, y**2]), -(y**2) / (2 * 1.5**2))
    both = np.sqrt(2) * error  # of the draws fitted to and of the fresh ones
    assert (np.abs(mean - [0.3, 0.59]) < 5 * both).all()


def test_few_effective_draws_are_said(rng):
    x = rng.normal(size=300)
    with pytest.warns(UserWarning, match="effective sample size"):
        SampledMaxEnt.fit(x[:, None], [2.0], log_density=-(x**2) / 2 + x**2)


@pytest.mark.parametrize("options", [{"method": m} for m in METHODS] + [{"box": True}])
def test_a_callback_that_returns_true_stops_the_solver(options, rng):
    F, eta = problem(rng)
    if options.pop("box", False):
        options = {"penalty": "box", "width": 1e-3}
    seen = []

    def after_two(n_iter, dual, residual):
        seen.append((n_iter, dual, residual))
        return len(seen) == 2

    found = fit_maxent(F, eta, callback=after_two, tol=1e-12, **options)
    assert found.status == "stopped" and not found.converged
    assert len(seen) == 2 and found.history == seen
    assert found.residual == seen[-1][2] > 1e-12
    # other answers stop nothing
    full = fit_maxent(F, eta, callback=lambda *_: 1, max_iter=200_000, **options)
    assert full.converged


@pytest.mark.parametrize(
    "features, target",
    [
        (np.eye(3), [0.5, 0.3, 0.3]),
        (np.eye(3), [0.4, 0.4, 0.4]),
        ([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]], [1.5, 3.1]),
    ],
)
def test_moments_that_contradict_each_other_are_refused(features, target):
    with pytest.raises(ValueError, match="no distribution over the 3 states"):
        fit_maxent(features, target)


def test_probabilities_sum_to_one_whatever_feature_is_constant():
    F = np.column_stack([np.arange(4.0), np.ones(4)])
    assert fit_maxent(F, [1.2, 1.0]).prob.sum() == pytest.approx(1.0, abs=1e-14)


# -- units and origins -----------------------------------------------------------------
UNITS = {
    "small": (1e-8, 0.0),
    "large": (1e8, 0.0),
    "far": (1.0, 1e8),
    "mixed": (np.array([1e-12, 1.0, 1e9, 3.0]), np.array([3.0, -1e7, 0.0, 1e-3])),
}


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("method", [*METHODS, "box", "functions"])
def test_units_and_origins_change_weights_alone(method, units, rng):
    unit, origin = (np.broadcast_to(part, 4) for part in UNITS[units])
    F, eta = problem(rng)

    class Quadratic:
        def __init__(self, unit):
            self.unit = unit

        def conjugate(self, lam):
            return 0.5 * np.sum((lam * self.unit) ** 2)

        def conjugate_gradient(self, lam):
            return lam * self.unit**2

    def fit(F, eta, unit):
        options = {"method": method, "max_iter": 100_000}
        if method == "box":
            options = {"penalty": "box", "width": 0.03 * unit}
        if method == "functions":
            options = {"penalty": Quadratic(unit)}
        return fit_maxent(F, eta, tol=1e-9, **options)

    plain = fit(F, eta, np.ones(4))
    # moments are met up to what entries far from zero hold of them
    digits = 1e-6 + 50 * np.finfo(float).eps * np.max(np.abs(origin) / unit)
    moved, target = origin + unit * F, origin + unit * eta
    # sparse rows in every second pair of a method and units
    place = [*METHODS, "box", "functions"].index(method) + list(UNITS).index(units)
    found = fit(sp.csr_array(moved) if place % 2 else moved, target, unit)
    assert found.converged
    np.testing.assert_allclose(found.prob, plain.prob, atol=digits)
    np.testing.assert_allclose(found.lam * unit, plain.lam, atol=1e2 * digits)
    assert found.objective == pytest.approx(plain.objective, abs=digits)


def test_a_penalty_is_that_of_the_weights_in_their_units(rng):
    # a Gaussian prior is in squared units of the weights
    F, eta = problem(rng)
    plain = fit_maxent(F, eta, sigma2=0.5, tol=1e-10)
    for unit in (1e-8, 1e8):
        found = fit_maxent(F * unit, eta * unit, sigma2=0.5 / unit**2, tol=1e-10)
        np.testing.assert_allclose(found.prob, plain.prob, atol=1e-9)
        np.testing.assert_allclose(found.lam * unit, plain.lam, rtol=1e-7)
    # lam = s2 (eta - E f), which so strong a penalty keeps at the uniform means
    found = fit_maxent(F * 1e-8, eta * 1e-8, sigma2=2.0)
    np.testing.assert_allclose(found.lam, 2e-8 * (eta - F.mean(axis=0)), rtol=1e-7)


@pytest.mark.parametrize("method", ["newton", "lbfgs"])
def test_a_mean_far_below_the_range_is_met(method):
    n = 20_000
    found = fit_maxent(np.arange(n)[:, None], [2.0], method=method)
    assert found.converged
    np.testing.assert_allclose(found.lam, np.log(2 / 3), rtol=1e-6)  # geometric
    np.testing.assert_allclose(found.prob[:50], (2 / 3) ** np.arange(50) / 3, rtol=1e-6)


@pytest.mark.parametrize("share", [1e-10, 1.0 - 1e-10])
def test_a_mean_near_the_end_of_the_range_is_no_end(share):
    found = fit_maxent([[0.0], [1.0]], [share])
    assert found.converged
    np.testing.assert_allclose(found.lam, logit(share), rtol=1e-3)


def test_a_feature_that_is_zero_has_no_other_mean():
    F = np.column_stack([np.arange(4.0), np.zeros(4)])
    assert fit_maxent(F, [1.2, 0.0]).converged
    with pytest.raises(ValueError, match=r"target\[1\]=1e-12 is outside \[0, 0\]"):
        fit_maxent(F, [1.2, 1e-12])


def test_values_too_close_for_a_weight_are_named():
    with pytest.raises(ValueError, match="feature 0 has values so close"):
        fit_maxent(np.arange(1.0, 7.0)[:, None] * 1e-310, [4.5e-310])


def test_a_model_keeps_its_digits_far_from_zero(rng):
    F, eta = problem(rng)
    plain = MaxEntModel.fit(F, eta, tol=1e-10)
    far = MaxEntModel.fit(F + 2.0**40, eta + 2.0**40, tol=1e-10)
    # entries are rounded to 2^-13 there
    for ours, theirs in (
        (far.prob, plain.prob),
        (far.lam, plain.lam),
        (far.moments() - 2.0**40, eta),
        (far.covariance(), plain.covariance()),
    ):
        np.testing.assert_allclose(ours, theirs, atol=5e-3)
    np.testing.assert_allclose(far.prob.sum(), 1.0, rtol=1e-12)
    np.testing.assert_allclose(far.prob, far.fit_result.prob, rtol=1e-13)


def test_states_without_prior_say_nothing_of_the_units(rng):
    F, eta = problem(rng)
    wild = np.vstack([F, np.full((2, 4), [[1e100], [-1e100]])])
    q = np.append(np.zeros(len(F)), [-np.inf, -np.inf])
    for features in (wild, sp.csr_array(wild)):
        found = fit_maxent(features, eta, log_prior=q)
        np.testing.assert_allclose(found.prob[:-2], fit_maxent(F, eta).prob, atol=1e-9)


@pytest.mark.parametrize("method", ["newton", "lbfgs", "scgis"])
@pytest.mark.parametrize("target", [0.5, 0.9, 0.99, 1.0 - 1e-6])
@pytest.mark.parametrize("states", [2, 100, 3000])
def test_a_rare_feature_has_the_logit_of_its_target(states, target, method):
    # the first Newton step leaves all probability on the state that has it
    features = np.eye(states)[:, :1]
    model = fit_maxent(features, [target], method=method)
    assert model.converged
    expected = logit(target) + np.log(states - 1)
    np.testing.assert_allclose(model.lam, [expected], rtol=1e-6)


@pytest.mark.parametrize("method", ["newton", "lbfgs", "scgis"])
def test_steep_priors_and_far_starts_are_left_again(method, rng):
    faces = np.arange(1.0, 7.0)[:, None]
    die = fit_maxent(faces, [4.5]).lam
    far = fit_maxent(faces, [4.5], method=method, init=[50.0], max_iter=10_000)
    np.testing.assert_allclose(far.lam, die, rtol=1e-6)
    for slope in (-9.0, -3.0, 3.0, 9.0):
        steep = slope * faces[:, 0]
        found = fit_maxent(
            faces, [4.5], method=method, log_prior=steep, max_iter=10_000
        )
        np.testing.assert_allclose(found.lam + slope, die, rtol=1e-6, atol=1e-6)
    for _ in range(20):
        F, log_prior = rng.normal(size=(30, 4)), 3.0 * rng.normal(size=30)
        p = rng.dirichlet(np.ones(30)) * 0.9 + 0.1 / 30
        found = fit_maxent(
            F, p @ F, log_prior=log_prior, method=method, max_iter=50_000
        )
        assert found.converged
        np.testing.assert_allclose(found.prob @ F, p @ F, atol=1e-6)


def test_rare_states_of_another_scale_do_not_end_the_fit():
    features = [[0, 0], [1, 0], [1000, 1], [0, 1.0]]
    exact = fit_maxent(features, [1e-3, 5e-7], method="newton")
    found = fit_maxent(features, [1e-3, 5e-7], method="lbfgs")
    assert exact.converged and found.converged
    np.testing.assert_allclose(found.prob, exact.prob, rtol=1e-6)


@pytest.mark.parametrize(
    "constant, method",
    [
        (constant, method)
        for i, constant in enumerate([1.0, 0.1, 3.0, -7.0, 1e6])
        for j, method in enumerate(METHODS)
        if (i + j) % 5 in (0, 2)
    ],
)
def test_the_mean_of_a_constant_may_be_off_by_rounding(method, constant, rng):
    F = np.column_stack([np.full(6, constant), rng.normal(size=(6, 2))])
    p = rng.dirichlet(np.ones(6)) * 0.9 + 0.1 / 6
    alone = fit_maxent(F[:, 1:], p @ F[:, 1:])
    sign = rng.choice([-1.0, 1.0])
    for change in (0.0, sign * 1e-16, -sign * 1e-12):
        target = p @ F
        target[0] = constant * (1.0 + change)
        found = fit_maxent(F, target, method=method, max_iter=100_000)
        assert found.converged
        np.testing.assert_allclose(found.prob, alone.prob, atol=1e-7)


def test_sequential_scaling_climbs_where_probabilities_underflow():
    F = np.array([[8.7, 13.0], [0.3, 1.2], [3.1, 1.0]])
    p = np.array([1e-5, 1e-5, 1.0 - 2e-5])
    options = {"log_prior": [1.0, 3.0, 0.0], "max_iter": 100_000, "tol": 1e-6}
    found = fit_maxent(F, p @ F, method="scgis", **options)
    np.testing.assert_allclose(found.prob, p, rtol=1e-2)
    G = np.array([[1.0, 2.0], [2.0, 2.0], [3.0, 0.0]])
    found = fit_maxent(G, [2.8, 4.7], sigma2=1000.0, method="scgis")
    np.testing.assert_allclose(found.lam, [800.0, 2700.0], rtol=1e-6)
    for result in (found,):
        assert np.diff([h[1] for h in result.history]).max() <= 1e-9


def test_equal_models_are_equal(rng, tmp_path):
    F = rng.normal(size=(6, 2))
    for features in (F, sp.csr_array(F)):
        model = MaxEntModel(features, [0.5, -1.0], np.arange(6.0))
        maxent.save(model, tmp_path / "model.npz")
        for other in (
            maxent.load(tmp_path / "model.npz"),
            MaxEntModel(features, [0.5, -1.0], np.arange(6.0)),
        ):
            assert other == model and hash(other) == hash(model)
        assert model != MaxEntModel(features, [0.5, -1.0])
        assert model != MaxEntModel(features, [0.5, 1.0], np.arange(6.0))
        assert model != MaxEntModel(2 * features, [0.5, -1.0], np.arange(6.0))
        assert model != "model"
