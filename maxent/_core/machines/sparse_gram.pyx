"""Products of sparse rows, as a dense matrix.

    out[i, j] = sum_d X[i, d] Y[j, d]
    or          (sum_d X[i, d] Y[j, d] + (a[i] + b[j])) (r[i] s[j])

X by rows and Y by columns (the compressed columns of Y are the rows of its transpose):
row i of the result is a sum of columns of Y, so that what is written stays in cache and
nothing sparse is built.  Measured on 10,000 documents of 100 words out of 40,000, this
takes a fifth of the time of SciPy's product, which is sparse again.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.string cimport memset

from maxent._core.threads cimport team

cdef enum:
    WAVE = 256              # rows between two checks for Ctrl-C
    TILE = 16               # rows and columns that are mirrored together


cdef Py_ssize_t first_from(
    const int* rows, Py_ssize_t lo, Py_ssize_t hi, Py_ssize_t i) noexcept nogil:
    """First place in lo .. hi whose row is i or later."""
    cdef Py_ssize_t mid
    while lo < hi:
        mid = (lo + hi) // 2
        if rows[mid] < i:
            lo = mid + 1
        else:
            hi = mid
    return lo


cdef void one_row(
    const int* columns, const double* values, Py_ssize_t n,
    const int* start, const int* rows, const double* entries,
    Py_ssize_t first, double* out) noexcept nogil:
    """Sum of the columns of Y that a row of X names, from row `first` of Y on."""
    cdef Py_ssize_t k, t, lo, hi
    cdef double x
    for k in range(n):
        x = values[k]
        lo, hi = start[columns[k]], start[columns[k] + 1]
        if first > 0:
            lo = first_from(rows, lo, hi, first)
        for t in range(lo, hi):
            out[rows[t]] += x * entries[t]


cdef void finish_row(
    double a, const double* b, double r, const double* s, Py_ssize_t first,
    Py_ssize_t m, double* out) noexcept nogil:
    """out <- (out + (a + b)) (r s) from column `first` on."""
    cdef Py_ssize_t j
    for j in range(first, m):
        out[j] = (out[j] + (a + b[j])) * (r * s[j])


cdef Py_ssize_t terms_of(
    const int* columns, Py_ssize_t n, const int* start) noexcept nogil:
    """Products that rows of X with n entries take, were no half left out."""
    cdef Py_ssize_t k, terms = 0
    for k in range(n):
        terms += start[columns[k] + 1] - start[columns[k]]
    return terms


cdef void mirror(double* out, Py_ssize_t n, Py_ssize_t first) noexcept nogil:
    """Rows first .. first + TILE - 1 of the lower half from the upper one."""
    cdef Py_ssize_t i, j, t
    for t in range(first // TILE + 1):
        for i in range(first, min(first + TILE, n)):
            for j in range(t * TILE, min((t + 1) * TILE, i)):
                out[i * n + j] = out[j * n + i]


def product(
    const int[::1] x_start,               # IN  (n + 1,), rows of X
    const int[::1] x_columns,
    const double[::1] x_values,
    const int[::1] y_start,               # IN  (d + 1,), columns of Y
    const int[::1] y_rows,                # IN  increasing within every column
    const double[::1] y_values,
    bint symmetric,                       # X is Y: compute j >= i and mirror
    double[:, ::1] out,                   # OUT (n, m)
    int n_threads,
    const double[::1] a=None,             # IN  (n,) and (m,); all of the four or none
    const double[::1] b=None,
    const double[::1] r=None,
    const double[::1] s=None,
):
    """X Y', shifted and scaled if asked; the same bits for any number of threads."""
    cdef Py_ssize_t n = out.shape[0], m = out.shape[1], i, lo, hi, first
    cdef const int* columns = NULL
    cdef const double* values = NULL
    cdef const int* rows = NULL
    cdef const double* entries = NULL
    cdef const double* b_ = NULL
    cdef const double* s_ = NULL
    cdef bint finish = a is not None
    cdef int threads
    if n == 0 or m == 0:
        return
    if finish:
        if not (a.shape[0] == r.shape[0] == n and b.shape[0] == s.shape[0] == m):
            raise ValueError("shifts and factors do not fit")
        b_, s_ = &b[0], &s[0]
    if x_columns.shape[0] > 0:
        columns, values = &x_columns[0], &x_values[0]
    if y_rows.shape[0] > 0:
        rows, entries = &y_rows[0], &y_values[0]
    for lo in range(0, n, WAVE):
        hi = min(lo + WAVE, n)
        threads = team(n_threads, hi - lo, <double>(hi - lo) * m + terms_of(
            columns + x_start[lo], x_start[hi] - x_start[lo], &y_start[0]))
        for i in prange(lo, hi, nogil=True, schedule="dynamic", chunksize=4,
                        num_threads=threads):
            first = i if symmetric else 0
            memset(&out[i, first], 0, (m - first) * sizeof(double))
            one_row(columns + x_start[i], values + x_start[i],
                    x_start[i + 1] - x_start[i], &y_start[0], rows, entries, first,
                    &out[i, 0])
            if finish:
                finish_row(a[i], b_, r[i], s_, first, m, &out[i, 0])
        PyErr_CheckSignals()
    if symmetric:
        for lo in range(0, n, WAVE):
            hi = min(lo + WAVE, n)
            threads = team(n_threads, (hi - lo) // TILE, <double>(hi - lo) * hi)
            for i in prange((hi - lo + TILE - 1) // TILE, nogil=True,
                            schedule="dynamic", chunksize=1, num_threads=threads):
                mirror(&out[0, 0], n, lo + i * TILE)
            PyErr_CheckSignals()
