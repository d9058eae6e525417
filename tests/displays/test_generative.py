"""Displays of generative models: boundaries side by side, ROC, log-likelihoods."""

import numpy as np
import pytest
from drawings import render
from matplotlib.colors import to_rgba
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from maxent import (
    ChowLiuClassifier,
    MEDClassifier,
    MEDGaussianClassifier,
    MEDOutlierDetector,
)
from maxent.displays import (
    BoundaryComparisonDisplay,
    LogLikelihoodDisplay,
    ROCComparisonDisplay,
)
from maxent.displays.roc import compare_scores
from maxent.families import DirichletProduct


def blobs(rng, n=60, classes=2):
    y = np.arange(n) % classes
    centres = np.array([[0.0, 0.0], [1.8, 0.5], [0.2, 2.4]])[:classes]
    X = centres[y] + rng.normal(size=(n, 2)) * np.array([0.7, 1.2, 1.0])[y][:, None]
    return X, np.array(["ant", "bee", "cat"])[y]


# ----------------------------------------------------------------------- boundaries


def machines(classes):
    models = {
        "svm": SVC(kernel="linear", decision_function_shape="ovr"),
        "likelihood": QuadraticDiscriminantAnalysis(),
        "med gaussian": MEDGaussianClassifier(percentile=50),
        "med": MEDClassifier(kernel="linear", C=2.0),
    }
    if classes == 3:
        del models["svm"]  # its decision function need not agree with its votes
    return models


@pytest.mark.parametrize("classes", [2, 3])
def test_regions_and_errors_are_the_predictions(classes, rng):
    X, y = blobs(rng, classes=classes)
    models = {name: m.fit(X, y) for name, m in machines(classes).items()}
    display = BoundaryComparisonDisplay.from_estimators(
        models, X, y, grid_resolution=40
    )
    assert display.names == list(models)
    for part, model, wrong in zip(
        display.displays, models.values(), display.errors, strict=True
    ):
        grid = np.c_[part.xx0.ravel(), part.xx1.ravel()]
        wins = model.classes_[part.response.reshape(-1, classes).argmax(axis=1)]
        assert np.array_equal(wins, model.predict(grid))
        assert wrong == np.sum(model.predict(X) != y)
    display.plot()
    assert display.ax_.shape == (len(models),)
    assert len({axes.get_xlim() for axes in display.ax_}) == 1
    titles = [axes.get_title() for axes in display.ax_]
    assert titles[0].splitlines() == [
        next(iter(models)),
        f"{display.errors[0]} training errors of {len(X)}",
    ]
    render(display)


def test_multipliers_and_levels_are_those_of_the_machines(rng):
    X, y = blobs(rng)
    models = {name: m.fit(X, y) for name, m in machines(2).items()}
    display = BoundaryComparisonDisplay.from_estimators(models, X, y).plot()
    parts = dict(zip(models, display.displays, strict=True))
    for name in ("svm", "med gaussian", "med"):
        expected = np.zeros(len(X))
        expected[models[name].support_] = np.abs(models[name].dual_coef_[0])
        assert np.array_equal(parts[name].multiplier, expected) and expected.any()
    assert not parts["likelihood"].multiplier.any()
    assert not parts["likelihood"].margin_lines_
    level = models["med gaussian"].level_
    assert [parts[n].level for n in parts] == [1.0, 0.0, level, 1.0]
    if level > 0:
        for line in parts["med gaussian"].margin_lines_:
            at = np.vstack([path.vertices for path in line.get_paths()])
            f = models["med gaussian"].decision_function(at)
            # contours are linear between points of the grid
            assert np.abs(np.abs(f) - level).max() < 0.1 * (1 + level)
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert texts == [
        *("ant", "bee", "boundary", "margin at its level", "area: multiplier")
    ]


def test_frames_pipelines_and_given_axes(rng, pyplot):
    import pandas as pd

    X, y = blobs(rng)
    frame = pd.DataFrame(X * [1.0, 50.0], columns=["length", "width"])
    inner = make_pipeline(StandardScaler(), MEDGaussianClassifier(percentile=50))
    models = {
        "pipeline": inner.fit(frame, y),
        "plain": MEDGaussianClassifier(percentile=50).fit(frame, y),
    }
    _, axes = pyplot.subplots(1, 2)
    display = BoundaryComparisonDisplay.from_estimators(models, frame, y)
    # boundaries of Gaussians do not depend on the scale of the features
    first, second = (part.multiplier for part in display.displays)
    np.testing.assert_allclose(first, second, atol=1e-3)
    display.plot(axes, legend=False)
    assert display.ax_[1] is axes[1] and display.legend_ is None
    assert axes[0].get_xlabel() == "length" and axes[0].get_ylabel() == "width"
    with pytest.raises(ValueError, match="ax holds 2 Axes, but this picture needs 1"):
        BoundaryComparisonDisplay.from_estimators(
            {"one": models["plain"]}, frame, y
        ).plot(axes)


def test_wrong_comparisons_are_refused(rng):
    from sklearn.exceptions import NotFittedError

    X, y = blobs(rng)
    draw = BoundaryComparisonDisplay.from_estimators
    fitted = {"qda": QuadraticDiscriminantAnalysis().fit(X, y)}
    with pytest.raises(NotFittedError):
        draw({"qda": QuadraticDiscriminantAnalysis()}, X, y)
    for wrong in ({}, [fitted["qda"]]):
        with pytest.raises(ValueError, match="estimators must be a dict"):
            draw(wrong, X, y)
    naive = {"nb": GaussianNB().fit(X, y)}
    match = r"estimators\['nb'\]=GaussianNB\(\) has no decision_function; use response_"
    with pytest.raises(ValueError, match=match):
        draw(naive, X, y, response_method="decision_function")
    match = r"estimators\['t'\]=StandardScaler\(\) has none of .*; give a fitted classi"
    with pytest.raises(ValueError, match=match):
        draw({"t": StandardScaler().fit(X)}, X, y)
    with pytest.raises(ValueError, match="response_method='predict' is not known"):
        draw(naive, X, y, response_method="predict")
    pairs = SVC(decision_function_shape="ovo").fit(*blobs(rng, classes=3))
    with pytest.raises(ValueError, match='set decision_function_shape="ovr"'):
        draw({"svc": pairs}, *blobs(rng, classes=3))
    with pytest.raises(ValueError, match="rows of two features"):
        draw(fitted, X[:, :1], y)
    with pytest.raises(ValueError, match="contains 'dog', which is no class"):
        draw(fitted, X, np.where(y == "ant", "dog", y))
    with pytest.raises(ValueError, match="support vectors are not among the rows"):
        draw({"svc": SVC().fit(X, y)}, X[::-1], y)


# ------------------------------------------------------------------------------ roc


def some_scores(rng, n=200):
    y = rng.random(n) < 0.3
    y[:4] = True, True, False, False
    # rounded, so that scores tie within and between the classes
    good = np.round(y + rng.normal(size=n), 1)
    fair = np.round(0.5 * good + rng.normal(size=n), 1)
    return y, {"good": good, "fair": fair}


def test_curves_and_areas_agree_with_scikit_learn(rng):
    y, scores = some_scores(rng)
    display = ROCComparisonDisplay.from_predictions(y, scores)
    for k, name in enumerate(scores):
        false, true, _ = roc_curve(y, scores[name], drop_intermediate=False)
        np.testing.assert_allclose(display.curves[k], (false, true), atol=1e-15)
        expected = roc_auc_score(y, scores[name])
        assert display.auc[k] == pytest.approx(expected, rel=1e-13)


def test_covariance_is_that_of_its_definition(rng):
    y, scores = some_scores(rng, 60)
    display = ROCComparisonDisplay.from_predictions(y, scores)
    wins = [
        np.sign(s[y][:, None] - s[~y][None]) / 2 + 0.5 for s in scores.values()
    ]  # 1, 1/2 or 0 for every pair of rows
    expected = np.zeros((2, 2))
    for axis, size in ((1, y.sum()), (0, (~y).sum())):
        shares = [w.mean(axis=axis) - w.mean() for w in wins]
        for i in range(2):
            for j in range(2):
                expected[i, j] += shares[i] @ shares[j] / (size - 1) / size
    np.testing.assert_allclose(display.covariance, expected, rtol=1e-12)
    np.testing.assert_allclose(
        display.standard_error, np.sqrt(np.diag(expected)), rtol=1e-12
    )


def test_standard_errors_are_what_areas_vary_by(rng):
    areas, variances, steps, step_variances = [], [], [], []
    for _ in range(600):
        y = np.arange(60) < 25
        good = y + rng.normal(size=60)
        scores = {"good": good, "fair": good + rng.normal(size=60)}
        display = ROCComparisonDisplay(*compare_scores(y, scores), list(scores))
        step, error = display.difference("good", "fair")
        areas.append(display.auc[0])
        variances.append(display.covariance[0, 0])
        steps.append(step)
        step_variances.append(error**2)
    # a variance from 600 draws is known to 6 per cent: five deviations
    assert np.mean(variances) / np.var(areas, ddof=1) == pytest.approx(1.0, abs=0.3)
    ratio = np.mean(step_variances) / np.var(steps, ddof=1)
    assert ratio == pytest.approx(1.0, abs=0.3)


def test_differences_are_paired(rng):
    y, scores = some_scores(rng)
    scores["good again"] = 3.0 * scores["good"] - 1.0
    display = ROCComparisonDisplay.from_predictions(y, scores)
    step, error = display.difference("good again", "good")
    assert step == 0.0 and error < 1e-8
    forth, back = (
        display.difference("good", "fair"),
        display.difference("fair", "good"),
    )
    assert forth == (-back[0], pytest.approx(back[1]))
    assert forth[0] == pytest.approx(display.auc[0] - display.auc[1])
    # scores that go together: less than for independent ones
    assert forth[1] < np.hypot(*display.standard_error[:2])
    with pytest.raises(ValueError, match="'bad' is not a curve"):
        display.difference("good", "bad")


def test_the_positive_class_can_be_either(rng):
    X, y = blobs(rng)
    model = MEDGaussianClassifier(percentile=50).fit(X, y)
    scores = {"f": model.decision_function(X)}
    upper = ROCComparisonDisplay.from_predictions(y, scores)
    lower = ROCComparisonDisplay.from_predictions(y, scores, pos_label="ant")
    assert upper.auc[0] == pytest.approx(1.0 - lower.auc[0])
    for label in (None, "ant", "bee"):
        display = ROCComparisonDisplay.from_estimators(
            {"m": model, "p": Perceptron(random_state=0).fit(X, y)},
            X,
            y,
            pos_label=label,
        )
        # an estimator's scores are turned to the positive class
        assert display.auc[0] == pytest.approx(upper.auc[0])


def test_one_class_of_three_and_outlier_detectors(rng):
    X, y = blobs(rng, 90, classes=3)
    model = MEDGaussianClassifier(percentile=50).fit(X, y)
    two = y != "cat"
    display = ROCComparisonDisplay.from_estimators({"m": model}, X[two], y[two])
    expected = roc_auc_score(y[two] == "bee", model.decision_function(X[two])[:, 1])
    assert display.auc[0] == pytest.approx(expected)
    detector = MEDOutlierDetector().fit(X[y == "ant"])
    normal = np.where(y == "ant", 1, -1)
    display = ROCComparisonDisplay.from_estimators({"d": detector}, X, normal)
    expected = roc_auc_score(normal, detector.score_samples(X))
    assert display.auc[0] == pytest.approx(expected)


def test_classifiers_with_probabilities_only_are_taken(rng):
    X, y = blobs(rng, 90, classes=3)
    codes = np.digitize(X, [-1.0, 0.0, 1.0, 2.0])
    two = y != "cat"
    models = {
        "trees": ChowLiuClassifier().fit(codes, y),
        "naive": GaussianNB().fit(codes, y),
        "logistic": LogisticRegression().fit(codes, y),
    }
    draw = ROCComparisonDisplay.from_estimators
    auto = draw(models, codes[two], y[two])
    chance = draw(models, codes[two], y[two], response_method="predict_proba")
    for k, (name, model) in enumerate(models.items()):
        p = model.predict_proba(codes[two])[:, 1]
        expected = roc_auc_score(y[two] == "bee", p)
        assert chance.auc[k] == pytest.approx(expected)
        if name != "logistic":  # which has a decision function
            assert auto.auc[k] == pytest.approx(expected)
    f = models["logistic"].decision_function(codes[two])[:, 1]
    assert auto.auc[2] == pytest.approx(roc_auc_score(y[two] == "bee", f))
    render(auto)


def test_regions_of_probabilities_have_no_margin_lines(rng):
    X, y = blobs(rng)
    models = {
        "naive": GaussianNB().fit(X, y),
        "logistic": LogisticRegression().fit(X, y),
        "med": MEDClassifier(C=2.0, margin="logistic").fit(X, y),
        "svc": SVC().fit(X, y),
    }
    draw = BoundaryComparisonDisplay.from_estimators
    display = draw(models, X, y, grid_resolution=30)
    for part, model in zip(display.displays, models.values(), strict=True):
        grid = np.c_[part.xx0.ravel(), part.xx1.ravel()]
        wins = model.classes_[part.response.reshape(-1, 2).argmax(axis=1)]
        assert np.array_equal(wins, model.predict(grid))
    del models["svc"]
    shown = draw(models, X, y, grid_resolution=30, response_method="predict_proba")
    for part, model in zip(shown.displays, models.values(), strict=True):
        grid = np.c_[part.xx0.ravel(), part.xx1.ravel()]
        p = model.predict_proba(grid)
        np.testing.assert_allclose(
            part.response.reshape(-1, 2)[:, 1], p[:, 1] - p[:, 0]
        )
        assert part.level == 0.0 and part.margin_lines_ == []
    render(shown)


def test_curves_are_drawn_with_their_areas(rng, pyplot):
    y, scores = some_scores(rng)
    _, ax = pyplot.subplots()
    display = ROCComparisonDisplay.from_predictions(y, scores)
    display.plot(ax, max_false_positive=0.2)
    assert display.ax_ is ax and ax.get_xlim()[1] < 0.21
    for k, line in enumerate(display.lines_):
        np.testing.assert_array_equal(line.get_data(), display.curves[k])
    text = display.legend_.get_texts()[1].get_text()
    assert text.startswith(f"fair\nAUC {display.auc[1]:.4f} ±")
    assert text.endswith(f"{display.standard_error[1]:.4f}")
    render(display)
    with pytest.raises(ValueError, match=r"max_false_positive=0 must be in \(0, 1\]"):
        display.plot(max_false_positive=0)


def test_wrong_scores_are_refused(rng):
    y, scores = some_scores(rng)
    make = ROCComparisonDisplay.from_predictions
    cases = [
        (y, {}, {}, "scores must be a dict"),
        (y, scores["good"], {}, "scores must be a dict"),
        (y, {"a": scores["good"][1:]}, {}, r"'a'\] has shape \(199,\), but y has 200"),
        (y, {"a": np.where(y, np.nan, 0.0)}, {}, r"'a'\] contains NaN"),
        (np.zeros(200), scores, {}, "y has 1 different labels"),
        (np.arange(200) % 3, scores, {}, "y has 3 different labels"),
        (np.c_[y, y], scores, {}, "must be a vector of labels"),
        (y, scores, {"pos_label": 7}, "pos_label=7 is not a label of y"),
        (np.arange(200) == 5, scores, {}, "two rows of each class"),
    ]
    for labels, wrong, options, message in cases:
        with pytest.raises(ValueError, match=message):
            make(labels, wrong, **options)
    X, names = blobs(rng)
    fit = ROCComparisonDisplay.from_estimators
    model = MEDGaussianClassifier(percentile=50).fit(X, names)
    with pytest.raises(ValueError, match="estimators must be a dict"):
        fit(model, X, names)
    match = r"estimators\['scaler'\]=.*none of decision_function, predict_proba, score_"
    with pytest.raises(ValueError, match=match):
        fit({"scaler": StandardScaler().fit(X)}, X, names)
    with pytest.raises(ValueError, match="has no predict_proba; use response_method="):
        fit(
            {"p": Perceptron().fit(X, names)}, X, names, response_method="predict_proba"
        )
    with pytest.raises(ValueError, match="response_method='predict' is not known"):
        fit({"m": model}, X, names, response_method="predict")
    with pytest.raises(ValueError, match=r"classes \['ant', 'bee'\], without pos_lab"):
        fit({"m": model}, X, np.where(names == "ant", 0, 1))


# ------------------------------------------------------------------ log-likelihoods


def test_histograms_hold_every_row_and_the_level(rng):
    X = rng.integers(0, 3, size=(80, 4)) * (rng.random((80, 4)) < 0.4)
    prior = DirichletProduct(1.0, [3] * 4)
    detector = MEDOutlierDetector(prior).fit(X)
    posterior = prior.posterior(X)
    models = {"Bayes": posterior, "MED": detector}
    display = LogLikelihoodDisplay.from_models(models, X).plot(bins=12)
    assert display.counts_.shape == (2, 12)
    assert (display.counts_.sum(axis=1) == len(X)).all()
    assert display.level == [None, detector.level_]
    for k, expected in enumerate(
        (posterior.expected_log_prob(X), detector.score_samples(X))
    ):
        assert np.array_equal(display.scores[k], expected)
        counts = np.histogram(expected, display.edges_)[0]
        assert np.array_equal(display.counts_[k], counts)
        assert np.array_equal(display.patches_[k].get_data().values, counts)
    assert display.edges_[0] == min(s.min() for s in display.scores)
    texts = [text.get_text() for text in display.legend_.get_texts()]
    least = f"least {display.scores[1].min():.1f}, sd {display.scores[1].std():.2f}"
    assert texts[1] == f"MED\n{least}"
    assert texts[2] == f"level of MED {detector.level_:.1f}"
    assert display.ax_.get_yscale() == "log"
    render(display)
    assert display.plot(log=False).ax_.get_yscale() == "linear"


def test_scores_that_are_known_are_drawn(pyplot):
    _, ax = pyplot.subplots()
    scores = {"a": [-1.0, -2.0, -2.0], "b": [-1.5]}
    display = LogLikelihoodDisplay.from_scores(scores).plot(ax, bins=2)
    assert display.ax_ is ax and display.level is None
    assert display.counts_.tolist() == [[2, 1], [0, 1]]
    render(display)
    render(LogLikelihoodDisplay.from_scores({"equal": [-1.0, -1.0]}).plot())


def test_wrong_log_likelihoods_are_refused(rng):
    for wrong in ({}, [1.0]):
        with pytest.raises(ValueError, match="scores must be a dict"):
            LogLikelihoodDisplay.from_scores(wrong)
    for values in ([], [[1.0]], [np.nan], [-np.inf]):
        with pytest.raises(
            ValueError, match=r"scores\['a'\]=.* must be a vector of fi"
        ):
            LogLikelihoodDisplay.from_scores({"a": values})
    with pytest.raises(ValueError, match="models must be a dict"):
        LogLikelihoodDisplay.from_models([], [[0.0]])
    match = (
        r"models\['a'\]=StandardScaler\(\) has neither score_samples nor expected_lo"
    )
    with pytest.raises(ValueError, match=match):
        LogLikelihoodDisplay.from_models({"a": StandardScaler()}, [[0.0]])
    match = r"models\['a'\]=<class .*GaussianMixture'> has neither"
    with pytest.raises(ValueError, match=match):
        LogLikelihoodDisplay.from_models({"a": GaussianMixture}, [[0.0]])
    with pytest.raises(ValueError, match=r"level\['b'\] has no scores"):
        LogLikelihoodDisplay.from_scores({"a": [0.0]}, level={"b": 0.0})
    for level in ([0.0, 1.0], "low", np.nan):
        with pytest.raises(ValueError, match=r"level=.* must be"):
            LogLikelihoodDisplay([np.zeros(3)], ["a"], level=level)


def test_each_model_has_its_own_level(pyplot):
    _, ax = pyplot.subplots()
    scores = {"a": [-1.0, -2.0, -2.0], "b": [-1.5, -3.0], "c": [-1.0]}
    levels = {"a": -1.75, "c": -2.5}
    display = LogLikelihoodDisplay.from_scores(scores, level=levels, ax=ax)
    assert display.level == [-1.75, None, -2.5]
    drawn = [(x.get_xdata()[0], x.get_color()) for x in display.level_lines_]
    colours = [patch.get_edgecolor() for patch in display.patches_]
    assert [x for x, _ in drawn] == [-1.75, -2.5]
    for (_, ink), patch in zip(drawn, (colours[0], colours[2]), strict=True):
        assert to_rgba(ink) == patch
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert texts[1] == "level of a -1.8" and texts[-1] == "level of c -2.5"
    common = LogLikelihoodDisplay.from_scores(scores, level=-2)
    assert common.level == -2.0 and len(common.level_lines_) == 1
    assert common.legend_.get_texts()[-1].get_text() == "level -2.0"
    render(common)
