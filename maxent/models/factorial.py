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

from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent._support.sequences import Sequences, vector_sequences
from maxent.families import Gaussian
from maxent.models import _state_space as checks
from maxent.models._chain_input import (
    check_chain,
    drawn_offsets,
    drawn_paths,
    with_pseudo_counts,
)
from maxent.models._coupled_chains import (
    CoupledChains,
    exact_log_sums,
    random_beliefs,
    total_means,
)
from maxent.models.base import Model, maximize_by_em
from maxent.models.lds import centred

Array = NDArray[np.float64]
_LOG_2PI = math.log(2.0 * math.pi)
_MOST_STATES = 1_000_000  # joint states that are summed over


class FactorialHMM(Model):
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
        Its objective is a lower bound of the log-likelihood, plus the prior.

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

    # -- inference -----------------------------------------------------------------
    def log_likelihood(self, sequences: Any, lengths: ArrayLike | None = None) -> Array:
        """Log-density of every sequence, by the sum over all joint states.

        Parameters
        ----------
        sequences : array-like (n_steps, n_features), or list of such
            A row of NaN is a missing observation.
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
        if count > _MOST_STATES:
            raise ValueError(
                f"n_states={self.n_states} make {count:.3g} joint states, more than "
                f"{_MOST_STATES}: use lower_bound."
            )
        law = Gaussian(total_means(self.mean), self.cov)
        out = np.empty(len(data))
        for i, x in enumerate(data):
            seen = ~np.isnan(x[:, 0])
            tables = np.zeros((len(x), count))
            tables[seen] = law.log_prob(x[seen]).T if seen.any() else 0.0
            out[i] = exact_log_sums(self.start, self.transition, tables, len(x))[-1]
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
        for k in range(v.check_count("n_init", n_init)):
            beliefs = self._even(data) if k == 0 else None
            out = np.maximum(out, self._bounds(self._settled(data, rng, beliefs)))
        return out

    def posterior(
        self, sequences: Any, lengths: ArrayLike | None = None
    ) -> list[list[Array]]:
        """Mean-field probabilities of the states of every chain, for every sequence.

        Parameters
        ----------
        sequences, lengths
            As in :meth:`log_likelihood`.

        Returns
        -------
        list of list of ndarray (n_steps, S_c)
            For every sequence one array per chain.
        """
        data = self._read(sequences, lengths)
        chains = self._settled(data, None, self._even(data))
        each = [list(Sequences(q, data.offsets)) for q in chains.beliefs]
        return [list(parts) for parts in zip(*each)]

    def _even(self, data):
        return [np.full((len(data.values), S), 1.0 / S) for S in self.n_states]

    def _settled(self, data, rng, beliefs=None):
        if beliefs is None:
            beliefs = random_beliefs(self.n_states, len(data.values), rng)
        chains = CoupledChains(
            self.start,
            self.transition,
            self.mean,
            np.linalg.inv(self.cov),
            data.values,
            data.offsets,
            beliefs,
        )
        chains.settle()
        return chains

    def _bounds(self, chains):
        constant = self.n_features * _LOG_2PI + np.linalg.slogdet(self.cov)[1]
        seen = np.add.reduceat(chains.seen.astype(float), chains.offsets[:-1])
        return chains.bounds() - 0.5 * constant * seen

    def _read(self, sequences: Any, lengths: ArrayLike | None = None) -> Sequences:
        return vector_sequences(sequences, lengths, n_features=self.n_features)

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
        init: FactorialHMM | None = None,
        n_init: int = 1,
        max_iter: int = 500,
        tol: float = 1e-5,
        callback: Callable[[int, float, float], object] | None = None,
        random_state: Any = None,
    ) -> Self:
        """Fit by structured variational EM; the bound never falls.

        Parameters
        ----------
        sequences : array-like (n_steps, n_features), or list of such
            A row of NaN is a missing observation.
        n_states : sequence of int, optional
            States of every chain; not needed with `init`.
        lengths : array-like of int, optional
            Lengths of the sequences in one array.
        smoothing : float, default=0.1
            Pseudo-counts >= 0 of every start and transition.
        shrinkage : float, default=0.1
            Pseudo-observations > 0 of the mean of every state, at the data's centre.
        ridge : float, default=0.1
            Pseudo-observations >= 0 of the covariance, each of the mean variance of the
            data in every direction.
        init : FactorialHMM, optional
            Start; None takes random beliefs about the states.
        n_init : int, default=1
            Starts; the best is kept.
        max_iter : int, default=500
            EM steps at most.
        tol : float, default=1e-5
            A run ends once a step gains at most ``tol * (1 + |objective|)``.
        callback : callable(n_iter, objective, gain), optional
        random_state : int, Generator, RandomState or None, default=None

        Returns
        -------
        FactorialHMM

        Warns
        -----
        ConvergenceWarning
            If `max_iter` steps were not enough.
        """
        return cls._fit(
            sequences,
            n_states,
            lengths,
            smoothing=smoothing,
            shrinkage=shrinkage,
            ridge=ridge,
            init=init,
            n_init=n_init,
            max_iter=max_iter,
            tol=tol,
            callback=callback,
            random_state=random_state,
        )._warned(tol, max_iter)

    @classmethod
    def _fit(
        cls, sequences, n_states=None, lengths=None, *, smoothing=0.1, shrinkage=0.1,
        ridge=0.1, init=None, n_init=1, max_iter=500, tol=1e-5, callback=None,
        random_state=None,
    ):  # fmt: skip
        v.check_stop(tol, max_iter)
        sizes = _sizes(init, n_states)
        data = vector_sequences(sequences, lengths)
        data, centre, noise = centred(data)
        if init is not None and init.n_features != len(centre):
            raise ValueError(
                f"init has {init.n_features} features; the sequences have "
                f"{len(centre)}."
            )
        problem = _Problem(
            data,
            v.check_nonnegative("smoothing", smoothing),
            v.check_positive("shrinkage", shrinkage),
            v.check_nonnegative("ridge", ridge) * noise,
        )
        rng = as_generator(random_state)
        starts = [
            problem.start(sizes, noise, rng, init if k == 0 else None, centre)
            for k in range(v.check_count("n_init", n_init))
        ]
        best, result = maximize_by_em(
            problem.step, starts, tol=tol, max_iter=max_iter, callback=callback
        )
        start, transition, mean, cov, _ = best
        mean = [W + centre / len(mean) for W in mean]
        return cls(start, transition, mean, cov)._with_result(result)

    @classmethod
    def _each(cls, data: Any) -> Sequence[Any]:
        return vector_sequences(data).singles()


def _sizes(init, n_states):
    if n_states is not None and np.ndim(n_states) != 1:
        raise ValueError(
            f"n_states={v.shown(n_states)} must be a list with the number of states of "
            "every chain, such as [2, 3]."
        )
    if init is None:
        if n_states is None:
            raise ValueError("n_states=None: give the states of every chain, or init.")
        return tuple(v.check_count("n_states", S) for S in n_states)
    if n_states is not None and tuple(n_states) != init.n_states:
        raise ValueError(f"n_states={n_states} but init has {init.n_states}.")
    return init.n_states


class _Problem:
    """EM: parameters are tuples (start, transition, mean, cov, beliefs)."""

    def __init__(self, data, smoothing, shrinkage, ridge):
        self.data = data
        self.smoothing, self.shrinkage, self.ridge = smoothing, shrinkage, ridge
        self.seen = ~np.isnan(data.values[:, 0])
        self.x = data.values[self.seen]

    def start(self, sizes, noise, rng, init, centre):
        if init is not None:
            means = tuple(W - centre / init.n_chains for W in init.mean)
            steps = len(self.data.values)
            beliefs = tuple(np.full((steps, S), 1.0 / S) for S in sizes)
            return init.start, init.transition, means, init.cov, beliefs
        beliefs = tuple(random_beliefs(sizes, len(self.data.values), rng))
        spread = np.sqrt(noise / len(sizes))
        means = tuple(spread * rng.normal(size=(S, self.x.shape[1])) for S in sizes)
        start = tuple(np.full(S, 1.0 / S) for S in sizes)
        transition = tuple(np.full((S, S), 0.5 / S) + 0.5 * np.eye(S) for S in sizes)
        return start, transition, means, noise * np.eye(self.x.shape[1]), beliefs

    def step(self, point):
        start, transition, mean, cov, beliefs = point
        chains = CoupledChains(
            start,
            transition,
            mean,
            np.linalg.inv(cov),
            self.data.values,
            self.data.offsets,
            beliefs,
        )
        chains.sweep()
        d, T = self.x.shape[1], len(self.x)
        constant = d * _LOG_2PI + np.linalg.slogdet(cov)[1]
        objective = chains.bound() - 0.5 * T * constant
        objective += self._log_prior(start, transition, mean, cov)
        c = self.smoothing
        pairs = zip(chains.start_counts, start)
        new_start = tuple(with_pseudo_counts(n, c, old) for n, old in pairs)
        pairs = zip(chains.switch_counts, transition)
        new_transition = tuple(with_pseudo_counts(n, c, old) for n, old in pairs)
        W, R = self._emission(chains.beliefs, mean)
        beliefs = tuple(chains.beliefs)
        return objective, (new_start, new_transition, W, R, beliefs)

    def _emission(self, beliefs, mean):
        """W = (sum E s s' + kappa I)^{-1} sum E s x', s the indicators; and R."""
        q = [b[self.seen] for b in beliefs]
        s = np.concatenate(q, axis=1)
        second = s.T @ s
        at = np.cumsum([0, *(b.shape[1] for b in q)])
        for c, own in enumerate(q):
            block = slice(at[c], at[c + 1])
            second[block, block] = np.diag(own.sum(axis=0))
        ridge = self.shrinkage * np.eye(len(second))
        W = np.linalg.solve(second + ridge, s.T @ self.x)
        r = self.x - s @ W
        # sum_c Cov W^c = W' (sum E s s' - sum E s E s') W
        R = r.T @ r + W.T @ (second - s.T @ s + ridge) @ W
        R = (R + self.ridge * np.eye(len(R))) / len(self.x)
        return tuple(np.split(W, at[1:-1])), 0.5 * (R + R.T)

    def _log_prior(self, start, transition, mean, cov):
        inverse = np.linalg.inv(cov)
        W = np.concatenate(mean)
        total = -0.5 * self.shrinkage * float(np.sum((W @ inverse) * W))
        total -= 0.5 * self.ridge * float(np.trace(inverse))
        if self.smoothing > 0:
            tables = (*start, *transition)
            total += self.smoothing * sum(float(np.log(t).sum()) for t in tables)
        return total
