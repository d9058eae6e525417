"""Arguments of linear Gaussian networks: nodes, blocks by node, whole matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent._support import validation as v
from maxent.families import _checks
from maxent.models import _state_space as checks
from maxent.models._holding import checked_mask, held_of
from maxent.models.networks._factor_input import node_names

Array = NDArray[np.float64]


def check_order(order: Any) -> tuple[tuple[str, int], ...]:
    nodes = []
    for entry in [order] if isinstance(order, str) else order:
        name, size = (entry, 1) if isinstance(entry, str) else entry
        nodes.append((str(name), v.check_count(f"size of node {name!r}", size)))
    names = [name for name, _ in nodes]
    if not names or len(set(names)) < len(names):
        raise ValueError(
            f"order={v.shown(order)} must name the nodes, each of them once."
        )
    return tuple(nodes)


def places(nodes: Sequence[tuple[str, int]]) -> dict[str, slice]:
    ends = np.cumsum([0, *(size for _, size in nodes)]).tolist()
    return {name: slice(ends[i], ends[i + 1]) for i, (name, _) in enumerate(nodes)}


def check_parents(
    parents: Mapping[str, Sequence[str]], nodes: Sequence[tuple[str, int]]
) -> dict[str, tuple[str, ...]]:
    names = [name for name, _ in nodes]
    found: dict[str, tuple[str, ...]] = dict.fromkeys(names, ())
    for child, own in parents.items():
        above = node_names(f"parents[{child!r}]", own)
        for name in (child, *above):
            if name not in names:
                raise ValueError(
                    f"parents[{child!r}]={v.shown(list(above))}: {name!r} is no node; "
                    f"choose from {', '.join(names)}."
                )
        _check_before(child, above, names)
        found[child] = above
    return found


def _check_before(child, above, names):
    for name in above:
        if names.index(name) >= names.index(child):
            raise ValueError(
                f"{name!r} is a parent of {child!r} but does not come before it in "
                f"order={v.shown(names)}; sort the nodes, parents first."
            )


def check_start(
    init: Any, net: Any, parents: Mapping[str, Sequence[str]], fixed: Any
) -> dict[str, Any]:
    """Masks of a fit from a start, which must have the structure of `net`."""
    if init is None:
        return held_of(fixed, None)
    for name in ("order", "observed"):
        if getattr(init, name) != getattr(net, name):
            raise ValueError(
                f"init has {name}={v.shown(list(getattr(init, name)))}, and the fit "
                f"{v.shown(list(getattr(net, name)))}; they must be the same."
            )
    place, structure = net._place, np.zeros(init.coefficients.shape, bool)
    for child, above in parents.items():
        for parent in above:
            structure[place[child], place[parent]] = True
    if init.coefficients[~structure].any():
        i, j = _checks.first((init.coefficients != 0) & ~structure)
        raise ValueError(
            f"init has coefficients[{i}, {j}]={init.coefficients[i, j]:g}, between "
            "nodes that parents= does not join; add the parent, or set it to 0."
        )
    if isinstance(fixed, Mapping):
        fixed = {name: _by_entry(name, mask, place) for name, mask in fixed.items()}
    held = held_of(fixed, init)
    if "coefficients" in held:
        held["coefficients"] = held["coefficients"] & structure
    return held


def _by_entry(name, mask, place):
    """A mask by node, or by child and parent, as an array."""
    if not isinstance(mask, Mapping):
        return mask
    D, at = _size(place), dict(place)
    whole = np.zeros(D, bool)
    if name == "coefficients":
        whole = np.zeros((D, D), bool)
        at = {(i, j): (place[i], place[j]) for i in place for j in place}
    if name == "covs":
        whole, at = np.zeros(len(place), bool), {n: k for k, n in enumerate(place)}
    for key, own in mask.items():
        if key not in at:
            what = "pair (child, parent)" if name == "coefficients" else "node"
            raise ValueError(
                f"fixed[{name!r}] has the key {v.shown(key)}, which is no {what} of "
                f"{', '.join(place)}."
            )
        label = f"[{name!r}][{key!r}]"
        whole[at[key]] = checked_mask(label, own, np.shape(whole[at[key]]))
    return whole


def masks_of(
    held: Mapping[str, Any], nodes: Sequence[tuple[str, int]]
) -> tuple[NDArray[np.bool_], ...]:
    """Masks of coefficients, offsets and covariances, in the shapes of these."""
    place = places(nodes)
    D = _size(place)
    B = held.get("coefficients", np.zeros((D, D), bool))
    S = np.zeros((D, D), bool)
    for own, kept in zip(place.values(), held.get("covs", [False] * len(nodes))):
        S[own, own] = kept
    return B, held.get("offsets", np.zeros(D, bool)), S


def _size(place):
    return max(own.stop for own in place.values())


def coefficient_matrix(given: Any, place: Mapping[str, slice]) -> Array:
    D, names = _size(place), list(place)
    if not isinstance(given, Mapping):
        B = checks.shaped("coefficients", given, (D, D))
        filled = np.zeros_like(B)
        for i, child in enumerate(names):
            for parent in names[:i]:
                at = place[child], place[parent]
                filled[at] = B[at]
        if not np.array_equal(B, filled):
            i, j = _checks.first(filled != B)
            raise ValueError(
                f"coefficients[{i}, {j}]={B[i, j]:g} is not below the diagonal blocks: "
                "a parent must come before its child in order."
            )
        return B
    B = np.zeros((D, D))
    for key, block in given.items():
        if not (isinstance(key, tuple) and len(key) == 2 and set(key) <= set(names)):
            raise ValueError(
                f"coefficients has the key {v.shown(key)}; keys are (child, parent) "
                f"with nodes of {', '.join(names)}."
            )
        child, parent = key
        _check_before(child, [parent], names)
        at = place[child], place[parent]
        shape = B[at].shape
        B[at] = checks.shaped(f"coefficients[{child!r}, {parent!r}]", block, shape)
    return B


def offset_vector(given: Any, place: Mapping[str, slice]) -> Array:
    if not isinstance(given, Mapping):
        return checks.shaped("offsets", given, (_size(place),))
    b = np.zeros(_size(place))
    for name, value in given.items():
        if name not in place:
            raise ValueError(f"offsets has the key {name!r}, which is no node.")
        own = place[name]
        b[own] = checks.shaped(f"offsets[{name!r}]", value, (own.stop - own.start,))
    return b


def covariance_matrix(given: Any, place: Mapping[str, slice]) -> Array:
    D = _size(place)
    S = np.zeros((D, D))
    if isinstance(given, Mapping):
        blocks = given
        for name in given:
            if name not in place:
                raise ValueError(f"covs has the key {name!r}, which is no node.")
        missing = [name for name in place if name not in given]
        if missing:
            raise ValueError(f"covs has no covariance of node {missing[0]!r}.")
    else:
        array = np.asarray(given, dtype=np.float64)
        array = array * np.eye(D) if array.ndim == 0 else array
        array = checks.covariances("covs", array, D)
        blocks = {name: array[own, own] for name, own in place.items()}
    for name, own in place.items():
        size = own.stop - own.start
        block = np.asarray(blocks[name], dtype=np.float64)
        block = block * np.eye(size) if block.ndim == 0 else block
        S[own, own] = checks.covariances(f"covs[{name!r}]", block, size)
    if not isinstance(given, Mapping) and not np.array_equal(S, array):
        raise ValueError(
            "covs has entries outside the blocks of its nodes: noise of different "
            "nodes is independent. Use a coefficient between them instead."
        )
    return S
