"""Displays of latent models: likelihood over E steps, scores over sample sizes."""

import numpy as np
import pytest
from drawings import render
from refusals import refusals
from sklearn.exceptions import ConvergenceWarning

from maxent import LMEGaussianMixture, MEDClassifier
from maxent.displays import ConvergenceDisplay, SampleSizeDisplay
from maxent.families import Gaussian
from maxent.latent import FiniteLatentModel, LatentMaxEnt, em_is


def coins():
    f = np.zeros((4, 2, 3))
    f[:, 0, 0] = 1.0
    f[:, 0, 1] = f[:, 1, 2] = np.arange(4.0)
    return FiniteLatentModel(f), np.repeat([0, 1, 2, 3], [30, 20, 20, 30])


def test_lines_are_the_histories_of_the_runs(rng, pyplot):
    model, y = coins()
    start = rng.normal(size=3)
    display = ConvergenceDisplay.from_model(
        model, y, start, methods=("gis", "iis"), inner=(1, 3), n_steps=15, sigma2=50.0
    )
    names = ["GIS, K = 1", "GIS, K = 3", "IIS, K = 1", "IIS, K = 3", "L-BFGS on L"]
    assert list(display.lines_) == names
    for name, values in display.histories.items():
        x, drawn = display.lines_[name].get_data()
        np.testing.assert_array_equal(x, np.arange(len(values)) + 1)
        np.testing.assert_array_equal(drawn, values)
        # one start, and no run falls: rounding of a sum over four values is below this
        assert values[0] == display.histories[names[0]][0]
        assert np.diff(values).min() >= -1e-13
        assert len(values) <= 16
    with pytest.warns(ConvergenceWarning):
        last = em_is(model, y, start, inner=3, sigma2=50.0, tol=1e-14, max_iter=15)
    assert display.histories["IIS, K = 3"][15] == last.objective
    render(display)
    ax = pyplot.subplots()[1]
    assert display.plot(ax, lw=3).ax_ is ax
    assert display.lines_["IIS, K = 1"].get_linewidth() == 3


def test_weights_stay_within_the_bound(rng):
    model, y = coins()
    free, near = (
        ConvergenceDisplay.from_model(model, y, np.zeros(3) + 0.1, bound=b, n_steps=30)
        for b in (np.inf, 0.2)
    )
    for name, values in near.histories.items():
        assert values[-1] <= free.histories[name].max() + 1e-12


def test_lines_of_estimators_are_their_histories(pyplot):
    model, y = coins()
    fits = {
        str(k): LatentMaxEnt(model, 3, inner=k, random_state=0).fit(y) for k in (1, 4)
    }
    display = ConvergenceDisplay.from_estimators(fits)
    for name, fit in fits.items():
        drawn = display.lines_[name].get_ydata()
        np.testing.assert_array_equal(drawn, fit.objective_history_)


def test_scores_are_those_of_both_choices(rng, pyplot):
    truth = Gaussian([0.0, 1.0], [[2.0, 0.0], [0.0, 1.0]])
    display = SampleSizeDisplay.from_estimator(
        LMEGaussianMixture(2, n_init=4),
        truth.sample,
        [40, 80],
        log_prob=truth.log_prob,
        n_trials=3,
        n_test=200,
        random_state=1,
    )
    assert set(display.scores) == {"entropy", "likelihood"}
    for name, values in display.scores.items():
        assert values.shape == (3, 2)
        np.testing.assert_allclose(display.means[name], values.mean(axis=0))
        error = values.std(axis=0, ddof=1) / np.sqrt(3)
        np.testing.assert_allclose(display.errors[name], error)
    assert "divergence" in display.ax_.get_ylabel()
    render(display)
    ax = pyplot.subplots()[1]
    assert display.plot(ax).ax_ is ax


def test_trials_without_a_model_are_left_out():
    scores = {"a": [[1.0, np.nan], [2.0, 4.0]], "b": [[40.0, 50.0], [40.0, 50.0]]}
    display = SampleSizeDisplay([10, 20], scores).plot()
    np.testing.assert_array_equal(display.means["a"], [1.5, 4.0])
    assert display.errors["a"][0] == 0.5
    assert display.ax_.get_yscale() == "log"


def test_no_admissible_candidate_is_a_missing_trial():
    X = np.tile([[0.0], [1.0]], (50, 1))  # two values: components vanish on them
    display = SampleSizeDisplay.from_estimator(
        LMEGaussianMixture(2, n_init=2, mi_tol=1e9),
        lambda n, rng: X[:n],
        [10],
        n_trials=2,
        n_test=10,
    )
    assert np.isnan(display.means["entropy"]).all()


test_bad_input_is_named = refusals(
    [
        (lambda: ConvergenceDisplay([1.0]), "must be a dict from names"),
        (lambda: ConvergenceDisplay({}), "must be a dict from names"),
        (lambda: ConvergenceDisplay({"a": [[1.0]]}), "histories['a'] has shape (1, 1)"),
        (
            lambda: ConvergenceDisplay.from_model(*coins(), [0.0]),
            "lam0 has shape (1,); expected (3,)",
        ),
        (
            lambda: ConvergenceDisplay.from_model(*coins(), np.zeros(3), methods="em"),
            "methods='e' is not known",
        ),
        (lambda: SampleSizeDisplay([2, 1], {}), "must be counts that increase"),
        (lambda: SampleSizeDisplay([1], {}), "must be a dict from names to arrays"),
        (lambda: SampleSizeDisplay([1], {"a": [1.0]}), "scores['a'] has shape (1,)"),
        (
            lambda: SampleSizeDisplay.from_estimator(MEDClassifier(), None, [1]),
            "estimator=MEDClassifier() must be an estimator with candidates",
        ),
    ],
    literal=True,
)
