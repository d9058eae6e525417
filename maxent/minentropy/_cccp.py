"""The concave-convex procedure with growing rows, for every order.

F = phi - psi with convex parts (a the order, L_t = log sum exp(t s))

    a = inf: phi = max s                    a = 0: phi = L_1 - log |H|, psi = 0
    a > 1:   phi = L_a / (a - 1), psi = L_1 / (a - 1)
    a < 1:   phi = L_1 / (1 - a), psi = L_a / (1 - a)

so that a constraint Delta + (phi_y + psi_yi) - (psi_y + phi_yi) <= xi has a convex and
a concave part. The concave one is linearised at w_t, which bounds f from above and
touches it there; the convex one is met by adding its tangents as rows until the margin
problem over them is as good as exact.

Source: Yuille & Rangarajan (2003), The concave-convex procedure; Miller et al. (2012),
algorithm 1; Yu & Joachims (2009) for the latent SVM; Joachims et al. (2009).
"""

from __future__ import annotations

import numpy as np

from maxent._support.results import Status
from maxent.minentropy._prox_linear import DescentMonitor
from maxent.minentropy.margin_qp import MarginProblem

_ROUNDS = 200  # of rows added for one bound
_SAME = 1e-10  # relative difference of tangents at a point that is rounding
_WORTH = 0.5  # share of the mean shortfall from which a row is added
_INEXACT = 0.1  # share of the decrease up to which a bound is minimised
_ACCURATE = 0.01  # share of it that the gap of a margin problem may be,
_FAR = 10.0  # while the decrease is so many tolerances


def cccp(objective, w, *, tol, qp_tol, max_iter, callback=None, latent_svm=False):
    """Minimise f from w by upper bounds that touch it."""
    parts = _Parts(objective, latent_svm)
    total, cuts, f = objective.total, None, objective.value(w)
    name = "latent_svm" if latent_svm else "cccp"
    monitor, status, n_iter = DescentMonitor(tol, callback, name), Status.MAX_ITER, 0
    fall = 0.0  # of the step before
    while n_iter < max_iter:
        n_iter += 1
        bound = _Bound(parts, w, cuts)
        new, lower, cuts = bound.minimise(w, f, fall, tol=tol, qp_tol=qp_tol)
        e = max(f - lower, 0.0)
        if monitor.record(n_iter - 1, f, e / total, w):
            status = monitor.status
            break
        value = objective.value(new)
        if not value < f:
            status = Status.STALLED
            break
        w, f, fall = new, value, f - value
    else:  # the last step's bound, as that of its end is not known
        if monitor.record(n_iter, f, e / total, w):
            status = monitor.status
    return monitor.result(n_iter, status)


class _Parts:
    """Convex parts phi, psi of the scores of one problem."""

    def __init__(self, objective, latent_svm):
        self.objective, alpha = objective, objective.alpha
        features, n = objective.features, objective.features.n
        self.sample, self.wrong = objective.sample, objective.wrong
        self.right, self.delta = objective.right, objective.delta
        if latent_svm:  # rows (y_i, h) without a loss
            self.sample = np.concatenate([self.sample, np.arange(n)])
            self.wrong = np.concatenate([self.wrong, objective.codes])
            self.right = np.concatenate([self.right, objective.codes])
            self.delta = np.concatenate([self.delta, np.zeros(n)])
        self.size = None
        if (alpha == 0).any():
            zero = np.zeros(features.d)
            size = features.tempered(zero, 1.0)[0]  # log |H|
            self.size = np.maximum(size, 0.0)

    def at(self, w):
        """phi and psi as values (n, K) and gradients: (P, GP), (Q, GQ)."""
        alpha, features = self.objective.alpha, self.objective.features
        n, K = features.n, features.K
        P, Q = np.zeros((n, K)), np.zeros((n, K))
        grads = {"P": [], "Q": []}  # (output, factor, gradients)
        for a in np.unique(alpha):
            own = np.flatnonzero(alpha == a)
            if a == np.inf or a == 0:
                L, G = features.tempered(w, a if a else 1.0)
                P[:, own] = L[:, own] - (self.size[:, own] if a == 0 else 0.0)
                grads["P"].append((own, 1.0, G))
                continue
            first, second = (a, 1.0) if a > 1 else (1.0, a)
            for table, name, t in ((P, "P", first), (Q, "Q", second)):
                L, G = features.tempered(w, t)
                table[:, own] = L[:, own] / abs(a - 1.0)
                grads[name].append((own, t / abs(a - 1.0), G))
        Q[np.isneginf(Q)] = 0.0  # of impossible outputs, which P tells
        return P, grads["P"], Q, grads["Q"]

    def gradient(self, grads, i, y):
        """Rows (len(i), d) of the gradients of pairs (i, y)."""
        features = self.objective.features
        out = np.zeros((len(i), features.d))
        for own, factor, G in grads:
            at = np.flatnonzero(np.isin(y, own))
            if len(at):
                rows = features.rows(G, i[at], y[at])
                out[at] = factor * (
                    rows.toarray() if hasattr(rows, "toarray") else rows
                )
        return out


class _Bound:
    """The convex upper bound of f that touches it at w_t."""

    def __init__(self, parts, w, cuts):
        self.parts = parts
        i, y, right = parts.sample, parts.wrong, parts.right
        P, GP, Q, GQ = parts.at(w)
        # the concave part psi_y + phi_yi, linearised
        self.slope = parts.gradient(GQ, i, y) + parts.gradient(GP, i, right)
        self.level = Q[i, y] + P[i, right] - self.slope @ w
        first = self._tangents(np.arange(len(i)), w, P, GP, Q, GQ)
        # rows (y_i, h) of the latent SVM are zero at first, as the slack's bound is
        self.cuts = tuple(part[y != right] for part in first)
        if cuts is not None:
            # a tangent that touches at w_t, as the first one does, is the same again
            pairs, slope, level = cuts
            top = first[1] @ w + first[2]
            other = slope @ w + level < top[pairs] - _SAME * (1.0 + np.abs(top[pairs]))
            self.cuts = _joined(self.cuts, tuple(part[other] for part in cuts))

    def _tangents(self, pairs, w, P, GP, Q, GQ):
        """Tangents of the convex part at w: pair, slope, constant."""
        parts = self.parts
        i, y, right = parts.sample[pairs], parts.wrong[pairs], parts.right[pairs]
        slope = parts.gradient(GP, i, y) + parts.gradient(GQ, i, right)
        return pairs, slope, P[i, y] + Q[i, right] - slope @ w

    def minimise(self, w, f, fall, *, tol, qp_tol):
        """Weights, a lower bound of the minimum, and the rows that matter.

        `fall` is about what f will fall by, as far as is known.
        """
        total = self.parts.objective.total
        best, best_w, lower = f, w, -np.inf
        for _ in range(_ROUNDS):
            far = fall > _FAR * tol * total
            accuracy = max(qp_tol, _ACCURATE * fall / max(f, total)) if far else qp_tol
            found, problem = self._solve(accuracy, total)
            lower = max(lower, found.objective - found.gap)
            value, violated, tangents = self._evaluate(found.w, problem, tol)
            if value < best:
                best, best_w = value, found.w
            fall = f - best
            if best - lower <= max(_INEXACT * fall, 0.3 * tol * total):
                break
            if len(violated):
                self.cuts = _joined(self.cuts, tangents)
            elif accuracy == qp_tol:
                break
        used = self._in_support(found)
        return best_w, lower, tuple(part[used] for part in self.cuts)

    def _in_support(self, found):
        """Rows whose multipliers outweigh their distance from the slack."""
        parts, own = self.parts, self.parts.sample[self.cuts[0]]
        rows, met = self._rows_at(found.w)
        c, scale = parts.objective.c[own], parts.delta.max()
        return found.dual * scale > c * (met[own] - rows)

    def _rows_at(self, w):
        """Shortfalls of the rows at w, and the slacks that they ask for."""
        pairs, slope, level = self.cuts
        rows = self.parts.delta[pairs] + level - self.level[pairs]
        rows -= (self.slope[pairs] - slope) @ w
        met = np.zeros(self.parts.objective.features.n)
        np.maximum.at(met, self.parts.sample[pairs], rows)
        return rows, met

    def _solve(self, qp_tol, total):
        pairs, slope, level = self.cuts
        order = np.argsort(self.parts.sample[pairs], kind="stable")
        self.cuts = pairs, slope, level = pairs[order], slope[order], level[order]
        D = self.slope[pairs] - slope
        ell = self.parts.delta[pairs] + level - self.level[pairs]
        own = self.parts.sample[pairs]
        problem = MarginProblem(D, ell, self.parts.objective.c, own, ell.shape)
        center = np.zeros(D.shape[1])
        return problem.solve(center, tol=qp_tol, unit=total), problem

    def _evaluate(self, w, problem, tol):
        """The bound at w, the pairs whose rows fall short of it, and their tangents."""
        parts = self.parts
        i, y = parts.sample, parts.wrong
        P, GP, Q, GQ = parts.at(w)
        m = parts.delta + P[i, y] + Q[i, parts.right] - self.level - self.slope @ w
        slack = np.zeros(parts.objective.features.n)
        np.maximum.at(slack, i, m)
        value = 0.5 * float(w @ w) + float(parts.objective.c @ slack)
        _, met = self._rows_at(w)
        # rows that fall short of the bound by a share of the mean shortfall
        short = np.maximum(slack - met, 0.0)
        mean = float(parts.objective.c @ short) / parts.objective.total
        least = max(0.01 * tol, _WORTH * mean)
        violated = np.flatnonzero(m > met[i] + least)
        return value, violated, self._tangents(violated, w, P, GP, Q, GQ)


def _joined(first, second):
    return tuple(np.concatenate(both) for both in zip(first, second, strict=True))
