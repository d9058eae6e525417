"""Sampled Boltzmann machines: chains, annealing and fits against enumeration."""

import itertools

import numpy as np
import pytest
from oracles.latent import boltzmann, coupling

import maxent
from maxent._core.compiled_by_numba import gibbs
from maxent.latent import LMERBM, LMEBoltzmannMachine, NoAdmissibleCandidateError
from maxent.latent._likelihood import Likelihood
from maxent.latent._penalty import L2
from maxent.latent.boltzmann import _chains
from maxent.latent.boltzmann._boltzmann_model import BoltzmannModel
from maxent.latent.boltzmann._chains import Chains, annealed, systematic
from maxent.latent.boltzmann._sampled_ascent import (
    Ascent,
    Sampling,
    _error,
    evaluated,
    start,
)

# Standard errors that an estimate may be off: they come from 20 groups, and many
# entries are compared at a time, for any seed.
FAR = 8.0
FEW = {"n_chains": 100, "n_updates": 300, "n_temperatures": 100, "sampled_tol": 0.3}


def patterns(seed, n=300, J=6):
    """Rows that a hidden switch makes alike."""
    rng = np.random.default_rng(seed)
    switch = rng.integers(0, 2, size=(n, 1))
    return np.abs(np.repeat(switch, J, axis=1) - (rng.random((n, J)) < 0.15))


def test_errors_of_means_are_those_of_groups(rng):
    each = rng.normal(size=(20, 3))
    want = np.sqrt(((each - each.mean(axis=0)) ** 2).sum(axis=0) / 19 / 20)
    np.testing.assert_allclose(_error(each), want, rtol=1e-12)
    apart = np.abs(each[0] - each[1])
    np.testing.assert_allclose(_error(each[:2]), apart / 2, rtol=1e-12)
    assert np.isinf(_error(each[:1])).all()


def test_systematic_resampling_copies_each_row_by_its_share(rng):
    share = rng.dirichlet(np.ones(50))
    times = np.bincount(systematic(share, rng), minlength=50)
    assert times.sum() == 50 and (np.abs(times - 50 * share) < 1.0).all()

    class Last:
        """Draws the largest number that a generator returns."""

        random = staticmethod(lambda: np.nextafter(1.0, 0.0))

    # rounding may leave the sum of shares below the last of the equidistant points
    at = systematic(np.full(3, (1.0 - 1e-12) / 3), Last())
    np.testing.assert_array_equal(at, [1, 2, 2])


@pytest.mark.parametrize("M", [1, 2, 7])
def test_means_of_chains_are_those_of_all_states(M, rng):
    W, b = coupling(rng, M)
    _, second = boltzmann(W, b)
    chains = Chains((rng.random((400, M)) < 0.5).astype(float), rng)
    chains.sweep(W, b, 200)
    each = chains.moments(W, b, 100)
    error = each.std(axis=0, ddof=1) / np.sqrt(len(each))
    gap = np.abs(each.mean(axis=0) - second)
    assert (gap <= FAR * error + 1e-3).all()


def test_sweeps_of_layers_keep_the_distribution_exactly(rng):
    """The transition of one sweep, estimated from every state, leaves p as it is."""
    M, n = 3, 4000
    W, b = coupling(rng, M)
    X = np.array(list(itertools.product([0.0, 1.0], repeat=M)))
    energy = 0.5 * np.einsum("si,ij,sj->s", X, W, X) + X @ b
    p = np.exp(energy - np.logaddexp.reduce(energy))
    chains = Chains(np.repeat(X, n, axis=0), rng)
    chains.sweep(W, b, 1)
    code = (chains.states @ (4, 2, 1)).astype(int).reshape(len(X), n)
    T = np.stack([np.bincount(row, minlength=len(X)) for row in code]) / n
    error = np.sqrt(np.sum((p**2)[:, None] * T * (1 - T), axis=0) / n)
    assert (np.abs(p @ T - p) <= 6 * error + 1e-3).all()


@pytest.mark.parametrize("M", [1, 4, 9])
def test_annealing_gives_log_phi_within_its_error(M, rng):
    W, b = coupling(rng, M)
    log_phi, _ = boltzmann(W, b)
    found = annealed(W, b, rng.normal(size=M), 400, 300, rng)
    assert abs(found.log_partition - log_phi) <= FAR * found.error + 1e-9
    assert 0.0 <= found.error < 0.5 and 1.0 <= found.effective <= 400 * (1 + 1e-9)


@pytest.mark.parametrize("n", [2, 5])
def test_the_error_of_annealing_is_that_of_the_mean_of_the_weights(n, rng):
    W, b = coupling(rng, 4)
    found = annealed(W, b, b, n, 3, rng)
    weight = np.exp(found.log_weight - found.log_weight.max())
    error = weight.std(ddof=1) / np.sqrt(n) / weight.mean()
    assert found.error == pytest.approx(error, rel=1e-9)
    assert found.effective == pytest.approx(weight.sum() ** 2 / (weight @ weight))
    assert annealed(W, b, b, 1, 3, rng).error == np.inf  # of one nothing is known


def test_annealing_without_weights_is_exact(rng):
    b = rng.normal(size=5)
    found = annealed(np.zeros((5, 5)), b, b, 20, 3, rng)
    assert found.log_partition == pytest.approx(np.logaddexp(0, b).sum(), abs=1e-12)
    assert found.error < 1e-7 and found.effective == pytest.approx(20)


def test_chains_do_not_depend_on_one_another(rng):
    """Parts of the chains, as threads would take them, have the bits of the whole."""
    W, b = coupling(rng, 6)
    x = (rng.random((10, 6)) < 0.5).astype(float)
    seeds = rng.integers(2**64, size=10, dtype=np.uint64)

    def swept(part):
        own, state = x[part].copy(), seeds[part].copy()
        gibbs.gibbs(W, b, 5, own, np.empty_like(own), state)
        return own

    parts = np.concatenate([swept(slice(0, 3)), swept(slice(3, 10))])
    np.testing.assert_array_equal(swept(slice(0, 10)), parts)


def test_bits_do_not_depend_on_how_the_work_is_cut(rng, monkeypatch):
    W, b = coupling(rng, 5)

    def results():
        own = np.random.default_rng(0)
        found = annealed(W, b, b, 9, 11, own)
        chains = Chains(found.states, own)
        return found.log_weight, chains.moments(W, b, 3), chains.states

    whole = results()
    monkeypatch.setattr(_chains, "_DRAWS", 100)
    for one, other in zip(whole, results()):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", ["full", "rbm", "nobias"])
def test_estimates_of_a_fit_are_within_their_errors(kind, rng):
    J, L = 6, 2
    M = J + L
    free = np.ones((M, M), dtype=bool)
    if kind == "rbm":
        free = np.eye(M, dtype=bool)
        free[:J, J:] = free[J:, :J] = True
    elif kind == "nobias":
        np.fill_diagonal(free, False)
    model = BoltzmannModel(J, L, free)
    observed = model.observe(patterns(rng.integers(2**31)))
    weight = np.full(model.n_features, 1e-3)
    likelihood = Likelihood(model, observed, L2.of_weight(weight), 15.0)
    first = start(model, observed, rng)
    ascent = Ascent(likelihood, first, Sampling(200, 400, 200, 4), rng)
    lam = ascent.run(None)
    row = evaluated(ascent, lam)
    _, log_phi, mean, objective, _, residual = likelihood.evaluate(lam[None])
    gap = abs(row["log_partition"] - log_phi[0])
    assert gap <= FAR * row["log_likelihood_error"] + 1e-3
    gap = abs(row["entropy"] - (log_phi[0] - lam @ mean[0]))
    assert gap <= FAR * row["entropy_error"] + 1e-3
    # three standard errors are in the residual, which is the largest of many
    assert row["residual"] >= residual[0] - FAR * row["residual_error"]
    before = likelihood.evaluate(first[None])
    assert objective[0] > before[3][0] and residual[0] < before[5][0]


def test_separate_modes_and_biases_at_the_bound_are_fitted(rng):
    """Four modes between which no chain passes; hidden biases end at the bound."""
    J, L, bound = 24, 2, 10.0
    switch = rng.integers(0, 2, size=(200, 2))
    X = np.abs(np.repeat(switch, J // 2, axis=1) - (rng.random((200, J)) < 0.1))
    free = np.eye(J + L, dtype=bool)
    free[:J, J:] = free[J:, :J] = True
    model = BoltzmannModel(J, L, free)
    observed = model.observe(X)
    weight = np.full(model.n_features, 1 / 2000.0)
    likelihood = Likelihood(model, observed, L2.of_weight(weight), bound)
    first = start(model, observed, rng)
    lam = Ascent(likelihood, first, Sampling(200, 400, 200, 4), rng).run(None)
    assert np.abs(lam).max() <= bound
    m = X.mean(axis=0)
    apart = np.sum(m * np.log(m) + (1 - m) * np.log1p(-m))  # of independent units
    # at the best maximum about 5 nats, at one hidden unit's about 3
    assert likelihood.evaluate(lam[None])[3][0] >= apart + 1.5


@pytest.mark.parametrize("machine", [LMEBoltzmannMachine, LMERBM])
@pytest.mark.filterwarnings("ignore:.*the choice by:UserWarning")
def test_sampled_fits_agree_with_exact_ones(machine, seed):
    X = patterns(seed)
    exact = machine(1, n_init=3, random_state=0).fit(X).select("likelihood")
    assert exact.log_partition_error_ == 0.0 and len(exact.ties_) == 0
    model = machine(
        1,
        n_init=2,
        selection="likelihood",
        moments="sampled",
        n_updates=1000,
        sampled_tol=0.1,
        random_state=0,
    ).fit(X)
    assert model.converged_ and model.residual_ <= 0.1
    log_phi, _ = boltzmann(model.weights_, model.biases_)
    gap = abs(model.log_partition_ - log_phi)
    assert gap <= FAR * model.log_partition_error_ + 1e-3
    assert model.score(X) == pytest.approx(model.log_likelihood_, abs=1e-9)
    # of a flat optimum the weights may differ, the likelihood may not by much
    assert model.score(X) - (log_phi - model.log_partition_) > exact.score(X) - 0.1
    draws = model.sample(2000, random_state=1)
    error = np.sqrt(X.mean(axis=0) * (1 - X.mean(axis=0)) / 2000)
    assert (np.abs(draws.mean(axis=0) - X.mean(axis=0)) <= 6 * error + 0.05).all()


@pytest.mark.filterwarnings("ignore:.*the choice by:UserWarning")
def test_large_machines_are_fitted_and_kept(tmp_path, seed):
    X = patterns(seed, n=80, J=30)
    options = {"n_init": 2, "moments": "sampled", "random_state": 0, **FEW}
    model = LMEBoltzmannMachine(2, **options).fit(X)
    assert model.weights_.shape == (32, 32) and np.isfinite(model.lam_).all()
    assert set(model.ties_) <= {0, 1} - {model.selected_}
    path = tmp_path / "m.npz"
    maxent.save(model, path)
    again = maxent.load(path)
    for each in (again, LMEBoltzmannMachine(2, n_jobs=2, **options).fit(X)):
        np.testing.assert_array_equal(each.lam_, model.lam_)
        np.testing.assert_array_equal(each.score_samples(X), model.score_samples(X))
        np.testing.assert_array_equal(each.sample(5), model.sample(5))


def test_what_has_not_converged_is_refused(rng):
    X = patterns(0, n=60, J=8)
    few = {**FEW, "n_updates": 2, "sampled_tol": 1e-6}
    with pytest.raises(
        NoAdmissibleCandidateError, match=r"2 not_converged .*raise n_updates"
    ):
        LMERBM(2, n_init=2, moments="sampled", random_state=0, **few).fit(X)


def test_a_choice_within_errors_is_said():
    X = patterns(0, n=100)
    few = {**FEW, "mi_tol": -1.0}
    with pytest.warns(UserWarning, match=r"the choice by entropy is not decided: \d"):
        LMERBM(1, n_init=8, moments="sampled", random_state=0, **few).fit(X)


def test_bad_input_of_sampled_fits_is_named(rng):
    X = patterns(0, n=40)
    with pytest.raises(ValueError, match="moments='gibbs'"):
        LMERBM(1, moments="gibbs").fit(X)
    for name in ("n_chains", "n_updates", "n_temperatures"):
        with pytest.raises(ValueError, match=f"{name}=0"):
            LMERBM(1, moments="sampled", **{name: 0}).fit(X)
    with pytest.raises(ValueError, match="sampled_tol=0"):
        LMERBM(1, moments="sampled", sampled_tol=0).fit(X)
    with pytest.raises(ValueError, match=r"n_hidden=21: the E step .* bytes"):
        LMEBoltzmannMachine(21, moments="sampled").fit(X)
    with pytest.raises(ValueError, match="not binary"):
        LMERBM(1, moments="sampled").fit(X + 0.5)
