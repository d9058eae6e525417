"""Maps from multipliers to the weights of rows."""

from __future__ import annotations

import numpy as np

_ROWS = 4096  # of a product with many columns, between looks at Ctrl-C


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

    def product_into(self, x, out):
        """The product with x (n, k), into `out`."""
        for lo in range(0, len(x), _ROWS):
            part = slice(lo, lo + _ROWS)
            np.multiply(x[part], self.entries[part, None], out=out[part])


def product_into(A, x, out):
    """A @ x of a map, into `out`."""
    if isinstance(A, Diagonal):
        A.product_into(x, out)
    else:
        out[:] = A @ x
