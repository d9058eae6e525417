"""Moments of the states given the observations, for EM.

Sums over sequences of expected products, after the Kalman smoother; and the moments of
a Gaussian chain in information form, a block tridiagonal precision, which is what mean
field makes of the states of a switching system.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.math cimport isnan
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from maxent._core.systems.small_matrices cimport (
    congruence,
    factor,
    product_t,
    solve_lower,
    solve_upper,
)
from maxent._core.systems.statespace cimport (
    System,
    filter_scratch,
    kalman_filter,
    kalman_smoother,
    longest,
    smoother_scratch,
    system_of,
)
from maxent._core.threads cimport team


# -- expected products for EM ----------------------------------------------------------
cdef Py_ssize_t n_statistics(Py_ssize_t n, Py_ssize_t d) noexcept nogil:
    return 2 * (n + 1) * (n + 1) + n * (n + 1) + n * n + d * (n + 1) + d * d + n + n * n


cdef void add_state(
    const double* mean, const double* cov, Py_ssize_t n, double* out) noexcept nogil:
    """out (n + 1, n + 1) += E[(s, 1) (s, 1)']."""
    cdef Py_ssize_t i, j
    for i in range(n):
        for j in range(n):
            out[i * (n + 1) + j] += cov[i * n + j] + mean[i] * mean[j]
        out[i * (n + 1) + n] += mean[i]
        out[n * (n + 1) + i] += mean[i]
    out[n * (n + 1) + n] += 1.


cdef void add_products(
    const double* x, Py_ssize_t T, Py_ssize_t n, Py_ssize_t d, const double* mean,
    const double* cov, const double* lag, double* out) noexcept nogil:
    """Sums over a sequence; see `statistics`."""
    cdef Py_ssize_t t, i, j, m = n + 1
    cdef double* before = out                   # (m, m) sum_{t >= 1} E z_{t-1} z_{t-1}'
    cdef double* across = before + m * m        # (n, m) sum_{t >= 1} E s_t z_{t-1}'
    cdef double* after = across + n * m         # (n, n) sum_{t >= 1} E s_t s_t'
    cdef double* seen = after + n * n           # (m, m) sum over observed E z_t z_t'
    cdef double* xz = seen + m * m              # (d, m) sum x_t E z_t'
    cdef double* xx = xz + d * m                # (d, d)
    cdef double* first = xx + d * d             # (n,) and (n, n): E s_0, E s_0 s_0'
    memset(out, 0, n_statistics(n, d) * sizeof(double))
    for t in range(T):
        if t:
            add_state(mean + (t - 1) * n, cov + (t - 1) * n * n, n, before)
            for i in range(n):
                for j in range(n):
                    across[i * m + j] += lag[((t - 1) * n + i) * n + j] + (
                        mean[t * n + i] * mean[(t - 1) * n + j])
                    after[i * n + j] += cov[(t * n + i) * n + j] + (
                        mean[t * n + i] * mean[t * n + j])
                across[i * m + n] += mean[t * n + i]
        else:
            for i in range(n):
                first[i] = mean[i]
                for j in range(n):
                    first[n + i * n + j] = cov[i * n + j] + mean[i] * mean[j]
        if not isnan(x[t * d]):
            add_state(mean + t * n, cov + t * n * n, n, seen)
            for i in range(d):
                for j in range(n):
                    xz[i * m + j] += x[t * d + i] * mean[t * n + j]
                xz[i * m + n] += x[t * d + i]
                for j in range(d):
                    xx[i * d + j] += x[t * d + i] * x[t * d + j]


cdef void one_sequence(
    const System* s, const double* x, Py_ssize_t T, double* work, double* out,
    double* log_likelihood, Py_ssize_t* bad) noexcept nogil:
    cdef Py_ssize_t n = s.n, d = s.d, t
    cdef double* pm = work
    cdef double* pP = pm + T * n
    cdef double* mean = pP + T * n * n
    cdef double* cov = mean + T * n
    cdef double* lag = cov + T * n * n
    cdef double* log_det = lag + T * n * n
    cdef double* distance = log_det + T
    cdef double* scratch = distance + T
    cdef double total = 0.
    bad[0] = kalman_filter(s, x, T, pm, pP, mean, cov, log_det, distance, scratch)
    if bad[0] >= 0:
        return
    kalman_smoother(s, T, pm, pP, mean, cov, lag, scratch)
    add_products(x, T, n, d, mean, cov, lag, out)
    for t in range(T):
        total -= 0.5 * (log_det[t] + distance[t])
    log_likelihood[0] = total


def statistics(
    tuple arrays,                       # IN   see `system_of`
    const double[:, ::1] values,        # IN   (steps, d)
    const Py_ssize_t[::1] offsets,      # IN   (sequences + 1,)
    int n_threads,
    double[:, ::1] out,                 # OUT  (sequences, n_statistics)
    double[::1] log_likelihood,         # OUT  (sequences,) without (d / 2) log 2 pi
    Py_ssize_t[::1] bad,                # OUT  (sequences,) step of failure, or -1
):
    """Expected products of states and observations, one row per sequence, z = (s, 1).

    In the order of a row: sum z_{t-1} z_{t-1}', sum s_t z_{t-1}', sum s_t s_t' over
    t >= 1; sum z z', sum x z', sum x x' over observed steps; s_0 and s_0 s_0'.
    """
    cdef Py_ssize_t most = longest(offsets, values.shape[0])
    cdef System s = system_of(arrays, most)
    cdef Py_ssize_t n = s.n, d = s.d, i, first, stop, N = offsets.shape[0] - 1
    cdef Py_ssize_t room = most * (2 * n + 3 * n * n + 2) + max(
        filter_scratch(n, d), smoother_scratch(n))
    cdef Py_ssize_t block = n_threads * max(
        1, <Py_ssize_t>(1e6 / (most * 12. * (n + d) ** 3)))
    if (values.shape[1] != d or out.shape[1] != n_statistics(n, d) or not
            out.shape[0] == log_likelihood.shape[0] == bad.shape[0] == N):
        raise ValueError("values and outputs do not fit")
    block = min(block, N)
    n_threads = team(n_threads, N, 10. * offsets[N] * (n + d) ** 3)
    cdef double* work = <double*>malloc(block * room * sizeof(double))
    if work == NULL:
        raise MemoryError
    try:
        for first in range(0, N, block):
            stop = min(first + block, N)
            for i in prange(first, stop, nogil=True, schedule="dynamic", chunksize=1,
                            num_threads=n_threads):
                one_sequence(
                    &s, &values[offsets[i], 0], offsets[i + 1] - offsets[i],
                    work + (i - first) * room, &out[i, 0], &log_likelihood[i], &bad[i])
            PyErr_CheckSignals()
    finally:
        free(work)


# -- Gaussian chains in information form -----------------------------------------------
def information_chain(
    double[:, :, ::1] diagonal,         # IN   (T, n, n) blocks (t, t); overwritten
    const double[:, :, ::1] below,      # IN   (T - 1, n, n) blocks (t + 1, t)
    const double[:, ::1] linear,        # IN   (T, n)
    double[:, ::1] mean,                # OUT  (T, n)
    double[:, :, ::1] cov,              # OUT  (T, n, n)
    double[:, :, ::1] lag,              # OUT  (T - 1, n, n) Cov(s_{t + 1}, s_t)
):
    """Moments of exp(h' s - s' Lam s / 2), Lam block tridiagonal and positive definite.

    Returns log|Lam|, or None if it is not positive definite. Block Cholesky forward,
    with D_t = Lam_tt - E_{t-1} D_{t-1}^{-1} E_{t-1}'; backward
    s_t = D_t^{-1} (h_t - E_t' s_{t+1}), P_t = D_t^{-1} + G P_{t+1} G' with
    G = D_t^{-1} E_t'.
    """
    cdef Py_ssize_t T = diagonal.shape[0], n = diagonal.shape[1], t, i, j, k
    cdef double total = 0., value, s
    cdef bint good = True
    if (
        T == 0 or n == 0 or diagonal.shape[2] != n
        or not below.shape[0] == lag.shape[0] == T - 1
        or not linear.shape[0] == mean.shape[0] == cov.shape[0] == T
        or not linear.shape[1] == mean.shape[1] == cov.shape[1] == cov.shape[2] == n
        or T > 1 and not (
            below.shape[1] == below.shape[2] == lag.shape[1] == lag.shape[2] == n)
    ):
        raise ValueError("the blocks do not fit")
    cdef double* U = <double*>malloc(3 * n * n * sizeof(double))
    if U == NULL:
        raise MemoryError
    cdef double* G = U + n * n
    cdef double* work = G + n * n
    cdef double* D
    try:
        with nogil:
            for t in range(T):
                D = &diagonal[t, 0, 0]
                for i in range(n):
                    mean[t, i] = linear[t, i]
                if t:
                    # U = L^{-1} E', D -= U' U, h -= U' L^{-1} h
                    for i in range(n):
                        for j in range(n):
                            U[i * n + j] = below[t - 1, j, i]
                    solve_lower(&diagonal[t - 1, 0, 0], n, U, n)
                    for i in range(n):
                        s = 0.
                        for k in range(n):
                            s += U[k * n + i] * mean[t - 1, k]
                        mean[t, i] -= s
                        for j in range(i + 1):
                            s = 0.
                            for k in range(n):
                                s += U[k * n + i] * U[k * n + j]
                            D[i * n + j] -= s
                if not factor(D, n, &value):
                    good = False
                    break
                total += value
                solve_lower(D, n, &mean[t, 0], 1)   # L^{-1} h
            if good:
                for t in range(T - 1, -1, -1):
                    D = &diagonal[t, 0, 0]
                    memset(&cov[t, 0, 0], 0, n * n * sizeof(double))
                    # G = D^{-1} E'
                    if t < T - 1:
                        for i in range(n):
                            for j in range(n):
                                G[i * n + j] = below[t, j, i]
                        solve_lower(D, n, G, n)
                        for i in range(n):
                            for j in range(n):
                                mean[t, i] -= G[i * n + j] * mean[t + 1, j]
                        solve_upper(D, n, G, n)
                    solve_upper(D, n, &mean[t, 0], 1)
                    memset(U, 0, n * n * sizeof(double))
                    for i in range(n):
                        U[i * n + i] = 1.
                    solve_lower(D, n, U, n)
                    for i in range(n):
                        for j in range(n):
                            s = 0.
                            for k in range(n):
                                s += U[k * n + i] * U[k * n + j]
                            cov[t, i, j] = s
                    if t < T - 1:
                        congruence(G, &cov[t + 1, 0, 0], n, n, work, &cov[t, 0, 0])
                        product_t(&cov[t + 1, 0, 0], G, n, n, n, &lag[t, 0, 0])
                        for i in range(n * n):
                            (&lag[t, 0, 0])[i] = -(&lag[t, 0, 0])[i]
    finally:
        free(U)
    return total if good else None
