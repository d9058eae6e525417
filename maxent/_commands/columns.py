"""Columns of text and missing cells as numbers, by scikit-learn.

A model file holds no encoder of scikit-learn but plain lists and arrays: which columns
are text, their categories, and what is filled in.  They determine the encoder, which
is made again from them.
"""

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from maxent._commands.bins import are_bins, quantiles
from maxent._commands.outcome import CommandError
from maxent._inputs.categories import MISSING, encode_categories
from maxent._support.validation import check_memory

__all__ = [
    "Columns",
    "are_columns",
    "encode",
    "restore_encoder",
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
        Of scikit-learn's OneHotEncoder.
    sparse : bool, default=False
        Whether rows may be CSR.

    Attributes
    ----------
    state_ : dict
        Lists and arrays from which `restore_encoder` makes the encoder.
    encoder_ : ColumnTransformer
        Fitted.
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
        self.encoder_ = restore_encoder(self.state_)
        return self

    def transform(self, X):
        """The rows as numbers."""
        return encode(self.encoder_, X, "the table", self.sparse)


def _median(column, weights):
    """The median of the numbers that are there, 0 of none."""
    there = ~np.isnan(column)
    if not there.any():
        return 0.0
    return quantiles(column[there], 2, None if weights is None else weights[there])[0]


def _encoder(text, categories, drop):
    """Medians for missing numbers, and a column for every category of text.

    Missing text is a category of its own; categories unseen in training are zeros.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import OneHotEncoder

    text = np.asarray(text, dtype=bool)
    return ColumnTransformer(
        [
            (
                "numbers",
                SimpleImputer(strategy="median", keep_empty_features=True),
                np.flatnonzero(~text),
            ),
            (
                "text",
                OneHotEncoder(
                    categories=categories,
                    drop=drop,
                    handle_unknown="ignore",
                ),
                np.flatnonzero(text),
            ),
        ],
        sparse_threshold=_SPARSE_SHARE,
        verbose_feature_names_out=False,
    )


def named_missing(X):
    """The table with missing text as a category."""
    X = X.copy()
    X[np.equal(X, None)] = MISSING
    return X


def restore_encoder(state):
    """The encoder of `Columns`: fitted to a row of its medians and categories."""
    text = state["text"]
    encoder = _encoder(text, state["categories"], state["drop"])
    fill = iter(() if state["fill"] is None else state["fill"].tolist())
    first = iter(c[0] for c in state["categories"])
    row = np.array([[next(first) if t else next(fill) for t in text]], dtype=object)
    return encoder.fit(row)


def encode(encoder, X, name, sparse=False):
    """The rows as numbers; unknown categories are zeros.

    With `sparse` they are CSR where that saves much: many categories and many rows.
    """
    import warnings

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Found unknown categories")
        try:
            rows = encoder.transform(named_missing(X))
        except ValueError as error:
            raise CommandError(f"{name}: {error}") from error
    if isinstance(rows, np.ndarray):
        return np.asarray(rows, dtype=np.float64)
    needed = 8.0 * rows.shape[0] * rows.shape[1]
    if sparse and needed > _DENSE_BYTES:
        return rows
    check_memory("features", rows.shape[1], needed)
    return rows.toarray()


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
    filled = fill is None if not numbers else _is_vector(fill, numbers)
    width = numbers + sum(len(c) - (drop == "first") for c in categories)
    return filled and drop in (None, "first") and width == n


def _is_vector(values, n):
    return (
        isinstance(values, np.ndarray)
        and values.shape == (n,)
        and values.dtype.kind == "f"
        and bool(np.isfinite(values).all())
    )
