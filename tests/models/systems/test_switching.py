"""Switching systems: enumeration of regimes, variational EM, kernel."""

import itertools

import numpy as np
import pytest
from models.state_space_cases import random_lds, random_switching
from oracles import state_space as dense
from refusals import refused
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from maxent.kernels import (
    SwitchingPaths,
    lds_kernel,
    product_kernel,
    switching_lds_kernel,
)
from maxent.kernels.pairs import switching
from maxent.models import LinearDynamicalSystem, SwitchingLDS, _settling
from maxent.models.systems import _switching_em
from maxent.models.systems._lds_em import CovariancePrior
from maxent.models.systems._switching_em import Rules

pytestmark = pytest.mark.filterwarnings("ignore:SwitchingLDS.fit")


def as_switching(p, K=1):
    return SwitchingLDS(
        np.full(K, 1.0 / K),
        np.full((K, K), 1.0 / K),
        [p.transition] * K,
        [p.transition_cov] * K,
        p.observation,
        p.observation_cov,
        p.initial_mean,
        p.initial_cov,
        [p.transition_offset] * K,
        p.observation_offset,
    )


def paths_with_weights(model, T):
    """Paths and probabilities, by their definition."""
    for path in itertools.product(range(model.n_regimes), repeat=T):
        weight = 1.0
        for t, k in enumerate(path):
            weight *= model.start[k] if t == 0 else model.switching[path[t - 1], k]
        yield path, weight


def frozen_path(model, path):
    """The linear system of a path, from the parameters alone."""
    at = [0, *path]
    return LinearDynamicalSystem(
        model.transition[at],
        model.transition_cov[at],
        model.observation,
        model.observation_cov,
        model.initial_mean,
        model.initial_cov,
        model.transition_offset[at],
        model.observation_offset,
    )


def test_likelihood_is_the_sum_over_paths_and_bounds_are_below(rng):
    for K, n, d in ((1, 2, 1), (2, 2, 2), (3, 1, 2)):
        model = random_switching(rng, K, n, d)
        for x in model.sample(3, [5, 1, 4], rng):
            total = 0.0
            for path, weight in paths_with_weights(model, len(x) - 1):
                _, _, m, S, _ = dense.joint(frozen_path(model, path), len(x) - 1)
                total += weight * np.exp(dense.log_density(x, m, S))
            exact = model.log_likelihood(x)[0]
            assert exact == pytest.approx(np.log(total), abs=1e-9)
            bound = model.lower_bound(x)[0]
            assert bound <= exact + 1e-9
            if K == 1:
                assert bound == pytest.approx(exact, abs=1e-9)


def test_posteriors_are_fixed_points_of_mean_field(rng):
    model = random_switching(rng, 2, 2, 1)
    x = model.sample(1, 7, rng)[0]
    q = model.posterior(x)[0].regimes
    sweeps = 200
    now, later = (dense.switching_mean_field(model, x, k * sweeps) for k in (1, 2))
    # a rate of convergence so slow leaves more than 1e-7 of the change
    if np.abs(later - now).max() < 1e-7:
        np.testing.assert_allclose(q, later, atol=2e-7)


@pytest.mark.parametrize("seed", [2, 4, 11])
def test_posteriors_settle_where_sweeps_are_slow(seed):
    """Rates 0.88, 0.75 and 0.98: the bound alone stops 1e-4 to 2e-3 before the end."""
    rng = np.random.default_rng(seed)
    model = random_switching(rng, 2, 2, 1)
    x = model.sample(1, 60, rng)
    problem, q = model._beliefs(model._read(x))
    limit = q.regimes
    for _ in range(600):
        limit = problem.believe(model._parameters, limit).regimes
    np.testing.assert_allclose(q.regimes, limit, atol=1e-7)


def test_beliefs_that_do_not_settle_are_told(rng, monkeypatch):
    monkeypatch.setattr(_settling, "SWEEPS", 2)
    rng = np.random.default_rng(11)
    model = random_switching(rng, 2, 2, 1)
    with pytest.warns(ConvergenceWarning, match="SwitchingLDS did not settle: after 2"):
        model.posterior(model.sample(1, 60, rng))


def test_one_regime_is_a_linear_dynamical_system(rng):
    p = random_lds(rng, 2, 2)
    x = p.sample(1, 12, rng)[0]
    x[4] = np.nan
    for K in (1, 3):
        model = as_switching(p, K)
        expected = p.log_likelihood(x)[0]
        assert model.lower_bound(x)[0] == pytest.approx(expected, abs=1e-8)
        found, other = model.posterior(x)[0], p.posterior(x)[0]
        np.testing.assert_allclose(found.mean, other.mean, atol=1e-9)
        np.testing.assert_allclose(found.cov, other.cov, atol=1e-9)
        np.testing.assert_allclose(found.regimes, 1.0 / K, atol=1e-9)


def worst_step(seed):
    rng = np.random.default_rng(seed)
    K, n, d = rng.integers(1, 4), rng.integers(1, 4), rng.integers(1, 4)
    model = random_switching(rng, K, n, d)
    T = rng.integers(1, 20, rng.integers(1, 4))
    data = model.sample(len(T), T, rng)
    for x in data:
        x[1:][rng.random(len(x) - 1) < 0.1] = np.nan
    options = {"prior": rng.choice([0.1, 1.0]), "smoothing": rng.choice([0.0, 1.0])}
    if rng.random() < 0.5:
        options["init"] = random_switching(rng, K, n, d)
    else:
        options |= {"n_regimes": int(K), "n_states": int(n)}
    fitted = SwitchingLDS.fit(data, max_iter=15, tol=1e-15, random_state=rng, **options)
    trace = fitted.fit_result.objective_history
    assert np.abs(np.linalg.eigvals(fitted.transition)).max() <= 1.0 + 1e-9
    return (np.diff(trace) / (1.0 + np.abs(trace[1:]))).min(initial=np.inf)


def test_offsets_are_the_best_ones_beside_limited_transitions(rng):
    model = random_switching(rng, 2, 2, 2)
    x = np.outer(1.4 ** np.arange(12), [3.0, -2.0]) + rng.normal(size=(12, 2))
    p, problem = model._parameters, _switching_em.Problem(model._read(x))
    q = problem.believe(p, np.full((11, 2), 0.5))
    limit, free = (
        _switching_em.maximised(
            problem, p, q, Rules.of(CovariancePrior(0.1), 0.0, stable, {}, p)
        )
        for stable in (True, False)
    )
    was_limited = [
        not np.array_equal(a, b) for a, b in zip(limit.transition, free.transition)
    ]
    assert any(was_limited)
    for k, A in enumerate(limit.transition):
        w = q.regimes[:, k]
        best = w @ (q.mean[1:] - q.mean[:-1] @ A.T) / w.sum()
        scale = np.abs(q.mean).max()
        assert np.abs(limit.transition_offset[k] - best).max() < 1e-9 * scale


def test_viterbi_is_the_best_path_of_the_variational_chain(rng):
    model = random_switching(rng, 3, 2, 2)
    data = model.sample(3, [5, 1, 4], rng)
    data[0][2] = np.nan
    data[2][1, 0] = np.nan
    paths, log_prob = model.viterbi(data)
    problem, q = model._beliefs(model._read(data))
    evidence = problem.evidence(model._parameters, q.mean, q.cov, q.lag)
    at, exact = 0, model.log_likelihood(data)
    for x, path, value, total in zip(data, paths, log_prob, exact):
        T = len(x) - 1
        own, at = evidence[at : at + T], at + T
        every = model.all_paths(T)
        terms = model.log_path(every) + own[np.arange(T), every].sum(axis=1)
        np.testing.assert_array_equal(path, every[np.argmax(terms)])
        joint = np.log(dict(paths_with_weights(model, T))[tuple(path)])
        joint += model.given_path(path).log_likelihood(x)[0]
        assert value == pytest.approx(joint, abs=1e-9)
        assert value <= total + 1e-9


def test_viterbi_finds_regimes_that_differ(rng):
    model = SwitchingLDS(
        [0.5, 0.5],
        [[0.95, 0.05], [0.05, 0.95]],
        [[[0.5]], [[0.5]]],
        [[[0.1]], [[0.1]]],
        [[1.0]],
        [[0.01]],
        [0.0],
        [[1.0]],
        [[-3.0], [3.0]],
    )
    x, regimes = model.sample(2, 60, rng, return_regimes=True)
    paths, _ = model.viterbi(x)
    for path, truth in zip(paths, regimes):
        assert path.shape == (59,)
        assert (path != truth).mean() < 0.05


def test_a_fit_finds_regimes_that_differ(rng):
    turn = np.array([[0.0, -0.95], [0.95, 0.0]])
    model = SwitchingLDS(
        [0.5, 0.5],
        [[0.97, 0.03], [0.03, 0.97]],
        [turn, -turn],
        [0.05 * np.eye(2)] * 2,
        np.eye(2),
        0.05 * np.eye(2),
        [3.0, 0.0],
        np.eye(2),
    )
    data, regimes = model.sample(8, 50, rng, return_regimes=True)
    fitted = SwitchingLDS.fit(data, 2, 2, n_init=4, random_state=0)
    guess = np.concatenate([q.regimes.argmax(axis=1) for q in fitted.posterior(data)])
    hits = (guess == np.concatenate(regimes)).mean()
    assert max(hits, 1.0 - hits) > 0.9


def test_samples_follow_the_chain(rng):
    model = random_switching(rng, 3)
    paths = model.sample_paths(4000, 3, rng)
    assert paths.shape == (4000, 3)
    counts = np.zeros(27)
    np.add.at(counts, paths @ [9, 3, 1], 1)
    expected = np.array([w for _, w in paths_with_weights(model, 3)])
    z = (counts - 4000 * expected) / np.sqrt(4000 * expected + 1)
    assert np.abs(z).max() < 5.0
    x, regimes = model.sample(2, [4, 1], rng, return_regimes=True)
    assert [len(a) for a in x] == [4, 1]
    assert [len(a) for a in regimes] == [3, 0]


# -- kernel ----------------------------------------------------------------------------
@pytest.mark.parametrize("rho", [0.3, 1.0, 1.5])
@pytest.mark.parametrize("power", ["observations", "joint"])
def test_kernel_over_all_paths_is_the_double_sum(rng, rho, power):
    P = [random_switching(rng, 2, 2), random_switching(rng, 3, 1)]
    K = switching_lds_kernel(P, rho=rho, horizon=2, n_paths=None, power=power, log=True)
    for i, p in enumerate(P):
        for j, q in enumerate(P):
            total = 0.0
            for a, w in paths_with_weights(p, 2):
                for b, u in paths_with_weights(q, 2):
                    own = dense.lds_log_kernel(
                        frozen_path(p, a), frozen_path(q, b), 2, rho
                    )
                    factor = (w * u) ** (rho if power == "joint" else 1.0)
                    total += factor * np.exp(own)
            assert K[i, j] == pytest.approx(np.log(total), abs=1e-9)


def test_several_powers_are_the_kernels_of_each(rng, monkeypatch):
    P = [random_switching(rng, k, 2) for k in (2, 3, 1)]
    Q = [random_switching(rng, k, 2) for k in (1, 2)]
    passes = []
    own = switching.pair_parts
    monkeypatch.setattr(
        switching, "pair_parts", lambda *args: passes.append(1) or own(*args)
    )
    powers = [0.3, 0.5, 1.5]
    L = product_kernel(P, Q, rho=powers, horizon=3, method="exact", log=True)
    assert len(passes) == 1  # the power is free
    for k, rho in enumerate(powers):
        one = switching_lds_kernel(P, Q, rho=rho, horizon=3, n_paths=None, log=True)
        np.testing.assert_array_equal(L[..., k], one)


def test_sums_over_blocks_of_paths_are_those_of_logsumexp(rng):
    L = 400 * rng.normal(size=(7, 6))
    L[:2, :1] = -np.inf
    rows, columns = [0, 2, 3, 7], [0, 1, 4, 6]
    found = switching._block_logsumexp(L, np.array(rows[:-1]), np.array(columns[:-1]))
    for i, (a, b) in enumerate(itertools.pairwise(rows)):
        for j, (c, d) in enumerate(itertools.pairwise(columns)):
            assert found[i, j] == pytest.approx(logsumexp(L[a:b, c:d]), rel=1e-13)


def test_one_regime_has_the_kernel_of_linear_systems(rng):
    P = [random_lds(rng, 2, 2), random_lds(rng, 3, 2), random_lds(rng, 2, 2)]
    S = [as_switching(p) for p in P]
    L = switching_lds_kernel(S, rho=0.4, horizon=5, n_paths=1, log=True)
    np.testing.assert_allclose(
        L, lds_kernel(P, rho=0.4, horizon=5, log=True), atol=1e-9
    )


@pytest.mark.parametrize("n_paths", [1, 3, 7])
def test_shared_paths_make_definite_kernels(rng, n_paths):
    P = [random_switching(rng, 2, 2) for _ in range(6)]
    for power in ("observations", "joint"):
        K = switching_lds_kernel(
            P, rho=0.5, horizon=6, n_paths=n_paths, power=power, normalize=True,
            random_state=0,
        )  # fmt: skip
        np.testing.assert_array_equal(K, K.T)
        np.testing.assert_array_equal(np.diagonal(K), 1.0)
        assert np.linalg.eigvalsh(K)[0] > -1e-12 * len(K)


def test_shared_paths_are_unbiased_off_the_diagonal(rng):
    P = [random_switching(rng, 2, 1) for _ in range(2)]
    exact = switching_lds_kernel(P, rho=0.5, horizon=4, n_paths=None)
    draws = np.array(
        [
            switching_lds_kernel(P, rho=0.5, horizon=4, n_paths=3, random_state=rng)
            for _ in range(300)
        ]
    )
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert abs(draws[:, 0, 1].mean() - exact[0, 1]) < 5.0 * error[0, 1]
    assert draws[:, 0, 0].mean() > exact[0, 0] - 5.0 * error[0, 0]


def test_new_models_meet_the_paths_of_old_ones(rng):
    models = [random_switching(rng, 2, 2) for _ in range(5)]
    whole = SwitchingPaths(models, horizon=4, n_paths=3, random_state=1)
    K = switching_lds_kernel(whole, normalize=True)
    new = switching_lds_kernel(whole[3:], whole[:3], normalize=True)
    np.testing.assert_allclose(new, K[3:, :3], rtol=1e-10)
    with pytest.raises(ValueError, match="selects none of 5"):
        whole[5:]
    with pytest.raises(TypeError, match="by a slice"):
        whole[0]


def test_paths_belong_to_the_model(rng):
    models = [random_switching(rng, 2, 2) for _ in range(4)]
    options = {"horizon": 30, "n_paths": 5, "random_state": 1}
    whole = SwitchingPaths(models, **options)
    turned = SwitchingPaths(models[::-1], **options)
    for one, other in zip(whole.paths, turned.paths[::-1]):
        np.testing.assert_array_equal(one, other)
    # models of one law of regimes have independent paths all the same
    alike = [
        SwitchingLDS(**{**models[0].parameters(), "observation_offset": [k, 0.0]})
        for k in range(2)
    ]
    first, second = SwitchingPaths(alike, **options).paths
    assert (first != second).any()


def test_kernels_of_models_with_themselves_are_computed_once(rng, monkeypatch):
    models = [random_switching(rng, 2, 2) for _ in range(5)]
    old, new = (
        SwitchingPaths(part, horizon=4, n_paths=3, random_state=seed)
        for seed, part in enumerate((models[:3], models[3:]))
    )
    passes = []
    own = switching.pair_parts
    monkeypatch.setattr(
        switching, "pair_parts", lambda *args: passes.append(1) or own(*args)
    )
    K = switching_lds_kernel(old, rho=0.7, normalize=True)
    assert len(passes) == 1
    first = switching_lds_kernel(new, old, rho=0.7, normalize=True)
    assert len(passes) == 2 + len(new)  # the pairs, and the new models alone
    np.testing.assert_array_equal(
        switching_lds_kernel(new, old, rho=0.7, normalize=True), first
    )
    assert len(passes) == 3 + len(new)
    powers = np.array([0.2, 0.7, 1.0])
    L = old.log_self(powers)
    assert len(passes) == 3 + len(new) + len(old)  # one pass for two new powers
    for k, rho in enumerate(powers):
        square = switching_lds_kernel(old, rho=rho, log=True)
        np.testing.assert_allclose(L[:, k], np.diagonal(square), rtol=1e-13)
    assert (np.diagonal(K) == 1.0).all()


def test_input_that_does_not_fit_is_refused(rng):
    model = random_switching(rng, 2, 2)
    given = model.parameters()
    refused(lambda: SwitchingLDS(**{**given, "start": [0.5, 0.6]}), "start sums to 1.1")
    one = {**given, "transition": given["transition"][:1]}
    refused(lambda: SwitchingLDS(**one), "transition has shape .*one matrix per regime")
    flat = {**given, "observation_cov": np.zeros((2, 2))}
    refused(lambda: SwitchingLDS(**flat), "observation_cov is not positive definite")
    refused(lambda: model.all_paths(29), "5.37e.08 paths.*lower_bound")
    refused(lambda: model.given_path([0, 2]), "must hold regimes 0 to 1")
    refused(lambda: SwitchingLDS.fit(np.ones((4, 2)), n_states=2), "n_regimes=None")
    refused(lambda: SwitchingLDS.fit(np.ones((4, 2)), 2, 2, prior=0), "prior=0 must be")
    P = [model]
    refused(lambda: switching_lds_kernel(P), "horizon=None: give the horizon")
    refused(lambda: switching_lds_kernel(P, horizon=3, rho=-1), "rho=-1 must be")
    refused(lambda: switching_lds_kernel(P, horizon=3, n_paths=0), "n_paths=0 must be")
    refused(lambda: switching_lds_kernel(P, horizon=40, n_paths=None), "draw paths")
    other = [random_switching(rng, 2, 2, 3)]
    refused(lambda: switching_lds_kernel(P, other, horizon=3), "n_features=3")
    still = {**given, "transition_cov": np.zeros((2, 2, 2))}
    still = SwitchingLDS(**still)
    refused(lambda: still.lower_bound(np.ones((3, 2))), "transition_cov is singular")
