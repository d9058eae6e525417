"""Models and thresholds of the outlier detector."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from maxent._support import validation as v
from maxent.families.priors.dirichlet_nets import DirichletProduct
from maxent.models.trees.dirichlet_trees import DirichletTrees

MODELS = ("gaussian", "multinomial", "tree")
CATEGORICAL = {"multinomial": DirichletProduct, "tree": DirichletTrees}


class OutlierModel(Protocol):
    """Protocol of the models of a detector: blocks of rows."""

    def block(self, X: Any, /) -> Any:
        """Bind the model to rows."""


class BlockScorer:
    """A block with its weights, for models that have no posterior of their own."""

    def __init__(self, block, weight):
        self.block, self.weight = block, weight

    def expected_log_prob(self, X):
        return self.block.score(self.weight, X)


def check_model(model, name="model", names=MODELS):
    """Refuse what is neither one of some names nor an object with the method block."""
    if isinstance(model, str):
        v.check_choice(name, model, names)
    elif isinstance(model, type) or not callable(getattr(model, "block", None)):
        more = ", or an object with a method block(X)"
        raise v.unknown(name, model, names, more)


def check_contamination(contamination):
    """None, or a share in (0, 0.5]."""
    if contamination is None:
        return None
    if not (v.is_real(contamination) and 0 < contamination <= 0.5):
        raise ValueError(
            f"contamination={v.shown(contamination)} must be None or a share of the "
            "training rows in (0, 0.5]."
        )
    return float(contamination)


def threshold_of_share(scores, weight, share):
    """Largest threshold with at most this share of the weight below it.

    Half-way between the scores on its two sides, so that integer weights and repeated
    rows give the same; rows of equal score are on one side.
    """
    order = np.argsort(scores, kind="stable")
    s, below = scores[order], np.cumsum(weight[order])
    # the sums have an error of n eps relative to the total weight
    most = share * below[-1] * (1.0 + len(s) * np.finfo(float).eps)
    first = s[np.searchsorted(below, most, side="right")]
    k = int(np.searchsorted(s, first))
    return float(first if k == 0 else 0.5 * s[k - 1] + 0.5 * first)
