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
cdef double ENTRY = 0.5                         # ns, mostly those of reading it


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


def times(const double[:, ::1] Z, const double[::1] x, int n_threads=1):
    """Z x of rows Z (n, d) and x (d,), as an array (n,)."""
    cdef Py_ssize_t n = Z.shape[0], d = Z.shape[1], parts, rows, k
    cdef double[::1] out
    cdef int threads
    if x.shape[0] != d:
        raise ValueError(f"{d} columns, but {x.shape[0]} factors")
    found = np.zeros(n)
    if not n or not d:
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
    const double[:, ::1] Z, const double[::1] x, Py_ssize_t start, Py_ssize_t stop,
    double[::1] out
) noexcept nogil:
    if start < stop:
        mx_times(&Z[start, 0], &x[0], stop - start, Z.shape[1], &out[start])


def transposed_times(const double[:, ::1] Z, const double[::1] x, int n_threads=1):
    """Z' x of rows Z (n, d) and x (n,), as an array (d,)."""
    cdef Py_ssize_t n = Z.shape[0], d = Z.shape[1], parts, rows, k
    cdef Py_ssize_t padded = (d + MX_GRAM_LANES - 1) // MX_GRAM_LANES * MX_GRAM_LANES
    cdef double[:, ::1] sums
    cdef int threads
    if x.shape[0] != n:
        raise ValueError(f"{n} rows, but {x.shape[0]} factors")
    if not n or not d:
        return np.zeros(d)
    parts = min(PARTS, 1 + n * d // SHARE)
    rows = (n + parts - 1) // parts
    found = np.zeros((parts, padded))
    sums = found
    threads = team(n_threads, parts, ENTRY * n * d)
    for k in prange(parts, nogil=True, schedule="dynamic", chunksize=1,
                    num_threads=threads):
        add_rows_times(Z, x, k * rows, min((k + 1) * rows, n), &sums[k, 0])
    for k in range(1, parts):
        found[0] += found[k]
    return found[0, :d]


cdef void add_rows_times(
    const double[:, ::1] Z, const double[::1] x, Py_ssize_t start, Py_ssize_t stop,
    double* sums
) noexcept nogil:
    if start < stop:
        mx_add_transposed_times(
            &Z[start, 0], &x[start], stop - start, Z.shape[1], sums)


cdef struct Visits:
    # CSR: of cells, whose groups are one after another, and of groups
    const int32_t* cell_row
    const int32_t* cell
    const double* cell_count
    const int32_t* group_row
    const int32_t* group
    const double* group_count
    const Py_ssize_t* first     # cell of every group, and the number of cells
    const double* root          # of a cell
    const double* spread        # over the cells of a visited group
    Py_ssize_t n_cells


cdef bint write_row(
    const Visits* v, Py_ssize_t r, double scale, double* to) noexcept nogil:
    """Write one row; return whether it is finite."""
    cdef Py_ssize_t k, j
    cdef double size
    memset(to, 0, v.n_cells * sizeof(double))
    for k in range(v.group_row[r], v.group_row[r + 1]):
        size = -scale * v.group_count[k]
        for j in range(v.first[v.group[k]], v.first[v.group[k] + 1]):
            to[j] = size * v.spread[j]
    for k in range(v.cell_row[r], v.cell_row[r + 1]):
        to[v.cell[k]] += scale * v.cell_count[k] * v.root[v.cell[k]]
    return mx_all_finite(to, v.n_cells)


def write_visits(
    const int32_t[::1] cell_row,        # IN   (n + 1,) CSR, visits of cells
    const int32_t[::1] cell,
    const double[::1] cell_count,
    const int32_t[::1] group_row,       # IN   (n + 1,) CSR, visits of groups
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
    if (
        not cell_row.shape[0] == group_row.shape[0] == n + 1
        or not root.shape[0] == spread.shape[0] == first[first.shape[0] - 1] == d
        or cell.shape[0] != cell_count.shape[0]
        or group.shape[0] != group_count.shape[0]
        or (scale is not None and scale.shape[0] != n)
        or (n and d and out.strides[1] != sizeof(double))
    ):
        raise ValueError("visits, cells and factor do not fit")
    if not n or not d:
        return True
    v.cell_row, v.group_row = &cell_row[0], &group_row[0]
    v.cell = &cell[0] if cell.shape[0] else NULL
    v.cell_count = &cell_count[0] if cell.shape[0] else NULL
    v.group = &group[0] if group.shape[0] else NULL
    v.group_count = &group_count[0] if group.shape[0] else NULL
    v.first, v.root, v.spread, v.n_cells = &first[0], &root[0], &spread[0], d
    lead = out.strides[0] // <Py_ssize_t>sizeof(double)
    parts = min(2 * PARTS, 1 + n * d // SHARE)
    rows = (n + parts - 1) // parts
    threads = team(n_threads, parts, ENTRY * n * d + 2. * (cell.shape[0] + n))
    for k in prange(parts, nogil=True, schedule="dynamic", chunksize=1,
                    num_threads=threads):
        bad += write_rows(&v, k * rows, min((k + 1) * rows, n),
                          &scale[0] if scale is not None else NULL, lead, &out[0, 0])
    return bad == 0


cdef Py_ssize_t write_rows(
    const Visits* v, Py_ssize_t start, Py_ssize_t stop, const double* scale,
    Py_ssize_t lead, double* out
) noexcept nogil:
    """How many of the rows [start, stop) are not finite."""
    cdef Py_ssize_t r, bad = 0
    for r in range(start, stop):
        if not write_row(v, r, 1. if scale == NULL else scale[r], out + r * lead):
            bad += 1
    return bad
