"""Bounds, balance and certificate of signed multipliers, callable without the GIL."""

from maxent._core.potentials cimport Potential

cdef struct SignedRows:
    Py_ssize_t n
    const double* target
    const double* level
    const double* rate
    const double* weight
    const signed char* sides    # 1, 2 or 3: the signs that a multiplier may take

cdef void bounds_of(
    const Potential* p, const SignedRows* rows, const double* a, const double* f,
    double b, double least, double* up, double* low) noexcept nogil
cdef void balance_rows(
    double* a, Py_ssize_t n, double upper, const double* rate,
    const double* weight) noexcept nogil
cdef bint certify_rows(
    const Potential* p, const SignedRows* rows, const double* a, const double* f,
    bint polish, double* scratch, double* b, double* objective, double* gap
) noexcept nogil
