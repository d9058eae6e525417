"""Arguments of models made of factors: tables over named nodes, rows of codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._inputs.codes import check_codes
from maxent._support import validation as v
from maxent.families.priors.dirichlet_nets import parents_first

Array = NDArray[np.float64]
Codes = NDArray[np.intp]
Names = tuple[str, ...]


def node_names(what: str, given: Any) -> Names:
    """Different names, one or several."""
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, Iterable):
        raise TypeError(f"{what}={v.shown(given)} must name nodes.")
    names = tuple(names)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(
                f"{what}={v.shown(given)} has {v.shown(name)}; names of nodes are "
                "strings."
            )
    if len(set(names)) < len(names):
        raise ValueError(f"{what}={v.shown(given)} has a node twice.")
    return names


def check_factors(name: str, given: Any, checked: Any) -> list[tuple[Names, Array]]:
    """Factors (nodes, table) with one axis a node; `checked(label, table)` copies."""
    if isinstance(given, (str, Mapping)) or not isinstance(given, Iterable):
        raise TypeError(
            f"{name}={v.shown(given)} must be a list of pairs (nodes, table)."
        )
    out: list[tuple[Names, Array]] = []
    sizes: dict[str, int] = {}
    for k, entry in enumerate(given):
        if not isinstance(entry, (tuple, list)) or len(entry) != 2:
            raise TypeError(
                f"{name}[{k}]={v.shown(entry)} must be a pair (nodes, table)."
            )
        nodes = node_names(f"nodes of {name}[{k}]", entry[0])
        table = np.array(checked(f"{name}[{k}]", entry[1]))
        if table.ndim != len(nodes) or not table.size:
            raise ValueError(
                f"{name}[{k}] has a table of shape {table.shape} over the nodes "
                f"{v.shown(list(nodes))}; one axis for each of them, with one entry or "
                "more, is expected."
            )
        for node, size in zip(nodes, table.shape):
            if sizes.setdefault(node, size) != size:
                raise ValueError(
                    f"{name}[{k}] has {size} categories of {node!r}, a factor before "
                    f"has {sizes[node]}; all tables of a node need the same."
                )
        table.setflags(write=False)
        out.append((nodes, table))
    if not sizes:
        raise ValueError(f"{name}={v.shown(given)} has no node.")
    return out


def check_observed(given: Any, nodes: Sequence[str]) -> Names:
    """Names of observed nodes, all of them by default."""
    names = tuple(nodes) if given is None else node_names("observed", given)
    for name in names:
        if name not in nodes:
            raise ValueError(
                f"observed={v.shown(list(names))} has {name!r}, which is no node: "
                f"choose from {v.shown(list(nodes))}."
            )
    if not names:
        raise ValueError("observed=[] has no node; name one at least.")
    return names


def parents_before_children(parents: Mapping[str, Names]) -> list[int]:
    """Numbers of the nodes, parents first; no cycles and no unknown parents."""
    place = {name: i for i, name in enumerate(parents)}
    for child, above in parents.items():
        for name in above:
            if name not in place:
                raise ValueError(
                    f"{name!r} is a parent of {child!r} but no node itself; give it "
                    "an entry of its own, without parents if it has none."
                )
            if name == child:
                raise ValueError(f"{child!r} is a parent of itself; take it out.")
    numbers = [tuple(place[name] for name in above) for above in parents.values()]
    return parents_first(numbers, list(parents))


def check_structure(parents: Any) -> dict[str, Names]:
    """Parents of every node, as `BayesNet.fit` takes them."""
    if not isinstance(parents, Mapping) or not parents:
        raise TypeError(
            f"parents={v.shown(parents)} must be a dict from every node to its "
            "parents, such as {'a': [], 'b': ['a']}."
        )
    node_names("nodes of parents", tuple(parents))
    out = {
        name: node_names(f"parents[{name!r}]", above) for name, above in parents.items()
    }
    parents_before_children(out)
    return out


def rows_of_codes(X: ArrayLike) -> Array:
    """Rows with -1 in the place of NaN."""
    array = v.as_doubles("X", X)
    return np.where(np.isnan(array), -1.0, array)


def codes_of(X: ArrayLike, sizes: Sequence[int]) -> Codes:
    """Codes (n, n_features) of rows; -1 or NaN where a value is missing."""
    array = rows_of_codes(X)
    if array.ndim == 2 and not len(array):
        raise ValueError(f"X has shape {array.shape}: there is no row.")
    return check_codes(array, sizes)


def category_counts(
    X: ArrayLike, nodes: Sequence[str], observed: Names, given: Any
) -> dict[str, int]:
    """Number of categories of every node: as given, or the largest code plus one."""
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(
            f"n_categories={v.shown(given)} must be a dict from nodes to numbers."
        )
    sizes = {
        name: v.check_count(f"n_categories[{name!r}]", size)
        for name, size in (given or {}).items()
    }
    for name in sizes:
        if name not in nodes:
            raise ValueError(f"n_categories has the key {name!r}, which is no node.")
    array = rows_of_codes(X)
    if array.ndim != 2 or array.shape[1] != len(observed) or not len(array):
        raise ValueError(
            f"X has shape {array.shape}; rows of the {len(observed)} observed nodes "
            f"{v.shown(list(observed))} are expected."
        )
    for k, name in enumerate(observed):
        if name not in sizes:
            top = array[:, k].max()
            sizes[name] = int(top) + 1 if 0 <= top < 2**31 else 1
    for name in nodes:
        if name not in sizes:
            raise ValueError(
                f"n_categories has no entry of the hidden node {name!r}, which no data "
                f"show; add n_categories={{{name!r}: ...}}."
            )
    return {name: sizes[name] for name in nodes}
