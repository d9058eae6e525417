"""Matrices of many rows and some hundred columns: products, and factors of visits.

Rows are shared out by threads. Sums over rows have parts, the same for any number of
threads, that are joined in their order.

Of Z' diag(weight) Z, tiles stay in registers: with rows scaled in cache and half of the
products it takes half the time of a scaled copy and SYRK for 20 to 50 columns, and three
quarters for 200.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.math cimport isfinite
from libc.stdint cimport int32_t
from libc.string cimport memset

from maxent._core.threads cimport team

cdef extern from "tall_loops.h" nogil:
    enum:
        MX_GRAM_LANES
        MX_GRAM_ROWS
    void mx_weighted_gram(
        const double* Z, const double* weight, Py_ssize_t n, Py_ssize_t d,
        Py_ssize_t padded, double* scaled, double* G) noexcept
    void mx_times(
        const double* Z, const double* x, Py_ssize_t n, Py_ssize_t d,
        double* out) noexcept
    void mx_add_transposed_times(
        const double* Z, const double* x, Py_ssize_t n, Py_ssize_t d,
        double* out) noexcept
    int mx_all_finite(const double* x, Py_ssize_t n) noexcept

cdef Py_ssize_t MULTIPLICATIONS = 200_000_000   # between looks at signals
cdef Py_ssize_t PIECE = 8_000_000               # of a part worth a sum of its own
cdef Py_ssize_t PARTS = 8                       # at most, which threads share out
cdef Py_ssize_t SHARE = 400_000                 # entries of a part of a vector's product
cdef Py_ssize_t IN_CACHE = 16_000               # entries, 128 KB
cdef double ENTRY = 0.5                         # ns, mostly those of reading it
cdef double VISIT = 0.6                         # ns, of an entry of a sparse matrix


def weighted_gram(const double[:, ::1] Z, const double[::1] weight, int n_threads=1):
    """Sum of weight[r] z_r z_r' over the rows of Z (n, d), weights >= 0, as (d, d).

    Parts of the rows, the same for any number of threads, have sums of their own.
    """
    cdef Py_ssize_t n = Z.shape[0], d = Z.shape[1], lo, step, rows, parts, k
    cdef Py_ssize_t padded = (d + MX_GRAM_LANES - 1) // MX_GRAM_LANES * MX_GRAM_LANES
    cdef Py_ssize_t square = padded * padded, size = MX_GRAM_ROWS * padded
    cdef double[:, :, ::1] G
    cdef double[:, ::1] scaled
    cdef int threads
    if weight.shape[0] != n:
        raise ValueError(f"{n} rows, but {weight.shape[0]} weights")
    if not n or not d:
        return np.zeros((d, d))
    parts = min(PARTS, max(<Py_ssize_t>1, n * square // PIECE))
    out = np.zeros((parts, padded, padded))
    room = np.empty(parts * size + 8)
    lo = -(room.ctypes.data // 8) % 8
    G, scaled = out, room[lo : lo + parts * size].reshape(parts, size)
    threads = team(n_threads, parts, 0.012 * n * square)
    rows = whole_buffers((n + parts - 1) // parts)
    step = min(rows, whole_buffers(MULTIPLICATIONS // square))
    for lo in range(0, rows, step):
        for k in prange(parts, nogil=True, schedule="dynamic", chunksize=1,
                        num_threads=threads):
            add_rows(Z, weight, k * rows + lo, min(k * rows + min(lo + step, rows), n),
                     padded, &scaled[k, 0], &G[k, 0, 0])
        PyErr_CheckSignals()
    total = out[0]
    for k in range(1, parts):
        total += out[k]
    found = np.triu(total[:d, :d])
    return found + np.triu(found, 1).T


cdef inline Py_ssize_t whole_buffers(Py_ssize_t rows) noexcept nogil:
    """Rows, rounded up to whole buffers of scaled ones."""
    return (max(rows, <Py_ssize_t>1) + MX_GRAM_ROWS - 1) // MX_GRAM_ROWS * MX_GRAM_ROWS


cdef void add_rows(
    const double[:, ::1] Z, const double[::1] weight, Py_ssize_t start, Py_ssize_t stop,
    Py_ssize_t padded, double* scaled, double* G
) noexcept nogil:
    """Add the products of rows [start, stop) to G."""
    if start < stop:
        mx_weighted_gram(&Z[start, 0], &weight[start], stop - start, Z.shape[1], padded,
                         scaled, G)


def times(const double[:, ::1] Z, const double[:, ::1] x, int n_threads=1):
    """Products of rows Z (n, d) with each of x (k, d), as an array (k, n)."""
    cdef Py_ssize_t n = Z.shape[0], d = Z.shape[1], parts, rows, k
    cdef double[:, ::1] out
    cdef int threads
    if x.shape[1] != d:
        raise ValueError(f"{d} columns, but {x.shape[1]} factors")
    found = np.zeros((x.shape[0], n))
    if not n or not d or not x.shape[0]:
        return found
    out = found
    parts = min(2 * PARTS, 1 + n * d // SHARE)
    rows = (n + parts - 1) // parts
    threads = team(n_threads, parts, ENTRY * n * d)
    for k in prange(parts, nogil=True, schedule="dynamic", chunksize=1,
                    num_threads=threads):
        rows_times(Z, x, k * rows, min((k + 1) * rows, n), out)
    return found


cdef void rows_times(
    const double[:, ::1] Z, const double[:, ::1] x, Py_ssize_t start, Py_ssize_t stop,
    double[:, ::1] out
) noexcept nogil:
    cdef Py_ssize_t step = rows_in_cache(Z.shape[1]), lo = start, v
    while lo < stop:
        for v in range(x.shape[0]):
            mx_times(&Z[lo, 0], &x[v, 0], min(step, stop - lo), Z.shape[1], &out[v, lo])
        lo += step


cdef inline Py_ssize_t rows_in_cache(Py_ssize_t d) noexcept nogil:
    """Rows that are read for all vectors before the next ones."""
    return max(<Py_ssize_t>4, IN_CACHE // d)


def transposed_times(const double[:, ::1] Z, const double[:, ::1] x, int n_threads=1):
    """Sums of rows Z (n, d) weighted by each of x (k, n), as an array (k, d)."""
    cdef Py_ssize_t n = Z.shape[0], d = Z.shape[1], m = x.shape[0], parts, rows, k
    cdef Py_ssize_t padded = (d + MX_GRAM_LANES - 1) // MX_GRAM_LANES * MX_GRAM_LANES
    cdef double[:, :, ::1] sums
    cdef int threads
    if x.shape[1] != n:
        raise ValueError(f"{n} rows, but {x.shape[1]} factors")
    if not n or not d or not m:
        return np.zeros((m, d))
    parts = min(PARTS, 1 + n * d // SHARE)
    rows = (n + parts - 1) // parts
    found = np.zeros((parts, m, padded))
    sums = found
    threads = team(n_threads, parts, ENTRY * n * d)
    for k in prange(parts, nogil=True, schedule="dynamic", chunksize=1,
                    num_threads=threads):
        add_rows_times(Z, x, k * rows, min((k + 1) * rows, n), sums[k])
    for k in range(1, parts):
        found[0] += found[k]
    return found[0, :, :d]


cdef void add_rows_times(
    const double[:, ::1] Z, const double[:, ::1] x, Py_ssize_t start, Py_ssize_t stop,
    double[:, ::1] sums
) noexcept nogil:
    cdef Py_ssize_t step = rows_in_cache(Z.shape[1]), lo = start, v
    while lo < stop:
        for v in range(x.shape[0]):
            mx_add_transposed_times(&Z[lo, 0], &x[v, lo], min(step, stop - lo),
                                    Z.shape[1], &sums[v, 0])
        lo += step


cdef struct Csr:
    const int32_t* ends         # of rows, from 0 on
    const int32_t* column
    const double* value


cdef Csr csr_of(
    const int32_t[::1] ends, const int32_t[::1] column, const double[::1] value,
    Py_ssize_t n
) except *:
    cdef Csr A
    if ends.shape[0] != n + 1 or column.shape[0] != value.shape[0]:
        raise ValueError("ends, columns and values do not fit")
    A.ends = &ends[0]
    A.column = &column[0] if column.shape[0] else NULL
    A.value = &value[0] if value.shape[0] else NULL
    return A


cdef void csr_rows_times(
    const Csr* A, const double* x, Py_ssize_t start, Py_ssize_t stop, double* out
) noexcept nogil:
    cdef Py_ssize_t r, k
    cdef double s
    for r in range(start, stop):
        s = 0.
        for k in range(A.ends[r], A.ends[r + 1]):
            s += A.value[k] * x[A.column[k]]
        out[r] = s


cdef void add_csr_rows_times(
    const Csr* A, const double* x, Py_ssize_t start, Py_ssize_t stop, double* sums
) noexcept nogil:
    cdef Py_ssize_t r, k
    for r in range(start, stop):
        for k in range(A.ends[r], A.ends[r + 1]):
            sums[A.column[k]] += A.value[k] * x[r]


def csr_times(
    const int32_t[::1] ends, const int32_t[::1] column, const double[::1] value,
    const double[::1] x, int n_threads=1
):
    """A x of a sparse matrix by rows and x (d,), as an array (n,)."""
    cdef Py_ssize_t n = ends.shape[0] - 1, size = value.shape[0], k, parts, rows
    cdef Csr A = csr_of(ends, column, value, n)
    cdef double[::1] out
    cdef int threads
    found = np.zeros(n)
    if not n or not size:
        return found
    out = found
    parts = min(2 * PARTS, 1 + size // SHARE)
    rows = (n + parts - 1) // parts
    threads = team(n_threads, parts, VISIT * size)
    for k in prange(parts, nogil=True, schedule="dynamic", chunksize=1,
                    num_threads=threads):
        csr_rows_times(&A, &x[0], k * rows, min((k + 1) * rows, n), &out[0])
    return found


def csr_transposed_times(
    const int32_t[::1] ends, const int32_t[::1] column, const double[::1] value,
    const double[::1] x, Py_ssize_t n_columns, int n_threads=1
):
    """A' x of a sparse matrix by rows and x (n,), as an array (n_columns,)."""
    cdef Py_ssize_t n = x.shape[0], size = value.shape[0], k, parts, rows, lead
    cdef Csr A = csr_of(ends, column, value, n)
    cdef double[:, ::1] sums
    cdef int threads
    if not n_columns or not size:
        return np.zeros(n_columns)
    lead = (n_columns + 7) // 8 * 8
    parts = min(PARTS, 1 + size // max(SHARE, 8 * lead))
    rows = (n + parts - 1) // parts
    found = np.zeros((parts, lead))
    sums = found
    threads = team(n_threads, parts, VISIT * size)
    for k in prange(parts, nogil=True, schedule="dynamic", chunksize=1,
                    num_threads=threads):
        add_csr_rows_times(&A, &x[0], k * rows, min((k + 1) * rows, n), &sums[k, 0])
    for k in range(1, parts):
        found[0] += found[k]
    return found[0, :n_columns]


cdef struct Visits:
    Csr cells
    Csr groups
    const Py_ssize_t* first     # cell of every group, and the number of cells
    const double* root          # of a cell
    const double* spread        # over the cells of a visited group
    Py_ssize_t n_cells, n_groups


cdef bint write_row(
    const Visits* v, Py_ssize_t r, double scale, double* to) noexcept nogil:
    """Write one row; return whether it is finite."""
    cdef Py_ssize_t k, j, group
    cdef double size
    cdef const double* count = v.groups.value + v.groups.ends[r]
    cdef bint once = v.groups.ends[r + 1] - v.groups.ends[r] == v.n_groups
    for k in range(v.n_groups if once else 0):
        once &= count[k] == 1.
    if once:
        for j in range(v.n_cells):
            to[j] = -scale * v.spread[j]
    else:
        memset(to, 0, v.n_cells * sizeof(double))
        for k in range(v.groups.ends[r], v.groups.ends[r + 1]):
            group, size = v.groups.column[k], -scale * v.groups.value[k]
            for j in range(v.first[group], v.first[group + 1]):
                to[j] = size * v.spread[j]
    for k in range(v.cells.ends[r], v.cells.ends[r + 1]):
        j = v.cells.column[k]
        to[j] += scale * v.cells.value[k] * v.root[j]
    # counts that add up to one are no larger; what was just written is read slowly
    return isfinite(scale) if once else mx_all_finite(to, v.n_cells)


def write_visits(
    const int32_t[::1] cell_ends,       # IN   CSR (n, n_cells), visits of cells
    const int32_t[::1] cell,
    const double[::1] cell_count,
    const int32_t[::1] group_ends,      # IN   CSR (n, n_groups), visits of groups
    const int32_t[::1] group,
    const double[::1] group_count,
    const Py_ssize_t[::1] first,        # IN   (n_groups + 1,) their first cells
    const double[::1] root,             # IN   (n_cells,)
    const double[::1] spread,           # IN   (n_cells,)
    double[:, :] out,                   # OUT  (n, n_cells), each row contiguous
    const double[::1] scale=None,       # IN   (n,) of every row
    int n_threads=1,
):
    """out = scale (visits of cells * root - visits of groups * spread).

    Returns whether all of it is finite.
    """
    cdef Py_ssize_t n = out.shape[0], d = out.shape[1], lead, parts, rows, k
    cdef Visits v
    cdef Py_ssize_t bad = 0
    cdef int threads
    v.cells = csr_of(cell_ends, cell, cell_count, n)
    v.groups = csr_of(group_ends, group, group_count, n)
    if (
        not root.shape[0] == spread.shape[0] == first[first.shape[0] - 1] == d
        or (scale is not None and scale.shape[0] != n)
        or (n and d and out.strides[1] != sizeof(double))
    ):
        raise ValueError("visits, cells and factor do not fit")
    if not n or not d:
        return True
    v.first, v.root, v.spread = &first[0], &root[0], &spread[0]
    v.n_cells, v.n_groups = d, first.shape[0] - 1
    lead = out.strides[0] // <Py_ssize_t>sizeof(double)
    parts = min(2 * PARTS, 1 + n * d // SHARE)
    rows = (n + parts - 1) // parts
    threads = team(n_threads, parts, ENTRY * n * d + VISIT * cell.shape[0])
    for k in prange(parts, nogil=True, schedule="dynamic", chunksize=1,
                    num_threads=threads):
        bad += write_rows(&v, k * rows, min((k + 1) * rows, n),
                          &scale[0] if scale is not None else NULL, lead, &out[0, 0])
    finite = mx_all_finite(&root[0], d) and mx_all_finite(&spread[0], d)
    return bool(bad == 0 and finite)


cdef Py_ssize_t write_rows(
    const Visits* v, Py_ssize_t start, Py_ssize_t stop, const double* scale,
    Py_ssize_t lead, double* out
) noexcept nogil:
    """How many of the rows [start, stop) are not finite."""
    cdef Py_ssize_t r, bad = 0
    for r in range(start, stop):
        if r + ROWS_AHEAD < stop:
            will_write(out + (r + ROWS_AHEAD) * lead, v.n_cells)
        if not write_row(v, r, 1. if scale == NULL else scale[r], out + r * lead):
            bad += 1
    return bad
