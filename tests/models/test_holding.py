"""Parameters that stay, pseudo-counts as arrays, and states that are known."""

import numpy as np
import pytest
from refusals import refused

from maxent.families import Gaussian, Poisson
from maxent.models import CategoricalHMM, GaussianHMM, HiddenMarkovModel, Mixture

MOVES = [[0.95, 0.05], [0.1, 0.9]]
GAUSSIANS = {
    "full": [[[1.0, 0.4], [0.4, 1.0]], [[2.0, 0.0], [0.0, 0.5]]],
    "tied": [[[1.0, 0.4], [0.4, 1.0]]] * 2,
    "diagonal": [[1.0, 2.0], [2.0, 0.5]],
    "spherical": [1.0, 2.0],
}
LETTERS = CategoricalHMM([0.5, 0.5], MOVES, [[0.8, 0.1, 0.1], [0.2, 0.2, 0.6]])
COUNTS = HiddenMarkovModel([0.5, 0.5], MOVES, Poisson([1.0, 8.0]))


def gaussian(kind):
    mean = [[0.0, 0.0], [2.0, 1.0]]
    return GaussianHMM([0.5, 0.5], MOVES, mean, GAUSSIANS[kind], kind == "tied")


def parameter(model, name):
    batch = model.components if isinstance(model, Mixture) else model.emission
    if name in ("emission", "components"):
        return batch._arrays()
    if name in ("mean", "cov"):
        return [batch.mean if name == "mean" else batch._covariances()]
    return [getattr(model, name)]


def assert_rises(model):
    trace = model.fit_result.objective_history
    assert np.diff(trace).min(initial=0.0) >= -1e-9 * np.abs(trace).max()


CASES = [
    *((LETTERS, name) for name in ("start", "transition", "emission")),
    *((COUNTS, name) for name in ("start", "transition", "emission")),
    *((gaussian(k), name) for k in GAUSSIANS for name in ("mean", "cov", "emission")),
]


@pytest.mark.parametrize(
    "init, name", CASES, ids=[f"{type(m).__name__}-{name}" for m, name in CASES]
)
def test_what_is_held_stays_and_the_rest_rises(init, name, rng):
    data = init.sample(4, 40, rng)
    model = type(init).fit(data, init=init, fixed=name)
    for old, new in zip(parameter(init, name), parameter(model, name), strict=True):
        np.testing.assert_array_equal(new, old)
    assert_rises(model)
    assert model.fit_result.n_iter > 0
    # of a mask, one entry stays
    shape = init._holdable()[name]
    mask = np.zeros(shape, dtype=bool)
    mask[(0,) * len(shape)] = True
    if name == "cov" and getattr(init, "tied", False):
        return
    part = type(init).fit(data, init=init, fixed={name: mask})
    assert_rises(part)
    for old, new in zip(parameter(init, name), parameter(part, name), strict=True):
        at = mask if new.shape[: mask.ndim] == mask.shape else mask[0]
        np.testing.assert_allclose(new[at], old[at], rtol=1e-14)
        assert part != init
    # more freedom, more likelihood
    ends = [one.fit_result.objective for one in (model, part)]
    assert ends[1] >= ends[0] - 1e-6 * abs(ends[0]) or name == "mean"


def test_held_entries_leave_the_best_of_the_others(rng):
    """Against a grid over the one entry of a row that is free."""
    data = LETTERS.sample(3, 25, rng)
    mask = np.array([[True, False, False], [True, True, True]])
    model = CategoricalHMM.fit(
        data,
        init=LETTERS,
        fixed={"emission": mask, "start": True, "transition": True},
        smoothing=0.0,
        tol=1e-13,
    )
    grid = np.linspace(1e-6, 0.2 - 1e-6, 2001)
    value = [
        CategoricalHMM(LETTERS.start, MOVES, [[0.8, p, 0.2 - p], [0.2, 0.2, 0.6]])
        .log_likelihood(data)
        .sum()
        for p in grid
    ]
    best = grid[np.argmax(value)]
    assert model.emission.prob[0, 1] == pytest.approx(best, abs=2e-4)
    np.testing.assert_array_equal(model.emission.prob[1], [0.2, 0.2, 0.6])


def test_the_scatter_about_a_held_mean(rng):
    X = rng.normal([1.0, -2.0], [1.0, 3.0], (200, 2))
    init = Mixture([1.0], Gaussian([[0.0, 0.0]], [np.eye(2)]))
    model = Mixture.fit(X, init=init, fixed="mean", smoothing=0.0)
    np.testing.assert_allclose(model.components.cov[0], X.T @ X / 200, rtol=1e-12)
    free = Mixture.fit(X, init=init, fixed="cov", smoothing=0.0)
    np.testing.assert_allclose(free.components.mean[0], X.mean(axis=0), rtol=1e-12)


def test_parts_of_mixtures_stay(rng):
    X = np.vstack([rng.normal(m, 1.0, (60, 2)) for m in (0.0, 4.0)])
    init = Mixture([0.4, 0.6], Gaussian([[0.0, 0.0], [3.0, 3.0]], np.eye(2)))
    for name in ("weights", "components", "mean", "cov"):
        model = Mixture.fit(X, init=init, fixed=name)
        for old, new in zip(parameter(init, name), parameter(model, name), strict=True):
            np.testing.assert_array_equal(new, old)
        assert_rises(model)
    refused(lambda: Mixture.fit(X, fixed="mean"), "give it by init=")
    counts = Mixture([0.5, 0.5], Poisson([1.0, 5.0]))
    x = counts.sample(30, rng)
    refused(lambda: Mixture.fit(x, init=counts, fixed="mean"), "what can stay is")


def test_all_states_known_is_counting(rng):
    data, states = LETTERS.sample(6, 30, rng, return_states=True)
    data[0][3] = -1
    model = CategoricalHMM.fit(data, 2, states=states, random_state=0)
    start, moves, shown = np.zeros(2), np.zeros((2, 2)), np.zeros((2, 3))
    for x, z in zip(data, states):
        start[z[0]] += 1
        np.add.at(moves, (z[:-1], z[1:]), 1)
        np.add.at(shown, (z[x >= 0], x[x >= 0]), 1)
    for table, found in (
        (start, model.start),
        (moves, model.transition),
        (shown, model.emission.prob),
    ):
        table = table + 0.01
        np.testing.assert_allclose(found, table / table.sum(-1, keepdims=True))


@pytest.mark.parametrize("init", [LETTERS, COUNTS, gaussian("full")])
def test_known_states_number_the_states(init, rng):
    data, states = init.sample(4, 60, rng, return_states=True)
    known = [np.where(rng.random(60) < 0.3, z, -1) for z in states]
    if init is not LETTERS:
        data[0] = data[0].astype(float)
        data[0][2] = np.nan  # nothing was seen, and the state is known
        known[0][2] = states[0][2]
    family = {} if init is not COUNTS else {"family": Poisson}
    model = type(init).fit(data, 2, states=known, random_state=0, **family)
    assert_rises(model)
    shares = model.posterior(data, states=known)
    for own, z in zip(shares, known):
        np.testing.assert_array_equal(own[z >= 0].argmax(axis=1), z[z >= 0])
        assert own[z >= 0].max(axis=1).min() > 1 - 1e-12
    agree = np.concatenate(model.viterbi(data)[0]) == np.concatenate(states)
    assert agree.mean() > 0.7


def test_posteriors_of_known_states_are_those_of_enumeration():
    x, known = [0, 2, 1, 2], np.array([-1, 1, -1, 0])
    share = np.zeros((4, 2))
    for path in np.ndindex(2, 2, 2, 2):
        if path[1] != 1 or path[3] != 0:
            continue
        value = LETTERS.start[path[0]] * LETTERS.emission.prob[path[0], x[0]]
        for t in range(1, 4):
            value *= LETTERS.transition[path[t - 1], path[t]]
            value *= LETTERS.emission.prob[path[t], x[t]]
        share[np.arange(4), path] += value
    share /= share.sum(axis=1, keepdims=True)
    found = LETTERS.posterior([x], states=known)[0]
    np.testing.assert_allclose(found, share, rtol=1e-12)


def test_pseudo_counts_are_arrays(rng):
    data = LETTERS.sample(5, 40, rng)
    counts = {"transition": 1 + 500 * np.eye(2), "start": [3.0, 0.0]}
    model = CategoricalHMM.fit(data, 2, smoothing=counts, random_state=0)
    assert_rises(model)
    assert np.diag(model.transition).min() > 0.95
    same = CategoricalHMM.fit(
        data,
        2,
        smoothing=dict.fromkeys(["start", "transition", "emission"], 0.3),
        random_state=0,
    )
    assert same == CategoricalHMM.fit(data, 2, smoothing=0.3, random_state=0)


@pytest.mark.parametrize(
    "options, match",
    [
        ({"fixed": "start"}, "give it by init="),
        ({"init": LETTERS, "fixed": "mean"}, "what can stay is start, transition"),
        ({"init": LETTERS, "fixed": {"start": [1, 0]}}, r"boolean array of shape \(2,"),
        ({"n_states": 2, "smoothing": {"start": np.ones(3)}}, r"shape \(3,\)"),
        ({"init": LETTERS, "smoothing": {"emission": np.ones(3)}}, r"shape \(2, 3\)"),
        ({"n_states": 2, "smoothing": {"begin": 1.0}}, "its names are start"),
        ({"n_states": 2, "smoothing": {"start": -1.0}}, r"smoothing\['start'\]"),
        ({"n_states": 2, "states": [[0, 1]]}, "one integer for each step"),
        ({"n_states": 2, "states": [[0, 1, 5], [0, 0]]}, "states has the state 5"),
        ({"init": LETTERS, "states": [[0, 1, 5], [0, 0]]}, r"states\[0\]\[2\]=5"),
        ({"n_states": 2, "states": [[0, 0.5, 1], [0, 0]]}, r"states\[0\]\[1\]=0.5"),
    ],
)
def test_rules_that_do_not_suit_are_refused(options, match):
    refused(lambda: CategoricalHMM.fit([[0, 1, 2], [2, 0]], **options), match)
