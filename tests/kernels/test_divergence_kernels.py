"""Kernels from divergences, the heat kernel, and the repair of eigenvalues."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from families.family_cases import MAKERS
from refusals import refused
from scipy import sparse
from scipy.special import eval_legendre, rel_entr

from maxent.families import Bernoulli, Categorical, Gaussian
from maxent.kernels import heat_kernel, js_kernel, kl_kernel, repair_kernel

# of a matrix of n entries at most one: rounding of its eigenvalues
ROUNDING = 1e-12


def rows(rng, n, d, zeros=0.3):
    """Probabilities, some of them zero."""
    X = rng.dirichlet(np.ones(d), size=n)
    X[rng.random(X.shape) < zeros] = 0.0
    X[X.sum(axis=1) == 0, 0] = 1.0
    return X / X.sum(axis=1, keepdims=True)


def smallest(K):
    return np.linalg.eigvalsh(K)[0]


def shannon(X, Y):
    """Jensen-Shannon divergences by their definition."""
    m = 0.5 * (X[:, None] + Y)
    return 0.5 * (rel_entr(X[:, None], m) + rel_entr(Y, m)).sum(axis=-1)


# -- symmetrised KL --------------------------------------------------------------------
@pytest.mark.parametrize("name", ["gaussian", "poisson", "categorical", "gamma"])
def test_kl_kernel_by_its_definition(name, rng):
    P, Q = MAKERS[name](rng, (5,)), MAKERS[name](rng, (4,))
    J = P.kl(Q) + Q.kl(P).T
    np.testing.assert_allclose(kl_kernel(P, Q, gamma=0.3), np.exp(-0.3 * J), rtol=1e-13)
    K = kl_kernel(P, gamma=0.3)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(np.diagonal(K), 1.0)
    np.testing.assert_array_equal(kl_kernel(list(P), gamma=0.3), K)


def test_kl_kernel_of_independent_coordinates_is_a_product(rng):
    prob = rng.uniform(0.1, 0.9, size=(5, 3))
    K = kl_kernel(Bernoulli(prob))
    each = [kl_kernel(Bernoulli(prob[:, j])) for j in range(3)]
    np.testing.assert_allclose(K, np.prod(each, axis=0), rtol=1e-13)


def test_kl_kernel_is_zero_beyond_the_support():
    K = kl_kernel(Categorical([[1.0, 0.0], [0.5, 0.5]]))
    np.testing.assert_array_equal(K, np.eye(2))


def test_kl_kernel_of_one_covariance_is_an_rbf_kernel(rng):
    mean = rng.normal(size=(20, 2))
    K = kl_kernel(Gaussian(mean, np.eye(2)), gamma=0.7)
    square = ((mean[:, None] - mean) ** 2).sum(axis=-1)
    np.testing.assert_allclose(K, np.exp(-0.7 * square), rtol=1e-11)
    assert smallest(K) > -ROUNDING * len(K)


def test_kl_kernel_is_not_positive_semidefinite_and_js_is():
    """60 trinomials; fixed, so that the counterexample stays one."""
    X = np.random.default_rng(0).dirichlet(np.full(3, 0.3), size=60)
    X = np.maximum(X, 1e-6)
    P = Categorical(X / X.sum(axis=1, keepdims=True))
    assert smallest(kl_kernel(P, gamma=0.1)) < -0.01
    assert smallest(js_kernel(P, gamma=0.1)) > -ROUNDING * 60
    with pytest.warns(UserWarning, match="of 60 eigenvalues are negative") as caught:
        K = kl_kernel(P, gamma=0.1, repair=True)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert smallest(K) > -ROUNDING * 60
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        K = kl_kernel(P, gamma=0.1, repair=True, normalize=True)
    np.testing.assert_array_equal(np.diagonal(K), 1.0)


# -- Jensen-Shannon --------------------------------------------------------------------
@pytest.mark.parametrize("d", [2, 3, 30])
@pytest.mark.parametrize("gamma", [0.1, 1.0, 20.0])
def test_js_kernel_by_its_definition(d, gamma, rng):
    X, Y = rows(rng, 25, d), rows(rng, 4, d, 0.8)
    np.testing.assert_allclose(
        js_kernel(X, Y, gamma=gamma), np.exp(-gamma * shannon(X, Y)), rtol=1e-12
    )
    K = js_kernel(X, gamma=gamma)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(np.diagonal(K), 1.0)
    assert smallest(K) > -ROUNDING * len(K)
    for other in (Categorical(X), sparse.csr_array(X), sparse.csc_matrix(X)):
        np.testing.assert_array_equal(js_kernel(other, gamma=gamma), K)
    np.testing.assert_array_equal(js_kernel(X, gamma=gamma, normalize=True), K)


# -- heat ------------------------------------------------------------------------------
@pytest.mark.parametrize("t", [0.05, 0.5, 2.0])
def test_heat_parametrix_by_its_definition(t, rng):
    X, Y = rows(rng, 9, 4), rows(rng, 5, 4)
    angle = np.arccos(np.minimum(np.sqrt(X) @ np.sqrt(Y).T, 1.0))
    # arccos loses half the digits at one: angle^2 is right to rounding
    expected = (4 * np.pi * t) ** -1.5 * np.exp(-(angle**2) / t)
    K = heat_kernel(X, Y, t=t, normalize=False)
    np.testing.assert_allclose(K, expected, rtol=1e-13 / t + 1e-13)
    L = heat_kernel(X, Y, t=t, normalize=False, log=True)
    np.testing.assert_allclose(L, np.log(expected), rtol=1e-12, atol=1e-13 / t + 1e-13)
    np.testing.assert_allclose(
        heat_kernel(X, Y, t=t), np.exp(-(angle**2) / t), rtol=1e-13 / t + 1e-13
    )
    np.testing.assert_array_equal(
        heat_kernel(sparse.csr_array(X), Y, t=t), heat_kernel(X, Y, t=t)
    )


@pytest.mark.parametrize("t", [0.1, 1.0, 10.0])
def test_exact_heat_kernel_of_three_categories(t, rng):
    """Legendre's series on the sphere of radius 2, and the circle's for two."""
    X = rows(rng, 12, 3)
    b = np.minimum(np.sqrt(X) @ np.sqrt(X).T, 1.0)
    l = np.arange(200)[:, None, None]
    terms = (2 * l + 1) * np.exp(-l * (l + 1) * t / 4) * eval_legendre(l, b)
    expected = terms.sum(axis=0) / (16 * np.pi)
    K = heat_kernel(X, t=t, method="exact", normalize=False)
    np.testing.assert_allclose(K, expected, atol=1e-13 * expected.max())
    assert smallest(heat_kernel(X, t=t, method="exact")) > -ROUNDING * len(K)
    X = rows(rng, 12, 2)
    angle = np.arccos(np.minimum(np.sqrt(X) @ np.sqrt(X).T, 1.0))
    l = np.arange(1, 200)[:, None, None]
    # heat on the circle of length 4 pi, wound around by images
    turns = 2 * angle + 4 * np.pi * np.arange(-40, 41)[:, None, None]
    expected = np.exp(-(turns**2) / (4 * t)).sum(axis=0) / np.sqrt(4 * np.pi * t)
    K = heat_kernel(X, t=t, method="exact", normalize=False)
    np.testing.assert_allclose(K, expected, atol=1e-7 * expected.max())


@pytest.mark.parametrize("d", [4, 7, 40])
def test_exact_heat_kernel_in_other_dimensions(d):
    """It solves the heat equation: by t the Laplacian of the sphere of radius 2."""
    angle = np.linspace(0.3, 1.2, 7)
    X = np.zeros((1, d))
    X[0, 0] = 1.0

    def value(theta, t):
        Y = np.zeros((len(theta), d))
        Y[:, 0], Y[:, 1] = np.cos(theta) ** 2, np.sin(theta) ** 2
        return heat_kernel(X, Y, t=t, method="exact", normalize=False)[0]

    t, h = 2.0 / d, 1e-3
    here, up, down = (value(angle + s, t) for s in (0.0, h, -h))
    slope = (up - down) / (2 * h)
    laplacian = ((up - 2 * here + down) / h**2 + (d - 2) * slope / np.tan(angle)) / 4
    by_time = (value(angle, t * (1 + h)) - value(angle, t * (1 - h))) / (2 * h * t)
    # differences of second order, h^2 times derivatives of order d^2
    scale = np.abs(by_time).max()
    assert np.abs(by_time - laplacian).max() < 10 * h**2 * d**2 * scale


def test_parametrix_is_the_exact_kernel_for_small_times(rng):
    """The ratio is 1 + t R / 6 + ... with a curvature term of order t."""
    X = np.array([[0.5, 0.3, 0.2], [0.45, 0.35, 0.2]])
    errors = [
        np.abs(
            heat_kernel(X, t=t, normalize=False)
            / heat_kernel(X, t=t, method="exact", normalize=False)
            - 1.0
        ).max()
        for t in (0.08, 0.04, 0.02)
    ]
    assert errors[2] < 0.01
    for coarse, fine in pairwise(errors):
        assert 1.8 < coarse / fine < 2.2


def test_large_times_need_the_repair_or_the_exact_kernel():
    X = np.random.default_rng(1).dirichlet(np.full(3, 0.3), size=40)
    assert smallest(heat_kernel(X, t=10.0)) < -0.01
    assert smallest(heat_kernel(X, t=10.0, method="exact")) > -ROUNDING * 40
    with pytest.warns(UserWarning, match="negative ones are set to 0"):
        K = heat_kernel(X, t=10.0, repair=True)
    np.testing.assert_array_equal(np.diagonal(K), 1.0)
    assert smallest(K) > -ROUNDING * 40


def test_heat_kernel_of_many_categories(rng):
    X = sparse.random_array((20, 40_000), density=1e-3, random_state=rng, format="csr")
    X = sparse.csr_array(X / X.sum(axis=1)[:, None])
    K = heat_kernel(X, t=0.2, n_jobs=2)
    assert np.isfinite(K).all() and (K > 0).all()
    np.testing.assert_array_equal(K, heat_kernel(X, t=0.2, n_jobs=1))
    assert np.isfinite(heat_kernel(X, t=0.2, log=True, normalize=False)).all()


# -- repair ----------------------------------------------------------------------------
def test_repair_is_the_nearest_matrix(rng):
    A = rng.normal(size=(12, 12))
    A = A + A.T
    with pytest.warns(UserWarning):
        K = repair_kernel(A)
    np.testing.assert_array_equal(K, K.T)
    values, vectors = np.linalg.eigh(A)
    expected = (vectors * np.maximum(values, 0)) @ vectors.T
    np.testing.assert_allclose(K, expected, atol=1e-13 * np.abs(A).max() * 12)
    # optimality of the projection: K (K - A) = 0 and K - A is semidefinite
    assert np.abs(K @ (K - A)).max() < 1e-12 * np.abs(A).max() ** 2 * 12
    assert smallest(K - A) > -1e-12 * np.abs(A).max() * 12


def test_repair_leaves_kernels_alone(rng):
    X = rng.normal(size=(10, 3))  # rank three: eigenvalues of rounding size
    K = X @ X.T
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(repair_kernel(K), K)
        out = repair_kernel(K, normalize=True)
    root = np.sqrt(np.diagonal(K))
    np.testing.assert_allclose(out, K / np.outer(root, root), rtol=1e-14)


# -- bad input -------------------------------------------------------------------------
@pytest.mark.parametrize("kernel", [js_kernel, heat_kernel])
def test_rows_that_are_no_probabilities(kernel):
    X = [[0.5, 0.5], [0.25, 0.75]]
    refused(lambda: kernel([[0.5, 0.6]]), r"P\[0\] sums to 1.1.*Divide")
    refused(lambda: kernel(X, [[0.2, 0.3, 0.5]]), "Q has 3 categories but P has 2")
    refused(lambda: kernel([0.5, 0.5]), r"shape \(2,\)")
    counts = sparse.csr_array([[2.0, 1.0], [1.0, 0.0]])
    refused(lambda: kernel(counts), r"P\.data\[0\]=2")
    part = sparse.csr_array([[1.0, 0.0], [0.5, 0.0]])
    refused(lambda: kernel(part), r"P\[1\] sums to 0.5")


def test_refusals():
    X = [[0.5, 0.5], [0.25, 0.75]]
    P = Categorical(X)
    refused(lambda: js_kernel(P, gamma=0.0), "gamma=0")
    refused(lambda: kl_kernel(P, gamma=-1.0), "gamma=-1")
    refused(lambda: kl_kernel(X), "Categorical|distribution")
    refused(lambda: kl_kernel(np.array(X)), "Categorical")
    refused(lambda: kl_kernel(P, P, repair=True), "repair=True.*Q=None")
    refused(lambda: heat_kernel(P, P, repair=True), "repair=True.*Q=None")
    refused(lambda: heat_kernel(P, repair=True, log=True), "log=False")
    refused(lambda: heat_kernel(P, t=0.0), "t=0")
    refused(lambda: heat_kernel(P, method="series"), "method='series'")
    refused(lambda: heat_kernel([[1.0]]), "1 category")
    refused(lambda: heat_kernel(P, t=1e-9, method="exact"), "t=1e-09.*parametrix")
    refused(lambda: repair_kernel([[1.0, 2.0]]), "square")
    refused(lambda: repair_kernel([[1.0, 2.0], [0.0, 1.0]]), "not symmetric")
    refused(
        lambda: repair_kernel([[1.0, 0.0], [0.0, 0.0]], normalize=True),
        r"P\[1\].*normalize=False",
    )
