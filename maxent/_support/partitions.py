"""Rows cut into partitions: functions of each, added up in the order of the partitions.

The one mechanism of fits that outgrow the memory or the cores of a process. A method
writes a function of one partition that returns a tuple of numbers and arrays; what is
added, and in which order, depends on the partitions only, so results have the same bits
on one process and on any number of Dask workers.

Partitions are the blocks of a Dask array (dense or CSR), or arrays of this process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxent._support import validation as v
from maxent._support.estimator_input import check_labels
from maxent._support.threads import single_threaded_blas

_FAN_IN = 16  # results added at a time; a tree of sums keeps little in memory

Function = Callable[..., Any]


class Partitions(Protocol):
    """Partitions of rows.

    Attributes
    ----------
    lengths : tuple of int
        Rows of each partition.
    n_columns : int
    """

    lengths: tuple[int, ...]
    n_columns: int

    def map(self, function: Function, *shared: Any) -> list[Any]:
        """Results of ``function(*arrays, *shared)`` for each partition, in order."""

    def total(self, function: Function, *shared: Any) -> tuple[Any, ...]:
        """Sums over the partitions of the tuples that a function returns."""

    def update(
        self, function: Function, states: Sequence[Any] | None, *shared: Any
    ) -> tuple[Sequence[Any], tuple[Any, ...]]:
        """New state of each partition, kept where the partition is, and sums.

        ``function(*arrays, state, *shared)`` returns (state, tuple); states are None
        at first.
        """


def is_partitioned(X: Any) -> bool:
    """Whether X is a Dask array, whose blocks are partitions."""
    return type(X).__module__.partition(".")[0] == "dask" and hasattr(X, "to_delayed")


def partitions_of(X: Any, *columns: Any, names: Sequence[str] = ()) -> Partitions:
    """Partitions of a Dask array with further arrays of one entry per row.

    Parameters
    ----------
    X : dask.array.Array (n_samples, n_features)
        In blocks of rows.
    *columns : dask.array.Array or array-like (n_samples,), or None
        Cut like X; a function of a partition gets None for None.
    names : sequence of str
        Names of `columns`, for messages.

    Raises
    ------
    ValueError
        If the sizes of the blocks are unknown, the columns are cut, or lengths differ.
    """
    check_blocks("X", X)
    rows = X.chunks[0]
    cut = [_column(name, c, X) for name, c in zip(names, columns, strict=True)]
    blocks = X.to_delayed()
    parts = [blocks.reshape(-1), *cut]
    arrays = [
        tuple(None if p is None else p[i] for p in parts) for i in range(len(rows))
    ]
    return _DaskPartitions(arrays, rows, X.shape[1] if X.ndim == 2 else 1)


def blocks_of_rows(X: Any, columns: Sequence[tuple[Any, ...]]) -> Partitions:
    """Partitions of a Dask array with arrays of this process for each of its blocks."""
    blocks = X.to_delayed().reshape(-1)
    arrays = [(block, *own) for block, own in zip(blocks, columns, strict=True)]
    return _DaskPartitions(arrays, X.chunks[0], X.shape[1] if X.ndim == 2 else 1)


def check_blocks(name: str, X: Any) -> None:
    """Refuse Dask arrays whose blocks are no whole rows of known number."""
    if X.ndim not in (1, 2):
        raise ValueError(
            f"{name} is a Dask array of {X.ndim} dimensions; expected (n_samples, "
            "n_features)."
        )
    if any(np.isnan(size) for dimension in X.chunks for size in dimension):
        raise ValueError(
            f"{name} is a Dask array whose blocks have unknown sizes; call "
            f"{name}.compute_chunk_sizes() first."
        )
    if X.ndim == 2 and X.numblocks[1] > 1:
        raise ValueError(
            f"{name} is cut into {X.numblocks[1]} blocks of columns; partitions are "
            f"blocks of whole rows: use {name}.rechunk({{1: -1}})."
        )
    if not X.shape[0]:
        raise ValueError(f"{name} has 0 rows; at least one is needed.")
    if 0 in X.chunks[0]:
        i = X.chunks[0].index(0)
        raise ValueError(
            f"partition {i} of {name} has no rows; leave it out, or use "
            f"{name}.rechunk()."
        )


def _column(name, column, X):
    """Blocks of a column cut like X."""
    import dask.array as da

    if column is None:
        return None
    local = not is_partitioned(column)
    if not local:
        check_blocks(name, column)
    else:
        column = da.from_array(v.as_array(name, column), chunks=-1)
    if column.ndim != 1 or column.shape[0] != X.shape[0]:
        raise ValueError(
            f"{name} has shape {column.shape}; X has {X.shape[0]} rows, so expected "
            f"({X.shape[0]},)."
        )
    column = column.rechunk((X.chunks[0],))
    if local:  # sent to the workers once, not with every pass
        with _cluster_errors():
            column = column.persist()
    return column.to_delayed()


class LocalPartitions:
    """Partitions in the memory of this process, or mapped into it from files.

    Parameters
    ----------
    arrays : sequence of tuple
        What a function of a partition gets before the shared arguments; the first
        entry has the rows.
    """

    def __init__(self, arrays: Sequence[tuple[Any, ...]]):
        self.arrays = [tuple(part) for part in arrays]
        self.lengths = tuple(part[0].shape[0] for part in self.arrays)
        first = self.arrays[0][0]
        self.n_columns = first.shape[1] if first.ndim == 2 else 1

    def map(self, function: Function, *shared: Any) -> list[Any]:
        return [_run(function, *arrays, *shared) for arrays in self.arrays]

    def total(self, function: Function, *shared: Any) -> tuple[Any, ...]:
        return _tree_sum(self.map(function, *shared), _add)

    def update(
        self, function: Function, states: Sequence[Any] | None, *shared: Any
    ) -> tuple[Sequence[Any], tuple[Any, ...]]:
        states = [None] * len(self.arrays) if states is None else states
        found = [
            _run(function, *arrays, state, *shared)
            for arrays, state in zip(self.arrays, states, strict=True)
        ]
        return [f[0] for f in found], _tree_sum([f[1] for f in found], _add)


class _DaskPartitions:
    """Blocks of Dask arrays; what workers compute is added up by workers."""

    def __init__(self, arrays, lengths, n_columns):
        self.arrays, self.lengths, self.n_columns = arrays, tuple(lengths), n_columns

    def _each(self, function, states, shared, **options):
        from dask import delayed

        run = delayed(_run, pure=False, **options)
        shared = [delayed(s, traverse=False) for s in shared]
        if states is None:
            return [run(function, *arrays, *shared) for arrays in self.arrays]
        return [
            run(function, *arrays, state, *shared)
            for arrays, state in zip(self.arrays, states, strict=True)
        ]

    def map(self, function: Function, *shared: Any) -> list[Any]:
        return list(_computed(*self._each(function, None, shared)))

    def total(self, function: Function, *shared: Any) -> tuple[Any, ...]:
        from dask import delayed

        parts = self._each(function, None, shared)
        (found,) = _computed(_tree_sum(parts, delayed(_add, pure=False)))
        return cast(tuple[Any, ...], found)

    def update(
        self, function: Function, states: Sequence[Any] | None, *shared: Any
    ) -> tuple[Sequence[Any], tuple[Any, ...]]:
        import dask
        from dask import delayed

        states = [None] * len(self.arrays) if states is None else states
        pairs = self._each(function, states, shared, nout=2)
        total = _tree_sum([pair[1] for pair in pairs], delayed(_add, pure=False))
        with _cluster_errors():
            *kept, total = dask.persist(*(pair[0] for pair in pairs), total)
        (found,) = _computed(total)
        return kept, cast(tuple[Any, ...], found)


def _run(function, *args):
    """A function of a partition, with BLAS on one thread: the same bits everywhere."""
    with single_threaded_blas():
        return function(*map(_aligned, args))


def _aligned(value):
    """An array at an address of whole numbers, as those sent by wire may not be.

    Products of others are computed by other loops, and rounded otherwise.
    """
    if isinstance(value, np.ndarray) and not value.flags.aligned:
        return np.require(value, requirements="A")
    if sp.issparse(value) and not value.data.flags.aligned:
        return value.copy()
    return value


def _tree_sum(parts, add):
    """Sum in a tree whose shape depends on the number of parts only."""
    while True:
        parts = [add(*parts[lo : lo + _FAN_IN]) for lo in range(0, len(parts), _FAN_IN)]
        if len(parts) == 1:
            return parts[0]


def _add(*tuples):
    """Entry by entry, from left to right."""
    total = list(tuples[0])
    for other in tuples[1:]:
        for k, value in enumerate(other):
            total[k] = None if value is None else total[k] + value
    return tuple(total)


def _computed(*delayed):
    import dask

    with _cluster_errors():
        return dask.compute(*delayed)


class _cluster_errors:
    """Context that turns the errors of a cluster that fails into one sentence."""

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is None or isinstance(error, KeyboardInterrupt):
            return
        home = type(error).__module__.partition(".")[0]
        if type(error).__name__ == "KilledWorker":
            raise RuntimeError(
                "the workers that computed one partition ended again and again, most "
                "likely for want of memory: use smaller blocks (X.rechunk) or workers "
                f"with more memory. Nothing was fitted. ({error})"
            ) from error
        if home in ("distributed", "tornado", "concurrent", "asyncio"):
            raise ConnectionError(
                "the Dask cluster went away during the computation "
                f"({type(error).__name__}); nothing was fitted. Start a cluster and "
                "fit again."
            ) from error


def mapped(
    function: Callable[[Any], NDArray[Any]],
    X: Any,
    columns: int | None = None,
    dtype: Any = np.float64,
) -> Any:
    """Dask array of what a function of rows returns for each block.

    Parameters
    ----------
    function : callable(block)
        Returns (n,), or (n, columns).
    X : dask.array.Array (n, d)
    columns : int, optional
    dtype : dtype
    """
    check_blocks("X", X)
    chunks = (X.chunks[0],) if columns is None else (X.chunks[0], (columns,))
    return X.map_blocks(
        function,
        dtype=dtype,
        chunks=chunks,
        drop_axis=1 if columns is None else None,
        meta=np.empty((0,) * len(chunks), dtype=dtype),
    )


# -- checks ----------------------------------------------------------------------------
def check_partitions(parts: Partitions, kind: str, limit: float = np.inf) -> list[Any]:
    """Look at every row once: refuse what no fit can use, by partition and row.

    Parameters
    ----------
    parts : Partitions
        Of (X, y, sample_weight).
    kind : {"labels", "targets", "none"}
        What y holds.
    limit : float
        Bound on the entries of X.

    Returns
    -------
    list of Summary

    Raises
    ------
    ValueError
        For NaN or infinity, negative weights, and blocks of another width.
    """
    found = parts.map(_summary, kind, parts.n_columns, limit)
    for i, (problem, _) in enumerate(found):
        if problem is not None:
            raise ValueError(f"partition {i}: {problem}")
    return [summary for _, summary in found]


class Summary:
    """What a partition has: rows of weight, its labels, sums.

    Attributes
    ----------
    n : int
        Rows of positive weight.
    labels : ndarray
        Distinct labels among them; None for targets.
    label_weight : ndarray
        Their total weights.
    squares : float
        Sum of the squared entries of these rows.
    total : float
        Sum of the weights.
    """

    def __init__(self, X, y, weight, kind):
        weight = np.ones(X.shape[0]) if weight is None else weight
        keep = weight > 0
        self.n, self.total = int(keep.sum()), float(weight.sum())
        entries = X.data if sp.issparse(X) else X
        self.squares = float(np.vdot(entries, entries))
        self.labels = self.label_weight = None
        if kind == "labels":
            self.labels, codes = np.unique(y[keep], return_inverse=True)
            self.label_weight = np.bincount(codes, weight[keep], len(self.labels))


def _summary(X, y, weight, kind, n_columns, limit):
    """(what is wrong or None, Summary or None) of a partition."""
    wrong = _wrong_rows(X, n_columns, limit)
    if wrong is None and weight is not None:
        wrong = _wrong_numbers("sample_weight", weight)
        if wrong is None and (weight < 0).any():
            i = int(np.argmax(weight < 0))
            wrong = f"sample_weight[{i}]={weight[i]:g} is negative; weights are >= 0."
    if wrong is None and kind != "none":
        wrong = _wrong_labels(y) if kind == "labels" else _wrong_numbers("y", y)
    return wrong, None if wrong else Summary(X, y, weight, kind)


def _wrong_rows(X, n_columns, limit):
    if X.ndim > 2 or (X.shape[1] if X.ndim == 2 else 1) != n_columns:
        return (
            f"X has shape {X.shape}, and {n_columns} columns elsewhere; give every "
            "block of rows the same columns."
        )
    entries = X.data if sp.issparse(X) else X
    if entries.dtype.kind not in "fiub":
        return f"X has dtype {entries.dtype}; make it numbers with X.astype(float)."
    with np.errstate(over="ignore", invalid="ignore"):
        fine = np.isfinite(entries.sum(dtype=np.float64))
    bad = None if fine else ~np.isfinite(entries)
    if bad is None or not bad.any():
        if max(entries.max(initial=0), -entries.min(initial=0)) > limit:
            return f"X has entries beyond {limit:g}; scale X."
        return None
    k = int(np.flatnonzero(bad.reshape(-1))[0])
    if sp.issparse(X):
        row = int(np.searchsorted(X.indptr, k, side="right")) - 1
        column, value = int(X.indices[k]), X.data[k]
    else:
        row, column = divmod(k, n_columns)
        value = entries.reshape(-1)[k]
    at = f"{row}, {column}" if X.ndim == 2 else f"{row}"
    return f"X[{at}]={value} in row {row} of it; impute or remove it."


def _wrong_numbers(name, values):
    if values.dtype.kind not in "fiub":
        return f"{name} has dtype {values.dtype}; numbers are needed."
    bad = ~np.isfinite(values)
    if bad.any():
        i = int(np.argmax(bad))
        return f"{name}[{i}]={values[i]}; leave such rows out."
    return None


def _wrong_labels(y):
    try:
        check_labels(y)
    except ValueError as error:
        return str(error)
    return None


def sample_of(parts: Partitions, lengths: Sequence[int], size: int) -> tuple[Any, ...]:
    """About `size` rows (X, y or None, weight), weighted to stand for all.

    Every partition gives a share of its rows, drawn with a seed of its own length.
    """
    share = min(1.0, size / max(sum(lengths), 1))
    drawn = [s for s in parts.map(_drawn, share) if s[0].shape[0]]
    X, y, weight = zip(*drawn, strict=True)
    stack = sp.vstack if sp.issparse(X[0]) else np.concatenate
    targets = None if y[0] is None else np.concatenate(y)
    return stack(X), targets, np.concatenate(weight)


def _drawn(X, y, weight, share):
    n = X.shape[0]
    rows = np.arange(n)
    if weight is not None:
        rows = rows[weight > 0]
    count = min(len(rows), int(np.ceil(share * len(rows))))
    pick = np.sort(np.random.default_rng(n).permutation(rows)[:count])
    own = np.ones(count) if weight is None else weight[pick].astype(float)
    y = None if y is None else y[pick]
    return X[pick], y, own * (len(rows) / max(count, 1))
