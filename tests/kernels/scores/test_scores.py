"""FisherScores: finite differences of log-likelihoods, and their use in a machine."""

import numpy as np
import pytest
from families.family_cases import MAKERS, NAMES
from models.factor_cases import random_field, random_net, random_rows
from models.sequence_cases import random_codes, random_gaussian_hmm, random_hmm
from models.state_space_cases import covariance, random_lds
from refusals import refused
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from maxent import MEDClassifier, load, save
from maxent.families import Bernoulli, Categorical, Exponential, Gaussian, Poisson
from maxent.kernels import FisherFeatures, FisherScores, fisher_kernel
from maxent.models import (
    BayesNet,
    CategoricalHMM,
    FactorialHMM,
    GaussianHMM,
    LinearDynamicalSystem,
    LinearGaussianNetwork,
    MarkovChain,
    MarkovRandomField,
    Mixture,
    SwitchingLDS,
)

# central differences of step h: h^2 from the third derivative, eps / h from rounding
STEP = 1e-5
RTOL = 1e-6


def softmax(table, step):
    """Rows theta exp(step), normalised: a step in the logits."""
    table = table * np.exp(step)
    return table / table.sum(axis=-1, keepdims=True)


def moved_natural(P, step):
    """The member of the family at natural parameters moved by a step."""
    eta = P.natural_parameters + step.reshape(P.natural_parameters.shape)
    name = type(P).__name__
    if name == "Gaussian":
        d = P.mean.shape[-1]
        K = -2.0 * eta[..., d:].reshape(*eta.shape[:-1], d, d)
        cov = np.linalg.inv(0.5 * (K + K.swapaxes(-2, -1)))
        mean = np.matmul(cov, eta[..., :d, None])[..., 0]
        return Gaussian(mean, 0.5 * (cov + cov.swapaxes(-2, -1)))
    if name == "DiagonalGaussian":
        d = P.mean.shape[-1]
        var = -0.5 / eta[..., d:]
        return type(P)(eta[..., :d] * var, var)
    if name == "SphericalGaussian":
        var = -0.5 / eta[..., -1]
        return type(P)(eta[..., :-1] * var[..., None], var)
    if name == "Categorical":
        return Categorical(softmax(P.prob, step.reshape(P.prob.shape)))
    assert name == "Poisson"
    return Poisson(np.exp(eta[..., 0]))


def split(step, *shapes):
    """A flat step as arrays of shapes."""
    ends = np.cumsum([int(np.prod(s)) for s in shapes])[:-1]
    return [part.reshape(s) for part, s in zip(np.split(step, ends), shapes)]


def moved(model, step):
    """The model at parameters moved by a step in the overcomplete coordinates."""
    if isinstance(model, Mixture):
        eta = model.components.natural_parameters
        a, b = split(step, model.weights.shape, eta.shape)
        return Mixture(softmax(model.weights, a), moved_natural(model.components, b))
    if isinstance(model, MarkovChain):
        a, b = split(step, model.start.shape, model.transition.shape)
        rows = softmax(model.transition, b)
        return MarkovChain(softmax(model.start, a), rows, model.order)
    if isinstance(model, (CategoricalHMM, GaussianHMM)):
        shape = model.emission.natural_parameters.shape
        a, b, c = split(step, model.start.shape, model.transition.shape, shape)
        first, rows = softmax(model.start, a), softmax(model.transition, b)
        P = moved_natural(model.emission, c)
        if isinstance(model, CategoricalHMM):
            return CategoricalHMM(first, rows, P)
        cov = P.cov if isinstance(P, Gaussian) else P.var
        return GaussianHMM(first, rows, P.mean, cov)
    if isinstance(model, BayesNet):
        parts = split(step, *(t.shape for _, t in model.factors))
        tables = [(n, softmax(t, s)) for (n, t), s in zip(model.factors, parts)]
        return BayesNet(tables, model.observed)
    if isinstance(model, MarkovRandomField):
        parts = split(step, *(t.shape for _, t in model.log_factors))
        tables = [(n, t + s) for (n, t), s in zip(model.log_factors, parts)]
        return MarkovRandomField(tables, model.observed)
    assert isinstance(model, LinearDynamicalSystem)
    names = ("transition", "transition_offset", "transition_cov", "observation")
    names += ("observation_offset", "observation_cov", "initial_mean", "initial_cov")
    old = [getattr(model, name) for name in names]
    out = {}
    for name, value, own in zip(names, old, split(step, *(x.shape for x in old))):
        out[name] = value + (0.5 * (own + own.T) if name.endswith("cov") else own)
    return LinearDynamicalSystem(**out)


def differences(model, data, size):
    """Central differences of the log-likelihoods by every coordinate, (n, size)."""

    def value(step):
        other = moved(model, step)
        by = "log_prob" if hasattr(other, "log_prob") else "log_likelihood"
        return getattr(other, by)(data)

    out = []
    for k in range(size):
        step = np.zeros(size)
        step[k] = STEP
        out.append((value(step) - value(-step)) / (2 * STEP))
    return np.array(out).T


def assert_scores(model, data):
    U = FisherScores(model, representation="overcomplete").transform(data)
    expected = differences(model, data, U.shape[1])
    scale = 1.0 + np.abs(expected).max(axis=1, keepdims=True)
    assert (np.abs(U - expected) <= RTOL * scale).all()
    return U


@pytest.mark.parametrize("name", NAMES)
def test_families(name, rng):
    """By the cumulant's own differences: log p = T.eta - A(eta) + const."""
    P = MAKERS[name](rng, ())
    X = P.sample(5, rng)
    U = FisherScores(P, representation="overcomplete").transform(X)
    eta = P.natural_parameters
    T = P.sufficient_statistics(X)
    for k in range(len(eta)):
        h = 1e-6 * max(1.0, abs(eta[k]))
        step = h * np.eye(len(eta))[k]
        slope = (P.cumulant(eta + step) - P.cumulant(eta - step)) / (2 * h)
        # rounding of the cumulant over the step, and third derivatives times h^2
        size = 1.0 + abs(P.cumulant()) + np.abs(P.mean_parameters).max() ** 3
        np.testing.assert_allclose(U[:, k], T[:, k] - slope, atol=1e-8 * size)


def test_independent_columns_are_the_scores_of_each(rng):
    P = Bernoulli([0.2, 0.7, 0.5])
    X = rng.integers(0, 2, size=(6, 3))
    U = FisherScores(P).transform(X)
    each = [FisherScores(P[j]).transform(X[:, j]) for j in range(3)]
    np.testing.assert_array_equal(U, np.hstack(each))


@pytest.mark.parametrize(
    "family", ["gaussian", "diagonal", "spherical", "categorical", "poisson"]
)
def test_mixtures(family, rng):
    M = Mixture(rng.dirichlet(np.ones(3)), MAKERS[family](rng, (3,)))
    assert_scores(M, M.sample(6, rng))


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_markov_chains_with_missing_and_short_sequences(order, rng):
    n = 2**order
    rows = rng.dirichlet(np.ones(2), size=n)
    model = MarkovChain(rng.dirichlet(np.ones(n)), rows, order)
    assert_scores(model, random_codes(rng, 12, 2, missing=0.0))
    assert_scores(model, random_codes(rng, 12, 2, missing=0.3))


def test_categorical_hmm(rng):
    assert_scores(random_hmm(rng, 3, 2), random_codes(rng, 8, 2, missing=0.2))


@pytest.mark.parametrize("kind", ["full", "diagonal", "spherical"])
def test_gaussian_hmm(kind, rng):
    model = random_gaussian_hmm(rng, 2, 2, kind)
    sequences = model.sample(5, [1, 2, 3, 4, 5], rng)
    sequences[3] = np.array(sequences[3])
    sequences[3][1] = np.nan
    U = assert_scores(model, sequences)
    sequences[4] = np.array(sequences[4])
    sequences[4][[1, 3], [0, 1]] = np.nan  # rows in part
    part = assert_scores(model, sequences)
    np.testing.assert_allclose(part[:4], U[:4], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("family", ["gaussian", "diagonal", "spherical"])
def test_mixtures_with_missing_entries(family, rng):
    M = Mixture(rng.dirichlet(np.ones(3)), MAKERS[family](rng, (3,)))
    X = M.sample(6, rng)
    U = assert_scores(M, X)
    X[1, 0] = X[2, 1] = X[4] = np.nan
    part = assert_scores(M, X)
    whole = [0, 3, 5]
    np.testing.assert_allclose(part[whole], U[whole], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(part[4], 0.0, atol=1e-12)


def test_bayes_nets_and_random_fields(rng):
    sizes = {"x": 2, "y": 3, "z": 2, "h": 2, "g": 3}
    shown = ["z", "x", "y"]
    X = random_rows(rng, [2, 2, 3], 9)
    for model in (
        random_net(rng, sizes, shown),
        random_net(rng, {n: sizes[n] for n in shown}, shown),
        random_field(rng, sizes, shown),
    ):
        assert_scores(model, X)
        assert_scores(model, np.maximum(X, 0))


def test_linear_dynamical_systems(rng):
    model = random_lds(rng, 2, 2)
    sequences = model.sample(4, [1, 2, 5, 7], rng)
    sequences[2] = np.array(sequences[2])
    sequences[2][3] = np.nan
    U = assert_scores(model, sequences)
    sequences[3] = np.array(sequences[3])
    sequences[3][2, 0] = sequences[3][5, 1] = np.nan  # rows in part
    part = assert_scores(model, sequences)
    np.testing.assert_allclose(part[:3], U[:3], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("partly", [False, True])
def test_linear_gaussian_networks(partly, rng):
    order = [("a", 2), ("h", 1), ("x", 2), ("y", 1)]
    B = {
        ("h", "a"): rng.normal(size=(1, 2)),
        ("x", "h"): rng.normal(size=(2, 1)),
        ("y", "x"): rng.normal(size=(1, 2)),
    }
    covs = {"a": covariance(rng, 2), "h": [[0.7]], "x": covariance(rng, 2), "y": [[1]]}
    model = LinearGaussianNetwork(order, B, rng.normal(size=6), covs, ["x", "y", "a"])
    X = model.sample(5, rng)
    if partly:
        X[1, 2], X[2], X[3, :4] = np.nan, np.nan, np.nan
    scores = FisherScores(model, representation="overcomplete")
    U, names = scores.transform(X), scores.get_feature_names_out()
    assert "coefficients[h,a][0,1]" in names
    assert "coefficients[y,h][0,0]" not in names
    given = model.parameters()
    index = np.arange(6)
    places = {name: index[model._place[name]] for name, _ in order}
    for u, name in zip(U.T, names):
        block, _, at = name.rpartition("[")
        at = [int(k) for k in at[:-1].split(",")]
        moved = []
        for sign in (-1, 1):
            new = {key: np.array(given[key]) for key in ("coefficients", "offsets")}
            new["covs"] = np.array(given["covs"])
            if block == "offsets":
                new["offsets"][at[0]] += sign * STEP
            elif block.startswith("covs"):
                own = places[block[5:-1]]
                i, j = divmod(at[0], len(own))
                for a, b in ((i, j), (j, i)):
                    new["covs"][own[a], own[b]] += 0.5 * sign * STEP
            else:
                child, parent = block[13:-1].split(",")
                i, j = places[child][at[0]], places[parent][at[1]]
                new["coefficients"][i, j] += sign * STEP
            other = LinearGaussianNetwork(order, **new, observed=model.observed)
            moved.append(other.log_likelihood(X))
        expected = (moved[1] - moved[0]) / (2 * STEP)
        np.testing.assert_allclose(u, expected, rtol=1e-5, atol=1e-5, err_msg=name)


def assert_scores_of_bounds(model, data, moved, size):
    """Differences of settled bounds, which are accurate to 1e-10 of their size."""
    U = FisherScores(model, representation="overcomplete").transform(data)
    assert U.shape[1] == size
    for k in range(size):
        step = np.zeros(size)
        step[k] = 1e-3
        expected = moved(step).lower_bound(data) - moved(-step).lower_bound(data)
        np.testing.assert_allclose(U[:, k], expected / 2e-3, rtol=1e-3, atol=2e-3)


def test_switching_systems(rng):
    systems = [random_lds(rng, 1, 1), random_lds(rng, 1, 1)]
    one = systems[0]
    model = SwitchingLDS(
        [0.3, 0.7],
        [[0.8, 0.2], [0.4, 0.6]],
        [s.transition for s in systems],
        [s.transition_cov for s in systems],
        one.observation,
        one.observation_cov,
        one.initial_mean,
        one.initial_cov,
        [s.transition_offset for s in systems],
        one.observation_offset,
    )
    names = ("start", "switching", "transition", "transition_offset")
    names += ("transition_cov", "observation", "observation_offset")
    names += ("observation_cov", "initial_mean", "initial_cov")
    old = [getattr(model, name) for name in names]

    def moved(step):
        parts = split(step, *(x.shape for x in old))
        new = {name: x + part for name, x, part in zip(names, old, parts)}
        new["start"] = softmax(old[0], parts[0])
        new["switching"] = softmax(old[1], parts[1])
        return SwitchingLDS(**new)

    data = model.sample(3, [1, 4, 6], rng)
    assert_scores_of_bounds(model, data, moved, sum(x.size for x in old))


@pytest.mark.parametrize("partly", [False, True])
def test_factorial_models(partly, rng):
    model = FactorialHMM(
        [[0.4, 0.6], [0.2, 0.5, 0.3]],
        [rng.dirichlet(np.ones(2), size=2), rng.dirichlet(np.ones(3), size=3)],
        [rng.normal(size=(2, 2)), rng.normal(size=(3, 2))],
        covariance(rng, 2) + np.eye(2),
    )
    shapes = []
    for pi, A, W in zip(model.start, model.transition, model.mean):
        shapes += [pi.shape, A.shape, W.shape]

    def moved(step):
        parts = split(step, *shapes, (2, 2))
        start = [softmax(x, p) for x, p in zip(model.start, parts[0::3])]
        rows = [softmax(x, p) for x, p in zip(model.transition, parts[1::3])]
        mean = [x + p for x, p in zip(model.mean, parts[2::3])]
        return FactorialHMM(
            start, rows, mean, model.cov + (parts[-1] + parts[-1].T) / 2
        )

    data = model.sample(3, [1, 4, 5], rng)
    data[1][2] = np.nan
    if partly:
        data[0][0, 1] = data[2][3:, 0] = data[2][1, 1] = np.nan
    assert_scores_of_bounds(model, data, moved, sum(map(np.prod, shapes)) + 4)


def test_zeros_have_no_score_and_the_rest_is_right(rng):
    model = random_hmm(rng, 3, 3, sparse=True)
    data = random_codes(rng, 5, 3)
    U = assert_scores(model, data)
    lost = np.r_[model.start, model.transition.ravel()] == 0
    np.testing.assert_array_equal(U[:, :12][:, lost], 0.0)
    names = FisherScores(model).get_feature_names_out()
    assert "start[0]" not in names  # a start that is certain has no parameter
    assert "transition[1,0]" not in names
    assert len(names) == FisherScores(model).transform(data).shape[1] == 0 + 3 + 6


def test_minimal_scores_of_matrices_are_slopes_of_both_equal_entries(rng):
    """One number moves (i, j) and (j, i) of a covariance, or of natural parameters."""
    model = random_lds(rng, 2, 2)
    X = model.sample(4, 5, rng)
    scores = FisherScores(model, representation="minimal")
    U, names = scores.transform(X), list(scores.get_feature_names_out())
    law = Gaussian(rng.normal(size=2), covariance(rng, 2))
    rows = law.sample(4, rng)
    one = FisherScores(law, representation="minimal")
    V, own = one.transform(rows), list(one.get_feature_names_out())
    for i, j in ((0, 0), (1, 0), (1, 1)):
        both = np.zeros((2, 2))
        both[i, j] = both[j, i] = STEP
        for name in ("transition_cov", "observation_cov", "initial_cov"):
            value = getattr(model, name)
            up, down = (
                LinearDynamicalSystem(**{**model.parameters(), name: value + step})
                for step in (both, -both)
            )
            slope = (up.log_likelihood(X) - down.log_likelihood(X)) / (2 * STEP)
            column = U[:, names.index(f"{name}[{2 * i + j}]")]
            scale = 1.0 + np.abs(slope).max()
            np.testing.assert_allclose(column, slope, atol=1e-5 * scale)
        step = np.concatenate([np.zeros(2), both.ravel()])
        up, down = moved_natural(law, step), moved_natural(law, -step)
        slope = (up.log_prob(rows) - down.log_prob(rows)) / (2 * STEP)
        column = V[:, own.index(f"natural_parameters[{2 + 2 * i + j}]")]
        np.testing.assert_allclose(column, slope, atol=1e-5 * (1 + abs(slope).max()))


def test_minimal_scores_determine_all_of_them(rng):
    """Both have the same kernel in the metric of the Fisher information."""
    chain = MarkovChain([0.3, 0.7], [[0.2, 0.8], [0.6, 0.4]])
    G, W = MAKERS["gaussian"](rng, ()), MAKERS["wishart"](rng, ())
    for model, X in (
        (G, G.sample(400, rng)),
        (W, W.sample(400, rng)),
        (chain, chain.sample(400, 6, rng)),
    ):
        U = FisherScores(model).transform(X)
        V = FisherScores(model, representation="overcomplete").transform(X)
        assert U.shape[1] < V.shape[1]
        F, G = U.T @ U / len(U), V.T @ V / len(V)
        rank = np.linalg.matrix_rank(G, tol=1e-9 * np.linalg.norm(G))
        assert rank == U.shape[1] == np.linalg.matrix_rank(F)
        expected = V @ np.linalg.pinv(G, rcond=1e-11, hermitian=True) @ V.T
        scale = np.abs(expected).max()
        found = U @ np.linalg.solve(F, U.T)
        error = 1e3 * np.finfo(float).eps * np.linalg.cond(F)
        assert np.abs(found - expected).max() < error * scale


@pytest.mark.parametrize("name", MAKERS)
def test_minimal_scores_of_a_family_are_as_many_as_are_independent(name, rng):
    P = MAKERS[name](rng, ())
    X = P.sample(400, rng)
    every = FisherScores(P, representation="overcomplete").transform(X)
    every /= np.maximum(every.std(axis=0), 1e-300)
    rank = np.linalg.matrix_rank(every.T @ every / len(X), tol=1e-8)
    assert FisherScores(P).transform(X).shape[1] == rank


def test_expected_scores_are_zero(rng):
    """Sum over all strings of three letters of p(x) U(x)."""
    model = random_hmm(rng, 2, 2)
    strings = list(np.ndindex(2, 2, 2))
    p = np.exp(model.log_likelihood(strings))
    U = FisherScores(model).transform(strings)
    np.testing.assert_allclose(p @ U, 0.0, atol=1e-14)


def test_gaussian_kernel_of_the_paper(rng):
    """With the exact information: a.b + ((a.b)^2 - a.a - b.b + D) / 2, whitened."""
    P = MAKERS["gaussian"](rng, ())
    X = P.sample(6, rng)
    scores = FisherScores(P, representation="minimal")
    U = scores.transform(X)
    names = scores.get_feature_names_out()
    assert len(names) == U.shape[1] == 9
    # exact information from all products of Gauss-Hermite nodes
    nodes, weights = np.polynomial.hermite_e.hermegauss(7)
    grid = np.stack(np.meshgrid(nodes, nodes, nodes), axis=-1).reshape(-1, 3)
    w = np.prod(np.stack(np.meshgrid(weights, weights, weights), -1), -1).ravel()
    V = scores.transform(P.mean + grid @ np.linalg.cholesky(P.cov).T)
    F = (V * (w / w.sum())[:, None]).T @ V
    K = fisher_kernel(U, information=0.5 * (F + F.T))
    a = np.linalg.solve(np.linalg.cholesky(P.cov), (X - P.mean).T).T
    dot = a @ a.T
    own = np.diag(dot)
    expected = dot + 0.5 * (dot**2 - own[:, None] - own + 3)
    np.testing.assert_allclose(K, expected, rtol=1e-8, atol=1e-8 * np.abs(K).max())


def test_threads_change_nothing(rng):
    model = random_hmm(rng, 3, 4)
    data = random_codes(rng, 20, 4)
    one = FisherScores(model, n_jobs=1).transform(data)
    np.testing.assert_array_equal(one, FisherScores(model, n_jobs=2).transform(data))


def test_in_a_pipeline_and_a_file(rng, tmp_path):
    laws = [MarkovChain([0.5, 0.5], [[p, 1 - p], [1 - p, p]]) for p in (0.8, 0.3)]
    X = [x for law in laws for x in law.sample(20, 30, rng)]
    y = np.repeat([0, 1], 20)
    scores = FisherScores(MarkovChain.fit(X, n_symbols=2))
    machine = make_pipeline(
        scores, FisherFeatures(ridge=0.01), MEDClassifier(kernel="linear")
    )
    machine = clone(machine).fit(X, y)
    assert machine.score(X, y) > 0.9
    save(machine, tmp_path / "machine.npz")
    again = load(tmp_path / "machine.npz")
    np.testing.assert_array_equal(
        machine.decision_function(X), again.decision_function(X)
    )


STATES = {"alphabet": "AC", "n_states": 2, "tol": 1e-4, "random_state": 0}
CLASSES = [
    (MarkovChain, {"alphabet": "AC"}, "strings"),
    (CategoricalHMM, STATES, "strings"),
    (Mixture, {"n_components": 2, "random_state": 0}, "rows"),
    (Gaussian, None, "rows"),
    (Exponential, None, "rows"),  # independent columns
    (Exponential, None, "numbers"),
]


@pytest.mark.parametrize("cls, params, kind", CLASSES)
def test_a_named_model_is_fitted_to_the_training_data(cls, params, kind, rng, tmp_path):
    X = rng.exponential(size=(40, 2))
    if kind == "strings":
        X = ["".join(row) for row in rng.choice(list("AC"), size=(40, 9))]
    elif kind == "numbers":
        X = X[:, 0]
    by_class = FisherScores(cls, model_params=params).fit(X[:30])
    scores = FisherScores(cls.__name__, model_params=params)
    with pytest.raises(NotFittedError):
        scores.transform(X)
    scores = clone(scores).fit(X[:30])
    if cls is Exponential and kind == "rows":
        fitted = cls.fit(np.ascontiguousarray(X[:30].T))
    else:
        fitted = cls.fit(X[:30], **(params or {}))
    expected = FisherScores(fitted).fit().transform(X[30:])
    found = scores.transform(X[30:])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(by_class.transform(X[30:]), found)
    save(scores, tmp_path / "scores.npz")
    again = load(tmp_path / "scores.npz")
    np.testing.assert_array_equal(again.transform(X[30:]), found)
    assert len(again.get_feature_names_out()) == expected.shape[1]


def test_a_class_is_fitted_in_every_fold(rng):
    laws = [MarkovChain([0.5, 0.5], [[p, 1 - p], [1 - p, p]]) for p in (0.8, 0.3)]
    X = [x for law in laws for x in law.sample(20, 30, rng)]
    y = np.repeat([0, 1], 20)
    machine = make_pipeline(
        FisherScores(MarkovChain, model_params={"n_symbols": 2}),
        FisherFeatures(ridge=0.01),
        MEDClassifier(kernel="linear"),
    )
    assert cross_val_score(machine, X, y, cv=4).mean() > 0.8


def test_classes_that_are_not_fitted(rng):
    X = rng.normal(size=(9, 2))
    refused(lambda: FisherScores(MEDClassifier).fit(X), "MEDClassifier.*without scores")
    refused(
        lambda: FisherScores(Poisson(1.0), model_params={"weights": None}).fit(),
        "model_params are arguments of a fit",
    )
    scores = FisherScores(Gaussian).fit(X)
    refused(lambda: scores.fit(X * np.nan), "nan")
    with pytest.raises(NotFittedError):
        scores.transform(X)


def test_refusals(rng):
    refused(lambda: FisherScores(Poisson).fit(), r"fit it first, by Poisson\.fit\.")
    refused(lambda: FisherScores("mixture").fit(), "'mixture'.*Mixture")
    network = LinearGaussianNetwork(
        ["a", "b"], {("b", "a"): 1.0}, 0.0, {"a": 0.0, "b": 1.0}
    )
    refused(lambda: FisherScores(network).fit(), "covs.*'a'.*singular")
    refused(
        lambda: FisherScores(Poisson(1.0), representation="full").fit(),
        "representation='full'",
    )
    refused(lambda: FisherScores(Poisson([[1.0]])).fit(), r"\(1, 1\).*model\[0\]")
    refused(
        lambda: FisherScores(MAKERS["gaussian"](rng, (2,))).fit(), r"\(2,\).*model\[0\]"
    )
    refused(
        lambda: FisherScores(Bernoulli([0.5, 0.5])).transform([[0, 1, 1]]),
        r"shape \(1, 3\).*\(n_samples, 2\)",
    )
    never = MarkovChain([1.0, 0.0], [[0.5, 0.5], [0.5, 0.5]])
    refused(lambda: FisherScores(never).transform([[0], [1, 0]]), "datum 1.*smoothing")
    refused(lambda: FisherScores(Categorical([1.0, 0.0])).transform([0, 1]), "datum 1")
    fixed = random_lds(rng, singular=True)
    refused(lambda: FisherScores(fixed).fit(), "transition_cov.*singular.*ridge")
    refused(lambda: FisherScores(random_lds(rng, steps=3)).fit(), "vary with time")
