"""Labels, weights and starting multipliers of a two-class dual, checked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxent._support import validation as v
from maxent.discrimination.duals._refusals import drop_weightless
from maxent.discrimination.duals._signed_problem import (
    binary_problem,
    clip_signed_to_domain,
)


def checked_features(X):
    """Features, dense or CSR, of single or double precision."""
    from sklearn.utils import check_array

    v.refuse_masked("X", X)
    with np.errstate(over="ignore", invalid="ignore"):  # sums of huge entries
        return check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])


@dataclass(frozen=True)
class TwoClassInput:
    """The rows of positive weight of a two-class problem.

    Attributes
    ----------
    n : int
        Rows given.
    keep : ndarray or None
        Rows of positive weight; None if they are all rows.
    y : ndarray
        Labels -1.0 and +1.0 of the rows kept, both present.
    weight : ndarray or None
        Weights of the rows kept; None for ones.
    init : ndarray or None
        Multipliers >= 0 of the rows kept to start from.
    """

    n: int
    keep: np.ndarray | None
    y: np.ndarray
    weight: np.ndarray | None
    init: np.ndarray | None

    @classmethod
    def check(cls, y, sample_weight, init, shape=None):
        """Checked values; `shape` is that of X, whose rows must be as many."""
        y = v.check_signs(y)
        n = len(y)
        if shape is not None and shape[0] != n:
            raise ValueError(f"X has {shape[0]} rows but y has {n}.")
        if init is not None:
            init = v.check_multipliers(init, n)
        weight, keep, (kept,) = drop_weightless(sample_weight, n, y)
        if keep is not None:
            v.check_signs(kept)
            init = None if init is None else init[keep]
        return cls(n, keep, kept, weight, init)

    def rows_of(self, X):
        """The rows of X that are kept."""
        return X if self.keep is None else X[self.keep]

    def problem(self, margin, bias):
        """SignedProblem of the rows kept."""
        return binary_problem(self.y, margin, bias, self.weight)

    def signed_init(self, problem):
        """Signed multipliers to start from, inside their domain; or None."""
        if self.init is None:
            return None
        return clip_signed_to_domain(self.y * self.init, problem)

    def unsigned(self, result):
        """The result with multipliers lam = |a| of all rows given."""
        lam = np.abs(result.lam)
        if self.keep is not None:
            full = np.zeros(self.n)
            full[self.keep] = lam
            lam = full
        result.lam = lam
        return result
