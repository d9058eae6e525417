"""Checks of the parameters and columns of estimators with trees."""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import connected_components

from maxent._support import validation as v
from maxent.models.trees._tree_input import check_square
from maxent.models.trees.spanning_trees import EmptyCell, SpanningTrees

ROUNDING = 1e-6  # tol of max_margin: within it a margin is not told from 0


def check_two_features(estimator, X):
    """Refuse a single column, which no tree can join to another."""
    if X.shape[1] < 2:
        raise ValueError(
            f"X has 1 feature(s): trees join two or more. {type(estimator).__name__} "
            "needs another column."
        )


def class_tables(estimator, rows, weight, k, log_weights):
    """Tables of the TreeRows of a class; errors name it, features and categories."""
    who = f"class {estimator.classes_.tolist()[k]!r}"
    try:
        return SpanningTrees._of_rows(rows, weight, float(estimator.ess), log_weights)
    except EmptyCell as empty:
        names = getattr(estimator, "feature_names_in_", None)
        pair = " and ".join(
            f"{estimator.categories_[u].tolist()[i]!r} in feature "
            f"{u if names is None else repr(names[u])}"
            for u, i in empty.at
        )
        raise ValueError(
            f"{who} never has {pair} together, and with ess=0 the logarithm of that "
            "probability is infinite. Use ess > 0, or merge categories."
        ) from None
    except ValueError as error:
        raise ValueError(f"{who} has no tables: {error}") from None


def check_edge_prior(edge_prior, n):
    """Log weights (n, n) of prior edge weights >= 0; None for all alike."""
    if edge_prior is None:
        return None
    weights = check_square(
        "edge_prior", edge_prior, copies=2, one=True, none="0 for no edge"
    )
    if len(weights) != n:
        raise ValueError(
            f"edge_prior has shape {weights.shape}; X has {n} features, so ({n}, {n}) "
            "is needed."
        )
    off = ~np.eye(n, dtype=bool)
    if not (weights[off] >= 0).all():
        i, j = (int(k) for k in np.argwhere(~(weights >= 0) & off)[0])
        raise ValueError(
            f"edge_prior[{i}, {j}]={weights[i, j]:g} is negative; weights are >= 0, "
            "and 0 forbids an edge."
        )
    out = np.full((n, n), -np.inf)
    np.log(weights, where=off & (weights > 0), out=out)
    count, part = connected_components(weights * off > 0, directed=False)
    if count > 1:
        parts = [v.shown(np.flatnonzero(part == k).tolist()) for k in range(count)]
        raise ValueError(
            f"edge_prior leaves the features in {count} separate parts, "
            f"{', '.join(parts[:3])}; give a positive weight to an edge between them."
        )
    return 0.5 * (out + out.T)


def share_of_max(level):
    """(share of the largest margin, None) or (None, level)."""
    if not isinstance(level, str):
        return None, level
    text = level.replace(" ", "")
    if text == "max":
        return 0.95, None
    if text.endswith("*max"):
        try:
            share = float(text[:-4])
        except ValueError:
            share = np.nan
        if 0 < share < 1:
            return share, None
    raise ValueError(
        f"level={v.shown(level)} must be a number of nats, or a share between 0 and 1 "
        "of the largest margin, such as '0.8*max'."
    )


def nats(margin):
    """A largest margin as errors show it: 0 within the tolerance of its bounds."""
    return "0 nats" if abs(margin) <= ROUNDING else f"{margin:.6g} nats"
