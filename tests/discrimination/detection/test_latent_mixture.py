"""Mixtures in the outlier detector: Theorem 6, one component, bounds, refusals."""

import re

import numpy as np
import pytest
from oracles.latent_rounds import (
    GaussianComponent,
    MixtureRounds,
    MultinomialComponent,
    divergences,
)
from refusals import outcome, refused
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from maxent import MEDOutlierDetector, load, save
from maxent._support.progress import Progress
from maxent.discrimination import (
    DirichletTrees,
    ExponentialMargin,
    GaussianCentre,
    GaussianScores,
    LatentMixture,
    MixturePosterior,
)
from maxent.discrimination.detection import _latent_rounds
from maxent.discrimination.detection._latent_rounds import (
    Hidden,
    RoundSettings,
    bayes,
    best_descent,
    descend,
)
from maxent.discrimination.detection.latent_mixture import MixtureProblem
from maxent.families import (
    DirichletBayesNet,
    DirichletCounts,
    DirichletProduct,
    NormalGamma,
    NormalInverseWishart,
)

PRIOR = NormalInverseWishart(np.zeros(2), 0.7, 4.5, 1.5 * np.eye(2))


def clusters(rng, n, gap=6.0, d=2):
    return rng.normal(size=(n, d)) + gap * rng.integers(0, 2, size=(n, 1))


def kinds(rng, n, columns=6):
    """Codes of two kinds of row, with other likely letters in all columns."""
    kind = rng.integers(0, 2, size=n)
    likely = kind[:, None] + 2 * np.zeros(columns, dtype=int)
    X = np.where(rng.random((n, columns)) < 0.85, likely, rng.integers(0, 4, (n, 1)))
    return X, kind


def hidden(Q):
    return Hidden(np.zeros(len(Q)), -(Q * np.log(Q)).sum(axis=1), Q)


def settings(level, rate, weight, **options):
    every = {"tol": 1e-30, "max_rounds": 6, "gap_tol": 1e-10, "max_iter": 200}
    margin = ExponentialMargin(rate, level)
    return RoundSettings(margin, level, weight, **every | options)


# ---------------------------------------------------------------------------- rounds


@pytest.mark.parametrize("kind", ["multinomial", "gaussian"])
def test_rounds_are_those_of_the_formulas(kind, rng):
    n, K, rate = 12, 3, 2.0
    weight = rng.integers(1, 3, size=n).astype(float)
    Q = rng.dirichlet(np.ones(K), size=n)
    if kind == "multinomial":
        X, sizes = rng.integers(0, 3, size=(n, 4)), [3, 3, 3, 3]
        parts = [MultinomialComponent(X, sizes) for _ in range(K)]
        problem, level = MixtureProblem(DirichletProduct(1.0, sizes), X, K), -4.0
    else:
        X, level = clusters(rng, n, 3.0), -4.0
        parts = [
            GaussianComponent(X, np.zeros(2), 0.7, 4.5, 1.5 * np.eye(2))
            for _ in range(K)
        ]
        problem = MixtureProblem(PRIOR, X, K)
    want, a, last = divergences(MixtureRounds(parts), Q, level, rate, weight, 6)
    found = descend(problem, hidden(Q), settings(level, rate, weight))
    D = np.array([h[1] for h in found.dual.history])
    assert want[0] > 0.1
    assert D[0] == pytest.approx(want[0], rel=1e-8)
    # a gap of 1e-10 leaves 1e-5 in the multipliers, and so in the next posteriors
    np.testing.assert_allclose(D, want, rtol=1e-4)
    np.testing.assert_allclose(found.dual.lam, a, atol=1e-3 * rate)
    # Theorem 6, in the oracle as well: no round raises the divergence
    assert np.diff(want).max() <= 1e-7 * (1.0 + want[0])
    assert np.diff(D).max() <= 1e-9 * (1.0 + want[0])
    # the posteriors of the hidden components under the last distribution
    rounds = MixtureRounds(parts)
    at = problem.hidden(found.blocks, found.weights)
    np.testing.assert_allclose(at.expected, rounds.update(a, last), atol=2e-3)
    bound = logsumexp(rounds.joint(a, last), axis=1)
    np.testing.assert_allclose(at.bound, bound, atol=2e-2)


def test_divergence_never_rises_in_random_problems(rng):
    worst, fell = 0.0, 0
    for _ in range(25):
        n, K = int(rng.integers(4, 25)), int(rng.integers(2, 4))
        if rng.random() < 0.5:
            sizes = [int(r) for r in rng.integers(2, 5, size=3)]
            X = np.column_stack([rng.integers(0, r, size=n) for r in sizes])
            prior = DirichletProduct(float(rng.uniform(0.2, 2.0)), sizes)
        else:
            X, prior = clusters(rng, n, rng.uniform(0.0, 5.0)), PRIOR
        problem = MixtureProblem(prior, X, K)
        Q = rng.dirichlet(rng.uniform(0.2, 2.0) * np.ones(K), size=n)
        Q = (Q + 1e-3) / (Q + 1e-3).sum(axis=1, keepdims=True)
        weight = rng.uniform(0.5, 2.0, size=n)
        level, rate = float(rng.uniform(-5.0, -2.0)), float(rng.uniform(0.5, 20.0))
        todo = settings(level, rate, weight, max_rounds=8, tol=1e-9)
        found = descend(problem, hidden(Q), todo)
        D = np.array([h[1] for h in found.dual.history])
        worst = max(worst, float(np.max(np.diff(D) / (1.0 + D[1:]), initial=0.0)))
        fell += D[0] - D[-1] > 1e-3
    assert worst <= 1e-9
    assert fell >= 4


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_baseline_is_variational_bayes(rng, monkeypatch):
    """A fixed point of scikit-learn's variational mixture of the same prior."""
    from sklearn.mixture import BayesianGaussianMixture

    monkeypatch.setattr(_latent_rounds, "_BASELINE_TOL", 1e-14)

    X = clusters(rng, 60, 4.0)
    problem = MixtureProblem(PRIOR, X, 3)
    found = bayes(problem, problem.start(rng), np.ones(60))
    Q = found.hidden.expected

    class FromHere(BayesianGaussianMixture):
        def _initialize_parameters(self, X, random_state, xp=None):
            self._initialize(X, Q)

    # its Wishart is of the precision, its prior in the same four numbers
    other = FromHere(
        n_components=3,
        weight_concentration_prior_type="dirichlet_distribution",
        weight_concentration_prior=1.0,
        mean_prior=np.zeros(2),
        mean_precision_prior=0.7,
        degrees_of_freedom_prior=4.5,
        covariance_prior=1.5 * np.eye(2),
        reg_covar=0.0,
        max_iter=1,
    ).fit(X)
    np.testing.assert_allclose(other.predict_proba(X), Q, atol=1e-4)
    np.testing.assert_allclose(
        other.weight_concentration_, found.posterior.pseudo_counts, rtol=1e-4
    )


# ---------------------------------------------------------------------- one component


@pytest.mark.parametrize("margin", ["exponential", "gaussian", "hinge", "laplace"])
@pytest.mark.parametrize("component", ["gaussian", "multinomial", "prior"])
def test_one_component_is_the_plain_detector(component, margin, rng):
    X = kinds(rng, 80)[0] if component == "multinomial" else clusters(rng, 80, 2.0)
    component = PRIOR if component == "prior" else component
    weight = rng.integers(0, 3, size=80)
    options = {"margin": margin, "quantile": 0.3, "tol": 1e-10}
    plain = MEDOutlierDetector(component, **options).fit(X, sample_weight=weight)
    model = LatentMixture(component, 1)
    mixed = MEDOutlierDetector(model, **options).fit(X, sample_weight=weight)
    assert mixed.level_ == pytest.approx(plain.level_, rel=1e-12)
    assert mixed.offset_ == pytest.approx(plain.offset_, rel=1e-12)
    assert mixed.objective_ == pytest.approx(plain.objective_, rel=1e-8)
    scores = plain.score_samples(X)
    np.testing.assert_allclose(mixed.score_samples(X), scores, atol=1e-4)
    clear = np.abs(scores - plain.offset_) > 1e-3
    assert (mixed.predict(X) == plain.predict(X))[clear].all()


def test_one_component_of_trees_is_the_tree_detector(rng):
    X = kinds(rng, 60, 3)[0]
    plain = MEDOutlierDetector("tree", quantile=0.3).fit(X)
    mixed = MEDOutlierDetector(LatentMixture("tree", 1), quantile=0.3).fit(X)
    assert mixed.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    np.testing.assert_allclose(
        mixed.score_samples(X), plain.score_samples(X), atol=1e-2
    )


OTHERS = {
    "counts": lambda r: (DirichletCounts(np.ones(4)), r.poisson(3.0, size=(50, 4))),
    "net": lambda r: (
        DirichletBayesNet(1.0, [(), (0,), (1,), ()], [3] * 4),
        r.integers(0, 3, size=(50, 4)),
    ),
    "trees": lambda r: (DirichletTrees(1.0, [3] * 4), r.integers(0, 3, size=(50, 4))),
    "regression": lambda r: (
        NormalGamma([0.0], [[1.0]], 2.0, 2.0),
        r.normal(size=(50, 2)),
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_any_conjugate_prior_may_be_the_component(name, rng):
    prior, X = OTHERS[name](rng)
    plain = MEDOutlierDetector(prior, quantile=0.3).fit(X)
    one = MEDOutlierDetector(LatentMixture(prior, 1), quantile=0.3).fit(X)
    assert one.objective_ == pytest.approx(plain.objective_, rel=1e-6, abs=1e-7)
    np.testing.assert_allclose(one.score_samples(X), plain.score_samples(X), atol=1e-2)
    model = LatentMixture(prior, 2, n_init=1, random_state=0, tol=1e-3)
    two = MEDOutlierDetector(model, quantile=0.3).fit(X)
    assert np.isfinite(two.score_samples(X)).all()
    rise = np.diff(two.objective_history_)
    assert np.max(rise, initial=0.0) <= 1e-6 * (1.0 + two.objective_)


# ----------------------------------------------------------------------- the estimator


def test_kinds_of_rows_are_found_and_rows_between_them_are_outliers(rng):
    X = clusters(rng, 150, 8.0)
    model = LatentMixture("gaussian", 2, random_state=0)
    detector = MEDOutlierDetector(model, contamination=0.05).fit(X)
    assert detector.converged_ and np.isnan(detector.loo_bound_)
    between = [[4.0, 4.0], [0.0, 8.0], [8.0, 0.0]]
    assert (detector.predict(between) == -1).all()
    assert np.mean(detector.predict(X) == -1) <= 0.05
    plain = MEDOutlierDetector("gaussian", contamination=0.05).fit(X)
    assert plain.predict(between[:1]) == [1]
    Q = detector.posterior_.responsibilities(X)
    np.testing.assert_allclose(Q.sum(axis=1), 1.0, rtol=1e-12)
    assert adjusted_rand_score(X[:, 0] > 4, Q.argmax(axis=1)) > 0.95
    assert np.diff(detector.objective_history_).max() <= 1e-8


def test_kinds_of_categories_are_found(rng):
    X, kind = kinds(rng, 200)
    letters = np.array(list("acgt"))[X]
    model = LatentMixture("multinomial", 2, random_state=1)
    detector = MEDOutlierDetector(model, quantile=0.2).fit(letters)
    codes = np.searchsorted(list("acgt"), letters)
    Q = detector.posterior_.responsibilities(codes)
    assert adjusted_rand_score(kind, Q.argmax(axis=1)) > 0.8
    # a row that changes its kind in the middle has likely letters, but no kind
    mixed = np.array([["a", "a", "a", "c", "c", "c"]])
    plain = MEDOutlierDetector("multinomial", quantile=0.2).fit(letters)
    usual = letters[(letters == "a").all(axis=1)][:1]
    fall = [
        d.score_samples(usual)[0] - d.score_samples(mixed)[0] for d in (plain, detector)
    ]
    assert abs(fall[0]) < 1.5 < fall[1]


def test_scores_are_bounds_of_expected_log_likelihoods(rng):
    X = kinds(rng, 40)[0]
    for likelihood in ("expected", "predictive"):
        model = LatentMixture("multinomial", 3, random_state=0)
        detector = MEDOutlierDetector(model, likelihood=likelihood).fit(X)
        posterior, scores = detector.posterior_, detector.score_samples(X)
        # draws of all parameters from the posterior
        draws = 4000
        pi = rng.dirichlet(posterior.pseudo_counts, size=draws)
        logs = np.log(pi)[:, None, :] * np.ones((1, len(X), 1))
        for k, part in enumerate(posterior.components):
            for i, table in enumerate(part.pseudo_counts):
                theta = rng.dirichlet(table[0], size=draws)
                codes = np.searchsorted(detector.categories_[i], X[:, i])
                logs[:, :, k] += np.log(theta[:, codes])
        joint = logsumexp(logs, axis=2)
        if likelihood == "expected":
            mean, error = joint.mean(axis=0), joint.std(axis=0) / np.sqrt(draws)
            assert (scores <= mean + 6 * error).all()
            assert (scores >= mean - 3.0).all()
        else:
            likelihoods = np.exp(joint)
            mean = likelihoods.mean(axis=0)
            error = likelihoods.std(axis=0) / np.sqrt(draws)
            assert (np.abs(np.exp(scores) - mean) <= 6 * error + 1e-12).all()


@pytest.mark.parametrize("likelihood", ["expected", "predictive"])
def test_contamination_is_a_share_of_the_scores(likelihood, rng):
    X = clusters(rng, 60)
    model = LatentMixture(n_init=2, random_state=0, tol=1e-4)
    options = {"likelihood": likelihood, "contamination": 0.1}
    detector = MEDOutlierDetector(model, **options).fit(X)
    assert np.sum(detector.predict(X) == -1) == 6


def test_unseen_and_missing_categories(rng):
    X = kinds(rng, 120)[0].astype(object)
    model = LatentMixture("multinomial", 2, random_state=0)
    detector = MEDOutlierDetector(model).fit(X)
    new = np.repeat(X[:1], 3, axis=0)
    new[1, 2], new[2, 2] = 9, None
    usual, unseen, missing = detector.score_samples(new)
    assert unseen < usual - 1.0 and missing > usual
    # by hand: the factor of the column is left out of every component
    codes = np.array([[-1 if x is None else x for x in new[2]]], dtype=int)
    want = detector.posterior_.expected_log_prob(codes)
    assert missing == pytest.approx(want[0], rel=1e-12)


def test_weights_are_copies_and_the_order_of_rows_does_not_matter(rng):
    X = np.round(clusters(rng, 40, 5.0), 1)
    weight = rng.integers(0, 4, size=40)
    model = MEDOutlierDetector(LatentMixture("gaussian", 2, random_state=3), tol=1e-10)
    one = clone(model).fit(X, sample_weight=weight)
    rows = rng.permutation(np.repeat(X, weight, axis=0))
    two = clone(model).fit(rows)
    assert one.level_ == pytest.approx(two.level_, rel=1e-6)
    np.testing.assert_allclose(one.score_samples(X), two.score_samples(X), atol=1e-3)


def test_same_bits_for_any_number_of_jobs(rng):
    X = clusters(rng, 60, 3.0)
    fits = [
        MEDOutlierDetector(LatentMixture("gaussian", 3, 4, 5), n_jobs=jobs).fit(X)
        for jobs in (1, 2)
    ]
    np.testing.assert_array_equal(fits[0].dual_coef_, fits[1].dual_coef_)
    np.testing.assert_array_equal(fits[0].divergences_, fits[1].divergences_)
    assert fits[0].objective_ == fits[0].divergences_.min()


def test_starts_far_behind_end_early_and_the_best_one_as_by_itself(rng):
    problem = MixtureProblem(PRIOR, np.round(rng.standard_t(3, size=(80, 2)), 2), 3)
    weight, rngs = np.ones(80), np.random.default_rng(int(rng.integers(99))).spawn(6)
    todo = settings(-4.0, 1.0, weight, tol=1e-7, max_rounds=2000, gap_tol=1e-9)
    starts = _latent_rounds.baselines(problem, rngs, weight, None)
    progress = Progress(MEDOutlierDetector(), {})
    best, found = best_descent(problem, starts, todo, None, progress, None)
    alone = [descend(problem, one.hidden, todo).dual for one in starts]
    full = np.array([one.objective for one in alone])
    tried = np.argmin(found)
    assert best.dual.objective == pytest.approx(full[tried], rel=1e-6)
    assert best.dual.converged and best.dual.relative_gap <= 1e-9
    D = np.array([h[1] for h in best.dual.history])
    assert np.diff(D).max(initial=0.0) <= 1e-6 * (1.0 + D[0])
    # what ended early is above its own end, and was not near the best
    early = found > full * (1.0 + 1e-5)
    assert (found[early] > found.min() + 1e-3 * (1.0 + found.min())).all()


@pytest.mark.parametrize("component", ["gaussian", "multinomial", PRIOR])
def test_a_model_file_keeps_the_mixture(component, tmp_path, rng):
    X = kinds(rng, 50)[0] if component == "multinomial" else clusters(rng, 50)
    model = LatentMixture(component, 2, 3, 0, tol=1e-5, max_rounds=50)
    detector = MEDOutlierDetector(model).fit(X)
    save(detector, tmp_path / "m.npz")
    back = load(tmp_path / "m.npz")
    np.testing.assert_array_equal(back.score_samples(X), detector.score_samples(X))
    assert back.model.get_spec().keys() == model.get_spec().keys()
    assert (back.model.n_components, back.model.max_rounds) == (2, 50)
    np.testing.assert_array_equal(back.fit(X).dual_coef_, detector.dual_coef_)


def test_the_name_is_the_default_mixture(rng):
    X = clusters(rng, 40)
    detector = MEDOutlierDetector("mixture").fit(X)
    assert isinstance(detector.posterior_, MixturePosterior)
    assert len(detector.posterior_.components) == 2
    assert "LatentMixture('gaussian', n_components=2" in repr(LatentMixture())


# ---------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"component": "gausian"}, "component='gausian'.*Did you mean"),
        ({"component": GaussianScores()}, "component=.*probabilities"),
        ({"component": GaussianCentre("linear")}, "component=.*probabilities"),
        ({"component": None}, "component=None"),
        ({"n_components": 0}, "n_components=0"),
        ({"n_components": 2.5}, "n_components=2.5"),
        ({"n_init": 0}, "n_init=0"),
        ({"tol": 0.0}, "tol=0"),
        ({"max_rounds": 0}, "max_rounds=0"),
    ],
)
def test_parameters_outside_their_domain_are_refused(options, match):
    refused(lambda: LatentMixture(**options), match)


def test_problems_that_make_no_sense_are_refused(rng):
    X = clusters(rng, 5)

    def fit(model, X=X, **options):
        return lambda: MEDOutlierDetector(model, **options).fit(X)

    refused(
        fit(LatentMixture(n_components=6)), "n_components=6 is more than the 5 rows"
    )
    few = {"sample_weight": [1, 1, 0, 0, 0]}
    refused(
        lambda: MEDOutlierDetector(LatentMixture(n_components=3)).fit(X, **few),
        "more than the 2 rows of positive weight",
    )
    refused(fit(LatentMixture(random_state="a")), "random_state='a'")
    codes = kinds(rng, 20)[0]
    refused(fit(LatentMixture("multinomial"), codes, level=0.5), "level=0.5 is above 0")
    refused(fit(LatentMixture(), missing="category"), "missing='category'")
    refused(lambda: LatentMixture().block(X), "no block")

    class NoPosterior:
        def block(self, X):
            class Own:
                n_rows = len(X)
                log_partition = mean = hessian_factor = None

            return Own()

    refused(fit(LatentMixture(NoPosterior())), "without a posterior")
    with pytest.raises(ValueError, match="components"):
        MixturePosterior([1.0], ["a"])
    with pytest.raises(ValueError, match="shape"):
        MixturePosterior([1.0, 2.0], [DirichletCounts([1.0])])


def test_rounds_that_are_cut_short_are_said(rng):
    X = clusters(rng, 60, 2.5)
    model = LatentMixture("gaussian", 3, 1, 0, tol=1e-14, max_rounds=2)
    with pytest.warns(ConvergenceWarning, match="round 2, the last one") as said:
        detector = MEDOutlierDetector(model).fit(X)
    assert not detector.converged_ and detector.n_iter_ == 2
    before, last = detector.objective_history_[-2:]
    share = re.search("lowered the divergence by (.*) of itself", str(said[0].message))
    assert float(share[1]) == pytest.approx((before - last) / (1.0 + last), rel=0.01)
    short = LatentMixture(n_init=1, random_state=0, max_rounds=2)
    model = MEDOutlierDetector(short, max_iter=1)
    with pytest.warns(ConvergenceWarning, match="has not converged"):
        model.fit(X)


def test_a_level_that_the_prior_meets_teaches_nothing(rng):
    X = clusters(rng, 30)
    model = MEDOutlierDetector(LatentMixture(PRIOR, 2), level=-1e4)
    with pytest.warns(UserWarning, match="nothing was learnt"):
        model.fit(X)
    assert len(model.support_) == 0 and model.objective_ == 0.0


def test_a_mixture_may_have_as_many_components_as_rows(rng):
    X = clusters(rng, 6)
    model = MEDOutlierDetector(LatentMixture(PRIOR, 6, random_state=0))
    assert np.isfinite(outcome(lambda: model.fit(X)).score_samples(X)).all()
    same = np.zeros((8, 2))
    model = MEDOutlierDetector(LatentMixture(PRIOR, 3, random_state=0))
    assert len(set(outcome(lambda: model.fit(same)).score_samples(same))) == 1


@pytest.mark.parametrize("K", [2, 4, 8])
def test_groups_far_apart_are_components_of_a_detector(K, rng):
    def rows(n):
        group = np.repeat(np.arange(K), n)
        return rng.normal(size=(K * n, 2)) + 10.0 * group[:, None] * [1.0, 0.0], group

    X, group = rows(50)
    model = LatentMixture(n_components=K, random_state=0)
    detector = MEDOutlierDetector(model, contamination=0.05).fit(X)
    part = detector.baseline_.responsibilities(X).argmax(axis=1)
    pairs = set(zip(part.tolist(), group.tolist()))
    assert len(pairs) == K  # each component has the rows of one group
    between = rng.normal(size=(50, 2)) * 0.5 + [5.0, 0.0]
    between[:, 0] += 10.0 * rng.integers(0, K - 1, size=50)
    assert (detector.predict(between) == -1).mean() > 0.95
    assert (detector.predict(rows(50)[0]) == 1).mean() > 0.8
