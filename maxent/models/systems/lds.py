"""Linear dynamical systems.

    s_0 ~ N(m, P),   s_t = A s_{t-1} + b + N(0, Q),   x_t = C s_t + c + N(0, R)

Sources: Shumway & Stoffer (1982); Jebara, Kondor & Howard (2004), section 4.5.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._inputs.sequences import Sequences, vector_sequences
from maxent._support import validation as v
from maxent.families import Gaussian
from maxent.models import _state_space as checks
from maxent.models._chain_input import columns_of_start, single_series
from maxent.models._criteria import (
    NONE_HELD,
    InformationCriteria,
    covariance_parameters,
)
from maxent.models._holding import as_given, held_of
from maxent.models._state_space import Parameters, read_inputs
from maxent.models._units import Units
from maxent.models.base import FitsOfEach, maximize_by_em
from maxent.models.systems import _lds_em as em
from maxent.models.systems._derivatives import total_gradient
from maxent.models.systems._free_parameters import (
    COVARIANCES,
    Coordinates,
    Held,
    n_held,
)
from maxent.models.systems._state_answers import StateAnswers
from maxent.models.systems._state_fits import (
    diagonal_covariances,
    lds_starts,
    n_states_of,
    standard_errors,
    started,
    width_of,
)
from maxent.models.systems._state_posterior import filtered, filtered_terms

_LOG_2PI = math.log(2.0 * math.pi)


class LinearDynamicalSystem(StateAnswers, InformationCriteria):
    """Linear dynamical system with Gaussian noise.

    States ``s_t = A s_{t-1} + b + N(0, Q)`` that begin at ``s_0 ~ N(m, P)`` are seen as
    ``x_t = C s_t + c + N(0, R)``. Known inputs u_t may add ``B u_t`` to states and
    ``D u_t`` to observations.

    Parameters
    ----------
    transition : array-like (n_states, n_states)
        A.
    transition_cov : array-like (n_states, n_states)
        Q, symmetric positive semidefinite.
    observation : array-like (n_features, n_states)
        C.
    observation_cov : array-like (n_features, n_features)
        R, symmetric positive semidefinite: zero where an output has no noise.
    initial_mean : array-like (n_states,)
        m.
    initial_cov : array-like (n_states, n_states)
        P, symmetric positive semidefinite. A diagonal entry inf is a state that begins
        without a prior (diffuse); the rest of its row and column is zero.
    transition_offset : array-like (n_states,) or float, default=0
        b.
    observation_offset : array-like (n_features,) or float, default=0
        c.
    transition_input : array-like (n_states, n_inputs), optional
        B, of the inputs of the step into a state; those of the first step act on no
        state.
    observation_input : array-like (n_features, n_inputs), optional
        D, of the inputs of the step of an observation.

    Attributes
    ----------
    n_states, n_features, n_inputs : int
    n_steps : int or None
        Length of the time-varying parameters; None of a system that is constant.
    fit_result : EMResult or None

    See Also
    --------
    SwitchingLDS : The transition changes between regimes.
    maxent.kernels.lds_kernel : Kernel between such systems.

    Notes
    -----
    Every parameter but those of the first state and of the inputs may vary with time:
    it then has a leading axis of steps. Entry t holds the step into state t and the
    observation at t, so that entry 0 of `transition`, `transition_cov` and
    `transition_offset` is not used. Such a system has `n_steps` observations and is not
    fitted.

    A change of coordinates of the states changes no result: the parameters are not
    identified by data, likelihoods and kernels are.

    Systems with inputs or with states that begin without a prior are no laws of
    sequences by themselves: kernels and scores refuse them.

    References
    ----------
    Shumway & Stoffer (1982), An approach to time series smoothing and forecasting using
    the EM algorithm, Journal of Time Series Analysis 3, 253-264.

    Durbin & Koopman (2012), Time Series Analysis by State Space Methods, chapter 5.

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
    _names = Parameters._fields

    transition: NDArray[np.float64]
    transition_cov: NDArray[np.float64]
    observation: NDArray[np.float64]
    observation_cov: NDArray[np.float64]
    initial_mean: NDArray[np.float64]
    initial_cov: NDArray[np.float64]
    transition_offset: NDArray[np.float64]
    observation_offset: NDArray[np.float64]
    transition_input: NDArray[np.float64]
    observation_input: NDArray[np.float64]
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
        transition_input: ArrayLike | None = None,
        observation_input: ArrayLike | None = None,
    ) -> None:
        found, n_steps = checks.checked(
            Parameters(
                transition,
                transition_cov,
                observation,
                observation_cov,
                initial_mean,
                initial_cov,
                transition_offset,
                observation_offset,
                transition_input,
                observation_input,
            )
        )
        self._set(
            **found._asdict(),
            n_states=len(found.initial_mean),
            n_features=found.observation.shape[-2],
            n_inputs=found.transition_input.shape[1],
            n_steps=n_steps,
        )

    @functools.cached_property
    def _compiled(self) -> checks.Arrays:
        """Arrays for the compiled functions, of a system that is a law by itself."""
        self._check_law()
        return self._parameters.compiled()

    def _check_law(self) -> None:
        """Refuse a system that is no law of sequences without more."""
        if self.n_inputs:
            raise ValueError(
                f"the system has n_inputs={self.n_inputs}: without their values it is "
                "no law of sequences. Use one without inputs here."
            )
        if self._parameters.diffuse.any():
            raise ValueError(
                "initial_cov has infinite entries: the system is no law of sequences. "
                "Use one with a finite initial_cov here."
            )

    # -- laws --------------------------------------------------------------------------
    def _free_parameters(self, held=NONE_HELD):
        n, d, steps = self.n_states, self.n_features, self.n_steps
        if steps is not None:
            raise ValueError(
                f"n_parameters of a system that varies over n_steps={steps} is not "
                "known; count those that were chosen by the data."
            )
        # A, Q and b, m and P, C, R and c; a change s -> T s + u of the states is free
        own = n * n + 2 * covariance_parameters(n) + 2 * n + (n + self.n_inputs) * d
        own += covariance_parameters(d) + d - n * (n + 1 - self.n_inputs)
        return own - n_held([(self._parameters, held)])

    def _holdable(self):
        """Shapes of masks of parameters that may stay in a fit."""
        return {name: np.shape(X) for name, X in self.parameters().items()}

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
        self, sequences: Any, lengths: ArrayLike | None = None, *, inputs: Any = None
    ) -> NDArray[np.float64]:
        """Log-density of every sequence.

        Parameters
        ----------
        sequences : list, array-like (n_steps, n_features) or (n, n_steps, n_features)
            NaN where an entry, or a whole row, was not observed.
        lengths : array-like of int, optional
            Lengths of the sequences in one array.
        inputs : like sequences, optional
            Of the steps, of a system that has inputs.

        Returns
        -------
        ndarray (n_sequences,)
            In nats. Where `initial_cov` has infinite entries it is the diffuse
            log-likelihood: the limit of log p + (q / 2) log kappa for q states of a
            variance kappa that grows.
        """
        data = self._read_all(sequences, lengths)
        if self.n_inputs or inputs is not None or self._parameters.diffuse.any():
            laws, free = self._laws(data, lengths, inputs), self._parameters.diffuse
            each = [
                filtered(law, x, i, free).log_likelihood
                for i, (law, x) in enumerate(zip(laws, data))
            ]
            return np.array(each)
        log_det, far = filtered_terms(self._compiled, data)
        observed = np.count_nonzero(~np.isnan(data.values), axis=1)
        terms = log_det + far + _LOG_2PI * observed
        return -0.5 * np.add.reduceat(terms, data.offsets[:-1])

    def _read(self, sequences: Any) -> Sequences:
        return self._read_all(sequences, None)

    def standard_errors(
        self,
        sequences: Any,
        lengths: ArrayLike | None = None,
        *,
        fixed: Iterable[str] | Mapping[str, Any] = (),
        transition_cov_type: Literal["full", "diagonal"] = "full",
        observation_cov_type: Literal["full", "diagonal"] = "full",
        inputs: Any = None,
    ) -> dict[str, NDArray[np.float64]]:
        """Standard errors of the parameters at a maximum of the likelihood.

        Parameters
        ----------
        sequences, lengths, inputs
            As of the fit, which has ``prior=0`` and a small `tol`.
        fixed, transition_cov_type, observation_cov_type
            As of the fit: what was held has the error zero.

        Returns
        -------
        dict of ndarray
            In the shapes of :meth:`parameters`: square roots of the diagonal of the
            inverse of the observed information, which is the derivative of the exact
            score by central differences. Variances that are zero count as held.

        Raises
        ------
        ValueError
            If the information is singular: a change of coordinates of the states
            changes no likelihood, so enough must be held.

        Examples
        --------
        >>> from maxent.models import LinearDynamicalSystem
        >>> walk = LinearDynamicalSystem(
        ...     transition=[[1.0]], transition_cov=[[1.0]], observation=[[1.0]],
        ...     observation_cov=[[0.0]], initial_mean=[0.0], initial_cov=[[1.0]])
        >>> x = [0.0, 1.0, 0.0, 1.0, 0.0]       # four steps of variance one
        >>> names = set(walk.parameters()) - {"transition_cov"}
        >>> errors = walk.standard_errors([x], fixed=names)
        >>> errors["transition_cov"].round(4)   # sqrt(2 / 4)
        array([[0.7071]])
        """
        data = self._read_all(sequences, lengths)
        each = read_inputs(inputs, data, lengths, self.n_inputs)
        diagonal = diagonal_covariances(transition_cov_type, observation_cov_type)
        p = self._parameters
        held = Held.of(held_of(fixed, self, COVARIANCES), p, diagonal)

        def score(q: Parameters) -> NDArray[np.float64]:
            by_entry = total_gradient(q, data, each)[1]
            return Coordinates.of(q, held).pull(q, by_entry)

        return standard_errors(p, held, score)

    # -- fits --------------------------------------------------------------------------
    @classmethod
    def fit(
        cls,
        sequences: Any,
        n_states: int | None = None,
        lengths: ArrayLike | None = None,
        *,
        prior: float = 0.1,
        fixed: Iterable[str] | Mapping[str, Any] = (),
        transition_cov_type: Literal["full", "diagonal"] = "full",
        observation_cov_type: Literal["full", "diagonal"] = "full",
        initial: Literal["fitted", "diffuse"] = "fitted",
        stable: bool = True,
        init: LinearDynamicalSystem | None = None,
        n_init: int = 1,
        max_iter: int = 5000,
        tol: float = 2e-5,
        inputs: Any = None,
        n_jobs: int | None = None,
        callback: Callable[[int, float, float], object] | None = None,
        random_state: Any = None,
    ) -> Self:
        """Fit by EM with quasi-Newton steps: maximum a posteriori, monotone.

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
        fixed : iterable of str, or dict of masks by name, default=()
            Parameters that keep the value of `init`. A mask is True where an entry is
            held; of covariances it holds variances of a diagonal one, (n,).
        transition_cov_type, observation_cov_type : {"full", "diagonal"}, default="full"
            Kind of the covariances that are fitted.
        initial : {"fitted", "diffuse"}, default="fitted"
            "diffuse" begins all states without a prior, whatever `init` has; the
            objective is then the diffuse likelihood. Entries inf of
            ``init.initial_cov`` stay. Columns of `transition` and `observation` of such
            states must be held, or the likelihood has no maximum.
        stable : bool, default=True
            Keep the spectral radius of `transition` at most one.
        init : LinearDynamicalSystem, optional
            Start; None takes principal components of windows of the data.
        n_init : int, default=1
            Starts; those after the first add noise to the states. The best is kept.
        max_iter : int, default=5000
            Steps at most.
        tol : float, default=2e-5
            A run ends once a step gains, and was expected to gain, at most `tol` nats
            per observed value. With 1e-4 some fits end far from the optimum; parameters
            to four digits take 1e-9.
        inputs : like sequences, optional
            Known inputs of the steps, whose matrices are fitted.
        n_jobs : int, optional
            Threads over sequences.
        callback : callable(n_iter, objective, gain), optional
            Called after every step; True ends the fit.
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
        masks = held_of(fixed, init, COVARIANCES)
        diagonal = diagonal_covariances(transition_cov_type, observation_cov_type)
        v.check_choice("initial", initial, ("fitted", "diffuse"))
        n = n_states_of(init, n_states)
        data = vector_sequences(sequences, lengths, partly=True, columns=columns)
        given = read_inputs(inputs, data, lengths, None)
        units, starts = Units(data), []
        standard = units.standardised(data)
        asked = n_init, masks, diagonal, random_state, width_of(given)
        for p in lds_starts(standard, n, units, init, *asked):
            starts.append(started(p, diagonal, masks, initial == "diffuse"))
        held = Held.of(masks, starts[0], diagonal)
        shift = units.log_density
        # the prior's own change of units
        own = held.block("observation_cov")
        shift -= prior * float(np.log(units.scale[own]).sum())
        problem = em.Problem(
            standard, em.CovariancePrior(prior), held, stable, shift, n_jobs, given
        )
        best, result = maximize_by_em(
            problem.step,
            starts,
            tol=tol,
            max_iter=max_iter,
            callback=callback,
            size=units.observed,
            faster=problem.faster,
        )
        new = best.outward(units)._asdict()
        for name in masks:
            if name.startswith("observation"):
                new[name] = as_given(new[name], getattr(init, name), masks[name])
        model = cls(**new)._with_result(result)._with_names(data.columns)
        kept = {name: m for name, m in held.masks._asdict().items() if m.any()}
        return model._with_held(kept)._warned(tol, max_iter)

    @classmethod
    def _each(cls, data: Any, options: dict[str, Any]) -> Sequence[Any]:
        if options.get("inputs") is not None:
            raise ValueError(
                "inputs= belongs to one fit; fit each series by fit(x, inputs=u)."
            )
        return single_series(data, options)
