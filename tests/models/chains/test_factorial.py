"""Factorial hidden Markov models: enumeration, mean field, EM, kernel."""

import itertools

import numpy as np
import pytest
from models.state_space_cases import random_factorial
from oracles import state_space as dense
from refusals import refused
from scipy import stats
from scipy.special import logsumexp

from maxent._inputs.sequences import vector_sequences
from maxent.kernels import factorial_hmm_kernel
from maxent.models import FactorialHMM, GaussianHMM
from maxent.models._units import Units
from maxent.models.chains._coupled_chains import CoupledChains, random_beliefs
from maxent.models.chains._factorial_em import (
    FactorialProblem,
    even_beliefs,
    settled_chains,
)

pytestmark = pytest.mark.filterwarnings("ignore:FactorialHMM.fit")


def joint_log_prob(model, path, x):
    """Log-density of a path (T, chains) and a sequence, term by term."""
    total = 0.0
    for t, (q, row) in enumerate(zip(path, x)):
        for c, i in enumerate(q):
            A, pi = model.transition[c], model.start[c]
            total += np.log(pi[i] if t == 0 else A[path[t - 1][c], i])
        o = ~np.isnan(row)
        if o.any():
            mean = sum(W[i] for W, i in zip(model.mean, q))[o]
            total += stats.multivariate_normal(mean, model.cov[np.ix_(o, o)]).logpdf(
                row[o]
            )
    return total


def partly_observed(sizes, d, rng):
    """A model, and short sequences of it with holes."""
    model = random_factorial(rng, sizes, d)
    data = model.sample(3, [3, 1, 2], rng)
    data[0][1] = np.nan
    data[2][0, -1] = np.nan
    return model, data


@pytest.mark.parametrize("sizes, d", [((2, 2), 1), ((3,), 2), ((1, 2, 3), 2)])
def test_viterbi_is_the_best_of_all_joint_paths(sizes, d, rng):
    model, data = partly_observed(sizes, d, rng)
    states = list(itertools.product(*(range(S) for S in sizes)))
    paths, log_prob = model.viterbi(data)
    others, bounds = model.viterbi(data, method="meanfield")
    for x, path, value, other, bound in zip(data, paths, log_prob, others, bounds):
        every = [
            joint_log_prob(model, q, x)
            for q in itertools.product(states, repeat=len(x))
        ]
        assert path.shape == other.shape == (len(x), len(sizes))
        assert value == pytest.approx(max(every), abs=1e-9)
        assert value == pytest.approx(joint_log_prob(model, path, x), abs=1e-9)
        assert bound == pytest.approx(joint_log_prob(model, other, x), abs=1e-9)
        if len(sizes) == 1:  # mean field is exact
            np.testing.assert_array_equal(other, path)


def test_viterbi_of_many_joint_states_is_that_of_each_chain(rng):
    S, d = 11, 3  # 1331 joint states, each chain in a coordinate of its own
    stay = 0.9 * np.eye(S) + 0.1 / S
    means = [np.outer(np.arange(S), np.eye(d)[c]) for c in range(d)]
    model = FactorialHMM([np.full(S, 1 / S)] * d, [stay] * d, means, 0.05 * np.eye(d))
    x = model.sample(2, 30, rng)
    paths, log_prob = model.viterbi(x)
    for c in range(d):
        alone = GaussianHMM(model.start[c], stay, means[c][:, [c]], np.full(S, 0.05))
        own, value = alone.viterbi([one[:, [c]] for one in x])
        for path, expected in zip(paths, own):
            np.testing.assert_array_equal(path[:, c], expected)
        log_prob = log_prob - value
    np.testing.assert_allclose(log_prob, 0.0, atol=1e-8)
    refused(
        lambda: model.viterbi(x, method="exact"),
        r"method='exact' with n_states=\(11, 11, 11\).*Use method='meanfield'",
    )
    refused(lambda: model.viterbi(x, method="best"), "method='best'")


@pytest.mark.parametrize("sizes, d", [((2, 2), 1), ((3,), 2), ((1, 2, 3), 2)])
def test_posterior_sums_over_all_joint_paths(sizes, d, rng):
    model, data = partly_observed(sizes, d, rng)
    states = list(itertools.product(*(range(S) for S in sizes)))
    found = model.posterior(data)
    by_mean_field = model.posterior(data, method="meanfield")
    for x, own, other in zip(data, found, by_mean_field):
        expected = [np.zeros((len(x), S)) for S in sizes]
        every = list(itertools.product(states, repeat=len(x)))
        weights = np.array([joint_log_prob(model, q, x) for q in every])
        for path, share in zip(every, np.exp(weights - logsumexp(weights))):
            for t, q in enumerate(path):
                for c, i in enumerate(q):
                    expected[c][t, i] += share
        assert len(own) == len(other) == len(sizes)
        for c in range(len(sizes)):
            np.testing.assert_allclose(own[c], expected[c], atol=1e-9)
            np.testing.assert_allclose(other[c].sum(axis=1), 1.0, atol=1e-12)
            if len(sizes) == 1:  # mean field is exact
                np.testing.assert_allclose(other[c], expected[c], atol=1e-9)


def test_posterior_of_many_joint_states_is_by_mean_field(rng):
    model = random_factorial(rng, (11, 11, 11), 2)
    x = model.sample(1, 5, rng)
    for own, other in zip(
        model.posterior(x)[0], model.posterior(x, method="meanfield")[0]
    ):
        np.testing.assert_array_equal(own, other)
    refused(
        lambda: model.posterior(x, method="exact"),
        r"method='exact' with n_states=\(11, 11, 11\).*Use method='meanfield'",
    )
    refused(lambda: model.posterior(x, method="best"), "method='best'")


def all_paths(model, T, power=1.0):
    """Log-weights of all joint paths and their means (T, d)."""
    states = list(itertools.product(*(range(S) for S in model.n_states)))
    for path in itertools.product(states, repeat=T):
        weight, means = 0.0, []
        for t, q in enumerate(path):
            for c, i in enumerate(q):
                A, pi = model.transition[c], model.start[c]
                weight += power * np.log(pi[i] if t == 0 else A[path[t - 1][c], i])
            means.append(sum(W[i] for W, i in zip(model.mean, q)))
        yield weight, np.array(means)


def test_likelihood_is_the_sum_over_joint_paths_and_bounds_are_below(rng):
    for sizes, d in (((2, 2), 1), ((3,), 2), ((1, 2, 2), 2)):
        model = random_factorial(rng, sizes, d)
        data = model.sample(3, [3, 1, 2], rng)
        data[0][1] = np.nan
        exact = model.log_likelihood(data)
        bounds = model.lower_bound(data, n_init=3)
        for x, value, bound in zip(data, exact, bounds):
            terms = []
            for weight, means in all_paths(model, len(x)):
                for row, m in zip(x, means):
                    if not np.isnan(row[0]):
                        law = stats.multivariate_normal(m, model.cov)
                        weight += law.logpdf(row)
                terms.append(weight)
            assert value == pytest.approx(logsumexp(terms), abs=1e-9)
            assert bound <= value + 1e-9
            if len(sizes) == 1:
                assert bound == pytest.approx(value, abs=1e-9)


def test_mean_field_posteriors_settle(rng):
    model = random_factorial(rng, (2, 3, 2), 2)
    x = model.sample(1, 40, rng)
    chains = settled_chains(model, model._read(x), even_beliefs((2, 3, 2), 40))
    for q, own in zip(model.posterior(x, method="meanfield")[0], chains.beliefs):
        np.testing.assert_array_equal(q, own)
    settled = [np.array(q) for q in chains.beliefs]
    for _ in range(600):
        chains.sweep()
    for q, limit in zip(settled, chains.beliefs):
        np.testing.assert_allclose(q, limit, atol=1e-7)


def test_one_chain_is_a_hidden_markov_model(rng):
    model = random_factorial(rng, (3,), 2)
    hmm = GaussianHMM(
        model.start[0], model.transition[0], model.mean[0], np.stack([model.cov] * 3)
    )
    x = model.sample(1, 15, rng)
    np.testing.assert_allclose(
        model.log_likelihood(x), hmm.log_likelihood(x), atol=1e-9
    )
    found, expected = model.posterior(x)[0][0], hmm.posterior(x)[0]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def mean_field_trace(rng):
    """Bounds after every update of a chain, the exact value, under random powers."""
    p = random_factorial(rng, tuple(rng.integers(1, 4, rng.integers(1, 4))), 2)
    rho, T = rng.uniform(0.2, 1.5), int(rng.integers(1, 8))
    x = p.sample(1, T, rng)[0]
    starts = [pi**rho for pi in p.start]
    transitions = [A**rho for A in p.transition]
    precision = rho * np.linalg.inv(p.cov)
    chains = CoupledChains(
        starts, transitions, p.mean, precision, x, np.array([0, T]),
        random_beliefs(p.n_states, T, rng),
    )  # fmt: skip
    chains.sweep()
    trace = [chains.bound()]
    for _ in range(6):
        for c in range(p.n_chains):
            chains.update(c)
            trace.append(chains.bound())
    assert trace[-1] == pytest.approx(chains.bounds().sum(), abs=1e-9)
    terms = []
    if np.prod(p.n_states) ** T <= 3000:
        for weight, means in all_paths(p, T, rho):
            r = x - means
            terms.append(weight - 0.5 * np.einsum("td,de,te->", r, precision, r))
    return np.array(trace), logsumexp(terms) if terms else np.inf


def test_mean_field_rises_with_every_update_and_stays_below_the_sum(rng):
    for _ in range(40):
        trace, exact = mean_field_trace(rng)
        # rounding of sums of some hundred terms of size 1 to 100
        assert np.diff(trace).min() > -1e-11 * (1.0 + np.abs(trace[-1]))
        assert trace[-1] <= exact + 1e-9


def worst_step(seed):
    rng = np.random.default_rng(seed)
    sizes = tuple(rng.integers(1, 4, rng.integers(1, 4)).tolist())
    model = random_factorial(rng, sizes, int(rng.integers(1, 4)))
    T = rng.integers(1, 20, rng.integers(1, 4))
    data = model.sample(len(T), T, rng)
    for x in data:
        x[1:][rng.random(len(x) - 1) < 0.1] = np.nan
    options = {
        "smoothing": rng.choice([0.0, 0.1, 1.0]),
        "shrinkage": rng.choice([0.01, 1.0]),
        "ridge": rng.choice([0.01, 1.0]),
    }
    if rng.random() < 0.3:
        options["init"] = random_factorial(rng, sizes, data[0].shape[1])
    else:
        options["n_states"] = sizes
    options["method"] = rng.choice(["exact", "meanfield"])
    fitted = FactorialHMM.fit(data, max_iter=15, tol=1e-15, random_state=rng, **options)
    trace = fitted.fit_result.objective_history
    return (np.diff(trace) / (1.0 + np.abs(trace[1:]))).min(initial=np.inf)


def test_a_fit_finds_two_independent_switches(rng):
    slow = [[0.9, 0.1], [0.1, 0.9]]
    model = FactorialHMM(
        [[0.5, 0.5]] * 2, [slow] * 2, [[[0.0], [1.0]], [[0.0], [3.0]]], [[0.02]]
    )
    data = model.sample(6, 60, rng)
    fitted = FactorialHMM.fit(data, [2, 2], n_init=6, random_state=0)
    steps = sorted(float(abs(W[1] - W[0])[0]) for W in fitted.mean)
    np.testing.assert_allclose(steps, [1.0, 3.0], atol=0.15)


@pytest.mark.parametrize("apart", [20.0, 1000.0])
def test_the_noise_does_not_grow_with_the_distance_of_states(apart, rng):
    slow = [np.full((S, S), 0.1 / S) + 0.9 * np.eye(S) for S in (2, 3)]
    mean = [apart * np.array([[0, 0], [1, 2]]), apart * np.eye(3)[:, :2]]
    start = [np.full(S, 1.0 / S) for S in (2, 3)]
    model = FactorialHMM(start, slow, mean, np.eye(2))
    fitted = FactorialHMM.fit(model.sample(2, 300, rng), init=model)
    np.testing.assert_allclose(fitted.cov, np.eye(2), atol=0.25)


def test_random_starts_are_models(rng):
    x = rng.normal(size=(30, 2))
    data = vector_sequences([x])
    problem = FactorialProblem(data, Units(data), 0.1, 0.1, 0.1, True, {})
    start, transition, _, _, beliefs = problem.start((2, 3), rng, None)
    for rows in (*start, *transition, *beliefs):
        assert (rows >= 0).all()
        np.testing.assert_allclose(rows.sum(axis=-1), 1.0, rtol=1e-12)


def test_fits_take_three_starts_and_a_given_one_alone(rng):
    x = random_factorial(rng).sample(2, 30, random_state=0)
    model = FactorialHMM.fit(x, [2, 2], random_state=0)
    other = FactorialHMM.fit(x, [2, 2], random_state=0, n_init=3)
    assert model == other and len(model.fit_result.objectives) == 3
    assert len(FactorialHMM.fit(x, init=model).fit_result.objectives) == 1
    assert len(FactorialHMM.fit(x, init=model, n_init=2).fit_result.objectives) == 2


def test_data_far_from_the_origin_are_fitted_alike(rng):
    x = random_factorial(rng).sample(2, 20, rng)
    near = FactorialHMM.fit(x, [2, 2], max_iter=5, random_state=0)
    far = FactorialHMM.fit([a + 1e6 for a in x], [2, 2], max_iter=5, random_state=0)
    np.testing.assert_allclose(near.cov, far.cov, atol=1e-6)


def test_bounds_and_posteriors_keep_digits_far_from_the_origin(rng):
    model = random_factorial(rng)
    far = FactorialHMM(
        model.start, model.transition, [W + 2.0**29 for W in model.mean], model.cov
    )
    x = model.sample(2, 20, rng)
    moved = [a + model.n_chains * 2.0**29 for a in x]
    # numbers of size 1e9 have lost nine of sixteen digits
    near, off = model.lower_bound(x), far.lower_bound(moved)
    np.testing.assert_allclose(off, near, atol=1e-4)
    for own, other in zip(model.posterior(x)[0], far.posterior(moved)[0]):
        np.testing.assert_allclose(own, other, atol=1e-4)


@pytest.mark.parametrize("lost", [None, "rows", "parts"])
def test_exact_fits_maximise_the_likelihood(lost, rng):
    model = random_factorial(rng, (2, 3), 2)
    data = model.sample(2, 40, rng)
    if lost:
        data[0][3:6, slice(None) if lost == "rows" else 1] = np.nan
    little = {"smoothing": 0.0, "shrinkage": 1e-9, "ridge": 0.0, "init": model}
    fitted = FactorialHMM.fit(data, **little)
    value = fitted.log_likelihood(data).sum()
    # the objective is the likelihood; a prior of 1e-9 is left
    assert fitted.fit_result.objective == pytest.approx(value, abs=1e-6)
    trace = fitted.fit_result.objective_history
    assert trace[0] == pytest.approx(model.log_likelihood(data).sum(), abs=1e-6)
    assert np.diff(trace).min() > -1e-9
    little["init"] = FactorialHMM.fit(data, method="meanfield", **little)
    before = little["init"].log_likelihood(data).sum()
    after = FactorialHMM.fit(data, **little).log_likelihood(data).sum()
    assert after > before
    many = [20, 20, 20]
    refused(
        lambda: FactorialHMM.fit(data, many, method="exact"),
        r"method='exact' with n_states=\(20, 20, 20\).*Use method='meanfield'",
    )


# -- kernel ----------------------------------------------------------------------------
@pytest.mark.parametrize("rho", [0.5, 1.0, 1.6])
def test_exact_kernel_is_the_sum_over_paths_and_mean_field_is_below(rng, rho):
    P = [random_factorial(rng, (2, 2), 2), random_factorial(rng, (3,), 2)]
    L = factorial_hmm_kernel(P, rho=rho, horizon=[0, 1], log=True)
    bound = factorial_hmm_kernel(
        P, rho=rho, horizon=[0, 1], log=True, method="collapsed"
    )
    assert (bound <= L + 1e-9).all()
    for i, p in enumerate(P):
        for j, q in enumerate(P):
            for T in (0, 1):
                terms = []
                for weight, m in all_paths(p, T + 1, rho):
                    for other, m2 in all_paths(q, T + 1, rho):
                        own = sum(
                            dense.log_affinity(a, p.cov, b, q.cov, rho)
                            for a, b in zip(m, m2)
                        )
                        terms.append(weight + other + own)
                assert L[i, j, T] == pytest.approx(logsumexp(terms), abs=1e-9)


def test_exact_kernels_are_definite_and_blocks_of_each_other(rng):
    P = [random_factorial(rng, (2, 2), 2) for _ in range(5)]
    K = factorial_hmm_kernel(P, horizon=6, normalize=True)
    np.testing.assert_array_equal(np.diagonal(K), 1.0)
    assert np.linalg.eigvalsh(K)[0] > -1e-12 * len(K)
    part = factorial_hmm_kernel(P[:2], P[2:], horizon=6, normalize=True)
    np.testing.assert_allclose(part, K[:2, 2:], rtol=1e-10)


def test_mean_field_is_exact_where_chains_do_not_interact(rng):
    P = [random_factorial(rng, (2, 3), 2) for _ in range(2)]
    still = [
        FactorialHMM(p.start, p.transition, [0.0 * W for W in p.mean], p.cov) for p in P
    ]
    exact, bound = (
        factorial_hmm_kernel(still, horizon=4, log=True, method=m, n_init=1)
        for m in ("exact", "collapsed")
    )
    np.testing.assert_allclose(bound, exact, atol=1e-9)


def test_many_chains_are_bounded(rng):
    P = [random_factorial(rng, (3,) * 7, 2) for _ in range(2)]
    L = factorial_hmm_kernel(P, horizon=3, log=True, n_init=1)
    assert np.isfinite(L).all()
    refused(
        lambda: factorial_hmm_kernel(P, horizon=3, method="exact"),
        "4.78e.06 joint states of two models.*method='collapsed'",
    )


def test_input_that_does_not_fit_is_refused(rng):
    p = random_factorial(rng)
    given = p.parameters()
    refused(lambda: FactorialHMM(**{**given, "start": given["start"][:1]}), "1 chains")
    wrong = [given["transition"][0], 2.0 * given["transition"][1]]
    refused(lambda: FactorialHMM(**{**given, "transition": wrong}), "chain 1: trans")
    refused(lambda: FactorialHMM(**{**given, "cov": -np.eye(2)}), "cov is not positive")
    mean = [0.0, np.ones((4, 2))]
    refused(lambda: FactorialHMM(**{**given, "mean": mean}), r"mean\[1\] has shape")
    refused(lambda: FactorialHMM.fit(np.ones((4, 2))), "n_states=None: give the states")
    refused(lambda: FactorialHMM.fit(np.ones((4, 2)), [2, 0]), "n_states=0 must be")
    refused(lambda: factorial_hmm_kernel([p], rho=0, horizon=2), "rho=0 must be")
    other = random_factorial(rng, d=3)
    refused(lambda: factorial_hmm_kernel([p, other], horizon=2), "n_features=3")
    big = random_factorial(rng, (10,) * 7)
    refused(lambda: big.log_likelihood(np.ones((2, 2))), "1e.07 joint states")
    assert FactorialHMM.from_spec(p.get_spec()) == p
    assert hash(FactorialHMM(**given)) == hash(p)
