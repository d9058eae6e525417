"""The same numbers in other types, memory, sparse formats and blocks."""

import numpy as np
import pytest
import scipy.sparse as sp
from invariances.data import same
from invariances.transformations.frames import NAMES
from invariances.transformations.table import EPS, add, plain

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


# -- processes and threads -------------------------------------------------------------
add("n_jobs=2", "jobs", lambda data, rng: data, options={"n_jobs": 2})
