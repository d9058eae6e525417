"""Where learning starts: zero, random hidden values, or a path over the orders.

At w = 0 and any finite order the first model is the support vector machine on features
averaged over the hidden values; if these averages do not tell the outputs apart, w = 0
is nearly stationary and nothing happens.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from maxent._support.results import Status, relayed
from maxent._support.typing import FloatArray
from maxent.minentropy._cccp import cccp
from maxent.minentropy._objective import Objective
from maxent.minentropy._prox_linear import LearnResult, prox_linear, trust_region
from maxent.minentropy._trust_ball import TrustBall
from maxent.minentropy.margin_qp import MarginProblem

PATH = (0.0, 0.25, 0.5, 1.0, 2.0, 8.0, 64.0, np.inf)
_TRAPPED = 1e-3  # e_1 / sum c at w = 0 below which pooled features carry no signal
_COARSE = 1e-2  # tolerance of the orders before the last, once w = 0 is left


@dataclass
class Settings:
    """How to learn.

    Attributes
    ----------
    solver : {"auto", "prox", "ball", "cccp", "latent_svm"} or TrustBall
        "auto" is "prox" at finite orders and "cccp" with an infinite one.
    tol, qp_tol : float
    max_iter : int
    """

    solver: str | TrustBall
    tol: float
    qp_tol: float
    max_iter: int

    def minimise(self, objective, w, tol=None, callback=None):
        """Minimise f from w."""
        name, ball = self.solver, TrustBall()
        if isinstance(name, TrustBall):
            name, ball = "ball", name
        infinite = np.isinf(objective.alpha).any()
        if name == "latent_svm" and not infinite:
            name = "auto"  # on the path to infinity
        if name == "auto" or (name in ("prox", "ball") and infinite):
            name = "cccp" if infinite else "prox"
        solvers = {
            "prox": prox_linear,
            "ball": partial(trust_region, **ball.get_spec()),
            "cccp": cccp,
            "latent_svm": partial(cccp, latent_svm=True),
        }
        return solvers[name](
            objective,
            w,
            tol=self.tol if tol is None else max(tol, self.tol),
            qp_tol=self.qp_tol,
            max_iter=self.max_iter,
            callback=callback,
        )


@dataclass
class Learned:
    """The best run of several.

    Attributes
    ----------
    best : LearnResult
    runs : list of tuple (str, float, float)
        Start, objective and training error of each.
    trapped : bool
        Whether w = 0 is nearly stationary.
    idle : bool
        Whether no run got below f(0) by a thousandth.
    stopped : bool
        Whether the callback has asked to stop.
    """

    best: LearnResult
    runs: list[tuple[str, float, float]] = field(default_factory=list)
    trapped: bool = False
    idle: bool = False
    stopped: bool = False


def learn(
    objective: Objective,
    settings: Settings,
    init: str,
    n_init: int,
    rng: np.random.Generator,
    callback: Any = None,
    before: FloatArray | None = None,
) -> Learned:
    """Minimise f from all starts of `init`; the smallest objective wins.

    Parameters
    ----------
    objective : Objective
    settings : Settings
    init : {"auto", "zero", "random", "path"} or ndarray (d,)
        "auto" is the path and `n_init` random starts.
    n_init : int
    rng : Generator
    callback : callable(n_iter, objective, stationarity), optional
        Called at every step from every start, on a path with the objective of the order
        it has come to; True ends learning.
    before : ndarray (d,), optional
        Solution of another order, which takes the place of zero and of the path.
    """
    features, zero = objective.features, np.zeros(objective.features.d)
    at_zero = objective.value(zero)
    runs: list[tuple[str, LearnResult]] = []
    names: tuple[str, ...] = (init,) if _word(init) else ()
    names = ("path", "random") if names == ("auto",) else names
    if not _word(init):
        runs.append(("given", settings.minimise(objective, init, callback=callback)))
    if features.is_visible:  # convex: all starts end alike
        names, init = ("zero",) if names else (), "zero"
    if before is not None:
        names = tuple("before" if name in ("zero", "path") else name for name in names)
    trapped = not features.is_visible and ("zero" in names or "path" in names)
    trapped = trapped and _is_trapped(objective, zero, settings)
    if trapped and objective.total:
        names = tuple(dict.fromkeys((*names, "random")))
    plan: list[str] = [n for n in ("before", "zero", "path") if n in names]
    plan += ["random"] * (n_init if "random" in names else 0)
    stopped = any(run.status is Status.STOPPED for _, run in runs)
    for name in plan if not stopped else ():
        runs.append((name, _run(name, objective, settings, rng, callback, before)))
        stopped = runs[-1][1].status is Status.STOPPED
        if stopped:
            break
    _, best = min(runs, key=lambda run: run[1].objective)
    if stopped:
        best = replace(best, status=Status.STOPPED)
    told = [(name, run.objective, objective.error(run.w)) for name, run in runs]
    idle = best.objective > (1.0 - _TRAPPED) * at_zero > 0
    return Learned(best, told, trapped, idle, stopped)


def _word(init):
    return isinstance(init, str)


def _run(name, objective, settings, rng, callback, before):
    """Minimise f from the start of this name."""
    zero = np.zeros(objective.features.d)
    if name == "path":
        return _along_path(objective, zero, settings, callback)
    w = before if name == "before" else zero
    w = _random_start(objective, settings, rng) if name == "random" else w
    return settings.minimise(objective, w, callback=callback)


def _is_trapped(objective, zero, settings):
    """True if e_1(0) is small: the averages of features do not tell outputs apart."""
    f, problem = objective.at_order(np.zeros(objective.features.K)).linearised(zero)
    if not f > 0:
        return False
    step = problem.solve(zero, 1.0, tol=settings.qp_tol, unit=objective.total)
    return f - step.objective <= _TRAPPED * f


def _along_path(objective, w, settings, callback):
    """Orders from zero up to those wanted, each from the solution of the one before."""
    for a in PATH:
        alpha = np.minimum(a, objective.alpha)
        if (alpha == objective.alpha).all():
            break
        hear = relayed(callback, partial(_of_order, objective, a))
        # w = 0 may meet the coarse tolerance at every finite order
        tol = _COARSE if w.any() else None
        found = settings.minimise(objective.at_order(alpha), w, tol, hear)
        if found.status is Status.STOPPED:
            return _uncertified(objective, found)
        w = found.w
    return settings.minimise(objective, w, callback=callback)


def _of_order(objective, a, report):
    """A report of the path at order a; its solution is one of the last order."""
    report = report.translated(partial(_uncertified, objective))
    return replace(report, note=f"order {a:g} of the path", last=False)


def _uncertified(objective, found):
    """The weights of another order, where fitting may stop."""
    f, status = objective.value(found.w), Status.STOPPED
    history = [(found.n_iter, f, np.inf)]
    return LearnResult(found.w, f, np.inf, found.n_iter, status, history, found.solver)


def _random_start(
    objective: Objective, settings: Settings, rng: np.random.Generator
) -> FloatArray:
    """Support vector machine on random hidden values of the true outputs.

    The other outputs have the averages of their features.
    """
    features, i = objective.features, objective.sample
    orders = np.zeros(features.K)
    _, mean = features.renyi(np.zeros(features.d), orders)
    drawn = features.random(rng)
    D = features.rows(drawn, i, objective.right)
    D = D - features.rows(mean, i, objective.wrong)
    problem = MarginProblem(D, objective.delta, objective.c, i, i.shape)
    center = np.zeros(features.d)
    return problem.solve(center, tol=settings.qp_tol, unit=objective.total).w
