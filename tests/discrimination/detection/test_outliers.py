"""Anomaly detection: known machines as members, tails, false alarms, refusals."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from oracles.block_cases import PoissonGamma, agree, codes
from oracles.enclosing import data_description, one_class_svm, smallest_ellipsoid
from problems import rbf, tails
from refusals import refused
from scipy.special import psi
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import OneClassSVM

from maxent import MEDOutlierDetector
from maxent.discrimination import (
    ExponentialMargin,
    GaussianCentre,
    GaussianScores,
    LatentMixture,
)
from maxent.families import DirichletCounts, DirichletProduct, NormalInverseWishart

# easy levels on purpose in several tests; one test asserts the warning itself


@pytest.mark.parametrize("model", ["multinomial", "tree"])
def test_predictions_of_categories_are_of_both_kinds(model, rng):
    X = codes(rng, 200, [4] * 5)
    X[rng.random(X.shape) < 0.7] = 0
    detector = MEDOutlierDetector(model)
    found = detector.fit_predict(X)
    assert set(found) == {-1, 1} and found.dtype.kind == "i"
    np.testing.assert_array_equal(found, detector.predict(X))
    np.testing.assert_array_equal(found == 1, detector.decision_function(X) >= 0)
    score = detector.decision_function(X) + detector.offset_
    np.testing.assert_allclose(score, detector.score_samples(X), rtol=1e-13)


# -------------------------------------------------------------------- known machines


@pytest.mark.parametrize("level", [2.0, 6.0])
def test_gaussian_scores_with_a_hinge_are_the_one_class_svm(level, rng):
    X, new = rng.normal(size=(50, 2)), rng.normal(size=(20, 2))
    model = MEDOutlierDetector(
        GaussianScores("rbf", gamma=0.4), margin="hinge", level=level, tol=1e-11
    ).fit(X)
    lam = np.zeros(50)
    lam[model.support_] = model.dual_coef_
    nu = lam.sum() / 50
    assert 0.02 < nu < 0.98
    K = rbf(X, 0.4)
    want = one_class_svm(K, 1.0 / lam.sum())
    mu = lam / lam.sum()
    assert mu @ K @ mu == pytest.approx(want @ K @ want, rel=1e-8)
    # LIBLINEAR's sister keeps its kernel in single precision
    svm = OneClassSVM(kernel="rbf", gamma=0.4, nu=nu, tol=1e-8).fit(X)
    agree(model.decision_function(new), svm.decision_function(new), 1e-4, 1.0)
    clear = np.abs(svm.decision_function(new)) > 1e-3
    assert (model.predict(new) == svm.predict(new))[clear].all()


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_gaussian_centre_with_a_hinge_is_the_data_description(kernel, rng):
    X = rng.normal(size=(40, 2))
    K = rbf(X, 0.4) if kernel == "rbf" else X @ X.T
    level = -0.25 if kernel == "rbf" else -1.2
    model = MEDOutlierDetector(
        GaussianCentre(kernel, gamma=0.4), margin="hinge", level=level, tol=1e-10
    ).fit(X)
    lam = np.zeros(40)
    lam[model.support_] = model.dual_coef_
    assert 1.0 < lam.sum() < 39.0
    mu = lam / lam.sum()
    want = data_description(K, 1.0 / lam.sum())

    def value(mu):
        return mu @ np.diag(K) - mu @ K @ mu

    assert value(mu) == pytest.approx(value(want), rel=1e-7)
    # rows inside the ball have no multiplier, rows outside have all of it
    score = model.score_samples(X)
    assert (lam[score > level + 1e-5] < 1e-7).all()
    assert (lam[score < level - 1e-5] > 1.0 - 1e-7).all()


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_gaussian_asked_for_much_is_the_smallest_ellipsoid(d, rng):
    """Maximal weighted log-determinant, and equal scores on the surface."""
    X = rng.normal(size=(25, d)) @ (np.eye(d) + 0.3 * rng.normal(size=(d, d)))
    mu = smallest_ellipsoid(X)
    centre = mu @ X
    cov = ((X - centre).T * mu) @ (X - centre)
    log_det = np.linalg.slogdet(cov)[1]
    # the largest expected log-likelihood that all rows can have
    most = -0.5 * (d * np.log(2.0 * np.pi) + log_det + d)
    tiny = NormalInverseWishart(
        X.mean(axis=0), 1e-3, d + 1e-3, 1e-3 * np.cov(X.T).reshape(d, d)
    )
    model = MEDOutlierDetector(tiny, level=most - 0.01, C=1e5).fit(X)
    lam = np.zeros(25)
    lam[model.support_] = model.dual_coef_
    assert lam.sum() > 50.0
    share = lam / lam.sum()
    mean = share @ X
    found = np.linalg.slogdet(((X - mean).T * share) @ (X - mean))[1]
    assert log_det - 0.02 < found <= log_det + 1e-6
    on = mu > 0.02
    assert (share[on] > 0.2 * mu[on]).all()
    score = model.score_samples(X)
    assert np.ptp(score[on]) < 1e-3 and (score >= score[on].min() - 1e-3).all()
    r = X - model.posterior_.mean
    inverse = np.linalg.inv(model.posterior_.scale / model.posterior_.df)
    inside = np.einsum("ij,jk,ik->i", r, inverse, r)
    assert inside.max() < d * 1.05


def test_weights_of_one_are_the_bayes_posterior(rng):
    X = codes(rng, 30, [3, 2])
    prior = DirichletProduct(1.0, [3, 2])
    block, bayes = prior.block(X), prior.posterior(X)
    agree(block.mean(np.ones(30)), bayes.expected_log_prob(X), 1e-12)
    model = MEDOutlierDetector("multinomial", margin="hinge", level=-1e-9).fit(X)
    # every row is below the level, and a hinge gives each the weight one
    agree(model.dual_coef_, np.ones(30), 1e-6)
    agree(model.score_samples(X), bayes.expected_log_prob(X), 1e-5)


# -------------------------------------------------------------------- what it is for


def test_the_worst_rows_are_lifted_and_spread_falls(rng):
    X = codes(rng, 150, [4] * 8)
    common = rng.random(X.shape) < 0.7
    X[common] = 0
    X[:8] = 3  # rare rows
    prior = DirichletProduct(1.0, [4] * 8)
    bayes = prior.posterior(X).predictive_log_prob(X)
    model = MEDOutlierDetector("multinomial", likelihood="predictive").fit(X)
    scores = model.score_samples(X)
    assert scores.min() > bayes.min() + 1.0
    assert scores.std() < bayes.std()


def test_rows_without_multiplier_are_normal(rng):
    for model, X in (
        ("gaussian", tails(rng)),
        ("multinomial", codes(rng, 60, [4, 3, 5, 4])),
        ("tree", codes(rng, 60, [4, 3, 5, 4])),
        (GaussianScores(gamma=0.3), tails(rng)),
    ):
        fitted = MEDOutlierDetector(model, level=None, C=2.0).fit(X)
        rest = np.setdiff1d(np.arange(len(X)), fitted.support_)
        scores = fitted.score_samples(X)
        assert (scores[rest] >= fitted.offset_ - 1e-5).all()
        assert (scores[fitted.support_] <= fitted.level_ + 1e-5).all()
        prior = ExponentialMargin(2.0, fitted.level_)
        assert fitted.offset_ == pytest.approx(prior.prior_mean)


def test_the_leave_one_out_bound_holds_where_it_is_given(rng):
    X = codes(rng, 30, [3, 4, 2])
    X[rng.random(X.shape) < 0.6] = 0
    prior = DirichletProduct(1.0, [3, 4, 2])
    options = {"level": -2.4, "C": 4.0, "tol": 1e-11}
    model = MEDOutlierDetector(prior, **options).fit(X)
    alarms = 0
    for t in range(30):
        one = MEDOutlierDetector(prior, **options).fit(np.delete(X, t, axis=0))
        alarm = one.decision_function(X[t : t + 1])[0] < -1e-6
        alarms += alarm
        assert not (alarm and t not in model.support_)
    assert 0 < len(model.support_) <= 30
    assert alarms / 30 <= model.loo_bound_ == len(model.support_) / 30
    assert np.isnan(MEDOutlierDetector(prior).fit(X).loo_bound_)


def test_no_bound_is_given_where_rows_shaped_the_model(rng):
    X, C = tails(rng, 30), codes(rng, 30, [3, 4, 2])
    scores = MEDOutlierDetector(GaussianScores(gamma=0.5), level=1.0, margin="hinge")
    assert 0 < scores.fit(X).loo_bound_ <= 1
    assert np.isfinite(
        scores.set_params(model=GaussianScores("linear")).fit(X).loo_bound_
    )
    for model, level, rows in (
        ("gaussian", -5.0, X),
        ("multinomial", -2.4, C),
        ("tree", -2.4, C),
        (GaussianScores(), 2.0, X),
        (GaussianCentre("rbf"), -0.1, X),
    ):
        assert np.isnan(MEDOutlierDetector(model, level=level).fit(rows).loo_bound_)
    prior = DirichletProduct(1.0, [3, 4, 2])
    for change in ({"margin": "logistic"}, {"max_iter": 1, "C": 50.0}):
        model = MEDOutlierDetector(prior, level=-2.4, **change)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(C)
        assert model.converged_ == ("margin" in change) and np.isnan(model.loo_bound_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_centre_without_multipliers_promises_nothing(rng):
    """It is the mean of the rows: without the farthest one it is another."""
    X = rng.normal(size=(12, 2))
    X[0] = 9.0
    far = 0.5 * ((X - X.mean(axis=0)) ** 2).sum(axis=1).max()
    options = {"level": -far - 1e-9, "margin": "hinge"}
    model = MEDOutlierDetector(GaussianCentre("linear"), **options).fit(X)
    assert not len(model.support_)
    alarms = 0
    for t in range(12):
        rest = np.delete(X, t, axis=0)
        one = MEDOutlierDetector(GaussianCentre("linear"), **options).fit(rest)
        alarms += one.predict(X[t : t + 1])[0] == -1
    assert alarms > 0 and np.isnan(model.loo_bound_)


def test_the_level_is_a_quantile_of_the_bayes_predictive(rng):
    X = codes(rng, 40, [3, 4, 2])
    w = rng.integers(1, 4, size=40)
    many = np.repeat(X, w, axis=0)
    bayes = DirichletProduct(1.0, [3, 4, 2]).posterior(many)
    for q in (0.0, 0.2, 0.5, 1.0):
        model = MEDOutlierDetector("multinomial", quantile=q).fit(X, sample_weight=w)
        scores = np.sort(bayes.predictive_log_prob(many))
        rank = max(int(np.ceil(q * len(many) - 1e-9)), 1)
        assert model.level_ == pytest.approx(scores[rank - 1], rel=1e-12)


@pytest.mark.parametrize("model", ["gaussian", "multinomial", "tree"])
def test_weight_two_is_the_row_twice_and_equal_rows_share(model, rng):
    X = tails(rng, 40) if model == "gaussian" else codes(rng, 40, [3, 4, 5])
    w = rng.integers(0, 3, size=40).astype(float)
    twice = np.repeat(X, w.astype(int), axis=0)
    one = MEDOutlierDetector(model, tol=1e-11).fit(X, sample_weight=w)
    other = MEDOutlierDetector(model, tol=1e-11).fit(twice)
    agree(one.level_, other.level_, 1e-9)
    agree(one.objective_, other.objective_, 1e-8, 1.0)
    agree(one.score_samples(twice), other.score_samples(twice), 1e-5)
    assert set(one.support_) <= set(np.flatnonzero(w))


def test_affine_maps_change_scores_by_a_constant(rng):
    X = tails(rng)
    A = np.diag(rng.uniform(0.1, 9.0, size=3))  # the weak prior knows the axes
    one = MEDOutlierDetector(tol=1e-10).fit(X)
    other = MEDOutlierDetector(tol=1e-10).fit(X @ A + 40.0)
    agree(other.decision_function(X @ A + 40.0), one.decision_function(X), 1e-4)
    assert (other.predict(X @ A + 40.0) == one.predict(X)).all()


def test_far_rows_are_outliers_and_the_middle_is_not(rng):
    X = tails(rng)
    for model in ("gaussian", GaussianScores(gamma=0.2), GaussianCentre("linear")):
        fitted = MEDOutlierDetector(model).fit(X)
        found = fitted.predict(np.array([[0.0, 0.0, 0.0], [40.0, -40.0, 40.0]]))
        assert found.tolist() == [1, -1]


@pytest.mark.parametrize("model", ["gaussian", "multinomial", "tree"])
def test_a_pickled_detector_scores_to_the_bit(model, rng):
    X = tails(rng, 40) if model == "gaussian" else codes(rng, 40, [3, 4, 5])
    detector = MEDOutlierDetector(model, quantile=0.1).fit(X)
    back = pickle.loads(pickle.dumps(detector))
    np.testing.assert_array_equal(back.score_samples(X), detector.score_samples(X))
    with config_context(print_changed_only=True):
        assert eval(repr(detector)).get_params() == detector.get_params()


class BareBlock:
    """Multinomial rows with what a block needs, and no base class."""

    def __init__(self, X):
        self.inner = DirichletProduct(1.0, [3, 4, 5]).block(X)
        self.n_rows = self.inner.n_rows

    def log_partition(self, a):
        return self.inner.log_partition(a)

    def mean(self, a):
        return self.inner.mean(a)

    def hessian_factor(self, a):
        return self.inner.hessian_factor(a)

    def max_step(self, a, direction):
        return self.inner.max_step(a, direction)

    def score(self, a, X):
        return self.inner.score(a, X)


class BareModel:
    def block(self, X):
        return BareBlock(X)


def test_a_block_without_base_class_has_the_defaults(rng):
    X = codes(rng, 40, [3, 4, 5])
    detector = MEDOutlierDetector(BareModel(), level=-4.0).fit(X)
    known = MEDOutlierDetector(DirichletProduct(1.0, [3, 4, 5]), level=-4.0).fit(X)
    assert detector.converged_ and detector.objective_ == known.objective_
    for copied in (copy.deepcopy(detector), pickle.loads(pickle.dumps(detector))):
        agree(copied.score_samples(X), known.score_samples(X), 1e-14)


class NoBlock:
    def __init__(self, X):
        self.n_rows = len(X)


def test_a_model_whose_block_lacks_what_is_needed_is_refused(rng):
    class Model:
        def block(self, X):
            return NoBlock(X)

    with pytest.raises(ValueError, match="must return a Block"):
        MEDOutlierDetector(Model()).fit(tails(rng, 20))


# ------------------------------------------------------------------------ categories


@pytest.mark.parametrize("model", ["multinomial", "tree"])
def test_text_and_frames_are_categories(model, rng):
    X = codes(rng, 40, [3, 3])
    text = pd.DataFrame(np.array(["a", "b", "c"])[X], columns=["left", "right"])
    one = MEDOutlierDetector(model).fit(X)
    other = MEDOutlierDetector(model).fit(text)
    np.testing.assert_array_equal(one.score_samples(X), other.score_samples(text))


def test_unseen_categories_count_with_the_pseudo_count_alone(rng):
    X = codes(rng, 40, [3, 3])
    for likelihood, log in (("expected", psi), ("predictive", np.log)):
        model = MEDOutlierDetector("multinomial", C=10.0, likelihood=likelihood).fit(X)
        alpha = model.posterior_.pseudo_counts
        found = model.score_samples(np.array([[0, 7], [9, 7]]))
        # of the pseudo-counts and all 40 rows, or more where multipliers exceed one
        rare = [log(1.0) - log(max(table.sum(), 3.0 + 40.0)) for table in alpha]
        first = log(alpha[0][0, 0]) - log(alpha[0].sum())
        assert found[0] == pytest.approx(first + rare[1], rel=1e-12)
        assert found[1] == pytest.approx(sum(rare), rel=1e-12)
        assert found.max() < model.score_samples(X).max()


@pytest.mark.parametrize("component", ["multinomial", "tree"])
@pytest.mark.parametrize("mixture", [False, True])
@pytest.mark.parametrize("values", [1, 2, 4])
def test_an_unseen_category_is_below_all_rows_where_the_prior_reaches_the_level(
    component, mixture, values
):
    """Columns of one value, or of values equally often: multipliers may be zero."""
    X = np.indices((values, values)).reshape(2, -1).T
    X = np.repeat(X, 300 // len(X), axis=0)
    model = LatentMixture(component, n_init=1, random_state=0) if mixture else component
    for likelihood in ("expected", "predictive"):
        settings = {"likelihood": likelihood, "contamination": 0.05}
        detector = MEDOutlierDetector(model, **settings).fit(X)
        new = detector.score_samples(np.array([[0, 7], [7, 0], [7, 7]]))
        # one of 300 against one of 4 at most, and a second such value is rarer still
        assert new[:2].max() < detector.score_samples(X).min() - np.log(50.0)
        assert new[2] < new[:2].min() - np.log(50.0)
        assert detector.predict(np.array([[0, 7], [0, 0]])).tolist() == [-1, 1]


# ------------------------------------------------------------------- blocks of a user


class Rates:
    """A model of a user: counts with one rate."""

    def block(self, X):
        return PoissonGamma(2.0, 1.0, X[:, :1])


def test_a_model_of_a_user_detects_too(rng):
    X = np.column_stack([rng.poisson(4.0, size=60)]).astype(float)
    model = MEDOutlierDetector(Rates()).fit(X)
    assert model.converged_ and model.duality_gap_ <= 1e-8 * (1 + model.objective_)
    assert model.predict([[4.0], [60.0]]).tolist() == [1, -1]
    refused(
        lambda: (
            MEDOutlierDetector(Rates(), likelihood="predictive").fit(X).score_samples(X)
        ),
        "likelihood='predictive' needs a model of probabilities",
    )


def test_a_model_whose_partition_is_nan_is_named_at_once(rng):
    class Wrong(PoissonGamma):
        def log_partition(self, a):
            return np.nan if a.any() else 0.0

    class Model:
        def block(self, X):
            return Wrong(2.0, 1.0, X[:, :1])

    X = rng.poisson(4.0, size=(20, 1)).astype(float)
    with pytest.raises(FloatingPointError, match=r"Wrong\.log_partition"):
        MEDOutlierDetector(Model()).fit(X)


@pytest.mark.parametrize("give", [lambda X: None, lambda X: PoissonGamma(2, 1, X[:3])])
def test_a_model_that_gives_no_block_of_the_rows_is_refused(give, rng):
    class Model:
        block = staticmethod(give)

    X = rng.poisson(4.0, size=(20, 1)).astype(float)
    refused(
        lambda: MEDOutlierDetector(Model()).fit(X),
        r"model\.block\(X\) returned .*must return a Block whose n_rows is 20",
    )


def test_a_centre_that_asks_for_nothing_is_the_mean(rng):
    X = tails(rng)
    model = MEDOutlierDetector(GaussianCentre("linear"), level=-1e6).fit(X)
    assert len(model.support_) == 0
    want = -0.5 * ((X - X.mean(axis=0)) ** 2).sum(axis=1)
    agree(model.score_samples(X), want, 1e-10)


# -------------------------------------------------------------- contamination


DATA = {
    "gaussian": lambda rng: tails(rng, 97),
    "multinomial": lambda rng: codes(rng, 97, [7, 8, 9, 5]),
    "tree": lambda rng: codes(rng, 97, [7, 8, 9, 5]),
    GaussianScores(gamma=0.5): lambda rng: tails(rng, 97),
    DirichletProduct(1.0, [7, 8, 9, 5]): lambda rng: codes(rng, 97, [7, 8, 9, 5]),
}


@pytest.mark.parametrize("model", list(DATA), ids=str)
@pytest.mark.parametrize("share", [1e-3, 0.05, 3 / 97, 0.3, 0.5])
def test_contamination_moves_the_threshold_alone(model, share, rng):
    X = DATA[model](rng)
    plain = MEDOutlierDetector(model).fit(X)
    other = MEDOutlierDetector(model, contamination=share).fit(X)
    np.testing.assert_array_equal(other.score_samples(X), plain.score_samples(X))
    np.testing.assert_array_equal(other.dual_coef_, plain.dual_coef_)
    assert other.level_ == plain.level_ and np.isnan(other.loo_bound_)
    scores, asked = np.sort(plain.score_samples(X)), round(share * 97 - 0.49999)
    # rows that tie with the first one above the threshold are normal
    want = (
        asked
        if scores[asked - 1] < scores[asked]
        else np.searchsorted(scores, scores[asked])
    )
    assert (other.predict(X) == -1).sum() == (want if asked else 0)
    assert (other.decision_function(X) >= 0).sum() == (other.predict(X) == 1).sum()


def test_contamination_counts_copies_of_rows(rng):
    X = tails(rng, 60)
    w = rng.integers(0, 4, size=60).astype(float)
    w[:5] = 1.0
    for share in (0.05, 0.2, 0.5):
        one = MEDOutlierDetector(contamination=share, tol=1e-11)
        one.fit(X, sample_weight=w)
        again = MEDOutlierDetector(contamination=share, tol=1e-11)
        again.fit(np.repeat(X, w.astype(int), axis=0))
        assert one.offset_ == pytest.approx(again.offset_, rel=1e-5)
        assert w[one.predict(X) == -1].sum() <= share * w.sum()


def test_contamination_follows_the_scores_that_predict_compares(rng):
    X = codes(rng, 80, [5, 6, 7])
    for likelihood in ("expected", "predictive"):
        model = MEDOutlierDetector(
            "multinomial", likelihood=likelihood, contamination=0.25
        ).fit(X)
        assert 0 < (model.predict(X) == -1).mean() <= 0.25


@pytest.mark.parametrize("likelihood", ["expected", "predictive"])
def test_sparse_counts_are_the_dense_ones(likelihood, rng):
    X = rng.poisson(0.3, size=(40, 25)).astype(float)
    model = MEDOutlierDetector(
        DirichletCounts(np.ones(25)), contamination=0.1, likelihood=likelihood
    )
    weight = np.arange(40) % 3
    dense = clone(model).fit(X, sample_weight=weight)
    for kind in (sp.csr_array, sp.csc_matrix, sp.coo_array):
        found = clone(model).fit(kind(X), sample_weight=weight)
        np.testing.assert_array_equal(found.dual_coef_, dense.dual_coef_)
        np.testing.assert_array_equal(
            found.score_samples(kind(X)), dense.score_samples(X)
        )
        assert found.offset_ == dense.offset_
    twice = sp.csr_array(np.hstack([X, X]))  # every entry in two halves
    twice = sp.csr_array((twice.data / 2, twice.indices % 25, twice.indptr), X.shape)
    halves = twice.data.copy()
    np.testing.assert_allclose(
        dense.score_samples(twice), dense.score_samples(X), rtol=1e-12
    )
    np.testing.assert_array_equal(twice.data, halves)


def test_models_of_dense_rows_refuse_sparse_ones(rng):
    X = sp.csr_array(rng.poisson(0.3, size=(40, 5)).astype(float))
    with pytest.raises(TypeError, match="dense"):
        MEDOutlierDetector().fit(X)
    mixture = LatentMixture(DirichletCounts(np.ones(5)), random_state=0)
    with pytest.raises(TypeError, match="dense"):
        MEDOutlierDetector(mixture).fit(X)


# --------------------------------------------------------- training rows as outliers


def test_rejecting_nearly_all_training_rows_is_told_with_the_remedy(rng):
    X = rng.integers(0, 3, size=(300, 4))  # all rows score nearly alike
    words = r"300 of the 300 training data score below .* set contamination, .*=0\.05"
    with pytest.warns(UserWarning, match=words) as caught:
        model = MEDOutlierDetector("tree").fit(X)
    assert caught[0].filename == __file__
    assert (model.predict(X) == -1).all()
    with pytest.warns(UserWarning, match=r"(37|38|39|40) of the 40 training data"):
        MEDOutlierDetector(LatentMixture(random_state=0), quantile=1.0).fit(
            rng.normal(size=(40, 8))
        )


def test_rejecting_half_of_the_training_rows_is_not_told(rng):
    X = rng.integers(0, 3, size=(300, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MEDOutlierDetector("tree", contamination=0.05).fit(X)
        model = MEDOutlierDetector().fit(rng.normal(size=(200, 5)))
    assert len(model.support_) > 0
