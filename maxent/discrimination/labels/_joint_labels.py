"""Discrimination with a joint distribution over machines and labels, by enumeration.

Without the factorisation P(w) P(y) the dual has a sum over all labellings y of the
uncertain rows,

    J(lam) = sum_t phi(lam_t) - log sum_y P0(y) exp( 1/2 (y lam)' K (y lam) ),

concave in lam: its optimum is global, and never above that of the factorised problem.
The work doubles with every uncertain row.

Source: Jaakkola, Meila & Jebara (1999), eqs. (51)-(52).
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
from scipy.special import log_expit, logsumexp

from maxent._support.results import Status
from maxent.discrimination.duals.block_dual import solve_blocks
from maxent.discrimination.labels._label_machines import Machine
from maxent.discrimination.labels._label_rounds import Rounds
from maxent.families.priors.block import Block

MOST_UNCERTAIN = 12  # rows: 4096 labellings


class JointLabels(Block):
    """log Z of a Gaussian machine and the labels of some rows, as a block.

    Parameters
    ----------
    K : ndarray (n, n)
        Kernel matrix, a Gaussian bias included.
    half_odds : ndarray (n,)
        Of the labels; infinite for known ones.
    """

    def __init__(self, K, half_odds):
        self.K, self.n_rows = K, len(K)
        open_ = np.flatnonzero(np.isfinite(half_odds))
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=len(open_))))
        self.Y = np.tile(np.sign(half_odds), (len(signs), 1))
        self.Y[:, open_] = signs
        self.log_prior = log_expit(2.0 * signs * half_odds[open_]).sum(axis=1)

    def _at(self, a):
        """log Z, the probabilities of all labellings, and margins y_t f_t in each."""
        V = self.Y * a
        F = V @ self.K
        terms = self.log_prior + 0.5 * (V * F).sum(axis=1)
        value = float(logsumexp(terms))
        return value, np.exp(terms - value), self.Y * F

    def log_partition(self, a):
        """Log Z at multipliers a."""
        return self._at(a)[0]

    def mean(self, a):
        """Expected margins E[y_t f_t]."""
        _, share, margins = self._at(a)
        return share @ margins

    def hessian_factor(self, a):
        """F with the Hessian F F': that given the labels, and that of the labels."""
        _, share, margins = self._at(a)
        given = self.K * ((self.Y.T * share) @ self.Y)
        off = margins - share @ margins
        values, vectors = np.linalg.eigh(given + (off.T * share) @ off)
        return vectors * np.sqrt(np.maximum(values, 0.0))

    def label_means(self, a):
        """E[y_t] of all rows."""
        return self._at(a)[1] @ self.Y


def enumerate_labels(machines, *, tol, max_rounds, callback=None):
    """Solve the joint problem of kernel machines with few uncertain labels.

    A common weight u of the uncertain rows is a factor of the objective, and one of
    the kernel.

    Parameters
    ----------
    machines : KernelMachines
    tol, max_rounds
        As `tol` and `max_iter` of :func:`solve_blocks`.

    Returns
    -------
    Rounds
        Label means are those of the joint distribution; `history` has the dual
        objectives.
    """
    costs, bias = machines.costs, machines.bias
    unit = _common_weight(costs, bias)
    K = unit * machines.matrix()
    if bias is not None:
        K = K + unit * bias
    block = JointLabels(K, costs.half_odds)
    result = solve_blocks(
        [block],
        [np.eye(len(K))],
        machines.margin,
        sample_weight=costs.rows.weight / unit,
        tol=tol,
        max_iter=max_rounds,
        callback=callback,
    )
    p = block.label_means(result.lam)
    a = unit * p * result.lam
    b = 0.0 if bias is None else bias * float(a.sum())
    found = replace(
        result,
        lam=a,
        bias=b,
        objective=unit * result.objective,
        gap=unit * result.gap,
        history=[(n, unit * J, unit * gap) for n, J, gap in result.history],
    )
    machine = Machine(p, machines.matrix() @ a + b, np.nan, found.gap, found)
    status = Status.CONVERGED if result.converged else result.status
    return Rounds(
        machine,
        p,
        found.objective,
        [J for _, J, _ in found.history],
        n_iter=result.n_iter,
        status=status,
    )


def _common_weight(costs, bias):
    """Weight of the uncertain rows, which must be few and of one weight."""
    many = len(costs.uncertain)
    if many > MOST_UNCERTAIN:
        raise ValueError(
            f"method='exact' enumerates all labellings, and {many} rows have uncertain "
            f"labels; {MOST_UNCERTAIN} are the most. Use method='alternating'."
        )
    if bias == "flat":
        raise ValueError(
            "method='exact' has no solution with bias='flat': a flat bias must balance "
            "the labels in every labelling. Give the estimator bias=1.0 or bias=None."
        )
    weights = costs.rows.weight[costs.uncertain]
    if not many:
        return float(costs.rows.weight.max())
    if not np.allclose(weights, weights[0], rtol=1e-12, atol=0.0):
        raise ValueError(
            "method='exact' needs one weight for all rows with uncertain labels, and "
            f"theirs go from {weights.min():g} to {weights.max():g}; leave out "
            "sample_weight and class_weight there, or use method='alternating'."
        )
    return float(weights[0])
