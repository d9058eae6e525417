"""MEDPartialLabelClassifier: objective, limits, contract."""

import warnings

import numpy as np
import pandas as pd
import pytest
from refusals import refused
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold

from maxent import MEDClassifier, MEDPartialLabelClassifier
from maxent._optimize.rows import Rows
from maxent.discrimination import (
    ErlangMargin,
    ExponentialMargin,
    GaussianMargin,
    HingeMargin,
    LaplaceMargin,
    LogisticMargin,
)
from maxent.discrimination.labels._label_costs import LabelCosts
from maxent.discrimination.labels._label_machines import KernelMachines
from maxent.discrimination.labels._label_priors import label_priors

MARGINS = [
    ExponentialMargin(10.0),
    ErlangMargin(8.0),
    LaplaceMargin(5.0),
    GaussianMargin(1.0),
    LogisticMargin(2.0),
    HingeMargin(),
]


def two_clusters(rng, n=40, apart=2.0):
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 2)) + apart * (2 * y[:, None] - 1)
    return X, y


def hidden(rng, y, share=0.8):
    """Labels of which a share is hidden, two of each class kept."""
    out = np.where(rng.random(len(y)) < share, -1, y)
    for k in (0, 1):
        out[np.flatnonzero(y == k)[:2]] = k
    return out


def quiet(model, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*args, **options)


# -- the label step --------------------------------------------------------------------
@pytest.mark.parametrize("margin", MARGINS, ids=lambda m: m.name)
def test_label_means_are_the_best_on_a_grid(rng, margin):
    n = 30
    f, h = 3 * rng.normal(size=n), rng.normal(size=n) * (rng.random(n) < 0.6)
    weight = rng.uniform(0.1, 2.0, n)
    costs = LabelCosts(Rows.of(margin, weight), h)
    p = costs.best_means(f)
    prior = 1 / (1 + np.exp(-2 * h))
    grid = np.tanh(np.linspace(-8, 8, 4001))
    up, low = (1 + grid) / 2, (1 - grid) / 2
    for t in range(n):
        kl = up * np.log(up / prior[t]) + low * np.log(low / (1 - prior[t]))
        least = (margin.loss(grid * f[t]) + kl).min()
        q = np.clip(p[t], -1 + 1e-15, 1 - 1e-15)
        up_t, low_t = (1 + q) / 2, (1 - q) / 2
        found = margin.loss(q * f[t]) + up_t * np.log(up_t / prior[t])
        found += low_t * np.log(low_t / (1 - prior[t]))
        assert found <= least + 1e-9 * (1 + least)
    assert costs.least_loss(f)[0] == pytest.approx(
        costs.loss(p, f) + costs.divergence(p), rel=1e-12
    )


@pytest.mark.parametrize("margin", MARGINS[:-1], ids=lambda m: m.name)
def test_slope_of_the_least_cost_is_that_of_differences(rng, margin):
    n, e = 12, 1e-6
    f = 2 * rng.normal(size=n)
    h = np.where(np.arange(n) < 3, np.inf, rng.normal(size=n))
    costs = LabelCosts(Rows.of(margin, rng.uniform(0.5, 2.0, n)), h)
    slope = costs.least_loss(f)[1]
    for t in range(n):
        d = e * (np.arange(n) == t)
        numeric = (costs.least_loss(f + d)[0] - costs.least_loss(f - d)[0]) / (2 * e)
        assert slope[t] == pytest.approx(numeric, rel=1e-5, abs=1e-6)


# -- the objective ---------------------------------------------------------------------
def objective(model, X, y, gamma, C, sharpness):
    """D of the fitted machine, written down again from the attributes."""
    a, sv = model.estimator_.dual_coef_[0], model.estimator_.support_
    K = np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    f = K[:, sv] @ a + model.estimator_.intercept_[0]
    u = C / sharpness
    loss = ExponentialMargin(sharpness).loss(model.label_mean_ * f)
    p = np.clip(model.label_mean_[y == -1], -1 + 1e-15, 1 - 1e-15)
    kl = (1 + p) / 2 * np.log(1 + p) + (1 - p) / 2 * np.log(1 - p)
    return 0.5 * a @ K[np.ix_(sv, sv)] @ a + u * loss.sum() + u * kl.sum()


def test_objective_is_the_one_of_the_documentation(rng):
    X, y = two_clusters(rng)
    part = hidden(rng, y)
    machine = MEDClassifier(C=2.0, gamma=0.3, sharpness=5.0, tol=1e-8)
    model = MEDPartialLabelClassifier(machine).fit(X, part)
    written = objective(model, X, part, 0.3, 2.0, 5.0)
    assert model.objective_ == pytest.approx(written, rel=1e-7)
    assert len(model.objective_history_) == 1 + 2 * model.n_iter_
    assert model.objective_history_[-1] == model.objective_


@pytest.mark.parametrize("step", [0.1, 1.0, 1.8])
def test_objective_never_increases(rng, step):
    for _ in range(4):
        n = int(rng.integers(10, 60))
        X, y = two_clusters(rng, n, rng.uniform(0, 2))
        margin = MARGINS[rng.integers(len(MARGINS))]
        kernel = ("linear", "rbf", "poly")[rng.integers(3)]
        bias = ("flat", None, 2.0)[rng.integers(3)]
        machine = MEDClassifier(kernel, C=10 ** rng.uniform(-1, 1), margin=margin)
        machine.set_params(bias=bias)
        model = MEDPartialLabelClassifier(machine, step=step, max_rounds=15)
        prior = np.where(rng.random(n) < 0.5, rng.random(n), np.nan)
        weight = rng.uniform(0.2, 3.0, n)
        prior[:4] = np.nan
        quiet(model, X, hidden(rng, y), prior, weight)
        D = model.objective_history_
        assert np.diff(D).max(initial=0.0) <= 1e-12 * (1 + np.abs(D[0]))
        assert np.abs(model.label_mean_).max() <= 1


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("bias", ["flat", None, 2.0])
def test_machines_that_descend_are_what_their_multipliers_make(kernel, bias, rng):
    X, y = two_clusters(rng, 30, 0.5)
    part = hidden(rng, y)
    labels = label_priors("model", 30, part, None, None, None, None)
    estimator = MEDClassifier(kernel, bias=bias)
    machines = KernelMachines(estimator, estimator._validated(X, part)[0], labels)
    first = machines.train(labels.evidence)
    K = machines.matrix()
    found, _ = machines.descended(first, tol=1e-12, max_iter=2000)
    a, b = found.result.lam, found.result.bias
    np.testing.assert_allclose(found.f, K @ a + b, rtol=1e-4, atol=1e-4)
    prior = 0.0 if bias in ("flat", None) else b * b / bias
    assert found.penalty == pytest.approx(0.5 * (a @ K @ a + prior), rel=1e-4)
    np.testing.assert_allclose(found.p, machines.costs.best_means(found.f), atol=1e-9)
    if kernel == "linear" and first.result.coef is not None:
        w = np.ravel(found.result.coef)
        np.testing.assert_allclose(X @ w + b, found.f, atol=1e-9)
    machines.close()


def test_machines_that_descend_save_rounds(rng, monkeypatch):
    X = rng.normal(size=(300, 5))
    y = np.arange(300) % 2
    X[:, :2] += 0.8 * (2 * y[:, None] - 1)
    part = hidden(rng, y, 0.9)
    model = MEDPartialLabelClassifier()
    fast = model.fit(X, part).n_iter_, model.objective_
    assert np.diff(model.objective_history_).max() <= 0 and model.converged_
    monkeypatch.setattr(KernelMachines, "linear", False)
    slow = model.fit(X, part).n_iter_, model.objective_
    assert fast[0] <= 0.5 * slow[0] and fast[1] <= slow[1] + 0.02 * abs(slow[1])


def test_text_beside_the_number_of_no_label_is_explained():
    X = np.arange(4.0)[:, None]
    with pytest.raises(ValueError, match="label '-1'; pass an object array"):
        MEDPartialLabelClassifier().fit(X, ["a", "b", -1, -1])
    y = np.array(["a", "b", -1, -1], dtype=object)
    assert set(MEDPartialLabelClassifier().fit(X, y).classes_) == {"a", "b"}


def test_fit_is_stationary(rng):
    """No direction in the space of machines lowers the risk without label means."""
    X, y = two_clusters(rng, 30)
    part = hidden(rng, y)
    machine = MEDClassifier("linear", C=1.0, sharpness=5.0, tol=1e-10)
    model = MEDPartialLabelClassifier(machine, tol=1e-7, max_rounds=2000)
    model.fit(X, part)
    h = np.where(part == -1, 0.0, np.where(part == 1, np.inf, -np.inf))
    costs = LabelCosts(Rows.of(ExponentialMargin(5.0), np.full(30, 0.2)), h)

    def risk(x):
        value, slope = costs.least_loss(X @ x[:2] + x[2])
        gradient = np.append(x[:2] + X.T @ slope, slope.sum())
        return 0.5 * x[:2] @ x[:2] + value, gradient

    x = np.append(model.estimator_.coef_[0], model.estimator_.intercept_)
    value, gradient = risk(x)
    assert value == pytest.approx(model.objective_, rel=1e-8)
    assert np.abs(gradient).max() <= 1e-3
    assert minimize(risk, x, jac=True).fun >= value - 1e-5 * (1 + value)


# -- limits ----------------------------------------------------------------------------
@pytest.mark.parametrize("step", [0.1, 1.0])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_known_labels_give_the_plain_machine(rng, step, kernel):
    X, y = two_clusters(rng, 70, 0.7)
    weight = rng.integers(0, 3, 70)
    machine = MEDClassifier(kernel, C=3.0, tol=1e-9, class_weight="balanced")
    plain = MEDClassifier(**machine.get_params()).fit(X, y, weight)
    model = MEDPartialLabelClassifier(machine, step=step)
    model.fit(X, y, sample_weight=weight)
    scale = np.abs(plain.decision_function(X)).max()
    assert np.allclose(
        model.decision_function(X), plain.decision_function(X), atol=1e-4 * scale
    )
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-7)
    assert model.n_iter_ == 0
    assert model.converged_
    kept = weight > 0
    assert (model.transduction_[kept] == y[kept]).all()


def test_certain_probabilities_are_labels(rng):
    X, y = two_clusters(rng)
    part = hidden(rng, y)
    prior = np.where(part == -1, 0.5, part)
    one = MEDPartialLabelClassifier().fit(X, part)
    other = MEDPartialLabelClassifier().fit(X, y, prior)
    third = MEDPartialLabelClassifier().fit(X, None, np.where(part < 0, np.nan, part))
    for model in (other, third):
        assert (model.label_mean_ == one.label_mean_).all()
    assert (np.abs(one.label_mean_[part != -1]) == 1).all()


def test_first_machine_is_that_of_the_labelled_rows(rng):
    X, y = two_clusters(rng, 50, 0.5)
    part = hidden(rng, y)
    known = part != -1
    machine = MEDClassifier("linear", tol=1e-9)
    model = quiet(MEDPartialLabelClassifier(machine, max_rounds=1, step=1e-9), X, part)
    plain = MEDClassifier("linear", tol=1e-9).fit(X[known], y[known])
    first = model.objective_history_[0]
    # besides, a row without a label costs the loss of a margin of zero
    zero = 0.1 * ExponentialMargin(10.0).loss(0.0) * (~known).sum()
    assert first == pytest.approx(plain.objective_ + zero, rel=1e-6)


def test_prior_of_unlabelled_rows_leaves_the_first_machine(rng):
    X, y = two_clusters(rng, 50, 0.5)
    part = hidden(rng, y)
    machine = MEDClassifier("linear", tol=1e-9)
    first = [
        quiet(MEDPartialLabelClassifier(machine, class_prior=c, max_rounds=1), X, part)
        for c in (None, 0.8)
    ]
    even, uneven = (model.objective_history_[0] for model in first)
    kl = -0.5 * np.log(4 * 0.8 * 0.2)  # of a label mean of zero
    assert uneven - even == pytest.approx(0.1 * kl * (part == -1).sum(), rel=1e-6)


def test_unlabelled_clusters_move_the_boundary(rng):
    """From two labels, whose machine cuts both clusters; single draws may be stuck."""
    n, right = 200, []
    y = np.arange(n) % 2
    part = np.full(n, -1)
    part[:2] = y[:2]
    for _ in range(24):
        X = np.column_stack([4.0 * (2 * y - 1), np.zeros(n)])
        X += rng.normal(size=(n, 2))
        X[:2] = [[-4.0, 10.0], [4.0, -10.0]]
        machine = MEDClassifier("linear", bias=None)
        few = machine.fit(X[:2], y[:2]).predict(X)
        model = quiet(MEDPartialLabelClassifier(machine), X, part)
        right.append([(model.transduction_ == y).mean(), (few == y).mean()])
    many, two = np.mean(right, axis=0)
    assert many > two + 0.02
    assert many > 0.95


def test_wrong_labels_are_found(rng):
    X, y = two_clusters(rng, 60, 3.0)
    noisy = y.copy()
    wrong = rng.choice(60, 6, replace=False)
    noisy[wrong] = 1 - y[wrong]
    model = MEDPartialLabelClassifier(MEDClassifier("linear"))
    quiet(model, X, noisy, np.where(noisy == 1, 0.8, 0.2))
    assert (model.transduction_ == y).all()


def test_weight_zero_drops_a_row(rng):
    X, y = two_clusters(rng)
    part = hidden(rng, y)
    weight = np.where(np.arange(40) < 30, 1.0, 0.0)
    one = quiet(MEDPartialLabelClassifier(), X, part, sample_weight=weight)
    gamma = one.estimator_.gamma_
    machine = MEDClassifier(gamma=gamma)
    other = quiet(MEDPartialLabelClassifier(machine), X[:30], part[:30])
    assert np.allclose(one.label_mean_[:30], other.label_mean_, atol=1e-6)
    assert len(one.transduction_) == 40


def test_precomputed_and_callable_kernels_agree(rng):
    X, y = two_clusters(rng)
    part = hidden(rng, y)
    linear = MEDPartialLabelClassifier(MEDClassifier("linear", tol=1e-8)).fit(X, part)
    K = X @ X.T
    given = MEDPartialLabelClassifier(MEDClassifier("precomputed", tol=1e-8))
    called = MEDPartialLabelClassifier(
        MEDClassifier(lambda A, B: A @ B.T, tol=1e-8)
    ).fit(X, part)
    given.fit(K, part)
    assert np.allclose(linear.label_mean_, given.label_mean_, atol=1e-3)
    assert np.allclose(given.decision_function(K), called.decision_function(X))


# -- refusals --------------------------------------------------------------------------
X2 = np.array([[-2.0], [-1.0], [0.5], [1.0], [2.0], [3.0]])
BAD = {
    "no label": ([-1] * 6, None, r"no row of positive weight has a label"),
    "one class": ([0, 0, -1, -1, -1, -1], None, r"one class only \(\[0\]\)"),
    "signs": ([-1, -1, -1, 1, 1, 1], None, r"labels -1 and 1 must be recoded"),
    "three": ([0, 1, 2, -1, -1, -1], [0.5] * 6, r"shape \(6,\).* 3 probabilities"),
    "missing class": (None, np.eye(3)[[0, 1] * 3], r"has class 2 as its label"),
    "not one": ([0, 1, 2, 1, 2, 0], np.full((6, 3), 0.4), r"label_prior\[0\].*add up"),
    "in part": (None, [[np.nan, 0, 1]] + [[1, 0, 0]] * 5, r"NaN throughout"),
    "neither": (None, None, "the target y is None"),
    "above": ([0, 1] * 3, [0.1, 1.5, 0, 0, 1, 1], r"label_prior\[1\]=1\.5"),
    "below": ([0, 1] * 3, [-0.1, 1.0, 0, 0, 1, 1], r"label_prior\[0\]=-0\.1"),
    "short": ([0, 1] * 3, [0.5, 0.5], r"label_prior has shape \(2,\)"),
    "halves": (None, [0.5] * 6, r"nothing to start from"),
    "one side": (None, [0.6, 0.7, 0.5, np.nan, 0.9, 1.0], r"one class only \(\[1\]\)"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_labels_are_refused(case):
    y, prior, message = BAD[case]
    refused(lambda: MEDPartialLabelClassifier().fit(X2, y, prior), message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step": 0.0}, "step=0"),
        ({"step": 2.0}, r"step=2\.0"),
        ({"tol": -1}, "tol=-1"),
        ({"max_rounds": 0}, "max_rounds=0"),
        ({"class_prior": 1.0}, r"class_prior=1\.0"),
        ({"class_prior": "share"}, "class_prior='share'"),
        ({"estimator": MEDClassifier(margin="fixed")}, "allows no losses"),
        ({"estimator": MEDClassifier(C=-1)}, "C=-1"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused(options, message):
    y = [0, 0, -1, -1, 1, 1]
    refused(lambda: MEDPartialLabelClassifier(**options).fit(X2, y), message)


def test_another_estimator_is_refused():
    from sklearn.svm import SVC

    with pytest.raises(TypeError, match="cannot be trained on label means"):
        MEDPartialLabelClassifier(SVC()).fit(X2, [0, 0, -1, -1, 1, 1])


def test_drift_to_one_class_is_said(rng):
    X, _ = two_clusters(rng, 100, 0.0)
    part = np.full(100, -1)
    part[:4] = [0, 1, 0, 1]
    model = MEDPartialLabelClassifier(class_prior=1 - 1e-6)
    text = "rows without a label were given to class 1.*change class_prior.*bias=1.0"
    with pytest.warns(UserWarning, match=text):
        model.fit(X, part)
    model.set_params(estimator=MEDClassifier(bias=2.0, class_weight="balanced"))
    text = (
        r"so, change class_prior \(now 0.99\d*\), lower step \(now 1\), or label more"
    )
    with pytest.warns(UserWarning, match=text):
        model.fit(X, part)


def test_a_last_machine_on_an_indefinite_kernel_is_said(rng):
    X, y = two_clusters(rng, 60, 0.3)
    machine = MEDClassifier("sigmoid", C=100.0, gamma=1.0, coef0=1.0, bias=1.0)
    model = MEDPartialLabelClassifier(machine, tol=1.0)
    text = "not positive semidefinite: MEDPartialLabelClassifier ended in a stationary"
    with pytest.warns(ConvergenceWarning, match=text):
        model.fit(X, hidden(rng, y))
    assert np.isnan(model.duality_gap_)


MISSES = {  # of convergence: parameters and remedies
    "few rounds": ({"step": 1}, r"raise max_rounds \(now 1\), or raise tol\.$"),
    "small steps": ({"step": 0.1}, r"tol, or raise step \(now 0\.1\)\.$"),
    "few iterations": ({"method": "direct"}, r"max_rounds \(now 1\), or raise tol\.$"),
    "descent that ended": (
        {"method": "direct", "tol": 1e-12, "max_rounds": 500},
        r"round; raise tol, or use method='alternating'\.$",
    ),
    "few steps of exact": (
        {"method": "exact", "estimator": MEDClassifier(bias=1.0), "tol": 1e-9},
        r"raise max_rounds \(now 1\)",
    ),
}


@pytest.mark.filterwarnings("ignore:.*rows without a label were given:UserWarning")
@pytest.mark.parametrize("case", list(MISSES))
def test_missing_convergence_is_said(case, rng):
    X, y = two_clusters(rng, 60, 0.5)
    parameters, remedy = MISSES[case]
    part = hidden(rng, y)
    if "exact" in case:
        part = np.where(np.arange(60) < 5, -1, y)
    model = MEDPartialLabelClassifier(**{"max_rounds": 1} | parameters)
    with pytest.warns(ConvergenceWarning, match=remedy):
        model.fit(X, part)
    assert not model.converged_


@pytest.mark.parametrize("kind", ["None", "NaN", "NA", "text"])
def test_missing_labels_are_rows_without_one(kind, rng):
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] > 0).astype(int)
    lost = rng.random(40) < 0.5
    if kind == "NaN":
        given = np.where(lost, np.nan, y)
    elif kind == "NA":
        given = pd.array(np.where(lost, None, y), dtype="Int64")
    else:
        given = np.array(["no", "yes"], dtype=object)[y] if kind == "text" else y + 0
        given = np.array([None if a else b for a, b in zip(lost, given.tolist())])
    model = MEDPartialLabelClassifier(MEDClassifier("linear")).fit(X, given)
    want = clone(model).fit(X, np.where(lost, -1, y))
    np.testing.assert_array_equal(model.label_mean_, want.label_mean_)
    assert model.score(X, given) == want.score(X[~lost], y[~lost])


def test_searches_score_the_labelled_rows(rng):
    X = rng.normal(size=(60, 2))
    X[:, 0] += 2.0 * np.sign(X[:, 0])  # so that few labels tell the classes apart
    y = np.where(rng.random(60) < 0.5, -1, X[:, 0] > 0)
    model = MEDPartialLabelClassifier(MEDClassifier("linear"), tol=1e-2)
    search = GridSearchCV(model, {"tol": [1e-2]}, cv=KFold(3)).fit(X, y)
    scores = []
    for train, test in KFold(3).split(X):
        labelled = test[y[test] >= 0]
        guess = clone(model).fit(X[train], y[train]).predict(X[labelled])
        scores.append((guess == y[labelled]).mean())
    assert search.best_score_ == pytest.approx(np.mean(scores))
    assert search.best_score_ > 0.8
    with pytest.raises(ValueError, match="no label"):
        search.best_estimator_.score(X, np.full(60, -1))
