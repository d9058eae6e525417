"""EM of Gaussian mixtures in standardised coordinates, all restarts at a time.

    theta_k = (nu_k - 1 + n_k) / sum,   mu_k = (tau_k m_k + sum rho y) / (tau_k + n_k)
    Sigma_k = [V_k + sum rho (y - mu)(y - mu)' + tau_k (mu - m)(mu - m)']
              / (a_k - d + n_k)

without a prior with nu = 1, tau = 0, V = 0, a = d. Data are brought to zero mean and
unit (co)variance first, so that starts, thresholds and tolerances do not depend on the
units of the data.

Source: Wang, Schuurmans & Zhao (2012), eqs. (33)-(37), corrected (see the errata);
Gauvain & Lee (1994).
"""

from __future__ import annotations

import contextlib
import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import xlogy

from maxent._core.mixture import em_pass
from maxent._core.threads import threads_worth
from maxent._support.threads import effective_threads
from maxent.families._checks import least_of_correlation
from maxent.latent.mixtures.lme_mixture_em import Step, mean_posterior_entropy

Array = NDArray[np.float64]
_LOG_2PI = math.log(2.0 * math.pi)
# A component has vanished below this share of the weight, and where it has less than
# this part of the pooled variance in some direction, whatever their number.
VANISHED = 1e-10
FLAT = 1e-14
_NS = 0.4  # of a multiplication


class GaussianEM:
    """EM on parameter vectors (log weights, means, log-Cholesky factors)."""

    def __init__(self, X, w, K, kind, prior=None, n_jobs=None):
        W = float(w.sum())
        centre = w @ X / W
        R = X - centre
        self._set_sizes(W, X.shape[1], K, kind, n_jobs)
        cov = (w @ np.square(R) if self.diagonal else (R.T * w) @ R) / W
        self._set_scale(centre, cov, np.abs(R).max(axis=0), prior)
        self._set_rows(X, w)

    @classmethod
    def of_part(cls, X, w, W, centre, scale, K, kind):
        """EM sums over a part of the rows, in the coordinates and weight of them all.

        What are means over all rows add up over the parts.
        """
        part = cls.__new__(cls)
        part._set_sizes(W, X.shape[1], K, kind, 1)
        part.centre, part.scale = centre, scale
        part._set_rows(X, w)
        return part

    def _set_sizes(self, W, d, K, kind, n_jobs):
        self.W, self.d, self.K, self.kind = W, d, K, kind
        self.diagonal = kind != "full"  # no matrix (d, d) is made then
        self.tril = np.tril_indices(0 if self.diagonal else d)
        self.P = d if self.diagonal else len(self.tril[0])
        self.threads = effective_threads(n_jobs)

    def _set_scale(self, centre, cov, largest, prior):
        """Coordinates, from the pooled (co)variances and the largest |x - centre|."""
        self.centre = centre
        self.scale = self._pooled_factor(cov, largest, prior)
        self._set_prior(prior)

    def _set_rows(self, X, w):
        self.n = len(X)
        Y = np.ascontiguousarray(self.standardised(X).T)
        pad = -self.n % 8
        self.y = np.ascontiguousarray(np.pad(Y, ((0, 0), (0, pad))))
        self.w = np.pad(np.asarray(w, dtype=np.float64), (0, pad))

    # -- coordinates -------------------------------------------------------------------
    def _pooled_factor(self, cov, largest, prior):
        """L with covariance L L', or its diagonal; what all spread is relative to."""
        if prior is not None and len(prior.mean) == self.d:
            cov = cov + self._own_part(prior.scale) / self.W
        var = cov if self.diagonal else np.diag(cov).copy()
        largest = largest + np.abs(self.centre)
        flat = np.flatnonzero(var <= (8 * np.finfo(float).eps * largest) ** 2)
        if len(flat):
            raise ValueError(
                f"column {flat[0]} of X is constant, so its variance is zero and the "
                "likelihood has no maximum; drop the column."
            )
        if self.kind == "spherical":
            return np.full(self.d, math.sqrt(var.mean()))
        if self.kind == "diag":
            return np.sqrt(var)
        if least_of_correlation(cov) <= 10 * self.d * 2.3e-16:
            raise ValueError(
                "the covariance of X is singular: rows lie in a plane. Drop columns, "
                "add rows, or use covariance_type='diag'."
            )
        return np.linalg.cholesky(cov)

    def _own_part(self, matrix):
        """Part of a matrix that covariances of this kind have: all, or the diagonal."""
        return np.diag(matrix) if self.diagonal else matrix

    def standardised(self, X):
        if self.diagonal:
            return (X - self.centre) / self.scale
        return solve_triangular(self.scale, (X - self.centre).T, lower=True).T

    def in_units(self, mean):
        """Means in the units of the data: the inverse of `standardised`."""
        scaled = mean * self.scale if self.diagonal else mean @ self.scale.T
        return self.centre + scaled

    @property
    def log_det(self):
        """log |L|: what entropies and densities differ by between the coordinates."""
        diagonal = self.scale if self.diagonal else np.diag(self.scale)
        return float(np.log(diagonal).sum())

    def _set_prior(self, prior):
        self.prior = prior
        d = self.d
        self.nu, self.tau, self.a = 1.0, 0.0, float(d)
        self.m, self.V = np.zeros(d), np.zeros((d,) if self.diagonal else (d, d))
        if prior is None:
            return
        if len(prior.mean) != d:
            raise ValueError(
                f"the prior is of {len(prior.mean)} columns and X has {d}."
            )
        self.nu, self.tau, self.a = prior.weight_count, prior.mean_count, prior.df
        self.m = self.standardised(prior.mean[None])[0]
        if self.diagonal:
            self.V = np.diag(prior.scale) / np.square(self.scale)
            return
        half = solve_triangular(self.scale, prior.scale, lower=True)
        self.V = solve_triangular(self.scale, half.T, lower=True)

    # -- parameter vectors -----------------------------------------------------------
    def pack(self, theta, mean, factor):
        """Vectors (R, K + K d + K P); factor (R, K, d, d), or (R, K, d) diagonal."""
        R = len(theta)
        if self.diagonal:
            entries = np.log(factor)
        else:
            entries = factor[..., self.tril[0], self.tril[1]].copy()
            on = self.tril[0] == self.tril[1]
            entries[..., on] = np.log(entries[..., on])
        return np.hstack([np.log(theta), mean.reshape(R, -1), entries.reshape(R, -1)])

    def unpack(self, phi):
        R, K, d = len(phi), self.K, self.d
        log_theta = phi[:, :K]
        theta = np.exp(log_theta - log_theta.max(axis=1, keepdims=True))
        theta /= theta.sum(axis=1, keepdims=True)
        mean = phi[:, K : K + K * d].reshape(R, K, d)
        entries = phi[:, K + K * d :].reshape(R, K, self.P)
        if self.diagonal:
            return theta, mean, np.exp(np.clip(entries, -300.0, 300.0))
        factor = np.zeros((R, K, d, d))
        on = self.tril[0] == self.tril[1]
        entries = np.where(on, np.exp(np.clip(entries, -300.0, 300.0)), entries)
        factor[..., self.tril[0], self.tril[1]] = entries
        return theta, mean, factor

    def covariances(self, factor):
        if self.diagonal:
            return factor**2
        return factor @ factor.swapaxes(-2, -1)

    # -- one step ----------------------------------------------------------------------
    def sums(self, theta, mean, factor):
        """Likelihood sum and the weighted moments about the means."""
        R, K = theta.shape
        if self.diagonal:
            root = 1.0 / factor
            log_det = np.log(factor).sum(axis=-1)
        else:
            inverse = _inverses(factor)
            root = inverse[..., self.tril[0], self.tril[1]]
            log_det = np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
        with np.errstate(divide="ignore"):
            log_scale = np.log(theta) - log_det - 0.5 * self.d * _LOG_2PI
        log_scale = np.maximum(log_scale, -1e300)
        L, n = np.zeros(R), np.zeros((R, K))
        s1, s2 = np.zeros((R, K, self.d)), np.zeros((R, K, self.P))
        em_pass(
            self.y,
            self.w,
            self.diagonal,
            np.ascontiguousarray(log_scale),
            np.ascontiguousarray(mean),
            np.ascontiguousarray(root),
            L,
            n,
            s1,
            s2,
            self._threads_for(R),
        )
        if not self.diagonal:
            full = np.empty((R, K, self.d, self.d))
            full[..., self.tril[0], self.tril[1]] = s2
            full[..., self.tril[1], self.tril[0]] = s2
            s2 = full
        return L, n, s1, s2

    def _threads_for(self, R):
        """Threads for the loop over R restarts."""
        work = R * self.K * self.n * (4 + self.d * (self.d + 3) // 2)
        return threads_worth(self.threads, R, _NS * work)

    def m_step(self, mean, n, s1, s2):
        """Weights, means and covariances from the sums."""
        n = np.maximum(n, 1e-300)
        theta = (self.nu - 1.0 + n) / (self.nu - 1.0 + n).sum(axis=-1, keepdims=True)
        shift = s1 / n[..., None]
        own = mean + shift
        new = (self.tau * self.m + n[..., None] * own) / (self.tau + n)[..., None]
        off, away = own - new, new - self.m
        below = self.a - self.d + n
        if self.diagonal:
            scatter = s2 + n[..., None] * (off**2 - shift**2)
            cov = self.V + scatter + self.tau * away**2
            cov = cov / below[..., None]
            if self.kind == "spherical":
                average = cov.mean(axis=-1, keepdims=True)
                cov = np.broadcast_to(average, cov.shape).copy()
            return theta, new, cov
        outer = off[..., :, None] * off[..., None, :]
        outer -= shift[..., :, None] * shift[..., None, :]
        cov = self.V + s2 + n[..., None, None] * outer
        cov += self.tau * away[..., :, None] * away[..., None, :]
        return theta, new, cov / below[..., None, None]

    def factors(self, cov):
        """Cholesky factors (or roots of variances), and which are sound."""
        if self.diagonal:
            sound = (cov > FLAT).all(axis=-1)
            return np.sqrt(np.where(sound[..., None], cov, 1.0)), sound
        factor, sound = cholesky(cov)
        # variances of each coordinate given those before it
        variances = np.square(np.diagonal(factor, axis1=-2, axis2=-1))
        return factor, sound & (variances > FLAT).all(axis=-1)

    def em(self, phi: Array) -> Step:
        """One EM step of every restart."""
        theta, mean, factor = self.unpack(phi)
        L, n, s1, s2 = self.sums(theta, mean, factor)
        objective = L / self.W
        if self.prior is not None:
            objective = objective + self.log_prior(theta, mean, factor) / self.W
        new = self.m_step(mean, n, s1, s2)
        new_factor, sound = self.factors(new[2])
        broken = ~(sound & (n > VANISHED * self.W)).all(axis=1)
        broken |= ~np.isfinite(objective)
        following = self.pack(np.maximum(new[0], 1e-300), new[1], new_factor)
        residual = self._residual(theta, mean, factor, new)
        return Step(objective, following, residual, broken)

    def _residual(self, theta, mean, factor, new):
        """Largest difference of the means of the features, (R,).

        Features are those of each component in its own coordinates, and units their
        standard deviations: sqrt(theta) for the products of z[k] with polynomials that
        are orthonormal under the component.
        """
        shift = new[1] - mean
        with np.errstate(all="ignore"):  # far extrapolations
            if self.diagonal:
                first = shift / factor
                second = (new[2] + shift**2) / factor**2 - 1.0
            else:
                inverse = _inverses(factor)
                moment = new[2] + shift[..., :, None] * shift[..., None, :]
                first = (inverse @ shift[..., None])[..., 0]
                second = inverse @ moment @ inverse.swapaxes(-2, -1) - np.eye(self.d)
                second = second.reshape(*first.shape[:-1], -1)
            parts = [(new[0] / theta - 1.0)[..., None], first, second]
            size = np.max([np.abs(part).max(axis=-1) for part in parts], axis=0)
            worst = (np.sqrt(theta) * size).max(axis=-1)
        return np.where(np.isnan(worst), np.inf, worst)

    def log_prior(self, theta, mean, factor):
        """Log prior, (R,), as `MixturePrior` defines it; 0 without one.

        It takes the precisions in the units of the data, whose log-determinants are
        those in standardised coordinates less twice log |L|.
        """
        # minus infinity where a weight is zero, as at an extrapolated point
        out = xlogy(self.nu - 1.0, theta).sum(axis=-1)
        away = mean - self.m
        if self.diagonal:
            log_det = 2.0 * np.log(factor).sum(axis=-1)
            length = ((away / factor) ** 2).sum(axis=-1)
            trace = (self.V / factor**2).sum(axis=-1)
        else:
            diagonal = np.diagonal(factor, axis1=-2, axis2=-1)
            log_det = 2.0 * np.log(diagonal).sum(axis=-1)
            inverse = _inverses(factor)
            with np.errstate(over="ignore", invalid="ignore"):  # far extrapolations
                length = ((inverse @ away[..., None])[..., 0] ** 2).sum(axis=-1)
                trace = np.einsum("rkij,jl,rkil->rk", inverse, self.V, inverse)
        log_det = log_det + 2.0 * self.log_det
        with np.errstate(invalid="ignore"):
            each = -(self.a - self.d) * log_det - self.tau * length - trace
        return out + 0.5 * each.sum(axis=-1)

    # -- of the ends -------------------------------------------------------------------
    def entropy(self, phi):
        """Joint entropy in the units of the data, (R,)."""
        theta, _, factor = self.unpack(phi)
        diagonal = factor if self.diagonal else np.diagonal(factor, 0, -2, -1)
        log_det = np.log(diagonal).sum(axis=-1)
        own = 0.5 * self.d * (_LOG_2PI + 1.0) + log_det - np.log(theta)
        return np.sum(theta * own, axis=-1) + self.log_det

    def posteriors(self, phi):
        """rho (K, n) of one restart, and log p(y) in standardised coordinates."""
        theta, mean, factor = (a[0] for a in self.unpack(phi[None]))
        y = self.y[:, : self.n]
        u = np.empty((self.K, self.n))
        for k in range(self.K):
            z = self._whitened(y, mean[k], factor[k])
            log_det = np.log(factor[k] if self.diagonal else np.diag(factor[k])).sum()
            u[k] = np.log(theta[k]) - log_det - 0.5 * (z * z).sum(axis=0)
        u -= 0.5 * self.d * _LOG_2PI
        top = np.logaddexp.reduce(u, axis=0)
        return np.exp(u - top), top

    def _whitened(self, y, mean, factor):
        dev = y - mean[:, None]
        if self.diagonal:
            return dev / factor[:, None]
        return solve_triangular(factor, dev, lower=True)

    def missing_share(self, phi):
        """Largest share of information that the labels hold; > 1 at a saddle.

        The largest lam with M v = lam I v, for I the covariance of the features of the
        complete data and M the mean of their covariance given y: the slowest rate of
        EM. The Hessian of L is M - I, so a local maximum has it at most 1. Components
        enter in their own standardised coordinates, which changes nothing.
        """
        if self.n < 1 + self.d + (1 if self.kind == "spherical" else self.P):
            return self._share_by_rows(phi)
        return self._share_by_statistics(phi)

    def _share_by_rows(self, phi):
        """The share from a matrix over rows and components, smaller if rows are few.

        M = sum_t U_t U_t', with U_t from a root of the covariance of the labels given
        row t, has the ratios to I of U' D^{-1} U, for D the blocks of I before the
        means are taken off: D^{-1} is a generalised inverse of I, and 1 in statistics
        that are orthonormal under the normal law.
        """
        rho, _ = self.posteriors(phi)
        theta, mean, factor = (a[0] for a in self.unpack(phi[None]))
        y, w = self.y[:, : self.n], self.w[: self.n] / self.W
        left, m = np.sqrt(rho), self.n * self.K
        found = np.zeros((self.n, self.K, self.n, self.K))
        for k in range(self.K):
            root = -rho[k] * left
            root[k] += left[k]
            root = (root * np.sqrt(w / theta[k])).T
            basis = self._orthonormal(self._whitened(y, mean[k], factor[k]))
            gram = basis.T @ basis
            found += root[:, :, None, None] * gram[:, None, :, None] * root
        return float(np.linalg.eigvalsh(found.reshape(m, m))[-1])

    def _orthonormal(self, z):
        """Polynomials that span the statistics, orthonormal under a standard normal."""
        basis = self._statistics(z)
        second = basis[1 + self.d :]
        if self.kind == "spherical":
            second -= self.d
            second /= math.sqrt(2.0 * self.d)
            return basis
        i, j = self._pairs()
        second[i == j] = (second[i == j] - 1.0) / math.sqrt(2.0)
        return basis

    def _share_by_statistics(self, phi):
        """The share from matrices over the statistics of all components."""
        missing, normal = self.missing_information(phi), self._second_moments()
        theta = self.unpack(phi[None])[0][0]
        p = len(normal)
        complete, e = np.zeros_like(missing), np.zeros(self.K * p)
        for k in range(self.K):
            part = slice(k * p, (k + 1) * p)
            complete[part, part] = theta[k] * normal
            e[part] = theta[k] * normal[:, 0]
        complete -= np.outer(e, e)
        keep = np.arange(self.K * p) != 0  # the weights add up to one
        return largest_ratio(missing[np.ix_(keep, keep)], complete[np.ix_(keep, keep)])

    def missing_information(self, phi):
        """Weighted mean of the covariances of the features given the rows."""
        rho, _ = self.posteriors(phi)
        _, mean, factor = (a[0] for a in self.unpack(phi[None]))
        y, w = self.y[:, : self.n], self.w[: self.n] / self.W
        stats = [
            self._statistics(self._whitened(y, mean[k], factor[k]))
            for k in range(self.K)
        ]
        p = len(stats[0])
        given = np.concatenate([rho[k] * stats[k] for k in range(self.K)])
        inner = np.zeros((self.K * p, self.K * p))
        for k in range(self.K):
            part = slice(k * p, (k + 1) * p)
            inner[part, part] = (stats[k] * (w * rho[k])) @ stats[k].T
        return inner - (given * w) @ given.T

    def left_entropy(self, phi):
        """Mean entropy of the labels given the rows."""
        rho, _ = self.posteriors(phi)
        return mean_posterior_entropy(rho, self.w[: self.n], self.W)

    def _pairs(self):
        """Coordinates of the second powers, of diagonal or full covariances."""
        return (np.arange(self.d),) * 2 if self.kind == "diag" else self.tril

    def _statistics(self, z):
        """1, z and the free second powers."""
        if self.kind == "spherical":
            return np.vstack([np.ones(z.shape[1]), z, (z * z).sum(axis=0)])
        i, j = self._pairs()
        return np.vstack([np.ones(z.shape[1]), z, z[i] * z[j]])

    def _second_moments(self):
        """Second moments of the statistics under a standard normal."""
        d = self.d
        if self.kind == "spherical":
            M = np.eye(d + 2)
            M[0, -1] = M[-1, 0] = d
            M[-1, -1] = d * (d + 2.0)
            return M
        i, j = self._pairs()
        square = (i == j).astype(float)
        M = np.eye(1 + d + len(i))
        M[0, d + 1 :] = M[d + 1 :, 0] = square
        second = np.outer(square, square)
        second[np.diag_indices_from(second)] += np.where(square > 0, 2.0, 1.0)
        M[d + 1 :, d + 1 :] = second
        return M


def largest_ratio(A, B):
    """Largest lam of A v = lam B v, B positive definite."""
    from scipy.linalg import eigh

    scale = 1.0 / np.sqrt(np.diag(B))
    A, B = A * scale * scale[:, None], B * scale * scale[:, None]
    return float(eigh(A, B, eigvals_only=True)[-1])


def cholesky(A):
    """Factors of matrices (..., d, d), and which are positive definite."""
    A = 0.5 * (A + A.swapaxes(-2, -1))
    try:
        return np.linalg.cholesky(A), np.ones(A.shape[:-2], dtype=bool)
    except np.linalg.LinAlgError:
        pass
    L, sound = np.empty_like(A), np.ones(A.shape[:-2], dtype=bool)
    for at in np.ndindex(A.shape[:-2]):
        try:
            L[at] = np.linalg.cholesky(A[at])
        except np.linalg.LinAlgError:
            L[at], sound[at] = np.eye(A.shape[-1]), False
    return L, sound


def _inverses(factor: Array) -> Array:
    """Inverses of lower triangles (..., d, d); infinite where there is none.

    There is none at points that an extrapolation has taken too far.
    """
    try:
        return np.asarray(np.linalg.inv(factor), dtype=np.float64)
    except np.linalg.LinAlgError:
        out: Array = np.full(factor.shape, np.inf)
        for at in np.ndindex(factor.shape[:-2]):
            with contextlib.suppress(np.linalg.LinAlgError):
                out[at] = np.linalg.inv(factor[at])
        return out
