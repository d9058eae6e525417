"""Probability product kernels between models of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from maxent._support import validation as v
from maxent._support.random_state import as_generator, draw_seed
from maxent.families import ExponentialFamily
from maxent.kernels._lists import check_horizons, listed
from maxent.kernels._unit_diagonal import exponential, log_scaled
from maxent.kernels.pairs._gaussian_parts import check_powers
from maxent.kernels.pairs._length_law import LengthLaw
from maxent.kernels.pairs._routes import (
    SAMPLERS,
    Call,
    is_sequence_model,
    routes_of,
)
from maxent.kernels.sampling import SharedSample, check_sample, one_order
from maxent.models.base import Model

Array = NDArray[np.float64]
Models: TypeAlias = ExponentialFamily | Sequence[Model] | Sequence[Any]
Method: TypeAlias = Literal[
    "auto",
    "exact",
    "joint",
    "per_step",
    "collapsed",
    "meanfield",
    "shared_sample",
    "pair_sample",
]

_MOST_NUMBERS = 1 << 25  # of kernels for all horizons in memory at a time


def product_kernel(
    P: Models,
    Q: Models | None = None,
    *,
    rho: ArrayLike = 0.5,
    horizon: ArrayLike | None = None,
    log: bool = False,
    normalize: bool = False,
    method: Method = "auto",
    length_law: Literal["geometric", "poisson"] | ArrayLike | None = None,
    n_paths: int = 8,
    n_init: int = 4,
    n_samples: int = 1000,
    sample: SharedSample | None = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Array:
    """Return the probability product kernel between models.

    k(p, q) = int p(x)^rho q(x)^rho dx, a sum if x is discrete: how much two models
    give probability to the same data.

    Parameters
    ----------
    P, Q : batch of a family, or list of models
        All of one class and over one space; numbers of hidden states may differ. A
        batch of two axes (n, d) stands for n distributions of d independent
        coordinates. Q None is P, and the matrix then exactly symmetric.
    rho : float or array-like (n_powers,), default=0.5
        Powers > 0. 1/2 is the Bhattacharyya kernel, 1 the expected likelihood. Further
        powers cost nothing for Gaussians, linear Gaussian networks and linear
        dynamical systems, and little for switching ones.
    horizon : int or array-like of int (n_horizons,), optional
        T >= 0 of models of sequences x_0, ..., x_T; other models have none. Horizons
        below the largest one cost nothing for Markov chains, hidden Markov models and
        linear dynamical systems.
    log : bool, default=False
        Return logarithms. Kernels of sequences that are not normalised leave the range
        of doubles easily.
    normalize : bool, default=False
        Divide by the square roots of the kernels of each model with itself.
    method : str, default="auto"
        "auto" takes the law of the observations for families, Markov chains, linear
        Gaussian networks and linear dynamical systems, exactly. Mixtures, hidden
        Markov models, factorial ones, Bayes nets and Markov random fields may have
        *discrete hidden variables*: there the power is taken on the joint law of hidden
        and observed variables, as in the paper. At rho = 1 that is the kernel of the
        observations too; elsewhere it is another kernel, positive semidefinite as well,
        but not one on the diagonal at rho = 1/2. Switching systems take the power of
        the law of the observations given a path of regimes, averaged over `n_paths`
        paths of each model. Factorial models of more than a million joint states, and
        nets and fields whose sums over a pair need a table of more than 2^26 entries,
        take a mean-field bound, which need not be positive semidefinite. Random fields
        are refused whose own partition function needs such a table.

        Others: "exact" (switching systems: all paths; factorial and nets: refused if
        large; families and linear models: as "auto"), "collapsed" (factorial: mean
        field), "meanfield" (nets),
        "joint" and "per_step" (linear dynamical systems: the law of the sequence, or
        the product of the laws of its observations). By sampling, for *any* model with
        ``sample`` and ``log_likelihood`` or ``log_prob``: "shared_sample" estimates the
        kernel of the observations at any rho from one sample for all pairs, unbiased
        and positive semidefinite (:class:`SharedSample`); "pair_sample" averages two
        samples, one of each model, as the paper does, and is not positive semidefinite.
    length_law : {"geometric", "poisson"} or array-like, optional
        Sum kernels over lengths: ``sum_T w_T k_T`` over horizons of sequences, or over
        the totals of :class:`~maxent.families.Multinomial` (of draws in order). A named
        law has `horizon`, or the family's total, as its mean. Weights >= 0 are those of
        T = 0, 1, ...; then `horizon` is not read.
    n_paths : int, default=8
        Paths drawn for each switching system.
    n_init : int, default=4
        Random starts of mean field.
    n_samples : int, default=1000
        Draws of the methods by sampling: of all models together for "shared_sample", of
        each model for "pair_sample".
    sample : SharedSample, optional
        Draws for "shared_sample", of the one `horizon` of the call; `n_samples` is then
        not read. None draws from the models of Q, or of P without Q.
    random_state : int, Generator, RandomState or None, default=0
        For everything drawn. With one integer, draws are the same in all calls: paths
        of switching systems and draws for "pair_sample" belong to the model, those for
        "shared_sample" to the list.
    n_jobs : int, optional
        Threads; the results have the same bits for any number.

    Returns
    -------
    ndarray (len(P), len(Q)), then an axis for several horizons and one for powers

    Raises
    ------
    TypeError
        For models of several classes, or of a class without a product kernel.
    ValueError
        For powers <= 0, models over different spaces, a missing horizon, a `sample` of
        another horizon or that `method` does not read, and powers at which a model's
        kernel with itself is infinite (the model and the admissible powers are named),
        before any kernel is computed.

    See Also
    --------
    ProductKernel : From data to the kernel matrix, for pipelines.
    hellinger_distance : The distance that belongs to rho = 1/2.
    lds_kernel, switching_lds_kernel, factorial_hmm_kernel, linear_gaussian_kernel, \
bayes_net_kernel : Single models, with all their options.

    Notes
    -----
    All kernels of "auto", but for mean field, are positive semidefinite. For rho other
    than 1/2 they depend on the unit of x; normalised ones do not change under affine
    maps.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels.

    Examples
    --------
    >>> from maxent.families import Poisson
    >>> from maxent.kernels import product_kernel
    >>> product_kernel(Poisson([1.0, 4.0, 9.0])).round(3)
    array([[1.   , 0.607, 0.135],
           [0.607, 1.   , 0.607],
           [0.135, 0.607, 1.   ]])

    Hidden Markov models, two powers and all horizons up to 9:

    >>> from maxent.models import CategoricalHMM
    >>> P = CategoricalHMM.fit_many(["ABABAB", "AABB", "BBBA"], alphabet="AB",
    ...                             random_state=0)
    >>> product_kernel(P, rho=[0.5, 1], horizon=range(10), normalize=True).shape
    (3, 3, 10, 2)
    """
    options = {
        "n_paths": v.check_count("n_paths", n_paths),
        "n_init": v.check_count("n_init", n_init),
        "n_samples": v.check_count("n_samples", n_samples),
        "n_jobs": n_jobs,
        "sample": sample,
        "seed": draw_seed(as_generator(random_state)),
    }
    problem = Problem(P, Q, rho, horizon, method, length_law, options)
    L = problem.log_kernel(normalize)
    return L if log else exponential(L)


def hellinger_distance(
    P: Models,
    Q: Models | None = None,
    *,
    horizon: ArrayLike | None = None,
    method: Method = "auto",
    n_samples: int = 1000,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Array:
    """Return Hellinger distances between models.

    sqrt(1 - k(p, q)) with the normalised product kernel of rho = 1/2: in [0, 1], one
    for models without common data.

    Parameters
    ----------
    P, Q, horizon, method, n_samples, random_state, n_jobs
        As for :func:`product_kernel`.

    Returns
    -------
    ndarray (len(P), len(Q)), then an axis for several horizons

    Notes
    -----
    It is the Hellinger distance of the laws of the observations wherever the kernel is
    theirs (see `method`), and otherwise that of what the kernel compares. Distances
    below 1e-8 are rounding.

    References
    ----------
    Jebara, Kondor & Howard (2004), section 2.1; the factor is that of the errata page.

    Examples
    --------
    >>> from maxent.families import Bernoulli
    >>> from maxent.kernels import hellinger_distance
    >>> hellinger_distance(Bernoulli([0.0, 0.5, 1.0])).round(3)
    array([[0.   , 0.541, 1.   ],
           [0.541, 0.   , 0.541],
           [1.   , 0.541, 0.   ]])
    """
    L = product_kernel(
        P,
        Q,
        horizon=horizon,
        method=method,
        log=True,
        normalize=True,
        n_samples=n_samples,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    return np.sqrt(-np.expm1(np.minimum(L, 0.0)) + 0.0)


class Problem:
    """A checked call of `product_kernel`, and how it is computed."""

    def __init__(
        self,
        P: Any,
        Q: Any,
        rho: Any,
        horizon: Any,
        method: str,
        length_law: Any,
        options: dict[str, Any],
    ) -> None:
        powers = check_powers(rho)
        if powers.ndim > 1 or not powers.size:
            raise ValueError(f"rho has shape {powers.shape}; (n_powers,) is expected.")
        # what messages call P and Q
        self.named = options.get("named", {"P": "P", "Q": "Q"})
        left, right = self.named["P"], self.named["Q"]
        P = listed(left, P)
        Q = None if Q is None else listed(right, Q)
        first = P if isinstance(P, ExponentialFamily) else P[0]
        own, self.route = routes_of(f"{left}[0]", first, method)
        if own is not None:
            P = own.checked(left, P)
            Q = None if Q is None else own.checked(right, Q, like=P)
        self.P, self.Q = P, Q
        self.law = None if length_law is None else LengthLaw(length_law)
        sequences = own.sequences if own else is_sequence_model(first)
        horizons, self.one_horizon = self._horizons(horizon, sequences)
        self.one_power = powers.ndim == 0
        self.call = Call(np.atleast_1d(powers), horizons, method, **options)
        (own or self.route).check_call(self.P, self.Q, self.call)
        if method in SAMPLERS:
            columns = one_order(P, name=left)
            one_order(() if Q is None else Q, columns, right)
        if self.law is not None and method in SAMPLERS:
            raise ValueError(
                f"method={method!r} has no sums over lengths; use length_law=None, or "
                "sum kernels of several horizons."
            )
        if self.call.sample is not None:
            check_sample(self.call.sample, horizon, method)

    def _horizons(self, horizon, sequences):
        if not sequences:
            if horizon is not None:
                raise ValueError(
                    f"horizon={v.shown(horizon)} has no meaning for models that are "
                    "not of sequences; leave it None."
                )
            return None, True
        if self.law is not None and self.law.log_weights is not None:
            horizon = len(self.law.log_weights) - 1
        if horizon is None:
            raise ValueError(
                "horizon=None: these models are of sequences; give the horizon T >= 0, "
                "for sequences of T + 1 observations."
            )
        every = self.P if self.Q is None else [*self.P, *self.Q]
        horizons, one = check_horizons(horizon, every)
        if self.law is not None:
            if not one:
                raise ValueError(
                    f"horizon={v.shown(horizon)} must be one number with length_law: "
                    "the mean of the lengths."
                )
            self.law.check_mean(horizons[0])
        return horizons, one

    def log_kernel(self, normalize: bool, own: tuple[Any, Any] | None = None) -> Array:
        """Logs, normalised by `own` or by what is computed here; axes as asked for."""
        L, left, right = self.terms(normalize and own is None)
        if normalize:
            if own is not None:
                left, right = own
            L = normalized(L, left, right, self.Q is None, self.named)
        return self.squeezed(L)

    def terms(self, with_self: bool) -> tuple[Array, Any, Any]:
        """Logs (n, m, horizons, powers), and those of both lists with themselves."""
        P, Q, call, route = self.P, self.Q, self.call, self.route
        if self.law is not None:
            return self._summed()
        L = route.log_kernel(P, Q, call)
        if not with_self:
            return L, None, None
        if Q is None:
            i = np.arange(len(L))
            return L, L[i, i], L[i, i]
        return L, route.log_new(P, Q, call), route.log_self(Q, 1, call)

    def log_self(self) -> Array:
        """Logs (n, horizons, powers) of the kernel of P's models with themselves."""
        if self.law is not None:
            return self._summed()[1]
        if self.Q is None:
            return self.route.log_self(self.P, 0, self.call)
        return self.route.log_new(self.P, self.Q, self.call)

    def _summed(self):
        """Sums over lengths in the place of `terms`."""
        P, Q, call, route = self.P, self.Q, self.call, self.route
        assert self.law is not None
        if call.horizons is None:
            if not hasattr(route, "sum_lengths"):
                raise ValueError(
                    f"length_law={self.law.shown} needs models of sequences, or "
                    "Multinomial; use length_law=None."
                )
            out = route.sum_lengths(P, Q, call, self.law)
            L, left, right = (None if a is None else a[..., None, :] for a in out)
            return L, left, left if right is None else right
        mean = float(call.horizons[0])
        sides = [(self.named["P"], P, 0)]
        if Q is not None:
            sides.append((self.named["Q"], Q, 1))

        def own(horizons):
            wider = replace(call, horizons=horizons)
            return [(name, route.log_self(B, side, wider)) for name, B, side in sides]

        horizons = self.law.horizons(mean, own)
        wider = replace(call, horizons=horizons)
        w = self.law.weights(mean, len(horizons))
        selves = [_sum(L, w, 1) for _, L in own(horizons)]
        L = _in_rows(route, P, Q, wider, w)
        if Q is None:
            i = np.arange(len(P))
            L[i, i] = selves[0]
        return L, selves[0], selves[-1]

    def squeezed(self, L: Array) -> Array:
        """Without the axes that were not asked for."""
        if self.one_power:
            L = L[..., 0]
            return L[..., 0] if self.one_horizon else L
        return L[:, :, 0] if self.one_horizon else L


def normalized(
    L: Array, left: Array, right: Array, symmetric: bool, named: dict[str, str]
) -> Array:
    """`log_scaled`, with an error that names models which have no such scale."""
    for name, own in ((named["P"], left), (named["Q"], right)):
        wrong = ~np.isfinite(own).reshape(len(own), -1).all(axis=1)
        if wrong.any():
            at = int(np.argmax(wrong))
            raise ValueError(
                f"{name}[{at}] has the kernel exp({own[at].flat[0]:g}) with itself, by "
                "which nothing can be normalised. With a method by sampling, raise "
                "n_samples; otherwise use normalize=False."
            )
    return log_scaled(L, left, None if symmetric else right)


def _sum(L, log_weights, axis):
    """Weighted sum over the axis of horizons, which stays with length one."""
    shape = [1] * L.ndim
    shape[axis] = -1
    with np.errstate(divide="ignore"):
        return logsumexp(L + log_weights.reshape(shape), axis=axis, keepdims=True)


def _in_rows(route, P, Q, call, log_weights):
    """Sums over horizons, by rows of models where all of them are too many."""
    m = len(P if Q is None else Q)
    size = m * len(log_weights) * len(call.rho)
    if size * len(P) <= _MOST_NUMBERS:
        return _sum(route.log_kernel(P, Q, call), log_weights, 2)
    step = max(1, _MOST_NUMBERS // size)
    out = np.empty((len(P), m, 1, len(call.rho)))
    for lo in range(0, len(P), step):
        rows = P[lo : lo + step]
        L = route.log_kernel(rows, P if Q is None else Q, call)
        out[lo : lo + step] = _sum(L, log_weights, 2)
    if Q is None:
        i, j = np.tril_indices(len(P), -1)
        out[i, j] = out[j, i]
    return out
