"""Names of the columns of data frames, and checks that they agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from maxent._support import validation as v

Names = tuple[str, ...]


def column_names(name: str, data: Any, expected: Names | None = None) -> Names | None:
    """Names that all data frames have in common, in one order.

    Parameters
    ----------
    name : str
        What messages call the data.
    data : data frame, list of data frames and arrays, or anything else
        Frames whose columns are not all named by strings have no names.
    expected : tuple of str, optional
        Names of the data of a fit.

    Returns
    -------
    tuple of str or None
        None where no frame has names.

    Raises
    ------
    ValueError
        If a frame has other names, or these in another order.
    """
    names = expected
    for label, columns in _named(name, data):
        if names is None:
            names = columns
        if columns == names:
            continue
        order = sorted(columns) == sorted(names)
        there = set(names) <= set(columns)
        raise ValueError(
            f"{label} has the columns {v.shown(list(columns))}, but "
            f"{'the fit' if expected is not None else 'another data frame'} had "
            f"{v.shown(list(names))}: the feature names should match"
            + (", also in their order. " if order else ". ")
            + (f"Pass {label}[{v.shown(list(names))}]." if there else "Rename them.")
        )
    return names


def check_names(name: str, value: Any) -> Names | None:
    """Names of columns as a specification lists them; None where there are none."""
    if value is None:
        return None
    listed = isinstance(value, (list, tuple))
    if not (listed and value and all(isinstance(one, str) for one in value)):
        raise ValueError(f"{name}={v.shown(value)} must be a list of names, or None.")
    return tuple(map(str, value))


def check_names_of_lists(estimator: Any, X: Any, *, reset: bool) -> None:
    """Check the columns of an estimator's list of frames: those of training, in order.

    Parameters
    ----------
    estimator : estimator
        Gets the attribute ``feature_names_in_`` where frames have names.
    X : list of data frames and arrays, or anything else
    reset : bool
        True in ``fit``.
    """
    refuse_twins("X", X)
    known = None if reset else vars(estimator).get("feature_names_in_")
    names = column_names("X", X, None if known is None else tuple(known))
    if reset:
        vars(estimator).pop("feature_names_in_", None)
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)


def refuse_twins(name: str, data: Any) -> None:
    """Refuse data frames with two columns of one name."""
    each = enumerate(data) if isinstance(data, (list, tuple)) else [(None, data)]
    for k, frame in each:
        of_pandas = hasattr(frame, "iloc") and hasattr(frame, "columns")
        columns = list(frame.columns) if of_pandas else []
        if len({*columns}) == len(columns):
            continue
        label = name if k is None else f"{name}[{k}]"
        twice = next(one for one in columns if columns.count(one) > 1)
        places = [i for i, one in enumerate(columns) if one == twice]
        raise ValueError(
            f"{label} has the column {v.shown(twice)} {len(places)} times, at the "
            f"places {v.shown(places)} (counted from 0); rename them, or drop all "
            "but one."
        )


def columns_of_nodes(name: str, data: Any, nodes: Names) -> Any:
    """Rows of named nodes: the columns of a data frame in the order of these names.

    Parameters
    ----------
    name : str
        What messages call the data.
    data : data frame, or anything else
        What has no names keeps its columns as they are.
    nodes : tuple of str
        Names of the columns that are expected.

    Returns
    -------
    data frame, or the data as they are

    Raises
    ------
    ValueError
        If a frame has other names, or one of them twice.
    """
    data = v.in_memory(name, data)
    for _, own in _named(name, data):
        if sorted(own) != sorted(nodes):
            raise ValueError(
                f"{name} has the columns {v.shown(list(own))}, but the observed nodes "
                f"are {v.shown(list(nodes))}: {_difference(own, nodes)}. Columns of "
                "data frames are taken by their names, in any order; rename or drop "
                "columns, or name the nodes that data show by observed=."
            )
        return data[list(nodes)]
    return data


def _difference(own: Names, nodes: Names) -> str:
    """The first column that is no node, is there twice, or is missing."""
    for column in own:
        if column not in nodes:
            return f"{column!r} is none of them"
    twice = [column for column in own if own.count(column) > 1]
    if twice:
        return f"{twice[0]!r} is there twice"
    return f"{next(node for node in nodes if node not in own)!r} is missing"


def _named(name: str, data: Any) -> Iterator[tuple[str, Names]]:
    """Labels and column names of data frames and of sequences read from them."""
    each = enumerate(data) if isinstance(data, (list, tuple)) else [(None, data)]
    for i, one in each:
        columns = getattr(one, "columns", None)
        if columns is not None and (
            hasattr(one, "to_numpy") or hasattr(one, "offsets")
        ):
            own = tuple(columns)
            if own and all(isinstance(column, str) for column in own):
                yield (name if i is None else f"{name}[{i}]"), own
