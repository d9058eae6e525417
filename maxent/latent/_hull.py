"""Moments that no distribution over the states has, found and named."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog


def check_ranges(space, target, free, tol):
    """Refuse targets outside, or at the end of, the range of a feature.

    `free` says which weights have no penalty: only these must meet their target.
    """
    low, high = space.extremes
    slack = tol * (1.0 + np.abs(target))
    for i in np.flatnonzero(free):
        if not low[i] - slack[i] <= target[i] <= high[i] + slack[i]:
            raise ValueError(
                f"target[{i}]={target[i]:g} is outside [{low[i]:g}, {high[i]:g}], the "
                f"values that feature {i} takes: no distribution has that mean. "
                "Correct the target, or allow unmet moments with sigma2 < inf."
            )
        if low[i] < high[i] and target[i] in (low[i], high[i]):
            end = "smallest" if target[i] == low[i] else "largest"
            raise ValueError(
                f"target[{i}]={target[i]:g} is the {end} value of feature {i}: only "
                "distributions on the states that take it have that mean, and its "
                "weight would be infinite. Drop the other states, or use sigma2 < inf."
            )


def infeasible_moments(space, target):
    """Text that names targets outside the convex hull of the features; None inside.

    min sum |eps| over p >= 0 with sum p = 1 and F' p - eps = eta: a linear program.
    """
    S, n = space.F.shape
    if S * n > 2e6:
        return None
    scale = np.maximum(np.ptp(np.stack(space.extremes), axis=0), 1e-300)
    F = space.F.toarray() if space.sparse else space.F
    eye = sp.eye_array(n)
    A = sp.vstack(
        [
            sp.hstack([sp.csr_array(F.T / scale[:, None]), -eye, eye]),
            sp.csr_array(np.concatenate([np.ones(S), np.zeros(2 * n)])[None]),
        ]
    ).tocsr()
    cost = np.concatenate([np.zeros(S), np.ones(2 * n)])
    upper = [(0, None)] * (S + 2 * n)
    if space.log_prior is not None:
        for s in np.flatnonzero(np.isneginf(space.log_prior)):
            upper[s] = (0, 0)
    found = linprog(cost, A_eq=A, b_eq=np.append(target / scale, 1.0), bounds=upper)
    if not found.success or found.fun <= 1e-8:
        return None
    eps = (found.x[S : S + n] - found.x[S + n :]) * scale
    wrong = np.flatnonzero(np.abs(eps) > 1e-9 * scale)
    parts = [
        f"target[{i}]={target[i]:.6g} (nearest together with the others "
        f"{target[i] + eps[i]:.6g})"
        for i in wrong[:5]
    ]
    return ", ".join(parts)
