"""Alternating minimisation over machines and label means.

    D(w, b, p) = KL(w) + sum_t weight_t [ ell(p_t f_t) + KL(p_t || P0_t) ]

is convex in the machine for given label means p, and convex in p for given decision
values f. A round moves p by a step towards its minimiser and trains the machine again;
neither half increases D, whatever the step in [0, 1]. Steps beyond the minimiser are
taken back where they would increase D.

The rounds creep where label means and machine follow each other. For kernel machines D
with the best label means is a smooth function of decision values plus a squared norm:
after two rounds each starts from a machine that L-BFGS has found from the last one,
where D is less than after its own first half. A few rounds are then enough.

Source: Jaakkola, Meila & Jebara (1999), appendix C, eqs. (78)-(80) and Theorem 7. The
objective is not in the paper.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxent._support import validation as v
from maxent._support.results import Report, Status, relayed, tell
from maxent._support.validation import user_stacklevel

_LOOSE = 10.0  # times the tolerance of the estimator while label means move by one
_WAIT = 2  # rounds before machines descend without label means
_GRADIENT = 1e-5  # norm asked for, relative to the root of the objective
_DESCENT = {"tol": 1e-5, "max_iter": 100}  # of the squared gradient
_GUESSES = 3  # rows whose label a start guesses, or as many as have a label
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
    """

    machine: Any
    p: np.ndarray
    objective: float
    history: list[float]
    change: float = 0.0
    decrease: float = 0.0
    n_iter: int = 0
    status: Status = Status.CONVERGED


def objective_of(costs, machine, p):
    """D of a machine and label means."""
    return machine.penalty + costs.loss(p, machine.f) + costs.divergence(p)


def label_starts(labels, n_init, rng):
    """Label means to start from: those of the priors, then some with guesses.

    A guess is a label for one to three of the uncertain rows, or for as many as have a
    label, drawn from their priors. Of 24 problems of 14 rows, one start ended in the
    least objective of all labellings in 11, ten such starts in 22, and ten draws of
    all labels in 17.

    Parameters
    ----------
    labels : LabelPriors
    n_init : int
    rng : Generator
    """
    yield labels.evidence
    open_ = labels.open_rows
    most = min(max(_GUESSES, len(labels.keep) - len(open_)), len(open_))
    for _ in range(n_init - 1 if len(open_) else 0):
        rows = rng.choice(open_, size=rng.integers(1, most + 1), replace=False)
        start = labels.evidence.copy()
        start[rows] = labels.guess(rows, rng)
        yield start


def best_of_starts(method, machines, starts, callback=None, **options):
    """The state of the lowest objective, and the objectives of all starts.

    Parameters
    ----------
    method : callable
        :func:`alternate` or :func:`descend`.
    starts : list of ndarray
        Label means.
    callback : Listener or None
        Told of the rounds of all starts, counted on.
    """
    best, objectives, done = None, [], 0
    for k, start in enumerate(starts):
        final = k == len(starts) - 1

        def counted(report, before=done, final=final):
            n_iter = before + report.n_iter
            return replace(report, n_iter=n_iter, last=report.last and final)

        listener = relayed(callback, counted)
        state = method(machines, start=start, callback=listener, **options)
        objectives.append(state.objective)
        if best is None or state.objective < best.objective:
            best = state
        done += state.n_iter
        if state.status is Status.STOPPED:
            break
    return best, np.array(objectives)


def alternate(machines, *, start, step, max_rounds, tol, callback=None):
    """Alternate between machine and label means.

    Parameters
    ----------
    machines : KernelMachines, or alike
    start : ndarray (n,)
        Label means to begin with.
    step : float
        Share of the way to their minimisers that label means go in a round. Beyond 1 it
        is tried, and 1 taken where D would increase. From 1 on rounds may start from a
        machine that has descended without label means.
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
    p = start
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
    start = state.machine
    if step >= 1 and machines.linear and state.n_iter >= _WAIT:
        further = machines.descended(start, **_DESCENT)[0]
        D = objective_of(costs, further, further.p)
        if moved > D:
            start, p, moved = further, further.p, D
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


def _moved(costs, state, best, step):
    """Label means after a step towards their minimisers, or beyond, and D there."""
    p = costs.feasible((1.0 - step) * state.p + step * best)
    p[costs.known] = state.p[costs.known]
    return p, objective_of(costs, state.machine, p)


def _stops(callback, state, tol, last):
    """True if the callback asks to end here."""
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


def warn_unsettled(name, state, tol, max_rounds, step):
    """One ConvergenceWarning of label means that have not settled.

    `step` is None where the method has none.
    """
    from sklearn.exceptions import ConvergenceWarning

    remedies = ["raise tol"]
    if state.n_iter >= max_rounds:
        remedies.insert(0, f"raise max_rounds (now {max_rounds})")
    elif step is None:  # a descent that ended by itself
        remedies.append("use method='alternating'")
    if step is not None and step < 1:
        remedies.append(f"raise step (now {step:g})")
    warnings.warn(
        f"{name} stopped after {state.n_iter} rounds with label means "
        f"{state.change:.1e} from their best values, tol={tol:g} asked, and a "
        f"relative decrease of the objective of {state.decrease:.1e} in the last "
        f"round; {', or '.join(remedies)}.",
        ConvergenceWarning,
        stacklevel=user_stacklevel(),
    )


def warn_of_drift(model, state, labels, step):
    """Warn of rows without a label that have all been given to one class.

    The remedies are those that the model does not use yet; `step` is as above.
    """
    estimator = model._machine()
    given = labels.chosen(state.p)[labels.blank]
    if len(given) < _MANY or given[0] < 0 or not (given == given[0]).all():
        return
    drifted = labels.classes[given[0]]
    remedies = []
    if model.class_prior is not None:
        remedies.append(f"change class_prior (now {v.shown(model.class_prior)})")
    if estimator.bias == "flat":
        remedies.append("give the estimator a bias with a prior (bias=1.0)")
    if estimator.class_weight is None:
        remedies.append("set its class_weight='balanced'")
    if step is not None:
        remedies.append(f"{'lower' if step >= 1 else 'raise'} step (now {step:g})")
    name = type(model).__name__
    warnings.warn(
        f"{name}: all {len(given)} rows without a label were given to class "
        f"{v.shown(drifted)}. If that is not so, "
        f"{', '.join([*remedies, 'or label more rows'])}.",
        UserWarning,
        stacklevel=user_stacklevel(),
    )


def descend(machines, *, start, max_rounds, tol, callback=None):
    """Minimise the risk by L-BFGS from the machine of some label means.

    With every label mean at its best value the objective depends on the machine alone,

        F(w, b) = |w|^2 / 2 + sum_t weight_t min_p [ ell(p f_t) + KL(p || P0_t) ],

    smooth and not convex: the loss of a row without a label has a hat around f = 0.

    Parameters
    ----------
    machines : KernelMachines
    start : ndarray (n,)
        Label means of the first machine.
    max_rounds : int
        Bound on the iterations.
    tol : float
        Converged where no label mean changes by more in the one round of alternating
        minimisation that ends the descent.

    Returns
    -------
    Rounds
        `history` has the objective after every iteration, and those of the last round.
    """
    costs = machines.costs
    first = machines.train(start)
    history, stopped = [objective_of(costs, first, start)], [False]

    def listen(done, J, size):
        history.append(J)
        norm = (size / (1.0 + abs(J))) ** 0.5
        report = Report(done, J, np.nan, "L-BFGS", norm, _GRADIENT, "gradient")
        stopped[0] = tell(callback, report)
        return stopped[0]

    machine, n_iter = machines.descended(
        first, tol=_GRADIENT**2, max_iter=max_rounds, callback=listen
    )
    p = machine.p
    state = Rounds(machine, p, objective_of(costs, machine, p), history)
    # a machine of the estimator's own solver has few support rows, and a certificate
    one_round(machines, state, p, 1.0)
    state.n_iter = n_iter
    state.change = float(np.abs(costs.best_means(state.machine.f) - p).max())
    met = state.change <= tol and state.decrease <= tol**2
    state.status = Status.CONVERGED if met else Status.MAX_ITER
    if stopped[0]:
        state.status = Status.STOPPED
    return state
