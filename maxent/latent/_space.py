"""Log-linear models over an enumerated space.

    p(x) = q(x) exp(lam . f(x)) / Phi(lam),   x = 1..S

Weights come with leading axes (restarts): lam (..., N) gives log Phi (...), p (..., S)
and means (..., N).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from maxent._support import validation as v
from maxent._support.typing import MatrixLike

Array = NDArray[np.float64]

# Histograms of the feature sum are (N, K); beyond this many numbers they do not pay.
_LARGEST_HISTOGRAM = 5e7


# The least unit of a moment, as a share of the feature's range. Below it the rounding
# of moments would count, at weights that nearly exclude states.
_LEAST_SPREAD = 1e-6


@dataclass(frozen=True)
class Units:
    """Map of features of order one to those of the caller, f = origin + unit f'.

    Weights of f' are lam' = unit lam; probabilities, entropies and duals are the same.

    Attributes
    ----------
    origin, unit : ndarray (N,)
        The units are powers of two, so that scaling has no rounding.
    """

    origin: Array
    unit: Array

    @classmethod
    def of_caller(cls, n: int) -> Units:
        """Units of features that stay as they are."""
        return cls(np.zeros(n), np.ones(n))

    def weights_in(self, lam: Array) -> Array:
        """Weights of f', given those of f."""
        return lam * self.unit

    def weights_out(self, lam: Array) -> Array:
        """Weights of f, given those of f'."""
        with np.errstate(over="ignore"):
            out = lam / self.unit
        if not np.isfinite(out).all():
            at = int(np.argwhere(~np.isfinite(out))[0][-1])
            raise ValueError(
                f"feature {at} has values so close to each other, within about "
                f"{self.unit[at]:.0e}, that its weight is beyond the largest number; "
                "multiply the feature and its target by a large number."
            )
        return np.asarray(out)

    def moments_in(self, mean: Array) -> Array:
        """Means of f', given those of f."""
        return (mean - self.origin) / self.unit

    def moments_out(self, mean: Array) -> Array:
        """Means of f, given those of f'."""
        return self.origin + self.unit * mean

    def log_partition(self, log_phi: Array, lam: Array) -> Array:
        """log Phi of the caller, given that at the weights lam of f'."""
        return log_phi + lam @ (self.origin / self.unit)


class FeatureSpace:
    """Features of all states, (S, N) dense or CSR, and the log of a base measure.

    `units` says how the features belong to those of the caller.
    """

    def __init__(
        self,
        features: MatrixLike,
        log_prior: ArrayLike | None = None,
        units: Units | None = None,
    ):
        self.F = check_features("features", features)
        self.n_states, self.n_features = self.F.shape
        self.sparse = sp.issparse(self.F)
        self.log_prior = check_log_prior(log_prior, self.n_states)
        self.units = Units.of_caller(self.n_features) if units is None else units

    @functools.cached_property
    def standard(self) -> FeatureSpace:
        """Space of the same states, its features of order one and near an origin.

        The origin is the value of the range that is nearest to zero, which leaves
        sparse features sparse; states that the base measure excludes are there.
        """
        low, high = self.extremes
        origin, size = np.clip(0.0, low, high), high - low
        size = np.where(size > 0, size, np.abs(low))
        size[size == 0.0] = 1.0
        unit = np.ldexp(1.0, np.round(np.log2(size)).astype(np.intp))
        F, units = self._moved(origin, unit), Units(origin, unit)
        return FeatureSpace(F, self.log_prior, units)

    def _moved(self, origin, unit):
        """(F - origin) / unit, zero of states that the base measure excludes."""
        allowed = np.ones(self.n_states, dtype=bool)
        if self.log_prior is not None:
            allowed = np.isfinite(self.log_prior)
        if not origin.any() and (unit == 1.0).all() and allowed.all():
            return self.F
        if not self.sparse:
            return np.where(allowed[:, None], (self.F - origin) / unit, 0.0)
        F = self.F.copy()  # columns whose origin is not zero are full
        F.data = (F.data - origin[F.indices]) / unit[F.indices]
        F.data[np.repeat(~allowed, np.diff(F.indptr))] = 0.0
        F.eliminate_zeros()
        return F

    def own(self) -> None:
        """Take copies of the arrays, read-only."""
        self.F = self.F.copy()
        arrays = (
            [self.F.data, self.F.indices, self.F.indptr] if self.sparse else [self.F]
        )
        if self.log_prior is not None:
            self.log_prior = self.log_prior.copy()
            arrays.append(self.log_prior)
        for array in arrays:
            array.setflags(write=False)

    def weighted_sums(self, lam: Array) -> Array:
        """lam . f(x), (..., S)."""
        lam = np.asarray(lam)
        if not self.sparse:
            return np.asarray(lam @ self.F.T)
        flat = (self.F @ lam.reshape(-1, self.n_features).T).T
        return np.asarray(flat.reshape(lam.shape[:-1] + (self.n_states,)))

    def exponents(self, lam: Array) -> Array:
        """lam . f(x) + log q(x), (..., S)."""
        out = self.weighted_sums(lam)
        return out if self.log_prior is None else out + self.log_prior

    def probabilities(self, lam: Array) -> tuple[Array, Array]:
        """log Phi and p."""
        u = self.exponents(lam)
        log_phi = logsumexp(u, axis=-1)
        return log_phi, np.exp(u - log_phi[..., None])

    def mean(self, p: Array) -> Array:
        """Means of the features under probabilities (..., S)."""
        if not self.sparse:
            return p @ self.F
        flat = (self.F.T @ p.reshape(-1, self.n_states).T).T
        return flat.reshape(p.shape[:-1] + (self.n_features,))

    def evaluate(self, lam: Array) -> tuple[Array, Array, Array]:
        """log Phi, p and E f."""
        log_phi, p = self.probabilities(lam)
        return log_phi, p, self.mean(p)

    def covariance(self, p: Array, mean: Array) -> Array:
        """Covariance of the features under one p, dense (N, N)."""
        if self.sparse:
            weighted = self.F.multiply(p[:, None]).tocsr()
            second = (self.F.T @ weighted).toarray()
        else:
            second = (self.F.T * p) @ self.F
        return second - np.outer(mean, mean)

    def spread(self, p: Array, mean: Array) -> Array:
        """Standard deviations of the features under p, (..., N): units of their means.

        At least a millionth of the range, and one of constant features.
        """
        if self.sparse:
            flat = (self._squares.T @ p.reshape(-1, self.n_states).T).T
            second = flat.reshape(mean.shape)
        else:
            second = np.einsum("...s,sn,sn->...n", p, self.F, self.F)
        sd = np.sqrt(np.maximum(second - mean**2, 0.0))
        sd = np.maximum(sd, _LEAST_SPREAD * self.span)
        return np.where(self.span > 0, sd, 1.0)

    @functools.cached_property
    def _squares(self) -> sp.csr_array:
        """Squares of sparse features."""
        F = self.F
        return sp.csr_array((F.data**2, F.indices, F.indptr), shape=F.shape)

    def covariance_product(self, p: Array, mean: Array, x: Array) -> Array:
        """Covariance times a vector: F'(p * (F x)) - m (m . x)."""
        return self.F.T @ (p * (self.F @ x)) - mean * (mean @ x)

    @functools.cached_property
    def extremes(self) -> tuple[Array, Array]:
        """Smallest and largest value of every feature over states with q > 0."""
        F = self.F
        if self.log_prior is not None and np.isneginf(self.log_prior).any():
            F = F[np.isfinite(self.log_prior)]
        if self.sparse:
            low, high = F.min(axis=0), F.max(axis=0)
            low, high = (
                np.asarray(a.todense() if sp.issparse(a) else a).ravel()
                for a in (low, high)
            )
            return low, high
        return F.min(axis=0), F.max(axis=0)

    @functools.cached_property
    def span(self) -> Array:
        """Range of every feature over states with q > 0."""
        low, high = self.extremes
        return high - low

    # -- what scaling needs: features >= 0 --------------------------------------------
    @functools.cached_property
    def shift(self) -> Array:
        """Constants added to the features so that the smallest value of each is 0.

        A constant added to a feature changes log Phi only: neither p nor lam. The less
        the features sum to, the longer are the steps of scaling.
        """
        return -self.extremes[0]

    @functools.cached_property
    def shifted(self) -> sp.csr_array:
        """Features + shift, CSR; 0 where a state without prior would be below."""
        if not self.sparse:
            return sp.csr_array(np.maximum(self.F + self.shift, 0.0))
        F = self.F.copy()
        F.data = F.data + np.minimum(self.shift, 0.0)[F.indices]  # of full columns
        below = np.flatnonzero(self.shift > 0)
        if len(below):
            S, n = F.shape
            added = np.tile(self.shift[below], S), np.tile(below, S)
            F = F + sp.csr_array((*added, np.arange(S + 1) * len(below)), shape=(S, n))
        F.data = np.maximum(F.data, 0.0)
        F.eliminate_zeros()
        return F

    def shifted_target(self, target: Array) -> Array:
        """Means (..., N) of the shifted features; rounding about 0 is 0."""
        moved = target + self.shift
        return np.where(np.abs(moved) <= 1e-14 * np.abs(self.shift), 0.0, moved)

    @functools.cached_property
    def by_feature(self) -> sp.csc_array:
        """Features + shift, CSC."""
        return self.shifted.tocsc()

    @functools.cached_property
    def sums(self) -> Array:
        """f#(x), the sum of the shifted features."""
        return np.asarray(self.shifted.sum(axis=1)).ravel()

    @functools.cached_property
    def sum_values(self) -> tuple[Array, NDArray[np.intp]]:
        """Distinct values of f# and the number of each state's."""
        # sums that differ by rounding alone are one value
        scale = max(float(self.sums.max(initial=0.0)), 1.0)
        rounded = np.round(self.sums / scale, 13) * scale
        values, bucket = np.unique(rounded, return_inverse=True)
        if len(values) * self.n_features > _LARGEST_HISTOGRAM:
            raise ValueError(
                f"the feature sum takes {len(values)} values over {self.n_features} "
                "features, too many for method='iis'; use method='gis' or 'lbfgs'."
            )
        return values, bucket


def check_features(name: str, features: MatrixLike) -> MatrixLike:
    """Dense float or CSR matrix (S, N), finite, with a state and a feature."""
    if sp.issparse(features):
        F = sp.csr_array(features, dtype=np.float64)
        F.sum_duplicates()
        entries = F.data
    else:
        F = np.ascontiguousarray(v.as_doubles(name, features))
        entries = F
    if F.ndim != 2 or 0 in F.shape:
        raise ValueError(
            f"{name} has shape {F.shape}; expected (n_states, n_features), both >= 1."
        )
    if not np.isfinite(entries).all():
        raise ValueError(f"{name} contains NaN or infinity.")
    v.check_range(name, F)
    return F


def check_log_prior(log_prior: ArrayLike | None, n: int) -> Array | None:
    """Finite or -inf, (n,), not -inf everywhere."""
    if log_prior is None:
        return None
    q = v.as_doubles("log_prior", log_prior)
    if q.shape != (n,):
        raise ValueError(f"log_prior has shape {q.shape}, expected ({n},).")
    if np.isnan(q).any() or np.isposinf(q).any() or np.isneginf(q).all():
        raise ValueError(
            "log_prior must hold finite numbers or -inf, at least one of them finite."
        )
    return q


def check_moments(name: str, target: ArrayLike, n: int) -> Array:
    """Finite vector of n numbers."""
    eta = v.as_doubles(name, target)
    if eta.shape != (n,):
        raise ValueError(
            f"{name} has shape {eta.shape}, expected ({n},): one mean per feature."
        )
    if not np.isfinite(eta).all():
        at = int(np.flatnonzero(~np.isfinite(eta))[0])
        raise ValueError(f"{name}[{at}]={eta[at]} must be finite.")
    v.check_range(name, eta)
    return eta
