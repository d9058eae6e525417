"""Statuses and the result protocol that every solver follows."""

from __future__ import annotations

import enum
import warnings
from dataclasses import dataclass, field

import numpy as np


class Status(enum.StrEnum):
    """How a solver ended."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    STALLED = "stalled"
    UNBOUNDED = "unbounded"
    NONFINITE = "nonfinite"


# order of the codes returned by the compiled solvers
CORE_STATUS = (
    Status.CONVERGED,
    Status.MAX_ITER,
    Status.STALLED,
    Status.UNBOUNDED,
    Status.NONFINITE,
)


def relative_gap(gap, objective):
    """Gap in units of 1 + objective.

    The optimum is never negative (zero multipliers give zero), so a negative
    objective earns no allowance.
    """
    return gap / (1.0 + max(objective, 0.0))


@dataclass
class DualResult:
    """Solution of a maximum-entropy discrimination dual.

    Attributes
    ----------
    lam : ndarray
        Multipliers, one per constraint, in the order of the rows.
    bias : float or ndarray of shape (n_classes,)
        Bias b of the decision function; it has PLUS sign, f(x) = ... + b.
    objective : float
        Dual objective J(lam), a lower bound of the primal.
    gap : float
        Primal minus dual objective at the returned point, evaluated as a sum of
        Fenchel-Young terms in double precision. Never negative.
    n_iter : int
        Iterations of the solver named in `solver`.
    status : Status
        ``"converged"`` only if ``gap <= tol * (1 + objective)``.
    solver : str
        Which algorithm produced the solution.
    history : list of tuple (int, float, float)
        Iterations done, dual objective and duality gap at each certification.
    coef : ndarray or None
        Primal weights, where the solver keeps them (linear solvers).
    max_iter : int or None
        Bound on the iterations that the solver kept to, which may be below the one
        asked for; None where it is the one asked for.
    blocks : list of Block or None
        Where multipliers in double precision cannot tell the whole solution: blocks
        whose posteriors at `lam` are those that the gap certifies.
    """

    lam: np.ndarray
    bias: float | np.ndarray
    objective: float
    gap: float
    n_iter: int
    status: Status
    solver: str = ""
    history: list = field(default_factory=list)
    coef: np.ndarray | None = None
    max_iter: int | None = None
    blocks: list | None = None

    @property
    def converged(self) -> bool:
        """True if the duality gap met the tolerance."""
        return self.status is Status.CONVERGED

    @property
    def relative_gap(self) -> float:
        """Gap divided by ``1 + max(objective, 0)``, the quantity compared with tol."""
        return relative_gap(self.gap, self.objective)


class Monitor:
    """Certifications of an iterative solver: the best point, the history, the end.

    Parameters
    ----------
    tol : float
        Converged once ``gap <= tol * (1 + max(objective, 0))``.
    callback : callable(n_iter, objective, gap) or None
        Called at every certification.

    Attributes
    ----------
    history : list of tuple (int, float, float)
        Iterations done, objective and gap at each certification.
    best : Certified or None
        The certification with the smallest gap.
    """

    def __init__(self, tol, callback=None):
        self.tol, self.callback = tol, callback
        self.history, self.best = [], None

    def record(self, n_iter, objective, gap, point):
        """Keep a certification; whether its gap meets the tolerance.

        Parameters
        ----------
        n_iter : int
        objective, gap : float
        point : object
            Whatever the solver needs to return to this point; kept if it is the best
            so far. A point without a finite objective never is.
        """
        self.history.append((n_iter, objective, gap))
        if self.callback is not None:
            self.callback(n_iter, objective, gap)
        if objective > -np.inf and (self.best is None or gap < self.best.gap):
            self.best = Certified(point, objective, gap)
        return relative_gap(gap, objective) <= self.tol

    @property
    def converged(self):
        """Whether the best certification meets the tolerance."""
        best = self.best
        return best is not None and relative_gap(best.gap, best.objective) <= self.tol


@dataclass
class Certified:
    """A point with its objective and gap."""

    point: object
    objective: float
    gap: float


# Below this share of 1 + |objective|, ten units in the last place, a gap is lost in the
# rounding of the objective and of the balance of the multipliers.
ROUNDING = 10 * np.finfo(np.float64).eps


def gap_text(gap, objective):
    """Duality gap for people, or the bound that double precision allows.

    The gap is a sum of nonnegative terms and can come out far smaller than the
    rounding errors of the objective and of the multipliers' balance, which limit
    what it proves.
    """
    rounding = ROUNDING * (1 + abs(objective))
    if gap > rounding or gap != gap:
        return f"{gap:.1e}"
    return f"< 1e{int(np.ceil(np.log10(rounding)))}"


def store_certificate(estimator, result):
    """What every estimator says of its dual: bounds, steps, and whether it is done."""
    estimator.duality_gap_ = float(result.gap)
    estimator.objective_ = float(result.objective)
    estimator.objective_history_ = np.array([h[1] for h in result.history])
    estimator.n_iter_ = int(result.n_iter)
    estimator.converged_ = result.converged


def progress_of(estimator):
    """Callback of a solver that prints its progress; None unless `verbose`."""
    if not estimator.verbose:
        return None
    name = type(estimator).__name__

    def show(n_iter, objective, gap):
        print(f"{name}: {n_iter} steps, J={objective:.6g}, gap={gap:.2e}")

    return show


def _iteration_remedy(held, asked):
    """What to change where the bound `held` ended a fit that was given `asked`."""
    if held is None or held >= asked:
        return f"raise max_iter (now {asked}), raise tol, or scale the features"
    return (
        f"this solver takes at most {held} iterations (max_iter={asked} changes "
        "nothing): raise tol, scale the features, or choose another solver"
    )


def warn_not_converged(name, result, tol, max_iter, stacklevel=3):
    """One ConvergenceWarning that says how far the fit came and what to change."""
    from sklearn.exceptions import ConvergenceWarning

    if result.status is Status.MAX_ITER:
        remedy = _iteration_remedy(result.max_iter, max_iter)
    elif result.status is Status.STALLED:
        remedy = "raise tol: rounding allows no further progress on this problem"
    else:
        remedy = "scale the features or lower C"
    warnings.warn(
        f"{name} stopped with status {result.status.value!r} after {result.n_iter} "
        f"iterations: relative duality gap {result.relative_gap:.2e} reached, "
        f"tol={tol:g} asked; {remedy}.",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )
