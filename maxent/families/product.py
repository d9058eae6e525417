"""Vectors whose groups of columns are independent, each of a family of its own."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from maxent._support import validation as v
from maxent._support.typing import ArrayLike
from maxent.families._minimal import joined
from maxent.families.base import ExponentialFamily
from maxent.families.columns import Independent, OfParts


class Product(OfParts):
    """Distributions of vectors whose groups of columns are independent.

    Parameters
    ----------
    factors : dict
        ``{columns: batch}``: the number of a column with a batch of a family of
        numbers, or a tuple of numbers with a batch of vectors of that size, or with
        ``Independent`` columns. All have one batch shape, and every column of 0, ...,
        d - 1 is in one of them.

    Attributes
    ----------
    columns : tuple of tuple of int
        The columns of every factor.
    factors : tuple of batches
        What they are distributed by.

    See Also
    --------
    Independent : Columns of one family.

    Notes
    -----
    In fits of models ``family={"visits": Poisson, ("height", "weight"): Gaussian}``
    makes this family. An entry may be missing there (NaN). Shapes, batches and methods
    are those of `ExponentialFamily`.

    Examples
    --------
    A count, and two numbers that go together:

    >>> import numpy as np
    >>> from maxent.families import Gaussian, Poisson, Product
    >>> P = Product({0: Poisson([1.0, 9.0]), (1, 2): Gaussian(np.zeros(2), np.eye(2))})
    >>> P.batch_shape, P.event_shape
    ((2,), (3,))
    >>> P.log_prob([[3, 0.5, -0.5]]).round(2)
    array([[-4.88],
           [-6.29]])
    """

    _common = ("layout",)
    _takes_gaps = True
    factors: tuple[Any, ...]
    columns: tuple[tuple[int, ...], ...]

    def __init__(self, factors: Mapping[Any, ExponentialFamily]) -> None:
        if not isinstance(factors, Mapping) or not factors:
            raise TypeError(
                f"factors={v.shown(factors)} must be a dict of columns and batches, "
                "such as {0: Poisson(rates), (1, 2): Gaussian(mean, cov)}."
            )
        pairs = [_factor(columns, batch) for columns, batch in factors.items()]
        _check_columns([columns for columns, _ in pairs])
        shape = np.broadcast_shapes(*(batch.batch_shape for _, batch in pairs))
        self._hold(
            tuple(columns for columns, _ in pairs),
            tuple(_broadcast(batch, shape) for _, batch in pairs),
        )

    def _hold(self, columns, factors):
        self.__dict__.update(columns=columns, factors=factors)
        self.__dict__["batch_shape"] = factors[0].batch_shape
        self.__dict__["layout"] = tuple(
            (own, type(batch), batch._fixed()) for own, batch in zip(columns, factors)
        )

    def _of(self, factors):
        """Batch of the same columns."""
        new = type(self).__new__(type(self))
        new._hold(self.columns, tuple(factors))
        return new

    def _parts(self):
        return self.factors

    def _layout(self):
        return self.columns

    @property
    def event_shape(self) -> tuple[int, ...]:
        return (sum(map(len, self.columns)),)

    def parameters(self) -> dict[str, Any]:
        return {"factors": dict(zip(self.columns, self.factors))}

    def get_spec(self) -> dict[str, Any]:
        columns = [list(own) for own in self.columns]
        return {"columns": columns, "factors": list(self.factors)}

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Self:
        """Batch from what :meth:`get_spec` returned; it is checked again.

        Parameters
        ----------
        spec : dict
            As `get_spec` returns it.

        Returns
        -------
        Product
        """
        columns = [tuple(own) for own in spec["columns"]]
        return cls(dict(zip(columns, spec["factors"])))

    @classmethod
    def _concatenated(cls, batches):
        each = zip(*(batch.factors for batch in batches))
        return batches[0]._of(type(own[0])._concatenated(own) for own in each)

    def _take(self, number):
        return self._of(part._take(number) for part in self.factors)

    def _with_fixed(self, options):
        given = options.get("layout", self.layout)
        layout = [
            (own, family, part._with_fixed(more))
            for (own, family, more), part in zip(given, self.factors)
        ]
        return {**options, "layout": layout}

    def _log_base(self, X):
        return sum(part._log_base(x) for part, x in self._each(X))

    # -- rows ----------------------------------------------------------------------
    @classmethod
    def _event_to_fit(cls, layout=None, **fixed):
        return (None if layout is None else sum(len(own) for own, *_ in layout),)

    @classmethod
    def _inside(cls, X, layout):
        return np.logical_and.reduce(
            [family._inside(X[..., own], **fixed) for own, family, fixed in layout]
        )

    @classmethod
    def _support_text(cls, layout):
        return "; ".join(
            f"columns {list(own)}: {family._support_text(**fixed)}"
            for own, family, fixed in layout
        )

    def _inner_point(self):
        point = np.zeros(self.event_shape)
        for own, part in zip(self.columns, self.factors):
            point[list(own)] = part._inner_point()
        return point

    @classmethod
    def _statistics(cls, X, layout):
        each = [
            family._statistics(X[..., own], **fixed) for own, family, fixed in layout
        ]
        return np.concatenate(each, axis=-1)

    def _each(self, X):
        """Pairs of factors and their columns of rows."""
        for own, part in zip(self.columns, self.factors):
            yield part, X[..., own]

    # -- values --------------------------------------------------------------------
    def _minimal(self):
        return joined([part._minimal() for part in self.factors])

    def _natural(self):
        return np.concatenate([p.natural_parameters for p in self.factors], axis=-1)

    def _mean(self):
        return np.concatenate([p.mean_parameters for p in self.factors], axis=-1)

    def _cumulant(self, eta):
        sizes = [part.natural_parameters.shape[-1] for part in self.factors]
        each = np.split(eta, np.cumsum(sizes)[:-1], axis=-1)
        return sum(part._cumulant(own) for part, own in zip(self.factors, each))

    def _cumulant_here(self):
        return sum(part._own_cumulant for part in self.factors)

    def _entropy(self):
        return sum(np.asarray(part.entropy()) for part in self.factors)

    def _in_columns(self, each):
        """Arrays (..., columns of a factor) in the order of the columns."""
        order = np.argsort([j for own in self.columns for j in own])
        return np.concatenate(each, axis=-1)[..., order]

    def _moments(self):
        moments = zip(*(part._moments() for part in self.factors))
        return tuple(self._in_columns(each) for each in moments)

    def _sample(self, n, rng):
        return self._in_columns([part._sample(n, rng) for part in self.factors])

    def _log_prob(self, X):
        return sum(part._log_prob(x) for part, x in self._each(X))

    def _log_prob_of_seen(self, X):
        return sum(part._log_prob_of_seen(x) for part, x in self._each(X))

    def _imputed(self, X, shares):
        each = [part._imputed(x, shares) for part, x in self._each(X)]
        return tuple(self._in_columns(parts) for parts in zip(*each))

    # -- pairs ---------------------------------------------------------------------
    def _pairs(self, other):
        for p, q in zip(self.factors, other.factors):
            yield p, p if self is other else q

    def _kl(self, other):
        return sum(p._kl(q) for p, q in self._pairs(other))

    def _affinity(self, other, rho):
        return sum(p._affinity(q, rho) for p, q in self._pairs(other))

    def _affinity_range(self):
        low, high = zip(*(part._affinity_range() for part in self.factors))
        return functools.reduce(np.maximum, low), functools.reduce(np.minimum, high)

    # -- fits ----------------------------------------------------------------------
    @classmethod
    def fit(  # type: ignore[override]  # the families have no default
        cls,
        X: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        layout: Sequence[tuple[Any, Any, dict[str, Any]]],
    ) -> Self:
        """Fit of every factor to weighted rows.

        Parameters
        ----------
        X : array-like (n_samples, d)
            Rows.
        weights : array-like (n_samples,) or (..., n_samples), optional
            Weights >= 0 of the rows. Leading axes give one fit each.
        layout : list of tuple (columns, family, options)
            Numbers of the columns of every factor, its family of vectors, and further
            arguments of the fit.

        Returns
        -------
        Product
            Its batch shape is that of the leading axes.

        Raises
        ------
        ValueError
            If a row is outside the support, or a factor has no fit.
        """
        rows = v.as_doubles("X", X)
        options = cls._complete(rows, {"layout": layout})
        layout, kept = options["layout"], cls._kept(options)
        rows, W = cls._checked(rows, weights, **kept)
        fits = {}
        for own, family, options in layout:
            try:
                fits[own] = family.fit(rows[..., list(own)], W, **options)
            except ValueError as error:
                error.args = (f"columns {list(own)}: {error}",)
                raise
        return cls(fits)

    @classmethod
    def _complete(cls, X, options):
        layout = [
            (tuple(own), family, dict(family._complete(X[..., list(own)], more)))
            for own, family, more in options["layout"]
        ]
        return {**options, "layout": layout}

    @classmethod
    def _kept(cls, options):
        layout = options["layout"]
        return {"layout": [(own, kind, kind._kept(more)) for own, kind, more in layout]}

    @classmethod
    def _sums_suffice(cls, layout=None):
        return layout is not None and all(
            family._sums_suffice(**options) for _, family, options in layout
        )

    def _part_sums(self, X, W):
        each = [part._part_sums(x, W)[1:] for part, x in self._each(X)]
        return W.sum(axis=1), *(total for sums in each for total in sums)

    def _own_sums(self, total):
        each = [part._own_sums(total)[1:] for part in self.factors]
        return total, *(own for sums in each for own in sums)

    def _refitted(self, total, *sums):
        fits = []
        for part in self.factors:
            own, sums = sums[: part._n_sums], sums[part._n_sums :]
            fits.append(part._refitted(total, *own))
        return self._of(fits)

    def _replaced(self, used, new):
        pairs = zip(self.factors, new.factors)
        return self._of(old._replaced(used, part) for old, part in pairs)


def _factor(columns: Any, batch: Any) -> tuple[tuple[int, ...], Any]:
    """Columns of a factor, and its batch as one of vectors."""
    if not isinstance(batch, ExponentialFamily) or len(batch.event_shape) > 1:
        raise TypeError(
            f"factors[{columns!r}]={v.shown(batch)} must be a batch of a family of "
            "numbers or vectors."
        )
    own = columns if isinstance(columns, tuple) else (columns,)
    if not batch.event_shape:
        batch = Independent(batch if isinstance(columns, tuple) else batch[..., None])
    if batch.event_shape != (len(own),):
        raise ValueError(
            f"factors[{columns!r}] is over {batch.event_shape[0]} columns; the key has "
            f"{len(own)}."
        )
    return tuple(v.check_count("column", j, 0) for j in own), batch


def _check_columns(columns: list[tuple[int, ...]]) -> None:
    """Refuse columns that are left out or in two factors."""
    numbers = sorted(j for own in columns for j in own)
    if numbers != list(range(len(numbers))):
        raise ValueError(
            f"factors are over the columns {numbers}; every one of 0, ..., d - 1 must "
            "be in one of them."
        )


def _broadcast(batch: Any, shape: tuple[int, ...]) -> Any:
    """A batch of this shape."""
    if batch.batch_shape == shape:
        return batch
    number = np.arange(int(np.prod(batch.batch_shape))).reshape(batch.batch_shape)
    return batch._take(np.broadcast_to(number, shape))
