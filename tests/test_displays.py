"""Displays: what is drawn is what was computed, and wrong use is one sentence."""

import io
import math
import sys

import numpy as np
import pytest
from oracles import margin_priors as oracle
from problems import by_name, margin_oracle
from processes import run as run_python
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxent import MEDClassifier, MEDFeatureSelector, MEDRegressor
from maxent.discrimination import (
    CustomMargin,
    ErlangMargin,
    ExponentialMargin,
    FixedMargin,
    GaussianMargin,
    HingeMargin,
    LaplaceMargin,
    LogisticMargin,
    UniformExponentialMargin,
    dual_path,
)
from maxent.displays import DualPathDisplay, MarginPriorDisplay, MEDBoundaryDisplay
from maxent.displays.margin_prior import prior_density

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def pyplot():
    """Matplotlib without a window, and without figures left behind."""
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    yield plt
    plt.close("all")


def render(display):
    """Draw for real: missing glyphs and failed layouts become warnings, so errors."""
    stream = io.BytesIO()
    display.figure_.savefig(stream, format="png", dpi=40)
    assert len(stream.getvalue()) > 1000


def blobs(rng, n=80, classes=2):
    y = np.arange(n) % classes
    centres = np.array([[0.0, 0.0], [1.6, 0.5], [0.2, 2.2]])[:classes]
    return centres[y] + rng.normal(size=(n, 2)), np.array(["ant", "bee", "cat"])[y]


# -------------------------------------------------------------------- margin priors

WITH_DENSITY = [
    ExponentialMargin(5.0, 1.0),
    ErlangMargin(3, 4.0, 0.5),
    LaplaceMargin(5.0, 1.0),
    GaussianMargin(2.0, -0.3),
    UniformExponentialMargin(0.3, 6.0),
    LogisticMargin(2.0, 0.4),
]


@pytest.mark.parametrize("prior", WITH_DENSITY, ids=by_name)
def test_density_and_potential_belong_together(prior):
    # -log of the Laplace transform of the density that is drawn
    left, right = prior.level - 40 / prior.rate, prior.level + 400 / prior.rate
    middle = [prior.level, prior.level - getattr(prior, "width", 0.0)]
    edges = np.unique(np.r_[np.linspace(left, right, 2000), middle])
    nodes, weights = np.polynomial.legendre.leggauss(8)
    half = 0.5 * np.diff(edges)[:, None]
    gamma = (edges[:-1, None] + half * (nodes + 1)).ravel()
    mass = prior_density(prior, gamma) * (half * weights).ravel()
    for u in (0.1, 0.3, 0.5):
        lam = u * prior.rate
        found = -math.log(mass @ np.exp(-lam * gamma))
        assert found == pytest.approx(prior.potential(lam), abs=2e-6)


# the oracle has no elementary density of the logistic prior
@pytest.mark.parametrize("prior", WITH_DENSITY[:-1], ids=by_name)
def test_densities_match_the_oracle(prior):
    gamma = np.linspace(-2.0, 2.5, 57) + 1e-3
    (kind, *parameters), shift = margin_oracle(prior)
    expected = oracle.density(kind, gamma - shift, *parameters)
    np.testing.assert_allclose(prior_density(prior, gamma), expected, atol=1e-14)


@pytest.mark.parametrize("C", [None, 2.0])
def test_losses_drawn_are_the_conjugates_of_the_potentials_drawn(C):
    priors = [ExponentialMargin(5.0), LaplaceMargin(5.0), LogisticMargin(3.0, 0.5)]
    priors += [HingeMargin(1.5), ErlangMargin(2, 8.0)]
    display = MarginPriorDisplay(priors, C=C).plot(parts=["potential", "loss"])
    for j in range(len(priors)):
        lam, phi = display.lines_[0, j].get_data()
        m, loss = display.lines_[1, j].get_data()
        inside = np.isfinite(phi)
        lam, phi = lam[inside], phi[inside]
        conjugate = np.max(phi - lam * m[:, None], axis=1)
        # the grid misses the maximum by its spacing, and the end of an open domain
        slack = (lam[1] - lam[0]) * (np.abs(m).max() + 8.0)
        assert (conjugate <= loss + 1e-9).all()
        assert (loss - conjugate).max() < slack
    render(display)


def test_potentials_are_the_corrected_ones():
    display = MarginPriorDisplay().plot()
    kinds = ("exponential", "laplace", "gaussian")
    assert [p.name for p in display.priors] == list(kinds)
    for j, kind in enumerate(kinds):
        lam, phi = display.lines_[1, j].get_data()
        k = int(np.argmin(np.abs(lam - 4.0)))
        expected = oracle.phi(kind, lam[k], level=1.0, rate=5.0)
        assert phi[k] == pytest.approx(expected, rel=1e-9)
    assert display.ax_.shape == (3, 3)
    assert display.figure_ is display.ax_[0, 0].figure


def test_fixed_hinge_and_custom_priors_are_drawn():
    custom = CustomMargin(
        lambda lam: lam + math.log1p(-lam / 5.0),
        lambda lam: 1.0 - 1.0 / (5.0 - lam),
        lambda lam: 1.0 / (5.0 - lam) ** 2,
        upper=5.0,
    )
    display = MarginPriorDisplay([custom, FixedMargin(), HingeMargin()]).plot()
    texts = [[t.get_text() for t in ax.texts] for ax in display.ax_[0]]
    assert texts == [["not known"], [], ["a limit,\nnot a prior"]]
    assert display.lines_[0, 0] is None and display.lines_[0, 2] is None
    render(display)
    render(MarginPriorDisplay([FixedMargin(2.0)]).plot())


@pytest.mark.parametrize(
    "estimator, prior, slope",
    [
        (MEDClassifier(C=3.0), ExponentialMargin(10.0), 3.0),
        (MEDClassifier(C=3.0, margin="hinge"), HingeMargin(), 3.0),
        (MEDRegressor(C=3.0, epsilon=0.2), ExponentialMargin(10.0, -0.2), 3.0),
        (MEDFeatureSelector(C=0.5, sharpness=4.0), ExponentialMargin(4.0), 0.5),
    ],
)
def test_the_prior_of_an_estimator_is_shown_at_its_C(estimator, prior, slope):
    display = MarginPriorDisplay.from_estimator(estimator)
    assert display.priors == [prior] and display.C == estimator.C
    display.plot(parts=["potential"])
    lam, phi = display.lines_[0, 0].get_data()
    assert lam[np.isfinite(phi)].max() == pytest.approx(slope, rel=2e-3)
    render(display)


def test_losses_start_where_the_black_dots_are():
    display = MarginPriorDisplay(C=1.0).plot(parts=["loss"])
    for prior, ax in zip(display.priors, display.ax_[0], strict=True):
        (dot,) = [x for x in ax.lines if x.get_label() == "prior mean"]
        assert dot.get_data()[0][0] == prior.prior_mean
        m, loss = ax.lines[-2].get_data()
        assert (loss[m > prior.prior_mean] == 0).all()
        assert (loss[m < prior.prior_mean - 1e-6] > 0).all()


def test_given_axes_are_used_in_reading_order(pyplot):
    figure, axes = pyplot.subplots(1, 4)
    priors = [ExponentialMargin(5.0), LaplaceMargin(5.0)]
    display = MarginPriorDisplay(priors).plot(axes, parts=["potential", "loss"])
    assert display.ax_.shape == (2, 2) and display.figure_ is figure
    assert display.ax_[1, 0] is axes[2]
    single = MarginPriorDisplay(priors[:1]).plot(axes[0], parts=["loss"])
    assert single.ax_[0, 0] is axes[0]
    with pytest.raises(ValueError, match="ax holds 4 Axes, but this picture needs 6"):
        MarginPriorDisplay(priors).plot(axes)


def test_wrong_priors_and_parts_are_refused():
    with pytest.raises(ValueError, match="priors is empty"):
        MarginPriorDisplay([])
    with pytest.raises(TypeError, match="'exponential' is not a MarginPrior"):
        MarginPriorDisplay(["exponential"])
    for parts in ([], ["potential", "cost"]):
        with pytest.raises(ValueError, match=r"parts=.* must be some of"):
            MarginPriorDisplay().plot(parts=parts)


# ------------------------------------------------------------------------- boundary


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
    model = MEDClassifier(C=3.0).fit(X, y)
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
    model = MEDClassifier(kernel="linear", C=3.0).fit(X, y)
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
    with pytest.raises(ValueError, match="MEDRegressor has no classes_"):
        draw(MEDRegressor().fit(X, X[:, 0]), X, y)
    gram = MEDClassifier(kernel="precomputed").fit(rbf_kernel(X), y)
    with pytest.raises(ValueError, match=r"precomputed.*named kernel"):
        draw(gram, X, y)


# ----------------------------------------------------------------------------- path


def path_problem(rng):
    X, names = blobs(rng, 70)
    y = np.where(names == "ant", -1, 1)
    train, test = slice(0, 40), slice(40, None)
    K = rbf_kernel(X, gamma=0.3)
    return X, y, K[train, train], K[test, train], train, test


def test_a_path_holds_what_the_solutions_say(rng):
    X, y, K, K_test, train, test = path_problem(rng)
    C = np.array([10.0, 0.1, 1.0])
    results = dual_path(K, y[train], ExponentialMargin(10.0), C, tol=1e-8)
    display = DualPathDisplay.from_results(
        C, results, y=y[train], K_test=K_test, y_test=y[test]
    )
    assert display.C.tolist() == [0.1, 1.0, 10.0]
    assert display.n_rows == 40
    for k, value in enumerate(display.C):
        model = MEDClassifier(gamma=0.3, C=value, tol=1e-8).fit(X[train], y[train])
        assert display.objective[k] == pytest.approx(model.objective_, rel=1e-6)
        assert display.support[k] == np.sum(results[[1, 2, 0][k]].lam > 0)
        wrong = np.mean(model.predict(X[test]) != y[test])
        assert display.error[k] == pytest.approx(wrong)
    assert (display.gap <= 1e-8).all() and display.converged.all()


def test_a_path_is_drawn_in_three_or_four_panels(rng, pyplot):
    _, y, K, K_test, train, test = path_problem(rng)
    C = np.geomspace(0.1, 10, 4)
    results = dual_path(K, y[train], ExponentialMargin(10.0), C)
    short = DualPathDisplay.from_results(C, results).plot()
    assert short.ax_.shape == (3,)
    data = {"y": y[train], "K_test": K_test, "y_test": y[test]}
    full = DualPathDisplay.from_results(C, results, **data).plot(tol=1e-6)
    assert full.ax_.shape == (4,)
    expected = [full.objective, full.support, None, 100 * full.error]
    for line, values in zip(full.lines_, expected, strict=True):
        assert np.array_equal(line.get_xdata(), C)
        if values is not None:
            assert np.array_equal(line.get_ydata(), values)
    labels = full.ax_[2].get_legend_handles_labels()[1]
    assert "tolerance" in labels and "not converged" not in labels
    for display in (short, full):
        render(display)
    _, axes = pyplot.subplots(1, 4)
    assert full.plot(axes).ax_[3] is axes[3]
    with pytest.raises(ValueError, match="ax holds 4 Axes, but this picture needs 3"):
        short.plot(axes)


def test_gaps_below_rounding_are_drawn_at_the_rounding():
    display = DualPathDisplay(
        np.array([1.0, 10.0]),
        np.array([3.0, 4.0]),
        np.array([5, 4]),
        np.array([1e-30, 1e-5]),
        converged=np.array([True, True]),
        n_rows=9,
    ).plot()
    low, high = display.lines_[2].get_ydata()
    assert 1e-16 < low < 1e-14 and high == 1e-5
    assert display.ax_[2].get_ylim()[0] < low
    assert display.ax_[2].get_legend_handles_labels()[1] == [
        "below the rounding of $J$"
    ]
    render(display)
    display.gap[1] = np.inf  # of fixed margins that are not met
    render(display.plot())


def test_solutions_that_did_not_converge_are_marked(rng):
    _, y, K, *_, train, _ = path_problem(rng)
    C = np.array([1.0, 1000.0])
    results = dual_path(
        K, y[train], HingeMargin(), C, tol=1e-12, solver="smo", max_iter=4
    )
    display = DualPathDisplay.from_results(C, results).plot()
    assert not display.converged.any()
    for ax in display.ax_:
        (crosses,) = [x for x in ax.lines if x.get_label() == "not converged"]
        assert np.array_equal(crosses.get_xdata(), C)
    render(display)


def test_wrong_paths_are_refused(rng):
    _, y, K, K_test, train, test = path_problem(rng)
    C = np.array([0.1, 1.0])
    results = dual_path(K, y[train], ExponentialMargin(10.0), C)
    make = DualPathDisplay.from_results
    with pytest.raises(ValueError, match=r"C has shape \(3,\) but there are 2 results"):
        make([1, 2, 3], results)
    with pytest.raises(ValueError, match=r"C has shape \(0,\)"):
        make([], [])
    with pytest.raises(ValueError, match="together"):
        make(C, results, y=y[train])
    with pytest.raises(ValueError, match=r"expected \(40,\), \(n_test, 40\)"):
        make(C, results, y=y[train], K_test=K_test.T, y_test=y[test])
    with pytest.raises(ValueError, match="y_test must contain -1 and \\+1 only"):
        make(C, results, y=y[train], K_test=K_test, y_test=y[test] + 1)


# --------------------------------------------------------------------------- import


def test_displays_load_matplotlib_only_to_draw():
    code = (
        "import sys, maxent\n"
        "from maxent.displays import DualPathDisplay, MarginPriorDisplay\n"
        "from maxent.displays import MEDBoundaryDisplay\n"
        "MarginPriorDisplay()\n"
        "assert 'matplotlib' not in sys.modules\n"
        "assert sorted(dir(maxent.displays)) == sorted(maxent.displays.__all__)\n"
    )
    run_python("-c", code)


def test_without_matplotlib_the_remedy_is_named(monkeypatch):
    for name in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"pip install 'maxent\[plot\]'"):
        MarginPriorDisplay().plot()


def test_unknown_displays_are_refused():
    import maxent.displays

    with pytest.raises(AttributeError, match="no attribute 'PieChart'"):
        _ = maxent.displays.PieChart
