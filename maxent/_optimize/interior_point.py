"""Primal-dual interior point for small duals, with a certified stop.

    maximise  sum_r [ q_r lam_r + w_r g(lam_r / (w_r c_r)) ] - R(lam)
    subject to  lam >= 0,  E' lam = total

R is convex with Hessian H(lam); the Newton system (H + D) dlam + E db = rhs is solved
through R itself (see :mod:`._quadratics`). The multiplier b of the equality is the
bias.
"""

from __future__ import annotations

import math

import numpy as np

from maxent._optimize.certificate import certify, repair_equality
from maxent._optimize.interior_start import start_inside
from maxent._optimize.vanishing_slacks import certify_with_slack_duals
from maxent._support.linalg import small_solve
from maxent._support.results import DualResult, Status, relative_gap

_LAST = 1.0 - 1e-15  # how near multipliers come to the end of an open domain
_IDLE = 100  # steps without one per cent off the gap, after which no more will come
_NEAR = 1e-3  # the relative gap from which on the best bias matters


def bordered(solve, E):
    """Function of (rhs, lack): dlam, db of (H + D) dlam + E db = rhs, E' dlam = lack.

    `solve` answers for H + D alone; what it says of E is asked once.
    """
    if E is None:
        return lambda rhs, lack: (solve(rhs), None)
    S = solve(E)
    along = E.T @ S

    def solve_both(rhs, lack):
        x = solve(rhs)
        db = small_solve(along, E.T @ x - lack)
        return x - S @ db, db

    return solve_both


def longest_step(x, dx, bound=None):
    """Largest t <= 1 with x + t dx >= 0 (and <= bound)."""
    with np.errstate(all="ignore"):  # 0 / 0 is no end: fmax passes over it
        most = np.fmax.reduce(-dx / x, initial=1.0)
        if bound is not None:
            most = max(most, np.fmax.reduce(dx / (bound - x), initial=1.0))
    return 1.0 / float(most)


def interior_point(
    rows,
    R,
    E,
    *,
    tol,
    max_iter,
    init=None,
    certified=None,
    callback=None,
):
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
    certified : Rows or None
        The rows whose certificate is wanted, if they differ a little from `rows`.
    callback : callable(n_iter, objective, gap) or None
    """
    goal = rows if certified is None else certified
    n = len(rows.q)
    upper = rows.upper
    closed = rows.potential.has_end
    k = 0 if E is None else E.shape[1]
    unit = 0.0 if rows.potential.hard else 1.0
    largest = float(np.abs(rows.q).max(initial=0.0))
    most = 1e12 * max(1.0, 1.0 / max(R.mean_diagonal(), 1e-300))
    most *= max(1.0, largest) ** 2
    lam, b, z, t, walls = start_inside(rows, R, E, init)
    # quadratics are cheap enough to go on to the last digit
    enough = min(tol, 1e-12) if R.homogeneous else tol
    history, best, status, iteration = [], None, Status.MAX_ITER, 0
    pull = _pull(rows, R, E, lam, b)
    mark = (0, np.inf, -np.inf)
    for iteration in range(1, max_iter + 1):
        residual = _residual(pull + walls.pull(), z, t)
        diagonal = rows.curvature(lam) + z / lam
        room = None
        if closed:
            room = np.maximum(upper - lam, 1e-16 * upper)
            diagonal = diagonal + t / room
        try:
            solve = bordered(walls.solver(lam, diagonal), E)
        except np.linalg.LinAlgError:
            status = Status.STALLED
            break
        lack = _lack(E, lam)

        point = (lam, z, t, room, pull, lack)
        step, db, dz, dt = _direction(solve, point, 0.0, 0.0)
        move = walls.along(step, walls.below(0.0))
        # the affine step tells how much of the complementarity can go, and what the
        # linear model of the products neglects (Mehrotra 1992); counted in full, short
        # steps can run in circles
        a = _step_length(lam, step, z, dz, t, dt, upper, 1.0)
        a = min(a, walls.room(move))
        products = lam @ z + (room @ t if closed else 0.0)
        after = (lam + a * step) @ (z + a * dz)
        if closed:
            after += (room - a * step) @ (t + a * dt)
        products, after = products + walls.products(), after + walls.products(move, a)
        sigma = min(max((after / products) ** 3, 1e-6), 0.5)
        mu = sigma * products / (n * (2 if closed else 1) + walls.count)
        if walls.count:
            # complementarity must not go ahead of the conditions on the slopes
            d = pull + walls.pull() - rows.slope(lam)
            ahead = rows.gap(lam, d) > products
            mu = max(mu, (0.3 if ahead else 0.1) * products / (n + walls.count))
        elif not R.homogeneous and rows.potential.finite_at_zero:
            # slacks that vanish long before the slopes do hold multipliers at zero;
            # infinite slopes do not, and change by log(10) where mu changes tenfold
            mu = max(mu, 1e-6 * residual / math.sqrt(n) * float(lam.mean()))
        below = mu - a * step * dz
        above = mu + a * step * dt if closed else None
        wanted = walls.below(mu, move, a)
        point = (lam, z, t, room, pull + walls.push(wanted), lack)
        step, db, dz, dt = _direction(solve, point, below, above)
        move = walls.along(step, wanted)
        a = _step_length(lam, step, z, dz, t, dt, upper, 0.99)
        a = min(a, 0.99 * R.max_step(lam, step), 0.99 * walls.room(move))
        most_pull = 10.0 * residual + 1e-6 * (1.0 + largest)
        a, lam, pull = _damp(
            rows, R, E, point, b, step, db, dz, dt, a, most_pull, walls, move
        )
        if a == 0.0:  # no point of the domain is left on the way
            status = Status.STALLED
            break
        z = z + a * dz
        walls.go(lam, move, a)
        if k:
            b = b + a * db
        if closed:
            t = t + a * dt
        if not np.isfinite(lam).all():
            status = Status.NONFINITE
            break
        trial = repair_equality(lam, upper, E)
        J, gap, best_b, d = certify(goal, R, trial, E, b, polish=False)
        if relative_gap(gap, J) <= _NEAR:
            J, gap, best_b, d = certify(goal, R, trial, E, b)
        blocks = None
        if walls.count and relative_gap(gap, J) > tol and -np.inf < J:
            found = certify_with_slack_duals(
                *(goal, R, E, trial, gap, best_b, walls),
                target=tol * (1.0 + max(J, 0.0)),
            )
            if found is not None:
                gap, best_b, blocks = found
        history.append((iteration, J, gap))
        if callback is not None:
            callback(iteration, J, gap)
        if -np.inf < J and (best is None or gap < best[2]):
            best = (trial, J, gap, best_b, d, blocks)
        if relative_gap(gap, J) <= enough:
            break
        if gap < 0.99 * mark[1] or mark[2] + 1e-6 * abs(J) < J:
            mark = iteration, gap, J
        if iteration - mark[0] > _IDLE:
            status = Status.STALLED
            break
        slow = len(history) > 5 and gap > 0.5 * history[-4][2]
        if slow and best is not None and relative_gap(best[2], best[1]) <= tol:
            break
        if most < J:
            status = Status.UNBOUNDED
            break
        # Newton's steps may still be on their way when all slacks have vanished
        gone = products < 1e-18 * (unit + max(J, 0.0))
        if gone and (slow or products < 1e-200):
            status = Status.STALLED
            break
    if best is None:
        lam = np.zeros(n)
        best = (lam, *certify(goal, R, lam, E, b), None)
    elif relative_gap(best[2], best[1]) > _NEAR and best[5] is None:
        best = (best[0], *certify(goal, R, best[0], E, best[3]), None)
    polished = best
    if best[1] > -np.inf and best[5] is None:
        polished = _polish(rows, goal, R, E, best[:5])
    # zeros are not worth the tolerance
    met, still_met = (relative_gap(s[2], s[1]) <= tol for s in (best, polished))
    lam, J, gap, bias, _, *blocks = polished if still_met or not met else best
    blocks = blocks[0] if blocks else None
    if relative_gap(gap, J) <= tol:
        status = Status.CONVERGED
    elif status is Status.CONVERGED:
        status = Status.STALLED
    return DualResult(
        lam, bias, J, gap, iteration, status, "interior", history=history, blocks=blocks
    )


def _lack(E, lam):
    """What is missing in the equalities; None without any."""
    return None if E is None else -(E.T @ lam)


def _direction(solve, point, below, above):
    """Newton direction towards lam z = below and, for a box, room t = above."""
    lam, z, t, room, stationarity, lack = point
    rhs = stationarity + below / lam
    if t is not None:
        rhs = rhs - above / room
    step, db = solve(rhs, lack)
    dz = below / lam - z - z / lam * step
    dt = None if t is None else above / room - t + t / room * step
    return step, db, dz, dt


def _step_length(lam, step, z, dz, t, dt, upper, keep):
    """Largest step <= 1 that stays inside, a share `keep` of it if it is below 1."""
    a = min(longest_step(lam, step, upper), longest_step(z, dz))
    if t is not None:
        a = min(a, longest_step(t, dt))
    # from far beyond the answer, a whole step ends at zero by rounding
    inside = (lam + step > 0).all() and (z + dz > 0).all()
    return 1.0 if a >= 1.0 and inside else keep * a


def _pull(rows, R, E, lam, b):
    """Slope of the dual in every multiplier, slacks aside; None outside the domain."""
    value, margins = R.value_and_margins(lam)
    if value == np.inf:
        return None
    pull = rows.q - margins + rows.slope(lam)
    if E is not None:
        pull = pull - E @ b
    if not rows.potential.closed:
        # beyond the last number below the end of an open domain nothing can be asked
        pull[(lam >= _LAST * rows.upper) & (pull > 0)] = 0.0
    return pull


def _residual(pull, z, t):
    """Norm of the optimality condition."""
    r = pull + z if t is None else pull + z - t
    return math.sqrt(r @ r)


def _damp(rows, R, E, point, b, step, db, dz, dt, a, most, walls, move):
    """Step length, new multipliers, and the slopes there.

    The step is halved while it leaves the domain of R, which rounding or a block's own
    `max_step` may misjudge, and while the residual explodes beyond `most`.
    """
    lam, z, t, *_ = point
    for _ in range(31):
        new = _rebalanced(lam + a * step, rows.upper, E)
        there = _pull(rows, R, E, new, b if E is None else b + a * db)
        now = np.inf
        if there is not None:
            ends = z + a * dz, None if t is None else t + a * dt
            now = _residual(there + walls.pull(move, a), *ends)
        if now <= most:
            break
        a *= 0.5
    return (a, new, there) if now < np.inf else (0.0, lam, None)


def _rebalanced(lam, upper, E):
    """Multipliers freed of what rounding has added to E' lam.

    The certificate at the next point then needs no second evaluation of R.
    """
    lam = np.minimum(lam, _LAST * upper)
    if E is None:
        return lam
    lack, size = np.abs(_lack(E, lam)), np.abs(E.T) @ lam
    if (lack > 1e-10 * size).any():
        return lam
    new = repair_equality(lam, upper, E)
    return lam if new is None else new


def _polish(rows, goal, R, E, best):
    """Set the multipliers of inactive rows to exactly zero and finish by Newton.

    Accepted only if the certificate improves (or stays at rounding level).
    """
    lam, J, gap, bias, d = best
    _, wanted, _ = rows.loss(d)
    upper = rows.upper
    top = np.where(np.isfinite(upper), upper, max(lam.max(initial=0.0), 1e-300))
    floor = 1e-7 * top
    # of a pair (multiplier, slack) the smaller one, by its own scale, is on its way out
    slack = -(d + rows.slope(lam)) / max(float(np.abs(rows.q).max()), 1e-3)
    free = (wanted > 0) | (lam > np.maximum(slack, 1e-7) * top)
    at_end = lam >= _LAST * upper
    if rows.potential.closed:
        at_end = lam >= (1 - 1e-7) * upper
        free = lam > floor
    free &= ~at_end
    if not free.any():
        return best
    new = np.where(free | at_end, lam, 0.0)
    if rows.potential.closed:
        new[at_end] = upper[at_end]
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
            solve = bordered(Rf.solver(new[index], diagonal + scale), Ef)
        except np.linalg.LinAlgError:
            return best
        lack = _lack(E, new)
        step, db = solve(rhs, lack)
        a = longest_step(new[index], step, rf.upper)
        a = 1.0 if a >= 1.0 else 0.9 * a
        new[index] = np.minimum(new[index] + a * step, _LAST * rf.upper)
        if E is not None:
            b = b + a * db
        if (np.abs(step) <= 1e-8 * new[index]).all():
            break  # the gap left is the square of less than this
    new = repair_equality(np.maximum(new, 0.0), upper, E)
    J2, gap2, bias2, d2 = certify(goal, R, new, E, b)
    # margins that are all met as asked leave the difference of the two levels open
    slack = float((rows.q - goal.q) @ lam) + 1e-15 * (1 + abs(J))
    if np.isfinite(gap2) and gap2 <= gap + slack:
        return new, J2, gap2, bias2, d2
    # sparsity alone, where Newton did not help
    new = repair_equality(np.where(free | at_end, lam, 0.0), upper, E)
    J2, gap2, bias2, d2 = certify(goal, R, new, E, bias)
    if np.isfinite(gap2) and gap2 <= max(2 * gap, 1e-15 * (1 + abs(J))):
        return new, J2, gap2, bias2, d2
    return best
