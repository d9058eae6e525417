"""The way through the inside of a domain of linear inequalities.

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
    partial : bool
        Whether some block tells its domain by `max_step` alone.
    """

    def __init__(self, R, lam):
        self.R, self.mu = R, 0.0
        self.known = []  # place, block, map and its transpose of those with slacks
        self.slacks, self.z = [], []
        weights = R._at(lam).weights
        for k, (block, A, At) in enumerate(
            zip(R.blocks, R.maps, R.transposed, strict=True)
        ):
            slacks = block.slacks(weights[k])
            if slacks is not None:
                R._check_answer(block, "slacks", slacks, (None,))
                self.known.append((k, block, A, At))
                self.slacks.append(slacks)
        self.count = sum(len(s) for s in self.slacks)
        self.partial = len(self.known) < len(R.blocks)
        self._most = np.inf

    def start(self, gap):
        """Begin with the mu whose barrier would leave about this gap."""
        self.mu = min(gap / self.count, self._most)
        self.z = [self.mu / s for s in self.slacks]

    def lower(self, gap, tol, J):
        """Lower mu if the gap to its own optimum is small; whether it was lowered."""
        if gap > 0.1 * self.mu * self.count:
            return False
        self._most = self.mu  # a way that was gone needs no second time
        self.mu *= 0.2
        if self.mu * self.count < 1e-3 * tol * (1.0 + max(J, 0.0)):
            self.mu = 0.0
        self._bring_near()
        return True

    def raise_mu(self, J):
        """Keep farther away, after a step that led nowhere; whether that is left."""
        if self.mu * self.count > 1e2 * (1.0 + max(J, 0.0)):
            return False
        self.mu *= 10.0
        self.z = [self.mu / s for s in self.slacks]
        return True

    def changes(self, step):
        """Changes of the slacks along a step of the multipliers."""
        return [block.slack_changes(A @ step) for _, block, A, _ in self.known]

    def max_step(self, changes):
        """Supremum of t with slacks + t * changes > 0."""
        return min((_room(s, ds) for s, ds in self._pairs(changes)), default=np.inf)

    def gradient(self, changes=None):
        """Of mu sum log s, (n,); where the slacks have changed, if they have."""
        out = np.zeros(self.R.n)
        if self.mu:
            moved = [0.0] * len(self.known) if changes is None else changes
            for (_, block, _, At), (s, ds) in zip(
                self.known, self._pairs(moved), strict=True
            ):
                out += At @ block.slack_gradient(self.mu / (s + ds))
        return out

    def curvatures(self):
        """Curvature along the slacks of every block of R; None for none."""
        found = [None] * len(self.R.blocks)
        if self.mu:
            for (k, *_), z, s in zip(self.known, self.z, self.slacks, strict=True):
                found[k] = z / s
        return found

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
            a = min(_room(z, dz) for z, dz in zip(self.z, steps, strict=True))
            a = min(1.0, 0.98 * a)
            self.z = [z + a * dz for z, dz in zip(self.z, steps, strict=True)]
        weights = self.R._at(lam).weights
        self.slacks = [block.slacks(weights[k]) for k, block, _, _ in self.known]
        self._bring_near()

    def _bring_near(self):
        if self.mu:
            self.z = [
                np.clip(z, self.mu / _NEAR / s, self.mu * _NEAR / s)
                for z, s in zip(self.z, self.slacks, strict=True)
            ]

    def _pairs(self, changes):
        return zip(self.slacks, changes, strict=True)


def _room(x, dx):
    """Supremum of t with x + t dx > 0."""
    down = dx < 0
    return float(np.min(x[down] / -dx[down], initial=np.inf))
