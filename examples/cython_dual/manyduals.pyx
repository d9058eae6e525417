# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Many small kernel machines at a time, solved without the GIL.

An example of a package of its own that uses the compiled functions of maxent: the
potentials of the margin priors and the dual of kernel machines.
"""

import numpy as np

from libc.stdlib cimport free, malloc
from maxent.cython.dual_machine cimport (
    DUAL_CONVERGED,
    DUAL_RUNNING,
    DualMachine,
    dual_close,
    dual_open,
    dual_padded,
)
from maxent.cython.potentials cimport Potential, fenchel_young, unpack_potential
from maxent.cython.smo cimport dual_run


cdef int solve_one(
    const Potential* p, const double* K, const double* y, Py_ssize_t n, double level,
    double rate, double tol, double* lam, double* bias, double* gap) noexcept nogil:
    """One machine: 0, or -1 without memory, or a DualStatus that is not converged."""
    cdef Py_ssize_t ld = dual_padded(n), s, t
    cdef int status
    cdef double f, middle
    cdef DualMachine machine
    cdef float* K32 = <float*>malloc(n * ld * sizeof(float))
    cdef double* work = <double*>malloc(5 * n * sizeof(double))
    cdef signed char* sides = <signed char*>malloc(n)
    if K32 == NULL or work == NULL or sides == NULL:
        free(K32)
        free(work)
        free(sides)
        return -1
    for s in range(n):
        for t in range(ld):
            K32[s * ld + t] = <float>K[s * n + t] if t < n else 0.
        work[s] = 0.                    # multipliers, signed
        work[n + s] = 0.                # residuals: target - K a - bias
        work[2 * n + s] = level
        work[3 * n + s] = rate
        work[4 * n + s] = 1.            # weights
        sides[s] = 1 if y[s] > 0 else 2
    status = dual_open(&machine, p, K32, ld, n, work, work + n, work + 2 * n,
                       work + 3 * n, work + 4 * n, sides)
    if status == 0:
        status = DUAL_RUNNING
        while status == DUAL_RUNNING:
            status = dual_run(&machine, tol, 100000)
        middle = machine.middle
        dual_close(&machine)
        # the certificate, from the double-precision matrix
        bias[0] = middle
        gap[0] = 0.
        for s in range(n):
            f = middle
            for t in range(n):
                f += K[s * n + t] * work[t]
            lam[s] = work[s] if y[s] > 0 else -work[s]
            gap[0] += fenchel_young(p, lam[s] / rate, rate * (level - y[s] * f))
    free(K32)
    free(work)
    free(sides)
    return 0 if status == DUAL_CONVERGED else status


def solve_many(margin, const double[:, :, ::1] K, const double[:, ::1] y, double tol=1e-4):
    """Multipliers (b, n), biases (b,) and duality gaps (b,) of b machines.

    K is (b, n, n), y is (b, n) with entries -1 and +1; flat bias prior.
    """
    cdef Potential p = unpack_potential(margin.core_spec)
    cdef double level = margin.level, rate = margin.rate
    cdef Py_ssize_t b = K.shape[0], n = K.shape[1], k
    cdef int failed = 0
    out, biases, gaps = np.zeros((b, n)), np.zeros(b), np.zeros(b)
    cdef double[:, ::1] lam = out
    cdef double[::1] bias = biases
    cdef double[::1] gap = gaps
    with nogil:
        for k in range(b):
            if solve_one(&p, &K[k, 0, 0], &y[k, 0], n, level, rate, tol, &lam[k, 0],
                         &bias[k], &gap[k]) != 0:
                failed += 1
    if failed:
        raise RuntimeError(f"{failed} of {b} machines were not solved")
    return out, biases, gaps
