"""Switching linear dynamical systems.

    s_t = A_q s_{t-1} + b_q + N(0, Q_q)   with q = q_t, a Markov chain of regimes
    x_t = C s_t + c + N(0, R)

Source: Jebara, Kondor & Howard (2004), section 5.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from maxent._inputs.sequences import Sequences, vector_sequences
from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent.families._checks import least_of_correlation
from maxent.models._chain_input import (
    columns_of_start,
    drawn_offsets,
    single_series,
)
from maxent.models._criteria import (
    NONE_HELD,
    InformationCriteria,
    covariance_parameters,
    free_probabilities,
)
from maxent.models._holding import as_given, held_of
from maxent.models._settling import FOR_BOUNDS, SETTLED, settle
from maxent.models._units import Units
from maxent.models.base import FitsOfEach, maximize_by_em
from maxent.models.systems import _lds_em as lds_em
from maxent.models.systems import _switching_em as em
from maxent.models.systems._regime_particles import RegimeAnswers, estimated_likelihood
from maxent.models.systems._regime_paths import MOST_PATHS
from maxent.models.systems._state_fits import n_states_of
from maxent.models.systems._state_posterior import draw
from maxent.models.systems._switching_starts import (
    holding,
    regimes_of,
    switching_start,
)


@dataclass(frozen=True, repr=False)
class SwitchingPosterior:
    """Variational distribution of the states and regimes of one sequence.

    Parameters
    ----------
    mean : ndarray (n_steps, n_states)
    cov : ndarray (n_steps, n_states, n_states)
    regimes : ndarray (n_steps - 1, n_regimes)
        Probabilities of the regimes of the steps into s_1, s_2, ...
    bound : float
        Lower bound of the log-likelihood that it certifies.
    """

    mean: NDArray[np.float64]
    cov: NDArray[np.float64]
    regimes: NDArray[np.float64]
    bound: float

    def __repr__(self) -> str:
        n_steps, n_states = self.mean.shape
        return (
            f"SwitchingPosterior({n_steps} steps, {n_states} states, "
            f"{self.regimes.shape[1]} regimes, bound={self.bound:.6g})"
        )


class SwitchingLDS(RegimeAnswers, InformationCriteria):
    """Linear dynamical system whose transition changes between regimes.

    A Markov chain of regimes q_1, q_2, ... chooses the step into each state:
    ``s_t = A_q s_{t-1} + b_q + N(0, Q_q)``; states begin at ``s_0 ~ N(m, P)`` and are
    seen as ``x_t = C s_t + c + N(0, R)``.

    Parameters
    ----------
    start : array-like (n_regimes,)
        Probabilities of q_1, the regime of the step into s_1.
    switching : array-like (n_regimes, n_regimes)
        Probabilities of the next regime; rows sum to one.
    transition : array-like (n_regimes, n_states, n_states)
        A of every regime.
    transition_cov : array-like (n_regimes, n_states, n_states)
        Q of every regime, symmetric positive semidefinite.
    observation : array-like (n_features, n_states)
        C.
    observation_cov : array-like (n_features, n_features)
        R, symmetric positive definite.
    initial_mean : array-like (n_states,)
        m.
    initial_cov : array-like (n_states, n_states)
        P, symmetric positive semidefinite.
    transition_offset : array-like (n_regimes, n_states) or float, default=0
        b of every regime.
    observation_offset : array-like (n_features,) or float, default=0
        c.

    Attributes
    ----------
    n_regimes, n_states, n_features : int
    fit_result : EMResult or None
        Its objective is a lower bound of the log-likelihood, plus the prior.

    See Also
    --------
    LinearDynamicalSystem : One regime.
    maxent.kernels.switching_lds_kernel : Kernel between such systems.

    References
    ----------
    Ghahramani & Hinton (2000), Variational learning for switching state-space models,
    Neural Computation 12, 831-864.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.models import SwitchingLDS
    >>> model = SwitchingLDS(
    ...     start=[0.5, 0.5], switching=[[0.9, 0.1], [0.1, 0.9]],
    ...     transition=[[[0.9]], [[-0.9]]], transition_cov=[[[0.2]], [[0.2]]],
    ...     observation=[[1.0]], observation_cov=[[0.1]],
    ...     initial_mean=[0.0], initial_cov=[[1.0]])
    >>> x, regimes = model.sample(1, 10, random_state=0, return_regimes=True)
    >>> bool(model.lower_bound(x)[0] <= model.log_likelihood(x)[0])
    True
    >>> model.posterior(x)[0].regimes.shape
    (9, 2)
    """

    _data = "series"
    _fits_of_each = FitsOfEach(needs_prior=True, sizes={"n_regimes": 2, "n_states": 2})
    _names = em.Parameters._fields

    n_steps = None  # systems do not vary with time beyond their regimes

    def __init__(
        self,
        start: ArrayLike,
        switching: ArrayLike,
        transition: ArrayLike,
        transition_cov: ArrayLike,
        observation: ArrayLike,
        observation_cov: ArrayLike,
        initial_mean: ArrayLike,
        initial_cov: ArrayLike,
        transition_offset: ArrayLike = 0.0,
        observation_offset: ArrayLike = 0.0,
    ) -> None:
        found = em.checked(
            em.Parameters(
                start,
                switching,
                transition,
                transition_cov,
                observation,
                observation_cov,
                initial_mean,
                initial_cov,
                transition_offset,
                observation_offset,
            )
        )
        self._set(**found._asdict())

    @property
    def _parameters(self) -> em.Parameters:
        return em.Parameters(**self.parameters())

    def _free_parameters(self, held=NONE_HELD):
        n, d, K = self.n_states, self.n_features, self.n_regimes
        own = K * (n * n + covariance_parameters(n) + n)  # A, Q and b of regimes
        own += n * d + covariance_parameters(d) + d + n + covariance_parameters(n)
        chain = free_probabilities(self.start, held.get("start"))
        chain += free_probabilities(self.switching, held.get("switching"))
        # a change s -> T s + u of the states is free
        return own + chain - n * (n + 1) - em.n_held_of(self._parameters, held)

    def _holdable(self):
        """Shapes of masks of parameters that may stay in a fit."""
        shapes = {name: np.shape(X) for name, X in self.parameters().items()}
        return {k: s[:-2] if k.endswith("_cov") else s for k, s in shapes.items()}

    def log_likelihood(
        self, sequences: Any, lengths: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Log-density of every sequence: over all paths of regimes, or estimated.

        Parameters
        ----------
        sequences : list, array-like (n_steps, n_features) or (n, n_steps, n_features)
            NaN where an entry, or a whole row, was not observed.
        lengths : array-like of int, optional
            Lengths of the sequences in one array.

        Returns
        -------
        ndarray (n_sequences,)
            Of a sequence with more than 65536 paths it is the logarithm of an unbiased
            estimate of the density, by particle filters with a seed of their own;
            :meth:`likelihood_estimate` has its standard error and more settings.
        """
        data = self._read(sequences, lengths)
        out = np.empty(len(data))
        for i, x in enumerate(data):
            if float(self.n_regimes) ** (len(x) - 1) > MOST_PATHS:
                rng = as_generator(0)
                out[i] = estimated_likelihood(self, x, 500, 10, rng)[0]
                continue
            paths = self.all_paths(len(x) - 1)
            terms = self.log_path(paths)
            for k in np.flatnonzero(terms > -np.inf):
                terms[k] += self.given_path(paths[k]).log_likelihood(x)[0]
            out[i] = logsumexp(terms)
        return out

    def lower_bound(
        self, sequences: Any, lengths: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Lower bound of the log-density of every sequence.

        Parameters
        ----------
        sequences, lengths
            As in :meth:`log_likelihood`.

        Returns
        -------
        ndarray (n_sequences,)
            From a structured variational distribution; exact with one regime.

        Raises
        ------
        ValueError
            If `transition_cov` or `initial_cov` is singular.
        """
        return self._beliefs(self._read(sequences, lengths), FOR_BOUNDS)[1].bounds

    def posterior(
        self, sequences: Any, lengths: ArrayLike | None = None
    ) -> list[SwitchingPosterior]:
        """Variational distribution of states and regimes of every sequence.

        Parameters
        ----------
        sequences, lengths
            As in :meth:`log_likelihood`.

        Returns
        -------
        list of SwitchingPosterior
            The regimes in gaps of missing rows, and after the last observed one, come
            out far too sure: use the chain of regimes from the last observed step
            there, ``regimes[t] @ switching**k``. Probabilities are within about 1e-8 of
            a stationary point of the bound.

        Raises
        ------
        ValueError
            If `transition_cov` or `initial_cov` is singular.

        Warns
        -----
        ConvergenceWarning
            If the distribution did not settle in 10000 sweeps.
        """
        data = self._read(sequences, lengths)
        _, q = self._beliefs(data)
        ends = data.offsets - np.arange(len(data.offsets))
        return [
            SwitchingPosterior(
                q.mean[lo:hi], q.cov[lo:hi], q.regimes[ends[i] : ends[i + 1]], bound
            )
            for i, (lo, hi, bound) in enumerate(
                zip(data.offsets[:-1], data.offsets[1:], q.bounds.tolist())
            )
        ]

    def viterbi(
        self, sequences: Any, lengths: ArrayLike | None = None
    ) -> tuple[list[NDArray[np.intp]], NDArray[np.float64]]:
        """Most likely regimes of every sequence under the variational distribution.

        Parameters
        ----------
        sequences, lengths
            As in :meth:`log_likelihood`.

        Returns
        -------
        paths : list of ndarray of int (n_steps - 1,)
            Regimes of the steps into s_1, s_2, ...: the most likely path of the chain
            of regimes in the distribution of :meth:`posterior`, by the Viterbi
            algorithm. Given the sequence another path may be more likely.
        log_prob : ndarray (n_sequences,)
            Log-density of path and sequence together, exact: the states are summed out
            by a Kalman filter.

        Raises
        ------
        ValueError
            If `transition_cov` or `initial_cov` is singular.
        """
        data = self._read(sequences, lengths)
        problem, q = self._beliefs(data)
        path = problem.best_regimes(self._parameters, q)
        paths = list(Sequences(path, data.offsets - np.arange(len(data.offsets))))
        log_prob = [
            self.log_path(own[None])[0] + self.given_path(own).log_likelihood(x)[0]
            for own, x in zip(paths, data)
        ]
        return paths, np.array(log_prob)

    def _beliefs(self, data, left=SETTLED):
        """Variational distributions at these parameters, from even regimes."""
        for name in ("transition_cov", "initial_cov"):
            if least_of_correlation(getattr(self, name)).min() <= 0:
                raise ValueError(
                    f"{name} is singular; the variational distribution of the states "
                    "needs positive definite covariances. Add a ridge to its diagonal."
                )
        problem, K = em.Problem(data), self.n_regimes
        even = np.full((len(problem.into), K), 1.0 / K)
        q = problem.believe(self._parameters, even)

        def sweep():
            nonlocal q
            old, q = q, problem.believe(self._parameters, q.regimes)
            return float(np.abs(q.regimes - old.regimes).max(initial=0.0))

        settle(sweep, "a SwitchingLDS", left)
        return problem, q

    @overload
    def sample(
        self,
        n: int,
        length: ArrayLike,
        random_state: Any = ...,
        *,
        given: Any = ...,
        n_particles: int = ...,
        return_regimes: Literal[False] = ...,
    ) -> list[NDArray[np.float64]]: ...
    @overload
    def sample(
        self,
        n: int,
        length: ArrayLike,
        random_state: Any = ...,
        *,
        given: Any = ...,
        n_particles: int = ...,
        return_regimes: Literal[True],
    ) -> tuple[list[NDArray[np.float64]], list[NDArray[np.intp]]]: ...
    def sample(
        self,
        n: int,
        length: ArrayLike,
        random_state: Any = None,
        *,
        given: Any = None,
        n_particles: int = 500,
        return_regimes: bool = False,
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
            follow it, from particles at its end.
        n_particles : int, default=500
            Paths of regimes of `given` that are kept.
        return_regimes : bool, default=False
            Return the paths of regimes too.

        Returns
        -------
        sequences : list of ndarray (n_steps, n_features)
        regimes : list of ndarray of int (n_steps - 1,)
            Only if `return_regimes`; of futures one for each step.
        """
        rng = as_generator(random_state)
        if given is not None:
            kept = v.check_count("n_particles", n_particles)
            drawn = self._futures(n, length, given, kept, rng)
            return drawn if return_regimes else drawn[0]
        sequences, regimes = [], []
        for T in np.diff(drawn_offsets(n, length)).tolist():
            path = self.sample_paths(1, T - 1, rng)
            sequences.append(draw(self._compiled(path)[0], T, rng)[1])
            regimes.append(path[0])
        return (sequences, regimes) if return_regimes else sequences

    # -- fits --------------------------------------------------------------------------
    @classmethod
    def fit(
        cls,
        sequences: Any,
        n_regimes: int | None = None,
        n_states: int | None = None,
        lengths: ArrayLike | None = None,
        *,
        prior: float = 0.1,
        smoothing: float = 1.0,
        stable: bool = True,
        init: SwitchingLDS | None = None,
        fixed: Any = None,
        n_init: int = 1,
        max_iter: int = 500,
        tol: float = 1e-4,
        callback: Callable[[int, float, float], object] | None = None,
        random_state: Any = None,
    ) -> Self:
        """Fit by structured variational EM; the bound never falls.

        Parameters
        ----------
        sequences : list, array-like (n_steps, n_features) or (n, n_steps, n_features)
            NaN where an entry, or a whole row, was not observed.
        n_regimes, n_states : int, optional
            Not needed with `init`.
        lengths : array-like of int, optional
            Lengths of the sequences in one array.
        prior : float, default=0.1
            Pseudo-observations, > 0, of each covariance: the identity for those of the
            states, the variances of the columns for `observation_cov`. They widen
            noise below ``sqrt(prior / n_steps)`` of a column's standard deviation to
            about that; take a smaller prior for measurements so precise.
        smoothing : float, default=1.0
            Pseudo-counts >= 0 of every start and switch.
        stable : bool, default=True
            Keep the spectral radius of every transition at most one.
        init : SwitchingLDS, optional
            Start, whose probabilities of zero stay zero; None takes a linear dynamical
            system and random segments.
        fixed : str, list of str, or dict, optional
            Parameters that stay as in `init`; or {name: boolean mask}, True where an
            entry stays. A covariance stays as a whole: of `transition_cov` a mask has
            the shape (n_regimes,).
        n_init : int, default=1
            Starts; the best is kept.
        max_iter : int, default=500
            EM steps at most.
        tol : float, default=1e-4
            A run ends once a step gains at most `tol` nats per observed value.
        callback : callable(n_iter, objective, gain), optional
        random_state : int, Generator, RandomState or None, default=None

        Returns
        -------
        SwitchingLDS

        Warns
        -----
        ConvergenceWarning
            If `max_iter` steps were not enough, or the objective fell by more than
            rounding.
        """
        v.check_stop(tol, max_iter)
        columns = columns_of_start(init, cls)
        prior = v.check_positive("prior", prior)
        smoothing = v.check_nonnegative("smoothing", smoothing)
        K = regimes_of(init, n_regimes)
        n = n_states_of(init, n_states)
        held = held_of(fixed, init)
        if init is not None:
            held = em.whole_covariances(held, init._parameters)
        data = vector_sequences(sequences, lengths, partly=True, columns=columns)
        units, law = Units(data), lds_em.CovariancePrior(prior)
        problem = em.Problem(units.standardised(data))
        # also the prior's own change of units
        shift = units.log_density - prior * float(np.log(units.scale).sum())
        rng = as_generator(random_state)
        starts = [
            switching_start(problem, K, n, units, None if k else init, rng, law)
            for k in range(v.check_count("n_init", n_init))
        ]
        first = em.Parameters(*starts[0][0])
        rules = em.Rules.of(law, smoothing, stable, held, first)
        starts = [
            (tuple(holding(em.Parameters(*p), first, held)), q) for p, q in starts
        ]

        def step(point):
            p, regimes = em.Parameters(*point[0]), point[1]
            q = problem.believe(p, regimes)
            new = em.maximised(problem, p, q, rules)
            objective = float(q.bounds.sum()) + em.log_prior(p, law, smoothing)
            return objective + shift, (tuple(new), q.regimes)

        (best, _), result = maximize_by_em(
            step,
            starts,
            tol=tol,
            max_iter=max_iter,
            callback=callback,
            size=units.observed,
        )
        new = units.outward(em.Parameters(*best))._asdict()
        for name, mask in held.items():
            new[name] = as_given(new[name], getattr(init, name), mask)
        model = cls(**new)._with_result(result)._with_names(data.columns)
        return model._with_held(held)._warned(tol, max_iter)

    @classmethod
    def _each(cls, data: Any, options: dict[str, Any]) -> Sequence[Any]:
        return single_series(data, options)
