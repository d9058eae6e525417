"""Duals whose optimum uses up some slacks of the domain.

A block whose log Z is finite where its slacks s(a) > 0 are may have a barrier so weak,
c / s with c of e^-30, that at the optimum less is left of a slack than multipliers in
double precision can tell. Its price z, the slope of log Z there, then is a number of
its own: such slacks are held,

    maximise  J(lam),    0 <= lam <= top,  E' lam = 0,  s_h(lam) = next to nothing,

and the prices are the multipliers of these equalities. The distribution in whose
posterior each of them has just so much left that log Z falls by its price meets the
optimality conditions, and its own divergence from the posterior of lam belongs to the
gap:

    gap = Fenchel-Young terms + KL,
    KL = log Z(s(lam)) - log Z(left) + z (s(lam) - left).

Source: Jaakkola, Meila & Jebara (1999), appendix B. Nocedal & Wright (2006), Numerical
optimization, section 16.5 on active sets.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from maxent._optimize.bias import best_prices
from maxent._optimize.block_sum import BlockSum
from maxent._support.results import Status, relative_gap

_WORN = 1e-9  # share of a slack below which a solver is stopped
_USED = 1e-5  # share below which a slack is held, once the solver has ended
_RESOLVED = 1e-6  # share from which on multipliers can tell what is left
_LEFT = 1e-12  # of what was there and what took it away; rounding is far below
_ROUNDS = 50  # choices of the slacks that are held


def solve_with_used_up(solve, rows, R, E, *, tol, max_iter, init=None, callback=None):
    """Solve a dual, and again with slacks held that its optimum uses up.

    Parameters
    ----------
    solve : callable(R, E, tol=, max_iter=, init=, bias=, total=, worn=, callback=)
        The solver; returns a DualResult.
    rows : Rows
        Those whose certificate is wanted.
    R : BlockSum
    E : ndarray (n, k) or None
    tol : float
    max_iter : int
    init : ndarray (n,) or None
    callback : callable(n_iter, objective, gap) or None

    Returns
    -------
    DualResult
        With `blocks` if slacks are held: the certificate is that of their posteriors.
    """
    slacks = _Slacks(R)
    held, spared = (
        np.zeros_like(slacks.before, bool),
        np.zeros_like(slacks.before, bool),
    )
    watch = _Watch(slacks, R, held, spared)
    options = {"tol": tol, "max_iter": max_iter, "init": init, "callback": callback}
    result = solve(R, E, worn=watch.worn, **options)
    lam = watch.end(result)
    bias = np.zeros(0) if result.bias is None else result.bias
    if result.status is Status.STALLED:
        held, lefts = watch.used(lam), watch.left(lam)
        if not held.any():
            return result
    last = np.inf
    for _ in range(_ROUNDS):
        if result.status is not Status.STALLED:
            break
        holding = _Holding(rows, R, E, slacks, held, lefts, lam)
        if not holding.R.value_and_margins(lam)[0] < np.inf:
            break
        spare = np.zeros_like(held)
        if held.any():
            spare = holding.settle(lam, holding.prices(lam, bias))
            if spare.any():
                held, spared = held & ~spare, spared | spare
                continue
            holding.aim()

        watch = _Watch(slacks, holding.R, held, spared)
        found = solve(
            holding.R,
            holding.E,
            tol=0.5 * tol,
            max_iter=max_iter - result.n_iter,
            init=lam,
            bias=holding.guess(bias),
            total=holding.total,
            worn=watch.worn,
            callback=goes_on(result, callback),
        )
        result.n_iter += found.n_iter
        J, gap = -np.inf, np.inf
        if found.objective > -np.inf:
            if held.any():
                spare = holding.settle(found.lam, found.bias)
            J, gap = holding.certificate(found)
        if gap < result.gap:
            result = replace(
                result,
                lam=found.lam,
                bias=None if E is None else _first(found.bias, bias),
                objective=J,
                gap=gap,
                blocks=holding.R.blocks,
            )
            result.history.append((result.n_iter, J, gap))
            if callback is not None:
                callback(*result.history[-1])
        if relative_gap(gap, J) <= tol:
            result.status = Status.CONVERGED
        elif result.n_iter >= max_iter:
            result.status = Status.MAX_ITER
        elif found.objective > -np.inf and spare.any():
            # back to where these were not held
            held, spared = held & ~spare, spared | spare
        else:
            lam, bias = watch.end(found), _first(found.bias, bias)
            lefts = np.where(held, holding.lefts, watch.left(lam))
            more = watch.used(lam)
            if not (more.any() or gap < 0.5 * last):
                break
            held, last = held | more, gap
    return result


def _first(found, bias):
    """The biases among all prices; None where there are none."""
    return bias if found is None else found[: len(bias)]


def goes_on(result, callback):
    """Callback of a solver that goes on where a result stands."""
    before, most = result.n_iter, result.objective + result.gap

    def progress(n_iter, objective, gap):
        # no objective is above a primal value
        result.history.append((before + n_iter, objective, most - objective))
        if callback is not None:
            callback(*result.history[-1])

    return progress


class _Slacks:
    """The slacks that blocks of R can hold, one block after the other.

    Attributes
    ----------
    before : ndarray (k,)
        Their values before training.
    """

    def __init__(self, R):
        none = np.zeros(0, dtype=np.intp)
        parts = [
            block.slacks(np.zeros(block.n_rows))
            if hasattr(block, "holding") and block.holding(none, none) is not None
            else np.zeros(0)
            for block in R.blocks
        ]
        self.before = np.concatenate(parts)
        self._ends = np.cumsum([len(part) for part in parts])[:-1]

    def of_blocks(self, values):
        """Values (k,) for every block."""
        return np.split(values, self._ends)


class _Watch:
    """What is left of the slacks on the way of a solver."""

    def __init__(self, slacks, R, held, spared):
        self.slacks, self.R, self.held = slacks, R, held
        self.least = np.where(spared, 0.1 * _RESOLVED / _USED, 1.0) * slacks.before
        self.last = None

    def left(self, lam):
        """Slacks at multipliers (k,), NaN where they are held."""
        out = np.full(len(self.held), np.nan)
        parts = zip(
            self.R.blocks,
            self.R._at(lam).weights,
            self.slacks.of_blocks(self.held),
            strict=True,
        )
        known = [block.slacks(a) for block, a, held in parts if len(held)]
        out[~self.held] = np.concatenate([*known, np.zeros(0)])
        return out

    def worn(self, lam):
        """Whether next to nothing is left of some slack."""
        if (
            len(self.held)
            and (
                self.left(lam)
                < np.minimum(_WORN * self.slacks.before, _USED * self.least)
            ).any()
        ):
            self.last = lam.copy()
        return self.last is not None

    def end(self, result):
        """Multipliers where the solver ended."""
        return result.lam if self.last is None else self.last

    def used(self, lam):
        """Mask of the slacks that are on their way to nothing."""
        return self.left(lam) < _USED * self.least


class _Holding:
    """R with some slacks held, and the equalities of that.

    Attributes
    ----------
    R : BlockSum
    E : ndarray (n, k + held)
    total : ndarray (k + held,)
    lefts : ndarray
        What is left of every slack that is held, NaN of the others.
    """

    def __init__(self, rows, R, E, slacks, held, lefts, lam):
        self.rows, self.whole, self.free, self.slacks = rows, R, E, slacks
        self.at = [np.flatnonzero(mask) for mask in slacks.of_blocks(held)]
        columns = [] if E is None else [E]
        totals = [np.zeros(column.shape[1]) for column in columns]
        self._hold(np.where(held, lefts, np.nan))
        self.changes = {}
        for k, _, block, At, at, s in self._held_blocks(lam):
            self.changes[k] = At @ block.held_gradient()
            columns.append(-self.changes[k])
            totals.append(s[at])
        self.lam = lam
        self.E = np.hstack(columns) if columns else None
        self.total = np.concatenate(totals) if held.any() else None

    def aim(self):
        """Ask for multipliers that leave just so much."""
        known = 0 if self.free is None else self.free.shape[1]
        for k, _, block, _, at, s in self._held_blocks(self.lam):
            C = self.changes[k]
            least = _LEFT * (s[at] + np.abs(C).T @ self.lam)
            self.total[known : known + len(at)] = s[at] - np.maximum(block.left, least)
            known += len(at)

    def _hold(self, lefts):
        self.lefts = lefts
        blocks = [
            block.holding(at, left[at]) if len(at) else block
            for block, at, left in zip(
                self.whole.blocks, self.at, self.slacks.of_blocks(lefts), strict=True
            )
        ]
        self.R = BlockSum(blocks, self.whole.maps, self.whole.bias)

    def _held_blocks(self, lam):
        """Place, weights, block, transposed map, what is held and slacks before."""
        before = self.slacks.of_blocks(self.slacks.before)
        for k, a in enumerate(self.R._at(lam).weights):
            if len(self.at[k]):
                At = self.R.transposed[k]
                yield k, a, self.R.blocks[k], At, self.at[k], before[k]

    def guess(self, bias):
        """The biases, and no price beyond that of what is left."""
        return np.append(bias, np.zeros(sum(len(at) for at in self.at)))

    def prices(self, lam, bias):
        """Biases and prices that fit multipliers best."""
        d = self.rows.q - self.R.value_and_margins(lam)[1]
        return best_prices(self.rows, d, self.E, self.guess(bias), self.total)

    def settle(self, lam, bias):
        """Leave of every slack what its price asks for.

        Returns the mask of those that have no price, or that multipliers can tell.
        """
        spare = np.zeros(len(self.slacks.before), dtype=bool)
        prices = np.full(len(spare), np.nan)
        known = 0 if self.free is None else self.free.shape[1]
        for k, a, block, _, at, _ in self._held_blocks(lam):
            own = block.held_prices(a)
            asked = bias[known : known + len(at)] + own
            known += len(at)
            self.slacks.of_blocks(spare)[k][at] = asked <= 0
            self.slacks.of_blocks(prices)[k][at] = np.where(asked > 0, asked, own)
        for _ in range(3):
            lefts = self.lefts.copy()
            for k, a, block, _, at, _ in self._held_blocks(lam):
                wanted = self.slacks.of_blocks(prices)[k][at]
                self.slacks.of_blocks(lefts)[k][at] = block.left_for(a, wanted)
            self._hold(lefts)
        return spare | (self.lefts > _RESOLVED * self.slacks.before)

    def certificate(self, found):
        """Objective, and its gap to the posteriors with what is left of the slacks."""
        whole, _ = self.whole.value_and_margins(found.lam)
        if not whole < np.inf:
            return -np.inf, np.inf
        value, margins = self.R.value_and_margins(found.lam)
        divergence = whole - value
        for k, a, block, _, at, _ in self._held_blocks(found.lam):
            more = self.whole.blocks[k].slacks(a)[at] - block.left
            divergence += float(block.held_prices(a) @ more)
        d = self.rows.q - margins
        if self.free is not None:
            d = d - self.free @ found.bias[: self.free.shape[1]]
        gap = self.rows.gap(found.lam, d) + max(divergence, 0.0)
        return self.rows.value(found.lam) - whole, gap
