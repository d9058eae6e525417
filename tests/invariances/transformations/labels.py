"""Labels, targets and sequences by other names and in other forms."""

import numpy as np
import pytest
from invariances.data import same
from invariances.transformations.storage import locked
from invariances.transformations.table import EPS, add, plain

WORDS = ["no", "yes", "zoo"]


def renamed(names, form=np.asarray):
    """Labels 0, 1, 2 by other names, in any order."""

    def change(data, rng):
        k = int(data.y.max()) + 1
        new = np.array(names, dtype=getattr(names, "dtype", None))[:k]
        place = np.argsort(np.argsort(new))  # of each class among the sorted names
        old = dict(zip(new.tolist(), range(k)))
        y = form(new[data.y])
        return data.replace(
            y=y,
            restore={
                **data.restore,
                "labels": lambda f: np.array([old[v] for v in np.asarray(f).tolist()]),
                "classes": lambda f: np.asarray(f)[..., place],
            },
        )

    return change


def pandas_series(dtype):
    return lambda y: pytest.importorskip("pandas").Series(y).astype(dtype)


def levels_of(y):
    """Categories in another order, with one that no row has."""
    pd = pytest.importorskip("pandas")
    return pd.Series(pd.Categorical(y, ["yet", *WORDS[::-1]]))


def of_polars(y):
    return pytest.importorskip("polars").Series(y.tolist())


add("labels of text", "labels", renamed(WORDS))
add("labels of text, backwards", "labels", renamed(WORDS[::-1]), rounding=EPS)
add("labels -1, 1, 3", "labels", renamed([-1, 1, 3]))
add("labels of floats", "labels", renamed([0.5, 1.5, 7.25]))
add("labels of objects", "labels", renamed(WORDS, lambda y: y.astype(object)))
add("labels in a list", "labels", renamed(WORDS, lambda y: y.tolist()))
add("labels of categories", "labels", renamed(WORDS, pandas_series("category")))
add("labels of categories, other levels", "labels", renamed(WORDS, levels_of))
add("labels of pandas text", "labels", renamed(WORDS, pandas_series("str")))
add("labels Int64", "labels", renamed([4, 5, 9], pandas_series("Int64")))
add("labels of polars", "labels", renamed(WORDS, of_polars))
add("labels of bool", "two", renamed([False, True]))
add(
    "labels boolean",
    "two",
    renamed([False, True], pandas_series("boolean")),
)


# -- targets ---------------------------------------------------------------------------
def of_targets(form):
    return lambda data, rng: data.replace(y=form(data.y))


for dtype in ("float32", "int64", "object"):
    add(f"targets {dtype}", "targets", of_targets(lambda y, t=dtype: y.astype(t)))
add("targets Float64", "targets", of_targets(pandas_series("Float64")))
add("targets of polars", "targets", of_targets(of_polars))


# -- sequences -------------------------------------------------------------------------
add("text of letters", "symbols", plain(lambda x: "".join("abc"[k] for k in x)))
add("sequences as lists", "symbols", plain(lambda x: x.tolist()))
add("symbols uint8", "symbols", plain(lambda x: x.astype(np.uint8)))
add("symbols int16", "symbols", plain(lambda x: x.astype(np.int16)))
add("symbols read-only", "symbols", plain(locked))
add(
    "symbols in the other byte order",
    "symbols",
    plain(lambda x: x.astype(x.dtype.newbyteorder())),
)
add(
    "a tuple of sequences",
    "lists",
    lambda data, rng: data.replace(X=tuple(data.X)),
)


def objects_of(data, rng):
    """Entries in an array of objects."""
    X = np.empty(len(data.X), dtype=object)
    X[:] = data.X
    return data.replace(X=X)


add("an array of sequences", "lists", objects_of)


def joined(form):
    """All sequences in one array, with their lengths."""

    def change(data, rng):
        lengths = [len(x) for x in data.X]
        return data.replace(
            X=form(np.concatenate(data.X)), options={"lengths": lengths}
        )

    return change


def dask_array(x):
    return pytest.importorskip("dask.array").from_array(x, chunks=17)


add("one array and lengths", "joined", joined(same))
add("Dask array and lengths", "joined", joined(dask_array), rounding=EPS)


def other_words(data, rng):
    names = {"sun": "Ähre", "sea": "b", "ice": "c c", "fog": "42", "ore": "-"}
    return data.each(lambda words: [names[w] for w in words])


add("other words", "words", other_words, rounding=EPS)
add("documents as tuples", "words", plain(tuple))

# -- letters ---------------------------------------------------------------------------
add("text", "letters", plain(lambda x: ["".join("ACGT"[k] for k in row) for row in x]))
add(
    "lower case", "letters", plain(lambda x: ["".join("acgt"[k] for k in r) for r in x])
)
