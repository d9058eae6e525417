"""Kernels between feature vectors: names, gamma, blocks, products, user functions."""

import math
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from maxent import MEDClassifier
from maxent.discrimination.grams.kernel_parameters import (
    KERNEL_NAMES,
    call_kernel,
    resolve_gamma,
)
from maxent.discrimination.grams.vector_kernels import VectorKernel, apply_kernel

OPTIONS = {"gamma": 0.3, "degree": 3, "coef0": 0.5}
NAMED = ["linear", "rbf", "poly", "sigmoid"]
named = pytest.mark.parametrize("name", NAMED)


def wide(X):
    """The same rows among so many columns that they stay sparse."""
    return sp.csr_array(np.column_stack([X, np.zeros((len(X), 500))]))


storages = pytest.mark.parametrize(
    "storage", [np.asarray, sp.csr_array, sp.csr_matrix, wide]
)


def expected(name, X, Z):
    used = {
        "linear": (),
        "rbf": ("gamma",),
        "poly": ("gamma", "degree", "coef0"),
        "sigmoid": ("gamma", "coef0"),
    }[name]
    return pairwise_kernels(X, Z, metric=name, **{k: OPTIONS[k] for k in used})


def rows(rng, n=40, d=5):
    X = rng.normal(size=(n, d))
    X[np.abs(X) < 0.3] = 0.0
    return X


@named
@storages
def test_blocks_and_diagonal_are_those_of_scikit_learn(name, storage, rng):
    X = rows(rng)
    kernel = VectorKernel(storage(X), name, **OPTIONS)
    some, others = np.array([3, 0, 17]), np.arange(5, 30)
    np.testing.assert_allclose(
        kernel.block(some, others), expected(name, X[some], X[others]), rtol=1e-11
    )
    np.testing.assert_allclose(
        kernel.diagonal(), np.diag(expected(name, X, X)), rtol=1e-11
    )
    assert len(kernel) == 40
    assert kernel.has_tiles == (storage is not wide and not kernel.sparse)
    if name != "linear":
        assert kernel.sparse == (storage is wide)


@named
@storages
@pytest.mark.parametrize(
    "columns", [np.arange(40), np.array([7]), np.array([2, 31, 5])]
)
def test_products_are_blocks_times_coefficients(name, storage, columns, rng):
    X = rows(rng)
    kernel = VectorKernel(storage(X), name, **OPTIONS)
    A = rng.normal(size=(len(columns), 2))
    true = expected(name, X, X[columns]) @ A
    scale = np.abs(expected(name, X, X[columns])) @ np.abs(A)
    assert (np.abs(kernel.apply(columns, A) - true) <= 1e-12 * scale + 1e-14).all()
    single = kernel.apply(columns, A, single=True)
    assert (np.abs(single - true) <= 3e-5 * scale + 1e-6).all()


@named
@storages
def test_new_rows(name, storage, rng):
    X, Z = rows(rng), rows(rng, 23)
    A = rng.normal(size=(23, 3))
    found = apply_kernel(storage(X), storage(Z), A, name, **OPTIONS)
    true = expected(name, X, Z) @ A
    np.testing.assert_allclose(found, true, rtol=1e-9, atol=1e-11 * np.abs(true).max())
    mixed = apply_kernel(X, sp.csr_array(Z), A, name, **OPTIONS)
    np.testing.assert_allclose(mixed, true, rtol=1e-9, atol=1e-11 * np.abs(true).max())
    nothing = apply_kernel(X, Z[:0], A[:0], name, **OPTIONS)
    assert (nothing == 0).all()
    assert nothing.shape == (40, 3)


@named
def test_values_and_memory_do_not_depend_on_empty_columns(name, rng):
    X, Z = rows(rng), rows(rng, 23)
    d = 2**24
    places = np.sort(rng.choice(d, size=8, replace=False))
    spread = []
    for few, chosen in ((X, places[:5]), (Z, places[3:])):  # some columns in one only
        few = sp.csr_array(few)
        held = (few.data, chosen[few.indices], few.indptr)
        spread.append(sp.csr_array(held, shape=(few.shape[0], d)))
    X8, Z8 = np.zeros((40, 8)), np.zeros((23, 8))
    X8[:, :5], Z8[:, 3:] = X, Z
    A = rng.normal(size=(23, 2))
    tracemalloc.start()
    kernel = VectorKernel(spread[0], name, **OPTIONS)
    block = kernel.block(np.arange(40), np.arange(7))
    found = apply_kernel(*spread, A, name, **OPTIONS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < d / 16  # not a byte for each column
    true = expected(name, X8, X8[:7])
    np.testing.assert_allclose(block, true, rtol=1e-11)
    true = expected(name, X8, Z8) @ A
    np.testing.assert_allclose(found, true, rtol=1e-9, atol=1e-11 * np.abs(true).max())
    nothing = sp.csr_array((3, d))
    found = apply_kernel(spread[0], nothing, A[:3], name, **OPTIONS)
    true = expected(name, X8, np.zeros((3, 8))) @ A[:3]
    np.testing.assert_allclose(found, true, rtol=1e-9, atol=1e-11 * np.abs(true).max())


def test_far_from_the_origin_distances_keep_their_digits(rng):
    X = rows(rng) + 1e6
    kernel = VectorKernel(X, "rbf", gamma=0.3)
    K = kernel.block(np.arange(40), np.arange(40))
    np.testing.assert_allclose(K, expected("rbf", X - 1e6, X - 1e6), rtol=1e-8)
    A = rng.normal(size=(40, 1))
    np.testing.assert_allclose(
        apply_kernel(X, X, A, "rbf", gamma=0.3), K @ A, rtol=1e-8, atol=1e-10
    )


def test_precomputed_matrices(rng):
    X = rows(rng)
    K = X @ X.T
    kernel = VectorKernel(K, "precomputed")
    assert (kernel.block(np.array([1, 2]), np.array([3])) == K[1:3, 3:4]).all()
    assert (kernel.diagonal() == np.diag(K)).all()
    A = rng.normal(size=(3, 1))
    columns = np.array([4, 9, 11])
    np.testing.assert_allclose(kernel.apply(columns, A), K[:, columns] @ A)
    np.testing.assert_allclose(
        apply_kernel(K[:, columns], None, A, "precomputed"), K[:, columns] @ A
    )


@storages
def test_user_functions_get_blocks_of_the_given_kind(storage, rng):
    X = rows(rng)
    seen = []

    def kernel(A, B):
        seen.append((type(A), A.shape, B.shape))
        return np.asarray((A @ B.T).todense() if sp.issparse(A) else A @ B.T)

    vectors = VectorKernel(storage(X), kernel)
    np.testing.assert_allclose(
        vectors.block(np.arange(3), np.arange(40)), X[:3] @ X.T, rtol=1e-12
    )
    np.testing.assert_allclose(vectors.diagonal(), (X**2).sum(axis=1), rtol=1e-12)
    A = rng.normal(size=(40, 1))
    np.testing.assert_allclose(vectors.apply(np.arange(40), A), X @ (X.T @ A))
    np.testing.assert_allclose(
        apply_kernel(storage(X[:7]), storage(X), A, kernel), X[:7] @ (X.T @ A)
    )
    assert all(issubclass(s[0], type(storage(X))) for s in seen)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ones((3, 2)), r"shape \(3, 2\) for 2 and 3 rows; it must return \(2, 3\)"),
        (1.0, "shape"),
        (None, "shape"),
        ([[1, 2, math.nan], [1, 2, 3]], "returned nan for rows 0 and 2"),
        ([[1, 2, 3], [1, -math.inf, 3]], "returned -inf for rows 1 and 1"),
    ],
)
def test_nonsense_from_user_functions_is_named(value, message):
    with pytest.raises(ValueError, match=message):
        call_kernel(lambda A, B: value, np.ones((2, 4)), np.ones((3, 4)))


@storages
def test_gamma_is_that_of_svc(storage, rng):
    X = 3 * rows(rng) + 1
    y = np.arange(40) % 2
    for gamma in ("scale", "auto", 0.7):
        theirs = SVC(gamma=gamma).fit(storage(X), y)._gamma
        assert resolve_gamma(gamma, storage(X)) == pytest.approx(theirs, rel=1e-12)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_weights_count_rows_in_gamma_scale(storage, rng):
    X = rows(rng) + 2
    w = rng.integers(1, 4, 40)
    again = np.repeat(X, w, axis=0)
    assert resolve_gamma("scale", storage(X), w.astype(float)) == pytest.approx(
        resolve_gamma("scale", again), rel=1e-12
    )


def test_gamma_of_constant_features_is_one():
    assert resolve_gamma("scale", np.full((5, 2), 3.0)) == 1.0
    assert resolve_gamma("scale", sp.csr_array((5, 2))) == 1.0
    assert resolve_gamma(0, np.ones((2, 2))) == 0.0


@pytest.mark.parametrize("gamma", ["scales", "", -1e-9, math.nan, math.inf])
def test_bad_gamma_is_named(gamma):
    with pytest.raises(ValueError, match="gamma="):
        resolve_gamma(gamma, np.ones((2, 2)))


@pytest.mark.parametrize("degree", [-1, 65, 2.0, True + 0.5])
def test_bad_degrees_are_named(degree):
    with pytest.raises(ValueError, match="degree="):
        VectorKernel(np.ones((2, 2)), "poly", degree=degree)


def test_unknown_kernels_are_named():
    with pytest.raises(ValueError, match=r"kernel='rbff'.*linear.*callable"):
        VectorKernel(np.ones((2, 2)), "rbff")
    assert set(NAMED) < set(KERNEL_NAMES)


@pytest.mark.parametrize("far", [0.0, 1e8])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "precomputed", "callable"])
def test_rows_of_two_slices_are_those_of_their_places(kernel, far, rng):
    X = rng.normal(size=(23, 3)) + (far if kernel == "rbf" else 0.0)
    if kernel == "precomputed":
        X = X @ X.T
    whole = VectorKernel(X, np.inner if kernel == "callable" else kernel)
    one, other = slice(3, 9), slice(15, 22)
    places = np.r_[one, other]
    part, want = whole.joined(one, other), whole.among(places)
    every = np.arange(len(places))
    np.testing.assert_array_equal(part.block(every, every), want.block(every, every))
    np.testing.assert_array_equal(part.block(every, every), whole.block(places, places))
    assert (part.raw is None) == (want.raw is None)


def test_tables_of_dates_alone_are_refused():
    days = pd.DataFrame({"joined": pd.date_range("2020", periods=6)})
    for X in (days, days.to_numpy()):
        with pytest.raises(ValueError, match="dates or times only"):
            MEDClassifier().fit(X, [0, 1] * 3)
