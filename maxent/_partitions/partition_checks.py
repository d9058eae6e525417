"""Checks of rows in partitions, what they have in all, and samples of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxent._inputs.estimator_input import check_labels
from maxent._partitions.partitions import (
    Partitions,
    is_partitioned,
    partitions_of,
    width,
)
from maxent._support import validation as v


def data_is_partitioned(X: Any, y: Any, sample_weight: Any) -> bool:
    """True if to fit by partitions; refuses targets in partitions of other rows."""
    if is_partitioned(X):
        return True
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if value is not None and is_partitioned(value):
            raise TypeError(
                f"{name} is a Dask array and X is not; make X one too, with "
                f"dask.array.from_array(X, chunks=...), or pass {name}.compute(). "
                "(Steps of a pipeline gather X: scale it by Dask before.)"
            )
    return False


def read_partitions(
    X: Any,
    y: Any,
    weight: Any,
    kind: str,
    limit: float,
    *,
    matrix: bool = True,
    weight_name: str = "sample_weight",
    sparse: bool = True,
) -> tuple[Partitions, Summary]:
    """Partitions (X, y, weight) of a fit, checked, and what they have in all.

    Options are those of `partitions_of` and `check_partitions`.
    """
    if y is None and kind != "none":
        raise ValueError("y is None; the fit needs a target for each row.")
    parts = partitions_of(X, y, weight, names=("y", weight_name), matrix=matrix)
    options: dict[str, Any] = {"weight_name": weight_name, "sparse": sparse}
    return parts, check_partitions(parts, kind, limit, **options)


def results_of(parts: Partitions, function: Any, *shared: Any) -> list[Any]:
    """Results of a function that refuses partitions it cannot use, by their number.

    The first of its errors in the order of the partitions is raised.
    """
    results = parts.map(partial(attempt, function), *shared)
    for i, (wrong, _) in enumerate(results):
        if wrong is not None:
            raise ValueError(f"partition {i}: {wrong}")
    return [result for _, result in results]


def attempt(function: Any, *args: Any) -> tuple[str | None, Any]:
    """(message of a refusal or None, result) of a function."""
    try:
        return None, function(*args)
    except (TypeError, ValueError) as error:
        return str(error), None


def check_partitions(
    parts: Partitions,
    kind: str,
    limit: float,
    *,
    weight_name: str = "sample_weight",
    sparse: bool = True,
) -> Summary:
    """Look at every row once: refuse what no fit can use, by partition and row.

    Parameters
    ----------
    parts : Partitions
        Of (X, y, sample_weight).
    kind : {"labels", "targets", "none"}
        What y holds.
    limit : float
        Bound on the entries of X.
    weight_name : str
        Name of the weights, for messages.
    sparse : bool, default=True
        Whether sparse blocks are taken.

    Returns
    -------
    Summary

    Raises
    ------
    ValueError
        For NaN or infinity, negative weights or none at all, and blocks of another
        width or number of rows than declared.
    """
    options = kind, parts.n_columns, limit, weight_name, sparse
    results = results_of(parts, _sizes_and_sums, *options)
    for i, (sizes, _) in enumerate(results):
        for name, size in zip(("X", "y", weight_name), sizes, strict=True):
            if size is not None and size != parts.lengths[i]:
                raise ValueError(
                    f"partition {i}: {name} has {size} rows, and its block was "
                    f"declared with {parts.lengths[i]}; give the true shape to "
                    f"from_delayed or map_blocks, or call {name}.compute_chunk_sizes()."
                )
    summary = Summary(*zip(*(sums for _, sums in results), strict=True))
    if not summary.n:
        raise ValueError(f"{weight_name} is zero for every row; keep some rows.")
    parts.keep_shapes(finite=True)
    return summary


class Summary:
    """Totals over the rows of positive weight of all partitions.

    Attributes
    ----------
    lengths : tuple of int
        Rows of each partition.
    n : int
    total : float
        Sum of the weights.
    squares : float
        Sum of the squared entries of X, rows without weight too.
    classes : ndarray
        Distinct labels, in order; none for targets.
    class_weight : ndarray
        Their total weights.
    """

    def __init__(self, lengths, totals, squares, labels, weights):
        self.lengths, self.n = lengths, sum(lengths)
        self.total, self.squares = sum(totals), sum(squares)
        self.classes, codes = np.unique(np.concatenate(labels), return_inverse=True)
        weights = np.concatenate(weights)
        self.class_weight = np.bincount(codes, weights, len(self.classes))


def rows_of_weight(X: Any, y: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Rows of positive weight (X, y or None) of a partition, and weights as doubles."""
    if weight is None:
        return X, y, np.ones(X.shape[0])
    keep = weight > 0
    if not keep.all():
        X, y, weight = X[keep], None if y is None else y[keep], weight[keep]
    return X, y, np.asarray(weight, dtype=np.float64)


def _sizes_and_sums(X, y, weight, kind, n_columns, limit, weight_name, sparse):
    """Rows of X, y and weight of a partition, and what `Summary` takes of it."""
    sizes = tuple(None if a is None else a.shape[0] for a in (X, y, weight))
    if len({size for size in sizes if size is not None}) > 1:
        return sizes, None
    _refuse_rows(X, n_columns, limit, sparse)
    if weight is not None:
        _refuse_numbers(weight_name, weight)
        if (weight < 0).any():
            i = int(np.argmax(weight < 0))
            raise ValueError(
                f"{weight_name}[{i}]={weight[i]:g} is negative; weights are >= 0."
            )
    if kind == "labels":
        _refuse_labels(y)
    elif kind == "targets":
        _refuse_numbers("y", y)
    entries = X.data if sp.issparse(X) else X
    own = np.ones(X.shape[0]) if weight is None else weight
    used = own > 0
    labels = y[used] if kind == "labels" else own[:0]
    labels, codes = np.unique(labels, return_inverse=True)
    class_weight = np.bincount(codes, own[used][: len(codes)], len(labels))
    squares = float(np.vdot(entries, entries))
    return sizes, (int(used.sum()), float(own.sum()), squares, labels, class_weight)


def _refuse_rows(X, n_columns, limit, sparse):
    if sp.issparse(X) and not sparse:
        raise ValueError(
            "X is a sparse block, and this model needs dense ones: use "
            "X.map_blocks(lambda block: block.toarray())."
        )
    if X.ndim > 2 or width(X) != n_columns:
        raise ValueError(
            f"X has shape {X.shape}, and {n_columns} columns elsewhere; give every "
            "block of rows the same columns."
        )
    entries = X.data if sp.issparse(X) else X
    if entries.dtype.kind not in "fiub":
        raise ValueError(
            f"X has dtype {entries.dtype}; make it numbers with X.astype(float)."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        fine = np.isfinite(entries.sum(dtype=np.float64))
    bad = None if fine else ~np.isfinite(entries)
    if bad is None or not bad.any():
        if v.largest_entry(entries) > limit:
            raise ValueError(f"X has entries beyond {limit:g}; scale X.")
        return
    k = int(np.flatnonzero(bad.reshape(-1))[0])
    if sp.issparse(X):
        row = int(np.searchsorted(X.indptr, k, side="right")) - 1
        column, value = int(X.indices[k]), X.data[k]
    else:
        row, column = divmod(k, n_columns)
        value = entries.reshape(-1)[k]
    at = f"{row}, {column}" if X.ndim == 2 else f"{row}"
    raise ValueError(f"X[{at}]={value} in row {row} of it; impute or remove it.")


def _refuse_numbers(name, values):
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{name} has dtype {values.dtype}; numbers are needed.")
    bad = ~np.isfinite(values)
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(f"{name}[{i}]={values[i]}; leave such rows out.")


def _refuse_labels(y):
    bad = ~np.isfinite(y) if y.dtype.kind == "f" else np.zeros(0, dtype=bool)
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(
            f"Input y contains NaN or infinity: y[{i}]={y[i]}; drop such rows."
        )
    check_labels(y)


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
    X, y, weight = rows_of_weight(X, y, weight)
    pick = drawn_places(X.shape[0], share, n)
    y = None if y is None else y[pick]
    return X[pick], y, weight[pick] * (X.shape[0] / max(len(pick), 1))


def drawn_places(n: int, share: float, seed: int) -> NDArray[np.intp]:
    """Places, in order, of a share of n items, one at least of several."""
    count = min(n, int(np.ceil(share * n)))
    return np.sort(np.random.default_rng(seed).permutation(n)[:count])
