"""Base class of margin priors: a potential, its conjugate loss and its domain.

A margin prior P0(gamma) enters every maximum entropy discrimination solver through its
dual potential ``phi(lam) = -log E_P0 exp(-lam gamma)`` alone. The conjugate
``ell(m) = sup_lam phi(lam) - lam m`` is the loss that the machine minimises.

Source: Jaakkola, Meila & Jebara (1999), eq. (9)-(15), with the corrections listed on
the errata page of the documentation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from maxent._optimize.potential import Potential
from maxent._support import validation as v
from maxent._support.docs import InheritedDocs
from maxent._support.typing import ArrayLike, FloatArray, FloatArrayOrScalar

if TYPE_CHECKING:
    from maxent.discrimination.margins.priors import FixedMargin
    from maxent.discrimination.margins.quadrature import QuadratureMargin


class MarginPrior(InheritedDocs):
    """Base class of the margin priors.

    Every prior is a unit function g of the dimensionless multiplier
    ``u = lam / rate``: ``phi(lam) = level * lam + g(lam / rate)``. A sample weight w
    stands for w independent copies of a row: ``phi_w(lam) = w phi(lam / w)``.

    Parameters
    ----------
    rate : float, default=10.0
        The papers' c, > 0, in 1 / margin units.
    level : float, default=1.0
        The papers' l, in margin units.

    Attributes
    ----------
    rate : float
        The papers' c: how sharply the prior is concentrated, in 1 / margin units.
    level : float
        The papers' location l: the margin asked for, in margin units.
    name : str
        The name under which estimators know the prior.
    upper : float
        Supremum of the multiplier of a row of weight one; may be infinite.
    prior_mean : float
        Mean margin under the prior: rows beyond it cost nothing.
    core_spec : tuple
        What the compiled functions take.

    See Also
    --------
    CustomMargin : A prior of your own, from three functions.
    from_density : A prior of your own, from a density.
    from_samples : A prior of your own, from margins that were seen.
    """

    name: str = ""
    has_level: bool = True  # can it be moved by `with_level`?
    _kind = -1
    _upper: float = 1.0  # supremum of u

    def __init__(self, rate: float = 10.0, level: float = 1.0) -> None:
        self.rate = v.check_positive("rate", rate)
        self.level = v.check_number("level", level)

    # -- priors of distributions ---------------------------------------------------
    @staticmethod
    def from_density(
        pdf: Callable[[Any], Any],
        support: tuple[float, float],
        *,
        upper: float | None = None,
    ) -> QuadratureMargin:
        """Margin prior with a given density, by quadrature.

        Parameters
        ----------
        pdf : callable
            Density of the margin at arrays, or at one float; it need not integrate to
            one. Without noise: its tails are read.
        support : tuple of two floats
            Its ends (a, b); either may be infinite.
        upper : float, optional
            Rate c at which the left tail falls, ``exp(c gamma)`` times a power, or inf
            for tails that fall faster. None finds it from the logarithm of the density.

        Returns
        -------
        QuadratureMargin
            Its level is a if that is finite, else b, else the mean; its rate is c, or
            one over the standard deviation where multipliers have no end.

        Raises
        ------
        ValueError
            For a density that is negative, not finite, zero everywhere or too rough for
            its integrals to settle, whose left tail falls more slowly than an
            exponential (no multiplier has a finite potential), or whose right tail is
            without a finite mean and variance.

        See Also
        --------
        from_samples : If the density is known by draws from it.

        Notes
        -----
        Integrals are sums over Gauss-Legendre panels, halved until they agree at
        multipliers over the domain. What lies beyond the reach of doubles is cut:

        - An exponential left tail is followed until it is smaller than 1e-295 of the
          peak. Beyond, its logarithm continues as ``A - c d + k log d + e/d + f/d**2``
          in the depth d, fitted to the tail from 1e-130 of the peak on; the potential
          falls to minus infinity at c, or ends there if ``k <= -1``.
        - A tail that falls faster (Gaussian) ends at 1e-295 of the peak. Multipliers
          at which the missing rest counts see a parabola in place of the potential,
          which is exact for Gaussian densities only (there from 26 / deviation on).
        - Left of a finite end a the loss is infinite. From multipliers of about
          1e9 / (b - a) on, the end is the first node, 1e-12 of the width inside.
        - Peaks may be overlooked that are narrower than 1e-4 of the range where the
          density is above 1e-295 of its peak.

        Examples
        --------
        >>> import math
        >>> from maxent.discrimination import ExponentialMargin, MarginPrior
        >>> prior = MarginPrior.from_density(lambda g: math.exp(5 * g), (-math.inf, 1))
        >>> bool(abs(prior.upper - 5.0) < 1e-9)
        True
        >>> bool(abs(prior.loss(0.2) - ExponentialMargin(5.0).loss(0.2)) < 1e-10)
        True
        """
        from maxent.discrimination.margins.quadrature import QuadratureMargin

        return QuadratureMargin._of_density(pdf, support, upper)

    @staticmethod
    def from_samples(
        samples: ArrayLike, weights: ArrayLike | None = None
    ) -> QuadratureMargin | FixedMargin:
        """Margin prior with the empirical distribution of margins.

        Parameters
        ----------
        samples : array-like (n,)
            Margins.
        weights : array-like (n,), optional
            Weights of the samples, at least zero; they need not sum to one.

        Returns
        -------
        QuadratureMargin or FixedMargin
            With ``phi(lam) = -log sum_j w_j exp(-lam g_j)`` for all multipliers; its
            level is the mean and its rate one over the standard deviation of the
            samples. A :class:`FixedMargin` if they are all equal.

        Raises
        ------
        ValueError
            For samples that are no vector of finite numbers.

        See Also
        --------
        from_density : For priors without a least margin.

        Notes
        -----
        Margins below the least sample are impossible under this prior: there the loss
        is infinite, as that of :class:`FixedMargin` is below its level. A fit looks
        at every different sample for every row, many times: some thousand samples take
        seconds, and more of them are for :meth:`from_density`, by a smooth estimate.

        Examples
        --------
        >>> from maxent.discrimination import MarginPrior
        >>> prior = MarginPrior.from_samples([-1.0, 0.5, 1.0, 1.5])
        >>> prior.prior_mean
        0.5
        >>> prior.loss([-2.0, -1.0, 0.5]).round(4)
        array([   inf, 1.3863, 0.    ])
        """
        from maxent.discrimination.margins.quadrature import QuadratureMargin

        return QuadratureMargin._of_samples(samples, weights)

    # -- description ---------------------------------------------------------------
    @property
    def _shape(self) -> float:
        return 1.0

    @cached_property
    def unit_potential(self) -> Potential:
        """Unit function g with its conjugate and its properties, for the solvers."""
        return Potential(self.core_spec)

    @property
    def core_spec(self) -> tuple[Any, ...]:
        """Tuple understood by the compiled kernels."""
        return (self._kind, self._shape, self._upper, 0, 0, 0)

    @property
    def upper(self) -> float:
        """Supremum of the multipliers for a row of weight one (may be infinite)."""
        return self._upper * self.rate

    @property
    def prior_mean(self) -> float:
        """Mean margin under the prior, phi'(0): where the loss starts."""
        return self.level + self.unit_potential.slope_at_zero / self.rate

    def unit_weight(self, C: float) -> float:
        """Row weight for which `C` has the meaning it has in the estimators.

        It is the slope of the loss far below the margin (for the Gaussian prior the
        factor of ``d**2 / 2``).

        Parameters
        ----------
        C : float
            The estimators' C, > 0.

        Returns
        -------
        float
            The weight that every row carries: ``C / rate`` for most priors.
        """
        return C / self.rate

    def parameters(self) -> dict[str, Any]:
        """Constructor arguments as a dict.

        Returns
        -------
        dict
            Names and values.
        """
        return {"rate": self.rate, "level": self.level}

    def with_level(self, level: float) -> Self:
        """Same prior, moved to another level.

        Parameters
        ----------
        level : float
            In margin units.

        Returns
        -------
        MarginPrior
            A new object; this one is left as it is.

        Raises
        ------
        ValueError
            For a :class:`CustomMargin`, whose level is inside its functions.
        """
        return type(self)(**{**self.parameters(), "level": level})

    def get_spec(self) -> dict[str, Any]:
        """JSON-able description, read back by :func:`margin_from_spec`.

        Returns
        -------
        dict
            The key "name" and the constructor arguments.

        Raises
        ------
        ValueError
            For a :class:`CustomMargin`: compiled functions cannot be stored.
        """
        return {"name": self.name, **self.parameters()}

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Self:
        """Prior described by a dict of constructor arguments.

        Parameters
        ----------
        spec : dict
            As :meth:`get_spec` returns it.

        Returns
        -------
        MarginPrior
            Of this class.
        """
        return cls(**{key: value for key, value in spec.items() if key != "name"})

    def __repr__(self) -> str:
        inside = ", ".join(
            f"{key}={value!r}" for key, value in self.parameters().items()
        )
        return f"{type(self).__name__}({inside})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MarginPrior) or type(self) is not type(other):
            return False
        return self.parameters() == other.parameters()

    def __hash__(self) -> int:
        return hash((type(self), tuple(self.parameters().items())))

    # -- values --------------------------------------------------------------------
    def density(self, gamma: ArrayLike) -> FloatArray | None:
        """Density of the prior at margins.

        Parameters
        ----------
        gamma : array-like
            Margins.

        Returns
        -------
        ndarray, or None
            None for priors without a density that is known, such as the hinge.
        """
        below = np.asarray(self.level - v.as_doubles("gamma", gamma))
        values = self._density_below(below)
        return None if values is None else np.asarray(values, dtype=np.float64)

    def _density_below(self, u: FloatArray) -> Any:
        """Density at distances below the level; None where it is not known."""
        return None

    @staticmethod
    def _shaped(function, x):
        """Values of a function of contiguous arrays at an array of any shape."""
        x = np.asarray(x, dtype=np.float64)
        return function(np.ascontiguousarray(x).reshape(-1)).reshape(x.shape)[()]

    def potential(self, lam: ArrayLike) -> FloatArrayOrScalar:
        """Dual potential phi(lam) = -log E exp(-lam gamma).

        Parameters
        ----------
        lam : array-like
            Multipliers, in 1 / margin units.

        Returns
        -------
        ndarray or float
            Of the shape of `lam`; -inf outside the domain.
        """
        lam = v.as_doubles("lam", lam)
        g = self._shaped(self.unit_potential.value, lam / self.rate)
        # outside the domain level * lam may be infinite too, and inf - inf is NaN
        return self.level * np.where(np.isneginf(g), 0.0, lam) + g

    def mean(self, lam: ArrayLike) -> FloatArrayOrScalar:
        """Mean margin under the tilted prior, phi'(lam).

        Parameters
        ----------
        lam : array-like
            Multipliers inside the domain.

        Returns
        -------
        ndarray or float
            In margin units, of the shape of `lam`.
        """
        lam = v.as_doubles("lam", lam)
        return (
            self.level
            + self._shaped(self.unit_potential.slope, lam / self.rate) / self.rate
        )

    def curvature(self, lam: ArrayLike) -> FloatArrayOrScalar:
        """Variance of the margin under the tilted prior, -phi''(lam).

        Parameters
        ----------
        lam : array-like
            Multipliers inside the domain.

        Returns
        -------
        ndarray or float
            At least zero, in squared margin units, of the shape of `lam`.
        """
        lam = v.as_doubles("lam", lam)
        return (
            self._shaped(self.unit_potential.curvature, lam / self.rate) / self.rate**2
        )

    def loss(self, m: ArrayLike) -> FloatArrayOrScalar:
        """Loss ell(m) = sup over lam of phi(lam) - lam m.

        Parameters
        ----------
        m : array-like
            Signed margins ``y f(x)``.

        Returns
        -------
        ndarray or float
            Convex in m, decreasing and at least zero; of the shape of `m`.
        """
        return self._shaped(self.unit_potential.loss, self._shortfall(m))

    def loss_slope(self, m: ArrayLike) -> FloatArrayOrScalar:
        """Derivative ell'(m) of the loss, minus the multiplier that belongs to m.

        Parameters
        ----------
        m : array-like
            Signed margins.

        Returns
        -------
        ndarray or float
            At most zero, of the shape of `m`.
        """
        return -self.rate * self._shaped(self.unit_potential.argmax, self._shortfall(m))

    def fenchel_young(self, lam: ArrayLike, m: ArrayLike) -> FloatArrayOrScalar:
        """Share of a row in the duality gap, ell(m) + lam m - phi(lam).

        Parameters
        ----------
        lam : array-like
            Multipliers.
        m : array-like
            Signed margins; broadcast against `lam`.

        Returns
        -------
        ndarray or float
            At least zero, and zero exactly when ``lam = -ell'(m)``.
        """
        lam, x = np.broadcast_arrays(v.as_doubles("lam", lam), self._shortfall(m))
        u = np.ascontiguousarray(lam / self.rate).reshape(-1)
        out = self.unit_potential.fenchel_young(u, np.ascontiguousarray(x).reshape(-1))
        return out.reshape(x.shape)[()]

    def _shortfall(self, m):
        return self.rate * (self.level - v.as_doubles("m", m))


def check_is_margin(prior):
    """Refuse what is no margin prior."""
    if not isinstance(prior, MarginPrior):
        raise TypeError(
            f"margin={v.shown(prior)} must be a margin prior object, such as "
            "ExponentialMargin(10.0)."
        )


def check_positive_mean(prior, remedy="its level or its rate"):
    """Refuse what is no margin prior, or one whose mean margin is not positive.

    Otherwise zero multipliers satisfy every constraint. `remedy` names the parameters
    to raise where they are not those of the prior.
    """
    check_is_margin(prior)
    if not prior.prior_mean > 0:
        raise ValueError(
            f"{prior!r} has mean margin {prior.prior_mean:g}, which is not positive: "
            f"every multiplier would be zero. Raise {remedy} "
            "(the exponential prior needs rate * level > 1)."
        )
