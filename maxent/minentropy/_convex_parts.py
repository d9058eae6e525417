"""Convex parts of the Renyi scores, F = phi - psi.

With the order a and L_t = log sum exp(t s)

    a = inf: phi = max s                    a = 0: phi = L_1 - log |H|, psi = 0
    a > 1:   phi = L_a / (a - 1), psi = L_1 / (a - 1)
    a < 1:   phi = L_1 / (1 - a), psi = L_a / (1 - a)

whose curvatures grow like 1 / |a - 1|. Near 1 the parts are phi = F + rho q / 2 and
psi = rho q / 2 with a quadratic form q(w) >= range_h(s_h)^2 and

    rho = (1 + a) / 2 (log |H| / 4 + e^-3).

For at a = 1, p = softmax(s), with its entropy H(p), and in a direction u of the scores,

    u' F'' u = sum_h p_h (2 + H(p) + log p_h) (u_h - E u)^2
            >= -range(u)^2 sum_h p_h max(0, -log p_h - 2 - H(p)),

and if the h of positive terms have the probability P in all, the sum of these is at
most P (1 - P) log |H| + P (log 1/P - 2) <= log |H| / 4 + e^-3. At other orders F is the
mean over t between 1 and a of E_t[s] = F_1(t s) / t.

Source: Miller et al. (2012), proposition 3, with the order 1 that it leaves out.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.sparse as sp

NEAR_ONE = 0.2  # |a - 1| up to which the parts have a quadratic form


def concavity(alpha, log_size):
    """rho of order `alpha`: F + rho q / 2 is convex if q >= range_h(s)^2.

    `log_size` is log |H|.
    """
    return 0.5 * (1.0 + alpha) * (0.25 * log_size + np.exp(-3.0))


class ConvexParts:
    """Convex parts phi, psi of the scores of one problem.

    Parameters
    ----------
    objective : Objective
    latent_svm : bool
        Add the rows (y_i, h) without a loss.

    Attributes
    ----------
    sample, wrong, right : ndarray of int (pairs,)
        Sample i, output y and label y_i of every constraint.
    delta : ndarray (pairs,)
        Their losses.
    smooth : bool
        Whether some order is finite.
    curved : bool
        Whether some order is near 1, so that parts have a quadratic form.
    """

    def __init__(self, objective, latent_svm=False):
        self.objective, alpha = objective, objective.alpha
        features, n = objective.features, objective.features.n
        self.sample, self.wrong = objective.sample, objective.wrong
        self.right, self.delta = objective.right, objective.delta
        if latent_svm:
            self.sample = np.concatenate([self.sample, np.arange(n)])
            self.wrong = np.concatenate([self.wrong, objective.codes])
            self.right = np.concatenate([self.right, objective.codes])
            self.delta = np.concatenate([self.delta, np.zeros(n)])
        finite = np.isfinite(alpha)
        self.smooth = bool((finite & (not features.is_visible)).any())
        near = np.abs(alpha - 1.0) <= NEAR_ONE
        self.curved = self.smooth and bool(near.any())

    @cached_property
    def size(self):
        """log |H| (n, K), zero of impossible outputs."""
        features = self.objective.features
        return np.maximum(features.tempered(np.zeros(features.d), 1.0)[0], 0.0)

    def at(self, w):
        """phi and psi as values (n, K) and gradients: (P, GP), (Q, GQ)."""
        features, alpha = self.objective.features, self.objective.alpha
        n, K = features.n, features.K
        P, Q = np.zeros((n, K)), np.zeros((n, K))
        GP, GQ = [], []  # (outputs, factor, gradients)
        for a in np.unique(alpha):
            own = np.flatnonzero(alpha == a)
            phi, psi = self._of_order(w, a, own)
            for table, grads, terms in ((P, GP, phi), (Q, GQ, psi)):
                for factor, L, G in terms:
                    table[:, own] += factor * L[:, own]
                    grads.append((own, factor, G))
            if a == 0:
                P[:, own] -= self.size[:, own]
        Q[np.isneginf(Q)] = 0.0  # of impossible outputs, which P tells
        return P, GP, Q, GQ

    def _of_order(self, w, a, own):
        """Terms (factor, values, gradients) of phi and of psi at one order."""
        features = self.objective.features
        if a == np.inf or a == 0:
            return [(1.0, *features.tempered(w, a if a else 1.0))], []
        if abs(a - 1.0) <= NEAR_ONE:
            rho = concavity(a, self.size[:, own].max())
            q, G = features.spread(w)
            form = (rho, 0.5 * q, G)
            return [(1.0, *features.renyi(w, np.full(features.K, a))), form], [form]
        parts = []
        for t in (max(a, 1.0), min(a, 1.0)):
            L, G = features.tempered(w, t)
            parts.append([(t / abs(a - 1.0), L / t, G)])
        return parts

    def gradient(self, grads, i, y):
        """Rows (len(i), d) of the gradients of pairs (i, y), sparse if features are."""
        features, shape = self.objective.features, (len(i), self.objective.features.d)
        out = None
        for own, factor, G in grads:
            at = np.flatnonzero(np.isin(y, own))
            rows = factor * features.rows(G, i[at], y[at])
            if len(at) < len(i):
                place = (np.ones(len(at)), (at, np.arange(len(at))))
                rows = sp.csr_array(place, shape=(len(i), len(at))) @ rows
            out = rows if out is None else out + rows
        if out is None:
            sparse = sp.issparse(getattr(features, "R", None))
            return sp.csr_array(shape) if sparse else np.zeros(shape)
        return out


class LinearParts(ConvexParts):
    """The model at w_t: scores of finite orders are linear, maxima as they are."""

    def __init__(self, objective, w):
        super().__init__(objective)
        features = objective.features
        self.finite = np.flatnonzero(np.isfinite(objective.alpha))
        self.infinite = np.flatnonzero(np.isinf(objective.alpha))
        orders = np.where(np.isinf(objective.alpha), 0.0, objective.alpha)
        F, self.G = features.renyi(w, orders)
        self.b = F - (features.at_weights(self.G, w) if w.any() else 0.0)

    def at(self, w):
        features = self.objective.features
        P = self.b + features.at_weights(self.G, w)
        grads = [(self.finite, 1.0, self.G)]
        if len(self.infinite):
            L, G = features.tempered(w, np.inf)
            P[:, self.infinite] = L[:, self.infinite]
            grads.append((self.infinite, 1.0, G))
        return P, grads, np.zeros_like(P), []


def stacked(parts):
    """Arrays, dense or sparse, one below the other."""
    if any(sp.issparse(part) for part in parts):
        return sp.vstack(parts, format="csr")
    return np.concatenate(parts)
