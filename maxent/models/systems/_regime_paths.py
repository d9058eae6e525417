"""Paths of regimes: their probabilities, and the systems that they choose."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._inputs.sequences import Sequences, vector_sequences
from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent.models import _state_space as checks
from maxent.models.base import Model
from maxent.models.systems.lds import LinearDynamicalSystem

MOST_PATHS = 2**16  # paths that are enumerated


class RegimePaths(Model):
    """Systems whose steps a Markov chain of regimes chooses; base class."""

    start: NDArray[np.float64]
    switching: NDArray[np.float64]
    transition: NDArray[np.float64]
    transition_cov: NDArray[np.float64]
    observation: NDArray[np.float64]
    observation_cov: NDArray[np.float64]
    initial_mean: NDArray[np.float64]
    initial_cov: NDArray[np.float64]
    transition_offset: NDArray[np.float64]
    observation_offset: NDArray[np.float64]

    @property
    def n_regimes(self) -> int:
        """Number of regimes."""
        return len(self.start)

    @property
    def n_states(self) -> int:
        """Dimension of the states."""
        return len(self.initial_mean)

    @property
    def n_features(self) -> int:
        """Dimension of the observations."""
        return len(self.observation)

    def _read(self, sequences: Any, lengths: ArrayLike | None = None) -> Sequences:
        return vector_sequences(
            sequences,
            lengths,
            n_features=self.n_features,
            partly=True,
            columns=self._columns,
        )

    def _read_all(self, sequences: Any, lengths: ArrayLike | None) -> Sequences:
        return self._read(sequences, lengths)

    def given_path(self, path: ArrayLike) -> LinearDynamicalSystem:
        """The time-varying linear system of a path of regimes.

        Parameters
        ----------
        path : array-like of int (n_steps - 1,)
            Regimes of the steps into s_1, s_2, ...

        Returns
        -------
        LinearDynamicalSystem
            Of `n_steps` observations.
        """
        path = self._check_path(path)
        at = np.concatenate([[0], path])
        return LinearDynamicalSystem(
            self.transition[at],
            self.transition_cov[at],
            self.observation,
            self.observation_cov,
            self.initial_mean,
            self.initial_cov,
            self.transition_offset[at],
            self.observation_offset,
        )

    def _check_path(self, path: ArrayLike) -> NDArray[np.intp]:
        path = np.asarray(path)
        regimes = path.astype(np.intp) if path.size else np.zeros(0, dtype=np.intp)
        if regimes.ndim != 1 or (path != regimes).any() or (
            ((regimes < 0) | (regimes >= self.n_regimes)).any()
        ):  # fmt: skip
            raise ValueError(
                f"path={v.shown(path.tolist())} must hold regimes 0 to "
                f"{self.n_regimes - 1}."
            )
        return regimes

    def _compiled(self, paths: NDArray[np.intp]) -> list[checks.Arrays]:
        """Arrays of the systems of many paths (n, steps), for compiled functions."""
        arrays = checks.compiled(
            self.initial_mean,
            self.initial_cov,
            self.transition,
            self.transition_offset,
            self.transition_cov,
            self.observation,
            self.observation_offset,
            self.observation_cov,
        )[:-1]
        which = np.concatenate([np.zeros((len(paths), 1), np.intp), paths], axis=1)
        return [(*arrays, np.ascontiguousarray(own)) for own in which]

    def log_path(self, paths: ArrayLike) -> NDArray[np.float64]:
        """Log-probabilities of paths of regimes.

        Parameters
        ----------
        paths : array-like of int (n_paths, n_steps - 1)

        Returns
        -------
        ndarray (n_paths,)
        """
        paths = np.asarray(paths, dtype=np.intp)
        with np.errstate(divide="ignore"):
            start, switching = np.log(self.start), np.log(self.switching)
        if paths.shape[1] == 0:
            return np.zeros(len(paths))
        steps = switching[paths[:, :-1], paths[:, 1:]].sum(axis=1)
        return start[paths[:, 0]] + steps

    def sample_paths(
        self, n: int, length: int, random_state: Any = None
    ) -> NDArray[np.intp]:
        """Draw paths of regimes.

        Parameters
        ----------
        n : int
            Number of paths, >= 1.
        length : int
            Regimes of each, >= 0: one less than the observations.
        random_state : int, Generator, RandomState or None, default=None

        Returns
        -------
        ndarray of int (n, length)
        """
        rng = as_generator(random_state)
        uniform = rng.random((v.check_count("n", n), length))
        paths = np.empty((n, length), dtype=np.intp)
        last = self.n_regimes - 1
        for t in range(length):
            p = self.switching[paths[:, t - 1]] if t else np.tile(self.start, (n, 1))
            edges = np.cumsum(p, axis=1)
            above = (uniform[:, t : t + 1] * edges[:, -1:] >= edges).sum(axis=1)
            paths[:, t] = np.minimum(above, last)
        return paths

    def all_paths(self, length: int) -> NDArray[np.intp]:
        """All paths of regimes of a length.

        Parameters
        ----------
        length : int

        Returns
        -------
        ndarray of int (n_regimes ** length, length)

        Raises
        ------
        ValueError
            If there are more than 65536.
        """
        count = float(self.n_regimes) ** length
        if count > MOST_PATHS:
            raise ValueError(
                f"{self.n_regimes} regimes over {length} steps have {count:.3g} paths, "
                f"more than {MOST_PATHS}: use lower_bound, or draw paths."
            )
        paths = list(itertools.product(range(self.n_regimes), repeat=length))
        return np.array(paths, dtype=np.intp).reshape(len(paths), length)
