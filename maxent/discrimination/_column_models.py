"""Conjugate priors of the columns of a table, chosen by families or by types.

Every family of the table `_MAKERS` makes the prior of a group of columns from all rows;
the others are families of numbers, whose columns are independent.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from maxent._inputs.plain_categories import missing_values
from maxent._support import validation as v
from maxent._support.typing import FloatArray, NDArray
from maxent._support.validation import called, user_stacklevel
from maxent.families import (
    Categorical,
    DiagonalGaussian,
    ExponentialFamily,
    Gaussian,
    VonMisesFisher,
)
from maxent.families.priors.column_priors import UNCOUNTED, ProductPrior
from maxent.families.priors.conjugate import ConjugatePrior
from maxent.families.priors.dirichlet_nets import DirichletBayesNet
from maxent.families.priors.family_prior import FamilyPrior, directions_of
from maxent.families.priors.normal_wishart import NormalInverseWishart

_FEW_TEXTS = 10  # that may differ in every row


@dataclass(frozen=True)
class Group:
    """Columns of a table with one prior.

    Attributes
    ----------
    columns : tuple of int
    kind : class or ConjugatePrior
        Family of the columns, or their prior.
    options : dict
        Of the prior of that family.
    names : tuple of str
        Of the columns, if they have names.
    """

    columns: tuple[int, ...]
    kind: Any
    options: dict[str, Any]
    names: tuple[str, ...] = ()

    @property
    def is_categorical(self) -> bool:
        """True if the columns hold categories."""
        return self.kind is Categorical

    @property
    def label(self) -> str:
        """Name of its columns in messages."""
        if self.names:
            return called("column", range(len(self.names)), list(self.names))
        return called("column", self.columns)

    def of(self, kept: list[int]) -> Group:
        """Group of some of its columns, by their places in it."""
        own = tuple(self.columns[i] for i in kept)
        names = tuple(self.names[i] for i in kept) if self.names else ()
        return replace(self, columns=own, names=names)

    @property
    def name(self) -> str:
        """Name of its kind in messages."""
        if isinstance(self.kind, ConjugatePrior):
            return type(self.kind).__name__
        return str(self.kind.__name__)


def groups_of(
    columns: Mapping[Any, Any] | None, X: NDArray[Any], names: list[str] | None
) -> list[Group]:
    """Groups of the columns of rows, as given or by their types."""
    if columns is None:
        return groups_by_type(X, names)
    if not isinstance(columns, Mapping) or not columns:
        raise TypeError(
            f"columns={v.shown(columns)} must be a dict such as {{'age': Gaussian, "
            "'visits': Poisson, 'ward': Categorical}, or None."
        )
    groups = [_group(key, kind, X.shape[1], names) for key, kind in columns.items()]
    every = [j for group in groups for j in group.columns]
    for j in every:
        if every.count(j) > 1:
            label = j if names is None else names[j]
            raise ValueError(f"columns has {v.shown(label)} twice; it belongs to one.")
    return groups


def _group(key, kind, width, names):
    own = tuple(_number(j, width, names) for j in _as_tuple(key))
    if not own:
        raise ValueError("columns has the key (), which names no column.")
    options: dict[str, Any] = {}
    if isinstance(kind, tuple) and len(kind) == 2 and isinstance(kind[1], Mapping):
        kind, options = kind[0], dict(kind[1])
    family = isinstance(kind, type) and issubclass(kind, ExponentialFamily)
    if not family and not isinstance(kind, ConjugatePrior):
        raise TypeError(
            f"columns[{key!r}]={v.shown(kind)} must be a class of maxent.families, "
            "such as Poisson, a pair (class, options), or a conjugate prior."
        )
    if family and kind not in _MAKERS and getattr(kind, "_chart", None) is None:
        known = [one.__name__ for one in _MAKERS]
        raise TypeError(
            f"columns[{key!r}]={kind.__name__} has no conjugate prior here; "
            f"{', '.join(known)}, Poisson, NegativeBinomial, Geometric, Bernoulli, "
            "Exponential, Gamma and Beta have."
        )
    named = () if names is None else tuple(names[j] for j in own)
    return Group(own, kind, options, named)


def _as_tuple(key):
    return key if isinstance(key, tuple) else (key,)


def _number(column, width, names):
    """Number of a column, given by its name or number."""
    if isinstance(column, str):
        if names is None or column not in names:
            where = "names, and X has none" if names is None else f"X: {v.shown(names)}"
            raise ValueError(f"columns has {column!r}, which is no column of {where}.")
        return names.index(column)
    number = v.check_count("a column", column, 0)
    if number >= width:
        raise ValueError(f"columns has column {number}, and X has {width} columns.")
    return number


def groups_by_type(X: NDArray[Any], names: list[str] | None) -> list[Group]:
    """Texts and columns of two values are categories; numbers are Gaussian.

    Numbers without missing values are one group, and the others each their own. A
    column of one value is in none, nor, with a warning, one of texts that tell rows
    apart.
    """
    together, groups = [], []
    told_apart = []
    for j, column in enumerate(X.T):
        lost = missing_values(column)
        values = column[~lost]
        numbers = values.dtype.kind in "iuf" or all(map(v.is_real, values.tolist()))
        different = {*values[:1000].tolist()} if numbers else set()
        if numbers and len(different) > 2:
            if lost.any():
                groups.append(Group((j,), Gaussian, {}))
            else:
                together.append(j)
            continue
        count = len(set(map(str, values.tolist())))
        if count > max(_FEW_TEXTS, len(values) / 2):
            told_apart.append(j)
        elif count > 1:
            groups.append(Group((j,), Categorical, {}))
    if told_apart:
        which = called("column", told_apart, names)
        warnings.warn(
            f"most rows have a text of their own in {which} of X, left out of the "
            "model; name it in columns= to read it.",
            UserWarning,
            stacklevel=user_stacklevel(),
        )
    if together:
        groups.insert(0, Group(tuple(together), Gaussian, {}))
    if not groups:
        raise ValueError("every column of X is constant; there is nothing to tell by.")
    return groups


# -- priors ----------------------------------------------------------------------------
def prior_of_columns(
    groups: list[Group],
    rows: FloatArray,
    weight: FloatArray,
    sizes: Mapping[int, int],
) -> ProductPrior:
    """Prior of a class: of every group by the rows (n, d) of all classes.

    Categories have codes, and a number of them each by `sizes`.
    """
    factors: dict[Any, ConjugatePrior] = {}
    for group in groups:
        own = group.columns
        seen = ~np.isnan(rows[:, own]).any(axis=1)
        try:
            if not seen.any():
                raise ValueError("every row misses an entry; leave them out.")
            x, w = rows[seen][:, own], weight[seen]
            if isinstance(group.kind, ConjugatePrior):
                factors[own] = group.kind
                group.kind._prepare(x[:1])
            else:
                maker = _MAKERS.get(group.kind, _each_alone)
                factors |= maker(group, x, w, [sizes.get(j, 0) for j in own])
        except (TypeError, ValueError) as error:
            which = "" if seen.all() else UNCOUNTED
            error.args = (f"{group.label}, {group.name}: {error}{which}",)
            raise
    return ProductPrior(factors)


def without_constant(
    groups: list[Group], rows: FloatArray
) -> tuple[list[Group], list[int]]:
    """Groups without columns of numbers that have one value, and these columns.

    Such columns tell no class from another, and families have no fit to them.
    """
    left, out = [], []
    for group in groups:
        kept = [i for i, j in enumerate(group.columns) if _varies(rows[:, j])]
        alike = not isinstance(group.kind, type) or group.kind is Categorical
        if alike or (kept and group.kind is VonMisesFisher):  # all or none of a vector
            kept = list(range(len(group.columns)))
        left += [j for i, j in enumerate(group.columns) if i not in kept]
        if kept:
            out.append(group.of(kept))
    if not out:
        raise ValueError("every column of X is constant; there is nothing to tell by.")
    return out, left


def _varies(column):
    seen = column[~np.isnan(column)]
    return not len(seen) or seen.min() < seen.max()


def _check_options(group, *known):
    for name in group.options:
        if name not in known:
            raise TypeError(
                f"the option {name!r} is not known; {', '.join(known) or 'none'} "
                f"{'are' if len(known) > 1 else 'is'}."
            )


def _gaussian(group, x, weight, sizes):
    _check_options(group, "prior")
    prior = group.options.get("prior", "weak")
    if isinstance(prior, NormalInverseWishart):
        return {group.columns: prior}
    v.check_choice("prior", prior, ("weak", "improper"), ", or a NormalInverseWishart")
    if prior == "improper":
        return {group.columns: NormalInverseWishart.improper(x.shape[1])}
    return {group.columns: NormalInverseWishart.weak(x, weight)}


def _columns_of(group, x, weight, sizes, make):
    """Priors of the columns, each alone."""
    parts = {}
    for j, own in enumerate(group.columns):
        one = Group((own,), group.kind, group.options)
        parts |= make(one, x[:, [j]], weight, sizes[j : j + 1])
    return parts


def _diagonal(group, x, weight, sizes):
    return _columns_of(group, x, weight, sizes, _gaussian)


def _categorical(group, x, weight, sizes):
    _check_options(group, "ess", "parents")
    ess = v.check_positive("ess", group.options.get("ess", 1.0))
    parents = group.options.get("parents")
    if parents is None and len(sizes) > 1:
        return _columns_of(group, x, weight, sizes, _categorical)
    parents = parents_by_number(parents or {}, list(group.names), len(sizes))
    return {group.columns: DirichletBayesNet(ess, parents, sizes)}


def _directions(group, x, weight, sizes):
    _check_options(group, "count")
    x = directions_of(x)
    return {group.columns: FamilyPrior.weak(group.kind, x, weight, **group.options)}


def _each_alone(group, x, weight, sizes):
    if len(group.columns) > 1:
        return _columns_of(group, x, weight, sizes, _each_alone)
    prior = FamilyPrior.weak(group.kind, x[:, 0], weight, **group.options)
    return {group.columns: prior}


_MAKERS: dict[Any, Callable[..., dict[Any, ConjugatePrior]]] = {
    Gaussian: _gaussian,
    DiagonalGaussian: _diagonal,
    Categorical: _categorical,
    VonMisesFisher: _directions,
}


def parents_by_number(parents: Any, names: list[str] | None, n: int) -> Any:
    """Parents of every feature, with numbers in the place of the names of columns."""
    if isinstance(parents, str) or not isinstance(parents, Iterable):
        return parents
    numbers = {name: k for k, name in enumerate(names or ())}

    def number(parent):
        if not isinstance(parent, str):
            return parent
        if parent not in numbers:
            known = v.shown(names) if names else "none: X is no data frame"
            raise ValueError(
                f"parents={v.shown(parents)} names {parent!r}, which is no column of "
                f"X; its names are {known}."
            )
        return numbers[parent]

    if isinstance(parents, Mapping):
        found = [()] * n
        for feature, those in parents.items():
            k = number(feature)
            is_number = isinstance(k, Integral) and not isinstance(k, bool)
            if not is_number or not 0 <= k < n:
                raise ValueError(
                    f"parents={v.shown(parents)} has the key {v.shown(feature)}; keys "
                    f"are names of columns, or their numbers from 0 to {n - 1}."
                )
            found[k] = those
    else:
        found = list(parents)
    return [
        tuple(map(number, those))
        if isinstance(those, Iterable) and not isinstance(those, str)
        else those
        for those in found
    ]
