"""Posterior of a hidden Markov model, as the outlier detector of sequences keeps it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import psi

from maxent._inputs.sequences import symbol_sequences, vector_sequences
from maxent._support import validation as v
from maxent._support.typing import ArrayLike, FloatArray
from maxent.families.priors.dirichlet_tables import check_table
from maxent.families.priors.normal_wishart import NormalInverseWishart
from maxent.models.chains._hidden_chain import Observations
from maxent.models.chains.gaussian_hmm import GaussianHMM
from maxent.models.chains.hidden_markov import HiddenMarkovModel
from maxent.models.chains.hmm import CategoricalHMM


def expected_logs(counts: FloatArray) -> FloatArray:
    """E log of the entries of rows with Dirichlet distributions; -inf of count zero."""
    logs = np.full(counts.shape, -np.inf)
    logs[counts > 0] = psi(counts[counts > 0])
    return np.asarray(logs - psi(counts.sum(axis=-1, keepdims=True)))


def listed(X: Any, axes: int) -> Any:
    """An array of sequences of equal length, which has `axes` axes, as their list."""
    return list(X) if isinstance(X, np.ndarray) and X.ndim == axes else X


def _are_columns(emission: Any) -> bool:
    """True if every state has as many posteriors of single columns."""
    sizes = {len(one) if isinstance(one, (list, tuple)) else 0 for one in emission}
    return (
        len(sizes) == 1
        and 0 not in sizes
        and all(
            isinstance(part, NormalInverseWishart) and len(part.mean) == 1
            for one in emission
            for part in one
        )
    )


def _parts(state: Any) -> list[NormalInverseWishart]:
    """Posteriors that together are that of a state."""
    return state if isinstance(state, list) else [state]


def _expected(state: Any, values: FloatArray) -> FloatArray:
    """Expected log-density of every row in a state."""
    if not isinstance(state, list):
        return np.asarray(state.expected_log_prob(values))
    columns = zip(state, np.hsplit(values, len(state)), strict=True)
    return np.sum([part.expected_log_prob(x) for part, x in columns], axis=0)


class ChainPosterior:
    """Variational posterior of a hidden Markov model: independent rows of tables.

    Parameters
    ----------
    start : array-like (n_states,)
        Pseudo-counts of the first state, 0 of those that no sequence starts in.
    transition : array-like (n_states, n_states)
        Pseudo-counts of the next state, 0 of moves that never happen.
    emission : array-like (n_states, n_symbols) or list of NormalInverseWishart
        Pseudo-counts of the symbols of every state; or the posterior of the Gaussian of
        every state, which with diagonal covariances is a list of those of its columns.
    """

    def __init__(self, start: ArrayLike, transition: ArrayLike, emission: Any) -> None:
        S = len(v.as_doubles("start", start))
        self.start = check_table(0, np.asarray(start), (S,), zeros=True)
        self.transition = check_table(1, np.asarray(transition), (S, S), zeros=True)
        self.emission = self._checked(emission, S)

    @staticmethod
    def _checked(emission, S):
        if isinstance(emission, (list, tuple)) and len(emission) == S:
            if all(isinstance(e, NormalInverseWishart) for e in emission):
                return list(emission)
            if _are_columns(emission):
                return [list(e) for e in emission]
        table = v.as_doubles("emission", emission)
        if table.ndim != 2 or len(table) != S:
            raise ValueError(
                f"emission has shape {table.shape}; one row of pseudo-counts, or one "
                f"NormalInverseWishart, for each of the {S} states is expected."
            )
        return check_table(2, table, table.shape)

    def __repr__(self) -> str:
        kind = "Gaussian" if self.is_gaussian else "categorical"
        return f"ChainPosterior of {len(self.start)} {kind} states"

    def get_spec(self) -> dict[str, Any]:
        """Parameters by name, enough to build an equal value.

        Returns
        -------
        dict
            Keyword arguments of the constructor.
        """
        return {
            "start": self.start,
            "transition": self.transition,
            "emission": self.emission,
        }

    @property
    def is_gaussian(self) -> bool:
        """True if sequences are of vectors."""
        return isinstance(self.emission, list)

    @property
    def size(self) -> int:
        """Number of symbols, or length of the vectors."""
        if isinstance(self.emission, list):
            return sum(len(part.mean) for part in _parts(self.emission[0]))
        return int(self.emission.shape[1])

    def expected_log_prob(self, X: Any, n_jobs: int | None = None) -> FloatArray:
        """Lower bounds of the expected log-likelihoods of sequences.

        Parameters
        ----------
        X : list of array-like
            Sequences of codes, -1 where nothing was observed; or of vectors.
        n_jobs : int, optional
            Threads; the result has the same bits for any number.

        Returns
        -------
        ndarray (n_sequences,)
            In nats, not divided by the lengths.
        """
        if isinstance(self.emission, list):
            found = vector_sequences(listed(X, 3), n_features=self.size)
            values = np.nan_to_num(found.values, nan=0.0)
            table = np.column_stack([_expected(one, values) for one in self.emission])
            row: NDArray[np.intp] = np.arange(len(values), dtype=np.intp)
            row[np.isnan(found.values[:, 0])] = -1
            seen = Observations(found, row, shared=False)
        else:
            found = symbol_sequences(listed(X, 2), n_symbols=self.size)
            table = np.ascontiguousarray(expected_logs(self.emission).T)
            seen = Observations(found, found.values, shared=True)
        logs = expected_logs(self.start), expected_logs(self.transition)
        counts = seen.expect_of_logs(*logs, table, None, n_jobs)
        return counts.log_likelihood

    def expected_model(self, **fixed: Any) -> HiddenMarkovModel:
        """Hidden Markov model of the expected parameters, to look at its states.

        Parameters
        ----------
        **fixed
            Further arguments of :class:`~maxent.models.CategoricalHMM`, such as
            ``alphabet``; a Gaussian model takes none.

        Returns
        -------
        CategoricalHMM or GaussianHMM
            Gaussian covariances are those that the posterior is centred at,
            ``scale / df``.
        """
        start = self.start / self.start.sum()
        transition = self.transition / self.transition.sum(axis=1, keepdims=True)
        if isinstance(self.emission, list):
            states = [_parts(one) for one in self.emission]
            mean = np.array([np.concatenate([p.mean for p in own]) for own in states])
            covs = [[part.scale / part.df for part in own] for own in states]
            cov = np.array(covs)[..., 0, 0]  # variances of the columns
            if isinstance(self.emission[0], NormalInverseWishart):
                cov = np.array([own[0] for own in covs])
            return GaussianHMM(start, transition, mean, cov, **fixed)
        table = self.emission / self.emission.sum(axis=1, keepdims=True)
        return CategoricalHMM(start, transition, table, **fixed)
