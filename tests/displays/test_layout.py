"""On a user's own axes nothing is cut off and nothing lies on anything else."""

import functools
import inspect

import numpy as np
import pytest
from drawings import blobs, render
from refusals import refused
from sklearn.base import BaseEstimator
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxent import ChowLiuClassifier, MEDClassifier, MEDTreeClassifier, displays
from maxent.discrimination import ExponentialMargin, LaplaceMargin, dual_path
from maxent.displays import (
    AlphaPathDisplay,
    BoundaryComparisonDisplay,
    CandidatesDisplay,
    DualPathDisplay,
    EdgeWeightsDisplay,
    GramDisplay,
    HorizonDisplay,
    LogLikelihoodDisplay,
    MarginPriorDisplay,
    MEDBoundaryDisplay,
    MotifLogoDisplay,
    ROCComparisonDisplay,
    StatePathDisplay,
    TreeGraphDisplay,
)


def boundary(rng):
    X, y = blobs(rng)
    return MEDBoundaryDisplay.from_estimator(MEDClassifier(C=3.0).fit(X, y), X, y)


def comparison(rng):
    X, y = blobs(rng)
    models = {
        "MED": MEDClassifier(C=3.0).fit(X, y),
        "quadratic discriminant": QuadraticDiscriminantAnalysis().fit(X, y),
    }
    return BoundaryComparisonDisplay.from_estimators(models, X, y)


def edges(n, names, rng):
    # as large as those of random tables where the labels are long
    W = rng.normal(size=(n, n)) - (600.0 if names else 0.0)
    names = [f"site {k}" for k in range(n)] if names else None
    information = rng.random((n, n))
    return EdgeWeightsDisplay(
        W + W.T, information + information.T, feature_names=names, title="weights"
    )


def graph(n, names, rng):
    trees = np.zeros((30, n - 1, 2), dtype=int)
    trees[:, :, 1] = np.arange(1, n)
    trees[:, :, 0] = rng.integers(0, np.arange(1, n), size=(30, n - 1))
    names = [f"position {k}" for k in range(n)] if names else None
    options = {"feature_names": names, "title": "probabilities"}
    return TreeGraphDisplay.from_trees(trees, **options)


def likelihoods(rng):
    scores = {name: rng.normal(size=200) for name in ("Bayes posterior", "MED")}
    return LogLikelihoodDisplay.from_scores(scores, level={"MED": -1.0})


def curves(noise, rng):
    y = np.arange(100) < 50
    scores = {name: y + noise * rng.normal(size=100) for name in ("good", "better")}
    return ROCComparisonDisplay.from_predictions(y, scores)


def priors(rng):
    return MarginPriorDisplay([ExponentialMargin(5.0), LaplaceMargin(5.0)])


def path(rng):
    x, C = np.linspace(-2, 2, 40), np.geomspace(0.1, 100, 4)
    y = np.where(np.arange(40) % 9 == 0, -1, 1) * np.sign(x)
    results = dual_path(np.outer(x, x), y, ExponentialMargin(10.0), C)
    return DualPathDisplay.from_results(C, results)


def candidates(rng):
    # log-likelihoods as those of one maximum: the axis has an offset
    where = -2.34358 + 1e-11 * rng.normal(size=10)
    return CandidatesDisplay(where, rng.random(10), [""] * 10, {"entropy": 1})


def horizons(rng):
    kernels = np.exp(-np.arange(12) * np.ones((4, 4, 1)))
    return HorizonDisplay(np.arange(12), kernels, y=[0, 0, 1, 1])


def gram(rng):
    A = rng.normal(size=(12, 3))
    return GramDisplay(A @ A.T, y=["first", "second"] * 6)


def states(rng):
    letters = "".join(np.array(list("ACGT"))[rng.integers(0, 4, 60)])
    posterior = rng.dirichlet([1.0, 1.0, 1.0], size=60)
    return StatePathDisplay(posterior, path=posterior.argmax(1), sequence=letters)


def errors(rng):
    return AlphaPathDisplay([0.0, 1.0, np.inf], [1.0, 10.0], rng.random((4, 2, 3)))


def motif(rng):
    places = rng.dirichlet(np.ones(30)).reshape(2, 15)
    return MotifLogoDisplay(rng.normal(size=(8, 4)), positions=places)


ONE = {
    "errors": errors,
    "candidates": candidates,
    "horizons": horizons,
    "boundary": boundary,
    "edges, 25": functools.partial(edges, 25, False),
    "edges, 60": functools.partial(edges, 60, False),
    "edges, names": functools.partial(edges, 25, True),
    "graph, 3": functools.partial(graph, 3, False),
    "graph, 25": functools.partial(graph, 25, False),
    "graph, 60": functools.partial(graph, 60, False),
    "graph, names": functools.partial(graph, 25, True),
    "likelihoods": likelihoods,
    "curves": functools.partial(curves, 0.5),
    "curves, poor": functools.partial(curves, 50.0),
}
SEVERAL = {
    "comparison": (comparison, (1, 2), {}),
    "priors": (priors, (1, 2), {"parts": ["loss"]}),
    "densities": (priors, (1, 2), {"parts": ["density"]}),
    "path": (path, (1, 3), {}),
    "gram": (gram, (1, 2), {}),
    "motif": (motif, (2, 1), {}),
    "states": (states, (2, 1), {}),
    "states, side by side": (states, (1, 2), {}),
}


def kinds(names):
    """The first picture of each kind."""
    return list({name.split(",")[0]: name for name in reversed(names)}.values())[::-1]


def layouts(names):
    """Every picture without a layout, and those of a kind with one of the two."""
    return pytest.mark.parametrize(
        "name, layout",
        [(name, None) for name in names]
        + [
            (name, ("constrained", "tight")[k % 2])
            for k, name in enumerate(kinds(names))
        ],
    )


def boxes(figure):
    """Box of everything that belongs to each of the axes, laid out as for drawing."""
    figure.draw_without_rendering()
    return [ax.get_tightbbox() for ax in figure.axes]


def check_inside(figure, parts):
    for box in parts:
        assert (box.min >= figure.bbox.min - 1).all()  # pixels
        assert (box.max <= figure.bbox.max + 1).all()


def check_apart(parts):
    for i, one in enumerate(parts):
        for other in parts[:i]:
            apart = np.maximum(one.min - other.max, other.min - one.max).max()
            assert apart > -1  # pixels


def check_legend(legend, ax):
    """The legend is apart from title, labels, and ticks, and from curves inside."""
    texts = [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.texts]
    written = [text.get_window_extent() for text in texts if text.get_text()]
    if ax.axison:
        written += [ax.xaxis.get_tightbbox(), ax.yaxis.get_tightbbox()]
    box = legend.get_window_extent()
    for other in written:
        check_apart([box, other])
    frame = ax.get_window_extent()
    if not (box.x0 >= frame.x0 and box.x1 <= frame.x1 and box.y0 >= frame.y0):
        check_apart([box, frame])


@layouts(ONE)
def test_one_picture_on_each_of_two_axes(name, layout, rng, pyplot):
    display = ONE[name](rng)
    figure, axes = pyplot.subplots(1, 2, layout=layout)
    for ax in axes:
        display.plot(ax)
        assert display.ax_ is ax and display.figure_ is figure
    parts = boxes(figure)
    check_inside(figure, parts)
    if len(parts) == 2:
        check_apart(parts)
    legend = getattr(display, "legend_", None)
    if legend is not None:
        check_legend(legend, axes[1])
    if name.startswith("graph"):
        names = [t.get_window_extent() for t in display.labels_]
        for box in names:
            check_apart([box, display.ax_.title.get_window_extent()])
        if layout is None and not display.labels_[1].get_rotation():
            check_apart(names)
    if name.startswith("edges"):
        for bar in display.colorbars_:
            ends = bar.ax.get_xlim()
            labels = zip(bar.ax.get_xticks(), bar.ax.get_xticklabels(), strict=True)
            shown = [t for x, t in labels if min(ends) <= x <= max(ends)]
            check_apart([t.get_window_extent() for t in shown])


@layouts(SEVERAL)
def test_one_picture_on_several_axes(name, layout, rng, pyplot):
    make, shape, options = SEVERAL[name]
    display = make(rng)
    figure, axes = pyplot.subplots(*shape, layout=layout)
    display.plot(axes, **options)
    parts = boxes(figure)
    check_inside(figure, parts)
    check_apart(parts)
    legend = getattr(display, "legend_", None)
    if legend is not None:
        check_apart([legend.get_window_extent(), axes.flat[0].get_tightbbox()])
        check_inside(figure, [legend.get_window_extent()])
    if layout is None and name.startswith(("states", "motif")):
        above, below = (ax.get_position() for ax in axes.flat)
        assert shape == (1, 2) or (above.x0, above.x1) == (below.x0, below.x1)
    elif layout is None:
        sizes = [ax.get_position().size for ax in axes.flat]
        np.testing.assert_allclose(sizes, [sizes[0]] * len(sizes))


@pytest.mark.parametrize("name", ONE)
def test_pictures_in_figures_of_their_own(name, rng):
    display = ONE[name](rng).plot()
    check_inside(display.figure_, boxes(display.figure_))
    legend = getattr(display, "legend_", None)
    if legend is not None:
        check_legend(legend, display.ax_)
    render(display)


def test_neighbours_keep_their_places(rng, pyplot):
    figure, axes = pyplot.subplots(2, 2, figsize=(9, 8))
    before = [ax.get_position().bounds for ax in axes.flat]
    boundary(rng).plot(axes[0, 1])
    after = [ax.get_position().bounds for ax in axes.flat]
    assert [a == b for a, b in zip(before, after, strict=True)] == [
        *(True, False, True, True)
    ]
    inside, outside = np.array(after[1]), np.array(before[1])
    assert (inside[:2] >= outside[:2]).all()
    assert (inside[:2] + inside[2:] <= outside[:2] + outside[2:] + 1e-12).all()
    # the box that the figure gave the axes is found again by a layout that comes later
    figure.tight_layout()
    check_inside(figure, boxes(figure))
    check_apart(boxes(figure))


def test_axes_of_other_kinds_and_tiny_ones_are_drawn_on(rng, pyplot):
    figure = pyplot.figure()
    display = boundary(rng)
    display.plot(figure.add_axes((0.3, 0.3, 0.4, 0.4)))
    check_inside(figure, boxes(figure))
    left, right = pyplot.figure().subfigures(1, 2)
    display.plot(left.subplots())
    graph(9, False, rng).plot(right.subplots())
    assert display.figure_ is left
    check_apart([display.ax_.get_tightbbox(), right.axes[0].get_tightbbox()])
    tiny = pyplot.figure(figsize=(0.6, 0.5))
    for name in kinds(ONE):
        tiny.clear()
        ONE[name](rng).plot(tiny.subplots())
        pyplot.close(pyplot.gcf())
    _, shared = pyplot.subplots(1, 2, sharex=True, sharey=True, layout="constrained")
    render(graph(9, False, rng).plot(shared[0]))


# ------------------------------------------------------------- as scikit-learn does it


def test_class_methods_draw_on_the_axes_given(rng, pyplot):
    X, y = blobs(rng)
    model = MEDClassifier(C=3.0).fit(X, y)
    codes = rng.integers(0, 3, size=(len(X), 4))
    trees = ChowLiuClassifier().fit(codes, y)
    med = MEDTreeClassifier(tol=1e-3).fit(codes, y)
    scores = {"f": model.decision_function(X)}
    makers = [
        lambda **o: MEDBoundaryDisplay.from_estimator(model, X, y, legend=False, **o),
        lambda **o: BoundaryComparisonDisplay.from_estimators({"m": model}, X, y, **o),
        lambda **o: ROCComparisonDisplay.from_estimators({"m": model}, X, y, **o),
        lambda **o: ROCComparisonDisplay.from_predictions(y, scores, **o),
        lambda **o: LogLikelihoodDisplay.from_scores({"a": [-1.0, -2.0]}, **o),
        lambda **o: TreeGraphDisplay.from_estimator(trees, threshold=0.1, **o),
        lambda **o: EdgeWeightsDisplay.from_estimator(
            med, codes, y, colorbar=False, **o
        ),
        lambda **o: MarginPriorDisplay.from_estimator(model, parts=["loss"], **o),
    ]
    for make in makers:
        figure, ax = pyplot.subplots()
        number = len(pyplot.get_fignums())
        display = make(ax=ax)
        assert len(pyplot.get_fignums()) == number
        assert display.figure_ is figure and ax.has_data()
        # without axes, and once more
        assert make().figure_ is not figure
        assert display.plot().figure_ is not figure
        refused(lambda m=make: m(ax="left"), "ax='left' must be Axes")
        with pytest.raises(
            (AttributeError, TypeError, ValueError, UserWarning), match="no_such"
        ):
            make(no_such=1)
        pyplot.close("all")


def test_properties_are_passed_on(rng):
    X, y = blobs(rng)
    model = LogisticRegression().fit(X, y)
    roc = ROCComparisonDisplay.from_estimators({"m": model}, X, y, lw=3, color="red")
    assert roc.lines_[0].get_linewidth() == 3 and roc.lines_[0].get_color() == "red"
    prior = MarginPriorDisplay([ExponentialMargin(5.0)]).plot(linewidth=4, c="k")
    assert {line.get_linewidth() for line in prior.lines_.flat} == {4}
    assert path(rng).plot(marker="s").lines_[0].get_marker() == "s"
    histogram = LogLikelihoodDisplay.from_scores({"a": [-1.0, -2.0]}, ls=":")
    assert histogram.patches_[0].get_linestyle() == ":"
    square = edges(4, False, rng).plot(alpha=0.5)
    assert square.weights_image_.get_alpha() == 0.5
    assert graph(4, False, rng).plot(alpha=0.5).lines_[1].get_alpha() == 0.5
    panels = BoundaryComparisonDisplay.from_estimators({"m": model}, X, y, alpha=0.5)
    assert panels.displays[0].surfaces_[0].get_alpha() == 0.5


class Nothing(BaseEstimator):
    """Is fitted, and has no method that a display needs."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self


def test_wrong_estimators_are_refused_by_every_display(rng):
    """Each message names the argument, the value and what to give instead."""
    X, y = blobs(rng)
    nothing, line = Nothing().fit(X), LinearRegression().fit(X, X[:, 0])
    table = [
        (MEDBoundaryDisplay.from_estimator, (X, y), "MEDClassifier"),
        (EdgeWeightsDisplay.from_estimator, (X, y), "MEDTreeClassifier"),
        (TreeGraphDisplay.from_estimator, (), "ChowLiuClassifier"),
        (MarginPriorDisplay.from_estimator, (), "MEDRegressor"),
    ]
    for make, rows, remedy in table:
        for wrong, shown in (
            (nothing, r"Nothing\(\)"),
            (line, r"LinearRegression\(\)"),
            (make_pipeline(StandardScaler(), nothing), "Pipeline"),
            (X, r"array\("),
            ("model", "'model'"),
        ):
            match = rf"estimator={shown}.* must be a .*{remedy}"
            refused(lambda m=make, w=wrong, r=rows: m(w, *r), match)
    for make in (
        BoundaryComparisonDisplay.from_estimators,
        ROCComparisonDisplay.from_estimators,
    ):
        for wrong, shown in ((nothing, "Nothing"), (line, "LinearRegression")):
            match = rf"estimators\['a'\]={shown}\(\) has none of .*; give a fitted"
            refused(lambda m=make, w=wrong: m({"a": w}, X, y), match)
        refused(lambda m=make: m(line, X, y), r"estimators must be a dict .*Linear")
    for wrong in (X, MEDClassifier, "model"):
        match = r"estimators\['a'\]=.* must be a fitted estimator"
        refused(
            lambda w=wrong: BoundaryComparisonDisplay.from_estimators({"a": w}, X, y),
            match,
        )
    refused(lambda: LogLikelihoodDisplay.from_models({"a": line}, X), r"models\['a'\]=")
    match = r"results=LinearRegression\(\) must be the list that .*dual_path returns"
    refused(lambda: DualPathDisplay.from_results([1.0], line), match)
    for options, match in (
        ({"grid_resolution": 1}, "grid_resolution=1 must be an integer >= 2"),
        ({"border": -1}, "border=-1 must be"),
        ({"max_size": 0}, "max_size=0 must be"),
        ({"response_method": "predict"}, "response_method='predict' is not known"),
    ):
        model = MEDClassifier().fit(X, y)
        make = functools.partial(MEDBoundaryDisplay.from_estimator, model, X, y)
        refused(lambda m=make, o=options: m(**o), match)


@pytest.mark.parametrize("name", displays.__all__)
def test_class_methods_take_axes_and_options(name):
    found = getattr(displays, name)
    methods = [getattr(found, name) for name in dir(found) if "from_" in name]
    for method in [found.plot, *methods]:
        parameters = inspect.signature(method).parameters
        assert parameters["ax"].default is None, method
        kinds = [p.kind for p in parameters.values()]
        assert inspect.Parameter.VAR_KEYWORD in kinds, method


def test_labels_stand_clear_of_the_offset_of_the_axis(rng, pyplot):
    for ax in (None, pyplot.subplots(1, 2)[1][0]):
        display = candidates(rng).plot(ax)
        display.figure_.canvas.draw()
        axis = display.ax_.xaxis
        assert axis.get_offset_text().get_text()
        texts = (axis.label, axis.get_offset_text())
        check_apart([text.get_window_extent() for text in texts])


def test_letters_are_drawn_where_there_is_room(rng, pyplot):
    narrow = states(rng).plot(pyplot.subplots(1, 2)[1]).ax_[0]
    wide = states(rng).plot().ax_[0]
    assert [len(ax.lines) for ax in (narrow, wide)] == [1, 4]  # a line of all letters


def test_edges_of_one_certain_tree_are_thinner_among_many_columns():
    def width(n):
        tree = np.column_stack([np.arange(n - 1), np.arange(1, n)])
        return TreeGraphDisplay.from_trees(tree[None]).lines_[-1].get_linewidths()[0]

    assert [width(5), width(60)] == [6.0, 2.0]
