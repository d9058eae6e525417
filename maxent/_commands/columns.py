"""Columns of text and missing cells as numbers.

A model file holds plain lists and arrays: which columns are text, their categories, and
what is filled in.
"""

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin

from maxent._commands.bins import are_bins, is_vector, quantiles
from maxent._inputs.categories import MISSING, encode_categories
from maxent._support.validation import check_memory

__all__ = [
    "Columns",
    "are_columns",
    "encode",
    "names_of",
    "sources_of",
    "unseen_categories",
]

_SPARSE_SHARE = 0.1  # rows are sparse below this share of numbers and ones,
_DENSE_BYTES = 2**25  # and where they would take more than this if they were dense


class Columns(TransformerMixin, BaseEstimator):
    """Medians and categories of a table with text or missing cells.

    Parameters
    ----------
    text : list of bool
        Which columns are text.
    drop : {"first", None}
        "first" makes no column of the first category of each.
    sparse : bool, default=False
        Whether rows may be CSR.

    Attributes
    ----------
    state_ : dict
        Lists and arrays for `encode`.
    """

    def __init__(self, text, drop=None, sparse=False):
        self.text = text
        self.drop = drop
        self.sparse = sparse

    def fit(self, X, y=None, sample_weight=None):
        """Learn from a table of `mixed_columns`; `y` is not used.

        Weights of rows are > 0.
        """
        X, text = named_missing(X), np.asarray(self.text)
        numbers = X[:, ~text].astype(np.float64)
        fill = [_median(column, sample_weight) for column in numbers.T]
        self.state_ = {
            "text": [bool(t) for t in text],
            "fill": np.array(fill) if fill else None,
            "categories": [np.array(sorted({*column})) for column in X[:, text].T],
            "drop": self.drop,
        }
        return self

    def transform(self, X):
        """The rows as numbers."""
        return encode(self.state_, X, self.sparse)


def _median(column, weights):
    """The median of the numbers that are there, 0 of none."""
    there = ~np.isnan(column)
    if not there.any():
        return 0.0
    return quantiles(column[there], 2, None if weights is None else weights[there])[0]


def named_missing(X):
    """The table with missing text as a category."""
    X = X.copy()
    X[np.equal(X, None)] = MISSING
    return X


def names_of(state, names):
    """Names of the columns that `encode` makes of columns of these names."""
    numbers = [name for name, text in zip(names, state["text"]) if not text]
    texts = [name for name, text in zip(names, state["text"]) if text]
    return numbers + [
        f"{name}_{category}"
        for name, categories in zip(texts, state["categories"])
        for category in categories[_first(state) :].tolist()
    ]


def sources_of(state, names):
    """Names of the columns that those of `names_of` come from."""
    numbers = [name for name, text in zip(names, state["text"]) if not text]
    texts = [name for name, text in zip(names, state["text"]) if text]
    return numbers + [
        name
        for name, categories in zip(texts, state["categories"])
        for _ in categories[_first(state) :]
    ]


def _first(state):
    """The first category of a column that has a column of its own."""
    return 1 if state["drop"] == "first" else 0


def encode(state, X, sparse=False):
    """The rows as numbers: medians for missing ones, a column for every category.

    Columns of numbers come first. Missing text is a category of its own; categories
    unseen in training are zeros. With `sparse` the rows are CSR where that saves much:
    many categories and many rows.
    """
    text, first = np.asarray(state["text"]), _first(state)
    numbers = X[:, ~text].astype(np.float64)
    if numbers.size:
        numbers = np.where(np.isnan(numbers), state["fill"], numbers)
    categories = [known[first:] for known in state["categories"]]
    codes = np.empty((len(X), 0), dtype=np.intp)
    if categories:
        whole = named_missing(X[:, text])
        codes = encode_categories(whole, state["categories"], "report", "category")
    codes = codes - first
    starts = np.cumsum([0, *map(len, categories)])
    width = numbers.shape[1] + int(starts[-1])
    row, column = np.nonzero(codes >= 0)
    ones = np.ones(len(row)), (row, starts[column] + codes[row, column])
    ones = sp.csr_matrix(ones, shape=(len(X), width - numbers.shape[1]))
    needed = 8.0 * len(X) * width
    share = (np.count_nonzero(numbers) + ones.nnz) / max(len(X) * width, 1)
    if sparse and needed > _DENSE_BYTES and share < _SPARSE_SHARE:
        return sp.hstack([sp.csr_matrix(numbers), ones], format="csr")
    check_memory("features", width, needed)
    return np.hstack([numbers, ones.toarray()])


def unseen_categories(X, columns, estimator):
    """Cells of columns of text whose category training has not met.

    Parameters
    ----------
    X : ndarray of object (n, d)
    columns : dict
        The state of `Columns`, or of an estimator that takes categories itself.
    estimator : object
        The latter keeps its categories in `categories_`.

    Returns
    -------
    found : list of (column, count, example, known)
        Of the columns that have such cells, with the categories that are known.
    """
    text = np.flatnonzero(columns["text"])
    missing, known = "category", columns.get("categories")
    if known is None:
        everything = getattr(estimator, "categories_", None)
        if everything is None or len(everything) != X.shape[1]:
            return []
        missing, known = estimator.missing, [everything[j] for j in text]
    if not len(text):
        return []
    X = X[:, text] if missing is None else named_missing(X[:, text])
    strange = encode_categories(X, known, "report", missing) < 0
    strange &= ~np.equal(X, None)
    return [
        (int(j), int(new.sum()), str(cells[new][0]), categories)
        for j, new, cells, categories in zip(text, strange.T, X.T, known)
        if new.any()
    ]


def are_columns(state, n):
    """True if what a file says of its columns can be a state of `Columns`."""
    if not isinstance(state, dict) or not isinstance(state.get("text"), list):
        return False
    text = state["text"]
    if not text or not all(isinstance(t, bool) for t in text):
        return False
    if "categories" not in state:  # of an estimator that takes categories itself
        bins = state.get("bins")
        return len(text) == n and (bins is None or are_bins(bins, text))
    categories, fill, drop = state["categories"], state.get("fill"), state.get("drop")
    if not isinstance(categories, list) or len(categories) != sum(text):
        return False
    if not all(
        isinstance(c, np.ndarray) and c.dtype.kind == "U" and c.ndim == 1 and len(c)
        for c in categories
    ):
        return False
    numbers = len(text) - sum(text)
    filled = fill is None if not numbers else is_vector(fill, numbers)
    width = numbers + sum(len(c) - (drop == "first") for c in categories)
    return filled and drop in (None, "first") and width == n
