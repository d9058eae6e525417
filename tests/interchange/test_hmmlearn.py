"""Hidden Markov models as those of hmmlearn, and back: equal scores, equal models."""

import numpy as np
import pytest
from refusals import refused

from maxent.families import (
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    Gaussian,
    Independent,
    Multinomial,
    Poisson,
    SphericalGaussian,
    TiedGaussian,
)
from maxent.models import CategoricalHMM, GaussianHMM, HiddenMarkovModel, Mixtures

pytest.importorskip("hmmlearn.hmm")
S, M, d = 3, 2, 2


def matrices(rng, *shape):
    A = rng.standard_normal((*shape, d, d))
    return A @ np.swapaxes(A, -1, -2) + 0.5 * np.eye(d)


EMISSIONS = {
    "categories": lambda rng: Categorical(rng.dirichlet(np.ones(4), S)),
    "full": lambda rng: Gaussian(rng.standard_normal((S, d)), matrices(rng, S)),
    "tied": lambda rng: TiedGaussian(rng.standard_normal((S, d)), matrices(rng)),
    "diag": lambda rng: DiagonalGaussian(
        rng.standard_normal((S, d)), rng.random((S, d)) + 0.2
    ),
    "spherical": lambda rng: SphericalGaussian(
        rng.standard_normal((S, d)), rng.random(S) + 0.2
    ),
    "counts": lambda rng: Poisson(rng.random(S) * 9 + 0.1),
    "columns of counts": lambda rng: Independent(Poisson(rng.random((S, d)) * 9 + 0.1)),
    "multinomial": lambda rng: Multinomial(rng.dirichlet(np.ones(3), S), 5),
    "mixtures, full": lambda rng: Mixtures(
        rng.dirichlet(np.ones(M), S),
        Gaussian(rng.standard_normal((S, M, d)), matrices(rng, S, M)),
    ),
    "mixtures, diag": lambda rng: Mixtures(
        rng.dirichlet(np.ones(M), S),
        DiagonalGaussian(rng.standard_normal((S, M, d)), rng.random((S, M, d)) + 0.2),
    ),
    "mixtures, spherical": lambda rng: Mixtures(
        rng.dirichlet(np.ones(M), S),
        SphericalGaussian(rng.standard_normal((S, M, d)), rng.random((S, M)) + 0.2),
    ),
}


def chain(rng):
    return rng.dirichlet(np.ones(S)), rng.dirichlet(np.ones(S), S)


@pytest.mark.parametrize("name", EMISSIONS)
@pytest.mark.filterwarnings("ignore")  # of hmmlearn, about its multinomial models
def test_scores_and_paths_are_equal(name, rng):
    model = HiddenMarkovModel(*chain(rng), EMISSIONS[name](rng))
    peer = model.to_hmmlearn()
    X = model.sample(3, 20, random_state=rng)
    rows = np.concatenate([np.asarray(x).reshape(20, -1) for x in X])
    expected = peer.score(rows, [20] * 3)
    assert model.log_likelihood(X).sum() == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(
        np.concatenate(model.posterior(X)),
        peer.predict_proba(rows, [20] * 3),
        atol=1e-9,
    )
    best, _ = peer.decode(rows, [20] * 3)  # equally likely paths may differ
    assert model.viterbi(X)[1].sum() == pytest.approx(best, rel=1e-10)
    peer.sample(5)  # whole in the eyes of hmmlearn
    if not name.startswith(("categories", "full", "tied", "diag", "spherical")):
        back = HiddenMarkovModel.from_hmmlearn(peer)
        np.testing.assert_allclose(
            back.log_likelihood(X), model.log_likelihood(X), rtol=1e-12
        )


def test_the_named_classes_are_the_same(rng):
    start, move = chain(rng)
    symbols = CategoricalHMM(start, move, rng.dirichlet(np.ones(4), S), "ACGT")
    assert CategoricalHMM.from_hmmlearn(symbols.to_hmmlearn(), "ACGT") == symbols
    cov = matrices(rng)
    vectors = GaussianHMM(start, move, rng.standard_normal((S, d)), cov, tied=True)
    assert vectors.to_hmmlearn().covariance_type == "tied"
    assert GaussianHMM.from_hmmlearn(vectors.to_hmmlearn()) == vectors


def test_emissions_that_hmmlearn_lacks(rng):
    model = HiddenMarkovModel(*chain(rng), Bernoulli([0.2, 0.5, 0.9]))
    refused(model.to_hmmlearn, "hmmlearn has no model whose states show .*Bernoulli")
