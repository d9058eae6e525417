"""Law of the score of a position weight matrix on independent letters.

Weights are rounded to multiples of a step, so that the law of their sum is a vector,
the convolution of the laws of the positions:

    f_j(s) = sum_a b_a f_(j-1)(s - k_(j,a)),      k_(j,a) = round(W[j, a] / step)

A score exceeds its rounded one by an amount between the sums of the least and of the
largest rounding of each position, which bounds its tail by that of the rounded one.

Source: Staden (1989), Methods for calculating the probabilities of finding patterns in
sequences, CABIOS 5.
"""

from __future__ import annotations

import numpy as np

from maxent._support.typing import FloatArray

_CELLS = 2**17  # of the vector: 0.1 s for twenty letters of proteins
_SLACK = 1e-9  # of a step: equal sums of weights round apart by less


class ScoreLaw:
    """Tail probabilities of the sum of a letter's weight at each position.

    Parameters
    ----------
    weights : ndarray (m, A)
        Finite.
    background : ndarray (A,)
        Probabilities of the letters.

    Attributes
    ----------
    step : float
        Of the rounded weights.
    excess : tuple of float
        Least and largest amount by which a score exceeds its rounded one; they differ
        by m steps at most.
    """

    def __init__(self, weights: FloatArray, background: FloatArray) -> None:
        low = weights.min(axis=1, keepdims=True)
        spread = float((weights - low).max(axis=1).sum())
        self.step = spread / _CELLS if spread > 0 else 1.0
        shifts = np.rint((weights - low) / self.step).astype(np.intp)
        self._low = float(low.sum())
        lost = weights - low - shifts * self.step
        self.excess = float(lost.min(axis=1).sum()), float(lost.max(axis=1).sum())
        law = np.ones(1)
        for row in shifts:
            grown = np.zeros(len(law) + row.max())
            for shift, share in zip(row, background, strict=True):
                grown[shift : shift + len(law)] += share * law
            law = grown
        tail = np.cumsum(law[::-1])[::-1]  # the small ones are added first
        self._tail = np.append(np.minimum(tail, 1.0), 0.0)

    def bounds(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds of P(score of random letters >= score) of every score."""
        least, largest = self.excess
        return self._tails(scores - least), self._tails(scores - largest)

    def _tails(self, scores: FloatArray) -> FloatArray:
        """P(rounded score >= score) of every score."""
        cells = (scores - self._low) / self.step
        first = np.ceil(cells - _SLACK * np.maximum(1.0, np.abs(cells)))
        return self._tail[np.clip(first, 0, len(self._tail) - 1).astype(np.intp)]
