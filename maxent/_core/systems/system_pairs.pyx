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

from maxent._core.threads cimport team

cdef enum:
    ALIGNED = 64
    WORK = 200000000        # multiplications of a thread between two checks for Ctrl-C

PAIRS = MX_PAIRS
ALIGNMENT = ALIGNED     # of packed lanes, in bytes


cdef Py_ssize_t pair_scratch(Py_ssize_t n, Py_ssize_t m, Py_ssize_t d) noexcept nogil:
    return mx_pair_scratch(n, m, d)


cdef void pair_filter(
    const mx_pairs* p, const double* row, const double* lanes, double* scratch,
    double* log_det, double* distance, unsigned char* suspect,
) noexcept nogil:
    mx_pair_filter(p, row, lanes, scratch, log_det, distance, suspect)


cdef void tile(
    const mx_pairs* p, const double* rows, Py_ssize_t row_size, Py_ssize_t N,
    const double* lanes, Py_ssize_t lane_size, Py_ssize_t i, Py_ssize_t first,
    Py_ssize_t stop, Py_ssize_t M, bint symmetric, double* scratch, double* log_det,
    double* distance, unsigned char* suspect) noexcept nogil:
    """Systems i .. i + PAIRS - 1 against blocks first .. stop - 1.

    A block is read from memory once for these rows. Outputs are (N, M, n_horizons).
    """
    cdef Py_ssize_t b, l, h, H = p.n_horizons, j, k, at, back
    cdef double* both = scratch + mx_pair_scratch(p.n, p.m, p.d)
    cdef double* far = both + MX_PAIRS * H
    cdef unsigned char marks[MX_PAIRS]
    for b in range(first, stop):
        for k in range(i, min(i + MX_PAIRS, N)):
            mx_pair_filter(p, rows + k * row_size, lanes + b * lane_size, scratch, both,
                           far, marks)
            for l in range(min(<Py_ssize_t>MX_PAIRS, M - b * MX_PAIRS)):
                j = b * MX_PAIRS + l
                if symmetric and j < k:
                    continue
                at = k * M + j
                back = j * M + k if symmetric else at
                suspect[at] = suspect[back] = marks[l]
                for h in range(H):
                    log_det[at * H + h] = both[h * MX_PAIRS + l]
                    log_det[back * H + h] = both[h * MX_PAIRS + l]
                    distance[at * H + h] = far[h * MX_PAIRS + l]
                    distance[back * H + h] = far[h * MX_PAIRS + l]


def pair_terms(
    const double[:, ::1] rows,          # IN   (N, size) packed systems of n states
    Py_ssize_t n,
    bint rows_vary,                     # a record for every step
    const double[:, :, ::1] lanes,      # IN   (blocks, size, PAIRS) packed, of m states
    Py_ssize_t m,
    bint lanes_vary,
    Py_ssize_t d,
    const Py_ssize_t[::1] horizons,     # IN   increasing, >= 0
    bint symmetric,                     # rows and lanes are the same
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
    # tasks are tiles of PAIRS rows and so many blocks of columns; a round of them takes
    # about ten milliseconds
    cdef double cost = 8. * MX_PAIRS * (n + m) ** 3 * (T + 1)
    cdef Py_ssize_t tiles = (N + MX_PAIRS - 1) // MX_PAIRS
    cdef Py_ssize_t wide = min(blocks, max(1, <Py_ssize_t>(WORK / cost)))
    cdef Py_ssize_t together = min(
        tiles, n_threads * max(1, <Py_ssize_t>(WORK / (cost * blocks))))
    cdef Py_ssize_t column
    cdef int threads
    cdef double* memory = <double*>malloc(together * room * sizeof(double) + ALIGNED)
    if memory == NULL:
        raise MemoryError
    cdef double* scratch = <double*>(
        (<size_t>memory + ALIGNED - 1) // ALIGNED * ALIGNED)
    try:
        for first in range(0, tiles, together):
            stop = min(first + together, tiles)
            for column in range(0, blocks, wide):
                threads = team(n_threads, stop - first, 0.05 * cost * (
                    min(column + wide, blocks) - column) * (stop - first))
                for i in prange(first, stop, nogil=True, schedule="dynamic",
                                chunksize=1, num_threads=threads):
                    tile(
                        &p, &rows[0, 0], rows.shape[1], N, &lanes[0, 0, 0], size,
                        i * MX_PAIRS, max(column, i if symmetric else 0),
                        min(column + wide, blocks), M, symmetric,
                        scratch + (i - first) * room,
                        &log_det[0, 0, 0], &distance[0, 0, 0], &suspect[0, 0])
                PyErr_CheckSignals()
    finally:
        free(memory)
