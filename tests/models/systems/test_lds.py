"""Linear dynamical systems against dense joint Gaussians; EM; input."""

import numpy as np
import pytest
from models.state_space_cases import random_lds
from oracles import state_space as dense
from refusals import refused
from sklearn.exceptions import ConvergenceWarning

from maxent.models import LinearDynamicalSystem
from maxent.models.systems._free_parameters import Held
from maxent.models.systems._lds_em import CovariancePrior

pytestmark = pytest.mark.filterwarnings(
    "ignore:LinearDynamicalSystem:sklearn.exceptions.ConvergenceWarning"
)

SIZES = [(1, 1), (2, 1), (1, 3), (3, 2), (4, 2)]


def with_gaps(rng, x, share=0.3):
    x = x.copy()
    x[rng.random(len(x)) < share] = np.nan
    return x


@pytest.mark.parametrize(("n", "d"), SIZES)
@pytest.mark.parametrize("kind", ["constant", "varying", "singular"])
def test_likelihood_and_smoother_are_those_of_the_joint_gaussian(rng, n, d, kind):
    steps = 9 if kind == "varying" else None
    model = random_lds(rng, n, d, steps=steps, singular=kind == "singular")
    for x in (
        model.sample(1, 9, rng)[0],
        with_gaps(rng, model.sample(1, 7, rng)[0]),
        [[1.0] * d],
    ):
        x = np.asarray(x)
        _, _, mean, cov, _ = dense.joint(model, len(x) - 1)
        value = dense.log_density(x, mean, cov)
        assert model.log_likelihood(x)[0] == pytest.approx(value, abs=1e-9)
        found = model.posterior(x)[0]
        assert found.log_likelihood == pytest.approx(value, abs=1e-9)
        mean, cov = dense.conditioned(model, x)
        T = len(x)
        np.testing.assert_allclose(found.mean.ravel(), mean, atol=1e-9)
        blocks = cov.reshape(T, n, T, n)
        t = np.arange(T)
        np.testing.assert_allclose(found.cov, blocks[t, :, t], atol=1e-9)
        np.testing.assert_allclose(found.lag_cov, blocks[t[1:], :, t[:-1]], atol=1e-9)


def test_filtered_states_are_smoothed_states_of_the_beginning(rng):
    model = random_lds(rng, 3, 2)
    x = with_gaps(rng, model.sample(1, 8, rng)[0])
    whole = model.posterior(x)[0]
    for t in range(8):
        part = model.posterior(x[: t + 1])[0]
        np.testing.assert_allclose(whole.filtered_mean[t], part.mean[-1], atol=1e-12)
        np.testing.assert_allclose(whole.filtered_cov[t], part.cov[-1], atol=1e-12)


def test_sequences_of_any_form_give_the_same(rng):
    model = random_lds(rng, 2, 2)
    parts = model.sample(3, [5, 1, 8], rng)
    each = model.log_likelihood(parts)
    joined = model.log_likelihood(np.concatenate(parts), lengths=[5, 1, 8])
    np.testing.assert_array_equal(each, joined)
    assert each[1] == model.log_likelihood(parts[1])[0]


def test_marginals_and_samples_are_those_of_the_joint_gaussian(rng):
    model = random_lds(rng, 2, 2, steps=5)
    _, _, mean, cov, _ = dense.joint(model, 4)
    law = model.marginals(4)
    np.testing.assert_allclose(law.mean.ravel(), mean, atol=1e-12)
    for t in range(5):
        block = slice(2 * t, 2 * t + 2)
        np.testing.assert_allclose(law.cov[t], cov[block, block], atol=1e-12)
    x = np.reshape(model.sample(4000, 5, rng), (4000, -1))
    error = (x.mean(axis=0) - mean) / np.sqrt(np.diagonal(cov) / len(x))
    assert np.abs(error).max() < 5.0  # ten standard normal numbers
    whitened = np.linalg.solve(np.linalg.cholesky(cov), (x - mean).T)
    spread = whitened @ whitened.T / len(x) - np.eye(10)
    assert np.abs(spread).max() < 5.0 * np.sqrt(2.0 / len(x))


def test_the_smoother_keeps_digits_where_noise_is_tiny(rng):
    model = random_lds(rng, 3, 1)
    sharp = LinearDynamicalSystem(
        **{**model.parameters(), "observation_cov": [[1e-12]]}
    )
    found = sharp.posterior(sharp.sample(1, 30, rng)[0])[0]
    values = np.linalg.eigvalsh(found.cov)
    assert values.min() >= -1e-14 * values.max()
    seen = model.observation @ found.cov @ model.observation.T
    size = np.abs(model.observation).sum() ** 2 * np.abs(found.predicted_cov).max()
    assert (seen <= 1e-12 + 16 * np.finfo(float).eps * size).all()


@pytest.mark.parametrize("steps", [None, 9])
def test_forecasts_are_those_of_the_joint_gaussian(rng, steps):
    model = random_lds(rng, 3, 2, steps=steps)
    x = model.sample(1, 6, rng)[0]
    x[2, 1] = np.nan
    _, _, mean, cov, _ = dense.joint(model, 8)
    seen = np.flatnonzero(~np.isnan(x).ravel())
    K = np.linalg.solve(cov[np.ix_(seen, seen)], cov[seen, 12:]).T
    expected = mean[12:] + K @ (x.ravel()[seen] - mean[seen])
    left = (cov[12:, 12:] - K @ cov[seen, 12:]).reshape(3, 2, 3, 2)
    found = model.forecast(x, 3)[0]
    np.testing.assert_allclose(found.mean.ravel(), expected, atol=1e-9)
    t = np.arange(3)
    np.testing.assert_allclose(found.cov, left[t, :, t], atol=1e-9)
    refused(lambda: model.forecast(x, 0), "steps=0 must be an integer >= 1")


# -- EM --------------------------------------------------------------------------------
def em_problem(rng):
    n, d = rng.integers(1, 4), rng.integers(1, 4)
    model = random_lds(rng, n, d, radius=rng.uniform(0.2, 1.05))
    T = rng.integers(1, 25, rng.integers(1, 4))
    data = model.sample(len(T), T, rng)
    if rng.random() < 0.3:
        data = [with_gaps(rng, x) for x in data]
        data[0][0] = 0.0
    names = LinearDynamicalSystem._names
    start = random_lds(rng, n, d, radius=0.9)
    fixed = [name for name in names if rng.random() < 0.2]
    options = {"prior": rng.choice([0.01, 0.1, 1.0]), "fixed": fixed, "init": start}
    if rng.random() < 0.5:
        options = {"prior": options["prior"], "n_states": n}
    return data, options


def worst_step(seed):
    rng = np.random.default_rng(seed)
    data, options = em_problem(rng)
    fitted = LinearDynamicalSystem.fit(data, max_iter=25, tol=1e-15, **options)
    trace = fitted.fit_result.objective_history
    assert fitted.spectral_radius() <= 1.0 + 1e-9
    return (np.diff(trace) / (1.0 + np.abs(trace[1:]))).min()


def test_the_objective_is_the_dense_likelihood_and_the_prior(rng):
    model = random_lds(rng, 2, 2)
    data = [model.sample(1, 6, rng)[0], with_gaps(rng, model.sample(1, 9, rng)[0])]
    fitted = LinearDynamicalSystem.fit(
        data, init=model, prior=0.3, max_iter=1, tol=1e-15
    )
    seen = np.concatenate(data)
    variances = np.nanvar(seen, axis=0)
    law = CovariancePrior(0.3)
    for k, p in enumerate((model, fitted)):
        value = 0.0
        for x in data:
            _, _, mean, cov, _ = dense.joint(p, len(x) - 1)
            value += dense.log_density(x, mean, cov)
        for name, scale in (
            ("transition_cov", np.ones(2)),
            ("initial_cov", np.ones(2)),
            ("observation_cov", variances),
        ):
            cov = getattr(p, name)
            trace = np.diagonal(np.linalg.inv(cov)) @ scale
            value -= 0.15 * (np.linalg.slogdet(cov)[1] + trace)
        trace = fitted.fit_result.objective_history
        assert trace[k] == pytest.approx(value, abs=1e-9)
    every = {name: np.array(True) for name in fitted._names}
    held = Held.of(every, fitted._parameters)
    assert law.log_density(fitted._parameters, held) == 0.0


def test_an_autoregression_is_fitted_to_the_optimum(rng):
    x, e = np.zeros(320), rng.normal(size=320)
    for t in range(2, 320):
        x[t] = 1.4 * x[t - 1] - 0.7 * x[t - 2] + e[t]
    near, far = (LinearDynamicalSystem.fit(x[20:], 2, tol=t) for t in (2e-5, 1e-6))
    assert LinearDynamicalSystem.fit(x[20:], 2) == near
    # of 300 steps: an error of the one-step density of less than a fiftieth
    assert near.fit_result.objective > far.fit_result.objective - 6.0
    assert near.fit_result.converged


@pytest.mark.parametrize("is_fixed", [False, True])
def test_the_offset_is_the_best_one_beside_a_limited_transition(is_fixed, rng):
    """Series that grow: the best transition is beyond the limit of stability."""
    model = random_lds(rng, 2, 2)
    noise = rng.normal(size=(12, 2))
    x = np.outer(1.3 ** np.arange(12), [3.0, -2.0]) + noise
    new = LinearDynamicalSystem.fit(
        x, init=model, prior=0.0, max_iter=1, tol=1e-15,
        fixed=["initial_cov", "transition_offset"][: 1 + is_fixed],
    )  # fmt: skip
    mean = dense.conditioned(model, x)[0].reshape(12, 2)
    assert new.spectral_radius() == pytest.approx(1.0, abs=1e-9)
    best = (mean[1:] - mean[:-1] @ new.transition.T).mean(axis=0)
    expected = model.transition_offset if is_fixed else best
    np.testing.assert_allclose(new.transition_offset, expected, rtol=1e-7, atol=1e-7)


def test_em_step_maximises_the_expected_log_likelihood(rng):
    """Against the expected products from the dense posterior, by perturbation."""
    model = random_lds(rng, 2, 2)
    x = model.sample(1, 12, rng)[0]
    new = LinearDynamicalSystem.fit(
        x, init=model, prior=0.0, max_iter=1, tol=1e-15, stable=False,
        fixed=["initial_cov"],
    )  # fmt: skip
    mean, cov = dense.conditioned(model, x)

    def expected(p):
        prior_mean, prior_cov, _, _, _ = dense.joint(p, len(x) - 1)
        r = prior_mean - mean
        K = np.linalg.inv(prior_cov)
        value = -0.5 * (np.linalg.slogdet(prior_cov)[1] + r @ K @ r + (K * cov).sum())
        R = np.linalg.inv(p.observation_cov)
        for t, row in enumerate(x):
            block = slice(2 * t, 2 * t + 2)
            e = row - p.observation @ mean[block] - p.observation_offset
            own = p.observation @ cov[block, block] @ p.observation.T
            value -= 0.5 * (e @ R @ e + (R * own).sum() - np.linalg.slogdet(R)[1])
        return value

    best = expected(new)
    for name in new._names:
        if name == "initial_cov":
            continue
        array = getattr(new, name)
        for sign in (-1, 1):
            shift = 1e-3 * rng.normal(size=array.shape)
            if name.endswith("cov"):
                shift = shift @ shift.T + sign * 1e-3 * array
            moved = {**new.parameters(), name: array + sign * shift}
            assert expected(LinearDynamicalSystem(**moved)) < best + 1e-9


def test_fixed_parameters_keep_their_values(rng):
    model = random_lds(rng, 2, 2)
    x = model.sample(1, 30, rng)[0]
    names = [name for name in model._names if getattr(model, name).size]
    for name in names:
        fitted = LinearDynamicalSystem.fit(x, init=model, fixed=[name], max_iter=3)
        for other in names:
            close = np.allclose(
                getattr(fitted, other), getattr(model, other), atol=1e-12
            )
            assert close == (other == name)


def test_em_recovers_the_likelihood_of_the_truth(rng):
    turn = 0.95 * np.array([[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]])
    C = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    model = LinearDynamicalSystem(
        turn, 0.1 * np.eye(2), C, 0.1 * np.eye(3), [1.0, 0.0], np.eye(2)
    )
    data = model.sample(10, 60, rng)
    fitted = LinearDynamicalSystem.fit(data, 2)
    assert fitted.fit_result.converged
    truth = model.log_likelihood(data).sum()
    assert fitted.log_likelihood(data).sum() > truth - 0.01 * abs(truth)
    from_truth = LinearDynamicalSystem.fit(data, init=model, prior=0.0, max_iter=20)
    assert from_truth.log_likelihood(data).sum() > truth


def test_a_fit_does_not_depend_on_an_offset_of_the_data(rng):
    model = random_lds(rng, 2, 2)
    x = model.sample(1, 40, rng)[0]
    near = LinearDynamicalSystem.fit(x, 2, max_iter=20)
    far = LinearDynamicalSystem.fit(x + 1e6, 2, max_iter=20)
    # data of size 1e6 have lost six of sixteen digits, which the fit may multiply
    np.testing.assert_allclose(near.transition, far.transition, atol=1e-6)
    np.testing.assert_allclose(
        near.observation_offset + 1e6, far.observation_offset, rtol=1e-11
    )


@pytest.mark.parametrize("x", [np.ones((5, 2)), np.zeros((1, 1)), np.ones((2, 3))])
def test_constant_and_tiny_data_are_fitted(x):
    fitted = LinearDynamicalSystem.fit(x, 2)
    assert np.isfinite(fitted.log_likelihood(x)).all()


def test_fit_many_is_fit_for_each(rng):
    model = random_lds(rng, 2, 2)
    data = model.sample(4, 12, rng)
    many = LinearDynamicalSystem.fit_many(data, n_states=2, max_iter=5, random_state=0)
    for x, found in zip(data, many):
        assert found == LinearDynamicalSystem.fit(x, 2, max_iter=5)
    again = LinearDynamicalSystem.fit_many(data, init=many, max_iter=2)
    for x, start, found in zip(data, many, again):
        assert found == LinearDynamicalSystem.fit(x, init=start, max_iter=2)


def test_threads_do_not_change_bits(rng):
    model = random_lds(rng, 2, 2)
    data = model.sample(20, rng.integers(1, 30, 20), rng)
    fits = [LinearDynamicalSystem.fit(data, 2, max_iter=5, n_jobs=k) for k in (1, 3)]
    assert fits[0] == fits[1]


def test_a_fit_that_ends_early_says_so(rng):
    x = random_lds(rng, 2, 2).sample(1, 30, rng)[0]
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        fitted = LinearDynamicalSystem.fit(x, 2, max_iter=1, tol=1e-12)
    assert not fitted.fit_result.converged


# -- input -----------------------------------------------------------------------------
def build(**changes):
    given = {
        "transition": np.eye(2),
        "transition_cov": np.eye(2),
        "observation": np.ones((1, 2)),
        "observation_cov": [[1.0]],
        "initial_mean": [0.0, 0.0],
        "initial_cov": np.eye(2),
    }
    return LinearDynamicalSystem(**{**given, **changes})


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        (
            {"observation_cov": [[-1.0]]},
            "observation_cov is not positive semidefinite.*ridge",
        ),
        (
            {"transition_cov": -np.eye(2)},
            "transition_cov is not positive semidef.*ridge",
        ),
        ({"initial_cov": [[1, 2], [2, 1]]}, "initial_cov is not positive semidefinite"),
        ({"initial_cov": [[1, 2], [0, 1]]}, "initial_cov is not symmetric"),
        ({"transition": [[1.0, 2.0]]}, r"transition has shape \(1, 2\)"),
        ({"observation": np.ones((1, 3))}, r"observation has shape \(1, 3\), expected"),
        ({"transition": [[np.nan, 0], [0, 1]]}, r"transition\[0, 0\]=nan must be"),
        ({"initial_mean": [1.0, 2.0, 3.0]}, r"initial_mean has shape \(3,\)"),
        ({"initial_mean": [[1.0, 2.0]]}, "initial_mean has shape.*no axis of steps"),
        (
            {"transition": np.ones((3, 2, 2)), "transition_offset": np.ones((4, 2))},
            "different numbers of steps: transition 3, transition_offset 4",
        ),
    ],
)
def test_parameters_that_are_no_system_are_refused(changes, match):
    refused(lambda: build(**changes), match)


def test_data_and_options_that_do_not_fit_are_refused(rng):
    model = build()
    fit = LinearDynamicalSystem.fit
    refused(lambda: model.log_likelihood(np.ones((4, 2))), "has 2 columns; 1 are")
    refused(lambda: model.log_likelihood([[np.inf]]), "is infinite")
    refused(lambda: fit(np.ones((4, 1))), "n_states=None: give n_states, or init")
    refused(lambda: fit(np.ones((4, 1)), 0), "n_states=0 must be an integer >= 1")
    refused(lambda: fit(np.ones((4, 1)), 3, init=model), "n_states=3 but init has 2")
    refused(lambda: fit(np.ones((4, 2)), init=model), "init has 1 features; the seq")
    refused(lambda: fit(np.ones((4, 1)), 2, fixed=["transition"]), "give it by init=")
    refused(
        lambda: fit(np.ones((4, 1)), init=model, fixed=["A"]),
        "what can stay is transition, transition_cov",
    )
    refused(lambda: fit(np.ones((4, 1)), 2, prior=-1), "prior=-1 must be")
    refused(lambda: fit(np.full((4, 1), np.nan), 2), r"every row is missing \(NaN\)")
    varying = random_lds(rng, 2, 1, steps=3)
    refused(lambda: varying.log_likelihood(np.ones((4, 1))), "end after n_steps=3")
    refused(lambda: varying.sample(1, 4), "needs 4 steps")
    refused(lambda: fit(np.ones((4, 1)), init=varying), "init varies over n_steps=3")
    refused(lambda: model.marginals(-1), "horizon=-1 must be an integer >= 0")


def test_values_are_immutable_equal_and_survive_a_file(rng):
    import pickle

    model = random_lds(rng, 2, 2)
    same = LinearDynamicalSystem.from_spec(model.get_spec())
    assert same == model
    assert hash(same) == hash(model)
    assert pickle.loads(pickle.dumps(model)) == model
    with pytest.raises(AttributeError, match="immutable"):
        model.transition = np.eye(2)
    with pytest.raises(ValueError, match="read-only"):
        model.transition[0, 0] = 1.0
