"""Displays of min-entropy models: what is drawn is what the models say."""

import warnings

import numpy as np
import pytest
from drawings import render
from refusals import refusals

from maxent import MEDClassifier
from maxent.displays import (
    AlphaPathDisplay,
    ConvergenceDisplay,
    HiddenPositionDisplay,
    MotifLogoDisplay,
)
from maxent.minentropy import (
    M3EClassifier,
    M3EGridClassifier,
    M3EModel,
    M3EMotifClassifier,
)

OPTIONS = {"alpha": 1.0, "init": "path", "tol": 1e-2}


def sequences(rng, n=24):
    """Sequences, of which every other one has the same letters somewhere."""
    X = ["".join(rng.choice(list("ACGT"), rng.integers(9, 14))) for _ in range(n)]
    y = np.arange(n) % 2
    return [x[:3] + "GATA" + x[7:] if own else x for x, own in zip(X, y)], y


def grids(rng, n=16):
    return rng.standard_normal((n, 4, 5, 2)), np.arange(n) % 2


@pytest.mark.parametrize("both", [False, True])
def test_letters_are_as_high_as_their_weights(both, rng, pyplot):
    X, y = sequences(rng)
    model = M3EMotifClassifier(4, both_strands=both, **OPTIONS).fit(X, y)
    display = MotifLogoDisplay.from_estimator(model, X, y)
    W = model.motif_ - model.motif_.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(display.weights, W)
    assert display.consensus == "".join("ACGT"[k] for k in W.argmax(axis=1))
    drawn = sorted(p.get_path().get_extents().height for p in display.letters_)
    shown = np.abs(W[np.abs(W) > 0.01 * np.abs(W).sum(axis=1).max()])
    assert len(drawn) >= len(shown)
    largest = [drawn[-1], np.abs(W).max()]
    np.testing.assert_allclose(*largest, rtol=1e-6)
    # stacks do not overlap: they end at the sums of the weights of one sign
    tops = max(p.get_path().get_extents().y1 for p in display.letters_)
    assert tops <= np.maximum(W, 0).sum(axis=1).max() * (1 + 1e-9)
    # places by their definition, sequence by sequence
    expected = np.zeros((1 + both, 10))
    for x, p in zip(X, model.hidden_proba(X, np.ones(24, dtype=int)), strict=True):
        if y[X.index(x)]:
            for h, value in enumerate(p):
                strand, place = divmod(h, len(x) - 3)
                place = len(x) - 4 - place if strand else place
                expected[strand, place] += value / 12
    found = display.positions
    np.testing.assert_allclose(found, expected[:, : found.shape[1]], atol=1e-12)
    assert len(display.bars_) == 1 + both
    render(display)
    alone = MotifLogoDisplay.from_estimator(model, ax=pyplot.subplots()[1], alpha=0.5)
    assert alone.positions is None and alone.letters_[0].get_alpha() == 0.5
    render(alone)


def test_a_motif_without_weights_and_a_protein_motif_are_drawn(rng):
    empty = MotifLogoDisplay(np.zeros((3, 4))).plot()
    assert empty.letters_ == []
    render(empty)
    alphabet = "ACDEFGHIKLMNPQRSTVWY$"
    render(MotifLogoDisplay(rng.standard_normal((4, 21)), alphabet).plot())


def test_windows_and_coverage_are_those_of_the_model(rng, pyplot):
    X, y = grids(rng)
    sizes = [(2, 2), (1, 3)]
    model = M3EGridClassifier(sizes, mode="blocks", **OPTIONS).fit(X, y)
    images = rng.random((16, 12, 15))
    display = HiddenPositionDisplay.from_estimator(model, X, images, y=y)
    assert display.cell == 3 and display.titles == [str(k) for k in y]
    np.testing.assert_array_equal(display.windows, 3 * model.predict_window(X, y))
    for i, proba in enumerate(model.hidden_proba(X, y)):
        expected, h = np.zeros((4, 5)), 0
        for rows, columns in sizes:
            for r in range(5 - rows):
                for c in range(6 - columns):
                    expected[r : r + rows, c : c + columns] += proba[h]
                    h += 1
        np.testing.assert_allclose(display.coverage[i], expected, atol=1e-12)
    assert len(display.windows_) == len(display.images_) == 16
    render(display)
    _, axes = pyplot.subplots(1, 2)
    two = HiddenPositionDisplay(images[:2], display.windows[:2]).plot(axes, cmap="bone")
    assert two.images_[0].get_cmap().name == "bone"
    render(two)


def test_a_class_without_a_template_has_no_window(rng):
    X, y = grids(rng)
    model = M3EGridClassifier((2, 2), **OPTIONS).fit(X, y)
    display = HiddenPositionDisplay.from_estimator(
        model, X, rng.random((16, 4, 5)), y=y, boxes=np.ones((16, 4))
    )
    assert (np.isnan(display.windows).all(axis=1) == (y == 0)).all()
    assert len(display.windows_) == 8 and len(display.boxes_) == 16


def test_errors_are_those_of_paths_fitted_apart(rng):
    X = rng.standard_normal((24, 3, 2))
    y = np.array(["a", "b"])[np.arange(24) % 2]
    X[y == "b", 1] += 2.0
    parts = [(np.arange(12), np.arange(12, 24)), (np.arange(12, 24), np.arange(12))]
    orders, C = [0.0, 2.0], [0.5, 20.0]
    display = AlphaPathDisplay.from_estimator(
        M3EClassifier(init="path"), X, y, alphas=orders, C=C, cv=parts, against="alpha"
    )
    for k, (train, test) in enumerate(parts):
        for i, c in enumerate(C):
            zero = M3EClassifier(0.0, c, init="zero")
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", ".* predicts .* for all")
                zero.fit(X[train], y[train])
            error = np.mean(zero.predict(X[test]) != y[test])
            assert display.errors[k, i, 0] == error
    i, j = C.index(display.best_C), orders.index(display.best_alpha)
    assert display.mean[i, j] == display.mean.min()
    error = display.errors.std(axis=0, ddof=1) / np.sqrt(2)
    np.testing.assert_allclose(display.standard_error, error)
    assert len(display.lines_) == 2
    render(display)


def test_lines_are_drawn_over_c_or_over_the_orders(rng, pyplot):
    errors = rng.random((3, 4))
    display = AlphaPathDisplay([0, 1, 8, np.inf], [1, 10, 100], errors).plot()
    assert np.isnan(display.standard_error).all()
    for k, line in enumerate(display.lines_):
        np.testing.assert_allclose(line[0].get_ydata(), 100 * errors[:, k])
    render(display)
    display.plot(pyplot.subplots()[1], against="alpha", lw=3)
    assert len(display.lines_) == 3 and display.lines_[0][0].get_linewidth() == 3
    assert [t.get_text() for t in display.ax_.get_xticklabels()][-1] == "inf"
    best = display.best_.get_data()
    np.testing.assert_allclose(best[1], 100 * errors.min())
    render(display)


def test_objectives_of_estimators_are_drawn(rng):
    X, y = grids(rng)
    model = M3EGridClassifier((2, 2), **OPTIONS).fit(X, y)
    display = ConvergenceDisplay.from_estimators({"path": model})
    drawn = display.lines_["path"].get_ydata()
    np.testing.assert_array_equal(drawn, model.objective_history_)
    assert display.ax_.get_ylabel() == "objective"
    render(display)


test_bad_input_is_named = refusals(
    [
        (lambda: MotifLogoDisplay([1.0]), "weights has shape (1,)"),
        (lambda: MotifLogoDisplay(np.eye(4), "AC"), "alphabet='AC' must be a str of 4"),
        (lambda: MotifLogoDisplay(np.eye(4), positions=[0.5, 0.4]), "sums to 0.9"),
        (
            lambda: MotifLogoDisplay.from_estimator(MEDClassifier().fit(*XY)),
            "must be a fitted M3EMotifClassifier",
        ),
        (lambda: HiddenPositionDisplay([[1.0]], [[0, 0, 1, 1]]), "images has shape"),
        (
            lambda: HiddenPositionDisplay(np.ones((60, 2, 2)), np.ones((60, 4))),
            "at most 48",
        ),
        (
            lambda: HiddenPositionDisplay(np.ones((1, 2, 2)), [[0, 0]]),
            "windows has shape (1, 2)",
        ),
        (
            lambda: HiddenPositionDisplay.from_estimator(
                MEDClassifier().fit(*XY), [], []
            ),
            "must be a fitted M3EGridClassifier",
        ),
        (lambda: AlphaPathDisplay([1, 0], [1], [[0, 0]]), "alphas=[1.0, 0.0] must be"),
        (lambda: AlphaPathDisplay([0, 1], [0], [[0, 0]]), "C=[0.0] must be numbers"),
        (lambda: AlphaPathDisplay([0, 1], [1], [[0]]), "errors has shape (1, 1, 1)"),
        (lambda: AlphaPathDisplay([0], [1], [[20]]), "outside [0, 1]"),
        (
            lambda: AlphaPathDisplay.from_estimator(MEDClassifier(), *XY),
            "estimator=MEDClassifier() must be an M3EClassifier",
        ),
        (
            lambda: AlphaPathDisplay([0], [1], [[0]]).plot(against="error"),
            "against='error'",
        ),
    ],
    literal=True,
)


XY = (np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1]))


def test_cells_that_do_not_fit_the_images_are_named(rng):
    X, y = grids(rng)
    model = M3EGridClassifier((2, 2), **OPTIONS).fit(X, y)
    with pytest.raises(ValueError, match="cell=None does not follow"):
        HiddenPositionDisplay.from_estimator(model, X, rng.random((16, 13, 15)))
    with pytest.raises(ValueError, match="X has 16 images and images has 15"):
        HiddenPositionDisplay.from_estimator(model, X, rng.random((15, 12, 15)))


@pytest.mark.parametrize("kind", ["dense", "ragged"])
def test_alpha_path_of_joint_features_is_split_by_samples(kind, rng):
    psi, y = rng.standard_normal((24, 2, 3, 4)), np.arange(24) % 2
    psi[np.arange(24), y, 1] += 1.5
    mask = rng.random((24, 2, 3)) < 0.7
    mask[..., 1] = True
    X = (psi, mask) if kind == "dense" else (psi[mask], mask.sum(axis=2))
    display = AlphaPathDisplay.from_estimator(
        M3EModel(kind, init="path"), X, y, alphas=[0.0, 2.0], C=[20.0], cv=3
    )
    train = np.arange(24) >= 8
    known = M3EModel(init="path", alpha=0.0, C=20.0)
    known.fit((psi[train], mask[train]), y[train])
    expected = np.mean(known.predict((psi[~train], mask[~train])) != y[~train])
    assert display.errors[0, 0, 0] == pytest.approx(expected)


def test_alpha_path_of_a_map_of_ones_own_needs_samples_in_a_row(rng):
    psi, y = rng.standard_normal((24, 2, 3, 4)), np.arange(24) % 2
    with pytest.raises(ValueError, match="as an array or a list of samples"):
        AlphaPathDisplay.from_estimator(M3EModel(object()), (psi, psi), y, cv=3)
