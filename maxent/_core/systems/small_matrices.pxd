"""Products, factors and solutions of small matrices, in plain loops.

Matrices are in C order; systems of a few states are too small for BLAS.
"""

from libc.math cimport log, sqrt

cdef enum:
    # A pivot of at most 1 / PRECISE of its diagonal entry is rounding: a direction
    # without variance.
    PRECISE = 100000000000000


cdef inline void product(
    const double* A, const double* B, Py_ssize_t n, Py_ssize_t k, Py_ssize_t m,
    double* out) noexcept nogil:
    """out (n, m) = A (n, k) B (k, m)."""
    cdef Py_ssize_t i, j, p
    cdef double a
    for i in range(n):
        for j in range(m):
            out[i * m + j] = 0.
        for p in range(k):
            a = A[i * k + p]
            for j in range(m):
                out[i * m + j] += a * B[p * m + j]


cdef inline void product_t(
    const double* A, const double* B, Py_ssize_t n, Py_ssize_t k, Py_ssize_t m,
    double* out) noexcept nogil:
    """out (n, m) = A (n, k) B' with B (m, k)."""
    cdef Py_ssize_t i, j, p
    cdef double s
    for i in range(n):
        for j in range(m):
            s = 0.
            for p in range(k):
                s += A[i * k + p] * B[j * k + p]
            out[i * m + j] = s


cdef inline void congruence(
    const double* A, const double* P, Py_ssize_t n, Py_ssize_t k, double* work,
    double* out) noexcept nogil:
    """out (n, n) += A P A', A (n, k) and P (k, k) symmetric; exactly symmetric."""
    cdef Py_ssize_t i, j, p
    cdef double s
    product(A, P, n, k, k, work)
    for i in range(n):
        for j in range(i + 1):
            s = 0.
            for p in range(k):
                s += work[i * k + p] * A[j * k + p]
            out[i * n + j] += s
            if i != j:
                out[j * n + i] = out[i * n + j]


cdef inline bint factor(double* F, Py_ssize_t d, double* log_det) noexcept nogil:
    """Lower Cholesky factor in place; whether F is positive definite."""
    cdef Py_ssize_t i, j, k
    cdef double s
    log_det[0] = 0.
    for j in range(d):
        s = F[j * d + j]
        for k in range(j):
            s -= F[j * d + k] * F[j * d + k]
        if not s > 0.:
            return False
        log_det[0] += log(s)
        F[j * d + j] = s = sqrt(s)
        for i in range(j + 1, d):
            for k in range(j):
                F[i * d + j] -= F[i * d + k] * F[j * d + k]
            F[i * d + j] /= s
    return True


cdef inline void solve_lower(
    const double* L, Py_ssize_t d, double* x, Py_ssize_t m) noexcept nogil:
    """x (d, m) <- L^{-1} x."""
    cdef Py_ssize_t i, j, k
    cdef double a
    for i in range(d):
        for k in range(i):
            a = L[i * d + k]
            for j in range(m):
                x[i * m + j] -= a * x[k * m + j]
        a = 1. / L[i * d + i]
        for j in range(m):
            x[i * m + j] *= a


cdef inline void solve_upper(
    const double* L, Py_ssize_t d, double* x, Py_ssize_t m) noexcept nogil:
    """x (d, m) <- L'^{-1} x."""
    cdef Py_ssize_t i, j, k
    cdef double a
    for i in range(d - 1, -1, -1):
        for k in range(i + 1, d):
            a = L[k * d + i]
            for j in range(m):
                x[i * m + j] -= a * x[k * m + j]
        a = 1. / L[i * d + i]
        for j in range(m):
            x[i * m + j] *= a


cdef inline void semidefinite_factor(double* P, Py_ssize_t n) noexcept nogil:
    """L with L L' = P in place, P semidefinite: zero columns for vanishing pivots."""
    cdef Py_ssize_t i, j, k
    cdef double s, own
    for j in range(n):
        own = P[j * n + j]
        s = own
        for k in range(j):
            s -= P[j * n + k] * P[j * n + k]
        if not s * PRECISE > own:
            for i in range(j, n):
                P[i * n + j] = 0.
            continue
        P[j * n + j] = s = sqrt(s)
        for i in range(j + 1, n):
            for k in range(j):
                P[i * n + j] -= P[i * n + k] * P[j * n + k]
            P[i * n + j] /= s


cdef inline void solve_semidefinite(
    const double* L, Py_ssize_t n, double* x, Py_ssize_t m) noexcept nogil:
    """x (n, m) <- a solution y of L L' y = x, where there is one."""
    cdef Py_ssize_t i, j, k
    cdef double a
    for i in range(n):
        for k in range(i):
            a = L[i * n + k]
            for j in range(m):
                x[i * m + j] -= a * x[k * m + j]
        a = L[i * n + i]
        a = 1. / a if a > 0. else 0.
        for j in range(m):
            x[i * m + j] *= a
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            a = L[k * n + i]
            for j in range(m):
                x[i * m + j] -= a * x[k * m + j]
        a = L[i * n + i]
        a = 1. / a if a > 0. else 0.
        for j in range(m):
            x[i * m + j] *= a
