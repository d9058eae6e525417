"""Mixtures: densities, EM that never falls, scikit-learn's step by step."""

import pickle
import tracemalloc

import numpy as np
import pytest
from families.family_cases import MAKERS
from models.sequence_cases import quiet
from refusals import refusals, refused
from scipy import stats
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from maxent.families import (
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    Exponential,
    Gaussian,
    Multinomial,
    NegativeBinomial,
    Poisson,
    SphericalGaussian,
    TiedGaussian,
)
from maxent.models import Mixture
from maxent.models._components import Components
from maxent.models._mixture_em import MixtureProblem

SKLEARN = {"full": Gaussian, "diag": DiagonalGaussian, "spherical": SphericalGaussian}


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_density_is_the_weighted_sum(name, rng):
    P = MAKERS[name](rng, (3,))
    M = Mixture([0.2, 0.5, 0.3], P)
    X = M.sample(40, rng)
    each = np.stack([P[h].log_prob(X) for h in range(3)])
    np.testing.assert_allclose(
        M.log_prob(X), logsumexp(each.T + np.log([0.2, 0.5, 0.3]), axis=1), rtol=1e-10
    )
    joint = np.exp(each + np.log([[0.2], [0.5], [0.3]]))
    np.testing.assert_allclose(M.posterior(X), (joint / joint.sum(axis=0)).T, atol=1e-9)


def test_draws_come_from_the_components(rng):
    M = Mixture([0.25, 0.75, 0.0], Poisson([0.5, 50.0, 3.0]))
    X, which = M.sample(4000, rng, return_components=True)
    assert set(which) == {0, 1}
    assert abs(np.mean(which == 0) - 0.25) < 6 * np.sqrt(0.25 * 0.75 / 4000)
    assert X[which == 1].min() > X[which == 0].mean()


@pytest.mark.parametrize("kind", sorted(SKLEARN))
@pytest.mark.parametrize("n_iter", [1, 2, 10])
def test_steps_equal_scikit_learn(kind, n_iter, rng):
    X = np.concatenate([rng.normal(size=(60, 2)), 0.5 * rng.normal(size=(40, 2)) + 3])
    share = rng.dirichlet(np.ones(3), size=100)
    weights, first = MixtureProblem(X, None, SKLEARN[kind], 0.0, {}).maximum(
        share.T, None
    )
    precision = np.linalg.inv(first.cov) if kind == "full" else 1 / first.var
    peer = GaussianMixture(
        3,
        covariance_type=kind,
        reg_covar=0.0,
        tol=0.0,
        max_iter=n_iter,
        weights_init=weights,
        means_init=first.mean,
        precisions_init=precision,
    )
    with pytest.warns(ConvergenceWarning):
        peer.fit(X)
    with pytest.warns(ConvergenceWarning):
        ours = Mixture.fit(
            X,
            init=share,
            smoothing=0,
            family=SKLEARN[kind],
            max_iter=n_iter,
            tol=1e-300,
        )
    np.testing.assert_allclose(ours.components.mean, peer.means_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.weights, peer.weights_, rtol=1e-9)
    np.testing.assert_allclose(ours.log_prob(X), peer.score_samples(X), rtol=1e-8)


def problems(rng, n):
    """Fits of random mixtures of several families."""
    for k in range(n):
        rows = int(rng.integers(4, 40))
        X, family, more = [
            (rng.normal(size=(rows, 2)), Gaussian, {}),
            (rng.normal(size=(rows, 3)), DiagonalGaussian, {}),
            (rng.normal(size=(rows, 2)), SphericalGaussian, {}),
            (rng.poisson(3.0, size=rows) + 1.0 * (k % 2), Poisson, {}),
            (rng.integers(0, 4, rows), Categorical, {"n_categories": 4}),
        ][k % 5]
        yield quiet(
            Mixture.fit,
            X,
            rng.uniform(0.1, 2.0, size=rows),
            family=family,
            n_components=int(rng.integers(1, 4)),
            smoothing=float(rng.choice([0.01, 0.5])),
            max_iter=60,
            n_init=1,
            tol=1e-13,
            random_state=k,
            family_options=more,
        )


def worst_step(fits):
    return min(
        np.min(np.diff(h) / (1 + np.abs(h[1:])), initial=np.inf)
        for h in (fit.fit_result.objective_history for fit in fits)
    )


# -- missing entries -------------------------------------------------------------------
def holed(rng, X, share=0.3):
    """Rows with holes, one entry of each at least observed."""
    lost = rng.random(X.shape) < share
    lost[np.arange(len(X)), rng.integers(X.shape[1], size=len(X))] = False
    return np.where(lost, np.nan, X)


def fit_cov(P):
    return P.cov if isinstance(P, Gaussian) else np.asarray(P.var)


def marginal_log_prob(M, x):
    """Log-density of what was observed of a row, one component at a time."""
    o = ~np.isnan(x)
    terms = []
    for h, w in enumerate(M.weights):
        P = M.components[h]
        cov = fit_cov(P)
        cov = cov if cov.ndim == 2 else np.diag(np.broadcast_to(cov, len(x)))
        law = stats.multivariate_normal(P.mean[o], cov[np.ix_(o, o)])
        terms.append(np.log(w) + law.logpdf(x[o]))
    return logsumexp(terms), np.exp(terms - logsumexp(terms))


@pytest.mark.parametrize("family", SKLEARN.values())
def test_missing_entries_are_integrated_out(family, rng):
    A = rng.normal(size=(2, 4, 3))
    M = Mixture([0.3, 0.7], family.fit(A))
    X = holed(rng, rng.normal(size=(12, 3)))
    expected, shares = zip(*(marginal_log_prob(M, x) for x in X))
    np.testing.assert_allclose(M.log_prob(X), expected, rtol=1e-10)
    np.testing.assert_allclose(M.posterior(X), shares, atol=1e-10)
    lost = np.full((1, 3), np.nan)
    np.testing.assert_allclose(M.log_prob(lost), 0.0, atol=1e-12)
    np.testing.assert_allclose(M.posterior(lost), [[0.3, 0.7]], atol=1e-12)


@pytest.mark.parametrize("family", SKLEARN.values())
def test_em_with_missing_entries_never_falls_and_has_its_objective(family, rng):
    for k in range(8):
        whole = rng.normal(size=(int(rng.integers(8, 20)), 3))
        X = holed(rng, whole)
        X[:6] = whole[:6]  # without them the likelihood may be unbounded
        w, c = rng.uniform(0.1, 1.0, len(X)), float(rng.choice([0.01, 0.5]))
        options = {"family": family, "smoothing": c, "random_state": k, "tol": 1e-13}
        options |= {"n_components": int(rng.integers(1, 4)), "n_init": 1}
        fit = quiet(Mixture.fit, X, w, max_iter=60, **options)
        assert worst_step([fit]) > -1e-12
        again = quiet(Mixture.fit, X, w, init=fit, smoothing=c, max_iter=1)
        log_lik = w @ [marginal_log_prob(fit, x)[0] for x in X]
        found = again.fit_result.objective_history[0]
        log_prior = c * np.log(fit.weights).sum() + spread_density(fit, X, w, c)
        assert found == pytest.approx(log_lik + log_prior, rel=1e-9)


def spread_density(fit, X, w, count):
    """Log-density of the prior of the covariances, groups by the posterior of `fit`."""
    groups = fit.posterior(X).argmax(axis=1)
    full = isinstance(fit.components, Gaussian)
    mean = np.ma.average(np.ma.masked_invalid(X), axis=0, weights=w)
    X = np.where(np.isnan(X), mean, X)
    within, sizes, scatters = 0.0, [], []
    for h in np.unique(groups):
        scatter = np.cov(X[groups == h].T, aweights=w[groups == h], bias=True)
        if (groups == h).sum() == 1:
            scatter = np.zeros((X.shape[1], X.shape[1]))
        sizes.append(w[groups == h].sum())
        scatters.append(sizes[-1] * scatter)
    within = sum(scatters) / w.sum()
    if isinstance(fit.components, SphericalGaussian):
        within = np.trace(within) / len(within) * np.eye(len(within))
    if not full:
        within = np.diag(np.diag(within))
    assert max(sizes) < 20 or len(sizes) == 1  # too few rows to judge spreads by
    total = 0.0
    for P in fit.components:
        cov = fit_cov(P)
        cov = cov if cov.ndim == 2 else np.diag(np.broadcast_to(cov, X.shape[1]))
        ratio = np.linalg.solve(cov, within)
        total -= np.trace(ratio) - np.linalg.slogdet(ratio)[1] - len(ratio)
    return 0.5 * count * total * ((X.shape[1] + 2) / 3 if full else 1.0)


@pytest.mark.parametrize("family", [DiagonalGaussian, SphericalGaussian])
def test_missing_entries_of_wide_rows_make_no_matrix_of_the_columns(family, rng):
    whole = rng.normal(size=(6, 3000))
    X = holed(rng, whole)
    X[:2] = whole[:2]
    tracemalloc.start()
    try:
        options = {"family": family, "n_components": 2, "max_iter": 3, "n_init": 1}
        fit = quiet(Mixture.fit, X, random_state=0, **options)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert np.isfinite(fit.log_prob(X)).all()
    assert peak < 0.25 * 8 * 3000**2


def test_one_gaussian_with_a_column_in_part_is_the_regression_estimate(rng):
    """Anderson (1957): the second column was observed in the first rows only."""
    X = rng.multivariate_normal([1.0, -2.0], [[1.0, 0.8], [0.8, 2.0]], size=60)
    X[35:, 1] = np.nan
    fit = Mixture.fit(X, n_components=1, smoothing=0.0, tol=1e-14, random_state=0)
    seen = X[:35]
    m, S = seen.mean(axis=0), np.cov(seen.T, bias=True)
    slope = S[0, 1] / S[0, 0]
    mean, var = X[:, 0].mean(), X[:, 0].var()
    left = S[1, 1] - slope * S[0, 1]
    cov = [[var, slope * var], [slope * var, left + slope**2 * var]]
    np.testing.assert_allclose(
        fit.components.mean[0], [mean, m[1] + slope * (mean - m[0])], atol=1e-5
    )
    np.testing.assert_allclose(fit.components.cov[0], cov, atol=1e-5)


def test_missing_entries_that_cannot_be_taken_are_refused_with_a_remedy(rng):
    X = rng.normal(size=(9, 2))
    X[3, 1] = np.nan
    remedy = r"X\[3.*\]=nan must be a finite number: fill in what is missing, or drop"
    refused(lambda: Mixture.fit(X, family=Multinomial), remedy)
    refused(lambda: Mixture.fit(X[:, 1], family=Poisson), remedy)
    lost = X.copy()
    lost[5, 0] = np.inf
    refused(lambda: Mixture.fit(lost), r"X\[5, 0\]=inf must be a finite")
    lost = X.copy()
    lost[3] = np.nan
    refused(lambda: Mixture.fit(lost), r"X\[3\] is missing \(NaN\) altogether; drop")
    lost = X.copy()
    lost[:, 1] = np.nan
    refused(lambda: Mixture.fit(lost), r"column 1 of X is missing \(NaN\) in every row")
    lost[:2, 1] = 1.0
    refused(lambda: Mixture.fit(lost), "column 1 of X is constant where")
    options = {"family_options": {"smoothing": 1.0}}
    refused(lambda: Mixture.fit(X, **options), "family_options=.* not read where X")


def test_fit_finds_the_mixture_that_drew_the_data(rng):
    truth = Mixture([0.3, 0.7], Gaussian([[0, 0], [6, 6]], [np.eye(2), np.eye(2)]))
    X = truth.sample(1000, rng)
    fit = Mixture.fit(X, n_components=2, random_state=0)
    assert fit.fit_result.converged
    gain = fit.log_likelihood(X) - truth.log_likelihood(X)
    assert gain.shape == (1000,) and gain.sum() > -1.0
    np.testing.assert_allclose(np.sort(fit.weights), [0.3, 0.7], atol=0.1)


def test_weights_are_repetitions(rng):
    X = rng.normal(size=(20, 2))
    init = Mixture([0.5, 0.5], DiagonalGaussian([[0, 0], [1, 1]], np.ones((2, 2))))
    options = {"init": init, "max_iter": 3, "tol": 1e-300}
    w = rng.integers(0, 3, size=20)
    w[0] = 1
    with pytest.warns(ConvergenceWarning):
        a = Mixture.fit(X, w, **options)
    with pytest.warns(ConvergenceWarning):
        b = Mixture.fit(np.repeat(X, w, axis=0), **options)
    np.testing.assert_allclose(a.components.mean, b.components.mean, atol=1e-10)


def test_a_component_on_one_row_keeps_the_covariance_of_the_others(rng):
    X = np.concatenate([rng.normal(size=(30, 2)), [[100.0, 100.0]]])
    fit = Mixture.fit(X, n_components=2, random_state=0)
    least = np.linalg.eigvalsh(fit.components.cov)[..., 0].min()
    whole = np.linalg.eigvalsh(np.cov(X.T, bias=True))[0]
    assert least >= 0.01 / 31.01 * whole * (1 - 1e-9)


def test_values(rng):
    M = Mixture([0.4, 0.6], Gaussian(rng.normal(size=(2, 2)), np.eye(2)))
    assert pickle.loads(pickle.dumps(M)) == M == Mixture.from_spec(M.get_spec())
    assert hash(M) == hash(Mixture(M.weights, M.components))
    assert M.event_shape == (2,) and M.n_components == 2
    with pytest.raises(AttributeError, match="immutable"):
        M.weights = 0


test_bad_input_is_named = refusals(
    [
        (lambda: Mixture([0.5, 0.4], Poisson([1.0, 2.0])), "weights sums to 0.9"),
        (lambda: Mixture([1.0], Poisson([1.0, 2.0])), "weights has shape"),
        (lambda: Mixture([1.0], 3), "components=3"),
        (lambda: Mixture.fit([[1.0], [2.0]], family=3), "family=3"),
        (lambda: Mixture.fit(np.zeros((0, 2))), "no row"),
        (lambda: Mixture.fit([-1, 2], family=Poisson), "outside the support"),
        (lambda: Mixture.fit([[1.0], [2.0]], [0.0, 0.0]), "weights is zero"),
        (lambda: Mixture.fit([[1.0], [2.0]], 2), "weights=2 .*n_components=2"),
        (lambda: Mixture.fit([[1.0], [2.0]], init=[[1.0]]), "init has shape"),
        (
            lambda: Mixture([1.0], Bernoulli([0.0])).posterior([1]),
            r"X\[0\] has probability 0",
        ),
        (
            lambda: Mixture([1.0], Multinomial([[0.5, 0.5]], 2)).log_prob([1, 1]),
            "X has shape",
        ),
    ]
)


def test_a_bad_bag_of_many_is_named_before_any_fit(rng):
    bags = [rng.normal(size=(9, 1)), np.array([[0.0], [np.inf]])]
    refused(lambda: Mixture.fit_many(bags), r"data\[1\]\[1, 0\]=inf must be a finite")
    bags[1] = bags[0][:0]
    refused(lambda: Mixture.fit_many(bags), r"data\[1\] has shape \(0, 1\)")


@pytest.mark.parametrize("family", [Gaussian, DiagonalGaussian, SphericalGaussian])
@pytest.mark.parametrize("wrong", [np.inf, -np.inf])
def test_infinite_entries_are_named(family, wrong, rng):
    X = rng.normal(size=(20, 2))
    X[7, 1] = wrong
    match = r"X\[7, 1\]=-?inf must be a finite number"
    refused(lambda: Mixture.fit(X, family=family), match)
    X[3, 0] = np.nan
    refused(lambda: Mixture.fit(X, family=family), match)


@pytest.mark.parametrize("family", [Poisson, Bernoulli, Categorical, Exponential])
def test_other_axes_than_rows_of_numbers_are_named(family, rng):
    x = rng.integers(0, 2, 30) + (family is Exponential)
    model = Mixture.fit(x, family=family, random_state=0)
    for X, match in (
        (x[:, None], r"shape \(30, 1\), expected \(n_samples,\) .*Pass X.ravel\(\)"),
        (x[:, None].tolist(), r"shape \(30, 1\), expected \(n_samples,\)"),
    ):
        refused(lambda X=X: Mixture.fit(X, family=family), match)
        refused(lambda X=X: Mixture.fit(X, init=model), match)
        refused(lambda X=X: model.log_prob(X), match)
    two, match = np.stack([x, x], 1), r"shape \(30, 2\).* Pass one column, as X\[:, 0\]"
    refused(lambda: Mixture.fit(two, init=model), match)
    refused(lambda: model.log_prob(two), match)
    # a row for each component is no batch of rows
    refused(lambda: model.log_prob(np.stack([x, x])), "expected")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"count": x})
    refused(lambda: Mixture.fit(frame, family=family), r"Pass X\['count'\]")
    assert Mixture.fit(frame["count"], family=family, random_state=0) == model


def test_other_axes_than_rows_of_vectors_are_named(rng):
    X = rng.normal(size=(1, 50, 2))
    match = r"shape \(1, 50, 2\), expected \(n_samples, k\).*X.reshape\(-1, 2\)"
    refused(lambda: Mixture.fit(X), match + r".*fit_many\(list\(X\)\)")
    refused(lambda: Mixture.fit(X[0, :, 0]), r"numpy.reshape\(X, \(-1, 1\)\)")
    assert len(Mixture.fit_many(list(X), random_state=0)) == 1


def test_rows_that_no_component_can_show_are_named(rng):
    C = rng.multinomial(10, [0.2, 0.3, 0.5], size=30)
    wrong = np.array(C)
    wrong[[4, 9], 0] += [2, 3]
    options = {"family": Multinomial, "family_options": {"total": 10}}
    match = r"X\[4\], X\[9\]: 2 of 30 rows have probability 0 .* sum to total=10"
    refused(lambda: Mixture.fit(wrong, **options), match)
    model = Mixture.fit(C, **options, random_state=0)
    refused(lambda: Mixture.fit(wrong, init=model), match)
    shares = model.posterior(C)
    refused(lambda: Mixture.fit(wrong, init=shares, **options), match)
    # rows without weight are not fitted, and keep their places in messages
    weights = np.ones(30)
    weights[4] = 0
    refused(
        lambda: Mixture.fit(wrong, weights, **options), r"X\[9\]: 1 of 30 rows have"
    )
    weights[9] = 0
    assert Mixture.fit(wrong, weights, **options, random_state=0).n_components == 2
    never = Mixture([0.5, 0.5], Poisson([0.0, 0.0]))
    refused(lambda: Mixture.fit([0, 0, 3], init=never), r"X\[2\]: 1 of 3 rows")


def test_options_of_families_are_checked(rng):
    x = rng.poisson(3.0, 30)
    for family, options, match in (
        (NegativeBinomial, None, r"NegativeBinomial needs r: .*=dict\(r=...\)"),
        (NegativeBinomial, {}, r"needs r"),
        (Poisson, 3, "family_options=3 must be a dict"),
        (Poisson, ["r"], "must be a dict"),
        (Poisson, {1: 2}, "must be a dict"),
        (Poisson, {"r": 2.0}, "'r', which Poisson.fit does not take; .* smoothing"),
        (Poisson, {"weights": x}, "'weights', which Poisson.fit does not take"),
    ):
        refused(
            lambda f=family, o=options: Mixture.fit(x, family=f, family_options=o),
            match,
        )
    options = {"family": NegativeBinomial, "family_options": {"r": 2.0}}
    assert Mixture.fit(x, **options, random_state=0).components.r == 2.0


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_rows_of_weight_zero_show_no_category(smoothing):
    X, w = np.array([1, 1, 2, 0, 1, 3]), np.array([2.0, 1.0, 1.0, 3.0, 0.0, 0.0])
    options = {"family": Categorical, "smoothing": smoothing, "random_state": 0}
    fit = Mixture.fit(X, w, **options)
    assert fit.components.prob.shape == (2, 3)
    np.testing.assert_array_equal(
        fit.components.prob, Mixture.fit(X[:4], w[:4], **options).components.prob
    )
    shares = np.random.default_rng(0).dirichlet(np.ones(2), 6)
    fit = Mixture.fit(X, w, init=shares, **options)
    other = Mixture.fit(X[:4], w[:4], init=shares[:4], **options)
    np.testing.assert_array_equal(fit.weights, other.weights)


def test_a_sample_of_rows_may_lack_a_category(rng, monkeypatch):
    monkeypatch.setattr("maxent.models._component_search._MANY", (200, 50))
    X = rng.integers(0, 4, 2000)
    X[rng.integers(2000)] = 9
    fit = Mixture.fit(X, family=Categorical, random_state=0)
    assert fit.components.prob.shape == (2, 10)
    assert np.isfinite(fit.log_prob(X)).all()


@pytest.mark.parametrize(
    "family", [Gaussian, DiagonalGaussian, SphericalGaussian, TiedGaussian]
)
@pytest.mark.parametrize("apart", [1.0, 1e4])
def test_one_pass_is_the_step_by_tables(family, apart, rng, monkeypatch):
    X = rng.normal(size=(203, 3)) + apart * rng.integers(0, 3, (203, 1))
    w = rng.uniform(0.1, 2.0, 203)
    problem = MixtureProblem(X, w, family, 3.0, {})
    starts = problem.random_starts(3, 1, 0)
    near = (
        starts[0][0],
        family(starts[0][1].mean + 0.3, starts[0][1]._covariances() * 2.0),
    )
    far = starts[0][0], family(starts[0][1].mean + 1e6, starts[0][1]._covariances())
    for point in (near, far):
        objective, (weights, batch) = problem.step(point)
        with monkeypatch.context() as patch:
            patch.setattr(Components, "are_whole_gaussians", False)
            expected, (shares, by_tables) = problem.step(point)
        assert objective == pytest.approx(expected, rel=1e-10)
        np.testing.assert_allclose(weights, shares, rtol=1e-9)
        for mine, theirs in zip(batch._arrays(), by_tables._arrays(), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-7 * apart**2)
