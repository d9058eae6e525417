"""Products with matrices of many rows and some hundred columns.

The columns come from several sources side by side. Those of a source are an array, or
are written where and when they are used, a few rows at a time, from what has far fewer
numbers: products then do not wait for memory, which two threads share.

Rows are shared out by threads. Sums over rows have parts, the same for any number of
threads, that are joined in their order.

Of Z' diag(weight) Z, tiles stay in registers: with rows scaled in cache and half of the
products it takes half the time of a scaled copy and SYRK for 20 to 50 columns, and
three quarters for 200.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.math cimport isfinite, sqrt
from libc.stdint cimport int32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from maxent._core.threads cimport team

cdef extern from "tall_loops.h" nogil:
    enum:
        MX_GRAM_LANES
    void mx_add_gram(
        const double* S, Py_ssize_t m, Py_ssize_t padded, double* G) noexcept
    void mx_scaled_row(
        const double* z, double by, Py_ssize_t d, double* out) noexcept
    void mx_times(
        const double* Z, const double* x, Py_ssize_t n, Py_ssize_t d,
        double* out) noexcept
    void mx_add_transposed_times(
        const double* Z, const double* x, Py_ssize_t n, Py_ssize_t d,
        double* out) noexcept

cdef enum:
    CHUNK = 64                  # rows that are written at a time
    LOOK = 8000000              # entries written between two checks for signals

cdef Py_ssize_t MULTIPLICATIONS = 200_000_000   # of a part between checks for signals
cdef Py_ssize_t PIECE = 8_000_000               # of a part that gets a separate sum
cdef Py_ssize_t PARTS = 8                       # at most, which threads share out
cdef Py_ssize_t SHARE = 300_000                 # entries that two parts are worth
cdef double ENTRY = 0.5                         # ns, mostly those of reading it


# -- sources ---------------------------------------------------------------------------
cdef class RowSource:
    """Columns of a matrix, known row by row."""

    def __cinit__(self, *args):
        self.finite = True


cdef struct Dense:
    const double* Z
    Py_ssize_t d


cdef void write_dense(
    const void* state, Py_ssize_t start, Py_ssize_t stop, const double* by,
    double* out, Py_ssize_t lead
) noexcept nogil:
    cdef const Dense* own = <const Dense*>state
    cdef Py_ssize_t i
    for i in range(stop - start):
        mx_scaled_row(own.Z + (start + i) * own.d, 1. if by == NULL else by[i], own.d,
                      out + i * lead)


cdef void dense_times(
    const void* state, Py_ssize_t start, Py_ssize_t stop, const double* x,
    double* out
) noexcept nogil:
    cdef const Dense* own = <const Dense*>state
    mx_times(own.Z + start * own.d, x, stop - start, own.d, out)


cdef void add_dense_transposed(
    const void* state, Py_ssize_t start, Py_ssize_t stop, const double* w,
    double* sums
) noexcept nogil:
    cdef const Dense* own = <const Dense*>state
    mx_add_transposed_times(own.Z + start * own.d, w, stop - start, own.d, sums)


cdef class DenseRows(RowSource):
    """The columns of an array (n, d)."""

    cdef const double[:, ::1] Z
    cdef Dense own

    def __cinit__(self, const double[:, ::1] Z not None):
        self.Z = Z
        self.n_rows = Z.shape[0]
        self.own.Z = &Z[0, 0] if Z.shape[0] and Z.shape[1] else NULL
        self.own.d = self.rows.width = Z.shape[1]
        self.n_entries = Z.shape[0] * Z.shape[1]
        self.rows.state = &self.own
        self.rows.write = write_dense
        self.rows.times = dense_times
        self.rows.add_transposed = add_dense_transposed


cdef struct Csr:
    const int32_t* ends         # of rows, from 0 on
    const int32_t* column
    const double* value


cdef Csr csr_of(
    const int32_t[::1] ends, const int32_t[::1] column, const double[::1] value,
    Py_ssize_t n
) except *:
    cdef Csr A
    if (
        n < 0 or ends.shape[0] != n + 1 or column.shape[0] != value.shape[0]
        or ends[0] != 0 or ends[n] != column.shape[0]
    ):
        raise ValueError("ends, columns and values do not fit")
    A.ends = &ends[0]
    A.column = &column[0] if column.shape[0] else NULL
    A.value = &value[0] if value.shape[0] else NULL
    return A


cdef struct Visits:
    Csr cells
    Csr groups
    const Py_ssize_t* first     # cell of every group, and the number of cells
    const double* root          # of a cell
    const double* spread        # over the cells of a visited group
    Py_ssize_t n_cells, n_groups


cdef void write_visits(
    const void* state, Py_ssize_t start, Py_ssize_t stop, const double* by,
    double* out, Py_ssize_t lead
) noexcept nogil:
    cdef const Visits* v = <const Visits*>state
    cdef Py_ssize_t i, r, k, j, group
    cdef double size, scale
    cdef double* to
    cdef const double* count
    cdef bint once
    for i in range(stop - start):
        r, to, scale = start + i, out + i * lead, 1. if by == NULL else by[i]
        count = v.groups.value + v.groups.ends[r]
        once = v.groups.ends[r + 1] - v.groups.ends[r] == v.n_groups
        for k in range(v.n_groups if once else 0):
            once &= count[k] == 1.
        if once:
            mx_scaled_row(v.spread, -scale, v.n_cells, to)
        else:
            memset(to, 0, v.n_cells * sizeof(double))
            for k in range(v.groups.ends[r], v.groups.ends[r + 1]):
                group, size = v.groups.column[k], -scale * v.groups.value[k]
                for j in range(v.first[group], v.first[group + 1]):
                    to[j] = size * v.spread[j]
        for k in range(v.cells.ends[r], v.cells.ends[r + 1]):
            j = v.cells.column[k]
            to[j] += scale * v.cells.value[k] * v.root[j]


cdef void cells_of(const void* state, const double* x, double* out) noexcept nogil:
    """Share of a visit of each cell in the product with x."""
    cdef const Visits* v = <const Visits*>state
    cdef Py_ssize_t g, j
    cdef double s
    for g in range(v.n_groups):
        s = 0.
        for j in range(v.first[g], v.first[g + 1]):
            s += v.spread[j] * x[j]
        for j in range(v.first[g], v.first[g + 1]):
            out[j] = v.root[j] * x[j] - s


cdef void sums_of_cells(const void* state, double* sums) noexcept nogil:
    """Sums of rows, from the visits of each cell."""
    cdef const Visits* v = <const Visits*>state
    cdef Py_ssize_t g, j
    cdef double s
    for g in range(v.n_groups):
        s = 0.
        for j in range(v.first[g], v.first[g + 1]):
            s += sums[j]
        for j in range(v.first[g], v.first[g + 1]):
            sums[j] = v.root[j] * sums[j] - s * v.spread[j]


cdef void csr_rows_times(
    const void* state, Py_ssize_t start, Py_ssize_t stop, const double* x, double* out
) noexcept nogil:
    cdef const Csr* A = <const Csr*>state
    cdef Py_ssize_t r, k
    cdef double s
    for r in range(start, stop):
        s = 0.
        for k in range(A.ends[r], A.ends[r + 1]):
            s += A.value[k] * x[A.column[k]]
        out[r - start] = s


cdef void add_csr_transposed(
    const void* state, Py_ssize_t start, Py_ssize_t stop, const double* w, double* sums
) noexcept nogil:
    cdef const Csr* A = <const Csr*>state
    cdef Py_ssize_t r, k
    for r in range(start, stop):
        for k in range(A.ends[r], A.ends[r + 1]):
            sums[A.column[k]] += A.value[k] * w[r - start]


cdef class VisitRows(RowSource):
    """Visits of cells times root, less visits of groups times spread.

    Those of groups are the sums of those of their cells. Columns and groups are not
    checked.
    """

    cdef Visits own
    cdef tuple held

    def __cinit__(
        self,
        const int32_t[::1] cell_ends,       # CSR (n, n_cells), visits of cells
        const int32_t[::1] cell,
        const double[::1] cell_count,
        const int32_t[::1] group_ends,      # CSR (n, n_groups), visits of groups
        const int32_t[::1] group,
        const double[::1] group_count,
        const Py_ssize_t[::1] first,        # (n_groups + 1,) their first cells
        const double[::1] root,             # (n_cells,) > 0
        const double[::1] spread,           # (n_cells,)
    ):
        cdef Py_ssize_t n = cell_ends.shape[0] - 1, d = root.shape[0], k
        if not spread.shape[0] == first[first.shape[0] - 1] == d > 0:
            raise ValueError("cells and groups do not fit")
        self.own.cells = csr_of(cell_ends, cell, cell_count, n)
        self.own.groups = csr_of(group_ends, group, group_count, n)
        self.own.first, self.own.root, self.own.spread = &first[0], &root[0], &spread[0]
        self.own.n_cells, self.own.n_groups = d, first.shape[0] - 1
        for k in range(d):
            self.finite &= isfinite(root[k]) and isfinite(spread[k])
        self.held = (cell_ends, cell, cell_count, group_ends, group, group_count, first,
                     root, spread)
        self.n_rows, self.rows.width, self.n_entries = n, d, cell.shape[0]
        self.rows.state = &self.own         # which begins with the visits of cells
        self.rows.write = write_visits
        self.rows.times = csr_rows_times
        self.rows.add_transposed = add_csr_transposed
        self.rows.prepare = cells_of
        self.rows.finish = sums_of_cells


cdef class SparseRows(RowSource):
    """The columns of a sparse matrix by rows, (n, d); for products with vectors."""

    cdef Csr own
    cdef tuple held

    def __cinit__(
        self, const int32_t[::1] ends, const int32_t[::1] column,
        const double[::1] value, Py_ssize_t n_columns,
    ):
        self.n_rows, self.rows.width = ends.shape[0] - 1, n_columns
        self.n_entries = value.shape[0]
        self.own = csr_of(ends, column, value, self.n_rows)
        self.held = ends, column, value
        self.rows.state = &self.own
        self.rows.times = csr_rows_times
        self.rows.add_transposed = add_csr_transposed


# -- matrices --------------------------------------------------------------------------
cdef class TallMatrix:
    """Columns of several sources side by side, those of each scaled by rows.

    Parameters
    ----------
    sources : list of RowSource
        Of n rows each.
    scales : list of ndarray (n,) or None
        Of the rows of each; None for 1.
    """

    cdef list sources
    cdef list scales
    cdef Rows* rows
    cdef const double** scale
    cdef Py_ssize_t count
    cdef Py_ssize_t entries     # that a product with a vector reads
    cdef readonly Py_ssize_t n_rows
    cdef readonly Py_ssize_t n_columns

    def __cinit__(self, list sources not None, list scales=None):
        cdef Py_ssize_t k, width
        cdef RowSource source
        cdef const double[::1] by
        self.sources = list(sources)        # what the pointers point to stays
        self.scales = [None] * len(sources) if scales is None else list(scales)
        if not sources or len(self.scales) != len(sources):
            raise ValueError("sources and scales do not fit")
        self.rows = <Rows*>malloc((len(sources) + 1) * sizeof(Rows))
        self.scale = <const double**>malloc((len(sources) + 1) * sizeof(double*))
        if self.rows == NULL or self.scale == NULL:
            raise MemoryError
        self.n_rows = (<RowSource?>sources[0]).n_rows
        for k in range(len(sources)):
            source, by = <RowSource?>sources[k], self.scales[k]
            width = source.rows.width
            if source.n_rows != self.n_rows or (
                    by is not None and by.shape[0] != self.n_rows):
                raise ValueError("sources and scales do not fit")
            self.n_columns += width
            if not width or not self.n_rows:
                continue
            self.rows[self.count] = source.rows
            self.scale[self.count] = &by[0] if by is not None else NULL
            self.count += 1
            self.entries += source.n_entries

    def __dealloc__(self):
        free(self.rows)
        free(self.scale)

    @property
    def shape(self):
        return self.n_rows, self.n_columns

    cdef Py_ssize_t room(self) noexcept:
        """Scratch of a part of a product with vectors: that of rows to be written."""
        cdef Py_ssize_t k, most = 0
        for k in range(self.count):
            if self.rows[k].times == NULL or self.rows[k].add_transposed == NULL:
                most = max(most, self.rows[k].width)
        return CHUNK * (most + 1)

    cdef int check_written(self) except -1:
        cdef Py_ssize_t k
        for k in range(self.count):
            if self.rows[k].write == NULL:
                raise ValueError("rows of sparse matrices are not written")
        return 0

    cdef void write(
        self, Py_ssize_t start, Py_ssize_t stop, const double* weight, double* by,
        double* out, Py_ssize_t lead) noexcept nogil:
        """Rows times the root of their weights (NULL: 1); by is scratch (CHUNK,)."""
        cdef Py_ssize_t k, i, first = 0
        for k in range(self.count):
            for i in range(stop - start):
                by[i] = 1. if weight == NULL else sqrt(weight[i])
                if self.scale[k] != NULL:
                    by[i] *= self.scale[k][start + i]
            self.rows[k].write(
                self.rows[k].state, start, stop, by, out + first, lead)
            first += self.rows[k].width

    def __getitem__(self, const Py_ssize_t[::1] index not None):
        """The rows at an index, as an array."""
        cdef Py_ssize_t n = index.shape[0], i
        cdef double by[1]
        cdef double[:, ::1] out
        self.check_written()
        array = np.empty((n, self.n_columns))
        out = array
        for i in range(n):
            if not 0 <= index[i] < self.n_rows:
                raise IndexError(f"no row {index[i]} of {self.n_rows}")
            if self.n_columns:
                self.write(index[i], index[i] + 1, NULL, by, &out[i, 0], self.n_columns)
            if i % (1 + LOOK // (self.n_columns + 1)) == 0:
                PyErr_CheckSignals()
        return array

    def to_array(self, Py_ssize_t start=0, stop=None, int n_threads=1):
        """The rows [start, stop), all by default."""
        cdef Py_ssize_t end = self.n_rows if stop is None else stop
        cdef Py_ssize_t rows, chunks, first, last, step, k
        cdef double[:, ::1] out
        cdef int threads
        self.check_written()
        if not 0 <= start <= end <= self.n_rows:
            raise IndexError(f"no rows {start} to {end} of {self.n_rows}")
        rows = end - start
        array = np.empty((rows, self.n_columns))
        out = array
        chunks = (rows + CHUNK - 1) // CHUNK if self.n_columns else 0
        threads = team(n_threads, chunks, ENTRY * rows * self.n_columns)
        step = 1 + LOOK // (CHUNK * (self.n_columns + 1))
        for first in range(0, chunks, step):
            last = min(chunks, first + step)
            for k in prange(first, last, nogil=True, schedule="dynamic",
                            num_threads=threads):
                self.write_chunk(start, k * CHUNK, min((k + 1) * CHUNK, rows), out)
            PyErr_CheckSignals()
        return array

    cdef void write_chunk(
        self, Py_ssize_t start, Py_ssize_t first, Py_ssize_t last, double[:, ::1] out
    ) noexcept nogil:
        cdef double by[CHUNK]
        self.write(start + first, start + last, NULL, by, &out[first, 0],
                   self.n_columns)

    def gram(self, const double[::1] weight, int n_threads=1):
        """Sum of weight[r] z_r z_r' over the rows, weights >= 0, as (d, d).

        Parts of the rows, the same for any number of threads, have sums of their own.
        """
        cdef Py_ssize_t n = self.n_rows, d = self.n_columns, lo, step, rows, parts, k
        cdef Py_ssize_t padded = whole_lanes(d)
        cdef Py_ssize_t square = padded * padded, size = CHUNK * (padded + 1)
        cdef double[:, :, ::1] G
        cdef double[:, ::1] own, total
        cdef int threads
        self.check_written()
        if weight.shape[0] != n:
            raise ValueError(f"{n} rows, but {weight.shape[0]} weights")
        if not n or not d:
            return np.zeros((d, d))
        parts = even_parts(n * square, PIECE)
        out = np.zeros((parts, padded, padded))
        room = np.zeros(parts * size + 8)
        lo = -(room.ctypes.data // 8) % 8
        G, own = out, room[lo : lo + parts * size].reshape(parts, size)
        threads = team(n_threads, parts, 0.012 * n * square)
        rows = whole_chunks((n + parts - 1) // parts)
        step = min(rows, whole_chunks(MULTIPLICATIONS // square))
        for lo in range(0, rows, step):
            for k in prange(parts, nogil=True, schedule="dynamic", chunksize=1,
                            num_threads=threads):
                self.add_gram(weight, k * rows + lo,
                              min(k * rows + min(lo + step, rows), n), padded,
                              &own[k, 0], &G[k, 0, 0])
            PyErr_CheckSignals()
        products = np.empty((d, d))
        total = products
        threads = team(n_threads, d, ENTRY * parts * square)
        for k in prange(d, nogil=True, schedule="dynamic", num_threads=threads):
            add_parts(G, k, total)
        return products

    cdef void add_gram(
        self, const double[::1] weight, Py_ssize_t start, Py_ssize_t stop,
        Py_ssize_t padded, double* own, double* G) noexcept nogil:
        """Add the products of rows [start, stop) to G; padding in `own` stays zero."""
        cdef Py_ssize_t m
        while start < stop:
            m = min(<Py_ssize_t>CHUNK, stop - start)
            self.write(start, start + m, &weight[start], own + CHUNK * padded, own,
                       padded)
            mx_add_gram(own, m, padded, G)
            start += m

    def times(self, const double[:, ::1] x not None, int n_threads=1):
        """Products of the rows with each of x (k, d), as an array (k, n)."""
        cdef Py_ssize_t n = self.n_rows, d = self.n_columns, m = x.shape[0]
        cdef Py_ssize_t parts, rows, k, v
        cdef double[:, ::1] out, prepared, scratch
        cdef int threads
        if x.shape[1] != d:
            raise ValueError(f"{d} columns, but {x.shape[1]} factors")
        products = np.zeros((m, n))
        if not n or not d or not m:
            return products
        out, prepared = products, np.array(x)
        for v in range(m):
            self.prepare(&x[v, 0], &prepared[v, 0])
        parts = 2 * PARTS if self.entries > SHARE else 1
        scratch = np.empty((parts, self.room()))
        rows = whole_chunks((n + parts - 1) // parts)
        threads = team(n_threads, parts, ENTRY * self.entries)
        for k in prange(parts, nogil=True, schedule="dynamic", chunksize=1,
                        num_threads=threads):
            self.rows_times(
                prepared, k * rows, min((k + 1) * rows, n), &scratch[k, 0], out)
        return products

    cdef void prepare(self, const double* x, double* out) noexcept:
        cdef Py_ssize_t k
        for k in range(self.count):
            if self.rows[k].prepare != NULL:
                self.rows[k].prepare(self.rows[k].state, x, out)
            x += self.rows[k].width
            out += self.rows[k].width

    cdef void finish(self, double* sums) noexcept:
        cdef Py_ssize_t k
        for k in range(self.count):
            if self.rows[k].finish != NULL:
                self.rows[k].finish(self.rows[k].state, sums)
            sums += self.rows[k].width

    cdef void rows_times(
        self, const double[:, ::1] x, Py_ssize_t start, Py_ssize_t stop, double* own,
        double[:, ::1] out) noexcept nogil:
        cdef Py_ssize_t m, k, v, i, first
        cdef double* product = own
        cdef double* written = own + CHUNK
        cdef const Rows* rows
        while start < stop:
            m, first = min(<Py_ssize_t>CHUNK, stop - start), 0
            for k in range(self.count):
                rows = &self.rows[k]
                if rows.times == NULL:
                    rows.write(rows.state, start, start + m, NULL, written, rows.width)
                for v in range(x.shape[0]):
                    if rows.times == NULL:
                        mx_times(written, &x[v, first], m, rows.width, product)
                    else:
                        rows.times(
                            rows.state, start, start + m, &x[v, first], product)
                    for i in range(m):
                        if self.scale[k] == NULL:
                            out[v, start + i] += product[i]
                        else:
                            out[v, start + i] += self.scale[k][start + i] * product[i]
                first += rows.width
            start += m

    def transposed_times(self, const double[:, ::1] x not None, int n_threads=1):
        """Sums of the rows weighted by each of x (k, n), as an array (k, d)."""
        cdef Py_ssize_t n = self.n_rows, d = self.n_columns, m = x.shape[0]
        cdef Py_ssize_t padded = whole_lanes(d)
        cdef Py_ssize_t parts, rows, k, v
        cdef double[:, :, ::1] sums
        cdef double[:, ::1] scratch
        cdef int threads
        if x.shape[1] != n:
            raise ValueError(f"{n} rows, but {x.shape[1]} factors")
        if not n or not d or not m:
            return np.zeros((m, d))
        parts = even_parts(self.entries, max(SHARE // 2, 4 * padded))
        rows = whole_chunks((n + parts - 1) // parts)
        products, scratch = np.zeros((parts, m, padded)), np.empty((parts, self.room()))
        sums = products
        threads = team(n_threads, parts, ENTRY * self.entries)
        for k in prange(parts, nogil=True, schedule="dynamic", chunksize=1,
                        num_threads=threads):
            self.add_rows_times(
                x, k * rows, min((k + 1) * rows, n), &scratch[k, 0], sums[k])
        for k in range(1, parts):
            products[0] += products[k]
        for v in range(m):
            self.finish(&sums[0, v, 0])
        return products[0, :, :d]

    cdef void add_rows_times(
        self, const double[:, ::1] x, Py_ssize_t start, Py_ssize_t stop, double* own,
        double[:, ::1] sums) noexcept nogil:
        cdef Py_ssize_t m, k, v, i, first
        cdef double* scaled = own
        cdef double* written = own + CHUNK
        cdef const double* w
        cdef const Rows* rows
        while start < stop:
            m, first = min(<Py_ssize_t>CHUNK, stop - start), 0
            for k in range(self.count):
                rows = &self.rows[k]
                if rows.add_transposed == NULL:
                    rows.write(rows.state, start, start + m, NULL, written, rows.width)
                for v in range(x.shape[0]):
                    w = &x[v, start]
                    if self.scale[k] != NULL:
                        for i in range(m):
                            scaled[i] = w[i] * self.scale[k][start + i]
                        w = scaled
                    if rows.add_transposed == NULL:
                        mx_add_transposed_times(written, w, m, rows.width,
                                                &sums[v, first])
                    else:
                        rows.add_transposed(
                            rows.state, start, start + m, w, &sums[v, first])
                first += rows.width
            start += m


cdef void add_parts(
    const double[:, :, ::1] G, Py_ssize_t i, double[:, ::1] total
) noexcept nogil:
    """Row i of the sum, from its diagonal on, and the column that mirrors it."""
    cdef Py_ssize_t k, j
    cdef double s
    for j in range(i, total.shape[0]):
        s = G[0, i, j]
        for k in range(1, G.shape[0]):
            s += G[k, i, j]
        total[i, j] = total[j, i] = s


cdef inline Py_ssize_t even_parts(Py_ssize_t work, Py_ssize_t piece) noexcept nogil:
    """Number of parts: one, or even, so that two threads have equal shares."""
    return min(PARTS, max(<Py_ssize_t>1, 2 * (work // (2 * piece))))


cdef inline Py_ssize_t whole_lanes(Py_ssize_t columns) noexcept nogil:
    """Columns, rounded up to whole vectors."""
    return (columns + MX_GRAM_LANES - 1) // MX_GRAM_LANES * MX_GRAM_LANES


cdef inline Py_ssize_t whole_chunks(Py_ssize_t rows) noexcept nogil:
    """Rows, rounded up to whole chunks."""
    return (max(rows, <Py_ssize_t>1) + CHUNK - 1) // CHUNK * CHUNK
