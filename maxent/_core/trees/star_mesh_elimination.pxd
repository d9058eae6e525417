"""Star-mesh elimination in doubles and in logarithms, and its way back to distances."""

# doubles that bring_back needs as scratch for up to n nodes
cdef Py_ssize_t panel_memory(Py_ssize_t n) noexcept nogil

# W (n, n) lower: weights -> W_k / sqrt(S_k); S (n,): pivots from 1 on
cdef int eliminate(
    double* W, Py_ssize_t n, double* S, bint interruptible) except -1 nogil

# R (n, n) lower: effective resistances, from W and S as eliminate leaves them; the rows
# of W become those of P; A is scratch
cdef int bring_back(
    double* W, const double* S, Py_ssize_t n, double* R, double* A,
    bint interruptible) except -1 nogil

# log of the sum of exp(x[0 .. n - 1])
cdef double log_row_sum(const double* x, Py_ssize_t n) noexcept nogil

# L (n, n) lower: log weights -> those at elimination; s (n,): log pivots from 1 on
cdef int log_eliminate(
    double* L, double* s, Py_ssize_t n, bint interruptible) except -1 nogil
