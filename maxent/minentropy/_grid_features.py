"""Features of templates at all places of a grid of cells."""

from __future__ import annotations

import numpy as np

from maxent.minentropy._features import SideFeatures, weighted_mean


def windows_with(marked, sizes):
    """Which windows (n, H) of all sizes have a marked cell, of cells (n, R, C)."""
    parts = []
    for h, c in sizes:
        view = np.lib.stride_tricks.sliding_window_view(marked, (h, c), axis=(1, 2))
        parts.append(view.any(axis=(3, 4)).reshape(len(marked), -1))
    return np.concatenate(parts, axis=1)


class GridFeatures(SideFeatures):
    """Templates at all places of a grid of cells.

    The scores of a template are one product of all cells with all its weights, and as
    many shifted sums as it has cells; the adjoint is that in reverse.

    Parameters
    ----------
    cells : ndarray (n, R, C, p)
    sizes : list of tuple (int, int)
        Rows and columns of the templates; the hidden value is a size and a place.
    K : int
    one_sided : bool
    intercept : bool
    """

    def __init__(self, cells, sizes, K, one_sided, intercept):
        self.cells, self.sizes, self.K = cells, sizes, K
        self.origin, self.missing = np.zeros(cells.shape[-1]), None
        self.n, self.R, self.C, self.p = cells.shape
        self.sides, self.intercept = 1 if one_sided else K, intercept
        self.lengths = [h * w * self.p for h, w in sizes]
        self.block = sum(self.lengths) + len(sizes) * intercept
        self.d = self.sides * self.block
        self.places = [(self.R - h + 1) * (self.C - w + 1) for h, w in sizes]
        self.H = sum(self.places)
        self.offsets = np.arange(
            0, self.sides * self.n * self.H + 1, self.H, dtype=np.intp
        )

    def _parts(self, w):
        """Template (h, w, p) and constant of every size, of one output."""
        ends = np.cumsum([0, *self.lengths])
        for k, (h, c) in enumerate(self.sizes):
            template = w[ends[k] : ends[k + 1]].reshape(h, c, self.p)
            yield h, c, template, w[ends[-1] + k] if self.intercept else 0.0

    def centre(self, weight):
        """Take off the mean of the cells that are there."""
        if not self.intercept:
            return
        each = np.repeat(weight, self.R * self.C).astype(np.float64)
        if self.missing is not None:
            each[self.missing.ravel()] = 0.0
        self.origin = weighted_mean(self.cells.reshape(-1, self.p), each)
        self.cells = self.cells - self.origin

    def taken_up(self, w):
        W = w.reshape(self.sides, self.block)
        out = np.zeros_like(W)
        if self.intercept:
            for side, own in zip(out, W, strict=True):
                for k, (_, _, template, _) in enumerate(self._parts(own)):
                    side[sum(self.lengths) + k] = (template @ self.origin).sum()
        return out.ravel()

    def raw_scores(self, w):
        out = np.empty((self.sides, self.n, self.H))
        for y, own in enumerate(w.reshape(self.sides, self.block)):
            at = 0
            for h, c, template, constant in self._parts(own):
                response = self.cells @ template.reshape(h * c, self.p).T
                rows, columns = self.R - h + 1, self.C - c + 1
                s = np.full((self.n, rows, columns), constant)
                for k in range(h * c):
                    i, j = divmod(k, c)
                    s += response[:, i : i + rows, j : j + columns, k]
                out[y, :, at : at + rows * columns] = s.reshape(self.n, -1)
                at += rows * columns
        return out.ravel()

    def pool(self, beta):
        beta = beta.reshape(self.sides, self.n, self.H)
        G = np.zeros((self.n, self.sides, self.block))
        for y in range(self.sides):
            at, place = 0, 0
            for k, (h, c) in enumerate(self.sizes):
                rows, columns = self.R - h + 1, self.C - c + 1
                own = beta[y, :, place : place + rows * columns]
                for cell in range(h * c):
                    i, j = divmod(cell, c)
                    window = self.cells[:, i : i + rows, j : j + columns]
                    window = window.reshape(self.n, rows * columns, self.p)
                    G[:, y, at : at + self.p] = np.matmul(own[:, None], window)[:, 0]
                    at += self.p
                if self.intercept:
                    G[:, y, sum(self.lengths) + k] = own.sum(axis=1)
                place += rows * columns
        return G

    def cover(self, p, out):
        """Add probabilities (H,) of windows to the cells (R, C) that they cover."""
        at = 0
        for (h, c), places in zip(self.sizes, self.places, strict=True):
            rows, columns = self.R - h + 1, self.C - c + 1
            own = p[at : at + places].reshape(rows, columns)
            for k in range(h * c):
                i, j = divmod(k, c)
                out[i : i + rows, j : j + columns] += own
            at += places

    def hidden_sizes(self, codes):
        """Places of all templates in every image."""
        return np.full(self.n, self.H)

    def forbid(self, allowed, codes):
        """Leave out places of the true outputs."""
        own = np.repeat(codes - (self.K - self.sides), self.H)
        out = np.flatnonzero(~allowed & (own >= 0))
        self._forbid(own[out] * self.n * self.H + out)

    def split(self, values, codes):
        """Values of the places under outputs."""
        table = values.reshape(self.sides, self.n, self.H)
        side = codes - (self.K - self.sides)
        return [
            table[y, i].copy() if y >= 0 else np.ones(1) for i, y in enumerate(side)
        ]
