"""A margin prior on nodes: of samples, or of a density by quadrature."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from maxent._optimize.potential import Potential
from maxent._support import validation as v
from maxent._support.typing import ArrayLike
from maxent.discrimination.margins._density_nodes import density_nodes
from maxent.discrimination.margins.base import MarginPrior
from maxent.discrimination.margins.priors import FixedMargin


class QuadratureMargin(MarginPrior):
    """A margin prior on finitely many margins, made of a density or of samples.

    Made by :meth:`MarginPrior.from_density` and :meth:`MarginPrior.from_samples`; the
    parameters are what these found, and are here so that a model file can hold them.
    With nodes ``z`` and log masses ``m``, ``phi(lam) = level lam - log(S(u) / S(0))``
    where ``u = lam / rate`` and ``S(u) = sum_j exp(m_j + (u - v) z_j)``.

    Parameters
    ----------
    shortfalls : array-like (n,)
        ``z``, the nodes ``rate * (level - gamma)``, at least two different ones.
    log_masses : array-like (n,)
        ``m``, up to a constant.
    bounded : bool, default=False
        True if multipliers stay below `rate`. Then the masses are those of the prior
        times ``exp(z)``, and ``v = 1``; else ``v = 0``.
    top : float, default=inf
        The ``u`` from where on the nodes do not reach far enough: there the potential
        is continued, with its first two derivatives, by a multiple of ``log(1 - u)``
        and a line if `bounded`, else by a parabola. inf if they reach everywhere.
    rate : float, default=1.0
        Scale of the multipliers, > 0, in 1 / margin units.
    level : float, default=0.0
        The margin from which the shortfalls are counted.

    Examples
    --------
    >>> import math
    >>> from maxent.discrimination import QuadratureMargin
    >>> prior = QuadratureMargin([-1.0, 1.0], [0.0, 0.0], rate=2.0, level=1.0)
    >>> prior.prior_mean
    1.0
    >>> bool(abs(prior.potential(3.0) - (3.0 - math.log(math.cosh(1.5)))) < 1e-14)
    True
    """

    name = "quadrature"
    _kind = 9

    def __init__(
        self,
        shortfalls: ArrayLike,
        log_masses: ArrayLike,
        bounded: bool = False,
        top: float = math.inf,
        rate: float = 1.0,
        level: float = 0.0,
    ) -> None:
        super().__init__(rate, level)
        z, m = _nodes("shortfalls", shortfalls), _nodes("log_masses", log_masses)
        if z.shape != m.shape or z.size < 2 or not np.ptp(z) > 0:
            raise ValueError(
                f"shortfalls of shape {z.shape} and log_masses of shape {m.shape} must "
                "have one entry per node, and two different nodes at least; a prior in "
                "one point is FixedMargin."
            )
        order = np.argsort(z, kind="stable")
        self.shortfalls, self.log_masses = z[order], m[order]
        self.shortfalls.setflags(write=False)
        self.log_masses.setflags(write=False)
        self.bounded = v.check_bool("bounded", bounded)
        self.top = v.check_positive("top", top, allow_inf=True)
        if self.bounded and 1.0 <= self.top < math.inf:
            raise ValueError(
                f"top={top!r} must lie below 1 if bounded, or be infinite."
            )
        self._upper = 1.0 if self.bounded else math.inf
        self._table = self._tabulated()

    def _tabulated(self):
        """The bytes that the compiled functions read, see `nodes_at` there."""
        total, end = 0.0, [math.inf, 0.0, 0.0, 0.0]

        def table():
            head = [float(len(self.shortfalls)), total, *end]
            return np.concatenate([head, self.shortfalls, self.log_masses]).tobytes()

        def potential():
            return Potential((self._kind, 1.0, self._upper, table(), 0, 0))

        # the value at zero itself is zero by definition
        total = -float(potential().value(np.array([1e-300]))[0])
        if self.top < math.inf:
            g, at = potential(), np.array([self.top])
            end = [
                self.top,
                *(float(f(at)[0]) for f in (g.value, g.slope, g.curvature)),
            ]
        return table()

    @property
    def core_spec(self) -> tuple[Any, ...]:
        """Tuple understood by the compiled kernels."""
        return (self._kind, 1.0, self._upper, self._table, 0, 0)

    def unit_weight(self, C: float) -> float:
        # without an end the loss starts as C d**2 / 2, as that of the Gaussian prior
        return C / self.rate if self.bounded else C / self.rate**2

    def parameters(self) -> dict[str, Any]:
        return {
            "shortfalls": self.shortfalls,
            "log_masses": self.log_masses,
            "bounded": self.bounded,
            "top": self.top,
            **super().parameters(),
        }

    def _value(self):
        return self._table, self.bounded, self.rate, self.level

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QuadratureMargin) and self._value() == other._value()

    def __hash__(self) -> int:
        return hash((type(self), self._value()))

    def __repr__(self) -> str:
        return (
            f"<QuadratureMargin of {len(self.shortfalls)} nodes, rate={self.rate:g}, "
            f"level={self.level:g}>"
        )

    @classmethod
    def _of_samples(cls, samples, weights):
        gamma = v.as_doubles("samples", samples)
        if gamma.ndim != 1 or not gamma.size or not np.isfinite(gamma).all():
            raise ValueError(
                f"samples of shape {gamma.shape} must be a vector of finite margins, "
                "one at least."
            )
        v.check_range("samples", gamma)
        weights = v.check_weights(weights, gamma.size)
        values, group = np.unique(gamma, return_inverse=True)
        mass = np.bincount(group, weights=weights)
        mass = mass / mass.sum()
        values, mass = values[mass > 0], mass[mass > 0]
        if not np.ptp(values) > 0:
            return FixedMargin(float(values[0]))
        if not np.ptp(values) > 1e-150:
            raise ValueError(
                f"samples between {values[0]:g} and {values[-1]:g} are too close "
                "together for double precision; give them in smaller units."
            )
        return cls._around(values, np.log(mass), mass)

    @classmethod
    def _around(cls, gamma, logs, mass, top=math.inf, level=None):
        """Prior without an end, in units of its own deviation."""
        mean = float(mass @ gamma)
        if level is None:
            level = mean
        rate = 1.0 / math.sqrt(float(mass @ (gamma - mean) ** 2))
        return cls(rate * (level - gamma), logs, False, top / rate, rate, level)

    @classmethod
    def _of_density(cls, pdf, support, upper):
        if not callable(pdf):
            raise TypeError(
                f"pdf={v.shown(pdf)} must be a function of margins; the margins "
                "themselves are for from_samples."
            )
        a, b = _ends(support)
        if upper is not None:
            upper = v.check_positive("upper", upper, allow_inf=True)
        depths, logs, end, top, origin, known = density_nodes(pdf, (a, b), upper)
        if end == math.inf:
            mass = np.exp(logs - logs.max())
            mass /= mass.sum()
            level = origin if known else None
            return cls._around(origin - depths, logs, mass, top, level)
        level = origin
        if not known:
            mass = np.exp(logs - end * depths - (logs - end * depths).max())
            level = origin - float(mass @ depths / mass.sum())
        shortfalls = end * (depths + (level - origin))
        return cls(shortfalls, logs, True, top / end, end, level)


def _nodes(name, values):
    values = np.array(v.as_doubles(name, values))
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(f"{name} must be a vector of finite numbers.")
    return values


def _ends(support):
    try:
        a, b = (float(end) for end in support)
    except (TypeError, ValueError):
        a = b = math.nan
    if not a < b:
        raise ValueError(
            f"support={support!r} must be two numbers (a, b) with a < b; either may be "
            "infinite."
        )
    return a, b
