"""Certificates of duals whose optimum makes some slacks vanish.

A block whose log Z is finite where its slacks s(a) > 0 are may have a barrier so
weak, c log s with c of e^-30, that at the optimum s vanishes in double precision. Zero
then is an active constraint of

    maximise  J(lam),    0 <= lam <= top,  E' lam = 0,  s(lam) = s(0) + S lam >= 0,

and its dual z adds to the block's margins. By concavity, for every z >= 0,

    max J <= J(lam) + Fenchel-Young terms at q + S'z - margins - E b  +  z's(lam).

The right-hand side is the primal value of the limit of distributions that has the duals
z; its divergence from the one at lam is z's.

Source: Jaakkola, Meila & Jebara (1999), appendix B. Boyd & Vandenberghe (2004), Convex
optimization, section 5.5.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from maxent._optimize.bias import equality_multipliers

_VANISHING = 0.1  # share of its value before training below which a slack may vanish
_BETTER = 0.01  # share of the gap without duals from which on they are needed


def certify_with_slack_duals(
    rows, R, E, lam, gap, bias, barrier, *, target, refine=False
):
    """Gap, biases and blocks of posteriors with duals of slacks.

    Parameters
    ----------
    rows : Rows
    R : BlockSum
    E : ndarray (n, k) or None
    lam : ndarray (n,)
        Multipliers inside the domain.
    gap : float
        The gap without duals.
    bias : ndarray (k,) or None
        Biases to start from.
    barrier : SlackBarrier
        Slacks at `lam`, and their duals.
    target : float
        Duals of slacks that have not vanished are left out where this gap is met
        without them.
    refine : bool, default=False
        Look for the duals of the smallest gap: what a slack has lost of its digits, the
        slope of log Z along it has lost as well, and its dual makes up for that. For
        piecewise linear losses only, whose gaps suffer most.

    Returns
    -------
    tuple (float, ndarray or None, list of Block) or None
        None unless duals make the gap much smaller.
    """
    d = rows.q - R.value_and_margins(lam)[1]
    vanishing = [
        np.where(s < _VANISHING * before, z, 0.0)
        for s, z, before in zip(barrier.slacks, barrier.z, barrier.before, strict=True)
    ]
    if not any(z.any() for z in vanishing):
        return None
    choices = [vanishing, barrier.z]
    if refine and rows.potential.linear:
        choices.append(_refined(rows, E, d, barrier, vanishing))
    best = None
    for duals in choices:
        certified = _certify(rows, R, E, lam, d, bias, barrier, duals)
        if best is None or certified[0] < best[0]:
            best = certified
        if best[0] <= target:
            break
    return best if best[0] < _BETTER * gap else None


def _certify(rows, R, E, lam, d, bias, barrier, duals):
    """Gap, biases and blocks with these duals."""
    blocks, divergence = list(R.blocks), 0.0
    for (k, block, _, At), s, z in zip(
        barrier.bounded, barrier.slacks, duals, strict=True
    ):
        with_duals = block.with_slack_duals(z) if z.any() else None
        if with_duals is not None:
            blocks[k] = with_duals
            divergence += float(z @ s)
            d = d + At @ block.slack_gradient(z)
    if E is None:
        return rows.gap(lam, d) + divergence, None, blocks
    bias = equality_multipliers(rows, d, E, bias)
    return rows.gap(lam, d - E @ bias) + divergence, bias, blocks


def _refined(rows, E, d, barrier, vanishing):
    """All duals, those of vanishing slacks by a linear program.

    They are the duals of s(0) + S lam >= 0 in ``max d' lam`` over lam within its bounds
    with E' lam = 0. The slacks are scaled to s(0) = 1.
    """
    columns, duals = [], []
    for (_, block, _, At), z, few, before in zip(
        barrier.bounded, barrier.z, vanishing, barrier.before, strict=True
    ):
        d = d + At @ block.slack_gradient(np.where(few > 0, 0.0, z))
        for unit in np.eye(len(z))[few > 0] / before[few > 0, None]:
            columns.append(At @ block.slack_gradient(unit))
        duals.append(z.copy())
    program = linprog(
        -d,
        A_ub=-np.array(columns),
        b_ub=np.ones(len(columns)),
        A_eq=None if E is None else E.T,
        b_eq=None if E is None else np.zeros(E.shape[1]),
        bounds=np.column_stack([np.zeros_like(d), rows.upper]),
        options={
            "primal_feasibility_tolerance": 1e-10,
            "dual_feasibility_tolerance": 1e-10,
        },
    )
    if program.success:
        new = np.maximum(-program.ineqlin.marginals, 0.0)
        for z, few, before in zip(duals, vanishing, barrier.before, strict=True):
            z[few > 0] = new[: (few > 0).sum()] / before[few > 0]
            new = new[(few > 0).sum() :]
    return duals
