"""Transformations of data that must not matter, or must be refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from invariances.data import Data, each, same

EPS = np.finfo(float).eps


@dataclasses.dataclass(frozen=True)
class Transformation:
    """A change of data or options.

    ``group`` says which kinds of data have it. ``rounding`` bounds the relative error
    that the change itself brings to a column, in units of its spread; None is for the
    same numbers in another storage, for which a fit computes what it computed before.
    ``base`` is applied to both sides of the comparison.
    """

    name: str
    group: str
    change: Callable[[Data, np.random.Generator], Data]
    rounding: float | None = None
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    base: Callable[[Data], Data] = same


TRANSFORMATIONS: list[Transformation] = []


def add(name, group, change, **more):
    TRANSFORMATIONS.append(Transformation(name, group, change, **more))


def plain(change):
    """Apply to every array."""
    return lambda data, rng: data.each(change)


# -- units and origins -----------------------------------------------------------------
def width(data):
    """Columns of every array; of numbers on a line, one."""
    shape = np.shape(data.query[0] if isinstance(data.query, list) else data.query)
    return shape[-1] if len(shape) > 1 else 1


def in_units(data, scale):
    """Columns times numbers; of a matrix of second moments, rows too."""
    scale = scale * np.ones(width(data))
    if data.matrices:
        both = np.multiply.outer(scale, scale)
        volume = (len(scale) + 1) * np.log(scale).sum()
        return data.each(lambda x: x * both).replace(volume=volume)

    def volume(x):
        observed = ~np.isnan(x.reshape(-1, len(scale)))
        return observed @ np.log(scale)

    volumes = each(volume, data.query)
    if isinstance(volumes, list):
        volumes = np.array([rows.sum() for rows in volumes])
    return data.each(lambda x: x * (scale if x.ndim > 1 else scale[0])).replace(
        volume=volumes
    )


def each_in_its_unit(data, rng):
    d = width(data)
    return in_units(data, 10.0 ** rng.permutation(np.linspace(-8, 8, d)))


for unit in (1e-8, 1e-3, 1e8):
    add(f"unit {unit:g}", "unit", lambda d, r, u=unit: in_units(d, u), rounding=EPS)
add("own unit of each column", "units", each_in_its_unit, rounding=EPS)
for origin in (1e6, 1e8):
    add(
        f"origin {origin:g}",
        "origin",
        lambda d, r, o=origin: moved(d, o),
        rounding=EPS * origin / 16.0,
    )


def moved(data, origin):
    level = {"level": lambda f: np.asarray(f) - origin}
    return data.each(lambda x: x + origin).replace(restore={**data.restore, **level})


def shifted_targets(data, rng):
    return data.replace(
        y=data.y + 1e6, restore={**data.restore, "targets": lambda f: f - 1e6}
    )


add("origin 1e6 of targets", "targets", shifted_targets, rounding=EPS * 1e6 / 16.0)


# -- rows and columns ------------------------------------------------------------------
def other_order(data, rng):
    order = rng.permutation(len(data.X))
    back = np.argsort(order)
    changed = data.rows(order)
    return changed.replace(restore={**data.restore, "rows": lambda a: a[back]})


def inner_order(data, rng):
    return data.each(lambda x: x[np.random.default_rng(5).permutation(len(x))])


def other_columns(data, rng):
    order = np.roll(np.arange(width(data)), 1)
    back = np.argsort(order)
    restore = {
        "columns": lambda a: np.asarray(a)[..., back],
        "pairs": lambda a: a[np.ix_(back, back)],
    }
    return data.each(lambda x: x[..., order]).replace(
        restore={**data.restore, **restore}
    )


def weighted(data):
    """Weights 0 to 3; what has weight zero is like nothing else."""
    n = len(data.X)
    weight = 1.0 + np.arange(n) % 3
    weight[n // 2 : n // 2 + 2] = 0.0
    return data.replace(weight=weight)


def copies(data, rng):
    n = len(data.X)
    index = rng.permutation(np.repeat(np.arange(n), data.weight.astype(int)))
    return data.replace(weight=np.ones(n)).rows(index).replace(weight=None)


def doubled(data):
    """All rows, and every third of them three times more."""
    index = np.r_[np.arange(len(data.X)), np.repeat(np.arange(0, len(data.X), 3), 3)]
    return data.rows(index)


def merged(data, rng):
    """Each different row once, with the number of its copies."""
    n = len(data.X) - 3 * len(range(0, _without_copies(len(data.X)), 3))
    weight = np.where(np.arange(n) % 3 == 0, 4.0, 1.0)
    return data.rows(np.arange(n)).replace(weight=weight)


def _without_copies(m):
    """n such that n rows and three copies of every third are m."""
    return next(n for n in range(m + 1) if n + 3 * len(range(0, n, 3)) == m)


add("order of rows", "rows", other_order, rounding=EPS)
add("order within entries", "entries", inner_order, rounding=EPS)
add("order of columns", "columns", other_columns, rounding=EPS)
add("copies for weights", "weights", copies, rounding=EPS, base=weighted)
add("copies merged", "weights", merged, rounding=EPS, base=doubled)


def of_weights(form):
    return lambda data, rng: data.replace(weight=form(data.weight))


def series_of(values):
    """With an index of its own."""
    pd = pytest.importorskip("pandas")
    return pd.Series(values, index=np.arange(len(values))[::-1] + 3)


for name, form in {
    "int64": lambda w: w.astype(np.int64),
    "float32": lambda w: w.astype(np.float32),
    "in a list": lambda w: w.tolist(),
    "in a series": series_of,
}.items():
    add(f"weights {name}", "weighing", of_weights(form), base=weighted)


# -- types of numbers ------------------------------------------------------------------
for dtype in ("float16", "float32", "int64", "int16", "longdouble", "object"):
    add(dtype, "numbers", plain(lambda x, t=dtype: x.astype(t)))
add("other byte order", "numbers", plain(lambda x: x.astype(x.dtype.newbyteorder())))
add("float32", "reals", plain(lambda x: x.astype("float32")))
add(
    "uint8",
    "naturals",
    plain(lambda x: x.astype("uint8")),
    base=lambda data: data.each(lambda x: np.abs(x) % 100),
)
add("float64", "naturals", plain(lambda x: x.astype(float)))


def truths(data):
    """Zeros and ones, bands of the numbers: no column is constant in a class."""
    return data.each(lambda x: np.floor(x / 24.0) % 2)


def nullable_truths(x):
    pd = pytest.importorskip("pandas")
    if x.ndim != 2:
        pytest.skip("a frame is a table")
    return pd.DataFrame(x.astype(bool), columns=NAMES[: x.shape[1]]).astype("boolean")


for group, base in (("truths", truths), ("bits", same)):
    add("bool", group, plain(lambda x: x.astype(bool)), base=base)
    add("pandas boolean", group, plain(nullable_truths), base=base)


# -- memory ----------------------------------------------------------------------------
def locked(x):
    x = np.array(x)
    x.setflags(write=False)
    return x


def strided(x):
    return np.repeat(x, 2, axis=-1)[..., ::2]


def locked_all(data, rng):
    data = data.each(locked)
    y, w = (None if v is None else locked(v) for v in (data.y, data.weight))
    return data.replace(y=y, weight=w)


def masked(data, rng):
    """One entry is hidden, and behind the mask is what was there."""
    first, *others = data.X if isinstance(data.X, list) else [data.X]
    mask = np.zeros(first.shape, dtype=bool)
    mask.flat[1] = True
    first = np.ma.array(first, mask=mask)
    return data.replace(X=[first, *others] if isinstance(data.X, list) else first)


add("masked", "memory", masked)
add("masked", "symbols", masked)
add("Fortran order", "memory", plain(np.asfortranarray))
add("read-only", "memory", locked_all)
add("strided", "memory", plain(strided))
add("reversed memory", "memory", plain(lambda x: x[::-1].copy()[::-1]))
add("lists", "nested", plain(lambda x: x.tolist()))


# -- frames ----------------------------------------------------------------------------
NAMES = ["c", "a", "d", "b"]


def framed(make):
    """Every table as a data frame that ``make(pandas, x, names)`` makes."""

    def change(data, rng):
        pd = pytest.importorskip("pandas")
        return data.each(lambda x: x if x is None else make(pd, x, NAMES[: x.shape[1]]))

    return change


def frame(pd, x, names, dtype=None):
    return pd.DataFrame(x, columns=names, dtype=dtype)


def arrow(pd, x, names):
    pa = pytest.importorskip("pyarrow")
    kind = pa.int64() if x.dtype.kind in "iu" else pa.float64()
    return pd.DataFrame(x, columns=names).astype(pd.ArrowDtype(kind))


def polars(pd, x, names):
    return pytest.importorskip("polars").DataFrame(
        {name: x[:, j] for j, name in enumerate(names)}
    )


def mixed(pd, x, names):
    """Columns of several types at a time."""
    types = ["float32", "Int64", "object", "int64"]
    return frame(pd, x, names).astype(dict(zip(names, types)))


def labelled_rows(data, rng):
    """Frames and labels with indices that are not 0, 1, ..., nor each other's."""
    pd = pytest.importorskip("pandas")
    data = framed(frame)(data, rng)

    def indexed(x):
        return x.set_axis(rng.permutation(len(x)) + 7)

    y, w = data.y, data.weight
    if y is not None and not isinstance(data.X, list):
        y = pd.Series(y, index=rng.permutation(len(y)))
    if w is not None:
        w = pd.Series(w, index=rng.permutation(len(w)))
    return data.each(indexed).replace(y=y, weight=w)


def of_query(change):
    """Frames, of which that of the query is changed."""

    def made(data, rng):
        data = framed(frame)(data, rng)
        return data.replace(query=each(change, data.query))

    return made


add("pandas", "frames", framed(frame))
for dtype in ("Int64", "Float64", "float32", "object", "category"):
    add(
        f"pandas {dtype}",
        "frames" if dtype != "Int64" else "whole",
        framed(lambda pd, x, names, t=dtype: frame(pd, x, names).astype(t)),
    )
add("pandas, types mixed", "whole", framed(mixed))
add("pandas Arrow", "frames", framed(arrow))
add("pandas, other index", "frames", labelled_rows)
add("pandas, names are numbers", "frames", framed(lambda pd, x, names: pd.DataFrame(x)))
add("polars", "frames", framed(polars))
add(
    "pandas, order of columns",
    "names",
    of_query(lambda x: x[list(x.columns[::-1])]),
)
add(
    "pandas, other names",
    "names",
    of_query(lambda x: x.rename(columns={"c": "z"})),
)


def of_other_types(data, rng):
    """Rows to judge of other types than those that were learnt from."""
    pd = pytest.importorskip("pandas")

    def objects(x):
        return pd.DataFrame(x, columns=NAMES[: x.shape[1]], dtype=object)

    return framed(frame)(data.replace(query=None), rng).replace(
        query=each(objects, data.query)
    )


add("pandas, query of objects", "frames", of_other_types)


# -- missing values --------------------------------------------------------------------
def with_none(x):
    return np.where(np.isnan(x), None, x.astype(object))


def nullable(dtype):
    def make(pd, x, names):
        return pd.DataFrame(with_none(x), columns=names).astype(dtype)

    return framed(make)


def arrow_nulls(pd, x, names):
    pa = pytest.importorskip("pyarrow")
    columns = pd.DataFrame(with_none(x), columns=names)
    return columns.astype(pd.ArrowDtype(pa.float64()))


def polars_nulls(pd, x, names):
    pl = pytest.importorskip("polars")
    columns = with_none(x).T.tolist()
    return pl.DataFrame(
        {
            name: pl.Series(column, dtype=pl.Float64)
            for name, column in zip(names, columns)
        }
    )


add("objects with None", "holes", plain(with_none))
add("pandas Float64 with NA", "holes", nullable("Float64"))
add("pandas Int64 with NA", "holes", nullable("Int64"))
add("pandas objects with None", "holes", nullable("object"))
add("Arrow nulls", "holes", framed(arrow_nulls))
add("polars nulls", "holes", framed(polars_nulls))


# -- categories ------------------------------------------------------------------------
TEXT = np.array(["ash", "elm", "fir"])


def as_text(pd, x, names, dtype):
    return pd.DataFrame(TEXT[x], columns=names).astype(dtype)


for dtype in ("object", "str", "string", "category"):
    add(
        f"pandas text {dtype}",
        "categories",
        framed(lambda pd, x, names, t=dtype: as_text(pd, x, names, t)),
        rounding=EPS,
    )


def other_levels(pd, x, names):
    """Categories in another order, with one that no row has."""
    levels = ["yew", *TEXT[::-1]]
    return pd.DataFrame(
        {n: pd.Categorical(TEXT[x[:, j]], levels) for j, n in enumerate(names)}
    )


add("pandas category, other levels", "categories", framed(other_levels), rounding=EPS)
add("text", "categories", plain(lambda x: TEXT[x]), rounding=EPS)
add("objects of text", "categories", plain(lambda x: TEXT[x].astype(object)))


def polars_text(pd, x, names, dtype="String"):
    pl = pytest.importorskip("polars")
    columns = {n: pl.Series(TEXT[x[:, j]].tolist()) for j, n in enumerate(names)}
    return pl.DataFrame(columns).with_columns(pl.all().cast(getattr(pl, dtype)))


def polars_categories(pd, x, names):
    return polars_text(pd, x, names, "Categorical")


add("polars text", "categories", framed(polars_text), rounding=EPS)
add("polars categories", "categories", framed(polars_categories), rounding=EPS)
add(
    "other numbers of categories",
    "categories",
    plain(lambda x: np.array([2, 30, -1])[x]),
    rounding=EPS,
)


# -- sparse ----------------------------------------------------------------------------
def long_indices(x):
    x = sp.csr_array(x)
    x.indices, x.indptr = x.indices.astype(np.int64), x.indptr.astype(np.int64)
    return x


def explicit_zeros(x):
    """Every entry is stored."""
    n, d = x.shape
    columns, ends = np.tile(np.arange(d), n), np.arange(0, n * d + 1, d)
    return sp.csr_array((x.astype(float).ravel(), columns, ends), shape=(n, d))


for form in ("csr_array", "csc_array", "coo_array", "csr_matrix", "lil_array"):
    add(form, "sparse", plain(lambda x, f=form: getattr(sp, f)(x)), rounding=EPS)
add("dok_array", "sparse", plain(sp.dok_array), rounding=EPS)
add(
    "csr_array float32",
    "sparse",
    plain(lambda x: sp.csr_array(x.astype("float32"))),
    rounding=EPS,
)
add("csr_array, zeros stored", "sparse", plain(explicit_zeros), rounding=EPS)
add("csr_array, long indices", "sparse", plain(long_indices), rounding=EPS)


# -- blocks ----------------------------------------------------------------------------
def in_blocks(*cuts):
    """X as a Dask array in blocks of rows, the query as it is."""

    def change(data, rng):
        da = pytest.importorskip("dask.array")
        X = data.X
        sizes = np.diff([0, *(len(X) * np.array(cuts)).astype(int), len(X)])
        blocks = (tuple(sizes.tolist()), *((k,) for k in X.shape[1:]))
        return data.replace(X=da.from_array(X, chunks=blocks))

    return change


add("Dask, one block", "dask", in_blocks(), rounding=EPS)
add("Dask, uneven blocks", "dask", in_blocks(0.2, 0.7), rounding=EPS)


def row_blocks(data, rng):
    from maxent import RowBlocks

    return data.replace(X=RowBlocks(data.X, block_rows=7))


add("RowBlocks", "dask", row_blocks, rounding=EPS)


# -- labels ----------------------------------------------------------------------------
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

# -- processes and threads -------------------------------------------------------------
add("n_jobs=2", "jobs", lambda data, rng: data, options={"n_jobs": 2})

GROUPS = {t.group for t in TRANSFORMATIONS}
