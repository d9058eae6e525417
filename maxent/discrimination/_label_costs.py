"""Losses of rows whose labels are means, and the best means at given decision values.

A row with label mean p, label prior P0 and decision value f costs

    weight * [ ell(p f) + KL(p || P0) ],    KL between (1 + p)/2, (1 - p)/2 and P0.

The least cost over p has a concave dual of one variable:

    max over lam of  phi(lam) - log cosh(lam f + h) + log cosh h,   h = logit(P0) / 2,

with p = tanh(lam f + h) at its optimum.

Source: Jaakkola, Meila & Jebara (1999), appendix C, eqs. (77)-(79).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import log_expit, xlogy

from maxent._optimize.rows import Rows

_STEPS = 200  # bisections alone need 60 or so
_LAST = 1e-8  # a Newton step this short is followed by one below rounding


@dataclass
class LabelCosts:
    """Rows with a margin prior and a label prior.

    Attributes
    ----------
    rows : Rows
        Levels, rates and weights.
    half_odds : ndarray (n,)
        h, half the log odds of the positive label: infinite for known labels, 0 for
        rows of which nothing is known.
    """

    rows: Rows
    half_odds: np.ndarray
    _near: np.ndarray | None = None  # the last multipliers, near the next ones

    @cached_property
    def uncertain(self):
        """Indices of the rows whose labels are not known."""
        return np.flatnonzero(np.isfinite(self.half_odds))

    @cached_property
    def prior_mean(self):
        """Label means (n,) of the label priors."""
        return np.tanh(self.half_odds)

    @cached_property
    def _open(self):
        """Rows of the uncertain labels, and their h."""
        return self.rows.subset(self.uncertain), self.half_odds[self.uncertain]

    def loss(self, p, f):
        """Total loss of the margins p f."""
        return self.rows.loss(self.rows.q - p * f)[0]

    def multipliers(self, p, f):
        """Multipliers (n,) that the margins p f ask for."""
        return self.rows.loss(self.rows.q - p * f)[1]

    @cached_property
    def _log_priors(self):
        """Logs of the prior probabilities of both labels, of uncertain rows."""
        h = self._open[1]
        return log_expit(2.0 * h), log_expit(-2.0 * h)

    def divergence(self, p):
        """Total divergence of label means p from the label priors."""
        rows, (log_up, log_low) = self._open[0], self._log_priors
        up, low = 0.5 * (1.0 + p[self.uncertain]), 0.5 * (1.0 - p[self.uncertain])
        terms = xlogy(up, up) - up * log_up + xlogy(low, low) - low * log_low
        return float(rows.weight @ np.maximum(terms, 0.0))

    def best_means(self, f):
        """Label means (n,) of the least cost at decision values f."""
        p = self.prior_mean.copy()
        rows, h = self._open
        f = f[self.uncertain]
        self._near = u = best_multipliers(rows, h, f, self._near)
        p[self.uncertain] = np.tanh(u * rows.rate * f + h)
        return p

    def least_loss(self, f):
        """Least cost over all label means, and its derivative by f (n,)."""
        rows, h = self._open
        p, derivative = self.prior_mean, np.zeros_like(f)
        known = np.flatnonzero(np.isinf(self.half_odds))
        value, lam, _ = self.rows.subset(known).loss((self.rows.q - p * f)[known])
        derivative[known] = -p[known] * lam
        f = f[self.uncertain]
        self._near = u = best_multipliers(rows, h, f, self._near)
        z = u * rows.rate * f + h
        terms = rows.rate * rows.q * u + rows.potential.value(u)
        terms -= log_cosh(z) - log_cosh(h)
        derivative[self.uncertain] = -rows.weight * rows.rate * u * np.tanh(z)
        return value + float(rows.weight @ terms), derivative


def log_cosh(z):
    """log cosh z, without overflow."""
    return np.logaddexp(z, -z) - np.log(2.0)


def best_multipliers(rows, h, f, near=None):
    """Dimensionless multipliers u (n,) of rows with uncertain labels.

    The root of rate q + g'(u) - x tanh(u x + h), x = rate f, which falls as u grows; 0
    or the end of the domain where there is none. Newton steps inside a bracket, from
    multipliers `near` if there are any.
    """
    g, x, c = rows.potential, rows.rate * f, rows.rate * rows.q
    u = np.zeros(len(f))
    if not len(f):
        return u

    def slope(u, at):
        return c[at] + g.slope(u) - x[at] * np.tanh(u * x[at] + h[at])

    left = np.flatnonzero(c + g.slope_at_zero > x * np.tanh(h))
    high = np.full(len(f), g.upper)
    if g.closed:
        at_end = slope(high[left], left) >= 0
        u[left[at_end]] = g.upper
        left = left[~at_end]
    elif not np.isfinite(g.upper):
        high[left] = 1.0
        beyond = left
        while len(beyond):
            beyond = beyond[slope(high[beyond], beyond) > 0]
            high[beyond] *= 4.0
    high = high[left]
    low, now = np.zeros(len(left)), 0.5 * high
    if near is not None:
        known = (near[left] > 0) & (near[left] < high)
        now = np.where(known, near[left], now)
    for _ in range(_STEPS):
        if not len(left):
            break
        s, tanh = slope(now, left), np.tanh(now * x[left] + h[left])
        curvature = g.curvature(now) + x[left] ** 2 * (1.0 - tanh**2)
        low, high = np.where(s > 0, now, low), np.where(s > 0, high, now)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            new = now + s / curvature
        inside = (new > low) & (new < high)
        new = np.where(inside, new, 0.5 * (low + high))
        done = (s == 0) | (high - low <= 4e-16 * high)
        done |= inside & (np.abs(new - now) <= _LAST * now)
        u[left] = np.where(s == 0, now, new)
        left, low, high, now = (a[~done] for a in (left, low, high, new))
    return u
