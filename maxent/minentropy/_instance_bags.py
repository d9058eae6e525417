"""Bags of instances as users give them."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from maxent._support import validation as v
from maxent.minentropy._features import listed_masks


def holds_bags(X):
    """True if X is a list of matrices or an array of three axes."""
    if hasattr(X, "ndim"):
        return X.ndim == 3 or bool(
            X.ndim == 1 and X.dtype == object and X.size and np.ndim(X[0]) > 0
        )
    if not isinstance(X, (list, tuple)) or not len(X):
        return False
    first = next((bag for bag in X if _tells(bag)), X[0])
    return len(getattr(first, "shape", ())) == 2 or (
        isinstance(first, (list, tuple))
        and len(first) > 0
        and isinstance(first[0], (list, tuple, np.ndarray))
    )


def _tells(bag):
    """True if a bag has instances, or something else that is to be refused by name."""
    return sp.issparse(bag) or not hasattr(bag, "__len__") or len(bag) > 0


def read_bags(X, hidden_mask=None):
    """Instances (N, p) of all bags, where each begins (n + 1,), and which are absent.

    Absent are instances that a mask leaves out and that have missing features; these
    are zero.
    """
    masks = [] if hidden_mask is None else listed_masks(hidden_mask)
    parts, gone = [], []
    for i, bag in enumerate(X):
        mask = masks[i] if i < len(masks) else None
        part, absent = _bag(f"X[{i}]", bag, mask)
        parts.append(part)
        gone.append(absent)
    if not parts:
        raise ValueError("X has no bag.")
    p = parts[0].shape[1]
    for i, part in enumerate(parts):
        if part.shape[1] != p:
            raise ValueError(
                f"X[{i}] has {part.shape[1]} features and X[0] has {p}; all instances "
                "need the same features."
            )
    phi = np.ascontiguousarray(np.concatenate(parts))
    v.check_range("X", phi)
    ends = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    return phi, ends, np.concatenate(gone)


def _bag(name, bag, mask):
    """Instances of one bag, and which of them are absent."""
    bag = v.as_doubles(name, bag)
    if not bag.size and len(bag.shape) and not (bag.ndim == 2 and len(bag)):
        raise ValueError(f"{name} has no instance; drop empty bags.")
    if bag.ndim != 2:
        raise ValueError(
            f"{name} has shape {bag.shape}; a bag is a matrix (instances, features)."
        )
    absent = np.zeros(len(bag), dtype=bool)
    mask = np.asarray(mask)  # its own checks follow
    if mask.dtype == bool and mask.shape == absent.shape:
        absent = ~mask & ~np.isfinite(bag).all(axis=1)
        bag = np.where(absent[:, None], 0.0, bag)
    remedy = "drop these instances, or leave them out by the hidden_mask of fit"
    v.check_entries(name, bag, remedy)
    return bag, absent
