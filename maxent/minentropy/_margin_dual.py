"""The dual of a margin problem as the interior point of `_optimize` takes it.

    max  sum a ell - |Z' a|^2 / 2,   a >= 0,   sum of a over group i <= c_i

One row a group: a hinge with the end c_i. More rows: their multipliers have no end of
their own, and the room c_i - sum a of a group is a slack of the quadratic's domain,
whose dual is the slack xi_i of the primal. With the curvatures theta = 1 / diagonal of
the rows and kappa of the slacks, the Newton system is that of Z Z' + B, where

    B^-1 x = theta (x - xbar) + theta xbar / (1 + kappa T),   T = sum theta,
    Z' B^-1 Z = sum theta (z - zbar)(z - zbar)' + sum T / (1 + kappa T) zbar zbar'

with means over the groups weighted by theta: sums of nonnegative terms only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from maxent._optimize.interior_point import interior_point
from maxent._optimize.newton_system import NewtonSystem
from maxent._optimize.potential import Potential
from maxent._optimize.quadratics import Quadratic
from maxent._optimize.rows import Rows
from maxent._optimize.slack_barrier import PrimalDualSlacks
from maxent._support.linalg import (
    blocked_cholesky,
    solve_lower,
    times,
    transposed_times,
    weighted_gram,
)
from maxent._support.typing import FloatArray, IntArray

# (kind, shape, upper, addresses of a user's functions), by maxent/_core/potentials.pxd
_HINGE = Potential((6, 1.0, 1.0, 0, 0, 0))
_NO_END = Potential((5, 1.0, np.inf, 0, 0, 0))
_EDGE = 1e-16  # share of c below which the room of a group is rounding
_OVER = 1.0 + 1e-12  # rounding allowed in sums of multipliers
_CLOSE = 1e-5  # share of the loss below which a gap says which rows are in the support


@dataclass
class Groups:
    """Rows in groups that follow one another; none is empty.

    Attributes
    ----------
    starts : ndarray of int (n,)
        First row of each group.
    of_row : ndarray of int (rows,)
        Group of each row.
    c : ndarray (n,)
        Bound on the sum of the multipliers of each group.
    """

    starts: IntArray
    of_row: IntArray
    c: FloatArray

    @property
    def single(self) -> bool:
        """True if every group has one row."""
        return len(self.starts) == len(self.of_row)

    @cached_property
    def lone(self) -> NDArray[np.bool_]:
        """True if a group has one row."""
        return np.diff(self.starts, append=len(self.of_row)) == 1

    @cached_property
    def several(self) -> IntArray:
        """Groups that have several rows."""
        return np.flatnonzero(~self.lone)

    @cached_property
    def shared(self) -> IntArray:
        """Rows of groups that have several."""
        return np.flatnonzero(~self.lone[self.of_row])

    @cached_property
    def of_shared(self) -> IntArray:
        """Group of each shared row, counted among those that have several."""
        return np.searchsorted(self.several, self.of_row[self.shared])

    @cached_property
    def shared_starts(self) -> IntArray:
        """First row of each group that has several, counted among the shared rows."""
        return np.searchsorted(self.of_shared, np.arange(len(self.several)))

    def _reduced(self, ufunc: np.ufunc, x: FloatArray) -> FloatArray:
        """A ufunc over the rows of every group; most groups may have one."""
        out = x[self.starts]
        if len(self.several):
            out[self.several] = ufunc.reduceat(x[self.shared], self.shared_starts)
        return out

    def sum(self, x: FloatArray) -> FloatArray:
        """Sums over the groups, along the first axis."""
        return x if self.single else self._reduced(np.add, x)

    def argmax(self, x: FloatArray) -> IntArray:
        """Row of the largest entry of every group, the first of equal ones."""
        if self.single:
            return self.starts
        out = self.starts.copy()
        if len(self.several):
            rows, own = self.shared, self.of_shared
            top = np.maximum.reduceat(x[rows], self.shared_starts)
            best = np.flatnonzero(x[rows] == top[own])
            out[self.several] = rows[best[np.unique(own[best], return_index=True)[1]]]
        return out

    def top(self, m: FloatArray) -> FloatArray:
        """max(0, largest entry) of every group: the slacks xi at shortfalls m."""
        best = m if self.single else self._reduced(np.maximum, m)
        return np.maximum(best, 0.0)

    def loss(self, m: FloatArray) -> float:
        """sum c xi at shortfalls m."""
        return float(self.c @ self.top(m))

    def gap(self, a: FloatArray, m: FloatArray) -> float:
        """Primal less dual objective: c xi - sum a m, as a sum of terms >= 0."""
        top = self.top(m)
        # Sums of multipliers may exceed the bound c by rounding.
        room = np.maximum(self.c - self.sum(a), 0.0)
        return float(room @ top + a @ (top[self.of_row] - m))

    def clipped(self, a: FloatArray) -> FloatArray:
        """Multipliers >= 0 whose sums keep the bounds, near given ones."""
        a = np.maximum(a, 0.0)
        total = self.sum(a)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(total > self.c, self.c / total, 1.0)
        return np.minimum(a * share[self.of_row], self.c[self.of_row])


@dataclass
class Pair:
    """Primal weights and multipliers that certify each other.

    Attributes
    ----------
    w : ndarray (d,)
    a : ndarray (rows,)
        Multipliers that keep the bounds of their groups.
    gap : float
        |w - Z' a|^2 / 2 + c xi(w) - sum a m(w): primal at w less dual at a.
    """

    w: FloatArray
    a: FloatArray
    gap: float


class MarginRows(Rows):
    """Rows of a margin problem, with the certificate of weights near Z' a.

    Z' a loses the digits that cancel in a sum of large multipliers, and a shortfall
    of theirs counts c times. Near the optimum w is therefore moved to where the rows
    in the support are met exactly: the gap is then quadratic in the error of a.
    """

    groups: Groups
    R: _MarginQuadratic
    best: Pair | None

    @classmethod
    def of_groups(
        cls, R: _MarginQuadratic, ell: FloatArray, groups: Groups
    ) -> MarginRows:
        """Hinges for groups of one row; else rows without an end of their own."""
        ones = np.ones_like(ell)
        if groups.single:
            rows = cls(_HINGE, ell, ones, groups.c)
        else:
            rows = cls(_NO_END, ell, (groups.c / groups.sum(ones))[groups.of_row], ones)
        rows.groups, rows.R, rows.best = groups, R, None
        return rows

    def gap(self, lam, d):
        """Smallest gap known at multipliers with the shortfalls d = ell - Z w."""
        if (lam < 0).any() or not (self.groups.sum(lam) <= self.groups.c * _OVER).all():
            return np.inf
        w, v = self.R.both_weights(lam)
        off = w - v
        gap = 0.5 * float(off @ off) + self.groups.gap(lam, d)
        pairs = [Pair(w, lam, gap)]
        if gap <= _CLOSE * self.groups.loss(d):
            pairs.append(self._on_support(lam, d, w))
        for pair in pairs:
            if self.best is None or pair.gap < self.best.gap:
                self.best = pair
        return min(pair.gap for pair in pairs)

    def _on_support(self, lam, m, v):
        """Weights near v at which the support is met, and multipliers on it."""
        groups, own = self.groups, self.groups.of_row
        scale = max(float(np.abs(self.q).max()), 1e-300)
        top = groups.top(m)
        support = lam * scale > groups.c[own] * (top[own] - m)
        full = (groups.c - groups.sum(lam)) * scale < groups.c * top
        a = np.where(support, lam, 0.0)
        lead = groups.argmax(a)
        kept = full & support[lead]
        a[lead[kept]] = 0.0
        a[lead[kept]] = (groups.c - groups.sum(a))[kept]
        a = groups.clipped(a)
        # w' (z_r - z_lead) = ell_r - ell_lead in full groups, w' z_r = ell_r in others
        rows = np.flatnonzero(support)
        rows = rows[~(kept[own[rows]] & (lead[own[rows]] == rows))]
        if len(rows) > 4 * len(v) + 50:
            return Pair(v, lam, np.inf)
        against = np.where(kept[own[rows]], lead[own[rows]], -1)
        A, miss = self.R.Z[rows], m[rows].copy()
        paired = against >= 0
        A[paired] -= self.R.Z[against[paired]]
        miss[paired] -= m[against[paired]]
        w = v + np.linalg.lstsq(A, miss, rcond=1e-12)[0] if len(rows) else v
        off = w - self.R.Z.T @ a
        gap = 0.5 * float(off @ off) + groups.gap(a, self.q - self.R.Z @ w)
        return Pair(w, a, gap)


class _GroupBounds:
    """The slacks c - sum a of the groups, as blocks tell theirs."""

    def __init__(self, groups: Groups):
        self.groups, self.n_rows = groups, len(groups.of_row)

    def slacks(self, a):
        c = self.groups.c
        return np.maximum(c - self.groups.sum(a), _EDGE * c)

    def slack_changes(self, step):
        return -self.groups.sum(step)

    def slack_gradient(self, weights):
        return -weights[self.groups.of_row]

    def with_slack_duals(self, duals):
        """None: the gap of the rows takes the best duals already."""
        return


class _GroupSlacks(PrimalDualSlacks):
    """Slacks of the groups that keep their digits as they vanish.

    c - sum a has an error of a unit in the last place of c, and so has the sum of a
    step; their duals would multiply it by xi / (c - sum a).
    """

    least_shares = 0.03, 0.03  # slopes are linear and keep up; less stalls at 1e-14

    def changes(self, step):
        known, sums = self.R.last
        return [-sums] if step is known else super().changes(step)

    def update(self, lam, move, a):
        self.z = [z + a * dz for z, dz in zip(self.z, move[1], strict=True)]
        self.slacks = [s + a * ds for s, ds in zip(self.slacks, move[0], strict=True)]


class _Identity:
    """The map of the one block: multipliers are its row weights."""

    def __matmul__(self, x):
        return x


class _MarginQuadratic(Quadratic):
    """|Z' a|^2 / 2 on groups of rows, with weights w that follow the steps.

    Z' a cancels in a sum of large multipliers; margins are Z w, where w starts at zero
    and takes the step dw of M dw = (Z' a - w) + Z' B^-1 rhs, M = I + Z' B^-1 Z.
    """

    homogeneous = False  # the domain is not a cone
    bounds_dual = True  # multipliers of a group have a bounded sum

    def __init__(self, Z: FloatArray, groups: Groups):
        self.Z, self.groups = Z, groups
        self.blocks: Any = [] if groups.single else [_GroupBounds(groups)]
        self.maps = self.transposed = [_Identity() for _ in self.blocks]
        self.base = None  # multipliers and weights that the last step starts from
        self.step = None  # the last step of both
        self.met = (None,)  # the last multipliers asked for, w, Z' lam and Z w
        self.last = None, None  # its multipliers, and their sums over the groups

    @cached_property
    def _parts(self):
        """Rows of groups that have one, and rows of the others."""
        groups = self.groups
        return self.Z[groups.starts[groups.lone]], self.Z[groups.shared]

    def mean_diagonal(self):
        """Mean of the diagonal of Z Z'."""
        return float(np.vdot(self.Z, self.Z)) / max(len(self.Z), 1) or 1.0

    def row_weights(self, lam):
        """The multipliers are the weights of the rows of the one block."""
        return [lam for _ in self.blocks]

    def check_answer(self, block, name, found, shape):
        """Nothing: the block is our own."""

    def max_step(self, lam, direction):
        """No end of its own: that of the groups is told by their slacks."""
        return np.inf

    def both_weights(self, lam):
        """The weights w that belong to multipliers on the last step, and Z' lam."""
        if self.met[0] is not lam:
            w = np.zeros(self.Z.shape[1])
            if self.base is not None:
                (lam0, w0), (x, dw) = self.base, self.step
                size = float(x @ x)
                w = w0 + (float((lam - lam0) @ x) / size if size > 0 else 0.0) * dw
            self.met = lam, w, transposed_times(self.Z, lam), times(self.Z, w)
        return self.met[1:3]

    def value_and_margins(self, lam):
        """R(lam), and the margins at w."""
        _, v = self.both_weights(lam)
        return 0.5 * float(v @ v), self.met[3]

    def solver(self, lam, diagonal, curvatures=None):
        """Newton system (Z Z' + diagonal + kappa 1 1' of each group) x = rhs.

        The right-hand side has the margins of w; those of Z' a are what is met.
        """
        groups, Z = self.groups, self.Z
        theta, (w, v) = 1.0 / diagonal, self.both_weights(lam)
        miss = v - w
        if groups.single:
            inverse = _Diagonal(theta, Z)
        else:
            inverse = _Grouped(theta, curvatures[0], groups, self._parts)
        inner = inverse.gram()
        inner.flat[:: len(inner) + 1] += 1.0
        L = blocked_cholesky(inner)

        def solve(rhs):
            dw = solve_lower(L, miss + transposed_times(Z, inverse(rhs)[0]))
            self.last = inverse(rhs - times(Z, dw))
            self.base, self.step = (lam, w), (self.last[0], dw)
            return self.last[0]

        return NewtonSystem(solve)

    def restricted(self, index, lam):
        """No Newton steps at the end: the certificate has taken them."""
        return _NoFactor()


class _Diagonal:
    """B^-1 where groups have one row."""

    def __init__(self, theta, Z):
        self.theta, self.Z = theta, Z

    def __call__(self, x):
        """B^-1 x and its sums over the groups."""
        x = self.theta * x
        return x, x

    def gram(self):
        """Z' B^-1 Z."""
        return weighted_gram(self.Z, self.theta)


class _Grouped:
    """B^-1 where B = 1 / theta + kappa 1 1' of each group.

    `parts` are the rows of groups that have one, and the others.
    """

    def __init__(self, theta, kappa, groups, parts):
        self.theta, self.groups, self.parts = theta, groups, parts
        self.T, self.largest = groups.sum(theta), groups.argmax(theta)
        self.left = 1.0 / (1.0 + kappa * self.T)

    def __call__(self, x):
        """B^-1 x and its sums over the groups."""
        groups, own = self.groups, self.groups.of_row
        mean = groups.sum(self.theta * x) / self.T
        x = self.theta * (x - ((1.0 - self.left) * mean)[own])
        sums = self.T * self.left * mean
        # of a row that is nearly all of its group, what the others leave of the sum
        x[self.largest] = 0.0
        x[self.largest] = sums - groups.sum(x)
        return x, sums

    def gram(self):
        """Z' B^-1 Z."""
        groups, weight = self.groups, self.T * self.left
        alone, shared = self.parts
        out = weighted_gram(alone, weight[groups.lone])
        if len(shared):
            theta, several = self.theta[groups.shared], groups.several
            mean = np.add.reduceat(theta[:, None] * shared, groups.shared_starts)
            mean /= self.T[several][:, None]
            out += weighted_gram(shared - mean[groups.of_shared], theta)
            out += weighted_gram(mean, weight[several])
        return out


class _NoFactor:
    def solver(self, lam, diagonal):
        raise np.linalg.LinAlgError("rows of a group are not solved alone")


def solve_interior(Z, ell, groups, *, tol, max_iter, callback=None):
    """Best pair (w, a) and the result of the interior point on rows Z (rows, d)."""
    wide = len(Z) < Z.shape[1]
    if wide:  # an orthonormal basis of the span of the rows
        basis, upper = qr(Z.T, mode="economic", check_finite=False)
        Z = np.ascontiguousarray(upper.T)
    R = _MarginQuadratic(Z, groups)
    rows = MarginRows.of_groups(R, ell, groups)
    result = interior_point(
        *(rows, R, None),
        tol=tol,
        max_iter=max_iter,
        callback=callback,
        start=partial(_centred_start, groups=groups),
    )
    best = rows.best
    return (replace(best, w=basis @ best.w) if wide else best), result


def _centred_start(rows, R, E, init, *, groups):
    """Multipliers in the middle of their groups, and the slacks of w = 0.

    The margins Z Z' a are not those of w = 0; Newton steps remove that residual at the
    rate of the others, whatever the size of c.
    """
    size = groups.sum(np.ones_like(rows.q))
    lam = (groups.c / (size + 1.0))[groups.of_row]
    xi = groups.top(rows.q)
    xi = xi + max(float(xi.mean()), 1e-3)
    z = xi[groups.of_row] - rows.q
    if groups.single:
        return lam, np.zeros(0), z, xi, PrimalDualSlacks(R, lam)
    domain = _GroupSlacks(R, lam)
    domain.mu, domain.z = 1.0, [xi]
    return lam, np.zeros(0), z, None, domain
