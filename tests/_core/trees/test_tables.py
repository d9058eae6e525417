"""Pair counts, scores and mutual informations against plain loops."""

import numpy as np
import pytest
from maxent._core.trees.tables import Columns

# letters of the columns; rows below and above the number at which columns are grouped
LETTERS = {
    "four letters": [4] * 7,
    "binary": [2] * 9,
    "mixed": [3, 1, 2, 17, 2, 2, 5, 1, 300],
    "two columns": [2, 6],
    "constant": [1, 1, 1],
}
named = pytest.mark.parametrize("letters", LETTERS.values(), ids=LETTERS.keys())
rows = pytest.mark.parametrize("T", [1, 40, 511, 512, 5000])


def data(letters, T, rng):
    X = np.stack([rng.integers(0, r, T) for r in letters], axis=1)
    offset = np.concatenate([[0], np.cumsum(letters)]).astype(np.intp)
    return X, offset, Columns(np.ascontiguousarray(X.T, dtype=np.uint16), offset)


def one_hot(X, offset):
    Z = np.zeros((len(X), offset[-1]))
    Z[np.arange(len(X))[:, None], offset[:-1] + X] = 1.0
    return Z


@named
@rows
def test_counts_are_sums_over_the_rows(letters, T, rng):
    X, offset, columns = data(letters, T, rng)
    Z = one_hot(X, offset)
    a = rng.normal(size=T)
    C = np.full((offset[-1], offset[-1]), np.nan)
    columns.counts(a, 1, C)
    # each of the 1 to T terms of a cell is rounded once
    np.testing.assert_allclose(
        C, Z.T @ (a[:, None] * Z), rtol=0, atol=1e-15 * T + 1e-14
    )
    columns.counts(None, 1, C)
    assert (Z.T @ Z == C).all()


@named
@rows
def test_scores_are_sums_over_the_pairs(letters, T, rng):
    X, offset, columns = data(letters, T, rng)
    M = rng.normal(size=(offset[-1], offset[-1]))
    out = np.full(T, np.nan)
    columns.scores(M, 1, out)
    n, true = len(letters), np.zeros(T)
    for u in range(n):
        for v in range(u, n):
            true += M[offset[u] + X[:, u], offset[v] + X[:, v]]
    np.testing.assert_allclose(out, true, rtol=0, atol=1e-15 * n**2 * np.abs(M).max())


@named
@rows
@pytest.mark.parametrize("ess", [0.0, 2.5])
def test_mutual_information_of_pairs(letters, T, ess, rng):
    X, _, columns = data(letters, T, rng)
    for weight in (None, rng.uniform(0.5, 2.0, T)):
        out = np.full((len(letters),) * 2, np.nan)
        columns.mutual_information(weight, ess, 1, out)
        for u in range(len(letters)):
            assert out[u, u] == 0
            for v in range(u):
                C = np.full((letters[u], letters[v]), ess / (letters[u] * letters[v]))
                np.add.at(C, (X[:, u], X[:, v]), 1.0 if weight is None else weight)
                C /= C.sum()
                seen = C > 0
                product = C.sum(axis=1)[:, None] * C.sum(axis=0)
                true = (C[seen] * np.log(C[seen] / product[seen])).sum()
                assert out[u, v] == out[v, u]
                assert out[u, v] == pytest.approx(true, rel=1e-11, abs=1e-13)


def test_counts_and_scores_are_adjoint(rng):
    # sum_t a_t g_t(M) = <M, C(a)> over u <= v: the gradient of the edge sums
    _, offset, columns = data(LETTERS["four letters"], 3000, rng)
    a, M = rng.normal(size=3000), rng.normal(size=(offset[-1], offset[-1]))
    g, C = np.empty(3000), np.empty_like(M)
    columns.scores(M, 1, g)
    columns.counts(a, 1, C)
    column = np.repeat(np.arange(7), 4)
    upper = column[:, None] <= column[None, :]
    assert a @ g == pytest.approx((M * C)[upper].sum(), rel=1e-10, abs=1e-9)


def test_same_bits_for_any_number_of_threads(rng):
    X, offset, columns = data(LETTERS["mixed"], 9000, rng)
    a, M = rng.normal(size=len(X)), rng.normal(size=(offset[-1], offset[-1]))

    def everything(threads):
        C, g, mi = np.empty_like(M), np.empty(len(X)), np.empty((9, 9))
        columns.counts(a, threads, C)
        columns.scores(M, threads, g)
        columns.mutual_information(a**2, 1.0, threads, mi)
        return C.tobytes() + g.tobytes() + mi.tobytes()

    assert everything(1) == everything(2) == everything(3)


def test_weights_of_one_count_the_same_as_none(rng):
    *_, columns = data(LETTERS["four letters"], 600, rng)
    C, D = np.empty((28, 28)), np.empty((28, 28))
    columns.counts(None, 1, C)  # from bits, before the codes of groups are there
    columns.counts(np.ones(600), 1, D)
    assert (C == D).all()


@pytest.mark.parametrize("rows", [1, 511, 513, 2500, 4097, 9001])
def test_scores_of_any_number_of_rows_on_any_number_of_threads(rows, rng):
    X, offset, columns = data([4] * 30, rows, rng)
    M = rng.normal(size=(offset[-1], offset[-1]))
    found = []
    for threads in (1, 2, 3, 5):
        found.append(np.full(rows, np.nan))
        columns.scores(M, threads, found[-1])
    for other in found[1:]:
        assert (other == found[0]).all()
    at = X + offset[:-1]
    expected = sum(M[at[:, u], at[:, v]] for u in range(30) for v in range(u, 30))
    assert np.allclose(found[0], expected)


def test_shapes_that_do_not_fit_are_refused():
    codes = np.zeros((3, 5), dtype=np.uint16)
    for offset in ([0, 1, 2], [0, 1, 2, 3, 4]):
        with pytest.raises(ValueError, match="do not fit"):
            Columns(codes, np.array(offset, dtype=np.intp))
    for shape in ((0, 5), (3, 0)):
        with pytest.raises(ValueError, match="do not fit"):
            Columns(np.zeros(shape, dtype=np.uint16), np.arange(shape[0] + 1))
