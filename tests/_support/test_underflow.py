"""Probabilities that vanish are zero under ``np.errstate(all="raise")`` too."""

import numpy as np
import pytest

from maxent import families, latent, minentropy


@pytest.fixture(autouse=True)
def errors():
    with np.errstate(all="raise"):
        yield


def far_groups(rng):
    """Two groups of rows, posteriors between which are below the least double."""
    return np.vstack([rng.normal(size=(40, 2)), rng.normal(size=(40, 2)) + 300.0])


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
@pytest.mark.parametrize("prior", [None, "weak"])
def test_gaussian_mixtures(prior, kind, rng):
    X = far_groups(rng)
    options = {"prior": prior, "selection": "likelihood", "random_state": 0}
    model = latent.LMEGaussianMixture(2, kind, 4, **options).fit(X)
    p = model.predict_proba(X)
    assert p.min() < (1e-30 if prior else 1e-300) and np.isfinite(model.score(X))
    assert len(np.unique(model.predict(X))) == 2
    model.sample(5)


def test_dirichlet_mixtures(rng):
    ends = np.array([[2000.0, 10.0, 10.0], [10.0, 10.0, 2000.0]])
    X = np.vstack([rng.dirichlet(a, size=40) for a in ends])
    model = latent.LMEDirichletMixture(2, n_init=4, random_state=0).fit(X)
    assert model.predict_proba(X).min() == 0.0 and np.isfinite(model.score(X))


def test_maximum_entropy(rng):
    F = np.arange(3000.0)[:, None]
    for method in ("newton", "lbfgs", "scgis"):
        result = latent.fit_maxent(F, [2.0], method=method, tol=1e-6)
        assert result.converged and result.prob[-1] == 0.0
    model = latent.MaxEntModel(F, [-1.0])
    assert model.prob[-1] == 0.0 and model.entropy() > 0
    assert model.kl(model) == 0.0 and np.isfinite(model.covariance()).all()
    f = np.zeros((40, 2, 2))
    f[:, 0, 0] = f[:, 1, 1] = np.arange(40) - 20.0
    y = [0] * 10 + [39] * 10
    found = latent.em_is(
        latent.FiniteLatentModel(f), y, [9.0, -9.0], sigma2=1e4, method="newton"
    )
    assert found.converged
    model = latent.LatentMaxEnt(f, init=[9.0, -9.0], n_init=1, sigma2=1e4, bound=30.0)
    model.set_params(random_state=0, mi_tol=-1.0, check_maximum=False).fit(y)
    assert np.isfinite(model.score(y)) and model.predict_proba(y).min() < 1e-100


def test_conditional_maximum_entropy(rng):
    X = far_groups(rng)
    y = np.arange(80) // 40 + np.arange(80) % 2
    model = latent.MaxEntClassifier(C=1e6, tol=1e-3).fit(X, y)
    assert model.predict_proba(1e3 * X).min() == 0.0


def test_machines_of_binary_units(rng):
    X = np.repeat(rng.integers(0, 2, size=(60, 1)), 5, axis=1)
    options = {"n_init": 1, "random_state": 0, "prior_variance": 1e3, "bound": 300.0}
    options |= {"mi_tol": -1.0, "check_maximum": False}
    for model in (
        latent.LMEBoltzmannMachine(1, **options),
        latent.LMERBM(1, **options),
    ):
        assert np.isfinite(model.fit(X).score(X))
        model.transform(1 - X)
        model.sample(3)


def test_topics_of_words():
    X = [["a", "b", "c"] * 30, ["x", "y", "z"] * 30] * 3
    model = latent.TrigramTopicModel(2, 1, prior_variance=1e6, random_state=0)
    model.set_params(max_iter=300, tol=1e-2).fit(X)
    assert np.isfinite(model.score(X)) and model.transform(X).shape == (6, 2)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 1.05, 8.0, np.inf])
def test_orders(alpha, rng):
    S = 1e3 * rng.standard_normal((5, 7))
    for score in (minentropy.renyi_score, minentropy.renyi_weights):
        assert np.isfinite(score(S, alpha)).all()
    Q = np.array([1.0, 1e-304, 5e-324])
    assert np.isfinite(minentropy.renyi_entropy(Q, alpha))
    X, y = rng.standard_normal((30, 4, 2)), np.arange(30) % 2
    X[y == 1, 2] += 5.0
    model = minentropy.M3EClassifier(alpha, 1e3, n_init=1, random_state=0).fit(X, y)
    assert min(p.min() for p in model.hidden_proba(1e4 * X)) == 0.0
    model.predict(1e4 * X)


@pytest.mark.parametrize(
    "batch, X",
    [
        (families.Gaussian([[0.0], [1e3]], np.ones((2, 1, 1))), [[0.0], [500.0]]),
        (families.DiagonalGaussian([[0.0], [1e3]], np.ones((2, 1))), [[0.0], [1e3]]),
        (families.Categorical([[1.0, 0.0], [1e-300, 1.0]]), [0, 1]),
        (families.Poisson([1e-5, 1e5]), [0.0, 1e3]),
        (families.NegativeBinomial([0.1, 0.999], 1e3), [0.0, 1e3]),
        (families.Geometric([1e-5, 0.999]), [0.0, 1e3]),
        (families.Gamma([1e-3, 1e3], [1e-5, 1e5]), [1e-5, 1e3]),
        (families.Beta([1e-3, 1e3], [1e3, 1e-3]), [1e-3, 0.999]),
        (families.Dirichlet([[1e-3, 1e3], [1e3, 1e-3]]), [[0.3, 0.7]]),
        (families.VonMisesFisher([[1.0, 0.0], [0.0, 1.0]], [1e-3, 1e5]), [[1.0, 0.0]]),
    ],
    ids=lambda one: type(one).__name__ if hasattr(one, "log_prob") else "",
)
def test_families(batch, X):
    assert not np.isnan(batch.log_prob(np.asarray(X))).any()
    assert not np.isnan(batch.entropy()).any()
    for rho in (0.5, 1.0):
        assert not np.isnan(batch.log_affinity(batch, rho)).any()
    assert not np.isnan(batch.kl(batch)).any()
    batch.sample(3, random_state=0)
    batch.moments()
