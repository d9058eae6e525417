"""The benchmarks' own arithmetic: a race is worth what its yardstick is worth."""

import importlib.util
import pathlib
import sys

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from maxent import MEDClassifier

HOME = pathlib.Path(__file__).resolve().parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(
    not HOME.is_dir(), reason="the benchmarks are not beside the tests"
)


def load(path, monkeypatch):
    """A benchmark file as a module, its folder on the path while it loads."""
    file = HOME / path
    monkeypatch.syspath_prepend(str(file.parent))
    name = f"benchmark_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)  # dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def measures(monkeypatch):
    return load("peers/_measures.py", monkeypatch)


@pytest.fixture
def overlapping(rng):
    """Two overlapping classes, labels -1 and +1."""
    X = rng.normal(size=(120, 3))
    return X, np.where(X[:, 0] + rng.normal(size=120) > 0, 1.0, -1.0)


def quality(measures, model, X, y, sharpness=None):
    return measures.rbf_machine_quality(model, X, y, 5.0, 0.4, sharpness)


def test_gap_and_objective_agree_with_the_certificate(measures, overlapping):
    X, y = overlapping
    model = MEDClassifier(C=5.0, gamma=0.4, sharpness=8.0, tol=1e-3).fit(X, y)
    found = quality(measures, model, X, y, 8.0)
    scale = 1.0 + model.objective_
    assert found.objective == pytest.approx(model.objective_, rel=1e-12)
    assert found.relative_gap == pytest.approx(model.duality_gap_ / scale, abs=1e-12)


@pytest.mark.parametrize("shift", [-0.3, 0.3])
def test_a_worse_bias_or_multiplier_shows(measures, overlapping, shift):
    X, y = overlapping
    model = MEDClassifier(C=5.0, gamma=0.4, sharpness=8.0, tol=1e-8).fit(X, y)
    good = quality(measures, model, X, y, 8.0)
    assert 0 <= good.violation < 1e-5
    assert abs(good.relative_gap) < 1e-8
    model.intercept_ += shift
    assert quality(measures, model, X, y, 8.0).relative_gap > 1e-3
    model.intercept_ -= shift
    model.dual_coef_ *= 1.0 + 0.1 * shift
    assert quality(measures, model, X, y, 8.0).violation > 1e-3


def test_hinge_machines_of_both_libraries_measure_alike(measures, overlapping):
    X, y = overlapping
    theirs = SVC(C=5.0, gamma=0.4, tol=1e-6).fit(X, y)
    ours = MEDClassifier(C=5.0, gamma=0.4, margin="hinge", tol=1e-6).fit(X, y)
    a, b = (quality(measures, model, X, y) for model in (theirs, ours))
    assert a.violation < 1e-5
    assert abs(a.relative_gap) < 1e-5
    assert a.objective == pytest.approx(b.objective, rel=1e-5)
    # stopped early, the violation is what it was asked for and shows in the gap
    early = quality(measures, SVC(C=5.0, gamma=0.4, tol=0.3).fit(X, y), X, y)
    assert 1e-3 < early.violation < 0.31
    assert early.relative_gap > a.relative_gap


def test_labels_mixed_up_are_noticed(measures, overlapping):
    X, y = overlapping
    model = SVC(C=5.0, gamma=0.4).fit(X, y)
    with pytest.raises(AssertionError, match="wrong sign"):
        quality(measures, model, X, -y)


def test_two_points_by_hand(measures):
    """x = -1, +1: hard margin at lam = 1/2, f = x; dual 1/2 = primal."""
    y = np.array([-1.0, 1.0])
    lam = np.array([0.5, 0.5])
    found = measures.binary_quality(y, lam, y, 0.0, C=1.0)
    assert (found.violation, found.relative_gap, found.objective) == (0.0, 0.0, 0.5)
    # at lam = 0 each row asks for one unit: v = +1 and -1, primal 2, dual 0
    found = measures.binary_quality(y, 0 * lam, 0 * y, 0.0, C=1.0)
    assert (found.violation, found.relative_gap, found.objective) == (2.0, 2.0, 0.0)


@pytest.mark.parametrize("tol", [1e-2, 1e-6])
def test_joint_gap_agrees_with_the_certificate(measures, rng, tol):
    X = rng.normal(size=(60, 2))
    X[:15], X[15:30] = X[:15] + 2, X[15:30] - 2
    codes = np.repeat([0, 1, 2, 2], 15)
    model = MEDClassifier(
        C=4.0, gamma=0.5, sharpness=6.0, multi_class="joint", tol=tol
    ).fit(X, codes)
    coefficients = np.zeros((60, 3))
    coefficients[model.support_] = model.dual_coef_.T
    f = measures.rbf_values(X, model.support_, model.dual_coef_.T, 0.5)
    found = measures.joint_quality(codes, coefficients, f, model.intercept_, 4.0, 6.0)
    expected = model.duality_gap_ / (1.0 + model.objective_)
    assert found == pytest.approx(expected, abs=1e-12)
    worse = model.intercept_ + np.array([0.5, 0.0, -0.5])
    assert measures.joint_quality(codes, coefficients, f, worse, 4.0, 6.0) > 1e-3


@pytest.mark.parametrize("kind", ["exponential", "hinge", "logistic"])
def test_linear_primal_and_dual_meet(measures, overlapping, rng, kind):
    X, y = overlapping
    model = MEDClassifier(
        "linear", 2.0, margin=kind, sharpness=7.0, bias=1.0, tol=1e-7
    ).fit(X, y)
    w, b = model.coef_[0], model.intercept_[0]
    lam = np.zeros(len(y))
    lam[model.support_] = y[model.support_] * model.dual_coef_[0]
    primal = measures.linear_primal(X, y, w, b, 2.0, kind, 7.0)
    dual = measures.linear_dual(X, y, lam, 2.0, kind, 7.0)
    assert dual == pytest.approx(model.objective_, rel=1e-12)
    # the primal point is the one the certificate is about, up to rounding
    gap = 1e-7 * (1.0 + model.objective_)
    assert -1e-9 < primal - dual <= gap + 1e-9
    # any other point is worse, and any other multipliers bound it from below
    worse = measures.linear_primal(X, y, w, b + 0.5, 2.0, kind, 7.0)
    assert worse > primal + 1e-3
    lam = rng.uniform(0.0, 1.9, size=len(y))
    assert measures.linear_dual(X, y, lam, 2.0, kind, 7.0) < primal - 1e-3


def test_gradient_is_one_at_zero_and_vanishes_at_the_optimum(measures, overlapping):
    X, y = overlapping
    at_zero = measures.logistic_gradient(X, y, np.zeros(3), 0.0, 2.0)
    assert at_zero == pytest.approx(1.0)
    model = LogisticRegression(C=2.0, solver="newton-cholesky", tol=1e-10).fit(X, y)
    w, b = model.coef_[0], model.intercept_[0]
    assert measures.logistic_gradient(X, y, w, b, 2.0) < 1e-9
    assert measures.logistic_gradient(X, y, w, b, 3.0) > 1e-3


def test_equal_accuracy_finds_the_loosest_settings(monkeypatch):
    linear = load("peers/linear.py", monkeypatch)
    for needed in (3e-5, 0.02, 7.0):
        tol = linear.equal_tolerance(lambda tol: tol, needed, 0.1)
        assert needed / 1.4 < tol <= needed
    for needed in (1, 2, 37, 100):
        assert linear.fewest_passes(lambda k: 1 / k if k else 2, 1 / needed, 100) == (
            needed
        )


def test_a_race_alternates_and_keeps_the_last_results(monkeypatch):
    race = load("peers/_race.py", monkeypatch)
    # all that the tests hold is no garbage of a contestant
    monkeypatch.setattr(race.gc, "collect", lambda: None)
    order = []

    def runner(name):
        def call():
            order.append(name)
            return f"{name}{len(order)}"

        return call

    outcome = race.race(runner("a"), runner("b"), pairs=3)
    assert "".join(order) == "abbaab"
    assert (outcome.ours.result, outcome.peer.result) == ("a5", "b6")
    outcome.ours.seconds, outcome.peer.seconds = [1.0, 4.0, 9.0], [2.0, 2.0, 2.0]
    assert outcome.ratios == [0.5, 2.0, 4.5]
    outcome.ours.cpu_seconds, outcome.peer.cpu_seconds = [1.0, 3.0, 9.0], [2.0] * 3
    columns = outcome.columns
    assert (columns["ratio"], columns["cpu ratio"]) == ("2.000", "1.500")
    assert columns["cpu/wall"] == "0.75 1.00"


def test_fingerprints_ignore_the_sixth_digit_and_show_the_fifth(monkeypatch, rng):
    common = load("suite/common.py", monkeypatch)
    for value in rng.uniform(1.0, 9.9, size=20).round(4):
        exact = common.fingerprint(value)
        assert common.fingerprint(value * (1 + 1e-6)) == exact
        others = {common.fingerprint(value + k * 1e-4) for k in range(1, 9)}
        assert len(others | {exact}) > 4
