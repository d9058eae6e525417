"""The built-in margin priors.

Source: Jaakkola, Meila & Jebara (1999), eq. (9)-(15), and Jebara & Jaakkola (2000),
with the corrections listed on the errata page of the documentation.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from maxent._support import validation as v
from maxent._support.typing import FloatArray
from maxent.discrimination.margins.base import MarginPrior


class ExponentialMargin(MarginPrior):
    """One-sided exponential prior, ``level - gamma ~ Exp(rate)``: a smooth hinge.

    ``phi(lam) = level lam + log(1 - lam / rate)`` on ``[0, rate)``; the loss is
    ``psi(x) = x - 1 - log x`` of the scaled shortfall ``x = rate (level - m)`` where
    ``x > 1`` and zero elsewhere (JMJ 1999, eq. 9 and 15a).

    Parameters
    ----------
    rate : float, default=10.0
        The papers' c, > 0, in 1 / margin units.
    level : float, default=1.0
        The papers' l, in margin units.

    Examples
    --------
    >>> from maxent.discrimination import ExponentialMargin
    >>> prior = ExponentialMargin(rate=5.0)
    >>> round(float(prior.potential(4.0)), 4)
    2.3906
    >>> prior.prior_mean
    0.8
    """

    name = "exponential"
    _kind = 0

    def _density_below(self, u: FloatArray) -> Any:
        c = self.rate
        return np.where(u >= 0, c * np.exp(-c * np.maximum(u, 0)), 0.0)


class ErlangMargin(MarginPrior):
    """Erlang prior, ``level - gamma ~ Gamma(shape, rate)``.

    ``phi(lam) = level lam + shape log(1 - lam / rate)``. Shape 2 is what JMJ (1999)
    print as the Laplace potential (15b).

    Parameters
    ----------
    shape : float, default=2
        Shape of the gamma distribution, > 0.
    rate, level : float
        As for :class:`ExponentialMargin`.

    Examples
    --------
    >>> from maxent.discrimination import ErlangMargin
    >>> ErlangMargin(shape=2, rate=10.0).prior_mean
    0.8
    """

    name = "erlang"
    _kind = 1

    def __init__(
        self, shape: float = 2, rate: float = 10.0, level: float = 1.0
    ) -> None:
        self.shape = v.check_positive("shape", shape)
        super().__init__(rate, level)

    @property
    def _shape(self) -> float:
        return self.shape

    def parameters(self) -> dict[str, Any]:
        return {"shape": self.shape, **super().parameters()}

    def _density_below(self, u: FloatArray) -> Any:
        from scipy.stats import gamma

        return gamma.pdf(u, self.shape, scale=1 / self.rate)


class LaplaceMargin(MarginPrior):
    """Two-sided exponential prior around the level: a one-sided pseudo-Huber loss.

    ``phi(lam) = level lam + log(1 - (lam / rate)**2)`` on ``[0, rate)``; the
    potential printed as (15b) in JMJ (1999) is that of :class:`ErlangMargin`.

    Parameters
    ----------
    rate, level : float
        As for :class:`ExponentialMargin`.

    Examples
    --------
    >>> from maxent.discrimination import LaplaceMargin
    >>> round(float(LaplaceMargin(rate=5.0).potential(4.0)), 4)
    2.9783
    """

    name = "laplace"
    _kind = 2

    def _density_below(self, u: FloatArray) -> Any:
        return 0.5 * self.rate * np.exp(-self.rate * np.abs(u))


class GaussianMargin(MarginPrior):
    """Gaussian prior N(level, 1 / rate**2): the squared hinge.

    ``phi(lam) = level lam - lam**2 / (2 rate**2)`` on ``[0, inf)``; (15c) in JMJ
    (1999) lacks the factor 1/2.

    Parameters
    ----------
    rate, level : float
        As for :class:`ExponentialMargin`.

    Examples
    --------
    >>> from maxent.discrimination import GaussianMargin
    >>> GaussianMargin(rate=2.0).loss([-1.0, 0.0, 1.0])
    array([8., 2., 0.])
    """

    name = "gaussian"
    _kind = 3
    _upper = math.inf

    def unit_weight(self, C: float) -> float:
        # the loss becomes C d**2 / 2
        return C / self.rate**2

    def _density_below(self, u: FloatArray) -> Any:
        c = self.rate
        return c / math.sqrt(2 * math.pi) * np.exp(-0.5 * (c * u) ** 2)


class LogisticMargin(MarginPrior):
    """Prior whose loss is logistic, ``log(1 + exp(rate (level - m)))``.

    ``phi(lam) = level lam + H(lam / rate)`` with the binary entropy H. With level 0
    the machine is kernel logistic regression, and ``predict_proba`` is defined.

    Parameters
    ----------
    rate : float, default=1.0
        How steep the loss is, > 0, in 1 / margin units.
    level : float, default=0.0
        The margin at which the loss is log 2.

    Examples
    --------
    >>> from maxent.discrimination import LogisticMargin
    >>> round(float(LogisticMargin().loss(0.0)), 4)
    0.6931
    """

    name = "logistic"
    _kind = 4

    def __init__(self, rate: float = 1.0, level: float = 0.0) -> None:
        super().__init__(rate, level)

    def _density_below(self, u: FloatArray) -> Any:
        """No closed form, but the inverse of the characteristic function.

        That is ``exp(z log z + (1 - z) log(1 - z))`` at ``z = i omega``, which falls
        like ``omega exp(-pi omega)``; panels shrink towards its logarithm at zero.
        """
        nodes, weights = np.polynomial.legendre.leggauss(24)
        ends = 2.0 ** np.arange(-24.0, 0.0), np.arange(1.0, 15.0)
        edges = np.concatenate([[0.0], *ends])
        half = 0.5 * np.diff(edges)[:, None]
        z = 1j * (edges[:-1, None] + half * (nodes + 1)).ravel()
        transform = np.exp(z * np.log(z) + (1 - z) * np.log(1 - z))
        transform *= (half * weights).ravel()
        waves = np.exp(np.multiply.outer(-self.rate * u, z))
        return self.rate * np.real(waves @ transform) / math.pi


class FixedMargin(MarginPrior):
    """The margin is exactly the level: hard margins, no violation allowed.

    ``phi(lam) = level lam`` on ``[0, inf)``. On data that cannot be separated the
    dual is unbounded, which solvers report as an error.

    Parameters
    ----------
    level : float, default=1.0
        The margin, > 0.

    Examples
    --------
    >>> from maxent.discrimination import FixedMargin
    >>> FixedMargin().loss([0.5, 1.0])
    array([inf,  0.])
    """

    name = "fixed"
    _kind = 5
    _upper = math.inf

    def __init__(self, level: float = 1.0) -> None:
        super().__init__(1.0, level)

    def unit_weight(self, C: float) -> float:
        # hard margins have no trade-off
        return 1.0

    def parameters(self) -> dict[str, Any]:
        return {"level": self.level}


class HingeMargin(MarginPrior):
    """The hinge loss of the classical support vector machine, for comparison.

    ``phi(lam) = level lam`` on ``[0, weight]``; loss ``weight max(level - m, 0)``.
    Not a prior over margins: the limit of :class:`ExponentialMargin` as its
    sharpness grows.

    Parameters
    ----------
    level : float, default=1.0
        The margin below which the loss is linear.

    Examples
    --------
    >>> from maxent.discrimination import HingeMargin
    >>> HingeMargin().loss([-1.0, 0.5, 2.0])
    array([2. , 0.5, 0. ])
    """

    name = "hinge"
    _kind = 6

    def __init__(self, level: float = 1.0) -> None:
        super().__init__(1.0, level)

    def unit_weight(self, C: float) -> float:
        return C

    def parameters(self) -> dict[str, Any]:
        return {"level": self.level}


class UniformExponentialMargin(MarginPrior):
    """Tolerance prior of MED regression: flat on a tube, exponential beyond it.

    The tolerance ``tau = level - gamma`` is uniform on ``[0, width]`` with an
    exponential tail of the given rate above (Jebara & Jaakkola 2000). The published
    potential lacks the constant ``log(width + 1 / rate)``.

    Parameters
    ----------
    width : float, default=0.1
        Half width of the flat part, > 0, in margin (target) units.
    rate : float, default=10.0
        Rate of the tail, > 0, in 1 / margin units.
    level : float, default=0.0
        The level from which the tolerance is counted downwards.

    Examples
    --------
    >>> from maxent.discrimination import UniformExponentialMargin
    >>> round(UniformExponentialMargin(width=0.1, rate=10.0).prior_mean, 12)
    -0.125
    """

    name = "uniform_exponential"
    _kind = 7

    def __init__(
        self, width: float = 0.1, rate: float = 10.0, level: float = 0.0
    ) -> None:
        self.width = v.check_positive("width", width)
        super().__init__(rate, level)

    @property
    def _shape(self) -> float:
        return self.width * self.rate

    def parameters(self) -> dict[str, Any]:
        return {"width": self.width, **super().parameters()}

    def _density_below(self, u: FloatArray) -> Any:
        tail = np.exp(-self.rate * np.maximum(u - self.width, 0.0))
        return np.where(u >= 0, tail, 0.0) / (self.width + 1 / self.rate)


MARGINS: dict[str, type[MarginPrior]] = {
    cls.name: cls
    for cls in (
        ExponentialMargin,
        ErlangMargin,
        LaplaceMargin,
        GaussianMargin,
        LogisticMargin,
        FixedMargin,
        HingeMargin,
        UniformExponentialMargin,
    )
}


def margin_from_spec(spec: dict[str, Any]) -> MarginPrior:
    """Margin prior from the dict that ``get_spec`` returned.

    Parameters
    ----------
    spec : dict
        The key "name" and constructor arguments.

    Returns
    -------
    MarginPrior
        An equal prior.

    Raises
    ------
    ValueError
        If the name is not known.

    Examples
    --------
    >>> from maxent.discrimination import LaplaceMargin, margin_from_spec
    >>> margin_from_spec(LaplaceMargin(rate=5.0).get_spec())
    LaplaceMargin(rate=5.0, level=1.0)
    """
    from maxent.discrimination.margins.quadrature import QuadratureMargin

    known: dict[str, type[MarginPrior]] = {**MARGINS, "quadrature": QuadratureMargin}
    try:
        cls = known[spec["name"]]
    except (KeyError, TypeError):
        raise ValueError(
            f"{spec!r} does not describe a margin prior; known names: {sorted(known)}."
        ) from None
    return cls.from_spec(spec)
