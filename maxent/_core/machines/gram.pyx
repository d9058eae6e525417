"""Gram matrices of vector kernels, tile by tile: one GEMM and one transform in cache.

Tiles are fixed by the sizes of the problem and each is computed by one thread with
single-threaded BLAS, so results have the same bits for any number of threads.

Squared distances are |x|^2 + |z|^2 - 2 x'z, to (d + 4) eps (|x|^2 + |z|^2).  Where that
is too much for the RBF kernel, rows in their own units are given besides, and distances
of rows that may be near each other are summed from differences.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange, threadid
from libc.math cimport exp, sqrt
from libc.stdlib cimport free, malloc
from libc.string cimport memset
from scipy.linalg.cython_blas cimport dgemm, dgemv, sgemm, sgemv

from maxent._core.threads cimport team

cdef extern from "machines/rbf_loops.h" nogil:
    void mx_transpose_16(
        const float* source, Py_ssize_t ld_source, float* to, Py_ssize_t ld_to,
        bint past_cache) noexcept
    void mx_fence() noexcept
    void mx_rbf_row_f32(
        float* row, const float* zz, float xx, float gamma, Py_ssize_t n) noexcept
    void mx_rbf_row_f64(
        double* row, const double* zz, double xx, double gamma, Py_ssize_t n) noexcept
    void mx_poly_row_f32(
        float* row, float gamma, float coef0, int degree, Py_ssize_t n) noexcept
    void mx_poly_row_f64(
        double* row, double gamma, double coef0, int degree, Py_ssize_t n) noexcept
    void mx_tanh_row_f32(float* row, float gamma, float coef0, Py_ssize_t n) noexcept
    void mx_tanh_row_f64(double* row, double gamma, double coef0, Py_ssize_t n) noexcept
    void mx_split_row(const double* x, Py_ssize_t n, float* high, float* low) noexcept
    double mx_split_apply(
        const float* high, const float* low, const double* a, double ai, Py_ssize_t n,
        double* out) noexcept

# A tile of doubles and its factors stay in a 1 MiB second-level cache. The last tile of
# a triangle is as wide as a chunk of rows: not narrower than TILE_ROWS.
cdef enum:
    TILE_ROWS = 256
    TILE_COLS = 256
    WIDE_COLS = 1024
    DIAGONAL = 48
    OUTSIDE = 1 << 22          # floats that the caches do not hold
    FEW = 3                    # entries passed over cost as much as one looked up
    PARTS = 4                  # of a triangle, for as many threads
    PARTED = 1024              # rows from which a triangle has parts

# gamma (|x|^2 + |z|^2) up to which a squared distance is good enough: to 1e-12 d of
# the kernel value in double precision.
CANCELLING = 1e3
FAR = 40.                      # kernel values below exp(-40) need no digits
cdef double LIMIT = CANCELLING
cdef double FAR_ = FAR


cdef Py_ssize_t near_rows(
    const KernelSpec* spec, const double* x, double xx, const double* Z,
    const real* zz, Py_ssize_t cols, Py_ssize_t d, const real* inner,
    Py_ssize_t* places, real* values) noexcept nogil:
    """Recompute values from differences where norms cancel and rows may be near; count.

    x and Z are in their own units, xx, zz and the inner products in those of gamma.
    """
    cdef double eps = 1.2e-7 if real is float else 2.3e-16
    cdef double size, apart, total, difference
    cdef Py_ssize_t j, k, found = 0
    for j in range(cols):
        size = spec.gamma * (xx + zz[j])
        if size <= LIMIT:
            continue
        apart = size - 2. * spec.gamma * inner[j]
        if apart > FAR_ + 2. * (d + 4) * eps * size:     # NaN by overflow is kept
            continue
        total = 0.
        for k in range(d):
            difference = x[k] - Z[j * d + k]
            total += difference * difference
        places[found] = j
        values[found] = <real>exp(-spec.raw_gamma * total)
        found += 1
    return found


cdef void inner_products(
    const real* X, Py_ssize_t rows, const real* Z, Py_ssize_t cols, Py_ssize_t d,
    real* out, Py_ssize_t ld) noexcept nogil:
    """out[i, j] = X[i]'Z[j]."""
    cdef int m = <int>cols, n = <int>rows, k = <int>d, ldc = <int>ld
    cdef int lead = k if k > 0 else 1
    cdef real one = 1, zero = 0
    cdef char* tn = b"T"
    cdef char* nn = b"N"
    if real is float:
        sgemm(tn, nn, &m, &n, &k, &one, <float*>Z, &lead, <float*>X, &lead,
              &zero, out, &ldc)
    else:
        dgemm(tn, nn, &m, &n, &k, &one, <double*>Z, &lead, <double*>X, &lead,
              &zero, out, &ldc)


cdef void kernel_tile(
    const KernelSpec* spec, const real* X, const real* xx, Py_ssize_t rows,
    const real* Z, const real* zz, Py_ssize_t cols, Py_ssize_t d,
    real* out, Py_ssize_t ld, const double* raw_X, const double* raw_Z) noexcept nogil:
    """out[i, j] = k(X[i], Z[j]) for at most WIDE_COLS columns.

    xx, zz are squared norms (RBF only); raw_X, raw_Z the rows in their own units, or
    NULL where norms serve.
    """
    cdef Py_ssize_t i, j, near = 0
    cdef Py_ssize_t places[WIDE_COLS]
    cdef real values[WIDE_COLS]
    inner_products(X, rows, Z, cols, d, out, ld)
    for i in range(rows):
        if spec.kind == RBF:
            if raw_X != NULL:
                near = near_rows(spec, raw_X + i * d, xx[i], raw_Z, zz, cols, d,
                                 out + i * ld, places, values)
            if real is float:
                mx_rbf_row_f32(out + i * ld, zz, xx[i], <float>spec.gamma, cols)
            else:
                mx_rbf_row_f64(out + i * ld, zz, xx[i], spec.gamma, cols)
            for j in range(near):
                out[i * ld + places[j]] = values[j]
        elif spec.kind == POLYNOMIAL:
            if real is float:
                mx_poly_row_f32(out + i * ld, <float>spec.gamma,
                                <float>spec.coef0, spec.degree, cols)
            else:
                mx_poly_row_f64(out + i * ld, spec.gamma, spec.coef0,
                                spec.degree, cols)
        elif spec.kind == SIGMOID:
            if real is float:
                mx_tanh_row_f32(out + i * ld, <float>spec.gamma,
                                <float>spec.coef0, cols)
            else:
                mx_tanh_row_f64(out + i * ld, spec.gamma, spec.coef0, cols)


cdef KernelSpec unpack_kernel(tuple spec, object raw) except *:
    """(kind, gamma, coef0, degree) and None or (gamma, rows, ...) -> struct."""
    cdef KernelSpec s
    s.kind = spec[0]
    s.gamma = spec[1]
    s.coef0 = spec[2]
    s.degree = spec[3]
    s.raw_gamma = 0. if raw is None else raw[0]
    return s


cdef const double* raw_rows(
    object raw, int which, Py_ssize_t n, Py_ssize_t d) except? NULL:
    """First entry of an array of n rows in their own units; NULL if there is none."""
    cdef const double[:, ::1] rows
    if raw is None or n == 0 or d == 0:
        return NULL
    rows = raw[which]
    if rows.shape[0] != n or rows.shape[1] != d:
        raise ValueError("raw rows need the shape of the rows")
    return &rows[0, 0]


cdef inline const double* at_row(
    const double* raw, Py_ssize_t t, Py_ssize_t d) noexcept nogil:
    return raw + t * d if raw != NULL else NULL


cdef Py_ssize_t rows_per_chunk(Py_ssize_t m, Py_ssize_t d) noexcept nogil:
    """Rows whose work stays below 50 ms, so that Ctrl-C is answered in time."""
    cdef Py_ssize_t rows = TILE_ROWS
    while rows > 8 and ns_of_values(rows, m, d) > 5e7:
        rows //= 2
    return rows


cdef Py_ssize_t chunks_at_once(
    Py_ssize_t m, Py_ssize_t d, Py_ssize_t rows, int n_threads
) noexcept nogil:
    """Chunks between two checks for Ctrl-C, near 20 ms of every thread."""
    return n_threads * max(<Py_ssize_t>1, <Py_ssize_t>(2e7 / ns_of_values(rows, m, d)))


cdef double ns_of_values(Py_ssize_t n, Py_ssize_t m, Py_ssize_t d) noexcept nogil:
    """Time of n m kernel values, roughly."""
    return <double>n * <double>m * (0.02 * <double>d + 2.) + 1.


cdef double ns_of_triangle(Py_ssize_t n, Py_ssize_t d) noexcept nogil:
    """Time of the kernel values of one triangle of (n, n), roughly."""
    return 0.5 * ns_of_values(n, n, d)


def gram(
    tuple spec,
    const real[:, ::1] X,         # IN   (n, d)
    const real[::1] xx,           # IN   (n,) squared norms (read for RBF only)
    const real[:, ::1] Z,         # IN   (m, d)
    const real[::1] zz,           # IN   (m,)
    real[:, :] out,               # OUT  (>= n, >= m), rows contiguous
    int n_threads,
    raw=None,                     # IN   (gamma, X, Z) in their own units, or None
):
    """out[i, j] = k(X[i], Z[j]) for i < n, j < m."""
    cdef KernelSpec s = unpack_kernel(spec, raw)
    cdef Py_ssize_t n = X.shape[0], m = Z.shape[0], d = X.shape[1]
    cdef Py_ssize_t rows = rows_per_chunk(m, d), c, c1, r, cols, t
    cdef Py_ssize_t chunks = (n + rows - 1) // rows, first
    cdef Py_ssize_t wave = chunks_at_once(m, d, rows, n_threads)
    cdef int threads = team(n_threads, chunks, ns_of_values(n, m, d))
    cdef Py_ssize_t ld = out.strides[0] // sizeof(real)
    cdef const double* raw_X = raw_rows(raw, 1, n, d)
    cdef const double* raw_Z = raw_rows(raw, 2, m, d)
    if n == 0 or m == 0:
        return
    for first in range(0, chunks, wave):
        c1 = min(first + wave, chunks)
        for c in prange(first, c1, nogil=True, schedule="dynamic", chunksize=1,
                        num_threads=threads):
            r = min(rows, n - c * rows)
            for t in range((m + WIDE_COLS - 1) // WIDE_COLS):
                cols = t * WIDE_COLS
                kernel_tile(
                    &s, &X[c * rows, 0], &xx[c * rows], r,
                    &Z[cols, 0], &zz[cols], min(<Py_ssize_t>WIDE_COLS, m - cols), d,
                    &out[c * rows, cols], ld, at_row(raw_X, c * rows, d),
                    at_row(raw_Z, cols, d))
        PyErr_CheckSignals()


cdef void mirror_tile(
    real* out, Py_ssize_t ld, Py_ssize_t row0, Py_ssize_t row1, Py_ssize_t col0,
    Py_ssize_t col1) noexcept nogil:
    """Copy out[i, j], i in [row0, row1), j in [col0, col1), j < i, to out[j, i]."""
    cdef bint past_cache = row1 * ld >= OUTSIDE    # these rows and those before
    cdef Py_ssize_t i, j, i0, j0
    cdef real block[256]
    cdef real* to
    for j0 in range(col0, col1, 16):
        for i0 in range(row0, row1, 16):
            if i0 + 16 <= row1 and j0 + 16 <= col1 and j0 + 16 <= i0:
                if real is float:
                    mx_transpose_16(out + i0 * ld + j0, ld, out + j0 * ld + i0, ld,
                                    past_cache)
                    continue
                for i in range(16):
                    for j in range(16):
                        block[j * 16 + i] = out[(i0 + i) * ld + j0 + j]
                for j in range(16):
                    to = out + (j0 + j) * ld + i0
                    for i in range(16):
                        to[i] = block[j * 16 + i]
            else:
                for j in range(j0, min(j0 + 16, col1)):
                    for i in range(max(i0, j + 1), min(i0 + 16, row1)):
                        out[j * ld + i] = out[i * ld + j]
    if past_cache:
        mx_fence()


def mirror(
    float[:, :] out,              # IN/OUT (>= n, >= n), rows contiguous
    Py_ssize_t split,
    Py_ssize_t n,
):
    """out[:split, split:n] = out[split:n, :split]'."""
    if not 0 <= split <= n or min(out.shape[0], out.shape[1]) < n:
        raise ValueError("the block is not inside the matrix")
    if out.strides[1] != sizeof(float):
        raise ValueError("out needs contiguous rows")
    if 0 < split < n:
        with nogil:
            mirror_tile(&out[0, 0], out.strides[0] // <Py_ssize_t>sizeof(float), split,
                        n, 0, split)


cdef inline Py_ssize_t tile_width(
    Py_ssize_t cols, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t widest
) noexcept nogil:
    """Columns of the tile from `cols` on of rows [start, stop) of a triangle.

    Those on the diagonal are narrow and leave out the rows above it.
    """
    if cols < start:
        return min(widest, start - cols)
    return min(<Py_ssize_t>DIAGONAL, stop - cols)


cdef void symmetric_chunk(
    const KernelSpec* s, const real* X, const real* xx, Py_ssize_t start,
    Py_ssize_t stop, Py_ssize_t d, real* out, Py_ssize_t ld, const double* raw_X
) noexcept nogil:
    """Rows [start, stop) of the lower triangle, and their mirror image."""
    cdef Py_ssize_t cols = 0, w, top, i
    while cols < stop:
        w = tile_width(cols, start, stop, WIDE_COLS)
        top = max(start, cols)
        kernel_tile(
            s, X + top * d, xx + top, stop - top, X + cols * d, xx + cols, w, d,
            out + top * ld + cols, ld, at_row(raw_X, top, d), at_row(raw_X, cols, d))
        mirror_tile(out, ld, top, stop, cols, cols + w)
        cols += w
    if s.kind == RBF:
        for i in range(start, stop):
            out[i * ld + i] = 1


def gram_symmetric(
    tuple spec,
    const real[:, ::1] X,         # IN   (n, d)
    const real[::1] xx,           # IN   (n,)
    real[:, :] out,               # OUT  (>= n, >= n), rows contiguous
    int n_threads,
    Py_ssize_t known=0,
    raw=None,                     # IN   (gamma, X) in their own units, or None
):
    """out[i, j] = k(X[i], X[j]); one triangle is computed and mirrored.

    The leading `known` rows and columns are there already.
    """
    cdef KernelSpec s = unpack_kernel(spec, raw)
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1]
    cdef Py_ssize_t rows = rows_per_chunk(n, d), c, c1, start
    cdef Py_ssize_t chunks = (n - known + rows - 1) // rows, first
    cdef Py_ssize_t wave = chunks_at_once(n, d, rows, n_threads)
    cdef double ns = ns_of_triangle(n, d) - ns_of_triangle(known, d)
    cdef int threads = team(n_threads, chunks, ns)
    cdef Py_ssize_t ld = out.strides[0] // sizeof(real)
    cdef const double* raw_X = raw_rows(raw, 1, n, d)
    if n <= known:
        return
    for first in range(0, chunks, wave):
        c1 = min(first + wave, chunks)
        for c in prange(first, c1, nogil=True, schedule="dynamic", chunksize=1,
                        num_threads=threads):
            start = known + c * rows
            symmetric_chunk(&s, &X[0, 0], &xx[0], start, min(start + rows, n), d,
                            &out[0, 0], ld, raw_X)
        PyErr_CheckSignals()


cdef void split_chunk(
    const KernelSpec* s, const double* X, const double* xx, Py_ssize_t start,
    Py_ssize_t rows, Py_ssize_t d, double* tile, float* high, Py_ssize_t ld,
    float* low, const double* raw_X) noexcept nogil:
    """Rows [start, start + rows) of the lower triangle as sums of two floats."""
    cdef Py_ssize_t cols = 0, w, top, i, stop = start + rows
    while cols < stop:
        w = tile_width(cols, start, stop, TILE_COLS)
        top = max(start, cols)
        kernel_tile(s, X + top * d, xx + top, stop - top, X + cols * d, xx + cols, w, d,
                    tile, TILE_COLS, at_row(raw_X, top, d), at_row(raw_X, cols, d))
        for i in range(top, stop):
            if s.kind == RBF and cols <= i < cols + w:
                tile[(i - top) * TILE_COLS + i - cols] = 1
            mx_split_row(
                tile + (i - top) * TILE_COLS, min(w, i + 1 - cols),
                high + i * ld + cols, low + i * (i + 1) // 2 + cols)
        mirror_tile(high, ld, top, stop, cols, cols + w)
        cols += w


def gram_split(
    tuple spec,
    const double[:, ::1] X,       # IN   (n, d)
    const double[::1] xx,         # IN   (n,)
    float[:, :] high,             # OUT  (>= n, >= n), rows contiguous
    float[::1] low,               # OUT  (n (n + 1) / 2,) rows of the lower triangle
    int n_threads,
    raw=None,                     # IN   (gamma, X) in their own units, or None
):
    """k(X[i], X[j]) = high[i, j] + low[i (i + 1) / 2 + j], j <= i, to 48 bits.

    `high` is complete and serves by itself as the single-precision matrix.
    """
    cdef KernelSpec s = unpack_kernel(spec, raw)
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1]
    cdef Py_ssize_t rows = rows_per_chunk(n, d), c, c1, first
    cdef Py_ssize_t chunks = (n + rows - 1) // rows
    cdef Py_ssize_t wave = chunks_at_once(n, d, rows, n_threads)
    cdef int threads = team(n_threads, chunks, ns_of_triangle(n, d))
    cdef Py_ssize_t ld = high.strides[0] // sizeof(float)
    cdef double* scratch
    cdef const double* raw_X = raw_rows(raw, 1, n, d)
    if n == 0:
        return
    if low.shape[0] < n * (n + 1) // 2:
        raise ValueError("low is too short")
    scratch = <double*>malloc(n_threads * rows * TILE_COLS * sizeof(double))
    if scratch == NULL:
        raise MemoryError
    try:
        for first in range(0, chunks, wave):
            c1 = min(first + wave, chunks)
            for c in prange(first, c1, nogil=True, schedule="dynamic", chunksize=1,
                            num_threads=threads):
                split_chunk(
                    &s, &X[0, 0], &xx[0], c * rows, min(rows, n - c * rows), d,
                    scratch + threadid() * rows * TILE_COLS, &high[0, 0], ld, &low[0],
                    raw_X)
            PyErr_CheckSignals()
    finally:
        free(scratch)


cdef double split_dot(
    const float* high, const float* low, const double* a, const Py_ssize_t* places,
    Py_ssize_t count) noexcept nogil:
    """<high + low, a> over `count` places."""
    cdef double even = 0., odd = 0.
    cdef Py_ssize_t s, j, k
    for s in range(0, count - 1, 2):
        j, k = places[s], places[s + 1]
        even += (<double>high[j] + <double>low[j]) * a[j]
        odd += (<double>high[k] + <double>low[k]) * a[k]
    if count % 2:
        j = places[count - 1]
        even += (<double>high[j] + <double>low[j]) * a[j]
    return even + odd


cdef void split_rows(
    const float* high, Py_ssize_t ld, const float* low, const double* a,
    const Py_ssize_t* places, Py_ssize_t n, Py_ssize_t used, Py_ssize_t start,
    Py_ssize_t stop, double* out) noexcept nogil:
    """Add the share of rows start .. stop of a triangle in K a to out (stop,)."""
    cdef Py_ssize_t i, before = 0
    cdef const float* row
    cdef const float* rest
    memset(out, 0, stop * sizeof(double))
    while before < used and places[before] < start:
        before += 1
    for i in range(start, stop):
        row, rest = high + i * ld, low + i * (i + 1) // 2
        if a[i] == 0 and FEW * used < n:
            out[i] += split_dot(row, rest, a, places, before)
            continue
        if a[i] != 0:
            before += 1
        out[i] += a[i] * (<double>row[i] + <double>rest[i])
        out[i] += mx_split_apply(row, rest, a, a[i], i, out)


def split_apply(
    const float[:, :] high,       # IN   as gram_split leaves it
    const float[::1] low,
    const double[::1] a,          # IN   (n,)
    double[::1] out,              # OUT  (n,)
    int n_threads=1,
):
    """out = K a in double precision from one triangle of a split matrix.

    Where few entries of `a` are not zero, the rows of the others are read at those
    places only.
    """
    cdef Py_ssize_t n = a.shape[0], i, used = 0, ld
    cdef Py_ssize_t ends[PARTS + 1]
    cdef int part, parts = PARTS if n >= PARTED else 1
    cdef int threads = team(n_threads, parts, 0.25 * n * n)
    cdef Py_ssize_t* places
    cdef double* sums
    if (min(high.shape[0], high.shape[1]) < n or low.shape[0] < n * (n + 1) // 2
            or out.shape[0] != n):
        raise ValueError("the matrix and the product need the size of a")
    if high.strides[1] != sizeof(float):
        raise ValueError("high needs contiguous rows")
    if n == 0:
        return
    ld = high.strides[0] // <Py_ssize_t>sizeof(float)
    places = <Py_ssize_t*>malloc(n * sizeof(Py_ssize_t))
    sums = <double*>malloc(parts * n * sizeof(double))
    if places == NULL or sums == NULL:
        free(places)
        free(sums)
        raise MemoryError
    for part in range(parts + 1):          # of equal numbers of entries
        ends[part] = <Py_ssize_t>(n * sqrt(<double>part / parts))
    with nogil:
        for i in range(n):
            if a[i] != 0:
                places[used] = i
                used += 1
        for part in prange(parts, num_threads=threads, schedule="dynamic", chunksize=1):
            split_rows(&high[0, 0], ld, &low[0], &a[0], places, n, used, ends[part],
                       ends[part + 1], sums + part * n)
        for part in range(1, parts):       # the last one has all rows
            for i in range(ends[part]):
                sums[part * n + i] += sums[(part - 1) * n + i]
        for i in range(n):
            out[i] = sums[(parts - 1) * n + i]
    free(places)
    free(sums)


cdef void multiply_tile(
    const real* tile, Py_ssize_t ld, Py_ssize_t rows, Py_ssize_t cols, bint transpose,
    const real* A, Py_ssize_t outputs, real* out) noexcept nogil:
    """out += tile @ A, or out += tile.T @ A; A and out have `outputs` columns."""
    cdef int r = <int>rows, c = <int>cols, k = <int>outputs, lead = <int>ld, unit = 1
    cdef real one = 1
    if k == 1:
        if real is float:
            sgemv(b"N" if transpose else b"T", &c, &r, &one, <float*>tile, &lead,
                  <float*>A, &unit, &one, out, &unit)
        else:
            dgemv(b"N" if transpose else b"T", &c, &r, &one, <double*>tile, &lead,
                  <double*>A, &unit, &one, out, &unit)
    elif transpose:
        if real is float:
            sgemm(b"N", b"T", &k, &c, &r, &one, <float*>A, &k, <float*>tile, &lead,
                  &one, out, &k)
        else:
            dgemm(b"N", b"T", &k, &c, &r, &one, <double*>A, &k, <double*>tile, &lead,
                  &one, out, &k)
    else:
        if real is float:
            sgemm(b"N", b"N", &k, &r, &c, &one, <float*>A, &k, <float*>tile, &lead,
                  &one, out, &k)
        else:
            dgemm(b"N", b"N", &k, &r, &c, &one, <double*>A, &k, <double*>tile, &lead,
                  &one, out, &k)


cdef void apply_chunk(
    const KernelSpec* s, const real* X, const real* xx, Py_ssize_t rows,
    const real* Z, const real* zz, Py_ssize_t m, Py_ssize_t d,
    const real* A, Py_ssize_t outputs, real* tile, real* out,
    const double* raw_X, const double* raw_Z) noexcept nogil:
    """out += k(X, Z) @ A for one chunk of rows, with the longer rows in the tiles."""
    cdef Py_ssize_t cols, w, t
    for t in range((m + TILE_COLS - 1) // TILE_COLS):
        cols = t * TILE_COLS
        w = min(<Py_ssize_t>TILE_COLS, m - cols)
        if w < rows:
            kernel_tile(s, Z + cols * d, zz + cols, w, X, xx, rows, d, tile, rows,
                        at_row(raw_Z, cols, d), raw_X)
            multiply_tile(tile, rows, w, rows, True, A + cols * outputs, outputs, out)
            continue
        kernel_tile(s, X, xx, rows, Z + cols * d, zz + cols, w, d, tile, w,
                    raw_X, at_row(raw_Z, cols, d))
        multiply_tile(tile, w, rows, w, False, A + cols * outputs, outputs, out)


cdef void apply_triangle(
    const KernelSpec* s, const real* X, const real* xx, Py_ssize_t row0,
    Py_ssize_t rows, Py_ssize_t d, const real* A, Py_ssize_t outputs, real* tile,
    real* out, const double* raw_X) noexcept nogil:
    """out += T A + T' A, T the rows [row0, row0 + rows) of the lower triangle.

    The diagonal block is complete in itself and is used once.
    """
    cdef Py_ssize_t cols, w, t
    cdef const double* raw_own = at_row(raw_X, row0, d)
    for t in range((row0 + TILE_COLS - 1) // TILE_COLS):
        cols = t * TILE_COLS
        w = min(<Py_ssize_t>TILE_COLS, row0 - cols)
        kernel_tile(s, X + row0 * d, xx + row0, rows, X + cols * d, xx + cols, w, d,
                    tile, w, raw_own, at_row(raw_X, cols, d))
        multiply_tile(tile, w, rows, w, False, A + cols * outputs, outputs,
                      out + row0 * outputs)
        multiply_tile(tile, w, rows, w, True, A + row0 * outputs, outputs,
                      out + cols * outputs)
    kernel_tile(s, X + row0 * d, xx + row0, rows, X + row0 * d, xx + row0, rows, d,
                tile, rows, raw_own, raw_own)
    multiply_tile(tile, rows, rows, rows, False, A + row0 * outputs, outputs,
                  out + row0 * outputs)


def kernel_apply(
    tuple spec,
    const real[:, ::1] X,         # IN   (n, d)
    const real[::1] xx,           # IN   (n,)
    const real[:, ::1] Z,         # IN   (m, d)
    const real[::1] zz,           # IN   (m,)
    const real[:, ::1] A,         # IN   (m, k)
    real[:, ::1] out,             # OUT  (n, k)
    int n_threads,
    raw=None,                     # IN   (gamma, X, Z) in their own units, or None
):
    """out = k(X, Z) @ A without storing k(X, Z)."""
    cdef KernelSpec s = unpack_kernel(spec, raw)
    cdef Py_ssize_t n = X.shape[0], m = Z.shape[0], d = X.shape[1], k = A.shape[1]
    cdef Py_ssize_t rows = rows_per_chunk(m, d), c, c1
    cdef Py_ssize_t chunks = (n + rows - 1) // rows, first
    cdef Py_ssize_t wave = chunks_at_once(m, d, rows, n_threads)
    cdef int threads = team(n_threads, chunks, ns_of_values(n, m, d))
    cdef real* scratch
    cdef const double* raw_X = raw_rows(raw, 1, n, d)
    cdef const double* raw_Z = raw_rows(raw, 2, m, d)
    out[:, :] = 0
    if n == 0 or k == 0 or m == 0:
        return
    scratch = <real*>malloc(n_threads * rows * TILE_COLS * sizeof(real))
    if scratch == NULL:
        raise MemoryError
    try:
        for first in range(0, chunks, wave):
            c1 = min(first + wave, chunks)
            for c in prange(first, c1, nogil=True, schedule="dynamic", chunksize=1,
                            num_threads=threads):
                apply_chunk(
                    &s, &X[c * rows, 0], &xx[c * rows], min(rows, n - c * rows),
                    &Z[0, 0], &zz[0], m, d, &A[0, 0], k,
                    scratch + threadid() * rows * TILE_COLS, &out[c * rows, 0],
                    at_row(raw_X, c * rows, d), raw_Z)
            PyErr_CheckSignals()
    finally:
        free(scratch)


def kernel_apply_symmetric(
    tuple spec,
    const real[:, ::1] X,         # IN   (n, d)
    const real[::1] xx,           # IN   (n,)
    const real[:, ::1] A,         # IN   (n, k)
    real[:, ::1] out,             # OUT  (n, k)
    int n_threads,
    raw=None,                     # IN   (gamma, X) in their own units, or None
):
    """out = k(X, X) @ A from one triangle of k(X, X), without storing it."""
    cdef KernelSpec s = unpack_kernel(spec, raw)
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], k = A.shape[1]
    cdef Py_ssize_t rows = rows_per_chunk(n, d), c, c1, t, size = n * k
    cdef Py_ssize_t chunks = (n + rows - 1) // rows, first, tile = rows * TILE_COLS
    cdef int threads = team(n_threads, chunks, ns_of_triangle(n, d))
    cdef real* scratch
    cdef real* partial
    cdef const double* raw_X = raw_rows(raw, 1, n, d)
    out[:, :] = 0
    if n == 0 or k == 0:
        return
    scratch = <real*>malloc(n_threads * (tile + size) * sizeof(real))
    if scratch == NULL:
        raise MemoryError
    partial = scratch + n_threads * tile
    try:
        for first in range(0, chunks, n_threads):
            c1 = min(first + n_threads, chunks)
            for c in prange(first, c1, nogil=True, schedule="static", chunksize=1,
                            num_threads=threads):
                memset(partial + (c - first) * size, 0, size * sizeof(real))
                apply_triangle(
                    &s, &X[0, 0], &xx[0], c * rows, min(rows, n - c * rows), d,
                    &A[0, 0], k, scratch + (c - first) * tile,
                    partial + (c - first) * size, raw_X)
            for c in range(first, c1):     # joined in chunk order: same bits
                for t in range(min(n, (c + 1) * rows) * k):
                    (&out[0, 0])[t] += partial[(c - first) * size + t]
            PyErr_CheckSignals()
    finally:
        free(scratch)
