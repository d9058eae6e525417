"""Codes of categories 0, 1, ... of several columns: checks, transposition, offsets."""

from __future__ import annotations

import numpy as np

from maxent._support import validation as v
from maxent._support.validation import check_memory

_BLOCK = 1 << 17  # values that are checked together: they stay in the cache
MOST_CATEGORIES = 65535  # codes are kept in two bytes; one is kept for missing values


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
    return transposed_codes(X, [MOST_CATEGORIES] * X.shape[1])[0]


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
    out = np.empty(X.shape, dtype=np.intp)
    for rows, part in _checked_blocks(X, sizes):
        out[rows] = part
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
    X = _as_codes(X, sizes)
    codes = np.empty(X.shape[::-1], dtype=np.uint16)
    missing = np.zeros(len(codes), dtype=bool)
    for rows, part in _checked_blocks(X, sizes):
        codes[:, rows] = part.T
        if part.min(initial=0) < 0:
            absent = (part < 0).T
            missing |= absent.any(axis=1)
            np.copyto(codes[:, rows], limits[:, None], "unsafe", where=absent)
    return codes, missing


def _checked_blocks(X, sizes):
    """Blocks (rows, codes) of rows of integers, once all of a block are codes.

    They are short enough for Ctrl-C.
    """
    limits, step = np.asarray(sizes), max(1, _BLOCK // max(X.shape[1], 1))
    for lo in range(0, len(X), step):
        part = X[lo : lo + step]
        if part.min(initial=0) < -1 or (part.max(axis=0, initial=0) >= limits).any():
            row, column = np.argwhere((part < -1) | (part >= limits))[0]
            raise ValueError(
                f"X[{lo + row}, {column}] = {part[row, column]:g} is not a category: "
                f"feature {column} has the codes 0 to {sizes[column] - 1}, or -1 if it "
                "is missing."
            )
        yield slice(lo, lo + step), part


def _as_codes(X, sizes):
    """Integers, or numbers that are some, with a column for each of the sizes."""
    whole = type(X) is np.ndarray and X.dtype.kind in "iu"
    X = X if whole else v.as_doubles("X", X)
    if X.ndim != 2 or X.shape[1] != len(sizes):
        raise ValueError(
            f"X has shape {X.shape}; rows of {len(sizes)} categorical features are "
            "expected."
        )
    if whole or (np.isfinite(X).all() and (np.floor(X) == X).all()):
        return X
    i, j = np.argwhere(~(np.isfinite(X) & (np.floor(X) == X)))[0]
    remedy = "impute or remove it"
    if np.isfinite(X[i, j]):
        remedy = "cut measurements into bins, as by pandas.qcut(x, 4, labels=False)"
    raise ValueError(
        f"X[{i}, {j}]={X[i, j]:g} is no code, X must hold integer codes of categories "
        f"0, 1, ...; {remedy}."
    )
