"""Coordinates of natural parameters that determine all others.

A coordinate that is kept may stand for several equal ones, whose number is its factor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Kept = tuple[NDArray[np.bool_], NDArray[np.float64]]


def all_kept(shape: tuple[int, ...]) -> Kept:
    """(mask, factors) of coordinates without a redundant one."""
    return np.ones(shape, dtype=bool), np.ones(shape)


def of_logits(table: NDArray[Any]) -> Kept:
    """Logits of probabilities (..., k): without zeros and each row's last entry."""
    used = table > 0
    last = table.shape[-1] - 1 - np.argmax(used[..., ::-1], axis=-1)
    used &= np.arange(table.shape[-1]) != last[..., None]
    return used, np.ones(table.shape)


def of_symmetric(shape: tuple[int, ...], first: int = 0) -> Kept:
    """Coordinates (..., first + p p): the lower half of a matrix that ends them."""
    p = round((shape[-1] - first) ** 0.5)
    lower = np.tri(p, dtype=bool)
    kept = np.concatenate([np.ones(first, dtype=bool), lower.ravel()])
    factor = np.concatenate([np.ones(first), (2.0 - np.eye(p)).ravel()])
    return np.broadcast_to(kept, shape), np.broadcast_to(factor, shape)


def joined(parts: list[Kept]) -> Kept:
    """Coordinates of parts, one after the other along the last axis."""
    masks, factors = zip(*parts, strict=True)
    return np.concatenate(masks, axis=-1), np.concatenate(factors, axis=-1)
