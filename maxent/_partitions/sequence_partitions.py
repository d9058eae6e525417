"""Partitions of whole sequences: a Dask array of steps, and lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._partitions.partitions import Partitions, blocks_of_rows, check_blocks
from maxent._support import validation as v


def sequence_partitions(X: Any, lengths: ArrayLike | None, weights: Any) -> Partitions:
    """Partitions (steps, lengths, weights), cut where sequences end.

    Parameters
    ----------
    X : dask.array.Array (n_steps,) or (n_steps, d)
        All sequences one after the other. Blocks that end within a sequence are moved
        to its nearer end.
    lengths : array-like of int (n_sequences,)
    weights : array-like (n_sequences,) or None

    Returns
    -------
    Partitions

    Raises
    ------
    ValueError
        If the lengths do not add up to the steps, or weights are not >= 0.
    """
    check_blocks("sequences", X)
    if lengths is None:
        raise ValueError(
            "sequences is a Dask array of steps; pass lengths=, the number of steps of "
            f"every sequence, or lengths=[{X.shape[0]}] if it is one."
        )
    own = v.check_lengths(lengths, X.shape[0])
    w = np.ones(len(own)) if weights is None else v.as_doubles("weights", weights)
    if w.shape != own.shape or not (np.isfinite(w) & (w >= 0)).all() or not w.any():
        raise ValueError(
            f"weights={v.shown(w)} must be {len(own)} numbers >= 0, one for each "
            "sequence, and not all zero."
        )
    ends = np.cumsum(own)
    cut = _nearest(ends, np.cumsum(X.chunks[0]))
    X = X.rechunk({0: tuple(np.diff(np.r_[0, ends[cut]]).tolist())})
    first = np.r_[0, cut[:-1] + 1]
    columns = [
        (own[lo : hi + 1], w[lo : hi + 1]) for lo, hi in zip(first, cut, strict=True)
    ]
    return blocks_of_rows(X, columns)


def _nearest(ends: NDArray[np.intp], bounds: NDArray[np.intp]) -> NDArray[np.intp]:
    """Sequences whose ends are nearest to these bounds, each once, and the last."""
    at = np.minimum(np.searchsorted(ends, bounds), len(ends) - 1)
    before = np.maximum(at - 1, 0)
    at = np.where(bounds - ends[before] < ends[at] - bounds, before, at)
    return np.unique(np.r_[at, len(ends) - 1])
