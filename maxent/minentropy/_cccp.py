"""The concave-convex procedure with growing rows, for every order.

F = phi - psi with convex parts (:mod:`maxent.minentropy._convex_parts`), so that a
constraint Delta + (phi_y + psi_yi) - (psi_y + phi_yi) <= xi has a convex and a concave
part. The concave one is linearised at w_t, which bounds f from above and touches it
there; the convex one is met by adding its tangents as rows until the margin problem
over them is as good as exact.

How far the bound gets below f certifies w_t where no order is finite. The convex parts
of a finite order have curvature of their own, which may keep the bound near f at a
point that is not stationary: there the certificate is e_1, of the model in which
scores of finite orders are linear, and a step of that model is taken where the bound
makes no progress.

Where hidden values of a right output tie, as all do at w = 0, the concave part has
several slopes, and f may fall by another one than the first. There is a bound for each
choice among them, too many to try: choices along a few directions count for the
certificate. The latent SVM's bound, which has rows (y_i, h), cannot pass a tie of its
own: where it ends, certificate and step are those of the bound without these rows.

Source: Yuille & Rangarajan (2003), The concave-convex procedure; Miller et al. (2012),
algorithm 1; Yu & Joachims (2009) for the latent SVM; Joachims et al. (2009).
"""

from __future__ import annotations

import numpy as np

from maxent._support.results import Status
from maxent.minentropy._convex_parts import ConvexParts, LinearParts, stacked
from maxent.minentropy._prox_linear import STUCK, DescentMonitor
from maxent.minentropy.margin_qp import MarginProblem

_ROUNDS = 200  # of rows added for one bound
_SAME = 1e-10  # relative difference of tangents at a point that is rounding
_WORTH = 0.5  # share of the mean shortfall from which a row is added
_INEXACT = 0.1  # share of the decrease up to which a bound is minimised
_ACCURATE = 0.01  # share of it that the gap of a margin problem may be,
_FAR = 10.0  # while the decrease is so many tolerances
_SHORT = 1e3  # nu up to which the model is tried before a bound with quadratic forms
_NEAR = 1e-7  # share of |w| within which hidden values tie
_DIRECTIONS = 4  # random ones, to choose among them
_ENOUGH = 0.1  # share of the decrease of a model that has to come true


def cccp(objective, w, *, tol, qp_tol, max_iter, callback=None, latent_svm=False):
    """Minimise f from w by upper bounds that touch it."""
    parts = ConvexParts(objective, latent_svm)
    total, cuts, f = objective.total, None, objective.value(w)
    name = "latent_svm" if latent_svm else "cccp"
    monitor, status, n_iter = DescentMonitor(tol, callback, name), Status.MAX_ITER, 0
    accuracy = {"tol": tol, "qp_tol": qp_tol}
    before, fall = w, 0.0  # where the last step began, and what it gained
    while n_iter <= max_iter:  # the last time to certify where the last step ended
        bound, model = _Bound(parts, w, cuts), None
        if parts.smooth:
            model = _Model(objective, w, f, accuracy)
            lower = model.lower
        else:
            new, lower, cuts = bound.minimise(w, f, fall, **accuracy)
            if f - lower <= tol * total or n_iter == max_iter:
                for other in _other_bounds(bound, before, latent_svm):
                    found = other.minimise(w, f, fall, **accuracy)
                    if found[1] < lower:
                        (new, lower), cuts = found[:2], None
                    if f - lower > tol * total:
                        break
        e = max(f - lower, 0.0)
        n_iter += 1
        if monitor.record(n_iter - 1, f, e / total, w):
            status = monitor.status
            break
        if n_iter > max_iter:
            break
        if model is not None:
            new, cuts = _smooth_step(bound, cuts, model, fall, parts.curved)
        value = objective.value(new)
        if not value < f:
            status = Status.STALLED
            break
        before, w, f, fall = w, new, value, f - value
    return monitor.result(min(n_iter, max_iter), status)


def _other_bounds(bound, before, latent_svm):
    """Bounds that touch f at the same w and may fall where the first one does not."""
    parts, w = bound.parts, bound.w
    if latent_svm:
        parts = ConvexParts(parts.objective)
        bound = _Bound(parts, w, None)
        yield bound
    slopes = [bound.slope]
    near = _NEAR * (float(np.linalg.norm(w)) or 1.0)
    directions = np.random.default_rng(0).standard_normal((_DIRECTIONS, len(w)))
    for direction in (before - w, *directions):
        size = float(np.linalg.norm(direction))
        if size > 0.0:
            other = _Bound(parts, w, None, w + (near / size) * direction)
            # hidden values that tie; where few do, directions choose the same ones
            if all(abs(other.slope - slope).max() > 0.0 for slope in slopes):
                slopes.append(other.slope)
                yield other


def _smooth_step(bound, cuts, model, fall, curved):
    """Next weights with finite orders, and the rows of the bound to keep.

    The bound's minimiser, or that of the model where the bound makes no progress. The
    model comes first if bounds are `curved`: quadratic forms need many tangents.
    """
    if curved and model.shorten(_SHORT):
        return model.new, cuts
    least = model.accuracy["tol"] * model.objective.total
    new, _, cuts = bound.minimise(model.w, model.f, fall, **model.accuracy)
    slow = model.f - model.objective.value(new) < least
    if slow and model.shorten(STUCK):
        new = model.new
    return new, cuts


class _Model:
    """The model of f at w in which scores of finite orders are linear.

    Attributes
    ----------
    new : ndarray (d,)
        Its minimiser with nu / 2 |z - w|^2, nu = 1 at first.
    lower : float
        A bound of that minimum from below.
    """

    def __init__(self, objective, w, f, accuracy):
        self.objective, self.w, self.f, self.accuracy = objective, w, f, accuracy
        self.bound, self.nu = _Bound(LinearParts(objective, w), w, None), 1.0
        self._minimise()

    def _minimise(self):
        self.new, self.lower, _ = self.bound.minimise(
            self.w, self.f, 0.0, nu=self.nu, **self.accuracy
        )

    def _is_true(self):
        """True if the decrease comes true by a tenth."""
        fall = self.f - self.objective.value(self.new)
        return fall >= _ENOUGH * (self.f - self.lower) > 0

    def shorten(self, most):
        """Raise nu, up to `most`, until the decrease comes true; whether it does."""
        while not self._is_true():
            if self.nu >= most:
                return False
            self.nu *= 4.0
            self._minimise()
        return True


class _Bound:
    """The convex upper bound of f that touches it at w_t.

    The concave part is linearised at `at`, w_t itself by default; another point gives
    an upper bound too, which touches f at w_t if the same hidden values are best there.
    """

    def __init__(self, parts, w, cuts, at=None):
        self.parts, self.w = parts, w
        i, y, right = parts.sample, parts.wrong, parts.right
        P, GP, Q, GQ = parts.at(w if at is None else at)
        # the concave part psi_y + phi_yi, linearised
        self.slope = parts.gradient(GQ, i, y) + parts.gradient(GP, i, right)
        self.level = Q[i, y] + P[i, right] - self.slope @ (w if at is None else at)
        if at is not None:
            P, GP, Q, GQ = parts.at(w)
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

    def minimise(self, w, f, fall, *, tol, qp_tol, nu=0.0):
        """Weights, a lower bound of the minimum, and the rows that matter.

        `fall` is about what f will fall by, as far as is known. With `nu` the bound has
        the term nu / 2 |z - w|^2.
        """
        total = self.parts.objective.total
        best, best_w, lower, violated = f, w, -np.inf, w
        for _ in range(_ROUNDS):
            # what is to be gained yet, or may be as far as the last bound knows
            most = max(fall, best - lower if lower > -np.inf and len(violated) else 0.0)
            far = most > _FAR * tol * total
            accuracy = max(qp_tol, _ACCURATE * most / max(f, total)) if far else qp_tol
            found = self._solve(w, nu, accuracy, total)
            lower = max(lower, found.objective - found.gap)
            value, violated, tangents = self._evaluate(found.w, tol)
            value += 0.5 * nu * float((found.w - w) @ (found.w - w))
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
        """Rows whose multipliers outweigh their distance from the slack.

        Rows that came after the last solution, at the end, are kept.
        """
        parts, own = self.parts, self.parts.sample[self.cuts[0]]
        rows, met = self._rows_at(found.w)
        far = parts.objective.c[own] * (met[own] - rows)
        used, solved = np.ones(len(own), dtype=bool), len(found.dual)
        used[:solved] = found.dual * parts.delta.max() > far[:solved]
        return used

    def _rows_at(self, w):
        """Shortfalls of the rows at w, and the slacks that they ask for."""
        pairs, slope, level = self.cuts
        rows = self.parts.delta[pairs] + level - self.level[pairs]
        rows -= (self.slope[pairs] - slope) @ w
        met = np.zeros(self.parts.objective.features.n)
        np.maximum.at(met, self.parts.sample[pairs], rows)
        return rows, met

    def _solve(self, center, nu, qp_tol, total):
        pairs, slope, level = self.cuts
        order = np.argsort(self.parts.sample[pairs], kind="stable")
        self.cuts = pairs, slope, level = pairs[order], slope[order], level[order]
        D = self.slope[pairs] - slope
        ell = self.parts.delta[pairs] + level - self.level[pairs]
        own = self.parts.sample[pairs]
        problem = MarginProblem(D, ell, self.parts.objective.c, own, ell.shape)
        return problem.solve(center, nu, tol=qp_tol, unit=total)

    def _evaluate(self, w, tol):
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
    return tuple(stacked(both) for both in zip(first, second, strict=True))
