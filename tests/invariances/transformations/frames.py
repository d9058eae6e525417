"""Data frames of every kind, missing values and categories."""

import numpy as np
import pytest
from invariances.data import each
from invariances.transformations.table import EPS, add, plain

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
