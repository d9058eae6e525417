"""Factorial hidden Markov models.

    q^c_0 ~ pi^c,   q^c_t ~ A^c[q^c_{t-1}],   x_t ~ N(sum_c W^c[q^c_t], R)

Source: Ghahramani & Jordan (1997), Factorial hidden Markov models, Machine Learning 29.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._inputs.sequences import Sequences, vector_sequences
from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent.models import _state_space as checks
from maxent.models._chain_input import (
    check_chain,
    columns_of_start,
    drawn_offsets,
    drawn_paths,
    single_series,
)
from maxent.models._criteria import (
    NONE_HELD,
    InformationCriteria,
    covariance_parameters,
    free_probabilities,
)
from maxent.models._holding import as_given, held_of
from maxent.models._settling import FOR_BOUNDS
from maxent.models._units import Units
from maxent.models.base import FitsOfEach, Model, maximize_by_em
from maxent.models.chains._coupled_chains import (
    exact_log_sums,
    random_beliefs,
    total_means,
)
from maxent.models.chains._factorial_em import (
    FactorialProblem,
    even_beliefs,
    is_exact,
    log_bounds,
    settled_chains,
    sizes_of,
)
from maxent.models.chains._factorial_exact import joint_table
from maxent.models.chains._factorial_paths import best_paths, state_probabilities
from maxent.models.chains._hidden_chain import logs_of

Array = NDArray[np.float64]
MOST_STATES = 1_000_000  # joint states that are summed over


class FactorialHMM(InformationCriteria, Model):
    """Factorial hidden Markov model with Gaussian observations.

    Independent Markov chains q^1, q^2, ...; an observation is the sum of one mean per
    chain and noise, ``x_t ~ N(sum_c W^c[q^c_t], R)``.

    Parameters
    ----------
    start : sequence of array-like (S_c,)
        Probabilities of the first state of every chain.
    transition : sequence of array-like (S_c, S_c)
        Probabilities of the next state; rows sum to one.
    mean : sequence of array-like (S_c, n_features)
        W: what every state of a chain adds to the mean.
    cov : array-like (n_features, n_features)
        R, symmetric positive definite.

    Attributes
    ----------
    n_chains, n_features : int
    n_states : tuple of int
        States of every chain.
    fit_result : EMResult or None
        Its objective is the log-likelihood, or by mean field a lower bound of it, plus
        the prior.

    See Also
    --------
    maxent.kernels.factorial_hmm_kernel : Kernel between such models.

    References
    ----------
    Ghahramani & Jordan (1997), Factorial hidden Markov models, Machine Learning 29,
    245-273.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.models import FactorialHMM
    >>> slow = [[0.95, 0.05], [0.05, 0.95]]
    >>> model = FactorialHMM(
    ...     start=[[0.5, 0.5]] * 2, transition=[slow] * 2,
    ...     mean=[[[0.0], [1.0]], [[0.0], [3.0]]], cov=[[0.1]])
    >>> x = model.sample(5, 40, random_state=0)
    >>> bool((model.lower_bound(x) <= model.log_likelihood(x)).all())
    True
    >>> fitted = FactorialHMM.fit(x, [2, 2], n_init=4, random_state=0)
    >>> fitted.fit_result.converged
    True
    """

    _data = "series"
    _fits_of_each = FitsOfEach(needs_prior=True, sizes={"n_states": [2, 2]})
    _names = ("start", "transition", "mean", "cov")

    n_steps = None

    start: tuple[Array, ...]
    transition: tuple[Array, ...]
    mean: tuple[Array, ...]
    cov: Array

    def __init__(
        self,
        start: Sequence[ArrayLike],
        transition: Sequence[ArrayLike],
        mean: Sequence[ArrayLike],
        cov: ArrayLike,
    ) -> None:
        if not 0 < len(start) == len(transition) == len(mean):
            raise ValueError(
                f"start has {len(start)} chains, transition {len(transition)} and mean "
                f"{len(mean)}; one entry per chain is needed in each."
            )
        chains = []
        for c, (pi, A) in enumerate(zip(start, transition)):
            try:
                chains.append(check_chain(pi, A))
            except ValueError as error:
                raise ValueError(f"chain {c}: {error}") from None
        cov = checks.square_arrays("cov", cov)
        cov = checks.covariances("cov", cov, cov.shape[-1], definite=True)
        if cov.ndim != 2:
            raise ValueError(f"cov has shape {cov.shape}; one matrix is expected.")
        d = len(cov)
        means = tuple(
            checks.shaped(f"mean[{c}]", W, (len(pi), d))
            for c, (W, (pi, _)) in enumerate(zip(mean, chains))
        )
        for array in (*(x for pair in chains for x in pair), *means):
            array.setflags(write=False)
        self._set(
            start=tuple(pi for pi, _ in chains),
            transition=tuple(A for _, A in chains),
            mean=means,
            cov=cov,
        )

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return len(self.start)

    @property
    def n_states(self) -> tuple[int, ...]:
        """States of every chain."""
        return tuple(len(pi) for pi in self.start)

    @property
    def n_features(self) -> int:
        """Dimension of the observations."""
        return len(self.cov)

    def _free_parameters(self, held=NONE_HELD):
        d, none = self.n_features, (None,) * self.n_chains
        chains = sum(
            sum(map(free_probabilities, getattr(self, name), held.get(name, none)))
            for name in ("start", "transition")
        )
        masks = held.get("mean", [np.zeros(W.shape, bool) for W in self.mean])
        means = sum(int(np.count_nonzero(~mask)) for mask in masks)
        # means of chains may shift against each other, where no mean is held
        told = np.sum([mask.any(axis=0) for mask in masks], axis=0)
        means -= int(np.maximum(self.n_chains - 1 - told, 0).sum())
        return chains + means + (0 if "cov" in held else covariance_parameters(d))

    def _holdable(self):
        """Shapes of masks of parameters that may stay in a fit."""
        names = "start", "transition", "mean"
        own = {name: [x.shape for x in getattr(self, name)] for name in names}
        return {**own, "cov": ()}

    def _read_all(self, sequences: Any, lengths: ArrayLike | None) -> Sequences:
        return self._read(sequences, lengths)

    # -- inference -----------------------------------------------------------------
    def log_likelihood(self, sequences: Any, lengths: ArrayLike | None = None) -> Array:
        """Log-density of every sequence, by the sum over all joint states.

        Parameters
        ----------
        sequences : list, array-like (n_steps, n_features) or (n, n_steps, n_features)
            NaN where an entry, or a whole row, was not observed.
        lengths : array-like of int, optional
            Lengths of the sequences in one array.

        Returns
        -------
        ndarray (n_sequences,)

        Raises
        ------
        ValueError
            If there are more than a million joint states; :meth:`lower_bound` has no
            such limit.
        """
        data = self._read(sequences, lengths)
        count = math.prod(self.n_states)
        if count > MOST_STATES:
            raise ValueError(
                f"n_states={self.n_states} make {count:.3g} joint states, more than "
                f"{MOST_STATES}: use lower_bound."
            )
        means = total_means(self.mean)
        chains = zip(*map(logs_of, self.start, self.transition))
        log_starts, log_transitions = map(list, chains)
        out = np.empty(len(data))
        for i, x in enumerate(data):
            tables = joint_table(self.cov, means, x)
            out[i] = exact_log_sums(log_starts, log_transitions, tables, len(x))[-1]
        return out

    def lower_bound(
        self,
        sequences: Any,
        lengths: ArrayLike | None = None,
        *,
        n_init: int = 1,
        random_state: Any = 0,
    ) -> Array:
        """Lower bound of the log-density of every sequence, by mean field over chains.

        Parameters
        ----------
        sequences, lengths
            As in :meth:`log_likelihood`.
        n_init : int, default=1
            Starts, the first of them even; the greatest bound of each sequence is kept.
        random_state : int, Generator, RandomState or None, default=0

        Returns
        -------
        ndarray (n_sequences,)
        """
        data = self._read(sequences, lengths)
        rng = as_generator(random_state)
        out = np.full(len(data), -np.inf)
        steps = len(data.values)
        for k in range(v.check_count("n_init", n_init)):
            beliefs = (
                random_beliefs(self.n_states, steps, rng)
                if k
                else even_beliefs(self.n_states, steps)
            )
            chains = settled_chains(self, data, beliefs, FOR_BOUNDS)
            out = np.maximum(out, log_bounds(chains, self.cov, data.values))
        return out

    def posterior(
        self,
        sequences: Any,
        lengths: ArrayLike | None = None,
        *,
        method: Literal["auto", "exact", "meanfield"] = "auto",
    ) -> list[list[Array]]:
        """Probabilities of the states of every chain, for every sequence.

        Parameters
        ----------
        sequences, lengths
            As in :meth:`log_likelihood`.
        method : {"auto", "exact", "meanfield"}, default="auto"
            "exact" sums over at most 1024 joint states. "meanfield" takes the chains as
            independent, which makes them too sure of their states. "auto" is "exact"
            where that is possible.

        Returns
        -------
        list of list of ndarray (n_steps, S_c)
            For every sequence one array per chain. By mean field they are within about
            1e-8 of a stationary point of the bound.

        Raises
        ------
        ValueError
            With ``method="exact"`` if there are more than 1024 joint states.

        Warns
        -----
        ConvergenceWarning
            If mean field did not settle in 10000 sweeps.
        """
        data = self._read(sequences, lengths)
        return [list(parts) for parts in state_probabilities(self, data, method)]

    def viterbi(
        self,
        sequences: Any,
        lengths: ArrayLike | None = None,
        *,
        method: Literal["auto", "exact", "meanfield"] = "auto",
    ) -> tuple[list[NDArray[np.intp]], Array]:
        """Most likely path of the states of all chains, for every sequence.

        Parameters
        ----------
        sequences, lengths
            As in :meth:`log_likelihood`.
        method : {"auto", "exact", "meanfield"}, default="auto"
            "exact" is the most likely joint path, by the Viterbi algorithm over at most
            1024 joint states. "meanfield" is the most likely path of each chain under
            its distribution of mean field; together they may be less likely. "auto" is
            "exact" where that is possible.

        Returns
        -------
        paths : list of ndarray of int (n_steps, n_chains)
        log_prob : ndarray (n_sequences,)
            Log-density of path and sequence together, exact with either method; -inf
            of paths by mean field that the model cannot take.

        Raises
        ------
        ValueError
            With ``method="exact"`` if there are more than 1024 joint states.
        """
        return best_paths(self, self._read(sequences, lengths), method)

    def _read(self, sequences: Any, lengths: ArrayLike | None = None) -> Sequences:
        return vector_sequences(
            sequences,
            lengths,
            n_features=self.n_features,
            partly=True,
            columns=self._columns,
        )

    @overload
    def sample(
        self,
        n: int,
        length: ArrayLike,
        random_state: Any = ...,
        *,
        return_states: Literal[False] = ...,
    ) -> list[Array]: ...
    @overload
    def sample(
        self,
        n: int,
        length: ArrayLike,
        random_state: Any = ...,
        *,
        return_states: Literal[True],
    ) -> tuple[list[Array], list[NDArray[np.intp]]]: ...
    def sample(
        self,
        n: int,
        length: ArrayLike,
        random_state: Any = None,
        *,
        return_states: bool = False,
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

        Returns
        -------
        sequences : list of ndarray (n_steps, n_features)
        states : list of ndarray of int (n_steps, n_chains)
            Only if `return_states`.
        """
        rng = as_generator(random_state)
        offsets = drawn_offsets(n, length)
        paths = [
            drawn_paths(pi, A, offsets, rng)
            for pi, A in zip(self.start, self.transition)
        ]
        noise = rng.normal(size=(offsets[-1], self.n_features))
        x = noise @ np.linalg.cholesky(self.cov).T
        for W, path in zip(self.mean, paths):
            x += W[path]
        sequences = list(Sequences(x, offsets))
        if return_states:
            return sequences, list(Sequences(np.stack(paths, axis=1), offsets))
        return sequences

    # -- fits --------------------------------------------------------------------------
    @classmethod
    def fit(
        cls,
        sequences: Any,
        n_states: Sequence[int] | None = None,
        lengths: ArrayLike | None = None,
        *,
        smoothing: float = 0.1,
        shrinkage: float = 0.1,
        ridge: float = 0.1,
        method: Literal["auto", "exact", "meanfield"] = "auto",
        init: FactorialHMM | None = None,
        fixed: Any = None,
        n_init: int | None = None,
        max_iter: int = 500,
        tol: float = 1e-5,
        callback: Callable[[int, float, float], object] | None = None,
        random_state: Any = None,
    ) -> Self:
        """Fit by EM, exact or structured variational; the objective never falls.

        Parameters
        ----------
        sequences : list, array-like (n_steps, n_features) or (n, n_steps, n_features)
            NaN where an entry, or a whole row, was not observed.
        n_states : sequence of int, optional
            States of every chain; not needed with `init`.
        lengths : array-like of int, optional
            Lengths of the sequences in one array.
        smoothing : float, default=0.1
            Pseudo-counts >= 0 of every start and transition.
        shrinkage : float, default=0.1
            Precision > 0 of the prior of every state's mean, which is at the data's
            centre, in units of the variances of the columns.
        ridge : float, default=0.1
            Pseudo-observations >= 0 of the covariance, each with the variances of the
            columns within groups of rows. Neither the units of the columns nor the
            distance between groups matter.
        method : {"auto", "exact", "meanfield"}, default="auto"
            "exact" maximises the likelihood, by sums over at most 1024 joint states.
            "meanfield" maximises a lower bound, for any number of them; chains may then
            end alike or unused, so take more starts. "auto" is "exact" up to 64 joint
            states.
        init : FactorialHMM, optional
            Start, whose probabilities of zero stay zero; None takes random means and
            beliefs about the states.
        fixed : str, list of str, or dict, optional
            Parameters that stay as in `init`; or {name: mask}, where the mask of
            "start", "transition" and "mean" is a list with one for each chain: True,
            False, or a boolean array that is True where an entry stays.
        n_init : int, optional
            Starts, each the best of five short random runs; the best fit is kept. None
            takes three, or `init` alone.
        max_iter : int, default=500
            EM steps at most.
        tol : float, default=1e-5
            A run ends once a step gains at most `tol` nats per observed value.
        callback : callable(n_iter, objective, gain), optional
        random_state : int, Generator, RandomState or None, default=None

        Returns
        -------
        FactorialHMM

        Warns
        -----
        ConvergenceWarning
            If `max_iter` steps were not enough, or the objective fell by more than
            rounding.
        """
        v.check_stop(tol, max_iter)
        columns = columns_of_start(init, cls)
        sizes = sizes_of(init, n_states)
        data = vector_sequences(sequences, lengths, partly=True, columns=columns)
        units = Units(data)
        if init is not None:
            units.check(init.n_features)
        held = held_of(fixed, init)
        problem = FactorialProblem(
            units.standardised(data),
            units,
            v.check_nonnegative("smoothing", smoothing),
            v.check_positive("shrinkage", shrinkage),
            v.check_nonnegative("ridge", ridge),
            is_exact(method, sizes),
            held,
        )
        rng = as_generator(random_state)
        starts = problem.starts(sizes, rng, init, n_init)
        best, result = maximize_by_em(
            problem.step,
            starts,
            tol=tol,
            max_iter=max_iter,
            callback=callback,
            size=units.observed,
        )
        start, transition, mean, cov, _ = best
        mean = [W * units.scale + units.centre / len(mean) for W in mean]
        cov = cov * np.outer(units.scale, units.scale)
        if init is not None:  # the same bits
            cov = as_given(cov, init.cov, held.get("cov"))
            kept = held.get("mean", (None,) * len(mean))
            mean = list(map(as_given, mean, init.mean, kept))
        model = cls(start, transition, mean, cov)._with_result(result)
        return model._with_names(data.columns)._with_held(held)._warned(tol, max_iter)

    @classmethod
    def _each(cls, data: Any, options: dict[str, Any]) -> Sequence[Any]:
        return single_series(data, options)
