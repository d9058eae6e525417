"""The recursion of the product kernel of hidden Markov models, from kernel_loops.h.

One model with as many others as a vector has lanes; chain_pairs.pyx says how arrays
lie.
"""

cdef extern from "chains/kernel_loops.h" nogil:
    cdef enum:
        MX_CHAIN_LANES

    ctypedef struct mx_chain_pairs:
        Py_ssize_t s
        Py_ssize_t s2
        Py_ssize_t steps
        Py_ssize_t first
        const double* trans
        const double* psi
        const double* trans2
        const double* end
        int sparse
        const double* least
        const unsigned char* tiny

    void mx_chain_kernel_lanes(
        const mx_chain_pairs* p, double* X, double* scratch, double* log_k,
        int* lost) noexcept
    void mx_chain_outer_lanes(
        Py_ssize_t s, Py_ssize_t s2, Py_ssize_t m, const double* F, const double* F2,
        double* out) noexcept

# The same for other packages: the names with mx_ are of modules that compile
# kernel_loops.c themselves.
cdef void kernel_lanes(
    const mx_chain_pairs* p, double* X, double* scratch, double* log_k,
    int* lost) noexcept nogil
cdef void outer_lanes(
    Py_ssize_t s, Py_ssize_t s2, Py_ssize_t m, const double* F, const double* F2,
    double* out) noexcept nogil
