"""Displays of kernel matrices and of kernels over horizons."""

import numpy as np
import pytest
from drawings import render
from models.sequence_cases import random_hmm
from refusals import refusals

from maxent.displays import GramDisplay, HorizonDisplay
from maxent.families import Poisson
from maxent.kernels import ProductKernel, product_kernel


def test_classes_stand_together_and_the_spectrum_is_that_of_the_matrix(rng):
    P = Poisson(rng.uniform(0.5, 9.0, size=12))
    y = np.array(["b", "a", "c"])[np.arange(12) % 3]
    display = GramDisplay.from_models(P, y=y, rho=1.0).plot(cmap="gray")
    K = product_kernel(P, rho=1.0, normalize=True)
    assert (np.diff(np.searchsorted(["a", "b", "c"], y[display.order])) >= 0).all()
    shown = display.image_.get_array()
    np.testing.assert_array_equal(shown, K[np.ix_(display.order, display.order)])
    assert display.image_.get_cmap().name == "gray"
    np.testing.assert_allclose(display.eigenvalues.sum(), 12.0)
    assert display.negative_ is None
    assert [t.get_text() for t in display.ax_[0].get_xticklabels()] == ["a", "b", "c"]
    render(display)


def test_eigenvalues_below_zero_are_apart(pyplot):
    _, axes = pyplot.subplots(1, 2)
    display = GramDisplay([[1.0, 2.0], [2.0, 1.0]]).plot(axes)
    np.testing.assert_allclose(display.negative_.get_ydata(), [1.0])
    render(display)
    flat = GramDisplay(np.ones((5, 5))).plot()
    assert any("4 of 5" in text.get_text() for text in flat.ax_[1].texts)
    render(flat)


def test_matrix_of_a_transformer_leaves_it_as_it_is(rng):
    X = rng.poisson(2.0, size=(9, 4)) + 1
    maker = ProductKernel()
    display = GramDisplay.from_estimator(maker, X, np.arange(9) % 2)
    np.testing.assert_array_equal(display.gram, ProductKernel().fit_transform(X))
    assert not hasattr(maker, "counts_")
    render(display)


def test_means_within_and_between_classes(rng, pyplot):
    P = [random_hmm(rng, 2, 3) for _ in range(6)]
    y = np.arange(6) % 2
    display = HorizonDisplay.from_models(P, range(8), y=y, rho=0.7).plot(lw=3)
    K = product_kernel(P, rho=0.7, horizon=range(8), normalize=True)
    same = (y[:, None] == y) & ~np.eye(6, dtype=bool)
    np.testing.assert_allclose(display.means["within"], K[same].mean(axis=0))
    np.testing.assert_allclose(
        display.lines_["between"].get_ydata(), K[y[:, None] != y].mean(axis=0)
    )
    assert display.lines_["within"].get_linewidth() == 3
    render(display)
    _, ax = pyplot.subplots()
    alone = HorizonDisplay.from_models(P, [0, 4], ax=ax)
    assert list(alone.lines_) == ["all"] and alone.legend_ is None
    render(alone)


def test_horizons_of_a_fitted_transformer():
    maker = ProductKernel("MarkovChain", model_params={"alphabet": "AB"})
    maker.fit(["ABAB", "AABB", "ABBA", "BBAB"])
    display = HorizonDisplay.from_estimator(maker, [1, 3], [0, 0, 1, 1])
    assert display.means["within"].shape == (2,)
    render(display)
    with pytest.raises(ValueError, match="ProductKernel has no models of sequences"):
        HorizonDisplay.from_estimator(ProductKernel().fit([[1, 2]]), [1])


test_bad_input = refusals(
    [
        (lambda: GramDisplay([[1.0, 2.0]]), "K"),
        (lambda: GramDisplay(np.eye(2), y=[1]), r"y has shape \(1,\)"),
        (lambda: GramDisplay.from_estimator(3, []), "estimator=3 has no method"),
        (lambda: HorizonDisplay([2, 1], np.ones((2, 2, 2))), "must be numbers that"),
        (lambda: HorizonDisplay([1], np.ones((2, 2, 2))), "kernels has shape"),
        (lambda: HorizonDisplay([1], np.ones((2, 2, 1)), y=[0]), "y has shape"),
        (lambda: HorizonDisplay([1], np.ones((2, 2, 1)), y=[0, 0]), "no pair"),
    ]
)
