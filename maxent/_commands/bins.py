"""Columns of numbers in bins of about as many rows each, for models of categories."""

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from maxent._commands.tables.mixed_columns import is_text_column

__all__ = ["Bins", "are_bins", "binned", "is_vector", "quantiles"]


def quantiles(values, n, weights=None):
    """Quantiles 1/n, ..., (n - 1)/n of numbers, each of which counts by its weight.

    A quantile is the least number up to which that share of the weight lies, and the
    middle between it and the next number where the share is met exactly: whole weights
    give the quantiles of rows that are repeated.
    """
    values, place = np.unique(values, return_inverse=True)
    below = n * np.cumsum(np.bincount(place, weights))
    asked = np.arange(1, n) * (below[-1] / n)
    # Sums of weights such as 0.1 meet a share up to the rounding of their additions.
    slack = len(place) * np.finfo(np.float64).eps * asked
    low = values[np.searchsorted(below, asked - slack)]
    above = np.searchsorted(below, asked + slack, side="right")
    high = values[np.minimum(above, len(values) - 1)]
    return np.where(low == high, low, 0.5 * low + 0.5 * high)


class Bins(TransformerMixin, BaseEstimator):
    """Bins between quantiles; missing cells stay.

    The edges are those of scikit-learn's KBinsDiscretizer, but that a value of most
    rows has a bin of its own also where it is the largest.

    Parameters
    ----------
    n_bins : int
        Most bins of a column.  Columns of text, and those of no more different numbers,
        stay as they are.

    Attributes
    ----------
    bins_ : list of ndarray or None
        For every column the least values of its bins but the first, rising, or None.
    """

    def __init__(self, n_bins):
        self.n_bins = n_bins

    def fit(self, X, y=None, sample_weight=None):
        """Find the edges in a table of `mixed_columns`; `y` is not used.

        Weights of rows are > 0.
        """
        weights = np.ones(len(X)) if sample_weight is None else sample_weight
        self.bins_ = [self._edges(column, weights) for column in X.T]
        return self

    def _edges(self, column, weights):
        if is_text_column(column):
            return None
        values = column.astype(np.float64)  # None becomes NaN
        there = ~np.isnan(values)
        values = values[there]
        different = np.unique(values)
        if len(different) <= self.n_bins:
            return None
        edges = quantiles(values, self.n_bins, weights[there])
        edges = np.unique(edges[edges > different[0]])
        return edges if len(edges) else different[1:2]  # of rows nearly all the least

    def transform(self, X):
        """Numbers of the bins, from 0, in place of the values."""
        return binned(X, self.bins_)


def binned(X, bins):
    """The table with numbers of bins for the values of columns that have edges."""
    X = X.copy()
    for j, edges in enumerate(bins):
        if edges is not None:
            values = X[:, j].astype(np.float64)
            codes = np.searchsorted(edges, values, side="right").astype(np.float64)
            X[:, j] = np.where(np.isnan(values), np.nan, codes)
    return X


def is_vector(values, n=None):
    """True if a value of a file is a vector of n, or any number of, finite doubles."""
    return (
        isinstance(values, np.ndarray)
        and values.ndim == 1
        and n in (None, len(values))
        and values.dtype.kind == "f"
        and bool(np.isfinite(values).all())
    )


def are_bins(bins, text):
    """True if what a file says of bins can be those of its columns, some of text."""
    return (
        isinstance(bins, list)
        and len(bins) == len(text)
        and all(b is None or (not t and _are_edges(b)) for b, t in zip(bins, text))
    )


def _are_edges(edges):
    return is_vector(edges) and bool((np.diff(edges) > 0).all())
