"""Partial labels of several classes: best labels, rounds, candidate sets, files."""

import warnings

import numpy as np
import pytest
from refusals import refused
from scipy.optimize import minimize
from scipy.special import softmax, xlogy
from sklearn.base import clone

from maxent import (
    MEDClassifier,
    MEDFeatureSelector,
    MEDGaussianClassifier,
    MEDPartialLabelClassifier,
    MEDTreeClassifier,
    load,
    save,
)
from maxent._optimize.rows import Rows
from maxent.discrimination import (
    ErlangMargin,
    ExponentialMargin,
    GaussianMargin,
    LaplaceMargin,
    LogisticMargin,
)
from maxent.discrimination.labels._label_costs import LabelCosts
from maxent.discrimination.labels._label_machines import KernelMachines
from maxent.discrimination.labels._label_priors import label_priors
from maxent.discrimination.labels._label_rounds import objective_of
from maxent.discrimination.labels._several_labels import SeveralCosts, SeveralMachines

PRIORS = [
    ExponentialMargin(4.0),
    ErlangMargin(2.5, 6.0),
    LaplaceMargin(3.0),
    GaussianMargin(2.0),
    LogisticMargin(1.5, 0.3),
]
ESTIMATORS = {
    "kernel": MEDClassifier(C=3.0, tol=1e-8),
    "linear": MEDClassifier("linear", bias=1.0, tol=1e-8),
    "selector": MEDFeatureSelector(0.5, threshold=0.0),
    "gaussian": MEDGaussianClassifier(prior="weak", level=2.0),
    "trees": MEDTreeClassifier(level=1.0),
}


def groups(rng, n=90, apart=4.0, m=3):
    y = np.arange(n) % m
    centres = apart * np.eye(m)
    return centres[y] + rng.normal(size=(n, m)), y


def quiet(model, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*args, **options)


def costs_of(margin, prior, weight, rng):
    n, m = prior.shape
    labels = label_priors("test", n, None, prior, weight, None, None)
    parts = [
        LabelCosts(
            Rows.of(margin, labels.weight, rng.uniform(0.5, 1.5, size=n)),
            labels.of_class(k).half_odds,
        )
        for k in range(m)
    ]
    return SeveralCosts(parts, labels)


@pytest.mark.parametrize("margin", PRIORS, ids=lambda margin: margin.name)
def test_label_probabilities_are_the_best_of_their_rows(margin, rng):
    """A general minimiser over the logarithms of the probabilities."""
    n, m = 12, 4
    prior = rng.dirichlet(np.ones(m), size=n)
    prior[4:6, 1] = 0.0
    prior[:4] = np.eye(4)
    prior /= prior.sum(axis=1, keepdims=True)
    weight = rng.uniform(0.5, 2.0, size=n)
    costs = costs_of(margin, prior, weight, rng)
    f = rng.normal(size=(n, m)) * rng.choice([0.1, 1.0, 5.0], size=(n, 1))
    found = costs.best_means(f)
    np.testing.assert_allclose(found[:4], 2.0 * prior[:4] - 1.0)
    assert (found[prior == 0] == -1.0).all()
    np.testing.assert_allclose((1.0 + found).sum(axis=1), 2.0, rtol=1e-12)
    for t in range(4, n):
        own = np.flatnonzero(prior[t])
        levels = np.array([part.rows.q[t] for part in costs.parts])
        cost = cost_of(margin, levels, prior[t], f[t])
        ends = [
            minimize(cost, start, method="Nelder-Mead", options=OPTIONS).fun
            for start in (np.zeros(len(own)), np.log(prior[t, own]))
        ]
        P = 0.5 * (1.0 + found[t])
        mine = cost(np.log(np.maximum(P[own], 1e-300)))
        assert mine <= min(ends) + 1e-7 * (1.0 + abs(min(ends)))


def cost_of(margin, levels, prior, f):
    """Cost of the probabilities softmax(theta) of the labels that a row may have."""
    own, m = np.flatnonzero(prior), len(f)
    one = Rows(margin.unit_potential, levels, np.full(m, margin.rate), np.ones(m))

    def cost(theta):
        P = np.zeros(m)
        P[own] = softmax(theta)
        loss = one.loss(levels - (2.0 * P - 1.0) * f)[0]
        return loss + xlogy(P[own], P[own] / prior[own]).sum()

    return cost


OPTIONS = {"xatol": 1e-9, "fatol": 1e-13, "maxiter": 4000, "maxfev": 8000}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_objective_never_rises(name, rng):
    X, y = groups(rng, 60, 2.0)
    if name == "trees":
        X = (X > 1.0).astype(int)
    part = np.where(rng.random(60) < 0.7, -1, y)
    part[:9] = y[:9]
    model = quiet(MEDPartialLabelClassifier(ESTIMATORS[name], max_rounds=20), X, part)
    D = model.objective_history_
    assert len(D) == 1 + 2 * model.n_iter_ and model.n_iter_ >= 1
    # machines are trained to their tolerance
    assert np.diff(D).max() <= 1e-6 * (1.0 + abs(D[0]))
    assert D[-1] < D[0]
    assert model.label_mean_.shape == (60, 3)
    np.testing.assert_allclose(model.label_mean_.sum(axis=1), -1.0, atol=1e-9)
    known = part >= 0
    np.testing.assert_array_equal(model.transduction_[known], part[known])
    assert model.decision_function(X).shape == (60, 3)


def test_the_objective_is_what_the_page_says(rng):
    X, y = groups(rng, 45, 2.0)
    part = np.where(rng.random(45) < 0.5, -1, y)
    part[:6] = y[:6]
    prior = np.full((45, 3), np.nan)
    prior[6:9] = [0.7, 0.2, 0.1]
    C, gamma = 2.0, 0.5
    model = MEDPartialLabelClassifier(
        MEDClassifier(C=C, gamma=gamma, bias=1.0, tol=1e-9, margin="gaussian"),
        class_prior=[0.2, 0.3, 0.5],
        tol=1e-5,
    )
    model = quiet(model, X, part, prior)
    P, f = 0.5 * (1.0 + model.label_mean_), model.decision_function(X)
    P0 = np.where(part[:, None] >= 0, np.eye(3)[part], [0.2, 0.3, 0.5])
    P0[6:9] = [0.7, 0.2, 0.1]
    short = np.maximum(1.0 - (2.0 * P - 1.0) * f, 0.0)
    total = C * (0.5 * short**2).sum()
    total += C * (xlogy(P, P) - xlogy(P, np.where(P0 > 0, P0, 1.0))).sum()
    K = np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))
    for machine in model.estimators_:
        a = np.zeros(45)
        a[machine.support_] = machine.dual_coef_[0]
        total += 0.5 * a @ K @ a + 0.5 * machine.intercept_[0] ** 2
    assert model.objective_ == pytest.approx(total, rel=1e-6)


def test_known_labels_give_a_machine_of_each_class(rng):
    X, y = groups(rng)
    model = MEDPartialLabelClassifier(MEDClassifier(tol=1e-9)).fit(X, y)
    plain = [MEDClassifier(tol=1e-9).fit(X, y == k) for k in range(3)]
    total = sum(one.objective_ for one in plain)
    assert model.objective_ == pytest.approx(total, rel=1e-6)
    want = np.column_stack([one.decision_function(X) for one in plain])
    np.testing.assert_allclose(model.decision_function(X), want, atol=1e-4)


def test_groups_apart_are_named_by_a_few_labels(rng, tmp_path):
    X, y = groups(rng, 120, 8.0, 4)
    names = np.array(["ash", "beech", "fir", "oak"], dtype=object)
    part = np.full(120, -1, dtype=object)
    part[:4] = names[y[:4]]
    machine = MEDPartialLabelClassifier(
        MEDClassifier("linear", C=1.0, tol=1e-6), tol=1e-4
    )
    model = quiet(machine, X, part)
    assert (model.transduction_ == names[y]).all()
    assert model.score(X, names[y]) == 1.0
    assert not hasattr(model, "predict_proba")
    order = rng.permutation(120)
    again = quiet(clone(model), X[order], part[order])
    np.testing.assert_allclose(again.label_mean_, model.label_mean_[order], atol=1e-2)
    save(model, tmp_path / "m.npz")
    back = load(tmp_path / "m.npz")
    np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))


def test_rows_that_know_what_they_are_not(rng):
    """Candidate sets: every row names two of three classes, one of them right."""
    X, y = groups(rng, 150, 4.0)
    other = (y + rng.integers(1, 3, size=150)) % 3
    prior = np.zeros((150, 3))
    prior[np.arange(150), y] = prior[np.arange(150), other] = 0.5
    prior[:3] = np.eye(3)[y[:3]]
    model = quiet(MEDPartialLabelClassifier(), X, None, prior)
    never = np.argmax(prior == 0, axis=1)
    assert (model.transduction_ != never).all()
    assert (model.label_mean_[prior == 0] == -1.0).all()
    assert (model.transduction_ == y).mean() > 0.9


def test_more_starts_and_weights(rng):
    X, y = groups(rng, 40, 1.5)
    part = np.where(np.arange(40) < 9, y, -1)
    weight = np.where(np.arange(40) % 5, 1.0, 0.0)
    weight[:9] = 1.0
    model = MEDPartialLabelClassifier(n_init=4, random_state=0)
    fitted = quiet(model, X, part, sample_weight=weight)
    assert fitted.objective_ == fitted.objectives_.min()
    inside = weight > 0
    alone = quiet(clone(model), X[inside], part[inside])
    np.testing.assert_array_equal(fitted.label_mean_[inside], alone.label_mean_)
    np.testing.assert_allclose(fitted.label_mean_[~inside], -1.0 / 3.0)


def test_the_penalty_is_that_of_all_machines(rng):
    X, y = groups(rng, 30, 2.0)
    part = np.where(np.arange(30) < 12, y, -1)
    labels = label_priors("test", 30, part, None, None, None, None)
    machine = MEDClassifier(tol=1e-9)
    machine._validated(X, part)
    machines = SeveralMachines(KernelMachines, machine, X, labels)
    state = machines.train(labels.evidence)
    assert objective_of(machines.costs, state, labels.evidence) > 0
    assert state.gap >= 0 and state.penalty > 0


def test_losses_with_a_kink_are_refused(rng):
    X, y = groups(rng, 12)
    y[6:] = -1
    model = MEDPartialLabelClassifier(MEDClassifier(margin="hinge"))
    refused(lambda: model.fit(X, y), "margin='hinge'.*sharpness")


def test_the_joint_problem_is_for_two_classes(rng):
    X, y = groups(rng, 12)
    y[6:] = -1
    model = MEDPartialLabelClassifier(MEDClassifier(bias=1.0), method="exact")
    refused(lambda: model.fit(X, y), "method='exact' is for two classes.*3")


@pytest.mark.parametrize("bias", ["flat", 2.0, None])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_direct_minimisation_ends_where_nothing_falls(kernel, bias, rng):
    X, y = groups(rng, 60, 3.0)
    part = np.where(np.arange(60) < 12, y, -1)
    machine = MEDClassifier(kernel, bias=bias, tol=1e-8)
    model = quiet(MEDPartialLabelClassifier(machine, method="direct"), X, part)
    rounds = quiet(MEDPartialLabelClassifier(machine, tol=1e-4), X, part)
    D = model.objective_history_
    assert np.diff(D).max() <= 1e-6 * (1.0 + D[0])
    assert model.converged_ and rounds.converged_
    assert D[-1] <= 1.2 * rounds.objective_


@pytest.mark.parametrize(
    "shares", [0.3, [0.5, 0.5], [0.5, 0.6, 0.2], [1.0, 0.0, 0.0], "half"]
)
def test_wrong_shares_of_classes_are_named(shares, rng):
    X, y = groups(rng, 12)
    y[6:] = -1
    model = MEDPartialLabelClassifier(class_prior=shares)
    refused(lambda: model.fit(X, y), "class_prior=")
