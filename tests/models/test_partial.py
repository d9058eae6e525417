"""Vectors of which a part is missing: dense Gaussians, derivatives, monotone fits."""

import numpy as np
import pytest
from models.networks.test_linear_gaussian import random_net
from models.sequence_cases import random_gaussian_hmm
from models.state_space_cases import random_factorial, random_lds
from oracles import state_space as dense
from oracles.sequence_models import posteriors
from refusals import refused
from scipy.stats import multivariate_normal

from maxent.kernels import ProductKernel
from maxent.models import (
    FactorialHMM,
    GaussianHMM,
    LinearDynamicalSystem,
    LinearGaussianNetwork,
    Mixture,
    SwitchingLDS,
)
from maxent.models.systems._lds_em import expected_products

KINDS = ("full", "diagonal", "spherical")

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def with_holes(rng, x, share=0.35):
    """Entries, and some whole rows, replaced by NaN; one row is whole, one partial."""
    x = np.array(x)
    x[rng.random(x.shape) < share] = np.nan
    x[rng.random(len(x)) < 0.15] = np.nan
    x[0] = rng.normal(size=x.shape[1])
    x[-1] = np.nan
    x[-1, -1] = rng.normal()
    return x


def derivative(function, at, shape):
    """Central differences of a function of an array."""
    out = np.empty(shape)
    for i in np.ndindex(*shape):
        step = np.zeros(shape)
        step[i] = 1e-5
        out[i] = (function(at + step) - function(at - step)) / 2e-5
    return out


# -- linear dynamical systems ----------------------------------------------------------
@pytest.mark.parametrize("steps", [None, 8])
def test_systems_are_conditioned_on_what_is_observed(steps, rng):
    model = random_lds(rng, 2, 3, steps=steps)
    data = [with_holes(rng, x) for x in model.sample(3, [8, 2, 5], rng)]
    data.append(model.sample(1, 4, rng)[0])
    for x, value, found in zip(data, model.log_likelihood(data), model.posterior(data)):
        _, _, mean, cov, _ = dense.joint(model, len(x) - 1)
        expected = dense.log_density(x, mean, cov)
        assert value == pytest.approx(expected, abs=1e-9)
        assert found.log_likelihood == pytest.approx(expected, abs=1e-9)
        mean, cov = dense.conditioned(model, x)
        np.testing.assert_allclose(found.mean.ravel(), mean, atol=1e-9)
        t = np.arange(len(x))
        blocks = cov.reshape(len(x), 2, len(x), 2)
        np.testing.assert_allclose(found.cov, blocks[t, :, t], atol=1e-9)


def test_expected_products_are_the_derivatives_of_the_likelihood(rng):
    """Fisher's identity, with the dense likelihood differentiated numerically."""
    model = random_lds(rng, 2, 3)
    data = [with_holes(rng, x) for x in model.sample(2, [6, 3], rng)]
    data.append(model.sample(1, 3, rng)[0])
    given = model.parameters()

    def value(**changes):
        moved = LinearDynamicalSystem(**{**given, **changes})
        return sum(
            dense.log_density(x, *dense.joint(moved, len(x) - 1)[2:4]) for x in data
        )

    read = model._read(data)
    total, e = expected_products(model._parameters, read)
    assert total == pytest.approx(value(), abs=1e-9)
    C, c, R = model.observation, model.observation_offset, model.observation_cov
    B, inverse = np.column_stack([C, c]), np.linalg.inv(R)
    slope = inverse @ (e.xz - B @ e.seen)
    np.testing.assert_allclose(
        slope[:, :2], derivative(lambda X: value(observation=X), C, C.shape), atol=1e-5
    )
    np.testing.assert_allclose(
        slope[:, 2],
        derivative(lambda b: value(observation_offset=b), c, c.shape),
        atol=1e-5,
    )
    scatter = e.xx - B @ e.xz.T - e.xz @ B.T + B @ e.seen @ B.T
    own = 0.5 * inverse @ (scatter - e.seen[-1, -1] * R) @ inverse

    def of_cov(step):
        return value(observation_cov=R + 0.5 * (step + step.T))

    np.testing.assert_allclose(
        own, derivative(of_cov, np.zeros_like(R), R.shape), atol=1e-5
    )
    A, b = model.transition, model.transition_offset
    B, inverse = np.column_stack([A, b]), np.linalg.inv(model.transition_cov)
    slope = inverse @ (e.across - B @ e.before)
    np.testing.assert_allclose(
        slope[:, :2], derivative(lambda X: value(transition=X), A, A.shape), atol=1e-5
    )
    m = model.initial_mean
    np.testing.assert_allclose(
        np.linalg.solve(model.initial_cov, e.first - len(data) * m),
        derivative(lambda x: value(initial_mean=x), m, m.shape),
        atol=1e-5,
    )


def test_fits_of_systems_never_fall_and_know_no_order(rng):
    for _ in range(8):
        model = random_lds(rng, int(rng.integers(1, 4)), 2)
        data = [with_holes(rng, x) for x in model.sample(3, [12, 5, 9], rng)]
        fit = LinearDynamicalSystem.fit(data, model.n_states, max_iter=15, tol=1e-15)
        trace = fit.fit_result.objective_history
        assert (np.diff(trace) > -1e-11 * (1 + np.abs(trace[1:]))).all()
    moved = LinearDynamicalSystem.fit(
        [x + 100.0 for x in data], model.n_states, max_iter=15, tol=1e-15
    )
    np.testing.assert_allclose(moved.transition, fit.transition, atol=1e-6)


# -- switching systems -----------------------------------------------------------------
def random_switching(rng, n_regimes, n, d):
    systems = [random_lds(rng, n, d) for _ in range(n_regimes)]
    one = systems[0]
    return SwitchingLDS(
        rng.dirichlet(np.ones(n_regimes)),
        rng.dirichlet(np.ones(n_regimes), size=n_regimes),
        [s.transition for s in systems],
        [s.transition_cov for s in systems],
        one.observation,
        one.observation_cov,
        one.initial_mean,
        one.initial_cov,
        [s.transition_offset for s in systems],
        one.observation_offset,
    ), one


def test_one_regime_is_a_linear_system_and_bounds_are_below_the_sum(rng):
    model, one = random_switching(rng, 1, 2, 3)
    data = [with_holes(rng, x) for x in one.sample(3, [7, 1, 4], rng)]
    np.testing.assert_allclose(
        model.lower_bound(data), one.log_likelihood(data), rtol=1e-9
    )
    for mine, theirs in zip(model.posterior(data), one.posterior(data)):
        np.testing.assert_allclose(mine.mean, theirs.mean, atol=1e-9)
        np.testing.assert_allclose(mine.cov, theirs.cov, atol=1e-9)
    model, one = random_switching(rng, 2, 2, 3)
    data = [with_holes(rng, x) for x in model.sample(3, [6, 1, 4], rng)]
    exact = model.log_likelihood(data)
    assert (model.lower_bound(data) <= exact + 1e-9 * np.abs(exact)).all()


def test_fits_of_switching_systems_never_fall(rng):
    for k in range(4):
        model, _ = random_switching(rng, 2, 2, 2)
        data = [with_holes(rng, x) for x in model.sample(3, [12, 5, 9], rng)]
        fit = SwitchingLDS.fit(data, 2, 2, max_iter=12, tol=1e-15, random_state=k)
        trace = fit.fit_result.objective_history
        assert (np.diff(trace) > -1e-10 * (1 + np.abs(trace[1:]))).all()
    one = SwitchingLDS.fit(data, 1, 1, max_iter=2, tol=1e-15)
    start = LinearDynamicalSystem(
        one.transition[0], one.transition_cov[0], one.observation, one.observation_cov,
        one.initial_mean, one.initial_cov, one.transition_offset[0],
        one.observation_offset,
    )  # fmt: skip
    for _ in range(2):  # the same steps, as one regime is a linear system
        one = SwitchingLDS.fit(data, init=one, max_iter=1, tol=1e-15, smoothing=0.0)
        start = LinearDynamicalSystem.fit(data, init=start, max_iter=1, tol=1e-15)
    np.testing.assert_allclose(one.transition[0], start.transition, atol=1e-7)
    np.testing.assert_allclose(one.observation_cov, start.observation_cov, atol=1e-7)


# -- hidden Markov models --------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_states_are_those_of_the_marginal_densities(kind, rng):
    model = random_gaussian_hmm(rng, 2, 3, kind)
    matrices = {
        "full": lambda c: c,
        "diagonal": np.diag,
        "spherical": lambda c: c * np.eye(3),
    }
    covs = [matrices[kind](c) for c in model.cov]
    data = [with_holes(rng, rng.normal(size=(n, 3))) for n in (5, 2)]
    for x, value, gamma in zip(data, model.log_likelihood(data), model.posterior(data)):
        rows = np.zeros((len(x), 2))
        for t, row in enumerate(x):
            o = np.flatnonzero(~np.isnan(row))
            for k in range(2 * (len(o) > 0)):
                law = multivariate_normal(model.mean[k][o], covs[k][np.ix_(o, o)])
                rows[t, k] = law.logpdf(row[o])
        expected, posterior, *_ = posteriors(model.start, model.transition, rows)
        assert value == pytest.approx(expected, rel=1e-11)
        np.testing.assert_allclose(gamma, posterior, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_an_em_step_follows_the_derivatives_of_the_likelihood(kind, rng):
    """mu' - mu and S' - S are gradients, by Fisher's identity."""
    model = random_gaussian_hmm(rng, 2, 2, kind)
    data = [with_holes(rng, rng.normal(size=(n, 2))) for n in (25, 12)]
    new = GaussianHMM.fit(data, init=model, smoothing=0.0, max_iter=1, tol=1e-300)
    weight = sum(
        gamma[~np.isnan(x).all(axis=1)].sum(axis=0)
        for x, gamma in zip(data, model.posterior(data))
    )

    def value(mean, cov):
        moved = GaussianHMM(model.start, model.transition, mean, cov)
        return moved.log_likelihood(data).sum()

    slope = derivative(lambda m: value(m, model.cov), model.mean, model.mean.shape)
    step = new.mean - model.mean
    for k, w in enumerate(weight):
        cov = model.cov[k]
        if kind == "full":
            expected = w * np.linalg.solve(cov, step[k])
        else:
            expected = w * step[k] / cov
        np.testing.assert_allclose(slope[k], expected, rtol=1e-5, atol=1e-5)
    if kind == "full":

        def of_cov(change):
            both = 0.5 * (change + change.swapaxes(1, 2))
            return value(model.mean, model.cov + both)

        slope = derivative(of_cov, np.zeros_like(model.cov), model.cov.shape)
        second = new.cov + step[:, :, None] * step[:, None, :]
        for k, w in enumerate(weight):
            inverse = np.linalg.inv(model.cov[k])
            expected = 0.5 * w * inverse @ (second[k] - model.cov[k]) @ inverse
            np.testing.assert_allclose(slope[k], expected, rtol=1e-5, atol=1e-5)
        return
    slope = derivative(lambda c: value(model.mean, c), model.cov, model.cov.shape)
    if kind == "diagonal":
        gain = new.cov + step**2 - model.cov
        expected = 0.5 * weight[:, None] * gain / model.cov**2
    else:
        gain = new.cov + np.square(step).mean(axis=1) - model.cov
        expected = weight * gain / model.cov**2
    np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_fits_of_hidden_chains_never_fall(kind, rng):
    for k in range(2):
        data = [with_holes(rng, rng.normal(size=(n, 3))) for n in (20, 9, 2)]
        fit = GaussianHMM.fit(
            data, 2, covariance_type=kind, smoothing=0.1, max_iter=12, tol=1e-14,
            random_state=k,
        )  # fmt: skip
        trace = fit.fit_result.objective_history
        assert (np.diff(trace) > -1e-12 * (1 + np.abs(trace[1:]))).all()
    many = GaussianHMM.fit_many(data[:2], n_states=2, max_iter=2, random_state=0)
    assert len(many) == 2


def test_a_fit_finds_a_correlation_from_rows_that_miss_parts(rng):
    truth = np.array([[1.0, 0.8], [0.8, 1.0]])
    x = rng.multivariate_normal([1.0, -1.0], truth, size=4000)
    x[:1500, 0] = np.nan
    x[1500:3000, 1] = np.nan
    fit = GaussianHMM.fit(x, 1, smoothing=0.0, random_state=0)
    np.testing.assert_allclose(fit.mean[0], [1.0, -1.0], atol=0.2)
    np.testing.assert_allclose(fit.cov[0], truth, atol=0.25)


# -- factorial models ------------------------------------------------------------------
def test_factorial_models_are_hidden_chains_over_joint_states(rng):
    model = random_factorial(rng, (2, 3), 3)
    data = [with_holes(rng, x) for x in model.sample(3, [6, 1, 4], rng)]
    a, b = model.start
    A, B = model.transition
    means = (model.mean[0][:, None] + model.mean[1]).reshape(6, 3)
    joint = GaussianHMM(
        np.outer(a, b).ravel(), np.kron(A, B), means, np.tile(model.cov, (6, 1, 1))
    )
    exact = joint.log_likelihood(data)
    np.testing.assert_allclose(model.log_likelihood(data), exact, rtol=1e-11)
    assert (model.lower_bound(data, n_init=2) <= exact + 1e-9 * np.abs(exact)).all()


def test_one_chain_takes_the_steps_of_a_hidden_markov_model(rng):
    model = random_factorial(rng, (3,), 2)
    data = [with_holes(rng, x) for x in model.sample(3, [16, 1, 9], rng)]
    np.testing.assert_allclose(
        model.lower_bound(data), model.log_likelihood(data), rtol=1e-9
    )
    fit = FactorialHMM.fit(
        data, init=model, smoothing=0.0, shrinkage=1e-12, ridge=0.0, max_iter=1,
        tol=1e-300,
    )  # fmt: skip
    # with one covariance for all states: the mean of those of the states' own fits
    joint = GaussianHMM(
        model.start[0], model.transition[0], model.mean[0], np.stack([model.cov] * 3)
    )
    own = GaussianHMM.fit(data, init=joint, smoothing=0.0, max_iter=1, tol=1e-300)
    np.testing.assert_allclose(fit.mean[0], own.mean, atol=1e-7)
    np.testing.assert_allclose(fit.transition[0], own.transition, atol=1e-8)
    weight = sum(
        gamma[~np.isnan(x).all(axis=1)].sum(axis=0)
        for x, gamma in zip(data, joint.posterior(data))
    )
    expected = np.tensordot(weight, own.cov, 1) / weight.sum()
    np.testing.assert_allclose(fit.cov, expected, atol=1e-7)


def test_fits_of_factorial_models_never_fall(rng):
    for k in range(4):
        model = random_factorial(rng, (2, 2), 3)
        data = [with_holes(rng, x) for x in model.sample(3, [15, 4, 9], rng)]
        fit = FactorialHMM.fit(data, [2, 2], max_iter=20, tol=1e-15, random_state=k)
        trace = fit.fit_result.objective_history
        assert (np.diff(trace) > -1e-10 * (1 + np.abs(trace[1:]))).all()


# -- use -------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "model, params",
    [
        ("GaussianHMM", {"n_states": 2, "smoothing": 0.1}),
        ("LinearDynamicalSystem", {"n_states": 1}),
    ],
)
def test_series_that_miss_parts_have_a_kernel(model, params, rng):
    X = [with_holes(rng, rng.normal(size=(n, 2))) for n in (9, 12, 7, 8)]
    params = {**params, "max_iter": 3}
    maker = ProductKernel(model, model_params=params).fit(X[:3])
    assert maker.horizon_ == 8
    K, new = maker.fit_transform(X[:3]), maker.transform(X[3:])
    np.testing.assert_array_equal(np.diagonal(K), 1.0)
    assert np.linalg.eigvalsh(K)[0] > -1e-12 and np.isfinite(new).all()


# -- linear Gaussian networks ----------------------------------------------------------
def test_networks_are_conditioned_on_what_is_observed(rng):
    net = random_net(rng)
    X = with_holes(rng, net.sample(6, rng))
    X[2] = np.nan
    index = np.arange(len(net.offsets))
    places = {"h": index[:2], "a": index[2:3], "g": index[3:4], "b": index[4:]}
    columns = np.concatenate([places[name] for name in net.observed])
    hidden = np.concatenate([places["h"], places["g"]])
    mean, cov = net.posterior(X)
    log_lik = net.log_likelihood(X)
    for i, x in enumerate(X):
        o, seen = columns[~np.isnan(x)], x[~np.isnan(x)]
        if len(o):
            law = multivariate_normal(net.mean[o], net.cov[np.ix_(o, o)])
            assert log_lik[i] == pytest.approx(law.logpdf(seen), abs=1e-10)
        else:
            assert log_lik[i] == 0.0
        K = net.cov[np.ix_(hidden, o)] @ np.linalg.inv(net.cov[np.ix_(o, o)])
        expected = net.mean[hidden] + K @ (seen - net.mean[o])
        np.testing.assert_allclose(mean[i], expected, atol=1e-10)
        left = net.cov[np.ix_(hidden, hidden)] - K @ net.cov[np.ix_(o, hidden)]
        np.testing.assert_allclose(cov[i], left, atol=1e-10)


def test_fits_of_networks_never_fall_and_find_the_law(rng):
    order, above = [("a", 1), ("b", 2)], {"b": ["a"]}
    net = random_net(rng, order, above, ["a", "b"])
    X = net.sample(4000, rng)
    X[rng.random(X.shape) < 0.3] = np.nan
    fitted = LinearGaussianNetwork.fit(X, order, above, tol=1e-9, max_iter=500)
    trace = fitted.fit_result.objective_history
    assert np.diff(trace).min() > -1e-10 * np.abs(trace[-1])
    assert trace[-1] > net.log_likelihood(X).sum()  # no other law is as likely
    spread = np.sqrt(np.diagonal(net.cov))
    assert np.abs((fitted.mean - net.mean) / spread).max() < 0.1
    assert np.abs((fitted.cov - net.cov) / np.outer(spread, spread)).max() < 0.15


def test_a_network_of_one_node_is_a_gaussian_with_missing_entries(rng):
    """The same EM as that of a mixture of one component."""
    X = with_holes(rng, rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3)))
    X = X[~np.isnan(X).all(axis=1)]
    net = LinearGaussianNetwork.fit(X, [("x", 3)], {}, tol=1e-14, max_iter=5000)
    one = Mixture.fit(X, n_components=1, tol=1e-14, max_iter=5000, smoothing=0.0)
    np.testing.assert_allclose(net.mean, one.components.mean[0], atol=1e-5)
    np.testing.assert_allclose(net.cov, one.components.cov[0], atol=1e-5)


# -- refusals --------------------------------------------------------------------------
def test_other_models_and_empty_columns_are_refused(rng):
    x = with_holes(rng, rng.normal(size=(6, 2)))
    x[:, 1] = np.nan
    refused(lambda: GaussianHMM.fit(x, 1), "column 1 of the sequences is missing")
    refused(
        lambda: LinearDynamicalSystem.fit(x, 1), "column 1 of the sequences is missing"
    )
    x[2] = [np.inf, np.nan]
    refused(lambda: GaussianHMM.fit(x, 1), "infinite; a missing observation is NaN")
