"""Penalties of the dual: conjugates U* of convex costs U of unmet moments.

The penalised problem is

    min_lam  log Phi - lam . eta + U*(lam),

whose dual asks for the largest regularised entropy H(p) - U(eps), where
eps = E f - eta is what is left unmet. At the optimum eps is in -dU*(lam).

Source: Wang, Schuurmans & Zhao (2012), section 8.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._support import validation as v

_WEIGHTS = 1e-200, 1e200  # of penalties that are neither infinite nor none


@runtime_checkable
class ConvexPenalty(Protocol):
    """A convex U, given by its conjugate and the gradient of that."""

    def conjugate(self, lam: NDArray[np.float64]) -> float:
        """U*(lam), convex and differentiable."""

    def conjugate_gradient(self, lam: NDArray[np.float64]) -> NDArray[np.float64]:
        """Gradient of U*, of the shape of lam."""


class L2:
    """U* = sum lam_i^2 / (2 s2_i); an infinite s2 leaves a weight free."""

    smooth = True
    remedy = "sigma2 < inf"

    def __init__(self, sigma2: ArrayLike, n: int):
        self.weight = 1.0 / positive_vector("sigma2", sigma2, n, allow_inf=True)
        self.width = np.zeros(n)

    @classmethod
    def of_weight(cls, weight: ArrayLike) -> L2:
        """The penalty of 1 / s2, (n,)."""
        with np.errstate(divide="ignore"):
            s2 = 1.0 / np.asarray(weight, dtype=np.float64)
        return cls(s2, len(s2))

    def in_units(self, unit: NDArray[np.float64]) -> L2:
        """The same penalty of weights that are `unit` times as large."""
        weight = self.weight / unit / unit
        # a penalty beyond the range of doubles stays one
        weight = np.where(self.weight > 0, np.clip(weight, *_WEIGHTS), 0.0)
        return L2.of_weight(weight)

    @property
    def endless(self) -> NDArray[np.bool_]:
        """Weights that nothing keeps from growing where the likelihood rises."""
        return self.hard

    @property
    def hard(self) -> NDArray[np.bool_]:
        """Which moments must be met within `width`."""
        return self.weight == 0.0

    def value(self, lam):
        return 0.5 * np.sum(self.weight * lam * lam, axis=-1)

    def gradient(self, lam):
        return self.weight * lam

    def curvature(self, lam, x):
        """Hessian of U* times x."""
        return self.weight * x

    def hessian(self, lam):
        """Hessian of U* (n, n) at lam (n,)."""
        return np.diag(self.weight)

    def cost(self, lam):
        """U at the unmet moments that belong to lam."""
        return self.value(lam)

    def residual(self, lam, excess):
        """How far lam is from stationary, given E f - eta."""
        return excess + self.gradient(lam)


class Box:
    """U* = sum w_i |lam_i|: moments are met within w_i."""

    smooth = False
    weight = None
    remedy = "a larger width or penalty='l2' with sigma2 < inf"

    def __init__(self, width: ArrayLike, n: int):
        self.width = positive_vector("width", width, n, zero=True)
        self.hard = np.ones(n, dtype=bool)

    def in_units(self, unit: NDArray[np.float64]) -> Box:
        """The same penalty of weights that are `unit` times as large."""
        with np.errstate(over="ignore"):
            return Box(np.minimum(self.width / unit, _WEIGHTS[1]), len(unit))

    @property
    def endless(self) -> NDArray[np.bool_]:
        """Weights that nothing keeps from growing where the likelihood rises."""
        return self.width == 0.0

    def value(self, lam):
        return np.sum(self.width * np.abs(lam), axis=-1)

    def cost(self, lam):
        return np.zeros(np.shape(lam)[:-1])[()]

    def hessian(self, lam):
        """Zero, but at its corner."""
        return np.zeros((len(lam), len(lam)))

    def residual(self, lam, excess):
        """Element of excess + the subgradient of U* that is nearest to 0."""
        inside = np.sign(excess) * np.maximum(np.abs(excess) - self.width, 0.0)
        return np.where(lam == 0.0, inside, excess + self.width * np.sign(lam))


class Convex:
    """U* of the caller's, of one lam (n,) at a time, whose weights are lam / unit."""

    smooth = True
    weight = None
    remedy = "a penalty whose cost U is finite there"

    def __init__(self, penalty: ConvexPenalty, unit: NDArray[np.float64]):
        n = len(unit)
        self.penalty, self.unit = penalty, unit
        self.hard = np.zeros(n, dtype=bool)  # nothing is known of U
        self.endless = self.hard
        self.width = np.zeros(n)

    def in_units(self, unit: NDArray[np.float64]) -> Convex:
        """The same penalty of weights that are `unit` times as large."""
        return Convex(self.penalty, self.unit * unit)

    def value(self, lam):
        if lam.ndim > 1:
            return np.array([self.value(x) for x in lam])
        return float(self.penalty.conjugate(lam / self.unit))

    def gradient(self, lam):
        if lam.ndim > 1:
            return np.array([self.gradient(x) for x in lam])
        slope = self.penalty.conjugate_gradient(lam / self.unit)
        return np.asarray(slope, dtype=np.float64) / self.unit

    def curvature(self, lam, x):
        """Hessian of U* times x, by central differences of its gradient."""
        h = 1e-5 * (1.0 + np.abs(lam).max()) / max(np.abs(x).max(), 1e-300)
        return (self.gradient(lam + h * x) - self.gradient(lam - h * x)) / (2.0 * h)

    def hessian(self, lam):
        H = np.column_stack([self.curvature(lam, e) for e in np.eye(len(lam))])
        return 0.5 * (H + H.T)

    def cost(self, lam):
        return np.sum(lam * self.gradient(lam), axis=-1) - self.value(lam)

    def residual(self, lam, excess):
        return excess + self.gradient(lam)


Penalty: TypeAlias = L2 | Box | Convex


def make_penalty(
    penalty: Any, sigma2: ArrayLike, width: ArrayLike | None, n: int
) -> Penalty:
    """The penalty that the arguments of `fit_maxent` describe."""
    if isinstance(penalty, str):
        v.check_choice("penalty", penalty, ("l2", "box"))
        if penalty == "box":
            _refuse_sigma2(sigma2, "penalty='box'")
            if width is None:
                raise ValueError("penalty='box' needs width, how far moments may be.")
            return Box(width, n)
        if width is not None:
            raise ValueError(
                f"width={v.shown(width)} has no meaning with penalty='l2'; use sigma2."
            )
        return L2(sigma2, n)
    if not isinstance(penalty, ConvexPenalty):
        raise TypeError(
            f"penalty={v.shown(penalty)} must be 'l2', 'box', or an object with the "
            "methods conjugate(lam) and conjugate_gradient(lam)."
        )
    _refuse_sigma2(sigma2, "a ConvexPenalty")
    if width is not None:
        raise ValueError(
            f"width={v.shown(width)} has no meaning with a ConvexPenalty; leave it out."
        )
    return Convex(penalty, np.ones(n))


def _refuse_sigma2(sigma2, penalty):
    if not np.isposinf(v.as_doubles("sigma2", sigma2)).all():
        raise ValueError(
            f"sigma2={v.shown(sigma2)} has no meaning with {penalty}; leave it out, or "
            "use penalty='l2'."
        )


def positive_vector(
    name: str, value: ArrayLike, n: int, *, allow_inf: bool = False, zero: bool = False
) -> NDArray[np.float64]:
    """Vector (n,) of a number or n numbers > 0 (>= 0 with `zero`)."""
    array = v.as_doubles(name, value)
    if array.ndim > 1 or (array.ndim == 1 and array.shape != (n,)):
        raise ValueError(
            f"{name} has shape {array.shape}; expected a number or ({n},)."
        )
    array = np.broadcast_to(array, (n,))
    wrong = ~(array >= 0 if zero else array > 0)
    if not allow_inf:
        wrong |= np.isinf(array)
    if wrong.any():
        bad = array[np.flatnonzero(wrong)[0]]
        kind = "finite and " if not allow_inf else ""
        raise ValueError(f"{name}={bad} must be {kind}{'>= 0' if zero else '> 0'}.")
    return array.copy()
