"""Symmetric matrices of which the triangle below the diagonal is read or written.

Helpers of the modules on spanning trees, and the statuses that they return.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY

cdef extern from "machines/rbf_loops.h" nogil:
    void mx_exp_shifted(
        const double* x, double shift, double top, Py_ssize_t n, double* out) noexcept
    void mx_triangle_range(
        const double* x, Py_ssize_t n, double* least, double* largest) noexcept

cdef double CEILING = 690.      # sums of many such weights stay finite


cdef int look_for_interrupts(bint interruptible) except -1 nogil:
    if interruptible:
        with gil:
            PyErr_CheckSignals()
    return 0


cdef double total(const double* x, Py_ssize_t n) noexcept nogil:
    cdef double s0 = 0., s1 = 0., s2 = 0., s3 = 0.
    cdef Py_ssize_t j
    for j in range(0, n - 3, 4):
        s0 += x[j]
        s1 += x[j + 1]
        s2 += x[j + 2]
        s3 += x[j + 3]
    for j in range(n - n % 4, n):
        s0 += x[j]
    return (s0 + s1) + (s2 + s3)


cdef double inner(const double* x, const double* y, Py_ssize_t n) noexcept nogil:
    cdef double s0 = 0., s1 = 0., s2 = 0., s3 = 0.
    cdef Py_ssize_t j
    for j in range(0, n - 3, 4):
        s0 += x[j] * y[j]
        s1 += x[j + 1] * y[j + 1]
        s2 += x[j + 2] * y[j + 2]
        s3 += x[j + 3] * y[j + 3]
    for j in range(n - n % 4, n):
        s0 += x[j] * y[j]
    return (s0 + s1) + (s2 + s3)


cdef void mirror(double* M, Py_ssize_t n) noexcept nogil:
    """Copy the lower triangle to the upper one, by tiles that stay in cache."""
    cdef Py_ssize_t i, j, i0, j0
    for i0 in range(0, n, 16):
        for j0 in range(0, i0 + 1, 16):
            for i in range(i0, min(i0 + 16, n)):
                for j in range(j0, min(j0 + 16, i)):
                    M[j * n + i] = M[i * n + j]


cdef void join_triangles(double* M, Py_ssize_t n) noexcept nogil:
    """Both triangles become their sum, by tiles."""
    cdef Py_ssize_t i, j, i0, j0
    for i0 in range(0, n, 16):
        for j0 in range(0, i0 + 1, 16):
            for i in range(i0, min(i0 + 16, n)):
                for j in range(j0, min(j0 + 16, i)):
                    M[i * n + j] += M[j * n + i]
                    M[j * n + i] = M[i * n + j]


cdef void weight_range(
    const double* x, Py_ssize_t n, double* least, double* largest) noexcept nogil:
    """Extremes of the entries above -inf below the diagonal."""
    mx_triangle_range(x, n, least, largest)


cdef void fill_weights(
    const double* log_weight, Py_ssize_t n, double shift, double* W) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(n):
        mx_exp_shifted(log_weight + k * n, shift, CEILING, k, W + k * n)
        W[k * n + k] = 0.


def first_suspect(const double[:, :, ::1] matrices, double limit):
    """Number of the first invalid matrix, or -1.

    None of the others has NaN, +inf, finite entries beyond the limit, or two entries
    that differ from their mirror images.
    """
    cdef Py_ssize_t n = matrices.shape[1], b, i, j, i0, j0
    cdef double x, y
    cdef bint good = True
    cdef const double* M
    with nogil:
        for b in range(matrices.shape[0]):
            M = &matrices[b, 0, 0]
            for i0 in range(0, n, 16):
                for j0 in range(0, i0 + 1, 16):
                    for i in range(i0, min(i0 + 16, n)):
                        for j in range(j0, min(j0 + 16, i + 1)):
                            x = M[i * n + j]
                            y = M[j * n + i]
                            good = good & (x == y) & (x <= limit) & (
                                (x >= -limit) | (x == -INFINITY))
            if not good:
                break
    return -1 if good else b
