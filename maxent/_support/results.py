"""Statuses, reports and the result protocol that every solver follows."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from maxent._support.remedies import SCALE_FEATURES, scale_remedy
from maxent._support.typing import Callback, FloatArray, FloatArrayOrScalar
from maxent._support.validation import user_stacklevel


class Status(enum.StrEnum):
    """Status of a solver at its end.

    A string: ``result.status == "converged"`` works.

    Attributes
    ----------
    CONVERGED
        ``"converged"``: every tolerance was met.
    MAX_ITER
        ``"max_iter"``: the bound on the iterations was reached first.
    STALLED
        ``"stalled"``: rounding allows no further progress; a larger `tol` or scaled
        features help.
    UNBOUNDED
        ``"unbounded"``: the dual grows without limit, as fixed margins on data that
        cannot be separated make it.
    NONFINITE
        ``"nonfinite"``: overflow; scale the features or the kernel.
    INDEFINITE
        ``"indefinite"``: a stationary point of a dual that is not concave, because
        the kernel is not positive semidefinite; no gap certifies it.
    STOPPED
        ``"stopped"``: a callback asked for it; the best point until then is kept.
    """

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    STALLED = "stalled"
    UNBOUNDED = "unbounded"
    NONFINITE = "nonfinite"
    INDEFINITE = "indefinite"
    STOPPED = "stopped"


# order of the codes returned by the compiled solvers
CORE_STATUS = (
    Status.CONVERGED,
    Status.MAX_ITER,
    Status.STALLED,
    Status.UNBOUNDED,
    Status.NONFINITE,
)


def relative_gap(gap, objective, unit=1.0):
    """Gap in units of 1 + objective, or of another unit + objective.

    The optimum is never negative (zero multipliers give zero), so a negative
    objective earns no allowance.
    """
    return gap / (unit + max(objective, 0.0))


@dataclass
class DualResult:
    """Solution of a dual problem, with its certificate.

    Attributes
    ----------
    lam : ndarray
        Multipliers, one per constraint, in the order of the rows.
    bias : float or ndarray of shape (n_classes,)
        Bias b of the decision function, f(x) = ... + b.
    objective : float
        Dual objective J(lam), a lower bound of the primal.
    gap : float
        Primal minus dual objective at the returned point, evaluated as a sum of
        Fenchel-Young terms in double precision. Never negative; NaN where the kernel
        matrix is not positive semidefinite and there is no bound.
    n_iter : int
        Iterations of the solver named in `solver`.
    status : Status
        ``"converged"`` only if ``gap <= tol * (1 + objective)``, and the KKT violation
        is within `kkt_tol` where that is asked for.
    solver : str
        Which algorithm produced the solution.
    history : list of tuple (int, float, float)
        Iterations done, dual objective and duality gap at each certification.
    coef : ndarray or None
        Primal weights, where the solver keeps them (linear solvers).
    max_iter : int or None
        Bound on the iterations of this solver, where it is below the one that the call
        asked for, as the interior point's is; None otherwise.
    blocks : list of Block or None
        Where multipliers in double precision cannot represent the whole solution:
        blocks whose posteriors at `lam` are those that the gap certifies.
    kkt_violation : float or None
        Largest violation of the optimality (KKT) condition at the returned point, in
        margin or target units; None where the solver does not compute it.
    kkt_tol : float or None
        The violation asked for besides the gap, as estimators do with their `tol`; None
        where the gap alone decides, as in the results of functions on arrays.
    unit : float
        What the gap is compared with besides the objective: 1, or for regression the
        square of the unit of the targets.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.discrimination import HingeMargin, solve_dual
    >>> x = np.array([-1.0, 1.0])
    >>> solve_dual(np.outer(x, x), x, HingeMargin(1.0))  # doctest: +ELLIPSIS
    DualResult(status='converged', solver='...', n=2, objective=0.5, gap=..., \
n_iter=..., converged=True)
    """

    lam: FloatArray
    bias: FloatArrayOrScalar
    objective: float
    gap: float
    n_iter: int
    status: Status
    solver: str = ""
    history: list[tuple[int, float, float]] = field(default_factory=list)
    coef: FloatArrayOrScalar = None
    max_iter: int | None = None
    blocks: list[Any] | None = None
    kkt_violation: float | None = None
    kkt_tol: float | None = None
    unit: float = 1.0

    def __repr__(self) -> str:
        """Status, solver, size and certificate, without the arrays."""
        return (
            f"DualResult(status={self.status.value!r}, solver={self.solver!r}, "
            f"n={len(self.lam)}, objective={self.objective:.6g}, gap={self.gap:.2g}, "
            f"n_iter={self.n_iter}, converged={self.converged})"
        )

    @property
    def converged(self) -> bool:
        """True if every requested tolerance is met."""
        return self.status is Status.CONVERGED

    @property
    def relative_gap(self) -> float:
        """Gap over ``unit + max(objective, 0)``, the quantity compared with tol."""
        return relative_gap(self.gap, self.objective, self.unit)


@dataclass(frozen=True)
class Report:
    """State of an iterative method when it has certified a point.

    Attributes
    ----------
    n_iter : int
        Iterations done.
    objective, gap : float
        At this point; NaN where it has not been certified. Arrays from a batch of
        starts.
    solver : str
    reached, tol : float
        What is compared with the tolerance, by default the relative gap, and that
        tolerance.
    measure : str
        What `reached` is.
    note : str
        Anything else that people may want to know.
    last : bool
        Whether the method ends here of itself.
    solution : callable or None
        Returns the result of a method that ends at this point; for use during the
        call only.
    """

    n_iter: int
    objective: Any
    gap: Any
    solver: str = ""
    reached: float = np.nan
    tol: float = np.nan
    measure: str = "relative gap"
    note: str = ""
    last: bool = False
    solution: Callable[[], Any] | None = None

    def translated(self, translate: Callable[[Any], Any]) -> Report:
        """Return the report with its solution passed through `translate`."""
        solve = self.solution
        if solve is None:
            return self
        return replace(self, solution=lambda: translate(solve()))


class Listener:
    """Callback that takes whole reports; public ones take (n_iter, objective, gap)."""

    def __init__(self, hear: Callable[[Report], object]):
        self.hear = hear

    def __call__(self, n_iter: int, objective: float, gap: float) -> object:
        return self.hear(Report(n_iter, objective, gap))


def tell(callback: Callable[[int, Any, Any], object] | None, report: Report) -> bool:
    """Pass a report to a callback of either kind; true if it asks to stop."""
    if callback is None:
        return False
    if isinstance(callback, Listener):
        answer = callback.hear(report)
    else:
        answer = callback(report.n_iter, report.objective, report.gap)
    return asks_to_stop(answer)


def asks_to_stop(answer: object) -> bool:
    """True if what a callback returned ends the method.

    True alone does, so that a function that returns something else, as
    ``list.append`` in a lambda may, stops nothing by accident.
    """
    return isinstance(answer, (bool, np.bool_)) and bool(answer)


def relayed(
    callback: Callback | None, change: Callable[[Report], Report]
) -> Listener | None:
    """Callback for an inner solver, whose reports pass through `change`."""
    if callback is None:
        return None
    return Listener(lambda report: tell(callback, change(report)))


class Monitor:
    """Certifications of an iterative solver: the best point, the history, the end.

    Parameters
    ----------
    tol : float
        Converged once ``gap <= tol * (1 + max(objective, 0))``.
    callback : callable(n_iter, objective, gap) or None
        Called at every certification; True asks the solver to stop.
    kkt_tol : float, default=inf
        And once the violation of the optimality (KKT) condition is at most this.
    solver : str
        Name of the solver, for reports.

    Attributes
    ----------
    history : list of tuple (int, float, float)
        Iterations done, objective and gap at each certification.
    best : Certified or None
        The certification with the smallest gap; nearest to both tolerances if there
        are two.
    stopping : bool
        Whether the callback has asked to stop.
    """

    def __init__(self, tol, callback=None, kkt_tol=np.inf, solver=""):
        self.tol, self.callback, self.kkt_tol = tol, callback, kkt_tol
        self.solver = solver
        self.history, self.best = [], None
        self.stopping = self._met = False

    def record(self, n_iter, objective, gap, point, violation=0.0):
        """Record a certification; true if the solver ends here, with :attr:`status`.

        It does where the tolerances are met, or where the callback has asked to stop
        and a point is known.

        Parameters
        ----------
        n_iter : int
        objective, gap : float
        point : tuple (lam, bias) or (lam, bias, coef), or object
            Whatever the solver needs to return to this point; kept if it is the best
            so far. A point without a finite objective never is. An object has the
            attributes `lam` and `bias`, and `blocks` if it has any.
        violation : float
            Of the optimality condition.
        """
        self.history.append((n_iter, objective, gap))
        new = Certified(point, objective, gap, violation)
        self._met = self._meets(new)
        if objective > -np.inf and (self.best is None or self._is_better(new)):
            self.best = new
        self.report(n_iter, objective, gap, new)
        return self._met or self.stopped

    @property
    def stopped(self):
        """True if the callback has asked to stop, and there is a point to return to."""
        return self.stopping and self.best is not None

    def announce(self, n_iter):
        """Report progress between certifications that are far apart.

        A callback of three numbers is not called: there is no objective yet.
        """
        if isinstance(self.callback, Listener):
            self.report(n_iter)

    def report(self, n_iter, objective=np.nan, gap=np.nan, certified=None):
        """Report the state of the solver to the callback, with a point or without."""
        if self.callback is None:
            return
        known = certified is not None and objective > -np.inf
        report = Report(
            n_iter,
            objective,
            gap,
            self.solver,
            relative_gap(gap, objective),
            self.tol,
            last=certified is not None and self._met,
            solution=(lambda: self._solution(certified, n_iter)) if known else None,
        )
        self.stopping |= tell(self.callback, report)

    def _solution(self, certified, n_iter):
        return self.result(n_iter, self.status, certified)

    def result(self, n_iter, status, certified=None, **more):
        """DualResult of a solver that ends, at the best point or another certified one.

        Parameters
        ----------
        n_iter : int
        status : Status
        certified : Certified, optional
        **more
            Further attributes of the result.
        """
        certified = self.best if certified is None else certified
        point = certified.point
        if isinstance(point, tuple):
            parts = dict(zip(("lam", "bias", "coef"), point, strict=False))
        else:
            parts = {"lam": point.lam, "bias": point.bias}
            parts["blocks"] = getattr(point, "blocks", None)
        return DualResult(
            objective=certified.objective,
            gap=certified.gap,
            n_iter=n_iter,
            status=status,
            solver=self.solver,
            history=list(self.history),
            **parts,
            **more,
        )

    @property
    def status(self):
        """Status of a solver that ended because `record` returned true."""
        return Status.CONVERGED if self._met else Status.STOPPED

    def _meets(self, certified):
        gap = relative_gap(certified.gap, certified.objective)
        within = gap <= self.tol and certified.violation <= self.kkt_tol
        return within and certified.objective > -np.inf

    def _is_better(self, new):
        """True if the certification just made comes before the best one so far."""
        best = not self.converged, self.rank(self.best)
        return (not self._met, self.rank(new)) < best

    def rank(self, certified):
        """Return the gap, or the largest measure / tolerance: less is better."""
        if np.isinf(self.kkt_tol):
            return certified.gap
        gap = relative_gap(certified.gap, certified.objective)
        return max(gap / self.tol, certified.violation / self.kkt_tol)

    @property
    def converged(self):
        """True if the best certification meets the tolerances."""
        return self.best is not None and self._meets(self.best)


def resumed_callback(first: DualResult, callback: Callback | None) -> Callback:
    """Callback for a solver that continues from a first result.

    It counts on, extends the history of the first result, and passes on to `callback`.
    """
    before, primal = first.n_iter, first.objective + first.gap

    def progress(report: Report) -> bool:
        # no objective is above a primal value
        n_iter, J = before + report.n_iter, report.objective
        gap = min(report.gap, primal - J)
        first.history.append((n_iter, J, gap))
        reached = relative_gap(gap, J)
        return tell(callback, replace(report, n_iter=n_iter, gap=gap, reached=reached))

    return Listener(progress)


def result_in_turn(
    first: DualResult, other: DualResult, callback: Callback | None
) -> DualResult:
    """Better one of two successive results, with the steps and the history of both.

    The solver of the other one was given :func:`resumed_callback`. The last entry of
    the history is the certified one.
    """
    best = min(first, other, key=lambda one: one.relative_gap)
    steps = first.n_iter + other.n_iter
    last = (steps, best.objective, best.gap)
    if first.history[-1:] != [last]:
        first.history.append(last)
        reached = relative_gap(best.gap, best.objective)
        tell(callback, Report(*last, best.solver, reached, last=True))
    held = None if other.max_iter is None else first.n_iter + other.max_iter
    return replace(
        best,
        status=Status.CONVERGED if best.converged else other.status,
        n_iter=steps,
        max_iter=held,
        history=first.history,
    )


@dataclass
class Certified:
    """A point with its objective, gap and violation of the optimality condition."""

    point: object
    objective: float
    gap: float
    violation: float = 0.0


# Below this share of 1 + |objective|, ten units in the last place, a gap is lost in the
# rounding of the objective and of the balance of the multipliers.
ROUNDING = 10 * np.finfo(np.float64).eps


def gap_text(gap, objective):
    """Duality gap in words, or the bound that double precision allows.

    The gap is a sum of nonnegative terms and can come out far smaller than the
    rounding errors of the objective and of the multipliers' balance, which limit
    what it proves.
    """
    rounding = ROUNDING * (1 + abs(objective))
    if gap > rounding or gap != gap:
        return f"{gap:.1e}"
    return f"< 1e{int(np.ceil(np.log10(rounding)))}"


def store_certificate(estimator, result):
    """Store the objective, gap, steps and convergence of a dual in an estimator."""
    estimator.duality_gap_ = float(result.gap)
    estimator.objective_ = float(result.objective)
    estimator.objective_history_ = np.array([h[1] for h in result.history])
    estimator.n_iter_ = int(result.n_iter)
    estimator.converged_ = result.converged
    progress = vars(estimator).get("_progress")
    if progress is not None:  # during `fit`
        progress.ended(result)


def _iteration_remedy(held, asked, bound):
    """Remedy where the bound `held` ended a fit that was called with `asked`."""
    if held is None or held >= asked:
        return f"raise {bound} (now {asked}), raise tol, or {SCALE_FEATURES}"
    return (
        f"this solver takes at most {held} iterations ({bound}={asked} changes "
        f"nothing): raise tol, {SCALE_FEATURES}, or choose another solver"
    )


def _shortcomings(result, tol):
    """The measures that miss their tolerances, in words; the gap if none does."""
    misses = []
    violation, kkt_tol = result.kkt_violation, result.kkt_tol
    if kkt_tol is not None and violation is not None and not violation <= kkt_tol:
        misses.append(
            f"optimality condition (KKT) violated by {violation:.2e}, {kkt_tol:g} asked"
        )
    if not (misses and result.relative_gap <= tol):
        gap = (
            f"relative duality gap {result.relative_gap:.2e} reached, tol={tol:g} asked"
        )
        misses.insert(0, gap)
    return "; ".join(misses)


def warn_not_converged(name, result, tol, max_iter, X=None, bound="max_iter"):
    """Warn once of the measure that a fit reached, and of what to change.

    There is no warning if a callback has stopped the fit. Features `X` whose columns
    have different scales are the first thing to change. The parameter that bounds the
    iterations is called `bound`.
    """
    from sklearn.exceptions import ConvergenceWarning

    if result.status is Status.STOPPED:
        return
    remedy = None if X is None else scale_remedy(X)
    if remedy is not None:
        pass
    elif result.status is Status.MAX_ITER:
        remedy = _iteration_remedy(result.max_iter, max_iter, bound)
    elif result.status is Status.STALLED:
        remedy = "raise tol: rounding allows no further progress on this problem"
    else:
        remedy = f"{SCALE_FEATURES} or lower C"
    warnings.warn(
        f"{name} stopped with status {result.status.value!r} after {result.n_iter} "
        f"iterations: {_shortcomings(result, tol)}; {remedy}.",
        ConvergenceWarning,
        stacklevel=user_stacklevel(),
    )
