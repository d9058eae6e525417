"""Categories of columns of any type, and their codes."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import validate_data

from maxent._support import validation as v


class CategoricalMixin:
    """Columns of categories of an estimator with the parameter `handle_unknown`."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def _validated(self, X, *y, reset=True):
        v.check_choice("handle_unknown", self.handle_unknown, ("error", "ignore"))
        return validate_data(self, X, *y, dtype=None, reset=reset)

    def _learn_encoding(self, X):
        self.categories_ = learn_categories(X)
        return encode_categories(X, self.categories_, "error")

    def _encode(self, X):
        return encode_categories(X, self.categories_, self.handle_unknown)

    def _sizes(self):
        """Number of categories of every feature."""
        return [len(known) for known in self.categories_]


def learn_categories(X):
    """Sorted categories of every column; of objects as numbers or text if they are."""
    missing = np.equal(X, None) if X.dtype == object else np.zeros(X.shape, dtype=bool)
    if missing.any():
        row, k = np.argwhere(missing)[0]
        raise ValueError(
            f"X[{row}, {k}] is None, a missing value; fill it, for instance with a "
            "category of its own such as 'missing'."
        )
    out = []
    for k, column in enumerate(X.T):
        try:
            known = np.unique(column)
        except TypeError:
            kinds = sorted({type(value).__name__ for value in column.tolist()})
            raise ValueError(
                f"feature {k} of X mixes categories of the types {', '.join(kinds)}, "
                "which have no common order; make them all text or all numbers, for "
                "instance by X.astype(str)."
            ) from None
        if known.dtype == object:
            plain = np.array(known.tolist())
            known = plain if plain.dtype.kind in "biufU" else known
        out.append(known)
    return out


def encode_categories(X, categories, handle_unknown="error"):
    """Codes (n, n_features) of categorical features; -1 for unknown categories."""
    codes = np.empty(X.shape, dtype=np.intp)
    if len(categories) != X.shape[1] or not all(map(len, categories)):
        raise ValueError(
            f"the fitted model is inconsistent: categories_={v.shown(categories)} must "
            f"hold the categories of {X.shape[1]} features. Fit it again."
        )
    for k, known in enumerate(categories):
        column = X[:, k]
        codes[:, k] = _codes(column, known)
        if (codes[:, k] < 0).any() and handle_unknown == "error":
            row = int(np.argmin(codes[:, k]))
            found = column[row].item() if hasattr(column[row], "item") else column[row]
            raise ValueError(
                f"X[{row}, {k}] = {found!r} is a category unseen in training; feature "
                f"{k} had {v.shown(known.tolist())}. Use handle_unknown='ignore' to "
                "leave it out, or train with it."
            )
    return codes


def _codes(column, known):
    """Places of values among the known ones, -1 for others, of whatever type."""
    kinds = {
        "U" if a.dtype.kind == "U" else a.dtype.kind in "biuf" for a in (column, known)
    }
    if len(kinds) == 1 and kinds <= {"U", True}:
        at = np.minimum(np.searchsorted(known, column), len(known) - 1)
        return np.where(known[at] == column, at, -1)
    # text among numbers or objects: by equality, not by order
    places = {value: place for place, value in enumerate(known.tolist())}
    return np.array([places.get(value, -1) for value in column.tolist()], dtype=np.intp)
