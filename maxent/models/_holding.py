"""Parameters that stay in a fit as they are in its start.

Entries of a row of probabilities that are held keep their values, and the M step shares
what they leave by the counts of the others: the maximum under these constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent._support import validation as v
from maxent.models._chain_input import Array, with_pseudo_counts

Mask = NDArray[np.bool_]
Shape = tuple[int, ...]
_SAME = 1e-9  # singular value, relative to the largest, that is rounding


def check_fixed(
    fixed: Any,
    holdable: Mapping[str, Shape | list[Shape]] | None,
    variances: Collection[str] = (),
) -> dict[str, Any]:
    """Masks of parameters that stay, by their names.

    Parameters
    ----------
    fixed : None, str, iterable of str, or mapping
        Names, or masks by names.
    holdable : mapping {str: shape} or None
        What can stay. A list of shapes is a parameter with one array for each chain;
        its mask is a tuple of arrays. None where there is no start.
    variances : collection of str
        Matrices (n, n) whose masks may be of their diagonal, (n,).
    """
    if fixed is None:
        return {}
    if isinstance(fixed, str):
        fixed = [fixed]
    if not isinstance(fixed, Iterable):
        raise TypeError(
            f"fixed={v.shown(fixed)} must be a name, a list of names, or a dict of "
            "boolean masks by name."
        )
    given = fixed if isinstance(fixed, Mapping) else dict.fromkeys(fixed, True)
    if given and holdable is None:
        raise ValueError(
            f"fixed={v.shown(list(given))} keeps parameters of the start; give it by "
            "init=."
        )
    masks: dict[str, Any] = {}
    for name, mask in given.items():
        if holdable is None or name not in holdable:
            names = ", ".join(map(str, holdable or ()))
            raise ValueError(f"fixed has {name!r}; what can stay is {names}.")
        shape = holdable[name]
        if isinstance(shape, list):
            masks[name] = _masks_of_each(name, mask, shape)
            continue
        if name in variances and np.shape(mask) == shape[:1]:
            mask = np.diag(checked_mask(f"[{name!r}]", mask, shape[:1]))
        masks[name] = checked_mask(f"[{name!r}]", mask, shape)
    return {name: mask for name, mask in masks.items() if _some(mask)}


def held_of(fixed: Any, init: Any, variances: Collection[str] = ()) -> dict[str, Any]:
    """Masks of the parameters of a start that stay; `check_fixed` has the arguments."""
    holdable = None if init is None else init._holdable()
    return check_fixed(fixed, holdable, variances)


def _some(mask: Any) -> bool:
    """True if a mask, or one of several, holds an entry."""
    return any(map(np.any, mask)) if isinstance(mask, tuple) else bool(mask.any())


def _masks_of_each(name: str, mask: Any, shapes: list[Shape]) -> tuple[Mask, ...]:
    """Masks of the arrays of a parameter that has one for each chain."""
    each = [mask] * len(shapes) if isinstance(mask, (bool, np.bool_)) else list(mask)
    if len(each) != len(shapes):
        raise ValueError(
            f"fixed[{name!r}] has {len(each)} entries; True, or a list with a mask for "
            f"each of the {len(shapes)} chains, is expected."
        )
    labels = (f"[{name!r}][{c}]" for c in range(len(each)))
    return tuple(map(checked_mask, labels, each, shapes))


def checked_mask(label: str, mask: Any, shape: Shape) -> Mask:
    """A mask of this shape, from one or from a single True or False."""
    try:
        array = np.asarray(mask)
    except ValueError:
        array = np.asarray(mask, dtype=object)
    if array.dtype != bool or array.shape not in ((), shape):
        expected = f"True or a boolean array of shape {shape}" if shape else "True"
        raise ValueError(
            f"fixed{label} must be {expected}; it has shape {array.shape} and dtype "
            f"{array.dtype}."
        )
    return np.broadcast_to(array, shape)


def as_given(new: Array, old: Array, held: Mask | None) -> Array:
    """Values of a fit with those that are held, which units may have rounded."""
    return new if held is None else np.where(held, old, new)


def n_coordinates(
    moved: Callable[[Array, Array], Array], squares: Mask, shifts: Mask
) -> int:
    """Number of coordinates of hidden states that held entries tell.

    Parameters
    ----------
    moved : callable (T, u) -> ndarray
        Changes of all held entries as hidden states change to s + T s + u, of the
        first order.
    squares, shifts : ndarray of bool (n, n) and (n,)
        Entries of T and u that need not be zero.
    """
    n, columns = len(shifts), []
    for at in np.argwhere(squares):
        T = np.zeros((n, n))
        T[tuple(at)] = 1.0
        columns.append(moved(T, np.zeros(n)))
    for i in np.flatnonzero(shifts):
        columns.append(moved(np.zeros((n, n)), np.eye(n)[i]))
    G = np.array(columns).T
    if not G.size:
        return 0
    for axis in (1, 0, 1):  # units of entries and states do not matter
        size = np.linalg.norm(G, axis=axis, keepdims=True)
        G = G / np.where(size > 0, size, 1.0)
    return int(np.linalg.matrix_rank(G, tol=_SAME * np.linalg.norm(G, 2)))


def maximum_of_free(
    counts: Array, smoothing: Any, old: Array, held: Mask | None
) -> Array:
    """M step of a table of probabilities, of which entries may be held."""
    if held is None:
        return with_pseudo_counts(counts, smoothing, old)
    free = np.where(held, 0.0, old)
    left = np.where(held, 0.0, counts + smoothing * (old > 0))
    total = left.sum(-1, keepdims=True)
    room = np.minimum(free.sum(-1, keepdims=True), 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        new = np.where(total > 0, left / total * room, free)
    return np.where(held, old, new)


def with_held_members(new: Any, old: Any, held: Mask | None) -> Any:
    """The batch (K,) of an M step, with members that are held."""
    if held is None or held.shape != new.batch_shape or not held.any():
        return new
    return new._replaced(held, old[np.flatnonzero(held)])
