"""EM passes over mixtures of Gaussians, many restarts at a time.

    rho_tk = theta_k N(y_t | mu_k, Sigma_k) / sum_j theta_j N(y_t | mu_j, Sigma_j)

and their weighted moments about the current means, which cancel nothing as EM
converges. Rows are taken in blocks that stay in cache; a restart belongs to one thread,
so results have the same bits for any number of threads.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.math cimport INFINITY, fabs, fmax, log, sqrt
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


# -- EM steps of one mixture -----------------------------------------------------------
cdef enum:
    SPHERICAL = 0
    DIAGONAL = 1
    FULL = 2

cdef double FAR = 1e4                     # squared shift of a mean, in variances
cdef double FAINT = 1e-8                  # variance left beside that of its column
cdef double ROUNDING = 3.2e-28            # (80 eps)^2, of a squared mean
cdef double LOG_2PI = 1.8378770664093453


cdef struct Mixture:
    Py_ssize_t K
    Py_ssize_t d
    Py_ssize_t P                          # numbers of a (co)variance
    int kind
    double smoothing
    const double* count                   # (K,), rows that the prior counts as
    const double* within                  # (P,), their (co)variances
    double greatest                       # log-determinant of these, plus d


cdef double factored(const Mixture* p, const double* spread, double* root) noexcept nogil:
    """Packed inverse factor of a (co)variance; its log-determinant, inf in doubt."""
    cdef Py_ssize_t d = p.d, i, j, a, at
    cdef double total, log_det = 0.
    if p.kind != FULL:
        for i in range(d):
            if not spread[i] > 0.:
                return INFINITY
            root[i] = 1. / sqrt(spread[i])
            log_det += log(spread[i])
        return log_det
    for i in range(d):                    # the factor itself
        for j in range(i + 1):
            total = spread[i * (i + 1) // 2 + j]
            for a in range(j):
                total -= root[i * (i + 1) // 2 + a] * root[j * (j + 1) // 2 + a]
            if i > j:
                root[i * (i + 1) // 2 + j] = total / root[j * (j + 1) // 2 + j]
                continue
            if not total > FAINT * spread[i * (i + 1) // 2 + i]:
                return INFINITY
            root[i * (i + 1) // 2 + i] = sqrt(total)
            log_det += log(total)
    for i in range(d):                    # row by row in its place
        at = i * (i + 1) // 2
        for j in range(i):
            total = 0.
            for a in range(j, i):
                total += root[at + a] * root[a * (a + 1) // 2 + j]
            root[at + j] = -total / root[at + i]
        root[at + i] = 1. / root[at + i]
    return log_det


cdef double away(const Mixture* p, const double* root) noexcept nogil:
    """tr(S^{-1} W), for the prior's W."""
    cdef Py_ssize_t i, j, a, at
    cdef double total = 0., own
    if p.kind != FULL:
        for i in range(p.d):
            total += root[i] * root[i] * p.within[i]
        return total
    for i in range(p.d):
        at = i * (i + 1) // 2
        for j in range(i + 1):
            own = 0.
            for a in range(j):
                own += p.within[j * (j + 1) // 2 + a] * root[at + a]
            total += root[at + j] * (
                2. * own + p.within[j * (j + 1) // 2 + j] * root[at + j])
    return total


cdef int followed(
    const Mixture* p, double n, double count, const double* s1, const double* s2,
    const double* old, double* mean, double* spread,
) noexcept nogil:
    """M step of one member from its sums about the old mean; 0 in doubt."""
    cdef Py_ssize_t d = p.d, i, j, at
    cdef double total = 0., var
    for i in range(d):
        mean[i] = s1[i] / n               # the shift, until it is added
    for i in range(d):
        at = i * (i + 1) // 2 if p.kind == FULL else i
        for j in range(i + 1 if p.kind == FULL else 1):
            var = s2[at + j] / n - mean[i] * mean[j if p.kind == FULL else i]
            spread[at + j] = var
        total += var
    for i in range(d if p.kind == SPHERICAL else 0):
        spread[i] = total / d
    for i in range(p.P):
        spread[i] = (n * spread[i] + count * p.within[i]) / (n + count)
    for i in range(d):
        var = spread[i * (i + 1) // 2 + i if p.kind == FULL else i]
        if not mean[i] * mean[i] <= FAR * var:  # of which digits are lost
            return 0
        mean[i] += old[i]
        if not var > ROUNDING * mean[i] * mean[i]:
            return 0
    return 1


cdef void moments_of_shares(
    const Mixture* p, const double* y, const double* w, Py_ssize_t rows,
    const double* share, const double* mean, double* room, double* n, double* s1,
    double* s2,
) noexcept nogil:
    """Sums of shares (K, rows) of the rows about means (K, d)."""
    cdef Py_ssize_t d = p.d, lo = 0, m, t, a, k
    cdef double* own = room + d * MX_MIXTURE_BLOCK
    for k in range(p.K):
        n[k] = 0.
    for k in range(p.K * d):
        s1[k] = 0.
    for k in range(p.K * p.P):
        s2[k] = 0.
    while lo < rows:
        m = min(<Py_ssize_t> MX_MIXTURE_BLOCK, rows - lo)
        for a in range(d):
            for t in range(m):
                room[a * MX_MIXTURE_BLOCK + t] = y[a * rows + lo + t]
        for k in range(p.K):
            for t in range(m):
                own[t] = w[lo + t] * share[k * rows + lo + t]
            n[k] += mx_moments_block(
                room, own, m, d, p.kind != FULL, mean + k * d, own + MX_MIXTURE_BLOCK,
                s1 + k * d, s2 + k * p.P)
        lo = lo + MX_MIXTURE_BLOCK


cdef bint maximum(
    const Mixture* p, const double* n, const double* s1, const double* s2,
    const double* old, double* mean, double* spread, double* root, double* log_det,
) noexcept nogil:
    """M step of all members from sums about their old means; False in doubt."""
    cdef Py_ssize_t k
    for k in range(p.K):
        if not n[k] > 0. or not followed(
                p, n[k], p.count[k], s1 + k * p.d, s2 + k * p.P, old + k * p.d,
                mean + k * p.d, spread + k * p.P):
            return False
        log_det[k] = factored(p, spread + k * p.P, root + k * p.P)
        if not log_det[k] < INFINITY:
            return False
    return True


def em_steps(
    const double[:, ::1] y,              # IN   (d, rows), rows a multiple of 8
    const double[::1] w,                 # IN   (rows,), 0 on rows that fill up
    int kind,                            # spherical, diagonal or full: 0, 1, 2
    double smoothing,                    # pseudo-counts of the weights
    const double[::1] count,             # IN   (K,), of the prior
    const double[::1] within,            # IN   (P,), of the prior, packed
    const double[:, ::1] share,          # IN   (K, rows) to start from, or (0, 0)
    double[::1] weights,                 # INOUT (K,)
    double[:, ::1] mean,                 # INOUT (K, d)
    double[:, ::1] spread,               # INOUT (K, P), packed (co)variances
    double[::1] objective,               # OUT   (n_steps or one more,)
    Py_ssize_t n_steps,
    double least,                        # gain below which no more step is taken
):
    """EM steps with a prior of the (co)variances, from a point or from shares of rows.

    Objectives are those before each step, and of the last point if there is room for
    it. Returns the number of steps, and whether they are done: fewer are where one has
    gained less than `least`; they are not done where one needs care, as a member has no
    rows or is almost singular, and the point is the one before it, if there is one.
    """
    cdef Py_ssize_t K = mean.shape[0], d = mean.shape[1], rows = y.shape[1], k, i
    cdef Py_ssize_t P = d * (d + 1) // 2 if kind == FULL else d, step = 0
    cdef Py_ssize_t S = K * P, M = K * d
    cdef Mixture p
    cdef bint begins = share.shape[0] > 0
    cdef double value, total, last = -INFINITY
    if (y.shape[0] != d or w.shape[0] != rows or rows % 8 or weights.shape[0] != K
            or spread.shape[0] != K or spread.shape[1] != P or count.shape[0] != K
            or within.shape[0] != P
            or begins and (share.shape[0] != K or share.shape[1] != rows)
            or objective.shape[0] < n_steps or rows == 0 or K == 0 or d == 0):
        raise ValueError("shapes of the arrays do not fit together")
    cdef double[::1] room = np.empty(
        4 * K + 2 * M + 3 * S + (2 * d + 2) * MX_MIXTURE_BLOCK * begins)
    cdef double* scale = &room[0]
    cdef double* n = scale + K
    cdef double* log_det = n + K
    cdef double* new_det = log_det + K
    cdef double* s1 = new_det + K
    cdef double* new = s1 + M
    cdef double* s2 = new + M
    cdef double* root = s2 + S
    cdef double* other = root + S
    p.K, p.d, p.P, p.kind, p.smoothing = K, d, P, kind, smoothing
    p.count, p.within, p.greatest = &count[0], &within[0], 0.
    for k in range(K):
        if count[k] > 0.:
            p.greatest = factored(&p, p.within, root) + d
    for k in range(0 if begins else K):
        log_det[k] = factored(&p, &spread[k, 0], root + k * P)
        if not log_det[k] < INFINITY or not weights[k] > 0.:
            return 0, False
    while True:
        if begins:
            for i in range(M):            # twice: sums are about the means at last
                new[i] = 0.
            for i in range(2):
                moments_of_shares(&p, &y[0, 0], &w[0], rows, &share[0, 0], new,
                                  other + S, n, s1, s2)
                for k in range(M if i == 0 else 0):
                    if not n[k // d] > 0.:
                        return 0, False
                    new[k] = s1[k] / n[k // d]
            for i in range(M):
                mean[i // d, i % d] = new[i]
        else:
            if step == objective.shape[0]:
                return step, True
            value = 0.
            for k in range(K):
                scale[k] = log(weights[k]) - 0.5 * (log_det[k] + d * LOG_2PI)
                value += smoothing * log(weights[k])
                if count[k] > 0.:
                    value -= 0.5 * count[k] * (
                        log_det[k] + away(&p, root + k * P) - p.greatest)
                n[k] = 0.
            for i in range(M):
                s1[i] = 0.
            for i in range(S):
                s2[i] = 0.
            with nogil:
                k = one_restart(&y[0, 0], &w[0], rows, d, K, kind != FULL, scale,
                                &mean[0, 0], root, &total, n, s1, s2)
            if k < 0:
                raise MemoryError("no memory for the blocks of an EM pass")
            value += total
            if not fabs(value) < INFINITY:
                return step, False
            objective[step] = value
            if step == n_steps or value - last < least:
                return step, True
            last = value
            PyErr_CheckSignals()
        if not maximum(&p, n, s1, s2, &mean[0, 0], new, other, root, new_det):
            return step, False
        total = 0.
        for k in range(K):
            total += n[k] + smoothing
        for k in range(K):
            weights[k] = (n[k] + smoothing) / total
            log_det[k] = new_det[k]
            for i in range(d):
                mean[k, i] = new[k * d + i]
            for i in range(P):
                spread[k, i] = other[k * P + i]
        step += not begins
        begins = False


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
