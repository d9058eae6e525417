"""Columns of text and missing cells as numbers, by scikit-learn.

A model file holds no encoder of scikit-learn but plain lists and arrays: which columns
are text, their categories, and what is filled in.  They determine the encoder, which
is made again from them.
"""

import numpy as np

from maxent._commands.bins import are_bins
from maxent._commands.outcome import CommandError
from maxent._support.categories import MISSING, encode_categories
from maxent._support.mixed_columns import is_text_column
from maxent._support.validation import check_memory

__all__ = [
    "are_columns",
    "column_state",
    "encode",
    "make_encoder",
    "restore_encoder",
    "unseen_categories",
]

_SPARSE_SHARE = 0.1  # rows are sparse below this share of numbers and ones,
_DENSE_BYTES = 2**25  # and where they would take more than this if they were dense


def make_encoder(X, drop=None, sparse=True):
    """An encoder to be fitted on a table with text or missing cells.

    Without `sparse` its rows are dense.
    """
    text = [is_text_column(column) for column in X.T]
    return _encoder(text, "auto", drop, _SPARSE_SHARE if sparse else 0.0)


def _encoder(text, categories, drop, sparse_share=_SPARSE_SHARE):
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
        sparse_threshold=sparse_share,
        verbose_feature_names_out=False,
    )


def named_missing(X):
    """The table with missing text as a category."""
    X = X.copy()
    X[np.equal(X, None)] = MISSING
    return X


def column_state(encoder, text):
    """Return the lists and arrays from which a model file remakes a fitted encoder."""
    made = encoder.named_transformers_
    return {
        "text": [bool(t) for t in text],
        "fill": made["numbers"].statistics_ if not all(text) else None,
        "categories": [c.astype(str) for c in made["text"].categories_]
        if any(text)
        else [],
        "drop": encoder.transformers[1][1].drop,
    }


def restore_encoder(state):
    """The encoder of `column_state`: fitted to a row of its medians and categories."""
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
        As `column_state` makes it, or of an estimator that takes categories itself.
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
    """Whether what a file says of its columns can be one of `column_state`."""
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
