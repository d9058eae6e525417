"""A margin prior made of the user's own functions, compiled by Numba."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from maxent._support import validation as v
from maxent._support.compiling import imported
from maxent.discrimination.margins.base import MarginPrior
from maxent.discrimination.margins.priors import FixedMargin, HingeMargin


class CustomMargin(MarginPrior):
    """A margin prior of your own, given as Numba-compiled functions.

    Parameters
    ----------
    potential, mean, curvature : callable float -> float
        ``phi(lam)``, ``phi'(lam)`` and ``-phi''(lam)`` for ``0 <= lam < upper``.
        Plain Python functions or functions compiled by ``numba.njit``; they are
        compiled to C callbacks here. ``phi`` must be concave with ``phi(0) = 0``.
    upper : float, default=inf
        Supremum of the multipliers.

    Notes
    -----
    The conjugate loss is found by Newton's method on ``phi'(lam) = m``. The functions
    are checked on a grid: for concavity, and for derivatives that agree. Other
    processes (``n_jobs``) get the functions as they were given, and compile them again.

    Examples
    --------
    >>> import math
    >>> from maxent.discrimination import CustomMargin, ExponentialMargin
    >>> mine = CustomMargin(
    ...     lambda lam: lam + math.log1p(-lam / 5.0),
    ...     lambda lam: 1.0 - 1.0 / (5.0 - lam),
    ...     lambda lam: 1.0 / (5.0 - lam) ** 2,
    ...     upper=5.0,
    ... )
    >>> bool(abs(mine.loss(0.2) - ExponentialMargin(5.0).loss(0.2)) < 1e-12)
    True
    """

    name = "custom"
    has_level = False
    _kind = 8

    def __init__(
        self,
        potential: Callable[[float], float],
        mean: Callable[[float], float],
        curvature: Callable[[float], float],
        upper: float = math.inf,
    ) -> None:
        super().__init__(1.0, 0.0)
        self._upper = v.check_positive("upper", upper, allow_inf=True)
        self._given = potential, mean, curvature, self._upper
        self._functions = tuple(
            _compile_scalar(f, name)
            for f, name in (
                (potential, "potential"),
                (mean, "mean"),
                (curvature, "curvature"),
            )
        )
        self._check()
        if self._is_linear():
            self._become_linear()

    def __reduce__(self) -> tuple[Any, ...]:
        # addresses of compiled functions mean nothing in another process
        return CustomMargin, self._given

    def __deepcopy__(self, memo: dict[int, Any]) -> CustomMargin:
        return self  # a value; a copy would be compiled again

    @property
    def core_spec(self) -> tuple[Any, ...]:
        """Tuple understood by the compiled kernels."""
        if self._kind != CustomMargin._kind:
            return super().core_spec
        return (self._kind, 1.0, self._upper, *(f.address for f in self._functions))

    def _is_linear(self):
        lam, slope = self._grid(), float(self.mean(0.0))
        if not math.isfinite(slope):
            return False
        straight = slope * lam
        near = np.abs(self.potential(lam) - straight) <= 1e-14 * np.abs(straight)
        return bool(near.all() and not self.curvature(lam).any())

    def _become_linear(self):
        """A linear potential is a hinge or a fixed margin at the level phi'(0).

        Their unit function is zero, which the compiled functions know in closed form.
        """
        level, bounded = float(self.mean(0.0)), math.isfinite(self._upper)
        self._kind = HingeMargin._kind if bounded else FixedMargin._kind
        self.level = level
        if bounded:
            self.rate, self._upper = self._upper, 1.0
        del self.unit_potential  # computed by the checks

    def unit_weight(self, C: float) -> float:
        # multipliers stay below C
        return C / self.upper if math.isfinite(self.upper) else C

    def parameters(self) -> dict[str, Any]:
        return {"functions": self._functions, "upper": self.upper}

    def with_level(self, level: float) -> NoReturn:
        raise ValueError("a CustomMargin has its level inside its functions.")

    def get_spec(self) -> NoReturn:
        raise ValueError(
            "a CustomMargin holds compiled functions, which a model file cannot "
            "carry; use one of the named margin priors to save a model."
        )

    def _grid(self):
        """Multipliers at which the functions are looked at."""
        top = self._upper if math.isfinite(self._upper) else 10.0
        return top * np.array([0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95])

    def _check(self):
        lam = self._grid()
        top = lam[-1] / 0.95
        phi, slope, curv = self.potential(lam), self.mean(lam), self.curvature(lam)
        if not (np.isfinite(phi).all() and np.isfinite(slope[1:]).all()):
            raise ValueError(
                "potential and mean must be finite inside the domain; found "
                f"phi={phi} and phi'={slope} at lam={lam}."
            )
        if abs(phi[0]) > 1e-12:
            raise ValueError(f"potential(0)={phi[0]!r} must be 0.")
        if (curv[1:] < 0).any():
            raise ValueError(
                f"curvature must be -phi'' >= 0; found {curv.min()!r}. Did you return "
                "phi'' instead?"
            )
        h = 1e-5 * top
        mid = lam[1:-1]
        for name, claimed, found in (
            ("mean", slope[1:-1], (self.potential(mid + h) - self.potential(mid - h))),
            ("curvature", curv[1:-1], -(self.mean(mid + h) - self.mean(mid - h))),
        ):
            found = found / (2 * h)
            bad = np.abs(claimed - found) > 1e-4 * (1 + np.abs(found))
            if bad.any():
                k = int(np.argmax(bad))
                raise ValueError(
                    f"{name}({mid[k]:g}) returned {claimed[k]:g} but differences of "
                    f"the function below it give {found[k]:g}; check its formula."
                )


def _compile_scalar(function, name):
    if not callable(function):
        raise TypeError(f"{name} must be a function of one float; got {function!r}.")
    numba: Any = imported("numba", "CustomMargin, unlike the named margin priors,")
    plain = getattr(function, "py_func", function)
    # a pole at the end of the domain is an infinity, not an exception
    return numba.cfunc("float64(float64)", nopython=True, error_model="numpy")(plain)
