"""Directions: von Mises-Fisher distributions on the unit sphere."""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy.special import gammaln

from maxent._support.typing import ArrayLike, FloatArray
from maxent.families import _checks
from maxent.families._bessel import log_bessel
from maxent.families._charts import CONCENTRATION
from maxent.families._matching import log_root
from maxent.families._pairs import mirrored, squared_distances
from maxent.families.base import ExponentialFamily


class VonMisesFisher(ExponentialFamily):
    """Von Mises-Fisher distributions of unit vectors in d dimensions.

    Parameters
    ----------
    mean_direction : array-like (batch, d)
        Unit vectors within 1e-6, d >= 2; they are not normalised for you.
    concentration : array-like (batch,)
        Concentrations kappa, >= 0; zero is the uniform distribution.

    See Also
    --------
    SphericalGaussian : Vectors of any length.

    Notes
    -----
    Densities are with respect to the area of the sphere. Statistic: x (k = d). All
    affinities exist. For d = 2 this is the von Mises distribution of an angle. Rows
    must have length one within 1e-6. Any dimension and concentration is possible:
    cumulants come from expansions that neither overflow nor underflow. Shapes, batches
    and methods are those of `ExponentialFamily`.

    References
    ----------
    Banerjee, Dhillon, Ghosh & Sra (2005), Clustering on the unit hypersphere using von
    Mises-Fisher distributions. Wood (1994), Simulation of the von Mises Fisher
    distribution (sampling).

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.families import VonMisesFisher
    >>> P = VonMisesFisher(np.eye(3), concentration=1e6)
    >>> P.log_affinity(P, 0.5)[0].round(1)  # almost no overlap, and no overflow
    array([      0. , -292892.9, -292892.9])
    """

    _core: tuple[tuple[str, int], ...] = (("mean_direction", 1), ("concentration", 0))
    _chart = CONCENTRATION
    mean_direction: FloatArray
    concentration: FloatArray

    def __init__(self, mean_direction: ArrayLike, concentration: ArrayLike) -> None:
        direction = _checks.unit_array("mean_direction", mean_direction)
        if direction.shape[-1] < 2:
            raise ValueError(
                f"mean_direction has shape {direction.shape}; directions need at least "
                "two coordinates on the last axis."
            )
        concentration = _checks.nonnegative_array("concentration", concentration)
        self._set({"mean_direction": direction, "concentration": concentration})

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one observation, (d,)."""
        return self.mean_direction.shape[-1:]

    @property
    def _d(self):
        return self.mean_direction.shape[-1]

    @functools.cached_property
    def _bessel(self):
        """C(kappa) - kappa, kappa times what the mean's length lacks to one, length."""
        value, lack, length = log_bessel(0.5 * self._d - 1.0, self.concentration)
        return value + _log_area(self._d), lack, np.minimum(length, 1.0)

    @property
    def _length(self):
        """Length of the mean vector."""
        return self._bessel[2]

    @classmethod
    def _event_to_fit(cls):
        return (None,)

    @classmethod
    def _inside(cls, X):
        return np.abs(np.linalg.norm(X, axis=-1) - 1.0) <= _checks.ROW_TOLERANCE

    @classmethod
    def _support_text(cls):
        return f"rows are vectors of length 1 within {_checks.ROW_TOLERANCE:g}"

    def _inner_point(self):
        return np.eye(1, self._d)[0]

    @classmethod
    def _statistics(cls, X):
        return X

    def _n_free(self):
        return self.mean_direction.size  # of unit length, and the concentration

    def _natural(self):
        return self.concentration[..., None] * self.mean_direction

    def _mean(self):
        return self._length[..., None] * self.mean_direction

    def _natural_of_mean(self, mean):
        # near the root, of Banerjee et al. (2005); a mean of zero has one too
        square = np.square(mean).sum(axis=-1, keepdims=True)
        return mean * (self._d - square) / (1.0 - square)

    def _cumulant_of(self, kappa):
        """A, and the length of the mean, of concentrations."""
        value, _, length = log_bessel(0.5 * self._d - 1.0, kappa)
        return value + kappa + _log_area(self._d), np.minimum(length, 1.0)

    def _cumulant(self, eta):
        return self._cumulant_of(np.linalg.norm(eta, axis=-1))[0]

    def _log_prob(self, X):
        # kappa (m.x - 1) from |x - m|^2: no cancellation at large kappa
        difference = np.square(X - self.mean_direction[..., None, :]).sum(axis=-1)
        kappa = self.concentration[..., None]
        return -0.5 * kappa * difference - self._bessel[0][..., None]

    def _entropy(self):
        return self._bessel[0] + self._bessel[1]

    def _kl(self, other):
        # kappa' (1 - r m.m') - kappa (1 - r) + ..., with 1 - m.m' = |m - m'|^2 / 2
        apart = 0.5 * squared_distances(self.mean_direction, other.mean_direction)
        length = self._length[:, None]
        lack = self._bessel[1][:, None]
        kappa = self.concentration[:, None]
        short = np.where(kappa > 0, lack / np.where(kappa > 0, kappa, 1.0), 1.0)
        turned = other.concentration * (short + length * apart)
        return other._bessel[0] - self._bessel[0][:, None] + turned - lack

    def _affinity(self, other, rho):
        a, b = self.concentration[:, None], other.concentration
        apart = squared_distances(self.mean_direction, other.mean_direction)
        if other is self:
            apart = mirrored(apart)
        total = a + b
        # |t + t'|^2 = (a + b)^2 - a b |m - m'|^2, and its root less a + b
        root = np.sqrt(np.maximum(total * total - a * b * apart, 0.0))
        safe = np.where(total > 0, total, 1.0)
        loss = -a * b * apart / (root + safe)
        power = log_bessel(0.5 * self._d - 1.0, rho * root)[0] + _log_area(self._d)
        own = self._bessel[0][:, None] + other._bessel[0]
        return power - rho * own + rho * loss

    def _moments(self):
        r, m = self._length[..., None], self.mean_direction
        kappa = self.concentration[..., None]
        # across the mean r / kappa, along it 1 - r^2 - (d - 1) r / kappa
        across = np.where(kappa > 0, r / np.where(kappa > 0, kappa, 1.0), 1.0 / self._d)
        along = np.maximum((1.0 - r) * (1.0 + r) - (self._d - 1) * across, 0.0)
        return r * m, across + (along - across) * m**2

    def _sample(self, n, rng):
        d, kappa = (
            self._d,
            np.broadcast_to(self.concentration[..., None], self.batch_shape + (n,)),
        )
        lack = _sample_lack(kappa.reshape(-1), d, rng).reshape(kappa.shape)[..., None]
        m = self.mean_direction[..., None, :]
        side = rng.normal(size=self.batch_shape + (n, d))
        side = side - (side * m).sum(axis=-1, keepdims=True) * m
        side /= np.linalg.norm(side, axis=-1, keepdims=True)
        X = (1.0 - lack) * m + np.sqrt(lack * (2.0 - lack)) * side
        return X / np.linalg.norm(X, axis=-1, keepdims=True)

    @classmethod
    def _solve(cls, mean, total):
        d = mean.shape[-1]
        if d < 2:
            raise ValueError("X has one column; directions need at least two.")
        length = np.linalg.norm(mean, axis=-1)
        if not (length < 1.0 - 1e-14).all():
            raise ValueError(
                "all rows of a fit are equal, so the likelihood has no maximum: the "
                "concentration would be infinite. Add rows that differ."
            )
        if not (length > 1e-14).all():
            raise ValueError(
                "the rows of a fit cancel: their mean is zero and has no direction. "
                "Add rows, or use concentration=0 with any direction."
            )

        def excess(kappa):
            _, lack, r = log_bessel(0.5 * d - 1.0, kappa)
            # from what is small on either side, so that both ends converge
            near = np.where(length < 0.5, length - r, lack / kappa - (1.0 - length))
            slope = 1.0 - r * r - (d - 1) * r / kappa
            return near, -np.maximum(slope, 1e-300)

        start = length * (d - length**2) / ((1.0 - length) * (1.0 + length))
        kappa = log_root(excess, start, 1e-14, 1e17)
        return cls(mean / length[..., None], kappa)


def _log_area(d):
    """Log of the area of the unit sphere in d dimensions."""
    return math.log(2.0) + 0.5 * d * math.log(math.pi) - float(gammaln(0.5 * d))


def _sample_lack(kappa, d, rng):
    """1 - m.x of draws with these concentrations, by Wood's rejection."""
    out = np.empty(kappa.shape)
    left = np.arange(len(kappa))
    while len(left):
        k = kappa[left]
        b = (d - 1) / (2.0 * k + np.sqrt(4.0 * k * k + (d - 1.0) ** 2))
        start = 2.0 * b / (1.0 + b)  # 1 - x0
        z = rng.beta(0.5 * (d - 1), 0.5 * (d - 1), size=len(left))
        lack = 2.0 * b * z / (1.0 - (1.0 - b) * z)
        ratio = (start + (1.0 - start) * lack) * (1.0 + b) ** 2 / (4.0 * b)
        log_accept = k * (start - lack) + (d - 1) * np.log(ratio)
        done = log_accept >= np.log1p(-rng.random(size=len(left)))
        out[left[done]] = lack[done]
        left = left[~done]
    return out
