"""Weighted sums of outer products against NumPy, in every remainder of the tiles."""

import numpy as np
import pytest
from maxent._core.weighted_gram import weighted_gram

from maxent._support.linalg import weighted_gram as either


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


def test_rows_that_are_not_contiguous_and_weights_of_any_stride(rng):
    Z, weight = rng.normal(size=(5, 40)).T, rng.exponential(size=80)[::2]
    np.testing.assert_allclose(either(Z, weight), (Z.T * weight) @ Z, atol=1e-12)


def test_no_columns_and_wrong_lengths(rng):
    assert weighted_gram(np.empty((3, 0)), np.ones(3)).shape == (0, 0)
    with pytest.raises(ValueError, match="3 rows, but 2 weights"):
        weighted_gram(np.ones((3, 2)), np.ones(2))
