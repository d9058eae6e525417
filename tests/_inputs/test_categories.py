"""Codes of categories: whichever way finds them, they are the same."""

import warnings

import numpy as np
import pytest

from maxent._inputs.categories import encode_categories, learn_categories
from maxent._inputs.codes import check_codes, transposed_codes
from maxent._support.threads import threads_of

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


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint64])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_categories_of_integers_are_the_distinct_ones(dtype, n_jobs):
    """Near and far ones, in one block of rows and in several."""
    rng = np.random.default_rng(4)
    low = max(np.iinfo(dtype).min, -100)
    for rows in (1, 7, 30_000):
        X = rng.integers(low, 100, size=(rows, 4)).astype(dtype)
        X[:, 1] = X[0, 1]
        X[-1, 2] = np.iinfo(dtype).max
        X[0, 3] = np.iinfo(dtype).min
        with threads_of(n_jobs), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of many numbers in few rows
            found = learn_categories(X)
        for column, known in zip(X.T, found, strict=True):
            assert known.dtype == dtype
            assert known.tolist() == sorted(set(column.tolist()))


def test_numbers_of_rows_are_no_categories_whichever_way_they_are_counted():
    X = np.column_stack([np.arange(500), np.arange(500) % 3])
    for rows in (X, X * 10**13, X.astype(object)):  # in a table, far apart, no integers
        with pytest.warns(UserWarning, match=r"500 different numbers in 500 rows"):
            learn_categories(rows)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16, np.float64])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_transposed_codes_are_the_codes(dtype, n_jobs):
    rng = np.random.default_rng(5)
    sizes = [3, 100, 1, 7]
    for rows in (0, 1, 33, 40_000):
        X = np.column_stack([rng.integers(0, r, rows) for r in sizes]).astype(dtype)
        if np.dtype(dtype).kind != "u":
            X[::5, 1] = X[::7, 3] = -1
        with threads_of(n_jobs):
            codes, missing = transposed_codes(X, sizes)
        expected = np.where(X < 0, sizes, X).T
        assert codes.dtype == np.uint16
        assert (codes == expected).all()
        lacks = bool((X < 0).any())
        assert missing.tolist() == [False, lacks, False, lacks]


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("code", [-2, 3, 65535, 65536, 2**40])
def test_the_first_wrong_code_is_named_whichever_thread_finds_it(code, n_jobs):
    X = np.zeros((60_000, 3), dtype=np.int64)
    X[17_005, 1] = X[17_004, 2] = X[59_000, 0] = code
    with threads_of(n_jobs):
        for way in (transposed_codes, check_codes):
            with pytest.raises(ValueError, match=r"X\[17004, 2\] = ") as error:
                way(X, [3, 3, 3])
            assert "codes 0 to 2" in str(error.value)


@pytest.mark.parametrize("size", [0, -1, 65536, 10**308, np.inf, 2.5, "3", None])
def test_numbers_of_categories_that_two_bytes_do_not_hold_are_refused(size):
    with pytest.raises(ValueError, match=r"inconsistent.* numbers of categories"):
        transposed_codes(np.zeros((3, 2), dtype=int), (2, size))


def test_codes_that_are_no_integers_are_refused():
    X = np.zeros((50_000, 2))
    for wrong in (0.5, np.nan, np.inf):
        X[40_001, 1] = wrong
        for way in (transposed_codes, check_codes):
            with pytest.raises(ValueError, match="integer codes"):
                way(X, [2, 2])
