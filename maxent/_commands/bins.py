"""Columns of numbers in bins of about as many rows each, for models of categories."""

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from maxent._support.mixed_columns import is_text_column

__all__ = ["Bins", "are_bins", "binned"]


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

    def fit(self, X, y=None):
        """Find the edges in a table of `mixed_columns`; `y` is not used."""
        self.bins_ = [self._edges(column) for column in X.T]
        return self

    def _edges(self, column):
        if is_text_column(column):
            return None
        values = column[~np.equal(column, None)].astype(np.float64)
        values = values[~np.isnan(values)]
        different = np.unique(values)
        if len(different) <= self.n_bins:
            return None
        shares = np.arange(1, self.n_bins) / self.n_bins
        edges = np.quantile(values, shares, method="averaged_inverted_cdf")
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


def are_bins(bins, text):
    """Whether what a file says of bins can be those of its columns, some of text."""
    return (
        isinstance(bins, list)
        and len(bins) == len(text)
        and all(b is None or (not t and _are_edges(b)) for b, t in zip(bins, text))
    )


def _are_edges(edges):
    return (
        isinstance(edges, np.ndarray)
        and edges.ndim == 1
        and edges.dtype.kind == "f"
        and bool(np.isfinite(edges).all() and (np.diff(edges) > 0).all())
    )
