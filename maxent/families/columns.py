"""Vectors whose columns are independent: of one family, or of several kinds.

    p(x) = prod_j p_j(x_j),        log int p^rho q^rho = sum_j log int p_j^rho q_j^rho

so statistics stand one behind the other, cumulants and entropies add up, and a column
that was not seen (NaN) leaves the product.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from maxent._support import validation as v
from maxent._support.typing import ArrayLike, FloatArray
from maxent.families import _checks
from maxent.families._pairs import inner, tiles
from maxent.families.base import ExponentialFamily


class OfParts(ExponentialFamily):
    """Batch made of batches of other families; base class."""

    @abstractmethod
    def _parts(self) -> tuple[ExponentialFamily, ...]:
        """Batches that it is made of."""

    def _arrays(self) -> list[FloatArray]:
        """Parameters that a fit changes."""
        return [array for part in self._parts() for array in part._arrays()]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self._layout() == other._layout() and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((type(self), *map(hash, self._parts())))

    def _layout(self) -> Any:
        """Description of the places of the parts."""
        return ()

    def _n_free(self):
        return sum(part._n_free() for part in self._parts())

    @classmethod
    def _checked(cls, X, weights, **fixed):
        """Rows of positive weight in the support, and their weights."""
        (d,) = cls._event_to_fit(**fixed)
        if X.ndim < 2 or (d is not None and X.shape[-1] != d):
            columns = "n_columns" if d is None else d
            raise ValueError(f"X has shape {X.shape}, expected (n_samples, {columns}).")
        W, _ = _checks.row_weights(weights, X.shape[:-1])
        if X.ndim == 2:
            used = (W > 0).reshape(-1, len(X)).any(axis=0)
            X, W = X[used], W[..., used]
        cls._check_support(X, **fixed)
        return X, W


class Independent(OfParts):
    """Distributions of vectors with independent columns of one family of numbers.

    Parameters
    ----------
    members : batch (batch, d)
        Of a family of numbers, such as ``Poisson(rates)``; its last axis are the
        columns.

    Attributes
    ----------
    members : ExponentialFamily

    See Also
    --------
    Product : Columns of several families.
    DiagonalGaussian : Independent Gaussian columns.

    Notes
    -----
    Mixtures and hidden Markov models take this family by themselves where rows of
    several columns are fitted by a family of numbers, as by ``family=Bernoulli``.
    Shapes, batches and methods are those of `ExponentialFamily`. In fits of models an
    entry may be missing (NaN).

    Examples
    --------
    >>> from maxent.families import Bernoulli, Independent
    >>> P = Independent(Bernoulli([[0.1, 0.9, 0.5], [0.5, 0.5, 0.5]]))
    >>> P.batch_shape, P.event_shape
    ((2,), (3,))
    >>> P.log_prob([[0, 1, 1]]).round(3)
    array([[-0.904],
           [-2.079]])
    """

    _common = ("family", "options")
    _takes_gaps = True
    _n_sums = 2
    members: Any

    def __init__(self, members: ExponentialFamily) -> None:
        if not isinstance(members, ExponentialFamily) or members.event_shape:
            raise TypeError(
                f"members={v.shown(members)} must be a batch of a family of numbers, "
                "such as maxent.families.Poisson(rates)."
            )
        if not members.batch_shape:
            raise ValueError(
                "members is a single distribution; its last batch axis must be the "
                "columns, as in Poisson([[1.0, 2.0]])."
            )
        self._hold(members)

    def _hold(self, members):
        held = {"members": members, "batch_shape": members.batch_shape[:-1]}
        self.__dict__.update(held, family=type(members), options=members._fixed())

    def _parts(self):
        return (self.members,)

    @property
    def event_shape(self) -> tuple[int, ...]:
        return self.members.batch_shape[-1:]

    def parameters(self) -> dict[str, Any]:
        return {"members": self.members}

    @classmethod
    def _of(cls, members):
        """Batch of members that are known to be valid."""
        new = cls.__new__(cls)
        new._hold(members)
        return new

    @classmethod
    def _concatenated(cls, batches):
        family = batches[0].family
        return cls._of(family._concatenated([batch.members for batch in batches]))

    def _take(self, number):
        (d,) = self.event_shape
        return self._of(self.members._take(number[..., None] * d + np.arange(d)))

    def _with_fixed(self, options):
        inner = self.members._with_fixed(options.get("options") or {})
        return {**options, "family": self.family, "options": inner}

    # -- rows ----------------------------------------------------------------------
    @classmethod
    def _event_to_fit(cls, **fixed):
        return (None,)

    @classmethod
    def _inside(cls, X, family, options):
        filled = np.where(np.isnan(X), 0.0, X)
        return (family._inside(filled, **options) | np.isnan(X)).all(axis=-1)

    @classmethod
    def _support_text(cls, family, options):
        text = family._support_text(**options)
        return f"every column is of {family.__name__}, whose {text}"

    def _inner_point(self):
        return self.members._inner_point()

    @classmethod
    def _statistics(cls, X, family, options):
        T = family._statistics(X, **options)
        return T.reshape(*X.shape[:-1], T.shape[-1] * T.shape[-2])

    def _log_base(self, X):
        each = np.asarray(self.members._log_base(X))
        return np.broadcast_to(each, X.shape).sum(axis=-1)

    # -- values --------------------------------------------------------------------
    def _minimal(self):
        return tuple(map(_joined, self.members._minimal()))

    def _natural(self):
        return _joined(self.members.natural_parameters)

    def _mean(self):
        return _joined(self.members.mean_parameters)

    def _cumulant(self, eta):
        each = eta.reshape(*eta.shape[:-1], self.event_shape[0], -1)
        return self.members._cumulant(each).sum(axis=-1)

    def _cumulant_here(self):
        return self.members._own_cumulant.sum(axis=-1)

    def _entropy(self):
        return np.asarray(self.members.entropy()).sum(axis=-1)

    def _moments(self):
        mean, variance = self.members._moments()
        if mean.ndim > len(self.members.batch_shape):  # of categories
            return (np.full(self.members.batch_shape, np.nan),) * 2
        return mean, variance

    def _sample(self, n, rng):
        return np.moveaxis(self.members._sample(n, rng), -1, -2)

    def _log_prob(self, X):
        return self._log_prob_of_seen(X)

    def _log_prob_of_seen(self, X):
        eta, A = self.members.natural_parameters, self.members._own_cumulant
        if X.ndim > 2 or not (np.isfinite(eta).all() and np.isfinite(A).all()):
            return sum(self._log_prob_of_columns(X))
        P = self._flat()
        eta, A = P.natural_parameters, P.members._own_cumulant
        out = np.empty((len(P), len(X)))
        for rows in tiles(len(X), eta.shape[-1]):
            seen, T, log_base = P._seen_statistics(X[rows])
            out[:, rows] = inner(T, eta) + log_base
            out[:, rows] -= A.sum(-1)[:, None] if seen is None else A @ seen.T
        return out.reshape(*self.batch_shape, len(X))

    def _log_prob_of_columns(self, X):
        """Log-densities (batch, n) of every column; zero where nothing was seen."""
        point = self._inner_point()
        for j in range(X.shape[-1]):
            one, lost = self.members[..., j], np.isnan(X[..., j])
            x = np.where(lost, point, X[..., j])
            yield np.where(lost, 0.0, one._log_prob(x))

    def _seen_statistics(self, X):
        """Mask of seen entries, None for all; statistics, and log h of each row.

        Statistics of entries that were not seen are zero.
        """
        lost, fixed = np.isnan(X), self.options
        if not lost.any():
            T = self._statistics(X, self.family, fixed)
            return None, T, self._log_base(X)
        filled = np.where(lost, self._inner_point(), X)
        T = np.where(lost[..., None], 0.0, self.family._statistics(filled, **fixed))
        log_base = np.where(lost, 0.0, self.members._log_base(filled))
        return (~lost).astype(float), T.reshape(len(X), -1), log_base.sum(axis=-1)

    def _imputed(self, X, shares):
        columns = range(self.event_shape[0])
        each = [self.members[:, j]._imputed(X[:, j], shares) for j in columns]
        return tuple(np.stack(parts, axis=1) for parts in zip(*each))

    # -- pairs ---------------------------------------------------------------------
    def _columns_of(self, other):
        for j in range(self.event_shape[0]):
            mine = self.members[:, j]
            yield mine, mine if other is self else other.members[:, j]

    def _kl(self, other):
        return sum(p._kl(q) for p, q in self._columns_of(other))

    def _affinity(self, other, rho):
        return sum(p._affinity(q, rho) for p, q in self._columns_of(other))

    def _affinity_range(self):
        low, high = self.members.affinity_range()
        return np.asarray(low).max(axis=-1), np.asarray(high).min(axis=-1)

    # -- fits ----------------------------------------------------------------------
    @classmethod
    def fit(  # type: ignore[override]  # the family has no default
        cls,
        X: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        smoothing: float = 0.0,
        family: type[ExponentialFamily],
        options: Mapping[str, Any] | None = None,
    ) -> Self:
        """Fit of every column to weighted rows.

        Parameters
        ----------
        X : array-like (..., n_samples, d)
            Rows; NaN where an entry is missing. Leading axes give one fit each.
        weights : array-like (n_samples,) or (..., n_samples), optional
            Weights >= 0 of the rows. Leading axes give one fit each.
        smoothing : float, default=0.0
            As of the family's `fit`.
        family : class
            Of numbers.
        options : dict, optional
            Further arguments of its `fit`.

        Returns
        -------
        Independent
            Its batch shape is that of the leading axes.

        Raises
        ------
        ValueError
            If an entry is outside the support, or a column has no fit.
        """
        rows = v.as_doubles("X", X)
        given = dict(family._complete(rows, {} if options is None else options))
        rows, W = cls._checked(
            rows, weights, family=family, options=family._kept(given)
        )
        if smoothing:
            given["smoothing"] = smoothing
        fits = []
        for j in range(rows.shape[-1]):
            x = rows[..., j]
            w, seen = W, ~np.isnan(x)
            if x.ndim == 1 and not seen.all():
                x, w = x[seen], None if W is None else W[..., seen]
            try:
                fits.append(family.fit(x, w, **given))
            except ValueError as error:
                error.args = (f"column {j}: {error}",)
                raise
        return cls(stacked(fits))

    @classmethod
    def _complete(cls, X, options):
        family, inner = options["family"], options.get("options") or {}
        return {**options, "options": family._complete(X, inner)}

    @classmethod
    def _kept(cls, options):
        family = options["family"]
        return {"family": family, "options": family._kept(options["options"])}

    @classmethod
    def _sums_suffice(cls, family=None, **fixed):
        return family is not None and family._sums_suffice()

    def _part_sums(self, X, W):
        total, T_sum = np.zeros((len(W), X.shape[1])), 0.0
        for rows in tiles(len(X), self.natural_parameters.shape[-1]):
            seen, T, _ = self._seen_statistics(X[rows])
            w = W[:, rows]
            total += w.sum(axis=1)[:, None] if seen is None else w @ seen
            T_sum = T_sum + w @ T
        return W.sum(axis=1), total, T_sum

    def _own_sums(self, total):
        each = np.broadcast_to(total[:, None], self.members.batch_shape)
        return total, each, total[:, None] * self.mean_parameters

    def _refitted(self, total, *sums):
        each, T_sum = sums
        used = (each > 0).ravel()
        old = self.members._flat()
        k = T_sum.size // max(each.size, 1)
        new = old[used]._refitted(each.ravel()[used], T_sum.reshape(-1, k)[used])
        place = np.arange(each.size).reshape(each.shape)
        return type(self)(old._replaced(used, new)[place])

    def _replaced(self, used, new):
        each = np.broadcast_to(used[:, None], self.members.batch_shape)
        members = self.members._flat()._replaced(each.ravel(), new.members._flat())
        return type(self)(members[np.arange(each.size).reshape(each.shape)])


def _joined(each):
    """Arrays (..., d, k) with the last axes as one."""
    return each.reshape(*each.shape[:-2], each.shape[-2] * each.shape[-1])


def stacked(batches: Sequence[Any]) -> Any:
    """Batches of one family and shape as one, along a new last batch axis."""
    first = batches[0]
    parameters = {
        name: np.stack([getattr(one, name) for one in batches], axis=-1 - core)
        for name, core in first._core
    }
    return type(first)._from_valid(parameters, first._common_arguments())
