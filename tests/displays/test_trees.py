"""Displays of trees: what is drawn is what was computed, and wrong use is refused."""

import numpy as np
import pandas as pd
import pytest
from drawings import render
from refusals import refused
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer

from maxent import ChowLiuClassifier, MEDOutlierDetector, MEDTreeClassifier
from maxent.discrimination import (
    DirichletTrees,
    max_spanning_tree,
    spanning_tree_log_partition,
)
from maxent.displays import EdgeWeightsDisplay, TreeGraphDisplay

KINDS = pytest.mark.parametrize("parameters", ["fixed", "dirichlet"])
# easy levels on some seeds: the trees before training are drawn as well
TREE = [[0, 1], [0, 2], [0, 3]]


def sites(rng, rows=60, n=5, classes=2):
    """CategoryIndex whose last columns copy the first, another in every class."""
    y = np.arange(rows) % classes
    X = rng.integers(0, 4, size=(rows, n))
    X[:4] = np.arange(4)[:, None]  # every letter, in every column
    for k in range(classes):
        copied = (y == k) & (rng.random(rows) < 0.6)
        X[copied, n - 1 - k] = X[copied, 0]
    return np.array(list("ACGT"))[X], np.array(["ant", "bee", "cat"])[y]


def fitted(X, y, parameters="fixed", **options):
    return MEDTreeClassifier(parameters, level=2.0, tol=1e-4, **options).fit(X, y)


def square(rng, n=4):
    A = rng.normal(size=(n, n))
    return A + A.T


# ---------------------------------------------------------------------- edge weights


@KINDS
@pytest.mark.parametrize("k", [0, 1, 2])
def test_triangles_are_weights_and_informations_of_the_class(parameters, k, rng):
    X, y = sites(rng, 90, classes=3)
    model = fitted(X, y, parameters)
    display = EdgeWeightsDisplay.from_estimator(model, X, y, class_index=k).plot()
    expected = ChowLiuClassifier().fit(X, y).information_[k]
    title = ("class ant", "class bee", "class cat")[k]
    assert display.title == display.ax_.get_title() == title
    weights = display.weights_image_.get_array()
    information = display.information_image_.get_array()
    up, down = np.triu_indices(5, 1), np.tril_indices(5, -1)
    assert np.array_equal(weights[up], model.edge_log_weights_[k][up])
    np.testing.assert_allclose(information[down], expected[down], rtol=1e-12)
    # the diagonal and the other triangle are not painted over
    assert np.array_equal(~weights.mask, np.triu(np.ones((5, 5), dtype=bool), 1))
    assert np.array_equal(~information.mask, np.tri(5, k=-1, dtype=bool))
    render(display)


def test_each_triangle_has_the_scale_of_its_own_largest(rng):
    W, information = square(rng), np.abs(square(rng))
    W[0, 1] = W[1, 0] = 50.0
    np.fill_diagonal(W, 1e3)  # not read
    np.fill_diagonal(information, 1e3)
    display = EdgeWeightsDisplay(W, information).plot()
    off = np.triu_indices(4, 1)
    assert display.weights_image_.get_clim() == (-50.0, 50.0)
    assert display.information_image_.get_clim() == (0.0, information[off].max())
    above, below = display.colorbars_
    assert (above.vmin, above.vmax) == display.weights_image_.get_clim()
    assert (below.vmin, below.vmax) == display.information_image_.get_clim()
    assert above.ax.get_xlabel() == "above the diagonal: log weight of edge"
    assert below.ax.get_xlabel() == "below: mutual information (nats)"
    render(display)


def test_colours_of_log_weights_diverge_from_zero(rng):
    information = np.abs(square(rng))
    up = np.triu_indices(4, 1)

    def colours(W):
        display = EdgeWeightsDisplay(W, information).plot()
        image = display.weights_image_
        return display.centre_, image.norm(W[up]), image.get_clim()

    W = square(rng)
    W[0, 1] = W[1, 0] = -0.25
    W[0, 2] = W[2, 0] = 0.25
    centre, shade, (low, high) = colours(W)
    assert centre == 0.0 and low == -high == -np.abs(W[up]).max()
    np.testing.assert_allclose(shade - 0.5, 0.5 * W[up] / high)  # 0 in the middle
    # a constant, which changes no probability of a tree, leaves few colours otherwise
    centre, shade, (low, high) = colours(W - 1000.0)
    assert centre == pytest.approx(W[up].mean() - 1000.0)
    assert min(shade) == pytest.approx(0.0) or max(shade) == pytest.approx(1.0)
    assert low < (W - 1000.0)[up].min() + 1e-9 and high > (W - 1000.0)[up].max() - 1e-9


def test_edges_that_no_tree_has_are_left_out(rng):
    X, y = sites(rng)
    prior = np.ones((5, 5))
    prior[0, 1] = prior[1, 0] = 0.0
    model = fitted(X, y, edge_prior=prior)
    display = EdgeWeightsDisplay.from_estimator(model, X, y, relative=True).plot()
    image = display.weights_image_.get_array()
    assert image.mask[0, 1] and not image.mask[0, 2]
    assert np.isfinite(display.weights_image_.get_clim()).all()
    assert display.log_weights[0, 1] == -np.inf
    render(display)


def test_equal_weights_and_independent_columns_are_drawn(pyplot):
    _, ax = pyplot.subplots()
    display = EdgeWeightsDisplay(np.zeros((3, 3)), np.zeros((3, 3)))
    display.plot(ax, colorbar=False)
    assert display.ax_ is ax and display.colorbars_ == []
    render(display)
    render(display.plot())


@pytest.mark.parametrize("weighted", [False, True])
def test_fixed_tables_are_compared_with_the_edge_prior(weighted, rng):
    X, y = sites(rng)
    prior = np.exp(square(rng, 5))
    sample_weight = rng.integers(0, 3, size=len(y)) if weighted else None
    model = MEDTreeClassifier(level=2.0, edge_prior=prior, tol=1e-4)
    model.fit(X, y, sample_weight)
    display = EdgeWeightsDisplay.from_estimator(
        model, X, y, relative=True, sample_weight=sample_weight
    )
    off = ~np.eye(5, dtype=bool)
    expected = model.edge_log_weights_[1][off] - np.log(prior)[off]
    np.testing.assert_allclose(display.log_weights[off], expected, atol=1e-10)
    label = display.plot().colorbars_[0].ax.get_xlabel()
    assert label == "above the diagonal: log weight / prior weight"


def test_random_tables_are_compared_with_the_bayes_posterior(rng):
    X, y = sites(rng)
    model = fitted(X, y, "dirichlet", ess=2.0)
    draw = EdgeWeightsDisplay.from_estimator
    display = draw(model, X, y, class_index=0, relative=True)
    codes = np.searchsorted(list("ACGT"), X)[y == "ant"]
    before = DirichletTrees(2.0, [4] * 5).posterior(codes).log_weights
    off = ~np.eye(5, dtype=bool)
    expected = model.edge_log_weights_[0][off] - before[off]
    np.testing.assert_allclose(display.log_weights[off], expected, atol=1e-9)
    # without pull from the margins nothing is left
    idle = MEDTreeClassifier("dirichlet", level=-1e3).fit(X, y)
    left = draw(idle, X, y, class_index=0, relative=True).log_weights[off]
    np.testing.assert_allclose(left, 0.0, atol=1e-9)


def test_weights_of_rows_count_as_copies(rng):
    X, y = sites(rng)
    model = fitted(X, y)
    copies = rng.integers(0, 3, size=len(y))
    copies[:2] = 1
    draw = EdgeWeightsDisplay.from_estimator
    weighted = draw(model, X, y, sample_weight=copies)
    repeated = draw(model, np.repeat(X, copies, axis=0), np.repeat(y, copies))
    np.testing.assert_allclose(
        weighted.information, repeated.information, rtol=1e-10, atol=1e-14
    )


def test_columns_of_frames_and_pipelines(rng):
    X, y = sites(rng)
    frame = pd.DataFrame(X, columns=[f"site {k}" for k in range(5)])
    model = fitted(frame, y)
    display = EdgeWeightsDisplay.from_estimator(model, frame, y).plot()
    ticks = [text.get_text() for text in display.ax_.get_xticklabels()]
    assert ticks == display.feature_names == list(frame.columns)
    render(display)
    graph = TreeGraphDisplay.from_estimator(model).plot()
    assert [text.get_text() for text in graph.labels_] == list(frame.columns)
    numbers = rng.normal(size=(60, 5))
    bins = KBinsDiscretizer(3, encode="ordinal", strategy="uniform")
    pipe = make_pipeline(bins, MEDTreeClassifier(tol=1e-4)).fit(numbers, y)
    inner = pipe[-1], pipe[:-1].transform(numbers)
    display = EdgeWeightsDisplay.from_estimator(pipe, numbers, y)
    expected = EdgeWeightsDisplay.from_estimator(*inner, y)
    assert np.array_equal(display.information, expected.information)
    assert TreeGraphDisplay.from_estimator(pipe).best_tree.shape == (4, 2)


@pytest.mark.parametrize("n", [2, 30, 61])
def test_names_do_not_run_into_one_another(n, rng):
    display = EdgeWeightsDisplay(square(rng, n), np.abs(square(rng, n))).plot()
    names = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert len(names) <= 30
    assert display.ax_.get_yticks().tolist() == [int(name) for name in names]
    render(display)


# ----------------------------------------------------------------------------- graph


@KINDS
def test_widths_and_shades_are_the_probabilities(parameters, rng):
    X, y = sites(rng)
    model = fitted(X, y, parameters)
    display = TreeGraphDisplay.from_estimator(model, class_index=0)
    display.plot(threshold=0.0, max_width=5.0, min_width=1.5)
    p = model.edge_probabilities_[0]
    assert len(display.edges_) == 10
    # the probable ones are drawn last, on top
    assert (np.diff(p[tuple(display.edges_.T)]) >= 0).all()
    assert display.best_tree.tolist() == model.best_trees_[0].tolist()
    best = set(map(tuple, display.best_tree.tolist()))
    parts = [[], []]
    for u, v in display.edges_.tolist():
        parts[(u, v) in best].append((u, v))
    assert len(parts[1]) == 4
    angle = 2 * np.pi * np.arange(5) / 5
    places = np.column_stack([np.sin(angle), np.cos(angle)])
    for edges, lines in zip(parts, display.lines_, strict=True):
        chance = np.array([p[edge] for edge in edges])
        width = np.maximum(5 * chance, 1.5 if edges is parts[1] else 0.0)
        np.testing.assert_allclose(lines.get_linewidths(), width, atol=1e-12)
        brightness = np.asarray(lines.get_colors())[:, :3].sum(axis=1)
        # darker means more probable
        assert (np.diff(brightness[np.argsort(chance)]) <= 1e-12).all()
        for edge, segment in zip(edges, lines.get_segments(), strict=True):
            np.testing.assert_allclose(segment, places[list(edge)], atol=1e-12)
    other, tree = (np.asarray(lines.get_colors())[0, :3] for lines in display.lines_)
    assert np.ptp(other) < 1e-12 < 0.05 < np.ptp(tree)  # grey, and a colour
    render(display)


def test_improbable_edges_are_left_out_but_the_best_tree_stays(rng):
    W = square(rng)
    np.fill_diagonal(W, -np.inf)
    _, p = spanning_tree_log_partition(W, marginals=True)
    display = TreeGraphDisplay(p, TREE).plot(threshold=1.0)
    assert sorted(display.edges_.tolist()) == TREE
    some = float(np.median(p[np.triu_indices(4, 1)]))
    display.plot(threshold=some)
    shown = {tuple(edge) for edge in display.edges_.tolist()}
    for u in range(4):
        for v in range(u + 1, 4):
            assert ((u, v) in shown) == (p[u, v] >= some or [u, v] in TREE)
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert texts[0] == "most probable tree"
    assert ("other edges" in texts) == (len(shown) > len(TREE))
    assert texts[-1] == f"others below {some:g}\nnot shown"
    assert display.plot(legend=False).legend_ is None


def test_edges_may_be_given_in_any_order(pyplot):
    _, ax = pyplot.subplots()
    p = np.full((4, 4), 0.5)
    display = TreeGraphDisplay(p, [[3, 0], [1, 0], [2, 0]]).plot(ax)
    assert display.ax_ is ax
    assert [len(lines.get_segments()) for lines in display.lines_] == [3, 3]
    two = TreeGraphDisplay([[0, 1], [1, 0]], [[1, 0]]).plot()
    assert two.edges_.tolist() == [[0, 1]]
    render(two)


def test_trees_of_an_outlier_detector_are_drawn(rng):
    codes = rng.integers(0, 3, size=(40, 4))
    trees = MEDOutlierDetector("tree").fit(codes).posterior_
    display = TreeGraphDisplay.from_trees(trees, title="normal rows").plot()
    assert np.array_equal(
        display.probabilities, np.clip(trees.edge_probabilities, 0, 1)
    )
    assert display.ax_.get_title() == "normal rows"
    render(display)


def test_trees_of_chow_liu_are_drawn(rng):
    X, y = sites(rng, classes=3)
    model = ChowLiuClassifier().fit(pd.DataFrame(X, columns=list("vwxyz")), y)
    for k in range(3):
        display = TreeGraphDisplay.from_estimator(model, class_index=k)
        assert sorted(display.edges_.tolist()) == model.trees_[k].tolist()
        assert display.feature_names == list("vwxyz")
        assert len(display.lines_[0].get_segments()) == 0
        np.testing.assert_allclose(display.lines_[1].get_linewidths(), 6.0)
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert texts == ["Chow-Liu tree"]
    render(display)


@KINDS
def test_drawn_trees_are_counted(parameters, rng):
    X, y = sites(rng)
    model = fitted(X, y, parameters)
    trees = model.sample_trees(40, random_state=0)
    for k in (0, 1):
        display = TreeGraphDisplay.from_trees(trees, class_index=k, title="drawn")
        for u in range(5):
            for w in range(u + 1, 5):
                share = np.mean([[u, w] in tree for tree in trees[k].tolist()])
                assert display.probabilities[u, w] == pytest.approx(share)
        # no tree has more of the drawn edges in common
        common = [display.probabilities[tuple(tree.T)].sum() for tree in trees[k]]
        best = display.probabilities[tuple(display.best_tree.T)].sum()
        assert best >= max(common) - 1e-12
        one = TreeGraphDisplay.from_trees(model.posteriors_[k].sample_trees(40, 1))
        assert one.probabilities.sum() == pytest.approx(2 * 4)
    single = TreeGraphDisplay.from_trees(TREE)
    assert single.edges_.tolist() == single.best_tree.tolist() == TREE
    text = display.legend_.get_texts()[0].get_text()
    assert text == "tree of the most\nfrequent edges"
    render(display)


@pytest.mark.parametrize("n", [25, 60])
def test_the_best_tree_is_seen_among_many_edges(n, rng):
    # nearly equal weights: every edge has a probability of about 2 / n
    W = 1e-3 * square(rng, n)
    np.fill_diagonal(W, -np.inf)
    _, p = spanning_tree_log_partition(W, marginals=True)
    best = max_spanning_tree(W)
    display = TreeGraphDisplay(p, best).plot()
    assert len(display.edges_) == n - 1
    other, tree = display.plot(threshold=0.0).lines_
    assert len(other.get_segments()) == n * (n - 1) // 2 - (n - 1)
    assert min(tree.get_linewidths()) >= 1.2 > max(other.get_linewidths())
    assert tree.get_zorder() > other.get_zorder()
    # as dark as the other edges at least
    dark = [1 - np.asarray(x.get_colors())[:, :3].mean(axis=1) for x in (other, tree)]
    assert dark[1].min() > dark[0].max()
    render(display)


# -------------------------------------------------------------------------- refusals


def test_wrong_estimators_and_classes_are_refused(rng):
    X, y = sites(rng)
    model = fitted(X, y)
    makers = [
        lambda estimator, **options: EdgeWeightsDisplay.from_estimator(
            estimator, X, y, **options
        ),
        TreeGraphDisplay.from_estimator,
    ]
    for make in makers:
        with pytest.raises(NotFittedError):
            make(MEDTreeClassifier())
        refused(lambda m=make: m(None), "estimator=None must be a fitted MEDTreeClassi")
        refused(
            lambda m=make: m(make_pipeline(MEDOutlierDetector())),
            r"which ends in MEDOutlierDetector\(\), must be a fitted MEDTreeClassifier",
        )
        for wrong in (2, -1, 1.0, True, "bee", None):
            match = rf"class_index={wrong!r} must be an integer from 0 to 1.*'ant'"
            refused(lambda m=make, w=wrong: m(model, class_index=w), match)
        for wrong in ("abcde", ["a", "b"]):
            match = "feature_names=.* must hold 5 names"
            refused(lambda m=make, w=wrong: m(model, feature_names=w), match)


def test_what_draws_other_trees_is_named(rng):
    X, y = sites(rng)
    chow_liu = ChowLiuClassifier().fit(X, y)
    refused(
        lambda: EdgeWeightsDisplay.from_estimator(chow_liu, X, y),
        r"estimator=ChowLiuClassifier\(\) must be .*; TreeGraphDisplay draws the trees",
    )
    detector = MEDOutlierDetector("tree").fit(X)
    refused(
        lambda: TreeGraphDisplay.from_estimator(detector), "TreeGraphDisplay.from_trees"
    )
    with pytest.raises(NotFittedError):
        TreeGraphDisplay.from_estimator(ChowLiuClassifier())


def test_wrong_rows_are_refused(rng):
    X, y = sites(rng)
    model = fitted(X, y)
    strange = X.copy()
    strange[1, 2] = "N"
    cases = [
        (X[:, :3], y, {}, "X has 3 features, but MEDTreeClassifier is expecting 5"),
        (X, y[1:], {}, r"y has shape \(59,\), but X has 60 rows"),
        (X, np.where(y == "ant", "dog", y), {}, "y contains 'dog', which is no class"),
        (X[y == "ant"], y[y == "ant"], {}, "y has no row of class 'bee'"),
        (strange, y, {}, r"X\[1, 2\] = .*'N'.* is a category unseen in training"),
        (X, y, {"sample_weight": [1.0]}, r"sample_weight has shape \(1,\)"),
        (X, y, {"sample_weight": (y == "ant") * 1.0}, "no row of class 'bee' with a p"),
    ]
    for rows, labels, options, match in cases:
        refused(
            lambda r=rows, t=labels, o=options: EdgeWeightsDisplay.from_estimator(
                model, r, t, **o
            ),
            match,
        )
    # rows of the other class may be anything
    EdgeWeightsDisplay.from_estimator(model, strange, y, class_index=0)


def test_wrong_matrices_are_refused(rng):
    W, information = square(rng), np.abs(square(rng))
    bad = W.copy()
    bad[0, 1] += 1.0
    hole = information.copy()
    hole[2, 3] = hole[3, 2] = np.nan
    cases = [
        (W[:3], information, r"log_weights has shape \(3, 4\)"),
        (bad, information, "log_weights is not symmetric"),
        (W, information[:3, :3], r"information has shape \(3, 3\); .*4, 4\) is needed"),
        (W, hole, r"information\[2, 3\]=nan is not"),
        (W, information[None], r"information has shape \(1, 4, 4\)"),
    ]
    for weights, mutual, match in cases:
        refused(lambda w=weights, i=mutual: EdgeWeightsDisplay(w, i), match)


def test_wrong_graphs_are_refused():
    p = np.full((4, 4), 0.5)
    cases = [
        (p[:3], TREE, r"probabilities has shape \(3, 4\)"),
        (3 * p, TREE, r"probabilities\[0, 1\]=1.5 is no probability"),
        (-p, TREE, r"probabilities\[0, 1\]=-0.5 is no probability"),
        (p, TREE[:2], r"best_tree has shape \(2, 2\); .* shape \(3, 2\)"),
        (p, [[0, 1], [0, 2], [0, 4]], "best_tree=.* must hold integers from 0 to 3"),
        (p, [[0, 1], [0, 2], [0, -1]], "best_tree=.* must hold integers from 0 to 3"),
        (p, np.array(TREE) + 0.5, "best_tree=.* must hold integers from 0 to 3"),
    ]
    for chance, tree, match in cases:
        refused(lambda c=chance, t=tree: TreeGraphDisplay(c, t), match)
    ask = "must be SpanningTrees, DirichletTrees, or trees .*from_estimator"
    for wrong in (p, None, "trees", ChowLiuClassifier(), [], [[0, 1, 2]], 3):
        refused(lambda w=wrong: TreeGraphDisplay.from_trees(w), f"trees=.* {ask}")
    for wrong in ([TREE[:2] + [[0, 4]]], [TREE[:2] + [[-1, 0]]]):
        match = "trees=.* must hold integers from 0 to 3"
        refused(lambda w=wrong: TreeGraphDisplay.from_trees(w), match)
    match = r"trees\[1\]=.* does not join all 4 features; each tree needs 3 edges"
    refused(lambda: TreeGraphDisplay.from_trees([TREE, TREE[:2] + TREE[:1]]), match)
    match = "class_index=2 must be an integer from 0 to 1"
    refused(lambda: TreeGraphDisplay.from_trees([[TREE]] * 2, class_index=2), match)
    display = TreeGraphDisplay(p, TREE)
    refused(lambda: display.plot(threshold=1.5), "threshold=1.5 must be a probability")
    refused(lambda: display.plot(threshold=-1), "threshold=-1 must be a finite")
    refused(lambda: display.plot(max_width=0), "max_width=0 must be")
    refused(lambda: display.plot(min_width=-1), "min_width=-1 must be")
