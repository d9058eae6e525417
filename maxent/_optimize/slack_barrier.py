"""Barriers of domains of linear inequalities, for interior steps.

A block whose log Z is finite where its slacks s(a) > 0 are, affine functions of its row
weights, has a barrier of its own, but one that may be felt next to the boundary only:
Newton steps run into it. As long as that happens, a second barrier keeps them away,

    J(lam) + mu sum log s,   mu -> 0.

The products s z = mu with multipliers z of the slacks give its curvature z / s, which
holds over longer steps than mu / s^2 does.

Source: Wright (1997), Primal-dual interior-point methods. Waechter & Biegler (2006), On
the implementation of an interior-point filter line-search algorithm, eqs. (9), (16).
"""

from __future__ import annotations

import numpy as np

_REDUCTION = 0.1  # of mu, once the barrier's problem is solved
_NEAR = 1e3  # how far the products s z may be from mu


class SlackBarrier:
    """Slacks of all blocks that have some, and their multipliers.

    Parameters
    ----------
    R : BlockSum
    lam : ndarray (n,)
        Multipliers inside the domain.

    Attributes
    ----------
    mu : float
        Weight of the barrier; 0 without one.
    before : list of ndarray
        The slacks at zero multipliers.
    partial : bool
        True if some block tells its domain by `max_step` alone.
    """

    def __init__(self, R, lam):
        self.R, self.mu, self.n = R, 0.0, len(lam)
        self.bounded = []  # place, block, map and its transpose of those with slacks
        self.slacks, self.z, self.before = [], [], []
        for k, block in enumerate(R.blocks):
            slacks = block.slacks(R.row_weights(lam)[k])
            if slacks is not None:
                R.check_answer(block, "slacks", slacks, (None,))
                self.bounded.append((k, block, R.maps[k], R.transposed[k]))
                self.slacks.append(slacks)
                self.before.append(block.slacks(np.zeros(block.n_rows)))
        self.count = sum(len(s) for s in self.slacks)
        self.partial = len(self.bounded) < len(R.blocks)
        self._most = np.inf

    def start(self, gap):
        """Begin with the mu whose barrier would leave about this gap."""
        self.mu = min(gap / self.count, self._most)
        self.z = [self.mu / s for s in self.slacks]

    def is_solved(self, residual):
        """True if the gap of the barrier's problem, besides that of s z, is small."""
        size = self.mu * self.count
        return residual <= 0.1 * size and self.complementarity() <= 2.0 * size

    def lower(self, tol, J):
        """Lower mu; to zero where it is far below what the tolerance allows."""
        self._most = self.mu  # a barrier solved once is not solved again
        self.mu *= _REDUCTION
        if self.mu * self.count < 1e-3 * tol * (1.0 + max(J, 0.0)):
            self.mu = 0.0
        self._bring_near()

    def raise_mu(self, J):
        """Raise mu after a step without gain; return False if it is large already."""
        if self.mu * self.count > 1e2 * (1.0 + max(J, 0.0)):
            return False
        self.mu *= 10.0
        self.z = [self.mu / s for s in self.slacks]
        return True

    def changes(self, step):
        """Changes of the slacks along a step of the multipliers."""
        return [block.slack_changes(A @ step) for _, block, A, _ in self.bounded]

    def max_step(self, changes):
        """Supremum of t with slacks + t * changes > 0."""
        return min(
            (_step_to_zero(s, ds) for s, ds in self._pairs(changes)), default=np.inf
        )

    def gradient(self, changes=None):
        """Of mu sum log s, (n,); where the slacks have changed, if they have."""
        if not self.mu:
            return np.zeros(self.n)
        moved = [0.0] * len(self.bounded) if changes is None else changes
        return self._sum([self.mu / (s + ds) for s, ds in self._pairs(moved)])

    def dual_gradient(self, move=None, a=0.0):
        """Gradient of z's along the multipliers, (n,), after a share a of a move."""
        if move is None:
            return self._sum(self.z)
        return self._sum([z + a * dz for z, dz in zip(self.z, move[1], strict=True)])

    def complementarity(self, move=None, a=0.0):
        """Sum of s z, after a share a of a move."""
        if move is None:
            return sum(float(s @ z) for s, z in zip(self.slacks, self.z, strict=True))
        return sum(
            float((s + a * ds) @ (z + a * dz))
            for s, z, ds, dz in zip(self.slacks, self.z, *move, strict=True)
        )

    def _sum(self, weights):
        """Gradient of the weighted sum of the slacks, (n,)."""
        out = np.zeros(self.n)
        for (_, block, _, At), w in zip(self.bounded, weights, strict=True):
            out += At @ block.slack_gradient(w)
        return out

    def curvatures(self):
        """Curvature along the slacks of every block of R; None for none."""
        curvatures = [None] * len(self.R.blocks)
        if self.mu:
            for (k, *_), z, s in zip(self.bounded, self.z, self.slacks, strict=True):
                curvatures[k] = z / s
        return curvatures

    def rise(self, changes):
        """Change of mu sum log s."""
        if not self.mu:
            return 0.0
        return self.mu * sum(
            float(np.log1p(ds / s).sum()) for s, ds in self._pairs(changes)
        )

    def move(self, lam, changes):
        """Go to new multipliers; z takes the Newton step that belongs to `changes`."""
        if self.mu:
            steps = [
                self.mu / s - z - z / s * ds
                for s, z, ds in zip(self.slacks, self.z, changes, strict=True)
            ]
            a = min(_step_to_zero(z, dz) for z, dz in zip(self.z, steps, strict=True))
            a = min(1.0, 0.98 * a)
            self.z = [z + a * dz for z, dz in zip(self.z, steps, strict=True)]
        weights = self.R.row_weights(lam)
        self.slacks = [block.slacks(weights[k]) for k, block, _, _ in self.bounded]
        self._bring_near()

    def _bring_near(self):
        if self.mu:
            self.z = [
                np.clip(z, self.mu / _NEAR / s, self.mu * _NEAR / s)
                for z, s in zip(self.z, self.slacks, strict=True)
            ]

    def _pairs(self, changes):
        return zip(self.slacks, changes, strict=True)


class PrimalDualSlacks(SlackBarrier):
    """The slacks and their duals z, which move with the multipliers, s z -> mu.

    A move is a pair (ds, dz) of lists of their changes, one entry a block.

    Attributes
    ----------
    least_shares : tuple (float, float)
        Shares of the mean product s z that a step leaves at least, usually and where
        the conditions on the slopes lag behind.
    """

    least_shares = 0.1, 0.3

    def init_duals(self, mu):
        """Begin with duals mu / s."""
        self.mu = mu if self.count else 0.0
        self.z = [mu / s for s in self.slacks]

    def solver(self, lam, diagonal):
        """Newton systems of R and the curvature z / s along the slacks."""
        if not self.count:
            return self.R.solver(lam, diagonal)
        return self.R.solver(lam, diagonal, curvatures=self.curvatures())

    def complementarity_target(self, mu, move=None, a=0.0):
        """Products s z to aim at: mu, less what a linear model of a move neglects."""
        if move is None:
            return [np.full_like(s, mu) for s in self.slacks]
        return [mu - a * ds * dz for ds, dz in zip(*move, strict=True)]

    def target_gradient(self, target):
        """Gradient of z's along the multipliers at the duals target / s, (n,)."""
        return self._sum([p / s for p, s in zip(target, self.slacks, strict=True)])

    def direction(self, step, target):
        """The move that belongs to a step of the multipliers."""
        ds = self.changes(step)
        dz = [
            (p - z * (s + c)) / s
            for p, z, s, c in zip(target, self.z, self.slacks, ds, strict=True)
        ]
        return ds, dz

    def max_share(self, move):
        """Supremum of the shares of a move with all slacks and duals > 0."""
        duals = (_step_to_zero(z, dz) for z, dz in zip(self.z, move[1], strict=True))
        return min(self.max_step(move[0]), min(duals, default=np.inf))

    def update(self, lam, move, a):
        """Make a share a of a move, to the multipliers lam."""
        self.z = [z + a * dz for z, dz in zip(self.z, move[1], strict=True)]
        weights = self.R.row_weights(lam) if self.count else None
        self.slacks = [block.slacks(weights[k]) for k, block, _, _ in self.bounded]


def _step_to_zero(x, dx):
    """Supremum of t with x + t dx > 0."""
    down = dx < 0
    return float(np.min(x[down] / -dx[down], initial=np.inf))
