"""The display of a sequence with its state posteriors."""

import numpy as np
import pytest
from drawings import render
from models.sequence_cases import random_gaussian_hmm, random_hmm
from models.state_space_cases import random_factorial, random_switching
from refusals import refusals

from maxent.displays import StatePathDisplay
from maxent.models import CategoricalHMM

HALF = [[0.5, 0.5]]


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


def test_regimes_begin_with_the_second_step(rng):
    model = random_switching(rng, 3)
    x = model.sample(1, 30, rng)[0]
    display = StatePathDisplay.from_model(model, x)
    np.testing.assert_array_equal(display.path, model.viterbi([x])[0][0])
    np.testing.assert_allclose(display.posterior, model.posterior([x])[0].regimes)
    edges = display.bands_[0].get_data().edges
    np.testing.assert_array_equal(edges[[0, -1]], [0.5, 29.5])
    assert display.path_line_[0].get_xdata()[0] == 0.5
    assert display.path_line_[-1].get_xdata()[1] == 29.5
    assert len(display.ax_[0].lines[0].get_xdata()) == 30
    render(display)
    with pytest.raises(ValueError, match="sequence has one step"):
        StatePathDisplay.from_model(model, x[:1])


def test_chains_stand_below_one_another(rng, pyplot):
    model = random_factorial(rng, (2, 3))
    x = model.sample(1, 30, rng)[0]
    display = StatePathDisplay.from_model(model, x, state_names=["ab", "xyz"])
    assert len(display.ax_) == 3 and len(display.bands_) == 5
    np.testing.assert_array_equal(display.path, model.viterbi([x])[0][0])
    for found, expected in zip(display.posterior, model.posterior([x])[0]):
        np.testing.assert_array_equal(found, expected)
    runs = sum(1 + np.count_nonzero(np.diff(own)) for own in display.path.T)
    assert len(display.path_line_) == runs
    names = [[t.get_text() for t in one.get_texts()] for one in display.legend_]
    assert names == [list("ab"), list("xyz")]
    render(display)
    _, axes = pyplot.subplots(3)
    render(StatePathDisplay.from_model(model, x, viterbi=False, ax=axes))


test_bad_input_is_named = refusals(
    [
        (lambda: StatePathDisplay([0.5]), "posterior has shape"),
        (lambda: StatePathDisplay([[0.5, 0.4]]), "sums to 0.9"),
        (lambda: StatePathDisplay([[0.5, 0.5]], path=[2]), "state 2"),
        (lambda: StatePathDisplay([[0.5, 0.5]], path=[0.0]), "path has shape"),
        (lambda: StatePathDisplay([[0.5, 0.5]], sequence="ABC"), "sequence has 3"),
        (lambda: StatePathDisplay([[0.5, 0.5]], state_names="a"), "state_names has 1"),
        (lambda: StatePathDisplay([HALF, HALF], path=[0, 1]), "path has shape"),
        (lambda: StatePathDisplay([HALF, HALF], state_names="a"), "1 entries for 2"),
        (lambda: StatePathDisplay([HALF, HALF * 2]), r"posterior\[1\] has 2 rows"),
        (lambda: StatePathDisplay([HALF, [[0.5, 0.4]]]), r"posterior\[1\]\[0\] sums"),
        (lambda: StatePathDisplay.from_model(3, "AB"), "model=3"),
    ]
)
