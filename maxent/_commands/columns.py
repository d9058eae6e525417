"""Columns of text and missing cells as numbers, by scikit-learn.

A model file holds no encoder of scikit-learn but plain lists and arrays: which columns
are text, their categories, and what is filled in.  They determine the encoder, which
is made again from them.
"""

import numpy as np

from maxent._commands.bins import are_bins
from maxent._commands.outcome import CommandError
from maxent._support.categories import MISSING, warn_of_unseen
from maxent._support.mixed_columns import is_text_column

__all__ = ["are_columns", "column_state", "encode", "make_encoder", "restore_encoder"]


def make_encoder(X, drop=None):
    """An encoder to be fitted on a table with text or missing cells."""
    return _encoder([is_text_column(column) for column in X.T], "auto", drop)


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
                    sparse_output=False,
                ),
                np.flatnonzero(text),
            ),
        ],
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


def encode(encoder, X, name):
    """The rows as numbers; unknown categories are zeros.

    There is a warning of columns of text of which no value is known.
    """
    import warnings

    text = encoder.transformers_[1][2]
    if len(text):
        _warn_of_unseen(X, text, encoder.named_transformers_["text"].categories_)

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Found unknown categories")
        try:
            return np.asarray(encoder.transform(named_missing(X)), dtype=np.float64)
        except ValueError as error:
            raise CommandError(f"{name}: {error}") from error


def _warn_of_unseen(X, text, categories):
    unseen, absent = np.zeros(X.shape, bool), np.ones(X.shape, bool)
    known = [np.empty(0)] * X.shape[1]  # columns of numbers count as missing ones
    for j, found in zip(text, categories):
        unseen[:, j] = ~np.isin(named_missing(X[:, [j]]).astype(str)[:, 0], found)
        absent[:, j], known[j] = np.equal(X[:, j], None), found
    warn_of_unseen(unseen, absent, X, known)


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
