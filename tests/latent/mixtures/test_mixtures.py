"""Mixtures: EM against scikit-learn, entropies, gates, priors, predictions."""

import tracemalloc

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import digamma, gammaln
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture

from maxent import RowBlocks
from maxent.latent import (
    LMEDirichletMixture,
    LMEGaussianMixture,
    MixturePrior,
    NoAdmissibleCandidateError,
)
from maxent.latent.mixtures._gaussian_em import GaussianEM, _inverses
from maxent.latent.mixtures.dirichlet import DirichletEM
from maxent.latent.mixtures.lme_mixture_em import climb

KINDS = ["full", "diag", "spherical"]


def rows(rng, n=90, d=2):
    X = rng.normal(size=(n, d)) * np.linspace(1.5, 1.0, d)
    X[: n // 3] += 3.0
    X[n // 3 : 2 * n // 3, 0] -= 3.0
    return 10.0 * X + 5.0


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_start_finds_the_components(kind, rng):
    # corners of a triangle so far apart that components are those of the likelihood
    corners = 8.0 * np.array([[0.0, 1.0], [-0.87, -0.5], [0.87, -0.5]])
    X = rng.normal(size=(3, 30, 2)) * [1.5, 1.0] + corners[:, None]
    options = {"covariance_type": kind, "tol": 1e-9, "max_iter": 1000}
    best = GaussianMixture(3, means_init=X.mean(axis=1), **options)
    X = X.reshape(90, 2)
    score = best.fit(X).score(X)
    for init in ("k-means++", "kmeans", "random_from_data"):
        check_start(X, init, kind, score, 5)
    # From random shares all means start at one place, which EM leaves in few
    # directions: at some draws one start in twenty ends at the best maximum.
    check_start(X, "random", kind, score, 100)


def check_start(X, init, kind, score, n_init):
    options = {"covariance_type": kind, "n_init": n_init, "random_state": 0}
    model = LMEGaussianMixture(3, init_params=init, selection="likelihood", **options)
    model.fit(X)
    assert model.score(X) >= score - 1e-3
    np.testing.assert_array_equal(model.lower_bounds_, model.objective_history_)
    again = LMEGaussianMixture(3, init_params=init, **options | {"n_init": 2}).fit(X)
    first = model.candidate_means_[:2]
    np.testing.assert_allclose(again.candidate_means_, first, atol=1e-4)


def starts(problem, rng, R=4):
    K, d = problem.K, problem.d
    theta = rng.dirichlet(5 * np.ones(K), size=R)
    mean = rng.normal(size=(R, K, d))
    one = np.ones(d) if problem.diagonal else np.eye(d)
    factor = np.broadcast_to(one, (R, K, *one.shape))
    return problem.pack(theta, mean, factor)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [1, 7])
def test_em_is_that_of_sklearn(kind, steps, rng):
    X = rows(rng)
    problem = GaussianEM(X, np.ones(len(X)), 3, kind)
    phi = starts(problem, rng, 1)
    theta, mean, _ = problem.unpack(phi)
    for _ in range(steps):
        phi = problem.em(phi).following
    root = np.diag(problem.scale) if problem.diagonal else problem.scale
    scale = root @ root.T
    given = {
        "full": np.linalg.inv(scale)[None].repeat(3, axis=0),
        "diag": (1 / np.diag(scale))[None].repeat(3, axis=0),
        "spherical": np.full(3, 1 / scale[0, 0]),
    }[kind]
    peer = GaussianMixture(
        3,
        covariance_type=kind,
        tol=0.0,
        max_iter=steps,
        reg_covar=0.0,
        weights_init=theta[0],
        means_init=problem.centre + mean[0] @ root.T,
        precisions_init=given,
    ).fit(X)
    model = LMEGaussianMixture(3, kind)
    model._candidate_parameters(problem, phi)
    for name, theirs in (
        ("weights", peer.weights_),
        ("means", peer.means_),
        ("covariances", peer.covariances_),
    ):
        ours = getattr(model, f"candidate_{name}_")[0]
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_objective_never_falls(kind, accelerate, rng):
    X = rows(rng)
    prior = MixturePrior.weak(X)
    for each in (None, prior):
        problem = GaussianEM(X, np.ones(len(X)), 3, kind, each)
        phi, values = starts(problem, rng), []
        for r in range(len(phi)):
            runs = climb(problem, phi[r : r + 1], 1e-8, 300, accelerate=accelerate)
            values = np.array([h[1] for h in runs.history])
            assert np.diff(values).min() >= -1e-10 * (1 + np.abs(values).max())


def joint_entropy(weights, means, covs, rng, n=200_000):
    """Monte Carlo estimate of H(Y, Z) and its standard error."""
    z = rng.choice(len(weights), size=n, p=weights)
    terms = np.empty(n)
    for k in range(len(weights)):
        law = multivariate_normal(means[k], covs[k])
        at = z == k
        y = law.rvs(size=at.sum(), random_state=rng)
        terms[at] = -np.log(weights[k]) - law.logpdf(y)
    return terms.mean(), terms.std() / np.sqrt(n)


def test_posteriors_are_shares_of_the_density(rng):
    X = rng.normal(size=(60, 2)) + 4.0 * rng.integers(0, 2, size=(60, 1))
    model = LMEGaussianMixture(2, random_state=0).fit(X)
    parts = model.weights_[:, None] * np.array(
        [
            multivariate_normal(m, S).pdf(X)
            for m, S in zip(model.means_, model.covariances_)
        ]
    )
    share = model.predict_proba(X)
    np.testing.assert_allclose(share, (parts / parts.sum(axis=0)).T, atol=1e-9)
    np.testing.assert_allclose(share.sum(axis=1), 1.0, rtol=1e-12)


def test_values_are_in_the_units_of_the_data(rng):
    X = rows(rng)
    model = LMEGaussianMixture(2, n_init=5, random_state=0).fit(X)
    entropy, error = joint_entropy(
        model.weights_, model.means_, model.covariances_, np.random.default_rng(0)
    )
    assert abs(model.entropy_ - entropy) < 5 * error
    density = sum(
        w * multivariate_normal(m, c).pdf(X)
        for w, m, c in zip(model.weights_, model.means_, model.covariances_)
    )
    np.testing.assert_allclose(model.score_samples(X), np.log(density), atol=1e-9)
    assert model.log_likelihood_ == pytest.approx(model.score(X), abs=1e-9)
    # total moments are the sample's at a feasible point
    mean = model.weights_ @ model.means_
    second = np.einsum("k,kij->ij", model.weights_, model.covariances_)
    second += np.einsum("k,ki,kj->ij", model.weights_, model.means_, model.means_)
    np.testing.assert_allclose(mean, X.mean(axis=0), atol=1e-4)
    np.testing.assert_allclose(second, X.T @ X / len(X), rtol=1e-4)


def test_missing_share_is_the_rate_of_em_and_tells_saddles(rng):
    X = rows(rng)
    problem = GaussianEM(X, np.ones(len(X)), 2, "full")
    pooled = problem.pack(
        np.full((1, 2), 0.5), np.zeros((1, 2, 2)), np.tile(np.eye(2), (1, 2, 1, 1))
    )
    assert problem.em(pooled).residual[0] < 1e-12  # feasible
    assert problem.missing_share(pooled[0]) > 1.0 + 1e-3  # and a saddle
    end = climb(problem, starts(problem, rng), 1e-10, 20_000)
    best = end.phi[np.argmax(end.objective)]
    share = problem.missing_share(best)
    x, h = best, 1e-6
    J = np.column_stack(
        [
            (
                problem.em((x + h * e)[None]).following
                - problem.em((x - h * e)[None]).following
            )[0]
            / (2 * h)
            for e in np.eye(len(x))
        ]
    )
    assert np.abs(np.linalg.eigvals(J)).max() == pytest.approx(share, abs=1e-5)
    assert share < 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_missing_share_is_the_same_by_rows_and_by_statistics(kind, rng):
    X, w = rng.normal(size=(9, 4)), rng.uniform(0.5, 2.0, 9)
    problem = GaussianEM(X, w, 3, kind)
    phi = starts(problem, rng)
    for one in (*phi, *climb(problem, phi, 1e-6, 3).phi):
        expected = problem._share_by_statistics(one)
        assert problem._share_by_rows(one) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("kind", ["diag", "spherical"])
def test_wide_rows_make_no_matrix_of_the_columns(kind, rng):
    X = rng.normal(size=(12, 2000))
    tracemalloc.start()
    try:
        problem = GaussianEM(X, np.ones(12), 2, kind)
        phi = starts(problem, rng, 2)
        assert np.isfinite(problem.em(phi).objective).all()
        assert np.isfinite(problem.missing_share(phi[0]))
        model = LMEGaussianMixture(1, kind).fit(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_allclose(model.means_[0], X.mean(axis=0), atol=1e-12)
    assert peak < 0.25 * 8 * 2000**2


def test_gates_reject_the_pooled_model(rng):
    X = rows(rng)
    common = {"n_init": 4, "random_state": 0}
    pooled = {"means_init": [X.mean(axis=0)] * 2, "weights_init": [0.5, 0.5]}
    cov = np.cov(X.T, bias=True)
    pooled["precisions_init"] = [np.linalg.inv(cov)] * 2
    gated = LMEGaussianMixture(2, **common, **pooled).fit(X)
    assert gated.candidates_["reason"][0] != ""
    literal = LMEGaussianMixture(
        2, mi_tol=-1.0, check_maximum=False, **common, **pooled
    ).fit(X)
    assert literal.selected_ == 0 and literal.entropy_ > gated.entropy_


def test_entropies_shift_by_the_log_determinant(rng):
    X = rows(rng)
    A = rng.normal(size=(2, 2)) + 3 * np.eye(2)
    options = {"n_components": 2, "n_init": 6, "random_state": 0}
    a = LMEGaussianMixture(**options).fit(X)
    log_det = np.log(abs(np.linalg.det(A)))
    best = a.select("likelihood")
    mean = best.means_ @ A.T
    start = {"means_init": mean, "weights_init": best.weights_ / best.weights_.sum()}
    start["precisions_init"] = np.linalg.inv(A @ best.covariances_ @ A.T)
    b = LMEGaussianMixture(2, n_init=1, random_state=0, **start).fit(X @ A.T)
    assert b.candidates_["entropy"][0] == pytest.approx(best.entropy_ + log_det)
    assert b.candidates_["log_likelihood"][0] == pytest.approx(
        best.log_likelihood_ - log_det
    )


def test_one_component_is_the_closed_form(rng):
    X, w = rows(rng), rng.integers(0, 3, size=90).astype(float)
    model = LMEGaussianMixture().fit(X, sample_weight=w)
    np.testing.assert_allclose(model.means_[0], w @ X / w.sum())
    np.testing.assert_allclose(
        model.covariances_[0], np.cov(X.T, fweights=w.astype(int), bias=True)
    )


def test_map_is_stationary_and_its_limit_is_likelihood(rng):
    X = rows(rng)
    prior = MixturePrior(
        X.mean(axis=0), np.cov(X.T), mean_count=2.0, df=6.0, weight_count=1.5
    )
    model = LMEGaussianMixture(2, prior=prior, n_init=4, random_state=0, tol=1e-8)
    model.fit(X)
    n, d = X.shape

    def objective(shift):
        theta = np.exp(np.log(model.weights_) + shift[:2])
        theta /= theta.sum()
        means = model.means_ + shift[2:6].reshape(2, 2)
        total = np.sum((prior.weight_count - 1) * np.log(theta))
        density = 0.0
        for k in range(2):
            L = np.linalg.cholesky(model.covariances_[k])
            E = np.array([[shift[6 + 3 * k], 0], shift[7 + 3 * k : 9 + 3 * k]])
            S = L @ (np.eye(2) + E) @ (np.eye(2) + E).T @ L.T
            P, away = np.linalg.inv(S), means[k] - prior.mean
            total += (prior.df - d) / 2 * np.linalg.slogdet(P)[1]
            total -= prior.mean_count / 2 * away @ P @ away
            total -= np.trace(prior.scale @ P) / 2
            density = density + theta[k] * multivariate_normal(means[k], S).pdf(X)
        return np.mean(np.log(density)) + total / n

    h = 1e-5
    slope = [(objective(h * e) - objective(-h * e)) / (2 * h) for e in np.eye(12)]
    np.testing.assert_allclose(slope, 0.0, atol=1e-6)
    weak = MixturePrior(X.mean(axis=0), 1e-9 * np.eye(2), mean_count=1e-9, df=2 + 1e-9)
    a = GaussianEM(X, np.ones(n), 2, "full", weak)
    b = GaussianEM(X, np.ones(n), 2, "full")
    phi = starts(b, rng)
    np.testing.assert_allclose(a.em(phi).following, b.em(phi).following, atol=1e-6)


def test_degenerate_starts_are_rejected_and_counted(rng):
    X = rows(rng)
    # a component on one row alone shrinks onto it
    narrow = {"means_init": [X[0], X.mean(axis=0)], "weights_init": [0.01, 0.99]}
    narrow["precisions_init"] = [1e10 * np.eye(2), np.linalg.inv(np.cov(X.T))]
    model = LMEGaussianMixture(2, n_init=10, random_state=0, **narrow).fit(X)
    assert model.candidates_["reason"][0] == "unbounded"
    assert model.rejected_["unbounded"] >= 1 and np.isfinite(model.log_likelihood_)
    with pytest.raises(NoAdmissibleCandidateError, match="unbounded"):
        LMEGaussianMixture(6, n_init=5, random_state=0).fit(X[:7])


def test_the_remedy_of_unbounded_mixtures_works():
    X = np.repeat([[0.0], [1.0]], 20, axis=0)  # a component on each value shrinks
    options = {"n_init": 5, "random_state": 0}
    with pytest.raises(NoAdmissibleCandidateError, match="use prior='weak'"):
        LMEGaussianMixture(2, **options).fit(X)
    assert LMEGaussianMixture(2, prior="weak", **options).fit(X).converged_


def test_choices_replace_sklearn_in_one_line(rng):
    X = rows(rng)
    model = LMEGaussianMixture(
        n_components=3, n_init=20, selection="likelihood", random_state=0
    ).fit(X)
    options = {"tol": 1e-6, "max_iter": 1000}
    peers = [GaussianMixture(3, random_state=s, **options).fit(X) for s in range(5)]
    for peer in peers:  # those on a handful of rows are small by chance
        if peer.weights_.min() > 0.1:
            assert model.lower_bound_ >= peer.lower_bound_ - 1e-5
    for name in (
        "weights_",
        "means_",
        "covariances_",
        "precisions_",
        "precisions_cholesky_",
    ):
        assert getattr(model, name).shape == getattr(peer, name).shape
    assert model._n_parameters() == peer._n_parameters()
    np.testing.assert_allclose(
        model.bic(X), -2 * len(X) * model.score(X) + 17 * np.log(len(X))
    )
    draws, z = model.sample(200, random_state=0)
    assert draws.shape == (200, 2) and z.shape == (200,)
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X).argmax(1))


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_precisions_are_the_inverse_covariances_and_their_factors(kind, rng):
    X = rows(rng)
    model = LMEGaussianMixture(2, kind, n_init=3, random_state=0).fit(X)
    root, cov = model.precisions_cholesky_, model.covariances_
    if kind == "full":
        product = root @ root.swapaxes(-2, -1)
        np.testing.assert_allclose(model.precisions_, np.linalg.inv(cov), rtol=1e-9)
        np.testing.assert_array_equal(root, np.triu(root))  # as in scikit-learn
    else:
        product = root**2
        np.testing.assert_allclose(model.precisions_, 1.0 / cov, rtol=1e-12)
    np.testing.assert_allclose(product, model.precisions_, rtol=1e-9, atol=1e-12)


def test_any_number_of_threads_gives_the_same_bits(rng):
    X = rows(rng)
    one, two = (
        LMEGaussianMixture(2, n_init=6, random_state=0, n_jobs=k).fit(X) for k in (1, 2)
    )
    np.testing.assert_array_equal(one.candidate_means_, two.candidate_means_)


def test_weights_are_repetition_in_em(rng):
    X, w = rows(rng), rng.integers(1, 4, size=90)
    a = GaussianEM(X, w.astype(float), 2, "full")
    b = GaussianEM(np.repeat(X, w, axis=0), np.ones(w.sum()), 2, "full")
    phi = starts(a, rng)
    np.testing.assert_allclose(a.em(phi).following, b.em(phi).following, atol=1e-9)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"n_components": 0}, "n_components=0"),
        ({"n_components": 91}, "n_components=91 is more than the 90 rows"),
        ({"covariance_type": "tied"}, "covariance_type='tied'"),
        ({"n_init": 0}, "n_init=0"),
        ({"prior": "strong"}, "prior='strong'"),
        ({"prior": MixturePrior(np.zeros(3), np.eye(3))}, "3 columns and X has 2"),
        ({"weights_init": [1.0]}, "need means_init"),
        ({"means_init": [[0.0]]}, "means_init has shape"),
        ({"tol": 0}, "tol=0"),
    ],
)
def test_bad_parameters_are_named(change, words, rng):
    with pytest.raises(ValueError, match=words):
        LMEGaussianMixture(**change).fit(rows(rng))


def test_bad_rows_are_named(rng):
    X = rows(rng)
    constant = X.copy()
    constant[:, 1] = 7.0
    with pytest.raises(ValueError, match="column 1 of X is constant"):
        LMEGaussianMixture(2).fit(constant)
    with pytest.raises(ValueError, match="singular"):
        LMEGaussianMixture(2).fit(np.column_stack([X, X[:, 0] + X[:, 1]]))


@pytest.mark.parametrize(
    "change, words",
    [
        ({"df": 2.0}, "df=2 must be above d=2"),
        ({"weight_count": 0.5}, "weight_count=0.5"),
        ({"mean_count": 0.0}, "mean_count=0"),
        ({"scale": -np.eye(2)}, "positive definite"),
        ({"mean": [0.0]}, "mean has shape"),
    ],
)
def test_bad_priors_are_named(change, words):
    with pytest.raises(ValueError, match=words):
        MixturePrior(**({"mean": np.zeros(2), "scale": np.eye(2)} | change))


# -- Dirichlet mixtures --------------------------------------------------------------
def proportions(rng, n=60):
    return np.vstack([rng.dirichlet([2, 5, 1], n), rng.dirichlet([9, 2, 3], n)])


def test_dirichlet_m_step_is_the_direct_maximum(rng):
    X = proportions(rng)
    problem = DirichletEM(X, np.ones(len(X)), 1)
    step = problem.em(problem.pack(np.ones((1, 1)), np.ones((1, 1, 3))))
    alpha = problem.unpack(step.following)[1][0, 0]
    g = np.log(X).mean(axis=0)

    def negative(log_a):
        a = np.exp(log_a)
        value = gammaln(a.sum()) - gammaln(a).sum() + (a - 1) @ g
        return -value, -a * (digamma(a.sum()) - digamma(a) + g)

    best = minimize(negative, np.zeros(3), jac=True, options={"gtol": 1e-10})
    np.testing.assert_allclose(alpha, np.exp(best.x), rtol=1e-6)
    assert negative(np.log(alpha))[0] <= best.fun + 1e-12


def test_dirichlet_mixture_is_feasible_with_its_entropy(seed):
    rng = np.random.default_rng(seed)
    X = proportions(rng)
    model = LMEDirichletMixture(2, n_init=5, random_state=0).fit(X)
    values = model.objective_history_
    assert np.diff(values).min() >= -1e-10
    assert model.score(X) == pytest.approx(model.log_likelihood_, abs=1e-9)
    draws = np.random.default_rng(1)
    terms = []
    for k, a in enumerate(model.alphas_):
        y = draws.dirichlet(a, size=100_000)
        log_p = np.log(y) @ (a - 1) + gammaln(a.sum()) - gammaln(a).sum()
        terms.append(-log_p - np.log(model.weights_[k]))
    mean = sum(w * t.mean() for w, t in zip(model.weights_, terms))
    error = np.sqrt(sum(w**2 * t.var() / 1e5 for w, t in zip(model.weights_, terms)))
    assert abs(model.entropy_ - mean) < 5 * error
    draws, _ = model.sample(50, random_state=0)
    np.testing.assert_allclose(draws.sum(axis=1), 1.0)


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda X: -X, "Negative values"),
        (lambda X: 2 * X, "row 0 of X sums to 2"),
        (lambda X: X[:, :1], "minimum of 2"),
        (lambda X: np.vstack([X, [1.0, 0.0, 0.0]]), r"X\[120, 1\]=0 .* smoothing"),
        (lambda X: np.tile(X[:1], (9, 1)), "all rows of X are equal"),
    ],
)
def test_rows_that_are_no_proportions_are_named(change, words, rng):
    with pytest.raises(ValueError, match=words):
        LMEDirichletMixture(2).fit(change(proportions(rng)))


def test_smoothing_takes_zeros(rng):
    X = np.vstack([proportions(rng), [1.0, 0.0, 0.0]])
    model = LMEDirichletMixture(2, smoothing=1e-3, n_init=3, random_state=0).fit(X)
    assert np.isfinite(model.score(X))


def test_spherical_components_with_a_prior_stay_spherical(rng):
    # checking for a maximum moves the parameters: one variance as one
    X = rng.normal(size=(60, 3)) * [1.0, 2.0, 3.0] + 5.0 * rng.integers(0, 2, (60, 1))
    for seed in range(5):
        model = LMEGaussianMixture(2, "spherical", prior="weak", random_state=seed)
        assert model.fit(X).candidates_["reason"][0] in ("", "not_local_maximum")


def test_shares_in_single_precision_are_proportions(rng):
    X = rng.dirichlet([1.0, 2.0, 3.0], 80).astype(np.float32)
    model = LMEDirichletMixture(2, random_state=0).fit(X)
    assert np.isfinite(model.score_samples(X)).all()
    with pytest.raises(ValueError, match=r"sums to 1\.01.*divide them"):
        model.fit(X.astype(float) * 1.01)


def test_extrapolations_without_an_inverse_are_given_up():
    X = np.array(
        [
            [250.0, -1083.6, 1058.8, -841.5, 1779.7],
            [251.9, -1082.6, 1051.4, -840.6, 1778.0],
        ]
    )
    factor = np.zeros((2, 3, 3))
    factor[0] = np.eye(3)
    found = _inverses(factor)
    assert np.isinf(found[1]).all() and (found[0] == np.eye(3)).all()
    model = LMEGaussianMixture(
        2, n_init=2, prior="weak", init_params="kmeans", random_state=0
    )
    assert np.isfinite(model.fit(X).score_samples(X)).all()


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
@pytest.mark.parametrize("weak", [False, True])
@pytest.mark.parametrize("make", [np.asarray, "blocks"])
def test_objective_is_the_likelihood_and_the_log_prior(make, weak, kind, rng, tmp_path):
    units = [100.0, 100.0] if kind == "spherical" else [100.0, 1e-3]
    X = rows(rng) * units + [5.0, 1.0]
    w, d = rng.gamma(1.0, size=len(X)), 2
    if not weak:
        scale, df = np.cov(X.T, aweights=w), 5.5
        prior = MixturePrior(X[0], scale, mean_count=0.3, df=df, weight_count=1.5)
    data = make(X) if make != "blocks" else _blocks(X, tmp_path)
    options = {"prior": "weak" if weak else prior, "random_state": 0, "mi_tol": -1.0}
    model = LMEGaussianMixture(2, kind, 3, **options)
    if weak:
        prior = model._weak_prior(X, w)
    model.fit(data, sample_weight=w)
    total = (prior.weight_count - 1.0) * np.log(model.weights_).sum()
    for mean, cov in zip(model.means_, model.covariances_, strict=True):
        P = np.linalg.inv(cov if kind == "full" else cov * np.eye(d))
        total += (prior.df - d) / 2 * np.linalg.slogdet(P)[1]
        total -= prior.mean_count / 2 * (mean - prior.mean) @ P @ (mean - prior.mean)
        total -= np.trace(prior.scale @ P) / 2
    likelihood = w @ model.score_samples(X) / w.sum()
    assert model.log_likelihood_ == pytest.approx(likelihood, abs=1e-9)
    assert model.objective_ == pytest.approx(likelihood + total / w.sum(), abs=1e-9)
    assert model.objective_ == model.lower_bound_
    largest = model.candidates_["objective"].max()
    assert model.objective_history_[-1] == pytest.approx(largest, abs=1e-9)


def _blocks(X, folder):
    np.save(folder / "X.npy", X)
    return RowBlocks(folder / "X.npy", 40)


# -- components far narrower than the rows as a whole ----------------------------------
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("far", [30.0, 1e5])
def test_convergence_is_that_of_each_component(far, kind, rng):
    # two components of one group, alike but for their sides, so that weights tell
    # nothing of how far their means have come
    near = rng.normal(size=200) + 1.3
    near = np.append(near, -near)
    X = np.append(rng.normal(size=400), near + far)[:, None]
    one = {"full": np.ones((3, 1, 1)), "diag": np.ones((3, 1)), "spherical": np.ones(3)}
    start = {"weights_init": [0.5, 0.25, 0.25], "precisions_init": one[kind]}
    start["means_init"] = [[0.0], [far - 0.5], [far + 0.5]]
    options = {"mi_tol": -1.0, "check_maximum": False, "random_state": 0}
    model = LMEGaussianMixture(3, kind, 1, **options, **start).fit(X)
    alone = LMEGaussianMixture(
        *(2, kind, 1),
        weights_init=[0.5, 0.5],
        means_init=[[-0.5], [0.5]],
        precisions_init=one[kind][1:],
        tol=1e-9,
        **options,
    ).fit(near[:, None])
    assert model.candidates_["residual"][0] <= model.tol
    means = model.candidate_means_[0, 1:] - far
    np.testing.assert_allclose(means, alone.candidate_means_[0], atol=1e-3)
    cov = model.candidate_covariances_[0].ravel()[1:]
    np.testing.assert_allclose(cov, alone.candidate_covariances_[0].ravel(), atol=1e-3)


def test_convergence_of_concentrated_proportions_is_that_of_each_component(rng):
    near = np.exp(0.01 * (rng.normal(size=200) + 1.3))
    near = np.append(near, 1.0 / near)
    X = np.append(rng.uniform(1e-3, 1e-2, size=400), near / (1.0 + near))
    X = np.column_stack([X, 1.0 - X])
    problem = DirichletEM(X, np.ones(800), 3)
    theta, alpha = np.array([[0.5, 0.25, 0.25]]), np.array([[1.0, 200.0]])
    pair = 1e4 * np.array([[0.998, 1.002], [1.002, 0.998]])
    start = problem.pack(theta, np.vstack([alpha, pair])[None])
    found, exact = (climb(problem, start, tol, 10_000) for tol in (1e-6, 1e-10))
    assert found.residual[0] <= 1e-6
    np.testing.assert_allclose(found.phi, exact.phi, atol=1e-3)


def test_weak_priors_are_in_the_units_of_each_column(rng):
    X, unit = rows(rng), np.array([1e-6, 1e3])
    prior, moved = MixturePrior.weak(X), MixturePrior.weak(X * unit)
    scale = prior.scale * unit * unit[:, None]
    np.testing.assert_allclose(moved.scale, scale, rtol=1e-12)
    constant = MixturePrior.weak(np.column_stack([X, np.ones(len(X))]))
    assert np.linalg.eigvalsh(constant.scale)[0] > 0


def test_equal_priors_are_equal(rng):
    X = rows(rng)
    prior, again = MixturePrior.weak(X), MixturePrior.weak(X)
    assert prior == again and hash(prior) == hash(again)
    assert prior != MixturePrior.weak(X[1:]) and prior != "weak"


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
@pytest.mark.parametrize("apart", [10.0, 1e4])
def test_weak_priors_do_not_widen_groups_that_lie_apart(apart, kind, rng):
    X = rng.normal(size=(240, 2))
    X[:, 0] += apart * np.repeat(np.arange(4), 60)
    options = {"prior": "weak", "n_init": 3, "random_state": 0}
    model = LMEGaussianMixture(4, kind, **options).fit(X)
    first = np.sort(model.means_[:, 0])
    np.testing.assert_allclose(first, apart * np.arange(4), atol=0.6)
    spread = np.sqrt(np.reshape(model.covariances_, (4, -1))[:, 0])
    np.testing.assert_allclose(spread, 1.0, atol=0.35)


@pytest.mark.parametrize("kind", KINDS)
def test_perturbations_are_in_the_units_of_the_components(kind, rng):
    X = rows(rng)
    problem = GaussianEM(X, np.ones(len(X)), 2, kind)
    model = LMEGaussianMixture(2, kind)
    mean = problem.y[:, :2].T[None]
    A = 1e-5 * (rng.normal(size=(2, 2, 2)) + 3.0 * np.eye(2))
    cov = A @ A.swapaxes(-2, -1)
    if problem.diagonal:
        cov = np.broadcast_to(cov[:, :1, 0], (2, 2))
    phi = problem.pack(np.full((1, 2), 0.5), mean, problem.factors(cov[None])[0])
    moved = phi + 1e-3 * model._direction(
        problem, phi[0], rng.normal(size=phi.shape[1])
    )
    (_, m0, f0), (_, m1, f1) = (problem.unpack(x) for x in (phi, moved))
    if problem.diagonal:
        shift, change = (m1 - m0) / f0, f1 / f0 - 1.0
    else:
        shift = np.linalg.solve(f0, (m1 - m0)[..., None])
        change = np.linalg.solve(f0, f1) - np.eye(2)
    for size in (shift, change):
        assert 1e-5 < np.abs(size).max() < 1e-2
