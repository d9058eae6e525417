"""Hidden Markov chains: scaled passes from chain_loops.h, passes in logs, Viterbi.

A sequence of T steps is `row` (T,): the row of the emission table that each step shows,
-1 where nothing was observed. Tables (rows, states) hold log-likelihoods less the
largest of their row, so that a step costs no exponential.
"""

from libc.stdint cimport uintptr_t

cdef extern from "chains/chain_loops.h" nogil:
    cdef enum:
        MX_CHAIN_LANES
        MX_CHAIN_RING

    ctypedef struct mx_chain:
        Py_ssize_t states
        Py_ssize_t width
        const double* start
        const double* trans
        const double* trans_t
        const double* wide
        const double* wide_t
        const double* table
        const double* ones
        const double* log_trans
        const double* log_table
        int sparse
        const double* own_start
        const double* own_trans
        const double* own_trans_t
        const double** own_table

    void mx_chain_forward_lanes(
        const mx_chain* m, const Py_ssize_t** row, const Py_ssize_t* length,
        Py_ssize_t T, int keep, double* alpha, double* emission, double* inverse,
        double* log_scale, int* lost) noexcept
    void mx_chain_backward_lanes(
        const mx_chain* m, const Py_ssize_t** row, const Py_ssize_t* length,
        Py_ssize_t T, const double* alpha, const double* emission,
        const double* inverse, const double* weight, double* beta, double* ring,
        double** counts, double* start_counts, double* xi) noexcept
    int mx_chain_forward_one(
        const mx_chain* m, const Py_ssize_t* row, Py_ssize_t T, int keep, double* alpha,
        double* inverse, double* log_scale) noexcept
    void mx_chain_backward_one(
        const mx_chain* m, const Py_ssize_t* row, Py_ssize_t T, const double* alpha,
        const double* inverse, double weight, double* beta, double* ring,
        double* counts, double* start_counts, double* xi) noexcept
    void mx_chain_add_lanes(
        const double* xi, const double* trans, Py_ssize_t n, double* out) noexcept

# the first whole cache line of scratch with 8 doubles to spare
cdef inline double* aligned(double* memory) noexcept nogil:
    return <double*>((<uintptr_t>memory + 63) & ~<uintptr_t>63)


# log sum exp x; -inf of nothing
cdef double log_total(const double* x, Py_ssize_t n) noexcept nogil
# log_alpha[t, j] = log p(x_0..x_t, z_t = j); returns log p(x)
cdef double log_forward(
    const double* log_start, const double* log_trans, const double* log_table,
    const Py_ssize_t* row, Py_ssize_t T, Py_ssize_t S, double* log_alpha,
) noexcept nogil

# The passes of chain_loops.h, whose comments say what the arrays hold. Other packages
# call these: the names with mx_ are of modules that compile chain_loops.c themselves.
cdef void forward_lanes(
    const mx_chain* m, const Py_ssize_t** row, const Py_ssize_t* length, Py_ssize_t T,
    int keep, double* alpha, double* emission, double* inverse, double* log_scale,
    int* lost) noexcept nogil
cdef void backward_lanes(
    const mx_chain* m, const Py_ssize_t** row, const Py_ssize_t* length, Py_ssize_t T,
    const double* alpha, const double* emission, const double* inverse,
    const double* weight, double* beta, double* ring, double** counts,
    double* start_counts, double* xi) noexcept nogil
cdef int forward_one(
    const mx_chain* m, const Py_ssize_t* row, Py_ssize_t T, int keep, double* alpha,
    double* inverse, double* log_scale) noexcept nogil
cdef void backward_one(
    const mx_chain* m, const Py_ssize_t* row, Py_ssize_t T, const double* alpha,
    const double* inverse, double weight, double* beta, double* ring, double* counts,
    double* start_counts, double* xi) noexcept nogil
cdef void add_lanes(
    const double* xi, const double* trans, Py_ssize_t n, double* out) noexcept nogil
