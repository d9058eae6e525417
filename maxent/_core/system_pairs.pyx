"""Pairs of linear dynamical systems: log-determinants and distances of their laws.

The law of (x_0 .. x_T) is Gaussian with covariance S; log|S + S'| and
(mu - mu')' (S + S')^{-1} (mu - mu') are the sums of log|F_t| and e_t' F_t^{-1} e_t in
the filter of x - x' at observations zero.  `pair_filter.c` runs it for eight pairs at
once and marks those whose updates are ill-conditioned; O(T (n + n')^3) per pair.

Source: Jebara, Kondor & Howard (2004), section 4.5, with the corrections on the errata
page of the documentation.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.stdlib cimport free, malloc

cdef enum:
    ALIGNED = 64
    WORK = 20000000         # multiplications of a thread between two looks for Ctrl-C

PAIRS = MX_PAIRS
ALIGNMENT = ALIGNED     # of packed lanes, in bytes


cdef void one_row(
    const mx_pairs* p, const double* row, const double* lanes, Py_ssize_t lane_size,
    Py_ssize_t first, Py_ssize_t stop, Py_ssize_t columns, double* scratch,
    double* log_det, double* distance, unsigned char* suspect) noexcept nogil:
    """One system against blocks first .. stop - 1; outputs (columns, n_horizons)."""
    cdef Py_ssize_t b, l, h, H = p.n_horizons, j
    cdef double* both = scratch + mx_pair_scratch(p.n, p.m, p.d)
    cdef double* far = both + MX_PAIRS * H
    cdef unsigned char marks[MX_PAIRS]
    for b in range(first, stop):
        mx_pair_filter(p, row, lanes + b * lane_size, scratch, both, far, marks)
        for l in range(min(<Py_ssize_t>MX_PAIRS, columns - b * MX_PAIRS)):
            j = b * MX_PAIRS + l
            suspect[j] = marks[l]
            for h in range(H):
                log_det[j * H + h] = both[h * MX_PAIRS + l]
                distance[j * H + h] = far[h * MX_PAIRS + l]


def pair_terms(
    const double[:, ::1] rows,          # IN   (N, size) packed systems of n states
    Py_ssize_t n,
    bint rows_vary,                     # a record for every step
    const double[:, :, ::1] lanes,      # IN   (blocks, size, PAIRS) packed, of m states
    Py_ssize_t m,
    bint lanes_vary,
    Py_ssize_t d,
    const Py_ssize_t[::1] horizons,     # IN   increasing, >= 0
    bint symmetric,                     # rows and lanes are the same: upper triangle
    bint triangular,                    # observation matrices are
    bint freeze,                        # hold covariances that have converged
    int n_threads,
    double[:, :, ::1] log_det,          # OUT  (N, M, n_horizons)
    double[:, :, ::1] distance,         # OUT
    unsigned char[:, ::1] suspect,      # OUT  (N, M) pairs that lost digits
):
    """log|S_i + S'_j| and squared distances of means for all pairs and horizons."""
    cdef Py_ssize_t N = rows.shape[0], M = log_det.shape[1], H = horizons.shape[0]
    cdef Py_ssize_t blocks = lanes.shape[0], i, h, first, stop, T
    cdef Py_ssize_t head_n = n + n * n, head_m = m + m * m
    cdef Py_ssize_t step_n = 2 * n * n + n + d * n + d + d * d + 1
    cdef Py_ssize_t step_m = 2 * m * m + m + d * m + d + d * d + 1
    cdef mx_pairs p
    if H == 0 or horizons[0] < 0 or n < 1 or m < 1 or d < 1 or n_threads < 1:
        raise ValueError("no horizons")
    for h in range(1, H):
        if horizons[h] <= horizons[h - 1]:
            raise ValueError("horizons do not increase")
    T = horizons[H - 1]
    if (
        rows.shape[1] < head_n + step_n * (T + 1 if rows_vary else 1)
        or lanes.shape[1] < head_m + step_m * (T + 1 if lanes_vary else 1)
        or lanes.shape[2] != MX_PAIRS or blocks != (M + MX_PAIRS - 1) // MX_PAIRS
        or not log_det.shape[0] == distance.shape[0] == suspect.shape[0] == N
        or not distance.shape[1] == suspect.shape[1] == M
        or not log_det.shape[2] == distance.shape[2] == H
    ):
        raise ValueError("packed systems and outputs do not fit")
    if N == 0 or M == 0:
        return
    p.n, p.m, p.d, p.n_horizons, p.horizons = n, m, d, H, &horizons[0]
    p.row_step, p.lane_step = step_n if rows_vary else 0, step_m if lanes_vary else 0
    p.triangular, p.freeze = triangular, freeze
    cdef Py_ssize_t room = (mx_pair_scratch(n, m, d) + 2 * MX_PAIRS * H + 7) // 8 * 8
    cdef Py_ssize_t size = lanes.shape[1] * MX_PAIRS
    # about a millisecond of work: so many blocks of one row, or so many rows of all
    cdef double cost = 8. * (n + m) ** 3 * (T + 1)
    cdef Py_ssize_t wide = min(blocks, max(1, <Py_ssize_t>(WORK / cost)))
    cdef Py_ssize_t block = min(
        N, n_threads * max(1, <Py_ssize_t>(WORK / (cost * blocks))))
    cdef Py_ssize_t column
    cdef double* memory = <double*>malloc(block * room * sizeof(double) + ALIGNED)
    if memory == NULL:
        raise MemoryError
    cdef double* scratch = <double*>(
        (<size_t>memory + ALIGNED - 1) // ALIGNED * ALIGNED)
    try:
        for first in range(0, N, block):
            stop = min(first + block, N)
            for column in range(0, blocks, wide):
                for i in prange(first, stop, nogil=True, schedule="dynamic",
                                chunksize=1, num_threads=n_threads):
                    one_row(
                        &p, &rows[i, 0], &lanes[0, 0, 0], size,
                        max(column, i // MX_PAIRS if symmetric else 0),
                        min(column + wide, blocks), M, scratch + (i - first) * room,
                        &log_det[i, 0, 0], &distance[i, 0, 0], &suspect[i, 0])
                PyErr_CheckSignals()
    finally:
        free(memory)
