"""Certified maximisation of the generic dual: cvxopt, Newton polish, gap check.

    max_{lam}  J(lam) = sum_i phi_i(lam_i) + lin'lam - S(lam)
    s.t.       0 <= lam_i (< or <=) cap_i,   A lam = 0,

with S convex (``lam'Q lam / 2``, or the cumulant of the switches). cvxopt finds the
solution to 1e-7 or so, a few active-set Newton steps on the KKT system take it to
rounding error, and the duality gap is checked before anything is returned. The
multiplier ``nu`` of the equality is the bias; the margins are
``m = grad S - lin + A'nu``.
"""

import contextlib
from itertools import product

import numpy as np
from cvxopt import matrix, solvers

from .closed_forms import Potentials

_GAP_LIMIT = 1e-8  # relative; the polished solutions are near 1e-14


class Dual:
    """One instance of the generic dual."""

    def __init__(self, pots, smooth, lin, A, quadratic=None, canonical=None):
        self.pots, self.smooth, self.lin = pots, smooth, lin
        self.A = np.zeros((0, pots.n)) if A is None else np.atleast_2d(A)
        self.quadratic = quadratic  # Q, when S(lam) = lam'Q lam / 2
        # picks one of several equivalent lam, where lam is not unique
        self.canonical = canonical or (lambda lam: lam)

    def objective(self, lam):
        value = self.smooth(lam)[0]
        return float(np.sum(self.pots.value(lam)) + self.lin @ lam - value)

    def margins(self, lam, nu):
        return self.smooth(lam)[1] - self.lin + self.A.T @ nu


def quadratic(Q):
    """``S(lam) = lam'Q lam / 2`` with its gradient and Hessian."""

    def smooth(lam):
        grad = Q @ lam
        return 0.5 * lam @ grad, grad, Q

    return smooth


# ---------------------------------------------------------------- cvxopt


def _scale(dual, wide):
    """Typical size of one multiplier: from its 1-D problem, or (wide) its upper end."""
    if wide:
        soft = dual.pots.weight * dual.pots.rate**2  # slope of the gaussian's loss
        return 0.5 * np.where(np.isfinite(dual.pots.cap), dual.pots.cap, soft)
    curvature = np.diag(dual.smooth(np.zeros(dual.pots.n))[2])
    if dual.pots.kind != "logistic":
        curvature = curvature - dual.pots.d2(np.zeros(dual.pots.n))
    pull = np.mean(np.abs(dual.pots.level) + np.abs(dual.lin)) + 1e-3
    size = pull / max(float(np.mean(curvature)), 1e-12)
    return np.minimum(size, 0.5 * dual.pots.cap)


def _constraints(dual, scale):
    """cvxopt's G, h, A, b in the scaled variables x = lam / scale."""
    n, pots = dual.pots.n, dual.pots
    G, h = -np.eye(n), np.zeros(n)
    if pots.kind == "hinge":
        G, h = np.vstack([G, np.eye(n)]), np.concatenate([h, pots.cap / scale])
    if not dual.A.size:
        return matrix(G), matrix(h), None, None
    rows = dual.A * scale
    rows = rows / np.max(np.abs(rows), axis=1, keepdims=True)
    return matrix(G), matrix(h), matrix(rows), matrix(np.zeros(len(rows)))


@contextlib.contextmanager
def _options(tol):
    saved = dict(solvers.options)
    solvers.options.update(
        show_progress=False, abstol=tol, reltol=tol, feastol=tol, maxiters=100
    )
    try:
        yield
    finally:
        solvers.options.clear()
        solvers.options.update(saved)


def _run_qp(dual, tol, wide):
    """Quadratic potentials: gaussian, fixed, hinge."""
    pots, n = dual.pots, dual.pots.n
    scale = _scale(dual, wide)
    hessian = dual.quadratic - np.diag(pots.d2(np.zeros(n)))
    P = hessian * np.outer(scale, scale)
    q = -(pots.level + dual.lin) * scale
    unit = max(np.max(np.abs(q)), 1e-300)
    G, h, A, b = _constraints(dual, scale)
    with _options(tol):
        sol = solvers.qp(matrix(P / unit), matrix(q / unit), G, h, A, b)
    return scale * np.array(sol["x"]).ravel()


def _run_cp(dual, tol, wide):
    """General potentials, by the nonlinear convex solver."""
    pots, n = dual.pots, dual.pots.n
    scale = _scale(dual, wide)
    unit = float(np.mean((np.abs(pots.level) + np.abs(dual.lin)) * scale)) + 1e-12
    G, h, A, b = _constraints(dual, scale)

    def F(x=None, z=None):
        if x is None:
            return 0, matrix(0.5, (n, 1))
        lam = scale * np.array(x).ravel()
        if not pots.inside(lam):
            return None
        value, grad, hessian = dual.smooth(lam)
        f = value - np.sum(pots.value(lam)) - dual.lin @ lam
        df = (grad - pots.d1(lam) - dual.lin) * scale
        if z is None:
            return matrix(f / unit), matrix(df / unit, (1, n))
        H = (hessian - np.diag(pots.d2(lam))) * np.outer(scale, scale)
        return matrix(f / unit), matrix(df / unit, (1, n)), matrix(z[0] * H / unit)

    with _options(tol):
        sol = solvers.cp(F, G, h, A=A, b=b)
    return scale * np.array(sol["x"]).ravel()


# ---------------------------------------------------------------- polish


def _solve_symmetric(H, A, rhs):
    """Solve [H A'; A 0] x = rhs after scaling H to unit diagonal."""
    n, q = len(H), len(A)
    d = 1.0 / np.sqrt(np.maximum(np.diag(H), 1e-300))
    rows = A * d
    e = 1.0 / np.maximum(np.sqrt(np.sum(rows**2, axis=1)), 1e-300)
    M = np.zeros((n + q, n + q))
    M[:n, :n] = H * np.outer(d, d)
    M[n:, :n] = rows * e[:, None] if n else 0.0
    M[:n, n:] = M[n:, :n].T
    s = np.concatenate([d, e])
    if n and q <= n and np.linalg.cond(M) < 1e13:
        return s * np.linalg.solve(M, s * rhs)
    return s * np.linalg.lstsq(M, s * rhs, rcond=1e-13)[0]


def _first_nu(dual, lam):
    """Least-squares bias over the multipliers that are clearly inside."""
    A, pots = dual.A, dual.pots
    if not A.size:
        return np.zeros(0)
    r = dual.smooth(lam)[1] - dual.lin - pots.d1(lam)
    free = lam > 1e-6 * np.max(lam)
    if pots.kind == "hinge":
        free &= lam < (1.0 - 1e-6) * pots.cap
    if not free.any():
        free[:] = True
    weight = 1.0 / np.sqrt(1.0 - pots.d2(lam)[free])
    return -np.linalg.lstsq((A[:, free] * weight).T, r[free] * weight, rcond=None)[0]


def _polish(dual, lam, max_iter=100):
    """Active-set (semismooth) Newton on the KKT conditions; returns the best point."""
    pots, A = dual.pots, dual.A
    lam = dual.canonical(np.clip(lam, 0.0, pots.cap))
    if pots.kind not in ("gaussian", "fixed", "hinge"):
        lam = np.minimum(lam, pots.cap * (1.0 - 1e-14))
    nu = _first_nu(dual, lam)
    best, since = (np.inf, lam, nu), 0
    for _ in range(max_iter):
        _, grad, H = dual.smooth(lam)
        H = H - np.diag(pots.d2(lam))
        r = grad - dual.lin + A.T @ nu - pots.d1(lam)
        tau = 1.0 / np.maximum(np.diag(H), 1e-300)
        z = lam - tau * r
        low = z <= 0.0
        up = z >= pots.cap if pots.kind == "hinge" else np.zeros(pots.n, bool)
        free = ~(low | up)
        step = np.where(low, -lam, np.where(up, pots.cap - lam, -tau * r))
        size = np.max(np.abs(lam)) + 1e-300
        error = np.max(np.abs(step)) / size
        if A.size:
            error = max(error, np.max(np.abs(A @ lam)) / size)
        if error < best[0]:
            since = 0 if error < 0.5 * best[0] else since + 1
            best = (error, lam, nu)
        else:
            since += 1
        if error < 1e-15 or since > 8:
            break
        fixed = ~free
        rhs = np.concatenate(
            [
                -r[free] - H[np.ix_(free, fixed)] @ step[fixed],
                -A @ lam - A[:, fixed] @ step[fixed],
            ]
        )
        move = _solve_symmetric(H[np.ix_(free, free)], A[:, free], rhs)
        step[free] = move[: free.sum()]
        new = lam + step
        # stay inside the open domain: at most 90 % of the way to its border
        ratio = 1.0
        if pots.kind not in ("gaussian", "fixed", "hinge"):
            room = pots.cap - lam
            over = new > lam + 0.9 * room
            if over.any():
                ratio = min(ratio, float(np.min(0.9 * room[over] / step[over])))
        lam = dual.canonical(lam + ratio * step)
        lam = np.maximum(lam, -0.4 * np.minimum(pots.cap, 1e300))
        nu = nu + ratio * move[free.sum() :]
    lam = np.clip(best[1], 0.0, pots.cap)
    return lam, best[2]


def _polish_logistic(dual, lam, nu=None, max_iter=200):
    """Newton with line search on the primal risk, for a loss that is never flat.

    Unknowns: alpha, which places the posterior, and nu. Stationarity of
    ``G = alpha'grad S - S + sum ell(m)`` is ``alpha = slope(m)``, ``A slope(m) = 0``;
    this resolves multipliers that are 0 or cap to machine precision.
    """
    pots, A, n = dual.pots, dual.A, dual.pots.n
    alpha = np.clip(lam, 1e-9 * pots.cap, (1.0 - 1e-9) * pots.cap)
    nu = _first_nu(dual, alpha) if nu is None else nu

    def risk(alpha, nu):
        value, grad, _ = dual.smooth(alpha)
        m = grad - dual.lin + A.T @ nu
        return float(alpha @ grad - value + np.sum(pots.loss(m)))

    G, best = risk(alpha, nu), (np.inf, alpha, nu)
    for _ in range(max_iter):
        H = dual.smooth(alpha)[2]
        lam = pots.slope(dual.margins(alpha, nu))
        error = np.max(np.abs(alpha - lam)) / (np.max(lam) + 1e-300)
        if A.size:
            error = max(error, np.max(np.abs(A @ lam)) / (np.max(lam) + 1e-300))
        if error < best[0]:
            best = (error, lam, nu)
        elif error < 1e-9:
            break
        D = pots.rate * lam * pots.slope(2.0 * pots.level - dual.margins(alpha, nu))
        D = D / pots.cap
        rest = np.concatenate([alpha - lam, A @ lam])
        M = np.block(
            [[np.eye(n) + D[:, None] * H, D[:, None] * A.T], [-A * D @ H, -A * D @ A.T]]
        )
        scale = np.max(np.abs(M), axis=1) + 1e-300
        move = -np.linalg.solve(M / scale[:, None], rest / scale)
        ratio = 1.0
        while ratio > 1e-8:
            new = risk(alpha + ratio * move[:n], nu + ratio * move[n:])
            if new <= G + 1e-14 * (1.0 + abs(G)):
                break
            ratio *= 0.5
        alpha, nu, G = alpha + ratio * move[:n], nu + ratio * move[n:], new
    return _refine_logistic(dual, best[1], best[2])


def _refine_logistic(dual, lam, nu):
    """Dual Newton steps on the multipliers well inside (0, cap).

    ``lam = slope(m)`` multiplies the rounding error of m by rate**2; the dual equation
    ``phi'(lam) = m`` does not.
    """
    pots, A = dual.pots, dual.A
    free = np.minimum(lam, pots.cap - lam) > 1e-10 * pots.cap
    for _ in range(3 if free.any() else 0):
        safe = np.where(free, lam, 0.5 * pots.cap)
        H = dual.smooth(lam)[2] - np.diag(pots.d2(safe))
        r = (dual.margins(lam, nu) - pots.d1(safe))[free]
        rhs = np.concatenate([-r, -A @ lam])
        move = _solve_symmetric(H[np.ix_(free, free)], A[:, free], rhs)
        step = move[: len(r)]
        if np.max(np.abs(step) / np.minimum(lam, pots.cap - lam)[free]) > 0.5:
            break
        lam = lam.copy()
        lam[free] += step
        nu = nu + move[len(r) :]
    return lam, nu


def _zero_loss_interval(dual):
    """Bias interval when lam = 0 and there is a single equality."""
    need = dual.pots.prior_mean() + dual.lin
    a = dual.A[0]
    low = np.max(need[a > 0] / a[a > 0], initial=-np.inf)
    high = np.min(need[a < 0] / a[a < 0], initial=np.inf)
    return low, high


def _bias_of_nothing(dual, nu):
    """Bias when lam = 0: any value of a convex set; 0 if it belongs to it."""
    if len(dual.A) == 1:
        return np.array([_pick(*_zero_loss_interval(dual))])
    idle = np.all(-dual.lin >= dual.pots.prior_mean())
    return np.zeros_like(nu) if idle else nu


def _hinge_interval(dual, margins):
    """All minimisers b of sum_i weight_i max(level_i - margins_i - A_i b, 0)."""
    pots, a = dual.pots, dual.A[0]
    tol = 1e-10 * np.sum(pots.weight)

    def derivative(b):
        return -float(a @ pots.slope(margins + a * b))

    breaks = np.sort((pots.level - margins) / a)
    # the derivative is constant between breaks: test the middle of each interval
    middle = np.concatenate(
        [[breaks[0] - 1.0], (breaks[1:] + breaks[:-1]) / 2.0, [breaks[-1] + 1.0]]
    )
    sign = np.array([derivative(b) for b in middle])
    low = breaks[np.flatnonzero(sign < -tol)[-1]]
    high = breaks[np.flatnonzero(sign > tol)[0] - 1]
    return min(low, high), max(low, high)


def _pick(low, high):
    """0 if inside, else the midpoint, clipped to a finite value."""
    if low <= 0.0 <= high:
        return 0.0
    if np.isfinite(low) and np.isfinite(high):
        return 0.5 * (low + high)
    return low if np.isfinite(low) else high


def _certify(dual, lam, nu):
    """Objective, primal, gap and margins; AssertionError if not optimal."""
    pots = dual.pots
    value, grad, _ = dual.smooth(lam)
    m = dual.margins(lam, nu)
    J = dual.objective(lam)
    divergence = float(lam @ grad - value)
    if pots.kind == "fixed":
        assert np.all(m > 0.0), "fixed margins: no separating solution found"
        stretch = max(1.0, float(np.max(pots.level / m)))
        G = stretch**2 * divergence
        gap = G - J
    else:
        G = divergence + float(np.sum(pots.loss(m)))
        gap = float(np.sum(pots.fenchel_young(lam, m)))
    unit = 1.0 + abs(J)
    assert np.isfinite(J) and np.isfinite(G), f"J={J}, G={G}"
    if dual.A.size:
        violation = np.max(np.abs(dual.A @ lam)) / (1.0 + np.max(lam))
        assert violation <= 1e-10, f"equality violated by {violation:.1e}"
    assert gap <= _GAP_LIMIT * unit, f"relative gap {gap / unit:.1e}"
    noise = 1e-13 * (np.sum(np.abs(lam * m)) + np.sum(np.abs(lam * dual.lin)) + unit)
    assert gap >= -noise and abs(G - J - gap) <= 1e3 * noise, (G, J, gap)
    return J, G, gap, m


def _starts(dual, method):
    """Approximate solutions by cvxopt, at two tolerances and two scalings."""
    run = {"cp": _run_cp, "qp": _run_qp}[method]
    for tol, wide in product((1e-11, 1e-7), (False, True)):
        try:
            yield (run(dual, tol, wide),)
        except (ArithmeticError, ValueError, TypeError):
            continue  # cvxopt signals a breakdown in any of these ways
    if dual.pots.kind == "logistic":
        yield _logistic_path(dual)


def _logistic_path(dual):
    """Newton along rates doubling from 4: cvxopt gives up near rate 100 (seen)."""
    pots, lam, nu = dual.pots, None, None
    steps = max(int(np.ceil(np.log2(np.max(pots.rate) / 4.0))), 0)
    for rate in (pots.rate * 2.0**-power for power in range(steps, 0, -1)):
        easier = Potentials(pots.kind, pots.level, rate, pots.weight)
        problem = Dual(easier, dual.smooth, dual.lin, dual.A, dual.quadratic)
        if lam is None:
            lam = _run_cp(problem, 1e-8, True)
        lam, nu = _polish_logistic(problem, lam, nu)
    return lam, nu


def _bias(dual, lam, nu):
    """The equality multiplier, moved to the middle where it is not unique."""
    if len(dual.A) and not np.any(lam > 0.0):
        return _bias_of_nothing(dual, nu)
    if len(dual.A) == 1 and dual.pots.kind == "hinge":
        return np.array([np.mean(_hinge_interval(dual, dual.margins(lam, 0.0 * nu)))])
    return nu


def maximise(dual, method):
    """Best certified solution over the starts: lam, nu, J, G, gap, margins.

    Returns at once when the relative gap is below 1e-13, which is the rule.
    """
    best, failures = None, []
    polish = _polish_logistic if dual.pots.kind == "logistic" else _polish
    with np.errstate(all="ignore"):  # every result is checked for finiteness
        for start in _starts(dual, method):
            try:
                lam, nu = polish(dual, *start)
                nu = _bias(dual, lam, nu)
                J, G, gap, m = _certify(dual, lam, nu)
            except (AssertionError, np.linalg.LinAlgError) as error:
                failures.append(f"{type(error).__name__} {error}")
                continue
            if best is None or gap < best[4]:
                best = (lam, nu, J, G, gap, m)
            if gap <= 1e-13 * (1.0 + abs(J)):
                break
    assert best is not None, "no certified solution; " + "; ".join(failures)
    return best
