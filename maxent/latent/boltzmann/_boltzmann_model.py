"""Boltzmann machines as log-linear models with hidden units.

    p(v, h) = exp(sum_{i<j} W_ij x_i x_j + sum_i b_i x_i) / Phi,  x = (v, h) in {0, 1}^M

Features are the products x_i x_j of free pairs and, with biases, x_i. Visible units
come first. Sums over the hidden units are exact given each distinct row; log Phi and
the model's means are exact by enumeration, of all units or, without pairs inside the
two layers, of the smaller layer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logsumexp, softmax, xlogy

from maxent._support import validation as v
from maxent._support.compiling import compiled
from maxent._support.linalg import row_chunks, weighted_gram
from maxent.latent._log_linear import LogLinearModel
from maxent.latent._scaling_steps import bounded, scaled, steps_of
from maxent.latent._space import FeatureSpace

Array = NDArray[np.float64]
MOST_UNITS = 26  # 2^26 states: a second or two per pass
_MOST_LAYER = 20  # units of the smaller layer of a restricted machine
_TABLE = 2e7  # entries of a dense feature table, up to which Hessians are formed
_ROWS = 1 << 22  # posterior probabilities held at a time


def _table_size(units):
    """Bytes of a number for every state, in words."""
    return f"2^{units + 3} bytes as one table"


def check_units(
    visible: int, hidden: int, layered: bool, restricted: bool, sampled: bool
) -> None:
    """Refuse machines that cannot be enumerated, or not even their hidden part.

    layered : no weights among hidden units; restricted : among visible ones neither.
    """
    small, units = min(visible, hidden), visible + hidden
    if restricted and not sampled and small > _MOST_LAYER:
        raise ValueError(
            f"{visible} visible units and n_hidden={hidden}: the smaller layer has "
            f"2^{small} states ({_table_size(small)}); at most {_MOST_LAYER} units "
            "are enumerated. Use fewer, or moments='sampled' (Gibbs chains)."
        )
    if not layered and hidden > _MOST_LAYER:
        raise ValueError(
            f"n_hidden={hidden}: the E step would enumerate 2^{hidden} hidden "
            f"states ({_table_size(hidden)} per row); at most {_MOST_LAYER} hidden "
            "units with weights among them are exact. Use fewer, or a mask without "
            "pairs of hidden units."
        )
    if not (sampled or restricted) and units > MOST_UNITS:
        raise ValueError(
            f"{units} units have 2^{units} states ({_table_size(units)}); at "
            f"most {MOST_UNITS} are enumerated. Use fewer units, moments='sampled' "
            "(Gibbs chains), or LMERBM, which enumerates its smaller layer only."
        )


class BinaryRows:
    """Distinct binary rows and their shares."""

    def __init__(self, rows: Array, share: Array):
        self.rows, self.share = rows, share
        self.second = (rows.T * share) @ rows


class BoltzmannModel(LogLinearModel):
    """Boltzmann machine of `n_visible` + `n_hidden` units; `free` says which weights.

    free : boolean (M, M), symmetric; the diagonal says which biases are free.
    moments : "exact" or "sampled"; the latter has no `partition`, and any size.
    """

    def __init__(
        self,
        n_visible: int,
        n_hidden: int,
        free: NDArray[np.bool_],
        moments: str = "exact",
    ):
        self.J, self.L, self.M = n_visible, n_hidden, n_visible + n_hidden
        self.free = free
        J = self.J
        self.layered = not (free[J:, J:] & ~np.eye(self.L, dtype=bool)).any()
        self.restricted = (
            self.layered and not (free[:J, :J] & ~np.eye(J, dtype=bool)).any()
        )
        sampled = moments == "sampled"
        check_units(J, n_hidden, self.layered, self.restricted, sampled)
        i, j = np.triu_indices(self.M, 1)
        pairs = free[i, j]
        self.i, self.j = i[pairs], j[pairs]
        self.biased = np.flatnonzero(np.diag(free))
        self.n_pairs = len(self.i)
        self.n_features = self.n_pairs + len(self.biased)
        if not self.n_features:
            raise ValueError("mask leaves no free weight; set some of its entries.")
        self.has_hessian = (1 << min(self.M, 40)) * self.n_features <= _TABLE
        self._space: FeatureSpace | None = None

    # -- weights -----------------------------------------------------------------------
    def matrices(self, lam: Array) -> tuple[Array, Array]:
        """Symmetric weights (M, M) with zero diagonal, and biases (M,)."""
        W, b = np.zeros((self.M, self.M)), np.zeros(self.M)
        W[self.i, self.j] = W[self.j, self.i] = lam[: self.n_pairs]
        b[self.biased] = lam[self.n_pairs :]
        return W, b

    def features_of(self, second: Array) -> Array:
        """Means of the features from E x x' (..., M, M), its diagonal E x."""
        pairs = second[..., self.i, self.j]
        return np.concatenate([pairs, second[..., self.biased, self.biased]], axis=-1)

    def start(self, rng: np.random.Generator) -> Array:
        """Random weights (N,)."""
        return rng.normal(scale=0.5, size=self.n_features)

    # -- data --------------------------------------------------------------------------
    def observe(
        self, data: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> BinaryRows:
        """Distinct rows of binary data (n, n_visible) and their shares."""
        X = v.as_doubles("X", data)
        if X.ndim != 2 or X.shape[1] != self.J or not len(X):
            raise ValueError(
                f"X has shape {X.shape}; expected (n_samples, {self.J}), not empty."
            )
        wrong = (X != 0) & (X != 1)
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            raise ValueError(
                f"X[{i}, {j}]={X[i, j]:g} is not binary; units are 0 or 1: threshold "
                "the data first."
            )
        weight = v.check_weights(sample_weight, len(X))
        rows, where = np.unique(X, axis=0, return_inverse=True)
        share = np.bincount(where.ravel(), weights=weight, minlength=len(rows))
        keep = share > 0
        return BinaryRows(rows[keep], share[keep] / share.sum())

    # -- E step ------------------------------------------------------------------------
    def posterior(self, lam: Array, observed: BinaryRows) -> tuple[Array, Array]:
        """Average log sum_h exp(...) (R,) and the means given the data (R, N)."""
        found = [self._posterior(x, observed) for x in lam]
        return np.array([f[0] for f in found]), np.stack([f[1] for f in found])

    def _posterior(self, lam, observed):
        W, b = self.matrices(lam)
        second = np.zeros((self.M, self.M))
        J = self.J
        second[:J, :J] = observed.second
        total = 0.0
        for part, top, mean, pair in self._hidden(W, b, observed.rows, observed.share):
            w, V = observed.share[part], observed.rows[part]
            own = V @ b[:J] + 0.5 * ((V @ W[:J, :J]) * V).sum(axis=1)
            total += float(w @ (own + top))
            second[:J, J:] += (V.T * w) @ mean
            second[J:, J:] += pair
        second[J:, :J] = second[:J, J:].T
        return total, self.features_of(second)

    def _hidden(self, W, b, V, share):
        """(rows, log sum over h, E[h | v], sum share E[h h' | v]) by blocks of rows."""
        J, L = self.J, self.L
        if self.layered:
            u = V @ W[:J, J:] + b[J:]
            mean = expit(u)
            pair = (mean.T * share) @ mean
            pair[np.diag_indices(L)] = share @ mean
            yield slice(0, len(V)), np.logaddexp(0.0, u).sum(axis=1), mean, pair
            return
        H = compiled("binary_units").all_states(L)
        own = H @ b[J:] + 0.5 * ((H @ W[J:, J:]) * H).sum(axis=1)
        rows = max(_ROWS >> L, 1)
        for lo in range(0, len(V), rows):
            part = slice(lo, min(lo + rows, len(V)))
            u = (V[part] @ W[:J, J:]) @ H.T + own
            top = logsumexp(u, axis=1)
            P = np.exp(u - top[:, None])
            yield part, top, P @ H, (H.T * (share[part] @ P)) @ H

    def dependence(self, lam: Array, observed: BinaryRows) -> Array:
        """H(mean posterior) - mean H(posterior) on the data, (R,): I(V; H) if feasible.

        Restricted machines and those of many hidden units: the largest over single
        units, a lower bound.
        """
        return np.array([self._dependence(x, observed) for x in lam])

    def _dependence(self, lam, observed):
        W, b = self.matrices(lam)
        J, w = self.J, observed.share
        if self.restricted or self.L > _MOST_LAYER:
            mean = expit(observed.rows @ W[:J, J:] + b[J:])

            def entropy(p):
                return -xlogy(p, p) - xlogy(1 - p, 1 - p)

            return float((entropy(w @ mean) - w @ entropy(mean)).max())
        H = compiled("binary_units").all_states(self.L)
        u = (observed.rows @ W[:J, J:]) @ H.T
        u += H @ b[J:] + 0.5 * ((H @ W[J:, J:]) * H).sum(axis=1)
        P = np.exp(u - logsumexp(u, axis=1, keepdims=True))
        average = w @ P
        inner = -xlogy(P, P).sum(axis=1) @ w
        return float(max(-xlogy(average, average).sum() - inner, 0.0))

    # -- the model's means -------------------------------------------------------------
    def partition(self, lam: Array) -> tuple[Array, Array]:
        """log Phi (R,) and the model's means (R, N)."""
        sums = self._layer_sums if self._by_layer else self._all_sums
        found = [sums(*self.matrices(x)) for x in lam]
        means = np.stack([self.features_of(f[1]) for f in found])
        return np.array([f[0] for f in found]), means

    _signed = False  # a hidden unit may stand for its opposite

    def _signature(self, lam: Array) -> Array:
        """Covariances of each hidden unit with the visible ones, (L, J)."""
        sums = self._layer_sums if self._by_layer else self._all_sums
        second = sums(*self.matrices(lam))[1]
        mean, J = np.diag(second), self.J
        return second[J:, :J] - np.outer(mean[J:], mean[:J])

    @property
    def _by_layer(self):
        return self.restricted and min(self.J, self.L) < self.M - 2

    def _all_sums(self, W, b):
        return compiled("binary_units").pair_moments(W, b)

    def _layer_sums(self, W, b):
        """Enumerate the smaller layer; the other is independent given it."""
        J, M = self.J, self.M
        small, large = np.arange(J, M), np.arange(J)
        if self.J < self.L:
            small, large = large, small
        S = compiled("binary_units").all_states(len(small))
        second, log_phi = np.zeros((M, M)), -np.inf
        rows = max((1 << 20) // max(len(large), 1), 1)
        for lo in range(0, len(S), rows):
            part = S[lo : lo + rows]
            u = part @ W[np.ix_(small, large)] + b[large]
            log_p = part @ b[small] + np.logaddexp(0.0, u).sum(axis=1)
            new = np.logaddexp(log_phi, logsumexp(log_p))
            second *= np.exp(log_phi - new)
            p, mean = np.exp(log_p - new), expit(u)
            second[np.ix_(small, large)] += (part.T * p) @ mean
            second[small, small] += p @ part
            second[large, large] += p @ mean
            log_phi = new
        cross = second[np.ix_(small, large)]
        second[np.ix_(large, small)] = cross.T
        return float(log_phi), second

    def check_method(self, method: str) -> None:
        """Refuse M steps that this machine is too large for."""
        if method in ("newton", "scgis") and not self.has_hessian:
            raise ValueError(self._no_table())
        if method == "iis" and not self._splits:
            raise ValueError(
                f"method='iis' splits the sums over 2^{self.M} states by the "
                "number of active free pairs, which a mask makes too slow beyond "
                "20 units; use method='gis' or 'lbfgs'."
            )

    def _no_table(self):
        others = "'iis', 'gis'" if self._splits else "'gis', 'cg'"
        return (
            f"{self.M} units with {self.n_features} weights are too many for a table "
            "of all states, which method='newton' and 'scgis' need; use "
            f"method={others} or 'lbfgs'."
        )

    # -- M step ------------------------------------------------------------------------
    @property
    def space(self) -> FeatureSpace:
        """Features of all states, for small machines."""
        if self._space is None:
            if not self.has_hessian:
                raise ValueError(self._no_table())
            X = compiled("binary_units").all_states(self.M)
            F = np.hstack([X[:, self.i] * X[:, self.j], X[:, self.biased]])
            self._space = FeatureSpace(F)
        return self._space

    def scaled(
        self, lam: Array, target: Array, weight: Array, method: str, bound: float
    ) -> Array:
        """Weights after one step of iterative scaling towards `target`."""
        if method == "scgis":
            return scaled(self.space, lam, target, weight, method, bound)
        if method == "gis":
            _, mean = self.partition(lam)
            a, values = mean[..., None], np.array([float(self.n_features)])
        else:
            found = [self._by_sum(x) for x in lam]
            a, values = np.stack([f[0] for f in found]), found[0][1]
        return bounded(lam, steps_of(a, values, target, lam, weight), bound)

    @property
    def _by_halves(self):
        """True if the feature sum follows from the number of active units."""
        full = self.free[~np.eye(self.M, dtype=bool)].all()
        return full and len(self.biased) in (0, self.M)

    @property
    def _splits(self):
        """True if means can be split by the feature sum, for method='iis'."""
        return self._by_halves or self.M <= 20

    def _by_sum(self, lam):
        """Means split by the value of the feature sum: (N, K), and its values."""
        states, (W, b) = compiled("binary_units"), self.matrices(lam)
        first, second = states.split_evenly(self.M)
        biased = len(self.biased)
        if self._by_halves and self.M >= states.HALVES_FROM:
            k = np.add.outer(np.arange(len(first) + 1), np.arange(len(second) + 1))
            value = k * (k + 1) // 2 if biased else k * (k - 1) // 2
            top = int(value.max()) + 1
            halves = states.HalfTables(first, second)
            C = halves.moments_by_counts(W, b, value, top)[1]
        else:
            self.check_method("iis")
            value = states.feature_sums(self.free)
            top = int(value.max()) + 1
            C = states.moments_by_value(W, b, value, top)[1]
        a = self.features_of(C).T
        return np.ascontiguousarray(a), np.arange(top, dtype=np.float64)

    def covariance(self, lam: Array) -> Array:
        """Covariance of the features under one lam (N,)."""
        _, p, mean = self.space.evaluate(lam)
        return self.space.covariance(p, mean)

    def hessian(self, lam: Array, observed: BinaryRows) -> Array:
        """Hessian of L at one lam, from the table of all states (small machines)."""
        H = -self.covariance(lam)
        u, N = self.space.exponents(lam), self.n_features
        codes = (observed.rows @ (1 << np.arange(self.J))).astype(np.intp)
        hidden = np.arange(1 << self.L)[:, None] << self.J
        for part in row_chunks(len(codes), len(hidden) * N * N):
            at, share = hidden + codes[part], observed.share[part]
            p = softmax(u[at], axis=0)
            F = self.space.F[at]
            means = np.einsum("hr,hrn->rn", p, F)
            p *= share
            H += weighted_gram(F.reshape(-1, N), p.ravel())
            H -= weighted_gram(means, share)
        return H

    # -- draws -------------------------------------------------------------------------
    def sample(self, lam: Array, n: int, rng: np.random.Generator) -> Array:
        """Visible rows, exact."""
        states, (W, b) = compiled("binary_units"), self.matrices(lam)
        if self._by_layer:
            J = self.J
            small, large = np.arange(J, self.M), np.arange(J)
            if self.J < self.L:
                small, large = large, small
            S = states.all_states(len(small))
            u = S @ W[np.ix_(small, large)] + b[large]
            log_p = S @ b[small] + np.logaddexp(0.0, u).sum(axis=1)
            at = rng.choice(len(S), size=n, p=np.exp(log_p - logsumexp(log_p)))
            if len(small) == self.J and small[0] == 0:
                return S[at]
            return (rng.random((n, J)) < expit(u[at])).astype(np.float64)
        table = states.energies(W, b)
        p = np.exp(table - logsumexp(table))
        at = rng.choice(len(p), size=n, p=p / p.sum())
        return ((at[:, None] >> np.arange(self.J)) & 1).astype(np.float64)
