"""The star-mesh transformation: nodes of a weighted graph taken out and brought back.

Node k is eliminated by connecting its neighbours, and brought back by one mean of the
distances R (effective resistances) between them:

    S_k = sum_j W_kj,   P_j = W_kj / S_k,   W_ij += W_ki P_j,   log Z = sum_k log S_k
    A_i = sum_j P_j R_ij,   B = sum_i P_i A_i / 2,   R_ik = 1 / S_k + A_i - B

The first line adds positive terms only (Grassmann, Taksar & Heyman 1985); in the second
A_i - B is a squared distance, small only where 1 / S_k is not.  Both are done by blocks
of rows: V = W_k / sqrt(S_k), and W += V' V, R P' are matrix products.  That costs about
as much as a Cholesky factor and its inverse.  Few nodes go row by row.
"""

from libc.math cimport INFINITY, exp, log, log1p, sqrt
from scipy.linalg.cython_blas cimport dgemv, dsymm, dsymv, dsyrk

from maxent._core.trees.triangles cimport (
    TREES_DISCONNECTED,
    TREES_OK,
    inner,
    look_for_interrupts,
    total,
)

cdef enum:
    FEW = 40            # up to here plain loops beat calls of BLAS
    PANEL = 32
    SMALL = 64          # up to here one panel holds the whole matrix
    WORK = 500000       # logarithms between two checks for Ctrl-C

cdef double FAR = 40.   # exp(-40) of a sum is below its rounding error


cdef Py_ssize_t panel_size(Py_ssize_t n) noexcept nogil:
    return PANEL if n > SMALL else SMALL


cdef Py_ssize_t panel_memory(Py_ssize_t n) noexcept nogil:
    return max(PANEL * n, SMALL * min(n, <Py_ssize_t>SMALL))


cdef int eliminate_few(double* W, Py_ssize_t n, double* S) noexcept nogil:
    """`eliminate`, row by row."""
    cdef Py_ssize_t k, i, j
    cdef double scale
    cdef double* row
    cdef double* to
    for k in range(n - 1, 0, -1):
        row = W + k * n
        S[k] = total(row, k)
        if not S[k] > 0:
            return TREES_DISCONNECTED
        scale = 1. / sqrt(S[k])
        for j in range(k):
            row[j] *= scale
        for i in range(1, k):
            scale = row[i]
            to = W + i * n
            for j in range(i):
                to[j] += scale * row[j]
    return TREES_OK


cdef void bring_back_few(
    double* W, const double* S, Py_ssize_t n, double* R, double* A) noexcept nogil:
    """`bring_back`, row by row; both triangles of R are used."""
    cdef Py_ssize_t k, j, i
    cdef double scale, middle
    cdef double* row
    cdef double* mean = A
    cdef double* to
    R[0] = 0.
    for k in range(1, n):
        row = W + k * n
        scale = 1. / sqrt(S[k])
        for j in range(k):
            row[j] *= scale
            mean[j] = 0.
        for j in range(k):
            scale = row[j]
            to = R + j * n
            for i in range(k):
                mean[i] += scale * to[i]
        middle = 0.5 * inner(row, mean, k)
        scale = 1. / S[k]
        to = R + k * n
        for j in range(k):
            to[j] = scale + (mean[j] - middle if mean[j] > middle else 0.)
            R[j * n + k] = to[j]
        to[k] = 0.


cdef int eliminate(
    double* W, Py_ssize_t n, double* S, bint interruptible) except -1 nogil:
    cdef Py_ssize_t hi = n, lo, k, j, step = panel_size(n)
    cdef int rows, count, unit = 1, ld = <int>n, cols
    cdef double one = 1., scale
    cdef double* row
    if n <= FEW:
        return eliminate_few(W, n, S)
    while hi > 1:
        lo = max(<Py_ssize_t>1, hi - step)
        for k in range(hi - 1, lo - 1, -1):
            row = W + k * n
            rows = <int>(hi - 1 - k)
            cols = <int>k
            if rows > 0:
                dgemv(b"N", &cols, &rows, &one, row + n, &ld, row + n + k, &ld,
                      &one, row, &unit)
            S[k] = total(row, k)
            if not S[k] > 0:
                return TREES_DISCONNECTED
            scale = 1. / sqrt(S[k])
            for j in range(k):
                row[j] *= scale
        count = <int>(hi - lo)
        cols = <int>lo
        dsyrk(b"U", b"N", &cols, &count, &one, W + lo * n, &ld, &one, W, &ld)
        hi = lo
        look_for_interrupts(interruptible)
    return TREES_OK


cdef int bring_back(
    double* W, const double* S, Py_ssize_t n, double* R, double* A,
    bint interruptible) except -1 nogil:
    """Nodes 1 .. n - 1 one after the other, the panels of `eliminate` or others."""
    cdef Py_ssize_t lo = 1, hi, k, j, step = panel_size(n)
    cdef int rows, count, unit = 1, ld = <int>n, cols
    cdef double one = 1., zero = 0., scale, middle
    cdef double* row
    cdef double* mean
    if n <= FEW:
        bring_back_few(W, S, n, R, A)
        return TREES_OK
    R[0] = 0.
    while lo < n:
        hi = min(n, lo + step)
        for k in range(lo, hi):
            row = W + k * n
            scale = 1. / sqrt(S[k])
            for j in range(k):
                row[j] *= scale
        cols = <int>lo
        count = <int>(hi - lo)
        dsymm(b"L", b"U", &cols, &count, &one, R, &ld, W + lo * n, &ld, &zero, A, &ld)
        for k in range(lo, hi):
            row = W + k * n
            mean = A + (k - lo) * n
            rows = <int>(k - lo)
            if rows > 0:
                # nodes of this panel that are back already, among all and as targets
                dgemv(b"N", &cols, &rows, &one, R + lo * n, &ld, row + lo, &unit,
                      &one, mean, &unit)
                dgemv(b"T", &cols, &rows, &one, R + lo * n, &ld, row, &unit,
                      &zero, mean + lo, &unit)
                dsymv(b"U", &rows, &one, R + lo * n + lo, &ld, row + lo, &unit,
                      &one, mean + lo, &unit)
            middle = 0.5 * inner(row, mean, k)
            scale = 1. / S[k]
            row = R + k * n
            for j in range(k):
                row[j] = scale + (mean[j] - middle if mean[j] > middle else 0.)
            row[k] = 0.
        lo = hi
        look_for_interrupts(interruptible)
    return TREES_OK


# -- logarithms of any size ------------------------------------------------------------
cdef double log_row_sum(const double* x, Py_ssize_t n) noexcept nogil:
    cdef double top = -INFINITY, s = 0.
    cdef Py_ssize_t j
    for j in range(n):
        top = x[j] if x[j] > top else top
    if top == -INFINITY:
        return top
    for j in range(n):
        s += exp(x[j] - top)
    return top + log(s)


cdef int log_eliminate(
    double* L, double* s, Py_ssize_t n, bint interruptible) except -1 nogil:
    cdef Py_ssize_t i, j, k, work = 0
    cdef double part, t, d
    cdef double* row
    cdef double* to
    for k in range(n - 1, 0, -1):
        row = L + k * n
        s[k] = log_row_sum(row, k)
        if s[k] == -INFINITY:
            return TREES_DISCONNECTED
        for i in range(1, k):
            part = row[i] - s[k]
            if part == -INFINITY:
                continue
            to = L + i * n
            for j in range(i):
                t = part + row[j]
                d = t - to[j]
                if d > FAR:
                    to[j] = t
                elif d > 0:
                    to[j] = t + log1p(exp(-d))
                elif d >= -FAR:   # False for NaN, two missing edges
                    to[j] += log1p(exp(d))
            work += i
            if work > WORK:
                work = 0
                look_for_interrupts(interruptible)
    return TREES_OK


def _log_pivots_for_tests(double[:, ::1] log_weight, double[::1] pivots):
    """`log_eliminate` in place; the status."""
    return log_eliminate(&log_weight[0, 0], &pivots[0], log_weight.shape[0], True)
