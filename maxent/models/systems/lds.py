"""Linear dynamical systems.

    s_0 ~ N(m, P),   s_t = A s_{t-1} + b + N(0, Q),   x_t = C s_t + c + N(0, R)

Sources: Shumway & Stoffer (1982); Jebara, Kondor & Howard (2004), section 4.5.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._inputs.sequences import Sequences, vector_sequences
from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent.families import Gaussian
from maxent.models import _state_space as checks
from maxent.models._chain_input import (
    columns_of_start,
    drawn_offsets,
    single_series,
)
from maxent.models._criteria import InformationCriteria, covariance_parameters
from maxent.models._units import Units
from maxent.models.base import FitsOfEach, Model, maximize_by_em
from maxent.models.systems import _lds_em as em
from maxent.models.systems._state_fits import (
    check_fixed,
    lds_starts,
    n_states_of,
)
from maxent.models.systems._state_posterior import (
    StatePosterior,
    draw,
    filtered_terms,
    smoothed,
)

_LOG_2PI = math.log(2.0 * math.pi)

Parameter = Literal[
    "transition",
    "transition_cov",
    "observation",
    "observation_cov",
    "initial_mean",
    "initial_cov",
    "transition_offset",
    "observation_offset",
]


class LinearDynamicalSystem(InformationCriteria, Model):
    """Linear dynamical system with Gaussian noise.

    States ``s_t = A s_{t-1} + b + N(0, Q)`` that begin at ``s_0 ~ N(m, P)`` are seen as
    ``x_t = C s_t + c + N(0, R)``.

    Parameters
    ----------
    transition : array-like (n_states, n_states)
        A.
    transition_cov : array-like (n_states, n_states)
        Q, symmetric positive semidefinite.
    observation : array-like (n_features, n_states)
        C.
    observation_cov : array-like (n_features, n_features)
        R, symmetric positive definite.
    initial_mean : array-like (n_states,)
        m.
    initial_cov : array-like (n_states, n_states)
        P, symmetric positive semidefinite.
    transition_offset : array-like (n_states,) or float, default=0
        b.
    observation_offset : array-like (n_features,) or float, default=0
        c.

    Attributes
    ----------
    n_states, n_features : int
    n_steps : int or None
        Length of the time-varying parameters; None of a system that is constant.
    fit_result : EMResult or None

    See Also
    --------
    SwitchingLDS : The transition changes between regimes.
    maxent.kernels.lds_kernel : Kernel between such systems.

    Notes
    -----
    Every parameter but `initial_mean` and `initial_cov` may vary with time: it then has
    a leading axis of steps. Entry t holds the step into state t and the observation at
    t, so that entry 0 of `transition`, `transition_cov` and `transition_offset` is not
    used. Such a system has `n_steps` observations and is not fitted.

    A change of coordinates of the states changes no result: the parameters are not
    identified by data, likelihoods and kernels are.

    References
    ----------
    Shumway & Stoffer (1982), An approach to time series smoothing and forecasting using
    the EM algorithm, Journal of Time Series Analysis 3, 253-264.

    Examples
    --------
    >>> from maxent.models import LinearDynamicalSystem
    >>> model = LinearDynamicalSystem(
    ...     transition=[[0.9]], transition_cov=[[0.2]], observation=[[1.0]],
    ...     observation_cov=[[0.1]], initial_mean=[0.0], initial_cov=[[1.0]])
    >>> x = model.sample(1, 200, random_state=0)[0]
    >>> x.shape, model.log_likelihood(x).round(2)
    ((200, 1), array([-179.61]))
    >>> fitted = LinearDynamicalSystem.fit(x, n_states=1)
    >>> bool(fitted.log_likelihood(x)[0] > model.log_likelihood(x)[0])
    True
    """

    _data = "series"
    _fits_of_each = FitsOfEach("prior", looser={"tol": 1e-4}, sizes={"n_states": 2})
    _names = em.Parameters._fields

    transition: NDArray[np.float64]
    transition_cov: NDArray[np.float64]
    observation: NDArray[np.float64]
    observation_cov: NDArray[np.float64]
    initial_mean: NDArray[np.float64]
    initial_cov: NDArray[np.float64]
    transition_offset: NDArray[np.float64]
    observation_offset: NDArray[np.float64]
    n_states: int
    n_features: int
    n_steps: int | None

    def __init__(
        self,
        transition: ArrayLike,
        transition_cov: ArrayLike,
        observation: ArrayLike,
        observation_cov: ArrayLike,
        initial_mean: ArrayLike,
        initial_cov: ArrayLike,
        transition_offset: ArrayLike = 0.0,
        observation_offset: ArrayLike = 0.0,
    ) -> None:
        found, n_steps = em.checked(
            em.Parameters(
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
        self._set(
            **found._asdict(),
            n_states=len(found.initial_mean),
            n_features=found.observation.shape[-2],
            n_steps=n_steps,
        )

    @functools.cached_property
    def _compiled(self) -> checks.Arrays:
        """Arrays for the compiled functions."""
        return self._parameters.compiled()

    # -- laws --------------------------------------------------------------------------
    @property
    def _parameters(self) -> em.Parameters:
        return em.Parameters(**self.parameters())

    @property
    def n_parameters(self) -> int:
        """Number of free parameters, less those of the coordinates of the states."""
        n, d, steps = self.n_states, self.n_features, self.n_steps
        if steps is not None:
            raise ValueError(
                f"n_parameters of a system that varies over n_steps={steps} is not "
                "known; count those that were chosen by the data."
            )
        # A, Q and b, m and P, C, R and c; a change s -> T s + u of the states is free
        own = n * n + 2 * covariance_parameters(n) + 2 * n + n * d
        return own + covariance_parameters(d) + d - n * (n + 1)

    def spectral_radius(self) -> float:
        """Largest modulus of an eigenvalue of the transition matrix.

        Returns
        -------
        float
            Below 1 the system is stable.
        """
        return checks.spectral_radius(self.transition)

    def marginals(self, horizon: int) -> Gaussian:
        """Distribution of every observation x_0 .. x_T on its own.

        Parameters
        ----------
        horizon : int
            T >= 0.

        Returns
        -------
        Gaussian
            Batch of shape ``(T + 1,)``.
        """
        T = checks.check_horizon(horizon, self)
        _, _, A, b, Q, C, c, R, which = self._compiled
        which = np.zeros(T + 1, dtype=np.intp) if len(A) == 1 else which
        mean, cov = self.initial_mean, self.initial_cov
        means, covs = np.empty((T + 1, self.n_features)), []
        with np.errstate(over="ignore", invalid="ignore"):
            for t, r in enumerate(which[: T + 1]):
                if t:
                    mean, cov = A[r] @ mean + b[r], A[r] @ cov @ A[r].T + Q[r]
                means[t] = C[r] @ mean + c[r]
                covs.append(C[r] @ cov @ C[r].T + R[r])
        every = np.array(covs)
        checks.refuse_overflow(means, every)
        return Gaussian(means, 0.5 * (every + np.swapaxes(every, 1, 2)))

    def log_likelihood(
        self, sequences: Any, lengths: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Log-density of every sequence.

        Parameters
        ----------
        sequences : list, array-like (n_steps, n_features) or (n, n_steps, n_features)
            NaN where an entry, or a whole row, was not observed.
        lengths : array-like of int, optional
            Lengths of the sequences in one array.

        Returns
        -------
        ndarray (n_sequences,)
            In nats.
        """
        data = self._read_all(sequences, lengths)
        log_det, far = filtered_terms(self._compiled, data)
        observed = np.count_nonzero(~np.isnan(data.values), axis=1)
        terms = log_det + far + _LOG_2PI * observed
        return -0.5 * np.add.reduceat(terms, data.offsets[:-1])

    def posterior(
        self, sequences: Any, lengths: ArrayLike | None = None
    ) -> list[StatePosterior]:
        """Distribution of the states of every sequence (Kalman smoother).

        Parameters
        ----------
        sequences : list, array-like (n_steps, n_features) or (n, n_steps, n_features)
        lengths : array-like of int, optional

        Returns
        -------
        list of StatePosterior
            One per sequence.
        """
        data = self._read_all(sequences, lengths)
        arrays = self._compiled
        return [smoothed(arrays, x, self.n_states, i) for i, x in enumerate(data)]

    def forecast(self, sequence: ArrayLike, steps: int) -> Gaussian:
        """Distribution of each of the steps that follow a sequence.

        Parameters
        ----------
        sequence : array-like (n_steps, n_features)
        steps : int
            Number of steps, >= 1.

        Returns
        -------
        Gaussian
            Batch of shape ``(steps,)``: `mean` and `cov` of x given the sequence.
        """
        x = self._read([sequence]).values
        missing = np.full((v.check_count("steps", steps), self.n_features), np.nan)
        arrays, data = self._compiled, self._read([np.concatenate([x, missing])])
        found = smoothed(arrays, data.values, self.n_states, 0)
        C, c, R, which = arrays[5:]
        own = np.zeros(steps, dtype=np.intp) if len(C) == 1 else which[len(x) :][:steps]
        C, ahead = C[own], slice(len(x), None)
        mean = (C @ found.mean[ahead, :, None])[..., 0] + c[own]
        cov = C @ found.cov[ahead] @ C.swapaxes(1, 2) + R[own]
        return Gaussian(mean, 0.5 * (cov + cov.swapaxes(1, 2)))

    @overload
    def sample(
        self,
        n: int,
        length: ArrayLike,
        random_state: Any = ...,
        *,
        return_states: Literal[False] = ...,
    ) -> list[NDArray[np.float64]]: ...
    @overload
    def sample(
        self,
        n: int,
        length: ArrayLike,
        random_state: Any = ...,
        *,
        return_states: Literal[True],
    ) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]: ...
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
            Return the states too.

        Returns
        -------
        sequences : list of ndarray (n_steps, n_features)
        states : list of ndarray (n_steps, n_states)
            Only if `return_states`.
        """
        lengths = np.diff(drawn_offsets(n, length))
        checks.check_horizon(int(lengths.max()) - 1, self)
        rng = as_generator(random_state)
        drawn = [draw(self._compiled, int(T), rng) for T in lengths]
        sequences = [x for _, x in drawn]
        return (sequences, [s for s, _ in drawn]) if return_states else sequences

    def _read(self, sequences: Any) -> Sequences:
        return self._read_all(sequences, None)

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

    # -- fits --------------------------------------------------------------------------
    @classmethod
    def fit(
        cls,
        sequences: Any,
        n_states: int | None = None,
        lengths: ArrayLike | None = None,
        *,
        prior: float = 0.1,
        fixed: Iterable[Parameter] = (),
        stable: bool = True,
        init: LinearDynamicalSystem | None = None,
        n_init: int = 1,
        max_iter: int = 5000,
        tol: float = 2e-5,
        n_jobs: int | None = None,
        callback: Callable[[int, float, float], object] | None = None,
        random_state: Any = None,
    ) -> Self:
        """Fit by EM: maximum a posteriori, monotone.

        Parameters
        ----------
        sequences : list, array-like (n_steps, n_features) or (n, n_steps, n_features)
            NaN where an entry, or a whole row, was not observed.
        n_states : int, optional
            Dimension of the states; not needed with `init`.
        lengths : array-like of int, optional
            Lengths of the sequences in one array.
        prior : float, default=0.1
            Pseudo-observations, >= 0, of each covariance: the identity for
            `transition_cov` and `initial_cov` (states start with variance one), the
            variances of the columns for `observation_cov`: the units of the columns
            do not matter. They widen noise below ``sqrt(prior / n_steps)`` of a
            column's standard deviation to about that; take a smaller prior for
            measurements so precise. 0 is maximum likelihood, which drives
            `initial_cov` to zero where there is one sequence.
        fixed : iterable of str, default=()
            Names of parameters that keep the value they start with.
        stable : bool, default=True
            Keep the spectral radius of `transition` at most one.
        init : LinearDynamicalSystem, optional
            Start; None takes principal components of windows of the data.
        n_init : int, default=1
            Starts; those after the first add noise to the states. The best is kept.
        max_iter : int, default=5000
            EM steps at most.
        tol : float, default=2e-5
            A run ends once a step gains at most `tol` nats per observed value. With
            1e-4 some fits end far from the optimum; 1e-6 can take ten times the steps.
        n_jobs : int, optional
            Threads over sequences.
        callback : callable(n_iter, objective, gain), optional
            Called after every E step; True ends the fit.
        random_state : int, Generator, RandomState or None, default=None
            Used by starts after the first.

        Returns
        -------
        LinearDynamicalSystem
            Its `fit_result` has the trace.

        Raises
        ------
        ValueError
            If the data or the options are not valid.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` steps were not enough, or the objective fell by more than
            rounding.
        """
        v.check_stop(tol, max_iter)
        columns = columns_of_start(init, cls)
        prior = v.check_nonnegative("prior", prior)
        n_init = v.check_count("n_init", n_init)
        held = check_fixed(fixed, cls._names)
        n = n_states_of(init, n_states)
        data = vector_sequences(sequences, lengths, partly=True, columns=columns)
        units = Units(data)
        shift = units.log_density
        if "observation_cov" not in held:  # the prior's own change of units
            shift -= prior * float(np.log(units.scale).sum())
        problem = em.Problem(
            units.standardised(data),
            em.CovariancePrior(prior),
            held,
            stable,
            shift,
            n_jobs,
        )
        starts = lds_starts(problem.data, n, units, init, n_init, held, random_state)
        best, result = maximize_by_em(
            problem.step,
            starts,
            tol=tol,
            max_iter=max_iter,
            callback=callback,
            size=units.observed,
        )
        model = cls(**units.outward(best)._asdict())._with_result(result)
        return model._with_names(data.columns)._warned(tol, max_iter)

    @classmethod
    def _each(cls, data: Any, options: dict[str, Any]) -> Sequence[Any]:
        return single_series(data, options)
