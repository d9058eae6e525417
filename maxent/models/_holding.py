"""Parameters that stay in a fit as they are in its start.

Entries of a row of probabilities that are held keep their values, and the M step shares
what they leave by the counts of the others: the maximum under these constraints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent._support import validation as v
from maxent.models._chain_input import Array, with_pseudo_counts


def check_fixed(
    fixed: Any, holdable: Mapping[str, tuple[int, ...]] | None
) -> dict[str, NDArray[np.bool_]]:
    """Masks of parameters that stay, by their names."""
    if fixed is None:
        return {}
    if holdable is None:
        raise ValueError(
            f"fixed={v.shown(fixed)} keeps parameters of the start; give it by init=."
        )
    if isinstance(fixed, str):
        fixed = [fixed]
    given = fixed if isinstance(fixed, Mapping) else dict.fromkeys(fixed, True)
    masks = {}
    for name, mask in given.items():
        if name not in holdable:
            raise ValueError(
                f"fixed has {name!r}; what can stay is {', '.join(holdable)}."
            )
        array = np.asarray(mask)
        if array.dtype != bool or array.shape not in ((), holdable[name]):
            raise ValueError(
                f"fixed[{name!r}] must be True or a boolean array of shape "
                f"{holdable[name]}; it has shape {array.shape} and dtype {array.dtype}."
            )
        masks[name] = np.broadcast_to(array, holdable[name])
    return masks


def maximum_of_free(
    counts: Array, smoothing: Any, old: Array, held: NDArray[np.bool_] | None
) -> Array:
    """M step of a table of probabilities, of which entries may be held."""
    if held is None:
        return with_pseudo_counts(counts, smoothing, old)
    free = np.where(held, 0.0, old)
    left = np.where(held, 0.0, counts + smoothing * (old > 0))
    total, room = left.sum(-1, keepdims=True), free.sum(-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        new = np.where(total > 0, left * (room / total), free)
    return np.where(held, old, new)


def with_held_members(new: Any, old: Any, held: NDArray[np.bool_] | None) -> Any:
    """The batch (K,) of an M step, with members that are held."""
    if held is None or held.shape != new.batch_shape or not held.any():
        return new
    return new._replaced(held, old[np.flatnonzero(held)])
