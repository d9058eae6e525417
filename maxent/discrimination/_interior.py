"""Primal-dual interior point for small duals, with a certified stop.

    maximise  sum_r [ q_r lam_r + w_r g(lam_r / (w_r c_r)) ] - R(lam)
    subject to  lam >= 0,  E' lam = 0

R is convex with Hessian H(lam); the Newton system (H + D) dlam + E db = rhs is solved
through the `Regulariser`: a dense Cholesky factor, or Woodbury's identity where H has
low rank. The multiplier b of the equality is the bias.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from maxent._support.results import DualResult, Status, relative_gap
from maxent.discrimination.certificate import best_bias

_BLOCK = 512


class DenseQuadratic:
    """R(lam) = lam' Q lam / 2 with Q stored."""

    def __init__(self, Q):
        self.Q = Q

    def mean_diagonal(self):
        """Mean of the diagonal of Q."""
        return float(np.trace(self.Q)) / max(len(self.Q), 1) or 1.0

    def value_and_margins(self, lam):
        """R(lam) and its gradient."""
        margins = self.Q @ lam
        return 0.5 * float(lam @ margins), margins

    def solver(self, lam, diagonal):
        """Function that solves (H + diag) x = rhs."""
        A = self.Q.copy()
        A.flat[:: len(A) + 1] += diagonal
        L = blocked_cholesky(A)
        return lambda rhs: _solve_lower(L, rhs)

    def restricted(self, index, lam):
        """Newton systems over a subset of the multipliers, at lam."""
        return DenseQuadratic(self.Q[np.ix_(index, index)])


class LowRankQuadratic:
    """R(lam) = |Z' lam|^2 / 2 without Q: O(n r min(n, r)) a step, O(n r) memory."""

    def __init__(self, Z):
        self.Z = Z

    def mean_diagonal(self):
        """Mean of the diagonal of Z Z'."""
        return float(np.vdot(self.Z, self.Z)) / max(len(self.Z), 1) or 1.0

    def value_and_margins(self, lam):
        """R(lam) and its gradient."""
        w = self.Z.T @ lam
        return 0.5 * float(w @ w), self.Z @ w

    def scale(self, lam):
        """Curvature of R along each column of Z, (r,)."""
        return np.ones(self.Z.shape[1])

    def solver(self, lam, diagonal):
        """Function that solves (Z S Z' + diag) x = rhs."""
        n, r = self.Z.shape
        Z = self.Z * np.sqrt(self.scale(lam))
        if r > n:
            A = Z @ Z.T
            A.flat[:: n + 1] += diagonal
            L = blocked_cholesky(A)
            return lambda rhs: _solve_lower(L, rhs)
        # Woodbury's identity
        scaled = Z / diagonal[:, None]
        inner = Z.T @ scaled
        inner.flat[:: r + 1] += 1.0
        L = blocked_cholesky(inner)

        def solve(rhs):
            x = (rhs.T / diagonal).T
            return x - scaled @ _solve_lower(L, Z.T @ x)

        return solve

    def restricted(self, index, lam):
        """Newton systems over a subset of the multipliers, at lam."""
        return LowRankQuadratic(self.Z[index])


def blocked_cholesky(A):
    """Lower Cholesky factor of A (overwritten), by blocks so that Ctrl-C is seen."""
    n = len(A)
    for k in range(0, n, _BLOCK):
        e = min(k + _BLOCK, n)
        A[k:e, k:e] = cholesky(A[k:e, k:e], lower=True, check_finite=False)
        if e < n:
            A[e:, k:e] = solve_triangular(
                A[k:e, k:e], A[e:, k:e].T, lower=True, check_finite=False
            ).T
            for s in range(e, n, _BLOCK):
                t = min(s + _BLOCK, n)
                A[s:t, e:t] -= A[s:t, k:e] @ A[e:t, k:e].T
    return A


def _solve_lower(L, rhs):
    x = solve_triangular(L, rhs, lower=True, check_finite=False)
    return solve_triangular(L, x, lower=True, trans="T", check_finite=False)


def newton_direction(solve, rhs, E, lack):
    """dlam, db of (H + D) dlam + E db = rhs, E' dlam = lack."""
    if E is None:
        return solve(rhs), None
    both = solve(np.column_stack([rhs, E]))
    x, S = both[:, 0], both[:, 1:]
    db = np.linalg.lstsq(E.T @ S, E.T @ x - lack, rcond=None)[0]
    return x - S @ db, db


def longest_step(x, dx, bound=None):
    """Largest t <= 1 with x + t dx >= 0 (and <= bound)."""
    t = 1.0
    down = dx < 0
    if down.any():
        t = min(t, float(np.min(-x[down] / dx[down])))
    if bound is not None:
        up = dx > 0
        if up.any():
            t = min(t, float(np.min((bound[up] - x[up]) / dx[up])))
    return t


def best_bias_of(rows, d, E, guess):
    """Bias of smallest gap for shortfalls d (bias excluded); vector if E has columns.

    For several biases (one gauge removed) a damped Newton method.
    """
    if E is None:
        return None
    if E.shape[1] == 1:
        return np.array([best_bias(rows, d, E[:, 0], float(guess[0]))])
    b = guess.copy()
    if rows.margin.name == "fixed":
        return b
    value, lam, curvature = rows.loss(d - E @ b)
    for _ in range(50):
        if not curvature.any():
            break  # piecewise linear here: the interior point's own bias stands
        grad = -(E.T @ lam)
        H = (E.T * curvature) @ E
        H.flat[:: len(H) + 1] += 1e-14 * max(np.trace(H), 1e-300)
        step = np.linalg.lstsq(H, -grad, rcond=None)[0]
        slope, t = float(grad @ step), 1.0
        if not slope < 0:
            break
        while t > 1e-10:
            new = rows.loss(d - E @ (b + t * step))
            if new[0] <= value + 1e-4 * t * slope:
                break
            t *= 0.5
        else:
            break
        done = value - new[0] <= 1e-16 * abs(value)
        b = b + t * step
        value, lam, curvature = new
        if done:
            break
    return b


def repair_equality(lam, upper, E):
    """Feasible multipliers with E' lam = 0 near ones that miss it by a little.

    The correction is spread over multipliers by the square of their room, so none
    leaves its domain and zeros stay zero. One equality that is missed by much is
    met by scaling the heavier side down, which is always possible. Returns None if
    several equalities cannot be met this way.
    """
    if E is None:
        return lam
    for _ in range(4):
        lack = E.T @ lam
        if (np.abs(lack) <= 1e-14 * (np.abs(E.T) @ lam)).all():
            return lam
        room = np.minimum(lam, np.where(np.isfinite(upper), upper - lam, np.inf))
        W = np.maximum(room, 0.0) ** 2
        move = W * (E @ np.linalg.lstsq((E.T * W) @ E, lack, rcond=None)[0])
        if (np.abs(move) > 0.5 * room).any():
            break
        lam = lam - move
    if E.shape[1] > 1:
        return None
    side = E[:, 0] * lam
    up, down = side[side > 0].sum(), -side[side < 0].sum()
    if up == 0 or down == 0:
        return np.zeros_like(lam)
    factor = np.where(side > 0, min(1.0, down / up), min(1.0, up / down))
    return lam * factor


def certify(rows, R, lam, E, guess):
    """(objective, gap, bias, shortfalls); the gap is infinite at infeasible ones."""
    if lam is None:
        return -np.inf, np.inf, guess, rows.q
    value, margins = R.value_and_margins(lam)
    d = rows.q - margins
    b = best_bias_of(rows, d, E, guess)
    if E is not None:
        d = d - E @ b
    objective = rows.potential(lam) - value
    if rows.margin.name == "fixed":
        return objective, rows.hard_gap(d, 2 * value, objective), b, d
    return objective, rows.gap(lam, d), b, d


def interior_point(rows, R, E, *, tol, max_iter, init=None):
    """Solve the dual; returns a DualResult (lam, bias vector, certificate).

    Parameters
    ----------
    rows : Rows
    R : regulariser with value_and_margins, solver, restricted
    E : ndarray (n, k) or None
    tol : float
        Stop when gap <= tol * (1 + objective).
    init : ndarray or None
        Warm start; moved into the interior.
    """
    n = len(rows.q)
    upper = rows.upper
    closed = rows.margin._closed
    k = 0 if E is None else E.shape[1]
    most = 1e12 * max(1.0, 1.0 / max(R.mean_diagonal(), 1e-300))
    lam = _start(rows, R, E, upper, init)
    b = np.zeros(k)
    z, t = _start_slacks(rows, R, lam, upper)
    history, best, status, iteration = [], None, Status.MAX_ITER, 0
    for iteration in range(1, max_iter + 1):
        _, margins = R.value_and_margins(lam)
        d = rows.q - margins - (E @ b if k else 0.0)
        slope = rows.slope(lam)
        diagonal = rows.curvature(lam) + z / lam
        room = None
        if closed:
            room = np.maximum(upper - lam, 1e-16 * upper)
            diagonal = diagonal + t / room
        try:
            solve = R.solver(lam, diagonal)
        except np.linalg.LinAlgError:
            status = Status.STALLED
            break
        lack = -(E.T @ lam) if k else None

        point = (lam, z, t, room, d + slope, lack)
        step, db, dz, dt = _direction(solve, E, point, 0.0)
        # the affine step tells how much of the complementarity can go
        a = _step_length(lam, step, z, dz, t, dt, upper, 1.0)
        total = lam @ z + (room @ t if closed else 0.0)
        after = (lam + a * step) @ (z + a * dz)
        if closed:
            after += (room - a * step) @ (t + a * dt)
        sigma = min(max((after / total) ** 3, 1e-6), 0.5)
        mu = sigma * total / (n * (2 if closed else 1))
        step, db, dz, dt = _direction(solve, E, point, mu)
        a = _step_length(lam, step, z, dz, t, dt, upper, 0.99)
        a = _damp(rows, R, E, lam, b, z, t, step, db, dz, dt, a)
        lam = lam + a * step
        z = z + a * dz
        if k:
            b = b + a * db
        if closed:
            t = t + a * dt
        if not np.isfinite(lam).all():
            status = Status.NONFINITE
            break
        trial = repair_equality(lam, upper, E)
        J, gap, bias, d = certify(rows, R, trial, E, b)
        history.append((iteration, J, gap))
        if trial is not None and (best is None or gap < best[2]):
            best = (trial, J, gap, bias, d)
        if relative_gap(gap, J) <= min(tol, 1e-12):
            break
        slow = len(history) > 5 and gap > 0.5 * history[-4][2]
        if slow and relative_gap(best[2], best[1]) <= tol:
            break
        if most * max(1.0, float(np.abs(rows.q).max(initial=0.0))) < J:
            status = Status.UNBOUNDED
            break
        if total < 1e-18 * (1 + max(J, 0.0)):
            status = Status.STALLED
            break
    if best is None:
        lam = np.zeros(n)
        J, gap, bias, d = certify(rows, R, lam, E, b)
        best = (lam, J, gap, bias, d)
    best = _polish(rows, R, E, best)
    lam, J, gap, bias, _ = best
    if relative_gap(gap, J) <= tol:
        status = Status.CONVERGED
    elif status is Status.CONVERGED:
        status = Status.STALLED
    return DualResult(
        lam, bias, J, gap, iteration, status, solver="interior", history=history
    )


def _direction(solve, E, point, target):
    """Newton direction towards complementarity `target`."""
    lam, z, t, room, stationarity, lack = point
    rhs = stationarity + target / lam
    if t is not None:
        rhs = rhs - target / room
    step, db = newton_direction(solve, rhs, E, lack)
    dz = target / lam - z - z / lam * step
    dt = None if t is None else target / room - t + t / room * step
    return step, db, dz, dt


def _start(rows, R, E, upper, init):
    """Interior start: a tenth of the domain, or as far as the quadratic pays for.

    Open domains have their own barrier, which makes a start far out the better one;
    boxes and unbounded domains start near the best point of a uniform ray.
    """
    unbounded = ~np.isfinite(upper)
    lam = 0.1 * np.where(unbounded, rows.weight * rows.rate, upper)
    if unbounded.any() or rows.margin._closed:
        balanced = repair_equality(lam, upper, E)
        lam = lam if balanced is None else np.maximum(balanced, 1e-3 * lam)
        value, _ = R.value_and_margins(lam)
        if value > 0:
            pull = rows.q + rows.slope(1e-3 * lam)
            far = float(np.abs(pull) @ lam) / (2.0 * value)
            lam = lam * (far if unbounded.all() else min(far, 1.0))
    if init is None:
        return lam
    lam = np.maximum(init, 1e-2 * lam)
    return np.where(unbounded, lam, np.minimum(lam, (1 - 1e-3) * upper))


def _start_slacks(rows, R, lam, upper):
    """Slacks of lam >= 0 and, for a box, of its top: stationary where that is cheap."""
    if not rows.margin._closed:
        mu = 0.1 * float(np.mean(lam * np.maximum(np.abs(rows.q), 1e-3)))
        return mu / lam, None
    _, margins = R.value_and_margins(lam)
    r = rows.q - margins + rows.slope(lam)
    mu = 0.1 * float(np.mean(lam * np.abs(r))) + 1e-10
    return np.maximum(-r, 0.0) + mu / lam, np.maximum(r, 0.0) + mu / (upper - lam)


def _step_length(lam, step, z, dz, t, dt, upper, keep):
    bound = np.where(np.isfinite(upper), upper, np.inf)
    a = longest_step(lam, step, bound)
    a = min(a, longest_step(z, dz))
    if t is not None:
        a = min(a, longest_step(t, dt))
    return keep * a if a < 1.0 or keep == 1.0 else 1.0


def _residual(rows, R, E, lam, b, z, t):
    _, margins = R.value_and_margins(lam)
    r = rows.q - margins + rows.slope(lam) + z
    if E is not None:
        r = r - E @ b
    if t is not None:
        r = r - t
    return float(np.linalg.norm(r))


def _damp(rows, R, E, lam, b, z, t, step, db, dz, dt, a):
    """Halve the step while the residual of the optimality condition explodes."""
    before = _residual(rows, R, E, lam, b, z, t)
    for _ in range(30):
        now = _residual(
            rows,
            R,
            E,
            lam + a * step,
            None if E is None else b + a * db,
            z + a * dz,
            None if t is None else t + a * dt,
        )
        if now <= 10.0 * before + 1e-6 * (1.0 + float(np.abs(rows.q).max(initial=0.0))):
            return a
        a *= 0.5
    return a


def _polish(rows, R, E, best):
    """Set the multipliers of inactive rows to exactly zero and finish by Newton.

    Accepted only if the certificate improves (or stays at rounding level).
    """
    lam, J, gap, bias, d = best
    _, wanted, _ = rows.loss(d)
    upper = rows.upper
    floor = 1e-7 * np.where(np.isfinite(upper), upper, lam.max(initial=0.0))
    free = (wanted > 0) | (lam > floor)
    if rows.margin._closed:
        at_top = (d > 0) & (lam > (1 - 1e-7) * upper)
        free = (lam > floor) & (lam < (1 - 1e-7) * upper)
    if not free.any():
        return best
    new = np.where(free, lam, 0.0)
    if rows.margin._closed:
        new[at_top | (lam >= (1 - 1e-7) * upper)] = upper[
            at_top | (lam >= (1 - 1e-7) * upper)
        ]
    index = np.flatnonzero(free)
    Rf, rf = R.restricted(index, lam), rows.subset(index)
    Ef = None if E is None else E[index]
    b = bias
    for _ in range(3):
        _, margins = R.value_and_margins(new)
        rhs = (rows.q - margins + rows.slope(new))[index]
        if E is not None:
            rhs = rhs - Ef @ b
        diagonal = rf.curvature(new[index])
        scale = 1e-12 * max(float(np.abs(diagonal).max(initial=0.0)), 1e-3)
        try:
            solve = Rf.solver(new[index], diagonal + scale)
        except np.linalg.LinAlgError:
            return best
        lack = None if E is None else -(E.T @ new)
        step, db = newton_direction(solve, rhs, Ef, lack)
        bound = np.where(np.isfinite(rf.upper), rf.upper, np.inf)
        a = longest_step(new[index], step, bound)
        a = 1.0 if a >= 1.0 else 0.9 * a
        new[index] = new[index] + a * step
        if E is not None:
            b = b + a * db
    new = repair_equality(np.maximum(new, 0.0), upper, E)
    J2, gap2, bias2, d2 = certify(rows, R, new, E, b)
    if np.isfinite(gap2) and gap2 <= gap + 1e-15 * (1 + abs(J)):
        return new, J2, gap2, bias2, d2
    # sparsity alone, where Newton did not help
    new = repair_equality(np.where(free, lam, 0.0), upper, E)
    J2, gap2, bias2, d2 = certify(rows, R, new, E, bias)
    if np.isfinite(gap2) and gap2 <= max(2 * gap, 1e-15 * (1 + abs(J))):
        return new, J2, gap2, bias2, d2
    return best
