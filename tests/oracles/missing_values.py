"""Rows of categories with missing values of every kind, and what is asked of them."""

import numpy as np
import pandas as pd

# scikit-learn asks estimators that refuse NaN in training to refuse it in prediction,
# where these take it as not observed.
MISSING_IGNORED = ("check_estimators_nan_inf",)

KINDS = {"None": None, "NaN": np.nan, "NA": pd.NA}


def with_missing(X, at, value):
    """Rows as objects with `value` in the entries `at` (mask)."""
    out = X.astype(object)
    out[at] = value
    return out


def frames(X, at):
    """Data frames of text and of numbers with missing entries, by their dtypes."""
    numbers = pd.DataFrame(X).astype("Int64").mask(at)
    text = pd.DataFrame(np.array(list("abcdefgh"))[X])
    return {
        "Int64": numbers,
        "float64": numbers.astype("float64"),
        "object": text.astype(object).mask(at, None),
        "string": text.astype("string").mask(at),
        "category": text.mask(at).astype("category"),
    }
