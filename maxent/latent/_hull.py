"""Moments that no distribution over the states has, found and named.

The dual has a minimum if and only if some distribution that is positive on every state
has moments within the widths of their targets. A linear program tells; in large spaces
a dual below its least possible value does.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from maxent.latent._penalty import L2

_PROGRAM_UP_TO = 1e5  # entries of the features: half a second of linear programming
_EXCLUDED = 1e-12  # probability of a state that is rounding; vertices are exact
_EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_REMEDY = "Correct the targets, or allow unmet moments with {}."


def reach_within(tol):
    """Weight times range beyond which moments may be met to `tol` at the limit only.

    On a facet of the hull residuals fall like exp(-weight * range).
    """
    return 0.5 * np.log(1.0 / max(tol, 1e-16))


def check_ranges(space, target, penalty, tol):
    """Refuse targets outside, or at the end of, the range of a feature."""
    low, high = space.extremes
    # a constant is met up to a share of itself, and zero exactly
    slack = tol * np.where(high > low, high - low, space.units.origin != 0.0)
    lower, upper = target - penalty.width, target + penalty.width
    box = " by more than its width" if penalty.width.any() else ""
    told, least, most = map(space.units.moments_out, (target, low, high))
    for i in np.flatnonzero(penalty.hard):
        if lower[i] > high[i] + slack[i] or upper[i] < low[i] - slack[i]:
            raise ValueError(
                f"target[{i}]={told[i]:.12g} is outside [{least[i]:.12g}, "
                f"{most[i]:.12g}], the values that feature {i} takes{box}: no "
                "distribution has that mean. Correct the target, or allow unmet "
                f"moments with {penalty.remedy}."
            )
        if low[i] < high[i] and (lower[i] >= high[i] or upper[i] <= low[i]):
            end = "smallest" if upper[i] <= low[i] else "largest"
            raise ValueError(
                f"target[{i}]={told[i]:.12g} is the {end} value of feature {i}"
                f"{' but for its width' if box else ''}: only distributions on the "
                "states that take it have that mean, and its weight would be infinite. "
                f"Drop the other states, or use {penalty.remedy}."
            )


def check_reach(space, target, penalty, tol):
    """Refuse targets outside or on the boundary of the convex hull of the features.

    Return whether they are known to be inside. Nothing is known, and nothing refused,
    of spaces beyond the size of the program.
    """
    if not penalty.hard.any():
        return True
    if space.n_states * space.n_features > _PROGRAM_UP_TO:
        return False
    F, eta, width = _hard_part(space, target, penalty)
    least, direction = _positive(F, eta, width)
    if least is None:
        named = infeasible_moments(space, target, penalty, tol)
        if named:
            raise unattainable(space, named, penalty)
        return False
    if least * len(F) <= _EXCLUDED:
        at = np.flatnonzero(penalty.hard)[np.argsort(-np.abs(direction))]
        named = _listed(space, target, at[np.sort(-np.abs(direction)) < -1e-9])
        raise ValueError(
            f"{named} are on the boundary of what distributions over the "
            f"{space.n_states} states have{_within(penalty)}: these exclude some "
            "states, and weights would be infinite. Exclude the states with "
            f"log_prior=-inf, or use {penalty.remedy}."
        )
    return True


def check_hull(space, target, penalty, tol):
    """Refuse targets outside the hull, whatever the penalty."""
    if space.n_states * space.n_features <= _PROGRAM_UP_TO:
        named = infeasible_moments(space, target, L2(np.inf, space.n_features), tol)
        if named:
            raise unattainable(space, named, penalty)


def check_dual(space, target, penalty, lam, dual):
    """Refuse targets whose dual is below what any distribution leaves it.

    log Phi - lam . eta + sum width |lam| >= H(p) + E_p log q for all p within the
    widths, so a smaller dual proves that there is none.
    """
    if not penalty.hard.all():
        return
    q = space.log_prior
    floor = 0.0 if q is None else float(q[np.isfinite(q)].min())
    rounding = 1e-6 * (1.0 + abs(floor)) + 1e-12 * float(np.abs(lam) @ np.abs(target))
    if dual >= floor - rounding:
        return
    named = None
    if space.n_states * space.n_features <= _PROGRAM_UP_TO:
        named = infeasible_moments(space, target, penalty, 0.0)
    if not named:
        pull = np.abs(lam) * space.span
        order = np.argsort(-pull)
        named = _listed(space, target, order[pull[order] > 0.01 * pull.max()])
    raise unattainable(space, named, penalty)


def unattainable(space, named, penalty):
    """The error that names targets outside the hull."""
    return ValueError(
        f"no distribution over the {space.n_states} states has these means"
        f"{_within(penalty)}: outside the convex hull of the features are {named}. "
        + _REMEDY.format(penalty.remedy)
    )


def _within(penalty):
    return " within the widths" if penalty.width.any() else ""


def _listed(space, target, at):
    told = space.units.moments_out(target)
    return ", ".join(f"target[{i}]={told[i]:.10g}" for i in at[:5])


def _hard_part(space, target, penalty):
    """Features on a scale of one, targets and widths, of what must be met."""
    at = np.flatnonzero(penalty.hard)
    F = space.F if space.log_prior is None else space.F[np.isfinite(space.log_prior)]
    F = F[:, at].toarray() if space.sparse else F[:, at]
    scale = np.maximum(space.span[at], 1e-300)
    scale[space.span[at] == 0.0] = 1.0
    low = space.extremes[0][at]
    return (F - low) / scale, (target[at] - low) / scale, penalty.width[at] / scale


def _positive(F, eta, width):
    """Largest t with p >= t, F' p within widths of eta; t is None if no p has that.

    And the multipliers of the moments: the direction in which the hull ends.
    """
    S, n = F.shape
    A = np.vstack([np.column_stack([F.T, F.sum(axis=0)]), np.append(np.ones(S), S)])
    slack = sp.vstack([sp.eye_array(n), sp.csr_array((1, n))])
    found = linprog(
        np.concatenate([np.zeros(S), [-1.0], np.zeros(n)]),
        A_eq=sp.hstack([sp.csr_array(A), slack]).tocsr(),
        b_eq=np.append(eta, 1.0),
        bounds=[(0, None)] * (S + 1) + [(-w, w) for w in width],
        options=_EXACT,
    )
    if not found.success:
        return (None if found.status == 2 else 1.0), None
    return -found.fun, found.eqlin.marginals[:n]


def infeasible_moments(space, target, penalty, tol):
    """Text that names targets outside the convex hull of the features; None inside.

    min sum |eps| over p >= 0 with sum p = 1 and F' p - eps = eta, up to the widths: a
    linear program.
    """
    F, eta, width = _hard_part(space, target, penalty)
    S, n = F.shape
    eye = sp.eye_array(n)
    A = sp.vstack(
        [
            sp.hstack([sp.csr_array(F.T), -eye, eye, eye]),
            sp.csr_array(np.concatenate([np.ones(S), np.zeros(3 * n)])[None]),
        ]
    ).tocsr()
    cost = np.concatenate([np.zeros(S), np.ones(2 * n), np.zeros(n)])
    bounds = [(0, None)] * (S + 2 * n) + [(-w, w) for w in width]
    found = linprog(cost, A_eq=A, b_eq=np.append(eta, 1.0), bounds=bounds)
    if not found.success or found.fun <= max(1e-8, tol):
        return None
    eps = found.x[S : S + n] - found.x[S + n : S + 2 * n]
    wrong = np.flatnonzero(np.abs(eps) > 1e-9)
    at = np.flatnonzero(penalty.hard)
    nearest = target.copy()
    nearest[at] += eps * np.where(space.span[at] > 0, space.span[at], 1.0)
    told, nearest = map(space.units.moments_out, (target, nearest))
    parts = [
        f"target[{at[i]}]={told[at[i]]:.10g} (nearest together with the others "
        f"{nearest[at[i]]:.10g})"
        for i in wrong[:5]
    ]
    return ", ".join(parts)
