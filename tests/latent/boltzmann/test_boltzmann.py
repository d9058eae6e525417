"""Boltzmann machines: sums against loops over states, fits, refusals."""

import itertools
import tracemalloc

import numpy as np
import pytest
from oracles.latent import boltzmann, coupling

from maxent.latent import LMERBM, FiniteLatentModel, LMEBoltzmannMachine
from maxent.latent._likelihood import Likelihood
from maxent.latent._penalty import L2
from maxent.latent._pool import groups
from maxent.latent.boltzmann._boltzmann_model import BoltzmannModel


def free_weights(kind, J, L, rng):
    M = J + L
    if kind == "full":
        return np.ones((M, M), dtype=bool)
    if kind == "nobias":
        return ~np.eye(M, dtype=bool)
    if kind == "rbm":
        free = np.eye(M, dtype=bool)
        free[:J, J:] = free[J:, :J] = True
        return free
    free = np.triu(rng.random((M, M)) < 0.7)
    free[0, 1] = True
    return free | free.T


def table_of(model):
    """Features of every (v, h) as a finite model, by loops."""
    J, L = model.J, model.L
    f = np.zeros((1 << J, 1 << L, model.n_features))
    for v, h in itertools.product(range(1 << J), range(1 << L)):
        x = [(v >> i) & 1 for i in range(J)] + [(h >> i) & 1 for i in range(L)]
        pairs = [x[i] * x[j] for i, j in zip(model.i, model.j)]
        f[v, h] = pairs + [x[i] for i in model.biased]
    return FiniteLatentModel(f)


@pytest.mark.parametrize("kind", ["full", "nobias", "rbm", "mask"])
@pytest.mark.parametrize("J, L", [(4, 2), (2, 3)])
def test_sums_are_those_of_the_finite_model(kind, J, L, rng):
    model = BoltzmannModel(J, L, free_weights(kind, J, L, rng))
    reference, lam = table_of(model), rng.normal(size=(2, model.n_features))
    V = rng.integers(0, 2, size=(30, J))
    mine, theirs = model.observe(V), reference.observe(V @ (1 << np.arange(J)))
    for a, b in zip(model.partition(lam), reference.partition(lam)):
        np.testing.assert_allclose(a, b, atol=1e-12)
    target = reference.posterior(lam, theirs)[1]
    for a, b in zip(model.posterior(lam, mine), reference.posterior(lam, theirs)):
        np.testing.assert_allclose(a, b, atol=1e-12)
    np.testing.assert_allclose(
        model.hessian(lam[0], mine), reference.hessian(lam[0], theirs), atol=1e-12
    )
    weight = np.full(model.n_features, 0.1)
    for method in ("gis", "iis", "scgis"):
        np.testing.assert_allclose(
            model.scaled(lam, target, weight, method, 15.0),
            reference.scaled(lam, target, weight, method, 15.0),
            atol=1e-9,
        )


def test_layer_sums_are_those_of_all_states(rng):
    J, L = 6, 3
    model = BoltzmannModel(J, L, free_weights("rbm", J, L, rng))
    W, b = model.matrices(rng.normal(size=model.n_features))
    log_phi, second = boltzmann(W, b)
    found = model._layer_sums(W, b)
    assert found[0] == pytest.approx(log_phi, abs=1e-12)
    np.testing.assert_allclose(
        model.features_of(found[1]), model.features_of(second), atol=1e-12
    )


@pytest.mark.parametrize("J, L", [(40, 2), (2, 40)])
def test_layer_sums_enumerate_the_smaller_layer(J, L, rng):
    model = BoltzmannModel(J, L, free_weights("rbm", J, L, rng))
    lam = 0.3 * rng.normal(size=model.n_features)
    W, b = model.matrices(lam)
    few, many = (slice(J, None), slice(J)) if L < J else (slice(J), slice(J, None))
    own = np.array(list(np.ndindex(2, 2)), dtype=float)
    terms = own @ b[few] + np.logaddexp(0.0, own @ W[few, many] + b[many]).sum(axis=1)
    log_phi, mean = model.partition(lam[None])
    assert log_phi == pytest.approx(np.logaddexp.reduce(terms))
    share, seen = mean[0, -model.M :][:J], model.sample(lam, 1000, rng).mean(axis=0)
    assert (abs(seen - share) < 6 * np.sqrt(share * (1 - share) / 1000)).all()


@pytest.mark.parametrize("kind", ["full", "nobias"])
def test_feature_sums_of_many_units_split_the_means_of_all_states(kind, rng):
    M = 16  # from which tables of halves stand for all states
    model = BoltzmannModel(10, 6, free_weights(kind, 10, 6, rng))
    lam = 0.3 * rng.normal(size=model.n_features)
    W, b = model.matrices(lam)
    x = np.array(list(np.ndindex(*[2] * M)), dtype=float)
    p = np.exp(0.5 * ((x @ W) * x).sum(axis=1) + x @ b)
    p /= p.sum()
    active = x.sum(axis=1).astype(int)
    total = active * (active - 1) // 2 + (active if kind == "full" else 0)
    found, values = model._by_sum(lam)
    np.testing.assert_array_equal(values, np.arange(total.max() + 1))
    for s in values.astype(int):
        own = x[total == s]
        second = (own.T * p[total == s]) @ own
        np.testing.assert_allclose(found[:, s], model.features_of(second), atol=1e-12)


@pytest.mark.parametrize("kind", ["full", "rbm"])
def test_permuted_and_flipped_hidden_units_are_the_same_model(kind, rng):
    J, L = 4, 3
    model = BoltzmannModel(J, L, free_weights(kind, J, L, rng))
    lam = rng.normal(size=model.n_features)
    W, b = model.matrices(lam)

    def values(W, b):
        x = np.concatenate([W[model.i, model.j], b[model.biased]])[None]
        signatures.append(model._signature(x[0]))
        own = Likelihood(model, seen, L2(np.inf, model.n_features))
        found, log_phi, mean, *_ = own.evaluate(x)
        entropy = log_phi[0] - x[0] @ mean[0]
        return found.log_likelihood[0], entropy, model.dependence(x, seen)[0]

    signatures, seen = [], model.observe(rng.integers(0, 2, size=(30, J)))
    own = values(W, b)
    order = np.r_[np.arange(J), J + rng.permutation(L)]
    np.testing.assert_allclose(values(W[np.ix_(order, order)], b[order]), own)
    h = J + 1  # u_h -> 1 - u_h
    V, c = W.copy(), b + W[h]
    V[h] = V[:, h] = -W[h]
    c[h] = -b[h]
    np.testing.assert_allclose(values(V, c), own)
    other = np.zeros_like(W)  # one pair of units that are alike at odds of e^2
    other[0, J] = other[J, 0] = 4.0
    values(other, -other.sum(axis=1) / 2)
    one = np.zeros(4)
    found = groups(one, one, signatures.__getitem__, signed=model._signed)
    np.testing.assert_array_equal(found, [0, 0, 0, 1])


def data(rng, n=150):
    J, L = 4, 1
    model = BoltzmannModel(J, L, free_weights("full", J, L, rng))
    W, b = coupling(rng, J + L)
    lam = np.concatenate([W[model.i, model.j], b])
    return model.sample(lam, n, rng)


@pytest.mark.parametrize("machine", [LMEBoltzmannMachine, LMERBM])
def test_fits_are_exact_models(machine, seed):
    X = data(np.random.default_rng(seed))
    model = machine(2, n_init=3, random_state=0).fit(X)
    states = np.array(list(itertools.product([0.0, 1.0], repeat=4)))
    assert np.exp(model.score_samples(states)).sum() == pytest.approx(1.0, abs=1e-10)
    assert model.score(X) == pytest.approx(model.log_likelihood_, abs=1e-9)
    log_phi, _ = boltzmann(model.weights_, model.biases_)
    assert model.log_partition_ == pytest.approx(log_phi, abs=1e-10)
    hidden = model.transform(X)
    assert hidden.shape == (150, 2) and (hidden >= 0).all() and (hidden <= 1).all()
    draws = model.sample(4000, random_state=0)
    p = np.exp(model.score_samples(states))
    error = np.sqrt(p @ (states - p @ states) ** 2 / 4000)
    assert (np.abs(draws.mean(axis=0) - p @ states) < 5 * error + 1e-12).all()
    assert model.select("likelihood").objective_ >= model.objective_


def test_gibbs_steps_keep_the_distribution(seed):
    rng = np.random.default_rng(seed)
    X = data(rng)
    model = LMERBM(2, n_init=2, random_state=0).fit(X)
    draws = model.gibbs(model.sample(6000, random_state=1), random_state=2)
    states = np.array(list(itertools.product([0.0, 1.0], repeat=4)))
    p = np.exp(model.score_samples(states))
    error = np.sqrt(p @ (states - p @ states) ** 2 / 6000)
    assert (np.abs(draws.mean(axis=0) - p @ states) < 5 * error + 1e-12).all()


def test_weights_at_the_bound_are_said(rng):
    X = np.array([[1.0, 0.0, 1.0]] * 8 + [[0.0, 1.0, 0.0]] * 8 + [[0.0, 0.0, 1.0]] * 4)
    model = LMEBoltzmannMachine(
        1, n_init=3, random_state=0, prior_variance=np.inf, bound=6.0, mi_tol=-1.0
    ).fit(X)
    assert len(model.at_bound_) and np.abs(model.lam_).max() <= 6.0


@pytest.mark.parametrize(
    "machine, columns",
    [
        (LMEBoltzmannMachine(2), 6000),
        (LMEBoltzmannMachine(1100), 3),
        (LMEBoltzmannMachine(1100, moments="sampled"), 3),
        (LMERBM(1100), 1100),
    ],
)
def test_far_too_many_units_are_refused_before_anything_is_made(machine, columns, rng):
    X = rng.integers(0, 2, size=(20, columns)).astype(float)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"2\^1?\d*100|2\^6002"):
            machine.fit(X)
        assert tracemalloc.get_traced_memory()[1] < 2e7
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("method", ["newton", "scgis", "iis"])
def test_an_m_step_that_large_machines_lack_is_refused_with_one_that_works(method, rng):
    X = rng.integers(0, 2, size=(20, 25)).astype(float)
    with pytest.raises(ValueError, match=r"use method='gis'.* or 'lbfgs'") as refusal:
        LMERBM(4, n_init=1, method=method).fit(X)
    assert "'iis'," not in str(refusal.value)
    machine = LMERBM(4, n_init=1, method="gis", random_state=0)
    assert machine.fit(X).converged_


def test_bad_input_is_named(rng):
    X = data(rng)
    with pytest.raises(ValueError, match=r"X\[0, 0\]=0.5 is not binary"):
        LMEBoltzmannMachine(1).fit(np.where(X[0, 0] == X, 0.5, X))
    wide = rng.integers(0, 2, size=(10, 40)).astype(float)
    with pytest.raises(
        ValueError, match=r"42 units have 2\^42 states \(2\^45 bytes .*'sampled'"
    ):
        LMEBoltzmannMachine(2).fit(wide)
    with pytest.raises(
        ValueError, match=r"n_hidden=25: the smaller layer has .* bytes .*sampled"
    ):
        LMERBM(25).fit(wide)
    with pytest.raises(ValueError, match="n_hidden=0"):
        LMEBoltzmannMachine(0).fit(X)
    with pytest.raises(ValueError, match="mask has shape"):
        LMEBoltzmannMachine(1, mask=np.eye(3)).fit(X)
    with pytest.raises(ValueError, match="prior_variance=0"):
        LMERBM(1, prior_variance=0).fit(X)
