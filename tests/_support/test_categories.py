"""Codes of categories: whichever way finds them, they are the same."""

import numpy as np
import pytest

from maxent._support.categories import encode_categories

TYPES = [np.int8, np.uint8, np.int16, np.int64, np.uint64, np.float64]


@pytest.mark.parametrize("of_known", TYPES)
@pytest.mark.parametrize("of_column", TYPES)
@pytest.mark.parametrize("most", [3, 90, 2**62])
def test_codes_of_integers_are_places_among_the_known_ones(of_known, of_column, most):
    rng = np.random.default_rng(0)
    limits = [
        np.iinfo(t).max if t is not np.float64 else 2**53 for t in (of_known, of_column)
    ]
    known = np.unique(rng.integers(0, min(most, limits[0]), 9)).astype(of_known)
    column = rng.choice(known, 200).astype(np.float64)
    column[::7] = rng.integers(0, min(most, limits[1]) + 1, 29)
    column = np.minimum(column, limits[1]).astype(of_column)
    places = {value: place for place, value in enumerate(known.tolist())}
    expected = [places.get(value, -1) for value in column.tolist()]
    found = encode_categories(column[:, None], [known], handle_unknown="report")
    assert found.dtype == np.intp
    assert found[:, 0].tolist() == expected


def test_values_far_from_the_known_ones_are_unknown():
    for dtype in (np.int64, np.uint64):
        ends = np.iinfo(dtype)
        column = np.array([ends.min, 4, 5, 6, ends.max] * 3, dtype=dtype)
        known = np.array([4, 6], dtype=np.int8)
        found = encode_categories(column[:, None], [known], handle_unknown="report")
        assert found[:5, 0].tolist() == [-1, 0, -1, 1, -1]


def test_negative_categories_beside_unsigned_values():
    known, column = np.array([-2, 0, 3]), np.array([0, 3, 254, 255] * 2, dtype=np.uint8)
    found = encode_categories(column[:, None], [known], handle_unknown="report")
    assert found[:4, 0].tolist() == [1, 2, -1, -1]


@pytest.mark.parametrize("dtype", [np.int32, np.uint8])
@pytest.mark.parametrize("wide", [(), (2,), (0, 1, 2, 3, 4)])
def test_many_columns_and_blocks_of_rows(dtype, wide):
    """Columns in tables, those too wide for one, and more rows than a block."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 7, size=(40_000, 5)).astype(dtype)
    known = [np.unique(rng.integers(0, 9, 5)).astype(dtype) for _ in range(5)]
    for k in wide:  # one far category: 2**28 between, or a column of another type
        far = 2**28 if dtype is np.int32 else 20.5
        known[k] = np.append(known[k].astype(type(far)), far)
    found = encode_categories(X, known, handle_unknown="report")
    for k, values in enumerate(known):
        places = {value: place for place, value in enumerate(values.tolist())}
        assert found[:, k].tolist() == [places.get(x, -1) for x in X[:, k].tolist()]


def test_the_first_unknown_category_by_column_is_named():
    X = np.array([[0, 1, 2], [0, 1, 9], [0, 8, 2], [0, 7, 2]] * 3)
    known = [np.array([0]), np.array([1, 2]), np.array([0.5, 2.0])]
    with pytest.raises(ValueError, match=r"^X\[2, 1\] = 8 is a category unseen"):
        encode_categories(X, known)
