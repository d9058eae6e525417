"""Priors of the biases of the classes, as solvers of duals take them.

A Dirichlet prior over the shares p of the classes, whose logarithms are the biases, is
one more block: its rows are the classes, and M_k, the sum of the weights of class k,
tilts it by E prod_k p_k^{M_k}. Of two classes that is the Beta prior of the report.

Source: Jaakkola, Meila & Jebara (1999), section 3.1 and eq. (46).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from maxent._support import validation as v
from maxent._support.typing import Bias, FloatArray
from maxent.discrimination.duals.class_pairs import CLASS_WEIGHT_VARIANCE, ClassPairs
from maxent.families.priors.dirichlet_tables import DirichletCounts


class ClassBias:
    """Prior of the biases of m classes.

    Parameters
    ----------
    bias : {"flat", "train_error", None}, float or array-like (m,)
        Flat; none; Gaussian, of this variance of the difference of two biases;
        pseudo-counts of a Dirichlet prior of the shares of the classes.
    m : int
    """

    prior: Bias
    counts: FloatArray | None = None

    def __init__(self, bias: Any, m: int) -> None:
        bias = v.bias_word(bias)
        self.m, self.by_errors = m, isinstance(bias, str) and bias == "train_error"
        if self.by_errors:
            self.prior = "flat"
        elif isinstance(bias, (Sequence, np.ndarray)) and not isinstance(bias, str):
            self.prior, self.counts = None, _checked_counts(bias, m)
        else:
            self.prior = v.check_bias(bias)
            if isinstance(self.prior, float):
                self.prior *= CLASS_WEIGHT_VARIANCE

    def problem(
        self, blocks: list[Any], maps: list[Any], pairs: ClassPairs
    ) -> tuple[list[Any], list[Any], dict[str, Any]]:
        """Blocks and maps of the dual, and its further arguments."""
        incidence = pairs.sparse_incidence(whole=True)
        if self.counts is not None:
            own = DirichletCounts(self.counts).block(np.eye(self.m))
            return [*blocks, own], [*maps, incidence.T.tocsr()], {"bias": None}
        if self.prior is None:
            return blocks, maps, {"bias": None}
        # a flat prior leaves out the last class, whose bias is zero
        kept = self.m - 1 if self.prior == "flat" else self.m
        columns = incidence[:, :kept].toarray()
        return blocks, maps, {"bias": self.prior, "incidence": columns}

    def solved(self, result: Any, pairs: ClassPairs) -> Any:
        """The result with biases (m,) of the classes, and their blocks."""
        if self.counts is not None:
            own = DirichletCounts(self.counts).block(np.eye(self.m))
            b = own.mean(pairs.beta(result.lam).sum(axis=0))
        elif result.bias is None:
            b = np.zeros(self.m)
        else:
            b = np.append(result.bias, np.zeros(self.m - len(result.bias)))
        blocks = result.blocks and result.blocks[: self.m]
        return replace(result, bias=b, blocks=blocks)


def _checked_counts(bias, m):
    counts = v.as_doubles("bias", bias)
    if counts.shape != (m,) or not (np.isfinite(counts) & (counts > 0)).all():
        raise ValueError(
            f"bias={v.shown(bias)} must hold a pseudo-count > 0 for each of the {m} "
            "classes, or be 'flat', None, or a variance > 0."
        )
    return counts
