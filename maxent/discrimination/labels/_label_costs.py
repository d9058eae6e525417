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

from maxent._core.machines.uncertain_labels import least_losses
from maxent._optimize.rows import Rows


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
    def known(self):
        """True for rows with known labels."""
        return np.isinf(self.half_odds)

    def feasible(self, p):
        """Label means next to p."""
        return np.clip(p, -1.0, 1.0)

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
        p[self.uncertain] = self._least(f[self.uncertain])[1]
        return p

    def least_loss(self, f):
        """Least cost over all label means, and its derivative by f (n,)."""
        derivative = np.zeros_like(f)
        known, rows, p = self._known_rows
        value, lam, _ = rows.loss(rows.q - p * f[known])
        derivative[known] = -p * lam
        rows = self._open[0]
        u, means, losses = self._least(f[self.uncertain])
        derivative[self.uncertain] = -rows.weight * rows.rate * u * means
        return value + float(rows.weight @ losses), derivative

    @cached_property
    def _known_rows(self):
        """Indices of the rows with known labels, those rows, and their labels."""
        known = np.flatnonzero(np.isinf(self.half_odds))
        return known, self.rows.subset(known), self.prior_mean[known]

    def _least(self, f):
        """Dimensionless multipliers, means and losses of the uncertain rows."""
        rows, h = self._open
        u = np.zeros(len(f)) if self._near is None else self._near
        means, losses = np.empty(len(f)), np.empty(len(f))
        g = rows.potential
        spec = g.core_spec, g.closed, g.slope_at_zero
        arrays = rows.rate * f, rows.rate * rows.q, h
        least_losses(*spec, *arrays, u, means, losses)
        self._near = u
        return u, means, losses
