"""Duals over signed multipliers: the problem and its certificate.

One multiplier a_t per row, a_t = y_t lam_t for a class label (one sign),
a_t = lam_t+ - lam_t- for a regression target (both signs, a kink at zero):

    maximise  sum_t [ target_t a_t + phi_t(|a_t|) ] - a' K a / 2 - bias potential
    f(x) = sum_t a_t k(x_t, x) + b

Source: Jaakkola, Meila & Jebara (1999), Theorem 2; Jebara & Jaakkola (2000).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from maxent._core.machines import signed_rows
from maxent._optimize.certificate import certify
from maxent._optimize.rows import BOTH, NEGATIVE, POSITIVE, Rows


@dataclass
class SignedProblem:
    """A dual over signed multipliers.

    Attributes
    ----------
    margin : MarginPrior
    level, rate, weight, target : ndarray (n,)
    sides : ndarray of int8 (n,)
        POSITIVE, NEGATIVE or BOTH: the signs a multiplier may take.
    bias : "flat", float or None
        Flat prior, variance of a Gaussian prior, or no bias.
    """

    margin: object
    level: np.ndarray
    rate: np.ndarray
    weight: np.ndarray
    target: np.ndarray
    sides: np.ndarray
    bias: object

    @property
    def potential(self):
        """Unit potential of the margin prior."""
        return self.margin.unit_potential

    def rows(self):
        """(Rows, index of the data row, sign): one entry per allowed side."""
        sides = self.sides
        if ((sides == POSITIVE) | (sides == NEGATIVE)).all():
            sign = np.where(sides == POSITIVE, 1.0, -1.0)
            q = self.level + sign * self.target
            rows = Rows(self.potential, q, self.rate, self.weight)
            return rows, np.arange(len(q)), sign
        pos = np.flatnonzero(self.sides & POSITIVE)
        neg = np.flatnonzero(self.sides & NEGATIVE)
        index = np.concatenate([pos, neg])
        sign = np.concatenate([np.ones(len(pos)), -np.ones(len(neg))])
        order = np.argsort(index, kind="stable")
        index, sign = index[order], sign[order]
        q = self.level[index] + sign * self.target[index]
        rows = Rows(self.potential, q, self.rate[index], self.weight[index])
        return rows, index, sign

    def in_units_of(self, unit):
        """Return the problem with targets, multipliers and biases in other units."""
        return replace(
            self,
            level=self.level / unit,
            rate=self.rate * unit,
            weight=self.weight / unit**2,
            target=self.target / unit,
        )

    def among(self, rows):
        """The problem of some of the rows."""
        arrays = ("level", "rate", "weight", "target", "sides")
        return replace(self, **{name: getattr(self, name)[rows] for name in arrays})

    def curvature(self):
        """Smallest curvature of each row's own term, (n,)."""
        return self.potential.least_curvature / (self.weight * self.rate**2)

    @property
    def bias_variance(self):
        """Variance added to every kernel entry (0 for flat and none)."""
        return 0.0 if self.bias in ("flat", None) else float(self.bias)


def in_units(result, unit):
    """DualResult of a problem from that of ``problem.in_units_of(unit)``."""
    square = unit**2
    return replace(
        result,
        lam=result.lam * unit,
        bias=result.bias * unit,
        objective=result.objective * square,
        gap=result.gap * square,
        history=[(n, J * square, gap * square) for n, J, gap in result.history],
        coef=None if result.coef is None else result.coef * unit,
        kkt_violation=_times(result.kkt_violation, unit),
        kkt_tol=_times(result.kkt_tol, unit),
        unit=result.unit * square,
    )


def _times(number, unit):
    return None if number is None else number * unit


def binary_problem(y, margin, bias, sample_weight):
    """SignedProblem of a two-class machine; y in {-1, +1}."""
    n = len(y)
    weight = np.ones(n) if sample_weight is None else sample_weight
    return SignedProblem(
        margin,
        np.full(n, margin.level),
        np.full(n, margin.rate),
        np.ascontiguousarray(weight, dtype=np.float64),
        np.zeros(n),
        np.where(y > 0, POSITIVE, NEGATIVE).astype(np.int8),
        bias,
    )


def clip_to_domain(lam, rows):
    """Warm starts strictly inside the domain of the potentials."""
    end = 1.0 if rows.potential.closed else 1.0 - 1e-9
    return np.clip(lam, 0.0, end * rows.upper)


def clip_signed_to_domain(a, problem):
    """Return signed multipliers clipped to the inside of their domains."""
    end = 1.0 if problem.potential.closed else 1.0 - 1e-9
    top = end * problem.potential.upper * problem.weight * problem.rate
    return np.clip(a, -top, top)


class Certifier:
    """Objective, gap and bias of signed multipliers from f = K a."""

    def __init__(self, problem):
        self.problem = problem
        # compiled where every row has one sign and a loss that is strictly convex
        self.compiled = problem.potential.smooth and not (problem.sides == BOTH).any()

    @cached_property
    def _split_rows(self):
        return self.problem.rows()

    def split(self, a):
        """Nonnegative multiplier of every constraint row."""
        _, index, sign = self._split_rows
        return np.maximum(sign * a[index], 0.0)

    def __call__(self, a, f, guess=0.0):
        """(objective, gap, bias); f excludes the bias, and a sums to 0 if flat."""
        p = self.problem
        flat = p.bias == "flat"
        total = float(a.sum())
        b = p.bias_variance * total  # of a Gaussian prior
        value = 0.5 * (float(a @ f) + b * total)
        if self.compiled:
            found = signed_rows.certificate(
                p.potential.core_spec,
                a,
                f,
                p.target,
                p.level,
                p.rate,
                p.weight,
                p.sides,
                value,
                guess if flat else b,
                flat,
            )
            if found is not None:
                return found
        rows, index, sign = self._split_rows
        product = _Product(value, sign * (f[index] + b))
        E, start = (sign[:, None], np.array([guess])) if flat else (None, None)
        objective, gap, best, _ = certify(rows, product, self.split(a), E, start)
        return objective, gap, float(best[0]) if flat else b


@dataclass
class _Product:
    """Value and margins of a quadratic at multipliers whose product is known."""

    value: float
    margins: np.ndarray
    homogeneous = True

    def value_and_margins(self, lam):
        return self.value, self.margins
