"""Kernel between factorial hidden Markov models.

    k = sum_{q, q'} p(q)^rho p'(q')^rho prod_t psi(q_t, q'_t),
    log psi = c0 - (rho / 2) (m - m')' (R + R')^{-1} (m - m')

with m and m' the sums of the means of the chains and c0 the kernel of N(0, R) and
N(0, R'): coupled chains of both models that observe zero.

Source: Jebara, Kondor & Howard (2004), section 6.1, with the observations integrated
out first; see the errata page of the documentation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._support import validation as v
from maxent._support.random_state import one_seed
from maxent.families import Gaussian
from maxent.kernels._lists import check_horizons, check_models
from maxent.kernels._unit_diagonal import exponential, log_scaled
from maxent.kernels.pairs._gaussian_parts import check_one_power
from maxent.models._settling import FOR_BOUNDS
from maxent.models.chains._coupled_chains import (
    CoupledChains,
    exact_log_sums,
    random_beliefs,
    total_means,
)
from maxent.models.chains.factorial import MOST_STATES, FactorialHMM

Array = NDArray[np.float64]


def factorial_hmm_kernel(
    P: Sequence[FactorialHMM],
    Q: Sequence[FactorialHMM] | None = None,
    *,
    rho: float = 0.5,
    horizon: ArrayLike,
    method: Literal["auto", "exact", "collapsed"] = "auto",
    n_init: int = 4,
    log: bool = False,
    normalize: bool = False,
    random_state: Any = 0,
) -> Array:
    """Return the product kernel of factorial hidden Markov models.

    The power is taken on the joint law of states and observations, as the paper does;
    at rho = 1 that is the kernel of the observations.

    Parameters
    ----------
    P, Q : list of FactorialHMM
        Numbers of chains and states may differ. Q None is P.
    rho : float, default=0.5
        Power > 0.
    horizon : int or array-like of int (n_horizons,)
        T >= 0: sequences have T + 1 observations.
    method : {"auto", "exact", "collapsed"}, default="auto"
        "exact" sums over the joint states of both models, of which there may be a
        million. "collapsed" is mean field over chains, with the observations integrated
        out: a lower bound, and no positive semidefinite matrix in general. "auto" takes
        "exact" for every pair that allows it.
    n_init : int, default=4
        Random starts of mean field; the greatest bound is kept.
    log : bool, default=False
        Return logarithms.
    normalize : bool, default=False
        Divide by the square roots of the kernels of each model with itself. Of bounds
        the quotient may exceed one.
    random_state : int, Generator, RandomState or None, default=0
        For the starts of mean field, which are the same for all pairs of models.

    Returns
    -------
    ndarray (len(P), len(Q), [n_horizons])

    Raises
    ------
    ValueError
        For models over different spaces, and for too many joint states with
        ``method="exact"``.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 6.1.

    Examples
    --------
    >>> from maxent.kernels import factorial_hmm_kernel
    >>> from maxent.models import FactorialHMM
    >>> def model(stay):
    ...     A = [[stay, 1 - stay], [1 - stay, stay]]
    ...     return FactorialHMM(
    ...         [[0.5, 0.5]] * 2, [A] * 2, [[[0.0], [1.0]], [[0.0], [3.0]]], [[0.2]])
    >>> P = [model(0.5), model(0.9)]
    >>> factorial_hmm_kernel(P, rho=1.0, horizon=5, normalize=True).round(3)
    array([[1.   , 0.161],
           [0.161, 1.   ]])
    """
    rho = check_one_power(rho)
    v.check_choice("method", method, ("auto", "exact", "collapsed"))
    n_init = v.check_count("n_init", n_init)
    P = check_models("P", P, FactorialHMM)
    Q = None if Q is None else check_models("Q", Q, FactorialHMM, like=P)
    horizons, one = check_horizons(horizon)
    options = _Options(rho, horizons, method, n_init, one_seed(random_state))
    refuse_too_many_states(method, P, Q or P)
    L = _gram(P, Q, options)
    if normalize:
        own = np.array([options.pair(p, p) for p in P]) if Q else _diagonal(L)
        other = np.array([options.pair(q, q) for q in Q]) if Q else None
        L = log_scaled(L, own, other)
    L = L[..., 0] if one else L
    return L if log else exponential(L)


def _diagonal(L):
    i = np.arange(len(L))
    return L[i, i]


def _gram(P, Q, options):
    columns = P if Q is None else Q
    L = np.empty((len(P), len(columns), len(options.horizons)))
    for i, p in enumerate(P):
        for j, q in enumerate(columns):
            if Q is None and j < i:
                L[i, j] = L[j, i]
            else:
                L[i, j] = options.pair(p, q)
    return L


def refuse_too_many_states(
    method: str, P: Sequence[FactorialHMM], Q: Sequence[FactorialHMM]
) -> None:
    """Refuse an exact kernel that is too large, before any is computed."""
    if method != "exact":
        return
    largest = max(math.prod(p.n_states) for p in P)
    largest *= max(math.prod(q.n_states) for q in Q)
    if largest > MOST_STATES:
        raise ValueError(
            f"method='exact' would sum over {largest:.3g} joint states of two "
            f"models, more than {MOST_STATES}: use method='collapsed'."
        )


class _Options:
    """How pairs are computed."""

    def __init__(self, rho, horizons, method, n_init, seed):
        self.rho, self.horizons, self.method = rho, horizons, method
        self.n_init, self.seed = n_init, seed

    def pair(self, p: FactorialHMM, q: FactorialHMM) -> Array:
        """log k at every horizon."""
        with np.errstate(divide="ignore"):
            starts = [self.rho * np.log(pi) for pi in (*p.start, *q.start)]
            transitions = [self.rho * np.log(A) for A in (*p.transition, *q.transition)]
        means = [*p.mean, *(-W for W in q.mean)]
        precision = self.rho * np.linalg.inv(p.cov + q.cov)
        c0 = self._constant(p, q)
        steps = self.horizons + 1
        size = math.prod(len(pi) for pi in starts)
        if self.method == "exact" or (self.method == "auto" and size <= MOST_STATES):
            r = total_means(means)
            table = -0.5 * np.einsum("id,de,ie->i", r, precision, r)
            sums = exact_log_sums(starts, transitions, table, int(steps[-1]))
            return sums[self.horizons] + c0 * steps
        chains = [np.exp(x) for x in starts], [np.exp(x) for x in transitions]
        out = [self._bound(*chains, means, precision, T) for T in steps]
        return np.array(out) + c0 * steps

    def _constant(self, p, q):
        zero = np.zeros(p.n_features)
        laws = (Gaussian(zero, model.cov) for model in (p, q))
        left, right = laws
        return float(left.log_affinity(right, self.rho))

    def _bound(self, starts, transitions, means, precision, n_steps):
        target = np.zeros((n_steps, len(precision)))
        offsets = np.array([0, n_steps])
        sizes = [len(pi) for pi in starts]
        best, rng = -np.inf, np.random.default_rng(self.seed)
        for _ in range(self.n_init):
            beliefs = random_beliefs(sizes, n_steps, rng)
            chains = CoupledChains(
                starts, transitions, means, precision, target, offsets, beliefs
            )
            best = max(best, chains.settle(FOR_BOUNDS))
        return best
