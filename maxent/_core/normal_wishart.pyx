"""Weighted rows under normal-inverse-Wishart distributions.

    kappa' = kappa + sum w,   df' = df + sum w,   shift = sum w r / kappa'
    scale' = scale + sum w (r - shift)(r - shift)' + kappa shift shift'

for rows r as deviations from the prior's mean and weights w of any sign.  With L the
Cholesky factor of scale', u = L^{-1} (r - shift) are the whitened rows, in which
expectations, the Hessian of log Z and the way to the end of the domain are written.

Rows are taken in chunks of a fixed size: what is read twice is still in the cache.
Parts of several chunks, the same for any number of threads, have sums of their own.

Source: Jaakkola, Meila & Jebara (1999), eqs. (16)-(19).
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.math cimport NAN, fabs, isfinite, log, sqrt
from libc.stdlib cimport calloc, free, malloc
from scipy.linalg.cython_blas cimport dgemm, dtrsm
from scipy.linalg.cython_lapack cimport dpotrf, dsyev

from maxent._core.tall_matrices cimport RowSource
from maxent._core.threads cimport team

cdef enum:
    CHUNK = 256
    WORK = 160000000    # multiplications between two checks for Ctrl-C
    PARTS = 8           # at most, of the rows, which threads share out
    PIECE = 500000      # multiplications of a part

cdef double WORK_NS = 0.15      # of a multiplication, its share of reading rows with it

# Rounding of a sum, of its size, and of a value, of its square.
cdef double LOST = 1e-14
cdef double OWN = 1e-14


cdef double weighted_sum(
    const double* rows,           # IN   (n, d)
    const double* weight,         # IN   (n,)
    Py_ssize_t n, Py_ssize_t d,
    double* part,                 # scratch (d,)
    double* out,                  # OUT  (d,)
) noexcept nogil:
    """out = sum of weight times row; returns the sum of the weights."""
    cdef Py_ssize_t c, lo, i, j
    cdef double w, total = 0., share
    cdef const double* row
    for j in range(d):
        out[j] = 0.
    for c in range((n + CHUNK - 1) // CHUNK):
        lo = c * CHUNK
        share = 0.
        for j in range(d):
            part[j] = 0.
        for i in range(lo, min(lo + CHUNK, n)):
            w = weight[i]
            row = rows + i * d
            share += w
            for j in range(d):
                part[j] += w * row[j]
        total += share
        for j in range(d):
            out[j] += part[j]
    return total


cdef void scatter_rows(
    const double* rows,           # IN   (n, d)
    const double* weight,         # IN   (n,)
    const double* shift,          # IN   (d,) or NULL, for none
    Py_ssize_t start, Py_ssize_t stop, Py_ssize_t d,
    double* moved,                # OUT  (n, d) rows less the shift, if there is one
    double* weighted,             # scratch (CHUNK, d)
    double* out,                  # IN/OUT (d, d)
) noexcept nogil:
    """out += sum of weight times row row'; both triangles, equal up to rounding."""
    cdef Py_ssize_t lo, i, j, m
    cdef int cols = <int>d, count
    cdef double one = 1.
    cdef const double* row
    lo = start
    while lo < stop:
        m = min(<Py_ssize_t>CHUNK, stop - lo)
        for i in range(m):
            row = rows + (lo + i) * d
            if shift != NULL:
                for j in range(d):
                    moved[(lo + i) * d + j] = row[j] - shift[j]
                row = moved + (lo + i) * d
            for j in range(d):
                weighted[i * d + j] = weight[lo + i] * row[j]
        row = (rows if shift == NULL else moved) + lo * d
        count = <int>m
        dgemm(b"N", b"T", &cols, &cols, &count, &one, weighted, &cols, <double*>row,
              &cols, &one, out, &cols)
        lo += m


cdef int scatter(
    const double* rows, const double* weight, const double* shift,
    Py_ssize_t n, Py_ssize_t d,
    double* moved,
    double* out,                  # OUT  (d, d)
    int n_threads,
) except -1:
    """:func:`scatter_rows` over all rows, the sums of their parts added in order."""
    cdef Py_ssize_t parts = parts_of(n, d), size = d * d + CHUNK * d + 8, k, i, lo
    cdef Py_ssize_t share = share_of(n, parts), step = at_once(share, parts, d)
    cdef int threads = team(n_threads, parts, WORK_NS * n * d * d)
    cdef double* own = <double*>calloc(parts * size, sizeof(double))
    if own == NULL:
        raise MemoryError
    try:
        for lo in range(0, share, step):
            for k in prange(parts, nogil=True, schedule="dynamic", chunksize=1,
                            num_threads=threads):
                scatter_rows(rows, weight, shift, k * share + lo,
                             min(k * share + min(lo + step, share), n), d, moved,
                             own + k * size + d * d, own + k * size)
            PyErr_CheckSignals()
        for i in range(d * d):
            out[i] = own[i]
        for k in range(1, parts):
            for i in range(d * d):
                out[i] += own[k * size + i]
    finally:
        free(own)
    return 0


cdef void whiten_rows(
    const double* rows,           # IN   (n, d)
    const double* shift,          # IN   (d,) or NULL: U holds the rows less the shift
    const double* lower,          # IN   (d, d)
    Py_ssize_t start, Py_ssize_t stop, Py_ssize_t d,
    double* U,                    # OUT  (n, d) L^{-1} (row - shift)
    double* square,               # OUT  (n,) their squared norms
) noexcept nogil:
    cdef Py_ssize_t lo, i, j, m
    cdef int cols = <int>d, count
    cdef double one = 1., s
    cdef const double* row
    lo = start
    while lo < stop:
        m = min(<Py_ssize_t>CHUNK, stop - lo)
        count = <int>m
        if shift != NULL:
            for i in range(lo, lo + m):
                for j in range(d):
                    U[i * d + j] = rows[i * d + j] - shift[j]
        # what is lower by rows is upper to Fortran
        dtrsm(b"L", b"U", b"T", b"N", &cols, &count, &one, <double*>lower, &cols,
              U + lo * d, &cols)
        for i in range(lo, lo + m):
            row = U + i * d
            s = 0.
            for j in range(d):
                s += row[j] * row[j]
            square[i] = s
        lo += m


cdef int whiten_all(
    const double* rows, const double* shift, const double* lower, Py_ssize_t n,
    Py_ssize_t d, double* U, double* square, int n_threads,
) except -1:
    cdef Py_ssize_t parts = parts_of(n, d), k, lo
    cdef Py_ssize_t share = share_of(n, parts), step = at_once(share, parts, d)
    cdef int threads = team(n_threads, parts, WORK_NS * n * d * d)
    for lo in range(0, share, step):
        for k in prange(parts, nogil=True, schedule="dynamic", chunksize=1,
                        num_threads=threads):
            whiten_rows(rows, shift, lower, k * share + lo,
                        min(k * share + min(lo + step, share), n), d, U, square)
        PyErr_CheckSignals()
    return 0


cdef Py_ssize_t parts_of(Py_ssize_t n, Py_ssize_t d) noexcept nogil:
    # their sums take less memory than the rows
    return min(<Py_ssize_t>PARTS, 1 + n * d * d // PIECE, 1 + n // (4 * d))


cdef Py_ssize_t share_of(Py_ssize_t n, Py_ssize_t parts) noexcept nogil:
    """Rows of a part, in whole chunks."""
    return (n + parts * CHUNK - 1) // (parts * CHUNK) * CHUNK


cdef Py_ssize_t at_once(
    Py_ssize_t share, Py_ssize_t parts, Py_ssize_t d) noexcept nogil:
    """Rows of a part between two checks for Ctrl-C."""
    return min(share, 16 + WORK // (parts * d * d))


cdef bint factor_scale(
    const double* scale, Py_ssize_t d, double* lower) noexcept nogil:
    """Cholesky factor by rows, zeros above; False if it has none."""
    cdef Py_ssize_t i, j
    cdef int order = <int>d, info = 0
    for i in range(d * d):
        if not isfinite(scale[i]):
            return False
    for i in range(d):
        for j in range(d):
            lower[i * d + j] = scale[i * d + j] if j <= i else 0.
    dpotrf(b"U", &order, lower, &order, &info)
    return info == 0


cdef bint pivots_hold(
    const double* R,              # IN   (n, d) deviations from the new mean
    const double* weight,         # IN   (n,)
    const double* reach,          # IN   (d,)
    const double* shift,          # IN   (d,)
    const double* mean,           # IN   (d,) the new one
    const double* scale,          # IN   (d, d) the prior's
    const double* lower,          # IN   (d, d)
    Py_ssize_t n, Py_ssize_t d,
) noexcept nogil:
    """True if every pivot is above the rounding level of the sums.

    The sum of sizes is a pass over the rows, which a bound mostly saves.
    """
    cdef Py_ssize_t i, j
    cdef double absolute = 0., pivot, size
    for i in range(n):
        absolute += fabs(weight[i])
    for j in range(d):
        pivot = lower[j * d + j] * lower[j * d + j]
        # deviations of a constant feature are rounding of its value, or of its distance
        # from the prior's mean, and so is `size`
        size = scale[j * d + j] + absolute * OWN * (mean[j] ** 2 + shift[j] ** 2)
        if pivot > LOST * (size + absolute * (reach[j] + fabs(shift[j])) ** 2):
            continue
        for i in range(n):
            size += fabs(weight[i]) * R[i * d + j] * R[i * d + j]
        if not pivot > LOST * size:
            return False
    return True


def update(
    const double[:, ::1] rows,    # IN   (n, d) deviations from the prior's mean
    const double[::1] reach,      # IN   (d,) largest size of each column
    const double[::1] weight,     # IN   (n,) any sign
    const double[::1] mean,       # IN   (d,) the prior
    double kappa,
    double df,
    const double[:, ::1] scale,   # IN   (d, d)
    double[::1] new_mean,         # OUT  (d,)
    double[:, ::1] new_scale,     # OUT  (d, d)
    double[:, ::1] lower,         # OUT  (d, d) its Cholesky factor
    double[:, ::1] U,             # OUT  (n, d) whitened rows
    double[::1] square,           # OUT  (n,) their squared norms
    int n_threads=1,
):
    """(kappa, df, log det scale) with all rows, or None outside the domain.

    Outputs are undefined then.
    """
    cdef Py_ssize_t n = rows.shape[0], d = rows.shape[1], i, j
    cdef double total, s, log_det = 0.
    cdef double* scratch
    cdef double* shift
    cdef double* S
    cdef bint inside = False
    if (
        not reach.shape[0] == mean.shape[0] == new_mean.shape[0] == d > 0
        or not weight.shape[0] == square.shape[0] == U.shape[0] == n
        or not U.shape[1] == scale.shape[0] == scale.shape[1] == d
        or not new_scale.shape[0] == new_scale.shape[1] == d
        or not lower.shape[0] == lower.shape[1] == d
    ):
        raise ValueError("rows, weights and outputs do not fit")
    scratch = <double*>malloc(2 * d * sizeof(double))
    if scratch == NULL:
        raise MemoryError
    shift = scratch + d
    try:
        S = &new_scale[0, 0]
        with nogil:
            total = weighted_sum(
                &rows[0, 0] if n else NULL, &weight[0] if n else NULL, n, d,
                scratch, shift)
        if kappa + total > 0 and df + total > d - 1:
            for j in range(d):
                # deviations first: the shift costs no digits
                shift[j] /= kappa + total
                new_mean[j] = mean[j] + shift[j]
            for i in range(d * d):
                S[i] = 0.
            if n:
                scatter(&rows[0, 0], &weight[0], shift, n, d, &U[0, 0], S, n_threads)
            for i in range(d):
                for j in range(i + 1):
                    s = 0.5 * (S[i * d + j] + S[j * d + i]) + scale[i, j]
                    s += kappa * shift[i] * shift[j]
                    S[i * d + j] = S[j * d + i] = s
            with nogil:
                inside = factor_scale(S, d, &lower[0, 0]) and pivots_hold(
                    &U[0, 0] if n else NULL, &weight[0] if n else NULL, &reach[0],
                    shift, &new_mean[0], &scale[0, 0], &lower[0, 0], n, d)
        if inside:
            for j in range(d):
                log_det += 2. * log(lower[j, j])
        if inside and n:
            whiten_all(
                NULL, NULL, &lower[0, 0], n, d, &U[0, 0], &square[0], n_threads)
    finally:
        free(scratch)
    return (kappa + total, df + total, log_det) if inside else None


def whiten(
    const double[:, ::1] rows,    # IN   (n, d)
    const double[::1] shift,      # IN   (d,)
    const double[:, ::1] lower,   # IN   (d, d)
    double[:, ::1] U,             # OUT  (n, d) L^{-1} (row - shift)
    double[::1] square,           # OUT  (n,) their squared norms
    int n_threads=1,
):
    cdef Py_ssize_t n = rows.shape[0], d = rows.shape[1]
    if (
        not lower.shape[0] == lower.shape[1] == shift.shape[0] == U.shape[1] == d
        or not U.shape[0] == square.shape[0] == n
    ):
        raise ValueError("rows, factor and outputs do not fit")
    if n == 0 or d == 0:
        return
    whiten_all(&rows[0, 0], &shift[0], &lower[0, 0], n, d, &U[0, 0], &square[0],
               n_threads)


cdef struct Covariance:
    const double* U
    Py_ssize_t d
    double kappa, df, rest


cdef void write_covariance(
    const void* state, Py_ssize_t start, Py_ssize_t stop, const double* by,
    double* out, Py_ssize_t lead
) noexcept nogil:
    cdef const Covariance* own = <const Covariance*>state
    cdef Py_ssize_t t, i, j, d = own.d
    cdef double c, s, a, scale
    cdef const double* u
    cdef double* to
    for t in range(stop - start):
        u, to, scale = own.U + (start + t) * d, out + t * lead, 1.
        if by != NULL:
            scale = by[t]
        c, s = scale * sqrt(0.5 * own.df), scale * sqrt(own.df / own.kappa)
        for i in range(d):
            to[0] = c * u[i] * u[i] - c / own.df
            a = c * sqrt(2.) * u[i]
            for j in range(i + 1, d):
                to[j - i] = a * u[j]
            to += d - i
        for j in range(d):
            to[j] = s * u[j]
        to[d] = scale * sqrt(own.rest)


cdef class CovarianceRows(RowSource):
    """Columns sqrt(df / 2) (u u' - I / df) over pairs, sqrt(df / kappa) u, sqrt(rest).

    Their products are (df / 2) q_st^2 - (q_ss + q_tt) / 2 + (df / kappa) q_st plus a
    constant, with q_st = u_s . u_t.
    """

    cdef const double[:, ::1] U
    cdef Covariance own

    def __cinit__(
        self,
        const double[:, ::1] U not None,    # (n, d) whitened rows
        const double[::1] square not None,  # (n,) their squared norms
        double kappa,
        double df,
        double rest,                        # the constant of the covariance, >= 0
    ):
        cdef Py_ssize_t d = U.shape[1], t
        if d == 0 or square.shape[0] != U.shape[0]:
            raise ValueError("rows and their norms do not fit")
        self.finite = isfinite(kappa) and isfinite(df) and isfinite(rest)
        for t in range(square.shape[0]):
            self.finite &= isfinite(square[t])
        self.U = U
        self.own.U = &U[0, 0] if U.shape[0] else NULL
        self.own.d, self.own.kappa, self.own.df, self.own.rest = d, kappa, df, rest
        self.n_rows, self.rows.width = U.shape[0], (d + 1) * (d + 2) // 2
        self.n_entries = self.n_rows * self.rows.width
        self.rows.state = &self.own
        self.rows.write = write_covariance


def least_change(
    const double[:, ::1] U,         # IN   (n, d) whitened rows
    const double[::1] direction,    # IN   (n,)
    double kappa,
    int n_threads=1,
):
    """(least eigenvalue, total) of the change of the domain's matrix along a line.

    The domain is where scale and kappa stay positive: sum w [x; 1][x; 1]' stays
    positive definite.  In whitened coordinates it starts from the identity, so the line
    leaves the domain at -1 / least eigenvalue.  NaN for directions that are no numbers.
    """
    cdef Py_ssize_t n = U.shape[0], d = U.shape[1], m = U.shape[1] + 1, i, j
    cdef int order = <int>m, size = <int>(34 * m), info = 0
    cdef double total, least = NAN, s
    cdef double* change
    cdef double* values
    cdef double* sums
    cdef double* scratch
    cdef bint finite = True
    if direction.shape[0] != n or d == 0:
        raise ValueError("rows and direction do not fit")
    change = <double*>malloc((m * m + 36 * m) * sizeof(double))
    if change == NULL:
        raise MemoryError
    values = change + m * m
    sums = values + m
    scratch = sums + m
    try:
        with nogil:
            total = weighted_sum(
                &U[0, 0] if n else NULL, &direction[0] if n else NULL, n, d,
                scratch, sums)
        for i in range(d * d):
            change[i] = 0.
        if n:
            scatter(&U[0, 0], &direction[0], NULL, n, d, NULL, change, n_threads)
        with nogil:
            # from (d, d) to (m, m), the last entries first: only their lower triangle
            for i in range(d - 1, -1, -1):
                for j in range(i, -1, -1):
                    change[i * m + j] = change[i * d + j]
            for j in range(d):
                change[d * m + j] = sums[j] / sqrt(kappa)
            change[d * m + d] = total / kappa
            for i in range(m):
                for j in range(i + 1):
                    s = change[i * m + j]
                    finite = finite and isfinite(s)
            if finite:
                dsyev(b"N", b"U", &order, change, &order, values, scratch, &size, &info)
                if info == 0:
                    least = values[0]
    finally:
        free(change)
    return least, total
