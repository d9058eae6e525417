"""Margin priors as drawn: what is shown is what was computed."""

import math
import sys

import numpy as np
import pytest
from drawings import render
from oracles import margin_priors as oracle
from problems import by_name, margin_oracle
from processes import run as run_python

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
)
from maxent.displays import MarginPriorDisplay

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
    mass = prior.density(gamma) * (half * weights).ravel()
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
    np.testing.assert_allclose(prior.density(gamma), expected, atol=1e-14)


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
