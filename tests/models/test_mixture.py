"""Mixtures: densities, EM that never falls, scikit-learn's step by step."""

import pickle

import numpy as np
import pytest
from families.family_cases import MAKERS
from refusals import refused
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from maxent.families import (
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    Gaussian,
    Multinomial,
    Poisson,
    SphericalGaussian,
)
from maxent.models import Mixture
from maxent.models.mixture import MixtureProblem

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
        yield Mixture._fit(
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


def test_em_never_falls(rng):
    assert worst_step(problems(rng, 40)) > -1e-12


@pytest.mark.slow
def test_em_never_falls_in_many_problems(rng):
    worst = worst_step(problems(rng, 1000))
    print(f"worst EM step: {worst:.2e} of 1 + |objective|")
    assert worst > -1e-12


def test_fit_finds_the_mixture_that_drew_the_data(rng):
    truth = Mixture([0.3, 0.7], Gaussian([[0, 0], [6, 6]], [np.eye(2), np.eye(2)]))
    X = truth.sample(1000, rng)
    fit = Mixture.fit(X, n_components=2, random_state=0)
    assert fit.fit_result.converged
    assert fit.log_likelihood(X) > truth.log_likelihood(X) - 1.0
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


@pytest.mark.parametrize(
    "call, match",
    [
        (lambda: Mixture([0.5, 0.4], Poisson([1.0, 2.0])), "weights sums to 0.9"),
        (lambda: Mixture([1.0], Poisson([1.0, 2.0])), "weights has shape"),
        (lambda: Mixture([1.0], 3), "components=3"),
        (lambda: Mixture.fit([[1.0], [2.0]], family=3), "family=3"),
        (lambda: Mixture.fit(np.zeros((0, 2))), "no row"),
        (lambda: Mixture.fit([-1, 2], family=Poisson), "outside the support"),
        (lambda: Mixture.fit([[1.0], [2.0]], [0.0, 0.0]), "weights is zero"),
        (lambda: Mixture.fit([[1.0], [2.0]], init=[[1.0]]), "init has shape"),
        (
            lambda: Mixture([1.0], Bernoulli([0.0])).posterior([1]),
            r"X\[0\] has probability 0",
        ),
        (
            lambda: Mixture([1.0], Multinomial([[0.5, 0.5]], 2)).log_prob([1, 1]),
            "X has shape",
        ),
    ],
)
def test_bad_input_is_named(call, match):
    refused(call, match)


def test_a_bad_bag_of_many_is_named_before_any_fit(rng):
    bags = [rng.normal(size=(9, 1)), np.array([[0.0], [np.inf]])]
    refused(lambda: Mixture.fit_many(bags), r"data\[1\]\[1, 0\]=inf must be a finite")
    bags[1] = bags[0][:0]
    refused(lambda: Mixture.fit_many(bags), r"data\[1\] has shape \(0, 1\)")
