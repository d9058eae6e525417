"""Estimators that hold a model: their methods are those of the model."""

import numpy as np
import pandas as pd
import pytest
from refusals import refused
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxent
from maxent import HiddenMarkovEstimator, MixtureDensity
from maxent.families import Exponential, Poisson
from maxent.models import CategoricalHMM, GaussianHMM, HiddenMarkovModel, Mixture

STAY = [[0.9, 0.1], [0.1, 0.9]]
counts = HiddenMarkovModel([0.5, 0.5], STAY, Poisson([2.0, 30.0]))
vectors = GaussianHMM([0.5, 0.5], STAY, [[0.0], [9.0]], [1.0, 1.0])
letters = CategoricalHMM([0.5, 0.5], STAY, [[0.9, 0.1], [0.1, 0.9]], "AB")
fast = {"tol": 1e-4, "n_init": 1, "random_state": 0}


def groups(rng):
    return np.concatenate([rng.normal(size=(30, 2)), 9.0 + rng.normal(size=(30, 2))])


def test_a_mixture_of_rows_is_the_model(rng):
    X, w = groups(rng), rng.uniform(0.5, 2.0, size=60)
    X[3, 1] = np.nan
    machine = MixtureDensity(2, smoothing=1.0, **fast).fit(X, sample_weight=w)
    model = Mixture.fit(X, w, n_components=2, smoothing=1.0, **fast)
    assert machine.model_ == model and machine.n_iter_ == model.fit_result.n_iter
    assert machine.converged_ and len(machine.objective_history_) > machine.n_iter_
    np.testing.assert_array_equal(machine.score_samples(X), model.log_prob(X))
    assert machine.score(X) == model.log_prob(X).mean()
    np.testing.assert_array_equal(machine.predict_proba(X), model.posterior(X))
    labels = model.posterior(X).argmax(axis=1)
    np.testing.assert_array_equal(machine.predict(X), labels)
    again = clone(machine).fit_predict(X, sample_weight=w)
    np.testing.assert_array_equal(again, labels)
    assert machine.bic(X) == model.bic(X) and machine.aic(X) == model.aic(X)
    drawn, parts = machine.sample(5, random_state=1)
    rows, components = model.sample(5, 1, return_components=True)
    np.testing.assert_array_equal(drawn, rows)
    np.testing.assert_array_equal(parts, components)


@pytest.mark.parametrize("family", ["Poisson", Poisson, "Exponential", Exponential])
def test_families_of_numbers(family, rng):
    X = rng.poisson([[3.0]] * 40 + [[40.0]] * 40) + 1.0
    machine = MixtureDensity(2, family, **fast).fit(pd.DataFrame(X, columns=["n"]))
    assert list(machine.feature_names_in_) == ["n"]
    assert machine.sample(3)[0].shape == (3, 1)
    np.testing.assert_array_equal(
        machine.score_samples(pd.DataFrame(X, columns=["n"])),
        machine.model_.log_prob(X[:, 0]),
    )
    two = np.c_[X, X[::-1]]
    both = MixtureDensity(2, family, **fast).fit(two)
    kind = Poisson if "Poisson" in str(family) else Exponential
    assert both.model_ == Mixture.fit(two, n_components=2, family=kind, **fast)
    refused(lambda: MixtureDensity(2, {0: family}).fit(two), "family=.* Mixture")
    refused(lambda: MixtureDensity(2, family).fit([[np.nan], [1.0]]), "NaN")


def test_pipelines_and_grids_of_rows(rng):
    X = groups(rng)
    grid = {"mixturedensity__n_components": [1, 2]}
    machine = make_pipeline(StandardScaler(), MixtureDensity(**fast))
    search = GridSearchCV(machine, grid, cv=3).fit(rng.permutation(X))
    assert search.best_params_ == {"mixturedensity__n_components": 2}
    assert len(set(search.predict(X))) == 2


@pytest.mark.parametrize(
    "source, options, cls, extra",
    [
        (letters, {"alphabet": "AB"}, CategoricalHMM, {"alphabet": "AB"}),
        (vectors, {}, GaussianHMM, {}),
        (
            vectors,
            {"family": "DiagonalGaussian"},
            GaussianHMM,
            {"covariance_type": "diagonal"},
        ),
        (counts, {"family": Poisson}, HiddenMarkovModel, {"family": Poisson}),
        (
            counts,
            {"family": "Poisson", "model_params": {"zeta": 0.2}},
            HiddenMarkovModel,
            {"family": Poisson, "zeta": 0.2},
        ),
    ],
)
def test_a_hidden_markov_estimator_is_the_model(source, options, cls, extra, rng):
    X = source.sample(4, [20, 9, 30, 12], rng)
    w = [1.0, 2.0, 0.5, 1.0]
    machine = HiddenMarkovEstimator(2, **options, **fast).fit(X, sample_weight=w)
    model = cls.fit(X, 2, weights=w, **fast, **extra)
    assert machine.model_ == model and machine.n_iter_ == model.fit_result.n_iter
    np.testing.assert_array_equal(machine.score_samples(X), model.log_likelihood(X))
    assert machine.score(X) == model.log_likelihood(X).mean()
    for ours, theirs in (
        (machine.predict(X), model.viterbi(X)[0]),
        (machine.predict_proba(X), model.posterior(X)),
    ):
        assert all(map(np.array_equal, ours, theirs))
    assert machine.bic(X) == model.bic(X) and machine.aic(X) == model.aic(X)
    drawn = machine.sample(2, 7, random_state=3)
    assert all(map(np.array_equal, drawn, model.sample(2, 7, 3)))
    if cls is not CategoricalHMM:
        cut = clone(machine).fit(np.concatenate(X), None, [len(x) for x in X], w)
        assert cut.model_ == model


@pytest.mark.parametrize(
    "machine, make",
    [
        (MixtureDensity(2, **fast), groups),
        (MixtureDensity(2, "Poisson", **fast), lambda rng: rng.poisson(5.0, (40, 1))),
        (HiddenMarkovEstimator(alphabet="AB", **fast), letters),
        (HiddenMarkovEstimator(2, "Poisson", **fast), counts),
    ],
)
def test_batches_of_partial_fits_are_updates(machine, make, rng):
    batches = [make(rng) if callable(make) else make.sample(4, 20, rng) for _ in "abc"]
    weights = [rng.uniform(0.5, 2.0, size=len(X)) for X in batches]
    whole = clone(machine).fit(batches[0], sample_weight=weights[0])
    model, machine = whole.model_, clone(machine)
    for step, (X, w) in enumerate(zip(batches, weights)):
        machine.partial_fit(X, sample_weight=w)
        if step:
            rows = X[:, 0] if make not in (groups, letters, counts) else X
            model = model.update(rows, weights=w, smoothing=machine.smoothing)
        assert machine.model_ == model
        assert machine.n_iter_ == whole.n_iter_ + step
        assert machine.converged_ == (whole.converged_ and not step)
    before = machine.model_
    with pytest.raises(ValueError):
        machine.partial_fit(batches[0], sample_weight=np.zeros(len(batches[0])))
    assert machine.model_ is before
    assert machine.fit(batches[0], sample_weight=weights[0]).model_ == whole.model_


def test_batches_have_the_columns_of_the_first(rng):
    X = groups(rng)
    machine = MixtureDensity(2, **fast).partial_fit(X)
    refused(lambda: machine.partial_fit(X[:, :1]), "1 features")
    machine = MixtureDensity(2, **fast).partial_fit(pd.DataFrame(X, columns=["a", "b"]))
    with pytest.raises(ValueError, match="feature names"):
        machine.partial_fit(pd.DataFrame(X, columns=["b", "a"]))
    vector = HiddenMarkovEstimator(2, **fast).partial_fit([X])
    refused(lambda: vector.partial_fit([X[:, :1]]), "features|columns|shape")


def test_grids_of_sequences(rng):
    X = vectors.sample(8, 25, rng)
    search = GridSearchCV(
        HiddenMarkovEstimator(family="SphericalGaussian", **fast),
        {"n_states": [1, 2]},
        cv=2,
    ).fit(X)
    assert search.best_params_ == {"n_states": 2}
    assert len(search.predict(X)) == 8
    scores = cross_val_score(HiddenMarkovEstimator(**fast), X, cv=4)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize(
    "machine, make",
    [
        (MixtureDensity(2, **fast), groups),
        (HiddenMarkovEstimator(alphabet="AB", **fast), letters),
        (HiddenMarkovEstimator(2, "Poisson", **fast), counts),
    ],
)
def test_estimators_come_back_from_files(machine, make, rng, tmp_path):
    X = make(rng) if callable(make) else make.sample(3, 20, rng)
    machine = clone(machine)
    with pytest.raises(NotFittedError):
        machine.predict(X)
    machine.fit(X)
    maxent.save(machine, tmp_path / "model.npz")
    again = maxent.load(tmp_path / "model.npz")
    assert again.model_ == machine.model_ and again.n_iter_ == machine.n_iter_
    np.testing.assert_array_equal(again.score_samples(X), machine.score_samples(X))
    assert again.partial_fit(X).model_ == machine.partial_fit(X).model_


def test_wrong_families_are_refused():
    for machine in (MixtureDensity, HiddenMarkovEstimator):
        refused(
            lambda machine=machine: machine(2, "Gausian").fit(np.ones((4, 1))),
            "family='Gausian' is no known family",
        )
    refused(
        lambda: HiddenMarkovEstimator(2, "Gaussian", alphabet="AB").fit(["AB"]),
        "alphabet='AB' belongs to family='Categorical'",
    )
