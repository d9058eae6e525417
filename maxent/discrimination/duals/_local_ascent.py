"""Dual ascent inside the partitions, for losses with corners: adding updates.

    w = sum over the partitions of X_k' a_k

In a round every partition k raises its own share of the dual by coordinate steps on its
multipliers, w held elsewhere:

    sum_t phi_t(lam_t) - w . X_k' da - K |X_k' da|^2 / 2

With the number K of partitions in front, the sum of all steps raises the dual too, and
is added whole. A flat prior of the bias is met by the method of multipliers, as by
coordinate ascent on one machine.

Source: Ma, Smith, Jaggi, Jordan, Richtarik & Takac (2015), Adding vs. averaging in
distributed primal-dual optimization (CoCoA+).
"""

from __future__ import annotations

import numpy as np

from maxent._support.results import Monitor, Status
from maxent.discrimination.duals._coordinate_ascent import epoch_of
from maxent.discrimination.duals._partitioned_linear import (
    balance_of,
    balanced,
    certificate_of,
    feasible_sums,
)
from maxent.discrimination.duals._proximal_bias import proximal_variance

_EPOCHS = 4  # inside a partition, between two sums over all


def local_ascent(parts, rows, mean_norm, *, tol, max_iter, callback=None, seed=0):
    """DualResult, without multipliers, of any finite loss over partitions.

    Parameters
    ----------
    parts : Partitions
    rows : PartRows
    mean_norm : float
        Mean of |x|^2, the scale of the sweeps of a flat bias.
    tol, callback
        As for the solvers of one machine.
    max_iter : int
        Bound on the rounds.
    seed : int
        Of the order of the visits.
    """
    run = _Rounds(parts, rows, mean_norm, seed)
    monitor = Monitor(tol, callback, solver="local ascent")
    status, n_iter, next_check = Status.MAX_ITER, 0, 0
    while n_iter < max_iter and status is Status.MAX_ITER:
        n_iter += 1
        nearly = run.step(n_iter, tol)
        if (nearly and n_iter >= next_check) or n_iter in (1, max_iter):
            here = run.certified()
            if monitor.record(n_iter, here.objective, here.gap, here.point):
                status = monitor.status
            next_check = n_iter + 1 + n_iter // 10
        else:
            monitor.announce(n_iter)
            status = Status.STOPPED if monitor.stopped else status
    return monitor.result(n_iter, status)


class _Rounds:
    """Multipliers in the partitions; weights and bias here."""

    def __init__(self, parts, rows, mean_norm, seed):
        self.parts, self.rows, self.seed = parts, rows, seed
        self.flat = rows.bias == "flat"
        self.variance = rows.bias_variance
        if self.flat:
            self.variance = proximal_variance(mean_norm)
        self.w, self.bias, self.total = np.zeros(parts.n_columns), 0.0, 0.0
        self.states = None

    def step(self, n_iter, tol):
        """Make a round; return True if the point before it was near the tolerance."""
        K, d = len(self.parts.lengths), self.parts.n_columns
        self.states, sums = self.parts.update(
            _raise_part,
            self.states,
            self.rows,
            np.append(self.w, self.bias),
            self.variance,
            K,
            (self.seed, n_iter),
        )
        value, terms, dw, change = sums
        objective = value - 0.5 * float(self.w @ self.w)
        if not self.flat:
            objective -= 0.5 * self.variance * self.total**2
        self.w += dw[:d]
        self.total += change
        self.bias += self.variance * change
        if self.flat:  # the centre moves to the bias of this round
            self.bias += self.variance * self.total
        return n_iter > 1 and terms <= 2.0 * tol * (1.0 + abs(objective))

    def certified(self):
        """Certificate of the multipliers, everything recomputed from them."""
        x, correction = np.append(self.w, self.bias), None
        if self.flat:
            balance = self.parts.update(_balance, self.states, self.rows)[1]
            correction = self.rows.correction(balance)
        sums = self.parts.update(_sums, self.states, self.rows, x, correction)[1]
        return certificate_of(sums, x, self.rows.precision(self.parts), self.rows)


def _raise_part(X, y, weight, lam, rows, x, variance, parts, seed):
    """New multipliers of a partition; value and terms before, and what they add to w.

    In units of which the curvature of the own step is one times `parts`: the rows'
    levels and rates are scaled, and their multipliers stay what they are.
    """
    linear = rows.problem(X, y, weight)
    r = linear.rows
    if lam is None:
        before = np.zeros(len(r.q))
        lam = before if r.potential.finite_at_zero else r.start_inside()
        terms = np.inf
    else:
        before = lam
        d = linear.shortfalls(x)
        terms = r.gap(lam, d)
    value = r.value(lam)
    lam = lam.copy()
    first = x / parts
    w, bias = first[:-1].copy(), first[-1:].copy()
    start = linear.sign @ (lam - before)
    if start:  # where the slope at zero is infinite, all begin inside
        w += linear.X.T @ linear.collect(lam)
        bias += variance * start
    rng = np.random.default_rng([*seed, len(y)])
    _coordinate_steps(linear, lam, w, bias, variance, parts, rng)
    change = linear.collect(lam - before)
    return lam, (
        value,
        terms,
        np.asarray(linear.X.T @ change).ravel(),
        float(change.sum()),
    )


def _coordinate_steps(linear, lam, w, bias, variance, parts, rng):
    """Epochs of steps on the multipliers, which change with w and bias in place."""
    r = linear.rows
    epoch, arrays = epoch_of(linear)
    constants = (
        r.potential.core_spec,
        *arrays,
        r.q / parts,
        r.rate * parts,
        r.weight / parts,
        linear.sign,
        linear.squared_norms()[linear.index] + variance,
        linear.index,
    )
    for _ in range(_EPOCHS):
        order = rng.permutation(len(lam))
        epoch(*constants, order, variance, False, lam, w, bias)


def _balance(X, y, weight, lam, rows):
    return lam, balance_of(rows.problem(X, y, weight), lam)


def _sums(X, y, weight, lam, rows, x, correction):
    linear = rows.problem(X, y, weight)
    return lam, feasible_sums(linear, balanced(linear, lam, correction), x)
