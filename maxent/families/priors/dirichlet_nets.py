"""Bayes nets of fixed structure on categorical features, with Dirichlet priors.

Without parents a net is a product of multinomials: naive Bayes, or a model of one
class.

Source: Jaakkola, Meila & Jebara (1999), section 3.6 and eq. (46).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from maxent._inputs.codes import check_codes
from maxent._support import validation as v
from maxent._support.typing import ArrayLike, FloatArray
from maxent.families.priors.dirichlet_tables import DirichletTables, check_table


class DirichletBayesNet(DirichletTables):
    """Prior over a Bayes net of fixed structure on categorical features.

    Rows are integer codes; -1 is a missing value and leaves out every factor that it
    enters, which is exact for a feature without children.

    Parameters
    ----------
    pseudo_counts : list of array-like, or float
        One table for each feature, of shape (q, r): q configurations of its parents,
        in C order of their codes, and r categories, all entries > 0. A float is spread
        evenly over every table, which is the same total in every table of a feature:
        an equivalent sample size.
    parents : list of tuple of int, optional
        Parents of each feature; none by default, which is naive Bayes.
    n_categories : list of int, optional
        Needed if `pseudo_counts` is a float.

    Raises
    ------
    ValueError
        For cyclic parents, tables of the wrong shape, or entries <= 0.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), section 3.6.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.families import DirichletBayesNet
    >>> net = DirichletBayesNet(1.0, parents=[(), (0,)], n_categories=[2, 3])
    >>> [table.shape for table in net.pseudo_counts]
    [(1, 2), (2, 3)]
    >>> block = net.block([[0, 2], [1, 0], [0, 1]])
    >>> round(block.log_partition(np.ones(3)), 6)
    -7.167038
    """

    parents: tuple[tuple[int, ...], ...]
    n_categories: tuple[int, ...]

    def __init__(
        self,
        pseudo_counts: float | Sequence[ArrayLike],
        parents: Iterable[Iterable[int]] | None = None,
        n_categories: Iterable[int] | None = None,
    ) -> None:
        if n_categories is None:
            if v.is_real(pseudo_counts):
                raise ValueError(
                    "n_categories is needed if pseudo_counts is one number."
                )
            given = cast(Sequence[ArrayLike], pseudo_counts)
            n_categories = [np.shape(table)[-1] for table in given]
        sizes = [v.check_count("n_categories", r) for r in n_categories]
        if not sizes:
            raise ValueError("there are no tables; a net needs at least one feature.")
        parents = [()] * len(sizes) if parents is None else parents
        self.parents = check_parents(parents, len(sizes))
        self.n_categories = tuple(sizes)
        shapes = [
            (int(np.prod([sizes[p] for p in found], dtype=float)), sizes[k])
            for k, found in enumerate(self.parents)
        ]
        for k, (q, r) in enumerate(shapes):
            if q * r > 10_000_000:
                raise ValueError(
                    f"feature {k} has {q} parent configurations of {r} categories: "
                    "too many cells for a table. Give it fewer parents."
                )
        if v.is_real(pseudo_counts):
            size = v.check_positive("pseudo_counts", pseudo_counts)
            tables = [np.full(shape, size / np.prod(shape)) for shape in shapes]
        else:
            tables = _check_tables(cast(Sequence[ArrayLike], pseudo_counts), shapes)
        self._set_cells(tables)

    def __repr__(self) -> str:
        return (
            f"DirichletBayesNet(parents={list(self.parents)!r}, "
            f"n_categories={list(self.n_categories)!r})"
        )

    def get_spec(self) -> dict[str, Any]:
        """Parameters by name, enough to build an equal value.

        Returns
        -------
        dict
            Keyword arguments of the constructor.
        """
        return {
            "pseudo_counts": list(self.pseudo_counts),
            "parents": list(self.parents),
            "n_categories": list(self.n_categories),
        }

    def _with(self, tables):
        value = object.__new__(type(self))
        value.parents, value.n_categories = self.parents, self.n_categories
        value._set_cells(tables)
        return value

    def _counts(self, X):
        codes = check_codes(X, self.n_categories)
        first = np.cumsum([0] + [table.size for table in self.pseudo_counts])
        known = codes >= 0
        cells = codes + first[:-1]
        for k, found in enumerate(self.parents):
            if not found:
                continue
            at = np.zeros(len(codes), dtype=np.intp)
            for p in found:
                at = at * self.n_categories[p] + codes[:, p]
                known[:, k] &= codes[:, p] >= 0
            cells[:, k] += at * self.n_categories[k]
        if known.all():
            ends, visited = np.arange(len(codes) + 1) * cells.shape[1], cells.ravel()
        else:  # a factor with a missing value is left out
            ends = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
            visited = cells[known]
        return sp.csr_array(
            (np.ones(ends[-1]), visited, ends), shape=(len(codes), first[-1])
        )


class DirichletProduct(DirichletBayesNet):
    """Prior over a product of categorical distributions, one for each feature.

    Parameters
    ----------
    pseudo_counts : list of array-like, or float
        One vector (r,) for each feature with entries > 0, or the number that every
        category gets.
    n_categories : list of int, optional
        Needed if `pseudo_counts` is a float.

    Attributes
    ----------
    pseudo_counts : list of ndarray (1, r)
        One table for each feature.

    Raises
    ------
    ValueError
        For pseudo-counts that are not positive, or do not fit `n_categories`.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), eq. (46).

    Examples
    --------
    >>> from maxent.families import DirichletProduct
    >>> prior = DirichletProduct(1.0, n_categories=[4, 4])
    >>> prior.posterior([[0, 1], [0, 3]]).pseudo_counts[0]
    array([[3., 1., 1., 1.]])
    """

    def __init__(
        self,
        pseudo_counts: float | Sequence[ArrayLike],
        n_categories: Iterable[int] | None = None,
    ) -> None:
        if v.is_real(pseudo_counts):
            each = v.check_positive("pseudo_counts", pseudo_counts)
            if n_categories is None:
                raise ValueError(
                    "n_categories is needed if pseudo_counts is one number."
                )
            n_categories = [v.check_count("n_categories", r) for r in n_categories]
            pseudo_counts = [np.full(r, each) for r in n_categories]
        given = cast(Sequence[ArrayLike], pseudo_counts)
        tables = [np.reshape(table, (1, -1)) for table in given]
        super().__init__(tables, n_categories=n_categories)

    def __repr__(self) -> str:
        return f"DirichletProduct(n_categories={list(self.n_categories)!r})"

    def get_spec(self) -> dict[str, Any]:
        """Parameters by name, enough to build an equal value.

        Returns
        -------
        dict
            Keyword arguments of the constructor.
        """
        return {"pseudo_counts": [table[0] for table in self.pseudo_counts]}


def _check_tables(
    tables: Sequence[ArrayLike], shapes: list[tuple[int, int]]
) -> list[FloatArray]:
    """Pseudo-counts > 0 of these shapes, as copies."""
    if len(tables) != len(shapes):
        raise ValueError(
            f"pseudo_counts has {len(tables)} tables; one for each of the "
            f"{len(shapes)} features is needed."
        )
    return [
        check_table(k, table, shape)
        for k, (table, shape) in enumerate(zip(tables, shapes, strict=True))
    ]


def check_parents(
    parents: Iterable[Iterable[int]], n: int
) -> tuple[tuple[int, ...], ...]:
    """Tuple of parents for each of n features, without a cycle."""
    if isinstance(parents, str) or not isinstance(parents, Iterable):
        raise ValueError(
            f"parents={v.shown(parents)} must be a list with the parents of every "
            "feature, such as [(), (0,)]."
        )
    parents = list(parents)
    if len(parents) != n:
        raise ValueError(
            f"parents has {len(parents)} entries; one for each of the {n} features is "
            "needed."
        )
    out = []
    for k, found in enumerate(parents):
        numbers = isinstance(found, Iterable) and not isinstance(found, str)
        found = tuple(found) if numbers else found
        if not numbers or not all(isinstance(p, Integral) for p in found):
            raise ValueError(
                f"parents[{k}]={v.shown(found)} must be a tuple of features, numbers "
                f"between 0 and {n - 1}; () if there are none."
            )
        found = tuple(int(p) for p in found)
        if any(not 0 <= p < n or p == k for p in found) or len(set(found)) < len(found):
            raise ValueError(
                f"parents[{k}] = {found} must be different features between 0 and "
                f"{n - 1}, other than {k} itself."
            )
        out.append(found)
    parents_first(out)
    return tuple(out)


def parents_first(
    parents: Sequence[tuple[int, ...]], names: Sequence[str] | None = None
) -> list[int]:
    """Features in an order in which parents come before their children.

    `names` are what errors call the features, by default their numbers.
    """
    n, out = len(parents), []
    placed: set[int] = set()
    while len(placed) < n:
        ready = [
            k for k in range(n) if k not in placed and placed.issuperset(parents[k])
        ]
        if not ready:
            cycle: list[Any] = sorted(set(range(n)) - placed)
            cycle = cycle if names is None else [names[k] for k in cycle]
            raise ValueError(
                f"parents has a cycle among the features {v.shown(cycle)}; a Bayes net "
                "has none: take one of these parents out."
            )
        out += ready
        placed.update(ready)
    return out
