"""Weighted sums of outer products against NumPy, in every remainder of the tiles."""

import numpy as np
import pytest
from maxent._core.tall_matrices import weighted_gram

from maxent._support.linalg import blocked_cholesky
from maxent._support.linalg import weighted_gram as either
from maxent._support.threads import single_threaded_blas, threads_of


@pytest.mark.parametrize("d", [1, 3, 4, 7, 8, 9, 16, 20, 24, 33, 48, 57, 130, 600])
@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 200])
def test_products_are_those_of_numpy(n, d, rng):
    Z, weight = rng.normal(size=(n, d)), rng.exponential(size=n)
    weight[::3] = 0.0
    exact = (Z.T * weight) @ Z
    for find in (weighted_gram, either):
        found = find(Z, weight)
        np.testing.assert_allclose(found, exact, atol=1e-13 * (n + 1))
        np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("n, d", [(6_001, 57), (120_000, 16), (70_000, 64)])
def test_parts_of_many_rows_are_added_up(n, d, rng):
    Z, weight = rng.normal(size=(n, d)), rng.exponential(size=n)
    found = weighted_gram(Z, weight)
    np.testing.assert_allclose(found, (Z.T * weight) @ Z, rtol=1e-11, atol=1e-9)
    np.testing.assert_array_equal(weighted_gram(Z, weight, 2), found)
    np.testing.assert_array_equal(weighted_gram(Z, weight, 3), found)


def test_blocks_of_many_columns_have_the_same_bits_on_two_threads(rng):
    Z, weight = rng.normal(size=(400, 1200)), rng.exponential(size=400)
    B = either(Z, weight)
    np.testing.assert_allclose(B, (Z.T * weight) @ Z, rtol=1e-11, atol=1e-10)
    A = B + np.eye(1200)
    factors = []
    for threads in (1, 2):
        with threads_of(threads), single_threaded_blas():
            np.testing.assert_array_equal(either(Z, weight), B)
            factors.append(np.tril(blocked_cholesky(A.copy())))
    np.testing.assert_array_equal(*factors)
    np.testing.assert_allclose(factors[0], np.linalg.cholesky(A), rtol=1e-9, atol=1e-9)


def test_rows_that_are_not_contiguous_and_weights_of_any_stride(rng):
    Z, weight = rng.normal(size=(5, 40)).T, rng.exponential(size=80)[::2]
    np.testing.assert_allclose(either(Z, weight), (Z.T * weight) @ Z, atol=1e-12)


def test_no_columns_and_wrong_lengths(rng):
    assert weighted_gram(np.empty((3, 0)), np.ones(3)).shape == (0, 0)
    with pytest.raises(ValueError, match="3 rows, but 2 weights"):
        weighted_gram(np.ones((3, 2)), np.ones(2))
