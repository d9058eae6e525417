"""Candidates as drawn: the table, the choices, the rejected ones."""

import numpy as np
import pytest
from drawings import render

from maxent import LMEGaussianMixture, MEDClassifier
from maxent.displays import CandidatesDisplay


def test_points_are_the_candidates(rng, pyplot):
    X = rng.normal(size=(30, 2))
    X[:10] += 4.0
    model = LMEGaussianMixture(2, n_init=12, random_state=0).fit(X)
    display = CandidatesDisplay.from_estimator(model)
    table = model.candidates_
    ok = table["reason"] == ""
    x, y = display.points_["admitted"].get_data()
    np.testing.assert_array_equal(x, table["log_likelihood"][ok])
    np.testing.assert_array_equal(y, table["entropy"][ok])
    assert display.points_["entropy"].get_ydata()[0] == y.max()
    assert display.points_["likelihood"].get_xdata()[0] == x.max()
    render(display)
    ax = pyplot.subplots()[1]
    assert display.plot(ax).ax_ is ax


def test_rejected_candidates_are_crossed():
    reason = np.array(["", "unbounded", "independent"])
    H = np.array([1.0, -np.inf, 3.0])
    chosen = {"entropy": 0, "likelihood": 0}
    display = CandidatesDisplay(np.arange(3.0), H, reason, chosen).plot()
    assert display.points_["rejected"].get_marker() == "x"
    assert len(display.points_["rejected"].get_xdata()) == 1  # the other is infinite


def test_an_estimator_without_candidates_is_refused():
    with pytest.raises(
        ValueError, match=r"estimator=MEDClassifier\(\) must be .* with candidates_"
    ):
        CandidatesDisplay.from_estimator(MEDClassifier())
