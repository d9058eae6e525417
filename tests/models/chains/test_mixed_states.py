"""States that show mixtures: enumeration, the chain of their components, hmmlearn."""

import itertools
import pickle

import dask.array as da
import numpy as np
import pytest
from refusals import outcome, refused
from scipy import optimize, stats

from maxent import load, save
from maxent.families import (
    Categorical,
    DiagonalGaussian,
    Gamma,
    Gaussian,
    Poisson,
    Product,
    SphericalGaussian,
    TiedGaussian,
)
from maxent.kernels import FisherScores, marginalized_features, product_kernel
from maxent.models import (
    HiddenMarkovEstimator,
    HiddenMarkovModel,
    Mixture,
    Mixtures,
    select,
)
from maxent.models.chains._mixed_rows import merged_by_moves

MOVES = np.array([[0.9, 0.1], [0.2, 0.8]])


def counts_model(rng, M=2):
    weights = rng.dirichlet(np.full(M, 3.0), 2)
    shown = Mixtures(weights, Poisson(rng.uniform(0.5, 9.0, (2, M))))
    return HiddenMarkovModel(rng.dirichlet(np.ones(2)), MOVES, shown)


def vectors_model(rng, S=2, M=2, d=2, apart=4.0):
    root = rng.normal(size=(S, M, d, d))
    cov = root @ root.swapaxes(-1, -2) + np.eye(d)
    mean = apart * rng.normal(size=(S, M, d))
    weights = rng.dirichlet(np.full(M, 3.0), S)
    moves = 0.9 * np.eye(S) + 0.1 / S
    shown = Mixtures(weights, Gaussian(mean, cov))
    return HiddenMarkovModel(np.full(S, 1.0 / S), moves, shown)


def every_path(model, x):
    """(states, components, probability of them with x) by brute force."""
    rates, weights = model.emission.components.rate, model.emission.weights
    S, M = weights.shape
    for path in itertools.product(range(S), range(M), repeat=len(x)):
        z, m = path[::2], path[1::2]
        p = model.start[z[0]]
        p *= np.prod([model.transition[a, b] for a, b in itertools.pairwise(z)])
        for t, count in enumerate(x):
            p *= weights[z[t], m[t]] * stats.poisson.pmf(count, rates[z[t], m[t]])
        yield z, m, p


def test_likelihood_posterior_and_one_step_of_em_are_those_of_all_paths(rng):
    model = counts_model(rng)
    sequences = [[0, 3, 7], [2, 9]]
    own = np.array([1.0, 2.5])  # weights of the sequences
    start, moves = np.zeros(2), np.zeros((2, 2))
    size, total = np.zeros((2, 2)), np.zeros((2, 2))
    for x, w in zip(sequences, own):
        paths = list(every_path(model, x))
        evidence = sum(p for *_, p in paths)
        found = model.log_likelihood([x])[0]
        np.testing.assert_allclose(found, np.log(evidence), rtol=1e-12)
        posterior = np.zeros((len(x), 2))
        for z, m, p in paths:
            share = w * p / evidence
            start[z[0]] += share
            for a, b in itertools.pairwise(z):
                moves[a, b] += share
            for t, count in enumerate(x):
                posterior[t, z[t]] += p / evidence
                size[z[t], m[t]] += share
                total[z[t], m[t]] += share * count
        np.testing.assert_allclose(model.posterior([x])[0], posterior, atol=1e-12)
    options = {"weights": own, "smoothing": 0.0, "max_iter": 1, "init": model}
    with pytest.warns(match="max_iter"):
        after = HiddenMarkovModel.fit(sequences, **options)
    np.testing.assert_allclose(after.start, start / start.sum(), rtol=1e-10)
    np.testing.assert_allclose(after.transition, moves / moves.sum(1)[:, None])
    shown = after.emission
    np.testing.assert_allclose(shown.weights, size / size.sum(1)[:, None])
    np.testing.assert_allclose(shown.components.rate, total / size)


def test_it_is_the_chain_of_its_components(rng):
    model = vectors_model(rng)
    flat = model.with_component_states()
    assert flat.n_states == 4 and type(flat.emission) is Gaussian
    assert flat.with_component_states() is flat
    x = model.sample(3, 12, rng)
    x[0][4] = np.nan
    x[1][2, 0] = np.nan
    np.testing.assert_allclose(model.log_likelihood(x), flat.log_likelihood(x))
    assert model.n_parameters == 1 + 2 + 2 + flat.emission._n_free()
    for name in ("posterior", "filter"):
        for mine, theirs in zip(getattr(model, name)(x), getattr(flat, name)(x)):
            joined = theirs.reshape(len(theirs), 2, 2).sum(axis=2)
            np.testing.assert_allclose(mine, joined, atol=1e-12)
    mine, theirs = (m.forecast(x, 2)[0] for m in (model, flat))
    np.testing.assert_allclose(mine.mean, theirs.mean)
    np.testing.assert_allclose(mine.variance, theirs.variance)
    for mine, theirs in zip(
        *(m.impute(x, return_variance=True) for m in (model, flat))
    ):
        np.testing.assert_allclose(np.concatenate(mine), np.concatenate(theirs))
    other = vectors_model(rng)
    for rho in (0.5, 1.0):
        both = [
            product_kernel(p, rho=rho, horizon=3)
            for p in ([model, other], [flat, other.with_component_states()])
        ]
        np.testing.assert_array_equal(*both)
    sums = (marginalized_features(x[2:], m)[0] for m in (model, flat))
    np.testing.assert_allclose(next(sums), next(sums).reshape(2, 2, 3).sum(axis=1))


def test_scores_are_slopes_of_the_likelihood(rng):
    model = counts_model(rng)
    x = model.sample(1, 9, rng)

    def likelihood(logits):
        weights = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        shown = Mixtures(weights, model.emission.components)
        return HiddenMarkovModel(model.start, MOVES, shown).log_likelihood(x)[0]

    logits = np.log(model.emission.weights)
    slope = optimize.approx_fprime(
        logits.ravel(), lambda a: likelihood(a.reshape(2, 2)), 1e-6
    ).reshape(2, 2)
    names = FisherScores(model).get_feature_names_out().tolist()
    found = FisherScores(model).transform(x)[0]
    for h in range(2):
        own = found[names.index(f"weights[{h},0]")]
        np.testing.assert_allclose(own, slope[h, 0], rtol=1e-3, atol=1e-5)
    flat = model.with_component_states()
    more = FisherScores(flat).get_feature_names_out().tolist()
    at = [more.index(f"emission[{i},0]") for i in range(4)]
    mine = [names.index(f"emission[{i},0]") for i in range(4)]
    np.testing.assert_allclose(found[mine], FisherScores(flat).transform(x)[0][at])


@pytest.mark.parametrize(
    "family", [Gaussian, DiagonalGaussian, SphericalGaussian, TiedGaussian, Poisson]
)
def test_fits_find_states_of_separate_groups(family, rng):
    """Two states, each of two groups that are near a group of the other one."""
    moves = np.array([[0.9, 0.1], [0.1, 0.9]])
    if family is Poisson:
        shown = Mixtures(np.full((2, 2), 0.5), Poisson([[1.0, 80.0], [20.0, 180.0]]))
    else:
        mean = np.array([[[0.0, 0.0], [30.0, 30.0]], [[0.0, 30.0], [30.0, 0.0]]])
        cov = np.tile(np.eye(2), (2, 2, 1, 1))
        shown = Mixtures(np.full((2, 2), 0.5), Gaussian(mean, cov))
    truth = HiddenMarkovModel([0.5, 0.5], moves, shown)
    x, z = truth.sample(4, 150, rng, return_states=True)
    fitted = HiddenMarkovModel.fit(
        x, 2, family=family, n_components=2, random_state=int(rng.integers(1000))
    )
    assert fitted.fit_result.converged
    trace = np.array(fitted.fit_result.trace)
    assert (np.diff(trace) > -1e-9 * np.abs(trace[1:])).all()
    same = np.concatenate(fitted.viterbi(x)[0]) == np.concatenate(z)
    assert max(same.mean(), 1 - same.mean()) > 0.99


def test_columns_of_several_kinds_and_rows_that_miss_entries(rng):
    columns = {
        0: Poisson([[1.0, 40.0], [15.0, 90.0]]),
        (1,): Gaussian(np.zeros((2, 2, 1)), np.ones((2, 2, 1, 1))),
    }
    truth = HiddenMarkovModel(
        [1, 0], MOVES, Mixtures([[0.5, 0.5]] * 2, Product(columns))
    )
    x = truth.sample(3, 200, rng)
    x[0][5, 0] = x[1][7, 1] = np.nan
    x[2][9] = np.nan
    fitted = HiddenMarkovModel.fit(
        x, 2, family={0: Poisson, 1: Gaussian}, n_components=2, random_state=0
    )
    gain = fitted.log_likelihood(x).sum() - truth.log_likelihood(x).sum()
    assert gain > -3.0  # the truth is no maximum
    full, _ = fitted.impute(x), fitted.filter(x)
    assert np.isfinite(np.concatenate(full)).all()


def test_what_is_known_and_what_is_held(rng):
    truth = vectors_model(rng, apart=8.0)
    x, z = truth.sample(2, 200, rng, return_states=True)
    options = {"n_components": 2, "random_state": 0}
    told = HiddenMarkovModel.fit(x, 2, states=[z[0], np.full(200, -1)], **options)
    assert (told.posterior(x)[0].argmax(axis=1) == z[0]).mean() > 0.8
    held = HiddenMarkovModel.fit(
        x, init=truth, fixed={"emission": np.array([True, False])}
    )
    assert held.emission[0] == truth.emission[0]
    assert held.emission[1] != truth.emission[1]
    none = Mixtures([[1.0, 0.0], [0.5, 0.5]], truth.emission.components)
    none = HiddenMarkovModel(truth.start, truth.transition, none)
    kept = HiddenMarkovModel.fit(x, init=none)
    assert kept.emission.weights[0].tolist() == [1.0, 0.0]


def test_fits_to_blocks_equal_those_to_arrays(rng):
    truth = vectors_model(rng)
    x = np.concatenate(truth.sample(6, 50, rng))
    blocks = da.from_array(x, chunks=(100, 2))
    options = {"lengths": [50] * 6, "init": truth, "max_iter": 5, "tol": 1e-12}
    with pytest.warns(match="max_iter"):
        mine = HiddenMarkovModel.fit(x, **options)
    with pytest.warns(match="max_iter"):
        theirs = HiddenMarkovModel.fit(blocks, **options)
    for a, b in zip(mine.emission._arrays(), theirs.emission._arrays()):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(mine.transition, theirs.transition, rtol=1e-8)
    started = HiddenMarkovModel.fit(
        blocks, 2, lengths=[50] * 6, n_components=2, random_state=0
    )
    assert started.emission.weights.shape == (2, 2)


def test_files_copies_and_orders(tmp_path, rng):
    model = vectors_model(rng, S=3)
    save(model, tmp_path / "chain.npz")
    for again in (load(tmp_path / "chain.npz"), pickle.loads(pickle.dumps(model))):
        assert again.emission == model.emission
        assert hash(again.emission) == hash(model.emission)
    order = [2, 0, 1]
    moved = model.order_states(np.argsort(order))
    assert moved.emission == model.emission[order]
    assert moved.emission[0] == model.emission[2]
    one = Mixture(model.emission.weights[0], model.emission.components[0])
    x = model.sample(1, 9, rng)[0]
    shown = model.emission
    np.testing.assert_allclose(shown.log_prob(x)[0], one.log_prob(x))
    np.testing.assert_allclose(shown.posterior(x)[0].T, one.posterior(x))
    draws = shown.sample(4000, rng)
    mean, variance = shown.moments()
    wide = np.sqrt(variance / 4000)
    assert (np.abs(draws.mean(axis=1) - mean) < 6 * wide).all()
    np.testing.assert_allclose(draws.var(axis=1), variance, rtol=0.25)


def test_an_estimator_and_a_search_take_the_number_of_components(rng):
    x = vectors_model(rng, apart=8.0).sample(4, 60, rng)
    machine = HiddenMarkovEstimator(2, n_components=2, random_state=0).fit(x)
    assert machine.model_.emission.n_components == 2
    assert machine.get_params()["n_components"] == 2
    found = select(HiddenMarkovModel, x, [1, 2], n_components=2, random_state=0)
    assert found.best.emission.n_components == 2
    wrong = HiddenMarkovEstimator(alphabet="AB", n_components=2)
    refused(lambda: wrong.fit(["ABBA"]), "n_components=2 mixes families")


@pytest.mark.parametrize("kind", ["full", "diag", "spherical", "tied"])
def test_models_of_hmmlearn_are_taken_over(kind, rng):
    hmm = pytest.importorskip("hmmlearn.hmm")
    peer = hmm.GMMHMM(2, 3, covariance_type=kind, n_iter=3, random_state=0)
    x = vectors_model(rng, M=3).sample(2, 80, rng)
    peer.fit(np.concatenate(x), [80, 80])
    ours = HiddenMarkovModel.from_hmmlearn(peer)
    np.testing.assert_allclose(
        ours.log_likelihood(x).sum(), peer.score(np.concatenate(x), [80, 80])
    )


def test_groups_are_found_by_what_follows_what(rng):
    """Components of a state are followed alike, whatever their shares."""
    for _ in range(5):
        S, M = int(rng.integers(2, 5)), int(rng.integers(2, 5))
        moves, weights = rng.dirichlet(np.ones(S), S), rng.dirichlet(np.ones(M), S)
        pairs = moves[:, None, :, None] * weights[:, :, None, None] * weights
        names = rng.permutation(S * M)
        counts = 1e4 * pairs.reshape(S * M, S * M)[np.ix_(names, names)]
        group = merged_by_moves(counts, S)
        assert len({(g, n // M) for g, n in zip(group, names)}) == S


@pytest.mark.parametrize(
    "family, values",
    [(Gaussian, 2), (DiagonalGaussian, 2), (Poisson, 2), (Poisson, 1)],
)
def test_states_whose_rows_are_alike_have_a_start(family, values, rng):
    x = [rng.integers(0, values, 60).astype(float) for _ in range(3)]
    own = {"family": family, "random_state": 0, "max_iter": 50}
    model = outcome(lambda: HiddenMarkovModel.fit(x, 2, n_components=2, **own))
    one = HiddenMarkovModel.fit(x, 1, **own)
    # a special case of it, up to what the priors of small components cost
    gain = model.log_likelihood(x).sum() - one.log_likelihood(x).sum()
    assert np.isfinite(gain) and gain > -5.0


def test_wrong_arguments_are_refused(rng):
    x = [np.arange(8.0)]
    fit = HiddenMarkovModel.fit
    for call, message in [
        (lambda: fit([[0, 1, 0]], 2, family=Categorical, n_components=2), "mixes cate"),
        (lambda: fit(x, 2, n_components=0), "n_components=0"),
        (lambda: fit(x, 3, n_components=3), "n_components=3 of 3 states"),
        (lambda: fit(x, 9), "n_states=9 is more than the 8"),
        (lambda: fit(x, 2, init=3), "init=3"),
        (
            lambda: fit(x, 2, init=counts_model(rng), n_components=3),
            "n_components=3 but a state of init has 2",
        ),
        (lambda: fit(x, 2, states=[["a"] * 8]), "'a' must be a state"),
        (lambda: fit([[-1.0, 2.0]], 1, family=Gamma, n_components=2), "outside"),
        (lambda: Mixtures([0.5, 0.6], Poisson([1.0, 2.0])), "weights"),
        (lambda: Mixtures([0.5, 0.5], Poisson([1.0])), "both must be"),
        (
            lambda: HiddenMarkovModel([1.0], [[1.0]], Mixtures([1.0], Poisson([1.0]))),
            "batch of shape",
        ),
    ]:
        refused(call, message)
    refused(lambda: Mixtures([0.5, 0.5], 3), "must be a batch")
