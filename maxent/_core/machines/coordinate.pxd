"""Linear dual by coordinate ascent; see coordinate.pyx."""

from maxent._core.potentials cimport Potential

ctypedef fused index_t:
    int
    long long

cdef struct LinearRows:
    # per-row constants of the dual; `sign` is the label, or +-1 for a target's sides
    const double* level
    const double* rate
    const double* weight
    const double* sign
    const double* norm          # |x_t|^2 plus the variance of the bias

cdef double row_step(
    const Potential* p, const LinearRows* rows, Py_ssize_t t, double lam,
    double score, bint look, double* total) noexcept nogil
