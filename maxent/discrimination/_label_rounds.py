"""Alternating minimisation over machines and label means.

    D(w, b, p) = KL(w) + sum_t weight_t [ ell(p_t f_t) + KL(p_t || P0_t) ]

is convex in the machine for given label means p, and convex in p for given decision
values f. A round moves p by a step towards its minimiser and trains the machine again;
neither half increases D, whatever the step in [0, 1]. Steps beyond the minimiser are
taken back where they would increase D.

The rounds creep where label means and machine follow each other. Kernel machines are
linear in their multipliers, so D with the best label means costs no more than O(n) on
the line through the last two machines: now and then a round starts from a point beyond
the last one, where D is less than after its own first half. That halves the rounds.

Source: Jaakkola, Meila & Jebara (1999), appendix C, eqs. (78)-(80) and Theorem 7. The
objective is not in the paper.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxent._support import validation as v
from maxent._support.callers import user_stacklevel
from maxent._support.reports import Report, tell
from maxent._support.results import Status

_LOOSE = 10.0  # times the tolerance of the estimator while label means move by one
_FIRST, _FARTHEST = 4.0, 32.0  # lengths of steps beyond the last machine
_WAIT = 2  # rounds before the first of them
_MANY = 20  # rows that are not in one class by chance


@dataclass
class Rounds:
    """Where alternating minimisation, or another method, has ended.

    Attributes
    ----------
    machine : Machine
    p : ndarray (n,)
        Label means.
    objective : float
        D.
    history : list of float
        D after the first machine, and after both halves of every round.
    change : float
        Largest distance of a label mean from its minimiser.
    decrease : float
        Relative decrease of D in the last round.
    n_iter : int
    status : Status
    before : Machine or None
        Where the last round started to train.
    reach : float
        Length of the next step beyond the last machine, in units of its own.
    wait : int
        Rounds until then.
    """

    machine: Any
    p: np.ndarray
    objective: float
    history: list[float]
    change: float = 0.0
    decrease: float = 0.0
    n_iter: int = 0
    status: Status = Status.CONVERGED
    before: Any = None
    reach: float = _FIRST
    wait: int = _WAIT


def objective_of(costs, machine, p):
    """D of a machine and label means."""
    return machine.penalty + costs.loss(p, machine.f) + costs.divergence(p)


def alternate(machines, *, step, max_rounds, tol, callback=None):
    """Alternate between machine and label means.

    Parameters
    ----------
    machines : KernelMachines, or alike
    step : float
        Share of the way to their minimisers that label means go in a round. Beyond 1 it
        is tried, and 1 taken where D would increase. From 1 on rounds may start beyond
        the last machine.
    max_rounds : int
    tol : float
        Converged where label means are within `tol` of their minimisers and the last
        round has decreased D by no more than tol^2, relatively.
    callback : Listener or None

    Returns
    -------
    Rounds
    """
    costs = machines.costs
    p = machines.labels.evidence
    machine = machines.train(p)
    D = objective_of(costs, machine, p)
    state = Rounds(machine, p, D, [D])
    if not len(costs.uncertain):
        return state
    for state.n_iter in range(max_rounds + 1):
        best = costs.best_means(state.machine.f)
        state.change = float(np.abs(best - state.p).max())
        met = state.change <= tol and state.decrease <= tol**2
        state.status = Status.CONVERGED if met else Status.MAX_ITER
        if _stops(callback, state, tol, met):
            state.status = Status.STOPPED
        if state.status is not Status.MAX_ITER or state.n_iter == max_rounds:
            break
        one_round(machines, state, best, step)
    return state


def one_round(machines, state, best, step):
    """Move the label means, and train the machine for them."""
    costs = machines.costs
    p, moved = _moved(costs, state, best, step)
    if moved > state.objective and step > 1:
        p, moved = _moved(costs, state, best, 1.0)
    start, p, moved = _beyond(machines, state, step, p, moved)
    # a machine whose label means will change much need not be exact
    loose = min(max(_LOOSE * state.change, 1.0), _LOOSE)
    trained = machines.train(p, start, loose)
    D = objective_of(costs, trained, p)
    if moved >= D:
        machine = trained
    else:
        # trained to a tolerance, it may be worse than the one before, whose distance
        # from the best machine is then known too
        lower, D = D - trained.gap, moved
        machine = replace(start, gap=moved - lower)
    state.history += [moved, D]
    state.decrease = (state.objective - D) / (1.0 + abs(D))
    state.machine, state.p, state.objective = machine, p, D
    state.before = start


def _beyond(machines, state, step, p, moved):
    """Machine to start from, label means and D: beyond the last one where D is less."""
    start = state.machine
    if step < 1 or state.before is None or not machines.linear:
        return start, p, moved
    if state.wait:
        state.wait -= 1
        return start, p, moved
    state.wait, t = 1, state.reach
    machine = machines.between(state.before, start, t)
    means = machines.costs.best_means(machine.f)
    D = objective_of(machines.costs, machine, means)
    if moved <= D or np.isnan(D):
        state.reach = 1.0 + 0.5 * (t - 1.0)
        return start, p, moved
    state.reach = min(2.0 * t - 1.0, _FARTHEST)
    return replace(machine, p=means), means, D


def _moved(costs, state, best, step):
    """Label means after a step towards their minimisers, or beyond, and D there."""
    known = np.isinf(costs.half_odds)
    p = np.clip((1.0 - step) * state.p + step * best, -1.0, 1.0)
    p = np.where(known, state.p, p)
    return p, objective_of(costs, state.machine, p)


def _stops(callback, state, tol, last):
    """Whether the callback asks to end here."""
    if callback is None:
        return False
    report = Report(
        state.n_iter,
        state.objective,
        state.machine.gap,
        solver="alternating",
        reached=state.change,
        tol=tol,
        measure="label change",
        last=last,
        solution=lambda: state,
    )
    return tell(callback, report)


def warn_unsettled(name, state, tol, max_rounds):
    """One ConvergenceWarning of label means that have not settled."""
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(
        f"{name} stopped after {state.n_iter} rounds with label means "
        f"{state.change:.1e} from their best values, tol={tol:g} asked, and a "
        f"relative decrease of the objective of {state.decrease:.1e} in the last "
        f"round; raise max_rounds (now {max_rounds}), step or tol.",
        ConvergenceWarning,
        stacklevel=user_stacklevel(),
    )


def warn_of_drift(name, state, labels):
    """Warn of rows without a label that have all been given to one class."""
    blank = labels.evidence == 0
    signs = np.sign(state.p[blank])
    if len(signs) >= _MANY and signs[0] != 0 and (signs == signs[0]).all():
        drifted = labels.classes[int(signs[0] > 0)]
        warnings.warn(
            f"{name}: all {len(signs)} rows without a label were given to class "
            f"{v.shown(drifted)}. If that is not so, give the estimator a bias with a "
            "prior (bias=1.0), change step, or label more rows.",
            UserWarning,
            stacklevel=user_stacklevel(),
        )
