"""Rows whose scatter is singular, and the features to blame."""

from __future__ import annotations

import math

import numpy as np

from maxent._support.validation import called

SINGULAR = "the weighted scatter of the rows is singular"


class FlatFeature(ValueError):
    """A feature without a scale.

    Parameters
    ----------
    feature : int
    words : str
        What is wrong with it.
    """

    def __init__(self, feature, words):
        self.feature, self.words = int(feature), words
        super().__init__(self.with_names(None))

    def with_names(self, names: list[str] | None) -> str:
        """Return the sentence with these names of the features."""
        return f"{called('feature', [self.feature], names)} {self.words}"


class SingularScatter(ValueError):
    """Rows in a plane.

    Parameters
    ----------
    constant, dependent : list of int
        Features that are constant, and those of which some are linear functions of
        others.
    surplus : int
        How many of the latter are too many.
    """

    def __init__(self, constant, dependent, surplus):
        self.constant, self.dependent, self.surplus = constant, dependent, surplus
        super().__init__(self.with_names(None))

    def with_names(self, names: list[str] | None) -> str:
        """Return the sentence with these names of the features."""
        parts = []
        if self.constant:
            one = len(self.constant) == 1
            parts = [
                f"{called('feature', self.constant, names)} "
                f"{'is constant; drop it' if one else 'are constant; drop them'}"
            ]
        if self.dependent:
            parts += [
                f"{called('feature', self.dependent, names)} are linearly dependent; "
                f"drop {self.surplus} of them"
            ]
        found = ", and ".join(parts) or "features may be nearly constant or collinear"
        return (
            f"{SINGULAR}: {found}, or use prior='weak' or a proper "
            "NormalInverseWishart."
        )


def dependent_features(X, weight):
    """Constant features, dependent ones, and how many of these are too many.

    Parameters
    ----------
    X : ndarray (n, d)
    weight : ndarray (n,)

    Returns
    -------
    constant, dependent : list of int
    surplus : int
    """
    w = np.maximum(weight, 0.0)
    Z = (X - np.average(X, axis=0, weights=w)) * np.sqrt(w)[:, None]
    size = np.linalg.norm(Z, axis=0)
    far = np.abs(X).max(axis=0, initial=0.0) * math.sqrt(w.sum())
    varies = size > 1e-14 * far
    constant, rest = np.flatnonzero(~varies), np.flatnonzero(varies)
    if not len(rest):
        return constant.tolist(), [], 0
    _, s, axes = np.linalg.svd(Z[:, rest] / size[rest], full_matrices=False)
    null = axes[s <= 1e-7 * s[0]]  # the scatter has the squares
    inside = (np.abs(null) > 1e-6).any(axis=0)
    return constant.tolist(), rest[inside].tolist(), len(null)
