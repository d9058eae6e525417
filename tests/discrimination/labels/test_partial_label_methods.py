"""Partial labels: other estimators, direct minimisation, and the joint problem."""

import itertools
import warnings

import numpy as np
import pytest
from refusals import refused
from scipy.optimize import minimize
from sklearn.base import clone

from maxent import (
    MEDBayesNetClassifier,
    MEDClassifier,
    MEDFeatureSelector,
    MEDGaussianClassifier,
    MEDPartialLabelClassifier,
    MEDTreeClassifier,
)
from maxent._optimize.kernel_descent import KernelDescent
from maxent.discrimination import ExponentialMargin
from maxent.discrimination.labels._joint_labels import JointLabels
from maxent.discrimination.labels._label_priors import LabelPriors
from maxent.discrimination.labels._label_rounds import label_starts

ESTIMATORS = {
    "selector": MEDFeatureSelector(0.5, threshold=0.0),
    "gaussian": MEDGaussianClassifier(prior="weak", level=2.0),
    "percentile": MEDGaussianClassifier(prior="weak", percentile=50),
    "nets": MEDBayesNetClassifier(level=2.0),
    "trees": MEDTreeClassifier(level=1.0),
    "dirichlet": MEDTreeClassifier("dirichlet", level=1.0, bias=1.0),
}


def problem(rng, name, n=30):
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 2)) + 1.2 * (2 * y[:, None] - 1)
    if name in ("nets", "trees", "dirichlet"):
        X = (X > 0).astype(int)
        X[:4] = [[0, 0], [0, 1], [1, 0], [1, 1]]
    part = np.where(rng.random(n) < 0.6, -1, y)
    part[:8] = y[:8]
    return X, y, part


def quiet(model, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*args, **options)


@pytest.mark.parametrize("method", ["alternating", "direct"])
def test_more_starts_leave_poor_minima(method, rng):
    """Fourteen rows without structure, four of them with labels."""
    falls = []
    for _ in range(8):
        X = rng.normal(size=(14, 3))
        y = np.full(14, -1)
        y[rng.permutation(14)[:4]] = [0, 1, 0, 1]
        machine = MEDClassifier(C=10.0, bias=1.0)
        one, many = (
            quiet(
                MEDPartialLabelClassifier(
                    machine, method=method, n_init=k, random_state=3
                ),
                *(X, y),
            )
            for k in (1, 8)
        )
        assert one.objectives_.shape == (1,) and many.objectives_.shape == (8,)
        assert many.objectives_[0] == pytest.approx(one.objective_, rel=1e-9)
        assert many.objective_ == many.objectives_.min()
        assert many.objective_ == many.objective_history_[-1]
        assert (many.transduction_[y >= 0] == y[y >= 0]).all()
        falls.append(many.objective_ / one.objective_)
    assert min(falls) < 0.99
    again = quiet(clone(many), X, y)
    np.testing.assert_array_equal(again.label_mean_, many.label_mean_)


def test_starts_guess_a_few_labels_by_their_priors(rng):
    evidence = np.array([1.0, -1.0, 0.8, 0.0, 0.0, 0.0, -1.0])
    half_odds = np.array([np.inf, -np.inf, np.arctanh(0.8), 2.0, 0.0, -2.0, -np.inf])
    labels = LabelPriors(*[np.arange(7)] * 4, half_odds, evidence, half_odds)
    first, *more = label_starts(labels, 4001, rng)
    np.testing.assert_array_equal(first, evidence)
    more = np.array(more)
    known = np.isinf(half_odds)
    np.testing.assert_array_equal(more[:, known], np.tile(evidence[known], (4000, 1)))
    guessed = np.abs(more) == 1.0
    counts = guessed[:, ~known].sum(axis=1)
    assert set(counts) == {1, 2, 3}
    for k in np.flatnonzero(~known):
        drawn = more[guessed[:, k], k]
        mean = np.tanh(half_odds[k])
        assert abs(drawn.mean() - mean) < 5.0 / np.sqrt(len(drawn))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_known_labels_give_the_plain_estimator(rng, name):
    X, y, _ = problem(rng, name)
    estimator = ESTIMATORS[name]
    ours = quiet(MEDPartialLabelClassifier(estimator), X, y)
    plain = quiet(type(estimator)(**estimator.get_params()), X, y)
    assert ours.objective_ == pytest.approx(plain.objective_, rel=1e-7, abs=1e-8)
    np.testing.assert_allclose(
        ours.decision_function(X), plain.decision_function(X), atol=1e-6
    )


@pytest.mark.parametrize("name", ESTIMATORS)
def test_objective_never_increases(rng, name):
    X, y, part = problem(rng, name)
    step = rng.uniform(0.05, 1.9)
    model = MEDPartialLabelClassifier(ESTIMATORS[name], step=step, max_rounds=4)
    quiet(model, X, part)
    D = model.objective_history_
    assert np.diff(D).max() <= 1e-10 * (1 + np.abs(D[0]))
    assert (model.transduction_[part >= 0] == y[part >= 0]).all()
    assert model.predict(X).shape == y.shape


def test_priors_of_classes_are_made_of_labelled_rows(rng):
    """Label means have no part in them: posteriors less multipliers are the prior."""
    X, _, part = problem(rng, "gaussian")
    model = quiet(MEDPartialLabelClassifier(ESTIMATORS["nets"]), X > 0, part)
    for k, tables in enumerate(model.estimator_.posteriors_):
        sign = 1.0 if k == 1 else -1.0
        added = sign * model.estimator_.dual_coef_[0].sum()
        rows = (part == k).sum() + added
        total = sum(table.sum() for table in tables.pseudo_counts)
        assert total == pytest.approx(2 * (1.0 + rows), rel=1e-9)


# -- direct minimisation -----------------------------------------------------------
@pytest.mark.parametrize("bias", ["flat", None, 1.0])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_direct_minimisation_ends_where_rounds_end(rng, kernel, bias):
    X, _, part = problem(rng, "rbf")
    machine = MEDClassifier(kernel, bias=bias, tol=1e-9)
    model = MEDPartialLabelClassifier(machine, method="direct", tol=1e-4)
    quiet(model, X, part)
    again = MEDPartialLabelClassifier(machine, tol=1e-5)
    # the rounds go on from there, by the label means as priors of the start
    quiet(again, X, part)
    D = model.objective_history_
    assert np.diff(D).max() <= 1e-9 * (1 + D[0])
    assert model.duality_gap_ <= 1e-6 * (1 + D[-1])
    # both are local minima; of these simple problems mostly the same
    assert model.objective_ <= again.objective_history_[0]


# -- the joint problem -------------------------------------------------------------
def joint_oracle(K, half_odds, margin, weight):
    """Largest dual of eq. (52): labellings in a loop, SciPy's box solver."""
    n = len(K)
    open_ = np.flatnonzero(np.isfinite(half_odds))
    labellings = []
    for signs in itertools.product((-1.0, 1.0), repeat=len(open_)):
        y = np.sign(half_odds)
        y[open_] = signs
        prior = np.prod(1 / (1 + np.exp(-2 * np.array(signs) * half_odds[open_])))
        labellings.append((y, prior))

    def dual(lam):
        total = sum(
            prior * np.exp(0.5 * (y * lam) @ K @ (y * lam)) for y, prior in labellings
        )
        potential = weight * margin.potential(lam / weight)
        return -(potential.sum() - np.log(total))

    ends = [(0.0, 0.999999 * margin.rate * w) for w in weight]
    starts = [np.full(n, 0.1), np.full(n, 0.5)]
    options = {"maxiter": 2000, "maxfun": 200_000, "ftol": 1e-14, "gtol": 1e-9}
    found = [minimize(dual, s, bounds=ends, options=options) for s in starts]
    return -min(one.fun for one in found)


@pytest.mark.parametrize("bias", [None, 2.0])
def test_exact_method_is_the_joint_dual(rng, bias):
    n, C, sharpness = 7, 1.5, 4.0
    X = rng.normal(size=(n, 2))
    y = np.array([0, 1, 0, 1, -1, -1, -1])
    prior = np.full(n, np.nan)
    prior[4] = 0.7
    machine = MEDClassifier(C=C, sharpness=sharpness, gamma=0.5, bias=bias)
    model = MEDPartialLabelClassifier(machine, method="exact", tol=1e-9)
    model.fit(X, y, prior)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2)) + (bias or 0.0)
    unit = C / sharpness
    h = np.array([-np.inf, np.inf, -np.inf, np.inf, np.log(7 / 3) / 2, 0, 0])
    best = joint_oracle(unit * K, h, ExponentialMargin(sharpness), np.ones(n))
    assert model.objective_ == pytest.approx(unit * best, rel=1e-6)
    assert model.duality_gap_ <= 1e-8
    rounds = quiet(MEDPartialLabelClassifier(machine, tol=1e-4), X, y, prior)
    assert model.objective_ <= rounds.objective_ + 1e-9


def test_block_of_labels_has_the_derivatives_of_its_value(rng):
    n, e = 6, 1e-5
    F = rng.normal(size=(n, 3))
    block = JointLabels(F @ F.T, np.array([np.inf, -np.inf, 0.0, 0.3, -1.0, 0.0]))
    a = rng.uniform(0, 1, n)
    unit = e * np.eye(n)
    slope = [
        (block.log_partition(a + d) - block.log_partition(a - d)) / (2 * e)
        for d in unit
    ]
    np.testing.assert_allclose(block.mean(a), slope, rtol=1e-6, atol=1e-8)
    H = [(block.mean(a + d) - block.mean(a - d)) / (2 * e) for d in unit]
    factor = block.hessian_factor(a)
    np.testing.assert_allclose(factor @ factor.T, H, rtol=1e-5, atol=1e-7)
    assert block.log_partition(np.zeros(n)) == pytest.approx(0.0, abs=1e-12)


def test_exact_method_with_known_labels_is_the_plain_machine(rng):
    X, y, _ = problem(rng, "rbf")
    machine = MEDClassifier(bias=1.0, tol=1e-9)
    model = MEDPartialLabelClassifier(machine, method="exact", tol=1e-9).fit(X, y)
    plain = MEDClassifier(bias=1.0, tol=1e-9).fit(X, y)
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-7)


X2 = np.linspace(-2, 2, 20)[:, None]
FEW = np.array([0, 0, *[-1] * 4, *[0] * 4, *[1] * 10])


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({"method": "exact"}, FEW, "no solution with bias='flat'"),
        (
            {"method": "exact", "estimator": MEDClassifier(bias=None)},
            np.array([0, *[-1] * 18, 1]),
            "18 rows have uncertain labels; 12 are the most",
        ),
        ({"method": "newton"}, FEW, "method='newton'"),
        (
            {"method": "direct", "estimator": MEDGaussianClassifier()},
            FEW,
            "method='direct' is for kernel machines",
        ),
        (
            {"estimator": MEDGaussianClassifier(bias="train_error")},
            FEW,
            "bias='train_error' counts errors",
        ),
    ],
)
def test_bad_methods_are_refused(options, y, message):
    refused(lambda: MEDPartialLabelClassifier(**options).fit(X2, y), message)


def test_exact_method_needs_one_weight():
    machine = MEDClassifier(bias=None)
    model = MEDPartialLabelClassifier(machine, method="exact")
    weight = np.arange(1.0, 21.0)
    refused(lambda: model.fit(X2, FEW, sample_weight=weight), "needs one weight")


def test_descents_of_linear_machines_start_where_their_multipliers_are(
    rng, monkeypatch
):
    """From the decision values of other weights no step could lower the objective."""
    run, distances = KernelDescent.run, []

    def checked(self, a, Ka, b, **options):
        distances.append(np.abs(self.product(a) - Ka).max() / (1.0 + np.abs(Ka).max()))
        return run(self, a, Ka, b, **options)

    monkeypatch.setattr(KernelDescent, "run", checked)
    y = rng.integers(2, size=400)
    X = rng.normal(size=(400, 7)) + 0.8 * y[:, None]
    y[rng.random(400) < 0.8] = -1
    MEDPartialLabelClassifier(MEDClassifier("linear")).fit(X, y)
    assert distances and max(distances) < 1e-9
