"""Direct minimisation of the risk without label means.

With every label mean at its best value the objective depends on the machine alone,

    F(w, b) = |w|^2 / 2 + sum_t weight_t min_p [ ell(p f_t) + KL(p || P0_t) ],

smooth and not convex: the loss of a row without a label has a hat around f = 0. It is
minimised by L-BFGS in coordinates z of the machine, f = F z + b, for which the penalty
is |z|^2 / 2: the columns of F are a factor of the kernel matrix.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize

from maxent._support.reports import Report, tell
from maxent._support.results import Status
from maxent.discrimination._label_machines import Machine
from maxent.discrimination._label_rounds import Rounds, objective_of, one_round

_GRADIENT = 1e-7  # largest entry asked for
_STOPPED = 99  # SciPy's status where the callback has asked for it


def descend(machines, *, max_rounds, tol, callback=None):
    """Minimise the risk by L-BFGS from the machine of the label priors.

    Parameters
    ----------
    machines : KernelMachines
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
    start = machines.labels.evidence
    first = machines.train(start)
    F, to_multipliers = machines.factor()
    bias = machines.bias
    free = bias is not None
    precision = 0.0 if bias in (None, "flat") else 1.0 / bias
    b = float(first.result.bias) if free else 0.0
    x = np.append(F.T @ first.result.lam, b)
    history = [objective_of(costs, first, start)]
    norms = [np.inf]  # of the last gradient

    def risk(x):
        z, b = x[:-1], x[-1]
        value, slope = costs.least_loss(F @ z + b)
        value += 0.5 * float(z @ z) + 0.5 * precision * b * b
        last = slope.sum() + precision * b if free else 0.0
        gradient = np.append(z + F.T @ slope, last)
        norms[0] = float(np.abs(gradient).max())
        return value, gradient

    def listen(intermediate_result):
        J, done = float(intermediate_result.fun), len(history)
        history.append(J)
        report = Report(done, J, np.nan, "L-BFGS", *norms, _GRADIENT, "gradient")
        if tell(callback, report):
            raise StopIteration

    found = minimize(
        risk,
        x,
        jac=True,
        method="L-BFGS-B",
        callback=listen,
        options={"maxiter": max_rounds, "maxcor": 20, "ftol": 1e-13, "gtol": _GRADIENT},
    )
    z, b = found.x[:-1], float(found.x[-1])
    f = F @ z + b
    p = costs.best_means(f)
    penalty = 0.5 * float(z @ z) + 0.5 * precision * b * b
    if to_multipliers is None:  # the features' own weights, and multipliers near them
        lam, coef = -costs.least_loss(f)[1], z
    else:
        lam, coef = to_multipliers(z), None
    result = replace(first.result, lam=lam, bias=b, coef=coef)
    machine = Machine(p, f, penalty, np.nan, result)
    state = Rounds(machine, p, objective_of(costs, machine, p), history)
    # a machine of the estimator's own solver has few support rows, and a certificate
    one_round(machines, state, p, 1.0)
    state.n_iter = int(found.nit)
    state.change = float(np.abs(costs.best_means(state.machine.f) - p).max())
    met = state.change <= tol and state.decrease <= tol**2
    state.status = Status.CONVERGED if met else Status.MAX_ITER
    if found.status == _STOPPED:
        state.status = Status.STOPPED
    return state
