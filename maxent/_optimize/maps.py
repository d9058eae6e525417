"""Maps from multipliers to the weights of rows."""

from __future__ import annotations


class Diagonal:
    """A diagonal map: its products without the overhead of sparse matrices."""

    def __init__(self, entries):
        self.entries = entries
        self.shape = (len(entries), len(entries))

    @property
    def T(self):
        return self

    def __matmul__(self, x):
        return (self.entries * x.T).T

    def congruent(self, H):
        """The product D H D, of a square matrix (n, n)."""
        out = H * self.entries
        out *= self.entries[:, None]
        return out
