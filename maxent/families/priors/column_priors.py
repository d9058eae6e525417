"""Products of conjugate priors over groups of columns.

    log p(x | theta) = sum_g log p_g(x_g | theta_g),        log Z(a) = sum_g log Z_g(a)

The groups are independent given their parameters, and so are the parameters. A group of
which an entry is missing (NaN) leaves the product of its row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from maxent._support import validation as v
from maxent._support.validation import called
from maxent.families.priors.conjugate import ConjugatePrior
from maxent.families.priors.family_prior import integrate_together

UNCOUNTED = " (rows that miss an entry are not counted)"
_NARROW = 20  # columns of the factors that products keep together


class ColumnError(ValueError):
    """Error about the rows of some columns."""

    def __init__(self, columns: tuple[int, ...], reason: str) -> None:
        super().__init__(f"{called('column', columns)}: {reason}")
        self.columns, self.reason = columns, reason

    def with_names(self, names: list[str] | None) -> str:
        """Its text with the names of the columns."""
        return f"{called('column', self.columns, names)}: {self.reason}"


class ProductPrior(ConjugatePrior):
    """Conjugate prior of independent groups of columns.

    Parameters
    ----------
    factors : dict
        ``{columns: prior}``: the number of a column, or a tuple of numbers, with a
        conjugate prior of rows of these columns. Columns may be left out.

    Attributes
    ----------
    columns : tuple of tuple of int
        The columns of every factor.
    factors : tuple of ConjugatePrior

    See Also
    --------
    FamilyPrior : Priors of single columns.

    Examples
    --------
    A count, and two numbers that go together:

    >>> import numpy as np
    >>> from maxent.families import FamilyPrior, NormalInverseWishart, Poisson
    >>> from maxent.families import ProductPrior
    >>> prior = ProductPrior({
    ...     0: FamilyPrior(Poisson(1.0), [3.0], 2.0),
    ...     (1, 2): NormalInverseWishart(np.zeros(2), 1.0, 4.0, np.eye(2)),
    ... })
    >>> posterior = prior.posterior([[4.0, 0.5, -1.0], [6.0, np.nan, 2.0]])
    >>> posterior.factors[0].count, posterior.factors[1].mean_precision
    (4.0, 2.0)
    """

    factors: tuple[Any, ...]
    columns: tuple[tuple[int, ...], ...]

    def __init__(self, factors: Mapping[Any, ConjugatePrior]) -> None:
        if not isinstance(factors, Mapping) or not factors:
            raise TypeError(
                f"factors={v.shown(factors)} must be a dict of columns and priors, "
                "such as {0: FamilyPrior(Poisson(1.0), [3.0], 1.0)}."
            )
        columns = []
        for key, prior in factors.items():
            if not isinstance(prior, ConjugatePrior):
                raise TypeError(
                    f"factors[{key!r}]={v.shown(prior)} must be a conjugate prior of "
                    "maxent.families."
                )
            own = key if isinstance(key, tuple) else (key,)
            columns.append(tuple(v.check_count("column", j, 0) for j in own))
        every = [j for own in columns for j in own]
        if len(set(every)) < len(every):
            twice = next(j for j in every if every.count(j) > 1)
            raise ValueError(f"factors has column {twice} twice; it belongs to one.")
        self._set(tuple(columns), tuple(factors.values()), 0.0)

    def _set(self, columns, factors, log_measure):
        self.columns, self.factors = columns, factors
        self._joined: Any = None, None, None  # rows, wide factors, and the narrow ones
        self._measured = log_measure  # of all rows of the posterior

    def _with(self, factors, log_measure):
        value = object.__new__(type(self))
        value._set(self.columns, tuple(factors), log_measure)
        return value

    def _without_rows(self):
        return self._with([f._without_rows() for f in self.factors], 0.0)

    def __repr__(self) -> str:
        inside = ", ".join(
            f"{own if len(own) > 1 else own[0]}: {prior!r}"
            for own, prior in zip(self.columns, self.factors)
        )
        return f"ProductPrior({{{inside}}})"

    def get_spec(self) -> dict[str, Any]:
        """Parameters by name, as model files keep them.

        Returns
        -------
        dict
        """
        columns = [list(own) for own in self.columns]
        return {"columns": columns, "factors": list(self.factors)}

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Self:
        """Prior from what :meth:`get_spec` returned; it is checked again.

        Parameters
        ----------
        spec : dict
            As `get_spec` returns it.

        Returns
        -------
        ProductPrior
        """
        columns = [tuple(own) for own in spec["columns"]]
        return cls(dict(zip(columns, spec["factors"])))

    @property
    def _largest(self):
        return float(sum(prior._largest for prior in self.factors))

    # -- on rows -------------------------------------------------------------------
    def _parts(self, X, prepare):
        """Rows (None of all) without a missing entry of each factor, prepared."""
        X = v.as_doubles("X", X)
        last = max(j for own in self.columns for j in own)
        if X.ndim != 2 or X.shape[1] <= last:
            raise ValueError(
                f"X has shape {X.shape}; rows with a column {last} are expected."
            )
        if np.isinf(X).any():
            raise ValueError("X has infinite entries; remove them.")
        parts = []
        for own, prior in zip(self.columns, self.factors):
            x = X[:, list(own)]
            lost = np.isnan(x).any(axis=1)
            seen = np.flatnonzero(~lost) if lost.any() else None
            try:
                parts.append((seen, prepare(prior, x if seen is None else x[seen])))
            except ValueError as error:
                which = "" if seen is None else UNCOUNTED
                raise ColumnError(own, f"{error}{which}") from None
        return len(X), parts

    def _prepare(self, X):
        return self._parts(X, lambda prior, x: prior._prepare(x))

    def _bound(self, X):
        return self._parts(X, lambda prior, x: prior._bound(x))

    def _length(self, data):
        return data[0]

    def _each(self, data):
        """Factors with their rows: the prior, which rows, and these prepared."""
        for prior, (seen, part) in zip(self.factors, data[1]):
            yield prior, slice(None) if seen is None else seen, part

    def _update(self, data, weight):
        factors, log_measure = [], self._measured
        for prior, seen, part in self._each(data):
            found = prior._update(part, weight[seen])
            if found is None:
                return None
            factors.append(found)
            log_measure += prior._log_measure * float(weight[seen].sum())
        integrate_together(factors)
        return self._with(factors, log_measure)

    def _log_normalizer(self):
        total = sum(prior._log_normalizer() for prior in self.factors)
        return total + self._measured

    def _sum(self, name, data):
        total = np.zeros(data[0])
        for prior, seen, part in self._each(data):
            total[seen] += getattr(prior, name)(part)
        return total

    def _expected(self, data):
        return self._sum("_expected", data)

    def _predictive(self, data):
        return self._sum("_predictive", data)

    def _factor(self, data):
        return self._factor_of(data, list(self._each(data)))

    def _factor_of(self, data, parts):
        columns = [np.empty((data[0], 0))]
        for prior, seen, part in parts:
            own = prior._factor(part)
            full = np.zeros((data[0], own.shape[1]))
            full[seen] = own
            columns.append(full)
        return np.hstack(columns)

    def _rank(self, data):
        return sum(prior._rank(part) for prior, _, part in self._each(data))

    def _product(self, data, x):
        known, parts, narrow = self._joined if self._joined[0] is data else (None,) * 3
        if known is None:
            each = list(self._each(data))
            few = [prior._rank(part) <= _NARROW for prior, _, part in each]
            narrow = self._factor_of(data, [p for p, own in zip(each, few) if own])
            parts = [p for p, own in zip(each, few) if not own]
            self._joined = data, parts, narrow
        total = narrow @ (narrow.T @ x)
        for prior, seen, part in parts:
            total[seen] += prior._product(part, x[seen])
        return total

    def _max_step(self, data, direction):
        return min(
            prior._max_step(part, direction[seen])
            for prior, seen, part in self._each(data)
        )

    def _refusal(self, data, weight):
        for own, (prior, seen, part) in zip(self.columns, self._each(data)):
            if prior._update(part, weight[seen]) is None:
                error = prior._refusal(part, weight[seen])
                error.args = (f"{called('column', own)}: {error}",)
                return error
        return super()._refusal(data, weight)

    def _why_improper(self, data, weight):
        return "the base weights leave the domain of this prior; use smaller ones."
