"""Paths over C as drawn: what the solutions say."""

import numpy as np
import pytest
from drawings import blobs, render
from sklearn.metrics.pairwise import rbf_kernel

from maxent import MEDClassifier
from maxent.discrimination import (
    ExponentialMargin,
    HingeMargin,
    dual_path,
)
from maxent.displays import DualPathDisplay


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
