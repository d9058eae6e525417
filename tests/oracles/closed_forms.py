"""Closed forms of the potentials and losses of the margin priors (spec section 2).

Used by the reference solvers; `test_oracles` checks them against quadrature and
brute-force search in `margin_priors`.
"""

import numpy as np
from scipy.special import gammainc, kl_div, xlogy


def psi(x):
    """``x - 1 - log x``, accurate near 1."""
    e = np.asarray(x, dtype=float) - 1.0
    series = e**2 * (0.5 + e * (-1.0 / 3.0 + e * (0.25 + e * (-0.2 + e / 6.0))))
    with np.errstate(divide="ignore"):
        return np.where(np.abs(e) < 1e-3, series, e - np.log1p(e))


def _lower_moment(k, lam, eps):
    """``int_0^eps v**k exp(-lam v) dv`` for lam >= 0, eps >= 0 (arrays)."""
    x = lam * eps
    small = np.minimum(x, 1.0)
    series, term = np.zeros_like(x), np.ones_like(x)
    for j in range(24):
        series = series + term / (k + 1 + j)
        term = -term * small / (j + 1)
    large = np.where(x < 1.0, 1.0, lam)
    factorial = (1.0, 1.0, 2.0)[k]
    tail = factorial * gammainc(k + 1, np.maximum(x, 1.0)) / large ** (k + 1)
    return np.where(x < 1.0, eps ** (k + 1) * series, tail)


class Potentials:
    """Potentials ``w phi(lam/w)`` and losses ``w ell(m)`` of n constraints at once.

    Parameters
    ----------
    kind : str
        See `margin_priors.KINDS`. For ``uniform_exp``, ``level = -eps``.
    level, rate, weight : array (n,)
        Location, rate > 0, weight > 0. ``hinge`` uses weight as the box and ignores
        rate; ``fixed`` ignores rate and weight.
    shape : float
        Order of ``erlang``.
    """

    def __init__(self, kind, level, rate, weight, shape=1.0):
        arrays = np.broadcast_arrays(level, rate, weight)
        self.kind, self.shape = kind, float(shape)
        self.level, self.rate, self.weight = (np.array(a, dtype=float) for a in arrays)
        self.n = self.level.size
        if kind in ("gaussian", "fixed"):
            self.cap = np.full(self.n, np.inf)
        else:
            self.cap = self.weight.copy()
            if kind != "hinge":
                self.cap *= self.rate

    def inside(self, lam):
        """True when every potential and derivative is finite at lam."""
        if self.kind in ("gaussian", "fixed", "hinge"):
            return True
        low = lam > 0.0 if self.kind == "logistic" else lam > -0.5 * self.cap
        return bool(np.all(low) and np.all(lam < self.cap))

    def _tilted(self, mu, s=None):
        """Mass, mean, variance of -gamma - eps under the tilt; s = rate - mu."""
        eps = -self.level
        s = self.rate - mu if s is None else s
        if np.any(mu < 0.0):  # only reached inside solvers: continue analytically
            mu = np.maximum(mu, 0.0)
        m0, m1, m2 = (_lower_moment(k, mu, eps) for k in range(3))
        mass = m0 + 1.0 / s
        mean = (1.0 / s**2 - m1) / mass
        square = (2.0 / s**3 + m2) / mass
        return mass, mean, square - mean**2

    def value(self, lam):
        """phi, one value per constraint (domain not checked)."""
        l, c, w = self.level, self.rate, self.weight
        mu = lam / w
        p = mu / c
        kind = self.kind
        if kind in ("fixed", "hinge"):
            return l * lam
        if kind == "exponential":
            rest = np.log1p(-p)
        elif kind == "erlang":
            rest = self.shape * np.log1p(-p)
        elif kind == "laplace":
            rest = np.log1p(-p) + np.log1p(p)
        elif kind == "gaussian":
            rest = -(p**2) / 2.0
        elif kind == "logistic":
            rest = -xlogy(p, p) - xlogy(1.0 - p, 1.0 - p)
        elif kind == "uniform_exp":
            rest = np.log(1.0 / c - l) - np.log(self._tilted(mu)[0])
        else:
            raise ValueError(f"unknown kind {kind!r}")
        return l * lam + w * rest

    def d1(self, lam):
        """phi', the expected margin."""
        l, c, mu, kind = self.level, self.rate, lam / self.weight, self.kind
        if kind in ("fixed", "hinge"):
            return l + 0.0 * lam
        if kind in ("exponential", "erlang"):
            return l - (self.shape if kind == "erlang" else 1.0) / (c - mu)
        if kind == "laplace":
            return l - 2.0 * mu / ((c - mu) * (c + mu))
        if kind == "gaussian":
            return l - mu / c**2
        if kind == "logistic":
            with np.errstate(divide="ignore"):
                return l + np.log((c - mu) / mu) / c
        return l - self._tilted(mu)[1]

    def d2(self, lam):
        """phi'', minus the variance of the margin."""
        c, w, mu, kind = self.rate, self.weight, lam / self.weight, self.kind
        if kind in ("fixed", "hinge"):
            return 0.0 * lam
        if kind in ("exponential", "erlang"):
            return -(self.shape if kind == "erlang" else 1.0) / (c - mu) ** 2 / w
        if kind == "laplace":
            return -((c - mu) ** -2.0 + (c + mu) ** -2.0) / w
        if kind == "gaussian":
            return -1.0 / c**2 / w
        if kind == "logistic":
            return -1.0 / (mu * (c - mu)) / w
        return -self._tilted(mu)[2] / w

    def prior_mean(self):
        """phi'(0), where the loss becomes zero."""
        return self.d1(np.zeros(self.n))

    def slope(self, m):
        """``-ell'(m)``, the multiplier that margin m asks for."""
        l, c, w, kind = self.level, self.rate, self.weight, self.kind
        d = l - m
        if kind == "hinge":
            return np.where(d > 0.0, w, 0.0)
        if kind in ("exponential", "erlang"):
            k = self.shape if kind == "erlang" else 1.0
            return w * np.where(c * d > k, c - k / np.where(c * d > k, d, 1.0), 0.0)
        if kind == "laplace":
            return w * np.where(d > 0.0, c**2 * d / (1.0 + np.hypot(1.0, c * d)), 0.0)
        if kind == "gaussian":
            return w * c**2 * np.maximum(d, 0.0)
        if kind == "logistic":
            return w * c * np.exp(-np.logaddexp(0.0, -c * d))
        if kind == "uniform_exp":
            return w * self._uniform_exp_multiplier(m)
        raise ValueError(f"no slope for kind {kind!r}")

    def _uniform_exp_multiplier(self, m):
        """Solve phi'(mu) = m for unit weights by bisection; 0 above the prior mean."""
        low, high = np.full(self.n, -40.0), np.zeros(self.n)
        for _ in range(60):  # on v = log((rate - mu) / rate): resolves both ends
            v = (low + high) / 2.0
            mean = self._tilted(-self.rate * np.expm1(v), self.rate * np.exp(v))[1]
            below = self.level - mean < m  # phi' decreases in mu, increases in v
            low, high = np.where(below, v, low), np.where(below, high, v)
        mu = -self.rate * np.expm1((low + high) / 2.0)
        return np.where(m < self.prior_mean(), mu, 0.0)

    def loss(self, m):
        """``w ell(m)``, one value per constraint."""
        l, c, w, kind = self.level, self.rate, self.weight, self.kind
        d = l - m
        if kind == "fixed":
            return np.where(d <= 0.0, 0.0, np.inf)
        if kind == "hinge":
            return w * np.maximum(d, 0.0)
        if kind in ("exponential", "erlang"):
            k = self.shape if kind == "erlang" else 1.0
            return w * k * psi(np.maximum(c * d / k, 1.0))
        if kind == "laplace":
            z = c * np.maximum(d, 0.0)
            e = z**2 / (1.0 + np.hypot(1.0, z))  # r - 1 without cancellation
            return w * (e - np.log1p(e / 2.0))
        if kind == "gaussian":
            return w * (c * np.maximum(d, 0.0)) ** 2 / 2.0
        if kind == "logistic":
            return w * np.logaddexp(0.0, c * d)
        lam = self.slope(m)
        return self.value(lam) - lam * m

    def fenchel_young(self, lam, m):
        """``loss(m) + lam m - value(lam)`` >= 0, without large cancellations."""
        l, c, w, kind = self.level, self.rate, self.weight, self.kind
        d = l - m
        mu = lam / w
        if kind == "hinge":
            return np.where(d > 0.0, (w - lam) * d, -lam * d)
        if kind in ("exponential", "erlang"):
            k = self.shape if kind == "erlang" else 1.0
            on = c * d >= k
            above = k * psi(np.where(on, d * (c - mu) / k, 1.0))
            return w * np.where(on, above, -mu * d - k * np.log1p(-mu / c))
        if kind == "gaussian":
            on = d > 0.0
            above = (mu - c**2 * d) ** 2 / (2.0 * c**2)
            return w * np.where(on, above, mu**2 / (2.0 * c**2) - mu * d)
        if kind == "logistic":
            p, q = mu / c, np.exp(-np.logaddexp(0.0, -c * d))
            r = np.exp(-np.logaddexp(0.0, c * d))  # 1 - q
            return w * (kl_div(p, q) + kl_div(1.0 - p, r))
        return self.loss(m) + lam * m - self.value(lam)
