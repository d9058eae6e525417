"""Kernels between Gaussian laws, in the parts from which every power follows.

    log k = (1/2 - rho) D log 2pi - (D/2) log rho
            + ((1 - rho) (log|S| + log|S'|) - log|S + S'| - rho q) / 2
    log k / sqrt(k(p,p) k(p',p'))
          = (log|2S| + log|2S'|) / 4 - log|S + S'| / 2 - rho q / 2

with q = (mu - mu')' (S + S')^{-1} (mu - mu').

Source: Jebara, Kondor & Howard (2004), eq. (5), rearranged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._support import validation as v
from maxent.kernels._unit_diagonal import exponential

_LOG_2PI = math.log(2.0 * math.pi)
_LOG_2 = math.log(2.0)

Array = NDArray[np.float64]


def check_powers(rho: Any) -> Array:
    """Powers > 0: a number or an array of them."""
    powers = v.as_doubles("rho", rho)
    wrong = ~(np.isfinite(powers) & (powers > 0))
    if wrong.any():
        value = powers[wrong].flat[0]
        raise ValueError(f"rho={value:g} must be a finite number > 0.")
    return powers


def check_one_power(rho: Any) -> float:
    """One power > 0, of functions that do not take several."""
    if isinstance(rho, (list, tuple, np.ndarray)) and np.size(rho) > 1:
        raise ValueError(
            f"rho={v.shown(rho)} must be one number > 0; product_kernel takes several."
        )
    return v.check_positive("rho", rho)


@dataclass(frozen=True)
class GaussianParts:
    """Log-determinants and distances of two lists of Gaussian distributions.

    The last axis is the horizons' where there are several.

    Parameters
    ----------
    dimension : int or ndarray (n_horizons,)
        Dimension D of the laws.
    left : ndarray (n, [n_horizons])
        ``log|S|`` of the first list.
    right : ndarray (m, [n_horizons])
        ``log|S'|`` of the second one.
    log_det : ndarray (n, m, [n_horizons])
        ``log|S + S'|``.
    distance : ndarray (n, m, [n_horizons])
        Squared distance q of the means.
    symmetric : bool
        Whether the second list is the first one.
    """

    dimension: Any
    left: Array
    right: Array
    log_det: Array
    distance: Array
    symmetric: bool = False

    def log_kernel(self, rho: ArrayLike = 0.5) -> Array:
        """Logarithms of the kernel.

        Parameters
        ----------
        rho : float or array-like (n_powers,), default=0.5
            Powers > 0.

        Returns
        -------
        ndarray (n, m, [n_horizons], [n_powers])
        """
        rho = check_powers(rho)
        own = _wide(self.left[:, None] + self.right[None], rho)
        D = _wide(np.asarray(self.dimension, dtype=np.float64), rho)
        constant = (0.5 - rho) * D * _LOG_2PI - 0.5 * D * np.log(rho)
        both = _wide(self.log_det, rho) + rho * _wide(self.distance, rho)
        return constant + 0.5 * ((1.0 - rho) * own - both)

    def log_normalized(self, rho: ArrayLike = 0.5) -> Array:
        """Logarithms of the normalised kernel; `rho` only scales the distance.

        Parameters
        ----------
        rho : float or array-like (n_powers,), default=0.5

        Returns
        -------
        ndarray (n, m, [n_horizons], [n_powers])
        """
        rho = check_powers(rho)
        twice = np.asarray(self.dimension, dtype=np.float64) * _LOG_2
        own = 0.25 * ((self.left + twice)[:, None] + (self.right + twice)[None])
        at_zero = _wide(own - 0.5 * self.log_det, rho)
        L = at_zero - 0.5 * rho * _wide(self.distance, rho)
        if self.symmetric:
            i = np.arange(len(L))
            L[i, i] = 0.0
        return L

    def log_self(self, rho: ArrayLike = 0.5) -> tuple[Array, Array]:
        """Logarithms of the kernel of every law with itself.

        Parameters
        ----------
        rho : float or array-like (n_powers,), default=0.5

        Returns
        -------
        left : ndarray (n, [n_horizons], [n_powers])
        right : ndarray (m, [n_horizons], [n_powers])
        """
        rho = check_powers(rho)
        D = _wide(np.asarray(self.dimension, dtype=np.float64), rho)
        constant = (0.5 - rho) * D * _LOG_2PI - 0.5 * D * np.log(2.0 * rho)
        left, right = (
            constant + (0.5 - rho) * _wide(own, rho) for own in (self.left, self.right)
        )
        return left, right

    def kernel(
        self, rho: ArrayLike = 0.5, *, log: bool = False, normalize: bool = False
    ) -> Array:
        """The kernel, normalised or not.

        Parameters
        ----------
        rho : float or array-like (n_powers,), default=0.5
        log : bool, default=False
            Return logarithms.
        normalize : bool, default=False
            Divide by the square roots of the kernels of each law with itself.

        Returns
        -------
        ndarray (n, m, [n_horizons], [n_powers])
        """
        L = self.log_normalized(rho) if normalize else self.log_kernel(rho)
        return L if log else exponential(L)


def _wide(array: Array, rho: Array) -> Array:
    """The array with an axis for the powers, if they have one."""
    return array[..., None] if rho.ndim else array
