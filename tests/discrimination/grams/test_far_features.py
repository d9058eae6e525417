"""RBF kernels of rows far from each other: squared norms cancel, differences not."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from maxent import MEDClassifier
from maxent.discrimination import GaussianCentre, GaussianScores
from maxent.discrimination.grams.gram_store import PartGram, WholeGram
from maxent.discrimination.grams.vector_kernels import VectorKernel, apply_kernel

GAMMA = 0.5
N, D = 300, 4
SIZES = [1e3, 1e6, 1e9, 1e12]
sizes = pytest.mark.parametrize("size", SIZES)
# exp of a squared distance of at most 40 + rounding, from differences without error
EPS = 1e-13


def clusters(rng, size, n=N):
    """Rows near a few points that are far from each other and from zero."""
    centres = size * rng.normal(size=(5, D))
    return centres[rng.integers(5, size=n)] + rng.normal(size=(n, D))


def truth(X, Z, gamma=GAMMA):
    return np.exp(-gamma * cdist(X, Z, "sqeuclidean"))


def dense(X):
    return X


def wide(X):
    """The same rows among so many columns that they stay sparse."""
    return sp.csr_array(sp.hstack([sp.csr_array(X), sp.csr_array((len(X), 2000))]))


@sizes
@pytest.mark.parametrize("storage", [dense, wide])
def test_blocks_and_products_are_those_of_differences(size, storage, rng):
    X = clusters(rng, size)
    K, everything, some = truth(X, X), np.arange(N), np.arange(0, N, 3)
    kernel = VectorKernel(storage(X), gamma=GAMMA)
    assert kernel.has_tiles == (storage is dense)
    block = kernel.block(some, everything)
    np.testing.assert_allclose(block, K[some], rtol=0, atol=EPS)
    assert (block[np.arange(len(some)), some] == 1.0).all()
    A = rng.normal(size=(N, 2))
    np.testing.assert_allclose(kernel.apply(everything, A), K @ A, atol=N * EPS)
    expected = K[:, some] @ A[some]
    np.testing.assert_allclose(kernel.apply(some, A[some]), expected, atol=N * EPS)
    at = np.array([7, 8, 250])
    found = kernel.apply(some, A[some], rows=at)
    np.testing.assert_allclose(found, expected[at], atol=N * EPS)
    single = kernel.apply(some, A[some], single=True)
    np.testing.assert_allclose(single, expected, atol=N * 1e-7 * np.abs(A).max())
    new = apply_kernel(storage(X[:9]), storage(X), A, "rbf", gamma=GAMMA)
    np.testing.assert_allclose(new, K[:9] @ A, atol=N * EPS)


@sizes
def test_matrices_kept_for_a_solver_are_those_of_differences(size, rng):
    X = clusters(rng, size)
    K, kernel, a = truth(X, X), VectorKernel(X, gamma=GAMMA), rng.normal(size=N)
    np.testing.assert_allclose(WholeGram(kernel).product(a), K @ a, atol=N * EPS)
    part = PartGram(kernel, N)
    part.add(np.arange(100))
    part.add(np.arange(100, N))
    np.testing.assert_allclose(part.matrix[:N, :N], K, rtol=0, atol=1e-7)


@sizes
def test_machines_of_far_features_are_those_of_the_exact_matrix(size, rng):
    X = clusters(rng, size)
    y = rng.random(N) < 0.5
    model = MEDClassifier(C=10.0, gamma=GAMMA, tol=1e-6).fit(X, y)
    given = MEDClassifier("precomputed", C=10.0, tol=1e-6).fit(truth(X, X), y)
    assert model.converged_
    scale = 1e-6 * (1 + given.objective_)
    assert abs(model.objective_ - given.objective_) <= scale
    new = clusters(rng, size, 20)
    for Z in (X, new):
        f = truth(Z, model.support_vectors_) @ model.dual_coef_[0] + model.intercept_
        bound = EPS * np.abs(model.dual_coef_).sum()
        np.testing.assert_allclose(model.decision_function(Z), f, atol=bound)


@sizes
@pytest.mark.parametrize("model", [GaussianScores, GaussianCentre])
def test_outlier_models_of_far_features_score_by_differences(size, model, rng):
    X, Z = clusters(rng, size, 60), clusters(rng, size, 7)
    block = model(gamma=GAMMA).block(X)
    a = rng.uniform(0.1, 1.0, 60)
    np.testing.assert_allclose(block.product(a), truth(X, X) @ a, atol=60 * EPS)
    Z[0] = X[3]
    found = block.score(a, Z)
    scores = truth(Z, X) @ a
    if model is GaussianCentre:
        centre = a / a.sum()
        norm = centre @ truth(X, X) @ centre
        scores = scores / a.sum() - 0.5 * (1.0 + norm)
    np.testing.assert_allclose(found, scores, atol=60 * EPS)


def test_ordinary_features_need_no_differences(rng):
    X = rng.normal(size=(N, D)) + 1e6  # one far origin is subtracted
    assert VectorKernel(X, gamma=GAMMA).raw is None


def test_norms_beyond_single_precision(rng):
    X = rng.normal(size=(20, 2)) * 1e25
    X[10:] = X[:10]
    part = PartGram(VectorKernel(X, gamma=1.0), 20)
    part.add(np.arange(20))
    np.testing.assert_array_equal(part.matrix[:20, :20], np.tile(np.eye(10), (2, 2)))
