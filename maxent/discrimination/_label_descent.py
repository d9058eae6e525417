"""Direct minimisation of the risk without label means.

With every label mean at its best value the objective depends on the machine alone,

    F(w, b) = |w|^2 / 2 + sum_t weight_t min_p [ ell(p f_t) + KL(p || P0_t) ],

smooth and not convex: the loss of a row without a label has a hat around f = 0.
"""

from __future__ import annotations

import numpy as np

from maxent._support.results import Report, Status, tell
from maxent.discrimination._label_rounds import Rounds, objective_of, one_round

_GRADIENT = 1e-5  # norm asked for, relative to the root of the objective


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
    costs, start = machines.costs, machines.labels.evidence
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
