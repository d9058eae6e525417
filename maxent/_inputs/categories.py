"""Categories of columns of any type, and their codes."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np

from maxent._inputs.estimator_input import validated
from maxent._inputs.plain_categories import missing_values, plain_categories
from maxent._support import validation as v
from maxent._support.remedies import MAKE_BINS
from maxent._support.typing import NDArray
from maxent._support.validation import called, names_of_columns, user_stacklevel

_FAR = 1 << 60
_MOST_FRACTIONS = 50  # that are categories
_FEW_VALUES = 10  # integers that may occur once each and be categories
_MANY_VALUES = 10  # of a column that are not all new by chance

MISSING = "<missing>"  # category of missing values in columns of text


class CategoricalMixin:
    """Columns of categories of an estimator with `handle_unknown` and `missing`."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = self.missing == "category"
        return tags

    def _validated(self, X, *y, reset=True):
        v.check_choice("handle_unknown", self.handle_unknown, ("error", "ignore"))
        return validate_categories(self, X, *y, reset=reset)

    def _learn_encoding(self, X):
        names = names_of_columns(self)
        self.categories_ = learn_categories(X, self.missing, names)
        return encode_categories(X, self.categories_, "error", self.missing, names)

    def _encode(self, X):
        rules = self.handle_unknown, self.missing
        return encode_categories(X, self.categories_, *rules, names_of_columns(self))

    def _sizes(self):
        """Number of categories of every feature."""
        return [len(known) for known in self.categories_]


def _named(k, names):
    """Words for column k after its number: its name, if there is one."""
    return f" (column {v.shown(names[k])})" if names and k < len(names) else ""


def validate_categories(estimator, X, *y, reset, read=None):
    """Rows of any categories, or rows and labels, as scikit-learn checks them.

    Missing values pass; infinite ones do not. `read`, of checked rows, tells the
    columns that the caller named: a single one may hold texts that differ in every row,
    and what other columns hold does not matter.
    """
    if estimator.missing is not None:
        v.check_choice("missing", estimator.missing, ("category",), " or None")
    if read is None:
        _refuse_strings(X)
    if isinstance(X, (list, tuple)):
        X = _as_objects(X)
    checked = validated(
        estimator, X, *y, dtype=_dtype_of(X), reset=reset, ensure_all_finite="allow-nan"
    )
    rows = checked[0] if y else checked
    if rows.dtype == object:
        own = None if read is None else read(rows)
        rows = plain_categories(rows, names_of_columns(estimator), own)
    return (rows, *checked[1:]) if y else rows


def _dtype_of(X):
    """Object for pandas frames with columns that are no numbers; None for other data.

    None keeps what there is, but scikit-learn then takes floats for a frame that has a
    column of an extension type of numbers, whatever the other columns are.
    """
    dtypes = X.dtypes if hasattr(X, "columns") and hasattr(X, "dtypes") else ()
    kinds = {getattr(dtype, "kind", "f") for dtype in dtypes}
    return None if kinds <= set("biuf") else object


def _refuse_strings(X):
    """Refuse sequences given as one string per row, which are no columns."""
    shape = getattr(X, "shape", None)
    if shape is None and isinstance(X, (list, tuple)) and len(X):
        texts = list(X) if all(isinstance(row, str) for row in X) else []
    elif shape is not None and (len(shape) == 1 or shape[1:] == (1,)):
        column = np.asarray(X).ravel()
        texts = column.tolist() if column.dtype.kind in "UO" else []
        if not all(isinstance(text, str) for text in texts):
            return
        # a single column of few categories is one
        if len(shape) == 2 and (
            2 * len(set(texts)) <= len(texts) or min(map(len, texts), default=0) < 2
        ):
            return
    else:
        return
    if not texts:
        return
    short, long = min(map(len, texts)), max(map(len, texts))
    remedy = "np.array([list(s) for s in X])"
    if len(np.shape(X)) == 2:
        remedy = "np.array([list(s) for s in np.ravel(X)])"
    if short < long:
        remedy = (
            f"{remedy} once all have one length, by aligning or cutting them (theirs "
            f"are {short} to {long}), or use the models of sequences in maxent.models"
        )
    raise ValueError(
        f"X holds one string per row, such as {v.shown(texts[0])}, and every position "
        f"needs a column of its own: split them by {remedy}."
    )


def _as_objects(X):
    """Nested lists of text and other values as objects: NumPy would make them text."""
    try:
        objects = np.array(X, dtype=object)
    except ValueError:  # ragged; scikit-learn says so
        return X
    if objects.ndim != 2:
        return X
    texts = [isinstance(x, str) for x in objects.ravel().tolist()]
    mixed = any(texts) and not all(texts)
    return objects if mixed or missing_values(objects).any() else X


def learn_categories(
    X: NDArray[Any],
    missing: Literal["category"] | None = None,
    names: list[str] | None = None,
) -> list[NDArray[Any]]:
    """Sorted categories of every column; of objects as numbers or text if they are.

    With missing="category" that of missing values is NaN among numbers, and the text
    `MISSING` otherwise. Messages use the names of the columns.
    """
    absent = missing_values(X)
    lacking = np.logical_or.reduce(absent, axis=0)
    if lacking.any() and missing is None:
        row, k = np.argwhere(absent)[0]
        value = X[row, k]
        shown = "NaN" if isinstance(value, float) else repr(value)
        raise ValueError(
            f"X[{row}, {k}]{_named(k, names)} is {shown}, a missing value; use "
            "missing='category' to make it a category of its own, here and in rows to "
            "predict, or fill it in both."
        )
    out, quantities = [], {}
    for k, column in enumerate(X.T):
        here = np.ascontiguousarray(column[~absent[:, k]] if lacking[k] else column)
        known, count = _categories_of(k, here, names)
        if _are_quantities(known, count):
            quantities[k] = len(known)
        if lacking[k]:
            known = _with_missing(known)
        out.append(known)
    _warn_of_numbers(quantities, len(X), names)
    return out


def _categories_of(k, column, names):
    """Categories of a column, in order, and the number of rows of each."""
    if (ends := _near_integers(column, len(column))) is not None:
        count = np.bincount(column.astype(np.intp) - ends[0])
        places = np.flatnonzero(count)
        return (places + ends[0]).astype(column.dtype), count[places]
    try:
        known, count = np.unique(column, return_counts=True)
    except TypeError:
        kinds = sorted({type(value).__name__ for value in column.tolist()})
        raise ValueError(
            f"feature {k}{_named(k, names)} of X mixes categories of the types "
            f"{', '.join(kinds)}, which have no common order; make them all text or "
            "all numbers, for instance by X.astype(str)."
        ) from None
    if known.dtype == object:
        plain = np.array(known.tolist())
        known = plain if plain.dtype.kind in "biufU" else known
    return known, count


def _with_missing(known):
    """The categories with one for missing values, in order."""
    if known.dtype.kind in "biuf" and len(known):
        return np.append(known.astype(np.float64), np.nan)
    if known.dtype.kind in "mM":
        return np.append(known, np.array("NaT", known.dtype))
    if known.dtype.kind == "U" or not len(known):
        return np.unique(np.append(known.astype(str), MISSING))
    return np.append(known, [None])


def _place_of_missing(known):
    """Place of the category of missing values, -1 where there is none."""
    if known.dtype.kind == "U":
        at = np.flatnonzero(known == MISSING)
    else:
        at = np.flatnonzero(missing_values(known))
    return int(at[0]) if len(at) else -1


def _warn_of_numbers(quantities, n, names):
    """Warn of columns of n rows that are no categories, given their numbers."""
    if quantities:
        one, most = len(quantities) == 1, max(quantities.values())
        warnings.warn(
            f"the {called('column', quantities, names)} of X hold{'s' * one} "
            f"{'' if one else 'up to '}{most} different numbers in {n} rows: bin "
            f"{'it' if one else 'them'} to make categories, {MAKE_BINS}, or "
            f"drop {'it' if one else 'them'}.",
            UserWarning,
            stacklevel=user_stacklevel(),
        )


def _are_quantities(known, count):
    """True if the values of a column are measured, or number its rows.

    More than half of the rows hold a number that no other row holds; of integers, also
    more than 10. Of numbers that are no integers more than 50 are enough, as in long
    columns of few digits.
    """
    n, once = int(count.sum()), int((count == 1).sum())
    if known.dtype.kind not in "iuf" or n < 2:
        return False
    fractions = _has_fractions(known)
    alone = 2 * once > n and (fractions or once > _FEW_VALUES)
    return alone or (fractions and len(known) > _MOST_FRACTIONS)


def _has_fractions(known):
    return known.dtype.kind == "f" and bool((known % 1.0 > 0).any())


def encode_categories(
    X: NDArray[Any],
    categories: list[NDArray[Any]],
    handle_unknown: str = "error",
    missing: Literal["category"] | None = None,
    names: list[str] | None = None,
) -> NDArray[np.intp]:
    """Codes (n, n_features) of categorical features; -1 for unknown categories.

    Missing values have the code -1 too, or with missing="category" that of their own.
    Messages use the names of the columns. With handle_unknown="ignore" there is a
    warning of columns of which no value is known, with "report" there is none.
    """
    codes = np.empty(X.shape, dtype=np.intp)
    if len(categories) != X.shape[1] or not all(map(len, categories)):
        raise ValueError(
            f"the fitted model is inconsistent: categories_={v.shown(categories)} must "
            f"hold the categories of {X.shape[1]} features. Fit it again."
        )
    absent = missing_values(X)
    for k, known in enumerate(categories):
        column, here = np.ascontiguousarray(X[:, k]), absent[:, k]
        if here.any():
            codes[here, k] = _place_of_missing(known) if missing else -1
            codes[~here, k] = _codes(column[~here], known)
        else:
            codes[:, k] = _codes(column, known)
    if handle_unknown == "error" and (unseen := codes < 0).any():
        k = int(unseen.any(axis=0).argmax())
        row = int(unseen[:, k].argmax())
        value = X[row, k]
        found = value.item() if hasattr(value, "item") else value
        raise ValueError(
            f"X[{row}, {k}]{_named(k, names)} = {found!r} is a category unseen in "
            f"training; feature {k} had {v.shown(categories[k].tolist())}. Use "
            "handle_unknown='ignore' to leave it out, or train with it."
        )
    if handle_unknown == "ignore":
        warn_of_unseen(codes < 0, absent, X, categories, names)
    return codes


def warn_of_unseen(
    unseen: NDArray[np.bool_],
    absent: NDArray[np.bool_],
    X: NDArray[Any],
    categories: list[NDArray[Any]],
    names: list[str] | None = None,
) -> None:
    """Warn of columns without a known category, as other codes or types make them.

    Parameters
    ----------
    unseen, absent : ndarray of bool (n, d)
        Values without a category, and missing ones.
    X : ndarray (n, d)
    categories : list of ndarray
        Those of every column.
    names : list of str, optional
        Names of the columns.
    """
    n_values = (~absent).sum(axis=0)
    known = (~unseen & ~absent).any(axis=0)
    strange = [
        k
        for k in np.flatnonzero(~known & (n_values >= _MANY_VALUES)).tolist()
        if not _has_fractions(categories[k])  # of which training has warned
    ]
    if not strange:
        return
    k = strange[0]
    value = X[~absent[:, k], k][0]
    more = f", nor in {len(strange) - 1} other columns" if len(strange) > 1 else ""
    warnings.warn(
        f"no category in feature {k}{_named(k, names)} of X is known from training"
        f"{more}: its values are such as {v.shown(value)}, those of training "
        f"{v.shown(categories[k].tolist())}. Unknown categories are left out; encode "
        "the rows as those of training were.",
        UserWarning,
        stacklevel=user_stacklevel(),
    )


def _near_integers(values, most):
    """Least and largest of integers that span at most so many; None of other values."""
    if values.dtype.kind not in "iu" or not len(values):
        return None
    low, high = int(values.min()), int(values.max())
    # far from the ends of 64 bits, where differences overflow
    return (low, high) if high - low < most and -_FAR < low <= high < _FAR else None


def _codes(column, known):
    """Places of values among the known ones, -1 for others, of whatever type."""
    ends = _near_integers(known, len(column))
    if ends is not None and column.dtype.kind in "iu":
        # a table of all integers between the ends, and one beyond either end, where
        # differences that wrap round lie too
        least = ends[0] - 1
        table = np.full(ends[1] - least + 2, -1, dtype=np.intp)
        table[known.astype(np.intp) - least] = np.arange(len(known))
        if column.dtype == np.uint64:  # beyond 64 signed bits
            column = np.minimum(column, np.uint64(_FAR))
        place = column.astype(np.intp) - least
        return table.take(place, mode="clip")
    kinds = {
        "U" if a.dtype.kind == "U" else a.dtype.kind in "biuf" for a in (column, known)
    }
    if len(kinds) == 1 and kinds <= {"U", True}:
        at = np.minimum(np.searchsorted(known, column), len(known) - 1)
        return np.where(known[at] == column, at, -1)
    # text among numbers or objects: by equality, not by order
    places = {value: place for place, value in enumerate(known.tolist())}
    return np.array([places.get(value, -1) for value in column.tolist()], dtype=np.intp)
