"""The display of a sequence with its state posteriors."""

import numpy as np
import pytest
from drawings import render
from models.sequence_cases import random_gaussian_hmm, random_hmm
from refusals import refused

from maxent.displays import StatePathDisplay
from maxent.models import CategoricalHMM


def test_bands_add_up_to_one_and_the_path_is_the_most_likely(rng):
    model = random_hmm(rng, 3, 4)
    x = model.sample(1, 40, rng)[0]
    display = StatePathDisplay.from_model(model, x, state_names="abc")
    assert len(display.bands_) == 3
    np.testing.assert_array_equal(display.path, model.viterbi([x])[0][0])
    np.testing.assert_allclose(display.posterior, model.posterior([x])[0])
    runs = 1 + np.count_nonzero(np.diff(display.path))
    assert len(display.path_line_) == runs
    heights = display.bands_[-1].get_data().values
    np.testing.assert_allclose(heights, 1.0)
    assert [t.get_text() for t in display.legend_.get_texts()] == list("abc")
    render(display)


@pytest.mark.parametrize("length", [12, 200])
def test_letters_values_and_nothing_are_drawn(length, rng, pyplot):
    model = CategoricalHMM(
        [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], [[0.8, 0.2], [0.2, 0.8]], "AC"
    )
    render(StatePathDisplay.from_model(model, model.sample(1, length, rng)[0]))
    gaussian = random_gaussian_hmm(rng, 7, 2)
    x = gaussian.sample(1, length, rng)[0]
    _, axes = pyplot.subplots(2)
    render(StatePathDisplay.from_model(gaussian, x, viterbi=False, ax=axes))
    display = StatePathDisplay(gaussian.posterior([x])[0]).plot()
    assert display.path_line_ == []
    render(display)


@pytest.mark.parametrize(
    "call, match",
    [
        (lambda: StatePathDisplay([0.5]), "posterior has shape"),
        (lambda: StatePathDisplay([[0.5, 0.4]]), "sums to 0.9"),
        (lambda: StatePathDisplay([[0.5, 0.5]], path=[2]), "state 2"),
        (lambda: StatePathDisplay([[0.5, 0.5]], path=[0.0]), "path has shape"),
        (lambda: StatePathDisplay([[0.5, 0.5]], sequence="AB"), "sequence has 2"),
        (lambda: StatePathDisplay([[0.5, 0.5]], state_names="a"), "state_names has 1"),
        (lambda: StatePathDisplay.from_model(3, "AB"), "model=3"),
    ],
)
def test_bad_input_is_named(call, match):
    refused(call, match)
