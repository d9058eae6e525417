"""Rows cut into partitions: functions of each, added up in the order of the partitions.

The one mechanism of fits that outgrow the memory or the cores of a process. A method
writes a function of one partition that returns a tuple of numbers and arrays; what is
added, and in which order, depends on the partitions only, so results have the same bits
on one process and on any number of Dask workers.

Partitions are the blocks of a Dask array (dense or sparse), those of an array or file
of this process (`RowBlocks`), or lists of items.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxent._partitions.row_blocks import RowBlocks
from maxent._support import validation as v
from maxent._support.threads import single_threaded_blas, threads_of

_FAN_IN = 16  # results added at a time; a tree of sums keeps little in memory

Function = Callable[..., Any]


class Partitions:
    """Partitions of rows in the memory of this process, or mapped into it from files.

    Parameters
    ----------
    arrays : sequence of tuple
        Arguments of a function of each partition, before the shared ones; the first
        has the rows.
    lengths : sequence of int, optional
        Numbers of rows or items; those of the first arrays if None.

    Attributes
    ----------
    lengths : tuple of int
        Rows of each partition.
    n_columns : int
    """

    def __init__(
        self,
        arrays: Sequence[tuple[Any, ...]],
        lengths: Sequence[int] | None = None,
        n_columns: int = 0,
    ):
        self.arrays = [tuple(part) for part in arrays]
        if lengths is None:
            lengths = [part[0].shape[0] for part in arrays]
            n_columns = width(arrays[0][0])
        self.lengths, self.n_columns = tuple(lengths), n_columns
        self.places: list[Any] = [None] * len(self.arrays)

    def keep_shapes(self, finite: bool = False) -> None:
        """Refuse, from now on, partitions that are not real and of these sizes.

        And those with NaN or infinite entries, if `finite`. Rows in memory or in a file
        stay as they are.
        """

    def holding(self, states: Sequence[Any]) -> Partitions:
        """Partitions with these states of `update` in the place of the first array."""
        out, parts = copy(self), zip(states, self.arrays, strict=True)
        out.arrays = [(state, *own[1:]) for state, own in parts]
        out.places = [None] * len(self.arrays)
        return out

    def map(self, function: Function, *shared: Any) -> list[Any]:
        """Results of ``function(*arrays, *shared)`` for each partition, in order."""
        return list(self._computed(*self._each(function, shared)))

    def total(self, function: Function, *shared: Any) -> tuple[Any, ...]:
        """Sums over the partitions of the tuples that a function returns."""
        sums = self._tree_sum(self._each(function, shared))
        return cast(tuple[Any, ...], self._computed(sums)[0])

    def update(
        self, function: Function, states: Sequence[Any] | None, *shared: Any
    ) -> tuple[Sequence[Any], tuple[Any, ...]]:
        """New state of each partition, kept where the partition is, and sums.

        ``function(*arrays, state, *shared)`` returns (state, tuple); states are None
        at first.
        """
        states = [None] * len(self.arrays) if states is None else states
        pairs = list(self._each(function, shared, [(s,) for s in states], nout=2))
        sums = self._tree_sum(pair[1] for pair in pairs)
        *kept, sums = self._kept(*(pair[0] for pair in pairs), sums)
        return kept, self._computed(sums)[0]

    def _each(self, function, shared, states=None, **options):
        run, shared = self._later(_run, **options), [self._sent(s) for s in shared]
        states = [()] * len(self.arrays) if states is None else states
        for place, own, state in zip(self.places, self.arrays, states, strict=True):
            yield run(place, function, *own, *state, *shared)

    def _tree_sum(self, parts):
        """Sum in a tree whose shape depends on the number of parts only.

        In this process at most `_FAN_IN` of each level are held at a time.
        """
        add, levels = self._later(_add), []
        for part in parts:
            _push(part, levels, 0, add)
        for k in itertools.count():
            if k + 1 == len(levels) and len(levels[k]) == 1 and k > 0:
                return levels[k][0]
            if levels[k]:
                _push(add(*levels[k]), levels, k + 1, add)
                levels[k] = []

    # -- how functions are called ------------------------------------------------------
    @staticmethod
    def _later(function, **options):
        """The function, or one whose calls wait for `_computed`."""
        return function

    @staticmethod
    def _sent(value):
        """A shared argument, which goes to the partitions once."""
        return value

    @staticmethod
    def _computed(*results):
        """Results of calls, in this process."""
        return results

    _kept = _computed  # where the partitions are


def is_partitioned(X: Any) -> bool:
    """True if X comes in partitions: a Dask collection, or `RowBlocks`."""
    if isinstance(X, RowBlocks):
        return True
    return v.is_dask(X) and hasattr(X, "to_delayed")


def partitions_of(
    X: Any, *columns: Any, names: Sequence[str] = (), matrix: bool = False
) -> Partitions:
    """Partitions of a Dask array or RowBlocks, with arrays of one entry per row.

    Parameters
    ----------
    X : dask.array.Array or RowBlocks (n_samples, n_features)
        In blocks of rows.
    *columns : dask.array.Array or array-like (n_samples,), or None
        Cut like X; a function of a partition gets None for None.
    names : sequence of str
        Names of `columns`, for messages.
    matrix : bool, default=False
        Whether to refuse X of one dimension.

    Raises
    ------
    TypeError
        If X is another collection of Dask than an array.
    ValueError
        If the sizes of the blocks are unknown, the columns are cut, or lengths differ.
    """
    check_blocks("X", X)
    if matrix and X.ndim != 2:
        raise ValueError(
            f"X has shape {X.shape}; expected (n_samples, n_features): use "
            "X.reshape(-1, 1) if it is one feature."
        )
    cut = [_column(name, c, X) for name, c in zip(names, columns, strict=True)]
    own = [
        tuple(None if c is None else c[i] for c in cut) for i in range(len(X.chunks[0]))
    ]
    return blocks_of_rows(X, own)


def blocks_of_rows(X: Any, columns: Sequence[tuple[Any, ...]]) -> Partitions:
    """Partitions of the blocks of X, with arrays of this process or delayed ones."""
    if isinstance(X, RowBlocks):
        blocks = X.blocks()
        return Partitions([(b, *c) for b, c in zip(blocks, columns, strict=True)])
    delayed = X.to_delayed().reshape(-1)
    arrays = [(block, *own) for block, own in zip(delayed, columns, strict=True)]
    return _DaskPartitions(arrays, X.chunks[0], width(X))


def item_partitions(items: Any) -> Partitions:
    """Partitions (list of items, number of the partition) of a Dask bag or a list."""
    if isinstance(items, list):
        return Partitions([(items, 0)], [len(items)])
    delayed = items.to_delayed()
    return _DaskPartitions([(part, i) for i, part in enumerate(delayed)], ())


def width(X):
    """Number of columns; numbers are one."""
    return X.shape[1] if X.ndim == 2 else 1


def check_blocks(name: str, X: Any) -> None:
    """Refuse collections whose blocks are no whole rows of known number."""
    if not hasattr(X, "chunks"):
        kind = type(X).__module__.split(".")[1]
        raise TypeError(
            f"{name} is a Dask collection of type {type(X).__name__} ({kind}); fits "
            "and predictions by partitions take Dask arrays: use "
            f"{name}.to_dask_array(lengths=True) of a data frame, or "
            "dask.array.from_delayed for each partition."
        )
    if X.ndim not in (1, 2):
        raise ValueError(
            f"{name} comes in blocks and has {X.ndim} dimensions; expected "
            "(n_samples, n_features)."
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
    if column is None:
        return None
    if isinstance(column, RowBlocks):
        column = column.compute()
    local = not is_partitioned(column)
    if local:
        column = v.as_array(name, column)
    else:
        check_blocks(name, column)
    if column.ndim != 1 or column.shape[0] != X.shape[0]:
        raise ValueError(
            f"{name} has shape {column.shape}; X has {X.shape[0]} rows, so expected "
            f"({X.shape[0]},)."
        )
    if isinstance(X, RowBlocks):
        column = column if local else column.compute()
        return np.split(column, np.cumsum(X.chunks[0])[:-1])
    import dask.array as da

    if local:
        column = da.from_array(column, chunks=-1)
    column = column.rechunk((X.chunks[0],))
    if local:  # sent to the workers once, not with every pass
        with _cluster_errors():
            column = column.persist()
    # optimised graphs lose the futures of what is persisted, and the cluster forgets it
    return column.to_delayed(optimize_graph=not local)


class _DaskPartitions(Partitions):
    """Blocks of Dask arrays; what workers compute is added up by workers."""

    def keep_shapes(self, finite: bool = False) -> None:
        """Blocks are computed anew in every pass, and may come out otherwise."""
        sizes = enumerate(self.lengths)
        self.places = [(i, rows, self.n_columns, finite) for i, rows in sizes]

    @staticmethod
    def _later(function, **options):
        from dask import delayed

        return delayed(function, pure=False, **options)

    @staticmethod
    def _sent(value):
        from dask import delayed

        return delayed(value, traverse=False)

    @staticmethod
    def _computed(*results):
        import dask

        with _cluster_errors():
            return dask.compute(*results)

    @staticmethod
    def _kept(*results):
        import dask

        with _cluster_errors():
            return dask.persist(*results)


def _run(place, function, *args):
    """A function of a partition on one thread, BLAS too: the same bits everywhere.

    Of a partition that keeps its shape `place` has the number, rows and columns, and
    whether its entries have to be finite.
    """
    with threads_of(1), single_threaded_blas():
        if place is None:
            return function(*map(_aligned, args))
        try:
            _refuse_other_block(args[0], *place[1:])
            return function(*map(_aligned, args))
        except ValueError as error:
            error.args = (f"partition {place[0]}: {error}",)
            raise


def _refuse_other_block(X, rows, columns, finite):
    """Refuse a block that is complex, or of another shape than before, or no numbers.

    A sum is quicker than a look at every entry, and overflows at worst.
    """
    if X.ndim > 2 or (X.shape[0], width(X)) != (rows, columns) or X.dtype.kind == "c":
        raise ValueError(
            f"the block has shape {X.shape} and dtype {X.dtype}, but {rows} rows of "
            f"{columns} real numbers were declared, or there before: give the true "
            "shape, and blocks that are the same in every pass, as by persist()."
        )
    if finite:
        entries = X.data if sp.issparse(X) else X
        with np.errstate(over="ignore", invalid="ignore"):
            fine = np.isfinite(entries.sum(dtype=np.float64))
        if not fine:
            v.check_entries(
                "X", X, "it was finite before: make every pass compute the same"
            )


def _aligned(value):
    """An array at an address of whole numbers, as those sent by wire may not be.

    Products of others are computed by other loops, and rounded otherwise. Sparse
    blocks of any format become CSR.
    """
    if sp.issparse(value) and value.format != "csr":
        value = value.tocsr()
    if isinstance(value, np.ndarray) and not value.flags.aligned:
        return np.require(value, requirements="A")
    if sp.issparse(value) and not value.data.flags.aligned:
        return value.copy()
    return value


def _push(part, levels, k, add):
    """Add a part to a level of a tree of sums; a full level is a part of the next."""
    if k == len(levels):
        levels.append([])
    levels[k].append(part)
    if len(levels[k]) == _FAN_IN:
        whole, levels[k] = add(*levels[k]), []
        _push(whole, levels, k + 1, add)


def _add(*tuples):
    """Entry by entry, from left to right."""
    total = list(tuples[0])
    for other in tuples[1:]:
        for k, value in enumerate(other):
            total[k] = None if value is None else total[k] + value
    return tuple(total)


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


def _of_block(function, i, block):
    try:
        return function(block)
    except ValueError as error:
        error.args = (f"partition {i}: {error}",)
        raise


def mapped(
    function: Callable[[Any], NDArray[Any]],
    X: Any,
    columns: int | None = None,
    dtype: Any = np.float64,
    *,
    n_features: int | None = None,
) -> Any:
    """Apply a function of rows to each block: a Dask array for a Dask array.

    Parameters
    ----------
    function : callable(block)
        Returns (n,), or (n, columns).
    X : dask.array.Array or RowBlocks (n, d)
    columns : int, optional
    dtype : dtype
    n_features : int, optional
        Columns that X must have.

    Returns
    -------
    dask.array.Array, or ndarray for RowBlocks
    """
    check_blocks("X", X)
    if n_features is not None and (X.ndim != 2 or X.shape[1] != n_features):
        raise ValueError(
            f"X has {width(X)} features (shape {X.shape}), but the estimator was "
            f"fitted to {n_features}; give the columns of the training rows."
        )
    if isinstance(X, RowBlocks):
        return np.concatenate(
            [_of_block(function, i, block) for i, block in enumerate(X.blocks())]
        )
    chunks = (X.chunks[0],) if columns is None else (X.chunks[0], (columns,))
    return X.map_blocks(
        function,
        dtype=dtype,
        chunks=chunks,
        drop_axis=1 if columns is None else None,
        meta=np.empty((0,) * len(chunks), dtype=dtype),
    )
