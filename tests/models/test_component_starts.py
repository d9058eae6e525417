"""Starts and priors of mixtures: groups are found, and do not widen each other."""

import warnings
from functools import partial

import numpy as np
import pytest
from checks import starts
from refusals import refused
from scipy import stats

from maxent.families import (
    DiagonalGaussian,
    Gamma,
    Gaussian,
    Poisson,
    SphericalGaussian,
)
from maxent.latent import LMEGaussianMixture
from maxent.models import GaussianHMM, Mixture
from maxent.models._component_prior import prior_of_groups
from maxent.models._component_search import (
    ComponentSearch,
    _beyond_the_mean,
    _near_pairs,
)
from maxent.models.chains import _chain_search

GAUSSIANS = [Gaussian, DiagonalGaussian, SphericalGaussian]


def groups_on_a_line(rng, K, apart, n=50):
    return (np.repeat(apart * np.arange(K), n) + rng.normal(size=n * K))[:, None]


@pytest.mark.parametrize("family", GAUSSIANS)
def test_sixteen_groups_on_a_line_are_found(family, rng):
    X = groups_on_a_line(rng, 16, 100.0)
    fit = Mixture.fit(X, n_components=16, family=family, random_state=0)
    mean = np.sort(fit.components.mean[:, 0])
    assert np.abs(mean - 100.0 * np.arange(16)).max() < 1.0


@pytest.mark.parametrize("d", [2, 10])
def test_groups_in_one_column_among_noise_are_found(d, rng):
    X = np.hstack([groups_on_a_line(rng, 8, 10.0), rng.normal(size=(400, d - 1))])
    X = X[:, rng.permutation(d)] * np.exp(rng.normal(0.0, 3.0, d))
    column = int(np.argmin(stats.kurtosis(X)))
    wanted = np.sort(X[:, column].reshape(8, 50).mean(axis=1))
    room = 0.1 * np.diff(wanted).min()
    mixture = Mixture.fit(X, n_components=8, random_state=0)
    found = np.sort(mixture.components.mean[:, column])
    np.testing.assert_allclose(found, wanted, atol=room)
    found = np.sort(LMEGaussianMixture(8, random_state=0).fit(X).means_[:, column])
    np.testing.assert_allclose(found, wanted, atol=room)


def test_windows_are_described_by_means_variances_and_correlations(rng, monkeypatch):
    seen, cluster = [], _chain_search.k_means_labels
    monkeypatch.setattr(
        _chain_search,
        "k_means_labels",
        lambda F, *rest, **options: seen.append(F) or cluster(F, *rest, **options),
    )
    X = [rng.normal([5.0, -7.0], [1.0, 100.0], size=(n, 2)) for n in (40, 23)]
    GaussianHMM.fit(X, 2, random_state=0)
    length = _chain_search.WINDOWS[0]
    rows = np.concatenate(X)
    Z = [(x - rows.mean(axis=0)) / rows.std(axis=0) for x in X]
    windows = [z[lo : lo + length] for z in Z for lo in range(0, len(z), length)]
    want = []
    for w in windows:
        R = w - w.mean(axis=0)
        var = (R**2).mean(axis=0) + _chain_search._LEAST_VARIANCE
        correlation = R.prod(axis=1).mean() / np.sqrt(var.prod())
        want.append([*w.mean(axis=0), *np.log(var), correlation])
    np.testing.assert_allclose(seen[0], want, atol=1e-10)


FAR = [c for make in starts.CELLS.values() for c in make() if c.apart >= starts.FAR]


# sixteen groups in several columns are found as eight are there, and sixteen in one
LONG = [pytest.mark.slow]


@pytest.mark.parametrize(
    "cell",
    [
        pytest.param(c, id=str(c), marks=LONG * (c.K > 8 and c.d > 1))
        for c in FAR
        if c.K <= 16
    ],
)
def test_far_groups_are_found(cell, seed):
    ours, _, widening, _ = starts.one_draw(cell, 1000 + seed)
    assert ours and widening < 0.05


@pytest.mark.parametrize("apart", [1e1, 1e3, 1e5, 1e7])
@pytest.mark.parametrize("family", GAUSSIANS)
def test_the_distance_of_groups_does_not_widen_them(apart, family, rng):
    X = groups_on_a_line(rng, 2, apart)
    fit = Mixture.fit(X, n_components=2, family=family, random_state=0)
    order = np.argsort(fit.components.mean[:, 0])
    deviation = np.sqrt(fit.components.moments()[1][order, 0])
    own = X.reshape(2, 50).std(axis=1)
    np.testing.assert_allclose(deviation, own, rtol=0.05)
    hmm = GaussianHMM.fit([X], 2, random_state=0)
    deviation = np.sqrt(hmm.cov[np.argsort(hmm.mean[:, 0]), 0, 0])
    np.testing.assert_allclose(deviation, own, rtol=0.05)


def test_groups_of_very_different_spread_keep_it(rng):
    X = np.concatenate([rng.normal(size=(60, 2)), 50 * rng.normal(size=(60, 2)) + 1000])
    for family in GAUSSIANS:
        fit = Mixture.fit(X, n_components=2, family=family, random_state=0)
        order = np.argsort(fit.components.mean[:, 0])
        deviation = np.sqrt(fit.components.moments()[1][order])
        own = np.stack([X[:60].std(axis=0), X[60:].std(axis=0)])
        if family is SphericalGaussian:
            own[:] = np.sqrt(np.square(own).mean(axis=1, keepdims=True))
        np.testing.assert_allclose(deviation, own, rtol=0.05)


def test_far_groups_of_counts_do_not_move_each_other(rng):
    x = np.concatenate([rng.poisson(2.0, 60), rng.poisson(1e6, 60)])
    fit = Mixture.fit(x, n_components=2, family=Poisson, random_state=0)
    rates = np.sort(fit.components.rate)
    np.testing.assert_allclose(rates, [x[:60].mean(), x[60:].mean()], rtol=1e-6)


def test_a_row_far_from_all_groups_is_improbable(rng):
    X = groups_on_a_line(rng, 2, 1e4)
    fit = Mixture.fit(X, n_components=2, random_state=0)
    assert fit.log_prob([[15.0]])[0] < -60.0


# -- the prior, from its definition ----------------------------------------------------
def within(X, labels, weights):
    """Pooled covariance within groups, one row after the other."""
    total = np.zeros((X.shape[1],) * 2)
    for h in np.unique(labels):
        own = labels == h
        mean = np.average(X[own], axis=0, weights=weights[own])
        for x, w in zip(X[own], weights[own]):
            total += w * np.outer(x - mean, x - mean)
    return total / weights.sum()


@pytest.mark.parametrize("family", GAUSSIANS)
def test_m_steps_maximise_likelihood_and_prior(family, rng):
    n, d, c = 15, 3, 2.5
    X, weights = rng.normal(size=(n, d)), rng.uniform(0.5, 1.0, n)
    labels = rng.integers(0, 2, n)
    prior = prior_of_groups(family, X, weights, labels, 2, c)
    W = within(X, labels, weights)
    mass = rng.uniform(0.1, 1.0, (2, n))
    best = prior.fit(X, mass)
    like_W = family(np.zeros((1, d)), prior.spread[None])
    np.testing.assert_allclose(prior.log_density(like_W)[0], 0.0, atol=1e-12)
    c *= (d + 2) / 3 if family is Gaussian else 1.0
    W_of_family = covariance_matrices(like_W)[0]
    np.testing.assert_allclose(np.diag(W_of_family).sum(), np.trace(W))

    def objective(P):
        greatest = np.linalg.slogdet(W_of_family)[1] + d
        log_prior = [
            -0.5
            * c
            * (np.linalg.slogdet(S)[1] + np.trace(np.linalg.solve(S, W)) - greatest)
            for S in covariance_matrices(P)
        ]
        np.testing.assert_allclose(
            prior.log_density(P), log_prior, rtol=1e-9, atol=1e-12
        )
        return (mass * P.log_prob(X)).sum() + sum(log_prior)

    top = objective(best)
    for _ in range(30):
        name = "cov" if family is Gaussian else "var"
        spread = getattr(best, name) * np.exp(0.02 * rng.normal())
        mean = best.mean + 0.02 * rng.normal(size=best.mean.shape)
        assert objective(family(mean, spread)) < top


def covariance_matrices(P):
    d = P.event_shape[0]
    if isinstance(P, Gaussian):
        return P.cov
    return [np.diag(np.broadcast_to(var, d)) for var in P.var]


def test_the_prior_counts_less_where_groups_differ_in_spread(rng):
    X = np.concatenate([rng.normal(size=(50, 1)), 9.0 * rng.normal(size=(50, 1)) + 99])
    labels = np.repeat([0, 1], 50)
    prior = prior_of_groups(Gaussian, X, np.ones(100), labels, 2, 3.0)
    assert prior.count[0] < 3.0 == prior.count[1]
    scatter, count = 50 * X[:50].var(), prior.count[0]
    new = (scatter + count * prior.spread[0, 0]) / (50 + count)
    assert 1.05 * X[:50].var() < new < 1.06 * X[:50].var()


def test_values_of_a_column_as_groups_leave_the_spread_of_all_rows(rng):
    X = np.column_stack([np.repeat([0.0, 1.0], 30), rng.normal(size=60)])
    prior = prior_of_groups(DiagonalGaussian, X, np.ones(60), X[:, 0].astype(int), 2, 3)
    assert prior.spread[0] == pytest.approx(0.01 * 0.25)
    fit = Mixture.fit(X, n_components=2, random_state=0)
    assert np.isfinite(fit.log_prob(X)).all()


def test_pseudo_rows_are_those_of_the_own_group(rng):
    x = np.array([0, 1, 0, 2, 40, 41, 43.0] * 6)
    labels = (x > 10).astype(int)
    prior = prior_of_groups(Poisson, x, np.ones(len(x)), labels, 2, 3.0)
    rows = prior.pseudo_rows()
    np.testing.assert_allclose(rows.sum(axis=1), 3.0)
    assert rows[0, labels == 1].sum() == 0  # 24 rows: more than few
    # a group of few rows gets some of all rows
    np.testing.assert_allclose(rows[1, labels == 0].sum(), 0.01 * 4 / 7, rtol=1e-9)
    fit = prior.fit(x, np.stack([labels == 0, labels == 1]).astype(float))
    expected = (x[labels == 0].sum() + 3 * x[labels == 0].mean()) / 27
    assert fit.rate[0] == pytest.approx(expected)
    P = Poisson([1.0, 30.0])
    expected = (rows * stats.poisson.logpmf(x, P.rate[:, None])).sum(axis=1)
    np.testing.assert_allclose(prior.log_density(P), expected, rtol=1e-9, atol=1e-12)


# -- the moves -------------------------------------------------------------------------
def test_moves_repair_a_partition_that_em_cannot_leave(rng):
    X = groups_on_a_line(rng, 4, 20.0)
    wrong = np.repeat([0, 0, 1, 2], 50)
    wrong[150:] = np.where(X[150:, 0] > 60.0, 2, 3)
    search = ComponentSearch(X, np.ones(200), Gaussian, 4, 3.0, {})
    before = start = search.after_steps(search.shares_of(wrong))
    while (following := search.after_moves(start)) is not None:
        start = following
    assert start.objective > before.objective
    mean = np.sort(start.point[1].mean[:, 0])
    assert np.abs(mean - 20.0 * np.arange(4)).max() < 1.0


@pytest.mark.parametrize("count", [0.0, 3.0])
def test_the_value_of_a_point_is_its_objective(count, rng):
    X, own = rng.normal(size=(80, 2)), rng.uniform(0.5, 2.0, 80)
    search = ComponentSearch(X, own, Gaussian, 3, count, {})
    start = search.after_steps(search.shares_of(rng.integers(0, 3, 80)))
    prior, (weights, P) = start.prior, start.point
    joint = P.log_prob(X) + np.log(weights)[:, None]
    want = own @ np.logaddexp.reduce(joint, axis=0) + count * np.log(weights).sum()
    want += prior.log_density(P).sum()
    assert start.objective == pytest.approx(want, rel=1e-12)
    assert search.value(prior, start.point) == pytest.approx(want, rel=1e-12)


def test_the_bound_on_the_gain_of_a_move_holds(rng):
    """Merging and splitting raises the log-likelihood by what is promised at least."""
    X = rng.normal(size=(120, 2)) * [1.0, 3.0]
    search = ComponentSearch(X, rng.uniform(0.5, 2.0, 120), Gaussian, 4, 3.0, {})
    labels = rng.integers(0, 4, 120)
    start = search.after_steps(search.shares_of(labels))
    prior, point = start.prior, start.point
    at = search.expected(prior, point)
    joint, shares = at.log_prob + at.log_weights, at.shares
    density = prior.log_density(point[1])
    weights = point[0]
    log_likelihood = search.weights @ np.logaddexp.reduce(joint, axis=0)
    bare = {(a, b): x for x, a, b in search.losses(prior, at, shares, np.zeros(4))}
    for loss, a, b in search.losses(prior, at, shares, density):
        assert loss - bare[a, b] == pytest.approx(density[a] + density[b], rel=1e-9)
        mass = (shares[a] + shares[b]) * search.weights
        one = prior.fit(X, mass[None])
        rest = np.delete(joint, [a, b], axis=0)
        merged = one.log_prob(X) + np.log(weights[a] + weights[b])
        new = search.weights @ np.logaddexp.reduce([*rest, merged[0]], axis=0)
        change = new + prior.log_density(one)[0] - density[a] - density[b]
        # the rows that a move leaves out have shares of at most 1 %
        assert change - log_likelihood >= -loss - 0.05 * abs(loss) - 0.5


def test_near_pairs_share_their_rows(rng):
    mean = np.repeat([0.0, 100.0, 200.0, 300.0], 2) + np.tile([0.0, 1.0], 4)
    X = np.concatenate([m + rng.normal(size=20) for m in mean])
    P = Gaussian(mean[:, None], np.ones((8, 1, 1)))
    log_prob = P.log_prob(X[:, None])
    mass = np.exp(log_prob - np.logaddexp.reduce(log_prob, axis=0))
    near = _near_pairs(log_prob, mass)
    assert {(a, a + 1) for a in range(0, 8, 2)} <= near
    # and groups next to each other come before those far away
    assert (0, 7) not in near and (0, 6) not in near


def test_fewer_different_rows_than_components_share_the_groups():
    x = np.repeat([0.0, 1.0, 5.0], 10)
    fit = Mixture.fit(x, n_components=5, family=Poisson, random_state=0)
    assert np.isfinite(fit.log_prob(x)).all() and fit.n_components == 5


def test_families_with_a_scale_fit_groups_of_few_rows(rng):
    x = np.concatenate([rng.gamma(5.0, 1.0, 40), [1e4]])
    fit = Mixture.fit(x, n_components=2, family=Gamma, random_state=0)
    assert np.isfinite(fit.log_prob(x)).all()


def test_a_column_without_spread_is_named_whatever_the_smoothing(rng):
    X = np.column_stack([rng.normal(size=20), np.full(20, 7.0)])
    for smoothing in (0.0, 1.0, 10.0):
        for family in GAUSSIANS[:2]:
            fit = partial(Mixture.fit, X, family=family, smoothing=smoothing)
            refused(fit, "column 1 of X is constant, .* drop it")
    X[:, 1] = 2 * X[:, 0]
    refused(lambda: Mixture.fit(X), "columns that follow from others")


@pytest.mark.parametrize("values", [(1013.2, 1013.4), (1.7e9 + 0.1, 1.7e9 + 60.1)])
@pytest.mark.parametrize("family", GAUSSIANS)
def test_a_column_of_few_values_far_from_zero_is_fitted(family, values, rng):
    X = np.column_stack([rng.normal(size=(90, 2)), rng.choice(values, 90)])
    near = X - [0.0, 0.0, values[0]]
    for K in (2, 3):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fits = [
                Mixture.fit(x, n_components=K, family=family, random_state=0)
                for x in (X, near)
            ]
        mean = [fit.log_prob(x).mean() for fit, x in zip(fits, (X, near))]
        assert mean[0] == pytest.approx(mean[1], abs=1e-3)


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("rate", [1e4, 1e8])
def test_a_group_of_few_counts_is_not_pulled_by_others(rate, n, rng):
    X = np.append(rng.poisson(3.0, 200), rng.poisson(rate, n))
    fit = Mixture.fit(X, n_components=2, family=Poisson, random_state=0)
    own = X[200:].mean()
    assert abs(fit.components.rate.max() - own) < 0.2 * np.sqrt(own / n)


def regimes(rng):
    """Overlapping states that last: by mean and spread, correlations, and spreads."""
    z = np.cumsum(rng.random(600) > 0.995) % 2
    x = rng.normal(size=600)
    yield z, (0.5 * z + np.where(z, 0.7, 1.0) * x)[:, None]
    z = np.cumsum(rng.random(800) > 0.98) % 2
    x = rng.normal(size=(800, 2))
    yield z, np.column_stack([x[:, 0], np.where(z, 0.6, -0.6) * x[:, 0] + x[:, 1]])
    z = np.cumsum(rng.random(1500) > 0.97) % 4
    yield z, np.array([0.5, 1.0, 2.0, 4.0])[z, None] * rng.normal(size=(1500, 1))


@pytest.mark.parametrize("count", [0, 5])
def test_counts_that_are_all_the_same_are_fitted(count):
    for n in (3, 30):
        fit = Mixture.fit(np.full(n, count), family=Poisson, random_state=0)
        np.testing.assert_allclose(fit.components.rate, count, atol=1e-6)


def misses_the_truth(z, x):
    """True if a default fit is less likely than that from the true states."""
    K = int(z.max()) + 1
    truth = GaussianHMM(
        np.full(K, 1 / K),
        np.full((K, K), 0.1 / K) + 0.9 * np.eye(K),
        [x[z == h].mean(axis=0) for h in range(K)],
        [np.atleast_2d(np.cov(x[z == h].T)) for h in range(K)],
    )
    best = GaussianHMM.fit([x], init=truth).fit_result.objective
    return GaussianHMM.fit([x], K, random_state=0).fit_result.objective < best - 1.0


def test_overlapping_states_that_last_are_found(seed):
    rng = np.random.default_rng(seed)
    draws = [draw for _ in range(2) for draw in regimes(rng)]
    assert sum(misses_the_truth(*draw) for draw in draws) <= 1


def test_two_groups_of_one_component_are_told_apart_in_columns_of_noise(rng):
    # the column that shows them is no wider than the others in their own deviations
    X = rng.normal(size=(100, 10)) * np.exp(rng.normal(size=10))
    X[:, 0] = 10.0 * np.repeat([0.0, 1.0], 50) + rng.normal(size=100)
    within = np.square(X[:50].std(axis=0))
    half = _beyond_the_mean(X, np.ones(100), within)
    np.testing.assert_array_equal(half == half[0], np.repeat([True, False], 50))


def test_a_sample_of_many_rows_starts_the_fit(rng, monkeypatch):
    monkeypatch.setattr("maxent.models._component_search._MANY", (200, 50))
    X = groups_on_a_line(rng, 3, 30.0, n=400)
    fit = Mixture.fit(X, n_components=3, random_state=0)
    mean = np.sort(fit.components.mean[:, 0])
    np.testing.assert_allclose(mean, X.reshape(3, 400).mean(axis=1), atol=1e-6)
