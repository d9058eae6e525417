"""Symmetric matrices given below the diagonal: sums, extremes, weights, mirrors."""

cdef enum TreeStatus:
    TREES_OK = 0
    TREES_DISCONNECTED = 1      # no spanning tree has a weight above zero
    TREES_NO_MEMORY = 2
    TREES_ILL_CONDITIONED = 3   # Cholesky only: the digits required are not reached

cdef double total(const double* x, Py_ssize_t n) noexcept nogil
cdef double inner(const double* x, const double* y, Py_ssize_t n) noexcept nogil
cdef void mirror(double* M, Py_ssize_t n) noexcept nogil
cdef void join_triangles(double* M, Py_ssize_t n) noexcept nogil
cdef void weight_range(
    const double* x, Py_ssize_t n, double* least, double* largest) noexcept nogil

# W = exp(log_weight - shift) below a zero diagonal, at most exp(690)
cdef void fill_weights(
    const double* log_weight, Py_ssize_t n, double shift, double* W) noexcept nogil

cdef int look_for_interrupts(bint interruptible) except -1 nogil
