"""Boundaries as drawn: regions, margin lines and multipliers of the machine."""

import numpy as np
import pytest
from drawings import blobs, render
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxent import MEDClassifier, MEDFeatureSelector, MEDRegressor
from maxent.discrimination import (
    ExponentialMargin,
)
from maxent.displays import BoundaryComparisonDisplay, MEDBoundaryDisplay


def test_multipliers_of_two_classes(rng):
    X, y = blobs(rng)
    model = MEDClassifier(C=3.0).fit(X, y)
    display = MEDBoundaryDisplay.from_estimator(model, X, y)
    expected = np.zeros(len(X))
    expected[model.support_] = np.abs(model.dual_coef_[0])
    assert np.array_equal(display.multiplier, expected)
    assert 0 < display.multiplier.max() < 3.0


def test_multipliers_of_three_classes_sum_over_the_wrong_classes(rng):
    X, y = blobs(rng, classes=3)
    model = MEDClassifier(C=3.0, multi_class="joint").fit(X, y)
    display = MEDBoundaryDisplay.from_estimator(model, X, y)
    # a class coefficient of the row's own class is half the sum of its multipliers
    own = model.dual_coef_[
        display.codes[model.support_], np.arange(len(model.support_))
    ]
    np.testing.assert_allclose(display.multiplier[model.support_], 2 * own, rtol=1e-9)
    assert (own > 0).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_regions_are_the_predictions_and_margin_lines_the_margins(classes, rng):
    X, y = blobs(rng, classes=classes)
    model = MEDClassifier(kernel="linear", C=3.0, multi_class="joint").fit(X, y)
    display = MEDBoundaryDisplay.from_estimator(model, X, y, grid_resolution=60)
    grid = np.c_[display.xx0.ravel(), display.xx1.ravel()]
    wins = model.classes_[display.response.reshape(-1, classes).argmax(axis=1)]
    assert np.mean(wins == model.predict(grid)) == 1.0
    display.plot()
    assert len(display.surfaces_) == classes
    assert len(display.margin_lines_) == classes
    assert len(display.boundary_) == (1 if classes == 2 else 3)
    for contours, value in ((display.boundary_, 0.0), (display.margin_lines_, 1.0)):
        for contour in contours:
            at = np.vstack([path.vertices for path in contour.get_paths()])
            f = model.decision_function(at)
            if classes == 3:
                f = np.diff(np.sort(f, axis=1)[:, -2:], axis=1)[:, 0]
                # differences of linear scores, but not their maximum, are linear
                assert np.median(np.abs(f - value)) < 1e-9
            else:
                np.testing.assert_allclose(np.abs(f), value, atol=1e-9)
    render(display)


@pytest.mark.parametrize("classes", [3, 5])
def test_margin_lines_of_pairs_are_those_of_their_machines(classes, rng):
    X = rng.normal(size=(150, 2))
    y = rng.integers(0, classes, size=150)
    X += 2.5 * rng.normal(size=(classes, 2))[y]
    model = MEDClassifier(C=3.0, gamma=0.5).fit(X, y)
    display = MEDBoundaryDisplay.from_estimator(model, X, y, grid_resolution=80)
    grid = np.c_[display.xx0.ravel(), display.xx1.ravel()]
    leads = display.response.reshape(-1, classes)
    assert (leads.argmax(axis=1) == model.predict(grid)).all()
    assert ((leads > 0).sum(axis=1) <= 1).all()
    display.plot()
    wins = leads.max(axis=1)
    winner = leads.argmax(axis=1)
    for c in range(classes):  # the class against every other, by machines of their own
        at = grid[(winner == c) & (wins > 0)][:20]
        scores = []
        for other in set(range(classes)) - {c}:
            rows = (y == c) | (y == other)
            one = MEDClassifier(C=3.0, gamma=0.5).fit(X[rows], y[rows] == c)
            scores.append(one.decision_function(at))
        beaten = np.min(scores, axis=0)
        found = wins[(winner == c) & (wins > 0)][:20]
        clear = beaten > 0.01
        np.testing.assert_allclose(found[clear], beaten[clear], atol=5e-3)
    render(display)


def test_marker_areas_are_proportional_to_multipliers(rng):
    X, y = blobs(rng)
    model = MEDClassifier(C=3.0).fit(X, y)
    display = MEDBoundaryDisplay.from_estimator(model, X, y).plot(max_size=400.0)
    drawn = {}
    for points in display.points_:
        for place, size in zip(points.get_offsets(), points.get_sizes(), strict=True):
            drawn[tuple(place)] = size
    area = np.array([drawn[tuple(row)] for row in X])
    expected = 400.0 * display.multiplier / display.multiplier.max()
    np.testing.assert_allclose(area, np.maximum(expected, 9.0))
    assert (expected > 9).sum() > 5
    assert len(display.points_[0].get_offsets()) == np.sum(
        (display.multiplier == 0) & (y == "ant")
    )


def test_legend_names_classes_lines_and_sizes(rng):
    X, y = blobs(rng)
    model = MEDClassifier(C=3.0).fit(X, y)
    display = MEDBoundaryDisplay.from_estimator(model, X, y).plot()
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert texts[:4] == ["ant", "bee", "boundary", r"$f=\pm1$"]
    assert texts[4] == rf"$\lambda={display.multiplier.max():.2g}$"
    assert texts[-1] == r"$\lambda=0$" and len(texts) == 8
    assert display.plot(legend=False).legend_ is None
    render(display)


def test_margin_lines_follow_the_prior(rng):
    X, y = blobs(rng)

    def lines(margin):
        model = MEDClassifier(C=3.0, margin=margin, kernel="linear").fit(X, y)
        return MEDBoundaryDisplay.from_estimator(model, X, y).plot()

    assert lines("logistic").margin_lines_ == []
    display = lines(ExponentialMargin(10.0, level=0.5))
    assert display.level == 0.5
    assert [c.levels.tolist() for c in display.margin_lines_] == [[0.5], [0.5]]


def test_frames_name_the_axes_and_pipelines_are_looked_into(rng, pyplot):
    import pandas as pd

    X, y = blobs(rng)
    frame = pd.DataFrame(X * [1.0, 50.0], columns=["length", "width"])
    pipeline = make_pipeline(StandardScaler(), MEDClassifier(C=3.0)).fit(frame, y)
    _, ax = pyplot.subplots()
    display = MEDBoundaryDisplay.from_estimator(pipeline, frame, y).plot(ax)
    assert display.ax_ is ax and ax.get_xlabel() == "length"
    assert ax.get_ylabel() == "width"
    plain = MEDClassifier(C=3.0).fit(StandardScaler().fit_transform(X), y)
    np.testing.assert_allclose(
        np.sort(display.multiplier[display.multiplier > 0]),
        np.sort(np.abs(plain.dual_coef_[0])),
        rtol=1e-4,
    )
    render(display)


def test_selector_and_sparse_rows_are_drawn(rng):
    import scipy.sparse as sp

    X, y = blobs(rng)
    selector = MEDFeatureSelector(C=3.0).fit(X, y)
    display = MEDBoundaryDisplay.from_estimator(selector, X, y).plot()
    assert np.array_equal(np.flatnonzero(display.multiplier), selector.support_)
    sparse = MEDClassifier(C=3.0).fit(sp.csr_array(X), y)
    assert MEDBoundaryDisplay.from_estimator(sparse, X, y).multiplier.max() > 0


def drawn(display):
    """Rows without and with a multiplier, as many as there are markers of them."""
    counts = [len(points.get_offsets()) for points in display.points_]
    return sum(counts[:2]), sum(counts[2:])


def test_a_constant_feature_and_a_machine_without_support_are_drawn(rng):
    X, y = blobs(rng)
    X[:, 1] = 3.0
    model = MEDClassifier(C=3.0).fit(X, y)
    display = MEDBoundaryDisplay.from_estimator(model, X, y).plot()
    low, high = display.ax_.get_ylim()
    assert low < 3.0 < high
    held = len(model.support_)
    assert drawn(display) == (len(X) - held, held)
    render(display)
    model.support_ = model.support_[:0]
    model.support_vectors_ = model.support_vectors_[:0]
    model.dual_coef_ = model.dual_coef_[:, :0]
    model.intercept_ = np.array([0.5])
    display = MEDBoundaryDisplay.from_estimator(model, X, y).plot()
    assert drawn(display) == (len(X), 0)
    # the bias alone decides: one class everywhere
    assert len(display.surfaces_) == 1 and display.boundary_ == []
    assert (display.response[:, :, 1] == 0.5).all()
    assert [t.get_text() for t in display.legend_.get_texts()] == [
        *("ant", "bee", r"$\lambda=0$")
    ]
    render(display)


def test_wrong_machines_and_rows_are_refused(rng):
    from sklearn.exceptions import NotFittedError

    X, y = blobs(rng)
    model = MEDClassifier(C=3.0).fit(X, y)
    draw = MEDBoundaryDisplay.from_estimator
    with pytest.raises(NotFittedError):
        draw(MEDClassifier(), X, y)
    with pytest.raises(ValueError, match="rows of two features"):
        draw(model, X[:, :1], y)
    with pytest.raises(ValueError, match="rows of two features"):
        draw(model, np.c_[X, X], y)
    with pytest.raises(ValueError, match="support vectors are not among the rows"):
        draw(model, X[::-1], y)
    with pytest.raises(ValueError, match="support vectors are not among the rows"):
        draw(model, X[:3], y[:3])
    with pytest.raises(ValueError, match=r"y has shape \(79,\), but X has 80 rows"):
        draw(model, X, y[1:])
    with pytest.raises(ValueError, match="contains 'dog', which is no class"):
        draw(model, X, np.where(y == "ant", "dog", y))
    match = r"estimator=MEDRegressor\(\) must be .*multipliers, such as MEDClassifier"
    with pytest.raises(ValueError, match=match):
        draw(MEDRegressor().fit(X, X[:, 0]), X, y)
    gram = MEDClassifier(kernel="precomputed").fit(rbf_kernel(X), y)
    with pytest.raises(ValueError, match=r"precomputed.*named kernel"):
        draw(gram, X, y)


def test_landmarks_are_not_drawn_as_multipliers(rng, pyplot):
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    machine = MEDClassifier(approximation="nystroem", n_components=9, random_state=0)
    machine.fit(X, y)
    with pytest.raises(ValueError, match="holds landmarks"):
        MEDBoundaryDisplay.from_estimator(machine, X, y)
    display = BoundaryComparisonDisplay.from_estimators({"machine": machine}, X, y)
    assert not display.displays[0].multiplier.any()
