"""Conjugate priors as blocks: posteriors of weighted rows answer all that is asked.

Source: Jaakkola, Meila & Jebara (1999), Theorem 1 and section 3.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from maxent._core.tall_matrices import TallMatrix
from maxent._support import validation as v
from maxent._support.tables import HtmlTable
from maxent._support.typing import ArrayLike, FloatArray, IntArray, MatrixLike
from maxent._support.underflow import allow_underflow
from maxent.families.priors.block import Block


class ConjugatePrior(HtmlTable, ABC):
    """Base class of conjugate priors: values whose posterior is of the same class.

    A subclass defines what is abstract here, on prepared rows.
    """

    #: log of the base measure of one row: what a unit of weight adds to log Z
    _log_measure = 0.0
    #: what no log-likelihood of a row exceeds
    _largest = np.inf
    #: whether rows may be sparse
    _takes_sparse = False
    #: see :class:`Block`
    _cheap_products = False

    def _shown_in_table(self):
        # priors of a user need no specification
        return getattr(self, "get_spec", dict)()

    @allow_underflow
    def block(
        self, X: MatrixLike, base_weight: ArrayLike | None = None
    ) -> ConjugateBlock:
        """Bind the prior to rows.

        Parameters
        ----------
        X : array-like (n, n_features)
        base_weight : array-like (n,), optional
            Weights that the rows have from the start: the prior of the block is this
            prior updated with them. An improper prior needs them.

        Returns
        -------
        ConjugateBlock
        """
        return ConjugateBlock(self, X, base_weight)

    @allow_underflow
    def posterior(self, X: MatrixLike, weight: ArrayLike | None = None) -> Self:
        """The prior updated with weighted rows.

        Parameters
        ----------
        X : array-like (n, n_features)
        weight : array-like (n,), optional
            Real; one by default.

        Returns
        -------
        ConjugatePrior
            Of the same class.

        Raises
        ------
        ValueError
            If the weights lie outside the domain.
        """
        data = self._prepare(X)
        n = self._length(data)
        if weight is None:
            weight = np.ones(n)
        weight = _check_real_weights("weight", weight, n)
        found = self._update(data, weight)
        if found is None:
            raise ValueError(
                f"{type(self).__name__} has no posterior at these weights: they lie "
                "outside the domain. Use smaller negative weights or a proper prior."
            )
        return found

    @allow_underflow
    def expected_log_prob(self, X: MatrixLike) -> FloatArray:
        """Expected log-likelihood of rows under this prior.

        Parameters
        ----------
        X : array-like (n, n_features)
            Rows.

        Returns
        -------
        ndarray (n,)
            E log p(x | theta).
        """
        return self._expected(self._prepare(X))

    @allow_underflow
    def predictive_log_prob(self, X: MatrixLike) -> FloatArray:
        """Log of the expected likelihood of rows under this prior.

        Parameters
        ----------
        X : array-like (n, n_features)
            Rows.

        Returns
        -------
        ndarray (n,)
            log E p(x | theta).
        """
        return self._predictive(self._prepare(X))

    def _without_rows(self):
        """This prior, free of what it may remember of the rows of a block."""
        return self

    # -- prepared rows: for most priors the rows themselves ------------------------
    def _prepare(self, X):
        return np.ascontiguousarray(X, dtype=np.float64)

    def _length(self, data):
        return len(data)

    def _bound(self, X):
        """The rows of a block, prepared for many calls."""
        return self._prepare(X)

    def _matrix_cost(self, data):
        """See :class:`Block`."""
        return Block._matrix_cost

    # -- what a subclass states ----------------------------------------------------
    @abstractmethod
    def _update(self, data, weight):
        """The posterior, or None outside the domain."""

    @abstractmethod
    def _log_normalizer(self):
        """Log of the normaliser, up to what all updates of one prior share."""

    @abstractmethod
    def _expected(self, data):
        """E log p of every row, (n,)."""

    @abstractmethod
    def _predictive(self, data):
        """Log E p of every row, (n,)."""

    def _factor_rows(self, data):
        """The rows of F as they are written when they are needed, or None."""
        return None

    def _factor(self, data):
        """F (n, rank) with Cov(log p_s, log p_t) = (F F')_st; or `_factor_rows`."""
        return TallMatrix([self._factor_rows(data)]).to_array()

    @abstractmethod
    def _rank(self, data):
        """Columns of the factor, known without it."""

    @abstractmethod
    def _product(self, data, x):
        """F F' x without the factor, (n,)."""

    @abstractmethod
    def _max_step(self, data, direction):
        """Largest step of weights along a direction that leaves the prior proper."""

    @abstractmethod
    def _why_improper(self, data, weight):
        """The sentence for rows that give no prior."""

    def _refusal(self, data, weight):
        """The error that says it."""
        return ValueError(self._why_improper(data, weight))

    # a domain of linear inequalities: besides this, what changes the slacks of rows,
    # `_slack_changes(data, x)`, and its transpose, `_slack_gradient(data, z)`; and
    # `_factor` and `_product` take what is added along them, `curvature`
    def _slacks(self):
        return None

    def _with_slack_duals(self, duals):
        """This value with ``_slack_gradient(data, duals)`` less per row, or None."""
        return None

    def _matrix(self, data, curvature=None):
        """Cov(log p_s, log p_t) of rows, or None if it takes one product per row."""
        return None

    def _part(self, data, rows):
        """Some of the prepared rows, where `_product` can do with them; or None."""
        return None


class ConjugateBlock(Block):
    """A conjugate prior bound to rows; see :meth:`ConjugatePrior.block`.

    Parameters
    ----------
    prior : ConjugatePrior
    X : array-like (n, n_features)
    base_weight : array-like (n,), optional

    Attributes
    ----------
    prior : ConjugatePrior
    data : object
        The rows as the prior prepares them.
    base_weight : ndarray (n,)
        Weights that the rows have from the start.
    """

    def __init__(
        self,
        prior: ConjugatePrior,
        X: MatrixLike,
        base_weight: ArrayLike | None = None,
    ) -> None:
        self.prior: Any = prior  # slacks are for priors that have some
        self.data = prior._bound(X)
        self.n_rows = prior._length(self.data)
        self.rank = prior._rank(self.data)
        self.largest = prior._largest
        self.cheap_products = prior._cheap_products
        self._matrix_cost = prior._matrix_cost(self.data)
        self._set_base_weight(base_weight)

    def _set_base_weight(self, base_weight):
        self.base_weight = (
            np.zeros(self.n_rows)
            if base_weight is None
            else _check_real_weights("base_weight", base_weight, self.n_rows)
        )
        self._last: list[Any] = []  # the last few posteriors: solvers come back to them
        start = self._at(np.zeros(self.n_rows))
        if start is None:
            raise self.prior._refusal(self.data, self.base_weight)
        self._start = start._log_normalizer()

    def _with_base_weight(self, base_weight):
        """The block of the same prior and rows, with other weights from the start."""
        block = copy.copy(self)
        block._set_base_weight(base_weight)
        return block

    def _at(self, a):
        """Posterior at weights a in the rows' coordinates, or None outside."""
        a = np.asarray(a, dtype=np.float64)
        key = a.tobytes()  # quick to compare
        for known, posterior in self._last:
            if known == key:
                return posterior
        posterior = self.prior._update(self.data, self.base_weight + a)
        self._last = [(key, posterior), *self._last[:2]]
        return posterior

    @allow_underflow
    def posterior(self, a: FloatArray) -> Any:
        """The posterior at given weights.

        Parameters
        ----------
        a : ndarray (n_rows,)
            Real row weights.

        Returns
        -------
        ConjugatePrior or None
            A value of the prior's class; None outside the domain.
        """
        found = self._at(a)
        return None if found is None else found._without_rows()

    def log_partition(self, a: FloatArray) -> float:
        found = self._at(a)
        if found is None:
            return np.inf
        measure = self.prior._log_measure * float(np.sum(a))
        return found._log_normalizer() - self._start + measure

    def mean(self, a: FloatArray) -> FloatArray:
        return self._inside(a)._expected(self.data)

    def hessian_factor(self, a: FloatArray) -> FloatArray:
        return self._inside(a)._factor(self.data)

    def _factor_rows(self, a):
        if type(self).hessian_factor is not ConjugateBlock.hessian_factor:
            return None  # a subclass has another
        return self._inside(a)._factor_rows(self.data)

    def barrier_factor(self, a: FloatArray, curvature: FloatArray) -> FloatArray:
        return self._inside(a)._factor(self.data, curvature)

    def hessian_product(self, a: FloatArray, x: FloatArray) -> FloatArray:
        return self._inside(a)._product(self.data, x)

    def hessian_among(
        self, a: FloatArray, rows: IntArray, curvature: FloatArray | None = None
    ) -> Callable[[FloatArray], FloatArray]:
        part = self.prior._part(self.data, rows)
        if part is None:
            return super().hessian_among(a, rows, curvature)
        posterior = self._inside(a)
        if curvature is None:
            return lambda x: posterior._product(part, x)
        return lambda x: posterior._product(part, x, curvature)

    def hessian_matrix(
        self, a: FloatArray, rows: IntArray, curvature: FloatArray | None = None
    ) -> FloatArray | None:
        part = self.prior._part(self.data, rows)
        return None if part is None else self._inside(a)._matrix(part, curvature)

    def slacks(self, a: FloatArray) -> FloatArray | None:
        return self._inside(a)._slacks()

    def slack_changes(self, x: FloatArray) -> FloatArray:
        return self.prior._slack_changes(self.data, x)

    def slack_gradient(self, z: FloatArray) -> FloatArray:
        return self.prior._slack_gradient(self.data, z)

    def with_slack_duals(self, duals: FloatArray) -> Block | None:
        if self.prior._with_slack_duals(duals) is None:
            return None
        return _WithSlackDuals(self, duals)

    def max_step(self, a: FloatArray, direction: FloatArray) -> float:
        return self._inside(a)._max_step(self.data, direction)

    def score(self, a: FloatArray, X: ArrayLike) -> FloatArray:
        return self._inside(a).expected_log_prob(X)

    def _inside(self, a):
        found = self._at(a)
        if found is None:
            raise ValueError("the weights lie outside the domain of the block.")
        return found


class _WithSlackDuals(ConjugateBlock):
    """See :meth:`Block.with_slack_duals`."""

    def __init__(self, block, duals):
        self.__dict__.update(vars(block))
        self._duals, self._last = duals, []

    def _at(self, a):
        found = super()._at(a)
        return None if found is None else found._with_slack_duals(self._duals)


def _check_real_weights(name, weight, n):
    """Finite real weights, one for each of n rows."""
    weight = v.as_doubles(name, weight)
    if weight.shape != (n,):
        raise ValueError(
            f"{name} has shape {weight.shape}; it must hold one number for each of the "
            f"{n} rows."
        )
    if not np.isfinite(weight).all():
        raise ValueError(f"{name} has NaN or infinite entries; remove those rows.")
    return weight
