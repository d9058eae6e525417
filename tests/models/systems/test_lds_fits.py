"""Fits of linear systems: inputs, held entries, starts without prior, convergence."""

import numpy as np
import pytest
from models.state_space_cases import random_lds
from models.systems.structural import CASES
from models.systems.test_lds_answers import changed, in_part, with_inputs, without_prior
from oracles import state_space as dense
from refusals import refused
from scipy.optimize import minimize

from maxent.models import LinearDynamicalSystem
from maxent.models._state_space import Parameters
from maxent.models.systems._derivatives import gradient
from maxent.models.systems._lds_em import regression

pytestmark = pytest.mark.filterwarnings(
    "ignore:LinearDynamicalSystem:sklearn.exceptions.ConvergenceWarning"
)


def dense_value(model, x, u=None):
    """Log-likelihood by the joint Gaussian."""
    free = np.isinf(np.diagonal(model.initial_cov))
    if u is not None:
        model = LinearDynamicalSystem(**dense.with_inputs(model.parameters(), u))
    if free.any():
        return dense.diffuse(model, x, free, LinearDynamicalSystem)[0]
    _, _, mean, cov, _ = dense.joint(model, len(x) - 1)
    return dense.log_density(x, mean, cov)


def directions(name, array):
    """Entries of a parameter that may move, covariances symmetric."""
    for at in np.ndindex(*array.shape):
        if np.isfinite(array[list(at)][:, list(at)] if "cov" in name else 0.0).all():
            step = np.zeros(array.shape)
            step[at] = 1.0
            yield at, 0.5 * (step + step.T) if "cov" in name else step


@pytest.mark.parametrize("k", [0, 1, 2])
@pytest.mark.parametrize("noise", ["full", "some"])
def test_gradients_are_those_of_the_dense_likelihood(k, noise, rng):
    model = without_prior(with_inputs(rng, random_lds(rng, 2, 2)), k)
    if noise == "some":  # without noise a covariance may only grow
        model = changed(model, observation_cov=np.diag([0.0, 0.5]))
    x, u = in_part(rng, rng.normal(size=(7, 2))), rng.normal(size=(7, 2))
    value, slopes = gradient(Parameters(**model.parameters()), x, u)
    assert value == pytest.approx(dense_value(model, x, u), abs=1e-8)
    for name, array in model.parameters().items():
        for at, way in directions(name, array):
            zero = name == "observation_cov" and noise == "some" and 0 in at
            if zero and at != (0, 0):
                continue
            # differences of the second order, from one side at the limit
            h = 1e-5
            steps = (0.0, 1.0, 2.0) if zero else (-1.0, 0.0, 1.0)
            weights = (-1.5, 2.0, -0.5) if zero else (-0.5, 0.0, 0.5)
            each = [
                dense_value(changed(model, **{name: array + s * h * way}), x, u)
                for s in steps
            ]
            slope = np.dot(weights, each) / h
            size = 1.0 + abs(slope)
            assert getattr(slopes, name)[at] == pytest.approx(slope, abs=1e-5 * size)


def test_regressions_with_held_entries_are_least_squares(rng):
    y, z = rng.normal(size=(30, 3)), rng.normal(size=(30, 4))
    cov = random_lds(rng, 3, 1).transition_cov
    old = rng.normal(size=(3, 4))
    for held in (
        rng.random((3, 4)) < 0.4,
        np.tile(rng.random(4) < 0.5, (3, 1)),
        np.zeros((3, 4), bool),
    ):
        for S in (cov, np.diag(np.diagonal(cov))):
            B = regression(y.T @ z, z.T @ z, old, held, S)
            np.testing.assert_array_equal(B[held], old[held])
            residual = y - z @ B.T
            slope = np.linalg.solve(S, residual.T @ z)  # vanishes at the optimum
            assert np.abs(slope[~held]).max(initial=0.0) < 1e-9


def problem(rng):
    """Data, inputs and options of a fit in which much is asked at once."""
    n, d = rng.integers(1, 4), rng.integers(1, 3)
    model = random_lds(rng, n, d, radius=rng.uniform(0.3, 1.0))
    T = rng.integers(n + 2, 20, rng.integers(1, 4))
    data = [in_part(rng, x) if len(x) > 4 else x for x in model.sample(len(T), T, rng)]
    start, options = model, {}
    if rng.random() < 0.5:
        start = with_inputs(rng, model, 1)
        options["inputs"] = [rng.normal(size=(t, 1)) for t in T]
    for name in ("transition_cov", "observation_cov"):
        if rng.random() < 0.5:
            options[f"{name}_type"] = "diagonal"
            flat = np.diag(np.diagonal(getattr(start, name)))
            start = changed(start, **{name: flat})
    fixed = {}
    for name in ("transition", "observation", "transition_offset", "initial_mean"):
        fixed[name] = rng.random(getattr(start, name).shape) < 0.3
    if "transition_cov_type" in options:
        fixed["transition_cov"] = rng.random(n) < 0.3
    options["fixed"] = fixed
    if n == 1 or all(len(x) > 2 * n for x in data):
        options["initial"] = str(rng.choice(["fitted", "diffuse"]))
        if options["initial"] == "diffuse":
            fixed["observation"], fixed["transition"] = np.ones((d, n), bool), True
    return data, start, options


def test_no_step_falls_and_held_entries_stay(rng):
    for _ in range(12):
        data, start, options = problem(rng)
        fitted = LinearDynamicalSystem.fit(
            data, init=start, max_iter=40, tol=1e-13, prior=0.1, **options
        )
        trace = fitted.fit_result.objective_history
        assert (np.diff(trace) >= -1e-10 * (1.0 + np.abs(trace[1:]))).all()
        for name, mask in options["fixed"].items():
            if name == "initial_mean" and options.get("initial") == "diffuse":
                continue
            old, new = getattr(start, name), getattr(fitted, name)
            mask = np.broadcast_to(mask, old.shape) if mask is True else mask
            mask = np.diag(mask) if mask.ndim < old.ndim else mask
            np.testing.assert_allclose(new[mask], old[mask], rtol=1e-12)
        for name in ("transition_cov", "observation_cov"):
            if f"{name}_type" in options:
                cov = getattr(fitted, name)
                assert not (cov - np.diag(np.diagonal(cov))).any()


@pytest.mark.parametrize("name", ["local level", "local linear trend", "ARMA(2, 1)"])
def test_fits_are_maxima_of_the_dense_likelihood(name, rng):
    case = CASES[name]
    x = case.data(rng)[:60, None]
    fitted = LinearDynamicalSystem.fit(
        x, init=case.start, prior=0, tol=1e-11, **case.options
    )
    values = case.values(fitted)
    scale = np.maximum(np.abs(values), 1e-3)

    def lost(share):
        with np.errstate(all="ignore"):
            try:
                return -dense_value(case.moved(scale * share), x)
            except (ValueError, AssertionError, np.linalg.LinAlgError):
                return np.inf

    start = values / scale
    best = -lost(start)
    assert fitted.fit_result.objective == pytest.approx(best, abs=1e-6)
    found = minimize(lost, start * 1.1, method="Nelder-Mead", options={"maxfev": 400})
    assert -found.fun <= best + 1e-5


def test_a_line_is_fitted_in_few_steps(rng):
    line = np.arange(100.0)
    for x in (line, line + rng.normal(size=100)):
        result = LinearDynamicalSystem.fit(x, 2).fit_result
        assert result.converged and result.n_iter < 1000
        assert (np.diff(result.objective_history) >= 0).all()


def test_a_random_walk_ends_at_the_limit_of_stability(rng):
    x = [rng.normal(size=(50, 2)).cumsum(axis=0) for _ in range(3)]
    fitted = LinearDynamicalSystem.fit(x, 1, tol=1e-6)
    assert fitted.fit_result.converged and fitted.fit_result.n_iter < 500
    assert fitted.spectral_radius() <= 1.0 + 1e-9


def test_input_matrices_are_those_of_a_regression_without_states(rng):
    """With a state that never moves the observations are a regression on inputs."""
    u = rng.normal(size=(80, 2))
    x = u @ [[1.0], [-2.0]] + 3.0 + 0.1 * rng.normal(size=(80, 1))
    start = LinearDynamicalSystem(
        [[0.0]], [[0.0]], [[0.0]], [[1.0]], [0.0], [[0.0]],
        observation_input=[[0.0, 0.0]],
    )  # fmt: skip
    names = set(start.parameters()) - {
        "observation_input", "observation_offset", "observation_cov",
    }  # fmt: skip
    fitted = LinearDynamicalSystem.fit(
        x, init=start, inputs=u, fixed=names, prior=0.0, tol=1e-12
    )
    z = np.column_stack([u, np.ones(80)])
    best, left = np.linalg.lstsq(z, x, rcond=None)[:2]
    np.testing.assert_allclose(fitted.observation_input, best[:2].T, atol=1e-8)
    np.testing.assert_allclose(fitted.observation_offset, best[2], atol=1e-8)
    np.testing.assert_allclose(fitted.observation_cov, [left / 80], rtol=1e-8)
    errors = fitted.standard_errors(x, inputs=u, fixed=names)
    law = np.linalg.inv(z.T @ z) * left / 80
    found = [*errors["observation_input"][0], *errors["observation_offset"]]
    np.testing.assert_allclose(found, np.sqrt(np.diagonal(law)), rtol=1e-5)
    expected = np.sqrt(2.0 / 80) * fitted.observation_cov
    np.testing.assert_allclose(errors["observation_cov"], expected, rtol=1e-5)


def test_inputs_that_drive_states_are_recovered(rng):
    truth = LinearDynamicalSystem(
        [[0.8]], [[0.01]], [[1.0]], [[0.01]], [0.0], [[1.0]],
        transition_input=[[0.5]], observation_input=[[-1.0]],
    )  # fmt: skip
    u = [rng.normal(size=(100, 1)) for _ in range(3)]
    x = truth.sample(3, 100, rng, inputs=u)
    fitted = LinearDynamicalSystem.fit(x, 1, inputs=u, tol=1e-7, prior=0.01)
    best = truth.log_likelihood(x, inputs=u).sum()
    assert fitted.log_likelihood(x, inputs=u).sum() > best - 0.01 * abs(best)
    gain = fitted.observation @ fitted.transition_input  # in any coordinates
    # standard errors are about 0.01
    np.testing.assert_allclose(gain, [[0.5]], atol=0.1)
    np.testing.assert_allclose(fitted.observation_input, [[-1.0]], atol=0.1)
    assert fitted.aic(x, inputs=u) < LinearDynamicalSystem.fit(x, 1).aic(x)


def test_standard_errors_are_those_of_the_dense_likelihood():
    case = CASES["local linear trend"]
    # some series have a variance of zero at the maximum, which is another matter
    x = case.data(np.random.default_rng(3))[:, None]
    model = LinearDynamicalSystem.fit(
        x, init=case.start, prior=0, tol=1e-11, **case.options
    )
    values = case.values(model)
    errors = case.errors(model.standard_errors(x, **case.questions))
    width = np.minimum(0.01 * errors, 0.1 * values)
    information, h = np.empty((3, 3)), np.diag(width)
    for i in range(3):
        for j in range(3):
            signs = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
            each = [
                a * b * dense_value(case.moved(values + a * h[i] + b * h[j]), x)
                for a, b in signs
            ]
            information[i, j] = -sum(each) / (4.0 * width[i] * width[j])
    expected = np.sqrt(np.diagonal(np.linalg.inv(information)))
    np.testing.assert_allclose(errors, expected, rtol=5e-3)


def test_variances_at_zero_have_no_standard_error():
    case = CASES["local level"]
    x = np.tile([1.0, -1.0], 30)  # no level moves
    model = LinearDynamicalSystem.fit(
        x, init=case.start, prior=0, tol=1e-9, **case.options
    )
    assert model.transition_cov[0, 0] < 1e-3
    ask = {"fixed": case.questions["fixed"]}
    refused(lambda: model.standard_errors(x, **ask), r"transition_cov\[0, 0\] is at no")


def test_what_cannot_be_held_or_told_is_refused(rng):
    model = random_lds(rng, 2, 1)
    x = model.sample(1, 20, rng)[0]

    def fit(**options):
        return LinearDynamicalSystem.fit(x, init=model, max_iter=1, **options)

    refused(lambda: fit(fixed={"transition": [1, 0]}), "True or a boolean array of")
    mask = np.zeros((3, 2), bool)
    refused(lambda: fit(fixed={"transition": mask}), r"has shape \(3, 2\) and dty")
    refused(
        lambda: fit(fixed={"transition_cov": np.array([True, False])}),
        "holds 1 of 4 entries: a full covariance is held as a whole or not at all",
    )
    refused(lambda: fit(transition_cov_type="diag"), "transition_cov_type='diag'")
    refused(lambda: fit(initial="flat"), "initial='flat'")
    refused(lambda: fit(initial="diffuse"), "column 0 of transition must be held")
    refused(lambda: model.standard_errors(x), "observed information is singular")
