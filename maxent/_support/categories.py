"""Categories of columns of any type, and their codes."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np

from maxent._core import category_codes as _category_codes
from maxent._support import validation as v
from maxent._support.callers import user_stacklevel
from maxent._support.column_names import called, names_of_columns
from maxent._support.estimator_input import validated
from maxent._support.plain_categories import missing_values, plain_categories
from maxent._support.threads import effective_threads, share_out
from maxent._support.typing import NDArray
from maxent._support.validation import check_memory

MOST_CATEGORIES = 65535  # codes are kept in two bytes; one is kept for missing values
_MOST_FRACTIONS = 50  # that are categories
_FEW_VALUES = 10  # integers that may occur once each and be categories
_FAR = 1 << 60  # from zero, where differences of integers may overflow
_BLOCK = 1 << 15  # values that are looked up together
_NS = 3.0  # to look up one of them
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


def validate_categories(estimator, X, *y, reset):
    """Rows of any categories, or rows and labels, as scikit-learn checks them.

    Missing values pass; infinite ones do not.
    """
    if estimator.missing is not None:
        v.check_choice("missing", estimator.missing, ("category",))
    _refuse_strings(X)
    if isinstance(X, (list, tuple)):
        X = _as_objects(X)
    found = validated(
        estimator, X, *y, dtype=None, reset=reset, ensure_all_finite="allow-nan"
    )
    rows = found[0] if y else found
    if rows.dtype == object:
        rows = plain_categories(rows, names_of_columns(estimator))
    return (rows, *found[1:]) if y else rows


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
    counted = _count_integers(X)
    for k, column in enumerate(X.T):
        if k in counted:
            known, count = counted[k]
        else:
            here = column[~absent[:, k]] if lacking[k] else column
            known, count = _categories_of(k, here, names)
        if _are_quantities(known, count):
            quantities[k] = len(known)
        if lacking[k]:
            known = _with_missing(known)
        out.append(known)
    _warn_of_numbers(quantities, len(X), names)
    return out


def _count_integers(X):
    """Categories of columns of integers that are near each other, and their counts."""
    if X.dtype.kind not in "iu" or not X.size:
        return {}
    ends = [np.empty((-(-len(X) // _rows(X)), X.shape[1]), X.dtype) for _ in "<>"]

    def find_ends(block, thread, stop):
        part = _block(X, block)
        ends[0][block], ends[1][block] = part.min(axis=0), part.max(axis=0)

    share_out(find_ends, len(ends[0]), _NS * X.size)
    ranges = {}
    for k in range(X.shape[1]):
        least, most = int(ends[0][:, k].min()), int(ends[1][:, k].max())
        if most - least < min(len(X), MOST_CATEGORIES) and _are_near(least, most):
            ranges[k] = least, most
    if not ranges:
        return {}
    columns = list(ranges)
    least, first = _table_of(ranges.values())
    counts = np.zeros((effective_threads(), first[-1]), dtype=np.intp)

    def count(block, thread, stop):
        values = _integers(_block(X, block), columns)
        _category_codes.count_values(values, least, first, counts[thread])

    share_out(count, len(ends[0]), _NS * X.size)
    out, total = {}, counts.sum(axis=0)
    for k, low, lo, hi in zip(columns, least, first[:-1], first[1:], strict=True):
        found = np.flatnonzero(total[lo:hi])
        out[k] = (low + found).astype(X.dtype), total[lo:hi][found]
    return out


def _are_near(least, most):
    """Whether integers are near enough to zero for their differences."""
    return least > -_FAR and most < _FAR


def _table_of(ranges):
    """Least values of columns, and where they start in a table of all their values."""
    least, most = np.array(list(ranges), dtype=np.intp).T
    first = np.concatenate([[0], np.cumsum(most - least + 1)])
    return np.ascontiguousarray(least), first


def _rows(X):
    """Rows of a block, whose values stay in the cache."""
    return max(1, _BLOCK // X.shape[1])


def _block(X, block):
    """The rows of X of this number."""
    rows = _rows(X)
    return X[block * rows : (block + 1) * rows]


def _integers(X, columns):
    """Some columns of integers of any size, in order, as signed ones."""
    if len(columns) < X.shape[1]:
        X = X[:, columns]
    if X.dtype == np.uint64:  # none that is used is near the end
        X = np.minimum(X, np.uint64(_FAR))
    return np.ascontiguousarray(X, dtype=np.intp)


def _categories_of(k, column, names):
    """Categories of a column, in order, and the number of rows of each."""
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
            f"{'it' if one else 'them'} to make categories, for instance by "
            "sklearn.preprocessing.KBinsDiscretizer(encode='ordinal').",
            UserWarning,
            stacklevel=user_stacklevel(),
        )


def _are_quantities(known, count):
    """Whether the values of a column are measured, or number its rows.

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
    in_tables = _in_tables(X, categories, codes)
    for k, known in enumerate(categories):
        column, here = X[:, k], absent[:, k]
        if k in in_tables:
            continue
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


def _codes(column, known):
    """Places of values among the known ones, -1 for others, of whatever type."""
    kinds = {
        "U" if a.dtype.kind == "U" else a.dtype.kind in "biuf" for a in (column, known)
    }
    if len(kinds) == 1 and kinds <= {"U", True}:
        at = np.minimum(np.searchsorted(known, column), len(known) - 1)
        return np.where(known[at] == column, at, -1)
    # text among numbers or objects: by equality, not by order
    places = {value: place for place, value in enumerate(known.tolist())}
    return np.array([places.get(value, -1) for value in column.tolist()], dtype=np.intp)


def _in_tables(X, categories, codes):
    """Encode columns of few integers by tables of those between them; which they are.

    All columns together, some rows at a time, which stay in the cache.
    """
    if X.dtype.kind not in "iu":
        return {}
    ranges = {}
    for k, known in enumerate(categories):
        if known.dtype.kind in "iu":
            least, most = int(known.min()), int(known.max())
            if most - least < len(X) and _are_near(least, most):
                ranges[k] = least, most
    if not ranges:
        return ranges
    columns = list(ranges)
    least, first = _table_of(ranges.values())
    table = np.full(first[-1], -1, dtype=np.intp)
    for k, by in zip(columns, first[:-1] - least, strict=True):
        table[categories[k].astype(np.intp) + by] = np.arange(len(categories[k]))
    whole = len(columns) == X.shape[1]

    def encode(block, thread, stop):
        values, out = _integers(_block(X, block), columns), _block(codes, block)
        here = out if whole else np.empty_like(values)
        _category_codes.look_up(values, least, first, table, here)
        if not whole:
            out[:, columns] = here

    share_out(encode, -(-len(X) // _rows(X)), _NS * len(X) * len(columns))
    return ranges


def encode_columns(X):
    """Codes of two or more columns as two-byte integers, transposed: (columns, n)."""
    if not (isinstance(X, np.ndarray) and X.dtype.kind in "iu"):
        X = v.as_doubles("X", X)
    if X.ndim != 2 or X.shape[0] < 1 or X.shape[1] < 2:
        raise ValueError(
            f"X has shape {X.shape}; at least one row of two columns is needed."
        )
    if X.min() < 0 or not X.max() < MOST_CATEGORIES or X.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            wrong = ~((X >= 0) & (X < MOST_CATEGORIES) & (np.floor(X) == X))
        if wrong.any():
            i, j = (int(k) for k in np.argwhere(wrong)[0])
            raise ValueError(
                f"X[{i}, {j}]={X[i, j]:g} is no code; codes are integers from 0 to "
                f"{MOST_CATEGORIES - 1} (scikit-learn's OrdinalEncoder makes them)."
            )
    return np.ascontiguousarray(X.astype(np.uint16, copy=False).T)


def category_offsets(n_categories, codes):
    """Offsets (n + 1,) of the columns among all categories."""
    sizes = codes.max(axis=1).astype(np.intp) + 1
    if n_categories is not None:
        given = v.as_doubles("n_categories", n_categories)
        if given.ndim > 1 or (given.ndim == 1 and len(given) != len(codes)):
            raise ValueError(
                f"n_categories has shape {given.shape}; an integer, or one for each of "
                f"the {len(codes)} columns is needed."
            )
        given = np.broadcast_to(given, len(codes))
        wrong = (given < sizes) | (given > MOST_CATEGORIES) | (given != np.floor(given))
        if not np.isfinite(given).all() or wrong.any():
            u = int(np.argmax(wrong | ~np.isfinite(given)))
            raise ValueError(
                f"n_categories={given[u]:g} of column {u} must be an integer from "
                f"{sizes[u]} (its largest code plus one) to {MOST_CATEGORIES}."
            )
        sizes = given.astype(np.intp)
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)


class CategoryIndex:
    """Which column each category belongs to, all categories in one row."""

    def __init__(self, n_categories):
        self.sizes = tuple(n_categories)
        self.n = len(self.sizes)
        self.offset = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.intp)
        self.total = int(self.offset[-1])
        self.column = np.repeat(np.arange(self.n), self.sizes)

    def expand(self, pairs):
        """Values of pairs of columns (n, n) at all their categories, (D, D)."""
        return pairs[np.ix_(self.column, self.column)]

    def above(self):
        """Mask (D, D) of the pairs of categories of columns u < v."""
        return self.column[:, None] < self.column[None, :]

    def pair_sums(self, table):
        """Sums over the categories of every pair of columns, (n, n)."""
        first = self.offset[:-1]
        return np.add.reduceat(np.add.reduceat(table, first, axis=0), first, axis=1)

    def column_sums(self, values):
        """Sums over the categories of every column, (n,)."""
        return np.add.reduceat(values, self.offset[:-1])


def check_sizes(n_categories):
    """CategoryIndex of two or more columns, whose pair tables fit in memory."""
    if not np.iterable(n_categories) or isinstance(n_categories, str):
        raise ValueError(
            f"n_categories={v.shown(n_categories)} must be a sequence of integers, the "
            "number of categories of every column."
        )
    sizes = [v.check_count("n_categories", r) for r in n_categories]
    if len(sizes) < 2:
        raise ValueError(
            f"n_categories has {len(sizes)} entries: trees join two or more columns."
        )
    if max(sizes) > MOST_CATEGORIES:
        raise ValueError(
            f"n_categories={max(sizes)} of column {int(np.argmax(sizes))} is more than "
            f"{MOST_CATEGORIES}; join rare categories."
        )
    index = CategoryIndex(sizes)
    check_memory(
        f"n_categories of {len(sizes)} columns, with a sum",
        index.total,
        64 * index.total**2,
    )
    return index


def check_codes(X, sizes):
    """Integer codes (n, n_nodes), X[:, i] < sizes[i]; -1 where a value is missing."""
    X = _as_codes(X, sizes)
    out, limits = np.empty(X.shape, dtype=np.intp), np.asarray(sizes)
    step = _rows_between_signals(X)
    for lo in range(0, len(X), step):
        part = X[lo : lo + step]
        known = (part >= -1) & (limits > part)
        if not known.all():
            row, column = np.argwhere(~known)[0]
            raise _no_category(X, lo + row, column, sizes)
        out[lo : lo + step] = part
    return out


def transposed_codes(X, sizes):
    """Codes as of :func:`check_codes` in two bytes, and which columns miss some.

    Returns
    -------
    codes : ndarray of uint16 (n_nodes, n)
        `sizes[i]` where a value of column i is missing; all sizes are below 65536.
    missing : ndarray of bool (n_nodes,)
    """
    limits = np.asarray(sizes)
    if (
        limits.dtype.kind not in "iu"
        or not ((limits > 0) & (limits <= MOST_CATEGORIES)).all()
    ):
        raise ValueError(
            f"the fitted model is inconsistent: {v.shown(list(sizes))} are no numbers "
            f"of categories from 1 to {MOST_CATEGORIES}. Fit it again."
        )
    X, d, limits = _as_codes(X, sizes), len(sizes), limits.astype(np.intp)
    codes = np.empty((d, len(X)), dtype=np.uint16)
    step, every = _rows(X), list(range(d))
    blocks = -(-len(X) // step)
    wrong, lacks = np.full(blocks, -1), np.zeros(blocks, dtype=bool)

    def transpose(block, thread, stop):
        rows = slice(block * step, (block + 1) * step)
        part = _integers(X[rows], every)
        wrong[block], lacks[block] = _category_codes.transpose_codes(
            part, limits, codes[:, rows]
        )

    share_out(transpose, blocks, _NS * X.size)
    if (wrong >= 0).any():
        block = int((wrong >= 0).argmax())
        row, column = divmod(int(wrong[block]), d)
        raise _no_category(X, block * step + row, column, sizes)
    missing = np.zeros(d, dtype=bool)
    if lacks.any():
        missing = (codes == limits[:, None]).any(axis=1)
    return codes, missing


def _as_codes(X, sizes):
    """Integers, or numbers that are some, with a column for each of the sizes."""
    whole = type(X) is np.ndarray and X.dtype.kind in "iu"
    X = X if whole else v.as_doubles("X", X)
    if X.ndim != 2 or X.shape[1] != len(sizes):
        raise ValueError(
            f"X has shape {X.shape}; rows of {len(sizes)} categorical features are "
            "expected."
        )
    step = _rows_between_signals(X)
    for lo in range(0, 0 if whole else len(X), step):
        part = X[lo : lo + step]
        if not (np.isfinite(part).all() and (np.floor(part) == part).all()):
            raise ValueError("X must hold integer codes of categories, without NaN.")
    return X


def _rows_between_signals(X):
    """Rows that are checked at a time, soon enough for Ctrl-C."""
    return max(1, 16 * _BLOCK // max(X.shape[1], 1))


def _no_category(X, row, column, sizes):
    return ValueError(
        f"X[{row}, {column}] = {X[row, column]:g} is not a category: feature {column} "
        f"has the codes 0 to {sizes[column] - 1}, or -1 if it is missing."
    )
