"""Checks of rows in partitions, what they have in all, and samples of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxent._partitions.partitions import Partitions, is_partitioned, partitions_of
from maxent._support import validation as v
from maxent._support.estimator_input import check_labels


def data_is_partitioned(X: Any, y: Any, sample_weight: Any) -> bool:
    """True if to fit by partitions; refuses targets in partitions of other rows."""
    if is_partitioned(X):
        return True
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if value is not None and is_partitioned(value):
            raise TypeError(
                f"{name} is a Dask array and X is not; make X one too, with "
                f"dask.array.from_array(X, chunks=...), or pass {name}.compute()."
            )
    return False


def labelled_partitions(X: Any, y: Any, sample_weight: Any) -> Partitions:
    """Partitions (X, y, sample_weight) of a fit that needs y."""
    if y is None:
        raise ValueError("y is None; the fit needs a target for each row.")
    names = "y", "sample_weight"
    return partitions_of(X, y, sample_weight, names=names, matrix=True)


def check_partitions(
    parts: Partitions,
    kind: str,
    limit: float,
    *,
    weight_name: str = "sample_weight",
    sparse: bool = True,
) -> list[Any]:
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
    list of Summary

    Raises
    ------
    ValueError
        For NaN or infinity, negative weights or none at all, and blocks of another
        width or number of rows than declared.
    """
    names = "X", "y", weight_name
    options = kind, parts.n_columns, limit, weight_name, sparse
    found = parts.map(_summary, *options)
    for i, (problem, sizes, _) in enumerate(found):
        for name, size in zip(names, sizes, strict=True):
            if size is not None and size != parts.lengths[i]:
                raise ValueError(
                    f"partition {i}: {name} has {size} rows, and its block was "
                    f"declared with {parts.lengths[i]}; give the true shape to "
                    f"from_delayed or map_blocks, or call {name}.compute_chunk_sizes()."
                )
        if problem is not None:
            raise ValueError(f"partition {i}: {problem}")
    summaries = [summary for _, _, summary in found]
    if not any(summary.n for summary in summaries):
        raise ValueError(f"{weight_name} is zero for every row; keep some rows.")
    parts.keep_shapes(finite=True)
    return summaries


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


def _summary(X, y, weight, kind, n_columns, limit, weight_name, sparse):
    """(what is wrong or None, rows of X, y and weight, Summary) of a partition."""
    sizes = tuple(None if a is None else a.shape[0] for a in (X, y, weight))
    if len({size for size in sizes if size is not None}) > 1:
        return None, sizes, None
    wrong = _wrong_rows(X, n_columns, limit, sparse)
    if wrong is None and weight is not None:
        wrong = _wrong_weights(weight_name, weight)
    if wrong is None and kind != "none":
        wrong = _wrong_labels(y) if kind == "labels" else _wrong_numbers("y", y)
    return wrong, sizes, None if wrong else Summary(X, y, weight, kind)


def _wrong_weights(name, weight):
    wrong = _wrong_numbers(name, weight)
    if wrong is None and (weight < 0).any():
        i = int(np.argmax(weight < 0))
        wrong = f"{name}[{i}]={weight[i]:g} is negative; weights are >= 0."
    return wrong


def _wrong_rows(X, n_columns, limit, sparse):
    if sp.issparse(X) and not sparse:
        return (
            "X is a sparse block, and this model needs dense ones: use "
            "X.map_blocks(lambda block: block.toarray())."
        )
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
        if v.largest_entry(entries) > limit:
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
    bad = ~np.isfinite(y) if y.dtype.kind == "f" else np.zeros(0, dtype=bool)
    if bad.any():
        i = int(np.argmax(bad))
        return f"Input y contains NaN or infinity: y[{i}]={y[i]}; drop such rows."
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
