"""Product kernels of pairs of hidden Markov models.

    psi[a, b]  = int p(x | a)^rho q(x | b)^rho dx
    X_0        = pi^rho (pi'^rho)' o psi,   X_t = (A^rho)' X_{t-1} A'^rho o psi
    k_T        = sum X_T

Eight second models share a vector. A pair whose scaled recursion may have lost
something to underflow is marked, and `hmm_kernel_in_logs` computes it again. Rows of
the Gram matrix go to threads; the bits do not depend on how many.

Source: Jebara, Kondor & Howard (2004), section 4.2.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.math cimport INFINITY, exp, log
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

import numpy as np

from maxent._core.chains.chain cimport aligned, log_total
from maxent._core.threads cimport team

cdef enum:
    WORK = 20000000     # multiplications of a thread between two checks for Ctrl-C

cdef double DENSE = 1e-100      # transitions below it may hide what underflows
cdef double SURE = 1e-280       # a sum above it has lost nothing that underflowed


cdef void kernel_lanes(
    const mx_chain_pairs* p, double* X, double* scratch, double* log_k, int* lost,
) noexcept nogil:
    mx_chain_kernel_lanes(p, X, scratch, log_k, lost)


cdef void outer_lanes(
    Py_ssize_t s, Py_ssize_t s2, Py_ssize_t m, const double* F, const double* F2,
    double* out,
) noexcept nogil:
    mx_chain_outer_lanes(s, s2, m, F, F2, out)


cdef struct Models:
    # Models of one number of states. Of the second ones lane l of vector v is model
    # v * lanes + l; arrays are (n, ...) of the first, (vectors, ..., lanes) of these.
    Py_ssize_t n
    Py_ssize_t states
    const double* begin         # (m, states)
    const double* trans         # (states, states)
    const double* table         # (letters, states), or NULL
    const double* end           # (m, states), or NULL
    const double* least         # smallest positive entry of trans
    const unsigned char* sparse


cdef struct Pairs:
    Models P
    Models Q
    Py_ssize_t m                # features at either end
    Py_ssize_t letters
    const double* psi           # (n, vectors, states, states2, lanes), or NULL
    const unsigned char* tiny   # (n, vectors * lanes)
    Py_ssize_t steps
    Py_ssize_t first
    bint lower
    double* log_k               # (steps - first + 1, n, n2)


cdef inline void outer(
    const Pairs* p, Py_ssize_t m, const double* F, const double* F2,
    Py_ssize_t i, Py_ssize_t v, double* out,
) noexcept nogil:
    mx_chain_outer_lanes(
        p.P.states, p.Q.states, m, F + i * m * p.P.states,
        F2 + v * m * p.Q.states * MX_CHAIN_LANES, out)


cdef int kernel_row(const Pairs* p, Py_ssize_t i) noexcept nogil:
    """Row i of the Gram matrices; from the vector of model i on if lower."""
    cdef Py_ssize_t s = p.P.states, s2 = p.Q.states, lanes = MX_CHAIN_LANES, v, l, h
    cdef Py_ssize_t block = s * s2 * lanes, n_out = p.steps - p.first + 1, at
    cdef Py_ssize_t vectors = (p.Q.n + lanes - 1) // lanes
    cdef double* memory = <double*>malloc(
        (5 * block + n_out * lanes + 8) * sizeof(double))
    cdef double* own = aligned(memory)
    cdef double* X = own + block
    cdef double* scratch = X + block
    cdef double* end = scratch + 2 * block
    cdef double* out = end + block
    cdef double least[MX_CHAIN_LANES]
    cdef int lost[MX_CHAIN_LANES]
    cdef mx_chain_pairs pair
    if memory == NULL:
        return 1
    pair.s, pair.s2, pair.steps, pair.first = s, s2, p.steps, p.first
    pair.trans, pair.least = p.P.trans + i * s * s, least
    pair.end = end if p.P.end != NULL else NULL
    for v in range(i // lanes if p.lower else 0, vectors):
        pair.psi = own
        if p.psi == NULL:
            outer(p, p.letters, p.P.table, p.Q.table, i, v, own)
        else:
            pair.psi = p.psi + (i * vectors + v) * block
        outer(p, p.m, p.P.begin, p.Q.begin, i, v, X)
        if p.P.end != NULL:
            outer(p, p.m, p.P.end, p.Q.end, i, v, end)
        pair.trans2 = p.Q.trans + v * s2 * s2 * lanes
        pair.sparse = p.P.sparse[i] | p.Q.sparse[v]
        pair.tiny = p.tiny + (i * vectors + v) * lanes
        for l in range(lanes):
            least[l] = p.P.least[i] * p.Q.least[v * lanes + l]
        mx_chain_kernel_lanes(&pair, X, scratch, out, lost)
        for l in range(min(lanes, p.Q.n - v * lanes)):
            for h in range(n_out):
                at = (h * p.P.n + i) * p.Q.n + v * lanes + l
                p.log_k[at] = (
                    INFINITY - INFINITY if lost[l] else out[h * lanes + l])
    free(memory)
    return 0


def smallest_positive(x, axis):
    """Smallest positive entries along some axes; 1 without any."""
    return np.min(x, axis=axis, where=np.asarray(x) > 0, initial=1.0)


def hmm_kernel(
    tuple left,         # IN  begin (n, m, s), transitions (n, s, s), tables (n,
                        #     letters, s) or None, end (n, m, s) or None: ones; all
                        #     to the power
    tuple right,        # IN  the same of the second models, (vectors, ..., lanes)
    psi,                # IN  (n, vectors, s, s2, lanes), or None: from the tables
    const unsigned char[:, ::1] tiny,     # IN  (n, vectors * lanes), see kernel_loops.h
    Py_ssize_t n2,      # models in the vectors
    Py_ssize_t steps,   # transitions
    bint every,         # after every one of them, or the last
    bint lower,         # both sides are the same: upper triangle
    int n_threads,
):
    """Log product kernels (horizons, n, n2) of pairs of hidden Markov models.

    Sums over pairs of states of begin, psi, (trans, psi) `steps` times, end; begin and
    end are sums over m features, products of one of each model. NaN where a pair has
    left the range of doubles, or may have; entries below the diagonal are undefined if
    `lower`.
    """
    cdef const double[:, :, ::1] begin = left[0], trans = left[1], table, end
    cdef const double[:, :, :, ::1] begin2 = right[0], trans2 = right[1], table2, end2
    cdef const double[:, :, :, :, ::1] psi_view
    cdef const double[::1] least = smallest_positive(trans, (1, 2))
    cdef const double[:, ::1] least2 = smallest_positive(trans2, (1, 2))
    cdef const unsigned char[::1] sparse, sparse2
    cdef Py_ssize_t n = begin.shape[0], s = begin.shape[2], s2 = begin2.shape[2]
    cdef Py_ssize_t i, lo, stop, wave, cost
    cdef int threads
    cdef double[:, :, ::1] log_k = np.full((steps + 1 if every else 1, n, n2), np.nan)
    cdef Pairs p
    cdef int failed = 0
    if n == 0 or n2 == 0:
        return np.asarray(log_k)
    sparse = (np.min(trans, axis=(1, 2)) < DENSE).astype(np.uint8)
    sparse2 = (np.min(trans2, axis=(1, 2, 3)) < DENSE).astype(np.uint8)
    p.P = Models(
        n, s, &begin[0, 0, 0], &trans[0, 0, 0], NULL, NULL, &least[0], &sparse[0])
    p.Q = Models(
        n2, s2, &begin2[0, 0, 0, 0], &trans2[0, 0, 0, 0], NULL, NULL, &least2[0, 0],
        &sparse2[0])
    if left[3] is not None:
        end, end2 = left[3], right[3]
        p.P.end, p.Q.end = &end[0, 0, 0], &end2[0, 0, 0, 0]
    p.m, p.letters, p.psi = begin.shape[1], 0, NULL
    if psi is None:
        table, table2 = left[2], right[2]
        p.letters = table.shape[1]
        p.P.table, p.Q.table = &table[0, 0, 0], &table2[0, 0, 0, 0]
    else:
        psi_view = psi
        p.psi = &psi_view[0, 0, 0, 0, 0]
    p.tiny, p.log_k, p.lower = &tiny[0, 0], &log_k[0, 0, 0], lower
    p.steps, p.first = steps, 0 if every else steps
    cost = 1 + n2 * (steps + 1) * s * s2 * (s + s2) // MX_CHAIN_LANES
    wave = max(<Py_ssize_t>1, WORK // cost) * n_threads
    for lo in range(0, n, wave):
        stop = min(lo + wave, n)
        threads = team(n_threads, stop - lo, <double>cost * (stop - lo))
        for i in prange(lo, stop, nogil=True, schedule="dynamic", chunksize=1,
                        num_threads=threads):
            failed |= kernel_row(&p, i)
        if failed:
            raise MemoryError
        PyErr_CheckSignals()
    return np.asarray(log_k)


# -- in logs ---------------------------------------------------------------------------
cdef void log_product(
    const double* x, Py_ssize_t step, Py_ssize_t n, const double* M,
    const double* log_M, Py_ssize_t m, double* out, Py_ssize_t out_step,
    double* scratch,              # (2 n,)
) noexcept nogil:
    """out[j] = log sum_i exp(x[i]) M[i, j]; sums that may have underflowed in logs."""
    cdef Py_ssize_t i, j
    cdef double top = -INFINITY, value
    for i in range(n):
        top = max(top, x[i * step])
    for i in range(n):
        scratch[i] = exp(x[i * step] - top) if top > -INFINITY else 0.
    for j in range(m):
        value = 0.
        for i in range(n):
            value += scratch[i] * M[i * m + j]
        if value > SURE:
            out[j * out_step] = top + log(value)
        else:
            for i in range(n):
                scratch[n + i] = x[i * step] + log_M[i * m + j]
            out[j * out_step] = log_total(scratch + n, n)


cdef struct LogModels:
    # (n, ...) as Models; logs beside the probabilities
    Py_ssize_t states
    const double* log_start
    const double* trans
    const double* log_trans
    const double* table
    const double* log_table


cdef int pair_in_logs(
    const LogModels* P, const LogModels* Q, Py_ssize_t i, Py_ssize_t j,
    Py_ssize_t letters, const double* log_psi, Py_ssize_t steps, Py_ssize_t first,
    double* log_k, Py_ssize_t stride,
) noexcept nogil:
    """Log kernels of models i and j after first .. steps transitions."""
    cdef Py_ssize_t s = P.states, s2 = Q.states, size = s * s2, t, a, b
    cdef double* X = <double*>malloc(
        (3 * size + 2 * (s + s2 + letters)) * sizeof(double))
    cdef double* Y = X + size
    cdef double* psi = Y + size
    cdef double* scratch = psi + size
    if X == NULL:
        return 1
    if log_psi != NULL:
        memcpy(psi, log_psi, size * sizeof(double))
    else:
        for a in range(s):
            log_product(
                P.log_table + i * letters * s + a, s, letters,
                Q.table + j * letters * s2, Q.log_table + j * letters * s2, s2,
                psi + a * s2, 1, scratch)
    for a in range(s):
        for b in range(s2):
            X[a * s2 + b] = (
                P.log_start[i * s + a] + Q.log_start[j * s2 + b] + psi[a * s2 + b])
    for t in range(steps + 1):
        if t >= first:
            log_k[(t - first) * stride] = log_total(X, size)
        if t == steps:
            break
        for b in range(s2):
            log_product(
                X + b, s2, s, P.trans + i * s * s, P.log_trans + i * s * s, s, Y + b,
                s2, scratch)
        for a in range(s):
            log_product(
                Y + a * s2, 1, s2, Q.trans + j * s2 * s2, Q.log_trans + j * s2 * s2, s2,
                X + a * s2, 1, scratch)
        for a in range(size):
            X[a] += psi[a]
    free(X)
    return 0


cdef LogModels log_models(
    const double[:, ::1] log_start, const double[:, :, ::1] trans,
    const double[:, :, ::1] log_trans,
) noexcept:
    return LogModels(
        log_start.shape[1], &log_start[0, 0], &trans[0, 0, 0], &log_trans[0, 0, 0],
        NULL, NULL)


def hmm_kernel_in_logs(
    tuple left,         # IN  log start (n, s), transitions (n, s, s) and their logs,
                        #     tables (n, letters, s) and their logs or None
    tuple right,        # IN  the same of the second models
    log_psi,            # IN  (pairs, s, s2), or None: from the tables
    const Py_ssize_t[::1] first_model,    # IN  (pairs,)
    const Py_ssize_t[::1] second_model,   # IN  (pairs,)
    Py_ssize_t steps,   # transitions
    bint every,         # after every one of them, or the last
    int n_threads,
):
    """Log product kernels (horizons, pairs), computed in logs.

    For pairs that `hmm_kernel` has marked. A sum of probabilities is exponentiated
    relative to the largest term of a row and is added up term by term in logs where
    that underflows.
    """
    cdef Py_ssize_t n = first_model.shape[0], k, lo, stop, wave, cost, letters = 0, size
    cdef int threads
    cdef double[:, ::1] log_k = np.empty((steps + 1 if every else 1, n))
    cdef const double[:, :, ::1] table, log_table, table2, log_table2, psi_view
    cdef const double* psi = NULL
    cdef LogModels P, Q
    cdef int failed = 0
    if n == 0:
        return np.asarray(log_k)
    P = log_models(left[0], left[1], left[2])
    Q = log_models(right[0], right[1], right[2])
    size = P.states * Q.states
    if log_psi is None:
        table, log_table, table2, log_table2 = left[3], left[4], right[3], right[4]
        letters = table.shape[1]
        P.table, P.log_table = &table[0, 0, 0], &log_table[0, 0, 0]
        Q.table, Q.log_table = &table2[0, 0, 0], &log_table2[0, 0, 0]
    else:
        psi_view = log_psi
        psi = &psi_view[0, 0, 0]
    cost = 1 + (steps + 1) * size * (P.states + Q.states + 20)
    wave = max(<Py_ssize_t>1, WORK // cost) * n_threads
    for lo in range(0, n, wave):
        stop = min(lo + wave, n)
        threads = team(n_threads, stop - lo, <double>cost * (stop - lo))
        for k in prange(lo, stop, nogil=True, schedule="dynamic", chunksize=1,
                        num_threads=threads):
            failed |= pair_in_logs(
                &P, &Q, first_model[k], second_model[k], letters,
                NULL if psi == NULL else psi + k * size, steps,
                0 if every else steps, &log_k[0, k], n)
        if failed:
            raise MemoryError
        PyErr_CheckSignals()
    return np.asarray(log_k)
