"""k-means of weighted rows: the seeds of k-means++, then Lloyd's steps.

Distances are sums of squares of differences, which lose no digits to a far origin, over
blocks of rows that stay in cache. One thread: results have the same bits for any
number.

Source: Arthur & Vassilvitskii (2007), k-means++, with the best of a few candidates for
each seed; Lloyd (1982).
"""

from cpython.exc cimport PyErr_CheckSignals

import numpy as np

cdef extern from "machines/rbf_loops.h" nogil:
    ctypedef Py_ssize_t mx_size
    enum: MX_MIXTURE_BLOCK
    void mx_whitened_block(
        const double* y, mx_size m, mx_size d, int diagonal, const double* mean,
        const double* root, double* scratch, double* out)


cdef struct Rows:
    Py_ssize_t n
    Py_ssize_t d
    const double* x                       # (n, d)
    const double* y                       # columns of blocks, the last filled up
    const double* ones                    # (d,)
    double* scratch                       # (d + 1, block)


cdef void distances(const Rows* p, const double* centre, double* out) noexcept nogil:
    """Squared distances of all rows, in whole blocks, from a centre."""
    cdef Py_ssize_t lo = 0, left
    while lo < p.n:
        left = (min(<Py_ssize_t> MX_MIXTURE_BLOCK, p.n - lo) + 7) // 8 * 8
        mx_whitened_block(p.y + lo * p.d, left, p.d, 1, centre, p.ones, p.scratch,
                          out + lo)
        lo = lo + MX_MIXTURE_BLOCK


cdef Py_ssize_t drawn(const double* share, Py_ssize_t n, double u) noexcept nogil:
    """Row at the quantile u of shares that need not sum to one; -1 if all are zero."""
    cdef double total = 0., seen = 0.
    cdef Py_ssize_t i, last = -1
    for i in range(n):
        total += share[i]
    for i in range(n):
        if share[i] > 0.:
            seen += share[i]
            last = i
            if seen > u * total:
                return i
    return last


cdef Py_ssize_t seeds(
    const Rows* p, const double* w, Py_ssize_t k, const double[:, ::1] uniform,
    double* centre, double* least, double* share, double* own, double* best,
) except -1:
    """Centres (k, d) at rows; how many there are, fewer if rows are equal."""
    cdef Py_ssize_t i, c, h, row, chosen
    cdef double value, lowest
    for i in range(p.n):
        least[i], share[i] = float("inf"), w[i]
    for h in range(k):
        lowest, chosen = float("inf"), -1
        for c in range(uniform.shape[1] if h else 1):
            row = drawn(share, p.n, uniform[h, c])
            if row < 0:
                return h
            distances(p, p.x + row * p.d, own)
            value = 0.
            for i in range(p.n):
                own[i] = min(own[i], least[i])
                value += w[i] * own[i]
            if value < lowest:
                lowest, chosen = value, row
                for i in range(p.n):
                    best[i] = own[i]
        for i in range(p.d):
            centre[h * p.d + i] = p.x[chosen * p.d + i]
        for i in range(p.n):
            least[i] = best[i]
            share[i] = w[i] * best[i]
        PyErr_CheckSignals()
    return k


cdef Py_ssize_t nearest(
    const Rows* p, Py_ssize_t k, const double* centre, double* least, double* own,
    Py_ssize_t* label,
) noexcept nogil:
    """Labels by the nearest centres; how many rows have changed theirs."""
    cdef Py_ssize_t lo = 0, i, h, m, changed = 0, nearest_of[MX_MIXTURE_BLOCK]
    while lo < p.n:
        m = min(<Py_ssize_t> MX_MIXTURE_BLOCK, p.n - lo)
        for h in range(k):
            mx_whitened_block(p.y + lo * p.d, (m + 7) // 8 * 8, p.d, 1,
                              centre + h * p.d, p.ones, p.scratch, own)
            for i in range(m):
                if h == 0 or own[i] < least[lo + i]:
                    least[lo + i], nearest_of[i] = own[i], h
        for i in range(m):
            changed += label[lo + i] != nearest_of[i]
            label[lo + i] = nearest_of[i]
        lo = lo + MX_MIXTURE_BLOCK
    return changed


cdef void means(
    const Rows* p, const double* w, Py_ssize_t k, double* centre, double* size,
    double* least, Py_ssize_t* label,
) noexcept nogil:
    """Centres at the means of their rows; one without rows takes the farthest row."""
    cdef Py_ssize_t i, a, h, far
    for h in range(k):
        size[h] = 0.
    for i in range(p.n):
        size[label[i]] += w[i]
    for h in range(k):
        if size[h] > 0.:
            continue
        far = -1
        for i in range(p.n):  # of a cluster of several rows
            if size[label[i]] > w[i] * (1. + 1e-9) and (
                    far < 0 or w[i] * least[i] > w[far] * least[far]):
                far = i
        if far < 0:
            continue
        size[label[far]] -= w[far]
        size[h], label[far], least[far] = w[far], h, 0.
    for i in range(k * p.d):
        centre[i] = 0.
    for i in range(p.n):
        for a in range(p.d):
            centre[label[i] * p.d + a] += w[i] * p.x[i * p.d + a]
    for h in range(k):
        for a in range(p.d):
            centre[h * p.d + a] /= size[h] if size[h] > 0. else 1.


def k_means(
    const double[:, ::1] X,               # IN  (n, d)
    const double[::1] w,                  # IN  (n,), positive weights
    Py_ssize_t k,                         # clusters, of at least as many rows
    const double[:, ::1] uniform,         # IN  (k, candidates), draws from (0, 1)
    Py_ssize_t max_iter,
):
    """Labels (n,) of a local minimum, and the weighted squares that they leave.

    There are fewer labels than k if there are fewer different rows.
    """
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], B = MX_MIXTURE_BLOCK, lo, i, a, it
    cdef Py_ssize_t whole = (n + B - 1) // B * B
    cdef double squares = 0.
    cdef Rows p
    if w.shape[0] != n or uniform.shape[0] != k or not 0 < k <= n or d == 0:
        raise ValueError("shapes of the arrays do not fit together")
    cdef double[::1] y = np.empty(whole * d), scratch = np.empty((d + 1) * B)
    cdef double[::1] ones = np.ones(d), centre = np.empty(k * d), size = np.empty(k)
    cdef double[:, ::1] room = np.empty((4, whole))
    cdef Py_ssize_t[::1] label = np.full(n, -1, np.intp)
    for lo in range(0, n, B):
        for a in range(d):
            for i in range(B):
                y[lo * d + a * B + i] = X[min(lo + i, n - 1), a]
    p.n, p.d, p.x, p.y = n, d, &X[0, 0], &y[0]
    p.ones, p.scratch = &ones[0], &scratch[0]
    k = seeds(&p, &w[0], k, uniform, &centre[0], &room[0, 0], &room[1, 0], &room[2, 0],
              &room[3, 0])
    for it in range(max_iter):
        if not nearest(&p, k, &centre[0], &room[0, 0], &room[1, 0], &label[0]):
            break
        means(&p, &w[0], k, &centre[0], &size[0], &room[0, 0], &label[0])
        PyErr_CheckSignals()
    for i in range(n):
        squares += w[i] * room[0, i]
    return np.asarray(label), squares
