"""Joint multi-class machines: one constraint for every wrong class of every row.

    maximise  sum_{t, j != y_t} phi_t(lam_tj) - v/2 trace(beta' K beta)
    beta_tk = [k = y_t] sum_j lam_tj - [k != y_t] lam_tk
    f_k(x) = v sum_t beta_tk k(x_t, x) + b_k

v = 1/2, so that the difference of two class scores has the prior of the two-class
machine, and two classes give exactly that machine. A flat bias prior asks
``sum_t beta_tk = 0`` for every class; one bias is fixed by ``sum_k b_k = 0``.

Source: Jaakkola, Meila & Jebara (1999), eq. (4)-(5).
"""

from __future__ import annotations

import numpy as np

from maxent._support.results import Status
from maxent._support.threads import single_threaded_blas
from maxent.discrimination._interior import DenseQuadratic, interior_point
from maxent.discrimination.certificate import Rows

SHARE = 0.5  # the variance v of each class's weights
_INTERIOR_LIMIT = 4000


class MulticlassRows:
    """Constraint rows (t, j) of a joint multi-class problem.

    Parameters
    ----------
    codes : ndarray of int (n,)
        Class of each row, 0 .. m-1.
    n_classes : int
    margin : MarginPrior
    weight : ndarray (n,)
    """

    def __init__(self, codes, n_classes, margin, weight):
        n, m = len(codes), n_classes
        self.n, self.m, self.codes = n, m, codes
        self.example = np.repeat(np.arange(n), m - 1)
        wrong = np.arange(m - 1)[None, :] + (
            np.arange(m - 1)[None, :] >= codes[:, None]
        )
        self.right = codes[self.example]
        self.wrong = wrong.reshape(-1)
        size = n * (m - 1)
        self.rows = Rows(
            margin,
            np.full(size, margin.level),
            np.full(size, margin.rate),
            np.repeat(weight, m - 1),
        )

    def beta(self, lam):
        """Class coefficients (n, m) of multipliers (n * (m - 1),)."""
        out = np.zeros((self.n, self.m))
        np.add.at(out, (self.example, self.right), lam)
        np.add.at(out, (self.example, self.wrong), -lam)
        return out

    def margins(self, scores):
        """Score of the right class minus that of the wrong one, per constraint."""
        return scores[self.example, self.right] - scores[self.example, self.wrong]

    def incidence(self):
        """Matrix E of the flat bias, without the last class (its bias is fixed)."""
        E = np.zeros((len(self.example), self.m))
        at = np.arange(len(self.example))
        E[at, self.right] += 1.0
        E[at, self.wrong] -= 1.0
        return E[:, :-1]


def solve_multiclass(kernel, codes, n_classes, margin, bias, weight, *, tol, max_iter):
    """Solve the joint dual by interior point.

    Returns
    -------
    result : DualResult
        `lam` (n, m) with zeros at the row's own class, `bias` (m,) summing to zero.
    beta : ndarray (n, m)
        Coefficients of the class scores, v included.
    """
    constraints = MulticlassRows(codes, n_classes, margin, weight)
    with single_threaded_blas():
        everything = np.arange(len(kernel))
        K = kernel.block(everything, everything)
        variance = 0.0 if bias in ("flat", None) else float(bias)
        Q = _joint_quadratic(constraints, SHARE * (K + variance))
        E = constraints.incidence() if bias == "flat" else None
        result = interior_point(
            constraints.rows, DenseQuadratic(Q), E, tol=tol, max_iter=max_iter
        )
    if result.status is Status.UNBOUNDED:
        raise ValueError(
            f"the data cannot be separated with the fixed margin {margin!r}: the dual "
            "is unbounded. Use a margin prior that allows losses, such as "
            "margin='exponential', or a richer kernel."
        )
    beta = SHARE * constraints.beta(result.lam)
    if bias == "flat":
        b = np.append(result.bias, 0.0)
        b -= b.mean()
    else:
        b = variance * beta.sum(axis=0)
    lam = np.zeros((len(codes), n_classes))
    lam[constraints.example, constraints.wrong] = result.lam
    result.lam, result.bias = lam, b
    return result, beta


def _joint_quadratic(c, K):
    """Q over constraints: K between rows times the agreement of their classes."""
    agree = (
        (c.right[:, None] == c.right[None, :]).astype(np.float64)
        - (c.right[:, None] == c.wrong[None, :])
        - (c.wrong[:, None] == c.right[None, :])
        + (c.wrong[:, None] == c.wrong[None, :])
    )
    agree *= K[np.ix_(c.example, c.example)]
    return agree
