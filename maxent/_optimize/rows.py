"""Constraint rows of a dual: multipliers, shortfalls, Fenchel-Young terms.

A row r holds a multiplier lam_r >= 0 and a shortfall

    d_r = q_r - (Q lam)_r - (E b)_r,      q_r = level_r (plus its target)

the amount by which its margin misses the level. For any feasible multipliers

    gap = sum_r weight_r [ G(x_r) - x_r u_r - g(u_r) ] >= 0,
    x = rate * d,  u = lam / (weight * rate)

is primal minus dual objective: a sum of Fenchel-Young terms, each zero exactly when its
row satisfies its optimality condition.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from maxent._optimize.potential import Potential
from maxent._support.results import Status

# Signs that a signed multiplier may take.
POSITIVE, NEGATIVE, BOTH = 1, 2, 3


@dataclass
class Rows:
    """Constraint rows that share one margin prior.

    Attributes
    ----------
    potential : Potential
        Unit potential of the margin prior; each row has its own level and rate.
    q : ndarray (n,)
        Linear coefficient of each multiplier: the level, plus a target if any.
    rate, weight : ndarray (n,)
    """

    potential: Potential
    q: np.ndarray
    rate: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, margin, weight, q=None):
        """Rows of one margin prior, at its level or with other coefficients `q`.

        Parameters
        ----------
        margin : MarginPrior
        weight : ndarray (n,)
        q : ndarray (n,), optional
        """
        n = len(weight)
        q = np.full(n, margin.level) if q is None else q
        return cls(margin.unit_potential, q, np.full(n, margin.rate), weight)

    @property
    def upper(self):
        """Supremum of each multiplier."""
        return self.potential.upper * self.weight * self.rate

    def start_inside(self):
        """Multipliers to start from where the slope at zero is infinite."""
        return self.potential.start_inside(self._scale)

    def unit(self, lam):
        """Dimensionless multipliers."""
        return lam / self._scale

    @cached_property
    def _scale(self):
        return self.weight * self.rate

    def value(self, lam):
        """Sum of the potentials, q included; -inf outside the domain."""
        return float(self.q @ lam + self.weight @ self.potential.value(self.unit(lam)))

    def slope(self, lam):
        """Derivative of each potential without q."""
        return self.potential.slope(self.unit(lam)) / self.rate

    def curvature(self, lam):
        """Minus the second derivative of each potential."""
        scale = self.weight * self.rate**2
        return self.potential.curvature(self.unit(lam)) / scale

    def loss(self, d):
        """Sum of losses at shortfalls d, the multipliers they ask for, and slopes.

        Returns (value, lam, curvature): lam = d loss / d d, curvature its derivative.
        """
        value, lam, curvature = self.losses(d)
        with np.errstate(over="ignore"):  # an infinite loss is an answer
            total = float(self.weight @ value)
        return total, lam, curvature

    def losses(self, d):
        """Each row's own loss per weight, with the multipliers and slopes of `loss`."""
        value, slope, curvature = self.potential.loss_derivatives(self.rate * d)
        slope *= self._scale
        curvature *= self._scale
        curvature *= self.rate
        return value, slope, curvature

    def gap(self, lam, d):
        """Fenchel-Young sum at multipliers lam and shortfalls d."""
        terms = self.potential.fenchel_young(self.unit(lam), self.rate * d)
        return float(self.weight @ terms)

    def hard_gap(self, d, norm, objective):
        """Gap of fixed margins: the machine scaled until every margin is met.

        `norm` is the squared norm of the machine; infinite if some margin is wrong.
        """
        worst = float(np.min((self.q - d) / self.q))
        return max(0.5 * norm / worst**2 - objective, 0.0) if worst > 0 else np.inf

    def subset(self, index):
        """The rows at `index`."""
        q, rate, weight = self.q[index], self.rate[index], self.weight[index]
        return Rows(self.potential, q, rate, weight)


def tolerance_for(potential, level, largest, tol):
    """Tolerance on gap / (1 + J) that bounds the relative gap of fixed margins by tol.

    There J is the squared norm of the machine and nothing else, and one is no unit
    for it: J >= level^2 / (2 largest), with `largest` on the kernel's diagonal.
    """
    if not (potential.hard and largest > 0):
        return tol
    return 0.5 * tol * min(1.0, 0.5 * level**2 / largest)


def settle(result, tol):
    """Let a stalled result of fixed margins converge where its gap proves enough.

    Their tolerance is a bound from before the objective was known, and may be one that
    rounding does not allow.
    """
    missed = result.kkt_tol is not None and not result.kkt_violation <= result.kkt_tol
    enough = result.gap <= tol * result.objective and not missed
    if result.status is Status.STALLED and enough:
        result.status = Status.CONVERGED
