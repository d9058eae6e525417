"""Answers of linear systems: states, forecasts, futures and missing entries."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._inputs.sequences import Sequences, vector_sequences
from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent._support.threads import effective_threads, in_threads
from maxent.models import _state_space as checks
from maxent.models._chain_input import drawn_offsets
from maxent.models._forecast import Forecast, check_level, gaussian_forecast
from maxent.models._partial import filling
from maxent.models._state_space import Arrays, Parameters, read_inputs
from maxent.models.base import Model
from maxent.models.systems._state_posterior import (
    FilteredStates,
    StatePosterior,
    draw,
    filtered,
    smoothed,
)

Array = NDArray[np.float64]


class StateAnswers(Model):
    """Linear systems of which the states and the observations are asked; base class."""

    n_states: int
    n_features: int
    n_inputs: int
    n_steps: int | None
    initial_cov: Array

    @property
    def _parameters(self) -> Parameters:
        return Parameters(**self.parameters())

    def _read_all(self, sequences: Any, lengths: ArrayLike | None) -> Sequences:
        data = vector_sequences(
            sequences,
            lengths,
            n_features=self.n_features,
            partly=True,
            columns=self._columns,
        )
        if self.n_steps is not None and data.lengths.max() > self.n_steps:
            i = int(np.argmax(data.lengths))
            raise ValueError(
                f"sequences[{i}] has {data.lengths[i]} steps; the time-varying "
                f"parameters end after n_steps={self.n_steps}."
            )
        return data

    def _laws(
        self, data: Sequences, lengths: ArrayLike | None, inputs: Any
    ) -> list[Arrays]:
        """Compiled arrays for every sequence."""
        each = read_inputs(inputs, data, lengths, self.n_inputs)
        p = self._parameters
        if each is None:
            return [p.compiled()] * len(data)
        return [p.compiled(u) for u in each]

    def posterior(
        self, sequences: Any, lengths: ArrayLike | None = None, *, inputs: Any = None
    ) -> list[StatePosterior]:
        """Distribution of the states of every sequence (Kalman smoother).

        Parameters
        ----------
        sequences : list, array-like (n_steps, n_features) or (n, n_steps, n_features)
        lengths : array-like of int, optional
        inputs : like sequences, optional
            Of the steps, of a system that has inputs.

        Returns
        -------
        list of StatePosterior
            One per sequence.
        """
        data = self._read_all(sequences, lengths)
        laws, free = self._laws(data, lengths, inputs), self._parameters.diffuse
        return [
            smoothed(law, x, self.n_states, i, free)
            for i, (law, x) in enumerate(zip(laws, data))
        ]

    def filter(
        self,
        sequences: Any,
        lengths: ArrayLike | None = None,
        *,
        inputs: Any = None,
        n_jobs: int | None = None,
    ) -> list[FilteredStates]:
        """Distribution of each state given the observations up to it (Kalman filter).

        Parameters
        ----------
        sequences : list, array-like (n_steps, n_features) or (n, n_steps, n_features)
            NaN where an entry, or a whole row, was not observed.
        lengths : array-like of int, optional
            Lengths of the sequences in one array.
        inputs : like sequences, optional
            Of the steps, of a system that has inputs.
        n_jobs : int, optional
            Threads over sequences.

        Returns
        -------
        list of FilteredStates
            One per sequence, with `mean` and `cov`.

        Examples
        --------
        >>> from maxent.models import LinearDynamicalSystem
        >>> level = LinearDynamicalSystem(
        ...     transition=[[1.0]], transition_cov=[[0.1]], observation=[[1.0]],
        ...     observation_cov=[[1.0]], initial_mean=[0.0], initial_cov=[[1.0]])
        >>> level.filter([1.0, 2.0, 3.0])[0].mean.ravel().round(3)
        array([0.5  , 1.062, 1.686])
        """
        data = self._read_all(sequences, lengths)
        laws, free = self._laws(data, lengths, inputs), self._parameters.diffuse
        found: list[Any] = [None] * len(data)

        def work(i: int, _thread: int, _stop: Any) -> None:
            found[i] = filtered(laws[i], data[i], i, free)

        in_threads(work, len(data), min(effective_threads(n_jobs), len(data)))
        return found

    def forecast(
        self,
        sequences: Any,
        steps: int,
        *,
        lengths: ArrayLike | None = None,
        level: float = 0.9,
        inputs: Any = None,
        future_inputs: Any = None,
    ) -> list[Forecast]:
        """Distribution of each of the steps that follow every sequence.

        Parameters
        ----------
        sequences : list, array-like (n_steps, n_features) or (n, n_steps, n_features)
            NaN where an entry, or a whole row, was not observed.
        steps : int
            Number of steps, >= 1.
        lengths : array-like of int, optional
            Lengths of the sequences in one array.
        level : float, default=0.9
            Probability of the intervals.
        inputs : like sequences, optional
            Of the past steps, of a system that has inputs.
        future_inputs : array-like (steps, n_inputs), or a list of one per sequence
            Of the steps to come.

        Returns
        -------
        list of Forecast
            One per sequence, with `mean`, `cov`, `lower` and `upper`. The parameters
            count as known: intervals do not widen because they were estimated.

        Examples
        --------
        >>> from maxent.models import LinearDynamicalSystem
        >>> walk = LinearDynamicalSystem(
        ...     transition=[[1.0]], transition_cov=[[1.0]], observation=[[1.0]],
        ...     observation_cov=[[0.0]], initial_mean=[0.0], initial_cov=[[1.0]])
        >>> ahead = walk.forecast([1.0, 2.0, 4.0], 3)[0]
        >>> ahead.mean.ravel(), ahead.cov.ravel()
        (array([4., 4., 4.]), array([1., 2., 3.]))
        >>> ahead.upper.ravel().round(2)
        array([5.64, 6.33, 6.85])
        """
        level, steps = check_level(level), v.check_count("steps", steps)
        past = self._read_all(sequences, lengths)
        later = repeated(future_inputs, len(past))
        lost = np.full((steps, self.n_features), np.nan)
        data = self._read_all([np.concatenate([x, lost]) for x in past], None)
        both = self._past_and_future(past, lengths, inputs, later, [steps] * len(past))
        laws, free = self._laws(data, None, both), self._parameters.diffuse
        out = []
        for i, (law, x) in enumerate(zip(laws, data)):
            states = filtered(law, x, i, free)
            mean, cov = states.mean[-steps:], states.cov[-steps:]
            self._refuse_unknown(cov, i)
            C, c, R, which = law[5:]
            at = np.zeros(steps, np.intp) if len(C) == 1 else which[: len(x)][-steps:]
            seen = (C[at] @ mean[..., None])[..., 0] + c[at]
            spread = C[at] @ cov @ C[at].swapaxes(1, 2) + R[at]
            spread = 0.5 * (spread + spread.swapaxes(1, 2))
            out.append(gaussian_forecast(seen, spread, level))
        return out

    def _past_and_future(self, past, lengths, inputs, later, steps):
        """Inputs of sequences and of the steps that follow them."""
        before = read_inputs(inputs, past, lengths, self.n_inputs)
        ends = np.cumsum([0, *steps])
        ahead = Sequences(np.empty((ends[-1], 0)), ends)
        after = read_inputs(later, ahead, None, self.n_inputs, "future_inputs")
        if before is None or after is None:
            return None
        return [np.concatenate(pair) for pair in zip(before, after)]

    def _refuse_unknown(self, cov: Array, number: int) -> None:
        if not np.isfinite(cov).all():
            raise ValueError(
                f"sequence {number} does not determine the states that begin without a "
                "prior (initial_cov=inf): give initial_cov a finite variance, or a "
                "longer sequence."
            )

    def impute(
        self,
        sequences: Any,
        lengths: ArrayLike | None = None,
        *,
        inputs: Any = None,
        return_cov: bool = False,
    ) -> Any:
        """Sequences whose missing entries have their expectation given all others.

        Parameters
        ----------
        sequences : list, array-like (n_steps, n_features) or (n, n_steps, n_features)
            NaN where an entry, or a whole row, was not observed.
        lengths : array-like of int, optional
            Lengths of the sequences in one array.
        inputs : like sequences, optional
            Of the steps, of a system that has inputs.
        return_cov : bool, default=False
            Return the covariances of what was filled in, too.

        Returns
        -------
        sequences : list of ndarray (n_steps, n_features)
            Entries that were observed are as they were.
        covs : list of ndarray (n_steps, n_features, n_features)
            Only if `return_cov`: of the entries of each step, zero for observed ones.

        Examples
        --------
        >>> from maxent.models import LinearDynamicalSystem
        >>> walk = LinearDynamicalSystem(
        ...     transition=[[1.0]], transition_cov=[[1.0]], observation=[[1.0]],
        ...     observation_cov=[[0.0]], initial_mean=[0.0], initial_cov=[[1.0]])
        >>> filled, cov = walk.impute([1.0, float("nan"), 4.0], return_cov=True)
        >>> filled[0].ravel(), cov[0].ravel()
        (array([1. , 2.5, 4. ]), array([0. , 0.5, 0. ]))
        """
        data = self._read_all(sequences, lengths)
        laws, free = self._laws(data, lengths, inputs), self._parameters.diffuse
        values, covs = [], []
        for i, (law, x) in enumerate(zip(laws, data)):
            states = smoothed(law, x, self.n_states, i, free)
            value, cov = filled(law, x, states.mean, states.cov)
            values.append(value)
            covs.append(cov)
        return (values, covs) if return_cov else values

    @overload
    def sample(
        self,
        n: int,
        length: ArrayLike,
        random_state: Any = ...,
        *,
        given: Any = ...,
        inputs: Any = ...,
        given_inputs: Any = ...,
        return_states: Literal[False] = ...,
    ) -> list[Array]: ...
    @overload
    def sample(
        self,
        n: int,
        length: ArrayLike,
        random_state: Any = ...,
        *,
        given: Any = ...,
        inputs: Any = ...,
        given_inputs: Any = ...,
        return_states: Literal[True],
    ) -> tuple[list[Array], list[Array]]: ...
    def sample(
        self,
        n: int,
        length: ArrayLike,
        random_state: Any = None,
        *,
        given: Any = None,
        inputs: Any = None,
        given_inputs: Any = None,
        return_states: bool = False,
    ) -> Any:
        """Draw sequences, from the beginning or as futures of one that is given.

        Parameters
        ----------
        n : int
            Number of sequences, >= 1.
        length : int or array-like of int (n,)
            Steps of each, >= 1.
        random_state : int, Generator, RandomState or None, default=None
            The same seed gives the same draws.
        given : array-like (n_steps, n_features), optional
            One sequence, NaN where nothing was observed: draws are of the steps that
            follow it.
        inputs : array-like (length, n_inputs), or a list of one per sequence
            Of the steps that are drawn, of a system that has inputs.
        given_inputs : array-like (n_steps, n_inputs)
            Of the steps of `given`.
        return_states : bool, default=False
            Return the states too.

        Returns
        -------
        sequences : list of ndarray (n_steps, n_features)
        states : list of ndarray (n_steps, n_states)
            Only if `return_states`.
        """
        lengths = np.diff(drawn_offsets(n, length))
        rng, later = as_generator(random_state), repeated(inputs, len(lengths))
        if given is None:
            drawn = self._from_the_beginning(lengths, later, rng)
        else:
            drawn = self._futures(given, given_inputs, lengths, later, rng)
        sequences = [x for _, x in drawn]
        return (sequences, [s for s, _ in drawn]) if return_states else sequences

    def _from_the_beginning(self, lengths, inputs, rng):
        checks.check_horizon(int(lengths.max()) - 1, self)
        if self._parameters.diffuse.any():
            raise ValueError(
                "initial_cov has infinite entries: the first state has no law to draw "
                "from. Pass given=, or a system with a finite initial_cov."
            )
        ends = np.concatenate([[0], np.cumsum(lengths)])
        ahead = Sequences(np.empty((ends[-1], 0)), ends)
        laws = self._laws(ahead, None, inputs)
        return [draw(law, int(T), rng) for law, T in zip(laws, lengths)]

    def _futures(self, given, given_inputs, lengths, later, rng):
        """Draws of what follows one sequence."""
        past = self._read_all([given], None)
        before, T = len(past.values), int(lengths.max())
        checks.check_horizon(before + T - 1, self)
        known = None if given_inputs is None else [given_inputs] * len(lengths)
        every = Sequences(
            np.concatenate([past.values] * len(lengths)),
            before * np.arange(len(lengths) + 1),
        )
        both = self._past_and_future(every, None, known, later, lengths)
        p, first = self._parameters, None if both is None else both[0][:before]
        states = filtered(p.compiled(first), past.values, 0, p.diffuse)
        self._refuse_unknown(states.cov[-1], 0)
        drawn = []
        for i, steps in enumerate(lengths.tolist()):
            law = p.compiled(None if both is None else both[i])
            law = following(law, before, states.mean[-1], states.cov[-1])
            drawn.append(draw(law, steps, rng))
        return drawn


def repeated(inputs: Any, n: int) -> Any:
    """One array of inputs for each of n sequences, which may have one for all."""
    if inputs is None or (isinstance(inputs, (list, tuple)) and np.ndim(inputs[0]) > 1):
        return inputs
    return [inputs] * n if np.ndim(inputs) == 2 else inputs


def following(law: Arrays, step: int, mean: Array, cov: Array) -> Arrays:
    """The system from a step on, given the moments of the state before it."""
    A, b, Q, which = law[2], law[3], law[4], law[8]
    which = which[step:] if len(A) > 1 else which
    r = which[0] if len(which) else 0
    first = A[r] @ mean + b[r]
    spread = A[r] @ cov @ A[r].T + Q[r]
    return (first, 0.5 * (spread + spread.T), *law[2:8], which)


def filled(law: Arrays, x: Array, mean: Array, cov: Array) -> tuple[Array, Array]:
    """Rows with their missing entries filled in, and covariances of these.

    `mean` and `cov` are those of the states given the whole sequence.
    """
    value, spread = np.array(x), np.zeros((*x.shape, x.shape[1]))
    rows = np.flatnonzero(np.isnan(x).any(axis=1))
    if not len(rows):
        return value, spread
    C, c, R, which = law[5:]
    at = which[rows] if len(C) > 1 else np.zeros(len(rows), np.intp)
    C, c, R, hidden = C[at], c[at], R[at], np.isnan(x[rows])
    either = hidden[:, :, None] | hidden[:, None, :]
    K, left = filling(np.where(either, np.eye(x.shape[1]), R), R, hidden)
    # a missing entry is G s + g and noise, given the entries beside it
    G = np.where(hidden[:, :, None], C - K @ C, 0.0)
    away = np.where(hidden, 0.0, x[rows] - c)
    expected = ((G @ mean[rows][..., None]) + K @ away[..., None])[..., 0] + c
    value[rows] = np.where(hidden, expected, x[rows])
    spread[rows] = G @ cov[rows] @ G.swapaxes(1, 2) + left
    return value, spread
