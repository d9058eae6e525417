"""Functions of partitions: order of sums, placement, what is refused."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxent import (
    MaxEntClassifier,
    MEDClassifier,
    MEDGaussianClassifier,
    MEDOutlierDetector,
    MEDRegressor,
)
from maxent._partitions.partition_checks import check_partitions, sample_of
from maxent._partitions.partitions import (
    Partitions,
    _aligned,
    is_partitioned,
    mapped,
    partitions_of,
)
from maxent._partitions.row_blocks import RowBlocks
from maxent.latent import LMEGaussianMixture

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")


def moments(X, y, weight):
    return X.sum(axis=0), float(y.sum()), None


def counted(X, y, weight, state, step):
    state = step if state is None else state + step
    return state, (float(state) * len(y),)


@pytest.fixture
def data(rng):
    X = rng.normal(size=(103, 4))
    return X, rng.normal(size=103)


def blocks(X, y, size):
    cuts = range(0, len(X), size)
    return Partitions([(X[lo : lo + size], y[lo : lo + size], None) for lo in cuts])


class Changing:
    """Blocks of rows that are computed as asked for some passes, then otherwise."""

    def __init__(self, blocks, passes, otherwise):
        self.blocks, self.otherwise = blocks, otherwise
        self.left = passes * len(blocks)

    def __call__(self, i):
        self.left -= 1
        block = self.blocks[i]
        return self.otherwise(block) if i == 1 and self.left < 0 else block

    def array(self):
        parts = [
            da.from_delayed(dask.delayed(self)(i), block.shape, float)
            for i, block in enumerate(self.blocks)
        ]
        return da.concatenate(parts)


OTHERWISE = {
    "wide": lambda block: np.hstack([block, block]),
    "narrow": lambda block: block[:, :1],
    "short": lambda block: block[:-1],
    "flat": lambda block: block[:, 0],
    "complex": lambda block: block + 1j,
}


@pytest.mark.parametrize("passes", [1, 3])
@pytest.mark.parametrize("otherwise", OTHERWISE.values(), ids=OTHERWISE)
def test_blocks_that_change_between_passes_are_named(otherwise, passes, data):
    X, _ = data

    def total(X, y, weight):
        return (X.sum(),)

    def update(X, y, weight, state):
        return state, (X.sum(),)

    with dask.config.set(scheduler="synchronous"):
        rows = Changing([X[:50], X[50:]], passes, otherwise).array()
        parts = partitions_of(rows, None, None, names=("y", "weight"))
        check_partitions(parts, "none", 1e15)
        for _ in range(passes - 1):
            parts.total(total)
        match = r"partition 1: the block has shape .* 53 rows of 4 real numbers"
        with pytest.raises(ValueError, match=match):
            parts.total(total)
        with pytest.raises(ValueError, match=match):
            parts.update(update, None)


LOST = {
    "MEDClassifier": lambda X: MEDClassifier("linear").fit(X, np.arange(103) % 2),
    "MEDRegressor": lambda X: MEDRegressor("linear").fit(X, np.arange(103) % 5),
    "MaxEntClassifier": lambda X: MaxEntClassifier().fit(X, np.arange(103) % 2),
    "mixture": LMEGaussianMixture(2, n_init=2, random_state=0).fit,
}


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
@pytest.mark.parametrize("passes", [1, 3])
@pytest.mark.parametrize("fit", LOST.values(), ids=LOST)
def test_entries_that_are_lost_in_a_later_pass_are_named(fit, passes, wrong, data):
    def lost(block):
        block = block.copy()
        block[7, 2] = wrong
        return block

    X, _ = data
    with dask.config.set(scheduler="synchronous"):
        rows = Changing([X[:50], X[50:]], passes, lost).array()
        with pytest.raises(
            ValueError, match=r"partition 1: .*X\[7, 2\]=.*; it was fin"
        ):
            fit(rows)


def test_blocks_that_do_not_fit_together_are_refused_by_classifiers(data):
    X, y = data
    rows = da.concatenate([da.from_array(X[:50]), da.from_array(X[50:])])
    rows = rows.map_blocks(lambda block: block[:, : len(block) % 4 + 1], dtype=float)
    with pytest.raises(
        ValueError, match=r"X is a Dask array with blocks of the shapes"
    ):
        MEDGaussianClassifier().fit(rows, y > 0)


@pytest.mark.parametrize("size", [2, 10, 103])
@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_sums_have_the_same_bits_wherever_they_are_computed(data, size, scheduler):
    X, y = data
    local = blocks(X, y, size)
    other = partitions_of(
        da.from_array(X, chunks=(size, 4)), y, None, names=("y", "weight")
    )
    assert other.lengths == local.lengths and other.n_columns == 4
    with dask.config.set(scheduler=scheduler):
        found, want = other.total(moments), local.total(moments)
        np.testing.assert_array_equal(found[0], want[0])
        assert found[1] == want[1] and found[2] is want[2] is None
        np.testing.assert_allclose(found[0], X.sum(axis=0), atol=1e-12)
        assert other.map(len_of) == list(local.lengths)
        states = None
        for step in (1, 10):
            states, total = other.update(counted, states, step)
        assert total == (11.0 * 103,)


def len_of(X, y, weight):
    return len(X)


def test_states_stay_with_their_partition(data):
    X, y = data
    local = blocks(X, y, 20)
    states, total = local.update(counted, None, 2)
    states, total = local.update(counted, states, 3)
    assert list(states) == [5] * 6 and total == (5.0 * 103,)


def test_arrays_that_came_by_wire_are_aligned(rng):
    raw = np.empty(8 * 12 + 1, dtype=np.uint8)[1:].view(np.float64).reshape(3, 4)
    raw[...] = rng.normal(size=(3, 4))
    again = _aligned(raw)
    assert again.flags.aligned and (again == raw).all()
    assert _aligned(again) is again


def test_functions_of_rows_are_mapped_lazily(data):
    X, _ = data
    blocks = da.from_array(X, chunks=(40, 4))
    found = mapped(lambda block: block.sum(axis=1), blocks)
    assert is_partitioned(found) and found.chunks == ((40, 40, 23),)
    np.testing.assert_array_equal(found.compute(), X.sum(axis=1))
    wide = mapped(lambda block: block[:, :2], blocks, columns=2)
    np.testing.assert_array_equal(wide.compute(), X[:, :2])


def test_a_sample_stands_for_all_rows(data):
    X, y = data
    weight = np.where(np.arange(103) % 3, 2.0, 0.0)
    parts = Partitions([(X[:60], y[:60], weight[:60]), (X[60:], y[60:], None)])
    rows, targets, own = sample_of(parts, (40, 43), 30)
    assert 20 <= len(rows) <= 35 and len(targets) == len(rows)
    assert own.sum() == pytest.approx(weight[:60].sum() + 43)
    known = {tuple(row) for row in X[weight > 0]} | {tuple(row) for row in X[60:]}
    assert {tuple(row) for row in rows} <= known


BAD = {
    "nan": (lambda X, y, w: (put(X, np.nan), y, w), r"partition 1: X\[7, 2\]=nan"),
    "inf": (lambda X, y, w: (put(X, np.inf), y, w), r"partition 1: X\[7, 2\]=inf"),
    "large": (lambda X, y, w: (put(X, 1e20), y, w), "partition 1: X has entries"),
    "text": (lambda X, y, w: (X.astype(str), y, w), "partition 1: X has dtype <U"),
    "width": (lambda X, y, w: (X[:, :3], y, w), r"partition 1: X has shape \(63, 3\)"),
    "label": (lambda X, y, w: (X, y + 0.5, w), "partition 1: Unknown label type"),
    "weight": (lambda X, y, w: (X, y, put(w, -1.0)), r"sample_weight\[7\]=-1 is neg"),
    "no label": (lambda X, y, w: (X, put(y, np.nan), w), r"NaN or inf.*y\[7\]=nan"),
    "columns": (lambda X, y, w: (X, y[:-1], w), "partition 1: y has 62 rows"),
    "rows": (lambda X, y, w: (X[:-1], y[:-1], w[:-1]), "partition 1: X has 62 rows"),
    "no weight": (lambda X, y, w: (X, y, put(w, np.nan)), r"sample_weight\[7\]=nan"),
}


def put(array, value):
    array = array.copy()
    array[(7, 2) if array.ndim == 2 else 7] = value
    return array


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", BAD)
def test_what_no_fit_can_use_is_named_by_partition_and_row(name, sparse, data, rng):
    X, _ = data
    change, message = BAD[name]
    if sparse and name == "text":
        pytest.skip("no sparse text")
    y, weight = rng.integers(0, 2, size=103).astype(float), np.ones(103)
    second = change(X[40:], y[40:], weight[40:])
    first = X[:40], y[:40], weight[:40]
    if sparse:
        first, second = ((sp.csr_array(p[0]), *p[1:]) for p in (first, second))
    parts = Partitions([first, second])
    parts.lengths = (40, 63)
    with pytest.raises(ValueError, match=message):
        check_partitions(parts, "labels", 1e15)


def test_sparse_rows_are_named_whatever_their_format(data, rng):
    X, y = data
    X = np.where(rng.random(X.shape) < 0.4, X, 0.0)
    X[7, 2] = np.nan
    for kind in (sp.csr_array, sp.csc_array, sp.coo_array):
        parts = Partitions([(kind(X), y, None)])
        with pytest.raises(ValueError, match=r"partition 0: X\[7, 2\]=nan"):
            check_partitions(parts, "targets", 1e15)
        with pytest.raises(ValueError, match="needs dense ones"):
            check_partitions(parts, "targets", 1e15, sparse=False)


@pytest.mark.parametrize("limit", [1e15, 1e150])
@pytest.mark.parametrize(
    "dtype", ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"]
)
def test_numbers_of_any_type_are_within_limits_of_doubles(data, dtype, limit):
    X = (100.0 * data[0]).astype(np.int8).astype(dtype)
    whole = np.iinfo(dtype) if dtype[0] in "iu" else None
    if whole is not None:
        X[7, 2], X[8, 1] = whole.min, whole.max
    parts = Partitions([(X[:40], None, None), (X[40:], None, None)])
    beyond = whole is not None and whole.max > limit
    if beyond:
        with pytest.raises(ValueError, match="partition 0: X has entries beyond 1e"):
            check_partitions(parts, "none", limit)
    else:
        check_partitions(parts, "none", limit)


def test_weights_go_by_the_name_they_are_given(data):
    X, y = data
    for weight, message in (
        (put(np.ones(103), -1.0), r"weights\[7\]=-1"),
        (np.zeros(103), "weights is zero for every row"),
    ):
        parts = Partitions([(X, y, weight)])
        with pytest.raises(ValueError, match=message):
            check_partitions(parts, "targets", 1e15, weight_name="weights")


def test_a_block_of_other_rows_than_declared_is_named(data):
    X, _ = data

    def block(lo):
        return X[lo : lo + 50 - (lo == 50)]

    rows = da.concatenate(
        [da.from_delayed(dask.delayed(block)(lo), (50, 4), float) for lo in (0, 50)]
    )
    parts = partitions_of(rows, None, None, names=("y", "weight"))
    with pytest.raises(
        ValueError, match=r"partition 1: X has 49 rows.*declared with 5"
    ):
        check_partitions(parts, "none", 1e15)
    rows = rows.compute_chunk_sizes()
    parts = partitions_of(rows, None, None, names=("y", "weight"))
    assert check_partitions(parts, "none", 1e15).lengths == (50, 49)


# -- blocks without Dask ---------------------------------------------------------------
def test_row_blocks_are_partitions_of_an_array_or_file(data, tmp_path):
    X, y = data
    np.save(tmp_path / "X.npy", X)
    other = partitions_of(da.from_array(X, chunks=(40, 4)), y, names=("y",))
    for source in (X, tmp_path / "X.npy", str(tmp_path / "X.npy"), sp.csr_array(X)):
        rows = RowBlocks(source, 40)
        assert rows.chunks == ((40, 40, 23), (4,)) and rows.numblocks == (3, 1)
        assert is_partitioned(rows) and len(rows) == 103
        parts = partitions_of(rows, da.from_array(y, chunks=20), names=("y",))
        assert parts.lengths == other.lengths and parts.n_columns == 4
        found, want = parts.total(sum_of), other.total(sum_of)
        np.testing.assert_allclose(found[0], want[0], rtol=1e-12, atol=1e-12)
        assert type(found[0]) is np.ndarray
        lines = mapped(lambda block: block.sum(axis=1), rows, n_features=4)
        np.testing.assert_allclose(lines, X.sum(axis=1), atol=1e-12)
    moved = rows.rechunk({0: (3, 100)})
    assert moved.chunks == ((3, 100), (4,)) and rows.chunks[0][0] == 40
    assert RowBlocks(X).chunks[0] == (103,) and "blocks=3" in repr(rows)
    (tmp_path / "t.csv").write_text("1,2\n")
    with pytest.raises(ValueError, match=r"t\.csv is not a whole \.npy file"):
        RowBlocks(tmp_path / "t.csv")
    again = partitions_of(RowBlocks(X, 40), RowBlocks(y, 5), names=("y",))
    assert again.lengths == other.lengths


def test_row_blocks_are_one_array_where_all_rows_are_needed(data):
    rows = RowBlocks(data[0], 40)
    assert np.asarray(rows) is data[0] and np.array(rows, copy=True) is not data[0]
    assert np.asarray(rows, dtype=np.float32).dtype == np.float32
    with pytest.raises(TypeError, match="use compute"):
        np.asarray(RowBlocks(sp.csr_array(data[0])))
    found = [MEDOutlierDetector().fit(X).dual_coef_ for X in (rows, data[0])]
    np.testing.assert_array_equal(*found)


def sum_of(X, y):
    return np.asarray(X.sum(axis=0)), float(y.sum())


@pytest.mark.parametrize(
    "rows, block_rows, kind, message",
    [
        ([[1.0]], None, TypeError, "numpy.asarray"),
        (np.ones((2, 2, 2)), None, ValueError, r"shape \(2, 2, 2\)"),
        (np.ones((0, 2)), None, ValueError, "one row at least"),
        (np.ones((2, 2)), 0, ValueError, "block_rows=0"),
        (sp.csc_array(np.ones((2, 2))), None, ValueError, "tocsr"),
    ],
)
def test_what_cannot_be_cut_in_rows_is_refused(rows, block_rows, kind, message):
    with pytest.raises(kind, match=message):
        RowBlocks(rows, block_rows)


def test_other_lengths_must_add_up(data):
    with pytest.raises(ValueError, match="add up to 103"):
        RowBlocks(data[0]).rechunk({0: (3, 99)})


def test_other_collections_are_refused_by_name():
    bag = pytest.importorskip("dask.bag").from_sequence([1, 2])
    with pytest.raises(TypeError, match=r"type Bag .*Dask arrays"):
        partitions_of(bag)


def test_blocks_that_are_no_partitions_are_refused(data):
    X, y = data
    rows = da.from_array(X, chunks=(40, 4))
    unknown = rows[da.from_array(X[:, 0] > 0, chunks=40)]
    cases = [
        (unknown, y, "compute_chunk_sizes"),
        (da.from_array(X, chunks=(40, 2)), y, "2 blocks of columns"),
        (da.from_array(X, chunks=((0, 103), (4,))), y, "partition 0 of X has no rows"),
        (rows[:0], y[:0], "0 rows"),
        (rows, y[:-1], r"y has shape \(102,\)"),
        (rows[:, :, None], y, "3 dimensions"),
    ]
    for X, y, message in cases:
        with pytest.raises(ValueError, match=message):
            partitions_of(X, y, names=("y",))
