"""Filters, forecasts, filling in, and the order of states of hidden Markov models."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._core.chains import chain
from maxent._inputs.sequences import Sequences
from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent.families.gaussian import AnyGaussian
from maxent.models._chain_input import Array, drawn_offsets, drawn_paths
from maxent.models._forecast import Forecast, check_level, mixture_interval
from maxent.models.base import Model
from maxent.models.chains._hidden_chain import Point, logs_of
from maxent.models.mixtures import Mixtures

_DRAWS = 4000  # of a step, for its interval


class ChainAnswers(Model):
    """Answers of a hidden Markov model about single sequences; part of it."""

    start: Array
    transition: Array
    emission: Any

    @abstractmethod
    def posterior(
        self, sequences: Any, lengths: ArrayLike | None = None
    ) -> list[Array]:
        """Posterior probabilities of the states at every step."""

    @classmethod
    @abstractmethod
    def _of_point(cls, point: Point, emissions: Any) -> Self:
        """Model of a point of EM."""

    @property
    @abstractmethod
    def _emissions(self) -> Any:
        """Reader of sequences."""

    @abstractmethod
    def _seen(self, sequences: Any, lengths: Any) -> tuple[Sequences, Any]:
        """Sequences, and their steps as rows of the table of likelihoods."""

    @abstractmethod
    def _log_table(self, sequences: Sequences) -> Array:
        """Log-likelihoods (rows, n_states) of what the steps show."""

    def filter(self, sequences: Any, lengths: ArrayLike | None = None) -> list[Array]:
        """Probabilities of the states at every step, given the steps until then.

        Parameters
        ----------
        sequences, lengths
            As for `log_likelihood`.

        Returns
        -------
        list of ndarray (n_steps, n_states)
            One for each sequence; rows sum to one. The last row is that of `posterior`,
            which knows the later steps too.

        Raises
        ------
        ValueError
            If the model cannot produce a sequence; the step is named.

        Examples
        --------
        >>> from maxent.models import CategoricalHMM
        >>> model = CategoricalHMM(
        ...     [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], [[0.8, 0.2], [0.2, 0.8]]
        ... )
        >>> model.filter([[0, 0, 1]])[0].round(3)
        array([[0.8  , 0.2  ],
               [0.919, 0.081],
               [0.559, 0.441]])
        """
        found, seen = self._seen(sequences, lengths)
        table = np.ascontiguousarray(self._log_table(found))
        log_start, log_transition = logs_of(self.start, self.transition)
        shares = chain.filtered(
            log_start,
            np.ascontiguousarray(log_transition),
            table,
            seen.row,
            found.offsets,
        )
        lost = np.isnan(shares[:, 0])
        if lost.any():
            i, t = found.place(int(np.argmax(lost)))
            raise ValueError(
                f"sequences[{i}][:{t + 1}] has probability 0 under the model, so its "
                "states have none; fit with smoothing > 0."
            )
        return list(Sequences(shares, found.offsets))

    def forecast(
        self,
        sequences: Any,
        steps: int,
        *,
        lengths: ArrayLike | None = None,
        level: float = 0.9,
        random_state: Any = 0,
    ) -> list[Forecast]:
        """Distribution of each of the next steps of every sequence.

        Parameters
        ----------
        sequences, lengths
            As for `log_likelihood`: the past.
        steps : int
            Steps to come, >= 1.
        level : float, default=0.9
            Probability of the intervals, in (0, 1).
        random_state : int, Generator, RandomState or None, default=0
            Of the 4000 draws of a step whose quantiles are the ends of its interval;
            the probability inside is `level` up to about half a percent. Intervals of
            Gaussians, and of mixtures of them, are exact and need no draws.

        Returns
        -------
        list of Forecast
            One for each sequence. Of symbols, means are probabilities, and intervals
            are those of the codes.

        Raises
        ------
        ValueError
            For a level outside (0, 1), or a sequence that the model cannot produce.

        Examples
        --------
        >>> from maxent.families import Poisson
        >>> from maxent.models import HiddenMarkovModel
        >>> stay = [[0.95, 0.05], [0.05, 0.95]]
        >>> model = HiddenMarkovModel([0.5, 0.5], stay, Poisson([2.0, 20.0]))
        >>> ahead = model.forecast([[1, 3, 2, 1]], 3)[0]
        >>> ahead.mean.round(2), ahead.upper
        (array([2.9 , 3.71, 4.44]), array([ 6., 20., 22.]))
        """
        steps = v.check_count("steps", steps)
        level = check_level(level)
        rng = as_generator(random_state)
        out = []
        for past in self.filter(sequences, lengths):
            states = np.empty((steps, len(self.start)))
            now = past[-1]
            for t in range(steps):
                now = now @ self.transition
                states[t] = now / now.sum()
            out.append(self._forecast_of(states, level, rng))
        return out

    def _forecast_of(self, states, level, rng):
        """Forecast of steps whose states have these probabilities (steps, n_states)."""
        mean, variance = (np.asarray(m) for m in self.emission.moments())
        first = np.tensordot(states, mean, axes=1)
        second = np.tensordot(states, variance + mean**2, axes=1)
        variance = second - first**2
        ends = self._exact_ends(states, level)
        if ends is None:
            draws = np.asarray(self.emission.sample(_DRAWS, rng), dtype=np.float64)
            which = np.array([rng.choice(len(p), _DRAWS, p=p) for p in states])
            drawn = draws[which, np.arange(_DRAWS)]
            tail = 0.5 * (1.0 - level)
            ends = np.quantile(drawn, [tail, 1.0 - tail], axis=1, method="inverted_cdf")
        return Forecast(first, variance, *ends, level, states=states)

    def _exact_ends(self, states, level):
        """Ends of intervals where steps are mixtures of Gaussians; else None."""
        parts, weights = self.emission, states
        if isinstance(parts, Mixtures):
            shares = states[:, :, None] * parts.weights
            parts, weights = parts.members, shares.reshape(len(states), -1)
        if not isinstance(parts, AnyGaussian):
            return None
        mean, variance = parts.moments()
        law = mean, np.sqrt(variance), level
        return map(np.array, zip(*(mixture_interval(p, *law) for p in weights)))

    @overload
    def sample(
        self,
        n: int,
        length: ArrayLike,
        random_state: Any = ...,
        *,
        return_states: Literal[False] = ...,
        given: Any = ...,
    ) -> list[Any]: ...
    @overload
    def sample(
        self,
        n: int,
        length: ArrayLike,
        random_state: Any = ...,
        *,
        return_states: Literal[True],
        given: Any = ...,
    ) -> tuple[list[Any], list[NDArray[np.intp]]]: ...
    def sample(
        self,
        n: int,
        length: ArrayLike,
        random_state: Any = None,
        *,
        return_states: bool = False,
        given: Any = None,
    ) -> Any:
        """Draw sequences.

        Parameters
        ----------
        n : int
            Number of sequences, >= 1.
        length : int or array-like of int (n,)
            Steps of each, >= 1.
        random_state : int, Generator, RandomState or None, default=None
            The same seed gives the same draws.
        return_states : bool, default=False
            Return the hidden states too.
        given : one sequence, optional
            The past: what is drawn follows it, without it.

        Returns
        -------
        sequences : list
            Arrays, or strings of a model with an alphabet.
        states : list of ndarray of int (n_steps,)
            Only if `return_states`.
        """
        rng = as_generator(random_state)
        offsets = drawn_offsets(n, length)
        start = self.start
        if given is not None:
            start = self.filter([given])[0][-1] @ self.transition
            start = start / start.sum()
        states = drawn_paths(start, self.transition, offsets, rng)
        values = None
        for k in range(len(self.start)):
            own = np.flatnonzero(states == k)
            if len(own):
                drawn = self.emission[k].sample(len(own), rng)
                if values is None:
                    values = np.empty((len(states), *drawn.shape[1:]), drawn.dtype)
                values[own] = drawn
        assert values is not None  # there is a step, and it is in some state
        sequences = [self._emissions.written(x) for x in Sequences(values, offsets)]
        if return_states:
            return sequences, list(Sequences(states, offsets))
        return sequences

    def impute(
        self,
        sequences: Any,
        lengths: ArrayLike | None = None,
        *,
        return_variance: bool = False,
    ) -> Any:
        """Sequences with their missing entries filled in, from all that was seen.

        Parameters
        ----------
        sequences, lengths
            As for `log_likelihood`; NaN (code -1) where an entry is missing.
        return_variance : bool, default=False
            Return the variances of what was filled in too.

        Returns
        -------
        sequences : list of ndarray
            Missing entries are at their expectations given the whole sequence;
            categories are the most probable ones.
        variance : list of ndarray
            Only if `return_variance`; 0 where an entry was seen.

        Raises
        ------
        ValueError
            If the model cannot produce a sequence.

        Examples
        --------
        >>> import numpy as np
        >>> from maxent.models import GaussianHMM
        >>> model = GaussianHMM(
        ...     [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], [[0.0], [5.0]], [[1.0], [1.0]]
        ... )
        >>> model.impute([[[0.1], [np.nan], [0.3]]])[0].ravel().round(3)
        array([0.1  , 0.061, 0.3  ])
        """
        found, _ = self._seen(sequences, lengths)
        shares = np.concatenate(self.posterior(found)).T
        X = np.asarray(found.values, dtype=np.float64)
        scalar = not self.emission.event_shape and X.ndim == 2
        X = X[:, 0] if scalar else X
        are_codes = found.values.dtype.kind != "f"
        lost = X < 0 if are_codes else np.isnan(X)
        filled, variance = self.emission._imputed(np.where(lost, np.nan, X), shares)
        filled = np.where(lost, filled, X)
        variance = np.where(lost, variance, 0.0)
        if are_codes:
            filled = filled.astype(np.intp)
        each = [self._emissions.written(x) for x in Sequences(filled, found.offsets)]
        if not return_variance:
            return each
        return each, list(Sequences(variance, found.offsets))

    def order_states(
        self, key: Callable[[Any], ArrayLike] | ArrayLike | None = None
    ) -> Self:
        """This model with its states in another order.

        Parameters
        ----------
        key : callable or array-like (n_states,), optional
            Numbers by which the states are sorted, or a function from the model to
            them; None takes the mean of what the states show, of vectors in the first
            coordinate, and of symbols the mean code.

        Returns
        -------
        model
            Of the same class, and equal but for the order: states of two fits that are
            ordered by one key can be compared.

        Examples
        --------
        >>> from maxent.families import Poisson
        >>> from maxent.models import HiddenMarkovModel
        >>> model = HiddenMarkovModel([0.2, 0.8], [[0.9, 0.1], [0.3, 0.7]],
        ...                           Poisson([9.0, 1.0]))
        >>> model.order_states().start
        array([0.8, 0.2])
        """
        values = self._usual_order() if key is None else key
        values = v.as_doubles("key", values(self) if callable(values) else values)
        if values.shape != self.start.shape or np.isnan(values).any():
            raise ValueError(
                f"key gives values of shape {values.shape}; one number for each of the "
                f"{len(self.start)} states is needed."
            )
        return self._with_states(np.argsort(values, kind="stable"))

    def _usual_order(self):
        mean = np.asarray(self.emission.moments()[0])
        if not self.emission.event_shape and mean.ndim > 1:  # of categories
            return mean @ np.arange(mean.shape[1])
        return mean.reshape(len(mean), -1)[:, 0]

    def _with_states(self, order: NDArray[np.intp]) -> Self:
        """This model with its states in this order."""
        point = (
            self.start[order],
            self.transition[np.ix_(order, order)],
            self.emission[order],
        )
        model = self._of_point(point, self._emissions)._with_result(self.fit_result)
        model = model._with_names(self._columns)._with_categories(self.categories)
        return model._with_count(self._count)
