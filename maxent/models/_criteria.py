"""Information criteria: to choose the size of a model from the data of the fit.

Sources: Akaike (1974), A new look at the statistical model identification; Schwarz
(1978), Estimating the dimension of a model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._inputs.sequences import Sequences
from maxent._support import validation as v

NONE_HELD: Mapping[str, Any] = {}


class FreeParameters(ABC):
    """Number of parameters that data have chosen, or may choose."""

    @property
    def n_parameters(self) -> int:
        """Number of free parameters, those that change the law of the data.

        What the fit has held (`fixed=`) is not counted, nor probabilities and
        coefficients of zero, nor what only sets the coordinates of hidden states.
        """
        chosen: int | None = self.__dict__.get("_count_of_fit")
        return self._free_parameters() if chosen is None else chosen

    @abstractmethod
    def _free_parameters(self, held: Mapping[str, Any] = NONE_HELD) -> int:
        """Number of free parameters beside those of masks by name."""

    def _with_held(self, held: Mapping[str, Any]) -> Self:
        """This model, new and not seen by anyone, that counts without what is held."""
        if held:
            self.__dict__["_count_of_fit"] = self._free_parameters(held)
        return self


class InformationCriteria(FreeParameters):
    """AIC and BIC of models of sequences, from their log-likelihood."""

    @abstractmethod
    def log_likelihood(
        self, sequences: Any, lengths: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Log-likelihood of every sequence."""

    @abstractmethod
    def _read_all(self, sequences: Any, lengths: ArrayLike | None) -> Sequences:
        """Sequences that fit this model."""

    def aic(
        self, sequences: Any, lengths: ArrayLike | None = None, **more: Any
    ) -> float:
        """Akaike's criterion: the model of the smallest one predicts best.

        Parameters
        ----------
        sequences, lengths
            As for `log_likelihood`: the data of the fit.
        **more
            Further arguments of `log_likelihood`.

        Returns
        -------
        float
            ``2 * n_parameters - 2 * log_likelihood``, in nats.
        """
        total = self.log_likelihood(sequences, lengths, **more).sum()
        return penalised(self.n_parameters, 2.0, total)

    def bic(
        self, sequences: Any, lengths: ArrayLike | None = None, **more: Any
    ) -> float:
        """Schwarz's criterion, which takes smaller models than `aic`.

        Parameters
        ----------
        sequences, lengths
            As for `log_likelihood`: the data of the fit.
        **more
            Further arguments of `log_likelihood`.

        Returns
        -------
        float
            ``n_parameters * log(n) - 2 * log_likelihood`` in nats, with n observed
            steps of all sequences.
        """
        found = self._read_all(sequences, lengths)
        values = found.values
        seen = values >= 0 if values.ndim == 1 else ~np.isnan(values).all(axis=1)
        size = np.log(max(int(seen.sum()), 1))
        total = self.log_likelihood(found, **more).sum()
        return penalised(self.n_parameters, size, total)


class RowCriteria(FreeParameters):
    """AIC and BIC of models of rows, from their log-likelihood."""

    @abstractmethod
    def log_likelihood(self, X: ArrayLike) -> NDArray[np.float64]:
        """Log-likelihood of every row."""

    def _n_observed(self, X: ArrayLike) -> int:
        """Number of rows of which something is observed."""
        rows = v.as_doubles("X", X)
        return int(np.count_nonzero(~np.isnan(rows.reshape(len(rows), -1)).all(axis=1)))

    def aic(self, X: ArrayLike) -> float:
        """Akaike's criterion: the model of the smallest one predicts best.

        Parameters
        ----------
        X : array-like
            Rows, as for `log_likelihood`: the data of the fit.

        Returns
        -------
        float
            ``2 * n_parameters - 2 * log_likelihood``, in nats.
        """
        return penalised(self.n_parameters, 2.0, self.log_likelihood(X).sum())

    def bic(self, X: ArrayLike) -> float:
        """Schwarz's criterion, which takes smaller models than `aic`.

        Parameters
        ----------
        X : array-like
            Rows, as for `log_likelihood`: the data of the fit.

        Returns
        -------
        float
            ``n_parameters * log(n) - 2 * log_likelihood`` in nats, with n rows of which
            something is observed.
        """
        total = self.log_likelihood(X).sum()
        size = np.log(max(self._n_observed(X), 1))
        return penalised(self.n_parameters, size, total)


def penalised(n_parameters: int, each: float, total: float) -> float:
    """Criterion of a log-likelihood, in which each parameter costs as much."""
    return float(n_parameters * each - 2.0 * total)


def free_probabilities(table: NDArray[np.float64], held: Any = None) -> int:
    """Free parameters of rows of probabilities, of which those of zero are none."""
    free = (table > 0) & (True if held is None else ~held)
    return int(np.maximum(np.count_nonzero(free, axis=-1) - 1, 0).sum())


def free_of_batch(batch: Any, held: Mapping[str, Any], name: str) -> int:
    """Free parameters of a batch, of which members, means and covariances are held."""
    none = np.zeros(len(batch), bool)
    members = held.get(name, none)
    if members.ndim > 1:  # entries of a table
        return free_probabilities(batch.prob, members)
    if members.all():
        return 0
    total: int = batch[np.flatnonzero(~members)]._n_free() if held else batch._n_free()
    means = int(np.count_nonzero(held.get("mean", none) & ~members))
    covs = int(np.count_nonzero(held.get("cov", none) & ~members))
    if means or covs:
        d = batch.mean.shape[-1]
        total -= means * d
        total -= batch[:covs]._n_free() - covs * d if covs else 0
    return total


def covariance_parameters(d: int) -> int:
    """Free parameters of a covariance matrix."""
    return d * (d + 1) // 2
