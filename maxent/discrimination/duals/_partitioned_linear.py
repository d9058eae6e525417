"""Linear duals whose rows lie in partitions, on this machine or on many.

    minimise  sum_t loss_t(margin_t) + |w|^2 / 2 + bias penalty     over (w, b)

by Newton's method: with the Hessian (dense features, up to 2000 columns), or with its
products by conjugate gradients. A hinge is rounded at its corner, ever less, until the
multipliers certify the hinge itself. The certificate is that of one
machine: one more pass turns the multipliers which the losses ask for into feasible
ones, and adds up their Fenchel-Young terms.

Source: Jaakkola, Meila & Jebara (1999), Theorem 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxent._optimize.rows import BOTH
from maxent._partitions.partition_checks import rows_of_weight
from maxent._partitions.partitions import Partitions
from maxent._support.results import Certified, DualResult
from maxent.discrimination.duals._coordinate_ascent import coordinate_ascent
from maxent.discrimination.duals._linear_problem import LinearProblem, prior_precision
from maxent.discrimination.duals._primal_newton import (
    NewtonRun,
    TruncatedRun,
    approximate_minimum,
    newton_ascent,
)
from maxent.discrimination.duals._rounded_hinges import (
    WIDEST,
    RoundedHinge,
    solve_by_rounded_hinges,
)
from maxent.discrimination.duals._signed_problem import SignedProblem, binary_problem
from maxent.discrimination.margins.base import MarginPrior

_NEWTON_SIZE = 2000  # weights and biases up to which the Hessian is formed


@dataclass(frozen=True)
class PartRows:
    """Settings with which a partition makes its constraint rows.

    Attributes
    ----------
    margin : MarginPrior
    bias : "flat", float or None
    factor : float or ndarray (2,)
        Factor of the sample weights; by class, of two classes.
    classes : ndarray (2,) or None
        Labels of two classes; None for targets.
    centre, unit : float
        Origin and unit of targets.
    rounding : float
        Width of the rounded corner of a hinge, in margin units; 0 leaves it.
    features : NystroemMap or None
        Makes features of the rows, in every pass anew.
    """

    margin: MarginPrior
    bias: Any
    factor: Any
    classes: Any = None
    centre: float = 0.0
    unit: float = 1.0
    rounding: float = 0.0
    features: Any = None

    def width(self, parts):
        """Columns of the linear problem."""
        return parts.n_columns if self.features is None else self.features.n_columns

    @property
    def bias_variance(self):
        """Variance of a Gaussian prior of the bias, 0 for flat and none."""
        return 0.0 if self.bias in ("flat", None) else float(self.bias)

    def precision(self, parts):
        """Inverse prior variances of weights and bias, as those of LinearProblem."""
        return prior_precision(self.width(parts), self)

    def correction(self, balance):
        """Correction by which multipliers meet the equality of a flat bias, or None."""
        return balancing(balance) if self.bias == "flat" else None

    def problem(self, X, y, weight):
        """LinearProblem of the rows of a partition that have weight."""
        X, y, weight = rows_of_weight(X, y, weight)
        if self.features is not None:
            X = self.features(X)
        if self.classes is not None:
            second = y == self.classes[1]
            sign = np.where(second, 1.0, -1.0)
            weight = weight * np.asarray(self.factor)[second.astype(np.intp)]
            signed = binary_problem(sign, self.margin, self.bias, weight)
        else:
            n = len(y)
            signed = SignedProblem(
                self.margin,
                np.full(n, self.margin.level),
                np.full(n, self.margin.rate),
                weight * self.factor,
                np.asarray(y, dtype=np.float64) - self.centre,
                np.full(n, BOTH, dtype=np.int8),
                self.bias,
            ).in_units_of(self.unit)
        return LinearProblem(X, signed, check=False)

    def asked(self, linear):
        """The rows whose losses are minimised: those of a problem, or rounded."""
        if not self.rounding:
            return linear.rows
        return replace(linear.rows, potential=RoundedHinge(self.rounding))

    def start(self, sample, direct):
        """Weights and bias (d + 1,) of a machine trained on a sample of the rows."""
        linear = self.problem(*sample)
        if direct:
            linear.rows = self.asked(linear)
            return approximate_minimum(linear)
        rough = coordinate_ascent(linear, 0.1, 20, None, None, 0)
        return np.append(rough.coef, rough.bias)

    def point(self, x):
        """Multipliers, which stay in the partitions, bias and weights of x (d + 1,)."""
        return np.empty(0), float(x[-1]), x[:-1].copy()

    # -- sums over the rows of a partition ---------------------------------------------
    def loss_sums(self, X, y, weight, x, hessian):
        """Loss, gradient, Hessian or None, and the balance of the multipliers."""
        linear = self.problem(X, y, weight)
        linear.rows = self.asked(linear)
        value, lam, gradient, H = linear.loss_pass(x, hessian)
        return value, gradient, H, *balance_of(linear, lam)

    def curved_sums(self, X, y, weight, x):
        """Curvatures; and loss, gradient, diagonal of the Hessian, balance."""
        linear = self.problem(X, y, weight)
        d = linear.shortfalls(x)
        value, lam, curvature = self.asked(linear).loss(d)
        a, c = linear.collect(lam), _per_row(linear, curvature)
        gradient = -np.append(linear.X.T @ a, a.sum())
        squares = linear.X.power(2) if linear.sparse else linear.X**2
        diagonal = np.append(squares.T @ c, c.sum())
        return c, (value, gradient, diagonal, *balance_of(linear, lam))

    def product(self, X, y, weight, curvature, x):
        """The Hessian with these curvatures, times x."""
        linear = self.problem(X, y, weight)
        f = curvature * (linear.X @ x[:-1] + x[-1])
        return np.append(linear.X.T @ f, f.sum())

    def certificate_sums(self, X, y, weight, x, correction):
        """Potentials, Fenchel-Young terms, weights and bias of the multipliers."""
        linear = self.problem(X, y, weight)
        d = linear.shortfalls(x)
        lam = balanced(linear, self.asked(linear).losses(d)[1], correction)
        return feasible_sums(linear, lam, x)


def solve_partitioned(
    parts: Partitions,
    rows: PartRows,
    sample: tuple[Any, ...],
    *,
    sparse: bool,
    tol: float,
    max_iter: int,
    callback: Any = None,
) -> DualResult:
    """DualResult, without multipliers, of a finite loss over partitions.

    `sample` holds some rows (X, y, weight), weighted to stand for all: their solution
    is the start.
    """
    hinge = not rows.margin.unit_potential.smooth
    if hinge:
        rows = replace(rows, rounding=WIDEST)
    sparse = sparse and rows.features is None
    problem = _PartitionedProblem(parts, rows)
    direct = not sparse and len(problem.precision) <= _NEWTON_SIZE
    x = rows.start(sample, direct)
    run = (NewtonRun if direct else TruncatedRun)(problem, x)
    solve = solve_by_rounded_hinges if hinge else newton_ascent
    return solve(problem, run, tol, max_iter, callback)


class _PartitionedProblem:
    """A LinearProblem for solvers of the primal, by passes over partitions."""

    def __init__(self, parts, rows):
        self.parts, self.rows = parts, rows
        self.precision = rows.precision(parts)
        self.curvatures = None

    @property
    def rounding(self):
        """Width of the rounded corners of hinges."""
        return self.rows.rounding

    @rounding.setter
    def rounding(self, width):
        self.rows = replace(self.rows, rounding=width)

    def curved_pass(self, x):
        """As `loss_pass`; keeps curvatures in the partitions, and has the diagonal."""
        # With the old curvatures as an input, a step would wait for all before it.
        self.curvatures, sums = self.parts.update(_curved_loss, None, self.rows, x)
        value, gradient, diagonal, *balance = sums
        return value, balance, gradient, diagonal

    def hessian_product(self, x):
        """The Hessian of the losses at the last curved pass, times x (d + 1,)."""
        product = self.parts.update(_product, self.curvatures, self.rows, x)[1]
        return product[0]

    def loss_pass(self, x, hessian=False):
        """As that of LinearProblem; in place of multipliers their balance."""
        sums = self.parts.total(_loss, self.rows, x, hessian)
        value, gradient, H, *balance = sums
        return value, balance, gradient, H

    def certified(self, x, balance):
        """Certificate of weights and bias x (d + 1,)."""
        correction = self.rows.correction(balance)
        sums = self.parts.total(_certificate, self.rows, x, correction)
        return certificate_of(sums, x, self.precision, self.rows)


def certificate_of(sums, x, precision, rows):
    """Certified point x from the sums of multipliers and their terms."""
    value, terms, dual = sums
    prior = np.isfinite(precision) & (precision > 0)
    p, dual, primal = precision[prior], dual[prior], x[prior]
    objective = value - 0.5 * float(dual @ (dual / p))
    apart = primal - dual / p
    gap = terms + 0.5 * float(apart @ (p * apart))
    return Certified(rows.point(x), objective, gap)


def balance_of(linear, lam):
    """Sums over the multipliers that :func:`balancing` takes."""
    room = room_of(lam, linear.upper)
    side = linear.sign * lam
    up, down = float(side[side > 0].sum()), -float(side[side < 0].sum())
    return up, down, float(room @ room)


def room_of(lam, upper):
    """Distances of multipliers to the nearer end of their domains."""
    return np.maximum(
        np.minimum(lam, np.where(np.isfinite(upper), upper - lam, lam)), 0
    )


def balancing(balance):
    """(move, factor up, factor down) that make the multipliers of both sides equal.

    A small lack is spread by the square of the room that each multiplier has; a larger
    one scales the heavier side down. No multiplier leaves its domain.
    """
    up, down, squares = balance
    lack = up - down
    # No room is larger than the root of the sum of squares.
    if abs(lack) <= 0.5 * np.sqrt(squares):
        return lack / squares if squares else 0.0, 1.0, 1.0
    if up == 0 or down == 0:
        return 0.0, 0.0, 0.0
    return 0.0, min(1.0, down / up), min(1.0, up / down)


def balanced(linear, lam, correction):
    """Multipliers with the correction of :func:`balancing`."""
    if correction is None:
        return lam
    move, up, down = correction
    lam = lam * np.where(linear.sign > 0, up, down)
    return lam - move * linear.sign * room_of(lam, linear.upper) ** 2


def feasible_sums(linear, lam, x):
    """Potentials, Fenchel-Young terms at x, weights and bias of multipliers."""
    a = linear.collect(lam)
    d = linear.shortfalls(x)
    dual = np.append(linear.X.T @ a, a.sum())
    return linear.rows.value(lam), linear.rows.gap(lam, d), dual


def _per_row(linear, values):
    """Sums over the constraint rows of each data row."""
    if linear.one_to_one:
        return values
    return np.bincount(linear.index, weights=values, minlength=linear.X.shape[0])


# -- functions of a partition ----------------------------------------------------------
def _loss(X, y, weight, rows, x, hessian):
    return rows.loss_sums(X, y, weight, x, hessian)


def _curved_loss(X, y, weight, _, rows, x):
    return rows.curved_sums(X, y, weight, x)


def _product(X, y, weight, curvature, rows, x):
    return curvature, (rows.product(X, y, weight, curvature, x),)


def _certificate(X, y, weight, rows, x, correction):
    return rows.certificate_sums(X, y, weight, x, correction)
