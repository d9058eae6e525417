"""EM passes over mixtures of Gaussians, many restarts at a time.

    rho_tk = theta_k N(y_t | mu_k, Sigma_k) / sum_j theta_j N(y_t | mu_j, Sigma_j)

and their weighted moments about the current means, which cancel nothing as EM
converges. Rows are taken in blocks that stay in cache; a restart belongs to one thread,
so results have the same bits for any number of threads.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.stdlib cimport free, malloc

import numpy as np

cdef extern from "machines/rbf_loops.h" nogil:
    ctypedef Py_ssize_t mx_size
    enum: MX_MIXTURE_BLOCK
    double mx_mixture_block(
        const double* y, mx_size stride, const double* w, mx_size m, mx_size d,
        mx_size K, int diagonal, const double* log_scale, const double* mean,
        const double* root, double* rho, double* scratch, double* n, double* s1,
        double* s2)
    void mx_whitened_block(
        const double* y, mx_size m, mx_size d, int diagonal, const double* mean,
        const double* root, double* scratch, double* out)
    double mx_moments_block(
        const double* y, const double* own, mx_size m, mx_size d, int diagonal,
        const double* mean, double* scratch, double* s1, double* s2)

cdef enum:
    CHECKED = 1 << 24  # multiplications between two checks for Ctrl-C, about


cdef int one_restart(
    const double* y, const double* w, Py_ssize_t rows, Py_ssize_t d, Py_ssize_t K,
    int diagonal, const double* log_scale, const double* mean, const double* root,
    double* likelihood, double* n, double* s1, double* s2,
) noexcept nogil:
    """Sums over all rows; -1 without memory."""
    cdef Py_ssize_t lo, size = MX_MIXTURE_BLOCK * (K + d + 2)
    cdef double* room = <double*> malloc(size * sizeof(double))
    cdef double total = 0.
    if room == NULL:
        return -1
    lo = 0
    while lo < rows:
        total += mx_mixture_block(
            y + lo, rows, w + lo, min(<Py_ssize_t> MX_MIXTURE_BLOCK, rows - lo), d, K,
            diagonal, log_scale, mean, root, room, room + MX_MIXTURE_BLOCK * K, n, s1,
            s2)
        lo = lo + MX_MIXTURE_BLOCK
    likelihood[0] = total
    free(room)
    return 0


def em_pass(
    const double[:, ::1] y,              # IN   (d, rows), rows a multiple of 8
    const double[::1] w,                 # IN   (rows,), 0 on rows that fill up
    bint diagonal,
    const double[:, ::1] log_scale,      # IN   (R, K), logs of weight / sqrt|2 pi S|
    const double[:, :, ::1] mean,        # IN   (R, K, d)
    const double[:, :, ::1] root,        # IN   (R, K, P), packed inverse factors
    double[::1] likelihood,              # OUT  (R,), sum w log p(y)
    double[:, ::1] n,                    # OUT  (R, K)
    double[:, :, ::1] s1,                # OUT  (R, K, d)
    double[:, :, ::1] s2,                # OUT  (R, K, P)
    int threads,
):
    """One E step and its sums for every restart; the outputs come in as zeros."""
    cdef Py_ssize_t R = mean.shape[0], K = mean.shape[1], d = mean.shape[2]
    cdef Py_ssize_t r, rows = y.shape[1], P = d if diagonal else d * (d + 1) // 2
    cdef int failed = 0
    if (y.shape[0] != d or w.shape[0] != rows or rows % 8 or root.shape[2] != P
            or log_scale.shape[0] != R or log_scale.shape[1] != K
            or root.shape[0] != R or root.shape[1] != K
            or likelihood.shape[0] != R or n.shape[0] != R or n.shape[1] != K
            or s1.shape[0] != R or s1.shape[1] != K or s1.shape[2] != d
            or s2.shape[0] != R or s2.shape[1] != K or s2.shape[2] != P):
        raise ValueError("shapes of the arrays do not fit together")
    if R == 0 or K == 0 or d == 0 or rows == 0:
        return
    for r in prange(R, nogil=True, schedule="dynamic", num_threads=threads):
        failed += one_restart(
            &y[0, 0], &w[0], rows, d, K, diagonal, &log_scale[r, 0], &mean[r, 0, 0],
            &root[r, 0, 0], &likelihood[r], &n[r, 0], &s1[r, 0, 0], &s2[r, 0, 0])
    if failed:
        raise MemoryError("no memory for the blocks of an EM pass")


# -- Gaussians of rows as they come ----------------------------------------------------
cdef Py_ssize_t load_block(
    const double* x, Py_ssize_t rows, Py_ssize_t d, double* y
) noexcept nogil:
    """Columns of a block of rows (rows, d), filled up; how many there are then."""
    cdef Py_ssize_t t, a, m = (rows + 7) // 8 * 8
    for t in range(m):
        for a in range(d):
            y[a * MX_MIXTURE_BLOCK + t] = x[min(t, rows - 1) * d + a]
    return m


def squared_lengths(
    const double[:, ::1] X,              # IN   (n, d)
    bint diagonal,
    const double[:, ::1] mean,           # IN   (K, d)
    const double[:, ::1] root,           # IN   (K, P), packed inverse factors
):
    """|root_k (x_i - mean_k)|^2, (K, n)."""
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], K = mean.shape[0], lo, k, m, t, rows
    cdef Py_ssize_t P = d if diagonal else d * (d + 1) // 2, done = 0
    if mean.shape[1] != d or root.shape[0] != K or root.shape[1] != P or d == 0:
        raise ValueError("shapes of the arrays do not fit together")
    cdef double[:, ::1] out = np.empty((K, n))
    cdef double[::1] room = np.empty(MX_MIXTURE_BLOCK * (2 * d + 2))
    cdef double* y = &room[0]
    cdef double* scratch = y + d * MX_MIXTURE_BLOCK
    cdef double* own = scratch + (d + 1) * MX_MIXTURE_BLOCK
    for lo in range(0, n, MX_MIXTURE_BLOCK):
        rows = min(<Py_ssize_t>MX_MIXTURE_BLOCK, n - lo)
        with nogil:
            m = load_block(&X[lo, 0], rows, d, y)
            for k in range(K):
                mx_whitened_block(y, m, d, diagonal, &mean[k, 0], &root[k, 0], scratch,
                                  own)
                for t in range(rows):
                    out[k, lo + t] = own[t]
        done += rows * K * P
        if done > CHECKED:
            PyErr_CheckSignals()
            done = 0
    return np.asarray(out)


def moments(
    const double[:, ::1] X,              # IN   (n, d)
    const double[:, ::1] W,              # IN   (K, n), weights
    bint diagonal,
    const double[:, ::1] mean,           # IN   (K, d)
):
    """Sums of the weights (K,), and of w (x - mean) and w (x - mean)(x - mean)'.

    The last are (K, P): variances, or lower triangles row by row.
    """
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], K = mean.shape[0], lo, k, m, t, rows
    cdef Py_ssize_t P = d if diagonal else d * (d + 1) // 2, done = 0
    if mean.shape[1] != d or W.shape[0] != K or W.shape[1] != n or d == 0:
        raise ValueError("shapes of the arrays do not fit together")
    total, s1, s2 = np.zeros(K), np.zeros((K, d)), np.zeros((K, P))
    cdef double[::1] room = np.empty(MX_MIXTURE_BLOCK * (2 * d + 2)), sums = total
    cdef double[:, ::1] first = s1, second = s2
    cdef double* y = &room[0]
    cdef double* scratch = y + d * MX_MIXTURE_BLOCK
    cdef double* own = scratch + (d + 1) * MX_MIXTURE_BLOCK
    for lo in range(0, n, MX_MIXTURE_BLOCK):
        rows = min(<Py_ssize_t>MX_MIXTURE_BLOCK, n - lo)
        with nogil:
            m = load_block(&X[lo, 0], rows, d, y)
            for k in range(K):
                for t in range(m):
                    own[t] = W[k, lo + t] if t < rows else 0.
                sums[k] += mx_moments_block(
                    y, own, m, d, diagonal, &mean[k, 0], scratch, &first[k, 0],
                    &second[k, 0])
        done += rows * K * P
        if done > CHECKED:
            PyErr_CheckSignals()
            done = 0
    return total, s1, s2
