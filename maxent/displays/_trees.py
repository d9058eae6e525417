"""Input of the displays of trees: classes, names and trees, checked."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from maxent._support import validation as v

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray


def check_class_index(class_index: Any, labels: Sequence[Any]) -> int:
    """Place of a class among `labels`, an integer."""
    m = len(labels)
    whole = isinstance(class_index, numbers.Integral)
    if (
        isinstance(class_index, (bool, np.bool_))
        or not whole
        or (not 0 <= int(class_index) < m)
    ):
        raise ValueError(
            f"class_index={v.shown(class_index)} must be an integer from 0 to {m - 1}, "
            f"the place of a class in classes_={v.shown(list(labels))}."
        )
    return int(class_index)


def class_title(machine: Any, k: int) -> str:
    """Title of the picture of a class."""
    return f"class {machine.classes_[k]}"


def default_names(machine: Any, feature_names: Sequence[str] | None) -> Any:
    """Names given, or else those that a frame had at the fit."""
    if feature_names is not None:
        return feature_names
    return getattr(machine, "feature_names_in_", None)


def check_names(names: Sequence[str] | None, n: int) -> list[str]:
    """Names of n features; numbers from 0 for None."""
    if names is None:
        return [str(k) for k in range(n)]
    if isinstance(names, str) or not np.ndim(names) or len(names) != n:
        raise ValueError(
            f"feature_names={v.shown(names)} must hold {n} names, one per feature, or "
            "be None for numbers."
        )
    return [str(name) for name in names]


def check_trees(name: str, trees: ArrayLike, n: int, lead: int = 0) -> Any:
    """Edges (..., n - 1, 2) of trees over n features, each with u < v."""
    edges = v.as_array(name, trees)
    if edges.ndim != 2 + lead or edges.shape[-2:] != (n - 1, 2):
        raise ValueError(
            f"{name} has shape {edges.shape}; a tree over {n} features has the "
            f"shape ({n - 1}, 2)."
        )
    if edges.dtype.kind not in "iu" or edges.min() < 0 or edges.max() >= n:
        raise ValueError(
            f"{name}={v.shown(edges.tolist())} must hold integers from 0 to {n - 1}."
        )
    return np.sort(edges, axis=-1)


def tree_shares(trees: Any, class_index: int) -> NDArray[np.float64]:
    """Share of the trees that have each edge, (n, n)."""
    ask = (
        "must be SpanningTrees, DirichletTrees, or trees (size, n - 1, 2) as "
        "sample_trees returns them; for a classifier use TreeGraphDisplay."
        "from_estimator."
    )
    if hasattr(trees, "fit") or isinstance(trees, (str, bytes, dict)) or trees is None:
        raise ValueError(f"trees={v.shown(trees)} {ask}")
    array = v.as_array("trees", trees)
    if array.ndim == 4:
        array = array[check_class_index(class_index, range(len(array)))]
    if array.ndim == 2:
        array = array[None]
    whole = array.ndim == 3 and array.shape[-1] == 2 and array.size
    if not whole or array.dtype.kind not in "iu":
        raise ValueError(f"trees={v.shown(trees)} of shape {np.shape(trees)} {ask}")
    n = array.shape[1] + 1
    edges = check_trees("trees", array, n, lead=1)
    from scipy.sparse.csgraph import connected_components

    for k, tree in enumerate(edges):
        part = np.zeros((n, n))
        part[tuple(tree.T)] = 1.0
        if connected_components(part, directed=False)[0] > 1:
            raise ValueError(
                f"trees[{k}]={v.shown(tree.tolist())} does not join all {n} features; "
                f"each tree needs {n - 1} edges without a cycle."
            )
    shares = np.zeros((n, n))
    np.add.at(shares, tuple(edges.reshape(-1, 2).T), 1.0 / len(edges))
    return shares + shares.T
