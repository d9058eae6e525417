"""Tables of all values between the least and the largest of columns of integers."""

from __future__ import annotations

import numpy as np

from maxent._core import category_codes as _category_codes
from maxent._support.threads import effective_threads, share_out

_FAR = 1 << 60  # from zero, where differences of integers may overflow
_LARGEST = 1 << 16  # values of a column that are counted in a table
BLOCK = 1 << 15  # values that are looked up together
NS = 3.0  # to look up one of them


def count_integers(X):
    """Categories of columns of integers that are near each other, and their counts."""
    if X.dtype.kind not in "iu" or not X.size:
        return {}
    blocks = -(-len(X) // rows_of_block(X))
    smallest = np.empty((blocks, X.shape[1]), X.dtype)
    largest = np.empty_like(smallest)

    def find_ends(block, thread, stop):
        part = _block(X, block)
        smallest[block], largest[block] = part.min(axis=0), part.max(axis=0)

    share_out(find_ends, blocks, NS * X.size)
    ranges = {}
    for k in range(X.shape[1]):
        least, most = int(smallest[:, k].min()), int(largest[:, k].max())
        if most - least < min(len(X), _LARGEST) and _are_near(least, most):
            ranges[k] = least, most
    if not ranges:
        return {}
    columns = list(ranges)
    least, first = _table_of(ranges.values())
    counts = np.zeros((effective_threads(), first[-1]), dtype=np.intp)

    def count(block, thread, stop):
        values = as_integers(_block(X, block), columns)
        _category_codes.count_values(values, least, first, counts[thread])

    share_out(count, blocks, NS * X.size)
    out, total = {}, counts.sum(axis=0)
    for k, low, lo, hi in zip(columns, least, first[:-1], first[1:], strict=True):
        found = np.flatnonzero(total[lo:hi])
        out[k] = (low + found).astype(X.dtype), total[lo:hi][found]
    return out


def encode_integers(X, categories, codes):
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
        values, out = as_integers(_block(X, block), columns), _block(codes, block)
        here = out if whole else np.empty_like(values)
        _category_codes.look_up(values, least, first, table, here)
        if not whole:
            out[:, columns] = here

    share_out(encode, -(-len(X) // rows_of_block(X)), NS * len(X) * len(columns))
    return ranges


def _are_near(least, most):
    """True if integers are near enough to zero for their differences."""
    return least > -_FAR and most < _FAR


def _table_of(ranges):
    """Least values of columns, and where they start in a table of all their values."""
    least, most = np.array(list(ranges), dtype=np.intp).T
    first = np.concatenate([[0], np.cumsum(most - least + 1)])
    return np.ascontiguousarray(least), first


def rows_of_block(X):
    """Rows of a block, whose values stay in the cache."""
    return max(1, BLOCK // X.shape[1])


def _block(X, block):
    """The rows of X of this number."""
    rows = rows_of_block(X)
    return X[block * rows : (block + 1) * rows]


def as_integers(X, columns):
    """Some columns of integers of any size, in order, as signed ones."""
    if len(columns) < X.shape[1]:
        X = X[:, columns]
    if X.dtype == np.uint64:  # none that is used is near the end
        X = np.minimum(X, np.uint64(_FAR))
    return np.ascontiguousarray(X, dtype=np.intp)
