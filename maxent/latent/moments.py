"""Maximum entropy given the means of features, on an enumerated space.

    min_p KL(p || q)  such that  E_p f = eta
    p(x) = q(x) exp(lam . f(x)) / Phi(lam),   lam minimises  log Phi(lam) - lam . eta

Sources: Jaynes (1957); Darroch & Ratcliff (1972); Della Pietra, Della Pietra & Lafferty
(1997); Goodman (2002); Malouf (2002).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

from maxent._support import validation as v
from maxent._support.results import Status
from maxent._support.underflow import allow_underflow
from maxent._support.validation import user_stacklevel
from maxent.latent._dual_solvers import FAR, NEWTON_UP_TO, SOLVERS, DualProblem
from maxent.latent._hull import check_ranges
from maxent.latent._penalty import ConvexPenalty, make_penalty
from maxent.latent._scaling_steps import SCALING
from maxent.latent._space import FeatureSpace, check_moments

Method = Literal["auto", "gis", "iis", "scgis", "lbfgs", "newton"]
_METHODS = ("auto", "gis", "iis", "scgis", "lbfgs", "newton")


@dataclass
class MaxEntResult:
    """Solution of a maximum-entropy problem, with its certificate.

    Attributes
    ----------
    lam : ndarray (n_features,)
        Weights of the features.
    prob : ndarray (n_states,)
        Probabilities of the states.
    log_partition : float
        log Phi(lam).
    residual : float
        Largest ``|E f_i - eta_i + (dU*/dlam)_i|`` in standard deviations of f_i under
        `prob`, or in millionths of its range if these are more: zero at the optimum.
    n_iter : int
        Iterations of the solver.
    status : Status
        ``"converged"`` only if the residual is at most the tolerance; ``"stopped"`` if
        the callback asked for it before.
    objective : float
        Dual log Phi - lam . eta + U*(lam), at the optimum the regularised entropy
        (without prior).
    entropy : float
        Entropy of `prob`, nats.
    regularized_entropy : float
        Entropy less the cost U of the unmet moments.
    method : str
        The solver that was used.
    history : list of tuple (int, float, float)
        Iterations done, dual and residual.
    """

    lam: NDArray[np.float64]
    prob: NDArray[np.float64]
    log_partition: float
    residual: float
    n_iter: int
    status: Status
    objective: float
    entropy: float
    regularized_entropy: float
    method: str
    history: list[tuple[int, float, float]] = field(default_factory=list)

    @property
    def converged(self) -> bool:
        """True if the tolerance that was asked for is met."""
        return self.status is Status.CONVERGED


@allow_underflow
def fit_maxent(
    features: ArrayLike,
    target: ArrayLike,
    *,
    log_prior: ArrayLike | None = None,
    sigma2: ArrayLike = np.inf,
    penalty: Literal["l2", "box"] | ConvexPenalty = "l2",
    width: ArrayLike | None = None,
    method: Method = "auto",
    tol: float = 1e-8,
    max_iter: int = 10_000,
    init: ArrayLike | None = None,
    callback: Callable[[int, float, float], object] | None = None,
) -> MaxEntResult:
    """Return the distribution of largest entropy whose features have given means.

    ``p(x) = q(x) exp(lam . f(x)) / Phi(lam)``; with a prior q the one closest to it in
    Kullback-Leibler divergence.

    Parameters
    ----------
    features : array-like or CSR (n_states, n_features)
        Feature values of every state of the space.
    target : array-like (n_features,)
        Means eta to be met.
    log_prior : array-like (n_states,), optional
        log q up to a constant; -inf excludes a state. None is uniform.
    sigma2 : float or array-like (n_features,), default=inf
        Variance s2 of the Gaussian penalty sum lam_i^2 / (2 s2_i), > 0. A prior of
        variance v on the weights and T observations give s2 = T v.
    penalty : {"l2", "box"} or ConvexPenalty, default="l2"
        "box" asks ``|E f_i - eta_i| <= width_i``, ``sum width_i |lam_i|`` in the
        dual. An object with ``conjugate(lam)`` and ``conjugate_gradient(lam)`` stands
        for any other convex cost U of unmet moments.
    width : float or array-like (n_features,), optional
        Of the box, >= 0.
    method : {"auto", "gis", "iis", "scgis", "lbfgs", "newton"}, default="auto"
        "newton" up to 500 features, else "lbfgs". Generalised, improved and sequential
        iterative scaling take thousands of passes where these take tens. They need
        features >= 0 and are given f_i - min f_i, which changes neither p nor lam.
    tol : float, default=1e-8
        Residual asked for.
    max_iter : int, default=10000
        Bound on the iterations.
    init : array-like (n_features,), optional
        Weights to start from; None starts from zero.
    callback : callable(n_iter, dual, residual), optional
        Called at every iteration; True stops the solver there.

    Returns
    -------
    MaxEntResult
        With the residual as certificate.

    Raises
    ------
    ValueError
        For targets that no distribution has within their widths, and for targets that
        only distributions without some of the states have, so that weights would be
        infinite: both are named. For NaN, infinity or shapes that do not fit.

    Warns
    -----
    ConvergenceWarning
        If the tolerance was not met.

    See Also
    --------
    MaxEntModel : The distribution as a value with methods.
    MaxEntClassifier : The conditional form.

    Notes
    -----
    One pass costs O(nonzeros of the features); a Newton step O(S N^2 + N^3). Weights
    of collinear features are not unique; `prob` is. Where weights become large a linear
    program says whether the targets can be met; with more than 100,000 entries of the
    features there is none, targets out of reach are recognised by the dual, and those
    on the boundary end with large weights.

    References
    ----------
    Jaynes (1957), Information theory and statistical mechanics.
    Wang, Schuurmans & Zhao (2012), The latent maximum entropy principle, section 8.

    Examples
    --------
    A die whose mean is 4.5 (Jaynes):

    >>> import numpy as np
    >>> from maxent.latent import fit_maxent
    >>> faces = np.arange(1.0, 7.0)
    >>> fit_maxent(faces[:, None], [4.5]).prob.round(4)
    array([0.0544, 0.0788, 0.1142, 0.1654, 0.2398, 0.3475])
    """
    v.check_choice("method", method, _METHODS)
    tol, max_iter = v.check_stop(tol, max_iter)
    v.check_callback(callback)
    space = FeatureSpace(features, log_prior)
    eta = check_moments("target", target, space.n_features)
    cost = make_penalty(penalty, sigma2, width, space.n_features)
    if method in SCALING and cost.weight is None:
        raise ValueError(
            f"method={method!r} knows penalty='l2' only; use 'lbfgs' or 'auto'."
        )
    lam = np.zeros(space.n_features)
    if init is not None:
        lam = check_moments("init", init, space.n_features)
    if method == "auto":
        small = space.n_features <= NEWTON_UP_TO
        method = "newton" if small and cost.smooth else "lbfgs"
    elif method == "newton" and not cost.smooth:
        raise ValueError("penalty='box' is not smooth; use method='lbfgs' or 'auto'.")
    problem = DualProblem(space, eta, cost, tol, callback)
    check_ranges(problem.space, problem.target, problem.penalty, tol)
    lam = problem.space.units.weights_in(lam)
    lam, n_iter = SOLVERS[method](problem, lam, max_iter)
    return _result(problem, lam, n_iter, method, max_iter)


def _result(problem, lam, n_iter, method, max_iter):
    space, units = problem.space, problem.space.units
    dual, p, _, residual = problem.evaluate(lam)
    p = p / p.sum()  # huge weights leave it short of digits
    status = Status.CONVERGED if residual <= problem.tol else Status.STALLED
    if status is not Status.CONVERGED and problem.stopped:
        status = Status.STOPPED
    elif status is not Status.CONVERGED:
        problem.check_finite(lam, FAR)
        if n_iter >= max_iter:
            status = Status.MAX_ITER
        elif problem.pull(lam) > FAR and not problem.check_reach():
            status = Status.UNBOUNDED
        _warn(status, residual, problem.tol, n_iter, method)
    entropy = float(-xlogy(p, p).sum())
    return MaxEntResult(
        lam=units.weights_out(lam),
        prob=p,
        log_partition=float(units.log_partition(space.probabilities(lam)[0], lam)),
        residual=residual,
        n_iter=n_iter,
        status=status,
        objective=dual,
        entropy=entropy,
        regularized_entropy=entropy - float(problem.penalty.cost(lam)),
        method=method,
        history=problem.history,
    )


def _warn(status, residual, tol, n_iter, method):
    from sklearn.exceptions import ConvergenceWarning

    if status is Status.UNBOUNDED:
        remedy = (
            "the targets are on the boundary of what distributions over these states "
            "have, so weights grow without limit: use sigma2 < inf"
        )
    elif status is Status.MAX_ITER and method in SCALING:
        remedy = "raise max_iter, or use method='auto', which needs far fewer passes"
    elif status is Status.MAX_ITER:
        remedy = f"raise max_iter (now {n_iter}) or tol"
    else:
        remedy = (
            "rounding allows no further progress: raise tol, or allow unmet moments "
            "with sigma2 < inf"
        )
    warnings.warn(
        f"fit_maxent (method={method!r}) stopped with status {status.value!r} after "
        f"{n_iter} iterations: residual {residual:.2e} reached, tol={tol:g} asked; "
        f"{remedy}.",
        ConvergenceWarning,
        stacklevel=user_stacklevel(),
    )
