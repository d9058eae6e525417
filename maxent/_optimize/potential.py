"""Unit potentials: what a solver may know of a margin prior.

A margin prior enters a dual through one concave function g of the dimensionless
multiplier u = lam / (weight * rate), 0 <= u <= upper, and its conjugate loss

    G(x) = sup_u g(u) + x u,    x = rate * (level - margin).

The solvers choose their steps by the properties of g (is the slope at zero finite? is
the end attained?), which are computed from g here. They never ask for the prior's name,
so a prior made of a user's functions is solved like a built-in one with the same g.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from maxent._core import potentials as _core
from maxent._support.threads import effective_threads

_VALUE, _SLOPE, _CURVATURE, _LOSS, _ARGMAX = range(5)

# Shares of the domain at which properties of g are checked.
_GRID = np.array([1e-6, 1e-3, 0.05, 0.25, 0.5, 0.75, 0.95, 0.999])
_MANY = 20_000  # entries from which on a pass may be worth threads
_LEAST = 1e-3  # share of the domain where solvers start if the slope at 0 is infinite


@dataclass(frozen=True)
class Potential:
    """A concave function g on [0, upper] with g(0) = 0, and its conjugate G.

    Parameters
    ----------
    core_spec : tuple
        What the compiled functions take: kind, shape, upper, and the addresses of g, g'
        and -g'' of a user's functions, or the bytes of a table of nodes.

    Attributes
    ----------
    upper : float
        Supremum of u; may be infinite.
    """

    core_spec: tuple[Any, ...]

    @property
    def upper(self):
        return self.core_spec[2]

    # -- values --------------------------------------------------------------------
    def _call(self, which, x):
        out = np.empty_like(x)
        _core.evaluate(self.core_spec, which, x, out, _threads(x))
        return out

    def value(self, u):
        """g(u), -inf outside the domain; `u` is a contiguous array (n,)."""
        return self._call(_VALUE, u)

    def slope(self, u):
        """g'(u)."""
        return self._call(_SLOPE, u)

    def curvature(self, u):
        """-g''(u) >= 0."""
        return self._call(_CURVATURE, u)

    def loss(self, x):
        """G(x) >= 0."""
        return self._call(_LOSS, x)

    def argmax(self, x):
        """The u at which G(x) is attained: G'(x)."""
        return self._call(_ARGMAX, x)

    def loss_derivatives(self, x):
        """G(x), G'(x) and G''(x) in one pass."""
        value, slope, curvature = np.empty_like(x), np.empty_like(x), np.empty_like(x)
        _core.evaluate_loss(self.core_spec, x, value, slope, curvature, _threads(x))
        return value, slope, curvature

    def fenchel_young(self, u, x):
        """G(x) - x u - g(u) >= 0."""
        out = np.empty_like(u)
        _core.evaluate_fenchel_young(self.core_spec, u, x, out, _threads(x))
        return out

    # -- properties ----------------------------------------------------------------
    def _at(self, which, u):
        return float(self._call(which, np.array([float(u)]))[0])

    @cached_property
    def slope_at_zero(self):
        """g'(0); infinite for entropies."""
        return self._at(_SLOPE, 0.0)

    @cached_property
    def finite_at_zero(self):
        """True if g'(0) is finite, so that multipliers may be exactly zero."""
        return math.isfinite(self.slope_at_zero)

    @cached_property
    def has_end(self):
        """True if the end of the domain is attained: g(upper) is finite."""
        finite = math.isfinite(self.upper)
        return finite and math.isfinite(self._at(_VALUE, self.upper))

    @cached_property
    def closed(self):
        """True if it is attained with a finite slope, as in a box."""
        return self.has_end and math.isfinite(self._at(_SLOPE, self.upper))

    @cached_property
    def finite_loss(self):
        """True if G is finite everywhere: the slope of g has no lower bound."""
        if math.isfinite(self.upper):
            return True
        # Slopes that fall as slowly as -log u still fall by hundreds here.
        return not self._at(_SLOPE, 1e300) > self._at(_SLOPE, 1e150) - 1.0

    @cached_property
    def smooth(self):
        """True if G has a continuous derivative: g is strictly concave."""
        top = self.upper if math.isfinite(self.upper) else 1e3
        return self.finite_loss and bool((self.curvature(_GRID * top) > 0).all())

    @cached_property
    def curved(self):
        """True if G is curved everywhere: neither flat nor linear in any range."""
        return self.smooth and not (self.finite_at_zero or self.closed)

    @cached_property
    def least_curvature(self):
        """Smallest -g''(u), looked for on a grid over the domain."""
        if math.isfinite(self.upper):
            return float(self.curvature(_GRID * self.upper).min())
        return float(self.curvature(np.append(_GRID, [1e3, 1e150])).min())

    @cached_property
    def linear(self):
        """True if g is linear, so that G is a hinge, or infinite beyond its corner."""
        if not self.finite_at_zero:
            return False
        u = _GRID * (self.upper if math.isfinite(self.upper) else 1e3)
        straight = self.slope_at_zero * u
        return bool((np.abs(self.value(u) - straight) <= 1e-13 * np.abs(u)).all())

    @cached_property
    def hard(self):
        """True if it is linear without an end: margins that must be met."""
        return self.linear and not self.finite_loss

    def start_inside(self, scale):
        """Least multipliers to start from where the slope at zero is infinite.

        Parameters
        ----------
        scale : ndarray (n,)
            weight * rate of every row.
        """
        top = self.upper if math.isfinite(self.upper) else 1.0
        return _LEAST * top * scale


def _threads(x):
    return effective_threads() if len(x) > _MANY else 1
