"""Features on a common scale, which a model file keeps as numbers."""

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from maxent._commands.bins import is_vector
from maxent._commands.outcome import CommandError

__all__ = ["Scales", "are_scales", "standardized"]


class Scales(TransformerMixin, BaseEstimator):
    """Mean and scale of every feature; sparse features keep their zeros.

    Parameters
    ----------
    file : str
        How messages call the data.

    Attributes
    ----------
    scales_ : dict
        Arrays "mean", None of sparse features, and "scale".
    """

    def __init__(self, file):
        self.file = file

    def fit(self, X, y=None, sample_weight=None):
        """Learn from rows of weights > 0; `y` is not used."""
        from sklearn.preprocessing import StandardScaler

        dense = isinstance(X, np.ndarray)
        with np.errstate(over="ignore", invalid="ignore"):
            scaler = StandardScaler(with_mean=dense).fit(X, sample_weight=sample_weight)
        wild = np.flatnonzero(~np.isfinite(scaler.var_))
        if wild.size:
            raise CommandError(
                f"{self.file}: the values of feature {wild[0]} (counted from 0) are "
                "too large to standardize"
            )
        self.scales_ = {"mean": scaler.mean_ if dense else None, "scale": scaler.scale_}
        return self

    def transform(self, X):
        """The rows on these scales."""
        return standardized(X, self.scales_)


def standardized(X, scales):
    """The rows on these scales; None leaves them."""
    if scales is None:
        return X
    mean, scale = scales["mean"], scales["scale"]
    if not isinstance(X, np.ndarray):
        if mean is None:
            X = X.copy()
            X.data /= scale[X.indices]
            return X
        X = X.toarray()
    with np.errstate(over="ignore"):  # infinity is refused by the estimator
        return (X if mean is None else X - mean) / scale


def are_scales(scales, n):
    """True if what a file says of its scales can be one of `Scales`."""
    if not isinstance(scales, dict):
        return False
    mean, scale = scales.get("mean"), scales.get("scale")
    whole = (mean is None or is_vector(mean, n)) and is_vector(scale, n)
    return whole and bool((scale > 0).all())
