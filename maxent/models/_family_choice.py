"""Families of models: one class, or columns of several kinds by names or numbers."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, TypeAlias

from maxent._inputs.frames import column_names
from maxent._inputs.text_columns import Categories, text_categories
from maxent._support import validation as v
from maxent.families import Categorical, ExponentialFamily, Independent, Product

Family: TypeAlias = type[ExponentialFamily] | Mapping[Any, Any]


def family_of_columns(
    family: Family,
    options: Mapping[str, Any] | None,
    width: int | None = None,
    names: tuple[str, ...] | None = None,
) -> tuple[type[ExponentialFamily], dict[str, Any]]:
    """Family of rows, and further arguments of its `fit`.

    Parameters
    ----------
    family : class, or dict {columns: class or (class, options)}
        Columns are numbers or names, or tuples of these. Families of numbers have
        independent columns.
    options : dict or None
        Further arguments of the `fit` of a class.
    width : int, optional
        Columns of the rows; None of numbers.
    names : tuple of str, optional
        Of the columns.

    Returns
    -------
    family : class
    options : dict
    """
    if not isinstance(family, Mapping):
        options = check_family(family, options)
        if width is None or width < 2 or family._event_to_fit():
            return family, options
        return Independent, {"family": family, "options": options}
    if options:
        raise TypeError(
            f"family_options={v.shown(options)} are not read where family is a dict; "
            "give them beside the class: {column: (family, options)}."
        )
    layout = [_factor(*one, names) for one in family.items()]
    _check_columns([j for own, *_ in layout for j in own], width or 1, names)
    return Product, {"layout": layout}


def categories_of(family: Family, data: Any) -> Categories:
    """Texts of the columns of a dict of families that are categorical."""
    if not isinstance(family, Mapping):
        return {}
    own = (key for key, kind in family.items() if _kind(kind) is Categorical)
    return text_categories(data, [key for key in own if isinstance(key, str)])


def _kind(kind):
    return kind[0] if isinstance(kind, tuple) and kind else kind


def columns_of_rows(X: Any) -> tuple[int | None, tuple[str, ...] | None]:
    """Columns of rows, None of numbers, and their names."""
    shape = X.shape if hasattr(X, "shape") else v.as_doubles("X", X).shape
    return (shape[1] if len(shape) == 2 else None), column_names("X", X)


def _factor(key, kind, names):
    """Numbers of columns, family of vectors, options."""
    own = tuple(_number(j, names) for j in (key if isinstance(key, tuple) else (key,)))
    kind, options = kind if isinstance(kind, tuple) and len(kind) == 2 else (kind, None)
    options = check_family(kind, options)
    if kind._event_to_fit():
        return own, kind, options
    return own, Independent, {"family": kind, "options": options}


def _number(column, names):
    """Number of a column, given by its name or number."""
    if not isinstance(column, str):
        return v.check_count("a column of family", column, 0)
    if names is None:
        raise ValueError(
            f"family names the column {column!r}, and the data have no names; pass a "
            "data frame, or numbers of columns 0, 1, ..."
        )
    if column not in names:
        raise ValueError(f"family names {column!r}, which is none of {list(names)}.")
    return names.index(column)


def _check_columns(columns, width, names):
    """Refuse columns of the data without a family, or with two."""
    for j in range(max([width, *(j + 1 for j in columns)])):
        times = columns.count(j)
        if times == 1 and j < width:
            continue
        label = f"column {j}" if names is None or j >= width else f"{names[j]!r}"
        if j >= width:
            wrong = f"family has {label}, and the data have {width} columns"
        else:
            wrong = f"family has {'two entries' if times else 'no entry'} for {label}"
        raise ValueError(f"{wrong}; every column needs one family.")


def check_family(family: Any, options: Any) -> dict[str, Any]:
    """The options of a family's `fit`, which must be a class that takes them."""
    if not (isinstance(family, type) and issubclass(family, ExponentialFamily)):
        raise TypeError(
            f"family={v.shown(family)} must be a class of maxent.families, such as "
            "maxent.families.Gaussian."
        )
    options = {} if options is None else options
    if not (isinstance(options, Mapping) and all(isinstance(k, str) for k in options)):
        raise TypeError(
            f"family_options={v.shown(options)} must be a dict of arguments of "
            f"{family.__name__}.fit, or None."
        )
    known = dict(inspect.signature(family.fit).parameters)
    known = {k: p for k, p in known.items() if k not in ("X", "weights")}
    unknown = [key for key in options if key not in known]
    if unknown and all(p.kind is not p.VAR_KEYWORD for p in known.values()):
        names = ", ".join(known)
        raise TypeError(
            f"family_options has {unknown[0]!r}, which {family.__name__}.fit does not "
            f"take; it takes {names}."
        )
    for key, p in known.items():
        needed = p.default is p.empty and p.kind is p.KEYWORD_ONLY
        if needed and key not in options:
            raise TypeError(
                f"family={family.__name__} needs {key}: pass "
                f"family_options=dict({key}=...), as {family.__name__}.fit takes it."
            )
    return dict(options)
