"""The recursion of the product kernel of linear dynamical systems, from pair_filter.h.

One system with as many others as MX_PAIRS says; the header says how arrays lie.
"""

cdef extern from "systems/pair_filter.h" nogil:
    enum: MX_PAIRS
    ctypedef struct mx_pairs:
        Py_ssize_t n
        Py_ssize_t m
        Py_ssize_t d
        Py_ssize_t row_step
        Py_ssize_t lane_step
        Py_ssize_t n_horizons
        const Py_ssize_t* horizons
        int triangular
        int freeze
    Py_ssize_t mx_pair_scratch(Py_ssize_t n, Py_ssize_t m, Py_ssize_t d) noexcept
    void mx_pair_filter(
        const mx_pairs* p, const double* row, const double* lanes, double* scratch,
        double* log_det, double* distance, unsigned char* suspect) noexcept

# The same for other packages: the names with mx_ are of modules that compile
# pair_filter.c themselves.
cdef Py_ssize_t pair_scratch(Py_ssize_t n, Py_ssize_t m, Py_ssize_t d) noexcept nogil
cdef void pair_filter(
    const mx_pairs* p, const double* row, const double* lanes, double* scratch,
    double* log_det, double* distance, unsigned char* suspect) noexcept nogil
