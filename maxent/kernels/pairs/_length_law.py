"""Sums of kernels over the length of what is compared, with weights >= 0.

    k = sum_T w_T k_T,      T horizons of sequences, or totals of multinomials.

"geometric" and "poisson" have a mean, which is the horizon or the total asked for.
Sums over horizons end where no more than 1e-12 of any model's kernel with itself is
left out; that bounds the others, by Cauchy-Schwarz.

Source: Jebara, Kondor & Howard (2004), sections 3.3 and 4.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from maxent._support import validation as v

Array = NDArray[np.float64]

NAMES = ("geometric", "poisson")
_LEFT_OUT = 1e-12
_MOST_HORIZONS = 20_000


class LengthLaw:
    """A law of lengths: a name, or weights of the lengths 0, 1, ..."""

    def __init__(self, value: Any) -> None:
        self.shown = v.shown(value)
        self.name: str | None = None
        self.log_weights: Array | None = None
        if isinstance(value, str):
            self.name = v.check_choice("length_law", value, NAMES)
            return
        weights = v.as_doubles("length_law", value)
        if weights.ndim != 1 or not len(weights) or not weights.any():
            raise ValueError(
                f"length_law has shape {weights.shape}; one weight >= 0 for each of "
                "the lengths 0, 1, ... is expected, and one of them > 0."
            )
        if not (np.isfinite(weights) & (weights >= 0)).all():
            i = int(np.argmin(np.isfinite(weights) & (weights >= 0)))
            raise ValueError(
                f"length_law[{i}]={weights[i]:g} must be >= 0 and finite: a sum of "
                "kernels with other weights is no kernel."
            )
        with np.errstate(divide="ignore"):
            self.log_weights = np.log(weights)

    def check_mean(self, mean: Any) -> None:
        """Named laws need a mean > 0."""
        if self.name and not mean > 0:
            raise ValueError(
                f"length_law={self.name!r} has the horizon as its mean, so horizon="
                f"{mean:g} must be > 0."
            )

    def weights(self, mean: float, n: int) -> Array:
        """Log weights of the lengths 0 .. n - 1."""
        if self.log_weights is not None:
            return self.log_weights
        T = np.arange(n)
        if self.name == "geometric":
            return T * np.log(mean / (1.0 + mean)) - np.log1p(mean)
        return T * np.log(mean) - mean - gammaln(T + 1.0)

    # -- horizons --------------------------------------------------------------------
    def horizons(
        self, mean: float, own: Callable[[NDArray[np.intp]], list[tuple[str, Array]]]
    ) -> NDArray[np.intp]:
        """Horizons 0 .. N that leave out as good as nothing.

        `own(horizons)` returns the name and the logs (n, horizons, powers) of the
        kernels of models with themselves.
        """
        if self.log_weights is not None:
            return np.arange(len(self.log_weights))
        n = int(mean + 12.0 * np.sqrt(mean)) + 40
        while True:
            horizons = np.arange(n + 1)
            w = self.weights(mean, n + 1)[:, None]
            wrong = next(
                (
                    f"{name}[{int(np.argmax(bad))}]"
                    for name, L in own(horizons)
                    if (bad := _open(L + w)).any()
                ),
                None,
            )
            if wrong is None:
                return horizons
            if n >= _MOST_HORIZONS:
                raise ValueError(
                    f"length_law={self.name!r} with horizon={mean:g}: the sum for "
                    f"{wrong} has not ended after {n} horizons, as its kernel with "
                    "itself grows too fast. Use a larger rho, a smaller horizon, or "
                    "weights for length_law."
                )
            n = min(2 * n, _MOST_HORIZONS)

    # -- totals ----------------------------------------------------------------------
    def check_totals(self, name: str, log_b: Array, mean: float, rho: Array) -> None:
        """Refuse geometric sums that diverge for a distribution with itself."""
        if self.name != "geometric":
            return
        bad = log_b + np.log(mean / (1.0 + mean)) >= 0
        if bad.any():
            i, k = np.argwhere(bad)[0]
            raise ValueError(
                f"length_law='geometric' with total={mean:g} and rho={rho[k]:g} makes "
                f"the kernel of {name}[{i}] with itself infinite. Use rho >= 0.5 or a "
                "smaller total."
            )

    def over_totals(self, log_b: Array, mean: float) -> Array:
        """log sum_s w_s b^s."""
        if self.name == "geometric":
            g = mean / (1.0 + mean)
            return -np.log1p(mean) - np.log1p(-np.exp(log_b + np.log(g)))
        if self.name == "poisson":
            return mean * np.expm1(log_b)
        w = self.weights(mean, 0)
        with np.errstate(invalid="ignore"):
            terms = [np.where(s > 0, s * log_b, 0.0) + w[s] for s in range(len(w))]
        return np.logaddexp.reduce(terms, axis=0)


def _open(terms):
    """Models (n,) for which more of a sum may be left out; (n, horizons, powers)."""
    total = logsumexp(terms, axis=1)
    with np.errstate(invalid="ignore"):
        step = terms[:, -1] - terms[:, -2]
        rest = terms[:, -1] - np.log(-np.expm1(np.minimum(step, -1e-300)))
    ended = (step < 0) & (rest < total + np.log(_LEFT_OUT))
    return ~(ended | np.isneginf(terms[:, -1])).all(axis=-1)
