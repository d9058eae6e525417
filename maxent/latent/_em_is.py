"""EM with iterative scaling as its M step, for log-linear models with hidden variables.

    E step   eta = sum_y pt(y) E_lam[f | y]
    M step   K steps of iterative scaling (or another ascent) towards E f = eta

Every inner step raises Q(lam) = lam . eta - log Phi - penalty, the bound at the E step;
so L = sum_y pt(y) log p(y), less the penalty, is after any number of inner steps at
least what it was at the E step. (From one inner step to the next L itself may fall.)
The gradient of L is eta - E f less that of the penalty: stationary points are the
feasible ones.

Sources: Wang, Schuurmans & Zhao (2012), algorithm 1, theorems 3.1 and 4.2; Riezler
(1999) for K = 1; Lauritzen (1995).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._support import validation as v
from maxent._support.results import Report, Status, tell
from maxent._support.underflow import allow_underflow
from maxent._support.validation import user_stacklevel
from maxent.latent._likelihood import Likelihood, check_method, m_step
from maxent.latent._log_linear import LogLinearModel
from maxent.latent._penalty import ConvexPenalty, make_penalty

Array = NDArray[np.float64]
MStep = Literal["iis", "gis", "scgis", "newton", "cg", "lbfgs"]

# A fall of L beyond this share of 1 + |L| is more than rounding: an error of the code.
ROUNDING = 1e-10


@dataclass
class EMISResult:
    """A stationary point of the likelihood, or a batch of them.

    With a batch of starts all fields but `history` have a leading axis.

    Attributes
    ----------
    lam : ndarray (N,) or (R, N)
        Weights.
    log_likelihood : float or ndarray (R,)
        Average log-likelihood L, per observation.
    objective : float or ndarray (R,)
        L less the penalty.
    entropy : float or ndarray (R,)
        Joint entropy of the model, log Phi - lam . E f; with a prior measure q less
        its mean log, that is minus the divergence from it.
    log_partition : float or ndarray (R,)
        log Phi.
    target : ndarray (N,) or (R, N)
        eta, the means given the data.
    residual : float or ndarray (R,)
        Largest ``|dL/dlam_i|``, penalty included, in standard deviations of f_i under a
        :class:`FiniteLatentModel` (at least millionths of its range), and in units of
        `span` under other models; weights at the bound count only if the gradient
        points inside.
    n_iter : int or ndarray (R,)
        E steps taken.
    status : Status or list of Status
        ``"converged"`` only if the residual is at most the tolerance.
    at_bound : ndarray of bool (N,) or (R, N)
        Weights at the bound.
    history : list of tuple (int, float or ndarray, float or ndarray)
        E steps done, objective and residual.
    """

    lam: Array
    log_likelihood: float | Array
    objective: float | Array
    entropy: float | Array
    log_partition: float | Array
    target: Array
    residual: float | Array
    n_iter: int | NDArray[np.intp]
    status: Status | list[Status]
    at_bound: NDArray[np.bool_]
    history: list[tuple[int, Any, Any]] = field(default_factory=list)

    @property
    def converged(self) -> bool:
        """True if every restart met the tolerance."""
        every = self.status if isinstance(self.status, list) else [self.status]
        return all(each is Status.CONVERGED for each in every)


@allow_underflow
def em_is(
    model: LogLinearModel,
    data: ArrayLike,
    lam0: ArrayLike,
    *,
    inner: int = 4,
    method: MStep = "iis",
    sigma2: ArrayLike = np.inf,
    penalty: Literal["l2", "box"] | ConvexPenalty = "l2",
    width: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 10_000,
    bound: float = np.inf,
    sample_weight: ArrayLike | None = None,
    callback: Callable[[int, Array, Array], object] | None = None,
) -> EMISResult:
    """Return a stationary point of the likelihood of a log-linear latent model.

    EM whose M step is a few steps of iterative scaling (EM-IS). The likelihood never
    falls from one E step to the next, whatever `inner`.

    Parameters
    ----------
    model : LogLinearModel
        Such as :class:`FiniteLatentModel`.
    data : array-like
        Observed values, as the model takes them.
    lam0 : array-like (N,) or (R, N)
        Weights to start from; R starts run as one batch.
    inner : int, default=4
        Steps of each M step, K >= 1; 1 takes the E step anew for each.
    method : {"iis", "gis", "scgis", "newton", "cg", "lbfgs"}, default="iis"
        Steps of the M step: improved, generalised or sequential (one weight at a time
        to its exact maximiser) iterative scaling; Newton; conjugate gradients; L-BFGS.
        The box takes "iis", "gis", "newton" and "lbfgs", a ConvexPenalty "newton",
        "cg" and "lbfgs".
    sigma2 : float or array-like (N,), default=inf
        Variance of the penalty sum lam_i^2 / (2 s2_i) of the average log-likelihood.
        A prior of variance v and T observations give s2 = T v.
    penalty : {"l2", "box"} or ConvexPenalty, default="l2"
        "box" takes ``sum width_i |lam_i|``: means may differ from their targets by
        width_i, and weights of features that need no correction are exactly zero. An
        object with ``conjugate(lam)`` and ``conjugate_gradient(lam)`` stands for any
        other convex cost U of unmet means.
    width : float or array-like (N,), optional
        Of the box, >= 0.
    tol : float, default=1e-6
        Residual asked for; with the box that of the subgradient nearest to zero.
    max_iter : int, default=10000
        Bound on the E steps.
    bound : float, default=inf
        Weights stay within [-bound, bound]. Features that the data never show have
        target 0 and without penalty no finite weight.
    sample_weight : array-like (n_samples,), optional
        Weights >= 0 of the data.
    callback : callable(n_iter, objective, residual), optional
        Called after every E step, with arrays (R,); True stops the ascent.

    Returns
    -------
    EMISResult

    Raises
    ------
    ValueError
        For parameters outside their domains, and for weights that would be infinite.
    FloatingPointError
        If the likelihood falls by more than rounding.

    Warns
    -----
    ConvergenceWarning
        If a start did not meet the tolerance.

    See Also
    --------
    LatentMaxEnt : Many starts and the choice among their ends.

    References
    ----------
    Wang, Schuurmans & Zhao (2012), The latent maximum entropy principle, algorithm 1.

    Examples
    --------
    Three values from two hidden classes:

    >>> import numpy as np
    >>> from maxent.latent import FiniteLatentModel, em_is
    >>> f = np.zeros((3, 2, 3))
    >>> f[:, 0, 0] = 1.0
    >>> f[:, 0, 1] = f[:, 1, 2] = np.arange(3.0)
    >>> y = [0] * 50 + [1] * 10 + [2] * 40
    >>> result = em_is(FiniteLatentModel(f), y, [0.0, 1.0, -1.0])
    >>> result.converged, round(result.log_likelihood, 4)
    (True, -0.9433)
    """
    likelihood = checked_likelihood(
        model, data, penalty, sigma2, width, bound, sample_weight
    )
    inner = v.check_count("inner", inner)
    check_method(method, likelihood.penalty)
    tol, max_iter = v.check_stop(tol, max_iter)
    lam = v.as_doubles("lam0", lam0)
    alone = lam.ndim == 1
    lam = np.atleast_2d(lam).copy()
    if lam.ndim != 2 or lam.shape[1] != model.n_features or not np.isfinite(lam).all():
        raise ValueError(
            f"lam0 has shape {np.shape(lam0)}; expected ({model.n_features},) or "
            f"(n_starts, {model.n_features}), finite."
        )
    lam = likelihood.units.weights_in(lam)
    lam = np.clip(lam, -likelihood.bound, likelihood.bound)
    result = run(likelihood, lam, inner, method, tol, max_iter, callback)
    if not (result.converged or Status.STOPPED in result.status):
        _warn(result, tol, max_iter)
    result = _in_units_of_caller(result, likelihood.units)
    return single(result) if alone else result


def checked_likelihood(
    model: Any,
    data: Any,
    penalty: Any,
    sigma2: ArrayLike,
    width: ArrayLike | None,
    bound: float,
    sample_weight: ArrayLike | None,
) -> Likelihood:
    """The likelihood that the arguments describe."""
    if not isinstance(model, LogLinearModel):
        raise TypeError(
            f"model={v.shown(model)} must be a LogLinearModel, such as "
            "FiniteLatentModel(features)."
        )
    cost = make_penalty(penalty, sigma2, width, model.n_features)
    bound = v.check_positive("bound", bound, allow_inf=True)
    return Likelihood.standard(model, data, sample_weight, cost, bound)


def run(
    likelihood: Likelihood,
    lam: Array,
    inner: int,
    method: str,
    tol: float,
    max_iter: int,
    callback: Callable[[int, Array, Array], object] | None = None,
) -> EMISResult:
    """EM-IS from a batch of starts (R, N); restarts that have converged rest."""
    lam = np.array(lam)
    R = len(lam)
    n_iter, residual = np.zeros(R, dtype=int), np.full(R, np.inf)
    objective, history, stopped = np.full(R, -np.inf), [], False
    active = np.arange(R)
    for iteration in range(max_iter + 1):
        own = lam[active]
        found, _, _, value, _, left = likelihood.evaluate(own)
        _check_rise(objective[active], value, iteration)
        objective[active], residual[active] = value, left
        n_iter[active] = iteration
        history.append((iteration, objective.copy(), residual.copy()))
        open_ = left > tol
        done = not open_.any() or iteration == max_iter
        point = lam, n_iter, objective
        report = Report(iteration, objective, residual, "EM-IS", last=done)
        stopped = tell(callback, replace(report, solution=partial(tuple, point)))
        if done or stopped:
            break
        active, own = active[open_], own[open_]
        new = m_step(likelihood, own, found.target[open_], inner, method)
        moved = (new != own).any(axis=1)  # others are where rounding ends progress
        active = active[moved]
        lam[active] = new[moved]
        if not len(active):
            break
    return summary(likelihood, lam, n_iter, tol, history, max_iter, stopped)


def summary(likelihood, lam, n_iter, tol, history, max_iter=0, stopped=False):
    """The result at weights (R, N), all evaluated anew."""
    found, log_phi, mean, objective, _, residual = likelihood.evaluate(lam)
    missed = np.where(np.asarray(n_iter) < max_iter, Status.STALLED, Status.MAX_ITER)
    missed = [Status.STOPPED if stopped else Status(str(each)) for each in missed]
    status = [
        Status.CONVERGED if left <= tol else other
        for left, other in zip(residual, missed)
    ]
    return EMISResult(
        lam=lam,
        log_likelihood=found.log_likelihood,
        objective=objective,
        entropy=log_phi - np.sum(lam * mean, axis=-1),
        log_partition=log_phi,
        target=found.target,
        residual=residual,
        n_iter=np.asarray(n_iter),
        status=status,
        at_bound=np.abs(lam) >= likelihood.bound,
        history=history,
    )


def _in_units_of_caller(result, units):
    """The result with weights, targets and log Phi of the caller's features."""
    return replace(
        result,
        lam=units.weights_out(result.lam),
        target=units.moments_out(result.target),
        log_partition=units.log_partition(result.log_partition, result.lam),
    )


def single(result):
    """The result of a batch of one as that of one start."""
    return EMISResult(
        lam=result.lam[0],
        log_likelihood=float(result.log_likelihood[0]),
        objective=float(result.objective[0]),
        entropy=float(result.entropy[0]),
        log_partition=float(result.log_partition[0]),
        target=result.target[0],
        residual=float(result.residual[0]),
        n_iter=int(result.n_iter[0]),
        status=result.status[0],
        at_bound=result.at_bound[0],
        history=[(n, float(v[0]), float(r[0])) for n, v, r in result.history],
    )


def _check_rise(old, new, iteration):
    fall = old - new
    if not np.isfinite(new).all():
        raise FloatingPointError(
            f"the log-likelihood is {new[~np.isfinite(new)][0]} at E step {iteration}: "
            "the model gives some data probability zero; check log_prior and lam0."
        )
    if (fall > ROUNDING * (1.0 + np.abs(new))).any():
        raise FloatingPointError(
            f"the log-likelihood fell by {fall.max():.1e} at E step {iteration}; the "
            "model's posterior and partition do not belong together."
        )


def _warn(result, tol, max_iter):
    from sklearn.exceptions import ConvergenceWarning

    residual = np.atleast_1d(result.residual)
    open_ = residual > tol
    warnings.warn(
        f"em_is: {open_.sum()} of {len(residual)} starts stopped after up to "
        f"{np.max(result.n_iter)} E steps with a residual of "
        f"{residual.max():.2e}, tol={tol:g} asked; raise tol, max_iter (now {max_iter})"
        " or inner, or use method='newton'.",
        ConvergenceWarning,
        stacklevel=user_stacklevel(),
    )
